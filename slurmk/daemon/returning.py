"""Allocations that somebody waited for when an earlier controller went away.

The client of a waiting salloc or srun has nothing but its connection: the job's nodes are of use to nobody else. A client
that finds its connection gone calls again and goes on waiting for the same job. One that has not done so within
``RETURN_SECONDS`` of the controller's start is gone, and its job ends, as Slurm ends those of clients that do not answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from slurmk.model.job import Job

log = logging.getLogger(__name__)

RETURN_SECONDS = 10.0
"""Seconds that clients have to come back; they try at least once a second."""


class Returning:
    """The jobs that were waiting without a script, until their clients come back or ``end`` is told of them. It is told again
    when it could not end them, and then says False."""

    def __init__(self, jobs: Iterable[Job], end: Callable[[tuple[int, ...]], bool]) -> None:
        self._awaited = {job.het_job_id or job.job_id for job in jobs if job.pending and not job.batch}
        self._end = end
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """From now on clients can come back."""
        if self._awaited:
            self._timer = asyncio.get_running_loop().call_later(RETURN_SECONDS, self._end_rest)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def came_back(self, job_id: int) -> None:
        """The client of that job, or of the het job that it leads, waits again."""
        self._awaited.discard(job_id)

    def _end_rest(self) -> None:
        gone = tuple(sorted(self._awaited))
        if not gone:
            return
        if not self._end(gone):
            self.start()
            return
        log.warning("nobody waits any more for these allocations, which are cancelled: %s", ", ".join(map(str, gone)))
        self._awaited.clear()
