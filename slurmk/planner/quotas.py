"""Quotas on the profile: each limit is one more column beside the licences, and a job uses up the columns that count it.

What a job uses of a limit is a weighted sum of what it holds: CPUs, memory, GRES, nodes, and the job itself. So a limit is
a row of weights over the resource rows, and two more for nodes and jobs. Before a place is looked for, the least that
the job can use is known; what it uses once placed is checked exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slurmk.model.quotas import Quota, QuotaLimit, amount_text
from slurmk.planner.placement import Placement
from slurmk.planner.profile import Profile
from slurmk.planner.requirement import CPUS, MEMORY, Requirement, Resources
from slurmk.planner.shares import amounts_held
from slurmk.planner.snapshot import IntArray, Outlook, PendingRow, RunningRow, Snapshot


@dataclass(slots=True)
class Charge:
    """What jobs with one requirement, counted by the same limits, use of them. Arrays have one entry for each such limit."""

    columns: IntArray  # of the profile's counted resources
    weights: IntArray  # [limits, resources + 2]
    least: IntArray  # no job of this requirement uses less
    size_class: object  # equal where earlier answers bound later ones
    uniform: bool  # what a larger job uses is never less than what a smaller one uses
    per_node: IntArray | None  # [limits, nodes] of a job that has whole nodes


class QuotaBook:
    """See the module. ``first`` is the column of the first limit in the profile's counted resources."""

    def __init__(self, snapshot: Snapshot, resources: Resources, first: int) -> None:
        self.quotas = snapshot.quotas
        self.resources = resources
        self.capacity = resources.capacity
        self.threads = snapshot.nodes.threads_per_core
        self.first = first
        self.limits: list[tuple[Quota, QuotaLimit]] = [(quota, limit) for quota in snapshot.quotas for limit in quota.limits]
        self.width = first + len(self.limits)
        self._members: dict[tuple[str, str, str, int], tuple[int, ...]] = {}
        self._charges: dict[tuple[int, tuple[int, ...]], Charge] = {}
        self._classes: dict[tuple[int, tuple[int, ...]], object] = {}

    def left(self) -> list[int]:
        """How much of each limit slurmk's jobs may hold together."""
        return [limit.left for _, limit in self.limits]

    def follow(self, quotas: Sequence[Quota]) -> IntArray | None:
        """Go by quotas of which only the amounts are others; how much more is left of each. None when more has changed."""
        same = len(quotas) == len(self.quotas) and all(
            new.same_but_for_amounts(old) for new, old in zip(quotas, self.quotas, strict=True)
        )
        if not same:
            return None
        before = self.left()
        self.quotas = tuple(quotas)
        self.limits = [(quota, limit) for quota in quotas for limit in quota.limits]
        return np.array(self.left(), dtype=np.int64) - np.array(before, dtype=np.int64)

    # ------------------------------------------------------------------------------------------ which limits

    def _counting(self, partition: str, account: str, qos: str, user_id: int) -> tuple[int, ...]:
        """The limits that count such jobs."""
        key = (partition, account, qos, user_id)
        known = self._members.get(key)
        if known is None:
            known = self._members[key] = tuple(
                index for index, (quota, _) in enumerate(self.limits) if quota.counts(partition, account, qos, user_id)
            )
        return known

    def charge(self, row: PendingRow, need: Requirement) -> Charge | None:
        """What the record uses when it runs by this requirement; None when no limit counts it."""
        if not self.limits:
            return None
        members = self._counting(need.partition.name, row.account, row.qos, row.user_id)
        if not members:
            return None
        key = (id(need), members)
        known = self._charges.get(key)
        if known is None:
            known = self._charges[key] = self._charge(need, members)
        return known

    def _charge(self, need: Requirement, members: tuple[int, ...]) -> Charge:
        weights = np.array([self._weights(*self.limits[index], need.partition.name) for index in members], dtype=np.int64)
        everywhere = np.flatnonzero(need.eligible)
        per_node = None
        if need.whole:
            amounts = amounts_held(self.capacity, need, np.arange(self.capacity.shape[1]), self.threads)
            per_node = weights[:, :-2] @ amounts + weights[:, -2:-1]
            cheapest = np.sort(per_node[:, everywhere], axis=1)[:, : need.needed_nodes]
            least = cheapest.sum(axis=1) + weights[:, -1]
        else:
            least = self._least_shared(need, weights)
        alike = per_node is None or bool((per_node[:, everywhere] == per_node[:, everywhere[:1]]).all())
        return Charge(
            columns=np.array(members, dtype=np.int64) + self.first,
            weights=weights,
            least=least,
            size_class=self._classes.setdefault((id(need.size_class), members), object()),
            uniform=alike and (need.whole or need.demand.memory_per_node != 0),
            per_node=per_node,
        )

    def _weights(self, quota: Quota, limit: QuotaLimit, partition: str) -> list[int]:
        weights = [0] * (len(self.capacity) + 2)
        if limit.resource == "cpu":
            for row in (CPUS, *self.resources.shared.values()):
                weights[row] = quota.milli_per_cpu(partition)
        elif limit.resource == "mem":
            weights[MEMORY] = 1
        elif limit.resource == "node":
            weights[-2] = 1
        elif limit.resource == "job":
            weights[-1] = 1
        else:
            for row, name in self.resources.gres_names.items():
                kind, _, gres_type = name.partition(":")
                weights[row] = int(limit.counts_gres(kind, gres_type))
        return weights

    def _least_shared(self, need: Requirement, weights: IntArray) -> IntArray:
        """A bound from below for a job that shares its nodes."""
        demand, nodes = need.demand, need.needed_nodes
        amounts = np.zeros(weights.shape[1], dtype=np.int64)
        amounts[CPUS] = max(need.needed_cpus, nodes)
        if demand.memory_per_node:
            amounts[MEMORY] = demand.memory_per_node * nodes
        elif demand.memory_per_node == 0 and need.eligible.any():
            amounts[MEMORY] = int(self.capacity[MEMORY, need.eligible].min()) * nodes
        elif demand.memory_per_cpu:
            amounts[MEMORY] = demand.memory_per_cpu * amounts[CPUS]
        amounts[-2], amounts[-1] = nodes, 1
        least: IntArray = weights @ amounts
        for wanted, times in ((need.node_gres, nodes), (need.task_gres, need.tasks), (need.job_gres, 1)):
            for rows, amount in wanted:
                if rows:
                    least = least + weights[:, list(rows)].min(axis=1) * amount * times
        return least

    # ------------------------------------------------------------------------------------------ how much

    def used(self, charge: Charge, need: Requirement, placement: Placement) -> IntArray:
        """What a placed job uses of the limits that count it."""
        nodes = placement.nodes
        if charge.per_node is not None:
            whole: IntArray = charge.per_node[:, nodes].sum(axis=1) + charge.weights[:, -1]
            return whole
        assert placement.amounts is not None
        amounts = np.concatenate((placement.amounts.sum(axis=1, dtype=np.int64), (len(nodes), 1)))
        shared: IntArray = charge.weights @ amounts
        return shared

    def counted(self, charge: Charge, used: IntArray) -> IntArray:
        """The same as an amount of each counted resource of the profile."""
        counted = np.zeros(self.width, dtype=np.int64)
        counted[charge.columns] = used
        return counted

    def held(self, row: RunningRow) -> IntArray:
        """What a running job uses of each counted resource, licences left out."""
        counted = np.zeros(self.width, dtype=np.int64)
        if self.limits:
            members = frozenset(self._counting(row.allocation.partition, row.account, row.qos, row.user_id))
            index = 0
            for quota in self.quotas:
                amounts = quota.held(row.allocation) if index in members else ()
                for offset, amount in enumerate(amounts):
                    counted[self.first + index + offset] = amount
                index += len(quota.limits)
        return counted

    def cheapest(self, charge: Charge, need: Requirement, nodes: IntArray, tasks: IntArray, left: IntArray) -> IntArray:
        """As few of the nodes (given with the tasks that each can hold) as hold the job, those that use least of what is
        ``left`` of the limits; in ascending order."""
        if charge.per_node is not None:
            cost = (charge.per_node[:, nodes] / np.maximum(left, 1)[:, None]).max(axis=0)
            order = np.lexsort((-tasks, cost))
        else:
            order = np.argsort(-tasks, kind="stable")
        named = np.isin(nodes[order], need.required)
        order = np.concatenate((order[named], order[~named]))
        enough = int(np.cumsum(tasks[order]).searchsorted(need.tasks)) + 1
        chosen: IntArray = np.sort(order[: max(enough, need.minimum_nodes, len(need.required))])
        return chosen

    # ------------------------------------------------------------------------------------------ when, and why not

    def stretches(self, profile: Profile, charge: Charge, first: int, end: int, duration: int) -> list[tuple[int, int]]:
        """Of the segments ``first`` to ``end - 1`` those from which enough of each limit stays for ``duration`` seconds, as
        stretches: the first segment of each, and the one after its last."""
        times = profile.times[: profile.count]
        lasts = times.searchsorted(times[first:end] + duration)
        if not len(lasts):
            return []
        table = profile.licenses[charge.columns, first : int(lasts[-1])]
        short = np.flatnonzero((table < charge.least[:, None]).any(axis=0)) + first
        if not len(short):
            return [(first, end)]
        following = short.searchsorted(np.arange(first, end))
        fits = (following == len(short)) | (lasts <= short[np.minimum(following, len(short) - 1)])
        edges = np.flatnonzero(np.diff(np.concatenate(([False], fits, [False])).astype(np.int8))) + first
        return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))

    def never(self, charge: Charge) -> bool:
        """True when the least that the job uses is more than it may have even if no job of ours ran."""
        left = np.array([self.limits[column - self.first][1].left for column in charge.columns.tolist()], dtype=np.int64)
        return bool((charge.least > left).any())

    def outlook(self, charge: Charge, used: IntArray, profile: Profile, index: int, partition: str) -> Outlook | None:
        """What a job is told that cannot start with segment ``index`` for want of quota; None when there is enough."""
        free = profile.licenses[charge.columns, index]
        short = (free < used).nonzero()[0]
        if not len(short):
            return None
        column = int(charge.columns[short[0]])
        quota, limit = self.limits[column - self.first]
        reason = quota.reason(limit)
        if quota.explanation:
            return Outlook(reason, partition=partition, description=f"{reason}, {quota.explanation}")
        has = amount_text(limit.resource, max(int(free[short[0]]), 0))
        of = amount_text(limit.resource, limit.total)
        what = limit.resource.removeprefix("gres/")
        return Outlook(reason, partition=partition, description=f"{reason}, {quota.name} has {has} of {of} {what} free")
