"""A controller in memory for tests of commands: the real machine and planner, no daemon, no database, no processes.

Its cluster is that of the reference Slurm whose answers the tests record. Time stands still unless a test moves it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.launcher import JobFiles
from slurmk.commands.call import Call, Unreadable
from slurmk.commands.dispatch import dispatch
from slurmk.commands.statistics import Statistics
from slurmk.core.crontabs import Crontabs, restored
from slurmk.core.effects import Accepted, Effect, Launch, Refused
from slurmk.core.events import BatchEnded, Caller, Event, JobStarted, NodesReleased, Planned, StepStarted, Submission, Submit
from slurmk.core.machine import Machine
from slurmk.core.priority import Directory
from slurmk.core.triggers import Triggers
from slurmk.model.job import BATCH_STEP, Credentials, Job, JobRequest, Step
from slurmk.model.node import GresCapacity, Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import INFINITE, JobState
from slurmk.planner.plan import plan
from slurmk.planner.why import Explanation, Question, explain

ROOT = Caller(0, "root", True)
NOBODY = Caller(65534, "nobody", False)
ALICE = Caller(70001, "alice", False)
BOB = Caller(70002, "bob", False)

NOON = int(time.mktime((2026, 11, 30, 12, 0, 0, 0, 0, -1)))

SCRIPT = b"#!/bin/sh\necho hello\n"


def reference_site(**changes: Any) -> Site:
    """Nodes n[1-4] with GPUs, n[5-8] without; partitions debug, gpu and cpu."""
    gpus = tuple(
        Node(
            f"n{number}",
            cpus=8,
            cores_per_socket=8,
            memory=16000,
            features=("a100", "ib"),
            active_features=("a100", "ib"),
            gres=(GresCapacity("gpu", "a100", 4),),
        )
        for number in range(1, 5)
    )
    plain = tuple(
        Node(f"n{number}", cpus=16, cores_per_socket=16, memory=32000, features=("cpu",), active_features=("cpu",))
        for number in range(5, 9)
    )
    names = [node.name for node in (*gpus, *plain)]
    partitions = (
        Partition("debug", tuple(names), default=True, maximum_time=60, default_time=10),
        Partition("gpu", tuple(names[:4]), maximum_time=2880),
        Partition("cpu", tuple(names[4:]), maximum_time=INFINITE),
    )
    site = Site(
        "reference",
        (*gpus, *plain),
        partitions,
        default_memory_per_cpu=100,
        licenses={"matlab": 4},
        gres_types=("gpu",),
        scheduler_parameters={"slurmk_use_gres_nodes": ""},
    )
    return replace(site, **changes)


class FakeStore:
    """Scripts by job id."""

    def __init__(self) -> None:
        self.kept: dict[int, JobFiles] = {}

    def files(self, job_id: int) -> JobFiles | None:
        return self.kept.get(job_id)


class FakeController:
    """``slurmk.commands.call.Controller`` over a machine in memory."""

    def __init__(self, site: Site | None = None) -> None:
        self.machine = Machine(site or reference_site(), users=Directory())
        self.store: Any = FakeStore()
        self.time = float(NOON)
        self.stopped: bool | None = None
        self.stopping = False
        self.returned: list[int] = []
        self.fault = ""
        self.events: list[Event] = []
        self.queue_calls: list[tuple[str, bool]] = []
        self.queue_answer = ("", 0)
        self.statistics = Statistics(self.time)
        self.triggers = Triggers()
        self.crontabs = Crontabs()
        self.answers: dict[str, dict[str, Any]] = {}  # of stepds, by node

    def now(self) -> float:
        return self.time

    async def apply(self, event: Event, files: Sequence[JobFiles] = ()) -> tuple[Accepted | Refused, ...]:
        return tuple(effect for effect in self.handle(event) if isinstance(effect, Accepted | Refused))

    def handle(self, event: Event) -> list[Effect]:
        self.events.append(event)
        return self.machine.handle(event)

    async def job_changed(self, job_id: int) -> Job | None:
        await asyncio.sleep(0)
        self.start_all()
        return self.machine.jobs.get(job_id)

    async def queues(self, action: str, *, force: bool) -> tuple[str, int]:
        self.queue_calls.append((action, force))
        return self.queue_answer

    async def plan_for(self, event: Event) -> object:
        raise NotImplementedError

    async def explain(self, question: Question) -> Explanation:
        return explain(question)

    def access(self, job: Job) -> Mapping[str, str]:
        return {}

    def save_triggers(self) -> None:
        return None

    def save_crontabs(self) -> None:
        self.crontabs = restored(json.loads(json.dumps(self.crontabs.saved())))

    async def ask(self, job: Job, nodes: Sequence[str], question: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
        return {node: self.answers[node] for node in nodes if node in self.answers}

    async def reconfigure(self, caller: Caller) -> str:
        return self.fault

    def surroundings(self) -> Sequence[str]:
        return ()

    def came_back(self, job_id: int) -> None:
        self.returned.append(job_id)

    def shutdown(self, *, end_jobs: bool) -> None:
        self.stopped = end_jobs

    # ------------------------------------------------------------------ what tests do

    def submit(self, caller: Caller = ROOT, *, batch: bool = True, command: str = "", **request: Any) -> int:
        """A job's id. ``name`` is ``wrap`` unless given."""
        wanted = JobRequest(**{"name": "wrap", "current_working_directory": "/w", "minimum_nodes": 1, **request})
        owner = Credentials(caller.user_id, caller.user_id, caller.user_name, caller.user_name)
        event = Submit(self.time, caller, (Submission(wanted, owner, batch, command, "sbatch x", "localhost", 77),))
        for effect in self.handle(event):
            if isinstance(effect, Accepted):
                self.store.kept[effect.job_ids[0]] = JobFiles(SCRIPT, (), {}, b"")
                return effect.job_ids[0]
            assert not isinstance(effect, Refused), effect
        raise AssertionError("neither accepted nor refused")

    def start_all(self) -> list[int]:
        """Let the planner start what can start; the ids of the jobs that did."""
        made = plan(self.machine.snapshot(self.time))
        started = [effect.job for effect in self.handle(Planned(self.time, made)) if isinstance(effect, Launch)]
        for job in started:
            assert job.allocation is not None
            self.handle(JobStarted(self.time, job.job_id, job.restarts))
            if job.batch:
                step = Step(job.job_id, BATCH_STEP, "batch", JobState.RUNNING, int(self.time), nodes=job.allocation.nodes[:1])
                self.handle(StepStarted(self.time, job.restarts, step))
        return [job.job_id for job in started]

    def add_step(self, job_id: int, **fields: Any) -> None:
        job = self.machine.jobs[job_id]
        assert job.allocation is not None
        values = {"step_id": 0, "name": "sleep", "state": JobState.RUNNING, "start_time": int(self.time)}
        values |= {"nodes": job.allocation.nodes, "tasks": 1, "cpus": 1, "memory": 100}
        self.handle(StepStarted(self.time, job.restarts, Step(job_id=job_id, **{**values, **fields})))

    def end(self, job_id: int, exit_code: int = 0) -> None:
        job = self.machine.jobs[job_id]
        assert job.allocation is not None
        self.handle(BatchEnded(self.time, job_id, job.restarts, exit_code))
        self.handle(NodesReleased(self.time, job_id, job.restarts, job.allocation.nodes))


@dataclass
class FakeOutput:
    """Remembers what was written."""

    input: bytes = b""
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    drained: int = 0
    executed: tuple[list[str], dict[str, str]] | None = None
    awaits: tuple[int, ...] = ()

    def write(self, text: str | bytes) -> None:
        self.out.append(text if isinstance(text, str) else text.decode())

    def error(self, text: str | bytes) -> None:
        self.err.append(text if isinstance(text, str) else text.decode())

    async def drain(self) -> None:
        self.drained += 1
        await asyncio.sleep(0)

    async def read(self, path: str, limit: int) -> bytes:
        raise Unreadable(2, os.strerror(2))

    async def read_input(self, limit: int) -> bytes:
        taken, self.input = self.input[:limit], self.input[limit:]
        return taken

    async def signalled(self) -> int:
        await asyncio.Event().wait()
        return 0

    def await_jobs(self, job_ids: Sequence[int]) -> None:
        self.awaits = tuple(job_ids)

    def execute(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.executed = (list(arguments), dict(environment))


@dataclass(frozen=True)
class Said:
    """What a command said."""

    out: str
    err: str
    code: int
    output: FakeOutput


def run_command(
    controller: FakeController,
    *words: str,
    caller: Caller = ROOT,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> Said:
    """Run a command as the daemon does."""
    output = FakeOutput(stdin)
    call = Call(words[0], words[1:], "/w", environment or {}, caller, 0)
    code = asyncio.run(dispatch(call, controller, output))
    return Said("".join(output.out), "".join(output.err), code, output)
