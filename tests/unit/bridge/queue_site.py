"""A site with two partitions for the tests of queues: four nodes of 32 CPUs, two with 8 GPUs each, and shared words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import PartitionSettings, PodSettings, QueueSystem, Settings
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site, Switch

CPU_NODES = ("c1", "c2", "c3", "c4")
GPU_NODES = ("g1", "g2")


def node(name: str, cpus: int, memory: str, **more: str) -> Manifest:
    pool = "gpu" if name.startswith("g") else "cpu"
    labels = {"pool": pool, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    allocatable = {"cpu": str(cpus), "memory": memory, "pods": "110", "ephemeral-storage": "1Ti", **more}
    return {"metadata": {"name": f"host-{name}", "labels": labels}, "status": {"allocatable": allocatable}}


NODES: Mapping[str, Manifest] = {
    **{name: node(name, 32, "128Gi") for name in CPU_NODES},
    **{name: node(name, 8, "64Gi", **{"nvidia.com/gpu": "8", "nvidia.com/mig-1g.5gb": "2"}) for name in GPU_NODES},
}

SITE = Site(
    "hpc",
    tuple(Node(name) for name in (*CPU_NODES, *GPU_NODES)),
    (Partition("cpu", CPU_NODES, default=True), Partition("gpu", GPU_NODES)),
    switches=(Switch("leaf1", CPU_NODES[:2]), Switch("leaf2", CPU_NODES[2:]), Switch("top", switches=("leaf1", "leaf2"))),
)


def settings(**more: Any) -> Settings:
    partitions = (PartitionSettings("cpu", "pool=cpu"), PartitionSettings("gpu", "pool=gpu"))
    return Settings(**{"partitions": partitions, **more})


def pods(system: QueueSystem = QueueSystem.KUEUE, **more: Any) -> dict[str, PodSettings]:
    return {name: PodSettings(queue_system=system, **more) for name in ("cpu", "gpu")}


ACCOUNTS: Mapping[str, Mapping[str, Any]] = {
    "physics": {"fairshare": 2, "GrpTRES": "cpu=64"},
    "theory": {"parent": "physics"},
    "chem": {"GrpTRES": "gres/gpu=4", "users": ["alice"]},
}
