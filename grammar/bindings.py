"""Bindings of tasks: to memory (``--mem-bind``), GPUs (``--gpu-bind``) and any TRES (``--tres-bind``; sbatch(1), srun(1))."""

from __future__ import annotations

import re

from grammar.errors import GrammarError

_WITH_LIST = ("map_gpu:", "map:", "mask_gpu:", "mask:")
_GPU_KINDS = ("closest", "none", "single:", "per_task:", *_WITH_LIST)
_LIST_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]+|\d*", re.ASCII)


class BindingError(GrammarError):
    """A binding that is none; ``lines`` is what is printed before the refusal of the option."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def check_gpu_binding(text: str) -> None:
    """``[verbose,]KIND[:VALUE]``. Only the beginning of a kind counts, in any case. Raises BindingError."""
    kind = text[8:] if text.lower().startswith("verbose,") else text
    known = next((word for word in _GPU_KINDS if kind.lower().startswith(word)), None)
    if known is None:
        raise BindingError()
    if known in _WITH_LIST:
        _check_list(kind[len(known) :])


def _check_list(text: str) -> None:
    """Numbers, each perhaps with ``*`` and how often. Raises BindingError that names the character at fault."""
    for item in text.split(","):
        for number in item.split("*"):
            end = _LIST_NUMBER.match(number)
            assert end is not None
            if end.end() < len(number):
                raise BindingError(f"Failed to validate {number}, offending character is {number[end.end()]}")


_TRES_ITEM = re.compile(r"gres/[\w/]+:", re.ASCII)


def is_tres_binding(text: str) -> bool:
    """Whether a text is of ``gres/NAME:[verbose,]KIND``, the first of several is looked at."""
    match = _TRES_ITEM.match(text)
    if match is None:
        return False
    try:
        check_gpu_binding(text[match.end() :])
    except BindingError:
        return False
    return True


_MEMORY_WORDS = frozenset("quiet q verbose v none no nobind rank local prefer p".split())  # noqa: SIM905
_SEPARATOR = re.compile(r",(?![0-9]|[0-9A-Fa-f]*(?:,|\Z))", re.ASCII)
"""A comma before a number, also a hexadecimal one, is one of a list; what only begins like one is a word."""


def check_memory_binding(text: str) -> None:
    """``[verbose,]rank|local|prefer|map_mem:LIST|mask_mem:LIST``. Raises BindingError."""
    _check_words(text, "mem-bind", _MEMORY_WORDS, ("map_mem", "mask_mem"))


_CPU_WORDS = frozenset(
    "quiet q verbose v none no rank rank_ldom sockets cores threads ldoms one_thread".split()  # noqa: SIM905
)


def check_cpu_binding(text: str) -> None:
    """``[verbose,]cores|map_cpu:LIST|...`` of ``--cpu-bind``. Raises BindingError."""
    _check_words(text, "cpu-bind", _CPU_WORDS, ("map_cpu", "mask_cpu", "map_ldom", "mask_ldom"))


def _check_words(text: str, option: str, known: frozenset[str], lists: tuple[str, ...]) -> None:
    for word in _SEPARATOR.split(text):
        low = word.lower()
        name, _, numbers = low.partition(":")
        if name in lists:
            if not numbers:
                raise BindingError(f'missing list for "--{option}={name}:<list>"')
            _check_numbers(name, numbers)
        elif low not in known:
            raise BindingError(f'unrecognized --{option} argument "{word}"')


def _check_numbers(kind: str, text: str) -> None:
    """CPUs are decimal numbers, masks hexadecimal ones; each perhaps with ``*`` and how often. Raises BindingError."""
    digits = "0123456789abcdef" if kind.startswith("mask") else "0123456789"
    for item in text.split(","):
        number, star, times = item.partition("*")
        if kind.startswith("mask"):
            number = number.removeprefix("0x")
        _check_characters(number, number, digits)
        _check_characters(times, f"*{times}", "0123456789")
        if star and not times:
            raise BindingError(f"Invalid {kind} multiplier: ", f"Failed to expand list: '{item}'")


def _check_characters(text: str, shown: str, digits: str) -> None:
    wrong = next((character for character in text if character not in digits), None)
    if wrong is not None:
        raise BindingError(f"Failed to validate number: {shown}, the offending character is {wrong}")


_CPU_BINDING_TYPES = {"no": "none", "rank": "", "q": "", "quiet": "", "v": "verbose"}
"""Words of ``--cpu-bind`` that are told of by another name; "" tells nothing of it."""


def cpu_binding_type(text: str | None) -> str:
    """What srun -v calls a ``--cpu-bind``: ``verbose,cores``, ``map_cpu``."""
    words = [word.partition(":")[0].lower() for word in _SEPARATOR.split(text or "") if word]
    return ",".join(filter(None, (_CPU_BINDING_TYPES.get(word, word) for word in words))) or "(null type)"
