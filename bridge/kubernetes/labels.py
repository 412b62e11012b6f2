"""The labels and annotations that slurmk's objects bear: how it finds them again, and how others see whose they are."""

from __future__ import annotations

import re

from slurmk.model.job import Job

PREFIX = "slurmk.org/"

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "slurmk"
"""The value of ``MANAGED_BY``."""

# labels
CONTROLLER = PREFIX + "controller"  # ClusterName of the controller that made it
JOB_ID = PREFIX + "job-id"
RESTART = PREFIX + "restart"  # which attempt of the job, from 0
USER = PREFIX + "user"
PARTITION = PREFIX + "partition"
ACCOUNT = PREFIX + "account"
GROUP = PREFIX + "group"  # on pods of kinds with several templates: which of them, from 0

# annotations
JOB_NAME = PREFIX + "job-name"
NODE = PREFIX + "node"  # on pods: the Slurm name of the node that the pod stands for
NODES = PREFIX + "nodes"  # where one template makes several pods: HOST=NODE,... of the nodes that they may stand for
DRAIN_REASON = PREFIX + "drain-reason"  # on nodes that slurmk cordoned: why

CONTAINER = "job"
"""The name of the container in which a job runs."""

_FOREIGN = re.compile(r"[^A-Za-z0-9._-]")
_TEXTLESS = re.compile("[\ud800-\udfff]")
_LONGEST = 63


def label_value(text: str) -> str:
    """``text`` as a label can say it: what no label may contain becomes ``_``, and 63 characters are all there is."""
    return _FOREIGN.sub("_", text)[:_LONGEST].strip("._-")


def managed(cluster: str) -> dict[str, str]:
    """The labels of everything that the controller of ``cluster`` makes."""
    return {MANAGED_BY: MANAGER, CONTROLLER: label_value(cluster)}


def job_labels(job: Job, cluster: str) -> dict[str, str]:
    """The labels of everything that belongs to one attempt of a job."""
    return {
        **managed(cluster),
        JOB_ID: str(job.job_id),
        RESTART: str(job.restarts),
        USER: label_value(job.credentials.user_name),
        PARTITION: label_value(job.partition),
        ACCOUNT: label_value(job.account),
    }


def job_annotations(job: Job) -> dict[str, str]:
    """The annotations of everything that belongs to a job."""
    return {JOB_NAME: _TEXTLESS.sub("\ufffd", job.name)}


def selector(cluster: str, job_id: int | None = None, restart: int | None = None) -> str:
    """The label selector of what a controller made: all of it, of one job, or of one attempt."""
    wanted = managed(cluster)
    if job_id is not None:
        wanted[JOB_ID] = str(job_id)
    if restart is not None:
        wanted[RESTART] = str(restart)
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def attempt_of(labels: dict[str, str]) -> tuple[int, int] | None:
    """Job id and restart by an object's labels; None where it bears none or they were tampered with."""
    job_id, restart = labels.get(JOB_ID, ""), labels.get(RESTART, "")
    if job_id.isascii() and job_id.isdigit() and restart.isascii() and restart.isdigit():
        return int(job_id), int(restart)
    return None
