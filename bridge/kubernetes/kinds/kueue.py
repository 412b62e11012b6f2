"""What objects bear so that Kueue admits the whole job at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.kubernetes.kinds.plan import PodTemplate, WorkloadPlan
from bridge.kubernetes.settings import QueueSystem

PREFIX = "kueue.x-k8s.io/"


def pod_group(
    plan: WorkloadPlan, pod: PodTemplate, labels: Mapping[str, str] = {}, annotations: Mapping[str, str] = {}
) -> dict[str, Any]:
    """Labels and annotations of a pod that is queued itself, together with the others of its job.

    Kueue tells the members of a group apart by their specs, and takes few different ones. Ours differ by their nodes alone, so
    those with equal shares are said to have one role. A pod that failed is not waited for to come back.
    """
    if plan.settings.queue_system is not QueueSystem.KUEUE:
        return {"labels": {**pod.metadata["labels"], **labels}, "annotations": {**pod.metadata["annotations"], **annotations}}
    found_labels = {**pod.metadata["labels"], **plan.queue, **labels}
    found_annotations = {**pod.metadata["annotations"], **annotations}
    if plan.size > 1:
        found_labels[PREFIX + "pod-group-name"] = plan.name
        found_annotations[PREFIX + "pod-group-total-count"] = str(plan.size)
        found_annotations[PREFIX + "retriable-in-group"] = "false"
        found_annotations[PREFIX + "role-hash"] = f"shares-{role(plan, pod)}"
    return {"labels": found_labels, "annotations": found_annotations}


def role(plan: WorkloadPlan, pod: PodTemplate) -> int:
    """The number of the first group that has the same shares."""
    key = (pod.group.cpus, pod.group.memory, pod.group.devices)
    return next(each.group.index for each in plan.pods if (each.group.cpus, each.group.memory, each.group.devices) == key)
