"""What earlier answers say about later questions.

While a plan is made capacity only shrinks. So when a job of some class (everything equal but size and time) was found to
start at ``t`` at the earliest, no job of that class that is as large and as long can start before ``t``. For each class a
table over size and time, both in steps of a factor, holds the latest such ``t``; sizes are rounded up when a bound is
noted and down when one is asked for, which loses a little and is never wrong.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from slurmk.planner.snapshot import IntArray


class Bounds:
    """See the module. Times are Unix seconds; 0 stands for "no bound"."""

    def __init__(self, largest: int, longest: int) -> None:
        """``largest`` size and ``longest`` duration (seconds) worth telling apart; what lies above counts as that."""
        self._sizes = _steps(1, max(largest, 1), 12)
        self._durations = _steps(60, max(longest, 60), 12)
        self._tables: dict[int, IntArray] = {}
        self._exact: dict[tuple[int, int, int], int] = {}

    def earliest(self, size_class: object, size: int, duration: int) -> int:
        """No job of this class, size and duration starts before this."""
        table = self._tables.get(id(size_class))
        if table is None:
            return 0
        bound = self._exact.get((id(size_class), size, duration), 0)
        row, column = bisect_right(self._sizes, size) - 1, bisect_right(self._durations, duration) - 1
        return bound if row < 0 or column < 0 else max(bound, int(table[row, column]))

    def note(self, size_class: object, size: int, duration: int, start: int) -> None:
        """A job of this class was planned at ``start``, and could not have been earlier."""
        table = self._tables.get(id(size_class))
        if table is None:
            table = self._tables[id(size_class)] = np.zeros((len(self._sizes), len(self._durations)), dtype=np.int64)
        self._exact[id(size_class), size, duration] = start
        row, column = bisect_left(self._sizes, size), bisect_left(self._durations, duration)
        if row < len(self._sizes) and column < len(self._durations) and table[row, column] < start:
            np.maximum(table[row:, column:], start, out=table[row:, column:])

    def forget(self) -> None:
        """Capacity was given back: nothing known before holds any more."""
        self._tables.clear()
        self._exact.clear()


def _steps(lowest: int, highest: int, in_double: int) -> list[int]:
    """Ascending numbers from ``lowest`` to ``highest``, about ``in_double`` of them in each doubling."""
    count = int(in_double * max(0, (highest // lowest).bit_length())) + 1
    steps = {min(highest, round(lowest * 2 ** (step / in_double))) for step in range(count)}
    return sorted(steps | {highest})
