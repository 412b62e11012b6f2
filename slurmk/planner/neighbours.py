"""Windows of neighbouring nodes (``--contiguous``): nodes that follow each other in the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from slurmk.planner.snapshot import BoolArray, IntArray


def windows(nodes: IntArray, size: int) -> IntArray:
    """Positions in ``nodes`` (ascending) at which ``size`` neighbours begin; those in shorter runs come first."""
    starts = np.flatnonzero(nodes[size - 1 :] - nodes[: len(nodes) - size + 1] == size - 1)
    groups = np.zeros(len(nodes), dtype=np.int64)
    np.cumsum(nodes[1:] - nodes[:-1] != 1, out=groups[1:])
    lengths = np.bincount(groups)[groups[starts]]
    ordered: IntArray = starts[np.argsort(lengths, kind="stable")]
    return ordered


def fitting(
    nodes: IntArray, sizes: Iterable[int], amounts: Sequence[tuple[IntArray, int]], required: Sequence[BoolArray]
) -> IntArray | None:
    """Positions of the first window, of the first of the sizes that has one, which holds enough: of each of ``amounts`` (what
    each position has, how much is needed in all) and all that ``required`` marks. None when there is none."""
    needs = [*amounts, *((mask.astype(np.int64), int(mask.sum())) for mask in required)]
    sums = [(np.concatenate(([0], np.cumsum(values))), least) for values, least in needs]
    for size in sizes:
        if not 0 < size <= len(nodes):
            continue
        begins = windows(nodes, size)
        if required:  # from the first named node on, if possible
            begins = begins[::-1]
        for total, least in sums:
            begins = begins[total[begins + size] - total[begins] >= least]
        if len(begins):
            return np.arange(begins[0], begins[0] + size)
    return None
