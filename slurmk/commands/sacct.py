"""sacct: the records of jobs and their steps (sacct(1)).

The store is asked in a thread; what comes back is printed in pieces, so that others are served meanwhile.
"""

from __future__ import annotations

import asyncio
import grp
import pwd
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from accounting.errors import StoreError
from accounting.queries import JobQuery, JobRecord, RecordSelection
from accounting.rows import JobRow
from grammar.arguments import Given
from grammar.arrays import parse_array
from grammar.errors import GrammarError
from grammar.hostlist import expand
from grammar.sluid import typed_sluid
from grammar.times import format_time, parse_duration, parse_time
from slurmk.commands.call import Call, Controller, Failure, Output, Unreadable
from slurmk.commands.command_options import meanings
from slurmk.commands.documents.envelope import Wanted
from slurmk.commands.documents.printing import form, print_rows
from slurmk.commands.documents.records import RECORD, record_view
from slurmk.commands.frame import early_answer, read_options
from slurmk.commands.job_text import STEP_NAMES
from slurmk.commands.reasons import REASONS
from slurmk.commands.sacct_fields import (
    BRIEF_FORMAT,
    DEFAULT_FORMAT,
    FIELDS,
    LONG_FORMAT,
    SUMS,
    UNITS,
    Line,
    Manner,
    PrintedColumn,
    columns_of,
)
from slurmk.commands.sacct_options import OPTIONS, USAGE_TEXT
from slurmk.model.states import FLAG_CODES, STATE_CODES, JobFlag, JobState

PIECE = 500
"""Lines that are printed before others are served."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one sacct is asked for."""

    query: JobQuery
    manner: Manner
    columns: tuple[PrintedColumn, ...]
    header: bool = True
    delimiter: str | None = None  # None: columns
    trailing: bool = False
    steps: bool = True
    expand_arrays: bool = False
    flags: frozenset[str] = frozenset()
    nothing: bool = False  # of another cluster, or on nodes that cannot be
    notices: tuple[str, ...] = ()


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Answer one sacct. Exit code 1 for wrong options and when the database cannot be read."""
    try:
        given, operands = read_options(call, OPTIONS, hint=False, in_order=True)
        options = {option.name: option.value or "" for option in given}
        answer = _information(call, given)
        if answer is not None:
            output.write(answer)
            return 0
        if operands:
            unknown = "".join(f"sacct: error:  {word}\n" for word in operands)
            raise Failure(f"sacct: error: Unknown arguments:\n{unknown}")
        return await _answer(call, controller, output, options, form(call, given, output, 0))
    except GrammarError as error:
        output.error(f"{error}\n")
        return 1
    except StoreError as error:
        output.error(f"sacct: error: {error}\n")
        return 1


async def _answer(call: Call, controller: Controller, output: Output, options: Mapping[str, str], asked: Wanted | None) -> int:
    if "file" in options:
        await _check_file(output, options["file"])
    if options.keys() & {"completion", "file"}:
        raise Failure("Slurm job completion is disabled\n")
    if options.keys() & {"batch-script", "env-vars"}:
        return await _print_files(call, controller, output, options)
    request = await asyncio.to_thread(read_request, call, controller, options)
    for notice in request.notices:
        output.error(notice)
    records = [] if request.nothing else await asyncio.to_thread(controller.store.jobs, request.query)
    if request.query.reasons:
        records = [record for record in records if record.job.time_start]  # what one waits for now is not noted yet
    if request.flags:
        records = [record for record in records if request.flags <= set(Line(record, None, request.manner).flags().split(","))]
    if asked is not None:
        views = (record_view(Line(record, None, request.manner)) for record in records)
        documents = (RECORD.document(view, asked.version) for view in views)
        await print_rows(call, controller, output, asked, "jobs", documents)
        return 0
    for text in render(request, records):
        output.write(text)
        await output.drain()
    return 1 if request.nothing and request.notices else 0


async def _check_file(output: Output, path: str) -> None:
    """What -f names has to be a file. Raises Failure."""
    try:
        readable = not path.startswith("/dev/") and await output.read(path, 0) is not None
    except Unreadable:
        readable = False
    if not readable:
        raise Failure(f"{path} is not a valid file\n")


def _information(call: Call, given: Sequence[Given]) -> str | None:
    for option in given:
        if option.name == "helpformat":
            return _in_columns([field.name for field in FIELDS], 19, 4)
        if option.name == "helpstate":
            return _in_columns([state.name for state in JobState], 19, 4)
        if option.name == "helpreason":
            return _in_columns(REASONS, 39, 2)
    return early_answer(call, given, OPTIONS, meanings(OPTIONS), USAGE_TEXT)


def _in_columns(words: Sequence[str], width: int, columns: int) -> str:
    rows = (words[start : start + columns] for start in range(0, len(words), columns))
    return "".join(" ".join(word.ljust(width) for word in row) + "\n" for row in rows)


# ------------------------------------------------------------------------------------------------ what is asked for


def read_request(call: Call, controller: Controller, options: Mapping[str, str]) -> Request:
    """Options over environment over defaults. Raises Failure with Slurm's message, GrammarError for a wrong time."""
    now = controller.now()
    unit = options.get("units", "")[:1].upper()
    if "units" in options and (not unit or unit not in UNITS):
        said = f"{options['units']}'. Possible options are '{UNITS}'" if unit else ""
        raise Failure(f"sacct: error: Invalid unit type '{said}\nsacct: fatal: Invalid unit type\n")
    query = _filters(call, controller, options)
    query, notices = _windowed(query, options, now)
    try:
        columns = columns_of(_format(call, options))
    except GrammarError as error:
        raise Failure(f"sacct: {error}\n") from None
    truncate = "truncate" in options
    manner = Manner(
        site=controller.machine.site,
        now=int(now),
        convert="noconvert" not in options,
        unit=unit,
        earliest=query.start if truncate else 0,
        latest=query.end or 0 if truncate else 0,
        expand_patterns="expand-patterns" in options,
    )
    nodes, nothing, complaint = _nodes(options)
    steps = "allocations" not in options
    return Request(
        query=replace(query, nodes=nodes, with_steps=steps or any(column.field.name in SUMS for column in columns)),
        manner=manner,
        columns=columns,
        header="noheader" not in options,
        delimiter=options.get("delimiter", "|") if options.keys() & {"parsable", "parsable2"} else None,
        trailing="parsable" in options and "parsable2" not in options,
        steps=steps,
        expand_arrays="array" in options,
        flags=_flags(options),
        nothing=nothing or _elsewhere(controller, options),
        notices=(notices if "verbose" in options else ()) + complaint,
    )


def _format(call: Call, options: Mapping[str, str]) -> str:
    if "format" in options:
        return options["format"]
    if "brief" in options:
        return BRIEF_FORMAT
    if "long" in options:
        return LONG_FORMAT
    return call.environment.get("SACCT_FORMAT", DEFAULT_FORMAT)


def _filters(call: Call, controller: Controller, options: Mapping[str, str]) -> JobQuery:
    selections = tuple(_selection(word) for word in _words(options, "jobs"))
    return JobQuery(
        selections=selections,
        states=_states(options),
        user_ids=_user_ids(call, controller, options, selections),
        group_ids=tuple(_id_of(word, _group_id, "group") for word in _words(options, "gid")),
        accounts=tuple(form for word in _words(options, "accounts") for form in {word, word.lower()}),
        associations=_numbers(_words(options, "associations")),
        partitions=_words(options, "partition"),
        qos=_qos(controller, options),
        names=_words(options, "name"),
        wckeys=_words(options, "wckeys"),
        reasons=_reasons(options),
        constraints=_words(options, "constraints"),
        node_counts=_count_range(options, "nnodes", "node"),
        cpu_counts=_count_range(options, "ncpus", "cpu"),
        time_limits=_time_limits(options),
        whole_het_jobs=_whole_het_jobs(options),
        duplicates="duplicates" in options,
    )


def _words(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(word for word in options.get(name, "").split(",") if word)


def _numbers(words: Iterable[str]) -> tuple[int, ...]:
    numbers = tuple(int(word) if re.fullmatch(r"\d{1,18}", word, re.ASCII) else 0 for word in words)
    return numbers if all(numbers) else (*numbers, 0)


_NAME = re.compile(r"(\d+)(?:_(?P<task>[^.+]*))?(?:\+(?P<offset>[^._]*))?(?:\.(?P<step>.*))?\Z", re.ASCII)
_STEP_IDS = {name: number for number, name in STEP_NAMES.items()}
_LARGEST = 0xFFFFFFF0


def _selection(word: str) -> RecordSelection:
    """``12``, ``12_3``, ``12+1``, ``12.0``, ``12.batch``, a SLUID."""

    def bad(why: str = "") -> Failure:
        return Failure(f"sacct: fatal: Bad job/step specified: {word}{': ' if why else ''}{why}\n")

    def number(text: str, what: str) -> int:
        if not text:
            raise bad(f"{what} must not be an empty string")
        if not (text.isascii() and text.isdigit()):
            raise bad(f"{what} includes unexpected non-numeric characters")
        if len(text) > 10 or int(text) > _LARGEST:
            raise bad(f"{what} larger than acceptable range")
        return int(text)

    sluid, _, of_sluid = word.partition(".")
    if typed_sluid(sluid):
        step_id = None if not of_sluid else _STEP_IDS[of_sluid] if of_sluid in _STEP_IDS else number(of_sluid, "StepID")
        return RecordSelection(0, step_id=step_id, sluid=typed_sluid(sluid))
    if not word[0].isascii() or not word[0].isdigit():
        raise bad()
    match = _NAME.match(word)
    if match is None or "[" in word:
        raise bad("JobID includes unexpected non-numeric characters")
    job_id = number(match[1], "JobID")
    if job_id == 0:
        raise bad("JobID can not be zero")
    step = match["step"]
    step_id = None if step is None else _STEP_IDS[step] if step in _STEP_IDS else number(step, "StepID")
    task, offset = match["task"], match["offset"]
    return RecordSelection(
        job_id,
        None if task is None else number(task, "Job Array ID"),
        None if offset is None else number(offset, "HetJob component"),
        step_id,
    )


_STATE_WORDS: dict[str, int] = {
    **{state.name: int(state) for state in JobState},
    **{code: int(state) for state, code in STATE_CODES.items()},
    **{(flag.name or ""): int(flag) for flag in FLAG_CODES},
    **{code: int(flag) for flag, code in FLAG_CODES.items() if code},
}
_RECORDED_FLAGS = (int(JobFlag.REQUEUED), int(JobFlag.RESIZING), int(JobFlag.REVOKED))


def _states(options: Mapping[str, str]) -> tuple[int, ...]:
    states = []
    for word in _words(options, "state"):
        state = _STATE_WORDS.get(word.upper())
        if state is None:
            raise Failure(f"sacct: fatal: unrecognized job state value '{word}'\n")
        if state > JobState.OUT_OF_MEMORY and state not in _RECORDED_FLAGS:
            raise Failure(f"sacct: fatal: job state {word} is not supported / accounted\n")
        states.append(state)
    return tuple(states)


def _user_ids(
    call: Call, controller: Controller, options: Mapping[str, str], selections: tuple[RecordSelection, ...]
) -> tuple[int, ...]:
    """Whose jobs. Everyone may ask for everyone's, unless PrivateData says that jobs are private."""
    caller = call.caller
    if "jobs" in controller.machine.site.private_data and not caller.operator:
        return (caller.user_id,)
    words = _words(options, "user")
    if words:
        return tuple(_id_of(word, _user_id, "user") for word in words)
    everyone = caller.user_id == 0 or selections or "allusers" in options
    return () if everyone else (caller.user_id,)


def _user_id(name: str) -> int:
    return pwd.getpwuid(int(name)).pw_uid if name.isdigit() else pwd.getpwnam(name).pw_uid


def _group_id(name: str) -> int:
    return grp.getgrgid(int(name)).gr_gid if name.isdigit() else grp.getgrnam(name).gr_gid


def _id_of(word: str, find: Callable[[str], int], kind: str) -> int:
    try:
        return find(word)
    except (KeyError, ValueError, OverflowError):
        raise Failure(f"sacct: error: Invalid {kind} id: {word}\n") from None


def _qos(controller: Controller, options: Mapping[str, str]) -> tuple[str, ...]:
    words = _words(options, "qos")
    if not words:
        return ()
    known = list(dict.fromkeys(("normal", *controller.store.qos_names())))
    for word in words:
        if word not in known:
            raise Failure(
                f"sacct: error: You gave a bad qos '{word}'. Valid QOS's are {','.join(known)}\n"
                "sacct: fatal: problem processing qos list\n"
            )
    return words


def _reasons(options: Mapping[str, str]) -> tuple[str, ...]:
    known = {reason.lower(): reason for reason in REASONS}
    for word in _words(options, "reason"):
        if word.lower() not in known:
            raise Failure(f"sacct: fatal: unrecognized job reason value '{word}'\n")
    return tuple(known[word.lower()] for word in _words(options, "reason"))


_FLAG_WORDS = {word.lower(): word for word in ("SchedSubmit", "SchedMain", "SchedBackfill", "StartReceived")}


def _flags(options: Mapping[str, str]) -> frozenset[str]:
    for word in _words(options, "flags"):
        if word.lower() not in _FLAG_WORDS:
            raise Failure(f"sacct: error: str_2_job_flags: Invalid job flag {word}\n")
    return frozenset(_FLAG_WORDS[word.lower()] for word in _words(options, "flags"))


def _count_range(options: Mapping[str, str], name: str, what: str) -> tuple[int, int] | None:
    text = options.get(name)
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text, re.ASCII)
    if match is None:
        raise Failure(f'sacct: error: Invalid numeric value "{text}" for requested {what} range.\n')
    return int(match[1]), int(match[2] or match[1])


def _time_limits(options: Mapping[str, str]) -> tuple[int, int] | None:
    if "timelimit-min" not in options:
        return None
    try:
        least = parse_duration(options["timelimit-min"])
        return least, parse_duration(options["timelimit-max"]) if "timelimit-max" in options else least
    except GrammarError:
        raise Failure("sacct: fatal: Invalid time limit specification\n") from None


def _whole_het_jobs(options: Mapping[str, str]) -> bool | None:
    value = options.get("whole-hetjob")
    if value is None:
        return None
    if value.lower() not in ("", "yes", "no"):
        raise Failure(f'sacct: error: Invalid --whole-hetjob value "{value}". Valid values: [yes|no].\n')
    return value.lower() != "no"


def _nodes(options: Mapping[str, str]) -> tuple[frozenset[str], bool, tuple[str, ...]]:
    """The nodes asked for; whether nothing can fit them; what to say about it."""
    text = options.get("nodelist")
    if not text:
        return frozenset(), False, ()
    try:
        nodes = frozenset(expand(text))
    except GrammarError:
        return frozenset(), True, ("sacct: error: Invalid argument\n",)
    return nodes, not nodes, ()


def _elsewhere(controller: Controller, options: Mapping[str, str]) -> bool:
    names = _words(options, "clusters")
    return bool(names) and "all" not in names and controller.machine.site.cluster_name not in names


def _windowed(query: JobQuery, options: Mapping[str, str], now: float) -> tuple[JobQuery, tuple[str, ...]]:
    """The query with its window of time, and what -v says of it (sacct(1), DEFAULT TIME WINDOW)."""
    start_text, end_text = options.get("starttime"), options.get("endtime")
    if start_text is not None:
        start = parse_time(start_text, now, past=True)
    elif query.selections:
        start = 0
    elif query.states:
        start = int(now)
    else:
        start = _midnight(now)
    if end_text is not None:
        end = parse_time(end_text, now, past=True)
    elif query.states and start_text is not None:
        end = start
    else:
        end = int(now)
        if end < start:
            raise _reversed(start, end)
    if end_text is not None and end < start:
        raise _reversed(start, end)
    if end == start or (end_text is None and not (query.states and start_text is not None)):
        end += 1
    words = ",".join(_state_word(state) for state in query.states) or "Eligible"
    since = time.ctime(start) if start else "Epoch 0"
    notice = f"sacct: Jobs {words} in the time window from {since} to {time.ctime(end)}\n"
    return replace(query, start=start, end=end), (notice,)


def _reversed(start: int, end: int) -> Failure:
    return Failure(
        f"sacct: error: Start time ({format_time(start)}) requested is after end time ({format_time(end)}).\n",
    )


def _state_word(state: int) -> str:
    return next(word for word, number in _STATE_WORDS.items() if number == state)


def _midnight(now: float) -> int:
    here = time.localtime(now)
    return int(time.mktime((here.tm_year, here.tm_mon, here.tm_mday, 0, 0, 0, 0, 0, -1)))


# ------------------------------------------------------------------------------------------------ what is printed


def render(request: Request, records: Iterable[JobRecord]) -> Iterator[str]:
    """The text, in pieces."""
    lines: list[str] = _headings(request) if request.header else []
    for line in _lines(request, records):
        lines.append(_row(request, [column.field.text(line) for column in request.columns]))
        if len(lines) >= PIECE:
            yield "".join(lines)
            lines = []
    yield "".join(lines)


def _headings(request: Request) -> list[str]:
    if request.delimiter is not None:
        return [_row(request, [column.field.name for column in request.columns])]
    return [
        "".join(f"{column.header} " for column in request.columns) + "\n",
        "".join(f"{column.dashes} " for column in request.columns) + "\n",
    ]


def _row(request: Request, cells: Sequence[str]) -> str:
    if request.delimiter is not None:
        return request.delimiter.join(cells) + (request.delimiter if request.trailing and cells else "") + "\n"
    return "".join(f"{column.cell(cell)} " for column, cell in zip(request.columns, cells, strict=True)) + "\n"


def _lines(request: Request, records: Iterable[JobRecord]) -> Iterator[Line]:
    for record in records:
        chosen = _chosen_steps(request.query.selections, record.job)
        if chosen is None or not request.steps:
            for job in _elements(record.job) if request.expand_arrays else (record.job,):
                yield Line(JobRecord(job, record.steps), None, request.manner)
        if not request.steps:
            continue
        for step in record.steps:
            if chosen is None or step.step_id in chosen:
                yield Line(record, step, request.manner)


def _elements(job: JobRow) -> Iterable[JobRow]:
    """The row of an array's waiting elements as one of each."""
    if not job.array_tasks:
        return (job,)
    specification = parse_array(job.array_tasks, 1 << 30)
    tasks = sorted(task for part in specification.tasks for task in part)
    return tuple(replace(job, array_task_id=task, array_tasks="") for task in tasks)


def _chosen_steps(selections: Sequence[RecordSelection], job: JobRow) -> frozenset[int] | None:
    """The steps that are asked for by name; None when the whole job is."""
    mine = [one for one in selections if _names_job(one, job)]
    if not mine or any(one.step_id is None for one in mine):
        return None
    return frozenset(one.step_id for one in mine if one.step_id is not None)


def _names_job(selection: RecordSelection, job: JobRow) -> bool:
    if selection.sluid:
        return job.sluid == selection.sluid
    if selection.array_task_id is not None:
        return job.array_job_id == selection.job_id and job.array_task_id == selection.array_task_id
    if selection.het_offset is not None:
        return job.het_job_id == selection.job_id and job.het_job_offset == selection.het_offset
    return selection.job_id in (job.job_id, job.array_job_id, job.het_job_id)


# ------------------------------------------------------------------------------------------------ scripts and environments


async def _print_files(call: Call, controller: Controller, output: Output, options: Mapping[str, str]) -> int:
    script = "batch-script" in options
    if script and "env-vars" in options:
        raise Failure("sacct: fatal: Options --batch-script and --env-vars are mutually exclusive\n")
    if not _words(options, "jobs"):
        what = "job scripts" if script else "job environment"
        raise Failure(f"sacct: fatal: When requesting {what} you must also request specific jobs with the '-j' option.\n")
    filters = await asyncio.to_thread(_filters, call, controller, options)
    query, _ = _windowed(filters, options, controller.now())
    records = await asyncio.to_thread(controller.store.jobs, replace(query, with_steps=False))
    manner = Manner(controller.machine.site, int(controller.now()))
    for record in records:
        job = record.job
        if not call.caller.operator and job.user_id != call.caller.user_id:
            continue
        name = Line(record, None, manner).job_id()
        title = f"Batch Script for {name}" if script else f"Environment used for {name} (must be batch to display)"
        output.write(f"{title}\n{'-' * 80}\n")
        output.write(await asyncio.to_thread(_stored, controller, job, script) or b"NONE\n")
        await output.drain()
    return 0


def _stored(controller: Controller, job: JobRow, script: bool) -> bytes:
    """The script or environment that is kept of the job; empty when the site keeps none (AccountingStoreFlags)."""
    words = controller.machine.site.parameters.get("AccountingStoreFlags", "").lower().split(",")
    if not job.batch or ("job_script" if script else "job_env") not in words:
        return b""
    files = controller.store.stored_files(job.array_job_id or job.job_id)
    if files is None:
        return b""
    if script:
        return files.script
    return b"".join(name + b"=" + value + b"\n" for name, value in files.environment.items())
