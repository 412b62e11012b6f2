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

_SIZES = sorted({round(2 ** (step / 6)) for step in range(6 * 18)})
_TIMES = sorted({round(60 * 2 ** (step / 5)) for step in range(5 * 20)})


class Bounds:
    """See the module. Times are Unix seconds; 0 stands for "no bound"."""

    def __init__(self) -> None:
        self._tables: dict[int, IntArray] = {}
        self._exact: dict[tuple[int, int, int], int] = {}

    def earliest(self, size_class: object, size: int, duration: int) -> int:
        """No job of this class, size and duration starts before this."""
        table = self._tables.get(id(size_class))
        if table is None:
            return 0
        bound = self._exact.get((id(size_class), size, duration), 0)
        row, column = bisect_right(_SIZES, size) - 1, bisect_right(_TIMES, duration) - 1
        return bound if row < 0 or column < 0 else max(bound, int(table[row, column]))

    def note(self, size_class: object, size: int, duration: int, start: int) -> None:
        """A job of this class was planned at ``start``, and could not have been earlier."""
        table = self._tables.get(id(size_class))
        if table is None:
            table = self._tables[id(size_class)] = np.zeros((len(_SIZES), len(_TIMES)), dtype=np.int64)
        self._exact[id(size_class), size, duration] = start
        row, column = bisect_left(_SIZES, size), bisect_left(_TIMES, duration)
        if row < len(_SIZES) and column < len(_TIMES) and table[row, column] < start:
            np.maximum(table[row:, column:], start, out=table[row:, column:])

    def forget(self) -> None:
        """Capacity was given back: nothing known before holds any more."""
        self._tables.clear()
        self._exact.clear()
