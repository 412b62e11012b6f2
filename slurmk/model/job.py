"""Jobs and steps: what was asked, what was given, what became of it.

Every value is frozen; a change is ``dataclasses.replace``. So an effect that carries a job keeps meaning the job as it
was at that event, and a reader never sees half a change. Times are whole Unix seconds, memory is MiB, time limits are
minutes (Slurm's own unit for them), unless a field says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurmk.model.states import NO_VALUE, JobFlag, JobState, Reason


@dataclass(frozen=True, slots=True)
class Credentials:
    """Whose job it is: ids for the kernel, names for people.

    ``groups`` are the supplementary group ids that the job's processes get.
    """

    user_id: int
    group_id: int
    user_name: str
    group_name: str
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a submission asks for. Field names are those of the REST API's ``job_desc_msg`` (data parser v0.0.45).

    ``None`` means "not said", so that defaults can be filled in later and ``scontrol update`` can tell what was named.
    The option table says which option sets which field. Strings keep the form that Slurm prints (``tres_per_node`` is
    ``gres/gpu:a100:2``, ``required_nodes`` a host list, ``array`` ``0-9:2%4``).
    """

    # identity and bookkeeping
    name: str | None = None
    account: str | None = None
    partition: str | None = None  # comma-separated when several will do
    qos: str | None = None
    comment: str | None = None
    admin_comment: str | None = None
    extra: str | None = None
    wckey: str | None = None
    mcs_label: str | None = None
    reservation: str | None = None
    licenses: str | None = None
    mail_type: tuple[str, ...] = ()  # as in REST: BEGIN, END, FAIL, REQUEUE, TIME=100% ...
    mail_user: str | None = None

    # when
    begin_time: int | None = None
    deadline: int | None = None
    time_limit: int | None = None  # minutes; INFINITE for no limit
    time_minimum: int | None = None  # minutes
    dependency: str | None = None
    hold: bool = False
    priority: int | None = None
    nice: int | None = None
    site_factor: int | None = None
    array: str | None = None
    crontab: str | None = None  # of scrontab's jobs: minutes, hours, days, months, days of the week
    delay_boot: int | None = None
    immediate: bool = False

    # where and how much
    tasks: int | None = None
    cpus_per_task: int | None = None
    minimum_nodes: int | None = None
    maximum_nodes: int | None = None
    nodes: str | None = None  # the text of --nodes, as given
    minimum_cpus: int | None = None
    maximum_cpus: int | None = None
    minimum_cpus_per_node: int | None = None
    tasks_per_node: int | None = None
    tasks_per_socket: int | None = None
    tasks_per_core: int | None = None
    tasks_per_board: int | None = None
    ntasks_per_tres: int | None = None
    memory_per_node: int | None = None  # MiB; 0 = all of the node's memory
    memory_per_cpu: int | None = None  # MiB; 0 = all of the node's memory
    temporary_disk_per_node: int | None = None  # MiB
    tres_per_job: str | None = None
    tres_per_node: str | None = None
    tres_per_socket: str | None = None
    tres_per_task: str | None = None
    tres_bind: str | None = None
    tres_freq: str | None = None
    cpus_per_tres: str | None = None
    memory_per_tres: str | None = None
    constraints: str | None = None
    prefer: str | None = None
    batch_features: str | None = None
    cluster_constraint: str | None = None
    clusters: str | None = None
    required_nodes: str | None = None
    excluded_nodes: str | None = None
    contiguous: bool = False
    shared: str | None = None  # "none" (--exclusive), "user", "mcs", "topo", "oversubscribe", as the REST words
    overcommit: bool = False
    spread_job: bool = False
    use_min_nodes: bool = False
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    minimum_boards_per_node: int | None = None
    minimum_sockets_per_board: int | None = None
    core_specification: int | None = None
    thread_specification: int | None = None
    required_switches: int | None = None
    wait_for_switch: int | None = None  # seconds
    segment_size: int | None = None
    consolidate_segments: bool = False
    spread_segments: bool = False
    gres_flags: str | None = None
    network: str | None = None
    reboot: bool = False
    reserve_ports: int | None = None

    # how it runs
    distribution: str | None = None
    distribution_plane_size: int | None = None
    cpu_binding: str | None = None
    cpu_frequency: str | None = None
    memory_binding: str | None = None
    hint: str | None = None
    requeue: bool | None = None
    expedited_requeue: bool = False  # first and at once when nodes fail (--requeue=expedite)
    kill_on_node_fail: bool | None = None  # False after --no-kill
    kill_on_invalid_dependency: bool | None = None
    kill_warning_signal: int | None = None
    kill_warning_delay: int | None = None  # seconds before the time limit
    kill_warning_flags: str | None = None  # "B", "R" or both
    oom_kill_step: int | None = None
    wait_all_nodes: bool | None = None
    open_mode: str | None = None  # "a" or "w"
    standard_input: str | None = None
    standard_output: str | None = None
    standard_error: str | None = None
    current_working_directory: str | None = None
    export: str | None = None
    export_file: str | None = None
    get_user_env: str | None = None
    profile: str | None = None
    account_gather_frequency: str | None = None
    propagate: str | None = None
    container: str | None = None
    container_id: str | None = None
    container_type: str | None = None
    burst_buffer: str | None = None
    burst_buffer_file: str | None = None
    step_manager: bool = False
    external: bool = False
    resources: str | None = None
    memory_update_margin: int | None = None
    memory_update_delay: int | None = None
    x11: str | None = None
    spank_environment: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GresShare:
    """One kind of GRES given on one node: ``gpu:a100`` × 2, devices 0 and 1."""

    name: str
    type: str  # "" when the kind has no types
    count: int
    indices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What a job holds on one node. ``cpus`` are CPU ids counted as Slurm counts them, ``memory`` is MiB. ``idle_cpus`` of them
    are threads that the job leaves idle (--threads-per-core, --hint=nomultithread); ``threads`` are those of a core."""

    node: str
    cpus: int
    memory: int
    tasks: int
    gres: tuple[GresShare, ...] = ()
    cpu_ids: tuple[int, ...] = ()
    idle_cpus: int = 0
    threads: int = 1

    @property
    def usable_cpus(self) -> int:
        return self.cpus - self.idle_cpus


@dataclass(frozen=True, slots=True)
class Allocation:
    """The nodes and shares of one job, in the order that its tasks and ``SLURM_JOB_NODELIST`` follow."""

    partition: str
    shares: tuple[NodeShare, ...]
    whole_nodes: bool = False
    reservation: str = ""  # that it runs in
    reservation_number: int = 0

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(share.node for share in self.shares)

    @property
    def cpus(self) -> int:
        return sum(share.cpus for share in self.shares)

    @property
    def memory(self) -> int:
        return sum(share.memory for share in self.shares)

    @property
    def tasks(self) -> int:
        return sum(share.tasks for share in self.shares)


@dataclass(frozen=True, slots=True)
class Spread:
    """How one measure is spread over the tasks of a step: the sum, and the most and the least that one task has, with the
    rank of that task and the name of its node."""

    total: int = 0
    most: int = 0
    most_node: str = ""
    most_task: int = 0
    least: int = 0
    least_node: str = ""
    least_task: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Measured usage of a step, from cgroups or /proc: of so many ``tasks``, CPU times in microseconds, sizes in bytes."""

    tasks: int = 0
    user_cpu: int = 0
    system_cpu: int = 0
    cpu: Spread = Spread()
    rss: Spread = Spread()
    vsize: Spread = Spread()
    disk_read: Spread = Spread()
    disk_write: Spread = Spread()
    pages: Spread = Spread()


FIRST_SPECIAL_STEP: int = 0xFFFFFF00
"""Steps with this id or a higher one are those that a job has anyway, such as its batch script."""

BATCH_STEP: int = 0xFFFFFFFB
"""Step id of the batch script (SLURM_BATCH_SCRIPT, printed as ``batch``; -5 in SLURM_STEP_ID)."""

EXTERN_STEP: int = 0xFFFFFFFC
INTERACTIVE_STEP: int = 0xFFFFFFFA


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a job. Numbered by the job's step manager from 0; the batch script is ``BATCH_STEP``."""

    job_id: int
    step_id: int
    name: str
    state: JobState
    start_time: int
    end_time: int = 0
    nodes: tuple[str, ...] = ()
    tasks: int = 1
    cpus: int = 1
    memory: int = 0
    gres: str = ""  # as in a TRES string: gres/gpu=2,gres/gpu:a100=2
    exit_code: int = 0  # a wait(2) status
    usage: Usage = Usage()
    submit_line: str = ""
    distribution: str = ""
    cpus_per_task: int | None = None
    standard_input: str = ""
    standard_output: str = ""
    standard_error: str = ""
    time_limit: int | None = None  # minutes
    killed_by: int | None = None  # uid of who cancelled it


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the controller knows it. An array stays one record until an element starts or is changed:
    ``array_tasks`` then holds the elements that still wait, and ``array_task_id`` is None."""

    job_id: int
    request: JobRequest
    credentials: Credentials
    submit_time: int
    state: JobState = JobState.PENDING
    flags: JobFlag = JobFlag.NONE
    reason: Reason = Reason.NONE
    state_description: str = ""  # free text beside the reason, e.g. the nodes of ReqNodeNotAvail
    priority: int = 0  # 0 = held

    # resolved at submission
    name: str = ""
    account: str = ""
    qos: str = "normal"
    partitions: tuple[str, ...] = ()
    time_limit: int = NO_VALUE  # minutes, INFINITE or NO_VALUE (partition has no default and no limit)
    batch: bool = True
    command: str = ""  # path of the script, or the words of srun/salloc
    submit_line: str = ""
    submit_host: str = ""
    session_id: int = 0  # sid of the submitting shell (AllocSID)
    sluid: str = ""
    umask: int = 0o022
    limits: str = ""  # the submitter's soft limits that its processes get: NOFILE=1024,CPU=unlimited

    # arrays and het jobs
    array_job_id: int = 0
    array_task_id: int | None = None
    array_tasks: tuple[range, ...] = ()
    array_maximum_running: int = 0  # of "%N"; 0 = no limit
    het_job_id: int = 0
    het_job_offset: int = 0
    het_components: tuple[int, ...] = ()

    # what happened
    eligible_time: int = 0
    accrue_time: int = 0
    start_time: int = 0
    resize_time: int = 0  # since when it has its present nodes; 0: since its start
    end_time: int = 0
    suspend_time: int = 0
    suspended_seconds: int = 0
    last_schedule_evaluation: int = 0
    over_time_limit: int = 0  # minutes that it may run beyond its limit, as its partition has it when it starts
    promised_start: int = 0  # where plans go by promises: it starts no later than that; 0 = nothing promised
    restarts: int = 0
    exit_code: int = 0  # a wait(2) status
    derived_exit_code: int = 0  # highest of the steps
    allocation: Allocation | None = None
    last_partition: str = ""
    cancelled_by: int | None = None  # uid
    failed_node: str = ""
    admin_comment: str = ""
    system_comment: str = ""
    steps: tuple[Step, ...] = field(default=())
    next_step: int = 0
    launch_failures: int = 0  # in a row, each of which made it wait longer
    preempted_by: int = 0  # the job that it is suspended for, as long as it is
    waits_for_turn: bool = False  # it is suspended until it has its CPUs again, which others have at times (gang scheduling)
    requeued_as: JobState | None = None  # how accounting sees the end of an attempt that is queued again: NODE_FAIL, PREEMPTED

    @property
    def partition(self) -> str:
        """The partition it runs in, else those it may run in, comma-separated."""
        return self.allocation.partition if self.allocation else ",".join(self.partitions)

    @property
    def reservation(self) -> str:
        """The reservation it runs in, else those it asks for, comma-separated; "" for none."""
        return (self.allocation.reservation if self.allocation else "") or self.request.reservation or ""

    @property
    def parked(self) -> bool:
        """True while it is suspended and others can use its CPUs: by hand, or for another job."""
        return self.state is JobState.SUSPENDED and not self.waits_for_turn

    @property
    def pending(self) -> bool:
        return self.state is JobState.PENDING

    @property
    def is_array(self) -> bool:
        """True while it still stands for several elements."""
        return bool(self.array_tasks)


@dataclass(frozen=True, slots=True)
class JobFiles:
    """What a job's processes start from: ``script`` is empty for an allocation without one; ``environment`` is the
    submitting process's, already cut down as ``--export`` says; ``secret`` is what stepd and srun prove they hold.
    ``arguments`` are the script's own."""

    script: bytes
    arguments: tuple[bytes, ...]
    environment: Mapping[bytes, bytes]
    secret: bytes
    components: tuple[Job, ...] = ()  # of the het job that the job is the first of, as they start
    sharing: tuple[str, str] = ("NO", "NO")  # how the job shares its nodes: OverSubscribe and Exclusive
