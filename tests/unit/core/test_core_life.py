"""The life of jobs: started, ended in every way, requeued, forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_story import ALICE, BOB, ROOT, Cluster, small_site

from slurmk.core.effects import ForgetJob, Launch, SaveJob, SaveStep, Signal, Terminate, UpdateLimit, WakeAt, WakePlanner
from slurmk.core.errors import Errno
from slurmk.core.events import (
    BatchEnded,
    JobSelection,
    JobStarted,
    KillFlag,
    LaunchFailed,
    NodeFailed,
    NodesReleased,
    Planned,
    Requeue,
    StepEnded,
    StepStarted,
    Suspend,
)
from slurmk.model.job import Allocation, Step
from slurmk.model.states import INFINITE, JobFlag, JobState, Reason
from slurmk.planner.plan import plan


def test_a_job_from_its_start_to_its_end(cluster: Cluster) -> None:
    job_id = cluster.submit(minimum_nodes=2, maximum_nodes=2, time_limit=5)
    cluster.now = 1010
    cluster.plan()
    kinds = [type(effect) for effect in cluster.effects]
    assert kinds.index(SaveJob) < kinds.index(Launch)
    job = cluster.job(job_id)
    assert (job.state, job.flags) == (JobState.RUNNING, JobFlag.CONFIGURING)
    assert (job.start_time, job.end_time) == (1010, 1310)
    assert job.allocation is not None
    assert job.allocation.nodes == ("n1", "n2")
    assert cluster.machine.node_usage("n1").cpus == 1
    cluster.started(job_id)
    assert cluster.job(job_id).flags is JobFlag.NONE
    cluster.now = 1020
    cluster.ended(job_id)
    job = cluster.job(job_id)
    assert (job.state, job.flags, job.end_time) == (JobState.COMPLETED, JobFlag.COMPLETING, 1020)
    assert cluster.terminated() == [job_id]
    cluster.released(job_id, "n1")
    assert cluster.job(job_id).flags is JobFlag.COMPLETING
    cluster.released(job_id, "n2")
    assert cluster.job(job_id).flags is JobFlag.NONE
    assert cluster.machine.node_usage("n1").cpus == 0
    cluster.tick(299)
    assert job_id in cluster.machine.jobs
    cluster.tick(2)
    assert ForgetJob(job_id) in cluster.effects
    assert job_id not in cluster.machine.jobs


@pytest.mark.parametrize(
    ("exit_code", "why", "state", "reason", "description"),
    [
        (0, {}, JobState.COMPLETED, Reason.NONE, ""),
        (3 << 8, {}, JobState.FAILED, Reason.NON_ZERO_EXIT_CODE, ""),
        (15, {}, JobState.FAILED, Reason.RAISED_SIGNAL, "RaisedSignal:15(Terminated)"),
        (15, {"timed_out": True}, JobState.TIMEOUT, Reason.TIME_LIMIT, ""),
        (9, {"out_of_memory": True}, JobState.OUT_OF_MEMORY, Reason.OUT_OF_MEMORY, ""),
    ],
)
def test_how_it_ended(
    cluster: Cluster, exit_code: int, why: dict[str, bool], state: JobState, reason: Reason, description: str
) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.ended(job_id, exit_code, **why)
    job = cluster.job(job_id)
    assert (job.state, job.reason, job.state_description, job.exit_code) == (state, reason, description, exit_code)


def test_killed_while_it_runs(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.kill("1")
    job = cluster.job(job_id)
    assert (job.state, job.flags & JobFlag.COMPLETING, job.cancelled_by) == (JobState.CANCELLED, JobFlag.COMPLETING, 1000)
    assert Terminate(job_id, 0, 5, ("n1",)) in cluster.effects
    cluster.ended(job_id, 15)
    assert (cluster.job(job_id).state, cluster.job(job_id).exit_code) == (JobState.CANCELLED, 15)
    cluster.released(job_id)
    cluster.kill("1")
    assert cluster.refusal() is Errno.ALREADY_DONE


def test_killed_while_it_waits(cluster: Cluster) -> None:
    job_id = cluster.submit(begin_time=5000)
    cluster.now = 1100
    cluster.kill("1")
    job = cluster.job(job_id)
    assert (job.state, job.reason) == (JobState.CANCELLED, Reason.BEGIN_TIME)
    assert job.start_time == job.end_time == 1100
    assert cluster.terminated() == []
    cluster.now = 6000
    assert cluster.plan() == []


def test_signals_reach_what_runs_alone(cluster: Cluster) -> None:
    cluster.submit()
    cluster.kill("1", signal=10)
    assert cluster.refusal() is Errno.TRANSITION_STATE_NO_UPDATE
    cluster.plan()
    cluster.kill("1", signal=10)  # nothing is there yet that could take it
    assert cluster.refusal() is Errno.TRANSITION_STATE_NO_UPDATE
    cluster.started(1)
    cluster.kill("1", signal=10, flags=KillFlag.BATCH)
    assert Signal(1, 0, 10, None, KillFlag.BATCH) in cluster.effects
    cluster.kill("1", signal=12, flags=KillFlag.FULL)
    assert Signal(1, 0, 12, None, KillFlag.FULL) in cluster.effects
    cluster.kill("1", flags=KillFlag.BATCH)
    assert Signal(1, 0, 9, None, KillFlag.BATCH) in cluster.effects
    assert cluster.job(1).state is JobState.RUNNING
    cluster.kill("1.0")
    assert cluster.refusal() is Errno.INVALID_JOB_ID
    cluster.tell(StepStarted(cluster.now, 0, Step(1, 0, "a.out", JobState.RUNNING, 1000)))
    cluster.kill("1.0")
    assert Signal(1, 0, 9, 0, KillFlag.CANCEL) in cluster.effects
    cluster.kill("1.0", signal=9)
    assert Signal(1, 0, 9, 0, KillFlag.NONE) in cluster.effects
    cluster.kill("1", signal=9, flags=KillFlag.FULL)
    assert cluster.job(1).state is JobState.CANCELLED


def test_others_may_not_touch_it(cluster: Cluster) -> None:
    cluster.submit()
    cluster.kill("1", caller=BOB)
    assert cluster.refusal() is Errno.ACCESS_DENIED
    cluster.hold("1", BOB)
    assert cluster.refusal() is Errno.USER_ID_MISSING
    cluster.update("1", BOB, time_limit=1)
    assert cluster.refusal() is Errno.USER_ID_MISSING
    for event in (Requeue(cluster.now, BOB, (JobSelection(1),)), Suspend(cluster.now, BOB, (JobSelection(1),))):
        cluster.tell(event)
        assert cluster.refusal() is Errno.ACCESS_DENIED
    assert cluster.job(1).state is JobState.PENDING
    cluster.kill("1", caller=ROOT)
    assert cluster.job(1).state is JobState.CANCELLED


def test_unknown_jobs_are_named(cluster: Cluster) -> None:
    cluster.submit()
    cluster.kill("77", "1", "78_3")
    subjects = [effect.subject for effect in cluster.effects if hasattr(effect, "subject")]
    assert subjects == ["77", "78_3"]
    assert cluster.job(1).state is JobState.CANCELLED


def test_steps(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    step = Step(job_id, 0, "a.out", JobState.RUNNING, 1000)
    assert cluster.tell(StepStarted(1000, 0, step)) == [SaveStep(step, 0)]
    assert cluster.job(job_id).steps == (step,)
    assert cluster.job(job_id).next_step == 1
    done = Step(job_id, 0, "a.out", JobState.FAILED, 1000, 1005, exit_code=256)
    cluster.tell(StepEnded(1005, 0, done))
    assert SaveStep(done, 0) in cluster.effects
    assert cluster.job(job_id).steps == ()
    assert cluster.job(job_id).derived_exit_code == 256
    cluster.tell(StepStarted(1006, 0, Step(job_id, 1, "b.out", JobState.RUNNING, 1006)))
    cluster.run_to_end(job_id)
    closed = next(effect.step for effect in cluster.effects if isinstance(effect, SaveStep))
    assert (closed.step_id, closed.state, bool(closed.end_time)) == (1, JobState.CANCELLED, True)


def test_a_lost_node_puts_the_job_back_in_the_queue(cluster: Cluster) -> None:
    job_id = cluster.submit(minimum_nodes=2, maximum_nodes=2)
    cluster.plan()
    cluster.tell(NodeFailed(1010, job_id, 0, ("n2",)))
    job = cluster.job(job_id)
    assert (job.state, job.failed_node) == (JobState.PENDING, "n2")
    assert job.flags & (JobFlag.COMPLETING | JobFlag.REQUEUED) == JobFlag.COMPLETING | JobFlag.REQUEUED
    assert Terminate(job_id, 0, 5, ("n1",), "node failure") in cluster.effects
    cluster.tell(NodesReleased(1012, job_id, 0, ("n1",)))
    job = cluster.job(job_id)
    assert (job.state, job.flags, job.restarts, job.allocation) == (JobState.PENDING, JobFlag.NONE, 1, None)
    assert (job.reason, job.eligible_time) == (Reason.BEGIN_TIME, 1012 + 121)
    assert [effect for effect in cluster.effects if isinstance(effect, WakeAt)] == [WakeAt(1133.0)]
    cluster.now = 1050
    cluster.plan()
    assert cluster.launched() == []
    cluster.now = 1133
    cluster.tick()
    cluster.plan()
    assert cluster.launched() == [job_id]
    before = cluster.job(job_id)
    for late in (
        BatchEnded(1140, job_id, 0, 0),
        NodesReleased(1140, job_id, 0, ("n1", "n2")),
        NodeFailed(1140, job_id, 0, ("n1",)),
        JobStarted(1140, job_id, 0),
        LaunchFailed(1140, job_id, 0, "late"),
    ):
        assert cluster.tell(late) == []
    assert cluster.job(job_id) is before


def test_a_lost_node_ends_a_job_that_must_not_run_twice(cluster: Cluster) -> None:
    job_id = cluster.submit(minimum_nodes=2, maximum_nodes=2, requeue=False)
    cluster.plan()
    cluster.tell(NodeFailed(1010, job_id, 0, ("n2",)))
    job = cluster.job(job_id)
    assert (job.state, job.reason, job.failed_node) == (JobState.NODE_FAIL, Reason.NODE_DOWN, "n2")
    cluster.released(job_id, "n1")
    assert cluster.job(job_id).flags is JobFlag.NONE


def test_no_kill_goes_on_with_fewer_nodes(cluster: Cluster) -> None:
    job_id = cluster.submit(minimum_nodes=2, maximum_nodes=2, kill_on_node_fail=False)
    cluster.plan()
    cluster.tell(NodeFailed(1010, job_id, 0, ("n2",)))
    job = cluster.job(job_id)
    assert job.state is JobState.RUNNING
    assert job.allocation is not None
    assert job.allocation.nodes == ("n1",)
    assert cluster.machine.node_usage("n2").cpus == 0


def test_a_failed_launch_is_held(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.tell(LaunchFailed(1001, job_id, 0, "no such directory"))
    cluster.released(job_id)
    job = cluster.job(job_id)
    assert (job.state, job.priority, job.reason) == (JobState.PENDING, 0, Reason.JOB_LAUNCH_FAILURE)
    assert job.state_description == "launch failed requeued held"
    cluster.plan()
    assert cluster.launched() == []
    cluster.release_hold("1")
    assert (cluster.job(job_id).state_description, cluster.job(job_id).reason) == ("", Reason.BEGIN_TIME)
    cluster.tick(121)
    cluster.plan()
    assert cluster.launched() == [job_id]


def test_a_failed_allocation_is_over(cluster: Cluster) -> None:
    job_id = cluster.submit(batch=False)
    cluster.plan()
    cluster.tell(LaunchFailed(1001, job_id, 0, "no", ("n1",)))
    assert (cluster.job(job_id).state, cluster.job(job_id).flags) == (JobState.FAILED, JobFlag.NONE)


def requeue(cluster: Cluster, job: int, *, hold: bool = False) -> None:
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(job),), hold=hold))


@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("ended", [False, True])
def test_requeue_as_special_exit_tells_which_command_it_was(cluster: Cluster, hold: bool, ended: bool) -> None:
    job_id = cluster.submit()
    cluster.plan()
    if ended:
        cluster.run_to_end(job_id)
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(job_id),), hold=hold, special_exit=True))
    if not ended:
        cluster.released(job_id)
    job = cluster.job(job_id)
    assert (job.state, job.priority, bool(job.flags & JobFlag.SPECIAL_EXIT)) == (JobState.PENDING, 0, True)
    assert job.state_description == f"job requeued in {'held' if hold else 'special exit'} state"


def test_requeue_of_what_is_incomplete_leaves_what_waits_and_what_has_ended(cluster: Cluster) -> None:
    waiting, ended, running = cluster.submit(hold=True), cluster.submit(), cluster.submit()
    cluster.plan()
    cluster.run_to_end(ended)
    before = [cluster.job(job_id) for job_id in (waiting, ended)]
    chosen = tuple(JobSelection(job_id) for job_id in (waiting, ended, running))
    cluster.tell(Requeue(cluster.now, ALICE, chosen, incomplete=True))
    assert [cluster.job(job_id) for job_id in (waiting, ended)] == before
    cluster.released(running)
    assert (cluster.job(running).state, cluster.job(running).restarts) == (JobState.PENDING, 1)


def test_requeue(cluster: Cluster) -> None:
    job_id = cluster.submit()
    requeue(cluster, job_id)
    assert cluster.refusal() is Errno.JOB_PENDING
    cluster.plan()
    requeue(cluster, job_id)
    assert Terminate(job_id, 0, 5, ("n1",), "requeue") in cluster.effects
    cluster.released(job_id)
    job = cluster.job(job_id)
    assert (job.restarts, job.state, job.submit_time, job.eligible_time) == (1, JobState.PENDING, 1000, 1121)
    cluster.tick(130)
    cluster.plan()
    cluster.run_to_end(job_id, 256)
    requeue(cluster, job_id, hold=True)
    job = cluster.job(job_id)
    assert (job.restarts, job.priority, job.state_description) == (2, 0, "job requeued in held state")
    other = cluster.submit(requeue=False)
    cluster.plan()
    requeue(cluster, other)
    assert cluster.refusal() is Errno.DISABLED


def test_a_requeued_job_may_be_cancelled_on_its_way(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    requeue(cluster, job_id)
    cluster.kill("1")
    cluster.released(job_id)
    assert (cluster.job(job_id).state, cluster.job(job_id).restarts) == (JobState.CANCELLED, 0)


def test_the_cpus_of_a_suspended_job_are_for_others_until_it_goes_on(cluster: Cluster) -> None:
    """Its memory stays its own; and it goes on when it is told to, whoever has its CPUs by then (as observed)."""
    first = cluster.submit(required_nodes="n1", tasks=8, memory_per_node=9000)
    cluster.plan()
    other = cluster.submit(required_nodes="n1", tasks=8, memory_per_node=7000)
    big = cluster.submit(required_nodes="n1", tasks=1, memory_per_node=9000)
    cluster.plan()
    assert (cluster.job(other).state, cluster.job(big).state) == (JobState.PENDING, JobState.PENDING)
    cluster.tell(Suspend(cluster.now, ROOT, (JobSelection(first),)))
    cluster.plan()
    assert (cluster.job(other).state, cluster.job(big).state) == (JobState.RUNNING, JobState.PENDING)
    cluster.plan()
    assert cluster.job(first).state is JobState.SUSPENDED, "nobody but who suspended it lets it go on"
    cluster.tell(Suspend(cluster.now, ROOT, (JobSelection(first),), resume=True))
    cluster.plan()
    assert [cluster.job(job_id).state for job_id in (first, other, big)] == [
        JobState.RUNNING,
        JobState.RUNNING,
        JobState.PENDING,
    ]


def test_a_job_that_was_sent_a_stop_is_stopped_until_it_continues(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.started(job_id)
    cluster.kill("1", signal=20)
    assert cluster.job(job_id).flags == JobFlag.NONE
    for flags in (KillFlag.NONE, KillFlag.BATCH, KillFlag.FULL):
        cluster.kill("1", signal=19, flags=flags)
        assert (cluster.job(job_id).state, cluster.job(job_id).flags) == (JobState.RUNNING, JobFlag.STOPPED)
        assert Signal(job_id, 0, 19, None, flags) in cluster.effects
        cluster.kill("1", signal=18, flags=flags)
        assert cluster.job(job_id).flags == JobFlag.NONE
    cluster.kill("1", signal=19)
    cluster.tell(Suspend(cluster.now, ALICE, (JobSelection(job_id),)))
    cluster.tell(Suspend(cluster.now, ALICE, (JobSelection(job_id),), resume=True))
    assert (cluster.job(job_id).state, cluster.job(job_id).flags) == (JobState.RUNNING, JobFlag.NONE)
    cluster.kill("1", signal=19)
    cluster.kill("1")
    assert cluster.job(job_id).flags == JobFlag.COMPLETING


def test_suspended_time_does_not_count(cluster: Cluster) -> None:
    job_id = cluster.submit(time_limit=10)
    cluster.plan()
    cluster.now = 1100
    cluster.tell(Suspend(cluster.now, ALICE, (JobSelection(job_id),)))
    assert cluster.job(job_id).state is JobState.SUSPENDED
    assert Signal(job_id, 0, 20, None, KillFlag.FULL) in cluster.effects
    cluster.tick(2)
    assert Signal(job_id, 0, 19, None, KillFlag.FULL) in cluster.effects
    cluster.now = 1160
    cluster.tell(Suspend(cluster.now, ALICE, (JobSelection(job_id),), resume=True))
    job = cluster.job(job_id)
    assert (job.state, job.suspended_seconds, job.end_time) == (JobState.RUNNING, 60, 1660)
    assert UpdateLimit(job_id, 0, 1660) in cluster.effects
    cluster.tell(Suspend(cluster.now, ALICE, (JobSelection(job_id),), resume=True))
    assert cluster.refusal() is Errno.JOB_NOT_SUSPENDED


def test_what_begins_while_a_job_is_suspended_has_begun(cluster: Cluster) -> None:
    """Its nodes may be told so just before they had begun with it."""
    job_id = cluster.submit(time_limit=10)
    cluster.plan()
    assert cluster.job(job_id).flags == JobFlag.CONFIGURING
    cluster.tell(Suspend(cluster.now, ALICE, (JobSelection(job_id),)))
    cluster.started(job_id)
    job = cluster.job(job_id)
    assert (job.state, job.flags & JobFlag.CONFIGURING) == (JobState.SUSPENDED, 0)
    cluster.tell(Suspend(cluster.now, ALICE, (JobSelection(job_id),), resume=True))
    assert cluster.job(job_id).state is JobState.RUNNING


def test_a_launch_that_fails_while_the_job_is_suspended_has_failed(cluster: Cluster) -> None:
    job_id = cluster.submit(time_limit=10)
    cluster.plan()
    cluster.tell(Suspend(cluster.now, ALICE, (JobSelection(job_id),)))
    cluster.tell(LaunchFailed(cluster.now, job_id, 0, "no such image"))
    cluster.released(job_id)
    job = cluster.job(job_id)
    assert (job.state, job.priority, job.suspended_seconds) == (JobState.PENDING, 0, 0)


def test_the_controller_ends_what_stepd_should_have(cluster: Cluster) -> None:
    job_id = cluster.submit(time_limit=1)
    cluster.plan()
    cluster.started(job_id)
    cluster.tick(61)
    assert cluster.job(job_id).state is JobState.RUNNING
    cluster.tick(5 + 60)
    assert cluster.job(job_id).state is JobState.TIMEOUT
    assert cluster.terminated() == [job_id]


def test_what_a_job_takes_to_come_up_is_not_its_time(cluster: Cluster) -> None:
    job_id = cluster.submit(time_limit=1)
    cluster.plan()
    start = int(cluster.now)
    cluster.tick(400)
    job = cluster.job(job_id)
    assert (job.state, job.flags, job.start_time) == (JobState.RUNNING, JobFlag.CONFIGURING, start)
    row = next(iter(cluster.machine.snapshot(cluster.now).running))
    assert row.end_time == start + 400 + 60
    cluster.tell(JobStarted(cluster.now, job_id, 0, begun=start + 398.7))
    job = cluster.job(job_id)
    assert (job.flags, job.start_time, job.end_time) == (JobFlag.NONE, start + 398, start + 398 + 60)
    assert UpdateLimit(job_id, 0, start + 398 + 60) in cluster.effects
    row = next(iter(cluster.machine.snapshot(cluster.now).running))
    assert row.end_time == start + 398 + 60
    assert cluster.tell(JobStarted(cluster.now, job_id, 0, begun=cluster.now)) == []
    cluster.tick(61)
    assert cluster.job(job_id).state is JobState.RUNNING
    cluster.tick(5 + 60)
    assert cluster.job(job_id).state is JobState.TIMEOUT


@pytest.mark.parametrize(("begun", "counts_from"), [(None, 0), (-500.0, 0), (7.9, 7), (9e9, 10)])
def test_when_a_job_came_up_lies_between_its_start_and_now(cluster: Cluster, begun: float | None, counts_from: int) -> None:
    job_id = cluster.submit(time_limit=2)
    cluster.plan()
    start = int(cluster.now)
    cluster.now += 10
    cluster.tell(JobStarted(cluster.now, job_id, 0, begun=None if begun is None else start + begun))
    job, moved = cluster.job(job_id), start + counts_from
    assert (job.start_time, job.end_time) == (moved, moved + 120)
    told = [effect for effect in cluster.effects if isinstance(effect, UpdateLimit)]
    assert told == ([UpdateLimit(job_id, 0, moved + 120)] if counts_from else [])


def test_begin_times_and_deadlines(cluster: Cluster) -> None:
    cluster.submit(begin_time=1500)
    assert cluster.job(1).reason is Reason.BEGIN_TIME
    assert WakeAt(1500.0) in cluster.effects
    cluster.plan()
    assert cluster.launched() == []
    cluster.tick(500)
    cluster.plan()
    assert cluster.launched() == [1]
    late = cluster.submit(minimum_nodes=8, maximum_nodes=8, cpus_per_task=8, deadline=2200, time_limit=10)
    cluster.tick(701)
    assert cluster.job(late).state is JobState.DEADLINE


@pytest.mark.parametrize(
    ("asked", "last"),
    [
        ({"time_limit": 10}, 1900),
        ({"time_limit": 10, "time_minimum": 5}, 2200),
        ({"time_limit": INFINITE, "time_minimum": 2}, 2380),
        ({}, 1900),
    ],
)
def test_a_job_is_over_once_it_cannot_keep_its_deadline(cluster: Cluster, asked: dict[str, int], last: int) -> None:
    """Ten minutes is the partition's time; ``last`` is the last second at which it could start."""
    for _ in range(8):
        cluster.submit(shared="none", time_limit=50)
    cluster.plan()
    late = cluster.submit(shared="none", deadline=2500, **asked)
    cluster.tick(last - cluster.now)
    assert cluster.job(late).state is JobState.PENDING
    cluster.tick(1)
    job = cluster.job(late)
    assert (job.state, job.reason, job.end_time, job.exit_code) == (JobState.DEADLINE, Reason.DEADLINE, last + 1, 1)


def test_only_a_job_that_could_start_is_too_late(cluster: Cluster) -> None:
    first = cluster.submit(time_limit=50)
    held = cluster.submit(hold=True, deadline=2500, time_limit=10)
    waits = cluster.submit(dependency=f"afterok:{first}", deadline=2500, time_limit=10)
    later = cluster.submit(begin_time=1900, deadline=2500, time_limit=10)
    cluster.update(str(later), time_minimum=8)
    cluster.plan()
    cluster.tick(901)
    assert {cluster.job(each).state for each in (held, waits, later)} == {JobState.PENDING}
    cluster.release_hold(str(held))
    cluster.run_to_end(first)
    cluster.update(str(later), time_minimum=10)
    cluster.tick(0)
    assert [cluster.job(each).state for each in (held, waits, later)] == [JobState.DEADLINE] * 3


def test_a_later_deadline_gives_a_job_more_time(cluster: Cluster) -> None:
    for _ in range(8):
        cluster.submit(shared="none", time_limit=50)
    cluster.plan()
    late = cluster.submit(shared="none", deadline=2500, time_limit=10)
    cluster.update(str(late), deadline=3500)
    cluster.tick(1400)
    assert cluster.job(late).state is JobState.PENDING
    cluster.update(str(late), time_limit=20)
    cluster.tick(0)
    assert cluster.job(late).state is JobState.DEADLINE


def test_times_of_waiting_jobs_are_those_of_the_reference(cluster: Cluster) -> None:
    held, later, plain = cluster.submit(hold=True), cluster.submit(begin_time=4600), cluster.submit()
    both = cluster.submit(hold=True, begin_time=4600)
    waits = cluster.submit(dependency=f"afterok:{held}")
    times = [(job.eligible_time, job.accrue_time) for job in map(cluster.job, (held, later, plain, both, waits))]
    assert times == [(0, 0), (4600, 0), (1000, 1000), (4600, 0), (0, 0)]
    cluster.release_hold(str(held))
    assert cluster.job(held).accrue_time == 1000
    cluster.tick(3600)
    assert cluster.job(later).accrue_time == 4600


def test_reports_may_come_twice_late_or_about_nobody(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.started(job_id)
    assert cluster.tell(JobStarted(1001, job_id, 0)) == []
    cluster.ended(job_id)
    assert cluster.tell(BatchEnded(1001, job_id, 0, 0)) == []
    cluster.released(job_id)
    assert cluster.tell(NodesReleased(1001, job_id, 0, ("n1",))) == []
    assert cluster.tell(JobStarted(1001, job_id, 0)) == []
    for nobody in (
        BatchEnded(1, 99, 0, 0),
        NodeFailed(1, 99, 0, ("n1",)),
        StepEnded(1, 0, Step(99, 0, "x", JobState.COMPLETED, 1)),
        LaunchFailed(1, 99, 0, ""),
    ):
        assert cluster.tell(nobody) == []


def test_nodes_may_be_released_before_the_script_is_known_to_have_ended(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.tell(NodesReleased(1001, job_id, 0, ("n1",)))
    assert cluster.job(job_id).state is JobState.RUNNING
    cluster.ended(job_id)
    assert (cluster.job(job_id).state, cluster.job(job_id).flags) == (JobState.COMPLETED, JobFlag.NONE)


def test_a_stale_plan_starts_nothing_twice(cluster: Cluster) -> None:
    first = cluster.submit(minimum_nodes=8, maximum_nodes=8, shared="none")
    stale = plan(cluster.machine.snapshot(cluster.now))
    cluster.tell(Planned(cluster.now, stale))
    assert cluster.launched() == [first]
    assert cluster.tell(Planned(cluster.now, stale)) == []
    cluster.submit()
    other = plan(cluster.machine.snapshot(cluster.now))
    assert other.starts == ()
    cluster.run_to_end(first)
    again = plan(cluster.machine.snapshot(cluster.now))
    cluster.update_node("n1", state="DRAIN", reason="broken")
    cluster.tell(Planned(cluster.now, again))
    assert cluster.launched() == []


def test_only_a_plan_of_an_older_state_is_worth_making_again(cluster: Cluster) -> None:
    cluster.submit(required_nodes="n1")
    made = plan(cluster.machine.snapshot(cluster.now))
    broken = replace(made, starts=tuple(replace(start, allocation=oversized(start.allocation)) for start in made.starts))
    assert cluster.tell(Planned(cluster.now, broken)) == []
    cluster.submit()
    assert cluster.tell(Planned(cluster.now, broken)) == [WakePlanner()]
    assert cluster.job(1).state is JobState.PENDING


def oversized(allocation: Allocation) -> Allocation:
    return replace(allocation, shares=tuple(replace(share, cpus=9) for share in allocation.shares))


def test_what_waits_is_told_why(cluster: Cluster) -> None:
    cluster.submit(minimum_nodes=8, maximum_nodes=8, shared="none")
    cluster.submit(minimum_nodes=8, maximum_nodes=8, shared="none")
    cluster.plan()
    assert cluster.job(2).reason is Reason.RESOURCES
    assert cluster.machine.outlooks[2].start_time is not None
    assert cluster.saved()[0].job_id == 1
    cluster.run_to_end(1)
    cluster.plan()
    assert 2 not in cluster.machine.outlooks


def test_running_jobs_outlive_the_controller(cluster: Cluster) -> None:
    running = cluster.submit(minimum_nodes=2, maximum_nodes=2)
    cluster.plan()
    waiting = cluster.submit(begin_time=2000)
    cluster.machine = cluster.restarted()
    assert cluster.job(running).state is JobState.RUNNING
    assert cluster.machine.node_usage("n1").cpus == 1
    cluster.run_to_end(running)
    assert cluster.job(running).state is JobState.COMPLETED
    cluster.now = 2000
    cluster.tick()
    cluster.plan()
    assert cluster.launched() == [waiting]


def test_memory_is_not_consumed_where_the_site_says_so() -> None:
    cluster = Cluster(small_site(memory_is_consumable=False))
    for _ in range(3):
        cluster.submit(memory_per_node=15000, required_nodes="n1")
    cluster.plan()
    assert len(cluster.launched()) == 3


def test_a_suspended_job_that_is_cancelled_is_killed_at_once(cluster: Cluster) -> None:
    job_id = cluster.submit()
    cluster.plan()
    cluster.started(job_id)
    cluster.tell(Suspend(cluster.now, ROOT, (JobSelection(job_id),)))
    cluster.kill(str(job_id))
    assert Terminate(job_id, 0, 0, ("n1",), "suspended") in cluster.effects


@pytest.mark.parametrize(("signal", "by"), [(None, ALICE.user_id), (9, None)])
def test_a_step_that_is_cancelled_tells_by_whom(cluster: Cluster, signal: int | None, by: int | None) -> None:
    job_id = cluster.submit()
    cluster.plan()
    step = Step(job_id, 0, "sleep", JobState.RUNNING, 1000)
    cluster.tell(StepStarted(cluster.now, 0, step))
    cluster.kill(f"{job_id}.0", signal=signal)
    cluster.tell(StepEnded(cluster.now, 0, replace(step, state=JobState.CANCELLED, exit_code=9)))
    saved = [effect.step for effect in cluster.effects if isinstance(effect, SaveStep)]
    assert [each.killed_by for each in saved] == [by]


def test_exit_codes_that_put_a_job_back_in_the_queue() -> None:
    cluster = Cluster(replace(small_site(), requeue_exit=frozenset({4}), requeue_exit_hold=frozenset({7})))
    ended = {}
    for code, requeue_wanted in ((4, None), (7, None), (5, None), (4, False)):
        job_id = cluster.submit(requeue=requeue_wanted)
        cluster.plan()
        cluster.run_to_end(job_id, code << 8)
        ended[job_id] = cluster.job(job_id)
    again, held, failed, unwilling = ended.values()
    assert (again.state, again.restarts, again.reason) == (JobState.PENDING, 1, Reason.BEGIN_TIME)
    assert (held.state, held.reason, held.priority) == (JobState.PENDING, Reason.JOB_HELD_USER, 0)
    assert held.flags & JobFlag.SPECIAL_EXIT
    assert held.state_description == ""
    assert {failed.state, unwilling.state} == {JobState.FAILED}


def test_a_site_without_jobs_of_root() -> None:
    cluster = Cluster(replace(small_site(), disable_root_jobs=True))
    cluster.try_submit(ROOT)
    assert cluster.refusal() is Errno.USER_ID_MISSING
    cluster.submit(ALICE)
