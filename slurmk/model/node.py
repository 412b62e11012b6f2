"""Nodes and partitions as configured, and what changes of them while the controller runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slurmk.model.states import INFINITE, NodeFlag, NodeState

WHOLE_DEVICE, SHARED_DEVICES = "gpu", ("mps", "shard")
"""The GRES that are the same devices, given whole or in parts (gres.conf(5)); a node has parts of one kind."""


@dataclass(frozen=True, slots=True)
class GresCapacity:
    """GRES of one kind and type on a node; ``indices`` are device numbers (``File=/dev/nvidia[0-3]``)."""

    name: str
    type: str
    count: int
    files: tuple[str, ...] = ()


def parts_of_gpus(gres: Iterable[GresCapacity]) -> tuple[int, int]:
    """How many GPUs these are, and how many parts each of them has; 0 where they are only given whole."""
    gpus = parts = 0
    for each in gres:
        gpus += each.count if each.name == WHOLE_DEVICE else 0
        parts += each.count if each.name in SHARED_DEVICES else 0
    return gpus, parts // gpus if gpus else 0


@dataclass(frozen=True, slots=True)
class Cordon:
    """Whether the cluster that a node belongs to keeps new work from it, why, and since when (Unix seconds; 0: unknown)."""

    closed: bool
    reason: str = ""
    time: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its hardware as configured or reported, and its administrative state.

    What jobs hold there is not part of it; that is derived from the running jobs. Memory and disk are MiB.

    Where a cluster has the nodes, ``foreign_…`` is what others than slurmk hold there. ``cordon`` is the cluster's word on
    whether new work may come, which draining and resuming change; ``cordon_wanted`` is what an administrator wants of it
    as long as the cluster has not followed. ``refusal`` is what else keeps all jobs out, and no administrator's doing here.
    """

    name: str
    address: str = ""
    host_name: str = ""
    cpus: int = 1
    boards: int = 1
    sockets: int = 1
    cores_per_socket: int = 1
    threads_per_core: int = 1
    memory: int = 1
    temporary_disk: int = 0
    weight: int = 1
    features: tuple[str, ...] = ()
    active_features: tuple[str, ...] = ()
    gres: tuple[GresCapacity, ...] = ()
    port: int = 6818
    state: NodeState = NodeState.IDLE  # UNKNOWN, DOWN, IDLE or FUTURE; the rest is derived
    flags: NodeFlag = NodeFlag.NONE
    reason: str = ""
    reason_time: int = 0
    reason_user_id: int = 0
    comment: str = ""
    extra: str = ""
    boot_time: int = 0
    slurmd_start_time: int = 0
    last_busy: int = 0
    cpu_load: int | None = None  # hundredths
    free_memory: int | None = None
    operating_system: str = ""
    architecture: str = ""
    version: str = ""
    cpus_milli: int = 0  # all that the cluster lets pods have, in thousandths; 0: there is no cluster
    foreign_cpus: int = 0  # of ``cpus``
    foreign_cpus_milli: int = 0
    foreign_memory: int = 0
    foreign_gres: tuple[tuple[str, int], ...] = ()  # ("gpu:a100", 2)
    foreign_pods: int = 0  # those that are not on every node
    maximum_jobs: int | None = None  # as many pods as may still come
    cordon: Cordon | None = None  # None: there is no cluster, or it has not spoken
    cordon_wanted: bool | None = None
    refusal: str = ""
    reported_features: tuple[str, ...] | None = None  # as the cluster's labels say; features can be changed here
    cpu_binding: str = ""  # none, cores, sockets, threads, ldoms: how srun binds tasks there that say nothing of it
    instance_id: str = ""
    instance_type: str = ""
    topology: str = ""  # as an administrator put it: default:leaf2
    certificate_token: bool = False  # whether one was set
    resume_time: int = 0  # when it is resumed by itself, Unix seconds; 0: never

    @property
    def available(self) -> bool:
        """True when new work may start there."""
        if self.refusal:
            return False
        refused = NodeFlag.DRAIN | NodeFlag.NO_RESPOND | NodeFlag.FAIL | NodeFlag.REBOOT_ISSUED | NodeFlag.POWERED_DOWN
        return self.state not in (NodeState.DOWN, NodeState.UNKNOWN, NodeState.FUTURE) and not self.flags & refused


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition (slurm.conf(5), PartitionName). Times are minutes; ``INFINITE`` does not bind; None was not configured."""

    name: str
    nodes: tuple[str, ...]
    node_spec: str = ""  # as configured, for scontrol show partition
    selected: bool = False  # its nodes are those that labels choose, whoever they are by then
    joined_by: tuple[str, ...] = ()  # features of its node sets: nodes that are made with one of them are in it
    default: bool = False
    state: str = "UP"  # UP, DOWN, DRAIN, INACTIVE
    maximum_time: int = INFINITE
    default_time: int | None = None
    minimum_nodes: int = 0
    maximum_nodes: int = INFINITE
    priority_tier: int = 1
    priority_job_factor: int = 1
    oversubscribe: str = "NO"  # NO, YES:4, FORCE:4, EXCLUSIVE
    exclusive_user: bool = False
    exclusive_topology: bool = False
    hidden: bool = False
    root_only: bool = False
    require_reservation: bool = False
    lln: bool = False
    default_memory_per_cpu: int | None = None
    default_memory_per_node: int | None = None
    maximum_memory_per_cpu: int | None = None
    maximum_memory_per_node: int | None = None
    maximum_cpus_per_node: int = INFINITE
    maximum_cpus_per_socket: int = INFINITE
    allow_groups: tuple[str, ...] | None = None  # None = ALL
    allow_accounts: tuple[str, ...] | None = None
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] | None = None
    deny_qos: tuple[str, ...] = ()
    allow_nodes: tuple[str, ...] | None = None
    alternate: str = ""
    qos: str = ""
    preempt_mode: str = ""
    grace_time: int = 0
    over_time_limit: int | None = None
    suspend_time: int | None = None
    tres_billing_weights: str = ""
    job_defaults: str = ""
    disable_root_jobs: bool = False
    select_type_parameters: str = ""
    cpu_binding: str = ""  # none, cores, sockets, threads, ldoms
    topology: str = ""
    power_down_on_idle: bool = False
    created: bool = False  # by an administrator: no configuration has it
    deleted: bool = False  # the configuration's, taken away by an administrator; only ever saved
