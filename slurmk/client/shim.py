"""One shim for all of Slurm's commands: it says to the controller what was typed, and serves what comes back.

Users feel its start-up time, so it imports nothing but what the interpreter has loaded already and ``_socket``, and
leaves without tearing the interpreter down. What is rarely needed (no controller answers, standard output refuses) is
in ``slurmk.client.unreachable``. Everything is bytes: arguments, environment and paths go out as they came in.

Like a C program it dies of SIGINT and SIGPIPE. A request that got no exit code is an error, never a success. Runs on
Python 3.8 and newer.
"""

import posix
import sys
from _signal import SIG_DFL, SIGINT, SIGPIPE, default_int_handler, getsignal, signal  # type: ignore[import-not-found]

from slurmk import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from typing import Callable, List, Optional, Tuple

NO_SIGPIPE = 0x4000
"""MSG_NOSIGNAL of send(2): a controller that went away is reported, it does not kill the shim."""

LONGEST_ADDRESS = 107
"""Bytes of a Unix socket's path that fit the kernel's address (unix(7))."""


LIMITS = {
    b"Max cpu time": b"CPU",
    b"Max file size": b"FSIZE",
    b"Max data size": b"DATA",
    b"Max stack size": b"STACK",
    b"Max core file size": b"CORE",
    b"Max resident set": b"RSS",
    b"Max processes": b"NPROC",
    b"Max open files": b"NOFILE",
    b"Max locked memory": b"MEMLOCK",
    b"Max address space": b"AS",
}
"""Limits that jobs take over, as /proc/PID/limits and as Slurm name them."""


class Lost(Exception):
    """The controller went away before it gave an exit code."""


class Unheard(Lost):
    """It went away before it read the request."""


def main(command: str, socket_path: bytes) -> None:
    """Run ``command`` with the process's own arguments; does not return. ``SLURMK_SOCKET`` goes before ``socket_path``."""
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, SIG_DFL)
    signal(SIGPIPE, SIG_DFL)
    posix._exit(run(command, socket_path))


def run(command: str, socket_path: bytes) -> int:
    """Send the request and serve the answers; gives the exit code."""
    closed = open_standard_streams()
    encoding = sys.getfilesystemencoding()
    arguments = [argument.encode(encoding, "surrogateescape") for argument in sys.argv[1:]]
    environment = read_environment()
    path = variable(environment, b"SLURMK_SOCKET") or socket_path
    if variable(environment, b"SLURMK_SHIM_FAULT") == b"lost":
        from slurmk.client import unreachable

        return unreachable.report_lost(command, arguments)
    awaited = variable(environment, b"SLURMK_SHIM_AWAITED")
    if awaited is not None:
        AWAITED.append(awaited)
        environment = without(environment, b"SLURMK_SHIM_AWAITED")
    data = request(command, arguments, environment, closed)
    try:
        return attempt(command, path, data, environment)
    except (OSError, Lost, wire.WireError) as error:
        from slurmk.client import unreachable

        again = unreachable.Again(lambda: attempt(command, path, data, environment), path, command, arguments, environment)
        return again.try_again(error)


def attempt(command: str, path: bytes, data: bytes, environment: bytes) -> int:
    """One connection with the whole request on it. OSError or Unheard when it can be tried again, else Lost or WireError."""
    if AWAITED:
        go = wire.encode(wire.GO)
        data = data[: -len(go)] + wire.encode(wire.AWAITED, AWAITED[-1]) + go
    if path.startswith(b"tcp:"):
        from slurmk.client import remote

        return remote.attempt(command, path, data, environment)
    connection = connect(path)
    send(connection, data)
    if command in WAITING:
        tell_signals(connection)
    return serve(command, connection)


def open_standard_streams() -> "List[int]":
    """Put /dev/null where 0, 1 or 2 is closed, so that no file of ours gets that number; gives those that were."""
    closed = []
    for descriptor in (0, 1, 2):
        try:
            posix.fstat(descriptor)
        except OSError:
            closed.append(descriptor)
            posix.open("/dev/null", posix.O_RDWR)
    return closed


def read_environment() -> bytes:
    """The environment as the process got it, each string ended by NUL.

    ``posix.environ`` is the second choice: Python's start adds LC_CTYPE to it (PEP 538) and drops what has no ``=``.
    """
    try:
        descriptor = posix.open("/proc/self/environ", posix.O_RDONLY)
        content = read_to_end(descriptor, wire.MAXIMUM_FRAME)
    except OSError:
        content = b""
    if not content:
        return wire.pack_strings([name + b"=" + value for name, value in posix.environ.items()])
    return content if content.endswith(b"\0") else content + b"\0"


def variable(environment: bytes, name: bytes) -> "Optional[bytes]":
    """The value of one variable, None when it is not set."""
    start = (b"\0" + environment).find(b"\0" + name + b"=")
    if start < 0:
        return None
    start += len(name) + 1
    return environment[start : environment.index(b"\0", start)]


def without(environment: bytes, name: bytes) -> bytes:
    """The environment without that variable."""
    return b"".join([entry + b"\0" for entry in environment.split(b"\0")[:-1] if not entry.startswith(name + b"=")])


def connect(path: bytes) -> "Socket":
    """A connection to the controller; OSError when nobody answers there."""
    from _socket import AF_UNIX, SOCK_STREAM, socket

    connection = socket(AF_UNIX, SOCK_STREAM)
    if len(path) <= LONGEST_ADDRESS:
        connection.connect(path)
        return connection
    folder, _, name = path.rpartition(b"/")
    descriptor = posix.open(folder, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        connection.connect(b"/proc/self/fd/%d/%b" % (descriptor, name))
    finally:
        posix.close(descriptor)
    return connection


def request(command: str, arguments: "List[bytes]", environment: bytes, closed: "List[int]") -> bytes:
    """All frames of the request in one."""
    try:
        directory = posix.getcwdb()
    except OSError:
        directory = b""
    encode = wire.encode
    return b"".join(
        (
            encode(wire.HELLO, b"%d %b" % (wire.VERSION, command.encode())),
            encode(wire.ARGUMENTS, wire.pack_strings(arguments)),
            encode(wire.DIRECTORY, directory),
            encode(wire.ENVIRONMENT, environment),
            encode(wire.FACTS, wire.pack_strings(facts(command, closed))),
            encode(wire.GO),
        )
    )


def facts(command: str, closed: "List[int]") -> "List[bytes]":
    """What the process knows of itself and the controller cannot see."""
    umask = posix.umask(0o077)
    posix.umask(umask)
    terminals = [descriptor for descriptor in (0, 1, 2) if descriptor not in closed and posix.isatty(descriptor)]
    found = [
        b"umask=%o" % umask,
        b"pid=%d" % posix.getpid(),
        b"sid=%d" % posix.getsid(0),
        b"resumes=1",
        b"nice=%d" % posix.nice(0),
        b"host=" + posix.uname().nodename.encode("utf-8", "surrogateescape"),
        b"tty=" + b"".join([b"%d" % descriptor for descriptor in terminals]),
    ]
    if terminals:
        found.append(b"terminal=" + terminal_name(terminals[0]))
    if 1 in terminals:
        found.append(b"columns=%d" % posix.get_terminal_size(1).columns)
    if command == "sbatch":
        found.append(b"limits=" + soft_limits())
    return found


def terminal_name(descriptor: int) -> bytes:
    """The path of a terminal; nothing where it is out of sight."""
    try:
        return posix.ttyname(descriptor).encode(sys.getfilesystemencoding(), "surrogateescape")
    except OSError:
        return b""


def soft_limits() -> bytes:
    """``CPU=unlimited,NOFILE=1024``: what the job takes over. (The module for this costs ten times as much to import.)"""
    try:
        text = read_to_end(posix.open("/proc/self/limits", posix.O_RDONLY | posix.O_CLOEXEC), 65536)
    except OSError:
        return b""
    pairs = [(LIMITS.get(line[:26].strip()), line[26:].split(None, 1)) for line in text.splitlines()]
    return b",".join([name + b"=" + words[0] for name, words in pairs if name and words])


def send(connection: "Socket", data: bytes) -> None:
    """Send all of it. A controller that refuses in the middle has said why, so then its answer is read instead."""
    view = memoryview(data)
    try:
        while view:
            view = view[connection.send(view, NO_SIGPIPE) :]
    except (BrokenPipeError, ConnectionResetError):
        return


def tell_signals(connection: "Socket") -> None:
    """Leave it to the controller what signals mean; a second one ends this process at once."""
    import signal as signals

    def signalled(number: int, frame: object) -> None:
        signal(number, SIG_DFL)
        CAME.append(number)
        send(connection, wire.encode(wire.SIGNALLED, b"%02d" % number))

    for name in TOLD:
        signal(getattr(signals, "SIG" + name), signalled)


WAITING = ("salloc", "srun")
"""Commands that wait for an allocation, whose controller says what signals mean meanwhile."""

TOLD = ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "PIPE")
"""The signals of which it is told."""


CAME: "List[int]" = []
"""Those that the controller was told of."""


AWAITED: "List[bytes]" = []
"""The jobs that are awaited, as AWAIT named them last; empty when there are none. With these the request can be made again."""


def keep_signals() -> None:
    """What comes from now on waits until the program that we become has handlers of its own, and so does what came when the
    controller had already answered."""
    import signal as signals

    signals.pthread_sigmask(signals.SIG_BLOCK, [getattr(signals, "SIG" + name) for name in TOLD])
    for number in CAME:
        posix.kill(posix.getpid(), number)


def serve(command: str, connection: "Socket", receive: "Optional[Callable[[], Tuple[int, bytes]]]" = None) -> int:
    """Do what the controller says until it gives an exit code. ``receive`` gives the frames where something was read before."""
    receive = receive or receiver(connection)
    try:
        kind, payload = receive()
    except Lost:
        raise Unheard from None
    while True:
        if kind == wire.OUTPUT or kind == wire.ERROR:
            code = write(command, 1 if kind == wire.OUTPUT else 2, payload)
            if code is not None:
                return code
        elif kind == wire.EXIT:
            return int(payload) & 0xFF
        elif kind == wire.READ:
            limit, _, path = payload.partition(b" ")
            send(connection, answer(int(limit), path))
        elif kind == wire.READ_INPUT:
            send(connection, answer(int(payload), None))
        elif kind == wire.EXECUTE:
            if command in WAITING:
                keep_signals()
            return execute(command, payload)
        elif kind == wire.AWAIT:
            AWAITED[:] = [payload] if payload else []
        elif kind != wire.WELCOME:
            raise wire.WireError("frame of kind %d is not an answer" % kind)
        kind, payload = receive()


def receiver(connection: "Socket") -> "Callable[[], Tuple[int, bytes]]":
    """A function that gives the next frame's kind and payload; it raises Lost when there is none to come."""
    buffer = bytearray()

    def fill(size: int) -> None:
        while len(buffer) < size:
            try:
                received = connection.recv(max(65536, min(size - len(buffer), 1048576)))
            except OSError:
                raise Lost from None
            if not received:
                raise Lost
            buffer.extend(received)

    def receive() -> "Tuple[int, bytes]":
        fill(5)
        kind, length = wire.header(bytes(buffer[:5]))
        fill(5 + length)
        payload = bytes(buffer[5 : 5 + length])
        del buffer[: 5 + length]
        return kind, payload

    return receive


def write(command: str, descriptor: int, data: bytes) -> "Optional[int]":
    """Write all of it; an exit code when standard output refuses. Standard error that refuses is nobody's concern."""
    view = memoryview(data)
    while view:
        try:
            view = view[posix.write(descriptor, view) :]
        except BlockingIOError:
            from slurmk.client import unreachable

            unreachable.wait_writable(descriptor)
        except OSError as error:
            if descriptor == 2:
                return None
            from slurmk.client import unreachable

            return unreachable.report_unwritable(command, error)
    return None


def answer(limit: int, path: "Optional[bytes]") -> bytes:
    """The frame that answers READ (``path``) or READ_INPUT (None)."""
    try:
        descriptor = 0 if path is None else posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        return wire.encode(wire.CONTENT, read_to_end(descriptor, limit))
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None) or 22
        return wire.encode(wire.UNREADABLE, b"%d %b" % (number, posix.strerror(number).encode("utf-8", "replace")))


def read_to_end(descriptor: int, limit: int) -> bytes:
    """At most ``limit`` bytes of an open file, which is then closed."""
    pieces = []
    try:
        while limit > 0:
            piece = posix.read(descriptor, min(limit, 1048576))
            if not piece:
                break
            pieces.append(piece)
            limit -= len(piece)
    finally:
        if descriptor:
            posix.close(descriptor)
    return b"".join(pieces)


def execute(command: str, payload: bytes) -> int:
    """Become the program that the controller names; gives an exit code only when that fails."""
    strings = wire.unpack_strings(payload)
    count = int(strings[0])
    arguments = strings[1 : count + 1]
    environment = {}
    for entry in strings[count + 1 :]:
        name, equals, value = entry.partition(b"=")
        if name and equals:
            environment[name] = value
    try:
        posix.execve(arguments[0], arguments, environment)
    except OSError as error:
        text = "%s: error: %s: %s\n" % (command, arguments[0].decode("utf-8", "replace"), error.strerror)
        write(command, 2, text.encode("utf-8", "replace"))
    return 1
