"""What a change means, at once: between two full plans, without looking at the whole queue again.

A forecast that was kept holds every promised start on its profile. A new job is booked behind all of them; capacity that
came back is offered to the waiting jobs in order, each of which may start now if it fits beside everything promised. So a
reaction starts nothing that delays a promised start. It takes milliseconds; the next full plan puts new jobs of high
priority in their place and moves promises forward.
"""

from __future__ import annotations

from collections.abc import Mapping

from slurmk.model.job import Allocation
from slurmk.planner.changed_nodes import changed_nodes
from slurmk.planner.forecast import Forecast
from slurmk.planner.offers import Offers, offers_of
from slurmk.planner.queue import in_order
from slurmk.planner.snapshot import PendingRow, Plan, RunningRow, Snapshot

Changed = Mapping[int, PendingRow | None]
"""Records by their job ids; None: it waits no more."""

OFFERS = 32
"""Waiting jobs that freed capacity is offered to in one reaction: 0.1 to 0.3 ms each. Het jobs wait for the next full plan."""

NEWCOMERS = 64
"""New and changed records that one reaction books, in order; when thousands come at once, the next full plan books the rest."""


def react(forecast: Forecast, snapshot: Snapshot, changed: Changed | None = None) -> Plan | None:
    """Bring the forecast up to date with a newer snapshot, in which earlier starts are running; what starts now.

    ``changed`` are the records that may not be those of the forecast's snapshot any more (None: any), so that a long queue is
    not gone through. The plan's ``outlooks`` are of those, and of others that are told something new. Of new records only
    NEWCOMERS are booked at a time, the others by later reactions. Nothing more is placed on nodes that changed. None when
    there are other nodes, or partitions or reservations changed, so that only a full plan helps. The forecast is changed; do
    not use it afterwards if None was returned.
    """
    before = forecast.snapshot
    same = (
        before.partitions is snapshot.partitions
        and before.reservations == snapshot.reservations
        and before.licenses == snapshot.licenses
        and snapshot.time >= forecast.now
    )
    more = forecast.quotas.follow(snapshot.quotas)
    if not same or more is None or not _nodes(forecast, snapshot):
        return None
    forecast.snapshot, forecast.now = snapshot, snapshot.time
    forecast.profile.at(snapshot.time)
    forecast.starts, forecast.preempted, forecast.outlooks.lately = [], [], {}
    forecast.array_taken.clear()
    if changed is None:
        changed = _all_changed(forecast, snapshot)
    freed = forecast.change_quotas(more)
    freed |= _running(forecast, snapshot)
    freed |= _gone(forecast, changed)
    offers = offers_of(forecast)
    for job_id, row in changed.items():
        offers.change(job_id, row)
    new = in_order(snapshot, [*offers.unbooked.values(), *_pending(forecast, changed)])
    if freed:
        _offer(forecast, offers)
    for row in new[:NEWCOMERS]:
        forecast.decide(row)
    offers.unbooked = {row.job_id: row for row in new[NEWCOMERS:]}
    told = forecast.outlooks
    news = {job_id: told[job_id] for job_id in {**told.lately, **changed} if job_id in told}
    return Plan(snapshot.snapshot_id, snapshot.time, tuple(forecast.starts), news)


def _all_changed(forecast: Forecast, snapshot: Snapshot) -> Changed:
    """What differs of the queue between the forecast and a snapshot."""
    waiting = {row.job_id: row for row in snapshot.pending}
    gone = dict.fromkeys(job_id for job_id in forecast.rows if job_id not in waiting)
    known = forecast.rows
    return gone | {job_id: row for job_id, row in waiting.items() if known.get(job_id) is not row}


def _nodes(forecast: Forecast, snapshot: Snapshot) -> bool:
    """Avoid nodes that changed; false when they are other nodes altogether."""
    before, after = forecast.snapshot.nodes, snapshot.nodes
    if before is after:
        return True
    changed = changed_nodes(before, after)
    if changed is None:
        return False
    if changed.any():
        forecast.avoid(changed)
    return True


def _key(allocation: Allocation) -> tuple[object, ...]:
    return allocation.partition, tuple((share.node, share.cpu_ids, share.cpus) for share in allocation.shares)


def _running(forecast: Forecast, snapshot: Snapshot) -> bool:
    """Follow what runs: true if capacity came back."""
    now, freed = snapshot.time, False
    running = {row.job_id: row for row in snapshot.running}
    for job_id in [job_id for job_id in forecast.held if job_id not in running]:
        freed |= forecast.release(job_id)
    unknown = [row for row in snapshot.running if row.job_id not in forecast.held]
    started = {_key(start.allocation): (start, booking) for start, booking in forecast.started}
    adopted: set[int] = set()
    late: list[RunningRow] = []
    for row in unknown:
        known = started.pop(_key(row.allocation), None)
        if known is None:
            late.append(row)
            forecast.inventory.hold(row.allocation)
            continue
        adopted.add(id(known[1]))
        forecast.adopt(row, known[1])
    for start, booking in started.values():
        forecast.give_back(booking, now)
        forecast.inventory.release(start.allocation)
        freed = True
    forecast.started = []
    late += [row for row in snapshot.running if row.job_id in forecast.held and forecast.held[row.job_id].end <= now]
    for row in late:
        forecast.hold(row)
    return freed


def _asks(row: PendingRow) -> tuple[object, ...]:
    """All of a record that its promise depends on; not its priority, which alone moves nothing before the next full plan,
    and not how many elements of an array are left."""
    return (
        row.demand,
        row.partitions,
        row.time_limit,
        row.user_id,
        row.eligible_time,
        row.held_reason,
        row.time_minimum,
        row.deadline,
        row.reservations,
        row.reservation_optional,
    )


def _pending(forecast: Forecast, changed: Changed) -> list[PendingRow]:
    """Forget promises to records that ask for something else now; those and the new ones are to be booked again."""
    new = []
    for row in changed.values():
        if row is None:
            continue
        old = forecast.rows.get(row.job_id)
        if old is None:
            new.append(row)
        elif old == row:
            forecast.rows[row.job_id] = row
        elif _asks(old) != _asks(row):
            forecast.withdraw(row.job_id)
            new.append(row)
        elif not forecast.keep_elements(row, min(row.count, row.startable)) or row.startable > old.startable:
            new.append(row)
    return new


def _gone(forecast: Forecast, changed: Changed) -> bool:
    """Take back promises to records that wait no more; true if there were any."""
    freed = False
    for job_id, row in changed.items():
        if row is None and job_id in forecast.rows:
            freed |= forecast.withdraw(job_id)
    return freed


def _offer(forecast: Forecast, offers: Offers) -> None:
    """Let waiting jobs start now that fit beside everything promised, in order."""
    index = forecast.profile.at(forecast.now)
    promised = forecast.promised
    made = 0
    for row in offers.candidates(forecast, index):
        bookings = promised.get(row.job_id)
        if bookings is None or not forecast.may_fit_now(bookings[0], index):
            continue
        made += 1
        if made > OFFERS:
            return
        offer(forecast, row)
        if promised.get(row.job_id) is not bookings:
            offers.change(row.job_id, row)


def offer(forecast: Forecast, row: PendingRow) -> None:
    """Let a record start now if it fits beside everything promised to others."""
    bookings = forecast.promised[row.job_id]
    own_is_in_the_way = bookings[0].start < forecast.now + row.time_limit
    if forecast.fits_now(row):
        forecast.withdraw(row.job_id)
        forecast.decide(row)
    elif own_is_in_the_way:
        forecast.withdraw(row.job_id)
        if forecast.fits_now(row):
            forecast.decide(row)
        else:
            forecast.promise_again(row, bookings)
