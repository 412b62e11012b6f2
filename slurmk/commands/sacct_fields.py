"""sacct's fields: what each prints of a job's record and of a step's, and how wide (sacct(1), --helpformat).

A field that slurmk has no data for prints what Slurm prints when it has none, which mostly is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from accounting.queries import JobRecord
from accounting.rows import StepRow
from grammar.errors import GrammarError
from grammar.patterns import PatternValues, expand_pattern
from grammar.sizes import format_memory, format_size
from grammar.sluid import parse_sluid
from grammar.times import format_elapsed, format_time
from slurmk.commands.job_text import STEP_NAMES, exit_code_text
from slurmk.core.prologs import FAILED_ON_NODE
from slurmk.model.job import BATCH_STEP, Spread, Usage
from slurmk.model.sharing import EXCLUSIVE
from slurmk.model.site import Site
from slurmk.model.states import INFINITE, NO_VALUE, JobFlag, JobState

UNITS = "KMGTP"


@dataclass(frozen=True, slots=True)
class Manner:
    """How values are printed: at which moment, in which unit of memory, within which times, with which patterns expanded."""

    site: Site
    now: int
    convert: bool = True
    unit: str = ""  # of UNITS; empty: the one that fits
    earliest: int = 0  # --truncate
    latest: int = 0
    expand_patterns: bool = False

    @property
    def stored(self) -> frozenset[str]:
        """What AccountingStoreFlags keeps."""
        return frozenset(self.site.parameters.get("AccountingStoreFlags", "").lower().split(","))


IN: Mapping[str, str] = {
    "cpu": "cpu",
    "energy": "",
    "fs/disk": "disk_read",
    "mem": "rss",
    "pages": "pages",
    "vmem": "vsize",
}
OUT: Mapping[str, str] = {"energy": "", "fs/disk": "disk_write"}
"""What is read or taken, and what is written: the TRES, and the measure of Usage that tells of it. Energy has none."""

Statistic = Literal["average", "most", "least", "total"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One statistic of the usage of a step's tasks, for several TRES."""

    resources: Mapping[str, str]
    statistic: Statistic

    def amounts(self, usage: Usage) -> dict[str, int]:
        """By the name of the TRES: seconds of CPU, bytes, counts."""
        return {name: amount_of(usage, measure, self.statistic) for name, measure in self.resources.items()}

    def places(self, usage: Usage) -> dict[str, tuple[str, int]]:
        """Node and rank of the task that each amount was seen at; energy's is nobody's, and told of the first task."""
        places = {name: place_of(usage, measure, self.statistic) for name, measure in self.resources.items() if measure}
        first = (usage.cpu.least_node, 0)
        return {name: places.get(name, first) for name in self.resources}


def amount_of(usage: Usage, measure: str, statistic: Statistic) -> int:
    """A statistic of a measure: seconds of CPU, bytes, counts."""
    if not measure:
        return 0
    spread: Spread = getattr(usage, measure)
    amount = spread.total // max(1, usage.tasks) if statistic == "average" else int(getattr(spread, statistic))
    return amount // 1_000_000 if measure == "cpu" else amount


def place_of(usage: Usage, measure: str, statistic: Statistic) -> tuple[str, int]:
    """Node and rank of the task that has the least or the most of a measure."""
    spread: Spread = getattr(usage, measure)
    return (spread.least_node, spread.least_task) if statistic == "least" else (spread.most_node, spread.most_task)


AVERAGE_IN, MOST_IN, LEAST_IN, TOTAL_IN = (Measure(IN, each) for each in ("average", "most", "least", "total"))
AVERAGE_OUT, MOST_OUT, LEAST_OUT, TOTAL_OUT = (Measure(OUT, each) for each in ("average", "most", "least", "total"))


class Line:
    """One line of sacct: a job's record, or one step of it. Each method is one value of it as text."""

    __slots__ = ("_usage", "job", "manner", "record", "step")

    def __init__(self, record: JobRecord, step: StepRow | None, manner: Manner) -> None:
        self.record = record
        self.job = record.job
        self.step = step
        self.manner = manner
        self._usage: Usage | None = None

    # ------------------------------------------------------------------------------------------ identity

    def job_id(self) -> str:
        job = self.job
        if job.array_tasks:
            text = f"{job.array_job_id}_[{job.array_tasks}]"
        elif job.array_task_id is not None:
            text = f"{job.array_job_id}_{job.array_task_id}"
        elif job.het_job_id:
            text = f"{job.het_job_id}+{job.het_job_offset}"
        else:
            text = str(job.job_id)
        return text + self._step_suffix()

    def job_id_raw(self) -> str:
        return str(self.job.job_id) + self._step_suffix()

    def _step_suffix(self) -> str:
        return f".{STEP_NAMES.get(self.step.step_id, self.step.step_id)}" if self.step else ""

    def name(self) -> str:
        return self.step.step_name if self.step else self.job.job_name or "allocation"

    def db_index(self) -> str:
        return str(parse_sluid(self.job.sluid) or self.job.db_index)

    def cluster(self) -> str:
        return self.manner.site.cluster_name

    def energy(self) -> str:
        """None is measured; what is told of a job is the sum of its steps once it is over."""
        alone = all(step.step_id == BATCH_STEP for step in self.record.steps)
        return "" if self.step is None and self.job.time_start and (alone or not self.job.time_end) else "0"

    # ------------------------------------------------------------------------------------------ state

    def state(self) -> str:
        if self.step is None and self.job.flags:
            for flag, name in _FLAG_STATES:
                if self.job.flags & flag:
                    return name
        row = self.step or self.job
        name = _STATE_NAMES.get(row.state) or str(row.state)
        if row.state == _CANCELLED and row.killed_by is not None:
            return f"{name} by {row.killed_by}"
        return name

    def exit_status(self) -> int:
        """A wait(2) status. Slurm's accounting closes a job that it ends before the script's exit code is known; that of a
        prolog that failed is, unless it came with a step."""
        if self.step is None and self.job.state in _ENDED_EARLY:
            return FAILED_ON_NODE if self.job.exit_code == FAILED_ON_NODE != self.job.derived_exit_code else 0
        return (self.step or self.job).exit_code

    def exit_code(self) -> str:
        return exit_code_text(self.exit_status())

    def reason(self) -> str:
        """What it waited for last. Slurm notes that when a job starts."""
        return (self.job.reason or "None") if self.job.time_start else "None"

    def derived_exit_code(self) -> str:
        return exit_code_text(self.job.derived_exit_code)

    def flags(self) -> str:
        if not self.job.time_start:
            return "StartReceived"
        return "SchedMain,StartReceived" if self.job.batch else "SchedSubmit,StartReceived"

    # ------------------------------------------------------------------------------------------ times

    def start_moment(self) -> int:
        """Unix seconds; 0 before the start."""
        start = (self.step or self.job).time_start
        return max(start, self.manner.earliest) if start else 0

    def end_moment(self) -> int:
        """Unix seconds; 0 before the end."""
        end, latest = (self.step or self.job).time_end, self.manner.latest
        return min(end, latest) if end and latest else end

    def start(self) -> str:
        return format_time(self.start_moment(), absent="None" if self.step is None and self.job.time_end else "Unknown")

    def end(self) -> str:
        return format_time(self.end_moment())

    def submit(self) -> str:
        return format_time(self.step.time_start if self.step else self.job.time_submit)

    def eligible(self) -> str:
        return format_time(self.step.time_start if self.step else self.job.time_eligible)

    def seconds(self) -> int:
        """How long it has run, without those it was suspended for."""
        start = self.start_moment()
        if not start:
            return 0
        end = self.end_moment() or (0 if self.step else self.job.time_suspended) or self.manner.latest or self.manner.now
        return max(0, end - start - (0 if self.step else self.job.suspended_seconds))

    def elapsed(self) -> str:
        return format_elapsed(self.seconds(), padded=True)

    def elapsed_raw(self) -> str:
        return str(self.seconds())

    def cpu_time(self) -> str:
        return format_elapsed(self.seconds() * self._cpus(), padded=True)

    def cpu_time_raw(self) -> str:
        return str(self.seconds() * self._cpus())

    def planned_seconds(self) -> int:
        """From when it could run to when it did, or was given up, or now."""
        job = self.job
        if not job.time_eligible:
            return 0
        return (job.time_start or job.time_end or self.manner.now) - job.time_eligible

    def planned(self) -> str:
        return format_elapsed(self.planned_seconds(), padded=True)

    def planned_cpu(self) -> str:
        return format_elapsed(self.planned_seconds() * self.job.cpus_requested, padded=True)

    def planned_cpu_raw(self) -> str:
        return str((self.planned_seconds() * self.job.cpus_requested) & 0xFFFFFFFF)

    def suspended_seconds(self) -> int:
        job = self.job
        since = self.manner.now - job.time_suspended if job.time_suspended else 0
        return job.suspended_seconds + since

    def suspended(self) -> str:
        return format_elapsed(self.suspended_seconds(), padded=True)

    def time_limit(self) -> str:
        limit = self.job.time_limit
        return _LIMIT_WORDS.get(limit) or format_elapsed(limit * 60, padded=True)

    def time_limit_raw(self) -> str:
        return _LIMIT_WORDS.get(self.job.time_limit) or str(self.job.time_limit)

    def step_time_limit(self) -> str:
        """Of a step that has one of its own."""
        return "" if self._step_limit is None else format_elapsed(self._step_limit * 60, padded=True)

    def step_time_limit_raw(self) -> str:
        return "" if self._step_limit is None else str(self._step_limit)

    @property
    def _step_limit(self) -> int | None:
        return None if self.step is None or self.step.time_limit in _LIMIT_WORDS else self.step.time_limit

    def user_cpu(self) -> str:
        return _cpu_text(self.cpu_microseconds()[0])

    def system_cpu(self) -> str:
        return _cpu_text(self.cpu_microseconds()[1])

    def total_cpu(self) -> str:
        return _cpu_text(sum(self.cpu_microseconds()))

    def cpu_microseconds(self) -> tuple[int, int]:
        """Of user and system; a job's are those of its steps."""
        steps = (self.step,) if self.step else self.record.steps
        return sum(step.user_cpu for step in steps), sum(step.system_cpu for step in steps)

    # ------------------------------------------------------------------------------------------ size

    def _cpus(self) -> int:
        return self.step.cpus if self.step else self.job.cpus_allocated

    def cpus(self) -> str:
        return str(self._cpus())

    def cpus_requested(self) -> str:
        return str(self.step.cpus if self.step else self.job.cpus_requested)

    def nodes_allocated(self) -> str:
        return str(self.step.nodes if self.step else self.job.nodes_allocated)

    def nodes_requested(self) -> str:
        return str(self.step.nodes if self.step else self.job.nodes_requested)

    def nodes(self) -> str:
        return str(self.step.nodes if self.step else self.job.nodes_allocated or self.job.nodes_requested)

    def node_list(self) -> str:
        return (self.step or self.job).node_list or "None assigned"

    def tasks(self) -> str:
        return str(self.step.tasks) if self.step else ""

    def tres_allocated(self) -> str:
        """A step's GRES are counted by type only where the site's accounting does."""
        text = (self.step or self.job).tres_allocated
        if self.step is not None and ":" in text:
            tracked = self.manner.site.parameters.get("AccountingStorageTRES", "").lower().split(",")
            words = text.split(",")
            text = ",".join(word for word in words if ":" not in word or word.partition("=")[0] in tracked)
        return self._tres(self._counted(text))

    def tres_requested(self) -> str:
        return self._tres(self._counted(self.job.tres_requested))

    def _counted(self, tres: str) -> str:
        """Of these those that the site's accounting counts."""
        site = self.manner.site
        return ",".join(
            word for word in tres.split(",") if not word.startswith("gres/") or site.counts(word.partition("=")[0].lower())
        )

    def memory_requested(self) -> str:
        match = _MEMORY.search(self.job.tres_requested)
        return self._mebibytes(int(match[2])) if match else "0"

    def _tres(self, text: str) -> str:
        return _MEMORY.sub(lambda match: f"{match[1]}mem={self._mebibytes(int(match[2]))}", text)

    def _mebibytes(self, number: int) -> str:
        if self.manner.unit:
            return _in_unit(number << 20, self.manner.unit)
        return format_memory(number) if self.manner.convert else f"{number}M"

    def _bytes(self, number: int) -> str:
        if self.manner.unit:
            return _in_unit(number, self.manner.unit)
        if not self.manner.convert or number % 1024 or not number:
            return str(number)
        return format_size(number // 1024, "K")

    def _disk(self, number: int) -> str:
        if not number:
            return "0"
        if self.manner.unit:
            return _in_unit(number, self.manner.unit)
        amount, unit = number / (1 << 20), "M"
        while amount >= 1024 and unit != "P" and self.manner.convert:
            amount, unit = amount / 1024, UNITS[UNITS.index(unit) + 1]
        return f"{amount:.2f}{unit}"

    def layout(self) -> str:
        return (self.step.layout.capitalize() or "Unknown") if self.step else ""

    def frequency(self) -> str:
        return "0" if self.step and self.step.step_id == BATCH_STEP else "Unknown"

    def exclusive(self) -> str:
        return EXCLUSIVE.get(self.job.exclusive, "NO")

    def oversubscribe(self) -> str:
        return "YES" if self.job.oversubscribe else "NO"

    # ------------------------------------------------------------------------------------------ usage

    def usage(self) -> Usage | None:
        """The step's, once it is over."""
        if self.step is None or not self.step.usage or self.step.state in (JobState.PENDING, JobState.RUNNING):
            return None
        if self._usage is None:
            self._usage = self.step.measured
        return self._usage

    def measured(self, measure: Measure) -> str:
        """What ``measure`` finds in the step's usage, by name."""
        found = self.usage()
        if found is None:
            return ""
        return ",".join(f"{name}={self._amount(name, count)}" for name, count in measure.amounts(found).items())

    def _amount(self, name: str, count: int) -> str:
        if name == "cpu":
            return format_elapsed(count, padded=True)
        return self._bytes(count) if name in ("mem", "vmem") else str(count)

    def places(self, measure: Measure) -> Mapping[str, tuple[str, int]]:
        """Node and task where each of what ``measure`` finds was seen."""
        found = self.usage()
        return {} if found is None else measure.places(found)

    # ------------------------------------------------------------------------------------------ files and words

    def standard_input(self) -> str:
        return self._file(self.job.standard_input, "/dev/null") if self.job.batch else ""

    def standard_output(self) -> str:
        of_array = self.job.array_job_id or self.job.array_tasks
        return self._file(self.job.standard_output, "slurm-%A_%a.out" if of_array else "slurm-%j.out") if self.job.batch else ""

    def standard_error(self) -> str:
        return self._file(self.job.standard_error, "") if self.job.batch else ""

    def _file(self, pattern: str, otherwise: str) -> str:
        job = self.job
        text = _absolute(pattern, job.work_directory) if pattern else otherwise
        if not text or not self.manner.expand_patterns:
            return text
        values = PatternValues(
            job_id=job.job_id,
            array_job_id=job.array_job_id,
            array_task_id=job.array_task_id,
            job_name=job.job_name,
            user_name=job.user_name,
        )
        try:
            return expand_pattern(_absolute(text, job.work_directory), values)
        except GrammarError:
            return text

    def submit_line(self) -> str:
        return self.step.submit_line if self.step else self.job.submit_line

    def comment(self) -> str:
        return self.job.comment if "job_comment" in self.manner.stored else ""

    def extra(self) -> str:
        return self.job.extra if "job_extra" in self.manner.stored else ""


_STATE_NAMES = {int(state): state.name for state in JobState}
_FLAG_STATES = ((int(JobFlag.REQUEUED), "REQUEUED"), (int(JobFlag.RESIZING), "RESIZING"))
_CANCELLED = int(JobState.CANCELLED)
_ENDED_EARLY = frozenset(map(int, (JobState.CANCELLED, JobState.TIMEOUT, JobState.PREEMPTED, JobState.DEADLINE)))
_LIMIT_WORDS = {INFINITE: "UNLIMITED", NO_VALUE: "Partition_Limit"}
_MEMORY = re.compile(r"(\A|,)mem=(\d+)M", re.ASCII)


def _absolute(path: str, directory: str) -> str:
    return path if path.startswith("/") or not directory else f"{directory.rstrip('/')}/{path}"


def _in_unit(number: int, unit: str) -> str:
    """Bytes in that unit, with two decimals where it is no whole number of them."""
    factor = 1 << 10 * (UNITS.index(unit) + 1)
    whole, rest = divmod(number, factor)
    return f"{number / factor:.2f}{unit}" if rest else f"{whole}{unit}"


def _cpu_text(microseconds: int) -> str:
    """``00:00:00``, ``00:01.500`` (minutes, seconds), ``01:02:03``, ``1-02:03:04``: fractions only below an hour."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    if fraction and seconds < 3600:
        return f"{seconds // 60:02}:{seconds % 60:02}.{fraction // 1000:03}"
    return format_elapsed(seconds, padded=True)


# ------------------------------------------------------------------------------------------------ the table

Value = Callable[[Line], str]


@dataclass(frozen=True, slots=True)
class OutputField:
    """A row: its name, width (negative: to the left), what it prints of a job and of a step (None: nothing)."""

    name: str
    width: int
    job: Value | None = None
    step: Value | None = None

    def text(self, line: Line) -> str:
        value = self.job if line.step is None else self.step
        return value(line) if value is not None else ""


def _both(name: str, width: int, value: Value) -> OutputField:
    return OutputField(name, width, value, value)


def _column(name: str, width: int, column: str) -> OutputField:
    """A column of the job's row, on the job's line only."""
    return OutputField(name, width, lambda line: str(getattr(line.job, column)))


def _shared(name: str, width: int, column: str) -> OutputField:
    """A column of the job's row, on its steps' lines as well."""
    return _both(name, width, lambda line: str(getattr(line.job, column)))


def _measured(name: str, width: int, value: Callable[[Line, Usage], str]) -> OutputField:
    """A value of a step's usage."""

    def text(line: Line) -> str:
        usage = line.usage()
        return "" if usage is None else value(line, usage)

    return OutputField(name, width, None, text)


def _count(name: str, width: int, measure: str, statistic: Statistic) -> OutputField:
    return _measured(name, width, lambda line, usage: str(amount_of(usage, measure, statistic)))


def _memory_of(name: str, width: int, measure: str, statistic: Statistic) -> OutputField:
    return _measured(name, width, lambda line, usage: line._bytes(amount_of(usage, measure, statistic)))


def _disk_of(name: str, width: int, measure: str, statistic: Statistic) -> OutputField:
    return _measured(name, width, lambda line, usage: line._disk(amount_of(usage, measure, statistic)))


def _cpu_of(name: str, width: int, statistic: Statistic) -> OutputField:
    return _measured(name, width, lambda line, usage: format_elapsed(amount_of(usage, "cpu", statistic), padded=True))


def _node_of(name: str, width: int, measure: str, statistic: Statistic = "most") -> OutputField:
    return _measured(name, width, lambda line, usage: place_of(usage, measure, statistic)[0])


def _task_of(name: str, width: int, measure: str, statistic: Statistic = "most") -> OutputField:
    return _measured(name, width, lambda line, usage: str(place_of(usage, measure, statistic)[1]))


def _usage(name: str, width: int, measure: Measure) -> OutputField:
    return OutputField(name, width, None, lambda line: line.measured(measure))


def _nodes_of(name: str, width: int, measure: Measure) -> OutputField:
    """Where each was seen: ``cpu=n1,mem=n2``."""
    return OutputField(
        name, width, None, lambda line: ",".join(f"{each}={node}" for each, (node, _) in line.places(measure).items())
    )


def _tasks_of(name: str, width: int, measure: Measure) -> OutputField:
    """Of which task: ``cpu=0,mem=1``. Energy is nobody's."""
    return OutputField(
        name,
        width,
        None,
        lambda line: ",".join(f"{each}={task}" for each, (_, task) in line.places(measure).items() if each != "energy"),
    )


def _constant(name: str, width: int, job: str = "", step: str = "") -> OutputField:
    """A field that slurmk has no data for."""
    return OutputField(name, width, (lambda line: job) if job else None, (lambda line: step) if step else None)


FIELDS: tuple[OutputField, ...] = (
    _shared("Account", 10, "account"),
    _column("AdminComment", 15, "admin_comment"),
    _both("AllocCPUS", 10, Line.cpus),
    _both("AllocNodes", 10, Line.nodes_allocated),
    _both("AllocTRES", 10, Line.tres_allocated),
    _shared("AssocID", 7, "association_id"),
    _cpu_of("AveCPU", 10, "average"),
    _constant("AveCPUFreq", 10, step="0"),
    _disk_of("AveDiskRead", 14, "disk_read", "average"),
    _disk_of("AveDiskWrite", 14, "disk_write", "average"),
    _count("AvePages", 10, "pages", "average"),
    _memory_of("AveRSS", 10, "rss", "average"),
    _memory_of("AveVMSize", 10, "vsize", "average"),
    _constant("BlockID", 16),
    _both("Cluster", 10, Line.cluster),
    OutputField("Comment", 14, Line.comment),
    _column("Constraints", 19, "constraints"),
    _both("ConsumedEnergy", 14, Line.energy),
    _both("ConsumedEnergyRaw", 17, Line.energy),
    _column("Container", 19, "container"),
    _both("CPUTime", 10, Line.cpu_time),
    _both("CPUTimeRAW", 10, Line.cpu_time_raw),
    _both("DBIndex", -21, Line.db_index),
    OutputField("DerivedExitCode", 15, Line.derived_exit_code),
    _both("Elapsed", 10, Line.elapsed),
    _both("ElapsedRaw", 10, Line.elapsed_raw),
    _both("Eligible", 19, Line.eligible),
    _both("End", 19, Line.end),
    OutputField("Exclusive", 14, Line.exclusive),
    _both("ExitCode", 8, Line.exit_code),
    OutputField("Extra", 14, Line.extra),
    _column("FailedNode", 8, "failed_node"),
    OutputField("Flags", 19, Line.flags),
    _column("GID", 6, "group_id"),
    _column("Group", 9, "group_name"),
    _both("JobID", -12, Line.job_id),
    _both("JobIDRaw", -12, Line.job_id_raw),
    _both("JobName", 10, Line.name),
    _both("Layout", 9, Line.layout),
    _column("Licenses", 10, "licenses"),
    _disk_of("MaxDiskRead", 12, "disk_read", "most"),
    _node_of("MaxDiskReadNode", 15, "disk_read"),
    _task_of("MaxDiskReadTask", 15, "disk_read"),
    _disk_of("MaxDiskWrite", 12, "disk_write", "most"),
    _node_of("MaxDiskWriteNode", 16, "disk_write"),
    _task_of("MaxDiskWriteTask", 16, "disk_write"),
    _count("MaxPages", 8, "pages", "most"),
    _node_of("MaxPagesNode", 12, "pages"),
    _task_of("MaxPagesTask", 14, "pages"),
    _memory_of("MaxRSS", 10, "rss", "most"),
    _node_of("MaxRSSNode", 10, "rss"),
    _task_of("MaxRSSTask", 10, "rss"),
    _memory_of("MaxVMSize", 10, "vsize", "most"),
    _node_of("MaxVMSizeNode", 14, "vsize"),
    _task_of("MaxVMSizeTask", 14, "vsize"),
    _column("McsLabel", 12, "mcs_label"),
    _cpu_of("MinCPU", 10, "least"),
    _node_of("MinCPUNode", 10, "cpu", "least"),
    _task_of("MinCPUTask", 10, "cpu", "least"),
    _both("NCPUS", 10, Line.cpus),
    _both("NNodes", 8, Line.nodes),
    _both("NodeList", 15, Line.node_list),
    _both("NTasks", 8, Line.tasks),
    _shared("OriginalSLUID", 14, "sluid"),
    OutputField("OverSubscribe", 14, Line.oversubscribe),
    _column("Partition", 10, "partition"),
    OutputField("Planned", 10, Line.planned),
    OutputField("PlannedCPU", 10, Line.planned_cpu),
    OutputField("PlannedCPURAW", 13, Line.planned_cpu_raw),
    _column("Priority", 10, "priority"),
    _column("QOS", 10, "qos"),
    _column("QOSRAW", 6, "qos_id"),
    _column("QOSREQ", 10, "qos_requested"),
    OutputField("Reason", 22, Line.reason),
    _both("ReqCPUFreq", 10, Line.frequency),
    _both("ReqCPUFreqGov", 13, Line.frequency),
    _both("ReqCPUFreqMax", 13, Line.frequency),
    _both("ReqCPUFreqMin", 13, Line.frequency),
    _both("ReqCPUS", 8, Line.cpus_requested),
    OutputField("ReqMem", 10, Line.memory_requested),
    _both("ReqNodes", 8, Line.nodes_requested),
    OutputField("ReqTRES", 10, Line.tres_requested),
    _column("Reservation", 20, "reservation"),
    OutputField("ReservationId", 8, lambda line: str(line.job.reservation_id or "")),
    _column("ReqReservation", 20, "reservation_requested"),
    _column("Restarts", 8, "restart_count"),
    OutputField("SegmentSize", 11, lambda line: str(line.job.segment_size or "")),
    _shared("SLUID", 14, "sluid"),
    _both("Start", 19, Line.start),
    _both("State", 10, Line.state),
    OutputField("StdErr", 20, Line.standard_error),
    OutputField("StdIn", 20, Line.standard_input),
    OutputField("StdOut", 20, Line.standard_output),
    _both("Submit", 19, Line.submit),
    _both("SubmitLine", 20, Line.submit_line),
    _both("Suspended", 10, Line.suspended),
    _column("SystemComment", 15, "system_comment"),
    _both("SystemCPU", 10, Line.system_cpu),
    OutputField("Timelimit", 10, Line.time_limit, Line.step_time_limit),
    OutputField("TimelimitRaw", 10, Line.time_limit_raw, Line.step_time_limit_raw),
    _both("TotalCPU", 10, Line.total_cpu),
    _usage("TRESUsageInAve", 14, AVERAGE_IN),
    _usage("TRESUsageInMax", 14, MOST_IN),
    _nodes_of("TRESUsageInMaxNode", 18, MOST_IN),
    _tasks_of("TRESUsageInMaxTask", 18, MOST_IN),
    _usage("TRESUsageInMin", 14, LEAST_IN),
    _nodes_of("TRESUsageInMinNode", 18, LEAST_IN),
    _tasks_of("TRESUsageInMinTask", 18, LEAST_IN),
    _usage("TRESUsageInTot", 14, TOTAL_IN),
    _usage("TRESUsageOutAve", 15, AVERAGE_OUT),
    _usage("TRESUsageOutMax", 15, MOST_OUT),
    _nodes_of("TRESUsageOutMaxNode", 19, MOST_OUT),
    _tasks_of("TRESUsageOutMaxTask", 19, MOST_OUT),
    _usage("TRESUsageOutMin", 15, LEAST_OUT),
    _nodes_of("TRESUsageOutMinNode", 19, LEAST_OUT),
    _tasks_of("TRESUsageOutMinTask", 19, LEAST_OUT),
    _usage("TRESUsageOutTot", 15, TOTAL_OUT),
    _column("UID", 6, "user_id"),
    _column("User", 9, "user_name"),
    _both("UserCPU", 10, Line.user_cpu),
    _column("WCKey", 10, "wckey"),
    OutputField("WCKeyID", 10, lambda line: "0"),
    _column("WorkDir", 20, "work_directory"),
)
"""In the order of --helpformat."""

_FREQUENCY = "as without a request: frequencies of CPUs are not set"
_ENERGY = "0: energy is not measured"
WITHOUT_DATA: dict[str, str] = {
    "avecpufreq": "0: frequencies of CPUs are not measured",
    "blockid": "nothing: of machines that are gone",
    "consumedenergy": _ENERGY,
    "consumedenergyraw": _ENERGY,
    "reqcpufreq": _FREQUENCY,
    "reqcpufreqgov": _FREQUENCY,
    "reqcpufreqmax": _FREQUENCY,
    "reqcpufreqmin": _FREQUENCY,
    "wckeyid": "0: wckeys have no number",
}
"""Fields that print what Slurm prints without data, by name, and why."""

SUMS = frozenset(("UserCPU", "SystemCPU", "TotalCPU", "ConsumedEnergy", "ConsumedEnergyRaw"))
"""Fields that a job's line has from its steps."""

MOMENTS = frozenset(("Eligible", "End", "Start", "Submit"))
NO_MOMENT = ("None", "Unknown")
"""Fields that are moments, and the words that stand for none."""

WHOLE = frozenset(
    "AllocCPUS AllocNodes AssocID CPUTime CPUTimeRAW DBIndex Elapsed ElapsedRaw GID MaxDiskReadTask MaxDiskWriteTask "  # noqa: SIM905
    "MaxPagesTask MaxRSSTask MaxVMSizeTask MinCPUTask NCPUS NNodes NTasks OriginalSLUID Planned PlannedCPU PlannedCPURAW "
    "Priority QOSRAW ReqCPUS ReqNodes ReservationId Restarts SegmentSize SLUID Suspended UID WCKeyID".split()
)
"""Fields that a narrow column does not cut."""

DEFAULT_FORMAT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF_FORMAT = "jobid,state,exitcode"
LONG_FORMAT = (
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,"
    "maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,alloccpus,elapsed,state,exitcode,"
    "avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask,"
    "avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,reqtres,alloctres,tresusageinave,tresusageinmax,"
    "tresusageinmaxnode,tresusageinmaxtask,tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutmax,"
    "tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot"
)


@dataclass(frozen=True, slots=True)
class PrintedColumn:
    """A field with the width it is printed in."""

    field: OutputField
    width: int

    @property
    def header(self) -> str:
        return self._placed(self.field.name[: abs(self.width)])

    @property
    def dashes(self) -> str:
        return "-" * abs(self.width)

    def cell(self, text: str) -> str:
        """``text`` in the column's width; what is longer is cut with a plus sign at the end, but numbers are whole always,
        and of a moment is nothing left but the mark of what does not fit."""
        width = abs(self.width)
        if len(text) > width and self.field.name not in WHOLE:
            if self.field.name not in MOMENTS:
                text = f"{text[: width - 1]}+" if width else ""
            else:
                text = text[:width] if text in NO_MOMENT else "#" * width
        return self._placed(text)

    def _placed(self, text: str) -> str:
        return text.ljust(-self.width) if self.width < 0 else text.rjust(self.width)


REMOVED_FIELDS = {"allocgres": "AllocGRES", "reqgres": "ReqGRES"}
"""Fields of older releases, which have others in their place."""


@lru_cache(maxsize=256)
def columns_of(format_text: str) -> tuple[PrintedColumn, ...]:
    """The columns of ``jobid,state%20,nodelist%-10``. A name may be shortened and means the first field that begins so; a
    width given to a field counts wherever it stands. Raises GrammarError, whose text begins with its severity."""
    fields: list[OutputField] = []
    widths: dict[str, int] = {}
    for word in format_text.split(","):
        name, percent, width = word.partition("%")
        if not name:
            break
        if name.lower() == "all":
            fields += FIELDS
            continue
        field = next((field for field in FIELDS if field.name.lower().startswith(name.lower())), None)
        if field is None and (gone := REMOVED_FIELDS.get(name.lower())):
            raise GrammarError(f"fatal: {gone} has been removed, please use {gone.replace('GRES', 'TRES')}")
        if field is None:
            raise GrammarError(f'error: Invalid field requested: "{name}"')
        if percent:
            widths[field.name] = _width(width)
        fields.append(field)
    return tuple(PrintedColumn(field, widths.get(field.name, field.width)) for field in fields)


def _width(text: str) -> int:
    match = re.match(r"\s*([+-]?\d{1,9})", text, re.ASCII)
    return max(-_WIDEST, min(_WIDEST, int(match[1]))) if match else 0


_WIDEST = 4096
