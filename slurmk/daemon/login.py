"""What a user's login sets: the environment below that of a job which asked for it (``--get-user-env``, ``--export=NONE`` and
lists), read where the job's processes are started, as Slurm does: from what ``su - USER`` gives.

A login may take long and may run whatever the user's start-up files say, so it runs as that user, for a bounded time, a few
at once, and its answer is kept for a minute for the other jobs of an array or a burst. One that fails is an error: a job must
not run with half of its environment.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import time
from collections.abc import Mapping
from contextlib import suppress

from slurmk.model.job import Credentials

Environment = Mapping[bytes, bytes]

LONGEST = 120.0
"""Seconds that a login may take (GetEnvTimeout of slurmd)."""

KEPT = 60.0
"""Seconds that an answer is used."""

AT_ONCE = 8
LARGEST = 16 * 1024 * 1024
"""Bytes of output that are taken."""

_MARK = b"SLURMK-ENVIRONMENT-BEGINS\n"
_COMMAND = "echo SLURMK-ENVIRONMENT-BEGINS; /usr/bin/env -0"
_OF_ITS_PROCESS = frozenset((b"PWD", b"OLDPWD"))


class LoginError(Exception):
    """The login environment of a user cannot be had."""


class LoginEnvironments:
    """Reads and remembers login environments. ``elsewhere``: jobs run on other machines, whose logins cannot be asked, so that
    a user has the least that a login sets."""

    def __init__(self, *, elsewhere: bool = False, longest: float = LONGEST) -> None:
        self._elsewhere = elsewhere
        self._longest = longest
        self._kept: dict[str, tuple[float, Environment]] = {}
        self._asked: dict[str, asyncio.Task[Environment]] = {}
        self._room = asyncio.Semaphore(AT_ONCE)

    async def of(self, credentials: Credentials) -> Environment:
        """The user's login environment. Raises LoginError."""
        if self._elsewhere:
            return least_environment(credentials)
        name = credentials.user_name
        kept = self._kept.get(name)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        asked = self._asked.get(name)
        if asked is None:
            asked = self._asked[name] = asyncio.get_running_loop().create_task(self._ask(credentials))
            asked.add_done_callback(lambda _: self._asked.pop(name, None))
        return await asyncio.shield(asked)

    async def _ask(self, credentials: Credentials) -> Environment:
        async with self._room:
            found = await self._log_in(credentials)
        now = time.monotonic()
        self._kept = {name: each for name, each in self._kept.items() if each[0] > now}
        self._kept[credentials.user_name] = (now + KEPT, found)
        return found

    async def _log_in(self, credentials: Credentials) -> Environment:
        process = await asyncio.create_subprocess_exec(
            *_words(credentials),
            cwd="/",
            env={"PATH": os.defpath},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdout is not None
        output = b""
        try:
            async with asyncio.timeout(self._longest):
                while piece := await process.stdout.read(65536):
                    output += piece
                    if len(output) > LARGEST:
                        raise LoginError(f"the login of {credentials.user_name} says too much")
                await process.wait()
        except TimeoutError:
            raise LoginError(f"the login of {credentials.user_name} took more than {self._longest:g} s") from None
        finally:
            with suppress(ProcessLookupError):  # also what the start-up files left behind
                os.killpg(process.pid, 9)
            await process.wait()
        found = parsed(output)
        if process.returncode or not found:
            raise LoginError(f"the login environment of {credentials.user_name} cannot be read")
        return found


def _words(credentials: Credentials) -> list[str]:
    """What makes a login shell of the user say its environment."""
    if os.geteuid() == 0:
        return ["/bin/su", "-", credentials.user_name, "-c", _COMMAND]
    try:
        shell = pwd.getpwuid(credentials.user_id).pw_shell
    except KeyError:
        shell = ""
    return ["/usr/bin/env", "-i", *_least(credentials), shell or "/bin/sh", "-l", "-c", _COMMAND]


def _least(credentials: Credentials) -> list[str]:
    return [os.fsdecode(name + b"=" + value) for name, value in least_environment(credentials).items()]


def parsed(output: bytes) -> Environment:
    """The variables behind the mark; what start-up files print stands before it."""
    found: dict[bytes, bytes] = {}
    for entry in output.rpartition(_MARK)[2].split(b"\0") if _MARK in output else ():
        name, equals, value = entry.partition(b"=")
        if equals and name and name not in _OF_ITS_PROCESS:
            found[name] = value
    return found


def least_environment(credentials: Credentials) -> Environment:
    """What every login of the user sets."""
    name = os.fsencode(credentials.user_name)
    found = {b"USER": name, b"LOGNAME": name}
    with suppress(KeyError):
        account = pwd.getpwuid(credentials.user_id)
        found |= {b"HOME": os.fsencode(account.pw_dir), b"SHELL": os.fsencode(account.pw_shell or "/bin/sh")}
    return found
