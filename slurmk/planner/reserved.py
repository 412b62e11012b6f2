"""Reservations as the planner sees them: which nodes are kept from whom, and when.

A reservation of whole nodes is a mask that a job without right to it may not touch while a window of it is open. One of
cores is two more rows of resources: what is left for others on its nodes, and what its own jobs may have. One of licences
is one more licence, of which everybody else's jobs use as much as of the real one. A repeating reservation has a window for
each time that it comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from slurmk.model.reservation import Reservation, ReservationFlag
from slurmk.planner.profile import Bits, pack
from slurmk.planner.snapshot import BoolArray, IntArray, Snapshot

WINDOWS = 100
"""Occurrences of a repeating reservation that are looked at; of an hourly one these are four days."""

_UNBOUND = ReservationFlag.FLEX | ReservationFlag.ANY_NODES
"""Flags of reservations whose jobs may use other nodes too."""


def may_share(reservation: Reservation | None, other: Reservation, leaves_within: int | None = None) -> bool:
    """Whether jobs of a reservation may use what the other one keeps; without a reservation, only those that would leave
    again, within so many seconds, as soon as its own jobs may have to wait for (MaxStartDelay)."""
    if reservation is None:
        return leaves_within is not None and leaves_within <= (other.maximum_start_delay or -1)
    if reservation.name == other.name or reservation.flags & ReservationFlag.MAINT:
        return True
    return bool(reservation.flags & ReservationFlag.OVERLAP) and not other.flags & ReservationFlag.MAINT


def windows_of(reservation: Reservation, now: int) -> Iterator[tuple[int, int]]:
    """The times that the reservation is open, from now on."""
    for occurrence in islice(reservation.at(now).occurrences(), WINDOWS):
        if occurrence.end_time > now:
            yield occurrence.start_time, occurrence.end_time


def kept_licenses(licenses: Mapping[str, int], reservations: Sequence[Reservation]) -> dict[str, int]:
    """The licences and, beside them, one for each that a reservation keeps: what others may have of it."""
    kept = dict(licenses)
    for reservation in reservations:
        kept.update((license_beside(name, reservation), licenses[name]) for name, _ in reservation.licenses if name in licenses)
    return kept


def license_beside(name: str, reservation: Reservation) -> str:
    """The name of the licence that stands for what of ``name`` the reservation leaves to others."""
    return f"{name} beside {reservation.name}"


class Reserved:
    """All reservations of a snapshot, by window."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.by_name = {reservation.name: reservation for reservation in snapshot.reservations}
        self.overrun = snapshot.overrun
        position = {name: row for row, name in enumerate(snapshot.nodes.names)}
        self.nodes = {each.name: _mask(each.nodes, position) for each in snapshot.reservations}
        self.windows = {each.name: list(windows_of(each, snapshot.time)) for each in snapshot.reservations}
        self.parts = {each.name: _parts(each, position) for each in snapshot.reservations if each.cores}
        whole = [each for each in snapshot.reservations if not each.cores]
        table = [(start, end, each) for each in whole for start, end in self.windows[each.name]]
        self._starts = np.array([start for start, _, _ in table], dtype=np.int64)
        self._ends = np.array([end for _, end, _ in table], dtype=np.int64)
        self._owners = [each for _, _, each in table]
        bits = {each.name: pack(self.nodes[each.name]) for each in whole}
        self._bits = np.array([bits[each.name] for each in self._owners], dtype=np.uint64)
        self._against: dict[tuple[str, int | None], BoolArray] = {}

    def bound(self, name: str) -> BoolArray | None:
        """The nodes that jobs of a reservation must keep to; None for any."""
        reservation = self.by_name.get(name)
        return None if reservation is None or reservation.flags & _UNBOUND else self.nodes[name]

    def stays_open(self, name: str) -> bool:
        """Whether jobs of a reservation may begin before it and go on after it."""
        return bool(self.by_name[name].flags & ReservationFlag.FLEX)

    def others(self, name: str) -> list[Reservation]:
        """The reservations that jobs of this one ("": of none) have no right to."""
        own = self.by_name.get(name)
        return [other for other in self.by_name.values() if not may_share(own, other)]

    def blocked(self, name: str, start: int, end: int, leaves_within: int | None = None) -> Bits | None:
        """Nodes that a job of a reservation ("": of none) may not use from ``start`` to ``end``; None for no nodes."""
        against = self._against.get((name, leaves_within))
        if against is None:
            own = self.by_name.get(name)
            kept = [not may_share(own, other, leaves_within) for other in self._owners]
            against = self._against[name, leaves_within] = np.array(kept, dtype=np.bool_)
        hit = against & (self._starts < end) & (self._ends > start)
        if not hit.any():
            return None
        bits: Bits = np.bitwise_or.reduce(self._bits[hit], axis=0)
        return bits

    def for_maintenance(self, start: int, end: int, nodes: BoolArray) -> bool:
        """Whether maintenance is among what keeps some of these nodes then, as a reservation of all nodes is taken to be."""
        return any(
            each.flags & (ReservationFlag.MAINT | ReservationFlag.ALL_NODES)
            and (self.nodes[each.name] & nodes).any()
            and any(opens < end and closes > start for opens, closes in self.windows[each.name])
            for each in self.by_name.values()
        )

    def instants(self, now: int) -> list[int]:
        """When anything begins or ends from now on."""
        return sorted({moment for windows in self.windows.values() for window in windows for moment in window if moment > now})

    def open_now(self, name: str, now: int) -> bool:
        return any(start <= now < end for start, end in self.windows.get(name, ()))


def _mask(names: Sequence[str], position: Mapping[str, int]) -> BoolArray:
    mask = np.zeros(len(position), dtype=np.bool_)
    mask[[position[name] for name in names if name in position]] = True
    return mask


def _parts(reservation: Reservation, position: Mapping[str, int]) -> IntArray:
    """[nodes]: CPUs that a reservation keeps of each."""
    cpus = np.zeros(len(position), dtype=np.int64)
    for share in reservation.cores:
        if share.node in position:
            cpus[position[share.node]] += share.cpus
    return cpus
