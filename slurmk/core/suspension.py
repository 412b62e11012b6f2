"""Jobs that stand still: by hand, for others that preempted them, or between two turns. They keep their nodes, and their time
stands still too.

As in Slurm they are told first (SIGTSTP), and stopped a moment later whether they took heed or not.
"""

from __future__ import annotations

from dataclasses import replace

from slurmk.core import mail
from slurmk.core.effects import Signal, UpdateLimit
from slurmk.core.events import KillFlag
from slurmk.core.state import State, Turn, limit_end, watch_limit
from slurmk.model.job import Job
from slurmk.model.states import JobFlag, JobState

SIGTSTP, SIGSTOP, SIGCONT = 20, 19, 18

GRACE = 2
"""Seconds between the two signals (PreemptParameters=suspend_grace_time)."""


def stop(turn: Turn, job: Job, *, preempted_by: int = 0, waits_for_turn: bool = False) -> Job:
    """Let a running job stand still."""
    flags = job.flags & ~JobFlag.STOPPED
    job = replace(job, state=JobState.SUSPENDED, flags=flags, suspend_time=turn.now, end_time=0)
    job = turn.save(replace(job, preempted_by=preempted_by, waits_for_turn=waits_for_turn))
    grace = _grace(turn.state)
    turn.emit(Signal(job.job_id, job.restarts, SIGTSTP if grace else SIGSTOP, None, KillFlag.FULL))
    turn.emit(UpdateLimit(job.job_id, job.restarts, None))
    if grace:
        turn.wake_at(turn.now + grace, job.job_id)
    turn.wake_planner()
    return job


def stand_still(turn: Turn, job: Job) -> None:
    """A job that stands still was told so a while ago."""
    if job.suspend_time + _grace(turn.state) <= turn.now:
        turn.emit(Signal(job.job_id, job.restarts, SIGSTOP, None, KillFlag.FULL))


def go_on(turn: Turn, job: Job) -> Job:
    """Let it go on with the time that it has left."""
    stood = job.suspended_seconds + turn.now - job.suspend_time
    job = replace(job, state=JobState.RUNNING, suspend_time=turn.now, suspended_seconds=stood)
    job = replace(job, preempted_by=0, waits_for_turn=False)
    end = limit_end(job)
    job = turn.save(replace(job, end_time=end or 0))
    turn.emit(Signal(job.job_id, job.restarts, SIGCONT, None, KillFlag.FULL))
    turn.emit(UpdateLimit(job.job_id, job.restarts, end))
    watch_limit(turn, job)
    mail.watch_marks(turn, job)
    turn.wake_planner()
    return job


def _grace(state: State) -> int:
    said = state.site.preempt_parameters.get("suspend_grace_time", "")
    return int(said) if said.isdecimal() else GRACE
