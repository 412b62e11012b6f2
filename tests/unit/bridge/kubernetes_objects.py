"""Kubernetes objects as an API server gives them, for tests: nodes, pods, ResourceSlices."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]


def node(
    name: str = "n1",
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    labels: dict[str, str] | None = None,
    taints: tuple[Manifest, ...] = (),
    unschedulable: bool = False,
    annotations: dict[str, str] | None = None,
    ready: str = "True",
    since: str = "2026-11-30T10:00:00Z",
    **resources: str,
) -> Manifest:
    """A node; ``resources`` are more of its allocatable, ``__`` standing for ``/``, ``_`` for ``-`` and ``DOT`` for ``.``."""
    more = {key.replace("__", "/").replace("_", "-").replace("DOT", "."): value for key, value in resources.items()}
    all_labels = {"kubernetes.io/hostname": name, **(labels or {})}
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "100Gi", **more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": all_labels,
            "annotations": annotations or {},
        },
        "spec": {"taints": list(taints), **({"unschedulable": True} if unschedulable else {})},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}, {"type": "Hostname", "address": name}],
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": ready, "lastTransitionTime": since},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kernelVersion": "6.1.0",
                "osImage": "Debian GNU/Linux 12",
                "kubeletVersion": "v1.37.2",
            },
        },
    }


def container(name: str = "c", *, always: bool = False, **requests: str) -> Manifest:
    made: Manifest = {"name": name, "resources": {"requests": requests}}
    return {**made, "restartPolicy": "Always"} if always else made


def pod(
    *containers: Manifest,
    name: str = "p",
    node_name: str = "n1",
    phase: str = "Running",
    initial: tuple[Manifest, ...] = (),
    labels: dict[str, str] | None = None,
    owner: str = "ReplicaSet",
    **spec: Any,
) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "others",
            "labels": labels or {},
            "ownerReferences": [{"kind": owner, "name": "owner"}],
        },
        "spec": {"nodeName": node_name, "containers": list(containers), "initContainers": list(initial), **spec},
        "status": {"phase": phase},
    }


def resource_slice(
    node_name: str,
    *devices: Manifest,
    driver: str = "gpu.example.com",
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    counters: tuple[Manifest, ...] = (),
) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-{generation}"},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": pool or node_name, "generation": generation, "resourceSliceCount": count},
            "devices": list(devices),
            "sharedCounters": list(counters),
        },
    }


def device(name: str, *, product: str = "NVIDIA A100-SXM4-80GB", kind: str = "gpu", **more: Any) -> Manifest:
    return {
        "name": name,
        "attributes": {"productName": {"string": product}, "type": {"string": kind}},
        "capacity": {"memory": {"value": "80Gi"}},
        **more,
    }


def device_class(name: str, expression: str) -> Manifest:
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
