"""Which nodes are others than when a forecast was made.

On a cluster that others use too, some node changes every few seconds: a pod comes or goes, an administrator drains a node. The
profile of a forecast that was kept does not know the node as it is now, so nothing more is placed there until the next full
plan; what it says of all other nodes stays true.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slurmk.planner.snapshot import BoolArray, NodeTable

COLUMNS = (
    "cpus",
    "cores",
    "sockets",
    "threads_per_core",
    "memory",
    "temporary_disk",
    "weight",
    "available",
    "returns",
    "foreign_cpus",
    "foreign_memory",
)


def changed_nodes(before: NodeTable, after: NodeTable) -> BoolArray | None:
    """[nodes]: those of which anything is different; None when it is not the same nodes with the same kinds of GRES."""
    if before.names is not after.names and before.names != after.names:
        return None
    if before.gres_names != after.gres_names or (before.maximum_jobs is None) != (after.maximum_jobs is None):
        return None
    changed = np.zeros(len(before.names), dtype=np.bool_)
    for name in COLUMNS:
        changed |= getattr(before, name) != getattr(after, name)
    changed |= (before.gres != after.gres).any(axis=1)
    changed |= (_held(before) != _held(after)).any(axis=1)
    if before.maximum_jobs is not None and after.maximum_jobs is not None:
        changed |= before.maximum_jobs != after.maximum_jobs
    for old, new in ((before.features, after.features), *_devices(before, after)):
        if old is not new:
            changed |= np.fromiter(map(_differ, old, new), dtype=np.bool_, count=len(changed))
    return changed


def _held(table: NodeTable) -> NDArray[np.int64]:
    return np.zeros_like(table.gres) if table.foreign_gres is None else table.foreign_gres


def _devices(before: NodeTable, after: NodeTable) -> list[tuple[tuple[object, ...], tuple[object, ...]]]:
    return [(before.gres_devices.get(name, ()), after.gres_devices.get(name, ())) for name in before.gres_names]


def _differ(old: object, new: object) -> bool:
    return old is not new and old != new
