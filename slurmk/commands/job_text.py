"""Values of jobs and steps as the text that Slurm's commands print: one place for squeue, scontrol and their kin.

``JobText`` knows the moment and the cluster; each of its methods is one value of a job. squeue's ``-o`` letters and
``-O`` names, and scontrol's lines, are tables that point at these methods.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from grammar.arrays import format_tasks
from grammar.constraints import features_of, parse_constraint
from grammar.errors import GrammarError
from grammar.hostlist import compress
from grammar.mail import format_mail_type
from grammar.patterns import PatternValues, expand_pattern
from grammar.sizes import format_memory
from grammar.times import format_duration_minutes, format_elapsed, format_time
from grammar.tres import format_tres
from slurmk.model.job import BATCH_STEP, EXTERN_STEP, INTERACTIVE_STEP, Job, Step
from slurmk.model.requested import MemoryDemand, Requests, cpu_count, cpus_per_node, cpus_per_task, node_count, task_count
from slurmk.model.sharing import sharing
from slurmk.model.states import FLAG_CODES, INFINITE, NO_VALUE, STATE_CODES, JobFlag, JobState, Reason

if TYPE_CHECKING:
    from slurmk.core.machine import Machine

TASKS_LENGTH = 64
"""Bytes that the elements of an array may take in an id, the end of the string included (SLURM_BITSTR_LEN)."""

ID_LENGTH = 31
"""Bytes of an array's id where SLURM_BITSTR_LEN is not set."""

STEP_NAMES: dict[int, str] = {BATCH_STEP: "batch", EXTERN_STEP: "extern", INTERACTIVE_STEP: "interactive"}

_WAITED = frozenset((JobState.PENDING, JobState.TIMEOUT, JobState.OUT_OF_MEMORY, JobState.DEADLINE, JobState.FAILED))
_YEAR = 365 * 86400
_SWITCH_WAIT = 300
"""Seconds that a job may wait for fewer switches where max_switch_wait is not set."""


@lru_cache(maxsize=1024)
def _feature_names(text: str) -> frozenset[str]:
    try:
        return frozenset(features_of(parse_constraint(text)))
    except GrammarError:
        return frozenset()


@lru_cache(maxsize=8192)
def node_list(nodes: tuple[str, ...]) -> str:
    """Node names as one host list."""
    return compress(nodes)


def date_text(moment: int, absent: str) -> str:
    """A point in time, or ``absent`` for 0."""
    return format_time(moment, absent=absent)


@lru_cache(maxsize=4096)
def limit_text(minutes: int) -> str:
    """A time limit as squeue prints it: ``5:00``, ``1:00:00``, ``UNLIMITED``, ``NOT_SET``."""
    return format_duration_minutes(minutes, padded=False)


@lru_cache(maxsize=4096)
def tasks_text(tasks: tuple[range, ...], maximum_running: int, length: int) -> str:
    """An array's waiting elements, ``0-9%2``, cut with ``...`` where they come near ``length`` bytes (0: not cut)."""
    text = format_tasks(tasks)
    if length and len(text) >= length - 2:
        text = (text[: max(length - 4, 0)] + "...")[: length - 1]
    return f"{text}%{maximum_running}" if maximum_running else text


def bare_tasks_text(tasks: tuple[range, ...]) -> str:
    """An array's waiting elements without steps: only neighbours share a range."""
    return ",".join(format_tasks([task]) if task.step == 1 else ",".join(map(str, task)) for task in tasks)


def exit_code_text(status: int) -> str:
    """A wait(2) status as ``code:signal``."""
    signal = status & 0x7F
    return f"0:{signal}" if signal else f"{(status >> 8) & 0xFF}:0"


def flag_of(job: Job) -> JobFlag | None:
    """The flag that is printed in place of the base state, if one is set."""
    return next((flag for flag in FLAG_CODES if job.flags & flag), None) if job.flags else None


def state_name(job: Job) -> str:
    """``RUNNING``, ``COMPLETING`` …"""
    flag = flag_of(job)
    return (flag.name or "") if flag is not None else job.state.name


def state_code(job: Job) -> str:
    """``R``, ``CG`` …"""
    flag = flag_of(job)
    return (FLAG_CODES[flag] if flag is not None else "") or STATE_CODES[job.state]


def reason(job: Job) -> str:
    """Why it waits or how it ended: the state's description if it has one, else the reason's name."""
    return job.state_description or job.reason.value


def raw_array_id(job: Job) -> str:
    """``12``, ``12_3``, ``12_[0-9]`` without cutting: how messages name a job."""
    if job.array_tasks:
        return f"{job.array_job_id}_[{format_tasks(job.array_tasks)}]"
    if job.array_task_id is not None:
        return f"{job.array_job_id}_{job.array_task_id}"
    if job.het_job_id:
        return f"{job.het_job_id}+{job.het_job_offset}"
    return str(job.job_id)


class JobText:
    """Values of jobs at one moment. ``tasks_length`` is SLURM_BITSTR_LEN if the caller has set it (0: no limit);
    ``bare_tasks`` leaves steps and how many may run at once out of an array's id."""

    def __init__(
        self, machine: Machine, now: float, *, convert: bool = True, tasks_length: int | None = None, bare_tasks: bool = False
    ) -> None:
        self.machine = machine
        self.site = machine.site
        self.now = int(now)
        self._memory = format_memory if convert else self._memory_plain
        self._length = TASKS_LENGTH if tasks_length is None else tasks_length
        self._id_length = ID_LENGTH if tasks_length is None else None
        self._bare_tasks = bare_tasks
        self._cpus_of_node: dict[str, int] = {}
        self._requests = Requests(machine.site, machine.partitions)

    @staticmethod
    def _memory_plain(mib: int) -> str:
        return f"{mib}M" if mib else "0"

    # ------------------------------------------------------------------------------------------ identity

    def array_id(self, job: Job) -> str:
        """``12``, ``12_3``, ``12_[0-9%2]``, ``12+1``, as %i prints it."""
        if job.array_tasks:
            tasks = tasks_text(job.array_tasks, job.array_maximum_running, self._length)
            if self._bare_tasks:
                tasks = bare_tasks_text(job.array_tasks)
            return f"{job.array_job_id}_[{tasks}]"[: self._id_length]
        return raw_array_id(job) if job.array_job_id or job.het_job_id else str(job.job_id)

    def job_id(self, job: Job) -> str:
        return str(job.job_id)

    def array_job_id(self, job: Job) -> str:
        return str(job.array_job_id or job.job_id)

    def array_task_id(self, job: Job) -> str:
        if job.array_tasks:
            return tasks_text(job.array_tasks, job.array_maximum_running, self._length)
        return "N/A" if job.array_task_id is None else str(job.array_task_id)

    def het_job_id(self, job: Job) -> str:
        return str(job.het_job_id) if job.het_job_id else "N/A"

    def het_offset(self, job: Job) -> str:
        return str(job.het_job_offset) if job.het_job_id else "N/A"

    def het_set(self, job: Job) -> str:
        if not job.het_job_id:
            return "N/A"
        first = self.machine.jobs.get(job.het_job_id, job)
        return compress(map(str, first.het_components)).strip("[]")

    def reason_list(self, job: Job) -> str:
        """What stands in NODELIST(REASON): the reason in parentheses, or the nodes."""
        return f"({reason(job)})" if self.has_reason(job) else self.nodes(job)

    @staticmethod
    def has_reason(job: Job) -> bool:
        return job.state in _WAITED and not job.flags & JobFlag.COMPLETING

    # ------------------------------------------------------------------------------------------ times

    def run_seconds(self, job: Job) -> int:
        """Seconds that it has run or ran, without those it was suspended for."""
        if not job.start_time or job.state is JobState.PENDING or job.start_time > self.now:
            return 0
        if job.state is JobState.SUSPENDED and job.suspend_time:
            end = job.suspend_time
        elif job.end_time and (job.state.finished or job.flags & JobFlag.COMPLETING):
            end = job.end_time
        else:
            end = self.now
        return end - job.start_time - job.suspended_seconds

    def time_used(self, job: Job) -> str:
        return format_elapsed(self.run_seconds(job))

    def time_left(self, job: Job) -> str:
        if job.time_limit >= NO_VALUE:
            return limit_text(job.time_limit)
        return format_elapsed(job.time_limit * 60 - self.run_seconds(job))

    def time_limit(self, job: Job) -> str:
        return limit_text(job.time_limit)

    def time_minimum(self, job: Job) -> str:
        return limit_text(job.request.time_minimum or 0)

    def start(self, job: Job) -> int:
        """When it started, or is planned to; 0 if nobody knows."""
        if job.state is not JobState.PENDING:
            return job.start_time
        outlook = self.machine.outlooks.get(job.job_id)
        if outlook is not None and outlook.start_time:
            return outlook.start_time
        begin = job.request.begin_time or 0
        return begin if begin > self.now else 0

    def end(self, job: Job) -> int:
        """When it ended or will end by its limit; 0 if unknown or never."""
        if job.end_time and (job.state.finished or job.flags & JobFlag.COMPLETING):
            return job.end_time
        start = self.start(job)
        if not start or job.time_limit == INFINITE:
            return 0
        limit = job.time_limit * 60 if job.time_limit < NO_VALUE else _YEAR
        return start + limit + job.suspended_seconds

    @staticmethod
    def eligible(job: Job) -> int:
        """From when it may run; 0 while it is held and no later time was asked for."""
        if job.pending and not job.priority:
            begin = job.request.begin_time or 0
            return begin if begin > job.submit_time else 0
        return job.eligible_time

    def switch_wait(self, job: Job) -> int:
        """Seconds that it waits for fewer switches: as asked for, but not longer than the site allows (max_switch_wait)."""
        asked = job.request.wait_for_switch or 0
        most = self.site.scheduler_parameters.get("max_switch_wait", "")
        return min(asked, int(most) if most.isascii() and most.isdigit() and len(most) < 10 else _SWITCH_WAIT)

    def never_ends(self, job: Job) -> bool:
        return job.time_limit == INFINITE and job.state in (JobState.RUNNING, JobState.SUSPENDED)

    def start_time(self, job: Job) -> str:
        return date_text(self.start(job), "N/A")

    def end_time(self, job: Job) -> str:
        return "NONE" if self.never_ends(job) else date_text(self.end(job), "N/A")

    def pending_seconds(self, job: Job) -> str:
        end = job.start_time if job.start_time and job.state is not JobState.PENDING else self.now
        return str(max(0, end - job.submit_time))

    # ------------------------------------------------------------------------------------------ size

    def cpus_per_task(self, job: Job) -> int:
        return cpus_per_task(job.request)

    def requested_nodes(self, job: Job) -> int:
        """Nodes that it needs at least: those asked for, or as many as its tasks or CPUs fill."""
        request = job.request
        minimum = node_count(request)
        if request.tasks is None and request.minimum_cpus is None and request.cpus_per_task is None:
            return minimum
        tasks, largest = task_count(request), self._largest_node(job.partitions[0] if job.partitions else "")
        most = max(minimum, request.maximum_nodes or tasks)
        if request.tasks_per_node:
            return min(max(minimum, tasks // request.tasks_per_node), most)
        if (request.cpus_per_task or 1) > 1:
            return min(max(minimum, tasks // max(1, largest // cpus_per_task(request))), most)
        return max(minimum, -(-max(tasks, request.minimum_cpus or 0) // largest))

    def _largest_node(self, partition_name: str) -> int:
        known = self._cpus_of_node.get(partition_name)
        if known is None:
            partition = self.machine.partitions.get(partition_name)
            nodes = self.machine.nodes
            cpus = [nodes[name].cpus for name in partition.nodes if name in nodes] if partition else []
            known = self._cpus_of_node[partition_name] = max(cpus, default=1) or 1
        return known

    def node_count(self, job: Job) -> int:
        return len(job.allocation.shares) if job.allocation else self.requested_nodes(job)

    def cpu_count(self, job: Job) -> int:
        return job.allocation.cpus if job.allocation else cpu_count(job.request)

    def nodes_text(self, job: Job) -> str:
        return str(self.node_count(job))

    def cpus_text(self, job: Job) -> str:
        return str(self.cpu_count(job))

    def tasks_count(self, job: Job) -> str:
        """What NumTasks shows; a job that never ran has none, and one that has nodes has a task on each at least."""
        if job.allocation and job.resize_time and not (job.request.tasks or job.request.tasks_per_node):
            return str(len(job.allocation.shares))
        if job.allocation and not job.request.tasks:
            return str(max(task_count(job.request), len(job.allocation.shares) * (job.request.tasks_per_node or 1)))
        return "N/A" if job.state.finished and not job.allocation else str(task_count(job.request))

    def minimum_cpus(self, job: Job) -> int:
        """CPUs that it needs on every node."""
        return cpus_per_node(job.request)

    def memory_demand(self, job: Job) -> MemoryDemand:
        """Memory asked for, defaults filled in."""
        return self._requests.memory_demand(job)

    def minimum_memory(self, job: Job) -> str:
        return self._memory(self.memory_demand(job).amount)

    def temporary_disk(self, job: Job) -> str:
        return self._memory(job.request.temporary_disk_per_node or 0)

    def maximum_nodes(self, job: Job) -> str:
        return str((job.request.maximum_nodes if job.pending else 0) or self.node_count(job))

    # ------------------------------------------------------------------------------------------ places

    def nodes(self, job: Job) -> str:
        return node_list(job.allocation.nodes) if job.allocation else ""

    def batch_host(self, job: Job) -> str:
        return job.allocation.shares[0].node if job.allocation else "n/a"

    def planned_nodes(self, job: Job) -> str | None:
        """Where it is planned to run (SCHEDNODES)."""
        outlook = self.machine.outlooks.get(job.job_id) if job.state is JobState.PENDING else None
        return node_list(outlook.nodes) if outlook is not None and outlook.nodes else None

    def features(self, job: Job) -> str | None:
        """The features that it asks for; once it has nodes, those that it prefers in their place if it got them."""
        return job.request.prefer if self._got_preferred(job) else job.request.constraints

    def prefer(self, job: Job) -> str | None:
        """The features that it would rather have and has not got."""
        return None if self._got_preferred(job) else job.request.prefer

    def _got_preferred(self, job: Job) -> bool:
        if job.request.prefer is None or job.allocation is None:
            return False
        wanted = _feature_names(job.request.prefer)
        nodes = (self.machine.nodes.get(name) for name in job.allocation.nodes)
        return all(node is not None and not wanted.isdisjoint(node.features) for node in nodes)

    @staticmethod
    def required_nodes(job: Job) -> str:
        return job.request.required_nodes or ""

    @staticmethod
    def excluded_nodes(job: Job) -> str:
        return job.request.excluded_nodes or ""

    def partition(self, job: Job) -> str:
        return job.partition

    # ------------------------------------------------------------------------------------------ TRES

    def requested_tres(self, job: Job) -> str:
        requested = self._requests.of(job)
        return _tres(requested.cpus, requested.memory, requested.nodes, dict(requested.gres))

    def allocated_tres(self, job: Job) -> str | None:
        allocation = job.allocation
        if allocation is None:
            return None
        gres: dict[str, int] = {}
        for share in allocation.shares:
            for item in share.gres:
                if self.machine.site.counts(f"gres/{item.name}"):
                    gres[item.name] = gres.get(item.name, 0) + item.count
        return _tres(allocation.cpus, allocation.memory, len(allocation.shares), gres, billed=not job.het_job_id)

    def tres_or_allocated(self, job: Job) -> str:
        return self.allocated_tres(job) or self.requested_tres(job)

    # ------------------------------------------------------------------------------------------ files

    def file(self, job: Job, pattern: str | None, otherwise: str) -> str:
        """A file of the job by its pattern, below its working directory."""
        if not pattern:
            pattern = otherwise
        if not pattern:
            return ""
        name = expand_pattern(
            pattern,
            PatternValues(
                job_id=job.job_id,
                array_job_id=job.array_job_id,
                array_task_id=job.array_task_id,
                job_name=job.name,
                user_name=job.credentials.user_name,
            ),
        )
        return name if name.startswith("/") else f"{(job.request.current_working_directory or '').rstrip('/')}/{name}"

    def output_pattern(self, job: Job) -> str:
        return job.request.standard_output or ("slurm-%A_%a.out" if job.array_job_id else "slurm-%j.out")

    # ------------------------------------------------------------------------------------------ how it shares

    def oversubscribe(self, job: Job) -> str:
        """``YES`` when it asked to share, ``OK`` when its partition lets it, else ``NO``."""
        return self._sharing(job)[0]

    def exclusive(self, job: Job) -> str:
        return self._sharing(job)[1]

    def _sharing(self, job: Job) -> tuple[str, str]:
        return sharing(job.request.shared, self.machine.partitions.get(job.partition))

    def dependency(self, job: Job) -> str | None:
        """What it still waits for, or waited for when it was ended, each with how it stands."""
        if not job.request.dependency:
            return None
        return self.machine.dependency_text(job) or None

    def requeues(self, job: Job) -> bool:
        """True when it may be put back in the queue."""
        return self.site.job_requeue if job.request.requeue is None else job.request.requeue

    def mail_types(self, job: Job) -> str:
        return format_mail_type(job.request.mail_type)


def _tres(cpus: int, memory: int, nodes: int, gres: dict[str, int], *, billed: bool = True) -> str:
    """TRES as text; nothing is billed for what a component of a het job has."""
    amounts = {"cpu": cpus, "mem": memory, "node": nodes}
    if billed:
        amounts["billing"] = cpus
    amounts.update({f"gres/{name}": count for name, count in gres.items()})
    return format_tres(amounts)


def step_id_text(step: Step, job: Job | None) -> str:
    """``12.0``, ``12.batch``, ``12_3.0``; steps of a het job's component go by the component's own number."""
    name = STEP_NAMES.get(step.step_id, str(step.step_id))
    return f"{step_owner(job) if job is not None else step.job_id}.{name}"


def step_owner(job: Job) -> str:
    """The job of a step, as the step's name begins."""
    return str(job.job_id) if job.het_job_id else raw_array_id(job)


def running_steps(job: Job) -> tuple[Step, ...]:
    """Steps of a job that are not over, by id (the batch script last)."""
    alive = (JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED)
    return tuple(sorted((step for step in job.steps if step.state in alive), key=lambda step: step.step_id))


def today(now: float) -> str:
    """The line above a long listing: ``Mon Nov 30 07:22:32 2026``."""
    return time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(now))


def is_held(job: Job) -> bool:
    """True while a user or an operator holds it."""
    return job.reason in (Reason.JOB_HELD_USER, Reason.JOB_HELD_ADMIN) or (job.pending and job.priority == 0)


def licenses_used(machine: Machine) -> dict[str, int]:
    """Licences that running jobs hold, by name."""
    used: dict[str, int] = {}
    for job in machine.holding():
        if job.flags & JobFlag.COMPLETING or job.state is not JobState.RUNNING or not job.request.licenses:
            continue
        for word in re.split(r"[,|]", job.request.licenses):
            name, _, count = word.replace("=", ":").partition(":")
            used[name] = used.get(name, 0) + (int(count) if count.isdigit() else 1)
    return used
