"""Files of batch scripts and tasks: names from patterns, opened with the user's rights."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional

    from slurmk.stepd.processes import Identity

FIELD = re.compile(r"%(\d*)([A-Za-z%])")

DEFAULT = "slurm-%j.out"
DEFAULT_OF_ARRAY = "slurm-%A_%a.out"

NO_TASK = 0xFFFFFFFE
"""What a batch script's pattern has for the number of an array's task where there is no array; a step's has 0."""

NUMBERS = "jAabstn"
"""Letters whose values a width pads with zeros."""


def fill(pattern: str, values: Mapping[str, str]) -> str:
    """The file name that a pattern stands for; a pattern with a backslash is taken as it is, without backslashes."""
    if "\\" in pattern:
        return pattern.replace("\\", "")

    def one(match: Any) -> str:
        width, letter = match.groups()
        if letter == "%":
            return "%"
        if letter not in values:
            return str(match.group(0))
        value = values[letter]
        return value.zfill(min(int(width), 10)) if width and letter in NUMBERS else value

    return FIELD.sub(one, pattern)


def differs_by_task(pattern: str) -> bool:
    """True when tasks or nodes have files of their own by that pattern."""
    return "\\" not in pattern and any(letter in "tnN" for _, letter in FIELD.findall(pattern))


def pattern_values(job: Mapping[str, Any], step: str, node: str, index: int, rank: int) -> Dict[str, str]:
    """Values of a pattern's letters."""
    array = job["array"]
    number = str(job["job"])
    task = int(array["task"]) if array else NO_TASK if step == "batch" else 0
    return {
        "j": number,
        "J": number if step == "batch" else number + "." + step,
        "A": str(array["job"]) if array else number,
        "a": str(task),
        "b": str(task % 10),
        "s": step,
        "N": node.split(".")[0],
        "n": str(index),
        "t": str(rank),
        "u": job["user"],
        "x": job["name"],
    }


def appends(*requests: Mapping[str, Any]) -> bool:
    """Whether output is added to what a file holds: by the --open-mode of the first of these requests that has one."""
    mode = next((request["open_mode"] for request in requests if request.get("open_mode")), "")
    return str(mode).startswith("a")


def open_output(path: str, append: bool, identity: Identity, umask: int) -> int:
    """Open a file for output, with missing folders made as the reference does; OSError when it cannot be."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND | (0 if append else os.O_TRUNC)
    before = os.umask(umask)
    try:
        with identity.borrowed():
            try:
                return os.open(path, flags, 0o666)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(path) or ".", 0o755, exist_ok=True)
                return os.open(path, flags, 0o666)
    finally:
        os.umask(before)


def open_input(path: Optional[str], identity: Identity) -> int:
    """Open a file for input; None is /dev/null."""
    with identity.borrowed():
        return os.open(path or "/dev/null", os.O_RDONLY | os.O_CLOEXEC)
