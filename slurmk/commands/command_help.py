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


def help_text(command: str, options: Iterable[Option], meanings: Mapping[str, str], operands: str = "") -> str:
    """One line an option; what an option that is not honoured does is told by its note."""
    lines = [f"Usage: {command} [OPTIONS]{' ' + operands if operands else ''}"]
    for option in options:
        if option.hidden or not (option.names or option.short):
            continue
        short = f"-{option.short}," if option.short else "   "
        value = {Argument.NONE: "", Argument.REQUIRED: "=VALUE", Argument.OPTIONAL: "[=VALUE]"}[option.argument]
        meaning = meanings.get(option.name) or _COMMON.get(option.name, "")
        if option.note:
            meaning = f"{meaning} ({option.note})" if meaning else option.note
        if option.status is Status.REFUSED:
            meaning = f"refused: {meaning}"
        lines.append(f"  {short} --{option.name + value:<26} {meaning}".rstrip())
    return "\n".join(lines) + "\n"
