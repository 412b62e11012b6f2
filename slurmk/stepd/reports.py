"""What stepd has to tell the controller, kept until the controller has it on disk.

Results (how a step or the batch script ended) are also written to a file and synced before they are sent, so that they
survive stepd itself: the launcher reads the file of a stepd that died.
"""

from __future__ import annotations

import asyncio
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List

    Report = Dict[str, Any]

FILE = "reports"

DURABLE = ("step_ended", "batch_ended")


class Reports:
    """Reports of one stepd, in ``directory``. ``send`` sends one now if there is a connection."""

    def __init__(self, directory: str, send: Callable[[Report], None]) -> None:
        self._path = os.path.join(directory, FILE)
        self._send = send
        self._waiting: Dict[int, Report] = {}
        self._awaited: Dict[int, List[asyncio.Future[None]]] = {}
        self._number = 0

    def add(self, event: str, **fields: Any) -> int:
        """A new report; its number."""
        self._number += 1
        report: Report = dict(fields, kind="report", id=self._number, event=event)
        self._waiting[self._number] = report
        if event in DURABLE:
            self._keep(report)
        self._send(report)
        return self._number

    def _keep(self, report: Report) -> None:
        """Write it down; on a full disk the report still goes out, it is only not safe against this process's death."""
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, json.dumps(report).encode() + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            pass

    def acknowledge(self, number: int) -> None:
        self._waiting.pop(number, None)
        for future in self._awaited.pop(number, ()):
            if not future.done():
                future.set_result(None)

    async def acknowledged(self, number: int, seconds: float) -> None:
        """Wait until the controller has that report on disk, but at most so long."""
        if number in self._waiting:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._awaited.setdefault(number, []).append(future)
            await asyncio.wait({future}, timeout=seconds)

    @property
    def waiting(self) -> List[Report]:
        """All that were not acknowledged, in order."""
        return [self._waiting[number] for number in sorted(self._waiting)]
