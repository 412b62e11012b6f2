"""The controller put together: socket, engine, planner, launcher and store, and their start and end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from accounting.store import Store
from bridge.launcher import JobFiles, Launcher, Report
from grammar.errors import GrammarError
from slurmk.commands.call import Call, Output
from slurmk.commands.dispatch import dispatch
from slurmk.commands.statistics import Statistics
from slurmk.commands.submission import wants_login
from slurmk.core.crontabs import Crontabs, recurs
from slurmk.core.effects import Effect, ForgetJob, Launch, Mail, Refused, SaveJob, SaveStep, Terminate
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import (
    Caller,
    EndRecurrence,
    Event,
    JobSelection,
    Kill,
    KillFlag,
    NodeChanged,
    Planned,
    QuotasChanged,
    Reconfigure,
    SetDebug,
    SiteChanged,
    Submission,
    Submit,
    Tick,
    UpdateJob,
)
from slurmk.core.machine import Machine
from slurmk.core.priority import Directory
from slurmk.core.triggers import Triggers
from slurmk.daemon.committed import Committed
from slurmk.daemon.committer import Committer
from slurmk.daemon.connection import Doorkeeper, listen
from slurmk.daemon.crontabs import CrontabKeeper
from slurmk.daemon.engine import Answers, Engine, with_secret
from slurmk.daemon.identity import GroupIds, Identities, group_name, groups_of
from slurmk.daemon.launching import Launching
from slurmk.daemon.login import LoginEnvironments
from slurmk.daemon.logs import set_levels
from slurmk.daemon.mail import Mailer
from slurmk.daemon.members import Members
from slurmk.daemon.memory import collect_now_and_then
from slurmk.daemon.planning import Planning
from slurmk.daemon.returning import Returning
from slurmk.daemon.site_programs import SitePrograms
from slurmk.daemon.timers import Timers
from slurmk.daemon.triggers import TriggerKeeper
from slurmk.model.job import Job
from slurmk.model.node import Node
from slurmk.model.quotas import Quota
from slurmk.model.sharing import sharing
from slurmk.model.site import Site
from slurmk.model.states import JobFlag
from slurmk.planner.plan import will_run
from slurmk.planner.snapshot import Outlook, Plan, Snapshot
from slurmk.planner.why import Explanation, Question, explain

log = logging.getLogger(__name__)
request_log = logging.getLogger("slurmk.daemon.requests")
job_log = logging.getLogger("slurmk.daemon.jobs")
plan_log = logging.getLogger("slurmk.daemon.plans")

SOCKET = "slurmk.sock"

SPARE_FILES = 256
"""File descriptors that connections leave to everything else."""

GUARD_SECONDS = 1.0
"""How often the socket's file is looked for."""

EXPLAINED_WITHIN = 10.0
"""Seconds of planning after which ``slurmk why`` tells what it knows by then."""

SWITCH_SECONDS = 0.0002
"""How long the planner's thread may keep the event loop from running."""


class EmbeddedLauncher(Launcher, Protocol):
    """A launcher whose stepds dial the controller's own socket."""

    async def attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: str) -> None:
        """Take over the connection of a stepd."""
        ...

    def access(self, job: Job, secret: bytes) -> Mapping[str, str]:
        """Environment by which a process of the job's user finds the job's step manager."""
        ...


class QueueSystems(Protocol):
    """What holds jobs to quotas beside the nodes, and the objects that stand for accounts there."""

    def start(self, report: Report) -> None:
        """Tell ``report`` of quotas, now and whenever they change."""
        ...

    def changed(self) -> None:
        """The site or its nodes changed."""
        ...

    def directory(self) -> Directory:
        """The accounts and QOS that there are."""
        ...

    async def act(self, action: str, *, force: bool) -> tuple[str, int]:
        """Carry out ``slurmk queues``: the text and the exit code."""
        ...


class Daemon:
    """One controller and its cluster, with its state in ``directory``. Implements ``call.Controller``."""

    def __init__(
        self,
        directory: Path,
        site: Site,
        store: Store,
        launcher: EmbeddedLauncher,
        read_site: Callable[[], Site] | None = None,
        *,
        remote: socket.socket | None = None,
        surroundings: Callable[[], Sequence[str]] = tuple,
        queues: QueueSystems | None = None,
    ) -> None:
        """``remote`` is a bound TCP socket where stepds call that are elsewhere; ``surroundings`` are lines for
        ``slurmk status`` about what the jobs run on."""
        self.directory = directory
        self.socket_path = directory / SOCKET
        self.started = time.time()
        self.statistics = Statistics(self.started)
        self._site = site
        self._read_site = read_site or (lambda: site)
        self._store = store
        self.launcher = launcher
        self._remote = remote
        self._surroundings = surroundings
        self._queues = queues
        self._quotas: tuple[Quota, ...] = ()
        self._seen: dict[str, Node] = {}
        self.keeper = TriggerKeeper(directory / "state" / "triggers.json", lambda: self.machine, self.now)
        self._group_ids = GroupIds()
        self.logins = LoginEnvironments(elsewhere=remote is not None)
        self.mailer = Mailer(lambda: self.machine, self.now)
        self.crontab_keeper = CrontabKeeper(directory / "state" / "crontabs.json")
        self._waiting: dict[int, list[asyncio.Future[Job | None]]] = {}
        self._stopping = asyncio.Event()
        self._end_jobs = False

    async def run(self) -> None:
        """Serve until told to stop. Raises OSError or StoreError when it cannot begin."""
        await self._start()
        try:
            await self._stopping.wait()
        finally:
            await self._stop()

    # ---------------------------------------------------------------- call.Controller

    @property
    def machine(self) -> Machine:
        return self.engine.machine

    @property
    def store(self) -> Store:
        return self._store

    @property
    def triggers(self) -> Triggers:
        return self.keeper.triggers

    def save_triggers(self) -> None:
        self.keeper.save()

    @property
    def crontabs(self) -> Crontabs:
        return self.crontab_keeper.crontabs

    def save_crontabs(self) -> None:
        self.crontab_keeper.save()

    def now(self) -> float:
        return time.time()

    async def apply(self, event: Event, files: Sequence[JobFiles] = ()) -> Answers:
        if isinstance(event, Submit | UpdateJob):
            await self._know_groups()
        if isinstance(event, Submit):
            admitted = self._admit(event)
            if isinstance(admitted, Refused):
                return (admitted,)
            event, files = admitted, tuple(map(with_secret, files))
        answers = await self.engine.apply(event, files)
        if isinstance(event, SetDebug):
            set_levels(self.machine.site.parameters)
        return answers

    async def _know_groups(self) -> None:
        """Tell the machine the ids of the groups that partitions are open to (AllowGroups)."""
        names = frozenset(name for each in self.machine.partitions.values() for name in each.allow_groups or ())
        if names:
            groups = await self._group_ids.of(names)
            self.machine.users = replace(self.machine.users, groups=groups)

    def _admit(self, event: Submit) -> Submit | Refused:
        """The submission with its users' groups filled in. On this machine only root can start processes of other users, so a
        controller of anyone else takes only its own user's jobs; pods are started by others."""
        own = os.geteuid()
        elsewhere = self._remote is not None
        if own != 0 and not elsewhere and any(each.credentials.user_id != own for each in event.submissions):
            return Refused(SlurmError(Errno.USER_ID_MISSING))
        return replace(event, submissions=tuple(map(_with_groups, event.submissions)))

    async def job_changed(self, job_id: int) -> Job | None:
        future: asyncio.Future[Job | None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(job_id, [])
        waiting.append(future)
        try:
            return await future
        finally:
            with contextlib.suppress(ValueError):
                waiting.remove(future)
            if not waiting and self._waiting.get(job_id) is waiting:
                del self._waiting[job_id]

    async def plan_for(self, event: Submit) -> Outlook | Refused:
        await self._know_groups()
        admitted = self._admit(event)
        tried = admitted if isinstance(admitted, Refused) else self.machine.trial(admitted)
        return tried if isinstance(tried, Refused) else await self.planning.ask(will_run, *tried)

    async def explain(self, question: Question) -> Explanation:
        return await self.planning.ask(explain, question, within=EXPLAINED_WITHIN)

    def access(self, job: Job) -> Mapping[str, str]:
        return self.launcher.access(job, self.secret_of(job))

    def secret_of(self, job: Job) -> bytes:
        """The secret that the job was given when it was submitted."""
        return self._files_now(job).secret

    async def ask(self, job: Job, nodes: Sequence[str], question: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
        return await self.launcher.ask(job.job_id, job.restarts, nodes, question)

    async def reconfigure(self, caller: Caller) -> str:
        """Read the configuration again and go by it. Returns what stands against it (nothing has changed then), or ""."""
        try:
            site = await asyncio.to_thread(self._read_site)
        except GrammarError as error:
            return str(error)
        except OSError as error:
            return f"{error.filename}: {error.strerror}"
        if site.cluster_name != self._site.cluster_name:
            return f"ClusterName: {self._site.cluster_name} cannot become {site.cluster_name} while the controller runs"
        answers = await self.engine.apply(Reconfigure(self.now(), caller, site))
        for answer in answers:
            if isinstance(answer, Refused):
                return str(answer.error)
        self._site = self._store.site = site
        set_levels(site.parameters)
        self.identities.operators = frozenset(site.operators)
        self._seen = {}
        for node in self.launcher.reconfigure(site):
            self._report(NodeChanged(self.now(), node))
        if self._queues is not None:
            self.machine.users = self._queues.directory()
            self._queues.changed()
        self.triggers.tell("reconfig")
        for text in site.warnings:
            log.warning("%s", text)
        log.info("the configuration was read again: %d nodes", len(site.nodes))
        return ""

    def surroundings(self) -> Sequence[str]:
        return self._surroundings()

    async def queues(self, action: str, *, force: bool) -> tuple[str, int]:
        if self._queues is None:
            return "slurmk: error: this cluster is not on Kubernetes, so it has no queues\n", 2
        return await self._queues.act(action, force=force)

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set() and not self._end_jobs

    def came_back(self, job_id: int) -> None:
        self.returning.came_back(job_id)

    def shutdown(self, *, end_jobs: bool) -> None:
        self._end_jobs = self._end_jobs or end_jobs
        self._stopping.set()

    # ---------------------------------------------------------------- start and end

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.shutdown_by_signal)
        sys.setswitchinterval(SWITCH_SECONDS)
        set_levels(self._site.parameters)
        most = _raise_file_limit() - SPARE_FILES
        recovered = self._store.load()
        next_job_id = recovered.next_job_id or self._site.first_job_id
        committed = Committed(
            recovered.jobs,
            recovered.nodes,
            recovered.partitions,
            next_job_id,
            recovered.reservations,
            recovered.last_reservation,
            recovered.longest_wait,
        )
        self.timers = Timers(loop, lambda: self.engine.report(Tick(self.now())))
        self.planning = Planning(self._snapshot, self._take_plan)
        self.planning.timed = self._planned
        self.launching = Launching(
            self.launcher,
            self._files,
            lambda event: self.engine.report(event),
            self.now,
            SitePrograms(lambda: self.machine, self.now),
        )
        self.committer = Committer(self._store, loop)
        self.engine = Engine(
            self._build,
            committed,
            self.committer,
            self.now,
            self._perform,
            self.planning.wake,
            self.timers.wake_at,
            self._changed,
        )
        self.identities = Identities(self._site.operators)
        self.doorkeeper = Doorkeeper(
            self._answer, self.identities.look_up, self.launcher.attach, most, Members(self, self.identities).find
        )
        listening = listen(self.socket_path)
        self.returning = Returning(recovered.jobs, self._end_unattended)
        self.engine.start()
        self._drop_strays()
        await self._take_up_jobs()  # before the first stepd comes back: one that is not known ends its job
        self.server = await loop.create_unix_server(self.doorkeeper.connection, sock=listening, backlog=1024)
        if self._remote is not None:
            self.remote_server = await loop.create_server(self.doorkeeper.remote, sock=self._remote, backlog=1024)
        self.returning.start()
        self._guarding = loop.create_task(self._guard_socket())
        self.triggers.tell("primary_slurmctld_resumed_operation")
        self._watching = loop.create_task(self.keeper.watch())
        self._collecting = loop.create_task(collect_now_and_then())
        self.timers.start()
        self.planning.start()
        self.planning.wake()
        for text in self._site.warnings:
            log.warning("%s", text)
        log.info("serving %s: %d nodes, %d jobs", self.socket_path, len(self.machine.nodes), len(self.machine.jobs))

    async def _take_up_jobs(self) -> None:
        """Learn of the nodes, take up what still runs, finish what a crash left undone."""
        for node in await self.launcher.start(self._report):
            self._report(NodeChanged(self.now(), node))
        if self._queues is not None:
            self._queues.start(self._report)
        holding = self.machine.holding()
        never_launched = await self.launcher.recover(holding)
        for job in holding:
            if (job.job_id, job.restarts) in never_launched and not job.flags & JobFlag.COMPLETING:
                self.launching.perform(Launch(job))
            elif job.flags & JobFlag.COMPLETING and job.allocation is not None:
                self.launching.perform(Terminate(job.job_id, job.restarts, self._site.kill_wait, job.allocation.nodes, job=job))

    def _drop_strays(self) -> None:
        """Jobs of a table that was being put in place, or taken away, when an earlier controller ended are in none."""
        if self.crontab_keeper.lost:
            return
        kept = self.crontabs.job_ids()
        strays = tuple(job.job_id for job in self.machine.jobs.values() if recurs(job) and job.job_id not in kept)
        if strays:
            self.engine.report(EndRecurrence(self.now(), Caller(0, "root", True), strays))

    def _end_unattended(self, job_ids: tuple[int, ...]) -> bool:
        if self.engine.fault:
            return False
        self.engine.apply(Kill(self.now(), Caller(0, "root", True), tuple(map(JobSelection, job_ids))))
        return True

    async def _guard_socket(self) -> None:
        """Listen at a new socket when somebody removed the file of the old one."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(GUARD_SECONDS)
            if self.socket_path.exists():
                continue
            with contextlib.suppress(OSError):
                listening = listen(self.socket_path)
                log.warning("%s was removed; listening there again", self.socket_path)
                self.server.close()
                self.server = await loop.create_unix_server(self.doorkeeper.connection, sock=listening, backlog=1024)

    async def _stop(self) -> None:
        log.info("stopping%s", " and ending all jobs" if self._end_jobs else "; jobs go on")
        await self.planning.stop()
        if self._end_jobs:
            await self._cancel_all()  # while stepds that are away can still call
        self.returning.stop()
        self._guarding.cancel()
        self._watching.cancel()
        self._collecting.cancel()
        self.server.close()
        if self._remote is not None:
            self.remote_server.close()
        self.timers.stop()
        await self.doorkeeper.close(for_good=self._end_jobs)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.engine.settled(), 10)
        await self.engine.stop()
        await self.launcher.stop(end_jobs=self._end_jobs)
        await self.doorkeeper.let_stepds_go()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.engine.settled(), 5)
        await self.committer.stop()
        await self.mailer.stop()
        with contextlib.suppress(FileNotFoundError):
            self.socket_path.unlink()
        log.info("stopped")

    async def _cancel_all(self) -> None:
        """Cancel what runs, and wait until it is gone, but not longer than KillWait allows."""
        root = Caller(0, "root", True)
        running = tuple(JobSelection(job.job_id) for job in self.machine.holding())
        if running:
            await self.engine.apply(Kill(self.now(), root, running, flags=KillFlag.CRON))
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(self._site.kill_wait + 5):
                while holding := self.machine.holding():
                    await self.job_changed(holding[0].job_id)

    def shutdown_by_signal(self) -> None:
        self.shutdown(end_jobs=False)

    # ---------------------------------------------------------------- wiring

    def _report(self, event: Event) -> asyncio.Future[Answers]:
        """What the launcher saw. What it would not tell again of the nodes is kept for a machine that is built anew."""
        match event:
            case NodeChanged(node=node, removed=removed):
                before = self._seen.get(node.name)
                self._seen[node.name] = node
                if removed:
                    del self._seen[node.name]
                if (
                    removed
                    or before is None
                    or (before.cpus, before.memory, before.gres) != (node.cpus, node.memory, node.gres)
                ):
                    self._tell_queues()
            case SiteChanged(site=site):
                self._site = self._store.site = site
                self._seen = {node.name: self._seen.get(node.name, node) for node in site.nodes}
                self._tell_queues()
            case QuotasChanged(quotas=quotas):
                self._quotas = quotas
            case _:
                pass
        return self.engine.report(event)

    def _tell_queues(self) -> None:
        if self._queues is not None:
            self._queues.changed()

    def _build(self, committed: Committed) -> tuple[Machine, list[Effect]]:
        machine = Machine(self._site, users=self._queues.directory() if self._queues is not None else None)
        effects = machine.restore(
            committed.jobs.values(),
            committed.nodes.values(),
            committed.partitions.values(),
            committed.next_job_id,
            committed.reservations.values(),
            committed.last_reservation,
            committed.longest_wait,
        )
        for node in self._seen.values():
            effects += machine.handle(NodeChanged(self.now(), node))
        effects += machine.handle(QuotasChanged(self.now(), self._quotas))
        return machine, effects

    def _snapshot(self) -> Snapshot | None:
        """What to plan with; None when nothing shall start now."""
        if self.engine.fault or self._stopping.is_set():
            return None
        return self.machine.snapshot(self.now())

    def _take_plan(self, made: Plan) -> None:
        if self._stopping.is_set():
            return
        self.engine.report(Planned(self.now(), made))

    async def _answer(self, call: Call, output: Output) -> int:
        request_log.debug("%s of %s: %s", call.command, call.caller.user_name, " ".join(call.arguments))
        return await dispatch(call, self, output)

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Mail):
            self.mailer.send(effect)
            return
        if isinstance(effect, Launch):
            self.statistics.launched()
        self.launching.perform(effect)

    def _planned(self, seconds: float, length: int, full: bool) -> None:
        plan_log.debug("%d jobs were planned in %.3f s%s", length, seconds, "" if full else ", those that changed")
        self.statistics.planned(self.now(), seconds, length, full=full)

    def _changed(self, effect: Effect) -> None:
        match effect:
            case SaveJob(job=job, new=new):
                self.statistics.saved(job, new=new)
                job_log.debug("job %d is %s", job.job_id, job.state.name)
                self._tell(job.job_id, self.machine.jobs.get(job.job_id, job))
            case SaveStep(step=step):
                self._tell(step.job_id, self.machine.jobs.get(step.job_id))
            case ForgetJob(job_id=job_id):
                self.statistics.forgotten(job_id)
                self._tell(job_id, None)
            case _:
                pass

    def _tell(self, job_id: int, job: Job | None) -> None:
        for future in self._waiting.pop(job_id, ()):
            if not future.done():
                future.set_result(job)

    async def _files(self, job: Job) -> JobFiles:
        """The script and environment of a job; those of an array's elements are the array's. Raises LoginError."""
        key = job.array_job_id or job.job_id
        files = self.engine.recent_files.get(key)
        if files is None:
            files = await asyncio.to_thread(self._store.files, key)
        partition = self.machine.partitions.get(job.allocation.partition if job.allocation else job.partition)
        files = replace(files, sharing=sharing(job.request.shared, partition))
        if job.het_components:
            jobs = self.machine.jobs
            files = replace(files, components=tuple(jobs[member] for member in job.het_components if member in jobs))
        if not job.batch or not wants_login(job.request):
            return files
        return replace(files, environment={**await self.logins.of(job.credentials), **files.environment})

    def _files_now(self, job: Job) -> JobFiles:
        key = job.array_job_id or job.job_id
        return self.engine.recent_files.get(key) or self._store.files(key)


def _raise_file_limit() -> int:
    """Allow as many open files as the system lets us; gives their number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def _with_groups(submission: Submission) -> Submission:
    """The submission with the user's groups, where the command did not name them."""
    credentials = submission.credentials
    if credentials.groups:
        return submission
    filled = replace(
        credentials,
        groups=groups_of(credentials.user_name, credentials.group_id),
        group_name=credentials.group_name or group_name(credentials.group_id),
    )
    return replace(submission, credentials=filled)
