"""The cluster's nodes by watch: what is reported, and when; cordons that the API server does not take at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from kubernetes_objects import container, device, device_class, node, pod, resource_slice

from bridge.kubernetes import cluster as module
from bridge.kubernetes.api import Api
from bridge.kubernetes.cluster import BOUND, Cluster
from bridge.kubernetes.errors import ApiError, KubernetesError, Unavailable
from bridge.kubernetes.resources import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE, Manifest, Reference, Resource
from bridge.kubernetes.settings import GresSource, Settings
from bridge.kubernetes.watch import Change, ChangeType
from slurmk.core.events import Event, NodeChanged, SiteChanged

ADDED, MODIFIED, DELETED = ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED


class FakeWatch:
    trouble = ""

    def __init__(self) -> None:
        self.changes: asyncio.Queue[Change] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[Change]:
        while True:
            yield await self.changes.get()


class FakeApi:
    """Watches that a test feeds, and patches that it may refuse."""

    server, fenced, writes, requests = "https://api", "", 0, dict[str, int]()

    def __init__(self) -> None:
        self.watches: dict[Resource, FakeWatch] = {}
        self.asked: dict[Resource, tuple[str, str]] = {}
        self.there: dict[Resource, list[Manifest]] = {}
        self.patches: list[tuple[str, Any]] = []
        self.faults: list[KubernetesError] = []
        self.denied: list[tuple[str, Resource]] = []

    async def version(self) -> str:
        return "v1.37.2"

    async def allowed(self, verb: str, resource: Resource) -> bool:
        return (verb, resource) not in self.denied

    async def available(self, group_version: str, kind: str) -> bool:
        return False

    def watch(self, resource: Resource, namespace: str = "", selector: str = "", fields: str = "") -> FakeWatch:
        watch = self.watches[resource] = FakeWatch()
        self.asked[resource] = selector, fields
        for manifest in self.there.get(resource, ()):
            watch.changes.put_nowait(Change(ADDED, manifest))
        watch.changes.put_nowait(Change(ChangeType.SYNCED, {}))
        return watch

    async def patch(self, reference: Reference, body: Any, *, urgent: bool = False) -> Manifest:
        if self.faults:
            raise self.faults.pop(0)
        self.patches.append((reference.name, body))
        return {}

    def tell(self, kind: ChangeType, resource: Resource, manifest: Manifest) -> None:
        self.watches[resource].changes.put_nowait(Change(kind, manifest))


class World:
    """A cluster with a fake API server, and what it reported."""

    def __init__(self, *nodes: Manifest, settings: Settings | None = None) -> None:
        self.api = FakeApi()
        self.api.there[NODE] = list(nodes)
        self.settings = settings or Settings(cluster="lab")
        self.events: list[Event] = []

    @asynccontextmanager
    async def running(self, *, start: bool = True) -> AsyncIterator[Cluster]:
        cluster = Cluster(cast(Api, self.api), self.settings, None)
        await cluster.begin()
        if start:
            await cluster.start(self.hear)
        try:
            yield cluster
        finally:
            await cluster.stop()

    def hear(self, event: Event) -> Awaitable[object] | None:
        self.events.append(event)
        return None

    async def heard(self, seconds: float = 0.05) -> list[Event]:
        """What was reported until now, once all is told."""
        await asyncio.sleep(seconds)
        events, self.events = self.events, []
        return events


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(cast(Any, story()), 20))


def test_only_bound_pods_of_others_are_watched() -> None:
    world = World(node("n1"), settings=Settings(cluster="my lab", nodes="pool=x"))

    async def story() -> None:
        async with world.running():
            assert world.api.asked == {NODE: ("pool=x", ""), POD: ("slurmk.org/controller!=my_lab", BOUND)}

    run(story)


def test_rights_that_are_lacking_are_told_at_once() -> None:
    world = World(node("n1"))
    world.api.denied = [("watch", POD)]

    async def story() -> None:
        with pytest.raises(ApiError, match="may not watch pods in all namespaces"):
            async with world.running():
                raise AssertionError

    run(story)


def test_what_changed_together_is_reported_once_and_what_did_not_change_is_not() -> None:
    world = World(node("n1"), node("n2"))

    async def story() -> None:
        async with world.running() as cluster:
            assert await world.heard() == []
            for number in range(5):
                world.api.tell(ADDED, POD, pod(container(cpu="1"), name=f"p{number}"))
            world.api.tell(MODIFIED, NODE, node("n2"))
            (event,) = await world.heard()
            assert isinstance(event, NodeChanged)
            assert (event.node.name, event.node.foreign_cpus, event.removed) == ("n1", 5, False)
            world.api.tell(MODIFIED, POD, pod(container(cpu="1"), name="p0", phase="Succeeded"))
            world.api.tell(DELETED, POD, {"metadata": {"name": "p1", "namespace": "others"}})
            (event,) = await world.heard()
            assert isinstance(event, NodeChanged)
            assert event.node.foreign_cpus == 3
            assert "2 nodes with 3 pods of others" in cluster.status()[0]

    run(story)


def test_a_pod_that_turns_up_on_another_node_is_gone_from_the_first() -> None:
    world = World(node("n1"), node("n2"))

    async def story() -> None:
        async with world.running():
            world.api.tell(ADDED, POD, pod(container(cpu="1")))
            await world.heard()
            world.api.tell(MODIFIED, POD, pod(container(cpu="1"), node_name="n2"))
            found = {
                event.node.name: event.node.foreign_cpus for event in await world.heard() if isinstance(event, NodeChanged)
            }
            assert found == {"n1": 0, "n2": 1}

    run(story)


def test_nodes_that_come_and_go_change_the_site() -> None:
    world = World(node("n1"))

    async def story() -> None:
        async with world.running() as cluster:
            world.api.tell(ADDED, NODE, node("n2"))
            site, new = await world.heard()
            assert isinstance(site, SiteChanged)
            assert isinstance(new, NodeChanged)
            assert (site.site.partitions[0].nodes, new.node.name) == (("n1", "n2"), "n2")
            assert cluster.manifests.keys() == {"n1", "n2"}
            world.api.tell(DELETED, NODE, node("n1"))
            (site,) = await world.heard()
            assert isinstance(site, SiteChanged)
            assert site.site.partitions[0].nodes == ("n2",)
            assert cluster.manifests.keys() == {"n2"}

    run(story)


def test_what_changes_before_the_start_is_told_at_the_start() -> None:
    world = World(node("n1"))

    async def story() -> None:
        async with world.running(start=False) as cluster:
            world.api.tell(ADDED, NODE, node("n2"))
            await asyncio.sleep(0.05)
            nodes = await cluster.start(world.hear)
            assert [each.name for each in nodes] == ["n1", "n2"]
            (event,) = world.events
            assert isinstance(event, SiteChanged)

    run(story)


def test_what_cannot_be_read_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    world = World(node("n1"))

    async def story() -> None:
        async with world.running():
            world.api.tell(ADDED, POD, {"metadata": {"name": "odd"}, "spec": {"nodeName": "n1", "containers": ["?"]}})
            world.api.tell(ADDED, POD, pod(container(cpu="1")))
            (event,) = await world.heard()
            assert isinstance(event, NodeChanged)
            assert event.node.foreign_cpus == 1

    run(story)
    assert "odd could not be read" in caplog.text


def test_claims_of_others_hold_devices() -> None:
    source = GresSource("gpu", device_class="gpus", type_label="productName")
    world = World(node("n1"), node("n2"), settings=Settings(cluster="lab", gres=(source,)))
    world.api.there[RESOURCE_SLICE] = [resource_slice(name, device("g0"), device("g1")) for name in ("n1", "n2")]
    world.api.there[DEVICE_CLASS] = [device_class("gpus", "true")]

    def claim(*held: str, ours: bool = False) -> Manifest:
        results = [{"driver": "gpu.example.com", "pool": "n1", "device": name} for name in held]
        labels = {"slurmk.org/controller": "lab"} if ours else {}
        metadata = {"name": "c", "namespace": "x", "labels": labels}
        return {"metadata": metadata, "status": {"allocation": {"devices": {"results": results}}}}

    async def story() -> None:
        async with world.running():
            assert RESOURCE_CLAIM in world.api.watches
            for manifest, expected in (
                (claim("g0"), (("gpu:a100-sxm4-80gb", 1),)),
                (claim("g0", "g1"), (("gpu:a100-sxm4-80gb", 2),)),
                (claim("g1", ours=True), ()),
            ):
                world.api.tell(MODIFIED, RESOURCE_CLAIM, manifest)
                (event,) = await world.heard()
                assert isinstance(event, NodeChanged)
                assert (event.node.name, event.node.foreign_gres) == ("n1", expected)
            world.api.tell(DELETED, RESOURCE_CLAIM, claim())
            assert await world.heard() == []

    run(story)


# ------------------------------------------------------------------- cordons


CORDONED = {"metadata": {"annotations": {"slurmk.org/drain-reason": "fan"}}, "spec": {"unschedulable": True}}
UNCORDONED = {"metadata": {"annotations": {"slurmk.org/drain-reason": None}}, "spec": {"unschedulable": None}}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY", 0.05)


def test_a_cordon_is_tried_until_it_is_taken() -> None:
    world = World(node("n1"))
    world.api.faults = [Unavailable("away"), ApiError(409, "Conflict", "changed"), Unavailable("away")]

    async def story() -> None:
        async with world.running() as cluster:
            await cluster.cordon("n1", True, "fan")
            await asyncio.sleep(0.6)
            assert world.api.patches == [("n1", CORDONED)]

    run(story)


def test_of_cordons_that_wait_the_last_holds() -> None:
    world = World(node("n1"), node("n2", unschedulable=True, annotations={"slurmk.org/drain-reason": "fan"}))
    world.api.faults = [Unavailable("away")] * 2

    async def story() -> None:
        async with world.running() as cluster:
            await cluster.cordon("n1", True, "fan")
            await cluster.cordon("n2", False, "")
            await asyncio.sleep(0)
            await cluster.cordon("n1", False, "")
            await asyncio.sleep(0.3)
            assert world.api.patches == [("n2", UNCORDONED)], "n1 is as wanted already"

    run(story)


def test_a_refused_cordon_is_given_up_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World(node("n1"))
    world.api.faults = [ApiError(403, "Forbidden", "no")] * 2

    async def story() -> None:
        async with world.running() as cluster:
            for _ in range(2):
                await cluster.cordon("n1", True, "fan")
                await asyncio.sleep(0.02)

    run(story)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "node n1 cannot be cordoned: no"
    ]
    assert world.api.patches == []
    assert world.api.faults == []


def test_the_reason_goes_when_somebody_else_uncordons() -> None:
    world = World(node("n1", unschedulable=True, annotations={"slurmk.org/drain-reason": "fan"}))

    async def story() -> None:
        async with world.running():
            world.api.tell(MODIFIED, NODE, node("n1", annotations={"slurmk.org/drain-reason": "fan"}))
            await world.heard()
            assert world.api.patches == [("n1", UNCORDONED)]

    run(story)
