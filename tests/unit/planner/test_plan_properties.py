"""What the planner promises, on random small clusters and queues, against a brute-force planner."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.model.job import Allocation, GresShare, NodeShare
from slurmk.planner.forecast import Forecast
from slurmk.planner.plan import forecast, plan, plan_starts
from slurmk.planner.reaction import NEWCOMERS
from slurmk.planner.snapshot import Demand, PendingRow, RunningRow, Snapshot

sys.path.insert(0, str(Path(__file__).parent))
from brute_force import Book, Holding, Machine, Wish
from small_clusters import NOW, demand, snapshot_of, table


@pytest.fixture(scope="module", autouse=True, params=["numpy", "compiled"])
def form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds of both forms of the profile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("slurmk.planner.forecast.COMPILED_FROM", 0 if request.param == "compiled" else 1 << 60)
        yield


def demand_of_wish(wish: Wish) -> Demand:
    return demand(
        wish.nodes,
        wish.tasks,
        maximum_nodes=wish.maximum_nodes if wish.maximum_nodes < 99 else 1 << 30,
        cpus_per_task=wish.cpus,
        memory_per_cpu=wish.memory // wish.cpus if wish.memory else None,
        gres_per_node=(("gpu", wish.gpus),) if wish.gpus else (),
        whole_nodes=wish.whole,
        licenses=(("matlab", wish.licenses),) if wish.licenses else (),
    )


@st.composite
def wishes(draw: Callable[..., int]) -> Wish:
    nodes = draw(st.integers(1, 3))
    cpus = draw(st.integers(1, 3))
    return Wish(
        nodes=nodes,
        tasks=nodes + draw(st.integers(0, 5)),
        cpus=cpus,
        memory=cpus * draw(st.sampled_from([0, 0, 1, 2])),
        gpus=draw(st.sampled_from([0, 0, 0, 1, 2])),
        whole=bool(draw(st.sampled_from([False, False, True]))),
        duration=draw(st.integers(1, 8)) * 10,
        licenses=draw(st.sampled_from([0, 0, 0, 1, 2])),
        maximum_nodes=nodes + draw(st.integers(0, 1)) if draw(st.booleans()) else 99,
    )


@st.composite
def cases(draw: Callable[..., object]) -> tuple[Snapshot, Machine, list[Holding]]:
    count = draw(st.integers(1, 5))
    nodes = tuple(
        (draw(st.integers(1, 6)), draw(st.integers(1, 12)), draw(st.integers(0, 3)))
        for _ in range(count)  # type: ignore[call-overload]
    )
    machine = Machine(nodes, licenses=2)
    running, holdings = [], []
    for node, (cpus, memory, gpus) in enumerate(nodes):
        kind = draw(st.sampled_from(["idle", "idle", "part", "whole"]))
        if kind == "idle":
            continue
        end = NOW + 10 * draw(st.integers(1, 9))  # type: ignore[operator]
        used = (cpus, memory, gpus) if kind == "whole" else (max(1, cpus // 2), memory // 2, gpus // 2)
        gres = (GresShare("gpu", "", used[2], tuple(range(used[2]))),) if used[2] else ()
        share = NodeShare(f"n{node}", used[0], used[1], 1, gres, tuple(range(used[0])))
        running.append(RunningRow(900 + node, end, Allocation("p", (share,), whole_nodes=kind == "whole"), user_id=1))
        holdings.append(Holding(NOW, end, ((node, used),), whole=kind == "whole"))
    wanted = draw(st.lists(wishes(), min_size=1, max_size=7))
    pending = tuple(
        PendingRow(
            job_id=index + 1,
            demand=demand_of_wish(wish),
            partitions=("p",),
            priority=1000 - index,
            submit_time=NOW - 10,
            time_limit=wish.duration,
            user_id=1,
        )
        for index, wish in enumerate(wanted)  # type: ignore[arg-type, var-annotated]
    )
    return snapshot_of(nodes, pending, tuple(running), licenses={"matlab": 2}), machine, holdings


def wish_of(row: PendingRow) -> Wish:
    demand = row.demand
    return Wish(
        nodes=demand.minimum_nodes,
        tasks=demand.tasks,
        cpus=demand.cpus_per_task,
        memory=(demand.memory_per_cpu or 0) * demand.cpus_per_task,
        gpus=dict(demand.gres_per_node).get("gpu", 0),
        whole=demand.whole_nodes,
        duration=row.time_limit,
        licenses=dict(demand.licenses).get("matlab", 0),
        maximum_nodes=min(demand.maximum_nodes, 99),
    )


def holdings_of(made: Forecast, row: PendingRow) -> list[Holding]:
    """What the plan gives a job, as the brute-force planner keeps it."""
    booked = [booking for start, booking in made.started if start.job_id == row.job_id] + made.promised.get(row.job_id, [])
    gpu = made.compiler.resources.gres["gpu"]
    found = []
    for booking in booked:
        placement = booking.placement
        amounts = made.compiler.resources.capacity[:, placement.nodes] if placement.amounts is None else placement.amounts
        shares = tuple(
            (int(node), (int(amounts[0, column]), int(amounts[1, column]), sum(int(amounts[index, column]) for index in gpu)))
            for column, node in enumerate(placement.nodes)
        )
        whole = placement.amounts is None
        found.append(Holding(booking.start, booking.end, shares, whole, dict(row.demand.licenses).get("matlab", 0)))
    return found


def starts_of(snapshot: Snapshot) -> dict[int, int | None]:
    made = plan(snapshot)
    found = {row.job_id: made.outlooks[row.job_id].start_time for row in snapshot.pending if row.job_id in made.outlooks}
    return found | {start.job_id: snapshot.time for start in made.starts}


@settings(max_examples=400, deadline=None)
@given(cases())
def test_each_job_starts_as_early_as_those_before_it_allow(case: tuple[Snapshot, Machine, list[Holding]]) -> None:
    snapshot, machine, holdings = case
    made = forecast(snapshot)
    starts = starts_of(snapshot)
    book = Book(machine, list(holdings))
    for row in snapshot.pending:
        assert starts[row.job_id] == book.earliest(wish_of(row), NOW), (row, book)
        book.holdings += holdings_of(made, row)
        assert not book.overcommitted()


@settings(max_examples=200, deadline=None)
@given(cases())
def test_each_allocation_satisfies_its_demand(case: tuple[Snapshot, Machine, list[Holding]]) -> None:
    snapshot, _, _ = case
    made = forecast(snapshot)
    for row in snapshot.pending:
        wish = wish_of(row)
        for start, booking in made.started:
            if start.job_id == row.job_id:
                assert start.allocation.tasks == wish.tasks
                assert len(start.allocation.nodes) == len(booking.placement.nodes)
        for held in holdings_of(made, row):
            assert wish.nodes <= len(held.shares) <= wish.maximum_nodes
            assert sum(amounts[0] for _, amounts in held.shares) >= wish.tasks * wish.cpus
            assert sum(amounts[1] for _, amounts in held.shares) >= wish.tasks * wish.memory
            assert all(amounts[2] >= wish.gpus for _, amounts in held.shares)
            assert held.end - held.start == wish.duration


@settings(max_examples=200, deadline=None)
@given(cases())
def test_cpus_and_devices_are_given_to_one_job_only(case: tuple[Snapshot, Machine, list[Holding]]) -> None:
    snapshot, _, _ = case
    allocations = [row.allocation for row in snapshot.running] + [start.allocation for start in plan(snapshot).starts]
    cpus = [(share.node, cpu) for allocation in allocations for share in allocation.shares for cpu in share.cpu_ids]
    devices = [
        (share.node, index)
        for allocation in allocations
        for share in allocation.shares
        for gres in share.gres
        for index in gres.indices
    ]
    assert len(cpus) == len(set(cpus))
    assert len(devices) == len(set(devices))
    for start in plan(snapshot).starts:
        for share in start.allocation.shares:
            assert len(share.cpu_ids) == share.cpus
            assert all(len(gres.indices) == gres.count for gres in share.gres)


@settings(max_examples=100, deadline=None)
@given(cases(), wishes())
def test_a_job_behind_delays_nobody(case: tuple[Snapshot, Machine, list[Holding]], wish: Wish) -> None:
    snapshot, _, _ = case
    behind = PendingRow(99, demand_of_wish(wish), ("p",), 1, NOW, wish.duration, 1)
    more = starts_of(replace(snapshot, pending=(behind, *snapshot.pending)))
    assert {job: start for job, start in more.items() if job != 99} == starts_of(snapshot)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_same_snapshot_same_plan(case: tuple[Snapshot, Machine, list[Holding]]) -> None:
    snapshot, _, _ = case
    assert plan(snapshot) == plan(replace(snapshot, pending=snapshot.pending[::-1]))


@settings(max_examples=200, deadline=None)
@given(cases(), wishes(), st.integers(0, 30), st.data())
def test_a_reaction_keeps_every_promise_and_overcommits_nothing(
    case: tuple[Snapshot, Machine, list[Holding]], wish: Wish, later: int, data: st.DataObject
) -> None:
    snapshot, machine, _ = case
    made = forecast(snapshot)
    first = made.plan()
    promised = {row.job_id: made.promised[row.job_id][0] for row in snapshot.pending if row.job_id in made.promised}
    now = NOW + later
    ended = data.draw(st.sets(st.sampled_from([row.job_id for row in snapshot.running] or [0])))
    rows = {row.job_id: row for row in snapshot.pending}
    started = tuple(
        RunningRow(start.job_id, NOW + start.time_limit, start.allocation, 1, licenses=rows[start.job_id].demand.licenses)
        for start in first.starts
    )
    running = tuple(row for row in snapshot.running + started if row.job_id not in ended and row.end_time > now)
    behind = PendingRow(99, demand_of_wish(wish), ("p",), 1, now, wish.duration, 1)
    left = tuple(row for row in snapshot.pending if row.job_id in first.outlooks)
    second = plan_starts(replace(snapshot, time=now, running=running, pending=(*left, behind)), made)
    assert second is not None
    book = Book(machine)
    for row in running:
        shares = tuple(
            (int(share.node[1:]), (share.cpus, share.memory, sum(gres.count for gres in share.gres)))
            for share in row.allocation.shares
        )
        licenses = dict(row.licenses).get("matlab", 0)
        book.holdings.append(Holding(now, row.end_time, shares, row.allocation.whole_nodes, licenses))
    for row in (*left, behind):
        book.holdings += [replace(held, start=max(held.start, now)) for held in holdings_of(made, row) if held.end > now]
    assert not book.overcommitted()
    starts = {start.job_id for start in second.starts}
    for job_id, booking in promised.items():
        if job_id not in starts and booking.start >= now:
            assert {**first.outlooks, **second.outlooks}[job_id].start_time == booking.start


@settings(max_examples=150, deadline=None)
@given(cases(), wishes(), st.data())
def test_a_reaction_places_nothing_on_nodes_that_changed(
    case: tuple[Snapshot, Machine, list[Holding]], wish: Wish, data: st.DataObject
) -> None:
    snapshot, _, _ = case
    made = forecast(snapshot)
    first = made.plan()
    changed = data.draw(st.lists(st.booleans(), min_size=len(snapshot.nodes.names), max_size=len(snapshot.nodes.names)))
    mask = np.array(changed, dtype=np.bool_)
    nodes = snapshot.nodes
    drained = data.draw(st.booleans())
    nodes = replace(
        nodes,
        available=nodes.available & ~mask if drained else nodes.available,
        foreign_cpus=nodes.foreign_cpus + (0 if drained else mask),
    )
    rows = {row.job_id: row for row in snapshot.pending}
    started = tuple(
        RunningRow(start.job_id, NOW + start.time_limit, start.allocation, 1, licenses=rows[start.job_id].demand.licenses)
        for start in first.starts
    )
    ended = data.draw(st.sets(st.sampled_from([row.job_id for row in snapshot.running] or [0])))
    running = tuple(row for row in snapshot.running + started if row.job_id not in ended)
    left = tuple(row for row in snapshot.pending if row.job_id in first.outlooks)
    behind = PendingRow(99, demand_of_wish(wish), ("p",), 1, NOW, wish.duration, 1)
    second = plan_starts(replace(snapshot, nodes=nodes, running=running, pending=(*left, behind)), made)
    assert second is not None
    names = {name for name, other in zip(nodes.names, changed, strict=True) if other}
    for start in second.starts:
        assert not names & set(start.allocation.nodes)
    assert not names & set(second.outlooks[99].nodes if 99 in second.outlooks else ())


def test_a_reaction_goes_on_when_one_node_changes() -> None:
    snapshot = snapshot_of(((2, 4, 0), (2, 4, 0)), licenses={"matlab": 2})
    taken = replace(snapshot.nodes, foreign_cpus=np.array([2, 0], dtype=np.int64))
    one = PendingRow(1, demand_of_wish(Wish(1, 2, 1, 0, 0, False, 10, 0, 1)), ("p",), 1, NOW, 10, 1)
    two = PendingRow(2, demand_of_wish(Wish(2, 2, 1, 0, 0, False, 10, 0, 2)), ("p",), 1, NOW, 10, 1)
    first = plan_starts(replace(snapshot, nodes=taken, pending=(two, one)), forecast(snapshot))
    assert first is not None
    assert [(start.job_id, start.allocation.nodes) for start in first.starts] == [(1, ("n1",))]
    assert first.outlooks[2].start_time is None, "nothing is promised on a node that is not known"


def test_a_reaction_to_thousands_of_new_jobs_takes_the_first_and_later_the_rest() -> None:
    snapshot = snapshot_of(((1, 9000, 0),))
    wanted = demand_of_wish(Wish(1, 1, 1, 0, 0, False, 10, 0, 1))
    rows = tuple(PendingRow(number, wanted, ("p",), 5000 - number, NOW, 10, 1) for number in range(1, 2001))
    made = forecast(snapshot)
    first = plan_starts(replace(snapshot, pending=rows), made)
    assert first is not None
    assert [start.job_id for start in first.starts] == [1]
    assert set(first.outlooks) == set(range(2, NEWCOMERS + 1))
    held = RunningRow(1, NOW + 10, first.starts[0].allocation, 1)
    second = plan_starts(replace(snapshot, pending=rows[1:], running=(held,)), made)
    assert second is not None
    assert set(second.outlooks) == set(range(NEWCOMERS + 1, 2 * NEWCOMERS + 1))


@settings(max_examples=150, deadline=None)
@given(cases(), wishes(), st.data())
def test_a_reaction_that_is_told_what_changed_says_the_same(
    case: tuple[Snapshot, Machine, list[Holding]], wish: Wish, data: st.DataObject
) -> None:
    snapshot, _, _ = case
    knowing, looking = forecast(snapshot), forecast(snapshot)
    first = knowing.plan()
    ended = data.draw(st.sets(st.sampled_from([row.job_id for row in snapshot.running] or [0])))
    waiting = [row for row in snapshot.pending if row.job_id in first.outlooks]
    changed: dict[int, PendingRow | None] = {start.job_id: None for start in first.starts}
    changed[99] = PendingRow(99, demand_of_wish(wish), ("p",), 1, NOW, wish.duration, 1)
    for row in waiting:
        change = data.draw(st.sampled_from(["", "", "gone", "first", "longer"]))
        if change:
            other = (
                replace(row, priority=row.priority + 100) if change == "first" else replace(row, time_limit=row.time_limit + 5)
            )
            changed[row.job_id] = None if change == "gone" else other
    queue = {**{row.job_id: row for row in waiting}, **changed}
    after = replace(
        snapshot,
        running=tuple(row for row in snapshot.running if row.job_id not in ended),
        pending=tuple(row for row in queue.values() if row is not None),
    )
    answers = plan_starts(after, knowing, changed), plan_starts(after, looking)
    assert answers[0] == answers[1]
    assert knowing.plan() == looking.plan()


def test_other_nodes_need_a_full_plan() -> None:
    snapshot = snapshot_of(((1, 1, 0),))
    more = table(((1, 1, 0), (1, 1, 0)))
    assert plan_starts(replace(snapshot, nodes=more), forecast(snapshot)) is None


if __name__ == "__main__":
    pytest.main([__file__])
