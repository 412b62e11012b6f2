"""What the controller counts for sdiag: jobs, plans, and requests by kind and user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurmk.model.job import Job
from slurmk.model.states import JobFlag, JobState

REQUESTS: Mapping[str, tuple[str, int]] = {
    "sbatch": ("REQUEST_SUBMIT_BATCH_JOB", 4003),
    "salloc": ("REQUEST_RESOURCE_ALLOCATION", 4001),
    "srun": ("REQUEST_JOB_STEP_CREATE", 5001),
    "squeue": ("REQUEST_JOB_INFO", 2003),
    "sinfo": ("REQUEST_PARTITION_INFO", 2009),
    "scancel": ("REQUEST_KILL_JOB", 5032),
    "scontrol": ("REQUEST_JOB_INFO_SINGLE", 2021),
    "sprio": ("REQUEST_PRIORITY_FACTORS", 2026),
    "sdiag": ("REQUEST_STATS_INFO", 2035),
    "sstat": ("REQUEST_JOB_STEP_STAT", 5035),
    "sattach": ("REQUEST_STEP_LAYOUT", 5003),
    "strigger": ("REQUEST_TRIGGER_GET", 2018),
    "scrontab": ("REQUEST_CRONTAB", 2200),
}
"""A command to the name and number of the message that stands for it in Slurm. Commands that ask the accounting database,
and slurmk's own, are not among the controller's requests."""


@dataclass(slots=True)
class Counted:
    """How often something was done and how long it took, in microseconds."""

    count: int = 0
    total: int = 0
    last: int = 0
    longest: int = 0

    def add(self, seconds: float) -> None:
        self.last = max(1, int(seconds * 1_000_000))
        self.count += 1
        self.total += self.last
        self.longest = max(self.longest, self.last)

    @property
    def mean(self) -> int:
        return self.total // self.count if self.count else 0


@dataclass(slots=True)
class Cycles:
    """Plans of one kind: their times, and how many waiting jobs they were made for."""

    times: Counted = field(default_factory=Counted)
    depth: int = 0  # the sum of all
    last_length: int = 0
    last_time: float = 0.0

    def add(self, now: float, seconds: float, length: int) -> None:
        self.times.add(seconds)
        self.depth += length
        self.last_length = length
        self.last_time = now

    @property
    def mean_depth(self) -> int:
        return self.depth // self.times.count if self.times.count else 0


@dataclass(slots=True)
class Counts:
    """All that ``sdiag --reset`` sets back."""

    submitted: int = 0
    started: int = 0
    completed: int = 0
    cancelled: int = 0
    failed: int = 0
    quick: Cycles = field(default_factory=Cycles)  # answers to a change
    full: Cycles = field(default_factory=Cycles)  # whole plans
    requests: dict[str, Counted] = field(default_factory=dict)
    users: dict[tuple[int, str], Counted] = field(default_factory=dict)


class Statistics:
    """Counts since ``since`` (Unix seconds)."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.counts = Counts()
        self._ended: set[int] = set()

    def reset(self, now: float) -> None:
        """Begin to count anew."""
        self.since = now
        self.counts = Counts()

    def requested(self, command: str, user: tuple[int, str], seconds: float) -> None:
        """A command was answered."""
        if command in REQUESTS:
            self.counts.requests.setdefault(command, Counted()).add(seconds)
            self.counts.users.setdefault(user, Counted()).add(seconds)

    def planned(self, now: float, seconds: float, length: int, *, full: bool) -> None:
        """A plan was made for that many waiting jobs."""
        (self.counts.full if full else self.counts.quick).add(now, seconds, length)

    def launched(self) -> None:
        """A job was started."""
        self.counts.started += 1

    def saved(self, job: Job, *, new: bool) -> None:
        """A job changed."""
        if new:
            self.counts.submitted += 1
        if job.job_id in self._ended or not job.state.finished or job.flags & JobFlag.COMPLETING:
            return
        self._ended.add(job.job_id)
        if job.state is JobState.CANCELLED:
            self.counts.cancelled += 1
        elif job.state in (JobState.FAILED, JobState.NODE_FAIL, JobState.BOOT_FAIL, JobState.OUT_OF_MEMORY):
            self.counts.failed += job.state is not JobState.FAILED
            self.counts.completed += job.state is JobState.FAILED
        else:
            self.counts.completed += 1

    def forgotten(self, job_id: int) -> None:
        """A job left the controller's memory."""
        self._ended.discard(job_id)
