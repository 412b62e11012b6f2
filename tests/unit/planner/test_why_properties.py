"""What ``slurmk why`` tells is true: the start of the job is the plan's, and so is that of every smaller request told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from brute_force import Holding, Machine, Wish
from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import NOW
from test_plan_properties import cases, demand_of_wish, wishes

from grammar.times import parse_duration
from slurmk.model.states import Reason
from slurmk.planner.plan import plan
from slurmk.planner.snapshot import PendingRow, Snapshot
from slurmk.planner.why import Question, Try, explain


@pytest.fixture(scope="module", autouse=True, params=["numpy", "compiled"])
def form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds of both forms of the profile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("slurmk.planner.forecast.COMPILED_FROM", 0 if request.param == "compiled" else 1 << 60)
        yield


def start_of(snapshot: Snapshot, job_id: int) -> int | None:
    made = plan(snapshot)
    return snapshot.time if job_id in {start.job_id for start in made.starts} else made.outlooks[job_id].start_time


def with_row(snapshot: Snapshot, row: PendingRow) -> Snapshot:
    return replace(snapshot, pending=tuple(row if each.job_id == row.job_id else each for each in snapshot.pending))


def longer(snapshot: Snapshot) -> Snapshot:
    """The same with durations of minutes, which is what time limits are."""
    pending = tuple(replace(row, time_limit=row.time_limit * 60) for row in snapshot.pending)
    running = tuple(replace(row, end_time=NOW + (row.end_time - NOW) * 60) for row in snapshot.running)
    return replace(snapshot, pending=pending, running=running)


@settings(max_examples=80, deadline=None)
@given(cases(), st.lists(wishes(), max_size=6), st.booleans(), st.data())
def test_the_starts_told_are_those_of_plans(
    case: tuple[Snapshot, Machine, list[Holding]], wanted: list[Wish], promises: bool, data: st.DataObject
) -> None:
    snapshot = replace(longer(case[0]), by_promises=promises)
    row = data.draw(st.sampled_from(snapshot.pending))
    rows = {f"try {number}": replace(row, demand=demand_of_wish(wish)) for number, wish in enumerate(wanted)}
    tries = tuple(Try(data.draw(st.sampled_from("ab")), change, changed) for change, changed in rows.items())
    before = plan(snapshot)
    told = explain(Question(snapshot, row, tries))
    assert told.complete
    assert plan(snapshot) == before, "asking changes nothing"
    own = start_of(snapshot, row.job_id)
    assert (NOW if told.outlook.reason is Reason.NONE else told.outlook.start_time) == own
    for better in told.smaller:
        if better.change in rows:
            changed = rows[better.change]
        else:
            minutes = parse_duration(better.change.removeprefix("--time="))
            changed = replace(row, time_limit=minutes * 60)
            assert changed.time_limit < row.time_limit
        assert start_of(with_row(snapshot, changed), row.job_id) == better.start
        assert own is None or better.start < own
    if not promises and told.smaller and own is not None:
        for better in told.smaller:
            if better.change.startswith("--time="):
                limit = parse_duration(better.change.removeprefix("--time=")) * 60 + 60
                if limit < row.time_limit:
                    later = start_of(with_row(snapshot, replace(row, time_limit=limit)), row.job_id)
                    assert later is None or later > better.start, "it is told the longest limit that will do"


@settings(max_examples=50, deadline=None)
@given(cases(), st.data())
def test_those_before_it_are_what_delays_it(case: tuple[Snapshot, Machine, list[Holding]], data: st.DataObject) -> None:
    snapshot = case[0]
    row = data.draw(st.sampled_from(snapshot.pending))
    told = explain(Question(snapshot, row))
    alone = replace(snapshot, pending=(row,))
    own = told.outlook.start_time
    if own is not None and start_of(alone, row.job_id) != own:
        gone = {each.job_id for each in told.ahead}
        rest = replace(snapshot, pending=tuple(each for each in snapshot.pending if each.job_id not in gone))
        earliest = start_of(rest, row.job_id)
        assert gone
        assert earliest is not None
        assert earliest <= own
    ahead = [snapshot.pending.index(next(each for each in snapshot.pending if each.job_id == one.job_id)) for one in told.ahead]
    assert all(place < snapshot.pending.index(row) for place in ahead)
    running = {each.job_id for each in snapshot.running}
    assert {job_id for job_id, _ in told.holders} <= running


@settings(max_examples=30, deadline=None)
@given(cases(), st.integers(0, 12), st.data())
def test_what_is_known_when_time_runs_out_is_told(
    case: tuple[Snapshot, Machine, list[Holding]], asked: int, data: st.DataObject
) -> None:
    snapshot = case[0]
    row = data.draw(st.sampled_from(snapshot.pending))
    answers = iter([True] * asked)
    made = plan(snapshot).outlooks.get(row.job_id)
    told = explain(Question(snapshot, row, (), made), lambda: next(answers, False))
    if not told.complete:
        assert told.outlook == (made or told.outlook)
        assert not told.ahead
        assert not told.smaller
    assert told.position == snapshot.pending.index(row) + 1


@settings(max_examples=50, deadline=None)
@given(cases(), st.data())
def test_what_is_lacking_is_what_is_not_free(case: tuple[Snapshot, Machine, list[Holding]], data: st.DataObject) -> None:
    """A job that is first in the queue starts now exactly when every way to run it has enough of all that is counted."""
    snapshot = case[0]
    row = data.draw(st.sampled_from(snapshot.pending))
    alone = replace(snapshot, pending=(row,))
    told = explain(Question(alone, row))
    rooms = [room for room in told.rooms if room.suitable[-1][1] >= room.wanted_nodes]
    enough = [
        room
        for room in rooms
        if room.free >= room.wanted_nodes
        and room.free_tasks >= room.wanted_tasks
        and all(each.left >= each.wanted for each in room.licenses)
    ]
    if start_of(alone, row.job_id) == NOW:
        assert enough
    for room in rooms:
        would_do = room.suitable[-1][1]
        assert room.free <= would_do
        assert room.free == would_do or room.short, "what is not free lacks something that is named"
        assert sum(count for _, count in room.short) >= would_do - room.free
