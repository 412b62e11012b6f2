"""Node names and counts in the short forms that SLURM_* variables have."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, List, Sequence, Tuple

NAME = re.compile(r"^(.*?)([0-9]+)$", re.DOTALL)


def compress(names: Iterable[str]) -> str:
    """``n[1-3,5],login`` for n1 n2 n3 n5 login, in the order given."""
    groups: List[Tuple[str, List[List[str]]]] = []
    for name in names:
        match = NAME.match(name)
        if match is None:
            groups.append((name, []))
            continue
        prefix, digits = match.groups()
        if not groups or groups[-1][0] != prefix or not groups[-1][1]:
            groups.append((prefix, []))
        ranges = groups[-1][1]
        if ranges and _follows(ranges[-1][1], digits):
            ranges[-1][1] = digits
        else:
            ranges.append([digits, digits])
    return ",".join(prefix + _brackets(ranges) for prefix, ranges in groups)


def _follows(before: str, digits: str) -> bool:
    return int(before) + 1 == int(digits) and (len(before) == len(digits) or not (before[0] == "0" or digits[0] == "0"))


def _brackets(ranges: Sequence[Sequence[str]]) -> str:
    if not ranges:
        return ""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return ranges[0][0]
    return "[%s]" % ",".join(low if low == high else "%s-%s" % (low, high) for low, high in ranges)


def expand(text: str) -> List[str]:
    """The inverse of ``compress``; ValueError for what is no list of names, or one that is far too long."""
    names: List[str] = []
    for word in _words(text):
        names += _expand_word(word)
        if len(names) > 100000:
            raise ValueError("too many names")
    return names


def _words(text: str) -> Iterator[str]:
    depth = start = 0
    for position, character in enumerate(text):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and not depth:
            if text[start:position]:
                yield text[start:position]
            start = position + 1
    if depth:
        raise ValueError("brackets do not match")
    if text[start:]:
        yield text[start:]


def _expand_word(word: str) -> List[str]:
    before, bracket, rest = word.partition("[")
    if not bracket:
        return [word]
    inside, _, after = rest.partition("]")
    tails = _expand_word(after) if after else [""]
    found: List[str] = []
    for item in inside.split(","):
        low, dash, high = item.partition("-")
        last = int(high) if dash else int(low)
        if last - int(low) > 100000:
            raise ValueError("too many names")
        found += [before + str(number).zfill(len(low)) + tail for number in range(int(low), last + 1) for tail in tails]
    return found


def counts(values: Iterable[int]) -> str:
    """``2(x2),1`` for 2 2 1."""
    runs: List[List[int]] = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    return ",".join("%d(x%d)" % (value, times) if times > 1 else str(value) for value, times in runs)
