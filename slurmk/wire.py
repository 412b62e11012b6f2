"""The one wire: framed messages between the shims, srun, stepd and the controller.

A frame is a kind (1 byte), a length (4 bytes, big endian) and that many bytes. The first frame of a connection is HELLO,
``b"VERSION ROLE"``, where ROLE is the name of a command, ``stepd`` or ``srun``; a peer of another release is served as
long as its version is at least ``OLDEST``. Lists of strings travel as their bytes, each ended by NUL, which none of
them can hold; structured messages between stepd, srun and the controller are JSON objects in MESSAGE frames. Nothing
that arrives is evaluated or unpickled.

This module is imported by the shims, whose start-up time users feel, and by stepd, which runs on the Python of any
image: it imports nothing, and is written for Python 3.8.
"""

VERSION = 1
OLDEST = 1

MAXIMUM_FRAME = 32 * 1024 * 1024
"""Bytes of payload that a reader accepts; a script may have 4 MiB, an environment more."""

# The shim says, in this order, before it waits for answers:
HELLO = 1
TOKEN = 2  # a JWT, on a network connection
ARGUMENTS = 3  # the command's arguments without its name
DIRECTORY = 4  # its working directory
ENVIRONMENT = 5  # NAME=VALUE, each ended by NUL
FACTS = 6  # name=value, each ended by NUL: umask (octal), pid, sid, host, columns, tty (of 0, 1, 2, as digits), terminal,
# resumes (1: it knows AWAIT)
AWAITED = 12  # only when it calls again after AWAIT: what that said
GO = 7  # the request is complete
# On a network connection from inside a job, after HELLO and CHALLENGE, before all else:
PROOF = 11  # "JOB RESTART NONCE HMAC": that it holds the job's secret for commands
# and later, when asked:
CONTENT = 8  # the bytes that READ or READ_INPUT asked for
UNREADABLE = 9  # "ERRNO text": they could not be read
SIGNALLED = 10  # decimal: its process got this signal while it waits (from commands that have to tell their end)

# The controller says to a command, before it does anything for it:
WELCOME = 26  # who got no WELCOME can ask again; whoever did does not know what was done
CHALLENGE = 27  # to HELLO on a network connection: a nonce; WELCOME then has the HMAC of the nonce in PROOF

# The controller answers with any number of these, ended by EXIT or EXECUTE:
OUTPUT = 20  # bytes for standard output
ERROR = 21  # bytes for standard error
READ = 22  # "LIMIT path": read that file, relative to the working directory, of at most LIMIT bytes
READ_INPUT = 23  # "LIMIT": read standard input to its end
EXECUTE = 24  # count of arguments NUL arguments… environment…: become that program (srun's and salloc's local part)
EXIT = 25  # decimal exit code
AWAIT = 28  # "JOB JOB…": it waits for these; when the connection goes, ask again, with AWAITED. None: no longer

# Between stepd, srun and the controller, after HELLO:
MESSAGE = 40  # a JSON object; "kind" says what it is
STREAM = 41  # output or input of tasks: stream (1 byte: 0, 1, 2), task number (4 bytes), bytes; no bytes = end


class WireError(Exception):
    """What arrived is not of this protocol, or larger than allowed."""


def encode(kind: int, payload: bytes = b"") -> bytes:
    """One frame as bytes."""
    if len(payload) > MAXIMUM_FRAME:
        raise WireError("frame of %d bytes is larger than %d" % (len(payload), MAXIMUM_FRAME))
    return b"%c%b%b" % (kind, len(payload).to_bytes(4, "big"), payload)


def header(data: bytes) -> "tuple[int, int]":
    """Kind and payload length of the 5 bytes that open a frame; WireError when it would be too large."""
    length = int.from_bytes(data[1:5], "big")
    if length > MAXIMUM_FRAME:
        raise WireError("frame of %d bytes is larger than %d" % (length, MAXIMUM_FRAME))
    return data[0], length


def pack_strings(strings: "list[bytes]") -> bytes:
    """A list of byte strings, each ended by NUL."""
    return b"".join([string + b"\0" for string in strings])


def unpack_strings(payload: bytes) -> "list[bytes]":
    """The inverse of ``pack_strings``."""
    if payload and not payload.endswith(b"\0"):
        raise WireError("a list of strings does not end with NUL")
    return payload.split(b"\0")[:-1]
