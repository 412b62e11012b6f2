"""What runs of a job on its nodes, as its stepds tell when they are asked (sstat, scontrol listpids and pidinfo).

Where stepd runs as the job's user, what it says is that user's word: everything is brought within bounds here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slurmk.commands.call import Controller
from slurmk.model.job import BATCH_STEP, Job, Spread, Usage

MOST_TASKS = 1 << 16
LARGEST = 1 << 53
QUESTION: Mapping[str, Any] = {"what": "processes"}


@dataclass(frozen=True, slots=True)
class Task:
    """A task and what runs below it. Sizes in ``measures`` are bytes, CPU times microseconds."""

    node: str
    step_id: int
    rank: int
    local: int
    process: int
    below: tuple[int, ...]
    measures: Mapping[str, int]


async def tasks_of(controller: Controller, job: Job, nodes: Sequence[str] | None = None) -> tuple[list[Task], list[str]]:
    """The tasks of a job that run now on these of its nodes (default: all), and the nodes that did not answer."""
    if job.allocation is None:
        return [], []
    asked = [name for name in job.allocation.nodes if nodes is None or name in nodes]
    answers = await controller.ask(job, asked, QUESTION)
    found = [task for node in asked if node in answers for task in _tasks(node, answers[node])]
    return sorted(found, key=lambda task: (task.step_id, task.rank)), [node for node in asked if node not in answers]


def _tasks(node: str, answer: Mapping[str, Any]) -> list[Task]:
    rows = answer.get("tasks")
    if not isinstance(rows, list):
        return []
    return [task for row in rows[:MOST_TASKS] if isinstance(row, dict) and (task := _task(node, row)) is not None]


def _task(node: str, row: Mapping[str, Any]) -> Task | None:
    try:
        step = row["step"]
        below = row.get("below")
        measures = row.get("measures")
        return Task(
            node=node,
            step_id=BATCH_STEP if step == "batch" else _number(step),
            rank=_number(row["rank"]),
            local=_number(row["local"]),
            process=_number(row["pid"]),
            below=tuple(map(_number, below[:MOST_TASKS])) if isinstance(below, list) else (),
            measures={str(name): _number(value) for name, value in measures.items()} if isinstance(measures, dict) else {},
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _number(value: Any) -> int:
    return max(0, min(int(value), LARGEST))


def usage_of(tasks: Iterable[Task]) -> Usage:
    """What tasks use together, as accounting keeps it of a step."""
    found = list(tasks)
    if not found:
        return Usage()

    def spread(measure: str) -> Spread:
        def value(task: Task) -> int:
            return measured(task, measure)

        most, least = max(found, key=value), min(found, key=value)
        return Spread(sum(map(value, found)), value(most), most.node, most.rank, value(least), least.node, least.rank)

    return Usage(
        tasks=len(found),
        user_cpu=sum(measured(task, "user_cpu") for task in found),
        system_cpu=sum(measured(task, "system_cpu") for task in found),
        cpu=spread("cpu"),
        rss=spread("rss"),
        vsize=spread("vsize"),
        disk_read=spread("disk_read"),
        disk_write=spread("disk_write"),
        pages=spread("pages"),
    )


def measured(task: Task, measure: str) -> int:
    """One measure of a task; ``cpu`` is user's and system's together, in microseconds."""
    if measure == "cpu":
        return task.measures.get("user_cpu", 0) + task.measures.get("system_cpu", 0)
    return task.measures.get(measure, 0)
