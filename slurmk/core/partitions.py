"""What administrators do to partitions: make them, change them, delete them (scontrol(1)).

A change lasts over a restart, and until the configuration is read anew: then that says what partitions there are, unless
ReconfigFlags of slurm.conf keep them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from slurmk.core.effects import Accepted, ForgetPartition, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import Caller, DeletePartition, UpdatePartition
from slurmk.core.state import State, Turn
from slurmk.model.configuration import JOB_DEFAULTS
from slurmk.model.node import Partition
from slurmk.model.site import tracked_tres
from slurmk.model.states import NodeFlag

STATES = ("UP", "DOWN", "DRAIN", "INACTIVE")

EVERY_NODE = "ALL"

_OWN = frozenset({"name", "created", "deleted", "selected", "node_spec", "joined_by"})
"""Fields that are nobody's to set."""

_SETTABLE = (frozenset(Partition.__dataclass_fields__) - _OWN) | {"exclusive"}


def update(turn: Turn, event: UpdatePartition) -> None:
    """scontrol update and create PartitionName=…: all of the changes, or none."""
    try:
        _check_caller(event.caller)
        old = turn.state.partitions.get(event.name)
        if (old is None) != event.create or not event.name:
            raise SlurmError(Errno.INVALID_PARTITION_NAME)
        partition = old or Partition(event.name, (), minimum_nodes=1, created=True)
        partition = _changed(turn, partition, dict(event.changes))
    except SlurmError as error:
        turn.emit(Refused(error))
        return
    if partition.default:
        _only_default(turn, partition.name)
    turn.save_partition(partition)
    turn.state.refresh()
    turn.emit(Accepted(name=partition.name))
    turn.wake_planner()


def delete(turn: Turn, event: DeletePartition) -> None:
    """scontrol delete PartitionName=…: one that no job and no reservation needs."""
    state = turn.state
    try:
        _check_caller(event.caller)
        partition = state.partitions.get(event.name)
        if partition is None:
            raise SlurmError(Errno.INVALID_PARTITION_NAME)
        if any(True for _ in _users(state, event.name)):
            raise SlurmError(Errno.PARTITION_IN_USE)
    except SlurmError as error:
        turn.emit(Refused(error))
        return
    if partition.created:
        del state.partitions[event.name]
        turn.keep(ForgetPartition(event.name))
    else:
        turn.save_partition(replace(partition, deleted=True))
        del state.partitions[event.name]
    state.refresh()
    turn.emit(Accepted(name=event.name))
    turn.wake_planner()


def _check_caller(caller: Caller) -> None:
    if not caller.operator:
        raise SlurmError(Errno.USER_ID_MISSING)


def _users(state: State, name: str) -> Iterator[str]:
    """What keeps a partition from being deleted."""
    yield from (str(job.job_id) for job in state.jobs.values() if not job.state.finished and name in job.partitions)
    yield from (each.name for each in state.reservations.values() if each.partition == name)


def _only_default(turn: Turn, name: str) -> None:
    for other in list(turn.state.partitions.values()):
        if other.default and other.name != name:
            turn.save_partition(replace(other, default=False))


# --------------------------------------------------------------------------------------------- what may be said


def _changed(turn: Turn, partition: Partition, changes: dict[str, Any]) -> Partition:
    """Raises SlurmError."""
    if not changes.keys() <= _SETTABLE:
        raise SlurmError(Errno.NOT_SUPPORTED)
    if changes.get("state", "UP") not in STATES:
        raise SlurmError(Errno.INVALID_PARTITION_NAME)
    for names in (changes.get("allow_qos"), changes.get("deny_qos"), (changes.get("qos"),)):
        _check_qos(turn, names or ())
    if not all(map(_is_weight(turn.state), _words(changes.get("tres_billing_weights", "")))):
        raise SlurmError(Errno.INVALID_TRES_BILLING_WEIGHTS)
    if changes.get("topology", "default") not in ("", "default"):
        raise SlurmError(Errno.REQUESTED_TOPO_CONFIG_UNAVAILABLE)
    if "nodes" in changes:
        changes.update(_members(turn.state, partition, changes["nodes"]))
    if "job_defaults" in changes:
        changes["job_defaults"] = _job_defaults(changes["job_defaults"])
    exclusive = changes.pop("exclusive", None)
    partition = replace(partition, **changes)
    if exclusive is not None:
        return _exclusive(partition, exclusive)
    return replace(partition, oversubscribe="EXCLUSIVE") if changes.get("exclusive_topology") else partition


def _exclusive(partition: Partition, word: str) -> Partition:
    """``Exclusive=``: whole nodes for a job, for a user, or a part of the topology for a job."""
    whole = word in ("NODE", "TOPO")
    shared = "NO" if partition.oversubscribe == "EXCLUSIVE" else partition.oversubscribe
    return replace(
        partition,
        oversubscribe="EXCLUSIVE" if whole else shared,
        exclusive_user=word == "USER",
        exclusive_topology=word == "TOPO",
    )


def _job_defaults(text: str) -> str:
    """``DefCpuPerGPU=2,DefMemPerGPU=100`` as it is shown. Raises SlurmError."""
    known = {name.lower(): name for name in JOB_DEFAULTS}
    found: dict[str, str] = {}
    for word in _words(text):
        name, _, number = word.partition("=")
        if name.lower() not in known or not re.fullmatch(r"[0-9]{1,15}", number):
            raise SlurmError(Errno.INVALID_JOB_DEFAULTS)
        found[known[name.lower()]] = number
    return ",".join(f"{name}={found[name]}" for name in JOB_DEFAULTS if name in found)


def _check_qos(turn: Turn, names: Iterable[str | None]) -> None:
    known = {name.lower() for name in turn.directory.qos}
    if any(name and name.lower() not in known for name in names):
        raise SlurmError(Errno.INVALID_QOS)


def _words(text: str) -> list[str]:
    return text.split(",") if text else []


_WEIGHT = re.compile(r"-?\d{1,12}(?:\.\d{0,12})?[KMGTP]?\Z", re.ASCII | re.IGNORECASE)


def _is_weight(state: State) -> Callable[[str], bool]:
    """Whether a word is ``TRES=factor`` of something that accounting counts."""
    known = tracked_tres(state.site)

    def is_weight(word: str) -> bool:
        name, _, factor = word.partition("=")
        return name.lower() in known and _WEIGHT.match(factor) is not None

    return is_weight


def _members(state: State, partition: Partition, said: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The nodes that a partition has after that, in the order of the nodes. Raises SlurmError."""
    words = tuple(said)
    if any(name.upper() == EVERY_NODE for sign, name in words if not sign):
        return {"nodes": tuple(state.nodes), "node_spec": EVERY_NODE, "selected": False, "joined_by": ()}
    members = set(partition.nodes) if words and words[0][0] else set()
    for sign, name in words:
        if not name:
            continue
        if sign == "-":
            members.discard(name)
        elif name not in state.nodes:
            raise SlurmError(Errno.INVALID_NODE_NAME)
        else:
            members.add(name)
    nodes = tuple(name for name in state.nodes if name in members)
    return {"nodes": nodes, "node_spec": ",".join(nodes), "selected": False, "joined_by": ()}


# --------------------------------------------------------------------------------------------- restarts


def restored(configured: dict[str, Partition], saved: Iterable[Partition]) -> dict[str, Partition]:
    """The partitions of the configuration as administrators had left them, and those that they had made."""
    partitions = dict(configured)
    for partition in saved:
        if partition.deleted:
            partitions.pop(partition.name, None)
        elif partition.created or partition.name in configured:
            partitions[partition.name] = with_members(partition, configured.get(partition.name))
    return partitions


def with_members(old: Partition, configured: Partition | None) -> Partition:
    """A partition as an administrator left it, with the nodes that it has now where labels choose them."""
    if configured is None or not (configured.selected and old.selected):
        return old
    return replace(old, nodes=configured.nodes, node_spec=configured.node_spec)


def join(state: State) -> None:
    """Nodes that were made (scontrol create) are in the partitions of all nodes, and in those whose node sets have a feature
    of theirs."""
    made = [node for node in state.nodes.values() if node.flags & NodeFlag.DYNAMIC_NORM]
    for partition in list(state.partitions.values()) if made else ():
        members = dict.fromkeys(partition.nodes)
        every = EVERY_NODE in partition.node_spec.upper().split(",")
        members |= dict.fromkeys(node.name for node in made if every or not set(partition.joined_by).isdisjoint(node.features))
        if tuple(members) != partition.nodes:
            state.partitions[partition.name] = replace(partition, nodes=tuple(members))
    state.refresh()


def reconfigured(turn: Turn, configured: Iterable[Partition]) -> list[Partition]:
    """The partitions after the configuration was read anew. ReconfigFlags may keep what was changed: KeepPartInfo all of
    it, KeepPartState whether they are up."""
    flags = turn.state.site.parameters.get("ReconfigFlags", "").lower().split(",")
    before = turn.state.partitions
    wanted = {partition.name: partition for partition in configured}
    if "keeppartinfo" in flags:
        return list(restored(wanted, before.values()).values())
    for name in before.keys() | wanted.keys():
        turn.keep(ForgetPartition(name))
    if "keeppartstate" not in flags:
        return list(wanted.values())
    kept = [replace(each, state=before[each.name].state) if each.name in before else each for each in wanted.values()]
    for partition in kept:
        if partition.state != wanted[partition.name].state:
            turn.save_partition(partition)
    return kept
