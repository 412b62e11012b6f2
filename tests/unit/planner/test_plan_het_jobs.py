"""Components of het jobs: they start at one moment, and nothing is given twice for that."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.model.job import Allocation, NodeShare
from slurmk.model.states import Reason
from slurmk.planner.plan import forecast, plan, plan_starts
from slurmk.planner.snapshot import Demand, PendingRow, RunningRow, Snapshot

sys.path.insert(0, str(Path(__file__).parent))
from brute_force import Book, Holding, Machine, Wish
from small_clusters import NOW, snapshot_of
from test_plan_properties import cases, demand_of_wish, holdings_of

ONE_NODE = Wish(nodes=1, tasks=1, cpus=2, memory=0, gpus=0, whole=False, duration=60)


def component(job_id: int, het: int = 1, demand: Demand | None = None, **fields: object) -> PendingRow:
    demand = demand or demand_of_wish(ONE_NODE)
    row = PendingRow(job_id, demand, ("p",), 100, NOW, 60, 1, component_of=het)
    return replace(row, **fields)


def cluster(*pending: PendingRow, busy_until: int | None = None) -> Snapshot:
    """Two nodes of two CPUs; the second is in use until then."""
    share = NodeShare("n1", 2, 1, 1, (), (0, 1))
    running = () if busy_until is None else (RunningRow(900, busy_until, Allocation("p", (share,)), 1),)
    return snapshot_of(((2, 8, 0), (2, 8, 0)), pending, running)


def test_all_start_when_all_fit() -> None:
    made = plan(cluster(component(1), component(2)))
    assert [start.job_id for start in made.starts] == [1, 2]
    assert {start.allocation.nodes for start in made.starts} == {("n0",), ("n1",)}


def test_none_starts_before_all_fit_and_another_job_may_use_the_hole() -> None:
    behind = component(3, het=0, priority=1, time_limit=30)
    made = plan(cluster(component(1), component(2), behind, busy_until=NOW + 40))
    assert [start.job_id for start in made.starts] == [3]
    assert [made.outlooks[job].start_time for job in (1, 2)] == [NOW + 40, NOW + 40]
    assert made.outlooks[1].reason is Reason.RESOURCES


def test_one_that_can_never_start_keeps_the_others_back() -> None:
    impossible = demand_of_wish(replace(ONE_NODE, nodes=3, tasks=3))
    made = plan(cluster(component(1), component(2, demand=impossible)))
    assert made.starts == ()
    assert made.outlooks[1].reason is made.outlooks[2].reason
    assert made.outlooks[1].start_time is None


def test_one_that_is_held_keeps_the_others_back() -> None:
    made = plan(cluster(component(1), component(2, held_reason=Reason.JOB_HELD_USER)))
    assert made.starts == ()
    assert made.outlooks[1].reason is Reason.NONE  # only the held one says so


def test_more_than_there_ever_is_at_once_is_promised_nothing() -> None:
    made = plan(cluster(component(1), component(2), component(3, time_limit=60)))
    assert made.starts == ()
    assert all(made.outlooks[job].start_time is None for job in (1, 2, 3))


def test_a_reaction_books_a_new_het_job_whole() -> None:
    made = forecast(cluster(busy_until=NOW + 40))
    first = plan_starts(replace(made.snapshot, pending=(component(1), component(2))), made)
    assert first is not None
    assert first.starts == ()
    assert [first.outlooks[job].start_time for job in (1, 2)] == [NOW + 40, NOW + 40]


@settings(max_examples=300, deadline=None)
@given(cases(), st.data())
def test_components_start_at_one_moment(case: tuple[Snapshot, Machine, list[Holding]], data: st.DataObject) -> None:
    snapshot, machine, holdings = case
    groups = [data.draw(st.sampled_from([0, 101, 102])) for _ in snapshot.pending]
    pending = tuple(replace(row, component_of=group) for row, group in zip(snapshot.pending, groups, strict=True))
    made = forecast(replace(snapshot, pending=pending))
    told = made.plan()
    started = {start.job_id for start in told.starts}
    for group in {101, 102}:
        members = [row.job_id for row in pending if row.component_of == group]
        assert not started & set(members) or set(members) <= started
        nodes = [node for start in told.starts if start.job_id in members for node in start.allocation.nodes]
        assert len(nodes) == len(set(nodes))
        assert len({told.outlooks[job].start_time for job in members if job in told.outlooks}) <= 1
    book = Book(machine, list(holdings))
    for row in pending:
        book.holdings += holdings_of(made, row)
    assert not book.overcommitted()


def test_no_two_components_share_a_node() -> None:
    roomy = snapshot_of(((4, 8, 0), (4, 8, 0)), (component(1), component(2)), ())
    made = plan(roomy)
    assert [start.allocation.nodes for start in made.starts] == [("n0",), ("n1",)]
    one_node = plan(snapshot_of(((4, 8, 0),), (component(1), component(2)), ()))
    assert one_node.starts == ()
    assert one_node.outlooks[1].reason is Reason.RESOURCES
    assert one_node.outlooks[1].start_time is None
