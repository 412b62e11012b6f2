"""The planned starts of 196 jobs that wait for whole nodes, as the reference's backfill planned them, to the second.

``planned_starts.json`` has what was recorded: when the jobs that filled its four nodes were to end, and in order of priority
each waiting job's nodes, minutes, planned start (seconds after the others began) and where. Two habits of the reference are
followed here that slurmk has not: planned ends are rounded up to whole minutes (bf_resolution), and a job is not put into a
hole that is exactly as long as its limit. With these, both plan the same; without them slurmk is earlier on the whole.

In queues of jobs that take parts of nodes the reference plans later still, since it sets the whole nodes aside for each job
that waits, and frees the nodes of running jobs in growing windows of time.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grammar.hostlist import compress
from slurmk.model.job import Allocation, JobRequest, NodeShare
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site, Switch
from slurmk.planner import forecast as booking
from slurmk.planner.build import demand_of, node_table
from slurmk.planner.plan import plan
from slurmk.planner.snapshot import PartitionRow, PendingRow, RunningRow, Snapshot

RECORDED = json.loads((Path(__file__).parents[2] / "reference" / "recorded" / "planned_starts.json").read_text())
NAMES = tuple(f"n{number}" for number in range(5, 9))
RESOLUTION = 60
STARTS = [start for _, _, start, _ in RECORDED["waiting"]]

PAST_MINUTE = 34
"""Seconds after a whole minute of planned starts, since the record counts from when the first jobs began."""


def snapshot(beyond: int = 0) -> Snapshot:
    """The queue; each job wants ``beyond`` seconds more than its limit free behind it."""
    partition = PartitionRow("cpu", np.arange(4), True, 1, None, 0, None)
    site = Site("reference", (), ())
    running = tuple(
        RunningRow(number, RECORDED["running"][name], Allocation("cpu", (NodeShare(name, 16, 0, 1),), whole_nodes=True), 1)
        for number, name in enumerate(NAMES, 1)
    )
    pending = []
    for number, (nodes, minutes, _, _) in enumerate(RECORDED["waiting"]):
        request = JobRequest(minimum_nodes=nodes, maximum_nodes=nodes, nodes=str(nodes), shared="none")
        demand = demand_of(request, Partition("cpu", NAMES), site)
        pending.append(PendingRow(100 + number, demand, ("cpu",), 1000 - number, 0, minutes * 60 + beyond, 1))
    table = node_table([Node(name, cpus=16, cores_per_socket=16) for name in NAMES])
    return Snapshot(1, 0, table, (partition,), tuple(pending), running, switches=(Switch("leaf", NAMES),))


def test_with_its_habits_the_plan_is_that_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = snapshot(beyond=1)
    with monkeypatch.context() as patch:
        real = booking.Booking
        patch.setattr(booking, "Booking", lambda *values: whole(real(*values)))
        made = plan(queue)
    outlooks = [made.outlooks[row.job_id] for row in queue.pending]
    assert [outlook.start_time for outlook in outlooks] == STARTS
    assert [compress(outlook.nodes) for outlook in outlooks] == [nodes for _, _, _, nodes in RECORDED["waiting"]]


def whole(made: booking.Booking) -> booking.Booking:
    """The booking, ending with a minute."""
    return replace(made, end=-(-(made.end - 1 - PAST_MINUTE) // RESOLUTION) * RESOLUTION + PAST_MINUTE)


def test_without_them_it_is_earlier_on_the_whole() -> None:
    queue = snapshot()
    made = plan(queue)
    starts = [made.outlooks[row.job_id].start_time or 0 for row in queue.pending]
    assert sum(starts) < sum(STARTS)
    assert max(starts) < max(STARTS)
    assert sum(ours > theirs + RESOLUTION for ours, theirs in zip(starts, STARTS, strict=True)) < 0.06 * len(STARTS)
