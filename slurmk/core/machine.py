"""The state machine of the cluster: events in, effects out.

``Machine.handle`` finds the event's handler in a table and returns what the daemon has to do. Everything else here is a
read-only view of the state for those who print it, plan with it or check permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from slurmk.core import (
    crontabs,
    debugging,
    dependencies,
    mail,
    nodes,
    partitions,
    planning,
    preemption,
    prologs,
    quotas,
    reservation_times,
    reservation_use,
    reservations,
    selection,
    smaller,
    transitions,
    turns,
    updates,
)
from slurmk.core.effects import Accepted, Effect, Refused
from slurmk.core.endings import end, epilog_ended, finish_pending, forget_old
from slurmk.core.errors import SlurmError
from slurmk.core.events import (
    BatchEnded,
    Caller,
    CreateNodes,
    CreateReservation,
    DeleteNodes,
    DeletePartition,
    DeleteReservation,
    EndRecurrence,
    EpilogEnded,
    EpilogFailed,
    Event,
    Hold,
    JobSelection,
    JobStarted,
    Kill,
    LaunchFailed,
    NodeChanged,
    NodeFailed,
    NodesReleased,
    Planned,
    Preempted,
    PrologFailed,
    PrologRuns,
    QuotasChanged,
    Reconfigure,
    Requeue,
    SetDebug,
    SiteChanged,
    StepEnded,
    StepStarted,
    Submit,
    Suspend,
    Tick,
    UpdateJob,
    UpdateNode,
    UpdatePartition,
    UpdateReservation,
    UpdateStep,
    Withdrawn,
)
from slurmk.core.kills import kill, may_change
from slurmk.core.nodes import restore as restore_nodes
from slurmk.core.priority import MULTIFACTOR, Directory, Factors
from slurmk.core.state import NodeUsage, Phase, State, Turn, lateness, limit_end, phase_of
from slurmk.core.submission import misses_deadline, submit, trial
from slurmk.core.suspension import stand_still
from slurmk.model.job import Job
from slurmk.model.node import Node, Partition
from slurmk.model.node_states import Condition
from slurmk.model.quotas import Quota
from slurmk.model.reservation import Reservation
from slurmk.model.site import Site
from slurmk.model.states import JobFlag, JobState, NodeFlag, Reason
from slurmk.planner.build import SnapshotCache, Waiting, build_snapshot, pending_row, with_told
from slurmk.planner.snapshot import Outlook, PendingRow, Snapshot
from slurmk.planner.why import Question

AGE_INTERVAL = 300
"""Seconds after which the age in a waiting job's priority is counted anew (PriorityCalcPeriod)."""

AGE_BATCH = 500
"""Jobs whose priority one Tick counts anew, so that a long queue delays nobody."""


class Machine:
    """The controller's state, and the only thing that changes it.

    ``users`` says what is known outside about users, accounts and QOS; assign ``machine.users`` when that changes.
    """

    def __init__(self, site: Site, *, users: Directory | None = None) -> None:
        self._state = State(site)
        self._cache = SnapshotCache()
        self._changed: dict[int, None] = {}  # records that may differ from those of the last snapshot to plan with
        self.users = users or Directory()
        self._ageing: list[int] = []
        self._aged_at = 0

    def handle(self, event: Event) -> list[Effect]:
        """Do what the event demands; what follows from it, in the order to carry it out. Never raises for an event that
        is late, repeated, or about something unknown."""
        turn = Turn(self._state, self.users, event.time)
        if isinstance(event, Tick):
            self._tick(turn)
        else:
            _HANDLERS[type(event)](turn, event)
        while turn.noted:
            dependencies.changed(turn, turn.noted.pop(0))
        turns.follow(turn)
        return turn.result()

    def restore(
        self,
        jobs: Iterable[Job],
        nodes: Iterable[Node],
        partitions_kept: Iterable[Partition],
        next_job_id: int,
        reservations_kept: Iterable[Reservation] = (),
        last_reservation: int = 0,
        longest_wait: int = 0,
    ) -> list[Effect]:
        """Take up what an earlier controller had saved. Jobs stay what they were: running ones go on running.

        ``nodes`` and ``partitions_kept`` are what was saved of changes made by administrators; the configuration rules over
        which there are. ``longest_wait`` is of the jobs that have started, in seconds. Returns when the machine wants a Tick.
        """
        state = self._state
        restore_nodes(state, nodes, partitions_kept)
        reservation_times.restore(state, reservations_kept, last_reservation)
        latest = 0.0
        for job in jobs:
            state.put(job)
            if job.promised_start and job.job_id in state.pending:
                state.outlooks[job.job_id] = Outlook(job.reason, promised=job.promised_start)
            latest = max(latest, job.submit_time, job.start_time)
        state.longest_wait = longest_wait
        state.next_job_id = max(next_job_id, 1)
        turn = Turn(state, self.users, latest)
        for job in list(state.jobs.values()):
            updates.restore_job(turn, job)
            prologs.restore_epilog(turn, job)
        while turn.noted:
            dependencies.changed(turn, turn.noted.pop(0))
        turn.wake_planner()
        if state.reservations or any(node.resume_time for node in state.nodes.values()):
            turn.wake_at(turn.now, 0)
        return turn.result()

    # ---------------------------------------------------------------- views

    @property
    def site(self) -> Site:
        return self._state.site

    @property
    def jobs(self) -> Mapping[int, Job]:
        """Every job in memory by its id."""
        return MappingProxyType(self._state.jobs)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Every node by its name, in the order of configuration."""
        return MappingProxyType(self._state.nodes)

    @property
    def partitions(self) -> Mapping[str, Partition]:
        return MappingProxyType(self._state.partitions)

    @property
    def quotas(self) -> tuple[Quota, ...]:
        """The quotas that jobs are held to."""
        return self._state.quotas

    @property
    def reservations(self) -> Mapping[str, Reservation]:
        """Every reservation by its name, in the order in which they were made."""
        return MappingProxyType(self._state.reservations)

    def node_reservation(self, name: str) -> tuple[NodeFlag, str]:
        """What an active reservation makes of a node, RESERVED or also MAINT, and its name; nothing and "" without one."""
        return self._state.reserved.get(name, (NodeFlag.NONE, ""))

    @property
    def outlooks(self) -> Mapping[int, Outlook]:
        """What the last plan said of jobs that wait."""
        return MappingProxyType(self._state.outlooks)

    @property
    def next_job_id(self) -> int:
        return self._state.next_job_id

    def select(self, wanted: str | JobSelection) -> tuple[Job, ...]:
        """The records that ``12``, ``12_[1-4]`` or ``12+1`` means; raises SlurmError(INVALID_JOB_ID) when there is none."""
        chosen = selection.parse(wanted) if isinstance(wanted, str) else wanted
        return tuple(selected.job for selected in selection.select(self._state, chosen))

    def jobs_of_user(self, user_id: int) -> tuple[Job, ...]:
        state = self._state
        return tuple(state.jobs[job_id] for job_id in sorted(state.by_user.get(user_id, ())))

    def jobs_of_array(self, array_job_id: int) -> tuple[Job, ...]:
        """All records of an array: elements of their own and the record of those that wait."""
        state = self._state
        return tuple(state.jobs[job_id] for job_id in sorted(state.by_array.get(array_job_id, ())))

    def jobs_of_het(self, het_job_id: int) -> tuple[Job, ...]:
        """All components of a het job."""
        state = self._state
        return tuple(state.jobs[job_id] for job_id in sorted(state.by_het.get(het_job_id, ())))

    def jobs_of_node(self, name: str) -> tuple[Job, ...]:
        """The jobs that hold something on a node."""
        usage = self._state.usage.get(name)
        return tuple(self._state.jobs[job_id] for job_id in sorted(usage.jobs)) if usage else ()

    def pending(self) -> tuple[Job, ...]:
        return tuple(self._state.jobs[job_id] for job_id in self._state.pending)

    def holding(self) -> tuple[Job, ...]:
        """Jobs that hold nodes: running, suspended or completing."""
        return tuple(self._state.jobs[job_id] for job_id in self._state.holding)

    def node_usage(self, name: str) -> NodeUsage:
        """What jobs hold on a node; to be read only."""
        return self._state.usage.get(name) or NodeUsage()

    def node_state(self, name: str) -> str:
        """The node's state as sinfo words it: idle, mixed, allocated, draining …"""
        return self.node_condition(name).long

    def node_condition(self, name: str) -> Condition:
        """The node's state and flags with what its jobs make of them; it has the words for sinfo and scontrol."""
        return nodes.condition(self._state, name)

    def may_change(self, caller: Caller, job: Job) -> bool:
        return may_change(caller, job)

    def dependency_text(self, job: Job) -> str:
        """``afterok:12(unfulfilled)``, or "" when the job waits for no other."""
        return dependencies.describe(Turn(self._state, self.users, 0.0), job)

    def priority_factors(self, job: Job, time: float) -> Factors:
        """The parts of a job's priority, as sprio shows them."""
        return updates.factors_of(Turn(self._state, self.users, time), job)

    def snapshot(self, time: float) -> Snapshot:
        """All that a plan depends on, as it is now. What is planned of it shall be handled as ``Planned``."""
        state = self._state
        state.snapshot_id += 1
        state.changes_at_snapshot = state.changes
        made = self._as_it_is(time)
        changed, self._changed = self._changed, {}
        anew, self._cache.anew = self._cache.anew, False
        if anew:
            return made
        rows = {job_id: self._cache.pending.get(job_id) for job_id in changed}
        if made.by_promises:
            rows = {job_id: row and with_told(row, state.outlooks.get(job_id)) for job_id, row in rows.items()}
        return replace(made, changed=rows)

    def _as_it_is(self, time: float) -> Snapshot:
        state = self._state
        changed, gone = self._restated()
        return build_snapshot(
            snapshot_id=state.snapshot_id,
            time=time,
            site=state.site,
            nodes=state.nodes,
            partitions=state.partitions,
            running=[state.jobs[job_id] for job_id in state.holding],
            pending=changed,
            gone=gone,
            reservations=tuple(state.reservations.values()),
            overrun=reservation_use.overrun(state),
            preemption=preemption.rules(state, self.users),
            quotas=state.quotas,
            outlooks=state.outlooks,
            longest_wait=state.longest_wait,
            cache=self._cache,
        )

    def trial(self, event: Submit) -> tuple[Snapshot, PendingRow] | Refused:
        """For --test-only: a snapshot and the row of the job that the submission would make; ``planner.will_run`` says when
        and where it would start. Nothing is kept."""
        job = trial(Turn(self._state, self.users, event.time), event)
        if isinstance(job, Refused):
            return job
        usable, optional = reservation_use.usable(self._state, self.users, job)
        row = pending_row(job, self._state.partitions, self._state.site)
        return self._as_it_is(event.time), replace(row, reservations=usable, reservation_optional=optional)

    def question(self, job_id: int, time: float) -> Question | None:
        """For ``slurmk why``: a snapshot, the waiting record of this job in it, and smaller requests to try; None for a job
        that does not wait. ``planner.why.explain`` answers it. Nothing is kept."""
        state = self._state
        job = state.jobs.get(job_id)
        if job is None or job_id not in state.pending:
            return None
        snapshot = self._as_it_is(time)
        row = next(row for row in snapshot.pending if row.job_id == job_id)
        return Question(snapshot, row, smaller.tries(state, self.users, job, row), state.outlooks.get(job_id))

    def _restated(self) -> tuple[list[Waiting], list[int]]:
        """The pending jobs that are new or changed since the last snapshot, as it takes them, and those that wait no more."""
        state = self._state
        restated, state.restated = state.restated, {}
        self._changed.update(restated)
        changed, gone = [], []
        for job_id in restated:
            if job_id in state.pending:
                changed.append(self._waiting(job_id))
            elif state.waiting.pop(job_id, None) is not None:
                gone.append(job_id)
        return changed, gone

    def _waiting(self, job_id: int) -> Waiting:
        state = self._state
        job = state.jobs[job_id]
        if job.priority == 0:
            held = job.reason if job.reason in updates.HELD_REASONS else Reason.JOB_HELD_USER
        elif job.request.dependency is not None:
            held = job.reason if job.reason is Reason.DEPENDENCY_NEVER_SATISFIED else Reason.DEPENDENCY
        else:
            held = Reason.NONE
        startable = planning.room_in_array(state, job)
        usable, optional = reservation_use.usable(state, self.users, job)
        waiting = Waiting(job, held, startable, job.het_job_id, usable, optional)
        state.waiting[job_id] = waiting
        return waiting

    # ---------------------------------------------------------------- time

    def _tick(self, turn: Turn) -> None:
        state = self._state
        for job_id in turn.due_alarms():
            job = state.jobs.get(job_id)
            if job is not None:
                _alarm(turn, job)
        turns.tick(turn)
        preemption.tick(turn)
        reservation_times.tick(turn)
        nodes.resume_due(turn)
        forget_old(turn)
        self._age(turn)

    def _age(self, turn: Turn) -> None:
        state = self._state
        if state.site.priority_type != MULTIFACTOR or not state.site.priority_weights.get("age"):
            return
        if not self._ageing and turn.now >= self._aged_at + AGE_INTERVAL:
            self._ageing, self._aged_at = list(state.pending), turn.now
        for job_id in self._ageing[-AGE_BATCH:]:
            updates.age(turn, job_id)
        del self._ageing[-AGE_BATCH:]
        if self._ageing:
            turn.wake_at(turn.now + 1, 0)


def _alarm(turn: Turn, job: Job) -> None:
    """A time that this job waited for has come."""
    phase = phase_of(job)
    if phase is Phase.PENDING:
        _alarm_pending(turn, job)
    elif phase is Phase.RUNNING:
        job = mail.reach_marks(turn, job)
        mail.watch_marks(turn, job)
        limit = limit_end(job)
        if limit is not None and job.flags & JobFlag.CONFIGURING:  # none of its time is used yet
            limit += turn.now - job.start_time
        due = None if limit is None else limit + lateness(turn.state, job)
        if due is not None and due <= turn.now:
            end(turn, job, JobState.TIMEOUT, Reason.TIME_LIMIT)
        elif due is not None:
            turn.state.alarm(due, job.job_id)
    elif phase is Phase.SUSPENDED:
        stand_still(turn, job)


def _alarm_pending(turn: Turn, job: Job) -> None:
    if misses_deadline(job, turn.now):
        finish_pending(turn, replace(job, exit_code=1), JobState.DEADLINE, Reason.DEADLINE)
        return
    job = dependencies.test(turn, job)
    if job.pending and job.priority and not job.accrue_time and 0 < job.eligible_time <= turn.now:
        job = turn.save(replace(job, accrue_time=turn.now))
    if job.reason is Reason.BEGIN_TIME or (job.reason is Reason.JOB_LAUNCH_FAILURE and job.priority):
        turn.state.set_reason(job, Reason.NONE)
    turn.wake_planner()


_HANDLERS: dict[type[Event], Callable[[Turn, Any], None]] = {
    Submit: submit,
    Kill: kill,
    EndRecurrence: crontabs.end_recurrence,
    Hold: updates.hold,
    Requeue: updates.requeue_jobs,
    Suspend: updates.suspend,
    UpdateJob: updates.update_job,
    UpdateNode: nodes.update_node,
    UpdatePartition: partitions.update,
    DeletePartition: partitions.delete,
    CreateNodes: nodes.create_nodes,
    DeleteNodes: nodes.delete_nodes,
    UpdateStep: updates.update_step,
    CreateReservation: reservations.create,
    UpdateReservation: reservations.update,
    DeleteReservation: reservations.delete,
    NodeChanged: nodes.node_changed,
    QuotasChanged: quotas.quotas_changed,
    Reconfigure: nodes.reconfigure,
    SiteChanged: nodes.site_changed,
    Planned: planning.planned,
    JobStarted: transitions.report,
    LaunchFailed: transitions.report,
    StepStarted: transitions.report,
    StepEnded: transitions.report,
    BatchEnded: transitions.report,
    NodesReleased: transitions.report,
    NodeFailed: transitions.report,
    Preempted: transitions.report,
    Withdrawn: transitions.report,
    PrologRuns: prologs.prolog_runs,
    PrologFailed: prologs.prolog_failed,
    EpilogFailed: prologs.epilog_failed,
    EpilogEnded: epilog_ended,
    SetDebug: debugging.set_debug,
}

__all__ = ["Accepted", "Machine", "Refused", "SlurmError"]
