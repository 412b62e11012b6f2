"""The environment of the command that salloc runs, as a table over the job.

It tells less than that of a batch script: nothing of the node it runs on, for that is the one where salloc was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import prod

from grammar.hostlist import compress
from slurmk.commands.submission import Options, frequency_variable, option_variables
from slurmk.model.job import Allocation, Job, JobRequest
from slurmk.model.requested import has_step_manager
from slurmk.model.site import Site

LAUNCHERS: Mapping[str, str] = {
    "HYDRA_BOOTSTRAP": "slurm",
    "HYDRA_LAUNCHER_EXTRA_ARGS": "--external-launcher",
    "I_MPI_HYDRA_BOOTSTRAP": "slurm",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "--external-launcher",
    "OMPI_MCA_plm_slurm_args": "--external-launcher",
    "PRTE_MCA_plm_slurm_args": "--external-launcher",
}
"""What tells MPI's own launchers to use srun."""

Component = tuple[Job, JobRequest, Options]


def counts(numbers: Iterable[int]) -> str:
    """``4(x2),1``: equal neighbours together."""
    runs = [(number, len(list(group))) for number, group in groupby(numbers)]
    return ",".join(f"{number}(x{length})" if length > 1 else str(number) for number, length in runs)


def tasks_per_node(allocation: Allocation, request: JobRequest) -> list[int]:
    """Tasks of each node: those asked for, else as many as its CPUs carry."""
    if request.tasks is not None or request.tasks_per_node is not None:
        return [max(1, share.tasks) for share in allocation.shares]
    return [max(1, share.usable_cpus // max(1, request.cpus_per_task or 1)) for share in allocation.shares]


Teller = Callable[[Job, JobRequest, Allocation], str]

OF_JOB: Mapping[str, Teller] = {
    "SLURM_JOB_ACCOUNT": lambda job, request, allocation: job.account,
    "SLURM_JOB_CPUS_PER_NODE": lambda job, request, allocation: counts(share.usable_cpus for share in allocation.shares),
    "SLURM_JOB_NAME": lambda job, request, allocation: job.name,
    "SLURM_JOB_NODELIST": lambda job, request, allocation: compress(allocation.nodes),
    "SLURM_JOB_NUM_NODES": lambda job, request, allocation: str(len(allocation.nodes)),
    "SLURM_JOB_PARTITION": lambda job, request, allocation: allocation.partition,
    "SLURM_JOB_QOS": lambda job, request, allocation: job.qos,
    "SLURM_JOB_RESERVATION": lambda job, request, allocation: job.reservation,
    "SLURM_NNODES": lambda job, request, allocation: str(len(allocation.nodes)),
    "SLURM_NODELIST": lambda job, request, allocation: compress(allocation.nodes),
    "SLURM_TASKS_PER_NODE": lambda job, request, allocation: counts(tasks_per_node(allocation, request)),
    "SLURM_MEM_PER_CPU": lambda job, request, allocation: _number(request.memory_per_cpu),
    "SLURM_MEM_PER_NODE": lambda job, request, allocation: _number(request.memory_per_node or None),
    "SLURM_GPU_FREQ": lambda job, request, allocation: (request.tres_freq or "").removeprefix("gpu:"),
    "SLURM_OOM_KILL_STEP": lambda job, request, allocation: _number(request.oom_kill_step),
}
"""Variable to what it says; those that say nothing are not set."""


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def allocation_environment(components: Sequence[Component], site: Site, *, directory: str, host: str) -> dict[str, str]:
    """What salloc adds to the caller's environment for its command. The variables of a het job's components end in
    ``_HET_GROUP_0`` and, as older programs know them, ``_PACK_GROUP_0``."""
    job_id = str(components[0][0].job_id)
    found = dict(LAUNCHERS) | {
        "SLURM_CLUSTER_NAME": site.cluster_name,
        "SLURM_JOB_ID": job_id,
        "SLURM_SUBMIT_DIR": directory,
        "SLURM_SUBMIT_HOST": host,
    }
    if site.parameters.get("SLURM_CONF"):
        found["SLURM_CONF"] = site.parameters["SLURM_CONF"]
    told = [_component(*component) for component in components]
    first = components[0][0]
    if first.allocation is not None and has_step_manager(first, site):
        found["SLURM_STEPMGR"] = first.allocation.nodes[0]
    if len(told) == 1:
        return found | told[0] | {"SLURM_JOBID": job_id}
    tasks = sum(int(each.get("SLURM_NTASKS", 0)) for each in told)
    if tasks:
        found |= dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), str(tasks))
    found |= dict.fromkeys(("SLURM_HET_SIZE", "SLURM_PACK_SIZE"), str(len(told)))
    for number, (each, (job, _, _)) in enumerate(zip(told, components, strict=True)):
        each |= dict.fromkeys(("SLURM_JOBID", "SLURM_JOB_ID"), str(job.job_id))
        for group in ("HET", "PACK"):
            found |= {f"{name}_{group}_GROUP_{number}": value for name, value in each.items()}
    return found


def _component(job: Job, request: JobRequest, options: Options) -> dict[str, str]:
    assert job.allocation is not None
    found = option_variables(request, options)
    found.pop("SLURM_JOB_DEPENDENCY", None)
    found |= {name: text for name, tell in OF_JOB.items() if (text := tell(job, request, job.allocation))}
    if request.cpus_per_task is not None and "cpu" not in (request.tres_per_task or ""):
        rest = f",{request.tres_per_task}" if request.tres_per_task else ""
        found["SLURM_TRES_PER_TASK"] = f"cpu={request.cpus_per_task}{rest}"
    if "SLURM_TRES_PER_TASK" in found and "tres-per-task" not in options.said:
        found["SLURM_TRES_PER_TASK"] = _equals_form(found["SLURM_TRES_PER_TASK"])
    tasks = _tasks_of_layout(request, options)
    if tasks is not None:
        found |= dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), str(tasks))
    if frequency := frequency_variable(request.cpu_frequency):
        found["SLURM_CPU_FREQ_REQ"] = frequency
    if found.get("SLURM_DISTRIBUTION", "").startswith("plane"):
        found["SLURM_DISTRIBUTION"] = "plane"
    return found


def _tasks_of_layout(request: JobRequest, options: Options) -> int | None:
    """Tasks of a fixed number of named nodes whose sockets, cores or threads were said, but no number of tasks."""
    named = {"nodes", "nodelist"} & options.said.keys() and request.minimum_nodes == request.maximum_nodes
    sizes = [size for size in (request.sockets_per_node, request.cores_per_socket, request.threads_per_core) if size]
    if not named or not sizes or request.tasks is not None or request.tasks_per_node is not None:
        return None
    return prod(sizes, start=request.minimum_nodes or 1)


def _equals_form(text: str) -> str:
    """``cpu:2,gres/gpu:1`` as ``cpu=2,gres/gpu=1``."""
    return ",".join(word if "=" in word else "=".join(word.rsplit(":", 1)) for word in text.split(","))
