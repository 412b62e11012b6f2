"""What the tasks of a step see of the options that their srun was given, as a table over srun's request.

Variables of the job itself, and those that tell tasks apart, are stepd's to set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slurmk.commands.allocation_environment import LAUNCHERS
from slurmk.commands.submission import Options, frequency_variable, gpus_said
from slurmk.model.job import JobRequest

Teller = Callable[[JobRequest, Options], object]


def _said(*options: str) -> Callable[[Teller], Teller]:
    """A teller that is asked only where one of the options was given to this srun."""

    def told_where_said(tell: Teller) -> Teller:
        return lambda request, options_: tell(request, options_) if set(options) & options_.said.keys() else None

    return told_where_said


OF_OPTIONS: Mapping[str, Teller] = {
    "SLURM_CPU_FREQ_REQ": lambda request, options: frequency_variable(request.cpu_frequency),
    "SLURM_CPUS_PER_GPU": lambda request, options: gpus_said(request.cpus_per_tres),
    "SLURM_DIST_PLANESIZE": lambda request, options: request.distribution_plane_size,
    "SLURM_GPU_FREQ": lambda request, options: (request.tres_freq or "").removeprefix("gpu:"),
    "SLURM_GPUS": lambda request, options: gpus_said(request.tres_per_job),
    "SLURM_GPUS_PER_NODE": _said("gpus-per-node")(lambda request, options: gpus_said(request.tres_per_node)),
    "SLURM_GPUS_PER_SOCKET": lambda request, options: gpus_said(request.tres_per_socket),
    "SLURM_JOB_DEPENDENCY": lambda request, options: request.dependency,
    "SLURM_MEM_PER_GPU": lambda request, options: gpus_said(request.memory_per_tres),
    "SLURM_NETWORK": lambda request, options: request.network,
    "SLURM_NTASKS_PER_CORE": lambda request, options: request.tasks_per_core,
    "SLURM_NTASKS_PER_NODE": _said("ntasks-per-node", "tasks-per-node")(lambda request, options: request.tasks_per_node),
    "SLURM_NTASKS_PER_SOCKET": lambda request, options: request.tasks_per_socket,
    "SLURM_NTASKS_PER_TRES": lambda request, options: request.ntasks_per_tres,
    "SLURM_OVERCOMMIT": lambda request, options: "1" if request.overcommit else None,
    "SLURM_THREADS_PER_CORE": lambda request, options: request.threads_per_core,
    "SLURM_TRES_PER_TASK": lambda request, options: tasks_resources(request, options),
}
"""Variable to what it says; those that say nothing are not set."""

OF_ALLOCATION: Mapping[str, Teller] = {
    "SLURM_JOB_SEGMENT_SIZE": lambda request, options: request.segment_size,
    "SLURM_MEM_PER_CPU": _said("mem-per-cpu")(lambda request, options: request.memory_per_cpu),
    "SLURM_MEM_PER_NODE": _said("mem")(lambda request, options: request.memory_per_node),
}
"""The same where srun made the allocation itself."""


def tasks_resources(request: JobRequest, options: Options) -> str | None:
    """What each task gets, as it was said: the text of --tres-per-task stays as typed, other options are written as it."""
    text = request.tres_per_task
    if not text or "tres-per-task" in options.said:
        return text
    return ",".join(word if "=" in word else "=".join(word.rsplit(":", 1)) for word in text.split(","))


def step_environment(request: JobRequest, options: Options, *, alone: bool) -> dict[str, str]:
    """What srun adds to its tasks' environment; ``alone`` where it made the allocation."""
    tables = (OF_OPTIONS, OF_ALLOCATION) if alone else (OF_OPTIONS,)
    told = {name: tell(request, options) for table in tables for name, tell in table.items()}
    found = {name: str(value) for name, value in told.items() if value not in (None, "")}
    return dict(LAUNCHERS) | found if alone else found
