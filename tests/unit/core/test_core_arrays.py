"""Arrays: one record until an element starts or is changed; limits on what runs; selections of elements."""

from __future__ import annotations

import pytest
from core_story import ALICE, ROOT, Cluster, small_site

from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import JobSelection, Planned, Requeue, Suspend
from slurmk.model.states import JobState, Reason
from slurmk.planner.plan import forecast, plan_starts


def test_elements_become_jobs_as_they_start(cluster: Cluster) -> None:
    array = cluster.submit(array="0-2")
    assert len(cluster.machine.jobs) == 1
    cluster.plan()
    jobs = cluster.machine.jobs_of_array(array)
    assert [(job.job_id, job.array_task_id) for job in jobs] == [(1, 2), (2, 0), (3, 1)]
    assert all(job.state is JobState.RUNNING and not job.is_array for job in jobs)
    assert len({job.sluid for job in jobs}) == 3
    assert cluster.submit() == 4


def test_no_more_run_than_the_limit(cluster: Cluster) -> None:
    array = cluster.submit(array="0-9%2")
    cluster.plan()
    assert len(cluster.launched()) == 2
    assert cluster.plan() == []
    assert cluster.job(array).reason is Reason.JOB_ARRAY_TASK_LIMIT
    cluster.run_to_end(2)
    cluster.plan()
    assert len(cluster.launched()) == 1
    cluster.update(str(array), array_maximum_running=5)
    cluster.plan()
    assert len(cluster.launched()) == 3


def test_elements_that_wait_for_the_limit_are_not_eligible(cluster: Cluster) -> None:
    array = cluster.submit(array="0-3%1")
    cluster.plan()
    assert (cluster.job(array).eligible_time, cluster.job(array).accrue_time) == (0, 0)
    cluster.tick(50)
    cluster.run_to_end(2)
    cluster.plan()
    assert [job.eligible_time for job in cluster.machine.jobs.values() if job.array_task_id == 1] == [1050]
    assert cluster.job(array).eligible_time == 0
    cluster.update_node(*cluster.machine.nodes, state="DRAIN", reason="repair")
    cluster.tick(50)
    cluster.update(str(array), array_maximum_running=2)
    cluster.plan()
    waiting = cluster.job(array)
    assert waiting.reason is not Reason.JOB_ARRAY_TASK_LIMIT
    assert (waiting.eligible_time, waiting.accrue_time) == (1100, 1100)


def running_tasks(cluster: Cluster, array: int) -> list[int | None]:
    return [job.array_task_id for job in cluster.machine.jobs_of_array(array) if job.state is JobState.RUNNING]


def pending_reasons(cluster: Cluster, array: int) -> set[Reason]:
    return {job.reason for job in cluster.machine.jobs_of_array(array) if job.state is JobState.PENDING}


@pytest.mark.parametrize("limit", [1, 2])
def test_the_limit_is_of_elements_that_were_changed_too(cluster: Cluster, limit: int) -> None:
    array = cluster.submit(array=f"0-5%{limit}", hold=True)
    for task in (3, 4, 5):
        cluster.update(f"{array}_{task}", time_limit=3)
    cluster.release_hold(str(array))
    ended: set[int | None] = set()
    for _ in range(6 // limit):
        cluster.plan()
        running = running_tasks(cluster, array)
        assert len(running) == len(cluster.launched()) == limit
        cluster.plan()
        assert cluster.launched() == []
        assert pending_reasons(cluster, array) <= {Reason.JOB_ARRAY_TASK_LIMIT}
        for each in running:
            (job,) = cluster.machine.select(f"{array}_{each}")
            cluster.run_to_end(job.job_id)
        ended.update(running)
    assert ended == set(range(6))


def test_an_element_that_was_held_waits_for_the_limit(cluster: Cluster) -> None:
    array = cluster.submit(array="0-9%1")
    cluster.plan()
    cluster.update(f"{array}_3", time_limit=3)
    cluster.hold(f"{array}_4")
    cluster.release_hold(f"{array}_4")
    cluster.plan()
    assert running_tasks(cluster, array) == [0]
    assert pending_reasons(cluster, array) == {Reason.JOB_ARRAY_TASK_LIMIT}
    cluster.update(str(array), array_maximum_running=0)
    cluster.plan()
    assert len(running_tasks(cluster, array)) == 10


def test_an_element_that_was_requeued_waits_for_the_limit(cluster: Cluster) -> None:
    array = cluster.submit(array="0-5%1", requeue=True)
    cluster.plan()
    (first,) = cluster.machine.select(f"{array}_0")
    cluster.started(first.job_id)
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(array, (range(1),)),)))
    cluster.released(first.job_id)
    cluster.plan()
    assert running_tasks(cluster, array) == [1]
    cluster.update(f"{array}_0", begin_time=int(cluster.now))
    cluster.plan()
    assert running_tasks(cluster, array) == [1]
    assert cluster.job(first.job_id).reason is Reason.JOB_ARRAY_TASK_LIMIT
    (second,) = cluster.machine.select(f"{array}_1")
    cluster.run_to_end(second.job_id)
    cluster.plan()
    assert len(running_tasks(cluster, array)) == 1


def test_an_element_that_cannot_start_yet_leaves_the_room_to_others(cluster: Cluster) -> None:
    cluster.submit(required_nodes="n1", cpus_per_task=8)
    cluster.plan()
    array = cluster.submit(array="0-3%1")
    cluster.update(f"{array}_0", required_nodes="n1", nice=-1000, caller=ROOT)
    cluster.update(f"{array}_1", begin_time=int(cluster.now) + 100, nice=-500, caller=ROOT)
    cluster.plan()
    assert running_tasks(cluster, array) == [2]


def test_what_runs_is_told_to_a_plan_that_goes_on(cluster: Cluster) -> None:
    array = cluster.submit(array="0-3%1")
    for task in (1, 2, 3):
        cluster.update(f"{array}_{task}", time_limit=3)
    made = forecast(cluster.machine.snapshot(cluster.now))
    cluster.tell(Planned(cluster.now, made.plan()))
    assert len(cluster.launched()) == 1
    again = plan_starts(cluster.machine.snapshot(cluster.now), made)
    assert again is not None
    assert again.starts == ()
    cluster.run_to_end(cluster.launched()[0])
    again = plan_starts(cluster.machine.snapshot(cluster.now), made)
    assert again is not None
    assert len(again.starts) == 1


def test_cancelled_elements_leave_the_record(cluster: Cluster) -> None:
    array = cluster.submit(array="0-5")
    cluster.kill(f"{array}_1")
    assert cluster.job(array).array_tasks == (range(1), range(2, 6))
    cluster.kill(f"{array}_[2-3]")
    assert cluster.job(array).array_tasks == (range(1), range(4, 6))
    cluster.kill(f"{array}_[7-8]")
    assert cluster.refusal() is Errno.INVALID_JOB_ID
    cluster.kill(str(array))
    assert cluster.job(array).state is JobState.CANCELLED
    assert cluster.job(array).array_tasks == (range(1), range(4, 6))


def test_the_number_of_an_array_means_all_of_it(cluster: Cluster) -> None:
    array = cluster.submit(array="0-9%2")
    cluster.plan()
    cluster.kill(str(array))
    assert {job.state for job in cluster.machine.jobs_of_array(array)} == {JobState.CANCELLED}
    assert sorted(cluster.terminated()) == [2, 3]


def test_a_changed_element_goes_its_own_way(cluster: Cluster) -> None:
    array = cluster.submit(array="0-3")
    cluster.update(f"{array}_2", comment="x")
    (element,) = cluster.machine.select(f"{array}_2")
    assert (element.job_id, element.array_task_id, element.request.comment) == (2, 2, "x")
    assert cluster.job(array).array_tasks == (range(2), range(3, 4))
    cluster.hold(f"{array}_[0-1]")
    held = [job for job in cluster.machine.jobs_of_array(array) if job.priority == 0]
    assert [job.array_task_id for job in held] == [0, 1]
    cluster.hold(str(array))
    cluster.plan()
    assert cluster.launched() == []
    cluster.release_hold(str(array), ROOT)
    cluster.plan()
    assert len(cluster.launched()) == 4


def test_each_element_that_refuses_a_change_is_told_of(cluster: Cluster) -> None:
    array = cluster.submit(array="1,3,5-9:2", hold=True)
    cluster.update(f"{array}_3", comment="x")
    cluster.hold(f"{array}_[2-5]")
    answer = cluster.answer()
    assert isinstance(answer, Refused)
    assert answer.elements == (((2, 4), SlurmError(Errno.INVALID_JOB_ID)), ((3, 5), None))
    cluster.hold(f"{array}_[1,9]")
    assert isinstance(cluster.answer(), Accepted)
    cluster.tell(Suspend(cluster.now, ROOT, (JobSelection(array),)))
    answer = cluster.answer()
    assert isinstance(answer, Refused)
    assert answer.elements == (((1, 3, 5, 7, 9), SlurmError(Errno.JOB_PENDING)),)
    cluster.hold(f"{array}_[0-4000000]")
    answer = cluster.answer()
    assert isinstance(answer, Refused)
    assert (answer.error.errno, answer.elements) == (Errno.INVALID_JOB_ID, ())


def test_elements_stay_in_memory_while_others_wait(cluster: Cluster) -> None:
    array = cluster.submit(array="0-1%1")
    cluster.plan()
    cluster.run_to_end(2)
    cluster.tick(1000)
    assert 2 in cluster.machine.jobs
    cluster.plan()
    cluster.run_to_end(array)
    cluster.tick(1000)
    cluster.tick(1000)
    assert not cluster.machine.jobs


def test_a_restart_keeps_the_count_of_what_runs(cluster: Cluster) -> None:
    cluster.submit(array="0-9%2")
    cluster.plan()
    cluster.machine = cluster.restarted()
    cluster.plan()
    assert cluster.launched() == []
    cluster.run_to_end(2)
    cluster.plan()
    assert len(cluster.launched()) == 1


@pytest.mark.parametrize(
    "text", ["", "x", "1_", "1_[", "1_[a]", "1_[3-1]", "1.x", "1+", "99999999999999", "-1", "1_[0-5:0]", "²"]
)
def test_selections_without_meaning(cluster: Cluster, text: str) -> None:
    with pytest.raises(SlurmError):
        cluster.machine.select(text)


def test_a_huge_selection_is_cheap(cluster: Cluster) -> None:
    array = cluster.submit(array="0-3")
    assert [job.job_id for job in cluster.machine.select(f"{array}_[0-4000000000]")] == [array]


def test_array_size_is_limited() -> None:
    cluster = Cluster(small_site(maximum_array_size=11))
    cluster.try_submit(array="0-11")
    assert cluster.refusal() is Errno.INVALID_ARRAY
    cluster.submit(array="0-10")
