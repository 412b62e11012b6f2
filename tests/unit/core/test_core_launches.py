"""Launches that fail for a reason that may pass, and jobs that others push out or take away."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_story import ROOT, Cluster, small_site

from accounting.rows import job_row
from slurmk.core.effects import SaveJob
from slurmk.core.events import LaunchFailed, Planned, Preempted, Submit, Withdrawn
from slurmk.core.machine import Machine
from slurmk.model.job import Job
from slurmk.model.requested import Requested
from slurmk.model.states import JobFlag, JobState, Reason
from slurmk.planner.plan import plan

MESSAGE = "0/3 nodes are available"


def fail(cluster: Cluster, job_id: int) -> None:
    """One attempt that comes to nothing."""
    job = cluster.job(job_id)
    assert job.allocation is not None
    cluster.tell(LaunchFailed(cluster.now, job_id, job.restarts, MESSAGE, job.allocation.nodes, retry=True))


def accounted(job: Job) -> tuple[int, int]:
    """State and flags of the attempt's record."""
    row = job_row(job, 1, Requested(1, 1, 0), 0, 0, "")
    return row.state, row.flags


def test_it_waits_again_and_says_why(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    priority = cluster.job(job_id).priority
    fail(cluster, job_id)
    job = cluster.job(job_id)
    assert (job.state, job.flags, job.restarts, job.priority) == (JobState.PENDING, JobFlag.NONE, 1, priority)
    assert (job.reason, job.state_description) == (Reason.JOB_LAUNCH_FAILURE, f"JobLaunchFailure:{MESSAGE}")
    assert (job.system_comment, job.eligible_time) == (MESSAGE, 1060)
    cluster.plan()
    assert cluster.launched() == []
    assert cluster.job(job_id).state_description == f"JobLaunchFailure:{MESSAGE}"


def test_it_waits_longer_each_time_until_it_has_begun(cluster: Cluster) -> None:
    job_id = cluster.submit()
    waits = []
    for _ in range(9):
        cluster.plan()
        assert cluster.launched() == [job_id]
        fail(cluster, job_id)
        waits.append(cluster.job(job_id).eligible_time - int(cluster.now))
        cluster.tick(waits[-1] - 1)
        cluster.plan()
        assert cluster.launched() == []
        cluster.tick(1)
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert cluster.job(job_id).state_description == ""
    cluster.plan()
    cluster.started(job_id)
    assert cluster.job(job_id).launch_failures == 0


def test_an_allocation_that_has_not_begun_waits_too(cluster: Cluster) -> None:
    job_id = cluster.submit(batch=False)
    cluster.plan()
    fail(cluster, job_id)
    assert (cluster.job(job_id).state, cluster.job(job_id).eligible_time) == (JobState.PENDING, 1060)


def test_what_had_begun_is_held_when_its_launch_is_said_to_have_failed(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.started(job_id)
    fail(cluster, job_id)
    assert (cluster.job(job_id).priority, cluster.job(job_id).state_description) == (0, "launch failed requeued held")


def test_the_user_may_have_it_tried_at_once(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    fail(cluster, job_id)
    cluster.update(str(job_id), begin_time=int(cluster.now))
    cluster.plan()
    assert cluster.launched() == [job_id]


def test_holding_it_replaces_the_reason(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    fail(cluster, job_id)
    cluster.hold(str(job_id))
    assert (cluster.job(job_id).reason, cluster.job(job_id).state_description) == (Reason.JOB_HELD_USER, "")
    cluster.release_hold(str(job_id))
    assert cluster.job(job_id).reason is Reason.BEGIN_TIME


def test_it_goes_on_waiting_after_a_restart(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    fail(cluster, job_id)
    cluster.machine = cluster.restarted()
    cluster.plan()
    assert cluster.launched() == []
    assert cluster.job(job_id).state_description == f"JobLaunchFailure:{MESSAGE}"
    cluster.tick(60)
    cluster.plan()
    assert cluster.launched() == [job_id]


def test_it_may_be_cancelled_while_its_nodes_are_released(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.tell(LaunchFailed(1001, job_id, 0, MESSAGE, (), retry=True))
    assert cluster.terminated() == [job_id]
    cluster.kill(str(job_id))
    cluster.released(job_id)
    assert (cluster.job(job_id).state, cluster.job(job_id).flags) == (JobState.CANCELLED, JobFlag.NONE)


@pytest.mark.parametrize("event", [Preempted, Withdrawn])
def test_what_is_ending_anyhow_only_loses_its_nodes(cluster: Cluster, event: type[Preempted] | type[Withdrawn]) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.started(job_id)
    cluster.kill(str(job_id))
    cluster.tell(event(1001, job_id, 0, "gone", ("n1",)))
    assert (cluster.job(job_id).state, cluster.job(job_id).flags) == (JobState.CANCELLED, JobFlag.NONE)


def test_a_preempted_job_is_queued_again(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.started(job_id)
    cluster.tell(Preempted(1005, job_id, 0, "preempted by the scheduler"))
    ending = cluster.job(job_id)
    assert (ending.state, ending.flags) == (JobState.PENDING, JobFlag.COMPLETING | JobFlag.REQUEUED)
    assert accounted(ending) == (JobState.PREEMPTED, JobFlag.COMPLETING)
    assert cluster.terminated() == [job_id]
    cluster.released(job_id)
    job = cluster.job(job_id)
    assert (job.state, job.restarts, job.reason, job.requeued_as) == (JobState.PENDING, 1, Reason.BEGIN_TIME, None)
    assert job.system_comment == "preempted by the scheduler"


@pytest.mark.parametrize(("requeue", "site_requeues"), [(False, True), (None, False)])
def test_a_preempted_job_that_must_not_run_twice_is_over(requeue: bool | None, site_requeues: bool) -> None:
    cluster = Cluster(small_site(job_requeue=site_requeues))
    job_id = cluster.submit(requeue=requeue)
    cluster.plan()
    cluster.started(job_id)
    cluster.tell(Preempted(1005, job_id, 0, "evicted", ("n1",)))
    job = cluster.job(job_id)
    assert (job.state, job.flags, job.end_time) == (JobState.PREEMPTED, JobFlag.NONE, 1005)
    assert accounted(job) == (JobState.PREEMPTED, JobFlag.NONE)


def test_a_job_that_was_taken_away_is_cancelled(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.started(job_id)
    cluster.tell(Withdrawn(1005, job_id, 0, "Pod slurmk-1-0 was deleted", ("n1",)))
    job = cluster.job(job_id)
    assert (job.state, job.flags, job.cancelled_by) == (JobState.CANCELLED, JobFlag.NONE, 0)
    assert job.system_comment == "Pod slurmk-1-0 was deleted"


def test_accounting_sees_a_lost_node_as_the_end_of_the_attempt(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.started(job_id)
    cluster.update_node("n1", caller=ROOT, state="DOWN", reason="gone")
    assert accounted(cluster.job(job_id))[0] == JobState.NODE_FAIL
    cluster.kill(str(job_id))
    assert accounted(cluster.job(job_id))[0] == JobState.CANCELLED


def test_all_components_of_a_het_job_wait_together() -> None:
    cluster = Cluster()
    submissions = tuple(replace(cluster.submission(), batch=True) for _ in range(2))
    cluster.tell(Submit(cluster.now, ROOT, submissions))
    first, second = sorted(cluster.machine.jobs)
    cluster.plan()
    assert cluster.launched() == [first, second]
    fail(cluster, first)
    cluster.released(second)
    assert [cluster.job(each).state for each in (first, second)] == [JobState.PENDING] * 2
    assert [cluster.job(each).eligible_time for each in (first, second)] == [1060, 1060]


def test_saves_come_with_it(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    fail(cluster, job_id)
    saved = [effect.job for effect in cluster.effects if isinstance(effect, SaveJob)]
    assert [(job.restarts, job.flags & JobFlag.REQUEUED) for job in saved] == [(0, JobFlag.REQUEUED), (1, JobFlag.NONE)]
    machine = Machine(cluster.machine.site)
    machine.restore([saved[-1]], cluster.machine.nodes.values(), cluster.machine.partitions.values(), 2)
    machine.handle(Planned(2000, plan(machine.snapshot(2000))))
    assert machine.jobs[job_id].state is JobState.RUNNING
