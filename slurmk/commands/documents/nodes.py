"""Nodes (``node`` of the data parser): scontrol show node and the REST API's ``/slurm/node``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grammar.tres import format_tres
from slurmk.commands.documents.shape import Member, Shape, constant
from slurmk.commands.documents.values import INFINITY, binding_number, number
from slurmk.commands.node_text import NodeView, allocated_tres, configured_tres, gres_text, user_name
from slurmk.core.machine import Machine
from slurmk.model.node import Node
from slurmk.model.node_states import Condition


@dataclass(frozen=True, slots=True)
class NodeOf:
    """A node beside the machine that it belongs to."""

    machine: Machine
    view: NodeView


def _of(get: Callable[[Node], object]) -> Callable[[NodeOf], object]:
    return lambda each: get(each.view.node)


def states(condition: Condition) -> list[str]:
    """A node's base state and the flags beside it."""
    return condition.listed


def _partitions(each: NodeOf) -> list[str]:
    return [name for name, partition in each.machine.partitions.items() if each.view.node.name in partition.nodes]


def _tres(each: NodeOf) -> str:
    partitions = [each.machine.partitions[name] for name in _partitions(each)]
    return format_tres(configured_tres(each.machine.site, each.view, partitions))


def reason_user(node: Node) -> str:
    """Who gave the node's reason; empty without one."""
    return user_name(node.reason_user_id) if node.reason else ""


NODE: Shape[NodeOf] = Shape(
    Member("architecture", _of(lambda node: node.architecture)),
    constant("burstbuffer_network_address", ""),
    Member("boards", _of(lambda node: node.boards)),
    Member("boot_time", _of(lambda node: number(node.boot_time))),
    constant("tls_cert_last_renewal", number(0), since=43),
    Member("cert_flags", _of(lambda node: ["TOKEN_SET"] if node.certificate_token else []), since=43),
    constant("cluster_name", ""),
    Member("cores", _of(lambda node: node.cores_per_socket)),
    constant("specialized_cores", 0),
    Member("cpu_binding", _of(lambda node: binding_number(node.cpu_binding))),
    Member("cpu_load", _of(lambda node: node.cpu_load or 0)),
    Member("free_mem", _of(lambda node: number(node.free_memory))),
    Member("cpus", _of(lambda node: node.cpus)),
    Member("effective_cpus", _of(lambda node: node.cpus - node.foreign_cpus)),
    constant("specialized_cpus", ""),
    constant(
        "energy",
        {
            "average_watts": 0,
            "base_consumed_energy": 0,
            "consumed_energy": 0,
            "current_watts": number(0),
            "previous_consumed_energy": 0,
            "last_collected": 0,
        },
    ),
    constant("external_sensors", {}, until=44),
    Member("extra", _of(lambda node: node.extra)),
    constant("power", {}, until=44),
    Member("features", _of(lambda node: list(node.features))),
    Member("active_features", _of(lambda node: list(node.active_features))),
    constant("gpu_spec", ""),
    Member("gres", _of(lambda node: gres_text(node.gres) or "")),
    constant("gres_drained", "N/A"),
    Member("gres_used", lambda each: each.view.gres_used or ""),
    Member("instance_id", _of(lambda node: node.instance_id)),
    Member("instance_type", _of(lambda node: node.instance_type)),
    Member("last_busy", _of(lambda node: number(node.last_busy))),
    constant("mcs_label", ""),
    constant("specialized_memory", 0),
    Member("name", _of(lambda node: node.name)),
    constant("next_state_after_reboot", ["INVALID"]),
    Member("address", _of(lambda node: node.address or node.name)),
    Member("hostname", _of(lambda node: node.host_name or node.name)),
    Member("state", lambda each: states(each.view.condition)),
    Member("operating_system", _of(lambda node: node.operating_system)),
    constant("owner", ""),
    Member("partitions", _partitions),
    Member("port", _of(lambda node: node.port)),
    Member("real_memory", _of(lambda node: node.memory)),
    constant("res_cores_per_gpu", 0),
    Member("comment", _of(lambda node: node.comment)),
    Member("reason", _of(lambda node: node.reason)),
    Member("reason_changed_at", _of(lambda node: number(node.reason_time))),
    Member("reason_set_by_user", _of(reason_user)),
    Member("resume_after", _of(lambda node: number(node.resume_time))),
    Member("reservation", lambda each: each.view.reservation),
    constant("suspend_time", INFINITY, since=45),
    Member("alloc_memory", lambda each: each.view.memory_used),
    Member("alloc_cpus", lambda each: each.view.cpus_used),
    Member("alloc_idle_cpus", lambda each: each.view.node.cpus - each.view.cpus_used),
    Member("tres_used", lambda each: format_tres(allocated_tres(each.machine.site, each.view))),
    constant("tres_weighted", 0.0, until=44),
    Member("slurmd_start_time", _of(lambda node: number(node.slurmd_start_time))),
    Member("sockets", _of(lambda node: node.sockets)),
    Member("threads", _of(lambda node: node.threads_per_core)),
    Member("temporary_disk", _of(lambda node: node.temporary_disk)),
    Member("weight", _of(lambda node: node.weight)),
    Member("topology", _of(lambda node: node.topology), since=43),
    Member("tres", _tres),
    Member("version", _of(lambda node: node.version)),
)
"""Every member of a node."""
