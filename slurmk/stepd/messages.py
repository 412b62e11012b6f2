"""Messages between stepd, srun and the controller: JSON objects and task streams in frames of ``slurmk.wire``.

Whoever accepts a connection first sends a nonce; whoever dialled answers with the HMAC of that nonce and of its purpose
under a secret, which itself never travels. Step managers then prove in the same way that they are none that an impostor
put in their place. stepds hold the job's secret; srun, which is in the user's hands, holds only what ``step_secret`` makes
of it, so that it can ask for steps but not speak as a stepd.
"""

from __future__ import annotations

import collections
import hmac
import json
import os
import select
import socket
import time

from slurmk import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from typing import Any, Deque, Dict, Iterator, List, Tuple

    Message = Dict[str, Any]

BUFFERED = 512 * 1024
"""Bytes that wait for a slow peer before its sources are no longer read."""

CONNECT_SECONDS = 10
ANSWER_SECONDS = 20
"""How long a connection may take, and each answer while both sides prove what they hold."""

IMPOSTOR = "who answered is not the job's step manager"

UNPROVEN = 4096
"""Bytes of a message from somebody who has proven nothing yet."""

KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60000))
"""Options of tcp(7): seconds of silence before it is asked whether the other side is there, between questions, how many,
and milliseconds that what was sent may be unacknowledged."""


def nonce() -> str:
    """A fresh challenge."""
    return os.urandom(16).hex()


def proof(secret: str, challenge: str, role: str) -> str:
    """What shows that one holds ``secret`` (hex digits)."""
    return hmac.new(bytes.fromhex(secret), (challenge + " " + role).encode(), "sha256").hexdigest()


def step_secret(secret: str) -> str:
    """What srun holds of the job's secret."""
    return proof(secret, "srun", "secret")


def command_secret(secret: str) -> str:
    """What commands in a pod hold of the job's secret, to act as the job's user for as long as the job lives."""
    return proof(secret, "command", "secret")


def proven(secret: str, challenge: str, role: str, given: Any) -> bool:
    """True when ``given`` is the right proof."""
    return isinstance(given, str) and hmac.compare_digest(proof(secret, challenge, role).encode(), given.encode())


def hello(role: str) -> bytes:
    """The frame that opens a connection."""
    return wire.encode(wire.HELLO, b"%d %b" % (wire.VERSION, role.encode()))


def pack(message: Message) -> bytes:
    """A message as one frame."""
    return wire.encode(wire.MESSAGE, json.dumps(message, separators=(",", ":")).encode())


def unpack(payload: bytes) -> Message:
    """The object of a MESSAGE frame; WireError when it is none."""
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError):
        raise wire.WireError("not JSON") from None
    if not isinstance(message, dict):
        raise wire.WireError("not a JSON object")
    return message


def stream(number: int, task: int, data: bytes) -> bytes:
    """Output or input of a task as a frame; no data means its end."""
    return wire.encode(wire.STREAM, b"%c%b" % (number, (task & 0xFFFFFFFF).to_bytes(4, "big")) + data)


def unpack_stream(payload: bytes) -> Tuple[int, int, bytes]:
    """Stream number, task number and data of a STREAM frame."""
    if len(payload) < 5:
        raise wire.WireError("a stream frame is too short")
    return payload[0], int.from_bytes(payload[1:5], "big"), payload[5:]


class Frames:
    """Takes bytes as they arrive and gives whole frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Tuple[int, bytes]]:
        self._buffer += data
        position = 0
        try:
            while len(self._buffer) - position >= 5:
                kind, length = wire.header(bytes(self._buffer[position : position + 5]))
                if len(self._buffer) - position < 5 + length:
                    break
                payload = bytes(self._buffer[position + 5 : position + 5 + length])
                position += 5 + length
                yield kind, payload
        finally:
            del self._buffer[:position]


class Channel:
    """A non-blocking socket with frames in and a bounded queue of frames out, for programs with their own poll loop."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.closed = False
        self._deaf = False  # the peer takes no more; what it said before that is still to be read
        self._frames = Frames()
        self._outgoing: Deque[memoryview] = collections.deque()
        self.waiting = 0

    def fileno(self) -> int:
        return self.socket.fileno()

    @property
    def full(self) -> bool:
        """True when no more should be read for this peer."""
        return self.waiting > BUFFERED

    def send(self, frame: bytes) -> None:
        """Queue a frame and send what the kernel takes."""
        if self.closed or self._deaf:
            return
        self._outgoing.append(memoryview(frame))
        self.waiting += len(frame)
        if len(self._outgoing) == 1:
            self.flush()

    def message(self, message: Message) -> None:
        self.send(pack(message))

    def flush(self) -> None:
        try:
            while self._outgoing:
                sent = self.socket.send(self._outgoing[0])
                self.waiting -= sent
                if sent == len(self._outgoing[0]):
                    self._outgoing.popleft()
                else:
                    self._outgoing[0] = self._outgoing[0][sent:]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._deaf = True
            self._outgoing.clear()
            self.waiting = 0

    def finish(self, seconds: float) -> None:
        """Send no more, and pass over what comes until the peer closes: closing with something unread would make the peer
        lose what was sent last."""
        end = time.monotonic() + seconds
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            return
        while not self.closed and time.monotonic() < end:
            select.select([self.socket], [], [], max(0.0, end - time.monotonic()))
            self.receive()

    def receive(self) -> List[Tuple[int, bytes]]:
        """Frames that have arrived; sets ``closed`` at the end of the connection or on garbage."""
        try:
            data = self.socket.recv(262144)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            data = b""
        if not data:
            self.close()
            return []
        try:
            return list(self._frames.feed(data))
        except wire.WireError:
            self.close()
            return []

    def close(self) -> None:
        self.closed = True
        self._outgoing.clear()
        self.waiting = 0
        self.socket.close()


async def read_frame(reader: StreamReader, most: int = wire.MAXIMUM_FRAME) -> Tuple[int, bytes]:
    """The next frame; IncompleteReadError at the end of the connection, WireError for one of more than ``most`` bytes."""
    kind, length = wire.header(await reader.readexactly(5))
    if length > most:
        raise wire.WireError("frame of %d bytes is larger than %d" % (length, most))
    return kind, await reader.readexactly(length)


async def read_message(reader: StreamReader, most: int = wire.MAXIMUM_FRAME) -> Message:
    """The next frame, which must be a message."""
    kind, payload = await read_frame(reader, most)
    if kind != wire.MESSAGE:
        raise wire.WireError("frame of kind %d where a message was expected" % kind)
    return unpack(payload)


def connect(address: str) -> socket.socket:
    """A connection to ``unix:PATH`` or ``tcp:HOST:PORT``, or to the first of several (with | between) that answers; OSError
    when none does."""
    first, several, others = address.partition("|")
    if several:
        try:
            return connect(first)
        except OSError:
            return connect(others)
    kind, _, rest = address.partition(":")
    if kind == "unix":
        return connect_path(rest)
    host, _, port = rest.rpartition(":")
    connection = socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    notice_death(connection)
    return connection


def notice_death(connection: socket.socket) -> None:
    """Have a TCP connection end when its other side is gone without a word, as happens when a machine dies or a network is
    cut, within about a minute."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE:
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def connect_path(path: str) -> socket.socket:
    """A connection to a Unix socket, also where its path is too long for an address."""
    connection = socket.socket(socket.AF_UNIX)
    encoded = os.fsencode(path)
    try:
        if len(encoded) <= 100:
            connection.connect(encoded)
        else:
            folder, name = os.path.split(encoded)
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                connection.connect(b"/proc/self/fd/%d/%b" % (descriptor, name))
            finally:
                os.close(descriptor)
    except OSError:
        connection.close()
        raise
    return connection


def dial(address: str, role: str, opening: Message, secret: str) -> socket.socket:
    """Connect to a step manager, prove to hold the secret, see that the manager does as well, and only then say ``opening``;
    gives the socket. OSError or WireError when that fails."""
    connection = connect(address)
    try:
        connection.settimeout(ANSWER_SECONDS)
        connection.sendall(hello(role))
        challenge = str(receive_message(connection).get("nonce", ""))
        ours, kind = nonce(), str(opening["kind"])
        connection.sendall(pack({"kind": kind, "nonce": ours, "proof": proof(secret, challenge, kind)}))
        if not proven(secret, ours, "manager", receive_message(connection).get("proof")):
            raise wire.WireError(IMPOSTOR)
        connection.sendall(pack(opening))
    except (OSError, wire.WireError):
        connection.close()
        raise
    return connection


async def open_connection(address: str) -> Tuple[StreamReader, StreamWriter]:
    """As ``connect``, but others are served meanwhile; asyncio.TimeoutError when nobody answers."""
    import asyncio

    first, several, others = address.partition("|")
    if several:
        try:
            return await open_connection(first)
        except (OSError, asyncio.TimeoutError):
            return await open_connection(others)
    kind, _, rest = address.partition(":")
    if kind == "unix":
        return await asyncio.open_connection(sock=connect_path(rest))
    host, _, port = rest.rpartition(":")
    reader, writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port)), CONNECT_SECONDS)
    notice_death(writer.get_extra_info("socket"))
    return reader, writer


async def call(address: str, role: str, opening: Message, secret: str) -> Tuple[StreamReader, StreamWriter]:
    """As ``dial``, but others are served meanwhile; asyncio.TimeoutError or IncompleteReadError when nobody answers."""
    import asyncio

    reader, writer = await open_connection(address)
    try:
        writer.write(hello(role))
        challenge = str((await asyncio.wait_for(read_message(reader), ANSWER_SECONDS)).get("nonce", ""))
        ours, kind = nonce(), str(opening["kind"])
        writer.write(pack({"kind": kind, "nonce": ours, "proof": proof(secret, challenge, kind)}))
        welcome = await asyncio.wait_for(read_message(reader), ANSWER_SECONDS)
        if not proven(secret, ours, "manager", welcome.get("proof")):
            raise wire.WireError(IMPOSTOR)
        writer.write(pack(opening))
    except BaseException:
        writer.close()
        raise
    return reader, writer


def receive_message(connection: socket.socket) -> Message:
    """One message, read without taking more than it."""
    kind, length = wire.header(receive_exactly(connection, 5))
    payload = receive_exactly(connection, length)
    if kind != wire.MESSAGE:
        raise wire.WireError("frame of kind %d where a message was expected" % kind)
    return unpack(payload)


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """That many bytes; ConnectionResetError when the peer closes before."""
    pieces: List[bytes] = []
    while size:
        piece = connection.recv(min(size, 1048576))
        if not piece:
            raise ConnectionResetError("the connection was closed")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
