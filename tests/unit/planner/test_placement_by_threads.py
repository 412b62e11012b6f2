"""Tasks, CPUs and memory on nodes whose cores have two threads, and those of ``--ntasks-per-node`` with a number of tasks: as
a real Slurm 26.05 (select/cons_tres, CR_Core_Memory) was seen to give them."""

from __future__ import annotations

from typing import Any

import pytest

from slurmk.model.job import Credentials, Job, JobRequest, NodeShare
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site
from slurmk.planner.build import Waiting, build_snapshot
from slurmk.planner.plan import plan

NOW = 1_000_000
USER = Credentials(1001, 1001, "alice", "alice")
NAMES = ("n1", "n2", "n3", "n4")
THREADS = {name: Node(name, cpus=128, sockets=2, cores_per_socket=32, threads_per_core=2, memory=1_000_000) for name in NAMES}
SINGLE = {name: Node(name, cpus=16, cores_per_socket=16, memory=32000) for name in NAMES}


def given(cluster: dict[str, Node], /, **request: Any) -> tuple[NodeShare, ...]:
    partition = Partition("main", NAMES, default=True)
    site = Site("reference", tuple(cluster.values()), (partition,), default_memory_per_cpu=100)
    job = Job(1, JobRequest(**request), USER, submit_time=NOW, priority=1, partitions=("main",), time_limit=5)
    made = plan(
        build_snapshot(
            snapshot_id=1,
            time=NOW,
            site=site,
            nodes=cluster,
            partitions={"main": partition},
            running=(),
            pending=[Waiting(job)],
        )
    )
    (start,) = made.starts
    return start.allocation.shares


def nodes(count: int, most: int | None = None) -> dict[str, int]:
    return {"minimum_nodes": count, "maximum_nodes": most or count}


Row = tuple[dict[str, Any], list[int], list[int]]

SEEN: list[Row] = [
    # request, tasks of each node, CPUs of each node
    ({"tasks": 3, **nodes(2)}, [2, 1], [2, 2]),
    ({"tasks": 4, **nodes(2)}, [2, 2], [2, 2]),
    ({"tasks": 5, **nodes(2)}, [3, 2], [4, 2]),
    ({"tasks": 6, **nodes(2)}, [4, 2], [4, 2]),
    ({"tasks": 16, **nodes(2)}, [14, 2], [14, 2]),
    ({"tasks": 5, **nodes(3)}, [2, 2, 1], [2, 2, 2]),
    ({"tasks": 7, **nodes(3)}, [3, 2, 2], [4, 2, 2]),
    ({"tasks": 9, **nodes(4)}, [3, 2, 2, 2], [4, 2, 2, 2]),
    ({"tasks": 20, **nodes(1, 4), "nodes": "1-4"}, [14, 2, 2, 2], [18, 2, 2, 2]),
    ({"tasks": 20, **nodes(2, 4), "nodes": "2-4"}, [14, 2, 2, 2], [16, 2, 2, 2]),
    ({"tasks": 6, **nodes(2, 3), "nodes": "2-3"}, [2, 2, 2], [4, 2, 2]),
    ({"tasks": 6, "cpus_per_task": 2, **nodes(3)}, [4, 1, 1], [8, 2, 2]),
    ({"tasks": 6, "cpus_per_task": 3, **nodes(3)}, [4, 1, 1], [12, 4, 4]),
    ({"tasks": 7, "cpus_per_task": 3, **nodes(2, 3), "nodes": "2-3"}, [5, 1, 1], [16, 4, 4]),
    ({"tasks": 5, "tasks_per_core": 1, **nodes(2)}, [3, 2], [8, 2]),
    ({"tasks": 9, "tasks_per_core": 1, "cpus_per_task": 3, **nodes(2)}, [8, 1], [32, 4]),
    ({"tasks": 2, "tasks_per_core": 1, "cpus_per_task": 3, **nodes(1)}, [2], [8]),
    ({"tasks": 5, "distribution": "pack", **nodes(2)}, [4, 1], [4, 2]),
    ({"tasks": 5, "overcommit": True, **nodes(2)}, [3, 2], [2, 2]),
    ({"tasks": 9, "tasks_per_node": 6, **nodes(2)}, [5, 4], [6, 6]),
    ({"tasks": 40, "tasks_per_node": 20, **nodes(3)}, [14, 13, 13], [20, 20, 20]),
    ({"tasks": 129}, [127, 2], [128, 2]),
]


@pytest.mark.parametrize(("request_", "tasks", "cpus"), SEEN, ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_cores_of_two_threads(request_: dict[str, Any], tasks: list[int], cpus: list[int]) -> None:
    shares = given(THREADS, **request_)
    assert [share.tasks for share in shares] == tasks
    assert [share.cpus for share in shares] == cpus
    assert [share.memory for share in shares] == [100 * count for count in cpus]
    assert not any(share.idle_cpus for share in shares)


@pytest.mark.parametrize(
    ("request_", "tasks", "cpus"),
    [
        ({"tasks": 9, "tasks_per_node": 6, **nodes(2)}, [5, 4], [6, 6]),
        ({"tasks": 7, "tasks_per_node": 3}, [3, 2, 2], [3, 3, 3]),
        ({"tasks": 6, **nodes(2)}, [5, 1], [5, 1]),
        ({"tasks": 8, "tasks_per_node": 4}, [4, 4], [4, 4]),
    ],
)
def test_cores_of_one_thread(request_: dict[str, Any], tasks: list[int], cpus: list[int]) -> None:
    shares = given(SINGLE, **request_)
    assert [share.tasks for share in shares] == tasks
    assert [share.cpus for share in shares] == cpus


@pytest.mark.parametrize(
    ("request_", "tasks", "cpus", "usable"),
    [
        ({"tasks": 5, **nodes(2)}, [4, 1], [8, 2], [4, 1]),
        ({"tasks": 3, "cpus_per_task": 2, **nodes(2)}, [2, 1], [8, 4], [4, 2]),
        ({"tasks": 2, "shared": "none", **nodes(2)}, [1, 1], [128, 128], [64, 64]),
        ({"cpus_per_task": 3}, [1], [6], [3]),
    ],
)
def test_one_thread_of_each_core(request_: dict[str, Any], tasks: list[int], cpus: list[int], usable: list[int]) -> None:
    """--threads-per-core=1 and --hint=nomultithread: whole cores are held, but tasks and memory go by the threads used."""
    shares = given(THREADS, threads_per_core=1, **request_)
    assert [share.tasks for share in shares] == tasks
    assert [share.cpus for share in shares] == cpus
    assert [share.usable_cpus for share in shares] == usable
    assert [share.memory for share in shares] == [100 * count for count in usable]
