"""sstat: what the tasks of running steps use now (sstat(1)).

The steps' stepds are asked while the command waits. A job's first step that is no batch script is shown where none is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from grammar.arguments import Argument, Option, Status
from grammar.hostlist import compress
from grammar.sizes import format_size
from grammar.sluid import typed_sluid
from grammar.times import format_elapsed
from grammar.tres import format_tres
from slurmk.commands.call import Call, Controller, Failure, Output
from slurmk.commands.frame import USAGE, VERSION, early_answer, read_options
from slurmk.commands.job_text import STEP_NAMES
from slurmk.commands.processes import Task, measured, tasks_of
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.selection import NO_JOB, PENDING_STEP, parse_step
from slurmk.model.job import BATCH_STEP, Job, Step

_VALUE = Argument.REQUIRED

OPTIONS: tuple[Option, ...] = (
    Option(("allsteps",), "a"),
    Option(("format", "fields"), "o", _VALUE),
    Option(("help",), "h"),
    Option(("helpformat",), "e"),
    Option(("jobs",), "j", _VALUE),
    Option(("noconvert",)),
    Option(("noheader",), "n"),
    Option(("parsable",), "p"),
    Option(("parsable2",), "P"),
    Option(("pidformat",), "i"),
    USAGE,
    Option(("verbose",), "v", status=Status.ACCEPTED, note="there is nothing more to tell"),
    VERSION,
)

HELP_TEXTS: Mapping[str, str] = {
    "allsteps": "every running step of a job that is named without one",
    "format": "which fields",
    "helpformat": "the fields that there are",
    "jobs": "these jobs or steps",
    "noconvert": "numbers as they are, not in K or M",
    "noheader": "no heading",
    "parsable": "fields with | behind each",
    "parsable2": "fields with | between them",
    "pidformat": "which processes run where",
}

UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Row:
    """A running step and its tasks."""

    job: Job
    step: Step
    tasks: Sequence[Task]
    convert: bool

    def values(self, measure: str) -> list[int]:
        """What each task has of a measure."""
        return [measured(task, measure) for task in self.tasks]

    def extreme(self, measure: str, choose: Callable[..., Task]) -> Task | None:
        """The task that has most (or least) of it."""
        return choose(self.tasks, key=lambda task: measured(task, measure)) if self.tasks else None

    def amount(self, measure: str, number: int) -> str:
        """A measure as text."""
        if measure == "cpu":
            return format_elapsed(number // 1_000_000, padded=True)
        if measure in ("rss", "vsize") and self.convert and number >= 1024:
            return format_size(number // 1024, "K")
        return str(number)


Value = Callable[[Row], str]


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its name, width (negative: to the left), and what it says."""

    name: str
    width: int
    value: Value = field(compare=False)


def _average(measure: str) -> Value:
    return lambda row: row.amount(measure, sum(row.values(measure)) // len(row.tasks)) if row.tasks else ""


def _most(measure: str) -> Value:
    return lambda row: row.amount(measure, max(row.values(measure))) if row.tasks else ""


def _node(measure: str, choose: Callable[..., Task]) -> Value:
    return lambda row: task.node if (task := row.extreme(measure, choose)) is not None else ""


def _task(measure: str, choose: Callable[..., Task]) -> Value:
    return lambda row: str(task.rank) if (task := row.extreme(measure, choose)) is not None else ""


TRES_IN: Mapping[str, str] = {
    "cpu": "cpu",
    "energy": "energy",
    "fs/disk": "disk_read",
    "mem": "rss",
    "pages": "pages",
    "vmem": "vsize",
}
TRES_OUT: Mapping[str, str] = {"energy": "energy", "fs/disk": "disk_write"}
"""Resources to the measures that tell how much of them was used, or written."""


def _list(resources: Mapping[str, str], sum_up: Callable[[list[int]], int]) -> Value:
    def value(row: Row) -> str:
        if not row.tasks:
            return ""
        return ",".join(f"{name}={row.amount(measure, sum_up(row.values(measure)))}" for name, measure in resources.items())

    return value


def _list_nodes(resources: Mapping[str, str], choose: Callable[..., Task]) -> Value:
    def value(row: Row) -> str:
        found = {name: row.extreme(measure, choose) for name, measure in resources.items()}
        return ",".join(f"{name}={task.node}" for name, task in found.items() if task is not None)

    return value


def _list_tasks(resources: Mapping[str, str], choose: Callable[..., Task]) -> Value:
    def value(row: Row) -> str:
        found = {name: row.extreme(measure, choose) for name, measure in resources.items() if name != "energy"}
        return ",".join(f"{name}={task.rank}" for name, task in found.items() if task is not None)

    return value


def _mean(numbers: list[int]) -> int:
    return sum(numbers) // len(numbers)


def _allocated(row: Row) -> str:
    if row.step.step_id == BATCH_STEP:
        return ""
    text = format_tres({"cpu": row.step.cpus, "mem": row.step.memory, "node": len(row.step.nodes)})
    return ",".join(sorted(text.split(",")))


def _frequency(row: Row) -> str:
    return "0" if row.step.step_id == BATCH_STEP else UNKNOWN


def _processes(row: Row) -> str:
    listed = row.step.step_id == BATCH_STEP
    return ",".join(str(each) for task in row.tasks for each in (task.process, *(task.below if listed else ())))


FIELDS: tuple[Field, ...] = (
    Field("AllocTRES", 10, _allocated),
    Field("AveCPU", 10, _average("cpu")),
    Field("AveCPUFreq", 10, lambda row: "0"),
    Field("AveDiskRead", 12, _average("disk_read")),
    Field("AveDiskWrite", 12, _average("disk_write")),
    Field("AvePages", 10, _average("pages")),
    Field("AveRSS", 10, _average("rss")),
    Field("AveVMSize", 10, _average("vsize")),
    Field("ConsumedEnergy", 14, lambda row: "0"),
    Field("ConsumedEnergyRaw", 17, lambda row: "0"),
    Field("JobID", -12, lambda row: _step_name(row.job.job_id, row.step.step_id)),
    Field("MaxDiskRead", 12, _most("disk_read")),
    Field("MaxDiskReadNode", 15, _node("disk_read", max)),
    Field("MaxDiskReadTask", 15, _task("disk_read", max)),
    Field("MaxDiskWrite", 12, _most("disk_write")),
    Field("MaxDiskWriteNode", 16, _node("disk_write", max)),
    Field("MaxDiskWriteTask", 16, _task("disk_write", max)),
    Field("MaxPages", 8, _most("pages")),
    Field("MaxPagesNode", 12, _node("pages", max)),
    Field("MaxPagesTask", 14, _task("pages", max)),
    Field("MaxRSS", 10, _most("rss")),
    Field("MaxRSSNode", 10, _node("rss", max)),
    Field("MaxRSSTask", 10, _task("rss", max)),
    Field("MaxVMSize", 10, _most("vsize")),
    Field("MaxVMSizeNode", 14, _node("vsize", max)),
    Field("MaxVMSizeTask", 14, _task("vsize", max)),
    Field("MinCPU", 10, lambda row: row.amount("cpu", min(row.values("cpu"), default=0)) if row.tasks else ""),
    Field("MinCPUNode", 10, _node("cpu", min)),
    Field("MinCPUTask", 10, _task("cpu", min)),
    Field("Nodelist", 20, lambda row: compress(row.step.nodes)),
    Field("NTasks", 8, lambda row: str(len(row.tasks))),
    Field("Pids", 20, _processes),
    Field("ReqCPUFreq", 10, _frequency),
    Field("ReqCPUFreqMin", 13, _frequency),
    Field("ReqCPUFreqMax", 13, _frequency),
    Field("ReqCPUFreqGov", 13, _frequency),
    Field("SLUID", 14, lambda row: row.job.sluid),
    Field("TRESUsageInAve", 14, _list(TRES_IN, _mean)),
    Field("TRESUsageInMax", 14, _list(TRES_IN, max)),
    Field("TRESUsageInMaxNode", 18, _list_nodes(TRES_IN, max)),
    Field("TRESUsageInMaxTask", 18, _list_tasks(TRES_IN, max)),
    Field("TRESUsageInMin", 14, _list(TRES_IN, min)),
    Field("TRESUsageInMinNode", 18, _list_nodes(TRES_IN, min)),
    Field("TRESUsageInMinTask", 18, _list_tasks(TRES_IN, min)),
    Field("TRESUsageInTot", 14, _list(TRES_IN, sum)),
    Field("TRESUsageOutAve", 15, _list(TRES_OUT, _mean)),
    Field("TRESUsageOutMax", 15, _list(TRES_OUT, max)),
    Field("TRESUsageOutMaxNode", 19, _list_nodes(TRES_OUT, max)),
    Field("TRESUsageOutMaxTask", 19, _list_tasks(TRES_OUT, max)),
    Field("TRESUsageOutMin", 15, _list(TRES_OUT, min)),
    Field("TRESUsageOutMinNode", 19, _list_nodes(TRES_OUT, min)),
    Field("TRESUsageOutMinTask", 19, _list_tasks(TRES_OUT, min)),
    Field("TRESUsageOutTot", 15, _list(TRES_OUT, sum)),
)
"""Every field, in the order of --helpformat."""

BY_NAME: Mapping[str, Field] = {each.name.lower(): each for each in FIELDS}

DEFAULT = (
    "jobid,alloctres,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,"
    "maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,"
    "consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,"
    "avediskwrite,tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,tresusageinmin,tresusageinminnode,"
    "tresusageinmintask,tresusageintot,tresusageoutave,tresusageoutmax,tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutmin,"
    "tresusageoutminnode,tresusageoutmintask,tresusageouttot"
)

PROCESSES = "jobid,nodelist,pids"

HELP_WIDTH, HELP_COLUMNS = 20, 4


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Print the usage of running steps; gives the exit code."""
    given, operands = read_options(call, OPTIONS, hint=False)
    if (
        answer := early_answer(call, given, OPTIONS, HELP_TEXTS, "[options] -j <job(.stepid)>\n\tUse --help for help")
    ) is not None:
        output.write(answer)
        return 0
    values = {one.name: one.value or "" for one in given}
    if "helpformat" in values:
        output.write(_help_format())
        return 0
    named = [
        word for text in (*[one.value or "" for one in given if one.name == "jobs"], *operands) for word in text.split(",")
    ]
    columns = columns_of(values.get("format") or (PROCESSES if "pidformat" in values else DEFAULT))
    if not any(named):
        raise Failure("sstat: error: You didn't give me any jobs to stat.\n")
    selections = [_selection(controller, name) for name in named if name]
    write = Writer(output, columns, "|" if {"parsable", "parsable2"} & values.keys() else "", ends="parsable" in values)
    if "noheader" not in values:
        write.heading()
    convert = "noconvert" not in values
    for name, (job_id, step_id) in zip(filter(None, named), selections, strict=True):
        typed = typed_sluid(name.partition(".")[0]) or str(job_id)
        every = "allsteps" in values
        for row in await _rows(call, controller, output, job_id, step_id, typed, every=every, convert=convert):
            write.row(row)
        await output.drain()
    return 0


def _selection(controller: Controller, name: str) -> tuple[int, int | None]:
    """(job, step) of ``12``, ``12.0``, ``12.batch``; the number of an array's element or of a component means nothing. Raises
    Failure."""
    wrong = f"sstat: fatal: Bad job/step specified: {name}"
    if not name.startswith(("s", *"0123456789")):
        raise Failure(f"{wrong}\n")
    try:
        chosen = parse_step(name, controller.machine.jobs.values())
    except SlurmError as error:
        raise Failure(f"{wrong}: {error}\n") from None
    if chosen.job_id == NO_JOB:
        raise Failure(f"sstat: error: couldn't get steps for SLUID={typed_sluid(name.partition('.')[0])}\n", 0)
    return chosen.job_id, chosen.step_id


async def _rows(
    call: Call,
    controller: Controller,
    output: Output,
    job_id: int,
    step_id: int | None,
    typed: str,
    *,
    every: bool,
    convert: bool,
) -> list[Row]:
    """The steps that a name means, measured; what stands against it is told, by the job's number or SLUID as typed."""
    jobs = controller.machine.jobs
    if job_id not in jobs:
        output.error(f"sstat: error: couldn't get steps for JobId={job_id}\n")
        return []
    if step_id is not None:
        found = [(jobs[job_id], step) for step in jobs[job_id].steps if step.step_id == step_id]
        if not found:
            output.error(f"sstat: error: StepId={_step_name(typed, step_id)} not found running.\n")
    else:
        of_array = [job for job in jobs.values() if job_id in (job.job_id, job.array_job_id)]
        found = [(job, step) for job in sorted(of_array, key=lambda job: job.job_id) for step in _by_number(job)]
        if not found:
            output.error(f"sstat: error: No steps running for JobId={job_id}\n")
        if not every:
            found = [(job, step) for job, step in found if step.step_id not in STEP_NAMES][:1]
    if found and not controller.machine.may_change(call.caller, found[0][0]):
        job, step = found[0]
        name = _step_name(job.job_id, step.step_id)
        denied = SlurmError(Errno.USER_ID_MISSING)
        first = f"slurm_job_step_stat: there was an error with the request to {step.nodes[0]} rc = {denied}"
        output.error(f"sstat: error: {first}\nsstat: error: problem getting step_layout for StepId={name}: {denied}\n")
        return []
    tasks = {job.job_id: (await tasks_of(controller, job))[0] for job in {id(job): job for job, _ in found}.values()}
    return [
        Row(job, step, [task for task in tasks[job.job_id] if task.step_id == step.step_id], convert) for job, step in found
    ]


def _by_number(job: Job) -> list[Step]:
    return sorted(job.steps, key=lambda step: (step.step_id != BATCH_STEP, step.step_id))


def _step_name(job_id: int | str, step_id: int) -> str:
    """``12.0``, ``12.batch``: by the record's own number, also of an array's element and of a component."""
    return f"{job_id}.{'TBD' if step_id == PENDING_STEP else STEP_NAMES.get(step_id, step_id)}"


def _help_format() -> str:
    cells = [each.name.ljust(HELP_WIDTH - 1) for each in FIELDS]
    lines = [" ".join(cells[start : start + HELP_COLUMNS]) for start in range(0, len(cells), HELP_COLUMNS)]
    return "".join(f"{line}\n" for line in lines)


def columns_of(text: str) -> list[Field]:
    """The fields of ``JobID,MaxRSS%20``. Raises Failure for one that there is not."""
    columns = []
    for word in text.split(","):
        name, percent, width = word.strip().partition("%")
        found = BY_NAME.get(name.lower()) or next(
            (each for each in FIELDS if name and each.name.lower().startswith(name.lower())), None
        )
        if found is None:
            raise Failure(f'sstat: error: Invalid field requested: "{name}"\n')
        if percent and width.lstrip("-").isdigit() and len(width) < 6:
            found = Field(found.name, int(width) or found.width, found.value)
        columns.append(found)
    return columns


class Writer:
    """Prints rows in columns, or with a delimiter between the fields (and ``ends``: behind the last one too)."""

    def __init__(self, output: Output, columns: Sequence[Field], delimiter: str, *, ends: bool) -> None:
        self.output = output
        self.columns = columns
        self.delimiter = delimiter
        self.ends = ends

    def heading(self) -> None:
        names = [column.name for column in self.columns]
        if self.delimiter:
            self._line(names)
        else:
            self._line([name[: abs(column.width)] for name, column in zip(names, self.columns, strict=True)])
            self._line(["-" * abs(column.width) for column in self.columns])

    def row(self, row: Row) -> None:
        self._line([column.value(row) for column in self.columns])

    def _line(self, texts: Sequence[str]) -> None:
        if self.delimiter:
            self.output.write(self.delimiter.join(texts) + (self.delimiter if self.ends else "") + "\n")
            return
        pairs = zip(texts, self.columns, strict=True)
        self.output.write("".join(f"{_cell(text, column.width)} " for text, column in pairs) + "\n")


def _cell(text: str, width: int) -> str:
    """At most ``width`` wide; what is longer ends in a +."""
    size = abs(width)
    if len(text) > size:
        text = f"{text[: size - 1]}+"
    return text.ljust(size) if width < 0 else text.rjust(size)
