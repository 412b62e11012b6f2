"""The names of some nodes, kept as their rows: a plan for a long queue of wide jobs names millions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from numpy.typing import NDArray

from slurmk.planner.snapshot import IntArray


class NodeNames(Sequence[str]):
    """Equal to a tuple of the same names. Neither array may be changed afterwards."""

    __slots__ = ("_names", "_rows")

    def __init__(self, names: NDArray[Any], rows: IntArray) -> None:
        """``names`` are those of all nodes, ``rows`` the wanted ones'."""
        self._names = names
        self._rows = rows

    @property
    def rows(self) -> IntArray:
        """The nodes' rows in the table."""
        return self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names[self._rows].tolist())

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self._names[self._rows[index]].tolist())
        name: str = self._names[self._rows[index]]
        return name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeNames | tuple):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[str, ...]], tuple[list[str]]]:
        """Elsewhere it is a tuple: ``names`` are too many to go along."""
        return tuple, (list(self),)

    def __repr__(self) -> str:
        return repr(tuple(self))
