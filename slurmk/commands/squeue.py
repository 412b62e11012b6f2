"""squeue: the jobs and steps that the controller knows (squeue(1)).

The queue may hold ten thousand jobs: a format is compiled once, rows are rendered in pieces, and others are served
between two pieces.
"""

from __future__ import annotations

import asyncio
import pwd
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from grammar.arguments import Given
from grammar.arrays import LARGEST_ARRAY, parse_array
from grammar.errors import GrammarError
from grammar.formats import Column, Field, Layout, all_columns, compile_format, parse_long_format, parse_short_format
from grammar.hostlist import expand
from grammar.sluid import typed_sluid
from grammar.times import INFINITE, parse_duration_seconds
from slurmk.commands import squeue_fields as fields
from slurmk.commands.call import Call, Controller, Failure, Output
from slurmk.commands.command_options import from_environment, meanings
from slurmk.commands.documents.envelope import Wanted
from slurmk.commands.documents.printing import form, list_order, print_jobs, print_rows, print_steps
from slurmk.commands.documents.steps import StepView
from slurmk.commands.documents.values import job_state
from slurmk.commands.frame import early_answer, interval, read_options
from slurmk.commands.job_text import JobText, raw_array_id, running_steps, today
from slurmk.commands.squeue_options import OPTIONS, USAGE_TEXT
from slurmk.core.selection import number_of
from slurmk.model.job import BATCH_STEP, EXTERN_STEP, INTERACTIVE_STEP, Job
from slurmk.model.states import FLAG_CODES, STATE_CODES, JobFlag, JobState

PIECE = 500
"""Rows that are rendered before others are served."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobName:
    """A job or step as ``-j`` and ``-s`` name it."""

    job_id: int
    task: int | None = None
    step: int | None = None


@dataclass(slots=True)
class Request:
    """What one squeue is asked for. A filter that is None was not given; an empty one lets nothing through."""

    accounts: frozenset[str] | None = None
    licenses: frozenset[str] | None = None
    names: frozenset[str] | None = None
    nodes: frozenset[str] | None = None
    partitions: frozenset[str] | None = None
    qos: frozenset[str] | None = None
    reservations: frozenset[str] | None = None
    users: frozenset[int] | None = None
    jobs: tuple[JobName, ...] | None = None
    steps: tuple[JobName, ...] | None = None
    states: tuple[int, ...] | None = None  # base states and flags; empty: all
    step_view: bool = False
    show_all: bool = False
    array: bool = False
    priority: bool = False
    long: bool = False
    start: bool = False
    only_state: bool = False
    header: bool = True
    convert: bool = True
    not_user: int | None = None
    over: int | None = None  # seconds
    under: int | None = None
    iterate: int = 0
    verbose: int = 0
    sort: str | None = None
    short_format: str | None = None
    long_format: str | None = None
    clusters: tuple[str, ...] = ()
    tasks_length: int | None = None
    form: Wanted | None = None  # --json, --yaml
    options: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Answer one squeue. Exit code 1 for wrong options and for a single job that does not exist."""
    words = replace(call, arguments=attach_optional(call.arguments))
    given, operands = read_options(words, OPTIONS, in_order=True)
    answer = _information(call, given)
    if answer is not None:
        output.write(answer)
        return 0
    if operands:
        raise Failure(f"squeue: error: Unrecognized option: {operands[0]}\nUsage: squeue {USAGE_TEXT}\n")
    request = read_request(call, controller, given)
    request.form = form(call, given, output)
    return await _answer(call, controller, output, request)


def attach_optional(arguments: Sequence[str]) -> list[str]:
    """``-j 5`` as ``-j5``: these options take the next word unless it is an option itself, which getopt does not do."""
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*words, word, *rest]
        match = _OPTIONAL.match(word)
        if match and rest and not rest[0].startswith("-"):
            if match[1] and len(word) > 2:
                words.append(word[:-1])
            letter = match[1] or ("j" if word.startswith("--j") else "s")
            words.append(f"--{'jobs' if letter == 'j' else 'steps'}={rest.pop(0)}")
        else:
            words.append(word)
    return words


_OPTIONAL = re.compile(r"-[ahlPrv]*([js])\Z|--(?:jo|job|jobs|ste|step|steps)\Z")


def _information(call: Call, given: Sequence[Given]) -> str | None:
    for option in given:
        if option.name == "helpstate":
            return "".join(f"{name}\n" for name in _STATE_NAMES)
        if option.name == "helpformat":
            return _in_columns([f"%{letter}" for letter in fields.HELP_LETTERS], 6, 8)
        if option.name == "helpFormat":
            return _in_columns(list(fields.NAMES), 20, 4)
    return early_answer(call, given, OPTIONS, meanings(OPTIONS), USAGE_TEXT)


def _in_columns(words: list[str], width: int, columns: int) -> str:
    rows = (words[start : start + columns] for start in range(0, len(words), columns))
    return "".join("".join(word.ljust(width) for word in row) + "\n" for row in rows)


# ---------------------------------------------------------------------------------------------- what is asked for


def read_request(call: Call, controller: Controller, given: Sequence[Given]) -> Request:
    """Options over environment over defaults. Raises Failure with Slurm's message."""
    request = Request()
    options = _layered(call, given)
    request.options = options
    length = call.environment.get("SLURM_BITSTR_LEN")
    request.tasks_length = int(length) if length is not None and re.fullmatch(r"\d{1,6}", length) else None
    for name, value in options.items():
        _READERS.get(name, _pass_over)(request, value, call, controller)
    if request.only_state and set(options) - _WITH_ONLY_STATE:
        raise Failure(
            "squeue: fatal: Option --only-job-state only works alone, with -j (--jobs) and/or -t (--states) parameters, "
            "parameters for cluster/federation selection, and the printing options.\n"
        )
    request.verbose = sum(option.name == "verbose" for option in given)
    return request


_WITH_ONLY_STATE = frozenset(
    (
        "only-job-state",
        "jobs",
        "states",
        "clusters",
        "federation",
        "local",
        "sibling",
        "format",
        "Format",
        "noheader",
        "verbose",
        "array",
        "json",
        "yaml",
    )
)


def _layered(call: Call, given: Sequence[Given]) -> dict[str, str]:
    typed: dict[str, str] = {}
    for option in given:
        for one, other in (("format", "Format"), ("Format", "format")):
            if option.name == one and other in typed:
                letters = {"format": "-o (--format)", "Format": "-O (--Format)"}
                raise Failure(f"squeue: error: {letters[one]} is incompatible with {letters[other]}\n")
        typed[option.name] = option.value if option.value is not None else ""
        if option.name in ("jobs", "steps") and option.value is None:
            typed[option.name] = "\0"
    if "long" in typed and "format" in typed:
        raise Failure(
            "squeue: fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry.\n"
        )
    shaped = {"format", "Format", "long", "start", "steps"} & typed.keys()
    environment = from_environment(OPTIONS, call.environment)
    if "format" in environment:
        environment.pop("Format", None)
    for name, value in environment.items():
        if name not in typed and not (name in ("format", "Format") and shaped):
            typed[name] = value
    return typed


def _names(value: str) -> frozenset[str]:
    return frozenset(word for word in value.split(",") if word)


def _set_names(attribute: str) -> Callable[[Request, str, Call, Controller], None]:
    def read(request: Request, value: str, call: Call, controller: Controller) -> None:
        setattr(request, attribute, _names(value))

    return read


def _read_accounts(request: Request, value: str, call: Call, controller: Controller) -> None:
    request.accounts = _names(value.lower())


def _set(attribute: str, constant: object) -> Callable[[Request, str, Call, Controller], None]:
    def read(request: Request, value: str, call: Call, controller: Controller) -> None:
        setattr(request, attribute, constant)

    return read


def _set_text(attribute: str) -> Callable[[Request, str, Call, Controller], None]:
    def read(request: Request, value: str, call: Call, controller: Controller) -> None:
        setattr(request, attribute, value)

    return read


def _pass_over(request: Request, value: str, call: Call, controller: Controller) -> None:
    """Options that are accepted, or were answered before."""


def _read_jobs(request: Request, value: str, call: Call, controller: Controller) -> None:
    if value != "\0":
        request.jobs = tuple(_job_name(controller, word) for word in dict.fromkeys(value.split(",")) if word)


def _job_name(controller: Controller, text: str) -> JobName:
    if sluid := typed_sluid(text.partition(".")[0]):
        return JobName(number_of(sluid, controller.machine.jobs.values()))
    match = _JOB.match(text)
    if match is None or not 0 < int(match[1]) < 1 << 32:
        raise Failure(f"squeue: error: Invalid job id: {text}\n")
    return JobName(int(match[1]), None if match[2] is None else int(match[2]))


_JOB = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,9}))?(?:\+[0-9]*|\..*)?\Z")


def _read_steps(request: Request, value: str, call: Call, controller: Controller) -> None:
    request.step_view = True
    if value != "\0":
        request.steps = tuple(_step_name(word) for word in dict.fromkeys(value.split(",")) if word)


def _step_name(text: str) -> JobName:
    match = _STEP.match(text)
    if match is None or int(match[1]) == 0 or match[3].startswith("-"):
        raise Failure(f"squeue: error: Invalid job_step id: {text}{'' if '.' in text else '.??'}\n")
    word = match[3]
    step = _STEP_WORDS.get(word, int(word) if word.isdigit() and len(word) < 10 else -1)
    return JobName(int(match[1]), None if match[2] is None else int(match[2]), step)


_STEP = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,9}))?\.([^.]+)\Z")
_STEP_WORDS = {"batch": BATCH_STEP, "extern": EXTERN_STEP, "interactive": INTERACTIVE_STEP}


def _read_users(request: Request, value: str, call: Call, controller: Controller) -> None:
    found = set()
    for word in dict.fromkeys(value.split(",")):
        if not word:
            continue
        user_id = _user_id(word)
        if user_id is None:
            request.warnings.append(f"squeue: error: Invalid user: {word}\n\n")
        else:
            found.add(user_id)
    request.users = frozenset(found)


def _user_id(word: str) -> int | None:
    if word.isascii() and word.isdigit() and len(word) <= 10:
        return int(word)
    try:
        found = pwd.getpwnam(word).pw_uid
    except (KeyError, ValueError):
        return None
    return None if found == _NOBODY else found


_NOBODY = 65534
"""Who has no account; as a name, no user of Slurm's."""


def _read_me(request: Request, value: str, call: Call, controller: Controller) -> None:
    request.users = (request.users or frozenset()) | {call.caller.user_id}


def _read_not_me(request: Request, value: str, call: Call, controller: Controller) -> None:
    request.not_user = call.caller.user_id


def _read_nodes(request: Request, value: str, call: Call, controller: Controller) -> None:
    try:
        names = expand(value)
    except GrammarError:
        raise Failure(f"squeue: error: '{value}' invalid entry for --nodelist\n") from None
    for name in names:
        if name not in controller.machine.nodes:
            raise Failure(f"squeue: error: Invalid node name {name}\n")
    request.nodes = frozenset(names)


_STATES: dict[str, int] = {}
for _state, _code in STATE_CODES.items():
    _STATES[_state.name.lower()] = _STATES[_code.lower()] = int(_state)
for _flag, _code in FLAG_CODES.items():
    _STATES[(_flag.name or "").lower()] = _STATES[_code.lower()] = int(_flag)

_FLAG_NAMES: tuple[str, ...] = (
    "completing",
    "configuring",
    "expediting",
    "resizing",
    "resv_del_hold",
    "requeued",
    "requeue_fed",
    "requeue_hold",
    "revoked",
    "signaling",
    "special_exit",
    "stage_out",
    "stopped",
)
_STATE_NAMES: tuple[str, ...] = (*(state.name.lower() for state in STATE_CODES), *_FLAG_NAMES)


def _read_states(request: Request, value: str, call: Call, controller: Controller) -> None:
    if value.lower() == "all":
        request.states = ()
        return
    found = []
    for word in dict.fromkeys(value.split(",")):
        if not word:
            continue
        state = _STATES.get(word.lower())
        if state is None:
            raise Failure(
                f"squeue: error: Invalid job state specified: {word}\n"
                f"squeue: error: Valid job states include: {','.join(_STATE_NAMES)}\n\n"
            )
        found.append(state)
    request.states = tuple(found) or (-1,)


def _read_iterate(request: Request, value: str, call: Call, controller: Controller) -> None:
    seconds = interval(value)
    if seconds is None:
        raise Failure(f"squeue: error: --iterate={value}\n\n")
    request.iterate = seconds


def _duration(value: str) -> int:
    try:
        seconds = parse_duration_seconds(value)
    except GrammarError:
        seconds = 0
    if seconds is not None and seconds <= 0:
        raise Failure("squeue: fatal: Invalid time limit specification\n")
    return INFINITE if seconds is None else seconds


def _read_over(request: Request, value: str, call: Call, controller: Controller) -> None:
    request.over = _duration(value)


def _read_under(request: Request, value: str, call: Call, controller: Controller) -> None:
    request.under = _duration(value)


def _read_clusters(request: Request, value: str, call: Call, controller: Controller) -> None:
    own = controller.machine.site.cluster_name
    names = [word for word in value.split(",") if word] or [""]
    known = [word for word in names if word in (own, "all")]
    for word in names:
        if word not in (own, "all"):
            request.warnings.append(f"squeue: error: No cluster '{word}' known by database.\n")
    if names and not known:
        raise Failure(
            "".join(request.warnings)
            + f"squeue: error: '{value}' can't be reached now, or it is an invalid entry for --cluster.  "
            "Use 'sacctmgr list clusters' to see available clusters.\nsqueue: fatal: Could not get cluster information\n"
        )
    request.clusters = (own,) if names else ()


_READERS: dict[str, Callable[[Request, str, Call, Controller], None]] = {
    "accounts": _read_accounts,
    "all": _set("show_all", True),
    "array": _set("array", True),
    "clusters": _read_clusters,
    "format": _set_text("short_format"),
    "Format": _set_text("long_format"),
    "hide": _set("show_all", False),
    "iterate": _read_iterate,
    "jobs": _read_jobs,
    "licenses": _set_names("licenses"),
    "long": _set("long", True),
    "me": _read_me,
    "name": _set_names("names"),
    "noconvert": _set("convert", False),
    "nodelist": _read_nodes,
    "noheader": _set("header", False),
    "notme": _read_not_me,
    "only-job-state": _set("only_state", True),
    "partitions": _set_names("partitions"),
    "priority": _set("priority", True),
    "qos": _set_names("qos"),
    "reservation": _set_names("reservations"),
    "running-over": _read_over,
    "running-under": _read_under,
    "sort": _set_text("sort"),
    "start": _set("start", True),
    "states": _read_states,
    "steps": _read_steps,
    "users": _read_users,
}


# ---------------------------------------------------------------------------------------------- what is printed


async def _answer(call: Call, controller: Controller, output: Output, request: Request) -> int:
    if request.verbose:
        output.error(_settings(request))
    for warning in request.warnings:
        output.error(warning)
    while True:
        await _print_once(call, controller, output, request)
        if not request.iterate:
            return 0
        output.write("\n")
        await output.drain()
        await asyncio.sleep(request.iterate)


async def _print_once(call: Call, controller: Controller, output: Output, request: Request) -> None:
    now = controller.now()
    text = JobText(
        controller.machine,
        now,
        convert=request.convert,
        tasks_length=request.tasks_length,
        bare_tasks=request.only_state,
    )
    alone = request.jobs is not None and len(request.jobs) == 1 and not (request.only_state or request.step_view)
    if alone and request.jobs and not _exists(controller, request.jobs[0].job_id):
        if request.form is None:
            output.write(_clusters(request))
        raise Failure("slurm_load_jobs error: Invalid job id specified\n")
    if request.form is not None:
        await _print_documents(call, controller, output, request, request.form, text)
        return
    output.write(_clusters(request))
    if (request.long and request.header) or request.iterate or request.verbose:
        output.write(today(now) + "\n")
    jobs = list(_visible(call, controller, request))
    if request.step_view:
        await _print_steps(output, request, text, jobs)
    else:
        await _print_jobs(output, request, text, jobs)


def _clusters(request: Request) -> str:
    """The line above the table of a cluster that was named."""
    return "".join(f"CLUSTER: {cluster}\n" for cluster in request.clusters if request.header)


def _exists(controller: Controller, job_id: int) -> bool:
    machine = controller.machine
    return job_id in machine.jobs or bool(machine.jobs_of_array(job_id))


async def _print_jobs(output: Output, request: Request, text: JobText, jobs: list[Job]) -> None:
    layout = _layout(output, request, fields.job_letters(text), fields.job_names(text), _default_format(request), "job")
    if request.header:
        output.write(layout.header + "\n")
    chosen = _chosen(request, text, jobs)
    if request.only_state:
        chosen.sort(key=list_order, reverse=True)
    else:
        _into_base_order(text, chosen)
    if request.priority:
        chosen = list(_by_partition(chosen))
    _sort(output, request, text, chosen)
    await _print_rows(output, layout, _elements(chosen) if request.array else chosen)


async def _print_steps(output: Output, request: Request, text: JobText, jobs: list[Job]) -> None:
    layout = _layout(output, request, fields.step_letters(text), fields.step_names(text), fields.STEPS, "job step")
    if request.header:
        output.write(layout.header + "\n")
    rows = _step_rows(request, jobs)
    rows.sort(key=lambda row: (row.job.partition, row.job.job_id, row.step.step_id))
    for letter, reverse in reversed(list(_step_sort_keys(request.sort or ""))):
        rows.sort(key=fields.STEP_SORT_KEYS[letter], reverse=reverse)
    await _print_rows(output, layout, rows)


def _step_sort_keys(keys: str) -> Iterator[tuple[str, bool]]:
    """Those of ``-S`` that steps are sorted by; others change nothing."""
    for position, letter in enumerate(keys):
        if letter in fields.STEP_SORT_KEYS:
            yield letter, position > 0 and keys[position - 1] == "-"


def _chosen(request: Request, text: JobText, jobs: Iterable[Job]) -> list[Job]:
    """The jobs that pass all filters."""
    chosen = [job for job in jobs if _wanted(request, text, job)]
    return chosen if request.jobs is None else list(_named(request.jobs, chosen))


def _step_rows(request: Request, jobs: Iterable[Job]) -> list[fields.StepRow]:
    """The steps that pass all filters."""
    rows = [
        fields.StepRow(step, job)
        for job in jobs
        if _steps_wanted(request, job)
        for step in running_steps(job)
        if request.nodes is None or not request.nodes.isdisjoint(step.nodes)
    ]
    if request.steps is not None:
        rows = [row for row in rows if any(_is_step(name, row) for name in request.steps)]
    return rows


async def _print_documents(
    call: Call, controller: Controller, output: Output, request: Request, form: Wanted, text: JobText
) -> None:
    """``--json``, ``--yaml``: formats and order do not count."""
    jobs = list(_visible(call, controller, request))
    if request.step_view:
        steps = [StepView(row.step, row.job, text.site.cluster_name, text.now) for row in _step_rows(request, jobs)]
        steps.sort(key=lambda view: (*list_order(view.job), view.step.step_id != BATCH_STEP, view.step.step_id))
        await print_steps(call, controller, output, form, steps)
        return
    chosen = _chosen(request, text, jobs)
    chosen.sort(key=list_order)
    if request.only_state:
        states = (
            {"job_id": raw_array_id(job), "state": job_state(int(job.state), int(job.flags))} for job in _elements(chosen)
        )
        await print_rows(call, controller, output, form, "jobs", states)
        return
    await print_jobs(call, controller, output, form, text, chosen)


async def _print_rows(output: Output, layout: Layout[T], rows: Iterable[T]) -> None:
    lines: list[str] = []
    for row in rows:
        lines.append(layout.line(row))
        if len(lines) >= PIECE:
            output.write("\n".join(lines) + "\n")
            lines.clear()
            await output.drain()
    if lines:
        output.write("\n".join(lines) + "\n")
    await output.drain()


def _default_format(request: Request) -> str:
    if request.only_state:
        return fields.ONLY_STATE
    if request.start:
        return fields.START
    return fields.LONG if request.long else fields.DEFAULT


def _layout(
    output: Output,
    request: Request,
    letters: Mapping[str, Field[T]],
    names: Mapping[str, Field[T]],
    otherwise: str,
    kind: str,
) -> Layout[T]:
    """The compiled format; unknown fields are told and left out."""
    columns: tuple[Column, ...]
    if request.long_format is not None:
        columns, table = parse_long_format(request.long_format), names
    else:
        wanted = otherwise if request.short_format is None else request.short_format
        every = wanted.lower() == "%all"
        columns = (
            all_columns([letter for letter in fields.LETTERS if letter in letters]) if every else parse_short_format(wanted)
        )
        table = letters
    layout = compile_format(columns, table)
    for column in layout.unknown:
        field_text = column.token if request.long_format is not None else column.field
        output.error(f"squeue: error: Invalid {kind} format specification: {field_text}\n")
    return layout


# ---------------------------------------------------------------------------------------------- which jobs


def _visible(call: Call, controller: Controller, request: Request) -> Iterator[Job]:
    """Jobs that the caller may see: PrivateData, and hidden partitions unless asked for."""
    machine = controller.machine
    private = "jobs" in machine.site.private_data and not call.caller.operator
    hidden = frozenset() if request.show_all else frozenset(name for name, each in machine.partitions.items() if each.hidden)
    jobs = tuple(machine.jobs.values()) if request.jobs is None else _meant(controller, request.jobs)
    if not private and not hidden:
        yield from jobs
        return
    for job in jobs:
        if private and job.credentials.user_id != call.caller.user_id:
            continue
        if hidden and job.partition in hidden and not (call.caller.operator or job.credentials.user_id == call.caller.user_id):
            continue
        yield job


def _meant(controller: Controller, names: Iterable[JobName]) -> tuple[Job, ...]:
    """All that ``-j`` may name, without going through a long queue."""
    machine = controller.machine
    found: dict[int, Job] = {}
    for job_id in {name.job_id for name in names}:
        alone = (machine.jobs[job_id],) if job_id in machine.jobs else ()
        for job in (*alone, *machine.jobs_of_array(job_id), *machine.jobs_of_het(job_id)):
            found[job.job_id] = job
    return tuple(found[job_id] for job_id in sorted(found))


def _active(job: Job) -> bool:
    return not job.state.finished or bool(job.flags & JobFlag.COMPLETING)


_BESIDE_A_STATE = JobFlag.CONFIGURING | JobFlag.EPILOG_RUNS
"""Flags with which a job still counts as in its base state; with others it is in that of the flag alone."""


def _in_states(states: tuple[int, ...], job: Job) -> bool:
    if not states:
        return True
    for state in states:
        if job.flags & state if state >= 0x100 else job.state == state and not job.flags & ~_BESIDE_A_STATE:
            return True
    return False


def _wanted(request: Request, text: JobText, job: Job) -> bool:
    """Whether a job passes all filters but ``-j``."""
    if request.states is None:
        if not (job.state is JobState.PENDING if request.start else _active(job)):
            return False
    elif not _in_states(request.states, job):
        return False
    if request.users is not None and job.credentials.user_id not in request.users:
        return False
    if request.partitions is not None and request.partitions.isdisjoint(job.partition.split(",")):
        return False
    return _passes_rarer(request, text, job)


def _passes_rarer(request: Request, text: JobText, job: Job) -> bool:
    if request.names is not None and job.name not in request.names:
        return False
    if request.accounts is not None and job.account.lower() not in request.accounts:
        return False
    if request.qos is not None and job.qos not in request.qos:
        return False
    if request.reservations is not None and request.reservations.isdisjoint(job.reservation.split(",")):
        return False
    if request.not_user is not None and job.credentials.user_id == request.not_user:
        return False
    if request.licenses is not None:
        named = {part.partition(":")[0].partition("@")[0] for part in (job.request.licenses or "").split(",")}
        if request.licenses.isdisjoint(named):
            return False
    if request.nodes is not None and not (job.allocation and not request.nodes.isdisjoint(job.allocation.nodes)):
        return False
    if request.over is not None and not (job.state is JobState.RUNNING and text.run_seconds(job) > request.over):
        return False
    return request.under is None or (job.state is JobState.RUNNING and text.run_seconds(job) < request.under)


def _named(names: Sequence[JobName], jobs: Iterable[Job]) -> Iterator[Job]:
    """The jobs that ``-j`` names; of an array's waiting elements only those named."""
    whole = {name.job_id for name in names if name.task is None}
    tasks = {(name.job_id, name.task) for name in names if name.task is not None}
    for job in jobs:
        array_id = job.array_job_id or job.job_id
        by_task = job.array_task_id is not None and (array_id, job.array_task_id) in tasks
        if by_task or not whole.isdisjoint((job.job_id, array_id, job.het_job_id)):
            yield job
        elif job.array_tasks:
            named = (task for number, task in tasks if number == array_id)
            part = _part(job, sorted(task for task in named if any(task in waiting for waiting in job.array_tasks)))
            if part is not None:
                yield part


def _part(job: Job, tasks: Sequence[int]) -> Job | None:
    """The record of an array's waiting elements as that of some of them; None of none."""
    if len(tasks) < 2:
        return _element(job, tasks[0]) if tasks else None
    waiting = parse_array(",".join(map(str, tasks)), LARGEST_ARRAY).tasks
    return replace(job, array_tasks=waiting, array_maximum_running=0)


def _element(job: Job, task: int) -> Job:
    return replace(job, array_tasks=(), array_task_id=task)


def _elements(jobs: Iterable[Job]) -> Iterator[Job]:
    for job in jobs:
        if job.array_tasks:
            yield from (_element(job, task) for part in job.array_tasks for task in part)
        else:
            yield job


def _by_partition(jobs: Iterable[Job]) -> Iterator[Job]:
    for job in jobs:
        if job.state is JobState.PENDING and len(job.partitions) > 1:
            yield from (replace(job, partitions=(name,)) for name in job.partitions)
        else:
            yield job


def _into_base_order(text: JobText, jobs: list[Job]) -> None:
    """The order in which jobs with equal keys are printed: what started or will start last comes first; then those that
    nobody knows the start of, newest first."""

    def key(job: Job) -> tuple[int, int, int]:
        start = text.start(job)
        number = job.array_job_id or job.job_id
        return (0, -start, number) if start else (1, 0, -number)

    jobs.sort(key=lambda job: job.array_task_id or 0)
    jobs.sort(key=key)


def _sort(output: Output, request: Request, text: JobText, jobs: list[Job]) -> None:
    keys = request.sort
    if not keys:
        keys = ("" if request.only_state else "S" if request.start else "P,t,-p") if keys is None else ""
    for letter, reverse in reversed(list(_sort_keys(output, keys))):
        _sort_by(text, jobs, letter, reverse)


def _sort_by(text: JobText, jobs: list[Job], letter: str, reverse: bool) -> None:
    """One key. Jobs that start nobody knows when are last under S whichever way, and N and S turn equal ones round."""
    key = fields.SORT_KEYS[letter]
    if letter == "S":
        known, unknown = [job for job in jobs if text.start(job)], [job for job in jobs if not text.start(job)]
        known.sort(key=text.start, reverse=reverse)
        jobs[:] = known + unknown[::-1]
        return
    if letter == "N" and not reverse:
        jobs.reverse()
    jobs.sort(key=lambda job: key(text, job), reverse=reverse)  # type: ignore[arg-type,return-value]


def _sort_keys(output: Output, keys: str) -> Iterator[tuple[str, bool]]:
    """(letter, descending) in the order given. Slurm reads them from the last to the first, and so names the last wrong one."""
    found: list[tuple[str, bool]] = []
    for position in range(len(keys) - 1, -1, -1):
        letter = keys[position]
        if letter in ",+-":
            continue
        if letter in fields.SORT_PASSED_OVER:
            output.error(f"squeue: Invalid sort specification: {letter}\n")
            continue
        if letter not in fields.SORT_KEYS:
            raise Failure(f"squeue: error: Invalid sort specification: {letter}\n")
        found.append((letter, position > 0 and keys[position - 1] == "-"))
    return reversed(found)


def _steps_wanted(request: Request, job: Job) -> bool:
    if job.state not in (JobState.RUNNING, JobState.SUSPENDED):
        return False
    if request.users and job.credentials.user_id not in request.users:
        return False
    if request.partitions is not None and job.partition not in request.partitions:
        return False
    if request.jobs is not None:
        return any(True for _ in _named(request.jobs, (job,)))
    return True


def _is_step(name: JobName, row: fields.StepRow) -> bool:
    job = row.job
    if name.step is not None and name.step != row.step.step_id:
        return False
    if name.task is not None:
        return job.array_job_id == name.job_id and job.array_task_id == name.task
    return name.job_id in (job.job_id, job.array_job_id)


def _settings(request: Request) -> str:
    """What ``-v`` tells of the options."""
    options = request.options
    shown = {
        "all": request.show_all,
        "array": request.array,
        "format": options.get("format", options.get("Format", "(null)")),
        "iterate": request.iterate,
        "jobs": options.get("jobs", "(null)"),
        "licenses": options.get("licenses", "(null)"),
        "names": options.get("name", "(null)"),
        "nodes": options.get("nodelist", ""),
        "only_job_state": request.only_state,
        "partitions": options.get("partitions", "(null)"),
        "priority": request.priority,
        "reservation": options.get("reservation", "(null)"),
        "sort": options.get("sort", "(null)"),
        "start_flag": int(request.start),
        "states": options.get("states", "(null)"),
        "step_flag": int(request.step_view),
        "steps": options.get("steps", "(null)"),
        "users": options.get("users", "(null)"),
        "verbose": request.verbose,
    }
    rule = "-----------------------------\n"
    lines = "".join(
        f"{name:<11} = {str(value).lower() if isinstance(value, bool) else value}\n" for name, value in shown.items()
    )
    return rule + lines.replace("\0", "(null)") + rule + "\n\n"
