"""The contract between the controller and whatever runs its jobs.

The controller calls; the launcher answers later, by reporting events of ``slurmk.core.events``. Every call names the
job and its attempt (``Job.restarts``), and every call may be made twice: after a crash the controller repeats what it
cannot know was done. A launcher must never run one attempt's script twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from slurmk.core.events import Event, KillFlag
from slurmk.model.job import Job
from slurmk.model.job import JobFiles as JobFiles
from slurmk.model.node import Node
from slurmk.model.site import Site

STEPD_IN_POD = "/slurmk/run/stepd"
"""The program that the local parts of commands in pods are run with, as ``stepd srun``."""

Report = Callable[[Event], Awaitable[object] | None]
"""How a launcher tells the controller what happened; called from the controller's event loop, never blocks. What it gives
is done once what the event changed is on disk: only then may the launcher let go of what it knows."""


class Launcher(Protocol):
    """Brings jobs up on their nodes and keeps an eye on both."""

    async def start(self, report: Report) -> Sequence[Node]:
        """Begin to work; the nodes that there are now. Later changes are reported as NodeChanged."""
        ...

    def reconfigure(self, site: Site) -> Sequence[Node]:
        """The configuration was read anew; the nodes that there are now. Jobs that run are untouched."""
        ...

    async def recover(self, jobs: Iterable[Job]) -> frozenset[tuple[int, int]]:
        """After a restart: ``jobs`` are all that the store says hold nodes. What still runs is taken up again, what ended
        meanwhile is reported with its exit code, and what belongs to no job is ended. Returns (job id, restart) of those
        that were never launched, which the controller launches now."""
        ...

    async def launch(self, job: Job, files: JobFiles) -> None:
        """Bring up ``job.allocation``. Reports JobStarted or LaunchFailed, later BatchEnded and NodesReleased."""
        ...

    async def signal(
        self, job_id: int, restart: int, signal: int, step_id: int | None = None, flags: KillFlag = KillFlag.NONE
    ) -> None:
        """Deliver a signal to the job's steps (as scancel says), or to one step."""
        ...

    async def terminate(
        self,
        job_id: int,
        restart: int,
        kill_wait: int,
        nodes: Sequence[str],
        cause: str = "",
        ended: Mapping[str, int] | None = None,
    ) -> None:
        """End everything of the job: TERM and CONT now, KILL ``kill_wait`` seconds later. ``cause`` as in
        effects.Terminate, ``ended`` as ``bridge.description.ending`` has it. Reports NodesReleased."""
        ...

    async def shrink(self, job_id: int, restart: int, nodes: Sequence[str], lost: Sequence[str]) -> None:
        """A running job keeps only ``nodes``: its step manager is told, and what runs on ``lost`` is killed. Reports
        NodesReleased for them."""
        ...

    async def update_limit(self, job_id: int, restart: int, end_time: int | None) -> None:
        """A running job's end by its time limit moved."""
        ...

    async def ask(
        self, job_id: int, restart: int, nodes: Sequence[str], question: Mapping[str, Any]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Ask what runs of the job on these nodes (``slurmk.stepd.questions``); answers by node, of those that gave one."""
        ...

    async def cordon(self, node: str, cordoned: bool, reason: str) -> None:
        """The administrator closed or opened a node for new work."""
        ...

    async def stop(self, *, end_jobs: bool) -> None:
        """Stop working; jobs go on unless ``end_jobs``."""
        ...
