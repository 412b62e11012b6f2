"""swait: wait until a job's steps have ended, those that srun left behind (--async) too (swait(1)).

The controller knows of every step before its srun says that it was submitted, so it is all that has to be looked at.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from grammar.arguments import Argument, Option
from slurmk.commands.call import Call, Controller, Failure, Output
from slurmk.commands.frame import USAGE, VERSION, early_answer, read_options
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.selection import NO_JOB, number_of
from slurmk.model.job import FIRST_SPECIAL_STEP, Job
from slurmk.model.requested import has_step_manager

OPTIONS: tuple[Option, ...] = (
    Option(("help",), "h"),
    Option(("quiet",), "Q"),
    Option(("timeout",), argument=Argument.REQUIRED),
    USAGE,
    Option(("verbose",), "v"),
    VERSION,
)

HELP_TEXTS: Mapping[str, str] = {
    "quiet": "tell of nothing but errors",
    "timeout": "seconds for which the steps are waited for; 0: without end",
}

USAGE_TEXT = "[-hQvV] [--timeout=SECS] [--usage] [<jobid>[_<task>] | s<sluid>]"

TIMED_OUT, FAILED = 1, 2
"""Exit codes."""

_TYPED = re.compile(r"(?P<sluid>s[0-9A-Z]{13})|(?P<job>\d{1,10})(?P<task>_[^.+]*)?(?P<offset>\+.*)?(?P<step>\..*)?", re.ASCII)


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Wait; gives the exit code."""
    try:
        given, operands = read_options(call, OPTIONS, hint=False)
    except Failure as failure:
        raise Failure(f'{failure.text}swait: Try "swait --help" for more information\n', FAILED) from None
    operand = "[<jobid>[_<task>] | s<sluid>]"
    if (answer := early_answer(call, given, OPTIONS, HELP_TEXTS, USAGE_TEXT, operand)) is not None:
        output.write(answer)
        return 0
    said = {one.name: one.value or "" for one in given}
    seconds = _seconds(said.get("timeout", "0"))
    if "verbose" in said and "quiet" in said:
        raise _fault("--verbose (-v) and --quiet (-Q) are mutually exclusive")
    if len(operands) > 1:
        raise _fault("too many positional arguments (expected at most one job id)")
    job = _job(operands[0] if operands else _own_job(call), controller)
    _check(call, controller, job)
    code = await _wait(controller, job.job_id, seconds, output if "verbose" in said else None)
    if code:
        raise Failure(f"swait: error: timed out after {seconds} seconds\n", code)
    return code


def _fault(text: str) -> Failure:
    return Failure(f"swait: error: {text}\n", FAILED)


def _seconds(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise _fault(f"--timeout: invalid value '{text}' (must be a non-negative integer)")
    return int(text)


def _own_job(call: Call) -> str:
    """The job that swait is called in. Raises Failure."""
    for name in ("SLURM_JOB_SLUID", "SLURM_JOB_ID"):
        if text := call.environment.get(name):
            return text
    raise _fault("no job id given and SLURM_JOB_SLUID/SLURM_JOB_ID are not set")


def _job(text: str, controller: Controller) -> Job:
    """The job as typed. Raises Failure."""
    typed = _TYPED.fullmatch(text)
    if typed is None or (typed["job"] and not int(typed["job"])):
        raise _fault(f"{text}: cannot parse job id")
    if typed["step"]:
        raise _fault(f"{text}: swait operates on a job, not a step")
    if typed["offset"]:
        raise _fault(f"{text}: het-job offsets are not supported")
    jobs = controller.machine.jobs
    number = number_of(typed["sluid"], jobs.values()) if typed["sluid"] else int(typed["job"])
    elements = [job for job in jobs.values() if number in (job.job_id, job.array_job_id)]
    if number == NO_JOB or not elements:
        name = f"SLUID={typed['sluid']}" if typed["sluid"] else f"JobId={number}"
        raise _fault(f"cannot load {name}: {SlurmError(Errno.INVALID_JOB_ID)}")
    if typed["task"]:
        return _element(text, number, typed["task"][1:], elements)
    if any(job.array_job_id == number for job in elements) and len(elements) > 1:
        raise _fault(f"JobId={number} is an array job; pass a specific task offset (jobid_task)")
    return elements[0]


def _element(text: str, number: int, task: str, elements: list[Job]) -> Job:
    if not (task.isascii() and task.isdigit()):
        raise _fault(f"{text}: array-task ranges are not supported, pass one task offset")
    if not any(job.array_job_id for job in elements):
        raise _fault(f"JobId={number}: not an array job")
    found = next((job for job in elements if job.array_task_id == int(task)), None)
    if found is None:
        raise _fault(f"array task {text}: not found")
    return found


def _check(call: Call, controller: Controller, job: Job) -> None:
    """The job has steps to wait for, and they are the caller's. Raises Failure."""
    machine = controller.machine
    if not has_step_manager(job, machine.site):
        named = f"JobId={job.job_id}" + (f" SLUID={job.sluid}" if "SLURM_JOB_SLUID" in call.environment else "")
        raise _fault(f"{named} does not have stepmgr enabled")
    if job.pending:
        raise _fault(f"JobId={job.job_id} is still pending; swait does not wait for jobs to start")
    refused = None if machine.may_change(call.caller, job) else Errno.USER_ID_MISSING
    refused = Errno.INVALID_JOB_ID if job.state.finished else refused
    if refused is not None:
        node = job.allocation.nodes[0] if job.allocation is not None else ""
        why = SlurmError(refused)
        raise Failure(
            f"swait: error: swait: subscribe RPC failed: {why}\nswait: error: subscribe to stepmgr {node} failed: {why}\n",
            FAILED,
        )


async def _wait(controller: Controller, job_id: int, seconds: int, told: Output | None) -> int:
    """The exit code once the steps have ended, or it was waited for so long (0: without end)."""
    if told is not None:
        told.error(f"swait: waiting for steps to drain ({f'timeout {seconds}s' if seconds else 'no timeout'})\n")
    try:
        async with asyncio.timeout(seconds or None):
            while _has_steps(controller.machine.jobs.get(job_id)):
                await controller.job_changed(job_id)
        code = 0
    except TimeoutError:
        code = TIMED_OUT
    if told is not None:
        told.error(f"swait: exiting rc={code}\n")
    return code


def _has_steps(job: Job | None) -> bool:
    return job is not None and any(step.step_id < FIRST_SPECIAL_STEP for step in job.steps)
