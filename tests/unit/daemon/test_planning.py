"""How plans are taken over, that planning can be stopped at any moment, and what the garbage collector does meanwhile."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.daemon import planners
from slurmk.daemon.memory import NEVER, collect_now_and_then
from slurmk.daemon.planners import parts
from slurmk.daemon.planning import Planning
from slurmk.model.job import Allocation, JobRequest
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import Reason
from slurmk.planner.build import demand_of, node_table
from slurmk.planner.forecast import Abandoned
from slurmk.planner.plan import forecast
from slurmk.planner.snapshot import Outlook, PartitionRow, PendingRow, Plan, Snapshot, Start


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 3), st.integers(0, 25), st.integers(1, 10))
def test_parts_are_the_plan(starts: int, told: int, together: int) -> None:
    started = tuple(Start(number, Allocation("p", ()), 60) for number in range(starts))
    whole = Plan(7, 100, started, {number: Outlook(Reason.PRIORITY, number) for number in range(told)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planners, "TOLD_TOGETHER", together)
        made = list(parts(whole))
    assert made[0].starts == started
    assert all(not part.starts for part in made[1:]), "nothing is started twice"
    assert {job: outlook for part in made for job, outlook in part.outlooks.items()} == whole.outlooks
    assert all(len(part.outlooks) <= together for part in made)
    assert {(part.snapshot_id, part.time) for part in made} == {(7, 100)}


def test_planning_stops_though_it_is_woken_at_that_moment() -> None:
    def nothing() -> Snapshot | None:
        return None

    async def story() -> None:
        made = Planning(nothing, lambda plan: None)
        made.start()
        await asyncio.sleep(0.01)
        made.wake()
        await asyncio.wait_for(made.stop(), 5)

    for _ in range(5):
        asyncio.run(story())


def test_a_plan_in_progress_is_abandoned() -> None:
    entered, left = threading.Event(), threading.Event()

    def endless(snapshot: Snapshot, wanted: Callable[[], bool]) -> NoReturn:
        entered.set()
        while wanted():
            time.sleep(0.001)
        left.set()
        raise Abandoned

    async def story() -> None:
        made = Planning(empty_snapshot, lambda plan: pytest.fail("an abandoned plan was taken over"))
        made.start()
        made.wake()
        await asyncio.to_thread(entered.wait, 5)
        await asyncio.wait_for(made.stop(), 5)
        assert await asyncio.to_thread(left.wait, 5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planners, "forecast", endless)
        asyncio.run(story())


def test_a_forecast_asks_before_each_record_whether_it_is_wanted() -> None:
    demand = demand_of(JobRequest(minimum_nodes=1), Partition("p", ()), Site("c", (), ()))
    partition = PartitionRow("p", np.arange(1), True, 1, None, 0, None)
    rows = tuple(PendingRow(number, demand, ("p",), 100 - number, 0, 60, 1) for number in range(1, 51))
    snapshot = replace(empty_snapshot(), nodes=node_table([Node("n0")]), partitions=(partition,), pending=rows)
    answers = iter([True] * 5)
    with pytest.raises(Abandoned):
        forecast(snapshot, lambda: next(answers, False))
    assert forecast(snapshot).plan().outlooks


def empty_snapshot() -> Snapshot:
    return Snapshot(1, 100, node_table([]), (), (), ())


def test_no_full_collection_comes_by_itself_and_the_collector_is_given_back() -> None:
    before = gc.get_threshold()

    async def story() -> None:
        collecting = asyncio.get_running_loop().create_task(collect_now_and_then(0.01))
        await asyncio.sleep(0.05)
        assert gc.get_threshold() == (*before[:2], NEVER)
        assert gc.get_freeze_count() > 0
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)

    asyncio.run(story())
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
