"""When plans are made, and where: in threads, of a snapshot taken on the event loop.

While the queue is short every wake leads to a full plan, made in milliseconds. When full plans take longer, a wake is
first answered by a reaction (``planner.plan_starts``): what may start now by the last full plan's promises. The next full
plan follows, with a pause between two that leaves the processor to the rest; wakes that come meanwhile share it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from slurmk.planner.forecast import Abandoned, Forecast
from slurmk.planner.plan import forecast, plan_starts
from slurmk.planner.snapshot import Plan, Snapshot

log = logging.getLogger(__name__)

GATHER = 0.002
"""Seconds to wait for more of what just woke the planner."""

SHORT = 0.02
"""A full plan that takes no longer than this many seconds needs no reaction before it."""

REST = 1.0
"""The pause after a full plan, as a share of the time that it took."""

LONGEST_REST = 2.0

TAKEN_TOGETHER = 1000
"""Jobs that are told what a plan says of them before anything else is served: some 2 ms."""

REGULAR = 30.0
"""A plan is made at least this often (seconds), since what was promised moves when jobs end late."""


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
        self._full = ThreadPoolExecutor(1, "planner")
        self._quick = ThreadPoolExecutor(1, "reaction")
        self._asked = ThreadPoolExecutor(1, "question")
        self._forecast: Forecast | None = None
        self._took = 0.0
        self._reacting = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = threading.Event()
        self.timed: Timed = _nobody

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._serve()), loop.create_task(self._serve_full())]

    async def stop(self) -> None:
        """Stop planning; the plan in progress is abandoned."""
        self._stopped.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for thread in (self._full, self._quick, self._asked):
            thread.shutdown(wait=False, cancel_futures=True)

    def wake(self) -> None:
        """Something changed that a plan depends on."""
        self._woken.set()

    async def ask(self, question: Callable[..., Answer], *values: object, within: float | None = None) -> Answer:
        """What a question about the plan gives, in a thread of its own, one after another. Its last argument tells whether the
        answer is wanted still: not when planning has stopped, nor after ``within`` seconds of work."""

        def work() -> Answer:
            until = None if within is None else time.monotonic() + within
            return question(*values, lambda: self._wanted() and (until is None or time.monotonic() < until))

        return await asyncio.get_running_loop().run_in_executor(self._asked, work)

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
            if self._took > SHORT:
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
        except Exception:
            log.exception("no plan could be made")
            self._forecast = None
            await asyncio.sleep(1.0)

    async def _plan(self) -> None:
        began = time.monotonic()
        snapshot = self._snapshot()
        if snapshot is None:
            return
        made, plan = await asyncio.get_running_loop().run_in_executor(self._full, self._full_plan, snapshot)
        self._took = time.monotonic() - began
        self.timed(self._took, len(snapshot.pending), True)
        async with self._reacting:
            self._forecast = made
            await self._take_over(plan)
        if self._full_wanted.is_set():
            await self._react()  # to what changed while the plan was made

    def _full_plan(self, snapshot: Snapshot) -> tuple[Forecast, Plan]:
        made = forecast(snapshot, self._wanted)
        return made, made.plan()

    def _wanted(self) -> bool:
        return not self._stopped.is_set()

    async def _react(self) -> None:
        async with self._reacting:
            if self._forecast is None:
                return
            snapshot = self._snapshot()
            if snapshot is None:
                return
            loop = asyncio.get_running_loop()
            began = time.monotonic()
            plan = await loop.run_in_executor(self._quick, plan_starts, snapshot, self._forecast)
            self.timed(time.monotonic() - began, len(snapshot.pending), False)
            if plan is None:
                self._forecast = None
            else:
                await self._take_over(plan)

    async def _take_over(self, plan: Plan) -> None:
        for part in parts(plan):
            self._take(part)
            await asyncio.sleep(0)


def parts(plan: Plan) -> Iterator[Plan]:
    """The plan's starts with some of what it tells, then the rest, each soon taken over: others are served in between."""
    outlooks = iter(plan.outlooks.items())
    yield replace(plan, outlooks=dict(islice(outlooks, TAKEN_TOGETHER)))
    while part := dict(islice(outlooks, TAKEN_TOGETHER)):
        yield replace(plan, starts=(), outlooks=part)
