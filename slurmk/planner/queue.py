"""The order of the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from slurmk.planner.snapshot import PendingRow, Snapshot


def in_order(snapshot: Snapshot, rows: Iterable[PendingRow]) -> list[PendingRow]:
    """Those that others gave way to first, then by partition tier, then priority, then submission, then job id."""
    tiers = {partition.name: partition.priority_tier for partition in snapshot.partitions}

    served = snapshot.preemption.served if snapshot.preemption is not None else frozenset()

    ordered = list(rows)
    together = _het_priorities(ordered, snapshot.bounds.het_priority)

    def key(row: PendingRow) -> tuple[bool, int, float, int, int]:
        tier = max([tiers.get(name, 0) for name in row.partitions], default=0)
        priority = together.get(row.component_of, row.priority)
        return row.job_id not in served, -tier, -priority, row.submit_time, row.job_id

    return sorted(ordered, key=key)


def _het_priorities(rows: Sequence[PendingRow], which: str) -> dict[int, float]:
    """The priority that all components of a het job go by (bf_hetjob_prio); none where each goes by its own."""
    found: dict[int, list[int]] = {}
    if which:
        for row in rows:
            if row.component_of:
                found.setdefault(row.component_of, []).append(row.priority)
    return {het_job: _WHICH[which](priorities) for het_job, priorities in found.items()}


_WHICH: Mapping[str, Callable[[list[int]], float]] = {"min": min, "avg": fmean, "max": max}


def in_order_of_arrival(ordered: Sequence[PendingRow]) -> bool:
    """Whether the queue's order is that of submission, so that no priority is meant to say more."""
    keys = [(row.submit_time, row.job_id) for row in ordered]
    return all(first <= second for first, second in pairwise(keys))
