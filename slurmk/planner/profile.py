"""Free capacity over time: what a plan is made on, and what each decision of the plan shrinks.

Time is cut into segments at every instant where something begins or ends; the last one never ends. A segment says, of
each node, whether a job has all of it (``taken``), whether any job is on it (``used``), both as bits, and how much is
free of each resource (``free``). Whole-node jobs change the bits alone, and segments whose ``free`` is equal share one
copy until a job that shares nodes makes them differ. Beside each segment stand sums over pools of nodes (one pool a
partition): how many nodes are idle and how many CPUs are free. They never say less than is there, so a scan over these
two columns finds the few instants that are worth an exact look.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slurmk.planner.snapshot import BoolArray, IntArray

if TYPE_CHECKING:
    from slurmk.planner.placement import Placement
    from slurmk.planner.requirement import Requirement

CHUNK = 32
"""Possible starts that are looked at together."""

FOREVER = 1 << 60
"""An end that never comes."""

Bits = NDArray[np.uint64]
Counts = NDArray[np.int32]


def pack(mask: BoolArray) -> Bits:
    """A mask of nodes as 64-bit words; bit ``n % 64`` of word ``n // 64`` is node ``n``."""
    words = -(-len(mask) // 64)
    padded = np.zeros(words * 64, dtype=np.bool_)
    padded[: len(mask)] = mask
    return np.packbits(padded, bitorder="little").view(np.uint64)


def rows_of(bits: Bits) -> IntArray:
    """The nodes whose bit is set, in ascending order."""
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))


class Profile:
    """See the module. ``capacity`` is [resources, nodes]; resource 0 is CPUs. ``licenses`` are totals by column."""

    places = False
    """Whether it places plain requirements itself (``place``)."""

    def __init__(self, start: int, capacity: Counts, licenses: IntArray, pools: BoolArray) -> None:
        resources, nodes = capacity.shape
        self.words = -(-nodes // 64)
        self.count = 1
        room = 1024
        self.times = np.full(room, FOREVER, dtype=np.int64)
        self.times[0] = start
        self.row = np.zeros(room, dtype=np.intp)  # of taken and used
        self.copy = np.zeros(room, dtype=np.intp)  # of free
        self.taken = np.zeros((room, self.words), dtype=np.uint64)
        self.used = np.zeros((room, self.words), dtype=np.uint64)
        self.free = np.zeros((64, resources, nodes), dtype=np.int32)
        self.free[0] = capacity
        self.copies = 1
        self.capacity = capacity
        self.pools = np.array([pack(pool) for pool in pools], dtype=np.uint64).reshape(len(pools), self.words)
        self.pool_masks = pools
        self.one_pool = len(pools) == 1 and bool(pools.all())
        self.idle = np.zeros((len(pools), room), dtype=np.int64)
        self.cpus = np.zeros((len(pools), room), dtype=np.int64)
        self.idle[:, 0] = pools.sum(axis=1)
        self.cpus[:, 0] = (pools * capacity[0]).sum(axis=1)
        self.licenses = np.zeros((len(licenses), room), dtype=np.int64)
        self.licenses[:, 0] = licenses

    # ------------------------------------------------------------------------------------------ segments

    def at(self, time: int) -> int:
        """The segment that begins at ``time``, made by cutting one in two if none does. Not before the profile starts."""
        index = int(self.times[: self.count].searchsorted(time))
        if index < self.count and self.times[index] == time:
            return index
        if self.count + 1 >= len(self.times):
            self._grow()
        count = self.count
        for array in (self.times, self.row, self.copy):
            array[index + 1 : count + 1] = array[index:count]
        for table in (self.idle, self.cpus, self.licenses):
            table[:, index + 1 : count + 1] = table[:, index:count]
            table[:, index] = table[:, index - 1]
        before = self.row[index - 1]
        self.times[index], self.row[index], self.copy[index] = time, count, self.copy[index - 1]
        self.taken[count], self.used[count] = self.taken[before], self.used[before]
        self.count = count + 1
        return index

    def _grow(self) -> None:
        room = 2 * len(self.times)
        for name in ("times", "row", "copy"):
            old = getattr(self, name)
            new = np.full(room, FOREVER if name == "times" else 0, dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        for name in ("taken", "used"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate((old, np.zeros_like(old))))
        for name in ("idle", "cpus", "licenses"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate((old, np.zeros_like(old)), axis=1))

    def end(self, first: int, duration: int) -> int:
        """One past the last segment that a job of ``duration`` seconds touches when it starts with segment ``first``."""
        return int(self.times[: self.count].searchsorted(self.times[first] + duration))

    # ------------------------------------------------------------------------------------------ questions

    def starts(self, need: Requirement, first: int, end: int, duration: int) -> Iterator[tuple[int, int, Bits]]:
        """Of the segments ``first`` to ``end - 1`` those from which enough nodes and CPUs stay free for ``duration`` seconds,
        each with the end of its stretch and its open nodes. Never leaves out a possible start; may give more."""
        levels = self.idle[need.pool] if need.whole else self.cpus[need.pool]
        wanted = need.needed_nodes if need.whole else need.needed_cpus
        width = CHUNK
        while first < end:
            stop = min(first + width, end)
            yield from self._starts(need, levels, wanted, first, stop, duration)
            first, width = stop, min(2 * width, 8 * CHUNK)

    def _starts(
        self, need: Requirement, levels: IntArray, wanted: int, first: int, stop: int, duration: int
    ) -> Iterator[tuple[int, int, Bits]]:
        """A look at many at once."""
        firsts, lasts = self.candidates(levels, wanted, first, stop, duration)
        if not len(firsts):
            return
        bits = self.open_through(firsts, lasts, idle=need.whole)
        bits &= need.bits
        some = (np.bitwise_count(bits).sum(axis=1, dtype=np.int64) >= need.needed_nodes).nonzero()[0]
        if len(some) > 1 and not need.whole and not need.demand.overcommit and need.shared_row is None:
            some = some[self._enough_cpus(need, firsts[some], lasts[some], bits[some])]
        for position in some.tolist():
            yield int(firsts[position]), int(lasts[position]), bits[position]

    def _enough_cpus(self, need: Requirement, firsts: IntArray, lasts: IntArray, bits: Bits) -> BoolArray:
        """Whether the CPUs that stay free on the open nodes hold the tasks."""
        nodes = rows_of(np.bitwise_or.reduce(bits, axis=0))
        cpus = self.least_cpus(firsts, lasts, nodes)
        inside = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, nodes]
        if need.cpus_per_task > 1:
            cpus //= need.cpus_per_task
        enough: BoolArray = (cpus * inside).sum(axis=1) >= need.tasks
        return enough

    def candidates(self, levels: IntArray, need: int, low: int, high: int, duration: int) -> tuple[IntArray, IntArray]:
        """Those of the segments ``low`` to ``high - 1`` from which ``levels`` (a row of ``idle`` or ``cpus``) stays at
        ``need`` or more for ``duration`` seconds, and for each one past the last segment that it takes."""
        times = self.times[: self.count]
        lasts: IntArray = times.searchsorted(times[low:high] + duration)
        short = (levels[low : lasts[-1]] < need).nonzero()[0]
        if not len(short):
            return np.arange(low, high), lasts
        short += low
        firsts = np.arange(low, high)
        following = short.searchsorted(firsts)
        fits = (following == len(short)) | (lasts <= short[np.minimum(following, len(short) - 1)])
        return firsts[fits], lasts[fits]

    def idle_bits(self, first: int, last: int) -> Bits:
        """Nodes without any job through segments ``first`` to ``last - 1``."""
        bits: Bits = ~np.bitwise_or.reduce(self.used[self.row[first:last]], axis=0)
        return bits

    def shareable_bits(self, first: int, last: int) -> Bits:
        """Nodes that no job has all of, through these segments."""
        bits: Bits = ~np.bitwise_or.reduce(self.taken[self.row[first:last]], axis=0)
        return bits

    def open_through(self, firsts: IntArray, lasts: IntArray, *, idle: bool) -> Bits:
        """[starts, words]: what ``idle_bits`` (or ``shareable_bits``) says for many stretches of segments at once.

        ``firsts`` are ascending; each stretch ends before its entry of ``lasts``."""
        begin, stop = int(firsts[0]), int(lasts.max())
        rows = np.empty(stop - begin + 1, dtype=np.intp)
        rows[:-1] = self.row[begin:stop]
        rows[-1] = rows[0]  # never used: reduceat wants every bound to be an index
        table = (self.used if idle else self.taken).take(rows, axis=0)
        bits: Bits = ~np.bitwise_or.reduceat(table, _pairs(firsts - begin, lasts - begin), axis=0)[::2]
        return bits

    def least_cpus(self, firsts: IntArray, lasts: IntArray, nodes: IntArray) -> Counts:
        """[starts, nodes]: the fewest CPUs free there through each stretch, where no job has all of the node."""
        begin, stop = int(firsts[0]), int(lasts.max())
        copies = self.copy[begin:stop]
        changes = np.empty(len(copies), dtype=np.bool_)
        changes[0] = True
        np.not_equal(copies[1:], copies[:-1], out=changes[1:])
        run = np.cumsum(changes) - 1
        different = np.append(copies[changes], copies[0])
        table = self.free[different[:, None], 0, nodes]
        pairs = _pairs(run[firsts - begin], run[lasts - begin - 1] + 1)
        least: Counts = np.minimum.reduceat(table, pairs, axis=0)[::2]
        return least

    def least_free(self, first: int, last: int, nodes: IntArray) -> Counts:
        """[resources, nodes]: what stays free of each resource through these segments, where no job has all of the node."""
        copies = self.copy[first:last]
        different = copies[np.concatenate(([True], copies[1:] != copies[:-1]))] if len(copies) > 1 else copies
        least: Counts = self.free[different[0]].take(nodes, axis=1)
        for copy in different[1:]:
            np.minimum(least, self.free[copy].take(nodes, axis=1), out=least)
        return least

    def least_licenses(self, first: int, last: int) -> IntArray:
        least: IntArray = self.licenses[:, first:last].min(axis=1)
        return least

    def place(self, need: Requirement, first: int, last: int, bits: Bits) -> Placement | None:
        """See ``compiled.CompiledProfile``; only where ``places`` is true."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ decisions

    def book_whole(self, need: Requirement, earliest: int, duration: int) -> tuple[int, Placement] | None:
        """See ``compiled.CompiledProfile``; only where ``places`` is true."""
        raise NotImplementedError

    def take_whole(self, first: int, last: int, bits: Bits, nodes: IntArray) -> None:
        """A job has these idle nodes (as bits, and as rows) to itself through these segments."""
        rows = self.row[first:last]
        self.taken[rows] |= bits
        self.used[rows] |= bits
        if self.one_pool:
            self.idle[0, first:last] -= len(nodes)
            self.cpus[0, first:last] -= int(self.capacity[0][nodes].sum())
            return
        self.idle[:, first:last] -= np.bitwise_count(self.pools & bits).sum(axis=1, dtype=np.int64)[:, None]
        self.cpus[:, first:last] -= (self.pool_masks[:, nodes] * self.capacity[0][nodes]).sum(axis=1)[:, None]

    def take_shares(self, first: int, last: int, nodes: IntArray, amounts: Counts) -> None:
        """A job holds ``amounts`` [resources, nodes] of these nodes through these segments."""
        bits = np.zeros(self.words, dtype=np.uint64)
        np.bitwise_or.at(bits, nodes >> 6, np.left_shift(np.uint64(1), (nodes & 63).astype(np.uint64)))
        rows = self.row[first:last]
        newly = bits & ~self.used[rows]
        self.idle[:, first:last] -= np.bitwise_count(newly[None] & self.pools[:, None]).sum(axis=2, dtype=np.int64)
        self.used[rows] |= bits
        self.cpus[:, first:last] -= (self.pool_masks[:, nodes] * amounts[0]).sum(axis=1)[:, None]
        for copy in self._own_copies(first, last):
            self.free[copy][:, nodes] -= amounts

    def give_whole(self, first: int, last: int, bits: Bits) -> None:
        """Undo ``take_whole`` for these segments."""
        rows = self.row[first:last]
        self.taken[rows] &= ~bits
        self.used[rows] &= ~bits
        self.idle[:, first:last] += np.bitwise_count(self.pools & bits).sum(axis=1, dtype=np.int64)[:, None]
        nodes = rows_of(bits)
        self.cpus[:, first:last] += (self.pool_masks[:, nodes] * self.capacity[0][nodes]).sum(axis=1)[:, None]

    def give_shares(self, first: int, last: int, nodes: IntArray, amounts: Counts) -> None:
        """Undo ``take_shares`` for these segments."""
        if first >= last:
            return
        capacity = self.capacity[:, nodes]
        self.cpus[:, first:last] += (self.pool_masks[:, nodes] * amounts[0]).sum(axis=1)[:, None]
        for copy in self._own_copies(first, last):
            self.free[copy][:, nodes] += amounts
        copies, rows = self.copy[first:last], self.row[first:last]
        resources = np.arange(len(self.capacity))
        left = self.free[copies[:, None, None], resources[None, :, None], nodes[None, None, :]]
        mask = np.zeros((last - first, 64 * self.words), dtype=np.bool_)
        mask[:, nodes] = (left >= capacity).all(axis=1)
        cleared = np.packbits(mask, axis=1, bitorder="little").view(np.uint64) & self.used[rows] & ~self.taken[rows]
        self.used[rows] &= ~cleared
        self.idle[:, first:last] += np.bitwise_count(self.pools[:, None] & cleared).sum(axis=2, dtype=np.int64)

    def take_licenses(self, first: int, last: int, amounts: IntArray) -> None:
        self.licenses[:, first:last] -= amounts[:, None]

    def _own_copies(self, first: int, last: int) -> list[int]:
        """The copies of ``free`` that these segments use, after those also used outside of them were duplicated. Only
        neighbours share a copy: what lies after a changed stretch gets its own if it had the same as what lies before."""
        before = int(self.copy[first - 1]) if first else -1
        after = int(self.copy[last]) if last < self.count else -1
        if before == after and int(self.copy[first]) == before:
            self._duplicate(last, self.count)
        if before == int(self.copy[first]):
            self._duplicate(first, last)
        if last < self.count and self.copy[last] == self.copy[last - 1]:
            different = (self.copy[first:last] != self.copy[last]).nonzero()[0]
            self._duplicate(first + int(different[-1]) + 1 if len(different) else first, last)
        return list(dict.fromkeys(self.copy[first:last].tolist()))

    def _duplicate(self, first: int, last: int) -> None:
        """Give the run of equal copies that starts at ``first`` (and ends before ``last``) a copy of its own."""
        if self.copies == len(self.free):
            self.free = np.concatenate((self.free, np.empty_like(self.free)))
        old = int(self.copy[first])
        self.free[self.copies] = self.free[old]
        different = (self.copy[first:last] != old).nonzero()[0]
        self.copy[first : first + int(different[0]) if len(different) else last] = self.copies
        self.copies += 1


def _pairs(firsts: IntArray, lasts: IntArray) -> IntArray:
    """Bounds as reduceat takes them; every other result is the one wanted."""
    pairs = np.empty(2 * len(firsts), dtype=np.int64)
    pairs[::2], pairs[1::2] = firsts, lasts
    return pairs
