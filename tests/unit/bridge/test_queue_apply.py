"""Queues compared with a cluster and made there, and the watch on what they leave: with an API server of a few lines."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import wraps
from typing import Any

import pytest
from queue_site import ACCOUNTS, NODES, SITE, pods, settings

from bridge.kubernetes.api import Api
from bridge.kubernetes.errors import ApiError
from bridge.kubernetes.queues.apply import Action, QueueObjects, wanted_objects
from bridge.kubernetes.quotas import QuotaWatch
from bridge.kubernetes.resources import (
    KUEUE_CLUSTER_QUEUE,
    KUEUE_WORKLOAD,
    VOLCANO_QUEUE,
    Manifest,
    Resource,
    reference_of,
    resource_of,
)
from bridge.kubernetes.settings import QueueSystem, Settings
from bridge.kubernetes.watch import Change, ChangeType
from slurmk.core.events import QuotasChanged
from slurmk.model.quotas import Quota

Key = tuple[Resource, str, str]


def on_a_loop(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test of coroutines as one that pytest can call."""

    @wraps(story)
    def test(*arguments: Any, **named: Any) -> None:
        asyncio.run(story(*arguments, **named))

    return test


class Server(Api):
    """Objects in memory. Another manager's fields are those in ``taken``: (object, field of its spec)."""

    def __init__(self, *served: str) -> None:
        self.objects: dict[Key, Manifest] = {}
        self.served = served or ("kueue.x-k8s.io", "scheduling.volcano.sh", "topology.volcano.sh", "scheduling.k8s.io")
        self.taken: set[tuple[Key, str]] = set()
        self.writes_done: list[str] = []
        self.watchers: list[tuple[Resource, str, asyncio.Queue[Change]]] = []

    def put(self, manifest: Manifest) -> None:
        reference = reference_of(manifest)
        key = reference.resource, reference.namespace, reference.name
        kind = ChangeType.MODIFIED if key in self.objects else ChangeType.ADDED
        self.objects[key] = manifest
        self.tell(Change(kind, manifest))

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        self.tell(Change(ChangeType.DELETED, self.objects.pop((resource, namespace, name))))

    def tell(self, change: Change) -> None:
        for resource, namespace, queue in self.watchers:
            if resource is resource_of(change.manifest) and namespace in ("", change.manifest["metadata"].get("namespace", "")):
                queue.put_nowait(change)

    async def available(self, group_version: str, kind: str) -> bool:
        return group_version.partition("/")[0] in self.served

    async def get(self, reference: Any, subresource: str = "", timeout: float | None = None) -> Manifest:
        found = self.objects.get((reference.resource, reference.namespace, reference.name))
        if found is None:
            raise ApiError(404, "NotFound", f"{reference} not found")
        return copy.deepcopy(found)

    async def list(self, resource: Resource, namespace: str = "", selector: str = "", fields: str = "") -> list[Manifest]:
        wanted = dict(pair.split("=") for pair in selector.split(","))
        return [
            each
            for (kind, _, _), each in self.objects.items()
            if kind is resource and wanted.items() <= each["metadata"].get("labels", {}).items()
        ]

    async def apply(
        self, manifest: Manifest, force: bool = False, *, manager: str = "slurmk", dry_run: bool = False
    ) -> Manifest:
        assert manager == "slurmk-queues"
        reference = reference_of(manifest)
        key = reference.resource, reference.namespace, reference.name
        there = self.objects.get(key, {})
        if resource_of(manifest) is VOLCANO_QUEUE and not dry_run:
            parent = manifest["spec"]["parent"]
            if parent != "root" and (VOLCANO_QUEUE, "", parent) not in self.objects:
                raise ApiError(400, "BadRequest", f"queue {parent} is not there")
        for field, value in manifest.get("spec", {}).items():
            if (key, field) in self.taken and not force and there["spec"].get(field) != value:
                raise ApiError(409, "Conflict", f'conflict with "kubectl": .spec.{field}')
        merged = {**copy.deepcopy(there), **copy.deepcopy(manifest)}
        merged["metadata"] = {**there.get("metadata", {"uid": str(len(self.objects))}), **manifest["metadata"]}
        if not dry_run:
            self.writes_done.append(f"apply {reference}")
            self.put(merged)
        return merged

    async def delete(
        self, reference: Any, propagation: str = "Background", grace: int | None = None, precondition_uid: str | None = None
    ) -> bool:
        if reference.resource is VOLCANO_QUEUE:
            below = [each["spec"]["parent"] for (kind, _, _), each in self.objects.items() if kind is VOLCANO_QUEUE]
            if reference.name in below:
                raise ApiError(400, "BadRequest", f"queue {reference.name} has child queues")
        assert self.objects[reference.resource, reference.namespace, reference.name]["metadata"]["uid"] == precondition_uid
        self.writes_done.append(f"delete {reference}")
        self.remove(reference.resource, reference.name, reference.namespace)
        return True

    def watch(self, resource: Resource, namespace: str = "", selector: str = "", fields: str = "") -> Any:
        return Watching(self, resource, namespace)


class Watching:
    """What a Watch tells of the server's objects."""

    trouble = ""

    def __init__(self, server: Server, resource: Resource, namespace: str) -> None:
        self.server, self.resource, self.namespace = server, resource, namespace
        if resource.group.partition("/")[0] not in (*server.served, ""):
            self.trouble = "the server could not find the requested resource"

    async def __aiter__(self) -> AsyncIterator[Change]:
        if self.trouble:
            await asyncio.Event().wait()
        queue: asyncio.Queue[Change] = asyncio.Queue()
        self.server.watchers.append((self.resource, self.namespace, queue))
        for (kind, namespace, _), manifest in list(self.server.objects.items()):
            if kind is self.resource and self.namespace in ("", namespace):
                yield Change(ChangeType.ADDED, manifest)
        yield Change(ChangeType.SYNCED, {})
        while True:
            yield await queue.get()


def wanted(system: QueueSystem = QueueSystem.KUEUE, **more: Any) -> tuple[Manifest, ...]:
    given = settings(**{"accounts": ACCOUNTS, "qos": {"high": {"priority": 5}}, **more})
    return wanted_objects(SITE, given, pods(system), NODES)


# ------------------------------------------------------------------------------------------ diff, apply, delete


@pytest.mark.parametrize("system", [QueueSystem.KUEUE, QueueSystem.VOLCANO])
@on_a_loop
async def test_apply_does_what_diff_said_and_delete_undoes_it(system: QueueSystem) -> None:
    server = Server()
    objects = QueueObjects(server, "hpc")
    shown = await objects.diff(wanted(system))
    assert {step.action for step in shown} == {Action.CREATE}
    assert server.writes_done == []
    assert await objects.apply(wanted(system)) == shown
    assert await objects.diff(wanted(system)) == []
    assert await objects.apply(wanted(system)) == []
    gone = await objects.delete()
    assert {step.reference.name for step in gone} == {step.reference.name for step in shown}
    assert server.objects == {}


@on_a_loop
async def test_what_others_made_is_left_alone() -> None:
    server = Server()
    objects = QueueObjects(server, "hpc")
    foreign: Manifest = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "hpc-chem", "uid": "1", "labels": {"app.kubernetes.io/managed-by": "slurmk"}},
        "spec": {"theirs": True},
    }
    server.put(foreign)
    steps = await objects.apply(wanted())
    refused = [step for step in steps if step.action is Action.REFUSED]
    assert [str(step) for step in refused] == [
        "refused ClusterQueue hpc-chem\n    it exists and was not made by this cluster of slurmk\n"
    ]
    await objects.delete()
    assert list(server.objects.values()) == [foreign]


@on_a_loop
async def test_changes_are_shown_and_surplus_goes() -> None:
    server = Server()
    objects = QueueObjects(server, "hpc")
    await objects.apply(wanted())
    fewer = {name: said for name, said in ACCOUNTS.items() if name != "chem"}
    steps = await objects.diff(wanted(accounts=fewer))
    told = {str(step.reference): step for step in steps}
    assert {name for name, step in told.items() if step.action is Action.DELETE} == {
        "ClusterQueue hpc-chem",
        "LocalQueue slurmk/hpc-chem",
    }
    change = told["ClusterQueue hpc-theory"]
    assert change.action is Action.CHANGE
    assert "-        nominalQuota: '12'\n" in change.text
    assert "+        nominalQuota: '16'\n" in change.text
    await objects.apply(wanted(accounts=fewer))
    assert await objects.diff(wanted(accounts=fewer)) == []


@on_a_loop
async def test_fields_of_others_are_taken_only_by_force() -> None:
    server = Server()
    objects = QueueObjects(server, "hpc")
    await objects.apply(wanted())
    key = KUEUE_CLUSTER_QUEUE, "", "hpc-chem"
    server.objects[key]["spec"]["queueingStrategy"] = "StrictFIFO"
    server.taken.add((key, "queueingStrategy"))
    [step] = await objects.apply(wanted())
    assert step.action is Action.REFUSED
    assert 'conflict with "kubectl": .spec.queueingStrategy' in step.text
    [step] = await objects.apply(wanted(), force=True)
    assert step.action is Action.CHANGE
    assert server.objects[key]["spec"]["queueingStrategy"] == "BestEffortFIFO"


@on_a_loop
async def test_objects_that_need_others_are_made_after_them() -> None:
    server = Server()
    objects = QueueObjects(server, "hpc")
    steps = await objects.apply(tuple(reversed(wanted(QueueSystem.VOLCANO))))
    assert {step.action for step in steps} == {Action.CREATE}


@on_a_loop
async def test_a_cluster_without_the_queue_system_says_so() -> None:
    steps = await QueueObjects(Server("scheduling.k8s.io"), "hpc").diff(wanted())
    assert {step.text for step in steps if step.action is Action.REFUSED} >= {"the cluster has no clusterqueues.kueue.x-k8s.io"}


# ------------------------------------------------------------------------------------------ the watch


class Story:
    """A watch on a server, and what it told last."""

    def __init__(self, server: Server, given: Settings, system: QueueSystem, **more: Any) -> None:
        self.told: list[QuotasChanged] = []
        self.changed = asyncio.Event()
        table = pods(system, **more)
        self.watch = QuotaWatch(server, lambda: (given, SITE, NODES), lambda _, name: table[name])

    def report(self, event: Any) -> None:
        assert isinstance(event, QuotasChanged)
        self.told.append(event)
        self.changed.set()

    async def next(self) -> Mapping[str, Quota]:
        """The quotas told next, by name."""
        await asyncio.wait_for(self.changed.wait(), 5)
        self.changed.clear()
        return {quota.name: quota for quota in self.told[-1].quotas}

    async def __aenter__(self) -> Story:
        await self.watch.begin()
        self.watch.start(self.report)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.watch.stop()


def workload(name: str, queue: str, cpus: int, owner: str = "their-job", namespace: str = "elsewhere") -> Manifest:
    assignment = {"flavors": {"cpu": "hpc-cpu"}, "resourceUsage": {"cpu": str(cpus)}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [{"name": owner}]},
        "spec": {"podSets": []},
        "status": {
            "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
        },
    }


@on_a_loop
async def test_what_others_reserve_is_told_and_what_we_do_is_not() -> None:
    server = Server()
    given = settings(accounts=ACCOUNTS)
    for manifest in wanted_objects(SITE, given, pods(), NODES):
        server.put(manifest)
    async with Story(server, given, QueueSystem.KUEUE) as story:
        quotas = await story.next()
        physics = "Cohort hpc-physics (hpc-cpu)"
        assert [limit.left for limit in quotas[physics].limits] == [64000]
        server.put(workload("theirs", "hpc-theory", 10))
        quotas = await story.next()
        assert [limit.left for limit in quotas[physics].limits] == [54000]
        assert quotas[physics].counts("cpu", "theory", "normal", 1)
        assert not quotas[physics].counts("cpu", "chem", "normal", 1)
        assert [limit.left for limit in quotas["Cohort hpc (hpc-cpu)"].limits] == [118000]
        server.put(workload("ours", "hpc-theory", 10, "slurmk-12-n0", "slurmk"))
        server.remove(KUEUE_WORKLOAD, "theirs", "elsewhere")
        quotas = await story.next()
        assert [limit.left for limit in quotas[physics].limits] == [64000]
        server.put(workload("like-ours", "hpc-theory", 4, "slurmk-12-n0"))  # of another cluster of slurmk, elsewhere
        assert [limit.left for limit in (await story.next())[physics].limits] == [60000]


@on_a_loop
async def test_queues_that_are_not_there_let_nothing_start() -> None:
    server = Server()
    given = settings(accounts={"chem": {"partitions": ["cpu"]}})
    async with Story(server, given, QueueSystem.KUEUE) as story:
        told = [quota.explanation for quota in (await story.next()).values()]
        assert told == [
            "LocalQueue slurmk/hpc does not exist",
            "LocalQueue slurmk/hpc-chem does not exist",
            "account chem has no part of partition gpu",
        ]
        for manifest in wanted_objects(SITE, given, pods(), NODES):
            server.put(manifest)
        assert [quota.explanation for quota in (await story.next()).values()] == ["account chem has no part of partition gpu"]


@on_a_loop
async def test_a_queue_of_the_site_is_known_by_what_pods_bear() -> None:
    server = Server()
    amounts = [{"name": "cpu", "nominalQuota": "10"}]
    flavors = [{"name": name, "resources": amounts} for name in ("spot", "fixed")]
    head = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    for name in ("spot", "fixed"):
        spec = {"nodeLabels": {"tier": name}}
        server.put({**head, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec})
    group = {"coveredResources": ["cpu"], "flavors": flavors}
    server.put({**head, "kind": "ClusterQueue", "metadata": {"name": "lab"}, "spec": {"resourceGroups": [group]}})
    local = {"name": "own", "namespace": "slurmk"}
    server.put({**head, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": "lab"}})
    async with Story(server, settings(), QueueSystem.KUEUE, queue="own", node_selector={"tier": "fixed"}) as story:
        [quota] = (await story.next()).values()
        assert quota.name == "ClusterQueue lab (fixed)"
        assert [(limit.resource, limit.left) for limit in quota.limits] == [("cpu", 10000)]
    async with Story(server, settings(), QueueSystem.KUEUE, queue="own") as story:
        assert await story.next() == {}  # Kueue is free to choose


@on_a_loop
async def test_without_the_queue_system_the_watch_says_so_and_goes_on() -> None:
    async with Story(Server("scheduling.k8s.io"), settings(), QueueSystem.KUEUE) as story:
        [quota] = (await story.next()).values()
        assert quota.limits[0].left == 0
        assert quota.explanation == (
            "clusterqueues.kueue.x-k8s.io cannot be read: the server could not find the requested resource"
        )
        assert all("could not find" in line for line in story.watch.status())
        assert len(story.watch.status()) == 5


@on_a_loop
async def test_a_namespaces_quota_counts_pods_of_others_there() -> None:
    server = Server()
    quota: Manifest = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "most", "namespace": "slurmk"},
        "spec": {"hard": {"requests.cpu": "10"}},
    }
    server.put(quota)
    async with Story(server, settings(), QueueSystem.NONE) as story:
        assert (await story.next())["ResourceQuota slurmk/most"].limits[0].left == 10000
        container = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
        pod = {"metadata": {"name": "p", "namespace": "slurmk"}, "spec": {"containers": [container]}}
        server.put({"apiVersion": "v1", "kind": "Pod", **pod})
        assert (await story.next())["ResourceQuota slurmk/most"].limits[0].left == 7000
