"""``--help``, ``--usage`` and ``--autocomplete`` of sbatch, srun and salloc, made from the option table."""

from __future__ import annotations

from grammar.arguments import Argument, Status
from grammar.option_meanings import VALUES, meaning_of
from grammar.options import SubmissionOption, options_of
from slurmk.commands.command_help import ABOUT_THE_COMMAND, HELP_HEADING

_HELP_USAGE: dict[str, str] = {
    "sbatch": "sbatch [OPTIONS(0)...] [ : [OPTIONS(N)...]] script(0) [args(0)...]",
    "srun": "srun [OPTIONS(0)... [executable(0) [args(0)...]]] [ : [OPTIONS(N)...]] executable(N) [args(N)...]",
    "salloc": "salloc [OPTIONS(0)...] [ : [OPTIONS(N)]] [command(0) [args(0)...]]",
}
"""The first line of ``--help``, as programs that read it expect it."""

_OPERANDS = {"sbatch": "executable [args...]", "srun": "executable [args...]", "salloc": "[command [args...]]"}
"""What follows the options."""

_WIDTH = 80

_MARKS = {Argument.NONE: "", Argument.REQUIRED: "=VALUE", Argument.OPTIONAL: "[=VALUE]"}


def usage_text(command: str) -> str:
    """Every option that is not hidden in brackets, and what follows them."""
    lines, start = [], f"Usage: {command}"
    for word in (*(_short_form(row) for row in options_of(command) if not row.hidden), _OPERANDS[command]):
        if len(start) + len(word) >= _WIDTH:
            lines.append(start)
            start = " " * len(f"Usage: {command}")
        start += f" {word}"
    return "\n".join((*lines, start)) + "\n"


def _short_form(row: SubmissionOption) -> str:
    value = "" if row.argument is Argument.NONE else VALUES.get(row.name, "value").lower()
    if row.short and row.argument is not Argument.OPTIONAL:
        return f"[-{row.short} {value}]" if value else f"[-{row.short}]"
    return f"[--{row.name}{_MARKS[row.argument].replace('VALUE', value)}]"


def help_text(command: str) -> str:
    """Every option that is not hidden, and what slurmk does with those it does not act on."""
    lines = [f"Usage: {_HELP_USAGE[command]}", ""]
    shown = [row for row in options_of(command) if not row.hidden]
    lines += [_line(command, row) for row in shown if row.name not in ABOUT_THE_COMMAND]
    lines += ["", HELP_HEADING, *(_line(command, row) for row in shown if row.name in ABOUT_THE_COMMAND)]
    lines += ["", "Options mean what they mean in Slurm; those marked are taken but have no effect, or are refused."]
    return "\n".join(lines) + "\n"


def _line(command: str, row: SubmissionOption) -> str:
    short = f"-{row.short}, " if row.short else "    "
    left = f"  {short}--{row.name}{_MARKS[row.argument].replace('VALUE', VALUES.get(row.name, 'VALUE'))}"
    text = meaning_of(command, row.name)
    if row.status is not Status.HONOURED:
        text = f"{text} ({'no effect' if row.status is Status.ACCEPTED else 'refused'}: {row.note})"
    return f"{left:<42} {text}"


def completions(command: str, prefix: str) -> str:
    """The long options that begin so, one a line, with ``=`` where a value may follow."""
    lines: list[str] = []
    for name, row in sorted(_named(command).items()):
        if not name.startswith(prefix.lstrip("-")):
            continue
        if row.argument is not Argument.NONE:
            lines.append(f"--{name}=")
        if row.argument is Argument.OPTIONAL:
            lines.append(f"--{name} ")
        elif row.argument is Argument.NONE:
            lines.append(f"--{name}")
    return "".join(f"{line}\n" for line in lines) + "\n"


def _named(command: str) -> dict[str, SubmissionOption]:
    return {name: row for row in options_of(command) for name in row.names}
