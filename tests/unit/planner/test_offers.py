"""Freed capacity is offered to exactly those who might take it, in order, however the queue is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.planner import offers, reaction
from slurmk.planner.forecast import Forecast
from slurmk.planner.offers import Offers, offers_of
from slurmk.planner.plan import forecast, plan_starts
from slurmk.planner.queue import in_order
from slurmk.planner.snapshot import PendingRow, Snapshot
from tests.benchmarks.plan import demand, mixed


def one_by_one(self: Offers, made: Forecast, index: int) -> Iterator[PendingRow]:
    """All that are promised a start, without a look at what is free."""
    yield from in_order(made.snapshot, [made.rows[job_id] for job_id in list(made.promised)])


def freed(snapshot: Snapshot, ended: set[int], later: int) -> Snapshot:
    running = tuple(row for row in snapshot.running if row.job_id not in ended)
    return replace(snapshot, running=running, time=snapshot.time + later)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(5, 50),
    st.integers(0, 30),
    st.sets(st.integers(1, 12), min_size=1, max_size=6),
    st.integers(0, 5000),
    st.integers(1, 7),
    st.data(),
)
def test_nobody_who_could_start_is_left_out(
    jobs: int, seed: int, ended: set[int], later: int, at_once: int, data: st.DataObject
) -> None:
    changed: dict[int, PendingRow | None] = {}
    for row in data.draw(st.lists(st.sampled_from(mixed(jobs, 24, seed, running=12).pending), max_size=4)):
        changed[row.job_id] = replace(row, priority=data.draw(st.integers(0, 1 << 21)))
    assert_nobody_is_left_out(mixed(jobs, 24, seed, running=12), ended, later, at_once, changed)


def test_what_a_start_leaves_is_offered_to_those_right_behind() -> None:
    """A job that starts now frees what it was promised later, and one that was not looked for before fits."""
    assert_nobody_is_left_out(mixed(32, 24, 6, running=12), {1, 4, 6, 11, 12}, 0, 2, {})


def assert_nobody_is_left_out(
    snapshot: Snapshot, ended: set[int], later: int, at_once: int, changed: dict[int, PendingRow | None]
) -> None:
    rows = {row.job_id: row for row in snapshot.pending} | changed
    after = replace(freed(snapshot, ended, later), pending=tuple(row for row in rows.values() if row is not None))
    looking, knowing = forecast(snapshot), forecast(snapshot)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reaction, "OFFERS", 10**6)
        patch.setattr(offers, "AT_ONCE", at_once)
        patch.setattr(offers, "LOOKED_AT", 2 * at_once)
        answer = plan_starts(after, knowing, changed)
        patch.setattr(Offers, "candidates", one_by_one)
        expected = plan_starts(after, looking, changed)
    assert answer is not None
    assert expected is not None
    assert answer.starts == expected.starts


def test_few_are_looked_at_exactly() -> None:
    snapshot = mixed(2000, 256)
    made = forecast(snapshot)
    wide = replace(snapshot.pending[0], job_id=1, demand=demand(256, whole=True))
    found = offers_of(made)
    found.change(1, wide)
    assert list(found.candidates(made, made.profile.at(made.now))) == [wide], "nothing is free; only what changed is looked at"
    found.change(1, None)
    assert list(found.candidates(made, made.profile.at(made.now))) == []
