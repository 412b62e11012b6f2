"""Promised starts and the longest wait are known again after the controller's restart, where plans go by promises."""

from __future__ import annotations

from core_story import BOB, Cluster, small_site

from slurmk.core.effects import Effect, SaveJob
from slurmk.core.events import Planned
from slurmk.model.states import Reason
from slurmk.planner.plan import plan


def by_promises() -> Cluster:
    return Cluster(small_site(scheduler_parameters={"slurmk_order": "promises"}))


def saved(effects: list[Effect]) -> set[int]:
    return {effect.job.job_id for effect in effects if isinstance(effect, SaveJob)}


def wide(cluster: Cluster, minutes: int) -> int:
    """A job on all nodes of a partition."""
    return cluster.submit(BOB, partition="cpu", minimum_nodes=4, maximum_nodes=4, tasks=64, time_limit=minutes)


def test_promises_outlast_the_controller() -> None:
    cluster = by_promises()
    wide(cluster, 60)
    waiting = [wide(cluster, 30), wide(cluster, 20)]
    effects = cluster.plan()
    promised = {job_id: cluster.machine.outlooks[job_id].promised for job_id in waiting}
    assert None not in promised.values()
    assert {job_id: cluster.job(job_id).promised_start for job_id in waiting} == promised
    assert saved(effects) >= set(waiting)
    machine = cluster.restarted(longest_wait=4321)
    snapshot = machine.snapshot(cluster.now + 1)
    assert snapshot.longest_wait == 4321
    assert {row.job_id: row.promised for row in snapshot.pending} == promised
    machine.handle(Planned(cluster.now + 1, plan(snapshot)))
    for job_id in waiting:
        outlook = machine.outlooks[job_id]
        assert outlook.promised == promised[job_id]
        assert outlook.start_time is not None
        assert outlook.start_time <= (promised[job_id] or 0)


def test_nothing_is_saved_that_nobody_promised() -> None:
    cluster = Cluster(small_site())
    wide(cluster, 60)
    second = wide(cluster, 30)
    effects = cluster.plan()
    assert cluster.job(second).reason is not Reason.NONE
    assert cluster.job(second).promised_start == 0
    assert second not in saved(effects)


def test_waits_count_from_when_a_job_may_start() -> None:
    """A job that was held for long has not waited for the scheduler, and makes no wait look short."""
    cluster = by_promises()
    job_id = cluster.submit(BOB, partition="cpu", hold=True)
    cluster.now += 100_000
    cluster.release_hold(str(job_id), BOB)
    cluster.plan()
    assert cluster.launched()[-1:] == [job_id]
    assert cluster.machine.snapshot(cluster.now).longest_wait < 1000
