"""A controller with exactly the rights that container/kustomize gives: jobs of every kind, cordons, queues, no refusal."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from conftest import Kubectl

KUSTOMIZE = Path(__file__).resolve().parents[2] / "container" / "kustomize"
SLURMK = Path(sys.executable).with_name("slurmk")

KINDS = ("pods", "native", "native-job", "jobset", "trainjob", "volcano", "volcano-job")

SETTINGS = """
namespace: {namespace}
cluster: {namespace}
nodes: kubernetes.io/hostname in (cpu-01,cpu-02)
pods: {{image: any, admissionTimeout: 120, annotations: {{lab/runtime: 1s}}}}
accounts: {{root: {{GrpTRES: "cpu=16"}}}}
qos: {{high: {{priority: 100}}}}
partitions:
"""


def partitions() -> str:
    lines = [f"  {kind}: {{nodes: '', pods: {{kind: {kind}}}}}\n" for kind in KINDS]
    lines.append("  kueue: {nodes: '', pods: {kind: native-job, queueSystem: kueue}}\n")
    lines.append("  queue: {nodes: '', pods: {kind: volcano, queueSystem: volcano}}\n")
    return "".join(lines)


class Controller:
    """slurmk as that service account."""

    def __init__(self, directory: Path, kubeconfig: str) -> None:
        self.directory = directory
        self.kubeconfig = kubeconfig

    def run(self, program: str, *arguments: str, code: int | None = 0) -> str:
        place = ["--dir", str(self.directory / "d")]
        given = (
            [str(SLURMK), *arguments, *place] if program == "slurmk" else [str(self.directory / "d/bin" / program), *arguments]
        )
        done = subprocess.run(given, capture_output=True, text=True, cwd=self.directory, timeout=120, check=False)
        assert code is None or done.returncode == code, f"{given}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def log(self) -> str:
        return "".join(path.read_text() for path in sorted((self.directory / "d/log").iterdir()))

    def wait(self, holds: Callable[[], bool], seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, self.run("squeue", "-o", "%i %P %T %r") + self.log()[-3000:]
            time.sleep(0.3)


@pytest.fixture
def controller(kubectl: Kubectl, kubeconfig: str, namespace: str) -> Iterator[Controller]:
    directory = Path(tempfile.mkdtemp(prefix="slurmk-rights-"))
    suffix = f"-{secrets.token_hex(4)}"
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": namespace,
        "nameSuffix": suffix,
        "resources": [f"../..{KUSTOMIZE}/{name}.yaml" for name in ("reads", "jobs", "queues")],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    rendered = kubectl("kustomize", "--load-restrictor", "LoadRestrictionsNone", str(directory))
    kubectl("apply", "-f", "-", input=rendered)
    token = kubectl("-n", namespace, "create", "token", f"slurmk-controller{suffix}", "--duration", "3h").strip()
    config = yaml.safe_load(Path(kubeconfig).read_text())
    config["users"] = [{"name": "slurmk", "user": {"token": token}}]
    config["contexts"] = [{"name": "c", "context": {"cluster": config["clusters"][0]["name"], "user": "slurmk"}}]
    config["current-context"] = "c"
    (directory / "kubeconfig").write_text(json.dumps(config))
    (directory / "slurmk.yaml").write_text(SETTINGS.format(namespace=namespace) + partitions())
    made = Controller(directory, str(directory / "kubeconfig"))
    up = ("up", "--detach", "--kubernetes", str(directory / "slurmk.yaml"), "--kubeconfig", made.kubeconfig)
    try:
        made.run("slurmk", *up)
        yield made
    finally:
        made.run("slurmk", "down", "--jobs", code=None)
        kubectl("delete", "-f", "-", "--ignore-not-found", "--wait=false", input=rendered, check=False)
        shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.timeout(400)
def test_the_manifests_give_every_right_that_is_used(controller: Controller, kubectl: Kubectl, namespace: str) -> None:
    check = ("--kubernetes", str(controller.directory / "slurmk.yaml"), "--kubeconfig", controller.kubeconfig)
    said = subprocess.run([str(SLURMK), "config", "check", *check], capture_output=True, text=True, timeout=60, check=False)
    assert "may not" not in said.stdout + said.stderr, said.stdout + said.stderr
    controller.run("slurmk", "queues", "apply")
    jobs = {}
    for partition in (*KINDS, "kueue", "queue"):
        jobs[partition] = controller.run(
            "sbatch", "--parsable", "-p", partition, "-N", "2", "-n", "2", "--mem=64", "-t", "5", "-q", "high", "--wrap", "true"
        ).strip()
    cancelled = controller.run(
        "sbatch", "--parsable", "-p", "native", "-N2", "--mem=64", "--begin=now+1hour", "--wrap", "true"
    ).strip()
    controller.run("scancel", cancelled)
    controller.run("scontrol", "update", "NodeName=cpu-01", "State=DRAIN", "Reason=rights")
    controller.wait(lambda: "true" in kubectl("get", "node", "cpu-01", "-o", "jsonpath={.spec.unschedulable}"))
    controller.run("scontrol", "update", "NodeName=cpu-01", "State=RESUME")
    controller.wait(lambda: "true" not in kubectl("get", "node", "cpu-01", "-o", "jsonpath={.spec.unschedulable}"))
    ids = ",".join(jobs.values())
    controller.wait(lambda: not controller.run("squeue", "-h", "-j", ids, "-t", "PD,R,CF,CG"), 240)
    states = controller.run("sacct", "-X", "-n", "-P", "-j", ids, "-o", "Partition,State")
    assert set(states.split()) == {f"{partition}|COMPLETED" for partition in jobs}, states
    controller.wait(lambda: not kubectl("-n", namespace, "get", "pods,secrets", "-l", "slurmk.org/job-id", "-o", "name"))
    controller.run("slurmk", "queues", "delete")
    status = controller.run("slurmk", "status")
    assert "trouble" not in status, status
    assert "orbidden" not in controller.log(), controller.log()
