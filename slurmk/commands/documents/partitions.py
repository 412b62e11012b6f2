"""Partitions (``partition_info`` of the data parser): scontrol show partition, sinfo, the REST API's ``/slurm/partition``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from grammar.hostlist import HostlistError, compress, expand, fold
from grammar.tres import format_tres
from slurmk.commands.documents.shape import Member, Shape, constant, nested
from slurmk.commands.documents.values import UNSET, Retired, RetiredNumber, binding_names, binding_number, limit, number
from slurmk.commands.node_text import NodeView, counted_tres
from slurmk.model.configuration import billing
from slurmk.model.node import Partition
from slurmk.model.site import Site


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition beside the site and all nodes."""

    site: Site
    partition: Partition
    nodes: Mapping[str, NodeView]


def _of(get: Callable[[Partition], object]) -> Callable[[PartitionView], object]:
    return lambda view: get(view.partition)


def _words(words: Iterable[str] | None) -> str:
    return ",".join(words or ())


def _members(view: PartitionView) -> list[NodeView]:
    return [view.nodes[name] for name in view.partition.nodes if name in view.nodes]


def _tres(view: PartitionView) -> str:
    tres = counted_tres(view.site, _members(view))
    tres["billing"] = billing(view.partition.tres_billing_weights, tres)
    return format_tres(tres)


def _node_sets(view: PartitionView) -> str:
    try:
        return ",".join(word for word in expand(view.partition.node_spec) if word not in view.nodes)
    except HostlistError:
        return ""


def _select_type(partition: Partition) -> list[str]:
    return [partition.select_type_parameters] if partition.select_type_parameters else ["NONE"]


_FLAGS: tuple[tuple[str, Callable[[Partition], bool]], ...] = (
    ("DEFAULT", lambda partition: partition.default),
    ("HIDDEN", lambda partition: partition.hidden),
    ("NO_ROOT", lambda partition: partition.disable_root_jobs),
    ("ROOT_ONLY", lambda partition: partition.root_only),
    ("REQ_RESV", lambda partition: partition.require_reservation),
    ("LLN", lambda partition: partition.lln),
    ("PDOI", lambda partition: partition.power_down_on_idle),
)
_PREEMPT_MODES = {"": "CLUSTER_GLOBAL", "OFF": "DISABLED"}


def _preempt_mode(partition: Partition) -> list[str]:
    mode = partition.preempt_mode.upper()
    return [_PREEMPT_MODES.get(word, word) for word in mode.split(",")]


def _exclusive(partition: Partition) -> str:
    if partition.exclusive_topology:
        return "TOPO"
    if partition.exclusive_user:
        return "USER"
    return "NODE" if partition.oversubscribe == "EXCLUSIVE" else "NO"


def _sharing(partition: Partition) -> str:
    return "NO" if partition.oversubscribe == "EXCLUSIVE" else partition.oversubscribe


def _shares(partition: Partition) -> int:
    """How many jobs may share a resource; a whole node to one job is 0 (before v0.0.45)."""
    word, _, count = partition.oversubscribe.partition(":")
    if word == "EXCLUSIVE":
        return 0
    return int(count) if count.isdigit() else (4 if word in ("YES", "FORCE") else 1)


def _force(partition: Partition) -> list[str]:
    return ["force"] if partition.oversubscribe.startswith("FORCE") else []


def _memory(attribute: str) -> tuple[Member[PartitionView], ...]:
    """Memory for a CPU or for a node, and what came before them: either."""
    per_cpu, per_node = f"{attribute}_memory_per_cpu", f"{attribute}_memory_per_node"

    def of_cpu(partition: Partition) -> object:
        return number(getattr(partition, per_cpu))

    def of_node(partition: Partition) -> object:
        return UNSET if getattr(partition, per_cpu) is not None else number(getattr(partition, per_node) or 0)

    return (
        Member("memory_per_cpu", _of(lambda partition: getattr(partition, per_cpu) or 0), until=44),
        constant("memory_per_cpu", RetiredNumber(0), since=45),
        Member("partition_memory_per_cpu", _of(of_cpu)),
        Member("partition_memory_per_node", _of(of_node)),
    )


_STATE: Member[PartitionView] = Member("state", _of(lambda partition: [partition.state]))

PARTITION: Shape[PartitionView] = Shape(
    nested(
        "nodes",
        Member("allowed_allocation", _of(lambda partition: fold(partition.allow_nodes) if partition.allow_nodes else "")),
        Member("configured", _of(lambda partition: compress(partition.nodes))),
        Member("total", lambda view: len(_members(view))),
    ),
    nested(
        "accounts",
        Member("allowed", _of(lambda partition: _words(partition.allow_accounts))),
        Member("deny", _of(lambda partition: _words(partition.deny_accounts))),
    ),
    nested("groups", Member("allowed", _of(lambda partition: _words(partition.allow_groups)))),
    nested(
        "qos",
        Member("allowed", _of(lambda partition: _words(partition.allow_qos))),
        Member("deny", _of(lambda partition: _words(partition.deny_qos))),
        Member("assigned", _of(lambda partition: partition.qos)),
    ),
    Member("alternate", _of(lambda partition: partition.alternate)),
    nested(
        "tres",
        Member("billing_weights", _of(lambda partition: partition.tres_billing_weights)),
        Member("configured", _tres),
    ),
    constant("cluster", ""),
    constant("select_type", [], until=44),
    Member("select_type", _of(_select_type), since=45),
    nested(
        "cpus",
        Member("task_binding", _of(lambda partition: binding_number(partition.cpu_binding)), until=44),
        Member("task_binding", _of(lambda partition: binding_names(partition.cpu_binding)), since=45),
        Member("total", lambda view: sum(each.node.cpus for each in _members(view))),
    ),
    nested(
        "defaults",
        *_memory("default"),
        Member("time", _of(lambda partition: limit(partition.default_time))),
        Member("job", _of(lambda partition: partition.job_defaults)),
    ),
    Member("flags", _of(lambda partition: [name for name, test in _FLAGS if test(partition)]), since=45),
    nested(
        "partition",
        Member("exclusive", _of(_exclusive)),
        Member("oversubscribe", _of(_sharing)),
        _STATE,
        since=45,
    ),
    Member("grace_time", _of(lambda partition: partition.grace_time)),
    nested(
        "maximums",
        Member("cpus_per_node", _of(lambda partition: limit(partition.maximum_cpus_per_node))),
        Member("cpus_per_socket", _of(lambda partition: limit(partition.maximum_cpus_per_socket))),
        *_memory("maximum"),
        Member("nodes", _of(lambda partition: limit(partition.maximum_nodes))),
        Member("shares", _of(_shares), until=44),
        constant("shares", RetiredNumber(0), since=45),
        nested("oversubscribe", Member("jobs", _of(_shares)), Member("flags", _of(_force)), until=44),
        constant("oversubscribe", {"jobs": RetiredNumber(0), "flags": Retired()}, since=45),
        Member("time", _of(lambda partition: limit(partition.maximum_time))),
        Member("over_time_limit", _of(lambda partition: limit(partition.over_time_limit))),
    ),
    nested("minimums", Member("nodes", _of(lambda partition: partition.minimum_nodes))),
    Member("name", _of(lambda partition: partition.name)),
    Member("node_sets", _node_sets),
    Member("preempt_mode", _of(_preempt_mode), since=45),
    nested(
        "priority",
        Member("job_factor", _of(lambda partition: partition.priority_job_factor)),
        Member("tier", _of(lambda partition: partition.priority_tier)),
    ),
    constant("timeouts", {"resume": UNSET, "suspend": UNSET}),
    Member("topology", _of(lambda partition: partition.topology), since=43),
    nested("partition", _STATE, until=44),
    Member("suspend_time", _of(lambda partition: limit(partition.suspend_time))),
)
"""Every member of a partition."""
