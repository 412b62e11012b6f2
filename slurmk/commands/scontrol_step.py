"""``scontrol update StepId=…``: another time limit for steps that run (scontrol(1))."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grammar.errors import GrammarError
from grammar.times import parse_duration
from slurmk.commands import scontrol_keys as keys
from slurmk.commands.scontrol_keys import ERROR, Failure
from slurmk.commands.scontrol_session import Session
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import UpdateStep
from slurmk.model.states import NO_VALUE


async def update(session: Session, words: Sequence[str]) -> int:
    """The steps' records first, and then who enforces their limits is told."""
    now = session.controller.now()
    job_id, step_id = 0, None
    minutes: int | None = None
    for word in words:
        typed = keys.typed(word, now)
        if typed is None:
            raise Failure(f"Invalid input: {word}\nRequest aborted")
        if keys.abbreviates(typed.key + typed.sign, "StepId", 4):
            job_id, step_id = _step(typed.value, word)
        elif keys.abbreviates(typed.key + typed.sign, "TimeLimit", 2):
            minutes = _minutes(session, typed.value, job_id, step_id)
        else:
            raise Failure(f"Update of this parameter is not supported: {word}\nRequest aborted")
    if minutes is None:
        raise Failure("No changes specified")
    event = UpdateStep(now, session.call.caller, job_id, step_id, minutes)
    code = keys.tell_update(await session.controller.apply(event), session.output)
    job = session.controller.machine.jobs.get(job_id)
    if not code and job is not None and job.allocation is not None:
        question = {"what": "limit", "step": step_id, "minutes": minutes}
        await session.controller.ask(job, job.allocation.nodes[:1], question)
    return code


def _step(text: str, word: str) -> tuple[int, int | None]:
    """The job's and the step's number, where what is no number is 0; no step means all. Raises Failure."""
    match = re.fullmatch(r"([0-9]{0,9})(?:\.([0-9]{0,9}).*)?", text)
    if match is None:
        raise Failure(f"Invalid StepID parameter: {word}\nRequest aborted")
    return int(match[1] or 0), None if match[2] is None else int(match[2] or 0)


def _minutes(session: Session, value: str, job_id: int, step_id: int | None) -> int:
    """A limit, or with a sign what is added to the step's own or taken from it. Raises Failure."""
    signed = value[:1] in ("+", "-")
    try:
        asked = parse_duration(value[1:] if signed else value)
    except GrammarError:
        raise Failure(f"{ERROR}Invalid TimeLimit value") from None
    if not signed:
        return asked
    job = session.controller.machine.jobs.get(job_id)
    step = next((step for step in job.steps if step_id in (None, step.step_id)), None) if job is not None else None
    if job is None:
        raise Failure(
            f"{ERROR}Could not load state information for step {job_id}.{step_id}: {SlurmError(Errno.INVALID_JOB_ID)}"
        )
    if step is None or step.time_limit is None or step.time_limit >= NO_VALUE:
        raise Failure("")
    if value[0] == "+":
        return step.time_limit + asked
    if asked > step.time_limit:
        raise Failure(f"{ERROR}TimeLimit decrement larger than current time limit ({asked} > {step.time_limit})")
    return step.time_limit - asked
