"""scrontab: jobs at set times (scrontab(1)).

Off unless slurm.conf says ScronParameters=enable, as in Slurm; and where it says so, slurmk has no such jobs yet.
"""

from __future__ import annotations

from collections.abc import Mapping

from grammar.arguments import Argument, Option, Status, parse_arguments
from grammar.errors import GrammarError
from slurmk.commands.call import Call, Controller, Output

_NOTE = "jobs at set times are not part of slurmk yet"

OPTIONS: tuple[Option, ...] = (
    Option((), "e", status=Status.REFUSED, note=_NOTE),
    Option((), "l", status=Status.REFUSED, note=_NOTE),
    Option((), "r", status=Status.REFUSED, note=_NOTE),
    Option((), "u", Argument.REQUIRED, status=Status.REFUSED, note=_NOTE),
    Option((), "v", status=Status.ACCEPTED, note="there is nothing more to tell"),
)

HELP_TEXTS: Mapping[str, str] = {
    "e": "edit the table (what happens where standard input is a terminal)",
    "l": "list the table",
    "r": "remove the table",
    "u": "another user's table",
}


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Say that there are no such tables; gives the exit code."""
    try:
        given, operands = parse_arguments("scrontab", OPTIONS, call.arguments)
    except GrammarError:
        output.error(usage())
        return 1
    if len(operands) > 1:
        output.error(usage())
        return 1
    if any(one.name == "e" for one in given) and "0" not in call.terminals:
        output.error("scrontab: fatal: Standard input is not a TTY\n")
        return 1
    parameters = controller.machine.site.parameters.get("ScronParameters", "").lower().replace(" ", "").split(",")
    if "enable" in parameters:
        output.error(f"scrontab: fatal: {_NOTE}\n")
    else:
        output.error("scrontab: fatal: scrontab is disabled on this cluster\n")
    return 1


def usage() -> str:
    """How it is called; it has no long options and no --help."""
    lines = "".join(f"\t-{letter}\t{text}\n" for letter, text in HELP_TEXTS.items())
    return f"usage:\tscrontab [-u user] file\n\tscrontab [-u user] [ -e | -l | -r | -v]\n{lines}"
