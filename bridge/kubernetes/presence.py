"""What is known of one attempt of a job in the cluster: its objects, its pods, and how far the controller was told of it.

Values and questions only; ``bridge.kubernetes.launcher`` asks and acts. A node of an attempt is *bare* until a pod that stands
for it was seen.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from bridge.kubernetes.endings import Stage, is_simulated, stage_of
from bridge.kubernetes.labels import JOB_ID, NODE, NODES, RESTART, attempt_of
from bridge.kubernetes.render import slurm_node
from bridge.kubernetes.resources import Manifest, Reference

Key = tuple[int, int]
"""Job id and restart."""


class Told(Enum):
    """How far the controller knows the attempt's life."""

    NOTHING = "nothing"
    BEGAN = "began"
    ENDED = "ended"  # how it ended, or that it could not be launched


@dataclass(slots=True)
class Presence:
    """One attempt. ``references`` are its objects but for pods and Secret, in the order of creation. Times are those of the
    event loop's clock."""

    job_id: int
    restart: int
    namespace: str
    name: str
    nodes: tuple[str, ...]
    references: tuple[Reference, ...] = ()
    guessed: bool = False  # the references are what there may be, by its kind
    made_pods: bool = True  # slurmk makes the pods itself; else a controller does, from one of the references
    names: dict[str, str] = field(default_factory=dict)  # of the pods that slurmk made, by node
    told: Told = Told.NOTHING
    terminating: bool = False  # the controller wants it ended
    deleted: bool = False  # its objects were deleted, so no further pods will come
    pods: dict[str, Manifest] = field(default_factory=dict)  # by uid, as seen last
    places: dict[str, str] = field(default_factory=dict)  # uid -> node, once known: annotations may be tampered with
    ended: set[str] = field(default_factory=set)  # uids of which nothing runs any more
    concluding: set[str] = field(default_factory=set)  # uids whose ending is being looked into
    released: set[str] = field(default_factory=set)  # nodes that the controller was told are free
    finishing: bool = False  # all is over, and it is about to be forgotten
    on_disk: Awaitable[object] | None = None  # done when what the controller was told last is on disk
    created: float | None = None  # when all objects were made
    bound: float | None = None  # when all pods had a node
    running: float | None = None  # when all pods ran
    overdue: float | None = None  # when to delete what was told to end and has not

    @property
    def key(self) -> Key:
        return self.job_id, self.restart

    @property
    def first(self) -> str:
        """The node whose pod runs the script."""
        return self.nodes[0]

    @property
    def over(self) -> bool:
        """True when every node is free of it."""
        return self.released.issuperset(self.nodes)

    def see(self, pod: Manifest) -> str:
        """Take note of a pod; its node, or "" when it does not stand for one yet."""
        uid = pod["metadata"]["uid"]
        before = self.pods.get(uid)
        self.pods[uid] = seen = slim(pod)
        if before is not None:
            seen["metadata"]["labels"] = before["metadata"].get("labels", {})
        else:
            seen["metadata"]["labels"] = {**seen["metadata"].get("labels", {}), **self.identity}
        node = self.places.get(uid) or slurm_node(pod)
        if node in self.nodes:
            self.places[uid] = node
            return node
        return ""

    @property
    def identity(self) -> dict[str, str]:
        """The labels by which its pods are known to be its."""
        return {JOB_ID: str(self.job_id), RESTART: str(self.restart)}

    def is_mislabelled(self, pod: Manifest) -> bool:
        """Whether somebody took from a pod what it is known by."""
        found = pod["metadata"].get("labels") or {}
        return any(found.get(name) != value for name, value in self.identity.items())

    def node_of(self, uid: str) -> str:
        return self.places.get(uid, "")

    def pod_of(self, node: str) -> Manifest | None:
        """The pod of a node that still runs or waits, or else the latest that ended there."""
        found = [uid for uid, place in self.places.items() if place == node]
        living = [uid for uid in found if uid not in self.ended]
        return self.pods[(living or found)[-1]] if found else None

    def living(self, nodes: Iterable[str] | None = None) -> list[Manifest]:
        """The pods that have not ended, on these nodes or wherever they are."""
        wanted = None if nodes is None else set(nodes)
        return [
            pod for uid, pod in self.pods.items() if uid not in self.ended and (wanted is None or self.node_of(uid) in wanted)
        ]

    def stages(self) -> dict[str, Stage]:
        """How far the pod of each node has come."""
        found = {}
        for node in self.nodes:
            pod = self.pod_of(node)
            found[node] = Stage.UNBOUND if pod is None else stage_of(pod)
        return found

    @property
    def simulated(self) -> bool:
        """True when none of its pods can have a stepd."""
        pods = [self.pod_of(node) for node in self.nodes]
        return all(pod is not None and (is_simulated(pod) or stage_of(pod) is Stage.ENDED) for pod in pods)

    @property
    def free(self) -> list[str]:
        """The nodes on which nothing of it is left, or can come."""
        living = {self.node_of(uid) for uid in self.pods if uid not in self.ended}
        if self.deleted and not self.unseen and not living:
            return list(self.nodes)
        seen = set(self.places.values())
        return [node for node in self.nodes if node in seen and node not in living]

    @property
    def unseen(self) -> list[str]:
        """The nodes for which a pod was made that the watch has not told of yet."""
        seen = set(self.places.values())
        return [node for node in self.names if node not in seen]


_OWNER = re.compile(r"slurmk-([0-9]+)(?:-([0-9]+))?")


def attempt_of_pod(pod: Manifest) -> Key | None:
    """Which attempt a pod belongs to: by the Secret that owns it, else by its labels."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        match = _OWNER.fullmatch(str(owner.get("name"))) if owner.get("kind") == "Secret" else None
        if match is not None:
            return int(match[1]), int(match[2] or 0)
    return attempt_of(pod["metadata"].get("labels") or {})


_METADATA = ("name", "namespace", "uid", "labels", "deletionTimestamp", "deletionGracePeriodSeconds")
_STATUS = ("phase", "reason", "message", "conditions", "containerStatuses", "initContainerStatuses")


def slim(pod: Manifest) -> Manifest:
    """What of a pod is worth remembering."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    kept: dict[str, Any] = {name: metadata[name] for name in _METADATA if name in metadata}
    annotations = metadata.get("annotations") or {}
    kept["annotations"] = {name: annotations[name] for name in (NODE, NODES) if name in annotations}
    host = (pod.get("spec") or {}).get("nodeName")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": kept,
        "spec": {"nodeName": host} if host else {},
        "status": {name: status[name] for name in _STATUS if name in status},
    }
