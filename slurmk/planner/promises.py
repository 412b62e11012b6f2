"""The default policy on a whole cluster: no start later than promised, and within that the best order (see ``policy``).

Each record is promised a start when it comes: its earliest one beside everything planned, or to wait no longer than the longest
wait was. From then on every plan keeps the promises. A plan is first attempted by preference: those near the longest wait have
their starts kept free, others start now if they fit, the rest is booked in the order of promises. Where that makes somebody
late, the attempt is made anew with that one first. If no attempt succeeds, everybody keeps the start of the last plan, which is
never late, and what fits beside that starts now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slurmk.model.states import Reason
from slurmk.planner.forecast import Forecast, always
from slurmk.planner.policy import ATTEMPTS, KEPT_FREE, age, comes_first, delays_little, promise, stretch
from slurmk.planner.profile import FOREVER
from slurmk.planner.reaction import offer
from slurmk.planner.snapshot import PendingRow, Snapshot

FEW = 20_000
"""Records that are booked in all attempts together: a long queue is planned fewer times over."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The records of a queue in the orders that a plan needs."""

    arrived: Sequence[PendingRow]
    preferred: Sequence[PendingRow]  # of those that may start now
    promised: Sequence[PendingRow]
    early: frozenset[int]  # which may have their starts kept free


def forecast_by_promises(snapshot: Snapshot, rows: Sequence[PendingRow], wanted: Callable[[], bool] = always) -> Forecast:
    """A full plan of ``rows``, which are in the order of arrival; see ``Forecast`` for ``wanted``."""
    kept = Forecast(snapshot, wanted)
    choice = _anything_may_start(kept, rows)
    _keep_all(kept, rows)
    _promise(kept, rows)
    if not choice:
        return kept
    queue = _ordered(snapshot, rows, kept.promises)
    first: set[int] = set()
    for _ in range(max(1, min(ATTEMPTS, FEW // len(rows)))):
        made, late = _attempt(kept, queue, first)
        if late is None:
            return made
        if late in first:
            break
        first.add(late)
    for row in queue.preferred:
        if row.job_id in kept.promised and not row.component_of:
            offer(kept, row)
    return kept


def wait(row: PendingRow, now: int) -> int:
    """Seconds that the record has waited since it could start."""
    return max(0, now - max(row.submit_time, row.eligible_time))


def _anything_may_start(empty: Forecast, rows: Sequence[PendingRow]) -> bool:
    """Whether enough is free now for any of the records, before any is booked."""
    index = empty.profile.at(empty.now)
    for row in rows:
        if row.held_reason is Reason.NONE and row.eligible_time <= empty.now:
            for need in empty.needs(row)[0]:
                levels, wanted = (
                    (empty.profile.idle, need.needed_nodes) if need.whole else (empty.profile.cpus, need.needed_cpus)
                )
                if levels[need.pool, index] >= wanted:
                    return True
    return False


def _keep_all(kept: Forecast, rows: Sequence[PendingRow]) -> None:
    """Book those that were planned before where they were, then those that were promised a start (by a controller before this
    one), then the new ones behind them."""
    planned = [row for row in rows if row.planned is not None and not row.component_of and row.held_reason is Reason.NONE]
    for row in sorted(planned, key=lambda row: row.planned or 0):
        kept.keep(row, row.planned or 0)
    for row in sorted(rows, key=lambda row: FOREVER if row.promised is None else row.promised):
        if row.job_id not in kept.rows:
            kept.decide(row)


def _promise(kept: Forecast, rows: Sequence[PendingRow]) -> None:
    """Promise a start to those that have none yet."""
    longest = max(_longest(kept.snapshot, rows), _foreseen(kept, rows))
    for row in rows:
        bookings = kept.promised.get(row.job_id)
        if row.promised is not None:
            kept.promises[row.job_id] = row.promised
        elif bookings:
            kept.promises[row.job_id] = promise(bookings[0].start, kept.now, longest)
            kept.promise_to(row)
        elif row.job_id not in kept.outlooks:
            kept.promises[row.job_id] = kept.now


def _longest(snapshot: Snapshot, rows: Sequence[PendingRow]) -> int:
    """The longest wait that there has been, with those that are not over."""
    present = (wait(row, snapshot.time) for row in rows if row.held_reason is Reason.NONE)
    return max(snapshot.longest_wait, max(present, default=0))


def _foreseen(kept: Forecast, rows: Sequence[PendingRow]) -> int:
    """The longest wait that the plan foresees."""
    booked = ((row, kept.promised.get(row.job_id)) for row in rows)
    return max((wait(row, bookings[0].start) for row, bookings in booked if bookings), default=0)


def _ordered(snapshot: Snapshot, rows: Sequence[PendingRow], promises: dict[int, int]) -> Queue:
    now, longest = snapshot.time, _longest(snapshot, rows)
    ready = [row for row in rows if row.held_reason is Reason.NONE and row.eligible_time <= now and not row.component_of]
    machines = {partition.name: max(1, int(snapshot.nodes.cpus[partition.nodes].sum())) for partition in snapshot.partitions}
    cpus = int(snapshot.nodes.cpus.mean()) if len(snapshot.nodes.cpus) else 1
    sizes = {row.job_id: _size(row, cpus) for row in ready}
    ages: dict[int, float] = {}
    for row in ready:
        machine = max((machines.get(name, 1) for name in row.partitions), default=1)
        ages[row.job_id] = age(wait(row, now), min(sizes[row.job_id], machine), machine)
    early = frozenset(job_id for job_id, own in ages.items() if comes_first(own, longest))

    def preference(row: PendingRow) -> tuple[int, float]:
        waited = wait(row, now)
        little = delays_little(waited, row.time_limit)
        if row.job_id in early and not little:
            return 1, -ages[row.job_id]
        return (0 if little else 2), -stretch(waited, row.time_limit, sizes[row.job_id])

    return Queue(
        arrived=rows,
        preferred=sorted(ready, key=preference),
        promised=sorted(rows, key=lambda row: promises.get(row.job_id, FOREVER)),
        early=early,
    )


def _size(row: PendingRow, cpus_per_node: int) -> int:
    """CPUs that the record, or an element of the array, takes at least."""
    demand = row.demand
    if demand.whole_nodes:
        return demand.minimum_nodes * cpus_per_node
    return max(1, demand.tasks * demand.cpus_per_task, demand.minimum_cpus, demand.minimum_nodes)


def _attempt(promising: Forecast, queue: Queue, first: set[int]) -> tuple[Forecast, int | None]:
    """A plan by preference, and one that it makes late by what is promised, if any."""
    promises = promising.promises
    made = Forecast(promising.snapshot, promising.wanted)
    made.promises = promises
    for row in queue.promised:
        if row.job_id in first:
            made.decide(row)
    left: dict[int, PendingRow] = {}
    started: set[int] = set()
    kept = 0
    for row in queue.preferred:
        if row.job_id in made.rows:
            continue
        if row.job_id in queue.early and kept < KEPT_FREE:
            made.decide(row)
            kept += row.job_id in made.promised
            continue
        rest = made.start_some(row)
        if rest is None:
            started.add(row.job_id)
        else:
            left[row.job_id] = rest
    for row in queue.promised:
        if row.job_id in started:
            continue
        if row.job_id not in made.rows:
            made.decide(left.get(row.job_id, row))
        bookings = made.promised.get(row.job_id)
        if bookings and left.get(row.job_id, row) is row and bookings[0].start > promises.get(row.job_id, FOREVER):
            return made, row.job_id
    return made, None
