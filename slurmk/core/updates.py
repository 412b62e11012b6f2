"""What users and operators change of jobs: hold, release, requeue, suspend, and the fields of ``scontrol update``.

Each field is a row of ``FIELDS``: in which phases of a job it may be changed, whether only an operator may, and how.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from grammar.bindings import is_tres_binding
from grammar.dependencies import format_dependency
from slurmk.core import dependencies, mail, reservation_use, resizing, selection, submission, suspension
from slurmk.core.demands import Refusal, demand_in, least_cpus
from slurmk.core.effects import Accepted, Refused, SaveStep, UpdateLimit
from slurmk.core.endings import REQUEUED_HELD, REQUEUED_SPECIAL, again, requeue, requeue_ending
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import Caller, Hold, JobSelection, Requeue, Suspend, UpdateJob, UpdateStep
from slurmk.core.feasibility import is_beyond, unknown_features
from slurmk.core.kills import for_each_element, may_change
from slurmk.core.priority import HIGHEST, MULTIFACTOR, Factors, factors, priority_of
from slurmk.core.state import Phase, Turn, holds_nodes, limit_end, phase_of, watch_limit
from slurmk.core.submission import set_alarms
from slurmk.core.transitions import may_requeue
from slurmk.model.job import Job
from slurmk.model.states import NO_VALUE, JobFlag, Reason

HELD_REASONS = frozenset({Reason.JOB_HELD_USER, Reason.JOB_HELD_ADMIN, Reason.JOB_LAUNCH_FAILURE, Reason.JOB_HOLD_MAX_REQUEUE})
"""Reasons that say why a job has priority 0."""


def _check_owner(caller: Caller, job: Job, refusal: Errno = Errno.USER_ID_MISSING) -> None:
    if not may_change(caller, job):
        raise SlurmError(refusal)


def _check_recurrence(job: Job) -> None:
    """What a table of scrontab says is changed there."""
    if job.request.crontab is not None and not job.state.finished:
        raise SlurmError(Errno.CANNOT_MODIFY_CRON_JOB)


# --------------------------------------------------------------------------------------------- hold and release


def hold(turn: Turn, event: Hold) -> None:
    """scontrol hold, uhold and release."""

    def act(chosen: JobSelection, selected: selection.Selected) -> None:
        job = selected.job
        _check_owner(event.caller, job)
        _check_recurrence(job)
        if phase_of(job) is Phase.FINISHED:
            raise SlurmError(Errno.JOB_FINISHED)
        if event.release and job.reason is Reason.JOB_HELD_ADMIN and job.priority == 0 and not event.caller.operator:
            raise SlurmError(Errno.ACCESS_DENIED)
        for each in selection.apart(turn, selected):
            if event.release:
                release(turn, each)
            else:
                by_admin = event.caller.operator and not event.user_hold
                set_held(turn, each, Reason.JOB_HELD_ADMIN if by_admin else Reason.JOB_HELD_USER)

    for_each_element(turn, tuple(selection.wholly(turn.state, chosen) for chosen in event.selections), act)


def set_held(turn: Turn, job: Job, reason: Reason) -> None:
    """Priority 0, and the reason of one that waits, or that runs and will wait should it be queued again."""
    if job.priority == 0 and job.reason is reason:
        return
    if job.pending:
        eligible = job.eligible_time if job.eligible_time > turn.now else 0
        job = replace(job, state_description="", eligible_time=eligible, accrue_time=0)
        turn.wake_planner()
    turn.save(replace(job, priority=0, reason=job.reason if job.state.finished else reason))


def release(turn: Turn, job: Job) -> None:
    """Let a held job wait like any other."""
    if job.priority:
        return
    if not job.pending:
        held = job.reason in (Reason.JOB_HELD_ADMIN, Reason.JOB_HELD_USER)
        turn.save(replace(job, priority=priority_of(turn, job), reason=Reason.NONE if held else job.reason))
        return
    begins = job.request.begin_time or 0
    waits = job.request.dependency is not None
    reason = Reason.DEPENDENCY if waits else Reason.BEGIN_TIME if begins > turn.now else Reason.NONE
    job = replace(
        job,
        reason=reason,
        state_description="",
        flags=job.flags & ~(JobFlag.REQUEUE_HOLD | JobFlag.SPECIAL_EXIT),
        eligible_time=begins if begins > turn.now else 0 if waits else turn.now,
        accrue_time=0 if waits or begins > turn.now else turn.now,
        request=replace(job.request, hold=False),
    )
    job = turn.save(replace(job, priority=priority_of(turn, job)))
    dependencies.test(turn, job)
    dependencies.look_at_deadline(turn, job)
    turn.wake_planner()


# --------------------------------------------------------------------------------------------- requeue and suspend


def requeue_jobs(turn: Turn, event: Requeue) -> None:
    """scontrol requeue and requeuehold."""

    def act(chosen: JobSelection, selected: selection.Selected) -> None:
        job = selected.job
        _check_owner(event.caller, job, Errno.ACCESS_DENIED)
        if chosen.het_offset is not None:
            raise SlurmError(Errno.INVALID_JOB_ID)
        if selection.is_lone_component(chosen, job):
            raise SlurmError(Errno.NOT_HET_JOB_LEADER)
        phase = phase_of(job)
        held = event.hold or event.special_exit
        if event.incomplete and phase in (Phase.PENDING, Phase.FINISHED):
            return
        if phase is Phase.PENDING:
            raise SlurmError(Errno.JOB_PENDING)
        if not job.batch:
            raise SlurmError(Errno.BATCH_ONLY)
        if not may_requeue(turn, job):
            raise SlurmError(Errno.DISABLED)
        if phase is Phase.COMPLETING and not job.state.finished:
            raise SlurmError(Errno.TRANSITION_STATE_NO_UPDATE)
        if event.special_exit:
            job = replace(job, flags=job.flags | JobFlag.SPECIAL_EXIT)
        if phase is Phase.COMPLETING:
            requeue_ending(turn, job, held=event.hold)
        elif phase is Phase.FINISHED:
            description = REQUEUED_HELD if event.hold else REQUEUED_SPECIAL if event.special_exit else ""
            again(turn, job, held=Reason.JOB_HELD_USER if held else None, description=description)
        else:
            requeue(turn, job, Reason.NONE, held=event.hold)

    for_each_element(turn, event.selections, act)


def suspend(turn: Turn, event: Suspend) -> None:
    """scontrol suspend and resume. A suspended job keeps its nodes; its time stands still."""

    def act(chosen: JobSelection, selected: selection.Selected) -> None:
        job = selected.job
        _check_owner(event.caller, job, Errno.ACCESS_DENIED)
        if selection.is_lone_component(chosen, job):
            raise SlurmError(Errno.NOT_WHOLE_HET_JOB)
        row = _SUSPENSIONS[event.resume].get(phase_of(job))
        if isinstance(row, Errno):
            raise SlurmError(row)
        if row is not None:
            row(turn, job)

    for_each_element(turn, event.selections, act)


Suspension: TypeAlias = Callable[[Turn, Job], Job] | Errno | None

_SUSPENSIONS: dict[bool, dict[Phase, Suspension]] = {
    False: {
        Phase.PENDING: Errno.JOB_PENDING,
        Phase.RUNNING: suspension.stop,
        Phase.SUSPENDED: None,
        Phase.COMPLETING: Errno.TRANSITION_STATE_NO_UPDATE,
        Phase.FINISHED: Errno.ALREADY_DONE,
    },
    True: {
        Phase.PENDING: Errno.JOB_PENDING,
        Phase.RUNNING: Errno.JOB_NOT_SUSPENDED,
        Phase.SUSPENDED: suspension.go_on,
        Phase.COMPLETING: Errno.JOB_NOT_SUSPENDED,
        Phase.FINISHED: Errno.ALREADY_DONE,
    },
}


# --------------------------------------------------------------------------------------------- scontrol update


@dataclass(slots=True)
class Change:
    """One job being updated: what it was, what it is so far, and what has to follow."""

    turn: Turn
    caller: Caller
    job: Job
    resized: bool = False  # whether it could ever start has to be seen again
    dependency: bool = False
    limit: bool = False
    priority: bool = False  # count it anew
    kept: bool = False  # it runs on, on fewer nodes

    def request(self, **fields: Any) -> None:
        self.job = replace(self.job, request=replace(self.job.request, **fields))


Setter: TypeAlias = Callable[[Change, Any], None]


@dataclass(frozen=True, slots=True)
class Field:
    """A row: how a field is changed, in which phases, and who may. ``refusal`` is what a job that runs gets."""

    setter: Setter
    phases: frozenset[Phase]
    operator: bool = False
    refusal: Errno = Errno.JOB_NOT_PENDING


def update_job(turn: Turn, event: UpdateJob) -> None:
    """scontrol update JobId=…: all of the changes, or none of them."""

    def act(chosen: JobSelection, selected: selection.Selected) -> None:
        told = replace(event, changes=resizing.as_told(selected.job, event.changes))
        try:
            _check_update(turn, told, chosen, selected.job)
            _try(turn, told, selected.job)
            for job in selection.apart(turn, selected):
                _apply(turn, told, job)
        except Refusal as refusal:
            raise refusal.error from None

    for_each_element(turn, event.selections, act)


def _check_update(turn: Turn, event: UpdateJob, chosen: JobSelection, job: Job) -> None:
    _check_owner(event.caller, job)
    _check_recurrence(job)
    phase = phase_of(job)
    if phase is Phase.FINISHED and not all(name in _AFTERWARDS for name, _ in event.changes):
        raise SlurmError(Errno.JOB_FINISHED)
    if any(isinstance(value, str) and len(value) > _LONGEST.get(name, len(value)) for name, value in event.changes):
        raise SlurmError(Errno.PATHNAME_TOO_LONG)
    for name, _ in event.changes:
        field = FIELDS.get(name)
        if field is None:
            raise SlurmError(Errno.NOT_SUPPORTED)
        if field.operator and not event.caller.operator:
            raise SlurmError(Errno.ACCESS_DENIED)
        if phase not in field.phases:
            raise SlurmError(field.refusal)


def _try(turn: Turn, event: UpdateJob, job: Job) -> Change:
    """The job with the changes in it, nothing of which is kept yet. Raises SlurmError or Refusal."""
    change = Change(turn, event.caller, job)
    for name, value in event.changes:
        FIELDS[name].setter(change, value)
    if change.resized:
        _check_size(turn, change.job, counted=any(name in _COUNTS for name, _ in event.changes))
    return change


def _check_size(turn: Turn, job: Job, *, counted: bool) -> None:
    """What is asked for has a meaning. Of a job that is not held some partition could hold it; of one that is, if nodes or CPUs
    were ``counted``, some partition has as many. Raises SlurmError or Refusal."""
    request = job.request
    partitions = submission.partitions_of(turn.state, ",".join(job.partitions))
    demand = demand_in(turn.state, request, partitions[0], job.credentials.user_id)
    try:
        if job.priority:
            submission.check_size(turn.state, request, partitions, demand, job.credentials.user_id)
    except Refusal as refusal:
        unavailable = refusal.error.errno is Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE
        raise SlurmError(Errno.REQUESTED_PART_CONFIG_UNAVAILABLE) if unavailable else refusal from None
    if (counted or job.priority) and all(is_beyond(turn.state, demand, partition) for partition in partitions):
        raise SlurmError(Errno.REQUESTED_PART_CONFIG_UNAVAILABLE)


def _apply(turn: Turn, event: UpdateJob, job: Job) -> None:
    change = _try(turn, event, job)
    job = change.job
    counted = job.pending and job.priority and job.request.priority is None and turn.state.site.priority_type == MULTIFACTOR
    if counted and (change.resized or change.priority):
        job = replace(job, priority=priority_of(turn, job))
    if change.kept:
        job = resizing.carry_out(turn, turn.state.jobs[job.job_id], job)
    job = turn.save(job)
    if change.dependency:
        wanted = dependencies.parse(job.request.dependency) if job.request.dependency else None
        dependencies.watch(turn.state, job, wanted)
    if change.dependency or change.job.priority:
        dependencies.test(turn, job)
    if change.limit and holds_nodes(job):
        turn.emit(UpdateLimit(job.job_id, job.restarts, limit_end(job)))
        watch_limit(turn, job)
        mail.watch_marks(turn, job)
    set_alarms(turn, job)
    turn.wake_planner()


def _request_field(name: str, *, resized: bool = False) -> Setter:
    def setter(change: Change, value: Any) -> None:
        change.request(**{name: value})
        change.resized |= resized

    return setter


def _time_limit(change: Change, value: int) -> None:
    """Users may shorten what runs; while it waits they may ask for anything the partition allows."""
    job, operator = change.job, change.caller.operator
    if not operator and phase_of(job) is not Phase.PENDING and value > job.time_limit:
        raise SlurmError(Errno.ACCESS_DENIED)
    if job.request.time_minimum is not None and value < job.request.time_minimum:
        raise SlurmError(Errno.INVALID_TIME_LIMIT)
    change.request(time_limit=value)
    job = replace(change.job, time_limit=value)
    if phase_of(job) is Phase.RUNNING:
        job = replace(job, end_time=limit_end(job) or 0)
    change.job, change.limit = job, True


def _time_minimum(change: Change, value: int) -> None:
    if value > change.job.time_limit:
        raise SlurmError(Errno.INVALID_TIME_MIN_LIMIT)
    change.request(time_minimum=value or None)


def _name(change: Change, value: str) -> None:
    change.job = replace(change.job, name=value)
    change.request(name=value)


def _partition(change: Change, value: str) -> None:
    state = change.turn.state
    partitions = submission.partitions_of(state, value)
    for partition in partitions:
        if partition.state in ("INACTIVE", "DRAIN"):
            raise SlurmError(Errno.PARTITION_NOT_AVAIL)
        if partition.root_only and not change.caller.operator:
            raise SlurmError(Errno.ACCESS_DENIED)
    job = change.job
    submission.charged_to(change.turn.directory, partitions, job.request, job.credentials.user_name)
    change.job = replace(job, partitions=tuple(partition.name for partition in partitions))
    if job.request.time_limit is None:
        limit = submission.time_limit_of(change.turn, job.request, partitions)
        change.job = replace(change.job, time_limit=limit)
    change.request(partition=value)
    change.resized = True


def _account(change: Change, value: str) -> None:
    change.request(account=value)
    _charge(change)


def _qos(change: Change, value: str) -> None:
    if not value:
        return
    change.request(qos=value)
    _charge(change)
    change.priority = True


def _charge(change: Change) -> None:
    job = change.job
    partitions = [change.turn.state.partitions[name] for name in job.partitions if name in change.turn.state.partitions]
    account, qos = submission.charged_to(change.turn.directory, partitions, job.request, job.credentials.user_name)
    change.job = replace(job, account=account, qos=qos)


def _nice(change: Change, value: int) -> None:
    if value < 0 and not change.caller.operator:
        raise SlurmError(Errno.ACCESS_DENIED)
    if abs(value) > submission.MAXIMUM_NICE:
        raise SlurmError(Errno.INVALID_NICE)
    job = change.job
    if job.priority:
        moved = job.priority + (job.request.nice or 0) - value
        change.job = replace(job, priority=min(max(1, moved), HIGHEST))
    change.request(nice=value)


def _priority(change: Change, value: int) -> None:
    """0 holds, and a held job has to be released first. Users can't set it otherwise: it would be lost at the next count."""
    job = change.job
    if value == 0:
        reason = Reason.JOB_HELD_ADMIN if change.caller.operator else Reason.JOB_HELD_USER
        change.job = replace(job, priority=0, reason=reason if job.pending else job.reason)
        return
    if not change.caller.operator:
        raise SlurmError(Errno.PRIO_RESET_FAIL)
    reason = Reason.NONE if job.reason in HELD_REASONS and job.pending else job.reason
    if value >= NO_VALUE:
        change.job = replace(job, reason=reason, priority=job.priority or priority_of(change.turn, job))
        change.request(priority=None)
        return
    if job.priority == 0 and job.pending:
        raise SlurmError(Errno.JOB_HELD)
    change.job = replace(job, priority=value, reason=reason)
    change.request(priority=value)


def _dependency(change: Change, value: str) -> None:
    state, job = change.turn.state, change.job
    wanted = dependencies.accept(state, value, job.job_id, held=job.priority == 0) if value else None
    change.request(dependency=format_dependency(wanted) if wanted else None)
    if change.job.priority:
        change.job = replace(change.job, reason=Reason.DEPENDENCY if wanted else Reason.NONE)
    if not wanted and job.eligible_time == 0:
        change.job = replace(change.job, eligible_time=max(change.turn.now, job.request.begin_time or 0))
    change.dependency = True


def _array_throttle(change: Change, value: int) -> None:
    job = change.job
    if not job.array_job_id:
        raise SlurmError(Errno.NOT_SUPPORTED)
    if value < 0:
        raise SlurmError(Errno.INVALID_ARRAY)
    change.job = replace(job, array_maximum_running=value)


def _begin_time(change: Change, value: int) -> None:
    turn_time = change.turn.now
    later = value > turn_time
    change.request(begin_time=value if later else None)
    job = replace(change.job, eligible_time=max(value, turn_time))
    if job.priority and job.request.dependency is None:
        accrue = 0 if later else turn_time
        job = replace(job, reason=Reason.BEGIN_TIME if later else Reason.NONE, accrue_time=accrue)
    change.job = job


def _deadline(change: Change, value: int) -> None:
    if value < change.turn.now:
        raise SlurmError(Errno.INVALID_TIME_VALUE)
    change.request(deadline=value)


def _nodes(field: str) -> Setter:
    def setter(change: Change, value: str) -> None:
        change.request(**{field: value or None})
        submission.check_nodes(change.turn.state, change.job.request)
        change.resized |= change.job.pending

    return setter


def _keeps(resized: Callable[[Job, Any], Job]) -> Setter:
    """Give nodes back while it runs."""

    def setter(change: Change, value: Any) -> None:
        if value != 0 and "disable_job_shrink" in change.turn.state.site.scheduler_parameters:
            raise SlurmError(Errno.NOT_SUPPORTED)
        job = resized(change.job, value)
        change.kept |= job is not change.job
        change.job = job

    return setter


def _constraints(change: Change, value: str) -> None:
    if value and unknown_features(change.turn.state, value):
        raise SlurmError(Errno.INVALID_FEATURE)
    change.request(constraints=value or None)
    change.resized = True


def _licenses(change: Change, value: str) -> None:
    submission.check_licenses(change.turn.state, value)
    change.request(licenses=value or None)


def _reservation(change: Change, value: str) -> None:
    change.request(reservation=value or None)
    reservation_use.check_use(change.turn.state, change.turn.directory, change.job)


def _mail_type(change: Change, value: tuple[str, ...]) -> None:
    change.request(mail_type=value)
    change.limit |= phase_of(change.job) is Phase.RUNNING  # its marks are to be looked for


def _positive(name: str, refusal: Errno | None = None) -> Setter:
    """A count; 0 is refused, or changes nothing."""

    def setter(change: Change, value: int) -> None:
        if value:
            change.request(**{name: value})
            change.resized = True
        elif refusal is not None:
            raise SlurmError(refusal)

    return setter


def _memory(name: str, other: str) -> Setter:
    """Memory for each node or each CPU: what was said for each of the other holds no longer."""

    def setter(change: Change, value: int | None) -> None:
        change.request(**{name: value, other: None, "memory_per_tres": None})
        change.resized = True

    return setter


def _node_count(change: Change, value: int) -> None:
    if not value:
        raise SlurmError(Errno.INVALID_NODE_COUNT)
    change.request(minimum_nodes=value)
    change.resized = True


_NO_GRES = frozenset({"cpu", "mem", "node", "license", "bb", "billing", "energy"})


def _tres(name: str) -> Setter:
    """``gres/gpu:2``, and for each task also ``cpu=2``; what is no TRES is refused. Whether there is such a GRES is seen with
    the job's size. Raises SlurmError."""

    def setter(change: Change, value: str | None) -> None:
        for word in (value or "").split(","):
            kind = re.split("[:=/]", word, maxsplit=1)[0]
            if word and not word.startswith("gres/") and kind not in _NO_GRES:
                raise SlurmError(Errno.INVALID_TRES)
        needed = _NEEDED.get(name, ())
        if value and needed and not any(getattr(change.job.request, each) for each in needed):
            raise SlurmError(Errno.INVALID_GRES)
        change.request(**{name: value})
        change.resized = True

    return setter


_PER_GRES = ("tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task")
_NEEDED = {"cpus_per_tres": _PER_GRES, "memory_per_tres": _PER_GRES, "tres_per_socket": ("sockets_per_node",)}
"""What a job must ask for besides."""


def _shared(change: Change, value: str | None) -> None:
    """Who shares no longer has not asked for whole nodes."""
    if value is not None or change.job.request.shared == "oversubscribe":
        change.request(shared=value)
        change.resized = True


def _tres_per_node(change: Change, value: str | None) -> None:
    """Of one GRES some with a type and some without make no sense. Raises SlurmError."""
    words = [re.split("[:=]", word.removeprefix("gres/")) for word in (value or "").split(",") if word.startswith("gres/")]
    typed = {word[0] for word in words if len(word) > 1 and not word[1].isdigit()}
    if typed & {word[0] for word in words if len(word) == 1 or word[1].isdigit()}:
        raise SlurmError(Errno.INVALID_GRES_TYPE)
    _tres("tres_per_node")(change, value)


def _tres_bind(change: Change, value: str | None) -> None:
    if value and not is_tres_binding(value):
        raise SlurmError(Errno.INVALID_TRES)
    change.request(tres_bind=value)


def _tres_freq(change: Change, value: str | None) -> None:
    if value and not value.startswith("gpu:"):
        raise SlurmError(Errno.INVALID_TRES)
    change.request(tres_freq=value)


def _prefer(change: Change, value: str | None) -> None:
    if value and unknown_features(change.turn.state, value):
        raise SlurmError(Errno.INVALID_PREFER)
    change.request(prefer=value)


def _requeue(change: Change, value: int) -> None:
    change.request(requeue=bool(value))


def _clusters(change: Change, value: str) -> None:
    """There is no federation whose clusters a job could be on."""
    raise SlurmError(Errno.ERROR)


def _specialised(change: Change, value: int) -> None:
    """No job may keep cores for the system where AllowSpecResourcesUsage does not allow it, and here there are none."""
    raise SlurmError(Errno.ACCESS_DENIED)


def _admin_comment(change: Change, value: str) -> None:
    change.job = replace(change.job, admin_comment=value)


def _system_comment(change: Change, value: str) -> None:
    change.job = replace(change.job, system_comment=value)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_WAITING = frozenset({Phase.PENDING})
_ALIVE = frozenset({Phase.PENDING, Phase.RUNNING, Phase.SUSPENDED, Phase.COMPLETING})
_RUNNING = frozenset({Phase.RUNNING, Phase.SUSPENDED})
_ALWAYS = frozenset(Phase)
_AFTERWARDS = frozenset({"admin_comment", "system_comment", "extra", "comment"})

_SIZES = _words(
    "maximum_nodes nodes minimum_cpus maximum_cpus tasks_per_socket tasks_per_core temporary_disk_per_node"
    " sockets_per_node cores_per_socket threads_per_core contiguous overcommit required_switches"
)
_PLAIN = _words(
    "wait_for_switch delay_boot wckey reboot standard_input standard_output standard_error current_working_directory"
)

_TRES = _words("tres_per_job tres_per_socket tres_per_task cpus_per_tres memory_per_tres")

_LONGEST = dict.fromkeys(
    _words(
        "name comment extra constraints prefer account partition qos wckey mail_user reservation"
        " tres_per_node tres_bind tres_freq"
    )
    + _TRES,
    1024,
) | dict.fromkeys(_words("standard_input standard_output standard_error current_working_directory"), 4096)
"""Characters that a text may have."""

_COUNTS = frozenset(_words("minimum_cpus tasks minimum_nodes tasks_per_node minimum_cpus_per_node"))
"""Sizes that are looked at even for a job that is held."""

FIELDS: dict[str, Field] = {
    "name": Field(_name, _ALIVE),
    "comment": Field(_request_field("comment"), _ALIVE, refusal=Errno.JOB_FINISHED),
    "extra": Field(_request_field("extra"), _ALIVE, refusal=Errno.JOB_FINISHED),
    "admin_comment": Field(_admin_comment, _ALWAYS, operator=True),
    "system_comment": Field(_system_comment, _ALWAYS, operator=True),
    "time_limit": Field(_time_limit, _ALIVE),
    "time_minimum": Field(_time_minimum, _WAITING),
    "partition": Field(_partition, _WAITING),
    "account": Field(_account, _WAITING),
    "qos": Field(_qos, _WAITING),
    "nice": Field(_nice, _ALIVE),
    "priority": Field(_priority, _ALIVE),
    "core_specification": Field(_specialised, _ALWAYS),
    "thread_specification": Field(_specialised, _ALWAYS),
    "dependency": Field(_dependency, _WAITING),
    "array_maximum_running": Field(_array_throttle, _ALIVE),
    "begin_time": Field(_begin_time, _WAITING),
    "deadline": Field(_deadline, _WAITING),
    "requeue": Field(_requeue, _ALIVE),
    "clusters": Field(_clusters, _ALIVE),
    "prefer": Field(_prefer, _WAITING),
    "shared": Field(_shared, _WAITING),
    "tasks": Field(_positive("tasks"), _WAITING),
    "cpus_per_task": Field(_positive("cpus_per_task", Errno.INVALID_CPU_COUNT), _WAITING),
    "minimum_nodes": Field(_node_count, _WAITING),
    "kept_count": Field(_keeps(resizing.kept_by_count), _RUNNING),
    "kept_nodes": Field(_keeps(resizing.kept_by_name), _RUNNING),
    "minimum_cpus_per_node": Field(_positive("minimum_cpus_per_node"), _WAITING),
    "tasks_per_node": Field(_positive("tasks_per_node"), _WAITING),
    "memory_per_node": Field(_memory("memory_per_node", "memory_per_cpu"), _WAITING),
    "memory_per_cpu": Field(_memory("memory_per_cpu", "memory_per_node"), _WAITING),
    "tres_per_node": Field(_tres_per_node, _WAITING),
    "tres_bind": Field(_tres_bind, _WAITING),
    "tres_freq": Field(_tres_freq, _WAITING),
    **{name: Field(_tres(name), _WAITING) for name in _TRES},
    "mail_type": Field(_mail_type, _ALIVE),
    "mail_user": Field(_request_field("mail_user"), _ALIVE),
    "kill_on_node_fail": Field(_request_field("kill_on_node_fail"), _ALIVE),
    "required_nodes": Field(_nodes("required_nodes"), _ALIVE),
    "excluded_nodes": Field(_nodes("excluded_nodes"), _WAITING),
    "constraints": Field(_constraints, _WAITING),
    "licenses": Field(_licenses, _WAITING, refusal=Errno.ACCESS_DENIED),
    "reservation": Field(_reservation, _WAITING),
    "site_factor": Field(_request_field("site_factor"), _WAITING, operator=True),
    **{name: Field(_request_field(name, resized=True), _WAITING) for name in _SIZES},
    **{name: Field(_request_field(name), _WAITING) for name in _PLAIN},
}
"""JobRequest's names of fields (and ``array_maximum_running``, and those of ``resizing``) -> how they are changed."""


def update_step(turn: Turn, event: UpdateStep) -> None:
    """scontrol update StepId=…: what the records say; the step's manager enforces it."""
    job = turn.state.jobs.get(event.job_id)
    chosen = [step for step in job.steps if event.step_id in (None, step.step_id)] if job is not None else []
    try:
        if job is None:
            raise SlurmError(Errno.INVALID_JOB_ID)
        _check_owner(event.caller, job)
        if event.step_id is not None and not chosen:
            raise SlurmError(Errno.INVALID_JOB_ID)
    except SlurmError as error:
        turn.emit(Refused(error))
        return
    changed = {step.step_id: replace(step, time_limit=event.time_limit) for step in chosen}
    turn.state.put(replace(job, steps=tuple(changed.get(step.step_id, step) for step in job.steps)))
    for step in changed.values():
        turn.keep(SaveStep(step, job.restarts))
    turn.emit(Accepted((job.job_id,)))


# --------------------------------------------------------------------------------------------- priority, restart


def factors_of(turn: Turn, job: Job) -> Factors:
    """The parts of a job's priority as they are now."""
    partition = turn.state.partitions.get(job.partitions[0]) if job.partitions else None
    demand = demand_in(turn.state, job.request, partition, job.credentials.user_id)
    return factors(turn.state, turn.directory, job, turn.now, demand.minimum_nodes, least_cpus(demand))


def age(turn: Turn, job_id: int) -> None:
    """Count a waiting job's priority anew. Not saved: it comes from what is saved, and the time."""
    job = turn.state.jobs.get(job_id)
    if job is None or not job.pending or job.priority == 0 or job.request.priority is not None:
        return
    priority = factors_of(turn, job).total
    if priority != job.priority:
        turn.state.put(replace(job, priority=priority))


def restore_job(turn: Turn, job: Job) -> None:
    """Set up again what is not saved with a job: whom it waits for and when it is to be looked at."""
    running = tuple(step for step in job.steps if not step.end_time)
    if len(running) != len(job.steps):
        job = replace(job, steps=running)
        turn.state.put(job)
    phase = phase_of(job)
    if phase is Phase.PENDING:
        if job.request.dependency is not None:
            dependencies.watch(turn.state, job, dependencies.parse(job.request.dependency))
            dependencies.test(turn, job)
        set_alarms(turn, job)
    elif phase is Phase.RUNNING:
        watch_limit(turn, job)
        mail.watch_marks(turn, job)
    elif phase is Phase.SUSPENDED:
        turn.wake_at(turn.now, job.job_id)
    elif phase is Phase.FINISHED:
        turn.state.forget_at(job.end_time + turn.state.site.minimum_job_age, job.job_id)
    if not job.state.finished and job.priority:
        turn.state.lowest_priority = min(turn.state.lowest_priority, job.priority)
