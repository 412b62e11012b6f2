"""sattach: see what a running step's tasks write, and write to them (sattach(1)).

What the tasks write comes from the job's step manager to sattach's local part (``slurmk.stepd.sattach``), which the caller's
process becomes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from grammar.arguments import Argument, Given, Option, Status
from grammar.hostlist import compress
from slurmk.commands.call import Call, Controller, Failure, Output
from slurmk.commands.frame import VERSION, early_answer, read_options
from slurmk.commands.processes import Task, tasks_of
from slurmk.commands.srun import local_part
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.selection import parse_step
from slurmk.model.job import BATCH_STEP, EXTERN_STEP, Job, Step

_VALUE = Argument.REQUIRED

OPTIONS: tuple[Option, ...] = (
    Option(("error-filter",), argument=_VALUE),
    Option(("help",), "h"),
    Option(("input-filter",), argument=_VALUE),
    Option(("label",), "l"),
    Option(("layout",)),
    Option(("output-filter",), argument=_VALUE),
    Option(("pty",), hidden=True, status=Status.ACCEPTED, note="terminals are srun's alone"),
    Option(("quiet",), "Q", status=Status.ACCEPTED, note="there is nothing less to tell"),
    Option(("usage",), "u"),
    Option(("verbose",), "v", status=Status.ACCEPTED, note="there is nothing more to tell"),
    VERSION,
)

HELP_TEXTS: Mapping[str, str] = {
    "error-filter": "errors of this task alone",
    "input-filter": "input for this task alone",
    "label": "the task's number before each line",
    "layout": "which tasks run where, and no more",
    "output-filter": "output of this task alone",
}

USAGE_TEXT = "[options] <jobid.stepid>"

FILTERS = {"input-filter": "input", "output-filter": "output", "error-filter": "error"}


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Attach; gives the exit code when there is nothing to attach to."""
    given, operands = read_options(call, OPTIONS)
    if (answer := early_answer(call, given, OPTIONS, HELP_TEXTS, USAGE_TEXT, "<jobid.stepid>")) is not None:
        output.write(answer)
        return 0
    if len(operands) != 1:
        output.write(f"Usage: sattach {USAGE_TEXT}\n")
        raise Failure("sattach: error: too many parameters\n")
    filters = _filters(given)
    job, step = _step(call, controller, output, operands[0])
    if any(one.name == "layout" for one in given):
        tasks, _ = await tasks_of(controller, job)
        output.write("".join(f"{line}\n" for line in layout(step, tasks)))
        return 0
    if not controller.machine.may_change(call.caller, job):
        output.error("".join(f"sattach: Node {node}: no tasks running\n" for node in step.nodes))
        return 0
    access = controller.access(job)
    *program, _ = local_part(call, access)
    label = any(one.name == "label" for one in given)
    settings = json.dumps({"step": step.step_id, "label": label, **filters})
    environment = dict(call.environment)
    environment |= {name: access[name] for name in ("SLURMK_STEP_MANAGER", "SLURMK_JOB_SECRET") if name in access}
    output.execute([*program, "sattach", settings], environment)
    return 0


def _filters(given: Sequence[Given]) -> dict[str, int]:
    """The tasks that each stream is of. Raises Failure."""
    found = {}
    for one in given:
        if one.name in FILTERS:
            text = one.value or ""
            if not (text.isascii() and text.isdigit() and len(text) < 8):
                raise Failure(f'sattach: error: Invalid --{one.name} argument: "{text}"\n')
            found[FILTERS[one.name]] = int(text)
    return found


def _step(call: Call, controller: Controller, output: Output, name: str) -> tuple[Job, Step]:
    """The running step of that name. Raises Failure."""
    try:
        chosen = parse_step(name, controller.machine.jobs.values())
    except SlurmError as error:
        raise Failure(f"sattach: fatal: Bad job/step specified: {name}: {error}\n") from None
    if chosen.step_id is None:
        output.write(f"Usage: sattach {USAGE_TEXT}\n")
        raise Failure("sattach: error: Failed to parse stepid from command line options\n")
    if chosen.step_id in (BATCH_STEP, EXTERN_STEP):
        raise Failure("sattach: error: Cannot be used with extern or batch steps\n")
    job = controller.machine.jobs.get(chosen.job_id)
    for step in job.steps if job is not None else ():
        if job is not None and step.step_id == chosen.step_id:
            return job, step
    raise Failure(f"sattach: error: Could not get job step info: {SlurmError(Errno.INVALID_JOB_ID)}\n")


def layout(step: Step, tasks: Sequence[Task]) -> Iterator[str]:
    """Which tasks run where."""
    own = [task for task in tasks if task.step_id == step.step_id]
    yield "Job step layout:"
    yield f"\t{step.tasks} tasks, {len(step.nodes)} nodes ({compress(step.nodes)})"
    yield ""
    for number, node in enumerate(step.nodes):
        ranks = [task.rank for task in own if task.node == node]
        yield f"\tNode {number} ({node}), {len(ranks)} task(s): {''.join(f'{rank} ' for rank in ranks)}"
