"""Whom a job's processes may act as when they call over the network: its user, and only while the job holds nodes.

What they prove that they hold is made from the secret of the job's present attempt, for commands alone. When the attempt
is over, or the job gone, it is good for nothing.
"""

from __future__ import annotations

from typing import Protocol

from bridge.link import attempt_secret, command_secret
from slurmk.core.machine import Machine
from slurmk.core.state import holds_nodes
from slurmk.daemon.connection import Member
from slurmk.daemon.identity import Identities
from slurmk.model.job import Job

MOST = 10_000
"""Attempts whose secrets are remembered."""


class Jobs(Protocol):
    """What this needs of the controller."""

    @property
    def machine(self) -> Machine: ...

    def secret_of(self, job: Job) -> bytes:
        """The secret that the job was given when it was submitted."""
        ...


class Members:
    """Finds the member of an attempt."""

    def __init__(self, jobs: Jobs, identities: Identities) -> None:
        self._jobs = jobs
        self._identities = identities
        self._secrets: dict[tuple[int, int], bytes] = {}

    def find(self, job_id: int, restart: int) -> Member | None:
        """The member, None where that attempt holds no nodes."""
        job = self._jobs.machine.jobs.get(job_id)
        if job is None or job.restarts != restart or not holds_nodes(job):
            self._secrets.pop((job_id, restart), None)
            return None
        return Member(self._secret(job), self._identities.of_job(job.credentials), job.credentials.group_id)

    def _secret(self, job: Job) -> bytes:
        key = job.job_id, job.restarts
        if key not in self._secrets:
            if len(self._secrets) >= MOST:
                self._secrets.clear()
            secret = attempt_secret(self._jobs.secret_of(job), *key)
            self._secrets[key] = bytes.fromhex(command_secret(secret))
        return self._secrets[key]
