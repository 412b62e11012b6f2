"""Nodes and shares on the reference cluster: n[1-4] of 8 CPUs and 4 GPUs below leaf1, n[5-8] of 16 CPUs below leaf2.

The rows follow what a real Slurm 26.05 (select/cons_tres, CR_Core_Memory, topology/tree) was seen to choose, some of
them adapted to another number of nodes or CPUs. tests/reference asks it again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slurmk.model.job import Allocation, Credentials, GresShare, Job, JobRequest, NodeShare
from slurmk.model.node import GresCapacity, Node, Partition
from slurmk.model.site import Site, Switch
from slurmk.model.states import JobState, NodeFlag, Reason
from slurmk.planner.build import SnapshotCache, Waiting, build_snapshot, pending_row
from slurmk.planner.plan import forecast, plan, plan_starts, will_run
from slurmk.planner.snapshot import Plan, Snapshot

NOW = 1_000_000
SMALL, LARGE = tuple(f"n{number}" for number in range(1, 5)), tuple(f"n{number}" for number in range(5, 9))
NODES = {
    name: Node(name, cpus=8, cores_per_socket=8, memory=16000, features=("a100", "ib"), gres=(GresCapacity("gpu", "a100", 4),))
    for name in SMALL
} | {name: Node(name, cpus=16, cores_per_socket=16, memory=32000, features=("cpu",)) for name in LARGE}
PARTITIONS = {
    "debug": Partition("debug", SMALL + LARGE, default=True, maximum_time=60, default_time=10),
    "gpu": Partition("gpu", SMALL, maximum_time=2880),
    "cpu": Partition("cpu", LARGE),
}
SWITCHES = (Switch("leaf1", SMALL), Switch("leaf2", LARGE), Switch("spine", switches=("leaf1", "leaf2")))
SITE = Site(
    "reference",
    tuple(NODES.values()),
    tuple(PARTITIONS.values()),
    SWITCHES,
    licenses={"matlab": 4},
    default_memory_per_cpu=100,
)
ALICE = Credentials(1001, 1001, "alice", "alice")


def job(job_id: int = 1, partition: str = "debug", minutes: int = 5, priority: int = 100, **request: Any) -> Job:
    return Job(
        job_id,
        JobRequest(**request),
        ALICE,
        submit_time=NOW,
        priority=priority,
        partitions=tuple(partition.split(",")),
        time_limit=minutes,
    )


def busy(job_id: int, shares: dict[str, int | tuple[int, int]], minutes: int = 60, whole: bool = False) -> Job:
    """A running job with so many CPUs (and GPUs) of each node."""
    given = []
    for name, amount in shares.items():
        cpus, gpus = amount if isinstance(amount, tuple) else (amount, 0)
        gres = (GresShare("gpu", "a100", gpus, tuple(range(gpus))),) if gpus else ()
        given.append(NodeShare(name, cpus, cpus * 100, cpus, gres, tuple(range(cpus))))
    allocation = Allocation("debug", tuple(given), whole_nodes=whole)
    return replace(job(job_id, minutes=minutes), state=JobState.RUNNING, start_time=NOW, allocation=allocation)


def snapshot(
    *pending: Job, running: tuple[Job, ...] = (), nodes: dict[str, Node] = NODES, site: Site = SITE, **more: Any
) -> Snapshot:
    return build_snapshot(
        snapshot_id=1,
        time=NOW,
        site=site,
        nodes=nodes,
        partitions=PARTITIONS | more,
        running=running,
        pending=[Waiting(waiting) for waiting in pending],
    )


def given_to(made: Plan, job_id: int = 1) -> dict[str, int]:
    return {share.node: share.cpus for start in made.starts if start.job_id == job_id for share in start.allocation.shares}


IDLE: list[tuple[dict[str, Any], dict[str, int]]] = [
    ({"tasks": 20}, {"n1": 8, "n2": 8, "n3": 4}),
    ({"tasks": 33}, {"n5": 16, "n6": 16, "n7": 1}),
    ({"tasks": 7, "cpus_per_task": 3}, {"n1": 6, "n2": 6, "n3": 6, "n4": 3}),
    ({"tasks": 12, "constraints": "cpu"}, {"n5": 12}),
    ({"tasks": 1, "cpus_per_task": 16}, {"n5": 16}),
    ({"minimum_cpus_per_node": 10}, {"n5": 10}),
    ({"minimum_nodes": 6}, {f"n{number}": 1 for number in range(1, 7)}),
    (
        {"tasks": 90, "minimum_nodes": 1, "maximum_nodes": 8},
        {**dict.fromkeys(SMALL, 8), "n5": 16, "n6": 16, "n7": 16, "n8": 10},
    ),
    ({"tasks": 3, "minimum_nodes": 2, "maximum_nodes": 4}, {"n1": 1, "n2": 1, "n3": 1}),
    ({"tasks": 3, "minimum_nodes": 1, "maximum_nodes": 3}, {"n1": 3}),
    ({"tasks": 3, "minimum_nodes": 1, "maximum_nodes": 3, "nodes": "1-3"}, {"n1": 1, "n2": 1, "n3": 1}),
    ({"minimum_nodes": 1, "maximum_nodes": 2, "nodes": "1-2", "cpus_per_task": 4}, {"n1": 4, "n2": 4}),
    ({"minimum_nodes": 1, "maximum_nodes": 1, "tres_per_job": "gres/gpu:8", "cpus_per_task": 2}, {"n1": 2, "n2": 2}),
    ({"tasks": 17, "minimum_nodes": 2, "constraints": "cpu"}, {"n5": 16, "n6": 1}),
    ({"tasks": 2, "required_nodes": "n3,n6"}, {"n3": 1, "n6": 1}),
    ({"tasks": 9, "excluded_nodes": "n5"}, {"n6": 9}),
    ({"tasks": 3, "minimum_nodes": 3, "contiguous": True, "required_nodes": "n4"}, {"n4": 1, "n5": 1, "n6": 1}),
    ({"memory_per_node": 20000}, {"n5": 1}),
    ({"minimum_nodes": 3, "constraints": "[a100*1&cpu*2]"}, {"n1": 1, "n5": 1, "n6": 1}),
    ({"minimum_nodes": 2, "constraints": "[a100|cpu]"}, {"n1": 1, "n2": 1}),
    ({"tasks": 1, "shared": "none"}, {"n1": 8}),
    ({"tasks": 20, "overcommit": True}, {"n1": 1}),
    ({"tasks_per_node": 4, "minimum_nodes": 2, "maximum_nodes": 3}, {"n1": 4, "n2": 4, "n3": 4}),
    ({"tres_per_job": "gres/gpu:2", "cpus_per_tres": "gres/gpu:3"}, {"n1": 6}),
    ({"tasks": 4, "tres_per_task": "gres/gpu:1"}, {"n1": 4}),
    ({"tasks": 4, "minimum_nodes": 1, "maximum_nodes": 3, "nodes": "1-3", "tres_per_task": "gres/gpu:1"}, {"n1": 4}),
    ({"tasks": 5, "minimum_nodes": 2, "tres_per_node": "gres/gpu:1"}, {"n1": 4, "n2": 1}),
]


@pytest.mark.parametrize(("request_", "expected"), IDLE, ids=lambda value: ",".join(f"{k}={v}" for k, v in value.items()))
def test_on_an_idle_cluster(request_: dict[str, Any], expected: dict[str, int]) -> None:
    assert given_to(plan(snapshot(job(**request_)))) == expected


PARTLY_USED: list[tuple[dict[str, Any], dict[str, int], dict[str, int]]] = [
    ({"tasks": 1, "partition": "cpu"}, {"n5": 4}, {"n5": 1}),
    ({"tasks": 20, "partition": "cpu"}, {"n5": 16, "n6": 16}, {"n7": 16, "n8": 4}),
    ({"tasks": 4, "cpus_per_task": 5}, {"n1": 8, "n2": 8}, {"n5": 15, "n6": 5}),
    ({"tasks": 12, "spread_job": True}, {"n1": 8, "n3": 8}, {"n2": 2, "n4": 2, "n5": 2, "n6": 2, "n7": 2, "n8": 2}),
    ({"tasks": 16, "partition": "cpu"}, {"n5": 4, "n6": 16, "n7": 16, "n8": 12}, {"n5": 12, "n8": 4}),
    ({"tasks": 10, "partition": "gpu,cpu"}, {"n1": 4, "n2": 1, "n3": 8, "n5": 6}, {"n1": 4, "n2": 6}),
    ({"tasks": 40, "minimum_nodes": 5}, {"n1": 8, "n3": 8, "n4": 8}, {"n2": 1, "n5": 16, "n6": 16, "n7": 6, "n8": 1}),
    ({"tasks": 30, "minimum_nodes": 2, "maximum_nodes": 6}, {"n2": 1, "n3": 8, "n4": 1, "n5": 16},
     {"n1": 8, "n2": 7, "n4": 7, "n6": 6, "n7": 1, "n8": 1}),
]  # fmt: skip


ONE_NODE: dict[str, Any] = {"minimum_nodes": 1, "maximum_nodes": 1}
TWO_NODES: dict[str, Any] = {"minimum_nodes": 2, "maximum_nodes": 2}

USES: list[dict[str, int]] = [
    {"n1": 8, "n2": 4, "n5": 16, "n7": 16, "n8": 4},
    {"n1": 4, "n2": 2, "n3": 6, "n5": 8, "n6": 4, "n7": 12},
    {"n1": 8, "n2": 8, "n3": 4, "n5": 8, "n6": 16, "n7": 16, "n8": 16},
    {"n1": 8, "n2": 8, "n3": 4, "n4": 2, "n5": 8, "n6": 16, "n7": 16, "n8": 16},
    {"n5": 2, "n6": 1, "n7": 3, "n8": 15},
    {"n1": 1, "n2": 5, "n3": 7, "n4": 8, "n5": 2, "n6": 16, "n7": 6, "n8": 7},
]

ONE_OF_SEVERAL_LEAVES: list[tuple[int, dict[str, Any], dict[str, int]]] = [
    (0, {"tasks": 3, **ONE_NODE}, {"n2": 3}),  # a job of one node takes the first that will do, on whatever leaf
    (0, {"tasks": 3}, {"n6": 3}),  # one of any number begins on the smallest leaf that suffices
    (0, {"tasks": 8}, {"n6": 8}),
    (0, {"tasks": 10}, {"n6": 10}),
    (0, {"tasks": 6, **TWO_NODES}, {"n6": 5, "n8": 1}),
    (0, {"tasks": 20, **TWO_NODES}, {"n6": 16, "n8": 4}),
    (1, {"tasks": 2, **ONE_NODE}, {"n1": 2}),
    (1, {"tasks": 5}, {"n1": 4, "n2": 1}),
    (1, {"tasks": 10}, {"n1": 4, "n2": 6}),
    (1, TWO_NODES, {"n1": 1, "n2": 1}),
    (1, {"tasks": 9, "minimum_nodes": 3, "maximum_nodes": 3}, {"n1": 4, "n2": 4, "n3": 1}),
    (1, {"tasks": 10, "partition": "cpu"}, {"n5": 8, "n6": 2}),
    (1, {"tasks": 6, "partition": "cpu", **TWO_NODES}, {"n5": 5, "n6": 1}),
    (2, {"tasks": 4}, {"n5": 4}),
    (2, {"tasks": 1, **ONE_NODE}, {"n3": 1}),
    (2, {"tasks": 10}, {"n3": 4, "n4": 6}),
    (2, TWO_NODES, {"n3": 1, "n4": 1}),
    (3, {"tasks": 5}, {"n5": 5}),
    (3, {"tasks": 11}, {"n3": 4, "n4": 6, "n5": 1}),
    (4, {"tasks": 15, "partition": "cpu"}, {"n5": 14, "n6": 1}),
    (4, {"tasks": 30, "partition": "cpu"}, {"n5": 14, "n6": 15, "n7": 1}),
    (5, {"tasks": 12, "spread_job": True, **TWO_NODES}, {"n1": 6, "n5": 6}),  # spread over the first ones, whatever their leaf
]


@pytest.mark.parametrize(("used", "request_", "expected"), ONE_OF_SEVERAL_LEAVES)
def test_which_leaf(used: int, request_: dict[str, Any], expected: dict[str, int]) -> None:
    assert given_to(plan(snapshot(job(**request_), running=(busy(90, USES[used]),)))) == expected


@pytest.mark.parametrize(("request_", "used", "expected"), PARTLY_USED)
def test_on_a_partly_used_cluster(request_: dict[str, Any], used: dict[str, int], expected: dict[str, int]) -> None:
    assert given_to(plan(snapshot(job(**request_), running=(busy(90, used),)))) == expected


def test_gpus_of_a_job_spread_over_nodes() -> None:
    made = plan(snapshot(job(tres_per_job="gres/gpu:6")))
    assert [(share.node, share.gres[0].count, share.gres[0].indices) for share in made.starts[0].allocation.shares] == [
        ("n1", 4, (0, 1, 2, 3)),
        ("n2", 2, (0, 1)),
    ]


def test_gpus_of_a_job_bring_a_task_to_every_node_and_yield_to_a_number_of_nodes() -> None:
    counted = {"minimum_nodes": 1, "maximum_nodes": 1}  # as sbatch fills them in
    made = plan(snapshot(job(tres_per_job="gres/gpu:6", **counted)))
    assert [(share.node, share.tasks) for share in made.starts[0].allocation.shares] == [("n1", 1), ("n2", 1)]
    assert not plan(snapshot(job(tres_per_job="gres/gpu:6", nodes="1", **counted))).starts


NAMED: list[tuple[str, dict[str, Any], dict[str, tuple[int, int]]]] = [
    ("n1", {"tres_per_job": "gres/gpu:5"}, {"n1": (1, 4), "n2": (1, 1)}),
    ("n3", {"tres_per_job": "gres/gpu:5"}, {"n1": (1, 1), "n3": (1, 4)}),
    ("n1,n2", {"tres_per_job": "gres/gpu:9"}, {"n1": (1, 4), "n2": (1, 4), "n3": (1, 1)}),
    ("n1,n2", {"tres_per_job": "gres/gpu:2"}, {"n1": (1, 1), "n2": (1, 1)}),
    ("n1", {"tres_per_job": "gres/gpu:5", "cpus_per_tres": "gres/gpu:1"}, {"n1": (4, 4), "n2": (1, 1)}),
    ("n2", {"tres_per_job": "gres/gpu:5", "cpus_per_tres": "gres/gpu:2"}, {"n1": (2, 1), "n2": (8, 4)}),
]


@pytest.mark.parametrize(("named", "request_", "expected"), NAMED)
def test_gpus_of_a_job_reach_beyond_the_nodes_that_it_names(
    named: str, request_: dict[str, Any], expected: dict[str, tuple[int, int]]
) -> None:
    count = len(named.split(","))
    made = plan(snapshot(job(required_nodes=named, minimum_nodes=count, maximum_nodes=count, **request_)))
    assert {share.node: (share.cpus, share.gres[0].count) for share in made.starts[0].allocation.shares} == expected


def nodes(count: int) -> dict[str, Any]:
    """As --nodes fills them in."""
    return {"nodes": str(count), "minimum_nodes": count, "maximum_nodes": count}


def of_gpus(count: int, **more: Any) -> dict[str, Any]:
    return {"tres_per_job": f"gres/gpu:{count}"} | more


OF_EACH_NODE: list[tuple[dict[str, Any], list[int], list[int], list[int]]] = [  # tasks, CPUs, GPUs
    (of_gpus(4, tasks=4) | nodes(2), [3, 1], [3, 1], [3, 1]),
    (of_gpus(9, tasks=5), [3, 1, 1], [3, 1, 1], [4, 4, 1]),
    (of_gpus(4, tasks=5) | nodes(2), [4, 1], [4, 1], [3, 1]),  # they don't divide: no tie between tasks and GPUs
    (of_gpus(6, tasks=6), [4, 2], [4, 2], [4, 2]),
    (of_gpus(6, tasks=6, nodes="1-3", minimum_nodes=1, maximum_nodes=3), [4, 2], [4, 2], [4, 2]),
    (of_gpus(2, tasks=8) | nodes(2), [4, 4], [4, 4], [1, 1]),
    (of_gpus(4, tasks=8) | nodes(2), [6, 2], [6, 2], [3, 1]),
    (of_gpus(2, tasks=10), [5, 5], [5, 5], [1, 1]),
    (of_gpus(4, tasks=20), [5, 5, 5, 5], [5, 5, 5, 5], [1, 1, 1, 1]),
    (of_gpus(8, tasks=16) | nodes(4), [8, 6, 1, 1], [8, 6, 1, 1], [4, 2, 1, 1]),
    (of_gpus(4, tasks=8) | nodes(3), [4, 3, 1], [4, 3, 1], [2, 1, 1]),
    (of_gpus(10, tasks=10) | nodes(4), [4, 4, 1, 1], [4, 4, 1, 1], [4, 4, 1, 1]),
    (of_gpus(4, tasks=4, cpus_per_task=3), [2, 2], [6, 6], [2, 2]),
    (of_gpus(4, tasks=6, cpus_per_task=2), [4, 2], [8, 4], [3, 1]),
    (of_gpus(8, tasks=4, cpus_per_task=2), [2, 2], [4, 4], [4, 4]),
    (of_gpus(12, tasks=6), [4, 1, 1], [4, 1, 1], [4, 4, 4]),
    (of_gpus(8, tasks=4, cpus_per_tres="gres/gpu:1"), [2, 2], [4, 4], [4, 4]),
    (of_gpus(8, tasks=8, ntasks_per_tres=1) | nodes(4), [2, 2, 2, 2], [2, 2, 2, 2], [2, 2, 2, 2]),
    ({"tasks": 8, "ntasks_per_tres": 2} | nodes(2), [4, 4], [4, 4], [2, 2]),
    ({"tasks": 8, "tres_per_node": "gres/gpu:2", "ntasks_per_tres": 2} | nodes(2), [4, 4], [4, 4], [2, 2]),
    (of_gpus(7, cpus_per_tres="gres/gpu:1") | nodes(3), [1, 1, 1], [4, 4, 4], [4, 2, 1]),
    (of_gpus(4, tasks=5, cpus_per_tres="gres/gpu:1") | nodes(2), [3, 2], [3, 3], [3, 1]),
    (of_gpus(2, tasks=6, cpus_per_tres="gres/gpu:2"), [3, 3], [4, 4], [1, 1]),
    ({"tasks": 5, "tres_per_task": "gres/gpu=1", "cpus_per_tres": "gres/gpu:2"}, [3, 2], [8, 8], [4, 1]),
    ({"tasks": 2, "tasks_per_node": 4}, [2], [4], [0]),
    ({"tasks": 3, "tasks_per_node": 4} | nodes(2), [2, 1], [4, 4], [0, 0]),
    ({"tasks": 2, "tasks_per_node": 3, "cpus_per_task": 2}, [2], [6], [0]),
    ({"tasks": 2, "tasks_per_node": 4, "overcommit": True}, [2], [1], [0]),
    ({"tasks": 2, "tasks_per_node": 10}, [2], [10], [0]),
]


@pytest.mark.parametrize(("request_", "tasks", "cpus", "gpus"), OF_EACH_NODE)
def test_tasks_cpus_and_gpus_of_each_node(request_: dict[str, Any], tasks: list[int], cpus: list[int], gpus: list[int]) -> None:
    shares = plan(snapshot(job(**request_))).starts[0].allocation.shares
    assert [share.tasks for share in shares] == tasks
    assert [share.cpus for share in shares] == cpus
    assert [sum(gres.count for gres in share.gres) for share in shares] == gpus


def test_cpus_of_gpus_are_no_fewer_than_on_a_node_before() -> None:
    wanted = of_gpus(4, cpus_per_tres="gres/gpu:2", required_nodes="n[1-2]") | nodes(2)
    assert given_to(plan(snapshot(job(**wanted), running=(busy(90, {"n1": (1, 3)}),)))) == {"n1": 2, "n2": 6}


def test_counted_features_stand_for_a_number_of_nodes() -> None:
    counted: dict[str, Any] = {"constraints": "[a100*1&cpu*1]", "minimum_nodes": 1, "maximum_nodes": 1}
    assert given_to(plan(snapshot(job(**counted)))) == {"n1": 1, "n5": 1}
    assert not plan(snapshot(job(**counted, nodes="1"))).starts


def test_gpu_numbers_avoid_those_in_use() -> None:
    made = plan(snapshot(job(tres_per_node="gres/gpu:a100:2", required_nodes="n1"), running=(busy(90, {"n1": (1, 1)}),)))
    share = made.starts[0].allocation.shares[0]
    assert share.gres == (GresShare("gpu", "a100", 2, (1, 2)),)
    assert share.cpu_ids == (1,)


def test_exclusive_gets_all_cpus_and_gpus_but_its_own_memory() -> None:
    share = plan(snapshot(job(shared="none", tasks=1))).starts[0].allocation.shares[0]
    assert (share.cpus, share.memory, share.tasks, share.gres[0].count) == (8, 800, 1, 4)


def test_all_memory() -> None:
    share = plan(snapshot(job(memory_per_node=0, required_nodes="n1"))).starts[0].allocation.shares[0]
    assert (share.cpus, share.memory) == (1, 16000)


def test_memory_per_gpu() -> None:
    made = plan(snapshot(job(tres_per_job="gres/gpu:4", memory_per_tres="gres/gpu:5000")))
    assert [(share.node, share.memory, share.gres[0].count) for share in made.starts[0].allocation.shares] == [
        ("n1", 15000, 3),
        ("n2", 5000, 1),
    ]


REASONS: list[tuple[dict[str, Any], Reason]] = [
    ({"partition": "debug", "minutes": 180}, Reason.PARTITION_TIME_LIMIT),
    ({"partition": "gpu", "minimum_nodes": 5}, Reason.PARTITION_NODE_LIMIT),
    ({"tasks": 200}, Reason.PARTITION_CONFIG),
    ({"tasks": 200, "minutes": 180}, Reason.PARTITION_CONFIG),
    ({"tasks": 200, "minimum_nodes": 9}, Reason.PARTITION_CONFIG),
    ({"partition": "gpu", "tasks": 33, "minutes": 7200}, Reason.PARTITION_CONFIG),
    ({"begin_time": NOW + 3600}, Reason.BEGIN_TIME),
    ({"partition": "nosuch"}, Reason.PARTITION_CONFIG),
]


@pytest.mark.parametrize(("request_", "reason"), REASONS)
def test_reasons(request_: dict[str, Any], reason: Reason) -> None:
    outlook = plan(snapshot(job(**request_))).outlooks[1]
    assert outlook.reason is reason
    assert outlook.start_time == (NOW + 3600 if reason is Reason.BEGIN_TIME else None)


def test_the_first_waits_for_resources_and_the_next_for_it() -> None:
    whole = busy(90, dict.fromkeys(SMALL, 8), minutes=30, whole=True)
    first = job(1, "gpu", priority=200, minimum_nodes=4, shared="none")
    second = job(2, "gpu", minutes=60, tasks=1)
    made = plan(snapshot(first, second, running=(whole,)))
    assert made.outlooks[1].reason is Reason.RESOURCES
    assert made.outlooks[1].start_time == NOW + 1800
    assert made.outlooks[1].nodes == SMALL
    assert made.outlooks[2].reason is Reason.PRIORITY
    assert made.outlooks[2].start_time == NOW + 1800 + 300


def test_backfill_into_a_hole() -> None:
    part = busy(90, {"n1": 8, "n2": 8}, minutes=30, whole=True)
    wide = job(1, "gpu", priority=200, minimum_nodes=4, shared="none")
    short, long = job(2, "gpu", minutes=30, tasks=1), job(3, "gpu", minutes=31, tasks=1)
    made = plan(snapshot(wide, short, long, running=(part,)))
    assert given_to(made, 2) == {"n3": 1}
    assert 3 in made.outlooks


def test_licences() -> None:
    holder = replace(busy(90, {"n1": 1}), request=JobRequest(licenses="matlab:3"))
    made = plan(snapshot(job(1, licenses="matlab:2"), job(2, licenses="matlab:1"), running=(holder,)))
    assert made.outlooks[1].reason is Reason.LICENSES
    assert made.outlooks[1].start_time == NOW + 3600
    assert given_to(made, 2)


def test_drained_nodes() -> None:
    nodes = NODES | {"n8": replace(NODES["n8"], flags=NodeFlag.DRAIN)}
    made = plan(snapshot(job(1, required_nodes="n8"), job(2, "cpu", minimum_nodes=3), nodes=nodes))
    assert made.outlooks[1].reason is Reason.REQ_NODE_NOT_AVAIL
    assert made.outlooks[1].description == "ReqNodeNotAvail, May be reserved for other job"
    assert set(given_to(made, 2)) == {"n5", "n6", "n7"}


@pytest.mark.parametrize(("state", "reason"), [("DOWN", Reason.PARTITION_DOWN), ("INACTIVE", Reason.PARTITION_INACTIVE)])
def test_partition_states(state: str, reason: Reason) -> None:
    made = plan(snapshot(job(1, "cpu"), cpu=replace(PARTITIONS["cpu"], state=state)))
    assert made.outlooks[1].reason is reason


def test_an_array_starts_what_fits_and_its_limit_allows() -> None:
    array = replace(job(1, "gpu", tasks=8), array_tasks=(range(10),))
    made = plan(snapshot(array))
    assert [start.allocation.nodes for start in made.starts] == [("n1",), ("n2",), ("n3",), ("n4",)]
    assert made.outlooks[1].start_time == NOW + 300
    limited = build_snapshot(
        snapshot_id=1, time=NOW, site=SITE, nodes=NODES, partitions=PARTITIONS, running=(),
        pending=[Waiting(array, startable=2)],
    )  # fmt: skip
    made = plan(limited)
    assert len(made.starts) == 2
    assert made.outlooks[1].reason is Reason.JOB_ARRAY_TASK_LIMIT


def test_the_time_limit_shrinks_when_that_starts_the_job_now() -> None:
    part = busy(90, {"n1": 8, "n2": 8}, minutes=30, whole=True)
    wide = job(1, "gpu", priority=200, minimum_nodes=4, shared="none")
    flexible = job(2, "gpu", minutes=120, tasks=1, time_minimum=10)
    made = plan(snapshot(wide, flexible, running=(part,)))
    assert [(start.job_id, start.time_limit) for start in made.starts] == [(2, 1800)]


def test_a_deadline_that_cannot_be_met() -> None:
    whole = busy(90, dict.fromkeys(SMALL, 8), minutes=30, whole=True)
    made = plan(snapshot(job(1, "gpu", deadline=NOW + 600), running=(whole,)))
    assert made.outlooks[1].reason is Reason.DEADLINE
    assert made.outlooks[1].start_time is None


def test_switches() -> None:
    used = busy(90, {"n1": 8, "n2": 8, "n3": 8, "n5": 16, "n6": 16}, minutes=2, whole=True)
    made = plan(snapshot(job(1, minimum_nodes=3, required_switches=1), running=(used,)))
    assert made.outlooks[1].start_time == NOW + 120
    assert set(given_to(plan(snapshot(job(1, minimum_nodes=3), running=(used,))))) == {"n4", "n7", "n8"}


def test_the_earliest_partition_wins() -> None:
    whole = busy(90, dict.fromkeys(SMALL, 8), minutes=30, whole=True)
    made = plan(snapshot(job(1, "gpu,cpu", tasks=4), running=(whole,)))
    assert made.starts[0].allocation.partition == "cpu"


def test_will_run() -> None:
    whole = busy(90, dict.fromkeys(SMALL, 8), minutes=30, whole=True)
    now = snapshot(job(1, "gpu", priority=200, minimum_nodes=4), running=(whole,))
    trial = pending_row(job(2, "gpu", minimum_nodes=2, shared="none"), PARTITIONS, SITE)
    assert will_run(now, trial).start_time == NOW + 1800 + 300
    trial = pending_row(job(2, "cpu", minimum_nodes=2), PARTITIONS, SITE)
    outlook = will_run(now, trial)
    assert (outlook.reason, outlook.start_time, outlook.nodes) == (Reason.NONE, NOW, ("n5", "n6"))


def test_a_reaction_keeps_promises_when_priorities_and_counts_change() -> None:
    whole = busy(90, dict.fromkeys(SMALL, 8), minutes=30, whole=True)
    array = replace(job(1, "gpu", priority=300, tasks=8), array_tasks=(range(10),))
    wide = job(2, "gpu", priority=200, minimum_nodes=4)
    cache = SnapshotCache()

    def at(time: int, *waiting: Job) -> Snapshot:
        return build_snapshot(
            snapshot_id=time, time=time, site=SITE, nodes=NODES, partitions=PARTITIONS, running=[whole],
            pending=[Waiting(one) for one in waiting], cache=cache,
        )  # fmt: skip

    made = forecast(at(NOW, array, wide))
    before = made.plan().outlooks
    assert before[1].start_time == NOW + 1800
    assert before[2].start_time == NOW + 1800 + 3 * 300
    older = [replace(array, priority=301, array_tasks=(range(9),)), replace(wide, priority=201)]
    after = plan_starts(at(NOW + 60, *older, job(3, "cpu")), made)
    assert after is not None
    told = {**before, **after.outlooks}
    assert {job_id: told[job_id].start_time for job_id in (1, 2)} == {1: NOW + 1800, 2: NOW + 1800 + 3 * 300}
    assert given_to(after, 3) == {"n5": 1}
    assert len(made.promised[1]) == 9


def test_a_named_node_is_waited_for_though_others_are_free() -> None:
    whole = busy(9, {"n8": 16}, minutes=10, whole=True)
    made = plan(
        build_snapshot(
            snapshot_id=1,
            time=NOW,
            site=SITE,
            nodes=NODES,
            partitions=PARTITIONS,
            running=[whole],
            pending=[Waiting(job(1, tasks=2, required_nodes="n8", minimum_nodes=1, maximum_nodes=1))],
            cache=SnapshotCache(),
        )
    )
    assert not made.starts
    assert made.outlooks[1].start_time == NOW + 600
    assert made.outlooks[1].nodes == ("n8",)


@pytest.mark.parametrize(
    ("request_", "changes", "expected"),
    [
        ({"minimum_nodes": 2, "maximum_nodes": 2, "tasks": 10, "shared": "none"}, {}, [5, 5]),
        ({"minimum_nodes": 3, "maximum_nodes": 3, "tasks": 7, "shared": "none"}, {}, [3, 2, 2]),
        ({"tasks": 20, "shared": "none"}, {}, [10, 10]),
        ({"minimum_nodes": 2, "maximum_nodes": 2, "tasks": 3, "tasks_per_node": 2, "shared": "none"}, {}, [2, 1]),
        ({"minimum_nodes": 2, "maximum_nodes": 2, "tasks": 10}, {}, [9, 1]),
        ({"minimum_nodes": 2, "maximum_nodes": 2, "tasks": 10, "shared": "none"}, {"pack_nodes": True}, [9, 1]),
        ({"minimum_nodes": 2, "maximum_nodes": 2, "tasks": 20, "shared": "none"}, {"pack_nodes": True}, [16, 4]),
        ({"minimum_nodes": 3, "maximum_nodes": 3, "tasks": 10, "shared": "none", "distribution": "pack"}, {}, [8, 1, 1]),
        (
            {"minimum_nodes": 2, "maximum_nodes": 2, "tasks": 10, "shared": "none", "distribution": "block,nopack"},
            {"pack_nodes": True},
            [5, 5],
        ),
    ],
)
def test_tasks_are_spread_evenly_over_whole_nodes(
    request_: dict[str, Any], changes: dict[str, Any], expected: list[int]
) -> None:
    [start] = plan(snapshot(job(partition="cpu", **request_), site=replace(SITE, **changes))).starts
    assert [share.tasks for share in start.allocation.shares] == expected


def test_what_is_preferred_is_tried_first_and_done_without() -> None:
    preferring = {"minimum_nodes": 1, "maximum_nodes": 1, "shared": "none", "prefer": "cpu", "constraints": "a100"}
    jobs = [job(number, priority=100 - number, **preferring) for number in range(1, 9)]
    made = plan(snapshot(*jobs))
    assert [start.allocation.nodes[0] for start in made.starts] == ["n5", "n6", "n7", "n8", "n1", "n2", "n3", "n4"]
    unknown = plan(snapshot(job(minimum_nodes=1, prefer="nosuch", constraints="cpu")))
    assert [start.allocation.nodes for start in unknown.starts] == [("n5",)]


@pytest.mark.parametrize(
    ("request_", "partition", "site", "waits"),
    [
        ({"memory_per_node": 3000}, 2000, None, True),
        ({"memory_per_node": 2000}, 2000, None, False),
        ({"memory_per_cpu": 1500, "cpus_per_task": 2}, 2000, None, True),
        ({"memory_per_node": 3000}, None, 2000, True),
        ({"memory_per_node": 3000}, 4000, 2000, False),
        ({"memory_per_node": 0}, 2000, None, True),
        ({}, 2000, None, True),
        ({}, None, None, False),
        ({"tasks": 4, "maximum_nodes": 1, "memory_per_cpu": 600}, 2000, None, True),
        ({"tasks": 4, "maximum_nodes": 4, "memory_per_cpu": 600}, 2000, None, False),
    ],
)
@pytest.mark.parametrize("consumable", [True, False])
def test_more_memory_on_a_node_than_a_partition_lets_jobs_have(
    request_: dict[str, Any], partition: int | None, site: int | None, waits: bool, consumable: bool
) -> None:
    debug = replace(PARTITIONS["debug"], maximum_memory_per_node=partition)
    wanted = job(minimum_nodes=1, **request_)
    there = replace(SITE, maximum_memory_per_node=site, memory_is_consumable=consumable, default_memory_per_cpu=None)
    there = replace(there, default_memory_per_node=None)
    outlook = plan(snapshot(wanted, site=there, debug=debug)).outlooks.get(1)
    assert (outlook is not None and outlook.reason is Reason.MAX_MEM_PER_LIMIT) == waits


@pytest.mark.parametrize(
    ("request_", "site", "partition", "cpus", "memory"),
    [
        ({"tres_per_job": "gres/gpu:2"}, "", "DefCpuPerGPU=2,DefMemPerGPU=1000", 4, 2000),
        ({"tres_per_node": "gres/gpu:2"}, "DefCpuPerGPU=2,DefMemPerGPU=1000", "", 4, 2000),
        ({"tres_per_node": "gres/gpu:1"}, "DefCpuPerGPU=2", "DefCpuPerGPU=3,DefMemPerGPU=500", 3, 500),
        ({"tres_per_node": "gres/gpu:1", "cpus_per_task": 4}, "", "DefCpuPerGPU=2,DefMemPerGPU=1000", 4, 1000),
        ({"tasks": 3, "tres_per_task": "gres/gpu:1"}, "", "DefCpuPerGPU=2,DefMemPerGPU=1000", 6, 3000),
        ({"tres_per_job": "gres/gpu:2", "memory_per_node": 500}, "DefCpuPerGPU=3", "DefMemPerGPU=1000", 6, 500),
        ({"tres_per_node": "gres/gpu:1", "cpus_per_tres": "gres/gpu:1"}, "", "DefCpuPerGPU=3", 1, 100),
        ({"tasks": 1}, "", "DefCpuPerGPU=2,DefMemPerGPU=1000", 1, 100),
    ],
)
def test_what_comes_with_each_gpu(request_: dict[str, Any], site: str, partition: str, cpus: int, memory: int) -> None:
    gpu = replace(PARTITIONS["gpu"], job_defaults=partition)
    wanted = job(partition="gpu", **{"minimum_nodes": 1, "maximum_nodes": 1, **request_})
    [start] = plan(snapshot(wanted, site=replace(SITE, parameters={"JobDefaults": site}), gpu=gpu)).starts
    assert (start.allocation.cpus, start.allocation.memory) == (cpus, memory)


@pytest.mark.parametrize(
    ("nodes", "fewest", "most", "tasks", "used", "given"),
    [
        ("1,3", 1, 3, 3, 0, 3),
        ("1,3", 1, 3, 3, 2, 1),  # two nodes are free, but two will not do
        ("2-4:2", 2, 4, 8, 0, 4),
        ("2-4:2", 2, 4, 8, 1, 2),
        ("1,2,4", 1, 4, 2, 0, 2),
        ("1-4", 1, 4, 3, 1, 3),
        ("3,4", 3, 4, 4, 2, 0),
    ],
)
def test_listed_numbers_of_nodes(nodes: str, fewest: int, most: int, tasks: int, used: int, given: int) -> None:
    running = [busy(90 + number, {f"n{5 + number}": 16}, whole=True) for number in range(used)]
    wanted = job(partition="cpu", nodes=nodes, minimum_nodes=fewest, maximum_nodes=most, tasks=tasks)
    made = plan(snapshot(wanted, running=tuple(running)))
    assert sum(len(start.allocation.nodes) for start in made.starts) == given
