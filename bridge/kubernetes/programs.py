"""What slurmk puts into the pods of jobs, so that they need nothing of it in their image but a Python.

stepd and the commands are one small archive in a ConfigMap, with a shell script that finds a Python for it. What a job is
comes in its Secret, as files: the place (JSON: job, attempt, where the controller is, and what proves the right to speak
to it), the description (``bridge.description``, packed), and a passwd and a group file in which the user has a name. An
emptyDir has the rest. Only a job of several pods has an init container: it makes the file that is mounted over
/etc/hosts, which stepd fills in when it knows the other pods' addresses.

The Secret's files can be read by whoever is in the container, which are the job's own processes alone: Kubernetes makes
them root's, and the modes that it offers would be either too narrow for the user or change the owners of other volumes.
"""

from __future__ import annotations

import base64
import grp
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from bridge.archive import pod_archive
from bridge.description import describe
from bridge.kubernetes import labels
from bridge.link import attempt_secret
from grammar.patterns import PatternValues, expand_pattern
from slurmk.model.job import Job, JobFiles
from slurmk.model.site import Site

Manifest = dict[str, Any]

PROGRAMS = "/slurmk/programs"
SECRET = "/slurmk/job"
RUN = "/slurmk/run"
"""Where the ConfigMap, the job's Secret and the pod's own directory are mounted."""

LARGEST_SECRET = 900_000
"""Bytes of a description that are put into a Secret, of which Kubernetes takes 1 MiB; stepd is told a larger one."""

FAILURE = "slurmk: error: "
"""How a container's termination message begins when what slurmk runs there could not do its work."""

LEAST_MEMORY = 48
"""MiB: stepd takes some 25, and below a few a container cannot even be made. Slurm does not count its own daemons in a job's
memory; here they share the pod's, so a job that asks for less than this gets it."""

PREFIX = "slurmk-programs-"

BOOT = """#!/bin/sh
for python in python3 /usr/bin/python3 /usr/local/bin/python3 /opt/conda/bin/python3 /opt/venv/bin/python3; do
  found=$(command -v "$python") || continue
  "$found" -ISE -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null && exec "$found" -ISE {programs}/stepd.pyz pod
done
text='slurmk: error: the image has no Python 3.8 or newer (python3), without which it cannot run jobs'
printf %s "$text" >{log}
echo "$text" >&2
IFS= read -r output <{secret}/output && [ -n "$output" ] && echo "$text" >>"$output"
exit 127
"""

OUTPUT = "slurm-%j.out"
OUTPUT_OF_ARRAY = "slurm-%A_%a.out"

_FOREIGN = re.compile(r"[:\n\r\0]")


@dataclass(frozen=True, slots=True)
class PodParts:
    """What a pod's template gets from here, each as Kubernetes' own JSON: the pod's ``volumes`` and ``init_containers``, and
    of the container ``job`` its ``command``, ``environment`` and ``mounts``."""

    volumes: tuple[Manifest, ...]
    mounts: tuple[Manifest, ...]
    init_containers: tuple[Manifest, ...]
    command: tuple[str, ...]
    environment: tuple[Manifest, ...]


def boot(programs: str = PROGRAMS, secret: str = SECRET, log: str = "/dev/termination-log") -> str:
    """The script that is the container's command."""
    return BOOT.format(programs=programs, secret=secret, log=log)


@cache
def program_files() -> Mapping[str, bytes]:
    """The files of the ConfigMap."""
    return {"boot": boot().encode(), "stepd.pyz": pod_archive()}


@cache
def programs_name(cluster: str) -> str:
    """The name of this release's ConfigMap: other programs have another name, so running jobs keep theirs. Each controller has
    its own, which it may remove."""
    digest = hashlib.sha256(b"%d %b" % (len(cluster), cluster.encode("utf-8", "surrogateescape")))
    for name, content in sorted(program_files().items()):
        digest.update(b"%b %d " % (name.encode(), len(content)) + content)
    return PREFIX + digest.hexdigest()[:12]


def programs(namespace: str, cluster: str) -> Manifest:
    """The ConfigMap; it has to be in each namespace that jobs run in."""
    files = program_files()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": programs_name(cluster), "namespace": namespace, "labels": labels.managed(cluster)},
        "immutable": True,
        "data": {"boot": files["boot"].decode()},
        "binaryData": {"stepd.pyz": base64.b64encode(files["stepd.pyz"]).decode()},
    }


def secret_data(
    job: Job, files: JobFiles, site: Site, controller: str, group_names: Mapping[int, str] | None = None
) -> dict[str, bytes]:
    """The content of the job's Secret. ``controller`` is HOST:PORT; ``group_names`` are those of the user's groups that are
    known (see ``names_of_groups``)."""
    secret = attempt_secret(files.secret, job.job_id, job.restarts)
    place = {"job": job.job_id, "restart": job.restarts, "controller": f"tcp:{controller}", "secret": secret.hex()}
    packed = packed_description(job, files, site)
    found = {"place": json.dumps(place).encode(), "output": output_of(job).encode("utf-8", "surrogateescape") + b"\n"}
    if len(packed) <= LARGEST_SECRET:
        found["description"] = packed
    if job.credentials.user_id:
        found["passwd"] = passwd(job, files).encode("utf-8", "surrogateescape")
        found["group"] = group(job, group_names or {}).encode("utf-8", "surrogateescape")
    return found


def described(job: Job, files: JobFiles, site: Site) -> bytes:
    """The JSON text of what a job is, for its stepds (also those whose Secret could not hold it)."""
    secret = attempt_secret(files.secret, job.job_id, job.restarts)
    own = replace(files, secret=secret)
    return json.dumps(describe(job, own, site, {}), separators=(",", ":")).encode()


def packed_description(job: Job, files: JobFiles, site: Site) -> bytes:
    """The same, packed."""
    return zlib.compress(described(job, files, site), 1)


def pod_parts(
    job: Job,
    secret_name: str,
    image: str,
    cluster: str,
    *,
    node: str = "",
    like: Mapping[str, Any] | None = None,
) -> PodParts:
    """What belongs into the pods of a job of ``cluster``'s. A template for one pod names its ``node`` (Slurm's name); the pods
    of one that makes several find theirs in the annotation ``slurmk.org/nodes``, by the host that they are bound to. An init
    container takes ``imagePullPolicy``, ``securityContext`` and ``resources`` (CPU and memory, so that the pod's QoS stays what
    it is) from the container ``like``."""
    assert job.allocation is not None
    several = len(job.allocation.nodes) > 1
    volumes: list[Manifest] = [
        {"name": "slurmk-programs", "configMap": {"name": programs_name(cluster), "defaultMode": 0o555}},
        {"name": "slurmk-job", "secret": {"secretName": secret_name, "defaultMode": 0o444}},
        {"name": "slurmk-run", "emptyDir": {}},
    ]
    run: Manifest = {"name": "slurmk-run", "mountPath": RUN}
    mounts: list[Manifest] = [
        {"name": "slurmk-programs", "mountPath": PROGRAMS, "readOnly": True},
        {"name": "slurmk-job", "mountPath": SECRET, "readOnly": True},
        run,
    ]
    if job.credentials.user_id:
        mounts += [
            {"name": "slurmk-job", "mountPath": f"/etc/{name}", "subPath": name, "readOnly": True}
            for name in ("passwd", "group")
        ]
    if several:
        mounts.append({"name": "slurmk-run", "mountPath": "/etc/hosts", "subPath": "hosts"})
    return PodParts(
        tuple(volumes),
        tuple(mounts),
        (_hosts_container(image, run, like or {}),) if several else (),
        ("/bin/sh", f"{PROGRAMS}/boot"),
        tuple(_environment(node)),
    )


def _hosts_container(image: str, run: Manifest, like: Mapping[str, Any]) -> Manifest:
    """Makes the file that is mounted over /etc/hosts."""
    made: Manifest = {
        "name": "slurmk-hosts",
        "image": image,
        "command": ["/bin/sh", "-c", f'while IFS= read -r line; do echo "$line"; done </etc/hosts >{RUN}/hosts'],
        "volumeMounts": [run],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    made.update({name: like[name] for name in ("imagePullPolicy", "securityContext") if like.get(name)})
    resources = {
        kind: {name: value for name, value in asked.items() if name in ("cpu", "memory")}
        for kind, asked in like.get("resources", {}).items()
        if kind in ("requests", "limits")
    }
    return {**made, "resources": resources} if resources else made


def _environment(node: str) -> Iterable[Manifest]:
    yield {"name": "SLURMK_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    yield {"name": "SLURMK_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
    if node:
        yield {"name": "SLURMK_NODE", "value": node}
    else:
        path = f"metadata.annotations['{labels.NODES}']"
        yield {"name": "SLURMK_KUBERNETES_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
        yield {"name": "SLURMK_NODES", "valueFrom": {"fieldRef": {"fieldPath": path}}}


# ------------------------------------------------------------------------------------------------- the user's names


def output_of(job: Job) -> str:
    """The path of the batch script's output file."""
    values = PatternValues(
        job_id=job.job_id,
        array_job_id=job.array_job_id,
        array_task_id=job.array_task_id,
        job_name=job.name,
        user_name=job.credentials.user_name,
        node_name=job.allocation.nodes[0] if job.allocation is not None else "",
    )
    pattern = job.request.standard_output or (OUTPUT_OF_ARRAY if job.array_task_id is not None else OUTPUT)
    name = expand_pattern(pattern, values).replace("\n", "")
    return name if name.startswith("/") else f"{job.request.current_working_directory or ''}/{name}"


def names_of_groups(groups: Iterable[int]) -> dict[int, str]:
    """The names of groups that this machine knows. It may ask a directory service, so call it in a thread."""
    found = {}
    for each in groups:
        try:
            found[each] = grp.getgrgid(each).gr_name
        except (KeyError, OSError, OverflowError):
            continue
    return found


def passwd(job: Job, files: JobFiles) -> str:
    """A passwd file with the user and what any system has; home and shell are those of the submission."""
    who = job.credentials
    environment = files.environment

    def said(name: bytes, otherwise: str) -> str:
        value = environment.get(name, b"").decode("utf-8", "surrogateescape")
        return value if value.startswith("/") and not _FOREIGN.search(value) else otherwise

    name = _FOREIGN.sub("_", who.user_name)
    return (
        "root:x:0:0:root:/root:/bin/sh\n"
        "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
        f"{name}:x:{who.user_id}:{who.group_id}:{name}:{said(b'HOME', '/')}:{said(b'SHELL', '/bin/sh')}\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )


def group(job: Job, names: Mapping[int, str]) -> str:
    """A group file with the user's groups and what any system has; a group without a name has its number."""
    who = job.credentials
    known = {0: "root", 1: "daemon", 65534: "nogroup"}
    for each in (*who.groups, who.group_id):
        known[each] = names.get(each, known.get(each, str(each)))
    known[who.group_id] = who.group_name or known[who.group_id]
    user = _FOREIGN.sub("_", who.user_name)
    return "".join(
        f"{_FOREIGN.sub('_', name)}:x:{number}:{user if number in who.groups else ''}\n"
        for number, name in sorted(known.items())
    )
