"""What reservations keep is kept: at every instant of a plan, from every job without right to it; and no job waits longer
than it has to for one."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import NOW, demand, snapshot_of

from slurmk.model.job import Allocation, NodeShare
from slurmk.model.reservation import CoreShare, Reservation, ReservationFlag
from slurmk.planner.forecast import Booking, Forecast
from slurmk.planner.plan import forecast, plan, plan_starts
from slurmk.planner.reserved import kept_licenses, may_share, windows_of
from slurmk.planner.snapshot import PendingRow, RunningRow, Snapshot

NODES, CPUS, LICENSES = 5, 4, 4
IDLE = ((CPUS, 100, 0),) * NODES

FLAGS = st.sampled_from(
    [
        ReservationFlag.NONE,
        ReservationFlag.NONE,
        ReservationFlag.MAINT,
        ReservationFlag.OVERLAP,
        ReservationFlag.FLEX,
        ReservationFlag.HOURLY,
        ReservationFlag.TIME_FLOAT,
    ]
)


@st.composite
def reservations(draw: st.DrawFn) -> tuple[Reservation, ...]:
    found = []
    for number in range(1, draw(st.integers(1, 3)) + 1):
        start = NOW + draw(st.integers(-20, 60)) * 60
        nodes = tuple(f"n{index}" for index in sorted(draw(st.sets(st.integers(0, NODES - 1), max_size=3))))
        cores = draw(st.integers(0, CPUS - 1))
        found.append(
            Reservation(
                f"r{number}",
                number,
                start,
                start + draw(st.integers(1, 40)) * 60,
                nodes,
                flags=draw(FLAGS),
                cores=tuple(CoreShare(node, tuple(range(cores))) for node in nodes) if cores else (),
                licenses=(("l", draw(st.integers(1, LICENSES))),) if draw(st.booleans()) else (),
                delay=draw(st.integers(0, 30)) * 60,
            )
        )
    shared = {
        one.number
        for one in found
        for other in found
        if one.number != other.number and set(one.nodes) & set(other.nodes)  # cores of one node are not given twice
    }
    return tuple(replace(each, cores=()) if each.number in shared else each for each in found)


@st.composite
def jobs(draw: st.DrawFn, number: int, names: tuple[str, ...]) -> PendingRow:
    whole = draw(st.integers(0, 3)) == 0
    nodes = draw(st.integers(1, 3))
    wanted = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    asked = demand(
        nodes,
        nodes * draw(st.integers(1, CPUS)),
        whole_nodes=whole,
        licenses=(("l", draw(st.integers(1, LICENSES))),) if draw(st.booleans()) else (),
    )
    return PendingRow(
        job_id=number,
        demand=asked,
        partitions=("p",),
        priority=1000 - number,
        submit_time=NOW - 10,
        time_limit=draw(st.integers(1, 45)) * 60,
        user_id=1000,
        reservations=tuple(wanted),
        reservation_optional=not wanted or draw(st.booleans()),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    kept = draw(reservations())
    names = tuple(each.name for each in kept)
    running = []
    for index in range(draw(st.integers(0, 2))):
        share = NodeShare(f"n{index}", draw(st.integers(1, CPUS)), 0, 1)
        allocation = Allocation("p", (share,), reservation=draw(st.sampled_from(("", *names))))
        running.append(RunningRow(900 + index, NOW + draw(st.integers(1, 30)) * 60, allocation, 1000))
    pending = tuple(draw(jobs(number, names)) for number in range(1, draw(st.integers(1, 8)) + 1))
    licenses = kept_licenses({"l": LICENSES}, kept)
    return snapshot_of(IDLE, pending, tuple(running), reservations=kept, licenses=licenses)


def booked(made: Forecast) -> list[Booking]:
    return [*(booking for _, booking in made.started), *(each for bookings in made.promised.values() for each in bookings)]


def overlaps(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def check(snapshot: Snapshot, bookings: list[Booking]) -> None:
    by_name = {each.name: each for each in snapshot.reservations}
    for booking in bookings:
        own = by_name.get(booking.need.reservation)
        held = (booking.start, booking.end)
        nodes = {f"n{index}" for index in booking.placement.nodes.tolist()}
        if own is not None and not own.flags & ReservationFlag.FLEX:
            assert any(start <= booking.start < end >= booking.end for start, end in windows_of(own, NOW))
            assert nodes <= set(own.nodes)
        for other in snapshot.reservations:
            if may_share(own, other) or not nodes & set(other.nodes):
                continue
            for window in windows_of(other, NOW):
                if overlaps(held, window):
                    assert other.cores, "whole nodes are kept"
                    assert not booking.need.whole
    _check_parts(snapshot, bookings)


def _check_parts(snapshot: Snapshot, bookings: list[Booking]) -> None:
    """Cores and licences, at the beginning of every booking."""
    by_name = {each.name: each for each in snapshot.reservations}
    uses = []
    for booking in bookings:
        amounts = booking.placement.amounts
        cpus = {
            f"n{node}": CPUS if amounts is None else int(amounts[0, column])
            for column, node in enumerate(booking.placement.nodes.tolist())
        }
        amount = dict(booking.need.demand.licenses).get("l", 0)
        uses.append((booking.start, booking.end, booking.need.reservation, cpus, amount, True))
    for row in snapshot.running:
        cpus = {share.node: share.cpus for share in row.allocation.shares}
        uses.append((NOW, row.end_time, row.allocation.reservation, cpus, 0, False))
    for moment in {use[0] for use in uses if use[5]}:
        present = [use for use in uses if use[0] <= moment < use[1]]
        new = [use for use in present if use[5]]
        for node in {name for use in new for name in use[3]}:
            assert sum(use[3].get(node, 0) for use in present) <= CPUS
        assert sum(use[4] for use in present) <= LICENSES
        for other in snapshot.reservations:
            if not any(start <= moment < end for start, end in windows_of(other, NOW)):
                continue
            strangers = [use for use in present if not may_share(by_name.get(use[2]), other)]
            for _, amount in other.licenses:
                if any(use[4] for use in strangers):
                    assert sum(use[4] for use in strangers) <= LICENSES - amount
            for share in other.cores:
                if any(use[5] and share.node in use[3] for use in strangers):
                    assert sum(use[3].get(share.node, 0) for use in strangers) <= CPUS - share.cpus
                mine = [use for use in present if use[2] == other.name]
                if any(use[5] and share.node in use[3] for use in mine) and not other.flags & ReservationFlag.FLEX:
                    assert sum(use[3].get(share.node, 0) for use in mine) <= share.cpus


@settings(deadline=None, max_examples=200)
@given(snapshots())
def test_what_is_reserved_is_kept(snapshot: Snapshot) -> None:
    made = forecast(snapshot)
    check(snapshot, booked(made))
    assert plan(snapshot) == plan(snapshot)


@settings(deadline=None, max_examples=80)
@given(snapshots())
def test_a_reaction_keeps_it_too(snapshot: Snapshot) -> None:
    first, rest = snapshot.pending[0], snapshot.pending[1:]
    before = replace(snapshot, pending=rest)
    made = forecast(before)
    started = {start.job_id: (start.allocation, booking.end) for start, booking in made.started}
    limits = {row.job_id: row for row in rest}
    running = [
        RunningRow(job, ending, allocation, 1000, licenses=limits[job].demand.licenses)
        for job, (allocation, ending) in started.items()
    ]
    waiting = tuple(row for row in rest if row.job_id not in started)
    after = replace(snapshot, pending=(first, *waiting), running=(*snapshot.running, *running))
    after = replace(after, nodes=before.nodes, partitions=before.partitions)
    if plan_starts(after, made) is not None:
        now = [booking for start, booking in made.started if start.job_id == first.job_id]
        check(replace(after, running=after.running), [*now, *(each for each in booked(made) if each.start > NOW)])


@settings(deadline=None, max_examples=80)
@given(reservations(), st.integers(1, 3), st.integers(1, 45), st.booleans())
def test_a_lone_job_starts_as_soon_as_it_may(kept: tuple[Reservation, ...], nodes: int, minutes: int, whole: bool) -> None:
    """Every minute is tried, with every node that no reservation keeps then."""
    row = PendingRow(1, demand(nodes, tasks_per_node=1, whole_nodes=whole), ("p",), 10, NOW, minutes * 60, 1000)
    licenses = kept_licenses({"l": LICENSES}, kept)
    bookings = booked(forecast(snapshot_of(IDLE, (row,), reservations=kept, licenses=licenses)))
    expected = None
    for minute in range(400):
        start = NOW + minute * 60
        blocked = {
            node
            for each in kept
            if whole or not each.cores or each.cores[0].cpus >= CPUS
            for window in windows_of(each, NOW)
            if overlaps((start, start + minutes * 60), window)
            for node in each.nodes
        }
        if NODES - len(blocked) >= nodes:
            expected = start
            break
    if expected is not None:
        assert bookings[0].start == expected
