"""SchedulerParameters that bound how much of the queue is looked at and who is promised a start."""

from __future__ import annotations

from core_story import ALICE, BOB, ROOT, Cluster, small_site

from slurmk.model.states import Reason
from slurmk.planner.attention import Bounds, bounds_of
from slurmk.planner.plan import forecast


def cluster_with(**options: str) -> Cluster:
    return Cluster(small_site(scheduler_parameters=options))


def wide(cluster: Cluster, **request: object) -> int:
    """A job on all of the partition's nodes."""
    return cluster.submit(BOB, partition="cpu", minimum_nodes=4, maximum_nodes=4, tasks=64, time_limit=10, **request)


def test_bounds_are_read() -> None:
    options = {"bf_max_job_user": "3", "bf_min_age_reserve": "60", "max_switch_wait": "x", "bf_max_job_array_resv": "5"}
    assert bounds_of(options) == Bounds(per_user=3, least_age=60, array_reservations=5)
    assert bounds_of({}) == Bounds()


def test_so_many_of_a_user_are_looked_at() -> None:
    cluster = cluster_with(bf_max_job_user="2")
    jobs = [cluster.submit(BOB, partition="cpu") for _ in range(3)]
    other = cluster.submit(ALICE, partition="cpu")
    cluster.plan()
    assert cluster.launched() == [*jobs[:2], other]
    assert cluster.job(jobs[2]).reason is Reason.PRIORITY
    assert cluster.machine.outlooks[jobs[2]].start_time is None
    cluster.plan()
    assert cluster.launched() == [jobs[2]]


def test_so_many_of_a_partition_are_looked_at() -> None:
    cluster = cluster_with(bf_max_job_part="1")
    first, second = (cluster.submit(BOB, partition="cpu") for _ in range(2))
    elsewhere = cluster.submit(BOB, partition="gpu")
    cluster.plan()
    assert cluster.launched() == [first, elsewhere]
    cluster.plan()
    assert cluster.launched() == [second]


def test_so_many_are_started_at_once() -> None:
    cluster = cluster_with(bf_max_job_start="2")
    jobs = [cluster.submit(BOB, partition="cpu") for _ in range(3)]
    cluster.plan()
    assert cluster.launched() == jobs[:2]


def test_so_many_of_a_partition_are_promised_a_start() -> None:
    cluster = cluster_with(bf_job_part_count_reserve="1")
    runs, first, second = (wide(cluster) for _ in range(3))
    cluster.plan()
    assert cluster.launched() == [runs]
    assert cluster.machine.outlooks[first].start_time == int(cluster.now) + 600
    assert cluster.machine.outlooks[second].start_time is None
    cluster.run_to_end(runs)
    cluster.plan()
    assert cluster.launched() == [first]


def test_only_those_of_some_priority_are_promised_a_start() -> None:
    cluster = cluster_with(bf_min_prio_reserve="4000000000")
    runs = wide(cluster)
    low = cluster.submit(ROOT, partition="cpu", minimum_nodes=4, maximum_nodes=4, tasks=64, time_limit=10, priority=5)
    cluster.plan()
    assert cluster.launched() == [runs]
    assert cluster.machine.outlooks[low].start_time is None


def test_only_those_who_have_waited_are_promised_a_start() -> None:
    cluster = cluster_with(bf_min_age_reserve="120")
    wide(cluster)
    waits = wide(cluster)
    cluster.plan()
    assert cluster.machine.outlooks[waits].start_time is None
    cluster.now += 120
    cluster.plan()
    assert cluster.machine.outlooks[waits].start_time == int(cluster.now) - 120 + 600


def test_so_many_elements_of_an_array_are_promised_a_start() -> None:
    cluster = cluster_with(bf_max_job_array_resv="3")
    job = wide(cluster, array="0-9")
    made = forecast(cluster.machine.snapshot(cluster.now))
    assert len(made.promised[job]) == 3
