"""Who makes plans for the controller: threads of its own while the queue is short, a process of its own for a long one.

Planning a long queue takes seconds of Python, during which the controller's event loop would get its turn late, again and
again. The other process knows the snapshot by a mirror, which is told what has changed (``planner.transfer``). When it dies,
whatever was asked of it fails with ``PlannerGone``; the controller goes on and makes its plans anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Protocol, TypeVar

from slurmk.daemon.planner_process import HEADER, Kind
from slurmk.planner.forecast import Forecast
from slurmk.planner.kept import Kept
from slurmk.planner.plan import forecast
from slurmk.planner.snapshot import Plan, Snapshot
from slurmk.planner.transfer import TOLD_TOGETHER, PlanReader, Sent, packed, packed_question, unpacked

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

READY_WITHIN = 120.0
"""Seconds that the process has to come up: on a new installation it compiles for a while."""

GONE_WITHIN = 1.0
"""Seconds after which a process that has nobody to talk to is killed."""

BUFFER = 1 << 20
"""Bytes of answers that are read ahead."""


class PlannerGone(Exception):
    """The planner's process ended, or could not begin."""


class PlannerFailed(Exception):
    """No plan could be made; the text says where it failed."""


class Planner(Protocol):
    """Every snapshot goes to ``follow``; what is asked for then is asked of the last one. Plans come in parts, each soon
    taken over. What ``full`` made is gone on from by reactions when it was taken over and ``adopt`` says so."""

    @property
    def can_react(self) -> bool: ...

    def follow(self, snapshot: Snapshot) -> None: ...

    async def full(self) -> Iterator[Plan]: ...

    def adopt(self) -> None: ...

    async def react(self) -> Iterator[Plan] | None:
        """None when only a full plan can answer."""
        ...

    async def ask(self, question: Callable[..., Answer], values: tuple[object, ...], within: float | None) -> Answer:
        """What a question about the plan gives. Its last argument tells whether the answer is wanted still."""
        ...

    async def close(self) -> None: ...


class OwnThreads:
    """Plans in threads of this process."""

    def __init__(self) -> None:
        self._full = ThreadPoolExecutor(1, "planner")
        self._quick = ThreadPoolExecutor(1, "reaction")
        self._asked = ThreadPoolExecutor(1, "question")
        self._kept = Kept()
        self._snapshot: Snapshot
        self._closed = threading.Event()

    @property
    def can_react(self) -> bool:
        return self._kept.can_react

    def follow(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._kept.follow(snapshot.changed)

    def forget(self) -> None:
        """Others plan from now on."""
        self._kept.forget()

    async def full(self) -> Iterator[Plan]:
        self._kept.begin()
        made, plan = await asyncio.get_running_loop().run_in_executor(self._full, self._full_plan, self._snapshot)
        self._kept.finish(made)
        return parts(plan)

    def _full_plan(self, snapshot: Snapshot) -> tuple[Forecast, Plan]:
        made = forecast(snapshot, self._wanted)
        return made, made.plan()

    def _wanted(self) -> bool:
        return not self._closed.is_set()

    def adopt(self) -> None:
        self._kept.adopt()

    async def react(self) -> Iterator[Plan] | None:
        plan = await asyncio.get_running_loop().run_in_executor(self._quick, self._kept.reaction(self._snapshot))
        return None if plan is None else parts(plan)

    async def ask(self, question: Callable[..., Answer], values: tuple[object, ...], within: float | None) -> Answer:
        def work() -> Answer:
            until = None if within is None else time.monotonic() + within
            return question(*values, lambda: self._wanted() and (until is None or time.monotonic() < until))

        return await asyncio.get_running_loop().run_in_executor(self._asked, work)

    async def close(self) -> None:
        """The plan in progress is abandoned."""
        self._closed.set()
        for thread in (self._full, self._quick, self._asked):
            thread.shutdown(wait=False, cancel_futures=True)


class OwnProcess:
    """Plans in a process of their own."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._sent = Sent()
        self._names: Sequence[str] = ()
        self._plans = PlanReader(())
        self._orders: asyncio.Queue[Iterator[tuple[Kind, int, bytes]]] = asyncio.Queue()
        self._number = 0
        self._answers: dict[int, tuple[list[bytes], asyncio.Future[list[bytes]]]] = {}
        self._adopted = False
        self._gone = False
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._send()), loop.create_task(self._receive())]

    @classmethod
    async def begin(cls) -> OwnProcess:
        """Start the process and wait until it can plan at once. Raises PlannerGone."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", "slurmk.daemon.planner_process", str(theirs.fileno())]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    env=environment,
                    pass_fds=(theirs.fileno(),),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                )
        except OSError as error:
            ours.close()
            raise PlannerGone(str(error)) from error
        reader, writer = await asyncio.open_connection(sock=ours, limit=BUFFER)
        try:
            async with asyncio.timeout(READY_WITHIN):
                await reader.readexactly(HEADER.size)
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            writer.close()
            await _end(process)
            raise PlannerGone("it did not come up") from error
        except asyncio.CancelledError:
            writer.close()
            process.kill()
            raise
        return cls(process, reader, writer)

    @property
    def can_react(self) -> bool:
        return self._adopted

    @property
    def process_id(self) -> int:
        return self._process.pid

    def follow(self, snapshot: Snapshot) -> None:
        if snapshot.nodes.names is not self._names:
            self._names = snapshot.nodes.names
            self._plans = PlanReader(self._names)
        differences = self._sent.differences(snapshot)
        self._orders.put_nowait((Kind.FOLLOW, 0, packed(each)) for each in differences)

    async def full(self) -> Iterator[Plan]:
        plans = self._plans
        return map(plans.plan_of, map(unpacked, await self._order(Kind.FULL)))

    def adopt(self) -> None:
        self._adopted = True
        self._orders.put_nowait(iter(((Kind.ADOPT, 0, b""),)))

    async def react(self) -> Iterator[Plan] | None:
        plans = self._plans
        answered = await self._order(Kind.REACT)
        self._adopted = bool(answered)
        return map(plans.plan_of, map(unpacked, answered)) if answered else None

    async def ask(self, question: Callable[..., Answer], values: tuple[object, ...], within: float | None) -> Answer:
        answered = await self._order(Kind.ASK, packed_question((question, values, within)))
        answer: Answer = unpacked(answered[0])
        return answer

    async def close(self) -> None:
        """End the process, whatever it does."""
        self._fail()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._writer.close()
        await _end(self._process)

    async def _order(self, kind: Kind, payload: bytes = b"") -> list[bytes]:
        """Tell it to do something; the parts of its answer."""
        if self._gone:
            raise PlannerGone("it ended")
        self._number += 1
        number = self._number
        future: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
        self._answers[number] = [], future
        self._orders.put_nowait(iter(((kind, number, payload),)))
        try:
            return await future
        finally:
            self._answers.pop(number, None)

    async def _send(self) -> None:
        try:
            while True:
                for kind, number, payload in await self._orders.get():
                    self._writer.write(HEADER.pack(kind, number, len(payload)) + payload)
                    await self._writer.drain()
                    await asyncio.sleep(0)
        except OSError:
            self._fail()
        except Exception:
            log.exception("the planner's process cannot be told what to plan")
            self._fail()

    async def _receive(self) -> None:
        try:
            while True:
                kind, number, length = HEADER.unpack(await self._reader.readexactly(HEADER.size))
                self._take(Kind(kind), number, await self._reader.readexactly(length))
        except (OSError, asyncio.IncompleteReadError):
            self._fail()

    def _take(self, kind: Kind, number: int, payload: bytes) -> None:
        got, future = self._answers.get(number, (None, None))
        if got is None or future is None or future.done():
            return
        if kind is Kind.PART:
            got.append(payload)
        elif kind is Kind.LAST:
            future.set_result(got)
        else:
            future.set_exception(PlannerFailed(payload.decode(errors="replace")))

    def _fail(self) -> None:
        self._gone = True
        for _, future in self._answers.values():
            if not future.done():
                future.set_exception(PlannerGone("it ended"))


async def _end(process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(GONE_WITHIN):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def parts(plan: Plan) -> Iterator[Plan]:
    """The plan's starts with some of what it tells, then the rest, each soon taken over: others are served in between."""
    outlooks = iter(plan.outlooks.items())
    yield replace(plan, outlooks=dict(islice(outlooks, TOLD_TOGETHER)))
    while part := dict(islice(outlooks, TOLD_TOGETHER)):
        yield replace(plan, starts=(), preempted=(), outlooks=part)
