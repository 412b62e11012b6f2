"""The planner in a process of its own: what its parent, the controller, tells it comes and goes over one socket.

It mirrors the controller's snapshot and keeps the forecast of the last plan, so each order brings only what has changed.
Full plans and questions are made in threads beside the one that listens, which reacts. When the controller is gone, so is this.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path

from slurmk.daemon.memory import NEVER, PERIOD, set_aside
from slurmk.planner.kept import Kept
from slurmk.planner.offers import offers_of
from slurmk.planner.plan import forecast
from slurmk.planner.snapshot import Plan
from slurmk.planner.transfer import Mirror, packed, pieces, unpacked, unpacked_question
from slurmk.planner.warm import warm_up

HEADER = struct.Struct(">BIQ")
"""What stands before each message: kind, number of the order that it belongs to, and how many bytes follow."""

SWITCH_SECONDS = 0.0005
"""How long a full plan may keep a reaction from running."""

EXPENDABLE = 500
"""When memory runs out, this process goes before the controller and its jobs: it is started again (proc(5), oom_score_adj)."""


class Kind(IntEnum):
    """What a message says. Those of the controller first."""

    FOLLOW = 1  # part of a difference
    REACT = 2
    FULL = 3
    ADOPT = 4
    ASK = 5
    READY = 10
    PART = 11
    LAST = 12
    FAILED = 13  # with a text


class Channel:
    """The socket to the controller. Any thread may send."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._file = connected.makefile("rb")
        self._sending = threading.Lock()

    def receive(self) -> tuple[Kind, int, bytes]:
        """The next message. Raises EOFError when the controller is gone."""
        kind, number, length = HEADER.unpack(self._read(HEADER.size))
        return Kind(kind), number, self._read(length)

    def _read(self, length: int) -> bytes:
        data = self._file.read(length)
        if len(data) < length:
            raise EOFError
        return data

    def send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        """One message, whole."""
        with self._sending:
            self._socket.sendall(HEADER.pack(kind, number, len(payload)) + payload)


class Worker:
    """Carries out the orders that come over the channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._mirror = Mirror()
        self._kept = Kept()
        self._told: Plan | None = None  # of the full plan that is not taken over yet
        self._collected = time.monotonic()

    def serve(self) -> None:
        """Until the controller is gone."""
        while True:
            kind, number, payload = self._channel.receive()
            if kind is Kind.FOLLOW:
                self._mirror.follow(unpacked(payload))
            elif kind is Kind.ADOPT:
                self._adopt()
            elif kind is Kind.REACT:
                self._answer(number, self._react)
            elif kind is Kind.FULL:
                self._begin(number)
            elif kind is Kind.ASK:
                self._ask(number, payload)

    def _answer(self, number: int, work: Callable[[], Iterable[bytes]]) -> None:
        """Do the work and send what comes of it, in parts."""
        try:
            for part in work():
                self._channel.send(Kind.PART, number, part)
            self._channel.send(Kind.LAST, number)
        except OSError:
            os._exit(0)  # nobody is there to answer
        except Exception:
            self._channel.send(Kind.FAILED, number, traceback.format_exc().encode())

    def _react(self) -> Iterable[bytes]:
        snapshot = self._mirror.snapshot()
        self._kept.follow(snapshot.changed)
        plan = self._kept.reaction(snapshot)()
        if plan is None:
            return ()
        self._mirror.follow_told(plan.outlooks)
        return map(packed, pieces(plan))

    def _begin(self, number: int) -> None:
        snapshot = self._mirror.snapshot()
        self._kept.follow(snapshot.changed)
        self._kept.begin()

        def work() -> Iterable[bytes]:
            made = forecast(snapshot)
            offers_of(made)  # so that no reaction has to
            self._told = made.plan()
            self._kept.finish(made)
            return map(packed, pieces(self._told))

        threading.Thread(target=self._answer, args=(number, work), name="planner", daemon=True).start()

    def _adopt(self) -> None:
        self._kept.adopt()
        if self._told is not None:
            self._mirror.follow_told(self._told.outlooks)
            self._told = None
        if time.monotonic() >= self._collected + PERIOD:
            set_aside()
            self._collected = time.monotonic()

    def _ask(self, number: int, payload: bytes) -> None:
        snapshot = self._mirror.snapshot()
        self._kept.follow(snapshot.changed)
        question, values, within = unpacked_question(payload, snapshot)

        def work() -> Iterable[bytes]:
            until = None if within is None else time.monotonic() + within
            yield packed(question(*values, lambda: until is None or time.monotonic() < until))

        threading.Thread(target=self._answer, args=(number, work), name="question", daemon=True).start()


def main() -> None:
    """``python -m slurmk.daemon.planner_process DESCRIPTOR``: that of the socket to the parent."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the controller's end is the only reason to end
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(EXPENDABLE), encoding="ascii")
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*gc.get_threshold()[:2], NEVER)
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    warm_up()
    set_aside()
    try:
        channel.send(Kind.READY)
        Worker(channel).serve()
    except (EOFError, OSError):
        os._exit(0)  # whatever the threads do


if __name__ == "__main__":
    main()
