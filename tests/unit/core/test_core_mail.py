"""--mail-type: the subjects are those that the reference's MailProg was called with."""

from __future__ import annotations

import pytest
from core_story import ALICE, Cluster, small_site

from slurmk.core.effects import Mail
from slurmk.core.events import NodeFailed, Requeue, Tick
from slurmk.core.selection import parse

ALL = ("INVALID_DEPENDENCY", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT")


def subjects(cluster: Cluster) -> list[str]:
    return [effect.subject for effect in cluster.effects if isinstance(effect, Mail)]


def variables(cluster: Cluster) -> dict[str, str]:
    [mail] = [effect for effect in cluster.effects if isinstance(effect, Mail)]
    return dict(mail.variables)


def run(cluster: Cluster, exit_code: int = 0, *, kinds: tuple[str, ...] = ALL, **request: object) -> int:
    """Submit, start, and end five seconds later; the effects are those of the end."""
    job_id = cluster.submit(mail_type=kinds, name="x", **request)
    cluster.plan()
    cluster.now += 5
    cluster.run_to_end(job_id, exit_code)
    return job_id


def test_the_ordinary_life(cluster: Cluster) -> None:
    cluster.submit(mail_type=ALL, name="x")
    cluster.now += 3
    cluster.plan()
    assert subjects(cluster) == ["Slurm Job_id=1 Name=x Began, Queued time 00:00:03"]
    assert variables(cluster) == {"SLURM_JOB_MAIL_TYPE": "Began", "SLURM_JOB_QUEUED_TIME": "00:00:03"}
    cluster.now += 90061
    cluster.run_to_end(1)
    assert subjects(cluster) == ["Slurm Job_id=1 Name=x Ended, Run time 1-01:01:01, COMPLETED, ExitCode 0"]
    assert variables(cluster)["SLURM_JOB_EXIT_CODE_MAX"] == "0"


@pytest.mark.parametrize(
    ("kinds", "status", "subject"),
    [
        (ALL, 3 << 8, "Failed, Run time 00:00:05, FAILED, ExitCode 3"),
        (("END",), 5 << 8, "Ended, Run time 00:00:05, FAILED, ExitCode 5"),
        (("FAIL",), 5 << 8, "Failed, Run time 00:00:05, FAILED, ExitCode 5"),
        (("FAIL",), 9, "Failed, Run time 00:00:05, FAILED"),
        (("FAIL",), 0, None),
        (("BEGIN",), 1 << 8, None),
        ((), 0, None),
    ],
)
def test_how_it_ended(cluster: Cluster, kinds: tuple[str, ...], status: int, subject: str | None) -> None:
    run(cluster, status, kinds=kinds)
    assert subjects(cluster) == ([f"Slurm Job_id=1 Name=x {subject}"] if subject else [])


def test_a_cancelled_job_has_ended(cluster: Cluster) -> None:
    cluster.submit(mail_type=ALL, name="x", hold=True)
    cluster.kill("1")
    assert subjects(cluster) == ["Slurm Job_id=1 Name=x Ended, Run time 00:00:00, CANCELLED, ExitCode 0"]
    cluster.submit(mail_type=("FAIL",), hold=True)
    cluster.kill("2")
    assert subjects(cluster) == []
    cluster.submit(mail_type=ALL, name="y")
    cluster.plan()
    cluster.kill("3")
    cluster.ended(3, 15)
    cluster.released(3)
    assert subjects(cluster) == ["Slurm Job_id=3 Name=y Ended, Run time 00:00:00, CANCELLED, ExitCode 0"]


def test_a_lost_node(cluster: Cluster) -> None:
    cluster.submit(mail_type=ALL, name="x", requeue=False)
    cluster.plan()
    job = cluster.job(1)
    assert job.allocation is not None
    cluster.tell(NodeFailed(cluster.now, 1, 0, job.allocation.nodes))
    assert subjects(cluster) == ["Slurm Job_id=1 Name=x Failed, Run time 00:00:00, NODE_FAIL"]


def test_requeued(cluster: Cluster) -> None:
    cluster.submit(mail_type=ALL, name="x")
    cluster.plan()
    cluster.now += 4
    cluster.tell(Requeue(cluster.now, ALICE, (parse("1"),)))
    assert subjects(cluster) == ["Slurm Job_id=1 Name=x Requeued, Run time 00:00:04"]


def test_whom_to_write_to() -> None:
    cluster = Cluster(small_site(parameters={"MailDomain": "example.org"}))
    cluster.submit(mail_type=("BEGIN",))
    cluster.submit(mail_type=("BEGIN",), mail_user="bob")
    cluster.submit()
    assert [cluster.job(number).request.mail_user for number in (1, 2, 3)] == ["alice@example.org", "bob", None]
    cluster.plan()
    assert [effect.address for effect in cluster.effects if isinstance(effect, Mail)] == ["alice@example.org", "bob"]


def test_what_can_never_be(cluster: Cluster) -> None:
    run(cluster, 1 << 8, kinds=())
    cluster.submit(mail_type=ALL, name="y", dependency="afterok:1")
    assert subjects(cluster) == ["Slurm Job_id=2 Name=y Invalid dependency"]
    cluster.tick(60)
    assert subjects(cluster) == []
    cluster.submit(mail_type=ALL, name="z", dependency="afterok:1", kill_on_invalid_dependency=True)
    assert subjects(cluster) == [
        "Slurm Job_id=3 Name=z Invalid dependency",
        "Slurm Job_id=3 Name=z Ended, Run time 00:00:00, CANCELLED, ExitCode 0",
    ]


MARKS = ("TIME=50%", "TIME=80%", "TIME=90%", "TIME=100%")


def test_parts_of_the_time_limit(cluster: Cluster) -> None:
    cluster.submit(mail_type=("END", *MARKS), name="x", time_limit=10)
    cluster.plan()
    cluster.started(1)
    cluster.tick(299)
    assert subjects(cluster) == []
    cluster.tick(1)
    assert subjects(cluster) == ["Slurm Job_id=1 Name=x Reached 50% of time limit, Run time 00:05:00"]
    cluster.tick(1)
    assert subjects(cluster) == []
    again = cluster.restarted()
    assert not [effect for effect in again.handle(Tick(cluster.now)) if isinstance(effect, Mail)]
    cluster.tick(179)
    assert subjects(cluster) == ["Slurm Job_id=1 Name=x Reached 80% of time limit, Run time 00:08:00"]
    cluster.now += 125
    cluster.ended(1, timed_out=True)
    assert subjects(cluster) == [
        "Slurm Job_id=1 Name=x Reached 90% of time limit, Run time 00:10:05",
        "Slurm Job_id=1 Name=x Reached time limit, Run time 00:10:05",
    ]
    assert cluster.job(1).request.mail_type == ("END",)


def test_marks_follow_the_limit(cluster: Cluster) -> None:
    cluster.submit(mail_type=("TIME=50%",), name="x", time_limit=10)
    cluster.plan()
    cluster.started(1)
    cluster.tick(100)
    cluster.update("1", time_limit=3)
    cluster.tick()
    assert subjects(cluster) == ["Slurm Job_id=1 Name=x Reached 50% of time limit, Run time 00:01:40"]


def test_marks_are_told_after_a_restart(cluster: Cluster) -> None:
    cluster.submit(mail_type=("TIME=50%",), time_limit=10)
    cluster.plan()
    cluster.started(1)
    machine = cluster.restarted()
    told = [effect for effect in machine.handle(Tick(cluster.now + 400)) if isinstance(effect, Mail)]
    assert len(told) == 1
    assert not [effect for effect in machine.handle(Tick(cluster.now + 401)) if isinstance(effect, Mail)]


# ------------------------------------------------------------------------------------------------- arrays, het jobs


def finish(cluster: Cluster, array: int, statuses: dict[int, int | str]) -> list[str]:
    """Run an array's elements to their ends in that order (CANCEL: by scancel); the subjects of all mails."""
    cluster.plan()
    told = subjects(cluster)
    ids = {job.array_task_id: job.job_id for job in cluster.machine.jobs_of_array(array)}
    for task, status in statuses.items():
        cluster.now += 1
        if isinstance(status, int):
            cluster.ended(ids[task], status)
        else:
            cluster.kill(f"{array}_{task}")
        cluster.released(ids[task])
        told += subjects(cluster)
    return told


BEGAN = "Slurm Array Summary Job_id=1_* (1) Name=x Began"


@pytest.mark.parametrize(
    ("kinds", "statuses", "subject"),
    [
        (ALL, {1: 0, 2: 0}, "Ended, COMPLETED, ExitCode [0-0]"),
        (("END",), {1: 4 << 8, 2: 4 << 8}, "Ended, FAILED, ExitCode [4-4]"),
        (ALL, {1: 1 << 8, 2: 3 << 8}, "Failed, FAILED, ExitCode [1-3]"),
        (ALL, {1: 3 << 8, 2: 0}, "Failed, Mixed, ExitCode [0-3]"),
        (ALL, {2: 0, 1: 3 << 8}, "Failed, Mixed, ExitCode [0-3]"),
        (ALL, {1: 15, 2: 15}, "Ended, Mixed, MaxSignal [15]"),
        (("FAIL",), {1: 9, 2: 9}, None),
        (("FAIL",), {1: 0, 2: 0}, None),
        (ALL, {1: 0, 2: "CANCEL"}, "Ended, Mixed, MaxSignal [9]"),
        (ALL, {1: 1 << 8, 2: "CANCEL"}, "Failed, Mixed, MaxExitCode [1]"),
    ],
)
def test_an_array_as_a_whole(
    cluster: Cluster, kinds: tuple[str, ...], statuses: dict[int, int | str], subject: str | None
) -> None:
    cluster.submit(mail_type=kinds, name="x", array="1-2")
    began = [BEGAN] if "BEGIN" in kinds else []
    ended = [f"Slurm Array Summary Job_id=1_* (1) Name=x {subject}"] if subject else []
    assert finish(cluster, 1, statuses) == began + ended


def test_an_array_begins_once(cluster: Cluster) -> None:
    cluster.submit(mail_type=("BEGIN",), name="x", array="1-3%1")
    cluster.plan()
    assert subjects(cluster) == [BEGAN]
    [first] = cluster.launched()
    cluster.run_to_end(first)
    cluster.plan()
    assert cluster.launched()
    assert subjects(cluster) == []


def test_each_task(cluster: Cluster) -> None:
    cluster.submit(mail_type=("ARRAY_TASKS", *ALL), name="x", array="1-2")
    assert finish(cluster, 1, {1: 0, 2: 2 << 8}) == [
        "Slurm Array Task Job_id=1_1 (2) Name=x Began, Queued time 00:00:00",
        "Slurm Array Task Job_id=1_2 (1) Name=x Began, Queued time 00:00:00",
        "Slurm Array Task Job_id=1_1 (2) Name=x Ended, Run time 00:00:01, COMPLETED, ExitCode 0",
        "Slurm Array Task Job_id=1_2 (1) Name=x Failed, Run time 00:00:02, FAILED, ExitCode 2",
    ]


def test_an_array_that_never_began(cluster: Cluster) -> None:
    cluster.submit(mail_type=ALL, name="x", array="1-3", hold=True)
    cluster.kill("1")
    assert subjects(cluster) == ["Slurm Array Summary Job_id=1_* (1) Name=x Ended, Mixed, MaxSignal [9]"]


def test_the_last_running_task_tells_of_the_requeue(cluster: Cluster) -> None:
    cluster.submit(mail_type=("REQUEUE",), name="x", array="1-2")
    cluster.plan()
    cluster.tell(Requeue(cluster.now, ALICE, (parse("1_1"),)))
    assert subjects(cluster) == []
    cluster.released(cluster.machine.select("1_1")[0].job_id)
    cluster.tell(Requeue(cluster.now, ALICE, (parse("1_2"),)))
    assert subjects(cluster) == ["Slurm Array Summary Job_id=1_* (1) Name=x Requeued"]
