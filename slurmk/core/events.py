"""What can happen to the cluster, as values. ``Machine.handle`` takes them; every one carries its time.

``time`` is Unix seconds as a float; the machine rounds it down where Slurm keeps whole seconds. Events are frozen and
hold plain values only, so a list of them can be written down, replayed and compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import TypeAlias

from slurmk.model.job import Credentials, JobRequest, Step, Usage
from slurmk.model.node import Node
from slurmk.model.quotas import Quota
from slurmk.model.reservation import ReservationRequest
from slurmk.model.site import Site
from slurmk.planner.snapshot import Plan


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. ``operator`` is true for root, SlurmUser and the site's operators."""

    user_id: int
    user_name: str
    operator: bool


@dataclass(frozen=True, slots=True)
class Submission:
    """One job of a submission: the request and what the submitting process said about itself.

    The script and the environment are not in it: they are large, the machine has no use for them, and the store keeps
    them beside the job in the same transaction (see ``effects.Accepted``).
    """

    request: JobRequest
    credentials: Credentials
    batch: bool
    command: str
    submit_line: str
    submit_host: str
    session_id: int
    umask: int = 0o022
    limits: str = ""  # soft limits that the job shall have: NOFILE=1024,CPU=unlimited
    script_size: int = 0  # bytes
    immediate: bool = False  # at once or not at all


@dataclass(frozen=True, slots=True)
class Submit:
    """A new job; several submissions are the components of a het job. Answered with Accepted or Refused."""

    time: float
    caller: Caller
    submissions: tuple[Submission, ...]
    will_run_only: bool = False  # --test-only: check, do not create


@dataclass(frozen=True, slots=True)
class JobSelection:
    """One job as a user names it: ``12``, ``12_3``, ``12_[1-4]``, ``12+1``, and for a step ``12.0``."""

    job_id: int
    array_tasks: tuple[range, ...] = ()
    het_offset: int | None = None
    step_id: int | None = None


class KillFlag(IntFlag):
    """How a signal is delivered (scancel(1))."""

    NONE = 0
    BATCH = 1  # --batch: the batch shell only
    FULL = 2  # --full: all steps and the batch shell with its children
    HURRY = 4
    ARRAY_TASK = 8
    CRON = 16  # --cron: also scrontab's jobs
    CANCEL = 32  # no signal was named: a step is cancelled, and says so


@dataclass(frozen=True, slots=True)
class Kill:
    """scancel: a signal to the selected jobs or steps; ``signal`` None cancels them."""

    time: float
    caller: Caller
    selections: tuple[JobSelection, ...]
    signal: int | None = None
    flags: KillFlag = KillFlag.NONE


@dataclass(frozen=True, slots=True)
class EndRecurrence:
    """scrontab: these jobs are no longer in their user's table."""

    time: float
    caller: Caller
    job_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """scontrol hold (``user`` false: uhold by name of the flag), and release when ``release`` is set."""

    time: float
    caller: Caller
    selections: tuple[JobSelection, ...]
    release: bool = False
    user_hold: bool = False


@dataclass(frozen=True, slots=True)
class Requeue:
    """scontrol requeue / requeuehold: end the job and put it back in the queue; what waits or has ended stays as it is where
    ``incomplete`` is set."""

    time: float
    caller: Caller
    selections: tuple[JobSelection, ...]
    hold: bool = False
    special_exit: bool = False
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Suspend:
    """scontrol suspend, or resume when ``resume`` is set."""

    time: float
    caller: Caller
    selections: tuple[JobSelection, ...]
    resume: bool = False


@dataclass(frozen=True, slots=True)
class UpdateJob:
    """scontrol update JobId=…: ``changes`` are JobRequest field names and their new values."""

    time: float
    caller: Caller
    selections: tuple[JobSelection, ...]
    changes: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class UpdateNode:
    """scontrol update NodeName=…: ``state`` is one of DRAIN, DOWN, RESUME, UNDRAIN, IDLE, FAIL, … or None."""

    time: float
    caller: Caller
    nodes: tuple[str, ...]
    state: str | None = None
    reason: str | None = None
    changes: tuple[tuple[str, object], ...] = ()  # weight, features, active_features, comment, extra


@dataclass(frozen=True, slots=True)
class UpdatePartition:
    """scontrol update, and with ``create`` scontrol create PartitionName=…: ``changes`` are Partition field names and their
    new values. ``nodes`` are names with "+" to add one, "-" to take one out, or "" for those that it shall have."""

    time: float
    caller: Caller
    name: str
    changes: tuple[tuple[str, object], ...]
    create: bool = False


@dataclass(frozen=True, slots=True)
class DeletePartition:
    """scontrol delete PartitionName=…."""

    time: float
    caller: Caller
    name: str


@dataclass(frozen=True, slots=True)
class CreateNodes:
    """scontrol create NodeName=…: all of them, or none."""

    time: float
    caller: Caller
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """scontrol delete NodeName=…: those that can be, and the first that can't is told of."""

    time: float
    caller: Caller
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdateStep:
    """scontrol update StepId=…: another time limit (minutes) for a step, or for all steps of a job."""

    time: float
    caller: Caller
    job_id: int
    step_id: int | None
    time_limit: int


@dataclass(frozen=True, slots=True)
class CreateReservation:
    """scontrol create reservation. Answered with Accepted, whose name is the reservation's name."""

    time: float
    caller: Caller
    request: ReservationRequest


@dataclass(frozen=True, slots=True)
class UpdateReservation:
    """scontrol update ReservationName=…."""

    time: float
    caller: Caller
    request: ReservationRequest


@dataclass(frozen=True, slots=True)
class DeleteReservation:
    """scontrol delete ReservationName=…."""

    time: float
    caller: Caller
    name: str


@dataclass(frozen=True, slots=True)
class Planned:
    """The planner has finished a plan of the snapshot numbered ``plan.snapshot_id``."""

    time: float
    plan: Plan


@dataclass(frozen=True, slots=True)
class JobStarted:
    """The launcher reports that the job's script (or its allocation) is up on all of its nodes. ``begun`` (Unix seconds) is
    when it came up, where that took time that is not the job's, as with pods: its run time counts from then on."""

    time: float
    job_id: int
    restart: int
    begun: float | None = None


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """The launcher could not bring the job up. ``nodes`` are those on which nothing of it is left.

    A batch job waits held after that, as in Slurm, and an allocation has failed. With ``retry`` what stood in the way may
    pass (a quota, a queue, an image that cannot be pulled): the job waits again, each time twice as long, and says why.
    """

    time: float
    job_id: int
    restart: int
    message: str
    nodes: tuple[str, ...] = ()
    retry: bool = False


@dataclass(frozen=True, slots=True)
class StepStarted:
    """The job's step manager made a step."""

    time: float
    restart: int
    step: Step


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step is over; ``step`` has its final state, end time, exit code and usage."""

    time: float
    restart: int
    step: Step


@dataclass(frozen=True, slots=True)
class BatchEnded:
    """The batch script is over: the job's own exit code. ``timed_out``, ``out_of_memory`` tell why it ended.

    For an allocation without a script (srun, salloc) it says that the allocation was given back.
    """

    time: float
    job_id: int
    restart: int
    exit_code: int  # a wait(2) status
    usage: Usage = Usage()
    timed_out: bool = False
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class PrologRuns:
    """The prolog of a job's nodes runs before anything else of it may (PrologFlags=Alloc), or is ``over`` on all."""

    time: float
    job_id: int
    restart: int
    over: bool = False


@dataclass(frozen=True, slots=True)
class PrologFailed:
    """A prolog failed: that of ``node``, which is drained then if it may (``drain``), or the controller's own, without one."""

    time: float
    job_id: int
    restart: int
    message: str
    node: str = ""
    drain: bool = True


@dataclass(frozen=True, slots=True)
class EpilogFailed:
    """The epilog of a job failed on a node, which is drained unless the job had a place of its own there (``drain``)."""

    time: float
    job_id: int
    restart: int
    node: str
    drain: bool = True


@dataclass(frozen=True, slots=True)
class EpilogEnded:
    """The controller's own epilog of a job is over."""

    time: float
    job_id: int
    restart: int


@dataclass(frozen=True, slots=True)
class SetDebug:
    """How much the controller writes to its log, until the configuration is read again: ``level`` is one of Slurm's, "" for
    the present one; flags are Slurm's DebugFlags."""

    time: float
    caller: Caller
    level: str = ""
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodesReleased:
    """All processes of the job are gone on these nodes; when none is left the job leaves COMPLETING."""

    time: float
    job_id: int
    restart: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeFailed:
    """What stood for these nodes in the job died without a word (stepd killed, pod lost, node gone)."""

    time: float
    job_id: int
    restart: int
    nodes: tuple[str, ...]
    message: str = ""


@dataclass(frozen=True, slots=True)
class Preempted:
    """Others took the job's place (a queue system, a scheduler, a node short of memory): PREEMPTED, or queued again where
    it may be. ``nodes`` are those on which nothing of it is left."""

    time: float
    job_id: int
    restart: int
    message: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Somebody who may do so removed what the job ran as, with other tools than ours: the job is cancelled."""

    time: float
    job_id: int
    restart: int
    message: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """The launcher sees a node appear, change or vanish (``removed``)."""

    time: float
    node: Node
    removed: bool = False


@dataclass(frozen=True, slots=True)
class QuotasChanged:
    """The quotas that certain jobs are held to, all of them, and what others than our jobs hold of each now."""

    time: float
    quotas: tuple[Quota, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; sent when a WakeAt falls due, and at least every minute."""

    time: float


@dataclass(frozen=True, slots=True)
class Reconfigure:
    """A new configuration was read."""

    time: float
    caller: Caller
    site: Site


@dataclass(frozen=True, slots=True)
class SiteChanged:
    """The cluster that the nodes belong to has others now, or others make up a partition, or its topology changed."""

    time: float
    site: Site


Event: TypeAlias = (
    Submit
    | Kill
    | EndRecurrence
    | Hold
    | Requeue
    | Suspend
    | UpdateJob
    | UpdateNode
    | UpdatePartition
    | DeletePartition
    | CreateNodes
    | DeleteNodes
    | UpdateStep
    | CreateReservation
    | UpdateReservation
    | DeleteReservation
    | Planned
    | JobStarted
    | LaunchFailed
    | StepStarted
    | StepEnded
    | BatchEnded
    | NodesReleased
    | NodeFailed
    | Preempted
    | Withdrawn
    | NodeChanged
    | QuotasChanged
    | Tick
    | PrologRuns
    | PrologFailed
    | EpilogFailed
    | EpilogEnded
    | SetDebug
    | Reconfigure
    | SiteChanged
)
