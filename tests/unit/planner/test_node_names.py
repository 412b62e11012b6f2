"""Names kept as rows are the same as a tuple of them, to whoever looks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slurmk.model.states import Reason
from slurmk.planner.node_names import NodeNames
from slurmk.planner.snapshot import Outlook

NAMES = np.array([f"n{number}" for number in range(10)], dtype=object)


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)), st.slices(10))
def test_like_a_tuple(rows: list[int], others: list[int], part: slice) -> None:
    kept, plain = NodeNames(NAMES, np.array(rows, dtype=np.int64)), tuple(f"n{row}" for row in rows)
    other = tuple(f"n{row}" for row in others)
    assert kept == plain
    assert plain == kept
    assert hash(kept) == hash(plain)
    assert (kept == other) == (plain == other)
    assert (list(kept), len(kept), bool(kept), kept[part]) == (list(plain), len(plain), bool(plain), plain[part])
    assert [kept[index] for index in range(len(kept))] == list(plain)
    assert repr(kept) == repr(plain)


def test_outlooks_that_say_the_same_are_equal() -> None:
    kept = Outlook(Reason.PRIORITY, 5, NodeNames(NAMES, np.array([1, 2], dtype=np.int64)))
    assert kept == Outlook(Reason.PRIORITY, 5, ("n1", "n2"))
    assert kept != Outlook(Reason.PRIORITY, 5, ("n1", "n3"))
