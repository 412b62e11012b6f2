"""sattach's local part: shows what the tasks of a running step write, beside their srun, and gives them its own input.

``sattach SETTINGS``: a JSON object (step, name, label, quiet, and the tasks that input, output and errors are of). Where to
ask is in SLURMK_STEP_MANAGER and SLURMK_JOB_SECRET, as for srun.
"""

from __future__ import annotations

import json
import os
import select
import sys

from slurmk import wire
from slurmk.stepd import messages, texts
from slurmk.stepd.srun import ALL_TASKS, PIECE, Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional


class Sattach:
    """One sattach."""

    def __init__(self, settings: Mapping[str, Any], channel: messages.Channel) -> None:
        self.settings = settings
        self.channel = channel
        self.sinks: Dict[int, Sink] = {}
        self.statuses: Dict[int, int] = {}
        self.input: Optional[int] = 0
        self.ended = False
        self.refused = ""

    def run(self) -> int:
        """Gives the exit code: the highest of the tasks'."""
        while not self.ended and not self.channel.closed:
            poll = select.poll()
            poll.register(self.channel, select.POLLIN | (select.POLLOUT if self.channel.waiting else 0))
            if self.input is not None and self.sinks and not self.channel.full:
                poll.register(self.input, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self.channel.fileno() in ready:
                self._listen()
            if self.input is not None and self.input in ready:
                self._feed()
        if self.refused:
            say("error: Could not get job step info: %s" % self.refused)
            return 1
        for rank, status in sorted(self.statuses.items()):
            if status:
                text = texts.ending(status)
                say("error: task %d %s" % (rank, text[:1].lower() + text[1:]))
        return max(map(texts.exit_code, self.statuses.values()), default=0)

    def _listen(self) -> None:
        self.channel.flush()
        for kind, payload in self.channel.receive():
            if kind == wire.STREAM:
                stream, rank, data = messages.unpack_stream(payload)
                if stream in self.sinks:
                    self.sinks[stream].take(rank, data)
            elif kind == wire.MESSAGE:
                self._hear(messages.unpack(payload))

    def _hear(self, message: Mapping[str, Any]) -> None:
        kind = message.get("kind")
        if kind == "attached":
            tasks = sum(map(len, message["ranks"]))
            width = len(str(max(1, tasks) - 1)) if self.settings.get("label") else 0
            for stream in (1, 2):
                self.sinks[stream] = Sink(stream, width, True, self.settings.get(("", "output", "error")[stream]))
        elif kind == "exit":
            self.statuses[int(message["rank"])] = int(message["status"])
        elif kind == "refused":
            self.refused = str(message["text"])
            self.ended = True
        elif kind == "ended":
            self.ended = True

    def _feed(self) -> None:
        """What is typed here goes to the tasks, and so does its end: they have no more input then, even from their srun."""
        assert self.input is not None
        try:
            data = os.read(self.input, PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        rank = self.settings.get("input")
        self.channel.send(messages.stream(0, ALL_TASKS if rank is None else int(rank), data))
        if not data:
            self.input = None


def say(text: str) -> None:
    """A line on standard error, as sattach says it."""
    try:
        os.write(2, ("sattach: %s\n" % text).encode("utf-8", "surrogateescape"))
    except OSError:
        pass


def main(arguments: List[str]) -> int:
    """``SETTINGS``."""
    if len(arguments) != 1:
        print("usage: stepd sattach SETTINGS", file=sys.stderr)
        return 2
    settings = json.loads(arguments[0])
    address, secret = os.environ.get("SLURMK_STEP_MANAGER", ""), os.environ.get("SLURMK_JOB_SECRET", "")
    try:
        connection = messages.dial(address, "srun", {"kind": "attach", "step": settings["step"]}, secret)
    except (OSError, ValueError, wire.WireError):
        say("error: Could not get job step info: Invalid job id specified")
        return 1
    return Sattach(settings, messages.Channel(connection)).run()
