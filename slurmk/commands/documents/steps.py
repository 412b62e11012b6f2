"""Running steps (``STEP_INFO`` of the data parser): squeue -s and scontrol show step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grammar.errors import GrammarError
from grammar.patterns import PatternValues, expand_pattern
from grammar.tres import format_tres, parse_tres
from slurmk.commands.documents.shape import Member, Shape, constant, nested
from slurmk.commands.documents.values import INFINITY, UNSET, Placeholder, limit, number
from slurmk.commands.job_text import STEP_NAMES, node_list
from slurmk.model.job import BATCH_STEP, EXTERN_STEP, INTERACTIVE_STEP, Job, Step
from slurmk.model.states import NO_VALUE

NULL_WARNING = "Dumping (0xfffffffe) as place holder for null"
"""What versions from v0.0.43 on warn of a step whose job is no element of an array."""


@dataclass(frozen=True, slots=True)
class StepView:
    """A step beside its job, the cluster's name and Unix seconds now."""

    step: Step
    job: Job
    cluster: str
    now: int

    @property
    def script(self) -> bool:
        """Whether it is a step that Slurm itself makes."""
        return self.step.step_id in (BATCH_STEP, EXTERN_STEP, INTERACTIVE_STEP)


def _of(get: Callable[[Step], object]) -> Callable[[StepView], object]:
    return lambda view: get(view.step)


def _unless_script(get: Callable[[StepView], object], otherwise: object) -> Callable[[StepView], object]:
    return lambda view: otherwise if view.script else get(view)


def step_tres(step: Step) -> str:
    """What the step holds, by name."""
    gres = parse_tres(step.gres) if step.gres else {}
    amounts = {name: count for name, count in gres.items() if ":" not in name}
    text = format_tres(amounts | {"cpu": step.cpus, "mem": step.memory, "node": len(step.nodes)})
    return ",".join(sorted(text.split(",")))


def _per_node(view: StepView) -> str:
    return (view.job.request.tres_per_node or "") if view.step.gres else ""


def _running(view: StepView) -> object:
    end = view.step.end_time or view.now
    return number(max(0, end - view.step.start_time) if view.step.start_time else 0)


def _task(view: StepView) -> int:
    return Placeholder(NO_VALUE) if view.job.array_task_id is None else view.job.array_task_id


def _identity(view: StepView) -> str:
    name = STEP_NAMES.get(view.step.step_id, view.step.step_id)
    return f"{view.job.job_id}.{name}"


def _file(attribute: str) -> Callable[[StepView], object]:
    """A file of the step with its pattern filled in for the first task."""

    def value(view: StepView) -> str:
        pattern = getattr(view.step, attribute)
        return step_file(view, pattern) if pattern and not view.script else ""

    return value


def step_file(view: StepView, pattern: str) -> str:
    """The file that a pattern means in the step's first task."""
    job, step = view.job, view.step
    values = PatternValues(
        job_id=job.job_id,
        array_job_id=job.array_job_id,
        array_task_id=job.array_task_id,
        job_name=job.name,
        user_name=job.credentials.user_name,
        step_id=str(STEP_NAMES.get(step.step_id, step.step_id)),
        node_name=step.nodes[0] if step.nodes else "",
    )
    try:
        return expand_pattern(pattern, values)
    except GrammarError:
        return pattern


_FREQUENCY = _unless_script(lambda view: UNSET, number(0))

STEP: Shape[StepView] = Shape(
    nested(
        "array",
        Member("job_id", lambda view: view.job.array_job_id),
        Member("task_id", _task),
    ),
    Member("cluster", lambda view: view.cluster),
    Member("container", lambda view: view.job.request.container or ""),
    Member("container_id", lambda view: view.job.request.container_id or ""),
    Member("container_type", lambda view: view.job.request.container_type or "", since=45),
    nested(
        "cpu",
        nested("frequency", Member("min", _FREQUENCY), Member("max", _FREQUENCY), Member("governor", _FREQUENCY)),
    ),
    nested(
        "tres",
        nested(
            "per",
            Member("cpu", _unless_script(lambda view: view.job.request.cpus_per_tres or "", "")),
            Member("memory", _unless_script(lambda view: view.job.request.memory_per_tres or "", "")),
            constant("step", ""),
            Member("node", _unless_script(_per_node, "")),
            constant("socket", ""),
            Member("task", _unless_script(lambda view: view.job.request.tres_per_task or "", "")),
        ),
        Member("allocation", _unless_script(lambda view: step_tres(view.step), "")),
        Member("binding", _unless_script(lambda view: view.job.request.tres_bind or "", "")),
        Member("frequency", _unless_script(lambda view: view.job.request.tres_freq or "", "")),
    ),
    Member("name", _of(lambda step: step.name)),
    Member("network", _unless_script(lambda view: view.job.request.network or "", "")),
    Member("nodes", _of(lambda step: node_list(step.nodes))),
    Member("number_cpus", _unless_script(lambda view: view.step.cpus, 0)),
    Member("number_tasks", _of(lambda step: step.tasks)),
    Member("partition", lambda view: view.job.partition),
    constant("reserved_ports", ""),
    nested(
        "time",
        Member("running", _running),
        Member("start", _of(lambda step: number(step.start_time))),
        Member("limit", _of(lambda step: INFINITY if step.time_limit is None else limit(step.time_limit))),
    ),
    nested(
        "srun",
        Member("host", _unless_script(lambda view: view.job.submit_host, "")),
        constant("pid", 0),
    ),
    Member("state", _of(lambda step: [step.state.name])),
    Member("sluid", lambda view: view.job.sluid, since=45),
    Member("id", _identity),
    Member("stderr", _unless_script(lambda view: view.step.standard_error, ""), since=43),
    Member("stdin", _unless_script(lambda view: view.step.standard_input, ""), since=43),
    Member("stdout", _unless_script(lambda view: view.step.standard_output, ""), since=43),
    Member("stdin_expanded", _file("standard_input"), since=43),
    Member("stdout_expanded", _file("standard_output"), since=43),
    Member("stderr_expanded", _file("standard_error"), since=43),
    Member("submit_line", _of(lambda step: step.submit_line)),
    nested("task", Member("distribution", _of(lambda step: step.distribution.capitalize() or "Unknown"))),
    Member("user", lambda view: view.job.credentials.user_name),
)
"""Every member of a running step."""
