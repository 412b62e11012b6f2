"""The client of the API server on a real one. How it takes a server's bad moments is in tests/unit/bridge."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bridge.kubernetes.api import Api, ApiError, Change, ChangeType
from bridge.kubernetes.lease import Lease
from bridge.kubernetes.resources import (
    CONFIG_MAP,
    LEASE,
    NODE,
    POD,
    POD_GROUP,
    RESOURCES,
    SECRET,
    WORKLOAD,
    Reference,
    Resource,
)
from bridge.kubernetes.settings import ClientLimits, Settings

Story = Callable[[Api], Awaitable[None]]


def play(kubeconfig: str, story: Story, **limits: Any) -> None:
    async def run() -> None:
        api = await Api.connect(Settings(kubeconfig=kubeconfig, client=ClientLimits(**limits)))
        try:
            await story(api)
        finally:
            await api.close()

    asyncio.run(asyncio.wait_for(run(), 100))


def config_map(namespace: str, name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def test_objects_go_in_and_come_out(kubeconfig: str, namespace: str) -> None:
    async def story(api: Api) -> None:
        assert (await api.version()).startswith("v1.")
        assert await api.local_address()
        made = await api.create(config_map(namespace, x="1"))
        with pytest.raises(ApiError) as caught:
            await api.create(config_map(namespace))
        assert caught.value.already_exists
        await api.patch(made, {"data": {"y": "2"}})
        await api.patch(made, [{"op": "remove", "path": "/data/x"}], "json")
        await api.patch(made, {"data": {"z": "3"}}, "strategic")
        now = await api.get(made)
        assert now["data"] == {"y": "2", "z": "3"}
        await api.replace({**now, "data": {"w": "4"}})
        with pytest.raises(ApiError) as caught:
            await api.replace({**now, "data": {}})
        assert caught.value.conflict
        with pytest.raises(ApiError) as caught:
            await api.patch(now, {"metadata": {"resourceVersion": now["metadata"]["resourceVersion"]}, "data": {}})
        assert caught.value.conflict
        assert not await api.delete(made, precondition_uid="00000000-0000-0000-0000-000000000000")
        assert await api.delete(made, precondition_uid=made["metadata"]["uid"])
        assert not await api.delete(made)
        with pytest.raises(ApiError) as caught:
            await api.get(made)
        assert caught.value.not_found

    play(kubeconfig, story)


def test_applying_is_asking_for_fields_and_others_own_theirs(kubeconfig: str, namespace: str) -> None:
    async def story(api: Api) -> None:
        await api.apply(config_map(namespace, x="1"))
        await api.apply(config_map(namespace, y="2"), manager="another")
        await api.apply(config_map(namespace, x="1", z="3"))
        with pytest.raises(ApiError, match='conflict with "slurmk"') as caught:
            await api.apply(config_map(namespace, x="9"), manager="another")
        assert caught.value.conflict
        tried = await api.apply(config_map(namespace, x="9", y="2"), force=True, manager="another", dry_run=True)
        assert tried["data"]["x"] == "9"
        reference = Reference(CONFIG_MAP, "a", namespace)
        assert (await api.get(reference))["data"] == {"x": "1", "y": "2", "z": "3"}
        await api.apply(config_map(namespace), manager="another")
        assert (await api.get(reference))["data"] == {"x": "1", "z": "3"}

    play(kubeconfig, story)


def test_fields_that_the_server_does_not_know_are_refused(kubeconfig: str, namespace: str) -> None:
    async def story(api: Api) -> None:
        wrong = {**config_map(namespace), "dataa": {}}
        for attempt in (api.create, api.apply):
            with pytest.raises(ApiError, match="dataa"):
                await attempt(wrong)
        with pytest.raises(ApiError) as caught:
            await api.create({**config_map(namespace), "data": {"a b": "x"}})
        assert caught.value.invalid

    play(kubeconfig, story)


def test_a_namespace_that_is_not_there_is_told(kubeconfig: str) -> None:
    async def story(api: Api) -> None:
        with pytest.raises(ApiError, match='namespaces "slurmk-nowhere" not found') as caught:
            await api.create(config_map("slurmk-nowhere"))
        assert caught.value.not_found
        with pytest.raises(ApiError, match="kubectl create namespace slurmk-nowhere"):
            await Lease(api, Settings(namespace="slurmk-nowhere"), "me").acquire()

    play(kubeconfig, story)


def test_lists_and_collections(kubeconfig: str, namespace: str) -> None:
    async def story(api: Api) -> None:
        labelled = [
            {**config_map(namespace, f"c{number:03}"), "metadata": {**config_map(namespace, f"c{number:03}")["metadata"]}}
            for number in range(300)
        ]
        for number, manifest in enumerate(labelled):
            manifest["metadata"]["labels"] = {"parity": "odd" if number % 2 else "even"}
        await asyncio.gather(*map(api.create, labelled))
        everything = await api.list(CONFIG_MAP, namespace)
        assert {item["metadata"]["name"] for item in everything} >= {f"c{number:03}" for number in range(300)}
        assert everything[0]["apiVersion"] == "v1"
        assert len(await api.list(CONFIG_MAP, namespace, "parity=odd")) == 150
        assert len(await api.list(CONFIG_MAP, namespace, "parity in (odd,even)", "metadata.name=c007")) == 1
        await api.delete_collection(CONFIG_MAP, namespace, "parity=odd")
        assert len(await api.list(CONFIG_MAP, namespace, "parity")) == 150

    play(kubeconfig, story, writes_per_second=2000, burst=1000)


def test_what_the_server_has(kubeconfig: str) -> None:
    async def story(api: Api) -> None:
        for resource in (POD, NODE, SECRET, LEASE, POD_GROUP, WORKLOAD):
            assert await api.available(resource.group_version, resource.kind)
        assert not await api.available("example.org/v1", "Cheese")
        assert await api.allowed("create", POD, "default")

    play(kubeconfig, story)


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: f"{resource.group}.{resource.kind}")
def test_kinds_are_where_they_are_said_to_be(kubeconfig: str, resource: Resource) -> None:
    async def story(api: Api) -> None:
        if not await api.available(resource.group_version, resource.kind):
            pytest.skip(f"this cluster has no {resource}")
        found = await api.read(resource.root)
        entry = next(entry for entry in found["resources"] if entry["kind"] == resource.kind and "/" not in entry["name"])
        assert (entry["name"], entry["namespaced"]) == (resource.plural, resource.namespaced)
        await api.list(resource)

    play(kubeconfig, story)


def test_a_watch_tells_what_is_there_and_each_change(kubeconfig: str, namespace: str) -> None:
    async def story(api: Api) -> None:
        await api.create(config_map(namespace, "before"))
        told: list[Change] = []
        synced = asyncio.Event()

        async def listen() -> None:
            async for change in api.watch(CONFIG_MAP, namespace, fields="metadata.name!=kube-root-ca.crt"):
                told.append(change)
                if change.type is ChangeType.SYNCED:
                    synced.set()
                if change.type is ChangeType.DELETED:
                    return

        listening = asyncio.create_task(listen())
        await asyncio.wait_for(synced.wait(), 10)
        begun = time.monotonic()
        await api.create(config_map(namespace, "after"))
        await api.patch(config_map(namespace, "after"), {"data": {"x": "1"}})
        await api.delete(config_map(namespace, "after"))
        await asyncio.wait_for(listening, 10)
        assert time.monotonic() - begun < 5
        words = [(change.type.value, change.manifest.get("metadata", {}).get("name")) for change in told]
        assert words == [
            ("ADDED", "before"),
            ("SYNCED", None),
            ("ADDED", "after"),
            ("MODIFIED", "after"),
            ("DELETED", "after"),
        ]
        assert told[3].manifest["data"] == {"x": "1"}
        assert all("managedFields" not in change.manifest.get("metadata", {}) for change in told)

    play(kubeconfig, story)


def test_a_watch_from_a_forgotten_version_lists_anew(kubeconfig: str, namespace: str) -> None:
    async def story(api: Api) -> None:
        await api.create(config_map(namespace, "a"))
        watch = api.watch(CONFIG_MAP, namespace, fields="metadata.name=a")
        changes = aiter(watch)
        assert (await anext(changes)).type is ChangeType.ADDED
        assert (await anext(changes)).type is ChangeType.SYNCED
        watch._version = "1"  # etcd has compacted it, or the cache has never had it
        await api.patch(config_map(namespace, "a"), {"data": {"x": "1"}})
        found = [await asyncio.wait_for(anext(changes), 20) for _ in range(2)]
        assert [change.type for change in found] == [ChangeType.MODIFIED, ChangeType.SYNCED]
        assert int(watch._version) > 1

    play(kubeconfig, story)


def test_the_lease_goes_from_one_to_the_other(kubeconfig: str, namespace: str) -> None:
    async def story(api: Api) -> None:
        settings = Settings(namespace=namespace, kubeconfig=kubeconfig, lease_seconds=3)
        other = await Api.connect(settings)
        first, second = Lease(api, settings, "first"), Lease(other, settings, "second")
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(4.5)
        assert not waiting.done()
        reference = Reference(LEASE, settings.lease, namespace)
        assert (await api.get(reference))["spec"]["holderIdentity"] == "first"
        await first.release()
        await asyncio.wait_for(waiting, 3)
        lease = await other.get(reference)
        assert lease["spec"]["holderIdentity"] == "second"
        assert lease["spec"]["leaseTransitions"] >= 1
        await other.patch(reference, {"spec": {"holderIdentity": "by hand"}})
        await asyncio.wait_for(second.lost.wait(), 5)
        await second.release()
        await other.close()

    play(kubeconfig, story)


def test_a_dead_holders_lease_is_taken_after_its_time(kubeconfig: str, namespace: str) -> None:
    async def story(api: Api) -> None:
        settings = Settings(namespace=namespace, lease_seconds=3)
        dead = Lease(api, settings, "dead")
        await dead.acquire()
        assert dead._renewing is not None
        dead._renewing.cancel()
        begun = time.monotonic()
        lease = Lease(api, settings, "next")
        await lease.acquire()
        assert 2.5 < time.monotonic() - begun < 8
        await lease.release()

    play(kubeconfig, story)


def test_many_writes_a_second_with_little_work(kubeconfig: str, namespace: str) -> None:
    async def story(api: Api) -> None:
        manifests = [config_map(namespace, f"c{number}", text="x" * 2000) for number in range(600)]
        begun, work = time.monotonic(), sum(os.times()[:2])
        await asyncio.gather(*map(api.create, manifests))
        elapsed, used = time.monotonic() - begun, sum(os.times()[:2]) - work
        print(f"{len(manifests) / elapsed:.0f} writes a second, {1000 * used / len(manifests):.2f} ms of CPU each")
        assert used / len(manifests) < 0.005
        assert api.writes == len(manifests)

    play(kubeconfig, story, writes_per_second=5000, burst=5000)
