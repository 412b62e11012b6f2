"""Sends the mails that ``--mail-type`` asks for by the site's MailProg, as Slurm calls it: ``MailProg -s SUBJECT ADDRESS``, no
text, and the job's facts in the environment.

The program is slow, may hang, and is the site's own, so it runs beside everything else: a few at a time, each for a bounded
time, a bounded number waiting. A mail belongs to a change that is on disk already, and is tried once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from slurmk.commands.program_environment import program_environment
from slurmk.core.effects import Mail
from slurmk.core.machine import Machine

log = logging.getLogger(__name__)

DEFAULTS = ("/bin/mail", "/usr/bin/mail")
AT_ONCE = 4
MOST_WAITING = 10_000
RUN_SECONDS = 60.0
"""How long the program may take for one mail."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_ADDRESS = re.compile(r"[\w\"'][^|/<>`\\\x00-\x1f]*")


def is_address(text: str) -> bool:
    """Whether a mail program takes the text for somebody to write to: some of them take words for options, files and even
    commands, which must not be a user's to give to the controller's own process."""
    return all(_ADDRESS.fullmatch(word) for word in re.split(r"[,;\s]+", text.strip(", ;\t")))


@dataclass(frozen=True, slots=True)
class Letter:
    """One call of the program."""

    address: str
    subject: str
    environment: dict[str, str]


class Mailer:
    """Sends for one controller."""

    def __init__(self, machine: Callable[[], Machine], now: Callable[[], float], run_seconds: float = RUN_SECONDS) -> None:
        self._machine = machine
        self._now = now
        self._run_seconds = run_seconds
        self._waiting: deque[Letter] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._told_of: str = ""

    def send(self, mail: Mail) -> None:
        """See to it that the mail goes out; returns at once."""
        if not is_address(mail.address):
            log.warning("job %d: no mail is sent to %r, which is no address", mail.job.job_id, mail.address)
            return
        if len(self._waiting) >= MOST_WAITING:
            log.error("job %d: a mail is dropped, for %d wait already", mail.job.job_id, MOST_WAITING)
            return
        if self._program() is None:
            return
        environment = program_environment(self._machine(), mail.job, self._now()) | dict(mail.variables)
        self._waiting.append(Letter(mail.address, _CONTROL.sub(" ", mail.subject), environment))
        self._begin()

    async def all_sent(self) -> None:
        """Wait until nothing is on its way."""
        while self._running:
            await asyncio.wait(self._running)

    async def stop(self, seconds: float = 2.0) -> None:
        """Let those that are being sent be finished, as far as that is soon."""
        self._waiting.clear()
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _program(self) -> str | None:
        """The site's mail program; None where there is none, which is told once."""
        configured = self._machine().site.parameters.get("MailProg", "")
        choice: Sequence[str] = DEFAULTS if configured in ("", "(null)", DEFAULTS[0]) else (configured,)
        found = next((path for path in choice if os.access(path, os.X_OK)), None)
        if found is None and choice[0] != self._told_of:
            log.warning("MailProg %s cannot be run, so no mail is sent", choice[0])
        self._told_of = choice[0] if found is None else ""
        return found

    def _begin(self) -> None:
        while self._waiting and len(self._running) < AT_ONCE:
            task = asyncio.get_running_loop().create_task(self._run(self._waiting.popleft()))
            self._running.add(task)
            task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._begin()

    async def _run(self, letter: Letter) -> None:
        program = self._program()
        if program is None:
            return
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                "-s",
                letter.subject,
                letter.address,
                cwd="/",
                env=letter.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            log.warning("%s cannot be run: %s", program, error)
            return
        try:
            async with asyncio.timeout(self._run_seconds):
                code = await process.wait()
            log.info("mail to %s: %s: exit %d", letter.address, letter.subject, code)
        except TimeoutError:
            log.warning("%s took more than %g s for a mail and was ended", program, self._run_seconds)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)
