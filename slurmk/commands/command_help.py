"""``--help`` of a command, made from its table of options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grammar.arguments import Argument, Option, Status

_COMMON = {
    "help": "this text",
    "usage": "the options in short",
    "verbose": "tell more",
    "version": "the version",
    "quiet": "tell less",
}


ABOUT_THE_COMMAND = frozenset(("help", "usage", "version"))
HELP_HEADING = "Help options:"

LISTING = {
    "sacct": "sacct [<OPTION>]",
    "sstat": "sstat [<OPTION>] -j <job(.stepid)>",
    "scontrol": "scontrol [<OPTION>] [<COMMAND>]",
}
"""Commands whose help has another form, ``-j, --jobs:``, and the line that it begins with."""

SYNOPSES = {"strigger": "strigger [--set | --get | --clear] [OPTIONS]"}
"""Commands that need more than options, and how they are called."""

WORDS = {"node": "host"}
"""Options to the word for their value, where it is not VALUE."""

TIME_FORMATS = (
    "        HH:MM[:SS][AM|PM], midnight, noon, fika, teatime",
    "        MMDD[YY], MM/DD[/YY], MM.DD[.YY], YYYY-MM-DD[THH:MM[:SS]]",
    "        today, tomorrow, now[+-COUNT[seconds|minutes|hours|days|weeks]]",
)

VALID_OPTIONS = "    Valid <OPTION> values are:"


def help_text(command: str, options: Iterable[Option], meanings: Mapping[str, str], operands: str = "") -> str:
    """One line an option; what an option that is not honoured does is told by its note."""
    shown = [option for option in options if not option.hidden and (option.names or option.short)]
    if command in LISTING:
        lines = [LISTING[command], VALID_OPTIONS]
        lines += [f"    {_short(option)} --{option.name + ':':<24} {_meaning(option, meanings)}" for option in shown]
    else:
        called = SYNOPSES.get(command, f"{command} [OPTIONS]")
        lines = [f"Usage: {called}{' ' + operands if operands else ''}"]
        lines += [_line(option, meanings) for option in shown if option.name not in ABOUT_THE_COMMAND]
        lines += ["", HELP_HEADING, *(_line(option, meanings) for option in shown if option.name in ABOUT_THE_COMMAND)]
    if any(option.name == "starttime" for option in shown):
        lines += ["", "    valid start/end time formats are...", *TIME_FORMATS]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _line(option: Option, meanings: Mapping[str, str]) -> str:
    word = WORDS.get(option.name, "VALUE")
    value = {Argument.NONE: "", Argument.REQUIRED: f"={word}", Argument.OPTIONAL: f"[={word}]"}[option.argument]
    return f"  {_short(option)} --{option.name + value:<26} {_meaning(option, meanings)}"


def _short(option: Option) -> str:
    return f"-{option.short}," if option.short else "   "


def _meaning(option: Option, meanings: Mapping[str, str]) -> str:
    meaning = meanings.get(option.name) or _COMMON.get(option.name, "")
    if option.note:
        meaning = f"{meaning} ({option.note})" if meaning else option.note
    return f"refused: {meaning}" if option.status is Status.REFUSED else meaning
