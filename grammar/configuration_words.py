"""Which words and numbers keys of slurm.conf take, where these are few (slurm.conf(5), and as its controller answers)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_DEBUG_FLAGS = """
Accrue Agent AuditRPCs AuditTLS Backfill BackfillMap BurstBuffer Cgroup ConMgr CPU_Bind CpuFrequency Data DBD_Agent Dependency
Elasticsearch Energy Federation Gang GLOB_SILENCE Gres Hetjob JobAccountGather JobComp JobContainer License Metrics MPI
Namespace Network NetworkRaw NodeFeatures NO_CONF_HASH Power Priority Profile Protocol Reservation Route Script SelectType
Steps Switch TLS TraceJobs Triggers WorkQueue
"""

_EXCLUDED = """
CLOUD DOWN DRAIN DYNAMIC_FUTURE DYNAMIC_NORM FAIL INVALID_REG MAINTENANCE NOT_RESPONDING PERFCTRS PLANNED RESERVED
"""

_TASK_PARAMETERS = "none cores sockets threads boards ldoms sched slurmdoffspec slurmdspecoverride verbose OOMKillStep"

DEBUG_LEVELS = ("quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5")
"""Levels of logs, which may also be given by their number."""

LIMITS = ("NONE", "ALL", "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK")
"""Names of resource limits."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """A key that names plugins. ``own``: sites have their own, so that one that is not known is told and no error."""

    key: str
    kind: str
    names: str
    several: bool = False
    own: bool = False


PLUGINS: tuple[Plugins, ...] = (
    Plugins("AccountingStorageType", "accounting_storage", "none mysql slurmdbd ctld_relay"),
    Plugins("AcctGatherEnergyType", "acct_gather_energy", "none gpu ibmaem ipmi pm_counters rapl xcc", several=True),
    Plugins("AcctGatherFilesystemType", "acct_gather_filesystem", "none lustre"),
    Plugins("AcctGatherInterconnectType", "acct_gather_interconnect", "none ofed sysfs", several=True),
    Plugins("AcctGatherProfileType", "acct_gather_profile", "none hdf5 influxdb"),
    Plugins("AuthAltTypes", "auth", "jwt munge none slurm", several=True),
    Plugins("AuthType", "auth", "jwt munge none slurm"),
    Plugins("BurstBufferType", "burst_buffer", "none datawarp lua"),
    Plugins("CertmgrType", "certmgr", "none script"),
    Plugins("CredType", "cred", "munge none slurm"),
    Plugins("CryptoType", "crypto", "munge"),
    Plugins("HashPlugin", "hash", "k12 sha3"),
    Plugins("JobAcctGatherType", "jobacct_gather", "none cgroup linux"),
    Plugins("JobCompType", "jobcomp", "none elasticsearch filetxt kafka lua mysql script"),
    Plugins(
        "JobSubmitPlugins",
        "job_submit",
        "all_partitions defaults logging lua partition pbs require_timelimit throttle",
        several=True,
        own=True,
    ),
    Plugins("MCSPlugin", "mcs", "none account group label user"),
    Plugins("MetricsType", "metrics", "none openmetrics"),
    Plugins("NodeFeaturesPlugins", "node_features", "helpers knl_cray knl_generic", several=True, own=True),
    Plugins("PreemptType", "preempt", "none partition_prio qos"),
    Plugins("PrEpPlugins", "prep", "script", several=True, own=True),
    Plugins("PrioritySiteFactorPlugin", "site_factor", "none example", own=True),
    Plugins("SwitchType", "switch", "none hpe_slingshot nvidia_imex"),
    Plugins("TLSType", "tls", "none s2n"),
)
"""Keys whose plugins Slurm's controller must find."""


@dataclass(frozen=True, slots=True)
class Words:
    """A key that takes some of a few words. ``fatal``: another one is an error, else it is told and passed over. In
    ``error``, which begins the message, ``{word}`` and ``{value}`` are filled in. ``prefixes`` begin words with a value."""

    key: str
    words: tuple[str, ...]
    error: str
    fatal: bool = True
    prefixes: tuple[str, ...] = ()


WORDS: tuple[Words, ...] = (
    Words(
        "AccountingStorageEnforce",
        ("none", "0", "1", "all", "associations", "limits", "nojobs", "nosteps", "qos", "safe", "wckeys"),
        "AccountingStorageEnforce invalid: {value}",
    ),
    Words("DebugFlags", tuple(_DEBUG_FLAGS.split()), "Invalid DebugFlag: {word}: DebugFlags invalid: {value}"),
    Words(
        "HealthCheckNodeState",
        ("ALLOC", "ANY", "CYCLE", "IDLE", "MIXED", "NONDRAINED_IDLE", "START_ONLY"),
        "Invalid HealthCheckNodeState value {word} ignored",
        fatal=False,
    ),
    Words("PropagateResourceLimits", LIMITS, "Bad PropagateResourceLimits: {value}"),
    Words("PropagateResourceLimitsExcept", LIMITS, "Bad PropagateResourceLimitsExcept: {value}"),
    Words("SlurmctldDebug", DEBUG_LEVELS, "Invalid SlurmctldDebug {value}"),
    Words("SlurmctldSyslogDebug", DEBUG_LEVELS, "Invalid SlurmctldSyslogDebug {value}"),
    Words("SlurmdDebug", DEBUG_LEVELS, "Invalid SlurmdDebug {value}"),
    Words("SlurmdSyslogDebug", DEBUG_LEVELS, "Invalid SlurmdSyslogDebug {value}"),
    Words(
        "SuspendExcStates",
        tuple(_EXCLUDED.split()),
        "Invalid SuspendExcState {word}",
        fatal=False,
    ),
    Words(
        "ReconfigFlags",
        ("KeepNodeStateFuture", "KeepPartInfo", "KeepPartState", "KeepPowerSaveSettings"),
        "Invalid ReconfigFlag: {word}",
        fatal=False,
    ),
    Words(
        "TaskPluginParam",
        tuple(_TASK_PARAMETERS.split()),
        "Bad TaskPluginParam: {word}",
        prefixes=("autobind=",),
    ),
    Words(
        "PriorityUsageResetPeriod",
        ("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY"),
        'Bad value "{value}" for PriorityUsageResetPeriod',
    ),
)

DEBUG_FLAGS = next(row.words for row in WORDS if row.key == "DebugFlags")
"""Slurm's DebugFlags (slurm.conf(5))."""


def in_order(flags: Iterable[str]) -> tuple[str, ...]:
    """Those of DEBUG_FLAGS that are named, as they are written and in their order."""
    named = {flag.strip().lower() for flag in flags}
    return tuple(flag for flag in DEBUG_FLAGS if flag.lower() in named)


def level_name(text: str) -> str:
    """A level of logs by its name or number; "" when there is none such."""
    if text.isascii() and text.isdigit():
        return DEBUG_LEVELS[int(text[:3])] if int(text[:3]) < len(DEBUG_LEVELS) else ""
    return text.lower() if text.lower() in DEBUG_LEVELS else ""


@dataclass(frozen=True, slots=True)
class Least:
    """The least value of a key that takes a number. With ``instead`` a smaller one is told and that is taken, without it is an
    error. ``{value}`` is filled in."""

    key: str
    least: int
    error: str
    instead: int | None = None


LEAST: tuple[Least, ...] = (
    Least("FirstJobId", 1, "FirstJobId cannot be zero"),
    Least("HealthCheckTimeout", 1, "HealthCheckTimeout {value} invalid, resetting to default (60).", 60),
    Least("MaxDBDMsgs", 10000, "MaxDBDMsgs value ({value}) needs to be greater than 10000"),
    Least("MaxNodeCount", 1, "MaxNodeCount={value}: node table is full"),
    Least("MaxStepCount", 1, "MaxStepCount={value}, No steps permitted"),
    Least("MinJobAge", 2, "MinJobAge must be at least 2", 2),
    Least("SchedulerTimeSlice", 5, "SchedulerTimeSlice must be at least 5 seconds", 30),
    Least("SlurmctldPort", 1, "Invalid SlurmctldPort {value}"),
    Least("TreeWidth", 1, "TreeWidth={value} is invalid", 16),
)

DEFUNCT = frozenset({"CoreSpecPlugin", "ExtSensorsFreq", "ExtSensorsType", "GetEnvTimeout", "PowerParameters", "PowerPlugin"})
"""Keys that are nothing any more."""

TRES = frozenset({"billing", "cpu", "energy", "mem", "node", "pages", "vmem"})
TRES_WITH_NAMES = frozenset({"fs", "gres", "ic", "license"})
"""Types of TRES, those of the second kind with a name behind a slash."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between what a word of SchedulerParameters may be; others are told, and what counts is as if it was not there."""

    name: str
    least: int
    most: int = 0x7FFFFFFF
    also: int | None = None


SCHEDULER_BOUNDS: tuple[Bounds, ...] = (
    Bounds("bf_interval", 1, 10800, also=-1),
    Bounds("bf_job_part_count_reserve", 0, 100000),
    Bounds("bf_max_job_array_resv", 0),
    Bounds("bf_max_job_assoc", 0),
    Bounds("bf_max_job_part", 0),
    Bounds("bf_max_job_start", 0),
    Bounds("bf_max_job_test", 1, 1000000),
    Bounds("bf_max_job_user", 0),
    Bounds("bf_max_job_user_part", 0),
    Bounds("bf_max_time", 1, 3600),
    Bounds("bf_min_age_reserve", 0, 2592000),
    Bounds("bf_min_prio_reserve", 1),
    Bounds("bf_node_space_size", 1),
    Bounds("bf_resolution", 1, 3600),
    Bounds("bf_topopt_iterations", 1),
    Bounds("bf_window", 1, 43200),
    Bounds("bf_window_linear", 1),
    Bounds("bf_yield_interval", 1, 10000000),
    Bounds("bf_yield_sleep", 1, 10000000),
    Bounds("max_rpc_cnt", 0),
    Bounds("preempt_reorder_count", 0),
)

SCHEDULER_WORDS = {"bf_hetjob_prio": ("min", "avg", "max")}
"""Words of SchedulerParameters that take one of a few words."""

_CGROUP = """
AllowedDevicesFile AllowedRAMSpace# AllowedSwapSpace# CgroupAutomount? CgroupJobIdPaths? CgroupMountpoint CgroupPlugin
CgroupReleaseAgentDir CgroupSlice ConstrainCores? ConstrainDevices? ConstrainKmemSpace? ConstrainRAMSpace? ConstrainSwapSpace?
EnableControllers? EnableExtraControllers IgnoreSystemd? IgnoreSystemdOnFailure? MaxKmemPercent# MaxRAMPercent#
MaxSwapPercent# MemoryLimitEnforcement? MemorySwappiness# MinKmemSpace# MinRAMSpace# SignalChildrenProcesses? SystemdTimeout#
TaskAffinity?
"""
CGROUP_KEYS = {word.rstrip("#?").lower(): (word.rstrip("#?"), word[-1]) for word in _CGROUP.split()}
"""Keys of cgroup.conf (cgroup.conf(5)): as they are written, and "#" for a number or "?" for yes or no at the end."""
