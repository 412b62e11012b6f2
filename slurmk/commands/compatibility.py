"""What slurmk does with each option and field of Slurm's commands: the page in docs/, and ``slurmk compatibility``.

Everything comes from the tables that the commands themselves use, so it cannot disagree with them.
``python -m slurmk.commands.compatibility`` prints the page, with ``--json`` the same as data.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from grammar.arguments import Argument, Option, Status
from grammar.configuration_keys import KEYS
from grammar.options import COMMANDS, SUBMISSION, SubmissionOption
from grammar.scheduler_parameters import PREEMPT_PARAMETERS, SCHEDULER_PARAMETERS, Parameter
from slurmk.commands import sacct_fields, sinfo_rows, squeue_fields
from slurmk.commands.command_options import CommandOption
from slurmk.commands.dispatch import MODULES

_HEAD = """# Compatibility

What slurmk does with each option and output field of Slurm's commands, the undocumented ones too. *Honoured* ones act;
*accepted* ones are taken without effect, or print what Slurm prints without data; *refused* ones are an error. This page is
made from the tables that the commands themselves use, so it cannot disagree with them; `slurmk compatibility` prints it,
`slurmk compatibility --json` the same as data.

| command | honoured | accepted | refused |
| --- | --- | --- | --- |
"""

_OPTIONS = """
| option | argument | environment | status | note |
| --- | --- | --- | --- | --- |
"""

_SUBMISSION = """
## sbatch, srun, salloc

| option | argument | commands | environment | status | note |
| --- | --- | --- | --- | --- | --- |
"""

_PARAMETERS = """
## {name}

| word | status | why it changes nothing |
| --- | --- | --- |
"""

_KEYS = """
## slurm.conf

Keys that are read, checked and shown, but change nothing though one might expect it. `slurmk config check` names all keys
of a site's own that change nothing.

| key | why it changes nothing |
| --- | --- |
"""

_ARGUMENTS = {Argument.NONE: "", Argument.REQUIRED: "value", Argument.OPTIONAL: "optional"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One option or field of one command, and what slurmk does with it."""

    command: str
    kind: str  # option, field (by name), letter, or parameter of slurm.conf
    name: str  # as typed: --array, TimeLimit, %l
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a command: what they are called on the page, their names, and which have no data here and why."""

    command: str
    kind: str
    title: str
    names: Sequence[str]
    without_data: Callable[[str], str]


EXPLAINED_KEYS = tuple(key for key in KEYS if key.why_not)
"""Keys of slurm.conf that have no effect, and why."""


def tables() -> dict[str, tuple[Option, ...]]:
    """The option tables of the commands that have one of their own, by command."""
    found = {}
    for command, module in sorted(MODULES.items()):
        options = getattr(importlib.import_module(module), "OPTIONS", None)
        if command not in COMMANDS and options:
            found[command] = tuple(options)
    return found


FIELDS: tuple[Fields, ...] = (
    Fields("squeue", "field", "--Format", squeue_fields.NAMES, lambda name: squeue_fields.WITHOUT_DATA.get(name.lower(), "")),
    Fields("squeue", "letter", "--format", [f"%{letter}" for letter in squeue_fields.LETTERS], lambda name: ""),
    Fields("sinfo", "field", "--Format", sinfo_rows.HELP_NAMES, lambda name: sinfo_rows.WITHOUT_DATA.get(name.lower(), "")),
    Fields("sinfo", "letter", "--format", [f"%{letter}" for letter in sinfo_rows.LETTERS], lambda name: ""),
    Fields(
        "sacct",
        "field",
        "--format",
        [field.name for field in sacct_fields.FIELDS],
        lambda name: sacct_fields.WITHOUT_DATA.get(name.lower(), ""),
    ),
)


def entries() -> Iterator[Entry]:
    """Every option and field."""
    for command in COMMANDS:
        for row in SUBMISSION:
            if command in row.commands:
                yield from _entries(command, row)
    for explained in EXPLAINED_KEYS:
        yield Entry("slurm.conf", "parameter", explained.name, Status.ACCEPTED.value, explained.why_not)
    for key, words in (("SchedulerParameters", SCHEDULER_PARAMETERS), ("PreemptParameters", PREEMPT_PARAMETERS)):
        for word in words:
            status = Status.HONOURED if word.acts else Status.ACCEPTED
            yield Entry("slurm.conf", "parameter", f"{key}={word.name}", status.value, word.why_not)
    for command, options in tables().items():
        for option in options:
            yield from _entries(command, option)
    for fields in FIELDS:
        for name in fields.names:
            reason = fields.without_data(name)
            status = Status.ACCEPTED if reason else Status.HONOURED
            yield Entry(fields.command, fields.kind, name, status.value, reason)


def _entries(command: str, option: Option) -> Iterator[Entry]:
    names = [f"-{option.short}"] if option.short else []
    for name in (*names, *(f"--{name}" for name in option.names)):
        yield Entry(command, "option", name, option.status.value, option.note)


def page() -> str:
    """The whole page as Markdown."""
    rows = sorted(SUBMISSION, key=lambda option: (option.name, option.commands))
    own = tables()
    counted = [(command, [row for row in rows if command in row.commands]) for command in COMMANDS] + list(own.items())
    text = _HEAD + "".join(_count(command, options) for command, options in counted)
    text += _SUBMISSION + "".join(map(_row, rows))
    text += _KEYS + "".join(_cells(f"`{key.name}`", key.why_not) for key in EXPLAINED_KEYS)
    text += _PARAMETERS.format(name="SchedulerParameters") + "".join(map(_parameter_row, SCHEDULER_PARAMETERS))
    text += _PARAMETERS.format(name="PreemptParameters") + "".join(map(_parameter_row, PREEMPT_PARAMETERS))
    for command, options in own.items():
        ordered = sorted(options, key=lambda option: (option.name.lower(), option.name))
        text += f"\n## {command}\n{_OPTIONS}" + "".join(map(_own_row, ordered))
        text += "".join(_fields(fields) for fields in FIELDS if fields.command == command)
    return text


def _count(command: str, options: Iterable[Option]) -> str:
    statuses = [row.status for row in options]
    counts = " | ".join(str(statuses.count(status)) for status in (Status.HONOURED, Status.ACCEPTED, Status.REFUSED))
    return f"| {command} | {counts} |\n"


def _parameter_row(parameter: Parameter) -> str:
    return _cells(f"`{parameter.name}`", "acts" if parameter.acts else "no effect", parameter.why_not)


def _row(option: SubmissionOption) -> str:
    variables = sorted({name for names in option.environment.values() for name in names})
    return _cells(
        _names(option),
        _ARGUMENTS[option.argument],
        " ".join(option.commands),
        " ".join(f"`{name}`" for name in variables),
        option.status.value,
        option.note,
    )


def _own_row(option: Option) -> str:
    variables = option.variables if isinstance(option, CommandOption) else ()
    return _cells(
        _names(option),
        _ARGUMENTS[option.argument],
        " ".join(f"`{name}`" for name in variables),
        option.status.value,
        option.note,
    )


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _names(option: Option) -> str:
    short = [f"`-{option.short}`"] if option.short else []
    return " ".join(short + [f"`--{name}`" for name in option.names])


def _fields(fields: Fields) -> str:
    """The fields of a command: those with data in one paragraph, then the others with why they have none."""
    told = [name for name in fields.names if not fields.without_data(name)]
    text = f"\n`{fields.title}` has {len(fields.names)} fields: " + " ".join(f"`{name}`" for name in told) + ".\n"
    others = [(name, fields.without_data(name)) for name in fields.names if fields.without_data(name)]
    if others:
        text += "\n| field | what it prints |\n| --- | --- |\n" + "".join(_cells(f"`{name}`", why) for name, why in others)
    return text


def main(arguments: Sequence[str]) -> None:
    """Print the page, or with ``--json`` the entries."""
    if "--json" in arguments:
        print(json.dumps([asdict(entry) for entry in entries()], indent=1))
    else:
        print(page(), end="")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
