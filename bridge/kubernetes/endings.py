"""What became of a job, read from what Kubernetes says of its objects.

stepd tells most endings itself. This is for what it cannot tell: a pod that was killed, evicted or deleted, that never came
up, or that has no stepd (on a simulated node). Everything here is a pure function of objects as the API server gives them;
which of several pods decides, and whom to ask next, is the launcher's matter.

Who writes what: the kubelet sets ``status.reason`` and ends containers, and whoever disrupts a pod (scheduler, eviction
API, taints, garbage collection, Volcano) first sets its condition ``DisruptionTarget``, Kueue its own ``TerminationTarget``.
Controllers that delete pods say why at their own object (Job, JobSet, TrainJob, vcjob, Kueue's Workload).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from bridge.kubernetes.labels import CONTAINER
from bridge.kubernetes.programs import FAILURE
from bridge.kubernetes.resources import Manifest

LONGEST_MESSAGE = 300
"""Characters of a reason that are kept: squeue shows it in one line."""


class End(Enum):
    """In which way an attempt ended."""

    EXITED = "exited"
    TIME_LIMIT = "time limit"
    OUT_OF_MEMORY = "out of memory"
    NODE_FAILED = "node failed"
    PREEMPTED = "preempted"
    DELETED = "deleted"  # somebody asked for it: whoever has the job's other objects knows what was meant
    NOT_LAUNCHED = "not launched"  # it never ran


@dataclass(frozen=True, slots=True)
class Ending:
    """``exit_code`` is a wait(2) status. ``retry`` of what was not launched: what stood in the way may pass."""

    end: End
    message: str = ""
    exit_code: int = 0
    retry: bool = True


class Stage(Enum):
    """How far a pod has come."""

    UNBOUND = "unbound"
    BOUND = "bound"  # a node has it; its containers are not up
    RUNNING = "running"
    ENDED = "ended"  # nothing of it runs any more


def stage_of(pod: Manifest) -> Stage:
    """By its phase, and by its containers where the phase lags behind."""
    phase = _status(pod).get("phase")
    if phase in ("Succeeded", "Failed"):
        return Stage.ENDED
    if not pod.get("spec", {}).get("nodeName"):
        return Stage.UNBOUND
    return Stage.RUNNING if phase == "Running" else Stage.BOUND


def started_at(pod: Manifest) -> float | None:
    """When a pod's container began to run (Unix seconds), None when it never did or nobody says."""
    state = (_container(pod) or {}).get("state") or {}
    said = (state.get("running") or state.get("terminated") or {}).get("startedAt")
    try:
        return datetime.fromisoformat(said).timestamp() if said else None
    except (TypeError, ValueError):
        return None


def is_simulated(pod: Manifest) -> bool:
    """True for a running pod whose container has no runtime's id: nothing runs in it, so nobody will report."""
    container = _container(pod)
    return stage_of(pod) is Stage.RUNNING and container is not None and not container.get("containerID")


def is_deleted(pod: Manifest) -> bool:
    """True when its deletion was asked for."""
    return bool(pod.get("metadata", {}).get("deletionTimestamp"))


# ------------------------------------------------------------------------------------------------ one pod

_DISRUPTIONS: Mapping[str, End] = {
    "PreemptionByScheduler": End.PREEMPTED,  # kube-scheduler and Volcano
    "EvictionByEvictionAPI": End.PREEMPTED,  # kubectl drain, descheduler
    "DeletionByDeviceTaintManager": End.NODE_FAILED,
    "DeletionByTaintManager": End.NODE_FAILED,  # not ready or unreachable for too long, or closed by hand
    "DeletionByPodGC": End.NODE_FAILED,  # the node is no more
    "TerminationByKubelet": End.PREEMPTED,
}
"""Reasons of the condition DisruptionTarget."""

_POD_REASONS: Mapping[str, End] = {
    "DeadlineExceeded": End.TIME_LIMIT,
    "Evicted": End.PREEMPTED,
    "Preempting": End.PREEMPTED,
    "Terminated": End.NODE_FAILED,  # the node shuts down
    "Shutdown": End.NODE_FAILED,
    "NodeLost": End.NODE_FAILED,
    "NodeShutdown": End.NOT_LAUNCHED,
    "NodeAffinity": End.NOT_LAUNCHED,
    "UnexpectedAdmissionError": End.NOT_LAUNCHED,
    "TopologyAffinityError": End.NOT_LAUNCHED,
    "SMTAlignmentError": End.NOT_LAUNCHED,
    "InvalidNodeInfo": End.NOT_LAUNCHED,
    "AppArmor": End.NOT_LAUNCHED,
    "PodOSNotSupported": End.NOT_LAUNCHED,
    "PodOSSelectorNodeLabelDoesNotMatch": End.NOT_LAUNCHED,
    "PodLevelResourcesNotSupported": End.NOT_LAUNCHED,
    "SupplementalGroupsPolicyNotSupported": End.NOT_LAUNCHED,
    "UnexpectedPredicateFailureType": End.NOT_LAUNCHED,
}
"""What the kubelet writes to ``status.reason``; ``OutOfcpu`` and the like are told by how they begin."""

_NO_ROOM = "OutOf"

_CONTAINER_REASONS: Mapping[str, End] = {
    "OOMKilled": End.OUT_OF_MEMORY,
    "StartError": End.NOT_LAUNCHED,  # the runtime could not start the program
    "ContainerCannotRun": End.NOT_LAUNCHED,
    "ContainerStatusUnknown": End.NODE_FAILED,
}

_OWN_FAULT = " exceed"
"""In the message of an eviction: the pod used more than its own limit, which it would do again."""


def ending_of_pod(pod: Manifest, *, vanished: bool = False) -> Ending | None:
    """How the pod ended; None while it has not. One that is being deleted has not ended (``stage_of`` says when it has),
    but why it will is known. ``vanished``: the object is gone, and this is how it was seen last."""
    leaving = is_deleted(pod) or vanished
    ended = stage_of(pod) is Stage.ENDED
    if not leaving and not ended:
        return None
    disrupted = _disruption(pod)
    if disrupted is not None:
        return disrupted
    by_kubelet = _by_pod_reason(pod)
    if by_kubelet is not None:
        return by_kubelet
    if leaving and not (ended and _ended_before_deletion(pod)):
        return Ending(End.DELETED, f"Pod {_name(pod)} was deleted")
    return _by_containers(pod)


def _disruption(pod: Manifest) -> Ending | None:
    condition = _condition(pod, "DisruptionTarget")
    if condition is not None:
        reason = str(condition.get("reason", ""))
        if reason == "TerminationByKubelet":
            return _by_pod_reason(pod) or _preempted(pod, condition)
        end = _DISRUPTIONS.get(reason, End.PREEMPTED)
        return Ending(end, _told(pod, reason, condition.get("message")))
    condition = _condition(pod, "TerminationTarget")
    if condition is not None:
        return Ending(End.DELETED, _told(pod, "", condition.get("message")))
    return None


def _preempted(pod: Manifest, condition: Mapping[str, Any]) -> Ending:
    return Ending(End.PREEMPTED, _told(pod, "", condition.get("message")))


def _by_pod_reason(pod: Manifest) -> Ending | None:
    status = _status(pod)
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    end = End.NOT_LAUNCHED if reason.startswith(_NO_ROOM) else _POD_REASONS.get(reason)
    if end is None:
        return None
    if reason == "Evicted" and _OWN_FAULT in message:
        return Ending(End.EXITED, _told(pod, reason, message), exit_code=1 << 8)
    return Ending(end, _told(pod, reason, message))


def _ended_before_deletion(pod: Manifest) -> bool:
    """Whether it had ended by itself when its deletion was asked for. The API server adds the grace period to that time."""
    status, metadata = _status(pod), pod["metadata"]
    if status.get("phase") == "Succeeded" or not metadata.get("deletionTimestamp"):
        return True
    terminated = _terminated(_container(pod))
    finished = _time(terminated.get("finishedAt")) if terminated else None
    asked = _time(metadata.get("deletionTimestamp"))
    if finished is None or asked is None:
        return False
    return finished < asked - timedelta(seconds=int(metadata.get("deletionGracePeriodSeconds") or 0))


def _by_containers(pod: Manifest) -> Ending:
    for initial in _status(pod).get("initContainerStatuses") or ():
        terminated = _terminated(initial)
        if terminated and terminated.get("exitCode"):
            why = terminated.get("message") or f"init container {initial.get('name')} ended with {terminated['exitCode']}"
            return Ending(End.NOT_LAUNCHED, one_line(str(why)), retry=False)
    terminated = _terminated(_container(pod))
    if terminated is None:
        succeeded = _status(pod).get("phase") == "Succeeded"
        return Ending(End.EXITED, exit_code=0 if succeeded else 1 << 8)
    reason, message = str(terminated.get("reason") or ""), one_line(str(terminated.get("message") or ""))
    end = _CONTAINER_REASONS.get(reason, End.EXITED)
    code = int(terminated.get("exitCode") or 0)
    if end is End.NOT_LAUNCHED:
        return Ending(end, message or reason, retry=False)
    if message.startswith(FAILURE):  # stepd, or the script that looks for a Python for it
        return Ending(End.NOT_LAUNCHED, message.removeprefix(FAILURE), retry=False)
    return Ending(end, message, exit_code=9 if end is End.OUT_OF_MEMORY else (code & 0xFF) << 8)


# ------------------------------------------------------------------------------------------------ other objects

_WORKLOAD_CONDITIONS: tuple[tuple[str, str, str, str, End], ...] = (
    # group, kind, condition, reason ("" for any, else how it begins), how that ends the job
    ("kueue.x-k8s.io", "Workload", "Evicted", "NodeFailures", End.NODE_FAILED),
    ("kueue.x-k8s.io", "Workload", "Evicted", "DeactivatedDueToMaximumExecutionTimeExceeded", End.TIME_LIMIT),
    ("kueue.x-k8s.io", "Workload", "Evicted", "", End.PREEMPTED),
    ("batch", "Job", "Failed", "DeadlineExceeded", End.TIME_LIMIT),
    ("batch", "Job", "FailureTarget", "DeadlineExceeded", End.TIME_LIMIT),
    ("batch", "Job", "Suspended", "", End.PREEMPTED),
    ("jobset.x-k8s.io", "JobSet", "Suspended", "", End.PREEMPTED),
    ("trainer.kubeflow.org", "TrainJob", "Suspended", "", End.PREEMPTED),
    ("scheduling.k8s.io", "PodGroup", "DisruptionTarget", "", End.PREEMPTED),
)
"""Conditions of other objects that say why a job's pods are deleted; the first row that holds decides."""


def ending_of_objects(objects: Iterable[Manifest]) -> Ending | None:
    """Why a controller deletes a job's pods, as it says at its own objects; None when none says anything."""
    for manifest in objects:
        for group, kind, name, reason, end in _WORKLOAD_CONDITIONS:
            if manifest.get("kind") != kind or _group(manifest) != group:
                continue
            condition = _condition(manifest, name)
            if condition is not None and str(condition.get("reason", "")).startswith(reason):
                return Ending(end, one_line(f"{kind} {_name(manifest)}: {condition.get('message') or condition.get('reason')}"))
        phase = _volcano_ending(manifest)
        if phase is not None:
            return phase
    return None


_VOLCANO_PHASES: Mapping[str, End] = {
    "Aborting": End.DELETED,
    "Aborted": End.DELETED,
    "Restarting": End.PREEMPTED,
    "Pending": End.PREEMPTED,
}


def _volcano_ending(manifest: Manifest) -> Ending | None:
    """A vcjob whose pods were evicted restarts them; one that was aborted by command stops."""
    if manifest.get("kind") != "Job" or _group(manifest) != "batch.volcano.sh":
        return None
    state = _status(manifest).get("state") or {}
    end = _VOLCANO_PHASES.get(str(state.get("phase", "")))
    if end is None:
        return None
    return Ending(end, one_line(f"Job {_name(manifest)}: {state.get('message') or state.get('phase')}"))


def leaving(objects: Iterable[Manifest]) -> Manifest | None:
    """The first of these objects whose deletion was asked for."""
    return next((manifest for manifest in objects if is_deleted(manifest)), None)


# ------------------------------------------------------------------------------------------------ not up yet

HOPELESS: frozenset[str] = frozenset(
    {
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
        "PreCreateHookError",
    }
)
"""Why a container waits when waiting longer within the same pod is of no use."""


def hopeless(pod: Manifest) -> Ending | None:
    """Why the containers of a bound pod will not come up; None while they may."""
    for container in (*(_status(pod).get("initContainerStatuses") or ()), *(_status(pod).get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = str(waiting.get("reason") or "")
        if reason in HOPELESS:
            return Ending(End.NOT_LAUNCHED, _told(pod, reason, waiting.get("message")))
    return None


def obstacle(pods: Iterable[Manifest], objects: Iterable[Manifest] = (), events: Iterable[Manifest] = ()) -> str:
    """Why a job is not admitted or bound, in the words of the object that says so most exactly: its queue's workload, its
    pod group, a pod, a warning about any of them."""
    for told in (_unadmitted(objects), _unscheduled(pods), _warning(events)):
        if told:
            return one_line(told)
    return "not admitted"


_WAITS: tuple[tuple[str, str, str, str], ...] = (
    # group, kind, condition, the status in which it tells why the object waits
    ("kueue.x-k8s.io", "Workload", "QuotaReserved", "False"),
    ("kueue.x-k8s.io", "Workload", "Admitted", "False"),
    ("scheduling.k8s.io", "PodGroup", "PodGroupInitiallyScheduled", "False"),
    ("scheduling.volcano.sh", "PodGroup", "Unschedulable", "True"),
    ("batch", "Job", "Failed", "True"),
    ("jobset.x-k8s.io", "JobSet", "Failed", "True"),
    ("trainer.kubeflow.org", "TrainJob", "Failed", "True"),
    ("batch", "Job", "Suspended", "True"),
    ("jobset.x-k8s.io", "JobSet", "Suspended", "True"),
    ("trainer.kubeflow.org", "TrainJob", "Suspended", "True"),
)


def _unadmitted(objects: Iterable[Manifest]) -> str:
    there = list(objects)
    for group, kind, name, status in _WAITS:
        for manifest in there:
            if manifest.get("kind") == kind and _group(manifest) == group:
                condition = _condition(manifest, name, status)
                if condition is not None and condition.get("message"):
                    return f"{kind} {_name(manifest)}: {condition['message']}"
    return ""


def _unscheduled(pods: Iterable[Manifest]) -> str:
    for pod in pods:
        condition = _condition(pod, "PodScheduled", "False")
        if condition is not None and (condition.get("message") or condition.get("reason")):
            return f"{condition.get('message') or condition.get('reason')}"
    return ""


def _warning(events: Iterable[Manifest]) -> str:
    """The latest warning; normal events tell of progress."""
    warnings = [event for event in events if event.get("type") == "Warning" and event.get("message")]
    latest = max(warnings, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""), default=None)
    return f"{latest.get('reason', '')}: {latest['message']}" if latest else ""


# ------------------------------------------------------------------------------------------------ small things


def _status(manifest: Manifest) -> Mapping[str, Any]:
    return manifest.get("status") or {}


def _name(manifest: Manifest) -> str:
    return str(manifest.get("metadata", {}).get("name", ""))


def _group(manifest: Manifest) -> str:
    group, slash, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    return group if slash else ""


def _condition(manifest: Manifest, name: str, status: str = "True") -> Mapping[str, Any] | None:
    for condition in _status(manifest).get("conditions") or ():
        if condition.get("type") == name and condition.get("status") == status:
            return condition  # type: ignore[no-any-return]
    return None


def _container(pod: Manifest) -> Mapping[str, Any] | None:
    """The status of the container that the job runs in; the first where none is called so."""
    statuses = _status(pod).get("containerStatuses") or ()
    return next((each for each in statuses if each.get("name") == CONTAINER), statuses[0] if statuses else None)


def _terminated(container: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return (container.get("state") or {}).get("terminated") if container else None


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None


def _told(pod: Manifest, reason: str, message: Any) -> str:
    text = str(message or "")
    if reason and reason not in text:
        text = f"{reason}: {text}" if text else reason
    return one_line(text or f"Pod {_name(pod)}")


def one_line(text: str) -> str:
    """In one line of bearable length."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 3] + "..."
