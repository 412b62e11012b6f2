"""PrologSlurmctld and EpilogSlurmctld of slurm.conf: what the site runs beside the controller when a job is given its nodes,
and when it has ended.

They run as SlurmUser where the controller is root's, else as the controller does, with variables about the job and nothing
else; several one after the other in the order of slurm.conf, until one fails. Nothing of a job is launched before its
prolog is over; a job that is ended meanwhile ends its prolog.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from signal import SIGKILL, SIGTERM
from typing import Any

from slurmk.commands.program_environment import program_environment
from slurmk.core.machine import Machine
from slurmk.model.job import Job

log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds between TERM and KILL for a program that is ended."""

AT_ONCE = 64
"""Programs that run at the same time; the others wait."""


class SitePrograms:
    """Runs them for one controller."""

    def __init__(self, machine: Callable[[], Machine], now: Callable[[], float]) -> None:
        self._machine = machine
        self._now = now
        self._room = asyncio.Semaphore(AT_ONCE)
        self._prologs: dict[int, asyncio.Task[bool]] = {}
        self._cut_off: set[asyncio.Task[bool]] = set()

    async def prolog(self, job: Job) -> bool | None:
        """Run PrologSlurmctld; whether it went well, None when the job was ended meanwhile."""
        site = self._machine().site
        if not site.prolog_slurmctld:
            return True
        run = self._run("PrologSlurmctld", "prolog_slurmctld", site.prolog_slurmctld, job, site.prolog_timeout)
        task = self._prologs[job.job_id] = asyncio.get_running_loop().create_task(run)
        try:
            return await task
        except asyncio.CancelledError:
            if task not in self._cut_off:
                raise
            return None
        finally:
            self._cut_off.discard(task)
            self._prologs.pop(job.job_id, None)

    def cut_off(self, job_id: int) -> None:
        """The job ends: its prolog is ended too."""
        task = self._prologs.get(job_id)
        if task is not None:
            self._cut_off.add(task)
            task.cancel()

    async def epilog(self, job: Job) -> None:
        """Run EpilogSlurmctld. How it goes changes nothing."""
        site = self._machine().site
        if job.pending and not job.exit_code >> 8:  # it is queued again, but not for its script's exit code
            job = replace(job, restarts=job.restarts + 1)
        await self._run("EpilogSlurmctld", "epilog_slurmctld", site.epilog_slurmctld, job, site.epilog_timeout)

    async def _run(self, key: str, context: str, paths: Sequence[str], job: Job, seconds: int | None) -> bool:
        over = context == "epilog_slurmctld"
        environment = program_environment(self._machine(), job, self._now(), over=over) | {"SLURM_SCRIPT_CONTEXT": context}
        del environment["SLURM_JOB_STATE"]  # which is for the mail program alone
        async with self._room:
            for path in paths:
                log.debug("%s: job %d: %s", key, job.job_id, path)
                status = await _run_one(path, environment, self._machine().site.slurm_user, seconds)
                if status:
                    log.error("%s: job %d: %s: %s", key, job.job_id, path, status)
                    return False
        return True


async def _run_one(path: str, environment: Mapping[str, str], user: str, seconds: int | None) -> str:
    """Run one program; how it failed, "" when it did not."""
    try:
        process = await asyncio.create_subprocess_exec(path, cwd="/", env=environment, start_new_session=True, **_as_user(user))
    except (OSError, ValueError, KeyError) as error:
        return f"it cannot be run: {error}"
    try:
        async with asyncio.timeout(seconds):
            code = await process.wait()
    except TimeoutError:
        return f"it took more than {seconds} s and was ended"
    finally:
        await _end(process)
    return "" if code == 0 else f"exit status {code}" if code > 0 else f"killed by signal {-code}"


async def _end(process: asyncio.subprocess.Process) -> None:
    """End what runs of it, and what it left in its process group."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), PATIENCE)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, SIGKILL)


def _as_user(name: str) -> dict[str, Any]:
    """How the process is made: as SlurmUser, if it can be. Raises KeyError for nobody's name."""
    null = asyncio.subprocess.DEVNULL
    found: dict[str, Any] = {"stdin": null, "stdout": null, "stderr": null, "umask": 0o022}
    if os.geteuid() == 0 and name != "root":
        entry = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
        groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
        found |= {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups}
    return found
