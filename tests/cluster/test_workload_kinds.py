"""Every workload kind on a real API server, with its real controllers: jobs of unequal shares run, end and leave nothing.

Pods on simulated nodes run nothing: how long they last and how they end is said in annotations of theirs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bridge.kubernetes import labels
from bridge.kubernetes.gres import NO_SLICES, read_slices
from bridge.kubernetes.render import Context, Workload, render, slurm_node
from bridge.kubernetes.resources import RESOURCES, Manifest
from bridge.kubernetes.settings import GresSource, Kind, PodSettings, QueueSystem, Settings
from bridge.kubernetes.templating import Templates
from slurmk.model.job import Allocation, Credentials, GresShare, Job, JobFiles, JobRequest, NodeShare
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site

FILES = JobFiles(b"#!/bin/sh\n", (), {b"HOME": b"/home/alice"}, b"s" * 32)
pytestmark = pytest.mark.timeout(300)

WITHOUT_GANG = (Kind.PODS, Kind.JOBSET, Kind.TRAINJOB)
"""Kinds whose pods are admitted together by their queue system only."""

KUEUE = (Kind.PODS, Kind.NATIVE, Kind.NATIVE_JOB, Kind.JOBSET, Kind.TRAINJOB)
NEEDS = {
    Kind.JOBSET: "jobsets.jobset.x-k8s.io",
    Kind.TRAINJOB: "trainjobs.trainer.kubeflow.org",
    Kind.VOLCANO: "podgroups.scheduling.volcano.sh",
    Kind.VOLCANO_JOB: "jobs.batch.volcano.sh",
    Kind.COSCHEDULING: "podgroups.scheduling.x-k8s.io",
}

Kubectl = Callable[..., str]


class Lab:
    """Renders jobs onto three simulated nodes, which Slurm knows as n1 to n3, and looks at what becomes of them.

    Each kind has a job of its own, so that all kinds go through the same at the same time."""

    def __init__(self, kubectl: Kubectl, namespace: str, hosts: list[Manifest], kinds: tuple[Kind, ...]) -> None:
        self.kubectl = kubectl
        self.namespace = namespace
        self.kinds = kinds
        self.nodes = {f"n{number}": host for number, host in enumerate(hosts, 1)}
        names = tuple(self.nodes)
        self.site = Site("kinds", tuple(Node(name) for name in names), (Partition("main", names),), kill_wait=5)
        self.queue: dict[str, str] = {}
        self.gres: dict[str, GresShare] = {}
        self.sources = Settings().gres
        self.slices = NO_SLICES

    def render(self, kind: Kind, *cpus: int, runtime: str = "1s", exit_code: int = 0, **pods: Any) -> Workload:
        given = {node: (gres,) for node, gres in self.gres.items()}
        shares = tuple(
            NodeShare(node, count, 64, count, given.get(node, ())) for node, count in zip(self.nodes, cpus, strict=False)
        )
        who = Credentials(1000, 1000, "alice", "alice", (1000,))
        allocation = Allocation("main", shares)
        job = Job(job_id(kind), JobRequest(), who, 0, name="train", account="physics", time_limit=10, allocation=allocation)
        annotations = {"lab/runtime": runtime, **({"lab/exit-code": str(exit_code)} if exit_code else {})}
        own = PodSettings(image="any", kind=kind, namespace=self.namespace, annotations=annotations, **pods)
        context = Context("10.0.0.1:6817", self.nodes, Templates(), lambda *_: own, lambda *_: self.queue, slices=self.slices)
        return render(job, FILES, self.site, Settings(gres=self.sources), context)

    def start(self, *cpus: int, **more: Any) -> dict[Kind, Workload]:
        """A job of each kind."""
        found = {kind: self.render(kind, *cpus, **more) for kind in self.kinds}
        for each in found.values():
            made = json.loads(self.kubectl("create", "-o", "json", "-f", "-", input=json.dumps(each.secret)))
            for one in each.owned(made["metadata"]["uid"]):
                self.create(one)
        return found

    def create(self, manifest: Manifest, *options: str) -> None:
        """Make an object. Webhooks may take a while to see the TrainingRuntime that a TrainJob names."""
        name, end = manifest["metadata"]["name"], time.monotonic() + 30
        while manifest["kind"] == "TrainJob" and time.monotonic() < end:
            given = json.dumps(manifest)
            if self.kubectl("create", "--dry-run=server", "-o", "name", "-f", "-", input=given, check=False).endswith(
                f"/{name}\n"
            ):
                break
        self.kubectl("create", *options, "-f", "-", input=json.dumps(manifest))

    def get(self, what: str, *arguments: str) -> list[Manifest]:
        found = json.loads(self.kubectl("get", what, "-n", self.namespace, "-o", "json", *arguments))
        return list(found["items"])

    def all(self, what: str) -> list[Manifest]:
        """Objects of no namespace."""
        return list(json.loads(self.kubectl("get", what, "-o", "json"))["items"])

    def pods(self) -> dict[Kind, list[Manifest]]:
        """By the kind of their job, in the order of their names."""
        found: dict[Kind, list[Manifest]] = {kind: [] for kind in self.kinds}
        for each in self.get("pods", "-l", labels.selector("kinds")):
            found[kind_of(each)].append(each)
        return found

    def wait(self, true: Callable[[], bool], seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, "\n".join(_told(each) for found in self.pods().values() for each in found)
            time.sleep(0.3)

    def wait_for(self, *phases: str) -> dict[Kind, list[Manifest]]:
        """Until the pods of every kind are in these phases."""
        self.wait(lambda: all(phases_of(found) == sorted(phases) for found in self.pods().values()))
        return self.pods()


def job_id(kind: Kind) -> int:
    return 100 + list(Kind).index(kind)


def kind_of(manifest: Manifest) -> Kind:
    return list(Kind)[int(manifest["metadata"]["labels"][labels.JOB_ID]) - 100]


def phases_of(pods: list[Manifest]) -> list[str]:
    return sorted(each["status"].get("phase", "") for each in pods)


def uids(pods: dict[Kind, list[Manifest]]) -> dict[Kind, set[str]]:
    return {kind: {each["metadata"]["uid"] for each in found} for kind, found in pods.items()}


def _told(pod: Manifest) -> str:
    status = {key: value for key, value in pod["status"].items() if key in ("phase", "reason", "message", "conditions")}
    return f"{pod['metadata']['name']} on {pod['spec'].get('nodeName')}: {status}"


@pytest.fixture
def lab(kubectl: Kubectl, get: Callable[..., Any], namespace: str) -> Lab:
    hosts = [each for pool in ("cpu", "gpu") for each in get("nodes", "-l", f"lab/kind=simulated,lab/pool={pool}")["items"][:4]]
    if len(hosts) < 5:
        pytest.skip("needs simulated nodes (lab/kind=simulated) of both pools")
    there = kubectl("api-resources", "-o", "name").split()
    return Lab(kubectl, namespace, hosts[2:5], tuple(kind for kind in Kind if kind not in NEEDS or NEEDS[kind] in there))


@pytest.mark.parametrize("kind", Kind)
def test_the_api_server_takes_every_field(lab: Lab, kind: Kind) -> None:
    if kind not in lab.kinds:
        pytest.skip(f"needs {NEEDS[kind]} in the cluster")
    for each in lab.render(kind, 3, 3, 1).objects:
        lab.create(each, "--dry-run=server", "--validate=strict")
        if each["kind"] == "TrainingRuntime":  # without which no TrainJob is taken
            lab.create(each)


def test_unequal_shares_run_on_their_nodes_and_end(lab: Lab) -> None:
    lab.start(3, 3, 1)
    for kind, pods in lab.wait_for("Succeeded", "Succeeded", "Succeeded").items():
        assert {slurm_node(each) for each in pods} == set(lab.nodes), kind
        for each in pods:
            assert each["spec"]["nodeName"] == lab.nodes[slurm_node(each)]["metadata"]["name"]
            assert each["status"]["qosClass"] == "Guaranteed"
        cpus = {slurm_node(each): each["spec"]["containers"][0]["resources"]["requests"]["cpu"] for each in pods}
        assert cpus == {"n1": "3", "n2": "3", "n3": "1"}, kind


def test_one_node(lab: Lab) -> None:
    lab.start(2)
    for kind, [pod] in lab.wait_for("Succeeded").items():
        assert slurm_node(pod) == "n1", kind


def test_what_failed_is_not_started_again(lab: Lab) -> None:
    lab.start(2, 2, 2, exit_code=3)  # alike, because JobSet ends the other groups when one has failed
    before = lab.wait_for("Failed", "Failed", "Failed")
    for pods in before.values():
        codes = [each["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for each in pods]
        assert codes == [3, 3, 3]
    time.sleep(15)  # longer than the first back-off of the Job controller
    for kind, after in uids(lab.pods()).items():
        assert after <= uids(before)[kind], kind


def test_a_failed_pod_does_not_end_the_others(lab: Lab) -> None:
    lab.start(3, 3, runtime="600s")
    for first, _ in lab.wait_for("Running", "Running").values():
        lab.kubectl("annotate", "pod", first["metadata"]["name"], "-n", lab.namespace, "lab/finish=1")
    lab.wait_for("Failed", "Running")
    time.sleep(5)
    lab.wait_for("Failed", "Running")


def test_a_deleted_pod_does_not_come_back(lab: Lab) -> None:
    lab.start(3, 3, 1, runtime="600s")
    before = lab.wait_for("Running", "Running", "Running")
    for first, *_ in before.values():
        lab.kubectl("delete", "pod", "-n", lab.namespace, first["metadata"]["name"], "--wait=false")
    lab.wait(lambda: all(len(each) < 3 for each in lab.pods().values()))
    time.sleep(15)
    for kind, after in uids(lab.pods()).items():
        assert after < uids(before)[kind], kind


def test_nothing_starts_before_all_fit(lab: Lab) -> None:
    lab.kinds = tuple(kind for kind in lab.kinds if kind not in WITHOUT_GANG)
    lab.start(3, 1000, runtime="600s")
    lab.wait(lambda: all(len(found) == 2 for kind, found in lab.pods().items() if kind is not Kind.VOLCANO_JOB))
    time.sleep(5)
    for kind, pods in lab.pods().items():
        assert [each["spec"]["nodeName"] for each in pods if "nodeName" in each["spec"]] == [], kind


def test_with_its_secret_goes_everything(lab: Lab) -> None:
    found = lab.start(3, 3, 1, runtime="600s")
    lab.wait_for("Running", "Running", "Running")
    lab.kubectl("delete", "secret", "-n", lab.namespace, *(each.name for each in found.values()))
    kinds = [str(each) for each in RESOURCES if each.namespaced and each.kind not in ("Event", "ConfigMap", "ServiceAccount")]
    there = set(lab.kubectl("api-resources", "-o", "name", "--namespaced").split())
    left = ",".join(each for each in kinds if each in there)
    lab.wait(lambda: lab.get(left) == [])


@pytest.fixture
def devices(lab: Lab) -> Iterator[GresSource]:
    """Two kinds of devices on n3, of a driver that nobody runs: kube-scheduler gives them all the same."""
    name = f"{lab.namespace}.example.com"
    host = lab.nodes["n3"]["metadata"]["name"]
    models = [{"name": f"d{number}", "attributes": {"model": {"string": model}}} for number, model in enumerate("AABB")]
    pool = {"name": host, "generation": 1, "resourceSliceCount": 1}
    chosen = {"cel": {"expression": f'device.driver == "{name}"'}}
    made = {
        "DeviceClass": {"selectors": [chosen]},
        "ResourceSlice": {"driver": name, "nodeName": host, "pool": pool, "devices": models},
    }
    for kind, spec in made.items():
        each = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        lab.kubectl("create", "-f", "-", input=json.dumps(each))
    yield GresSource("gpu", device_class=name, type_label=f"{name}/model")
    lab.kubectl("delete", f"deviceclass/{name}", f"resourceslice/{name}", "--wait=false")


def test_devices_come_by_claims(lab: Lab, devices: GresSource) -> None:
    lab.slices = read_slices(lab.all("resourceslices"))
    lab.kinds = tuple(kind for kind in lab.kinds if kind in (Kind.PODS, Kind.JOBSET))
    lab.gres = {"n3": GresShare("gpu", "b", 1)}
    lab.sources = (devices,)
    lab.start(1, 1, 1, runtime="600s")
    lab.wait_for("Running", "Running", "Running")
    claims = lab.get("resourceclaims")
    given = [each["status"]["allocation"]["devices"]["results"] for each in claims]
    assert sorted(result["device"] for results in given for result in results) == ["d2", "d3"]


@pytest.mark.parametrize("user", [0, 1000])
def test_pods_of_users_are_restricted(lab: Lab, user: int) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    lab.kubectl("label", "namespace", lab.namespace, label)
    found = lab.render(Kind.PODS, 1)
    pod = json.loads(json.dumps(found.objects[0]))
    if not user:
        pod["spec"]["securityContext"]["runAsUser"] = 0
    said = lab.kubectl("create", "--dry-run=server", "-o", "name", "-f", "-", input=json.dumps(pod), check=False)
    assert bool(said) == bool(user)


# ------------------------------------------------------------------------------------------------- Kueue


@pytest.fixture
def kueue(lab: Lab) -> Iterator[Lab]:
    """The same with a queue that has room for 40 CPUs."""
    if "localqueues.kueue.x-k8s.io" not in lab.kubectl("api-resources", "-o", "name").split():
        pytest.skip("needs Kueue in the cluster")
    name = lab.namespace
    quota = [{"name": "cpu", "nominalQuota": 40}, {"name": "memory", "nominalQuota": "1Ti"}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": name, "resources": quota}]}
    spec: dict[str, dict[str, Any]] = {
        "ResourceFlavor": {},
        "ClusterQueue": {"namespaceSelector": {}, "resourceGroups": [group]},
        "LocalQueue": {"clusterQueue": name},
    }
    for kind, each in spec.items():
        metadata = {"name": name, **({"namespace": name} if kind == "LocalQueue" else {})}
        made = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": each}
        lab.kubectl("create", "-f", "-", input=json.dumps(made))
    lab.queue = {"kueue.x-k8s.io/queue-name": name}
    lab.kinds = tuple(kind for kind in lab.kinds if kind in KUEUE)
    yield lab
    lab.kubectl("delete", "clusterqueue.kueue.x-k8s.io", name, "--wait=false")
    lab.kubectl("delete", "resourceflavor.kueue.x-k8s.io", name, "--wait=false")


def test_kueue_admits_each_job_as_one_workload(kueue: Lab) -> None:
    found = kueue.start(3, 3, 1, queue_system=QueueSystem.KUEUE)
    for kind, pods in kueue.wait_for("Succeeded", "Succeeded", "Succeeded").items():
        assert {slurm_node(each) for each in pods} == set(kueue.nodes), kind
    workloads = kueue.get("workloads.kueue.x-k8s.io")
    assert len(workloads) == len(kueue.kinds)
    assert {each["status"]["admission"]["clusterQueue"] for each in workloads} == {kueue.namespace}
    kueue.kubectl("delete", "secret", "-n", kueue.namespace, *(each.name for each in found.values()))
    kueue.wait(lambda: kueue.get("pods,workloads.kueue.x-k8s.io") == [])


def test_kueue_admits_all_of_a_job_or_nothing(kueue: Lab) -> None:
    kueue.start(24, 24, 1, queue_system=QueueSystem.KUEUE)
    kueue.wait(lambda: len(kueue.get("workloads.kueue.x-k8s.io")) == len(kueue.kinds))
    time.sleep(5)
    for each in kueue.get("workloads.kueue.x-k8s.io"):
        assert "admission" not in each.get("status", {}), each["metadata"]["name"]
    assert [each for pods in kueue.pods().values() for each in pods if "nodeName" in each["spec"]] == []
