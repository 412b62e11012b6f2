"""The database's tables.

Two kinds of data live here. ``live_job``, ``node_state``, ``partition_state`` and ``counter`` are what the controller
needs to go on after a restart: whole values as JSON (``slurmk.model.serial``). ``job`` and ``step`` are accounting: one row
for each time a job was queued and for each of its steps, which stay when the controller has forgotten the job. Their columns
carry the words of sacct(1). ``job_file`` is between the two: a script is needed to start the job, and kept afterwards where
the site says so.

Times are Unix seconds with 0 for "not yet", states and flags Slurm's numbers, CPU times microseconds, time limits minutes,
exit codes wait(2) statuses. A column is a BIGINT where Slurm's own "not set" would not fit a signed 32-bit number.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Text
from sqlmodel import Field, SQLModel

KEY = BigInteger().with_variant(Integer, "sqlite")
"""A 64-bit key; SQLite makes INTEGER its row number."""


def _number(**options: Any) -> Any:
    return Field(sa_column=Column(BigInteger, nullable=False, **options))


def _optional_number(**options: Any) -> Any:
    return Field(default=None, sa_column=Column(BigInteger, nullable=True, **options))


def _text(**options: Any) -> Any:
    return Field(sa_column=Column(Text, nullable=False, **options))


def _bytes() -> Any:
    return Field(default=None, sa_column=Column(LargeBinary, nullable=True))


def _key(*arguments: Any) -> Any:
    return Field(sa_column=Column(KEY, *arguments, primary_key=True, autoincrement=False))


class ClusterTable(SQLModel, table=True):
    """The cluster whose records these are."""

    __tablename__ = "cluster"
    name: str = Field(sa_column=Column(Text, primary_key=True))


class QosTable(SQLModel, table=True):
    """Qualities of service by number (QOSRAW)."""

    __tablename__ = "qos"
    qos_id: int = _key()
    name: str = _text(unique=True)


class AssociationTable(SQLModel, table=True):
    """A user in an account by number (AssocID)."""

    __tablename__ = "association"
    __table_args__ = (Index("association_names", "account", "user_name", unique=True),)
    association_id: int = _key()
    account: str = _text()
    user_name: str = _text()


class JobTable(SQLModel, table=True):
    """A job as sacct shows it: one row for each time that it was queued. An array's waiting elements share one row."""

    __tablename__ = "job"
    __table_args__ = (
        Index("job_by_id", "job_id"),
        Index("job_by_array", "array_job_id"),
        Index("job_by_end", "time_end"),
        Index("job_by_user", "user_id", "time_end"),
        Index("job_by_state", "state", "time_end"),
    )
    db_index: int = _key()
    job_id: int = _number()
    restart_count: int = _number()
    sluid: str = _text()
    array_job_id: int = _number()  # 0: not of an array
    array_task_id: int | None = _optional_number()
    array_tasks: str = _text()  # elements that still wait, 0-9:3,20%2
    het_job_id: int = _number()
    het_job_offset: int = _number()
    account: str = _text()
    association_id: int = _number()
    user_id: int = _number()
    user_name: str = _text()
    group_id: int = _number()
    group_name: str = _text()
    partition: str = _text()
    qos: str = _text()
    qos_id: int = _number()
    qos_requested: str = _text()
    job_name: str = _text()
    state: int = _number()
    flags: int = _number()
    reason: str = _text()
    time_submit: int = _number()
    time_eligible: int = _number()
    time_start: int = _number()
    time_end: int = _number()
    time_suspended: int = _number()  # when the suspension that lasts began
    suspended_seconds: int = _number()  # those that are over
    time_limit: int = _number()
    exit_code: int = _number()
    derived_exit_code: int = _number()
    killed_by: int | None = _optional_number()  # user id
    failed_node: str = _text()
    node_list: str = _text()
    nodes_allocated: int = _number()
    nodes_requested: int = _number()
    cpus_allocated: int = _number()
    cpus_requested: int = _number()
    tres_allocated: str = _text()
    tres_requested: str = _text()
    constraints: str = _text()
    licenses: str = _text()
    priority: int = _number()
    reservation_requested: str = _text()
    wckey: str = _text()
    mcs_label: str = _text()
    container: str = _text()
    exclusive: str = _text()
    oversubscribe: int = _number()
    segment_size: int = _number()
    batch: int = _number()
    work_directory: str = _text()
    submit_line: str = _text()
    standard_input: str = _text()
    standard_output: str = _text()
    standard_error: str = _text()
    comment: str = _text()
    admin_comment: str = _text()
    system_comment: str = _text()
    extra: str = _text()
    reservation: str = _text(server_default="")
    reservation_id: int = _number(server_default="0")  # 0: of none


class StepTable(SQLModel, table=True):
    """A step of one of those jobs."""

    __tablename__ = "step"
    db_index: int = _key(ForeignKey("job.db_index", ondelete="CASCADE"))
    step_id: int = _key()
    step_name: str = _text()
    state: int = _number()
    time_start: int = _number()
    time_end: int = _number()
    time_limit: int | None = _optional_number()
    exit_code: int = _number()
    killed_by: int | None = _optional_number()
    node_list: str = _text()
    nodes: int = _number()
    tasks: int = _number()
    cpus: int = _number()
    tres_allocated: str = _text()
    layout: str = _text()
    user_cpu: int = _number()
    system_cpu: int = _number()
    usage: str = _text()  # slurmk.model.job.Usage as JSON
    submit_line: str = _text()
    standard_input: str = _text()
    standard_output: str = _text()
    standard_error: str = _text()


class JobFileTable(SQLModel, table=True):
    """What a job starts from; an array has one for all of its elements. All but the secret are compressed."""

    __tablename__ = "job_file"
    file_id: int = _key()  # job id, or array job id
    user_id: int = _number()
    script: bytes | None = _bytes()
    arguments: bytes | None = _bytes()
    environment: bytes | None = _bytes()
    secret: bytes | None = _bytes()


class LiveJobTable(SQLModel, table=True):
    """Jobs in the controller's memory, whole."""

    __tablename__ = "live_job"
    __table_args__ = (Index("live_job_by_file", "file_id"),)
    job_id: int = _key()
    file_id: int = _number()
    restart_count: int = _number()
    db_index: int = _number()
    record: str = _text()


class NodeStateTable(SQLModel, table=True):
    """Nodes as the administrator and the launcher left them."""

    __tablename__ = "node_state"
    name: str = Field(sa_column=Column(Text, primary_key=True))
    record: str = _text()


class PartitionStateTable(SQLModel, table=True):
    """Partitions that were changed since they were configured."""

    __tablename__ = "partition_state"
    name: str = Field(sa_column=Column(Text, primary_key=True))
    record: str = _text()


class ReservationStateTable(SQLModel, table=True):
    """Reservations."""

    __tablename__ = "reservation_state"
    name: str = Field(sa_column=Column(Text, primary_key=True))
    record: str = _text()


class CounterTable(SQLModel, table=True):
    """Numbers that go up: the next job id, the number of the last reservation."""

    __tablename__ = "counter"
    name: str = Field(sa_column=Column(Text, primary_key=True))
    value: int = _number()
