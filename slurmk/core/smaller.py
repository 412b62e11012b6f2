"""Smaller requests that a person could make in a waiting job's place, for the planner to try.

Each is made as ``scontrol update`` or a new submission would make it, so that what the planner finds for it is what it would
get. Nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from grammar.errors import GrammarError
from grammar.tres import parse_gres
from slurmk.core import reservation_use
from slurmk.core.demands import Refusal
from slurmk.core.events import Caller, Submission
from slurmk.core.priority import Directory
from slurmk.core.state import State
from slurmk.core.submission import charged_to, check_access
from slurmk.model.job import Job, JobRequest
from slurmk.model.node import Partition
from slurmk.model.states import NO_VALUE
from slurmk.planner.build import pending_row
from slurmk.planner.snapshot import PendingRow
from slurmk.planner.why import Try

PARTITIONS = 8
"""Other partitions that are tried."""

SMALLER = (2, 4, 8)
"""What numbers are divided by; then 1 is tried."""


@dataclass(frozen=True, slots=True)
class Change:
    """A changed request; ``text`` is what a person writes for it."""

    kind: str
    text: str
    changes: dict[str, Any]


def tries(state: State, directory: Directory, job: Job, row: PendingRow) -> tuple[Try, ...]:
    """Smaller requests for a pending job whose record is ``row``, milder ones of a kind first."""
    found = []
    for change in changes(job.request):
        changed = replace(job, request=replace(job.request, **change.changes))
        made = _in_place_of(state, row, changed)
        if changed.request.reservation != job.request.reservation:
            usable, optional = reservation_use.usable(state, directory, changed)
            made = replace(made, reservations=usable, reservation_optional=optional)
        found.append(Try(change.kind, change.text, made))
    return (*found, *_elsewhere(state, directory, job, row))


def changes(request: JobRequest) -> list[Change]:
    """What could be less of a request, whatever the partitions are."""
    return [change for kind in _KINDS for change in kind(request)]


def _in_place_of(state: State, row: PendingRow, changed: Job) -> PendingRow:
    """The record of the changed job, with everything that the change leaves as it is."""
    return replace(
        pending_row(changed, state.partitions, state.site),
        count=row.count,
        startable=row.startable,
        array=row.array,
        array_room=row.array_room,
        held_reason=row.held_reason,
        component_of=row.component_of,
        reservations=row.reservations,
        reservation_optional=row.reservation_optional,
        planned=row.planned,
        planned_nodes=row.planned_nodes,
        planned_tasks=row.planned_tasks,
        promised=row.promised,
    )


def _elsewhere(state: State, directory: Directory, job: Job, row: PendingRow) -> Iterator[Try]:
    """The job in another partition that takes it, with as much time as that gives."""
    others = [each for each in state.partitions.values() if each.name not in job.partitions]
    for partition in [each for each in others if _takes(state, directory, job, each)][:PARTITIONS]:
        text, limit = f"--partition={partition.name}", job.time_limit
        if partition.maximum_time < NO_VALUE and limit > partition.maximum_time:
            limit = partition.maximum_time
            text += f" --time={limit}"
        changed = replace(job, partitions=(partition.name,), time_limit=limit)
        yield Try(text, text, _in_place_of(state, row, changed))


def _takes(state: State, directory: Directory, job: Job, partition: Partition) -> bool:
    owner = Caller(job.credentials.user_id, job.credentials.user_name, False)
    submission = Submission(job.request, job.credentials, job.batch, job.command, job.submit_line, job.submit_host, 0)
    request = replace(job.request, account=job.account or None, qos=job.qos)
    try:
        check_access(state, directory, partition, submission, owner)
        charged_to(directory, (partition,), request, job.credentials.user_name)
    except Refusal:
        return False
    return partition.state == "UP" and not partition.hidden


# ------------------------------------------------------------------------------------------------- kinds of changes


def _less(number: int) -> list[int]:
    """Smaller numbers than this one, the largest first."""
    return sorted({max(1, number // part) for part in SMALLER} | {1}, reverse=True) if number > 1 else []


def _fewer_nodes(request: JobRequest) -> Iterator[Change]:
    nodes = request.minimum_nodes or 1
    if request.required_nodes or (request.nodes is None and request.tasks):
        return
    for fewer in _less(nodes):
        changed: dict[str, Any] = {"minimum_nodes": fewer}
        if request.maximum_nodes is not None:
            changed["maximum_nodes"] = request.maximum_nodes if request.maximum_nodes > nodes else fewer
        most = changed.get("maximum_nodes", fewer)
        changed["nodes"] = f"{fewer}" if most == fewer else f"{fewer}-{most}"
        text = f"--nodes={changed['nodes']}"
        if request.tasks:
            changed["tasks"] = max(1, -(-request.tasks * fewer // nodes))
            text += f" --ntasks={changed['tasks']}"
        yield Change("nodes", text, changed)


def _fewer_tasks(request: JobRequest) -> Iterator[Change]:
    if not request.tasks or ((request.minimum_nodes or 1) > 1 and request.nodes is not None):
        return
    for fewer in _less(request.tasks):
        changed: dict[str, Any] = {"tasks": fewer}
        if request.maximum_nodes == request.tasks:
            changed["maximum_nodes"] = fewer
        if request.minimum_nodes is not None:
            changed["minimum_nodes"] = min(request.minimum_nodes, fewer)
        yield Change("tasks", f"--ntasks={fewer}", changed)


def _fewer_tasks_per_node(request: JobRequest) -> Iterator[Change]:
    for fewer in _less(request.tasks_per_node or 0) if not request.tasks else ():
        yield Change("tasks_per_node", f"--ntasks-per-node={fewer}", {"tasks_per_node": fewer})


def _fewer_cpus(request: JobRequest) -> Iterator[Change]:
    for fewer in _less(request.cpus_per_task or 0):
        yield Change("cpus_per_task", f"--cpus-per-task={fewer}", {"cpus_per_task": fewer})


def _memory(field: str, option: str) -> Callable[[JobRequest], Iterator[Change]]:
    """Less memory (MiB); in place of all of a node's, what is usual."""

    def kind(request: JobRequest) -> Iterator[Change]:
        amount = getattr(request, field)
        if amount == 0:
            yield Change(field, f"without {option}=0", {field: None})
        for part in SMALLER:
            if amount and amount // part >= 1:
                yield Change(field, f"{option}={amount // part}M", {field: amount // part})

    return kind


def _gres(field: str, option: str) -> Callable[[JobRequest], Iterator[Change]]:
    """Fewer of each GRES, and of any type."""

    def kind(request: JobRequest) -> Iterator[Change]:
        try:
            items = list(parse_gres(getattr(request, field) or ""))
        except GrammarError:
            return
        if not items:
            return
        if any(":" in item.label for item in items):
            plain = [(item.label.partition(":")[0], item.count) for item in items]
            yield Change(f"{field} type", f"{option}={_listed(plain)}", {field: _tres(plain)})
        for part in SMALLER:
            fewer = [(item.label, max(1, item.count // part)) for item in items]
            if fewer != [(item.label, item.count) for item in items]:
                yield Change(field, f"{option}={_listed(fewer)}", {field: _tres(fewer)})

    return kind


def _listed(items: list[tuple[str, int]]) -> str:
    return ",".join(f"{name}:{count}" for name, count in items)


def _tres(items: list[tuple[str, int]]) -> str:
    return ",".join(f"gres/{name}:{count}" for name, count in items)


def _without(field: str, option: str, otherwise: object = None) -> Callable[[JobRequest], Iterator[Change]]:
    """The request without an option."""

    def kind(request: JobRequest) -> Iterator[Change]:
        if getattr(request, field):
            yield Change(f"without {option}", f"without {option}", {field: otherwise})

    return kind


def _shared(request: JobRequest) -> Iterator[Change]:
    option = {"none": "--exclusive", "user": "--exclusive=user", "mcs": "--exclusive=mcs"}.get(request.shared or "")
    if option:
        yield Change("exclusive", f"without {option}", {"shared": None})


def _all_threads(request: JobRequest) -> Iterator[Change]:
    option = f"--hint={request.hint}" if request.hint else "--threads-per-core"
    return _without("threads_per_core", option)(request)


_KINDS: tuple[Callable[[JobRequest], Iterator[Change]], ...] = (
    _fewer_nodes,
    _fewer_tasks,
    _fewer_cpus,
    _fewer_tasks_per_node,
    _memory("memory_per_node", "--mem"),
    _memory("memory_per_cpu", "--mem-per-cpu"),
    _gres("tres_per_node", "--gres"),
    _gres("tres_per_job", "--gpus"),
    _gres("tres_per_task", "--gpus-per-task"),
    _shared,
    _without("constraints", "--constraint"),
    _without("required_nodes", "--nodelist"),
    _without("excluded_nodes", "--exclude"),
    _without("contiguous", "--contiguous", False),
    _without("required_switches", "--switches"),
    _without("segment_size", "--segment"),
    _without("licenses", "--licenses"),
    _without("reservation", "--reservation"),
    _all_threads,
)
"""All kinds of smaller requests, in the order that they are tried."""
