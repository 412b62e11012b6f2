"""JobSet: one replicated Job for each group of nodes with equal shares."""

from __future__ import annotations

from bridge.kubernetes.kinds.plan import WorkloadPlan
from bridge.kubernetes.kinds.values import NOTHING, groups_of, values
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import QueueSystem
from bridge.kubernetes.templating import Templates


class JobSets:
    """Implements kinds.plan.Renderer."""

    shared_templates = True
    scheduler = ""

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        queue = plan.queue if plan.settings.queue_system is QueueSystem.KUEUE else NOTHING
        return tuple(templates.render("jobset", **values(plan, queue), groups=groups_of(plan)))
