"""Conservative backfill: every pending job, in order, gets the earliest start that delays none before it.

Two facts keep it fast. Capacity only shrinks while a plan is made, so a job that wants no less of everything, for no
less time, than one already planned cannot start before that one (``bounds``); and a job's start is either the first
moment it may or an instant at which something ends (``profile``). How one job is booked is ``forecast``'s; what a change
means before the next full plan is there is ``reaction``'s. A site may let ``promises`` choose the order instead, where
priorities say nothing but who came first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from slurmk.planner.forecast import Forecast, always
from slurmk.planner.promises import forecast_by_promises
from slurmk.planner.queue import in_order, in_order_of_arrival
from slurmk.planner.reaction import Changed, react
from slurmk.planner.snapshot import Outlook, PendingRow, Plan, Snapshot


def plan(snapshot: Snapshot) -> Plan:
    """What starts now, and for everything else when it is planned or why it can't be."""
    return forecast(snapshot).plan()


def forecast(snapshot: Snapshot, wanted: Callable[[], bool] = always) -> Forecast:
    """A full plan with its working state: ``forecast(snapshot).plan()`` is the plan, and ``plan_starts`` can go on from it.

    Raises forecast.Abandoned once ``wanted``, which is asked for each record, says no.
    """
    ordered = _looked_at(snapshot)
    if goes_by_promises(snapshot):
        return forecast_by_promises(snapshot, ordered, wanted)
    made = Forecast(replace(snapshot, by_promises=False), wanted)
    made.book_all(ordered)
    return made


def _looked_at(snapshot: Snapshot) -> list[PendingRow]:
    ordered = in_order(snapshot, snapshot.pending)
    return ordered[: snapshot.depth] if snapshot.depth else ordered


def goes_by_promises(snapshot: Snapshot) -> bool:
    """Whether ``promises`` chooses the order."""
    return snapshot.by_promises and snapshot.preemption is None and in_order_of_arrival(_looked_at(snapshot))


def plan_starts(snapshot: Snapshot, previous: Forecast, changed: Changed | None = None) -> Plan | None:
    """What may start now after a submission or a completion, in milliseconds: see ``reaction.react``.

    ``snapshot`` must know the earlier plan's starts as running. None when only a full plan can answer.
    """
    return react(previous, snapshot, changed)


def will_run(snapshot: Snapshot, row: PendingRow, wanted: Callable[[], bool] = always) -> Outlook:
    """When and where ``row`` would start if it were submitted now (``--test-only``), behind everything in ``snapshot``
    that comes before it, however far ahead. One that could start at once has ``Reason.NONE`` and the snapshot's time. Raises
    forecast.Abandoned as ``forecast`` does."""
    others = [other for other in snapshot.pending if other.job_id != row.job_id]
    trial = replace(snapshot, pending=(*others, row), depth=0, window=0)
    made = Forecast(trial, wanted)
    for other in in_order(trial, trial.pending):
        if other is row:
            break
        made.decide(other)
    return made.outlook_of(row)
