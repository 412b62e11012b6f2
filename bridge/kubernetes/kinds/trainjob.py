"""TrainJob of Kubeflow Trainer, with a training runtime for each job.

A runtime that all jobs shared could say neither different shares for different nodes nor most of what a pod of ours needs:
what a TrainJob may change of its runtime is a short list. So slurmk installs one for each job, which goes with it.
"""

from __future__ import annotations

from bridge.kubernetes.kinds.plan import WorkloadPlan
from bridge.kubernetes.kinds.values import NOTHING, groups_of, values
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import QueueSystem
from bridge.kubernetes.templating import Templates


class TrainJobs:
    """Implements kinds.plan.Renderer."""

    shared_templates = True
    scheduler = ""

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        queue = plan.queue if plan.settings.queue_system is QueueSystem.KUEUE else NOTHING
        return (
            *templates.render("trainingruntime", **values(plan), groups=groups_of(plan)),
            *templates.render("trainjob", **values(plan, queue)),
        )
