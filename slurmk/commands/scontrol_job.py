"""``scontrol show job`` and ``show step``: records as lines of ``Key=value``, in the reference's order and layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from grammar.arrays import format_tasks
from grammar.frequencies import cpu_frequency
from grammar.times import format_duration_minutes, format_elapsed
from grammar.tres import format_tres, parse_tres
from slurmk.commands.call import Call, Controller, Output
from slurmk.commands.job_text import (
    JobText,
    date_text,
    exit_code_text,
    node_list,
    reason,
    running_steps,
    state_name,
    step_id_text,
)
from slurmk.commands.node_text import gres_held
from slurmk.core.errors import SlurmError
from slurmk.core.events import JobSelection
from slurmk.core.selection import parse, parse_step
from slurmk.core.submission import tracks_keys
from slurmk.model.job import BATCH_STEP, EXTERN_STEP, GresShare, Job, JobRequest, NodeShare, Step
from slurmk.model.node import SHARED_DEVICES, Node
from slurmk.model.requested import gres_nodes, has_step_manager
from slurmk.model.states import INFINITE, NO_VALUE, JobState

NULL = "(null)"
PIECE = 200
"""Records that are printed before others are served."""


def _or_null(text: str | None) -> str:
    return text or NULL


def _said(text: str | None) -> str:
    """What a request says, an empty text too."""
    return NULL if text is None else text


def _or_any(value: int | None) -> str:
    return "*" if value is None else str(value)


# ---------------------------------------------------------------------------------------------- jobs


def job_lines(text: JobText, job: Job, *, details: bool = False) -> list[str]:
    """The record of one job, line by line without indentation."""
    lines = [
        _identity(job),
        *([f"SLUID={_or_null(job.sluid)}"] if details else []),
        *([f"HetJobIdSet={text.het_set(job)}"] if job.het_job_id else []),
        _owner(job),
        f"Priority={job.priority} Nice={job.request.nice or 0} Account={_or_null(job.account)} QOS={_or_null(job.qos)}"
        + (f" WCKey={job.request.wckey or ''}" if tracks_keys(text.site) else ""),
        f"JobState={state_name(job)} Reason={reason(job).replace(' ', '_')} Dependency={_or_null(text.dependency(job))}",
        *([f"FailedNode={job.failed_node}"] if job.failed_node else []),
        f"Requeue={int(text.requeues(job))} Restarts={job.restarts} BatchFlag={int(job.batch)}"
        f" Reboot={int(job.request.reboot)} ExitCode={exit_code_text(job.exit_code)}",
        *([f"DerivedExitCode={exit_code_text(job.derived_exit_code)}"] if details else []),
        *_times(text, job),
        *_places(text, job),
        *_size(text, job, details),
        *_how(text, job),
        *_files(text, job),
        *_flags(job.request),
        *_trackable(job),
    ]
    request = job.request
    if request.mail_type:
        lines.append(f"MailUser={request.mail_user or job.credentials.user_name} MailType={text.mail_types(job)}")
    if request.ntasks_per_tres:
        lines.append(f"NtasksPerTRES={request.ntasks_per_tres}")
    container = (request.container_type, request.container, request.container_id)
    if any(value is not None for value in container):
        kind, path, name = (NULL if value is None else value for value in container)
        lines.append(f"ContainerType={kind} Container={path} ContainerID={name}")
    return lines


def _identity(job: Job) -> str:
    words = [f"JobId={job.job_id}"]
    if job.array_job_id:
        tasks = format_tasks(job.array_tasks) if job.array_tasks else str(NO_VALUE)
        limit = job.array_maximum_running
        if job.array_tasks and limit:
            tasks += f"%{limit}"
        words.append(f"ArrayJobId={job.array_job_id}")
        words.append(f"ArrayTaskId={tasks if job.array_task_id is None else job.array_task_id}")
        if limit:
            words.append(f"ArrayTaskThrottle={limit}")
    elif job.het_job_id:
        words.append(f"HetJobId={job.het_job_id} HetJobOffset={job.het_job_offset}")
    words.append(f"JobName={job.name}")
    return " ".join(words)


def _owner(job: Job) -> str:
    owner = job.credentials
    user, group = f"{owner.user_name}({owner.user_id})", f"{owner.group_name}({owner.group_id})"
    return f"UserId={user} GroupId={group} MCS_label={_said(job.request.mcs_label).replace(NULL, 'N/A')}"


def _times(text: JobText, job: Job) -> Iterator[str]:
    request = job.request
    minimum = format_duration_minutes(request.time_minimum) if request.time_minimum else "N/A"
    run_time = format_elapsed(text.run_seconds(job), padded=True)
    yield f"RunTime={run_time} TimeLimit={format_duration_minutes(job.time_limit, unset='Partition_Limit')} TimeMin={minimum}"
    eligible = date_text(text.eligible(job), "Unknown")
    yield f"SubmitTime={date_text(job.submit_time, 'Unknown')} EligibleTime={eligible}"
    yield f"AccrueTime={date_text(job.accrue_time, 'Unknown')}"
    if job.resize_time:
        yield f"ResizeTime={date_text(job.resize_time, 'Unknown')}"
    end = 0 if text.never_ends(job) else text.end(job)
    yield (
        f"StartTime={date_text(text.start(job), 'Unknown')} EndTime={date_text(end, 'Unknown')}"
        f" Deadline={date_text(request.deadline or 0, 'N/A')}"
    )
    if request.crontab is not None:
        yield f'CronJob=Yes CrontabSpec="{request.crontab}"'
    if not job.pending:
        yield f"PreemptEligibleTime={date_text(job.start_time, 'Unknown')} PreemptTime=None"
    before = text.run_seconds(job) if job.state is JobState.SUSPENDED else 0
    evaluated = date_text(job.last_schedule_evaluation or job.start_time or job.submit_time, "Unknown")
    suspended = date_text(job.suspend_time, "None")
    yield f"SuspendTime={suspended} SecsPreSuspend={before} LastSchedEval={evaluated} Scheduler=Main"


def _places(text: JobText, job: Job) -> Iterator[str]:
    request = job.request
    yield f"Partition={job.partition} AllocNode:Sid={job.submit_host}:{job.session_id}"
    yield f"ReqNodeList={_or_null(request.required_nodes)} ExcNodeList={_said(request.excluded_nodes)}"
    planned = text.planned_nodes(job)
    yield f"NodeList={text.nodes(job)}" + (f" SchedNodeList={planned}" if planned else "")
    if job.allocation:
        yield f"BatchHost={text.batch_host(job)}"
    if has_step_manager(job, text.site):
        yield "StepMgrEnabled=Yes"
    if request.batch_features:
        yield f"BatchFeatures={request.batch_features}"


def _node_range(text: JobText, job: Job) -> str:
    count = text.node_count(job)
    request = job.request
    said = request.nodes or request.tasks or request.required_nodes or request.hold
    if not job.pending or not ((said and request.maximum_nodes) or request.tasks_per_node):
        return str(count)
    return f"{count}-{count if gres_nodes(request) else max(count, request.maximum_nodes or 0)}"


def _size(text: JobText, job: Job, details: bool) -> Iterator[str]:
    request = job.request
    yield (
        f"NumNodes={_node_range(text, job)} NumCPUs={text.cpu_count(job)} NumTasks={text.tasks_count(job)}"
        f" CPUs/Task={text.cpus_per_task(job)}"
        f" ReqB:S:C:T=0:0:{_or_any(request.cores_per_socket)}:{_or_any(request.threads_per_core)}"
    )
    yield f"ReqTRES={text.requested_tres(job)}"
    yield f"AllocTRES={_or_null(text.allocated_tres(job))}"
    socket, core = _or_any(request.tasks_per_socket), _or_any(request.tasks_per_core)
    per_node = f"{request.tasks_per_node or 0}:{request.tasks_per_board or 0}:{socket}:{core}"
    specialised = _or_any(request.core_specification)
    yield f"Socks/Node={_or_any(request.sockets_per_node)} NtasksPerN:B:S:C={per_node} CoreSpec={specialised}"
    if details and job.allocation:
        yield f"JOB_GRES={_gres_total(job.allocation.shares) or NULL}"
        yield from _node_details(job.allocation.shares, text.machine.nodes)
    memory = f"MinMemory{text.memory_demand(job).per}={text.minimum_memory(job)}"
    yield f"MinCPUsNode={text.minimum_cpus(job)} {memory} MinTmpDiskNode={text.temporary_disk(job)}"


def _gres_total(shares: Iterable[NodeShare]) -> str:
    totals: dict[str, int] = {}
    for share in shares:
        for gres in share.gres:
            name = _gres_name(gres)
            totals[name] = totals.get(name, 0) + gres.count
    return ",".join(f"{name}:{count}" for name, count in totals.items())


def _gres_name(gres: GresShare) -> str:
    return f"{gres.name}:{gres.type}" if gres.type and gres.name not in SHARED_DEVICES else gres.name


def _gres_on_node(share: NodeShare, nodes: Mapping[str, Node]) -> str:
    return ",".join(gres_held(gres, nodes.get(share.node)) for gres in share.gres)


def _ranges(numbers: Sequence[int]) -> str:
    return format_tasks([range(number, number + 1) for number in numbers])


def _node_details(shares: Sequence[NodeShare], nodes: Mapping[str, Node]) -> Iterator[str]:
    """Neighbouring nodes on which the job holds the same are one line."""

    def held(share: NodeShare) -> tuple[str, int, str]:
        return _ranges(share.cpu_ids or tuple(range(share.cpus))), share.memory, _gres_on_node(share, nodes)

    for (cpu_ids, memory, gres), group in groupby(shares, key=held):
        yield f"  Nodes={node_list(tuple(share.node for share in group))} CPU_IDs={cpu_ids} Mem={memory} GRES={gres}"


def _delay(seconds: int) -> str:
    return "UNLIMITED" if seconds == INFINITE else format_elapsed(seconds, padded=True)


def _how(text: JobText, job: Job) -> Iterator[str]:
    request = job.request
    yield f"Features={_said(text.features(job))} DelayBoot={_delay(request.delay_boot or 0)}"
    if request.cluster_constraint is not None:
        yield f"ClusterFeatures={request.cluster_constraint}"
    if (preferred := text.prefer(job)) is not None:
        yield f"Prefer={preferred}"
    if job.reservation:
        yield f"Reservation={job.reservation}"
    licenses = _or_null(request.licenses)
    yield (
        f"OverSubscribe={text.oversubscribe(job)} Exclusive={text.exclusive(job)} Contiguous={int(request.contiguous)}"
        f" Licenses={licenses} LicensesAlloc={licenses if job.allocation else NULL} Network={_said(request.network)}"
    )
    yield f"Command={_or_null(job.command)}"
    if job.submit_line:
        yield f"SubmitLine={job.submit_line}"
    yield f"WorkDir={_or_null(request.current_working_directory)}"
    for name, value in (
        ("AdminComment", job.admin_comment),
        ("SystemComment", job.system_comment),
        ("Comment", request.comment),
        ("Extra", request.extra),
    ):
        if value or (value is not None and name in ("Comment", "Extra")):
            yield f"{name}={value}"


_SEGMENTS: dict[tuple[bool, bool], str] = {
    (consolidate, spread): " SpreadSegments=Yes" * spread + " ConsolidateSegments=Yes" * consolidate
    for consolidate in (False, True)
    for spread in (False, True)
}


def _files(text: JobText, job: Job) -> Iterator[str]:
    request = job.request
    if job.batch:
        yield f"StdErr={text.file(job, request.standard_error, '')}"
        yield f"StdIn={text.file(job, request.standard_input, '/dev/null')}"
        yield f"StdOut={text.file(job, request.standard_output, text.output_pattern(job))}"
    if request.segment_size:
        yield f"SegmentSize={request.segment_size}" + _SEGMENTS[request.consolidate_segments, request.spread_segments]
    if request.required_switches:
        wait = format_elapsed(text.switch_wait(job), padded=True)
        yield f"Switches={request.required_switches}@{wait}"


_GRES_FLAGS = (
    ("disable-binding", "GresEnforceBind=No"),
    ("enforce-binding", "GresEnforceBind=Yes"),
    ("multiple-tasks-per-sharing", "GresOneTaskPerSharing=No"),
    ("one-task-per-sharing", "GresOneTaskPerSharing=Yes"),
)


def _flags(request: JobRequest) -> Iterator[str]:
    if request.burst_buffer is not None:
        yield f"BurstBuffer={request.burst_buffer}"
    if request.cpu_frequency:
        yield _cpu_frequency(request.cpu_frequency)
    words = [text for word, text in _GRES_FLAGS if word in (request.gres_flags or "").split(",")]
    if request.kill_on_invalid_dependency is not None:
        words.append(f"KillOnInvalidDependent={'Yes' if request.kill_on_invalid_dependency else 'No'}")
    if request.spread_job:
        words.append("SpreadJob=Yes")
    if request.expedited_requeue:
        words.append("ExpeditedRequeue=Yes")
    if words:
        yield " ".join(words)
    if request.oom_kill_step is not None:
        yield f"OOMKillStep={request.oom_kill_step}"


def _cpu_frequency(text: str) -> str:
    asked = cpu_frequency(text)
    said = (("CPU_min_freq", asked.least), ("CPU_max_freq", asked.most), ("Governor", asked.governor))
    return " ".join(f"{name}={_GOVERNORS.get(word, word.capitalize())}" for name, word in said if word)


_GOVERNORS = {"ondemand": "OnDemand", "powersave": "PowerSave", "schedutil": "SchedUtil", "userspace": "UserSpace"}
"""Governors that are written with two capitals."""


def _trackable(job: Job) -> Iterator[str]:
    request = job.request
    per_task = request.tres_per_task
    if request.cpus_per_task and "cpu" not in (per_task or ""):
        per_task = f"cpu={request.cpus_per_task}" + (f",{per_task}" if per_task else "")
    for name, value in (
        ("CpusPerTres", request.cpus_per_tres),
        ("MemPerTres", request.memory_per_tres),
        ("TresBind", request.tres_bind),
        ("TresFreq", request.tres_freq),
        ("TresPerJob", request.tres_per_job),
        ("TresPerNode", request.tres_per_node),
        ("TresPerSocket", request.tres_per_socket),
        ("TresPerTask", per_task),
    ):
        if value is not None:
            yield f"{name}={value}"


def record(lines: Sequence[str], *, one_line: bool) -> str:
    """Lines as they are printed: indented with a blank line behind, or all in one."""
    if one_line:
        return " ".join(line.strip() for line in lines) + "\n"
    return "\n   ".join(lines) + "\n\n"


async def show_job(
    name: str | None, call: Call, controller: Controller, output: Output, *, details: bool, one_line: bool, quiet: bool = False
) -> int:
    """``show job [id]``."""
    machine = controller.machine
    text = JobText(machine, controller.now())
    if not name:
        jobs = sorted(visible_jobs(call, controller), key=_list_order)
        if not jobs and not quiet:
            output.write("No jobs in the system\n")
        await _print(output, [(text, job) for job in jobs], details, one_line)
        return 0
    try:
        selection = parse(name, controller.machine.jobs.values()) if "," not in name and "." not in name else None
        if selection is None:
            raise ValueError
    except (SlurmError, ValueError):
        output.error("scontrol_print_job error: Invalid job id specified\n")
        return 1
    known = [job for job in visible_jobs(call, controller) if _is_named(job, selection.job_id)]
    if not known:
        output.error("" if quiet else "slurm_load_jobs error: Invalid job id specified\n")
        return 1
    wanted = _chosen(known, selection.array_tasks, selection.het_offset)
    if not wanted:
        output.error(f"Job {name} not found\n")
        return 1
    await _print(output, [(text, job) for job in sorted(wanted, key=lambda job: job.job_id)], details, one_line)
    return 0


def _list_order(job: Job) -> tuple[int, int]:
    return job.array_job_id or job.job_id, NO_VALUE if job.array_task_id is None else job.array_task_id


def _is_named(job: Job, number: int) -> bool:
    return number in (job.job_id, job.array_job_id, job.het_job_id)


def _chosen(jobs: Sequence[Job], tasks: tuple[range, ...], het_offset: int | None) -> list[Job]:
    if het_offset is not None:
        return [job for job in jobs if job.het_job_id and job.het_job_offset == het_offset]
    if not tasks:
        return list(jobs)
    found = []
    for job in jobs:
        if job.array_task_id is not None:
            if any(job.array_task_id in part for part in tasks):
                found.append(job)
            continue
        for own in job.array_tasks:
            found += [replace(job, array_task_id=task, array_tasks=()) for task in own if any(task in part for part in tasks)]
    return found


def visible_jobs(call: Call, controller: Controller) -> Iterator[Job]:
    """The jobs that PrivateData lets the caller see."""
    private = "jobs" in controller.machine.site.private_data and not call.caller.operator
    jobs = tuple(controller.machine.jobs.values())
    return (job for job in jobs if not private or job.credentials.user_id == call.caller.user_id)


def named_jobs(name: str | None, jobs: Iterable[Job]) -> list[Job]:
    """Those of ``jobs`` that a job's name means; all without one. Raises SlurmError for what is no name."""
    if name is None:
        return list(jobs)
    jobs = list(jobs)
    selection = parse(name, jobs)
    known = [job for job in jobs if _is_named(job, selection.job_id)]
    return _chosen(known, selection.array_tasks, selection.het_offset)


def named_steps(name: str | None, jobs: Iterable[Job]) -> list[tuple[Step, Job]]:
    """The running steps that a step's name means, in the order in which they are listed. Raises SlurmError."""
    jobs = list(jobs)
    selection = parse(name, jobs) if name is not None else None
    return [
        (step, job)
        for job in sorted(named_jobs(name, jobs), key=_list_order)
        for step in _by_number(job)
        if selection is None or (selection.step_id in (None, step.step_id) and _is_itself(selection, job))
    ]


def _is_itself(selection: JobSelection, job: Job) -> bool:
    """Whether the job is meant by its own number where it is a component of a het job: the number of the first one does not
    stand for the steps of all."""
    return not job.het_job_id or selection.het_offset is not None or job.job_id == selection.job_id


async def _print(output: Output, jobs: Sequence[tuple[JobText, Job]], details: bool, one_line: bool) -> None:
    for position, (text, job) in enumerate(jobs, 1):
        output.write(record(job_lines(text, job, details=details), one_line=one_line))
        if position % PIECE == 0:
            await output.drain()
    await output.drain()


# ---------------------------------------------------------------------------------------------- steps


_LAYOUTS = {"cyclic": "Cyclic", "arbitrary": "arbitrary task distribution"}
"""How layouts are called that are not called by their own words."""


def step_lines(step: Step, job: Job, *, details: bool = False) -> list[str]:
    """The record of one step."""
    limit = INFINITE if step.time_limit is None else step.time_limit
    script = step.step_id in (BATCH_STEP, EXTERN_STEP)
    waits = step.state is JobState.PENDING
    layout = (
        ""
        if script
        else " Dist=Unknown"
        if waits
        else f" Dist={_LAYOUTS.get(step.distribution or 'cyclic') or str(step.distribution).title()}"
    )
    return [
        f"StepId={step_id_text(step, job)} UserId={job.credentials.user_id}"
        f" StartTime={date_text(step.start_time, 'Unknown')} TimeLimit={format_duration_minutes(limit)}",
        *([f"SLUID={_or_null(job.sluid)}"] if details else []),
        f"State={step.state.name} Partition={job.partition} NodeList={node_list(step.nodes)}",
        f"Nodes={len(step.nodes)} CPUs={0 if script else step.cpus} Tasks={step.tasks} Name={step.name} Network=(null)",
        f"TRES={NULL if script or waits else _step_tres(step)}",
        "ResvPorts=(null)",
        f"CPUFreqReq=Default{layout}",
        f"SrunHost:Pid={NULL if script else job.submit_host}:0",
        *([f"TresPerNode={job.request.tres_per_node}"] if job.request.tres_per_node and step.gres and not script else []),
    ]


def _step_tres(step: Step) -> str:
    gres = parse_tres(step.gres) if step.gres else {}
    amounts = {name: count for name, count in gres.items() if ":" not in name}
    words = format_tres(amounts | {"cpu": step.cpus, "mem": step.memory, "node": len(step.nodes)}).split(",")
    return ",".join(sorted([*words, *([] if step.memory else ["mem=0"])]))


async def show_step(
    name: str | None, call: Call, controller: Controller, output: Output, *, details: bool, one_line: bool
) -> int:
    """``show step [job[.step]]``."""
    jobs = [job for job in visible_jobs(call, controller) if job.steps]
    if not name:
        rows = [(step, job) for job in sorted(jobs, key=_list_order) for step in _by_number(job)]
        if not rows:
            output.write("No job steps in the system\n")
        _print_steps(output, rows, details, one_line)
        return 0
    prefix = f"scontrol: error: scontrol_print_step: slurm_get_job_steps({name}) failed: "
    try:
        selection = parse_step(name, controller.machine.jobs.values())
    except SlurmError as error:
        output.error(f"{prefix}{error}\n")
        return 1
    if not any(_is_named(job, selection.job_id) for job in controller.machine.jobs.values()):
        output.error(f"{prefix}Invalid job id specified\n")
        return 1
    named = [job for job in jobs if _is_named(job, selection.job_id)]
    chosen = [job for job in _chosen(named, selection.array_tasks, selection.het_offset) if _is_itself(selection, job)]
    rows = [
        (step, job)
        for job in chosen
        for step in _by_number(job)
        if selection.step_id is None or step.step_id == selection.step_id
    ]
    if not rows:
        output.write(f"Job step {name}{'' if '.' in name else '.'} not found\n")
        return 1
    _print_steps(output, rows, details, one_line)
    return 0


def _by_number(job: Job) -> list[Step]:
    """Steps as scontrol lists them: the batch script first."""
    return sorted(running_steps(job), key=lambda step: (step.step_id != BATCH_STEP, step.step_id))


def _print_steps(output: Output, rows: Iterable[tuple[Step, Job]], details: bool, one_line: bool) -> None:
    for step, job in rows:
        output.write(record(step_lines(step, job, details=details), one_line=one_line))
