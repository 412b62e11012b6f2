"""The coscheduling plugin of scheduler-plugins: its PodGroup with pods."""

from __future__ import annotations

from bridge.kubernetes.kinds.plan import WorkloadPlan
from bridge.kubernetes.kinds.values import pods_of, total_resources, values
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.templating import Templates

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


class CoschedulingPods:
    """Implements kinds.plan.Renderer."""

    shared_templates = False
    scheduler = "scheduler-plugins-scheduler"

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        group = templates.render("coscheduling", **values(plan), resources=total_resources(plan))
        pods = pods_of(plan, labels={GROUP_LABEL: plan.name})
        return (*group, *templates.render("pods", **values(plan), pods=pods))
