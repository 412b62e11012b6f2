"""Reports about jobs that run: for every phase of a job and every report, what it becomes.

A report names the attempt it speaks of (``restart``). What an earlier attempt still has to say is passed over, as is any
report that the table has no row for: reports may come late, twice, or for a job that is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from signal import strsignal
from typing import Any, TypeAlias

from slurmk.core.effects import SaveStep, UpdateLimit
from slurmk.core.endings import end, expedite, release, requeue, try_later, waits_for_epilogs
from slurmk.core.events import (
    BatchEnded,
    JobStarted,
    LaunchFailed,
    NodeFailed,
    NodesReleased,
    Preempted,
    StepEnded,
    StepStarted,
    Withdrawn,
)
from slurmk.core.state import Phase, Turn, limit_end, phase_of, watch_limit
from slurmk.model.job import BATCH_STEP, FIRST_SPECIAL_STEP, Job, Step
from slurmk.model.states import JobFlag, JobState, Reason

Report: TypeAlias = (
    JobStarted | LaunchFailed | StepStarted | StepEnded | BatchEnded | NodesReleased | NodeFailed | Preempted | Withdrawn
)


def report(turn: Turn, event: Report) -> None:
    """Handle a report by its row of the table."""
    job_id = event.step.job_id if isinstance(event, StepStarted | StepEnded) else event.job_id
    job = turn.state.jobs.get(job_id)
    if job is None or job.restarts != event.restart or job.allocation is None:
        return
    transition = TRANSITIONS.get((phase_of(job), type(event)))
    if transition is not None:
        transition(turn, job, event)


def _running_started(turn: Turn, job: Job, event: JobStarted) -> None:
    if not job.flags & JobFlag.CONFIGURING:
        return
    job = replace(job, flags=job.flags & ~JobFlag.CONFIGURING, launch_failures=0)
    begun = job.start_time if event.begun is None else min(max(job.start_time, int(event.begun)), turn.now)
    if begun == job.start_time:
        turn.save(job)
        return
    job = replace(job, start_time=begun)
    end = limit_end(job)
    job = turn.save(replace(job, end_time=end or 0))
    if end is not None:
        turn.emit(UpdateLimit(job.job_id, job.restarts, end))
        watch_limit(turn, job)


def _suspended_started(turn: Turn, job: Job, event: JobStarted) -> None:
    """It was suspended before its nodes had begun with it; its time stands still."""
    if job.flags & JobFlag.CONFIGURING:
        turn.save(replace(job, flags=job.flags & ~JobFlag.CONFIGURING, launch_failures=0))


def _running_ended(turn: Turn, job: Job, event: BatchEnded) -> None:
    state, reason = _outcome(event)
    gone = frozenset(turn.state.released.get(job.job_id, ()))
    if state is JobState.FAILED and not event.exit_code & 0x7F and _run_again(turn, job, event.exit_code, gone):
        return
    description = _signal_text(event.exit_code & 0x7F) if reason is Reason.RAISED_SIGNAL else ""
    end(turn, job, state, reason, description=description, exit_code=event.exit_code, gone=gone)
    if not job.het_job_offset:
        for other in other_components(turn, job):
            end(turn, other, state, reason, description=description, exit_code=event.exit_code)


def _run_again(turn: Turn, job: Job, exit_code: int, gone: frozenset[str]) -> bool:
    """Whether the script's exit code is one that puts the job back in the queue: RequeueExit and RequeueExitHold, or any for
    --requeue=expedite, whether held or first of all is for the epilogs to say."""
    site, code = turn.state.site, exit_code >> 8
    if not may_requeue(turn, job) or job.het_job_id:
        return False
    if job.request.expedited_requeue:
        requeue(turn, replace(job, exit_code=exit_code), Reason.NON_ZERO_EXIT_CODE, held=True, gone=gone)
        return True
    held = code in site.requeue_exit_hold
    if not (held or code in site.requeue_exit):
        return False
    flags = job.flags | (JobFlag.SPECIAL_EXIT if held else JobFlag.NONE)
    reason = Reason.JOB_HELD_USER if held else Reason.NONE
    requeue(turn, replace(job, exit_code=exit_code, flags=flags), reason, held=held, gone=gone)
    return True


def other_components(turn: Turn, job: Job) -> list[Job]:
    """Components of the same het job that hold nodes and are not ending."""
    members = sorted(turn.state.by_het.get(job.het_job_id, ())) if job.het_job_id else ()
    others = [turn.state.jobs[member] for member in members if member != job.job_id]
    return [other for other in others if phase_of(other) in (Phase.RUNNING, Phase.SUSPENDED)]


def _signal_text(number: int) -> str:
    """As Slurm words it: ``RaisedSignal:15(Terminated)``."""
    try:
        name = strsignal(number)
    except ValueError:
        name = None
    return f"{Reason.RAISED_SIGNAL.value}:{number}({name or f'Unknown signal {number}'})"


def _outcome(event: BatchEnded) -> tuple[JobState, Reason]:
    """Final state and reason from what the batch script came to."""
    if event.timed_out:
        return JobState.TIMEOUT, Reason.TIME_LIMIT
    if event.out_of_memory:
        return JobState.OUT_OF_MEMORY, Reason.OUT_OF_MEMORY
    if event.exit_code == 0:
        return JobState.COMPLETED, Reason.NONE
    return JobState.FAILED, Reason.RAISED_SIGNAL if event.exit_code & 0x7F else Reason.NON_ZERO_EXIT_CODE


def _completing_ended(turn: Turn, job: Job, event: BatchEnded) -> None:
    """The script of a job that was killed has ended: only its exit code is news."""
    if job.state.finished and event.exit_code != job.exit_code:
        turn.save(replace(job, exit_code=event.exit_code))


def _released(turn: Turn, job: Job, event: NodesReleased) -> None:
    release(turn, job, frozenset(event.nodes))


def _running_launch_failed(turn: Turn, job: Job, event: LaunchFailed) -> None:
    """A batch job goes back to the queue, held, so that it does not fail for ever; an allocation has failed. What may pass
    makes every job that has not begun wait for a while."""
    if event.retry and job.flags & JobFlag.CONFIGURING:
        gone = frozenset(event.nodes)
        for component in (job, *other_components(turn, job)):
            try_later(turn, component, event.message, gone)
            gone = frozenset()
        return
    if not job.batch:
        job = turn.save(replace(job, system_comment=event.message))
        end(turn, job, JobState.FAILED, Reason.JOB_LAUNCH_FAILURE, kill_wait=0, gone=frozenset(event.nodes))
        return
    gone = frozenset(event.nodes)
    for component in (job, *other_components(turn, job)):
        failed = replace(component, flags=component.flags | JobFlag.LAUNCH_FAILED, system_comment=event.message)
        requeue(turn, failed, Reason.JOB_LAUNCH_FAILURE, held=True, gone=gone)
        gone = frozenset()  # of the other components nothing is gone


def _node_failed(turn: Turn, job: Job, event: NodeFailed) -> None:
    """Nodes were lost: the job goes on without them (--no-kill), is queued again, or is over."""
    assert job.allocation is not None
    lost = frozenset(event.nodes) & frozenset(job.allocation.nodes)
    if lost:
        lose_nodes(turn, job, lost)


def lose_nodes(turn: Turn, job: Job, lost: frozenset[str], *, gone: bool = True) -> None:
    """A running job may not use these nodes any more. ``gone``: nothing of the job is left on them. Where it ends or goes
    back to the queue, the other components of its het job go with it."""
    free = lost if gone else frozenset()
    assert job.allocation is not None
    names = ",".join(name for name in job.allocation.nodes if name in lost)
    left = tuple(share for share in job.allocation.shares if share.node not in lost)
    if job.request.kill_on_node_fail is False and left and job.allocation.nodes[0] not in lost:
        turn.save(replace(job, allocation=replace(job.allocation, shares=left)))
        turn.wake_planner()
        return
    for component in (job, *other_components(turn, job)):
        if may_requeue(turn, job):
            expedited = JobFlag.EXPEDITING if job.request.expedited_requeue else JobFlag.NONE
            requeue(
                turn,
                replace(component, flags=component.flags | expedited),
                Reason.NODE_DOWN,
                held=False,
                gone=free,
                failed_node=names,
                ended_as=JobState.NODE_FAIL,
            )
        else:
            end(turn, component, JobState.NODE_FAIL, Reason.NODE_DOWN, failed_node=names, gone=free)
        free = frozenset()  # of the other components nothing is gone


def _preempted(turn: Turn, job: Job, event: Preempted) -> None:
    """The job gave way to others: it is queued again where it may be, or over."""
    gone = frozenset(event.nodes) | frozenset(turn.state.released.get(job.job_id, ()))
    again = may_requeue(turn, job)
    for component in (job, *other_components(turn, job)):
        noted = replace(component, system_comment=event.message)
        if again:
            requeue(turn, noted, Reason.NONE, held=False, gone=gone, ended_as=JobState.PREEMPTED)
        else:
            end(turn, noted, JobState.PREEMPTED, Reason.NONE, gone=gone)
        gone = frozenset()


def _withdrawn(turn: Turn, job: Job, event: Withdrawn) -> None:
    """Somebody took the job away by other tools: as if root had cancelled it."""
    gone = frozenset(event.nodes) | frozenset(turn.state.released.get(job.job_id, ()))
    for component in (job, *other_components(turn, job)):
        noted = replace(component, system_comment=event.message)
        end(turn, noted, JobState.CANCELLED, Reason.NONE, user_id=0, gone=gone)
        gone = frozenset()


def _completing_gone(turn: Turn, job: Job, event: Preempted | Withdrawn | LaunchFailed) -> None:
    release(turn, job, frozenset(event.nodes))


def may_requeue(turn: Turn, job: Job) -> bool:
    """Whether the job may be run again: a batch job whose user or site allows it."""
    wanted = job.request.requeue
    return job.batch and (turn.state.site.job_requeue if wanted is None else wanted)


def _completing_node_failed(turn: Turn, job: Job, event: NodeFailed) -> None:
    if waits_for_epilogs(job):
        job = expedite(turn, job)
    release(turn, job, frozenset(event.nodes))


def _step_started(turn: Turn, job: Job, event: StepStarted) -> None:
    step = _as_held(job, event.step)
    others = tuple(each for each in job.steps if each.step_id != step.step_id)
    number = max(job.next_step, step.step_id + 1) if step.step_id < FIRST_SPECIAL_STEP else job.next_step
    turn.state.put(replace(job, steps=(*others, step), next_step=number))
    turn.keep(SaveStep(step, event.restart))


def _step_ended(turn: Turn, job: Job, event: StepEnded) -> None:
    """The highest exit code of the steps is the job's derived one; only steps that still run are kept."""
    step = _as_held(job, event.step)
    known = next((each for each in job.steps if each.step_id == step.step_id), None)
    if step.state is JobState.CANCELLED and known is not None and known.killed_by is not None:
        step = replace(step, killed_by=known.killed_by)
    others = tuple(each for each in job.steps if each.step_id != step.step_id)
    derived = job.derived_exit_code if step.step_id >= FIRST_SPECIAL_STEP else max(job.derived_exit_code, step.exit_code)
    job = replace(job, steps=others, derived_exit_code=derived)
    if derived != turn.state.jobs[job.job_id].derived_exit_code:
        turn.save(job)
    else:
        turn.state.put(job)
    turn.keep(SaveStep(step, event.restart))


def _as_held(job: Job, step: Step) -> Step:
    """The batch script's step holds the GRES of the job's first node."""
    if step.step_id != BATCH_STEP or step.gres or job.allocation is None:
        return step
    held: dict[str, int] = {}
    for gres in job.allocation.shares[0].gres:
        held[f"gres/{gres.name}"] = held.get(f"gres/{gres.name}", 0) + gres.count
    return replace(step, gres=",".join(f"{name}={count}" for name, count in held.items())) if held else step


def _finished_step_ended(turn: Turn, job: Job, event: StepEnded) -> None:
    """A step's own report was slower than that of its nodes: it replaces what was written in its stead."""
    _step_ended(turn, job, event)


Transition: TypeAlias = Callable[[Turn, Job, Any], None]

TRANSITIONS: dict[tuple[Phase, type[Report]], Transition] = {
    (Phase.RUNNING, JobStarted): _running_started,
    (Phase.RUNNING, LaunchFailed): _running_launch_failed,
    (Phase.RUNNING, StepStarted): _step_started,
    (Phase.RUNNING, StepEnded): _step_ended,
    (Phase.RUNNING, BatchEnded): _running_ended,
    (Phase.RUNNING, NodesReleased): _released,
    (Phase.RUNNING, NodeFailed): _node_failed,
    (Phase.RUNNING, Preempted): _preempted,
    (Phase.RUNNING, Withdrawn): _withdrawn,
    (Phase.SUSPENDED, JobStarted): _suspended_started,
    (Phase.SUSPENDED, LaunchFailed): _running_launch_failed,
    (Phase.SUSPENDED, StepStarted): _step_started,
    (Phase.SUSPENDED, StepEnded): _step_ended,
    (Phase.SUSPENDED, BatchEnded): _running_ended,
    (Phase.SUSPENDED, NodesReleased): _released,
    (Phase.SUSPENDED, NodeFailed): _node_failed,
    (Phase.SUSPENDED, Preempted): _preempted,
    (Phase.SUSPENDED, Withdrawn): _withdrawn,
    (Phase.COMPLETING, StepEnded): _step_ended,
    (Phase.COMPLETING, BatchEnded): _completing_ended,
    (Phase.COMPLETING, NodesReleased): _released,
    (Phase.COMPLETING, NodeFailed): _completing_node_failed,
    (Phase.COMPLETING, LaunchFailed): _completing_gone,
    (Phase.COMPLETING, Preempted): _completing_gone,
    (Phase.COMPLETING, Withdrawn): _completing_gone,
    (Phase.FINISHED, StepEnded): _finished_step_ended,
    (Phase.FINISHED, BatchEnded): _completing_ended,
}
"""(phase, report) -> what it does."""
