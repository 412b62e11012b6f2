"""How ``-v`` of sbatch, srun and salloc lists options: by what they came to, not as they were typed (as recorded)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grammar.mail import format_mail_type
from grammar.signals import DEFAULT_DELAY, NAMES
from grammar.times import format_duration_minutes, format_elapsed, format_time

Values = Mapping[str, Any]
Show = Callable[[Values, str], str]
"""From the fields of one component, and the text as typed (nothing where there was none)."""

_UNITS = ("", "G", "T", "P", "?")
_GIVEN_UP = 4294967296
"""Priorities that stand for something else are listed as negative numbers."""


def _duration(field: str) -> Show:
    return lambda values, text: format_duration_minutes(values[field])


def _size(field: str) -> Show:
    return lambda values, text: _mebibytes(values[field]) if isinstance(values.get(field), int) else text


def _mebibytes(size: int) -> str:
    """MiB in the largest unit that leaves a whole number; none of any unit."""
    unit = 0
    while unit + 1 < len(_UNITS) and size % 1024 == 0:
        size, unit = size // 1024, unit + 1
    return f"{size}{_UNITS[unit]}"


def _nodes(values: Values, text: str) -> str:
    least, most = values.get("minimum_nodes"), values.get("maximum_nodes")
    if least is None or most is None:
        return text
    return f"{least}" if least == most else f"{least}-{most}"


def _signal(values: Values, text: str) -> str:
    flags = "".join(flag for flag in "RB" if flag in (values.get("kill_warning_flags") or ""))
    number, delay = values["kill_warning_signal"], values.get("kill_warning_delay", DEFAULT_DELAY)
    late = "" if delay in (None, DEFAULT_DELAY) else f"@{delay}"
    return (f"{flags}:" if flags else "") + NAMES.get(number, str(number)) + late


def _switches(values: Values, text: str) -> str:
    wait = values.get("wait_for_switch") if "@" in text else None
    return f"{values['required_switches']}" + (f"@{format_elapsed(wait, padded=True)}" if wait is not None else "")


def _profile(values: Values, text: str) -> str:
    asked = text.lower().split(",")
    words = ("Energy", "Lustre", "Network", "Task")
    return ",".join(word for word in words if word.lower() in asked or "all" in asked) or "None"


def _distribution(values: Values, text: str) -> str:
    return "block" if text == "*" else text.lower()


def _frequency(values: Values, text: str) -> str:
    return ":".join("-".join(word.capitalize() for word in part.split("-")) for part in text.split(":"))


def _priority(values: Values, text: str) -> str:
    return text if text.isdigit() else str(int(values["priority"]) - _GIVEN_UP)


def _always(shown: str) -> Show:
    return lambda values, text: shown


def _file(values: Values, text: str) -> str:
    return "/dev/null" if text.lower() == "none" else text


def _kill_command(values: Values, text: str) -> str:
    number = values.get("kill_command") or 15
    return NAMES.get(number, str(number))


SHOWN: Mapping[str, Show] = {
    "begin": lambda values, text: format_time(int(values["begin_time"])) if values.get("begin_time") else text,
    "bell": _always("bell-always"),
    "cpu-freq": _frequency,
    "deadline": lambda values, text: format_time(int(values["deadline"])) if values.get("deadline") else text,
    "delay-boot": lambda values, text: format_elapsed(values["delay_boot"], padded=True),
    "distribution": _distribution,
    "error": _file,
    "exclusive": lambda values, text: text or "exclusive",
    "gres": lambda values, text: values.get("tres_per_node") or text,
    "input": _file,
    "kill-command": _kill_command,
    "mail-type": lambda values, text: format_mail_type(values["mail_type"]) or "NONE",
    "mem": _size("memory_per_node"),
    "mem-per-cpu": _size("memory_per_cpu"),
    "nice": lambda values, text: str(values["nice"]),
    "no-bell": _always("bell-never"),
    "no-kill": lambda values, text: "set" if values.get("kill_on_node_fail") is False else "unset",
    "no-requeue": _always("no-requeue"),
    "nodes": _nodes,
    "oom-kill-step": lambda values, text: text or "1",
    "open-mode": lambda values, text: "a" if values["open_mode"] == "a" else "t",
    "output": _file,
    "oversubscribe": _always("oversubscribe"),
    "priority": _priority,
    "profile": _profile,
    "propagate": lambda values, text: text or "ALL",
    "requeue": lambda values, text: text or "requeue",
    "signal": _signal,
    "switches": _switches,
    "time": _duration("time_limit"),
    "time-min": _duration("time_minimum"),
    "tmp": _size("temporary_disk_per_node"),
    "verbose": lambda values, text: str(values.get("verbose", 1)),
}
