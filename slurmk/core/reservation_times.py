"""What time does to reservations: they begin and end, come again, lose nodes, and are gone when nobody uses them.

Which nodes are marked for a reservation and what happens to its jobs at its end follows from the time alone, so one look at
all of them on every Tick keeps them right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from slurmk.core.effects import ForgetReservation, SaveReservation
from slurmk.core.endings import end
from slurmk.core.reservation_nodes import (
    counted,
    first_of,
    is_free,
    ordered,
    suits,
)
from slurmk.core.reservation_use import jobs_of, names_of, overrun, running_in
from slurmk.core.state import Phase, State, Turn, phase_of
from slurmk.model.reservation import (
    REPEATING,
    Reservation,
    ReservationFlag,
    ReservationRequest,
)
from slurmk.model.states import JobFlag, JobState, NodeFlag, NodeState, Reason


def keep(turn: Turn, reservation: Reservation) -> None:
    """Make this the reservation's value and have it kept on disk."""
    turn.state.reservations[reservation.name] = reservation
    turn.keep(SaveReservation(reservation))
    _changed_ones(turn)


def forget(turn: Turn, reservation: Reservation) -> None:
    del turn.state.reservations[reservation.name]
    turn.state.reservation_idle.pop(reservation.name, None)
    turn.keep(ForgetReservation(reservation.name))
    _changed_ones(turn)


def _changed_ones(turn: Turn) -> None:
    state = turn.state
    state.changes += 1
    state.restate_all()
    mark(state, turn.now)
    _watch(turn)
    turn.wake_planner()


# --------------------------------------------------------------------------------------------- as time goes by


def tick(turn: Turn) -> None:
    """What begins, ends, comes again or has been idle for too long by now."""
    state = turn.state
    if not state.reservations:
        return
    for reservation in list(state.reservations.values()):
        if reservation.end_time <= turn.now and not reservation.flags & ReservationFlag.TIME_FLOAT:
            _over(turn, reservation)
        elif _idle_too_long(turn, reservation):
            _purge(turn, reservation)
        else:
            _refill(turn, reservation)
    if mark(state, turn.now):
        state.changes += 1
        turn.wake_planner()
    _watch(turn)


def _over(turn: Turn, reservation: Reservation) -> None:
    """The end has come: running jobs are ended once ResvOverRun is over too; the reservation comes again or is gone."""
    if reservation.end_time + overrun(turn.state) <= turn.now:
        _end_running(turn, reservation)
    if reservation.flags & REPEATING:
        while reservation.end_time <= turn.now:
            reservation = reservation.next()
        keep(turn, reservation)
    elif reservation.end_time + overrun(turn.state) <= turn.now or not running_in(turn.state, reservation.name):
        _release_waiting(turn, reservation)
        forget(turn, reservation)


def _end_running(turn: Turn, reservation: Reservation) -> None:
    if reservation.flags & ReservationFlag.FLEX:
        return
    for job in running_in(turn.state, reservation.name):
        if phase_of(job) in (Phase.RUNNING, Phase.SUSPENDED):
            end(turn, job, JobState.TIMEOUT, Reason.TIME_LIMIT)


def _purge(turn: Turn, reservation: Reservation) -> None:
    """Nobody uses it: it is gone, or comes again at its next time."""
    if reservation.flags & REPEATING:
        keep(turn, reservation.next())
        return
    _end_running(turn, reservation)
    _release_waiting(turn, reservation)
    forget(turn, reservation)


def _release_waiting(turn: Turn, reservation: Reservation) -> None:
    """Jobs that asked for a reservation that is gone are held, unless they may run without it."""
    state = turn.state
    keep = bool(reservation.flags & ReservationFlag.NO_HOLD_JOBS)
    for job_id in list(state.pending):
        job = state.jobs[job_id]
        names = names_of(job)
        if reservation.name not in names:
            continue
        left = ",".join(name for name in names if name != reservation.name)
        job = replace(job, request=replace(job.request, reservation=left or None))
        if not left and not keep:
            job = replace(
                job,
                priority=0,
                flags=job.flags | JobFlag.RESV_DEL_HOLD,
                reason=Reason.RESERVATION_DELETED,
                state_description=f"Reservation {reservation.name} was deleted",
            )
        turn.save(job)


def _idle_too_long(turn: Turn, reservation: Reservation) -> bool:
    """PURGE_COMP: nobody has used it for so long since it began."""
    idle = turn.state.reservation_idle
    if not reservation.flags & ReservationFlag.PURGE_COMP or not reservation.active(turn.now):
        idle.pop(reservation.name, None)
        return False
    if jobs_of(turn.state, reservation.name):
        idle.pop(reservation.name, None)
        return False
    since = idle.setdefault(reservation.name, turn.now)
    return turn.now >= since + reservation.purge_after


def _refill(turn: Turn, reservation: Reservation) -> None:
    """Nodes of a reservation that named none are replaced when they are lost (REPLACE: also when they are in use); one of
    a partition's nodes follows the partition."""
    state, flags = turn.state, reservation.flags
    if flags & ReservationFlag.PART_NODES and reservation.partition in state.partitions:
        members = ordered(state, state.partitions[reservation.partition].nodes)
        if members != reservation.nodes:
            keep(turn, counted(turn, replace(reservation, nodes=members), ReservationRequest()))
        return
    if flags & (ReservationFlag.SPEC_NODES | ReservationFlag.STATIC | ReservationFlag.MAINT) or reservation.cores:
        return
    lost = [name for name in reservation.nodes if _is_lost(state, reservation, name)]
    if not lost:
        return
    partition = state.partitions.get(reservation.partition)
    spare = [
        name
        for name in (partition.nodes if partition else ())
        if name in state.nodes
        and name not in reservation.nodes
        and suits(state.nodes[name], reservation.features)
        and is_free(turn, reservation, name, whole=True)
        and not state.usage[name].jobs
    ]
    kept = [name for name in reservation.nodes if name not in lost]
    names = ordered(state, first_of(state, reservation.features, [*kept, *spare, *lost], len(reservation.nodes)))
    if names != reservation.nodes:
        keep(turn, counted(turn, replace(reservation, nodes=names), ReservationRequest()))


def _is_lost(state: State, reservation: Reservation, name: str) -> bool:
    node = state.nodes.get(name)
    if node is None or node.state is NodeState.DOWN or node.flags & (NodeFlag.DRAIN | NodeFlag.FAIL):
        return True
    return bool(reservation.flags & ReservationFlag.REPLACE and state.usage[name].jobs)


def mark(state: State, now: int) -> bool:
    """Note which nodes are kept by which reservation now; True when that has changed."""
    marks: dict[str, tuple[NodeFlag, str]] = {}
    for reservation in state.reservations.values():
        if not reservation.active(now):
            continue
        flag = NodeFlag.RESERVED
        if reservation.flags & ReservationFlag.MAINT:
            flag |= NodeFlag.MAINT
        for name in reservation.nodes:
            marks[name] = (marks.get(name, (NodeFlag.NONE, ""))[0] | flag, reservation.name)
    changed = marks != state.reserved
    state.reserved = marks
    return changed


def _watch(turn: Turn) -> None:
    """Have a Tick at the next time that something of a reservation changes."""
    over = overrun(turn.state)
    times: list[int] = []
    for reservation in turn.state.reservations.values():
        times += [reservation.start_time, reservation.end_time, reservation.end_time + over]
        if reservation.name in turn.state.reservation_idle:
            times.append(turn.state.reservation_idle[reservation.name] + reservation.purge_after)
    ahead = [moment for moment in times if moment > turn.now]
    if ahead:
        turn.wake_at(min(ahead), 0)


def restore(state: State, reservations: Iterable[Reservation], last_number: int) -> None:
    """Take up the reservations of an earlier controller."""
    state.reservations = {each.name: each for each in sorted(reservations, key=lambda each: each.number)}
    state.last_reservation = max([last_number, *(each.number for each in state.reservations.values())])
