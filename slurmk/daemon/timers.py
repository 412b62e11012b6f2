"""The machine's alarm clock: WakeAt effects become Ticks, and a Tick comes every half minute anyway."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable

REGULAR = 30.0
"""Seconds that pass at most between Ticks."""

STEP = 0.05
"""Alarms nearer to each other than this, in seconds, are one."""


class Timers:
    """Calls ``ring`` when an alarm falls due. Alarms that nobody needs any more ring too, which harms nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], object]) -> None:
        self._loop = loop
        self._ring = ring
        self._alarms: list[int] = []
        self._set: set[int] = set()
        self._handle: asyncio.TimerHandle | None = None
        self._next: int | None = None

    def start(self) -> None:
        self.wake_at(time.time() + REGULAR)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def wake_at(self, when: float) -> None:
        """Ring at that time (Unix seconds), or at once when it has passed."""
        alarm = -int(-when // STEP)
        if alarm in self._set:
            return
        self._set.add(alarm)
        heapq.heappush(self._alarms, alarm)
        if self._next is None or alarm < self._next:
            self._arm()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._next = self._alarms[0] if self._alarms else None
        if self._next is not None:
            self._handle = self._loop.call_later(max(0.001, self._next * STEP - time.time()), self._due)

    def _due(self) -> None:
        now = time.time()
        while self._alarms and self._alarms[0] * STEP <= now + STEP / 2:
            self._set.discard(heapq.heappop(self._alarms))
        self._next = None
        if not self._alarms or self._alarms[0] * STEP > now + REGULAR:
            self.wake_at(now + REGULAR)
        self._ring()
        self._arm()
