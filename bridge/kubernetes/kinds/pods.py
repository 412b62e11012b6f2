"""Plain pods: one for each node of the job, and nothing else."""

from __future__ import annotations

from bridge.kubernetes.kinds.plan import WorkloadPlan
from bridge.kubernetes.kinds.values import pods_of, values
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.templating import Templates


class PlainPods:
    """Implements kinds.plan.Renderer."""

    shared_templates = False
    scheduler = ""

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        return tuple(templates.render("pods", **values(plan), pods=pods_of(plan)))
