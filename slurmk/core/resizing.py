"""Jobs that give nodes back while they run (``scontrol update NumNodes=`` and ``NodeList=``).

What a job keeps stays as it is on each node: CPUs, memory, GRES. The nodes given back are free at once; what still runs on
them is killed. The first node stays, for the batch script and the step manager are there. To accounting each size is a
record of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grammar.errors import GrammarError
from grammar.hostlist import expand
from slurmk.core.effects import SaveResize, Shrink
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.state import Phase, Turn, phase_of
from slurmk.model.job import Job, NodeShare

Changes = tuple[tuple[str, object], ...]


def as_told(job: Job, changes: Changes) -> Changes:
    """The changes with those of a running job's size in words of their own: a fixed number of nodes, or which nodes."""
    if phase_of(job) not in (Phase.RUNNING, Phase.SUSPENDED):
        return changes
    told = dict(changes)
    fixed = told.get("minimum_nodes") == told.get("maximum_nodes")
    count = ("minimum_nodes", "maximum_nodes", "nodes") if fixed else ()
    words = {"minimum_nodes": "kept_count", "required_nodes": "kept_nodes"}
    chosen = [each for each in changes if each[0] not in count or each[0] == "minimum_nodes"]
    chosen.sort(key=lambda each: each[0] == "minimum_nodes")  # of the nodes that are named so many are kept
    return tuple((words[name], value) if name == "required_nodes" or name in count else (name, value) for name, value in chosen)


def kept_by_count(job: Job, count: int) -> Job:
    """The job with its first ``count`` nodes, as if it had asked for those. Raises SlurmError."""
    assert job.allocation is not None
    shares = job.allocation.shares
    if not count:
        raise SlurmError(Errno.INVALID_NODE_COUNT)
    if job.request.tasks_per_node:
        raise SlurmError(Errno.JOB_NOT_PENDING)
    if count > len(shares):
        raise SlurmError(Errno.NOT_SUPPORTED)
    if count == len(shares):
        return job
    kept = shares[:count]
    tasks = None if job.request.tasks is None else max(1, sum(share.tasks for share in kept))
    request = replace(job.request, nodes=str(count), minimum_nodes=count, maximum_nodes=count, tasks=tasks)
    return replace(_with(job, kept), request=request)


def kept_by_name(job: Job, names: str) -> Job:
    """The job with those of its nodes. Raises SlurmError."""
    assert job.allocation is not None
    try:
        wanted = frozenset(expand(names)) if names else frozenset()
    except GrammarError:
        wanted = frozenset()
    shares = job.allocation.shares
    if shares[0].node not in wanted or not wanted <= frozenset(job.allocation.nodes):
        raise SlurmError(Errno.INVALID_NODE_NAME)
    kept = tuple(share for share in shares if share.node in wanted)
    return job if len(kept) == len(shares) else _with(job, kept)


def _with(job: Job, kept: Sequence[NodeShare]) -> Job:
    assert job.allocation is not None
    return replace(job, allocation=replace(job.allocation, shares=tuple(kept)))


def carry_out(turn: Turn, before: Job, job: Job) -> Job:
    """The job with the time of its new size; its launcher is told what it gave back, accounting that its old size ends."""
    assert before.allocation is not None
    assert job.allocation is not None
    turn.keep(SaveResize(before, turn.now))
    lost = tuple(name for name in before.allocation.nodes if name not in frozenset(job.allocation.nodes))
    turn.emit(Shrink(job.job_id, job.restarts, job.allocation.nodes, lost))
    return replace(job, resize_time=turn.now)
