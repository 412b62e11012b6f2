"""What dies, fills up or goes away, and what must not be lost then."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from embedded import Cluster, wait_for
from on_kubernetes import embedded_only


def stepds(cluster: Cluster, job: int) -> list[int]:
    """Process ids of the stepds of a job, which name themselves ``stepd JOB/NODE``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "comm").read_text()
            if name.startswith(f"stepd {job}/") and str(cluster.directory) in (process / "cmdline").read_text():
                found.append(int(process.name))
        except OSError:
            continue
    return found


@embedded_only("a pod's stepd is the first process of a container: tests/cluster/test_real_nodes.py has it")
@pytest.mark.parametrize(("option", "state"), [("--no-requeue", "NODE_FAIL"), ("--requeue", "PENDING")])
def test_killed_stepd_ends_or_requeues_its_job_and_the_node_comes_back(own_cluster: Cluster, option: str, state: str) -> None:
    mark = f"{time.time_ns() % 10**8}.5"
    job = own_cluster.submit(f"{option} -w n1 --wrap 'sleep {mark}'")
    own_cluster.wait_state(job, "RUNNING")
    wait_for(lambda: subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True).returncode == 0)
    pids = wait_for(lambda: stepds(own_cluster, job)) and stepds(own_cluster, job)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: own_cluster.state(job) == state or int(own_cluster.field(job, "Restarts")) > 0, seconds=15)
    if state == "NODE_FAIL":
        wait_for(lambda: subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True).returncode == 1)
    own_cluster.ok(f"scancel {job} || true")
    after = own_cluster.submit("-w n1 --exclusive --wrap true")
    assert own_cluster.wait_end(after) == "COMPLETED"


def test_controller_comes_back_to_everything_as_it_was(own_cluster: Cluster) -> None:
    running = own_cluster.submit("-J running --output=survivor.out --wrap 'sleep 4; echo survived; exit 6'")
    waiting = own_cluster.submit("-J waiting --hold --comment='still here' --wrap true")
    own_cluster.wait_state(running, "RUNNING")
    pid = int(own_cluster.ok(f"slurmk status --dir {own_cluster.directory} | grep -oE 'pid [0-9]+' | grep -oE '[0-9]+'"))
    os.kill(pid, signal.SIGKILL)
    refused = own_cluster.run("sbatch --wrap true", environment={"SLURM_JOB_ID": ""})
    assert refused.returncode == 1
    assert refused.stderr.startswith("sbatch: error: Batch job submission failed: ")
    own_cluster.up()
    assert own_cluster.field(waiting, "Comment") == "still"  # oneliner words are split at blanks
    assert own_cluster.wait_end(running) == "FAILED"
    assert own_cluster.field(running, "ExitCode") == "6:0"
    assert own_cluster.field(running, "Restarts") == "0"
    assert own_cluster.output(running, "survivor.out") == "survived\n"


def test_job_that_ends_while_the_controller_is_away(own_cluster: Cluster) -> None:
    job = own_cluster.submit("--wrap 'sleep 1; exit 4'")
    own_cluster.wait_state(job, "RUNNING")
    pid = int(own_cluster.ok(f"slurmk status --dir {own_cluster.directory} | grep -oE 'pid [0-9]+' | grep -oE '[0-9]+'"))
    os.kill(pid, signal.SIGKILL)
    time.sleep(2.5)
    own_cluster.up()
    assert own_cluster.wait_end(job) == "FAILED"
    assert own_cluster.field(job, "ExitCode") == "4:0"


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system of a few megabytes."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=755", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    return tmp_path


@embedded_only("the controller's disk is the same thing on both, and small_disk brings its own cluster")
def test_full_disk_loses_nothing_acknowledged(small_disk: Path) -> None:
    work = small_disk / "work"
    work.mkdir(mode=0o1777)
    cluster = Cluster(small_disk / "d", work)
    try:
        cluster.up()
        acknowledged = []
        script = "#!/bin/sh\n" + "".join(f"# {os.urandom(40).hex()}\n" for _ in range(8000))
        (Path("/tmp") / f"slurmk-big-{os.getpid()}.sh").write_text(script)
        for _ in range(60):
            done = cluster.run(f"sbatch --parsable --hold /tmp/slurmk-big-{os.getpid()}.sh")
            if done.returncode:
                assert "Traceback" not in done.stderr
                assert done.stderr.startswith("sbatch: error: ")
                break
            acknowledged.append(done.stdout.strip())
        else:
            pytest.fail("the disk never filled")
        assert cluster.ok("scontrol ping")
        pid = int(cluster.ok(f"slurmk status --dir {cluster.directory} | grep -oE 'pid [0-9]+' | grep -oE '[0-9]+'"))
        os.kill(pid, signal.SIGKILL)
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        cluster.up()
        assert sorted(cluster.ok("squeue -h -o %i").split(), key=int) == acknowledged
        assert cluster.submit("--hold --wrap true") > int(acknowledged[-1])
    finally:
        cluster.down()
        (Path("/tmp") / f"slurmk-big-{os.getpid()}.sh").unlink(missing_ok=True)
        subprocess.run(["umount", "-l", str(small_disk)], check=False)
