"""What is free over time in a replay keeps no border where nothing changes, so that it stays as small as the queue."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.planner.profile import FOREVER
from slurmk.planner.simulator.kernel import Level, earliest, take
from slurmk.planner.simulator.replay import Policy, replay
from slurmk.planner.simulator.trace import Machine, Record, trace_of

PROCESSORS = 16

uses = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(1, 4)), min_size=1, max_size=12)


@settings(max_examples=200, deadline=None)
@given(uses, st.integers(0, 11), st.integers(1, PROCESSORS), st.integers(1, 30))
def test_levels_are_what_is_in_use(taken: list[tuple[int, int, int]], back: int, size: int, duration: int) -> None:
    level = Level(np.full(64, FOREVER, np.int64), np.zeros(64, np.int64))
    level.times[0], level.free[0], count = 0, 4 * PROCESSORS, 1
    for start, length, amount in taken:
        count = take(level, count, start, start + length, amount)
    given_back = taken[:back]
    for start, length, amount in given_back:
        count = take(level, count, start, start + length, -amount)
    free = [
        4 * PROCESSORS - sum(amount for start, length, amount in taken[back:] if start <= t < start + length)
        for t in range(200)
    ]
    changes = [0, *(time for time in range(1, 200) if free[time] != free[time - 1])]
    assert level.times[:count].tolist() == changes
    assert level.free[:count].tolist() == [free[time] for time in changes]
    fits = (time for time in range(200) if min(free[time : time + duration]) >= size)
    assert earliest(level, count, 0, size, duration) == next(fits)


def test_a_flood_whose_planned_starts_move_again_and_again() -> None:
    records = [
        Record(str(number), number // 3, 1 + number * 7 % 400, 400 + number * 37 % 9000, 1 + number * 5 % 4)
        for number in range(1500)
    ]
    outcome = replay(trace_of(records, Machine(PROCESSORS)), Policy.CONSERVATIVE)
    assert (outcome.starts <= outcome.promised).all()
    assert (outcome.starts >= outcome.trace.submit).all()
