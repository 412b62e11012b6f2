"""The cluster's nodes as slurmk knows them, kept by watches: what they are, what others hold of them, and their cordons.

Nodes, and pods that are not ours, are watched for as long as the controller runs; ResourceSlices and claims only where GRES
come from DRA, Kueue's Topology only where Kueue is used. What changed is gathered for a moment, made into Slurm's nodes,
and reported where it differs from what was reported before; so a plan is made within milliseconds of a pod's coming or
going, and a node's heartbeat changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bridge.kubernetes.api import Api
from bridge.kubernetes.errors import ApiError, KubernetesError
from bridge.kubernetes.foreign import Foreign, Requests, belongs_to_node, devices_of_claim, foreign_of, holds, together
from bridge.kubernetes.gres import NO_SLICES, read_slices
from bridge.kubernetes.labels import CONTROLLER, DRAIN_REASON, label_value
from bridge.kubernetes.nodes import Around, absent, nodes_of
from bridge.kubernetes.resources import (
    DEVICE_CLASS,
    KUEUE_TOPOLOGY,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Manifest,
    Reference,
    Resource,
)
from bridge.kubernetes.settings import QueueSystem, Settings
from bridge.kubernetes.sites import Placed, configured_site, has_dynamic_nodes, levels_of, named_at, settled, site_of
from bridge.kubernetes.watch import Change, ChangeType, Watch
from bridge.launcher import Report
from slurmk.core.events import NodeChanged, SiteChanged
from slurmk.model.node import Node
from slurmk.model.site import Site
from slurmk.model.states import NodeFlag, NodeState

log = logging.getLogger(__name__)

GATHER = 0.01
"""Seconds for which changes are gathered."""

BOUND = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""The field selector of pods that hold something on a node."""

FIRST_DELAY, LONGEST_DELAY = 0.5, 15.0
"""Seconds between two attempts at a cordon that the API server does not take."""

SLURMD_TIMEOUT = 300
"""Seconds after which a node that is not ready is down, where slurm.conf does not say (SlurmdTimeout)."""

Key = tuple[str, str]
"""Namespace and name."""


DeviceKey = tuple[str, str, str]
"""A DRA device: driver, pool, name."""


class _Pod(NamedTuple):
    node: str
    requests: Requests
    belongs_to_node: bool


class Cluster:
    """``begin`` reads what there is; ``start`` says whom to tell of changes. ``site`` and ``settings`` are those of now."""

    def __init__(self, api: Api, settings: Settings, configured: Site | None) -> None:
        self.settings = settled(settings, configured)
        self._configured = configured
        self._staged = self.settings, configured
        self._api = api
        self._version = ""
        self._report: Report | None = None
        self._manifests: dict[str, Manifest] = {}
        self._pods: dict[Key, _Pod] = {}
        self._pods_on: dict[str, dict[Key, _Pod]] = {}
        self._slices: dict[str, Manifest] = {}
        self._classes: dict[str, Manifest] = {}
        self._claims: dict[Key, frozenset[DeviceKey]] = {}
        self._held: Counter[DeviceKey] = Counter()  # how many claims hold a device
        self._node_of: dict[DeviceKey, str] = {}
        self._topologies: dict[str, Manifest] = {}
        self.slices = NO_SLICES
        self.manifests: dict[str, Manifest] = {}
        """The Kubernetes nodes by the names of the Slurm nodes that they are."""
        self._placed: dict[str, tuple[Node, ...]] = {}
        self._reported: dict[str, Node] = {}
        self._dirty: set[str] = set()
        self._reshaped = True
        self._flushing: asyncio.TimerHandle | None = None
        self._deadlines: dict[str, asyncio.TimerHandle] = {}
        self._watches: dict[Resource, Watch] = {}
        self._tasks: dict[Resource, asyncio.Task[None]] = {}
        self._cordons: dict[str, tuple[bool, str]] = {}
        self._cordoning: asyncio.Task[None] | None = None
        self._refused: set[str] = set()
        self.site = configured_site(self.settings, configured)

    # ---------------------------------------------------------------- start and end

    async def begin(self) -> None:
        """Read the nodes and what is on them, and go on watching. Raises ApiError or Unavailable when that is not possible."""
        self._version = await self._api.version()
        wanted = await self._wanted()
        for resource in wanted:
            await self._check_access(resource)
        for resource in wanted:
            await self._watch(resource)
        self._renew(set(self._manifests))
        self.site = self._made_site()
        log.info("%s %s: %d nodes", self._api.server, self._version, len(self._manifests))

    async def _check_access(self, resource: Resource) -> None:
        """Say at once what a watch would try for ever."""
        for verb in ("list", "watch"):
            if not await self._api.allowed(verb, resource):
                raise ApiError(
                    403, "Forbidden", f"slurmk may not {verb} {resource} in all namespaces: its ClusterRole lacks that"
                )

    async def start(self, report: Report) -> Sequence[Node]:
        """Tell ``report`` of changes from now on; the nodes that there are now."""
        before = self.site
        self._flush()
        self._report = report
        if _shape(before) != _shape(self.site):
            report(SiteChanged(time.time(), self.site))
        self._reported = {node.name: node for node in self._all_nodes()}
        return list(self._reported.values())

    async def stop(self) -> None:
        """End the watches."""
        tasks = [task for task in (*self._tasks.values(), self._cordoning) if task is not None]
        for task in tasks:
            task.cancel()
        for timer in (*self._deadlines.values(), self._flushing):
            if timer is not None:
                timer.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def configure(self, settings: Settings, configured: Site | None) -> Site:
        """The site as it would be by these files; ``reconfigure`` goes by them. May be called in a thread."""
        settings = settled(settings, configured)
        self._staged = settings, configured
        at = named_at(configured)
        placed = []
        for name, manifest in list(self._manifests.items()):
            placed += [Placed(node, manifest) for node in nodes_of(manifest, settings, self._around(name), at.get(name, ()))]
        return self._assembled(settings, configured, placed)

    def reconfigure(self, site: Site) -> Sequence[Node]:
        """Go by what ``configure`` was given last; the nodes that there are now."""
        if self._staged[0].nodes != self.settings.nodes:
            self._restart(NODE)
        self.settings, self._configured = self._staged
        self.site = site
        self._renew(set(self._manifests))
        self._reported = {node.name: node for node in self._all_nodes()}
        self._reshape()
        return list(self._reported.values())

    # ---------------------------------------------------------------- views

    def kubernetes_name(self, node: str) -> str:
        """The name of the Kubernetes node that a Slurm node is."""
        known = self._reported.get(node) or next((each for each in self.site.nodes if each.name == node), None)
        return (known.host_name if known is not None else "") or node

    def status(self) -> Sequence[str]:
        """How it is, for a person to read."""
        pods = sum(len(self._pods_on.get(name, ())) for name in self._manifests)
        lines = [
            f"kubernetes: {self._api.server} {self._version}, namespace {self.settings.namespace},"
            f" {len(self._manifests)} nodes with {pods} {'pod' if pods == 1 else 'pods'} of others"
        ]
        writes = self._api.writes
        lines.append(f"requests to it: {sum(self._api.requests.values()) - writes} reads, {writes} writes")
        lines += [f"trouble: {resource}: {watch.trouble}" for resource, watch in self._watches.items() if watch.trouble]
        if self._api.fenced:
            lines.append(f"trouble: nothing is written to Kubernetes: {self._api.fenced}")
        return lines

    # ---------------------------------------------------------------- watches

    async def _wanted(self) -> list[Resource]:
        """What is watched; each must be there before the nodes are complete."""
        wanted = [NODE, POD]
        if any(source.device_class for source in self.settings.gres):
            wanted += [RESOURCE_SLICE, DEVICE_CLASS, RESOURCE_CLAIM]
        pods = [self.settings.pods, *(each.pods for each in self.settings.partitions)]
        kueue = any(each.queue_system is QueueSystem.KUEUE for each in pods) and not self.settings.switches
        if kueue and await self._api.available(KUEUE_TOPOLOGY.group_version, KUEUE_TOPOLOGY.kind):
            wanted.append(KUEUE_TOPOLOGY)
        return wanted

    async def _watch(self, resource: Resource) -> None:
        """Watch, and wait until all that is there has been told."""
        synced = asyncio.Event()
        watch = self._watches[resource] = self._made_watch(resource)
        task = self._tasks[resource] = asyncio.get_running_loop().create_task(self._follow(watch, _HANDLERS[resource], synced))
        waiting = asyncio.get_running_loop().create_task(synced.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    def _made_watch(self, resource: Resource) -> Watch:
        if resource is NODE:
            return self._api.watch(NODE, selector=self.settings.nodes)
        if resource is POD:
            cluster = configured_site(self.settings, self._configured).cluster_name
            return self._api.watch(POD, selector=f"{CONTROLLER}!={label_value(cluster)}", fields=BOUND)
        return self._api.watch(resource)

    def _restart(self, resource: Resource) -> None:
        """Watch what another selector chooses; what it leaves out is gone once the new watch has told all that is there."""
        self._tasks[resource].cancel()
        watch = self._watches[resource] = self._api.watch(resource, selector=self._staged[0].nodes)
        following = self._follow(watch, _HANDLERS[resource], asyncio.Event(), anew=True)
        self._tasks[resource] = asyncio.get_running_loop().create_task(following)

    async def _follow(
        self, watch: Watch, handle: Callable[[Cluster, Change], None], synced: asyncio.Event, *, anew: bool = False
    ) -> None:
        listed: set[str] = set()
        async for change in watch:
            if change.type is ChangeType.SYNCED:
                if anew:
                    anew = False
                    self._drop_nodes_but(listed)
                synced.set()
                continue
            if anew:
                listed.add(change.manifest["metadata"]["name"])
            try:
                handle(self, change)
            except Exception:
                log.exception("%s could not be read", change.manifest.get("metadata", {}).get("name"))

    # ---------------------------------------------------------------- changes

    def _node(self, change: Change) -> None:
        name = change.manifest["metadata"]["name"]
        before = self._manifests.get(name)
        if change.type is ChangeType.DELETED:
            self._manifests.pop(name, None)
            self._touch(name, reshaped=True)
            return
        self._manifests[name] = change.manifest
        self._touch(name, reshaped=before is None or _chosen_by(before) != _chosen_by(change.manifest))
        spec, annotations = change.manifest.get("spec") or {}, change.manifest["metadata"].get("annotations") or {}
        if DRAIN_REASON in annotations and not spec.get("unschedulable") and name not in self._cordons:
            self._want_cordon(name, False, "")  # somebody else opened it: the reason is not left to a later cordon

    def _drop_nodes_but(self, names: set[str]) -> None:
        for name in [name for name in self._manifests if name not in names]:
            del self._manifests[name]
            self._touch(name, reshaped=True)

    def _pod(self, change: Change) -> None:
        metadata = change.manifest["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        old = self._pods.pop(key, None)
        if old is not None:
            self._pods_on[old.node].pop(key, None)
            self._touch(old.node)
        if change.type is not ChangeType.DELETED and holds(change.manifest):
            node = change.manifest["spec"]["nodeName"]
            pod = _Pod(node, foreign_of(change.manifest), belongs_to_node(change.manifest))
            self._pods[key] = self._pods_on.setdefault(node, {})[key] = pod
            self._touch(node)

    def _claim(self, change: Change) -> None:
        metadata = change.manifest["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        before = self._claims.pop(key, frozenset[DeviceKey]())
        held = frozenset[DeviceKey]()
        if change.type is not ChangeType.DELETED and not _is_our_claim(change.manifest, self.site.cluster_name):
            held = devices_of_claim(change.manifest)
        if held:
            self._claims[key] = held
        self._held.update(held)
        self._held.subtract(before)
        for device in before ^ held:
            if not self._held[device]:
                del self._held[device]
            if device in self._node_of:
                self._touch(self._node_of[device])

    def _slice(self, change: Change) -> None:
        _keep(self._slices, change)
        self.slices = read_slices(self._slices.values())
        self._node_of = {device.key: node for node, devices in self.slices.devices.items() for device in devices}
        self._touch_all()

    def _class(self, change: Change) -> None:
        _keep(self._classes, change)
        self._touch_all()

    def _topology(self, change: Change) -> None:
        _keep(self._topologies, change)
        self._reshape()

    def _touch(self, name: str, *, reshaped: bool = False) -> None:
        """Look at a node again soon."""
        self._dirty.add(name)
        self._reshaped = self._reshaped or reshaped
        if self._flushing is None and self._report is not None:
            self._flushing = asyncio.get_running_loop().call_later(GATHER, self._flush)

    def _touch_all(self) -> None:
        for name in self._manifests:
            self._touch(name)

    def _reshape(self) -> None:
        self._touch("", reshaped=True)

    # ---------------------------------------------------------------- reports

    def _flush(self) -> None:
        """Report what differs from what was reported."""
        self._flushing = None
        dirty, self._dirty = self._dirty, set()
        self._renew(dirty)
        if self._reshaped:
            self._reshaped = False
            self._report_site(self._made_site())
        for node in self._nodes_at(dirty):
            self._report_node(node)

    def _report_site(self, site: Site) -> None:
        same = _shape(site) == _shape(self.site)
        self.site = site
        names = {node.name for node in site.nodes}
        self._reported = {name: node for name, node in self._reported.items() if name in names}
        if not same and self._report is not None:
            log.info("the cluster has %d nodes in %d partitions now", len(site.nodes), len(site.partitions))
            self._report(SiteChanged(time.time(), site))

    def _report_node(self, node: Node) -> None:
        before = self._reported.get(node.name)
        if node == before or self._report is None:
            return
        self._reported[node.name] = node
        vanished = before is not None and node.host_name not in self._manifests
        self._report(NodeChanged(time.time(), node, removed=vanished))

    def _nodes_at(self, names: set[str]) -> Iterator[Node]:
        """The Slurm nodes of these Kubernetes nodes that belong to the site."""
        known = {node.name for node in self.site.nodes}
        for name in names:
            for node in self._placed.get(name, ()):
                if node.name in known:
                    yield node

    def _all_nodes(self) -> Iterator[Node]:
        current = {node.name: node for nodes in self._placed.values() for node in nodes}
        return (current.get(node.name, node) for node in self.site.nodes)

    # ---------------------------------------------------------------- Slurm's nodes

    def _renew(self, names: set[str]) -> None:
        """Make the Slurm nodes of these Kubernetes nodes anew."""
        at = named_at(self._configured)
        dynamic = has_dynamic_nodes(self.settings, self._configured)
        for name in names:
            manifest = self._manifests.get(name)
            for node in self._placed.pop(name, ()):
                self.manifests.pop(node.name, None)
            if manifest is None:
                self._placed[name] = tuple(absent(node) for node in at.get(name, ()))
            elif name in at or dynamic:
                self._placed[name] = nodes_of(manifest, self.settings, self._around(name), at.get(name, ()))
                self.manifests.update((node.name, manifest) for node in self._placed[name])
            self._await_deadline(name)

    def _around(self, name: str) -> Around:
        devices = [device.key for device in self.slices.devices.get(name, ()) if self._held[device.key] > 0]
        pods = ((pod.requests, pod.belongs_to_node) for pod in self._pods_on.get(name, {}).values())
        foreign: Foreign = together(pods, devices)
        return Around(foreign, self.slices, self._classes, time.time(), self._timeout)

    @property
    def _timeout(self) -> int:
        """Seconds after which a node that is not ready is down; 0: never."""
        text = self.site.parameters.get("SlurmdTimeout", "").split(" ")[0] if self._configured is not None else ""
        return int(text) if text.isdigit() else SLURMD_TIMEOUT

    def _await_deadline(self, name: str) -> None:
        """Look at a node that is not ready again when it has been so for too long."""
        timer = self._deadlines.pop(name, None)
        if timer is not None:
            timer.cancel()
        nodes = self._placed.get(name, ())
        waiting = any(node.flags & NodeFlag.NO_RESPOND and node.state is not NodeState.DOWN for node in nodes)
        if waiting and self._timeout and name in self._manifests:
            loop = asyncio.get_running_loop()
            self._deadlines[name] = loop.call_later(min(self._timeout, 5.0), self._touch, name)

    def _made_site(self) -> Site:
        placed = [Placed(node, self._manifests.get(name)) for name, nodes in self._placed.items() for node in nodes]
        return self._assembled(self.settings, self._configured, placed)

    def _assembled(self, settings: Settings, configured: Site | None, placed: list[Placed]) -> Site:
        known = {each.node.name for each in placed}
        for node in configured.nodes if configured is not None else ():
            if node.name not in known:
                placed.append(Placed(absent(node), None))
        levels = levels_of(next(iter(self._topologies.values()))) if len(self._topologies) == 1 else ()
        return site_of(settings, configured, placed, levels)

    # ---------------------------------------------------------------- cordons

    async def cordon(self, node: str, cordoned: bool, reason: str) -> None:
        """Cordon or uncordon the Kubernetes node of a Slurm node, as soon as the API server takes it. Several Slurm nodes on
        one Kubernetes node cannot be told apart there, so nothing is done for them."""
        name = self.kubernetes_name(node)
        manifest = self._manifests.get(name)
        if len(self._placed.get(name, ())) > 1 or manifest is None:
            return
        self._want_cordon(name, cordoned, reason)

    def _want_cordon(self, name: str, cordoned: bool, reason: str) -> None:
        self._cordons[name] = cordoned, reason
        if self._cordoning is None or self._cordoning.done():
            self._cordoning = asyncio.get_running_loop().create_task(self._carry_out_cordons())

    async def _carry_out_cordons(self) -> None:
        """One after another, each until it is done or another took its place."""
        delay = FIRST_DELAY
        while self._cordons:
            for name, wanted in list(self._cordons.items()):
                done = await self._carry_out_cordon(name, *wanted)
                if done and self._cordons.get(name) == wanted:
                    del self._cordons[name]
            if self._cordons:
                await asyncio.sleep(delay)
                delay = min(2 * delay, LONGEST_DELAY)

    async def _carry_out_cordon(self, name: str, cordoned: bool, reason: str) -> bool:
        """False when it is to be tried again."""
        manifest = self._manifests.get(name)
        if manifest is None or _is_cordoned(manifest, cordoned, reason):
            return True
        body = {
            "metadata": {"annotations": {DRAIN_REASON: (reason or "drained") if cordoned else None}},
            "spec": {"unschedulable": True if cordoned else None},
        }
        try:
            await self._api.patch(Reference(NODE, name), body, urgent=True)
        except ApiError as error:
            if error.conflict:
                return False
            if not error.not_found and name not in self._refused:
                self._refused.add(name)
                log.error("node %s cannot be %s: %s", name, "cordoned" if cordoned else "uncordoned", error)
        except KubernetesError as error:
            log.warning("node %s is not %s yet: %s", name, "cordoned" if cordoned else "uncordoned", error)
            return False
        else:
            self._refused.discard(name)
        return True


_HANDLERS: dict[Resource, Callable[[Cluster, Change], None]] = {
    NODE: Cluster._node,
    POD: Cluster._pod,
    RESOURCE_SLICE: Cluster._slice,
    DEVICE_CLASS: Cluster._class,
    RESOURCE_CLAIM: Cluster._claim,
    KUEUE_TOPOLOGY: Cluster._topology,
}


def _keep(table: dict[str, Manifest], change: Change) -> None:
    name = change.manifest["metadata"]["name"]
    if change.type is ChangeType.DELETED:
        table.pop(name, None)
    else:
        table[name] = change.manifest


def _chosen_by(manifest: Manifest) -> tuple[object, ...]:
    """What of a node the site is made by: its partitions, switches and default memory."""
    allocatable = (manifest.get("status") or {}).get("allocatable") or {}
    labels, taints = manifest["metadata"].get("labels"), (manifest.get("spec") or {}).get("taints")
    return labels, taints, allocatable.get("cpu"), allocatable.get("memory")


def _is_cordoned(manifest: Manifest, cordoned: bool, reason: str) -> bool:
    """True when the node is as wanted already."""
    annotations = manifest["metadata"].get("annotations") or {}
    closed = bool((manifest.get("spec") or {}).get("unschedulable"))
    return closed == cordoned and annotations.get(DRAIN_REASON) == ((reason or "drained") if cordoned else None)


def _is_our_claim(claim: Manifest, cluster: str) -> bool:
    labels = claim["metadata"].get("labels") or {}
    return labels.get(CONTROLLER) == label_value(cluster)


def _shape(site: Site) -> tuple[object, ...]:
    """What of a site is not told node by node."""
    return tuple(node.name for node in site.nodes), site.partitions, site.switches, site.parameters
