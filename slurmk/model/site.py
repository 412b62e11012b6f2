"""The site's configuration as values: what slurm.conf, gres.conf and topology.conf say, with Slurm's defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurmk.model.node import Node, Partition


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch of a tree topology: either ``nodes`` or ``switches`` below it (topology.conf(5))."""

    name: str
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    link_speed: int = 1
    written: str = field(default="", compare=False)  # how the configuration writes ``switches``


@dataclass(frozen=True, slots=True)
class Block:
    """A block of nodes near each other (topology.yaml(5))."""

    name: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """One cluster's configuration.

    ``parameters`` holds every slurm.conf key by its documented spelling, with the text that ``scontrol show config``
    prints; the fields are those that slurmk acts on, typed. Times are seconds unless named otherwise.
    """

    cluster_name: str
    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    switches: tuple[Switch, ...] = ()
    blocks: tuple[Block, ...] = ()
    block_sizes: tuple[int, ...] = ()  # nodes of a block, and of groups of blocks
    licenses: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # what was passed over or put right, each with file, line and key
    unused_keys: tuple[str, ...] = ()  # configured, accepted, not acted on
    gres_types: tuple[str, ...] = ()
    default_memory_per_cpu: int | None = None  # MiB
    default_memory_per_node: int | None = None
    maximum_memory_per_cpu: int | None = None
    maximum_memory_per_node: int | None = None
    memory_is_consumable: bool = True  # CR_*_Memory
    whole_nodes: bool = False  # SelectType=select/linear
    one_task_per_core: bool = False  # CR_ONE_TASK_PER_CORE
    pack_nodes: bool = False
    least_loaded: bool = False  # CR_LLN
    kill_wait: int = 30
    minimum_job_age: int = 300
    maximum_job_count: int = 10000
    maximum_array_size: int = 1001
    maximum_step_count: int = 40000
    first_job_id: int = 1
    maximum_job_id: int = 0x03FFFFFF
    job_requeue: bool = True
    requeue_exit: frozenset[int] = frozenset()  # exit codes with which a job goes back to the queue
    requeue_exit_hold: frozenset[int] = frozenset()  # … and is held there
    disable_root_jobs: bool = False
    over_time_limit: int = 0  # minutes
    enforce_partition_limits: str = "NO"  # NO, ANY, ALL
    complete_wait: int = 0
    epilog_message_time: int = 2000
    priority_type: str = "priority/basic"
    priority_weights: Mapping[str, int] = field(default_factory=dict)  # age, fairshare, job_size, partition, qos, assoc
    priority_maximum_age: int = 7 * 86400
    priority_favor_small: bool = False
    scheduler_parameters: Mapping[str, str] = field(default_factory=dict)
    preempt_type: str = "preempt/none"
    preempt_mode: str = "OFF"
    preempt_parameters: Mapping[str, str] = field(default_factory=dict)
    private_data: tuple[str, ...] = ()
    operators: tuple[str, ...] = ("root",)  # users who may act on everyone's jobs
    slurm_user: str = "root"  # whose the controller's own programs are
    prolog: tuple[str, ...] = ()  # programs on nodes, before and after a job there; names may be patterns
    epilog: tuple[str, ...] = ()
    prolog_slurmctld: tuple[str, ...] = ()  # programs of the controller's own
    epilog_slurmctld: tuple[str, ...] = ()
    prolog_flags: tuple[str, ...] = ()
    prolog_timeout: int | None = None
    epilog_timeout: int | None = None
    task_prolog: str = ""
    task_epilog: str = ""
    return_to_service: int = 0
    constrain_memory: bool = False  # ConstrainRAMSpace of cgroup.conf

    def counts(self, tres: str) -> bool:
        """Whether accounting counts GRES under this name (``gres/gpu``, AccountingStorageTRES); all where it names none."""
        counted = self.parameters.get("AccountingStorageTRES", "").lower()
        return "gres/" not in counted or tres in counted.split(",")

    def partition(self, name: str) -> Partition | None:
        return next((partition for partition in self.partitions if partition.name == name), None)

    @property
    def default_partition(self) -> Partition | None:
        return next((partition for partition in self.partitions if partition.default), None)


ALWAYS_TRACKED = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
"""TRES that accounting counts whatever AccountingStorageTRES says."""


def tracked_tres(site: Site) -> tuple[str, ...]:
    """The TRES that accounting counts, in Slurm's order; with GPUs come their memory and use."""
    names = [*ALWAYS_TRACKED, *site.parameters.get("AccountingStorageTRES", "").lower().split(",")]
    if "gres/gpu" in names:
        names += ["gres/gpumem", "gres/gpuutil"]
    return tuple(dict.fromkeys(name for name in names if name and name != "(null)"))
