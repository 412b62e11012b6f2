"""The controller's half of the stepd protocol, whatever started the stepds.

A stepd dials the controller, shows that it holds its job's secret, and is told what its job is. From then on both sides
say what is new, and either may go away: commands wait here until the stepd is back, and a stepd repeats each report until
it is acknowledged, which happens only once what the report changed is on disk.

Messages from stepd: ``register`` (job, restart, node, pid, informed, manager, proof), then ``report`` (id, event, …) and
``address`` (manager).
Messages to stepd: ``nonce``, ``job`` (the description, only if it was not informed before), ``unknown`` (end everything),
``manager`` (where the step manager listens), ``terminate`` (kill_wait), ``signal`` (signal, step, flags), ``limit``
(end_time) and ``ack`` (id).
"""

from __future__ import annotations

import asyncio
import hmac
import inspect
import json
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from bridge.launcher import Report
from slurmk import wire
from slurmk.core.events import BatchEnded, Event, JobStarted, LaunchFailed, NodesReleased, StepEnded, StepStarted
from slurmk.model.job import BATCH_STEP, Step, Usage
from slurmk.model.states import JobState

log = logging.getLogger(__name__)

REGISTER_SECONDS = 30.0

USAGE_FIELDS = tuple(each.name for each in fields(Usage))


@dataclass(slots=True)
class Seat:
    """One node of an attempt and the stepd that sits there."""

    node: str
    writer: asyncio.StreamWriter | None = None
    waiting: list[bytes] = field(default_factory=list)
    process_id: int = 0
    released: bool = False
    ending: bool = False  # was told to end everything
    seen: set[int] = field(default_factory=set)  # reports that were handled, so that none is handled twice
    acknowledged: set[int] = field(default_factory=set)

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a command now, or when the stepd is back."""
        frame = _frame(message)
        if self.writer is None or self.writer.is_closing():
            self.waiting.append(frame)
        else:
            self.writer.write(frame)


@dataclass(slots=True)
class Attempt:
    """One attempt of a job, as far as its stepds are concerned. ``description`` gives the JSON text of what the job is."""

    job_id: int
    restart: int
    secret: bytes
    description: Callable[[], bytes]
    seats: dict[str, Seat]
    first: str
    manager: str = ""  # where the step manager listens
    started: bool = False

    @property
    def key(self) -> tuple[int, int]:
        return self.job_id, self.restart


def attempt_of(job_id: int, restart: int, secret: bytes, description: Callable[[], bytes], nodes: Sequence[str]) -> Attempt:
    """An attempt on these nodes, the first of which makes its steps."""
    return Attempt(job_id, restart, secret, description, {node: Seat(node) for node in nodes}, nodes[0])


class StepdLink:
    """All stepds of all jobs. ``lost`` is told when a stepd's connection ended, ``released`` when it has nothing left to do."""

    def __init__(
        self,
        now: Callable[[], float],
        lost: Callable[[Attempt, Seat], None],
        released: Callable[[Attempt, Seat], None],
    ) -> None:
        self.report: Report = _nobody
        self.attempts: dict[tuple[int, int], Attempt] = {}
        self._now = now
        self._lost = lost
        self._released = released
        self._tasks: set[asyncio.Task[None]] = set()

    def expect(self, attempt: Attempt) -> None:
        """Stepds of that attempt may come."""
        self.attempts[attempt.key] = attempt

    def forget(self, attempt: Attempt) -> None:
        """Stepds of that attempt that come now are told to end everything."""
        if self.attempts.get(attempt.key) is attempt:
            del self.attempts[attempt.key]

    def signal(self, key: tuple[int, int], signal: int, step_id: int | None, flags: int) -> None:
        """Deliver a signal; only the step manager knows which processes that means."""
        attempt = self.attempts.get(key)
        if attempt is not None:
            attempt.seats[attempt.first].tell({"kind": "signal", "signal": signal, "step": step_id, "flags": flags})

    def terminate(self, key: tuple[int, int], kill_wait: int, nodes: Sequence[str]) -> None:
        """End everything on those nodes."""
        attempt = self.attempts.get(key)
        for node in nodes if attempt is not None else ():
            if attempt is not None and node in attempt.seats:
                attempt.seats[node].ending = True
                attempt.seats[node].tell({"kind": "terminate", "kill_wait": kill_wait})

    def limit(self, key: tuple[int, int], end_time: int | None) -> None:
        """The job's time limit moved."""
        attempt = self.attempts.get(key)
        if attempt is not None:
            attempt.seats[attempt.first].tell({"kind": "limit", "end_time": end_time})

    # ---------------------------------------------------------------- one connection

    async def attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: str) -> None:
        """Serve a connection whose HELLO said ``stepd``; returns when it ends."""
        try:
            found = await asyncio.wait_for(self._register(reader, writer), REGISTER_SECONDS)
            if found is not None:
                await self._serve(reader, writer, *found)
        except (TimeoutError, asyncio.IncompleteReadError, OSError):
            pass
        except (wire.WireError, ValueError, TypeError, KeyError) as error:
            log.warning("a stepd (%s) sent what is not understood: %s", hello, error)
        finally:
            writer.close()

    async def _register(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[Attempt, Seat] | None:
        challenge = secrets.token_hex(16)
        writer.write(_frame({"kind": "nonce", "nonce": challenge}))
        message = await read_message(reader)
        if message.get("kind") != "register":
            raise wire.WireError("the first message does not register")
        attempt = self.attempts.get((int(message["job"]), int(message["restart"])))
        seat = attempt.seats.get(str(message["node"])) if attempt is not None else None
        if attempt is None or seat is None or seat.released:
            writer.write(_frame({"kind": "unknown"}))
            await writer.drain()
            return None
        expected = hmac.new(attempt.secret, f"{challenge} register".encode(), "sha256").hexdigest()
        if not hmac.compare_digest(expected.encode(), str(message.get("proof")).encode("utf-8", "replace")):
            raise wire.WireError(f"wrong secret for job {attempt.job_id}")
        if seat.writer is not None:
            seat.writer.close()
        seat.process_id = int(message.get("pid", 0))
        seat.writer = writer
        if not message.get("informed"):
            writer.write(wire.encode(wire.MESSAGE, b'{"kind":"job","job":' + attempt.description() + b"}"))
        if message.get("manager"):
            self._manager_found(attempt, str(message["manager"]))
        elif attempt.manager:
            seat.tell({"kind": "manager", "address": attempt.manager})
        for frame in seat.waiting:
            writer.write(frame)
        seat.waiting.clear()
        return attempt, seat

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, attempt: Attempt, seat: Seat) -> None:
        try:
            while True:
                message = await read_message(reader)
                if message.get("kind") == "report":
                    self._take(attempt, seat, message)
                elif message.get("kind") == "address":
                    self._manager_found(attempt, str(message["manager"]))
        finally:
            if seat.writer is writer:
                seat.writer = None
                self._lost(attempt, seat)

    def _manager_found(self, attempt: Attempt, address: str) -> None:
        if attempt.manager == address:
            return
        attempt.manager = address
        for node, seat in attempt.seats.items():
            if node != attempt.first and seat.writer is not None:
                seat.tell({"kind": "manager", "address": address})

    # ---------------------------------------------------------------- reports

    def _take(self, attempt: Attempt, seat: Seat, message: Mapping[str, Any]) -> None:
        """Turn a report into events, and acknowledge it when they are on disk."""
        number = int(message["id"])
        if number in seat.seen:
            if number in seat.acknowledged:
                seat.tell({"kind": "ack", "id": number})
            return
        seat.seen.add(number)
        waiting = [self.report(event) for event in events_of(attempt, seat.node, message, self._now())]
        task = asyncio.get_running_loop().create_task(self._acknowledge(attempt, seat, message, waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _acknowledge(self, attempt: Attempt, seat: Seat, message: Mapping[str, Any], waiting: Sequence[object]) -> None:
        for each in waiting:
            if inspect.isawaitable(each):
                await each
        seat.acknowledged.add(int(message["id"]))
        seat.tell({"kind": "ack", "id": message["id"]})
        if message["event"] == "released":
            seat.released = True
            self._released(attempt, seat)


def events_of(attempt: Attempt, node: str, message: Mapping[str, Any], now: float) -> list[Event]:
    """What a report means. Raises KeyError, TypeError or ValueError for one that cannot be understood."""
    job_id, restart = attempt.key
    match message["event"]:
        case "started":
            events: list[Event] = [] if attempt.started else [JobStarted(now, job_id, restart)]
            attempt.started = True
            if "step" in message:
                events.append(StepStarted(now, restart, step_of(job_id, message["step"])))
            return events
        case "step_started":
            return [StepStarted(now, restart, step_of(job_id, message["step"]))]
        case "step_ended":
            return [StepEnded(now, restart, step_of(job_id, message["step"]))]
        case "batch_ended":
            usage = usage_of(message.get("usage", {}))
            ended = BatchEnded(
                now,
                job_id,
                restart,
                int(message["exit_code"]),
                usage,
                bool(message.get("timed_out")),
                bool(message.get("out_of_memory")),
            )
            return [StepEnded(now, restart, step_of(job_id, message["step"])), ended] if "step" in message else [ended]
        case "launch_failed":
            return [LaunchFailed(now, job_id, restart, str(message.get("message", "")), (node,))]
        case "released":
            return [NodesReleased(now, job_id, restart, (node,))]
        case other:
            log.warning("stepd of job %d reports %r, which is not known here", job_id, other)
            return []


def step_of(job_id: int, data: Mapping[str, Any]) -> Step:
    """A step as stepd tells of it."""
    step_id = BATCH_STEP if data["step"] == "batch" else int(data["step"])
    return Step(
        job_id=job_id,
        step_id=step_id,
        name=str(data.get("name", "")),
        state=JobState[str(data.get("state", "RUNNING"))],
        start_time=int(data["start_time"]),
        end_time=int(data.get("end_time", 0)),
        nodes=tuple(map(str, data.get("nodes", ()))),
        tasks=int(data.get("tasks", 1)),
        cpus=int(data.get("cpus", 1)),
        memory=int(data.get("memory", 0)),
        gres=str(data.get("gres", "")),
        exit_code=int(data.get("exit_code", 0)),
        usage=usage_of(data.get("usage", {})),
        submit_line=str(data.get("submit_line", "")),
        distribution=str(data.get("distribution", "")),
        cpus_per_task=data.get("cpus_per_task"),
        standard_input=str(data.get("input", "")),
        standard_output=str(data.get("output", "")),
        standard_error=str(data.get("error", "")),
        time_limit=data.get("time_limit"),
        killed_by=data.get("killed_by"),
    )


def usage_of(data: Mapping[str, Any]) -> Usage:
    """Measured usage; keys that are not known here are passed over."""
    return Usage(**{name: data[name] for name in USAGE_FIELDS if name in data})


async def read_message(reader: asyncio.StreamReader) -> dict[str, Any]:
    """The next message. Raises IncompleteReadError at the end, WireError or ValueError for garbage."""
    kind, length = wire.header(await reader.readexactly(5))
    payload = await reader.readexactly(length)
    if kind != wire.MESSAGE:
        raise wire.WireError(f"frame of kind {kind} where a message was expected")
    message = json.loads(payload)
    if not isinstance(message, dict):
        raise wire.WireError("not a JSON object")
    return message


def _nobody(event: Event) -> None:
    return None


def _frame(message: Mapping[str, Any]) -> bytes:
    return wire.encode(wire.MESSAGE, json.dumps(message, separators=(",", ":")).encode())
