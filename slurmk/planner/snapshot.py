"""What the planner is given and what it gives back.

A snapshot is complete: the planner asks nobody anything while it runs, so the same snapshot always gives the same plan.
Nodes are columns (one array a resource), jobs are rows. All times are Unix seconds, memory is MiB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slurmk.model.job import Allocation
from slurmk.model.quotas import Quota
from slurmk.model.reservation import Reservation
from slurmk.model.site import Block, Switch
from slurmk.model.states import Reason
from slurmk.planner.attention import Bounds

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class NodeTable:
    """Every configured node as columns; row order is the order of configuration, which is also placement order.

    ``gres`` has one column for each GRES kind and type named in ``gres_names`` (``gpu`` is the sum over its types,
    ``gpu:a100`` one of them). What is in use is not in it: running jobs say that.
    """

    names: tuple[str, ...]
    cpus: IntArray  # [nodes] schedulable CPUs
    cores: IntArray
    sockets: IntArray
    threads_per_core: IntArray
    memory: IntArray
    temporary_disk: IntArray
    gres_names: tuple[str, ...]
    gres: IntArray  # [nodes, gres_names]
    weight: IntArray
    available: BoolArray  # new work may start there now (up, not drained)
    returns: BoolArray  # not available now but may be planned for later (e.g. not responding)
    features: tuple[frozenset[str], ...]
    foreign_cpus: IntArray  # taken by others than slurmk, in CPUs as ``cpus`` counts them
    foreign_memory: IntArray
    gres_devices: Mapping[str, tuple[tuple[int, ...], ...]] = field(
        default_factory=dict
    )  # "gpu:a100" -> device numbers by node
    foreign_gres: IntArray | None = None  # [nodes, gres_names]; None: others hold none
    maximum_jobs: IntArray | None = None  # [nodes]; None: no node has a limit that could bind


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """What of a partition matters for placing jobs."""

    name: str
    nodes: IntArray  # rows of NodeTable
    up: bool  # jobs may start
    priority_tier: int
    maximum_nodes: int | None
    minimum_nodes: int
    maximum_time: int | None  # seconds
    oversubscribe: int = 1  # jobs that may share a CPU; 0 = EXCLUSIVE (whole nodes)
    exclusive_user: bool = False
    maximum_cpus_per_node: int | None = None
    maximum_cpus_per_socket: int | None = None
    least_loaded: bool = False
    forced_sharing: bool = False  # OverSubscribe=FORCE: jobs share CPUs without asking for it
    maximum_memory_per_node: int | None = None  # MiB
    queues: bool = True  # takes submissions though no job may start (state DOWN, not INACTIVE or DRAIN)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a job needs, with everything resolved to numbers. Hashable: equal demands share the planner's work."""

    minimum_nodes: int
    maximum_nodes: int
    tasks: int  # at least 1
    cpus_per_task: int
    tasks_per_node: int | None  # --ntasks-per-node: with --nodes exactly that, with --ntasks at most
    tasks_per_node_exact: bool
    tasks_per_core: int | None
    tasks_per_socket: int | None
    minimum_cpus: int  # of the whole job
    minimum_cpus_per_node: int
    memory_per_node: int | None  # 0 = all of it
    memory_per_cpu: int | None
    temporary_disk: int = 0
    gres_per_node: tuple[tuple[str, int], ...] = ()  # name as in NodeTable.gres_names
    gres_per_job: tuple[tuple[str, int], ...] = ()
    gres_per_task: tuple[tuple[str, int], ...] = ()
    gres_per_socket: tuple[tuple[str, int], ...] = ()
    cpus_per_gres: tuple[tuple[str, int], ...] = ()
    memory_per_gres: tuple[tuple[str, int], ...] = ()
    whole_nodes: bool = False
    share_user: int | None = None  # --exclusive=user: nodes may hold this user's jobs only
    oversubscribe: bool = False
    overcommit: bool = False
    constraint: str = ""  # text of --constraint
    prefer: str = ""  # text of --prefer
    required_nodes: tuple[str, ...] = ()
    excluded_nodes: tuple[str, ...] = ()
    node_counts: tuple[int, ...] = ()  # the only numbers of nodes that will do (--nodes=1,3,5); empty: all of the range
    contiguous: bool = False
    spread: bool = False
    packs: bool = False  # tasks fill whole nodes one after another in place of being spread evenly over them
    use_minimum_nodes: bool = False
    switches: int | None = None
    switch_wait: int = 0  # seconds
    segment: int = 0  # nodes of one block; 0: as many as a block has
    spread_segments: bool = False
    threads_per_core: int | None = None
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    licenses: tuple[tuple[str, int], ...] = ()
    least_memory: int | None = None  # MiB asked for of each node at the least, counted or not; 0 = all of it


@dataclass(frozen=True, slots=True)
class PendingRow:
    """One pending record: a job, or the waiting elements of an array (``count`` of them, at most ``startable`` now)."""

    job_id: int
    demand: Demand
    partitions: tuple[str, ...]
    priority: int
    submit_time: int
    time_limit: int  # seconds; a year stands for no limit
    user_id: int
    account: str = ""
    qos: str = ""
    count: int = 1
    startable: int = 1  # of "%N" and what runs already
    eligible_time: int = 0  # not before (--begin)
    held_reason: Reason = Reason.NONE  # set: cannot be planned, for this reason (held, dependency)
    time_minimum: int | None = None  # seconds
    deadline: int | None = None
    reservations: tuple[str, ...] = ()  # that it may run in
    reservation_optional: bool = True  # it may also run in none of them
    leaves_within: int | None = None  # seconds, for those whose reservation it may use until then
    submitted_ago: int = 0
    component_of: int = 0  # het jobs: components with the same id start together
    planned: int | None = None  # the start that the last plan gave it, where ``Snapshot.by_promises``
    planned_nodes: Sequence[str] = ()
    planned_tasks: tuple[int, ...] = ()  # on each of those
    promised: int | None = None  # the start that it was promised
    array: int = 0  # records of the same array share its limit of elements that run; 0: no limit
    array_room: int = 0  # elements that may start now, of all these records


@dataclass(frozen=True, slots=True)
class RunningRow:
    """A job that holds resources until ``end_time`` (limit, or now plus a little when it is completing or late)."""

    job_id: int
    end_time: int
    allocation: Allocation
    user_id: int
    oversubscribe: bool = False
    share_user: int | None = None
    licenses: tuple[tuple[str, int], ...] = ()
    account: str = ""
    qos: str = ""


@dataclass(frozen=True, slots=True)
class Victim:
    """A running job that others may preempt: what its place costs, and that it is suspended rather than ended. ``within``: by
    jobs of its own QOS too, if their priority is higher; ``only_by_higher``: by no others at all. It ``leaves`` the nodes of
    these reservations to their own jobs, and with ``only_leaves`` gives way to no others."""

    tier: int
    qos: str
    priority: int
    start_time: int
    exempt_until: int = 0
    suspends: bool = False
    within: bool = False
    only_by_higher: bool = False
    leaves: frozenset[str] = frozenset()
    only_leaves: bool = False


@dataclass(frozen=True, slots=True)
class Preemption:
    """Who may preempt whom: jobs in partitions of a lower tier, or of QOS that the job's QOS (``preempts``) names.

    ``served`` are waiting jobs that others give way to already. With ``youngest_first`` those that began last give way first,
    whatever their priorities are. Licences are a reason to preempt with ``reclaims_licenses`` alone. A job that is
    suspended for others keeps its memory with ``memory_stays``.
    """

    by_partition: bool
    victims: Mapping[int, Victim]
    preempts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    served: frozenset[int] = frozenset()
    youngest_first: bool = False
    reclaims_licenses: bool = False
    memory_stays: bool = True


@dataclass(frozen=True, slots=True)
class Preempt:
    """These jobs are to give way, so that the waiting one can start."""

    job_id: int
    victims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a plan depends on."""

    snapshot_id: int
    time: int
    nodes: NodeTable
    partitions: tuple[PartitionRow, ...]
    pending: tuple[PendingRow, ...]
    running: tuple[RunningRow, ...]
    reservations: tuple[Reservation, ...] = ()
    preemption: Preemption | None = None
    bounds: Bounds = Bounds()
    overrun: int = 0  # seconds that jobs may go on when their reservation has ended
    licenses: Mapping[str, int] = field(default_factory=dict)  # total; beside them what reservations leave to others
    quotas: tuple[Quota, ...] = ()
    switches: tuple[Switch, ...] = ()
    blocks: tuple[Block, ...] = ()
    block_sizes: tuple[int, ...] = ()
    window: int = 0  # seconds ahead that starts are promised for (bf_window); 0 = as far as the queue goes
    depth: int = 0  # pending records looked at (bf_max_job_test); 0 = all
    least_loaded: bool = False
    spare_gres: bool = False  # jobs without GRES stay off nodes with GRES while others are free
    by_promises: bool = False  # plan as ``policy`` tells, where priorities say nothing but who came first
    longest_wait: int = 0  # seconds, of the jobs that have started
    changed: Mapping[int, PendingRow | None] | None = None
    """By job id, what ``pending`` says otherwise than the snapshot before, None where it says nothing more; None: unknown."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start this job (or one more element of this array) now."""

    job_id: int
    allocation: Allocation
    time_limit: int  # seconds; smaller than asked only with --time-min


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a pending record is told: when and where it is planned to start, or the reason it can't be planned."""

    reason: Reason
    start_time: int | None = None
    nodes: Sequence[str] = ()
    partition: str = ""
    description: str = ""  # where not empty, what squeue shows instead of the reason's name
    promised: int | None = None  # it starts no later than that, whoever comes after it
    tasks: tuple[int, ...] = ()  # on each of ``nodes``, where plans go by promises


@dataclass(frozen=True, slots=True)
class Plan:
    """The planner's answer. ``starts`` are in priority order; ``outlooks`` has every
    pending record that did not start whole."""

    snapshot_id: int
    time: int
    starts: tuple[Start, ...]
    outlooks: Mapping[int, Outlook]
    preempted: tuple[Preempt, ...] = ()
