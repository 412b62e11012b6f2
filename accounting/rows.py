"""Jobs and steps as rows of the accounting tables: what is written, and what queries give back.

Field by field these are the columns of ``tables.JobTable`` and ``tables.StepTable``, which say what they mean.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter

from grammar.arrays import format_tasks
from grammar.hostlist import compress, expand
from slurmk.model import serial
from slurmk.model.job import Allocation, Job, Step, Usage
from slurmk.model.requested import Requested
from slurmk.model.states import JobFlag, JobState


@dataclass(frozen=True, slots=True)
class JobRow:
    """One time that a job was queued."""

    db_index: int
    job_id: int
    restart_count: int
    sluid: str
    array_job_id: int
    array_task_id: int | None
    array_tasks: str
    het_job_id: int
    het_job_offset: int
    account: str
    association_id: int
    user_id: int
    user_name: str
    group_id: int
    group_name: str
    partition: str
    qos: str
    qos_id: int
    qos_requested: str
    job_name: str
    state: int
    flags: int
    reason: str
    time_submit: int
    time_eligible: int
    time_start: int
    time_end: int
    time_suspended: int
    suspended_seconds: int
    time_limit: int
    exit_code: int
    derived_exit_code: int
    killed_by: int | None
    failed_node: str
    node_list: str
    nodes_allocated: int
    nodes_requested: int
    cpus_allocated: int
    cpus_requested: int
    tres_allocated: str
    tres_requested: str
    constraints: str
    licenses: str
    priority: int
    reservation_requested: str
    wckey: str
    mcs_label: str
    container: str
    exclusive: str
    oversubscribe: int
    segment_size: int
    batch: int
    work_directory: str
    submit_line: str
    standard_input: str
    standard_output: str
    standard_error: str
    comment: str
    admin_comment: str
    system_comment: str
    extra: str
    reservation: str
    reservation_id: int


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of one such time."""

    db_index: int
    step_id: int
    step_name: str
    state: int
    time_start: int
    time_end: int
    time_limit: int | None
    exit_code: int
    killed_by: int | None
    node_list: str
    nodes: int
    tasks: int
    cpus: int
    tres_allocated: str
    layout: str
    user_cpu: int
    system_cpu: int
    usage: str
    submit_line: str
    standard_input: str
    standard_output: str
    standard_error: str

    @property
    def measured(self) -> Usage:
        """The step's usage as a value."""
        return serial.load(Usage, json.loads(self.usage)) if self.usage else Usage()


JOB_COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(JobRow))
STEP_COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(StepRow))
job_values = attrgetter(*JOB_COLUMNS)
"""A JobRow's values in the order of JOB_COLUMNS."""
step_values = attrgetter(*STEP_COLUMNS)


def job_row(job: Job, db_index: int, requested: Requested, association_id: int, qos_id: int, reason: str) -> JobRow:
    """What accounting keeps of ``job`` as it is now. ``reason`` is the last that it waited for."""
    request, owner, allocation = job.request, job.credentials, job.allocation
    ended = job.state.finished or bool(job.flags & (REQUEUED | JobFlag.RESIZING))
    return JobRow(
        db_index=db_index,
        job_id=job.job_id,
        restart_count=job.restarts,
        sluid=text(job.sluid),
        array_job_id=job.array_job_id,
        array_task_id=job.array_task_id,
        array_tasks=_array_text(job.array_tasks, job.array_maximum_running) if job.array_tasks else "",
        het_job_id=job.het_job_id,
        het_job_offset=job.het_job_offset,
        account=text(job.account),
        association_id=association_id,
        user_id=owner.user_id,
        user_name=text(owner.user_name),
        group_id=owner.group_id,
        group_name=text(owner.group_name),
        partition=text(job.partition),
        qos=text(job.qos),
        qos_id=qos_id,
        qos_requested=text(request.qos),
        job_name=text(job.name),
        state=job.state._value_ if job.requeued_as is None else job.requeued_as._value_,
        flags=job.flags._value_ & ~(REQUEUED if job.requeued_as is not None else 0),
        reason=reason,
        time_submit=job.submit_time,
        time_eligible=job.eligible_time,
        time_start=(job.resize_time or job.start_time) if allocation else 0,
        time_end=job.end_time if ended else 0,
        time_suspended=job.suspend_time if job.state is JobState.SUSPENDED else 0,
        suspended_seconds=job.suspended_seconds,
        time_limit=job.time_limit,
        exit_code=job.exit_code if allocation else 0,  # one that waits again still has that of its last attempt
        derived_exit_code=job.derived_exit_code,
        killed_by=job.cancelled_by,
        failed_node=text(job.failed_node),
        node_list=_node_list(allocation.nodes) if allocation else "",
        nodes_allocated=len(allocation.shares) if allocation else 0,
        nodes_requested=requested.nodes,
        cpus_allocated=allocation.cpus if allocation else 0,
        cpus_requested=requested.cpus,
        tres_allocated=_allocated_tres(allocation, billed=not job.het_job_id) if allocation else "",
        tres_requested=tres_text(requested.tres),
        constraints=text(request.constraints),
        licenses=text(request.licenses),
        priority=job.priority,
        reservation_requested=text(request.reservation),
        wckey=text(request.wckey),
        mcs_label=text(request.mcs_label),
        container=text(request.container),
        exclusive=text(request.shared),
        oversubscribe=int(request.shared == "oversubscribe"),
        segment_size=request.segment_size or 0,
        batch=int(job.batch),
        work_directory=text(request.current_working_directory),
        submit_line=text(job.submit_line),
        standard_input=text(request.standard_input),
        standard_output=text(request.standard_output),
        standard_error=text(request.standard_error),
        comment=text(request.comment),
        admin_comment=text(job.admin_comment),
        system_comment=text(job.system_comment),
        extra=text(request.extra),
        reservation=job.allocation.reservation if job.allocation else "",
        reservation_id=job.allocation.reservation_number if job.allocation else 0,
    )


REQUEUED = 0x400
"""JobFlag.REQUEUED: this time in the queue is over although the job goes on."""


def step_row(step: Step, db_index: int) -> StepRow:
    """What accounting keeps of ``step`` as it is now."""
    amounts = f"cpu={step.cpus}" + (f",{step.gres}" if step.gres else "")
    amounts += (f",mem={step.memory}M" if step.memory else "") + f",node={len(step.nodes) or 1}"
    return StepRow(
        db_index=db_index,
        step_id=step.step_id,
        step_name=text(step.name),
        state=step.state._value_,
        time_start=step.start_time,
        time_end=step.end_time,
        time_limit=step.time_limit,
        exit_code=step.exit_code,
        killed_by=step.killed_by,
        node_list=_node_list(step.nodes),
        nodes=len(step.nodes),
        tasks=step.tasks,
        cpus=step.cpus,
        tres_allocated=text(amounts),
        layout=text(step.distribution),
        user_cpu=step.usage.user_cpu,
        system_cpu=step.usage.system_cpu,
        usage=json.dumps(serial.dump(step.usage)) if step.usage != _UNUSED else "",
        submit_line=text(step.submit_line),
        standard_input=text(step.standard_input),
        standard_output=text(step.standard_output),
        standard_error=text(step.standard_error),
    )


def step_of(row: StepRow, job_id: int) -> Step:
    """The inverse of ``step_row``, but for ``cpus_per_task``, which accounting does not keep."""
    amounts = [amount for amount in row.tres_allocated.split(",") if not amount.startswith(("cpu=", "node="))]
    memory = next((amount for amount in amounts if amount.startswith("mem=")), "mem=0M")
    return Step(
        job_id=job_id,
        step_id=row.step_id,
        name=row.step_name,
        state=JobState(row.state),
        start_time=row.time_start,
        end_time=row.time_end,
        nodes=tuple(expand(row.node_list)) if row.node_list else (),
        tasks=row.tasks,
        cpus=row.cpus,
        memory=int(memory[4:-1]),
        gres=",".join(amount for amount in amounts if amount != memory),
        exit_code=row.exit_code,
        usage=row.measured,
        submit_line=row.submit_line,
        distribution=row.layout,
        standard_input=row.standard_input,
        standard_output=row.standard_output,
        standard_error=row.standard_error,
        time_limit=row.time_limit,
        killed_by=row.killed_by,
    )


_UNUSED = Usage()


def text(value: str | None) -> str:
    """Text that every database takes: bytes that were no UTF-8 become question marks, NUL bytes go."""
    if not value:
        return ""
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode()
    return value.replace("\0", "") if "\0" in value else value


def tres_text(amounts: dict[str, int]) -> str:
    """``billing=4,cpu=4,mem=4096M,node=2``: by name, as sacct prints them but for larger units. Memory is MiB."""
    return ",".join(f"{name}={f'{amount}M' if name == 'mem' else amount}" for name, amount in sorted(amounts.items()) if amount)


def _allocated_tres(allocation: Allocation, *, billed: bool) -> str:
    """What a job has; nothing is billed for a component of a het job, as in Slurm."""
    cpus = allocation.cpus
    amounts = {"billing": cpus} if billed else {}
    amounts |= {"cpu": cpus, "mem": allocation.memory, "node": len(allocation.shares)}
    for share in allocation.shares:
        for item in share.gres:
            name = f"gres/{item.name}"
            amounts[name] = amounts.get(name, 0) + item.count
    return tres_text(amounts)


@lru_cache(maxsize=4096)
def _node_list(nodes: tuple[str, ...]) -> str:
    return compress(nodes) if nodes else ""


@lru_cache(maxsize=4096)
def _array_text(tasks: tuple[range, ...], maximum_running: int) -> str:
    return format_tasks(tasks) + (f"%{maximum_running}" if maximum_running else "")
