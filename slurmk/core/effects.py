"""What the machine wants done, as values. The daemon carries them out in order; all saves of one event are one transaction,
and nothing else of an event is done, or answered, before that transaction is on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from slurmk.core.errors import SlurmError
from slurmk.core.events import KillFlag
from slurmk.model.job import Job, Step
from slurmk.model.node import Node, Partition
from slurmk.model.reservation import Reservation


@dataclass(frozen=True, slots=True)
class SaveJob:
    """Keep the job as it is now. ``new`` marks the first save, which the submission's script and environment go with."""

    job: Job
    new: bool = False


@dataclass(frozen=True, slots=True)
class SaveStep:
    step: Step
    restart: int


@dataclass(frozen=True, slots=True)
class SaveResize:
    """The job, as it was, has another size from ``time`` (Unix seconds) on: its record ends, the next save begins another."""

    job: Job
    time: int


@dataclass(frozen=True, slots=True)
class ForgetJob:
    """The job left the controller's memory (MinJobAge); accounting keeps its record, its script may go."""

    job_id: int


@dataclass(frozen=True, slots=True)
class SaveNode:
    node: Node


@dataclass(frozen=True, slots=True)
class ForgetNode:
    """The node, one that an administrator had made, was deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class SavePartition:
    partition: Partition


@dataclass(frozen=True, slots=True)
class ForgetPartition:
    """What was changed of the partition holds no longer: it was made here and deleted, or the configuration was read anew."""

    name: str


@dataclass(frozen=True, slots=True)
class SaveReservation:
    reservation: Reservation


@dataclass(frozen=True, slots=True)
class ForgetReservation:
    """The reservation was deleted, or is over."""

    name: str


@dataclass(frozen=True, slots=True)
class SaveCounter:
    """The next job id to give out; saved with each submission."""

    next_job_id: int


@dataclass(frozen=True, slots=True)
class WakePlanner:
    """Something changed that a plan depends on."""


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Send a Tick at this time (Unix seconds)."""

    time: float


@dataclass(frozen=True, slots=True)
class Launch:
    """Bring the job up on its allocation (``job.allocation``), attempt number ``job.restarts``."""

    job: Job


@dataclass(frozen=True, slots=True)
class Signal:
    """Deliver a signal to a running job, or to one of its steps."""

    job_id: int
    restart: int
    signal: int
    step_id: int | None = None
    flags: KillFlag = KillFlag.NONE


@dataclass(frozen=True, slots=True)
class Terminate:
    """End the job's processes everywhere: TERM and CONT now, KILL after ``kill_wait`` seconds (0: at once). ``cause`` is what
    its output says of it: requeue, preemption, node failure, or nothing but the signal."""

    job_id: int
    restart: int
    kill_wait: int
    nodes: tuple[str, ...]
    cause: str = ""
    job: Job | None = field(default=None, compare=False)  # as it ended, for the site's epilogs


@dataclass(frozen=True, slots=True)
class RunEpilog:
    """Run the controller's own epilog of a job that ends (EpilogSlurmctld); ``EpilogEnded`` is the answer."""

    job: Job


@dataclass(frozen=True, slots=True)
class Shrink:
    """A running job has only ``nodes`` left: its step manager must know, and what runs of it on ``lost`` is killed."""

    job_id: int
    restart: int
    nodes: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdateLimit:
    """A running job's time limit changed; stepd must know. ``end_time`` is Unix seconds, None for no limit."""

    job_id: int
    restart: int
    end_time: int | None


@dataclass(frozen=True, slots=True)
class Mail:
    """``--mail-type``: tell ``address`` about the job. ``kind`` is the request's word (BEGIN, END, FAIL, REQUEUE, TIME=50% …);
    ``variables`` are those that its kind adds to the mail program's environment."""

    job: Job
    kind: str
    address: str
    subject: str
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CordonNode:
    """The administrator drained or resumed a node: tell the launcher (Kubernetes cordons it)."""

    node: str
    cordoned: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The event was done. For a submission ``job_ids`` are the new jobs; for others, the jobs acted on.

    ``notices`` are lines the caller is told although the request was accepted. ``name`` is that of what was made or
    changed where it is no job.
    """

    job_ids: tuple[int, ...] = ()
    notices: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The event was not done at all; nothing changed. One of several selections may be refused: then ``subject`` names it
    (``12_3``) and the others were done. ``notices`` are lines the caller is told before the error itself. ``elements``: of
    an array's selection how each group of elements fared, with the lowest first; None is well."""

    error: SlurmError
    subject: str = ""
    notices: tuple[str, ...] = ()
    elements: tuple[tuple[tuple[int, ...], SlurmError | None], ...] = ()


Effect: TypeAlias = (
    SaveJob
    | SaveStep
    | SaveResize
    | ForgetJob
    | SaveNode
    | ForgetNode
    | SavePartition
    | ForgetPartition
    | SaveReservation
    | ForgetReservation
    | SaveCounter
    | WakePlanner
    | WakeAt
    | Launch
    | Signal
    | Terminate
    | RunEpilog
    | Shrink
    | UpdateLimit
    | Mail
    | CordonNode
    | Accepted
    | Refused
)
