"""The order of the queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from slurmk.planner.snapshot import PendingRow, Snapshot


def in_order(snapshot: Snapshot, rows: Iterable[PendingRow]) -> list[PendingRow]:
    """Those that others gave way to first, then by partition tier, then priority, then submission, then job id."""
    tiers = {partition.name: partition.priority_tier for partition in snapshot.partitions}

    served = snapshot.preemption.served if snapshot.preemption is not None else frozenset()

    def key(row: PendingRow) -> tuple[bool, int, int, int, int]:
        tier = max([tiers.get(name, 0) for name in row.partitions], default=0)
        return row.job_id not in served, -tier, -row.priority, row.submit_time, row.job_id

    return sorted(rows, key=key)


def in_order_of_arrival(ordered: Sequence[PendingRow]) -> bool:
    """Whether the queue's order is that of submission, so that no priority is meant to say more."""
    keys = [(row.submit_time, row.job_id) for row in ordered]
    return all(first <= second for first, second in pairwise(keys))
