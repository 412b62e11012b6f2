"""Tables of jobs at set times (scrontab(1)): their lines, their five fields of times, and when such a job is next due.

The forms are those that the reference takes, which are fewer than cron's: a name of a month or a day stands alone, a step
follows ``*`` or one range and means the multiples of it, and 60 minutes, 24 hours and day 7 are 0.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from grammar.errors import GrammarError

BROKEN = "something is broken"
LARGEST_TABLE = 1 << 20
MOST_ENTRIES = 1000
HORIZON = timedelta(days=366 * 9)
"""How far ahead a time is looked for: February 29th may be eight years away."""


class CrontabError(GrammarError):
    """A table that cannot be taken: what is said of it, and the lines that are at fault, counted from 0."""

    def __init__(self, *said: str, first: int = 0, last: int = 0) -> None:
        super().__init__("\n".join(said))
        self.said = said
        self.first = first
        self.last = last


@dataclass(frozen=True, slots=True)
class _Field:
    least: int
    most: int
    names: tuple[str, ...] = ()  # from ``least`` on
    called: str = ""
    wraps: bool = False  # one beyond the largest is the smallest


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field(0, 59, wraps=True),
    _Field(0, 23, wraps=True),
    _Field(1, 31),
    _Field(1, 12, _MONTHS, "month"),
    _Field(0, 6, _DAYS, "day", wraps=True),
)

SHORTCUTS: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 0-23 * * *",
    "@elevenses": "0 11 * * *",
    "@fika": "0 15 * * *",
    "@teatime": "0 16 * * *",
}


@dataclass(frozen=True, slots=True)
class CronSpec:
    """The minutes, hours, days of the month, months and days of the week (0 is Sunday) of a job; None is any.

    ``str`` is the form in which they are kept and shown."""

    fields: tuple[frozenset[int] | None, ...]

    def __str__(self) -> str:
        return " ".join("*" if values is None else _listed(values) for values in self.fields)

    def next_time(self, after: int) -> int | None:
        """The first minute that begins after that time (Unix seconds) and fits, in local time; None when there is none."""
        minutes, hours, *_ = self.fields
        start = time.localtime(after)
        day = date(start.tm_year, start.tm_mon, start.tm_mday)
        end = day + HORIZON
        while day < end:
            if self._fits_day(day):
                for hour in range(24) if hours is None else sorted(hours):
                    for minute in range(60) if minutes is None else sorted(minutes):
                        when = _local(day, hour, minute)
                        if when is not None and when > after:
                            return when
            day += timedelta(days=1)
        return None

    def _fits_day(self, day: date) -> bool:
        """Where both kinds of days are restricted, either will do."""
        _, _, days, months, weekdays = self.fields
        if months is not None and day.month not in months:
            return False
        by_month = days is None or day.day in days
        by_week = weekdays is None or (day.weekday() + 1) % 7 in weekdays
        return (by_month or by_week) if days is not None and weekdays is not None else (by_month and by_week)


def _local(day: date, hour: int, minute: int) -> int | None:
    """That time of day; None where clocks are put forward over it."""
    when = int(time.mktime((day.year, day.month, day.day, hour, minute, 0, 0, 0, -1)))
    told = time.localtime(when)
    return when if (told.tm_hour, told.tm_min) == (hour, minute) else None


def _listed(values: Iterable[int]) -> str:
    """``0,5-6``: neighbours share a range."""
    ordered = sorted(values)
    starts = [ordered[0], *(value for before, value in pairwise(ordered) if value != before + 1)]
    ends = [*(before for before, value in pairwise(ordered) if value != before + 1), ordered[-1]]
    return ",".join(str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True))


# ------------------------------------------------------------------------------------------------- fields


_STEPPED = re.compile(r"(?:\*|(\d{0,4})-(\d{1,4}))/(\d{1,4})\Z", re.ASCII)
_PART = re.compile(r"(\d{1,4})\Z|(\d{0,4})-(\d{1,4})\Z", re.ASCII)


def parse_spec(text: str) -> CronSpec:
    """The meaning of five fields, or of a word like ``@daily``. Raises CrontabError."""
    if text.startswith("@"):
        known = SHORTCUTS.get(text.lower())
        if known is None:
            raise CrontabError("invalid @ line", BROKEN)
        text = known
    words = text.split()
    if len(words) != len(_FIELDS):
        raise CrontabError(BROKEN)
    return CronSpec(tuple(_values(word, field) for word, field in zip(words, _FIELDS, strict=True)))


def _values(word: str, field: _Field) -> frozenset[int] | None:
    if word == "*":
        return None
    if field.names and word[:1].isalpha():
        return _named(word.lower(), field)
    stepped = _STEPPED.match(word)
    if stepped:
        first, last, step = stepped.groups()
        within = range(field.least, field.most + 1) if last is None else _range(first, last, field)
        if not 0 < int(step) <= field.most:
            raise CrontabError("bad step value", BROKEN)
        found = frozenset(_wrapped(value, field) for value in within if value % int(step) == 0)
    else:
        found = frozenset(_wrapped(value, field) for part in _parts(word) for value in _part(part, field))
    if not found:
        raise CrontabError(BROKEN)
    return found


def _parts(word: str) -> list[str]:
    parts = word.split(",")
    return parts[:-1] if len(parts) > 1 and not parts[-1] else parts


def _part(text: str, field: _Field) -> range:
    match = _PART.match(text)
    if match is None:
        raise CrontabError(BROKEN)
    return _range(match[1], match[1], field) if match[1] else _range(match[2], match[3], field)


def _range(first: str, last: str, field: _Field) -> range:
    least, most = int(first or 0), int(last)
    if not field.least <= least <= most <= field.most + field.wraps:
        raise CrontabError(BROKEN)
    return range(least, most + 1)


def _wrapped(value: int, field: _Field) -> int:
    return field.least if value > field.most else value


def _named(word: str, field: _Field) -> frozenset[int]:
    if word[:3] not in field.names:
        raise CrontabError(f"bad {field.called} specification", BROKEN)
    if len(word) > 3:
        raise CrontabError(BROKEN)
    return frozenset((field.least + field.names.index(word),))


# ------------------------------------------------------------------------------------------------- lines


@dataclass(frozen=True, slots=True)
class CronEntry:
    """One job of a table: its first and last line (counted from 0; its ``#SCRON`` lines go before it), their words, the lines
    themselves, its times as typed and as understood, and its command with the table's variables put in."""

    first: int
    last: int
    words: tuple[str, ...]
    options: tuple[str, ...]
    times: str
    spec: CronSpec
    command: str


_ASSIGNMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*\Z", re.ASCII)
_SHORTCUT = re.compile(r"\s*(@\S+)\s+(\S.*)\Z")
_ENTRY = re.compile(r"\s*(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(\S.*)\Z")
_VARIABLE = re.compile(r"\\\$|\$([A-Za-z_]\w*)", re.ASCII)


def parse_table(text: str) -> tuple[CronEntry, ...]:
    """The jobs of a table. Raises CrontabError."""
    if len(text) > LARGEST_TABLE:
        raise CrontabError("the table is too long")
    entries = tuple(_entries(text.splitlines()))
    if len(entries) > MOST_ENTRIES:
        raise CrontabError("the table has too many entries")
    return entries


def _entries(lines: list[str]) -> Iterator[CronEntry]:
    variables: dict[str, str] = {}
    options: list[int] = []
    for number, line in enumerate(lines):
        if line.startswith("#SCRON"):
            options.append(number)
            continue
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        assigned = _ASSIGNMENT.match(line)
        if assigned is not None:
            variables[assigned[1]] = _unquoted(assigned[2])
            continue
        first = options[0] if options else number
        try:
            times, command = _split(line)
            spec = parse_spec(times)
            if spec.next_time(0) is None:
                raise CrontabError(BROKEN)
        except CrontabError as error:
            raise CrontabError(*error.said, first=first, last=number) from None
        words = tuple(word for each in options for word in lines[each].removeprefix("#SCRON").split())
        told = tuple(lines[each] for each in options)
        yield CronEntry(first, number, words, told, times, spec, _expanded(command, variables))
        options = []


def _split(line: str) -> tuple[str, str]:
    match = (_SHORTCUT if line.lstrip().startswith("@") else _ENTRY).match(line)
    if match is None:
        words = line.split()
        if len(words) == len(_FIELDS):
            parse_spec(line)  # says what is wrong with the fields, if more than a missing command
        raise CrontabError(BROKEN)
    return match[1], match[2].rstrip()


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0] else text


def _expanded(command: str, variables: Mapping[str, str]) -> str:
    """The command with ``$NAME`` replaced where the table gives it a value."""
    return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]) if match[1] else match[0], command)
