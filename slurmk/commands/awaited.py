"""Callers that waited for a job when the controller went away, and call again to go on waiting for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grammar.options import OptionError
from slurmk.commands.call import Call, Controller, Output
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import JobSelection, Kill
from slurmk.model.job import Job
from slurmk.model.states import Reason

AT_ONCE = 0.3
"""Seconds for which a job may be pending without the user being told that it is queued."""

_WAITS_FOR_OTHER_THINGS = frozenset(
    (
        Reason.JOB_HELD_USER,
        Reason.JOB_HELD_ADMIN,
        Reason.DEPENDENCY,
        Reason.DEPENDENCY_NEVER_SATISFIED,
        Reason.BEGIN_TIME,
        Reason.RESERVATION,
    )
)

_TOLD = {
    Reason.JOB_HELD_USER: Errno.JOB_HELD,
    Reason.JOB_HELD_ADMIN: Errno.JOB_HELD,
    Reason.PARTITION_CONFIG: Errno.REQUESTED_PART_CONFIG_UNAVAILABLE,
    Reason.PARTITION_NODE_LIMIT: Errno.REQUESTED_PART_CONFIG_UNAVAILABLE,
    Reason.PARTITION_DOWN: Errno.PARTITION_DOWN,
    Reason.REQ_NODE_NOT_AVAIL: Errno.NODE_NOT_AVAIL,
    Reason.RESERVATION: Errno.RESERVATION_NOT_USABLE,
}
"""Reasons that who waits for an allocation is told besides, and the words for them."""


def waits_for_others(jobs: Iterable[Job]) -> bool:
    """Whether one of the jobs waits for what no free node brings: such a job is told to wait at once."""
    return any(job.pending and job.reason in _WAITS_FOR_OTHER_THINGS for job in jobs)


def take_up(call: Call, controller: Controller) -> tuple[int, ...]:
    """The jobs that the caller waits for; none when it is new. Raises OptionError when one of them is not the caller's to wait
    for. One that is not known any more ended long ago."""
    batch = call.command == "sbatch"
    for job_id in call.awaited:
        job = controller.machine.jobs.get(job_id)
        if job is not None and (job.credentials.user_id != call.caller.user_id or job.batch is not batch):
            raise OptionError(f"{call.command}: error: {SlurmError(Errno.INVALID_JOB_ID)}", code=1)
    if call.awaited:
        controller.came_back(call.awaited[0])
    return tuple(call.awaited)


def pending_notices(jobs: Iterable[Job]) -> list[str]:
    """Why the jobs are pending, where that is more than that others are before them; each cause once."""
    found = [str(SlurmError(_TOLD[job.reason])) for job in jobs if job.pending and job.reason in _TOLD]
    return list(dict.fromkeys(found))


def not_at_once(jobs: Sequence[Job]) -> Errno:
    """Why jobs that were to start at once (--immediate) do not."""
    if waits_for_others(jobs):
        return Errno.DEPENDENCY
    return next((_TOLD[job.reason] for job in jobs if job.pending and job.reason in _TOLD), Errno.NODES_BUSY)


async def give_up(call: Call, controller: Controller, job_id: int) -> None:
    """The connection of who waited for that allocation is gone: nobody needs it, unless it is the controller that goes."""
    if not (controller.stopping and call.resumes):
        await controller.apply(Kill(controller.now(), call.caller, (JobSelection(job_id),)))


class Unsaid:
    """An ``Output`` to a caller that was told before."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def write(self, text: str | bytes) -> None:
        """Nothing is said twice."""

    def error(self, text: str | bytes) -> None:
        """Nothing is said twice."""

    async def drain(self) -> None:
        await self._output.drain()

    async def read(self, path: str, limit: int) -> bytes:
        return await self._output.read(path, limit)

    async def read_input(self, limit: int) -> bytes:
        return await self._output.read_input(limit)

    async def signalled(self) -> int:
        return await self._output.signalled()

    def await_jobs(self, job_ids: Sequence[int]) -> None:
        self._output.await_jobs(job_ids)

    def execute(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._output.execute(arguments, environment)
