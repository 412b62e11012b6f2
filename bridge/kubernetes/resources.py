"""Which Kubernetes objects slurmk reads and writes, as facts: group, version, kind, and where the API server keeps them.

Several projects call different things by one kind (three PodGroups, two Workloads, two Jobs), so constants carry the
project's name where it is not Kubernetes itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]
"""A Kubernetes object as the API server speaks of it: plain JSON values."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object. ``group`` is empty for the core group."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group_version(self) -> str:
        """What an object of it has as ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The URL path of its group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of an object, or without ``name`` of the collection; without ``namespace`` that of all namespaces."""
        parts = [self.root]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class Reference:
    """An object by its kind and name; ``uid``, where known, tells it from a later one of the same name."""

    resource: Resource
    name: str
    namespace: str = ""
    uid: str = ""

    @property
    def path(self) -> str:
        """Its URL path."""
        return self.resource.path(self.namespace, self.name)

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace and self.resource.namespaced else ""
        return f"{self.resource.kind} {where}{self.name}"


# ------------------------------------------------------------------- Kubernetes itself

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
POD = Resource("", "v1", "Pod", "pods")
SECRET = Resource("", "v1", "Secret", "secrets")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
EVENT = Resource("", "v1", "Event", "events")
SERVICE = Resource("", "v1", "Service", "services")
SERVICE_ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
RESOURCE_QUOTA = Resource("", "v1", "ResourceQuota", "resourcequotas")
PERSISTENT_VOLUME_CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases")
JOB = Resource("batch", "v1", "Job", "jobs")
PRIORITY_CLASS = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
POD_GROUP = Resource("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups")
WORKLOAD = Resource("scheduling.k8s.io", "v1beta1", "Workload", "workloads")
RUNTIME_CLASS = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
DEVICE_CLASS = Resource("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
RESOURCE_SLICE = Resource("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
RESOURCE_CLAIM = Resource("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
RESOURCE_CLAIM_TEMPLATE = Resource("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")

# ------------------------------------------------------------------- JobSet, Kubeflow Trainer

JOB_SET = Resource("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")
TRAIN_JOB = Resource("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs")
TRAINING_RUNTIME = Resource("trainer.kubeflow.org", "v1alpha1", "TrainingRuntime", "trainingruntimes")
CLUSTER_TRAINING_RUNTIME = Resource(
    "trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
)

# ------------------------------------------------------------------- Kueue

KUEUE_WORKLOAD = Resource("kueue.x-k8s.io", "v1beta2", "Workload", "workloads")
KUEUE_LOCAL_QUEUE = Resource("kueue.x-k8s.io", "v1beta2", "LocalQueue", "localqueues")
KUEUE_CLUSTER_QUEUE = Resource("kueue.x-k8s.io", "v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)
KUEUE_COHORT = Resource("kueue.x-k8s.io", "v1beta2", "Cohort", "cohorts", namespaced=False)
KUEUE_RESOURCE_FLAVOR = Resource("kueue.x-k8s.io", "v1beta2", "ResourceFlavor", "resourceflavors", namespaced=False)
KUEUE_TOPOLOGY = Resource("kueue.x-k8s.io", "v1beta2", "Topology", "topologies", namespaced=False)
KUEUE_PRIORITY_CLASS = Resource(
    "kueue.x-k8s.io", "v1beta2", "WorkloadPriorityClass", "workloadpriorityclasses", namespaced=False
)

# ------------------------------------------------------------------- Volcano

VOLCANO_JOB = Resource("batch.volcano.sh", "v1alpha1", "Job", "jobs")
VOLCANO_POD_GROUP = Resource("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")
VOLCANO_QUEUE = Resource("scheduling.volcano.sh", "v1beta1", "Queue", "queues", namespaced=False)
VOLCANO_HYPER_NODE = Resource("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes", namespaced=False)

# ------------------------------------------------------------------- scheduler-plugins

COSCHEDULING_POD_GROUP = Resource("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")

RESOURCES: tuple[Resource, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Resource))
"""All of the above."""

_BY_KIND = {(resource.group_version, resource.kind): resource for resource in RESOURCES}


def resource_of(manifest: Manifest) -> Resource:
    """The kind of an object; raises KeyError (apiVersion, kind) for one that slurmk does not know."""
    return _BY_KIND[manifest.get("apiVersion", ""), manifest.get("kind", "")]


def reference_of(manifest: Manifest) -> Reference:
    """What names an object; its ``uid`` is there when the API server has made it."""
    metadata = manifest["metadata"]
    return Reference(resource_of(manifest), metadata["name"], metadata.get("namespace", ""), metadata.get("uid", ""))
