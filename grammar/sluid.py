"""Slurm-wide unique ids of jobs: the text ``s`` and 13 digits of Crockford's base 32, for a number of 64 bits that the
accounting database knows the job by (``SLUID`` and ``DBIndex`` of sacct)."""

from __future__ import annotations

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 13
_VALUES = {digit: value for value, digit in enumerate(DIGITS)}


def format_sluid(number: int) -> str:
    """The text of a number below 2^64."""
    digits = []
    for _ in range(LENGTH):
        number, digit = divmod(number, len(DIGITS))
        digits.append(DIGITS[digit])
    return "s" + "".join(reversed(digits))


def parse_sluid(text: str) -> int:
    """The number of a text that ``format_sluid`` gave; 0 for any other."""
    if len(text) != LENGTH + 1 or not text.startswith("s"):
        return 0
    number = 0
    for digit in text[1:]:
        if digit not in _VALUES:
            return 0
        number = number * len(DIGITS) + _VALUES[digit]
    return number


def typed_sluid(text: str) -> str:
    """The SLUID that was typed, in which the case of letters does not count but for the first; empty for other text."""
    canonical = text[:1] + text[1:].upper()
    return canonical if parse_sluid(canonical) else ""
