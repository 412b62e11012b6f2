"""Spreads requests over time: a token bucket whose takers are served in the order in which they came."""

from __future__ import annotations

import asyncio


class Pace:
    """At most ``burst`` at once, and ``rate`` a second in the long run."""

    def __init__(self, rate: float, burst: int) -> None:
        self._interval = 1.0 / rate
        self._slack = self._interval * (max(burst, 1) - 1)
        self._next = 0.0

    async def take(self) -> None:
        """Return when it is the caller's turn. A caller that gives up while waiting has used its turn."""
        now = asyncio.get_running_loop().time()
        turn = max(self._next, now - self._slack)
        self._next = turn + self._interval
        if turn > now:
            await asyncio.sleep(turn - now)
