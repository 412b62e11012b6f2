"""Sizes of memory and disk: MiB inside, suffixes outside (sbatch(1), --mem)."""

from __future__ import annotations

import re
from functools import lru_cache

from grammar.errors import GrammarError

_SIZE = re.compile(r"[ \t]*\+?(\d{1,18})(?:([KMGT])B?)?\Z", re.IGNORECASE | re.ASCII)
_FACTORS = {"M": 1, "G": 1 << 10, "T": 1 << 20}
_UNITS = "KMGTPE"


@lru_cache(maxsize=1024)
def parse_memory(text: str) -> int:
    """MiB of ``4096``, ``4G``, ``4gb``, ``500K`` (rounded up to 1). Raises GrammarError."""
    match = _SIZE.match(text)
    if match is None:
        raise GrammarError("not a size: digits, and K, M, G or T")
    number, unit = int(match[1]), (match[2] or "M").upper()
    return -(-number // 1024) if unit == "K" else number * _FACTORS[unit]


_PRINTED = re.compile(r"(\d{1,18})(?:\.(\d{1,4}))?([KMGTPE])\Z", re.ASCII)


def parse_printed_memory(text: str) -> int:
    """MiB of what ``format_memory`` prints, ``1.50T`` too, which users cannot ask for. Raises GrammarError."""
    match = _PRINTED.match(text)
    if match is None:
        return parse_memory(text)
    fraction = match[2] or ""
    scaled = int(match[1] + fraction) << 10 * _UNITS.index(match[3])
    divisor: int = 1024 * 10 ** len(fraction)
    return scaled // divisor


def format_memory(mib: int) -> str:
    """As squeue, scontrol and sacct print requested memory: ``4G``, ``1.50G``, ``2900M``, and 0 without a unit."""
    return format_size(mib, "M") if mib else "0"


def format_size(number: int, unit: str) -> str:
    """``number`` of ``unit`` in the largest unit of which it is a multiple of a half."""
    place = _UNITS.index(unit)
    halves = number * 2
    while halves >= 2048 and halves % 1024 == 0 and place < len(_UNITS) - 1:
        if halves % 2048:
            return f"{halves / 2048:.2f}{_UNITS[place + 1]}"
        halves //= 1024
        place += 1
    return f"{halves // 2}{_UNITS[place]}"
