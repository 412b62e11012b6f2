"""Conservative backfill: every pending job, in order, gets the earliest start that delays none before it.

Two facts keep it fast. Capacity only shrinks while a plan is made, so a job that wants no less of everything, for no
less time, than one already planned cannot start before that one (``bounds``); and a job's start is either the first
moment it may or an instant at which something ends (``profile``). How one job is booked is ``forecast``'s.
"""

from __future__ import annotations

from slurmk.planner.forecast import Forecast
from slurmk.planner.snapshot import Outlook, PendingRow, Plan, Snapshot


def plan(snapshot: Snapshot) -> Plan:
    """What starts now, and for everything else when it is planned or why it can't be."""
    forecast = Forecast(snapshot)
    forecast.book_all(in_order(snapshot))
    return forecast.plan()


def in_order(snapshot: Snapshot) -> list[PendingRow]:
    """The queue: partition tier first, then priority, then submission. At most ``snapshot.depth`` records, if not 0."""
    tiers = {partition.name: partition.priority_tier for partition in snapshot.partitions}

    def key(row: PendingRow) -> tuple[int, int, int, int]:
        tier = max((tiers.get(name, 0) for name in row.partitions), default=0)
        return -tier, -row.priority, row.submit_time, row.job_id

    ordered = sorted(snapshot.pending, key=key)
    return ordered[: snapshot.depth] if snapshot.depth else ordered


def will_run(snapshot: Snapshot, row: PendingRow) -> Outlook:
    """When and where ``row`` would start if it were submitted now (``--test-only``), behind all that wait in ``snapshot``
    and come before it. A start time of ``snapshot.time`` means at once."""
    forecast = Forecast(snapshot)
    known = [other for other in snapshot.pending if other.job_id != row.job_id]
    trial = Snapshot(
        **{
            **{name: getattr(snapshot, name) for name in Snapshot.__slots__},
            "pending": (*known, row),
            "depth": 0,
        }
    )
    for other in in_order(trial):
        if other is row:
            break
        forecast.decide(other)
    return forecast.outlook_of(row)
