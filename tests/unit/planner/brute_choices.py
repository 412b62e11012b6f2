"""Which sets of nodes, and which times, a request leaves: tried one by one, with no thought of speed.

Beside ``brute_force`` this knows features with counts, matching OR, named and excluded nodes, neighbours, switches, the least
time, and deadlines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from brute_force import Book


@dataclass(frozen=True)
class Ask:
    """``ways`` are alternatives, each: nodes that will do, and how many there must be of certain ones. ``patience`` is the
    moment from which on more than ``switches`` leaf switches will do."""

    nodes: int
    most: int
    tasks: int
    whole: bool
    duration: int
    least: int | None = None
    deadline: int | None = None
    ways: tuple[tuple[frozenset[int], tuple[tuple[frozenset[int], int], ...]], ...] = ()
    required: frozenset[int] = frozenset()
    neighbours: bool = False
    switches: int = 0
    patience: int = 0


@dataclass
class Chooser:
    """``leaves`` are the leaf switch of each node."""

    book: Book
    leaves: tuple[int, ...]

    def tasks_on(self, ask: Ask, node: int, start: int, duration: int) -> int:
        """The tasks, of one CPU each, that the node can hold all the time."""
        least = ask.tasks
        for moment in self.book.instants(start, start + duration):
            cpus, _, _, alone = self.book.free(node, moment)
            if ask.whole and not alone:
                return 0
            least = min(least, cpus)
        return max(least, 0)

    def allowed(self, ask: Ask, start: int) -> Iterator[tuple[int, ...]]:
        """Every set of nodes that the request leaves, whatever is free on them."""
        count = len(self.leaves)
        for size in range(ask.nodes, min(ask.most, count) + 1):
            for chosen in combinations(range(count), size):
                if ask.neighbours and chosen[-1] - chosen[0] != size - 1:
                    continue
                if not ask.required <= set(chosen):
                    continue
                if ask.switches and start < ask.patience and len({self.leaves[node] for node in chosen}) > ask.switches:
                    continue
                if any(
                    set(chosen) <= good and all(len(set(chosen) & some) >= number for some, number in groups)
                    for good, groups in ask.ways
                ):
                    yield chosen

    def possible(self, ask: Ask, start: int, duration: int) -> bool:
        if ask.deadline is not None and start + duration > ask.deadline:
            return False
        room = [self.tasks_on(ask, node, start, duration) for node in range(len(self.leaves))]
        return any(
            min(room[node] for node in chosen) > 0 and sum(room[node] for node in chosen) >= ask.tasks
            for chosen in self.allowed(ask, start)
        )

    def starts(self, ask: Ask, now: int) -> list[int]:
        """When it could begin at all: now, when something ends, when patience does."""
        ends = {held.end for held in self.book.holdings}
        return sorted({now} | {moment for moment in ends | {ask.patience} if moment > now})

    def earliest(self, ask: Ask, now: int) -> tuple[int, int] | None:
        """The first start that is possible, and for how long it can have its nodes there."""
        full = next((start for start in self.starts(ask, now) if self.possible(ask, start, ask.duration)), None)
        if ask.least is None or full == now:
            return None if full is None else (full, ask.duration)
        short = next((start for start in self.starts(ask, now) if self.possible(ask, start, ask.least)), None)
        if short is None or (full is not None and full <= short):
            return None if full is None else (full, ask.duration)
        changes = {held.start for held in self.book.holdings} | {held.end for held in self.book.holdings}
        lengths = {moment - short for moment in changes if ask.least < moment - short < ask.duration}
        if ask.deadline is not None:
            lengths.add(min(ask.deadline - short, ask.duration))
        fitting = [length for length in lengths | {ask.duration} if self.possible(ask, short, length)]
        return short, max([ask.least, *fitting])
