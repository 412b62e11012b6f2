"""Whatever happens, in whatever order: no node is given twice, nothing ended starts again, nothing is launched unsaved."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from core_story import ALICE, BOB, ROOT, small_site
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from slurmk.core.effects import Effect, ForgetJob, Launch, SaveJob, SaveNode, SaveStep
from slurmk.core.events import (
    BatchEnded,
    Event,
    Hold,
    JobSelection,
    JobStarted,
    Kill,
    LaunchFailed,
    NodeChanged,
    NodeFailed,
    NodesReleased,
    Planned,
    Preempted,
    Requeue,
    StepEnded,
    StepStarted,
    Submission,
    Submit,
    Suspend,
    Tick,
    UpdateJob,
    UpdateNode,
    Withdrawn,
)
from slurmk.core.machine import Machine
from slurmk.core.state import holds_nodes
from slurmk.model.job import Credentials, Job, JobRequest, Step
from slurmk.model.serial import dump, load
from slurmk.model.states import JobState, Reason
from slurmk.planner.plan import plan
from slurmk.planner.snapshot import Plan

CALLERS = st.sampled_from([ALICE, BOB, ROOT])
JOBS = st.integers(0, 14)
NODES = st.sampled_from([f"n{i}" for i in range(1, 9)])
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "minimum_nodes": st.integers(1, 9),
        "tasks": st.integers(1, 40),
        "cpus_per_task": st.integers(1, 9),
        "memory_per_node": st.sampled_from([0, 100, 9000]),
        "tres_per_node": st.sampled_from(["gres/gpu:1", "gres/gpu:a100:3"]),
        "shared": st.sampled_from([None, "none"]),
        "array": st.sampled_from(["0-3", "1-5%2", "7"]),
        "time_limit": st.integers(1, 30),
        "begin_time": st.integers(1000, 1500),
        "deadline": st.integers(1200, 3000),
        "hold": st.booleans(),
        "requeue": st.booleans(),
        "kill_on_node_fail": st.sampled_from([None, False]),
        "kill_on_invalid_dependency": st.booleans(),
        "name": st.sampled_from(["a", "b"]),
        "dependency": st.one_of(
            st.just("singleton"),
            st.builds(
                "{}:{}".format, st.sampled_from(["after", "afterok", "afternotok", "afterany", "aftercorr"]), st.integers(1, 14)
            ),
        ),
    },
)
CHANGES = st.sampled_from(
    [
        ("time_limit", 3),
        ("partition", "gpu"),
        ("nice", 5),
        ("dependency", ""),
        ("begin_time", 1300),
        ("array_maximum_running", 1),
    ]
)


class Life(RuleBasedStateMachine):
    """Random events on a machine, and a store that keeps what the machine wants kept."""

    @initialize(multifactor=st.booleans())
    def begin(self, multifactor: bool) -> None:
        weights = {"age": 1000, "job_size": 1000, "partition": 100}
        kind = "priority/multifactor" if multifactor else "priority/basic"
        self.machine = Machine(small_site(priority_type=kind, priority_weights=weights))
        self.now = 1000.0
        self.store: dict[int, Job] = {}
        self.nodes = {}
        self.stale: Plan | None = None
        self.launched: Counter[tuple[int, int]] = Counter()
        self.ended: dict[tuple[int, int], JobState] = {}

    def tell(self, event: Event) -> list[Effect]:
        effects = self.machine.handle(event)
        for effect in effects:
            if isinstance(effect, SaveJob):
                assert effect.new or effect.job.job_id in self.store or effect.job.array_job_id in self.store
                self.store[effect.job.job_id] = effect.job
            elif isinstance(effect, ForgetJob):
                del self.store[effect.job_id]
            elif isinstance(effect, SaveNode):
                self.nodes[effect.node.name] = effect.node
            elif isinstance(effect, SaveStep):
                assert effect.step.job_id in self.machine.jobs
            elif isinstance(effect, Launch):
                self._launch(effect.job)
        return effects

    def _launch(self, job: Job) -> None:
        assert self.store[job.job_id] == job, "launched before it was saved"
        assert (job.job_id, job.restarts) not in self.ended
        key = (job.job_id, job.restarts)
        self.launched[key] += 1
        assert self.launched[key] == 1, "launched twice"

    # ------------------------------------------------------------------------------------------ what may happen

    @rule(caller=CALLERS, request=REQUESTS, het=st.booleans())
    def submit(self, caller, request, het):  # type: ignore[no-untyped-def]
        if "minimum_nodes" in request:
            request["maximum_nodes"] = request["minimum_nodes"]
        owner = Credentials(caller.user_id, caller.user_id, caller.user_name, caller.user_name)
        one = Submission(JobRequest(**request), owner, True, "x.sh", "sbatch x.sh", "login", 1)
        self.tell(Submit(self.now, caller, (one, one) if het else (one,)))

    @rule()
    def plan_and_start(self) -> None:
        made = plan(self.machine.snapshot(self.now))
        self.stale = made
        self.tell(Planned(self.now, made))

    @precondition(lambda self: self.stale is not None)
    @rule()
    def an_old_plan_arrives(self) -> None:
        assert self.stale is not None
        self.tell(Planned(self.now, self.stale))

    @rule(seconds=st.sampled_from([1, 30, 130, 700]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        self.tell(Tick(self.now))

    def attempt(self, job_id: int, late: bool) -> int:
        job = self.machine.jobs.get(job_id)
        return max(0, (job.restarts if job else 0) - late)

    @rule(job_id=JOBS, late=st.booleans(), exit_code=st.sampled_from([0, 9, 256]), timed_out=st.booleans())
    def script_ends(self, job_id: int, late: bool, exit_code: int, timed_out: bool) -> None:
        self.tell(BatchEnded(self.now, job_id, self.attempt(job_id, late), exit_code, timed_out=timed_out))

    @rule(job_id=JOBS, late=st.booleans())
    def starts(self, job_id: int, late: bool) -> None:
        self.tell(JobStarted(self.now, job_id, self.attempt(job_id, late)))

    @rule(job_id=JOBS, late=st.booleans(), retry=st.booleans())
    def launch_fails(self, job_id: int, late: bool, retry: bool) -> None:
        self.tell(LaunchFailed(self.now, job_id, self.attempt(job_id, late), "no", retry=retry))

    @rule(job_id=JOBS, late=st.booleans(), event=st.sampled_from([Preempted, Withdrawn]), gone=st.one_of(st.none(), NODES))
    def it_is_taken_away(self, job_id: int, late: bool, event: type[Preempted], gone: str | None) -> None:
        self.tell(event(self.now, job_id, self.attempt(job_id, late), "others", (gone,) if gone else ()))

    @rule(job_id=JOBS, late=st.booleans(), some=st.one_of(st.none(), NODES))
    def nodes_are_released(self, job_id: int, late: bool, some: str | None) -> None:
        job = self.machine.jobs.get(job_id)
        nodes = job.allocation.nodes if job and job.allocation else ("n1",)
        self.tell(NodesReleased(self.now, job_id, self.attempt(job_id, late), (some,) if some else nodes))

    @rule(job_id=JOBS, late=st.booleans(), node=NODES)
    def a_node_fails(self, job_id: int, late: bool, node: str) -> None:
        self.tell(NodeFailed(self.now, job_id, self.attempt(job_id, late), (node,)))

    @rule(job_id=JOBS, step_id=st.integers(0, 2), ends=st.booleans())
    def a_step(self, job_id: int, step_id: int, ends: bool) -> None:
        restart = self.attempt(job_id, False)
        step = Step(job_id, step_id, "s", JobState.RUNNING, int(self.now))
        if ends:
            self.tell(StepEnded(self.now, restart, replace(step, state=JobState.COMPLETED, end_time=int(self.now))))
        else:
            self.tell(StepStarted(self.now, restart, step))

    @rule(caller=CALLERS, job_id=JOBS, task=st.one_of(st.none(), st.integers(0, 6)), signal=st.sampled_from([None, 9, 10]))
    def kill(self, caller, job_id, task, signal):  # type: ignore[no-untyped-def]
        tasks = () if task is None else (range(task, task + 2),)
        self.tell(Kill(self.now, caller, (JobSelection(job_id, tasks),), signal))

    @rule(caller=CALLERS, job_id=JOBS, release=st.booleans(), task=st.one_of(st.none(), st.integers(0, 6)))
    def hold(self, caller, job_id, release, task):  # type: ignore[no-untyped-def]
        tasks = () if task is None else (range(task, task + 1),)
        self.tell(Hold(self.now, caller, (JobSelection(job_id, tasks),), release=release))

    @rule(caller=CALLERS, job_id=JOBS, hold=st.booleans())
    def requeue(self, caller, job_id, hold):  # type: ignore[no-untyped-def]
        self.tell(Requeue(self.now, caller, (JobSelection(job_id),), hold=hold))

    @rule(caller=CALLERS, job_id=JOBS, resume=st.booleans())
    def suspend(self, caller, job_id, resume):  # type: ignore[no-untyped-def]
        self.tell(Suspend(self.now, caller, (JobSelection(job_id),), resume=resume))

    @rule(caller=CALLERS, job_id=JOBS, change=CHANGES)
    def update(self, caller, job_id, change):  # type: ignore[no-untyped-def]
        self.tell(UpdateJob(self.now, caller, (JobSelection(job_id),), (change,)))

    @rule(node=NODES, state=st.sampled_from(["DRAIN", "DOWN", "RESUME", "IDLE"]))
    def node_update(self, node: str, state: str) -> None:
        self.tell(UpdateNode(self.now, ROOT, (node,), state, "test"))

    @rule(node=NODES, removed=st.booleans())
    def node_seen(self, node: str, removed: bool) -> None:
        configured = next(each for each in self.machine.site.nodes if each.name == node)
        self.tell(NodeChanged(self.now, configured, removed))

    @rule()
    def the_controller_restarts(self) -> None:
        """What was saved, through its written form, is a machine that is the same where it matters."""
        saved = [load(Job, dump(job)) for job in self.store.values()]
        machine = Machine(self.machine.site)
        machine.restore(saved, self.nodes.values(), (), self.machine.next_job_id)
        assert machine.jobs.keys() == self.machine.jobs.keys()
        for job_id, job in machine.jobs.items():
            assert essence(job) == essence(self.machine.jobs[job_id])
        for name in self.machine.nodes:
            ours, theirs = self.machine.node_usage(name), machine.node_usage(name)
            assert (ours.cpus, ours.memory, ours.jobs, ours.whole) == (theirs.cpus, theirs.memory, theirs.jobs, theirs.whole)
            assert machine.nodes[name].available == self.machine.nodes[name].available
        self.machine = machine

    # ------------------------------------------------------------------------------------------ what must hold

    @invariant()
    def no_node_is_given_away_twice(self) -> None:
        if not hasattr(self, "machine"):
            return
        cpus: Counter[str] = Counter()
        memory: Counter[str] = Counter()
        devices: set[tuple[str, str, int]] = set()
        alone: dict[str, int] = {}
        users: Counter[str] = Counter()
        for job in self.machine.jobs.values():
            if not holds_nodes(job):
                continue
            assert job.allocation is not None
            for share in job.allocation.shares:
                cpus[share.node] += share.cpus
                memory[share.node] += share.memory
                users[share.node] += 1
                if job.allocation.whole_nodes:
                    alone[share.node] = job.job_id
                for gres in share.gres:
                    for index in gres.indices:
                        assert (share.node, gres.name, index) not in devices
                        devices.add((share.node, gres.name, index))
        for name, node in self.machine.nodes.items():
            usage = self.machine.node_usage(name)
            assert cpus[name] == usage.cpus <= node.cpus
            assert memory[name] == usage.memory <= node.memory
            assert users[name] == len(usage.jobs)
            assert name not in alone or users[name] == 1

    @invariant()
    def what_has_ended_stays_ended(self) -> None:
        if not hasattr(self, "machine"):
            return
        for job in self.machine.jobs.values():
            key = (job.job_id, job.restarts)
            if key in self.ended:
                assert job.state is self.ended[key]
            if job.state.finished:
                self.ended[key] = job.state
        for key in [key for key in self.ended if key[0] not in self.machine.jobs]:
            del self.ended[key]

    @invariant()
    def indexes_are_right(self) -> None:
        if not hasattr(self, "machine"):
            return
        jobs = self.machine.jobs.values()
        assert set(self.machine.pending()) == {job for job in jobs if job.pending and not holds_nodes(job)}
        assert set(self.machine.holding()) == {job for job in jobs if holds_nodes(job)}
        elements = (0 if job.state.finished else sum(map(len, job.array_tasks)) for job in jobs)
        assert self.machine._state.job_count == sum(waiting or 1 for waiting in elements)
        for job in jobs:
            if job.array_job_id:
                assert job in self.machine.jobs_of_array(job.array_job_id)

    @invariant()
    def everything_in_memory_is_in_the_store(self) -> None:
        if hasattr(self, "machine"):
            assert {essence(job) for job in self.machine.jobs.values()} == {essence(job) for job in self.store.values()}


def essence(job: Job) -> Job:
    """The job less what is not saved each time: reasons that a plan gives, priorities that age, steps."""
    return replace(job, reason=Reason.NONE, state_description="", priority=min(job.priority, 1), steps=(), next_step=0)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
