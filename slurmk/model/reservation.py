"""Reservations: resources that are kept, from one time to another, for those who may use them (scontrol(1)).

Times are Unix seconds. A reservation keeps whole nodes, or with ``cores`` a number of cores of each of its nodes, or no nodes
at all but licences alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntFlag

from grammar.times import format_elapsed


class ReservationFlag(IntFlag):
    """What a reservation is told to do, by Slurm's numbers."""

    NONE = 0
    MAINT = 1 << 0
    DAILY = 1 << 2
    WEEKLY = 1 << 4
    IGNORE_JOBS = 1 << 6
    ANY_NODES = 1 << 8
    STATIC = 1 << 10
    PART_NODES = 1 << 12
    OVERLAP = 1 << 14
    SPEC_NODES = 1 << 15
    TIME_FLOAT = 1 << 17
    REPLACE = 1 << 18
    ALL_NODES = 1 << 19
    PURGE_COMP = 1 << 20
    WEEKDAY = 1 << 21
    WEEKEND = 1 << 23
    FLEX = 1 << 25
    NO_HOLD_JOBS = 1 << 32
    REPLACE_DOWN = 1 << 33
    MAGNETIC = 1 << 35
    HOURLY = 1 << 38
    USER_DELETE = 1 << 40
    FORCE_START = 1 << 42


REPEATING = (
    ReservationFlag.HOURLY | ReservationFlag.DAILY | ReservationFlag.WEEKDAY | ReservationFlag.WEEKEND | ReservationFlag.WEEKLY
)
"""Flags of reservations that come again; a reservation has at most one of them."""

REPLACING = ReservationFlag.REPLACE | ReservationFlag.REPLACE_DOWN
"""Flags of reservations whose nodes are replaced."""

KEEPING = ReservationFlag.STATIC | ReservationFlag.MAINT
"""Flags of reservations whose nodes stay what they are, which go with none of those."""

FLAG_WORDS: tuple[tuple[ReservationFlag, str], ...] = (
    (ReservationFlag.MAINT, "MAINT"),
    (ReservationFlag.FLEX, "FLEX"),
    (ReservationFlag.OVERLAP, "OVERLAP"),
    (ReservationFlag.IGNORE_JOBS, "IGNORE_JOBS"),
    (ReservationFlag.HOURLY, "HOURLY"),
    (ReservationFlag.DAILY, "DAILY"),
    (ReservationFlag.WEEKDAY, "WEEKDAY"),
    (ReservationFlag.WEEKEND, "WEEKEND"),
    (ReservationFlag.WEEKLY, "WEEKLY"),
    (ReservationFlag.SPEC_NODES, "SPEC_NODES"),
    (ReservationFlag.ALL_NODES, "ALL_NODES"),
    (ReservationFlag.ANY_NODES, "ANY_NODES"),
    (ReservationFlag.STATIC, "STATIC"),
    (ReservationFlag.PART_NODES, "PART_NODES"),
    (ReservationFlag.TIME_FLOAT, "TIME_FLOAT"),
    (ReservationFlag.REPLACE, "REPLACE"),
    (ReservationFlag.REPLACE_DOWN, "REPLACE_DOWN"),
    (ReservationFlag.PURGE_COMP, "PURGE_COMP"),
    (ReservationFlag.NO_HOLD_JOBS, "NO_HOLD_JOBS_AFTER_END"),
    (ReservationFlag.MAGNETIC, "MAGNETIC"),
    (ReservationFlag.USER_DELETE, "USER_DELETE"),
    (ReservationFlag.FORCE_START, "FORCE_START"),
)
"""Flags in the order in which scontrol lists them."""

_HOUR, _WEEK = 3600, 7 * 86400

PURGE_AFTER = 300
"""Seconds without a job after which PURGE_COMP without a time removes a reservation."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use a reservation, of one kind: those named, or with ``denied`` all but those named. No names: everybody."""

    names: tuple[str, ...] = ()
    denied: bool = False

    def allows(self, *names: str) -> bool:
        """True when one of these names (of a job's several groups, partitions) may."""
        if not self.names:
            return True
        known = any(name in self.names for name in names)
        return known != self.denied

    def in_small_letters(self) -> Access:
        """The same of names that are the same in any letters, as those of accounts are."""
        return replace(self, names=tuple(name.lower() for name in self.names))

    def __str__(self) -> str:
        return ",".join(f"-{name}" if self.denied else name for name in self.names)


@dataclass(frozen=True, slots=True)
class CoreShare:
    """Cores kept of one node, by number; ``threads`` is how many CPUs each of them counts for."""

    node: str
    cores: tuple[int, ...]
    threads: int = 1

    @property
    def cpus(self) -> int:
        return len(self.cores) * self.threads


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation as the controller knows it.

    ``core_count`` and ``cpu_count`` are what its nodes have, or what is kept of them. Of a repeating reservation the times
    are those of the present occurrence. With TIME_FLOAT ``start_time`` moves: it stays ``delay`` seconds ahead.
    """

    name: str
    number: int
    start_time: int
    end_time: int
    nodes: tuple[str, ...] = ()
    flags: ReservationFlag = ReservationFlag.NONE
    core_count: int = 0
    cpu_count: int = 0
    cores: tuple[CoreShare, ...] = ()
    gres: tuple[tuple[str, int], ...] = ()  # of all nodes: ("gpu", 2)
    features: str = ""
    partition: str = ""
    users: Access = Access()
    groups: Access = Access()
    accounts: Access = Access()
    qos: Access = Access()
    allowed_partitions: Access = Access()
    licenses: tuple[tuple[str, int], ...] = ()
    purge_after: int = PURGE_AFTER
    maximum_start_delay: int | None = None
    delay: int = 0
    group_ids: tuple[tuple[str, int], ...] = ()  # of ``groups``
    comment: str = ""

    def active(self, now: int) -> bool:
        return self.start_time <= now < self.end_time and not self.flags & ReservationFlag.TIME_FLOAT

    def at(self, now: int) -> Reservation:
        """The same with the times that a floating one has now."""
        if not self.flags & ReservationFlag.TIME_FLOAT:
            return self
        start = now + self.delay
        return replace(self, start_time=start, end_time=start + self.end_time - self.start_time)

    @property
    def flags_text(self) -> str:
        words = [word for flag, word in FLAG_WORDS if self.flags & flag]
        purge = f"PURGE_COMP={format_elapsed(self.purge_after, padded=True)}"
        return ",".join(purge if word == "PURGE_COMP" else word for word in words)

    @property
    def tres(self) -> dict[str, int]:
        """By the names of accounting."""
        amounts = {"cpu": self.cpu_count} if self.cpu_count else {}
        return {**amounts, **{f"gres/{name}": count for name, count in self.gres}}

    @property
    def licenses_text(self) -> str:
        return ",".join(f"{name}:{count}" for name, count in self.licenses)

    def next(self) -> Reservation:
        """The occurrence after the present one; itself where it does not repeat."""
        if not self.flags & REPEATING:
            return self
        start = _next_start(self.start_time, self.flags)
        return replace(self, start_time=start, end_time=start + self.end_time - self.start_time)

    def after(self, moment: int) -> Reservation:
        """The first occurrence that ends later than that; the last one where none does. However far away that is."""
        if not self.flags & REPEATING or self.end_time > moment:
            return self
        later = self.next()  # from here on all are on days that count
        weeks = max(0, (moment - later.end_time) // _WEEK - 1)
        if self.flags & ReservationFlag.HOURLY:
            start = later.start_time + max(0, (moment - later.end_time) // _HOUR) * _HOUR
        else:
            start = _days_later(later.start_time, 7 * weeks)
        later = replace(later, start_time=start, end_time=start + self.end_time - self.start_time)
        while later.end_time <= moment:
            later = later.next()
        return later

    def occurrences(self) -> Iterator[Reservation]:
        """The present one and all that follow; without end where it repeats."""
        occurrence = self
        while True:
            yield occurrence
            following = occurrence.next()
            if following is occurrence:
                return
            occurrence = following


def _next_start(start: int, flags: ReservationFlag) -> int:
    """The same time of day on the next day that counts, whatever daylight saving does in between."""
    if flags & ReservationFlag.HOURLY:
        return start + _HOUR
    days = 7 if flags & ReservationFlag.WEEKLY else 1
    later = _days_later(start, days)
    while (flags & ReservationFlag.WEEKDAY and _weekend(later)) or (flags & ReservationFlag.WEEKEND and not _weekend(later)):
        later = _days_later(later, 1)
    return later


def _days_later(moment: int, days: int) -> int:
    return int((datetime.fromtimestamp(moment) + timedelta(days=days)).timestamp())


def _weekend(moment: int) -> bool:
    return datetime.fromtimestamp(moment).weekday() >= 5


Names = tuple[tuple[str, str], ...]
"""Names with the sign before each: "", "+" or "-"."""


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """What ``scontrol create`` or ``update reservation`` says; None was not said.

    ``duration`` is minutes. ``nodes`` and the lists of names have a sign before each name.
    """

    name: str = ""
    start_time: int | None = None
    end_time: int | None = None
    duration: int | None = None
    duration_sign: str = ""  # "+" and "-" change the duration by so much
    nodes: Names | None = None
    node_count: int | None = None
    core_count: int | None = None
    gres: tuple[tuple[str, int], ...] = ()
    gres_per_node: bool = False
    features: str | None = None
    partition: str | None = None
    flags: ReservationFlag = ReservationFlag.NONE
    dropped_flags: ReservationFlag = ReservationFlag.NONE
    purge_after: int | None = None
    users: Names | None = None
    groups: Names | None = None
    accounts: Names | None = None
    qos: Names | None = None
    allowed_partitions: Names | None = None
    licenses: str | None = None
    maximum_start_delay: int | None = None
    skip: bool = False
    group_ids: tuple[tuple[str, int], ...] = ()  # of ``groups``, as the system knows them
    comment: str | None = None
