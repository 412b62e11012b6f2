"""A job with an allocation as Kubernetes objects: a pure function of the job, the site, slurmk.yaml and the nodes.

One pod stands for each allocated node, asks for exactly what the plan gave the job there, and is tied to that node by node
affinity, so that kube-scheduler binds it and quotas and admission see it. Which objects hold the pods is the workload kind's
business (``bridge.kubernetes.kinds``); what stepd needs in a pod comes in as ``PodParts``.

The job's Secret is the root: everything else of the job is owned by it, so that its end is the end of all.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.kubernetes import labels as names
from bridge.kubernetes.devices import DeviceRequest, Devices, devices_of
from bridge.kubernetes.gres import NO_SLICES, Slices
from bridge.kubernetes.kinds import RENDERERS
from bridge.kubernetes.kinds.plan import Group, PodTemplate, WorkloadPlan
from bridge.kubernetes.programs import LEAST_MEMORY, pod_parts, secret_data
from bridge.kubernetes.quantities import format_milli, parse_milli
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import PodSettings, Settings
from bridge.kubernetes.templating import TemplateError, Templates
from grammar.containers import parse_image
from grammar.errors import GrammarError
from slurmk.model.job import Job, JobFiles, NodeShare
from slurmk.model.site import Site
from slurmk.model.states import INFINITE, NO_VALUE

LARGEST_SECRET = 1 << 20
"""Bytes that the API server takes in a Secret."""

GRACE_SECONDS = 5
"""What a pod gets beyond KillWait, so that stepd can report what it killed."""

BACKSTOP_SECONDS = 60
"""What the kubelet waits beyond the end of everything that stepd allows."""

START_SECONDS = 3600
"""What a pod may take to come up, images pulled and all: the kubelet counts that as well, the job's time limit does not."""

LONGER_SECONDS = 86400
"""By how much a running job's time limit can be raised where its partition has no MaxTime."""

PRIORITY_CLASS = "priorityClassName"
"""The one of ``queue_labels`` that is no label: the PriorityClass of the job's pods."""


class RenderError(Exception):
    """A job that can be no workload as things are. The text says why and what to do, for the job's user."""


@dataclass(frozen=True, slots=True)
class Context:
    """What rendering needs to know beside the job.

    ``controller`` is the HOST:PORT that pods dial. ``nodes`` are the cluster's Node objects by the names that Slurm has for
    them, ``slices`` the devices there. ``pods_of`` are the settings of a partition, ``queue_labels`` what a job carries for
    its queue system, and ``group_names`` the names of the groups that are known.
    """

    controller: str
    nodes: Mapping[str, Manifest]
    templates: Templates
    pods_of: Callable[[Settings, str], PodSettings]
    queue_labels: Callable[[Job, Settings], Mapping[str, str]]
    group_names: Mapping[int, str] = field(default_factory=dict)
    slices: Slices = NO_SLICES


@dataclass(frozen=True, slots=True)
class Workload:
    """What a job becomes. ``objects`` are in the order of creation; ``pods`` are the names of the pods by Slurm node, empty
    where a controller names them: ``slurm_node`` then tells whose pod it is."""

    name: str
    namespace: str
    secret: Manifest
    objects: tuple[Manifest, ...]
    pods: Mapping[str, str]

    def owned(self, secret_uid: str) -> tuple[Manifest, ...]:
        """``objects``, each owned by the Secret as the API server made it."""
        owner = {"apiVersion": "v1", "kind": "Secret", "name": self.name, "uid": secret_uid}
        return tuple({**each, "metadata": {**each["metadata"], "ownerReferences": [owner]}} for each in self.objects)


def workload_name(job: Job) -> str:
    """``slurmk-JOBID``, and ``slurmk-JOBID-RESTART`` from the second attempt on."""
    return f"slurmk-{job.job_id}-{job.restarts}" if job.restarts else f"slurmk-{job.job_id}"


def slurm_node(pod: Manifest) -> str:
    """The Slurm node that a pod of ours stands for; empty for one of several that is not bound to a node yet."""
    annotations: Mapping[str, str] = pod.get("metadata", {}).get("annotations", {})
    if node := annotations.get(names.NODE):
        return node
    nodes = dict(pair.split("=", 1) for pair in annotations.get(names.NODES, "").split(",") if "=" in pair)
    return nodes.get(pod.get("spec", {}).get("nodeName", ""), "")


def render(job: Job, files: JobFiles, site: Site, settings: Settings, context: Context) -> Workload:
    """The objects of ``job``, which has an allocation. Raises RenderError, and TemplateError for a bad template."""
    assert job.allocation is not None
    pods = context.pods_of(settings, job.allocation.partition)
    queue = dict(context.queue_labels(job, settings))
    pods = replace(pods, priority_class=queue.pop(PRIORITY_CLASS, pods.priority_class))
    name, namespace = workload_name(job), pods.namespace or settings.namespace
    renderer = RENDERERS[pods.kind]
    groups = tuple(_groups(job, settings, context, shared=renderer.shared_templates))
    asked = tuple(dict.fromkeys(group.devices.requests for group in groups if group.devices.requests))
    made = _Pods(job, site, pods, context.templates, name, namespace, asked)
    metadata = {
        "namespace": namespace,
        "labels": {**pods.labels, **names.job_labels(job, site.cluster_name)},
        "annotations": {**pods.annotations, **names.job_annotations(job)},
    }
    plan = WorkloadPlan(
        name=name,
        metadata=metadata,
        settings=pods,
        queue=queue,
        pods=tuple(made.of(group, renderer.scheduler) for group in groups),
        job=made.facts,
    )
    return Workload(
        name,
        namespace,
        _secret(name, metadata, secret_data(job, files, site, context.controller, context.group_names)),
        (*map(made.claim_template, asked), *renderer.objects(plan, context.templates)),
        {}
        if renderer.shared_templates
        else {share.node: f"{name}-n{number}" for number, share in enumerate(job.allocation.shares)},
    )


def _groups(job: Job, settings: Settings, context: Context, *, shared: bool) -> Sequence[Group]:
    """The allocated nodes, those together that one pod template can describe. Every other node has a group of its own."""
    assert job.allocation is not None
    found: list[tuple[Any, list[NodeShare], list[str], Devices]] = []
    for share in job.allocation.shares:
        manifest = context.nodes.get(share.node)
        host = manifest["metadata"]["name"] if manifest else share.node
        devices = devices_of(share, settings.gres, manifest, context.slices)
        key = share.cpus, share.memory, devices
        for known, shares, hosts, _ in found if shared else ():
            if known == key and host not in hosts:
                shares.append(share)
                hosts.append(host)
                break
        else:
            found.append((key, [share], [host], devices))
    return [
        Group(number, tuple(share.node for share in shares), tuple(hosts), shares[0].cpus, shares[0].memory, devices)
        for number, (_, shares, hosts, devices) in enumerate(found)
    ]


class _Pods:
    """Makes the pod templates of one job."""

    def __init__(
        self,
        job: Job,
        site: Site,
        settings: PodSettings,
        templates: Templates,
        name: str,
        namespace: str,
        asked: tuple[tuple[DeviceRequest, ...], ...],
    ) -> None:
        self._job, self._site, self._settings, self._templates = job, site, settings, templates
        self._name, self._namespace, self._asked = name, namespace, asked
        self._image = image_of(job, settings)
        self._labels = {**settings.labels, **names.job_labels(job, site.cluster_name)}
        self.facts = job_facts(job)

    def of(self, group: Group, scheduler: str) -> PodTemplate:
        """The template of a group's pods."""
        settings = replace(self._settings, scheduler_name=self._settings.scheduler_name or scheduler)
        labels = {**self._labels, names.GROUP: str(group.index)}
        volumes, mounts = _volumes(settings)
        requests = group.devices.requests
        own = group.nodes[0] if len(group.nodes) == 1 else ""
        parts = pod_parts(self._job, self._name, self._image, self._site.cluster_name, node=own)
        mounts = [*parts.mounts, *mounts]
        pod = self._templates.one(
            "pod",
            job=self.facts,
            name=self._name,
            namespace=self._namespace,
            container=names.CONTAINER,
            settings=settings,
            labels=labels,
            siblings={key: labels[key] for key in (names.CONTROLLER, names.JOB_ID, names.RESTART, names.GROUP)},
            annotations={**settings.annotations, **names.job_annotations(self._job), **_whose(group)},
            hosts=group.hosts,
            hostname=_hostname(own),
            image=self._image,
            command=parts.command,
            environment=[*({"name": key, "value": value} for key, value in settings.environment.items()), *parts.environment],
            volumes=[*parts.volumes, *volumes],
            mounts=mounts,
            shm=not any(mount["mountPath"] == "/dev/shm" for mount in mounts),
            resources=_resources(group, settings),
            memory=_memory(group),
            claims=[{"name": "gres", "template": self._claim_name(requests)}] if requests else [],
            grace_seconds=self._site.kill_wait + GRACE_SECONDS,
            deadline_seconds=deadline_of(self._job, self._site),
        )
        if not isinstance(pod.get("metadata"), dict) or not isinstance(pod.get("spec"), dict):
            raise TemplateError(f"{self._templates.place('pod')}: it gives no metadata and spec")
        spec = merge(pod["spec"], settings.pod)
        containers = spec.get("containers")
        like = next((each for each in containers if each["name"] == names.CONTAINER), None) if _named(containers) else None
        if like is None:
            raise TemplateError(f"{self._templates.place('pod')}: it gives no container {names.CONTAINER!r}")
        first = pod_parts(self._job, self._name, self._image, self._site.cluster_name, node=own, like=like).init_containers
        if first:
            spec["initContainers"] = [*first, *(spec.get("initContainers") or ())]
        return PodTemplate(group, pod["metadata"], spec)

    def claim_template(self, requests: tuple[DeviceRequest, ...]) -> Manifest:
        """The ResourceClaimTemplate by which each pod with these requests gets devices of its own."""
        return self._templates.one(
            "claim",
            name=self._claim_name(requests),
            namespace=self._namespace,
            labels=self._labels,
            annotations=names.job_annotations(self._job),
            requests=requests,
        )

    def _claim_name(self, requests: tuple[DeviceRequest, ...]) -> str:
        return f"{self._name}-c{self._asked.index(requests)}"


def job_facts(job: Job) -> Mapping[str, Any]:
    """What templates can see of a job."""
    return {
        "id": job.job_id,
        "restart": job.restarts,
        "name": job.name,
        "user": job.credentials.user_name,
        "user_id": job.credentials.user_id,
        "group_id": job.credentials.group_id,
        "groups": list(job.credentials.groups),
        "account": job.account,
        "partition": job.partition,
        "qos": job.qos,
        "time_limit": None if job.time_limit in (INFINITE, NO_VALUE) else job.time_limit,
        "priority": job.priority,
        "requeue": bool(job.request.requeue),
        "comment": job.request.comment or "",
        "nodes": list(job.allocation.nodes) if job.allocation else [],
    }


def image_of(job: Job, settings: PodSettings) -> str:
    """The image of a job's pods: what it asks for, else its partition's. Raises RenderError when there is none."""
    asked = job.request.container
    if not asked and not settings.image:
        raise RenderError("no image: ask for one with --container=IMAGE, or have one set in slurmk.yaml")
    try:
        return parse_image(asked) if asked else settings.image
    except GrammarError as error:
        raise RenderError(f"--container={asked}: {error}") from None


def deadline_of(job: Job, site: Site) -> int | None:
    """Seconds after which the kubelet ends the job's pods if nobody else has; None where it has no time limit.

    A pod's deadline can be brought forward but never put off, so it leaves room for a longer limit: up to the partition's
    MaxTime, or a day where there is none."""
    if job.time_limit in (INFINITE, NO_VALUE):
        return None
    partition = site.partition(job.partition)
    longest = partition.maximum_time if partition is not None else INFINITE
    limit = job.time_limit * 60
    limit = max(limit, longest * 60) if longest != INFINITE else limit + LONGER_SECONDS
    return START_SECONDS + limit + job.over_time_limit * 60 + site.kill_wait + BACKSTOP_SECONDS


def merge(base: Any, over: Any) -> Any:
    """``over`` laid over ``base``: mappings key by key (None removes a key), lists of named things by name, and anything
    else replaced."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        merged = {key: merge(value, over[key]) if key in over else value for key, value in base.items()}
        merged.update((key, value) for key, value in over.items() if key not in base)
        return {key: value for key, value in merged.items() if value is not None}
    if _named(base) and _named(over):
        changes = {each["name"]: each for each in over}
        found = [merge(each, changes.pop(each["name"])) if each["name"] in changes else each for each in base]
        return [*found, *changes.values()]
    return over


def _named(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(each, Mapping) and "name" in each for each in value)


def _whose(group: Group) -> Mapping[str, str]:
    if len(group.nodes) == 1:
        return {names.NODE: group.nodes[0]}
    return {names.NODES: ",".join(f"{host}={node}" for host, node in zip(group.hosts, group.nodes, strict=True))}


def _memory(group: Group) -> str:
    """Never less than what a pod needs to come up at all, with stepd in it."""
    return f"{max(group.memory, LEAST_MEMORY)}Mi" if group.memory else ""


def _resources(group: Group, settings: PodSettings) -> dict[str, str]:
    """Requests and limits, which are the same."""
    found = {"cpu": format_milli(group.cpus * parse_milli(settings.cpu_request))}
    if group.memory:
        found["memory"] = _memory(group)
    return found | {resource: str(count) for resource, count in group.devices.resources}


_NO_HOSTNAME = re.compile(r"[^a-z0-9-]+")


def _hostname(node: str) -> str:
    """The pod's host name: the node's, as far as a DNS label can say it."""
    return _NO_HOSTNAME.sub("-", node.lower())[:63].strip("-")


_MOUNT_KEYS = ("mountPath", "subPath", "subPathExpr", "readOnly", "recursiveReadOnly", "mountPropagation")


def _volumes(settings: PodSettings) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The site's volumes as a pod has them, and where they are mounted."""
    volumes: list[Mapping[str, Any]] = []
    mounts: list[Mapping[str, Any]] = []
    for volume in settings.volumes:
        volumes.append({key: value for key, value in volume.items() if key not in (*_MOUNT_KEYS, "mounts")})
        own = {key: volume[key] for key in _MOUNT_KEYS if key in volume}
        for mount in (*([own] if own else []), *volume.get("mounts", ())):
            mounts.append({"name": volume["name"], **mount})
    return volumes, mounts


def _secret(name: str, metadata: Mapping[str, Any], data: Mapping[str, bytes]) -> Manifest:
    size = sum(map(len, data.values()))
    if size > LARGEST_SECRET:
        raise RenderError(f"script and environment are {size} bytes, and a Secret holds {LARGEST_SECRET}")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, **metadata},
        "type": "Opaque",
        "immutable": True,
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
