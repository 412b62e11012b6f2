"""What a job asks for in all, defaults filled in: the numbers behind ReqCPUS, ReqNodes, ReqMem and ReqTRES."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from grammar.errors import GrammarError
from grammar.tres import parse_gres, parse_tres_per_task
from slurmk.model.job import Job, JobRequest
from slurmk.model.node import Partition
from slurmk.model.site import Site


@dataclass(frozen=True, slots=True)
class Requested:
    """CPUs, nodes, memory (MiB over all nodes) and GRES (by kind, over all nodes) that a job cannot do without."""

    cpus: int
    nodes: int
    memory: int
    gres: tuple[tuple[str, int], ...] = ()

    @property
    def tres(self) -> dict[str, int]:
        """By the names of accounting."""
        amounts = {"billing": self.cpus, "cpu": self.cpus, "mem": self.memory, "node": self.nodes}
        amounts.update((f"gres/{kind}", count) for kind, count in self.gres)
        return amounts


@dataclass(slots=True)
class Requests:
    """Works out what jobs ask for at one site. Without a site there are no defaults to fill in."""

    site: Site | None = None
    _largest: dict[str, int] = field(default_factory=dict)

    def of(self, job: Job) -> Requested:
        """Everything that ``job`` asks for."""
        request = job.request
        tasks = _tasks(request)
        cpus = tasks if request.overcommit else tasks * (request.cpus_per_task or 1)
        cpus = max(cpus, request.minimum_cpus or 0, request.minimum_nodes or 1)
        partition = job.partitions[0] if job.partitions else ""
        nodes = self._nodes(request, cpus, partition)
        return Requested(cpus, nodes, self._memory(request, cpus, nodes, partition), _gres(request, nodes, tasks))

    def _nodes(self, request: JobRequest, cpus: int, partition: str) -> int:
        """Those asked for, or as many as the CPUs fill."""
        minimum = request.minimum_nodes or 1
        if cpus <= minimum:
            return minimum
        return max(minimum, -(-cpus // self._largest_node(partition)))

    def _largest_node(self, name: str) -> int:
        known = self._largest.get(name)
        if known is None:
            partition = self.site.partition(name) if self.site else None
            members = frozenset(partition.nodes) if partition else frozenset()
            cpus = [node.cpus for node in self.site.nodes if node.name in members] if self.site else []
            known = self._largest[name] = max(cpus, default=1 << 30)
        return known

    def _memory(self, request: JobRequest, cpus: int, nodes: int, partition_name: str) -> int:
        if request.memory_per_node is not None:
            return request.memory_per_node * nodes
        if request.memory_per_cpu is not None:
            return request.memory_per_cpu * cpus
        if self.site is None:
            return 0
        for source in (self.site.partition(partition_name), self.site):
            if memory := _default_memory(source, cpus, nodes):
                return memory
        return 0


def _default_memory(source: Partition | Site | None, cpus: int, nodes: int) -> int:
    if source is None:
        return 0
    return (source.default_memory_per_cpu or 0) * cpus or (source.default_memory_per_node or 0) * nodes


def _tasks(request: JobRequest) -> int:
    if request.tasks:
        return request.tasks
    return max(1, (request.minimum_nodes or 1) * (request.tasks_per_node or 1))


def _gres(request: JobRequest, nodes: int, tasks: int) -> tuple[tuple[str, int], ...]:
    if request.tres_per_node is None and request.tres_per_job is None and request.tres_per_task is None:
        return ()
    wanted: dict[str, int] = {}
    for text, times in ((request.tres_per_node, nodes), (request.tres_per_job, 1)):
        for kind, count in _gres_of(text):
            wanted[kind] = wanted.get(kind, 0) + count * times
    for kind, count in _per_task(request.tres_per_task):
        wanted.setdefault(kind, count * tasks)
    return tuple(wanted.items())


@lru_cache(maxsize=1024)
def _gres_of(text: str | None) -> tuple[tuple[str, int], ...]:
    try:
        return tuple((gres.name, gres.count) for gres in parse_gres(text)) if text else ()
    except GrammarError:
        return ()


@lru_cache(maxsize=1024)
def _per_task(text: str | None) -> tuple[tuple[str, int], ...]:
    try:
        items = parse_tres_per_task(text) if text else ()
    except GrammarError:
        return ()
    return tuple((name.removeprefix("gres/").partition(":")[0], count) for name, count in items if name.startswith("gres/"))
