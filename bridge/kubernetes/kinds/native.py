"""Kubernetes' own gang scheduling: a PodGroup of scheduling.k8s.io with pods, or with Indexed Jobs.

This is the one place that knows the fields of PodGroup, which still move between releases of Kubernetes. A job of one node
needs no gang and gets none.
"""

from __future__ import annotations

from bridge.kubernetes.kinds.plan import WorkloadPlan
from bridge.kubernetes.kinds.values import groups_of, pods_of, values
from bridge.kubernetes.resources import POD_GROUP, Manifest
from bridge.kubernetes.settings import QueueSystem
from bridge.kubernetes.templating import Templates


class NativePods:
    """Implements kinds.plan.Renderer."""

    shared_templates = False
    scheduler = ""

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        group, member = _gang(plan, templates)
        return (*group, *templates.render("pods", **values(plan), pods=pods_of(plan, spec=member)))


class NativeJobs:
    """Implements kinds.plan.Renderer. Nodes with equal shares are one Indexed Job; all Jobs are in one gang.

    The PodGroup is slurmk's, not one that the Job controller would make, because that one would know of one Job only. Kueue
    admits a single Job as such; the pods of several it is told to take as one group, so that they are admitted together.
    """

    shared_templates = True
    scheduler = ""

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        group, member = _gang(plan, templates)
        several = len(plan.pods) > 1
        queue = plan.queue if plan.settings.queue_system is QueueSystem.KUEUE and not several else {}
        jobs = groups_of(plan, queued=several, spec=member)
        return (*group, *templates.render("native-job", **values(plan, queue), groups=jobs))


def _gang(plan: WorkloadPlan, templates: Templates) -> tuple[list[Manifest], dict[str, object]]:
    """The PodGroup, and what makes pods its members."""
    if plan.size == 1:
        return [], {}
    made = templates.render("podgroup", **values(plan), version=POD_GROUP.group_version)
    return made, {"schedulingGroup": {"podGroupName": plan.name}}


def priority_class_of(group: Manifest) -> str:
    """The PriorityClass that a PodGroup names, if it leaves it to that class whether the gang may preempt others."""
    spec = group["spec"]
    return "" if "preemptionPolicy" in spec else str(spec.get("priorityClassName", ""))


def with_preemption_policy(group: Manifest, policy: str) -> Manifest:
    """The PodGroup with its class's ``preemptionPolicy``. The API server fills in PreemptLowerPriority where none is said, and
    then refuses a PodGroup of a class that says Never."""
    return {**group, "spec": {**group["spec"], "preemptionPolicy": policy}}
