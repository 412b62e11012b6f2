"""What sacct asks of the store."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from accounting.rows import JobRow, StepRow


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job's record with its steps, in the order in which they were numbered."""

    job: JobRow
    steps: tuple[StepRow, ...] = ()


@dataclass(frozen=True, slots=True)
class JobSelection:
    """A job as sacct's ``-j`` names it: ``12``, ``12_3``, ``12+1``, with or without a step."""

    job_id: int
    array_task_id: int | None = None
    het_offset: int | None = None
    step_id: int | None = None


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Which records: those that fit every field that is not empty."""

    selections: tuple[JobSelection, ...] = ()


def find_jobs(connection: Connection, query: JobQuery) -> list[JobRecord]:
    """The records that fit ``query``."""
    return []
