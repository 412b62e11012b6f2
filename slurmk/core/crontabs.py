"""The tables of scrontab: which user has which text, and which jobs stand for its entries.

Such a job has its times in ``request.crontab``. Whenever a run of it is over, it waits for the next (``endings.end``); it is
over for good when it is cancelled, and its lines are then shown as comments. So the tables need no change when jobs do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from slurmk.core.effects import Accepted
from slurmk.core.endings import end, finish_pending
from slurmk.core.events import EndRecurrence
from slurmk.core.state import Phase, Turn, phase_of
from slurmk.model.job import Job
from slurmk.model.states import JobState, Reason

DISABLED = "#DISABLED: "


@dataclass(frozen=True, slots=True)
class Entry:
    """A job of a table, and its first and last line, counted from 0."""

    job_id: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Table:
    """One user's table as it was given."""

    text: str
    entries: tuple[Entry, ...] = ()


@dataclass(slots=True)
class Crontabs:
    """All tables by user id."""

    tables: dict[int, Table] = field(default_factory=dict)

    def listing(self, user_id: int, jobs: Mapping[int, Job]) -> str | None:
        """The user's table, with the lines of jobs that are no more as comments; None where there is none."""
        table = self.tables.get(user_id)
        if table is None:
            return None
        gone = {number for entry in table.entries if not recurs(jobs.get(entry.job_id)) for number in _lines(entry)}
        lines = table.text.splitlines(keepends=True)
        return "".join(f"{DISABLED}{line}" if number in gone else line for number, line in enumerate(lines))

    def job_ids(self) -> set[int]:
        """The jobs of all tables."""
        return {entry.job_id for table in self.tables.values() for entry in table.entries}

    def saved(self) -> list[dict[str, Any]]:
        """All tables as plain data."""
        return [
            {"user": user, "text": table.text, "entries": [[entry.job_id, entry.first, entry.last] for entry in table.entries]}
            for user, table in self.tables.items()
        ]


def restored(saved: Iterable[Mapping[str, Any]]) -> Crontabs:
    """The inverse of ``saved``. Raises KeyError, TypeError or ValueError for what it did not write."""
    tables = {}
    for row in saved:
        entries = tuple(Entry(*map(int, entry)) for entry in row["entries"])
        tables[int(row["user"])] = Table(str(row["text"]), entries)
    return Crontabs(tables)


def recurs(job: Job | None) -> bool:
    """Whether the job will run again, and again."""
    return job is not None and job.request.crontab is not None and not job.state.finished


def _lines(entry: Entry) -> range:
    return range(entry.first, entry.last + 1)


def end_recurrence(turn: Turn, event: EndRecurrence) -> None:
    """These jobs left their table: what waits is cancelled, what runs does so for the last time."""
    done = []
    for job_id in event.job_ids:
        job = turn.state.jobs.get(job_id)
        if job is None or not recurs(job):
            continue
        done.append(job_id)
        phase = phase_of(job)
        if phase is Phase.PENDING:
            finish_pending(turn, job, JobState.CANCELLED, None, event.caller.user_id)
        elif phase is Phase.COMPLETING:
            released = frozenset(turn.state.released.get(job_id, ()))
            end(turn, job, JobState.CANCELLED, Reason.NONE, user_id=event.caller.user_id, gone=released)
        else:
            turn.save(replace(job, request=replace(job.request, crontab=None)))
    turn.emit(Accepted(tuple(done)))
