"""Accounting's records of jobs and steps (slurmdb's ``job`` and ``step``): sacct and the REST API's ``/slurmdb/job``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from grammar.arrays import LARGEST_ARRAY, parse_array
from grammar.errors import GrammarError
from grammar.hostlist import expand
from grammar.patterns import PatternValues, expand_pattern
from grammar.tres import parse_tres
from slurmk.commands.documents.shape import VERSIONS, Member, Shape, constant, nested
from slurmk.commands.documents.values import INFINITY, UNSET, exit_code, job_state, limit, number
from slurmk.commands.job_text import STEP_NAMES
from slurmk.commands.node_text import user_name
from slurmk.commands.sacct_fields import (
    AVERAGE_IN,
    AVERAGE_OUT,
    LEAST_IN,
    LEAST_OUT,
    MOST_IN,
    MOST_OUT,
    TOTAL_IN,
    TOTAL_OUT,
    Line,
    Measure,
)
from slurmk.model.job import BATCH_STEP
from slurmk.model.site import Site
from slurmk.model.states import NO_VALUE

_TRES = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
"""TRES that accounting always counts: the first has id 1."""
_FIRST_OTHER = 1001
_ABSENT = -2
"""What Slurm tells of an amount that nobody measured."""


@dataclass(frozen=True, slots=True)
class RecordView:
    """A job's record, or a step of it, as sacct's line of it; ``plain`` leaves patterns as they are."""

    line: Line
    plain: Line


def _job(column: str) -> Callable[[RecordView], object]:
    return lambda view: getattr(view.line.job, column)


# ------------------------------------------------------------------------------------------------ TRES


@lru_cache(maxsize=16)
def _ids(extra: str) -> dict[str, int]:
    names = [name for name in dict.fromkeys(extra.split(",")) if name and name not in _TRES]
    if "gres/gpu" in names:
        names += [name for name in ("gres/gpumem", "gres/gpuutil") if name not in names]
    return {name: number for number, name in enumerate(_TRES, 1)} | {
        name: number for number, name in enumerate(names, _FIRST_OTHER)
    }


def tres_ids(site: Site) -> Mapping[str, int]:
    """Ids of the TRES that accounting counts, by name."""
    return _ids(site.parameters.get("AccountingStorageTRES", "").lower())


def tres_list(site: Site, amounts: Mapping[str, int], where: Mapping[str, tuple[int, str]] | None = None) -> list[object]:
    """Amounts as a list by id; ``where`` adds the task and the node on which each was seen."""
    ids = tres_ids(site)
    found: list[object] = []
    for name in sorted(amounts, key=lambda name: ids.get(name, 1 << 30)):
        kind, _, rest = name.partition("/")
        entry: dict[str, object] = {"type": kind, "name": rest, "id": ids.get(name, 0), "count": amounts[name]}
        if where is not None:
            entry["task"], entry["node"] = where.get(name, (0, ""))
        found.append(entry)
    return found


def _amounts(text: str) -> dict[str, int]:
    try:
        return {name: count for name, count in parse_tres(text).items() if ":" not in name} if text else {}
    except GrammarError:
        return {}


def _allocated(view: RecordView) -> object:
    line = view.line
    amounts = _amounts((line.step or line.job).tres_allocated)
    if amounts and line.step is None and line.energy() == "":
        amounts["energy"] = _ABSENT
    return tres_list(line.manner.site, amounts)


def _requested(view: RecordView) -> object:
    return tres_list(view.line.manner.site, _amounts(view.line.job.tres_requested))


def _used(measure: Measure, *, places: bool = False) -> Callable[[RecordView], object]:
    def value(view: RecordView) -> object:
        line = view.line
        usage = line.usage()
        if usage is None:
            return []
        where = {name: (task, node) for name, (node, task) in measure.places(usage).items()} if places else None
        return tres_list(line.manner.site, measure.amounts(usage), where)

    return value


@lru_cache(maxsize=1024)
def _hosts(node_list: str) -> list[str]:
    try:
        return list(expand(node_list)) if node_list else []
    except GrammarError:
        return [node_list]


# ------------------------------------------------------------------------------------------------ values


def _array_mask(view: RecordView) -> str:
    """Waiting elements as a mask of bits."""
    text = view.line.job.array_tasks.partition("%")[0]
    if not text:
        return ""
    try:
        tasks = parse_array(text, LARGEST_ARRAY).tasks
    except GrammarError:
        return text
    mask = bytearray(tasks[-1][-1] // 8 + 1)
    for task in (task for part in tasks for task in part):
        mask[task // 8] |= 1 << task % 8
    return f"0x{int.from_bytes(mask, 'little'):X}"


def _array_limit(view: RecordView) -> int:
    count = view.line.job.array_tasks.partition("%")[2]
    return int(count) if count.isdigit() else 0


def _split(microseconds: int) -> dict[str, object]:
    seconds, rest = divmod(microseconds, 1_000_000)
    return {"seconds": seconds, "microseconds": rest}


def _cpu(*which: int) -> Callable[[RecordView], object]:
    return lambda view: _split(sum(view.line.cpu_microseconds()[each] for each in which))


def _start(view: RecordView) -> int:
    job = view.line.job
    return view.line.start_moment() or (NO_VALUE if job.time_end else 0)


_FLAGS = {
    "SchedSubmit": "STARTED_ON_SUBMIT",
    "SchedMain": "STARTED_ON_SCHEDULE",
    "SchedBackfill": "STARTED_ON_BACKFILL",
    "StartReceived": "START_RECEIVED",
}


def _flags(view: RecordView) -> list[str]:
    return [_FLAGS[word] for word in view.line.flags().split(",") if word in _FLAGS]


def _memory(per_cpu: bool) -> Callable[[RecordView], object]:
    """Memory for a CPU where the site's default is that and the job has as much, else for a node."""

    def value(view: RecordView) -> object:
        job, site = view.line.job, view.line.manner.site
        total = _amounts(job.tres_requested).get("mem", 0)
        default = site.default_memory_per_cpu
        by_cpu = default is not None and total == default * job.cpus_requested
        if by_cpu is not per_cpu:
            return UNSET
        return number(default if by_cpu else total // max(1, job.nodes_requested))

    return value


def _killer(view: RecordView) -> str:
    by = (view.line.step or view.line.job).killed_by
    return "" if by is None else user_name(by)


def _file(get: Callable[[Line], str], *, expanded: bool) -> Callable[[RecordView], object]:
    return lambda view: get(view.line if expanded else view.plain)


def _step_of(column: str) -> Callable[[RecordView], object]:
    return lambda view: getattr(view.line.step, column)


def _step_file(column: str, *, expanded: bool) -> Callable[[RecordView], object]:
    """A file that srun was told of, its pattern filled in for the step's first task or not."""

    def value(view: RecordView) -> str:
        line, step = view.line, view.line.step
        if step is None or step.step_id in STEP_NAMES:
            return ""
        pattern: str = getattr(step, column)
        if not expanded or not pattern:
            return pattern
        job = line.job
        values = PatternValues(
            job_id=job.job_id,
            array_job_id=job.array_job_id,
            array_task_id=job.array_task_id,
            job_name=job.job_name,
            user_name=job.user_name,
            step_id=str(step.step_id),
            node_name=next(iter(_hosts(step.node_list)), ""),
        )
        try:
            return expand_pattern(pattern, values)
        except GrammarError:
            return pattern

    return value


def _step_state(view: RecordView) -> list[str]:
    assert view.line.step is not None
    return job_state(view.line.step.state, 0)


def _is_batch(view: RecordView) -> bool:
    return view.line.step is not None and view.line.step.step_id == BATCH_STEP


def _step_nodes(view: RecordView) -> list[str]:
    assert view.line.step is not None
    return list(_hosts(view.line.step.node_list))


def _step_limit(view: RecordView) -> object:
    assert view.line.step is not None
    return INFINITY if view.line.step.time_limit is None else limit(view.line.step.time_limit)


def _step_exit(view: RecordView) -> object:
    assert view.line.step is not None
    return exit_code(view.line.step.exit_code)


def _step_identity(view: RecordView) -> str:
    assert view.line.step is not None
    return f"{view.line.job.job_id}.{STEP_NAMES.get(view.line.step.step_id, view.line.step.step_id)}"


_FREQUENCY: Callable[[RecordView], object] = lambda view: number(0) if _is_batch(view) else UNSET  # noqa: E731

STEP: Shape[RecordView] = Shape(
    nested(
        "time",
        Member("elapsed", lambda view: view.line.seconds()),
        Member("end", lambda view: number(view.line.end_moment())),
        Member("start", lambda view: number(view.line.start_moment())),
        constant("suspended", 0),
        Member("system", _cpu(1)),
        Member("limit", _step_limit, since=43),
        Member("total", _cpu(0, 1)),
        Member("user", _cpu(0)),
    ),
    Member("exit_code", _step_exit),
    nested(
        "nodes",
        Member("count", _step_of("nodes")),
        Member("range", _step_of("node_list")),
        Member("list", _step_nodes),
    ),
    nested("tasks", Member("count", _step_of("tasks"))),
    constant("pid", "", until=44),
    nested(
        "CPU",
        nested("requested_frequency", Member("min", _FREQUENCY), Member("max", _FREQUENCY)),
        Member("governor", lambda view: "0" if _is_batch(view) else "Unknown"),
    ),
    Member("kill_request_user", _killer),
    Member("state", _step_state),
    constant("statistics", {"CPU": {"actual_frequency": 0}, "energy": {"consumed": number(0)}}),
    nested(
        "step",
        Member("id", _step_identity),
        Member("name", _step_of("step_name")),
        Member("stderr", _step_file("standard_error", expanded=False), since=43),
        Member("stdin", _step_file("standard_input", expanded=False), since=43),
        Member("stdout", _step_file("standard_output", expanded=False), since=43),
        Member("stderr_expanded", _step_file("standard_error", expanded=True), since=43),
        Member("stdin_expanded", _step_file("standard_input", expanded=True), since=43),
        Member("stdout_expanded", _step_file("standard_output", expanded=True), since=43),
    ),
    Member("submit_line", _step_of("submit_line"), since=45),
    nested("task", Member("distribution", lambda view: view.line.layout())),
    nested(
        "tres",
        nested(
            "requested",
            Member("max", _used(MOST_IN, places=True)),
            Member("min", _used(LEAST_IN, places=True)),
            Member("average", _used(AVERAGE_IN)),
            Member("total", _used(TOTAL_IN)),
        ),
        nested(
            "consumed",
            Member("max", _used(MOST_OUT, places=True)),
            Member("min", _used(LEAST_OUT, places=True)),
            Member("average", _used(AVERAGE_OUT)),
            Member("total", _used(TOTAL_OUT)),
        ),
        Member("allocated", _allocated),
    ),
)
"""Every member of a step's record."""


def _steps(version: int) -> Callable[[RecordView], object]:
    def value(view: RecordView) -> object:
        record, manner, plain = view.line.record, view.line.manner, view.plain.manner
        views = (RecordView(Line(record, step, manner), Line(record, step, plain)) for step in record.steps)
        return [STEP.document(each, version) for each in views]

    return value


RECORD: Shape[RecordView] = Shape(
    Member("account", _job("account")),
    nested(
        "comment",
        Member("administrator", _job("admin_comment")),
        Member("job", lambda view: view.line.comment()),
        Member("system", _job("system_comment")),
    ),
    Member("allocation_nodes", _job("nodes_allocated")),
    nested(
        "array",
        Member("job_id", _job("array_job_id")),
        nested("limits", nested("max", nested("running", Member("tasks", _array_limit)))),
        Member("task_id", lambda view: number(view.line.job.array_task_id)),
        Member("task", _array_mask),
    ),
    nested(
        "association",
        Member("account", _job("account"), until=42),
        constant("account", "", since=43),
        Member("cluster", lambda view: view.line.cluster()),
        constant("partition", ""),
        Member("user", _job("user_name"), until=42),
        constant("user", "", since=43),
        Member("id", _job("association_id")),
    ),
    constant("block", ""),
    Member("cluster", lambda view: view.line.cluster()),
    Member("constraints", _job("constraints")),
    Member("container", _job("container")),
    Member("sluid", _job("sluid"), since=45),
    Member("derived_exit_code", lambda view: exit_code(view.line.job.derived_exit_code)),
    nested(
        "time",
        Member("elapsed", lambda view: view.line.seconds()),
        Member("eligible", _job("time_eligible")),
        Member("end", lambda view: view.line.end_moment()),
        Member("planned", lambda view: number(view.line.planned_seconds())),
        Member("start", _start),
        Member("submission", _job("time_submit")),
        Member("suspended", lambda view: view.line.suspended_seconds()),
        Member("system", _cpu(1)),
        Member("limit", lambda view: limit(view.line.job.time_limit)),
        Member("total", _cpu(0, 1)),
        Member("user", _cpu(0)),
    ),
    Member("exclusive", lambda view: view.line.exclusive(), since=45),
    Member("exit_code", lambda view: exit_code(view.line.exit_status())),
    Member("extra", lambda view: view.line.extra()),
    Member("failed_node", _job("failed_node")),
    Member("flags", _flags),
    Member("group", _job("group_name")),
    nested(
        "het",
        Member("job_id", _job("het_job_id")),
        Member("job_offset", lambda view: number(view.line.job.het_job_offset if view.line.job.het_job_id else None)),
    ),
    Member("job_id", _job("job_id")),
    Member("name", _job("job_name")),
    Member("licenses", _job("licenses")),
    nested("mcs", Member("label", _job("mcs_label"))),
    Member("nodes", lambda view: view.line.node_list()),
    Member("oversubscribe", lambda view: view.line.oversubscribe(), since=45),
    Member("partition", _job("partition")),
    Member("hold", lambda view: view.line.job.priority == 0),
    Member("priority", lambda view: number(view.line.job.priority)),
    Member("qos", _job("qos")),
    Member("qosreq", _job("qos_requested")),
    nested(
        "required",
        Member("CPUs", _job("cpus_requested")),
        Member("memory_per_cpu", _memory(True)),
        Member("memory_per_node", _memory(False)),
    ),
    Member("kill_request_user", _killer),
    Member("restart_cnt", _job("restart_count")),
    nested(
        "reservation",
        constant("id", 0),
        constant("name", ""),
        Member("requested", _job("reservation_requested"), since=43),
    ),
    constant("script", ""),
    Member("segment_size", _job("segment_size"), since=43),
    Member("original_sluid", _job("sluid"), since=45),
    Member("stdin_expanded", _file(Line.standard_input, expanded=True)),
    Member("stdout_expanded", _file(Line.standard_output, expanded=True)),
    Member("stderr_expanded", _file(Line.standard_error, expanded=True)),
    Member("stdout", _file(Line.standard_output, expanded=False)),
    Member("stderr", _file(Line.standard_error, expanded=False)),
    Member("stdin", _file(Line.standard_input, expanded=False)),
    nested(
        "state",
        Member("current", lambda view: job_state(view.line.job.state, view.line.job.flags)),
        Member("reason", lambda view: view.line.reason()),
    ),
    *(Member("steps", _steps(version), version, version) for version in VERSIONS),
    Member("submit_line", _job("submit_line")),
    nested("tres", Member("allocated", _allocated), Member("requested", _requested)),
    constant("used_gres", ""),
    Member("user", _job("user_name")),
    nested("wckey", Member("wckey", _job("wckey")), constant("flags", [])),
    Member("working_directory", _job("work_directory")),
)
"""Every member of a job's record."""


def record_view(line: Line) -> RecordView:
    """The view of a job's line. Its manner expands patterns; the plain one beside it does not."""
    expanding = replace(line.manner, expand_patterns=True)
    return RecordView(Line(line.record, None, expanding), Line(line.record, None, replace(expanding, expand_patterns=False)))
