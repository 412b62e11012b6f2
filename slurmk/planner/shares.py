"""From amounts to things: which CPUs and which devices a job that starts now gets on each of its nodes.

Only jobs that start now need this, and a started job keeps what it has, so numbers are given lowest first from those
that no running job and no earlier start of this plan holds.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from slurmk.model.job import Allocation, GresShare, NodeShare
from slurmk.model.node import SHARED_DEVICES, WHOLE_DEVICE
from slurmk.model.reservation import Reservation
from slurmk.planner.placement import Placement
from slurmk.planner.profile import Counts
from slurmk.planner.requirement import CPUS, MEMORY, Requirement, Resources, usable_cpus
from slurmk.planner.snapshot import IntArray, NodeTable, RunningRow


class Inventory:
    """CPUs and devices in use, by node."""

    def __init__(
        self,
        table: NodeTable,
        resources: Resources,
        running: Iterable[RunningRow],
        reservations: Iterable[Reservation] = (),
    ) -> None:
        self.numbers = {reservation.name: reservation.number for reservation in reservations}
        self.kept = _kept(reservations)
        self.table = table
        self.resources = resources
        self.cpus: dict[str, set[int]] = {}
        self.devices: dict[tuple[str, str], set[int]] = {}
        for row in running:
            self.hold(row.allocation)

    def hold(self, allocation: Allocation) -> None:
        for share in allocation.shares:
            self.cpus.setdefault(share.node, set()).update(share.cpu_ids)
            for gres in share.gres:
                self.devices.setdefault((share.node, gres.name), set()).update(gres.indices)

    def release(self, allocation: Allocation) -> None:
        for share in allocation.shares:
            self.cpus.get(share.node, set()).difference_update(share.cpu_ids)
            for gres in share.gres:
                self.devices.get((share.node, gres.name), set()).difference_update(gres.indices)

    def allocate(self, need: Requirement, placement: Placement) -> Allocation:
        """The allocation for a placement that starts now; what it gets is held from then on."""
        capacity = self.resources.capacity
        nodes = placement.nodes.tolist()
        tasks = placement.tasks.tolist()
        amounts = placement.amounts
        if amounts is None:
            amounts = amounts_held(capacity, need, placement.nodes, self.table.threads_per_core)
        columns = amounts.T.tolist()
        row = CPUS if need.shared_row is None else need.shared_row
        shares = tuple(
            self._share(need, node, count, column, row) for node, count, column in zip(nodes, tasks, columns, strict=True)
        )
        number = self.numbers.get(need.reservation, 0)
        allocation = Allocation(need.partition.name, shares, placement.amounts is None, need.reservation, number)
        self.hold(allocation)
        return allocation

    def narrowed(self, free: Counts, nodes: IntArray) -> Counts:
        """What is ``free`` [resources, nodes] with no more GPUs than are in no use at all, and no more shards than are left of
        GPUs that no job has whole: the sum over a node does not say which of its GPUs are shared."""
        sharing = self.resources.sharing
        if sharing is None:
            return free
        narrow = free.copy()
        for column, node in enumerate(nodes.tolist()):
            each, name = int(sharing.each[node]), self.table.names[node]
            whole = self.devices.get((name, WHOLE_DEVICE), set())
            shards = self._parts(name)
            if not each or not (whole or shards):
                continue
            shared = {shard // each for shard in shards}
            for row in (*self.resources.gres[WHOLE_DEVICE], *sharing.parts):
                listed = self.table.gres_devices[self.resources.gres_names[row]][node]
                if row in self.resources.gres[WHOLE_DEVICE]:
                    left = sum(number not in whole and number not in shared for number in listed)
                else:
                    left = sum(number not in shards and number // each not in whole for number in listed)
                narrow[row, column] = min(int(narrow[row, column]), left)
        return narrow

    def _share(self, need: Requirement, node: int, tasks: int, amounts: list[int], cpu_row: int) -> NodeShare:
        name = self.table.names[node]
        cpus, everything = amounts[cpu_row], range(int(self.table.cpus[node]))
        cpu_ids = self._cpu_ids(need.reservation, name, cpus, everything)
        if len(cpu_ids) < cpus and cpu_row != CPUS:  # shared ones, when no others are left
            cpu_ids += _lowest(cpus - len(cpu_ids), everything, set(cpu_ids))
        gres = tuple(self._gres(node, row, amounts[row]) for row in self.resources.gres_names if amounts[row])
        threads = max(1, int(self.table.threads_per_core[node]))
        idle = cpus - cpus // threads * min(threads, need.demand.threads_per_core or threads)
        return NodeShare(name, cpus, amounts[MEMORY], tasks, gres, cpu_ids, idle, threads)

    def _cpu_ids(self, reservation: str, node: str, count: int, everything: range) -> tuple[int, ...]:
        """The lowest free ones, if possible: for jobs of a reservation its own, for others those that no reservation keeps."""
        held = self.cpus.get(node, set())
        if node not in self.kept:
            return _lowest(count, everything, held)
        kept = self.kept[node]
        own = kept.get(reservation, frozenset())
        others = frozenset(number for name, numbers in kept.items() if name != reservation for number in numbers)
        preferred = sorted(everything, key=lambda number: (number not in own, number in others, number))
        return tuple(sorted(_lowest(count, preferred, held)))

    def _gres(self, node: int, row: int, count: int) -> GresShare:
        name = self.resources.gres_names[row]
        kind, _, type_ = name.partition(":")
        held = self.devices.get((self.table.names[node], kind), set())
        listed = self.table.gres_devices.get(name)
        numbers = () if listed is None else _lowest(count, self._in_order(kind, node, listed[node]), held)
        return GresShare(kind, type_, count, tuple(sorted(numbers)))

    def _in_order(self, kind: str, node: int, numbers: tuple[int, ...]) -> Iterable[int]:
        """The devices in the order to give them: GPUs that are not shared first, shards of GPUs that are shared already first,
        and last those of GPUs that a job has whole."""
        sharing = self.resources.sharing
        each = 0 if sharing is None else int(sharing.each[node])
        if not each or kind not in (WHOLE_DEVICE, *SHARED_DEVICES):
            return numbers
        name = self.table.names[node]
        whole = self.devices.get((name, WHOLE_DEVICE), set())
        shared = {shard // each for shard in self._parts(name)}
        if kind == WHOLE_DEVICE:
            return sorted(numbers, key=lambda number: (number in shared, number))
        return sorted(numbers, key=lambda shard: (shard // each in whole, shard // each not in shared, shard))

    def _parts(self, node: str) -> set[int]:
        """The parts of GPUs that are in use on a node, which has them of one kind."""
        return set().union(*(self.devices.get((node, kind), set()) for kind in SHARED_DEVICES))


def _kept(reservations: Iterable[Reservation]) -> dict[str, dict[str, frozenset[int]]]:
    """CPUs that reservations of cores keep, by node and reservation."""
    kept: dict[str, dict[str, frozenset[int]]] = {}
    for reservation in reservations:
        for share in reservation.cores:
            numbers = (core * share.threads + thread for core in share.cores for thread in range(share.threads))
            kept.setdefault(share.node, {})[reservation.name] = frozenset(numbers)
    return kept


def amounts_held(capacity: Counts, need: Requirement, nodes: IntArray, threads: IntArray) -> Counts:
    """[resources, nodes]: what a job that has these nodes to itself counts as holding there; ``threads`` are those of a core
    of every node."""
    amounts = capacity[:, nodes].copy()
    demand = need.demand
    if demand.memory_per_node:
        amounts[MEMORY] = demand.memory_per_node
    elif demand.memory_per_cpu:
        used = usable_cpus(demand, amounts[CPUS].astype(np.int64), threads[nodes])
        amounts[MEMORY] = (used * demand.memory_per_cpu).clip(max=amounts[MEMORY])
    return amounts


def _lowest(count: int, numbers: Iterable[int], held: set[int]) -> tuple[int, ...]:
    if not held and isinstance(numbers, range) and count == len(numbers):
        return tuple(numbers)
    free = [number for number in numbers if number not in held]
    return tuple(free[:count])
