"""The configuration (``slurm_conf`` of the data parser, from v0.0.45 on): scontrol show config, the REST API's ``/slurm/conf``.

Its members are those of ``scontrol show config`` with their types. The names are listed below with a mark for the type;
those with a value that is written in another way have a row in ``SPECIAL``.
"""

from __future__ import annotations

import pwd
import re
from collections.abc import Callable, Mapping

from slurmk.commands.documents.values import INFINITY, UNSET, Number, number
from slurmk.commands.scontrol_show import configuration, controller_host, process_start
from slurmk.core.machine import Machine

NAMES = tuple(
    """
    AccountingStorageTRES* AccountingStorageBackupHost AccountingStorageEnforce* AccountingStorageExternalHost
    AccountingStorageHost AccountingStorageParameters* AccountingStoragePort# AccountingStorageType AcctGatherEnergyType*
    AcctGatherProfileType AcctGatherInterconnectType AcctGatherFilesystemType AcctGatherNodeFreq# ConfFlags AuthAltTypes*
    AuthInfo AuthAltParameters AuthType BatchStartTimeout# BurstBufferType BcastExclude* BcastParameters* CertgenParameters*
    CertgenType CertmgrParameters CertmgrType CliFilterParameters* CliFilterPlugins* ClusterName CommunicationParameters*
    CompleteWait# CommunicationParametersFlags AccountingStoreFlags* SlurmdParametersFlags controllers CpuFreqDef
    CpuFreqGovernors CredType DataParserParameters DebugFlags* DefMemPerCPU DependencyParameters* EioTimeout#
    EnforcePartLimits* Epilog EpilogMsgTime# EpilogSlurmctld EpilogTimeout FederationParameters* FirstJobId#
    FairShareDampeningFactor# GetNameInfoCacheTimeout GresTypes* GroupUpdateTime# GroupUpdateForce? GpuFreqDef HashPlugin
    HealthCheckInterval# HealthCheckNodeState* HealthCheckProgram HealthCheckTimeout# HttpParserType HostUnreachRetryCount
    InactiveLimit# InteractiveStepOptions JobAcctGatherFrequency* JobAcctGatherType JobAcctGatherParams* JobAcctOomKill
    JobCompHost JobCompLoc JobCompParams JobCompPort# JobCompType JobCompUser JobDefaults JobFileAppend? JobRequeue?
    JobSubmitPlugins* KeepaliveInterval KeepaliveProbes KeepaliveTime KillOnBadExit? KillWait# LaunchParameters* Licenses*
    LicenseParameters* LogTimeFormat MailDomain MailProg MaxArraySize# MaxBatchRequeue# MaxDBDMsgs# MaxJobCount# MaxJobId#
    MaxMemPerCPU MaxNodeCount# MaxStepCount# MaxTasksPerNode# MCSPlugin MCSParameters* MetricsAuthUsers* MetricsParameters*
    MetricsType MinJobAge# MpiDefault MpiParams* MessageTimeout# NamespaceType NodeFeaturesPlugins* OverTimeLimit# PluginDir
    PlugStackConfig PreemptExemptTime PreemptMode* PreemptParameters* PreemptType PrEpParameters PrEpPlugins*
    PriorityDecayHalfLife PriorityCalcPeriod PriorityFavorSmall? PriorityFlags PriorityMaxAge PriorityParameters
    PriorityUsageResetPeriod PriorityType PriorityWeightAge# PriorityWeightAssoc# PriorityWeightFairshare
    PriorityWeightJobSize# PriorityWeightPartition# PriorityWeightQOS# PriorityWeightTRES PrivateData ProctrackType Prolog
    PrologSlurmctld PrologTimeout PropagatePrioProcess PrologFlags* PropagateResourceLimits* PropagateResourceLimitsExcept*
    RebootProgram ReconfigFlags* RequeueExit* RequeueExitHold* ResumeFailProgram ResumeProgram ResumeRate# ResumeTimeout#
    ResvEpilog ResvOverRun# ResvProlog ReturnToService SlurmSchedLogFile SlurmSchedLogLevel# SchedulerParameters*
    SchedulerTimeSlice# SchedulerType ScronParameters* SelectType SelectTypeParameters* PrioritySiteFactorPlugin
    PrioritySiteFactorParameters SlurmUserId SlurmUser SlurmdUserId SlurmdUser SlurmctldAddr SlurmctldDebug
    SlurmctldHttpAuthParams SlurmctldLogFile SlurmctldPidFile SlurmctldPort# SlurmctldPortCount SlurmctldPrimaryOffProg
    SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmctldTimeout# SlurmctldParameters* SlurmdDebug SlurmdHttpAuthParams
    SlurmdLogFile SlurmdParameters* SlurmdPidFile SlurmdPort# SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout# SrunEpilog
    SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes* SuspendExcParts* SuspendExcStates* SuspendProgram
    SuspendRate# SuspendTime SuspendTimeout# SwitchType SwitchParameters* TaskEpilog TaskPlugin* TaskPluginParam TaskProlog
    TLSParameters* TLSType TCPTimeout# TmpFS TopologyParam* TopologyPlugin TreeWidth# UnkillableStepProgram
    UnkillableStepTimeout# UrlParserType VSizeFactor# WaitTime# X11Parameters*
    """.split()  # noqa: SIM905
)
"""Members in order; ``#`` marks a number, ``*`` a list of words, ``?`` yes or no; the others are text."""

Texts = Mapping[str, str]
"""What ``scontrol show config`` prints, by name."""


def _text(texts: Texts, name: str) -> str:
    value = texts.get(name, "")
    return "" if value in ("(null)", "(null type)") else value


def _words(texts: Texts, name: str) -> list[str]:
    value = _text(texts, name)
    return [word for word in value.split(",") if word and word.lower() != "none"]


def _whole(texts: Texts, name: str) -> int:
    match = re.match(r"-?\d{1,18}", _text(texts, name))
    return int(match[0]) if match else 0


def _yes(texts: Texts, name: str) -> bool:
    return _text(texts, name).lower() in ("yes", "1")


Value = Callable[[Texts, str], object]


def _as(value: object) -> Value:
    return lambda texts, name: value


def _other(name: str, read: Value) -> Value:
    """The value of a key that is called otherwise there."""
    return lambda texts, _: read(texts, name)


def _numbered(texts: Texts, name: str) -> list[str]:
    """Programs that are listed one by one."""
    return [value for key, value in texts.items() if key.startswith(f"{name}[") and value not in ("", "(null)")]


def _memory(texts: Texts, name: str) -> Number:
    """Memory for a CPU, 0 where it is not limited, unset where it is given for a node."""
    per_node = texts.get(name.replace("CPU", "Node"), "")
    if name in texts:
        return number(_whole(texts, name))
    return number(0) if per_node in ("", "UNLIMITED") else UNSET


def _user(texts: Texts, name: str) -> str:
    return _text(texts, name).partition("(")[0]


def _user_id(texts: Texts, name: str) -> int:
    try:
        return pwd.getpwnam(_user(texts, name.removesuffix("Id"))).pw_uid
    except KeyError:
        return 0


def _seconds(texts: Texts, name: str) -> Number:
    """``1-02:03:04`` in seconds."""
    match = re.fullmatch(r"(?:(\d{1,9})-)?(\d{1,9}):(\d\d):(\d\d)", _text(texts, name), re.ASCII)
    if match is None:
        return number(0)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return number(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _suspend_time(texts: Texts, name: str) -> Number:
    return INFINITY if _text(texts, name) in ("", "INFINITE", "NONE") else number(_whole(texts, name))


def _flags(known: str) -> Value:
    """Those of ``SlurmdParameters`` and its kin that are flags."""
    names = known.split()
    source = {"SlurmdParametersFlags": "SlurmdParameters", "CommunicationParametersFlags": "CommunicationParameters"}
    return lambda texts, name: [word for word in names if word in _words(texts, source[name])]


def _communication_flags(texts: Texts, name: str) -> list[str]:
    words = [word.lower() for word in _words(texts, "CommunicationParameters")]
    found = ["IPv4"] if "disableipv4" not in words else []
    return found + (["IPv6"] if "enableipv6" in words else []) + (["disable_http"] if "disable_http" in words else [])


def _configuration_flags(texts: Texts, name: str) -> list[str]:
    keys = ("DisableRootJobs", "AllowSpecResourcesUsage", "UsePam", "TrackWCKey")
    return [key for key in keys if _yes(texts, key)]


_PRIORITY_FLAGS = {
    "ACCRUE_ALWAYS": "ACCRUE_ALWAYS",
    "SMALL_RELATIVE_TO_TIME": "SMALL_RELATIVE_TO_TIME",
    "CALCULATE_RUNNING": "CALCULATE_RUNNING",
    "DEPTH_OBLIVIOUS": "DEPTH_OBLIVIOUS",
    "INCR_ONLY": "INCR_ONLY",
    "MAX_TRES": "MAX_TRES",
    "MAX_TRES_GRES": "MAX_TRES_GRES",
}


def _priority_flags(texts: Texts, name: str) -> list[str]:
    """Fair tree is the rule unless it is switched off."""
    words = {word.upper() for word in _words(texts, name)}
    found = [flag for word, flag in _PRIORITY_FLAGS.items() if word in words]
    multifactor = _text(texts, "PriorityType").endswith("multifactor")
    return found + (["FAIR_TREE"] if multifactor and "NO_FAIR_TREE" not in words else [])


def _port_range(texts: Texts, name: str) -> dict[str, object]:
    first, _, last = _text(texts, name).partition("-")
    low, high = (int(word) if word.isascii() and word.isdigit() else 0 for word in (first, last))
    return {"minimum": low, "maximum": high, "set": bool(low or high)}


_RETURN = {"0": "no", "1": "non_responding", "2": "all"}
_PRIORITY_PROCESS = {"0": "off", "1": "on", "2": "nice"}

SPECIAL: Mapping[str, Value] = {
    "ConfFlags": _configuration_flags,
    "CommunicationParametersFlags": _communication_flags,
    "SlurmdParametersFlags": _flags(
        "config_overrides l3cache_as_socket numa_node_as_socket allow_ecores shutdown_on_reboot contain_spank"
    ),
    "CpuFreqGovernors": _as([]),
    "DefMemPerCPU": _memory,
    "MaxMemPerCPU": _memory,
    "Epilog": _numbered,
    "EpilogSlurmctld": _numbered,
    "Prolog": _numbered,
    "PrologSlurmctld": _numbered,
    "EpilogTimeout": _as(UNSET),
    "PrologTimeout": _as(UNSET),
    "GetNameInfoCacheTimeout": _as(0),
    "HostUnreachRetryCount": _as(0),
    "JobAcctOomKill": _as(False),
    "KeepaliveInterval": _as(0),
    "KeepaliveProbes": _as(0),
    "KeepaliveTime": _as(0),
    "JobDefaults": _as([]),
    "PreemptExemptTime": _seconds,
    "PriorityFlags": _priority_flags,
    "PrivateData": _words,
    "PriorityWeightFairshare": _other("PriorityWeightFairShare", _whole),
    "PropagatePrioProcess": lambda texts, name: _PRIORITY_PROCESS.get(_text(texts, name), "off"),
    "ReturnToService": lambda texts, name: _RETURN.get(_text(texts, name), "no"),
    "SlurmUser": _user,
    "SlurmdUser": _user,
    "SlurmUserId": _user_id,
    "SlurmdUserId": _user_id,
    "SlurmctldHttpAuthParams": _other("SlurmctldHttpAuthParameters", _words),
    "SlurmdHttpAuthParams": _other("SlurmdHttpAuthParameters", _words),
    "SlurmctldPortCount": _as(1),
    "SrunPortRange": _port_range,
    "SuspendTime": _suspend_time,
    "TaskPluginParam": _words,
}
"""Members whose value is not simply that of ``scontrol show config``."""

_MARKS: Mapping[str, Value] = {"#": _whole, "*": _words, "?": _yes}


def configuration_document(machine: Machine, now: int) -> dict[str, object]:
    """``slurm_conf`` and ``slurm_conf_meta``. ``now`` is Unix seconds."""
    texts = dict(configuration(machine))
    members: dict[str, object] = {}
    for word in NAMES:
        name = word.rstrip("#*?")
        read = SPECIAL.get(name) or _MARKS.get(word[-1], _text)
        members[name] = _controllers(machine) if name == "controllers" else read(texts, name)
    return {"slurm_conf": members, "slurm_conf_meta": _meta(machine, texts, now)}


def _controllers(machine: Machine) -> list[object]:
    host = controller_host(machine.site)
    address = machine.site.parameters.get("SlurmctldHost", "").partition("(")[2].rstrip(")")
    return [{"address": address or host, "machine": host}]


def _meta(machine: Machine, texts: Texts, now: int) -> dict[str, object]:
    return {
        "LastUpdate": now,
        "BOOT_TIME": process_start(),
        "ClusterId": number(_whole(texts, "ClusterId")),
        "HashValue": 0,
        "NEXT_JOB_ID": number(machine.next_job_id),
        "SLURM_CONF": _text(texts, "SLURM_CONF"),
        "SLURM_VERSION": _text(texts, "SLURM_VERSION"),
    }
