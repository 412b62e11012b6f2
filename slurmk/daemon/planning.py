"""Plans are made in a thread, one at a time, of a snapshot taken on the event loop.

Wakes that come while a plan is being made lead to one more plan. Between two long plans there is a pause, so that the
planner leaves the processor to the rest.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from slurmk.planner.snapshot import Plan, Snapshot

log = logging.getLogger(__name__)

GATHER = 0.002
"""Seconds to wait for more of what just woke the planner."""

REST = 0.5
"""The pause after a plan, as a share of the time it took."""

LONGEST_REST = 2.0


class Planning:
    """Runs ``make`` on ``snapshot()`` whenever woken, and gives the plan to ``take``."""

    def __init__(
        self, snapshot: Callable[[], Snapshot | None], make: Callable[[Snapshot], Plan], take: Callable[[Plan], None]
    ) -> None:
        self._snapshot = snapshot
        self._make = make
        self._take = take
        self._woken = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "planner")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop planning; the plan in progress is not used."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def wake(self) -> None:
        """Something changed that a plan depends on."""
        self._woken.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._woken.wait()
            await asyncio.sleep(GATHER)
            self._woken.clear()
            began = time.monotonic()
            try:
                snapshot = self._snapshot()
                if snapshot is None:
                    continue
                self._take(await loop.run_in_executor(self._thread, self._make, snapshot))
            except Exception:
                log.exception("no plan could be made")
                await asyncio.sleep(1.0)
            took = time.monotonic() - began
            if took > 0.05:
                await asyncio.sleep(min(REST * took, LONGEST_REST))
