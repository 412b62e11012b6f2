"""The controller with the real machine, planner and store, and a launcher that only takes notes."""

from __future__ import annotations

import asyncio
import grp
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import files

from accounting.store import Store, StoreError
from bridge.launcher import JobFiles, Report
from grammar.errors import GrammarError
from slurmk.client import slurmk
from slurmk.core.crontabs import Entry, Table
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno
from slurmk.core.events import (
    BatchEnded,
    Caller,
    JobSelection,
    JobStarted,
    Kill,
    KillFlag,
    NodeChanged,
    NodesReleased,
    SiteChanged,
    Submission,
    Submit,
    UpdatePartition,
)
from slurmk.daemon import configured, returning
from slurmk.daemon.controller import Daemon
from slurmk.model.job import Credentials, Job, JobRequest
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import JobState

ROOT = Caller(0, "root", True)


class NotingLauncher:
    """Starts nothing. A test ends jobs by ``end``."""

    def __init__(self, running: frozenset[tuple[int, int]] | None = None) -> None:
        self.running = running  # what recovery finds; None: everything
        self.launched: list[tuple[int, JobFiles]] = []
        self.terminated: list[int] = []
        self.stopped: bool | None = None
        self.report: Report

    async def start(self, report: Report) -> Sequence[Node]:
        self.report = report
        return ()

    async def recover(self, jobs: Iterable[Job]) -> frozenset[tuple[int, int]]:
        known = frozenset((job.job_id, job.restarts) for job in jobs)
        return frozenset() if self.running is None else known - self.running

    async def launch(self, job: Job, files: JobFiles) -> None:
        self.launched.append((job.job_id, files))
        self.report(JobStarted(self.now(), job.job_id, job.restarts))

    async def signal(
        self, job_id: int, restart: int, signal: int, step_id: int | None = None, flags: KillFlag = KillFlag.NONE
    ) -> None:
        pass

    async def terminate(
        self,
        job_id: int,
        restart: int,
        kill_wait: int,
        nodes: Sequence[str],
        cause: str = "",
        ended: Mapping[str, int] | None = None,
    ) -> None:
        self.terminated.append(job_id)
        self.report(NodesReleased(self.now(), job_id, restart, tuple(nodes)))

    async def shrink(self, job_id: int, restart: int, nodes: Sequence[str], lost: Sequence[str]) -> None:
        pass

    async def update_limit(self, job_id: int, restart: int, end_time: int | None) -> None:
        pass

    async def ask(
        self, job_id: int, restart: int, nodes: Sequence[str], question: Mapping[str, object]
    ) -> Mapping[str, Mapping[str, object]]:
        return {}

    async def cordon(self, node: str, cordoned: bool, reason: str) -> None:
        pass

    async def stop(self, *, end_jobs: bool) -> None:
        self.stopped = end_jobs

    def reconfigure(self, site: Site) -> Sequence[Node]:
        return site.nodes

    async def attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: str) -> None:
        writer.close()

    def access(self, job: Job, secret: bytes) -> Mapping[str, str]:
        return {"SECRET": secret.hex()}

    def end(self, job_id: int, code: int = 0) -> None:
        self.report(BatchEnded(self.now(), job_id, 0, code << 8))

    @staticmethod
    def now() -> float:
        return time.time()


def site() -> Site:
    nodes = tuple(Node(f"n{number}", cpus=4, sockets=1, cores_per_socket=4, memory=4000) for number in (1, 2))
    partition = Partition("debug", ("n1", "n2"), default=True, default_time=10)
    return Site("test", nodes, (partition,), kill_wait=1)


@asynccontextmanager
async def up(
    directory: Path, launcher: NotingLauncher | None = None, read_site: Callable[[], Site] | None = None
) -> AsyncIterator[tuple[Daemon, NotingLauncher]]:
    directory.mkdir(exist_ok=True)
    store = Store(f"sqlite:///{directory}/test.sqlite", site())
    store.open()
    launcher = launcher or NotingLauncher()
    daemon = Daemon(directory, site(), store, launcher, read_site)
    serving = asyncio.get_running_loop().create_task(daemon.run())
    try:
        while not await asyncio.to_thread(slurmk.answers, directory):
            if serving.done():
                serving.result()
            await asyncio.sleep(0.01)
        yield daemon, launcher
    finally:
        daemon.shutdown(end_jobs=False)
        await asyncio.wait_for(serving, 20)
        store.close()


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        await asyncio.wait_for(story(), 60)

    asyncio.run(within())


def submission(daemon: Daemon, user_id: int | None = None, *, batch: bool = True, **request: object) -> Submit:
    user_id = os.geteuid() if user_id is None else user_id
    credentials = Credentials(user_id, user_id, "someone", "")
    wanted = JobRequest(**{"name": "test", "current_working_directory": "/", "tasks": 1, "memory_per_node": 10, **request})  # type: ignore[arg-type]
    one = Submission(wanted, credentials, batch, "", "", "here", 1)
    return Submit(daemon.now(), Caller(user_id, "someone", user_id == 0), (one,))


async def until(condition: Callable[[], object], seconds: float = 10) -> None:
    end = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < end, "it never came true"
        await asyncio.sleep(0.002)


async def accepted(daemon: Daemon, event: Submit, script: bytes = b"#!/bin/sh\n") -> int:
    answers = await daemon.apply(event, [replace(files(script), secret=b"")])
    assert isinstance(answers[0], Accepted), answers
    return answers[0].job_ids[0]


def test_submission_is_launched_with_its_files_and_ends(tmp_path: Path) -> None:
    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, launcher):
            job_id = await accepted(daemon, submission(daemon), b"#!/bin/sh\necho one\n")
            await until(lambda: launcher.launched)
            launched_id, launched_files = launcher.launched[0]
            assert (launched_id, launched_files.script) == (job_id, b"#!/bin/sh\necho one\n")
            assert len(launched_files.secret) == 16
            assert daemon.access(daemon.machine.jobs[job_id]) == {"SECRET": launched_files.secret.hex()}
            assert daemon.machine.jobs[job_id].credentials.groups, "the user's groups were looked up"
            launcher.end(job_id, 3)
            await until(lambda: daemon.machine.jobs[job_id].state is JobState.FAILED)
            await until(lambda: not daemon.machine.holding())

    run(story)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's controller takes jobs of others")
def test_partitions_are_open_to_groups_by_all_groups_of_a_user(tmp_path: Path) -> None:
    group = grp.getgrall()[-1]

    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, _):
            await daemon.apply(UpdatePartition(daemon.now(), ROOT, "debug", (("allow_groups", ("nosuch", group.gr_name)),)))
            for groups, accepted_ in (((77777, group.gr_gid), True), ((77777,), False)):
                event = submission(daemon, 77777)
                credentials = replace(event.submissions[0].credentials, groups=groups)
                event = replace(event, submissions=(replace(event.submissions[0], credentials=credentials),))
                [answer] = await daemon.apply(event, [files(b"#!/bin/sh\n")])
                assert isinstance(answer, Accepted) is accepted_
                assert isinstance(await daemon.plan_for(event), Refused) is not accepted_

    run(story)


def test_jobs_at_set_times_that_no_table_has_end_at_the_next_start(tmp_path: Path) -> None:
    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, _):
            (tmp_path / "d" / "state").mkdir(exist_ok=True)
            when = int(daemon.now()) + 9000
            ids = [await accepted(daemon, submission(daemon, crontab="0 0 * * *", begin_time=when)) for _ in range(2)]
            daemon.crontabs.tables[0] = Table("@daily true\n", (Entry(ids[0], 0, 0),))
            daemon.save_crontabs()
        async with up(tmp_path / "d") as (daemon, _):
            await until(lambda: daemon.machine.jobs[ids[1]].state is JobState.CANCELLED)
            assert daemon.machine.jobs[ids[0]].state is JobState.PENDING
            (tmp_path / "d" / "state" / "crontabs.json").write_text("[")
        async with up(tmp_path / "d") as (daemon, _):
            assert daemon.machine.jobs[ids[0]].state is JobState.PENDING

    run(story)


def test_allocations_that_nobody_waits_for_any_more_end_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(returning, "RETURN_SECONDS", 2.0)

    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, _):
            runs = await accepted(daemon, submission(daemon, batch=False, tasks=4, minimum_nodes=2))
            await until(lambda: daemon.machine.jobs[runs].state is JobState.RUNNING)
            script = await accepted(daemon, submission(daemon, hold=True))
            gone, back = [await accepted(daemon, submission(daemon, batch=False, hold=True)) for _ in range(2)]
        async with up(tmp_path / "d") as (daemon, _):
            daemon.returning.came_back(back)
            await until(lambda: daemon.machine.jobs[gone].state is JobState.CANCELLED)
            states = [daemon.machine.jobs[job].state for job in (runs, script, back)]
            assert states == [JobState.RUNNING, JobState.PENDING, JobState.PENDING]

    run(story)


def test_reaction_takes_less_than_50_ms(tmp_path: Path) -> None:
    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, launcher):
            await accepted(daemon, submission(daemon))
            await until(lambda: launcher.launched)
            times = []
            for _ in range(5):
                count = len(launcher.launched)
                began = asyncio.get_running_loop().time()
                job_id = await accepted(daemon, submission(daemon))
                await until(lambda count=count: len(launcher.launched) > count)  # type: ignore[misc]
                times.append(asyncio.get_running_loop().time() - began)
                launcher.end(job_id)
            assert sorted(times)[0] < 0.05, times

    run(story)


def test_restart_takes_up_what_runs_and_launches_what_was_not(tmp_path: Path) -> None:
    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, launcher):
            runs = await accepted(daemon, submission(daemon, tasks=4))
            await until(lambda: len(launcher.launched) == 1)
            lost = await accepted(daemon, submission(daemon, tasks=4), b"#!/bin/sh\nlost\n")
            await until(lambda: len(launcher.launched) == 2)
            waits = await accepted(daemon, submission(daemon, tasks=4))
            secret = launcher.launched[1][1].secret
        again = NotingLauncher(frozenset({(runs, 0)}))
        async with up(tmp_path / "d", again) as (daemon, launcher):
            await until(lambda: launcher.launched)
            assert [job_id for job_id, _ in launcher.launched] == [lost]
            assert launcher.launched[0][1].script == b"#!/bin/sh\nlost\n"
            assert launcher.launched[0][1].secret == secret
            assert daemon.machine.jobs[runs].state is JobState.RUNNING
            assert daemon.machine.jobs[waits].state is JobState.PENDING
            launcher.end(runs)
            await until(lambda: len(launcher.launched) == 2)
            assert await accepted(daemon, submission(daemon)) == waits + 1

    run(story)


def test_a_cancellation_that_was_saved_is_carried_out_after_a_restart(tmp_path: Path) -> None:
    class Forgetful(NotingLauncher):
        async def terminate(
            self,
            job_id: int,
            restart: int,
            kill_wait: int,
            nodes: Sequence[str],
            cause: str = "",
            ended: Mapping[str, int] | None = None,
        ) -> None:
            """As if the controller died before this."""

    async def story() -> None:
        async with up(tmp_path / "d", Forgetful()) as (daemon, launcher):
            job_id = await accepted(daemon, submission(daemon))
            await until(lambda: launcher.launched)
            await daemon.apply(Kill(daemon.now(), ROOT, (JobSelection(job_id),)))
        async with up(tmp_path / "d") as (daemon, launcher):
            await until(lambda: not daemon.machine.holding())
            assert launcher.terminated == [job_id]
            assert daemon.machine.jobs[job_id].state is JobState.CANCELLED

    run(story)


def test_down_with_jobs_cancels_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, launcher):
            job_id = await accepted(daemon, submission(daemon))
            await until(lambda: launcher.launched)
            daemon.shutdown(end_jobs=True)
            await until(lambda: launcher.stopped is not None)
            assert daemon.machine.jobs[job_id].state is JobState.CANCELLED
            assert launcher.stopped is True
            await until(lambda: not (tmp_path / "d" / "slurmk.sock").exists())

    run(story)


def test_job_changed(tmp_path: Path) -> None:
    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, launcher):
            job_id = await accepted(daemon, submission(daemon))
            await until(lambda: launcher.launched)

            async def end() -> Job:
                while True:
                    job = await daemon.job_changed(job_id)
                    assert job is not None
                    if job.state.finished:
                        return job

            waiting = asyncio.ensure_future(end())
            await asyncio.sleep(0.05)
            launcher.end(job_id)
            assert (await asyncio.wait_for(waiting, 10)).state is JobState.COMPLETED
            given_up = asyncio.ensure_future(daemon.job_changed(job_id))
            await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
            assert job_id not in daemon._waiting

    run(story)


def test_only_root_serves_other_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, _):
            other = os.geteuid() + 1
            monkeypatch.setattr(os, "geteuid", lambda: 12345)
            refused = await daemon.apply(submission(daemon, user_id=other), [files()])
            assert isinstance(refused[0], Refused)
            assert refused[0].error.errno is Errno.USER_ID_MISSING
            assert not daemon.machine.jobs

    run(story)


def test_trial_of_a_submission(tmp_path: Path) -> None:
    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, _):
            outlook = await daemon.plan_for(submission(daemon))
            assert not isinstance(outlook, Refused)
            assert outlook.nodes
            assert isinstance(await daemon.plan_for(submission(daemon, partition="nowhere")), Refused)
            assert not daemon.machine.jobs

    run(story)


def test_read_only_store_refuses_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, launcher):
            kept = await accepted(daemon, submission(daemon))
            await until(lambda: launcher.launched)
            commit = daemon.store.commit

            def fail(*arguments: object) -> None:
                raise StoreError("slurmk.sqlite: attempt to write a readonly database")

            monkeypatch.setattr(daemon.store, "commit", fail)
            refused = await daemon.apply(submission(daemon), [files()])
            assert isinstance(refused[0], Refused)
            assert str(refused[0].error) == "I/O error writing script/environment to file"
            launcher.end(kept, 2)
            await asyncio.sleep(0.05)
            monkeypatch.setattr(daemon.store, "commit", commit)
            await until(lambda: not daemon.engine.fault)
            assert daemon.machine.jobs[kept].state is JobState.FAILED
            assert await accepted(daemon, submission(daemon)) == kept + 1
            await until(lambda: len(launcher.launched) == 2)

    run(story)


def test_what_was_seen_of_nodes_outlives_a_store_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = site().nodes
    third = replace(second, name="n3")
    larger = replace(site(), nodes=(first, second, third), partitions=(Partition("debug", ("n1", "n2", "n3"), selected=True),))

    async def story() -> None:
        async with up(tmp_path / "d") as (daemon, launcher):
            launcher.report(SiteChanged(daemon.now(), larger))
            launcher.report(NodeChanged(daemon.now(), replace(first, foreign_cpus=3)))
            launcher.report(NodeChanged(daemon.now(), replace(third, refusal="Taint")))
            commit = daemon.store.commit

            def fail(*arguments: object) -> None:
                raise StoreError("slurmk.sqlite: attempt to write a readonly database")

            monkeypatch.setattr(daemon.store, "commit", fail)
            assert isinstance((await daemon.apply(submission(daemon), [files()]))[0], Refused)
            monkeypatch.setattr(daemon.store, "commit", commit)
            await until(lambda: not daemon.engine.fault)
            assert daemon.machine.nodes["n1"].foreign_cpus == 3
            assert not daemon.machine.nodes["n3"].available
            assert daemon.store.site is larger

    run(story)


def test_the_configuration_is_read_again(tmp_path: Path) -> None:
    more = replace(
        site(),
        nodes=(*site().nodes, Node("n3", cpus=4, sockets=1, cores_per_socket=4, memory=4000)),
        partitions=(Partition("new", ("n3",), default=True),),
    )
    found: list[Site | Exception] = [GrammarError("slurm.conf:3: no such key"), FileNotFoundError(2, "gone", "/c"), more]

    def read_site() -> Site:
        match found.pop(0):
            case Site() as read:
                return read
            case Exception() as error:
                raise error

    async def story() -> None:
        async with up(tmp_path / "d", read_site=read_site) as (daemon, launcher):
            await daemon.apply(submission(daemon), (files(),))
            await until(lambda: launcher.launched)
            assert "slurm.conf:3: no such key" in await daemon.reconfigure(ROOT)
            assert await daemon.reconfigure(ROOT) == "/c: gone"
            assert list(daemon.machine.partitions) == ["debug"]
            assert await daemon.reconfigure(ROOT) == ""
            assert list(daemon.machine.partitions) == ["new"]
            assert daemon.store.site is more
            assert [job.state for job in daemon.machine.jobs.values()] == [JobState.RUNNING]
            await daemon.apply(submission(daemon, partition="new"), (files(),))
            await until(lambda: len(launcher.launched) == 2)

    run(story)


def test_only_operators_may_have_the_configuration_read_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with up(tmp_path / "d", read_site=lambda: replace(site(), partitions=())) as (daemon, _):
            assert await daemon.reconfigure(Caller(1000, "someone", False)) == "Invalid user id"
            assert list(daemon.machine.partitions) == ["debug"]

    run(story)


def test_a_socket_that_was_removed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurmk.daemon.controller.GUARD_SECONDS", 0.05)

    async def story() -> None:
        async with up(tmp_path) as (daemon, _):
            daemon.socket_path.unlink()
            await until(daemon.socket_path.exists)
            await asyncio.sleep(0.02)
            _, writer = await asyncio.open_unix_connection(str(daemon.socket_path))
            writer.close()
        assert not daemon.socket_path.exists()

    run(story)


def test_configuration_is_read_from_files_alone(tmp_path: Path) -> None:
    assert configured.read(str(tmp_path / "none")) is None
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", str(tmp_path / "pipe"), str(tmp_path)):
        with pytest.raises(OSError, match="not a regular file") as fault:
            configured.read(path)
        assert fault.value.filename == path
