"""What steps get of their job's tasks, CPUs, memory and GPUs, as the reference was seen to give it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from slurmk.stepd.environment import device_variables, frequency_lines, gpu_indices, step_environment
from slurmk.stepd.layout import NO_SUCH_GRES, TOO_MANY, Busy, Holding, Layout, Refused, distribute, lay_out


def job(*nodes: tuple[int, int], whole: bool = False, **request: Any) -> dict[str, Any]:
    """A job of nodes with so many CPUs and GPUs each."""
    shares = [
        {
            "node": f"n{number}",
            "cpus": cpus,
            "memory": 100 * cpus,
            "gres": [{"name": "gpu", "type": "a100", "count": gpus, "indices": list(range(gpus))}] if gpus else [],
        }
        for number, (cpus, gpus) in enumerate(nodes, 1)
    ]
    return {"nodes": shares, "request": request, "whole_nodes": whole}


def laid(of: dict[str, Any], **request: Any) -> Layout:
    return lay_out(of, request, [Holding(share) for share in of["nodes"]], 0)


def gpus(layout: Layout) -> list[list[int]]:
    return [gpu_indices(each) for each in layout.gres]


@pytest.mark.parametrize(
    ("tasks", "room", "request_", "counts"),
    [
        (4, [4, 4], {}, [2, 2]),
        (5, [4, 4], {}, [3, 2]),
        (5, [5, 1], {}, [4, 1]),
        (6, [5, 1], {"tasks_per_node": 3}, [4, 2]),
        (4, [5, 1], {"tasks_per_node": 2}, [3, 1]),
        (4, [4, 4], {"distribution": "*:block"}, [2, 2]),
    ],
)
def test_blocks_have_as_many_tasks_as_if_these_went_round_the_nodes(
    tasks: int, room: list[int], request_: dict[str, Any], counts: list[int]
) -> None:
    ranks = distribute(tasks, room, request_)
    assert [len(each) for each in ranks] == counts
    assert [rank for each in ranks for rank in each] == list(range(tasks))


def test_packed_blocks_fill_a_node_before_the_next() -> None:
    assert laid(job((4, 0), (4, 0)), tasks=3, distribution="block,pack", minimum_nodes=2, maximum_nodes=2).ranks == [[0, 1, 2]]
    packing = {**job((4, 0), (4, 0)), "pack_nodes": True}
    assert laid(packing, tasks=5).counts == [4, 1]
    assert laid(packing, tasks=5, distribution="block,nopack").counts == [3, 2]


def test_a_range_of_nodes_takes_as_many_as_there_are_tasks_for() -> None:
    assert laid(job((4, 0), (4, 0)), tasks=4, minimum_nodes=1, maximum_nodes=2).counts == [2, 2]
    assert laid(job((4, 0), (4, 0)), tasks=1, minimum_nodes=1, maximum_nodes=2).counts == [1]


def test_a_star_in_a_distribution_is_the_usual_word() -> None:
    assert laid(job((4, 0), (4, 0)), tasks=4, distribution="*:block").distribution == "block:block"
    assert laid(job((4, 0), (4, 0)), tasks=2, distribution="*:block").distribution == "cyclic:block"


def test_the_gpus_of_a_step_are_spread_over_its_nodes() -> None:
    of = job((4, 3), (4, 1))
    assert gpus(laid(of, tasks=2, gres_per_step="gres/gpu:4")) == [[0, 1, 2], [0]]
    assert gpus(laid(of, tasks=2, gres_per_step="gres/gpu:2")) == [[0], [0]]
    assert gpus(laid(of, tasks=2, gres_per_step="gres/gpu:1")) == [[0], []]
    with pytest.raises(Refused, match=NO_SUCH_GRES.replace("(", "[(]").replace(")", "[)]")):
        laid(of, tasks=2, gres_per_step="gres/gpu:999999999999")


def test_more_tasks_than_their_gpus_allow_are_too_many() -> None:
    with pytest.raises(Refused, match=TOO_MANY):
        laid(job((4, 2)), tasks=3, gres_per_task="gres/gpu:1")
    with pytest.raises(Refused, match="Invalid generic resource"):
        laid(job((4, 2)), tasks=1, gres_per_task="gres/gpu:3")


def test_cpus_of_gpus_are_all_that_a_step_gets() -> None:
    assert laid(job((4, 2), (4, 2)), tasks=2, gres_per_step="gres/gpu:2", cpus_per_gres="gres/gpu:2").cpus == [2, 2]
    with pytest.raises(Refused, match=TOO_MANY):
        laid(job((4, 2)), tasks=1, gres_per_step="gres/gpu:2", cpus_per_gres="gres/gpu:4")


def test_memory_of_cpus_counts_all_that_the_step_gets() -> None:
    """Its tasks' CPUs must have it; those that come along are only told of."""
    assert laid(job((4, 0), (4, 0)), tasks=2, memory_per_cpu=200).memory == [800, 800]
    with pytest.raises(Refused, match=TOO_MANY):
        laid(job((4, 0), (4, 0)), tasks=8, memory_per_cpu=200)
    with pytest.raises(Busy):
        laid(job((4, 0), (4, 0)), tasks=2, memory_per_cpu=500)


def test_a_step_has_the_gpus_that_its_exclusive_job_asked_for() -> None:
    assert gpus(laid(job((4, 4), whole=True), tasks=1)) == [[]]
    assert gpus(laid(job((4, 4), whole=True, tres_per_node="gres/gpu:1"), tasks=1)) == [[0]]
    assert gpus(laid(job((4, 4), tres_per_node="gres/gpu:4"), tasks=1)) == [[0, 1, 2, 3]]


@given(some.integers(1, 40), some.lists(some.integers(0, 9), min_size=1, max_size=6), some.integers(1, 9))
def test_every_task_is_on_one_node(tasks: int, room: list[int], limit: int) -> None:
    for request in ({}, {"tasks_per_node": limit}, {"distribution": "cyclic"}, {"distribution": "plane", "plane_size": limit}):
        if sum(room) or request.get("distribution") != "plane":
            assert sorted(rank for each in distribute(tasks, room, request) for rank in each) == list(range(tasks))


def test_shards_have_the_variables_of_their_gpus() -> None:
    share = [{"name": "shard", "type": "", "count": 3, "indices": [2, 3, 6], "each": 2}]
    assert device_variables(share, "SLURM_JOB_GPUS") == {
        **dict.fromkeys(("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"), "1,3"),
        "SLURM_GPUS_ON_NODE": "2",
        "SLURM_JOB_GPUS": "1,3",
        "SLURM_SHARDS_ON_NODE": "3",
    }
    assert device_variables([], "SLURM_JOB_GPUS") == {}


def test_a_share_of_a_gpu_by_mps_is_told_as_a_percentage() -> None:
    share = [{"name": "mps", "type": "", "count": 50, "indices": list(range(200, 250)), "each": 200}]
    assert device_variables(share, "SLURM_JOB_GPUS") == {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25", "CUDA_VISIBLE_DEVICES": "0"}


def test_the_first_task_of_a_node_with_gpus_hears_that_no_frequency_is_set() -> None:
    share = [{"name": "gpu", "type": "", "count": 1, "indices": [0]}]
    assert frequency_lines(0, share, {"tres_freq": "gpu:high"}) == ["GpuFreq=control_disabled"]
    assert not frequency_lines(1, share, {"tres_freq": "gpu:high"})
    assert not frequency_lines(0, [], {"tres_freq": "gpu:high"})
    assert not frequency_lines(0, share, {})


def test_tasks_see_the_licences_of_their_job() -> None:
    described = {
        **job((1, 0), licenses="matlab:1"),
        **dict.fromkeys(("cluster", "account", "name", "partition", "qos", "sluid", "user", "group"), "x"),
        **dict.fromkeys(("job", "uid", "gid", "start_time", "end_time", "restart"), 1),
        "array": None,
    }
    step = {
        **dict.fromkeys(("address", "distribution"), "x"),
        "environment": {},
        "job_nodes": [0],
        "counts": [1],
        "cpus": [1],
        "ranks": [[0]],
        "gres": [[]],
        "nodes": ["n1"],
        "step": 0,
        "port": 1,
        "umask": 0o22,
    }
    assert step_environment(described, step, 0)["SLURM_JOB_LICENSES"] == "matlab:1"
