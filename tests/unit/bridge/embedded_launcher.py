"""A launcher with a bare controller around it: a socket, and a list of what was reported."""

from __future__ import annotations

import asyncio
import contextlib
import grp
import os
import pwd
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bridge.local.launcher import LocalLauncher
from slurmk.core.events import BatchEnded, Event, NodesReleased
from slurmk.model.job import Allocation, Credentials, GresShare, Job, JobFiles, JobRequest, NodeShare
from slurmk.model.node import GresCapacity, Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import INFINITE, JobState
from slurmk.model.step import StepRequest

NODES = tuple(Node(name=f"n{number}", cpus=8, memory=16000, gres=(GresCapacity("gpu", "a100", 4),)) for number in range(1, 5))
SITE = Site("test", NODES, (Partition("debug", tuple(node.name for node in NODES), default=True),), kill_wait=1)


@dataclass
class Cluster:
    """The controller's side in a test."""

    launcher: LocalLauncher
    work: Path
    events: list[Event] = field(default_factory=list)
    jobs: dict[int, Job] = field(default_factory=dict)
    files: dict[int, JobFiles] = field(default_factory=dict)
    never_launched: frozenset[tuple[int, int]] = frozenset()
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def report(self, event: Event) -> None:
        self.events.append(event)
        self.changed.set()

    async def until(self, condition: Callable[[], object], seconds: float = 20) -> None:
        """Wait until the condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.events
            self.changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), 0.05)

    def found(self, kind: type, job_id: int) -> list[Event]:
        """Reports of that kind about a job."""
        return [event for event in self.events if isinstance(event, kind) and getattr(event, "job_id", job_id) == job_id]

    async def launch(self, script: str, job_id: int = 5, **options: object) -> Job:
        """Start a batch job (no script: an allocation)."""
        job, files = make_job(self.work, job_id, script.encode(), **options)  # type: ignore[arg-type]
        self.jobs[job_id], self.files[job_id] = job, files
        await self.launcher.launch(job, files)
        return job

    async def ended(self, job_id: int = 5, seconds: float = 20) -> BatchEnded:
        """Wait for the end of the batch script."""
        await self.until(lambda: self.found(BatchEnded, job_id), seconds)
        event = self.found(BatchEnded, job_id)[0]
        assert isinstance(event, BatchEnded)
        return event

    async def release(self, job_id: int = 5, kill_wait: int = 1, seconds: float = 20) -> None:
        """Terminate the job and wait until all of its nodes are free."""
        job = self.jobs[job_id]
        assert job.allocation is not None
        await self.launcher.terminate(job_id, job.restarts, kill_wait, job.allocation.nodes)

        def all_released() -> bool:
            ended = [event for event in self.events if isinstance(event, NodesReleased) and event.job_id == job_id]
            released = {node for event in ended for node in event.nodes}
            return released >= set(job.allocation.nodes)  # type: ignore[union-attr]

        await self.until(all_released, seconds)

    async def run(self, script: str, job_id: int = 5, **options: object) -> tuple[int, str]:
        """A whole batch job: its wait status and what it wrote."""
        await self.launch(script, job_id, **options)
        ended = await self.ended(job_id)
        await self.release(job_id)
        path = self.work / f"slurm-{job_id}.out"
        return ended.exit_code, path.read_text() if path.exists() else ""

    def srun_environment(self, job_id: int, *argv: str, **options: object) -> tuple[list[str], dict[str, str]]:
        """The program that srun becomes, and its environment."""
        job = self.jobs[job_id]
        access = dict(self.launcher.access(job, self.files[job_id].secret))
        step = StepRequest(
            name=argv[0] if argv else "multi",
            argv=argv,
            cwd=str(self.work),
            umask=0o022,
            submit_line="srun",
            job_id=job_id,
            **options,  # type: ignore[arg-type]
        )
        program = access["SLURMK_SRUN"].split()
        return program, {"PATH": os.environ["PATH"], **access, **step.to_variables()}

    async def srun(
        self, job_id: int, *argv: str, stdin: bytes = b"", seconds: float = 30, **options: object
    ) -> tuple[int, str, str]:
        """Run srun as a process of its own; exit code, output, errors."""
        program, environment = self.srun_environment(job_id, *argv, **options)
        process = await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            cwd=self.work,
        )
        try:
            out, error = await asyncio.wait_for(process.communicate(stdin), seconds)
        except TimeoutError:
            process.kill()
            raise
        assert process.returncode is not None
        return process.returncode, out.decode(), error.decode()


def running(words: str) -> bool:
    """True while a process has these words in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words in path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"):
                return True
    return False


def make_job(
    work: Path,
    job_id: int,
    script: bytes,
    *,
    nodes: int = 1,
    cpus: int = 2,
    tasks: int = 1,
    gpus: int = 0,
    memory: int = 1000,
    minutes: int = INFINITE,
    restarts: int = 0,
    arguments: tuple[bytes, ...] = (),
    environment: Mapping[bytes, bytes] | None = None,
    start_time: int | None = None,
    job: Mapping[str, object] | None = None,
    **request: object,
) -> tuple[Job, JobFiles]:
    """A running job of this user on the first nodes."""
    shares = tuple(
        NodeShare(
            f"n{number + 1}",
            cpus,
            memory,
            tasks,
            gres=(GresShare("gpu", "a100", gpus, tuple(range(gpus))),) if gpus else (),
        )
        for number in range(nodes)
    )
    user = pwd.getpwuid(os.geteuid())
    made = Job(
        job_id=job_id,
        request=JobRequest(**{"current_working_directory": str(work), **request}),  # type: ignore[arg-type]
        credentials=Credentials(
            user.pw_uid, user.pw_gid, user.pw_name, grp.getgrgid(user.pw_gid).gr_name, tuple(os.getgroups())
        ),
        submit_time=int(time.time()),
        state=JobState.RUNNING,
        name="test",
        account="phys",
        time_limit=minutes,
        batch=bool(script),
        start_time=int(time.time()) if start_time is None else start_time,
        restarts=restarts,
        allocation=Allocation("debug", shares),
        submit_host="here",
    )
    made = replace(made, **(job or {}))  # type: ignore[arg-type]
    given = {b"PATH": os.environb[b"PATH"], b"HOME": b"/", b"SUBMITTED": b"yes"} if environment is None else environment
    return made, JobFiles(script, arguments, given, secrets.token_bytes(16))


@contextlib.asynccontextmanager
async def embedded(directory: Path, jobs: Iterable[Job] = ()) -> AsyncIterator[Cluster]:
    """A launcher that listens on a socket in ``directory``; its jobs are ended with it. ``jobs`` are those that an earlier
    one had started: they are taken up before their stepds can call, as the controller does."""
    work = directory.parent / "work"
    work.mkdir(exist_ok=True)
    path = directory / "slurmk.sock"
    path.unlink(missing_ok=True)
    launcher = LocalLauncher(SITE, directory, str(path))
    cluster = Cluster(launcher, work)
    await launcher.start(cluster.report)
    cluster.never_launched = await launcher.recover(jobs)
    async with serving(cluster, path):
        try:
            yield cluster
        finally:
            await launcher.stop(end_jobs=True)


@contextlib.asynccontextmanager
async def serving(cluster: Cluster, path: Path) -> AsyncIterator[None]:
    """Accept stepds as the daemon does: read HELLO, hand the connection over."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            header = await reader.readexactly(5)
            hello = await reader.readexactly(int.from_bytes(header[1:], "big"))
            await cluster.launcher.attach(reader, writer, hello.decode())

    server = await asyncio.start_unix_server(connected, path=path)
    try:
        yield
    finally:
        server.close()
