"""The stepd of one node of one job: keeps the job alive there, whatever becomes of the controller.

It dials the controller for as long as it lives, is told its job, runs the batch script (on the first node, where the
step manager is as well), forks keepers for steps, and ends when the controller has acknowledged that nothing of the job
is left on the node.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import sys
import time

from slurmk import wire
from slurmk.stepd import cgroup, environment, keeper, messages, output, processes, questions, site_programs, texts, usage
from slurmk.stepd.manager import StepManager
from slurmk.stepd.reports import Reports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Set

    Message = Dict[str, Any]

MARKER = "started"
"""Exists once a stepd has begun, and is locked (flock) for as long as it lives."""

MANAGER_FILE = "manager"
SCRIPT = "slurm_script"

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
"""Seconds between attempts to reach the controller."""

LOST = (OSError, wire.WireError, asyncio.IncompleteReadError, asyncio.TimeoutError, ValueError, KeyError)
"""What ends a connection, which is then made anew. (A timeout is an OSError from Python 3.11 on.)"""

CANNOT_OPEN = 53
"""The wait status of a batch script whose files cannot be opened, as in Slurm (0:53)."""

SIGNAL_BATCH = 1
SIGNAL_FULL = 2
SIGNAL_CANCEL = 32
"""Bits of slurmk.core.events.KillFlag."""


class Keeper:
    """A keeper of this node, as its stepd sees it."""

    def __init__(self, process: int, step: str, connection: socket.socket) -> None:
        self.process = process
        self.step = step
        self.connection = connection
        self.reader: asyncio.StreamReader
        self.writer: Optional[asyncio.StreamWriter] = None
        self._early: List[bytes] = []

    async def open(self) -> asyncio.StreamWriter:
        """Begin to talk to it."""
        self.reader, self.writer = await asyncio.open_connection(sock=self.connection)
        self.writer.writelines(self._early)
        return self.writer

    def tell(self, message: Mapping[str, Any]) -> None:
        """Tell it something, now or once the connection is open."""
        frame = messages.pack(dict(message))
        if self.writer is None:
            self._early.append(frame)
        elif not self.writer.is_closing():
            self.writer.write(frame)


class Node:
    """One stepd. ``place`` has job, restart, node, directory (its own), controller (address) and secret."""

    def __init__(self, place: Mapping[str, Any]) -> None:
        self.place = place
        self.job: Mapping[str, Any] = {}
        self.index = 0
        self.directory: str = place["directory"]
        self.reports = Reports(self.directory, self._tell)
        self.keepers: Dict[int, Keeper] = {}
        self.manager: Optional[StepManager] = None
        self.timed_out = False
        self.terminating = False
        self._informed = False
        self._writer: Optional[asyncio.StreamWriter] = None
        self._batch: Optional[Keeper] = None
        self._batch_step: Message = {}
        self.batch_status: Optional[int] = None
        self._over = False  # the batch script ended, or the allocation was given back
        self._released = 0
        self._finished = asyncio.Event()
        self._tasks: Set[asyncio.Task[Any]] = set()
        self._limit: Optional[asyncio.TimerHandle] = None
        self._warning: Optional[asyncio.TimerHandle] = None
        self._end_time: Optional[int] = None
        self._limit_told = False  # the end is as it was told apart, not as the description has it
        self._peer: Optional[asyncio.Task[Any]] = None
        self._programs: Dict[int, asyncio.Future[int]] = {}  # of the site, by process
        self._sessions: Set[int] = set()  # of those programs, also for what they started and left
        self._prologed: Optional[asyncio.Task[bool]] = None
        self._ended: Message = {}  # what the controller said of the job's end
        self._cleaning = False  # the epilog runs, or has run

    @property
    def batch(self) -> Optional[Keeper]:
        """The keeper of the batch script, while it runs."""
        return self._batch

    @property
    def name(self) -> str:
        return str(self.place["node"])

    async def run(self) -> None:
        """Live until the controller knows that the job is gone from this node."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in (signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, _nothing)
        loop.add_signal_handler(signal.SIGTERM, self._told_to_end)
        link = self.spawn(self._keep_link())
        await self._finished.wait()
        link.cancel()
        if self._writer is not None:
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(self._writer.drain(), 5)

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        """Run a coroutine as a task that is not forgotten half-way."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ---------------------------------------------------------------- the controller

    async def _keep_link(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                await self._link()
                pause = FIRST_PAUSE
            except LOST:
                pass
            self._writer = None
            if not os.path.isdir(self.directory):
                self._abandon()
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    async def _link(self) -> None:
        """One connection to the controller, until it ends."""
        reader, writer = await messages.open_connection(self.place["controller"])
        try:
            writer.write(messages.hello("stepd"))
            challenge = str((await asyncio.wait_for(messages.read_message(reader), 30)).get("nonce", ""))
            writer.write(messages.pack(self._registration(challenge)))
            self._writer = writer
            for report in self.reports.waiting:
                self._tell(report)
            while True:
                await self._obey(await messages.read_message(reader))
        finally:
            self._writer = None
            writer.close()

    def _registration(self, challenge: str) -> Message:
        return {
            "kind": "register",
            "job": self.place["job"],
            "restart": self.place["restart"],
            "node": self.name,
            "pid": os.getpid(),
            "informed": self._informed,
            "manager": self.manager.address if self.manager is not None else "",
            "proof": messages.proof(self.place["secret"], challenge, "register"),
        }

    def _tell(self, message: Mapping[str, Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(messages.pack(dict(message)))

    async def _obey(self, message: Message) -> None:
        kind = message.get("kind")
        if kind == "job":
            await self._begin(message["job"])
        elif kind == "ack":
            self.reports.acknowledge(message["id"])
            if message["id"] == self._released:
                self._finished.set()
        elif kind == "terminate":
            self._ended = dict(message.get("ended") or {})
            self.terminate(float(message["kill_wait"]), str(message.get("cause", "")))
        elif kind == "signal":
            self.signal(int(message["signal"]), message.get("step"), int(message.get("flags", 0)))
        elif kind == "limit":
            self._limit_told = True
            self._set_limit(message["end_time"])
        elif kind == "shrink":
            if self.manager is not None:
                self.manager.shrink(message["nodes"])
        elif kind == "ask":
            self._tell(dict(questions.answer(self, message), kind="answer", id=message["id"]))
        elif kind == "manager":
            self._follow(message["address"])
        elif kind == "unknown":
            self._abandon()

    def _told_to_end(self) -> None:
        """SIGTERM: stepd ends when its job does."""

    def _abandon(self) -> None:
        """The controller knows nothing of this job, or the cluster's directory was removed: end it, and tell nobody."""
        self.terminating = True
        for each in self.keepers.values():
            each.tell({"kind": "kill", "signal": signal.SIGKILL, "kill_wait": 0})
        self._over = True
        self._released = -1
        if not self.keepers:
            self._finished.set()

    # ---------------------------------------------------------------- the job

    async def _begin(self, job: Mapping[str, Any]) -> None:
        if self._informed:
            return
        self.job = job
        self._informed = True
        self.index = next(number for number, node in enumerate(job["nodes"]) if node["node"] == self.name)
        at_once = site_programs.flagged(job, "alloc") and site_programs.has(job, "prolog")
        if self.index:
            if at_once:
                self.spawn(self.prepared())
            return
        self.manager = StepManager(self)
        await self.manager.listen()
        _write(os.path.join(self.directory, MANAGER_FILE), self.manager.address.encode(), 0o600)
        self._tell({"kind": "address", "manager": self.manager.address})
        self._set_limit(self._end_time if self._limit_told else job["end_time"])
        if at_once or (job["batch"] and site_programs.has(job, "prolog")):
            self.spawn(self._begin_prepared(at_once))
        else:
            await self._begin_work()

    async def _begin_work(self) -> None:
        if not self.job["batch"]:
            self.reports.add("started", begun=self.job["start_time"])
            return
        try:
            await self._start_batch()
        except OSError as error:
            self.reports.add("launch_failed", message="%s: %s" % (error.filename or self.directory, error.strerror))

    # ---------------------------------------------------------------- prolog and epilog

    async def _begin_prepared(self, at_once: bool) -> None:
        """Begin once the prolog has run, here or with PrologFlags=Alloc (``at_once``) on all nodes; the job runs meanwhile."""
        self.reports.add("started", begun=self.job["start_time"], prolog=at_once)
        ready = await self.prepared()
        if ready and at_once and self.manager is not None:
            await self.manager.all_there()
            self.reports.add("prologs_over")
        if not ready or self.terminating or self._over:
            return
        if self.timed_out:
            self._over = True
            self.reports.add("batch_ended", exit_code=int(signal.SIGTERM), timed_out=True)
        elif self.job["batch"]:
            await self._begin_work()

    async def prepared(self) -> bool:
        """Have the site's prolog run here, if it has not; whether work of the job may be begun on this node. The controller is
        told when not."""
        if not site_programs.has(self.job, "prolog"):
            return True
        if self._prologed is None:
            self._prologed = self.spawn(self._run_prolog())
        return await asyncio.shield(self._prologed)

    async def _run_prolog(self) -> bool:
        try:
            await site_programs.run(self.job, self.index, "prolog", self._watch)
        except (site_programs.Failed, OSError) as error:
            self.reports.add("prolog_failed", message=str(error))
            return False
        finally:
            self._sessions.clear()
            asyncio.get_running_loop().call_soon(self._check_released)
        return True

    def _watch(self, process: int, ended: asyncio.Future[int]) -> None:
        """A program of the site runs; what it starts is its own until all of them are over."""
        self._programs[process] = ended
        self._sessions.add(process)

    async def _run_epilog(self) -> None:
        try:
            await site_programs.run(self.job, self.index, "epilog", self._watch, self._ended)
        except (site_programs.Failed, OSError) as error:
            self.reports.add("epilog_failed", message=str(error))
        self._sessions.clear()
        self._released = self.reports.add("released")

    # ---------------------------------------------------------------- keepers and the script

    def fork_keeper(self, specification: Mapping[str, Any]) -> Keeper:
        """Fork the keeper of a step on this node."""
        ours, theirs = socket.socketpair()
        process = os.fork()
        if not process:
            ours.close()
            group = "%s/%s" % (cgroup.node_name(self.place), specification["step"])
            told = dict(specification, job=self.place["job"], group=group, **self._for_all_steps())
            keeper.run(told, messages.Channel(theirs))
            os._exit(1)
        theirs.close()
        made = self.keepers[process] = Keeper(process, str(specification["step"]), ours)
        return made

    def _for_all_steps(self) -> Dict[str, Any]:
        """What the job and the site say of every step: how often usage is sampled, and whether a step goes whole when one of
        its tasks finds no memory (--oom-kill-step, else OOMKillStep of TaskPluginParam)."""
        kill = self.job["request"].get("oom_kill_step")
        if kill is None:
            kill = "oomkillstep" in str(self.job.get("parameters", {}).get("TaskPluginParam", "")).lower()
        return {"sample_seconds": self.job.get("sample_seconds"), "oom_kill_step": bool(kill)}

    async def _start_batch(self) -> None:
        job = self.job
        identity = processes.Identity(job["uid"], job["gid"], job["groups"])
        script = os.path.join(self.directory, SCRIPT)
        _write(script, job["script"].encode("utf-8", "surrogateescape"), 0o700, identity)
        default = output.DEFAULT_OF_ARRAY if job["array"] else output.DEFAULT
        append = output.appends(job["request"])

        def path(pattern: str) -> str:
            return os.path.join(job["directory"], output.fill(pattern, output.pattern_values(job, "batch", self.name, 0, 0)))

        out = path(job["output"] or default)
        error: Any = "stdout"
        if job["error"] and path(job["error"]) != out:
            error = {"path": path(job["error"]), "append": append}
        task = {
            "rank": 0,
            "local": 0,
            "argv": [script, *job["arguments"]],
            "environment": {},
            "stdin": path(job["input"]) if job["input"] else None,
            "stdout": {"path": out, "append": append},
            "stderr": error,
        }
        share = job["nodes"][0]
        specification = {
            "step": "batch",
            "memory_limit": share["memory"] * 1048576 if job.get("constrain_memory") else 0,
            "limits": job.get("limits"),
            "propagate_priority": job.get("parameters", {}).get("PropagatePrioProcess"),
            "resident_limit": share["memory"] * 1048576,
            "node": self.name,
            "uid": job["uid"],
            "gid": job["gid"],
            "groups": job["groups"],
            "directory": job["directory"],
            "umask": job["umask"],
            "environment": environment.batch_environment(job),
            "tasks": [task],
            **{name: [job[name], ""] for name in ("task_prolog", "task_epilog") if job.get(name)},
        }
        self._batch_step = {
            "step": "batch",
            "name": "batch",
            "state": "RUNNING",
            "start_time": int(time.time()),
            "nodes": [self.name],
            "tasks": 1,
            "cpus": share["cpus"],
            "memory": share["memory"],
            "input": task["stdin"] or "/dev/null",
            "output": out,
            "error": out if error == "stdout" else error["path"],
        }
        self._batch = self.fork_keeper(specification)
        await self._batch.open()
        self.spawn(self._listen_to_batch(self._batch))

    async def _listen_to_batch(self, batch: Keeper) -> None:
        measured: List[Mapping[str, Any]] = []
        try:
            while True:
                message = await messages.read_message(batch.reader)
                kind = message.get("kind")
                if kind == "running":
                    self.reports.add("started", step=self._batch_step, begun=self.job["start_time"])
                elif kind == "exit":
                    self.batch_status = int(message["status"])
                elif kind == "failed":
                    self.reports.add("started", step=self._batch_step, begun=self.job["start_time"])
                    self.batch_status = CANNOT_OPEN
                elif kind == "done":
                    measured = message["usage"]
        except (asyncio.IncompleteReadError, OSError, wire.WireError, ValueError):
            pass
        finally:
            if batch.writer is not None:
                batch.writer.close()
        self._batch = None
        self._batch_over(signal.SIGKILL if self.batch_status is None else self.batch_status, usage.total(measured))

    def _batch_over(self, status: int, measured: Mapping[str, Any]) -> None:
        self._over = True
        state = texts.state(status)
        out_of_memory = status == texts.OUT_OF_MEMORY
        if out_of_memory:
            state = "OUT_OF_MEMORY"
        step = dict(self._batch_step, state=state, end_time=int(time.time()), exit_code=status, usage=measured)
        self.reports.add(
            "batch_ended", exit_code=status, usage=measured, timed_out=self.timed_out, out_of_memory=out_of_memory, step=step
        )

    def allocation_returned(self, status: int) -> int:
        """The srun or salloc that the allocation was made for is over; the number of the report that says so, 0 for none."""
        if self._over:
            return 0
        self._over = True
        return self.reports.add("batch_ended", exit_code=status, timed_out=self.timed_out)

    # ---------------------------------------------------------------- time and signals

    def _set_limit(self, end_time: Optional[int]) -> None:
        """Note when the job must end, and when it is warned of that."""
        for handle in (self._limit, self._warning):
            if handle is not None:
                handle.cancel()
        self._end_time = end_time
        if end_time is None or not self.job:
            return
        loop = asyncio.get_running_loop()
        left = end_time + self.job.get("over_time", 0) - time.time()
        self._limit = loop.call_later(max(0.0, min(left, 1e7)), self._check_limit)
        if self.job["signal"]:
            delay = 60 if self.job["signal_delay"] is None else self.job["signal_delay"]
            self._warning = loop.call_later(max(0.0, min(end_time - delay - time.time(), 1e7)), self._warn)

    def _check_limit(self) -> None:
        if self._end_time is None or self._over or self.terminating:
            return
        if time.time() < self._end_time + self.job.get("over_time", 0):
            self._set_limit(self._end_time)
            return
        self.timed_out = True
        kill_wait = float(self.job["kill_wait"])
        if self.manager is not None:
            self.manager.end_all(texts.TIME_LIMIT, kill_wait, signal.SIGTERM)
        if self._batch is not None:
            text = texts.cancelled("JOB %d" % self.job["job"], self.name, texts.TIME_LIMIT)
            self._batch.tell({"kind": "kill", "kill_wait": kill_wait, "text": text.decode("utf-8", "surrogateescape")})
        elif not self.job["batch"] and self.manager is not None:
            self.manager.revoke(timed_out=True)
            if not (self.manager.owned and self.manager.steps):
                self.allocation_returned(0)

    def _warn(self) -> None:
        """``--signal``: with B the batch shell alone, else the steps alone."""
        batch = "B" in self.job["signal_flags"]
        self.signal(int(self.job["signal"]), None, SIGNAL_BATCH if batch else 0)

    def signal(self, number: int, step: Optional[int], flags: int) -> None:
        """Deliver a signal as scancel(1) says."""
        batch_step = 0xFFFFFFFB
        if step == batch_step or (step is None and flags & SIGNAL_BATCH):
            self._signal_batch(number, whole=bool(flags & SIGNAL_FULL))
            return
        if self.manager is not None:
            self.manager.signal(number, step, cancel=bool(flags & SIGNAL_CANCEL))
        if step is None and flags & SIGNAL_FULL:
            self._signal_batch(number, whole=True)

    def _signal_batch(self, number: int, *, whole: bool) -> None:
        """To the batch shell; what ends it is told in its output."""
        if self._batch is None:
            return
        if number in (signal.SIGTERM, signal.SIGKILL):
            text = texts.cancelled("JOB %d" % self.place["job"], self.name, texts.by_signal(number))
            self._batch.tell({"kind": "say", "text": text.decode("utf-8", "surrogateescape")})
        self._batch.tell({"kind": "signal", "signal": number, "whole": whole})

    def terminate(self, kill_wait: float, cause: str = "") -> None:
        """End everything here; the released report follows when it is gone."""
        self.terminating = True
        at_once = cause in texts.AT_ONCE
        why = "" if at_once else texts.CAUSES.get(cause) or texts.by_signal(signal.SIGTERM)
        number = signal.SIGKILL if at_once else signal.SIGTERM
        if self.manager is not None:
            if not self._over:
                self.manager.revoke(timed_out=self.timed_out)
            self.manager.end_all(why, kill_wait, number)
        for each in self.keepers.values():
            order: Message = {"kind": "kill", "signal": number, "kill_wait": kill_wait}
            if why and each is self._batch and not self._over and not self.timed_out:
                text = texts.cancelled("JOB %d" % self.place["job"], self.name, why)
                order["text"] = text.decode()
            each.tell(order)
        self._check_released()

    def _check_released(self) -> None:
        preparing = self._prologed is not None and not self._prologed.done()
        if self._released or self._cleaning or preparing or self.keepers or not self.terminating:
            return
        if self.manager is not None:
            self.manager.close()
        if site_programs.has(self.job, "epilog"):
            self._cleaning = True
            self.spawn(self._run_epilog())
        else:
            self._released = self.reports.add("released")

    # ---------------------------------------------------------------- processes and peers

    def _reap(self) -> None:
        """Keepers that ended, and processes whose keeper was killed: those have nobody, so they end too."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not process:
                break
            program = self._programs.pop(process, None)
            if program is not None and not program.done():
                program.set_result(status)
            gone = self.keepers.pop(process, None)
            if gone is not None:
                cgroup.Group("%s/%s" % (cgroup.node_name(self.place), gone.step)).kill()
            if gone is not None and self.index and gone.writer is not None:
                gone.writer.close()  # on the first node, what it said last is still to be read
        ours = {*self.keepers, *self._programs}
        strays = [child for child in processes.children(os.getpid()) or [] if child not in ours]
        for child in strays:
            if processes.session_of(child) in self._sessions:
                continue
            processes.send_signal([child, *processes.descendants(child)], signal.SIGKILL)
        if self._released == -1 and not self.keepers:
            self._finished.set()
        self._check_released_soon()

    def _check_released_soon(self) -> None:
        """After what the keepers said last was read."""
        if self.terminating:
            asyncio.get_running_loop().call_soon(self._check_batch_read)

    def _check_batch_read(self) -> None:
        if self._batch is None:
            self._check_released()
        else:
            asyncio.get_running_loop().call_later(0.02, self._check_batch_read)

    def _follow(self, address: str) -> None:
        """Be a peer of the step manager there."""
        if self._peer is not None:
            self._peer.cancel()
        self._peer = self.spawn(self._be_peer(address))

    async def _host(self, order: Message, writer: asyncio.StreamWriter) -> None:
        """Have tasks of a step here, whose manager is told when there can be none."""
        if not await self.prepared():
            writer.write(messages.pack({"kind": "prolog_failed", "step": order["step"]}))
        elif not self.terminating:
            await self.fork_keeper(order).open()

    async def _be_peer(self, address: str) -> None:
        if site_programs.flagged(self.job, "alloc") and not await self.prepared():
            return
        while True:
            with contextlib.suppress(*LOST):
                await self._serve_manager(address)
            await asyncio.sleep(0.2)

    async def _serve_manager(self, address: str) -> None:
        reader, writer = await messages.call(address, "stepd", {"kind": "peer", "node": self.name}, self.place["secret"])
        try:
            while True:
                message = await messages.read_message(reader)
                if message.get("kind") == "write":
                    answer = questions.answer(self, questions.of_file(message))
                    writer.write(messages.pack(dict(answer, kind="written", id=message["id"])))
                elif message.get("kind") == "keeper":
                    order = dict(message["specification"], manager=address, secret=self.place["secret"])
                    order.update({name: self.job[name] for name in ("uid", "gid", "groups")})
                    self.spawn(self._host(order, writer))
        finally:
            writer.close()


def _nothing() -> None:
    """Signals that are meant for others: stepd ends when its job does."""


def _write(path: str, content: bytes, mode: int, identity: Optional[processes.Identity] = None) -> None:
    """Write a file that its owner alone can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        os.fchmod(descriptor, mode)
        if identity is not None and os.geteuid() == 0:
            os.fchown(descriptor, identity.user_id, identity.group_id)
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def claim(directory: str) -> Optional[int]:
    """Become the one stepd of that directory: the descriptor of the locked marker, None when there was one before.

    The marker appears with its lock on, so whoever finds it unlocked knows that its stepd is dead.
    """
    temporary = os.path.join(directory, ".%s.%d" % (MARKER, os.getpid()))
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, b"%d %d\n" % (os.getpid(), processes.start_time(os.getpid())))
        os.link(temporary, os.path.join(directory, MARKER))
    except FileExistsError:
        os.close(descriptor)
        return None
    finally:
        os.unlink(temporary)
    return descriptor


async def _be(place: Mapping[str, Any]) -> None:
    """Made here and not before, because old events belong to the loop that they were made in."""
    await Node(place).run()


def live(place: Mapping[str, Any]) -> int:
    """The whole life of a stepd in a process of its own; gives its exit code."""
    if claim(place["directory"]) is None:
        return 0
    os.chdir("/")
    processes.set_name("stepd %s/%s" % (place["job"], place["node"]))
    processes.adopt_orphans()
    groups = cgroup.Group(cgroup.node_name(place))
    cgroup.keep(os.path.join(place["directory"], cgroup.FILE), groups)
    try:
        asyncio.run(_be(place))
        cgroup.end(groups.directories)
    except BaseException:
        import traceback

        traceback.print_exc()
        return 1
    return 0


def main(arguments: List[str]) -> int:
    """``node FILE``: the place is a JSON object in that file."""
    if len(arguments) != 1:
        print("usage: stepd node FILE", file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        return live(json.load(file))
