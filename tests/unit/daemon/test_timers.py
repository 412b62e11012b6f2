"""The machine's alarm clock with a real event loop: Ticks that were asked for, and those that come anyway."""

from __future__ import annotations

import asyncio
import time

import pytest

from slurmk.daemon import timers
from slurmk.daemon.timers import Timers


async def rings(alarms: list[float], seconds: float) -> list[float]:
    """When the clock rang, in seconds from the start, with alarms that many seconds ahead."""
    rung: list[float] = []
    start = time.time()
    clock = Timers(asyncio.get_running_loop(), lambda: rung.append(time.time() - start))
    clock.start()
    for ahead in alarms:
        clock.wake_at(start + ahead)
    await asyncio.sleep(seconds)
    clock.stop()
    return rung


def test_an_alarm_rings_when_it_is_due() -> None:
    first, *_ = asyncio.run(rings([0.2, 3600], 0.6))
    assert 0.15 < first < 0.5


@pytest.mark.parametrize("alarms", [[], [3600], [0.05, 3600, 7200]])
def test_ticks_come_anyway_also_while_an_alarm_is_far_ahead(monkeypatch: pytest.MonkeyPatch, alarms: list[float]) -> None:
    monkeypatch.setattr(timers, "REGULAR", 0.1)
    assert len(asyncio.run(rings(alarms, 1.0))) >= 4
