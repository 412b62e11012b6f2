"""Kubernetes' own gang scheduling: a PodGroup of scheduling.k8s.io with pods.

This is the one place that knows the fields of PodGroup, which still move between releases of Kubernetes.
"""

from __future__ import annotations

from bridge.kubernetes.kinds.plan import WorkloadPlan
from bridge.kubernetes.kinds.pods import pods_of, values
from bridge.kubernetes.resources import POD_GROUP, Manifest
from bridge.kubernetes.templating import Templates


class NativePods:
    """Implements kinds.plan.Renderer. A job of one node needs no gang and gets none."""

    shared_templates = False
    scheduler = ""

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        pods = pods_of(plan)
        if plan.size == 1:
            return tuple(templates.render("pods", **values(plan), pods=pods))
        for pod in pods:
            pod["spec"] = {**pod["spec"], "schedulingGroup": {"podGroupName": plan.name}}
        return (
            *templates.render("podgroup", **values(plan), version=POD_GROUP.group_version),
            *templates.render("pods", **values(plan), pods=pods),
        )
