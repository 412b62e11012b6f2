"""Which waiting jobs might start now: those that are promised a start, in order, as columns that are looked at all at once.

After each job that ends, the capacity that it leaves is offered to the queue, which may be long. So what a reaction needs to
know of each record (how many nodes or CPUs it must find free, and of which nodes) stands in arrays, made once a full plan.
Records that changed since stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from slurmk.planner.forecast import Forecast
from slurmk.planner.queue import in_order
from slurmk.planner.requirement import Requirement
from slurmk.planner.snapshot import BoolArray, IntArray, PendingRow, Snapshot

AT_ONCE = 16
"""Candidates that are looked for, and put in order with those that changed, at a time."""

LOOKED_AT = 4096
"""Records whose whole time is looked at at once."""


class Offers:
    """The records of a forecast to which free capacity may be offered; components of het jobs are not among them."""

    def __init__(self, forecast: Forecast) -> None:
        promised = forecast.promised
        rows = [forecast.rows[job_id] for job_id in promised]
        self._rows = in_order(forecast.snapshot, [row for row in rows if not row.component_of])
        needs = [promised[row.job_id][0].need for row in self._rows]
        self._position = {row.job_id: position for position, row in enumerate(self._rows)}
        self._eligible = _integers(row.eligible_time for row in self._rows)
        self._whole = np.fromiter((need.whole for need in needs), dtype=np.bool_)
        self._pool = _integers(need.pool for need in needs)
        self._needed = _integers(need.needed_nodes if need.whole else need.needed_cpus for need in needs)
        self._until = _integers(_held_until(forecast, row) for row in self._rows)
        self._lasts = _integers(_least_time(row, need) for row, need in zip(self._rows, needs, strict=True))
        self._longest = int(self._lasts.max(initial=0))
        self._good = np.ones(len(needs), dtype=np.bool_)
        self._changed: dict[int, PendingRow] = {}
        self._moves = 0
        self.unbooked: dict[int, PendingRow] = {}  # new records for which no reaction had time yet

    def change(self, job_id: int, row: PendingRow | None) -> None:
        """The record, or what it is promised, is another now; None: it waits no more."""
        self._moves += 1
        position = self._position.pop(job_id, None)
        if position is not None:
            self._good[position] = False
        if row is None or row.component_of:
            self._changed.pop(job_id, None)
        else:
            self._changed[job_id] = row
        self.unbooked.pop(job_id, None)

    def candidates(self, forecast: Forecast, index: int) -> Iterator[PendingRow]:
        """Those for which there might be enough free at this moment, which is segment ``index``, in order."""
        snapshot, now = forecast.snapshot, forecast.now
        changed = [row for row in self._changed.values() if row.eligible_time <= now]
        first, end, passed = 0, len(self._rows), list[PendingRow]()
        while first < len(self._rows):
            found = self._found(forecast, index, first, end) if first < end else _integers(())
            merged = self._merged(snapshot, passed, found, changed)
            first, until = (int(found[-1]) + 1 if len(found) == AT_ONCE else end), first
            for row in merged:
                position, moves = self._position.get(row.job_id), self._moves
                yield row
                passed = [row]
                if position is None:
                    changed = [each for each in changed if each is not row]
                else:
                    until = position + 1
                if self._moves != moves:  # what it was promised before is free for others, of which some were not found
                    first, end = until, first
                    break
            else:
                end = len(self._rows)
        yield from in_order(snapshot, changed)

    def _merged(
        self, snapshot: Snapshot, passed: list[PendingRow], found: IntArray, changed: list[PendingRow]
    ) -> list[PendingRow]:
        """Those found and those that changed, in order, from behind the one that was ``passed`` to the last one found."""
        if not len(found):
            return []
        merged = in_order(snapshot, [*passed, *(self._rows[position] for position in found.tolist()), *changed])
        ids = [row.job_id for row in merged]
        begin = ids.index(passed[0].job_id) + 1 if passed else 0
        return merged[begin : ids.index(self._rows[int(found[-1])].job_id) + 1]

    def _found(self, forecast: Forecast, index: int, first: int, end: int) -> IntArray:
        """The next ones of those that did not change, as it is by now, from one on and before another: for which enough nodes
        or CPUs are free, of whatever nodes they are, for as long as the job may run, or until the start that it is promised
        itself."""
        profile, now, pool = forecast.profile, forecast.now, self._pool[first:end]
        ends = profile.times[index + 1 : profile.count]
        stop = index + int(ends.searchsorted(now + self._longest)) + 1
        idle, cpus = profile.idle[:, index:stop], profile.cpus[:, index:stop]
        free = np.where(self._whole[first:end], idle[pool, 0], cpus[pool, 0])
        fit: BoolArray = self._good[first:end] & (free >= self._needed[first:end]) & (self._eligible[first:end] <= now)
        positions = fit.nonzero()[0] + first
        least_idle, least_cpus = np.minimum.accumulate(idle, axis=1), np.minimum.accumulate(cpus, axis=1)
        found = np.zeros(0, dtype=np.int64)
        for some in np.split(positions, range(LOOKED_AT, len(positions), LOOKED_AT)):
            last = ends.searchsorted(np.minimum(now + self._lasts[some], self._until[some]))
            free = np.where(self._whole[some], least_idle[self._pool[some], last], least_cpus[self._pool[some], last])
            found = np.concatenate((found, some[free >= self._needed[some]]))
            if len(found) >= AT_ONCE:
                break
        return found[:AT_ONCE]


def _held_until(forecast: Forecast, row: PendingRow) -> int:
    """When the record begins to hold what it is promised."""
    return min(booking.start for booking in forecast.promised[row.job_id])


def _least_time(row: PendingRow, need: Requirement) -> int:
    """Seconds that the job needs at least; it may end with its reservation."""
    if need.reservation:
        return 1
    return min(row.time_minimum or row.time_limit, need.partition.maximum_time or row.time_limit)


def offers_of(forecast: Forecast) -> Offers:
    """Those of a forecast, made when they are first asked for."""
    if forecast.offers is None:
        forecast.offers = Offers(forecast)
    return forecast.offers


def _integers(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)
