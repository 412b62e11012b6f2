"""``scontrol update``: the keys of jobs, nodes and partitions that can be changed, and how their values are read.

A key may be shortened to its row's ``shortest`` letters, in any case. Rows point at the names of fields that the machine
takes; a key that has no row is refused in Slurm's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from grammar.errors import GrammarError
from grammar.hostlist import expand
from grammar.mail import parse_mail_type
from grammar.sizes import parse_memory
from grammar.times import parse_duration, parse_time
from grammar.tres import prefix_gres
from slurmk.commands.call import Call, Controller, Output
from slurmk.commands.node_text import number_list
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import Event, JobSelection, UpdateJob, UpdateNode, UpdatePartition
from slurmk.core.selection import name_of, parse
from slurmk.model.job import Job
from slurmk.model.states import INFINITE, NO_VALUE, JobState

Changes = list[tuple[str, object]]


class Failure(Exception):
    """Ends the update; ``text`` goes to standard error."""


class Skip(Exception):
    """This key changes nothing; ``text`` is said and the others are looked at."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its name, the least letters of it, and how a value becomes changes of fields."""

    name: str
    shortest: int
    read: Callable[[str, float], Changes]


def find_key(keys: Iterable[Key], typed: str) -> Key | None:
    """The key that was typed, perhaps shortened."""
    lower = typed.lower()
    return next((key for key in keys if len(lower) >= key.shortest and key.name.lower().startswith(lower)), None)


# ---------------------------------------------------------------------------------------------- readers of values


def _text(field: str, *, empty: object = None) -> Callable[[str, float], Changes]:
    return lambda value, now: [(field, value or empty)]


def _number(name: str, *targets: str, maximum: int = NO_VALUE) -> Callable[[str, float], Changes]:
    def read(value: str, now: float) -> Changes:
        if not re.fullmatch(r"[0-9]{1,10}", value) or int(value) > maximum:
            raise Failure(f"scontrol: error: Invalid {name} value: {value}")
        return [(field, int(value)) for field in targets]

    return read


def _yes_no(name: str, field: str) -> Callable[[str, float], Changes]:
    def read(value: str, now: float) -> Changes:
        truth = {"yes": True, "1": True, "no": False, "0": False}.get(value.lower())
        if truth is None:
            raise Failure(f"scontrol: error: Invalid {name} value: {value}")
        return [(field, truth)]

    return read


def _moment(field: str) -> Callable[[str, float], Changes]:
    def read(value: str, now: float) -> Changes:
        try:
            return [(field, parse_time(value, now))]
        except GrammarError as error:
            raise Skip(str(error)) from None

    return read


def _minutes(name: str, field: str) -> Callable[[str, float], Changes]:
    def read(value: str, now: float) -> Changes:
        try:
            return [(field, parse_duration(value))]
        except GrammarError:
            raise Failure(f"scontrol: error: Invalid {name} value") from None

    return read


def _time_limit(value: str, now: float) -> Changes:
    """``+5`` and ``-5`` are relative to each job's limit and are resolved later."""
    if value[:1] in ("+", "-") and value != "-1":
        return [("relative_limit", (1 if value[0] == "+" else -1) * int(_minutes("TimeLimit", "")(value[1:], now)[0][1]))]  # type: ignore[call-overload]
    return _minutes("TimeLimit", "time_limit")(value, now)


def _nodes(value: str, now: float) -> Changes:
    match = re.fullmatch(r"([0-9]{1,9})(?:(-)([0-9]{1,9})?)?", value)
    if match is None:
        raise Failure(f"scontrol: error: Invalid NumNodes value: {value}")
    least, most = int(match[1]), int(match[3]) if match[3] else int(match[1])
    if match[2] and not match[3]:
        raise Skip(f"scontrol: error: Maximum node count -1 is less than minimum node count {least}")
    if most < least:
        raise Skip(f"scontrol: error: Maximum node count {most} is less than minimum node count {least}")
    return [("minimum_nodes", least), ("maximum_nodes", most), ("nodes", value)]


def _nice(value: str, now: float) -> Changes:
    match = re.match(r"[-+]?[0-9]{1,10}", value)
    return [("nice", int(match[0]) if match else 0 if value else 100)]


def _mail_type(value: str, now: float) -> Changes:
    try:
        return [("mail_type", parse_mail_type(value))]
    except GrammarError:
        raise Failure(f"scontrol: error: Invalid MailType value: {value}") from None


def _gres(value: str, now: float) -> Changes:
    try:
        return [("tres_per_node", prefix_gres(value) if value else None)]
    except GrammarError as error:
        raise Failure(f"scontrol: error: {error}") from None


def _memory(name: str, field: str) -> Callable[[str, float], Changes]:
    def read(value: str, now: float) -> Changes:
        try:
            return [(field, parse_memory(value))]
        except GrammarError:
            raise Failure(f"scontrol: error: Invalid {name} value: {value}") from None

    return read


def _shared(value: str, now: float) -> Changes:
    words = {"yes": "oversubscribe", "1": "oversubscribe", "no": "none", "0": "none"}
    if value.lower() not in words:
        raise Failure(f"scontrol: error: Invalid OverSubscribe value: {value}")
    return [("shared", words[value.lower()])]


def _switches(value: str, now: float) -> Changes:
    count, _, wait = value.partition("@")
    changes = _number("Switches", "required_switches")(count, now)
    if wait:
        minutes = _minutes("Switches", "wait_for_switch")(wait, now)[0][1]
        changes.append(("wait_for_switch", int(minutes) * 60))  # type: ignore[call-overload]
    return changes


def _nothing(value: str, now: float) -> Changes:
    return []


JOB_KEYS: tuple[Key, ...] = (
    Key("AdminComment", 3, _text("admin_comment", empty="")),
    Key("ArrayTaskThrottle", 10, _number("ArrayTaskThrottle", "array_maximum_running")),
    Key("Account", 1, _text("account", empty="")),
    Key("BurstBuffer", 1, _text("burst_buffer")),
    Key("ClusterFeatures", 8, _text("cluster_constraint")),
    Key("Comment", 3, _text("comment")),
    Key("Contiguous", 3, _yes_no("Contiguous", "contiguous")),
    Key("CoreSpec", 4, _number("CoreSpec", "core_specification")),
    Key("CPUsPerTask", 9, _number("CPUsPerTask", "cpus_per_task")),
    Key("Deadline", 3, _moment("deadline")),
    Key("DelayBoot", 5, _minutes("DelayBoot", "delay_boot")),
    Key("Dependency", 1, _text("dependency", empty="")),
    Key("EligibleTime", 2, _moment("begin_time")),
    Key("EndTime", 2, _moment("end_time")),
    Key("ExcNodeList", 3, _text("excluded_nodes", empty="")),
    Key("Extra", 2, _text("extra")),
    Key("Features", 1, _text("constraints", empty="")),
    Key("Gres", 2, _gres),
    Key("JobName", 4, _text("name", empty="")),
    Key("Licenses", 1, _text("licenses", empty="")),
    Key("MailType", 5, _mail_type),
    Key("MailUser", 5, _text("mail_user")),
    Key("MinCPUsNode", 4, _number("MinCPUsNode", "minimum_cpus_per_node")),
    Key("MinMemoryNode", 10, _number("MinMemoryNode", "memory_per_node")),
    Key("MinMemoryCPU", 10, _number("MinMemoryCPU", "memory_per_cpu")),
    Key("MinTmpDiskNode", 5, _number("MinTmpDiskNode", "temporary_disk_per_node")),
    Key("Name", 2, _text("name", empty="")),
    Key("Nice", 2, _nice),
    Key("NodeList", 8, _text("required_nodes", empty="")),
    Key("NumCPUs", 6, _number("NumCPUs", "minimum_cpus")),
    Key("NumNodes", 6, _nodes),
    Key("NumTasks", 6, _number("NumTasks", "tasks")),
    Key("OverSubscribe", 2, _shared),
    Key("Partition", 2, _text("partition", empty="")),
    Key("Prefer", 3, _text("prefer")),
    Key("Priority", 2, _number("Priority", "priority", maximum=INFINITE)),
    Key("QOS", 1, _text("qos", empty="")),
    Key("ReqCores", 4, _number("ReqCores", "cores_per_socket")),
    Key("ReqCPUs", 4, _number("ReqCPUs", "minimum_cpus")),
    Key("ReqNodeList", 8, _text("required_nodes", empty="")),
    Key("ReqNodes", 8, _nodes),
    Key("ReqSockets", 4, _number("ReqSockets", "sockets_per_node")),
    Key("ReqTasks", 4, _number("ReqTasks", "tasks")),
    Key("ReqThreads", 4, _number("ReqThreads", "threads_per_core")),
    Key("Requeue", 4, _yes_no("Requeue", "requeue")),
    Key("ReservationName", 3, _text("reservation", empty="")),
    Key("Shared", 2, _shared),
    Key("StartTime", 2, _moment("begin_time")),
    Key("StdErr", 6, _text("standard_error")),
    Key("StdIn", 5, _text("standard_input")),
    Key("StdOut", 6, _text("standard_output")),
    Key("Switches", 5, _switches),
    Key("TasksPerNode", 2, _number("TasksPerNode", "tasks_per_node")),
    Key("ThreadSpec", 4, _number("ThreadSpec", "thread_specification")),
    Key("TimeLimit", 5, _time_limit),
    Key("TimeMin", 5, _minutes("TimeMin", "time_minimum")),
    Key("UserID", 3, _nothing),
    Key("WCKey", 1, _text("wckey")),
    Key("WorkDir", 2, _text("current_working_directory")),
)


def _words(field: str, *, everything: object = ()) -> Callable[[str, float], Changes]:
    def read(value: str, now: float) -> Changes:
        if value.upper() in ("ALL", ""):
            return [(field, everything)]
        return [(field, tuple(word for word in value.split(",") if word))]

    return read


def _limit(name: str, field: str) -> Callable[[str, float], Changes]:
    def read(value: str, now: float) -> Changes:
        if value.upper() in ("UNLIMITED", "INFINITE"):
            return [(field, INFINITE)]
        return _number(name, field)(value, now)

    return read


_NODE_STATES = ("NORESP", "DRAIN", "FAIL", "FUTURE", "RESUME", "POWER_DOWN", "POWER_UP", "UNDRAIN", "DOWN", "IDLE")


def _node_state(value: str, now: float) -> Changes:
    word = value.upper()
    chosen = next((state for state in _NODE_STATES if len(word) >= 2 and state.startswith(word)), None)
    if chosen is None:
        raise Failure(
            f"Invalid input: state={value}\nRequest aborted\n"
            "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN\n"
            "Not all states are valid given a node's prior state"
        )
    return [("state", chosen)]


NODE_KEYS: tuple[Key, ...] = (
    Key("ActiveFeatures", 3, _words("active_features")),
    Key("AvailableFeatures", 3, _words("features")),
    Key("Comment", 3, _text("comment", empty="")),
    Key("Extra", 2, _text("extra", empty="")),
    Key("Features", 1, _words("features")),
    Key("NodeAddr", 5, _text("address", empty="")),
    Key("NodeHostName", 5, _text("host_name", empty="")),
    Key("Reason", 1, _text("reason", empty="")),
    Key("State", 5, _node_state),
    Key("Weight", 1, _number("Weight", "weight")),
)


def _partition_state(value: str, now: float) -> Changes:
    word = value.upper()
    if word not in ("UP", "DOWN", "DRAIN", "INACTIVE"):
        raise Failure(
            f"scontrol: error: Invalid input: state={value}\n"
            "scontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE"
        )
    return [("state", word)]


def _partition_nodes(value: str, now: float) -> Changes:
    try:
        names = tuple(expand(value)) if value else ()
    except GrammarError as error:
        raise Failure(f"scontrol: error: Invalid Nodes value: {value}: {error}") from None
    return [("nodes", names), ("node_spec", value)]


PARTITION_KEYS: tuple[Key, ...] = (
    Key("AllowAccounts", 6, _words("allow_accounts", everything=None)),
    Key("AllowGroups", 6, _words("allow_groups", everything=None)),
    Key("AllowQos", 6, _words("allow_qos", everything=None)),
    Key("Alternate", 3, _text("alternate", empty="")),
    Key("Default", 7, _yes_no("Default", "default")),
    Key("DefaultTime", 8, _minutes("DefaultTime", "default_time")),
    Key("DefMemPerCPU", 10, _number("DefMemPerCPU", "default_memory_per_cpu")),
    Key("DefMemPerNode", 10, _number("DefMemPerNode", "default_memory_per_node")),
    Key("DenyAccounts", 5, _words("deny_accounts")),
    Key("DenyQos", 5, _words("deny_qos")),
    Key("ExclusiveUser", 9, _yes_no("ExclusiveUser", "exclusive_user")),
    Key("GraceTime", 5, _number("GraceTime", "grace_time")),
    Key("Hidden", 1, _yes_no("Hidden", "hidden")),
    Key("LLN", 1, _yes_no("LLN", "lln")),
    Key("MaxCPUsPerNode", 4, _limit("MaxCPUsPerNode", "maximum_cpus_per_node")),
    Key("MaxMemPerCPU", 10, _number("MaxMemPerCPU", "maximum_memory_per_cpu")),
    Key("MaxMemPerNode", 10, _number("MaxMemPerNode", "maximum_memory_per_node")),
    Key("MaxNodes", 4, _limit("MaxNodes", "maximum_nodes")),
    Key("MaxTime", 4, _minutes("MaxTime", "maximum_time")),
    Key("MinNodes", 2, _number("MinNodes", "minimum_nodes")),
    Key("Nodes", 1, _partition_nodes),
    Key("OverSubscribe", 2, _text("oversubscribe", empty="NO")),
    Key("PriorityJobFactor", 9, _number("PriorityJobFactor", "priority_job_factor")),
    Key("PriorityTier", 9, _number("PriorityTier", "priority_tier")),
    Key("QOS", 3, _text("qos", empty="")),
    Key("ReqResv", 4, _yes_no("ReqResv", "require_reservation")),
    Key("RootOnly", 3, _yes_no("RootOnly", "root_only")),
    Key("State", 2, _partition_state),
)


# ---------------------------------------------------------------------------------------------- the command


async def update(arguments: Sequence[str], call: Call, controller: Controller, output: Output, *, quiet: bool = False) -> int:
    """``scontrol update key=value …``; which entity it is follows from the keys."""
    if not arguments:
        output.error("too few arguments for update keyword\n")
        return 1
    pairs = _pairs(arguments)
    try:
        for entity, prefix, shortest in _ENTITIES:
            named = [key for key, _ in pairs if _abbreviates(key, prefix, shortest)]
            if named:
                return await entity(pairs, call, controller, output, quiet)
    except Failure as failure:
        output.error(f"{failure}\n")
        return 1
    if any(_abbreviates(key, "StepId", 3) for key, _ in pairs):
        output.error("scontrol: error: updating steps is not part of slurmk yet\n")
        return 1
    output.error(
        "No valid entity in update command\n"
        'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or "SlurmctldDebug"\n'
    )
    return 1


def names_reservation(arguments: Sequence[str]) -> bool:
    """Whether it is a reservation that is updated: the first key that names anything says so."""
    for key, _ in _pairs(arguments):
        if _abbreviates(key.rstrip("+-"), "ReservationName", 3):
            return True
        if any(_abbreviates(key, prefix, max(shortest, 4)) for _, prefix, shortest in _ENTITIES):
            return False
    return False


def _abbreviates(typed: str, name: str, shortest: int) -> bool:
    return len(typed) >= shortest and name.lower().startswith(typed.lower())


def _pairs(arguments: Sequence[str]) -> list[tuple[str, str | None]]:
    """(key, value) of ``key=value``; ``job 12`` is ``jobid=12``; a key alone has the value None."""
    pairs: list[tuple[str, str | None]] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        key, equals, value = word.partition("=")
        if not equals and key.lower() in ("job", "jobid", "node", "partition") and words and "=" not in words[0]:
            pairs.append((key, words.pop(0)))
        else:
            pairs.append((key, value if equals else None))
    return pairs


def _read(
    keys: Sequence[Key], pairs: Iterable[tuple[str, str | None]], now: float, output: Output, unknown: str, alone: str
) -> Changes:
    changes: Changes = []
    for typed, value in pairs:
        key = find_key(keys, typed)
        if value is None and not (key is not None and key.name == "Nice"):
            raise Failure(alone.format(word=typed))
        if key is None:
            raise Failure(unknown.format(word=f"{typed}={value}"))
        try:
            changes += key.read(value or "", now)
        except Skip as skipped:
            output.error(f"{skipped}\n")
    return changes


def _signed(pairs: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str | None]]:
    """``TimeLimit+=5`` as ``TimeLimit=+5``. Raises Failure for other keys of jobs."""
    for typed, value in pairs:
        key = find_key(JOB_KEYS, typed[:-1]) if typed.endswith(("+", "-")) and value is not None else None
        if key is None:
            yield typed, value
        elif key.name == "TimeLimit":
            yield typed[:-1], f"{typed[-1]}{value}"
        else:
            raise Failure(f"scontrol: error: Option {typed}={value} does not accept [+|-]= syntax")


_UNKNOWN = "Update of this parameter is not supported: {word}\nRequest aborted"
_ALONE = "Invalid input: {word}\nRequest aborted"


async def _update_job(
    pairs: Sequence[tuple[str, str | None]], call: Call, controller: Controller, output: Output, quiet: bool
) -> int:
    now = controller.now()
    identified = [value for key, value in pairs if _is_job_id(key)]
    rest = [(key, value) for key, value in pairs if not _is_job_id(key)]
    if identified:
        names = [word for value in identified for word in split_ids(value or "")]
    else:
        wanted = next((value or "" for key, value in pairs if _abbreviates(key, "JobName", 4)), "")
        rest = [(key, value) for key, value in rest if not _abbreviates(key, "JobName", 4)]
        names = [own_name(job) for job in jobs_named(controller, call, wanted)]
        if not names:
            raise Failure(f"scontrol: error: No jobs with name '{wanted}'")
    changes = _read(JOB_KEYS, list(_signed(rest)), now, output, _UNKNOWN, _ALONE)
    if not changes:
        if any(_abbreviates(key, "NumNodes", 6) for key, _ in rest):
            return 0
        raise Failure("No changes specified")
    code = 0
    for name in names:
        code = await _update_one(name, changes, call, controller, output, quiet) or code
    return code


def _is_job_id(key: str) -> bool:
    return _abbreviates(key, "JobId", 3)


def split_ids(text: str) -> list[str]:
    """``12,13_[1,2]`` at the commas outside of brackets."""
    return [word for word in re.split(r",(?![^\[]*\])", text) if word] or [text]


async def _update_one(name: str, changes: Changes, call: Call, controller: Controller, output: Output, quiet: bool) -> int:
    """One job as typed. Relative limits and ends are resolved against what the job has now."""
    try:
        selection = parse(name)
        job = _first(controller, selection)
        resolved = tuple(_resolved(change, job) for change in changes) if job is not None else tuple(changes)
    except SlurmError as error:
        if not quiet:
            output.error(error_line(name, error))
        return 1
    if job is not None and not job.array_job_id and "array_maximum_running" in dict(changes) and not quiet:
        output.error("scontrol: error: Update of ArrayTaskThrottle is only allowed on ArrayJobId\n")
    event: Event = UpdateJob(controller.now(), call.caller, (selection,), resolved)
    return tell_all(output, {name_of(selection): name}, await controller.apply(event), quiet)


def _first(controller: Controller, selection: JobSelection) -> Job | None:
    try:
        return controller.machine.select(selection)[0]
    except SlurmError:
        return None


def _resolved(change: tuple[str, object], job: Job) -> tuple[str, object]:
    field, value = change
    if field == "relative_limit":
        assert isinstance(value, int)
        if job.time_limit >= NO_VALUE:
            raise Failure("scontrol: error: Cannot increment/decrement TimeLimit when set to UNLIMITED.")
        if job.time_limit + value < 0:
            limits = f"({-value} > {job.time_limit})"
            raise Failure(f"scontrol: error: TimeLimit decrement larger than current time limit {limits}")
        return "time_limit", job.time_limit + value
    if field == "end_time":
        assert isinstance(value, int)
        start = job.start_time if job.state is not JobState.PENDING else 0
        if not start or value <= start:
            raise SlurmError(Errno.INVALID_TIME_VALUE if start else Errno.JOB_NOT_RUNNING)
        return "time_limit", -(-(value - start) // 60)
    return change


def jobs_named(controller: Controller, call: Call, name: str) -> list[Job]:
    """Unfinished jobs of that name that the caller may change."""
    machine = controller.machine
    return [
        job
        for job in machine.jobs.values()
        if job.name == name and not job.state.finished and machine.may_change(call.caller, job)
    ]


def own_name(job: Job) -> str:
    """A record as ``12`` or ``12_3``."""
    return f"{job.array_job_id}_{job.array_task_id}" if job.array_task_id is not None else str(job.job_id)


def error_line(name: str, error: SlurmError) -> str:
    """``Invalid job id specified for job 12``"""
    return f"{error} for job {name}\n"


def refusal_lines(name: str, refused: Refused, *, successes: bool) -> str:
    """Why a job was not changed; of an array ``12_[0,3-6]: …``, with the elements that were if there are ``successes``."""
    if not refused.elements:
        return error_line(name, refused.error)
    number = parse(refused.subject).job_id
    told = [(elements, error) for elements, error in refused.elements if error is not None or successes]
    return "".join(
        f"{number}_[{number_list(elements)}]: {'No error' if error is None else error}\n" for elements, error in told
    )


def tell_all(output: Output, names: Mapping[str, str], answers: Iterable[Accepted | Refused], quiet: bool) -> int:
    """Say all refusals of an event; gives the exit code."""
    code = 0
    for answer in answers:
        if isinstance(answer, Refused):
            code = 1
            if not quiet:
                output.error(refusal_lines(names.get(answer.subject, answer.subject), answer, successes=False))
        elif not quiet:
            for notice in answer.notices:
                output.error(f"{notice}\n")
    return code


async def _update_node(
    pairs: Sequence[tuple[str, str | None]], call: Call, controller: Controller, output: Output, quiet: bool
) -> int:
    named = next(value or "" for key, value in pairs if _abbreviates(key, "NodeName", 1))
    rest = [(key, value) for key, value in pairs if not _abbreviates(key, "NodeName", 5)]
    rest = [(key, value) for key, value in rest if key.lower() != "node"]
    changes = dict(_read(NODE_KEYS, rest, controller.now(), output, _UNKNOWN, _ALONE))
    state, reason = changes.pop("state", None), changes.pop("reason", None)
    if state is None and reason is None and not changes:
        raise Failure("No changes specified")
    if state in ("DOWN", "DRAIN", "FAIL") and not reason:
        raise Failure("You must specify a reason when DOWNING or DRAINING a node. Request denied")
    try:
        nodes = tuple(controller.machine.nodes) if named.upper() == "ALL" else tuple(expand(named))
    except GrammarError:
        nodes = (named,)
    event = UpdateNode(
        controller.now(),
        call.caller,
        nodes,
        None if state is None else str(state),
        None if reason is None else str(reason),
        tuple(changes.items()),
    )
    return _tell_update(await controller.apply(event), output, quiet)


async def _update_partition(
    pairs: Sequence[tuple[str, str | None]], call: Call, controller: Controller, output: Output, quiet: bool
) -> int:
    name = next(value or "" for key, value in pairs if _abbreviates(key, "PartitionName", 2))
    rest = [(key, value) for key, value in pairs if not _abbreviates(key, "PartitionName", 2)]
    unknown = "scontrol: error: Update of this parameter is not supported: {word}\n\nscontrol: error: Request aborted"
    changes = _read(PARTITION_KEYS, rest, controller.now(), output, unknown, unknown)
    if not changes:
        raise Failure("scontrol: error: No changes specified")
    event = UpdatePartition(controller.now(), call.caller, name, tuple(changes))
    return _tell_update(await controller.apply(event), output, quiet)


def _tell_update(answers: Iterable[Accepted | Refused], output: Output, quiet: bool) -> int:
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    if refused and not quiet:
        output.error(f"slurm_update error: {refused[0].error}\n")
    return 1 if refused else 0


_ENTITIES = (
    (_update_node, "NodeName", 1),
    (_update_job, "JobId", 3),
    (_update_job, "JobName", 4),
    (_update_partition, "PartitionName", 2),
)
