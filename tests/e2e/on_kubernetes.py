"""The same clusters on a real Kubernetes: the site of ``tests/e2e/site`` on the lab's real nodes, whose pods are processes.

With ``SLURMK_E2E=kubernetes`` the tests' clusters are these. KUBECONFIG names the cluster and ``SLURMK_LAB=1`` says that it may
be used so; nodes labelled ``lab/kind=real`` share this machine's file system, so that jobs find the tests' directories.
``SLURMK_E2E_IMAGE`` and ``SLURMK_E2E_ADDRESS`` are the jobs' image and this machine's address for pods, where they are not the
lab's. The site's eight nodes are spread over the real ones (NodeHostname), and one of its CPUs is little of theirs.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import time
from pathlib import Path

import pytest

CHOSEN = os.environ.get("SLURMK_E2E") == "kubernetes"

SITE = Path(__file__).parent / "site"

GPU = "slurmk.test/gpu"
"""The extended resource that stands for the site's GPUs; there are no devices behind it."""

COLLECTED_SECONDS = 20.0
"""How long Kubernetes' garbage collector may take for what goes with a deleted object."""

SETTINGS = """
namespace: {namespace}
controller: {address}
leaseSeconds: 3
gres:
- {{name: gpu, resource: {gpu}, type: a100}}
pods:
  kind: {kind}
  image: {image}
  imagePullPolicy: Never
  cpuRequest: 20m
  tolerations:
  - {{key: lab/real, operator: Exists}}
  pod:
    containers:
    - name: job  # a CPU of the tests' site is a fiftieth of a real one, which would be slow as a limit
      resources: {{limits: {{cpu: null}}}}
"""

VOLUMES = """
  volumes:
  - {{name: work, hostPath: {{path: {work}}}, mountPath: {work}}}
"""


def embedded_only(reason: str) -> pytest.MarkDecorator:
    """For tests that are about the embedded cluster itself; ``reason`` says what in them is."""
    return pytest.mark.skipif(CHOSEN, reason=f"on Kubernetes: {reason}")


def kubectl(*arguments: str) -> str:
    """Its output; it must succeed."""
    done = subprocess.run(["kubectl", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def options_for(root: Path, more: str = "", level: str = "privileged", slurm: str = "") -> tuple[str, ...]:
    """Write the configuration of a cluster below ``root`` and prepare Kubernetes for it; what ``slurmk up`` is then given.

    ``more`` goes to the end of slurmk.yaml, ``slurm`` to that of slurm.conf, with ROOT for ``root``. ``level`` is the Pod
    Security level of the jobs' namespace: only at ``privileged`` can they have the tests' directories."""
    if os.environ.get("SLURMK_LAB") != "1" or not os.environ.get("KUBECONFIG") or shutil.which("kubectl") is None:
        pytest.skip("needs a Kubernetes to use: KUBECONFIG, SLURMK_LAB=1 and kubectl")
    real = sorted(kubectl("get", "nodes", "-l", "lab/kind=real", "-o", "name").replace("node/", "").split())
    if len(real) < 2:
        pytest.skip("needs two real nodes (lab/kind=real)")
    for node in real:
        patch = json.dumps({"status": {"capacity": {GPU: "16"}}})
        kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", patch)
    name = f"e2e-{secrets.token_hex(4)}"
    kubectl("create", "namespace", f"slurmk-{name}")
    kubectl("label", "namespace", f"slurmk-{name}", f"pod-security.kubernetes.io/enforce={level}")
    configuration = root / "conf"
    shutil.copytree(SITE, configuration)
    text = (configuration / "slurm.conf").read_text() + slurm.replace("ROOT", str(root))
    (configuration / "slurm.conf").write_text(spread(text, real).replace("ClusterName=e2e", f"ClusterName={name}"))
    settings = SETTINGS.format(
        namespace=f"slurmk-{name}",
        address=os.environ.get("SLURMK_E2E_ADDRESS", "10.244.0.1"),
        image=os.environ.get("SLURMK_E2E_IMAGE", "localhost/debian:12"),
        kind=os.environ.get("SLURMK_E2E_KIND", "native"),
        gpu=GPU,
    )
    if level == "privileged":
        settings += VOLUMES.format(work=root)
    (configuration / "slurmk.yaml").write_text(settings + more)
    return ("--conf", str(configuration), "--kubernetes", str(configuration / "slurmk.yaml"))


def spread(text: str, hosts: list[str]) -> str:
    """The slurm.conf with its nodes on those hosts in turn, each with an eighth of its memory."""
    lines = []
    for line in text.splitlines():
        found = re.match(r"NodeName=n\[(\d+)-(\d+)\] (.*)", line)
        if found is None:
            lines.append(line)
            continue
        rest = re.sub(r"RealMemory=(\d+)", lambda memory: f"RealMemory={int(memory[1]) // 8}", found[3])
        for number in range(int(found[1]), int(found[2]) + 1):
            lines.append(f"NodeName=n{number} NodeHostname={hosts[number % len(hosts)]} {rest}")
    return "\n".join(lines) + "\n"


def namespace_of(root: Path) -> str:
    """Where the jobs of the cluster below ``root`` are."""
    found = re.search(r"^namespace: (\S+)$", (root / "conf" / "slurmk.yaml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


KINDS = "pods,secrets,jobs.batch,podgroups.v1beta1.scheduling.k8s.io,resourceclaims,resourceclaimtemplates"


def remains(root: Path) -> list[str]:
    """What slurmk has left in the jobs' namespace, apart from the programs that all jobs share."""
    found = kubectl("get", KINDS, "-n", namespace_of(root), "-l", "app.kubernetes.io/managed-by=slurmk", "-o", "name")
    return found.split()


def clean(root: Path) -> None:
    """Take away what ``options_for`` made in Kubernetes, once the cluster was brought down; nothing else may be there."""
    end = time.monotonic() + COLLECTED_SECONDS
    while (left := remains(root)) and time.monotonic() < end:
        time.sleep(0.5)
    kubectl("delete", "namespace", namespace_of(root), "--wait=false")
    assert not left, f"slurmk left {left}"
