"""``key=value`` as scontrol takes it: keys that may be shortened, and how their values are read.

Each kind of object has a table of ``Key`` rows. A key may be shortened to its row's ``shortest`` letters, in any case; the
first row that fits is meant. Numbers are read as Slurm reads them: nothing at all is 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from grammar.errors import GrammarError
from grammar.times import parse_duration, parse_time
from slurmk.commands.call import Output
from slurmk.core.effects import Accepted, Refused
from slurmk.model.states import INFINITE

Changes = list[tuple[str, Any]]

ERROR = "scontrol: error: "


class Failure(Exception):
    """Ends the command with this exit code; ``text`` goes to standard error."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class Skip(Exception):
    """This key changes nothing; ``text`` is said and the others are looked at. ``counts``: it was a change all the same.
    ``code`` is the least that the exit code will be."""

    def __init__(self, text: str, *, counts: bool = False, code: int = 0) -> None:
        super().__init__(text)
        self.counts = counts
        self.code = code


@dataclass(frozen=True, slots=True)
class Typed:
    """One word of the command: ``Nodes+=n1`` has the key Nodes, the sign +, and the value n1. ``now`` is in Unix seconds."""

    text: str
    key: str
    sign: str
    value: str
    now: float


Read = Callable[[Typed], Changes]


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its name, the least letters of it, and how a value becomes changes of fields. ``signed`` keys take += and -=."""

    name: str
    shortest: int
    read: Read
    signed: bool = False


def abbreviates(typed: str, name: str, shortest: int) -> bool:
    return len(typed) >= shortest and name.lower().startswith(typed.lower())


def find_key(keys: Iterable[Key], typed: str) -> Key | None:
    """The key that was typed, perhaps shortened."""
    return next((key for key in keys if abbreviates(typed, key.name, key.shortest)), None)


def typed(word: str, now: float) -> Typed | None:
    """A word with an ``=`` in its parts; None for one without."""
    key, equals, value = word.partition("=")
    if not equals:
        return None
    sign = key[-1:] if key[-1:] in ("+", "-") and len(key) > 1 else ""
    return Typed(word, key[: len(key) - len(sign)], sign, value, now)


# ---------------------------------------------------------------------------------------------- readers of values


def unsigned(text: str, bits: int) -> int | None:
    """A number of that width; None for what is none, or is one of the two highest, which mean something else."""
    match = re.fullmatch(r"[ \t]*\+?([0-9]{0,20})", text)
    if match is None:
        return None
    number = int(match[1] or 0)
    return number if number < (1 << bits) - 2 else None


def text(field: str, *, empty: object = "") -> Read:
    return lambda typed: [(field, typed.value or empty)]


def number(name: str, *fields: str, bits: int = 32) -> Read:
    def read(typed: Typed) -> Changes:
        found = unsigned(typed.value, bits)
        if found is None:
            raise Failure(f"{ERROR}Invalid {name} value: {typed.value}")
        return [(field, found) for field in fields]

    return read


def limit(name: str, field: str, *, bits: int = 32) -> Read:
    """A number, or UNLIMITED."""
    counted = number(name, field, bits=bits)
    return lambda typed: [(field, INFINITE)] if typed.value.upper() in ("UNLIMITED", "INFINITE") else counted(typed)


def yes_no(name: str, field: str) -> Read:
    """YES or NO, which may be shortened."""

    def read(typed: Typed) -> Changes:
        for word, truth in (("no", False), ("yes", True)):
            if typed.value and word.startswith(typed.value.lower()):
                return [(field, truth)]
        raise Failure(f"{ERROR}Invalid input: {typed.text}\n{ERROR}Acceptable {name} values are YES and NO")

    return read


def truth(name: str, field: str, *values: object) -> Read:
    """YES or NO, which may be shortened, or a number. ``values`` are what the field gets for no and for yes."""
    no, yes = values or (False, True)

    def read(typed: Typed) -> Changes:
        for word, value in (("yes", yes), ("no", no)):
            if typed.value and word.startswith(typed.value.lower()):
                return [(field, value)]
        found = unsigned(typed.value, 16)
        if found is None:
            raise Failure(f"{ERROR}Invalid {name} value: {typed.value}")
        return [(field, yes if found else no)]

    return read


def moment(field: str) -> Read:
    """A time; one that is not understood changes nothing, and what is wrong with it is said."""

    def read(typed: Typed) -> Changes:
        if not typed.value:
            raise Skip("")
        try:
            return [(field, parse_time(typed.value, typed.now))]
        except GrammarError as error:
            raise Skip(str(error)) from None

    return read


def minutes(field: str, refusal: str) -> Read:
    """A duration; ``refusal`` is what is said of one that is not understood, with ``{text}`` for the whole word."""

    def read(typed: Typed) -> Changes:
        try:
            return [(field, parse_duration(typed.value))]
        except GrammarError:
            raise Failure(refusal.format(text=typed.text)) from None

    return read


BINDINGS = {
    "none": "none",
    "no": "none",
    "core": "cores",
    "cores": "cores",
    "socket": "sockets",
    "sockets": "sockets",
    "thread": "threads",
    "threads": "threads",
    "ldom": "ldoms",
    "ldoms": "ldoms",
}
"""Words of CpuBind, and how they are shown."""


def cpu_binding(typed: Typed) -> Changes:
    """``cores``, ``verbose,threads``; ``off`` takes it away."""
    words = [word for word in typed.value.lower().split(",") if word]
    if words == ["off"]:
        return [("cpu_binding", "")]
    kinds = [BINDINGS[word] for word in words if word in BINDINGS]
    if len(kinds) > 1 or any(word not in BINDINGS and word not in ("verbose", "v") for word in words):
        raise Failure(f"{ERROR}Invalid input {typed.text}")
    loud = ["verbose"] if any(word in ("verbose", "v") for word in words) else []
    return [("cpu_binding", ",".join([*loud, *kinds]))] if words else []


# ---------------------------------------------------------------------------------------------- answers


def tell_update(answers: Iterable[Accepted | Refused], output: Output, prefix: str = "slurm_update error: ") -> int:
    """Say the first refusal, however quiet; gives the exit code."""
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    if refused:
        output.error(f"{prefix}{refused[0].error}\n")
    return 1 if refused else 0


def value_of(words: Sequence[str], name: str, shortest: int) -> str | None:
    """The value of the last word whose key is that name, perhaps shortened."""
    found = [word.partition("=") for word in words if "=" in word]
    return next((value for key, _, value in reversed(found) if abbreviates(key, name, shortest)), None)
