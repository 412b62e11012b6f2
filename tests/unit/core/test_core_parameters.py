"""SchedulerParameters that change what is accepted, what becomes of a het job, and when a requeued job may start again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from core_story import ALICE, ROOT, Cluster, small_site

from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno
from slurmk.core.events import JobSelection, Requeue, Submit
from slurmk.core.submission import largest_script, largest_submit_line
from slurmk.model.states import JobState, Reason


def cluster_with(*words: str, **numbers: str) -> Cluster:
    return Cluster(small_site(scheduler_parameters=dict.fromkeys(words, "") | numbers))


@pytest.mark.parametrize(
    ("word", "request_", "refusal", "reason"),
    [
        ("allow_zero_lic", {"licenses": "matlab:99"}, Errno.INVALID_LICENSES, Reason.LICENSES),
        ("ignore_constraint_validation", {"constraints": "nosuch"}, Errno.INVALID_FEATURE, Reason.BAD_CONSTRAINTS),
        ("ignore_prefer_validation", {"prefer": "nosuch"}, Errno.INVALID_PREFER, Reason.NONE),
    ],
)
def test_what_is_taken_though_it_cannot_run(word: str, request_: dict[str, Any], refusal: Errno, reason: Reason) -> None:
    site = {"licenses": {"matlab": 4}}
    without, with_it = Cluster(small_site(**site)), Cluster(small_site(scheduler_parameters={word: ""}, **site))
    answer = without.try_submit(ALICE, **request_)
    assert isinstance(answer, Refused)
    assert answer.error.errno is refusal
    job_id = with_it.submit(ALICE, **request_)
    with_it.plan()
    job = with_it.job(job_id)
    assert job.reason is reason if reason is not Reason.NONE else job.state is JobState.RUNNING


def test_unknown_licences_are_refused_all_the_same() -> None:
    answer = cluster_with("allow_zero_lic").try_submit(ALICE, licenses="nosuch:1")
    assert isinstance(answer, Refused)
    assert answer.error.errno is Errno.INVALID_LICENSES


def test_arrays_of_so_many_elements() -> None:
    cluster = cluster_with(max_array_tasks="3")
    assert isinstance(cluster.try_submit(ALICE, array="0,50,900"), Accepted)
    answer = cluster.try_submit(ALICE, array="0-3")
    assert isinstance(answer, Refused)
    assert answer.error.errno is Errno.INVALID_ARRAY


@pytest.mark.parametrize(
    ("changes", "refused"),
    [({"script_size": 300}, False), ({"script_size": 301}, True), ({"submit_line": "x" * 201}, True), ({}, False)],
)
def test_sizes_of_submissions(changes: dict[str, object], refused: bool) -> None:
    cluster = cluster_with(max_script_size="300", max_submit_line_size="200")
    submission = replace(cluster.submission(ALICE), **changes)  # type: ignore[arg-type]
    cluster.tell(Submit(cluster.now, ALICE, (submission,)))
    answer = cluster.answer()
    assert isinstance(answer, Refused) is refused
    if isinstance(answer, Refused):
        assert answer.error.errno is Errno.PATHNAME_TOO_LONG


def test_usual_sizes() -> None:
    assert largest_script(small_site()) == 4 << 20
    assert largest_submit_line(small_site()) == 1 << 20
    assert largest_submit_line(small_site(scheduler_parameters={"max_submit_line_size": "9999999"})) == 2 << 20


def test_at_once_is_impossible_when_scheduling_is_put_off() -> None:
    for words, refused in ((("defer",), True), (("defer_batch",), False), ((), False)):
        cluster = cluster_with(*words)
        cluster.tell(Submit(cluster.now, ALICE, (replace(cluster.submission(ALICE), immediate=True),)))
        answer = cluster.answer()
        assert isinstance(answer, Refused) is refused
        if isinstance(answer, Refused):
            assert str(answer.error) == "Immediate execution impossible. Individual job submission scheduling attempts deferred"


@pytest.mark.parametrize(
    ("site", "seconds"),
    [
        (small_site(), 121),
        (small_site(scheduler_parameters={"requeue_delay": "7"}), 8),
        (small_site(parameters={"AuthInfo": "socket=/run/munge,cred_expire=30"}), 31),
    ],
)
def test_a_requeued_job_waits(site: object, seconds: int) -> None:
    cluster = Cluster(site)  # type: ignore[arg-type]
    job_id = cluster.submit(ALICE)
    cluster.plan()
    cluster.started(job_id)
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(job_id),)))
    cluster.released(job_id)
    assert cluster.job(job_id).eligible_time == int(cluster.now) + seconds


@pytest.mark.parametrize("word", ["whole_hetjob", "whole_pack", ""])
def test_what_is_done_to_a_component_is_done_to_all(word: str) -> None:
    cluster = cluster_with(*filter(None, [word]))
    parts = tuple(cluster.submission(ALICE, hold=True) for _ in range(2))
    cluster.tell(Submit(cluster.now, ALICE, parts))
    answer = cluster.answer()
    assert isinstance(answer, Accepted)
    first = answer.job_ids[0]
    second = first + 1
    cluster.release_hold(str(second), ROOT)
    assert [bool(cluster.job(job).priority) for job in (first, second)] == [bool(word), True]
    cluster.hold(f"{first}+1", ROOT)
    cluster.kill(str(second))
    states = [cluster.job(job).state for job in (first, second)]
    assert states == [JobState.CANCELLED if word else JobState.PENDING] * 2


def test_the_least_time_as_a_soft_limit() -> None:
    """Planned for ten minutes, the job has its hour; when the ten minutes are over, it is planned to use the rest too."""
    cluster = cluster_with("time_min_as_soft_limit")
    wide: dict[str, Any] = {"partition": "cpu", "minimum_nodes": 4, "maximum_nodes": 4, "tasks": 64}
    first = cluster.submit(ALICE, time_limit=60, time_minimum=10, **wide)
    second = cluster.submit(ALICE, time_limit=5, **wide)
    cluster.plan()
    began = cluster.job(first).start_time
    assert cluster.job(first).time_limit == 60
    assert cluster.machine.outlooks[second].start_time == began + 600
    cluster.now += 601
    cluster.plan()
    assert cluster.machine.outlooks[second].start_time == began + 3600
