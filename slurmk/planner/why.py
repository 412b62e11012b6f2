"""Why a waiting job waits, what stands before it, and what smaller request would start earlier.

The queue is planned up to the job, on a snapshot, as every plan is made. What is free at that moment without the queue tells
what the job lacks; what the queue booked tells who takes it. Then requests that ask for less are looked for in the same
profile in its place: the start that each is told is the one that a plan would give it. Nothing of the controller changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from grammar.times import format_elapsed
from slurmk.model.states import Reason
from slurmk.planner.forecast import Abandoned, Booking, Forecast, always
from slurmk.planner.plan import forecast, goes_by_promises
from slurmk.planner.preemption import start_by_preemption
from slurmk.planner.profile import Counts, rows_of
from slurmk.planner.queue import in_order
from slurmk.planner.requirement import CPUS, MEMORY, Requirement, total
from slurmk.planner.snapshot import BoolArray, IntArray, Outlook, PendingRow, Snapshot

SHORTER = (0.75, 0.5, 0.25, 0.1)
"""Parts of the time limit that are tried."""

MINUTE = 60


@dataclass(frozen=True, slots=True)
class Try:
    """A smaller request: what a person changes for it (``--nodes=2``), and the record that it makes. Of the tries of one
    ``kind`` the one that asks for most comes first."""

    kind: str
    change: str
    row: PendingRow


@dataclass(frozen=True, slots=True)
class Better:
    """A smaller request that would start earlier. ``start`` is Unix seconds."""

    change: str
    start: int
    partition: str
    nodes: int


@dataclass(frozen=True, slots=True)
class Counted:
    """A licence or a limit that counts the job: how much it takes at least, and how much is left now. ``cpu`` limits are in
    thousandths, memory in MiB."""

    name: str
    resource: str
    wanted: int
    left: int


@dataclass(frozen=True, slots=True)
class Room:
    """One way to run the job (a partition, a reservation, one of several constraints), and what there is for it now.

    ``suitable`` says how many nodes are left after each thing that the job asks of a node, were they all idle, and
    ``most_tasks`` how many tasks those that are left hold then; ``short`` how many of them lack what at this moment. ``free``
    could take part of the job now, and hold ``free_tasks`` of it. ``away`` would do but are not available.
    """

    partition: str
    reservation: str
    wanted_nodes: int
    wanted_tasks: int
    suitable: tuple[tuple[str, int], ...]
    short: tuple[tuple[str, int], ...]
    free: int
    free_tasks: int
    most_tasks: int
    away: tuple[str, ...] = ()
    licenses: tuple[Counted, ...] = ()
    limits: tuple[Counted, ...] = ()


@dataclass(frozen=True, slots=True)
class Ahead:
    """A job that is planned no later and takes some of what this one could use; ``start`` is its planned start."""

    job_id: int
    start: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is known of why a record waits. Without ``complete`` time ran out: what is told is of the last plan or missing.

    ``position`` is its place among the ``queue`` records that wait for their turn. ``holders`` are running jobs, with their
    planned end, on the nodes that it is planned on; ``victims`` are those that give way to it. ``eventually`` is the start
    that it would have if what holds it (a hold, a dependency) were gone now.
    """

    time: int
    row: PendingRow
    outlook: Outlook
    position: int
    queue: int
    rooms: tuple[Room, ...] = ()
    ahead: tuple[Ahead, ...] = ()
    holders: tuple[tuple[int, int], ...] = ()
    victims: tuple[int, ...] = ()
    smaller: tuple[Better, ...] = ()
    eventually: int | None = None
    element_starts: tuple[int, ...] = ()  # of an array: planned starts of its next elements
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Question:
    """A record of a snapshot, smaller requests in its place, and what the last plan said of it."""

    snapshot: Snapshot
    row: PendingRow
    tries: tuple[Try, ...] = ()
    told: Outlook | None = None


def explain(question: Question, wanted: Callable[[], bool] = always) -> Explanation:
    """All about the record. ``wanted`` is asked often; when it says no, what is known by then is told."""
    snapshot, row = question.snapshot, question.row
    ordered = in_order(snapshot, [each for each in snapshot.pending if each.held_reason is Reason.NONE])
    position = next((index for index, each in enumerate(ordered, 1) if each.job_id == row.job_id), len(ordered) + 1)
    known = Explanation(
        time=snapshot.time,
        row=row,
        outlook=question.told or Outlook(row.held_reason),
        position=position,
        queue=len(ordered),
        complete=False,
    )
    try:
        empty = Forecast(snapshot, wanted)
        needs, _ = empty.needs(row)
        asked = [need for need in needs or empty.impossible(row) if not need.choice.preferred]
        known = replace(known, rooms=tuple(_room(empty, row, need) for need in asked))
        inquiry = _by_promises(snapshot, row, wanted) if goes_by_promises(snapshot) else _in_turn(snapshot, row, wanted)
        return inquiry.describe(known, question.tries)
    except Abandoned:
        return known


# ------------------------------------------------------------------------------------------------- what there is now


def _room(made: Forecast, row: PendingRow, need: Requirement) -> Room:
    """What is free now, by what runs."""
    suitable, would_do, away = _suitable(made, need)
    index = made.profile.at(made.now)
    nodes = np.flatnonzero(would_do)
    open_, short = _open_nodes(made, row, need, nodes, index)
    tasks = np.zeros(len(open_), dtype=np.int64)
    if len(open_):
        if need.whole:
            tasks = need.static_tasks[open_]
        else:
            free = made.compiler.seen_by(need, made.profile.least_free(index, index + 1, open_), open_)
            tasks = made.compiler.tasks_on(need, free, open_)
            short += _short_of(made, need, free, tasks == 0)
    names = list(made.snapshot.licenses)
    left = made.profile.licenses[:, index]
    licenses = [Counted(names[at], "license", int(need.licenses[at]), int(left[at])) for at in need.licenses.nonzero()[0]]
    return Room(
        partition=need.partition.name,
        reservation=need.reservation,
        wanted_nodes=need.minimum_nodes,
        wanted_tasks=need.tasks,
        suitable=tuple(suitable),
        short=tuple((name, count) for name, count in short if count),
        free=int((tasks > 0).sum()),
        free_tasks=int(min(tasks.sum(), need.tasks)),
        most_tasks=int(need.static_tasks[nodes].sum()),
        away=away,
        licenses=tuple(each for each in licenses if " beside " not in each.name),
        limits=tuple(_limits(made, row, need, left)),
    )


def _suitable(made: Forecast, need: Requirement) -> tuple[list[tuple[str, int]], BoolArray, tuple[str, ...]]:
    """How many nodes are left after each thing asked of a node, which are left of all, and which are only away."""
    demand, table, capacity = need.demand, made.snapshot.nodes, made.compiler.resources.capacity
    names = np.array(table.names, dtype=object)
    left = made.compiler.pools[need.pool].copy()
    found = [("partition", int(left.sum()))]
    asked: list[tuple[str, bool, BoolArray]] = [
        ("constraint", bool(demand.constraint) or need.choice.preferred, need.choice.mask),
        (
            "nodelist",
            len(need.required) > 0 and need.maximum_nodes == len(need.required),
            np.isin(names, demand.required_nodes),
        ),
        ("exclude", bool(demand.excluded_nodes), ~np.isin(names, demand.excluded_nodes)),
        ("tmp", bool(demand.temporary_disk), table.temporary_disk >= demand.temporary_disk),
        ("sockets", bool(demand.sockets_per_node), table.sockets >= (demand.sockets_per_node or 0)),
        ("threads", bool(demand.threads_per_core), table.threads_per_core >= (demand.threads_per_core or 0)),
    ]
    bound = made.reserved.bound(need.reservation)
    if bound is not None:
        asked.append(("reservation", True, bound))
    seen = made.compiler.seen_by(need, capacity, np.arange(capacity.shape[1]))
    asked += [(name, True, enough) for name, enough in _enough(made, need, seen)]
    asked.append(("layout", True, need.static_tasks > 0))
    for name, matters, mask in asked:
        if matters:
            left &= mask
            found.append((name, int(left.sum())))
    away = tuple(names[left & ~table.available].tolist())
    left &= table.available
    return [*found, ("available", int(left.sum()))], left, away


def _enough(made: Forecast, need: Requirement, free: Counts) -> list[tuple[str, BoolArray]]:
    """For each resource that a node must give, on which columns of ``free`` there is enough of it for the least part."""
    demand = need.demand
    each = demand.tasks_per_node if demand.tasks_per_node and demand.tasks_per_node_exact else 1
    cpus = 1 if demand.overcommit else max(each * need.cpus_per_task, need.minimum_cpus_per_node)
    found: list[tuple[str, BoolArray]] = [("cpu", free[CPUS] >= cpus)]
    memory = demand.memory_per_node or (demand.memory_per_cpu or 0) * cpus
    if memory:
        found.append(("mem", free[MEMORY] >= memory))
    wanted: dict[tuple[int, ...], int] = {}
    for rows, amount in (*need.node_gres, *((rows, amount * each) for rows, amount in need.task_gres)):
        wanted[rows] = wanted.get(rows, 0) + amount
    for rows, _ in need.job_gres:
        wanted.setdefault(rows, 1)
    names = {rows: name for name, rows in made.compiler.resources.gres.items()}
    found += [(f"gres/{names.get(rows, '')}", total(free, rows) >= amount) for rows, amount in wanted.items()]
    return found


def _open_nodes(
    made: Forecast, row: PendingRow, need: Requirement, nodes: IntArray, index: int
) -> tuple[IntArray, list[tuple[str, int]]]:
    """Those of the nodes that no reservation and no job keeps wholly, and how many are kept."""
    profile = made.profile
    kept = made.reserved.blocked(need.reservation, made.now, made.now + row.time_limit, row.leaves_within)
    reserved = np.isin(nodes, rows_of(kept)) if kept is not None else np.zeros(len(nodes), dtype=np.bool_)
    open_rows = rows_of(profile.idle_bits(index, index + 1) if need.whole else profile.shareable_bits(index, index + 1))
    busy = ~reserved & ~np.isin(nodes, open_rows)
    short = [("reserved", int(reserved.sum())), ("whole node" if need.whole else "exclusive", int(busy.sum()))]
    return nodes[~reserved & ~busy], short


def _short_of(made: Forecast, need: Requirement, free: Counts, useless: BoolArray) -> list[tuple[str, int]]:
    """Which resources the useless nodes have too little of; one may lack several."""
    explained = np.zeros(len(useless), dtype=np.bool_)
    found = []
    for name, enough in _enough(made, need, free):
        explained |= ~enough
        found.append((name, int((useless & ~enough).sum())))
    return [*found, ("sharing", int((useless & ~explained).sum()))]


def _limits(made: Forecast, row: PendingRow, need: Requirement, left: IntArray) -> list[Counted]:
    charge = made.quotas.charge(row, need)
    if charge is None:
        return []
    found = []
    for column, least in zip(charge.columns.tolist(), charge.least.tolist(), strict=True):
        quota, limit = made.quotas.limits[column - made.quotas.first]
        found.append(Counted(quota.name, limit.resource, least, int(left[column])))
    return found


# ------------------------------------------------------------------------------------------------- the queue before it


@dataclass(slots=True)
class _Inquiry:
    """A plan that can be asked what another request would get in the record's place. ``finish`` makes it the plan with the
    record itself, after which it is asked no more."""

    made: Forecast
    row: PendingRow
    start_of: Callable[[PendingRow], Better | None]
    finish: Callable[[], None]
    lengthens: bool  # whether a shorter limit can be made as long as its start allows

    def describe(self, known: Explanation, tries: Sequence[Try]) -> Explanation:
        """All that the plan tells."""
        made, row = self.made, self.row
        found = self.start_of(replace(row, held_reason=Reason.NONE))
        held = row.held_reason is not Reason.NONE
        smaller = () if held else _smaller(self, row, None if found is None else found.start, tries)
        self.finish()
        own = _bookings(made, row)
        first = own[0] if own else None
        waits = first is not None and first.start > made.now
        passed_over = first is None and found is not None  # a plan that looks at a part of the queue, not at this record
        return replace(
            known,
            outlook=made.outlooks.get(row.job_id) or Outlook(Reason.NONE, made.now),
            ahead=tuple(_ahead(made, row, first)),
            holders=tuple(_holders(made, first)) if first is not None and waits else (),
            victims=next((each.victims for each in made.preempted if each.job_id == row.job_id), ()),
            eventually=found.start if held and found is not None else None,
            element_starts=tuple(booking.start for booking in own) if row.count > 1 else (),
            smaller=() if passed_over or (first is not None and not waits) else smaller,
            complete=True,
        )


def _in_turn(snapshot: Snapshot, row: PendingRow, wanted: Callable[[], bool]) -> _Inquiry:
    """The queue planned up to the record."""
    made = Forecast(replace(snapshot, by_promises=False), wanted)
    ordered = in_order(snapshot, snapshot.pending)
    for other in ordered[: snapshot.depth] if snapshot.depth else ordered:
        if other.job_id == row.job_id or (row.component_of and other.component_of == row.component_of):
            break
        made.book_next(other)

    def start_of(changed: PendingRow) -> Better | None:
        return _start_together(made, changed) if changed.component_of else _start_alone(made, changed)

    return _Inquiry(made, row, start_of, lambda: made.book_next(row), lengthens=not row.component_of)


def _start_alone(made: Forecast, row: PendingRow) -> Better | None:
    needs, _ = made.needs(row)
    booking = made.find(row, needs) if needs else None
    if booking is None or booking.start > made.now:
        booking = start_by_preemption(made, row) or booking
    return _as_better(made, booking)


def _start_together(made: Forecast, row: PendingRow) -> Better | None:
    """The start of all components of a het job, of which this one is changed."""
    own = next(iter(made.try_together(row)), None)
    return _as_better(made, own)


def _as_better(made: Forecast, booking: Booking | None) -> Better | None:
    if booking is None or made.beyond(booking):
        return None
    return Better("", booking.start, booking.need.partition.name, len(booking.placement.nodes))


def _by_promises(snapshot: Snapshot, row: PendingRow, wanted: Callable[[], bool]) -> _Inquiry:
    """Where plans go by promises the order is another after each change, so each try is a plan of the whole queue."""

    def planned(changed: PendingRow) -> Forecast:
        rows = tuple(changed if each.job_id == row.job_id else each for each in snapshot.pending)
        return forecast(replace(snapshot, pending=rows), wanted)

    def start_of(changed: PendingRow) -> Better | None:
        made = planned(changed)
        own = _bookings(made, row)
        return _as_better(made, own[0] if own else None)

    return _Inquiry(planned(row), row, start_of, lambda: None, lengthens=False)


def _bookings(made: Forecast, row: PendingRow) -> list[Booking]:
    started = [booking for start, booking in made.started if start.job_id == row.job_id]
    return [*started, *made.promised.get(row.job_id, [])]


def _ahead(made: Forecast, row: PendingRow, own: Booking | None) -> list[Ahead]:
    """Jobs of the plan that begin before the record would, and take nodes or counted things that it could use."""
    needs, _ = made.needs(row)
    if not needs:
        return []
    usable = np.logical_or.reduce([need.eligible for need in needs])
    counts = [charge.columns for need in needs if (charge := made.quotas.charge(row, need)) is not None]
    columns = np.unique(np.concatenate([*counts, *(need.licenses.nonzero()[0] for need in needs)])).astype(np.int64)
    found = []
    for job_id, booking in _booked(made):
        if job_id == row.job_id or (own is not None and booking.start >= own.start):
            continue
        if usable[booking.placement.nodes].any() or booking.counted[columns].any():
            found.append(Ahead(job_id, booking.start))
    return list({each.job_id: each for each in reversed(found)}.values())[::-1]


def _booked(made: Forecast) -> list[tuple[int, Booking]]:
    started = [(start.job_id, booking) for start, booking in made.started]
    return started + [(job_id, booking) for job_id, bookings in made.promised.items() for booking in bookings]


def _holders(made: Forecast, booking: Booking) -> list[tuple[int, int]]:
    """Running jobs on the nodes of a booking, the one that ends last first."""
    nodes = frozenset(booking.placement.nodes.tolist())
    found = [(job_id, held.end) for job_id, held in made.held.items() if not nodes.isdisjoint(held.nodes.tolist())]
    return sorted(found, key=lambda each: (-each[1], each[0]))


# ------------------------------------------------------------------------------------------------- smaller requests


def _smaller(inquiry: _Inquiry, row: PendingRow, own: int | None, tries: Sequence[Try]) -> tuple[Better, ...]:
    """Tries that start before ``own``, which is the record's start, and before a milder one of their kind; earliest first."""
    if row.startable < 1 or (own is not None and own <= max(inquiry.made.now, row.eligible_time)):
        return ()
    found = _shorter(inquiry, row, own)
    earliest: dict[str, int | None] = {}
    for each in tries:
        better = inquiry.start_of(each.row)
        limit = earliest.get(each.kind, own)
        if better is not None and (limit is None or better.start < limit):
            earliest[each.kind] = better.start
            found.append(replace(better, change=each.change))
    return tuple(sorted(found, key=lambda better: better.start))


def _shorter(inquiry: _Inquiry, row: PendingRow, own: int | None) -> list[Better]:
    """The same job with less time, each time with as much as its start leaves."""
    found: list[Better] = []
    earliest, longest = own, row.time_limit
    for part in SHORTER:
        limit = max(int(row.time_limit * part) // MINUTE * MINUTE, MINUTE)
        if limit >= longest or (row.time_minimum is not None and limit < row.time_minimum):
            continue
        better = inquiry.start_of(replace(row, time_limit=limit))
        if better is None or (earliest is not None and better.start >= earliest):
            continue
        if inquiry.lengthens:
            limit = _longest(inquiry, row, better.start, limit, longest)
        earliest, longest = better.start, limit
        found.append(replace(better, change=f"--time={format_elapsed(limit, padded=True)}"))
    return found


def _longest(inquiry: _Inquiry, row: PendingRow, start: int, limit: int, below: int) -> int:
    """The longest limit in whole minutes, less than ``below``, with which it still starts by then."""
    low, high = limit // MINUTE, (below - 1) // MINUTE
    while low < high:
        middle = (low + high + 1) // 2
        longer = inquiry.start_of(replace(row, time_limit=middle * MINUTE))
        if longer is not None and longer.start <= start:
            low = middle
        else:
            high = middle - 1
    return low * MINUTE
