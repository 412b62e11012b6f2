"""The client of the API server, on a server that misbehaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fake_kubernetes import FakeKubernetes, fake_kubernetes, status, write_kubeconfig

from bridge.kubernetes.access import load_access, proxy_of
from bridge.kubernetes.api import AccessError, Api, ApiError, RequestKey, Unavailable
from bridge.kubernetes.resources import NODE, POD, RESOURCES, SECRET, Reference, reference_of, resource_of
from bridge.kubernetes.settings import ClientLimits, Settings

Story = Callable[[FakeKubernetes, Api], Coroutine[Any, Any, None]]


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "n"}, "spec": spec}


def play(folder: Path, story: Story, limits: ClientLimits | None = None) -> None:
    async def run() -> None:
        async with fake_kubernetes(folder, limits) as (server, api, _):
            await story(server, api)

    asyncio.run(asyncio.wait_for(run(), 60))


def once(answer: Callable[[], web.StreamResponse], method: str = "") -> Any:
    async def fault(request: web.Request) -> web.StreamResponse | None:
        return answer() if method in ("", request.method) else None

    return fault


def test_objects_go_in_and_come_out(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        made = await api.create(pod(image="x"))
        assert made["metadata"]["uid"]
        assert (await api.get(pod()))["spec"] == {"image": "x"}
        await api.patch(pod(), {"metadata": {"labels": {"a": "b"}}})
        assert (await api.get(Reference(POD, "a", "n")))["metadata"]["labels"] == {"a": "b"}
        await api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": {}})
        assert [item["metadata"]["name"] for item in await api.list(SECRET, "n")] == ["s"]
        assert await api.delete(made)
        assert not await api.delete(made)
        assert api.requests[RequestKey("create", "Pod", 201)] == 1
        assert api.requests[RequestKey("delete", "Pod", 404)] == 1
        assert api.writes == 5

    play(tmp_path, story)


def test_errors_say_what_the_api_server_said(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        await api.create(pod())
        with pytest.raises(ApiError, match='pods "a" already exists') as caught:
            await api.create(pod())
        assert caught.value.already_exists
        assert not caught.value.conflict
        with pytest.raises(ApiError) as caught:
            await api.patch(pod(), {"metadata": {"resourceVersion": "1"}})
        assert caught.value.conflict
        server.faults.append(once(lambda: status(403, "Forbidden", "exceeded quota: q", kind="pods", name="b")))
        with pytest.raises(ApiError, match="exceeded quota: q") as caught:
            await api.create(pod("b"))
        assert caught.value.forbidden
        assert caught.value.details["name"] == "b"
        server.faults.append(once(lambda: web.Response(status=404, text="404 page not found\n")))
        with pytest.raises(ApiError, match=r"^404 page not found$") as caught:
            await api.get(pod())
        assert caught.value.not_found
        assert caught.value.reason == "NotFound"

    play(tmp_path, story)


def test_another_object_of_that_name_is_not_deleted(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        await api.create(pod())
        assert not await api.delete(pod(), precondition_uid="uid-of-the-one-before")
        assert await api.get(pod())

    play(tmp_path, story)


def test_too_many_requests_are_repeated_after_the_time_that_the_server_names(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        await api.create(pod())
        server.faults.append(once(lambda: status(429, "TooManyRequests", "slow down", after=1)))
        begun = time.monotonic()
        await api.replace(await api.get(pod()) | {"spec": {"x": 1}})
        assert 1.0 <= time.monotonic() - begun < 2.5
        assert sum(api.requests[key] for key in api.requests if key.status == 429) == 1

    play(tmp_path, story)


@pytest.mark.parametrize("code", [502, 503, 504])
def test_a_server_that_is_ill_for_a_moment_is_asked_again(tmp_path: Path, code: int) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        server.faults += [once(lambda: status(code, "ServiceUnavailable")) for _ in range(3)]
        await api.create(pod())
        assert [line.split("?")[0] for line in server.requests].count("POST /api/v1/namespaces/n/pods") == 4

    play(tmp_path, story)


def test_what_may_have_been_done_is_not_patched_twice(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        await api.create(pod())

        async def cut(request: web.Request) -> web.StreamResponse | None:
            if request.method != "PATCH":
                return None
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        server.faults.append(cut)
        with pytest.raises(Unavailable):
            await api.patch(pod(), [{"op": "add", "path": "/spec/x/-", "value": 1}], "json")
        assert sum(line.startswith("PATCH") for line in server.requests) == 1

    play(tmp_path, story)


def test_a_creation_whose_answer_was_lost_ends_as_already_there(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        async def done_but_cut(request: web.Request) -> web.StreamResponse | None:
            if request.method != "POST":
                return None
            server.put(POD, await request.json())
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        server.faults.append(done_but_cut)
        with pytest.raises(ApiError) as caught:
            await api.create(pod())
        assert caught.value.already_exists

    play(tmp_path, story)


def test_no_answer_is_unavailable_after_the_time_that_a_request_may_take(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        async def sleep(request: web.Request) -> web.StreamResponse | None:
            await asyncio.sleep(30)
            return None

        server.faults.append(sleep)
        begun = time.monotonic()
        with pytest.raises(Unavailable, match=r"no answer|[Tt]imeout"):
            await api.get(pod())
        assert time.monotonic() - begun < 3
        assert any(key.status == 0 for key in api.requests)

    play(tmp_path, story, ClientLimits(timeout=1.0))


def test_a_server_that_is_away_is_waited_for(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        await server.stop()
        creation = asyncio.create_task(api.create(pod()))
        await asyncio.sleep(0.7)
        assert not creation.done()
        await server.start()
        assert (await creation)["metadata"]["name"] == "a"

    play(tmp_path, story, ClientLimits(timeout=20.0))


def test_writes_are_spread_and_reads_and_urgent_ones_are_not(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        begun = time.monotonic()
        creations = asyncio.gather(*(api.create(pod(f"p{number}")) for number in range(25)))
        await asyncio.gather(*(api.list(POD) for _ in range(30)))
        await api.create(pod("urgent"), urgent=True)
        assert time.monotonic() - begun < 0.7
        await creations
        assert 0.9 <= time.monotonic() - begun < 3  # 5 at once, 20 more at 20 a second

    play(tmp_path, story, ClientLimits(writes_per_second=20, burst=5, timeout=10))


def test_no_more_requests_than_allowed_are_under_way_at_once(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        under_way, most = 0, 0

        async def slow(request: web.Request) -> web.StreamResponse | None:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.02)
            under_way -= 1
            return None

        server.faults.append(slow)
        await asyncio.gather(*(api.list(NODE) for _ in range(20)))
        assert most == 3

    play(tmp_path, story, ClientLimits(concurrent=3))


def test_an_expired_token_is_read_again(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        server.token = "token-2"
        write_kubeconfig(tmp_path, server)
        await asyncio.gather(*(api.create(pod(f"p{number}")) for number in range(5)))
        server.token = "token-3"
        with pytest.raises(ApiError, match="Unauthorized"):
            await api.list(POD)

    play(tmp_path, story)


def test_lists_come_in_pages_and_once_more_whole_when_a_page_was_forgotten(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        for number in range(601):
            server.put(POD, pod(f"p{number:03}"))
        items, version = await api.list_with_version(POD)
        assert [item["metadata"]["name"] for item in items] == [f"p{number:03}" for number in range(601)]
        assert version == str(server.version)
        assert items[0]["kind"] == "Pod"
        assert "managedFields" not in items[0]["metadata"]

        async def expired(request: web.Request) -> web.StreamResponse | None:
            return status(410, "Expired") if "continue" in request.query else None

        server.faults.append(expired)
        assert len(await api.list(POD)) == 601

    play(tmp_path, story)


def test_kinds_that_the_server_has_are_found(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        assert await api.available("v1", "Pod")
        assert not await api.available("v1", "Cheese")
        assert await api.available("batch/v1", "Job")
        assert not await api.available("kueue.x-k8s.io/v1beta2", "Workload")
        asked = len(server.requests)
        assert await api.available("batch/v1", "Job")
        assert not await api.available("kueue.x-k8s.io/v1beta2", "Workload")
        assert len(server.requests) == asked

    play(tmp_path, story)


def test_fenced_writes_wait_as_if_the_server_were_away(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        api.fenced = "the lease could not be renewed"
        creation = asyncio.create_task(api.create(pod()))
        assert await api.list(POD) == []
        await asyncio.sleep(0.3)
        assert not creation.done()
        api.fenced = ""
        await creation
        api.fenced = "the lease could not be renewed"
        with pytest.raises(Unavailable, match="the lease could not be renewed"):
            await api.delete(pod())
        with pytest.raises(Unavailable, match="the lease could not be renewed"):
            await api.patch(pod(), {}, urgent=True)
        assert await api.get(pod())

    play(tmp_path, story, ClientLimits(timeout=1.0))


def test_an_answer_that_is_no_object_is_no_answer(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        async def portal(request: web.Request) -> web.StreamResponse | None:
            return web.Response(text="<html>please log in</html>") if request.path == "/version" else None

        server.faults += [portal] * 20
        with pytest.raises(Unavailable, match="please log in"):
            await api.read("/version", timeout=0.5)

    play(tmp_path, story)


def test_deleting_everything_of_a_kind_is_refused(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api) -> None:
        with pytest.raises(ValueError):
            await api.delete_collection(POD, "n", "")
        await api.create(pod())
        await api.delete_collection(POD, "n", "a=b")
        assert "DELETE /api/v1/namespaces/n/pods?labelSelector=a%3Db" in server.requests

    play(tmp_path, story)


# ------------------------------------------------------------------- the way to it


def connect(kubeconfig: str, context: str = "") -> None:
    async def run() -> None:
        await (await Api.connect(Settings(kubeconfig=kubeconfig, context=context))).close()

    asyncio.run(asyncio.wait_for(run(), 30))


BROKEN = {
    "empty": "",
    "no mapping": "- 1\n",
    "no YAML": "{",
    "no context": "apiVersion: v1\nkind: Config\n",
    "no cluster": "current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\nclusters: []\nusers: []\n",
    "failing plugin": (
        "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /nowhere/plugin}}}]\n"
    ),
}


@pytest.mark.parametrize("text", list(BROKEN.values()), ids=list(BROKEN))
def test_a_broken_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(AccessError, match=f"^{path}: ."):
        connect(str(path))


def test_a_missing_kubeconfig_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AccessError, match="nowhere: there is no such kubeconfig"):
        connect("nowhere")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(AccessError, match="there is no kubeconfig"):
        connect("")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    with pytest.raises(AccessError, match="service account"):
        connect("")


def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        async with fake_kubernetes(tmp_path):
            await load_access(str(tmp_path / "kubeconfig"), "other")

    with pytest.raises(AccessError, match="other"):
        asyncio.run(run())


def test_nobody_there_is_unavailable(tmp_path: Path) -> None:
    server = FakeKubernetesAddress()
    write_kubeconfig(tmp_path, server)  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match=r"^http://127\.0\.0\.1:1: Connect call failed"):
        asyncio.run(_connect_impatiently(str(tmp_path / "kubeconfig")))


class FakeKubernetesAddress:
    """Where nobody listens."""

    port = 1
    token = "x"


async def _connect_impatiently(kubeconfig: str) -> None:
    await Api(await load_access(kubeconfig), ClientLimits(timeout=0.5)).read("/version")


PROXIES = {"https": "http://proxy:3128", "no": "127.0.0.1,.cluster.example"}


@pytest.mark.parametrize(
    ("server", "proxy"),
    [
        ("https://api.example:6443", "http://proxy:3128"),
        ("https://127.0.0.1:6443", None),
        ("https://api.cluster.example:6443", None),
        ("http://api.example", None),
    ],
)
def test_the_proxy_is_the_environments(server: str, proxy: str | None) -> None:
    assert proxy_of(server, PROXIES) == proxy


# ------------------------------------------------------------------- names


def test_every_kind_is_known_once_and_finds_itself() -> None:
    for resource in RESOURCES:
        manifest = {
            "apiVersion": resource.group_version,
            "kind": resource.kind,
            "metadata": {"name": "x", "namespace": "n", "uid": "u"},
        }
        assert resource_of(manifest) is resource
        assert reference_of(manifest).path.endswith(f"{resource.plural}/x")
    assert len({(resource.group, resource.plural) for resource in RESOURCES}) == len(RESOURCES)
    assert NODE.path("ignored", "n1", "status") == "/api/v1/nodes/n1/status"
    assert POD.path("n") == "/api/v1/namespaces/n/pods"
