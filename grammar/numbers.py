"""Whole numbers as the commands' options take them: those of strtol(3), with blanks and a sign before the digits."""

from __future__ import annotations

import re

_LEADING = re.compile(r"[ \t\n\v\f\r]*([+-]?\d+)", re.ASCII)
_LONG = 2**63 - 1
_MANY_DIGITS = 25
"""More digits than any number that counts here has; what is longer is not turned into a number."""


def leading_number(text: str) -> tuple[int, str]:
    """The number that ``text`` begins with, within what 64 bits hold, and the rest; 0 and the whole text when there is none."""
    match = _LEADING.match(text)
    if match is None:
        return 0, text
    digits = match[1]
    number = int(digits) if len(digits) < _MANY_DIGITS else -_LONG if digits.startswith("-") else _LONG
    return max(-_LONG - 1, min(number, _LONG)), text[match.end() :]


def whole_number(text: str) -> int | None:
    """The number that ``text`` is; None for another text. An empty one is 0."""
    number, rest = leading_number(text)
    return None if rest else number
