"""The workload kinds: the objects that hold a job's pods, and what keeps them together."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from rendering import UNEQUAL, job, pod_specs, rendered, share

from bridge.kubernetes.kinds import RENDERERS
from bridge.kubernetes.resources import resource_of
from bridge.kubernetes.settings import Kind, QueueSystem
from slurmk.model.job import GresShare

KUEUE_LABELS = {"kueue.x-k8s.io/queue-name": "physics", "kueue.x-k8s.io/max-exec-time-seconds": "600"}

EQUAL = (share("n1"), share("n2"))


def objects(kind: Kind, *shares: Any, **more: Any) -> list[dict[str, Any]]:
    return list(rendered(job(*shares), kind=kind, **more).objects)


def kinds_of(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in found]


def test_all_kinds_are_there() -> None:
    assert set(RENDERERS) == set(Kind)


def test_pods() -> None:
    found = objects(Kind.PODS, *UNEQUAL)
    assert kinds_of(found) == [("v1", "Pod", f"slurmk-42-n{number}") for number in range(3)]
    assert all("schedulingGroup" not in each["spec"] for each in found)


def test_native() -> None:
    group, *pods = objects(Kind.NATIVE, *UNEQUAL, priority_class="high")
    assert kinds_of([group]) == [("scheduling.k8s.io/v1beta1", "PodGroup", "slurmk-42")]
    assert group["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "disruptionMode": {"all": {}},
        "priorityClassName": "high",
    }
    assert [pod["spec"]["schedulingGroup"] for pod in pods] == [{"podGroupName": "slurmk-42"}] * 3
    assert {pod["spec"]["priorityClassName"] for pod in pods} == {"high"}


def test_a_gang_has_the_priority_of_its_pods() -> None:
    group, *pods = objects(Kind.NATIVE, *EQUAL, pod={"priorityClassName": "raw"})
    assert {pod["spec"]["priorityClassName"] for pod in pods} == {group["spec"]["priorityClassName"]} == {"raw"}


def test_a_gang_of_one_is_a_pod() -> None:
    [pod] = objects(Kind.NATIVE)
    assert pod["kind"] == "Pod"
    assert "schedulingGroup" not in pod["spec"]


def test_native_job() -> None:
    group, first, second = objects(Kind.NATIVE_JOB, *UNEQUAL)
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert kinds_of([first, second]) == [("batch/v1", "Job", "slurmk-42-g0"), ("batch/v1", "Job", "slurmk-42-g1")]
    for each, size in ((first, 2), (second, 1)):
        assert each["spec"]["completions"] == each["spec"]["parallelism"] == size
        assert each["spec"]["backoffLimitPerIndex"] == 0
        assert each["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": "slurmk-42"}
    [single] = objects(Kind.NATIVE_JOB)
    assert kinds_of([single]) == [("batch/v1", "Job", "slurmk-42")]
    assert "schedulingGroup" not in single["spec"]["template"]["spec"]


def test_jobset() -> None:
    [found] = objects(Kind.JOBSET, *UNEQUAL)
    assert kinds_of([found]) == [("jobset.x-k8s.io/v1alpha2", "JobSet", "slurmk-42")]
    spec = found["spec"]
    assert spec["failurePolicy"] == {"maxRestarts": 0}
    assert spec["network"] == {"enableDNSHostnames": False}
    assert [(each["name"], each["template"]["spec"]["completions"]) for each in spec["replicatedJobs"]] == [
        ("g0", 2),
        ("g1", 1),
    ]
    assert {each["template"]["spec"]["backoffLimitPerIndex"] for each in spec["replicatedJobs"]} == {0}


def test_trainjob() -> None:
    runtime, train = objects(Kind.TRAINJOB, *UNEQUAL)
    assert kinds_of([runtime, train]) == [
        ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", "slurmk-42"),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", "slurmk-42"),
    ]
    assert train["spec"]["runtimeRef"] == {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": "slurmk-42"}
    replicated = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert [(each["name"], each["replicas"], each["template"]["spec"]["completions"]) for each in replicated] == [
        ("g0", 1, 2),
        ("g1", 1, 1),
    ]


def test_volcano() -> None:
    gres = GresShare("gpu", "", 2)
    shares = (share("n1", 3, 512, gres), share("n2", 1, 256))
    group, *pods = objects(Kind.VOLCANO, *shares, queue={"scheduling.volcano.sh/queue-name": "physics"})
    assert kinds_of([group]) == [("scheduling.volcano.sh/v1beta1", "PodGroup", "slurmk-42")]
    assert group["spec"] == {
        "minMember": 2,
        "minResources": {"cpu": "4", "memory": "768Mi", "nvidia.com/gpu": "2"},
        "queue": "physics",
    }
    for pod in pods:
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "slurmk-42"
        assert pod["spec"]["schedulerName"] == "volcano"


def test_volcano_job() -> None:
    [found] = objects(Kind.VOLCANO_JOB, *UNEQUAL)
    assert kinds_of([found]) == [("batch.volcano.sh/v1alpha1", "Job", "slurmk-42")]
    spec = found["spec"]
    assert (spec["schedulerName"], spec["queue"], spec["minAvailable"]) == ("volcano", "default", 3)
    assert [(task["name"], task["replicas"], task["minAvailable"]) for task in spec["tasks"]] == [("g0", 2, 2), ("g1", 1, 1)]
    assert spec["policies"] == [{"event": "PodEvicted", "action": "TerminateJob"}]


def test_coscheduling() -> None:
    group, *pods = objects(Kind.COSCHEDULING, *EQUAL, admission_timeout=45.0)
    assert kinds_of([group]) == [("scheduling.x-k8s.io/v1alpha1", "PodGroup", "slurmk-42")]
    assert group["spec"] == {
        "minMember": 2,
        "minResources": {"cpu": "4", "memory": "1024Mi"},
        "scheduleTimeoutSeconds": 45,
    }
    for pod in pods:
        assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "slurmk-42"
        assert pod["spec"]["schedulerName"] == "scheduler-plugins-scheduler"


# ------------------------------------------------------------------------------------------------- Kueue


@pytest.mark.parametrize("kind", [Kind.PODS, Kind.NATIVE])
def test_kueue_takes_the_pods_of_a_job_as_one_group(kind: Kind) -> None:
    found = objects(kind, *UNEQUAL, queue_system=QueueSystem.KUEUE, queue=KUEUE_LABELS)
    pods = [each["metadata"] for each in found if each["kind"] == "Pod"]
    for each in pods:
        assert KUEUE_LABELS.items() <= each["labels"].items()
        assert each["labels"]["kueue.x-k8s.io/pod-group-name"] == "slurmk-42"
        assert each["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "3"
        assert each["annotations"]["kueue.x-k8s.io/retriable-in-group"] == "false"
    roles = [each["annotations"]["kueue.x-k8s.io/role-hash"] for each in pods]
    assert roles[0] == roles[1] != roles[2]


def test_kueue_takes_a_single_pod_as_it_is() -> None:
    [pod] = objects(Kind.PODS, queue_system=QueueSystem.KUEUE, queue=KUEUE_LABELS)
    assert KUEUE_LABELS.items() <= pod["metadata"]["labels"].items()
    assert "kueue.x-k8s.io/pod-group-name" not in pod["metadata"]["labels"]


@pytest.mark.parametrize("kind", [Kind.NATIVE_JOB, Kind.JOBSET, Kind.TRAINJOB])
def test_kueue_takes_the_object_that_makes_the_pods(kind: Kind) -> None:
    found = rendered(job(*EQUAL), kind=kind, queue_system=QueueSystem.KUEUE, queue=KUEUE_LABELS)
    top = found.objects[-1]
    assert KUEUE_LABELS.items() <= top["metadata"]["labels"].items()
    for other in found.objects[:-1]:
        assert not KUEUE_LABELS.keys() & other["metadata"]["labels"].keys()
    for _, metadata, _ in pod_specs(found):
        assert not KUEUE_LABELS.keys() & metadata["labels"].keys()


def test_kueue_takes_the_pods_of_several_jobs_as_one_group() -> None:
    found = rendered(job(*UNEQUAL), kind=Kind.NATIVE_JOB, queue_system=QueueSystem.KUEUE, queue=KUEUE_LABELS)
    for each in found.objects:
        assert not KUEUE_LABELS.keys() & each["metadata"]["labels"].keys()
    for _, metadata, _ in pod_specs(found):
        assert metadata["labels"]["kueue.x-k8s.io/pod-group-name"] == "slurmk-42"
        assert metadata["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "3"


@pytest.mark.parametrize("kind", Kind)
def test_without_kueue_nothing_is_said_to_it(kind: Kind) -> None:
    found = rendered(job(*UNEQUAL), kind=kind, queue=KUEUE_LABELS)
    assert "kueue.x-k8s.io/" not in str(found.objects)


# ------------------------------------------------------------------------------------------------- schemas


@cache
def _schemas(folder: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The schemas of custom resources by (apiVersion, kind)."""
    found = {}
    for path in Path(folder).rglob("*.yaml"):
        for document in yaml.load_all(path.read_bytes(), yaml.CSafeLoader):
            if not document or document.get("kind") != "CustomResourceDefinition":
                continue
            spec = document["spec"]
            for version in spec["versions"]:
                key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                found[key] = _closed(version["schema"]["openAPIV3Schema"])
    return found


def _closed(schema: Any) -> Any:
    """A structural schema under which an unknown field is an error, where the API server would drop it without a word."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    described = schema.get("type") == "object" and isinstance(schema.get("properties"), dict)
    if described and "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        closed["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        closed.pop("type", None)
    return closed


CUSTOM = (Kind.JOBSET, Kind.TRAINJOB, Kind.VOLCANO, Kind.VOLCANO_JOB, Kind.COSCHEDULING)


@pytest.mark.parametrize("shares", [UNEQUAL, EQUAL, EQUAL[:1]], ids=["unequal", "equal", "one"])
@pytest.mark.parametrize("kind", CUSTOM)
def test_objects_are_as_their_schemas_say(kind: Kind, shares: Any) -> None:
    folder = os.environ.get("SLURMK_CRDS", "")
    if not os.path.isdir(folder):
        pytest.skip("needs the projects' CustomResourceDefinitions: SLURMK_CRDS=FOLDER")
    checked = 0
    gpu = GresShare("gpu", "", 2)
    given = [share(each.node, each.cpus, each.memory, gpu) for each in shares]
    for each in objects(kind, *given, priority_class="high", runtime_class="x", queue={"a": "b"}):
        schema = _schemas(folder).get((each["apiVersion"], each["kind"]))
        if schema is not None:
            metadata = dict(schema["properties"], metadata={"type": "object"})
            jsonschema.Draft202012Validator({**schema, "properties": metadata}).validate(each)
            checked += 1
        resource_of(each)
    assert checked
