"""The schema of slurmk.yaml (JSON Schema, draft 2020-12): one row a key, with its meaning.

``settings_file`` checks files with it, docs/slurmk-yaml.md and docs/slurmk-yaml.schema.json are made from it. Keys are written
as Kubernetes writes them; each stands for the attribute of ``bridge.kubernetes.settings`` that ``attribute`` names. What a
``format`` asks for is in ``FORMATS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from bridge.kubernetes.quantities import QuantityError, parse_quantity
from bridge.kubernetes.selectors import parse_selector
from bridge.kubernetes.settings import Kind, QueueSystem
from grammar.containers import parse_image
from grammar.errors import GrammarError

Schema = Mapping[str, Any]


def attribute(key: str) -> str:
    """The name that a key of the file has in the settings' classes: ``imagePullPolicy`` is ``image_pull_policy``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()


# ------------------------------------------------------------------- what texts must look like

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z", re.ASCII)
_SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z", re.ASCII)
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z", re.ASCII)
_VARIABLE = re.compile(r"[^=\s]+\Z")
_SLURM_NAME = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_.]*\Z", re.ASCII)
_GRES_TYPE = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_.]*\Z", re.ASCII)
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/]+)?:(\d{1,5})\Z", re.ASCII)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/]+)(:\d{1,5})?\Z", re.ASCII)


def _fits(pattern: re.Pattern[str], what: str) -> Callable[[str], None]:
    def check(text: str) -> None:
        if not pattern.match(text):
            raise GrammarError(f"{text!r} is {what}")

    return check


def _label_key(text: str) -> None:
    prefix, slash, name = text.rpartition("/")
    if not _WORD.match(name) or (slash and not _SUBDOMAIN.match(prefix)):
        raise GrammarError(f"{text!r} is no label key ([PREFIX/]NAME)")


def _resource(text: str) -> None:
    if not text.endswith("*"):
        _label_key(text)
    elif not _SUBDOMAIN.match(text.partition("/")[0]) or "*" in text[:-1]:
        raise GrammarError(f"{text!r} is no resource name (DOMAIN/NAME, which may end in *)")


def _address(text: str) -> None:
    found = _ADDRESS.match(text)
    if not found or int(found[2]) > 65535:
        raise GrammarError(f"{text!r} is no HOST:PORT")


def _host(text: str) -> None:
    found = _HOST.match(text)
    if not found or int((found[2] or ":0")[1:]) > 65535:
        raise GrammarError(f"{text!r} is no HOST:PORT")


def _cpus(text: str) -> None:
    try:
        value = parse_quantity(text)
    except QuantityError:
        value = None
    if value is None or not (text.strip()[-1:].isdigit() or text.strip().endswith(("m", "."))):
        raise GrammarError(f"{text!r} is no number of CPUs, such as 1, 0.5 or 500m")
    if value <= 0:
        raise GrammarError("must be more than 0")
    if (value * 1000).denominator != 1:
        raise GrammarError(f"{text!r} is finer than a thousandth of a CPU, which Kubernetes counts in")
    if value > MOST_CPUS:
        raise GrammarError(f"{text!r} is more than any node has for one of Slurm's CPUs: at most {MOST_CPUS}")


def _image(text: str) -> None:
    parse_image(text)


def _folder(text: str) -> None:
    if not text.startswith("/"):
        raise GrammarError(f"{text!r} is no absolute path")


MOST_CPUS = 1024
"""What one Slurm CPU may ask of Kubernetes at most."""

FORMATS: Mapping[str, Callable[[str], object]] = {
    "name": _fits(_NAME, "no name (lower case letters, digits and -, at most 63)"),
    "subdomain": _fits(_SUBDOMAIN, "no name (lower case letters, digits, - and ., at most 253)"),
    "slurm-name": _fits(_SLURM_NAME, "no name (letters, digits, _, - and .)"),
    "gres-type": _fits(_GRES_TYPE, "no GRES type (letters, digits, _, - and .)"),
    "variable": _fits(_VARIABLE, "no name of an environment variable"),
    "label-key": _label_key,
    "label-value": _fits(_LABEL_VALUE, "no label value (letters, digits, -, _ and ., at most 63)"),
    "selector": parse_selector,
    "resource": _resource,
    "image": _image,
    "address": _address,
    "host": _host,
    "cpus": _cpus,
    "path": _folder,
}
"""What a text of each format must pass; raises GrammarError."""

FORMAT_WORDS: Mapping[str, str] = {
    "selector": "label selector",
    "label-key": "label key",
    "label-value": "label value",
    "address": "HOST:PORT",
    "host": "HOST[:PORT]",
    "cpus": "CPUs",
    "resource": "resource name",
    "image": "image",
    "path": "path",
    "file": "file",
    "folder": "folder",
    "gres-type": "GRES type",
}
"""What a format is called in the documentation; a name otherwise."""


# ------------------------------------------------------------------- rows


def text(meaning: str, format: str = "", **more: Any) -> Schema:
    """A key whose value is text."""
    return {"type": "string", "description": meaning, **({"format": format} if format else {}), **more}


def number(meaning: str, least: float, most: float, whole: bool = False) -> Schema:
    """A key whose value is a number from ``least`` to ``most``."""
    return {"type": "integer" if whole else "number", "minimum": least, "maximum": most, "description": meaning}


def choice(meaning: str, values: type[Enum] | tuple[str, ...]) -> Schema:
    """A key whose value is one of some words."""
    words = list(values) if isinstance(values, tuple) else [value.value for value in values]
    return {"type": "string", "enum": words, "description": meaning}


def switch(meaning: str) -> Schema:
    """A key whose value is true or false."""
    return {"type": "boolean", "description": meaning}


def items(meaning: str, item: Schema) -> Schema:
    """A key whose value is a list."""
    return {"type": "array", "items": item, "description": meaning}


def texts(meaning: str, key_format: str, value_format: str = "") -> Schema:
    """A key whose value is a mapping of texts."""
    return {
        "type": "object",
        "propertyNames": {"format": key_format},
        "additionalProperties": {"type": ["string", "null"], **({"format": value_format} if value_format else {})},
        "description": meaning,
    }


def keys(meaning: str, properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """A key whose value has keys of its own."""
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **({"required": list(required)} if required else {}),
        "description": meaning,
    }


def anything(meaning: str) -> Schema:
    """A key whose value is Kubernetes' own affair."""
    return {"type": "object", "description": meaning}


MOUNT: Mapping[str, Schema] = {
    "mountPath": text("Where the volume is in the container.", "path"),
    "subPath": text("The part of the volume that is mounted."),
    "subPathExpr": text("The same, with $(VARIABLE) of the container's environment."),
    "readOnly": switch("Whether it can only be read."),
    "recursiveReadOnly": choice("The same for mounts inside.", ("Disabled", "IfPossible", "Enabled")),
    "mountPropagation": choice("Whether mounts made inside or outside are seen.", ("None", "HostToContainer", "Bidirectional")),
}

VOLUME_SOURCES = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
)
"""The kinds of volume that a pod can have (core/v1 VolumeSource)."""

VOLUME = keys(
    "A volume as in a pod, and where it is mounted.",
    {
        "name": text("the volume's name", "name"),
        **MOUNT,
        "mounts": items("where it is mounted, when at several places", keys("A mount.", MOUNT, ("mountPath",))),
        **{source: anything("as in a pod's `volumes`") for source in VOLUME_SOURCES},
    },
    ("name",),
)

TOLERATION = keys(
    "A toleration as in a pod.",
    {
        "key": text("the taint's key; none: every taint", "label-key"),
        "operator": choice("how values are compared", ("Exists", "Equal", "Lt", "Gt")),
        "value": text("the taint's value"),
        "effect": choice("the taint's effect; none: every effect", ("NoSchedule", "PreferNoSchedule", "NoExecute")),
        "tolerationSeconds": number("how long a NoExecute taint is tolerated", -(2**62), 2**62, whole=True),
    },
)

POD_KEYS: Mapping[str, Schema] = {
    "image": text(
        "The container image of jobs that name none (`--container`, `--container-image`). It needs a python3 of 3.8 or newer.",
        "image",
    ),
    "imagePullPolicy": choice("As in a container; none: Kubernetes' default.", ("Always", "IfNotPresent", "Never")),
    "imagePullSecrets": items("Names of Secrets with the registries' credentials.", text("a Secret", "subdomain")),
    "namespace": text("The namespace of the jobs' objects; none: the `namespace` of the controller.", "name"),
    "kind": choice(
        "Which objects a job becomes: `pods`, `native` (pods with a PodGroup of Kubernetes), `native-job` (PodGroup and "
        "Indexed Job), `jobset`, `trainjob` (Kubeflow Trainer), `volcano` (pods with a Volcano PodGroup), `volcano-job`, or "
        "`coscheduling` (pods with a PodGroup of scheduler-plugins).",
        Kind,
    ),
    "queueSystem": choice("Whose queues admit the jobs.", QueueSystem),
    "queue": text(
        "The queue of all jobs (Kueue: a LocalQueue, Volcano: a Queue); none: the one that `slurmk queues` makes for their "
        "account.",
        "subdomain",
    ),
    "schedulerName": text("Who binds the pods; none: what the kind needs, else Kubernetes' own scheduler.", "subdomain"),
    "serviceAccount": text("The pods' service account. Its token is not mounted.", "subdomain"),
    "runtimeClass": text("The pods' runtime class.", "subdomain"),
    "priorityClass": text("The pods' priority class.", "subdomain"),
    "tolerations": items("Taints that the pods tolerate. A partition's are added to the site's.", TOLERATION),
    "nodeSelector": texts("Labels that a node must have for the pods.", "label-key", "label-value"),
    "volumes": items(
        "What every job finds mounted, as in a pod's `volumes` with the mount beside it. A partition's are added to the "
        "site's; one of the same name takes its place.",
        VOLUME,
    ),
    "labels": texts("More labels for the jobs' objects.", "label-key", "label-value"),
    "annotations": texts("More annotations for the jobs' objects.", "label-key"),
    "environment": texts(
        "More environment variables for the jobs. Those of the submission win, except in a job that names its own image.",
        "variable",
    ),
    "pod": anything(
        "Anything else for the pods' `spec`, merged into it: mappings key by key, lists of named things (containers, volumes) "
        "by name; null takes away what slurmk itself would say there. The job's container is `job`."
    ),
    "cpuRequest": {
        "type": ["string", "number"],
        "format": "cpus",
        "description": "What one Slurm CPU asks of Kubernetes. `500m` makes two Slurm CPUs of each of the node's.",
    },
    "keepFinished": number("Seconds for which finished workloads stay.", 0, 31_536_000, whole=True),
    "admissionTimeout": number(
        "Seconds after which a job that is not admitted or bound goes back to waiting, with the reason that its objects tell.",
        1,
        86_400,
    ),
}

PODS = keys("How the pods of jobs are made.", POD_KEYS)

PARTITION_KEYS: Mapping[str, Schema] = {
    "nodes": text(
        'Label selector of its nodes, as for `kubectl get nodes -l`; `""` for all. None: as slurm.conf says, without it all.',
        "selector",
    ),
    "default": switch("Whether jobs that name no partition go there. Without slurm.conf's word, the first one is it."),
    "pods": {
        **PODS,
        "description": "What of `pods` is different in this partition. Null takes away a label, variable and the like.",
    },
}

GRES_KEYS: Mapping[str, Schema] = {
    "name": text("The GRES' name.", "slurm-name"),
    "resource": text(
        "The extended resource that it is. What a `*` at its end stands for is the type (`nvidia.com/mig-*`).", "resource"
    ),
    "deviceClass": text("Or the DeviceClass (DRA) whose devices it is.", "subdomain"),
    "type": text("The type, where it is the same everywhere.", "gres-type"),
    "typeLabel": text("The node label that tells the type.", "label-key"),
    "types": {
        "type": "object",
        "additionalProperties": {"type": "string", "format": "gres-type"},
        "description": "What users call the types: what label, device or resource say, and the type.",
    },
}

FEATURE_KEYS: Mapping[str, Schema] = {
    "values": items("Labels whose value is a feature (`zone: a` gives `a`).", text("a label key", "label-key")),
    "pairs": items("Labels that become the feature KEY=VALUE.", text("a label key", "label-key")),
    "prefixes": items(
        "Labels that begin so and are `true` become what follows (`feature.node.kubernetes.io/cpu-cpuid.`).",
        text("how the keys begin", minLength=1),
    ),
}

CLIENT_KEYS: Mapping[str, Schema] = {
    "writesPerSecond": number("Writes a second, in the long run.", 0.1, 10_000),
    "burst": number("Writes at once, after a quiet time.", 1, 100_000, whole=True),
    "concurrent": number("Requests under way at once.", 1, 1_000, whole=True),
    "timeout": number("Seconds for which a request is tried.", 1, 600),
}

ROOT_KEYS: Mapping[str, Schema] = {
    "cluster": text("ClusterName, where slurm.conf says none.", "slurm-name"),
    "namespace": text("The namespace of the controller's own objects and, where `pods` says no other, of the jobs.", "name"),
    "nodes": text('Label selector of the nodes that slurmk sees at all; `""` for all.', "selector"),
    "partitions": {
        "type": "object",
        "propertyNames": {"format": "slurm-name"},
        "additionalProperties": keys("A partition.", PARTITION_KEYS),
        "description": "The partitions, by name. Without any here and in slurm.conf, all nodes are in one, `batch`.",
    },
    "pods": PODS,
    "gres": items("Where GRES come from. What is given takes the place of the default.", keys("A GRES.", GRES_KEYS, ("name",))),
    "features": keys("Which labels of nodes become features.", FEATURE_KEYS),
    "switches": items(
        "Label keys of the network's levels, widest first: each makes a level of the topology tree. None: what Kueue's "
        "Topology says.",
        text("a label key", "label-key"),
    ),
    "controller": text(
        "Where pods reach the controller. None: this host's address towards the API server, and the port of `listen`.", "host"
    ),
    "listen": text("Where the controller listens for pods; port 0 takes a free one and keeps it.", "address"),
    "templates": text(
        "A folder whose files take the place of slurmk's own templates of the same name; relative to this file.", "folder"
    ),
    "accounts": {
        "type": "object",
        "propertyNames": {"format": "slurm-name"},
        "additionalProperties": {"type": ["object", "null"]},
        "description": (
            "Accounts by name, in sacctmgr's words: `parent`, `fairshare`, `GrpTRES`, `GrpJobs`, `partitions`, `users`; root "
            "also `cohort`."
        ),
    },
    "qos": {
        "type": "object",
        "propertyNames": {"format": "slurm-name"},
        "additionalProperties": {"type": ["object", "null"]},
        "description": (
            "QOS by name, in sacctmgr's words: `priority`, `GrpTRES`, `GrpJobs`, `Preempt`, `PreemptMode`, `GraceTime`, "
            "`PreemptExemptTime`."
        ),
    },
    "lease": text("The Lease that says which controller acts.", "subdomain"),
    "leaseSeconds": number("Seconds after which another controller takes over from a dead one.", 3, 3_600, whole=True),
    "client": keys("How fast the API server is written to.", CLIENT_KEYS),
    "kubeconfig": text("The kubeconfig; none: $KUBECONFIG, ~/.kube/config, or in a pod its service account.", "file"),
    "context": text("The context in it; none: its current one."),
}

SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "slurmk.yaml",
    **keys("What slurmk needs to know about running on Kubernetes and slurm.conf has no words for.", ROOT_KEYS),
}
