"""Rows of the option tables of squeue, sinfo, sacct and their kin, and what every table can answer by itself.

A row says how the option is written, what it means in a few words, which variables stand for it, and what slurmk does with
it. The order of a table is Slurm's own, in which getopt names what an ambiguous beginning may mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grammar.arguments import Argument, Option, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOption(Option):
    """One row. ``called`` is its key where that is not the first of its names; ``meaning`` stands in --help; the first of
    ``variables`` that is set stands for an option that was not typed."""

    called: str = ""
    meaning: str = ""
    variables: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.called or (self.names[0] if self.names else self.short)


HELP = CommandOption(("help",), meaning="this text")
USAGE = CommandOption(("usage",), meaning="the options in short")
VERSION = CommandOption(("version",), "V", meaning="the version")
VERBOSE = CommandOption(("verbose",), "v", meaning="tell more")
AUTOCOMPLETE = CommandOption(
    ("autocomplete",), argument=Argument.REQUIRED, hidden=True, meaning="the options that begin so or hold this"
)
JSON = CommandOption(("json",), argument=Argument.OPTIONAL, meaning="a document as JSON: v0.0.42 to v0.0.45, +complex, or list")
YAML = CommandOption(("yaml",), argument=Argument.OPTIONAL, meaning="the same as YAML")
CLUSTERS = CommandOption(
    ("cluster", "clusters"),
    "M",
    Argument.REQUIRED,
    note="this cluster's name, or all",
    called="clusters",
    meaning="the clusters to ask",
    variables=("SLURM_CLUSTERS",),
)
_NO_FEDERATION = "there are no federations"


def of_federations(*names: str, variables: tuple[str, ...] = ()) -> CommandOption:
    """An option that asks a federation, or tells not to: accepted."""
    return CommandOption(names, status=Status.ACCEPTED, note=_NO_FEDERATION, variables=variables)


def meanings(options: Iterable[Option]) -> Mapping[str, str]:
    """What the rows of a table mean, by key."""
    return {option.name: option.meaning for option in options if isinstance(option, CommandOption)}


def from_environment(options: Iterable[CommandOption], environment: Mapping[str, str]) -> dict[str, str]:
    """The options that variables stand for, by key."""
    found: dict[str, str] = {}
    for option in options:
        for variable in option.variables:
            if variable in environment:
                found.setdefault(option.name, environment[variable])
    return found


def completions(options: Iterable[Option], part: str) -> str:
    """What ``--autocomplete=PART`` prints: letters, then names that have ``part`` in them, with ``=`` where a value may
    follow, each on a line."""
    rows = list(options)
    letters = [f"-{option.short}" for option in rows for _ in option.names if option.short]
    lines = [letter for letter in letters if part in letter]
    for option in rows:
        for name in option.names:
            if part not in f"--{name}":
                continue
            if option.argument is Argument.NONE:
                lines.append(f"--{name}")
            else:
                lines.append(f"--{name}=")
            if option.argument is Argument.OPTIONAL:
                lines.append(f"--{name} ")
    return "".join(f"{line}\n" for line in lines) + "\n" if part and lines else ""
