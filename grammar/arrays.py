"""Job arrays: ``0-9:2,12%4`` (sbatch(1), --array)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from grammar.errors import GrammarError

MESSAGE = "Invalid job array specification"
_ITEM = re.compile(r"[ \t]*\+?(\d{1,10})(?:-(\d{1,10}))?(?::(\d{1,10}))?\Z", re.ASCII)
_LIMIT = re.compile(r"%(\d{0,9})[^,]*", re.ASCII)

_LONG_PROGRESSION, _WIDE_PROGRESSION = 5, 10
"""A progression of no more elements than this, or over no more numbers than this, is written out one by one."""


LARGEST_ARRAY = 4_000_001
"""What MaxArraySize can be at most (slurm.conf(5))."""


@dataclass(frozen=True, slots=True)
class ArraySpecification:
    """The elements, ascending and without repetition, and how many may run at once (0: any number)."""

    tasks: tuple[range, ...]
    maximum_running: int = 0


@lru_cache(maxsize=256)
def parse_array(text: str, maximum: int) -> ArraySpecification:
    """The elements that ``text`` names; every number must be below ``maximum`` (MaxArraySize).

    As the original, brackets around the list, empty items and a limit that is no number are passed over, and a limit alone is
    element 0. Raises GrammarError.
    """
    limits = [int(digits or 0) for digits in _LIMIT.findall(text)]
    listed = _LIMIT.sub("", text).removeprefix("[").removesuffix("]")
    ranges = [_item(word, maximum) for word in listed.split(",") if word]
    if not ranges:
        if not limits:
            raise GrammarError(MESSAGE)
        ranges = [range(1)]
    return ArraySpecification(_merged(ranges), limits[0] if limits else 0)


def _item(word: str, maximum: int) -> range:
    match = _ITEM.match(word)
    if match is None:
        raise GrammarError(MESSAGE)
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1) if match[3] is not None else 1
    if last < first or last >= maximum or step < 1:
        raise GrammarError(MESSAGE)
    return range(first, last + 1, step)


def _merged(ranges: list[range]) -> tuple[range, ...]:
    if len(ranges) == 1:
        return (_shortest(ranges[0]),)
    numbers = sorted(set().union(*ranges))
    return tuple(_runs(numbers))


def _shortest(found: range) -> range:
    """The same elements with the end just behind the last one, so that equal sets are equal ranges."""
    return range(found[0], found[-1] + 1, found.step if len(found) > 1 else 1)


def _runs(numbers: list[int]) -> list[range]:
    """Ascending numbers as one progression if they are one, else as runs of neighbours."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
    whole = range(numbers[0], numbers[-1] + 1, step)
    if step > 1 and len(whole) == len(numbers) and all(map(int.__eq__, whole, numbers)):
        return [whole]
    runs: list[range] = []
    start = previous = numbers[0]
    for number in numbers[1:]:
        if number != previous + 1:
            runs.append(range(start, previous + 1))
            start = number
        previous = number
    runs.append(range(start, previous + 1))
    return runs


def format_tasks(tasks: Iterable[range]) -> str:
    """``0-3,7``; one long progression as ``1-19:3``. Several ranges are merged first."""
    ranges = [task for task in tasks if task]
    if not ranges:
        return ""
    if len(ranges) > 1:
        ranges = _runs(sorted(set().union(*ranges)))
    if len(ranges) == 1 and ranges[0].step > 1:
        only = ranges[0]
        if len(only) > _LONG_PROGRESSION and only[-1] - only[0] > _WIDE_PROGRESSION:
            return f"{only[0]}-{only[-1]}:{only.step}"
        return ",".join(map(str, only))
    return ",".join(_text(item) for item in ranges)


def _text(item: range) -> str:
    if item.step > 1:
        return ",".join(map(str, item))
    return f"{item[0]}-{item[-1]}" if len(item) > 1 else str(item[0])
