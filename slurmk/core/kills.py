"""scancel: who may end or signal which job, and what that does to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from slurmk.core import arrays, selection
from slurmk.core.effects import Accepted, Refused, Signal
from slurmk.core.endings import end, finish_pending
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import Caller, JobSelection, Kill, KillFlag
from slurmk.core.state import Phase, Turn, phase_of
from slurmk.core.suspension import SIGCONT, SIGSTOP
from slurmk.model.job import Job
from slurmk.model.states import JobFlag, JobState, Reason

SIGKILL = 9


def may_change(caller: Caller, job: Job) -> bool:
    """A job is its user's and the operators' to change."""
    return caller.operator or caller.user_id == job.credentials.user_id


def for_each(turn: Turn, selections: tuple[JobSelection, ...], act: Callable[[JobSelection, selection.Selected], None]) -> None:
    """Do it to every record of every selection; a selection whose records all refuse is refused by the last reason."""
    done: list[int] = []
    refused = False
    for chosen in selections:
        error: SlurmError | None = None
        good = False
        try:
            for selected in selection.select(turn.state, chosen):
                try:
                    act(chosen, selected)
                    done.append(selected.job.job_id)
                    good = True
                except SlurmError as problem:
                    error = error if error and _weightier(error, problem) else problem
        except SlurmError as problem:
            error = problem
        if error is not None and not good:
            refused = True
            turn.emit(Refused(error, selection.name_of(chosen)))
    if done or not refused:
        turn.emit(Accepted(tuple(dict.fromkeys(done))))


Fared: TypeAlias = list[tuple[tuple[int, ...], SlurmError | None]]
"""Elements of an array, and why they refused; None is well."""


def for_each_element(
    turn: Turn, selections: tuple[JobSelection, ...], act: Callable[[JobSelection, selection.Selected], None]
) -> None:
    """Do it to every record of every selection. A refusal of some elements of an array tells how each of them fared."""
    done: list[int] = []
    refused = False
    for chosen in selections:
        fared = _act_on_records(turn, chosen, act, done)
        error = next((error for _, error in fared if error is not None), None)
        if error is not None:
            refused = True
            of_array = bool(chosen.array_tasks) or chosen.job_id in turn.state.by_array
            turn.emit(Refused(error, selection.name_of(chosen), elements=_grouped(fared) if of_array else ()))
    if done or not refused:
        turn.emit(Accepted(tuple(dict.fromkeys(done))))


def _act_on_records(
    turn: Turn, chosen: JobSelection, act: Callable[[JobSelection, selection.Selected], None], done: list[int]
) -> Fared:
    """How the records of a selection fared; elements that it names and that are not there are unknown."""
    if not _within_limit(turn, chosen):
        return [((), SlurmError(Errno.INVALID_JOB_ID))]
    fared: Fared = []
    unknown = set(chain.from_iterable(chosen.array_tasks))
    try:
        found = selection.select(turn.state, chosen)
    except SlurmError as problem:
        return [(tuple(unknown), problem)]
    for selected in found:
        elements = _elements(selected)
        unknown.difference_update(elements)
        try:
            act(chosen, selected)
            done.append(selected.job.job_id)
            fared.append((elements, None))
        except SlurmError as problem:
            fared.append((elements, problem))
    return [*fared, (tuple(unknown), SlurmError(Errno.INVALID_JOB_ID))] if unknown else fared


def _within_limit(turn: Turn, chosen: JobSelection) -> bool:
    return all(part[-1] < turn.state.site.maximum_array_size for part in chosen.array_tasks if part)


def _elements(selected: selection.Selected) -> tuple[int, ...]:
    job = selected.job
    if selected.tasks is not None:
        return selected.tasks
    return tuple(chain.from_iterable(job.array_tasks)) if job.array_task_id is None else (job.array_task_id,)


def _grouped(fared: Fared) -> tuple[tuple[tuple[int, ...], SlurmError | None], ...]:
    """Those that fared alike together, the group with the lowest element first."""
    groups: dict[str, tuple[set[int], SlurmError | None]] = {}
    for elements, error in fared:
        groups.setdefault(str(error), (set(), error))[0].update(elements)
    ordered = ((tuple(sorted(elements)), error) for elements, error in groups.values() if elements)
    return tuple(sorted(ordered, key=lambda group: group[0]))


def _weightier(first: SlurmError, second: SlurmError) -> bool:
    """That an element is over already says less than any other refusal."""
    return second.errno is Errno.ALREADY_DONE and first.errno is not Errno.ALREADY_DONE


def kill(turn: Turn, event: Kill) -> None:
    """End or signal the selected jobs and steps."""

    def act(chosen: JobSelection, selected: selection.Selected) -> None:
        if not may_change(event.caller, selected.job):
            raise SlurmError(Errno.ACCESS_DENIED)
        if selected.job.request.crontab is not None and not event.flags & KillFlag.CRON and _cron_is_meant(turn):
            raise SlurmError(Errno.CANNOT_CANCEL_CRON_JOB)
        if phase_of(selected.job) is Phase.PENDING and selection.is_lone_component(chosen, selected.job):
            raise SlurmError(Errno.NOT_WHOLE_HET_JOB)
        if chosen.step_id is not None:
            _kill_step(turn, selected.job, chosen.step_id, event)
            return
        row = _KILLS.get(phase_of(selected.job))
        if row is None:
            raise SlurmError(Errno.ALREADY_DONE)
        row(turn, selected, event)

    for_each(turn, tuple(_of_leader(turn, chosen) for chosen in event.selections), act)


def _of_leader(turn: Turn, chosen: JobSelection) -> JobSelection:
    """Who ends the first component of a het job ends all of it."""
    chosen = selection.wholly(turn.state, chosen)
    whole = chosen.het_offset == 0 and chosen.step_id is None and chosen.job_id in turn.state.by_het
    return replace(chosen, het_offset=None) if whole else chosen


def _cron_is_meant(turn: Turn) -> bool:
    """Whether who cancels a job of scrontab has to say so (ScronParameters=explicit_scancel)."""
    return "explicit_scancel" in turn.state.site.parameters.get("ScronParameters", "").lower().replace(" ", "").split(",")


def _kills(event: Kill) -> bool:
    return event.signal is None or event.signal == SIGKILL


def _cancels(event: Kill) -> bool:
    """KILL ends the job, unless only its batch shell is meant."""
    return _kills(event) and not event.flags & KillFlag.BATCH


def _pending(turn: Turn, selected: selection.Selected, event: Kill) -> None:
    """Waiting elements of an array are taken out of its record and leave no other trace, as in Slurm."""
    if not _kills(event):
        raise SlurmError(Errno.TRANSITION_STATE_NO_UPDATE)
    job = selected.job
    if selected.tasks is None:
        finish_pending(turn, job, JobState.CANCELLED, None, event.caller.user_id)
        return
    for task in selected.tasks:
        job = replace(job, array_tasks=arrays.without(job.array_tasks, task))
    turn.save(job)
    turn.wake_planner()


def _running(turn: Turn, selected: selection.Selected, event: Kill) -> None:
    """A signal that does not end the job has to wait until its script is there: it would be lost."""
    job = selected.job
    if not _cancels(event) and job.flags & JobFlag.CONFIGURING:
        raise SlurmError(Errno.TRANSITION_STATE_NO_UPDATE)
    if not _cancels(event):
        _note_standing(turn, job, event.signal)
        turn.emit(Signal(job.job_id, job.restarts, event.signal or SIGKILL, None, event.flags & ~KillFlag.CRON))
        return
    end(turn, job, JobState.CANCELLED, Reason.NONE, user_id=event.caller.user_id)


def _note_standing(turn: Turn, job: Job, signal: int | None) -> None:
    """A job that was sent SIGSTOP stands still with all that it holds until SIGCONT; a suspended one does anyhow."""
    flags = {SIGSTOP: job.flags | JobFlag.STOPPED, SIGCONT: job.flags & ~JobFlag.STOPPED}.get(signal or 0, job.flags)
    if flags != job.flags and job.state is JobState.RUNNING:
        turn.save(replace(job, flags=flags))


def _completing(turn: Turn, selected: selection.Selected, event: Kill) -> None:
    """A job on its way back to the queue is cancelled for good; one that is ending anyhow is not disturbed."""
    job = selected.job
    if job.state is not JobState.PENDING or not _cancels(event):
        raise SlurmError(Errno.ALREADY_DONE)
    released = frozenset(turn.state.released.get(job.job_id, ()))
    end(turn, job, JobState.CANCELLED, Reason.NONE, user_id=event.caller.user_id, gone=released)


_KILLS = {
    Phase.PENDING: _pending,
    Phase.RUNNING: _running,
    Phase.SUSPENDED: _running,
    Phase.COMPLETING: _completing,
}


def _kill_step(turn: Turn, job: Job, step_id: int, event: Kill) -> None:
    if phase_of(job) not in (Phase.RUNNING, Phase.SUSPENDED):
        raise SlurmError(Errno.ALREADY_DONE if job.state.finished else Errno.TRANSITION_STATE_NO_UPDATE)
    if all(step.step_id != step_id for step in job.steps):
        raise SlurmError(Errno.INVALID_JOB_ID)
    flags = event.flags & ~KillFlag.CRON
    if event.signal is None:  # its end tells who it was
        flags |= KillFlag.CANCEL
        steps = (replace(step, killed_by=event.caller.user_id) if step.step_id == step_id else step for step in job.steps)
        turn.save(replace(job, steps=tuple(steps)))
    turn.emit(Signal(job.job_id, job.restarts, event.signal or SIGKILL, step_id, flags))
