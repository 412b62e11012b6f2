"""Kueue's objects for a cluster's partitions, accounts and QOS.

- partition: a ResourceFlavor, which bears the labels by which the partition selects its nodes;
- account: a ClusterQueue; one that has others below it also a Cohort with all of them in it;
- GrpTRES: what the account is given of each flavor, and with its borrowing limit the most it may have. Shares divide the
  rest, and weigh when accounts borrow from each other;
- account in each namespace where jobs run: a LocalQueue;
- QOS: a WorkloadPriorityClass; the switches' labels: a Topology.

Kueue keeps quotas by flavor, so a limit over several partitions is there in each of them; the planner keeps the sum.

Kueue chooses a flavor for a job by node selector and taints. A job bears the labels of its partition as node selector. Where
labels do not tell two partitions apart, their flavors have taints that only their own jobs tolerate; no node has these taints.

The flavors do not refer to the Topology. Kueue would then place every job a second time, among nodes that it takes to be alike,
where the planner has chosen each pod's node already; a job of several nodes would never be admitted. It is there for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.kubernetes import labels
from bridge.kubernetes.queues.accounts import ROOT, Account, Accounts, Qos
from bridge.kubernetes.queues.names import object_name
from bridge.kubernetes.queues.portions import portions
from bridge.kubernetes.queues.supply import Supply, quantity
from bridge.kubernetes.resources import (
    KUEUE_CLUSTER_QUEUE,
    KUEUE_COHORT,
    KUEUE_LOCAL_QUEUE,
    KUEUE_PRIORITY_CLASS,
    KUEUE_RESOURCE_FLAVOR,
    KUEUE_TOPOLOGY,
    Manifest,
    Resource,
)
from bridge.kubernetes.selectors import parse_selector
from bridge.kubernetes.settings import PartitionSettings, PodSettings, QueueSystem, Settings

MOST_FLAVORS = 64
"""Flavors and resources that one ClusterQueue takes."""

HOST_NAME = "kubernetes.io/hostname"

KINDS: tuple[Resource, ...] = (
    KUEUE_TOPOLOGY,
    KUEUE_RESOURCE_FLAVOR,
    KUEUE_PRIORITY_CLASS,
    KUEUE_COHORT,
    KUEUE_CLUSTER_QUEUE,
    KUEUE_LOCAL_QUEUE,
)
"""In the order in which they are made."""


class QueueError(Exception):
    """Queues that cannot be made as the site is; ``str()`` says why."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """What tells the jobs of a partition apart for Kueue."""

    name: str
    node_labels: Mapping[str, str]
    tainted: bool


def flavors_of(cluster: str, settings: Settings, pods: Mapping[str, PodSettings]) -> dict[str, Flavor]:
    """The flavor of each partition whose jobs go through Kueue; ``pods`` are the settings of all partitions."""
    queued = [name for name, each in pods.items() if each.queue_system is QueueSystem.KUEUE and not each.queue]
    said = {each.name: each for each in settings.partitions}
    node_labels = {name: _labels(settings, said.get(name)) for name in queued}
    return {
        name: Flavor(
            object_name(cluster, name),
            own,
            any(other != name and not _differ(own, node_labels[other]) for other in queued),
        )
        for name, own in node_labels.items()
    }


def _differ(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """True when no node can have both. Kueue compares a pod's node selector with the labels that the flavor has, so only a
    label with another value keeps jobs of the one from the other."""
    return any(other.get(key, value) != value for key, value in one.items())


def _labels(settings: Settings, partition: PartitionSettings | None) -> dict[str, str]:
    """The labels that all nodes of the partition have, as far as its selector says so."""
    if partition is None or partition.nodes is None:
        return {}
    found = {}
    for text in (settings.nodes, partition.nodes):
        for requirement in parse_selector(text).requirements:
            if not requirement.negated and requirement.values is not None and len(requirement.values) == 1:
                found[requirement.key] = next(iter(requirement.values))
    return found


def taint_of(partition: str) -> dict[str, str]:
    """The taint of a partition's flavor that others' jobs do not tolerate."""
    return {"key": labels.PARTITION, "value": labels.label_value(partition), "effect": "NoSchedule"}


def kueue_objects(
    cluster: str,
    settings: Settings,
    pods: Mapping[str, PodSettings],
    accounts: Accounts,
    supply: Supply,
    *,
    preempts: bool = False,
) -> tuple[Manifest, ...]:
    """All objects that there should be, in the order in which they can be made. Raises QueueError.

    ``pods`` are the settings of all partitions. ``preempts``: QOS preempt each other (PreemptType=preempt/qos).
    """
    flavors = flavors_of(cluster, settings, pods)
    if not flavors:
        return ()
    made = _Made(cluster, settings, pods, accounts, supply, flavors, preempts)
    return (
        *made.topology(),
        *made.resource_flavors(),
        *(made.priority_class(qos) for qos in _named_qos(settings, accounts)),
        *made.cohorts(),
        *made.cluster_queues(),
        *made.local_queues(),
    )


def _named_qos(settings: Settings, accounts: Accounts) -> list[Qos]:
    return [accounts.qos[str(name)] for name in settings.qos]


class _Made:
    """One cluster's objects in the making."""

    def __init__(
        self,
        cluster: str,
        settings: Settings,
        pods: Mapping[str, PodSettings],
        accounts: Accounts,
        supply: Supply,
        flavors: Mapping[str, Flavor],
        preempts: bool,
    ) -> None:
        self.cluster, self.settings, self.pods, self.accounts = cluster, settings, pods, accounts
        self.supply, self.flavors, self.preempts = supply, flavors, preempts
        self.resources = supply.resources(flavors)
        if len(flavors) > MOST_FLAVORS or len(self.resources) > MOST_FLAVORS:
            raise QueueError(f"a ClusterQueue takes {MOST_FLAVORS} partitions and as many resources; there are more")
        self.tree = len(accounts.accounts) > 1
        self.portions = {
            (partition, resource): portions(
                accounts, supply.partitions[partition].get(resource, 0), self._ceilings(partition, resource).get
            )
            for partition in flavors
            for resource in self.resources
        }

    def _ceilings(self, partition: str, resource: str) -> dict[Account, int | None]:
        return {account: self._ceiling(account, partition, resource) for account in self.accounts.accounts.values()}

    def _ceiling(self, account: Account, partition: str, resource: str) -> int | None:
        if not self.accounts.uses(account.name, partition):
            return 0
        limits = [account.limit(tres) for tres in self.supply.tres_of(resource)]
        return min((limit for limit in limits if limit is not None), default=None)

    # ------------------------------------------------------------------------------------------ objects

    def _object(self, resource: Resource, name: str, body: Mapping[str, Any], namespace: str = "") -> Manifest:
        metadata: dict[str, Any] = {"name": name, "labels": labels.managed(self.cluster)}
        if namespace:
            metadata["namespace"] = namespace
        return {"apiVersion": resource.group_version, "kind": resource.kind, "metadata": metadata, **body}

    def topology(self) -> Iterable[Manifest]:
        if self.settings.switches:
            levels = [{"nodeLabel": key} for key in (*self.settings.switches, HOST_NAME)]
            yield self._object(KUEUE_TOPOLOGY, object_name(self.cluster), {"spec": {"levels": levels}})

    def resource_flavors(self) -> Iterable[Manifest]:
        for partition, flavor in self.flavors.items():
            spec: dict[str, Any] = {}
            if flavor.node_labels:
                spec["nodeLabels"] = dict(flavor.node_labels)
            if flavor.tainted:
                spec["nodeTaints"] = [taint_of(partition)]
            yield self._object(KUEUE_RESOURCE_FLAVOR, flavor.name, {"spec": spec})

    def priority_class(self, qos: Qos) -> Manifest:
        body = {"value": qos.priority, "description": f"QOS {qos.name}"}
        return self._object(KUEUE_PRIORITY_CLASS, object_name(self.cluster, qos.name), body)

    def cohorts(self) -> Iterable[Manifest]:
        """The Cohorts of accounts with others below them, upper ones first."""
        for name in self.accounts.subtree(ROOT) if self.tree else ():
            account = self.accounts.accounts[name]
            if not self.accounts.children(name):
                continue
            spec: dict[str, Any] = {"fairSharing": {"weight": str(account.fair_share)}}
            parent = self._cohort_above(account)
            if parent:
                spec["parentName"] = parent
                groups = self._groups(account, lambda portion: 0, lambda portion: portion.subtree)
                if any(
                    "borrowingLimit" in each for group in groups for flavor in group["flavors"] for each in flavor["resources"]
                ):
                    spec["resourceGroups"] = groups
            yield self._object(KUEUE_COHORT, self._account_name(name), {"spec": spec})

    def _cohort_above(self, account: Account) -> str:
        return account.cohort if account.name == ROOT else self._account_name(account.parent)

    def cluster_queues(self) -> Iterable[Manifest]:
        for name in self.accounts.subtree(ROOT):
            account = self.accounts.accounts[name]
            inner = bool(self.accounts.children(name))
            cohort = self._account_name(name) if inner else self._cohort_above(account)
            spec = {
                "namespaceSelector": {
                    "matchExpressions": [
                        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(self._namespaces(account))}
                    ]
                },
                "queueingStrategy": "BestEffortFIFO",
                "preemption": {
                    "withinClusterQueue": "LowerPriority" if self.preempts else "Never",
                    "reclaimWithinCohort": "LowerPriority" if self.preempts else "Never",
                },
                "resourceGroups": self._groups(
                    account, lambda portion: portion.own, lambda portion: portion.own, limited=not inner and bool(cohort)
                ),
            }
            if cohort:
                spec["cohortName"] = cohort
                spec["fairSharing"] = {"weight": str(account.fair_share)}
            yield self._object(KUEUE_CLUSTER_QUEUE, self._account_name(name), {"spec": spec})

    def _groups(self, account: Account, nominal: Any, guaranteed: Any, *, limited: bool = True) -> list[dict[str, Any]]:
        """The quotas of an account. ``nominal`` is what its own object brings of a portion; with that its limit is complete
        at ``guaranteed``, so what it may borrow is the rest. ``limited`` false: others see to the limit."""

        def quota(partition: str, resource: str) -> dict[str, str]:
            portion = self.portions[partition, resource][account.name]
            found = {"name": resource, "nominalQuota": quantity(resource, nominal(portion))}
            if limited and portion.ceiling is not None:
                found["borrowingLimit"] = quantity(resource, max(portion.ceiling - guaranteed(portion), 0))
            return found

        flavors = [
            {"name": flavor.name, "resources": [quota(partition, resource) for resource in self.resources]}
            for partition, flavor in self.flavors.items()
            if self.accounts.uses(account.name, partition)
        ]
        return [{"coveredResources": list(self.resources), "flavors": flavors}] if flavors else []

    def local_queues(self) -> Iterable[Manifest]:
        for name in self.accounts.subtree(ROOT):
            for namespace in self._namespaces(self.accounts.accounts[name]):
                queue = self._account_name(name)
                yield self._object(KUEUE_LOCAL_QUEUE, queue, {"spec": {"clusterQueue": queue}}, namespace)

    def _namespaces(self, account: Account) -> Sequence[str]:
        used = [name for name in self.flavors if self.accounts.uses(account.name, name)]
        return list(dict.fromkeys(self.pods[name].namespace or self.settings.namespace for name in used or self.flavors))

    def _account_name(self, account: str) -> str:
        return account_queue(self.cluster, account)


def account_queue(cluster: str, account: str) -> str:
    """The name of an account's ClusterQueue, LocalQueue and Cohort."""
    return object_name(cluster) if account == ROOT else object_name(cluster, account)
