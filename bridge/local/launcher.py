"""The embedded cluster: every allocated node of a job is a stepd process on this machine.

A zygote forks the stepds, so that a job costs no interpreter's start. They are detached and outlive the controller; after
a restart those that live come back by themselves, and what became of the others is read from their directories.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import platform
import shlex
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bridge.archive import write_archive, write_folder
from bridge.description import describe
from bridge.launcher import Report
from bridge.link import RESIZE, Attempt, Seat, StepdLink, attempt_of, events_of, read_message, step_secret
from bridge.local.interpreter import OPTIONS, find_interpreter
from bridge.local.places import Places
from slurmk import SLURM_VERSION, wire
from slurmk.core.events import Event, KillFlag, NodeChanged, NodeFailed, NodesReleased
from slurmk.model.job import Job, JobFiles
from slurmk.model.node import Node
from slurmk.model.site import Site

log = logging.getLogger(__name__)

WATCH_SECONDS = 0.25
"""How often a stepd that is not connected is looked at."""

GROUPS_SECONDS = 30.0
"""How long the processes in a dead stepd's control groups may take to die."""

MEASURE_SECONDS = 30.0
"""How often the load and the free memory of this machine are told, which all pretended nodes have."""

END_SECONDS = 5.0
"""How long ``stop`` waits for jobs that it ends."""


class LocalLauncher:
    """Implements bridge.launcher.Launcher. ``address`` is the path of the controller's socket."""

    def __init__(self, site: Site, directory: Path, address: str) -> None:
        self._site = site
        self._directory = Path(directory).absolute()
        self._address = address
        self._places = Places(self._directory)
        self._link = StepdLink(time.time, self._lost, self._released)
        self._interpreter = ""
        self._zygote: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._dead: set[tuple[int, int, str]] = set()
        self._stopping = False
        self._started = int(time.time())

    @property
    def program(self) -> Path:
        """The folder that stepd runs from."""
        return self._directory / "lib" / "stepd"

    # ---------------------------------------------------------------- bridge.launcher.Launcher

    async def start(self, report: Report) -> Sequence[Node]:
        """Raises OSError or InterpreterError when stepd cannot be put in place."""
        self._link.report = report
        self._places.prepare()
        await asyncio.to_thread(self._install)
        await self._start_zygote()
        self._spawn(self._measure())
        return self._all_as_found()

    def reconfigure(self, site: Site) -> Sequence[Node]:
        self._site = site
        return self._all_as_found()

    async def recover(self, jobs: Iterable[Job]) -> frozenset[tuple[int, int]]:
        never = set()
        known = set()
        for job in jobs:
            if job.allocation is None:
                continue
            key = job.job_id, job.restarts
            known.add(key)
            if not self._recover(job):
                never.add(key)
        for key in list(self._places.attempts()):
            if key not in known:
                self._spawn(self._clear(*key))
        return frozenset(never)

    async def launch(self, job: Job, files: JobFiles) -> None:
        assert job.allocation is not None
        description = self._description(job, files)
        nodes = job.allocation.nodes
        self._places.make(job.job_id, job.restarts, nodes, description)
        attempt = attempt_of(
            job.job_id, job.restarts, files.secret, lambda: description, nodes, most_steps=self._site.maximum_step_count
        )
        self._link.expect(attempt)
        await self._fork(attempt, nodes)

    async def signal(
        self, job_id: int, restart: int, signal: int, step_id: int | None = None, flags: KillFlag = KillFlag.NONE
    ) -> None:
        self._link.signal((job_id, restart), signal, step_id, int(flags))

    async def terminate(
        self,
        job_id: int,
        restart: int,
        kill_wait: int,
        nodes: Sequence[str],
        cause: str = "",
        ended: Mapping[str, int] | None = None,
    ) -> None:
        attempt = self._link.attempts.get((job_id, restart))
        gone = tuple(node for node in nodes if attempt is None or self._is_gone(attempt, node))
        if gone:
            await self._told(NodesReleased(time.time(), job_id, restart, gone))
            if attempt is not None:
                for node in gone:
                    if node in attempt.seats:
                        attempt.seats[node].released = True
                self._forget_if_over(attempt)
        self._link.terminate((job_id, restart), kill_wait, [node for node in nodes if node not in gone], cause, ended)

    async def shrink(self, job_id: int, restart: int, nodes: Sequence[str], lost: Sequence[str]) -> None:
        self._link.shrink((job_id, restart), nodes)
        await self.terminate(job_id, restart, 0, lost, RESIZE)

    async def update_limit(self, job_id: int, restart: int, end_time: int | None) -> None:
        self._link.limit((job_id, restart), end_time)

    async def ask(
        self, job_id: int, restart: int, nodes: Sequence[str], question: Mapping[str, Any]
    ) -> Mapping[str, Mapping[str, Any]]:
        return await self._link.ask((job_id, restart), nodes, question)

    async def cordon(self, node: str, cordoned: bool, reason: str) -> None:
        """Pretended nodes have nobody else to be told."""

    async def stop(self, *, end_jobs: bool) -> None:
        if end_jobs:
            await self._end_jobs()
        self._stopping = True
        for task in list(self._tasks):
            task.cancel()
        if self._writer is not None:
            self._writer.close()
        if self._zygote is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._zygote.wait(), 5)

    async def _end_jobs(self) -> None:
        """End all that still runs. Stepds that do not come to be told are killed."""
        for attempt in self._link.attempts.values():
            self._link.terminate(attempt.key, 0, list(attempt.seats))
        end = time.monotonic() + END_SECONDS
        while self._link.attempts and time.monotonic() < end:  # noqa: ASYNC110  (a bounded wait at the very end)
            await asyncio.sleep(0.02)
        self._stopping = True
        for attempt in self._link.attempts.values():
            for seat in attempt.seats.values():
                if not seat.released:
                    self._places.kill(*attempt.key, seat.node)
                    await asyncio.to_thread(self._end_orphans, *attempt.key, seat.node)

    # ---------------------------------------------------------------- for the daemon

    async def attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: str) -> None:
        """Serve a connection that said it is a stepd's."""
        await self._link.attach(reader, writer, hello)

    def access(self, job: Job, secret: bytes) -> Mapping[str, str]:
        """Environment by which srun's local part, run by a process of the job's user, finds the job's step manager."""
        attempt = self._link.attempts.get((job.job_id, job.restarts))
        first = job.allocation.nodes[0] if job.allocation is not None else ""
        address = (attempt.manager if attempt else "") or self._places.manager(job.job_id, job.restarts, first)
        return {
            "SLURMK_SRUN": shlex.join([self._interpreter, *OPTIONS, str(self.program), "srun"]),
            "SLURMK_STEP_MANAGER": address,
            "SLURMK_JOB_SECRET": step_secret(secret),
        }

    # ---------------------------------------------------------------- start

    def _install(self) -> None:
        write_folder(self.program)
        write_archive(self._directory / "lib" / "stepd.pyz")
        self._interpreter = find_interpreter(self.program)

    async def _start_zygote(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._zygote = await asyncio.create_subprocess_exec(
                self._interpreter,
                *OPTIONS,
                str(self.program),
                "zygote",
                stdin=theirs.fileno(),
                stdout=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._reading = self._spawn(self._listen_to_zygote(reader))

    async def _listen_to_zygote(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError, wire.WireError, ValueError):
            while True:
                message = await read_message(reader)
                if message.get("kind") == "exited":
                    attempt = self._link.attempts.get((int(message["job"]), int(message["restart"])))
                    seat = attempt.seats.get(str(message["node"])) if attempt is not None else None
                    if attempt is not None and seat is not None:
                        self._spawn(self._check_ended(attempt, seat))
        self._writer = None

    async def _fork(self, attempt: Attempt, nodes: Sequence[str]) -> None:
        """Have the zygote start stepds. Raises OSError."""
        if self._writer is None or self._writer.is_closing():
            log.warning("the zygote is gone; starting another")
            await self._start_zygote()
        assert self._writer is not None
        for node in nodes:
            directory = self._places.node(*attempt.key, node)
            place = {
                "job": attempt.job_id,
                "restart": attempt.restart,
                "node": node,
                "directory": str(directory),
                "controller": f"unix:{self._address}",
                "secret": attempt.secret.hex(),
                "log": str(directory / "log"),
            }
            self._writer.write(wire.encode(wire.MESSAGE, json.dumps(place).encode()))
        await self._writer.drain()

    def _description(self, job: Job, files: JobFiles) -> bytes:
        extra: dict[str, Any] = {"place": str(self._directory), "commands": str(self._directory / "bin")}
        return json.dumps(describe(job, files, self._site, extra), separators=(",", ":")).encode()

    def _all_as_found(self) -> list[Node]:
        """The pretended nodes with what is true of this machine."""
        system = platform.uname()
        boot_time = _boot_time()
        load, free = _load(), _free_memory()
        return [
            replace(
                node,
                address=node.address or node.name,
                host_name=node.host_name or node.name,
                boot_time=boot_time,
                slurmd_start_time=self._started,
                operating_system=f"{system.system} {system.release} {system.version}",
                architecture=system.machine,
                version=SLURM_VERSION,
                cpu_load=load,
                free_memory=free,
            )
            for node in self._site.nodes
        ]

    async def _measure(self) -> None:
        while True:
            await asyncio.sleep(MEASURE_SECONDS)
            for node in self._all_as_found():
                self._link.report(NodeChanged(time.time(), node))

    # ---------------------------------------------------------------- after a restart

    def _recover(self, job: Job) -> bool:
        """Take one attempt up again; False when it was never launched."""
        assert job.allocation is not None
        key = job.job_id, job.restarts
        nodes = job.allocation.nodes
        try:
            description = self._places.description(*key)
            described = json.loads(description)
            secret = bytes.fromhex(described["secret"])
        except (OSError, ValueError, KeyError):
            return False
        if not any(self._places.started(*key, node) for node in nodes):
            return False
        attempt = attempt_of(
            *key, secret, lambda: self._places.description(*key), nodes, most_steps=self._site.maximum_step_count
        )
        attempt.manager = self._places.manager(*key, nodes[0])
        self._link.expect(attempt)
        if len(described["nodes"]) > len(nodes):
            self._link.shrink(key, nodes)
        absent = [node for node in nodes if not self._places.started(*key, node)]
        if absent:
            self._spawn(self._fork(attempt, absent))
        for node in nodes:
            if node not in absent:
                self._lost(attempt, attempt.seats[node])
        return True

    async def _clear(self, job_id: int, restart: int) -> None:
        """Remove what is left of an attempt that nobody knows; living stepds end when they come and are not known."""
        folder = self._places.job(job_id, restart)
        nodes = [path.name for path in folder.iterdir() if path.is_dir()]
        end = time.monotonic() + 60
        while any(self._places.alive(job_id, restart, node) for node in nodes) and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(WATCH_SECONDS)
        for node in nodes:
            await asyncio.to_thread(self._end_orphans, job_id, restart, node)
        await asyncio.to_thread(self._places.remove, job_id, restart)

    # ---------------------------------------------------------------- stepds that went away

    def _lost(self, attempt: Attempt, seat: Seat) -> None:
        if not seat.released and not self._stopping:
            self._spawn(self._watch(attempt, seat))

    async def _watch(self, attempt: Attempt, seat: Seat) -> None:
        """Until the stepd is connected again or known to be dead."""
        while seat.writer is None and not seat.released and self._link.attempts.get(attempt.key) is attempt:
            if not self._places.alive(*attempt.key, seat.node):
                await self._bury(attempt, seat)
                return
            await asyncio.sleep(WATCH_SECONDS)

    async def _check_ended(self, attempt: Attempt, seat: Seat) -> None:
        """The zygote says that a stepd of this launcher ended. What it said last may still be on its way."""
        await asyncio.sleep(0.05)
        if not seat.released and not self._places.alive(*attempt.key, seat.node):
            await self._bury(attempt, seat)

    async def _bury(self, attempt: Attempt, seat: Seat) -> None:
        """A stepd is dead: end what it left running, report what it wrote down, and that the node failed the job."""
        place = (*attempt.key, seat.node)
        if place in self._dead:
            return
        self._dead.add(place)
        seat.writer = None
        await asyncio.to_thread(self._end_orphans, *place)
        ended = False
        for message in self._places.reports(*place):
            ended = ended or message.get("event") == "batch_ended"
            if message.get("id") not in seat.seen:
                with contextlib.suppress(KeyError, TypeError, ValueError):
                    for event in events_of(attempt, seat.node, message, time.time()):
                        self._report(event)
        last: Event | None = None
        if seat.ending:
            last = NodesReleased(time.time(), *attempt.key, (seat.node,))
        elif not ended:
            log.warning("the stepd of job %d on %s died %s", attempt.job_id, seat.node, self._places.log(*place))
            last = NodeFailed(time.time(), *attempt.key, (seat.node,), "stepd died")
        if last is not None:
            await self._told(last)
            seat.released = True
            self._forget_if_over(attempt)

    def _end_orphans(self, job_id: int, restart: int, node: str) -> None:
        """End what a stepd that died left running: all of its control groups, and what bears its mark."""
        groups = self._places.groups(job_id, restart, node)
        if groups.exists():
            command = [self._interpreter, *OPTIONS, str(self.program), "end-groups", str(groups)]
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=GROUPS_SECONDS, check=False)
        self._places.kill_orphans(job_id, restart, node)

    def _is_gone(self, attempt: Attempt, node: str) -> bool:
        seat = attempt.seats.get(node)
        return seat is None or seat.released or (*attempt.key, node) in self._dead

    def _released(self, attempt: Attempt, seat: Seat) -> None:
        self._forget_if_over(attempt)

    def _forget_if_over(self, attempt: Attempt) -> None:
        if all(seat.released for seat in attempt.seats.values()):
            self._link.forget(attempt)
            self._dead -= {(*attempt.key, node) for node in attempt.seats}
            self._spawn(asyncio.to_thread(self._places.remove, *attempt.key))

    # ---------------------------------------------------------------- small things

    def _report(self, event: Event) -> None:
        self._link.report(event)

    async def _told(self, event: Event) -> None:
        """Report, and wait until what that changed is on disk."""
        waiting = self._link.report(event)
        if waiting is not None:
            await waiting

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("the launcher failed", exc_info=task.exception())


def _load() -> int | None:
    """The load of the last minute, in hundredths."""
    with contextlib.suppress(OSError):
        return round(os.getloadavg()[0] * 100)
    return None


def _free_memory() -> int | None:
    """MiB that nothing uses."""
    with contextlib.suppress(OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    return None


def _boot_time() -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(time.time() - float(Path("/proc/uptime").read_text().split()[0]))
    return 0
