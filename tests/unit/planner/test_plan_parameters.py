"""SchedulerParameters that change a plan: nobody passes, busy nodes first, serial jobs at the end, the priority of het jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import NOW, demand, partition, snapshot_of

from slurmk.model.job import Allocation, NodeShare
from slurmk.model.quotas import Quota, QuotaLimit
from slurmk.model.states import Reason
from slurmk.planner.attention import Bounds, bounds_of
from slurmk.planner.forecast import Forecast
from slurmk.planner.plan import plan, plan_starts
from slurmk.planner.queue import in_order
from slurmk.planner.snapshot import PendingRow, RunningRow

FOUR = ((4, 4000, 0),) * 4


def waiting(number: int, nodes: int = 1, *, minutes: int = 10, name: str = "p", tasks: int = 0, **more: object) -> PendingRow:
    whole = more.pop("whole_nodes", True)
    return PendingRow(
        job_id=number,
        demand=demand(nodes, tasks, whole_nodes=whole),
        partitions=(name,),
        priority=1000 - number,
        submit_time=NOW - 100 + number,
        time_limit=minutes * 60,
        user_id=1,
        **more,  # type: ignore[arg-type]
    )


def running(number: int, node: int, minutes: int, cpus: int = 4) -> RunningRow:
    share = NodeShare(f"n{node}", cpus, 0, 1, cpu_ids=tuple(range(cpus)))
    return RunningRow(number, NOW + minutes * 60, Allocation("p", (share,), whole_nodes=cpus == 4), 1)


def test_nobody_passes_without_backfill() -> None:
    """A short job that fits beside a waiting wide one starts at once with backfill, and after it without."""
    rows = (waiting(1, 4, minutes=60), waiting(2, 1, minutes=5))
    snapshot = snapshot_of(FOUR, rows, (running(9, 0, 30),))
    assert [start.job_id for start in plan(snapshot).starts] == [2]
    in_turn = plan(replace(snapshot, bounds=Bounds(in_turn=True)))
    assert not in_turn.starts
    assert in_turn.outlooks[1].start_time == NOW + 1800
    assert in_turn.outlooks[2].start_time == NOW + 1800 + 3600
    assert in_turn.outlooks[2].reason is Reason.PRIORITY


def test_those_of_other_partitions_pass_without_backfill() -> None:
    rows = (waiting(1, 4, minutes=60), waiting(2, 1, minutes=5, name="other"))
    parts = (partition(4), partition(4, "other"))
    snapshot = snapshot_of(FOUR, rows, (running(9, 0, 30),), partitions=parts, bounds=Bounds(in_turn=True))
    assert [start.job_id for start in plan(snapshot).starts] == [2]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=2, max_size=7), st.integers(0, 3))
def test_without_backfill_starts_are_in_order(sizes: list[tuple[int, int]], busy: int) -> None:
    rows = tuple(waiting(number, nodes, minutes=minutes) for number, (nodes, minutes) in enumerate(sizes, 1))
    held = tuple(running(100 + node, node, 7 * (node + 1)) for node in range(busy))
    made = plan(snapshot_of(FOUR, rows, held, bounds=Bounds(in_turn=True)))
    now = {start.job_id for start in made.starts}
    starts = [NOW if row.job_id in now else made.outlooks[row.job_id].start_time or 0 for row in rows]
    assert starts == sorted(starts)


def test_freed_nodes_are_not_given_to_those_behind_without_backfill() -> None:
    rows = (waiting(1, 4, minutes=60), waiting(2, 1, minutes=5))
    held = (running(8, 1, 50), running(9, 0, 30))
    snapshot = snapshot_of(FOUR, rows, held, bounds=Bounds(in_turn=True))
    forecast = Forecast(snapshot)
    forecast.book_all(in_order(snapshot, rows))
    reacted = plan_starts(replace(snapshot, running=held[:1], snapshot_id=2), forecast)
    assert reacted is not None
    assert not reacted.starts


def test_one_who_waits_for_a_limit_is_passed_unless_that_stops_the_partition() -> None:
    """Account a may have two CPUs and has them; behind its next job waits one of nobody's."""
    quota = Quota("account a", (QuotaLimit("cpu", 2000, 0),), accounts=frozenset({"a"}))
    held = (replace(running(90, 3, 30, cpus=2), account="a"),)
    rows = (waiting(1, whole_nodes=False, account="a"), waiting(2, whole_nodes=False))
    snapshot = snapshot_of(FOUR, rows, held, quotas=(quota,))
    assert [start.job_id for start in plan(snapshot).starts] == [2]
    stopped = plan(replace(snapshot, bounds=Bounds(limited_stop=True)))
    assert not stopped.starts
    assert stopped.outlooks[1].start_time == stopped.outlooks[2].start_time == NOW + 1800
    other = replace(rows[1], partitions=("other",))
    parts = (partition(4), partition(4, "other"))
    apart = replace(snapshot, pending=(rows[0], other), partitions=parts, bounds=Bounds(limited_stop=True))
    assert [start.job_id for start in plan(apart).starts] == [2]


def test_busy_nodes_are_taken_for_later() -> None:
    """With bf_busy_nodes a job that has to wait is planned on nodes that are in use, so that others stay free."""
    held = tuple(running(90 + node, node, 30, cpus=3) for node in (2, 3))
    rows = (waiting(1, 2, minutes=60, eligible_time=NOW + 3600),)
    snapshot = snapshot_of(FOUR, rows, held)
    assert plan(snapshot).outlooks[1].nodes == ("n0", "n1")
    assert plan(replace(snapshot, bounds=Bounds(busy_nodes=True))).outlooks[1].nodes == ("n2", "n3")


def test_what_starts_now_takes_no_heed_of_busy_nodes() -> None:
    held = (running(90, 3, 30, cpus=1),)
    rows = (waiting(1, 1, whole_nodes=False),)
    for bounds in (Bounds(), Bounds(busy_nodes=True)):
        (start,) = plan(snapshot_of(FOUR, rows, held, bounds=bounds)).starts
        assert start.allocation.nodes == ("n0",)


def test_serial_jobs_are_packed_at_the_end() -> None:
    rows = (waiting(1, whole_nodes=False), waiting(2, tasks=2, whole_nodes=False), waiting(3, whole_nodes=False))
    made = plan(snapshot_of(FOUR, rows, bounds=Bounds(serial_at_end=True)))
    assert [start.allocation.nodes for start in made.starts] == [("n3",), ("n0",), ("n3",)]


@pytest.mark.parametrize(("which", "order"), [("", [1, 2, 3]), ("max", [1, 3, 2]), ("min", [2, 1, 3]), ("avg", [1, 3, 2])])
def test_the_priority_of_a_het_job(which: str, order: list[int]) -> None:
    """Components of priorities 900 and 100 beside a job of 400: together they are 100, 500 or 900."""
    rows = (
        replace(waiting(1), priority=900, component_of=1),
        replace(waiting(2), priority=400),
        replace(waiting(3), priority=100, component_of=1),
    )
    snapshot = snapshot_of(FOUR, rows, bounds=Bounds(het_priority=which))
    assert [row.job_id for row in in_order(snapshot, rows)] == order


def test_words_become_bounds() -> None:
    assert bounds_of({}) == Bounds()
    assert bounds_of({"bf_interval": "-1"}).in_turn
    assert bounds_of({}, builtin=True).in_turn
    assert bounds_of({"bf_hetjob_prio": "avg"}).het_priority == "avg"
    assert bounds_of({"bf_hetjob_prio": "most"}).het_priority == ""
    assert bounds_of({"bf_hetjob_immediate": ""}).het_priority == "min"
    words = bounds_of({"assoc_limit_stop": "", "bf_busy_nodes": "", "pack_serial_at_end": "", "bf_max_job_user": "3"})
    assert (words.limited_stop, words.busy_nodes, words.serial_at_end, words.per_user) == (True, True, True, 3)
