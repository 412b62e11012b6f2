"""What the templates of the workload kinds can name; docs/kubernetes.md lists it for sites that write their own."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from bridge.kubernetes.kinds.kueue import pod_metadata
from bridge.kubernetes.kinds.plan import WorkloadPlan
from bridge.kubernetes.quantities import parse_quantity

NOTHING: Mapping[str, str] = {}

VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"


def values(plan: WorkloadPlan, labels: Mapping[str, str] = NOTHING) -> dict[str, Any]:
    """For every kind. ``metadata`` is of the object that stands for the job, which bears ``labels`` too."""
    return {
        "name": plan.name,
        "namespace": plan.metadata["namespace"],
        "metadata": {"name": plan.name, **plan.metadata, "labels": {**plan.metadata["labels"], **labels}},
        "job": plan.job,
        "settings": plan.settings,
        "priority_class": plan.pods[0].spec.get("priorityClassName", ""),  # which a gang must have in common
        "size": plan.size,
    }


def pods_of(
    plan: WorkloadPlan,
    labels: Mapping[str, str] = NOTHING,
    annotations: Mapping[str, str] = NOTHING,
    spec: Mapping[str, Any] = NOTHING,
) -> list[dict[str, Any]]:
    """Metadata and spec of each pod, for kinds that make the pods themselves. The arguments are put on all of them."""
    return [
        {
            "metadata": {
                "name": f"{plan.name}-n{number}",
                "namespace": plan.metadata["namespace"],
                **pod_metadata(plan, pod, labels, annotations),
            },
            "spec": {**pod.spec, **spec},
        }
        for number, pod in enumerate(plan.pods)
    ]


def groups_of(plan: WorkloadPlan, *, queued: bool = False, spec: Mapping[str, Any] = NOTHING) -> list[dict[str, Any]]:
    """For kinds with one template for several pods: each group's name, number of pods, and the template's metadata and spec.
    ``queued`` pods are in the queue themselves, not the object that makes them."""
    return [
        {
            "name": f"g{pod.group.index}",
            "size": pod.group.size,
            "metadata": pod_metadata(plan, pod) if queued else pod.metadata,
            "spec": {**pod.spec, **spec},
        }
        for pod in plan.pods
    ]


def total_resources(plan: WorkloadPlan) -> dict[str, str]:
    """What all pods of a job request together."""
    found: dict[str, Fraction] = {}
    for pod in plan.pods:
        for container in pod.spec["containers"]:
            for resource, amount in container.get("resources", {}).get("requests", {}).items():
                found[resource] = found.get(resource, Fraction(0)) + parse_quantity(amount) * pod.group.size
    return {resource: _quantity(amount) for resource, amount in found.items()}


def _quantity(amount: Fraction) -> str:
    if amount.denominator != 1:
        return f"{-(-amount.numerator * 1000 // amount.denominator)}m"
    mebibytes, rest = divmod(amount.numerator, 1 << 20)
    return f"{mebibytes}Mi" if mebibytes and not rest else str(amount.numerator)
