"""What the partitions' nodes have, as Kubernetes counts it: the amounts that quotas are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.kubernetes.gres import type_of
from bridge.kubernetes.quantities import MEBIBYTE, QuantityError, format_milli, parse_quantity
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import GresSource
from slurmk.model.node import Partition
from slurmk.model.quotas import QuotaLimit

CPU, MEMORY = "cpu", "memory"


@dataclass(frozen=True, slots=True)
class GresResource:
    """An extended resource that is GRES: the kind's name, and the types that its devices have."""

    name: str
    types: frozenset[str]


@dataclass(frozen=True, slots=True)
class Supply:
    """``partitions`` has the amounts by partition and resource (cpu in thousandths, memory in MiB, others in pieces), ``gres``
    what of the resources is GRES, ``hosts`` the amounts by partition, host and resource."""

    partitions: Mapping[str, Mapping[str, int]]
    gres: Mapping[str, GresResource]
    hosts: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)

    def resources(self, partitions: Iterable[str]) -> tuple[str, ...]:
        """cpu, memory, and the others that nodes of these partitions have, by name."""
        others = {name for each in partitions for name, amount in self.partitions[each].items() if amount}
        return CPU, MEMORY, *sorted(others - {CPU, MEMORY})

    def total(self, partitions: Iterable[str]) -> dict[str, int]:
        """What the partitions have together; a host that several have counts once."""
        hosts = {host: amounts for partition in partitions for host, amounts in self.hosts[partition].items()}
        return _sum(hosts.values())

    def limit_of(self, resource: str, total: int, others: int) -> QuotaLimit | None:
        """A quota's limit of this resource in Slurm's terms; None for one that Slurm does not count."""
        if resource == CPU:
            return QuotaLimit("cpu", total, others)
        if resource == MEMORY:
            return QuotaLimit("mem", total, others)
        if resource == "pods":
            return QuotaLimit("node", total, others)
        gres = self.gres.get(resource)
        if gres is None:
            return None
        elsewhere = {kind for each in self.gres.values() if each.name == gres.name for kind in each.types} - gres.types
        return QuotaLimit(f"gres/{gres.name}", total, others, tuple(f"{gres.name}:{kind}" for kind in sorted(elsewhere)))

    def tres_of(self, resource: str) -> tuple[str, ...]:
        """The TRES, as GrpTRES names them, that bound this resource."""
        if resource == CPU:
            return ("cpu",)
        if resource == MEMORY:
            return ("mem",)
        gres = self.gres.get(resource)
        if gres is None:
            return ()
        only = [kind for kind in gres.types if kind and len(gres.types) == 1]
        return (f"gres/{gres.name}", *(f"gres/{gres.name}:{kind}" for kind in only))


def supply_of(partitions: Iterable[Partition], nodes: Mapping[str, Manifest], sources: Sequence[GresSource]) -> Supply:
    """What the partitions' nodes have. ``nodes`` are the Node objects by Slurm's names; a host counts once in a partition."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    gres: dict[str, GresResource] = {}
    for partition in partitions:
        hosts = {nodes[name]["metadata"]["name"]: nodes[name] for name in partition.nodes if name in nodes}
        by_host = found.setdefault(partition.name, {})
        for host, node in hosts.items():
            amounts = by_host.setdefault(host, {})
            for resource, text in (node.get("status", {}).get("allocatable") or {}).items():
                amount = amount_of(resource, text)
                if resource not in (CPU, MEMORY):
                    source = _source(resource, sources)
                    if source is None or not amount:
                        continue
                    known = gres.get(resource, GresResource(source.name, frozenset()))
                    gres[resource] = GresResource(source.name, known.types | {_type(resource, source, node)})
                amounts[resource] = amount
    return Supply({name: _sum(hosts.values()) for name, hosts in found.items()}, gres, found)


def _sum(hosts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = {CPU: 0, MEMORY: 0}
    for amounts in hosts:
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def amount_of(resource: str, text: object) -> int:
    """A quantity in the resource's unit here; fractions of a MiB or of a piece are left out. 0 for what is no quantity."""
    try:
        value = parse_quantity(text)
    except QuantityError:
        return 0
    if resource == CPU:
        return int(value * 1000)
    return int(value / MEBIBYTE) if resource == MEMORY else int(value)


def amount_used(resource: str, text: object) -> int:
    """The same of what is in use: fractions are rounded up."""
    try:
        value = parse_quantity(text)
    except QuantityError:
        return 0
    scaled = value * 1000 if resource == CPU else value / MEBIBYTE if resource == MEMORY else value
    return -(-scaled.numerator // scaled.denominator)


def quantity(resource: str, amount: int) -> str:
    """An amount as Kubernetes writes it."""
    if resource == CPU:
        return format_milli(amount)
    if resource == MEMORY:
        return f"{amount // 1024}Gi" if amount and amount % 1024 == 0 else f"{amount}Mi" if amount else "0"
    return str(amount)


def _source(resource: str, sources: Sequence[GresSource]) -> GresSource | None:
    """The source that the resource is of; one that names it whole before one with a star."""
    whole = next((each for each in sources if each.resource == resource), None)
    starred = (each for each in sources if each.resource.endswith("*") and resource.startswith(each.resource[:-1]))
    return whole or next(starred, None)


def _type(resource: str, source: GresSource, node: Manifest) -> str:
    if source.resource.endswith("*"):
        label = resource[len(source.resource) - 1 :]
        return source.types.get(label, label)
    return type_of(source, (node["metadata"].get("labels") or {}).get(source.type_label, ""))
