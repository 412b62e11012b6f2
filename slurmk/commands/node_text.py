"""What sinfo and scontrol print of a node: its condition, what jobs hold there, and the texts for it."""

from __future__ import annotations

import pwd
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from grammar.hostlist import expand, fold
from slurmk.core.machine import Machine
from slurmk.model.configuration import billing
from slurmk.model.job import GresShare, Job
from slurmk.model.node import SHARED_DEVICES, GresCapacity, Node, Partition, parts_of_gpus
from slurmk.model.node_states import Condition, condition_of
from slurmk.model.site import Site
from slurmk.model.states import JobFlag, NodeState


class NodeView:
    """One node as it is now. Jobs that are ending hold nothing any more but make it completing, as in Slurm."""

    __slots__ = ("condition", "cpus_used", "index", "jobs", "memory_used", "node", "reservation")

    def __init__(self, machine: Machine, node: Node, index: int, *, planned: bool = False) -> None:
        self.node = node = _closed(node)
        self.index = index
        usage = machine.node_usage(node.name)
        self.jobs: tuple[Job, ...] = ()
        self.cpus_used, self.memory_used = usage.cpus, usage.memory
        if usage.jobs:
            self.jobs = tuple(job for job in machine.jobs_of_node(node.name) if not job.flags & JobFlag.COMPLETING)
        if usage.completing:
            self.cpus_used, self.memory_used = self._held()
        if usage.whole - usage.completing:
            self.cpus_used = node.cpus
        reserved, self.reservation = machine.node_reservation(node.name)
        self.condition: Condition = condition_of(
            node,
            cpus_used=self.cpus_used,
            completing=bool(usage.completing),
            planned=planned,
            reserved=reserved,
        )

    def _held(self) -> tuple[int, int]:
        shares = [
            share for job in self.jobs if job.allocation for share in job.allocation.shares if share.node == self.node.name
        ]
        return min(sum(share.cpus for share in shares), self.node.cpus), sum(share.memory for share in shares)

    @property
    def gres_shares(self) -> list[GresShare]:
        """What running jobs hold of the node's GRES."""
        return [
            gres
            for job in self.jobs
            if job.allocation
            for share in job.allocation.shares
            if share.node == self.node.name
            for gres in share.gres
        ]

    @property
    def gres_used(self) -> str | None:
        """``gpu:a100:1(IDX:0)``; None without GRES."""
        if not self.node.gres:
            return None
        shares = self.gres_shares
        return ",".join(_gres_used(capacity, shares, self.node) for capacity in self.node.gres)

    @property
    def reason_known(self) -> bool:
        """True when an administrator or a failure closed the node or said why."""
        return bool(self.node.reason) or self.condition.closed

    @property
    def reason_user(self) -> str:
        return user_name(self.node.reason_user_id) if self.reason_known else "Unknown"


def _closed(node: Node) -> Node:
    """The node with the reason for which its cluster keeps all jobs out, where nobody gave another."""
    return replace(node, reason=node.refusal) if node.refusal and not node.reason else node


def foreign_text(node: Node) -> str:
    """What the node's cluster counts for pods, and what pods of others hold of it; "" where there is no cluster."""
    if not node.cpus_milli:
        return ""
    gres = ",".join(f"{name}:{count}" for name, count in node.foreign_gres) or "(null)"
    return (
        f"CPUMilliTot={node.cpus_milli} CPUMilliForeign={node.foreign_cpus_milli} CPUForeign={node.foreign_cpus}"
        f" MemForeign={node.foreign_memory} GresForeign={gres} PodsForeign={node.foreign_pods}"
    )


def _gres_used(capacity: GresCapacity, shares: Iterable[GresShare], node: Node) -> str:
    mine = [share for share in shares if share.name == capacity.name and share.type in ("", capacity.type)]
    label = f"{capacity.name}:{capacity.type}" if capacity.type else capacity.name
    text = f"{label}:{sum(share.count for share in mine)}"
    indices = sorted({index for share in mine for index in share.indices})
    if capacity.name in SHARED_DEVICES and (shards := _shards_by_gpu(node, indices)):
        return f"{text}({shards})"
    if not capacity.files:
        return text
    return f"{text}(IDX:{number_list(indices) or 'N/A'})"


def number_list(numbers: Iterable[int]) -> str:
    """``0-2,5``."""
    text = fold(str(number) for number in numbers)
    return text.strip("[]")


def gres_held(gres: GresShare, node: Node | None) -> str:
    """What a job holds of a GRES on a node: ``gpu:a100:2(IDX:0-1)``, ``tmp(CNT:1)``, and of shards how many of each GPU's,
    ``shard:2(2/2,0/2)``."""
    name = f"{gres.name}:{gres.type}" if gres.type and gres.name not in SHARED_DEVICES else gres.name
    if gres.name in SHARED_DEVICES and (shards := _shards_by_gpu(node, gres.indices)):
        return f"{name}:{gres.count}({shards})"
    if gres.name in SHARED_DEVICES or not gres.indices:
        return f"{name}(CNT:{gres.count})"
    return f"{name}:{gres.count}(IDX:{number_list(gres.indices)})"


def _shards_by_gpu(node: Node | None, indices: Iterable[int]) -> str:
    """``2/2,0/2``: how many of those shards are of each GPU, and how many it has; nothing where that is not known. Shards are
    numbered from the first GPU on (bridge.description)."""
    gpus, each = parts_of_gpus(node.gres if node is not None else ())
    if not each:
        return ""
    held = [0] * gpus
    for index in indices:
        if index // each >= gpus:
            return ""
        held[index // each] += 1
    return ",".join(f"{count}/{each}" for count in held)


def gres_text(gres: Iterable[GresCapacity]) -> str | None:
    """``gpu:a100:4``; None without GRES."""
    parts = [f"{each.name}:{each.type}:{each.count}" if each.type else f"{each.name}:{each.count}" for each in gres]
    return ",".join(parts) or None


def features_text(features: Iterable[str]) -> str | None:
    return ",".join(features) or None


@lru_cache(maxsize=1024)
def user_name(user_id: int) -> str:
    """A user's name, or the number of one that has none."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except (KeyError, OverflowError):
        return str(user_id)


def views(machine: Machine, *, future: bool = False) -> dict[str, NodeView]:
    """Every node by name, in configuration order; those of state FUTURE only when asked for."""
    nodes = [(index, node) for index, node in enumerate(machine.nodes.values())]
    shown = [(index, node) for index, node in nodes if future or node.state is not NodeState.FUTURE]
    planned = _planned(machine)
    return {node.name: NodeView(machine, node, index, planned=node.name in planned) for index, node in shown}


def _planned(machine: Machine) -> frozenset[str]:
    """Nodes that are kept for jobs that wait, as the last plan has it."""
    found: set[str] = set()
    total = len(machine.nodes)
    for outlook in machine.outlooks.values():
        if outlook.start_time is not None:
            found.update(outlook.nodes)
            if len(found) >= total:
                break
    return frozenset(found)


def wanted_nodes(text: str) -> set[str]:
    """The nodes of ``--nodes``. Raises HostlistError."""
    return set(expand(text))


# ---------------------------------------------------------------------------------------------- TRES


def configured_tres(site: Site, view: NodeView, partitions: Iterable[Partition]) -> dict[str, int]:
    """TRES of a node as configured, billed as its dearest partition does."""
    tres = counted_tres(site, [view])
    bills = [billing(partition.tres_billing_weights, tres) for partition in partitions]
    return tres | {"node": 0, "billing": max(bills, default=view.node.cpus)}


def allocated_tres(site: Site, view: NodeView) -> dict[str, int]:
    """TRES that jobs hold on a node."""
    tres = {"cpu": view.cpus_used, "mem": view.memory_used}
    for share in view.gres_shares:
        for name in (f"gres/{share.name}", f"gres/{share.name}:{share.type}"):
            if name in _tracked(site):
                tres[name] = tres.get(name, 0) + share.count
    return tres


def counted_tres(site: Site, nodes: Iterable[NodeView]) -> dict[str, int]:
    """TRES of nodes as configured; of GRES those that accounting counts."""
    tres = {"cpu": 0, "mem": 0, "node": 0}
    tracked = _tracked(site)
    for view in nodes:
        tres["cpu"] += view.node.cpus
        tres["mem"] += view.node.memory
        tres["node"] += 1
        for gres in view.node.gres:
            for name in (f"gres/{gres.name}", f"gres/{gres.name}:{gres.type}"):
                if name in tracked:
                    tres[name] = tres.get(name, 0) + gres.count
    return tres


def _tracked(site: Site) -> frozenset[str]:
    return frozenset(site.parameters.get("AccountingStorageTRES", "").lower().split(","))
