"""scontrol create, update and delete reservation: what is refused and in which words, and what becomes of the rest."""

from __future__ import annotations

from dataclasses import replace

from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import Caller, CreateReservation, DeleteReservation, UpdateReservation
from slurmk.core.reservation_nodes import (
    check_overlap,
    licenses,
    with_partition,
    with_resources,
)
from slurmk.core.reservation_times import forget, keep
from slurmk.core.reservation_use import jobs_of, with_access
from slurmk.core.state import State, Turn
from slurmk.model.reservation import (
    KEEPING,
    PURGE_AFTER,
    REPEATING,
    REPLACING,
    Reservation,
    ReservationFlag,
    ReservationRequest,
)
from slurmk.model.states import INFINITE

YEAR_MINUTES = 365 * 24 * 60
"""The duration of a reservation without an end."""

PAST = 600
"""Seconds that a new reservation may have begun ago."""


def create(turn: Turn, event: CreateReservation) -> None:
    """scontrol create reservation."""
    try:
        _check_operator(event.caller)
        reservation = _new(turn, event.request)
    except SlurmError as error:
        turn.emit(Refused(error))
        return
    turn.state.last_reservation = reservation.number
    keep(turn, reservation)
    turn.emit(Accepted(name=reservation.name))


def update(turn: Turn, event: UpdateReservation) -> None:
    """scontrol update reservation."""
    try:
        reservation = _named(turn.state, event.request.name)
        if event.request.skip:
            _check_may_delete(turn, event.caller, reservation)
        else:
            _check_operator(event.caller)
        changed = _changed(turn, reservation, event.request)
    except SlurmError as error:
        turn.emit(Refused(error))
        return
    keep(turn, changed)
    turn.emit(Accepted(name=changed.name))


def delete(turn: Turn, event: DeleteReservation) -> None:
    """scontrol delete reservation: not while jobs run in it or ask for it."""
    try:
        if not event.caller.operator and event.name not in turn.state.reservations:
            raise SlurmError(Errno.USER_ID_MISSING)
        reservation = _named(turn.state, event.name)
        _check_may_delete(turn, event.caller, reservation)
        if jobs_of(turn.state, reservation.name):
            raise SlurmError(Errno.RESERVATION_BUSY)
    except SlurmError as error:
        turn.emit(Refused(error))
        return
    forget(turn, reservation)
    turn.emit(Accepted(name=reservation.name))


def _named(state: State, name: str) -> Reservation:
    reservation = state.reservations.get(name)
    if reservation is None:
        raise SlurmError(Errno.RESERVATION_INVALID)
    return reservation


def _check_operator(caller: Caller) -> None:
    if not caller.operator:
        raise SlurmError(Errno.USER_ID_MISSING)


def _check_may_delete(turn: Turn, caller: Caller, reservation: Reservation) -> None:
    """USER_DELETE lets everybody delete whom the reservation's users and accounts let in."""
    if caller.operator:
        return
    accounts = turn.directory.accounts
    mine = accounts.get(caller.user_name, ()) if accounts is not None else ("",)
    let_in = reservation.users.allows(caller.user_name) and reservation.accounts.allows(*mine)
    if not reservation.flags & ReservationFlag.USER_DELETE or not let_in:
        raise SlurmError(Errno.USER_ID_MISSING)


# --------------------------------------------------------------------------------------------- made and changed


def _new(turn: Turn, request: ReservationRequest) -> Reservation:
    state = turn.state
    if request.name and request.name in state.reservations:
        raise SlurmError(Errno.RESERVATION_NAME_DUP)
    flags = request.flags
    _check_repeats(flags)
    _check_replaces(flags)
    start, ending = _times(turn, request, flags)
    number = state.last_reservation + 1
    blank = Reservation("", number, start, ending, flags=flags, purge_after=PURGE_AFTER)
    if flags & ReservationFlag.TIME_FLOAT:
        blank = replace(blank, delay=max(start - turn.now, 0))
    reservation = with_access(turn.directory, blank, request)
    reservation = with_partition(state, reservation, request)
    reservation = with_resources(turn, reservation, request)
    reservation = _with_details(reservation, request)
    return replace(reservation, name=request.name or _name(reservation))


def _check_repeats(flags: ReservationFlag) -> None:
    """A reservation comes again in one way at most, and not when it floats."""
    ways = bin(flags & REPEATING).count("1")
    if ways > 1 or (ways and flags & ReservationFlag.TIME_FLOAT):
        raise SlurmError(Errno.NOT_SUPPORTED)


def _check_replaces(flags: ReservationFlag) -> None:
    """One whose nodes stay what they are has none replaced."""
    if flags & REPLACING and flags & KEEPING:
        raise SlurmError(Errno.NOT_SUPPORTED)


def _times(turn: Turn, request: ReservationRequest, flags: ReservationFlag) -> tuple[int, int]:
    start = request.start_time or turn.now
    if start < turn.now - PAST and not flags & ReservationFlag.FORCE_START:
        raise SlurmError(Errno.INVALID_TIME_VALUE)
    if request.duration is not None:
        ending = start + _minutes(request.duration) * 60
    else:
        ending = request.end_time or start
    if ending <= start or (ending <= turn.now and not flags & REPEATING):
        raise SlurmError(Errno.INVALID_TIME_VALUE)
    return start, ending


def _minutes(duration: int) -> int:
    return YEAR_MINUTES if duration >= INFINITE - 1 else duration


def _name(reservation: Reservation) -> str:
    """Named after the first who may use it."""
    for access in (reservation.users, reservation.accounts, reservation.groups):
        if access.names and not access.denied:
            return f"{access.names[0]}_{reservation.number}"
    return f"resv_{reservation.number}"


def _changed(turn: Turn, reservation: Reservation, request: ReservationRequest) -> Reservation:
    if request.skip:
        return _skipped(turn, reservation)
    if request.features:
        raise SlurmError(Errno.NOT_SUPPORTED)
    if request.flags & ReservationFlag.TIME_FLOAT or request.dropped_flags & ReservationFlag.TIME_FLOAT:
        raise SlurmError(Errno.INVALID_TIME_VALUE)
    named = reservation.flags & ReservationFlag.SPEC_NODES
    if named and request.flags & REPLACING:
        raise SlurmError(Errno.NOT_SUPPORTED)
    if request.flags & ReservationFlag.PART_NODES and not request.partition:
        raise SlurmError(Errno.INVALID_PARTITION_NAME)
    flags = (reservation.flags | request.flags) & ~request.dropped_flags
    _check_repeats(flags)
    _check_replaces(flags)
    changed = replace(reservation, flags=flags)
    changed = with_access(turn.directory, changed, request)
    changed = _with_times(turn, changed, request)
    changed = with_partition(turn.state, changed, request)
    moved = changed.start_time != reservation.start_time or changed.end_time != reservation.end_time
    shares_no_more = request.dropped_flags & (ReservationFlag.MAINT | ReservationFlag.OVERLAP)
    if counts_cores(reservation, request):
        raise SlurmError(Errno.CORE_RESERVATION_UPDATE)
    if request.nodes is not None or request.node_count is not None:
        changed = with_resources(turn, changed, request)
    elif request.licenses is not None:
        changed = replace(changed, licenses=licenses(turn.state, request.licenses))
    if moved or shares_no_more:
        check_overlap(turn.state, changed, changed.nodes)
    return _with_details(changed, request)


def counts_cores(reservation: Reservation, request: ReservationRequest) -> bool:
    """Whether a change would give other cores to a reservation of some of its nodes' cores, or have it hold some alone."""
    return bool(request.core_count) or (bool(reservation.cores) and bool(request.node_count or request.nodes))


def _skipped(turn: Turn, reservation: Reservation) -> Reservation:
    if not reservation.flags & REPEATING:
        raise SlurmError(Errno.RESERVATION_NOT_SKIPABLE)
    return reservation.next()


def _with_times(turn: Turn, reservation: Reservation, request: ReservationRequest) -> Reservation:
    start, ending = reservation.start_time, reservation.end_time
    if request.start_time is not None:
        if reservation.active(turn.now):
            raise SlurmError(Errno.RESERVATION_ALREADY_STARTED)
        if request.start_time < turn.now - PAST:
            raise SlurmError(Errno.INVALID_TIME_VALUE)
        start, ending = request.start_time, request.start_time + ending - start
    if request.duration is not None:
        seconds = _minutes(request.duration) * 60
        before = ending - start
        ending = start + {"+": before + seconds, "-": before - seconds}.get(request.duration_sign, seconds)
    elif request.end_time is not None:
        ending = request.end_time
    if (start, ending) != (reservation.start_time, reservation.end_time) and (ending <= start or ending <= turn.now):
        raise SlurmError(Errno.INVALID_TIME_VALUE)
    return replace(reservation, start_time=start, end_time=ending)


def _with_details(reservation: Reservation, request: ReservationRequest) -> Reservation:
    if request.purge_after is not None:
        reservation = replace(reservation, purge_after=request.purge_after)
    if request.maximum_start_delay is not None:
        reservation = replace(reservation, maximum_start_delay=request.maximum_start_delay)
    if request.comment is not None:
        reservation = replace(reservation, comment=request.comment)
    return reservation
