"""Bindings of tasks: to memory (``--mem-bind``), GPUs (``--gpu-bind``) and any TRES (``--tres-bind``; sbatch(1), srun(1))."""

from __future__ import annotations

import re

from grammar.errors import GrammarError

_LISTS = {"map_gpu:": 10, "map:": 10, "mask_gpu:": 16, "mask:": 16}
"""Kinds with a list of numbers, and the base of these."""

_GPU_KINDS = ("closest", "none", "single:", "per_task:", *_LISTS)
_COUNT = re.compile(r"[ \t]*-?\d+", re.ASCII)
_LARGEST = 2**63 - 2
_MOST_DIGITS = 19


class BindingError(GrammarError):
    """A binding that is none; ``lines`` is what is printed before the refusal of the option."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def check_gpu_binding(text: str) -> None:
    """``[verbose,]KIND[:VALUE]``, and perhaps bindings of other GRES behind ``+``. Raises BindingError."""
    check_tres_binding(f"gres/gpu:{text}")


def check_tres_binding(text: str) -> None:
    """``gres/NAME:[verbose,]KIND[:VALUE]``, several joined by ``+``. Raises BindingError."""
    for part in filter(None, text.split("+")):
        name, colon, kind = part.partition(":")
        if not (name.startswith("gres/") and colon):
            raise BindingError()
        _check_kind(kind)


def is_tres_binding(text: str) -> bool:
    """Whether ``check_tres_binding`` takes it."""
    try:
        check_tres_binding(text)
    except BindingError:
        return False
    return True


def _check_kind(text: str) -> None:
    """Only the beginning of a kind counts, in any case. Raises BindingError."""
    kind = text[8:] if text.lower().startswith("verbose,") else text
    known = next((word for word in _GPU_KINDS if kind.lower().startswith(word)), None)
    if known is None:
        raise BindingError()
    value = kind[len(known) :]
    if known in _LISTS:
        _check_list(value, _LISTS[known])
    elif known.endswith(":") and (count := _COUNT.match(value)) and ("-" in count[0] or _overflows(count[0].strip(), 10)):
        raise BindingError()


def _check_list(text: str, base: int) -> None:
    """Numbers, each perhaps with ``*`` and how often. Raises BindingError that names the character at fault."""
    digits = "0123456789abcdefABCDEF*" if base == 16 else "0123456789*"
    for item in filter(None, text.split(",")):
        numbers = item.removeprefix("0x") if base == 16 else item
        wrong = next((character for character in numbers if character not in digits), None)
        if wrong is not None:
            raise BindingError(f"Failed to validate {numbers}, offending character is {wrong}")
        number, _, times = numbers.partition("*")
        if (times and not times.isdecimal()) or _overflows(number, base) or _overflows(times, 10):
            raise BindingError()


def _overflows(digits: str, base: int) -> bool:
    """Whether a number is too large for Slurm's 63 bits."""
    digits = digits.lstrip("0")
    return len(digits) > _MOST_DIGITS or int(digits or "0", base) > _LARGEST


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
