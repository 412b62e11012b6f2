"""Ways to a real cluster, and what slurmk config check says of it: a service account with and without rights, a token that a
plugin gives, a pod's own account."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bridge.kubernetes.api import Api, ApiError
from bridge.kubernetes.resources import CONFIG_MAP, NODE
from bridge.kubernetes.settings import Settings

Kubectl = Callable[..., str]

RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: slurmk}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: [""], resources: [pods], verbs: [create, get, patch, delete, deletecollection]}
- {apiGroups: [""], resources: [secrets], verbs: [create, get, list, delete, deletecollection]}
- {apiGroups: [""], resources: [configmaps], verbs: [create, list, delete]}
- {apiGroups: [""], resources: [events], verbs: [list]}
- {apiGroups: [scheduling.k8s.io], resources: [podgroups], verbs: [create, get, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: slurmk}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: slurmk}
subjects: [{kind: ServiceAccount, name: slurmk}]
"""


@pytest.fixture
def token(kubectl: Kubectl, namespace: str) -> str:
    """A token of a service account without rights."""
    kubectl("-n", namespace, "create", "serviceaccount", "slurmk")
    return kubectl("-n", namespace, "create", "token", "slurmk").strip()


def cluster_of(kubeconfig: str) -> dict[str, str]:
    """Address and certificate authority."""
    found: dict[str, str] = yaml.safe_load(Path(kubeconfig).read_text())["clusters"][0]["cluster"]
    return found


def authority(cluster: dict[str, str]) -> bytes:
    if "certificate-authority-data" in cluster:
        return base64.b64decode(cluster["certificate-authority-data"])
    return Path(cluster["certificate-authority"]).read_bytes()


def written(folder: Path, kubeconfig: str, user: object) -> str:
    """A kubeconfig of that user."""
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    cluster = {"name": "c", "cluster": cluster_of(kubeconfig)}
    config = {"current-context": "c", "contexts": [context], "clusters": [cluster], "users": [{"name": "u", "user": user}]}
    path = folder / "kubeconfig"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    return str(path)


def check(settings: Path, kubeconfig: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slurmk.client.slurmk", "config", "check", "--kubernetes", str(settings)]
    return subprocess.run([*command, "--kubeconfig", kubeconfig], capture_output=True, text=True, timeout=60, check=False)


def test_the_administrator_may_do_everything(tmp_path: Path, kubeconfig: str, namespace: str) -> None:
    file = tmp_path / "slurmk.yaml"
    file.write_text(f"namespace: {namespace}\npods: {{image: 'debian:12'}}\npartitions: {{cpu: {{nodes: lab/pool=cpu}}}}\n")
    done = check(file, kubeconfig)
    assert done.stderr == ""
    assert done.returncode == 0
    assert "Kubernetes v1." in done.stdout


def test_what_is_not_there_is_told(tmp_path: Path, kubeconfig: str, namespace: str) -> None:
    file = tmp_path / "slurmk.yaml"
    file.write_text(f"namespace: {namespace}\npods:\n  image: a\n  kind: coscheduling\n  runtimeClass: no-such\n")
    done = check(file, kubeconfig)
    assert f"{file}:5: pods.runtimeClass: there is no RuntimeClass no-such\n" in done.stderr
    assert done.returncode == 1


def test_missing_rights_are_told_and_given_ones_are_enough(
    tmp_path: Path, kubeconfig: str, namespace: str, token: str, kubectl: Kubectl
) -> None:
    file = tmp_path / "slurmk.yaml"
    file.write_text(f"namespace: {namespace}\npods: {{image: 'debian:12'}}\n")
    own = written(tmp_path, kubeconfig, {"token": token})
    before = check(file, own)
    for wanted in ("create pods", "create leases.coordination.k8s.io", "delete podgroups.scheduling.k8s.io", "list secrets"):
        assert f"slurmk may not {wanted} in {namespace}\n" in before.stderr
    assert "slurmk may not watch nodes\n" in before.stderr
    assert before.returncode == 1
    kubectl("-n", namespace, "apply", "-f", "-", input=RIGHTS)
    after = check(file, own)
    assert f"in {namespace}\n" not in after.stderr
    assert "slurmk may not watch nodes\n" in after.stderr  # takes a ClusterRole


def test_a_plugin_gives_the_token(tmp_path: Path, kubeconfig: str, namespace: str, token: str) -> None:
    plugin = tmp_path / "plugin"
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
    plugin.write_text(f"#!/bin/sh\necho x >>{tmp_path}/calls\ncat <<'EOF'\n{json.dumps(credential)}\nEOF\n")
    plugin.chmod(0o755)
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    own = written(tmp_path, kubeconfig, {"exec": command})

    async def run() -> None:
        api = await Api.connect(Settings(kubeconfig=own))
        with pytest.raises(ApiError, match=f"system:serviceaccount:{namespace}:slurmk") as caught:
            await api.list(NODE)
        assert caught.value.forbidden
        await api.close()

    asyncio.run(run())
    assert (tmp_path / "calls").read_text() == "x\n"


def test_a_pods_own_account_is_used_where_there_is_no_kubeconfig(
    tmp_path: Path, kubeconfig: str, namespace: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = cluster_of(kubeconfig)
    host, _, port = cluster["server"].removeprefix("https://").partition(":")
    (tmp_path / "ca.crt").write_bytes(authority(cluster))
    (tmp_path / "token").write_text(token)
    monkeypatch.setattr("kubernetes.aio.config.incluster_config.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr("kubernetes.aio.config.incluster_config.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    async def run() -> None:
        api = await Api.connect(Settings())
        with pytest.raises(ApiError, match=f"system:serviceaccount:{namespace}:slurmk"):
            await api.list(CONFIG_MAP, namespace)
        await api.close()

    asyncio.run(run())


def test_a_certificate_of_another_authority_is_told(tmp_path: Path, kubeconfig: str) -> None:
    cluster = {key: value for key, value in cluster_of(kubeconfig).items() if not key.startswith("certificate-authority")}
    config = yaml.safe_load(Path(written(tmp_path, kubeconfig, {"token": "x"})).read_text())
    config["clusters"][0]["cluster"] = cluster
    (tmp_path / "kubeconfig").write_text(json.dumps(config))

    async def run() -> str:
        try:
            await Api.connect(Settings(kubeconfig=str(tmp_path / "kubeconfig")))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    text = asyncio.run(asyncio.wait_for(run(), 5))
    assert text.startswith(f"AccessError: {cluster['server']}: ")
    assert "certificate" in text
