"""What slurmk config check finds missing in a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from fake_kubernetes import FakeKubernetes, fake_kubernetes, status

from bridge.kubernetes.checks import KIND_OBJECTS, QUEUE_OBJECTS, check_cluster
from bridge.kubernetes.resources import NAMESPACE, NODE, PRIORITY_CLASS, SECRET
from bridge.kubernetes.settings import Kind, QueueSystem
from bridge.kubernetes.settings_file import SettingsFile

FILE = """namespace: slurmk
pods:
  image: debian:12
  kind: {kind}
  imagePullSecrets: [registry]
  priorityClass: batch
  volumes:
  - {{name: data, persistentVolumeClaim: {{claimName: data}}, mountPath: /data}}
  - {{name: extra, configMap: {{name: extra, optional: true}}, mountPath: /extra}}
partitions:
  cpu: {{nodes: pool=cpu}}
  gpu:
    nodes: pool=gpu
    pods:
      namespace: jobs
      runtimeClass: nvidia
      queueSystem: {queue_system}
switches: [rack]
"""


def findings(folder: Path, forbidden: str = "", kind: str = "pods", queue_system: str = "none", text: str = FILE) -> list[str]:
    file = SettingsFile(text.format(kind=kind, queue_system=queue_system), "slurmk.yaml")

    async def run() -> list[str]:
        async with fake_kubernetes(folder) as (server, api, _):
            prepare(server)
            for word in forbidden.split():
                verb, _, plural = word.partition(":")
                server.forbidden.add((verb, plural))
            return [f"{finding.severity.value}: {finding.text}" for finding in await check_cluster(api, file)]

    return asyncio.run(run())


def prepare(server: FakeKubernetes) -> None:
    """A cluster that has some of it."""
    server.put(NAMESPACE, {"metadata": {"name": "slurmk"}})
    server.put(SECRET, {"metadata": {"name": "registry", "namespace": "slurmk"}})
    server.put(PRIORITY_CLASS, {"metadata": {"name": "batch"}})
    labels = {"pool": "cpu", "rack": "r1"}
    server.put(NODE, {"metadata": {"name": "n1", "labels": labels}, "status": {"allocatable": {"cpu": "4"}}})


def test_what_is_missing_is_told_with_its_line(tmp_path: Path) -> None:
    assert findings(tmp_path) == [
        "error: slurmk.yaml:8: pods.volumes[0]: there is no PersistentVolumeClaim slurmk/data",
        "error: slurmk.yaml:15: partitions.gpu.pods.namespace: there is no Namespace jobs",
        "error: slurmk.yaml:5: pods.imagePullSecrets[0]: there is no Secret jobs/registry",
        "error: slurmk.yaml:16: partitions.gpu.pods.runtimeClass: there is no RuntimeClass nvidia",
        "error: slurmk.yaml:8: pods.volumes[0]: there is no PersistentVolumeClaim jobs/data",
        "warning: slurmk.yaml:13: partitions.gpu.nodes: no node is chosen by it now",
    ]


def test_a_queue_system_that_is_not_there(tmp_path: Path) -> None:
    found = findings(tmp_path, queue_system="kueue")
    for kind in ("Workload", "ClusterQueue", "LocalQueue"):
        text = f"slurmk.yaml:17: partitions.gpu.pods.queueSystem: the cluster has no {kind} of kueue.x-k8s.io/v1beta2"
        assert f"error: {text}" in found


def test_what_slurmk_may_not_do(tmp_path: Path) -> None:
    found = findings(tmp_path, "patch:nodes create:leases create:pods delete:jobsets", kind="jobset")
    assert "error: slurmk.yaml:1: slurmk may not patch nodes" in found
    assert "error: slurmk.yaml:1: namespace: slurmk may not create leases.coordination.k8s.io in slurmk" in found
    assert "error: slurmk.yaml:1: namespace: slurmk may not create pods in slurmk" in found
    assert "error: slurmk.yaml:15: partitions.gpu.pods.namespace: slurmk may not create pods in jobs" in found
    assert "error: slurmk.yaml:4: pods.kind: slurmk may not delete jobsets.jobset.x-k8s.io in slurmk" in found


def test_what_may_not_be_looked_at_may_be_there(tmp_path: Path) -> None:
    file = SettingsFile(FILE.format(kind="pods", queue_system="none"), "slurmk.yaml")

    async def run() -> list[str]:
        async with fake_kubernetes(tmp_path) as (server, api, _):
            prepare(server)

            async def forbidden(request: web.Request) -> web.StreamResponse | None:
                return status(403, "Forbidden") if "/secrets/" in request.path else None

            server.faults += [forbidden, forbidden]
            return [finding.text for finding in await check_cluster(api, file)]

    text = "slurmk.yaml:5: pods.imagePullSecrets[0]: Secret slurmk/registry may not be looked at, so it may be missing"
    assert text in asyncio.run(run())


GRES = """pods: {{image: a}}
nodes: {kind}
gres:
- {{name: gpu, resource: nvidia.com/gpu}}
- {{name: cores, resource: cpu, typeLabel: model}}
- {{name: mig, resource: nvidia.com/mig-*}}
- {{name: x, deviceClass: y}}
"""


def test_gres_that_nobody_has(tmp_path: Path) -> None:
    found = findings(tmp_path, kind="pool", text=GRES)
    assert "error: slurmk.yaml:7: gres[3].deviceClass: there is no DeviceClass y" in found
    assert "warning: slurmk.yaml:4: gres[0].resource: no node has nvidia.com/gpu" in found
    assert "warning: slurmk.yaml:5: gres[1].typeLabel: no node has the label model" in found
    assert "warning: slurmk.yaml:6: gres[2].resource: no node has nvidia.com/mig-*" in found


def test_an_image_is_needed_by_somebody(tmp_path: Path) -> None:
    found = findings(tmp_path, text="namespace: slurmk\n")
    assert found == ["warning: slurmk.yaml:1: pods.image: none: jobs must name one with --container"]


@pytest.mark.parametrize("kind", ["volcano", "volcano-job", "coscheduling"])
def test_what_kueue_does_not_take(tmp_path: Path, kind: str) -> None:
    text = f"slurmk.yaml:4: pods.kind: Kueue does not take jobs of kind {kind}"
    assert not [each for each in findings(tmp_path, kind=kind) if text in each]
    found = findings(tmp_path, kind=kind, queue_system="kueue")
    assert f"error: slurmk.yaml:17: partitions.gpu.pods.queueSystem: Kueue does not take jobs of kind {kind}" in found


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((400, "BadRequest", 'unknown field "spec.x"'), "error"),
        ((403, "Forbidden", "violates PodSecurity"), "warning"),
        ((403, "Forbidden", "exceeded quota: q, requested: pods=1"), ""),
        (None, ""),
    ],
)
def test_a_pod_is_tried_and_not_kept(tmp_path: Path, answer: tuple[int, str, str] | None, told: str) -> None:
    file = SettingsFile("namespace: slurmk\npods: {image: a}\npartitions:\n  cpu: {nodes: pool=cpu}\n", "slurmk.yaml")

    async def run() -> list[str]:
        async with fake_kubernetes(tmp_path) as (server, api, _):
            prepare(server)

            async def refuse(request: web.Request) -> web.StreamResponse | None:
                return status(*answer) if answer and "/pods?" in request.path_qs and request.method == "POST" else None

            server.faults.append(refuse)
            found = [f"{finding.severity.value}: {finding.text}" for finding in await check_cluster(api, file)]
            assert [each for each in server.requests if each.startswith("POST /api/v1/namespaces/slurmk/pods?")]
            assert not server.objects.get("pods")
            return found

    found = asyncio.run(run())
    assert [each.partition(":")[0] for each in found] == ([told] if told else [])
    if told and answer:
        assert found[0].startswith(f"{told}: slurmk.yaml:")
        assert found[0].endswith(answer[2])


def test_every_choice_has_its_objects() -> None:
    assert set(KIND_OBJECTS) == set(Kind)
    assert set(QUEUE_OBJECTS) == set(QueueSystem)
