"""``slurmk why JOBID``: why a job waits, who is before it, when it is planned, and what smaller request would start earlier.

What is told is made by ``planner.why``; here it becomes sentences (``why_text``) or JSON.
"""

from __future__ import annotations

import json

from slurmk.commands.call import Call, Controller, Output
from slurmk.commands.why_text import Answer, Reader, document, lines
from slurmk.core import arrays
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.selection import parse
from slurmk.model.job import Job

MOST_RECORDS = 16
"""Waiting records of one array or heterogeneous job that are explained, each of which takes a plan."""

USAGE = "slurmk: error: why takes one job id (12, 12_3, 12+1), and --json\n"


async def run(call: Call, controller: Controller, output: Output) -> int:
    """``why JOBID [--json]``; gives the exit code."""
    words = [word for word in list(call.arguments)[1:] if word != "--json"]
    if len(words) != 1 or words[0].startswith("-"):
        output.error(USAGE)
        return 2
    reader = Reader(controller.machine, call.caller, controller.now())
    try:
        wanted = parse(words[0])
        chosen = [job for job in controller.machine.select(wanted) if reader.may_see(job)]
        if not chosen or wanted.step_id is not None:
            raise SlurmError(Errno.INVALID_JOB_ID)
    except SlurmError as error:
        output.error(f"slurmk: error: {error}\n")
        return 1
    tasks = tuple(task for part in wanted.array_tasks for task in part[: controller.machine.site.maximum_array_size])
    answers = [await _answer(controller, job, tasks) for job in _told(chosen)]
    if "--json" in call.arguments:
        output.write(json.dumps({"jobs": [document(reader, answer) for answer in answers]}, indent=2) + "\n")
        return 0
    output.write("\n".join("".join(f"{line}\n" for line in lines(reader, answer)) for answer in answers))
    more = len(chosen) - len(answers)
    if more > 0:
        output.write(f"\n{more} more of its jobs are not told of; ask for one of them.\n")
    return 0


def _told(jobs: list[Job]) -> list[Job]:
    """Those that wait first, then what else there is."""
    return sorted(jobs, key=lambda job: (not job.pending, job.job_id))[:MOST_RECORDS]


async def _answer(controller: Controller, job: Job, tasks: tuple[int, ...]) -> Answer:
    question = controller.machine.question(job.job_id, controller.now())
    explanation = None if question is None else await controller.explain(question)
    present = controller.machine.jobs.get(job.job_id, job)
    element = next((task for task in tasks if arrays.contains(job.array_tasks, task)), None)
    return Answer(present if present.pending == job.pending else job, explanation, element)
