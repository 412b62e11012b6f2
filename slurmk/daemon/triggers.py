"""Keeps strigger's triggers on disk, looks whether they have gone off, and runs their programs as who set them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slurmk.core.machine import Machine
from slurmk.core.triggers import Fired, Triggers, restored
from slurmk.daemon.durable import save_json

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
RUN_SECONDS = 300.0
"""How long a program may run before it is ended."""


class TriggerKeeper:
    """The triggers of one controller, in ``path``."""

    def __init__(self, path: Path, machine: Callable[[], Machine], now: Callable[[], float]) -> None:
        self._path = path
        self._machine = machine
        self._now = now
        self._running: set[asyncio.Task[None]] = set()
        self.triggers = self._load()

    def _load(self) -> Triggers:
        try:
            return restored(json.loads(self._path.read_text()))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.error("%s cannot be read, so there are no triggers: %s", self._path, error)
        return Triggers()

    def save(self) -> None:
        """Have what was set or cleared on disk. Raises OSError."""
        save_json(self._path, self.triggers.saved())

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        if self.triggers.rows:
            self.triggers.remember(self._machine())
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                self._look()
            except Exception:
                log.exception("triggers could not be looked at")

    def _look(self) -> None:
        before = len(self.triggers.rows)
        fired = self.triggers.due(self._machine(), self._now())
        if len(self.triggers.rows) != before:
            self.save()
        for each in fired:
            task = asyncio.get_running_loop().create_task(self._run(each))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, fired: Fired) -> None:
        trigger = fired.trigger
        words = [*trigger.program.split(), *([fired.argument] if fired.argument else [])]
        try:
            process = await asyncio.create_subprocess_exec(*words, cwd="/", **_as_user(trigger.user_id))
            async with asyncio.timeout(RUN_SECONDS):
                code = await process.wait()
            log.info("trigger %d: %s: exit %d", trigger.number, words[0], code)
        except TimeoutError:
            process.kill()
            log.warning("trigger %d: %s was ended after %d s", trigger.number, words[0], RUN_SECONDS)
        except (OSError, KeyError, ValueError) as error:
            log.warning("trigger %d: %s cannot be run: %s", trigger.number, words[0], error)


def _as_user(user_id: int) -> dict[str, Any]:
    """How the program's process is made: as that user, with nothing of the controller's own environment. Raises KeyError."""
    entry = pwd.getpwuid(user_id)
    environment = {
        "HOME": entry.pw_dir,
        "USER": entry.pw_name,
        "LOGNAME": entry.pw_name,
        "SHELL": entry.pw_shell or "/bin/sh",
        "PATH": os.environ.get("PATH", os.defpath),
    }
    found: dict[str, Any] = {
        "env": environment,
        "stdin": asyncio.subprocess.DEVNULL,
        "stdout": asyncio.subprocess.DEVNULL,
        "stderr": asyncio.subprocess.DEVNULL,
        "start_new_session": True,
    }
    if user_id != os.geteuid():
        groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
        found |= {"user": user_id, "group": entry.pw_gid, "extra_groups": groups}
    return found
