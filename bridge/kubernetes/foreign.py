"""What pods that slurmk did not make hold on a node, counted as kube-scheduler counts it.

A pod's request is what its containers ask for together, or what its init containers need at one time if that is more; init
containers that go on running (sidecars) count as containers and beside the init containers after them; a request of the pod
as a whole comes before both; a running pod that was resized holds the larger of what it asks for and what it still has
(kube-scheduler's ``resourcehelper.PodRequests``). Pods that are over, or not yet bound to a node, hold nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.kubernetes.labels import CONTROLLER, JOB_ID, label_value
from bridge.kubernetes.quantities import QuantityError, parse_milli
from bridge.kubernetes.resources import Manifest

OVER = frozenset({"Succeeded", "Failed"})
"""Phases of pods that hold nothing any more."""

MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a pod that a kubelet runs from a file."""

Requests = Counter[str]
"""Thousandths by resource name; ``pods`` among them."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """What others hold on one node. ``requests`` are thousandths by resource; ``devices`` are DRA devices by driver, pool and
    name; ``workloads`` are the pods that do not belong to every node (no DaemonSet's, not the kubelet's own)."""

    requests: Mapping[str, int] = field(default_factory=dict)
    devices: frozenset[tuple[str, str, str]] = frozenset()
    pods: int = 0
    workloads: int = 0


def is_ours(pod: Manifest, cluster: str) -> bool:
    """True for a pod that the controller of ``cluster`` made for a job."""
    labels = pod["metadata"].get("labels") or {}
    return JOB_ID in labels and labels.get(CONTROLLER) == label_value(cluster)


def holds(pod: Manifest) -> bool:
    """True while a pod holds what it asks for on a node."""
    return bool(pod.get("spec", {}).get("nodeName")) and pod.get("status", {}).get("phase") not in OVER


def belongs_to_node(pod: Manifest) -> bool:
    """True for a pod of the node itself: of a DaemonSet, or one that the kubelet runs from a file."""
    metadata = pod["metadata"]
    if MIRROR in (metadata.get("annotations") or {}):
        return True
    return any(owner.get("kind") in ("DaemonSet", "Node") for owner in metadata.get("ownerReferences") or ())


def foreign_of(pod: Manifest) -> Requests:
    """What a pod asks for, in thousandths by resource."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    present = _present(status)
    running: Requests = Counter()
    for container in spec.get("containers") or ():
        running += _container(container, present)
    sidecars: Requests = Counter()
    highest: Requests = Counter()
    for container in spec.get("initContainers") or ():
        needed = _container(container, present)
        if container.get("restartPolicy") == "Always":
            sidecars += needed
            needed = Counter()
        highest |= sidecars + needed
    total = (running + sidecars) | highest
    whole = _requests((spec.get("resources") or {}).get("requests"))
    for name in whole:
        total[name] = max(whole[name], present.get("", Counter())[name])
    total += _requests(spec.get("overhead"))
    total["pods"] = 1000
    return total


def _container(container: Mapping[str, Any], present: Mapping[str, Requests]) -> Requests:
    asked = _requests((container.get("resources") or {}).get("requests"))
    return asked | present.get(str(container.get("name")), Counter())


def _present(status: Mapping[str, Any]) -> dict[str, Requests]:
    """What running containers have, which after a resize may be more than they ask for; the pod's own is under ``""``."""
    found = {"": _requests((status.get("resources") or {}).get("requests"))}
    for each in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        given = _requests((each.get("resources") or {}).get("requests")) | _requests(each.get("allocatedResources"))
        if given and "running" in (each.get("state") or {}):
            found[str(each.get("name"))] = given
    return found


def _requests(texts: Mapping[str, Any] | None) -> Requests:
    found: Requests = Counter()
    for name, text in (texts or {}).items():
        try:
            found[name] = parse_milli(text)
        except QuantityError:
            continue  # the API server lets none through
    return found


def devices_of_claim(claim: Manifest) -> frozenset[tuple[str, str, str]]:
    """The devices that a ResourceClaim holds: driver, pool, name. Administrative access holds nothing."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return frozenset(
        (str(each.get("driver")), str(each.get("pool")), str(each.get("device")))
        for each in results
        if not each.get("adminAccess")
    )


def together(pods: Iterable[tuple[Requests, bool]], devices: Iterable[tuple[str, str, str]] = ()) -> Foreign:
    """The sum over a node's pods: each its requests, and whether it belongs to the node."""
    total: Requests = Counter()
    count = workloads = 0
    for requests, belongs in pods:
        total.update(requests)
        count += 1
        workloads += not belongs
    return Foreign(dict(total), frozenset(devices), count, workloads)
