"""Making room: which running jobs give way, so that one that may preempt them starts now (slurm.conf(5), PreemptType).

A job is tried when its turn in the queue has come and it would have to wait: what those before it are promised is already
booked, so that nobody is preempted for a job that could not start then. One victim that suffices is better than several; of
those that suffice the cheapest are taken, and none that turns out not to be needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from slurmk.model.states import Reason
from slurmk.planner.snapshot import Outlook, PendingRow, Preempt, Preemption, RunningRow, Victim

if TYPE_CHECKING:
    from slurmk.planner.forecast import Booking, Forecast
    from slurmk.planner.requirement import Requirement

MOST_PREEMPTORS = 20
"""Jobs that room is made for in one plan."""

MOST_VICTIMS = 64
"""Running jobs that are looked at for one of them, the cheapest ones."""


def make_room(forecast: Forecast, row: PendingRow) -> None:
    """Name victims for a record that has to wait, if there are any that help."""
    choices = _choices(forecast, row)
    if not choices or len(forecast.preempted) >= MOST_PREEMPTORS:
        return
    before, told = list(forecast.promised.get(row.job_id, [])), forecast.outlooks.get(row.job_id)
    forecast.withdraw(row.job_id)
    for need, victims in choices:
        chosen, booking = _choose(forecast, row, need, victims)
        if booking is not None:
            _take(forecast, row, booking, chosen)
            return
    for booked in before:
        forecast.book(booked)
    forecast.rows[row.job_id] = row
    if before:
        forecast.promised[row.job_id] = before
    if told is not None:
        forecast.outlooks[row.job_id] = told


def _gives_way(rules: Preemption, victim: Victim, row: PendingRow, need: Requirement, allowed: frozenset[str]) -> bool:
    if need.reservation in victim.leaves:
        return True
    if victim.only_leaves:
        return False
    higher = row.priority > victim.priority
    if victim.only_by_higher and not higher:
        return False
    if rules.by_partition:
        return victim.tier < need.partition.priority_tier
    return victim.qos in allowed or (victim.within and victim.qos == row.qos and higher)


def _licensed(forecast: Forecast, need: Requirement) -> bool:
    """Whether the licences that it needs are free now."""
    free = forecast.profile.licenses[: len(need.licenses), forecast.profile.at(forecast.now)]
    return not need.wants_licenses or bool((free >= need.licenses).all())


def start_by_preemption(forecast: Forecast, row: PendingRow) -> Booking | None:
    """Where the record would start now if others gave way to it; the forecast stays as it is."""
    for need, victims in _choices(forecast, row):
        chosen, booking = _choose(forecast, row, need, victims)
        for victim in chosen:
            _put_back(forecast, victim)
        if booking is not None:
            return booking
    return None


def _choices(forecast: Forecast, row: PendingRow) -> list[tuple[Requirement, list[RunningRow]]]:
    """The ways to run a record that could have room made for them now, each with those who may give way."""
    rules = forecast.snapshot.preemption
    if rules is None or row.job_id in rules.served or row.component_of or row.held_reason is not Reason.NONE:
        return []
    if row.eligible_time > forecast.now or forecast.within_array(row).startable < 1:
        return []
    needs = [need for need in forecast.needs(row)[0] if rules.reclaims_licenses or _licensed(forecast, need)]
    choices = [(need, candidates(forecast, row, need)) for need in needs]
    return [(need, victims) for need, victims in choices if victims]


def candidates(forecast: Forecast, row: PendingRow, need: Requirement) -> list[RunningRow]:
    """Jobs that this one may preempt and whose nodes or licences it could use, cheapest first."""
    rules = forecast.snapshot.preemption
    assert rules is not None
    allowed = rules.preempts.get(row.qos, frozenset())
    position = forecast.compiler.position
    found: list[tuple[Victim, RunningRow]] = []
    for running in forecast.snapshot.running:
        victim = rules.victims.get(running.job_id)
        if victim is None or running.job_id not in forecast.held:
            continue
        if victim.exempt_until > forecast.now and need.reservation not in victim.leaves:
            continue
        lower = _gives_way(rules, victim, row, need, allowed)
        nodes = (position.get(name, -1) for name in running.allocation.nodes)
        helps = (running.licenses and need.wants_licenses) or any(node >= 0 and need.eligible[node] for node in nodes)
        if lower and helps:
            found.append((victim, running))

    def cheapness(pair: tuple[Victim, RunningRow]) -> tuple[int, ...]:
        victim, running = pair
        if rules.youngest_first:
            return -victim.start_time, victim.tier, victim.priority, running.job_id
        return victim.tier, victim.priority, -victim.start_time, running.job_id

    return [running for _, running in sorted(found, key=cheapness)[:MOST_VICTIMS]]


def _choose(
    forecast: Forecast, row: PendingRow, need: Requirement, victims: list[RunningRow]
) -> tuple[list[RunningRow], Booking | None]:
    """The victims to take, and where the job starts then; their resources are given back to the profile."""
    for victim in victims:
        _remove(forecast, victim)
        booking = forecast.find(row, [need], latest=forecast.now)
        if booking is not None:
            return [victim], booking
        _put_back(forecast, victim)
    chosen: list[RunningRow] = []
    booking = None
    for victim in victims:
        _remove(forecast, victim)
        chosen.append(victim)
        booking = forecast.find(row, [need], latest=forecast.now)
        if booking is not None:
            break
    if booking is None:
        for victim in chosen:
            _put_back(forecast, victim)
        return [], None
    for victim in reversed(chosen[:-1]):
        _put_back(forecast, victim)
        if forecast.find(row, [need], latest=forecast.now) is None:
            _remove(forecast, victim)
        else:
            chosen.remove(victim)
    return chosen, forecast.find(row, [need], latest=forecast.now)


def _take(forecast: Forecast, row: PendingRow, booking: Booking, victims: list[RunningRow]) -> None:
    forecast.book(booking)
    forecast.rows[row.job_id] = row
    forecast.promised[row.job_id] = [booking]
    if row.array:
        forecast.array_taken[row.array] += 1
    names = tuple(forecast.snapshot.nodes.names[node] for node in booking.placement.nodes.tolist())
    partition = booking.need.partition.name
    forecast.outlooks[row.job_id] = Outlook(Reason.RESOURCES, forecast.now, names, partition)
    forecast.preempted.append(Preempt(row.job_id, tuple(victim.job_id for victim in victims)))


def _remove(forecast: Forecast, victim: RunningRow) -> None:
    """The profile as it is when the victim has given way."""
    rules = forecast.snapshot.preemption
    assert rules is not None
    forecast.release(victim.job_id)
    if rules.victims[victim.job_id].suspends:
        stays = parked(victim, memory=rules.memory_stays)
        forecast.hold(stays)
        forecast.inventory.hold(stays.allocation)


def _put_back(forecast: Forecast, victim: RunningRow) -> None:
    if victim.job_id in forecast.held:
        forecast.release(victim.job_id)
    forecast.hold(victim)
    forecast.inventory.hold(victim.allocation)


def parked(row: RunningRow, *, memory: bool) -> RunningRow:
    """A job that is suspended for others: it keeps its memory, where that is counted, and its GRES, not its CPUs."""
    kept = [share for share in row.allocation.shares if share.gres or (memory and share.memory)]
    shares = tuple(replace(share, cpus=0, cpu_ids=()) for share in kept)
    return replace(row, allocation=replace(row.allocation, shares=shares, whole_nodes=False))
