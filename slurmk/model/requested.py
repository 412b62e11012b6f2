"""What a job asks for in all, defaults filled in: the numbers behind NumCPUs, ReqNodes, ReqMem and ReqTRES.

The rules are those that the reference shows for jobs that wait. They say what is accounted for, not what would be enough:
40 tasks without a number of nodes are counted on one node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from grammar.errors import GrammarError
from grammar.tres import parse_gres, parse_tres_per_task
from slurmk.model.job import Allocation, Job, JobRequest
from slurmk.model.node import Partition
from slurmk.model.site import Site

Counts = tuple[tuple[str, int], ...]
"""GRES by kind."""


@dataclass(frozen=True, slots=True)
class Requested:
    """CPUs, nodes, memory (MiB over all nodes) and GRES (by kind, over all nodes) that a job is counted with: the GRES that
    accounting counts."""

    cpus: int
    nodes: int
    memory: int
    gres: Counts = ()

    @property
    def tres(self) -> dict[str, int]:
        """By the names of accounting."""
        amounts = {"billing": self.cpus, "cpu": self.cpus, "mem": self.memory, "node": self.nodes}
        amounts.update((f"gres/{kind}", count) for kind, count in self.gres)
        return amounts


def has_step_manager(job: Job, site: Site) -> bool:
    """Whether the job's steps may outlive their sruns (--async): the job (--stepmgr) or the site wants that, PrologFlags has
    Contain, and it is no het job."""
    wanted = job.request.step_manager or "enable_stepmgr" in site.parameters.get("SlurmctldParameters", "").lower().split(",")
    return wanted and "Contain" in site.prolog_flags and not job.het_job_id


@dataclass(frozen=True, slots=True)
class MemoryDemand:
    """``amount`` MiB for each ``per``: ``Node`` (0: all of its memory), ``CPU`` or ``TRES``."""

    per: str
    amount: int


@dataclass(slots=True)
class Requests:
    """Works out what jobs ask for at one site. Without a site there are no defaults to fill in.

    ``partitions`` are as they are now; without them those of the configuration. Keep it no longer than they stay so.
    """

    site: Site | None = None
    partitions: Mapping[str, Partition] | None = None
    _smallest: dict[str, int] = field(default_factory=dict)

    def of(self, job: Job) -> Requested:
        """Everything that ``job`` asks for; once it was brought to a number of nodes, what it has left."""
        request = job.request
        if job.resize_time and job.allocation is not None and request.minimum_nodes == len(job.allocation.shares):
            return self._left(job.allocation)
        total, cpus, nodes = gres(request), cpu_count(request), node_count(request)
        site = self.site
        counted = total if site is None else tuple(each for each in total if site.counts(f"gres/{each[0]}"))
        return Requested(cpus, nodes, self._memory(request, cpus, nodes, total, _first(job)), counted)

    def _left(self, allocation: Allocation) -> Requested:
        held: dict[str, int] = {}
        for gres in (each for share in allocation.shares for each in share.gres):
            if self.site is None or self.site.counts(f"gres/{gres.name}"):
                held[gres.name] = held.get(gres.name, 0) + gres.count
        return Requested(allocation.cpus, len(allocation.shares), allocation.memory, tuple(held.items()))

    def memory_demand(self, job: Job) -> MemoryDemand:
        """Memory asked for, the partition's or the site's default filled in."""
        request = job.request
        if request.memory_per_tres is not None:
            return MemoryDemand("TRES", sum(count for _, count in _gres_of(request.memory_per_tres)))
        return self._by_size(request, _first(job))

    def _by_size(self, request: JobRequest, partition: str) -> MemoryDemand:
        if request.memory_per_node is not None:
            return MemoryDemand("Node", request.memory_per_node)
        if request.memory_per_cpu is not None:
            return MemoryDemand("CPU", request.memory_per_cpu)
        for source in (self._partition(partition), self.site):
            if source is not None and source.default_memory_per_cpu is not None:
                return MemoryDemand("CPU", source.default_memory_per_cpu)
            if source is not None and source.default_memory_per_node is not None:
                return MemoryDemand("Node", source.default_memory_per_node)
        return MemoryDemand("Node", 0)

    def _memory(self, request: JobRequest, cpus: int, nodes: int, total: Counts, partition: str) -> int:
        per_gres = dict(_gres_of(request.memory_per_tres))
        if memory := sum(count * per_gres.get(kind, 0) for kind, count in total):
            return memory
        demand = self._by_size(request, partition)
        if demand.per == "CPU" and demand.amount:
            return demand.amount * cpus
        asked = request.memory_per_node is not None or request.memory_per_cpu is not None
        return (demand.amount or (self._smallest_memory(partition) if asked else 0)) * nodes

    def _partition(self, name: str) -> Partition | None:
        if self.partitions is not None:
            return self.partitions.get(name)
        return self.site.partition(name) if self.site else None

    def _smallest_memory(self, name: str) -> int:
        """Memory of the partition's smallest node, which "all of it" is counted as."""
        known = self._smallest.get(name)
        if known is None:
            partition = self._partition(name)
            members = frozenset(partition.nodes) if partition else frozenset()
            sizes = [node.memory for node in self.site.nodes if node.name in members] if self.site else []
            known = self._smallest[name] = min(sizes, default=0)
        return known


def _first(job: Job) -> str:
    return job.partitions[0] if job.partitions else ""


def task_count(request: JobRequest) -> int:
    """Tasks that a job has, at least 1."""
    return request.tasks or max(1, node_count(request) * (request.tasks_per_node or 1))


def cpus_per_task(request: JobRequest) -> int:
    """As asked for, or what a task's GPUs bring with them."""
    if request.cpus_per_task:
        return request.cpus_per_task
    if request.cpus_per_tres and request.tres_per_task:
        per_task = dict(_per_task(request.tres_per_task))
        return max(1, sum(count * per_task.get(kind, 0) for kind, count in _gres_of(request.cpus_per_tres)))
    return 1


def cpu_count(request: JobRequest) -> int:
    """CPUs that a job is counted with before it has any."""
    if request.overcommit:
        cpus = node_count(request)
    elif request.tasks or request.tasks_per_node or request.minimum_nodes == (request.maximum_nodes or request.minimum_nodes):
        tasks = request.tasks or (request.minimum_nodes or 1) * (request.tasks_per_node or 1)
        cpus = tasks * cpus_per_task(request)
    else:
        cpus = cpus_per_task(request)
    if request.cpus_per_tres:
        total = dict(gres(request))
        cpus = max(cpus, sum(count * total.get(kind, 0) for kind, count in _gres_of(request.cpus_per_tres)))
    return max(cpus, request.minimum_cpus or 0)


def cpus_per_node(request: JobRequest) -> int:
    """CPUs that every node of the job must have (MinCPUsNode)."""
    tasks = 1 if request.tasks == 1 else request.tasks_per_node or 1
    return max(cpus_per_task(request) * tasks, request.minimum_cpus_per_node or 0)


def node_count(request: JobRequest) -> int:
    """Nodes that a job is counted with before it has any: those asked for, or that its GRES fix."""
    return gres_nodes(request) or request.minimum_nodes or 1


def gres_nodes(request: JobRequest) -> int | None:
    """The number of nodes that GRES for the job and for each node leave, None when they leave it open."""
    if request.tres_per_job is None or request.tres_per_node is None:
        return None
    per_node = dict(_gres_of(request.tres_per_node))
    counts = [-(-count // per_node[kind]) for kind, count in _gres_of(request.tres_per_job) if per_node.get(kind)]
    return max(counts, default=None)


def gres_per_job(request: JobRequest) -> str | None:
    """What is asked for the whole job: as it was said, else the GPUs that --ntasks-per-gpu leaves for its tasks."""
    if request.tres_per_job or not (request.ntasks_per_tres and request.tasks):
        return request.tres_per_job
    if any("gpu" in (text or "") for text in (request.tres_per_node, request.tres_per_task, request.tres_per_socket)):
        return None
    return f"gres/gpu:{-(-request.tasks // request.ntasks_per_tres)}"


def gpus_of_nodes(request: JobRequest) -> int | None:
    """How many nodes have the same part of the job's GPUs each: those of --nodes with --ntasks-per-gpu."""
    fixed = request.nodes is not None and request.minimum_nodes == request.maximum_nodes
    if not (fixed and request.ntasks_per_tres and request.tasks) or request.tres_per_node:
        return None
    return request.minimum_nodes if gres_per_job(request) else None


def gres(request: JobRequest) -> Counts:
    """GRES of the whole job by kind. The first way of asking that names a kind decides."""
    per_job = gres_per_job(request)
    if not (request.tres_per_node or per_job or request.tres_per_task or request.tres_per_socket):
        return ()
    nodes = node_count(request)
    sockets = nodes * (request.sockets_per_node or 1)
    wanted: dict[str, int] = {}
    for counts, times in (
        (_gres_of(per_job), 1),
        (_per_task(request.tres_per_task), request.tasks or nodes * (request.tasks_per_node or 1)),
        (_gres_of(request.tres_per_node), nodes),
        (_gres_of(request.tres_per_socket), sockets),
    ):
        for kind, count in counts:
            wanted.setdefault(kind, count * times)
    return tuple(wanted.items())


@lru_cache(maxsize=1024)
def _gres_of(text: str | None) -> Counts:
    """By kind, all types together."""
    found: dict[str, int] = {}
    try:
        for item in parse_gres(text) if text else ():
            found[item.name] = found.get(item.name, 0) + item.count
    except GrammarError:
        return ()
    return tuple(found.items())


@lru_cache(maxsize=1024)
def _per_task(text: str | None) -> Counts:
    try:
        items = parse_tres_per_task(text) if text else ()
    except GrammarError:
        return ()
    return tuple((name.removeprefix("gres/").partition(":")[0], count) for name, count in items if name.startswith("gres/"))


def leaves_within(request: JobRequest, preemption: str) -> int | None:
    """Seconds within which a job clears out for a reservation whose nodes it uses (``--signal=R:``); None for one that uses no
    others' nodes. ``preemption`` is PreemptType, without which nobody does."""
    if "R" not in (request.kill_warning_flags or "") or preemption in ("", "preempt/none"):
        return None
    return 60 if request.kill_warning_delay is None else request.kill_warning_delay
