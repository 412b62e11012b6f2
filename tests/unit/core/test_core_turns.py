"""Gang scheduling: jobs that were given the same CPUs take turns, slice by slice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from core_story import ALICE, BOB, Cluster, small_site
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.core.effects import Signal
from slurmk.core.events import JobSelection, KillFlag, Suspend
from slurmk.core.suspension import SIGCONT, SIGSTOP, SIGTSTP
from slurmk.core.turns import slice_of
from slurmk.model.site import Site
from slurmk.model.states import JobState

RUNNING, STANDING = JobState.RUNNING, JobState.SUSPENDED


def gang(times: str = "FORCE:2", mode: str = "SUSPEND,GANG", seconds: str = "10 sec", **changes: object) -> Site:
    site = small_site()
    cpu = replace(site.partitions[2], default_time=60, oversubscribe=times)
    parameters = {**site.parameters, "SchedulerTimeSlice": seconds}
    partitions = (*site.partitions[:2], cpu)
    return replace(site, partitions=partitions, preempt_mode=mode, parameters=parameters, **changes)  # type: ignore[arg-type]


def run(cluster: Cluster, *sizes: int, node: str = "n5") -> list[int]:
    """Jobs of so many CPUs each on one node, which have started."""
    jobs = []
    for tasks in sizes:
        request: dict[str, Any] = {"tasks": tasks, "memory_per_node": 100, "minimum_nodes": 1, "maximum_nodes": 1}
        jobs.append(cluster.submit(BOB, partition="cpu", required_nodes=node, **request))
        cluster.plan()
        if not cluster.job(jobs[-1]).pending:
            cluster.started(jobs[-1])
    return jobs


def states(cluster: Cluster, jobs: list[int]) -> list[JobState]:
    return [cluster.job(job).state for job in jobs]


def test_two_jobs_on_the_same_cpus_take_turns() -> None:
    cluster = Cluster(gang())
    jobs = run(cluster, 16, 16)
    first, second = jobs
    assert states(cluster, jobs) == [RUNNING, STANDING]
    assert Signal(second, 0, SIGTSTP, None, KillFlag.FULL) in cluster.effects
    cluster.tick(2)
    assert Signal(second, 0, SIGSTOP, None, KillFlag.FULL) in cluster.effects
    cluster.tick(5)
    assert states(cluster, jobs) == [RUNNING, STANDING]
    cluster.tick(3)
    assert states(cluster, jobs) == [STANDING, RUNNING]
    assert Signal(second, 0, SIGCONT, None, KillFlag.FULL) in cluster.effects
    assert Signal(first, 0, SIGTSTP, None, KillFlag.FULL) in cluster.effects
    cluster.tick(10)
    assert states(cluster, jobs) == [RUNNING, STANDING]
    assert cluster.job(first).suspended_seconds == 10


def test_time_stands_still_for_those_who_wait() -> None:
    cluster = Cluster(gang())
    _, second = run(cluster, 16, 16)
    started = cluster.job(second).start_time
    cluster.tick(10)
    assert cluster.job(second).end_time == started + 3600 + 10


def test_the_next_runs_when_one_ends() -> None:
    cluster = Cluster(gang())
    first, second = run(cluster, 16, 16)
    cluster.ended(first)
    cluster.released(first)
    assert cluster.job(second).state is RUNNING
    cluster.tick(30)
    assert cluster.job(second).state is RUNNING


def test_those_on_cpus_of_their_own_run_all_the_time() -> None:
    cluster = Cluster(gang())
    jobs = run(cluster, 8, 8, 8)
    assert states(cluster, jobs) == [RUNNING, RUNNING, STANDING]
    seen = []
    for _ in range(4):
        cluster.tick(10)
        seen.append(states(cluster, jobs))
    assert all(each[1] is RUNNING for each in seen)
    assert [each[0] for each in seen] == [STANDING, RUNNING, STANDING, RUNNING]


@pytest.mark.parametrize("site", [gang(mode="SUSPEND"), gang(mode="OFF"), gang(mode="REQUEUE")])
def test_without_gang_all_run(site: Site) -> None:
    cluster = Cluster(site)
    jobs = run(cluster, 16, 16)
    cluster.tick(40)
    assert states(cluster, jobs) == [RUNNING, RUNNING]


def test_one_who_was_stopped_by_hand_has_no_turn() -> None:
    cluster = Cluster(gang())
    jobs = run(cluster, 16, 16)
    cluster.tell(Suspend(cluster.now, BOB, (JobSelection(jobs[0]),)))
    assert states(cluster, jobs) == [STANDING, RUNNING]
    cluster.tick(30)
    assert states(cluster, jobs) == [STANDING, RUNNING]
    cluster.tell(Suspend(cluster.now, BOB, (JobSelection(jobs[0]),), resume=True))
    assert sorted(states(cluster, jobs)) == sorted([RUNNING, STANDING])


def test_turns_outlast_the_controller() -> None:
    cluster = Cluster(gang())
    jobs = run(cluster, 16, 16)
    cluster.machine = cluster.restarted()
    cluster.tick(1)
    assert states(cluster, jobs) == [RUNNING, STANDING]
    cluster.tick(10)
    assert states(cluster, jobs) == [STANDING, RUNNING]


def test_others_turns_are_theirs_alone() -> None:
    """A job of another partition on the same node's other CPUs is never stopped, nor is one of a het job."""
    cluster = Cluster(gang())
    jobs = run(cluster, 16, 16)
    other = cluster.submit(ALICE, partition="gpu", tasks=1, memory_per_node=10)
    cluster.plan()
    cluster.started(other)
    for _ in range(3):
        cluster.tick(10)
        assert cluster.job(other).state is RUNNING
        assert sorted(states(cluster, jobs)) == sorted([RUNNING, STANDING])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 16), min_size=1, max_size=7), st.integers(2, 4))
def test_no_cpu_is_used_twice_and_everyone_has_a_turn(sizes: list[int], times: int) -> None:
    cluster = Cluster(gang(f"FORCE:{times}"))
    jobs = [job for job in run(cluster, *sizes) if not cluster.job(job).pending]
    had_a_turn: set[int] = set()
    for _ in range(2 * len(jobs) + 1):
        running = [job for job in jobs if cluster.job(job).state is RUNNING]
        cpus = [number for job in running for number in cluster.job(job).allocation.shares[0].cpu_ids]  # type: ignore[union-attr]
        assert len(cpus) == len(set(cpus))
        had_a_turn |= set(running)
        cluster.tick(10)
    assert had_a_turn == set(jobs)


def test_both_give_way_to_a_higher_tier_and_both_come_back() -> None:
    """A job that needs the node's CPUs for itself suspends all who share them, also the one whose turn it is not."""
    site = gang(preempt_type="preempt/partition_prio")
    high = replace(site.partitions[2], name="high", oversubscribe="NO", priority_tier=9)
    cluster = Cluster(replace(site, partitions=(*site.partitions, high)))
    jobs = run(cluster, 16, 16)
    urgent = cluster.submit(ALICE, partition="high", tasks=16, memory_per_node=100, required_nodes="n5")
    cluster.plan()
    cluster.plan()
    assert cluster.launched() == [urgent]
    assert states(cluster, jobs) == [STANDING, STANDING]
    cluster.started(urgent)
    cluster.tick(30)
    assert states(cluster, jobs) == [STANDING, STANDING]
    cluster.run_to_end(urgent)
    cluster.plan()
    assert sorted(states(cluster, jobs)) == sorted([RUNNING, STANDING])


def test_the_slice() -> None:
    assert slice_of(gang(seconds="2 sec")) == 5
    assert slice_of(gang(seconds="45 sec")) == 45
    assert slice_of(replace(gang(), parameters={})) == 30
