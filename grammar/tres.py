"""TRES and GRES texts: what options say, what requests keep, and the strings of accounting.

A request keeps GRES in the words that Slurm prints, each item with its kind before it (``gres/gpu:a100:2``); accounting
counts trackable resources as ``cpu=4,mem=2G,gres/gpu:a100=2``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from grammar.errors import GrammarError
from grammar.sizes import format_memory, parse_printed_memory

_NAME = r"[A-Za-z_][A-Za-z0-9_.@-]*"
_MULTIPLIERS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_ORDER = {"cpu": 0, "mem": 1, "energy": 2, "node": 3, "billing": 4}
_COUNT = re.compile(r"(\d{1,18})([KMGTkmgt]?)\Z", re.ASCII)
_TYPED_COUNT = re.compile(r"(?:(?P<type>[^:=,]+)[:=])?(?P<count>\d{1,18}[KMGTkmgt]?)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Gres:
    """One kind of GRES and how much of it; ``type`` is empty when any will do."""

    name: str
    type: str
    count: int

    @property
    def label(self) -> str:
        """``gpu:a100`` or ``gpu``."""
        return f"{self.name}:{self.type}" if self.type else self.name


@lru_cache(maxsize=1024)
def parse_gres(text: str) -> tuple[Gres, ...]:
    """The items of ``gpu:a100:2,shard:4K``, also with ``gres/`` before and ``=`` for the last colon. A count left out is 1; a
    word alone that is no count is a type. Of an item said twice the last holds, and empty words say nothing.

    Raises GrammarError with the message that clients know.
    """
    found: dict[tuple[str, str], Gres] = {}
    for word in text.split(","):
        if item := _gres_item(word.removeprefix("gres/")):
            found[item.name, item.type] = item
    return tuple(found.values())


_NOTHING = re.compile(r"0+[KMGTkmgt]?\Z", re.ASCII)
_SEPARATORS = re.compile("[:=]")
INVALID_TRES = "Invalid Trackable RESource (TRES) specification"


def _gres_item(word: str) -> Gres | None:
    name, *rest = _SEPARATORS.split(word, maxsplit=1)
    if not rest:
        return Gres(name, "", 1) if name and not _NOTHING.match(name) else None
    *types, last = _SEPARATORS.split(rest[0])
    count = _COUNT.match(last)
    if count:
        return Gres(name, ":".join(types), int(count[1]) * _MULTIPLIERS[count[2].upper()])
    if types or not last or word[len(name)] == "=":
        raise GrammarError(INVALID_TRES)
    return Gres(name, last, 1)


def format_gres(items: Iterable[Gres]) -> str:
    """``gres/gpu:a100:2,gres/shard:4``."""
    return ",".join(f"gres/{item.label}:{item.count}" for item in items)


def prefix_gres(text: str, kind: str = "gres") -> str:
    """A request's text of ``--gres``: ``gpu:2,shard:1`` becomes ``gres/gpu:2,gres/shard:1``; what has a kind keeps it."""
    return ",".join(word if word.startswith(f"{kind}/") else f"{kind}/{word}" for word in text.split(","))


def prefix_gpus(text: str) -> str:
    """A request's text of ``--gpus`` and its like: ``2`` becomes ``gres/gpu:2``, ``a100:1,v100:1`` one item each."""
    return ",".join(f"gres/gpu:{word}" for word in text.split(","))


def gpus_per_task(text: str) -> str:
    """``--gpus-per-task`` as part of ``--tres-per-task``: ``2`` becomes ``gres/gpu=2``, ``a100:2`` ``gres/gpu:a100=2``.

    Words without a count ask for nothing, as in the original.
    """
    found: dict[str, str] = {}
    for word in text.split(","):
        if match := _TYPED_COUNT.match(word):
            name = f"gres/gpu:{match['type']}" if match["type"] else "gres/gpu"
            if match["count"].strip("0"):
                found.setdefault(name, match["count"])
    return ",".join(f"{name}={count}" for name, count in found.items())


@lru_cache(maxsize=1024)
def parse_tres_per_task(text: str) -> tuple[tuple[str, int], ...]:
    """(name, count) of ``cpu=2,gres/gpu:1`` and ``cpu:2``: a name is ``cpu``, ``gres/NAME[:TYPE]`` or ``license/NAME``. A
    word without a count that is none of them says nothing. Raises GrammarError."""
    items = []
    for word in text.split(","):
        if word.startswith(("gres/", "gres:")):
            found = _gres_item(word[5:])
            items += [(f"gres/{found.label}", found.count)] if found else []
            continue
        match = _PER_TASK.match(word)
        if match is not None:
            items.append((match[1], int(match[2]) if match[2] else 1))
        elif _SEPARATORS.search(word):
            raise GrammarError(INVALID_TRES)
    return tuple(items)


_PER_TASK = re.compile(rf"(cpu|license/{_NAME})(?:[:=](\d{{1,18}}))?\Z", re.ASCII)


def parse_tres(text: str) -> dict[str, int]:
    """``cpu=4,mem=2G,gres/gpu:a100=2`` by name; memory in MiB. Raises GrammarError."""
    found: dict[str, int] = {}
    for word in text.split(",") if text else ():
        name, equals, amount = word.partition("=")
        if not name or not equals:
            raise GrammarError(INVALID_TRES)
        if name == "mem":
            found[name] = parse_printed_memory(amount)
        elif amount.isascii() and amount.isdigit() and len(amount) <= 18:
            found[name] = int(amount)
        else:
            raise GrammarError(INVALID_TRES)
    return found


def format_tres(amounts: Mapping[str, int]) -> str:
    """The string of accounting, in its order (cpu, mem, node, billing, then the others by name). Memory is MiB."""
    names = sorted((name for name, amount in amounts.items() if amount), key=lambda name: (_ORDER.get(name, 9), name))
    return ",".join(f"{name}={format_memory(amounts[name]) if name == 'mem' else amounts[name]}" for name in names)
