"""A node's GRES: extended resources of its allocatable, and devices that DRA drivers offer there.

Device plugins count devices under a name (``nvidia.com/gpu``, ``nvidia.com/mig-1g.10gb``) and describe them in the node's
labels. DRA drivers publish each device with its attributes in ResourceSlices; which of them a DeviceClass means is said in
CEL. GRES without a source in slurmk.yaml are not seen.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cel

from bridge.kubernetes.foreign import Foreign
from bridge.kubernetes.quantities import QuantityError, parse_quantity
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import GresSource

log = logging.getLogger(__name__)

Kind = tuple[str, str]
"""A GRES' name and type; the type may be empty."""

_VENDORS = re.compile(r"(?:nvidia|amd|intel)[-_. ]+(?:tesla[-_. ]+|instinct[-_. ]+)?|tesla[-_. ]+", re.IGNORECASE)
_MIG = re.compile(r".*-MIG-", re.IGNORECASE)
_UNFIT = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Supply:
    """What a node has of one kind of GRES, and how much of it pods of others hold."""

    total: int
    foreign: int


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a ResourceSlice. ``key`` is driver, pool and name, as claims name it; ``consumes`` are the counters of
    a device that shares its hardware with others."""

    key: tuple[str, str, str]
    node: str
    attributes: Mapping[str, Any]
    capacity: Mapping[str, Any]
    closed: bool
    consumes: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Slices:
    """The devices of all complete pools, by node, and the counters that devices share."""

    devices: Mapping[str, tuple[Device, ...]]
    counters: Mapping[tuple[str, str], int]


NO_SLICES = Slices({}, {})


def supplies(
    node: Manifest,
    sources: Sequence[GresSource],
    foreign: Foreign,
    slices: Slices = NO_SLICES,
    classes: Mapping[str, Manifest] | None = None,
) -> dict[Kind, Supply]:
    """The node's GRES by name and type, in the order of the sources. ``classes`` are the DeviceClasses by name."""
    found: dict[Kind, Supply] = {}
    for source in sources:
        if source.device_class:
            offered = _offered(node, source, foreign, slices, (classes or {}).get(source.device_class))
        else:
            offered = _allocatable(node, source, foreign)
        for kind, supply in offered:
            if supply.total > 0:
                before = found.get(kind, Supply(0, 0))
                found[kind] = Supply(before.total + supply.total, before.foreign + min(supply.foreign, supply.total))
    return found


# ------------------------------------------------------------------- extended resources


def _allocatable(node: Manifest, source: GresSource, foreign: Foreign) -> Iterator[tuple[Kind, Supply]]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    labels = node["metadata"].get("labels") or {}
    prefix = source.resource[:-1] if source.resource.endswith("*") else None
    for resource, text in allocatable.items():
        if resource != source.resource and not (prefix is not None and resource.startswith(prefix)):
            continue
        if prefix is not None:
            name = source.types.get(resource[len(prefix) :], resource[len(prefix) :])
        else:
            name = type_of(source, labels.get(source.type_label, ""))
        supply = Supply(_count(text), -(-foreign.requests.get(resource, 0) // 1000))
        yield (source.name, name), supply


def type_of(source: GresSource, label: str) -> str:
    """The type of a source's devices whose label says ``label``: ``NVIDIA-A100-SXM4-80GB`` is ``a100-sxm4-80gb``, and a
    slice of it by its profile (``…-MIG-1g.10gb``: ``1g.10gb``)."""
    if source.type:
        return source.type
    if label in source.types:
        return source.types[label]
    short = _VENDORS.sub("", _MIG.sub("", label), count=1) if _VENDORS.match(label) else _MIG.sub("", label)
    return _UNFIT.sub("-", short.lower()).strip("-_.")


def _count(text: Any) -> int:
    try:
        return max(0, int(parse_quantity(text)))
    except QuantityError:
        return 0


# ------------------------------------------------------------------- devices of DRA


def read_slices(manifests: Iterable[Manifest]) -> Slices:
    """The devices of all ResourceSlices. Of each pool only the newest generation counts, and only when all its slices are
    there, as kube-scheduler has it. Devices that several nodes can reach belong to no node and are left out."""
    pools: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        pools.setdefault((str(spec.get("driver")), str((spec.get("pool") or {}).get("name"))), []).append(spec)
    devices: dict[str, list[Device]] = {}
    counters: dict[tuple[str, str], int] = {}
    for (driver, pool), specs in pools.items():
        newest = max(int(spec["pool"].get("generation") or 0) for spec in specs)
        current = [spec for spec in specs if int(spec["pool"].get("generation") or 0) == newest]
        if len(current) < int(current[0]["pool"].get("resourceSliceCount") or 1):
            continue
        for spec in current:
            for shared in spec.get("sharedCounters") or ():
                for name, counter in (shared.get("counters") or {}).items():
                    counters[f"{driver}/{pool}/{shared.get('name')}", name] = _count(counter.get("value"))
            for device in spec.get("devices") or ():
                read = _device(driver, pool, spec.get("nodeName") or "", device)
                if read.node:
                    devices.setdefault(read.node, []).append(read)
    return Slices({node: tuple(found) for node, found in devices.items()}, counters)


def _device(driver: str, pool: str, node: str, device: Mapping[str, Any]) -> Device:
    attributes: dict[str, dict[str, Any]] = {}
    for name, value in (device.get("attributes") or {}).items():
        domain, _, short = name.rpartition("/")
        attributes.setdefault(domain or driver, {})[short] = next(iter(value.values()), None)
    capacity: dict[str, dict[str, Any]] = {}
    for name, value in (device.get("capacity") or {}).items():
        domain, _, short = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[short] = float(_count(value.get("value")))
    consumes = {
        (f"{driver}/{pool}/{consumed.get('counterSet')}", name): _count(counter.get("value"))
        for consumed in device.get("consumesCounters") or ()
        for name, counter in (consumed.get("counters") or {}).items()
    }
    closed = any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in device.get("taints") or ())
    key = (driver, pool, str(device.get("name")))
    return Device(key, node or device.get("nodeName") or "", attributes, capacity, closed, consumes)


def _offered(
    node: Manifest, source: GresSource, foreign: Foreign, slices: Slices, device_class: Manifest | None
) -> Iterator[tuple[Kind, Supply]]:
    if device_class is None:
        return
    labels = node["metadata"].get("labels") or {}
    there = slices.devices.get(node["metadata"]["name"], ())
    taken = [device for device in there if device.key in foreign.devices]
    kinds: dict[Kind, list[Device]] = {}
    for device in there:
        if not device.closed and _belongs(device, device_class):
            label = _attribute(device, source.type_label) or labels.get(source.type_label, "")
            kinds.setdefault((source.name, type_of(source, str(label))), []).append(device)
    for kind, members in kinds.items():
        total = _disjoint(members, [], slices.counters)
        free = _disjoint([each for each in members if each.key not in foreign.devices], taken, slices.counters)
        yield kind, Supply(total, total - min(free, total))


def _disjoint(members: Iterable[Device], taken: Iterable[Device], counters: Mapping[tuple[str, str], int]) -> int:
    """How many of the devices can be in use at once, beside those taken already: partitions of one device share counters."""
    used: Counter[tuple[str, str]] = Counter()
    for device in taken:
        used.update(device.consumes)
    count = 0
    for device in sorted(members, key=lambda each: sum(each.consumes.values())):
        if all(used[name] + amount <= counters.get(name, 0) for name, amount in device.consumes.items()):
            used.update(device.consumes)
            count += 1
    return count


def _attribute(device: Device, name: str) -> Any:
    """An attribute by its name, with its domain (``gpu.nvidia.com/productName``) or of the driver's own."""
    domain, _, short = name.rpartition("/")
    return device.attributes.get(domain or device.key[0], {}).get(short)


def _belongs(device: Device, device_class: Manifest) -> bool:
    """True for a device that all of the class' CEL expressions choose. An attribute that it lacks makes it not chosen."""
    variable = {"driver": device.key[0], "attributes": device.attributes, "capacity": device.capacity}
    selectors = (device_class.get("spec") or {}).get("selectors") or ()
    return all(_chosen(str((each.get("cel") or {}).get("expression", "false")), variable) for each in selectors)


def _chosen(expression: str, device: Mapping[str, Any]) -> bool:
    program = _program(expression)
    if program is None:
        return False
    context = cel.Context({"device": dict(device)})
    for name, function in _FUNCTIONS.items():
        context.add_function(name, function)
    try:
        return program.execute(context) is True
    except KeyError:
        return False  # of an attribute that the device lacks
    except Exception as error:  # its errors have no class of their own
        _complain(expression, str(error))
        return False


@lru_cache(maxsize=256)
def _program(expression: str) -> Any:
    try:
        return cel.compile(expression)
    except Exception as error:  # what it raises depends on the mistake
        _complain(expression, str(error))
        return None


@lru_cache(maxsize=256)
def _complain(expression: str, error: str) -> None:
    """Say once what is wrong with an expression."""
    log.warning("a DeviceClass' expression cannot be evaluated, so its devices are no GRES: %s: %s", expression, error)


def _version(text: str) -> list[Any]:
    """A semantic version as something to compare: ``1.2.3-rc.1`` comes before ``1.2.3``."""
    core, dash, extra = str(text).partition("+")[0].partition("-")
    numbers = [int(part) if part.isdigit() else 0 for part in core.split(".")]
    return [numbers, 0 if dash else 1, extra]


def _compare(one: Any, other: Any) -> int:
    if isinstance(one, str) and isinstance(other, str):
        one, other = _version(one), _version(other)
    return int(one > other) - int(one < other)


_FUNCTIONS: Mapping[str, Any] = {
    "quantity": lambda text: float(parse_quantity(text)),
    "semver": str,
    "compareTo": _compare,
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "lowerAscii": lambda text: str(text).lower(),
    "upperAscii": lambda text: str(text).upper(),
}
"""What Kubernetes' CEL has beyond the standard and DeviceClasses use: quantities are doubles here, versions text."""
