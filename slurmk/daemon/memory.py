"""Keeps Python's collector of cyclic garbage from stopping the controller.

Everything that stays (jobs, nodes, what the planner keeps) is reference-counted values without cycles, millions of them with
a long queue. A full collection looks at each one, with every thread held up for a second or more, and Python begins one
whenever their number has grown by a quarter, as it does in every plan. So full collections are made here alone, now and then,
and what survives one is set aside: the next looks only at what came since.
"""

from __future__ import annotations

import asyncio
import gc

PERIOD = 60.0
"""Seconds between two collections of what has come since."""

NEVER = 1_000_000_000
"""A threshold that is not reached."""


async def collect_now_and_then(period: float = PERIOD) -> None:
    """Run until cancelled; the collector is as it was before afterwards."""
    before = gc.get_threshold()
    gc.set_threshold(before[0], before[1], NEVER)
    try:
        while True:
            set_aside()
            await asyncio.sleep(period)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def set_aside() -> None:
    """Collect garbage among what has come since the last time, and look at the rest no more."""
    gc.collect()
    gc.freeze()
