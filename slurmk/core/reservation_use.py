"""Who may use a reservation, which jobs do, and whether a start leaves to all of them what they keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slurmk.core.demands import Refusal
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.priority import Directory
from slurmk.core.state import State
from slurmk.model.job import Allocation, Job
from slurmk.model.requested import leaves_within
from slurmk.model.reservation import (
    Access,
    Names,
    Reservation,
    ReservationFlag,
    ReservationRequest,
)
from slurmk.model.states import NO_VALUE
from slurmk.planner.reserved import may_share, windows_of

UNKNOWN_NAME = "Unspecified error"
"""What Slurm says of names in a new reservation that mean nothing."""

_ACCESS: tuple[tuple[str, Errno], ...] = (
    ("users", Errno.USER_ID_MISSING),
    ("groups", Errno.GROUP_ID_MISSING),
    ("accounts", Errno.INVALID_ACCOUNT),
    ("qos", Errno.INVALID_QOS),
    ("allowed_partitions", Errno.INVALID_PARTITION_NAME),
)
"""The lists of who may use a reservation, and what is wrong when a name of one is."""


def with_access(directory: Directory, reservation: Reservation, request: ReservationRequest) -> Reservation:
    for field, errno in _ACCESS:
        names: Names | None = getattr(request, field)
        if names is not None:
            access = _merged(getattr(reservation, field), names, errno)
            changes: dict[str, Any] = {field: access}
            reservation = replace(reservation, **changes)
    reservation = replace(reservation, group_ids=tuple(dict((*reservation.group_ids, *request.group_ids)).items()))
    if not any(getattr(reservation, field).names for field, _ in _ACCESS):
        raise SlurmError(Errno.RESERVATION_EMPTY)
    if reservation.users.names and reservation.groups.names:
        raise SlurmError(Errno.RESERVATION_USER_GROUP)
    _check_names(directory, reservation)
    return reservation


def _merged(access: Access, names: Names, errno: Errno) -> Access:
    """The list with a change: plain names replace it, "+" moves a name up and "-" down between denied, unsaid and allowed."""
    plain = [name for sign, name in names if not sign]
    signed = [(sign, name) for sign, name in names if sign]
    if plain or not names:
        if signed:
            raise SlurmError(Errno.INTERNAL, UNKNOWN_NAME)
        return Access(tuple(dict.fromkeys(plain)))
    for sign, name in signed:
        up = sign == "+"
        if access.names and access.denied == up:  # a list of the other kind
            if name not in access.names:
                raise SlurmError(errno)
            access = replace(access, names=tuple(other for other in access.names if other != name))
        else:
            access = Access((*(other for other in access.names if other != name), name), denied=not up)
    return access


def _check_names(directory: Directory, reservation: Reservation) -> None:
    accounts = directory.accounts
    if accounts is not None and reservation.accounts.names:
        known = {account for each in accounts.values() for account in each}
        if not known.issuperset(reservation.accounts.names):
            raise SlurmError(Errno.INVALID_ACCOUNT)
        users = reservation.users
        if users.names and not users.denied and not reservation.accounts.denied:
            theirs = {account for name in users.names for account in accounts.get(name, ())}
            if not theirs.intersection(reservation.accounts.names):
                raise SlurmError(Errno.INVALID_ACCOUNT)
    if any(name not in directory.qos for name in reservation.qos.names):
        raise SlurmError(Errno.INVALID_QOS)


def may_use(state: State, directory: Directory, reservation: Reservation, job: Job) -> bool:
    """Whether a job may run in the reservation."""
    credentials = job.credentials
    if credentials.user_id == 0:
        return True
    groups = {credentials.group_id, *credentials.groups}
    known = {**directory.groups, **dict(reservation.group_ids)}
    names = [name for name in reservation.groups.names if known.get(name) in groups]
    return (
        reservation.users.allows(credentials.user_name)
        and reservation.groups.allows(credentials.group_name, *names)
        and reservation.accounts.in_small_letters().allows(job.account.lower())
        and reservation.qos.allows(job.qos)
        and reservation.allowed_partitions.allows(*job.partitions)
    )


def check_use(state: State, directory: Directory, job: Job) -> None:
    """The reservations that a job names exist and let it in. Raises Refusal."""
    for name in names_of(job):
        reservation = state.reservations.get(name)
        if reservation is None:
            raise Refusal(Errno.RESERVATION_INVALID)
        if not may_use(state, directory, reservation, job):
            raise Refusal(Errno.RESERVATION_ACCESS)


def names_of(job: Job) -> tuple[str, ...]:
    """The reservations that a job asks for."""
    return tuple(filter(None, (job.request.reservation or "").split(",")))


def usable(state: State, directory: Directory, job: Job) -> tuple[tuple[str, ...], bool]:
    """The reservations that a waiting job may run in, and whether it may also run in none: it asked for none, and these are
    those that draw jobs (MAGNETIC)."""
    named = names_of(job)
    if named or not state.reservations:
        return tuple(name for name in named if name in state.reservations), not named
    drawing = (each for each in state.reservations.values() if each.flags & ReservationFlag.MAGNETIC)
    return tuple(each.name for each in drawing if may_use(state, directory, each, job)), True


def running_in(state: State, name: str) -> list[Job]:
    jobs = (state.jobs[job_id] for job_id in state.holding)
    return [job for job in jobs if job.allocation is not None and job.allocation.reservation == name]


def jobs_of(state: State, name: str) -> list[Job]:
    """Jobs that run in a reservation or ask for it."""
    waiting = (state.jobs[job_id] for job_id in state.pending)
    return [*running_in(state, name), *(job for job in waiting if name in names_of(job))]


def overrun(state: State) -> int:
    """ResvOverRun in seconds: how long jobs may go on when their reservation has ended."""
    text = (state.site.parameters.get("ResvOverRun") or "0").split()[0]
    if text.upper() in ("UNLIMITED", "INFINITE"):
        return 365 * 86400
    return int(text) * 60 if text.isdigit() else 0


def within_reservations(state: State, job: Job, allocation: Allocation, now: int) -> bool:
    """True when a job that starts now on this allocation leaves to every reservation what that keeps from it."""
    own = state.reservations.get(allocation.reservation)
    if allocation.reservation and (own is None or not (own.flags & ReservationFlag.FLEX or own.active(now))):
        return False
    ending = now + (job.time_limit * 60 if job.time_limit < NO_VALUE else 365 * 86400)
    if own is not None and not own.flags & ReservationFlag.FLEX:
        ending = min(ending, own.end_time + overrun(state))
    for other in state.reservations.values():
        kept = {share.node: share.cpus for share in other.cores}
        shares = [share for share in allocation.shares if share.node in other.nodes]
        if not shares or may_share(own, other, leaves_within(job.request, state.site.preempt_type)):
            continue
        if not any(start < ending and end > now for start, end in windows_of(other, now)):
            continue
        for share in shares:
            if (
                not kept
                or _used_beside(state, share.node, other) + share.cpus > state.nodes[share.node].cpus - kept[share.node]
            ):
                return False
    return True


def _used_beside(state: State, node: str, reservation: Reservation) -> int:
    """CPUs of a node that jobs of other reservations, or of none, hold."""
    return sum(
        share.cpus
        for job_id in state.usage[node].jobs
        if (allocation := state.jobs[job_id].allocation) is not None and allocation.reservation != reservation.name
        for share in allocation.shares
        if share.node == node
    )
