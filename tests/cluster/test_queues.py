"""Queues of Kueue and Volcano on a real cluster: made, used, shared with others, and taken away again.

Each test has a cluster of slurmk of its own, whose name all cluster-wide objects begin with, on some of the simulated nodes.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))
from embedded import SLURMK, Cluster, wait_for

Get = Callable[..., Any]
Kubectl = Callable[..., str]

HOSTS = ("cpu-05", "cpu-06", "cpu-07", "cpu-08", "gpu-03", "gpu-04", "gpu-05", "gpu-06")
"""Of the simulated nodes: 32 CPUs each, and 8 CPUs with 8 GPUs each; their racks are cpu-r2, gpu-r1 and gpu-r2."""

SETTINGS = """
cluster: {name}
lease: {name}
namespace: {namespace}
nodes: "kubernetes.io/hostname in ({hosts})"
controller: 127.0.0.1
listen: 127.0.0.1:0
leaseSeconds: 3
pods: {{image: any, kind: {kind}, queueSystem: {system}, annotations: {{lab/runtime: 600s}}}}
partitions: {partitions}
switches: [lab/block, lab/rack]
accounts:
  physics: {{fairshare: 2, GrpTRES: "cpu=64"}}
  theory: {{parent: physics}}
  chem: {{GrpTRES: "gres/gpu=8"}}
qos:
  high: {{priority: 1000}}
"""

PARTITIONS = '{cpu: {nodes: "lab/pool=cpu", default: true}, gpu: {nodes: "lab/pool=gpu"}}'

KINDS = ("pods", "native", "native-job", "jobset", "trainjob")
"""Workload kinds that Kueue can hold back."""

KUEUE_KINDS = (
    "topologies.kueue.x-k8s.io,resourceflavors.kueue.x-k8s.io,workloadpriorityclasses.kueue.x-k8s.io,cohorts.kueue.x-k8s.io,"
    "clusterqueues.kueue.x-k8s.io,localqueues.kueue.x-k8s.io"
)
VOLCANO_KINDS = "queues.scheduling.volcano.sh,hypernodes.topology.volcano.sh,priorityclasses.scheduling.k8s.io"


@dataclass
class Queued:
    """A cluster of slurmk whose jobs go through a queue system."""

    cluster: Cluster
    name: str
    namespace: str
    get: Get

    def queues(self, words: str) -> tuple[int, str]:
        """``slurmk queues``: exit code and text."""
        done = self.cluster.run(f"{SLURMK} queues {words} --dir {self.cluster.directory}")
        return done.returncode, done.stdout + done.stderr

    def apply(self) -> None:
        """``slurmk queues apply``, until Kueue has taken notice."""
        code, text = self.queues("apply")
        assert code == 0, text

        def active() -> bool:
            queues = self.get("clusterqueues", "-l", f"slurmk.org/controller={self.name}")["items"]
            told = [each.get("status", {}).get("conditions", []) for each in queues]
            return all(any(each["type"] == "Active" and each["status"] == "True" for each in each_told) for each_told in told)

        wait_for(active, 60)

    def made(self, kinds: str) -> set[str]:
        """KIND/NAME of what bears our labels."""
        labels = f"app.kubernetes.io/managed-by=slurmk,slurmk.org/controller={self.name}"
        found = self.get(kinds, "-A", "-l", labels)["items"]
        return {f"{each['kind']}/{each['metadata']['name']}" for each in found}

    def submit(self, arguments: str) -> int:
        return int(self.cluster.submit(f"--mem=1G -t 5 {arguments} --wrap 'sleep 600'"))

    def reason(self, job: int) -> str:
        """Why the job waits, as squeue tells it."""
        return str(self.cluster.ok(f"squeue -h -j {job} -o %r"))

    def wait_reason(self, job: int, reason: str) -> None:
        wait_for(lambda: self.reason(job) == reason, tell=lambda: f"{job}: {self.reason(job)}")

    def submit_waiting(self, arguments: str, reason: str) -> int:
        """A job that waits with this reason. The controller hears of what was changed in Kubernetes a moment later than we do:
        a job that it tried to start before that is submitted again."""
        told = []
        for _ in range(5):
            job = self.submit(arguments)
            try:
                wait_for(lambda: self.reason(job) == reason, seconds=5)  # noqa: B023
                return job
            except AssertionError:
                told.append(self.reason(job))
                self.cluster.ok(f"scancel {job}")
        raise AssertionError(f"{reason!r} was expected, not {told}")

    def wait_running(self, job: int) -> None:
        self.cluster.wait_state(job, "RUNNING", seconds=60)


@pytest.fixture
def start(kubectl: Kubectl, get: Get, namespace: str) -> Iterator[Callable[..., Queued]]:
    """``start("kueue", "native")``: a cluster whose jobs go through that queue system as that kind of workload."""
    made: list[Queued] = []

    def begin(system: str, kind: str, partitions: str = PARTITIONS) -> Queued:
        root = Path(tempfile.mkdtemp(prefix="slurmk-"))
        root.chmod(0o755)
        (root / "work").mkdir()
        name = f"q{secrets.token_hex(3)}"
        hosts = ",".join(HOSTS)
        settings = SETTINGS.format(name=name, namespace=namespace, hosts=hosts, kind=kind, system=system, partitions=partitions)
        (root / "slurmk.yaml").write_text(settings)
        cluster = Cluster(root / "d", root / "work", options=("--kubernetes", str(root / "slurmk.yaml")))
        made.append(Queued(cluster, name, namespace, get))
        cluster.up()
        return made[-1]

    yield begin
    for each in made:
        if each.cluster.environment:
            each.cluster.run("scancel -u root")
            each.queues("delete")
        each.cluster.down()
        shutil.rmtree(each.cluster.directory.parent, ignore_errors=True)
        for kinds in (KUEUE_KINDS, VOLCANO_KINDS):
            wait_for(lambda each=each, kinds=kinds: not _made_if_served(each, kinds), 60)


def _made_if_served(queued: Queued, kinds: str) -> set[str]:
    try:
        return queued.made(kinds)
    except AssertionError:
        return set()


@pytest.fixture
def kueue(get: Get, start: Callable[..., Queued]) -> Queued:
    needs(get, "clusterqueues.kueue.x-k8s.io")
    return start("kueue", "native")


def needs(get: Get, resource: str) -> None:
    try:
        get("crd", resource)
    except AssertionError:
        pytest.skip(f"needs {resource}")


def somebody(namespace: str, queue: str, pods: int, cpus: int) -> str:
    """A Job of somebody else's in a queue of Kueue."""
    resources = {"cpu": str(cpus), "memory": "1Gi"}
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": {"lab/rack": "cpu-r2"},
        "containers": [{"name": "main", "image": "any", "resources": {"requests": resources, "limits": resources}}],
    }
    template = {"metadata": {"annotations": {"lab/runtime": "600s"}}, "spec": pod}
    metadata = {"name": "somebody", "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": queue}}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


# ------------------------------------------------------------------------------------------ Kueue


def test_queues_are_shown_made_mended_and_taken_away(kueue: Queued, kubectl: Kubectl, get: Get) -> None:
    name = kueue.name
    other = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": f"{name}-gpu"},
        "spec": {"nodeLabels": {"somebody": "else"}},
    }
    kubectl("apply", "-f", "-", input=json.dumps(other))
    try:
        code, text = kueue.queues("diff")
        assert code == 2
        assert f"refused ResourceFlavor {name}-gpu\n    it exists and was not made by this cluster of slurmk" in text
        assert kueue.made(KUEUE_KINDS) == set()
    finally:
        kubectl("delete", "resourceflavor", f"{name}-gpu")
    code, text = kueue.queues("diff")
    assert code == 1
    assert f"create ClusterQueue {name}-theory" in text
    code, text = kueue.queues("apply")
    assert code == 0, text
    assert kueue.queues("diff") == (0, "slurmk: the queues are as they should be\n")
    assert kueue.made(KUEUE_KINDS) == {
        f"Topology/{name}",
        f"ResourceFlavor/{name}-cpu",
        f"ResourceFlavor/{name}-gpu",
        f"WorkloadPriorityClass/{name}-high",
        f"Cohort/{name}",
        f"Cohort/{name}-physics",
        *(f"{kind}/{each}" for kind in ("ClusterQueue", "LocalQueue") for each in queue_names(name)),
    }

    # what others add stays; what they change of ours is shown, and taken back only when that is asked for
    kubectl("annotate", "clusterqueue", f"{name}-chem", "somebody/note=kept")
    kubectl("patch", "clusterqueue", f"{name}-chem", "--type=merge", "-p", '{"spec": {"queueingStrategy": "StrictFIFO"}}')
    code, text = kueue.queues("diff")
    assert code == 2
    assert "conflict" in text.lower()
    code, text = kueue.queues("diff --force")
    assert code == 1
    assert "-  queueingStrategy: StrictFIFO" in text
    assert "+  queueingStrategy: BestEffortFIFO" in text
    assert kueue.queues("apply --force")[0] == 0
    queue = get("clusterqueue", f"{name}-chem")
    assert queue["spec"]["queueingStrategy"] == "BestEffortFIFO"
    assert queue["metadata"]["annotations"] == {"somebody/note": "kept"}

    # deleting takes ours alone
    own = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "own", "namespace": kueue.namespace},
        "spec": {"clusterQueue": f"{name}-chem"},
    }
    kubectl("apply", "-f", "-", input=json.dumps(own))
    code, text = kueue.queues("delete")
    assert code == 0, text
    wait_for(lambda: not kueue.made(KUEUE_KINDS))
    assert get("localqueue", "own", "-n", kueue.namespace)["metadata"]["name"] == "own"
    assert kueue.queues("delete") == (0, "slurmk: there were no queues\n")


def queue_names(name: str) -> tuple[str, ...]:
    return name, f"{name}-physics", f"{name}-theory", f"{name}-chem"


def test_jobs_go_through_their_accounts_queue_with_their_qos_priority(kueue: Queued, get: Get) -> None:
    early = kueue.submit("-A chem")
    kueue.wait_reason(early, f"AssocGrpJobsLimit, LocalQueue {kueue.namespace}/{kueue.name}-chem does not exist")
    kueue.apply()
    kueue.wait_running(early)
    job = kueue.submit("-A theory --qos=high -N2 -n6")
    kueue.wait_running(job)
    workload = get("workload.kueue.x-k8s.io", f"slurmk-{job}", "-n", kueue.namespace)
    assert workload["spec"]["queueName"] == f"{kueue.name}-theory"
    assert workload["spec"]["priority"] == 1000
    assert workload["spec"]["priorityClassRef"]["name"] == f"{kueue.name}-high"
    assert workload["spec"]["maximumExecutionTimeSeconds"] > 300
    admission = workload["status"]["admission"]
    assert admission["clusterQueue"] == f"{kueue.name}-theory"
    assert {each["flavors"]["cpu"] for each in admission["podSetAssignments"]} == {f"{kueue.name}-cpu"}
    used = sum(int(each["resourceUsage"]["cpu"]) for each in admission["podSetAssignments"])
    assert used == 6
    kueue.cluster.ok(f"scancel {job} {early}")


def test_each_kind_is_admitted_to_its_own_partitions_flavor(get: Get, start: Callable[..., Queued]) -> None:
    for resource in ("clusterqueues.kueue.x-k8s.io", "jobsets.jobset.x-k8s.io", "trainjobs.trainer.kubeflow.org"):
        needs(get, resource)
    selectors = {kind: "" if kind == "pods" else "lab/pool=cpu" for kind in KINDS}  # which labels alone do not tell apart
    partitions = {kind: {"nodes": selector, "pods": {"kind": kind}} for kind, selector in selectors.items()}
    queued = start("kueue", "native", json.dumps(partitions))
    queued.apply()
    jobs = {(kind, tasks): queued.submit(f"-A chem -p {kind} -N2 -n{tasks}") for kind in KINDS for tasks in (2, 3)}
    for job in jobs.values():
        queued.wait_running(job)
    admitted: dict[int, set[str]] = {}
    for workload in get("workloads.kueue.x-k8s.io", "-n", queued.namespace)["items"]:
        job = int(workload["metadata"]["ownerReferences"][0]["name"].split("-")[1])  # slurmk-JOB or slurmk-JOB-n0
        for assignment in workload["status"]["admission"]["podSetAssignments"]:
            admitted.setdefault(job, set()).add(assignment["flavors"]["cpu"])
    assert admitted == {job: {f"{queued.name}-{kind}"} for (kind, _), job in jobs.items()}


def test_a_job_waits_while_others_use_the_quota(kueue: Queued, kubectl: Kubectl, get: Get) -> None:
    kueue.apply()
    kubectl("apply", "-f", "-", input=somebody(kueue.namespace, f"{kueue.name}-theory", 3, 16))

    def admitted() -> bool:
        items = get("workloads.kueue.x-k8s.io", "-n", kueue.namespace)["items"]
        return any("admission" in each.get("status", {}) for each in items)

    wait_for(admitted, 90)
    fits = kueue.submit("-A theory -n 10")
    kueue.wait_running(fits)
    waits = kueue.submit("-A theory -n 20")
    kueue.wait_reason(waits, f"AssocGrpCpuLimit, Cohort {kueue.name}-physics ({kueue.name}-cpu) has 6 of 64 cpu free")
    other = kueue.submit("-A chem -n 20")
    kueue.wait_running(other)
    assert kueue.cluster.state(waits) == "PENDING"
    workloads = get("workloads.kueue.x-k8s.io", "-n", kueue.namespace)["items"]
    assert not [each for each in workloads if f"slurmk-{waits}" in each["metadata"]["name"]]
    kubectl("delete", "job", "somebody", "-n", kueue.namespace)
    kueue.wait_running(waits)


def test_limits_of_accounts_hold_over_all_partitions(kueue: Queued) -> None:
    kueue.apply()
    first = kueue.submit("-A chem -p gpu -N2 --gpus-per-node=4")
    kueue.wait_running(first)
    second = kueue.submit("-A chem -p gpu -N1 --gpus-per-node=1")
    kueue.wait_reason(second, "AssocGrpGRES, account chem has 0 of 8 gpu free")
    assert kueue.cluster.ok(f"squeue -h -j {second} --start -o %S") != "N/A"
    kueue.cluster.ok(f"scancel {first}")
    kueue.wait_running(second)


def test_a_stopped_queue_starts_nothing(kueue: Queued, kubectl: Kubectl) -> None:
    kueue.apply()
    queue = f"{kueue.name}-chem"
    kubectl("patch", "clusterqueue", queue, "--type=merge", "-p", '{"spec": {"stopPolicy": "Hold"}}')
    job = kueue.submit_waiting("-A chem", f"AssocGrpJobsLimit, ClusterQueue {queue} is stopped")
    kubectl("patch", "clusterqueue", queue, "--type=merge", "-p", '{"spec": {"stopPolicy": "None"}}')
    kueue.wait_running(job)


def test_two_clusters_do_not_touch_each_other(get: Get, start: Callable[..., Queued]) -> None:
    needs(get, "clusterqueues.kueue.x-k8s.io")
    one, other = start("kueue", "native"), start("kueue", "native")
    assert one.queues("apply")[0] == other.queues("apply")[0] == 0
    before = other.made(KUEUE_KINDS)
    assert before
    assert one.queues("delete")[0] == 0
    wait_for(lambda: not one.made(KUEUE_KINDS))
    assert other.made(KUEUE_KINDS) == before
    assert other.queues("diff")[0] == 0


def test_switches_keep_a_job_in_one_rack(kueue: Queued, get: Get) -> None:
    kueue.apply()
    levels = get("topology.kueue.x-k8s.io", kueue.name)["spec"]["levels"]
    assert [level["nodeLabel"] for level in levels] == ["lab/block", "lab/rack", "kubernetes.io/hostname"]
    jobs = [kueue.submit("-p gpu -N2 --switches=1 --exclusive") for _ in range(2)]
    for job in jobs:
        kueue.wait_running(job)
    assert sorted(kueue.cluster.field(job, "NodeList") for job in jobs) == ["gpu-[03-04]", "gpu-[05-06]"]


# ------------------------------------------------------------------------------------------ Volcano


def test_volcano_queues_hold_jobs_to_their_capability(
    kubectl: Kubectl, get: Get, start: Callable[..., Queued], namespace: str
) -> None:
    needs(get, "queues.scheduling.volcano.sh")
    volcano = start("volcano", "volcano")
    name = volcano.name
    early = volcano.submit("-A theory")
    volcano.wait_reason(early, f"AssocGrpJobsLimit, Queue {name}-theory does not exist")
    assert volcano.queues("apply")[0] == 0
    assert volcano.queues("diff") == (0, "slurmk: the queues are as they should be\n")
    volcano.wait_running(early)
    group = get("podgroups.scheduling.volcano.sh", f"slurmk-{early}", "-n", namespace)
    assert group["spec"]["queue"] == f"{name}-theory"
    nodes = get("hypernode", f"{name}-gpu-r2")["spec"]
    assert [each["selector"]["exactMatch"]["name"] for each in nodes["members"]] == ["gpu-05", "gpu-06"]
    assert get("hypernode", f"{name}-gpu-b1")["spec"]["tier"] == 2
    urgent = volcano.submit("-A theory --qos=high")
    volcano.wait_running(urgent)
    assert get("pod", f"slurmk-{urgent}-n0", "-n", namespace)["spec"]["priority"] == 1000
    volcano.cluster.ok(f"scancel {early} {urgent}")

    resources = {"cpu": "20", "memory": "1Gi"}
    container = {"name": "main", "image": "any", "resources": {"requests": resources, "limits": resources}}
    pod = {"restartPolicy": "Never", "nodeSelector": {"lab/rack": "cpu-r2"}, "containers": [container]}
    template = {"metadata": {"annotations": {"lab/runtime": "600s"}}, "spec": pod}
    spec = {
        "schedulerName": "volcano",
        "queue": f"{name}-physics.jobs",
        "minAvailable": 2,
        "tasks": [{"name": "main", "replicas": 2, "template": template}],
    }
    metadata = {"name": "somebody", "namespace": namespace}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}
    kubectl("apply", "-f", "-", input=json.dumps(job))
    somebody = "jobs.batch.volcano.sh"
    wait_for(lambda: get(somebody, "somebody", "-n", namespace).get("status", {}).get("running") == 2, 60)
    waits = volcano.submit("-A theory -n 30")
    volcano.wait_reason(waits, f"AssocGrpCpuLimit, Queue {name}-physics has 24 of 64 cpu free")
    fits = volcano.submit("-A theory -n 24")
    volcano.wait_running(fits)
    volcano.cluster.ok(f"scancel {fits}")
    kubectl("delete", somebody, "somebody", "-n", namespace)
    volcano.wait_running(waits)
    volcano.cluster.ok(f"scancel {waits}")
    wait_for(lambda: not get("pods", "-n", namespace)["items"], 60)
    code, text = volcano.queues("delete")
    assert code == 0, text
    wait_for(lambda: not volcano.made(VOLCANO_KINDS))


# ------------------------------------------------------------------------------------------ namespaces


def test_a_namespaces_quota_is_a_limit(kubectl: Kubectl, get: Get, start: Callable[..., Queued], namespace: str) -> None:
    kubectl("create", "quota", "most", "--hard=requests.cpu=10", "-n", namespace)
    plain = start("none", "native")
    resources = {"requests": {"cpu": "6", "memory": "1Gi"}}
    container = {"name": "main", "image": "any", "resources": resources}
    spec = {"nodeSelector": {"lab/rack": "cpu-r2"}, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "somebody", "namespace": namespace}, "spec": spec}
    kubectl("apply", "-f", "-", input=json.dumps(pod))
    waits = plain.submit_waiting("-n 8", f"AssocGrpCpuLimit, ResourceQuota {namespace}/most has 4 of 10 cpu free")
    fits = plain.submit("-n 4")
    plain.wait_running(fits)
    plain.cluster.ok(f"scancel {fits}")
    kubectl("delete", "pod", "somebody", "-n", namespace, "--wait=false")
    plain.wait_running(waits)
