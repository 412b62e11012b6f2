"""How jobs leave: cancelled while waiting, ended by themselves, killed, lost with a node, put back in the queue, forgotten."""

from __future__ import annotations

import heapq
import re
from dataclasses import replace

from grammar.crontab import parse_spec
from slurmk.core import arrays, mail
from slurmk.core.effects import ForgetJob, RunEpilog, SaveStep, Terminate
from slurmk.core.events import EpilogEnded
from slurmk.core.licenses import are_licenses, no_longer_valid
from slurmk.core.priority import priority_of
from slurmk.core.state import Phase, Turn, phase_of
from slurmk.model.job import Job
from slurmk.model.site import Site
from slurmk.model.states import JobFlag, JobState, Reason

CREDENTIALS_EXPIRE = 120
"""Seconds that Slurm's credentials are good for (AuthInfo=cred_expire): a job that was requeued waits longer than that."""

REQUEUED_HELD = "job requeued in held state"
REQUEUED_SPECIAL = "job requeued in special exit state"
FIRST_RETRY_DELAY = 60
LONGEST_RETRY_DELAY = 3600
"""Seconds that a job waits after its launch failed for a reason that may pass; doubled with each failure in a row."""

LAUNCH_FAILED = "launch failed requeued held"
"""What Slurm shows in place of a reason while such a job waits for its release."""


def finish_pending(turn: Turn, job: Job, state: JobState, reason: Reason | None, user_id: int | None = None) -> Job:
    """End a job that has not started: its start and end are now. Without a reason it keeps the one it waited for."""
    job = turn.save(
        replace(
            job,
            state=state,
            flags=JobFlag.NONE,
            reason=job.reason if reason is None else reason,
            start_time=turn.now,
            end_time=turn.now,
            cancelled_by=user_id,
        )
    )
    turn.wake_planner()
    _finished(turn, job)
    return job


def end(
    turn: Turn,
    job: Job,
    state: JobState,
    reason: Reason,
    *,
    description: str = "",
    exit_code: int | None = None,
    kill_wait: int | None = None,
    user_id: int | None = None,
    failed_node: str = "",
    gone: frozenset[str] = frozenset(),
) -> Job:
    """End a job that holds nodes: it is COMPLETING until all of them are released. ``gone`` are nodes that already are."""
    if state is JobState.TIMEOUT:
        job = mail.reach_marks(turn, job, all_of_them=True)
    if job.request.crontab is not None and state not in (JobState.CANCELLED, JobState.PENDING):
        over = replace(job, state=state, exit_code=job.exit_code if exit_code is None else exit_code, end_time=turn.now)
        mail.ended(turn, over)
        job = replace(job, flags=job.flags | JobFlag.REQUEUED)
        state, reason, description = JobState.PENDING, Reason.NONE, ""
    stands_still = job.state is JobState.SUSPENDED and state is JobState.CANCELLED
    job = turn.save(
        replace(
            job,
            state=state,
            flags=(job.flags & ~_flags_lost(state)) | JobFlag.COMPLETING,
            reason=reason,
            state_description=description,
            end_time=turn.now,
            suspended_seconds=job.suspended_seconds + _suspended_now(turn, job),
            exit_code=job.exit_code if exit_code is None else exit_code,
            cancelled_by=job.cancelled_by if user_id is None else user_id,
            failed_node=failed_node or job.failed_node,
            requeued_as=job.requeued_as if state is JobState.PENDING else None,
            preempted_by=0,
        )
    )
    wait = turn.state.site.kill_wait if kill_wait is None else kill_wait
    assert job.allocation is not None
    nodes = tuple(name for name in job.allocation.nodes if name not in gone)
    if nodes:
        turn.emit(Terminate(job.job_id, job.restarts, 0 if stands_still else wait, nodes, _cause(job, stands_still), job))
    if turn.state.site.epilog_slurmctld:
        turn.state.epilogs.add(job.job_id)
        turn.emit(RunEpilog(job))
    return release(turn, job, gone)


_CAUSES = {JobState.PREEMPTED: "preemption", JobState.NODE_FAIL: "node failure"}


def _cause(job: Job, stands_still: bool) -> str:
    """What a job that is being ended is told to write about it. One that ``stands_still`` (suspended) is killed at once."""
    if stands_still:
        return "suspended"
    if job.state is not JobState.PENDING:
        return _CAUSES.get(job.state, "")
    return "requeue" if job.requeued_as is None else _CAUSES.get(job.requeued_as, "requeue")


def _flags_lost(state: JobState) -> JobFlag:
    """What no longer holds of a job that ends; one that ends for good is not queued again whatever was said before."""
    lost = JobFlag.CONFIGURING | JobFlag.STOPPED
    return lost if state is JobState.PENDING else lost | JobFlag.REQUEUED | JobFlag.REQUEUE_HOLD | JobFlag.LAUNCH_FAILED


def _suspended_now(turn: Turn, job: Job) -> int:
    return turn.now - job.suspend_time if job.state is JobState.SUSPENDED else 0


def release(turn: Turn, job: Job, nodes: frozenset[str]) -> Job:
    """These nodes are free of the job. With the last of them a COMPLETING job is over, or back in the queue, unless the
    controller's own epilog still runs: then it goes on COMPLETING, without nodes."""
    state = turn.state
    if job.flags & JobFlag.EPILOG_RUNS:
        return job
    released = state.released.setdefault(job.job_id, set())
    released |= nodes
    assert job.allocation is not None
    if phase_of(job) is not Phase.COMPLETING or not released.issuperset(job.allocation.nodes):
        return job
    del state.released[job.job_id]
    _close_steps(turn, job)
    turn.wake_planner()
    job = state.jobs[job.job_id]
    if job.job_id in state.epilogs:
        return turn.save(replace(job, flags=job.flags | JobFlag.EPILOG_RUNS))
    return _over(turn, job)


def epilog_ended(turn: Turn, event: EpilogEnded) -> None:
    """The controller's own epilog of a job is over, and with it the job, if its nodes are free."""
    turn.state.epilogs.discard(event.job_id)
    job = turn.state.jobs.get(event.job_id)
    if job is not None and job.restarts == event.restart and job.flags & JobFlag.EPILOG_RUNS:
        _over(turn, replace(job, flags=job.flags & ~JobFlag.EPILOG_RUNS))
        turn.wake_planner()


def _over(turn: Turn, job: Job) -> Job:
    if job.state is JobState.PENDING:
        return _back_in_queue(turn, job)
    job = turn.save(replace(job, flags=job.flags & ~JobFlag.COMPLETING))
    _finished(turn, job)
    return job


def _close_steps(turn: Turn, job: Job) -> None:
    """Steps that nobody reported the end of ended with the job."""
    for step in job.steps:
        turn.keep(SaveStep(replace(step, state=JobState.CANCELLED, end_time=job.end_time or turn.now), job.restarts))
    if job.steps:
        turn.save(replace(job, steps=()))


def requeue(
    turn: Turn,
    job: Job,
    reason: Reason,
    *,
    held: bool,
    gone: frozenset[str] = frozenset(),
    failed_node: str = "",
    ended_as: JobState | None = None,
    kill_wait: int | None = None,
) -> Job:
    """End a job that holds nodes and put it back in the queue once they are released. ``ended_as`` is what accounting says
    of this attempt in place of REQUEUED."""
    job = _requeued(turn, job, ended_as, held=held)
    wait = turn.state.site.kill_wait if kill_wait is None else kill_wait
    return end(turn, job, JobState.PENDING, reason, kill_wait=wait, gone=gone, failed_node=failed_node)


def requeue_ending(turn: Turn, job: Job, *, held: bool) -> Job:
    """Put a job that is over back in the queue once its nodes are released; accounting keeps how this attempt ended."""
    job = _requeued(turn, job, job.state, held=held)
    return turn.save(replace(job, state=JobState.PENDING, reason=Reason.NONE))


def _requeued(turn: Turn, job: Job, ended_as: JobState | None, *, held: bool) -> Job:
    """The job with the flags of one that goes back to the queue."""
    mail.requeued(turn, job)
    flags = job.flags | JobFlag.REQUEUED | (JobFlag.REQUEUE_HOLD if held else JobFlag.NONE)
    return replace(job, flags=flags, requeued_as=ended_as)


def waits_for_epilogs(job: Job) -> bool:
    """Whether the job's script failed and the epilogs are to say what of: of a node, then it is tried again first of all, or
    of itself, then it is held (--requeue=expedite)."""
    return job.request.expedited_requeue and bool(job.flags & JobFlag.REQUEUE_HOLD) and job.reason is Reason.NON_ZERO_EXIT_CODE


def expedite(turn: Turn, job: Job) -> Job:
    """A node was what the job failed of: it goes back to the queue before all others, and not held."""
    return turn.save(replace(job, flags=job.flags & ~JobFlag.REQUEUE_HOLD | JobFlag.EXPEDITING))


def try_later(turn: Turn, job: Job, message: str, gone: frozenset[str] = frozenset()) -> Job:
    """The launch of a job failed for a reason that may pass: it waits again, saying why, once its nodes are released."""
    job = replace(
        job, flags=job.flags | JobFlag.REQUEUED, system_comment=message, launch_failures=min(job.launch_failures + 1, 64)
    )
    description = f"{Reason.JOB_LAUNCH_FAILURE.value}:{message}"
    return end(turn, job, JobState.PENDING, Reason.JOB_LAUNCH_FAILURE, description=description, kill_wait=0, gone=gone)


def waits_after_failure(job: Job, now: int) -> bool:
    """True while a job waits because its launch failed a while ago."""
    return job.launch_failures > 0 and job.priority > 0 and (job.request.begin_time or 0) > now


def _retry_delay(job: Job) -> int:
    return int(min(FIRST_RETRY_DELAY * 2 ** (job.launch_failures - 1), LONGEST_RETRY_DELAY))


def _next_run(turn: Turn, job: Job, times: str) -> Job:
    """A job of scrontab waits for the next of its times."""
    due = parse_spec(times).next_time(turn.now)
    return again(turn, replace(job, launch_failures=0), delay=(due or turn.now + LONGEST_RETRY_DELAY) - turn.now)


def _back_in_queue(turn: Turn, job: Job) -> Job:
    if job.request.crontab is not None:
        return _next_run(turn, job, job.request.crontab)
    if job.launch_failures and job.reason is Reason.JOB_LAUNCH_FAILURE and not job.flags & JobFlag.LAUNCH_FAILED:
        waiting = again(turn, job, delay=_retry_delay(job))
        description = job.state_description
        return turn.save(
            replace(waiting, reason=job.reason, state_description=description, priority=job.priority or waiting.priority)
        )
    if job.flags & JobFlag.LAUNCH_FAILED and "nohold_on_prolog_fail" not in turn.state.site.scheduler_parameters:
        return again(turn, replace(job, exit_code=0), held=Reason.JOB_LAUNCH_FAILURE, description=LAUNCH_FAILED)
    if job.flags & JobFlag.EXPEDITING:
        return again(turn, job, delay=0, kept=JobFlag.EXPEDITING)
    if waits_for_epilogs(job):
        return again(turn, job, held=Reason.JOB_HELD_USER, description=REQUEUED_HELD, delay=0, kept=JobFlag.REQUEUE_HOLD)
    if job.flags & JobFlag.REQUEUE_HOLD:
        by_exit = job.reason is Reason.JOB_HELD_USER  # RequeueExitHold
        return again(turn, job, held=Reason.JOB_HELD_USER, description="" if by_exit else REQUEUED_HELD)
    if job.flags & JobFlag.SPECIAL_EXIT:
        return again(turn, job, held=Reason.JOB_HELD_USER, description=REQUEUED_SPECIAL)
    return again(turn, job, delay=0 if job.request.expedited_requeue else None)


def requeue_delay(site: Site) -> int:
    """Seconds before a job that was requeued may start again (requeue_delay, else AuthInfo)."""
    expire = re.search(r"(?:^|,)\s*cred_expire=(\d+)", site.parameters.get("AuthInfo", ""))
    said = site.scheduler_parameters.get("requeue_delay", "")
    return 1 + int(said if said.isdecimal() else expire[1] if expire else CREDENTIALS_EXPIRE)


def again(
    turn: Turn,
    job: Job,
    *,
    held: Reason | None = None,
    description: str = "",
    delay: int | None = None,
    kept: JobFlag = JobFlag.NONE,
) -> Job:
    """A job that ran (or failed to) waits once more, as its next attempt, and not at once unless ``delay`` is 0; held if there
    is a reason to, or its licences are no longer there. It keeps its exit code until it starts."""
    if held is None and not are_licenses(turn.state.site, job.request.licenses):
        held, description = Reason.JOB_HELD_ADMIN, no_longer_valid(job.request.licenses)
    begin = turn.now + (requeue_delay(turn.state.site) if delay is None else delay)
    flags = job.flags & (kept | (JobFlag.SPECIAL_EXIT if held else JobFlag.NONE))
    request = replace(job.request, begin_time=begin)
    job = replace(
        job,
        request=request,
        state=JobState.PENDING,
        flags=flags,
        reason=held or (Reason.BEGIN_TIME if begin > turn.now else Reason.NONE),
        state_description=description,
        submit_time=turn.now,
        sluid=arrays.new_sluid(turn),
        restarts=job.restarts + 1,
        start_time=0,
        resize_time=0,
        end_time=0,
        suspend_time=0,
        suspended_seconds=0,
        eligible_time=begin,
        accrue_time=0,
        derived_exit_code=0,
        allocation=None,
        last_partition=job.allocation.partition if job.allocation else job.last_partition,
        cancelled_by=None,
        steps=(),
        next_step=0,
        requeued_as=None,
        priority=0,
    )
    if not held:
        job = replace(job, priority=priority_of(turn, job))
    turn.wake_at(begin, job.job_id)
    turn.wake_planner()
    return turn.save(job)


def _finished(turn: Turn, job: Job) -> None:
    """A job is wholly over: those that wait for it are told, and it will be forgotten."""
    turn.state.forget_at(job.end_time + turn.state.site.minimum_job_age, job.job_id)
    turn.state.wait_for(job.job_id, frozenset())
    mail.ended(turn, job)
    turn.note(job)


def forget_old(turn: Turn) -> None:
    """MinJobAge: jobs that ended long ago leave memory, an array's when all of its elements have ended."""
    state = turn.state
    while state.finished and state.finished[0][0] <= turn.now:
        _, job_id = heapq.heappop(state.finished)
        job = state.jobs.get(job_id)
        if job is None or phase_of(job) is not Phase.FINISHED:
            continue
        due = job.end_time + state.site.minimum_job_age
        if due > turn.now:
            heapq.heappush(state.finished, (due, job_id))
        elif _still_needed(turn, job):
            heapq.heappush(state.finished, (turn.now + max(60, state.site.minimum_job_age), job_id))
        else:
            state.remove(job_id)
            turn.keep(ForgetJob(job_id))


def _still_needed(turn: Turn, job: Job) -> bool:
    state = turn.state
    if state.dependants.get(job.job_id) or state.dependants.get(job.array_job_id):
        return True
    siblings = state.by_array.get(job.array_job_id, ()) if job.array_job_id else ()
    return any(phase_of(state.jobs[sibling]) is not Phase.FINISHED for sibling in siblings)
