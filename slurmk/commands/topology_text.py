"""Blocks of nodes as ``scontrol show topology`` lists them: each, then the groups of them by size (scontrol(1))."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from grammar.hostlist import compress, fold
from slurmk.model.site import Block


@dataclass(frozen=True, slots=True)
class Unit:
    """A block, or several beside each other. ``level`` 0 are the blocks."""

    level: int
    index: int
    size: int
    blocks: tuple[Block, ...]

    @property
    def nodes(self) -> Iterator[str]:
        return (node for block in self.blocks for node in block.nodes)

    @property
    def line(self) -> str:
        kind = "AggregatedBlock" if self.level else "BlockName"
        names = fold(block.name for block in self.blocks) if self.level else self.blocks[0].name
        members = list(self.nodes)
        nodes = f" Nodes={compress(members)}" if members else ""
        return f"{kind}={names} BlockIndex={self.index}{nodes} BlockSize={self.size}\n"


def units(blocks: Sequence[Block], sizes: Sequence[int]) -> list[Unit]:
    """All units in the order in which they are listed. Groups are numbered by the block that they begin with."""
    found = [Unit(0, index, sizes[0], (block,)) for index, block in enumerate(blocks)]
    for start in range(len(blocks)):
        for level, size in enumerate(sizes[1:], 1):
            count = size // sizes[0]
            group = tuple(blocks[start : start + count])
            if start % count == 0 and len(group) > 1:
                found.append(Unit(level, len(found), size, group))
    return sorted(found, key=lambda unit: (unit.level, unit.index))


def chosen(all_units: Iterable[Unit], kind: str, name: str) -> tuple[list[Unit], str]:
    """The units with that node (``kind`` node), or the block of that name; and what is said where there is none."""
    if kind == "node":
        return [unit for unit in all_units if name in unit.nodes], f"no block with nodes {name}"
    return [unit for unit in all_units if not unit.level and unit.blocks[0].name == name], f"no block named {name}"
