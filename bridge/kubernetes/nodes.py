"""A Kubernetes node as the nodes that Slurm's commands speak of: usually one, by slurm.conf also several or differently named.

Kubernetes counts CPUs in thousandths and memory in bytes; jobs are given whole CPUs and MiB. What is left for jobs is
counted from the exact numbers and then rounded, so that what is free here is free there.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.kubernetes.foreign import Foreign
from bridge.kubernetes.gres import NO_SLICES, Kind, Slices, Supply, supplies
from bridge.kubernetes.labels import DRAIN_REASON
from bridge.kubernetes.quantities import MEBIBYTE, QuantityError, parse_milli, parse_quantity
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.selectors import parse_selector
from bridge.kubernetes.settings import Features, PartitionSettings, PodSettings, Settings
from slurmk.model.node import Cordon, GresCapacity, Node
from slurmk.model.states import NodeFlag, NodeState

CORDONED = "Cordoned in Kubernetes"
"""Reason of a node that somebody else cordoned without saying why."""

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

NOT_TAINTS = frozenset({UNSCHEDULABLE, "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""Taints that say again what a cordon or the condition Ready says."""

ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i686", "arm": "armv7l"}
"""Kubernetes' words (Go's) and those of ``uname -m``; others are the same."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is known beside a node's own object. ``classes`` are DeviceClasses by name. ``timeout`` is SlurmdTimeout: after so
    many seconds without a sign a node is down; 0: never."""

    foreign: Foreign = field(default_factory=Foreign)
    slices: Slices = NO_SLICES
    classes: Mapping[str, Manifest] = field(default_factory=dict)
    now: float = 0.0
    timeout: int = 300


def node_of(manifest: Manifest, settings: Settings, around: Around, configured: Node | None = None) -> Node:
    """The one Slurm node that a Kubernetes node is."""
    return nodes_of(manifest, settings, around, (configured,) if configured is not None else ())[0]


def nodes_of(manifest: Manifest, settings: Settings, around: Around, configured: Sequence[Node] = ()) -> tuple[Node, ...]:
    """The Slurm nodes that a Kubernetes node is: those that slurm.conf puts there (NodeHostname), else one of its name.

    What slurm.conf says of CPUs, memory and GRES holds as far as the node's allocatable reaches for all of them together;
    a NodeName without hardware (neither CPUs nor RealMemory) has what Kubernetes says.
    """
    seen = _seen(manifest, settings, around)
    if len(configured) > 1:
        seen = _in_parts(seen, len(configured))
    named = [node if _says_hardware(node) else _with_hardware_of(node, seen) for node in configured] or [seen]
    status = manifest.get("status") or {}
    allocatable = _allocatable(status)
    held = around.foreign.requests
    milli, mebibyte = _milli_per_cpu(manifest, settings), 1000 * MEBIBYTE
    cpus = _shared(allocatable.get("cpu", 0), held.get("cpu", 0), milli, [node.cpus for node in named])
    memory = _shared(allocatable.get("memory", 0), held.get("memory", 0), mebibyte, [node.memory for node in named])
    gres = _gres(named, supplies(manifest, settings.gres, around.foreign, around.slices, around.classes))
    found = []
    for position, node in enumerate(named):
        sized = _sized(node, *cpus[position])
        capacities, foreign_gres = gres[position]
        found.append(
            replace(
                sized,
                memory=memory[position][0],
                foreign_memory=memory[position][1],
                gres=capacities,
                foreign_gres=foreign_gres,
                **_common(seen, node),
            )
        )
    return tuple(found)


def _in_parts(seen: Node, count: int) -> Node:
    """What is true of each of several Slurm nodes. A cordon closes all of them, and none of them can lift it: draining one
    would drain the others, so that stays between slurmk and its administrators."""
    refusal = seen.refusal or (seen.cordon.reason if seen.cordon is not None and seen.cordon.closed else "")
    room = None if seen.maximum_jobs is None else seen.maximum_jobs // count
    return replace(seen, cordon=None, refusal=refusal, maximum_jobs=room)


def absent(configured: Node) -> Node:
    """A node of slurm.conf of which Kubernetes knows nothing."""
    return replace(configured, state=NodeState.DOWN, flags=configured.flags | NodeFlag.NO_RESPOND)


# ------------------------------------------------------------------- what Kubernetes says


def _seen(manifest: Manifest, settings: Settings, around: Around) -> Node:
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
    labels = metadata.get("labels") or {}
    allocatable = _allocatable(status)
    information = status.get("nodeInfo") or {}
    cpus = max(0, allocatable.get("cpu", 0) // _milli_per_cpu(manifest, settings))
    features = features_of(labels, settings.features)
    ready, since = _ready(status)
    state, flags = NodeState.IDLE, NodeFlag.NONE
    if not ready:
        flags = NodeFlag.NO_RESPOND
        if around.timeout and around.now >= since + around.timeout:
            state = NodeState.DOWN
    room = allocatable.get("pods", 0) - around.foreign.requests.get("pods", 0)
    return Node(
        metadata["name"],
        address=_address(status) or metadata["name"],
        host_name=metadata["name"],
        cpus=cpus,
        cores_per_socket=max(1, cpus),
        memory=allocatable.get("memory", 0) // (1000 * MEBIBYTE),
        temporary_disk=allocatable.get("ephemeral-storage", 0) // (1000 * MEBIBYTE),
        features=features,
        active_features=features,
        state=state,
        flags=flags,
        slurmd_start_time=since if ready else 0,
        operating_system=_operating_system(information),
        architecture=ARCHITECTURES.get(information.get("architecture", ""), information.get("architecture", "")),
        version=information.get("kubeletVersion", ""),
        cpus_milli=allocatable.get("cpu", 0),
        foreign_cpus_milli=around.foreign.requests.get("cpu", 0),
        foreign_pods=around.foreign.workloads,
        maximum_jobs=max(0, room // 1000) if "pods" in allocatable else None,
        cordon=_cordon(manifest, spec),
        refusal=refusal_of(manifest, settings),
        reported_features=features,
    )


_COMMON: tuple[str, ...] = (
    "host_name",
    "slurmd_start_time",
    "operating_system",
    "architecture",
    "version",
    "cpus_milli",
    "foreign_cpus_milli",
    "foreign_pods",
    "maximum_jobs",
    "cordon",
    "refusal",
    "reported_features",
)
"""Fields that every Slurm node of a Kubernetes node has from it, whatever slurm.conf says."""


def _common(seen: Node, node: Node) -> dict[str, Any]:
    common = {name: getattr(seen, name) for name in _COMMON}
    features = tuple(dict.fromkeys((*node.features, *seen.features)))
    known = node.address not in ("", node.name, node.host_name)
    return common | {
        "address": node.address if known else seen.address,
        "features": features,
        "active_features": features,
        "temporary_disk": node.temporary_disk or seen.temporary_disk,
        "state": node.state if node.state in (NodeState.DOWN, NodeState.FUTURE) else seen.state,
        "flags": node.flags | seen.flags,
    }


def _allocatable(status: Mapping[str, Any]) -> dict[str, int]:
    """Thousandths by resource."""
    found = {}
    for name, text in (status.get("allocatable") or status.get("capacity") or {}).items():
        try:
            found[name] = int(parse_quantity(text) * 1000)
        except QuantityError:
            continue  # the API server lets none through
    return found


def _ready(status: Mapping[str, Any]) -> tuple[bool, int]:
    """Whether the kubelet is there and ready, and since when it is so (Unix seconds)."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return condition.get("status") == "True", unix_time(condition.get("lastTransitionTime", ""))
    return False, 0


def unix_time(text: str) -> int:
    """Unix seconds of a time as Kubernetes writes it; 0 for none."""
    try:
        return calendar.timegm(time.strptime(text.partition(".")[0].rstrip("Z"), "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, AttributeError):
        return 0


def _address(status: Mapping[str, Any]) -> str:
    addresses = {each.get("type"): each.get("address", "") for each in reversed(status.get("addresses") or ())}
    return str(addresses.get("InternalIP") or addresses.get("Hostname") or "")


def _operating_system(information: Mapping[str, Any]) -> str:
    words = (
        str(information.get("operatingSystem", "")).capitalize(),
        information.get("kernelVersion", ""),
        information.get("osImage", ""),
    )
    return " ".join(word for word in words if word)


def _cordon(manifest: Manifest, spec: Mapping[str, Any]) -> Cordon:
    if not spec.get("unschedulable"):
        return Cordon(False)
    reason = (manifest["metadata"].get("annotations") or {}).get(DRAIN_REASON) or CORDONED
    since = next(
        (unix_time(each.get("timeAdded", "")) for each in spec.get("taints") or () if each.get("key") == UNSCHEDULABLE), 0
    )
    return Cordon(True, reason, since)


def features_of(labels: Mapping[str, str], features: Features) -> tuple[str, ...]:
    """The features that labels are."""
    found = [labels[key] for key in features.values if labels.get(key)]
    found += [f"{key}={labels[key]}" for key in features.pairs if key in labels]
    for prefix in features.prefixes:
        found += [key[len(prefix) :] for key, value in labels.items() if key.startswith(prefix) and value == "true"]
    return tuple(dict.fromkeys(word for word in found if word))


# ------------------------------------------------------------------- taints


def refusal_of(manifest: Manifest, settings: Settings) -> str:
    """Why no job's pod may come to the node: a taint that no partition with the node tolerates; empty when pods may."""
    partitions = [each for each in settings.partitions if selects(each, manifest, settings)]
    pods = [each.pods for each in partitions] or [settings.pods]
    refused = [refused_by(manifest, each) for each in pods]
    return "" if "" in refused else refused[0]


def selects(partition: PartitionSettings, manifest: Manifest, settings: Settings) -> bool:
    """True when the partition's selector, or where it has none slurm.conf, may have the node in it."""
    labels = manifest["metadata"].get("labels") or {}
    return partition.nodes is None or parse_selector(partition.nodes).matches(labels)


def refused_by(manifest: Manifest, pods: PodSettings) -> str:
    """The taint that keeps these pods from a node, or the label that they want and it lacks; empty for none."""
    for taint in (manifest.get("spec") or {}).get("taints") or ():
        if taint.get("effect") == "PreferNoSchedule" or taint.get("key") in NOT_TAINTS:
            continue
        if not any(_tolerates(toleration, taint) for toleration in pods.tolerations):
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"Taint {taint.get('key')}{value}:{taint.get('effect')}"
    labels = manifest["metadata"].get("labels") or {}
    for key, value in pods.node_selector.items():
        if labels.get(key) != value:
            return f"Label {key} is not {value}"
    return ""


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Kubernetes' rule; one with ``tolerationSeconds`` lets a job only begin what is then evicted, and does not count."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("tolerationSeconds") is not None and taint.get("effect") == "NoExecute":
        return False
    operator = toleration.get("operator") or "Equal"
    if not toleration.get("key"):
        return bool(operator == "Exists")
    if toleration["key"] != taint.get("key"):
        return False
    value = taint.get("value") or ""
    if operator in ("Lt", "Gt"):
        return _compares(operator, value, str(toleration.get("value") or ""))
    return bool(operator == "Exists" or (toleration.get("value") or "") == value)


def _compares(operator: str, taint: str, toleration: str) -> bool:
    try:
        return int(taint) < int(toleration) if operator == "Lt" else int(taint) > int(toleration)
    except ValueError:
        return False


# ------------------------------------------------------------------- sizes


def _milli_per_cpu(manifest: Manifest, settings: Settings) -> int:
    """Thousandths that a CPU of a job asks for on this node: the most that a partition with the node has."""
    requests = [each.pods.cpu_request for each in settings.partitions if selects(each, manifest, settings)]
    return max(1, *(parse_milli(request) for request in requests or [settings.pods.cpu_request]))


def _says_hardware(node: Node) -> bool:
    return node.cpus > 1 or node.memory > 1


def _with_hardware_of(node: Node, seen: Node) -> Node:
    """A configured node with the size that was seen."""
    return replace(node, cpus=seen.cpus, cores_per_socket=seen.cores_per_socket, memory=seen.memory)


def _sized(node: Node, cpus: int, foreign: int) -> Node:
    """The node with so many CPUs; its shape is kept if they are as many as configured."""
    if cpus == node.cpus:
        return replace(node, foreign_cpus=foreign)
    return replace(
        node, cpus=cpus, boards=1, sockets=1, cores_per_socket=max(1, cpus), threads_per_core=1, foreign_cpus=foreign
    )


def _shared(allocatable: int, held: int, unit: int, wanted: Sequence[int]) -> list[tuple[int, int]]:
    """What each of several Slurm nodes on one Kubernetes node has, and how much of that others hold, in units of so many
    thousandths; ``held`` is what others hold of all that is ``allocatable``.

    If they want more than there is, each has its share of it; what nobody wants is what others hold first.
    """
    total, free = allocatable // unit, max(0, allocatable - held) // unit
    asked = sum(wanted)
    given = list(wanted) if asked <= total else [total * each // asked for each in wanted]
    excess = max(0, sum(given) - free)
    return [(each, min(each, -(-excess * each // sum(given)))) if each else (0, 0) for each in given]


def _gres(
    nodes: Sequence[Node], supply: Mapping[Kind, Supply]
) -> list[tuple[tuple[GresCapacity, ...], tuple[tuple[str, int], ...]]]:
    """The GRES of each node and what others hold of them; a node whose hardware was taken from Kubernetes has none said."""
    if len(nodes) == 1 and not nodes[0].gres:
        return [_own_gres(supply)]
    left = {kind: [each.total, each.foreign] for kind, each in supply.items()}
    for kind in left:
        wanted = sum(each.count for node in nodes for each in node.gres if _is_of(each, kind))
        left[kind][1] = max(0, left[kind][1] - max(0, left[kind][0] - wanted))
    return [_configured_gres(node, left) for node in nodes]


def _own_gres(supply: Mapping[Kind, Supply]) -> tuple[tuple[GresCapacity, ...], tuple[tuple[str, int], ...]]:
    capacities = tuple(GresCapacity(name, kind, each.total) for (name, kind), each in supply.items())
    foreign = tuple((_label(name, kind), each.foreign) for (name, kind), each in supply.items() if each.foreign)
    return capacities, foreign


def _configured_gres(node: Node, left: dict[Kind, list[int]]) -> tuple[tuple[GresCapacity, ...], tuple[tuple[str, int], ...]]:
    """What slurm.conf gives a node, as far as it is there; ``left`` (total, held by others) goes down by it."""
    capacities, foreign = [], []
    for each in node.gres:
        count = held = 0
        for kind, rest in left.items():
            if _is_of(each, kind):
                part = min(each.count - count, rest[0])
                taken = min(part, rest[1])
                count, held = count + part, held + taken
                rest[0], rest[1] = rest[0] - part, rest[1] - taken
        capacities.append(replace(each, count=count))
        if held:
            foreign.append((_label(each.name, each.type), held))
    return tuple(each for each in capacities if each.count), tuple(foreign)


def _is_of(capacity: GresCapacity, kind: Kind) -> bool:
    """True when configured GRES can be of that kind: by its type, or of any type where either says none."""
    return capacity.name == kind[0] and (not capacity.type or not kind[1] or capacity.type == kind[1])


def _label(name: str, kind: str) -> str:
    return f"{name}:{kind}" if kind else name
