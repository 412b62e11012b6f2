"""The profile in compiled form, for long queues: the same questions and answers, some ten times as fast.

Numba compiles these loops on first use and keeps the machine code on disk. While they run other threads run too. Two things
differ from ``profile.Profile`` inside: a scan for a start goes from one obstacle to the next instead of looking at many
stretches at once, and what is free on nodes that jobs share is a timeline of each node, so memory grows with what jobs
hold and not with the square of the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numba
import numpy as np

from slurmk.planner.placement import Placement
from slurmk.planner.profile import FOREVER, Bits, Counts, Profile
from slurmk.planner.requirement import PLENTY
from slurmk.planner.snapshot import BoolArray, IntArray

if TYPE_CHECKING:
    from slurmk.planner.requirement import Requirement

Function = TypeVar("Function", bound=Callable[..., Any])


class Segments(NamedTuple):
    """The arrays of ``Profile`` that its decisions change."""

    times: IntArray
    row: IntArray
    taken: Bits
    used: Bits
    idle: IntArray
    cpus: IntArray
    pools: Bits
    pool_masks: BoolArray
    capacity: Counts


class Timelines(NamedTuple):
    """What is free on each node over time: those of its ``steps`` are in ``times`` and ``free`` [steps, resources] from
    ``offset`` on, where there is ``room`` for so many."""

    offset: IntArray
    room: IntArray
    steps: IntArray
    times: IntArray
    free: Counts


FIRST_STEPS = 4
"""Steps of a node's timeline that there is room for at first."""


def compiled(function: Function) -> Function:
    """Compile on first use; without a place to keep machine code, each process compiles anew."""
    try:
        return cast(Function, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(Function, numba.njit(nogil=True)(function))


class CompiledProfile(Profile):
    """See the module."""

    places = True

    def __init__(self, start: int, capacity: Counts, licenses: IntArray, pools: BoolArray) -> None:
        super().__init__(start, capacity, licenses, pools)
        resources, nodes = capacity.shape
        self.free = self.free[:0]
        self.capacity = np.ascontiguousarray(capacity)
        self.pool_masks = np.ascontiguousarray(pools)
        self._end = nodes * FIRST_STEPS  # of what is used of the timelines' table
        self._lines = Timelines(
            np.arange(nodes, dtype=np.int64) * FIRST_STEPS,
            np.full(nodes, FIRST_STEPS, dtype=np.int64),
            np.ones(nodes, dtype=np.int64),
            np.full(max(self._end * 2, 1), FOREVER, dtype=np.int64),
            np.zeros((max(self._end * 2, 1), resources), dtype=np.int32),
        )
        self._lines.times[self._lines.offset] = start
        self._lines.free[self._lines.offset] = capacity.T
        self._segments = self._arrays()
        self._bits = np.zeros(self.words, dtype=np.uint64)

    # ------------------------------------------------------------------------------------------ segments

    def at(self, time: int) -> int:
        count = self.count
        if count + 1 >= len(self.times):
            self._grow()
        index, self.count = insert(self._segments, self.licenses, count, int(time))
        return index

    # ------------------------------------------------------------------------------------------ questions

    def starts(self, need: Requirement, first: int, end: int, duration: int) -> Iterator[tuple[int, int, Bits]]:
        levels = self.idle[need.pool] if need.whole else self.cpus[need.pool]
        wanted = need.needed_nodes if need.whole else need.needed_cpus
        tasks = 0 if need.whole or need.demand.overcommit or need.shared_row is not None else need.tasks
        table = self.used if need.whole else self.taken
        while first < end:
            first, last = next_start(
                self.times, self.count, self.row, table, levels, wanted, first, end, duration, need.bits, need.needed_nodes,
                self._bits, tasks, need.cpus_per_task, self._lines,
            )  # fmt: skip
            if first < 0:
                return
            yield first, last, self._bits.copy()
            first += 1

    def least_free(self, first: int, last: int, nodes: IntArray) -> Counts:
        end = int(self.times[last]) if last < self.count else FOREVER
        free: Counts = least(int(self.times[first]), end, nodes, self._lines)
        return free

    def place(self, need: Requirement, first: int, last: int, bits: Bits) -> Placement | None:
        """What ``Placer.place`` chooses for a plain requirement among these nodes; None when it takes that to find out."""
        if need.whole:
            nodes = pick_runs(bits, need.minimum_nodes)
            return Placement(nodes, one_each(len(nodes)), None) if len(nodes) else None
        demand = need.demand
        fixed = demand.use_minimum_nodes or need.minimum_nodes == need.maximum_nodes or demand.maximum_nodes >= PLENTY
        nodes, tasks, amounts = pick_shares(
            bits, int(self.times[first]), int(self.times[last]) if last < self.count else FOREVER, self.capacity,
            need.tasks, need.cpus_per_task, need.minimum_nodes, need.maximum_nodes, fixed,
            demand.tasks_per_node or 0, demand.tasks_per_node_exact,
            -1 if demand.memory_per_node is None else demand.memory_per_node, demand.memory_per_cpu or 0,
            self._lines,
        )  # fmt: skip
        return Placement(nodes, tasks, amounts) if len(nodes) else None

    # ------------------------------------------------------------------------------------------ decisions

    def book_whole(self, need: Requirement, earliest: int, duration: int) -> tuple[int, Placement] | None:
        """The first start from ``earliest`` on of a plain requirement of whole nodes, which are taken at once: all that a
        search, a placement and a booking do, in one call."""
        if self.count + 2 >= len(self.times):
            self._grow()
        start, self.count, nodes = take_first(
            self._segments, self.licenses, self.count, need.pool, need.bits, need.minimum_nodes, earliest, duration, self._bits,
            self._lines,
        )  # fmt: skip
        return (start, Placement(nodes, one_each(len(nodes)), None)) if start >= 0 else None

    def take_whole(self, first: int, last: int, bits: Bits, nodes: IntArray) -> None:
        mark_whole(self._segments, first, last, bits, nodes, 1)

    def give_whole(self, first: int, last: int, bits: Bits) -> None:
        mark_whole(self._segments, first, last, bits, rows_of_bits(bits), -1)

    def take_shares(self, first: int, last: int, nodes: IntArray, amounts: Counts) -> None:
        if first < last:
            self._change_free(first, last, nodes, amounts, -1)
            mark_used(self._segments, first, last, nodes, amounts[0])

    def give_shares(self, first: int, last: int, nodes: IntArray, amounts: Counts) -> None:
        if first < last:
            self._change_free(first, last, nodes, amounts, 1)
            mark_unused(self._segments, first, last, nodes, amounts[0], self._lines)

    def _change_free(self, first: int, last: int, nodes: IntArray, amounts: Counts, sign: int) -> None:
        start = int(self.times[first])
        end = int(self.times[last]) if last < self.count else FOREVER
        while True:
            self._end, suffices = make_room(nodes, self._lines, self._end)
            if suffices:
                break
            times, free = self._lines.times, self._lines.free
            self._lines = self._lines._replace(
                times=np.concatenate((times, np.full_like(times, FOREVER))), free=np.concatenate((free, np.zeros_like(free)))
            )
        change(nodes, amounts, sign, start, end, self._lines)

    def _grow(self) -> None:
        super()._grow()
        self._segments = self._arrays()

    def _arrays(self) -> Segments:
        return Segments(
            self.times, self.row, self.taken, self.used, self.idle, self.cpus, self.pools, self.pool_masks, self.capacity
        )


def one_each(nodes: int) -> IntArray:
    """A task on each of so many nodes; the numbers are shared by all who ask."""
    return _ones(1 << nodes.bit_length())[:nodes]


@cache
def _ones(count: int) -> IntArray:
    ones = np.ones(count, dtype=np.int64)
    ones.flags.writeable = False
    return ones


# ---------------------------------------------------------------------------------------------- compiled loops


@compiled
def insert(segments: Segments, licenses: IntArray, count: int, time: int) -> tuple[int, int]:
    """The segment that begins at ``time``, and how many segments there are now."""
    times = segments.times
    index = int(np.searchsorted(times[:count], time))
    if index < count and times[index] == time:
        return index, count
    for position in range(count, index, -1):
        times[position] = times[position - 1]
        segments.row[position] = segments.row[position - 1]
    for table in (segments.idle, segments.cpus, licenses):
        for pool in range(table.shape[0]):
            levels = table[pool]
            for position in range(count, index, -1):
                levels[position] = levels[position - 1]
            levels[index] = levels[index - 1]
    before = segments.row[index - 1]
    times[index] = time
    segments.row[index] = count
    segments.taken[count] = segments.taken[before]
    segments.used[count] = segments.used[before]
    return index, count + 1


@compiled
def ones(word: Any) -> Any:
    """How many bits are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def open_nodes(bits: Bits, table: Bits, row: IntArray, first: int, last: int, wanted: int) -> int:
    """Take out of ``bits`` what is set in segments ``last - 1`` down to ``first``; the segment with which fewer than
    ``wanted`` were left (all starts up to it fail), or -1."""
    words = len(bits)
    for segment in range(last - 1, first - 1, -1):
        closed = table[row[segment]]
        left = 0
        for word in range(words):
            bits[word] &= ~closed[word]
            left += ones(bits[word])
        if left < wanted:
            return segment
    return -1


@compiled
def fewest_cpus(node: int, start: int, end: int, lines: Timelines) -> int:
    """The fewest CPUs free on a node from ``start`` to ``end``."""
    begin = lines.offset[node]
    stop = begin + lines.steps[node]
    position = begin
    if lines.steps[node] > 1:
        position = begin + np.searchsorted(lines.times[begin:stop], start, side="right") - 1
    fewest = lines.free[position, 0]
    position += 1
    while position < stop and lines.times[position] < end:
        fewest = min(fewest, lines.free[position, 0])
        position += 1
    return int(fewest)


@compiled
def tasks_held(bits: Bits, start: int, end: int, most: int, cpus_per_task: int, lines: Timelines) -> int:
    """How many tasks the CPUs hold that stay free on these nodes from ``start`` to ``end``; counted up to ``most``."""
    held = 0
    for word in range(len(bits)):
        left = bits[word]
        node = word * 64
        while left:
            if left & np.uint64(1):
                held += fewest_cpus(node, start, end, lines) // cpus_per_task
                if held >= most:
                    return held
            left >>= np.uint64(1)
            node += 1
    return held


@compiled
def next_start(
    times: IntArray,
    count: int,
    row: IntArray,
    table: Bits,
    levels: IntArray,
    wanted: int,
    first: int,
    end: int,
    duration: int,
    need: Bits,
    needed_nodes: int,
    bits: Bits,
    tasks: int,
    cpus_per_task: int,
    lines: Timelines,
) -> tuple[int, int]:
    """The next segment before ``end`` from which enough stays free for ``duration`` seconds, and one past the last that it
    takes; its open nodes are in ``bits``. -1 when there is none.

    What fails from some segment up to the last fails from all segments before that one, too: so the scan goes on behind the
    latest such segment."""
    last = first
    while first < end:
        stop = times[first] + duration
        last = max(last, first)
        while last < count and times[last] < stop:
            if levels[last] < wanted:
                first = last + 1
                last = first
                if first >= end:
                    return -1, -1
                stop = times[first] + duration
            else:
                last += 1
        bits[:] = need
        failed = open_nodes(bits, table, row, first, last, needed_nodes)
        if failed >= 0:
            first = failed + 1
            continue
        if tasks <= 0:
            return first, last
        if tasks_held(bits, times[first], stop, tasks, cpus_per_task, lines) >= tasks:
            return first, last
        low, high = first, last - 1
        while low < high:
            middle = (low + high + 1) // 2
            bits[:] = need
            short = open_nodes(bits, table, row, middle, last, needed_nodes) >= 0
            if not short:
                held = tasks_held(bits, times[middle], stop, tasks, cpus_per_task, lines)
                short = held < tasks
            if short:
                low = middle
            else:
                high = middle - 1
        first = low + 1
    return -1, -1


@compiled
def least(start: int, end: int, nodes: IntArray, lines: Timelines) -> Counts:
    """[resources, nodes]: what stays free from ``start`` to ``end``."""
    resources = lines.free.shape[1]
    free = np.empty((resources, len(nodes)), dtype=np.int32)
    for column in range(len(nodes)):
        node = nodes[column]
        begin = lines.offset[node]
        stop = begin + lines.steps[node]
        position = begin
        if lines.steps[node] > 1:
            position = begin + np.searchsorted(lines.times[begin:stop], start, side="right") - 1
        for resource in range(resources):
            free[resource, column] = lines.free[position, resource]
        position += 1
        while position < stop and lines.times[position] < end:
            for resource in range(resources):
                free[resource, column] = min(free[resource, column], lines.free[position, resource])
            position += 1
    return free


@compiled
def make_room(nodes: IntArray, lines: Timelines, used_up: int) -> tuple[int, bool]:
    """Room for two more steps of each node, which is moved to the end of the table where there is none; what is used of the
    table then, and whether it sufficed."""
    for node in nodes:
        if lines.steps[node] + 2 <= lines.room[node]:
            continue
        wanted = 2 * lines.room[node]
        if used_up + wanted > len(lines.times):
            return used_up, False
        begin = lines.offset[node]
        for step in range(lines.steps[node]):
            lines.times[used_up + step] = lines.times[begin + step]
            lines.free[used_up + step] = lines.free[begin + step]
        lines.offset[node] = used_up
        lines.room[node] = wanted
        used_up += wanted
    return used_up, True


@compiled
def cut(node: int, time: int, lines: Timelines) -> int:
    """The step of the node that begins at ``time``, made if there is none."""
    begin = lines.offset[node]
    stop = begin + lines.steps[node]
    position = begin + np.searchsorted(lines.times[begin:stop], time)
    if position < stop and lines.times[position] == time:
        return int(position)
    for step in range(stop, position, -1):
        lines.times[step] = lines.times[step - 1]
        lines.free[step] = lines.free[step - 1]
    lines.times[position] = time
    lines.free[position] = lines.free[position - 1]
    lines.steps[node] += 1
    return int(position)


@compiled
def change(nodes: IntArray, amounts: Counts, sign: int, start: int, end: int, lines: Timelines) -> None:
    """Add ``sign`` times ``amounts`` [resources, nodes] to what is free from ``start`` to ``end``."""
    for column in range(len(nodes)):
        node = nodes[column]
        first = cut(node, start, lines)
        last = lines.offset[node] + lines.steps[node]
        if end < FOREVER:
            last = cut(node, end, lines)
        for step in range(first, last):
            for resource in range(amounts.shape[0]):
                lines.free[step, resource] += sign * amounts[resource, column]


@compiled
def mark_whole(table: Segments, first: int, last: int, bits: Bits, nodes: IntArray, sign: int) -> None:
    """Take (1) these idle nodes through these segments, or give them back (-1)."""
    for segment in range(first, last):
        at = table.row[segment]
        for word in range(len(bits)):
            if sign > 0:
                table.taken[at, word] |= bits[word]
                table.used[at, word] |= bits[word]
            else:
                table.taken[at, word] &= ~bits[word]
                table.used[at, word] &= ~bits[word]
    for pool in range(table.pools.shape[0]):
        count = 0
        amount = 0
        for node in nodes:
            if table.pool_masks[pool, node]:
                count += 1
                amount += table.capacity[0, node]
        if count:
            for segment in range(first, last):
                table.idle[pool, segment] -= sign * count
                table.cpus[pool, segment] -= sign * amount


@compiled
def mark_used(table: Segments, first: int, last: int, nodes: IntArray, taken_cpus: Counts) -> None:
    """Jobs share these nodes through these segments, and hold CPUs there."""
    amount = np.zeros(table.pools.shape[0], dtype=np.int64)
    for column in range(len(nodes)):
        for pool in range(table.pools.shape[0]):
            if table.pool_masks[pool, nodes[column]]:
                amount[pool] += taken_cpus[column]
    for segment in range(first, last):
        at = table.row[segment]
        for node in nodes:
            word = node >> 6
            bit = np.uint64(1) << np.uint64(node & 63)
            if not table.used[at, word] & bit:
                table.used[at, word] |= bit
                for pool in range(table.pools.shape[0]):
                    if table.pool_masks[pool, node]:
                        table.idle[pool, segment] -= 1
        for pool in range(table.pools.shape[0]):
            table.cpus[pool, segment] -= amount[pool]


@compiled
def mark_unused(table: Segments, first: int, last: int, nodes: IntArray, given_cpus: Counts, lines: Timelines) -> None:
    """CPUs come back; where nothing of a node is held any more it is idle again."""
    for column in range(len(nodes)):
        node = nodes[column]
        word = node >> 6
        bit = np.uint64(1) << np.uint64(node & 63)
        begin = lines.offset[node]
        stop = begin + lines.steps[node]
        step = begin + np.searchsorted(lines.times[begin:stop], table.times[first], side="right") - 1
        for segment in range(first, last):
            while step + 1 < stop and lines.times[step + 1] <= table.times[segment]:
                step += 1
            for pool in range(table.pools.shape[0]):
                if table.pool_masks[pool, node]:
                    table.cpus[pool, segment] += given_cpus[column]
            at = table.row[segment]
            if not table.used[at, word] & bit or table.taken[at, word] & bit:
                continue
            whole = True
            for resource in range(table.capacity.shape[0]):
                if lines.free[step, resource] < table.capacity[resource, node]:
                    whole = False
            if whole:
                table.used[at, word] &= ~bit
                for pool in range(table.pools.shape[0]):
                    if table.pool_masks[pool, node]:
                        table.idle[pool, segment] += 1


@compiled
def rows_of_bits(bits: Bits) -> IntArray:
    """The nodes whose bit is set, in ascending order."""
    count = 0
    for word in range(len(bits)):
        count += ones(bits[word])
    nodes = np.empty(count, dtype=np.int64)
    at = 0
    for word in range(len(bits)):
        left = bits[word]
        node = word * 64
        while left:
            if left & np.uint64(1):
                nodes[at] = node
                at += 1
            left >>= np.uint64(1)
            node += 1
    return nodes


@compiled
def runs_of(nodes: IntArray) -> IntArray:
    """Where each run of neighbours begins in ``nodes``, and at the end their number."""
    bounds = np.empty(len(nodes) + 1, dtype=np.int64)
    runs = 0
    for position in range(len(nodes)):
        if position == 0 or nodes[position] != nodes[position - 1] + 1:
            bounds[runs] = position
            runs += 1
    bounds[runs] = len(nodes)
    return bounds[: runs + 1]


@compiled
def pick_runs(bits: Bits, wanted: int) -> IntArray:
    """Whole idle nodes: the longest runs of neighbours, then the shortest that suffices for what is left; a single one is the
    first. Ascending; none when there are fewer than ``wanted``."""
    nodes = rows_of_bits(bits)
    if len(nodes) < wanted:
        return nodes[:0]
    if wanted == 1:
        return nodes[:1]
    bounds = runs_of(nodes)
    lengths = bounds[1:] - bounds[:-1]
    taken = np.zeros(len(lengths), dtype=np.int64)
    left = wanted
    while True:
        longest = -1
        shortest = -1
        for run in range(len(lengths)):
            if taken[run]:
                continue
            if longest < 0 or lengths[run] > lengths[longest]:
                longest = run
            if lengths[run] >= left and (shortest < 0 or lengths[run] < lengths[shortest]):
                shortest = run
        if shortest >= 0:
            taken[shortest] = left
            break
        taken[longest] = lengths[longest]
        left -= lengths[longest]
    chosen = np.empty(wanted, dtype=np.int64)
    at = 0
    for run in range(len(lengths)):
        for position in range(taken[run]):
            chosen[at] = nodes[bounds[run] + position]
            at += 1
    return chosen


@compiled
def leaf_order(lengths: IntArray, sums: IntArray, nodes_left: int, tasks_left: int) -> IntArray:
    """The runs to take, in order: the longest, then the smallest that suffices for what is left."""
    order = np.argsort(-lengths, kind="mergesort")
    largest = sums[order].copy()
    for position in range(len(order) - 2, -1, -1):
        largest[position] = max(largest[position], largest[position + 1])
    for step in range(len(order)):
        if lengths[order[step]] >= nodes_left and largest[step] >= tasks_left:
            best = -1
            for position in range(step, len(order)):
                run = order[position]
                if lengths[run] < nodes_left or sums[run] < tasks_left:
                    continue
                if (
                    best < 0
                    or lengths[run] < lengths[best]
                    or (lengths[run] == lengths[best] and (sums[run] < sums[best] or (sums[run] == sums[best] and run < best)))
                ):
                    best = run
            if best >= 0:
                chosen = order[: step + 1].copy()
                chosen[step] = best
                return chosen
        nodes_left -= lengths[order[step]]
        tasks_left -= sums[order[step]]
    return order


@compiled
def take_first(
    segments: Segments,
    licenses: IntArray,
    count: int,
    pool: int,
    need: Bits,
    wanted: int,
    earliest: int,
    duration: int,
    bits: Bits,
    lines: Timelines,
) -> tuple[int, int, IntArray]:
    """Take so many whole nodes from the first moment on at which they stay idle for ``duration``: the moment (-1: none), how
    many segments there are now, and the nodes."""
    first, count = insert(segments, licenses, count, earliest)
    first, last = next_start(
        segments.times, count, segments.row, segments.used, segments.idle[pool], wanted, first, count, duration, need, wanted,
        bits, 0, 1, lines,
    )  # fmt: skip
    if first < 0:
        return -1, count, np.empty(0, dtype=np.int64)
    nodes = pick_runs(bits, wanted)
    bits[:] = 0
    for node in nodes:
        bits[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
    start = segments.times[first]
    last, count = insert(segments, licenses, count, start + duration)
    mark_whole(segments, first, last, bits, nodes, 1)
    return start, count, nodes


@compiled
def pick_shares(
    bits: Bits,
    start: int,
    end: int,
    capacity: Counts,
    tasks: int,
    cpus_per_task: int,
    minimum: int,
    maximum: int,
    fixed: bool,
    tasks_per_node: int,
    exact: bool,
    memory_per_node: int,
    memory_per_cpu: int,
    lines: Timelines,
) -> tuple[IntArray, IntArray, Counts]:
    """Parts of nodes for CPUs and memory alone: chosen nodes in ascending order, the tasks on each, and what is held there;
    no nodes when the ordinary way may know another."""
    nodes = rows_of_bits(bits)
    free = least(start, end, nodes, lines)
    holds = np.empty(len(nodes), dtype=np.int64)
    usable = 0
    total = 0
    for position in range(len(nodes)):
        can = int(free[0, position]) // cpus_per_task
        if memory_per_node >= 0:
            if free[1, position] < memory_per_node:
                can = 0
        elif memory_per_cpu:
            can = min(can, int(free[1, position]) // (memory_per_cpu * max(1, cpus_per_task)))
        if tasks_per_node:
            if exact and can < tasks_per_node:
                can = 0
            can = min(can, tasks_per_node)
        if can > 0:
            nodes[usable] = nodes[position]
            holds[usable] = can
            for resource in range(free.shape[0]):
                free[resource, usable] = free[resource, position]
            usable += 1
            total += can
    none = np.empty(0, dtype=np.int64)
    nothing = np.empty((0, 0), dtype=np.int32)
    if usable < minimum or total < tasks:
        return none, none, nothing
    nodes = nodes[:usable]
    wanted = minimum
    if not fixed:
        most = min(maximum, usable)
        wanted = max(minimum, most if exact else min(most, tasks))
    positions = np.empty(usable, dtype=np.int64)
    count = 0
    if maximum == 1:  # the first node that suffices
        for position in range(usable):
            if count == 0 and holds[position] >= tasks:
                positions[0] = position
                count = 1
    else:
        bounds = runs_of(nodes)
        sums = np.zeros(len(bounds) - 1, dtype=np.int64)
        for run in range(len(sums)):
            for position in range(bounds[run], bounds[run + 1]):
                sums[run] += holds[position]
        for run in leaf_order(bounds[1:] - bounds[:-1], sums, wanted, tasks):
            for position in range(bounds[run], bounds[run + 1]):
                positions[count] = position
                count += 1
    wanted = max(min(wanted, count), minimum)
    if count < minimum:
        return none, none, nothing
    held = 0
    enough = 0
    while enough < count and (enough < wanted or held < tasks):
        held += holds[positions[enough]]
        enough += 1
    if held < tasks or enough > maximum:
        return none, none, nothing
    given = np.zeros(usable, dtype=np.int64) - 1
    left = tasks - enough
    for step in range(enough):
        position = positions[step]
        if exact and tasks_per_node:
            given[position] = tasks_per_node
        elif enough == 1:
            given[position] = tasks
        elif tasks <= enough:
            given[position] = 1 if step < tasks else 0
        else:
            more = min(left, holds[position] - 1)
            given[position] = 1 + more
            left -= more
    chosen = np.empty(enough, dtype=np.int64)
    shares = np.empty(enough, dtype=np.int64)
    amounts = np.zeros((capacity.shape[0], enough), dtype=np.int32)
    at = 0
    for position in range(usable):
        if given[position] < 0:
            continue
        chosen[at] = nodes[position]
        shares[at] = given[position]
        amounts[0, at] = min(max(given[position], 1) * cpus_per_task, np.int64(free[0, position]))
        if memory_per_node > 0:
            amounts[1, at] = memory_per_node
        elif memory_per_node == 0:
            amounts[1, at] = capacity[1, nodes[position]]
        elif memory_per_cpu:
            amounts[1, at] = min(np.int64(amounts[0, at]) * memory_per_cpu, np.int64(free[1, position]))
        at += 1
    return chosen, shares, amounts
