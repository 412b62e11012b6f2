"""Has the compiled form of the planner loaded before it is needed: loading it takes as long as hundreds of plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurmk.model.node import Node
from slurmk.planner.build import node_table
from slurmk.planner.forecast import COMPILED_FROM
from slurmk.planner.plan import forecast, plan_starts
from slurmk.planner.snapshot import Demand, PartitionRow, PendingRow, RunningRow, Snapshot


def warm_up() -> None:
    """Plan a small made-up queue, and react to the end of a job of it."""
    nodes = [Node(f"n{number}", cpus=4, memory=4000) for number in range(4)]
    partition = PartitionRow("p", np.arange(4), True, 1, None, 0, None)
    rows = tuple(_row(number) for number in range(COMPILED_FROM))
    snapshot = Snapshot(1, 0, node_table(nodes), (partition,), rows, ())
    made = forecast(snapshot)
    limits = {row.job_id: row.time_limit for row in rows}
    running = [RunningRow(start.job_id, limits[start.job_id], start.allocation, 1) for start in made.starts]
    left = tuple(row for row in rows if row.job_id in made.outlooks)
    plan_starts(replace(snapshot, pending=left, running=tuple(running)), made)
    plan_starts(replace(snapshot, time=5, pending=left[:-2], running=tuple(running[1:])), made)
    plan_starts(replace(snapshot, time=6, pending=left[:-2], running=()), made)


def _row(number: int) -> PendingRow:
    whole = number % 3 == 0
    nodes = 1 + number % 4
    demand = Demand(
        minimum_nodes=nodes if whole else 1,
        maximum_nodes=nodes if whole else 1 << 30,
        tasks=nodes,
        cpus_per_task=1,
        tasks_per_node=None,
        tasks_per_node_exact=False,
        tasks_per_core=None,
        tasks_per_socket=None,
        minimum_cpus=0,
        minimum_cpus_per_node=0,
        memory_per_node=0 if whole else None,
        memory_per_cpu=None if whole else 100,
        whole_nodes=whole,
    )
    return PendingRow(number + 1, demand, ("p",), 1, number, 60 + 60 * (number % 7), 1)
