"""How much of the queue a plan looks at, who is promised a start, and when: the SchedulerParameters that act on plans.

Without any the whole queue is looked at and everybody is promised a start. Counts are of records: an array counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurmk.planner.snapshot import PendingRow

ARRAY_RESERVATIONS = 20
"""Elements of one array that are promised a start beside those that start now (bf_max_job_array_resv)."""

SWITCH_WAIT = 300
"""Seconds a job waits for ``--switches`` when it names no time (max_switch_wait)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds, None or 0 where there is none. Times are seconds."""

    per_user: int = 0  # records looked at, of one user (bf_max_job_user)
    per_partition: int = 0  # of one partition (bf_max_job_part)
    per_user_in_partition: int = 0  # bf_max_job_user_part
    per_association: int = 0  # of one user in one account (bf_max_job_assoc)
    reserved_in_partition: int = 0  # records of a partition that are promised a start (bf_job_part_count_reserve)
    least_priority: int = 0  # of those that are promised a start (bf_min_prio_reserve)
    least_age: int = 0  # seconds that they have waited (bf_min_age_reserve)
    starts: int = 0  # records started by one plan (bf_max_job_start)
    array_reservations: int = ARRAY_RESERVATIONS
    switch_wait: int = SWITCH_WAIT
    in_turn: bool = False  # nobody passes one who waits in the same partition (sched/builtin, or bf_interval=-1)
    limited_stop: bool = False  # nor one who waits for a limit of an association or QOS (assoc_limit_stop)
    busy_nodes: bool = False  # what starts later takes nodes that are in use now (bf_busy_nodes)
    serial_at_end: bool = False  # jobs of one CPU take the last nodes (pack_serial_at_end)
    het_priority: str = ""  # min, avg or max: which of its components' priorities a het job has (bf_hetjob_prio)


_KEYS: Mapping[str, str] = {
    "bf_max_job_user": "per_user",
    "bf_max_job_part": "per_partition",
    "bf_max_job_user_part": "per_user_in_partition",
    "bf_max_job_assoc": "per_association",
    "bf_job_part_count_reserve": "reserved_in_partition",
    "bf_min_prio_reserve": "least_priority",
    "bf_min_age_reserve": "least_age",
    "bf_max_job_start": "starts",
    "bf_max_job_array_resv": "array_reservations",
    "max_switch_wait": "switch_wait",
}


_BOUNDING = tuple(field for field in _KEYS.values() if field not in ("array_reservations", "switch_wait"))
"""Those that keep a record from being looked at or promised a start."""

HET_PRIORITIES = ("min", "avg", "max")


def bounds_of(options: Mapping[str, str], *, builtin: bool = False) -> Bounds:
    """The bounds that SchedulerParameters name; values that are no numbers are passed over. ``builtin``: without backfill."""
    numbers = {field: int(options[key]) for key, field in _KEYS.items() if options.get(key, "").isdecimal()}
    het_priority = options.get("bf_hetjob_prio", "").lower()
    if "bf_hetjob_immediate" in options and het_priority not in HET_PRIORITIES:
        het_priority = "min"
    return Bounds(
        **numbers,
        in_turn=builtin or options.get("bf_interval") == "-1",
        limited_stop="assoc_limit_stop" in options,
        busy_nodes="bf_busy_nodes" in options,
        serial_at_end="pack_serial_at_end" in options,
        het_priority=het_priority if het_priority in HET_PRIORITIES else "",
    )


class Attention:
    """Counts what one plan has looked at so far. Where nothing is ``bounded`` it need not be asked."""

    def __init__(self, bounds: Bounds, now: int) -> None:
        self.bounds = bounds
        self.bounded = any(getattr(bounds, field) for field in _BOUNDING)
        self._now = now
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._reserved: Counter[str] = Counter()

    def looks_at(self, row: PendingRow, started: int) -> bool:
        """Whether the record is looked at at all, after so many were started; those that are count."""
        bounds = self.bounds
        if bounds.starts and started >= bounds.starts:
            return False
        partition = row.partitions[0] if row.partitions else ""
        counted = (
            (bounds.per_user, ("user", row.user_id)),
            (bounds.per_partition, ("partition", partition)),
            (bounds.per_user_in_partition, ("both", row.user_id, partition)),
            (bounds.per_association, ("association", row.user_id, row.account)),
        )
        if any(limit and self._seen[key] >= limit for limit, key in counted):
            return False
        for limit, key in counted:
            if limit:
                self._seen[key] += 1
        return True

    def reserves(self, row: PendingRow) -> bool:
        """Whether the record is promised a start when it cannot start now."""
        bounds = self.bounds
        partition = row.partitions[0] if row.partitions else ""
        if row.priority < bounds.least_priority or self._now - row.submit_time < bounds.least_age:
            return False
        return not bounds.reserved_in_partition or self._reserved[partition] < bounds.reserved_in_partition

    def note(self, row: PendingRow) -> None:
        """The record was promised a start."""
        self._reserved[row.partitions[0] if row.partitions else ""] += 1
