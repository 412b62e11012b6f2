"""One connection to the controller's socket: reads a request within bounds, runs the command, sends its answers.

What arrives is hostile until proven otherwise: a peer may send garbage, half a frame, or nothing for ever. Until its
request is complete it has ``REQUEST_SECONDS`` and ``REQUEST_BYTES``, and only so many of its user's connections may be in
that state. A peer that goes away takes its command with it; one that does not read holds nobody up but itself.

A connection whose HELLO says ``stepd`` is handed to the launcher.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import socket
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurmk import wire
from slurmk.commands.call import Call, Output, Unreadable
from slurmk.core.events import Caller
from slurmk.daemon.identity import Peer, peer_of

log = logging.getLogger(__name__)

REQUEST_SECONDS = 30.0
REQUEST_BYTES = 48 * 1024 * 1024
UNFINISHED_PER_USER = 256
UNPROVEN = 1024
"""Connections over the network, from wherever, that have proven nothing yet. Who has a secret proves it at once, so that one
more ends the oldest: strangers with many addresses keep nobody out."""

UNFINISHED_BYTES = 128 * 1024 * 1024
"""Bytes of all incomplete requests of one user together, so that nobody can use up what others need."""

LONGEST_ADDRESS = 107
"""Bytes of a Unix socket's path that fit the kernel's address (unix(7))."""

PIECE = 256 * 1024
"""Bytes of output that are gathered into one frame."""

NOBODY = 65534
"""The uid of whoever calls over the network and has proven nothing."""

NOT_PROVEN = "Protocol authentication error"

LONGEST_PROOF = 256
"""Bytes of a PROOF frame."""

Answer = Callable[[Call, Output], Awaitable[int]]
LookUp = Callable[[int], Awaitable[Caller]]
Attach = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Member:
    """What a living job lets its processes prove: ``secret`` is that of its commands, ``caller`` who they then are."""

    secret: bytes
    caller: Caller
    group_id: int


Recognise = Callable[[int, int], Member | None]
"""The member of an attempt (job id, restart) of a job that holds nodes; None for any other."""


def nobody(job_id: int, restart: int) -> Member | None:
    """Recognises no job."""
    return None


REQUEST_FRAMES = (wire.TOKEN, wire.ARGUMENTS, wire.DIRECTORY, wire.ENVIRONMENT, wire.FACTS, wire.AWAITED)


class Doorkeeper:
    """What all connections share: how a call is answered, and how many may be open."""

    def __init__(self, answer: Answer, look_up: LookUp, attach: Attach, most: int, recognise: Recognise = nobody) -> None:
        self.answer = answer
        self.look_up = look_up
        self.attach = attach
        self.recognise = recognise
        self.open: set[Connection] = set()
        self.unfinished: Counter[int] = Counter()
        self.unfinished_bytes: Counter[int] = Counter()
        self.unproven: dict[Connection, None] = {}  # those from the network that have yet to prove anything, oldest first
        self._most = most
        self.tasks: set[asyncio.Task[None]] = set()
        self.stepds: set[asyncio.Task[None]] = set()

    def connection(self) -> Connection:
        return Connection(self)

    def remote(self) -> Connection:
        """A connection that comes over the network."""
        return RemoteConnection(self)

    def refusal(self, account: int) -> str:
        """Why a further connection of that user or address is not taken; empty when it is."""
        if len(self.open) + len(self.stepds) >= self._most:
            return "the controller has too many connections"
        if self.unfinished[account] >= UNFINISHED_PER_USER or self.unfinished_bytes[account] > UNFINISHED_BYTES:
            return "too many requests of this user are incomplete"
        return ""

    def expect_proof(self, connection: Connection) -> None:
        """Count one from the network until it has proven something."""
        while len(self.unproven) >= min(UNPROVEN, self._most // 4):
            next(iter(self.unproven)).give_up()
        self.unproven[connection] = None

    def keep(self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]) -> asyncio.Task[None]:
        """Run it as a task that is not forgotten half-way."""
        task = asyncio.get_running_loop().create_task(work)
        among.add(task)
        task.add_done_callback(among.discard)
        return task

    async def close(self, *, for_good: bool = False) -> None:
        """End all connections of commands. Those who wait come back to the next controller, unless it is ``for_good``."""
        for connection in list(self.open):
            if for_good and connection.resumes:
                connection.send(wire.encode(wire.AWAIT))
            connection.give_up()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def let_stepds_go(self) -> None:
        """End all connections of stepds, which will call again."""
        for task in self.stepds:
            task.cancel()
        await asyncio.gather(*self.stepds, return_exceptions=True)


class Connection(asyncio.Protocol):
    """The callee's end of one shim, or the first moments of a stepd's connection."""

    remote = False

    def __init__(self, doorkeeper: Doorkeeper) -> None:
        self._doorkeeper = doorkeeper
        self._transport: asyncio.Transport
        self._peer = Peer(0, 0, 0)
        self._account = 0  # what its request is counted under until it is complete: a uid, or less than 0 for an address
        self._bytes_account = 0  # the same for its bytes
        self._buffer = bytearray()
        self._received = 0
        self._role = ""
        self._frames: dict[int, bytes] = {}
        self._unfinished = False
        self._deadline: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._question: asyncio.Future[bytes] | None = None
        self.signal: asyncio.Future[int] | None = None
        self.resumes = False
        self._writable: asyncio.Future[None] | None = None
        self._paused = False

    # ---------------------------------------------------------------- the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._peer = self._peer_of(transport)
        self._account = self._bytes_account = self._account_of(transport)
        refusal = self._doorkeeper.refusal(self._account)
        if refusal:
            self._reject(refusal)
            return
        self._doorkeeper.open.add(self)
        self._doorkeeper.unfinished[self._account] += 1
        self._unfinished = True
        self._deadline = asyncio.get_running_loop().call_later(REQUEST_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._buffer += data
        if self._unfinished:
            self._received += len(data)
            self._doorkeeper.unfinished_bytes[self._bytes_account] += len(data)
            if self._received > REQUEST_BYTES:
                self._reject("the request is too large")
                return
            if self._doorkeeper.unfinished_bytes[self._bytes_account] > UNFINISHED_BYTES:
                self._reject("too many requests of this user are incomplete")
                return
        try:
            self._take_frames()
        except (wire.WireError, ValueError) as error:
            log.info("uid %d pid %d: %s", self._peer.user_id, self._peer.process_id, error)
            self._reject(str(error))

    def _peer_of(self, transport: asyncio.Transport) -> Peer:
        return peer_of(transport.get_extra_info("socket"))

    def _account_of(self, transport: asyncio.Transport) -> int:
        return self._peer.user_id

    async def _caller(self) -> Caller:
        return await self._doorkeeper.look_up(self._peer.user_id)

    def _admit(self, role: str) -> None:
        """Raise WireError for a role that this peer may not have."""
        if role == "stepd" and self._peer.user_id not in (0, os.geteuid()):
            raise wire.WireError("stepds run as the controller's user")

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish_request()
        self._doorkeeper.open.discard(self)
        self._buffer.clear()
        for waiting in (self._question, self._writable):
            if waiting is not None and not waiting.done():
                waiting.cancel()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    # ---------------------------------------------------------------- the request

    def _take_frames(self) -> None:
        buffer = self._buffer
        while len(buffer) >= 5:
            kind, length = wire.header(bytes(buffer[:5]))
            self._check(kind, length)
            if len(buffer) < 5 + length:
                return
            payload = bytes(memoryview(buffer)[5 : 5 + length])
            del buffer[: 5 + length]
            self._take(kind, payload)
            if self._role == "stepd":
                return

    def _check(self, kind: int, length: int) -> None:
        """Raise WireError for a frame that is not worth waiting for."""
        if not self._role and (kind != wire.HELLO or length > 100):
            raise wire.WireError("the connection does not begin as slurmk's protocol does")

    def _take(self, kind: int, payload: bytes) -> None:
        if not self._role:
            self._greet(payload)
        elif self._task is None and kind in REQUEST_FRAMES:
            self._frames[kind] = payload
        elif self._task is None and kind == wire.GO:
            self._finish_request()
            self._task = self._doorkeeper.keep(self._run(), self._doorkeeper.tasks)
        elif self._question is not None and not self._question.done() and kind in (wire.CONTENT, wire.UNREADABLE):
            if kind == wire.CONTENT:
                self._question.set_result(payload)
            else:
                number, _, text = payload.partition(b" ")
                self._question.set_exception(Unreadable(int(number), text.decode("utf-8", "replace")))
        elif self._task is not None and kind == wire.SIGNALLED:
            self.signal = self.signal or asyncio.get_running_loop().create_future()
            if not self.signal.done():
                self.signal.set_result(int(payload))
        else:
            raise wire.WireError(f"a frame of kind {kind} is not expected here")

    def _greet(self, payload: bytes) -> None:
        version, _, role = payload.decode("ascii", "replace").partition(" ")
        if not version.isdigit() or int(version) < wire.OLDEST or not role.isprintable() or not role:
            raise wire.WireError("the peer speaks another version of slurmk's protocol")
        self._admit(role)
        self._role = role
        if role == "stepd":
            self._hand_over(payload.decode("ascii", "replace"))
        else:
            self._answer_hello()

    def _answer_hello(self) -> None:
        self.send(wire.encode(wire.WELCOME))

    def _hand_over(self, hello: str) -> None:
        """Let the launcher have the connection, with what has arrived of it."""
        self._finish_request()
        self._doorkeeper.open.discard(self)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=wire.MAXIMUM_FRAME + 16, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        writer = asyncio.StreamWriter(self._transport, protocol, reader, loop)
        if self._buffer:
            reader.feed_data(bytes(self._buffer))
        self._buffer = bytearray()
        self._doorkeeper.keep(self._attach(reader, writer, hello), self._doorkeeper.stepds)

    async def _attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: str) -> None:
        try:
            await self._doorkeeper.attach(reader, writer, hello)
        except (ConnectionError, asyncio.IncompleteReadError, wire.WireError) as error:
            log.info("a stepd's connection ended: %s", error)
        except Exception:
            log.exception("a stepd's connection failed")

    def _finish_request(self) -> None:
        if self._unfinished:
            self._unfinished = False
            _lessen(self._doorkeeper.unfinished, self._account, 1)
            _lessen(self._doorkeeper.unfinished_bytes, self._bytes_account, self._received)
        self._doorkeeper.unproven.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._reject("the request did not come in time")

    def _reject(self, text: str) -> None:
        """Tell the peer, in its own protocol if that is what it speaks, and end the connection."""
        name = self._role or "slurmk"
        self._transport.write(wire.encode(wire.ERROR, f"{name}: error: {text}\n".encode()) + wire.encode(wire.EXIT, b"1"))
        self._transport.close()
        self._finish_request()
        self._doorkeeper.open.discard(self)

    def give_up(self) -> None:
        """The controller stops, or has no room for it."""
        self._doorkeeper.unproven.pop(self, None)
        self._transport.abort()

    # ---------------------------------------------------------------- the answer

    async def _run(self) -> None:
        stream = CommandOutput(self)
        try:
            caller = await self._caller()
            frames, self._frames = self._frames, {}
            call = _call_of(self._role, frames, caller, self._peer, self.remote)
            self.resumes = call.resumes
            code = await self._doorkeeper.answer(call, stream)
        except wire.WireError as error:
            stream.error(f"{self._role}: error: {error}\n")
            code = 1
        except Exception:
            log.exception("%s of uid %d failed", self._role, self._peer.user_id)
            stream.error(f"{self._role}: error: Slurm internal error, contact system administrator\n")
            code = 1
        stream.finish(code)
        self._transport.close()

    def send(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drained(self) -> None:
        """Until the peer has taken most of what was sent; others are served meanwhile."""
        if self._transport.is_closing():
            raise asyncio.CancelledError
        if self._paused:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable
        else:
            await asyncio.sleep(0)

    async def ask(self, question: bytes) -> bytes:
        """Send a question and wait for the shim's answer. Raises Unreadable."""
        if self._transport.is_closing():
            raise asyncio.CancelledError
        self._question = asyncio.get_running_loop().create_future()
        self.send(question)
        return await self._question


class RemoteConnection(Connection):
    """A connection over TCP: the kernel does not know whose it is. A stepd proves to the launcher that it holds its job's
    secret. A command proves here that it holds what a living job gave to its processes, and then acts as that job's user;
    the controller proves the same to it, so that it does not tell its environment to anyone else."""

    remote = True

    def __init__(self, doorkeeper: Doorkeeper) -> None:
        super().__init__(doorkeeper)
        self._challenge = secrets.token_hex(16)
        self._member: Member | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._unfinished:
            self._doorkeeper.expect_proof(self)

    def _peer_of(self, transport: asyncio.Transport) -> Peer:
        _notice_death(transport.get_extra_info("socket"))
        return Peer(0, NOBODY, NOBODY)

    def _account_of(self, transport: asyncio.Transport) -> int:
        """Incomplete requests from one address do not count against those from others."""
        return -1 - zlib.crc32(str((transport.get_extra_info("peername") or ("",))[0]).encode())

    def _admit(self, role: str) -> None:
        """Anyone may try."""

    def _answer_hello(self) -> None:
        self.send(wire.encode(wire.CHALLENGE, self._challenge.encode()))

    def _check(self, kind: int, length: int) -> None:
        super()._check(kind, length)
        if self._role and self._member is None and (kind != wire.PROOF or length > LONGEST_PROOF):
            raise wire.WireError(NOT_PROVEN)

    def _take(self, kind: int, payload: bytes) -> None:
        if not self._role or self._member is not None:
            super()._take(kind, payload)
            return
        member, nonce = self._proven(payload)
        if member is None:
            raise wire.WireError(NOT_PROVEN)
        self._member = member
        self._doorkeeper.unproven.pop(self, None)
        self._peer = Peer(0, member.caller.user_id, member.group_id)
        _lessen(self._doorkeeper.unfinished_bytes, self._bytes_account, self._received)
        self._bytes_account = member.caller.user_id  # many pods of a user have no more room than the user
        self._doorkeeper.unfinished_bytes[self._bytes_account] += self._received
        own = hmac.new(member.secret, nonce + b" controller", "sha256").hexdigest()
        self.send(wire.encode(wire.WELCOME, own.encode()))

    def _proven(self, payload: bytes) -> tuple[Member | None, bytes]:
        """Who can prove this, and the nonce of theirs."""
        words = payload.split(b" ")
        if len(words) != 4 or not (words[0].isdigit() and words[1].isdigit()) or len(words[0]) > 10 or len(words[1]) > 10:
            return None, b""
        member = self._doorkeeper.recognise(int(words[0]), int(words[1]))
        if member is None:
            return None, b""
        text = b"%b %d %d" % (self._challenge.encode(), int(words[0]), int(words[1]))
        expected = hmac.new(member.secret, text, "sha256").hexdigest().encode()
        return (member, words[2]) if hmac.compare_digest(expected, words[3]) else (None, b"")

    async def _caller(self) -> Caller:
        assert self._member is not None
        return self._member.caller


class CommandOutput:
    """``call.Output`` over a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._kind = wire.OUTPUT
        self._pieces: list[bytes] = []
        self._size = 0
        self._program: tuple[Sequence[str], Mapping[str, str]] | None = None

    def write(self, text: str | bytes) -> None:
        self._add(wire.OUTPUT, text)

    def error(self, text: str | bytes) -> None:
        self._add(wire.ERROR, text)

    async def drain(self) -> None:
        self._flush()
        await self._connection.drained()

    async def read(self, path: str, limit: int) -> bytes:
        self._flush()
        return await self._connection.ask(wire.encode(wire.READ, b"%d %b" % (limit, _bytes(path))))

    async def read_input(self, limit: int) -> bytes:
        self._flush()
        return await self._connection.ask(wire.encode(wire.READ_INPUT, b"%d" % limit))

    async def signalled(self) -> int:
        connection = self._connection
        if connection.signal is None:
            connection.signal = asyncio.get_running_loop().create_future()
        return await asyncio.shield(connection.signal)

    def await_jobs(self, job_ids: Sequence[int]) -> None:
        if self._connection.resumes:
            self._flush()
            self._connection.send(wire.encode(wire.AWAIT, b" ".join(b"%d" % job_id for job_id in job_ids)))

    def execute(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._program = (arguments, environment)

    def finish(self, code: int) -> None:
        """Send what is left and the end."""
        self._flush()
        if self._program is None:
            self._connection.send(wire.encode(wire.EXIT, b"%d" % (code & 0xFF)))
            return
        arguments, environment = self._program
        strings = [b"%d" % len(arguments), *map(_bytes, arguments)]
        strings += [_bytes(name) + b"=" + _bytes(value) for name, value in environment.items()]
        self._connection.send(wire.encode(wire.EXECUTE, wire.pack_strings(strings)))

    def _add(self, kind: int, text: str | bytes) -> None:
        data = _bytes(text) if isinstance(text, str) else text
        if kind != self._kind:
            self._flush()
            self._kind = kind
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= PIECE:
            self._flush()

    def _flush(self) -> None:
        if not self._size:
            return
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        for start in range(0, len(data), 8 * PIECE):
            self._connection.send(wire.encode(self._kind, data[start : start + 8 * PIECE]))


LONGEST_TERMINAL = 4096
HIGHEST_PRIORITY, LOWEST_PRIORITY = -20, 19  # niceness, as Linux has it

LONGEST_LIMITS = 512
"""Characters of a caller's limits that are taken."""


def _lessen(counts: Counter[int], account: int, by: int) -> None:
    counts[account] -= by
    if counts[account] <= 0:
        del counts[account]


def listen(path: Path) -> socket.socket:
    """A Unix socket at that path that everyone may connect to, in the place of one that a dead controller left."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    address = os.fsencode(path)
    if len(address) <= LONGEST_ADDRESS:
        listening.bind(address)
    else:
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            listening.bind(b"/proc/self/fd/%d/%b" % (folder, os.fsencode(path.name)))
        finally:
            os.close(folder)
    path.chmod(0o666)
    listening.setblocking(False)
    return listening


def listen_remotely(address: str, remembered: Path) -> socket.socket:
    """A TCP socket at ``HOST:PORT``. Port 0 is any free one: the one that ``remembered`` names from an earlier start, as
    long as nobody else took it, since pods that run call there. Raises OSError."""
    host, _, port = address.rpartition(":")
    wanted = int(port) or _remembered_port(remembered)
    try:
        listening = _listen_at(host.strip("[]"), wanted)
    except OSError:
        if wanted == int(port):
            raise
        log.warning("port %d is in use by another program; stepds that called there do not find the controller", wanted)
        listening = _listen_at(host.strip("[]"), 0)
    remembered.write_text(f"{listening.getsockname()[1]}\n", encoding="ascii")
    return listening


def _remembered_port(remembered: Path) -> int:
    try:
        port = int(remembered.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
    return port if 0 < port < 65536 else 0


def _listen_at(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=1024, dualstack_ipv6=host == "::")
    listening.setblocking(False)
    return listening


KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3), (socket.TCP_USER_TIMEOUT, 60_000))
"""A peer that is gone without a word is noticed within a minute (tcp(7)); stepds do the same."""


def _notice_death(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE:
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _bytes(text: str) -> bytes:
    return os.fsencode(text) if text.isascii() else text.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _call_of(command: str, frames: Mapping[int, bytes], caller: Caller, peer: Peer, remote: bool = False) -> Call:
    missing = {wire.ARGUMENTS, wire.DIRECTORY, wire.ENVIRONMENT, wire.FACTS} - frames.keys()
    if missing:
        raise wire.WireError("the request is not complete")
    arguments = wire.unpack_strings(frames[wire.ARGUMENTS])
    if not _could_be_given(arguments):
        raise wire.WireError("arguments that no program can be given")
    facts = dict(_text(entry).partition("=")[::2] for entry in wire.unpack_strings(frames[wire.FACTS]))
    environment: dict[str, str] = {}
    for entry in _text(frames[wire.ENVIRONMENT]).split("\0"):
        name, equals, value = entry.partition("=")
        if name and equals:
            environment.setdefault(name, value)
    return Call(
        command=command,
        arguments=[_text(argument) for argument in arguments],
        directory=_text(frames[wire.DIRECTORY]),
        environment=environment,
        caller=caller,
        group_id=peer.group_id,
        umask=_number(facts.get("umask", ""), 8) & 0o777 if "umask" in facts else 0o022,
        host=facts.get("host", "")[:255],
        session_id=_number(facts.get("sid", ""), 10),
        process_id=peer.process_id,
        columns=_number(facts["columns"], 10) or None if "columns" in facts else None,
        terminals=facts.get("tty", ""),
        terminal=facts.get("terminal", "")[:LONGEST_TERMINAL],
        limits=facts.get("limits", "")[:LONGEST_LIMITS],
        nice=min(max(_number(facts.get("nice", ""), 10), HIGHEST_PRIORITY), LOWEST_PRIORITY),
        raw_environment=frames[wire.ENVIRONMENT],
        resumes=facts.get("resumes") == "1",
        awaited=_awaited(frames.get(wire.AWAITED, b"")),
        remote=remote,
    )


LONGEST_AWAITED = 4096


def _awaited(payload: bytes) -> tuple[int, ...]:
    words = payload.split(b" ") if payload else []
    if len(payload) > LONGEST_AWAITED or not all(word.isdigit() and len(word) <= 10 for word in words):
        raise wire.WireError("no list of jobs")
    return tuple(map(int, words))


LONGEST_ARGUMENT = 128 * 1024
LONGEST_ARGUMENTS = 6 * 1024 * 1024
"""Bytes of one argument, and of all with a pointer each, that Linux gives a program at most (execve(2)): a request with more
does not come from a command, and answering it would keep others waiting."""


def _could_be_given(arguments: Sequence[bytes]) -> bool:
    longest = max(map(len, arguments), default=0)
    return longest < LONGEST_ARGUMENT and sum(map(len, arguments)) + 9 * len(arguments) <= LONGEST_ARGUMENTS


def _number(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        return 0
