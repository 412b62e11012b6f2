"""Values that documents share: numbers with flags, exit codes, names of signals, the identity of processes."""

from __future__ import annotations

import grp
import signal as signals
from functools import lru_cache

from slurmk.model.states import INFINITE, NO_VALUE, JobFlag, JobState


class Number(dict[str, object]):
    """A number that may be unset or infinite, as ``{"set": …, "infinite": …, "number": …}``. Shared: never change one.

    ``texts`` are its forms as JSON by their indentation, kept because documents repeat the same few numbers.
    """

    __slots__ = ("texts",)

    def __init__(self, members: dict[str, object]) -> None:
        super().__init__(members)
        self.texts: dict[int, str] = {}


class Retired(list[object]):
    """A member that v0.0.45 still has but no longer fills: an empty list, or with ``+complex`` nothing."""


class RetiredNumber(int):
    """The same for a number: 0, or nothing."""


class Placeholder(int):
    """A number in the place of one that is not there: NO_VAL, or nothing."""


UNSET = Number({"set": False, "infinite": False, "number": 0})
UNSET_FLOAT = Number({"set": False, "infinite": False, "number": 0.0})
INFINITY = Number({"set": False, "infinite": True, "number": 0})


@lru_cache(maxsize=16384)
def number(value: int | float | None) -> Number:
    """A number with flags; None is unset."""
    return UNSET if value is None else Number({"set": True, "infinite": False, "number": value})


def limit(value: int | None) -> Number:
    """A number with flags from one that uses Slurm's NO_VAL and INFINITE; None is unset."""
    if value == INFINITE:
        return INFINITY
    return number(None if value == NO_VALUE else value)


_NAMES = {each.value: each.name.removeprefix("SIG") for each in signals.Signals}
_SUCCESS, _ERROR, _SIGNALED, _CORE = "SUCCESS", "ERROR", "SIGNALED", "CORE_DUMPED"
_NO_SIGNAL = {"id": UNSET, "name": ""}


@lru_cache(maxsize=1024)
def exit_code(status: int) -> dict[str, object]:
    """A wait(2) status: exit code or signal, and which of them it is."""
    signal = status & 0x7F
    if signal:
        told = {"id": number(signal), "name": _NAMES.get(signal, str(signal))}
        return {"status": [_CORE if status & 0x80 else _SIGNALED], "return_code": UNSET, "signal": told}
    code = status >> 8 & 0xFF
    return {"status": [_ERROR if code else _SUCCESS], "return_code": number(code), "signal": _NO_SIGNAL}


_FLAGS = tuple(sorted(flag for flag in JobFlag if flag and flag is not JobFlag.EPILOG_RUNS))


@lru_cache(maxsize=1024)
def job_state(state: int, flags: int) -> list[str]:
    """The base state and the flags beside it."""
    return [JobState(state).name, *(flag.name or "" for flag in _FLAGS if flags & flag)]


@lru_cache(maxsize=1024)
def group_name(group_id: int) -> str:
    """A group's name, or its number where it has none."""
    try:
        return grp.getgrgid(group_id).gr_name
    except (KeyError, OverflowError):
        return str(group_id)


_BINDINGS = {"verbose": (1, "VERBOSE")} | {
    word: (number, f"CPU_BIND_{'' if word == 'none' else 'TO_'}{word.upper()}")
    for word, number in (("threads", 2), ("cores", 4), ("sockets", 8), ("ldoms", 16), ("none", 32))
}
"""How the words of CpuBind are written in documents: as a number, and as a name."""


def binding_number(text: str) -> int:
    """``verbose,cores`` as 5."""
    return sum(_BINDINGS[word][0] for word in text.split(",") if word in _BINDINGS)


def binding_names(text: str) -> list[str]:
    """``verbose,cores`` by names, how loud it is last."""
    return [_BINDINGS[word][1] for word in reversed(text.split(",")) if word in _BINDINGS]
