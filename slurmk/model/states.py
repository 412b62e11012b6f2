"""States, flags and reasons of jobs and nodes, with Slurm's names, letters and numbers (slurm.h, squeue(1), sinfo(1))."""

from __future__ import annotations

from enum import IntEnum, IntFlag, StrEnum


class JobState(IntEnum):
    """Base state of a job; the numbers are those of ``enum job_states`` and travel in the REST API and in sacct's records."""

    PENDING = 0
    RUNNING = 1
    SUSPENDED = 2
    COMPLETED = 3
    CANCELLED = 4
    FAILED = 5
    TIMEOUT = 6
    NODE_FAIL = 7
    PREEMPTED = 8
    BOOT_FAIL = 9
    DEADLINE = 10
    OUT_OF_MEMORY = 11

    @property
    def finished(self) -> bool:
        """True for states a job does not leave except by being requeued."""
        return self >= JobState.COMPLETED


class JobFlag(IntFlag):
    """Flags beside the base state; a state printed by squeue is the first flag that is set, else the base state."""

    NONE = 0
    LAUNCH_FAILED = 0x100
    REQUEUED = 0x400
    REQUEUE_HOLD = 0x800
    SPECIAL_EXIT = 0x1000
    RESIZING = 0x2000
    CONFIGURING = 0x4000
    COMPLETING = 0x8000
    STOPPED = 0x10000
    RECONFIG_FAIL = 0x20000
    POWER_UP_NODE = 0x40000
    REVOKED = 0x80000
    REQUEUE_FED = 0x100000
    RESV_DEL_HOLD = 0x200000
    SIGNALING = 0x400000
    STAGE_OUT = 0x800000
    EXPEDITING = 0x1000000
    EPILOG_RUNS = 0x40000000  # slurmk's own, shown nowhere: COMPLETING goes on for the controller's epilog, without nodes


STATE_CODES: dict[JobState, str] = {
    JobState.PENDING: "PD",
    JobState.RUNNING: "R",
    JobState.SUSPENDED: "S",
    JobState.COMPLETED: "CD",
    JobState.CANCELLED: "CA",
    JobState.FAILED: "F",
    JobState.TIMEOUT: "TO",
    JobState.NODE_FAIL: "NF",
    JobState.PREEMPTED: "PR",
    JobState.BOOT_FAIL: "BF",
    JobState.DEADLINE: "DL",
    JobState.OUT_OF_MEMORY: "OOM",
}

FLAG_CODES: dict[JobFlag, str] = {  # "": the base state's letters
    JobFlag.COMPLETING: "CG",
    JobFlag.STAGE_OUT: "SO",
    JobFlag.CONFIGURING: "CF",
    JobFlag.EXPEDITING: "",
    JobFlag.RESIZING: "RS",
    JobFlag.REQUEUED: "RQ",
    JobFlag.REQUEUE_FED: "RF",
    JobFlag.REQUEUE_HOLD: "RH",
    JobFlag.SPECIAL_EXIT: "SE",
    JobFlag.STOPPED: "ST",
    JobFlag.REVOKED: "RV",
    JobFlag.RESV_DEL_HOLD: "RD",
    JobFlag.SIGNALING: "SI",
}


class Reason(StrEnum):
    """Why a job waits or how it ended, as squeue's ``%r`` prints it (squeue(1), "JOB REASON CODES")."""

    NONE = "None"
    ACCOUNT_NOT_ALLOWED = "AccountNotAllowed"
    ASSOC_GRP_CPU_LIMIT = "AssocGrpCpuLimit"
    ASSOC_GRP_GRES = "AssocGrpGRES"
    ASSOC_GRP_JOBS_LIMIT = "AssocGrpJobsLimit"
    ASSOC_GRP_MEM_LIMIT = "AssocGrpMemLimit"
    ASSOC_GRP_NODE_LIMIT = "AssocGrpNodeLimit"
    BAD_CONSTRAINTS = "BadConstraints"
    BEGIN_TIME = "BeginTime"
    CLEANING = "Cleaning"
    CONSTRAINTS = "Constraints"
    DEADLINE = "DeadLine"
    DEPENDENCY = "Dependency"
    DEPENDENCY_NEVER_SATISFIED = "DependencyNeverSatisfied"
    INACTIVE_LIMIT = "InactiveLimit"
    INVALID_ACCOUNT = "InvalidAccount"
    INVALID_QOS = "InvalidQOS"
    JOB_ARRAY_TASK_LIMIT = "JobArrayTaskLimit"
    JOB_HELD_ADMIN = "JobHeldAdmin"
    JOB_HELD_USER = "JobHeldUser"
    JOB_HOLD_MAX_REQUEUE = "JobHoldMaxRequeue"
    JOB_LAUNCH_FAILURE = "JobLaunchFailure"
    LICENSES = "Licenses"
    MAX_MEM_PER_LIMIT = "MaxMemPerLimit"
    NODE_DOWN = "NodeDown"
    NON_ZERO_EXIT_CODE = "NonZeroExitCode"
    OUT_OF_MEMORY = "OutOfMemory"
    PARTITION_CONFIG = "PartitionConfig"
    PARTITION_DOWN = "PartitionDown"
    PARTITION_INACTIVE = "PartitionInactive"
    PARTITION_NODE_LIMIT = "PartitionNodeLimit"
    PARTITION_TIME_LIMIT = "PartitionTimeLimit"
    PRIORITY = "Priority"
    PROLOG = "Prolog"
    QOS_GRP_CPU_LIMIT = "QOSGrpCpuLimit"
    QOS_GRP_GRES = "QOSGrpGRES"
    QOS_GRP_JOBS_LIMIT = "QOSGrpJobsLimit"
    QOS_GRP_MEM_LIMIT = "QOSGrpMemLimit"
    QOS_GRP_NODE_LIMIT = "QOSGrpNodeLimit"
    QOS_NOT_ALLOWED = "QOSNotAllowed"
    RAISED_SIGNAL = "RaisedSignal"
    REQ_NODE_NOT_AVAIL = "ReqNodeNotAvail"
    RESERVATION = "Reservation"
    RESERVATION_DELETED = "ReservationDeleted"
    RESERVATION_INVALID = "ReservationInvalid"
    RESOURCES = "Resources"
    SCHED_DEFER = "SchedDefer"
    SYSTEM_FAILURE = "SystemFailure"
    TIME_LIMIT = "TimeLimit"


class NodeState(IntEnum):
    """Base state of a node (``enum node_states``). MIXED and ALLOCATED are derived from what runs there."""

    UNKNOWN = 0
    DOWN = 1
    IDLE = 2
    ALLOCATED = 3
    ERROR = 4
    MIXED = 5
    FUTURE = 6


class NodeFlag(IntFlag):
    """Flags beside a node's base state (``NODE_STATE_*``)."""

    NONE = 0
    EXTERNAL = 0x10
    RESERVED = 0x20
    UNDRAIN = 0x40
    CLOUD = 0x80
    RESUME = 0x100
    DRAIN = 0x200
    COMPLETING = 0x400
    NO_RESPOND = 0x800
    POWERED_DOWN = 0x1000
    FAIL = 0x2000
    POWERING_UP = 0x4000
    MAINT = 0x8000
    REBOOT_REQUESTED = 0x10000
    REBOOT_CANCEL = 0x20000
    POWERING_DOWN = 0x40000
    DYNAMIC_FUTURE = 0x80000
    REBOOT_ISSUED = 0x100000
    PLANNED = 0x200000
    INVALID_REG = 0x400000
    POWER_DOWN = 0x800000
    POWER_UP = 0x1000000
    POWER_DRAIN = 0x2000000
    DYNAMIC_NORM = 0x4000000
    BLOCKED = 0x8000000


NO_VALUE: int = 0xFFFFFFFE
"""Slurm's NO_VAL: a 32-bit field that was not set."""

INFINITE: int = 0xFFFFFFFF
"""Slurm's INFINITE: a limit that does not bind."""
