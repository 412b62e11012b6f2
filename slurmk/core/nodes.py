"""Nodes: what administrators change of them, what launchers report, and a configuration read anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from grammar.errors import GrammarError
from grammar.hostlist import compress, expand
from slurmk.core import partitions
from slurmk.core.effects import Accepted, CordonNode, ForgetNode, Refused
from slurmk.core.errors import MESSAGES, Errno, SlurmError
from slurmk.core.events import CreateNodes, DeleteNodes, NodeChanged, Reconfigure, SiteChanged, UpdateNode
from slurmk.core.state import NodeUsage, Phase, State, Turn, phase_of
from slurmk.core.transitions import lose_nodes
from slurmk.model.node import Cordon, GresCapacity, Node, Partition
from slurmk.model.node_states import Condition, condition_of
from slurmk.model.site import Site
from slurmk.model.states import NO_VALUE, NodeFlag, NodeState

REASON_MISSING = "You must specify a reason when DOWNING or DRAINING a node. Request denied"
"""What scontrol says without ``Reason=``."""

NOT_RESPONDING = "Not responding"
"""Reason of a node that its launcher lost sight of; it is up again as soon as it is seen."""

_CLOSED = NodeFlag.DRAIN | NodeFlag.FAIL
_ADMINISTRATIVE = _CLOSED | NodeFlag.MAINT
"""Flags that an administrator sets, and that therefore outlive a restart."""

_SAID = ("comment", "extra", "cpu_binding", "instance_id", "instance_type", "topology", "certificate_token", "resume_time")
"""What else only administrators say of a node, and nothing that is seen of it changes."""


# --------------------------------------------------------------------------------------------- scontrol update


def update_node(turn: Turn, event: UpdateNode) -> None:
    """scontrol update NodeName=…: all of the nodes, or none."""
    try:
        changed = [_updated(turn, each, name) for name, each in _of_each(event)]
    except SlurmError as error:
        turn.emit(Refused(error))
        return
    turn.emit(Accepted())
    _think_anew(turn)
    for node in changed:
        old = turn.state.nodes[node.name]
        if node.resume_time:
            turn.wake_at(node.resume_time, 0)
        if _shut(old) != _shut(node):
            if node.cordon is not None:
                node = replace(node, cordon_wanted=_shut(node))
            turn.emit(CordonNode(node.name, _shut(node), node.reason))
        turn.save_node(node)
        _changed_shape(turn.state, old, node)
        if node.state is NodeState.DOWN and old.state is not NodeState.DOWN:
            _end_jobs_on(turn, node.name)


_BY_NODE = {"address": False, "host_name": False, "instance_id": True, "instance_type": True}
"""What is said of several nodes as a list in their order, and whether one word may stand for all of them."""


def _of_each(event: UpdateNode) -> list[tuple[str, UpdateNode]]:
    """Every node and what is changed of it. Raises SlurmError where a list is not as long as that of the nodes."""
    lists = {field: _words(str(value)) for field, value in event.changes if field in _BY_NODE}
    for field, words in lists.items():
        if len(words) != len(event.nodes) and not (len(words) == 1 and _BY_NODE[field]):
            raise SlurmError(Errno.INVALID_NODE_NAME)
    found = []
    for place, name in enumerate(event.nodes):
        own = {field: words[place] if len(words) > 1 else words[0] for field, words in lists.items()}
        changes = tuple((field, own.get(field, value)) for field, value in event.changes)
        found.append((name, replace(event, changes=changes)))
    return found


def _words(text: str) -> list[str]:
    """The words of ``a,b`` or ``x[1-2]``; one empty word of an empty text. Raises SlurmError."""
    try:
        return list(expand(text)) or [""]
    except GrammarError:
        raise SlurmError(Errno.INVALID_NODE_NAME) from None


def _think_anew(turn: Turn) -> None:
    """Nodes have changed: the planner has others, and reservations may need others (on a Tick)."""
    turn.wake_planner()
    if turn.state.reservations:
        turn.wake_at(turn.now, 0)


def _updated(turn: Turn, event: UpdateNode, name: str) -> Node:
    if not event.caller.operator:
        raise SlurmError(Errno.USER_ID_MISSING)
    node = turn.state.nodes.get(name)
    if node is None:
        raise SlurmError(Errno.INVALID_NODE_NAME)
    changes: dict[str, Any] = dict(event.changes)
    if "features" in changes and "active_features" not in changes:
        _active_features(replace(node, features=tuple(changes["features"])), node.active_features)
    for field, value in event.changes:
        if field == "resume_after":
            continue
        if field == "gres":
            node = replace(node, gres=_counted(turn.state, node, changes["gres"]))
            continue
        setter = _NODE_FIELDS.get(field)
        if setter is None:
            raise SlurmError(Errno.NOT_SUPPORTED)
        node = setter(node, value)
    if "topology" in changes:
        _check_topology(turn.state, node.topology)
    if event.state is not None:
        row = _NODE_STATES.get(event.state.upper())
        if row is None:
            raise SlurmError(Errno.INVALID_NODE_STATE)
        node = replace(node, resume_time=0)
        if event.state.upper() in _NEED_REASON and not event.reason and not turn.state.nodes[name].reason:
            raise SlurmError(Errno.INVALID_NODE_STATE, REASON_MISSING)
        node = row(node)
    if event.reason is not None and (not event.reason or _shut(node)):  # a node that is open has no reason
        reason_time = turn.now if event.reason else 0
        user = event.caller.user_id if event.reason else 0
        node = replace(node, reason=event.reason, reason_time=reason_time, reason_user_id=user)
    if "resume_after" in changes:
        node = replace(node, resume_time=_resume_time(turn.now, changes["resume_after"]))
    return node


def _resume_time(now: int, seconds: int) -> int:
    return 0 if seconds >= NO_VALUE else now + seconds


def _drain(node: Node) -> Node:
    return replace(node, flags=node.flags | NodeFlag.DRAIN)


def _fail(node: Node) -> Node:
    return replace(node, flags=node.flags | NodeFlag.FAIL)


def _down(node: Node) -> Node:
    return replace(node, state=NodeState.DOWN, flags=node.flags & ~NodeFlag.NO_RESPOND)


def _resume(node: Node) -> Node:
    if node.state is not NodeState.DOWN and not node.flags & (_CLOSED | NodeFlag.NO_RESPOND | NodeFlag.MAINT):
        raise SlurmError(Errno.INVALID_NODE_STATE_TRANSITION)
    return _open(replace(node, state=NodeState.IDLE))


def _idle(node: Node) -> Node:
    return _open(replace(node, state=NodeState.IDLE))


def _open(node: Node) -> Node:
    flags = node.flags & ~(_CLOSED | NodeFlag.NO_RESPOND)
    return replace(node, flags=flags, reason="", reason_time=0, reason_user_id=0)


def _undrain(node: Node) -> Node:
    if not node.flags & NodeFlag.DRAIN:
        return node
    return replace(node, flags=node.flags & ~NodeFlag.DRAIN, reason="", reason_time=0, reason_user_id=0)


def _no_respond(node: Node) -> Node:
    return replace(node, flags=node.flags | NodeFlag.NO_RESPOND)


def _future(node: Node) -> Node:
    return replace(node, state=NodeState.FUTURE)


_NODE_STATES: dict[str, Callable[[Node], Node]] = {
    "DRAIN": _drain,
    "FAIL": _fail,
    "DOWN": _down,
    "RESUME": _resume,
    "IDLE": _idle,
    "UNDRAIN": _undrain,
    "NORESP": _no_respond,
    "NO_RESPOND": _no_respond,
    "FUTURE": _future,
}
_NEED_REASON = frozenset({"DRAIN", "DOWN", "FAIL"})


def _features(node: Node, value: Any) -> Node:
    return replace(node, features=tuple(value), active_features=tuple(value))


def _active_features(node: Node, value: Any) -> Node:
    """Active features are among the available ones. Raises SlurmError."""
    if not set(value) <= set(node.features):
        raise SlurmError(Errno.ACTIVE_FEATURE_NOT_SUBSET)
    return replace(node, active_features=tuple(value))


_NODE_FIELDS: dict[str, Callable[[Node, Any], Node]] = {
    "features": _features,
    "active_features": _active_features,
    "weight": lambda node, value: replace(node, weight=value),
    "comment": lambda node, value: replace(node, comment=value),
    "extra": lambda node, value: replace(node, extra=value),
    "address": lambda node, value: replace(node, address=_named(value)),
    "host_name": lambda node, value: replace(node, host_name=_named(value)),
    "cpu_binding": lambda node, value: replace(node, cpu_binding=value),
    "instance_id": lambda node, value: replace(node, instance_id=value),
    "instance_type": lambda node, value: replace(node, instance_type=value),
    "topology": lambda node, value: replace(node, topology=value),
    "certificate_token": lambda node, value: replace(node, certificate_token=bool(value)),
}


def _named(value: str) -> str:
    if not value:
        raise SlurmError(Errno.INVALID_NODE_NAME)
    return value


def _configured_gres(state: State, node: Node) -> tuple[GresCapacity, ...]:
    return next((each.gres for each in state.site.nodes if each.name == node.name), node.gres)


def _counted(state: State, node: Node, wanted: Sequence[GresCapacity]) -> tuple[GresCapacity, ...]:
    """GRES without devices can be counted anew; what has devices stays as many as it has, with its types or without. A kind
    that there is not changes nothing. Raises SlurmError."""
    configured = [each for each in _configured_gres(state, node) if each.files]
    with_devices = {each.name for other in state.site.nodes for each in other.gres if each.files}
    known = [each for each in wanted if each.name in state.gres_kinds]
    if wanted and not known:
        return node.gres
    found: dict[GresCapacity, None] = {}
    for each in known:
        devices = [one for one in configured if one.name == each.name and each.type in ("", one.type)]
        if each.name in with_devices and sum(one.count for one in devices) != each.count:
            raise SlurmError(Errno.INVALID_GRES)
        found |= dict.fromkeys(devices if each.name in with_devices else [each])
    return tuple(found)


def _check_topology(state: State, text: str) -> None:
    """``default:leaf2``, a switch or a block of the topology. Raises SlurmError."""
    if not text:
        return
    name, _, unit = text.partition(":")
    units = {switch.name for switch in state.site.switches} | {block.name for block in state.site.blocks}
    if name != "default" or (unit and unit.rpartition(":")[2] not in units):
        raise SlurmError(Errno.REQUESTED_TOPO_CONFIG_UNAVAILABLE)


def _shut(node: Node) -> bool:
    return node.state is NodeState.DOWN or bool(node.flags & _CLOSED)


def resume_due(turn: Turn) -> None:
    """Resume the nodes whose time has come (ResumeAfter)."""
    waiting = [node for node in turn.state.nodes.values() if node.resume_time]
    for node in waiting:
        if node.resume_time > turn.now:
            turn.wake_at(node.resume_time, 0)
            continue
        resumed = _open(replace(node, state=NodeState.IDLE, resume_time=0))
        if resumed.cordon is not None:
            resumed = replace(resumed, cordon_wanted=False)
        turn.emit(CordonNode(resumed.name, False, ""))
        turn.save_node(resumed)
        turn.wake_planner()


def create_nodes(turn: Turn, event: CreateNodes) -> None:
    """scontrol create NodeName=…, within MaxNodeCount."""
    state = turn.state
    try:
        if not event.caller.operator:
            raise SlurmError(Errno.USER_ID_MISSING)
        for node in event.nodes:
            if node.name in state.nodes:
                raise SlurmError(Errno.NODE_ALREADY_EXISTS, f"{MESSAGES[Errno.NODE_ALREADY_EXISTS]} ({node.name})")
        room = _most_nodes(state) - len(state.nodes)
        if room < len(event.nodes):
            first = event.nodes[max(0, room)].name
            raise SlurmError(Errno.NODE_TABLE_FULL, f"{MESSAGES[Errno.NODE_TABLE_FULL]} ({first})")
    except SlurmError as error:
        turn.emit(Refused(error))
        return
    for node in event.nodes:
        state.usage.setdefault(node.name, NodeUsage())
        turn.save_node(replace(node, flags=node.flags | NodeFlag.DYNAMIC_NORM, last_busy=turn.now))
    partitions.join(state)
    turn.emit(Accepted())
    turn.wake_planner()


def _most_nodes(state: State) -> int:
    """MaxNodeCount, by default the nodes that are configured."""
    text = state.site.parameters.get("MaxNodeCount", "")
    return int(text) if text.isascii() and text.isdigit() and int(text) else len(state.site.nodes)


def delete_nodes(turn: Turn, event: DeleteNodes) -> None:
    """scontrol delete NodeName=…: of nodes that were made so and are idle."""
    state = turn.state
    if not event.caller.operator:
        turn.emit(Refused(SlurmError(Errno.USER_ID_MISSING)))
        return
    refused: dict[str, Errno] = {}
    for name in event.names:
        node = state.nodes.get(name)
        if node is None:
            refused[name] = Errno.INVALID_NODE_NAME
        elif not node.flags & NodeFlag.DYNAMIC_NORM:
            refused[name] = Errno.INVALID_NODE_STATE
        elif state.usage[name].jobs or name in state.reserved:
            refused[name] = Errno.NODES_BUSY
        else:
            _remove(turn, name)
    state.refresh()
    turn.wake_planner()
    if not refused:
        turn.emit(Accepted())
        return
    turn.emit(Refused(SlurmError(next(iter(refused.values()))), subject=compress(refused)))


def _remove(turn: Turn, name: str) -> None:
    """Forget a node, in the partitions too."""
    state = turn.state
    del state.nodes[name]
    state.usage.pop(name, None)
    state.changes += 1
    turn.keep(ForgetNode(name))
    for partition in list(state.partitions.values()):
        if name in partition.nodes:
            left = tuple(each for each in partition.nodes if each != name)
            named = name in expand(partition.node_spec)
            turn.save_partition(replace(partition, nodes=left, node_spec=",".join(left) if named else partition.node_spec))


def _end_jobs_on(turn: Turn, name: str, *, gone: bool = False) -> None:
    """A node went down: its jobs are ended or queued again."""
    state = turn.state
    for job_id in sorted(state.usage[name].jobs):
        job = state.jobs[job_id]
        if phase_of(job) in (Phase.RUNNING, Phase.SUSPENDED):
            lose_nodes(turn, job, frozenset({name}), gone=gone)


# --------------------------------------------------------------------------------------------- reports and files


def node_changed(turn: Turn, event: NodeChanged) -> None:
    """A launcher saw a node appear, change or vanish. What an administrator said of the node stays."""
    state = turn.state
    old = state.nodes.get(event.node.name)
    if event.removed:
        if old is not None and old.state is not NodeState.DOWN:
            turn.save_node(_lost(old, turn.now))
            _end_jobs_on(turn, old.name, gone=True)
            _think_anew(turn)
        return
    node = _cordoned(event.node) if old is None else _merged(old, event.node)
    if node.cordon is not None and node.cordon_wanted is not None:
        turn.emit(CordonNode(node.name, node.cordon_wanted, node.reason))
    if node == old:
        return
    if node.state is NodeState.DOWN and node.flags & NodeFlag.NO_RESPOND and not node.reason:
        node = replace(node, reason=NOT_RESPONDING, reason_time=turn.now)
    state.nodes[node.name] = node
    state.usage.setdefault(node.name, NodeUsage())
    _changed_shape(state, old, node)
    if old is not None and _kept_of(old) != _kept_of(node):
        turn.save_node(node)
    if old is None or _placement(old) != _placement(node):
        state.changes += 1
        _think_anew(turn)
    if old is not None and node.state is NodeState.DOWN and old.state is not NodeState.DOWN:
        _end_jobs_on(turn, node.name)


def _lost(node: Node, now: int) -> Node:
    """A node out of sight; the flag tells it from one that an administrator set down."""
    flags = node.flags | NodeFlag.NO_RESPOND
    return replace(
        node, state=NodeState.DOWN, flags=flags, reason=node.reason or NOT_RESPONDING, reason_time=node.reason_time or now
    )


def _kept_of(node: Node) -> tuple[object, ...]:
    """What of a node is saved when it changes; all else is seen again after a restart."""
    return node.state, node.flags, node.reason, node.cordon, node.cordon_wanted


def _merged(old: Node, reported: Node) -> Node:
    """What is seen of a node, with what administrators and the configuration said of it."""
    if old.flags & NodeFlag.NO_RESPOND:
        old = replace(old, state=reported.state)
        if old.reason == NOT_RESPONDING:
            old = replace(old, reason="", reason_time=0)
    relabelled = reported.reported_features is not None and reported.reported_features != old.reported_features
    features = reported if relabelled else old
    node = replace(
        reported,
        state=old.state if old.state is NodeState.DOWN else reported.state,
        flags=(reported.flags & ~_ADMINISTRATIVE) | (old.flags & _ADMINISTRATIVE),
        reason=old.reason,
        reason_time=old.reason_time,
        reason_user_id=old.reason_user_id,
        **{name: getattr(old, name) for name in _SAID},
        weight=old.weight,
        features=features.features or reported.features,
        active_features=features.active_features or reported.active_features,
        cordon_wanted=old.cordon_wanted,
    )
    return _cordoned(node, old.cordon)


def _cordoned(node: Node, before: Cordon | None = None) -> Node:
    """The node as its cluster's cordon has it; ``before`` is what was last seen of that.

    What an administrator said here holds until the cluster has followed. After that the cluster's word holds: who cordons
    a node there drains it here, who uncordons it resumes it.
    """
    cordon = node.cordon
    if cordon is None:
        return node
    if node.cordon_wanted is not None:
        return replace(node, cordon_wanted=None) if node.cordon_wanted == cordon.closed else node
    if cordon.closed and not _shut(node):
        reason = node.reason or cordon.reason
        return replace(_drain(node), reason=reason, reason_time=node.reason_time or cordon.time)
    if before is not None and before.closed and not cordon.closed and _shut(node):
        responds = not node.flags & NodeFlag.NO_RESPOND
        return _open(replace(node, state=NodeState.IDLE)) if responds else _undrain(node)
    return node


def _placement(node: Node) -> tuple[object, ...]:
    """What of a node a plan depends on."""
    return (
        node.available,
        node.cpus,
        node.memory,
        node.gres,
        node.active_features,
        node.foreign_cpus,
        node.foreign_memory,
        node.foreign_gres,
        node.maximum_jobs,
        node.weight,
    )


def _changed_shape(state: State, old: Node | None, node: Node) -> None:
    shape = (node.cpus, node.memory, node.gres, node.features, node.active_features, node.temporary_disk)
    if old is None or shape != (old.cpus, old.memory, old.gres, old.features, old.active_features, old.temporary_disk):
        state.refresh()


def reconfigure(turn: Turn, event: Reconfigure) -> None:
    """The configuration was read anew: it says which nodes and partitions there are; jobs and what runs are untouched."""
    if not event.caller.operator:
        turn.emit(Refused(SlurmError(Errno.USER_ID_MISSING)))
        return
    state = turn.state
    old = state.nodes
    state.site = event.site
    nodes = [*(_kept(old.get(node.name), node) for node in event.site.nodes), *_made(state, event.site)]
    state.set_configuration(nodes, partitions.reconfigured(turn, event.site.partitions))
    partitions.join(state)
    turn.emit(Accepted())
    turn.wake_planner()


def _made(state: State, site: Site) -> list[Node]:
    """The nodes that were made and that the site does not have by itself."""
    own = {node.name for node in site.nodes}
    return [node for node in state.nodes.values() if node.flags & NodeFlag.DYNAMIC_NORM and node.name not in own]


def _kept(old: Node | None, node: Node) -> Node:
    """A configured node in the state that the node of this name is in."""
    if old is None:
        return node
    return replace(
        node,
        state=old.state,
        flags=old.flags,
        reason=old.reason,
        reason_time=old.reason_time,
        reason_user_id=old.reason_user_id,
        **{name: getattr(old, name) for name in _SAID},
        boot_time=old.boot_time,
        slurmd_start_time=old.slurmd_start_time,
        cpu_load=old.cpu_load,
        free_memory=old.free_memory,
        operating_system=old.operating_system,
        architecture=old.architecture,
        version=old.version,
        cpus_milli=old.cpus_milli,
        foreign_cpus=old.foreign_cpus,
        foreign_cpus_milli=old.foreign_cpus_milli,
        foreign_memory=old.foreign_memory,
        foreign_gres=old.foreign_gres,
        foreign_pods=old.foreign_pods,
        maximum_jobs=old.maximum_jobs,
        cordon=old.cordon,
        cordon_wanted=old.cordon_wanted,
        refusal=old.refusal,
    )


def site_changed(turn: Turn, event: SiteChanged) -> None:
    """The cluster has other nodes than before, or others are a partition: what is known of the rest stays as it is."""
    state = turn.state
    made = _made(state, event.site)
    wanted = {node.name for node in (*event.site.nodes, *made)}
    for name in [name for name in state.nodes if name not in wanted]:
        if state.nodes[name].state is not NodeState.DOWN:
            turn.save_node(_lost(state.nodes[name], turn.now))
        _end_jobs_on(turn, name, gone=True)
    before = {partition.name: partition for partition in state.site.partitions}
    state.site = event.site
    nodes = [*(state.nodes.get(node.name, _cordoned(node)) for node in event.site.nodes), *made]
    gone = before.keys() - state.partitions.keys()  # deleted here
    kept = [
        _followed(state.partitions.get(each.name), before.get(each.name), each)
        for each in event.site.partitions
        if each.name not in gone
    ]
    state.set_configuration(nodes, [*kept, *(each for each in state.partitions.values() if each.created)])
    partitions.join(state)
    turn.wake_planner()


def _followed(old: Partition | None, before: Partition | None, partition: Partition) -> Partition:
    """The same; memory that comes from the nodes follows them, unless an administrator said something else (``before`` is
    the partition as the site had it until now)."""
    if old is None:
        return partition
    kept = partitions.with_members(old, partition)
    if before is None or old.default_memory_per_cpu != before.default_memory_per_cpu:
        return kept
    return replace(kept, default_memory_per_cpu=partition.default_memory_per_cpu)


def restore(state: State, nodes: Iterable[Node], changed: Iterable[Partition]) -> None:
    """Take up what administrators had changed before a restart; the configuration says which nodes there are."""
    for saved in nodes:
        node = state.nodes.get(saved.name)
        if node is None and saved.flags & NodeFlag.DYNAMIC_NORM:
            state.nodes[saved.name] = saved
            state.usage.setdefault(saved.name, NodeUsage())
        elif node is not None:
            state.nodes[saved.name] = replace(
                node,
                state=saved.state if saved.state in (NodeState.DOWN, NodeState.FUTURE) else node.state,
                flags=node.flags | (saved.flags & (_ADMINISTRATIVE | NodeFlag.NO_RESPOND)),
                reason=saved.reason,
                reason_time=saved.reason_time,
                reason_user_id=saved.reason_user_id,
                **{name: getattr(saved, name) for name in _SAID},
                weight=saved.weight,
                features=saved.features,
                active_features=saved.active_features,
                cordon=saved.cordon,
                cordon_wanted=saved.cordon_wanted,
                reported_features=saved.reported_features,
            )
    state.partitions = partitions.restored(state.partitions, changed)
    partitions.join(state)


def condition(state: State, name: str, *, planned: bool = False) -> Condition:
    """A node's state and flags with what its jobs make of them."""
    node = state.nodes[name]
    usage = state.usage.get(name) or NodeUsage()
    used = node.cpus if usage.whole - usage.completing else usage.active_cpus
    reserved = state.reserved.get(name, (NodeFlag.NONE, ""))[0]
    return condition_of(node, cpus_used=used, completing=bool(usage.completing), planned=planned, reserved=reserved)
