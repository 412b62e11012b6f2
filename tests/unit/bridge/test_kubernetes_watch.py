"""Watches over cuts, forgotten versions and a server that is away: what a consumer is told is what is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fake_kubernetes import FakeKubernetes, fake_kubernetes, status, write_kubeconfig
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bridge.kubernetes import watch as watch_module
from bridge.kubernetes.api import Api, Change, ChangeType, Watch
from bridge.kubernetes.resources import NODE, POD, Resource

PATIENCE = 10.0


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "labels": labels}}


class Listener:
    """Keeps what a watch tells, in words and as the state that it amounts to."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.told: list[str] = []
        self.changes: list[Change] = []
        self.state: dict[str, str] = {}
        self.moved = asyncio.Event()
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for change in self.watch:
            self.changes.append(change)
            if change.type is ChangeType.SYNCED:
                self.told.append("SYNCED")
            else:
                metadata = change.manifest["metadata"]
                self.told.append(f"{change.type} {metadata['name']}")
                if change.type is ChangeType.DELETED:
                    assert self.state.pop(metadata["name"]) == metadata["uid"]
                else:
                    assert (change.type is ChangeType.ADDED) == (metadata["name"] not in self.state)
                    self.state[metadata["name"]] = metadata["uid"]
            self.moved.set()

    async def until(self, *told: str) -> None:
        """Wait for these, as the last ones."""
        async with asyncio.timeout(PATIENCE):
            while tuple(self.told[-len(told) :]) != told:
                self.moved.clear()
                await self.moved.wait()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what no event tells."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


Story = Callable[[FakeKubernetes, Api, Listener], Coroutine[Any, Any, None]]


def play(folder: Path, story: Story, resource: Resource = POD) -> None:
    async def run() -> None:
        async with fake_kubernetes(folder) as (server, api, _):
            server.put(POD, pod("a", job="1"))
            server.put(POD, pod("b"))
            listener = Listener(api.watch(resource, "n" if resource.namespaced else ""))
            try:
                await story(server, api, listener)
            finally:
                await listener.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_what_is_there_comes_first_and_then_each_change(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("ADDED a", "ADDED b", "SYNCED")
        server.put(POD, pod("c"))
        server.put(POD, pod("b") | {"spec": {}})
        server.remove(POD, "a", "n")
        await listener.until("SYNCED", "ADDED c", "MODIFIED b", "DELETED a")
        assert all("managedFields" not in change.manifest.get("metadata", {}) for change in listener.changes)
        assert listener.changes[0].manifest["kind"] == "Pod"

    play(tmp_path, story)


def test_an_empty_list_is_synced_too(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("SYNCED")
        server.put(NODE, {"metadata": {"name": "n1"}})
        await listener.until("SYNCED", "ADDED n1")

    play(tmp_path, story, NODE)


def test_a_cut_watch_goes_on_where_it_was(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("SYNCED")
        server.cut_streams()
        server.put(POD, pod("c"))
        await listener.until("SYNCED", "ADDED c")
        assert sum("watch" not in line and "/pods" in line for line in server.requests) == 1  # it has listed once

    play(tmp_path, story)


def forget_and_change(server: FakeKubernetes) -> None:
    server.put(POD, pod("b") | {"spec": {}})
    server.remove(POD, "a", "n")
    server.put(POD, pod("c"))
    server.put(POD, pod("d"))
    server.remove(POD, "d", "n")
    server.forget_history()


def test_after_410_only_the_differences_are_told_and_also_what_vanished(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("SYNCED")
        forget_and_change(server)
        server.cut_streams()
        await listener.until("SYNCED", "MODIFIED b", "ADDED c", "DELETED a", "SYNCED")
        remains = next(change for change in listener.changes if change.type is ChangeType.DELETED).manifest
        assert remains["kind"] == "Pod"
        assert remains["metadata"]["labels"] == {"job": "1"}
        assert remains["metadata"]["namespace"] == "n"

    play(tmp_path, story)


def test_410_as_an_answer_is_the_same(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("SYNCED")

        async def gone(request: web.Request) -> web.StreamResponse | None:
            return status(410, "Expired", "too old") if "watch" in request.query else None

        server.faults.append(gone)
        forget_and_change(server)
        server.cut_streams()
        await listener.until("MODIFIED b", "ADDED c", "DELETED a", "SYNCED")

    play(tmp_path, story)


def test_410_in_the_middle_of_a_watch_is_the_same(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("SYNCED")

        async def expires(request: web.Request) -> web.StreamResponse | None:
            if "watch" not in request.query:
                return None
            response = web.StreamResponse()
            await response.prepare(request)
            await server._write(response, "ADDED", server.put(POD, pod("middle")))
            await server._write(response, "ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"})
            return response

        server.faults.append(expires)
        server.cut_streams()
        await listener.until("SYNCED", "ADDED middle", "SYNCED")

    play(tmp_path, story)


def test_another_object_of_the_same_name_is_another_object(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("SYNCED")
        server.remove(POD, "a", "n")
        server.put(POD, pod("a"))
        server.forget_history()
        server.cut_streams()
        await listener.until("SYNCED", "DELETED a", "ADDED a", "SYNCED")

    play(tmp_path, story)


def test_a_server_that_was_away_is_noticed_within_seconds_of_its_return(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("SYNCED")
        await server.stop()
        forget_and_change(server)
        await asyncio.sleep(2.5)
        assert listener.watch.trouble
        await server.start()
        await listener.until("MODIFIED b", "ADDED c", "DELETED a", "SYNCED")
        assert not listener.watch.trouble
        assert watch_module.LONGEST_DELAY <= 2.0

    play(tmp_path, story)


def test_a_refusal_is_told_and_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "REFUSED_DELAY", 0.3)

    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        async def forbidden(request: web.Request) -> web.StreamResponse | None:
            return status(403, "Forbidden", "me may not list pods")

        server.faults += [forbidden, forbidden]
        await until(lambda: bool(listener.watch.trouble))
        assert listener.watch.trouble == "me may not list pods"
        await listener.until("SYNCED")

    play(tmp_path, story)


def test_a_watch_goes_on_with_new_credentials(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("SYNCED")
        server.token = "token-2"
        write_kubeconfig(tmp_path, server)
        server.cut_streams()
        server.put(POD, pod("c"))
        await listener.until("SYNCED", "ADDED c")

    play(tmp_path, story)


def test_a_silent_stream_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "SILENCE", 0.5)

    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("SYNCED")
        await until(lambda: sum("watch" in line for line in server.requests) >= 3)
        server.put(POD, pod("c"))
        await listener.until("SYNCED", "ADDED c")

    play(tmp_path, story)


def test_rubbish_in_a_stream_does_not_end_the_watch(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        await listener.until("SYNCED")
        answers = [b"{not json}\n", b'{"type": "ADDED"}\n', b"[]\n", b'"x"\n', b'{"type": "NEW", "object": {"metadata": {}}}\n']

        async def rubbish(request: web.Request) -> web.StreamResponse | None:
            return web.Response(body=answers.pop()) if answers and "watch" in request.query else None

        server.faults += [rubbish] * len(answers)
        server.cut_streams()
        server.put(POD, pod("c"))
        await until(lambda: "c" in listener.state and not answers)

    play(tmp_path, story)


ACTIONS = st.lists(st.sampled_from(["put a", "put b", "put c", "remove a", "remove b", "cut", "forget", "wait"]), max_size=25)


@given(actions=ACTIONS)
@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happens_what_is_told_amounts_to_what_is_there(tmp_path: Path, actions: list[str]) -> None:
    async def story(server: FakeKubernetes, api: Api, listener: Listener) -> None:
        for action in actions:
            verb, _, name = action.partition(" ")
            if verb == "put":
                server.put(POD, pod(name))
            elif verb == "remove" and ("n", name) in server.objects[str(POD)]:
                server.remove(POD, name, "n")
            elif verb == "cut":
                server.cut_streams()
            elif verb == "forget":
                server.forget_history()
                server.cut_streams()
            elif verb == "wait":
                await asyncio.sleep(0.01)
        server.put(POD, pod("last"))
        await until(lambda: "last" in listener.state and listener.told[-1].endswith(("last", "SYNCED")))
        there = {key[1]: manifest["metadata"]["uid"] for key, manifest in server.objects[str(POD)].items()}
        assert listener.state == there

    play(tmp_path, story)
