"""Partitions whose jobs share CPUs, limits of CPUs by node and socket, and nodes with GPUs kept for jobs that want some."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_story import ALICE, BOB, Cluster, small_site

from slurmk.core.events import Planned
from slurmk.model.node import GresCapacity, Partition
from slurmk.model.site import Site, Switch
from slurmk.model.states import Reason
from slurmk.planner.plan import plan


def site_with(**changes: object) -> Site:
    site = small_site()
    cpu = replace(site.partitions[2], default_time=60, **changes)  # type: ignore[arg-type]
    return replace(site, partitions=(*site.partitions[:2], cpu))


def share(cluster: Cluster, job_id: int) -> tuple[str, int]:
    allocation = cluster.job(job_id).allocation
    assert allocation is not None
    return allocation.shares[0].node, allocation.shares[0].cpus


def submit(cluster: Cluster, count: int, **request: object) -> list[int]:
    return [
        cluster.submit(BOB, partition="cpu", minimum_nodes=1, maximum_nodes=1, required_nodes="n5", **request)
        for _ in range(count)
    ]


def test_forced_sharing_gives_each_cpu_several_times() -> None:
    cluster = Cluster(site_with(oversubscribe="FORCE:2"))
    jobs = submit(cluster, 3, tasks=16, memory_per_node=100)
    cluster.plan()
    assert cluster.launched() == jobs[:2]
    assert [share(cluster, job) for job in jobs[:2]] == [("n5", 16), ("n5", 16)]
    ids = [cluster.job(job).allocation.shares[0].cpu_ids for job in jobs[:2]]  # type: ignore[union-attr]
    assert [len(each) for each in ids] == [16, 16]
    assert cluster.machine.outlooks[jobs[2]].start_time == int(cluster.now) + 3600


def test_cpus_that_nobody_has_are_given_first() -> None:
    cluster = Cluster(site_with(oversubscribe="FORCE:4"))
    jobs = submit(cluster, 3, tasks=8, memory_per_node=100)
    cluster.plan()
    ids = [cluster.job(job).allocation.shares[0].cpu_ids for job in jobs]  # type: ignore[union-attr]
    assert [each[0] for each in ids] == [0, 8, 0]


def test_no_job_shares_cpus_with_itself() -> None:
    """Of 64 CPUs, each given twice, no job gets more than 64."""
    cluster = Cluster(site_with(oversubscribe="FORCE:2"))
    most = cluster.submit(BOB, partition="cpu", tasks=64, memory_per_cpu=1)
    more = cluster.submit(BOB, partition="cpu", tasks=65, memory_per_cpu=1)
    cluster.plan()
    assert cluster.launched() == [most]
    assert cluster.job(more).reason is Reason.PARTITION_CONFIG


def test_sharing_on_request_only() -> None:
    cluster = Cluster(site_with(oversubscribe="YES:2"))
    alone = submit(cluster, 2, tasks=16, memory_per_node=100)
    cluster.plan()
    assert cluster.launched() == alone[:1]
    cluster.run_to_end(alone[0])
    cluster.plan()
    cluster.run_to_end(alone[1])
    both = submit(cluster, 2, tasks=16, memory_per_node=100, shared="oversubscribe")
    own = submit(cluster, 1, tasks=1, memory_per_node=100)
    cluster.plan()
    assert cluster.launched() == both
    assert cluster.job(own[0]).pending


def test_those_who_share_and_those_who_do_not_are_apart() -> None:
    site = site_with(oversubscribe="FORCE:2")
    cluster = Cluster(site)
    ordinary = cluster.submit(ALICE, partition="debug", required_nodes="n5", tasks=2, maximum_nodes=1, minimum_nodes=1)
    cluster.plan()
    assert cluster.launched() == [ordinary]
    waits = submit(cluster, 1, tasks=1)
    cluster.plan()
    assert cluster.launched() == []
    cluster.run_to_end(ordinary)
    cluster.plan()
    assert cluster.launched() == waits


@pytest.mark.parametrize(("limit", "cpus"), [({"maximum_cpus_per_node": 4}, 4), ({"maximum_cpus_per_socket": 6}, 6)])
def test_a_partition_takes_so_many_cpus_of_a_node(limit: dict[str, int], cpus: int) -> None:
    cluster = Cluster(site_with(**limit))
    first = submit(cluster, 1, tasks=cpus)
    more = submit(cluster, 1, tasks=1)
    other = cluster.submit(ALICE, partition="debug", required_nodes="n5", tasks=8, maximum_nodes=1, minimum_nodes=1)
    cluster.plan()
    assert sorted(cluster.launched()) == sorted([*first, other])
    assert cluster.job(more[0]).pending


def test_nodes_with_gpus_are_spared() -> None:
    cluster = Cluster(small_site(scheduler_parameters={}))
    first = cluster.submit(BOB, tasks=1)
    gpu = cluster.submit(BOB, tasks=1, tres_per_node="gres/gpu:1")
    wide = cluster.submit(BOB, minimum_nodes=5, maximum_nodes=5, tasks=5)
    cluster.plan()
    assert share(cluster, first)[0] == "n5"
    assert share(cluster, gpu)[0] == "n1"
    allocation = cluster.job(wide).allocation
    assert allocation is not None
    assert {"n5", "n6", "n7", "n8"} < set(allocation.nodes)


def test_a_leaf_switch_is_chosen_first() -> None:
    def first_node(*switches: Switch) -> str:
        cluster = Cluster(small_site(scheduler_parameters={}, switches=switches))
        job_id = cluster.submit(BOB, tasks=1)
        cluster.plan()
        return share(cluster, job_id)[0]

    by_kind = (Switch("a", ("n1", "n2", "n3", "n4")), Switch("b", ("n5", "n6", "n7", "n8")))
    mixed = (Switch("a", ("n1", "n2", "n5", "n6")), Switch("b", ("n3", "n4", "n7", "n8")))
    assert (first_node(*by_kind), first_node(*mixed)) == ("n1", "n5")


def test_a_site_may_give_nodes_with_gpus_to_everybody() -> None:
    cluster = Cluster()
    first = cluster.submit(BOB, tasks=1)
    cluster.plan()
    assert share(cluster, first)[0] == "n1"


def test_users_who_want_no_others_have_none() -> None:
    cluster = Cluster(site_with(exclusive_user=True))
    mine = submit(cluster, 2, tasks=1)
    cluster.plan()
    assert cluster.launched() == mine
    other = cluster.submit(ALICE, partition="cpu", tasks=1)
    cluster.plan()
    assert share(cluster, other)[0] != "n5"


def test_more_memory_for_a_cpu_gives_more_cpus() -> None:
    site = site_with(maximum_memory_per_cpu=1000)
    cluster = Cluster(site)
    job = cluster.submit(BOB, partition="cpu", tasks=1, memory_per_cpu=2500)
    cluster.plan()
    assert share(cluster, job)[1] == 3


def test_the_least_loaded_node_first() -> None:
    site = site_with(lln=True)
    partition: Partition = site.partitions[2]
    assert partition.lln
    cluster = Cluster(site)
    jobs = [cluster.submit(BOB, partition="cpu", tasks=1) for _ in range(4)]
    cluster.plan()
    assert sorted(share(cluster, job)[0] for job in jobs) == ["n5", "n6", "n7", "n8"]


def test_gpus_are_given_whole_or_in_shards() -> None:
    shards = (GresCapacity("gpu", "a100", 4), GresCapacity("shard", "", 16))
    site = small_site(gres_types=("gpu", "shard"))
    cluster = Cluster(replace(site, nodes=tuple(replace(node, gres=shards if node.gres else ()) for node in site.nodes)))
    first = cluster.submit(BOB, partition="gpu", tasks=1, tres_per_node="gres/shard:3", required_nodes="n1")
    second = cluster.submit(BOB, partition="gpu", tasks=1, tres_per_node="gres/gpu:4", required_nodes="n1")
    third = cluster.submit(BOB, partition="gpu", tasks=1, tres_per_node="gres/gpu:3", required_nodes="n1")
    whole = cluster.submit(BOB, partition="gpu", tasks=1, shared="none", required_nodes="n2")
    stale = plan(cluster.machine.snapshot(cluster.now))
    cluster.plan()
    assert sorted(cluster.launched()) == [first, third, whole]
    assert cluster.job(second).pending
    more = cluster.submit(BOB, partition="gpu", tasks=1, tres_per_node="gres/shard:1", required_nodes="n1")
    cluster.plan()
    assert cluster.launched() == [more], "of the GPU that is shared already"
    again = next(start for start in stale.starts if start.job_id == third)
    taken = replace(again, job_id=second)
    cluster.tell(Planned(cluster.now, replace(stale, starts=(taken,))))
    assert cluster.launched() == [], "a plan of the past does not give what is gone"
