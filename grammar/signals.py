"""Signals by name and number, and the ``--signal`` option."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grammar.errors import GrammarError
from grammar.numbers import whole_number

NUMBERS: dict[str, int] = {
    "HUP": 1,
    "INT": 2,
    "QUIT": 3,
    "ABRT": 6,
    "KILL": 9,
    "USR1": 10,
    "SEGV": 11,
    "USR2": 12,
    "PIPE": 13,
    "ALRM": 14,
    "TERM": 15,
    "CHLD": 17,
    "CONT": 18,
    "STOP": 19,
    "TSTP": 20,
    "TTIN": 21,
    "TTOU": 22,
    "URG": 23,
    "XCPU": 24,
}
"""The names that Slurm knows, with Linux's numbers."""

NAMES: dict[int, str] = {number: name for name, number in NUMBERS.items()}

DEFAULT_DELAY = 60
"""Seconds before the time limit at which ``--signal`` is sent when it names none."""

_OPTION = re.compile(r"(?:([BbRr]+):)?[ \t]*([A-Za-z0-9]+|[+-]\d+)[ \t]*(?:@[ \t]*(\d{0,5}))?\Z", re.ASCII)
_UNKNOWN = {"SEGV"}


@dataclass(frozen=True, slots=True)
class WarningSignal:
    """``delay`` is seconds before the time limit; ``flags`` are of B (the batch shell only) and R (also when a reservation
    that overlaps is about to begin)."""

    number: int
    delay: int
    flags: str


def parse_signal(text: str) -> int:
    """Number of ``USR1``, ``SIGUSR1`` (any case) or ``10``. Raises GrammarError."""
    word = text.strip().upper()
    if word.isascii() and word.isdigit() and len(word) <= 3 and 0 < int(word) <= 64:
        return int(word)
    number = NUMBERS.get(word.removeprefix("SIG"))
    if number is None:
        raise GrammarError(f"Unknown job signal: {text}")
    return number


def _warning_number(text: str) -> int:
    """A signal's number as 16 bits hold it, or that of a name. Raises GrammarError."""
    number = whole_number(text)
    try:
        if number is None:
            return parse_signal(text)
    except GrammarError:
        pass
    if not number or not number & 0xFFFF:
        raise GrammarError("Invalid --signal specification")
    return number & 0xFFFF


def parse_warning_signal(text: str) -> WarningSignal:
    """``[{R|B}:]SIGNAL[@SECONDS]``. Raises GrammarError."""
    match = _OPTION.match(text)
    if match is None or (match[3] and int(match[3]) > 0xFFFF):
        raise GrammarError("Invalid --signal specification")
    number = _warning_number(match[2])
    if NAMES.get(number) in _UNKNOWN and not match[2].isdigit():
        raise GrammarError("Invalid --signal specification")
    delay = DEFAULT_DELAY if match[3] is None else int(match[3] or 0)
    given = (match[1] or "").upper()
    return WarningSignal(number, delay, "".join(flag for flag in "BR" if flag in given))
