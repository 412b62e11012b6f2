"""Steps: srun's local part against the step manager of a real job."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Awaitable, Callable

import pytest
from embedded_launcher import Cluster, embedded, running

from slurmk.core.events import BatchEnded, JobStarted, StepEnded, StepStarted
from slurmk.model.states import JobState

Story = Callable[[Cluster], Awaitable[None]]


@pytest.fixture
def in_job(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Runs an async story in a job of two nodes with four CPUs each."""
    directory = tmp_path_factory.mktemp("k") / "d"
    directory.mkdir()

    def run(story: Story, script: str = "#!/bin/sh\nexec sleep 300\n", **options: object) -> None:
        async def play() -> None:
            async with embedded(directory) as cluster:
                await cluster.launch(script, **{"nodes": 2, "cpus": 4, "tasks": 2, **options})
                await cluster.until(lambda: cluster.found(JobStarted, 5))
                await asyncio.wait_for(story(cluster), 60)
                await cluster.release()

        asyncio.run(play())

    return run


def test_tasks_on_all_nodes_with_labels(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        command = "echo $SLURM_PROCID/$SLURM_NTASKS on $SLURMD_NODENAME $SLURM_LOCALID $SLURM_NODEID; echo e >&2; printf x"
        code, out, error = await cluster.srun(5, "bash", "-c", command, tasks=4, tasks_per_node=2, label=True)
        assert code == 0
        lines = sorted(out.splitlines())
        assert [line for line in lines if "on" in line] == [
            "0: 0/4 on n1 0 0",
            "1: 1/4 on n1 1 0",
            "2: 2/4 on n2 0 1",
            "3: 3/4 on n2 1 1",
        ]
        assert [line for line in lines if line.endswith(": x")] == ["0: x", "1: x", "2: x", "3: x"]
        assert sorted(error.splitlines()) == ["0: e", "1: e", "2: e", "3: e"]
        started = next(event.step for event in cluster.events if isinstance(event, StepStarted) and event.step.step_id == 0)
        ended = next(event.step for event in cluster.events if isinstance(event, StepEnded) and event.step.step_id == 0)
        assert (started.state, started.tasks, started.nodes, started.cpus) == (JobState.RUNNING, 4, ("n1", "n2"), 8)
        assert (ended.state, ended.exit_code, ended.name) == (JobState.COMPLETED, 0, "bash")

    in_job(story)


@pytest.mark.parametrize(
    ("command", "code", "lines"),
    [
        ("exit $SLURM_PROCID", 1, ["srun: error: n2: task 1: Exited with exit code 1"]),
        (
            "kill -9 $$",
            137,
            ["srun: error: n1: task 0: Killed", "srun: error: n2: task 1: Killed", "srun: Force Terminated StepId=5.0"],
        ),
        ("kill -SEGV $$", 139, ["srun: error: n1: task 0: Segmentation fault", "srun: error: n2: task 1: Segmentation fault"]),
        ("true", 0, []),
    ],
)
def test_how_tasks_end(in_job: Callable[..., None], command: str, code: int, lines: list[str]) -> None:
    async def story(cluster: Cluster) -> None:
        found, _, error = await cluster.srun(5, "bash", "-c", f"ulimit -c 0; {command}", tasks=2)
        assert found == code
        assert sorted(error.splitlines()) == sorted(lines)

    in_job(story)


def test_programs_that_cannot_be_executed(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        code, _, error = await cluster.srun(5, "/no/such/program", tasks=1)
        assert code == 2
        assert re.search(r"error: execve\(\): /no/such/program: No such file or directory\n", error)
        assert (await cluster.srun(5, "/etc/passwd", tasks=1))[0] == 13

    in_job(story)


def test_refusals_are_slurms(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        code, _, error = await cluster.srun(5, "true", tasks=100)
        assert (code, error) == (1, "srun: error: Unable to create step for job 5: More processors requested than permitted\n")
        code, _, error = await cluster.srun(5, "true", tasks=1, memory_per_node=10**6)
        assert code == 1
        assert error == "srun: error: Unable to create step for job 5: Memory required by task is not available\n"
        code, _, error = await cluster.srun(5, "cat", tasks=1, input="no/such/file")
        assert (code, error) == (1, "srun: error: Could not open stdin file: No such file or directory\n")

    in_job(story)


def test_input_goes_to_all_tasks_or_to_one(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        _, out, _ = await cluster.srun(5, "cat", tasks=3, label=True, stdin=b"fed\n")
        assert sorted(out.splitlines()) == ["0: fed", "1: fed", "2: fed"]
        _, out, _ = await cluster.srun(5, "cat", tasks=3, label=True, input="1", stdin=b"fed\n")
        assert out == "1: fed\n"
        _, out, _ = await cluster.srun(5, "cat", tasks=2, input="none", stdin=b"fed\n")
        assert out == ""
        big = b"0123456789abcde\n" * 200_000
        _, out, _ = await cluster.srun(5, "wc", "-c", tasks=2, stdin=big)
        assert out.split() == [str(len(big))] * 2
        code, _, _ = await cluster.srun(5, "head", "-c", "1", tasks=1, stdin=big)
        assert code == 0

    in_job(story)


def test_large_output_arrives_whole(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        _, out, _ = await cluster.srun(5, "bash", "-c", "head -c 5000000 /dev/zero | tr '\\0' x", tasks=2)
        assert len(out) == 10_000_000

    in_job(story)


def test_a_reader_that_is_slow_holds_the_tasks_up_and_nothing_grows(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        program, environment = cluster.srun_environment(5, "bash", "-c", "yes | head -c 60000000; echo end >>done", tasks=1)
        process = await asyncio.create_subprocess_exec(
            *program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, cwd=cluster.work, limit=1024
        )
        await asyncio.sleep(1.5)
        assert not (cluster.work / "done").exists()
        total = 0
        assert process.stdout is not None
        while data := await process.stdout.read(1 << 20):
            total += len(data)
        assert total == 60_000_000
        assert await process.wait() == 0

    in_job(story)


def test_files_of_tasks_and_of_the_step(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.srun(5, "bash", "-c", "echo $SLURM_PROCID; echo e >&2", tasks=2, output="o.%j.%s.%t", error="e.%t")
        assert [(cluster.work / f"o.5.0.{rank}").read_text() for rank in (0, 1)] == ["0\n", "1\n"]
        assert (cluster.work / "e.1").read_text() == "e\n"
        await cluster.srun(5, "bash", "-c", "echo $SLURM_PROCID; echo e >&2", tasks=2, output="all.%j", label=True)
        assert sorted((cluster.work / "all.5").read_text().splitlines()) == ["0: 0", "0: e", "1: 1", "1: e"]
        for _ in range(2):
            await cluster.srun(5, "echo", "again", tasks=1, output="appended", open_mode="a")
        assert (cluster.work / "appended").read_text() == "again\nagain\n"
        assert (await cluster.srun(5, "echo", "x", tasks=1, output="none"))[1] == ""

    in_job(story)


def test_kill_on_bad_exit_and_wait(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        command = "[ $SLURM_PROCID = 1 ] && exit 3; sleep 60"
        code, _, error = await cluster.srun(5, "bash", "-c", command, tasks=2, kill_on_bad_exit=True)
        assert code == 143
        assert "srun: error: n2: task 1: Exited with exit code 3\nsrun: Terminating StepId=5.0\n" in error
        assert " DUE TO TASK FAILURE ***\n" in error
        code, _, error = await cluster.srun(5, "bash", "-c", "[ $SLURM_PROCID = 1 ] || sleep 60", tasks=2, wait=1)
        assert code == 137
        assert "srun: First task exited 1s ago\nsrun: StepId=5.1 task 0: running\nsrun: StepId=5.1 task 1: exited\n" in error

    in_job(story)


def test_steps_wait_for_each_other_unless_they_overlap(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        first = asyncio.create_task(cluster.srun(5, "sleep", "3", tasks=2))
        await cluster.until(lambda: len(cluster.found(StepStarted, 5)) >= 2)
        _, out, _ = await cluster.srun(5, "echo", "beside", tasks=1, minimum_nodes=1, overlap=True)
        assert out == "beside\n"
        assert loop.time() - began < 2.8
        code, out, error = await cluster.srun(5, "echo", "after", tasks=2)
        assert (code, out) == (0, "after\nafter\n")
        assert loop.time() - began > 3
        assert "srun: Step created for StepId=5.2" in error
        await first

    in_job(story)


def test_double_forked_processes_end_with_their_step(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        mark = f"88{os.getpid()}.5"
        code, _, _ = await cluster.srun(5, "bash", "-c", f"(setsid sleep {mark} &); (setsid setsid sleep {mark} &)", tasks=2)
        assert code == 0
        assert not running(f"sleep {mark}")

    in_job(story)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_end_of_srun_is_the_end_of_its_step(in_job: Callable[..., None], number: signal.Signals) -> None:
    async def story(cluster: Cluster) -> None:
        program, environment = cluster.srun_environment(5, "sleep", "300", tasks=2)
        process = await asyncio.create_subprocess_exec(
            *program, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, cwd=cluster.work
        )
        await cluster.until(lambda: len(cluster.found(StepStarted, 5)) >= 2)
        await asyncio.sleep(0.2)
        process.send_signal(number)
        if number == signal.SIGINT:
            await asyncio.sleep(0.2)
            process.send_signal(number)
        _, error = await asyncio.wait_for(process.communicate(), 10)
        assert process.returncode != 0
        if number == signal.SIGINT:
            assert b"srun: interrupt (one more within 1 sec to abort)\n" in error
            assert b"srun: StepId=5.0 tasks 0-1: running\n" in error
            assert b"srun: sending Ctrl-C to StepId=5.0\n" in error
        await cluster.until(lambda: any(isinstance(event, StepEnded) and event.step.step_id == 0 for event in cluster.events))

    in_job(story)


def test_without_status_an_interrupt_is_the_tasks(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        script = "import signal, time; signal.signal(2, lambda *_: exit(7)); print('up', flush=True); time.sleep(60)"
        program, environment = cluster.srun_environment(5, "python3", "-c", script, tasks=1, disable_status=True)
        process = await asyncio.create_subprocess_exec(
            *program, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, env=environment, cwd=cluster.work
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        _, error = await asyncio.wait_for(process.communicate(), 10)
        assert (process.returncode, b"forcing" in error) == (7, False)
        assert error.startswith(b"srun: sending Ctrl-C to StepId=5.0\n")

    in_job(story)


def test_gpus_and_cpus_of_exact_steps(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        command = "echo $CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS $SLURM_CPUS_ON_NODE; sleep 0.5"
        found = await asyncio.gather(
            *(
                cluster.srun(5, "bash", "-c", command, tasks=1, minimum_nodes=1, exact=True, nodelist="n1", gres="gres/gpu:2")
                for _ in range(2)
            )
        )
        assert sorted(out for _, out, _ in found) == ["0,1 0,1 1\n", "2,3 2,3 1\n"]

    in_job(story, gpus=4)


def test_multiple_programs(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        code, out, _ = await cluster.srun(5, multi_prog="0 echo zero %t\n1-2 echo more %t %o\n", tasks=3)
        assert (code, sorted(out.splitlines())) == (0, ["more 1 0", "more 2 1", "zero 0"])
        code, _, error = await cluster.srun(5, multi_prog="0 echo zero\n", tasks=2)
        assert code == 1
        assert "no record for task id 1" in error

    in_job(story)


def test_an_allocation_is_given_back_with_sruns_exit_code(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        code, _, _ = await cluster.srun(5, "bash", "-c", "exit 6", tasks=1, owns_allocation=True)
        assert code == 6
        ended = await cluster.ended()
        assert ended.exit_code == 6 << 8

    in_job(story, script="")


def test_a_killed_srun_gives_its_allocation_back(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        program, environment = cluster.srun_environment(5, "sleep", "300", tasks=1, owns_allocation=True)
        process = await asyncio.create_subprocess_exec(*program, stdin=subprocess.DEVNULL, env=environment, cwd=cluster.work)
        await cluster.until(lambda: cluster.found(StepStarted, 5))
        process.kill()
        await process.wait()
        await cluster.until(lambda: cluster.found(BatchEnded, 5))

    in_job(story, script="")


def test_a_message_to_a_job_is_told_by_the_srun_that_it_was_made_for(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        program, environment = cluster.srun_environment(5, "sleep", "300", tasks=1, owns_allocation=True)
        process = await asyncio.create_subprocess_exec(
            *program, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, cwd=cluster.work
        )
        await cluster.until(lambda: cluster.found(StepStarted, 5))
        await cluster.launcher.ask(5, 0, ["n1"], {"what": "notify", "text": "two words"})
        assert process.stderr is not None
        assert await asyncio.wait_for(process.stderr.readline(), 10) == b"srun: two words\n"
        process.kill()
        await process.wait()

    in_job(story, script="")


def test_step_manager_refuses_who_does_not_know_the_secret(in_job: Callable[..., None]) -> None:
    async def story(cluster: Cluster) -> None:
        program, environment = cluster.srun_environment(5, "echo", "stolen", tasks=1)
        environment["SLURMK_JOB_SECRET"] = "00" * 16
        done = await asyncio.create_subprocess_exec(
            *program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        out, _ = await asyncio.wait_for(done.communicate(), 10)
        assert out == b""
        assert done.returncode == 1

    in_job(story)
