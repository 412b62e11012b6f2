"""Control groups of steps, with real processes. Skipped where this process cannot make groups."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from embedded_launcher import SITE, Cluster, embedded, running

from slurmk.core.events import BatchEnded, JobStarted, NodeFailed, StepEnded, StepStarted
from slurmk.model.states import JobState
from slurmk.stepd import cgroup

FOUND = cgroup.detect()

needs_groups = pytest.mark.skipif(not FOUND.directories, reason="needs root and a control group hierarchy that can be written")

BOMB = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork():
    os._exit(0)
os.setsid()
end = time.monotonic() + 120
def grow(depth):
    while time.monotonic() < end:
        if depth < 4 and not os.fork():
            os.setsid()
            grow(depth + 1)
        time.sleep(0.01 * 3 ** depth)
grow(0)
"""
"""Detached processes that ignore TERM and go on forking; stopped by what bounds them."""

STUBBORN = "import os, signal, time; signal.signal(15, 1); os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0)"


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("k") / "d"
    path.mkdir()
    return path


def variants() -> list[cgroup.Hierarchies]:
    """Each way of ending a group that there is on this machine."""
    found = []
    if FOUND.unified is not None:
        found.append(cgroup.Hierarchies(unified=FOUND.unified))
    freezer = Path("/sys/fs/cgroup/freezer")
    if os.geteuid() == 0 and os.access(freezer, os.W_OK) and (freezer / "cgroup.procs").exists():
        found.append(cgroup.Hierarchies(freezer=str(freezer)))
    return found


@pytest.fixture(params=variants(), ids=lambda each: "unified" if each.unified else "freezer")
def group(request: pytest.FixtureRequest) -> Iterator[cgroup.Group]:
    made = cgroup.Group(f"slurmk/test{os.getpid()}/job_1_0/n1/0", request.param)
    assert made.make()
    yield made
    assert cgroup.end(made.directories)


def start_in(group: cgroup.Group, program: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program, *arguments], preexec_fn=group.enter)


def gone(group: cgroup.Group) -> bool:
    end = time.monotonic() + 10
    while group.processes() and time.monotonic() < end:
        time.sleep(0.01)
    return not group.processes()


def test_who_hides_ends_with_the_group(group: cgroup.Group) -> None:
    start_in(group, STUBBORN + "\ntime.sleep(120)").wait()
    time.sleep(0.1)
    assert group.processes()
    group.kill()
    assert gone(group)


def test_who_forks_for_ever_ends_with_the_group(group: cgroup.Group) -> None:
    bounds = Path("/sys/fs/cgroup/pids") / f"test{os.getpid()}"
    if not os.access(bounds.parent, os.W_OK) or not (bounds.parent / "cgroup.procs").exists():
        pytest.skip("needs the pids controller to bound the processes")
    bounds.mkdir()
    (bounds / "pids.max").write_text("50")
    enter = f"open('{bounds}/cgroup.procs', 'w').write('0')\n"
    try:
        start_in(group, enter + BOMB).wait()
        time.sleep(1.0)
        assert len(group.processes()) > 10
        group.kill()
        if group.unified is None:
            cgroup.end(group.directories)
        assert gone(group)
    finally:
        cgroup.end([str(group.directories[0])])
        for _ in range(100):
            try:
                bounds.rmdir()
                break
            except OSError:
                time.sleep(0.05)


def test_groups_are_removed_up_to_ours(group: cgroup.Group) -> None:
    other = cgroup.Group(group.name + "1", group._where)
    assert other.make()
    group.remove()
    assert not os.path.isdir(group.directories[0])
    assert os.path.isdir(other.directories[0])
    other.remove()
    assert not os.path.isdir(os.path.dirname(os.path.dirname(os.path.dirname(other.directories[0]))))


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text("proc /proc proc rw 0 0\ncgroup2 /nowhere/at/all cgroup2 rw 0 0\nx\n")
    (tmp_path / "own").write_text("0::/a/b\n")
    found = cgroup.detect(str(tmp_path / "mounts"), str(tmp_path / "own"))
    assert found.directories == []
    assert cgroup.detect(str(tmp_path / "none")).directories == []
    made = cgroup.Group("slurmk/x/job_1_0/n1/0", found)
    assert not made.make(1 << 20)
    made.enter()
    made.kill()
    made.remove()
    assert (made.oom_kills(), made.cpu(), made.processes()) == (0, {}, [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes groups")
def test_both_versions_are_found(tmp_path: Path) -> None:
    for name in ("unified/me", "memory/m", "freezer"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "own").write_text("9:cpu,memory:/m\n6:freezer:/gone\n0::/me\n")
    lines = [f"cgroup2 {tmp_path}/unified cgroup2 rw 0 0"]
    lines += [f"cgroup {tmp_path}/{name} cgroup rw,relatime,{name} 0 0" for name in ("memory", "freezer")]
    (tmp_path / "mounts").write_text("\n".join(lines))
    found = cgroup.detect(str(tmp_path / "mounts"), str(tmp_path / "own"))
    assert found.directories == [f"{tmp_path}/unified/me", f"{tmp_path}/memory/m"]
    (tmp_path / "unified/me/cgroup.controllers").write_text("cpu memory pids\n")
    found = cgroup.detect(str(tmp_path / "mounts"), str(tmp_path / "own"))
    assert (found.counts, found.directories) == (True, [f"{tmp_path}/unified/me"])
    (tmp_path / "mounts").write_text(lines[2])
    assert cgroup.detect(str(tmp_path / "mounts"), str(tmp_path / "own")).directories == [f"{tmp_path}/freezer"]


@needs_groups
def test_a_job_lives_in_groups_that_go_with_it(directory: Path) -> None:
    async def story() -> None:
        async with embedded(directory) as cluster:
            await cluster.launch("#!/bin/bash\nexec sleep 300\n", nodes=2, tasks=2)
            await cluster.until(lambda: cluster.found(JobStarted, 5))
            code, out, _ = await cluster.srun(5, "cat", "/proc/self/cgroup", tasks=2)
            assert code == 0
            assert {f"/job_5_0/{node}/0" in out for node in ("n1", "n2")} == {True}
            groups = cgroup.Group(
                cgroup.node_name({"directory": directory / "jobs/5.0/n1", "node": "n1", "job": 5, "restart": 0})
            )
            assert len(groups.processes()) == 1
            await cluster.release()
            await cluster.until(lambda: not any(map(os.path.exists, groups.directories)))

    asyncio.run(story())


@needs_groups
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_job(directory: Path, number: signal.Signals) -> None:
    """Nor of one whose stepd is killed, though its processes hide and lose the mark in their environment."""

    async def story() -> None:
        async with embedded(directory) as cluster:
            mark = f"77{os.getpid()}.{number}"
            hidden = f"{STUBBORN}; os.execve('/bin/sleep', ['sleep', '{mark}'], {{}})"
            await cluster.launch(f'#!/bin/bash\n{sys.executable} -c "{hidden}"\nexec sleep 300\n')
            await cluster.until(lambda: cluster.found(StepStarted, 5) and running(f"sleep {mark}"))
            if number == signal.SIGKILL:
                os.kill(_stepd(directory), signal.SIGKILL)
                await cluster.until(lambda: cluster.found(NodeFailed, 5))
            await cluster.release(kill_wait=0)
            await cluster.until(lambda: not running(f"sleep {mark}"), 5)

    asyncio.run(story())


@needs_groups
def test_what_a_killed_stepd_and_keeper_left_is_ended_by_the_next_controller(directory: Path) -> None:
    mark = f"78{os.getpid()}.1"

    async def first_life() -> Cluster:
        async with embedded(directory) as cluster:
            hidden = f"{STUBBORN}; os.execve('/bin/sleep', ['sleep', '{mark}'], {{}})"
            await cluster.launch(f'#!/bin/bash\n{sys.executable} -c "{hidden}"\nexec sleep 300\n')
            await cluster.until(lambda: cluster.found(StepStarted, 5) and running(f"sleep {mark}"))
            cluster.launcher._places.alive = lambda *place: True  # type: ignore[method-assign]  # it does not get to notice
            stepd = _stepd(directory)
            keeper = int(Path(f"/proc/{stepd}/task/{stepd}/children").read_text().split()[0])
            os.kill(stepd, signal.SIGSTOP)
            os.kill(keeper, signal.SIGKILL)
            os.kill(stepd, signal.SIGKILL)
            await asyncio.sleep(0.3)
            cluster.launcher._link.attempts.clear()
            return cluster

    async def second_life(before: Cluster) -> None:
        async with embedded(directory, before.jobs.values()) as cluster:
            await cluster.until(lambda: cluster.found(NodeFailed, 5))
            assert not running(f"sleep {mark}")

    before = asyncio.run(first_life())
    assert running(f"sleep {mark}")
    asyncio.run(second_life(before))


@pytest.mark.skipif(cgroup.Group("slurmk/x", FOUND).memory is None, reason="needs the memory controller")
def test_a_step_that_wants_too_much_memory(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embedded_launcher.SITE", replace(SITE, constrain_memory=True))
    greedy = "a = [bytes(b'x' * 1048576) for _ in range(300)]"

    async def story() -> None:
        async with embedded(directory) as cluster:
            await cluster.launch(f'#!/bin/bash\n{sys.executable} -c "{greedy}"\nexit 0\n', 6, memory=100)
            ended = await cluster.ended(6)
            assert (ended.exit_code, ended.out_of_memory) == (253, True)
            text = "error: Detected 1 oom_kill event in StepId=6.batch. Some of the step tasks have been OOM Killed.\n"
            assert text in (cluster.work / "slurm-6.out").read_text()
            await cluster.release(6)
            await cluster.launch("#!/bin/bash\nexec sleep 300\n", 5, memory=100)
            await cluster.until(lambda: cluster.found(JobStarted, 5))
            code, _, error = await cluster.srun(5, sys.executable, "-c", greedy, tasks=1)
            assert code == 253
            assert "error: Detected 1 oom_kill event in StepId=5.0. " in error
            assert "srun: error: n1: task 0: Out Of Memory\n" in error
            steps = [event.step for event in cluster.found(StepEnded, 5) if isinstance(event, StepEnded)]
            assert [(step.state, step.exit_code) for step in steps if step.step_id == 0] == [(JobState.OUT_OF_MEMORY, 253)]
            assert (await cluster.srun(5, "true", tasks=1))[0] == 0
            await cluster.release(5)
            assert cluster.found(BatchEnded, 5)

    asyncio.run(story())


def test_a_short_step_is_measured(directory: Path) -> None:
    async def story() -> None:
        async with embedded(directory) as cluster:
            await cluster.run("#!/bin/bash\ntrue\n")
            (ended,) = cluster.found(BatchEnded, 5)
            assert isinstance(ended, BatchEnded)
            assert ended.usage.rss.most > 500_000
            assert ended.usage.vsize.most >= ended.usage.rss.most

    asyncio.run(story())


def _stepd(directory: Path) -> int:
    return int((directory / "jobs/5.0/n1/started").read_text().split()[0])


@pytest.mark.parametrize(
    ("mount", "own", "name"),
    [
        ("cgroup2 {folder} cgroup2 rw 0 0", "0::/", "memory.events"),
        ("cgroup {folder} cgroup ro,memory 0 0", "4:memory:/kubepods/pod1/c", "memory.oom_control"),
        ("cgroup2 {folder} cgroup2 rw 0 0", "0::/kubepods/pod1", "kubepods/pod1/memory.events"),
    ],
)
def test_kills_in_a_container_are_claimed_once(tmp_path: Path, mount: str, own: str, name: str) -> None:
    counted = tmp_path / "cg" / name
    counted.parent.mkdir(parents=True)
    (tmp_path / "mounts").write_text(mount.format(folder=tmp_path / "cg") + "\n")
    (tmp_path / "own").write_text(own + "\n")

    def kernel(kills: int) -> None:
        counted.write_text(f"low 0\noom_kill {kills}\n")

    try:
        kernel(3)
        cgroup.in_container(str(tmp_path / "mounts"), str(tmp_path / "own"))
        first, second = (cgroup.Group(each, cgroup.Hierarchies()) for each in "ab")
        assert first.shared
        assert first.oom_kills() == 0, "what was counted before is nobody's"
        kernel(5)
        if not os.fork():  # steps are in processes of their own
            os._exit(first.oom_kills())
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 2
        assert second.oom_kills() == 0
        kernel(6)
        assert (second.oom_kills(), second.oom_kills()) == (1, 1)
    finally:
        cgroup._container.clear()
        cgroup._claimed.clear()
