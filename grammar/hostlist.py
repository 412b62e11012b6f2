"""Host lists: ``n[1-3,5],r[1-2]c[01-16]`` for many names (scontrol(1), show hostnames and hostlist).

A name is a prefix and the number that ends it; neighbours with the same prefix fold to ranges. Leading zeros belong to a
number: ``n01`` and ``n1`` are two hosts. The text comes from users, so its size is bounded before anything is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from grammar.errors import GrammarError

MAXIMUM_RANGE = 65536
"""Numbers that one ``a-b`` may stand for, as in Slurm."""

MAXIMUM_HOSTS = 4 * MAXIMUM_RANGE
"""Names that one list may stand for. Slurm has no such bound and runs out of memory instead."""

_DIGITS = 18  # longer numbers are text
_RANGE = re.compile(rf"(\d{{1,{_DIGITS}}})(?:-(\d{{0,{_DIGITS}}}))?\Z", re.ASCII)
_NUMBERED = re.compile(rf"(.*?)(\d{{1,{_DIGITS}}})\Z", re.ASCII | re.DOTALL)
_RUNS = re.compile(r"(\d+)", re.ASCII)


class HostlistError(GrammarError):
    """A text that is no host list. ``detail`` is what Slurm's parser logs about the range at fault, if it is one."""

    def __init__(self, text: str, detail: str = "", position: int | None = None) -> None:
        super().__init__(f"Invalid hostlist: {text}", position)
        self.detail = detail


class _Host(NamedTuple):
    prefix: str
    digits: str  # "" when the name does not end in a number


# ------------------------------------------------------------------------------------------------ text to names


def expand(text: str) -> list[str]:
    """The names that ``text`` stands for, in its order and with repetitions. Raises HostlistError.

    Names are separated by commas or white space; brackets may stand anywhere in a name and more than once.
    """
    names: list[str] = []
    for word in _words(text):
        if "{" in word:
            raise HostlistError(text, "host list functions are not known here")
        if "[" not in word:
            names.append(word)
        else:
            names += _expand_word(word, text, MAXIMUM_HOSTS - len(names))
        if len(names) > MAXIMUM_HOSTS:
            raise HostlistError(text, f"Too many hosts: more than {MAXIMUM_HOSTS}")
    return names


def _words(text: str) -> Iterator[str]:
    """The parts between separators that are outside brackets."""
    start, depth = 0, 0
    for position, character in enumerate(text):
        if character == "[":
            depth += 1
        elif character == "]":
            depth = max(depth - 1, 0)
        elif not depth and character in ", \t\n":
            if position > start:
                yield text[start:position]
            start = position + 1
    if depth:
        raise HostlistError(text, position=start)
    if start < len(text):
        yield text[start:]


def _expand_word(word: str, text: str, room: int) -> list[str]:
    """One name with brackets. The last bracket counts fastest, then the first, the second and so on, as in Slurm."""
    literals, brackets = _split(word)
    numbers = [_numbers(bracket, text) for bracket in brackets]
    total = 1
    for each in numbers:
        total *= len(each)
        if total > room:
            raise HostlistError(text, f"Too many hosts: more than {MAXIMUM_HOSTS}")
    heads = [literals[0]]
    for position, each in enumerate(numbers[:-1]):
        heads = [f"{head}{number}{literals[position + 1]}" for number in each for head in heads]
    return [f"{head}{number}{literals[-1]}" for head in heads for number in numbers[-1]]


def _split(word: str) -> tuple[list[str], list[str]]:
    """What is outside brackets (one more) and inside them. An outer bracket around another is text."""
    literals = [""]
    brackets: list[str] = []
    rest = word
    while True:
        close = rest.find("]")
        opening = rest.rfind("[", 0, close) if close >= 0 else -1
        if opening < 0:
            if close >= 0 and "[" in rest[close:]:  # a stray "]" first
                literals[-1] += rest[: close + 1]
                rest = rest[close + 1 :]
                continue
            literals[-1] += rest
            return literals, brackets
        literals[-1] += rest[:opening]
        brackets.append(rest[opening + 1 : close])
        literals.append("")
        rest = rest[close + 1 :]


def _numbers(bracket: str, text: str) -> list[str]:
    numbers: list[str] = []
    for item in bracket.split(","):
        match = _RANGE.match(item)
        if match is None and re.fullmatch(r"\d+(-\d*)?", item, re.ASCII):
            raise HostlistError(text, f"Too many hosts in range `{item}'")
        if match is None:
            raise HostlistError(text, f"Invalid range: `{item}'")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise HostlistError(text, f"Invalid range: `{item}'")
        if high - low >= MAXIMUM_RANGE:
            raise HostlistError(text, f"Too many hosts in range `{item}'")
        width = len(match[1])
        numbers += [f"{number:0{width}}" for number in range(low, high + 1)]
        if len(numbers) > MAXIMUM_HOSTS:
            raise HostlistError(text, f"Too many hosts: more than {MAXIMUM_HOSTS}")
    return numbers


# ------------------------------------------------------------------------------------------------ names to text


def compress(names: Iterable[str]) -> str:
    """``names`` sorted and folded: ``login,n[1-3,10]`` (scontrol show hostlistsorted). A name given twice stays twice."""
    listed = tuple(names)
    if len(listed) < 2:
        return "".join(listed)
    return _compress(listed) if len(listed) <= 256 else _fold(_sorted(map(_host, listed)))


@lru_cache(maxsize=2048)
def _compress(names: tuple[str, ...]) -> str:
    return _fold(_sorted(map(_host, names)))


def fold(names: Iterable[str]) -> str:
    """``names`` folded in the order given (scontrol show hostlist)."""
    return _fold(map(_host, names))


def in_order(names: Iterable[str]) -> list[str]:
    """``names`` sorted as ``compress`` sorts them: numbers by value, ``n2`` before ``n10``."""
    return [host.prefix + host.digits for host in _sorted(map(_host, names))]


@lru_cache(maxsize=1 << 16)
def _host(name: str) -> _Host:
    match = _NUMBERED.match(name)
    return _Host(match[1], match[2]) if match else _Host(name, "")


def _sorted(hosts: Iterable[_Host]) -> list[_Host]:
    listed = list(hosts)
    padded: dict[str, set[int]] = {}
    for host in listed:
        if _is_padded(host.digits):
            padded.setdefault(host.prefix, set()).add(len(host.digits))

    def key(host: _Host) -> tuple[object, ...]:
        if not host.digits:
            return (_natural(host.prefix), host.prefix, -1, 0)
        return (_natural(host.prefix), host.prefix, _width(host.digits, padded.get(host.prefix, ())), int(host.digits))

    return sorted(listed, key=key)


def _width(digits: str, widths: Iterable[int]) -> int:
    """The padding that a number counts with: its own, or one that a number as long as it may have gone on from, or none."""
    return max((width for width in widths if width <= len(digits)), default=0)


def _is_padded(digits: str) -> bool:
    return len(digits) > 1 and digits[0] == "0"


@lru_cache(maxsize=4096)
def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key by which runs of digits count as numbers."""
    key: list[tuple[int, int, str]] = []
    for run in _RUNS.split(text):
        if run[:1].isascii() and run[:1].isdigit():
            significant = run.lstrip("0")
            key.append((ord("0"), len(significant), significant))
        else:
            key += [(ord(character), 0, "") for character in run]
    return tuple(key)


def _fold(hosts: Iterable[_Host]) -> str:
    parts: list[str] = []
    for (prefix, numbered), group in groupby(hosts, key=lambda host: (host.prefix, bool(host.digits))):
        if not numbered:
            parts += [prefix for _ in group]
            continue
        ranges = _ranges(host.digits for host in group)
        single = len(ranges) == 1 and "-" not in ranges[0]
        parts.append(f"{prefix}{ranges[0]}" if single else f"{prefix}[{','.join(ranges)}]")
    return ",".join(parts)


def _ranges(numbers: Iterable[str]) -> list[str]:
    """``1-3,5`` as its items. A range goes on while numbers follow each other and have the form of its first one."""
    ranges: list[str] = []
    first = last = ""
    for digits in numbers:
        if first and _follows(digits, first, last):
            last = digits
            continue
        if first:
            ranges.append(_range(first, last))
        first = last = digits
    if first:
        ranges.append(_range(first, last))
    return ranges


def _follows(digits: str, first: str, last: str) -> bool:
    number = int(digits)
    return number == int(last) + 1 and digits == f"{number:0{len(first)}}" and number - int(first) < MAXIMUM_RANGE


def _range(first: str, last: str) -> str:
    return first if first == last else f"{first}-{last}"
