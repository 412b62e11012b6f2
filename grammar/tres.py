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
_GRES = re.compile(rf"(?:gres/)?({_NAME})(?::({_NAME}))?(?:[:=](\d{{1,18}})([KMGTkmgt]?))?\Z", re.ASCII)
_MULTIPLIERS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_ORDER = {"cpu": 0, "mem": 1, "energy": 2, "node": 3, "billing": 4}
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
    """The items of ``gpu:a100:2,shard:4K``, also with ``gres/`` before and ``=`` for the last colon. A count left out is 1.

    Raises GrammarError with the message that clients know.
    """
    items = []
    for word in text.split(","):
        match = _GRES.match(word.strip())
        if match is None:
            raise GrammarError("Invalid generic resource (gres) specification")
        count = int(match[3]) * _MULTIPLIERS[match[4].upper()] if match[3] else 1
        items.append(Gres(match[1], match[2] or "", count))
    return tuple(items)


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
    """(name, count) of ``cpu=2,gres/gpu:1`` and ``cpu:2``: a name is ``cpu``, ``gres/NAME[:TYPE]`` or ``license/NAME``."""
    items = []
    for word in text.split(","):
        match = _PER_TASK.match(word)
        if match is None:
            raise GrammarError("Invalid Trackable RESource (TRES) specification")
        items.append((match[1], int(match[2]) if match[2] else 1))
    return tuple(items)


_PER_TASK = re.compile(rf"(cpu|mem|license/{_NAME}|gres/{_NAME}(?::{_NAME})?)(?:[:=](\d{{1,18}}))?\Z", re.ASCII)


def parse_tres(text: str) -> dict[str, int]:
    """``cpu=4,mem=2G,gres/gpu:a100=2`` by name; memory in MiB. Raises GrammarError."""
    found: dict[str, int] = {}
    for word in text.split(",") if text else ():
        name, equals, amount = word.partition("=")
        if not name or not equals:
            raise GrammarError("Invalid Trackable RESource (TRES) specification")
        if name == "mem":
            found[name] = parse_printed_memory(amount)
        elif amount.isascii() and amount.isdigit() and len(amount) <= 18:
            found[name] = int(amount)
        else:
            raise GrammarError("Invalid Trackable RESource (TRES) specification")
    return found


def format_tres(amounts: Mapping[str, int]) -> str:
    """The string of accounting, in its order (cpu, mem, node, billing, then the others by name). Memory is MiB."""
    names = sorted((name for name, amount in amounts.items() if amount), key=lambda name: (_ORDER.get(name, 9), name))
    return ",".join(f"{name}={format_memory(amounts[name]) if name == 'mem' else amounts[name]}" for name in names)
