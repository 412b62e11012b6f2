"""File name patterns of ``--output``, ``--error`` and ``--input`` (sbatch(1), "FILENAME PATTERN")."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FIELD = re.compile(r"%(?:(\d*)([AaJjNnstuxb])|%|\Z)", re.ASCII)
_WIDEST = 10
"""Digits that a number is padded to at most."""


@dataclass(frozen=True, slots=True)
class PatternValues:
    """What the letters stand for in one task. Before a job runs, those that only a task knows are left out."""

    job_id: int
    array_job_id: int = 0
    array_task_id: int | None = None
    job_name: str = ""
    user_name: str = ""
    step_id: str = "batch"
    node_name: str = "(null)"
    node_number: int = 0
    task_number: int = 0


def expand_pattern(pattern: str, values: PatternValues) -> str:
    """The file's name. A pattern with a backslash is not expanded: the backslashes go and the rest stays."""
    if "\\" in pattern:
        return pattern.replace("\\", "")
    if "%" not in pattern:
        return pattern
    return _FIELD.sub(lambda match: _value(match[1], match[2], values) if match[2] else match[0][1:], pattern)


def _padded(number: str, width: str) -> str:
    return number.zfill(min(int(width[:3]), _WIDEST)) if width else number


def _value(width: str, letter: str, values: PatternValues) -> str:
    number = _number(letter, values)
    if number is not None:
        return _padded(str(number), width)
    if letter == "J":
        return _padded(str(values.job_id), width) + ("" if values.step_id == "batch" else f".{values.step_id}")
    return {"N": values.node_name, "s": values.step_id, "u": values.user_name, "x": values.job_name}[letter]


def _number(letter: str, values: PatternValues) -> int | None:
    if letter == "j":
        return values.job_id
    if letter == "A":
        return values.array_job_id or values.job_id
    if letter == "a":
        return 0xFFFFFFFE if values.array_task_id is None else values.array_task_id
    if letter == "b":
        return (0xFFFFFFFE if values.array_task_id is None else values.array_task_id) % 10
    if letter == "n":
        return values.node_number
    return values.task_number if letter == "t" else None
