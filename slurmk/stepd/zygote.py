"""Forks stepds: one process that has everything imported, so that a stepd costs a fork instead of an interpreter's start.

It reads places (JSON objects, see ``node.Node``) from MESSAGE frames on its standard input, a socket, and writes ``forked`` and
``exited`` messages there. Each stepd is detached in a session of its own. When the socket closes, the controller is gone
and the zygote ends; its stepds go on.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys

from slurmk import wire
from slurmk.stepd import cgroup, messages, node, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping

PRELOADED = ("asyncio", "pty", "termios", "traceback", "ctypes")


class Zygote:
    def __init__(self, channel: messages.Channel) -> None:
        self.channel = channel
        self.children: Dict[int, Mapping[str, Any]] = {}
        self._wake, self._wake_end = os.pipe()
        for descriptor in (self._wake, self._wake_end):
            os.set_blocking(descriptor, False)

    def run(self) -> None:
        """Serve until the other end closes."""
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        while not self.channel.closed:
            poll = select.poll()
            poll.register(self._wake, select.POLLIN)
            poll.register(self.channel, select.POLLIN | (select.POLLOUT if self.channel.waiting else 0))
            ready = dict(poll.poll())
            if self._wake in ready:
                try:
                    os.read(self._wake, 4096)
                except BlockingIOError:
                    pass
                self._reap()
            if self.channel.fileno() in ready:
                self.channel.flush()
                for kind, payload in self.channel.receive():
                    if kind == wire.MESSAGE:
                        self._fork(messages.unpack(payload))

    def _fork(self, place: Mapping[str, Any]) -> None:
        process = os.fork()
        if process:
            self.children[process] = place
            self.channel.message({"kind": "forked", "pid": process, **_name(place)})
            return
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            log = os.open(place.get("log") or "/dev/null", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
            os.dup2(null, 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            processes.close_all_but([])
            code = node.live(place)
        finally:
            os._exit(code)

    def _reap(self) -> None:
        while self.children:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                return
            place = self.children.pop(process, {})
            self.channel.message({"kind": "exited", "pid": process, "status": status, **_name(place)})


def _name(place: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: place.get(name) for name in ("job", "restart", "node")}


def main(arguments: List[str]) -> int:
    """Serve the socket that is standard input."""
    for name in PRELOADED:
        __import__(name)
    channel = messages.Channel(socket.socket(fileno=os.dup(0)))
    processes.set_name("stepd zygote")
    cgroup.hierarchies()
    gc.collect()
    gc.freeze()
    Zygote(channel).run()
    sys.stdout.flush()
    return 0
