"""The cluster's configuration out of what slurm.conf says (if there is one), slurmk.yaml, and the nodes that there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bridge.kubernetes.nodes import refused_by, selects
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import PartitionSettings, Settings
from grammar.hostlist import compress, in_order
from slurmk.model.configuration import unnamed_site
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site, Switch

CLUSTER = "kubernetes"
"""ClusterName where nobody gives another."""

PARTITION = "batch"
"""The one partition of a site that names none; all nodes are in it."""

ROOT = "cluster"
"""The switch above all that labels name, where those are several."""

HOST_NAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Placed:
    """A Slurm node and the Kubernetes node that it is; None for one of slurm.conf that Kubernetes does not know."""

    node: Node
    manifest: Manifest | None


def configured_site(settings: Settings, configured: Site | None) -> Site:
    """What is configured, without the cluster's nodes."""
    if configured is not None:
        return replace(configured, cluster_name=settings.cluster or configured.cluster_name) if settings.cluster else configured
    return unnamed_site(settings.cluster or CLUSTER)


def settled(settings: Settings, configured: Site | None) -> Settings:
    """The settings with an entry for every partition of slurm.conf."""
    known = {each.name for each in settings.partitions}
    missing = [each.name for each in configured.partitions if each.name not in known] if configured is not None else []
    return replace(
        settings, partitions=(*settings.partitions, *(PartitionSettings(name, pods=settings.pods) for name in missing))
    )


def named_at(configured: Site | None) -> dict[str, list[Node]]:
    """The nodes of slurm.conf by the Kubernetes node (NodeHostname) that they are on."""
    found: dict[str, list[Node]] = {}
    for node in configured.nodes if configured is not None else ():
        found.setdefault(node.host_name or node.name, []).append(node)
    return found


def has_dynamic_nodes(settings: Settings, configured: Site | None) -> bool:
    """True when nodes that slurm.conf does not name belong to it too: it names none, or a partition chooses by labels."""
    return configured is None or not configured.nodes or any(each.nodes is not None for each in settings.partitions)


def site_of(settings: Settings, configured: Site | None, placed: Iterable[Placed], levels: Sequence[str] = ()) -> Site:
    """The site. ``levels`` are label keys of the topology, widest first, where slurmk.yaml names none."""
    site = configured_site(settings, configured)
    known = {each.node.name: each for each in placed}
    configured_names = [node.name for node in site.nodes if node.name in known]
    others = in_order([name for name in known if name not in set(configured_names)])
    ordered = {name: known[name] for name in (*configured_names, *others)}
    partitions = _partitions(settings, site, ordered)
    if configured is not None and configured.nodes:
        members = {name for partition in partitions for name in partition.nodes} | set(configured_names)
        ordered = {name: each for name, each in ordered.items() if name in members}
    switches = site.switches or _switches(settings.switches or tuple(levels), ordered)
    parameters = dict(site.parameters)
    if switches:
        parameters["TopologyPlugin"] = "topology/tree"
    memory = site.default_memory_per_cpu
    if configured is None:
        memory = _memory_per_cpu(each.node for each in ordered.values())
        parameters["DefMemPerCPU"] = str(memory)
        partitions = tuple(
            replace(each, default_memory_per_cpu=_memory_per_cpu(ordered[name].node for name in each.nodes))
            for each in partitions
        )
    return replace(
        site,
        nodes=tuple(each.node for each in ordered.values()),
        default_memory_per_cpu=memory,
        partitions=partitions,
        switches=switches,
        parameters=parameters,
        gres_types=site.gres_types or tuple(dict.fromkeys(source.name for source in settings.gres)),
    )


def _memory_per_cpu(nodes: Iterable[Node]) -> int:
    """MiB for each CPU of a job that says nothing of memory: a CPU's share of the node, of a partition's nodes, that has
    least. Slurm's own default, all of the node's memory, would keep every other job from a node on which one runs."""
    return min((node.memory // node.cpus for node in nodes if node.cpus and node.memory >= node.cpus), default=1)


# ------------------------------------------------------------------- partitions


def _partitions(settings: Settings, site: Site, placed: Mapping[str, Placed]) -> tuple[Partition, ...]:
    by_name = {each.name: each for each in settings.partitions}
    found: list[Partition] = []
    for partition in site.partitions:
        given = by_name.get(partition.name)
        chosen = _chosen(given, partition, settings, placed)
        found.append(partition if chosen is None else _with_nodes(partition, chosen))
    known = {partition.name for partition in found}
    for each in settings.partitions:
        if each.name not in known:
            found.append(_with_nodes(Partition(each.name, (), default=each.default), _members(each, settings, placed)))
    if not found:
        everything = PartitionSettings(PARTITION, "", default=True, pods=settings.pods)
        found.append(_with_nodes(Partition(PARTITION, (), default=True), _members(everything, settings, placed)))
    return _with_default(tuple(found), by_name)


def _chosen(
    given: PartitionSettings | None, partition: Partition, settings: Settings, placed: Mapping[str, Placed]
) -> list[str] | None:
    """The nodes that labels choose for a partition of slurm.conf; None where slurm.conf itself says which."""
    if given is not None and given.nodes is not None:
        return _members(given, settings, placed)
    if partition.node_spec.upper() == "ALL" or not (partition.node_spec or partition.nodes):
        pods = given.pods if given is not None else settings.pods
        return _members(PartitionSettings(partition.name, "", pods=pods), settings, placed)
    return None


def _members(partition: PartitionSettings, settings: Settings, placed: Mapping[str, Placed]) -> list[str]:
    """The nodes that the partition's selector chooses and its pods may go to. A node to which the pods of no partition may
    go stays where it is chosen: it is shown as drained, with the taint as its reason."""
    found = []
    for name, each in placed.items():
        if each.manifest is None:
            if partition.nodes in ("", None):
                found.append(name)
        elif selects(partition, each.manifest, settings) and (
            each.node.refusal or not refused_by(each.manifest, partition.pods)
        ):
            found.append(name)
    return found


def _with_nodes(partition: Partition, names: Sequence[str]) -> Partition:
    return replace(partition, nodes=tuple(names), node_spec=compress(names), selected=True)


def _with_default(partitions: tuple[Partition, ...], given: Mapping[str, PartitionSettings]) -> tuple[Partition, ...]:
    """One default: the one that says so, slurmk.yaml before slurm.conf; where none does, the first of slurmk.yaml's."""
    wanted = next((each.name for each in given.values() if each.default), "")
    wanted = wanted or next((each.name for each in partitions if each.default), "")
    if not wanted and given and all(each.name in given for each in partitions):
        wanted = next(iter(given))
    return tuple(replace(each, default=each.name == wanted) for each in partitions)


# ------------------------------------------------------------------- topology


def levels_of(topology: Manifest) -> tuple[str, ...]:
    """The label keys of a Kueue Topology, widest first, without the hosts themselves."""
    levels = (topology.get("spec") or {}).get("levels") or ()
    return tuple(each["nodeLabel"] for each in levels if each.get("nodeLabel") not in (None, HOST_NAME))


def _switches(keys: Sequence[str], placed: Mapping[str, Placed]) -> tuple[Switch, ...]:
    """A tree of switches: a leaf for each combination of the labels, its name the narrowest one's value.

    Nodes that lack one of the labels are connected to no switch, as nodes that topology.conf does not name.
    """
    leaves: dict[tuple[str, ...], list[str]] = {}
    for name, each in placed.items():
        labels = (each.manifest or {}).get("metadata", {}).get("labels") or {}
        path = tuple(labels.get(key, "") for key in keys)
        if path and all(path):
            leaves.setdefault(path, []).append(name)
    paths = dict.fromkeys(path[:depth] for path in sorted(leaves) for depth in range(1, len(keys) + 1))
    names = _switch_names(paths)
    found = [Switch(names[path], nodes=tuple(nodes)) for path, nodes in sorted(leaves.items())]
    for depth in range(len(keys) - 1, 0, -1):
        for path in (each for each in paths if len(each) == depth):
            below = tuple(names[each] for each in paths if len(each) == depth + 1 and each[:depth] == path)
            found.append(Switch(names[path], switches=below))
    tops = tuple(names[path] for path in paths if len(path) == 1)
    if len(tops) > 1:
        found.append(Switch(ROOT if ROOT not in names.values() else f"{ROOT}-root", switches=tops))
    return tuple(found)


def _switch_names(paths: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """A name for each switch: its label's value, on levels where such values name two together with those above it."""
    paths = list(paths)
    last = Counter(path[-1] for path in paths)
    unclear = {len(path) for path in paths if last[path[-1]] > 1}
    return {path: ".".join(path) if len(path) in unclear else path[-1] for path in paths}


__all__ = [
    "CLUSTER",
    "PARTITION",
    "Placed",
    "configured_site",
    "has_dynamic_nodes",
    "levels_of",
    "named_at",
    "settled",
    "site_of",
]
