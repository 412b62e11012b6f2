"""What happens to jobs when the controller, a stepd or the zygote is killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest
from embedded_launcher import Cluster, embedded, running

from bridge.local.launcher import LocalLauncher
from slurmk import wire
from slurmk.core.events import BatchEnded, JobStarted, NodeFailed, NodesReleased, StepStarted


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("k") / "d"
    path.mkdir()
    return path


def stepd_of(cluster: Cluster, node: str = "n1", job_id: int = 5) -> int:
    """The process id of a stepd, from its marker."""
    text = (cluster.launcher.program.parent.parent / "jobs" / f"{job_id}.0" / node / "started").read_text()
    return int(text.split()[0])


def test_jobs_go_on_without_the_controller_and_their_ends_arrive_later(directory: Path) -> None:
    async def first_life() -> Cluster:
        async with embedded(directory) as cluster:
            await cluster.launch("#!/bin/bash\nsleep 0.5\necho done\nexit 7\n", 5)
            await cluster.launch("#!/bin/bash\nsleep 300\n", 6, nodes=2)
            await cluster.until(lambda: len(cluster.found(JobStarted, 5)) + len(cluster.found(JobStarted, 6)) == 2)
            cluster.launcher.stop = _leave(cluster.launcher)  # type: ignore[method-assign]
            return cluster

    async def second_life(before: Cluster) -> None:
        await asyncio.sleep(0.8)
        async with embedded(directory, before.jobs.values()) as cluster:
            cluster.jobs, cluster.files = before.jobs, before.files
            assert cluster.never_launched == frozenset()
            assert (await cluster.ended(5)).exit_code == 7 << 8
            await cluster.release(5)
            assert (cluster.work / "slurm-5.out").read_text() == "done\n"
            code, out, error = await cluster.srun(6, "hostname", tasks=2)
            assert code == 0, error
            assert len(out.splitlines()) == 2
            assert not cluster.found(BatchEnded, 6)
            await cluster.release(6)

    asyncio.run(second_life(asyncio.run(first_life())))


def _leave(launcher: LocalLauncher) -> object:
    """What a controller that is killed does: nothing, but its connections close."""

    async def stop(*, end_jobs: bool) -> None:
        assert launcher._writer is not None
        launcher._stopping = True
        launcher._writer.close()
        for task in list(launcher._tasks):
            task.cancel()

    return stop


def test_what_was_never_launched_is_said_and_what_belongs_to_no_job_ends(directory: Path) -> None:
    async def first_life() -> Cluster:
        async with embedded(directory) as cluster:
            await cluster.launch("#!/bin/bash\nexec sleep 300\n", 5)
            await cluster.until(lambda: cluster.found(JobStarted, 5))
            cluster.launcher.stop = _leave(cluster.launcher)  # type: ignore[method-assign]
            return cluster

    async def second_life(before: Cluster) -> None:
        pid = stepd_of(before)
        other = replace(before.jobs[5], job_id=9)
        async with embedded(directory, [other]) as cluster:
            assert cluster.never_launched == frozenset({(9, 0)})
            await cluster.until(lambda: not Path(f"/proc/{pid}").exists())
            await cluster.until(lambda: not (directory / "jobs" / "5.0").exists())

    asyncio.run(second_life(asyncio.run(first_life())))


def test_a_stepd_that_is_killed_fails_its_node_and_leaves_nothing(directory: Path) -> None:
    async def story() -> None:
        async with embedded(directory) as cluster:
            mark = f"99{os.getpid()}.5"
            await cluster.launch(f"#!/bin/bash\n(setsid sleep {mark} &)\nexec sleep {mark}\n", nodes=2)
            await cluster.until(lambda: cluster.found(JobStarted, 5))
            await asyncio.sleep(0.2)
            assert running(f"sleep {mark}")
            os.kill(stepd_of(cluster), signal.SIGKILL)
            await cluster.until(lambda: cluster.found(NodeFailed, 5), 5)
            assert cluster.found(NodeFailed, 5)[0].nodes == ("n1",)  # type: ignore[union-attr]
            await cluster.until(lambda: not running(f"sleep {mark}"), 5)
            await cluster.launcher.terminate(5, 0, 1, ("n2",))
            await cluster.until(lambda: cluster.found(NodesReleased, 5), 5)
            await cluster.until(lambda: not (directory / "jobs" / "5.0").exists())

    asyncio.run(story())


def test_a_stepd_that_dies_while_the_controller_is_away(directory: Path) -> None:
    async def first_life() -> Cluster:
        async with embedded(directory) as cluster:
            await cluster.launch("#!/bin/bash\nexec sleep 300\n", 5)
            await cluster.launch("#!/bin/bash\nsleep 0.3; exit 5\n", 6)
            await cluster.until(lambda: len(cluster.found(JobStarted, 5)) + len(cluster.found(JobStarted, 6)) == 2)
            cluster.launcher.stop = _leave(cluster.launcher)  # type: ignore[method-assign]
            return cluster

    async def second_life(before: Cluster) -> None:
        await asyncio.sleep(0.7)
        for job_id in (5, 6):
            os.kill(stepd_of(before, job_id=job_id), signal.SIGKILL)
        async with embedded(directory, before.jobs.values()) as cluster:
            await cluster.until(lambda: cluster.found(NodeFailed, 5), 5)
            assert (await cluster.ended(6)).exit_code == 5 << 8
            await cluster.launcher.terminate(6, 0, 1, ("n1",))
            await cluster.until(lambda: cluster.found(NodesReleased, 6), 5)

    asyncio.run(second_life(asyncio.run(first_life())))


def test_stepds_end_when_the_clusters_directory_was_removed(directory: Path) -> None:
    async def first_life() -> Cluster:
        async with embedded(directory) as cluster:
            await cluster.launch("#!/bin/bash\nexec sleep 300\n", 5)
            await cluster.until(lambda: cluster.found(JobStarted, 5))
            cluster.launcher.stop = _leave(cluster.launcher)  # type: ignore[method-assign]
            return cluster

    before = asyncio.run(first_life())
    pid = stepd_of(before)
    shutil.rmtree(directory)

    end = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_keeper_that_is_killed_ends_the_script_and_its_processes(directory: Path) -> None:
    async def story() -> None:
        async with embedded(directory) as cluster:
            mark = f"66{os.getpid()}.5"
            await cluster.launch(f"#!/bin/bash\n(setsid sleep {mark} &)\nsleep {mark}\n")
            await cluster.until(lambda: cluster.found(StepStarted, 5))
            await asyncio.sleep(0.2)
            stepd = stepd_of(cluster)
            keeper = int(Path(f"/proc/{stepd}/task/{stepd}/children").read_text().split()[0])
            os.kill(keeper, signal.SIGKILL)
            assert (await cluster.ended()).exit_code == signal.SIGKILL
            await cluster.until(lambda: not running(f"sleep {mark}"), 5)
            await cluster.release()

    asyncio.run(story())


def test_the_zygote_is_started_again(directory: Path) -> None:
    async def story() -> None:
        async with embedded(directory) as cluster:
            assert cluster.launcher._zygote is not None
            os.kill(cluster.launcher._zygote.pid, signal.SIGKILL)
            await cluster.until(lambda: cluster.launcher._writer is None)
            assert await cluster.run("#!/bin/sh\nexit 4\n") == (4 << 8, "")

    asyncio.run(story())


@pytest.mark.parametrize(
    "frames",
    [
        b"",
        b"\x28\x00\x00\x00\x02[]",
        b"\x28\xff\xff\xff\xff",
        wire.encode(wire.MESSAGE, b'{"kind":"register"}'),
        wire.encode(wire.MESSAGE, b'{"kind":"register","job":5,"restart":0,"node":"n1","proof":"00"}'),
        wire.encode(wire.MESSAGE, b'{"kind":"register","job":"x","restart":[],"node":{}}'),
        wire.encode(wire.OUTPUT, b"x" * 1000),
    ],
)
def test_strangers_who_say_they_are_stepd(directory: Path, frames: bytes) -> None:
    async def story() -> None:
        async with embedded(directory) as cluster:
            await cluster.launch("#!/bin/bash\nexec sleep 300\n")
            await cluster.until(lambda: cluster.found(JobStarted, 5))
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(str(directory / "slurmk.sock"))
                stranger.sendall(wire.encode(wire.HELLO, b"1 stepd") + frames)
                stranger.setblocking(False)
                await asyncio.sleep(0.2)
            await cluster.release()
            assert not cluster.found(NodeFailed, 5)

    asyncio.run(story())
