"""Completion of the commands' options in bash, zsh and fish, made from their tables: ``slurmk completion SHELL``.

``python -m slurmk.commands.completion SHELL`` prints the file for that shell. What stands for a partition, a node or a job is
asked of the cluster when it is needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from grammar.arguments import Argument
from slurmk.commands.option_rows import Row, commands, rows

ASKED: Mapping[str, str] = {
    "partition": "sinfo -h -o %R 2>/dev/null",
    "partitions": "sinfo -h -o %R 2>/dev/null",
    "nodelist": "sinfo -h -N -o %N 2>/dev/null",
    "nodes": "sinfo -h -N -o %N 2>/dev/null",
    "exclude": "sinfo -h -N -o %N 2>/dev/null",
    "jobs": "squeue -h -o %i 2>/dev/null",
    "jobid": "squeue -h --me -o %i 2>/dev/null",
    "dependency": "squeue -h --me -o %i 2>/dev/null",
}
"""Options to the command that lists their values."""

JOB_OPERANDS = frozenset(("scancel",))
"""Commands whose operands are jobs."""

_JOBS = "squeue -h --me -o %i 2>/dev/null"


def bash() -> str:
    """For bash: a function for each command."""
    return "# bash completion of Slurm's commands in slurmk\n" + "".join(map(_bash, commands()))


def _bash(command: str) -> str:
    options = rows(command)
    words = [
        f"{flag}{'=' if flag.startswith('--') and row.argument is Argument.REQUIRED else ''}"
        for row in options
        for flag in row.flags
    ]
    cases = "".join(
        f'        {"|".join(row.flags)}) COMPREPLY=($(compgen -W "$({asked})" -- "$current")); return;;\n'
        for row in options
        if (asked := _asked(row)) and row.argument is Argument.REQUIRED
    )
    operands = f"$({_JOBS})" if command in JOB_OPERANDS else ""
    rest = f'COMPREPLY=($(compgen -W "{operands}" -- "$current"))' if operands else "COMPREPLY=()"
    return f"""
_slurmk_{command}() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    if [ "$current" = "=" ]; then current=; fi
    if [ "$before" = "=" ]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
    case $before in
{cases}        --) ;;
    esac
    if [ "${{current#-}}" != "$current" ]; then
        COMPREPLY=($(compgen -W '{" ".join(words)}' -- "$current"))
        if [ "${{#COMPREPLY[@]}}" = 1 ] && [ "${{COMPREPLY[0]%=}}" != "${{COMPREPLY[0]}}" ]; then compopt -o nospace; fi
    else
        {rest}
    fi
}}
complete -o default -F _slurmk_{command} {command}
"""


def zsh() -> str:
    """For zsh: one file that knows all commands."""
    names = " ".join(commands())
    cases = "".join(f"    {command})\n        _arguments -S \\\n{_zsh(command)};;\n" for command in commands())
    head = f"#compdef {names}\n# zsh completion of Slurm's commands in slurmk\n"
    return head + f"_slurmk() {{\n    case $service in\n{cases}    esac\n}}\ncompdef _slurmk {names}\n"


def _zsh(command: str) -> str:
    lines = []
    for row in rows(command):
        text = _zsh_quoted(row.meaning)
        for flag in row.flags:
            lines.append(f"            '{_zsh_flag(flag, row)}[{text}]{_zsh_value(row)}'")
    rest = (
        f"*:job:($({_JOBS}))"
        if command in JOB_OPERANDS
        else "*::argument:_normal"
        if command in ("srun", "salloc")
        else "*:file:_files"
    )
    return " \\\n".join([*lines, f"            '{rest}'"])


def _zsh_flag(flag: str, row: Row) -> str:
    if row.argument is Argument.NONE:
        return flag
    long = flag.startswith("--")
    return flag + {(True, Argument.REQUIRED): "=", (True, Argument.OPTIONAL): "=-"}.get(
        (long, row.argument), "+" if row.argument is Argument.REQUIRED else "-"
    )


def _zsh_value(row: Row) -> str:
    if row.argument is Argument.NONE:
        return ""
    asked = _asked(row)
    values = f"($({asked}))" if asked else "_files" if row.value in ("FILE", "DIRECTORY", "PROGRAM", "PATH") else " "
    return f"{':' if row.argument is Argument.OPTIONAL else ''}:{_zsh_quoted(row.value).lower()}:{values}"


def _zsh_quoted(text: str) -> str:
    for mark in "\\[]:":
        text = text.replace(mark, "\\" + mark)
    return text.replace("'", "'\\''")


def fish() -> str:
    """For fish: a line for each option."""
    lines = ["# fish completion of Slurm's commands in slurmk"]
    for command in commands():
        lines += [_fish(command, row) for row in rows(command)]
        if command in JOB_OPERANDS:
            lines.append(f"complete -c {command} -f -a '({_JOBS})'")
    return "\n".join(lines) + "\n"


def _fish(command: str, row: Row) -> str:
    words = [f"complete -c {command}"]
    words += [f"-s {row.short}"] if row.short else []
    words += [f"-l {name}" for name in row.names]
    asked = _asked(row)
    if row.argument is Argument.REQUIRED:
        words.append(f"-x -a '({asked})'" if asked else "-r")
    words += [f"-d {_fish_quoted(row.meaning)}"] if row.meaning else []
    return " ".join(words)


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _asked(row: Row) -> str:
    return next((ASKED[name] for name in row.names if name in ASKED and not (name == "nodes" and row.short == "N")), "")


SHELLS: Mapping[str, Callable[[], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
"""Shell to what it reads."""

FILES: Mapping[str, str] = {
    "bash": "bash-completion/completions/slurmk",
    "zsh": "zsh/site-functions/_slurmk",
    "fish": "fish/vendor_completions.d/slurmk.fish",
}
"""Where each shell looks, below a share directory."""


def main(arguments: Sequence[str]) -> int:
    """Print the completion of one shell."""
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        print(f"slurmk: error: completion of which shell? {', '.join(SHELLS)}", file=sys.stderr)
        return 2
    print(SHELLS[arguments[0]](), end="")
    return 0


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    else:
        sys.exit(code)
