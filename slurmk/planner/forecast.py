"""The working state of a plan: the profile with everything booked on it, and how one job after another is booked.

``Forecast(snapshot)`` lays out what runs; ``book_all`` gives every pending record its start in order. The state can be
kept: ``react`` brings it up to date with a newer snapshot in milliseconds, by the same rule (nothing is started that
delays a promised start), while the next full plan is still being made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from slurmk.model.job import Allocation
from slurmk.model.states import Reason
from slurmk.planner.attention import Attention
from slurmk.planner.bounds import Bounds
from slurmk.planner.node_names import NodeNames
from slurmk.planner.placement import Placement, Placer, takes_gres
from slurmk.planner.preemption import make_room
from slurmk.planner.profile import FOREVER, Bits, Counts, Profile, pack, rows_of
from slurmk.planner.quotas import Charge, QuotaBook
from slurmk.planner.reasons import Blocking, partition_reason, reserved_reason, why_never
from slurmk.planner.requirement import CPUS, MEMORY, PLENTY, Compiler, Requirement, resources_of, without_others
from slurmk.planner.reserved import license_beside
from slurmk.planner.shares import Inventory
from slurmk.planner.snapshot import (
    BoolArray,
    IntArray,
    Outlook,
    PartitionRow,
    PendingRow,
    Plan,
    Preempt,
    RunningRow,
    Snapshot,
    Start,
)
from slurmk.planner.told import Told

if TYPE_CHECKING:
    from slurmk.planner.offers import Offers

COMPILED_FROM = 500
"""Pending records from which on the compiled profile is used."""

TOGETHER = 64
"""Moments at which it is tried to start all components of a het job."""


@dataclass(slots=True)
class Booking:
    """What one job holds on the profile from ``start`` to ``end``, and where it was found."""

    start: int
    end: int
    limit: int
    need: Requirement
    placement: Placement
    counted: IntArray  # of each licence and quota


@dataclass(slots=True)
class Held:
    """What a running job holds on the profile: whole nodes as bits, or amounts."""

    end: int
    bits: Bits | None
    nodes: IntArray
    amounts: Counts | None
    counted: IntArray  # of each licence and quota
    allocation: Allocation | None = None


class Abandoned(Exception):
    """Nobody wants this plan any more."""


def always() -> bool:
    """A plan that is wanted to its end."""
    return True


class Forecast:
    """See the module. ``wanted`` is asked before each record; once it says no, ``Abandoned`` is raised."""

    def __init__(self, snapshot: Snapshot, wanted: Callable[[], bool] = always) -> None:
        self.snapshot = snapshot
        self.now = snapshot.time
        self.wanted = wanted
        self.attention = Attention(snapshot.bounds, snapshot.time)
        self.partitions = {partition.name: partition for partition in snapshot.partitions}
        pools, pool_of = _pools(snapshot)
        resources = resources_of(snapshot)
        self.compiler = Compiler(snapshot, resources, pools, pool_of)
        self.placer = Placer(snapshot, self.compiler)
        self.inventory = Inventory(snapshot.nodes, resources, snapshot.running, snapshot.reservations)
        self.bounds = Bounds(len(snapshot.nodes.names), max((row.time_limit for row in snapshot.pending), default=60))
        self.quotas = QuotaBook(snapshot, resources, len(snapshot.licenses))
        self.totals = np.array([*snapshot.licenses.values(), *self.quotas.left()], dtype=np.int64)
        self.available = snapshot.nodes.available
        usable = np.array([pool & self.available for pool in pools]).reshape(len(pools), len(self.available))
        self.profile = profile_of(snapshot)(snapshot.time, resources.capacity, self.totals, usable)
        self.blocking = Blocking(len(self.available))
        self.not_before: dict[str, int] = {}  # partition -> when those may start that come later in the queue
        self.busy = np.zeros(len(self.available), dtype=np.bool_)
        self.starts: list[Start] = []
        self.preempted: list[Preempt] = []
        self.outlooks = Told()
        self.held: dict[int, Held] = {}
        self.rows: dict[int, PendingRow] = {}
        self.promised: dict[int, list[Booking]] = {}
        self.array_taken: Counter[int] = Counter()  # starts of each array that has a limit, also by preemption
        self._array_records: dict[int, dict[int, None]] = {}  # array -> its records, in the order in which they were booked
        self.started: list[tuple[Start, Booking]] = []
        self._het_jobs: tuple[Snapshot | None, dict[int, list[PendingRow]]] = (None, {})
        self._names = np.array(snapshot.nodes.names, dtype=object)
        self._undisturbed: tuple[Compiler, Placer] | None = None
        self.offers: Offers | None = None
        self.promises: dict[int, int] = {}  # the latest starts of records, where the snapshot goes by promises
        for row in sorted(snapshot.running, key=lambda row: not row.allocation.whole_nodes):
            self.hold(row)
        self.reserved = self.compiler.reserved
        for instant in self.reserved.instants(self.now):
            self.profile.at(instant)
        self._keep_parts()
        bounds = snapshot.bounds
        self._plainly = self.profile.places and not (snapshot.reservations or self.quotas.limits or snapshot.window)
        self._plainly &= not (bounds.in_turn or bounds.limited_stop or bounds.busy_nodes)

    def _keep_parts(self) -> None:
        """Lay on the profile what reservations of cores and of licences leave to others."""
        resources, profile = self.compiler.resources, self.profile
        for name, reservation in self.reserved.by_name.items():
            counted = np.zeros(len(self.totals), dtype=np.int64)
            for license_name, amount in reservation.licenses:
                column = self.compiler.license_column.get(license_beside(license_name, reservation))
                if column is not None:
                    counted[column] = amount
            parts = self.reserved.parts.get(name)
            for start, end in self.reserved.windows[name]:
                first, last = profile.at(max(start, self.now)), profile.at(end)
                if counted.any():
                    profile.take_licenses(first, last, counted)
                if parts is None:
                    continue
                nodes = parts.nonzero()[0]
                amounts = np.zeros((len(resources.capacity), len(nodes)), dtype=np.int32)
                amounts[resources.left[name]] = PLENTY - resources.capacity[CPUS, nodes] + parts[nodes]
                profile.take_shares(first, last, nodes, amounts)

    # ------------------------------------------------------------------------------------------ what runs

    def hold(self, row: RunningRow) -> None:
        """Lay a running job on the profile."""
        held = self._held(row)
        first, last = self.profile.at(self.now), self.profile.at(held.end)
        if held.bits is not None:
            self.profile.take_whole(first, last, held.bits, held.nodes)
        elif held.amounts is not None and len(held.nodes):
            self.profile.take_shares(first, last, held.nodes, held.amounts)
        if held.counted.any():
            self.profile.take_licenses(first, last, held.counted)
        self.held[row.job_id] = held
        self.busy[held.nodes] = True

    def _held(self, row: RunningRow) -> Held:
        position, resources = self.compiler.position, self.compiler.resources
        end = max(row.end_time, self.now + 1)
        counted = self.quotas.held(row)
        for name, amount in row.licenses:
            for column in self.compiler.license_columns(name, row.allocation.reservation):
                counted[column] += amount
        shares = [(position[share.node], share) for share in row.allocation.shares if share.node in position]
        shares.sort(key=lambda pair: pair[0])
        nodes = np.array([node for node, _ in shares], dtype=np.int64)
        if row.allocation.whole_nodes:
            mask = np.zeros(len(self.available), dtype=np.bool_)
            mask[nodes] = True
            return Held(end, pack(mask), nodes, None, counted, row.allocation)
        amounts = np.zeros((len(resources.capacity), len(nodes)), dtype=np.int32)
        for column, (_, share) in enumerate(shares):
            amounts[CPUS, column], amounts[MEMORY, column] = share.cpus, share.memory
            for gres in share.gres:
                rows = resources.gres.get(f"{gres.name}:{gres.type}" if gres.type else gres.name, ())
                if rows:
                    amounts[rows[-1], column] += gres.count
        resources.charge_sharing(amounts, nodes)
        for index in self.compiler.cpu_rows(row.allocation.partition, row.allocation.reservation):
            amounts[index] = amounts[CPUS]
        if resources.jobs is not None:
            amounts[resources.jobs] = 1
        partition = self.partitions.get(row.allocation.partition)
        shared_row = None if partition is None else self.compiler.shared_row(partition, row.oversubscribe, False)
        if shared_row is not None:
            amounts[shared_row], amounts[CPUS] = amounts[CPUS].copy(), 0
        elif resources.ordinary is not None:
            amounts[resources.ordinary] = 1
        for user, index in resources.others.items():
            amounts[index if user != row.user_id else resources.owners[user]] = int(
                user != row.user_id or row.share_user == user
            )
        return Held(end, None, nodes, amounts, counted, row.allocation)

    def release(self, job_id: int) -> bool:
        """A running job is gone: give back what it would have held from now on. False when that is nothing."""
        held = self.held.pop(job_id)
        if held.allocation is not None:
            self.inventory.release(held.allocation)
        if held.end <= self.now:
            return True
        self.bounds.forget()
        first, last = self.profile.at(self.now), self.profile.at(held.end)
        if held.bits is not None:
            self.profile.give_whole(first, last, held.bits)
        elif held.amounts is not None and len(held.nodes):
            self.profile.give_shares(first, last, held.nodes, held.amounts)
        if held.counted.any():
            self.profile.take_licenses(first, last, -held.counted)
        return True

    def change_quotas(self, more: IntArray) -> bool:
        """So much more (or less) is left of each quota's limit than was; true if it is more of any."""
        if not more.any():
            return False
        first, profile = self.quotas.first, self.profile
        profile.licenses[first:, : profile.count] += more[:, None]
        if (more > 0).any():
            self.bounds.forget()
        return bool((more > 0).any())

    def adopt(self, row: RunningRow, booking: Booking) -> None:
        """A start of this forecast runs now: it is on the profile already."""
        placement = booking.placement
        bits = self._bits(placement) if placement.amounts is None else None
        self.held[row.job_id] = Held(booking.end, bits, placement.nodes, placement.amounts, booking.counted, row.allocation)

    # ------------------------------------------------------------------------------------------ the queue

    def book_all(self, rows: Iterable[PendingRow]) -> None:
        """Give each record, in the order given, its start or its reason."""
        for row in rows:
            self.book_next(row)

    def book_next(self, row: PendingRow) -> None:
        """Give the record that is next in the queue its start or its reason."""
        attention = self.attention
        if not attention.bounded:
            self.decide(row)
        elif not attention.looks_at(row, len(self.starts)):
            self._pass_over(row)
            return
        elif row.held_reason is Reason.NONE and not row.component_of and not attention.reserves(row):
            self._only_start(row)
        else:
            self.decide(row)
        if attention.bounded and row.job_id in self.promised:
            attention.note(row)
        if self.snapshot.preemption is not None and row.job_id in self.outlooks:
            make_room(self, row)

    def _pass_over(self, row: PendingRow) -> None:
        """The record is not looked at in this plan."""
        self.rows[row.job_id] = row
        reason = Reason.PRIORITY if row.held_reason is Reason.NONE else row.held_reason
        self.outlooks[row.job_id] = Outlook(reason, partition=row.partitions[0] if row.partitions else "")

    def _only_start(self, row: PendingRow) -> None:
        """Start of the record what can start now, and promise the rest nothing."""
        self.rows[row.job_id] = row
        needs, refusal = self.needs(row)
        left = self.start_some(row) if needs else row
        if left is not None:
            self.outlooks[row.job_id] = self._outlook(left, needs, None) if needs else refusal

    def decide(self, row: PendingRow) -> None:
        """Book one record: what of it can start now is started, the rest is promised a start or told a reason."""
        if row.component_of:
            if row.job_id not in self.rows:
                self._decide_together(row.component_of)
            return
        self.rows[row.job_id] = row
        if row.held_reason is not Reason.NONE:
            self.outlooks[row.job_id] = Outlook(row.held_reason, partition=row.partitions[0] if row.partitions else "")
            return
        needs, refusal = self.needs(row)
        if not needs:
            self.outlooks[row.job_id] = refusal
            return
        row = self.within_array(row)
        if self._plainly and self._is_plain(row, needs):
            self._decide_plain(row, needs)
            return
        promised = self.promised.pop(row.job_id, [])
        first = promised[0] if promised else None
        for _ in range(min(row.startable, row.count) - len(promised)):
            booking = self.find(row, needs) if len(promised) < self.snapshot.bounds.array_reservations else None
            if booking is None:
                break
            if booking.start <= self.now:
                self.start(row, booking)
                continue
            first = first or booking
            if self.beyond(booking) or not self._may_promise(row, len(promised)):
                break
            self.book(booking)
            promised.append(booking)
        else:
            if first is None and row.startable >= row.count:
                self.outlooks.pop(row.job_id, None)
                return
        if promised:
            self.promised[row.job_id] = promised
            if self.snapshot.bounds.in_turn and row.eligible_time <= self.now:
                self._let_none_pass(row, promised[-1].start)
        self.outlooks[row.job_id] = self._outlook(row, needs, first)

    def within_array(self, row: PendingRow) -> PendingRow:
        """The record with no more to start than what its array's limit leaves beside those of its records that start."""
        if not row.array:
            return row
        self._array_records.setdefault(row.array, {})[row.job_id] = None
        room = row.array_room - self.array_taken[row.array]
        return row if room >= row.startable else replace(row, startable=max(0, room))

    def _may_promise(self, row: PendingRow, own: int) -> bool:
        """Whether its array's limit lets a start be kept free for the record, for which ``own`` are kept already."""
        if not row.array:
            return True
        room = row.array_room - self.array_taken[row.array] - own
        for other in self._array_records[row.array]:
            if room <= 0:
                break
            room -= len(self.promised.get(other, ())) if other != row.job_id else 0
        return room > 0

    def _let_none_pass(self, row: PendingRow, start: int) -> None:
        """Nobody later in the queue of the record's partitions starts before this."""
        for name in row.partitions:
            self.not_before[name] = max(self.not_before.get(name, 0), start)

    def _begin(self, row: PendingRow, need: Requirement) -> int:
        """The first moment at which the record may start, were there room."""
        return max(self.now, row.eligible_time, self.not_before.get(need.partition.name, 0))

    def _is_plain(self, row: PendingRow, needs: list[Requirement]) -> bool:
        """Whether whole nodes at any time, as early as can be, are all that matters to the record."""
        need = needs[0]
        return (
            need.whole
            and len(needs) == 1
            and row.count == row.startable == 1
            and not row.array
            and row.deadline is None
            and row.time_minimum is None
            and row.eligible_time <= self.now
            and need.comparable
            and not need.wants_licenses
            and row.job_id not in self.promised
            and self.placer.plain(need)
        )

    def _decide_plain(self, row: PendingRow, needs: list[Requirement]) -> None:
        """What ``decide`` does, for such a record, in one step of the profile."""
        need = needs[0]
        limit = min(row.time_limit, need.partition.maximum_time or row.time_limit)
        earliest = max(self.now, self.bounds.earliest(need.size_class, need.size, limit))
        found = self.profile.book_whole(need, earliest, limit)
        booking = None
        if found is not None:
            start, placement = found
            self.bounds.note(need.size_class, need.size, limit, start)
            booking = Booking(start, start + limit, limit, need, placement, self._licenses(need))
            if start <= self.now:
                self._start_booked(row, booking)
                self.outlooks.pop(row.job_id, None)
                return
            self.promised[row.job_id] = [booking]
        self.outlooks[row.job_id] = self._outlook(row, needs, booking)

    def start(self, row: PendingRow, booking: Booking) -> None:
        """The job, or one element of the array, starts now."""
        self.book(booking)
        self._start_booked(row, booking)

    def _start_booked(self, row: PendingRow, booking: Booking) -> None:
        start = Start(row.job_id, self.inventory.allocate(booking.need, booking.placement), booking.limit)
        self.busy[booking.placement.nodes] = True
        if row.array:
            self.array_taken[row.array] += 1
        self.starts.append(start)
        self.started.append((start, booking))

    def start_some(self, row: PendingRow) -> PendingRow | None:
        """Start the record, or as many elements of the array as may start now; what is left of it."""
        needs, _ = self.needs(row)
        row = self.within_array(row)
        while row.startable > 0:
            booking = self.find(row, needs, latest=self.now)
            if booking is None:
                break
            self.start(row, booking)
            row = replace(row, count=row.count - 1, startable=row.startable - 1)
        return row if row.count else None

    def keep(self, row: PendingRow, start: int) -> None:
        """Book a record (one element of an array) at the start that it had in an earlier plan, or at the first one after it
        that is possible."""
        needs, refusal = self.needs(row)
        self.rows[row.job_id] = row
        if not needs:
            self.outlooks[row.job_id] = refusal
            return
        row = self.within_array(row)
        if not row.startable:
            self.decide(row)
            return
        booking = self._as_planned(row, needs, start)
        if booking is None:
            booking = self.find(replace(row, eligible_time=max(row.eligible_time, start)), needs)
        if booking is not None and booking.start <= self.now:
            self.start(row, booking)
            if row.count > 1:
                self.decide(replace(row, count=row.count - 1, startable=row.startable - 1))
            return
        if booking is not None and not self.beyond(booking) and self._may_promise(row, 0):
            self.book(booking)
            self.promised[row.job_id] = [booking]
        self.outlooks[row.job_id] = self._outlook(row, needs, booking)

    def _as_planned(self, row: PendingRow, needs: list[Requirement], start: int) -> Booking | None:
        """The very booking of the last plan, on the same nodes with the same tasks, if that is possible still."""
        nodes = np.array([self.compiler.position.get(name, -1) for name in row.planned_nodes], dtype=np.int64)
        tasks = np.array(row.planned_tasks, dtype=np.int64)
        if row.eligible_time > start or not len(nodes) or len(tasks) != len(nodes) or nodes.min() < 0:
            return None
        mask = np.zeros(len(self.available), dtype=np.bool_)
        mask[nodes] = True
        profile, bits = self.profile, pack(mask)
        first = profile.at(max(start, self.now))
        for need in needs:
            limit = min(row.time_limit, need.partition.maximum_time or row.time_limit)
            last = profile.end(first, limit)
            open_ = profile.idle_bits(first, last) if need.whole else profile.shareable_bits(first, last)
            booking = self._check(row, need, first, last, bits & need.bits & open_, limit)
            if booking is None or need.whole or np.array_equal(booking.placement.tasks, tasks):
                if booking is not None:
                    return booking
                continue
            free = profile.least_free(first, last, nodes)
            if (self.compiler.tasks_on(need, free, nodes) >= tasks).all():
                return replace(booking, placement=self.placer.hold(need, nodes, tasks, free))
        return None

    def _decide_together(self, het_job_id: int) -> None:
        """Book the components of a het job at one moment: all of them start, are promised the same start, or wait."""
        members = self._components()[het_job_id]
        needs: dict[int, list[Requirement]] = {}
        refusal: Outlook | None = None
        held: dict[int, Outlook] = {}
        for row in members:
            self.withdraw(row.job_id)
            self.rows[row.job_id] = row
            partition = row.partitions[0] if row.partitions else ""
            needs[row.job_id], never = self.needs(row)
            if row.held_reason is not Reason.NONE:
                held[row.job_id] = Outlook(row.held_reason, partition=partition)
            elif not needs[row.job_id]:
                refusal = refusal or never
        if held and refusal is None:  # what others of them wait for is not told of one that is ready
            refusal = Outlook(Reason.NONE)
            held |= {row.job_id: Outlook(Reason.BEGIN_TIME) for row in members if row.eligible_time > self.now} | held
        bookings = self._book_together(members, needs) if refusal is None else []
        for row in members:
            booking = bookings.pop(0) if bookings else None
            if refusal is not None:
                self.outlooks[row.job_id] = held.get(row.job_id, refusal)
            elif booking is not None and booking.start <= self.now:
                self._start_booked(row, booking)
            else:
                if booking is not None:
                    self.promised[row.job_id] = [booking]
                self.outlooks[row.job_id] = self._outlook(row, needs[row.job_id], booking)

    def try_together(self, changed: PendingRow) -> list[Booking]:
        """What the components of a het job would get if one of them were ``changed``, whose booking comes first; none when they
        cannot start together. Nothing stays booked."""
        members = [changed if row.job_id == changed.job_id else row for row in self._components()[changed.component_of]]
        needs = {row.job_id: self.needs(row)[0] for row in members}
        bookings = self._book_together(members, needs) if all(needs.values()) else []
        for booking in bookings:
            self.give_back(booking, self.now)
        own = {id(need) for need in needs[changed.job_id]}
        return sorted(bookings, key=lambda booking: id(booking.need) not in own)

    def _components(self) -> dict[int, list[PendingRow]]:
        """The waiting components of each het job, in their order."""
        if self._het_jobs[0] is not self.snapshot:
            found: dict[int, list[PendingRow]] = {}
            for row in sorted(self.snapshot.pending, key=lambda row: row.job_id):
                if row.component_of:
                    found.setdefault(row.component_of, []).append(row)
            self._het_jobs = self.snapshot, found
        return self._het_jobs[1]

    def _book_together(self, members: list[PendingRow], needs: dict[int, list[Requirement]]) -> list[Booking]:
        """One booking for each row, all with the same start; empty when there is no such start or it is too far away.

        No two components have a node in common, as in Slurm. A component that can only start later moves the moment of all:
        they are booked anew from there on.
        """
        moment = self.now
        for _ in range(TOGETHER):
            bookings: list[Booking] = []
            for row in members:
                later = replace(row, eligible_time=max(row.eligible_time, moment))
                booking = self._find_apart(later, needs[row.job_id], bookings)
                if booking is None or self.beyond(booking):
                    break
                self.book(booking)
                bookings.append(booking)
            latest = max((booking.start for booking in bookings), default=moment)
            if len(bookings) == len(members) and all(booking.start == latest for booking in bookings):
                return bookings
            for booking in bookings:
                self.give_back(booking, self.now)
            if len(bookings) < len(members):
                return []
            moment = latest
        return []

    def _find_apart(self, row: PendingRow, needs: list[Requirement], others: list[Booking]) -> Booking | None:
        """The earliest start on nodes that none of ``others`` has."""
        if not others:
            return self.find(row, needs)
        free = np.ones(len(self.available), dtype=np.bool_)
        for other in others:
            free[other.placement.nodes] = False
        bits = pack(free)
        apart = [replace(need, bits=need.bits & bits, comparable=False) for need in needs]
        booking = self.find(row, apart)
        if booking is not None:
            booking.need = next(need for need, narrowed in zip(needs, apart, strict=True) if narrowed is booking.need)
        return booking

    def beyond(self, booking: Booking) -> bool:
        """Whether it is so far ahead that nothing is promised (bf_window)."""
        return self.snapshot.window > 0 and booking.start > self.now + self.snapshot.window

    def needs(self, row: PendingRow) -> tuple[list[Requirement], Outlook]:
        """What the record needs, one way after another that could do, or the reason why none ever can."""
        if not self.wanted():
            raise Abandoned
        refusal = Outlook(Reason.PARTITION_CONFIG)
        found: list[Requirement] = []
        impossible: list[Requirement] = []
        for name in row.partitions:
            partition = self.partitions.get(name)
            if partition is None:
                continue
            reason = partition_reason(row, partition, self.snapshot.nodes)
            if reason is not Reason.NONE:
                refusal = Outlook(reason, partition=name)
                continue
            for reservation in _reservations(row):
                for need in self.compiler.requirements(row.demand, partition, row.user_id, reservation):
                    (found if self.possible(need) else impossible).append(need)
            if not found and self._waits_for_others(row, partition):
                refusal = Outlook(Reason.RESOURCES, partition=name)
            elif not found:
                refusal = why_never(row, impossible, self.snapshot)
        return found, refusal

    def impossible(self, row: PendingRow) -> list[Requirement]:
        """The ways to run the record in partitions that let it in, none of which fits even if no job were there."""
        open_ = [name for name in row.partitions if name in self.partitions]
        nodes = self.snapshot.nodes
        found = [self.partitions[name] for name in open_ if partition_reason(row, self.partitions[name], nodes) is Reason.NONE]
        return [
            need
            for partition in found
            for reservation in _reservations(row)
            for need in self.compiler.requirements(row.demand, partition, row.user_id, reservation)
        ]

    def possible(self, need: Requirement) -> bool:
        """Whether it would fit the cluster's available nodes if no job were there."""
        if need.possible is None:
            need.possible = _is_possible(need, self.compiler, self.placer)
        return need.possible or self.compiler.avoided is not None  # of a node that changed nothing is known

    def avoid(self, nodes: BoolArray) -> None:
        """Place nothing more on these nodes, which are others now than the snapshot said that this was made of."""
        self.compiler.avoid(pack(nodes))

    def _waits_for_others(self, row: PendingRow, partition: PartitionRow) -> bool:
        """Whether only what others than slurmk hold is in the way. Nobody knows when they end, so no start is promised."""
        if self._undisturbed is None:
            undisturbed = without_others(self.snapshot)
            if undisturbed is None:
                return False
            pools, pool_of = _pools(undisturbed)
            compiler = Compiler(undisturbed, resources_of(undisturbed), pools, pool_of)
            self._undisturbed = compiler, Placer(undisturbed, compiler)
        compiler, placer = self._undisturbed
        for reservation in _reservations(row):
            needs = compiler.requirements(row.demand, partition, row.user_id, reservation)
            if any(_is_possible(need, compiler, placer) for need in needs):
                return True
        return False

    def find(self, row: PendingRow, needs: list[Requirement], latest: int = FOREVER) -> Booking | None:
        """The earliest start, over all ways to run it; the first way among equals. None: not by ``latest``."""
        best: Booking | None = None
        for need in needs:
            limit = row.time_limit
            if need.partition.maximum_time is not None:
                limit = min(limit, need.partition.maximum_time)
            booking = self._search(row, need, limit, latest)
            if row.time_minimum is not None and row.time_minimum < limit and (booking is None or booking.start > self.now):
                shorter = self._search(row, need, row.time_minimum, latest)
                if shorter is not None and (booking is None or shorter.start < booking.start):
                    booking = self._longest(row, shorter, limit)
            if booking is not None and (best is None or booking.start < best.start):
                best = booking
                latest = booking.start - 1
        return best

    def _longest(self, row: PendingRow, booking: Booking, limit: int) -> Booking:
        """The same start with as much of the time limit as is free there."""
        profile = self.profile
        first = profile.at(booking.start)
        ends = profile.times[first + 1 : profile.count] - booking.start
        latest = limit if row.deadline is None else min(limit, row.deadline - booking.start)
        limits = sorted({latest, *(int(end) for end in ends if booking.limit < end < latest)})
        low, high = 0, len(limits)
        while low < high:
            middle = (low + high) // 2
            longer = self._look(row, booking.need, first, limits[middle])
            if longer is None:
                high = middle
            else:
                booking, low = longer, middle + 1
        return booking

    def _look(self, row: PendingRow, need: Requirement, first: int, limit: int) -> Booking | None:
        profile = self.profile
        last = profile.end(first, limit)
        bits = profile.idle_bits(first, last) if need.whole else profile.shareable_bits(first, last)
        bits &= need.bits
        return self._check(row, need, first, last, bits, limit)

    def _search(self, row: PendingRow, need: Requirement, limit: int, latest: int) -> Booking | None:
        profile = self.profile
        begin = self._begin(row, need)
        if begin >= FOREVER:
            return None
        bound = begin
        if need.demand.switches and self._patience(row, need) > begin:
            profile.at(self._patience(row, need))
        charge = self.quotas.charge(row, need)
        if charge is not None and self.quotas.never(charge):
            return None
        if need.reservation and not self.reserved.stays_open(need.reservation):
            return self._search_reserved(row, need, limit, latest)
        size_class = need.size_class if charge is None else charge.size_class
        comparable = begin == self.now and need.comparable and row.deadline is None and not need.reservation
        comparable &= row.leaves_within is None
        comparable &= charge is None or charge.uniform
        if comparable:
            bound = max(begin, self.bounds.earliest(size_class, need.size, limit))
        if row.deadline is not None:
            latest = min(latest, row.deadline - limit)
        first = int(profile.times[: profile.count].searchsorted(bound))
        if bound > self.now and (first == profile.count or profile.times[first] != bound):
            first = profile.at(bound)
        end = int(profile.times[: profile.count].searchsorted(latest, side="right"))
        stretches = [(first, end)] if charge is None else self.quotas.stretches(profile, charge, first, end, limit)
        starts = chain.from_iterable(profile.starts(need, low, high, limit) for low, high in stretches)
        for index, last, bits in starts:
            booking = self._check(row, need, index, last, bits, limit)
            if booking is not None:
                if comparable:
                    self.bounds.note(size_class, need.size, limit, booking.start)
                return booking
        return None

    def _search_reserved(self, row: PendingRow, need: Requirement, limit: int, latest: int) -> Booking | None:
        """The earliest start within the windows of the job's reservation, whose end is the job's end too."""
        begin = self._begin(row, need)
        if row.deadline is not None:
            latest = min(latest, row.deadline - limit)
        profile = self.profile
        for opens, closes in self.reserved.windows[need.reservation]:
            if closes <= begin:
                continue
            index = profile.at(max(begin, opens))
            while index < profile.count and profile.times[index] < min(closes, latest + 1):
                held = min(limit, closes + self.reserved.overrun - int(profile.times[index]))
                booking = self._look(row, need, index, held)
                if booking is not None:
                    booking.limit = limit
                    return booking
                index += 1
        return None

    def _check(self, row: PendingRow, need: Requirement, first: int, last: int, bits: Bits, limit: int) -> Booking | None:
        """Whether the job can start with this segment, where ``bits`` are the usable nodes that stay open: the exact look."""
        profile = self.profile
        start = int(profile.times[first])
        if need.wants_licenses and (profile.least_licenses(first, last)[: len(need.licenses)] < need.licenses).any():
            return None
        if self.snapshot.reservations:
            kept = self.reserved.blocked(need.reservation, start, start + limit, row.leaves_within)
            if kept is not None:
                bits &= ~kept
        charge = self.quotas.charge(row, need)
        onto_busy = self.snapshot.bounds.busy_nodes and start > self.now
        if profile.places and not onto_busy and self.placer.plain(need):
            quick = profile.place(need, first, last, bits)
            if quick is not None:
                counted = self._licenses(need)
                if charge is None:
                    return Booking(start, start + limit, limit, need, quick, counted)
                used = self.quotas.used(charge, need, quick)
                if (used <= profile.licenses[charge.columns, first:last].min(axis=1)).all():
                    counted = counted.copy()
                    counted[charge.columns] = used
                    return Booking(start, start + limit, limit, need, quick, counted)
        if int(np.bitwise_count(bits).sum()) < need.needed_nodes:
            return None
        nodes = rows_of(bits)
        free = None
        if need.whole:
            tasks = need.static_tasks[nodes]
        else:
            free = self.compiler.seen_by(need, profile.least_free(first, last, nodes), nodes)
            if self.compiler.resources.sharing is not None and takes_gres(need):
                free = self._inventory_at(start).narrowed(free, nodes)
            tasks = self.compiler.tasks_on(need, free, nodes)
            usable = tasks.nonzero()[0]
            if len(usable) < need.minimum_nodes:
                return None
            if len(usable) < len(nodes):
                nodes, tasks, free = nodes[usable], tasks[usable], free[:, usable]
            if int(tasks.sum()) < need.tasks:
                return None
        placement = self._place_on_busy(need, nodes, tasks, free) if onto_busy else None
        if placement is None:
            placement = self.placer.place(need, nodes, tasks, free)
        if placement is not None and not self._switches_suffice(row, need, placement, start):
            placement = self._below_few(row, need, (nodes, tasks, free), start)
        counted = self._licenses(need)
        if charge is not None and placement is not None:
            left = profile.licenses[charge.columns, first:last].min(axis=1)
            placement, used = self._within_quota(charge, need, placement, (nodes, tasks, free), left)
            counted = self.quotas.counted(charge, used)
            counted[: len(need.licenses)] = need.licenses
        if placement is None or not self._switches_suffice(row, need, placement, start):
            return None
        return Booking(start, start + limit, limit, need, placement, counted)

    def _inventory_at(self, start: int) -> Inventory:
        """The devices in use at a time, of the jobs that run or start now; nobody knows those of jobs that start later."""
        if start <= self.now:
            return self.inventory
        held = [each.allocation for each in self.held.values() if each.allocation is not None and each.end > start]
        held += [begun.allocation for begun, booking in self.started if booking.end > start]
        inventory = Inventory(self.snapshot.nodes, self.compiler.resources, ())
        for allocation in held:
            inventory.hold(allocation)
        return inventory

    def _place_on_busy(self, need: Requirement, nodes: IntArray, tasks: IntArray, free: Counts | None) -> Placement | None:
        """A placement on nodes that are in use now, so that idle ones stay free; None when they are too few."""
        busy = self.busy[nodes]
        if int(busy.sum()) < need.needed_nodes:
            return None
        return self.placer.place(need, nodes[busy], tasks[busy], None if free is None else free[:, busy])

    def _licenses(self, need: Requirement) -> IntArray:
        """What it takes of licences, with nothing of the limits that are counted beside them."""
        counted = need.licenses
        if len(counted) < len(self.totals):
            counted = np.concatenate((counted, np.zeros(len(self.totals) - len(counted), dtype=np.int64)))
        return counted

    def _within_quota(
        self,
        charge: Charge,
        need: Requirement,
        placement: Placement,
        usable: tuple[IntArray, IntArray, Counts | None],
        left: IntArray,
    ) -> tuple[Placement | None, IntArray]:
        """The placement, or one on fewer or smaller of the usable nodes when it would use more than is ``left`` of the
        limits, and what it uses of them; None when even that is too much."""
        used = self.quotas.used(charge, need, placement)
        if (used <= left).all():
            return placement, used
        nodes, tasks, free = usable
        chosen = self.quotas.cheapest(charge, need, nodes, tasks, left)
        smaller = self.placer.place(need, nodes[chosen], tasks[chosen], None if free is None else free[:, chosen])
        if smaller is None:
            return None, used
        used = self.quotas.used(charge, need, smaller)
        return smaller if (used <= left).all() else None, used

    def _switches_suffice(self, row: PendingRow, need: Requirement, placement: Placement, start: int) -> bool:
        wanted = need.demand.switches
        if not wanted or not self.placer.topology.levels or start >= self._patience(row, need):
            return True
        return len(np.unique(self.placer.topology.leaves(placement.nodes))) <= wanted

    def _below_few(
        self, row: PendingRow, need: Requirement, usable: tuple[IntArray, IntArray, Counts | None], start: int
    ) -> Placement | None:
        """A placement below as few leaf switches as are asked for; None when there is none."""
        nodes, tasks, free = usable
        for mask in self.placer.topology.narrower(nodes, tasks, need.demand.switches or 1):
            if int(mask.sum()) >= need.needed_nodes:
                found = self.placer.place(need, nodes[mask], tasks[mask], None if free is None else free[:, mask])
                if found is not None and self._switches_suffice(row, need, found, start):
                    return found
        return None

    def _patience(self, row: PendingRow, need: Requirement) -> int:
        """From when on any number of leaf switches will do."""
        return row.submit_time + (need.demand.switch_wait or self.snapshot.bounds.switch_wait)

    def book(self, booking: Booking) -> None:
        """Take what the booking holds off the profile."""
        profile, placement = self.profile, booking.placement
        first = profile.at(booking.start)
        last = profile.at(booking.end)
        if placement.amounts is None:
            profile.take_whole(first, last, self._bits(placement), placement.nodes)
        else:
            profile.take_shares(first, last, placement.nodes, placement.amounts)
        if booking.counted.any():
            profile.take_licenses(first, last, booking.counted)

    def give_back(self, booking: Booking, since: int) -> None:
        """Undo ``book`` from ``since`` on."""
        if booking.end <= since:
            return
        self.bounds.forget()
        profile, placement = self.profile, booking.placement
        first, last = profile.at(max(booking.start, since)), profile.at(booking.end)
        if placement.amounts is None:
            profile.give_whole(first, last, self._bits(placement))
        else:
            profile.give_shares(first, last, placement.nodes, placement.amounts)
        if booking.counted.any():
            profile.take_licenses(first, last, -booking.counted)

    def withdraw(self, job_id: int) -> bool:
        """Take back what was promised to a record; false when that was nothing."""
        self.rows.pop(job_id, None)
        self.outlooks.pop(job_id, None)
        bookings = self.promised.pop(job_id, [])
        for booking in bookings:
            self.give_back(booking, self.now)
        return bool(bookings)

    def keep_elements(self, row: PendingRow, count: int) -> bool:
        """The record has other counts now: keep promises to as many elements of it; false when none is left or needed."""
        self.rows[row.job_id] = row
        bookings = self.promised.get(row.job_id, [])
        while len(bookings) > count:
            self.give_back(bookings.pop(), self.now)
        if not bookings:
            self.promised.pop(row.job_id, None)
        return bool(bookings) or row.held_reason is not Reason.NONE

    def may_fit_now(self, booking: Booking, index: int) -> bool:
        """Whether enough is free at this moment, which is segment ``index``; not whether it stays so long enough."""
        need, profile = booking.need, self.profile
        if need.whole:
            if profile.idle[need.pool, index] < need.needed_nodes:
                return False
        elif profile.cpus[need.pool, index] < need.needed_cpus:
            return False
        return not (len(booking.counted) and (profile.licenses[:, index] < booking.counted).any())

    def fits_now(self, row: PendingRow) -> bool:
        """Whether the record could start now beside everything that is booked."""
        return self.find(row, self.needs(row)[0], latest=self.now) is not None

    def promise_again(self, row: PendingRow, bookings: list[Booking]) -> None:
        """Book what was withdrawn a moment ago."""
        needs, _ = self.needs(row)
        for booking in bookings:
            self.book(booking)
        self.rows[row.job_id], self.promised[row.job_id] = row, bookings
        self.outlooks[row.job_id] = self._outlook(row, needs, bookings[0])

    def promise_to(self, row: PendingRow) -> None:
        """Tell the record what it is promised."""
        self.outlooks[row.job_id] = replace(self.outlooks[row.job_id], promised=self.promises[row.job_id])

    def _bits(self, placement: Placement) -> Bits:
        mask = np.zeros(len(self.available), dtype=np.bool_)
        mask[placement.nodes] = True
        return pack(mask)

    # ------------------------------------------------------------------------------------------ what is told

    def _outlook(self, row: PendingRow, needs: list[Requirement], booking: Booking | None) -> Outlook:
        need = needs[0] if booking is None else booking.need
        told = self._quota_reason(row, need, booking)
        if told is not None and self.snapshot.bounds.limited_stop:
            self._let_none_pass(row, FOREVER if booking is None else booking.start)
        told = told or self._reason(row, needs, booking)
        if booking is None or self.beyond(booking):
            return told
        nodes = NodeNames(self._names, booking.placement.nodes)
        told = Outlook(told.reason, booking.start, nodes, told.partition, told.description)
        if not self.snapshot.by_promises:
            return told
        tasks = tuple(booking.placement.tasks.tolist())
        return replace(told, tasks=tasks, promised=self.promises.get(row.job_id, row.promised))

    def _quota_reason(self, row: PendingRow, need: Requirement, booking: Booking | None) -> Outlook | None:
        charge = self.quotas.charge(row, need)
        if charge is None or row.eligible_time > self.now or row.startable < row.count:
            return None
        used = charge.least if booking is None else booking.counted[charge.columns]
        return self.quotas.outlook(charge, used, self.profile, self.profile.at(self.now), need.partition.name)

    def _reserved_reason(self, row: PendingRow, need: Requirement, booking: Booking | None) -> Outlook | None:
        """What a job is told that waits for its reservation, or for the end of others'."""
        if not self.snapshot.reservations or row.eligible_time > self.now:
            return None
        name = need.partition.name
        if need.reservation:
            waits = not self.reserved.stays_open(need.reservation) and not self.reserved.open_now(need.reservation, self.now)
            return Outlook(Reason.RESERVATION, partition=name) if waits else None
        limit = row.time_limit if booking is None else booking.limit
        return reserved_reason(need, self.reserved, self.now, self.now + limit, row.leaves_within)

    def _reason(self, row: PendingRow, needs: list[Requirement], booking: Booking | None) -> Outlook:
        need = needs[0] if booking is None else booking.need
        name = need.partition.name
        if row.eligible_time > self.now:
            return Outlook(Reason.BEGIN_TIME, partition=name)
        if booking is None and row.startable < row.count:
            return Outlook(Reason.JOB_ARRAY_TASK_LIMIT, partition=name)
        if booking is None and row.deadline is not None:
            return Outlook(Reason.DEADLINE, partition=name)
        if need.wants_licenses:
            free = self.profile.licenses[: len(need.licenses), self.profile.at(self.now)]
            if (free < need.licenses).any():
                return Outlook(Reason.LICENSES, partition=name)
        own = self._reserved_reason(row, need, booking)
        if own is not None and own.reason is Reason.RESERVATION:
            return own
        reason, description = self.blocking.reason(row, needs, own)
        return Outlook(reason, partition=name, description=description)

    def outlook_of(self, row: PendingRow) -> Outlook:
        """Book this record too and tell its outlook; one that starts now has its start time and nodes as well."""
        self.decide(row)
        for start in self.starts:
            if start.job_id == row.job_id:
                return Outlook(Reason.NONE, self.now, start.allocation.nodes, start.allocation.partition)
        return self.outlooks[row.job_id]

    def plan(self) -> Plan:
        """What was decided so far."""
        snapshot = self.snapshot
        return Plan(snapshot.snapshot_id, snapshot.time, tuple(self.starts), dict(self.outlooks), tuple(self.preempted))


def profile_of(snapshot: Snapshot) -> type[Profile]:
    """The compiled profile where a long queue makes it worth to load the compiler."""
    if len(snapshot.pending) < COMPILED_FROM:
        return Profile
    from slurmk.planner.compiled import CompiledProfile

    return CompiledProfile


def _pools(snapshot: Snapshot) -> tuple[list[BoolArray], dict[str, int]]:
    """The different sets of nodes that partitions have, less what is not available, and which set each partition has."""
    pools: list[BoolArray] = []
    pool_of: dict[str, int] = {}
    seen: dict[bytes, int] = {}
    for partition in snapshot.partitions:
        mask = np.zeros(len(snapshot.nodes.names), dtype=np.bool_)
        mask[partition.nodes] = True
        pool_of[partition.name] = seen.setdefault(mask.tobytes(), len(pools))
        if pool_of[partition.name] == len(pools):
            pools.append(mask)
    return pools, pool_of


def _reservations(row: PendingRow) -> tuple[str, ...]:
    """The reservations to try for a record, "" for none."""
    return (*row.reservations, "") if row.reservation_optional else row.reservations


def _is_possible(need: Requirement, compiler: Compiler, placer: Placer) -> bool:
    nodes = rows_of(need.bits)
    tasks = need.static_tasks[nodes]
    free = None if need.whole else compiler.seen_by(need, compiler.resources.capacity[:, nodes], nodes)
    return need.feasible and placer.place(need, nodes, tasks, free) is not None
