"""Stand-ins for the store and the machine, for tests of the engine alone."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bridge.launcher import JobFiles
from slurmk.core.effects import (
    Accepted,
    Effect,
    Launch,
    Refused,
    SaveCounter,
    SaveJob,
    SaveStep,
    Terminate,
    WakePlanner,
)
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import BatchEnded, Caller, Event, Kill, Planned, StepEnded, Submission, Submit, Tick
from slurmk.daemon.committed import Committed
from slurmk.model.job import Credentials, Job, JobRequest

CALLER = Caller(1000, "alice", False)


class FakeStore:
    """Remembers commits. ``gate`` holds them up while it is clear, ``fault`` makes them fail, ``poison`` those with a
    certain job."""

    def __init__(self) -> None:
        self.commits: list[tuple[list[Effect], dict[int, JobFiles]]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.fault: Exception | None = None
        self.poison: int | None = None
        self.attempts = 0

    def commit(self, effects: Sequence[Effect], files: Mapping[int, JobFiles]) -> None:
        assert self.gate.wait(10)
        self.attempts += 1
        if self.fault is not None:
            raise self.fault
        if any(isinstance(effect, SaveJob) and effect.job.job_id == self.poison for effect in effects):
            raise ValueError("poison")
        self.commits.append((list(effects), dict(files)))

    @property
    def jobs(self) -> dict[int, Job]:
        return {
            effect.job.job_id: effect.job for effects, _ in self.commits for effect in effects if isinstance(effect, SaveJob)
        }


class FakeMachine:
    """Just enough of the state machine: submissions get the next id and are launched, ends are kept."""

    def __init__(self, committed: Committed) -> None:
        self.jobs = dict(committed.jobs)
        self.next_job_id = committed.next_job_id

    def handle(self, event: Event) -> list[Effect]:
        match event:
            case Submit(submissions=(submission,)):
                return self._submit(submission)
            case Kill(selections=(selection,)) if selection.job_id in self.jobs:
                return [Terminate(selection.job_id, 0, 0, ()), Accepted((selection.job_id,))]
            case Kill():
                return [Refused(SlurmError(Errno.INVALID_JOB_ID))]
            case BatchEnded(job_id=job_id, exit_code=code) if job_id in self.jobs:
                self.jobs[job_id] = changed(self.jobs[job_id], exit_code=code)
                return [SaveJob(self.jobs[job_id]), WakePlanner()]
            case StepEnded(step=step):
                return [SaveStep(step, 0)]
            case Planned():
                raise ZeroDivisionError("a fault in the machine")
            case Tick():
                return []
            case _:
                return []

    def _submit(self, submission: Submission) -> list[Effect]:
        job = Job(self.next_job_id, submission.request, submission.credentials, 0)
        self.jobs[job.job_id] = job
        self.next_job_id += 1
        return [SaveJob(job, True), SaveCounter(self.next_job_id), Launch(job), Accepted((job.job_id,)), WakePlanner()]


def changed(job: Job, **changes: object) -> Job:
    return replace(job, **changes)  # type: ignore[arg-type]


def submit(name: str = "job") -> Submit:
    credentials = Credentials(1000, 1000, "alice", "alice", (1000,))
    return Submit(1.0, CALLER, (Submission(JobRequest(name=name), credentials, True, "", "", "", 0),))


def files(script: bytes = b"#!/bin/sh\n") -> JobFiles:
    return JobFiles(script, (), {}, b"secret")
