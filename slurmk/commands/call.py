"""What a command is given and what it may ask of the controller.

A command module has ``async def run(call, controller, output) -> int``; the number is the exit code. It parses with
``grammar``'s tables, reads ``controller.machine`` and the store, and changes things only by ``controller.apply``. It
yields to the event loop often enough while it prints much (``await output.drain()``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from bridge.launcher import JobFiles
from slurmk import SLURM_VERSION, __version__
from slurmk.core.effects import Accepted, Refused
from slurmk.core.events import Caller, Event, Submit
from slurmk.model.job import Job

if TYPE_CHECKING:
    from accounting.store import Store
    from slurmk.commands.statistics import Statistics
    from slurmk.core.crontabs import Crontabs
    from slurmk.core.machine import Machine
    from slurmk.core.triggers import Triggers
    from slurmk.planner.snapshot import Outlook
    from slurmk.planner.why import Explanation, Question

VERSION_TEXT = f"slurm {SLURM_VERSION} (slurmk {__version__})"
"""What ``--version`` prints: clients read the first number."""


@dataclass(frozen=True, slots=True)
class Call:
    """One run of a command. Text that was not UTF-8 is kept by surrogate escapes, so it goes out as it came in."""

    command: str
    arguments: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    caller: Caller
    group_id: int
    umask: int = 0o022
    host: str = ""
    session_id: int = 0
    process_id: int = 0
    columns: int | None = None
    nice: int = 0  # its niceness
    limits: str = ""  # its soft limits, from sbatch alone: NOFILE=1024,CPU=unlimited
    terminals: str = ""  # which of 0, 1, 2 are terminals
    terminal: str = ""  # the path of the first of them
    raw_environment: bytes = field(default=b"", repr=False)
    resumes: bool = False  # its process calls again when the controller goes away while it waits
    awaited: Sequence[int] = ()  # the jobs that it waited for when that happened
    remote: bool = False  # it runs in a pod, where none of this machine's files are


class Failure(Exception):
    """Ends the command: ``text`` for standard error, and the exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class Unreadable(Exception):
    """The shim could not read the file; ``errno`` and the operating system's text."""

    def __init__(self, errno: int, text: str) -> None:
        super().__init__(text)
        self.errno = errno
        self.text = text


class Output(Protocol):
    """The caller's side: its streams, and the questions that only its process can answer."""

    def write(self, text: str | bytes) -> None:
        """To standard output."""
        ...

    def error(self, text: str | bytes) -> None:
        """To standard error."""
        ...

    async def drain(self) -> None:
        """Let written bytes go out, and others be served."""
        ...

    async def read(self, path: str, limit: int) -> bytes:
        """A file as the caller's process reads it. Raises Unreadable."""
        ...

    async def read_input(self, limit: int) -> bytes:
        """The caller's standard input to its end. Raises Unreadable."""
        ...

    async def signalled(self) -> int:
        """Waits for a signal to the caller's process and gives its number. Only salloc's shim tells of them."""
        ...

    def await_jobs(self, job_ids: Sequence[int]) -> None:
        """From now on the caller waits for these jobs only: should the controller go away, its process calls again, with
        them as ``Call.awaited``."""
        ...

    def execute(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Have the caller's process become that program; ends the call whatever ``run`` returns."""
        ...


class Controller(Protocol):
    """What the daemon offers to commands."""

    @property
    def machine(self) -> Machine:
        """The state, to be read only."""
        ...

    @property
    def store(self) -> Store: ...

    @property
    def triggers(self) -> Triggers:
        """What strigger set; ``save_triggers`` after a change."""
        ...

    def save_triggers(self) -> None:
        """Have the triggers on disk. Raises OSError."""
        ...

    @property
    def crontabs(self) -> Crontabs:
        """scrontab's tables; ``save_crontabs`` after a change."""
        ...

    def save_crontabs(self) -> None:
        """Have the tables on disk. Raises OSError."""
        ...

    @property
    def statistics(self) -> Statistics:
        """What is counted for sdiag."""
        ...

    def now(self) -> float:
        """Unix seconds."""
        ...

    async def apply(self, event: Event, files: Sequence[JobFiles] = ()) -> tuple[Accepted | Refused, ...]:
        """Handle the event; returns when what it changed is on disk. ``files`` go with the submissions of a Submit."""
        ...

    async def job_changed(self, job_id: int) -> Job | None:
        """Wait until this job changes, then return it (None when it is gone)."""
        ...

    async def plan_for(self, event: Submit) -> Outlook | Refused:
        """When and where the job of this submission would start if it were submitted now (--test-only)."""
        ...

    async def explain(self, question: Question) -> Explanation:
        """Why a job waits; what is known within a few seconds."""
        ...

    def access(self, job: Job) -> Mapping[str, str]:
        """Environment by which a process of the job's user finds the job's step manager (address, secret)."""
        ...

    async def ask(self, job: Job, nodes: Sequence[str], question: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
        """Ask the stepds of a running job on these nodes; answers by node, of those that gave one."""
        ...

    async def reconfigure(self, caller: Caller) -> str:
        """Read the configuration again and go by it. Returns what stands against it (nothing has changed then), or ""."""
        ...

    async def queues(self, action: str, *, force: bool) -> tuple[str, int]:
        """Compare (``diff``), make (``apply``) or ``delete`` the queue system's objects: the text and the exit code."""
        ...

    def surroundings(self) -> Sequence[str]:
        """Lines about what the jobs run on, for a person to read."""
        ...

    @property
    def stopping(self) -> bool:
        """True while it stops and leaves the jobs as they are, for the next controller."""
        ...

    def came_back(self, job_id: int) -> None:
        """Somebody waits again for an allocation that a controller before this one had in its queue."""
        ...

    def shutdown(self, *, end_jobs: bool) -> None:
        """Stop the controller (slurmk down, scontrol shutdown)."""
        ...
