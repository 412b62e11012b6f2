"""Where steps go: as the reference was seen to do it on a job of two nodes with two CPUs each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from slurmk.stepd.layout import (
    BUSY,
    NO_MEMORY,
    NO_SUCH_GRES,
    NO_SUCH_NODES,
    TOO_MANY,
    Busy,
    Holding,
    Layout,
    Refused,
    hold,
    lay_out,
)


def job(nodes: int = 2, cpus: int = 2, gpus: int = 0, **request: Any) -> dict[str, Any]:
    gres = [{"name": "gpu", "type": "a100", "count": gpus, "indices": list(range(gpus))}] if gpus else []
    share = {"cpus": cpus, "memory": 100 * cpus, "gres": gres}
    return {"nodes": [{"node": f"n{number + 1}", **share} for number in range(nodes)], "request": request}


def free(of: dict[str, Any]) -> list[Holding]:
    return [Holding(share) for share in of["nodes"]]


def laid(of: dict[str, Any], holdings: list[Holding] | None = None, first: int = 0, **request: Any) -> Layout:
    return lay_out(of, request, holdings or free(of), first)


@pytest.mark.parametrize(
    ("request_", "ranks"),
    [
        ({"tasks": 4}, [[0, 1], [2, 3]]),
        ({"tasks": 3}, [[0, 1], [2]]),
        ({"tasks": 2}, [[0], [1]]),
        ({"tasks": 4, "distribution": "cyclic"}, [[0, 2], [1, 3]]),
        ({"tasks": 4, "distribution": "plane", "plane_size": 1}, [[0, 2], [1, 3]]),
        ({"tasks": 4, "distribution": "plane", "plane_size": 2}, [[0, 1], [2, 3]]),
        ({"tasks": 7, "overcommit": True}, [[0, 1, 2, 3], [4, 5, 6]]),
        ({"minimum_nodes": 2, "tasks_per_node": 1}, [[0], [1]]),
        ({"minimum_nodes": 1, "tasks": 2}, [[0, 1]]),
        ({"minimum_nodes": 2}, [[0], [1]]),
    ],
)
def test_tasks_of_nodes(request_: dict[str, Any], ranks: list[list[int]]) -> None:
    assert laid(job(), **request_).ranks == ranks


@pytest.mark.parametrize(
    ("request_", "counts"),
    [
        ({"minimum_nodes": 1, "maximum_nodes": 3}, [1, 1, 1]),  # a range: as many as the job has
        ({"minimum_nodes": 1, "maximum_nodes": 9}, [1, 1, 1, 1]),
        ({"minimum_nodes": 1, "maximum_nodes": 3, "tasks_per_node": 2}, [2, 2, 2]),
        ({"minimum_nodes": 4, "cpus_per_task": 1}, [8, 8, 8, 8]),
        ({"minimum_nodes": 2, "maximum_nodes": 2, "cpus_per_task": 3}, [2, 2]),
        ({"minimum_nodes": 1, "maximum_nodes": 2, "cpus_per_task": 4}, [2, 2]),
        ({"minimum_nodes": 2, "maximum_nodes": 2, "cpus_per_task": 4, "tasks_per_node": 1}, [1, 1]),
        ({"minimum_nodes": 1, "maximum_nodes": 1, "cpus_per_task": 3, "overcommit": True}, [2]),
    ],
)
def test_tasks_that_were_not_said(request_: dict[str, Any], counts: list[int]) -> None:
    assert laid(job(nodes=4, cpus=8), **request_).counts == counts


def test_arbitrary_distribution_follows_the_list() -> None:
    layout = laid(job(), tasks=4, distribution="arbitrary", nodelist="n2,n1,n1,n2")
    assert layout.job_nodes == [0, 1]
    assert layout.ranks == [[1, 2], [0, 3]]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"tasks": 5}, TOO_MANY),
        ({"tasks": 1, "cpus_per_task": 4}, TOO_MANY),
        ({"tasks": 3, "minimum_nodes": 1, "maximum_nodes": 1}, TOO_MANY),
        ({"tasks": 1, "nodelist": "n9"}, NO_SUCH_NODES),
        ({"tasks": 1, "nodelist": "n["}, NO_SUCH_NODES),
        ({"tasks": 1, "exclude": "n[1-2]"}, NO_SUCH_NODES),
        ({"tasks": 2, "gres": "gres/gpu:1"}, NO_SUCH_GRES),
        ({"tasks": 0}, TOO_MANY),
        ({"tasks": 10**9, "overcommit": True}, TOO_MANY),
    ],
)
def test_what_the_job_can_never_give(request_: dict[str, Any], text: str) -> None:
    with pytest.raises(Refused, match=text.replace("(", r"\(").replace(")", r"\)")):
        laid(job(), **request_)


def test_a_plain_step_takes_all_cpus_of_its_node_and_the_next_goes_elsewhere() -> None:
    of = job()
    holdings = free(of)
    first = laid(of, holdings, tasks=1, minimum_nodes=1)
    assert (first.job_nodes, first.cpus) == ([0], [2])
    hold(first, holdings)
    second = laid(of, holdings, tasks=1, minimum_nodes=1)
    assert second.job_nodes == [1]
    hold(second, holdings)
    with pytest.raises(Busy, match=BUSY):
        laid(of, holdings, tasks=1, minimum_nodes=1)
    assert laid(of, holdings, tasks=1, minimum_nodes=1, overlap=True).cpus == [2]
    hold(first, holdings, -1)
    assert laid(of, holdings, tasks=1, minimum_nodes=1).job_nodes == [0]


@pytest.mark.parametrize("how", [{"exact": True}, {"cpus_per_task": 1}])
def test_exact_steps_share_a_node(how: dict[str, Any]) -> None:
    of = job(nodes=1, cpus=4)
    holdings = free(of)
    for _ in range(4):
        layout = laid(of, holdings, tasks=1, **how)
        assert layout.cpus == [1]
        hold(layout, holdings)
    with pytest.raises(Busy):
        laid(of, holdings, tasks=1, **how)


def test_gpus_of_steps_side_by_side_differ() -> None:
    of = job(nodes=1, cpus=4, gpus=4)
    holdings = free(of)
    seen: list[int] = []
    for _ in range(2):
        layout = laid(of, holdings, tasks=1, exact=True, gres="gres/gpu:a100:2")
        hold(layout, holdings)
        seen += layout.gres[0][0]["indices"]
    assert sorted(seen) == [0, 1, 2, 3]
    with pytest.raises(Busy):
        laid(of, holdings, tasks=1, exact=True, gres="gres/gpu:1")
    assert laid(of, holdings, tasks=1, exact=True, no_gres=True).gres == [[]]


def test_a_step_goes_where_its_tasks_fit() -> None:
    of = job(nodes=2)
    of["nodes"][0]["cpus"] = 3
    of["nodes"][1]["cpus"] = 1
    assert laid(of, first=1, tasks=2, minimum_nodes=1, maximum_nodes=1).job_nodes == [0]


def test_steps_that_hold_nothing() -> None:
    of = job(nodes=3, gpus=2)
    holdings = free(of)
    hold(laid(of, holdings, tasks=6), holdings)
    shell = laid(of, holdings, tasks=6, interactive=True)
    assert (shell.job_nodes, shell.ranks, shell.cpus, shell.holds) == ([0], [[0]], [2], False)
    daemons = laid(of, holdings, minimum_nodes=2, external_launcher=True)
    assert (daemons.job_nodes, daemons.ranks) == ([0, 1], [[0], [1]])
    assert daemons.gres[0] == of["nodes"][0]["gres"]


def test_steps_go_round_the_nodes_and_relative_counts_from_the_first() -> None:
    assert laid(job(nodes=4), first=2, tasks=1, minimum_nodes=1).job_nodes == [2]
    assert laid(job(nodes=4), first=2, tasks=2, minimum_nodes=2, relative=1).job_nodes == [1, 2]
    assert laid(job(nodes=4), tasks=1, minimum_nodes=1, exclude="n1").job_nodes == [1]


@given(
    nodes=some.integers(1, 5),
    cpus=some.integers(1, 6),
    steps=some.lists(
        some.fixed_dictionaries(
            {
                "tasks": some.integers(1, 12),
                "exact": some.booleans(),
                "cpus_per_task": some.one_of(some.none(), some.integers(1, 3)),
                "minimum_nodes": some.one_of(some.none(), some.integers(1, 5)),
                "distribution": some.sampled_from([None, "block", "cyclic", "plane"]),
                "overcommit": some.booleans(),
            }
        ),
        max_size=8,
    ),
)
def test_steps_never_hold_more_than_the_job_has_and_every_rank_has_one_place(
    nodes: int, cpus: int, steps: list[dict[str, Any]]
) -> None:
    of = job(nodes, cpus)
    holdings = free(of)
    running = []
    for request in steps:
        try:
            layout = lay_out(of, request, holdings, 0)
        except (Busy, Refused):
            continue
        assert sorted(rank for ranks in layout.ranks for rank in ranks) == list(range(request["tasks"]))
        assert all(layout.counts)
        hold(layout, holdings)
        running.append(layout)
        assert all(0 <= holding.cpus <= cpus for holding in holdings)
    for layout in running:
        hold(layout, holdings, -1)
    assert all(holding.cpus == 0 and holding.memory == 0 for holding in holdings)


def test_exact_steps_hold_whole_cores() -> None:
    """A step that asked for its CPUs alone holds the cores they are on, and counts what it asked for."""
    threaded = job(nodes=1, cpus=8)
    threaded["nodes"][0]["threads"] = 2
    holdings = free(threaded)
    layout = laid(threaded, holdings, tasks=3, exact=True, memory_per_cpu=5)
    assert (layout.cpus, layout.counted, layout.memory) == ([4], [3], [15])
    hold(layout, holdings)
    assert holdings[0].free_cpus == 4
    layout = laid(threaded, tasks=2)
    assert (layout.cpus, layout.counted) == ([8], [8])


def test_steps_of_a_job_that_leaves_threads_idle() -> None:
    """--threads-per-core=1 on cores of two: half of the CPUs take tasks, and each goes with one that stays idle."""
    idle = job(nodes=1, cpus=6)
    idle["nodes"][0] |= {"threads": 2, "idle_cpus": 3, "memory": 300}
    idle["request"]["memory_per_cpu"] = 100
    with pytest.raises(Refused, match=TOO_MANY):
        laid(idle, tasks=4)
    assert laid(idle, tasks=3).ranks == [[0, 1, 2]]
    layout = laid(idle, tasks=1, cpus_per_task=2)
    assert (layout.cpus, layout.counted, layout.memory) == ([4], [4], [200])


def test_memory_that_the_job_does_not_have_is_refused() -> None:
    """At once, for it will never be free; what other steps hold is waited for."""
    with pytest.raises(Refused, match=NO_MEMORY):
        laid(job(), tasks=1, minimum_nodes=1, memory_per_node=201)
    holdings = free(job(nodes=1))
    hold(laid(job(nodes=1), holdings, tasks=1, exact=True, memory_per_node=150), holdings)
    with pytest.raises(Busy):
        laid(job(nodes=1), holdings, tasks=1, exact=True, memory_per_node=100)
