"""The store: what the controller must not lose, and the records of everything that ran.

One thread commits. It hands over effects of the core, several events' worth at once; ``commit`` sorts what they save into
rows and writes each table's rows with one prepared statement, in one transaction that is on disk when ``commit`` returns.
Queries use connections of their own and may run in any thread. The numbers that rows are joined by (``db_index`` and the ids of
associations and QOS) are given out here, from memory, so that no write waits for another's answer.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, Insert, Table, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlmodel import SQLModel

from accounting import tables
from accounting.engine import database_name, errors_of, make_engine, parse_url
from accounting.errors import StoreError as StoreError
from accounting.queries import JobQuery, JobRecord, find_jobs
from accounting.rows import JOB_COLUMNS, STEP_COLUMNS, StepRow, job_row, job_values, step_of, step_row, step_values
from accounting.rows import text as plain_text
from accounting.schema import upgrade
from slurmk.core.effects import (
    Effect,
    ForgetJob,
    ForgetNode,
    ForgetPartition,
    ForgetReservation,
    SaveCounter,
    SaveJob,
    SaveNode,
    SavePartition,
    SaveReservation,
    SaveResize,
    SaveStep,
)
from slurmk.model import serial
from slurmk.model.job import Job, JobFiles, Step
from slurmk.model.node import Node, Partition
from slurmk.model.requested import Requests
from slurmk.model.reservation import Reservation
from slurmk.model.site import Site
from slurmk.model.states import JobFlag, Reason

_CLAIM = 0x736C75726D6B
"""The number of the lock that marks a Postgres database as a running controller's: "slurmk"."""

T = TypeVar("T")
Row = tuple[Any, ...]


class Present(NamedTuple):
    """What is known of a live job's attempt. ``first_index`` is the record that its steps belong to: that of its first size."""

    restart: int
    db_index: int
    reason: str  # that it last waited for
    first_index: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """What the controller goes on from. ``nodes`` and ``partitions`` are those that were ever saved; ``next_job_id`` is None
    in a new database."""

    jobs: tuple[Job, ...]
    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    next_job_id: int | None
    reservations: tuple[Reservation, ...] = ()
    last_reservation: int = 0
    longest_wait: int = 0  # seconds from when it might start, of the jobs that have started


@dataclass(slots=True)
class _Numbers:
    """The numbers given out: of live jobs' rows, of associations, of QOS; and the next of each."""

    live: dict[int, Present] = field(default_factory=dict)  # by job id
    associations: dict[tuple[str, str], int] = field(default_factory=dict)
    qos: dict[str, int] = field(default_factory=dict)
    next_db_index: int = 1
    last_reservation: int = 0

    def fork(self) -> _Numbers:
        """A copy for one transaction, cheap: only what it adds is its own."""
        return _Numbers({}, {}, {}, self.next_db_index, self.last_reservation)

    def merge(self, other: _Numbers, forgotten: Mapping[int, None]) -> None:
        """Take over what a transaction that succeeded gave out."""
        self.live.update(other.live)
        for job_id in forgotten:
            if job_id not in other.live:
                self.live.pop(job_id, None)
        self.associations.update(other.associations)
        self.qos.update(other.qos)
        self.next_db_index = other.next_db_index
        self.last_reservation = other.last_reservation


class Store:
    """One cluster's database. ``url`` is ``sqlite:///path`` or ``postgresql://...``.

    ``site`` gives defaults of what jobs ask for and says which files of jobs are kept for ``sacct`` when they are over
    (AccountingStoreFlags); it may be replaced while the store works. All methods raise StoreError.
    """

    def __init__(self, url: str, site: Site | None = None) -> None:
        self._url = parse_url(url)
        self.name = database_name(self._url)
        self.site = site
        self._writer: Engine | None = None
        self._readers: Engine | None = None
        self._connection: Connection | None = None
        self._numbers = _Numbers()
        self._requests = Requests()
        self._statements = _Statements(self._url.get_backend_name())
        self._lock = threading.Lock()  # of the writing connection

    # ------------------------------------------------------------------------------------------ opening

    def open(self) -> None:
        """Connect, bring the schema to this release's, and read the numbers in use."""
        with self._lock, errors_of(self.name):
            self._writer = make_engine(self._url, writer=True)
            self._readers = make_engine(self._url, writer=False)
            connection = self._connected()
            try:
                with connection.begin():
                    upgrade(connection, self.name)
                    self._read_numbers(connection)
            except BaseException:
                self._drop_connection()
                raise

    def close(self) -> None:
        """Close all connections. The store may be opened again."""
        with self._lock:
            self._drop_connection()
            for engine in (self._writer, self._readers):
                if engine is not None:
                    engine.dispose()
            self._writer = self._readers = None

    def _connected(self) -> Connection:
        """The connection that writes; a new one after an error."""
        if self._writer is None:
            raise StoreError(f"{self.name}: the store is closed", passing=False)
        if self._connection is None:
            self._connection = self._writer.connect()
            if self._url.get_backend_name() == "postgresql":
                self._claim(self._connection)
        return self._connection

    def _claim(self, connection: Connection) -> None:
        """Two controllers on one database would give out the same numbers: the second waits a little, then gives up."""
        try:
            with connection.begin():
                connection.exec_driver_sql("SET LOCAL lock_timeout = '5s'")
                connection.exec_driver_sql(f"SELECT pg_advisory_lock({_CLAIM})")
        except OperationalError as error:
            self._drop_connection()
            if "lock timeout" in str(error):
                raise StoreError(f"{self.name}: another slurmk controller uses this database") from None
            raise

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.invalidate()
            connection.close()
        except SQLAlchemyError:
            pass

    def _read_numbers(self, connection: Connection) -> None:
        numbers = _Numbers()
        columns = f"live_job.job_id, live_job.restart_count, db_index, reason, {_FIRST_SIZE}"
        live = f"SELECT {columns} FROM live_job JOIN job USING (db_index)"
        for job_id, *present in connection.exec_driver_sql(live):
            numbers.live[job_id] = Present(*present)
        for number, account, user in connection.exec_driver_sql("SELECT association_id, account, user_name FROM association"):
            numbers.associations[account, user] = number
        for number, name in connection.exec_driver_sql("SELECT qos_id, name FROM qos"):
            numbers.qos[name] = number
        numbers.last_reservation = _last_reservation(connection)
        numbers.next_db_index = (connection.exec_driver_sql("SELECT max(db_index) FROM job").scalar() or 0) + 1
        self._numbers = numbers

    # ------------------------------------------------------------------------------------------ writing

    def commit(self, effects: Sequence[Effect], files: Mapping[int, JobFiles] | None = None) -> None:
        """Write what ``effects`` save, and ``files`` by the job id they were submitted under (an array's once), as one
        transaction. It is on disk when this returns; when it raises, nothing was written and the store can be used on.
        Effects that are not for the store are passed over."""
        with self._lock, errors_of(self.name):
            batch = self._batch(effects, files or {})
            if not batch:
                return
            connection = self._connected()
            try:
                with connection.begin():
                    cursor = connection.connection.cursor()  # the driver's own: a third of the time for each statement
                    batch.write(cursor, self._statements, self._kept_files())
                    cursor.close()
            except BaseException:
                self._drop_connection()
                raise
            self._numbers.merge(batch.numbers, batch.forgotten)

    def _batch(self, effects: Sequence[Effect], files: Mapping[int, JobFiles]) -> _Batch:
        if self._requests.site is not self.site:
            self._requests = Requests(self.site)
        batch = _Batch(self._numbers, self._requests)
        for effect in effects:
            add = _ADDERS.get(type(effect))
            if add is not None:
                add(batch, effect)
        for job_id, one in files.items():
            batch.add_files(job_id, one)
        return batch

    def _kept_files(self) -> tuple[bool, bool]:
        """Whether scripts and environments of jobs that are over are kept."""
        flags = self.site.parameters.get("AccountingStoreFlags", "") if self.site else ""
        words = flags.lower().split(",")
        return "job_script" in words, "job_env" in words

    # ------------------------------------------------------------------------------------------ reading

    def load(self) -> Recovered:
        """What was saved and not forgotten, jobs by id."""
        return self._read(_load)

    def strange_jobs(self, job_ids: Iterable[int]) -> list[int]:
        """Those of the numbers that this database has given to no job, least first."""
        return self._read(lambda connection: _strange_jobs(connection, job_ids))

    def files(self, job_id: int) -> JobFiles:
        """What the job (of an array: any of its elements) was submitted with."""
        found = self.stored_files(job_id)
        if found is None:
            raise StoreError(f"{self.name}: has no script or environment of job {job_id}", passing=False)
        return found

    def stored_files(self, job_id: int) -> JobFiles | None:
        """The same for sacct: of a job that is over, what is still kept."""
        return self._read(lambda connection: _files(connection, self._statements, job_id))

    def qos_names(self) -> list[str]:
        """QOS of which there are jobs, by number."""
        rows = self._read(lambda connection: connection.exec_driver_sql("SELECT name FROM qos ORDER BY qos_id").all())
        return [row[0] for row in rows]

    def jobs(self, query: JobQuery) -> list[JobRecord]:
        """The records that sacct shows for ``query``, in its order."""
        return self._read(lambda connection: find_jobs(connection, query))

    def _read(self, work: Callable[[Connection], T]) -> T:
        if self._readers is None:
            raise StoreError(f"{self.name}: the store is closed", passing=False)
        with errors_of(self.name), self._readers.connect() as connection:
            return work(connection)


# ------------------------------------------------------------------------------------------------ statements


def _table(model: type[SQLModel]) -> Table:
    return SQLModel.metadata.tables[str(model.__tablename__)]


class _Statements:
    """The statements that write, as the driver takes them: each made once for the database's dialect."""

    def __init__(self, backend: str) -> None:
        self._dialect = sqlite.dialect() if backend == "sqlite" else PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
        self._insert = sqlite.insert if backend == "sqlite" else postgresql.insert
        self.mark = "?" if backend == "sqlite" else "%s"
        self.job = self._upsert(tables.JobTable, JOB_COLUMNS)
        self.step = self._upsert(tables.StepTable, STEP_COLUMNS)
        self.file = self._upsert(tables.JobFileTable)
        self.live = self._upsert(tables.LiveJobTable)
        self.node = self._upsert(tables.NodeStateTable)
        self.partition = self._upsert(tables.PartitionStateTable)
        self.reservation = self._upsert(tables.ReservationStateTable)
        self.counter = self._upsert(tables.CounterTable)
        self.association = self._upsert(tables.AssociationTable)
        self.qos = self._upsert(tables.QosTable)

    def _upsert(self, model: type[SQLModel], columns: tuple[str, ...] = ()) -> str:
        """INSERT that replaces the row of the same key; values in the order of ``columns``, by default the table's."""
        table = _table(model)
        names = columns or tuple(column.name for column in table.columns)
        if set(names) != set(table.columns.keys()):
            raise TypeError(f"columns of {table.name} do not match its rows")
        key = [column.name for column in table.primary_key]
        statement: Any = self._insert(table).values(dict.fromkeys(names))
        changed = {name: statement.excluded[name] for name in names if name not in key}
        compiled = statement.on_conflict_do_update(index_elements=key, set_=changed).compile(dialect=self._dialect)
        assert isinstance(statement, Insert)
        if tuple(compiled.positiontup or ()) != tuple(column.name for column in table.columns):
            raise TypeError(f"columns of {table.name} are not in the order of its rows")
        return str(compiled)

    def sql(self, text: str) -> str:
        """``text`` with the driver's mark for each ``?``."""
        return text.replace("?", self.mark)


# ------------------------------------------------------------------------------------------------ one transaction


class _Batch:
    """The rows of one transaction. Of values saved several times the last counts."""

    def __init__(self, numbers: _Numbers, requests: Requests) -> None:
        self._known = numbers
        self._requests = requests
        self.numbers = numbers.fork()
        self.live: dict[int, Row] = {}
        self.forgotten: dict[int, None] = {}
        self._jobs: dict[int, tuple[Job, str]] = {}  # by db_index; the reason it last waited for
        self._steps: dict[tuple[int, int], Row] = {}
        self._late_steps: list[SaveStep] = []
        self._files: list[Row] = []
        self._nodes: dict[str, Row] = {}
        self._partitions: dict[str, Row] = {}
        self._reservations: dict[str, Row] = {}
        self._gone: dict[tuple[str, str], None] = {}  # tables and names of records to remove
        self._counters: dict[str, Row] = {}

    def __bool__(self) -> bool:
        return bool(
            self._jobs
            or self._steps
            or self._late_steps
            or self.forgotten
            or self._files
            or self._counters
            or self._nodes
            or self._partitions
            or self._reservations
            or self._gone
        )

    def _present(self, job_id: int, restart: int) -> Present | None:
        """What is known of that attempt, if it is the job's present one."""
        known = self.numbers.live.get(job_id)
        if known is None and job_id not in self.forgotten:
            known = self._known.live.get(job_id)
        return known if known is not None and known.restart == restart else None

    def add_job(self, effect: SaveJob) -> None:
        job = effect.job
        present = None if effect.new else self._present(job.job_id, job.restarts)
        if present is None:
            following = self._next_db_index()
            present = Present(job.restarts, following, Reason.NONE._value_, following)
        db_index = present.db_index
        reason = job.reason._value_ if job.allocation is None else present.reason
        self.numbers.live[job.job_id] = present._replace(reason=reason)
        self._jobs[db_index] = (job, reason)
        self.live[job.job_id] = (job.job_id, job.array_job_id or job.job_id, job.restarts, db_index, job)

    def _next_db_index(self) -> int:
        following = self.numbers.next_db_index
        self.numbers.next_db_index += 1
        return following

    def add_resize(self, effect: SaveResize) -> None:
        """The record of the job's size until now ends; what is saved of it from now on is another's."""
        job = effect.job
        present = self._present(job.job_id, job.restarts)
        if present is None:
            return
        self._jobs[present.db_index] = (replace(job, flags=job.flags | JobFlag.RESIZING, end_time=effect.time), present.reason)
        self.numbers.live[job.job_id] = present._replace(db_index=self._next_db_index())

    def add_step(self, effect: SaveStep) -> None:
        present = self._present(effect.step.job_id, effect.restart)
        if present is None:
            self._late_steps.append(effect)
        else:
            first = present.first_index
            self._steps[first, effect.step.step_id] = step_values(step_row(effect.step, first))

    def forget(self, effect: ForgetJob) -> None:
        self.live.pop(effect.job_id, None)
        self.numbers.live.pop(effect.job_id, None)
        self.forgotten[effect.job_id] = None

    def add_node(self, effect: SaveNode) -> None:
        self._gone.pop(("node_state", effect.node.name), None)
        self._nodes[effect.node.name] = (effect.node.name, _json(effect.node))

    def forget_node(self, effect: ForgetNode) -> None:
        self._nodes.pop(effect.name, None)
        self._gone["node_state", effect.name] = None

    def add_partition(self, effect: SavePartition) -> None:
        name = plain_text(effect.partition.name)
        self._gone.pop(("partition_state", name), None)
        self._partitions[name] = (name, _json(effect.partition))

    def forget_partition(self, effect: ForgetPartition) -> None:
        self._partitions.pop(plain_text(effect.name), None)
        self._gone["partition_state", plain_text(effect.name)] = None

    def add_reservation(self, effect: SaveReservation) -> None:
        reservation = effect.reservation
        name = plain_text(reservation.name)
        self._gone.pop(("reservation_state", name), None)
        self._reservations[name] = (name, _json(reservation))
        self.numbers.last_reservation = max(self.numbers.last_reservation, reservation.number)
        self._counters[_RESERVATIONS] = (_RESERVATIONS, self.numbers.last_reservation)

    def forget_reservation(self, effect: ForgetReservation) -> None:
        self._reservations.pop(plain_text(effect.name), None)
        self._gone["reservation_state", plain_text(effect.name)] = None

    def add_counter(self, effect: SaveCounter) -> None:
        self._counters["next_job_id"] = ("next_job_id", effect.next_job_id)

    def add_files(self, job_id: int, files: JobFiles) -> None:
        live = self.live.get(job_id)
        owner = live[4].credentials.user_id if live else 0
        self._files.append(
            (
                job_id,
                owner,
                _packed(files.script),
                _packed(_joined(files.arguments)),
                _packed(_joined([part for item in files.environment.items() for part in item])),
                files.secret,
            )
        )

    def _association(self, job: Job) -> int:
        key = (plain_text(job.account), plain_text(job.credentials.user_name))
        number = self._known.associations.get(key) or self.numbers.associations.get(key)
        if number is None:
            number = len(self._known.associations) + len(self.numbers.associations) + 1
            self.numbers.associations[key] = number
        return number

    def _qos(self, name: str) -> int:
        name = plain_text(name)
        number = self._known.qos.get(name) or self.numbers.qos.get(name)
        if number is None:
            number = len(self._known.qos) + len(self.numbers.qos) + 1
            self.numbers.qos[name] = number
        return number

    def write(self, cursor: DBAPICursor, statements: _Statements, kept_files: tuple[bool, bool]) -> None:
        """Everything, in the order that foreign keys ask for."""
        jobs = [
            job_values(job_row(job, db_index, self._requests.of(job), self._association(job), self._qos(job.qos), reason))
            for db_index, (job, reason) in self._jobs.items()
        ]
        live = [(*row[:4], _json(row[4])) for row in self.live.values()]
        associations = [(number, *names) for names, number in self.numbers.associations.items()]
        for statement, rows in (
            (statements.association, associations),
            (statements.qos, [(number, name) for name, number in self.numbers.qos.items()]),
            (statements.job, jobs),
            (statements.step, list(self._steps.values())),
            (statements.live, live),
            (statements.file, self._files),
            (statements.counter, list(self._counters.values())),
            (statements.node, list(self._nodes.values())),
            (statements.partition, list(self._partitions.values())),
            (statements.reservation, list(self._reservations.values())),
        ):
            if len(rows) == 1:
                cursor.execute(statement, rows[0])
            elif rows:
                cursor.executemany(statement, rows)
        for table, name in self._gone:
            cursor.execute(statements.sql(f"DELETE FROM {table} WHERE name = ?"), (name,))
        for effect in self._late_steps:
            self._write_late_step(cursor, statements, effect)
        if self.forgotten:
            self._forget(cursor, statements, kept_files)

    @staticmethod
    def _write_late_step(cursor: DBAPICursor, statements: _Statements, effect: SaveStep) -> None:
        """A step of an attempt that is over; without such an attempt there is nothing to keep."""
        last = "SELECT max(db_index) FROM job WHERE job_id = ? AND restart_count = ?"
        query = statements.sql(f"SELECT {_FIRST_SIZE} FROM job WHERE db_index = ({last})")
        db_index = _value(cursor, query, (effect.step.job_id, effect.restart))
        if db_index is not None:
            cursor.execute(statements.step, step_values(step_row(effect.step, db_index)))

    def _forget(self, cursor: DBAPICursor, statements: _Statements, kept_files: tuple[bool, bool]) -> None:
        gone = [job_id for job_id in self.forgotten if job_id not in self.live]
        for job_id in gone:
            find = statements.sql("SELECT file_id FROM live_job WHERE job_id = ?")
            file_id = _value(cursor, find, (job_id,))
            cursor.execute(statements.sql("DELETE FROM live_job WHERE job_id = ?"), (job_id,))
            if file_id is None:
                continue
            used = statements.sql("SELECT 1 FROM live_job WHERE file_id = ? LIMIT 1")
            if _value(cursor, used, (file_id,)) is None:
                cursor.execute(statements.sql(_FILE_ENDS[kept_files]), (file_id,))


def _value(cursor: DBAPICursor, query: str, values: Row) -> Any:
    """The first column of the first row, or None."""
    cursor.execute(query, values)
    row = cursor.fetchone()
    return row[0] if row else None


_FILE_ENDS: dict[tuple[bool, bool], str] = {
    (False, False): "DELETE FROM job_file WHERE file_id = ?",
    (True, False): "UPDATE job_file SET environment = NULL, arguments = NULL, secret = NULL WHERE file_id = ?",
    (False, True): "UPDATE job_file SET script = NULL, arguments = NULL, secret = NULL WHERE file_id = ?",
    (True, True): "UPDATE job_file SET arguments = NULL, secret = NULL WHERE file_id = ?",
}
"""What becomes of a job's files when it is forgotten, by whether its script and its environment are kept."""

_FIRST_SIZE = """(SELECT min(first.db_index) FROM job AS first WHERE first.job_id = job.job_id
    AND first.restart_count = job.restart_count AND first.sluid = job.sluid)"""
"""In a statement about ``job``: the record that its steps belong to, also once it was resized."""

_RESERVATIONS = "last_reservation"
"""Name of the counter of reservations."""

_ADDERS: dict[type, Callable[[_Batch, Any], None]] = {
    SaveJob: _Batch.add_job,
    SaveStep: _Batch.add_step,
    SaveResize: _Batch.add_resize,
    ForgetJob: _Batch.forget,
    SaveNode: _Batch.add_node,
    ForgetNode: _Batch.forget_node,
    SavePartition: _Batch.add_partition,
    ForgetPartition: _Batch.forget_partition,
    SaveReservation: _Batch.add_reservation,
    ForgetReservation: _Batch.forget_reservation,
    SaveCounter: _Batch.add_counter,
}


# ------------------------------------------------------------------------------------------------ records


_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def _json(value: Any) -> str:
    return _encode(serial.dump(value))


def _packed(data: bytes) -> bytes:
    return zlib.compress(data, 1) if data else b""


def _joined(parts: Sequence[bytes]) -> bytes:
    text = b"\0".join(parts)
    if text.count(b"\0") >= len(parts):  # a NUL within a part would end it
        text = b"\0".join([part.replace(b"\0", b"") for part in parts])
    return text + b"\0" if parts else b""


def _split(data: bytes | None) -> tuple[bytes, ...]:
    text = zlib.decompress(data) if data else b""
    return tuple(text.split(b"\0")[:-1])


def _load(connection: Connection) -> Recovered:
    def records(cls: type[T], query: str) -> tuple[T, ...]:
        return tuple(serial.load(cls, json.loads(row[0])) for row in connection.exec_driver_sql(query))

    steps = _running_steps(connection)
    jobs = records(Job, "SELECT record FROM live_job ORDER BY job_id")
    return Recovered(
        jobs=tuple(replace(job, steps=() if job.state.finished else steps.get(job.job_id, ())) for job in jobs),
        nodes=records(Node, "SELECT record FROM node_state ORDER BY name"),
        partitions=records(Partition, "SELECT record FROM partition_state ORDER BY name"),
        next_job_id=connection.exec_driver_sql("SELECT value FROM counter WHERE name = 'next_job_id'").scalar(),
        reservations=records(Reservation, "SELECT record FROM reservation_state ORDER BY name"),
        last_reservation=_last_reservation(connection),
        longest_wait=connection.exec_driver_sql(_LONGEST_WAIT).scalar() or 0,
    )


_LONGEST_WAIT = """SELECT MAX(time_start - CASE WHEN time_eligible > time_submit THEN time_eligible ELSE time_submit END)
    FROM job WHERE time_start > 0"""


def _running_steps(connection: Connection) -> dict[int, tuple[Step, ...]]:
    """The steps that have not ended, by job: a job's own record is not written again for each of its steps."""
    columns = ", ".join(f"step.{name}" for name in STEP_COLUMNS)
    query = (
        f"SELECT live_job.job_id, {columns} FROM live_job JOIN job USING (db_index)"
        f" JOIN step ON step.db_index = {_FIRST_SIZE} WHERE step.time_end = 0"
    )
    found: dict[int, tuple[Step, ...]] = {}
    for job_id, *values in connection.exec_driver_sql(f"{query} ORDER BY step.time_start, step.step_id"):
        found[job_id] = (*found.get(job_id, ()), step_of(StepRow(*values), job_id))
    return found


def _strange_jobs(connection: Connection, job_ids: Iterable[int]) -> list[int]:
    """Numbers below the next one were given once; those above it, too, where numbering has begun anew at MaxJobId."""
    following = connection.exec_driver_sql("SELECT value FROM counter WHERE name = 'next_job_id'").scalar() or 0
    above = sorted({number for number in job_ids if number >= following})
    known = text("SELECT 1 FROM job WHERE job_id = :job_id LIMIT 1")
    return [number for number in above if connection.execute(known, {"job_id": number}).first() is None]


def _last_reservation(connection: Connection) -> int:
    return connection.exec_driver_sql(f"SELECT value FROM counter WHERE name = '{_RESERVATIONS}'").scalar() or 0


def _files(connection: Connection, statements: _Statements, job_id: int) -> JobFiles | None:
    query = statements.sql(
        "SELECT script, arguments, environment, secret FROM job_file"
        " WHERE file_id = coalesce((SELECT file_id FROM live_job WHERE job_id = ?), ?)"
    )
    row = connection.exec_driver_sql(query, (job_id, job_id)).first()
    if row is None:
        return None
    script, arguments, environment, secret = row
    parts = _split(environment)
    return JobFiles(
        script=zlib.decompress(script) if script else b"",
        arguments=_split(arguments),
        environment=dict(zip(parts[::2], parts[1::2], strict=True)),
        secret=secret or b"",
    )
