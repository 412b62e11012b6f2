"""The controller's half of the stepd protocol, whatever started the stepds.

A stepd dials the controller, shows that it holds its job's secret, and is told what its job is. From then on both sides
say what is new, and either may go away: commands wait here until the stepd is back, and a stepd repeats each report until
it is acknowledged, which happens only once what the report changed is on disk.

Messages from stepd: ``register`` (job, restart, node, pid, informed, manager, proof; in a pod also nonce, instance, address,
host and described), then ``report`` (id, event, …) and ``address`` (manager) and ``answer`` (id).
Messages to stepd: ``nonce``, ``job`` (the description, only if it was not informed before), ``unknown`` (end everything),
``manager`` (where the step manager listens), ``terminate`` (kill_wait, cause), ``signal`` (signal, step, flags), ``limit``
(end_time), ``shrink`` (nodes), ``ask`` (id, what, …) and ``ack`` (id); in a pod also ``welcome`` (proof), ``peers`` (addresses)
and ``begin``.
``begin``, like ``job`` to a pod, says the time: the time limit counts from then on.

stepd in a pod runs as the job's user, who can therefore speak as it. What it says concerns its own job only, and is brought
within bounds: it can misstate how the job's steps went, what they used and how the job ended, as a script could by other
means. It cannot run a job twice, since only the first pod in each place is told to begin; and that it calls a node
released frees nothing, which only the pod's end does (see ``bridge.kubernetes.launcher``).
"""

from __future__ import annotations

import asyncio
import hmac
import inspect
import ipaddress
import json
import logging
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from bridge.launcher import Report
from slurmk import wire
from slurmk.core.events import (
    BatchEnded,
    EpilogFailed,
    Event,
    JobStarted,
    LaunchFailed,
    NodesReleased,
    PrologFailed,
    PrologRuns,
    StepEnded,
    StepStarted,
)
from slurmk.model.job import BATCH_STEP, INTERACTIVE_STEP, Spread, Step, Usage
from slurmk.model.states import JobState

log = logging.getLogger(__name__)

REGISTER_SECONDS = 30.0
"""How long somebody who says to be a stepd has to prove it."""

UNPROVEN_OF_ADDRESS = 256
UNPROVEN_IN_ALL = 1024
"""Connections over the network that have proven nothing yet. One more ends the oldest: a stepd proves itself at once, and one
that was cut off dials again."""

UNPROVEN = 4096
"""Bytes of a message from somebody who has proven nothing yet."""

QUIET_SECONDS = 60.0
"""How often at most the log tells that there are too many of them."""

LARGEST_REPORT = 4 << 20
"""Bytes of a message from a stepd that has."""

MOST_REPORTS = 200_000
"""Reports of one stepd that are remembered; of steps, it is told of no more than that."""

OF_STEPS = ("step_started", "step_ended")
"""Events that a job can have any number of."""

PENDING_REPORTS = 256
"""Reports of one stepd that may wait to be on disk before it is listened to again."""

ANSWER_SECONDS = 10.0
"""How long the answer to a question is waited for."""

RESIZE = "resize"
"""Why stepds are told to end on nodes that a job gives back while it goes on: at once."""

LARGEST = 1 << 53
"""More than anything that is counted or measured can be."""

LATEST = 253_402_300_799
"""The last second of the year 9999, which is as far as times can be shown."""

HIGHEST_STATUS = 0xFFFF
LONGEST_TEXT = 1 << 20

_NO_TEXT = re.compile(r"[\x00\ud800-\udc7f\udd00-\udfff]")
"""What neither a file name nor UTF-8 has in it. Bytes that are no UTF-8 are kept as U+DC80 to U+DCFF."""


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
    instance: str = ""  # the pod that came here
    begun: bool = False  # it was told to begin
    described: bool = False  # it knows its job already
    address: str = ""  # of the pod
    host: str = ""  # what the pod calls itself

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
    most_steps: int = 40_000  # MaxStepCount; a pod could tell of any number
    pods: bool = False  # its stepds are in pods: they begin together, when all have come, and learn their addresses
    begun: int = 0  # when they were told to begin, which is when the job's time begins; 0 where this process did not
    deleted: set[str] = field(default_factory=set)  # nodes whose pods somebody deletes, and not because the job was ended

    @property
    def key(self) -> tuple[int, int]:
        return self.job_id, self.restart


def attempt_of(
    job_id: int,
    restart: int,
    secret: bytes,
    description: Callable[[], bytes],
    nodes: Sequence[str],
    *,
    most_steps: int = 40_000,
    pods: bool = False,
) -> Attempt:
    """An attempt on these nodes, the first of which makes its steps."""
    seats = {node: Seat(node) for node in nodes}
    return Attempt(job_id, restart, secret, description, seats, nodes[0], most_steps=most_steps, pods=pods)


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
        self._unproven: dict[asyncio.StreamWriter, str] = {}  # those that have yet to register, oldest first; their addresses
        self._told_of_crowd = 0.0
        self._asked: dict[int, tuple[asyncio.StreamWriter, asyncio.Future[Mapping[str, Any]]]] = {}
        self._questions = 0

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

    def terminate(
        self,
        key: tuple[int, int],
        kill_wait: int,
        nodes: Sequence[str],
        cause: str = "",
        ended: Mapping[str, int] | None = None,
    ) -> None:
        """End everything on those nodes, and have the job's output say why; ``ended`` is for the site's epilog."""
        attempt = self.attempts.get(key)
        for node in nodes if attempt is not None else ():
            if attempt is not None and node in attempt.seats:
                attempt.seats[node].ending = True
                attempt.seats[node].tell({"kind": "terminate", "kill_wait": kill_wait, "cause": cause, "ended": ended or {}})

    def shrink(self, key: tuple[int, int], nodes: Sequence[str]) -> None:
        """The job has only those nodes left."""
        attempt = self.attempts.get(key)
        if attempt is not None:
            attempt.seats[attempt.first].tell({"kind": "shrink", "nodes": list(nodes)})

    def limit(self, key: tuple[int, int], end_time: int | None) -> None:
        """The job's time limit moved."""
        attempt = self.attempts.get(key)
        if attempt is not None:
            attempt.seats[attempt.first].tell({"kind": "limit", "end_time": end_time})

    async def ask(
        self, key: tuple[int, int], nodes: Sequence[str], question: Mapping[str, Any]
    ) -> dict[str, Mapping[str, Any]]:
        """Ask the stepds of these nodes; the answers by node. One that is away, or does not answer in time, has none."""
        attempt = self.attempts.get(key)
        seats = [attempt.seats[node] for node in nodes if node in attempt.seats] if attempt is not None else []
        asked = {seat.node: self._ask(seat, question) for seat in seats if seat.writer is not None}
        if asked:
            await asyncio.wait(asked.values(), timeout=ANSWER_SECONDS)
        return {node: future.result() for node, future in asked.items() if future.done() and not future.cancelled()}

    def _ask(self, seat: Seat, question: Mapping[str, Any]) -> asyncio.Future[Mapping[str, Any]]:
        self._questions += 1
        number = self._questions
        future: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        assert seat.writer is not None
        self._asked[number] = seat.writer, future
        asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._asked.pop, number, None)
        seat.tell({**question, "kind": "ask", "id": number})
        return future

    def _answered(self, writer: asyncio.StreamWriter, message: Mapping[str, Any]) -> None:
        """Only who was asked can answer."""
        asked = self._asked.get(int(message["id"]))
        if asked is not None and asked[0] is writer and not asked[1].done():
            asked[1].set_result(message)

    # ---------------------------------------------------------------- one connection

    async def attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: str) -> None:
        """Serve a connection whose HELLO said ``stepd``; returns when it ends."""
        try:
            with self._waiting_room(writer):
                found = await asyncio.wait_for(self._register(reader, writer), REGISTER_SECONDS)
            if found is not None:
                await self._serve(reader, writer, *found)
        except (TimeoutError, asyncio.IncompleteReadError, OSError):
            pass
        except (wire.WireError, ValueError, TypeError, KeyError, OverflowError) as error:
            log.warning("a stepd (%s) sent what is not understood: %s", hello, error)
        finally:
            writer.close()

    @contextmanager
    def _waiting_room(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        """Count a connection while it has proven nothing. Only the controller's own user comes otherwise than over the
        network."""
        peer = writer.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        if address:
            same = [each for each, other in self._unproven.items() if other == address]
            surplus = same if len(same) >= UNPROVEN_OF_ADDRESS else list(self._unproven)
            if len(same) >= UNPROVEN_OF_ADDRESS or len(surplus) >= UNPROVEN_IN_ALL:
                self._crowded(address)
                self._unproven.pop(surplus[0])
                surplus[0].transport.abort()
            self._unproven[writer] = address
        try:
            yield
        finally:
            self._unproven.pop(writer, None)

    def _crowded(self, address: str) -> None:
        """Write it into the log, but not for each connection."""
        if self._now() >= self._told_of_crowd + QUIET_SECONDS:
            self._told_of_crowd = self._now()
            log.warning("too many connections, the last from %s, have proven nothing; the oldest are ended", address)

    async def _register(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[Attempt, Seat] | None:
        challenge = secrets.token_hex(16)
        writer.write(_frame({"kind": "nonce", "nonce": challenge}))
        message = await read_message(reader, UNPROVEN)
        if message.get("kind") != "register":
            raise wire.WireError("the first message does not register")
        attempt = self.attempts.get((int(message["job"]), int(message["restart"])))
        if attempt is not None:
            _check_proof(attempt, challenge, message)
        seat = attempt.seats.get(str(message["node"])) if attempt is not None else None
        if attempt is None or seat is None or seat.released:
            if attempt is not None and attempt.pods:
                writer.write(_welcome(attempt, message))
            writer.write(_frame({"kind": "unknown"}))
            await writer.drain()
            return None
        if attempt.pods and not _take_seat(attempt, seat, message):
            log.warning("job %d: a second pod came for %s, and is told to end", attempt.job_id, seat.node)
            writer.write(_welcome(attempt, message) + _frame({"kind": "unknown"}))
            await writer.drain()
            return None
        if seat.writer is not None:
            seat.writer.close()
        seat.process_id = int(message.get("pid", 0))
        seat.writer = writer
        if attempt.pods:
            writer.write(_welcome(attempt, message))
            self._begin_together(attempt, seat, bool(message.get("informed")))
        elif not message.get("informed"):
            writer.write(_job(attempt))
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
                message = await read_message(reader, LARGEST_REPORT)
                if message.get("kind") == "report":
                    self._take(attempt, seat, message)
                    while len(seat.seen) - len(seat.acknowledged) > PENDING_REPORTS:  # noqa: ASYNC110  (rare)
                        await asyncio.sleep(0.05)
                elif message.get("kind") == "answer":
                    self._answered(writer, message)
                elif message.get("kind") == "address":
                    self._manager_found(attempt, str(message["manager"]))
        finally:
            if seat.writer is writer:
                seat.writer = None
                self._lost(attempt, seat)

    def _begin_together(self, attempt: Attempt, came: Seat, informed: bool) -> None:
        """A pod came: tell all of the attempt's to begin once none is missing, and whoever is there of new addresses."""
        seats = attempt.seats.values()
        if not all(seat.address for seat in seats):
            return
        waiting = [seat for seat in seats if not seat.begun or (seat is came and not informed)]
        if len(attempt.seats) > 1:
            own = {seat.host: seat.address for seat in seats if seat.host}
            peers = {"kind": "peers", "addresses": own | {seat.node: seat.address for seat in seats}}
            for seat in seats:
                if seat.writer is not None:
                    seat.tell(peers)
        attempt.begun = attempt.begun or int(self._now())
        for seat in waiting:
            if seat.writer is not None:
                seat.begun = True
                seat.writer.write(_frame({"kind": "begin", "time": attempt.begun}) if seat.described else _job(attempt))

    def _manager_found(self, attempt: Attempt, address: str) -> None:
        if attempt.manager == address or (attempt.pods and not _is_manager(attempt, address)):
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
        surplus = number > MOST_REPORTS and message.get("event") in OF_STEPS
        if number <= MOST_REPORTS:
            seat.seen.add(number)
        try:
            events = [] if surplus else events_of(attempt, seat.node, message, self._now())
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            log.warning("job %d on %s: a report is not understood and passed over: %r", attempt.job_id, seat.node, error)
            events = []
        waiting = [self.report(event) for event in events]
        task = asyncio.get_running_loop().create_task(self._acknowledge(attempt, seat, message, waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _acknowledge(self, attempt: Attempt, seat: Seat, message: Mapping[str, Any], waiting: Sequence[object]) -> None:
        for each in waiting:
            if inspect.isawaitable(each):
                await each
        if int(message["id"]) in seat.seen:
            seat.acknowledged.add(int(message["id"]))
        seat.tell({"kind": "ack", "id": message["id"]})
        if message.get("event") == "released":
            seat.released = True
            self._released(attempt, seat)


def _take_seat(attempt: Attempt, seat: Seat, message: Mapping[str, Any]) -> bool:
    """Let a pod be the one of its place; False when another was told to begin there, perhaps by an earlier controller."""
    instance, informed = str(message.get("instance", ""))[:64], bool(message.get("informed"))
    if seat.begun and instance != seat.instance:
        return False
    if attempt.started and not seat.begun and not informed and seat.node == attempt.first:
        return False
    seat.instance = instance
    seat.begun = seat.begun or informed
    seat.described = bool(message.get("described"))
    seat.address = str(ipaddress.ip_address(str(message["address"])))
    seat.host = str(message.get("host", ""))[:63]
    return True


def _check_proof(attempt: Attempt, challenge: str, message: Mapping[str, Any]) -> None:
    """Raise WireError for whoever does not hold the attempt's secret; nothing is made with it for them."""
    expected = hmac.new(attempt.secret, f"{challenge} register".encode(), "sha256").hexdigest()
    if not hmac.compare_digest(expected.encode(), str(message.get("proof")).encode("utf-8", "replace")):
        raise wire.WireError(f"wrong secret for job {attempt.job_id}")


def _welcome(attempt: Attempt, message: Mapping[str, Any]) -> bytes:
    """Shows a pod that this is the controller."""
    text = f"{str(message['nonce'])[:128]} controller"
    return _frame({"kind": "welcome", "proof": hmac.new(attempt.secret, text.encode(), "sha256").hexdigest()})


def _begun(attempt: Attempt, message: Mapping[str, Any], now: float) -> float | None:
    """When a job's pods began: as they were told, or as they say who were told by an earlier process."""
    if not attempt.pods:
        return None
    return float(attempt.begun or _number(message.get("begun", int(now)), LATEST))


def _job(attempt: Attempt) -> bytes:
    return wire.encode(wire.MESSAGE, b'{"kind":"job","time":%d,"job":%b}' % (attempt.begun, attempt.description()))


def _is_manager(attempt: Attempt, address: str) -> bool:
    """True for a TCP address of the attempt's first pod: srun of others dials it."""
    host, _, port = address.removeprefix("tcp:").rpartition(":")
    own = attempt.seats[attempt.first].address
    return address.startswith("tcp:") and host.strip("[]") == own and port.isascii() and port.isdigit() and len(port) < 6


def events_of(attempt: Attempt, node: str, message: Mapping[str, Any], now: float) -> list[Event]:
    """What a report means. Raises KeyError, TypeError, ValueError or OverflowError for one that cannot be understood."""
    job_id, restart = attempt.key
    match message["event"]:
        case "started":
            events: list[Event] = [] if attempt.started else [JobStarted(now, job_id, restart, _begun(attempt, message, now))]
            attempt.started = True
            if message.get("prolog"):
                events.append(PrologRuns(now, job_id, restart))
            if "step" in message:
                events.append(StepStarted(now, restart, step_of(job_id, message["step"], attempt.most_steps)))
            return events
        case "prologs_over":
            return [PrologRuns(now, job_id, restart, over=True)]
        case "prolog_failed":
            log.error("job %d on %s: %s", job_id, node, text := _text(message.get("message", "")))
            return [PrologFailed(now, job_id, restart, text, node, drain=not attempt.pods)]
        case "epilog_failed":
            log.error("job %d on %s: %s", job_id, node, _text(message.get("message", "")))
            return [EpilogFailed(now, job_id, restart, node, drain=not attempt.pods)]
        case "step_started":
            return [StepStarted(now, restart, step_of(job_id, message["step"], attempt.most_steps))]
        case "step_ended":
            return [StepEnded(now, restart, step_of(job_id, message["step"], attempt.most_steps))]
        case "batch_ended":
            usage = usage_of(message.get("usage", {}))
            ended = BatchEnded(
                now,
                job_id,
                restart,
                _number(message["exit_code"], HIGHEST_STATUS),
                usage,
                bool(message.get("timed_out")),
                bool(message.get("out_of_memory")),
            )
            return (
                [StepEnded(now, restart, step_of(job_id, message["step"], attempt.most_steps)), ended]
                if "step" in message
                else [ended]
            )
        case "launch_failed":
            return [LaunchFailed(now, job_id, restart, _text(message.get("message", "")), (node,))]
        case "deleted":
            attempt.deleted.add(node)
            return []
        case "released":
            return [NodesReleased(now, job_id, restart, (node,))]
        case other:
            log.warning("stepd of job %d reports %r, which is not known here", job_id, other)
            return []


def step_of(job_id: int, data: Mapping[str, Any], most: int = 40_000) -> Step:
    """A step as stepd tells of it. Much of it is what the user's srun asked for, so all is brought within bounds;
    ``most`` is MaxStepCount."""
    step_id = BATCH_STEP if data["step"] == "batch" else int(data["step"])
    if not (0 <= step_id < most or step_id in (BATCH_STEP, INTERACTIVE_STEP)):
        raise ValueError(f"step {step_id}")
    return Step(
        job_id=job_id,
        step_id=step_id,
        name=_text(data.get("name", "")),
        state=JobState[str(data.get("state", "RUNNING"))],
        start_time=_number(data["start_time"], LATEST),
        end_time=_number(data.get("end_time", 0), LATEST),
        nodes=tuple(map(_text, data.get("nodes", ()))),
        tasks=_number(data.get("tasks", 1)),
        cpus=_number(data.get("cpus", 1)),
        memory=_number(data.get("memory", 0)),
        gres=_text(data.get("gres", "")),
        exit_code=_number(data.get("exit_code", 0), HIGHEST_STATUS),
        usage=usage_of(data.get("usage", {})),
        submit_line=_text(data.get("submit_line", "")),
        distribution=_text(data.get("distribution", "")),
        cpus_per_task=_number_or_none(data.get("cpus_per_task")),
        standard_input=_text(data.get("input", "")),
        standard_output=_text(data.get("output", "")),
        standard_error=_text(data.get("error", "")),
        time_limit=_number_or_none(data.get("time_limit")),
        killed_by=_number_or_none(data.get("killed_by")),
    )


def usage_of(data: Mapping[str, Any]) -> Usage:
    """Measured usage; keys that are not known here are passed over."""
    return Usage(**_measured(Usage(), data))


def _measured(empty: Usage | Spread, data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of ``empty`` that ``data`` has, each of the type of its default."""
    values: dict[str, Any] = {}
    for each in fields(empty):
        match each.default, data.get(each.name):
            case _, None:
                pass
            case str(), value:
                values[each.name] = _text(value)
            case int(), value:
                values[each.name] = _number(value)
            case Spread(), Mapping() as value:
                values[each.name] = Spread(**_measured(Spread(), value))
    return values


def _number(value: Any, most: int = LARGEST) -> int:
    return max(0, min(int(value), most))


def _number_or_none(value: Any) -> int | None:
    return None if value is None else _number(value)


def _text(value: Any) -> str:
    return _NO_TEXT.sub("?", str(value)[:LONGEST_TEXT])


def step_secret(secret: bytes) -> str:
    """What srun proves to the step manager that it holds: enough to ask for steps, not to speak as a stepd, which root runs."""
    return hmac.new(secret, b"srun secret", "sha256").hexdigest()


def attempt_secret(secret: bytes, job_id: int, restart: int) -> bytes:
    """The secret of one attempt, from that of its job (which all elements of an array share): it is good for nothing else."""
    return hmac.new(secret, b"job %d attempt %d" % (job_id, restart), "sha256").digest()


def command_secret(secret: bytes) -> str:
    """What commands in a pod prove that they hold (see ``slurmk.stepd.messages.command_secret``)."""
    return hmac.new(secret, b"command secret", "sha256").hexdigest()


async def read_message(reader: asyncio.StreamReader, most: int = wire.MAXIMUM_FRAME) -> dict[str, Any]:
    """The next message. Raises IncompleteReadError at the end, WireError or ValueError for garbage or too much."""
    kind, length = wire.header(await reader.readexactly(5))
    if length > most:
        raise wire.WireError(f"frame of {length} bytes is larger than {most}")
    payload = await reader.readexactly(length)
    if kind != wire.MESSAGE:
        raise wire.WireError(f"frame of kind {kind} where a message was expected")
    try:
        message = json.loads(payload)
    except RecursionError:
        raise wire.WireError("JSON of too many levels") from None
    if not isinstance(message, dict):
        raise wire.WireError("not a JSON object")
    return message


def _nobody(event: Event) -> None:
    return None


def _frame(message: Mapping[str, Any]) -> bytes:
    return wire.encode(wire.MESSAGE, json.dumps(message, separators=(",", ":")).encode())
