"""Everything squeue can print and sort by, as tables (squeue(1), "--format" and "--Format")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grammar.formats import Field
from grammar.times import format_elapsed
from slurmk.commands.job_text import (
    STEP_NAMES,
    JobText,
    date_text,
    exit_code_text,
    limit_text,
    node_list,
    reason,
    state_code,
    state_name,
    step_id_text,
)
from slurmk.model.job import Job, Step
from slurmk.model.states import INFINITE, NO_VALUE

DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
STEPS = "%.15i %.8j %.9P %.8u %.9M %N"
ONLY_STATE = "%.18i %.2t"

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Letters of ``-o`` in the order of ``%all``."""

NAMES: tuple[str, ...] = tuple(
    "Account AccrueTime admin_comment AllocNodes AllocSID ArrayJobId ArrayTaskId AssocId BatchFlag BatchHost BoardsPerNode "  # noqa: SIM905
    "BurstBuffer BurstBufferState Cluster ClusterFeature Command Comment Container ContainerId ContainerType Contiguous Cores "
    "CoreSpec CPUsPerTask cpus-per-task cpus-per-tres CronJob Deadline DelayBoot Dependency DerivedEC EligibleTime EndTime "
    "ExcNodes Exclusive exit_code Feature GroupId GroupName HetJobId HetJobIdSet HetJobOffset JobArrayId JobId LastSchedEval "
    "Licenses LicensesAlloc MaxCPUs MaxNodes mem-per-tres MCSLabel MinCPUs MinMemory MinTime MinTmpDisk Name Network Nice "
    "NodeList NTPerCore NTPerNode NTPerSocket NTPerBoard NumCPUs NumNodes NumTasks Origin OriginRaw OverSubscribe Partition "
    "PendingTime PreemptTime Prefer Priority PriorityLong Profile QOS Reason ReasonList Reboot ReqNodes ReqSwitch Requeue "
    "Reservation ResizeTime RestartCnt SchedNodes SCT SegmentSize SiblingsActive SiblingsActiveRaw SiblingsViable "
    "SiblingsViableRaw SLUID Sockets SPerBoard StartTime State StateCompact StdErr StdIn StdOut SubmitTime system_comment "
    "Threads TimeLeft TimeLimit TimeUsed tres-alloc tres-bind tres-freq tres-per-job tres-per-socket tres-per-task UserId "
    "UserName Wait4Switch WCKey WorkDir".split()
)
"""Names of ``-O`` as ``--helpFormat`` prints them."""

HELP_LETTERS = tuple("aFKBokOIXEexfGgiAWcmdjyNCDhPpQqrRnvYzsHSTtVJLlMUuwZ")
"""Letters of ``--helpformat``."""


_FEDERATIONS = "there are no federations"
WITHOUT_DATA: dict[str, str] = {
    "associd": "0: associations have no number for the controller",
    "boardspernode": "0: boards are not counted",
    "burstbufferstate": "nothing: there are no burst buffers",
    "origin": _FEDERATIONS,
    "originraw": _FEDERATIONS,
    "preempttime": "N/A: when a job was preempted is not noted",
    "siblingsactive": _FEDERATIONS,
    "siblingsactiveraw": _FEDERATIONS,
    "siblingsviable": _FEDERATIONS,
    "siblingsviableraw": _FEDERATIONS,
}
"""Fields that print what Slurm prints without data, by name, and why."""


def _constant(text: str | None) -> Callable[[Job], str | None]:
    return lambda job: text


def _flag(value: bool | None) -> str:
    return "1" if value else "0"


def _or_any(value: int | None) -> str:
    return "*" if value is None else str(value)


def _priority_fraction(job: Job) -> str:
    return f"{job.priority / 0xFFFFFFFF:.14f}"


def _unlimited(job: Job) -> bool:
    """A limit that is a word is cut to its column, one that is a time is not."""
    return job.time_limit >= NO_VALUE


def _number(value: int | None, absent: str) -> str:
    return absent if value is None else str(value)


def job_letters(text: JobText) -> dict[str, Field[Job]]:
    """The fields of ``-o``; "\\0" is what a ``%`` without a letter prints."""
    names = job_names(text)
    found = {letter: names[name] for letter, name in _LETTER_NAMES.items()}
    found["m"] = names["minmemory"]
    return found


_LETTER_NAMES: dict[str, str] = {
    "\0": "accruetime",
    "a": "account",
    "b": "tres-per-node",
    "c": "mincpus",
    "d": "mintmpdisk",
    "e": "endtime",
    "f": "feature",
    "g": "groupname",
    "h": "oversubscribe",
    "i": "jobarrayid",
    "j": "name",
    "k": "comment",
    "l": "timelimit",
    "m": "minmemory",
    "n": "reqnodes",
    "o": "command",
    "p": "priority",
    "q": "qos",
    "r": "reason",
    "s": "sluid",
    "t": "statecompact",
    "u": "username",
    "v": "reservation",
    "w": "wckey",
    "x": "excnodes",
    "y": "nice",
    "z": "sct",
    "A": "jobid",
    "B": "batchhost",
    "C": "numcpus",
    "D": "numnodes",
    "E": "dependency",
    "F": "arrayjobid",
    "G": "groupid",
    "H": "sockets",
    "I": "cores",
    "J": "threads",
    "K": "arraytaskid",
    "L": "timeleft",
    "M": "timeused",
    "N": "nodelist",
    "O": "contiguous",
    "P": "partition",
    "Q": "prioritylong",
    "R": "reasonlist",
    "S": "starttime",
    "T": "state",
    "U": "userid",
    "V": "submittime",
    "W": "licenses",
    "X": "corespec",
    "Y": "schednodes",
    "Z": "workdir",
}


def job_names(text: JobText) -> dict[str, Field[Job]]:
    """The fields of ``-O`` by lower-case name. What slurmk has no data for prints what Slurm prints for an empty value."""
    per_task: Field[Job] = Field("CPUS_PER_TASK", lambda job: str(text.cpus_per_task(job)))
    per_node: Field[Job] = Field("TRES_PER_NODE", lambda job: job.request.tres_per_node or "N/A")
    shares: Field[Job] = Field("OVER_SUBSCRIBE", text.oversubscribe)
    tres: Field[Job] = Field("TRES_ALLOC", text.tres_or_allocated)
    het_id: Field[Job] = Field("HET_JOB_ID", text.het_job_id)
    het_set: Field[Job] = Field("HET_JOB_ID_SET", text.het_set)
    het_offset: Field[Job] = Field("HET_JOB_OFFSET", text.het_offset)
    none, absent, zero = _constant(None), _constant("N/A"), _constant("0")
    return {
        "account": Field("ACCOUNT", lambda job: job.account or None),
        "accruetime": Field("ACCRUE_TIME", lambda job: date_text(job.accrue_time, "N/A")),
        "admin_comment": Field("ADMIN_COMMENT", lambda job: job.admin_comment or job.request.admin_comment or None),
        "allocnodes": Field("ALLOC_NODES", lambda job: job.submit_host or None),
        "allocsid": Field("ALLOC_SID", lambda job: str(job.session_id)),
        "arrayjobid": Field("ARRAY_JOB_ID", text.array_job_id),
        "arraytaskid": Field("ARRAY_TASK_ID", text.array_task_id),
        "associd": Field("ASSOC_ID", zero),
        "batchflag": Field("BATCH_FLAG", lambda job: _flag(job.batch)),
        "batchhost": Field("EXEC_HOST", text.batch_host),
        "boardspernode": Field("BOARDS_PER_NODE", zero),
        "burstbuffer": Field("BURST_BUFFER", lambda job: job.request.burst_buffer),
        "burstbufferstate": Field("BURST_BUFFER_STATE", none),
        "cluster": Field("CLUSTER", _constant(text.site.cluster_name)),
        "clusterfeature": Field("CLUSTER_FEATURES", lambda job: job.request.cluster_constraint),
        "command": Field("COMMAND", lambda job: job.command or None),
        "comment": Field("COMMENT", lambda job: job.request.comment),
        "container": Field("CONTAINER", lambda job: job.request.container),
        "containerid": Field("CONTAINERID", lambda job: job.request.container_id),
        "containertype": Field("CONTAINERTYPE", lambda job: job.request.container_type),
        "contiguous": Field("CONTIGUOUS", lambda job: _flag(job.request.contiguous)),
        "cores": Field("CORES_PER_SOCKET", lambda job: _or_any(job.request.cores_per_socket)),
        "corespec": Field("CORE_SPEC", lambda job: _number(job.request.core_specification, "N/A")),
        "cpuspertask": per_task,
        "cpus-per-task": per_task,
        "cpus-per-tres": Field("CPUS_PER_TRES", lambda job: job.request.cpus_per_tres or "N/A"),
        "cronjob": Field("CRON_JOB", lambda job: "No" if job.request.crontab is None else "Yes"),
        "deadline": Field("DEADLINE", lambda job: date_text(job.request.deadline or 0, "N/A")),
        "delayboot": Field("DELAY_BOOT", lambda job: format_elapsed(job.request.delay_boot or 0)),
        "dependency": Field("DEPENDENCY", text.dependency),
        "derivedec": Field("DERIVED_EC", lambda job: exit_code_text(job.derived_exit_code)),
        "eligibletime": Field("ELIGIBLE_TIME", lambda job: date_text(text.eligible(job), "N/A")),
        "endtime": Field("END_TIME", text.end_time),
        "excnodes": Field("EXC_NODES", text.excluded_nodes),
        "exclusive": Field("EXCLUSIVE", text.exclusive),
        "exit_code": Field("EXIT_CODE", lambda job: exit_code_text(job.exit_code)),
        "feature": Field("FEATURES", text.features),
        "groupid": Field("GROUP", lambda job: str(job.credentials.group_id)),
        "groupname": Field("GROUP", lambda job: job.credentials.group_name),
        "hetjobid": het_id,
        "packjobid": het_id,
        "hetjobidset": het_set,
        "packjobidset": het_set,
        "hetjoboffset": het_offset,
        "packjoboffset": het_offset,
        "jobarrayid": Field("JOBID", text.array_id),
        "jobid": Field("JOBID", text.job_id),
        "lastschedeval": Field("LAST_SCHED_EVAL", lambda job: date_text(job.last_schedule_evaluation, "N/A")),
        "licenses": Field("LICENSES", lambda job: job.request.licenses),
        "licensesalloc": Field("LICENSES_ALLOC", lambda job: job.request.licenses if job.allocation else None),
        "maxcpus": Field("MAX_CPUS", lambda job: str(job.request.maximum_cpus or text.cpu_count(job))),
        "maxnodes": Field("MAX_NODES", text.maximum_nodes),
        "mem-per-tres": Field("MEM_PER_TRES", lambda job: job.request.memory_per_tres or "N/A"),
        "mcslabel": Field("MCSLABEL", lambda job: job.request.mcs_label),
        "mincpus": Field("MIN_CPUS", lambda job: str(text.minimum_cpus(job))),
        "minmemory": Field("MIN_MEMORY", text.minimum_memory),
        "mintime": Field("TIME_MIN", text.time_minimum),
        "mintmpdisk": Field("MIN_TMP_DISK", text.temporary_disk),
        "name": Field("NAME", lambda job: job.name),
        "network": Field("NETWORK", lambda job: job.request.network),
        "nice": Field("NICE", lambda job: str(job.request.nice or 0)),
        "nodelist": Field("NODELIST", text.nodes, cut=False, cut_heading=False),
        "ntpercore": Field("NTASKS_PER_CORE", lambda job: _number(job.request.tasks_per_core, "N/A")),
        "ntpernode": Field("NTASKS_PER_NODE", lambda job: _number(job.request.tasks_per_node, "0")),
        "ntpersocket": Field("NTASKS_PER_SOCKET", lambda job: _number(job.request.tasks_per_socket, "N/A")),
        "ntperboard": Field("NTASKS_PER_BOARD", lambda job: _number(job.request.tasks_per_board, "0")),
        "numcpus": Field("CPUS", text.cpus_text),
        "numnodes": Field("NODES", text.nodes_text),
        "numtasks": Field("TASKS", text.tasks_count),
        "origin": Field("ORIGIN", _constant("NA")),
        "originraw": Field("ORIGIN_RAW", _constant("NA")),
        "oversubscribe": shares,
        "shared": shares,
        "partition": Field("PARTITION", text.partition),
        "pendingtime": Field("PENDING_TIME", text.pending_seconds),
        "preempttime": Field("PREEMPT_TIME", absent),
        "prefer": Field("PREFER", text.prefer),
        "priority": Field("PRIORITY", _priority_fraction),
        "prioritylong": Field("PRIORITY", lambda job: str(job.priority)),
        "profile": Field("PROFILE", lambda job: job.request.profile or "NotSet"),
        "qos": Field("QOS", lambda job: job.qos or None),
        "reason": Field("REASON", reason),
        "reasonlist": Field("NODELIST(REASON)", text.reason_list, cut=False, cut_heading=False, cut_when=text.has_reason),
        "reboot": Field("REBOOT", lambda job: _flag(job.request.reboot)),
        "reqnodes": Field("REQ_NODES", text.required_nodes),
        "reqswitch": Field("REQ_SWITCH", lambda job: str(job.request.required_switches or 0)),
        "requeue": Field("REQUEUE", lambda job: _flag(text.requeues(job))),
        "reservation": Field("RESERVATION", lambda job: job.reservation or None),
        "resizetime": Field("RESIZE_TIME", lambda job: date_text(job.resize_time, "N/A"), cut=False),
        "restartcnt": Field("RESTART_COUNT", lambda job: str(job.restarts)),
        "schednodes": Field("SCHEDNODES", text.planned_nodes, cut=False, cut_heading=False),
        "sct": Field("S:C:T", _sockets_cores_threads),
        "segmentsize": Field("SEGMENT_SIZE", lambda job: _number(job.request.segment_size, "N/A")),
        "siblingsactive": Field("ACTIVE_SIBLINGS", _constant("NA")),
        "siblingsactiveraw": Field("ACTIVE_SIBLINGS_RAW", _constant("NA")),
        "siblingsviable": Field("VIABLE_SIBLINGS", _constant("NA")),
        "siblingsviableraw": Field("VIALBLE_SIBLINGS_RAW", _constant("NA")),
        "sluid": Field("SLUID", lambda job: job.sluid or None),
        "sockets": Field("SOCKETS_PER_NODE", lambda job: _or_any(job.request.sockets_per_node)),
        "sperboard": Field("SOCKETS_PER_BOARD", lambda job: str(job.request.minimum_sockets_per_board or 0)),
        "starttime": Field("START_TIME", text.start_time),
        "state": Field("STATE", state_name),
        "statecompact": Field("ST", state_code),
        "stderr": Field("STDERR", lambda job: job.request.standard_error),
        "stdin": Field("STDIN", lambda job: job.request.standard_input or "/dev/null"),
        "stdout": Field("STDOUT", text.output_pattern),
        "submittime": Field("SUBMIT_TIME", lambda job: date_text(job.submit_time, "N/A")),
        "system_comment": Field("SYSTEM_COMMENT", lambda job: job.system_comment or None),
        "threads": Field("THREADS_PER_CORE", lambda job: _or_any(job.request.threads_per_core)),
        "timeleft": Field("TIME_LEFT", text.time_left, cut=False, cut_when=_unlimited),
        "timelimit": Field("TIME_LIMIT", text.time_limit, cut=False, cut_when=_unlimited),
        "timeused": Field("TIME", text.time_used, cut=False),
        "tres": tres,
        "tres-alloc": tres,
        "tres-bind": Field("TRES_BIND", lambda job: job.request.tres_bind or "N/A"),
        "tres-freq": Field("TRES_FREQ", lambda job: job.request.tres_freq or "N/A"),
        "tres-per-job": Field("TRES_PER_JOB", lambda job: job.request.tres_per_job or "N/A"),
        "tres-per-node": per_node,
        "gres": per_node,
        "tres-per-socket": Field("TRES_PER_SOCKET", lambda job: job.request.tres_per_socket or "N/A"),
        "tres-per-task": Field("TRES_PER_TASK", lambda job: job.request.tres_per_task or "N/A"),
        "userid": Field("UID", lambda job: str(job.credentials.user_id)),
        "username": Field("USER", lambda job: job.credentials.user_name),
        "wait4switch": Field("WAIT4SWITCH", lambda job: format_elapsed(text.switch_wait(job))),
        "wckey": Field("WCKEY", lambda job: job.request.wckey),
        "workdir": Field("WORK_DIR", lambda job: job.request.current_working_directory),
    }


def _sockets_cores_threads(job: Job) -> str:
    request = job.request
    return ":".join(map(_or_any, (request.sockets_per_node, request.cores_per_socket, request.threads_per_core)))


SORT_KEYS: dict[str, Callable[[JobText, Job], object]] = {
    "c": lambda text, job: 0,
    "d": lambda text, job: job.request.temporary_disk_per_node or 0,
    "e": lambda text, job: text.end(job),
    "f": lambda text, job: 0,
    "g": lambda text, job: job.credentials.group_name,
    "h": lambda text, job: text.oversubscribe(job),
    "i": lambda text, job: (job.array_job_id or job.job_id, NO_VALUE if job.array_task_id is None else job.array_task_id),
    "j": lambda text, job: job.name,
    "l": lambda text, job: job.time_limit,
    "m": lambda text, job: text.memory_demand(job).amount,
    "n": lambda text, job: 0,
    "p": lambda text, job: job.priority,
    "t": lambda text, job: state_code(job),
    "u": lambda text, job: job.credentials.user_name,
    "v": lambda text, job: job.reservation,
    "z": lambda text, job: _sockets_cores_threads(job),
    "B": lambda text, job: text.batch_host(job),
    "C": lambda text, job: text.cpu_count(job),
    "D": lambda text, job: text.node_count(job),
    "G": lambda text, job: job.credentials.group_id,
    "H": lambda text, job: job.request.sockets_per_node or 0,
    "I": lambda text, job: job.request.cores_per_socket or 0,
    "J": lambda text, job: job.request.threads_per_core or 0,
    "L": lambda text, job: INFINITE if job.time_limit >= 0xFFFFFFFE else job.time_limit * 60 - text.run_seconds(job),
    "M": lambda text, job: text.run_seconds(job),
    "N": lambda text, job: text.nodes(job),
    "O": lambda text, job: job.request.contiguous,
    "P": lambda text, job: job.partition,
    "Q": lambda text, job: job.priority,
    "S": lambda text, job: text.start(job) or INFINITE,
    "T": lambda text, job: state_name(job),
    "U": lambda text, job: job.credentials.user_id,
    "V": lambda text, job: job.submit_time,
}
"""What ``-S`` compares, by letter; ``c``, ``f`` and ``n`` change nothing in Slurm, and those that are not here are refused."""

SORT_PASSED_OVER = frozenset("b")
"""Letters that Slurm complains about and then sorts on without."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step beside its job."""

    step: Step
    job: Job

    @property
    def script(self) -> bool:
        """Whether it is a step that Slurm itself makes."""
        return self.step.step_id in STEP_NAMES


STEP_SORT_KEYS: dict[str, Callable[[StepRow], str | int | tuple[int, ...]]] = {
    "i": lambda row: (
        row.job.array_job_id or row.job.job_id,
        -1 if row.job.array_task_id is None else row.job.array_task_id,
        row.step.step_id,
    ),
    "j": lambda row: row.step.name,
    "l": lambda row: row.step.time_limit or INFINITE,
    "N": lambda row: node_list(row.step.nodes),
    "P": lambda row: row.job.partition,
    "S": lambda row: row.step.start_time,
    "u": lambda row: row.job.credentials.user_name,
    "U": lambda row: row.job.credentials.user_id,
}
"""What ``-s -S`` compares, by letter."""


def step_letters(text: JobText) -> dict[str, Field[StepRow]]:
    """The fields of ``-s -o``."""
    names = step_names(text)
    return {letter: names[name] for letter, name in _STEP_LETTERS.items()}


_STEP_LETTERS: dict[str, str] = {
    "A": "numtasks",
    "b": "gres",
    "i": "stepid",
    "j": "stepname",
    "l": "timelimit",
    "M": "timeused",
    "N": "nodes",
    "P": "partition",
    "S": "starttime",
    "u": "username",
    "U": "userid",
}


def step_names(text: JobText) -> dict[str, Field[StepRow]]:
    """The fields of ``-s -O``."""
    gres: Field[StepRow] = Field("TRES_PER_JOB", lambda row: None if row.script else row.step.gres or None)
    none: Callable[[StepRow], str | None] = lambda row: None  # noqa: E731
    return {
        "arrayjobid": Field("ARRAY_JOB_ID", lambda row: str(row.job.array_job_id)),
        "arraytaskid": Field("ARRAY_TASK_ID", lambda row: _number(row.job.array_task_id, "N/A")),
        "cluster": Field("CLUSTER", lambda row: text.site.cluster_name),
        "container": Field("CONTAINER", lambda row: row.job.request.container),
        "containerid": Field("CONTAINERID", lambda row: row.job.request.container_id),
        "containertype": Field("CONTAINERTYPE", lambda row: row.job.request.container_type),
        "cpufreq": Field("CPU_FREQ", lambda row: "0-0:0" if row.script else "Unknown-Unknown:Unknown"),
        "cpus-per-tres": Field("CPUS_PER_TRES", none),
        "gres": gres,
        "tres-per-node": gres,
        "jobid": Field("JOB_ID", lambda row: str(row.job.job_id)),
        "mem-per-tres": Field("MEM_PER_TRES", none),
        "network": Field("NETWORK", none),
        "nodes": Field("NODELIST", lambda row: node_list(row.step.nodes), cut=False, cut_heading=False),
        "numcpus": Field("NUM_CPUS", lambda row: "0" if row.script else str(row.step.cpus)),
        "numtasks": Field("TASKS", lambda row: str(row.step.tasks)),
        "partition": Field("PARTITION", lambda row: row.job.partition),
        "resvports": Field("RESERVED_PORTS", none),
        "starttime": Field("START_TIME", lambda row: date_text(row.step.start_time, "N/A")),
        "stderr": Field("STDERR", lambda row: "" if row.script else row.step.standard_error),
        "stdin": Field("STDIN", lambda row: "" if row.script else row.step.standard_input),
        "stdout": Field("STDOUT", lambda row: "" if row.script else row.step.standard_output),
        "stepid": Field("STEPID", lambda row: step_id_text(row.step, row.job)),
        "stepname": Field("NAME", lambda row: row.step.name),
        "stepstate": Field("STATE", lambda row: row.step.state.name),
        "timelimit": Field(
            "TIME_LIMIT",
            lambda row: limit_text(row.step.time_limit or INFINITE),
            cut=False,
            cut_when=lambda row: not row.step.time_limit,
        ),
        "timeused": Field("TIME", lambda row: format_elapsed(step_seconds(text, row)), cut=False),
        "tres-bind": Field("TRES_BIND", none),
        "tres-freq": Field("TRES_FREQ", none),
        "tres-per-job": Field("TRES_PER_STEP", none),
        "tres-per-step": Field("TRES_PER_STEP", none),
        "tres-per-socket": Field("TRES_PER_SOCKET", none),
        "tres-per-task": Field("TRES_PER_TASK", none),
        "userid": Field("UID", lambda row: str(row.job.credentials.user_id)),
        "username": Field("USER", lambda row: row.job.credentials.user_name),
    }


def _no_limit(row: StepRow) -> bool:
    return not row.step.time_limit


def step_seconds(text: JobText, row: StepRow) -> int:
    """Seconds since the step began."""
    end = row.step.end_time or text.now
    return max(0, end - row.step.start_time) if row.step.start_time else 0
