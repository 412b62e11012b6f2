"""What ``slurmk why`` says, as sentences for a person and as a document for a program. Both are made of the same facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grammar.hostlist import compress
from grammar.times import format_elapsed, format_time
from slurmk.commands.job_text import exit_code_text, limit_text, raw_array_id, reason, state_name
from slurmk.core import arrays
from slurmk.core.events import Caller
from slurmk.core.machine import Machine
from slurmk.model.job import Job
from slurmk.model.quotas import amount_text
from slurmk.model.states import INFINITE, JobState, Reason
from slurmk.planner.why import Counted, Explanation, Room

FEW = 5
"""Jobs before it, running jobs and smaller requests that are named; of the rest their number is told."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A job, and what the planner knows of why it waits (None: it does not). ``element`` is the waiting element of an array
    that was asked for."""

    job: Job
    explanation: Explanation | None
    element: int | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """What the texts are made with, and who reads them: of others' jobs only as much is told as PrivateData lets."""

    machine: Machine
    caller: Caller
    now: float

    def may_see(self, job: Job) -> bool:
        """Whether the reader may know of a job."""
        private = "jobs" in self.machine.site.private_data and not self.caller.operator
        return not private or job.credentials.user_id == self.caller.user_id

    def visible(self, job_id: int) -> Job | None:
        job = self.machine.jobs.get(job_id)
        return job if job is not None and self.may_see(job) else None

    def when(self, moment: int) -> str:
        """``now``, or the time and how far ahead it is."""
        ahead = moment - int(self.now)
        if ahead <= 0:
            return "now"
        return f"{format_time(moment)} (in {format_elapsed(ahead)})"


def lines(reader: Reader, answer: Answer) -> Iterator[str]:
    """The sentences about one job."""
    job = answer.job
    shown = reason(job) if job.pending or job.reason is not Reason.NONE else ""
    yield f"Job {_name(answer)} ({job.name}) of {job.credentials.user_name} is {state_name(job)}{shown and f', {shown}'}."
    if answer.explanation is None:
        yield from _not_waiting(reader, job)
        return
    known = answer.explanation
    yield from _holds(reader, job, known)
    for room in known.rooms:
        yield from _lacks(reader, job, known, room)
    yield from _before(reader, known)
    yield from _planned(reader, answer, known)
    yield from _smaller(reader, known)
    if not known.complete:
        yield "The queue is so long that there was no time to plan it all for this answer; the start is that of the last plan."


def _name(answer: Answer) -> str:
    if answer.element is not None:
        return f"{answer.job.array_job_id}_{answer.element}"
    return raw_array_id(answer.job)


# ------------------------------------------------------------------------------------------------- jobs that do not wait


def _not_waiting(reader: Reader, job: Job) -> Iterator[str]:
    if job.state.finished:
        yield f"It is over since {format_time(job.end_time)}, with exit code {exit_code_text(job.exit_code)}."
        return
    nodes = compress(job.allocation.nodes) if job.allocation else ""
    if job.pending:
        yield f"It is to run again, but its processes on {nodes} have not ended yet."
        return
    yield f"It runs on {nodes} since {format_time(job.start_time)}." if job.state is JobState.RUNNING else f"It holds {nodes}."
    if job.parked and (other := reader.visible(job.preempted_by)) is not None:
        yield f"It is suspended for job {raw_array_id(other)}, and goes on when its CPUs are free again."
    if job.waits_for_turn and job.state is JobState.SUSPENDED:
        yield "It shares its CPUs with others and stands still until it is its turn again."
    if job.end_time and job.state is JobState.RUNNING:
        yield f"Its time limit of {limit_text(job.time_limit)} ends it at {format_time(job.end_time)}."


# ------------------------------------------------------------------------------------------------- what holds it

Holding = Callable[[Reader, Job, Explanation], str]


def _dependency(reader: Reader, job: Job, known: Explanation) -> str:
    return f"It waits for other jobs: {reader.machine.dependency_text(job)}."


def _never_satisfied(reader: Reader, job: Job, known: Explanation) -> str:
    return f"What it depends on can no longer happen, so it never starts: {reader.machine.dependency_text(job)}."


def _begin(reader: Reader, job: Job, known: Explanation) -> str:
    return f"It shall not begin before {format_time(job.request.begin_time or job.eligible_time)}."


def _array_limit(reader: Reader, job: Job, known: Explanation) -> str:
    return f"No more than {job.array_maximum_running} of the array's elements may run at once, and so many do."


def _of_partition(text: str) -> Holding:
    def sentence(reader: Reader, job: Job, known: Explanation) -> str:
        name = known.outlook.partition or ",".join(job.partitions)
        partition = reader.machine.partitions.get(name)
        return text.format(
            partition=name,
            asked=limit_text(job.time_limit),
            nodes=known.row.demand.minimum_nodes,
            limit="" if partition is None else limit_text(partition.maximum_time),
            least=0 if partition is None else partition.minimum_nodes,
            most=0 if partition is None else min(partition.maximum_nodes, len(partition.nodes)),
        )

    return sentence


def _reservation(reader: Reader, job: Job, known: Explanation) -> str:
    kept = [each for name in known.row.reservations if (each := reader.machine.reservations.get(name)) is not None]
    opens = min((each.start_time for each in kept), default=0)
    names = ",".join(each.name for each in kept) or job.reservation
    return f"It waits for its reservation {names}" + (f", which begins at {format_time(opens)}." if opens > reader.now else ".")


def _deadline(reader: Reader, job: Job, known: Explanation) -> str:
    return f"Nothing is free early enough for it to end by its deadline, {format_time(job.request.deadline or 0)}."


def _constraint(reader: Reader, job: Job, known: Explanation) -> str:
    return f"No node that it may use satisfies its constraint, {job.request.constraints}."


def _plainly(text: str) -> Holding:
    return lambda reader, job, known: text


_HOLDS: Mapping[Reason, Holding] = {
    Reason.JOB_HELD_USER: _plainly("Its user holds it; `scontrol release` lets it go."),
    Reason.JOB_HELD_ADMIN: _plainly("An administrator holds it, and must release it."),
    Reason.JOB_HOLD_MAX_REQUEUE: _plainly("It is held because it was put back into the queue too often."),
    Reason.JOB_LAUNCH_FAILURE: _plainly("It could not be started; this is tried again after a pause."),
    Reason.DEPENDENCY: _dependency,
    Reason.DEPENDENCY_NEVER_SATISFIED: _never_satisfied,
    Reason.BEGIN_TIME: _begin,
    Reason.JOB_ARRAY_TASK_LIMIT: _array_limit,
    Reason.PARTITION_DOWN: _of_partition(
        "Partition {partition} is down: nothing starts there until an administrator opens it."
    ),
    Reason.PARTITION_INACTIVE: _of_partition("Partition {partition} is closed: nothing starts there until it is opened."),
    Reason.PARTITION_TIME_LIMIT: _of_partition(
        "It asks for {asked}, but jobs of partition {partition} may take no longer than {limit}."
    ),
    Reason.PARTITION_NODE_LIMIT: _of_partition(
        "It asks for {nodes} nodes, but jobs of partition {partition} have from {least} to {most}."
    ),
    Reason.MAX_MEM_PER_LIMIT: _plainly(
        "It asks for more memory on a node than jobs of the partition may have (MaxMemPerNode)."
    ),
    Reason.ACCOUNT_NOT_ALLOWED: _plainly("Its account may not use the partition."),
    Reason.INVALID_ACCOUNT: _plainly("Its account does not exist any more, or its user may not charge it."),
    Reason.INVALID_QOS: _plainly("Its QOS does not exist any more, or its user may not use it."),
    Reason.QOS_NOT_ALLOWED: _plainly("Its QOS may not use the partition."),
    Reason.RESERVATION: _reservation,
    Reason.RESERVATION_DELETED: _plainly("The reservation that it asks for was deleted."),
    Reason.RESERVATION_INVALID: _plainly("The reservation that it asks for does not exist, or does not let it in."),
    Reason.DEADLINE: _deadline,
    Reason.BAD_CONSTRAINTS: _constraint,
    Reason.CLEANING: _plainly("Its processes of an earlier run have not ended yet."),
    Reason.NODE_DOWN: _plainly("A node that it needs is down."),
    Reason.SCHED_DEFER: _plainly("It is not looked at one by one, only with the whole queue (SchedulerParameters=defer)."),
}
"""What a reason means, where it is not the nodes that are lacking."""

_NODES = frozenset(
    {Reason.NONE, Reason.PRIORITY, Reason.RESOURCES, Reason.REQ_NODE_NOT_AVAIL, Reason.PARTITION_CONFIG, Reason.LICENSES}
)
"""Reasons that the lines about nodes and licences explain."""


def _holds(reader: Reader, job: Job, known: Explanation) -> Iterator[str]:
    """What keeps it besides what is lacking."""
    told = known.outlook.reason
    if job.reason in _HOLDS and job.priority == 0:
        told = job.reason
    if told in _HOLDS:
        yield _HOLDS[told](reader, job, known)
    elif told not in _NODES:
        yield f"A limit holds it: {known.outlook.description or told}."
    if job.request.deadline and told is not Reason.DEADLINE:
        yield f"It must be able to end by {format_time(job.request.deadline)}."


# ------------------------------------------------------------------------------------------------- what it lacks

_ASKED: Mapping[str, str] = {
    "partition": "are in partition {partition}",
    "constraint": "have the features {constraint}",
    "nodelist": "are named by it",
    "exclude": "are left by what it excludes",
    "tmp": "have the temporary disk that it asks for",
    "sockets": "have the sockets that it asks for",
    "threads": "have the threads for each core that it asks for",
    "reservation": "are in reservation {reservation}",
    "cpu": "have the {cpu} that it asks for on each",
    "mem": "have the memory that it asks for on each",
    "layout": "have all of that in the layout that it asks for",
    "available": "are up and take jobs",
}
"""How a node that is left after each thing that was asked for is called."""

_SHORT: Mapping[str, str] = {
    "cpu": "{have} too few free CPUs",
    "mem": "{have} too little free memory",
    "whole node": "{are} in use, while it needs whole nodes",
    "exclusive": "{are} used by jobs that share with nobody",
    "reserved": "{are} reserved for others",
    "sharing": "{are} used by jobs that it may not share with",
}
"""What is the matter with nodes that cannot take the job now."""


def _lacks(reader: Reader, job: Job, known: Explanation, room: Room) -> Iterator[str]:
    where = f"partition {room.partition}" + (f" and reservation {room.reservation}" if room.reservation else "")
    never = next((step for step in room.suitable if step[1] < max(room.wanted_nodes, 1)), None)
    if never is not None:
        asked = _asked(job, known, room, never[0])
        yield f"It needs {_count(room.wanted_nodes, 'node')} in {where}, but only {never[1]} {asked}."
        yield from _away(reader, room)
        return
    would_do = room.suitable[-1][1]
    if room.most_tasks < room.wanted_tasks:
        most = f"{_count(would_do, 'node')} of {where} that would do, all idle, hold {_count(room.most_tasks, 'task')}"
        yield f"It can never start as it is: it has {_count(room.wanted_tasks, 'task')}, and the {most}."
        return
    tasks = f" for {_count(room.wanted_tasks, 'task')}" if room.wanted_tasks > room.wanted_nodes else ""
    held = f" ({_count(room.free_tasks, 'task')})" if tasks and room.free else ""
    can = f"{room.free or 'none'} can take a part of it now{held}"
    yield f"In {where} it needs {_count(room.wanted_nodes, 'node')}{tasks}; {would_do} would do, of which {can}."
    if _is_short(room):
        yield from _away(reader, room)
    if room.short and _is_short(room):
        found = [f"{'all' if count == would_do > 1 else count} {_lack(name, count)}" for name, count in room.short]
        yield f"Of these, {_listed(found)}."
    for licence in room.licenses:
        if licence.left < licence.wanted:
            total = reader.machine.site.licenses.get(licence.name, 0)
            yield f"It needs {licence.wanted} of the licence {licence.name}; {max(licence.left, 0)} of {total} are free."
    for limit in room.limits:
        if limit.left < limit.wanted:
            left, wanted = _amount(limit, limit.left), _amount(limit, limit.wanted)
            yield f"{limit.name} leaves {left} to jobs like it, and it takes {wanted}."
    if not _is_short(room) and not known.row.held_reason.value.startswith("JobHeld") and known.outlook.reason in _NODES:
        yield "Enough is free for it at this moment, but not for as long as it may run: jobs before it are to start there."


def _away(reader: Reader, room: Room) -> Iterator[str]:
    """The nodes that would do but take no jobs now, those in the same state together."""
    states: dict[str, list[str]] = {}
    for name in room.away:
        node = reader.machine.nodes.get(name)
        why = f", {node.reason}" if node is not None and node.reason else ""
        states.setdefault(f"{reader.machine.node_state(name)}{why}", []).append(name)
    for state, names in states.items():
        yield f"{compress(names)} would do too, but {'is' if len(names) == 1 else 'are'} not available ({state})."


def _is_short(room: Room) -> bool:
    return room.free < room.wanted_nodes or room.free_tasks < room.wanted_tasks


def _asked(job: Job, known: Explanation, room: Room, name: str) -> str:
    if name.startswith("gres/"):
        return f"have the {name.removeprefix('gres/')} that it asks for on each"
    cpus = "CPUs" if known.row.demand.tasks_per_node_exact else _count(known.row.demand.cpus_per_task, "CPU")
    return _ASKED[name].format(
        partition=room.partition, reservation=room.reservation, constraint=job.request.constraints, cpu=cpus
    )


def _lack(name: str, count: int) -> str:
    text = _SHORT.get(name) or "{have} too few free " + name.removeprefix("gres/")
    return text.format(have="has" if count == 1 else "have", are="is" if count == 1 else "are")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _listed(found: list[str]) -> str:
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def _amount(limit: Counted, amount: int) -> str:
    names = {"cpu": "CPUs", "mem": "of memory", "node": "nodes", "job": "jobs"}
    return f"{amount_text(limit.resource, max(amount, 0))} {names.get(limit.resource, limit.resource.removeprefix('gres/'))}"


# ------------------------------------------------------------------------------------------------- who is before it, and when


def _before(reader: Reader, known: Explanation) -> Iterator[str]:
    if known.row.held_reason is not Reason.NONE:
        return
    yield f"It is number {known.position} of {known.queue} in the queue."
    if not known.ahead:
        return
    one = len(known.ahead) == 1
    yield (
        f"{_count(len(known.ahead), 'job')} of those before it {'takes' if one else 'take'} what it could use: "
        f"{_named(reader, [(each.job_id, each.start) for each in known.ahead], 'starts')}."
    )


def _names_of(reader: Reader, jobs: Sequence[int]) -> str:
    """The first few jobs with their users."""
    found = []
    for job_id in jobs[:FEW]:
        job = reader.visible(job_id)
        found.append("another user's job" if job is None else f"job {raw_array_id(job)} ({job.credentials.user_name})")
    return _listed([*found, *([f"{len(jobs) - FEW} more"] if len(jobs) > FEW else [])])


def _named(reader: Reader, jobs: list[tuple[int, int]], verb: str) -> str:
    """The first few jobs with their users and times; of those that the reader may not see only the time."""
    found = []
    for job_id, moment in jobs[:FEW]:
        job = reader.visible(job_id)
        whose = "another user's" if job is None else f"{raw_array_id(job)} ({job.credentials.user_name})"
        found.append(f"{whose} {verb} {'now' if moment <= reader.now else format_time(moment)}")
    more = len(jobs) - len(found)
    return "; ".join([*found, *([f"{more} more"] if more else [])])


def _planned(reader: Reader, answer: Answer, known: Explanation) -> Iterator[str]:
    outlook = known.outlook
    if known.eventually is not None:
        yield f"If nothing held it, it would start {reader.when(known.eventually)}."
    start = _start_of(answer, known)
    if start is None and answer.element is not None and outlook.start_time is not None:
        yield f"Elements of the array before it go first, the next of them {reader.when(outlook.start_time)}."
        return
    if start is None:
        if known.eventually is None and outlook.reason not in (Reason.JOB_ARRAY_TASK_LIMIT, Reason.DEPENDENCY):
            yield "No start is planned for it as things are."
        return
    where = f" on {compress(outlook.nodes)}" if outlook.nodes and answer.element is None else ""
    partition = outlook.partition or ",".join(answer.job.partitions)
    yield f"It is planned to start {reader.when(start)}{where} in partition {partition}."
    if outlook.promised is not None and outlook.promised > start:
        yield f"It was promised to start no later than {format_time(outlook.promised)}."
    if known.victims:
        verb = "gives" if len(known.victims) == 1 else "give"
        yield f"So that it can start, {_names_of(reader, known.victims)} {verb} way to it."
    if known.holders:
        yield f"Until then these nodes are used by: {_named(reader, list(known.holders), 'ends by')}."


def _start_of(answer: Answer, known: Explanation) -> int | None:
    """The planned start of the job, or of the element that was asked for."""
    first = known.outlook.start_time
    if first is None and known.outlook.reason is Reason.NONE:
        first = known.time
    if answer.element is None:
        return first
    before = (part[: max(0, -(-(answer.element - part.start) // part.step))] for part in answer.job.array_tasks)
    place = arrays.task_count(tuple(before))
    return known.element_starts[place] if place < len(known.element_starts) else None if place else first


def _smaller(reader: Reader, known: Explanation) -> Iterator[str]:
    if not known.smaller:
        return
    yield "A smaller request would start earlier:"
    for better in known.smaller[: 2 * FEW]:
        where = "" if better.partition == known.outlook.partition else f" in partition {better.partition}"
        yield f"  {better.change}: {reader.when(better.start)}, {_count(better.nodes, 'node')}{where}"


# ------------------------------------------------------------------------------------------------- the document


def document(reader: Reader, answer: Answer) -> dict[str, Any]:
    """The same as data. Times are Unix seconds; what is not known is null."""
    job, known = answer.job, answer.explanation
    found: dict[str, Any] = {
        "job_id": job.job_id,
        "job": _name(answer),
        "name": job.name,
        "user_name": job.credentials.user_name,
        "state": state_name(job),
        "reason": job.reason.value,
        "description": job.state_description,
        "partitions": list(job.partitions),
        "time_limit": None if job.time_limit >= INFINITE - 1 else job.time_limit * 60,
        "sentences": list(lines(reader, answer)),
    }
    return found if known is None else found | _waiting(reader, answer, known)


def _waiting(reader: Reader, answer: Answer, known: Explanation) -> dict[str, Any]:
    outlook = known.outlook
    ahead = [(each.job_id, each.start) for each in known.ahead]
    return {
        "complete": known.complete,
        "planned_reason": outlook.reason.value,
        "position": {"place": known.position, "of": known.queue},
        "needs": [_room(room) for room in known.rooms],
        "before": {"count": len(ahead), "jobs": _jobs(reader, ahead, "start")},
        "planned": {
            "start": _start_of(answer, known),
            "nodes": compress(outlook.nodes) if outlook.nodes else "",
            "partition": outlook.partition,
            "promised": outlook.promised,
            "if_not_held": known.eventually,
            "used_by": _jobs(reader, list(known.holders), "end"),
            "gives_way": [job_id for job_id in known.victims if reader.visible(job_id) is not None],
        },
        "smaller": [
            {"change": each.change, "start": each.start, "partition": each.partition, "nodes": each.nodes}
            for each in known.smaller
        ],
    }


def _jobs(reader: Reader, jobs: list[tuple[int, int]], moment: str) -> list[dict[str, Any]]:
    found = []
    for job_id, time in jobs:
        job = reader.visible(job_id)
        shown = {} if job is None else {"job_id": job_id, "user_name": job.credentials.user_name, "priority": job.priority}
        found.append({**shown, moment: time})
    return found


def _room(room: Room) -> dict[str, Any]:
    return {
        "partition": room.partition,
        "reservation": room.reservation,
        "nodes": room.wanted_nodes,
        "tasks": room.wanted_tasks,
        "suitable": dict(room.suitable),
        "short": dict(room.short),
        "free_nodes": room.free,
        "free_tasks": room.free_tasks,
        "not_available": list(room.away),
        "licenses": [_counted(each) for each in room.licenses],
        "limits": [_counted(each) for each in room.limits],
    }


def _counted(each: Counted) -> dict[str, Any]:
    return {"name": each.name, "resource": each.resource, "wanted": each.wanted, "left": each.left}
