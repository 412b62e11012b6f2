"""A small cluster, a clock, and short words for events, so that the tests of the core read as stories."""

from __future__ import annotations

from dataclasses import replace

from slurmk.core.effects import Accepted, Effect, Launch, Refused, SaveJob, Terminate
from slurmk.core.errors import Errno
from slurmk.core.events import (
    BatchEnded,
    Caller,
    Event,
    Hold,
    JobStarted,
    Kill,
    KillFlag,
    NodesReleased,
    Planned,
    Submission,
    Submit,
    Tick,
    UpdateJob,
    UpdateNode,
)
from slurmk.core.machine import Machine
from slurmk.core.selection import parse
from slurmk.model.job import Credentials, Job, JobRequest
from slurmk.model.node import GresCapacity, Node, Partition
from slurmk.model.site import Site
from slurmk.planner.plan import plan

ROOT = Caller(0, "root", True)
ALICE = Caller(1000, "alice", False)
BOB = Caller(1001, "bob", False)


def small_site(**changes: object) -> Site:
    """Four nodes of 8 CPUs with 4 GPUs each, four of 16 CPUs; partitions as those of the reference."""
    first = [
        Node(f"n{i}", cpus=8, memory=16000, features=("a100", "ib"), gres=(GresCapacity("gpu", "a100", 4),))
        for i in range(1, 5)
    ]
    second = [Node(f"n{i}", cpus=16, memory=32000, features=("cpu",)) for i in range(5, 9)]
    names = tuple(node.name for node in (*first, *second))
    site = Site(
        cluster_name="reference",
        nodes=(*first, *second),
        partitions=(
            Partition("debug", names, default=True, maximum_time=60, default_time=10),
            Partition("gpu", names[:4], maximum_time=2880),
            Partition("cpu", names[4:]),
        ),
        licenses={"matlab": 4},
        gres_types=("gpu",),
        default_memory_per_cpu=100,
        kill_wait=5,
        scheduler_parameters={"slurmk_use_gres_nodes": ""},
    )
    return replace(site, **changes)  # type: ignore[arg-type]


class Cluster:
    """A machine and the story so far."""

    def __init__(self, site: Site | None = None) -> None:
        self.machine = Machine(site or small_site())
        self.now = 1000.0
        self.effects: list[Effect] = []

    def tell(self, event: Event) -> list[Effect]:
        self.effects = self.machine.handle(event)
        return self.effects

    def submission(self, caller: Caller = ALICE, *, batch: bool = True, **request: object) -> Submission:
        groups = Credentials(caller.user_id, caller.user_id, caller.user_name, caller.user_name)
        return Submission(JobRequest(**request), groups, batch, "/home/job.sh", "sbatch job.sh", "login", 7)  # type: ignore[arg-type]

    def try_submit(self, caller: Caller = ALICE, *, batch: bool = True, **request: object) -> Accepted | Refused:
        self.tell(Submit(self.now, caller, (self.submission(caller, batch=batch, **request),)))
        return self.answer()

    def submit(self, caller: Caller = ALICE, *, batch: bool = True, **request: object) -> int:
        answer = self.try_submit(caller, batch=batch, **request)
        assert isinstance(answer, Accepted), answer
        return answer.job_ids[0]

    def answer(self) -> Accepted | Refused:
        return next(effect for effect in self.effects if isinstance(effect, Accepted | Refused))

    def refusal(self) -> Errno:
        answer = self.answer()
        assert isinstance(answer, Refused), answer
        return answer.error.errno

    def plan(self) -> list[Effect]:
        return self.tell(Planned(self.now, plan(self.machine.snapshot(self.now))))

    def started(self, job_id: int) -> list[Effect]:
        return self.tell(JobStarted(self.now, job_id, self.job(job_id).restarts))

    def ended(self, job_id: int, exit_code: int = 0, **why: bool) -> list[Effect]:
        return self.tell(BatchEnded(self.now, job_id, self.job(job_id).restarts, exit_code, **why))  # type: ignore[arg-type]

    def released(self, job_id: int, *nodes: str) -> list[Effect]:
        job = self.job(job_id)
        assert job.allocation is not None
        return self.tell(NodesReleased(self.now, job_id, job.restarts, nodes or job.allocation.nodes))

    def run_to_end(self, job_id: int, exit_code: int = 0) -> None:
        self.ended(job_id, exit_code)
        self.released(job_id)

    def kill(self, *jobs: str, caller: Caller = ALICE, signal: int | None = None, flags: KillFlag = KillFlag.NONE) -> None:
        self.tell(Kill(self.now, caller, tuple(map(parse, jobs)), signal, flags))

    def hold(self, job: str, caller: Caller = ALICE, *, user_hold: bool = False) -> None:
        self.tell(Hold(self.now, caller, (parse(job),), user_hold=user_hold))

    def release_hold(self, job: str, caller: Caller = ALICE) -> None:
        self.tell(Hold(self.now, caller, (parse(job),), release=True))

    def update(self, job: str, caller: Caller = ALICE, **changes: object) -> None:
        self.tell(UpdateJob(self.now, caller, (parse(job),), tuple(changes.items())))

    def update_node(self, *nodes: str, caller: Caller = ROOT, state: str | None = None, reason: str | None = None) -> None:
        self.tell(UpdateNode(self.now, caller, nodes, state, reason))

    def tick(self, seconds: float = 0) -> list[Effect]:
        self.now += seconds
        return self.tell(Tick(self.now))

    def job(self, job_id: int) -> Job:
        return self.machine.jobs[job_id]

    def saved(self) -> list[Job]:
        return [effect.job for effect in self.effects if isinstance(effect, SaveJob)]

    def launched(self) -> list[int]:
        return [effect.job.job_id for effect in self.effects if isinstance(effect, Launch)]

    def terminated(self) -> list[int]:
        return [effect.job_id for effect in self.effects if isinstance(effect, Terminate)]

    def restarted(self, longest_wait: int = 0) -> Machine:
        """Another machine that takes up what this one has."""
        machine = Machine(self.machine.site)
        nodes, partitions = self.machine.nodes.values(), self.machine.partitions.values()
        machine.restore(self.machine.jobs.values(), nodes, partitions, self.machine.next_job_id, longest_wait=longest_wait)
        return machine
