"""The order of the queue."""

from __future__ import annotations

from collections.abc import Iterable

from slurmk.planner.snapshot import PendingRow, Snapshot


def in_order(snapshot: Snapshot, rows: Iterable[PendingRow]) -> list[PendingRow]:
    """Partition tier first, then priority, then submission, then job id."""
    tiers = {partition.name: partition.priority_tier for partition in snapshot.partitions}

    def key(row: PendingRow) -> tuple[int, int, int, int]:
        tier = max([tiers.get(name, 0) for name in row.partitions], default=0)
        return -tier, -row.priority, row.submit_time, row.job_id

    return sorted(rows, key=key)
