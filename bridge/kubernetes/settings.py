"""What slurmk.yaml says: everything about running on Kubernetes for which slurm.conf has no words.

Values only; ``bridge.kubernetes.settings_file`` reads and checks the file. Quantities are Kubernetes' (``500m``, ``4Gi``),
times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Kind(Enum):
    """Which objects a job becomes."""

    PODS = "pods"  # plain pods
    NATIVE = "native"  # scheduling.k8s.io PodGroup with pods
    NATIVE_JOB = "native-job"  # PodGroup with an Indexed Job
    JOBSET = "jobset"
    TRAINJOB = "trainjob"
    VOLCANO = "volcano"  # pods with a Volcano PodGroup
    VOLCANO_JOB = "volcano-job"  # batch.volcano.sh Job
    COSCHEDULING = "coscheduling"  # scheduler-plugins' PodGroup with pods


class QueueSystem(Enum):
    """Whose queues admit a partition's jobs."""

    NONE = "none"
    KUEUE = "kueue"
    VOLCANO = "volcano"


@dataclass(frozen=True, slots=True)
class GresSource:
    """Where GRES of one name come from: an extended resource, or devices of a DRA device class.

    ``type`` is fixed, or read from the node's label ``type_label`` (``NVIDIA-A100-SXM4-80GB`` becomes ``a100-sxm4-80gb`` …);
    ``resource`` may end in ``*`` (``nvidia.com/mig-*``), and what the star stands for is then the type.
    """

    name: str
    resource: str = ""
    device_class: str = ""
    type: str = ""
    type_label: str = ""
    types: Mapping[str, str] = field(default_factory=dict)  # label value -> type as users write it


@dataclass(frozen=True, slots=True)
class PodSettings:
    """How a job's pods are made."""

    image: str = ""
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    namespace: str = ""
    kind: Kind = Kind.NATIVE
    queue_system: QueueSystem = QueueSystem.NONE
    queue: str = ""  # the queue's name, where no queues are made from accounts
    scheduler_name: str = ""
    service_account: str = ""
    runtime_class: str = ""
    priority_class: str = ""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    volumes: tuple[Mapping[str, Any], ...] = ()  # pod volumes, each with one more key, mountPath (or mounts)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    pod: Mapping[str, Any] = field(default_factory=dict)  # merged into the pod's spec
    cpu_request: str = "1"  # what one Slurm CPU asks for
    keep_finished: int = 0  # seconds that finished workloads stay
    admission_timeout: float = 30.0  # seconds after which a job that is not admitted or bound goes back to waiting


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    """A partition: which nodes it has where slurm.conf does not say, and how its pods are made (all of it: what the file says
    of the partition over what it says of the site)."""

    name: str
    nodes: str | None = None  # a label selector ("pool=gpu,!spot"), "" for all, None: slurm.conf says
    default: bool = False
    pods: PodSettings = field(default_factory=PodSettings)


@dataclass(frozen=True, slots=True)
class Features:
    """Which labels of a node become features: those named, as their value or as ``key=value``; ``prefixes`` by their rest."""

    values: tuple[str, ...] = ()  # label keys whose value is the feature
    pairs: tuple[str, ...] = ()  # label keys that become KEY=VALUE
    prefixes: tuple[str, ...] = ()  # feature.node.kubernetes.io/ and the like: what follows, where the value is "true"


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """How fast the API server is written to."""

    writes_per_second: float = 200.0
    burst: int = 400
    concurrent: int = 64
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole file."""

    controller: str = (
        ""  # HOST:PORT that pods dial; empty: the address by which this host reaches the API server, and the listening port
    )
    listen: str = "0.0.0.0:0"
    namespace: str = "slurmk"
    cluster: str = ""  # ClusterName without slurm.conf
    nodes: str = ""  # label selector: slurmk sees these nodes; empty for all
    partitions: tuple[PartitionSettings, ...] = ()
    pods: PodSettings = field(default_factory=PodSettings)
    gres: tuple[GresSource, ...] = (
        GresSource("gpu", "nvidia.com/gpu", type_label="nvidia.com/gpu.product"),
        GresSource("gpu", "nvidia.com/mig-*"),
        GresSource("gpu", "amd.com/gpu", type_label="amd.com/gpu.product-name"),
    )
    features: Features = field(default_factory=Features)
    switches: tuple[str, ...] = ()  # label keys, widest first: each level of the tree topology
    templates: str = ""  # folder whose files replace those of the same name in bridge/kubernetes/templates
    lease: str = "slurmk-controller"
    lease_seconds: int = 15
    client: ClientLimits = field(default_factory=ClientLimits)
    accounts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # see queues.accounts
    qos: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the same
    kubeconfig: str = ""
    context: str = ""
