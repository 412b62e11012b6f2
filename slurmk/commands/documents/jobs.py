"""Jobs of the queue (``job_info`` of the data parser): squeue, scontrol show job, and the REST API's ``/slurm/job``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from grammar.frequencies import cpu_frequency
from grammar.hostlist import compress
from slurmk.commands.documents.shape import VERSIONS, Member, Shape, constant, nested
from slurmk.commands.documents.values import INFINITY, UNSET, UNSET_FLOAT, Number, Retired, exit_code, job_state, limit, number
from slurmk.commands.job_text import JobText, node_list
from slurmk.commands.node_text import gres_held
from slurmk.core.submission import DEFAULT_WCKEY
from slurmk.model.configuration import billing
from slurmk.model.job import Job, NodeShare, Step
from slurmk.model.node import Node
from slurmk.model.requested import cpu_count, task_count
from slurmk.model.states import NO_VALUE, JobState

NO_CORE_SPECIFICATION = 0x7FFE
"""What ``thread_spec`` shows of a job that asks for none."""


@dataclass(frozen=True, slots=True)
class JobView:
    """A job beside what tells its values at this moment."""

    text: JobText
    job: Job


def _text(get: Callable[[Job], str | None]) -> Callable[[JobView], object]:
    return lambda view: get(view.job) or ""


def _asked(attribute: str) -> Callable[[JobView], object]:
    """A text of the request."""
    return lambda view: getattr(view.job.request, attribute) or ""


def _number(get: Callable[[Job], int | None]) -> Callable[[JobView], object]:
    return lambda view: number(get(view.job))


# ------------------------------------------------------------------------------------------------ flags

Test = Callable[[Job], bool]


def _chosen(attribute: str, value: bool) -> Test:
    return lambda job: getattr(job.request, attribute) is value


def _left_out(attribute: str) -> Test:
    return lambda job: not getattr(job.request, attribute)


def _gres_flag(word: str) -> Test:
    return lambda job: word in (job.request.gres_flags or "").lower()


def _asks_cpus(job: Job) -> bool:
    return bool(job.request.cpus_per_task or "cpu=" in (job.request.tres_per_task or ""))


def _asks_memory(job: Job) -> bool:
    return job.request.memory_per_node is not None or job.request.memory_per_cpu is not None


def _implies_nodes(job: Job) -> bool:
    return job.request.nodes is None and bool(job.request.tasks or job.request.tasks_per_node)


FLAGS: tuple[tuple[str, int, Test], ...] = (
    ("KILL_INVALID_DEPENDENCY", 42, _chosen("kill_on_invalid_dependency", True)),
    ("NO_KILL_INVALID_DEPENDENCY", 42, _chosen("kill_on_invalid_dependency", False)),
    ("CRON_JOB", 42, lambda job: job.request.crontab is not None),
    ("GRES_BINDING_ENFORCED", 42, _gres_flag("enforce-binding")),
    ("SPREAD_JOB", 42, _chosen("spread_job", True)),
    ("PREFER_MINIMUM_NODE_COUNT", 42, _chosen("use_min_nodes", True)),
    ("EXACT_TASK_COUNT_REQUESTED", 42, lambda job: job.request.tasks is not None),
    ("EXACT_CPU_COUNT_REQUESTED", 42, _asks_cpus),
    ("ACCRUE_COUNT_CLEARED", 42, lambda job: bool(job.accrue_time) and not job.pending),
    ("GRES_BINDING_DISABLED", 42, _gres_flag("disable-binding")),
    ("JOB_WAS_RUNNING", 42, lambda job: job.state in (JobState.RUNNING, JobState.SUSPENDED)),
    ("EXACT_MEMORY_REQUESTED", 42, _asks_memory),
    ("EXTERNAL_JOB", 43, _chosen("external", True)),
    ("USING_DEFAULT_ACCOUNT", 42, _left_out("account")),
    ("USING_DEFAULT_PARTITION", 42, _left_out("partition")),
    ("USING_DEFAULT_QOS", 42, _left_out("qos")),
    ("USING_DEFAULT_WCKEY", 42, lambda job: job.request.wckey in (None, DEFAULT_WCKEY)),
    ("DEPENDENT", 42, lambda job: job.pending and bool(job.request.dependency)),
    ("PARTITION_ASSIGNED", 42, _left_out("partition")),
    ("STEPMGR_ENABLED", 42, lambda job: job.request.step_manager),
    ("SPREAD_SEGMENTS", 45, _chosen("spread_segments", True)),
    ("CONSOLIDATE_SEGMENTS", 45, _chosen("consolidate_segments", True)),
    ("EXPEDITED_REQUEUE", 44, _chosen("expedited_requeue", True)),
    ("JOB_IMPLICIT_MAX_NODES", 45, _implies_nodes),
)
"""A job's flags in the order in which they are printed, the version that knows each first, and when it is set."""


def _flags(version: int) -> Callable[[JobView], object]:
    known = tuple((name, test) for name, since, test in FLAGS if since <= version)
    return lambda view: [name for name, test in known if test(view.job)]


# ------------------------------------------------------------------------------------------------ frequencies

_SPEEDS = {"low": 0x80000001, "medium": 0x80000002, "high": 0x80000003, "highm1": 0x80000004}
_GOVERNORS = {
    "conservative": 0x88000000,
    "ondemand": 0x84000000,
    "performance": 0x82000000,
    "powersave": 0x81000000,
    "userspace": 0x80800000,
    "schedutil": 0x80400000,
}


def _frequency(word: str | None) -> int | None:
    return int(word) if word and re.fullmatch(r"\d{1,9}", word, re.ASCII) else _SPEEDS.get(word or "")


def _frequencies(view: JobView) -> tuple[int | None, int | None, int | None]:
    """(least, most, governor) of ``--cpu-freq``, as the numbers that Slurm's protocol has for them."""
    asked = cpu_frequency(view.job.request.cpu_frequency or "")
    return _frequency(asked.least), _frequency(asked.most), _GOVERNORS.get(asked.governor or "")


# ------------------------------------------------------------------------------------------------ numbers


def _array_tasks(view: JobView) -> str:
    return view.text.array_task_id(view.job) if view.job.array_tasks else ""


def _billable(view: JobView) -> Number:
    job = view.job
    if job.het_job_id and (job.allocation is not None or job.pending):
        return number(0.0)
    if job.allocation is None:
        return UNSET_FLOAT
    partition = view.text.machine.partitions.get(job.allocation.partition)
    amounts = {"cpu": job.allocation.cpus, "mem": job.allocation.memory, "node": len(job.allocation.shares)}
    for share in job.allocation.shares:
        for gres in share.gres:
            amounts[f"gres/{gres.name}"] = amounts.get(f"gres/{gres.name}", 0) + gres.count
    return number(float(billing(partition.tres_billing_weights if partition else "", amounts)))


def _maximum_nodes(view: JobView) -> int:
    """As asked for, or as many as tasks; what is left open, and what has run, shows 0."""
    request = view.job.request
    if not view.job.pending:
        return 0
    if request.nodes is not None or request.tasks:
        return request.maximum_nodes or request.tasks or 0
    open_ended = request.cpus_per_task or request.cpus_per_tres or request.tasks_per_core or (request.minimum_nodes or 1) > 1
    return 0 if open_ended else 1


def _memory(*kinds: str) -> Callable[[JobView], object]:
    def value(view: JobView) -> object:
        demand = view.text.memory_demand(view.job)
        return number(demand.amount if demand.per in kinds else None)

    return value


def _per_part(attribute: str) -> Callable[[JobView], object]:
    """Tasks a core or socket, infinite when not limited."""

    def value(view: JobView) -> object:
        found = getattr(view.job.request, attribute)
        return INFINITY if found is None else number(found)

    return value


def _tasks(view: JobView) -> Number:
    job = view.job
    return UNSET if job.state.finished and not job.allocation else number(task_count(job.request))


def _before_suspension(view: JobView) -> Number:
    job = view.job
    if job.state is JobState.SUSPENDED and job.suspend_time:
        return number(max(0, job.suspend_time - job.start_time - job.suspended_seconds))
    return number(0)


def _priorities(view: JobView) -> list[object]:
    """The priority in each partition of a job that waits in several; slurmk's is the same in all."""
    job = view.job
    if not job.pending or not job.priority or len(job.partitions) < 2:
        return []
    return [{"partition": name, "priority": job.priority} for name in job.partitions]


def _profile(view: JobView) -> list[str]:
    words = {word.strip().upper() for word in (view.job.request.profile or "").split(",")}
    if "ALL" in words:
        return list(_PROFILES)
    return [word for word in ("NONE", *_PROFILES) if word in words] or ["NOT_SET"]


_PROFILES = ("ENERGY", "LUSTRE", "NETWORK", "TASK")


def _shared(view: JobView) -> list[str]:
    return [view.job.request.shared] if view.job.request.shared else []


def _mail_type(view: JobView) -> list[str]:
    asked = set(view.job.request.mail_type)
    return [word for word in MAIL_TYPES if word in asked]


MAIL_TYPES = (
    "BEGIN",
    "END",
    "FAIL",
    "REQUEUE",
    "TIME=100%",
    "TIME=90%",
    "TIME=80%",
    "TIME=50%",
    "STAGE_OUT",
    "ARRAY_TASKS",
    "INVALID_DEPENDENCY",
)


def _het_set(view: JobView) -> str:
    job = view.job
    if not job.het_job_id:
        return ""
    first = view.text.machine.jobs.get(job.het_job_id, job)
    return compress(map(str, first.het_components)).strip("[]")


# ------------------------------------------------------------------------------------------------ files


def _input(view: JobView) -> str:
    return (view.job.request.standard_input or "/dev/null") if view.job.batch else ""


def _output(view: JobView) -> str:
    return view.text.output_pattern(view.job) if view.job.batch else ""


def _expanded(get: Callable[[JobView], str]) -> Callable[[JobView], object]:
    def value(view: JobView) -> str:
        pattern = get(view)
        return view.text.file(view.job, pattern, "") if pattern else ""

    return value


def _error(view: JobView) -> str:
    return (view.job.request.standard_error or "") if view.job.batch else ""


# ------------------------------------------------------------------------------------------------ what it was given


def _gres_detail(view: JobView) -> list[str]:
    allocation = view.job.allocation
    if allocation is None or view.job.state.finished:
        return []
    nodes = view.text.machine.nodes
    return [
        ",".join(gres_held(gres, nodes.get(share.node)) for gres in share.gres) for share in allocation.shares if share.gres
    ]


def _resources(version: int) -> Callable[[JobView], object]:
    def value(view: JobView) -> object:
        job, allocation = view.job, view.job.allocation
        if allocation is None:
            return None
        return {
            "select_type": _select_type(view, version),
            "nodes": {
                "count": len(allocation.shares),
                "select_type": ["ONE_ROW"],
                "list": node_list(allocation.nodes),
                "whole": allocation.whole_nodes,
                "allocation": [_on_node(view, index, share) for index, share in enumerate(allocation.shares)],
            },
            "cpus": cpu_count(job.request),
            "threads_per_core": UNSET,
        }

    return value


def _select_type(view: JobView, version: int) -> list[str]:
    found = view.text.site.parameters.get("SelectTypeParameters", "CR_CORE_MEMORY").upper()
    words = [word for word in found.split(",") if word not in ("", "(NULL)", "NONE")]
    if version >= 45:
        return words or ["NONE"]
    return [kind for kind in ("CPU", "CORE", "SOCKET") if any(word.startswith(f"CR_{kind}") for word in words)]


def _on_node(view: JobView, index: int, share: NodeShare) -> dict[str, object]:
    job, node = view.job, view.text.machine.nodes.get(share.node)
    steps = [step for step in job.steps if step.state is JobState.RUNNING and step.step_id < NO_VALUE >> 1]
    here = [_part(job, step, share) for step in steps if share.node in step.nodes]
    used = min(share.cpus, sum(cpus for cpus, _ in here))
    memory = min(share.memory, sum(memory for _, memory in here))
    return {
        "index": index,
        "name": share.node,
        "cpus": {"count": share.cpus, "used": used},
        "memory": {"used": memory, "allocated": share.memory},
        "sockets": _sockets(node, share, used) if node else [],
    }


def _part(job: Job, step: Step, share: NodeShare) -> tuple[int, int]:
    """CPUs and memory of a step on one of its nodes: all that the job has there, or an equal part of the step's."""
    assert job.allocation is not None
    whole = [each for each in job.allocation.shares if each.node in step.nodes]
    if step.cpus >= sum(each.cpus for each in whole):
        return share.cpus, share.memory
    return -(-step.cpus // len(step.nodes)), step.memory // len(step.nodes)


def _sockets(node: Node, share: NodeShare, used: int) -> list[object]:
    threads = node.threads_per_core
    held = share.cpu_ids or tuple(range(share.cpus))
    cores = {cpu // threads for cpu in held}
    busy = {cpu // threads for cpu in held[:used]}
    sockets: list[object] = []
    for socket in range(node.sockets):
        first = socket * node.cores_per_socket
        states = [
            {"index": core - first, "status": _core_state(core in cores, core in busy)}
            for core in range(first, first + node.cores_per_socket)
        ]
        if any(core in cores for core in range(first, first + node.cores_per_socket)):
            sockets.append({"index": socket, "cores": states})
    return sockets


def _core_state(allocated: bool, used: bool) -> list[str]:
    if not allocated:
        return ["UNALLOCATED"]
    return ["ALLOCATED", "IN_USE"] if used else ["ALLOCATED"]


# ------------------------------------------------------------------------------------------------ the table


def _by_version(name: str, make: Callable[[int], Callable[[JobView], object]]) -> tuple[Member[JobView], ...]:
    """A member whose value is another one in each version."""
    return tuple(Member(name, make(version), version, version) for version in VERSIONS)


def _started(view: JobView) -> Number:
    return number(view.job.start_time if view.job.allocation else 0)


def _end(view: JobView) -> Number:
    """When it ended or will; without a limit a year after its start."""
    return number(view.job.start_time + _YEAR if view.text.never_ends(view.job) else view.text.end(view.job))


_YEAR = 365 * 86400


JOB: Shape[JobView] = Shape(
    Member("account", _text(lambda job: job.account)),
    Member("accrue_time", _number(lambda job: job.accrue_time)),
    Member("admin_comment", _text(lambda job: job.admin_comment or job.request.admin_comment)),
    Member("allocating_node", _text(lambda job: job.submit_host)),
    Member("array_job_id", _number(lambda job: job.array_job_id)),
    Member("array_task_id", _number(lambda job: job.array_task_id)),
    Member("array_max_tasks", _number(lambda job: job.array_maximum_running)),
    Member("array_task_string", _array_tasks),
    constant("association_id", 0),
    Member("batch_features", _asked("batch_features")),
    Member("batch_flag", lambda view: view.job.batch),
    Member("batch_host", lambda view: view.text.batch_host(view.job) if view.job.allocation else ""),
    *_by_version("flags", _flags),
    Member("burst_buffer", _asked("burst_buffer")),
    constant("burst_buffer_state", ""),
    Member("cluster", lambda view: view.text.site.cluster_name),
    Member("cluster_features", _asked("cluster_constraint")),
    Member("command", _text(lambda job: job.command)),
    Member("comment", _asked("comment")),
    Member("container", _asked("container")),
    Member("container_id", _asked("container_id")),
    Member("container_type", _asked("container_type"), since=45),
    Member("contiguous", lambda view: view.job.request.contiguous),
    Member("core_spec", lambda view: view.job.request.core_specification or 0),
    Member("thread_spec", lambda view: view.job.request.thread_specification or NO_CORE_SPECIFICATION),
    Member("cores_per_socket", _number(lambda job: job.request.cores_per_socket)),
    Member("billable_tres", _billable),
    Member("cpus_per_task", lambda view: number(view.text.cpus_per_task(view.job))),
    Member("cpu_frequency_minimum", lambda view: number(_frequencies(view)[0])),
    Member("cpu_frequency_maximum", lambda view: number(_frequencies(view)[1])),
    Member("cpu_frequency_governor", lambda view: number(_frequencies(view)[2])),
    Member("cpus_per_tres", _asked("cpus_per_tres")),
    Member("cron", _asked("crontab")),
    Member("deadline", _number(lambda job: job.request.deadline or 0)),
    Member("delay_boot", _number(lambda job: job.request.delay_boot or 0)),
    Member("dependency", lambda view: view.text.dependency(view.job) or ""),
    Member("derived_exit_code", lambda view: exit_code(view.job.derived_exit_code)),
    Member("eligible_time", lambda view: number(view.text.eligible(view.job))),
    Member("end_time", _end),
    Member("excluded_nodes", _asked("excluded_nodes")),
    Member("exit_code", lambda view: exit_code(view.job.exit_code)),
    Member("extra", _asked("extra")),
    Member("failed_node", _text(lambda job: job.failed_node)),
    Member("features", lambda view: view.text.features(view.job) or ""),
    constant("federation_origin", ""),
    constant("federation_siblings_active", ""),
    constant("federation_siblings_viable", ""),
    Member("gres_detail", _gres_detail),
    Member("group_id", lambda view: view.job.credentials.group_id),
    Member("group_name", _text(lambda job: job.credentials.group_name)),
    Member("het_job_id", _number(lambda job: job.het_job_id)),
    Member("het_job_id_set", _het_set),
    Member("het_job_offset", _number(lambda job: job.het_job_offset if job.het_job_id else 0)),
    Member("job_id", lambda view: view.job.job_id),
    *_by_version("job_resources", _resources),
    constant("job_size_str", []),
    Member("job_state", lambda view: job_state(int(view.job.state), int(view.job.flags))),
    Member("last_sched_evaluation", _number(lambda job: job.last_schedule_evaluation or job.submit_time)),
    Member("licenses", _asked("licenses")),
    Member("licenses_allocated", lambda view: view.job.request.licenses or "" if view.job.allocation else "", since=43),
    Member("mail_type", _mail_type),
    Member("mail_user", _text(lambda job: job.request.mail_user or job.credentials.user_name)),
    Member("max_cpus", _number(lambda job: job.request.maximum_cpus or 0)),
    Member("max_nodes", lambda view: number(_maximum_nodes(view))),
    Member("mcs_label", _asked("mcs_label")),
    Member("memory_per_tres", _asked("memory_per_tres")),
    Member("memory_update_delay", lambda view: view.job.request.memory_update_delay or 0, since=45),
    Member("memory_update_margin", lambda view: view.job.request.memory_update_margin or 0, since=45),
    Member("name", _text(lambda job: job.name)),
    Member("network", _asked("network")),
    Member("nodes", lambda view: view.text.nodes(view.job)),
    Member("nice", lambda view: view.job.request.nice or 0),
    Member("tasks_per_core", _per_part("tasks_per_core")),
    Member("tasks_per_tres", _number(lambda job: job.request.ntasks_per_tres or 0)),
    Member("tasks_per_node", _number(lambda job: job.request.tasks_per_node or 0)),
    Member("tasks_per_socket", _per_part("tasks_per_socket")),
    Member("tasks_per_board", _number(lambda job: job.request.tasks_per_board or 0)),
    Member("cpus", lambda view: number(view.text.cpu_count(view.job))),
    Member("node_count", lambda view: number(view.text.node_count(view.job))),
    Member("tasks", _tasks),
    Member("partition", _text(lambda job: job.partition)),
    Member("prefer", lambda view: view.text.prefer(view.job) or ""),
    Member("memory_per_cpu", _memory("CPU")),
    Member("memory_per_node", _memory("Node", "TRES")),
    Member("minimum_cpus_per_node", lambda view: number(view.text.minimum_cpus(view.job))),
    Member("minimum_tmp_disk_per_node", _number(lambda job: job.request.temporary_disk_per_node or 0)),
    nested("power", constant("flags", []), until=44),
    constant("preempt_time", number(0)),
    Member("preemptable_time", _started),
    Member("pre_sus_time", _before_suspension),
    Member("hold", lambda view: view.job.priority == 0),
    Member("priority", _number(lambda job: job.priority)),
    Member("priority_by_partition", _priorities),
    Member("profile", _profile),
    Member("qos", _text(lambda job: job.qos)),
    Member("reboot", lambda view: view.job.request.reboot),
    Member("required_nodes", _asked("required_nodes")),
    Member("required_switches", lambda view: view.job.request.required_switches or 0),
    Member("requeue", lambda view: view.text.requeues(view.job)),
    Member("resize_time", _number(lambda job: job.resize_time)),
    Member("restart_cnt", lambda view: view.job.restarts),
    Member("resv_name", lambda view: view.job.reservation),
    Member("scheduled_nodes", lambda view: view.text.planned_nodes(view.job) or ""),
    Member("segment_size", lambda view: view.job.request.segment_size or 0, since=43),
    constant("selinux_context", ""),
    Member("shared", _shared, until=44),
    constant("shared", Retired(), since=45),
    nested(
        "step_id",
        Member("sluid", _text(lambda job: job.sluid)),
        Member("job_id", _number(lambda job: job.job_id)),
        constant("step_het_component", UNSET),
        constant("step_id", "entire"),
        since=44,
    ),
    Member("sockets_per_board", lambda view: view.job.request.minimum_sockets_per_board or 0),
    Member("sockets_per_node", _number(lambda job: job.request.sockets_per_node)),
    Member("start_time", lambda view: number(view.text.start(view.job))),
    Member("state_description", _text(lambda job: job.state_description)),
    Member("state_reason", lambda view: view.job.reason.value),
    Member("standard_error", _expanded(_error), until=42),
    Member("standard_input", _expanded(_input), until=42),
    Member("standard_output", _expanded(_output), until=42),
    Member("standard_input", _input, since=43),
    Member("standard_output", _output, since=43),
    Member("standard_error", _error, since=43),
    Member("stdin_expanded", _expanded(_input), since=43),
    Member("stdout_expanded", _expanded(_output), since=43),
    Member("stderr_expanded", _expanded(_error), since=43),
    Member("submit_time", _number(lambda job: job.submit_time)),
    Member("submit_line", _text(lambda job: job.submit_line), since=44),
    Member("suspend_time", _number(lambda job: job.suspend_time)),
    Member("system_comment", _text(lambda job: job.system_comment)),
    Member("time_limit", lambda view: limit(view.job.time_limit)),
    Member("time_minimum", lambda view: limit(view.job.request.time_minimum or 0)),
    Member("threads_per_core", _number(lambda job: job.request.threads_per_core)),
    Member("tres_bind", _asked("tres_bind")),
    Member("tres_freq", _asked("tres_freq")),
    Member("tres_per_job", _asked("tres_per_job")),
    Member("tres_per_node", _asked("tres_per_node")),
    Member("tres_per_socket", _asked("tres_per_socket")),
    Member("tres_per_task", _asked("tres_per_task")),
    Member("tres_req_str", lambda view: view.text.requested_tres(view.job)),
    Member("tres_alloc_str", lambda view: view.text.allocated_tres(view.job) or ""),
    Member("user_id", lambda view: view.job.credentials.user_id),
    Member("user_name", _text(lambda job: job.credentials.user_name)),
    Member("maximum_switch_wait_time", lambda view: view.text.switch_wait(view.job)),
    Member("wckey", _asked("wckey")),
    Member("current_working_directory", _asked("current_working_directory")),
)
"""Every member of a job."""
