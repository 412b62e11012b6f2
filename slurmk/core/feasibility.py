"""Whether a job could ever start in a partition, were all of its nodes free and up.

Slurm refuses at submission what no node could ever give. What is only too much for the partition as a whole (its time
limit, its number of nodes or of CPUs) it keeps, since an administrator may raise that; the planner says what is lacking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from slurmk.core.state import State
from slurmk.model.node import Node, Partition
from slurmk.planner.constraints import choices
from slurmk.planner.snapshot import Demand

PLENTY = 1 << 30

_FEATURE = re.compile(r"[^\s&|,()\[\]{}*]+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """``possible``, or what the caller is told besides the refusal."""

    possible: bool
    notices: tuple[str, ...] = ()


_POSSIBLE = Verdict(True)


def unknown_features(state: State, constraint: str) -> bool:
    """True when the constraint names a feature that no node has."""
    return not set(_FEATURE.findall(re.sub(r"\*\d+", "", constraint))) <= state.features


def verdict(state: State, demand: Demand, partition: Partition) -> Verdict:
    """Whether the demand fits into the partition's nodes at all. Equal demands are judged once."""
    key = (demand, partition.name)
    known = state.verdicts.get(key)
    if known is None:
        known = state.verdicts[key] = _judge(state, demand, partition)
    return known


def _judge(state: State, demand: Demand, partition: Partition) -> Verdict:
    whole = [state.nodes[name] for name in partition.nodes if name in state.nodes]
    nodes = [_within(node, partition) for node in whole]
    if _beyond(nodes, demand, demand.tasks * demand.cpus_per_task):
        return _POSSIBLE
    notices = _notices(whole, demand)
    if notices:
        return Verdict(False, notices)
    if demand.minimum_nodes <= partition.maximum_nodes < demand.maximum_nodes and not demand.gres_per_job:
        demand = replace(demand, maximum_nodes=partition.maximum_nodes)
    if demand.whole_nodes or partition.oversubscribe == "EXCLUSIVE":
        nodes = [node for node in nodes if node.cpus == state.nodes[node.name].cpus]
    for allowed in _allowed(nodes, demand):
        if _fits(allowed, demand):
            return _POSSIBLE
    return Verdict(False)


def _within(node: Node, partition: Partition) -> Node:
    """The node as the partition's jobs may have it (MaxCPUsPerNode, MaxCPUsPerSocket)."""
    most = [node.cpus]
    if partition.maximum_cpus_per_node is not None:
        most.append(partition.maximum_cpus_per_node)
    if partition.maximum_cpus_per_socket is not None:
        most.append(partition.maximum_cpus_per_socket * max(1, node.sockets * max(1, node.boards)))
    return node if min(most) == node.cpus else replace(node, cpus=min(most))


def _beyond(nodes: list[Node], demand: Demand, cpus: int) -> bool:
    return demand.minimum_nodes > len(nodes) or (not demand.overcommit and cpus > sum(node.cpus for node in nodes))


def is_beyond(state: State, demand: Demand, partition: Partition) -> bool:
    """Whether the demand is for more nodes or CPUs than the partition has: a job that is submitted so waits for it to have
    more, and one that waits is not changed so."""
    nodes = [state.nodes[name] for name in partition.nodes if name in state.nodes]
    return _beyond(nodes, demand, max(demand.tasks * demand.cpus_per_task, demand.minimum_cpus))


def _notices(nodes: list[Node], demand: Demand) -> tuple[str, ...]:
    """What not one node has enough of, in Slurm's words."""
    lacking: list[str] = []
    cpus = _cpus_on_each_node(demand)
    memory = demand.memory_per_node or 0
    if demand.memory_per_cpu:
        memory = demand.memory_per_cpu * cpus
    if cpus > max((node.cpus for node in nodes), default=0):
        lacking.append("CPU count per node can not be satisfied")
    elif memory > max((node.memory for node in nodes), default=0):
        lacking.append("Memory specification can not be satisfied")
    elif demand.temporary_disk > max((node.temporary_disk for node in nodes), default=0):
        lacking.append("Temporary disk specification can not be satisfied")
    elif not any(_has_layout(node, demand) for node in nodes):
        lacking.append("Socket, core and/or thread specification can not be satisfied")
    return tuple(lacking)


def _has_layout(node: Node, demand: Demand) -> bool:
    wanted = (demand.sockets_per_node or 1, demand.cores_per_socket or 1, demand.threads_per_core or 1)
    there = (node.sockets, node.cores_per_socket, node.threads_per_core)
    return all(least <= count for least, count in zip(wanted, there, strict=True))


def _cpus_on_each_node(demand: Demand) -> int:
    tasks = demand.tasks_per_node if demand.tasks_per_node and demand.tasks_per_node_exact else 1
    if demand.overcommit:
        tasks = 1
    return max(tasks * demand.cpus_per_task, demand.minimum_cpus_per_node, 1)


def _allowed(nodes: list[Node], demand: Demand) -> Iterable[list[Node]]:
    """The sets of nodes that the constraint and --exclude leave; one of them must do."""
    excluded = frozenset(demand.excluded_nodes)
    if not demand.constraint:
        yield [node for node in nodes if node.name not in excluded] if excluded else nodes
        return
    features = [frozenset(node.active_features or node.features) for node in nodes]
    for choice in choices(demand.constraint, features):
        mask = choice.mask.tolist()
        chosen = [node for node, good in zip(nodes, mask, strict=True) if good and node.name not in excluded]
        enough = sum(count for _, count in choice.groups) <= demand.maximum_nodes
        if enough and all(int(group.sum()) >= count for group, count in choice.groups):
            yield chosen


def _fits(nodes: list[Node], demand: Demand) -> bool:
    tasks = {node.name: _tasks_on(node, demand) for node in nodes}
    usable = {name: count for name, count in tasks.items() if count > 0}
    if any(name not in usable for name in demand.required_nodes) or len(usable) < demand.minimum_nodes:
        return False
    most = sorted(usable.values(), reverse=True)[: demand.maximum_nodes]
    if sum(most) < demand.tasks and not demand.overcommit:
        return False
    return all(
        sum(sorted((_gres_on(node, name) for node in nodes if node.name in usable), reverse=True)[: demand.maximum_nodes])
        >= count
        for name, count in demand.gres_per_job
    )


def _tasks_on(node: Node, demand: Demand) -> int:
    """How many of the job's tasks the whole node could take; 0 when it can have no part in the job."""
    cpus = node.cpus
    if demand.memory_per_cpu:
        cpus = min(cpus, node.memory // demand.memory_per_cpu)
    if (
        cpus < _cpus_on_each_node(demand)
        or (demand.memory_per_node or 0) > node.memory
        or demand.temporary_disk > node.temporary_disk
        or (demand.threads_per_core or 0) > node.threads_per_core
        or (demand.sockets_per_node or 0) > node.sockets
        or (demand.cores_per_socket or 0) > node.cores_per_socket
        or (demand.tasks_per_node or 0) * (1 if demand.overcommit else demand.cpus_per_task) > node.cpus
        or any(_gres_on(node, name) < count for name, count in demand.gres_per_node)
        or any(_gres_on(node, name) < 1 for name, _ in demand.gres_per_socket)
    ):
        return 0
    tasks = PLENTY if demand.overcommit else cpus // demand.cpus_per_task
    if demand.tasks_per_node:
        tasks = min(tasks, demand.tasks_per_node)
    for name, count in demand.gres_per_task:
        tasks = min(tasks, _gres_on(node, name) // count)
    return tasks


def _gres_on(node: Node, name: str) -> int:
    kind, _, kind_type = name.partition(":")
    return sum(gres.count for gres in node.gres if gres.name == kind and (not kind_type or gres.type == kind_type))
