"""scancel: end jobs and steps, or send them signals (scancel(1)).

Plain ids go to the machine as they are. With a filter, a signal or a step, the jobs meant are looked up first, as Slurm
does; that difference is seen in what an unknown or finished job is told.
"""

from __future__ import annotations

import asyncio
import pwd
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from grammar.arguments import Argument, Given, Option, Status, parse_arguments
from grammar.errors import GrammarError
from grammar.hostlist import expand
from grammar.signals import parse_signal
from grammar.sluid import typed_sluid
from slurmk.commands.call import VERSION_TEXT, Call, Controller, Output, Unreadable
from slurmk.commands.command_help import help_text
from slurmk.commands.job_text import raw_array_id, step_owner
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import JobSelection, Kill, KillFlag, UpdateJob
from slurmk.core.selection import NO_JOB, name_of, parse
from slurmk.model.job import Job
from slurmk.model.states import FLAG_CODES, NO_VALUE, STATE_CODES, JobFlag, JobState

_VALUE = Argument.REQUIRED

OPTIONS: tuple[Option, ...] = (
    Option(("account",), "A", _VALUE),
    Option(("admin-comment",), argument=_VALUE),
    Option(("batch",), "b"),
    Option(("clusters", "cluster"), "M", _VALUE, note="this cluster's name"),
    Option(("cron",), "c"),
    Option(("ctld",)),
    Option(("full",), "f"),
    Option(("help",)),
    Option(("hurry",), "H"),
    Option(("interactive",), "i"),
    Option(("me",)),
    Option(("name", "jobname"), "n", _VALUE),
    Option(("nodelist",), "w", _VALUE),
    Option(("partition",), "p", _VALUE),
    Option(("qos",), "q", _VALUE),
    Option(("quiet",), "Q"),
    Option(("reservation",), "R", _VALUE),
    Option(("sibling",), argument=_VALUE, status=Status.REFUSED, note="there are no federations"),
    Option(("signal",), "s", _VALUE),
    Option(("state",), "t", _VALUE),
    Option(("usage",)),
    Option(("user",), "u", _VALUE),
    Option(("verbose",), "v"),
    Option(("version",), "V"),
    Option(("wckey",), argument=_VALUE),
)

HELP: Mapping[str, str] = {
    "account": "jobs of this account",
    "admin-comment": "note this as AdminComment of what is cancelled",
    "batch": "signal the batch script's shell only",
    "clusters": "the cluster to ask",
    "cron": "confirm that a job of scrontab is meant",
    "ctld": "leave the choice of jobs to the controller, as always: ask for nothing",
    "full": "signal the batch script with its children, and all steps",
    "hurry": "skip staging out",
    "interactive": "ask before each job or step",
    "me": "my jobs",
    "name": "jobs of this name",
    "nodelist": "jobs on these nodes",
    "partition": "jobs in this partition",
    "qos": "jobs with this QOS",
    "reservation": "jobs in this reservation",
    "signal": "send this signal instead of cancelling",
    "state": "jobs in this state: PENDING, RUNNING or SUSPENDED",
    "user": "jobs of this user",
    "wckey": "jobs with this key",
}

USAGE = """\
Usage: scancel [-A account] [-b] [-f] [-H] [--me] [-n name] [-p partition] [-q qos] [-Q] [-R reservation] [-s signal]
               [-t state] [-u user] [-v] [-w nodes] [--wckey=key] [job_id[_array_id][.step_id] ...]
"""

ENVIRONMENT: dict[str, str] = {
    "SCANCEL_ACCOUNT": "account",
    "SCANCEL_CRON": "cron",
    "SCANCEL_CTLD": "ctld",
    "SCANCEL_HURRY": "hurry",
    "SCANCEL_NAME": "name",
    "SCANCEL_PARTITION": "partition",
    "SCANCEL_QOS": "qos",
    "SCANCEL_STATE": "state",
    "SCANCEL_USER": "user",
    "SCANCEL_WCKEY": "wckey",
}

SWITCHES: dict[str, str] = {
    "SCANCEL_BATCH": "batch",
    "SCANCEL_FULL": "full",
    "SCANCEL_INTERACTIVE": "interactive",
    "SCANCEL_VERBOSE": "verbose",
}
"""Variables that are ``true`` or ``false``."""

LONGEST_ANSWER = 128
"""Bytes of an answer to ``--interactive``."""

_FILTERS: tuple[tuple[str, str], ...] = (
    ("account", "account"),
    ("name", "job_name"),
    ("nodelist", "nodelist"),
    ("partition", "partition"),
    ("qos", "qos"),
    ("reservation", "reservation"),
    ("state", "state"),
    ("user", "user_name"),
    ("wckey", "wckey"),
)
"""Options that choose jobs, with the names that the message about no match uses."""

_QUIET_ERRORS = (Errno.INVALID_JOB_ID, Errno.ALREADY_DONE)
"""What a plain scancel says nothing about, because the job is gone either way."""

_JOB = re.compile(r"[1-9][0-9]{0,9}(?:_(?:[0-9]+|\[[0-9,:-]+\]|\*))?(?:\+[0-9]+)?(?:\.[0-9]{1,9})?\Z")


class Failure(Exception):
    """Ends the command with this text on standard error."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one scancel is asked for."""

    options: Mapping[str, str]
    ids: tuple[str, ...]
    selections: tuple[JobSelection, ...]
    user_id: int | None
    states: frozenset[int] | None
    nodes: frozenset[str] | None
    signal: int | None
    flags: KillFlag
    verbose: bool
    quiet: bool

    @property
    def filtered(self) -> bool:
        return any(name in self.options for name, _ in _FILTERS) or "me" in self.options

    @property
    def plain(self) -> bool:
        """True when nothing but ids was given, so that no job need be looked up."""
        steps = any(selection.step_id is not None for selection in self.selections)
        return not (self.filtered or steps or self.signal is not None or self.flags & KillFlag.BATCH or self.interactive)

    @property
    def interactive(self) -> bool:
        """Whether to ask; ``--ctld`` leaves no choice to ask about."""
        return "interactive" in self.options and "ctld" not in self.options


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Answer one scancel. The exit code is that of the last refusal (Slurm's error number, its low 8 bits)."""
    try:
        given, operands = parse_arguments("scancel", OPTIONS, call.arguments)
    except GrammarError as error:
        output.error(f'{error}\nTry "scancel --help" for more information\n')
        return 1
    for option in given:
        if option.name == "help":
            output.write(help_text("scancel", OPTIONS, HELP, "[job_id[_array_id][.step_id] ...]"))
            return 0
        if option.name in ("usage", "version"):
            output.write(USAGE if option.name == "usage" else VERSION_TEXT + "\n")
            return 0
    try:
        request = read_request(call, controller, given, operands, output)
    except Failure as failure:
        output.error(f"{failure}\n")
        return 1
    if request.plain:
        return await _cancel_plain(call, controller, output, request)
    return await _cancel_matching(call, controller, output, request)


# ---------------------------------------------------------------------------------------------- what is asked for


def read_request(
    call: Call, controller: Controller, given: Sequence[Given], operands: Sequence[str], output: Output
) -> Request:
    """Options over environment. Raises Failure with Slurm's message."""
    options = {name: call.environment[variable] for variable, name in ENVIRONMENT.items() if variable in call.environment}
    for variable, name in SWITCHES.items():
        value = call.environment.get(variable)
        if value is None or value.lower() == "false":
            continue
        if value.lower() == "true":
            options[name] = ""
        else:
            output.error(f"scancel: error: Unrecognized {variable} value: {value}\n")
    state = options.get("state")
    if state is not None and state.lower() not in _STATES:
        raise Failure(f"Unrecognized SCANCEL_STATE value: {state}\nValid job states are PENDING, RUNNING, and SUSPENDED")
    options.update({option.name: option.value or "" for option in given})
    if "account" in options:
        options["account"] = options["account"].lower()
    _refuse(options, controller)
    ids = tuple(word for operand in operands for word in _split(operand))
    request = Request(
        options=options,
        ids=ids,
        selections=tuple(_selection(controller, word) for word in ids),
        user_id=call.caller.user_id if "me" in options else _user_id(options.get("user")),
        states=_states(options.get("state")),
        nodes=_nodes(options.get("nodelist")),
        signal=_signal(options.get("signal")),
        flags=_flags(options),
        verbose="verbose" in options,
        quiet="quiet" in options,
    )
    if not request.ids and not request.filtered:
        raise Failure("scancel: error: No job identification provided")
    return request


def _refuse(options: Mapping[str, str], controller: Controller) -> None:
    if "sibling" in options:
        raise Failure("scancel: error: --sibling: Not a valid federated job")
    cluster = options.get("clusters")
    if cluster and cluster not in (controller.machine.site.cluster_name, "all"):
        raise Failure(
            f"scancel: error: No cluster '{cluster}' known by database.\n"
            f"scancel: error: '{cluster}' can't be reached now, or it is an invalid entry for --cluster.  "
            "Use 'sacctmgr list clusters' to see available clusters.\nscancel: fatal: Could not get cluster information"
        )


def _split(operand: str) -> list[str]:
    """``12,13_[1,2]`` at the commas outside of brackets."""
    return [word for word in re.split(r",(?![^\[]*\])", operand) if word] or [operand]


def _selection(controller: Controller, word: str) -> JobSelection:
    if word.startswith("s"):
        try:
            return parse(word, controller.machine.jobs.values())
        except SlurmError:
            raise Failure(f"scancel: error: Invalid SLUID {word}") from None
    if not _JOB.match(word) or int(re.split(r"[_+.]", word)[0]) >= 1 << 32:
        raise Failure(f"scancel: error: Invalid job id {word}")
    try:
        return parse(word)
    except SlurmError:
        raise Failure(f"scancel: error: Invalid job id {word}") from None


def _user_id(name: str | None) -> int | None:
    if name is None:
        return None
    if name.isascii() and name.isdigit() and len(name) <= 10:
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        raise Failure(f"scancel: error: Invalid user name: {name}") from None


def _states(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    state = _STATES.get(text.lower())
    if state is None:
        raise Failure(f"Invalid job state specified: {text}\nValid job states are PENDING, RUNNING, and SUSPENDED")
    return frozenset((state,))


_STATES: dict[str, int] = {
    **{state.name.lower(): int(state) for state in STATE_CODES},
    **{code.lower(): int(state) for state, code in STATE_CODES.items()},
    **{(flag.name or "").lower(): int(flag) for flag in FLAG_CODES},
    **{code.lower(): int(flag) for flag, code in FLAG_CODES.items() if code},
}


def _nodes(text: str | None) -> frozenset[str] | None:
    if text is None:
        return None
    try:
        return frozenset(expand(text))
    except GrammarError:
        raise Failure(f"scancel: error: '{text}' invalid entry for --nodelist") from None


def _signal(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_signal(text)
    except GrammarError:
        raise Failure(f"Unknown job signal: {text}") from None


def _flags(options: Mapping[str, str]) -> KillFlag:
    flags = KillFlag.NONE
    for name, flag in (("batch", KillFlag.BATCH), ("full", KillFlag.FULL), ("hurry", KillFlag.HURRY), ("cron", KillFlag.CRON)):
        if name in options:
            flags |= flag
    return flags


# ---------------------------------------------------------------------------------------------- cancelling


async def _cancel_plain(call: Call, controller: Controller, output: Output, request: Request) -> int:
    if request.verbose:
        for word in request.ids:
            output.error(f"scancel: Terminating job {word}\n")
    known = tuple(selection for selection in request.selections if selection.job_id != NO_JOB)
    if not known:
        return 0
    await _note(call, controller, output, request, known)
    answers = await controller.apply(Kill(controller.now(), call.caller, known, None, request.flags))
    names = {name_of(selection): word for selection, word in zip(request.selections, request.ids, strict=True)}
    code = 0
    for refused in _refusals(answers):
        silent = refused.error.errno in _QUIET_ERRORS
        if (request.verbose or not silent) and not request.quiet:
            name = names.get(refused.subject, refused.subject)
            output.error(f"scancel: error: Kill job error on job id {name}: {refused.error}\n")
        if not silent:
            code = int(refused.error.errno) & 0xFF
    return code


def _refusals(answers: Iterable[Accepted | Refused]) -> Iterator[Refused]:
    for answer in answers:
        if isinstance(answer, Refused):
            yield answer


async def _note(
    call: Call, controller: Controller, output: Output, request: Request, selections: tuple[JobSelection, ...]
) -> None:
    comment = request.options.get("admin-comment")
    if comment is None or not selections:
        return
    event = UpdateJob(controller.now(), call.caller, selections, (("admin_comment", comment),))
    for refused in _refusals(await controller.apply(event)):
        if refused.error.errno not in _QUIET_ERRORS and not request.quiet:
            output.error(f"scancel: error: AdminComment of job {refused.subject}: {refused.error}\n")


@dataclass(frozen=True, slots=True)
class Target:
    """One record, or one step, that was matched."""

    job: Job
    selection: JobSelection
    name: str


async def _cancel_matching(call: Call, controller: Controller, output: Output, request: Request) -> int:
    active = [job for job in controller.machine.jobs.values() if not job.state.finished or job.flags & JobFlag.COMPLETING]
    code = 0
    for word, selection in zip(request.ids, request.selections, strict=True):
        if not any(_covers(selection, job) for job in active):
            code = 1
            if not request.quiet:
                kind = "job step id" if selection.step_id is not None or selection.job_id == NO_JOB else "job id"
                if selection.job_id == NO_JOB and selection.step_id is None:
                    word += f".{NO_VALUE}"  # what an unknown SLUID is called here
                output.error(f"scancel: error: Kill job error on {kind} {word}: Invalid job id specified\n")
    if request.ids and code and not any(_covers(selection, job) for selection in request.selections for job in active):
        return code
    private = "jobs" in controller.machine.site.private_data and not call.caller.operator
    known = [job for job in active if not private or job.credentials.user_id == call.caller.user_id]
    targets = _without_followers(_targets(request, known))
    if not targets:
        if request.verbose and request.filtered:
            named = "".join(f"{label}={request.options[name]} " for name, label in _FILTERS if name in request.options)
            output.error(f"scancel: error: No active jobs match ALL job filters, including: {named}\n")
        return code
    if request.interactive:
        each = [one for target in targets for one in _one_by_one(request, target)]
        targets = [target for target in each if await _confirmed(output, target)]
    return await _send(call, controller, output, request, targets) or code if targets else code


def _one_by_one(request: Request, target: Target) -> Iterator[Target]:
    """Elements of an array that were named are asked about one by one."""
    if target.selection not in request.selections or not target.job.is_array or target.selection.step_id is not None:
        yield target
        return
    if not target.selection.array_tasks:
        yield target
    for task in (task for part in target.selection.array_tasks for task in part):
        selection = replace(target.selection, array_tasks=(range(task, task + 1),))
        if _covers(selection, target.job):
            yield Target(target.job, selection, name_of(selection))


async def _confirmed(output: Output, target: Target) -> bool:
    """Ask, again and again until the answer begins with y or n; no answer at all is none."""
    kind = "step_id" if target.selection.step_id is not None else "job_id"
    name = str(target.job.job_id) if kind == "job_id" and target.job.het_job_id else target.name
    while True:
        output.write(f"Cancel {kind}={name} name={target.job.name} partition={target.job.partition} [y/n]? ")
        answer = (await read_line(output)).lower()
        if answer[:1] in (b"y", b"n", b""):
            return answer.startswith(b"y")


async def read_line(output: Output) -> bytes:
    """The next line of the caller's standard input, with its end; nothing where there is no more."""
    line = b""
    try:
        while len(line) < LONGEST_ANSWER and not line.endswith(b"\n") and (byte := await output.read_input(1)):
            line += byte
    except Unreadable:
        return b""
    return line


def _without_followers(targets: Iterable[Target]) -> list[Target]:
    """The targets without components of het jobs whose first one is a target, too."""
    found = list(targets)
    leaders = {target.job.job_id for target in found if target.job.het_job_id and target.selection.step_id is None}
    return [target for target in found if not target.job.het_job_offset or target.job.het_job_id not in leaders]


def _covers(selection: JobSelection, job: Job) -> bool:
    """Whether the selection names this record, or elements that it stands for."""
    if selection.job_id not in (job.job_id, job.array_job_id, job.het_job_id):
        return False
    if selection.het_offset is not None:
        return job.het_job_id == selection.job_id and job.het_job_offset == selection.het_offset
    if not selection.array_tasks:
        return True
    if job.array_task_id is not None:
        return any(job.array_task_id in part for part in selection.array_tasks)
    return any(task in own for part in selection.array_tasks for task in part for own in job.array_tasks)


def _targets(request: Request, active: Sequence[Job]) -> Iterator[Target]:
    for job in active:
        if not _matches(request, job):
            continue
        if not request.selections:
            yield _record(job)
            continue
        for word, selection in zip(request.ids, request.selections, strict=True):
            if not _covers(selection, job):
                continue
            sluid = typed_sluid(word.partition(".")[0])
            if selection.step_id is not None:
                if job.state is not JobState.PENDING and _is_meant(job, selection, active):
                    step = JobSelection(*_identity(job), step_id=selection.step_id)
                    yield Target(job, step, f"{sluid or step_owner(job)}.{selection.step_id}")
            elif selection.array_tasks and job.array_tasks:
                yield Target(job, selection, name_of(selection))
            else:
                record = _record(job)
                yield replace(record, name=sluid) if sluid else record


def _is_meant(job: Job, selection: JobSelection, active: Iterable[Job]) -> bool:
    """Whether a step is sought in this job: a step that is named by the first component of a het job is in all that have it."""
    if not job.het_job_id or selection.het_offset is not None or selection.job_id != job.het_job_id:
        return True
    members = (each for each in active if each.het_job_id == job.het_job_id)
    having = {each.job_id for each in members if any(step.step_id == selection.step_id for step in each.steps)}
    return job.job_id in having if having else job.job_id == selection.job_id


def _identity(job: Job) -> tuple[int, tuple[range, ...], int | None]:
    if job.array_task_id is not None:
        return job.array_job_id, (range(job.array_task_id, job.array_task_id + 1),), None
    if job.het_job_id:
        return job.het_job_id, (), job.het_job_offset
    return job.job_id, job.array_tasks, None


def _record(job: Job) -> Target:
    """The record by itself; components of het jobs go by their own numbers, and with the first of them go all."""
    if job.het_job_id:
        return Target(job, JobSelection(job.job_id), str(job.job_id))
    return Target(job, JobSelection(*_identity(job)), raw_array_id(job))


def _matches(request: Request, job: Job) -> bool:
    options = request.options
    if request.user_id is not None and job.credentials.user_id != request.user_id:
        return False
    if request.states is not None and not any(_in_state(job, state) for state in request.states):
        return False
    if request.nodes is not None and not (job.allocation and not request.nodes.isdisjoint(job.allocation.nodes)):
        return False
    wanted = (
        ("account", (job.account.lower(),)),
        ("name", (job.name,)),
        ("partition", tuple(job.partition.split(","))),
        ("qos", (job.qos,)),
        ("reservation", tuple(job.reservation.split(","))),
        ("wckey", (job.request.wckey or "",)),
    )
    return all(name not in options or options[name] in values for name, values in wanted)


def _in_state(job: Job, state: int) -> bool:
    return bool(job.flags & state) if state >= 0x100 else job.state == state


async def _send(call: Call, controller: Controller, output: Output, request: Request, targets: Sequence[Target]) -> int:
    """Signal the targets; those that take no signal yet, as they wait or their script is about to run, again and again."""
    await _note(call, controller, output, request, tuple(target.selection for target in targets))
    code, verbose = 0, request.verbose
    for delay in (*RETRY_DELAYS, None):
        last = delay is None or "ctld" in request.options
        told, early = await _send_once(call, controller, output, replace(request, verbose=verbose), targets, last=last)
        code, verbose = told or code, False
        if not early or delay is None:
            break
        if request.verbose:
            output.error("scancel: Job is in transitional state, retrying\n" * len(early))
        await asyncio.sleep(delay)
        jobs = controller.machine.jobs
        targets = [replace(target, job=jobs.get(target.job.job_id, target.job)) for target in early]
    return code


RETRY_DELAYS: tuple[float, ...] = tuple(range(5, 14))
"""Seconds between one attempt to signal a job and the next."""


async def _send_once(
    call: Call, controller: Controller, output: Output, request: Request, targets: Sequence[Target], *, last: bool
) -> tuple[int, list[Target]]:
    """One event for all targets that are treated alike: the exit code, and unless this is the ``last`` attempt those that
    take no signal yet. Waiting jobs know no batch script: killing it cancels them."""
    code, early = 0, []
    waiting = [target for target in targets if target.job.pending]
    for group, flags in ((waiting, KillFlag.NONE), ([target for target in targets if not target.job.pending], request.flags)):
        if not group:
            continue
        if request.verbose:
            output.error("".join(f"scancel: {_told(request, target)}\n" for target in group))
        names = {name_of(target.selection): target for target in group}
        signal = None if request.signal == 9 and group is waiting else request.signal
        if signal is None and flags & KillFlag.BATCH:
            signal = 9
        event = Kill(controller.now(), call.caller, tuple(target.selection for target in group), signal, flags)
        for refused in _refusals(await controller.apply(event)):
            target = names.get(refused.subject)
            if refused.error.errno is Errno.TRANSITION_STATE_NO_UPDATE and target is not None and not last:
                early.append(target)
                continue
            if refused.error.errno is Errno.ALREADY_DONE and not request.verbose:
                continue
            if not request.quiet:
                output.error(f"scancel: error: Kill job error on {_named(target, refused)}: {refused.error}\n")
            if refused.error.errno is not Errno.ALREADY_DONE and "ctld" not in request.options:
                code = int(refused.error.errno) & 0xFF
    return code, early


def _named(target: Target | None, refused: Refused) -> str:
    if target is None:
        return f"job id {refused.subject}"
    if target.selection.step_id is not None:
        return f"job step id {step_owner(target.job)}"
    return f"job id {target.name}"


def _told(request: Request, target: Target) -> str:
    if target.selection.step_id is not None:
        return f"Signal {request.signal} to step {target.name}" if request.signal else f"Terminating step {target.name}"
    if request.signal is None and not request.flags & KillFlag.BATCH:
        return f"Terminating job {target.name}"
    kind = "batch job" if request.flags & KillFlag.BATCH else "full job" if request.flags & KillFlag.FULL else "job"
    return f"Signal {request.signal or 9} to {kind} {target.name}"
