"""What pods bear so that Kueue admits a whole job at once."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.kubernetes.kinds.plan import PodTemplate, WorkloadPlan
from bridge.kubernetes.settings import QueueSystem

PREFIX = "kueue.x-k8s.io/"


def pod_metadata(
    plan: WorkloadPlan, pod: PodTemplate, labels: Mapping[str, str] = {}, annotations: Mapping[str, str] = {}
) -> dict[str, dict[str, str]]:
    """Labels and annotations of pods that are queued themselves, together with the others of their job.

    Kueue tells the members of a group apart by their specs, and takes few different ones. Ours differ by their nodes alone, so
    those with equal shares are said to have one role. A pod that failed is not waited for to come back.
    """
    found_labels = {**pod.metadata["labels"], **labels}
    found_annotations = {**pod.metadata["annotations"], **annotations}
    if plan.settings.queue_system is QueueSystem.KUEUE:
        found_labels.update(plan.queue)
        if plan.size > 1:
            found_labels[PREFIX + "pod-group-name"] = plan.name
            found_annotations[PREFIX + "pod-group-total-count"] = str(plan.size)
            found_annotations[PREFIX + "retriable-in-group"] = "false"
            found_annotations[PREFIX + "role-hash"] = f"shares-{_role(plan, pod)}"
    return {"labels": found_labels, "annotations": found_annotations}


def _role(plan: WorkloadPlan, pod: PodTemplate) -> int:
    """The number of the first group with the same shares."""
    return next(each.group.index for each in plan.pods if each.group.shares == pod.group.shares)
