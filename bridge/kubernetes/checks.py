"""Whether a cluster has what slurmk.yaml names, and lets slurmk do what it must: what ``slurmk config check`` asks it.

An *error* keeps jobs from running; a *warning* is what somebody may have meant otherwise. Each begins with file, line and key.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bridge.kubernetes.api import Api
from bridge.kubernetes.errors import ApiError
from bridge.kubernetes.render import RenderError
from bridge.kubernetes.resources import (
    CONFIG_MAP,
    COSCHEDULING_POD_GROUP,
    DEVICE_CLASS,
    EVENT,
    JOB,
    JOB_SET,
    KUEUE_CLUSTER_QUEUE,
    KUEUE_LOCAL_QUEUE,
    KUEUE_WORKLOAD,
    LEASE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    RESOURCE_CLAIM,
    RUNTIME_CLASS,
    SECRET,
    SERVICE_ACCOUNT,
    TRAIN_JOB,
    TRAINING_RUNTIME,
    VOLCANO_JOB,
    VOLCANO_POD_GROUP,
    VOLCANO_QUEUE,
    Manifest,
    Reference,
    Resource,
)
from bridge.kubernetes.samples import sample_pod
from bridge.kubernetes.selectors import parse_selector
from bridge.kubernetes.settings import GresSource, Kind, PodSettings, QueueSystem, Settings
from bridge.kubernetes.settings_file import SettingsFile
from bridge.kubernetes.templating import TemplateError

KIND_OBJECTS: Mapping[Kind, tuple[Resource, ...]] = {
    Kind.PODS: (),
    Kind.NATIVE: (POD_GROUP,),
    Kind.NATIVE_JOB: (POD_GROUP, JOB),
    Kind.JOBSET: (JOB_SET,),
    Kind.TRAINJOB: (TRAIN_JOB, TRAINING_RUNTIME),
    Kind.VOLCANO: (VOLCANO_POD_GROUP,),
    Kind.VOLCANO_JOB: (VOLCANO_JOB,),
    Kind.COSCHEDULING: (COSCHEDULING_POD_GROUP,),
}
"""What the API server must have for a workload kind, and slurmk must be allowed to make."""

QUEUE_OBJECTS: Mapping[QueueSystem, tuple[Resource, ...]] = {
    QueueSystem.NONE: (),
    QueueSystem.KUEUE: (KUEUE_WORKLOAD, KUEUE_CLUSTER_QUEUE, KUEUE_LOCAL_QUEUE),
    QueueSystem.VOLCANO: (VOLCANO_QUEUE,),
}
"""The same for a queue system."""

NOT_OF_KUEUE: frozenset[Kind] = frozenset({Kind.VOLCANO, Kind.VOLCANO_JOB, Kind.COSCHEDULING})
"""Kinds of which Kueue admits nothing: their jobs would run past everybody's quotas, or wait for ever."""

CLUSTER_VERBS: tuple[tuple[str, Resource], ...] = (
    ("list", NODE),
    ("watch", NODE),
    ("patch", NODE),
    ("list", POD),
    ("watch", POD),
)
LEASE_VERBS: tuple[tuple[str, Resource], ...] = (("get", LEASE), ("create", LEASE), ("update", LEASE))
JOB_VERBS: tuple[tuple[str, Resource], ...] = (
    *((verb, SECRET) for verb in ("create", "get", "list", "delete", "deletecollection")),
    *((verb, CONFIG_MAP) for verb in ("create", "list", "delete")),
    *((verb, POD) for verb in ("create", "get", "patch", "delete", "deletecollection")),
    ("list", EVENT),
)
"""What slurmk does in the cluster, in its own namespace and in those of jobs, whatever the workload kind is."""


class Severity(Enum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is not as slurmk.yaml has it."""

    severity: Severity
    text: str


async def check_cluster(api: Api, file: SettingsFile) -> tuple[Finding, ...]:
    """Everything that is missing. Raises Unavailable."""
    checks = _Checks(api, file)
    found = [finding async for finding in checks.all()]
    return tuple(dict.fromkeys(found))


class _Checks:
    def __init__(self, api: Api, file: SettingsFile) -> None:
        self._api = api
        self._file = file
        self._settings: Settings = file.settings

    async def all(self) -> AsyncIterator[Finding]:
        settings = self._settings
        async for finding in self._namespace(settings.namespace, self._file.place("namespace")):
            yield finding
        async for finding in self._may(CLUSTER_VERBS, "", self._file.place()):
            yield finding
        async for finding in self._may(LEASE_VERBS, settings.namespace, self._file.place("namespace")):
            yield finding
        for index, source in enumerate(settings.gres):
            if source.device_class:
                place = self._file.place("gres", index, "deviceClass")
                async for finding in self._there(Reference(DEVICE_CLASS, source.device_class), place):
                    yield finding
                async for finding in self._has((RESOURCE_CLAIM,), place):
                    yield finding
        for name, pods in self._pods():
            async for finding in self._partition(name, pods):
                yield finding
        if await self._api.allowed("list", NODE):
            for finding in self._of_nodes(await self._api.list(NODE, selector=settings.nodes)):
                yield finding

    def _pods(self) -> Iterator[tuple[str, PodSettings]]:
        """The pods of all partitions by name, or the site's."""
        if not self._settings.partitions:
            yield "", self._settings.pods
        for partition in self._settings.partitions:
            yield partition.name, partition.pods

    async def _partition(self, name: str, pods: PodSettings) -> AsyncIterator[Finding]:
        found = [finding async for finding in self._needs(name, pods)]
        for finding in found:
            yield finding
        if pods.image and not any(finding.severity is Severity.ERROR for finding in found):
            async for finding in self._tried(name, pods):
                yield finding

    async def _tried(self, name: str, pods: PodSettings) -> AsyncIterator[Finding]:
        """What the API server says of a pod like those of jobs, which it does not keep."""
        try:
            await self._api.create(sample_pod(self._settings, pods), dry_run=True)
        except (TemplateError, RenderError):
            return  # told where templates are looked at
        except ApiError as error:
            if "exceeded quota" not in str(error):
                severity = Severity.WARNING if error.forbidden else Severity.ERROR
                yield Finding(severity, f"{self._file.pods_place(name)}the API server does not take a pod like this: {error}")

    async def _needs(self, name: str, pods: PodSettings) -> AsyncIterator[Finding]:
        namespace = pods.namespace or self._settings.namespace
        where = self._file.pods_place(name, "namespace") if pods.namespace else self._file.place("namespace")
        async for finding in self._namespace(namespace, where):
            yield finding
        if not pods.image:
            yield Finding(Severity.WARNING, f"{self._file.pods_place(name, 'image')}none: jobs must name one with --container")
        async for finding in self._may(JOB_VERBS, namespace, where):
            yield finding
        objects = KIND_OBJECTS[pods.kind]
        async for finding in self._has(objects, self._file.pods_place(name, "kind"), namespace):
            yield finding
        queue_system = self._file.pods_place(name, "queueSystem")
        async for finding in self._has(QUEUE_OBJECTS[pods.queue_system], queue_system):
            yield finding
        if pods.queue_system is QueueSystem.KUEUE and pods.kind in NOT_OF_KUEUE:
            yield Finding(Severity.ERROR, f"{queue_system}Kueue does not take jobs of kind {pods.kind.value}")
        for key, reference in _named(pods, namespace):
            async for finding in self._there(reference, self._file.pods_place(name, *key)):
                yield finding

    # --------------------------------------------------------------- asking

    async def _namespace(self, name: str, place: str) -> AsyncIterator[Finding]:
        async for finding in self._there(Reference(NAMESPACE, name), place):
            yield finding

    async def _there(self, reference: Reference, place: str) -> AsyncIterator[Finding]:
        """What to say of an object that is named."""
        try:
            await self._api.get(reference)
        except ApiError as error:
            if error.not_found:
                yield Finding(Severity.ERROR, f"{place}there is no {reference}")
            elif error.forbidden:
                yield Finding(Severity.WARNING, f"{place}{reference} may not be looked at, so it may be missing")
            else:
                yield Finding(Severity.WARNING, f"{place}{reference}: {error}")

    async def _has(self, resources: Sequence[Resource], place: str, namespace: str = "") -> AsyncIterator[Finding]:
        """What to say of kinds that the API server lacks or, with a namespace, does not let us make there."""
        for resource in resources:
            if not await self._api.available(resource.group_version, resource.kind):
                text = f"the cluster has no {resource.kind} of {resource.group_version}"
                yield Finding(Severity.ERROR, place + text)
            elif namespace and resource.namespaced:
                verbs = [(verb, resource) for verb in ("create", "get", "delete")]
                async for finding in self._may(verbs, namespace, place):
                    yield finding

    async def _may(self, wanted: Sequence[tuple[str, Resource]], namespace: str, place: str) -> AsyncIterator[Finding]:
        where = f" in {namespace}" if namespace else ""
        for verb, resource in wanted:
            if not await self._api.allowed(verb, resource, namespace):
                yield Finding(Severity.ERROR, f"{place}slurmk may not {verb} {resource}{where}")

    # --------------------------------------------------------------- nodes

    def _of_nodes(self, nodes: Sequence[Manifest]) -> Iterator[Finding]:
        """What nobody's nodes have."""
        labels: list[Mapping[str, str]] = [node["metadata"].get("labels") or {} for node in nodes]
        offered = {resource for node in nodes for resource in (node.get("status") or {}).get("allocatable") or {}}
        if not nodes:
            yield Finding(Severity.ERROR, f"{self._file.place('nodes')}there are no such nodes")
            return
        for partition in self._settings.partitions:
            selector = parse_selector(partition.nodes or "")
            if partition.nodes is not None and not any(map(selector.matches, labels)):
                place = self._file.place("partitions", partition.name, "nodes")
                yield Finding(Severity.WARNING, f"{place}no node is chosen by it now")
        for index, key in enumerate(self._settings.switches):
            if not any(key in each for each in labels):
                yield Finding(Severity.WARNING, f"{self._file.place('switches', index)}no node has the label {key}")
        if self._settings.gres != Settings().gres:
            yield from self._of_gres(labels, offered)

    def _of_gres(self, labels: Sequence[Mapping[str, str]], offered: set[str]) -> Iterator[Finding]:
        for index, source in enumerate(self._settings.gres):
            if source.resource and not any(_is(source, resource) for resource in offered):
                place = self._file.place("gres", index, "resource")
                yield Finding(Severity.WARNING, f"{place}no node has {source.resource}")
            elif source.type_label and not any(source.type_label in each for each in labels):
                place = self._file.place("gres", index, "typeLabel")
                yield Finding(Severity.WARNING, f"{place}no node has the label {source.type_label}")


def _is(source: GresSource, resource: str) -> bool:
    if source.resource.endswith("*"):
        return resource.startswith(source.resource[:-1])
    return resource == source.resource


def _named(pods: PodSettings, namespace: str) -> Iterator[tuple[tuple[str | int, ...], Reference]]:
    """The objects that a partition's pods need by name, each with its key."""
    for index, name in enumerate(pods.image_pull_secrets):
        yield ("imagePullSecrets", index), Reference(SECRET, name, namespace)
    if pods.service_account:
        yield ("serviceAccount",), Reference(SERVICE_ACCOUNT, pods.service_account, namespace)
    if pods.runtime_class:
        yield ("runtimeClass",), Reference(RUNTIME_CLASS, pods.runtime_class)
    if pods.priority_class:
        yield ("priorityClass",), Reference(PRIORITY_CLASS, pods.priority_class)
    if pods.queue and pods.queue_system is QueueSystem.KUEUE:
        yield ("queue",), Reference(KUEUE_LOCAL_QUEUE, pods.queue, namespace)
    if pods.queue and pods.queue_system is QueueSystem.VOLCANO:
        yield ("queue",), Reference(VOLCANO_QUEUE, pods.queue)
    for index, volume in enumerate(pods.volumes):
        for source, name_key, resource in _VOLUMES:
            name = _optional(volume.get(source), name_key)
            if name:
                yield ("volumes", index), Reference(resource, name, namespace)


_VOLUMES = (
    ("persistentVolumeClaim", "claimName", PERSISTENT_VOLUME_CLAIM),
    ("configMap", "name", CONFIG_MAP),
    ("secret", "secretName", SECRET),
)
"""Volumes that are objects of the namespace: the source, the key with the name, and what it is."""


def _optional(source: Any, name_key: str) -> str:
    """The name that a volume's source must have; empty where it need not be there."""
    if not isinstance(source, Mapping) or source.get("optional"):
        return ""
    return str(source.get(name_key, ""))
