"""Watches what holds our jobs to quotas: queues of Kueue and Volcano, namespaces' ResourceQuotas, slurmk.yaml's own limits.

What changes is gathered for a moment and told as one ``QuotasChanged`` with all quotas, less what others hold. What our own
jobs hold is not taken from the cluster: the controller knows it sooner, and counts it itself.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bridge.kubernetes.api import Api
from bridge.kubernetes.labels import CONTROLLER, label_value
from bridge.kubernetes.quantities import QuantityError, parse_milli
from bridge.kubernetes.queues.accounts import ROOT, Accounts, limits_as_quotas, read_accounts
from bridge.kubernetes.queues.kueue import account_queue, flavors_of
from bridge.kubernetes.queues.limits import (
    Jobs,
    KueueTree,
    Use,
    namespace_bounds,
    reserved_by,
    volcano_bounds,
    volcano_trouble,
)
from bridge.kubernetes.queues.supply import Supply, supply_of
from bridge.kubernetes.queues.volcano import job_queue
from bridge.kubernetes.resources import (
    KUEUE_CLUSTER_QUEUE,
    KUEUE_COHORT,
    KUEUE_LOCAL_QUEUE,
    KUEUE_RESOURCE_FLAVOR,
    KUEUE_WORKLOAD,
    POD,
    RESOURCE_QUOTA,
    VOLCANO_POD_GROUP,
    VOLCANO_QUEUE,
    Manifest,
    Resource,
)
from bridge.kubernetes.settings import PodSettings, QueueSystem, Settings
from bridge.kubernetes.watch import Change, ChangeType, Watch
from bridge.launcher import Report
from slurmk.core.events import QuotasChanged
from slurmk.model.quotas import Quota, QuotaLimit
from slurmk.model.site import Site

log = logging.getLogger(__name__)

GATHER = 0.05
"""Seconds for which changes are gathered."""

WATCHED: Mapping[QueueSystem, tuple[Resource, ...]] = {
    QueueSystem.NONE: (),
    QueueSystem.KUEUE: (
        KUEUE_CLUSTER_QUEUE,
        KUEUE_COHORT,
        KUEUE_LOCAL_QUEUE,
        KUEUE_RESOURCE_FLAVOR,
        KUEUE_WORKLOAD,
    ),
    QueueSystem.VOLCANO: (VOLCANO_QUEUE, VOLCANO_POD_GROUP),
}

_OURS = re.compile(r"slurmk-\d+(-|\Z)", re.ASCII)

Key = tuple[str, str]
"""Namespace and name."""

PodsOf = Callable[[Settings, str], PodSettings]


class QuotaWatch:
    """``view`` gives slurmk.yaml, the site and the Node objects by Slurm's names, as they are at each call; ``pods_of`` a
    partition's settings with the site's under them."""

    def __init__(self, api: Api, view: Callable[[], tuple[Settings, Site, Mapping[str, Manifest]]], pods_of: PodsOf) -> None:
        self._api = api
        self._view = view
        self._pods_of = pods_of
        self._report: Report | None = None
        self._objects: dict[tuple[Resource, str], dict[Key, Manifest]] = {}
        self._reserved: dict[Key, list[tuple[str, str, str, int]]] = {}
        self._tasks: dict[tuple[Resource, str], asyncio.Task[None]] = {}
        self._watches: dict[tuple[Resource, str], Watch] = {}
        self._flushing: asyncio.TimerHandle | None = None
        self._told: tuple[Quota, ...] | None = None
        self._supply: Supply | None = None

    async def begin(self) -> None:
        """Read what there is, and go on watching."""
        await asyncio.gather(*[self._watch(resource, namespace) for resource, namespace in self._wanted()])

    def start(self, report: Report) -> None:
        """Tell ``report`` of quotas, now and whenever they change."""
        self._report = report
        self._flush()

    async def stop(self) -> None:
        """End the watches."""
        if self._flushing is not None:
            self._flushing.cancel()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def changed(self) -> None:
        """The site, its nodes or slurmk.yaml changed."""
        for resource, namespace in self._wanted():
            if (resource, namespace) not in self._tasks:
                task = asyncio.get_running_loop().create_task(self._watch(resource, namespace))
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._supply = None
        self._touch()

    def status(self) -> list[str]:
        """What keeps quotas from being known, for a person to read."""
        return [f"trouble: {resource}: {watch.trouble}" for (resource, _), watch in self._watches.items() if watch.trouble]

    # ---------------------------------------------------------------- watches

    def _wanted(self) -> list[tuple[Resource, str]]:
        """What is watched, and in which namespace (empty: in all)."""
        settings, site, _ = self._view()
        pods = self._pods(settings, site)
        found = [(resource, "") for system in QueueSystem for resource in WATCHED[system] if self._uses(pods, system)]
        return found + [(resource, each) for each in _namespaces(settings, pods) for resource in (RESOURCE_QUOTA, POD)]

    @staticmethod
    def _uses(pods: Mapping[str, PodSettings], system: QueueSystem) -> bool:
        return any(each.queue_system is system for each in pods.values())

    async def _watch(self, resource: Resource, namespace: str) -> None:
        key = resource, namespace
        if key in self._tasks:
            return
        foreign = f"{CONTROLLER}!={label_value(self._view()[1].cluster_name)}"
        selector = foreign if resource in (POD, VOLCANO_POD_GROUP) else ""
        watch = self._watches[key] = self._api.watch(resource, namespace, selector)
        synced = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._tasks[key] = loop.create_task(self._follow(watch, key, synced))
        await synced.wait()

    async def _follow(self, watch: Watch, key: tuple[Resource, str], synced: asyncio.Event) -> None:
        waiting = asyncio.get_running_loop().create_task(_give_up(watch, synced))
        async for change in watch:
            if change.type is ChangeType.SYNCED:
                self._objects.setdefault(key, {})
                synced.set()
                waiting.cancel()
            else:
                self._take(key, change)
            self._touch()

    def _take(self, key: tuple[Resource, str], change: Change) -> None:
        metadata = change.manifest["metadata"]
        name = metadata.get("namespace", ""), metadata["name"]
        gone = change.type is ChangeType.DELETED
        if key[0] is KUEUE_WORKLOAD:  # there may be many, and little of each matters
            held = [] if gone or self._is_ours(change.manifest) else reserved_by(change.manifest)
            self._reserved.pop(name, None)
            if held:
                self._reserved[name] = held
        elif gone:
            self._objects.setdefault(key, {}).pop(name, None)
        elif key[0] is POD:
            self._objects.setdefault(key, {})[name] = {part: change.manifest.get(part) or {} for part in ("spec", "status")}
        else:
            self._objects.setdefault(key, {})[name] = change.manifest

    def _is_ours(self, workload: Manifest) -> bool:
        """True for the Kueue Workload of one of our jobs: in our namespaces, what is ours is named like our jobs."""
        settings, site, _ = self._view()
        metadata = workload["metadata"]
        if metadata.get("namespace", "") not in _namespaces(settings, self._pods(settings, site)):
            return False
        owners = [owner.get("name", "") for owner in metadata.get("ownerReferences") or ()]
        if not any(map(_OURS.match, owners)):
            return False
        for pod_set in (workload.get("spec") or {}).get("podSets") or ():
            labels = ((pod_set.get("template") or {}).get("metadata") or {}).get("labels") or {}
            if labels.get(CONTROLLER, label_value(site.cluster_name)) != label_value(site.cluster_name):
                return False
        return True

    # ---------------------------------------------------------------- reports

    def _touch(self) -> None:
        if self._flushing is None and self._report is not None:
            self._flushing = asyncio.get_running_loop().call_later(GATHER, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        try:
            quotas = self.quotas()
        except Exception:
            log.exception("the quotas could not be read; they stay as they were")
            return
        if quotas != self._told and self._report is not None:
            self._told = quotas
            self._report(QuotasChanged(time.time(), quotas))

    # ---------------------------------------------------------------- quotas

    def quotas(self) -> tuple[Quota, ...]:
        """All quotas as they are now."""
        settings, site, nodes = self._view()
        pods = self._pods(settings, site)
        accounts = read_accounts(settings)
        supply = self._supply = self._supply or supply_of(site.partitions, nodes, settings.gres)
        milli = {name: _milli(each.cpu_request) for name, each in pods.items()}
        return (
            *limits_as_quotas(accounts),
            *self._kueue(settings, site, pods, accounts, supply, milli),
            *self._volcano(site, pods, accounts, supply, milli),
            *self._namespaces(settings, pods, supply, milli),
        )

    def _pods(self, settings: Settings, site: Site) -> dict[str, PodSettings]:
        return {each.name: self._pods_of(settings, each.name) for each in site.partitions}

    def _kueue(
        self,
        settings: Settings,
        site: Site,
        pods: Mapping[str, PodSettings],
        accounts: Accounts,
        supply: Supply,
        milli: Mapping[str, int],
    ) -> Iterator[Quota]:
        used = {name: each for name, each in pods.items() if each.queue_system is QueueSystem.KUEUE}
        unread = self._unread(QueueSystem.KUEUE)
        if used and unread:
            yield _nothing(Jobs(frozenset(used), cpu_milli=milli), unread)
        if not used or unread:
            return
        cluster = site.cluster_name
        reserved = [each for held in self._reserved.values() for each in held]
        tree = KueueTree(self._all(KUEUE_CLUSTER_QUEUE), self._all(KUEUE_COHORT), reserved)
        local = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in self._all(KUEUE_LOCAL_QUEUE)}
        flavors = flavors_of(cluster, settings, pods)
        uses: list[Use] = []
        for partition, each in used.items():
            namespace = each.namespace or settings.namespace
            for jobs, account in _by_account(partition, accounts, milli) if not each.queue else _all_jobs(partition, milli):
                if not each.queue and not accounts.uses(account, partition):
                    yield _nothing(jobs, f"account {account} has no part of partition {partition}")
                    continue
                queue = each.queue or account_queue(cluster, account)
                known = local.get((namespace, queue))
                target = known["spec"]["clusterQueue"] if known else ""
                trouble = _local_trouble(known, namespace, queue) or tree.held.get(target, "")
                if not trouble and target not in tree:
                    trouble = f"ClusterQueue {target} does not exist"
                if trouble:
                    yield _nothing(jobs, trouble)
                    continue
                own = flavors.get(partition)
                flavor = own.name if own is not None else self._flavor(tree.flavors(target), each)
                if flavor:
                    uses.append(Use(target, flavor, jobs))
        yield from tree.bounds(uses, supply)

    def _flavor(self, names: Sequence[str], pods: PodSettings) -> str:
        """The one flavor of a site's own queue that Kueue can choose for pods with these settings; empty when it is free to
        choose, so that its quota can only be found out by asking."""
        flavors = {each["metadata"]["name"]: each.get("spec") or {} for each in self._all(KUEUE_RESOURCE_FLAVOR)}
        there = {name: flavors[name] for name in names if name in flavors}
        able = [
            name
            for name, spec in there.items()
            if all(pods.node_selector.get(key, value) == value for key, value in (spec.get("nodeLabels") or {}).items())
            and all(_tolerated(taint, pods, spec) for taint in spec.get("nodeTaints") or ())
        ]
        return able[0] if len(able) == 1 else ""

    def _volcano(
        self,
        site: Site,
        pods: Mapping[str, PodSettings],
        accounts: Accounts,
        supply: Supply,
        milli: Mapping[str, int],
    ) -> Iterator[Quota]:
        used = {name: each for name, each in pods.items() if each.queue_system is QueueSystem.VOLCANO}
        unread = self._unread(QueueSystem.VOLCANO)
        if used and unread:
            yield _nothing(Jobs(frozenset(used), cpu_milli=milli), unread)
        if not used or unread:
            return
        queues = {each["metadata"]["name"]: each for each in self._all(VOLCANO_QUEUE)}
        uses: list[tuple[str, Jobs]] = []
        for partition, each in used.items():
            for jobs, account in _by_account(partition, accounts, milli) if not each.queue else _all_jobs(partition, milli):
                queue = each.queue or job_queue(site.cluster_name, accounts, account)
                trouble = volcano_trouble(queues, queue)
                if trouble:
                    yield _nothing(jobs, trouble)
                else:
                    uses.append((queue, jobs))
        yield from volcano_bounds(queues, self._all(VOLCANO_POD_GROUP), uses, supply)

    def _namespaces(
        self, settings: Settings, pods: Mapping[str, PodSettings], supply: Supply, milli: Mapping[str, int]
    ) -> Iterator[Quota]:
        for namespace in _namespaces(settings, pods):
            jobs = [
                Jobs(frozenset({name}), cpu_milli=milli)
                for name, each in pods.items()
                if (each.namespace or settings.namespace) == namespace
            ]
            together = Jobs(frozenset().union(*(each.partitions for each in jobs)), cpu_milli=milli)
            others = self._objects.get((POD, namespace), {}).values()
            for quota in self._objects.get((RESOURCE_QUOTA, namespace), {}).values():
                yield from namespace_bounds(quota, others, [together], supply)

    def _unread(self, system: QueueSystem) -> str:
        """Why a queue system's objects were never read; empty if they were. What was read once stays known."""
        for resource in WATCHED[system]:
            if (resource, "") not in self._objects:
                watch = self._watches.get((resource, ""))
                return f"{resource} cannot be read: {watch.trouble if watch else 'not yet'}"
        return ""

    def _all(self, resource: Resource) -> Iterable[Manifest]:
        return self._objects.get((resource, ""), {}).values()


async def _give_up(watch: Watch, synced: asyncio.Event) -> None:
    """Do not wait for what cannot be read (forbidden, not installed): it is said in ``status`` and tried again."""
    while not synced.is_set():
        await asyncio.sleep(0.1)
        if watch.trouble:
            synced.set()


def _namespaces(settings: Settings, pods: Mapping[str, PodSettings]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.namespace or settings.namespace for each in pods.values()))


def _by_account(partition: str, accounts: Accounts, milli: Mapping[str, int]) -> Iterator[tuple[Jobs, str]]:
    """The jobs of each account in the partition; those of accounts that slurmk.yaml does not name are root's."""
    others = frozenset(accounts.accounts) - {ROOT}
    for name in accounts.accounts:
        if name == ROOT:
            yield Jobs(frozenset({partition}), None, others, milli), ROOT
        else:
            yield Jobs(frozenset({partition}), frozenset({name}), cpu_milli=milli), name


def _all_jobs(partition: str, milli: Mapping[str, int]) -> Iterator[tuple[Jobs, str]]:
    yield Jobs(frozenset({partition}), cpu_milli=milli), ROOT


def _local_trouble(queue: Manifest | None, namespace: str, name: str) -> str:
    if queue is None:
        return f"LocalQueue {namespace}/{name} does not exist"
    stopped = queue["spec"].get("stopPolicy", "None") not in ("None", "")
    return f"LocalQueue {namespace}/{name} is stopped" if stopped else ""


def _tolerated(taint: Mapping[str, Any], pods: PodSettings, flavor: Mapping[str, Any]) -> bool:
    if taint.get("effect") == "PreferNoSchedule":
        return True
    for each in (*pods.tolerations, *(flavor.get("tolerations") or ())):
        key = each.get("key") in (None, "", taint["key"])
        value = each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", "")
        if key and value and each.get("effect") in (None, "", taint["effect"]):
            return True
    return False


def _nothing(jobs: Jobs, trouble: str) -> Quota:
    return jobs.quota(trouble, (QuotaLimit("job", 0),), trouble)


def _milli(text: str) -> int:
    try:
        return parse_milli(text)
    except QuantityError:
        return 1000
