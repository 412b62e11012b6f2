"""Placing jobs in a topology of blocks: a job that fits a block gets one, a larger one whole segments of as few as possible.

A segment (``--segment``) is a number of nodes that must be of one block; without it a job's segment is the size of a block,
or the whole job where that is smaller. Blocks of the same group (the higher block sizes) are near each other, so the
smallest group that will do is taken, and in it the blocks that are left with least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from slurmk.model.site import Block
from slurmk.planner.snapshot import IntArray


class Blocks:
    """The blocks of a snapshot. ``sizes`` are nodes of a block and of groups of them, ascending."""

    def __init__(self, blocks: Sequence[Block], sizes: Sequence[int], position: Mapping[str, int]) -> None:
        self.of = np.full(len(position), -1, dtype=np.int64)
        for number, block in enumerate(blocks):
            self.of[[position[name] for name in block.nodes if name in position]] = number
        self.count = len(blocks)
        self.sizes = tuple(sizes) or (1,)

    def segment_of(self, wanted: int, nodes: int) -> int:
        """Nodes of a segment: as asked for, else a block's, and not more than the job has."""
        return min(wanted or self.sizes[0], max(nodes, 1))

    def choose(self, nodes: IntArray, count: int, segment: int, *, spread: bool = False) -> IntArray:
        """Positions in ``nodes`` (ascending rows of free ones) of ``count`` nodes in segments; none when they do not fit.

        ``spread``: no two segments are of one block.
        """
        blocks = self.of[nodes]
        free = np.bincount(blocks[blocks >= 0], minlength=self.count)
        for members in self._groups(count, segment, free):
            taken = _taken(free, members, count, segment, spread=spread)
            if taken:
                positions = [np.flatnonzero(blocks == block)[:amount] for block, amount in taken.items()]
                return np.concatenate(positions)
        return np.zeros(0, dtype=np.int64)

    def _groups(self, count: int, segment: int, free: IntArray) -> list[list[int]]:
        """Groups of blocks that could hold so many nodes, the smallest ones first, of equals the one with least free; all
        blocks for a job in several segments that no group holds."""
        found: list[list[int]] = []
        for size in self.sizes:
            if size < count:
                continue
            width = max(1, size // self.sizes[0])
            groups = [list(range(first, min(first + width, self.count))) for first in range(0, self.count, width)]
            found += sorted(groups, key=lambda members: int(free[members].sum()))
        return [*found, list(range(self.count))] if segment < count else found


def _taken(free: IntArray, members: Sequence[int], count: int, segment: int, *, spread: bool) -> dict[int, int]:
    """Nodes to take of each block; nothing when the segments do not fit these blocks."""
    left = {block: int(free[block]) for block in members}
    taken: dict[int, int] = {}
    whole, rest = divmod(count, segment)
    most = {block: min(amount // segment, 1) if spread else amount // segment for block, amount in left.items()}
    while whole:
        enough = [block for block, segments in most.items() if segments >= whole]
        if enough:
            block = min(enough, key=lambda block: (left[block], block))
        else:
            block = max(most, key=lambda block: (most[block], -left[block], -block), default=-1)
        amount = min(most.get(block, 0), whole)
        if not amount:
            return {}
        taken[block] = amount * segment
        left[block] -= amount * segment
        del most[block]
        whole -= amount
    if rest:
        room = [block for block, amount in left.items() if amount >= rest and not (spread and block in taken)]
        if not room:
            return {}
        block = min(room, key=lambda block: (block not in taken, left[block], block))
        taken[block] = taken.get(block, 0) + rest
    return taken
