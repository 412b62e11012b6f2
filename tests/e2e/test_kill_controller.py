"""Kill -9 the controller again and again, at random moments, while jobs run, wait, come in and are cancelled.

``SLURMK_KILL_ROUNDS`` sets the number of rounds (default 3, the promise is 50), ``SLURMK_KILL_SEED`` repeats a run's
moments. Each job appends its id to a file when it starts, so that a job that ran twice shows, and ends with a code that
follows from its name, so that one that was mixed up shows too.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from embedded import Cluster, end_cluster, make_cluster, wait_for

ROUNDS = int(os.environ.get("SLURMK_KILL_ROUNDS", "3"))
SEED = int(os.environ.get("SLURMK_KILL_SEED", str(time.time_ns())))

RUNNING = 20
WAITING = 20
"""About so many jobs run and wait when the controller is killed."""

LATEST = 4.0
"""Seconds after a start of the controller within which it is killed."""


@dataclass
class Record:
    """What clients were told. ``lost`` are submissions that got no answer: they may or may not have become jobs."""

    acknowledged: dict[int, int] = field(default_factory=dict)  # job id -> exit code that its script ends with
    cancelled: set[int] = field(default_factory=set)  # cancelling was acknowledged
    perhaps: set[int] = field(default_factory=set)  # cancelling was asked for and got no answer
    lost: int = 0
    faults: list[str] = field(default_factory=list)


@pytest.fixture
def one_cluster() -> Iterator[Cluster]:
    made = make_cluster("--nodes", str(max(4, 2 * RUNNING // (os.cpu_count() or 1))))
    yield made
    end_cluster(made)


def submit(cluster: Cluster, record: Record, seconds: float, code: int) -> int | None:
    """Submit a job that notes its start, sleeps and ends with ``code``."""
    script = f"echo $SLURM_JOB_ID >>{cluster.work}/started; sleep {seconds}; exit {code}"
    done = cluster.run(f"sbatch --parsable --no-requeue -o /dev/null --mem=1 -t 10 --wrap '{script}'")
    if done.returncode == 0:
        job = int(done.stdout)
        if job in record.acknowledged:
            record.faults.append(f"job id {job} was given twice")
        record.acknowledged[job] = code
        return job
    record.lost += 1
    if not done.stderr.startswith("sbatch: error: ") or "Traceback" in done.stderr:
        record.faults.append(f"sbatch said: {done.stderr}")
    return None


def cancel(cluster: Cluster, record: Record, job: int) -> None:
    record.perhaps.add(job)
    if cluster.run(f"scancel {job}").returncode == 0:
        record.cancelled.add(job)


class Clients(threading.Thread):
    """Submits and cancels until told to stop."""

    def __init__(self, cluster: Cluster, record: Record, seed: int) -> None:
        super().__init__(daemon=True)
        self.cluster, self.record, self.random = cluster, record, random.Random(seed)
        self.stop = threading.Event()

    def run(self) -> None:
        try:
            while not self.stop.wait(self.random.uniform(0.0, 0.2)):
                job = submit(self.cluster, self.record, self.random.uniform(0, 2), self.random.randrange(100))
                if job is not None and self.random.random() < 0.3:
                    cancel(self.cluster, self.record, job)
        except Exception as error:
            self.record.faults.append(repr(error))


def controller(cluster: Cluster) -> int:
    """Its process id."""
    shown = cluster.ok(f"slurmk status --dir {cluster.directory}")
    found = re.search(r"pid (\d+)", shown)
    assert found, shown
    return int(found[1])


def states(cluster: Cluster) -> dict[int, tuple[str, str]]:
    """State and exit code of every job, from accounting."""
    shown = cluster.ok("sacct -n -P -X -a -S 2000-01-01 -o JobIDRaw,State,ExitCode")
    rows = (line.split("|") for line in shown.splitlines())
    return {int(job): (state.split()[0], code) for job, state, code in rows}


def waiting(cluster: Cluster) -> int:
    """How many jobs wait."""
    return len(cluster.ok("squeue -h -t PD -o %i").split())


def survivors(cluster: Cluster, mark: str) -> set[int]:
    found = subprocess.run(["pgrep", "-f", mark], capture_output=True, text=True)
    return {int(pid) for pid in found.stdout.split()}


@pytest.mark.timeout(240 + 30 * ROUNDS)
def test_kill_the_controller_at_random_moments(one_cluster: Cluster) -> None:
    cluster = one_cluster
    print(f"SLURMK_KILL_SEED={SEED}")
    chance = random.Random(SEED)
    record = Record()
    long_jobs: list[int] = []
    for round_number in range(ROUNDS):
        began = time.monotonic()
        clients = [Clients(cluster, record, chance.randrange(2**32)) for _ in range(2)]
        for client in clients:
            client.start()
        while len(long_jobs) < RUNNING // 4:
            job = submit(cluster, record, 6.0 + chance.uniform(0, 4), chance.randrange(100))
            if job is not None:
                long_jobs.append(job)
        while time.monotonic() - began < LATEST and waiting(cluster) < WAITING:
            submit(cluster, record, chance.uniform(0, 2), chance.randrange(100))
        pid = controller(cluster)
        time.sleep(chance.uniform(0, 1.5))
        os.kill(pid, signal.SIGKILL)
        time.sleep(chance.choice([0, 0, 0.5, 3.0]))
        cluster.up()
        for client in clients:
            client.stop.set()
        for client in clients:
            client.join(60)
        known = states(cluster)
        missing = sorted(set(record.acknowledged) - set(known))
        assert not missing, f"round {round_number}: acknowledged jobs are missing: {missing}"
        long_jobs = [job for job in long_jobs if known[job][0] in ("PENDING", "RUNNING")]
    wait_for(lambda: not cluster.ok("squeue -h -o %i"), seconds=180, tell=lambda: cluster.ok("squeue"))
    assert not record.faults
    known = states(cluster)
    assert len(known) <= len(record.acknowledged) + record.lost, "jobs that nobody submitted"
    starts = Counter(int(line) for line in (cluster.work / "started").read_text().split())
    twice = {job: count for job, count in starts.items() if count > 1}
    assert not twice, f"ran twice: {twice}"
    for job, code in record.acknowledged.items():
        state, exit_code = known[job]
        if job in record.perhaps:
            assert state in ("CANCELLED", "COMPLETED", "FAILED"), f"{job}: {state}"
            continue
        assert state == ("FAILED" if code else "COMPLETED"), f"{job}: {state} {exit_code}, not {code}"
        assert exit_code == f"{code}:0", f"{job}: {exit_code}, not {code}"
        assert starts[job] == 1, f"{job} never ran"


def test_processes_survive_the_controller(one_cluster: Cluster) -> None:
    mark = f"{time.time_ns() % 10**8}.25"
    job = one_cluster.submit(f"--wrap 'sleep 3; exec sleep {mark}'")
    one_cluster.wait_state(job, "RUNNING")
    for _ in range(3):
        os.kill(controller(one_cluster), signal.SIGKILL)
        one_cluster.up()
        assert one_cluster.state(job) == "RUNNING"
    wait_for(lambda: survivors(one_cluster, f"sleep {mark}"))
    one_cluster.ok(f"scancel {job}")
    assert one_cluster.wait_end(job) == "CANCELLED"
    assert not survivors(one_cluster, f"sleep {mark}")
