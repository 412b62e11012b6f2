"""Quotas in the machine: plans go by them, and a start is checked against them as they are when it comes."""

from __future__ import annotations

from dataclasses import replace

from core_story import ALICE, BOB, Cluster

from slurmk.core.effects import WakePlanner
from slurmk.core.events import Planned, QuotasChanged, Submit
from slurmk.model.quotas import Quota, QuotaLimit
from slurmk.model.states import Reason
from slurmk.planner.plan import plan

PHYS = Quota("ClusterQueue phys", (QuotaLimit("cpu", 10_000, 2_000),), accounts=frozenset({"phys"}))


def test_a_job_waits_until_its_account_has_quota_again(cluster: Cluster) -> None:
    cluster.tell(QuotasChanged(cluster.now, (PHYS,)))
    first = cluster.submit(ALICE, account="phys", tasks=6, time_limit=5)
    second = cluster.submit(BOB, account="phys", tasks=4)
    other = cluster.submit(BOB, account="chem", tasks=4)
    assert sorted(start for start in _launched(cluster)) == [first, other]
    job = cluster.job(second)
    assert job.reason is Reason.ASSOC_GRP_CPU_LIMIT
    assert job.state_description == "AssocGrpCpuLimit, ClusterQueue phys has 2 of 10 cpu free"
    assert cluster.machine.outlooks[second].start_time == 1300
    cluster.run_to_end(first)
    assert _launched(cluster) == [second]


def test_a_start_that_no_longer_fits_the_quota_is_passed_over(cluster: Cluster) -> None:
    cluster.tell(QuotasChanged(cluster.now, (PHYS,)))
    job = cluster.submit(ALICE, account="phys", tasks=6)
    made = plan(cluster.machine.snapshot(cluster.now))
    cluster.tell(QuotasChanged(cluster.now, (replace(PHYS, limits=(QuotaLimit("cpu", 10_000, 5_000),)),)))
    assert WakePlanner() in cluster.effects
    cluster.tell(Planned(cluster.now, made))
    assert cluster.launched() == []
    assert WakePlanner() in cluster.effects
    cluster.plan()
    assert cluster.job(job).reason is Reason.ASSOC_GRP_CPU_LIMIT


def test_quotas_that_are_told_again_wake_nobody(cluster: Cluster) -> None:
    cluster.tell(QuotasChanged(cluster.now, (PHYS,)))
    assert cluster.tell(QuotasChanged(cluster.now, (PHYS,))) == []


def test_what_ran_before_a_quota_came_counts(cluster: Cluster) -> None:
    first = cluster.submit(ALICE, account="phys", tasks=6)
    assert _launched(cluster) == [first]
    cluster.tell(QuotasChanged(cluster.now, (PHYS,)))
    second = cluster.submit(ALICE, account="phys", tasks=4)
    third = cluster.submit(ALICE, account="phys", tasks=2)
    assert _launched(cluster) == [third]
    assert cluster.job(second).reason is Reason.ASSOC_GRP_CPU_LIMIT


def test_components_of_a_het_job_need_quota_together(cluster: Cluster) -> None:
    cluster.tell(QuotasChanged(cluster.now, (PHYS,)))
    submissions = tuple(cluster.submission(ALICE, account="phys", tasks=5) for _ in range(2))
    cluster.tell(Submit(cluster.now, ALICE, submissions))
    assert _launched(cluster) == []
    cluster.tell(QuotasChanged(cluster.now, (replace(PHYS, limits=(QuotaLimit("cpu", 10_000),)),)))
    assert len(_launched(cluster)) == 2


def _launched(cluster: Cluster) -> list[int]:
    cluster.plan()
    return cluster.launched()
