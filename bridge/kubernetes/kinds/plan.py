"""What every workload kind is made from: a job's pods as templates, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from bridge.kubernetes.devices import Devices
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import PodSettings
from bridge.kubernetes.templating import Templates


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of a job that one pod template describes: they have equal shares. ``hosts`` are the nodes' Kubernetes names, in
    the order of ``nodes``; memory is MiB."""

    index: int
    nodes: tuple[str, ...]
    hosts: tuple[str, ...]
    cpus: int
    memory: int
    devices: Devices = Devices()

    @property
    def size(self) -> int:
        return len(self.nodes)

    @property
    def shares(self) -> tuple[int, int, Devices]:
        """What each of its nodes gives the job."""
        return self.cpus, self.memory, self.devices


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """The pods of one group."""

    group: Group
    metadata: Mapping[str, Any]  # labels and annotations
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """One job on its way to being objects. ``metadata`` is what each of them bears beside its name; ``queue`` are the labels
    for the queue system; ``job`` is what templates can see of the job."""

    name: str
    metadata: Mapping[str, Any]
    settings: PodSettings
    queue: Mapping[str, str]
    pods: tuple[PodTemplate, ...]
    job: Mapping[str, Any]

    @property
    def size(self) -> int:
        """How many pods there are."""
        return sum(pod.group.size for pod in self.pods)


class Renderer(Protocol):
    """One workload kind."""

    shared_templates: bool
    """True where one template makes several pods, which a controller names; each pod then learns its node when it is bound."""

    scheduler: str
    """The scheduler that places its pods where slurmk.yaml names none; empty for the cluster's own."""

    def objects(self, plan: WorkloadPlan, templates: Templates) -> tuple[Manifest, ...]:
        """The objects of a job in the order of creation, without its Secret."""
        ...
