"""From the controller's values to a snapshot: everything that is text or optional there becomes a number here.

The controller calls ``build_snapshot`` before every plan, so what does not change between two plans is kept in a
``SnapshotCache``: columns of nodes, and each job's demand. Equal demands become one object, which the planner uses to
share work between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from grammar.hostlist import expand
from grammar.tres import parse_gres as gres_items
from slurmk.model.job import Job, JobRequest
from slurmk.model.node import SHARED_DEVICES, WHOLE_DEVICE, GresCapacity, Node, Partition
from slurmk.model.quotas import Quota
from slurmk.model.requested import Counts, gpus_of_nodes, gres_nodes, gres_per_job, leaves_within
from slurmk.model.requested import cpus_per_task as cpus_of_task
from slurmk.model.reservation import Reservation, ReservationFlag
from slurmk.model.site import Site
from slurmk.model.states import INFINITE, NO_VALUE, JobFlag, JobState, NodeFlag, NodeState, Reason
from slurmk.planner.attention import bounds_of
from slurmk.planner.preemption import parked
from slurmk.planner.reserved import kept_licenses
from slurmk.planner.snapshot import (
    Demand,
    IntArray,
    NodeTable,
    Outlook,
    PartitionRow,
    PendingRow,
    Preemption,
    RunningRow,
    Snapshot,
)

T = TypeVar("T")

USE_GRES_NODES = "slurmk_use_gres_nodes"
"""The SchedulerParameters word that lets jobs without GRES take the first nodes that will do, as Slurm does. Without it they
stay off nodes with GRES while others are free."""

YEAR = 365 * 86400
"""Seconds that stand for "no time limit"."""

FEW_DEMANDS = 1000
"""Demands that are kept though no job has them any more, beside as many as wait."""

LATE = 5
"""A job that should be over, or is completing, is taken to hold its nodes this many seconds more."""


ORDER, BY_PROMISES = "slurmk_order", "promises"
"""The SchedulerParameters that let ``planner.promises`` choose the order where priorities say nothing but who came first."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending job and what the machine knows of why and how much of it may start.

    ``startable`` is how many elements of the job's array may start now (its ``%N`` less those that run), whichever of its
    records they are of; None: all of them.
    ``held_reason`` other than NONE keeps it from being planned (held, dependency).
    Jobs with the same ``component_of`` (a het job's id, not 0) start together. ``reservations`` are those that it may run in.
    """

    job: Job
    held_reason: Reason = Reason.NONE
    startable: int | None = None
    component_of: int = 0
    reservations: tuple[str, ...] = ()
    reservation_optional: bool = True


@dataclass(slots=True)
class SnapshotCache:
    """What one controller keeps between two snapshots. Safe to drop at any time; never wrong, since it compares the
    (frozen) values it was made from by identity."""

    site: Site | None = None
    node_values: list[Node] = field(default_factory=list)
    table: NodeTable | None = None
    partition_values: list[Partition] = field(default_factory=list)
    partition_rows: tuple[PartitionRow, ...] = ()
    waiting: dict[int, Waiting] = field(default_factory=dict)  # all that waited at the last snapshot
    pending: dict[int, PendingRow] = field(default_factory=dict)  # the row of each
    anew: bool = True  # all rows of waiting jobs were made anew; to be unset by who heeds it
    demands: dict[Demand, Demand] = field(default_factory=dict)
    running: dict[int, tuple[Job, RunningRow]] = field(default_factory=dict)


def build_snapshot(
    *,
    snapshot_id: int,
    time: float,
    site: Site,
    nodes: Mapping[str, Node],
    partitions: Mapping[str, Partition],
    running: Iterable[Job],
    pending: Iterable[Waiting],
    gone: Iterable[int] | None = None,
    reservations: tuple[Reservation, ...] = (),
    overrun: int = 0,
    preemption: Preemption | None = None,
    quotas: tuple[Quota, ...] = (),
    outlooks: Mapping[int, Outlook] | None = None,
    longest_wait: int = 0,
    cache: SnapshotCache | None = None,
) -> Snapshot:
    """The snapshot that a plan is made of. ``time`` is Unix seconds, rounded down.

    ``nodes`` are all configured nodes in the order of configuration. ``running`` are the jobs that hold an allocation:
    running, suspended, or with the flag COMPLETING. ``pending`` may have any order. Who knows what has changed since the last
    snapshot with this cache gives ``gone``, the jobs that wait no more, and in ``pending`` only those that are new or have
    changed: a long queue is not gone through then. ``outlooks`` are what jobs were told by the last plan; they and
    ``longest_wait`` matter only where the site goes by promises.
    """
    cache = cache if cache is not None else SnapshotCache()
    _refresh(cache, site, nodes, partitions)
    assert cache.table is not None
    now = int(time)
    options = site.scheduler_parameters
    by_promises = options.get(ORDER) == BY_PROMISES
    return Snapshot(
        snapshot_id=snapshot_id,
        time=now,
        nodes=cache.table,
        partitions=cache.partition_rows,
        pending=_pending_rows(pending, gone, partitions, site, cache, (outlooks or {}) if by_promises else {}),
        running=_running_rows(running, now, site, cache, reservations, overrun),
        reservations=reservations,
        overrun=overrun,
        preemption=preemption,
        bounds=bounds_of(options, builtin=site.parameters.get("SchedulerType") == "sched/builtin"),
        licenses=kept_licenses(site.licenses, reservations),
        quotas=quotas,
        switches=site.switches,
        blocks=site.blocks,
        block_sizes=site.block_sizes,
        window=_number(options.get("bf_window"), 0) * 60,
        depth=_number(options.get("bf_max_job_test"), 0),
        least_loaded=site.least_loaded,
        spare_gres=USE_GRES_NODES not in options,
        by_promises=by_promises,
        longest_wait=longest_wait if by_promises else 0,
    )


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text is not None and text.isdigit() else otherwise


def _refresh(cache: SnapshotCache, site: Site, nodes: Mapping[str, Node], partitions: Mapping[str, Partition]) -> None:
    values = list(nodes.values())
    new_nodes = len(values) != len(cache.node_values) or not all(map(is_, values, cache.node_values))
    partition_values = list(partitions.values())
    new_partitions = len(partition_values) != len(cache.partition_values) or not all(
        map(is_, partition_values, cache.partition_values)
    )
    before = cache.table
    if new_nodes or cache.table is None:
        cache.table, cache.node_values = _newer_table(cache, values), values
    assert cache.table is not None
    other_nodes = before is None or before.names != cache.table.names
    other_limits = cache.site is None or cache.site.maximum_memory_per_node != site.maximum_memory_per_node
    if other_nodes or new_partitions or other_limits or not cache.partition_rows:
        cache.partition_rows = tuple(partition_row(each, cache.table, site) for each in partition_values)
        cache.partition_values = partition_values
    if new_partitions or cache.site is not site:
        cache.demands, cache.pending, cache.site, cache.anew = {}, {}, site, True


# ------------------------------------------------------------------------------------------------------- nodes


def node_table(nodes: list[Node], gres_names: tuple[str, ...] = ()) -> NodeTable:
    """The nodes as columns; ``gres_names`` are there even if no node has such GRES."""
    counts = [_gres_counts(node.gres) for node in nodes]
    names = sorted({name for count in counts for name in count}.union(gres_names))
    foreign = [_gres_counts(_foreign_gres(node)) if node.foreign_gres else {} for node in nodes]
    available = np.array([node.available for node in nodes], dtype=np.bool_)
    return NodeTable(
        names=tuple(node.name for node in nodes),
        cpus=_integers(node.cpus for node in nodes),
        cores=_integers(max(1, node.cpus // max(1, node.threads_per_core)) for node in nodes),
        sockets=_integers(max(1, node.sockets * max(1, node.boards)) for node in nodes),
        threads_per_core=_integers(max(1, node.threads_per_core) for node in nodes),
        memory=_integers(node.memory for node in nodes),
        temporary_disk=_integers(node.temporary_disk for node in nodes),
        gres_names=tuple(names),
        gres=_matrix(counts, names),
        weight=_integers(node.weight for node in nodes),
        available=available,
        returns=np.array([_returns(node) for node in nodes], dtype=np.bool_) & ~available,
        features=tuple(frozenset(node.active_features or node.features) for node in nodes),
        foreign_cpus=_integers(node.foreign_cpus for node in nodes),
        foreign_memory=_integers(node.foreign_memory for node in nodes),
        gres_devices={name: tuple(_devices(node, name) for node in nodes) for name in names},
        foreign_gres=_matrix(foreign, names) if any(foreign) else None,
        maximum_jobs=_maximum_jobs(nodes),
    )


_COLUMNS = (
    "cpus",
    "cores",
    "sockets",
    "threads_per_core",
    "memory",
    "temporary_disk",
    "gres",
    "weight",
    "available",
    "returns",
    "foreign_cpus",
    "foreign_memory",
)
"""Arrays of a NodeTable with a row for each node, whatever the nodes are."""


def _newer_table(cache: SnapshotCache, nodes: list[Node]) -> NodeTable:
    """The table of these nodes. On a cluster that others use too, some node changes before almost every plan, so only the rows
    of those that did are made anew."""
    table, before = cache.table, cache.node_values
    if table is None or len(before) != len(nodes):
        return node_table(nodes)
    changed = [row for row, node in enumerate(nodes) if node is not before[row]]
    part = node_table([nodes[row] for row in changed], table.gres_names)
    same = part.gres_names == table.gres_names and part.names == tuple(table.names[row] for row in changed)
    if not same or 2 * len(changed) > len(nodes):
        return node_table(nodes)
    columns: dict[str, Any] = {name: _with_rows(getattr(table, name), changed, getattr(part, name)) for name in _COLUMNS}
    devices = {name: _with_items(known, changed, part.gres_devices[name]) for name, known in table.gres_devices.items()}
    foreign = table.foreign_gres
    if foreign is not None or part.foreign_gres is not None:
        old = np.zeros_like(table.gres) if foreign is None else foreign
        new = np.zeros_like(part.gres) if part.foreign_gres is None else part.foreign_gres
        foreign = _with_rows(old, changed, new)
    return replace(
        table,
        **columns,
        features=_with_items(table.features, changed, part.features),
        gres_devices=devices,
        foreign_gres=foreign,
        maximum_jobs=_maximum_jobs(nodes),
    )


def _with_rows(array: NDArray[Any], rows: list[int], values: NDArray[Any]) -> NDArray[Any]:
    changed = array.copy()
    changed[rows] = values
    return changed


def _with_items(items: tuple[T, ...], rows: list[int], values: tuple[T, ...]) -> tuple[T, ...]:
    changed = list(items)
    for row, value in zip(rows, values, strict=True):
        changed[row] = value
    return tuple(changed)


def _matrix(counts: list[dict[str, int]], names: list[str]) -> IntArray:
    """Counts by node and name."""
    column = {name: index for index, name in enumerate(names)}
    matrix = np.zeros((len(counts), len(names)), dtype=np.int64)
    for row, count in enumerate(counts):
        for name, amount in count.items():
            if name in column:
                matrix[row, column[name]] = amount
    return matrix


def _maximum_jobs(nodes: list[Node]) -> IntArray | None:
    """How many jobs each node may have at once; a job needs a CPU, so a limit of as many as there are CPUs is none."""
    if not any(node.maximum_jobs is not None and node.maximum_jobs < node.cpus for node in nodes):
        return None
    return _integers(node.cpus if node.maximum_jobs is None else node.maximum_jobs for node in nodes)


def _integers(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _returns(node: Node) -> bool:
    gone = NodeFlag.DRAIN | NodeFlag.FAIL
    return not node.refusal and node.state not in (NodeState.DOWN, NodeState.FUTURE) and not node.flags & gone


def _foreign_gres(node: Node) -> Iterable[GresCapacity]:
    return [GresCapacity(*name.partition(":")[::2], count) for name, count in node.foreign_gres]


def _gres_counts(capacities: Iterable[GresCapacity]) -> dict[str, int]:
    """Counts by kind, and by kind and type."""
    counts: dict[str, int] = {}
    for gres in capacities:
        counts[gres.name] = counts.get(gres.name, 0) + gres.count
        if gres.type:
            name = f"{gres.name}:{gres.type}"
            counts[name] = counts.get(name, 0) + gres.count
    return counts


def _devices(node: Node, name: str) -> tuple[int, ...]:
    """Device numbers of a GRES on a node: counted through all of its kind's types, in the order of configuration. What has no
    device files is only counted, but for GPUs and their shards."""
    kind, _, wanted = name.partition(":")
    numbered = kind == WHOLE_DEVICE or (kind in SHARED_DEVICES and any(gres.name == WHOLE_DEVICE for gres in node.gres))
    found: list[int] = []
    number = 0
    for gres in node.gres:
        if gres.name != kind:
            continue
        if (gres.files or numbered) and (not wanted or gres.type == wanted):
            found += range(number, number + gres.count)
        number += gres.count
    return tuple(found)


def partition_row(partition: Partition, table: NodeTable, site: Site) -> PartitionRow:
    """What the planner needs of a partition, with the site's limits where it has none of its own; times in seconds."""
    position = {name: row for row, name in enumerate(table.names)}
    rows = sorted(position[name] for name in partition.nodes if name in position)
    mode, _, shared = partition.oversubscribe.partition(":")
    return PartitionRow(
        name=partition.name,
        nodes=np.array(rows, dtype=np.int64),
        up=partition.state in ("UP",),
        priority_tier=partition.priority_tier,
        maximum_nodes=_limit(partition.maximum_nodes),
        minimum_nodes=partition.minimum_nodes,
        maximum_time=None if partition.maximum_time >= NO_VALUE else partition.maximum_time * 60,
        oversubscribe=0 if mode == "EXCLUSIVE" else int(shared or 4) if mode in ("YES", "FORCE") else 1,
        exclusive_user=partition.exclusive_user,
        maximum_cpus_per_node=_limit(partition.maximum_cpus_per_node),
        maximum_cpus_per_socket=_limit(partition.maximum_cpus_per_socket),
        least_loaded=partition.lln,
        forced_sharing=mode == "FORCE",
        maximum_memory_per_node=partition.maximum_memory_per_node or site.maximum_memory_per_node,
        queues=partition.state in ("UP", "DOWN"),
    )


def _limit(value: int | None) -> int | None:
    return None if value is None or value >= NO_VALUE else value


# ------------------------------------------------------------------------------------------------------- jobs


def _running_rows(
    running: Iterable[Job],
    now: int,
    site: Site,
    cache: SnapshotCache,
    reservations: tuple[Reservation, ...] = (),
    overrun: int = 0,
) -> tuple[RunningRow, ...]:
    """One for each job that holds something; that of a job that is the same value as before is kept while its end is ahead."""
    before, cache.running = cache.running, {}
    ends = {each.name: each.end_time + overrun for each in reservations if not each.flags & ReservationFlag.FLEX}
    for job in running:
        known = before.get(job.job_id)
        moves = job.state is JobState.SUSPENDED or (job.allocation is not None and job.allocation.reservation in ends)
        if known is None or known[0] is not job or known[1].end_time <= now + LATE or moves:
            if job.allocation is None:
                continue
            known = job, running_row(job, now, site, ends.get(job.allocation.reservation))
        cache.running[job.job_id] = known
    return tuple(row for _, row in cache.running.values())


def running_row(job: Job, now: int, site: Site, latest: int | None = None) -> RunningRow:
    """A job that holds its allocation until its limit, or ``latest``, or for a moment more when that has passed or it is
    completing. One that is late to come up has all its time before it."""
    assert job.allocation is not None
    limit = YEAR if job.time_limit >= NO_VALUE else job.time_limit * 60
    stood = job.suspended_seconds + (max(0, now - job.suspend_time) if job.state is JobState.SUSPENDED else 0)
    end = job.start_time + limit + stood
    soft = soft_limit(job, site)
    if soft is not None and job.start_time + soft + stood > now:
        end = job.start_time + soft + stood
    if job.flags & JobFlag.CONFIGURING and end <= now:
        end = now + limit
    if latest is not None:
        end = min(end, latest)
    if job.flags & JobFlag.COMPLETING or end <= now:
        end = now + LATE
    row = RunningRow(
        job_id=job.job_id,
        end_time=end,
        allocation=job.allocation,
        user_id=job.credentials.user_id,
        oversubscribe=job.request.shared == "oversubscribe",
        share_user=job.credentials.user_id if job.request.shared == "user" else None,
        licenses=_licenses(job.request.licenses),
        account=job.account,
        qos=job.qos,
    )
    return parked(row, memory=site.memory_is_consumable) if job.parked else row


def _pending_rows(
    pending: Iterable[Waiting],
    gone: Iterable[int] | None,
    partitions: Mapping[str, Partition],
    site: Site,
    cache: SnapshotCache,
    outlooks: Mapping[int, Outlook],
) -> tuple[PendingRow, ...]:
    """One for each that waits. That of a value that is the same as before is the same row."""
    before, rows = cache.waiting, cache.pending
    for job_id in gone or ():
        before.pop(job_id, None)
        rows.pop(job_id, None)
    if gone is None:
        cache.waiting, cache.pending = {}, {}
    elif before and not rows:  # none is good any more
        pending = {**before, **{each.job.job_id: each for each in pending}}.values()
    for waiting in pending:
        job_id = waiting.job.job_id
        row = rows.get(job_id)
        if row is None or before.get(job_id) is not waiting:
            row = _row_of(
                waiting, row if row is not None and before[job_id].job is waiting.job else None, partitions, site, cache
            )
        cache.waiting[job_id], cache.pending[job_id] = waiting, row
    if len(cache.demands) > 2 * len(cache.pending) + FEW_DEMANDS:
        cache.demands = {row.demand: row.demand for row in cache.pending.values()}
    if outlooks:
        return tuple(with_told(row, outlooks.get(row.job_id)) for row in cache.pending.values())
    return tuple(cache.pending.values())


def _row_of(
    waiting: Waiting, known: PendingRow | None, partitions: Mapping[str, Partition], site: Site, cache: SnapshotCache
) -> PendingRow:
    """The row of a waiting job; ``known`` is one of the same job that may say otherwise how it waits."""
    row = known if known is not None else pending_row(waiting.job, partitions, site, cache)
    room = waiting.startable
    startable = row.count if room is None else min(row.count, room)
    array = 0 if room is None else waiting.job.array_job_id
    known_of = (
        row.startable,
        row.array,
        row.array_room,
        row.held_reason,
        row.component_of,
        row.reservations,
        row.reservation_optional,
    )
    now_of = (
        startable,
        array,
        room or 0,
        waiting.held_reason,
        waiting.component_of,
        waiting.reservations,
        waiting.reservation_optional,
    )
    if known_of == now_of:
        return row
    return replace(
        row,
        startable=startable,
        array=array,
        array_room=room or 0,
        held_reason=waiting.held_reason,
        component_of=waiting.component_of,
        reservations=waiting.reservations,
        reservation_optional=waiting.reservation_optional,
    )


def with_told(row: PendingRow, told: Outlook | None) -> PendingRow:
    """The row of a job that was told this by the last plan."""
    if told is None:
        return row
    if (row.planned, row.promised, row.planned_nodes) == (told.start_time, told.promised, told.nodes):
        return row
    start, nodes, tasks = told.start_time, told.nodes, told.tasks
    return replace(row, planned=start, planned_nodes=nodes, planned_tasks=tasks, promised=told.promised)


def pending_row(job: Job, partitions: Mapping[str, Partition], site: Site, cache: SnapshotCache | None = None) -> PendingRow:
    """One pending job, or all waiting elements of an array, as the planner takes it."""
    names = tuple(name for name in job.partitions if name in partitions)
    if names:
        demand = demand_of(job.request, partitions[names[0]], site, user_id=job.credentials.user_id)
    else:
        demand = demand_of(job.request, Partition(name="", nodes=()), site)
    if cache is not None:
        demand = cache.demands.setdefault(demand, demand)
    count = sum(map(len, job.array_tasks)) if job.array_tasks else 1
    request = job.request
    soft = soft_limit(job, site)
    return PendingRow(
        job_id=job.job_id,
        demand=demand,
        partitions=names,
        priority=INFINITE if job.flags & JobFlag.EXPEDITING and job.priority else job.priority,
        submit_time=job.submit_time,
        time_limit=soft or _seconds(job.time_limit, names, partitions),
        user_id=job.credentials.user_id,
        account=job.account,
        qos=job.qos,
        count=count,
        startable=count,
        eligible_time=max(request.begin_time or 0, job.eligible_time),
        time_minimum=None if request.time_minimum is None or soft else request.time_minimum * 60,
        deadline=request.deadline,
        leaves_within=leaves_within(request, site.preempt_type),
    )


def soft_limit(job: Job, site: Site) -> int | None:
    """Seconds that a job with ``--time-min`` is planned for, which may then use its whole limit (time_min_as_soft_limit)."""
    minimum = job.request.time_minimum
    return minimum * 60 if minimum and "time_min_as_soft_limit" in site.scheduler_parameters else None


def _seconds(minutes: int, names: tuple[str, ...], partitions: Mapping[str, Partition]) -> int:
    if minutes < NO_VALUE:
        return max(1, minutes * 60)
    if minutes == NO_VALUE and names and partitions[names[0]].maximum_time < INFINITE:
        return max(1, partitions[names[0]].maximum_time * 60)
    return YEAR


def demand_of(request: JobRequest, partition: Partition, site: Site, *, user_id: int | None = None) -> Demand:
    """What the request needs in this partition, with the site's and the partition's defaults filled in.

    ``user_id`` is needed for ``--exclusive=user`` alone. Raises grammar.errors.GrammarError for a bad host list or
    GRES text, which submission should have refused.
    """
    per_node = parse_gres(request.tres_per_node)
    per_job = parse_gres(gres_per_job(request))
    per_task = parse_gres(request.tres_per_task)
    if per_job and (per_node or per_task):
        counted = {name.partition(":")[0] for name, _ in (*per_node, *(per_task if request.tasks else ()))}
        per_job = tuple(item for item in per_job if item[0].partition(":")[0] not in counted)
        if not request.tasks:  # as many tasks as fit the GRES of the job
            named = {name.partition(":")[0] for name, _ in parse_gres(request.tres_per_job)}
            per_task = tuple(item for item in per_task if item[0].partition(":")[0] not in named)
    required = tuple(expand(request.required_nodes)) if request.required_nodes else ()
    excluded = tuple(expand(request.excluded_nodes)) if request.excluded_nodes else ()
    minimum_nodes, maximum_nodes = _node_range(request)
    if len(set(required)) > maximum_nodes:  # any of those named will do, but no others
        excluded += tuple(node.name for node in site.nodes if node.name not in required)
        required = ()
    minimum_nodes = max(minimum_nodes, len(set(required)))
    tasks = _tasks(request, minimum_nodes)
    if gpus_of_nodes(request) is not None and (share := _part_of_node(per_job, minimum_nodes)):
        per_node, per_job = (*per_node, *share), ()
    tasks_per_node = request.tasks_per_node or _tasks_by_gpus(request, per_node)
    if not request.tasks and not tasks_per_node and maximum_nodes > minimum_nodes:
        tasks_per_node = 1  # on however many nodes it gets
    cpus_per_task = cpus_of_task(request)
    memory_per_node, memory_per_cpu = asked = _memory(request, partition, site)
    if not site.memory_is_consumable:
        memory_per_node = memory_per_cpu = None
    cpus_per_gres, per_gres_memory = _per_gres(request, partition, site, (*per_node, *per_job, *per_task))
    if per_gres_memory:
        memory_per_node = memory_per_cpu = None
        asked = None, None
    if memory_per_cpu:
        cpus_per_task, memory_per_cpu = _raise_cpus(cpus_per_task, memory_per_cpu, partition, site)
        asked = None, memory_per_cpu
    cpus_of_a_node = max(request.minimum_cpus_per_node or 0, _cpus_of_node(request, tasks_per_node, cpus_per_task))
    tasks_of_a_node = tasks_per_node if tasks_per_node and request.tasks is None else -(-tasks // maximum_nodes)
    exclusive = request.shared == "none" or partition.oversubscribe == "EXCLUSIVE" or site.whole_nodes
    share_user = user_id if request.shared == "user" or partition.exclusive_user else None
    return Demand(
        minimum_nodes=minimum_nodes,
        maximum_nodes=maximum_nodes,
        tasks=tasks,
        cpus_per_task=cpus_per_task,
        tasks_per_node=tasks_per_node,
        tasks_per_node_exact=bool(tasks_per_node) and request.tasks is None,
        tasks_per_core=request.tasks_per_core or (1 if site.one_task_per_core else None),
        tasks_per_socket=request.tasks_per_socket or None,
        minimum_cpus=request.minimum_cpus or 0,
        minimum_cpus_per_node=cpus_of_a_node,
        memory_per_node=memory_per_node,
        memory_per_cpu=memory_per_cpu,
        temporary_disk=request.temporary_disk_per_node or 0,
        gres_per_node=per_node,
        gres_per_job=per_job,
        gres_per_task=per_task,
        gres_per_socket=parse_gres(request.tres_per_socket),
        cpus_per_gres=cpus_per_gres,
        memory_per_gres=per_gres_memory,
        whole_nodes=exclusive,
        share_user=share_user,
        oversubscribe=request.shared == "oversubscribe",
        overcommit=request.overcommit,
        constraint=request.constraints or "",
        prefer=request.prefer or "",
        required_nodes=required,
        excluded_nodes=excluded,
        node_counts=_node_counts(request, len(site.nodes)),
        contiguous=request.contiguous,
        spread=request.spread_job,
        packs=_packs(request, site),
        use_minimum_nodes=request.use_min_nodes or _most_from_tasks(request),
        switches=request.required_switches or None,
        switch_wait=request.wait_for_switch or 0,
        segment=request.segment_size or 0,
        spread_segments=request.spread_segments,
        threads_per_core=request.threads_per_core or None,
        sockets_per_node=request.sockets_per_node or None,
        cores_per_socket=request.cores_per_socket or None,
        licenses=_licenses(request.licenses),
        least_memory=_least_memory(*asked, max(tasks_of_a_node * cpus_per_task, cpus_of_a_node)),
    )


def _least_memory(per_node: int | None, per_cpu: int | None, cpus: int) -> int | None:
    """MiB of a node for so many CPUs of it."""
    return per_node if per_cpu is None else per_cpu * cpus


def _cpus_of_node(request: JobRequest, tasks_per_node: int | None, cpus_per_task: int) -> int:
    """CPUs for as many tasks as a node may have: every node has them, also where the job's tasks are fewer."""
    several = request.tasks is not None and request.tasks > 1 and not request.overcommit
    return (tasks_per_node or 0) * cpus_per_task if several else 0


def _part_of_node(per_job: Counts, nodes: int) -> Counts:
    """The same GRES for each of so many nodes; none where they don't divide."""
    return tuple((name, count // nodes) for name, count in per_job) if all(count % nodes == 0 for _, count in per_job) else ()


def _tasks_by_gpus(request: JobRequest, per_node: Counts) -> int | None:
    """Tasks of a node by its GPUs (--ntasks-per-gpu), where it has a number of them."""
    gpus = sum(count for name, count in per_node if name.partition(":")[0] == "gpu")
    return gpus * (request.ntasks_per_tres or 0) or None


UNLIMITED_NODES = 1 << 30


_COUNTED = re.compile(r"\*\s*\d")
"""A number of nodes in a constraint, which stands for one that was not asked for."""


def _node_range(request: JobRequest) -> tuple[int, int]:
    """Fewest and most nodes: of ``--nodes``, else any number that the tasks need; or the one that the GRES fix."""
    fixed = gres_nodes(request)
    if fixed is not None:
        return fixed, fixed
    open_ = not (request.nodes or request.tasks or request.tasks_per_node)
    counted = not request.required_nodes and _COUNTED.search(request.constraints or "")
    if open_ and (request.tres_per_job or counted):
        return request.minimum_nodes or 1, UNLIMITED_NODES
    named = request.minimum_nodes or request.maximum_nodes
    if named:
        minimum = request.minimum_nodes or 1
        maximum = request.maximum_nodes or minimum
        if request.tasks and request.tasks_per_node:
            minimum = min(max(minimum, -(-request.tasks // request.tasks_per_node)), max(minimum, maximum))
        return minimum, max(maximum, minimum)
    minimum = 1
    if request.tasks and request.tasks_per_node:
        minimum = max(minimum, -(-request.tasks // request.tasks_per_node))
    return minimum, UNLIMITED_NODES


_COUNTS = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


def _node_counts(request: JobRequest, most: int) -> tuple[int, ...]:
    """The numbers of nodes that ``--nodes`` lists (``1,3``, ``2-8:2``), up to ``most``; none for a number or a plain range."""
    text = request.nodes or ""
    if "," not in text and ":" not in text:
        return ()
    found: set[int] = set()
    for match in map(_COUNTS.fullmatch, text.split(",")):
        if match is not None:
            first, last, step = (int(part) if part else None for part in match.groups())
            found.update(range(first or 0, min(last or first or 0, most) + 1, step or 1))
    return tuple(sorted(found))


def _most_from_tasks(request: JobRequest) -> bool:
    """The most nodes were counted from the tasks, not asked for with ``--nodes``: a bound, and no wish to have so many."""
    counted = request.tasks is not None and request.maximum_nodes == request.tasks
    return counted and request.nodes is None and not request.spread_job


def _packs(request: JobRequest, site: Site) -> bool:
    """Whether tasks fill the nodes that a job has whole: CR_Pack_Nodes, or as ``--distribution`` says."""
    words = (request.distribution or "").split(",")
    return "nopack" not in words and (site.pack_nodes or "pack" in words)


def _tasks(request: JobRequest, minimum_nodes: int) -> int:
    if request.tasks:
        return max(1, request.tasks)
    if request.tasks_per_node:
        return request.tasks_per_node * minimum_nodes
    return minimum_nodes


def _memory(request: JobRequest, partition: Partition, site: Site) -> tuple[int | None, int | None]:
    """Memory per node and per CPU; at most one is set. 0 per node means all of it."""
    if request.memory_per_node is not None:
        return request.memory_per_node, None
    if request.memory_per_cpu is not None:
        return (0, None) if request.memory_per_cpu == 0 else (None, request.memory_per_cpu)
    for where in (partition, site):
        if where.default_memory_per_cpu:
            return None, where.default_memory_per_cpu
        if where.default_memory_per_node:
            return where.default_memory_per_node, None
    return 0, None


def _per_gres(
    request: JobRequest, partition: Partition, site: Site, wanted: tuple[tuple[str, int], ...]
) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
    """CPUs and memory (MiB) that come with each GRES: as asked for, else by DefCpuPerGPU and DefMemPerGPU."""
    cpus, memory = parse_gres(request.cpus_per_tres), parse_gres(request.memory_per_tres)
    if not any(name.partition(":")[0] == "gpu" for name, _ in wanted):
        return cpus, memory
    defaults = _job_defaults(site.parameters.get("JobDefaults") or "") | _job_defaults(partition.job_defaults)
    if not cpus and request.cpus_per_task is None and "DefCpuPerGPU" in defaults:
        cpus = (("gpu", defaults["DefCpuPerGPU"]),)
    asked = request.memory_per_node, request.memory_per_cpu
    if not memory and asked == (None, None) and "DefMemPerGPU" in defaults and site.memory_is_consumable:
        memory = (("gpu", defaults["DefMemPerGPU"]),)
    return cpus, memory


def _job_defaults(text: str) -> dict[str, int]:
    return {key: int(value) for key, _, value in (word.partition("=") for word in text.split(",")) if value.isdecimal()}


def _raise_cpus(cpus_per_task: int, memory: int, partition: Partition, site: Site) -> tuple[int, int]:
    """MaxMemPerCPU: a job that wants more memory for a CPU gets more CPUs instead."""
    limit = partition.maximum_memory_per_cpu or site.maximum_memory_per_cpu
    if not limit or memory <= limit:
        return cpus_per_task, memory
    factor = -(-memory // limit)
    return cpus_per_task * factor, -(-memory // factor)


_NO_GRES = re.compile(r"(?:cpu|mem|node|billing|license)(?![\w.-])|[^:=]*\Z")
"""What a TRES text may hold besides GRES: other TRES, and words that say nothing."""


def parse_gres(text: str | None) -> tuple[tuple[str, int], ...]:
    """The GRES of a TRES text: ``gres/gpu:a100:2`` and ``gpu:a100=2`` give (("gpu:a100", 2),). Others are passed over."""
    words = [word for word in (text or "").split(",") if word.startswith("gres/") or not _NO_GRES.match(word.strip())]
    found = {item.label: item.count for item in gres_items(",".join(words)) if item.count} if words else {}
    return tuple(sorted(found.items()))


def _licenses(text: str | None) -> tuple[tuple[str, int], ...]:
    """``matlab:2,ansys`` -> (("ansys", 1), ("matlab", 2)); also with ``=`` or ``@server`` in it."""
    found: dict[str, int] = {}
    for item in re.split(r"[,;]", text or ""):
        match = re.match(r"([^:=\s]+)(?:[:=](\d+))?$", item.strip())
        if match:
            found[match[1]] = found.get(match[1], 0) + int(match[2] or 1)
    return tuple(sorted(found.items()))
