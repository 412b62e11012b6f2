"""Volcano's objects for a cluster's partitions, accounts and QOS.

- account: a Queue below its parent's. Only Queues without others below them take jobs, so an account that has both has a
  Queue ``ACCOUNT.jobs`` for its own;
- GrpTRES: capability; shares: weight, and deserved as the account's part of what the partitions' nodes have;
- QOS: a PriorityClass; switches: HyperNodes, tier 1 for those that have nodes.

Volcano does not keep quotas by partition, so a Queue's amounts are of all partitions together. ``deserved`` and the tree need
Volcano's plugin ``capacity`` with ``enableHierarchy``; under ``proportion`` weight and capability count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bridge.kubernetes import labels
from bridge.kubernetes.queues.accounts import ROOT, Account, Accounts
from bridge.kubernetes.queues.names import object_name
from bridge.kubernetes.queues.portions import portions
from bridge.kubernetes.queues.supply import Supply, quantity
from bridge.kubernetes.resources import PRIORITY_CLASS, VOLCANO_HYPER_NODE, VOLCANO_QUEUE, Manifest, Resource
from bridge.kubernetes.settings import PodSettings, QueueSystem, Settings
from slurmk.model.site import Site

KINDS: tuple[Resource, ...] = (PRIORITY_CLASS, VOLCANO_QUEUE, VOLCANO_HYPER_NODE)
"""In the order in which they are made."""

ROOT_QUEUE = "root"
"""Volcano's own uppermost Queue."""


def priority_classes(
    cluster: str, settings: Settings, pods: Mapping[str, PodSettings], accounts: Accounts, *, preempts: bool = False
) -> tuple[Manifest, ...]:
    """A PriorityClass for each QOS that slurmk.yaml names, where a partition's jobs do not go through Kueue. Unless QOS preempt
    each other, they put nobody out."""
    if all(each.queue_system is QueueSystem.KUEUE for each in pods.values()):
        return ()
    return tuple(
        {
            **_head(PRIORITY_CLASS, cluster, object_name(cluster, qos.name)),
            "value": qos.priority,
            "globalDefault": False,
            "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
            "description": f"QOS {qos.name}",
        }
        for qos in (accounts.qos[str(name)] for name in settings.qos)
    )


def volcano_objects(
    cluster: str,
    site: Site,
    pods: Mapping[str, PodSettings],
    accounts: Accounts,
    supply: Supply,
    hosts: Mapping[str, str],
) -> tuple[Manifest, ...]:
    """All Queues and HyperNodes that there should be, in the order in which they can be made. ``pods`` are the settings of
    all partitions, ``hosts`` the Kubernetes names of nodes."""
    partitions = [name for name, each in pods.items() if each.queue_system is QueueSystem.VOLCANO and not each.queue]
    if not partitions:
        return ()
    return (*_queues(cluster, accounts, supply, partitions), *hyper_nodes(cluster, site, hosts))


def job_queue(cluster: str, accounts: Accounts, account: str) -> str:
    """The Queue that jobs of an account go to."""
    account = accounts.charged(account)
    name = object_name(cluster) if account == ROOT else object_name(cluster, account)
    return f"{name}.jobs" if accounts.children(account) else name


def _head(resource: Resource, cluster: str, name: str) -> Manifest:
    metadata = {"name": name, "labels": labels.managed(cluster)}
    return {"apiVersion": resource.group_version, "kind": resource.kind, "metadata": metadata}


def _queues(cluster: str, accounts: Accounts, supply: Supply, partitions: list[str]) -> Iterable[Manifest]:
    resources = supply.resources(partitions)
    total = supply.total(partitions)

    def ceiling(account: Account, resource: str) -> int | None:
        """A Queue's capability may not be above that of one it is below."""
        limits = [account.limit(tres) for tres in supply.tres_of(resource)]
        if account.name != ROOT:
            limits.append(ceiling(accounts.accounts[account.parent], resource))
        return min((limit for limit in limits if limit is not None), default=None)

    given = {
        resource: portions(accounts, total.get(resource, 0), lambda account, name=resource: ceiling(account, name))  # type: ignore[misc]
        for resource in resources
    }
    for name in accounts.subtree(ROOT):
        account = accounts.accounts[name]
        children = accounts.children(name)
        queue = object_name(cluster) if name == ROOT else object_name(cluster, name)
        above = accounts.accounts[name].parent
        parent = ROOT_QUEUE if name == ROOT else object_name(cluster) if above == ROOT else object_name(cluster, above)
        capability = {each: limit for each in resources if (limit := ceiling(account, each)) is not None}
        deserved = {each: given[each][name].subtree for each in resources}
        yield _queue(cluster, queue, parent, account.fair_share, capability, deserved)
        if children:
            own = {each: given[each][name].own for each in resources}
            yield _queue(cluster, f"{queue}.jobs", queue, 1, {}, own)


def _queue(
    cluster: str, name: str, parent: str, weight: int, capability: Mapping[str, int], deserved: Mapping[str, int]
) -> Manifest:
    spec: dict[str, Any] = {"parent": parent, "weight": weight, "reclaimable": True}
    for key, amounts in (("capability", capability), ("deserved", deserved)):
        if amounts:
            spec[key] = {resource: quantity(resource, amount) for resource, amount in amounts.items()}
    return {**_head(VOLCANO_QUEUE, cluster, name), "spec": spec}


def hyper_nodes(cluster: str, site: Site, hosts: Mapping[str, str]) -> Iterable[Manifest]:
    """The switches of the site, lower ones first; a switch without nodes that Kubernetes knows is left out."""
    tiers: dict[str, int] = {}
    waiting = list(site.switches)
    while waiting:
        ready = [each for each in waiting if all(child in tiers for child in each.switches)]
        if not ready:
            return
        for switch in ready:
            waiting.remove(switch)
            tiers[switch.name] = 1 + max((tiers[child] for child in switch.switches), default=0)
            members = [_member("Node", hosts[node]) for node in switch.nodes if node in hosts]
            members += [_member("HyperNode", object_name(cluster, child)) for child in switch.switches if tiers[child]]
            if not members:
                tiers[switch.name] = 0
                continue
            spec = {"tier": tiers[switch.name], "members": members}
            yield {**_head(VOLCANO_HYPER_NODE, cluster, object_name(cluster, switch.name)), "spec": spec}


def _member(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}
