"""What the machine remembers, and the indexes that keep every event from looking at every job.

``State.put`` is the only way a job changes: it keeps the indexes right by comparing the old value with the new. A
``Turn`` is one event being handled: it collects the effects, so that a job that changes twice is saved once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from slurmk.core.effects import Effect, SaveJob, SaveNode, SavePartition, WakeAt, WakePlanner
from slurmk.model.job import Job
from slurmk.model.node import Node, Partition
from slurmk.model.quotas import Quota
from slurmk.model.reservation import Reservation
from slurmk.model.site import Site
from slurmk.model.states import NO_VALUE, JobFlag, JobState, NodeFlag, Reason
from slurmk.planner.build import Waiting
from slurmk.planner.snapshot import Demand, Outlook

if TYPE_CHECKING:
    from slurmk.core.feasibility import Verdict
    from slurmk.core.priority import Directory

FIRST_PRIORITY = 4294901760
"""Priority of the first job under priority/basic; each later one has one less."""

BACKSTOP = 60
"""Seconds that a job may be late beyond its limit and KillWait before the controller ends it in stepd's stead."""

Key = TypeVar("Key")


class Phase(Enum):
    """Where a job is in its life, as far as events differ: COMPLETING holds nodes but no longer counts as running."""

    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETING = "completing"
    FINISHED = "finished"


def phase_of(job: Job) -> Phase:
    """The phase that a job's state and flags mean. A job that is being requeued is COMPLETING, though PENDING already."""
    if job.flags & JobFlag.COMPLETING:
        return Phase.COMPLETING
    return _PHASES.get(job.state, Phase.FINISHED)


_PHASES = {
    JobState.PENDING: Phase.PENDING,
    JobState.RUNNING: Phase.RUNNING,
    JobState.SUSPENDED: Phase.SUSPENDED,
}


@dataclass(slots=True)
class NodeUsage:
    """What jobs hold on one node. Memory is MiB; ``gres`` counts by kind and type (``gpu:a100``, ``gpu`` untyped).

    ``whole`` are the jobs that have the node for themselves.
    """

    cpus: int = 0
    memory: int = 0
    gres: dict[str, int] = field(default_factory=dict)
    jobs: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    completing: set[int] = field(default_factory=set)
    active_cpus: int = 0  # of jobs that are not completing
    sharing: set[int] = field(default_factory=set)  # jobs that allow oversubscription
    parked: set[int] = field(default_factory=set)  # jobs that are suspended, and hold no CPUs
    devices: dict[str, set[int]] = field(default_factory=dict)  # numbers of the devices in use, by kind


class State:
    """All of the machine's memory."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.jobs: dict[int, Job] = {}
        self.nodes: dict[str, Node] = {}
        self.partitions: dict[str, Partition] = {}
        self.outlooks: dict[int, Outlook] = {}
        self.longest_wait = 0  # seconds, of the jobs that have started
        self.next_job_id = max(1, site.first_job_id)
        self.snapshot_id = 0
        self.changes = 0  # of jobs and nodes, counted, to know whether a plan is of the present state
        self.changes_at_snapshot = -1
        # indexes
        self.pending: dict[int, None] = {}
        self.holding: dict[int, None] = {}  # jobs with an allocation that is not released
        self.by_user: dict[int, set[int]] = {}
        self.by_name: dict[tuple[int, str], set[int]] = {}  # unfinished jobs of a user by name, for singleton
        self.by_array: dict[int, set[int]] = {}  # elements that are their own records, and the record of the rest
        self.by_het: dict[int, set[int]] = {}
        self.array_running: dict[int, int] = {}
        self.array_waiting: dict[int, set[int]] = {}  # pending records of an array
        self.elements: dict[tuple[int, int], int] = {}
        self.dependants: dict[int, set[int]] = {}  # job or array id -> jobs that wait for it
        self.waiting_on: dict[int, frozenset[int]] = {}
        self.usage: dict[str, NodeUsage] = {}
        self.epilogs: set[int] = set()  # jobs of which the controller's own epilog runs
        self.released: dict[int, set[str]] = {}  # nodes of a job whose processes are gone already
        self.alarms: list[tuple[int, int]] = []  # (time, job id)
        self.finished: list[tuple[int, int]] = []  # (end time, job id) of jobs to forget
        self.waiting: dict[int, Waiting] = {}  # pending jobs in the form that the planner's snapshot takes
        self.restated: dict[int, None] = {}  # jobs of which that is to be made anew, or that wait no more
        self.last_sluid = 0
        self.lowest_priority = FIRST_PRIORITY + 1
        self.features: frozenset[str] = frozenset()
        self.gres_kinds: frozenset[str] = frozenset()
        self.verdicts: dict[tuple[Demand, str], Verdict] = {}
        self.job_count = 0  # jobs in memory, each waiting element of an array counted
        self.total_cpus = 0
        self.largest_partition_factor = 1
        self.quotas: tuple[Quota, ...] = ()
        self.partition_tres: dict[str, dict[str, int]] = {}  # of all nodes of a partition, as they are now
        self.gave_way: dict[int, int] = {}  # jobs that give way, and the job each does it for
        self.parked: set[int] = set()  # jobs that are suspended, and hold no CPUs
        self.exempt_until = 0  # when the first running job may be preempted that may not be now; 0: none
        self.next_turn = 0  # when jobs that share CPUs change places; 0 while none has to wait for its turn
        self.changes_at_turn = -1
        self.reservations: dict[str, Reservation] = {}
        self.last_reservation = 0  # number of the last one made
        self.reserved: dict[str, tuple[NodeFlag, str]] = {}  # by node: flags, and the name of an active reservation
        self.reservation_idle: dict[str, int] = {}  # since when nobody uses it, of those that are purged then
        self.quota_usage: list[list[int]] = []  # what holding jobs use of each quota's limits
        self.set_configuration(site.nodes, site.partitions)

    def set_configuration(self, nodes: Iterable[Node], partitions: Iterable[Partition]) -> None:
        """Take these as all nodes and partitions, in this order."""
        self.nodes = {node.name: node for node in nodes}
        self.partitions = {partition.name: partition for partition in partitions}
        for name in self.nodes:
            self.usage.setdefault(name, NodeUsage())
        self.refresh()

    def refresh(self) -> None:
        """Nodes or partitions changed: count anew what was counted of them."""
        self.features = frozenset(
            feature for node in self.nodes.values() for feature in (*node.features, *node.active_features)
        )
        self.total_cpus = sum(node.cpus for node in self.nodes.values())
        self.largest_partition_factor = max((each.priority_job_factor for each in self.partitions.values()), default=1)
        kinds = {gres.name for node in self.nodes.values() for gres in node.gres}
        self.gres_kinds = frozenset(kinds.union(self.site.gres_types))
        self.verdicts.clear()
        self.partition_tres.clear()
        self.restate_all()

    # ---------------------------------------------------------------- jobs

    def put(self, job: Job) -> None:
        """Make this the present value of the job."""
        old = self.jobs.get(job.job_id)
        self.jobs[job.job_id] = job
        self.job_count += _weight(job) - (_weight(old) if old else 0)
        self.restate(job.job_id)
        self.changes += 1
        if old is None:
            self._add(job)
        else:
            self._change(old, job)

    def set_reason(self, job: Job, reason: Reason, description: str = "") -> Job:
        """Let the job say why it waits. Nothing that a plan depends on changes, so what the planner keeps of it stays good."""
        if job.reason is reason and job.state_description == description:
            return job
        changed = with_reason(job, reason, description)
        self.jobs[job.job_id] = changed
        return changed

    def restate(self, job_id: int) -> None:
        """Something changed of the job that a plan may depend on."""
        self.restated[job_id] = None

    def restate_all(self) -> None:
        """Something changed that the form of every waiting job may depend on."""
        self.restated.update(dict.fromkeys(self.waiting))

    def remove(self, job_id: int) -> None:
        """Forget the job wholly."""
        job = self.jobs.pop(job_id)
        self.job_count -= _weight(job)
        self._hold(job, -1)
        self._wait(job, waits=False)
        self.restate(job_id)
        self.outlooks.pop(job_id, None)
        self.released.pop(job_id, None)
        self.wait_for(job_id, frozenset())
        self._unname(job)
        _discard(self.by_user, job.credentials.user_id, job_id)
        if job.array_job_id:
            _discard(self.by_array, job.array_job_id, job_id)
            if job.array_task_id is not None:
                self.elements.pop((job.array_job_id, job.array_task_id), None)
            if _counts_as_running(job):
                self._count_running(job.array_job_id, -1)
        if job.het_job_id:
            _discard(self.by_het, job.het_job_id, job_id)

    def _add(self, job: Job) -> None:
        self.by_user.setdefault(job.credentials.user_id, set()).add(job.job_id)
        if job.array_job_id:
            self.by_array.setdefault(job.array_job_id, set()).add(job.job_id)
            if job.array_task_id is not None:
                self.elements[job.array_job_id, job.array_task_id] = job.job_id
            if _counts_as_running(job):
                self._count_running(job.array_job_id, 1)
        if job.het_job_id:
            self.by_het.setdefault(job.het_job_id, set()).add(job.job_id)
        if phase_of(job) is Phase.PENDING:
            self._wait(job, waits=True)
        if not job.state.finished:
            self.by_name.setdefault((job.credentials.user_id, job.name), set()).add(job.job_id)
        self._hold(job, 1)

    def _change(self, old: Job, job: Job) -> None:
        if job.job_id in self.outlooks and _asks(old) != _asks(job):
            self.outlooks[job.job_id] = replace(self.outlooks[job.job_id], promised=None)
        same_hold = old.allocation is job.allocation and old.flags == job.flags and old.parked == job.parked
        if not same_hold or old.state is not job.state:
            self._hold(old, -1)
            self._hold(job, 1)
            waits = phase_of(job) is Phase.PENDING
            self._wait(job, waits=waits)
            if not waits:
                self.outlooks.pop(job.job_id, None)
        if old.name != job.name or old.state.finished != job.state.finished:
            self._unname(old)
            if not job.state.finished:
                self.by_name.setdefault((job.credentials.user_id, job.name), set()).add(job.job_id)
        if job.array_job_id:
            if old.array_task_id is None and job.array_task_id is not None:
                self.elements[job.array_job_id, job.array_task_id] = job.job_id
            difference = _counts_as_running(job) - _counts_as_running(old)
            if difference:
                self._count_running(job.array_job_id, difference)

    def _wait(self, job: Job, *, waits: bool) -> None:
        if waits:
            self.pending[job.job_id] = None
            if job.array_job_id:
                self.array_waiting.setdefault(job.array_job_id, set()).add(job.job_id)
            return
        self.pending.pop(job.job_id, None)
        if job.array_job_id:
            _discard(self.array_waiting, job.array_job_id, job.job_id)

    def _unname(self, job: Job) -> None:
        _discard(self.by_name, (job.credentials.user_id, job.name), job.job_id)

    def _count_running(self, array_job_id: int, difference: int) -> None:
        for member in self.array_waiting.get(array_job_id, ()):
            if self.jobs[member].array_maximum_running:
                self.restate(member)
        count = self.array_running.get(array_job_id, 0) + difference
        if count > 0:
            self.array_running[array_job_id] = count
        else:
            self.array_running.pop(array_job_id, None)

    def _hold(self, job: Job, sign: int) -> None:
        """Count (or, with -1, count no longer) what the job holds on its nodes."""
        if job.allocation is None or not holds_nodes(job):
            return
        if sign > 0:
            self.holding[job.job_id] = None
        else:
            self.holding.pop(job.job_id, None)
        if job.parked and sign > 0:
            self.parked.add(job.job_id)
        else:
            self.parked.discard(job.job_id)
        for quota, used in zip(self.quotas, self.quota_usage, strict=True):
            if quota.counts(job.allocation.partition, job.account, job.qos, job.credentials.user_id):
                for index, amount in enumerate(quota.held(job.allocation)):
                    used[index] += sign * amount
        for share in job.allocation.shares:
            usage = self.usage.setdefault(share.node, NodeUsage())
            usage.cpus += sign * (0 if job.parked else share.cpus)
            usage.memory += sign * share.memory
            if not job.flags & JobFlag.COMPLETING and not job.parked:
                usage.active_cpus += sign * share.cpus
            for gres in share.gres:
                kind = f"{gres.name}:{gres.type}" if gres.type else gres.name
                usage.gres[kind] = usage.gres.get(kind, 0) + sign * gres.count
                devices = usage.devices.setdefault(gres.name, set())
                if sign > 0:
                    devices.update(gres.indices)
                else:
                    devices.difference_update(gres.indices)
            for members, belongs in (
                (usage.jobs, True),
                (usage.whole, job.allocation.whole_nodes and not job.parked),
                (usage.parked, job.parked),
                (usage.completing, bool(job.flags & JobFlag.COMPLETING)),
                (usage.sharing, job.request.shared == "oversubscribe"),
            ):
                if not belongs:
                    continue
                if sign > 0:
                    members.add(job.job_id)
                else:
                    members.discard(job.job_id)

    # ---------------------------------------------------------------- alarms

    def alarm(self, time: int, job_id: int) -> None:
        """Look at the job again at this time."""
        heapq.heappush(self.alarms, (time, job_id))

    def forget_at(self, time: int, job_id: int) -> None:
        """The finished job may leave memory at this time."""
        heapq.heappush(self.finished, (time, job_id))

    def wait_for(self, job_id: int, targets: frozenset[int]) -> None:
        """The job's dependencies name these jobs (none: it waits for nobody)."""
        for target in self.waiting_on.pop(job_id, frozenset()):
            _discard(self.dependants, target, job_id)
        if targets:
            self.waiting_on[job_id] = targets
            for target in targets:
                self.dependants.setdefault(target, set()).add(job_id)


_FIELDS = tuple(
    (getattr(Job, field.name).__get__, getattr(Job, field.name).__set__)
    for field in fields(Job)
    if field.name not in ("reason", "state_description")
)
_SET_REASON = Job.__dict__["reason"].__set__
_SET_DESCRIPTION = Job.__dict__["state_description"].__set__


def with_reason(job: Job, reason: Reason, description: str = "") -> Job:
    """``replace(job, reason=…, state_description=…)`` at a fifth of the cost: a plan may change thousands of reasons."""
    copy = object.__new__(Job)
    for get, set_to in _FIELDS:
        set_to(copy, get(job))
    _SET_REASON(copy, reason)
    _SET_DESCRIPTION(copy, description)
    return copy


def _asks(job: Job) -> tuple[object, ...]:
    """What a promise is about; to a job that asks for something else a new one is made."""
    return job.request, job.time_limit, job.partitions, job.array_tasks


def holds_nodes(job: Job) -> bool:
    """True while the job's allocation is in use."""
    if job.flags & JobFlag.EPILOG_RUNS:
        return False
    return bool(job.flags & JobFlag.COMPLETING) or job.state in (JobState.RUNNING, JobState.SUSPENDED)


def _weight(job: Job) -> int:
    return sum(map(len, job.array_tasks)) if job.array_tasks and not job.state.finished else 1


def _counts_as_running(job: Job) -> bool:
    return job.array_task_id is not None and holds_nodes(job)


def _discard(table: dict[Key, set[int]], key: Key, job_id: int) -> None:
    members = table.get(key)
    if members is None:
        return
    members.discard(job_id)
    if not members:
        del table[key]


class Turn:
    """One event at work: the state, the time in whole seconds, and the effects so far."""

    __slots__ = ("_alarm", "_saved", "_wake", "directory", "effects", "noted", "now", "saves", "state", "time")

    def __init__(self, state: State, directory: Directory, time: float) -> None:
        self.state = state
        self.directory = directory
        self.time = time
        self.now = int(time)
        self.saves: list[Effect] = []
        self.effects: list[Effect] = []
        self.noted: list[Job] = []  # jobs that started or ended: those that wait for them are yet to be told
        self._saved: dict[tuple[int, int], int] = {}
        self._wake = False
        self._alarm: int | None = None

    def save(self, job: Job, *, new: bool = False) -> Job:
        """Make this the job's value and have it kept on disk."""
        self.state.put(job)
        key = (job.job_id, job.restarts)
        position = self._saved.get(key)
        if position is None:
            self._saved[key] = len(self.saves)
            self.saves.append(SaveJob(job, new))
        else:
            earlier = self.saves[position]
            assert isinstance(earlier, SaveJob)
            self.saves[position] = SaveJob(job, new or earlier.new)
        return job

    def save_node(self, node: Node) -> None:
        self.state.nodes[node.name] = node
        self.state.changes += 1
        self.saves.append(SaveNode(node))

    def save_partition(self, partition: Partition) -> None:
        self.state.partitions[partition.name] = partition
        self.saves.append(SavePartition(partition))

    def keep(self, effect: Effect) -> None:
        """An effect that belongs to the transaction."""
        self.saves.append(effect)

    def emit(self, effect: Effect) -> None:
        """An effect to be carried out after the transaction."""
        self.effects.append(effect)

    def note(self, job: Job) -> None:
        """The job started or ended."""
        self.noted.append(job)

    def wake_planner(self) -> None:
        self._wake = True

    def wake_at(self, time: int, job_id: int) -> None:
        """Look at this job again at ``time`` (Unix seconds)."""
        self.state.alarm(time, job_id)
        if self._alarm is None or time < self._alarm:
            self._alarm = time

    def due_alarms(self) -> list[int]:
        """The jobs whose time has come, each once; and the next time is asked for."""
        alarms = self.state.alarms
        due: dict[int, None] = {}
        while alarms and alarms[0][0] <= self.now:
            due[heapq.heappop(alarms)[1]] = None
        if alarms:
            self._alarm = alarms[0][0]
        return list(due)

    def result(self) -> list[Effect]:
        """All effects: saves first, then what follows from them."""
        effects = self.saves + self.effects
        if self._alarm is not None:
            effects.append(WakeAt(float(self._alarm)))
        if self._wake:
            effects.append(WakePlanner())
        return effects


def limit_end(job: Job) -> int | None:
    """When a started job's time limit is reached (Unix seconds); None without a limit."""
    if job.time_limit >= NO_VALUE:
        return None
    return job.start_time + job.time_limit * 60 + job.suspended_seconds


def watch_limit(turn: Turn, job: Job) -> None:
    """Look at a running job again when it is so late that stepd must have failed to end it."""
    end = limit_end(job)
    if end is not None:
        turn.wake_at(end + lateness(turn.state, job), job.job_id)


def lateness(state: State, job: Job) -> int:
    """Seconds after its limit at which the controller ends a job itself."""
    return max(over_time(state, job.partition), job.over_time_limit) * 60 + state.site.kill_wait + BACKSTOP


LONGEST_OVER_TIME = 365 * 24 * 60
"""Minutes that stand for an OverTimeLimit of UNLIMITED."""


def over_time(state: State, name: str) -> int:
    """Minutes that jobs of a partition may run beyond their limits (OverTimeLimit)."""
    partition = state.partitions.get(name)
    over = partition.over_time_limit if partition and partition.over_time_limit is not None else state.site.over_time_limit
    return min(over, LONGEST_OVER_TIME)
