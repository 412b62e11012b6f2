"""Blocks: each segment of a job is of one block, the smallest that will do is taken; topology.yaml says which there are."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import NOW, demand, snapshot_of

from grammar.errors import GrammarError
from slurmk.model.site import Block, Switch
from slurmk.model.topology import read_topology
from slurmk.planner.blocks import Blocks
from slurmk.planner.plan import plan
from slurmk.planner.snapshot import PendingRow

WIDTH = 4


def blocks_of(count: int) -> tuple[Block, ...]:
    return tuple(
        Block(f"b{block}", tuple(f"n{node}" for node in range(WIDTH * block, WIDTH * (block + 1)))) for block in range(count)
    )


def made(count: int, *sizes: int) -> Blocks:
    position = {f"n{node}": node for node in range(WIDTH * count)}
    return Blocks(blocks_of(count), sizes or (WIDTH,), position)


@settings(deadline=None, max_examples=300)
@given(st.sets(st.integers(0, 15), min_size=1), st.integers(1, 16), st.integers(0, 4), st.booleans())
def test_segments_are_whole(free: set[int], count: int, wanted: int, spread: bool) -> None:
    blocks = made(4, 4, 8, 16)
    nodes = np.array(sorted(free), dtype=np.int64)
    segment = blocks.segment_of(wanted, count)
    chosen = blocks.choose(nodes, count, segment, spread=spread)
    by_block = [sum(node // WIDTH == block for node in free) for block in range(4)]
    per_block = [min(have // segment, 1) if spread else have // segment for have in by_block]
    if len(chosen):
        assert len(set(chosen.tolist())) == len(chosen) == count
        taken = [sum(node // WIDTH == block for node in nodes[chosen].tolist()) for block in range(4)]
        assert sum(amount // segment for amount in taken) == count // segment
        assert sum(1 for amount in taken if amount % segment) <= 1
        if spread:
            assert all(amount <= segment for amount in taken)
        reach = next(size for size in (4, 8, 16) if len({node // size for node in nodes[chosen].tolist()}) == 1)
    else:
        reach = 32
    for size in (4, 8, 16):
        for first in range(0, 16, size):
            group = range(first // WIDTH, (first + size) // WIDTH)
            room = sum(per_block[block] for block in group) > count // segment
            assert not (count <= size < reach and room), "a smaller group would have done"


@settings(deadline=None, max_examples=400)
@given(st.sets(st.integers(0, 15), min_size=1), st.integers(2, 16), st.integers(1, 4), st.booleans())
def test_segments_are_found_wherever_there_are_some(free: set[int], count: int, wanted: int, spread: bool) -> None:
    """Against trying every number of segments in each block; a job of one segment needs a block that has it."""
    have = [sum(node // WIDTH == block for node in free) for block in range(4)]
    segment = min(wanted, count)
    whole, rest = divmod(count, segment)
    possible = False
    for counts in product(*(range(min(each // segment, 1 if spread else 4) + 1) for each in have)):
        left = [each - number * segment for each, number in zip(have, counts, strict=True)]
        fits = not rest or any(each >= rest and not (spread and number) for each, number in zip(left, counts, strict=True))
        possible |= sum(counts) == whole and fits
    chosen = made(4).choose(np.array(sorted(free), dtype=np.int64), count, segment, spread=spread)
    assert bool(len(chosen)) is possible


def test_the_block_that_is_left_with_least() -> None:
    nodes = np.array([0, 1, 2, 3, 4, 5, 6, 8, 9], dtype=np.int64)
    assert made(3).choose(nodes, 2, 2).tolist() == [7, 8]
    assert made(3).choose(nodes, 3, 3).tolist() == [4, 5, 6]
    assert made(3).choose(nodes, 4, 4).tolist() == [0, 1, 2, 3]
    assert made(3).choose(nodes, 4, 2, spread=True).tolist() == [7, 8, 4, 5]
    assert not len(made(3, 4, 8).choose(nodes, 8, 4))


def test_a_job_waits_for_a_block() -> None:
    def row(number: int, nodes: int, segment: int = 0) -> PendingRow:
        return PendingRow(number, demand(nodes, whole_nodes=True, segment=segment), ("p",), 100 - number, NOW, 600, 1)

    rows = (row(1, 1), row(2, 1), row(3, 3), row(4, 4), row(5, 4, 2))
    result = plan(snapshot_of(((4, 100, 0),) * 8, rows, blocks=blocks_of(2), block_sizes=(4,)))
    started = {start.job_id: start.allocation.nodes for start in result.starts}
    assert started[1] == ("n0",)
    assert started[2] == ("n1",)  # the block that is begun, so that the other stays whole
    assert started[3] == ("n4", "n5", "n6")
    assert result.outlooks[4].start_time == NOW + 600
    assert result.outlooks[5].start_time == NOW + 600


TREE = """
- topology: flat-one
  flat: true
- topology: tree-one
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s1
        nodes: n[0-1]
      - switch: s2
        nodes: n[2-3]
"""
BLOCK = """
- topology: blocks
  block:
    block_sizes: [2, 4]
    blocks:
      - block: b1
        nodes: n[0-1]
      - block: b2
        nodes: n[2-3]
"""
NODES = ("n0", "n1", "n2", "n3")


def test_topology_yaml() -> None:
    tree = read_topology(TREE, "topology.yaml", NODES)
    assert tree.switches == (Switch("root", (), ("s1", "s2")), Switch("s1", ("n0", "n1")), Switch("s2", ("n2", "n3")))
    block = read_topology(BLOCK, "topology.yaml", NODES)
    assert (block.blocks, block.block_sizes) == ((Block("b1", ("n0", "n1")), Block("b2", ("n2", "n3"))), (2, 4))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a list of topologies is wanted"),
        ("- [", "topology.yaml:1"),
        ("- 3", "a topology is a mapping"),
        ("- flat: true", "which topology is not said"),
        ("- topology: x", "exactly one of"),
        ("- {topology: x, ring: {rings: []}}", "ring is not supported"),
        (BLOCK.replace("[2, 4]", "[2, 6]"), "power of two"),
        (BLOCK.replace("n[2-3]", "n[1-3]"), "nodes that another block has"),
        (BLOCK.replace("n[2-3]", "n9"), "unknown nodes n9"),
        (TREE.replace("s[1-2]", "s[1-3]"), "unknown switches s3"),
        (TREE.replace("s[1-2]", "root"), "below itself"),
        (TREE.replace("        nodes: n[0-1]\n", ""), "needs either nodes or children"),
    ],
)
def test_what_is_wrong_with_it_is_told(text: str, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        read_topology(text, "topology.yaml", NODES)
    assert words in str(caught.value)
