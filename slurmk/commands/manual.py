"""Man pages of the commands, made from their tables: ``python -m slurmk.commands.manual DIRECTORY`` writes them, and the
shells' completions, below a share directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from grammar.arguments import Argument, Status
from slurmk import SLURM_VERSION, __version__
from slurmk.commands.completion import FILES, SHELLS
from slurmk.commands.option_rows import Row, commands, rows

SUMMARIES: Mapping[str, str] = {
    "sbatch": "submit a batch script",
    "srun": "run tasks, in a job or in an allocation of their own",
    "salloc": "get an allocation and run a command in it",
    "squeue": "list jobs and steps",
    "scancel": "end jobs and steps, or send them signals",
    "sinfo": "list partitions and nodes",
    "sacct": "list what accounting knows of jobs and steps",
    "scontrol": "show and change jobs, steps, nodes and partitions",
    "sprio": "show what the priority of waiting jobs is made of",
    "sdiag": "show what the controller did",
    "sstat": "show what running steps use",
    "sattach": "attach to a running step's streams",
    "sbcast": "copy a file to the nodes of a job",
    "scrontab": "edit the table of jobs that run at given times",
    "swait": "wait until the steps of a job have ended",
    "strigger": "have programs run when something happens",
}

SYNOPSES: Mapping[str, str] = {
    "sbatch": "[OPTIONS] [: OPTIONS ...] [SCRIPT [ARGUMENTS]]",
    "srun": "[OPTIONS] PROGRAM [ARGUMENTS]",
    "salloc": "[OPTIONS] [: OPTIONS ...] [COMMAND [ARGUMENTS]]",
    "scancel": "[OPTIONS] [JOB[_TASK][.STEP] ...]",
    "scontrol": "[OPTIONS] [COMMAND ...]",
    "sattach": "[OPTIONS] JOB.STEP",
    "sbcast": "[OPTIONS] SOURCE DESTINATION",
    "swait": "[OPTIONS] [JOB[_TASK] | SLUID]",
}

ABOUT = (
    "This command answers as that of Slurm {version} does; what an option means there, it means here. Options that slurmk"
    " takes without effect or refuses say so."
)


def page(command: str) -> str:
    """The man page of one command, as troff."""
    found = rows(command)
    lines = [
        f'.TH {command.upper()} 1 "" "slurmk {__version__}" "slurmk"',
        ".SH NAME",
        f"{command} \\- {_escaped(SUMMARIES[command])}",
        ".SH SYNOPSIS",
        f"\\fB{command}\\fR {_escaped(SYNOPSES.get(command, '[OPTIONS]'))}",
        ".SH DESCRIPTION",
        _escaped(ABOUT.format(version=SLURM_VERSION)),
        ".SH OPTIONS",
    ]
    for row in sorted(found, key=lambda row: (row.names or (row.short,))[0].lower()):
        lines += _option(row)
    variables = sorted({(variable, row.flags[-1]) for row in found for variable in row.variables})
    if variables:
        lines.append(".SH ENVIRONMENT")
        for variable, flag in variables:
            lines += [".TP", f"\\fB{variable}\\fR", f"as \\fB{_escaped(flag)}\\fR"]
    others = ", ".join(f"\\fB{other}\\fR(1)" for other in commands() if other != command)
    return "\n".join([*lines, ".SH SEE ALSO", others]) + "\n"


def _option(row: Row) -> list[str]:
    value = f"\\fI{_escaped(row.value)}\\fR"
    shown = []
    for flag in row.flags:
        long = flag.startswith("--")
        tail = {
            Argument.NONE: "",
            Argument.REQUIRED: f"={value}" if long else f" {value}",
            Argument.OPTIONAL: f"[={value}]" if long else f"[{value}]",
        }[row.argument]
        shown.append(f"\\fB{_escaped(flag)}\\fR{tail}")
    text = _escaped(row.meaning or "see Slurm's own manual")
    if row.status is not Status.HONOURED:
        text += f" ({'no effect here' if row.status is Status.ACCEPTED else 'refused'}: {_escaped(row.note)})"
    elif row.note:
        text += f" ({_escaped(row.note)})"
    return [".TP", ", ".join(shown), text]


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def install(share: Path) -> None:
    """Write man pages and completions below ``share``; what is there is replaced. Nothing is done for a directory that has
    gone."""
    for command in commands():
        _write(share, f"man/man1/{command}.1", page(command))
    for shell, name in FILES.items():
        _write(share, name, SHELLS[shell]())


def _write(share: Path, name: str, text: str) -> None:
    path = share / name
    if not share.parent.is_dir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(0o644)
    temporary.replace(path)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
