"""Small snapshots for tests of the planner: a few nodes in one partition, and demands of which only what matters is said."""

from __future__ import annotations

from typing import Any

import numpy as np

from slurmk.planner.snapshot import Demand, NodeTable, PartitionRow, PendingRow, RunningRow, Snapshot

NOW = 1_000_000


def table(nodes: tuple[tuple[int, int, int], ...]) -> NodeTable:
    """Nodes n0, n1 … of so many CPUs, MiB and GPUs."""
    columns = np.array(nodes, dtype=np.int64)
    count = len(nodes)
    return NodeTable(
        names=tuple(f"n{index}" for index in range(count)),
        cpus=columns[:, 0],
        cores=columns[:, 0],
        sockets=np.ones(count, dtype=np.int64),
        threads_per_core=np.ones(count, dtype=np.int64),
        memory=columns[:, 1],
        temporary_disk=np.zeros(count, dtype=np.int64),
        gres_names=("gpu",),
        gres=columns[:, 2:3],
        weight=np.ones(count, dtype=np.int64),
        available=np.ones(count, dtype=np.bool_),
        returns=np.zeros(count, dtype=np.bool_),
        features=(frozenset(),) * count,
        foreign_cpus=np.zeros(count, dtype=np.int64),
        foreign_memory=np.zeros(count, dtype=np.int64),
        gres_devices={"gpu": tuple(tuple(range(gpus)) for gpus in columns[:, 2].tolist())},
    )


def demand(nodes: int, tasks: int = 0, **more: Any) -> Demand:
    """So many nodes with a task of one CPU on each, unless something else is said."""
    values: dict[str, Any] = {
        "minimum_nodes": nodes,
        "maximum_nodes": nodes,
        "tasks": tasks or nodes,
        "cpus_per_task": 1,
        "tasks_per_node": None,
        "tasks_per_node_exact": False,
        "tasks_per_core": None,
        "tasks_per_socket": None,
        "minimum_cpus": 0,
        "minimum_cpus_per_node": 0,
        "memory_per_node": None,
        "memory_per_cpu": None,
    }
    return Demand(**{**values, **more})


def partition(nodes: int, name: str = "p", tier: int = 1) -> PartitionRow:
    """A partition without limits, of the first so many nodes."""
    return PartitionRow(name, np.arange(nodes), True, tier, None, 0, None)


def snapshot_of(
    nodes: tuple[tuple[int, int, int], ...],
    pending: tuple[PendingRow, ...] = (),
    running: tuple[RunningRow, ...] = (),
    **more: Any,
) -> Snapshot:
    """These nodes (see ``table``), all in partition ``p`` unless other partitions are named."""
    values: dict[str, Any] = {"partitions": (partition(len(nodes)),)}
    return Snapshot(1, NOW, table(nodes), pending=pending, running=running, **{**values, **more})
