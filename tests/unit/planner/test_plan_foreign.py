"""What others than slurmk hold of nodes, and nodes that take nothing: no plan counts on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.model.job import Allocation, Credentials, Job, JobRequest, NodeShare
from slurmk.model.node import GresCapacity, Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import JobState, NodeFlag, NodeState, Reason
from slurmk.planner.build import Waiting, build_snapshot
from slurmk.planner.plan import plan
from slurmk.planner.snapshot import Plan, Snapshot

NOW = 1_000_000
ALICE = Credentials(1001, 1001, "alice", "alice")
GPUS = (GresCapacity("gpu", "a100", 2), GresCapacity("gpu", "h100", 2))


def node(name: str, **fields: Any) -> Node:
    return Node(name, **{"cpus": 8, "cores_per_socket": 8, "memory": 8000, "gres": GPUS, **fields})


def job(job_id: int = 1, **request: Any) -> Job:
    return Job(job_id, JobRequest(**request), ALICE, submit_time=NOW, priority=1000 - job_id, partitions=("p",), time_limit=5)


def snapshot(nodes: list[Node], *pending: Job, running: tuple[Job, ...] = ()) -> Snapshot:
    partition = Partition("p", tuple(each.name for each in nodes), default=True)
    site = Site("c", tuple(nodes), (partition,), default_memory_per_cpu=100)
    return build_snapshot(
        snapshot_id=1,
        time=NOW,
        site=site,
        nodes={each.name: each for each in nodes},
        partitions={"p": partition},
        running=running,
        pending=[Waiting(each) for each in pending],
    )


def nodes_of(made: Plan) -> dict[int, tuple[str, ...]]:
    return {start.job_id: start.allocation.nodes for start in made.starts}


@pytest.mark.parametrize(
    ("held", "request_"),
    [
        ({"foreign_cpus": 5}, {"tasks": 4}),
        ({"foreign_memory": 7800}, {"tasks": 4}),
        ({"foreign_gres": (("gpu:a100", 1),)}, {"tres_per_node": "gres/gpu:a100:2"}),
        ({"foreign_gres": (("gpu:a100", 1),)}, {"tres_per_node": "gres/gpu:4"}),
        ({"maximum_jobs": 0}, {"tasks": 1}),
    ],
)
def test_what_others_hold_is_not_given(held: dict[str, Any], request_: dict[str, Any]) -> None:
    wanted = job(**{"minimum_nodes": 1, **request_})
    assert nodes_of(plan(snapshot([node("n1"), node("n2")], wanted))) == {1: ("n1",)}
    assert nodes_of(plan(snapshot([node("n1", **held), node("n2")], wanted))) == {1: ("n2",)}
    assert nodes_of(plan(snapshot([node("n1", **held)], wanted))) == {}


def test_a_job_that_only_others_keep_out_waits_for_resources() -> None:
    made = plan(snapshot([node("n1", foreign_cpus=5)], job(minimum_nodes=1, tasks=4), job(2, minimum_nodes=1, tasks=3)))
    assert nodes_of(made) == {2: ("n1",)}
    assert made.outlooks[1].reason is Reason.RESOURCES
    assert made.outlooks[1].start_time is None


def test_a_job_that_is_too_large_for_the_nodes_is_told_so() -> None:
    made = plan(snapshot([node("n1", foreign_cpus=1)], job(minimum_nodes=1, tasks=9)))
    assert made.outlooks[1].reason is Reason.PARTITION_CONFIG


@pytest.mark.parametrize(
    "closed",
    [
        {"refusal": "Taint a:NoSchedule"},
        {"flags": NodeFlag.DRAIN},
        {"flags": NodeFlag.NO_RESPOND},
        {"state": NodeState.DOWN},
    ],
)
def test_nodes_that_take_nothing(closed: dict[str, Any]) -> None:
    made = plan(snapshot([node("n1", **closed), node("n2")], job(minimum_nodes=1), job(2, minimum_nodes=2)))
    assert nodes_of(made) == {1: ("n2",)}
    assert made.outlooks[2].reason is Reason.REQ_NODE_NOT_AVAIL


def test_a_whole_node_is_what_others_leave() -> None:
    made = plan(snapshot([node("n1", foreign_cpus=2, foreign_gres=(("gpu:a100", 1),))], job(minimum_nodes=1, shared="none")))
    (share,) = made.starts[0].allocation.shares
    assert share.cpus == 6
    assert {(gres.type, gres.count) for gres in share.gres} == {("a100", 1), ("h100", 2)}


def test_no_more_jobs_than_pods_may_come() -> None:
    waiting = [job(number, minimum_nodes=1) for number in range(1, 6)]
    made = plan(snapshot([node("n1", maximum_jobs=2), node("n2", maximum_jobs=1)], *waiting))
    assert nodes_of(made) == {1: ("n1",), 2: ("n1",), 3: ("n2",)}
    assert all(made.outlooks[number].reason in (Reason.RESOURCES, Reason.PRIORITY) for number in (4, 5))


def test_a_node_on_which_others_took_what_a_job_has_hides_no_other() -> None:
    share = NodeShare("n1", 8, 800, 8, (), tuple(range(8)))
    running = replace(job(9), state=JobState.RUNNING, start_time=NOW, allocation=Allocation("p", (share,)))
    nodes = [node("n1", foreign_cpus=8), node("n2")]
    assert nodes_of(plan(snapshot(nodes, job(minimum_nodes=1, tasks=8), running=(running,)))) == {1: ("n2",)}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 8), st.integers(0, 8000), st.integers(0, 2), st.one_of(st.none(), st.integers(0, 4)), st.booleans()
        ),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(0, 2), st.booleans()), min_size=1, max_size=8),
)
@settings(max_examples=60, deadline=None)
def test_no_plan_takes_what_is_not_free(
    held: list[tuple[int, int, int, int | None, bool]], wanted: list[tuple[int, int, int, bool]]
) -> None:
    nodes = {
        f"n{number}": node(
            f"n{number}",
            foreign_cpus=cpus,
            foreign_memory=memory,
            foreign_gres=(("gpu:a100", gpus),) if gpus else (),
            maximum_jobs=jobs,
            refusal="Taint" if refused else "",
        )
        for number, (cpus, memory, gpus, jobs, refused) in enumerate(held)
    }
    waiting = [
        job(
            number,
            minimum_nodes=count,
            tasks=max(tasks, count),
            shared="none" if whole else None,
            tres_per_node=f"gres/gpu:a100:{gpus}" if gpus else None,
        )
        for number, (count, tasks, gpus, whole) in enumerate(wanted, 1)
    ]
    made = plan(snapshot(list(nodes.values()), *waiting))
    for name, each in nodes.items():
        shares = [share for start in made.starts for share in start.allocation.shares if share.node == name]
        if each.refusal:
            assert not shares
        assert sum(share.cpus for share in shares) <= each.cpus - each.foreign_cpus
        assert sum(share.memory for share in shares) <= max(0, each.memory - each.foreign_memory)
        a100 = sum(gres.count for share in shares for gres in share.gres if gres.type == "a100")
        assert a100 <= 2 - dict(each.foreign_gres).get("gpu:a100", 0)
        assert each.maximum_jobs is None or len(shares) <= each.maximum_jobs
