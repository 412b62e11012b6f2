"""``scontrol write config``: what the controller goes by as a slurm.conf that says the same. Settings that are as without a
slurm.conf stand there as comments; nodes and partitions are as they are now."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping

from grammar.configuration_keys import KEYS, Key, Value
from grammar.hostlist import compress
from grammar.times import format_duration_minutes
from slurmk.commands.node_text import gres_text
from slurmk.core.machine import Machine
from slurmk.model.node import Node, Partition
from slurmk.model.states import INFINITE

RULE = "#" * 48
NOT_WRITTEN = frozenset(("SLURM_CONF", "SLURM_VERSION", "BOOT_TIME", "NEXT_JOB_ID", "MaxNodeCount"))
_NUMBER_BEHIND = re.compile(r"\(\d+\)\Z")


def written_configuration(machine: Machine, now: float) -> str:
    """The whole file."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now))
    lines = ["#" * 56, f"#  Configuration file for Slurm - {stamp}  #", "#" * 56, "#"]
    for title, rows in (
        ("SETTINGS", _settings(machine.site.parameters)),
        ("NODES", map(_node, machine.nodes.values())),
        ("PARTITIONS", map(_partition, machine.partitions.values())),
    ):
        lines += [RULE, f"#{title:^46}#", RULE, *rows, "#"]
    return "\n".join(lines) + "\n"


def _settings(parameters: Mapping[str, str]) -> Iterator[str]:
    for key in KEYS:
        if key.value is Value.FACT or key.name in NOT_WRITTEN:
            continue
        value = parameters.get(key.name, key.default)
        if value in ("(null)", ""):
            yield f"#{key.name}="
        else:
            yield f"{'#' if key.default in (value, _bare(key, value)) else ''}{key.name}={_bare(key, value)}"
    named = {key.name for key in KEYS} | NOT_WRITTEN
    for name, value in parameters.items():
        if name not in named:
            yield from (f"{name}={each}" for each in value.split("\n"))  # programs may be several


def _bare(key: Key, text: str) -> str:
    """A value without its unit, and without the number behind a user's name."""
    return _NUMBER_BEHIND.sub("", text.removesuffix(f" {key.unit}") if key.unit else text)


def _words(name: str, pairs: Iterable[tuple[str, object]]) -> str:
    return " ".join((name, *(f"{key}={value}" for key, value in pairs if value not in (None, "", ()))))


def _node(node: Node) -> str:
    return _words(
        f"NodeName={node.name}",
        (
            ("NodeHostName", "" if node.host_name in ("", node.name) else node.host_name),
            ("NodeAddr", "" if node.address in ("", node.name) else node.address),
            ("CPUs", node.cpus),
            ("Boards", node.boards if node.boards != 1 else None),
            ("Sockets", node.sockets),
            ("CoresPerSocket", node.cores_per_socket),
            ("ThreadsPerCore", node.threads_per_core),
            ("RealMemory", node.memory),
            ("TmpDisk", node.temporary_disk or None),
            ("Gres", gres_text(node.gres)),
            ("Weight", node.weight if node.weight != 1 else None),
            ("Feature", ",".join(node.features)),
            ("Port", node.port if node.port != 6818 else None),
        ),
    )


def _minutes(value: int | None) -> str | None:
    return None if value is None or value == INFINITE else format_duration_minutes(value)


def _count(value: int) -> int | None:
    return None if value == INFINITE else value


def _names(names: tuple[str, ...] | None) -> str | None:
    return None if names is None else ",".join(names)


def _partition(partition: Partition) -> str:
    return _words(
        f"PartitionName={partition.name}",
        (
            ("AllowAccounts", _names(partition.allow_accounts)),
            ("AllowGroups", _names(partition.allow_groups)),
            ("AllowNodes", _names(partition.allow_nodes)),
            ("AllowQos", _names(partition.allow_qos)),
            ("Alternate", partition.alternate),
            ("Default", "YES" if partition.default else None),
            ("DefaultTime", _minutes(partition.default_time)),
            ("DefMemPerCPU", partition.default_memory_per_cpu),
            ("DefMemPerNode", partition.default_memory_per_node),
            ("DenyAccounts", _names(partition.deny_accounts)),
            ("DenyQos", _names(partition.deny_qos)),
            ("DisableRootJobs", "YES" if partition.disable_root_jobs else None),
            ("ExclusiveUser", "YES" if partition.exclusive_user else None),
            ("GraceTime", partition.grace_time or None),
            ("Hidden", "YES" if partition.hidden else None),
            ("JobDefaults", partition.job_defaults),
            ("LLN", "YES" if partition.lln else None),
            ("MaxCPUsPerNode", _count(partition.maximum_cpus_per_node)),
            ("MaxCPUsPerSocket", _count(partition.maximum_cpus_per_socket)),
            ("MaxMemPerCPU", partition.maximum_memory_per_cpu),
            ("MaxMemPerNode", partition.maximum_memory_per_node),
            ("MaxNodes", _count(partition.maximum_nodes)),
            ("MaxTime", _minutes(partition.maximum_time)),
            ("MinNodes", partition.minimum_nodes),
            ("Nodes", compress(partition.nodes)),
            ("OverSubscribe", partition.oversubscribe if partition.oversubscribe != "NO" else None),
            ("OverTimeLimit", partition.over_time_limit),
            ("PreemptMode", partition.preempt_mode),
            ("PriorityJobFactor", partition.priority_job_factor if partition.priority_job_factor != 1 else None),
            ("PriorityTier", partition.priority_tier if partition.priority_tier != 1 else None),
            ("QOS", partition.qos),
            ("ReqResv", "YES" if partition.require_reservation else None),
            ("RootOnly", "YES" if partition.root_only else None),
            ("State", partition.state),
            ("SuspendTime", partition.suspend_time),
            ("TRESBillingWeights", partition.tres_billing_weights),
        ),
    )
