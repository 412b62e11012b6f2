"""Plain pods: one for each node of the job, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.kubernetes.kinds.kueue import pod_group
from bridge.kubernetes.kinds.plan import WorkloadPlan
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.templating import Templates


class PlainPods:
    """Implements kinds.plan.Renderer."""

    shared_templates = False
    scheduler = ""

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        return tuple(templates.render("pods", **values(plan), pods=pods_of(plan)))


def values(plan: WorkloadPlan) -> dict[str, Any]:
    """What the templates of all kinds can name."""
    return {
        "name": plan.name,
        "namespace": plan.metadata["namespace"],
        "metadata": {"name": plan.name, **plan.metadata},
        "job": plan.job,
        "settings": plan.settings,
        "queue": plan.queue,
        "size": plan.size,
    }


def pods_of(plan: WorkloadPlan, labels: Mapping[str, str] = {}, annotations: Mapping[str, str] = {}) -> list[dict[str, Any]]:
    """Metadata and spec of the pods, for kinds that make each themselves; ``labels`` and ``annotations`` are put on all."""
    return [
        {
            "metadata": {
                "name": f"{plan.name}-n{number}",
                "namespace": plan.metadata["namespace"],
                **pod_group(plan, pod, labels, annotations),
            },
            "spec": pod.spec,
        }
        for number, pod in enumerate(plan.pods)
    ]
