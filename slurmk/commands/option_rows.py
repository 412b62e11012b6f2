"""The options of every command in one form, from the tables that the commands themselves use: for man pages and completion."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

from grammar.arguments import Argument, Option, Status
from grammar.option_meanings import VALUES, meaning_of
from grammar.options import COMMANDS, SubmissionOption, options_of
from slurmk.commands.command_options import CommandOption
from slurmk.commands.dispatch import MODULES

_COMMON = {
    "help": "this text",
    "usage": "the options in short",
    "verbose": "tell more",
    "version": "the version",
    "quiet": "tell less",
    "json": "the answer as a JSON document",
    "yaml": "the same as YAML",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One option of one command. ``value`` is the word for its argument, ``note`` what slurmk does with an option that it
    does not act on, or what differs."""

    short: str
    names: tuple[str, ...]
    argument: Argument
    value: str
    meaning: str
    status: Status
    note: str
    variables: tuple[str, ...]

    @property
    def flags(self) -> tuple[str, ...]:
        """As typed: ``-n``, ``--ntasks``."""
        return (*([f"-{self.short}"] if self.short else []), *(f"--{name}" for name in self.names))


def commands() -> tuple[str, ...]:
    """The commands of Slurm that have a table of options."""
    return tuple(command for command in MODULES if command != "slurmk")


def rows(command: str) -> tuple[Row, ...]:
    """The options of a command that its help tells of."""
    if command in COMMANDS:
        return tuple(_submission(command, option) for option in options_of(command) if not option.hidden)
    module = importlib.import_module(MODULES[command])
    texts: Mapping[str, str] = getattr(module, "HELP_TEXTS", None) or _texts(getattr(module, "HELP", None))
    return tuple(_own(option, texts) for option in module.OPTIONS if not option.hidden and (option.names or option.short))


def _texts(found: object) -> Mapping[str, str]:
    return found if isinstance(found, Mapping) else {}


def _submission(command: str, option: SubmissionOption) -> Row:
    variables = option.environment.get(command, ())
    return _row(option, meaning_of(command, option.name), VALUES.get(option.name, "VALUE"), variables)


def _own(option: Option, texts: Mapping[str, str]) -> Row:
    meaning = option.meaning if isinstance(option, CommandOption) else ""
    variables = option.variables if isinstance(option, CommandOption) else ()
    return _row(option, meaning or texts.get(option.name) or _COMMON.get(option.name, ""), "VALUE", variables)


def _row(option: Option, meaning: str, value: str, variables: tuple[str, ...]) -> Row:
    word = "" if option.argument is Argument.NONE else value
    return Row(option.short, option.names, option.argument, word, meaning, option.status, option.note, variables)
