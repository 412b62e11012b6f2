"""Dependencies: what waits for what, when it may start, and when it never will."""

from __future__ import annotations

import pytest
from core_story import ALICE, BOB, ROOT, Cluster, small_site

from slurmk.core.effects import Accepted
from slurmk.core.errors import Errno
from slurmk.core.events import JobSelection, Requeue
from slurmk.model.states import JobState, Reason


def waits(cluster: Cluster, job_id: int) -> bool:
    return cluster.job(job_id).request.dependency is not None


@pytest.mark.parametrize(
    ("kind", "exit_code", "reason"),
    [
        ("afterok", 0, Reason.NONE),
        ("afterok", 256, Reason.DEPENDENCY_NEVER_SATISFIED),
        ("afternotok", 256, Reason.NONE),
        ("afternotok", 0, Reason.DEPENDENCY_NEVER_SATISFIED),
        ("afterany", 0, Reason.NONE),
        ("afterany", 256, Reason.NONE),
        ("aftercorr", 0, Reason.NONE),
    ],
)
def test_after_an_end(cluster: Cluster, kind: str, exit_code: int, reason: Reason) -> None:
    first = cluster.submit()
    second = cluster.submit(dependency=f"{kind}:{first}")
    assert cluster.job(second).reason is Reason.DEPENDENCY
    assert cluster.machine.dependency_text(cluster.job(second)) == f"{kind}:{first}(unfulfilled)"
    cluster.plan()
    assert cluster.launched() == [first]
    cluster.ended(first, exit_code)
    assert waits(cluster, second)
    cluster.released(first)
    assert cluster.job(second).reason is reason
    cluster.plan()
    assert cluster.launched() == ([second] if reason is Reason.NONE else [])
    if reason is not Reason.NONE:
        assert cluster.machine.dependency_text(cluster.job(second)) == f"{kind}:{first}(failed)"
        assert cluster.job(second).reason is reason


def test_after_a_start_and_minutes_later(cluster: Cluster) -> None:
    first = cluster.submit()
    second = cluster.submit(dependency=f"after:{first}")
    third = cluster.submit(dependency=f"after:{first}+5")
    cluster.plan()
    assert not waits(cluster, second)
    assert waits(cluster, third)
    cluster.tick(299)
    assert waits(cluster, third)
    cluster.tick(1)
    assert not waits(cluster, third)


def test_all_of_them_or_any(cluster: Cluster) -> None:
    first, second = cluster.submit(hold=True), cluster.submit(hold=True)
    every = cluster.submit(dependency=f"afterany:{first}:{second}")
    some = cluster.submit(dependency=f"afterok:{first}?afterany:{second}")
    assert cluster.job(every).request.dependency == f"afterany:{first},afterany:{second}"
    cluster.kill(str(second))
    assert not waits(cluster, some)
    assert cluster.job(every).request.dependency == f"afterany:{first}"
    cluster.kill(str(first))
    assert not waits(cluster, every)


def test_only_a_whole_array_satisfies(cluster: Cluster) -> None:
    array = cluster.submit(array="0-2%1")
    after = cluster.submit(dependency=f"afterok:{array}")
    third = cluster.submit(dependency=f"afterany:{array}_2")
    for element in (2, 3):
        cluster.plan()
        cluster.run_to_end(element + 2)
        assert waits(cluster, after)
        assert waits(cluster, third)
    cluster.plan()
    cluster.run_to_end(array)
    assert not waits(cluster, after)
    assert not waits(cluster, third)


def test_one_failed_element_fails_the_array(cluster: Cluster) -> None:
    array = cluster.submit(array="0-1")
    after = cluster.submit(dependency=f"afterok:{array}")
    cluster.plan()
    cluster.run_to_end(3, 256)
    assert cluster.job(after).reason is Reason.DEPENDENCY
    cluster.run_to_end(array)
    assert cluster.job(after).reason is Reason.DEPENDENCY_NEVER_SATISFIED


def test_corresponding_elements(cluster: Cluster) -> None:
    first = cluster.submit(array="0-2")
    second = cluster.submit(array="0-2", dependency=f"aftercorr:{first}")
    cluster.plan()
    assert len(cluster.launched()) == 3
    by_task = {job.array_task_id: job.job_id for job in cluster.machine.jobs_of_array(first)}
    cluster.run_to_end(by_task[1])
    cluster.plan()
    (started,) = cluster.launched()
    assert (cluster.job(started).array_job_id, cluster.job(started).array_task_id) == (second, 1)
    cluster.run_to_end(by_task[0], 256)
    (failed,) = cluster.machine.select(f"{second}_0")
    assert failed.reason is Reason.DEPENDENCY_NEVER_SATISFIED
    cluster.run_to_end(by_task[2])
    cluster.plan()
    assert len(cluster.launched()) == 1


@pytest.mark.parametrize("exit_code", [0, 256])
def test_elements_without_a_counterpart_go_by_the_whole_array(cluster: Cluster, exit_code: int) -> None:
    first = cluster.submit(array="1,3")
    second = cluster.submit(array="1-4", dependency=f"aftercorr:{first}")
    single = cluster.submit(dependency=f"afterok:{first}")
    cluster.plan()
    assert {cluster.job(each).array_job_id for each in cluster.launched()} == {first}
    by_task = {job.array_task_id: job.job_id for job in cluster.machine.jobs_of_array(first)}
    cluster.run_to_end(by_task[1], exit_code)
    assert (cluster.job(single).reason, waits(cluster, single)) == (Reason.DEPENDENCY, True)
    for task in (2, 3, 4):
        (waiting,) = cluster.machine.select(f"{second}_{task}")
        assert waiting.reason is Reason.DEPENDENCY
        assert cluster.machine.dependency_text(waiting) == f"aftercorr:{first}_*(unfulfilled)"
    cluster.run_to_end(by_task[3])
    cluster.plan()
    started = {cluster.job(each).array_task_id for each in cluster.launched()}
    assert started == ({3} if exit_code else {1, 2, 3, 4, None})
    late = cluster.submit(array="1-4", dependency=f"aftercorr:{first}")
    cluster.plan()
    assert {cluster.job(each).array_task_id for each in cluster.launched()} == ({3} if exit_code else {1, 2, 3, 4})
    for array, task in ((second, 1), (second, 2), (second, 4), (late, 1), (late, 2), (late, 4)):
        if exit_code:
            (failed,) = cluster.machine.select(f"{array}_{task}")
            assert (failed.state, failed.reason) == (JobState.PENDING, Reason.DEPENDENCY_NEVER_SATISFIED)
            assert cluster.machine.dependency_text(failed) == f"aftercorr:{first}_*(failed)"


def test_singleton(cluster: Cluster) -> None:
    first = cluster.submit(name="one", dependency="singleton")
    second = cluster.submit(name="one", dependency="singleton")
    other = cluster.submit(name="two", dependency="singleton")
    foreign = cluster.submit(BOB, name="one", dependency="singleton")
    assert [waits(cluster, each) for each in (first, second, other, foreign)] == [False, True, False, False]
    cluster.plan()
    cluster.run_to_end(first)
    assert not waits(cluster, second)


def test_a_held_job_keeps_what_it_waits_for(cluster: Cluster) -> None:
    first = cluster.submit(hold=True)
    for text in ("singleton", f"afterany:{first}", "afterany:900", "singleton?afterany:900"):
        held = cluster.submit(name="held", hold=True, dependency=text)
        assert cluster.job(held).request.dependency == text
        cluster.update(str(held), dependency=text)
        assert cluster.machine.dependency_text(cluster.job(held)).count("(unfulfilled)") == text.count("?") + 1
        cluster.kill(str(first))
        assert cluster.job(held).request.dependency == text
        cluster.release_hold(str(held))
        assert not waits(cluster, held)
        cluster.kill(str(held))


def test_a_new_priority_lets_no_held_job_go(cluster: Cluster) -> None:
    held = cluster.submit(hold=True, dependency="singleton")
    cluster.update(str(held), ROOT, priority=7)
    assert (cluster.job(held).request.dependency, cluster.job(held).priority) == ("singleton", 0)
    cluster.plan()
    assert cluster.launched() == []


def test_killed_when_it_never_can_be(cluster: Cluster) -> None:
    first = cluster.submit()
    second = cluster.submit(dependency=f"afterok:{first}", kill_on_invalid_dependency=True)
    third = cluster.submit(dependency=f"afterok:{second}")
    cluster.kill(str(first))
    assert cluster.job(second).state is JobState.CANCELLED
    assert cluster.job(second).reason is Reason.DEPENDENCY_NEVER_SATISFIED
    assert cluster.job(third).reason is Reason.DEPENDENCY_NEVER_SATISFIED


def test_killed_where_the_site_wants_it() -> None:
    cluster = Cluster(small_site(scheduler_parameters={"kill_invalid_depend": ""}))
    first = cluster.submit()
    second = cluster.submit(dependency=f"afterok:{first}")
    third = cluster.submit(dependency=f"afterok:{first}", kill_on_invalid_dependency=False)
    cluster.kill(str(first))
    assert cluster.job(second).state is JobState.CANCELLED
    assert cluster.job(third).state is JobState.PENDING


def test_nobody_waits_for_himself(cluster: Cluster) -> None:
    first = cluster.submit()
    second = cluster.submit(dependency=f"afterok:{first}")
    cluster.update(str(first), dependency=f"afterok:{second}")
    assert cluster.refusal() is Errno.CIRCULAR_DEPENDENCY
    cluster.update(str(first), dependency=f"afterok:{first}")
    assert cluster.refusal() in (Errno.CIRCULAR_DEPENDENCY, Errno.DEPENDENCY)
    cluster.update(str(second), dependency="")
    assert cluster.job(second).reason is Reason.NONE
    cluster.plan()
    assert second in cluster.launched()


def test_an_ended_job_is_asked_while_it_is_known(cluster: Cluster) -> None:
    first = cluster.submit()
    cluster.plan()
    cluster.run_to_end(first)
    assert not waits(cluster, cluster.submit(dependency=f"afterok:{first}"))
    failed = cluster.submit(dependency=f"afternotok:{first}")
    assert cluster.job(failed).reason is Reason.DEPENDENCY_NEVER_SATISFIED
    cluster.kill(str(failed), "2")
    cluster.tick(1000)
    cluster.tick(1000)
    assert first not in cluster.machine.jobs
    cluster.try_submit(dependency=f"afterok:{first}")
    assert cluster.refusal() is Errno.DEPENDENCY
    assert not waits(cluster, cluster.submit(dependency=f"afterany:{first}"))


def test_a_requeued_job_has_not_ended(cluster: Cluster) -> None:
    first = cluster.submit()
    second = cluster.submit(dependency=f"afterany:{first}")
    cluster.plan()
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(first),)))
    cluster.released(first)
    assert waits(cluster, second)


def test_a_restart_remembers_who_waits(cluster: Cluster) -> None:
    first = cluster.submit()
    second = cluster.submit(dependency=f"afterok:{first}")
    cluster.plan()
    cluster.machine = cluster.restarted()
    cluster.run_to_end(first)
    assert not waits(cluster, second)


def test_more_jobs_than_a_typed_value_has_room_for_last_over_a_restart() -> None:
    cluster = Cluster(small_site(maximum_job_count=20_000))
    many = ":".join(map(str, range(10_001, 15_001)))
    first = cluster.submit(hold=True)
    cluster.update(str(first), dependency=f"afterany:{many}")
    assert isinstance(cluster.answer(), Accepted)
    second = cluster.submit(hold=True, dependency=f"afterany:{many}")
    cluster.machine = cluster.restarted()
    for job_id in (first, second):
        text = cluster.machine.dependency_text(cluster.job(job_id))
        assert (text.count("afterany:"), text[:14]) == (5000, "afterany:10001")
    cluster.release_hold(str(first))
    assert cluster.job(first).request.dependency is None
