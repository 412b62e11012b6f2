"""Which extended resources or devices a node's GRES are: how a pod asks for what the planner gave."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.kubernetes.gres import NO_SLICES, Device, Slices, type_of
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import GresSource
from slurmk.model.job import GresShare, NodeShare


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """Devices through DRA: ``count`` of a device class; ``selectors`` are CEL expressions that each must satisfy."""

    name: str
    device_class: str
    count: int
    selectors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Devices:
    """What a pod asks for to have a node's share of GRES. ``resources`` are extended resources and their counts."""

    resources: tuple[tuple[str, int], ...] = ()
    requests: tuple[DeviceRequest, ...] = ()


def devices_of(share: NodeShare, sources: Sequence[GresSource], node: Manifest | None, slices: Slices = NO_SLICES) -> Devices:
    """How the GRES of ``share`` are asked for on ``node``. GRES without a source are counted by Slurm alone."""
    allocatable = (node.get("status") or {}).get("allocatable") or {} if node else {}
    offered = slices.devices.get(node["metadata"]["name"], ()) if node else ()
    resources: dict[str, int] = {}
    requests: list[DeviceRequest] = []
    for given in share.gres:
        source = _source(given, sources, allocatable, offered)
        if source is None or not given.count:
            continue
        if source.device_class:
            selectors = _selectors(source, given.type, offered)
            requests.append(DeviceRequest(f"gres-{len(requests)}", source.device_class, given.count, selectors))
        else:
            resource = resource_of(source, given.type)
            resources[resource] = resources.get(resource, 0) + given.count
    return Devices(tuple(sorted(resources.items())), tuple(requests))


def resource_of(source: GresSource, type_name: str) -> str:
    """The extended resource that devices of a type are; empty when the source has none such."""
    if source.resource.endswith("*"):
        label = next((label for label, name in source.types.items() if name == type_name), type_name)
        return source.resource[:-1] + label if label else ""
    return source.resource if source.type in ("", type_name) else ""


def _source(
    given: GresShare, sources: Sequence[GresSource], allocatable: Mapping[str, Any], offered: Sequence[Device]
) -> GresSource | None:
    """Where ``given`` comes from: of what the node has, the narrower before the wider."""

    def there(source: GresSource) -> bool:
        if source.device_class:
            return bool(offered)
        return str(allocatable.get(resource_of(source, given.type), "0")) != "0"

    able = [each for each in sources if each.name == given.name and _has(each, given.type)]
    able.sort(key=lambda each: (not there(each), bool(each.device_class), not each.resource.endswith("*")))
    return able[0] if able else None


def _has(source: GresSource, type_name: str) -> bool:
    return source.type in ("", type_name) if source.device_class else bool(resource_of(source, type_name))


def _selectors(source: GresSource, type_name: str, offered: Sequence[Device]) -> tuple[str, ...]:
    """What tells devices of the type from others of their class, where an attribute of theirs does."""
    domain, _, short = source.type_label.rpartition("/")
    if not short or not type_name or source.type:
        return ()
    chosen: dict[str, set[str]] = {}
    for device in offered:
        own = domain or device.key[0]
        value = device.attributes.get(own, {}).get(short)
        if isinstance(value, str) and type_of(source, value) == type_name:
            chosen.setdefault(own, set()).add(value)
    return tuple(
        f"device.attributes[{json.dumps(own)}].{short} in [{', '.join(json.dumps(value) for value in sorted(values))}]"
        for own, values in sorted(chosen.items())
    )
