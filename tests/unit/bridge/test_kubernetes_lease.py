"""Two controllers and one Lease: only the holder acts, whatever the API server does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fake_kubernetes import FakeKubernetes, fake_kubernetes, status

from bridge.kubernetes.api import Api, ApiError, Unavailable
from bridge.kubernetes.lease import Lease, identity_of
from bridge.kubernetes.resources import LEASE, SECRET
from bridge.kubernetes.settings import Settings

Story = Callable[[FakeKubernetes, Api, Settings], Coroutine[Any, Any, None]]

SECRET_MANIFEST = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "slurmk"}}


def play(folder: Path, story: Story) -> None:
    async def run() -> None:
        async with fake_kubernetes(folder) as (server, api, settings):
            await story(server, api, settings)

    asyncio.run(asyncio.wait_for(run(), 60))


def spec(server: FakeKubernetes) -> dict[str, Any]:
    found: dict[str, Any] = server.objects[str(LEASE)]["slurmk", "slurmk-controller"]["spec"]
    return found


def test_the_second_waits_until_the_first_gives_it_up(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, settings: Settings) -> None:
        other = await Api.connect(settings)
        first, second = Lease(api, settings, "first"), Lease(other, settings, "second")
        await first.acquire()
        assert spec(server)["holderIdentity"] == "first"
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(2.5)  # longer than the lease lasts: it is renewed
        assert not waiting.done()
        assert second.holder == "first"
        await first.release()
        await asyncio.wait_for(waiting, 1.0)
        assert spec(server)["holderIdentity"] == "second"
        assert spec(server)["leaseTransitions"] >= 1
        assert not second.lost.is_set()
        with pytest.raises(Unavailable, match="given up"):
            await api.create(SECRET_MANIFEST)
        await other.create(SECRET_MANIFEST)
        await second.release()
        await other.close()

    play(tmp_path, story)


def test_a_holder_that_died_is_followed_after_the_leases_time(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, settings: Settings) -> None:
        metadata = {"name": "slurmk-controller", "namespace": "slurmk"}
        server.put(LEASE, {"metadata": metadata, "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 2}})
        begun = time.monotonic()
        lease = Lease(api, settings, "me")
        await lease.acquire()
        assert 2.0 <= time.monotonic() - begun < 4.0
        await lease.release()

    play(tmp_path, story)


def test_the_same_identity_need_not_wait(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, settings: Settings) -> None:
        identity = identity_of(tmp_path)
        metadata = {"name": "slurmk-controller", "namespace": "slurmk"}
        server.put(LEASE, {"metadata": metadata, "spec": {"holderIdentity": identity, "leaseDurationSeconds": 60}})
        lease = Lease(api, settings, identity_of(tmp_path))
        await asyncio.wait_for(lease.acquire(), 0.5)
        await lease.release()

    play(tmp_path, story)


def test_of_many_that_want_it_one_gets_it(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, settings: Settings) -> None:
        leases = [Lease(api, settings, f"controller-{number}") for number in range(8)]
        tasks = [asyncio.create_task(lease.acquire()) for lease in leases]
        await asyncio.sleep(1.5)
        assert sum(task.done() for task in tasks) == 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for lease in leases:
            await lease.release()

    play(tmp_path, story)


def test_a_lease_in_anothers_hands_is_lost_and_nothing_is_written(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, settings: Settings) -> None:
        lease = Lease(api, settings, "me")
        await lease.acquire()
        held = server.objects[str(LEASE)]["slurmk", "slurmk-controller"]
        server.put(LEASE, {**held, "spec": {**held["spec"], "holderIdentity": "thief"}})
        await asyncio.wait_for(lease.lost.wait(), 2.0)
        assert lease.holder == "thief"
        with pytest.raises(Unavailable, match="thief has the lease"):
            await api.create(SECRET_MANIFEST)
        await lease.release()
        assert spec(server)["holderIdentity"] == "thief"

    play(tmp_path, story)


def test_while_the_server_is_away_it_is_not_lost_but_writes_wait(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, settings: Settings) -> None:
        lease = Lease(api, settings, "me")
        await lease.acquire()

        async def ill(request: web.Request) -> web.StreamResponse | None:
            return status(503, "ServiceUnavailable") if "/leases" in request.path else None

        server.faults += [ill] * 1000
        await asyncio.sleep(1.5)
        assert "could not be renewed" in api.fenced
        assert not lease.lost.is_set()
        creation = asyncio.create_task(api.create(SECRET_MANIFEST))
        await asyncio.sleep(0.3)
        assert not creation.done()
        assert str(SECRET) not in server.objects
        server.faults.clear()
        await asyncio.wait_for(creation, 3.0)
        assert not api.fenced
        await lease.release()

    play(tmp_path, story)


def test_taken_by_another_while_the_server_was_away_it_is_lost_before_anything_is_written(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, settings: Settings) -> None:
        lease = Lease(api, settings, "me")
        await lease.acquire()
        await server.stop()
        creation = asyncio.create_task(api.create(SECRET_MANIFEST))
        await asyncio.sleep(1.2)
        held = server.objects[str(LEASE)]["slurmk", "slurmk-controller"]
        server.put(LEASE, {**held, "spec": {**held["spec"], "holderIdentity": "other"}})
        await server.start()
        await asyncio.wait_for(lease.lost.wait(), 5.0)
        with pytest.raises(Unavailable):
            await creation
        assert str(SECRET) not in server.objects
        await lease.release()

    play(tmp_path, story)


@pytest.mark.parametrize("deed", ["deleted", "edited"])
def test_a_lease_that_somebody_meddled_with_is_ours_again(tmp_path: Path, deed: str) -> None:
    async def story(server: FakeKubernetes, api: Api, settings: Settings) -> None:
        lease = Lease(api, settings, "me")
        await lease.acquire()
        if deed == "deleted":
            server.remove(LEASE, "slurmk-controller", "slurmk")
        else:
            held = server.objects[str(LEASE)]["slurmk", "slurmk-controller"]
            server.put(LEASE, {**held, "spec": {"holderIdentity": ""}})
        await asyncio.sleep(1.0)
        assert spec(server)["holderIdentity"] == "me"
        assert not lease.lost.is_set()
        assert not api.fenced
        await lease.release()

    play(tmp_path, story)


def test_a_missing_namespace_is_named(tmp_path: Path) -> None:
    async def story(server: FakeKubernetes, api: Api, settings: Settings) -> None:
        async def missing(request: web.Request) -> web.StreamResponse | None:
            return status(404, "NotFound", 'namespaces "slurmk" not found') if request.method == "POST" else None

        server.faults.append(missing)
        with pytest.raises(ApiError, match="kubectl create namespace slurmk"):
            await Lease(api, settings, "me").acquire()

    play(tmp_path, story)


def test_an_identity_is_made_once(tmp_path: Path) -> None:
    first = identity_of(tmp_path)
    assert "_" in first
    assert identity_of(tmp_path) == first
    (tmp_path / "other").mkdir()
    assert identity_of(tmp_path / "other") != first
