"""Which jobs a user's ``12``, ``12_[1-4]``, ``12+1`` or SLUID means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from grammar.sluid import typed_sluid
from slurmk.core import arrays
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import JobSelection
from slurmk.core.state import State, Turn
from slurmk.model.job import BATCH_STEP, EXTERN_STEP, INTERACTIVE_STEP, Job


@dataclass(frozen=True, slots=True)
class Selected:
    """One record that a selection names. ``tasks`` are the waiting elements of it that are meant; None: the record whole."""

    job: Job
    tasks: tuple[int, ...] | None = None


_TASKS = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?$")
_JOB = re.compile(r"(\d+)(?:_(\*|\[[\d,:%-]+\]|\d+))?(?:\+(\d+))?(?:\.(\d+|batch|extern|interactive))?$")
PENDING_STEP = 0xFFFFFFFD
"""The number of a step that has none yet; its name is TBD."""

_STEPS = {"batch": BATCH_STEP, "extern": EXTERN_STEP, "interactive": INTERACTIVE_STEP}


def parse(text: str, jobs: Iterable[Job] = ()) -> JobSelection:
    """A job as typed; its SLUID is looked up among ``jobs``. Raises SlurmError(INVALID_JOB_ID)."""
    word, point, step_name = text.strip().partition(".")
    if sluid := typed_sluid(word):
        text = f"{number_of(sluid, jobs)}{point}{step_name}"
    match = _JOB.match(text.strip())
    if match is None or len(match[1]) > 10:
        raise SlurmError(Errno.INVALID_JOB_ID)
    tasks: tuple[range, ...] = ()
    if match[2] and match[2] != "*":
        tasks = tuple(_range(part) for part in match[2].strip("[]").split("%")[0].split(","))
    step = None if match[4] is None else _STEPS[match[4]] if match[4] in _STEPS else int(match[4])
    return JobSelection(int(match[1]), tasks, None if match[3] is None else int(match[3]), step)


NO_JOB = 0xFFFFFFFF
"""A number that no job has."""


def number_of(sluid: str, jobs: Iterable[Job]) -> int:
    """The number of the job with that SLUID; NO_JOB when there is none."""
    return next((job.job_id for job in jobs if job.sluid == sluid), NO_JOB)


@dataclass(frozen=True, slots=True)
class _Number:
    """A number in the name of a step, and what its faults are called."""

    largest: int
    empty: Errno
    negative: Errno
    too_large: Errno
    no_number: Errno

    def read(self, text: str) -> int:
        """Raises SlurmError."""
        if not text:
            raise SlurmError(self.empty)
        if text.startswith("-"):
            raise SlurmError(self.negative)
        if not (text.isascii() and text.isdigit()):
            raise SlurmError(self.no_number)
        if len(text) > _DIGITS or int(text) > self.largest:
            raise SlurmError(self.too_large)
        return int(text)


_DIGITS = 20
_LARGEST_ID, _LARGEST_TASK = 0xFFFFFFF0, 0xFFFFFFFF
_JOB_ID = _Number(
    _LARGEST_ID,
    Errno.EMPTY_JOB_ID,
    Errno.INVALID_JOB_ID_NEGATIVE,
    Errno.INVALID_JOB_ID_TOO_LARGE,
    Errno.INVALID_JOB_ID_NON_NUMERIC,
)
_TASK_ID = _Number(
    _LARGEST_TASK,
    Errno.EMPTY_JOB_ARRAY_ID,
    Errno.INVALID_JOB_ARRAY_ID_NEGATIVE,
    Errno.INVALID_JOB_ARRAY_ID_TOO_LARGE,
    Errno.INVALID_JOB_ARRAY_ID_NON_NUMERIC,
)
_COMPONENT = _Number(
    _LARGEST_ID,
    Errno.EMPTY_HET_JOB_COMPONENT,
    Errno.INVALID_HET_JOB_COMPONENT_NEGATIVE,
    Errno.INVALID_HET_JOB_COMPONENT_TOO_LARGE,
    Errno.INVALID_HET_JOB_COMPONENT_NON_NUMERIC,
)
_STEP_ID = _Number(
    _LARGEST_ID,
    Errno.EMPTY_STEP_ID,
    Errno.INVALID_STEP_ID_NEGATIVE,
    Errno.INVALID_STEP_ID_TOO_LARGE,
    Errno.INVALID_STEP_ID_NON_NUMERIC,
)


def parse_step(text: str, jobs: Iterable[Job] = ()) -> JobSelection:
    """A job or step as the commands about steps read it: ``12``, ``12_3.0``, ``12+1.batch``, a SLUID that is looked up among
    ``jobs``. Raises SlurmError that tells which part is wrong."""
    word, point, step_name = text.strip().partition(".")
    if word.startswith("s"):
        sluid = typed_sluid(word)
        if not sluid:
            raise SlurmError(Errno.INVALID_JOB_ID, "SLUID is invalid")
        job_id, task, component = number_of(sluid, jobs), None, None
    else:
        word, plus, offset = word.partition("+")
        word, line, index = word.partition("_")
        if index.startswith("["):
            raise SlurmError(Errno.INVALID_JOB_ID_NON_NUMERIC)
        if word and not word.startswith("-") and not re.match(r"0*[1-9]", word):
            raise SlurmError(Errno.INVALID_JOB_ID_ZERO)
        job_id = _JOB_ID.read(word)
        task = _TASK_ID.read(index) if line else None
        component = _COMPONENT.read(offset) if plus else None
    step = None
    if point:
        name = step_name.lower()
        step = PENDING_STEP if name == "tbd" else _STEPS[name] if name in _STEPS else _STEP_ID.read(step_name)
    return JobSelection(job_id, () if task is None else (range(task, task + 1),), component, step)


def _range(text: str) -> range:
    match = _TASKS.match(text)
    if match is None or len(text) > 32 or int(match[2] or match[1]) < int(match[1]) or match[3] == "0":
        raise SlurmError(Errno.INVALID_JOB_ID)
    return range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1))


def name_of(selection: JobSelection) -> str:
    """The selection as a user writes it, for messages."""
    text = str(selection.job_id)
    if selection.array_tasks:
        first = selection.array_tasks[0]
        alone = len(selection.array_tasks) == 1 and len(first) == 1
        listed = ",".join(f"{part[0]}" if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in selection.array_tasks if part)
        text += f"_{listed}" if alone else f"_[{listed}]"
    if selection.het_offset is not None:
        text += f"+{selection.het_offset}"
    if selection.step_id is not None:
        text += f".{selection.step_id}"
    return text


def is_lone_component(chosen: JobSelection, job: Job) -> bool:
    """Whether a selection means one component of a het job, by its number in the het job or by its own."""
    return bool(job.het_job_id) and (chosen.het_offset is not None or chosen.job_id != job.het_job_id)


def wholly(state: State, chosen: JobSelection) -> JobSelection:
    """The selection, or the whole het job of the component that it means where the site has it so (whole_hetjob)."""
    options = state.site.scheduler_parameters
    if chosen.step_id is not None or not ("whole_hetjob" in options or "whole_pack" in options):
        return chosen
    job = state.jobs.get(chosen.job_id)
    return chosen if job is None or not job.het_job_id else JobSelection(job.het_job_id)


def select(state: State, selection: JobSelection) -> list[Selected]:
    """The records meant; the number of an array means all of it, the leader's number of a het job all components.

    Raises SlurmError(INVALID_JOB_ID) when there is none.
    """
    found = list(_select(state, selection))
    if not found:
        raise SlurmError(Errno.INVALID_JOB_ID)
    return found


def _select(state: State, selection: JobSelection) -> Iterable[Selected]:
    if selection.array_tasks:
        return _elements(state, selection)
    if selection.het_offset is not None:
        components = (
            state.jobs[member] for member in state.by_het.get(selection.job_id, (selection.job_id,)) if member in state.jobs
        )
        return [Selected(job) for job in components if job.het_job_id and job.het_job_offset == selection.het_offset]
    members = state.by_array.get(selection.job_id) or state.by_het.get(selection.job_id)
    if members:
        return [Selected(state.jobs[member]) for member in sorted(members)]
    job = state.jobs.get(selection.job_id)
    return [Selected(job)] if job is not None else []


def _elements(state: State, selection: JobSelection) -> Iterable[Selected]:
    """Own records of the elements named, and those still in the array's record."""
    rest = state.jobs.get(selection.job_id)
    limit = state.site.maximum_array_size
    waiting: list[int] = []
    for part in selection.array_tasks:
        for task in part:
            if task >= limit:
                break
            own = state.elements.get((selection.job_id, task))
            if own is not None:
                yield Selected(state.jobs[own])
            elif rest is not None and arrays.contains(rest.array_tasks, task):
                waiting.append(task)
    if rest is not None and waiting:
        whole = len(set(waiting)) == arrays.task_count(rest.array_tasks)
        yield Selected(rest, None if whole else tuple(dict.fromkeys(waiting)))


def apart(turn: Turn, selected: Selected) -> list[Job]:
    """The jobs meant, those still in an array's record made jobs of their own."""
    if selected.tasks is None:
        return [turn.state.jobs[selected.job.job_id]]
    return [arrays.split(turn, turn.state.jobs[selected.job.job_id], task) for task in selected.tasks]
