"""``--json`` and ``--yaml`` of the commands: which form is asked for, and a document written to the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from grammar.arguments import Given
from slurmk.commands.call import Call, Controller, Failure, Output
from slurmk.commands.documents.envelope import PLUGINS, POSSIBLE, Asker, Unsupported, Wanted, surroundings, wanted
from slurmk.commands.documents.jobs import JOB, JobView
from slurmk.commands.documents.steps import NULL_WARNING, STEP, StepView
from slurmk.commands.documents.text import compact_pieces, compact_text, complexly, json_pieces, json_text, yaml_text
from slurmk.commands.documents.values import group_name, number
from slurmk.commands.job_text import JobText
from slurmk.commands.node_text import user_name
from slurmk.model.job import Job
from slurmk.model.states import NO_VALUE

PIECE = 100
"""Rows that are written before others are served."""


class UnknownForm(Failure):
    """``--json`` or ``--yaml`` names a data parser that there is not."""


def form(call: Call, given: Sequence[Given], output: Output, code: int = 1) -> Wanted | None:
    """The form that the last of ``--json`` and ``--yaml`` asks for, None without one. Raises UnknownForm with Slurm's
    words, and Failure after ``--json=list``, which is answered here."""
    asked = [option for option in given if option.name in ("json", "yaml")]
    if not asked:
        return None
    if asked[-1].value == "list":
        output.write(PLUGINS)
        raise Failure(POSSIBLE, 0)
    try:
        found = wanted(asked[-1].value, yaml=asked[-1].name == "yaml")
    except Unsupported as error:
        raise UnknownForm("".join(f"{call.command}: {line}\n" for line in error.lines), code) from None
    for notice in found.notices:
        output.error(f"{call.command}: {notice}\n")
    compact = [_serializer(call, variable) for variable in ("SLURM_JSON", "SLURM_YAML")]
    return replace(found, compact=compact[0] and not found.yaml)


def _serializer(call: Call, variable: str) -> bool:
    """Whether the variable asks for compact text. Raises Failure for words that it does not know."""
    text = call.environment.get(variable, "")
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    if not set(words) <= {"compact", "pretty"}:
        raise Failure(f'{call.command}: fatal: Unable to parse serializer "{text}" flags: Invalid argument\n')
    return words[-1:] == ["compact"]


def asker(call: Call, controller: Controller) -> Asker:
    """Who asks: the caller."""
    site = controller.machine.site
    accounting = site.parameters.get("AccountingStorageType", "(null)")
    return Asker(
        user_name(call.caller.user_id),
        group_name(call.group_id),
        (call.command, *call.arguments),
        site.cluster_name,
        call.terminal,
        accounting="" if accounting.lower() in ("(null)", "none", "accounting_storage/none") else accounting,
    )


async def print_rows(
    call: Call,
    controller: Controller,
    output: Output,
    asked: Wanted,
    name: str,
    rows: Iterable[Mapping[str, object]],
    *,
    before: Mapping[str, object] | None = None,
    warnings: Iterable[str] = (),
) -> None:
    """Write ``{name: [rows], **before, meta, errors, warnings}``. ``rows`` are made while they are written."""
    rest: dict[str, object] = surroundings(asker(call, controller), asked.parser, before=before, warnings=warnings)
    documents: Iterable[object] = rows
    if asked.complex:
        documents = (complexly(row) for row in rows)
        rest = {key: complexly(value, key) for key, value in rest.items()}
    if asked.yaml:
        everything = {name: await _listed(documents, output), **rest}
        output.write(await asyncio.to_thread(yaml_text, everything))
        return
    pieces = compact_pieces if asked.compact else json_pieces
    for position, piece in enumerate(pieces(name, documents, rest), 1):
        output.write(piece)
        if position % PIECE == 0:
            await output.drain()
    await output.drain()


async def print_object(
    call: Call, controller: Controller, output: Output, asked: Wanted, members: Mapping[str, object]
) -> None:
    """Write a document that has no rows: ``{**members, meta, errors, warnings}``."""
    everything: object = surroundings(asker(call, controller), asked.parser, before=members)
    if asked.complex:
        everything = complexly(everything)
    assert isinstance(everything, dict)
    write = compact_text if asked.compact else json_text
    output.write(yaml_text(everything) if asked.yaml else write(everything) + "\n")
    await output.drain()


async def _listed(documents: Iterable[object], output: Output) -> list[object]:
    found = []
    for position, document in enumerate(documents, 1):
        found.append(document)
        if position % PIECE == 0:
            await output.drain()
    return found


# ------------------------------------------------------------------------------------------------ what several commands print


def list_order(job: Job) -> tuple[int, int]:
    """Jobs in the order of documents and of scontrol: elements of an array by number, those that wait last."""
    return job.array_job_id or job.job_id, NO_VALUE if job.array_task_id is None else job.array_task_id


async def print_jobs(
    call: Call,
    controller: Controller,
    output: Output,
    asked: Wanted,
    text: JobText,
    jobs: Iterable[Job],
    *,
    named: bool = False,
) -> None:
    """The document of these jobs. With ``named`` it is of one job, which has no time of an update, and no warning if there
    is none."""
    chosen = list(jobs)
    missed = named and not chosen
    now = int(controller.now())
    await print_rows(
        call,
        controller,
        output,
        asked,
        "jobs",
        (JOB.document(JobView(text, job), asked.version) for job in chosen),
        before={"last_backfill": number(0 if missed else now), "last_update": number(0 if named else now)},
        warnings=() if chosen or missed else ("Zero jobs to dump",),
    )


async def print_steps(
    call: Call, controller: Controller, output: Output, asked: Wanted, steps: Sequence[StepView], *, missed: bool = False
) -> None:
    """The document of these steps. ``missed``: of a job that is not there, which gets no time and no warning."""
    warned = asked.version > 42 and not asked.complex
    unnumbered = sum(view.job.array_task_id is None for view in steps) if warned else 0
    await print_rows(
        call,
        controller,
        output,
        asked,
        "steps",
        (STEP.document(view, asked.version) for view in steps),
        before={"last_update": number(0 if missed else int(controller.now()))},
        warnings=[NULL_WARNING] * unnumbered if steps or missed else ["Zero steps to dump"],
    )
