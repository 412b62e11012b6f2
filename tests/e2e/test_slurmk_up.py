"""Starting and ending a cluster as a newcomer does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded import SLURMK, Cluster, wait_for
from on_kubernetes import CHOSEN, clean, embedded_only, options_for


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="slurmk-") as folder:
        yield Path(folder) / "d"
        subprocess.run([SLURMK, "down", "--jobs", "--dir", Path(folder) / "d"], capture_output=True, timeout=60)


@pytest.fixture
def options(directory: Path) -> Iterator[tuple[str, ...]]:
    """What ``slurmk up`` needs beside the directory."""
    root = directory.parent
    if not CHOSEN:
        yield ()
        return
    root.chmod(0o755)
    yield options_for(root)
    subprocess.run([SLURMK, "down", "--jobs", "--dir", directory], capture_output=True, timeout=60)
    clean(root)


def slurmk(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SLURMK, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_foreground_until_interrupted(directory: Path, options: tuple[str, ...], number: signal.Signals) -> None:
    command = [SLURMK, "up", "--dir", directory, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert f"the cluster in {directory} is up" in process.stdout.readline()
    assert slurmk("status", "--dir", directory).returncode == 0
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    rest = process.stdout.read()
    assert process.wait(20) == 0
    assert "slurmk env" in rest
    assert slurmk("status", "--dir", directory).returncode == 1


def test_second_up_says_so(directory: Path, options: tuple[str, ...]) -> None:
    assert slurmk("up", "--detach", "--dir", directory, *options).returncode == 0
    again = slurmk("up", "--detach", "--dir", directory, *options)
    assert (again.returncode, again.stderr) == (1, f"slurmk: error: a cluster is up in {directory} already\n")


def test_two_at_the_same_moment_are_one(directory: Path, options: tuple[str, ...]) -> None:
    command = [SLURMK, "up", "--detach", "--dir", directory, *options]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in both]
    running = subprocess.run(["pgrep", "-f", f"slurmk.daemon --dir {directory}( |$)"], capture_output=True, text=True)
    assert len(running.stdout.split()) == 1, outputs
    assert "Traceback" not in "".join(outputs)


@embedded_only("a controller that finds its Lease held, as after a kill, waits for it")
def test_starts_in_less_than_two_seconds_on_a_quiet_machine(directory: Path) -> None:
    slurmk("up", "--detach", "--dir", directory)  # the first start makes the database and compiles
    slurmk("down", "--dir", directory)
    began = time.monotonic()
    assert slurmk("up", "--detach", "--dir", directory).returncode == 0
    took = time.monotonic() - began
    assert took < 2 * max(1.0, os.getloadavg()[0]), f"{took:.2f} s"


@embedded_only("slurm.conf may leave the nodes to the cluster there; tests/unit/daemon/test_on_kubernetes.py has its own")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ClusterName=x\nNodeName=n1 CPUs=oops\nPartitionName=a Nodes=n1\n", "slurm.conf line 2: "),
        ("ClusterName=x\n\nNoSuchKey=1\n", "slurm.conf line 3: "),
        (None, "there is no slurm.conf"),
    ],
)
def test_wrong_configuration_is_named(directory: Path, text: str | None, said: str) -> None:
    folder = directory.parent / "conf"
    folder.mkdir()
    if text is not None:
        (folder / "slurm.conf").write_text(text)
    done = slurmk("up", "--detach", "--dir", directory, "--conf", folder)
    assert done.returncode == 1
    assert done.stderr.startswith("slurmk: error: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_down_lets_jobs_go_on_and_down_with_jobs_ends_them(directory: Path, options: tuple[str, ...]) -> None:
    cluster = Cluster(directory, directory.parent, options=options)
    cluster.up()
    mark = f"{time.time_ns() % 10**8}.75"
    job = cluster.submit(f"-o /dev/null --wrap 'exec sleep {mark}'")
    cluster.wait_state(job, "RUNNING")
    alive = ["pgrep", "-f", f"^sleep {mark}"]
    wait_for(lambda: subprocess.run(alive, capture_output=True).returncode == 0)
    stopped = slurmk("down", "--dir", directory)
    assert "1 job goes on running" in stopped.stdout
    assert subprocess.run(alive, capture_output=True).returncode == 0
    cluster.up()
    assert cluster.state(job) == "RUNNING"
    assert slurmk("down", "--jobs", "--dir", directory).returncode == 0
    assert subprocess.run(alive, capture_output=True).returncode == 1
    cluster.up()
    assert cluster.ok(f"sacct -n -X -j {job} -o State").strip().startswith("CANCELLED")


@embedded_only("one pretended node, and processes that belong to the controller's directory")
def test_down_with_jobs_starts_nothing_and_leaves_no_process(directory: Path) -> None:
    cluster = Cluster(directory, directory.parent, options=("--nodes", "1"))
    cluster.up()
    first = cluster.submit("--exclusive -o /dev/null --wrap '(setsid sleep 300 &); srun --overlap sleep 300 & wait'")
    cluster.wait_state(first, "RUNNING")
    waiting = [cluster.submit("--exclusive -o /dev/null --wrap 'touch started.$SLURM_JOB_ID; sleep 300'") for _ in range(3)]
    with subprocess.Popen(
        ["srun", "--exclusive", "touch", "started.srun"],
        env=dict(cluster.environment),
        executable=directory / "bin" / "srun",
        cwd=cluster.work,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as srun:
        wait_for(lambda: "srun" not in cluster.ok("squeue -h -t R -o %j") and "touch" in cluster.ok("squeue -h -t PD -o %j"))
        assert slurmk("down", "--jobs", "--dir", directory).returncode == 0
        srun.wait(20)
    wait_for(lambda: left_of(directory) == [], 3, lambda: str(left_of(directory)))  # the controller lets its lock go first
    assert list(cluster.work.glob("started.*")) == []
    cluster.up()
    assert cluster.state(first) == "CANCELLED"
    assert {cluster.state(job) for job in waiting} <= {"PENDING", "RUNNING"}


def left_of(directory: Path) -> list[str]:
    """Command lines of processes that run from, or belong to a job of, the cluster in ``directory``."""
    wanted, found = os.fsencode(directory), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes()
            if wanted in words or b"SLURMK_MARK=" + wanted in (process / "environ").read_bytes():
                found.append(words.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found
