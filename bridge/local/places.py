"""The directories of jobs below the cluster's directory, and what they tell of stepds that this process did not start.

``jobs/JOB.RESTART/`` holds ``description`` (what stepd is told) and one folder for each node, with ``started`` (made and
locked by its stepd for as long as it lives), ``reports`` (results that stepd wrote down) and the batch script.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

MARK = "SLURMK_MARK"


class Places:
    """``root`` is the cluster's directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.jobs = root / "jobs"

    def prepare(self) -> None:
        """Make what must be there."""
        self.jobs.mkdir(exist_ok=True)
        self.jobs.chmod(0o711)

    def job(self, job_id: int, restart: int) -> Path:
        return self.jobs / f"{job_id}.{restart}"

    def node(self, job_id: int, restart: int, node: str) -> Path:
        return self.job(job_id, restart) / node.replace("/", "_")

    def make(self, job_id: int, restart: int, nodes: tuple[str, ...], description: bytes) -> None:
        """Directories of one attempt. Raises OSError."""
        folder = self.job(job_id, restart)
        for each in (folder, *(self.node(job_id, restart, node) for node in nodes)):
            each.mkdir(exist_ok=True)
            each.chmod(0o711)
        temporary = folder / ".description"
        with open(temporary, "wb", opener=_private) as file:
            file.write(description)
        temporary.replace(folder / "description")

    def description(self, job_id: int, restart: int) -> bytes:
        """What stepd is told. Raises OSError."""
        return (self.job(job_id, restart) / "description").read_bytes()

    def manager(self, job_id: int, restart: int, first: str) -> str:
        """Where the step manager listens, as its stepd wrote it down; empty when it did not."""
        with suppress(OSError):
            return (self.node(job_id, restart, first) / "manager").read_text()
        return ""

    def started(self, job_id: int, restart: int, node: str) -> bool:
        """True when a stepd has been there."""
        return (self.node(job_id, restart, node) / "started").exists()

    def alive(self, job_id: int, restart: int, node: str) -> bool:
        """True while that stepd lives, that is, while it holds its lock."""
        try:
            descriptor = os.open(self.node(job_id, restart, node) / "started", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    def kill(self, job_id: int, restart: int, node: str) -> None:
        """Kill a stepd that lives; its keepers notice, and end the tasks."""
        if self.alive(job_id, restart, node):
            with suppress(OSError, ValueError, IndexError):
                os.kill(int((self.node(job_id, restart, node) / "started").read_text().split()[0]), signal.SIGKILL)

    def reports(self, job_id: int, restart: int, node: str) -> list[dict[str, Any]]:
        """Results that a stepd wrote down; a line that it did not finish is passed over."""
        found = []
        with suppress(OSError):
            for line in (self.node(job_id, restart, node) / "reports").read_bytes().splitlines():
                with suppress(ValueError):
                    found.append(json.loads(line))
        return found

    def groups(self, job_id: int, restart: int, node: str) -> Path:
        """The file that names the control groups of a node; there is none where there are no groups."""
        return self.node(job_id, restart, node) / "groups"

    def log(self, job_id: int, restart: int, node: str) -> str:
        """The last of what a stepd wrote to its standard error."""
        with suppress(OSError):
            return (self.node(job_id, restart, node) / "log").read_text(errors="replace")[-2000:]
        return ""

    def attempts(self) -> Iterator[tuple[int, int]]:
        """Job id and restart of all directories."""
        for path in list(self.jobs.iterdir()):
            job, _, restart = path.name.partition(".")
            if job.isdigit() and restart.isdigit():
                yield int(job), int(restart)

    def remove(self, job_id: int, restart: int) -> None:
        """Forget an attempt."""
        shutil.rmtree(self.job(job_id, restart), ignore_errors=True)

    def mark(self, job_id: int, restart: int, node: str) -> str:
        """The value of SLURMK_MARK in that part of the job's processes."""
        return f"{self.root}:{job_id}:{restart}:{node}"

    def kill_orphans(self, job_id: int, restart: int, node: str) -> int:
        """Kill what a stepd that died left running, found by its mark; gives how many there were."""
        wanted = f"{MARK}={self.mark(job_id, restart, node)}".encode()
        killed = 0
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            with suppress(OSError):
                if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    os.kill(int(name), signal.SIGKILL)
                    killed += 1
        return killed


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
