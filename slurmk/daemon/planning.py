"""When plans are made, and by whom, of snapshots taken on the event loop.

While the queue is short every wake leads to a full plan, made in milliseconds. When full plans take longer, a wake is
first answered by a reaction (``planner.plan_starts``): what may start now by the last full plan's promises. The next full
plan follows, with a pause between two that leaves the processor to the rest; wakes that come meanwhile share it.

A queue that is long has a process for itself (``planners``), which stays. Until it is up, and after it died, reactions and,
if need be, plans are made in this one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from slurmk.daemon.planners import OwnProcess, OwnThreads, Planner, PlannerFailed, PlannerGone
from slurmk.planner.forecast import COMPILED_FROM, Abandoned
from slurmk.planner.snapshot import Plan, Snapshot

log = logging.getLogger(__name__)

GATHER = 0.002
"""Seconds to wait for more of what just woke the planner."""

SHORT = 0.02
"""A full plan that takes no longer than this many seconds needs no reaction before it."""

REST = 1.0
"""The pause after a full plan, as a share of the time that it took."""

LONGEST_REST = 2.0

REGULAR = 30.0
"""A plan is made at least this often (seconds), since what was promised moves when jobs end late."""

LONG = COMPILED_FROM
"""Waiting records from which on plans are made in a process of its own."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a process that died is started again."""

Answer = TypeVar("Answer")

Timed = Callable[[float, int, bool], None]
"""Is told of a plan: seconds, waiting jobs, and whether it was a whole one."""


def _nobody(seconds: float, length: int, full: bool) -> None:
    return None


class Planning:
    """Makes plans of ``snapshot()`` (None: not now) and gives them to ``take``, which is called on the event loop."""

    def __init__(self, snapshot: Callable[[], Snapshot | None], take: Callable[[Plan], None]) -> None:
        self._snapshot = snapshot
        self._take = take
        self._woken = asyncio.Event()
        self._full_wanted = asyncio.Event()
        self._threads = OwnThreads()
        self._process: OwnProcess | None = None
        self._reactor: Planner = self._threads  # who made the plan that was taken over last
        self._pause = FIRST_PAUSE
        self._not_before = 0.0  # when a process may be started again
        self._took = 0.0
        self._busy = False  # a full plan is being made
        self._reacting = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self.timed: Timed = _nobody

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._serve()), loop.create_task(self._serve_full())]

    async def stop(self) -> None:
        """Stop planning; the plan in progress is abandoned."""
        for task in self._tasks:
            task.cancel()
        await self._threads.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:
            await self._process.close()

    def wake(self) -> None:
        """Something changed that a plan depends on."""
        self._woken.set()

    async def ask(self, question: Callable[..., Answer], *values: object, within: float | None = None) -> Answer:
        """What a question about the plan gives, where ``values`` may hold the snapshot as it is now. Its last argument tells
        whether the answer is wanted still: not when planning has stopped, nor after ``within`` seconds of work."""
        process = self._process
        if process is not None and self._followed() is not None:
            try:
                return await process.ask(question, values, within)
            except PlannerGone:
                self._bury(process)
        return await self._threads.ask(question, values, within)

    async def _serve(self) -> None:
        while True:
            try:
                async with asyncio.timeout(REGULAR):  # wait_for of Python 3.11 may lose a cancellation
                    await self._woken.wait()
            except TimeoutError:
                self._full_wanted.set()
                continue
            await asyncio.sleep(GATHER)
            self._woken.clear()
            self._full_wanted.set()
            if self._took > SHORT or self._busy:
                began = time.monotonic()
                await self._guarded(self._react)
                await asyncio.sleep(min(2 * REST * (time.monotonic() - began), LONGEST_REST))

    async def _serve_full(self) -> None:
        while True:
            await self._full_wanted.wait()
            self._full_wanted.clear()
            await self._guarded(self._plan)
            if self._took > GATHER:
                await asyncio.sleep(min(REST * self._took, LONGEST_REST))

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Abandoned:
            return
        except PlannerGone:
            if self._process is not None:
                self._bury(self._process)
            self._full_wanted.set()
        except PlannerFailed as failure:
            log.error("no plan could be made: %s", failure)
            await self._begin_anew()
        except Exception:
            log.exception("no plan could be made")
            await self._begin_anew()

    async def _begin_anew(self) -> None:
        """What was kept may be in disorder."""
        self._threads.forget()
        self._reactor = self._threads
        await asyncio.sleep(1.0)

    def _followed(self) -> Snapshot | None:
        """A snapshot that all planners know."""
        snapshot = self._snapshot()
        if snapshot is not None:
            self._threads.follow(snapshot)
            if self._process is not None:
                self._process.follow(snapshot)
        return snapshot

    # ---------------------------------------------------------------- full plans

    async def _plan(self) -> None:
        self._busy = True
        try:
            await self._plan_in_full()
        finally:
            self._busy = False

    async def _plan_in_full(self) -> None:
        snapshot = self._followed()
        if snapshot is None:
            return
        if len(snapshot.pending) >= LONG and self._process is None and time.monotonic() >= self._not_before:
            await self._begin_process()
            snapshot = self._followed()
            if snapshot is None:
                return
        planner: Planner = self._process or self._threads
        began = time.monotonic()
        plan = await planner.full()
        self._took = time.monotonic() - began
        self.timed(self._took, len(snapshot.pending), True)
        async with self._reacting:
            planner.adopt()
            if planner is not self._threads:
                self._threads.forget()
                self._pause = FIRST_PAUSE
            self._reactor = planner
            await self._take_over(plan)
        if self._full_wanted.is_set():
            await self._react()  # to what changed while the plan was made

    async def _begin_process(self) -> None:
        try:
            self._process = await OwnProcess.begin()
        except PlannerGone as error:
            log.error("the planner's process: %s; plans are made in the controller for now", error)
            self._put_off()
        else:
            log.info("the queue is long: plans are made in process %d from now on", self._process.process_id)

    def _bury(self, process: OwnProcess) -> None:
        """The process ended by itself, or was killed."""
        if self._process is not process:
            return
        log.error("the planner's process %d ended; plans are made anew", process.process_id)
        self._process, self._reactor = None, self._threads
        self._put_off()
        self._burial = asyncio.get_running_loop().create_task(process.close())

    def _put_off(self) -> None:
        self._not_before = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    # ---------------------------------------------------------------- reactions

    async def _react(self) -> None:
        async with self._reacting:
            if not self._reactor.can_react:
                return
            snapshot = self._followed()
            if snapshot is None:
                return
            began = time.monotonic()
            plan = await self._reactor.react()
            self.timed(time.monotonic() - began, len(snapshot.pending), False)
            if plan is not None:
                await self._take_over(plan)

    async def _take_over(self, plan: Iterator[Plan]) -> None:
        for part in plan:
            self._take(part)
            await asyncio.sleep(0)
