"""A real Kubernetes API server for the tests: the one that KUBECONFIG names, with simulated nodes and perhaps real ones.

``SLURMK_LAB`` must be set to 1 too, so that nobody's tests run on a cluster that merely is the current one. These tests make
namespaces of their own and remove them; they expect nodes labelled ``lab/kind=simulated`` (and ``lab/kind=real``).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Kubectl = Callable[..., str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything below this folder needs the cluster."""
    for item in items:
        if "/tests/cluster/" in str(item.path):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def kubeconfig() -> str:
    """The path of the kubeconfig."""
    path = os.environ.get("KUBECONFIG", "")
    if os.environ.get("SLURMK_LAB") != "1" or not os.path.isfile(path):
        pytest.skip("needs a Kubernetes to hurt: KUBECONFIG, and SLURMK_LAB=1")
    return path


@pytest.fixture(scope="session")
def kubectl(kubeconfig: str) -> Kubectl:
    """``kubectl("get", "nodes", input=None)``: its standard output; it must succeed unless ``check`` is false."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("needs kubectl on PATH")

    def run(*arguments: str, input: str | None = None, check: bool = True) -> str:
        done = subprocess.run([program, *arguments], input=input, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0 or not check, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def get(kubectl: Kubectl) -> Callable[..., Any]:
    """``get("nodes", "-l", "lab/kind=real")``: what kubectl get shows, as values."""
    return lambda *arguments: json.loads(kubectl("get", *arguments, "-o", "json"))


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"slurmk-test-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def real_nodes(get: Callable[..., Any]) -> list[str]:
    """Names of the nodes whose pods are real processes."""
    nodes = get("nodes", "-l", "lab/kind=real")["items"]
    if not nodes:
        pytest.skip("needs real nodes (lab/kind=real)")
    return [node["metadata"]["name"] for node in nodes]
