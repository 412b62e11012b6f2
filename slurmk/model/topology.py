"""topology.yaml: the cluster's topology, a tree of switches or blocks of nodes (topology.yaml(5)).

Of several topologies the one with ``cluster_default`` counts, else the first. Errors name the file and what in it is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from grammar.errors import GrammarError
from grammar.hostlist import compress, expand
from slurmk.model.site import Block, Switch


@dataclass(frozen=True, slots=True)
class Topology:
    """Switches, or blocks with the sizes in which they are planned: that of a block, and of groups of them."""

    switches: tuple[Switch, ...] = ()
    blocks: tuple[Block, ...] = ()
    block_sizes: tuple[int, ...] = ()


def read_topology(text: str, path: str, nodes: Sequence[str]) -> Topology:
    """The topology that ``text``, the content of ``path``, gives these nodes. Raises GrammarError."""
    try:
        documents = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}" if mark is not None else ""
        raise GrammarError(f"{path}{place}: {getattr(error, 'problem', None) or 'not YAML'}") from None
    if not isinstance(documents, list) or not documents:
        raise GrammarError(f"{path}: a list of topologies is wanted")
    reader = _Reader(path, frozenset(nodes))
    known = [reader.mapping(document, "a topology") for document in documents]
    chosen = next((each for each in known if each.get("cluster_default")), known[0])
    return reader.topology(chosen)


class _Reader:
    """Reads parts of one file."""

    def __init__(self, path: str, nodes: frozenset[str]) -> None:
        self._path = path
        self._nodes = nodes

    def fail(self, what: str) -> GrammarError:
        return GrammarError(f"{self._path}: {what}")

    def mapping(self, value: object, what: str) -> Mapping[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise self.fail(f"{what} is a mapping")
        return value

    def topology(self, document: Mapping[str, Any]) -> Topology:
        name = str(document.get("topology") or "")
        if not name:
            raise self.fail("topology: which topology is not said")
        kinds = [kind for kind in ("block", "flat", "ring", "torus3d", "tree") if document.get(kind)]
        if len(kinds) != 1:
            raise self.fail(f"topology {name} needs exactly one of block, flat and tree")
        if kinds == ["tree"]:
            return Topology(switches=self._switches(self.mapping(document["tree"], f"tree of {name}")))
        if kinds == ["block"]:
            return self._blocks(self.mapping(document["block"], f"block of {name}"))
        if kinds == ["flat"]:
            return Topology()
        raise self.fail(f"topology {name}: {kinds[0]} is not supported; use block, flat or tree")

    def _list(self, document: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        found = document.get(key)
        if not isinstance(found, list) or not found:
            raise self.fail(f"{key}: a list is wanted")
        return [self.mapping(item, f"an item of {key}") for item in found]

    def _names(self, value: object, what: str) -> tuple[str, ...]:
        if value is None:
            return ()
        try:
            return tuple(expand(str(value)))
        except GrammarError as error:
            raise self.fail(f"{what}: {error}") from None

    def _members(self, item: Mapping[str, Any], name: str) -> tuple[str, ...]:
        members = self._names(item.get("nodes"), f"nodes of {name}")
        unknown = [member for member in members if member not in self._nodes]
        if unknown:
            raise self.fail(f"{name} names unknown nodes {compress(unknown)}")
        return members

    def _switches(self, tree: Mapping[str, Any]) -> tuple[Switch, ...]:
        switches: dict[str, Switch] = {}
        for item in self._list(tree, "switches"):
            name = str(item.get("switch") or "")
            if not name or len(name) > 64 or name in switches:
                raise self.fail(f"switch: {'each has a name of its own' if name else 'which switch is not said'}")
            members, below = self._members(item, name), self._names(item.get("children"), f"children of {name}")
            if bool(members) == bool(below):
                raise self.fail(f"switch {name} needs either nodes or children")
            switches[name] = Switch(name, members, below, written=str(item.get("children") or ""))
        self._check_tree(switches)
        return tuple(switches.values())

    def _check_tree(self, switches: Mapping[str, Switch]) -> None:
        for name, switch in switches.items():
            unknown = [below for below in switch.switches if below not in switches]
            if unknown:
                raise self.fail(f"switch {name} names unknown switches {compress(unknown)}")
            seen, waiting = {name}, list(switch.switches)
            while waiting:
                below = waiting.pop()
                if below == name:
                    raise self.fail(f"switch {name} is below itself")
                if below not in seen:
                    seen.add(below)
                    waiting += switches[below].switches

    def _blocks(self, block: Mapping[str, Any]) -> Topology:
        blocks: dict[str, Block] = {}
        taken: set[str] = set()
        for item in self._list(block, "blocks"):
            name = str(item.get("block") or "")
            if not name or name in blocks:
                raise self.fail(f"block: {'each has a name of its own' if name else 'which block is not said'}")
            members = self._members(item, name)
            if taken.intersection(members):
                raise self.fail(f"block {name} has nodes that another block has")
            taken.update(members)
            blocks[name] = Block(name, members)
        return Topology(blocks=tuple(blocks.values()), block_sizes=self._sizes(block, blocks))

    def _sizes(self, block: Mapping[str, Any], blocks: Mapping[str, Block]) -> tuple[int, ...]:
        sizes = block.get("block_sizes")
        if sizes is None:
            return sizes_of(tuple(blocks.values()))
        if not isinstance(sizes, list) or not all(isinstance(size, int) and size > 0 for size in sizes) or not sizes:
            raise self.fail("block_sizes: a list of numbers is wanted")
        if wrong_size([str(size) for size in sizes]) is not None:
            raise self.fail("block_sizes: each is a power of two times the one before it")
        return tuple(sizes)


def sizes_of(blocks: Sequence[Block]) -> tuple[int, ...]:
    """The sizes where none are said: that of the smallest block, and twice, four times … as much as far as there are blocks."""
    least = max(1, min(len(each.nodes) for each in blocks))
    return tuple(least << level for level in range((len(blocks) - 1).bit_length() + 1))


def wrong_size(words: Sequence[str]) -> str | None:
    """The first of BlockSizes that is no number, or not a power of two times the one before it."""
    before = 0
    for word in words:
        size = int(word) if word.isascii() and word.isdigit() and len(word) < 10 else 0
        ratio = size // before if before else 2
        if not size or (before and size % before) or ratio < 2 or ratio & (ratio - 1):
            return word
        before = size
    return None
