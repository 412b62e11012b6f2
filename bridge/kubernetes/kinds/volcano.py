"""Volcano: its PodGroup with pods, or its Job with a task for each group of nodes with equal shares."""

from __future__ import annotations

from bridge.kubernetes.kinds.plan import WorkloadPlan
from bridge.kubernetes.kinds.values import VOLCANO_QUEUE, groups_of, pods_of, total_resources, values
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.templating import Templates

GROUP_NAME = "scheduling.k8s.io/group-name"
"""The annotation by which a pod belongs to a PodGroup of Volcano."""


class VolcanoPods:
    """Implements kinds.plan.Renderer."""

    shared_templates = False
    scheduler = "volcano"

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        group = templates.render("volcano", **values(plan), queue=queue_of(plan), resources=total_resources(plan))
        pods = pods_of(plan, annotations={GROUP_NAME: plan.name})
        return (*group, *templates.render("pods", **values(plan), pods=pods))


class VolcanoJobs:
    """Implements kinds.plan.Renderer."""

    shared_templates = True
    scheduler = "volcano"

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        return tuple(templates.render("volcano-job", **values(plan), queue=queue_of(plan), groups=groups_of(plan)))


def queue_of(plan: WorkloadPlan) -> str:
    """The job's queue; ``default`` always exists."""
    return plan.queue.get(VOLCANO_QUEUE) or plan.settings.queue or "default"
