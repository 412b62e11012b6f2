"""Job arrays: one record until an element starts or is changed, then that element gets a record of its own.

The element that is last in the record keeps the array's own job id, as in Slurm, so an array of n elements uses n ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from grammar.sluid import format_sluid
from slurmk.core.effects import SaveCounter
from slurmk.core.state import Turn
from slurmk.model.job import Job


def task_count(tasks: Iterable[range]) -> int:
    """How many elements the ranges hold."""
    return sum(map(len, tasks))


def first_task(tasks: tuple[range, ...]) -> int:
    """The lowest element that still waits: the next to start."""
    return min(part[0] for part in tasks)


def contains(tasks: Iterable[range], task: int) -> bool:
    return any(task in part for part in tasks)


def without(tasks: tuple[range, ...], task: int) -> tuple[range, ...]:
    """The ranges less one element."""
    rest: list[range] = []
    for part in tasks:
        if task not in part:
            rest.append(part)
            continue
        position = part.index(task)
        rest += [piece for piece in (part[:position], part[position + 1 :]) if piece]
    return tuple(rest)


def new_job_id(turn: Turn) -> int:
    """The next job id that is free; ids start again at the first after the largest."""
    state = turn.state
    while True:
        job_id = state.next_job_id
        state.next_job_id = job_id + 1 if job_id < state.site.maximum_job_id else max(1, state.site.first_job_id)
        if job_id not in state.jobs and job_id not in state.by_array:
            return job_id


def split(turn: Turn, record: Job, task: int) -> Job:
    """Make one waiting element a job of its own, and return it. Both are saved.

    ``record`` is the array's record as it is now, or an element that already is its own job, which is returned as it is.
    """
    if not record.is_array:
        return record
    rest = without(record.array_tasks, task)
    element = replace(record, array_task_id=task, array_tasks=())
    if rest:
        element = replace(element, job_id=new_job_id(turn), sluid=new_sluid(turn))
        turn.save(replace(record, array_tasks=rest))
        turn.keep(SaveCounter(turn.state.next_job_id))
        targets = turn.state.waiting_on.get(record.job_id)
        if targets:
            turn.state.wait_for(element.job_id, targets)
    return turn.save(element)


def new_sluid(turn: Turn) -> str:
    """A job's Slurm-wide unique id: a number made of 12 bits for the cluster, 42 bits of milliseconds since 1970 and 10 bits
    that count within one millisecond."""
    state = turn.state
    stamp = max(int(turn.time * 1000) << 10, state.last_sluid + 1)
    state.last_sluid = stamp
    return format_sluid((cluster_number(state.site.cluster_name) << 52) | (stamp & ((1 << 52) - 1)))


def cluster_number(name: str) -> int:
    """A number of 12 bits that is always the same for a cluster's name."""
    number = 0
    for byte in name.encode():
        number = (number * 131 + byte) & 0xFFF
    return number
