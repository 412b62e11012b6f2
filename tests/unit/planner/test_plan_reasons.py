"""Why jobs wait behind others, as Slurm says it: whose turn it is, and whose nodes are set aside for whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_clusters import NOW, demand, snapshot_of

from slurmk.model.job import Allocation, NodeShare
from slurmk.model.states import Reason
from slurmk.planner.plan import plan
from slurmk.planner.reasons import NAMED_NOT_AVAILABLE, TOO_FEW_AVAILABLE
from slurmk.planner.snapshot import Outlook, PartitionRow, PendingRow, RunningRow

NODES = ((4, 4000, 0),) * 6


def partition(name: str, *rows: int, tier: int = 1) -> PartitionRow:
    return PartitionRow(name, np.array(rows), True, tier, None, 0, None)


ALL = partition("all", 0, 1, 2, 3, 4, 5)
LEFT, RIGHT, MIDDLE = partition("left", 0, 1, 2), partition("right", 3, 4, 5), partition("middle", 2, 3)


def job(number: int, *names: str, nodes: int = 1, required: tuple[str, ...] = (), **more: Any) -> PendingRow:
    wanted = demand(nodes, whole_nodes=True, required_nodes=required)
    return PendingRow(number, wanted, names, 1000 - number, NOW, more.pop("minutes", 60) * 60, 1, **more)


def told(*rows: PendingRow, free: tuple[int, ...] = (), licenses: int = 0) -> dict[int, Outlook]:
    """What each is told where all nodes but these are in use for half an hour."""
    shares = tuple(NodeShare(f"n{node}", 4, 0, 1, cpu_ids=(0, 1, 2, 3)) for node in range(6) if node not in free)
    running = (RunningRow(900, NOW + 1800, Allocation("all", shares, whole_nodes=True), 1),)
    partitions = (ALL, LEFT, RIGHT, MIDDLE)
    made = plan(snapshot_of(NODES, rows, running, partitions=partitions, licenses={"matlab": licenses}))
    return dict(made.outlooks)


def reasons(outlooks: dict[int, Outlook]) -> list[Reason | str]:
    """The reason of each, or what is shown in its place."""
    return [outlooks[number].description or outlooks[number].reason for number in sorted(outlooks)]


def test_in_one_partition_the_first_waits_for_resources_and_others_for_their_turn() -> None:
    assert reasons(told(job(1, "left"), job(2, "left"), job(3, "right"), job(4, "right"))) == [
        Reason.RESOURCES,
        Reason.PRIORITY,
        Reason.RESOURCES,
        Reason.PRIORITY,
    ]


def test_nodes_of_a_partition_in_which_one_waits_are_set_aside() -> None:
    """Behind the first of "left", "middle" has one node left: enough for a job of one, too few for a job of two."""
    assert reasons(told(job(1, "left"), job(2, "middle"))) == [Reason.RESOURCES, Reason.RESOURCES]
    assert reasons(told(job(1, "left"), job(2, "middle", nodes=2))) == [Reason.RESOURCES, TOO_FEW_AVAILABLE]
    assert reasons(told(job(1, "all"), job(2, "left"), job(3, "left"))) == [
        Reason.RESOURCES,
        TOO_FEW_AVAILABLE,
        Reason.PRIORITY,
    ]


@pytest.mark.parametrize(("first", "text"), [("left", NAMED_NOT_AVAILABLE), ("all", TOO_FEW_AVAILABLE)])
def test_a_named_node_that_is_set_aside(first: str, text: str) -> None:
    outlook = told(job(1, first), job(2, "middle", required=("n2",)))[2]
    assert outlook.description == text
    assert outlook.start_time == NOW + 1800


def test_one_who_names_his_nodes_sets_aside_only_these() -> None:
    assert reasons(told(job(1, "left", required=("n0",)), job(2, "left"), job(3, "left"))) == [
        Reason.RESOURCES,
        Reason.RESOURCES,
        Reason.PRIORITY,
    ]


def test_of_several_partitions_one_in_which_others_wait_says_so() -> None:
    assert reasons(told(job(1, "left"), job(2, "left", "right"), job(3, "right"))) == [
        Reason.RESOURCES,
        Reason.RESOURCES,
        Reason.PRIORITY,
    ]
    assert reasons(told(job(1, "left"), job(2, "right", "left"))) == [Reason.RESOURCES, Reason.PRIORITY]


def test_what_waits_for_something_else_sets_nothing_aside() -> None:
    later = job(1, "all", eligible_time=NOW + 9000)
    held = job(2, "all", held_reason=Reason.DEPENDENCY)
    assert reasons(told(later, held, job(3, "all"))) == [Reason.BEGIN_TIME, Reason.DEPENDENCY, Reason.RESOURCES]
