"""How a step in a job is sized: what srun takes over from the job's environment, and what of it gives way to its own options.

srun reads the number of tasks, of nodes and of tasks a node from its command line, else from the variables that the job
set. Two of them may not go together; the rules here are those that the reference follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grammar.options import OF_ALLOCATION
from slurmk.commands.submission import Options
from slurmk.model.job import JobRequest
from slurmk.model.site import Site

PLANE = "SLURM_DIST_PLANESIZE"


def of_job(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with what a job says of itself in two variables as srun's options say it in one."""
    if environment.get("SLURM_DISTRIBUTION") == "plane" and environment.get(PLANE):
        return {**environment, "SLURM_DISTRIBUTION": f"plane={environment[PLANE]}"}
    return environment


def sizes_of(options: Options, request: JobRequest, allocated: int) -> tuple[dict[str, Any], list[str]]:
    """The fields of a step that differ from what was asked for, and what the user is told of them. ``allocated`` is how many
    nodes the job has.

    A number of nodes on the command line and tasks a node say how many tasks there are, unless the command line does; tasks a
    node that are too few for the tasks are not kept to.
    """
    per_node, tasks = request.tasks_per_node, request.tasks
    if not per_node:
        return {}, []
    if _typed(options, "nodes") and not _typed(options, "ntasks"):
        return {"tasks": (request.minimum_nodes or 1) * per_node}, []
    most = min(request.maximum_nodes or allocated, allocated) if "nodes" in options.values else allocated
    if tasks is None or tasks <= per_node * most:
        return {}, []
    text = (
        f"warning: can't honor --ntasks-per-node set to {per_node} which doesn't match the requested tasks {tasks} with the "
        f"maximum number of requested nodes {most}. Ignoring --ntasks-per-node."
    )
    return {"tasks_per_node": None}, [text]


def is_exact(options: Options, site: Site) -> bool:
    """Whether a step has only the CPUs that its tasks need: --exclusive says so of a step, too, unless it is meant of the
    allocation alone."""
    word = (options.said.get("exclusive", ("", None))[1] or "").lower()
    launch = site.parameters.get("LaunchParameters", "").lower().split(",")
    of_step = options.get("shared") == "none" and word != OF_ALLOCATION and "srun_exclusive_allocation" not in launch
    return bool(options.get("exact") or (of_step and "ntasks" in options.said))


def _typed(options: Options, name: str) -> bool:
    return options.said.get(name, ("", ""))[0] == "command line"


_NOT_FOR_STEPS: Mapping[str, str] = {
    "begin": "error: --begin is ignored because nodes are already allocated.",
    "core-spec": "error: Ignoring --core-spec value for a job step within an existing job. "
    "Set specialized cores at job allocation time.",
    "gpus-per-socket": "warning: Ignoring --gpus-per-socket because it can only be specified at job allocation time, "
    "not during step allocation.",
}


def ignored_in_job(options: Options) -> list[str]:
    """What srun says of options that only mean something when it makes an allocation."""
    return [text for name, text in _NOT_FOR_STEPS.items() if _typed(options, name)]
