"""Jobs as Kubernetes objects: what the pods ask for, whose they are, and what holds them."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.kubernetes import labels
from bridge.kubernetes.render import Context, RenderError, Workload, render, slurm_node, workload_name
from bridge.kubernetes.settings import Kind, PodSettings, Settings
from bridge.kubernetes.templating import Templates
from slurmk.model.job import Allocation, Credentials, GresShare, Job, JobFiles, JobRequest, NodeShare
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site

NODES = ("n1", "n2", "n3")
SITE = Site("lab", tuple(Node(name) for name in NODES), (Partition("main", NODES),))


def share(node: str, cpus: int = 2, memory: int = 512, **more: Any) -> NodeShare:
    return NodeShare(node, cpus, memory, cpus, **more)


def job(*shares: NodeShare, user: int = 1000, **more: Any) -> Job:
    values: dict[str, Any] = {
        "name": "train",
        "account": "physics",
        "time_limit": 10,
        "allocation": Allocation("main", shares or (share("n1"),)),
        **more,
    }
    return Job(42, values.pop("request", JobRequest()), Credentials(user, 100, "alice", "users", (100, 200)), 0, **values)


def rendered(given: Job, pods: PodSettings | None = None, **more: Any) -> Workload:
    settings = Settings(pods=pods or PodSettings(image="debian:12"), **more)
    nodes = {name: {"metadata": {"name": f"host-{name}"}, "status": {"allocatable": {}}} for name in NODES}
    context = Context("10.0.0.1:6817", nodes, Templates(settings.templates), lambda values, _: values.pods, lambda *_: {})
    return render(given, JobFiles(b"#!/bin/sh\n", (), {b"HOME": b"/home/alice"}, b"s" * 32), SITE, settings, context)


def test_one_node_is_one_pod() -> None:
    found = rendered(job())
    assert [(each["kind"], each["metadata"]["name"]) for each in found.objects] == [("Pod", "slurmk-42-n0")]
    assert found.pods == {"n1": "slurmk-42-n0"}
    [pod] = found.objects
    assert slurm_node(pod) == "n1"
    spec = pod["spec"]
    [container] = spec["containers"]
    assert container["name"] == labels.CONTAINER
    assert container["resources"] == {"requests": {"cpu": "2", "memory": "512Mi"}, "limits": {"cpu": "2", "memory": "512Mi"}}
    assert spec["restartPolicy"] == "Never"
    assert "nodeName" not in spec
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["host-n1"]}]}]
