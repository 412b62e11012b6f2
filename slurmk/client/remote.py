"""The shim in a pod: it reaches the controller by TCP, and proves that it belongs to a living job instead of who its user is.

What it holds (the file that SLURMK_CREDENTIAL names: job, attempt and a secret made for this) never travels. Both sides
show that they have it: the controller first names a number that is good once, the shim answers with what only a holder can
make of it, and sends the request only when the controller has done the same with a number of the shim's own.
"""

import posix
import sys

from slurmk import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from typing import Tuple

CREDENTIAL = b"/slurmk/run/credential"
CONNECT_SECONDS = 10


def attempt(command: str, address: bytes, data: bytes, environment: bytes) -> int:
    """One connection to ``tcp:HOST:PORT`` with the whole request on it, as ``shim.attempt``."""
    from slurmk.client import shim

    job, secret = credential(shim.variable(environment, b"SLURMK_CREDENTIAL") or CREDENTIAL)
    connection = connect(address)
    hello = 5 + wire.header(data[:5])[1]
    shim.send(connection, data[:hello])
    receive = shim.receiver(connection)
    try:
        kind, challenge = receive()
    except shim.Lost:
        raise shim.Unheard from None
    if kind != wire.CHALLENGE:
        return shim.serve(command, connection, lambda: (kind, challenge))
    own = posix.urandom(16).hex().encode()
    shim.send(connection, wire.encode(wire.PROOF, b"%b %b %b" % (job, own, proof(secret, challenge + b" " + job))))
    try:
        kind, answer = receive()
    except shim.Lost:
        raise shim.Unheard from None
    if kind != wire.WELCOME:  # refused: the reason and an exit code follow
        frames = [(kind, answer)]
        return shim.serve(command, connection, lambda: frames.pop() if frames else receive())
    if answer != proof(secret, own + b" controller"):
        raise wire.WireError("who answered is not the controller")
    shim.send(connection, data[hello:])
    return shim.serve(command, connection, receive)


def credential(path: bytes) -> "Tuple[bytes, bytes]":
    """``JOB RESTART`` and the secret; OSError when it cannot be read."""
    from slurmk.client import shim

    words = shim.read_to_end(posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC), 4096).split()
    if len(words) != 3:
        raise wire.WireError("%s is no credential" % path.decode(sys.getfilesystemencoding(), "replace"))
    return b"%b %b" % (words[0], words[1]), bytes.fromhex(words[2].decode("ascii", "replace"))


def connect(address: bytes) -> "Socket":
    """A TCP connection; OSError when nobody answers there."""
    from _socket import IPPROTO_TCP, SOCK_STREAM, TCP_NODELAY, getaddrinfo, socket

    host, _, port = address[4:].rpartition(b":")
    error = OSError(22, posix.strerror(22))
    for family, kind, protocol, _, target in getaddrinfo(host.strip(b"[]"), port, 0, SOCK_STREAM):
        connection = socket(family, kind, protocol)
        connection.settimeout(CONNECT_SECONDS)
        try:
            connection.connect(target)
        except OSError as refused:
            error = refused if refused.errno else OSError(110, posix.strerror(110))  # one that took too long has no number
            continue
        connection.settimeout(None)
        connection.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        return connection
    raise error


def proof(secret: bytes, text: bytes) -> bytes:
    """The HMAC of a text, as hexadecimal digits."""
    import hmac

    return hmac.new(secret, text, "sha256").hexdigest().encode()
