"""scontrol's partitions: create, update and delete (scontrol(1)), and the keys that a partition is told by."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grammar.errors import GrammarError
from grammar.hostlist import expand
from slurmk.commands import scontrol_keys as keys
from slurmk.commands.scontrol_keys import ERROR, Changes, Failure, Key, Read, Skip, Typed
from slurmk.commands.scontrol_session import Session
from slurmk.core.effects import Refused
from slurmk.core.events import DeletePartition, UpdatePartition
from slurmk.model.configuration import PREEMPT_MODES
from slurmk.model.states import INFINITE

# ---------------------------------------------------------------------------------------------- values


def _time(field: str) -> Read:
    return keys.minutes(field, f"{ERROR}Invalid input {{text}}")


def _words(field: str) -> Read:
    """Names; ALL or nothing is no limit."""
    return lambda typed: [
        (field, None if typed.value.upper() in ("", "ALL") else tuple(word for word in typed.value.split(",") if word))
    ]


def _denied(field: str) -> Read:
    return lambda typed: [(field, tuple(word for word in typed.value.split(",") if word))]


def _hosts(typed: Typed) -> Changes:
    if typed.value.upper() in ("", "ALL"):
        return [("allow_nodes", None)]
    try:
        return [("allow_nodes", tuple(expand(typed.value)))]
    except GrammarError:
        raise Failure("slurm_update error: Invalid node name specified") from None


def _nodes(typed: Typed) -> Changes:
    """The nodes that it shall have; those to add have a + before them, or before the ``=``, and those to take out a -."""
    found: list[tuple[str, str]] = []
    for word in filter(None, re.split(r",(?![^\[]*\])", typed.value)):
        sign = typed.sign or (word[0] if word[0] in "+-" else "")
        bare = word.lstrip("+-") if word[0] in "+-" else word
        try:
            found += [(sign, name) for name in expand(bare)]
        except GrammarError:
            found.append((sign, bare))
    return [("nodes", tuple(found))] if found or not typed.sign else [("nodes", ((typed.sign, ""),))]


_MOST = 0x7FFFFFFF


def _maximum_nodes(typed: Typed) -> Changes:
    value = typed.value
    if value.upper() in ("UNLIMITED", "INFINITE"):
        return [("maximum_nodes", INFINITE)]
    match = re.fullmatch(r"([0-9]{1,20})([kKmM]?)(?:-.*)?", value)
    if match is None and value:
        raise Skip(f'{ERROR}Invalid numeric value "{value}" for MaxNodes.', code=1)
    found = int(match[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[match[2].lower()] if match else 1
    if found > _MOST:
        raise Skip(f"{ERROR}Numeric argument ({value}) too large for MaxNodes.", code=1)
    return [("maximum_nodes", found)]


def _minimum_nodes(typed: Typed) -> Changes:
    match = re.fullmatch(r"(-?[0-9]{1,9})([kK]?)(?:-.*)?", typed.value)
    if match is None:
        raise Skip(f'{ERROR}"{typed.value}" is not a valid node count')
    found = int(match[1]) * (1024 if match[2] else 1)
    return [("minimum_nodes", found if found >= 0 else 1)]


EXCLUSIVE = ("NO", "NODE", "USER", "TOPO")


def _exclusive(typed: Typed) -> Changes:
    word = typed.value.upper()
    if word not in EXCLUSIVE:
        raise Failure(f"{ERROR}Invalid input: {typed.text}\n{ERROR}Acceptable Exclusive values are {', '.join(EXCLUSIVE)}")
    return [("exclusive", word)]


_FORCED = 0x8000
"""The bit of Slurm's number of sharing jobs that says FORCE."""


def _sharing(typed: Typed) -> Changes:
    word, colon, count = typed.value.partition(":")
    chosen = next((each for each in ("NO", "EXCLUSIVE", "YES", "FORCE") if word and each.startswith(word.upper())), None)
    if chosen is None:
        raise Failure(
            f"{ERROR}Invalid input: {typed.text.partition(':')[0]}\n"
            f"{ERROR}Acceptable OverSubscribe values are NO, EXCLUSIVE, YES:#, and FORCE:#"
        )
    if chosen in ("NO", "EXCLUSIVE"):
        return [("oversubscribe", chosen)]
    digits = re.match(r"[0-9]{0,9}", count)
    jobs = int(digits[0] or 0) & 0xFFFF if colon and digits else 4
    jobs |= _FORCED if chosen == "FORCE" else 0
    return [("oversubscribe", _sharing_text(jobs & ~_FORCED, forced=bool(jobs & _FORCED)))]


def _sharing_text(jobs: int, *, forced: bool) -> str:
    if not jobs:
        return "EXCLUSIVE"
    if forced:
        return f"FORCE:{jobs}"
    return "NO" if jobs == 1 else f"YES:{jobs}"


def _preempt_mode(typed: Typed) -> Changes:
    words = typed.value.upper().split(",")
    modes = [word for word in words if word not in ("GANG", "WITHIN", "PRIORITY")]
    within = len(words) - len(modes) - words.count("GANG")
    if typed.value and (len(modes) > 1 or not set(words) <= set(PREEMPT_MODES) or ("GANG" in words and within)):
        raise Failure(f"{ERROR}Invalid input: {typed.text}")
    if "GANG" in words:
        raise Failure(f"{ERROR}PreemptMode=GANG is a cluster-wide option and cannot be set at partition level")
    return [("preempt_mode", modes[0] or "OFF")] if modes and not within else []


def _state(typed: Typed) -> Changes:
    for word in ("INACTIVE", "DOWN", "UP", "DRAIN"):
        if typed.value and word.startswith(typed.value.upper()):
            return [("state", word)]
    raise Failure(f"{ERROR}Invalid input: {typed.text}\n{ERROR}Acceptable State values are UP, DOWN, DRAIN and INACTIVE")


def _memory(which: str, per: str) -> Read:
    """MiB for each CPU or node; 0 is no limit. What was said for each of the other holds no longer."""
    field, other = f"{which}_memory_per_{per}", f"{which}_memory_per_{'node' if per == 'cpu' else 'cpu'}"
    name = f"{'Def' if which == 'default' else 'Max'}MemPer{'CPU' if per == 'cpu' else 'Node'}"
    counted = keys.number(name, field, bits=64)
    return lambda typed: [(field, counted(typed)[0][1] or None), (other, None)]


def _alternate(typed: Typed) -> Changes:
    return [("alternate", "" if typed.value.lower() == "none" else typed.value)]


KEYS: tuple[Key, ...] = (
    Key("MaxTime", 4, _time("maximum_time")),
    Key("DefaultTime", 8, _time("default_time")),
    Key("MaxCPUsPerNode", 4, keys.limit("MaxCPUsPerNode", "maximum_cpus_per_node")),
    Key("MaxCPUsPerSocket", 11, keys.limit("MaxCPUsPerSocket", "maximum_cpus_per_socket")),
    Key("MaxNodes", 4, _maximum_nodes),
    Key("MinNodes", 2, _minimum_nodes),
    Key("Default", 7, keys.yes_no("Default", "default")),
    Key("DisableRootJobs", 1, keys.yes_no("DisableRootJobs", "disable_root_jobs")),
    Key("Exclusive", 9, _exclusive),
    Key("ExclusiveUser", 1, keys.yes_no("ExclusiveUser", "exclusive_user")),
    Key("ExclusiveTopo", 10, keys.yes_no("ExclusiveTopo", "exclusive_topology")),
    Key("Hidden", 1, keys.yes_no("Hidden", "hidden")),
    Key("LLN", 1, keys.yes_no("LLN", "lln")),
    Key("RootOnly", 3, keys.yes_no("RootOnly", "root_only")),
    Key("ReqResv", 3, keys.yes_no("ReqResv", "require_reservation")),
    Key("OverSubscribe", 5, _sharing),
    Key("Shared", 2, _sharing),
    Key("OverTimeLimit", 5, keys.limit("OverTimeLimit", "over_time_limit", bits=16)),
    Key("PowerDownOnIdle", 1, keys.yes_no("PowerDownOnIdle", "power_down_on_idle")),
    Key("PreemptMode", 3, _preempt_mode),
    Key("Priority", 3, keys.number("Priority", "priority_tier", "priority_job_factor", bits=16)),
    Key("PriorityJobFactor", 9, keys.number("PriorityJobFactor", "priority_job_factor", bits=16)),
    Key("PriorityTier", 9, keys.number("PriorityTier", "priority_tier", bits=16)),
    Key("State", 2, _state),
    Key("Nodes", 1, _nodes),
    Key("AllowGroups", 6, _words("allow_groups")),
    Key("AllowAccounts", 6, _words("allow_accounts")),
    Key("AllowQos", 6, _words("allow_qos")),
    Key("DenyAccounts", 5, _denied("deny_accounts")),
    Key("DenyQos", 5, _denied("deny_qos")),
    Key("AllocNodes", 6, _hosts),
    Key("Alternate", 3, _alternate),
    Key("GraceTime", 5, keys.number("GraceTime", "grace_time")),
    Key("DefMemPerCPU", 10, _memory("default", "cpu")),
    Key("DefMemPerNode", 10, _memory("default", "node")),
    Key("MaxMemPerCPU", 10, _memory("maximum", "cpu")),
    Key("MaxMemPerNode", 10, _memory("maximum", "node")),
    Key("QOS", 3, keys.text("qos")),
    Key("JobDefaults", 4, keys.text("job_defaults")),
    Key("CpuBind", 7, keys.cpu_binding),
    Key("TresBillingWeights", 1, keys.text("tres_billing_weights")),
    Key("Topology", 4, keys.text("topology")),
)
"""What a partition is told, in the order in which a shortened key is looked up."""


# ---------------------------------------------------------------------------------------------- commands


def _read(words: Sequence[str], session: Session) -> tuple[str | None, Changes, int, int]:
    """The partition's name, the changes, how many keys there were, and the exit code so far. A sign means something for
    nodes alone."""
    name: str | None = None
    changes: Changes = []
    counted, code = 0, 0
    for word in words:
        typed = keys.typed(word, session.controller.now())
        if typed is None:
            raise Failure(f"{ERROR}Invalid input: {word}  Request aborted")
        counted += 1
        if keys.abbreviates(typed.key, "PartitionName", 2):
            name = typed.value
            continue
        key = keys.find_key(KEYS, typed.key)
        if key is None:
            raise Failure(f"{ERROR}Update of this parameter is not supported: {word}\n\n{ERROR}Request aborted")
        try:
            changes += key.read(typed)
        except Skip as skipped:
            session.say(f"{skipped}\n")
            code = code or skipped.code
    return name, changes, counted, code


async def update(session: Session, words: Sequence[str]) -> int:
    """``scontrol update PartitionName=…``."""
    name, changes, counted, code = _read(words, session)
    if name is None:
        raise Failure(f"{ERROR}PartitionName must be given.")
    if counted <= 1:
        raise Failure(f"{ERROR}No changes specified")
    event = UpdatePartition(session.controller.now(), session.call.caller, name, tuple(changes))
    return keys.tell_update(await session.controller.apply(event), session.output) or code


async def create(session: Session, words: Sequence[str]) -> int:
    """``scontrol create PartitionName=…``."""
    name, changes, _, code = _read(words, session)
    if name is None:
        raise Failure(f"{ERROR}PartitionName must be given.")
    if name.lower() == "default":
        raise Failure(f'{ERROR}PartitionName cannot be "DEFAULT".')
    event = UpdatePartition(session.controller.now(), session.call.caller, name, tuple(changes), create=True)
    answers = await session.controller.apply(event)
    return keys.tell_update(answers, session.output, prefix="Error creating the partition: ") or code


async def delete(session: Session, typed: str, name: str) -> int:
    """``scontrol delete PartitionName=NAME``; ``typed`` is the first word of it."""
    event = DeletePartition(session.controller.now(), session.call.caller, name)
    for answer in await session.controller.apply(event):
        if isinstance(answer, Refused):
            return session.insist(f"delete_partition {typed}: {answer.error}\n")
    return 0
