"""Which extended resources or devices a node's GRES are: how a pod asks for what the planner gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


def devices_of(share: NodeShare, sources: Sequence[GresSource], node: Manifest | None) -> Devices:
    """How the GRES of ``share`` are asked for on ``node``. GRES without a source are counted by Slurm alone."""
    allocatable = node.get("status", {}).get("allocatable", {}) if node else {}
    resources: dict[str, int] = {}
    requests: list[DeviceRequest] = []
    for given in share.gres:
        source = _source(given, sources, allocatable)
        if source is None or not given.count:
            continue
        if source.device_class:
            requests.append(DeviceRequest(f"gres-{len(requests)}", source.device_class, given.count))
        else:
            resource = resource_name(source, given.type)
            resources[resource] = resources.get(resource, 0) + given.count
    return Devices(tuple(sorted(resources.items())), tuple(requests))


def resource_name(source: GresSource, type_name: str) -> str:
    """The extended resource that ``type_name`` of a source is; empty when it is none of its."""
    if source.resource.endswith("*"):
        label = next((label for label, name in source.types.items() if name == type_name), type_name)
        return source.resource[:-1] + label if label else ""
    return source.resource if source.type in ("", type_name) else ""


def _source(given: GresShare, sources: Sequence[GresSource], allocatable: Mapping[str, Any]) -> GresSource | None:
    """Where ``given`` comes from: what the node really has first, the narrower before the wider."""
    able = [each for each in sources if each.name == given.name and (each.device_class or resource_name(each, given.type))]
    able = [each for each in able if not each.device_class or each.type in ("", given.type)]
    there = [each for each in able if str(allocatable.get(resource_name(each, given.type), "0")) != "0"]
    there.sort(key=lambda each: not each.resource.endswith("*"))
    return next(iter(there or [each for each in able if each.device_class] or able), None)
