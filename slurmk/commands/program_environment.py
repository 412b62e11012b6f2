"""What the programs that the controller itself runs about a job are told of it in their environment: MailProg's variables
(slurm.conf(5)), which are those of PrologSlurmctld and EpilogSlurmctld."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bridge.description import array_facts
from slurmk.commands.allocation_environment import counts
from slurmk.commands.job_text import JobText, exit_code_text, node_list
from slurmk.model.job import Job

if TYPE_CHECKING:
    from slurmk.core.machine import Machine

Teller = Callable[[JobText, Job], "str | None"]

VARIABLES: Mapping[str, Teller] = {
    "SLURM_CLUSTER_NAME": lambda text, job: text.site.cluster_name,
    "SLURM_JOBID": lambda text, job: str(job.job_id),
    "SLURM_JOB_ACCOUNT": lambda text, job: job.account or None,
    "SLURM_JOB_COMMENT": lambda text, job: job.request.comment,
    "SLURM_JOB_CONSTRAINTS": lambda text, job: job.request.constraints,
    "SLURM_JOB_CPUS_PER_NODE": lambda text, job: (
        counts(share.usable_cpus for share in job.allocation.shares) if job.allocation else None
    ),
    "SLURM_JOB_END_TIME": lambda text, job: str(job.end_time),
    "SLURM_JOB_EXCLUSIVE": lambda text, job: text.exclusive(job),
    "SLURM_JOB_EXTRA": lambda text, job: job.request.extra,
    "SLURM_JOB_GID": lambda text, job: str(job.credentials.group_id),
    "SLURM_JOB_GROUP": lambda text, job: job.credentials.group_name,
    "SLURM_JOB_ID": lambda text, job: str(job.job_id),
    "SLURM_JOB_LICENSES": lambda text, job: job.request.licenses,
    "SLURM_JOB_NAME": lambda text, job: job.name,
    "SLURM_JOB_NODELIST": lambda text, job: text.nodes(job) or "(null)",
    "SLURM_JOB_NUM_NODES": lambda text, job: str(len(job.allocation.shares)) if job.allocation else None,
    "SLURM_JOB_OVERSUBSCRIBE": lambda text, job: text.oversubscribe(job),
    "SLURM_JOB_PARTITION": lambda text, job: job.partition,
    "SLURM_JOB_QOS": lambda text, job: job.qos,
    "SLURM_JOB_RESERVATION": lambda text, job: job.reservation or None,
    "SLURM_JOB_RESTART_COUNT": lambda text, job: str(job.restarts),
    "SLURM_JOB_SLUID": lambda text, job: job.sluid,
    "SLURM_JOB_START_TIME": lambda text, job: str(job.start_time),
    "SLURM_JOB_STATE": lambda text, job: job.state.name,
    "SLURM_JOB_STDERR": lambda text, job: job.request.standard_error,
    "SLURM_JOB_STDIN": lambda text, job: (job.request.standard_input or "/dev/null") if job.batch else None,
    "SLURM_JOB_STDOUT": lambda text, job: text.output_pattern(job) if job.batch else None,
    "SLURM_JOB_UID": lambda text, job: str(job.credentials.user_id),
    "SLURM_JOB_USER": lambda text, job: job.credentials.user_name,
    "SLURM_JOB_WORK_DIR": lambda text, job: job.request.current_working_directory,
    "SLURM_WCKEY": lambda text, job: job.request.wckey,
}
"""Variable to what it says of a job; those that say nothing are not set."""

OF_THE_END: Mapping[str, Teller] = {
    "SLURM_JOB_DERIVED_EC": lambda text, job: str(job.derived_exit_code),
    "SLURM_JOB_EXIT_CODE": lambda text, job: str(job.exit_code),
    "SLURM_JOB_EXIT_CODE2": lambda text, job: exit_code_text(job.exit_code),
}
"""What is told besides of jobs that are over."""


def program_environment(machine: Machine, job: Job, now: float, *, over: bool = False) -> dict[str, str]:
    """The variables that describe ``job`` as it is in that record; its array and het job as they are now. ``over`` says that
    this run of it is, though it may be queued again."""
    text = JobText(machine, now)
    tellers = {**VARIABLES, **(OF_THE_END if over or job.state.finished else {})}
    found = {name: value for name, tell in tellers.items() if (value := tell(text, job)) is not None}
    return found | _of_array(job) | _of_het_job(machine, text, job)


def _of_array(job: Job) -> dict[str, str]:
    if not job.array_job_id or (job.is_array and job.state.finished):
        return {}
    found = {"SLURM_ARRAY_JOB_ID": str(job.array_job_id)}
    facts = array_facts(job)
    if facts is None:
        return found
    names = {"task": "ID", "count": "COUNT", "minimum": "MIN", "maximum": "MAX", "step": "STEP"}
    return found | {f"SLURM_ARRAY_TASK_{name}": str(facts[fact]) for fact, name in names.items()}


def _of_het_job(machine: Machine, text: JobText, job: Job) -> dict[str, str]:
    if not job.het_job_id:
        return {}
    leader = machine.jobs.get(job.het_job_id, job)
    members = [machine.jobs[member] for member in leader.het_components if member in machine.jobs]
    nodes = tuple(dict.fromkeys(name for member in members if member.allocation for name in member.allocation.nodes))
    values = {"JOB_ID": str(job.het_job_id), "JOB_OFFSET": str(job.het_job_offset), "JOB_NODELIST": node_list(nodes)}
    return {f"SLURM_{kind}_{name}": value for kind in ("HET", "PACK") for name, value in values.items()}
