"""Properties of plans by promises, on clusters of nodes with several resources: time passes, jobs end early, others come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from brute_force import Book, Holding, Machine, Wish
from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import NOW
from test_plan_properties import cases, demand_of_wish, holdings_of, wishes

from slurmk.model.states import Reason
from slurmk.planner.forecast import Forecast
from slurmk.planner.plan import forecast, plan
from slurmk.planner.snapshot import Outlook, PendingRow, RunningRow, Snapshot


def told(snapshot: Snapshot, made: Forecast) -> tuple[PendingRow, ...]:
    """What waits after a plan, as the next snapshot has it."""
    outlooks = made.plan().outlooks
    return tuple(as_told(row, outlooks[row.job_id]) for row in snapshot.pending if row.job_id in outlooks)


def as_told(row: PendingRow, outlook: Outlook) -> PendingRow:
    start, nodes, tasks = outlook.start_time, outlook.nodes, outlook.tasks
    return replace(row, planned=start, planned_nodes=nodes, planned_tasks=tasks, promised=outlook.promised)


def held(row: RunningRow, now: int) -> Holding:
    shares = tuple(
        (int(share.node[1:]), (share.cpus, share.memory, sum(gres.count for gres in share.gres)))
        for share in row.allocation.shares
    )
    return Holding(now, row.end_time, shares, row.allocation.whole_nodes, dict(row.licenses).get("matlab", 0))


def started(made: Forecast, now: int) -> tuple[RunningRow, ...]:
    rows = made.rows | {row.job_id: row for row in made.snapshot.pending}
    return tuple(
        RunningRow(start.job_id, now + start.time_limit, start.allocation, 1, licenses=rows[start.job_id].demand.licenses)
        for start in made.starts
    )


def overcommitted(machine: Machine, made: Forecast) -> bool:
    """Whether what runs, what the plan starts and what it books hold more than there is at any moment."""
    now = made.now
    running = (*made.snapshot.running, *started(made, now))
    book = Book(machine, [held(row, now) for row in running])
    promised = [row for row in made.snapshot.pending if row.job_id in made.promised]
    for row in promised:
        book.holdings += [each for each in holdings_of(made, row) if each.start > now]
    return bool(book.overcommitted())


@settings(max_examples=150, deadline=None)
@given(cases(), st.lists(wishes(), max_size=4), st.data())
def test_promises_are_kept_while_jobs_come_and_go(
    case: tuple[Snapshot, Machine, list[Holding]], later: list[Wish], data: st.DataObject
) -> None:
    first, machine, _ = case
    snapshot = replace(first, by_promises=True)
    promised: dict[int, int] = {}
    number = 100
    for _ in range(5):
        made = forecast(snapshot)
        assert not overcommitted(machine, made)
        now = snapshot.time
        for row in snapshot.pending:
            outlook = made.plan().outlooks.get(row.job_id)
            planned = now if outlook is None else outlook.start_time
            if planned is None or row.held_reason is not Reason.NONE:
                continue
            latest = now if outlook is None else outlook.promised
            assert latest is not None
            assert planned <= promised.setdefault(row.job_id, latest)
        running = (*snapshot.running, *started(made, now))
        waiting = told(snapshot, made)
        moments = [row.end_time for row in running] + [now + 7]
        now = min(data.draw(st.sampled_from(moments)), *(row.planned or now + 7 for row in waiting), now + 10**6)
        now = max(now, snapshot.time + 1)
        running = tuple(row for row in running if row.end_time > now and not data.draw(st.booleans()))
        new = []
        if later:
            wish = later.pop()
            number += 1
            new = [PendingRow(number, demand_of_wish(wish), ("p",), 900 - number, now, wish.duration, 1)]
        snapshot = replace(snapshot, time=now, running=running, pending=(*waiting, *new), longest_wait=now - NOW)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_same_snapshot_same_plan(case: tuple[Snapshot, Machine, list[Holding]]) -> None:
    snapshot = replace(case[0], by_promises=True)
    assert plan(snapshot) == plan(replace(snapshot, pending=snapshot.pending[::-1]))


@settings(max_examples=100, deadline=None)
@given(cases())
def test_priorities_that_say_more_than_who_came_first_rule(case: tuple[Snapshot, Machine, list[Holding]]) -> None:
    snapshot = case[0]
    turned = tuple(replace(row, priority=5000 - row.priority) for row in snapshot.pending)
    if len(turned) < 2:
        return
    turned = tuple(replace(row, submit_time=NOW - 100 + index) for index, row in enumerate(turned))
    by_priority = replace(snapshot, pending=turned)
    assert plan(replace(by_priority, by_promises=True)) == plan(by_priority)


if __name__ == "__main__":
    pytest.main([__file__])
