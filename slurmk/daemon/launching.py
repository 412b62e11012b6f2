"""Carries out what the machine wants of the launcher: in order for each job, side by side for different jobs, and only so
many launches at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine

from bridge.description import ending
from bridge.launcher import JobFiles, Launcher, Report
from slurmk.core.effects import CordonNode, Effect, Launch, RunEpilog, Shrink, Signal, Terminate, UpdateLimit
from slurmk.core.events import EpilogEnded, LaunchFailed, PrologFailed
from slurmk.daemon.site_programs import SitePrograms
from slurmk.model.job import Job

log = logging.getLogger(__name__)

AT_ONCE = 32
"""Jobs that are being brought up at the same time."""


class Launching:
    """``files`` finds what a job's processes start from; ``report`` is told when that or the launcher fails. ``programs`` are
    those that the site runs before and after."""

    def __init__(
        self,
        launcher: Launcher,
        files: Callable[[Job], Awaitable[JobFiles]],
        report: Report,
        now: Callable[[], float],
        programs: SitePrograms,
    ) -> None:
        self._launcher = launcher
        self._programs = programs
        self._files = files
        self._report = report
        self._now = now
        self._room = asyncio.Semaphore(AT_ONCE)
        self._last: dict[int, asyncio.Task[None]] = {}
        self._epilogs: set[asyncio.Task[None]] = set()

    def perform(self, effect: Effect) -> None:
        """Carry out one effect, after those of the same job that came before."""
        match effect:
            case Launch(job=job):
                self._enqueue(job.job_id, self._launch(job))
            case Signal():
                self._enqueue(
                    effect.job_id,
                    self._launcher.signal(effect.job_id, effect.restart, effect.signal, effect.step_id, effect.flags),
                )
            case Terminate():
                self._programs.cut_off(effect.job_id)
                self._enqueue(effect.job_id, self._terminate(effect))
            case RunEpilog(job=job):
                self._beside(self._run_epilog(job))
            case Shrink():
                self._enqueue(effect.job_id, self._launcher.shrink(effect.job_id, effect.restart, effect.nodes, effect.lost))
            case UpdateLimit():
                self._enqueue(effect.job_id, self._launcher.update_limit(effect.job_id, effect.restart, effect.end_time))
            case CordonNode():
                self._enqueue(0, self._launcher.cordon(effect.node, effect.cordoned, effect.reason))
            case _:
                log.error("nobody carries out %s", type(effect).__name__)

    async def finish(self) -> None:
        """Wait for all that was begun."""
        while self._last:
            await asyncio.gather(*self._last.values(), return_exceptions=True)

    def _enqueue(self, job_id: int, work: Awaitable[None]) -> None:
        task = asyncio.get_running_loop().create_task(self._after(self._last.get(job_id), work))
        self._last[job_id] = task
        task.add_done_callback(lambda task: self._forget(job_id, task))

    def _forget(self, job_id: int, task: asyncio.Task[None]) -> None:
        if self._last.get(job_id) is task:
            del self._last[job_id]

    async def _after(self, previous: asyncio.Task[None] | None, work: Awaitable[None]) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        try:
            await work
        except Exception:
            log.exception("the launcher failed")

    def _beside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._epilogs.add(task)
        task.add_done_callback(self._epilogs.discard)

    async def _run_epilog(self, job: Job) -> None:
        await self._programs.epilog(job)
        self._report(EpilogEnded(self._now(), job.job_id, job.restarts))

    async def _terminate(self, effect: Terminate) -> None:
        ended = None if effect.job is None else ending(effect.job)
        await self._launcher.terminate(effect.job_id, effect.restart, effect.kill_wait, effect.nodes, effect.cause, ended=ended)

    async def _launch(self, job: Job) -> None:
        ready = await self._programs.prolog(job)
        if ready is None:
            return
        if not ready:
            self._report(PrologFailed(self._now(), job.job_id, job.restarts, "PrologSlurmctld failed"))
            return
        try:
            files = await self._files(job)
            async with self._room:
                await self._launcher.launch(job, files)
        except Exception as error:
            log.exception("job %d was not launched", job.job_id)
            nodes = job.allocation.nodes if job.allocation else ()
            self._report(LaunchFailed(self._now(), job.job_id, job.restarts, str(error), nodes))
