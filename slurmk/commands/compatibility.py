"""The compatibility page of docs/, made from the tables of options: ``python -m slurmk.commands.compatibility``."""

from __future__ import annotations

from collections.abc import Iterable

from grammar.arguments import Argument, Option, Status
from grammar.options import COMMANDS, SUBMISSION, SubmissionOption

_HEAD = """# Compatibility

What slurmk does with each option of `sbatch`, `srun` and `salloc`, the undocumented ones too. *Honoured* options act;
*accepted* ones are taken without effect; *refused* ones are an error. This page is made from the table that the commands
themselves use (`grammar/options.py`), so it cannot disagree with them.

| command | honoured | accepted | refused |
| --- | --- | --- | --- |
"""

_TABLE = """
| option | argument | commands | environment | status | note |
| --- | --- | --- | --- | --- | --- |
"""

_ARGUMENTS = {Argument.NONE: "", Argument.REQUIRED: "value", Argument.OPTIONAL: "optional"}


def page() -> str:
    """The whole page as Markdown."""
    rows = sorted(SUBMISSION, key=lambda option: (option.name, option.commands))
    return _HEAD + "".join(_count(command, rows) for command in COMMANDS) + _TABLE + "".join(map(_row, rows))


def _count(command: str, rows: Iterable[SubmissionOption]) -> str:
    statuses = [row.status for row in rows if command in row.commands]
    counts = " | ".join(str(statuses.count(status)) for status in (Status.HONOURED, Status.ACCEPTED, Status.REFUSED))
    return f"| {command} | {counts} |\n"


def _row(option: SubmissionOption) -> str:
    variables = sorted({name for names in option.environment.values() for name in names})
    cells = (
        _names(option),
        _ARGUMENTS[option.argument],
        " ".join(option.commands),
        " ".join(f"`{name}`" for name in variables),
        option.status.value,
        option.note,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _names(option: Option) -> str:
    short = [f"`-{option.short}`"] if option.short else []
    return " ".join(short + [f"`--{name}`" for name in option.names])


if __name__ == "__main__":
    print(page(), end="")
