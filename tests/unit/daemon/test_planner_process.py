"""Plans of a long queue are made in a process of its own: they are the same plans, and the controller lives on without it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from slurmk.daemon import planning
from slurmk.daemon.planners import OwnProcess, PlannerFailed, PlannerGone
from slurmk.daemon.planning import Planning
from slurmk.planner.plan import plan, will_run
from slurmk.planner.snapshot import Outlook, PendingRow, Plan, RunningRow, Snapshot
from tests.benchmarks.plan import demand, mixed

QUEUE = mixed(40, 8, running=4)


class Controller:
    """A snapshot that changes, and what plans of it said."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.now = snapshot
        self.told: dict[int, Outlook] = {}
        self.started: list[int] = []
        self.planning = Planning(lambda: self.now, self.take)

    def take(self, part: Plan) -> None:
        self.told |= part.outlooks
        self.started += [start.job_id for start in part.starts]
        rows = {row.job_id: row for row in self.now.pending}
        for start in part.starts:
            row = rows.pop(start.job_id)
            run = RunningRow(row.job_id, self.now.time + row.time_limit, start.allocation, row.user_id)
            self.now = replace(self.now, running=(*self.now.running, run), pending=tuple(rows.values()))

    @property
    def process(self) -> OwnProcess:
        assert self.planning._process is not None
        return self.planning._process

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not done():  # noqa: ASYNC110 (what is waited for tells nobody)
                await asyncio.sleep(0.01)

    async def planned_by_the_process(self) -> None:
        self.planning.wake()
        await self.until(lambda: self.planning._process is not None and self.planning._reactor is self.planning._process)


@asynccontextmanager
async def controller(snapshot: Snapshot = QUEUE) -> AsyncIterator[Controller]:
    made = Controller(snapshot)
    made.planning.start()
    try:
        yield made
    finally:
        async with asyncio.timeout(10):
            await made.planning.stop()


@pytest.fixture(autouse=True)
def long_from_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LONG", 10)


def test_the_process_plans_reacts_and_answers_as_the_planner_does() -> None:
    async def story() -> None:
        async with controller() as made:
            await made.planned_by_the_process()
            assert made.told == plan(QUEUE).outlooks
            new = PendingRow(1, demand(tasks=1), ("batch",), 0, QUEUE.time, 60, 1)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(made.planning, "_plan", lambda: asyncio.sleep(0))
                made.now = replace(QUEUE, pending=(*QUEUE.pending, new))
                made.planning._took = 1.0  # as if full plans took long, so that there is a reaction
                made.planning.wake()
                await made.until(lambda: 1 in made.told)
                ended = made.now.running[0]
                made.now = replace(made.now, running=made.now.running[1:])
                made.planning.wake()
                await made.until(lambda: bool(made.started))
            free = set(ended.allocation.nodes)
            started = [run for run in made.now.running if run.job_id in made.started]
            assert all(set(run.allocation.nodes) <= free for run in started)
            row = replace(QUEUE.pending[0], job_id=2)
            assert await made.planning.ask(will_run, made.now, row) == will_run(made.now, row)

    asyncio.run(story())


def test_a_process_that_dies_is_replaced_and_plans_are_made_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "FIRST_PAUSE", 0.5)

    async def story() -> None:
        async with controller() as made:
            await made.planned_by_the_process()
            first = made.process.process_id
            made.told.clear()
            os.kill(first, signal.SIGKILL)
            made.planning.wake()
            await made.until(lambda: made.told.keys() == plan(QUEUE).outlooks.keys())
            await asyncio.sleep(0.6)
            await made.planned_by_the_process()
            assert made.process.process_id != first

    asyncio.run(story())


def test_a_question_is_answered_though_the_process_dies() -> None:
    async def story() -> None:
        async with controller() as made:
            await made.planned_by_the_process()
            os.kill(made.process.process_id, signal.SIGKILL)
            row = replace(QUEUE.pending[0], job_id=2)
            assert await made.planning.ask(will_run, QUEUE, row) == will_run(QUEUE, row)

    asyncio.run(story())


def test_stopping_waits_for_no_process() -> None:
    async def story() -> float:
        async with controller(mixed(3000, 256)) as made:
            await made.planned_by_the_process()
            process = made.process.process_id
            os.kill(process, signal.SIGSTOP)
            made.planning.wake()
            await asyncio.sleep(0.1)
            began = time.monotonic()
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
        return time.monotonic() - began

    assert asyncio.run(story()) < 5


def test_one_that_cannot_begin_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")

    async def story() -> None:
        with pytest.raises(PlannerGone):
            await OwnProcess.begin()
        async with controller() as made:
            made.planning.wake()
            await made.until(lambda: bool(made.told))
            assert made.told == plan(QUEUE).outlooks

    asyncio.run(story())


def test_what_the_process_cannot_plan_fails_alone() -> None:
    async def story() -> None:
        process = await OwnProcess.begin()
        try:
            process.follow(replace(QUEUE, licenses=None))  # type: ignore[arg-type]
            with pytest.raises(PlannerFailed, match="Traceback"):
                await process.full()
            process.follow(QUEUE)
            told = {job_id: outlook for part in await process.full() for job_id, outlook in part.outlooks.items()}
            assert told == plan(QUEUE).outlooks
        finally:
            await process.close()

    asyncio.run(story())
