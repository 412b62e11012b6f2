"""``--mail-type``: which moments of a job's life its user is told of, and the subject of each mail, as Slurm words it.

Only what is decided is here; the daemon sends. An event that shall be told once is told in the same turn that saves the
change it is about, and the marks of the time limit are taken out of the request as they are reached, as in Slurm, so that no
restart tells anything twice. An array is told of as a whole, unless ARRAY_TASKS was asked for; a het job by its leader.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from grammar.times import format_elapsed
from slurmk.core.effects import Mail
from slurmk.core.state import Phase, State, Turn, phase_of
from slurmk.model.job import Job
from slurmk.model.states import NO_VALUE, JobFlag, JobState

BEGIN, END, FAIL, REQUEUE, INVALID_DEPENDENCY = "BEGIN", "END", "FAIL", "REQUEUE", "INVALID_DEPENDENCY"
EACH_TASK = "ARRAY_TASKS"

WORDS = {
    BEGIN: "Began",
    END: "Ended",
    FAIL: "Failed",
    REQUEUE: "Requeued",
    INVALID_DEPENDENCY: "Invalid dependency",
    "TIME=50%": "Reached 50% of time limit",
    "TIME=80%": "Reached 80% of time limit",
    "TIME=90%": "Reached 90% of time limit",
    "TIME=100%": "Reached time limit",
}
"""The request's word to that of the subject and of SLURM_JOB_MAIL_TYPE."""

MARKS = {"TIME=50%": 50, "TIME=80%": 80, "TIME=90%": 90, "TIME=100%": 100}
"""Percent of the time limit at which to tell."""

CANCELLED_STATUS = 9
"""What an element of an array that ended early without an exit code counts as in its array's summary."""


def default_address(state: State, user_name: str) -> str:
    """Where mail of a user goes who named no address (MailDomain)."""
    domain = state.site.parameters.get("MailDomain", "")
    return user_name if domain in ("", "(null)") else f"{user_name}@{domain}"


# ------------------------------------------------------------------------------------------------- moments


def began(turn: Turn, job: Job) -> None:
    """The job, or the first element of an array, started."""
    if BEGIN not in job.request.mail_type:
        return
    if not _as_whole(job):
        waited = _seconds(turn.now - job.submit_time)
        _send(turn, job, BEGIN, f", Queued time {waited}", (("SLURM_JOB_QUEUED_TIME", waited),))
    elif not _others_ran(turn.state, job):
        _send(turn, _leading_record(turn.state, job), BEGIN)


def ended(turn: Turn, job: Job) -> None:
    """The job, or the last element of an array, is wholly over."""
    kinds = job.request.mail_type
    if END not in kinds and FAIL not in kinds:
        return
    if job.state in (JobState.CANCELLED, JobState.TIMEOUT):  # told before what the signals made of the script is known
        job = replace(job, exit_code=0)
    if not _as_whole(job):
        _send_end(turn, job, job.state not in (JobState.COMPLETED, JobState.CANCELLED), *_outcome(job))
        return
    if _unfinished(turn.state, job):
        return
    statuses = [_status(member) for member in _members(turn.state, job)]
    record = _leading_record(turn.state, job)
    highest = max(statuses)
    _send_end(turn, record, _exited(highest) and highest > 0, *_summary(record, min(statuses), highest))


def requeued(turn: Turn, job: Job) -> None:
    """The job is going back to the queue; of an array, the last element that ran."""
    if REQUEUE not in job.request.mail_type:
        return
    job = replace(job, state=JobState.PENDING, end_time=turn.now)
    if not _as_whole(job):
        ran = _run_time(job)
        _send(turn, job, REQUEUE, f", Run time {ran}", (("SLURM_JOB_RUN_TIME", ran),))
    elif turn.state.array_running.get(job.array_job_id, 0) <= 1:
        _send(turn, _leading_record(turn.state, job), REQUEUE)


def never_satisfied(turn: Turn, job: Job) -> None:
    """What the job waits for can no longer happen."""
    if INVALID_DEPENDENCY in job.request.mail_type:
        _send(turn, job, INVALID_DEPENDENCY)


def reach_marks(turn: Turn, job: Job, *, all_of_them: bool = False) -> Job:
    """Tell of the parts of its time limit that a running job has used; the job without those, saved."""
    configuring = bool(job.flags & JobFlag.CONFIGURING)  # none of its time is used yet
    reached = [kind for kind, time in _marks(job) if all_of_them or (time <= turn.now and not configuring)]
    if not reached:
        return job
    kept = tuple(kind for kind in job.request.mail_type if kind not in reached)
    ran = _seconds(turn.now - job.start_time - job.suspended_seconds)
    record = _leading_record(turn.state, job) if _as_whole(job) else job
    for kind in reached:
        _send(turn, record, kind, "" if _as_whole(job) else f", Run time {ran}", (("SLURM_JOB_RUN_TIME", ran),))
    return turn.save(replace(job, request=replace(job.request, mail_type=kept)))


def watch_marks(turn: Turn, job: Job) -> None:
    """Look at a running job again when ``reach_marks`` has something to tell."""
    mark = min((time for _, time in _marks(job)), default=None)
    if mark is not None:
        used_up = turn.now - job.start_time if job.flags & JobFlag.CONFIGURING else 0
        turn.wake_at(mark + used_up, job.job_id)


def _marks(job: Job) -> list[tuple[str, int]]:
    if not job.request.mail_type or job.time_limit >= NO_VALUE:
        return []
    began_at = job.start_time + job.suspended_seconds
    return [
        (kind, began_at + job.time_limit * 60 * part // 100) for kind, part in MARKS.items() if kind in job.request.mail_type
    ]


# ------------------------------------------------------------------------------------------------- what they say

Variables = tuple[tuple[str, str], ...]


def _send_end(turn: Turn, job: Job, failed: bool, text: str, variables: Variables) -> None:
    """FAIL is told as such where it was asked for, else as the end that it is."""
    kinds = job.request.mail_type
    if failed and FAIL in kinds:
        kind = FAIL
    elif END in kinds:
        kind = END
    else:
        return
    ran = _run_time(job)
    before = "" if _as_whole(job) else f", Run time {ran}"
    _send(turn, job, kind, before + text, (("SLURM_JOB_RUN_TIME", ran), *variables))


def _outcome(job: Job) -> tuple[str, Variables]:
    if not _exited(job.exit_code) or job.state is JobState.NODE_FAIL:
        return f", {job.state.name}", ()
    code = _code(job.exit_code)
    return f", {job.state.name}, ExitCode {code}", (("SLURM_JOB_EXIT_CODE_MAX", str(code)),)


def _summary(record: Job, lowest: int, highest: int) -> tuple[str, Variables]:
    """What became of an array's elements, by the lowest and the highest of their wait(2) statuses."""
    code = _code(highest)
    if _exited(lowest) and _exited(highest):
        word = "Mixed" if code and not _code(lowest) else record.state.name
        bounds = (("SLURM_JOB_EXIT_CODE_MAX", str(code)), ("SLURM_JOB_EXIT_CODE_MIN", str(_code(lowest))))
        return f", {word}, ExitCode [{_code(lowest)}-{code}]", bounds
    if not _exited(highest):
        number = highest & 0x7F
        return f", Mixed, MaxSignal [{number}]", (("SLURM_JOB_TERM_SIGNAL_MAX", str(number)),)
    return f", Mixed, MaxExitCode [{code}]", (("SLURM_JOB_EXIT_CODE_MAX", str(code)),)


def _send(turn: Turn, job: Job, kind: str, text: str = "", variables: Variables = ()) -> None:
    if job.het_job_offset:
        return
    subject = f"Slurm {_name(job)} Name={job.name} {WORDS[kind]}{text}"
    address = job.request.mail_user or default_address(turn.state, job.credentials.user_name)
    turn.emit(Mail(job, kind, address, subject, (("SLURM_JOB_MAIL_TYPE", WORDS[kind]), *variables)))


def _name(job: Job) -> str:
    if _as_whole(job):
        return f"Array Summary Job_id={job.array_job_id}_* ({job.job_id})"
    if job.array_task_id is not None:
        return f"Array Task Job_id={job.array_job_id}_{job.array_task_id} ({job.job_id})"
    return f"Job_id={job.job_id}"


def _run_time(job: Job) -> str:
    return _seconds(job.end_time - job.start_time - job.suspended_seconds)


def _seconds(seconds: int) -> str:
    return format_elapsed(max(0, seconds), padded=True)


def _exited(status: int) -> bool:
    return not status & 0x7F


def _code(status: int) -> int:
    return status >> 8 & 0xFF


# ------------------------------------------------------------------------------------------------- arrays


def _as_whole(job: Job) -> bool:
    return bool(job.array_job_id) and EACH_TASK not in job.request.mail_type


def _leading_record(state: State, job: Job) -> Job:
    """The record with the array's own id, which is that of its last element."""
    return job if job.job_id == job.array_job_id else state.jobs.get(job.array_job_id, job)


def _members(state: State, job: Job) -> Iterable[Job]:
    return (state.jobs[member] for member in state.by_array.get(job.array_job_id, ()))


def _others_ran(state: State, job: Job) -> bool:
    return any(member.allocation or member.restarts for member in _members(state, job) if member.job_id != job.job_id)


def _unfinished(state: State, job: Job) -> bool:
    """Whether an element of the array waits or runs; those that most likely do are asked first."""
    record = _leading_record(state, job)
    if phase_of(record) is not Phase.FINISHED or state.array_running.get(job.array_job_id):
        return True
    return any(phase_of(member) is not Phase.FINISHED for member in _members(state, job))


def _status(job: Job) -> int:
    if job.state in (JobState.CANCELLED, JobState.TIMEOUT) or not (job.exit_code or job.state is JobState.COMPLETED):
        return CANCELLED_STATUS
    return job.exit_code
