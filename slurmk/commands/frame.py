"""What the smaller commands have in common: reading their options, ``--help`` and its like, ``--cluster``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from grammar.arguments import Argument, Given, Option, Status, parse_arguments
from grammar.errors import GrammarError
from slurmk.commands.call import VERSION_TEXT, Call, Failure
from slurmk.commands.command_help import help_text
from slurmk.commands.command_options import completions
from slurmk.model.site import Site

HELP = Option(("help",), note="")
USAGE = Option(("usage",))
VERSION = Option(("version",), "V")
CLUSTER = Option(("cluster", "clusters"), "M", Argument.REQUIRED, note="this cluster's name, or all")
FEDERATION: tuple[Option, ...] = tuple(
    Option((name,), status=Status.ACCEPTED, note="there are no federations") for name in ("federation", "local", "sibling")
)
"""Options of commands that could ask a federation."""


def read_options(
    call: Call, options: Sequence[Option], *, hint: bool = True, stop_at_operand: bool = False, in_order: bool = False
) -> tuple[list[Given], list[str]]:
    """Options and operands as typed. Raises Failure with getopt's message, and with ``hint`` where to read more."""
    try:
        return parse_arguments(call.command, options, call.arguments, stop_at_operand=stop_at_operand, in_order=in_order)
    except GrammarError as error:
        more = f'Try "{call.command} --help" for more information\n' if hint else ""
        raise Failure(f"{error}\n{more}") from None


def early_answer(
    call: Call,
    given: Sequence[Given],
    options: Sequence[Option],
    meanings: Mapping[str, str],
    usage: str,
    operands: str = "",
) -> str | None:
    """What ``--help``, ``--usage``, ``--version`` and ``--autocomplete`` answer; None when none was given. The first counts."""
    for one in given:
        if one.name == "autocomplete":
            return completions(options, one.value or "")
        if one.name == "help":
            return help_text(call.command, options, meanings, operands)
        if one.name == "usage":
            return f"Usage: {call.command} {usage}\n"
        if one.name == "version":
            return VERSION_TEXT + "\n"
    return None


def interval(text: str) -> int | None:
    """Seconds of ``--iterate``: the number that the text begins with; None unless it is above 0."""
    match = re.match(r"[ \t]*\+?(\d{1,9})", text, re.ASCII)
    return int(match[1]) or None if match else None


def check_cluster(call: Call, given: Sequence[Given], site: Site) -> None:
    """There is one cluster; others are not known. Raises Failure."""
    for one in given:
        for name in (one.value or "").split(",") if one.option is CLUSTER else ():
            if name not in ("", "all", site.cluster_name):
                error = f"{call.command}: error: "
                hint = "Use 'sacctmgr list clusters' to see available clusters."
                raise Failure(
                    f"{error}No cluster '{name}' known by database.\n"
                    f"{error}'{name}' can't be reached now, or it is an invalid entry for --cluster.  {hint}\n"
                    f"{call.command}: fatal: Could not get cluster information\n"
                )
