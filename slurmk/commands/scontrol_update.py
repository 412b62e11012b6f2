"""``scontrol update``: which kind of object is meant, and what can be changed of jobs (scontrol(1)).

Rows point at the names of fields that the machine takes; a key that has no row is refused in Slurm's words. Nodes,
partitions, reservations and steps have modules of their own.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from grammar.errors import GrammarError
from grammar.mail import parse_mail_type
from grammar.times import parse_duration, parse_duration_seconds
from grammar.tres import prefix_gres
from slurmk.commands import scontrol_keys as keys
from slurmk.commands import (
    scontrol_node,
    scontrol_partition,
    scontrol_reservation,
    scontrol_resize,
    scontrol_session,
    scontrol_step,
)
from slurmk.commands.call import Call, Controller, Output
from slurmk.commands.documents.envelope import Wanted
from slurmk.commands.node_text import number_list, user_name
from slurmk.commands.scontrol_keys import ERROR, Changes, Failure, Key, Read, Skip, Typed
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import Caller, Event, JobSelection, UpdateJob
from slurmk.core.selection import name_of, parse
from slurmk.model.job import Job
from slurmk.model.states import INFINITE, NO_VALUE, JobState


class Session(scontrol_session.Session, Protocol):
    """What this module needs of one scontrol besides."""

    @property
    def one_line(self) -> bool: ...
    @property
    def quiet(self) -> bool: ...
    @property
    def form(self) -> Wanted | None: ...
    @property
    def user_id(self) -> int | None: ...


# ---------------------------------------------------------------------------------------------- values of jobs


def _number(name: str, *fields: str, bits: int = 32) -> Read:
    return keys.number(name, *fields, bits=bits)


def _minutes(name: str, field: str) -> Read:
    return keys.minutes(field, f"{ERROR}Invalid {name} value")


def _delay(typed: Typed) -> Changes:
    try:
        seconds = parse_duration_seconds(typed.value) if typed.value.lower() not in ("-1", "infinite", "unlimited") else None
    except GrammarError:
        raise Failure(f"{ERROR}Invalid DelayBoot value") from None
    return [("delay_boot", INFINITE if seconds is None else seconds)]


def _time_limit(typed: Typed) -> Changes:
    """``+5`` and ``-5`` are relative to each job's limit and are resolved later."""
    sign = typed.value[:1] if typed.value[:1] in ("+", "-") else ""
    if sign and typed.sign:
        raise Failure(f"{ERROR}Invalid syntax, variations of +=- are not accepted.")
    try:
        found = parse_duration(typed.value[len(sign) :])
    except GrammarError:
        raise Failure(f"{ERROR}Invalid TimeLimit value") from None
    sign = sign or typed.sign
    return [("relative_limit", found if sign == "+" else -found)] if sign else [("time_limit", found)]


def _node_count(text: str) -> tuple[int, int] | None:
    """``2``, ``1k``, ``2-4``; None for what is no count of nodes."""
    match = re.fullmatch(r"\+?([0-9]{1,9})([kKmM]?)(?:-([0-9]{1,9})([kKmM]?))?", text)
    if match is None:
        return None
    factors = {"": 1, "k": 1 << 10, "m": 1 << 20}
    least = int(match[1]) * factors[match[2].lower()]
    return least, int(match[3]) * factors[match[4].lower()] if match[3] else least


def _nodes(typed: Typed) -> Changes:
    if typed.value.upper() == "ALL" or typed.value == "-1":
        raise Skip("", counts=True)
    found = _node_count(typed.value)
    if found is None:
        raise Failure(f'{ERROR}"{typed.value}" is not a valid node count', code=0)
    least, most = found
    if most < least:
        raise Failure(f"{ERROR}Maximum node count {most} is less than minimum node count {least}", code=0)
    return [("minimum_nodes", least), ("maximum_nodes", most), ("nodes", typed.value)]


_MOST = 0x7FFFFFFF


def _cpus(typed: Typed) -> Changes:
    """``4`` CPUs, or between 2 and 4 of them: ``2-4``."""
    value = typed.value
    match = re.fullmatch(r"([0-9]{1,9})([kKmM]?)(?:-([0-9]{1,9}))?", value)
    if match is None and value:
        raise Failure(f'{ERROR}Invalid numeric value "{value}" for NumCPUs.\n{ERROR}Invalid NumCPUs value: {value}')
    least = int(match[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[match[2].lower()] if match else 1
    most = int(match[3]) if match and match[3] else None if match else _MOST
    if not least or (most is not None and most < least):
        raise Failure(f"{ERROR}Invalid NumCPUs value: {value}")
    return [("minimum_cpus", least), *([("maximum_cpus", most)] if most else [])]


_MOST_NICE = 2147483645


def _signed_number(name: str, field: str) -> Read:
    """A number that may be less than 0; what is none is 0."""

    def read(typed: Typed) -> Changes:
        match = re.match(r"\s*([-+]?[0-9]{1,20})", typed.value)
        found = int(match[1]) if match else 0
        if abs(found) > _MOST_NICE:
            raise Failure(f"{ERROR}{name} value out of range (+/- {_MOST_NICE}). Value ignored")
        return [(field, found)]

    return read


def _throttle(typed: Typed) -> Changes:
    match = re.match(r"\s*([-+]?[0-9]{1,9})", typed.value)
    found = int(match[1]) if match else 0
    if found < 0:
        raise Failure(f"{ERROR}Invalid ArrayTaskThrottle value")
    return [("array_maximum_running", found)]


def _admin_comment(typed: Typed) -> Changes:
    if typed.sign:
        raise Failure(f"{ERROR}Invalid syntax, AdminComment can not be added/subtracted from.")
    return [("admin_comment", typed.value)]


def _mail_type(typed: Typed) -> Changes:
    """Words that are none are passed over behind one that is."""
    words = typed.value.split(",")
    known = [word for word in words if _is_mail_type(word)]
    if not known or known[0] != words[0]:
        raise Failure(f"Invalid MailType: {typed.value}")
    return [("mail_type", parse_mail_type(",".join(known)))]


def _is_mail_type(word: str) -> bool:
    try:
        return bool(word) and bool(parse_mail_type(word) or word.lower() == "none")
    except GrammarError:
        return False


def _gres(typed: Typed) -> Changes:
    if typed.value.lower() in ("help", "list"):
        raise Skip("gres")
    try:
        return [("tres_per_node", prefix_gres(typed.value) if typed.value else None)]
    except GrammarError as error:
        raise Failure(f"{ERROR}{error}") from None


def _switches(typed: Typed) -> Changes:
    count, _, wait = typed.value.partition("@")
    match = re.match(r"\s*([0-9]{1,9})", count)
    changes: Changes = [("required_switches", int(match[1]) if match else None)]
    if wait:
        try:
            changes.append(("wait_for_switch", parse_duration(wait) * 60))
        except GrammarError:
            raise Skip("", counts=True) from None
    return changes


def _specialised(name: str, field: str) -> Read:
    counted = _number(name, field, bits=16)
    return lambda typed: [(field, INFINITE)] if typed.value in ("-1", "*") else counted(typed)


def _end_time(typed: Typed) -> Changes:
    try:
        return keys.moment("end_time")(typed)
    except Skip as skipped:
        raise Skip(str(skipped), counts=True) from None


def _user(typed: Typed) -> Changes:
    if user_id(typed.value) is None:
        raise Failure(f"Invalid UserID: {typed.value}\nRequest aborted")
    return []


def user_id(text: str) -> int | None:
    """A user's number, from the number or the name; None for nobody."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    try:
        return pwd.getpwnam(text).pw_uid
    except (KeyError, UnicodeError):
        return None


def _ignored(typed: Typed) -> Changes:
    """There are no labels of the kind (MCSPlugin)."""
    raise Skip("", counts=True)


def _memory(name: str, per: str) -> Read:
    """MiB for each node or CPU; 0 is all of a node's."""
    counted = _number(name, "memory", bits=64)

    def read(typed: Typed) -> Changes:
        found = counted(typed)[0][1]
        field = f"memory_per_{per}" if found else "memory_per_node"
        return [(field, found)]

    return read


KEYS: tuple[Key, ...] = (
    Key("AdminComment", 6, _admin_comment, signed=True),
    Key("SiteFactor", 5, _signed_number("SiteFactor", "site_factor")),
    Key("ArrayTaskThrottle", 10, _throttle),
    Key("Clusters", 8, keys.text("clusters")),
    Key("ClusterFeatures", 8, keys.text("clusters")),
    Key("Comment", 3, keys.text("comment")),
    Key("DelayBoot", 5, _delay),
    Key("Extra", 3, keys.text("extra")),
    Key("TimeLimit", 5, _time_limit, signed=True),
    Key("TimeMin", 5, _minutes("TimeMin", "time_minimum")),
    Key("Priority", 2, _number("Priority", "priority")),
    Key("Nice", 2, _signed_number("Nice", "nice")),
    Key("CPUsPerTask", 9, _number("CPUsPerTask", "cpus_per_task", bits=16)),
    Key("CpusPerTres", 9, keys.text("cpus_per_tres", empty=None)),
    Key("NumCPUs", 6, _cpus),
    Key("NumTasks", 8, _number("NumTasks", "tasks")),
    Key("ReqProcs", 8, _number("NumTasks", "tasks")),
    Key("Requeue", 4, _number("Requeue", "requeue", bits=16)),
    Key("ReqNodes", 8, _nodes),
    Key("NumNodes", 8, _nodes),
    Key("ReqSockets", 4, _number("ReqSockets", "sockets_per_node", bits=16)),
    Key("ReqCores", 4, _number("ReqCores", "cores_per_socket", bits=16)),
    Key("TasksPerNode", 2, _number("TasksPerNode", "tasks_per_node", bits=16)),
    Key("ReqThreads", 4, _number("ReqThreads", "threads_per_core", bits=16)),
    Key("MinCPUsNode", 4, _number("MinCPUsNode", "minimum_cpus_per_node", bits=16)),
    Key("MinMemoryNode", 10, _memory("MinMemoryNode", "node")),
    Key("MinMemoryCPU", 10, _memory("MinMemoryCPU", "cpu")),
    Key("MinTmpDiskNode", 5, _number("MinTmpDiskNode", "temporary_disk_per_node")),
    Key("Partition", 2, keys.text("partition")),
    Key("QOS", 2, keys.text("qos")),
    Key("ReservationName", 3, keys.text("reservation")),
    Key("Name", 2, keys.text("name")),
    Key("JobName", 4, keys.text("name")),
    Key("WCKey", 1, keys.text("wckey", empty=None)),
    Key("StdErr", 6, keys.text("standard_error", empty=None)),
    Key("StdIn", 5, keys.text("standard_input", empty=None)),
    Key("StdOut", 6, keys.text("standard_output")),
    Key("Switches", 5, _switches),
    Key("wait-for-switch", 5, _number("wait-for-switch", "wait_for_switch")),
    Key("OverSubscribe", 2, keys.truth("OverSubscribe", "shared", None, "oversubscribe")),
    Key("Shared", 2, keys.truth("OverSubscribe", "shared", None, "oversubscribe")),
    Key("Contiguous", 3, keys.truth("Contiguous", "contiguous")),
    Key("CoreSpec", 4, _specialised("CoreSpec", "core_specification")),
    Key("MemPerTres", 5, keys.text("memory_per_tres", empty=None)),
    Key("ThreadSpec", 4, _specialised("ThreadSpec", "thread_specification")),
    Key("TresBind", 5, keys.text("tres_bind", empty=None)),
    Key("TresFreq", 5, keys.text("tres_freq", empty=None)),
    Key("TresPerJob", 8, keys.text("tres_per_job", empty=None)),
    Key("TresPerNode", 8, keys.text("tres_per_node", empty=None)),
    Key("TresPerSocket", 8, keys.text("tres_per_socket", empty=None)),
    Key("TresPerTask", 8, keys.text("tres_per_task", empty=None)),
    Key("ExcNodeList", 3, keys.text("excluded_nodes")),
    Key("NodeList", 8, keys.text("required_nodes")),
    Key("ReqNodeList", 8, keys.text("required_nodes")),
    Key("Features", 1, keys.text("constraints")),
    Key("Prefer", 3, keys.text("prefer", empty=None)),
    Key("Gres", 2, _gres),
    Key("Account", 1, keys.text("account")),
    Key("BurstBuffer", 1, keys.text("burst_buffer", empty=None)),
    Key("Dependency", 1, keys.text("dependency")),
    Key("Licenses", 1, keys.text("licenses")),
    Key("EligibleTime", 2, keys.moment("begin_time")),
    Key("StartTime", 2, keys.moment("begin_time")),
    Key("EndTime", 2, _end_time),
    Key("Reboot", 3, keys.truth("reboot", "reboot")),
    Key("UserID", 3, _user),
    Key("Deadline", 3, keys.moment("deadline")),
    Key("WorkDir", 1, keys.text("current_working_directory")),
    Key("MailType", 5, _mail_type),
    Key("MailUser", 5, keys.text("mail_user", empty=None)),
    Key("MCSLabel", 4, _ignored),
)
"""What a job is told, in the order in which a shortened key is looked up."""


# ---------------------------------------------------------------------------------------------- the command


async def update(session: Session, arguments: Sequence[str]) -> int:
    """``scontrol update key=value …``; which kind of object is meant follows from the keys."""
    if not arguments:
        session.output.error("too few arguments for update keyword\n")
        return 1
    named = _kinds_named(arguments)
    try:
        for kind, command in _KINDS.items():
            if kind in named:
                return await command(session, arguments)
    except Failure as failure:
        session.output.error(f"{failure}\n" if str(failure) else "")
        return failure.code
    session.output.error(
        "No valid entity in update command\n"
        'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or "SlurmctldDebug"\n'
    )
    return 1


_ENTITIES: tuple[tuple[str, int, str], ...] = (
    ("NodeName", 3, "node"),
    ("PartitionName", 3, "partition"),
    ("JobId", 3, "job"),
    ("JobName", 3, "job"),
    ("StepId", 4, "step"),
    ("ReservationName", 3, "reservation"),
    ("SlurmctldDebug", 2, "debug"),
)
"""Keys that say what kind of object is meant, and the least letters of each."""


def _kinds_named(arguments: Sequence[str]) -> set[str]:
    """A word without an ``=`` takes the next one as its value."""
    found: set[str] = set()
    words = iter(arguments)
    for word in words:
        key, equals, _ = word.partition("=")
        if not equals:
            next(words, None)
        kind = next((kind for name, shortest, kind in _ENTITIES if keys.abbreviates(key, name, shortest)), None)
        if kind is not None:
            found.add(kind)
    return found


async def _update_debug(session: Session, arguments: Sequence[str]) -> int:
    """``SlurmctldDebug=3``: as ``setdebug`` has it, by its number."""
    from slurmk.commands.scontrol_verbs import set_debug

    value = keys.value_of(arguments, "SlurmctldDebug", 2)
    if value is None or not re.fullmatch(r"[0-9]?", value):
        raise Failure(f"invalid debug level: {'(null)' if value is None else value}")
    if not session.call.caller.operator:
        raise Failure(f"slurm_update error: {os.strerror(errno.EACCES)}")
    return await set_debug(session, [value or "0"])


# ---------------------------------------------------------------------------------------------- jobs


def _pairs(arguments: Sequence[str], now: float) -> list[Typed]:
    """The words in their parts; a key without ``=`` takes the next word, and Nice may stand alone. Raises Failure."""
    found: list[Typed] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        typed = keys.typed(word, now)
        if typed is None and keys.abbreviates(word, "Nice", 2):
            typed = Typed(word, word, "", "100", now)
        elif typed is None and words:
            typed = Typed(word, word, "", words.pop(0), now)
        if typed is None:
            raise Failure(f"Invalid input: {word}\nRequest aborted")
        found.append(typed)
    return found


def _is_job_id(typed: Typed) -> bool:
    return not typed.sign and keys.abbreviates(typed.key, "JobId", 3)


def _read(pairs: Iterable[Typed], session: Session) -> tuple[Changes, int]:
    """The changes, and how many keys there were of them."""
    changes: Changes = []
    counted = 0
    for typed in pairs:
        key = keys.find_key(KEYS, typed.key + typed.sign) or keys.find_key(KEYS, typed.key)
        if key is None:
            raise Failure(f"Update of this parameter is not supported: {typed.text}\nRequest aborted")
        try:
            read = key.read(typed)
        except Skip as skipped:
            if str(skipped) == "gres":
                _tell_gres(session)
            elif str(skipped):
                session.output.error(f"{skipped}\n")
            counted += skipped.counts
            continue
        if typed.sign and not key.signed:
            raise Failure(f"{ERROR}Option {typed.text} does not accept [+|-]= syntax")
        changes += read
        counted += key.name != "UserID"
    return changes, counted


def _tell_gres(session: Session) -> None:
    kinds = session.controller.machine.site.gres_types
    session.output.write("Valid gres options are:\n" + "".join(f"{kind}[[:type]:count]\n" for kind in kinds))


async def _update_job(session: Session, arguments: Sequence[str]) -> int:
    pairs = _pairs(arguments, session.controller.now())
    identified = next((typed.value for typed in reversed(pairs) if _is_job_id(typed)), None)
    _check_relative(session, pairs)
    changes, counted = _read((typed for typed in pairs if not _is_job_id(typed)), session)
    if not counted:
        raise Failure("No changes specified")
    names = split_ids(identified) if identified else _named(session, pairs, changes) if identified is None else []
    sized = any((key := keys.find_key(KEYS, typed.key)) is not None and key.name in _SIZES for typed in pairs)
    if sized and identified:
        _load_one(session, identified.partition("+")[0], "Job resizing")
    code = 0
    for name in names:
        code = await _update_one(session, name, changes) or code
    if sized and identified and not code:
        _leave_files(session, identified)
    return code


_SIZES = ("NumNodes", "ReqNodes", "NodeList", "ReqNodeList")
"""Keys by which a job that runs is resized."""


def _leave_files(session: Session, name: str) -> None:
    """For a shell in a job that runs, whose size may have changed."""
    try:
        job = _first(session.controller, parse(name, session.controller.machine.jobs.values()))
    except SlurmError:
        return
    if job is not None and job.allocation is not None:
        scontrol_resize.leave_files(session, name, job.allocation)


def _check_relative(session: Session, pairs: Sequence[Typed]) -> None:
    """What is added to a limit is added to one job's, which has to be named before. Raises Failure."""
    job: str | None = None
    for typed in pairs:
        if _is_job_id(typed):
            job = typed.value
            continue
        key = keys.find_key(KEYS, typed.key)
        if key is None or key.name != "TimeLimit":
            continue
        if _time_limit(typed)[0][0] != "relative_limit":
            continue
        if job is None:
            raise Failure(f"{ERROR}JobId must precede TimeLimit increment or decrement")
        _load_one(session, job, "TimeLimit increment/decrement")


def _load_one(session: Session, name: str, what: str) -> None:
    """Raises Failure unless that names one job."""
    if not re.fullmatch(r"[0-9]{1,10}(_[0-9]{1,10})?", name):
        raise Failure(f"{ERROR}Invalid job ID {name}")
    machine = session.controller.machine
    number = int(name.partition("_")[0])
    job = machine.jobs.get(number)
    if job is None and not machine.jobs_of_array(number):
        error = SlurmError(Errno.INVALID_JOB_ID)
        raise Failure(f"{ERROR}Could not load state information for job {name}: {error}")
    if "_" not in name and max(len(machine.jobs_of_array(number)), len(machine.jobs_of_het(number))) > 1:
        raise Failure(f"{ERROR}{what} not supported for job arrays")


def _named(session: Session, pairs: Sequence[Typed], changes: Changes) -> list[str]:
    """The jobs of the name that is given, perhaps of one user's. Raises Failure."""
    name = next((str(value) for field, value in reversed(changes) if field == "name"), None)
    if name is None:
        raise Failure(f"{ERROR}No job ID specified")
    user = next((user_id(typed.value) for typed in pairs if keys.abbreviates(typed.key, "UserID", 3)), None)
    jobs = session.controller.machine.jobs
    found = [own_name(job) for job in jobs.values() if job.name == name and user in (None, job.credentials.user_id)]
    if not jobs:
        raise Failure(f"{ERROR}JobName {name} not found")
    if not found:
        of_user = "" if user is None else f"user ID {user} and "
        raise Failure(f"{ERROR}No jobs with {of_user}name '{name}'")
    return list(dict.fromkeys(found))


def bare_ids(argument: str) -> str:
    """``JobId=12`` and ``job=12`` as ``12``."""
    key, equals, value = argument.partition("=")
    return value if equals and key.lower() in ("jobid", "job") else argument


def split_ids(text: str) -> list[str]:
    """``12,13_[1,2]`` at the commas outside of brackets."""
    return [word for word in re.split(r"[, ](?![^\[]*\])", text) if word] or [text]


async def _update_one(session: Session, name: str, changes: Changes) -> int:
    """One job as typed. Relative limits and ends are resolved against what the job has now."""
    controller, output = session.controller, session.output
    try:
        selection = parse(name, controller.machine.jobs.values())
        if selection.step_id is not None:
            raise SlurmError(Errno.INVALID_JOB_ID)
        job = _first(controller, selection)
        resolved = tuple(_resolved(change, job) for change in changes) if job is not None else tuple(changes)
    except SlurmError as error:
        session.say(error_line(name, error))
        return 1
    if job is not None and not job.array_job_id and "array_maximum_running" in dict(changes):
        session.say(f"{ERROR}Update of ArrayTaskThrottle is only allowed on ArrayJobId\n")
    event: Event = UpdateJob(controller.now(), _caller(session), (selection,), resolved)
    return tell_all(output, {name_of(selection): name}, await controller.apply(event), session.quiet)


def _caller(session: Session) -> Caller:
    """Who asks, or whom an operator asks as (--uid)."""
    caller, wanted = session.call.caller, session.user_id
    if wanted is None or not caller.operator:
        return caller
    name = user_name(wanted)
    return Caller(wanted, name, operator=name in session.controller.machine.site.operators)


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
            raise Failure(f"{ERROR}Cannot increment/decrement TimeLimit when set to UNLIMITED.")
        if job.time_limit + value < 0:
            limits = f"({-value} > {job.time_limit})"
            raise Failure(f"{ERROR}TimeLimit decrement larger than current time limit {limits}")
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


_KINDS = {
    "job": _update_job,
    "step": scontrol_step.update,
    "reservation": scontrol_reservation.update,
    "node": scontrol_node.update,
    "partition": scontrol_partition.update,
    "debug": _update_debug,
}
"""What changes each kind of object, in the order in which they are looked for: a job may be told a partition and a
reservation, and a reservation a partition."""
