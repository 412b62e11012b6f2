"""Why a pending record does not start, in Slurm's words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurmk.model.states import Reason
from slurmk.planner.requirement import Requirement
from slurmk.planner.reserved import Reserved
from slurmk.planner.snapshot import NodeTable, Outlook, PartitionRow, PendingRow, Snapshot

NAMED_NOT_AVAILABLE = "ReqNodeNotAvail, May be reserved for other job"
TOO_FEW_AVAILABLE = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
KEPT_FOR_MAINTENANCE = "ReqNodeNotAvail, Reserved for maintenance"
"""What Slurm shows in place of the reason when nodes that were named, or too many of those that would do, are not available."""


def partition_reason(row: PendingRow, partition: PartitionRow, nodes: NodeTable) -> Reason:
    """The partition limit or state that keeps the job out, or NONE. More CPUs than all of its ``nodes`` have come before a
    limit of nodes or time."""
    if not partition.up:
        return Reason.PARTITION_DOWN if partition.queues else Reason.PARTITION_INACTIVE
    reason, demand = _limit(row, partition, nodes), row.demand
    if reason in (Reason.PARTITION_NODE_LIMIT, Reason.PARTITION_TIME_LIMIT) and not demand.overcommit:
        cpus = max(demand.tasks * demand.cpus_per_task, demand.minimum_cpus)
        if demand.tasks > demand.minimum_nodes and cpus > int(nodes.cpus[partition.nodes].sum()):
            return Reason.PARTITION_CONFIG
    return reason


def _limit(row: PendingRow, partition: PartitionRow, nodes: NodeTable) -> Reason:
    demand = row.demand
    if partition.maximum_nodes is not None and demand.minimum_nodes > partition.maximum_nodes:
        return Reason.PARTITION_NODE_LIMIT
    if demand.minimum_nodes > len(partition.nodes) or demand.maximum_nodes < partition.minimum_nodes:
        return Reason.PARTITION_NODE_LIMIT
    limit = row.time_limit if row.time_minimum is None else min(row.time_limit, row.time_minimum)
    if partition.maximum_time is not None and limit > partition.maximum_time:
        return Reason.PARTITION_TIME_LIMIT
    if partition.maximum_memory_per_node is not None and demand.least_memory is not None:
        least = demand.least_memory or int(nodes.memory[partition.nodes].min(initial=partition.maximum_memory_per_node + 1))
        if least > partition.maximum_memory_per_node:
            return Reason.MAX_MEM_PER_LIMIT
    return Reason.NONE


def reserved_reason(
    need: Requirement, reserved: Reserved, start: int, end: int, leaves_within: int | None = None
) -> Outlook | None:
    """What a job is told that cannot start now because others' reservations keep nodes that it names, or so many that too
    few are left."""
    kept = reserved.blocked(need.reservation, start, end, leaves_within)
    if kept is None:
        return None
    left = need.eligible & ~np.unpackbits(kept.view(np.uint8), bitorder="little")[: len(need.eligible)].astype(np.bool_)
    if left[need.required].all() if len(need.required) else _fits(need, left):
        return None
    text = KEPT_FOR_MAINTENANCE if reserved.for_maintenance(start, end, need.eligible & ~left) else NAMED_NOT_AVAILABLE
    return Outlook(Reason.REQ_NODE_NOT_AVAIL, partition=need.partition.name, description=text)


class Blocking:
    """Who stands in front of whom, as Slurm says it: once a job waits for its partition's nodes, those behind it in the
    partition wait for their turn, and the partition's nodes are set aside, also from jobs of other partitions. A job that names
    its nodes sets only these aside."""

    def __init__(self, nodes: int) -> None:
        self.partitions: set[str] = set()
        self.nodes = np.zeros(nodes, dtype=np.bool_)

    def reason(self, row: PendingRow, needs: Sequence[Requirement], own: Outlook | None) -> tuple[Reason, str]:
        """Why the next job of the queue, which would fit the cluster, does not start, and what is shown in place of the
        reason's name. ``own`` is what keeps it where nobody stands before it (a reservation); without that it waits
        for nodes, and blocks others from now on."""
        told = Reason.NONE, ""
        for name in row.partitions:
            here = [need for need in needs if need.partition.name == name]
            if not here:
                continue
            if name in self.partitions:
                if told[0] is not Reason.REQ_NODE_NOT_AVAIL:
                    told = Reason.PRIORITY, ""
                continue
            told = self._in_partition(here, own)
            if own is not None and told[0] is own.reason and told[1] == own.description:
                continue
            need = here[0]
            if len(need.required) and len(need.required) >= need.minimum_nodes:
                self.nodes[need.required] = True
            else:
                self.partitions.add(name)
                self.nodes[need.partition.nodes] = True
        return told

    def _in_partition(self, needs: Sequence[Requirement], own: Outlook | None) -> tuple[Reason, str]:
        if not self.nodes.any() or any(_fits(need, need.eligible & ~self.nodes) for need in needs):
            return (Reason.RESOURCES, "") if own is None else (own.reason, own.description)
        named, around = needs[0].required, needs[0].partition.nodes
        if len(named) and self.nodes[named].any() and not self.nodes[around].all():
            return Reason.REQ_NODE_NOT_AVAIL, NAMED_NOT_AVAILABLE
        return Reason.RESOURCES, TOO_FEW_AVAILABLE


def why_never(row: PendingRow, needs: list[Requirement], snapshot: Snapshot) -> Outlook:
    """A record that does not even fit the cluster when it is empty: nodes that are gone now, or a request too large."""
    if not needs:
        return Outlook(Reason.BAD_CONSTRAINTS)
    nodes = snapshot.nodes
    gone = ~nodes.available
    for need in needs:
        usable = need.static_tasks > 0
        named = np.isin(np.arange(len(gone)), need.required) if len(need.required) else usable
        missing = usable & gone & named
        if missing.any() and _fits(need, usable):
            text = NAMED_NOT_AVAILABLE if len(need.required) else TOO_FEW_AVAILABLE
            return Outlook(Reason.REQ_NODE_NOT_AVAIL, partition=need.partition.name, description=text)
    need = next((need for need in needs if not need.choice.preferred), needs[0])
    if need.licenses.any() and not need.feasible and _fits(need, need.static_tasks > 0):
        return Outlook(Reason.LICENSES, partition=need.partition.name)
    if need.demand.constraint and not need.choice.mask.any():
        return Outlook(Reason.BAD_CONSTRAINTS, partition=need.partition.name)
    return Outlook(Reason.PARTITION_CONFIG, partition=need.partition.name)


def _fits(need: Requirement, usable: np.typing.NDArray[np.bool_]) -> bool:
    counts = np.sort(need.static_tasks[usable])[::-1][: need.maximum_nodes]
    if len(need.required) and not usable[need.required].all():
        return False
    return len(counts) >= need.minimum_nodes and int(counts.sum()) >= need.tasks
