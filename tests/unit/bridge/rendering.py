"""Jobs to render: short ways to write one, and to see what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.kubernetes.gres import NO_SLICES, Slices
from bridge.kubernetes.render import Context, Workload, render
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import Kind, PodSettings, Settings
from bridge.kubernetes.templating import Templates
from slurmk.model.job import Allocation, Credentials, GresShare, Job, JobFiles, JobRequest, NodeShare
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site

NODES = ("n1", "n2", "n3", "n4")
SITE = Site("lab", tuple(Node(name) for name in NODES), (Partition("main", NODES),), kill_wait=30)
FILES = JobFiles(b"#!/bin/sh\n", (), {b"HOME": b"/home/alice"}, b"s" * 32)
TEMPLATES = Templates()


def share(node: str, cpus: int = 2, memory: int = 512, *gres: GresShare) -> NodeShare:
    return NodeShare(node, cpus, memory, cpus, gres)


def job(*shares: NodeShare, user: int = 1000, request: JobRequest | None = None, **more: Any) -> Job:
    """Job 42 of alice, on n1 unless told otherwise."""
    values: dict[str, Any] = {
        "name": "train",
        "account": "physics",
        "time_limit": 10,
        "allocation": Allocation("main", shares or (share("n1"),)),
        **more,
    }
    return Job(42, request or JobRequest(), Credentials(user, 100, "alice", "users", (100, 200)), 0, **values)


UNEQUAL = (share("n1", 3), share("n2", 3), share("n3", 1))
"""3(x2),1"""


def rendered(
    given: Job,
    *,
    kind: Kind = Kind.PODS,
    site: Site = SITE,
    queue: Mapping[str, str] | None = None,
    nodes: Mapping[str, Manifest] | None = None,
    slices: Slices = NO_SLICES,
    settings: Settings | None = None,
    templates: Templates = TEMPLATES,
    **pods: Any,
) -> Workload:
    """``given`` as ``kind``, with other settings of pods by name."""
    everything = settings or Settings()
    own = PodSettings(**{"image": "debian:12", "kind": kind, **pods})
    hosts = nodes or {name: {"metadata": {"name": f"host-{name}"}} for name in NODES}
    context = Context("10.0.0.1:6817", hosts, templates, lambda *_: own, lambda *_: queue or {}, slices=slices)
    return render(given, FILES, site, everything, context)


def pod_specs(found: Workload) -> list[tuple[int, Manifest, Manifest]]:
    """How often each pod template is made, its metadata and its spec, whatever object has it."""
    templates = []
    for each in found.objects:
        spec = each["spec"]
        match each["kind"]:
            case "Pod":
                templates.append((1, each["metadata"], spec))
            case "Job" if each["apiVersion"] == "batch/v1":
                templates.append((spec["completions"], spec["template"]["metadata"], spec["template"]["spec"]))
            case "Job":
                templates += [(t["replicas"], t["template"]["metadata"], t["template"]["spec"]) for t in spec["tasks"]]
            case "JobSet" | "TrainingRuntime":
                for replicated in spec.get("replicatedJobs") or spec["template"]["spec"]["replicatedJobs"]:
                    inner = replicated["template"]["spec"]
                    template = inner["template"]
                    templates.append((inner["completions"] * replicated["replicas"], template["metadata"], template["spec"]))
    return templates
