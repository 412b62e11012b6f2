"""Durations and points in time, as Slurm's options, fields and configuration write them.

A time limit is whole minutes, as everywhere in Slurm; what a user says in seconds is rounded up. Points in time are Unix
seconds in the local time zone (sbatch(1), --time and --begin).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import date
from functools import lru_cache, partial

from grammar.errors import GrammarError

INFINITE = 0xFFFFFFFF
"""A limit that does not bind, in minutes; Slurm's own number for it."""

NO_VALUE = 0xFFFFFFFE
"""A limit that was not set."""

_CLOCK = re.compile(r"(\d{1,10})(?::(\d{1,10}))?(?::(\d{1,10}))?\Z", re.ASCII)
_DAYS = re.compile(r"(\d{1,10})-(?:(\d{1,10})(?::(\d{1,10}))?(?::(\d{1,10}))?)?\Z", re.ASCII)


@lru_cache(maxsize=1024)
def parse_duration(text: str) -> int:
    """Minutes of ``M``, ``M:S``, ``H:M:S``, ``D-``, ``D-H``, ``D-H:M`` and ``D-H:M:S``; INFINITE for ``infinite``,
    ``UNLIMITED`` and ``-1``. Seconds are rounded up. Raises GrammarError."""
    seconds = parse_duration_seconds(text)
    return INFINITE if seconds is None else _minutes(seconds)


def _minutes(seconds: int) -> int:
    minutes = -(-seconds // 60)
    if minutes >= NO_VALUE:
        raise GrammarError("time limit is too long")
    return minutes


@lru_cache(maxsize=1024)
def parse_duration_seconds(text: str) -> int | None:
    """The same in seconds; None for no limit. A number alone is minutes."""
    if text == "-1" or text.lower() in ("infinite", "unlimited"):
        return None
    if match := _CLOCK.match(text):
        first, second, third = match.groups()
        if third is not None:
            return int(first) * 3600 + int(second) * 60 + int(third)
        return int(first) * 60 + int(second or 0)
    if match := _DAYS.match(text):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    raise GrammarError("not a time: digits as minutes, minutes:seconds, hours:minutes:seconds or days-hours")


def format_duration_minutes(minutes: int, *, padded: bool = True, unlimited: str = "UNLIMITED", unset: str = "NOT_SET") -> str:
    """A time limit: ``1-02:03:00``, ``02:03:00``; or as squeue has it (``padded`` false) ``2:03:00`` and ``5:00``."""
    if minutes == INFINITE:
        return unlimited
    if minutes == NO_VALUE:
        return unset
    return format_elapsed(minutes * 60, padded=padded)


def format_elapsed(seconds: int, *, padded: bool = False) -> str:
    """A length of time as squeue prints it (``5:07``, ``1:00:00``, ``1-02:03:04``), or ``padded`` as sacct and scontrol do
    (``00:05:07``). Negative ones are what squeue calls them."""
    if seconds < 0:
        return "INVALID"
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02}:{minute:02}:{second:02}"
    if padded:
        return f"{hour:02}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def format_time(t: int, *, absent: str = "Unknown") -> str:
    """``2026-11-30T07:00:00`` in local time, or as ``TIME_FORMAT`` says; ``absent`` for 0 and times that no calendar has."""
    if t <= 0 or t >= NO_VALUE:
        return absent
    form = TIME_FORMAT.get()
    return _standard_time(t) if form is None else form(t)


TimeFormat = Callable[[int], str]

TIME_FORMAT: ContextVar[TimeFormat | None] = ContextVar("TIME_FORMAT", default=None)
"""How points in time are written for the caller that is being answered; None is the standard form."""

_LONGEST_TIME = 255


def time_format(text: str, now: float) -> TimeFormat | None:
    """The form that a value of SLURM_TIME_FORMAT asks for: ``relative`` to today, or one of strftime(3). None for
    ``standard``. Raises GrammarError for other words and for forms whose times are too long."""
    if text in ("", "standard"):
        return None
    if text == "relative":
        return partial(_relative_time, date.fromtimestamp(now))
    if "%" not in text or len(text) > _LONGEST_TIME:
        raise GrammarError(f"invalid SLURM_TIME_FORMAT = '{text}'")
    return partial(_formatted_time, text)


@lru_cache(maxsize=65536)
def _standard_time(t: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(t))


def _formatted_time(form: str, t: int) -> str:
    try:
        written = time.strftime(form, time.localtime(t))
    except ValueError:
        return _standard_time(t)
    return written if len(written) <= _LONGEST_TIME else _standard_time(t)


def _relative_time(today: date, t: int) -> str:
    """``10:39:23`` of today, ``Tomorr 10:39``, ``Ystday 10:39``, ``Wed 10:39`` of the coming week, ``20 Dec 10:39`` of this
    year, ``2 Jan 2027``."""
    moment = time.localtime(t)
    day = date(moment.tm_year, moment.tm_mon, moment.tm_mday)
    distance = (day - today).days
    if distance == 0:
        return time.strftime("%H:%M:%S", moment)
    if day.year != today.year and abs(distance) > 1 and not 1 < distance < 7:
        return time.strftime(f"{day.day} %b %Y", moment)
    word = {1: "Tomorr", -1: "Ystday"}.get(distance) or ("%a" if 1 < distance < 7 else f"{day.day} %b")
    return time.strftime(f"{word} %H:%M", moment)


# --------------------------------------------------------------------------------------------- points in time

_HOURS_OF_NAMES = {"midnight": 0, "elevenses": 11, "fika": 15, "noon": 12, "teatime": 16}
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_DELTA = re.compile(r"[ \t]*([+-])[ \t]*(\d{0,18})[ \t]*", re.ASCII)
_UNIT = re.compile(r"(second|minute|hour|day|week)s?", re.IGNORECASE)
_FEW_DIGITS = re.compile(r"\d{1,2}", re.ASCII)
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MERIDIEM = re.compile(r"[ \t]*([AaPp])[Mm]")


class _Scanner:
    """One reading of a text; ``date`` is (year or None, month, day), ``clock`` (hour, minute, second)."""

    def __init__(self, text: str, now: float) -> None:
        self.text = text
        self.now = now
        self.position = 0
        self.date: tuple[int | None, int, int] | None = None
        self.day_offset = 0
        self.clock: tuple[int, int, int] | None = None
        self.absolute: int | None = None

    def fail(self, position: int | None = None) -> GrammarError:
        at = self.position if position is None else position
        return GrammarError(f"Invalid time specification (pos={at}): {self.text}", at)

    def scan(self) -> None:
        while self.position < len(self.text):
            if self.text[self.position] in " \t-T\n":
                self.position += 1
                continue
            if self.absolute is not None:
                raise self.fail()
            self._item()

    def _item(self) -> None:
        rest = self.text[self.position : self.position + 24].lower()
        if rest.startswith("now"):
            self.position += 3
            self.absolute = int(self.now) + self._delta()
        elif rest.startswith("uts"):
            self.absolute = self._unix_time()
        elif rest.startswith("today"):
            self._day(0, 5)
        elif rest.startswith("tomorrow"):
            self._day(1, 8)
        elif name := next((name for name in _HOURS_OF_NAMES if rest.startswith(name)), None):
            if self.clock is not None:
                raise self.fail()
            self.clock = (_HOURS_OF_NAMES[name], 0, 0)
            self.position += len(name)
        elif rest[:1].isdigit() and ":" in rest[1:3]:
            self._clock()
        elif rest[:1].isdigit():
            self._date()
        else:
            raise self.fail()

    def _day(self, offset: int, length: int) -> None:
        if self.date is not None:
            raise self.fail()
        today = time.localtime(self.now)
        self.date = (today.tm_year, today.tm_mon, today.tm_mday)
        self.day_offset = offset
        self.position += length

    def _delta(self) -> int:
        match = _DELTA.match(self.text, self.position)
        if match is None:
            return 0
        if not match[2]:
            raise self.fail(match.start(1))
        self.position = match.end()
        seconds = int(match[2])
        if self.position < len(self.text):
            unit = _UNIT.match(self.text, self.position)
            if unit is None:
                raise self.fail(match.end(1))
            seconds *= _UNITS[unit[1].lower()]
            self.position = unit.end()
        return -seconds if match[1] == "-" else seconds

    def _unix_time(self) -> int:
        match = re.compile(r"\d{7,11}", re.ASCII).match(self.text, self.position + 3)
        if match is None:
            raise self.fail()
        self.position = match.end()
        return int(match[0])

    def _digits(self, at: int, least: int, most: int) -> int:
        """Two digits at ``at``, within bounds. The position in an error is where they begin, or the first that is none."""
        for place in (at, at + 1):
            if not (self.text[place : place + 1].isascii() and self.text[place : place + 1].isdigit()):
                raise self.fail(min(place, len(self.text)))
        number = int(self.text[at : at + 2])
        if not least <= number <= most:
            raise self.fail(at)
        return number

    def _few_digits(self, at: int, most: int) -> tuple[int, int]:
        """One or two digits at ``at``, from 1 to ``most``, and where they end."""
        match = _FEW_DIGITS.match(self.text, at)
        if match is None:
            raise self.fail(min(at, len(self.text)))
        if not 1 <= int(match[0]) <= most:
            raise self.fail(match.end() - 2)
        return int(match[0]), match.end()

    def _clock(self) -> None:
        if self.clock is not None:
            raise self.fail()
        start = self.position
        colon = self.text.index(":", start)
        hour_text = self.text[start:colon]
        if not hour_text.isascii() or not hour_text.isdigit() or int(hour_text) > 23:
            raise self.fail()
        hour, minute, second, end = int(hour_text), self._digits(colon + 1, 0, 59), 0, colon + 3
        if self.text[end : end + 1] == ":":
            second, end = self._digits(end + 1, 0, 59), end + 3
        if meridiem := _MERIDIEM.match(self.text, end):
            if hour > 12:
                raise self.fail(end)
            hour = hour % 12 + (12 if meridiem[1] in "Pp" else 0)
            end = meridiem.end()
        self.clock = (hour, minute, second)
        self.position = end

    def _date(self) -> None:
        if self.date is not None:
            self._digits(self.position, 1, 12)
            self._digits(self.position + 2, 1, 31)
            raise self.fail()
        start = self.position
        if _ISO_DATE.match(self.text, start):
            month, day = self._digits(start + 5, 1, 12), self._digits(start + 8, 1, 31)
            self.date = (int(self.text[start : start + 4]), month, day)
            self.position = start + 10
            return
        month, at = self._few_digits(start, 12)
        at += self.text[at : at + 1] in ("/", ".") and at < len(self.text)
        day, at = self._few_digits(at, 31)
        year: int | None = None
        if self.text[at : at + 1] in ("/", ".") and self.text[at : at + 1]:
            at += 1
        if self.text[at : at + 1].isdigit():
            year, at = 2000 + self._digits(at, 0, 99), at + 2
        self.date = (year, month, day)
        self.position = at


def parse_time(text: str, now: float, *, past: bool = False) -> int:
    """Unix seconds of a point in time, in the local time zone.

    ``now[+-COUNT[UNITS]]``, a date (``YYYY-MM-DD``, ``MM/DD[/YY]``, ``MMDD[YY]``, ``today``, ``tomorrow``), a time of day
    (``HH:MM[:SS] [AM|PM]``, ``midnight``, ``noon``, ``elevenses``, ``fika``, ``teatime``) or both, or ``uts`` and Unix
    seconds. What names no day is the next such time, or with ``past`` (sacct, sreport) that of today. Raises GrammarError,
    whose message is the line that Slurm prints; for an empty text there is none and the position is None.
    """
    if not text:
        raise GrammarError("empty time")
    scanner = _Scanner(text, now)
    try:
        scanner.scan()
        return scanner.absolute if scanner.absolute is not None else _resolve(scanner, now, past=past)
    except (OverflowError, ValueError, IndexError) as error:
        if isinstance(error, GrammarError):
            raise
        raise scanner.fail(0) from None


def _resolve(scanner: _Scanner, now: float, *, past: bool) -> int:
    here = time.localtime(now)
    if scanner.date is None and scanner.clock is None:
        raise scanner.fail(0)
    hour, minute, second = scanner.clock or (0, 0, 0)
    if scanner.date is None:
        moment = _local(here.tm_year, here.tm_mon, here.tm_mday, hour, minute, second)
        if moment < int(now) and not past:
            return _local(here.tm_year, here.tm_mon, here.tm_mday + 1, hour, minute, second)
        return moment
    year, month, day = scanner.date
    if year is not None:
        return _local(year, month, day + scanner.day_offset, hour, minute, second)
    later = (month, day) < (here.tm_mon, here.tm_mday)
    return _local(here.tm_year + (1 if later and not past else 0), month, day, hour, minute, second)


def _local(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    return int(time.mktime((year, month, day, hour, minute, second, 0, 0, -1)))
