"""priority/multifactor: every factor counts with its weight."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_story import ALICE, BOB, ROOT, Cluster, small_site

from slurmk.core.priority import Directory, Factors
from slurmk.core.tres_priority import weights_of
from slurmk.model.site import Site


def site_with(**weights: int) -> Site:
    return small_site(priority_type="priority/multifactor", priority_weights=weights)


def factors(cluster: Cluster, job_id: int) -> Factors:
    return cluster.machine.priority_factors(cluster.job(job_id), cluster.now)


def test_age() -> None:
    cluster = Cluster(replace(site_with(age=1000), priority_maximum_age=1000))
    job = cluster.submit(BOB)
    cluster.now += 250
    assert factors(cluster, job).age == 250
    cluster.now += 9999
    assert factors(cluster, job).age == 1000


@pytest.mark.parametrize(("small", "order"), [(False, [1, 2]), (True, [2, 1])])
def test_size(small: bool, order: list[int]) -> None:
    cluster = Cluster(replace(site_with(job_size=10000), priority_favor_small=small))
    cluster.submit(BOB, partition="cpu", minimum_nodes=4, maximum_nodes=4, tasks=64)
    cluster.submit(BOB, partition="cpu", tasks=1)
    jobs = sorted((1, 2), key=lambda job: -cluster.job(job).priority)
    assert jobs == order


@pytest.mark.parametrize(
    "request_of",
    [
        {"tres_per_job": "gres/gpu:2"},
        {"tres_per_node": "gres/gpu:1", "minimum_nodes": 2, "maximum_nodes": 2},
        {"tres_per_task": "gres/gpu:1", "tasks": 2},
    ],
)
def test_the_size_counts_the_cpus_that_come_with_gpus(request_of: dict[str, object]) -> None:
    cluster = Cluster(site_with(job_size=100000))
    nodes = {"minimum_nodes": 2, "maximum_nodes": 2} if "minimum_nodes" in request_of else {}
    plain = cluster.job(cluster.submit(BOB, partition="gpu", tasks=8, **nodes)).priority
    with_gpus = cluster.job(cluster.submit(BOB, partition="gpu", cpus_per_tres="gres/gpu:4", **request_of)).priority
    assert with_gpus == plain


def test_partition_and_qos_and_association() -> None:
    site = site_with(partition=1000, qos=2000, assoc=500, fairshare=100)
    first, *others = site.partitions
    cluster = Cluster(replace(site, partitions=(replace(first, priority_job_factor=4), *others)))
    cluster.machine.users = Directory(
        qos={"normal": 50, "high": 100},
        association={("alice", "phys"): 0.5},
        fair_share={("alice", "phys"): 0.25},
        other_fair_share=0.0,
    )
    mine = factors(cluster, cluster.submit(ALICE, account="phys", qos="high"))
    assert (mine.partition, mine.qos, mine.association, mine.fair_share) == (1000, 2000, 250, 25)
    assert mine.total == 3275
    other = factors(cluster, cluster.submit(BOB, account="phys", partition="cpu"))
    assert (other.partition, other.qos, other.association, other.fair_share) == (250, 1000, 0, 0)


def test_tres() -> None:
    site = site_with()
    cluster = Cluster(replace(site, parameters={"PriorityWeightTRES": "CPU=1000,Mem=2000,GRES/gpu=3000,License/x=5"}))
    job = cluster.submit(BOB, partition="gpu", tasks=8, memory_per_node=16000, tres_per_node="gres/gpu:4")
    found = factors(cluster, job)
    assert found.shares.tres == (("cpu", 0.25), ("mem", 0.25), ("gres/gpu", 0.25), ("license/x", 0.0))
    assert found.total == 250 + 500 + 750


def test_weights_of_tres_are_read() -> None:
    assert weights_of("CPU=1,Mem=-2.5,bad,GRES/gpu=x, Node=3") == (("cpu", 1.0), ("mem", -2.5), ("node", 3.0))


def test_nice_and_site_factor_and_a_priority_that_was_given() -> None:
    cluster = Cluster(site_with(qos=1000))
    cluster.machine.users = Directory(qos={"normal": 1})
    assert cluster.job(cluster.submit(BOB, nice=100)).priority == 900
    assert cluster.job(cluster.submit(BOB, site_factor=50)).priority == 1050
    assert cluster.job(cluster.submit(ROOT, priority=7)).priority == 7
    assert cluster.job(cluster.submit(BOB, nice=5000)).priority == 1
