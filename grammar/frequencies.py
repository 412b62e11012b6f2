"""Frequencies: of CPUs (``--cpu-freq``), of GPUs (``--gpu-freq``) and of samples (``--acctg-freq``; sbatch(1))."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from grammar.errors import GrammarError
from grammar.numbers import leading_number, whole_number

GOVERNORS = ("conservative", "ondemand", "performance", "powersave", "schedutil", "userspace")
USUAL_GOVERNORS = frozenset(("ondemand", "performance", "userspace"))
"""Those that slurm.conf allows when it does not say (CpuFreqGovernors)."""

_LEVELS = ("low", "medium", "high", "highm1")


class FrequencyError(GrammarError):
    """A frequency that is none; ``lines`` is what is printed before the refusal of the option."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def check_cpu_frequency(text: str, allowed: Collection[str] = USUAL_GOVERNORS) -> None:
    """``P1[-P2[:GOVERNOR]]``: kHz, a level, or as P1 a governor alone. Raises FrequencyError."""
    frequencies, colon, governor = text.partition(":")
    first, dash, last = frequencies.partition("-")
    if colon:
        _check_governor(governor.partition(":")[0], allowed, "illegal governor: {} on --cpu-freq", text)
        if not dash and governor.lower() != "userspace":
            raise FrequencyError(f"gov on cpu-frec ({governor}) illegal without max")
    elif dash and first:
        raise FrequencyError(
            "You must explicitly choose a governor when defining a range. Please specify only one value for the desired"
            " frequency (p1) or choose a specific governor (p3)."
        )
    _check_frequency(first, allowed, governors=not colon)
    if dash:
        _check_frequency(last, allowed, governors=False)


def _check_governor(word: str, allowed: Collection[str], unknown: str, typed: str) -> None:
    if word.lower() not in GOVERNORS:
        raise FrequencyError(unknown.format(word))
    if word.lower() not in allowed:
        raise FrequencyError(f"governor of {typed} is not allowed in slurm.conf")


def _check_frequency(word: str, allowed: Collection[str], *, governors: bool) -> None:
    if not word:
        raise FrequencyError()
    if word.lower() in _LEVELS:
        return
    if governors and word.lower() in GOVERNORS:
        _check_governor(word, allowed, "", word)
        return
    number = whole_number(word)
    if number is None:
        raise FrequencyError(f'unrecognized --cpu-freq argument "{word}"')
    if number <= 0:
        raise FrequencyError()


@dataclass(frozen=True, slots=True)
class CpuFrequency:
    """The words of ``--cpu-freq`` in small letters, None for what is not said; one frequency alone is the most, with the
    governor that keeps to it."""

    least: str | None = None
    most: str | None = None
    governor: str | None = None


def cpu_frequency(text: str) -> CpuFrequency:
    """``low-high:ondemand``, as ``check_cpu_frequency`` let it pass."""
    speeds, _, governor = text.lower().partition(":")
    if speeds in GOVERNORS:
        return CpuFrequency(governor=speeds)
    first, dash, last = speeds.partition("-")
    if dash:
        return CpuFrequency(first or None, last, governor or None)
    return CpuFrequency(None, first or None, governor or ("userspace" if first else None))


_GPU_ITEM = r"(?:(?:memory=)?(?:low|medium|high|highm1|\d+)|verbose)"
_GPU = re.compile(rf"{_GPU_ITEM}(?:,{_GPU_ITEM})*\Z", re.ASCII)


def is_gpu_frequency(text: str) -> bool:
    """Whether a text is of ``[memory=]LEVEL`` or MHz, and ``verbose``."""
    return _GPU.match(text) is not None


_SAMPLED = ("task=", "energy=", "network=", "filesystem=")
_BEGINS_NUMBER = re.compile(r"[ \t\n\v\f\r]*[+-]?\d", re.ASCII)


def check_sample_intervals(text: str) -> None:
    """``SECONDS`` or ``KIND=SECONDS,...``. Raises FrequencyError with a line for each word that is neither."""
    words = filter(None, text.split(","))
    wrong = [word for word in words if not _BEGINS_NUMBER.match(_interval(word)) or _interval(word) == "-1"]
    if wrong:
        raise FrequencyError(*(f"Invalid --acctg-freq specification: {word}" for word in wrong))


def _interval(word: str) -> str:
    kind = next((kind for kind in _SAMPLED if word.lower().startswith(kind)), "")
    return word[len(kind) :]


def task_interval(text: str) -> int | None:
    """Seconds between samples of tasks, the last that are named; None when the text names none."""
    found = None
    for word in text.split(","):
        if word and (word.lower().startswith("task=") or "=" not in word):
            found = leading_number(_interval(word))[0]
    return found
