"""Events in, effects out, and nothing of an effect before it is on disk.

``Engine.apply`` hands an event to the machine at once and queues its effects. Whatever has been queued while one commit
was on its way to the disk is the next commit, so many submissions share one. When it is there, each event's effects are
released in the order of the events: answers go to who asked, launches to the launcher.

When a commit fails, what it held must not stay in memory, or a job that its user was told is not accepted would run. So
memory goes back to what the store has. Everyone who waits for an answer is refused, and so is every later request,
until the store takes writes again, which is tried with growing pauses. What the launcher reported meanwhile happened
anyway: those events are kept in order, handled again and committed one by one. A report that alone cannot be saved
while other writes succeed is dropped with an error in the log, so that it cannot stop the controller for ever.

The same road back is taken when the machine itself fails in the middle of an event.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bridge.launcher import JobFiles
from slurmk.core.effects import Accepted, Effect, Refused, SaveCounter, WakeAt, WakePlanner
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import Event, Planned, Submit, Tick
from slurmk.core.machine import Machine
from slurmk.daemon.committed import SAVES, Committed
from slurmk.daemon.committer import Committer

log = logging.getLogger(__name__)

Answers = tuple[Accepted | Refused, ...]

MACHINE_FAILED = "internal error"
"""The fault while memory is made anew from the store after an event that the machine could not handle: that one is refused, and
those behind it wait the moment that this takes."""

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 5.0
"""Seconds between attempts to write to a store that failed."""

FILES_KEPT = 64 * 1024 * 1024
"""Bytes of scripts and environments of recent submissions that are kept in memory for their launch."""


@dataclass(slots=True)
class Entry:
    """An event that was handled, and what waits for its commit."""

    event: Event | None  # None: what restoring asked for
    saves: list[Effect]
    after: list[Effect]
    answers: Answers
    files: dict[int, JobFiles]
    future: asyncio.Future[Answers] | None


class Engine:
    """Owns the machine. ``perform`` carries out an effect after its commit; ``wake_planner`` and ``wake_at`` come at once;
    ``changed`` is told of every job whose change is on disk, and of those forgotten."""

    def __init__(
        self,
        build: Callable[[Committed], tuple[Machine, list[Effect]]],
        committed: Committed,
        committer: Committer,
        now: Callable[[], float],
        perform: Callable[[Effect], None],
        wake_planner: Callable[[], None],
        wake_at: Callable[[float], None],
        changed: Callable[[Effect], None],
    ) -> None:
        self._build = build
        self._committed = committed
        self._committer = committer
        self._now = now
        self._perform = perform
        self._wake_planner = wake_planner
        self._wake_at = wake_at
        self._changed = changed
        self._queued: list[Entry] = []
        self._committing = False
        self._scheduled = False
        self._fault = ""
        self._reports: deque[tuple[Event, asyncio.Future[Answers]]] = deque()
        self._behind: list[tuple[Event, Sequence[JobFiles], asyncio.Future[Answers]]] = []  # came after one that failed
        self._recovery: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self.recent_files = RecentFiles(FILES_KEPT)
        self.machine, effects = build(committed)
        self._restored = effects

    def start(self) -> None:
        """Carry out what restoring the saved state asks for."""
        effects, self._restored = self._restored, []
        self._wake(effects)
        saves, after = _parted(effects)
        if saves or after:
            self._queue(Entry(None, saves, after, (), {}, None))

    @property
    def fault(self) -> str:
        """Why requests are refused now; empty when all is well."""
        return self._fault

    def apply(self, event: Event, files: Sequence[JobFiles] = ()) -> asyncio.Future[Answers]:
        """Handle an event; the future has its answers once what it changed is on disk."""
        future: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        self._take(event, files, future)
        return future

    def _take(self, event: Event, files: Sequence[JobFiles], future: asyncio.Future[Answers]) -> None:
        if self._fault == MACHINE_FAILED and not _is_report(event):
            self._behind.append((event, files, future))
            return
        entry = None if self._fault else self._handle(event, files, future)
        if entry is None:
            self._put_off(event, future)
        else:
            self._queue(entry)

    def report(self, event: Event) -> asyncio.Future[Answers]:
        """Handle what the launcher saw, a plan, or the time. The future is done when nobody needs to tell it again: what it
        changed is on disk, however long that takes."""
        return self.apply(event)

    async def settled(self) -> None:
        """Wait until everything handled so far is on disk and released, or given up."""
        await self._idle.wait()

    async def stop(self) -> None:
        """Give up waiting for a store that does not recover."""
        if self._recovery is not None:
            self._recovery.cancel()
            await asyncio.gather(self._recovery, return_exceptions=True)

    # ---------------------------------------------------------------- the ordinary way

    def _handle(self, event: Event, files: Sequence[JobFiles], future: asyncio.Future[Answers]) -> Entry | None:
        """Let the machine handle the event; None when it failed and memory can no longer be trusted."""
        try:
            effects = self.machine.handle(event)
        except Exception:
            log.exception("the state machine failed on %s; going back to the saved state", type(event).__name__)
            self._fault = MACHINE_FAILED
            if not self._committing and not self._queued:
                self._go_back()
            return None
        self._wake(effects)
        saves, after = _parted(effects)
        answers = tuple(effect for effect in effects if isinstance(effect, (Accepted, Refused)))
        return Entry(event, saves, after, answers, _files_of(answers, files), future)

    def _wake(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, WakePlanner):
                self._wake_planner()
            elif isinstance(effect, WakeAt):
                self._wake_at(effect.time)

    def _queue(self, entry: Entry) -> None:
        self._queued.append(entry)
        self._idle.clear()
        self._schedule()

    def _schedule(self) -> None:
        """Start the next commit at the end of this round of the loop, so that all events of the round share it."""
        if not self._scheduled and not self._committing:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._start_commit)

    def _start_commit(self) -> None:
        self._scheduled = False
        if self._committing or not self._queued:
            return
        batch, self._queued = self._queued, []
        saves = [save for entry in batch for save in entry.saves]
        files = {job_id: each for entry in batch for job_id, each in entry.files.items()}
        if not saves:
            self._release(batch)
            self._next()
            return
        self._committing = True
        done = self._committer.commit(saves, files)
        done.add_done_callback(lambda done: self._finish_commit(batch, done))

    def _finish_commit(self, batch: list[Entry], done: asyncio.Future[None]) -> None:
        self._committing = False
        if done.cancelled():
            return
        fault = done.exception()
        if fault is not None:
            self._fail(batch, fault)
            return
        self._release(batch)
        self._next()

    def _next(self) -> None:
        if self._queued:
            self._schedule()
        elif self._fault:
            self._go_back()
        else:
            self._idle.set()

    def _release(self, batch: list[Entry]) -> None:
        for entry in batch:
            self._committed.follow(entry.saves)
            self.recent_files.add(entry.files)
            if entry.future is not None and not entry.future.done():
                entry.future.set_result(entry.answers)
            for save in entry.saves:
                self._changed(save)
            for effect in entry.after:
                self._perform(effect)

    # ---------------------------------------------------------------- the way back

    def _fail(self, batch: list[Entry], fault: BaseException) -> None:
        """A commit failed: refuse who waits, keep what the launcher reported, and go back to what the store has."""
        log.error("the store refused a commit: %s; requests are refused until it recovers", fault)
        self._fault = str(fault) or type(fault).__name__
        self._refuse_behind()
        batch, self._queued = batch + self._queued, []
        reports = []
        for entry in batch:
            if entry.event is None or entry.future is None:
                continue
            if _is_report(entry.event):
                reports.append((entry.event, entry.future))
            else:
                self._refuse(entry.event, entry.future)
        self._reports.extendleft(reversed(reports))
        self._go_back()

    def _put_off(self, event: Event, future: asyncio.Future[Answers]) -> None:
        if _is_report(event):
            self._reports.append((event, future))
        else:
            self._refuse(event, future)

    def _refuse_behind(self) -> None:
        behind, self._behind = self._behind, []
        for event, _, future in behind:
            self._refuse(event, future)

    def _refuse(self, event: Event, future: asyncio.Future[Answers]) -> None:
        if not future.done():
            errno = Errno.WRITING_TO_FILE if isinstance(event, Submit) else Errno.INTERNAL
            future.set_result((Refused(SlurmError(errno)),))

    def _go_back(self) -> None:
        self._rebuild()
        self._idle.set()
        if self._recovery is None or self._recovery.done():
            self._recovery = asyncio.get_running_loop().create_task(self._recover())

    def _rebuild(self) -> None:
        self.machine, effects = self._build(self._committed)
        self._wake(effects)

    async def _recover(self) -> None:
        pause = FIRST_PAUSE
        while not await self._catch_up():
            self._fault = "the store refuses commits"
            self._refuse_behind()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        self._fault = ""
        log.warning("the store takes writes again; requests are served")
        self.report(Tick(self._now()))
        self._wake_planner()
        asyncio.get_running_loop().call_soon(self._take_behind)

    def _take_behind(self) -> None:
        behind, self._behind = self._behind, []
        for event, files, future in behind:
            self._take(event, files, future)

    async def _catch_up(self) -> bool:
        """Handle and save what was reported meanwhile; False when the store still refuses."""
        if not await self._store_works():
            return False
        while self._reports:
            event, future = self._reports[0]
            if not await self._save_alone(event):
                self._rebuild()
                if not await self._store_works():
                    return False
                log.error("dropped, because it cannot be saved: %r", event)
            self._reports.popleft()
            if not future.done():
                future.set_result(())
        return True

    async def _store_works(self) -> bool:
        try:
            await self._committer.commit([SaveCounter(self._committed.next_job_id)], {})
        except Exception:
            return False
        return True

    async def _save_alone(self, event: Event) -> bool:
        entry = self._try(event)
        if entry is None:
            return False
        try:
            if entry.saves:
                await self._committer.commit(entry.saves, {})
        except Exception:
            log.exception("the store refused %s", type(event).__name__)
            return False
        self._release([entry])
        return True

    def _try(self, event: Event) -> Entry | None:
        try:
            effects = self.machine.handle(event)
        except Exception:
            log.exception("the state machine failed on %s", type(event).__name__)
            return None
        self._wake(effects)
        return Entry(event, *_parted(effects), (), {}, None)


class RecentFiles:
    """Scripts and environments of the latest submissions, so that most launches need not read the store."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._files: dict[int, JobFiles] = {}

    def add(self, files: dict[int, JobFiles]) -> None:
        for job_id, each in files.items():
            self._files[job_id] = each
            self._size += _size(each)
        while self._size > self._limit:
            self._size -= _size(self._files.pop(next(iter(self._files))))

    def get(self, job_id: int) -> JobFiles | None:
        return self._files.get(job_id)


def with_secret(files: JobFiles) -> JobFiles:
    """The files with a secret of their own, unless they have one."""
    return files if files.secret else replace(files, secret=secrets.token_bytes(16))


def _parted(effects: Sequence[Effect]) -> tuple[list[Effect], list[Effect]]:
    """What the store carries out, and what is done after that."""
    saves: list[Effect] = [effect for effect in effects if isinstance(effect, SAVES)]
    others = (*SAVES, WakePlanner, WakeAt, Accepted, Refused)
    return saves, [effect for effect in effects if not isinstance(effect, others)]


def _size(files: JobFiles) -> int:
    return len(files.script) + sum(len(name) + len(value) + 100 for name, value in files.environment.items()) + 500


def _files_of(answers: Sequence[Accepted | Refused], files: Sequence[JobFiles]) -> dict[int, JobFiles]:
    if not files:
        return {}
    job_ids = [job_id for answer in answers if isinstance(answer, Accepted) for job_id in answer.job_ids]
    return dict(zip(job_ids, files, strict=False))


def _is_report(event: Event) -> bool:
    """True for what happened in the world and is told once. Plans are made again and time goes on by itself."""
    return not isinstance(event, Planned | Tick) and not hasattr(event, "caller")
