"""Command lines as getopt_long(3) reads them, driven by tables of options.

Each command's options are a table of ``Option`` rows. Parsing gives the options in the order they were typed, which
matters to Slurm where an option is repeated; what a value means is for the row's own grammar.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from grammar.errors import GrammarError


class Argument(Enum):
    """Whether an option takes a value. An optional one is given only as ``--name=value`` or ``-xvalue``."""

    NONE = "none"
    REQUIRED = "required"
    OPTIONAL = "optional"


class Status(Enum):
    """What slurmk does with an option or field."""

    HONOURED = "honoured"
    ACCEPTED = "accepted"  # no effect here
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Option:
    """One row: an option by all its names. ``note`` tells why it is not honoured, or what differs."""

    names: tuple[str, ...]  # long names; the first is the usual one
    short: str = ""
    argument: Argument = Argument.NONE
    status: Status = Status.HONOURED
    note: str = ""
    hidden: bool = False  # accepted by Slurm but neither in --help nor in its man page
    extension: bool = False  # not of Slurm itself: typed in full only, so that it makes no abbreviation ambiguous
    took_value: bool = False  # older releases took a value, which is passed over

    @property
    def name(self) -> str:
        """The usual long name, or the short letter of an option that has no other."""
        return self.names[0] if self.names else self.short


@dataclass(frozen=True, slots=True)
class Given:
    """An option as typed. ``value`` is None when none was given."""

    option: Option
    value: str | None

    @property
    def name(self) -> str:
        return self.option.name


def parse_arguments(
    command: str,
    options: Iterable[Option],
    arguments: Sequence[str],
    *,
    stop_at_operand: bool = False,
    in_order: bool = False,
    places: Mapping[str, int] | None = None,
) -> tuple[list[Given], list[str]]:
    """Options and operands of ``arguments``.

    With ``stop_at_operand`` the first operand ends the options, as in sbatch and srun, whose operands are another
    program's command line; otherwise options and operands may be mixed. ``--`` always ends the options. Long names may
    be shortened as far as they stay unique; what an ambiguous one may mean is told in the alphabet's order, or ``in_order`` of
    the table, or by the ``places`` of the names. Raises GrammarError with getopt's own message.
    """
    given: list[Given] = []
    operands: list[str] = []
    for one in read_arguments(command, options, arguments, stop_at_operand=stop_at_operand, in_order=in_order, places=places):
        if isinstance(one, Given):
            given.append(one)
        else:
            operands.append(one)
    return given, operands


def read_arguments(
    command: str,
    options: Iterable[Option],
    arguments: Sequence[str],
    *,
    stop_at_operand: bool = False,
    in_order: bool = False,
    places: Mapping[str, int] | None = None,
) -> Iterator[Given | str]:
    """The same one by one, for who acts on each before the next is read. Raises GrammarError where getopt finds a fault."""
    by_short, by_long = _index(options if isinstance(options, tuple) else tuple(options), in_order)
    rest = deque(arguments)
    while rest:
        word = rest.popleft()
        if word == "--":
            yield from rest
            return
        if word.startswith("--"):
            yield _long(command, by_long, word, rest, places or {})
        elif word.startswith("-") and word != "-":
            yield from _short(command, by_short, word[1:], rest)
        else:
            yield word
            if stop_at_operand:
                yield from rest
                return


class _Identity:
    """A table of options as a key that is compared by identity: tables are module constants, and hashing one is slow."""

    __slots__ = ("options",)

    def __init__(self, options: tuple[Option, ...]) -> None:
        self.options = options

    def __hash__(self) -> int:
        return id(self.options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.options is self.options


def _index(options: tuple[Option, ...], in_order: bool) -> tuple[dict[str, Option], dict[str, Option]]:
    return _indexed(_Identity(options), in_order)


@lru_cache(maxsize=64)
def _indexed(table: _Identity, in_order: bool) -> tuple[dict[str, Option], dict[str, Option]]:
    """The options by their short names, and by their long names in order."""
    by_short = {option.short: option for option in table.options if option.short}
    by_long = {name: option for option in table.options for name in option.names}
    return by_short, by_long if in_order else {name: by_long[name] for name in sorted(by_long)}


def _long(command: str, table: dict[str, Option], word: str, rest: deque[str], places: Mapping[str, int]) -> Given:
    typed, equals, value = word[2:].partition("=")
    option = table.get(typed)
    if option is None:
        candidates = [name for name in table if name.startswith(typed) and not table[name].extension]
        if not candidates:
            raise GrammarError(f"{command}: unrecognized option '{word}'")
        if len({id(table[name]) for name in candidates}) > 1:
            candidates.sort(key=lambda name: places.get(name, 0))
            possibilities = " ".join(f"'--{name}'" for name in candidates)
            raise GrammarError(f"{command}: option '{word}' is ambiguous; possibilities: {possibilities}")
        typed, option = candidates[0], table[candidates[0]]
    if option.argument is Argument.NONE and equals and not option.took_value:
        raise GrammarError(f"{command}: option '--{typed}' doesn't allow an argument")
    if option.argument is Argument.REQUIRED and not equals:
        if not rest:
            raise GrammarError(f"{command}: option '--{typed}' requires an argument")
        return Given(option, rest.popleft())
    return Given(option, value if equals else None)


def _short(command: str, table: dict[str, Option], letters: str, rest: deque[str]) -> Iterator[Given]:
    while letters:
        letter, letters = letters[0], letters[1:]
        option = table.get(letter)
        if option is None:
            raise GrammarError(f"{command}: invalid option -- '{letter}'")
        if option.argument is Argument.NONE:
            yield Given(option, None)
            continue
        if option.argument is Argument.REQUIRED and not letters:
            if not rest:
                raise GrammarError(f"{command}: option requires an argument -- '{letter}'")
            yield Given(option, rest.popleft())
        else:
            yield Given(option, letters or None)
        return
