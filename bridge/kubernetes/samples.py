"""Whether a site's templates do: jobs that nobody submitted are rendered with them, and looked at.

A template that a site replaced may say whatever it likes beside what slurmk relies on: names and labels by which it finds
its objects again, the container that runs stepd, and that pods are where, and as large as, the plan has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bridge.kubernetes import labels
from bridge.kubernetes.render import Context, RenderError, Workload, render
from bridge.kubernetes.resources import Manifest, resource_of
from bridge.kubernetes.settings import Kind, PodSettings, Settings
from bridge.kubernetes.templating import FOLDER, TemplateError, Templates
from slurmk.model.job import Allocation, Credentials, GresShare, Job, JobFiles, JobRequest, NodeShare
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site

NODES = ("node-1", "node-2", "node-3")
SITE = Site("sample", tuple(Node(name) for name in NODES), (Partition("sample", NODES),))
FILES = JobFiles(b"#!/bin/sh\n", (), {}, bytes(32))


def check_templates(settings: Settings) -> None:
    """Render jobs of one node and of several, of a user and of root, as every kind that ``settings`` has. Raises TemplateError
    for what is wrong first."""
    templates = Templates(settings.templates)
    for pods in _different(settings):
        for given in _jobs(pods):
            context = Context("sample:1", {}, templates, lambda *_, own=pods: own, lambda *_: {})
            try:
                _check(render(given, FILES, SITE, settings, context), given)
            except TemplateError:
                raise
            except (_Wrong, RenderError) as error:
                raise TemplateError(f"{_where(templates, pods.kind)}{error}") from None
            except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
                raise TemplateError(f"{_where(templates, pods.kind)}what they give cannot be used: {error}") from None


def sample_pod(settings: Settings, pods: PodSettings) -> Manifest:
    """The pod of a small job of a user, as ``pods`` has it. Raises TemplateError, and RenderError for what cannot be one."""
    share = NodeShare(NODES[0], 1, 64, 1)
    who = Credentials(1000, 1000, "sample", "sample", (1000,))
    given = Job(1, JobRequest(), who, 0, name="sample", time_limit=1, allocation=Allocation("sample", (share,)))
    context = Context("sample:1", {}, Templates(settings.templates), lambda *_: pods, lambda *_: {})
    workload = render(given, FILES, SITE, settings, context)
    _, metadata, spec = next(pod_templates(workload.objects))
    named = {"name": workload.name, **metadata, "namespace": workload.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec}


class _Wrong(Exception):
    """What slurmk could not work with."""


def _where(templates: Templates, kind: Kind) -> str:
    return f"{templates.folder or FOLDER}: kind {kind.value}: "


def _different(settings: Settings) -> Iterator[PodSettings]:
    """The settings of each kind that is in use."""
    found: dict[Kind, PodSettings] = {}
    for pods in (settings.pods, *(partition.pods for partition in settings.partitions)):
        found.setdefault(pods.kind, replace(pods, image=pods.image or "sample"))
    yield from found.values()


def _jobs(pods: PodSettings) -> Iterator[Job]:
    unequal = tuple(
        NodeShare(node, cpus, 64 * cpus, cpus, (GresShare("gpu", "", 1),)) for node, cpus in zip(NODES, (3, 3, 1), strict=True)
    )
    for user_id, shares in ((1000, unequal), (1000, unequal[:1]), (0, unequal)):
        who = Credentials(user_id, user_id, "sample", "sample", (user_id,))
        yield Job(
            1, JobRequest(), who, 0, name="sample", account="sample", time_limit=1, allocation=Allocation("sample", shares)
        )


def _check(workload: Workload, given: Job) -> None:
    wanted = labels.job_labels(given, SITE.cluster_name)
    for each in workload.objects:
        try:
            resource_of(each)
        except KeyError:
            raise _Wrong(f"{each.get('apiVersion')} {each.get('kind')} is no kind of object that slurmk knows") from None
        _check_metadata(each["metadata"], wanted, f"{each['kind']} {each['metadata'].get('name')}")
        if each["metadata"].get("namespace") != workload.namespace:
            raise _Wrong(f"{each['kind']} {each['metadata']['name']} is not in the namespace that it was given")
    templates = list(pod_templates(workload.objects))
    assert given.allocation is not None
    if sum(count for count, _, _ in templates) != len(given.allocation.shares):
        raise _Wrong(f"a job of {len(given.allocation.shares)} nodes does not get as many pods")
    for _, metadata, spec in templates:
        _check_metadata(metadata, wanted, "a pod")
        _check_pod(spec, workload, {each.node for each in given.allocation.shares})


def _check_metadata(metadata: Manifest, wanted: Mapping[str, str], what: str) -> None:
    missing = sorted(wanted.items() - (metadata.get("labels") or {}).items())
    if missing:
        raise _Wrong(f"{what} lacks the label {missing[0][0]}={missing[0][1]}")


def _check_pod(spec: Manifest, workload: Workload, nodes: set[str]) -> None:
    container = next((each for each in spec["containers"] if each["name"] == labels.CONTAINER), None)
    if container is None:
        raise _Wrong(f"a pod has no container {labels.CONTAINER!r}")
    if spec.get("nodeName"):
        raise _Wrong("a pod names its node: binding it is the scheduler's business")
    if spec.get("restartPolicy") != "Never":
        raise _Wrong("a pod's restartPolicy is not Never")
    if "/slurmk/programs/boot" not in container["command"]:
        raise _Wrong(f"the container {labels.CONTAINER!r} does not have the command that it was given")
    if workload.name not in [each.get("secret", {}).get("secretName") for each in spec["volumes"]]:
        raise _Wrong("a pod does not have the volumes that it was given")
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    named = {value for term in required["nodeSelectorTerms"] for field in term["matchFields"] for value in field["values"]}
    if not named or not named <= nodes:
        raise _Wrong("a pod is not tied to its node by node affinity")
    if not container["resources"]["requests"].get("cpu"):
        raise _Wrong("a pod does not ask for its CPUs")


def pod_templates(objects: tuple[Manifest, ...]) -> Iterator[tuple[int, Manifest, Any]]:
    """How many pods each template in the objects of a job stands for, its metadata and its spec."""
    for each in objects:
        spec = each.get("spec", {})
        match each["apiVersion"], each["kind"]:
            case "v1", "Pod":
                yield 1, each["metadata"], spec
            case "batch/v1", "Job":
                yield spec["completions"], spec["template"]["metadata"], spec["template"]["spec"]
            case _, "Job":
                for task in spec["tasks"]:
                    yield task["replicas"], task["template"]["metadata"], task["template"]["spec"]
            case _, "JobSet":
                yield from _replicated(spec)
            case _, "TrainingRuntime":
                yield from _replicated(spec["template"]["spec"])


def _replicated(spec: Manifest) -> Iterator[tuple[int, Manifest, Any]]:
    for each in spec["replicatedJobs"]:
        job = each["template"]["spec"]
        yield job["completions"] * each["replicas"], job["template"]["metadata"], job["template"]["spec"]
