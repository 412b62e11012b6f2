"""Batch jobs on the embedded cluster's launcher, with real processes and a bare controller."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import time
from pathlib import Path

import pytest
from embedded_launcher import Cluster, embedded, make_job, running

from slurmk.core.events import BatchEnded, JobStarted, KillFlag, NodeChanged, NodesReleased, StepEnded, StepStarted
from slurmk.model.job import BATCH_STEP
from slurmk.model.states import JobState


def with_cluster(story: object, directory: Path) -> None:
    """Run an async story with a cluster of its own."""

    async def run() -> None:
        async with embedded(directory) as cluster:
            await asyncio.wait_for(story(cluster), 60)  # type: ignore[operator]

    asyncio.run(run())


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster's directory; its path is short, and other users may enter it."""
    path = tmp_path_factory.mktemp("k") / "d"
    path.mkdir()
    return path


def test_the_nodes_have_the_load_and_free_memory_of_this_machine(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.local.launcher.MEASURE_SECONDS", 0.01)
    monkeypatch.setattr(os, "getloadavg", lambda: (1.25, 0.5, 0.25))

    async def story(cluster: Cluster) -> None:
        def told() -> list[NodeChanged]:
            return [event for event in cluster.events if isinstance(event, NodeChanged)]

        await cluster.until(lambda: len(told()) >= 4)
        assert [event.node.name for event in told()[:4]] == ["n1", "n2", "n3", "n4"]
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
        for event in told():
            assert event.node.cpu_load == 125
            assert event.node.free_memory is not None
            assert 0 < event.node.free_memory < total

    with_cluster(story, directory)


def test_a_job_from_start_to_release(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        code, text = await cluster.run(
            "#!/bin/bash\necho $1-$2 on $SLURMD_NODENAME as $SLURM_JOB_ID; exit 3\n", arguments=(b"a b", b"c")
        )
        assert code == 3 << 8
        assert text == "a b-c on n1 as 5\n"
        kinds = [type(event) for event in cluster.events]
        assert kinds == [JobStarted, StepStarted, StepEnded, BatchEnded, NodesReleased]
        step = cluster.events[2].step  # type: ignore[union-attr]
        assert (step.step_id, step.state, step.exit_code, step.nodes) == (BATCH_STEP, JobState.FAILED, 3 << 8, ("n1",))
        assert step.usage.user_cpu + step.usage.system_cpu > 0
        await cluster.until(lambda: not list((directory / "jobs").iterdir()))

    with_cluster(story, directory)


def test_environment_umask_directory_and_streams(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        script = "#!/bin/bash\necho $SUBMITTED $SLURM_JOB_NODELIST $SLURM_TASKS_PER_NODE; umask; pwd; cat; echo bad >&2\n"
        code, text = await cluster.run(
            script, nodes=3, tasks=2, tasks_per_node=2, job={"umask": 0o077}, standard_error="err.%j.%x"
        )
        assert code == 0
        assert text == f"yes n[1-3] 2(x3)\n0077\n{cluster.work}\n"
        error = cluster.work / "err.5.test"
        assert error.read_text() == "bad\n"
        assert stat.S_IMODE(error.stat().st_mode) == 0o600

    with_cluster(story, directory)


def test_missing_directories_as_in_the_reference(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        code, _ = await cluster.run("#!/bin/sh\necho made\n", standard_output="not/yet/there")
        assert code == 0
        assert (cluster.work / "not/yet/there").read_text() == "made\n"
        missing = str(cluster.work / "missing")
        code, text = await cluster.run(
            "#!/bin/sh\npwd\n", 6, current_working_directory=missing, standard_output=str(cluster.work / "slurm-6.out")
        )
        assert code == 0
        lines = text.splitlines()
        said = re.compile(rf"\[\S+\] error: couldn't chdir to `{missing}': No such file or directory: going to /tmp instead")
        assert [bool(said.fullmatch(line)) for line in lines] == [True, True, False]
        assert lines[2] == "/tmp"

    with_cluster(story, directory)


@pytest.mark.parametrize(
    ("script", "status", "text"),
    [
        ("#!/no/such/interpreter\n", 2 << 8, "execve(): bad interpreter(/no/such/interpreter): No such file or directory"),
        ("#!/bin/sh\nkill -9 $$\n", signal.SIGKILL, ""),
        ("#!/bin/sh\nexec /bin/true\n", 0, ""),
    ],
)
def test_ends_of_scripts(directory: Path, script: str, status: int, text: str) -> None:
    async def story(cluster: Cluster) -> None:
        code, said = await cluster.run(script)
        assert code == status
        assert text in said

    with_cluster(story, directory)


def test_output_that_cannot_be_opened(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        (cluster.work / "folder").mkdir()
        code, _ = await cluster.run("#!/bin/sh\ntrue\n", standard_output="folder")
        assert code == 53

    with_cluster(story, directory)


def test_what_a_script_leaves_behind_is_killed(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        mark = f"77{os.getpid()}.5"
        code, _ = await cluster.run(f"#!/bin/bash\n(setsid bash -c 'sleep {mark} & sleep {mark}' &)\nsleep 0.2\n")
        assert code == 0
        assert not running(f"sleep {mark}")

    with_cluster(story, directory)


def test_termination_kills_what_does_not_want_to_go(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.launch("#!/bin/bash\ntrap '' TERM\necho ready\nwhile true; do sleep 0.1; done\n")
        path = cluster.work / "slurm-5.out"
        await cluster.until(lambda: path.exists() and "ready" in path.read_text())
        began = time.monotonic()
        await cluster.release(kill_wait=1)
        assert 0.9 < time.monotonic() - began < 5
        assert re.search(
            r"\] error: \*\*\* JOB 5 ON n1 CANCELLED AT \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d DUE to SIGNAL Terminated \*\*\*\n$",
            path.read_text(),
        )
        ended = await cluster.ended()
        assert ended.exit_code == signal.SIGKILL

    with_cluster(story, directory)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("", "DUE to SIGNAL Terminated"),
        ("requeue", "DUE TO JOB REQUEUE"),
        ("preemption", "DUE TO PREEMPTION"),
        ("node failure", "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"),
        ("of a later release", "DUE to SIGNAL Terminated"),
    ],
)
def test_a_job_that_is_ended_says_why(directory: Path, cause: str, words: str) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.launch("#!/bin/bash\necho ready\nexec sleep 300\n")
        path = cluster.work / "slurm-5.out"
        await cluster.until(lambda: path.exists() and "ready" in path.read_text())
        await cluster.launcher.terminate(5, 0, 1, ("n1",), cause)
        await cluster.until(lambda: cluster.found(NodesReleased, 5))
        assert re.search(rf"JOB 5 ON n1 CANCELLED AT [^ ]* {words} \*\*\*\n$", path.read_text())

    with_cluster(story, directory)


def test_time_limit_is_stepds_own_business(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        start = int(time.time()) - 59
        await cluster.launch("#!/bin/bash\nexec sleep 100\n", minutes=1, start_time=start)
        ended = await cluster.ended()
        assert ended.timed_out
        assert ended.exit_code == signal.SIGTERM
        assert "JOB 5 ON n1 CANCELLED AT" in (cluster.work / "slurm-5.out").read_text()
        assert "DUE TO TIME LIMIT ***" in (cluster.work / "slurm-5.out").read_text()
        await cluster.release()

    with_cluster(story, directory)


def test_a_limit_that_is_over_before_the_script_begins(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.launch("#!/bin/bash\nexec sleep 100\n", minutes=1, start_time=int(time.time()) - 100)
        assert (await cluster.ended()).timed_out
        await cluster.release()

    with_cluster(story, directory)


def test_a_limit_that_moves(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.launch("#!/bin/bash\nexec sleep 100\n", minutes=60)
        await cluster.until(lambda: cluster.found(JobStarted, 5))
        await cluster.launcher.update_limit(5, 0, int(time.time()))
        assert (await cluster.ended()).timed_out
        await cluster.release()

    with_cluster(story, directory)


def test_warning_signal_goes_to_the_batch_shell(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        script = "#!/bin/bash\ntrap 'echo warned; exit 4' USR1\nfor i in $(seq 200); do sleep 0.1; done\n"
        await cluster.launch(
            script,
            minutes=1,
            start_time=int(time.time()) - 26,
            kill_warning_signal=int(signal.SIGUSR1),
            kill_warning_delay=30,
            kill_warning_flags="B",
        )
        ended = await cluster.ended()
        assert (ended.exit_code, ended.timed_out) == (4 << 8, False)
        assert (cluster.work / "slurm-5.out").read_text() == "warned\n"
        await cluster.release()

    with_cluster(story, directory)


def test_signals_as_scancel_sends_them(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.launch("#!/bin/bash\ntrap 'echo usr1' USR1\necho ready\nfor i in $(seq 100); do sleep 0.1; done\n")
        path = cluster.work / "slurm-5.out"
        await cluster.until(lambda: path.exists() and "ready" in path.read_text())
        await cluster.launcher.signal(5, 0, signal.SIGUSR1)
        await asyncio.sleep(0.3)
        assert "usr1" not in path.read_text()
        await cluster.launcher.signal(5, 0, signal.SIGUSR1, None, KillFlag.BATCH)
        await cluster.until(lambda: "usr1" in path.read_text())
        await cluster.release()

    with_cluster(story, directory)


def test_suspended_processes_stand_still(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.launch("#!/bin/bash\nwhile true; do echo tick; sleep 0.05; done\n")
        path = cluster.work / "slurm-5.out"
        await cluster.until(lambda: path.exists() and path.stat().st_size)
        await cluster.launcher.signal(5, 0, signal.SIGSTOP, None, KillFlag.FULL)
        await asyncio.sleep(0.3)
        size = path.stat().st_size
        await asyncio.sleep(0.3)
        assert path.stat().st_size == size
        await cluster.launcher.signal(5, 0, signal.SIGCONT, None, KillFlag.FULL)
        await cluster.until(lambda: path.stat().st_size > size)
        await cluster.launcher.signal(5, 0, signal.SIGSTOP, None, KillFlag.FULL)
        await cluster.release()

    with_cluster(story, directory)


def test_launching_twice_runs_once(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        job = await cluster.launch("#!/bin/bash\necho ran >>count\nsleep 0.3\n")
        await cluster.launcher.launch(job, cluster.files[5])
        await cluster.ended()
        await cluster.release()
        assert (cluster.work / "count").read_text() == "ran\n"
        assert len(cluster.found(BatchEnded, 5)) == 1

    with_cluster(story, directory)


def test_many_jobs_at_once(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        await asyncio.gather(*(cluster.run("#!/bin/sh\necho $SLURM_JOB_ID\n", number) for number in range(100, 140)))
        for number in range(100, 140):
            assert (cluster.work / f"slurm-{number}.out").read_text() == f"{number}\n"

    with_cluster(story, directory)


def test_array_elements_know_their_array(directory: Path) -> None:
    async def story(cluster: Cluster) -> None:
        code, _ = await cluster.run(
            "#!/bin/bash\nenv | grep ARRAY | sort\n",
            12,
            array="1-5:2%1",
            job={"array_job_id": 10, "array_task_id": 3},
        )
        assert code == 0
        assert (cluster.work / "slurm-10_3.out").read_text().split() == [
            "SLURM_ARRAY_JOB_ID=10",
            "SLURM_ARRAY_TASK_COUNT=3",
            "SLURM_ARRAY_TASK_ID=3",
            "SLURM_ARRAY_TASK_MAX=5",
            "SLURM_ARRAY_TASK_MIN=1",
            "SLURM_ARRAY_TASK_STEP=2",
        ]

    with_cluster(story, directory)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of other users")
def test_jobs_of_another_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    import pwd
    import tempfile

    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(prefix="slurmk-", dir="/tmp") as root:
        Path(root).chmod(0o755)
        directory = Path(root) / "d"
        directory.mkdir()

        async def story(cluster: Cluster) -> None:
            cluster.work.chmod(0o777)
            job, files = make_job(cluster.work, 5, b"#!/bin/sh\nid -u; id -G; cat $0 >/dev/null && echo readable\n")
            from dataclasses import replace

            credentials = replace(
                job.credentials, user_id=nobody.pw_uid, group_id=nobody.pw_gid, user_name="nobody", groups=(nobody.pw_gid,)
            )
            job = replace(job, credentials=credentials)
            cluster.jobs[5] = job
            await cluster.launcher.launch(job, files)
            assert (await cluster.ended()).exit_code == 0
            await cluster.release()
            path = cluster.work / "slurm-5.out"
            assert path.read_text() == f"{nobody.pw_uid}\n{nobody.pw_gid}\nreadable\n"
            assert path.stat().st_uid == nobody.pw_uid

        with_cluster(story, directory)
