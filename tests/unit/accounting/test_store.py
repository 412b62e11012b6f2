"""The store: what is committed is there again, whole, after anything."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect

from accounting import schema
from accounting.engine import make_engine, parse_url
from accounting.queries import JobQuery, RecordSelection
from accounting.rows import JOB_COLUMNS, STEP_COLUMNS
from accounting.store import Recovered, Store, StoreError
from accounting.tables import JobTable, StepTable
from slurmk.core.effects import (
    ForgetJob,
    ForgetReservation,
    SaveCounter,
    SaveJob,
    SaveNode,
    SavePartition,
    SaveReservation,
    SaveResize,
    SaveStep,
    WakePlanner,
)
from slurmk.model.job import (
    BATCH_STEP,
    Allocation,
    Credentials,
    GresShare,
    Job,
    JobFiles,
    JobRequest,
    NodeShare,
    Spread,
    Step,
    Usage,
)
from slurmk.model.node import Node, Partition
from slurmk.model.reservation import Access, CoreShare, Reservation, ReservationFlag
from slurmk.model.site import Site
from slurmk.model.states import INFINITE, JobFlag, JobState, NodeFlag, Reason

FILES = JobFiles(b"#!/bin/sh\nhostname\n", (b"a", b"\xff b", b""), {b"PATH": b"/bin", b"ODD": b"\xfe=\n"}, b"secret")
ALLOCATION = Allocation("debug", tuple(NodeShare(f"n{n}", 2, 200, 2, (GresShare("gpu", "a100", 1, (0,)),)) for n in (1, 2)))


def job(job_id: int, **changes: object) -> Job:
    made = Job(
        job_id=job_id,
        request=JobRequest(tasks=4, minimum_nodes=2, memory_per_cpu=100, current_working_directory="/home/alice"),
        credentials=Credentials(1001, 1001, "alice", "alice", (1001,)),
        submit_time=1000 + job_id,
        eligible_time=1000 + job_id,
        name=f"job{job_id}",
        account="phys",
        partitions=("debug",),
        time_limit=10,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def running(job_id: int, **changes: object) -> Job:
    return job(job_id, **{"state": JobState.RUNNING, "start_time": 2000, "allocation": ALLOCATION, **changes})


def everything(store: Store, **wanted: object) -> list[tuple[int, int]]:
    """(job id, state) of all records."""
    found = store.jobs(JobQuery(duplicates=True, selections=tuple(RecordSelection(n) for n in range(1, 300)), **wanted))  # type: ignore[arg-type]
    return [(record.job.job_id, record.job.state) for record in found]


def test_a_new_database_is_empty(store: Store) -> None:
    assert store.load() == Recovered((), (), (), None)
    assert store.jobs(JobQuery()) == []


def test_load_gives_back_what_was_saved(store: Store, url: str) -> None:
    step = Step(2, 0, "hostname", JobState.RUNNING, 2001, nodes=("n1", "n2"), gres="gres/gpu=2")
    jobs = (job(1, name="caf\udce9\0", array_tasks=(range(0, 9, 3),)), running(2, steps=(step,)))
    node = Node("n1", flags=NodeFlag.DRAIN, reason="broken", reason_time=5)
    partition = Partition("debug", ("n1",), state="DRAIN", maximum_time=INFINITE)
    store.commit(
        [
            SaveJob(jobs[0], new=True),
            SaveJob(jobs[1], new=True),
            SaveStep(step, 0),
            SaveNode(node),
            SavePartition(partition),
            SaveCounter(3),
        ],
        {1: FILES, 2: FILES},
    )
    assert store.load() == Recovered(jobs, (node,), (partition,), 3, longest_wait=998)
    store.close()
    again = Store(url)
    again.open()
    try:
        assert again.load() == Recovered(jobs, (node,), (partition,), 3, longest_wait=998)
        assert again.files(1) == FILES
        again.commit([SaveJob(replace(jobs[1], state=JobState.COMPLETED, end_time=2005))])
        assert everything(again) == [(1, JobState.PENDING), (2, JobState.COMPLETED)]  # the same row as before the restart
    finally:
        again.close()


def test_reservations_are_kept_until_they_are_forgotten(store: Store, url: str) -> None:
    share = CoreShare("n1", (0, 1), 2)
    first = Reservation("r", 4, 100, 200, ("n1",), ReservationFlag.DAILY, cores=(share,), users=Access(("alice",), denied=True))
    second = Reservation("s", 5, 100, 200, licenses=(("matlab", 2),))
    store.commit([SaveReservation(first), SaveReservation(second)])
    assert store.load().reservations == (first, second)
    store.commit([SaveReservation(replace(first, end_time=300)), ForgetReservation("s")])
    store.close()
    again = Store(url)
    again.open()
    try:
        assert again.load().reservations == (replace(first, end_time=300),)
        again.commit([ForgetReservation("r")])
        assert (again.load().reservations, again.load().last_reservation) == ((), 5)
    finally:
        again.close()


def test_the_last_of_several_saves_counts(store: Store) -> None:
    store.commit([SaveJob(job(1), new=True), SaveJob(running(1)), SaveCounter(2), SaveCounter(3), WakePlanner()])
    assert store.load().jobs == (running(1),)
    assert store.load().next_job_id == 3


def test_jobs_that_the_database_has_never_numbered(store: Store) -> None:
    assert store.strange_jobs([7, 3]) == [3, 7]
    store.commit([SaveJob(job(70), new=True), SaveJob(running(70)), SaveCounter(5)])
    store.commit([ForgetJob(70)])
    assert store.strange_jobs([71, 70, 5, 4, 1]) == [5, 71]


def test_an_array_has_one_script_until_its_last_element_is_forgotten(store: Store) -> None:
    array = job(1, array_job_id=1, array_tasks=(range(2),))
    store.commit([SaveJob(array, new=True), SaveCounter(2)], {1: FILES})
    element = replace(array, job_id=2, array_task_id=0, array_tasks=())
    last = replace(array, array_task_id=1, array_tasks=())
    store.commit([SaveJob(replace(array, array_tasks=(range(1, 2),))), SaveJob(element), SaveJob(last)])
    assert store.files(2) == store.files(1) == FILES
    store.commit([ForgetJob(1)])
    assert store.files(2) == FILES
    store.commit([ForgetJob(2)])
    assert store.stored_files(1) is None
    with pytest.raises(StoreError, match="job 1"):
        store.files(1)
    assert store.load().jobs == ()
    assert everything(store) == [(2, JobState.PENDING), (1, JobState.PENDING)]  # by element


@pytest.mark.parametrize(
    ("flags", "script", "environment"),
    [("job_script", True, False), ("job_env", False, True), ("job_script,job_env", True, True)],
)
def test_the_site_says_what_is_kept_of_a_jobs_files(store: Store, flags: str, script: bool, environment: bool) -> None:
    store.site = Site("c", (), (), parameters={"AccountingStoreFlags": flags})
    store.commit([SaveJob(job(1), new=True)], {1: FILES})
    store.commit([ForgetJob(1)])
    kept = store.files(1)
    assert (bool(kept.script), bool(kept.environment), kept.secret) == (script, environment, b"")


def test_a_requeued_job_has_a_record_for_each_time(store: Store) -> None:
    store.commit([SaveJob(job(1), new=True)])
    store.commit([SaveJob(running(1))])
    ended = running(1, state=JobState.PENDING, flags=JobFlag.REQUEUED | JobFlag.COMPLETING, end_time=2010)
    late = Step(1, BATCH_STEP, "batch", JobState.CANCELLED, 2000, 2010)
    store.commit([SaveJob(replace(ended, state=JobState.PENDING))])
    store.commit([SaveJob(job(1, restarts=1, submit_time=2010)), SaveStep(late, 0), SaveStep(replace(late, job_id=77), 0)])
    records = store.jobs(JobQuery(selections=(RecordSelection(1),), duplicates=True))
    assert [(record.job.restart_count, record.job.time_end, len(record.steps)) for record in records] == [
        (0, 2010, 1),
        (1, 0, 0),
    ]
    assert [record.job.restart_count for record in store.jobs(JobQuery(selections=(RecordSelection(1),)))] == [1]


def test_each_size_of_a_job_has_a_record_and_the_first_has_its_steps(store: Store) -> None:
    first = Step(1, 0, "one", JobState.RUNNING, 2002, nodes=("n1", "n2"))
    smaller = replace(ALLOCATION, shares=ALLOCATION.shares[:1])
    store.commit([SaveJob(job(1), new=True), SaveJob(running(1)), SaveStep(first, 0)])
    store.commit([SaveResize(running(1), 2010), SaveJob(running(1, allocation=smaller, resize_time=2010))])
    store.close()
    store.open()
    assert store.load().jobs[0].steps == (first,)
    store.commit([SaveStep(replace(first, step_id=1, name="two"), 0)])
    ended = running(1, allocation=smaller, resize_time=2010, state=JobState.COMPLETED, end_time=2020)
    store.commit([SaveJob(ended), SaveStep(replace(first, state=JobState.COMPLETED, end_time=2020), 0)])
    store.commit([ForgetJob(1), SaveStep(replace(first, step_id=2, name="three", end_time=2021), 0)])
    records = store.jobs(JobQuery(selections=(RecordSelection(1),)))
    rows = [(each.job.state, each.job.flags, each.job.time_start, each.job.time_end, each.job.node_list) for each in records]
    assert rows == [(1, JobFlag.RESIZING, 2000, 2010, "n[1-2]"), (3, 0, 2010, 2020, "n1")]
    assert [[step.step_name for step in each.steps] for each in records] == [["one", "two", "three"], []]


def test_a_job_id_that_comes_again_gets_a_record_of_its_own(store: Store) -> None:
    store.commit([SaveJob(job(1, name="first"), new=True)])
    store.commit([ForgetJob(1), SaveJob(job(1, name="second", submit_time=5000, eligible_time=5000), new=True)])
    store.commit([SaveJob(running(1, name="second", submit_time=5000))])
    records = store.jobs(JobQuery(selections=(RecordSelection(1),), duplicates=True))
    assert [(record.job.job_name, record.job.state) for record in records] == [("first", 0), ("second", 1)]


def test_the_reason_it_last_waited_for_stays(store: Store, url: str) -> None:
    store.commit([SaveJob(job(1, reason=Reason.RESOURCES), new=True)])
    store.close()
    store.open()
    store.commit([SaveJob(running(1))])
    assert store.jobs(JobQuery())[0].job.reason == "Resources"


def test_load_gives_back_the_steps_that_run_whatever_their_jobs_record_says(store: Store) -> None:
    batch = Step(1, BATCH_STEP, "batch", JobState.RUNNING, 2001, nodes=("n1",), gres="gres/gpu=1,gres/gpu:a100=1")
    first = Step(1, 0, "one", JobState.RUNNING, 2002, nodes=("n1", "n2"), tasks=2, cpus=4, memory=300, time_limit=5)
    second = replace(first, step_id=1, name="two", start_time=2003, submit_line="srun two", memory=0, standard_output="o")
    store.commit([SaveJob(running(1, steps=(first,))), SaveJob(running(2)), SaveStep(batch, 0), SaveStep(first, 0)])
    store.commit([SaveStep(replace(first, state=JobState.COMPLETED, end_time=2004), 0), SaveStep(second, 0)])
    assert [(each.job_id, each.steps) for each in store.load().jobs] == [(1, (batch, second)), (2, ())]
    store.commit([SaveJob(running(1, restarts=1))])
    assert store.load().jobs[0].steps == ()  # those were of the time before


def test_bytes_that_are_no_text_stop_no_commit(store: Store, url: str) -> None:
    odd = "a\udcff\0b"
    store.commit([SaveJob(job(1, account=odd, qos=odd, name=odd), new=True), SaveJob(job(2), new=True)])
    store.commit([SaveReservation(Reservation(odd, 1, 1000, 2000)), SaveJob(job(3), new=True)])
    assert [record.job.account for record in store.jobs(JobQuery())] == ["a?b", "phys", "phys"]
    assert [reservation.name for reservation in store.load().reservations] == [odd]
    store.commit([ForgetReservation(odd)])
    assert not store.load().reservations


def test_nodes_choose_jobs_and_their_steps(store: Store) -> None:
    store.site = Site("c", (Node("n1", cpus=8), Node("n2", cpus=8)), (Partition("debug", ("n1", "n2")),))
    store.commit([SaveJob(running(1, request=JobRequest(tasks=2, minimum_nodes=2)))])
    steps = [Step(1, number, "x", JobState.COMPLETED, 2000, 2003, nodes) for number, nodes in enumerate([("n1",), ("n2",)])]
    store.commit([SaveStep(step, 0) for step in steps])
    for nodes, numbers in ((("n2",), [1]), (("n1", "n2"), [0, 1]), ((), [0, 1])):
        (record,) = store.jobs(JobQuery(nodes=frozenset(nodes)))
        assert [step.step_id for step in record.steps] == numbers
    assert not store.jobs(JobQuery(nodes=frozenset(("n3",))))


def test_what_is_recorded_of_a_job(store: Store) -> None:
    store.site = Site("c", (Node("n1", cpus=8), Node("n2", cpus=8)), (Partition("debug", ("n1", "n2")),))
    store.commit(
        [SaveJob(running(1, request=JobRequest(tasks=4, minimum_nodes=2, memory_per_cpu=100, tres_per_node="gres/gpu:a100:1")))]
    )
    store.commit(
        [
            SaveStep(
                Step(
                    1,
                    0,
                    "x",
                    JobState.COMPLETED,
                    2000,
                    2003,
                    ("n1",),
                    2,
                    2,
                    200,
                    usage=Usage(user_cpu=5, rss=Spread(most=4096)),
                ),
                0,
            )
        ]
    )
    (record,) = store.jobs(JobQuery())
    row, (step,) = record.job, record.steps
    assert (row.node_list, row.nodes_allocated, row.cpus_allocated) == ("n[1-2]", 2, 4)
    assert row.tres_requested == "billing=4,cpu=4,gres/gpu=2,mem=400M,node=2"
    assert row.tres_allocated == "billing=4,cpu=4,gres/gpu=2,mem=400M,node=2"
    assert (step.tres_allocated, step.user_cpu, step.measured.rss.most) == ("cpu=2,mem=200M,node=1", 5, 4096)


def test_large_commits(store: Store) -> None:
    effects = [SaveJob(job(number), new=True) for number in range(1, 251)]
    store.commit(effects, dict.fromkeys(range(1, 251), FILES))
    assert len(store.load().jobs) == len(store.jobs(JobQuery())) == 250


# ------------------------------------------------------------------------------------------------ the schema


def test_the_migrations_make_what_the_tables_say(store: Store, url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from sqlmodel import SQLModel

    engine = make_engine(parse_url(url), writer=True)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), SQLModel.metadata) == []
        assert ScriptDirectory.from_config(schema.configuration(connection)).get_current_head() == schema.HEAD
    engine.dispose()


def test_rows_are_the_columns() -> None:
    assert tuple(JobTable.model_fields) == JOB_COLUMNS
    assert tuple(StepTable.model_fields) == STEP_COLUMNS


def test_a_newer_schema_is_one_clear_error(store: Store, url: str) -> None:
    store.close()
    engine = make_engine(parse_url(url), writer=True)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(StoreError, match=r"made by a newer slurmk .*9999") as caught:
        Store(url).open()
    assert not caught.value.passing


def test_somebody_elses_database_is_left_alone(url: str) -> None:
    engine = create_engine(parse_url(url))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE job (x INTEGER)")
    with pytest.raises(StoreError, match="a database of its own"):
        Store(url).open()
    assert inspect(engine).get_table_names() == ["job"]
    engine.dispose()


@pytest.mark.parametrize("text", ["nonsense", "mysql://h/d", "sqlite://", "sqlite:///:memory:", ""])
def test_urls_that_are_no_database(text: str) -> None:
    with pytest.raises(StoreError):
        Store(text)


def test_passwords_are_not_told() -> None:
    assert "geheim" not in Store("postgresql://u:geheim@h/d").name


# ------------------------------------------------------------------------------------------------ trouble


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "accounting.sqlite"


@pytest.fixture
def file_store(path: Path) -> Iterator[Store]:
    made = Store(f"sqlite:///{path}")
    made.open()
    yield made
    made.close()


def test_a_commit_is_on_disk_before_it_returns(file_store: Store) -> None:
    connection = file_store._connected().connection.driver_connection
    assert isinstance(connection, sqlite3.Connection)
    found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "foreign_keys")]
    assert found == ["wal", 2, 1]


def test_a_full_disk_is_told_and_passes(file_store: Store, path: Path) -> None:
    file_store.commit([SaveJob(job(1), new=True)])
    connection = file_store._connected().connection.driver_connection
    assert isinstance(connection, sqlite3.Connection)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    large = replace(FILES, script=os.urandom(1 << 20))
    with pytest.raises(StoreError, match=f"{path}: the disk is full"):
        file_store.commit([SaveJob(job(2), new=True), SaveCounter(3)], {2: large})
    assert file_store.load() == Recovered((job(1),), (), (), None)
    assert everything(file_store) == [(1, 0)]
    file_store.commit([SaveJob(job(2), new=True), SaveCounter(3)], {2: large})
    assert file_store.files(2) == large
    assert len({record.job.db_index for record in file_store.jobs(JobQuery())}) == 2


def test_a_lock_is_told_and_passes(file_store: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    driver = file_store._connected().connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.execute("PRAGMA busy_timeout = 50")
    with pytest.raises(StoreError, match="locked by another process"):
        file_store.commit([SaveJob(job(1), new=True)])
    assert file_store.load().jobs == ()  # reading goes on
    other.execute("ROLLBACK")
    other.close()
    file_store.commit([SaveJob(job(1), new=True)])
    assert file_store.load().jobs == (job(1),)


def _message_as_ordinary_user(path: Path, work: Callable[[Store], None]) -> str:
    """What StoreError says there to a process that is not root (which may write everywhere); "" when there is none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        message = "the child failed"
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            store = Store(f"sqlite:///{path}")
            work(store)
            message = ""
        except StoreError as error:
            message = str(error)
        finally:
            os.write(writing, message.encode())
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def common() -> Iterator[Path]:
    """A directory that everyone can reach, as pytest's are not."""
    with tempfile.TemporaryDirectory(prefix="slurmk-store-") as name:
        yield Path(name)


def test_a_directory_that_may_not_be_written_is_told(common: Path) -> None:
    os.chmod(common, 0o555)
    said = _message_as_ordinary_user(common / "a.sqlite", Store.open)
    assert said == f"{common}/a.sqlite: cannot be opened: see that the directory is there and may be written to"


def test_a_file_that_may_not_be_written_is_told(common: Path) -> None:
    path = common / "a.sqlite"
    store = Store(f"sqlite:///{path}")
    store.open()
    store.commit([SaveJob(job(1), new=True)])
    store.close()
    os.chmod(path, 0o444)
    os.chmod(common, 0o555)

    def write(store: Store) -> None:
        store.open()
        store.commit([SaveJob(job(2), new=True)])

    said = _message_as_ordinary_user(path, write)
    assert said == f"{path}: the file or its directory cannot be written to"
    os.chmod(path, 0o644)
    os.chmod(common, 0o755)
    store.open()
    assert store.load().jobs == (job(1),)
    store.close()


def test_a_database_that_turned_read_only_is_told_and_passes(file_store: Store) -> None:
    driver = file_store._connected().connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.execute("PRAGMA query_only = ON")  # what a read-only file answers, also to root
    with pytest.raises(StoreError, match="cannot be written to"):
        file_store.commit([SaveJob(job(1), new=True)])
    file_store.commit([SaveJob(job(1), new=True)])
    assert file_store.load().jobs == (job(1),)


@pytest.mark.parametrize(("content", "words"), [(b"no database at all" * 100, "not an SQLite database")])
def test_a_file_that_is_no_database_is_told(path: Path, content: bytes, words: str) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match=words):
        Store(f"sqlite:///{path}").open()


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing/a\.sqlite: cannot be opened"):
        Store(f"sqlite:///{tmp_path}/missing/a.sqlite").open()


def test_a_server_that_is_away_is_told() -> None:
    with pytest.raises(StoreError, match="postgresql"):
        Store("postgresql://slurmk:secret@127.0.0.1:1/x").open()


def test_a_server_that_comes_back_is_used_again(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE broken")
        store = Store(f"{postgres_url.rpartition('/')[0]}/broken")
        store.open()
        store.commit([SaveJob(job(1), new=True)])
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'broken'")
        with pytest.raises(StoreError):
            store.commit([SaveJob(job(2), new=True)])
        store.commit([SaveJob(job(2), new=True)])
        assert [found.job_id for found in store.load().jobs] == [1, 2]
        store.close()


def test_one_controller_a_database(postgres_url: str) -> None:
    first, second = Store(postgres_url), Store(postgres_url)
    first.open()
    with pytest.raises(StoreError, match="another slurmk controller"):
        second.open()
    first.close()
    second.open()
    second.close()


def test_a_closed_store_says_so(file_store: Store) -> None:
    file_store.close()
    with pytest.raises(StoreError, match="closed"):
        file_store.load()
    with pytest.raises(StoreError, match="closed"):
        file_store.commit([SaveCounter(1)])


def test_queries_run_beside_commits(file_store: Store) -> None:
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(30):
                file_store.jobs(JobQuery())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(1, 60):
        file_store.commit([SaveJob(job(number), new=True)])
    for thread in threads:
        thread.join()
    assert failures == []


WRITER = """
import sys
from accounting.store import Store
from slurmk.core.effects import SaveCounter, SaveJob
from slurmk.model.job import Credentials, Job, JobFiles, JobRequest
store = Store(sys.argv[1])
store.open()
number = store.load().next_job_id or 1
while True:
    made = Job(number, JobRequest(), Credentials(0, 0, "root", "root"), 1000, eligible_time=1000)
    store.commit([SaveJob(made, new=True), SaveCounter(number + 1)], {number: JobFiles(b"x" * 500, (), {}, b"s")})
    print(number, flush=True)
    number += 1
"""


def test_what_was_acknowledged_survives_kill_9(url: str) -> None:
    acknowledged = 0
    for lines in (1, 12, 40, 3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        for _ in range(lines):
            acknowledged = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().splitlines()  # what it had still said before it died
        writer.wait()
        acknowledged = max([acknowledged, *(int(line) for line in rest if line.isdigit())])
        store = Store(url)
        store.open()
        recovered = store.load()
        assert [found.job_id for found in recovered.jobs] == list(range(1, (recovered.next_job_id or 0)))
        assert (recovered.next_job_id or 0) > acknowledged
        assert all(store.files(found.job_id).secret == b"s" for found in recovered.jobs)
        assert len(store.jobs(JobQuery())) == len(recovered.jobs)
        store.close()


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("names", {"name": "n\udcff"}),
        ("accounts", {"account": "n\udcff"}),
        ("partitions", {"partitions": ("n\udcff",)}),
        ("qos", {"qos": "n\udcff"}),
        ("user_names", {"credentials": Credentials(1001, 1001, "n\udcff", "alice", (1001,))}),
        ("wckeys", {"request": JobRequest(wckey="n\udcff")}),
        ("constraints", {"request": JobRequest(constraints="n\udcff")}),
    ],
)
def test_what_is_not_utf8_is_found_as_it_is_kept(store: Store, field: str, changes: dict[str, object]) -> None:
    store.commit([SaveJob(job(1, **changes), new=True), SaveJob(job(2), new=True)])
    assert [number for number, _ in everything(store, **{field: ("n\udcff",)})] == [1]
    assert everything(store, **{field: ("m\udcff",)}) == []
    assert everything(store, reasons=("n\udcff",)) == []
