"""The profile against a plain table of (time, node) that is filled in the obvious way."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.planner.profile import Profile, pack, rows_of

NODES, END = 3, 30


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, END - 1), st.integers(1, 12), st.integers(0, NODES - 1), st.integers(1, 3)), max_size=12),
    st.data(),
)
def test_what_is_free_is_what_nobody_took(takes: list[tuple[int, int, int, int]], data: st.DataObject) -> None:
    capacity = np.full((2, NODES), 40, dtype=np.int32)
    profile = Profile(0, capacity, np.zeros(0, dtype=np.int64), np.ones((1, NODES), dtype=np.bool_))
    plain = np.full((END + 12, NODES), 40)
    done: list[tuple[int, int, int, int]] = []
    for begin, length, node, amount in takes:
        first, last = profile.at(begin), profile.at(begin + length)
        amounts = np.array([[amount], [0]], dtype=np.int32)
        profile.take_shares(first, last, np.array([node]), amounts)
        plain[begin : begin + length, node] -= amount
        done.append((begin, length, node, amount))
    back = data.draw(st.lists(st.sampled_from(done), unique=True)) if done else []
    for begin, length, node, amount in back:
        first, last = profile.at(begin), profile.at(begin + length)
        profile.give_shares(first, last, np.array([node]), np.array([[amount], [0]], dtype=np.int32))
        plain[begin : begin + length, node] += amount
    for time in range(END + 12):
        index = int(profile.times[: profile.count].searchsorted(time, side="right")) - 1
        assert profile.free[profile.copy[index], 0].tolist() == plain[time].tolist()
        assert profile.cpus[0, index] == plain[time].sum()
        assert profile.idle[0, index] == (plain[time] == 40).sum()
        assert rows_of(~profile.used[profile.row[index]] & pack(np.ones(NODES, dtype=np.bool_))).tolist() == [
            node for node in range(NODES) if plain[time, node] == 40
        ]
