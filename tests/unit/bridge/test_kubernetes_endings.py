"""How Kubernetes' word on pods and their owners becomes the ending of a job. The objects are as a real cluster writes them."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.kubernetes.endings import (
    LONGEST_MESSAGE,
    End,
    Stage,
    ending_of_objects,
    ending_of_pod,
    hopeless,
    is_simulated,
    leaving,
    obstacle,
    stage_of,
)
from bridge.kubernetes.resources import Manifest


def pod(phase: str = "Running", *, node: str = "cpu-01", deleted: str = "", **status: Any) -> Manifest:
    metadata: dict[str, Any] = {"name": "slurmk-1-n0", "namespace": "slurmk", "uid": "u1"}
    if deleted:
        metadata |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30}
    spec = {"nodeName": node} if node else {}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, **status}}


def terminated(code: int, reason: str = "Error", at: str = "2026-11-30T10:00:00Z", **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": "job",
            "containerID": "containerd://x",
            "state": {"terminated": {"exitCode": code, "reason": reason, "finishedAt": at, **more}},
        }
    ]


def waiting(reason: str, message: str = "") -> list[dict[str, Any]]:
    return [{"name": "job", "state": {"waiting": {"reason": reason, "message": message}}}]


def disrupted(reason: str, message: str = "", kind: str = "DisruptionTarget") -> list[dict[str, Any]]:
    return [{"type": kind, "status": "True", "reason": reason, "message": message}]


def test_stages() -> None:
    assert stage_of(pod("Pending", node="")) is Stage.UNBOUND
    assert stage_of(pod("Pending")) is Stage.BOUND
    assert stage_of(pod("Running")) is Stage.RUNNING
    assert stage_of(pod("Unknown")) is Stage.BOUND
    assert stage_of(pod("Failed", node="")) is Stage.ENDED
    assert stage_of({"metadata": {}}) is Stage.UNBOUND


def test_a_container_without_an_id_is_simulated() -> None:
    running = {"name": "job", "state": {"running": {}}}
    assert is_simulated(pod("Running", containerStatuses=[running]))
    assert not is_simulated(pod("Running", containerStatuses=[{**running, "containerID": "containerd://x"}]))
    assert not is_simulated(pod("Pending", containerStatuses=[running]))
    assert not is_simulated(pod("Running"))


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_what_lives_has_no_ending(phase: str) -> None:
    assert ending_of_pod(pod(phase)) is None
    assert ending_of_pod(pod(phase, conditions=disrupted("PreemptionByScheduler"))) is None  # may be withdrawn again


EVICTED_BY_NODE = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi."
OVER_ITS_LIMIT = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "

ENDINGS: list[tuple[str, Manifest, End, int, str]] = [
    ("success", pod("Succeeded", containerStatuses=terminated(0, "Completed")), End.EXITED, 0, ""),
    ("exit code", pod("Failed", containerStatuses=terminated(3)), End.EXITED, 3 << 8, ""),
    ("as a shell shows a signal", pod("Failed", containerStatuses=terminated(137)), End.EXITED, 137 << 8, ""),
    ("without container status", pod("Failed"), End.EXITED, 1 << 8, ""),
    ("memory", pod("Failed", containerStatuses=terminated(137, "OOMKilled")), End.OUT_OF_MEMORY, 9, ""),
    (
        "deadline",
        pod("Failed", reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline"),
        End.TIME_LIMIT,
        0,
        "DeadlineExceeded: Pod was active on the node longer than the specified deadline",
    ),
    (
        "node pressure",
        pod("Failed", reason="Evicted", message=EVICTED_BY_NODE, conditions=disrupted("TerminationByKubelet", EVICTED_BY_NODE)),
        End.PREEMPTED,
        0,
        f"Evicted: {EVICTED_BY_NODE}",
    ),
    (
        "its own limit",
        pod("Failed", reason="Evicted", message=OVER_ITS_LIMIT, conditions=disrupted("TerminationByKubelet", OVER_ITS_LIMIT)),
        End.EXITED,
        1 << 8,
        f"Evicted: {OVER_ITS_LIMIT.strip()}",
    ),
    (
        "critical pod",
        pod("Failed", reason="Preempting", message="Preempted in order to admit critical pod"),
        End.PREEMPTED,
        0,
        "Preempting: Preempted in order to admit critical pod",
    ),
    (
        "node shuts down",
        pod(
            "Failed",
            reason="Terminated",
            message="Pod was terminated in response to imminent node shutdown.",
            conditions=disrupted("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown."),
        ),
        End.NODE_FAILED,
        0,
        "Terminated: Pod was terminated in response to imminent node shutdown.",
    ),
    (
        "kubelet without a reason of the pod",
        pod("Failed", conditions=disrupted("TerminationByKubelet", "why")),
        End.PREEMPTED,
        0,
        "why",
    ),
    (
        "scheduler",
        pod(deleted="2026-11-30T10:00:30Z", conditions=disrupted("PreemptionByScheduler", "default-scheduler: preempting")),
        End.PREEMPTED,
        0,
        "PreemptionByScheduler: default-scheduler: preempting",
    ),
    (
        "eviction",
        pod(deleted="2026-11-30T10:00:30Z", conditions=disrupted("EvictionByEvictionAPI", "Eviction API: evicting")),
        End.PREEMPTED,
        0,
        "EvictionByEvictionAPI: Eviction API: evicting",
    ),
    (
        "preempted, whatever it exits with",
        pod(
            "Failed",
            deleted="2026-11-30T10:00:30Z",
            conditions=disrupted("PreemptionByScheduler"),
            containerStatuses=terminated(143),
        ),
        End.PREEMPTED,
        0,
        "PreemptionByScheduler",
    ),
    ("a reason of tomorrow", pod("Failed", conditions=disrupted("ByTheMoon")), End.PREEMPTED, 0, "ByTheMoon"),
    (
        "taint",
        pod(deleted="2026-11-30T10:00:30Z", conditions=disrupted("DeletionByTaintManager", "Taint manager: deleting")),
        End.NODE_FAILED,
        0,
        "DeletionByTaintManager: Taint manager: deleting",
    ),
    (
        "node object gone",
        pod("Failed", conditions=disrupted("DeletionByPodGC", "PodGC: node no longer exists")),
        End.NODE_FAILED,
        0,
        "DeletionByPodGC: PodGC: node no longer exists",
    ),
    ("node lost", pod("Failed", reason="NodeLost"), End.NODE_FAILED, 0, "NodeLost"),
    (
        "state unknown",
        pod("Failed", containerStatuses=terminated(137, "ContainerStatusUnknown")),
        End.NODE_FAILED,
        137 << 8,
        "",
    ),
    (
        "no room at the kubelet",
        pod("Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu"),
        End.NOT_LAUNCHED,
        0,
        "OutOfcpu: Node didn't have enough resource: cpu",
    ),
    (
        "devices",
        pod("Failed", reason="UnexpectedAdmissionError", message="Allocate failed due to no devices"),
        End.NOT_LAUNCHED,
        0,
        "UnexpectedAdmissionError: Allocate failed due to no devices",
    ),
    ("node affinity", pod("Failed", reason="NodeAffinity"), End.NOT_LAUNCHED, 0, "NodeAffinity"),
    (
        "no such program",
        pod("Failed", containerStatuses=terminated(128, "StartError", message='exec: "/bin/sh": no such file')),
        End.NOT_LAUNCHED,
        0,
        'exec: "/bin/sh": no such file',
    ),
    (
        "init container",
        pod(
            "Failed",
            initContainerStatuses=[
                {"name": "slurmk-hosts", "state": {"terminated": {"exitCode": 2, "message": "no\n shell "}}}
            ],
            containerStatuses=waiting("PodInitializing"),
        ),
        End.NOT_LAUNCHED,
        0,
        "no shell",
    ),
    ("deleted while it ran", pod(deleted="2026-11-30T10:00:30Z"), End.DELETED, 0, "Pod slurmk-1-n0 was deleted"),
    (
        "ended by its deletion",
        pod("Failed", deleted="2026-11-30T10:00:30Z", containerStatuses=terminated(143, at="2026-11-30T10:00:01Z")),
        End.DELETED,
        0,
        "Pod slurmk-1-n0 was deleted",
    ),
    (
        "ended before its deletion",
        pod("Failed", deleted="2026-11-30T10:00:30Z", containerStatuses=terminated(3, at="2026-11-30T09:59:59Z")),
        End.EXITED,
        3 << 8,
        "",
    ),
    (
        "succeeded, then deleted",
        pod("Succeeded", deleted="2026-11-30T10:00:30Z", containerStatuses=terminated(0, at="2026-11-30T10:00:00Z")),
        End.EXITED,
        0,
        "",
    ),
    (
        "stopped by Kueue",
        pod(
            deleted="2026-11-30T10:00:30Z",
            conditions=disrupted("WorkloadEvicted", "Preempted to accommodate", "TerminationTarget"),
        ),
        End.DELETED,
        0,
        "Preempted to accommodate",
    ),
]


@pytest.mark.parametrize(("manifest", "end", "code", "message"), [row[1:] for row in ENDINGS], ids=[row[0] for row in ENDINGS])
def test_endings_of_pods(manifest: Manifest, end: End, code: int, message: str) -> None:
    ending = ending_of_pod(manifest)
    assert ending is not None
    assert (ending.end, ending.exit_code, ending.message) == (end, code, message)


def test_what_is_wrong_with_the_image_itself_is_not_tried_again() -> None:
    ending = ending_of_pod(pod("Failed", containerStatuses=terminated(128, "ContainerCannotRun")))
    assert ending is not None
    assert not ending.retry
    ending = ending_of_pod(pod("Failed", reason="OutOfmemory"))
    assert ending is not None
    assert ending.retry


def test_vanished_pods() -> None:
    for seen in (pod("Running"), pod("Pending", node="")):
        ending = ending_of_pod(seen, vanished=True)
        assert ending is not None
        assert ending.end is End.DELETED
    ended = ending_of_pod(pod("Failed", containerStatuses=terminated(3)), vanished=True)
    assert ended is not None
    assert (ended.end, ended.exit_code) == (End.EXITED, 3 << 8)


def owner(api: str, kind: str, *conditions: dict[str, Any], **more: Any) -> Manifest:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "w"}, "status": {"conditions": list(conditions)}, **more}


def condition(name: str, reason: str, message: str = "", status: str = "True") -> dict[str, Any]:
    return {"type": name, "status": status, "reason": reason, "message": message}


KUEUE, JOB = "kueue.x-k8s.io/v1beta2", "batch/v1"


@pytest.mark.parametrize(
    ("manifest", "end", "message"),
    [
        (owner(KUEUE, "Workload", condition("Evicted", "Preempted", "for w2")), End.PREEMPTED, "Workload w: for w2"),
        (
            owner(KUEUE, "Workload", condition("Evicted", "ClusterQueueStopped")),
            End.PREEMPTED,
            "Workload w: ClusterQueueStopped",
        ),
        (owner(KUEUE, "Workload", condition("Evicted", "NodeFailures", "x")), End.NODE_FAILED, "Workload w: x"),
        (
            owner(KUEUE, "Workload", condition("Evicted", "DeactivatedDueToMaximumExecutionTimeExceeded", "late")),
            End.TIME_LIMIT,
            "Workload w: late",
        ),
        (owner(JOB, "Job", condition("Failed", "DeadlineExceeded", "late")), End.TIME_LIMIT, "Job w: late"),
        (owner(JOB, "Job", condition("Suspended", "JobSuspended", "Job suspended")), End.PREEMPTED, "Job w: Job suspended"),
        (owner("jobset.x-k8s.io/v1alpha2", "JobSet", condition("Suspended", "S", "s")), End.PREEMPTED, "JobSet w: s"),
        (owner("trainer.kubeflow.org/v1alpha1", "TrainJob", condition("Suspended", "S", "s")), End.PREEMPTED, "TrainJob w: s"),
        (
            owner("batch.volcano.sh/v1alpha1", "Job", status={"state": {"phase": "Aborted", "message": "by command"}}),
            End.DELETED,
            "Job w: by command",
        ),
        (
            owner("batch.volcano.sh/v1alpha1", "Job", status={"state": {"phase": "Restarting"}}),
            End.PREEMPTED,
            "Job w: Restarting",
        ),
    ],
)
def test_endings_of_other_objects(manifest: Manifest, end: End, message: str) -> None:
    ending = ending_of_objects([owner(JOB, "Secret"), manifest])
    assert ending is not None
    assert (ending.end, ending.message) == (end, message)


@pytest.mark.parametrize(
    "manifest",
    [
        owner(KUEUE, "Workload", condition("Evicted", "Preempted", status="False")),
        owner(JOB, "Job", condition("Failed", "BackoffLimitExceeded")),
        owner(JOB, "Job", condition("Suspended", "JobResumed", status="False")),
        owner("example.com/v1", "Job", condition("Suspended", "x")),
        owner("batch.volcano.sh/v1alpha1", "Job", status={"state": {"phase": "Running"}}),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "w"}},
    ],
)
def test_other_objects_that_tell_no_ending(manifest: Manifest) -> None:
    assert ending_of_objects([manifest]) is None


def test_what_is_on_its_way_out() -> None:
    going = {"kind": "Job", "metadata": {"name": "w", "deletionTimestamp": "2026-11-30T10:00:30Z"}}
    assert leaving([owner(JOB, "Job"), going]) is going
    assert leaving([owner(JOB, "Job")]) is None


@pytest.mark.parametrize(
    "reason", ["ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CrashLoopBackOff"]
)
def test_containers_that_will_not_come_up(reason: str) -> None:
    for where in ("containerStatuses", "initContainerStatuses"):
        manifest = pod("Pending")
        manifest["status"][where] = waiting(reason, "no such image")
        ending = hopeless(manifest)
        assert ending is not None
        assert (ending.end, ending.message, ending.retry) == (End.NOT_LAUNCHED, f"{reason}: no such image", True)


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", "ErrImagePull"])
def test_containers_that_may_still_come_up(reason: str) -> None:
    assert hopeless(pod("Pending", containerStatuses=waiting(reason))) is None
    assert hopeless(pod("Running", containerStatuses=[{"name": "job", "state": {"running": {}}}])) is None


UNSCHEDULABLE = pod(
    "Pending", node="", conditions=[condition("PodScheduled", "Unschedulable", "0/16 nodes are available", "False")]
)
WARNINGS = [
    {"type": "Warning", "reason": "Old", "message": "before", "lastTimestamp": "2026-11-30T10:00:00Z"},
    {"type": "Warning", "reason": "FailedCreate", "message": "exceeded quota", "lastTimestamp": "2026-11-30T10:00:01Z"},
    {"type": "Normal", "reason": "Fine", "message": "all well", "lastTimestamp": "2026-11-30T10:00:02Z"},
]


def test_obstacles() -> None:
    workload = owner(KUEUE, "Workload", condition("QuotaReserved", "Pending", "insufficient quota", "False"))
    group = owner(
        "scheduling.k8s.io/v1beta1", "PodGroup", condition("PodGroupInitiallyScheduled", "Unschedulable", "no room", "False")
    )
    assert obstacle([UNSCHEDULABLE], [group, workload], WARNINGS) == "Workload w: insufficient quota"
    assert obstacle([UNSCHEDULABLE], [group], WARNINGS) == "PodGroup w: no room"
    assert obstacle([UNSCHEDULABLE], [], WARNINGS) == "0/16 nodes are available"
    assert obstacle([pod("Pending", node="")], [], WARNINGS) == "FailedCreate: exceeded quota"
    assert obstacle([], [], []) == "not admitted"
    held = owner(JOB, "Job", condition("Suspended", "JobSuspended", "Job suspended"))
    assert obstacle([], [held], []) == "Job w: Job suspended"
    assert obstacle([], [held, workload], []) == "Workload w: insufficient quota"


def test_messages_are_one_bearable_line() -> None:
    text = obstacle([], [], [{"type": "Warning", "reason": "R", "message": "a\n\tb " + "x" * 1000}])
    assert text.startswith("R: a b xxx")
    assert len(text) == LONGEST_MESSAGE
