"""Preemption: who gives way to whom, how, and what follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from core_story import ALICE, BOB, ROOT, Cluster, small_site

from slurmk.core.effects import Signal, Terminate, UpdateLimit, WakePlanner
from slurmk.core.events import KillFlag, Submit
from slurmk.core.priority import Directory, QosPreemption
from slurmk.model.site import Site
from slurmk.model.states import JobFlag, JobState, Reason

SIGTSTP, SIGSTOP, SIGCONT = 20, 19, 18


def tiers(mode: str = "CANCEL", **changes: Any) -> Site:
    """Two partitions of the same nodes, "high" of a higher tier than "low"."""
    site = small_site()
    low = replace(site.partitions[2], name="low", default=True, priority_tier=1, default_time=60)
    high = replace(low, name="high", default=False, priority_tier=2)
    return replace(
        site,
        partitions=(low, high),
        preempt_type="preempt/partition_prio",
        preempt_mode=mode,
        **changes,
    )


def fill(cluster: Cluster, count: int = 4, **request: Any) -> list[int]:
    """Jobs of the lower tier on all of the partition's nodes."""
    jobs = [cluster.submit(BOB, tasks=16, partition="low", **request) for _ in range(count)]
    cluster.plan()
    assert sorted(cluster.launched()) == jobs
    return jobs


def test_a_higher_tier_takes_as_little_as_will_do() -> None:
    cluster = Cluster(tiers())
    jobs = fill(cluster)
    urgent = cluster.submit(ALICE, tasks=16, partition="high")
    cluster.plan()
    assert cluster.terminated() == [jobs[-1]]  # the one that has waited for least
    victim = cluster.job(jobs[-1])
    assert victim.state is JobState.PREEMPTED
    assert victim.flags & JobFlag.COMPLETING
    assert cluster.job(urgent).pending
    cluster.plan()
    assert cluster.terminated() == []
    cluster.released(victim.job_id)
    cluster.plan()
    assert cluster.launched() == [urgent]


@pytest.mark.parametrize(
    "parameters", [{}, {"scheduler_parameters": {"preempt_youngest_first": ""}}, {"preempt_parameters": {"youngest_first": ""}}]
)
def test_the_cheapest_gives_way_or_the_youngest(parameters: dict[str, Any]) -> None:
    cluster = Cluster(tiers(**parameters))
    jobs = fill(cluster, 3)
    cluster.now += 100
    late = cluster.submit(ROOT, tasks=16, partition="low", priority=cluster.job(jobs[0]).priority + 10)
    cluster.plan()
    assert cluster.launched() == [late]
    cluster.submit(ALICE, tasks=16, partition="high")
    cluster.plan()
    assert cluster.terminated() == [late if parameters else jobs[-1]]


def test_two_give_way_when_one_is_not_enough() -> None:
    cluster = Cluster(tiers())
    fill(cluster)
    urgent = cluster.submit(ALICE, minimum_nodes=2, maximum_nodes=2, tasks=32, partition="high")
    cluster.plan()
    gone = cluster.terminated()
    assert len(gone) == 2
    for job_id in gone:
        cluster.released(job_id)
    cluster.plan()
    assert cluster.launched() == [urgent]


def het_job(cluster: Cluster) -> int:
    """A het job of the lower tier whose second component has all of n6."""
    parts = ({"tasks": 1, "required_nodes": "n5"}, {"tasks": 16, "required_nodes": "n6"})
    submissions = tuple(cluster.submission(BOB, partition="low", **part) for part in parts)
    cluster.tell(Submit(cluster.now, BOB, submissions))
    return min(cluster.machine.jobs)


def test_nobody_gives_way_to_equals_or_in_vain() -> None:
    cluster = Cluster(tiers())
    fill(cluster)
    cluster.submit(ALICE, tasks=16, partition="low")
    cluster.plan()
    assert cluster.terminated() == []
    cluster.submit(ALICE, tasks=1, partition="high", licenses="matlab:4")
    cluster.submit(ALICE, tasks=1, partition="high", licenses="matlab:4")
    cluster.plan()
    assert len(cluster.terminated()) == 1  # the second would wait for the licences anyway


def test_what_one_gave_up_no_other_takes() -> None:
    cluster = Cluster(tiers())
    victims = fill(cluster)
    urgent = cluster.submit(ALICE, tasks=16, partition="high")
    cluster.plan()
    other = cluster.submit(BOB, tasks=16, partition="high", priority=5)
    cluster.released(victims[-1])
    cluster.plan()
    assert cluster.launched() == [urgent]
    assert cluster.job(other).pending


def test_requeued_where_it_may_be() -> None:
    cluster = Cluster(tiers("REQUEUE"))
    jobs = fill(cluster, 3)
    fixed = cluster.submit(BOB, tasks=16, partition="low", requeue=False)
    cluster.plan()
    cluster.submit(ALICE, minimum_nodes=4, maximum_nodes=4, tasks=64, partition="high")
    cluster.plan()
    assert sorted(cluster.terminated()) == [*jobs, fixed]
    assert {effect.cause for effect in cluster.effects if isinstance(effect, Terminate)} == {"preemption"}
    assert cluster.job(fixed).state is JobState.PREEMPTED
    assert cluster.job(jobs[0]).state is JobState.PENDING
    assert cluster.job(jobs[0]).requeued_as is JobState.PREEMPTED
    cluster.released(jobs[0])
    assert cluster.job(jobs[0]).restarts == 1


def test_grace_and_exemption() -> None:
    site = tiers(parameters={"PreemptExemptTime": "00:02:00"})
    low, high = site.partitions
    cluster = Cluster(replace(site, partitions=(replace(low, grace_time=120), high)))
    fill(cluster)
    cluster.submit(ALICE, tasks=16, partition="high")
    cluster.plan()
    assert cluster.terminated() == []
    cluster.now += 120
    cluster.plan()
    assert [effect.kill_wait for effect in cluster.effects if isinstance(effect, Terminate)] == [125]


def test_a_partition_may_be_left_alone() -> None:
    site = tiers()
    low, high = site.partitions
    cluster = Cluster(replace(site, partitions=(replace(low, preempt_mode="OFF"), high)))
    fill(cluster)
    cluster.submit(ALICE, tasks=16, partition="high")
    cluster.plan()
    assert cluster.terminated() == []


def test_suspended_and_resumed() -> None:
    cluster = Cluster(tiers("GANG,SUSPEND"))
    jobs = fill(cluster)
    urgent = cluster.submit(ALICE, tasks=16, partition="high")
    cluster.plan()
    parked = cluster.job(jobs[-1])
    assert parked.state is JobState.SUSPENDED
    assert parked.parked
    assert Signal(parked.job_id, 0, SIGTSTP, None, KillFlag.FULL) in cluster.effects
    cluster.plan()
    assert cluster.launched() == [urgent]
    cluster.tick(2)
    assert Signal(parked.job_id, 0, SIGSTOP, None, KillFlag.FULL) in cluster.effects
    assert cluster.machine.node_usage("n8").cpus == 16
    third = cluster.submit(BOB, tasks=16, partition="low")
    cluster.plan()
    assert cluster.launched() == []
    cluster.now += 58
    cluster.run_to_end(urgent)
    cluster.plan()
    resumed = cluster.job(parked.job_id)
    assert (resumed.state, resumed.suspended_seconds) == (JobState.RUNNING, 60)
    assert Signal(parked.job_id, 0, SIGCONT, None, KillFlag.FULL) in cluster.effects
    assert UpdateLimit(parked.job_id, 0, resumed.end_time) in cluster.effects
    assert cluster.job(third).pending


def test_a_parked_jobs_memory_stays_its_own() -> None:
    cluster = Cluster(tiers("GANG,SUSPEND"))
    fill(cluster, memory_per_cpu=1500)
    cluster.submit(ALICE, tasks=16, partition="high", memory_per_cpu=600, minimum_nodes=1, maximum_nodes=1)
    cluster.plan()
    assert not any(isinstance(effect, Signal) for effect in cluster.effects)
    small = cluster.submit(ALICE, tasks=16, partition="high", memory_per_cpu=400)
    cluster.plan()
    cluster.plan()
    assert cluster.launched() == [small]


@pytest.fixture
def by_qos() -> Cluster:
    cluster = Cluster(small_site(preempt_type="preempt/qos", preempt_mode="REQUEUE"))
    cluster.machine.users = Directory(
        qos={"normal": 0, "low": 0, "high": 100},
        preemption={"high": QosPreemption(("low",)), "low": QosPreemption(mode="CANCEL", grace_time=30)},
    )
    return cluster


def test_by_qos(by_qos: Cluster) -> None:
    normal = [by_qos.submit(BOB, tasks=16, partition="cpu", time_limit=60) for _ in range(3)]
    low = by_qos.submit(BOB, tasks=16, partition="cpu", time_limit=60, qos="low")
    by_qos.plan()
    assert sorted(by_qos.launched()) == [*normal, low]
    by_qos.submit(ALICE, tasks=16, partition="cpu", qos="normal")
    by_qos.plan()
    assert by_qos.terminated() == []
    urgent = by_qos.submit(ALICE, tasks=16, partition="cpu", qos="high")
    by_qos.plan()
    assert by_qos.terminated() == [low]
    assert by_qos.job(low).state is JobState.PREEMPTED
    by_qos.submit(ALICE, tasks=32, partition="cpu", qos="high")
    by_qos.plan()
    assert by_qos.terminated() == []
    by_qos.released(low)
    by_qos.plan()
    assert by_qos.launched() == [urgent]  # though one of another QOS is before it in the queue
    assert by_qos.job(urgent).reason is Reason.NONE


def test_a_higher_priority_is_spared() -> None:
    """min_exempt_priority: who has as much gives way to nobody."""
    cluster = Cluster(tiers(preempt_parameters={"min_exempt_priority": "5000"}))
    jobs = [cluster.submit(ROOT, tasks=16, partition="low", priority=5000) for _ in range(3)]
    jobs.append(cluster.submit(ROOT, tasks=16, partition="low", priority=4999))
    cluster.plan()
    cluster.submit(ALICE, tasks=16, partition="high")
    cluster.submit(ALICE, tasks=16, partition="high")
    cluster.plan()
    assert cluster.terminated() == [jobs[-1]]


@pytest.mark.parametrize("reclaims", [False, True])
def test_licences_are_reclaimed_on_demand_alone(reclaims: bool) -> None:
    parameters = {"reclaim_licenses": ""} if reclaims else {}
    cluster = Cluster(tiers(preempt_parameters=parameters, licenses={"matlab": 2}))
    holder = cluster.submit(BOB, tasks=1, partition="low", licenses="matlab:2")
    cluster.plan()
    cluster.submit(ALICE, tasks=1, partition="high", licenses="matlab:1")
    cluster.plan()
    assert cluster.terminated() == ([holder] if reclaims else [])


def test_victims_get_the_signal_that_they_asked_for() -> None:
    cluster = Cluster(tiers(preempt_parameters={"send_user_signal": ""}))
    jobs = fill(cluster, kill_warning_signal=10, kill_warning_delay=60, kill_warning_flags="B")
    cluster.submit(ALICE, tasks=16, partition="high")
    cluster.plan()
    assert Signal(jobs[-1], 0, 10, None, KillFlag.BATCH) in cluster.effects


def test_only_a_higher_priority_preempts_with_priority() -> None:
    cluster = Cluster(tiers("CANCEL,PRIORITY"))
    jobs = [cluster.submit(ROOT, tasks=16, partition="low", priority=5000) for _ in range(4)]
    cluster.plan()
    cluster.submit(ROOT, tasks=16, partition="high", priority=4000)
    cluster.plan()
    assert cluster.terminated() == []
    cluster.submit(ROOT, tasks=16, partition="high", priority=6000)
    cluster.plan()
    assert len(cluster.terminated()) == 1
    assert set(cluster.terminated()) <= set(jobs)


def test_within_a_qos_the_higher_priority_preempts() -> None:
    cluster = Cluster(small_site(preempt_type="preempt/qos", preempt_mode="CANCEL"))
    cluster.machine.users = Directory(
        qos={"normal": 0, "free": 0},
        preemption={"free": QosPreemption((), "CANCEL,WITHIN", 0, None), "normal": QosPreemption((), "", 0, None)},
    )
    for qos, given_way in (("normal", 0), ("free", 1)):
        held = [cluster.submit(ROOT, tasks=16, partition="cpu", qos=qos, priority=5000) for _ in range(4)]
        cluster.plan()
        lower = cluster.submit(ROOT, tasks=16, partition="cpu", qos=qos, priority=4000)
        higher = cluster.submit(ROOT, tasks=16, partition="cpu", qos=qos, priority=6000)
        cluster.plan()
        assert len(cluster.terminated()) == given_way
        cluster.kill(*map(str, (*held, lower, higher)), caller=ROOT)
        for job_id in held:
            cluster.released(job_id)


@pytest.mark.parametrize(("mode", "state"), [("CANCEL", JobState.PREEMPTED), ("REQUEUE", JobState.PENDING)])
def test_all_components_of_a_het_job_give_way(mode: str, state: JobState) -> None:
    cluster = Cluster(tiers(mode))
    first = het_job(cluster)
    cluster.plan()
    assert sorted(cluster.launched()) == [first, first + 1]
    cluster.submit(ALICE, tasks=16, partition="high", required_nodes="n6")
    cluster.plan()
    assert sorted(cluster.terminated()) == [first, first + 1]
    for member in (first, first + 1):
        cluster.released(member)
        assert cluster.job(member).state is state


def test_a_het_job_is_not_suspended_for_others() -> None:
    cluster = Cluster(tiers("SUSPEND,GANG"))
    first = het_job(cluster)
    cluster.plan()
    waits = cluster.submit(ALICE, tasks=16, partition="high", required_nodes="n6")
    cluster.plan()
    assert cluster.job(first + 1).state is JobState.RUNNING
    assert cluster.job(waits).pending


def test_an_exemption_of_seconds_ends_by_itself() -> None:
    site = tiers()
    cluster = Cluster(replace(site, parameters={**site.parameters, "PreemptExemptTime": "00:00:10"}))
    jobs = fill(cluster)
    cluster.submit(ALICE, tasks=16, partition="high")
    cluster.plan()
    assert cluster.terminated() == []
    cluster.now += 9
    cluster.tick()
    cluster.plan()
    assert cluster.terminated() == []
    cluster.now += 1
    assert WakePlanner in map(type, cluster.tick())
    cluster.plan()
    assert cluster.terminated() == [jobs[-1]]


@pytest.mark.parametrize("victim", [{"tasks": 16}, {"tasks": 1}, {"tasks": 1, "shared": "none"}])
def test_who_wants_whole_nodes_has_others_suspended_where_memory_is_not_counted(victim: dict[str, Any]) -> None:
    cluster = Cluster(tiers("SUSPEND,GANG", memory_is_consumable=False))
    parked = cluster.submit(BOB, partition="low", required_nodes="n5", **victim)
    cluster.plan()
    assert cluster.launched() == [parked]
    urgent = cluster.submit(ALICE, tasks=1, shared="none", partition="high", required_nodes="n5")
    cluster.plan()
    cluster.plan()
    assert cluster.job(parked).state is JobState.SUSPENDED
    assert cluster.launched() == [urgent]
