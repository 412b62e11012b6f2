"""Steps that nobody waits for (srun --async): each is given its number at once, waits in line for what it needs, runs with its
output in files, and is the step manager's alone. They end with their job.

To srun: ``submitted`` (step), once the controller knows of the step, or ``refused`` (text).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time

from slurmk.stepd import layout, messages, output
from slurmk.stepd.processes import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional

    from slurmk.stepd.manager import Step, StepManager

    Message = Dict[str, Any]

DEFAULT_OUTPUT = "slurm-%J.out"

KNOWN_SECONDS = 30.0
"""How long srun waits at most for the controller to know of the step; a controller that is away learns of it later."""


class Submissions:
    """The asynchronous steps of one manager that have no resources yet."""

    def __init__(self, manager: StepManager) -> None:
        self._manager = manager
        self._waiting: Dict[int, asyncio.Event] = {}  # by number; set when it is cancelled

    async def serve(self, opening: Message, writer: asyncio.StreamWriter) -> None:
        """Take a step from its srun, which may go then."""
        manager, request = self._manager, opening["request"]
        if manager.over:
            _tell(writer, {"kind": "refused", "text": "Job/step already completing or completed"})
            return
        try:
            manager.lay_out(request)
        except layout.Busy:
            pass
        except layout.Refused as refused:
            _tell(writer, {"kind": "refused", "text": str(refused)})
            return
        number = request["number"] = manager.next_number()
        cancelled = self._waiting[number] = asyncio.Event()
        report = manager.node.reports.add("step_started", step=self._described(number, request, "PENDING"))
        manager.node.spawn(self._live(number, opening, cancelled))
        await manager.node.reports.acknowledged(report, KNOWN_SECONDS)
        _tell(writer, {"kind": "submitted", "step": number})

    async def _live(self, number: int, opening: Message, cancelled: asyncio.Event) -> None:
        """The whole life of a step."""
        manager, request = self._manager, opening["request"]
        state = "CANCELLED"
        step: Optional[Step] = None
        while not cancelled.is_set() and not manager.over and step is None:
            try:
                step = manager.make(request)
            except layout.Busy:
                await manager.freed(cancelled)
            except layout.Refused:  # nodes were lost meanwhile
                state = "FAILED"
                break
        self._waiting.pop(number, None)
        if step is None:
            manager.node.reports.add("step_ended", step=self._described(number, request, state))
            return
        _begin_files(manager.job, step)
        opening.setdefault("port", manager.port)
        await manager.run(step, opening)

    def cancel(self, number: Optional[int] = None) -> None:
        """Give up one that waits, or all of them."""
        for each, cancelled in self._waiting.items():
            if number in (None, each):
                cancelled.set()

    def _described(self, number: int, request: Mapping[str, Any], state: str) -> Message:
        """A step that has not begun, for the controller."""
        tasks = int(request.get("tasks") or 1)
        described = {
            "step": number,
            "name": request["name"],
            "state": state,
            "start_time": 0,
            "nodes": [share["node"] for share in self._manager.job["nodes"]],
            "tasks": tasks,
            "cpus": tasks * int(request.get("cpus_per_task") or 1),
            "submit_line": request.get("submit_line", ""),
            "cpus_per_task": request.get("cpus_per_task"),
            "time_limit": request.get("time_limit"),
            "input": request.get("input") or "",
            "output": request.get("output") or "",
            "error": request.get("error") or "",
        }
        if state == "PENDING":
            return described
        return dict(described, nodes=[], end_time=int(time.time()), exit_code=_STATUSES.get(state, 0))


def patterns(request: Mapping[str, Any]) -> Dict[str, Optional[str]]:
    """The files of an asynchronous step by stream; None: with the output."""
    named = {name: None if request.get(name) in (None, "all") else str(request[name]) for name in ("output", "error")}
    return {"output": named["output"] or DEFAULT_OUTPUT, "error": named["error"]}


def _begin_files(job: Mapping[str, Any], step: Step) -> None:
    """Have files that several nodes write to begin anew, once."""
    request = step.request
    if output.appends(request, job["request"]) or len(step.nodes) == 1:
        return
    owner = Identity(job["uid"], job["gid"], job["groups"])
    values = output.pattern_values(job, step.name, step.nodes[0], 0, 0)
    for pattern in patterns(request).values():
        if pattern and pattern != "none" and not output.differs_by_task(pattern):
            path = os.path.join(request.get("cwd") or job["directory"], output.fill(pattern, values))
            with contextlib.suppress(OSError):  # its tasks tell of it
                os.close(output.open_output(path, False, owner, int(request.get("umask", 0o022))))


_STATUSES = {"FAILED": 1 << 8}
"""Wait statuses of steps that never began."""


def _tell(writer: asyncio.StreamWriter, message: Message) -> None:
    writer.write(messages.pack(message))
