"""What sacct asks of the store, answered in its order: by time of submission, then array and element, then id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, false, func, or_, select
from sqlmodel import SQLModel

from accounting.rows import JOB_COLUMNS, REQUEUED, STEP_COLUMNS, JobRow, StepRow, text
from accounting.tables import JobTable, StepTable
from grammar.errors import GrammarError
from grammar.hostlist import expand
from slurmk.model.states import JobFlag, JobState


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job's record with its steps: interactive, batch and extern step first, the others by number."""

    job: JobRow
    steps: tuple[StepRow, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """A job as ``sacct -j`` names it: ``12`` (also all elements of array 12, all components of het job 12), ``12_3``,
    ``12+1``, or one record by its SLUID; with a step, that step alone is meant."""

    job_id: int
    array_task_id: int | None = None
    het_offset: int | None = None
    step_id: int | None = None
    sluid: str = ""


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Which records: those that fit every field that is not empty or None.

    ``start`` and ``end`` (Unix seconds) are a window. Without ``states`` it selects jobs that were in the queue or running in
    it: eligible before its end (with ``selections``: submitted) and not ended before its start. With states it selects
    jobs that were in one of them at some time in it, ended in it for those that are an end. ``states`` are numbers, a base
    state's or a flag's (REQUEUED). ``duplicates`` gives all records of a job id, else the latest that fits.
    """

    selections: tuple[RecordSelection, ...] = ()
    start: int = 0
    end: int | None = None
    states: tuple[int, ...] = ()
    user_ids: tuple[int, ...] = ()
    user_names: tuple[str, ...] = ()
    group_ids: tuple[int, ...] = ()
    accounts: tuple[str, ...] = ()
    associations: tuple[int, ...] = ()
    partitions: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    wckeys: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    nodes: frozenset[str] = frozenset()
    node_counts: tuple[int, int] | None = None
    cpu_counts: tuple[int, int] | None = None
    time_limits: tuple[int, int] | None = None
    whole_het_jobs: bool | None = None  # None: of those whose leader is selected
    duplicates: bool = False
    with_steps: bool = True


def _table(model: type[SQLModel]) -> Table:
    return SQLModel.metadata.tables[str(model.__tablename__)]


_JOB = _table(JobTable).c
_STEP = _table(StepTable).c
_JOB_SELECT = select(*(_JOB[name] for name in JOB_COLUMNS))
_STEP_SELECT = select(*(_STEP[name] for name in STEP_COLUMNS))

_CHUNK = 500
"""Keys in one IN list."""


def find_jobs(connection: Connection, query: JobQuery) -> list[JobRecord]:
    """The records that fit ``query``."""
    statement = _JOB_SELECT.where(*_conditions(query)).order_by(
        _JOB.time_submit, _JOB.array_job_id, func.coalesce(_JOB.array_task_id, 1 << 40), _JOB.job_id, _JOB.db_index
    )
    jobs = [JobRow(*row) for row in connection.execute(statement).all()]
    if query.nodes:
        jobs = [job for job in jobs if _on(query, job)]
    if not query.duplicates:
        jobs = _latest(jobs)
    steps = _steps(connection, [job.db_index for job in jobs]) if query.with_steps else {}
    return [JobRecord(job, tuple(step for step in steps.get(job.db_index, ()) if _on(query, step))) for job in jobs]


def _on(query: JobQuery, row: JobRow | StepRow) -> bool:
    """Whether a job or step had one of the nodes asked for."""
    return not query.nodes or not query.nodes.isdisjoint(_names(row.node_list))


def _latest(jobs: Sequence[JobRow]) -> list[JobRow]:
    """The last record of each job id. A resized job's records are of one run and all stay."""
    last: dict[int, int] = {}
    for job in jobs:
        last[job.job_id] = max(job.db_index, last.get(job.job_id, 0))
    return [job for job in jobs if last[job.job_id] == job.db_index or job.flags & JobFlag.RESIZING]


def _steps(connection: Connection, db_indexes: Sequence[int]) -> dict[int, list[StepRow]]:
    found: dict[int, list[StepRow]] = {}
    for start in range(0, len(db_indexes), _CHUNK):
        chunk = db_indexes[start : start + _CHUNK]
        statement = _STEP_SELECT.where(_STEP.db_index.in_(chunk)).order_by(_STEP.db_index, _STEP.step_id)
        for row in connection.execute(statement).all():
            found.setdefault(row[0], []).append(StepRow(*row))
    for steps in found.values():
        steps.sort(key=lambda step: step.step_id - (1 << 32) if step.step_id >= 1 << 31 else step.step_id)
    return found


@lru_cache(maxsize=4096)
def _names(node_list: str) -> frozenset[str]:
    try:
        return frozenset(expand(node_list)) if node_list else frozenset()
    except GrammarError:
        return frozenset()


# ------------------------------------------------------------------------------------------------ conditions


def _conditions(query: JobQuery) -> list[ColumnElement[bool]]:
    conditions = [_window(query)]
    if query.selections:
        conditions.append(or_(*_selected(query)))
    if query.user_ids or query.user_names:
        conditions.append(or_(_among(_JOB.user_id, query.user_ids), _among(_JOB.user_name, query.user_names)))
    lists: tuple[tuple[ColumnElement[Any], Sequence[Any]], ...] = (
        (_JOB.group_id, query.group_ids),
        (_JOB.account, query.accounts),
        (_JOB.association_id, query.associations),
        (_JOB.qos, query.qos),
        (_JOB.job_name, query.names),
        (_JOB.wckey, query.wckeys),
        (_JOB.reason, query.reasons),
        (_JOB.constraints, query.constraints),
    )
    conditions += [_among(column, values) for column, values in lists if values]
    if query.partitions:
        conditions.append(or_(*(_in_list(_JOB.partition, name) for name in query.partitions)))
    ranges = (
        (_JOB.nodes_allocated, query.node_counts),
        (_JOB.cpus_allocated, query.cpu_counts),
        (_JOB.time_limit, query.time_limits),
    )
    conditions += [column.between(*bounds) for column, bounds in ranges if bounds]
    if query.nodes:
        conditions.append(_JOB.node_list != "")
    return conditions


def _among(column: ColumnElement[Any], values: Iterable[Any]) -> ColumnElement[bool]:
    """The column is one of ``values``; texts are compared as they are kept."""
    kept = [text(value) if isinstance(value, str) else value for value in values]
    return column.in_(kept) if kept else false()


def _in_list(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """``name`` is one of the comma-separated words."""
    padded = "," + column + ","
    return padded.contains(f",{text(name)},", autoescape=True)


def _selected(query: JobQuery) -> Iterable[ColumnElement[bool]]:
    sluids = [one.sluid for one in query.selections if one.sluid]
    if sluids:
        yield _JOB.sluid.in_(sluids)
    by_number = [one for one in query.selections if not one.sluid]
    plain = [one.job_id for one in by_number if one.array_task_id is None and one.het_offset is None]
    if plain:
        yield _JOB.job_id.in_(plain)
        yield _JOB.array_job_id.in_(plain)
        if query.whole_het_jobs is not False:
            yield _JOB.het_job_id.in_(plain)
        if query.whole_het_jobs:
            yield _JOB.het_job_id.in_(select(_JOB.het_job_id).where(_JOB.job_id.in_(plain), _JOB.het_job_id != 0))
    for one in by_number:
        if one.array_task_id is not None:
            yield and_(_JOB.array_job_id == one.job_id, _JOB.array_task_id == one.array_task_id)
        elif one.het_offset is not None:
            yield and_(_JOB.het_job_id == one.job_id, _JOB.het_job_offset == one.het_offset)


def _window(query: JobQuery) -> ColumnElement[bool]:
    end = (1 << 62) if query.end is None else max(query.end, query.start + 1)
    if query.states:
        return or_(*(_in_state(state, query.start, end) for state in query.states))
    there = or_(_JOB.time_end == 0, _JOB.time_end >= query.start)
    if query.selections:
        return and_(_JOB.time_submit < end, there)
    return and_(_JOB.time_eligible > 0, _JOB.time_eligible < end, there)


def _in_state(state: int, start: int, end: int) -> ColumnElement[bool]:
    if state == JobState.PENDING:
        left = or_(
            _JOB.time_start > start,
            and_(_JOB.time_start == 0, or_(_JOB.time_end == 0, _JOB.time_end > start)),
        )
        return and_(_JOB.time_eligible > 0, _JOB.time_eligible < end, left)
    if state == JobState.RUNNING:
        return and_(
            _JOB.time_start > 0, _JOB.time_start < end, or_(and_(_JOB.time_end == 0, _JOB.state == 1), _JOB.time_end > start)
        )
    if state == JobState.SUSPENDED:
        return and_(_JOB.state == state, _JOB.time_start < end)
    ended = _JOB.time_end.between(max(start, 1), end)
    if state > JobState.OUT_OF_MEMORY:
        return and_(_JOB.flags.bitwise_and(state) != 0, ended)
    return and_(_JOB.state == state, _JOB.flags.bitwise_and(REQUEUED) == 0, ended)
