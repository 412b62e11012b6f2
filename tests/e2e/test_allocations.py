"""salloc and what works inside of its allocation; sattach, sbcast and suspension of running jobs."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from embedded import Cluster, wait_for
from on_kubernetes import embedded_only


@embedded_only("the cluster may be full, and then salloc says that it waits")
def test_a_command_in_an_allocation(cluster: Cluster) -> None:
    done = cluster.run("salloc -N 2 -n 4 -J inside bash -c 'srun bash -c \"echo \\$SLURM_PROCID\" | sort; exit 3'")
    assert done.stdout.split() == ["0", "1", "2", "3"]
    assert done.returncode == 3
    said = done.stderr.splitlines()
    assert [line.split(" job")[0].split(" n[")[0] for line in said] == [
        "salloc: Granted",
        "salloc: Nodes",
        "salloc: Relinquishing",
    ]
    job = said[0].split()[-1]
    assert cluster.ok(f"sacct -X -n -P -j {job} -o jobname,state,exitcode") == "inside|FAILED|3:0"
    assert cluster.ok("squeue -h -n inside -t R,PD") == ""


def test_an_allocation_that_is_cancelled(cluster: Cluster) -> None:
    script = "scancel $SLURM_JOB_ID; sleep 0.5; echo still here; exit 4"
    done = cluster.run(f"salloc -n 1 bash -c '{script}'")
    assert (done.stdout, done.returncode) == ("still here\n", 4)
    assert "has been revoked." in done.stderr
    assert "Relinquishing" not in done.stderr
    done = cluster.run("salloc -n 1 -K bash -c 'scancel $SLURM_JOB_ID; sleep 20; echo never'")
    assert (done.stdout, done.returncode) == ("", 1)


def test_the_time_limit_revokes_an_allocation(own_cluster: Cluster) -> None:
    script = "scontrol update jobid=$SLURM_JOB_ID timelimit=0:01; sleep 60"
    began = time.monotonic()
    done = own_cluster.run(f"salloc -n 1 -t 1 -K bash -c '{script}'", timeout=110)
    assert "has exceeded its time limit and its allocation has been revoked." in done.stderr
    assert time.monotonic() - began < 100
    assert own_cluster.ok("sacct -X -n -o state").split() == ["TIMEOUT"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_give_the_allocation_back(cluster: Cluster, number: int) -> None:
    with start(cluster, "salloc", "-n", "1", "-J", f"signal{number}", "bash", "-c", "sleep 2; exit 5") as process:
        wait_for(lambda: cluster.ok(f"squeue -h -n signal{number} -o %t") == "R")
        time.sleep(0.3)
        process.send_signal(number)
        wait_for(lambda: cluster.ok(f"squeue -h -n signal{number} -o %t") == "")
        assert process.wait(20) == 5


def test_a_signal_while_it_waits_cancels(cluster: Cluster) -> None:
    with start(cluster, "salloc", "-n", "1", "-J", "later", "-b", "now+1hour", "true") as process:
        wait_for(lambda: cluster.ok("squeue -h -n later -o %t") == "PD")
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=20)[1]
        assert process.returncode == 1
    assert "salloc: Job aborted due to signal" in errors
    assert cluster.ok("squeue -h -n later -t PD") == ""


def test_an_allocation_does_not_outlive_its_salloc(cluster: Cluster) -> None:
    with start(cluster, "salloc", "-n", "1", "-J", "killed", "sleep", "60") as process:
        wait_for(lambda: cluster.ok("squeue -h -n killed -o %t") == "R")
        time.sleep(0.5)
        process.kill()
        process.wait(20)
    wait_for(lambda: cluster.ok("squeue -h -n killed -t R,CG,PD") == "")


def test_no_shell_keeps_the_allocation(cluster: Cluster) -> None:
    cluster.ok("salloc -n 1 --no-shell -J kept")
    job = cluster.ok("squeue -h -n kept -o %A")
    assert cluster.ok(f"srun --jobid={job} echo in it") == "in it"
    assert cluster.state(job) == "RUNNING"
    cluster.ok(f"scancel {job}")
    assert cluster.wait_end(job) == "CANCELLED"


def test_a_shell_on_a_terminal(cluster: Cluster) -> None:
    ours, theirs = pty.openpty()
    environment = {**cluster.environment, "PS1": "$ ", "SHELL": "/bin/sh"}
    process = subprocess.Popen(
        ["salloc", "-n", "1", "/bin/sh"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        cwd=cluster.work,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    read_until(ours, b"ready for job")
    os.write(ours, b"sleep 30\n")
    time.sleep(0.5)
    os.write(ours, b"\x03")
    time.sleep(0.3)
    os.write(ours, b"echo job=$SLURM_JOB_ID= ; exit 6\n")
    text = read_until(ours, b"Relinquishing")
    assert process.wait(20) == 6
    assert b"job=$SLURM" in text
    os.close(ours)


def test_output_of_a_running_step_from_its_beginning(cluster: Cluster) -> None:
    job = cluster.submit("-n 2 -o /dev/null --wrap 'srun bash -c \"echo first \\$SLURM_PROCID; sleep 3; echo last; exit 2\"'")
    wait_for(lambda: ".0" in cluster.ok(f"squeue -h -s -j {job} -o %i"))
    time.sleep(0.5)
    done = cluster.run(f"sattach -l {job}.0")
    assert sorted(done.stdout.splitlines()) == ["0: first 0", "0: last", "1: first 1", "1: last"]
    assert done.returncode == 2
    assert "task 1 exited with exit code 2" in done.stderr


@embedded_only("a pod has a file system of its own: tests/cluster/test_real_nodes.py has it")
def test_a_file_goes_to_the_job(cluster: Cluster, tmp_path: Path) -> None:
    (cluster.work / "source").write_bytes(os.urandom(3_000_000))
    (cluster.work / "source").chmod(0o640)
    target = cluster.work / "target"
    script = f"sbcast -s 1m source {target}; echo $?; sbcast source {target}; echo $?; sbcast -f source {target}; echo $?"
    job = cluster.submit(f"-N 2 -o sent.out --wrap '{script}'")
    cluster.wait_end(job)
    assert [line for line in (cluster.work / "sent.out").read_text().split() if line.isdigit()] == ["0", "17", "0"]
    assert target.read_bytes() == (cluster.work / "source").read_bytes()
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_file_is_written_as_the_user(cluster: Cluster, other_user: str) -> None:
    (cluster.work / "theirs").write_text("x")
    (cluster.work / "theirs").chmod(0o644)
    script = "sbcast theirs written; echo $?; sbcast theirs /root/forbidden; echo $?"
    job = cluster.submit(f"-o sent-theirs.out --wrap '{script}'", user=other_user)
    cluster.wait_end(job)
    assert (cluster.work / "written").owner() == other_user
    assert not Path("/root/forbidden").exists()
    assert "Permission denied" in (cluster.work / "sent-theirs.out").read_text()


def test_a_suspended_job_stands_still(cluster: Cluster) -> None:
    body = "srun bash -c 'for i in $(seq 200); do echo $i >>ticks; sleep 0.1; done'"
    job = cluster.submit(f'-o /dev/null --wrap "{body.replace("$", chr(92) + "$")}"')
    ticks = cluster.work / "ticks"
    wait_for(lambda: ticks.exists() and len(ticks.read_text().split()) > 3)
    cluster.ok(f"scontrol suspend {job}")
    time.sleep(0.3)
    before, elapsed = ticks.read_text(), cluster.ok(f"squeue -h -j {job} -o '%T %M'")
    time.sleep(1.5)
    assert ticks.read_text() == before
    assert cluster.ok(f"squeue -h -j {job} -o '%T %M'") == elapsed
    assert elapsed.startswith("SUSPENDED")
    cluster.ok(f"scontrol resume {job}")
    wait_for(lambda: ticks.read_text() != before)
    assert cluster.state(job) == "RUNNING"
    cluster.ok(f"scancel {job}")


@embedded_only("process ids there are the container's")
def test_what_runs_and_what_it_uses(cluster: Cluster) -> None:
    job = cluster.submit("-n 2 -o /dev/null --wrap 'srun sleep 60'")
    wait_for(lambda: ".0" in cluster.ok(f"squeue -h -s -j {job} -o %i"))
    rows = wait_for(lambda: (text := cluster.run(f"scontrol listpids {job}.0").stdout).count("\n") == 3 and text)
    processes = [line.split() for line in rows.splitlines()[1:]]
    assert [row[1:] for row in processes] == [[str(job), "0", "0", "0"], [str(job), "0", "1", "1"]]
    assert f"JobId={job} " in cluster.ok(f"scontrol pidinfo {processes[0][0]}")
    assert cluster.ok(f"sstat -n -P -j {job}.0 -o jobid,ntasks,pids") == f"{job}.0|2|{processes[0][0]},{processes[1][0]}"
    assert int(cluster.ok(f"sstat -n -P --noconvert -j {job}.0 -o maxrss")) > 100_000
    cluster.ok(f"scancel {job}")


def start(cluster: Cluster, *words: str) -> subprocess.Popen[str]:
    """A command whose signals are as a shell in the foreground sets them."""

    def default() -> None:
        for number in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(cluster.environment),
        cwd=cluster.work,
        preexec_fn=default,
    )


def take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def read_until(descriptor: int, wanted: bytes, seconds: float = 20) -> bytes:
    text = b""
    end = time.monotonic() + seconds
    while wanted not in text:
        assert time.monotonic() < end, text
        if select.select([descriptor], [], [], 0.2)[0]:
            text += os.read(descriptor, 4096)
    return text


def test_the_end_of_what_sattach_reads_is_that_of_the_tasks(cluster: Cluster) -> None:
    script = cluster.work / "reads.sh"
    script.write_text("#!/bin/bash\nsrun bash -c 'echo ready; read line; echo \"read $line\"' < <(sleep 60)\n")
    job = cluster.submit(f"-o reads-%j.out {script}")
    output = cluster.work / f"reads-{job}.out"
    wait_for(lambda: output.exists() and "ready" in output.read_text())
    done = cluster.run(f"sattach {job}.0", stdin="no end of line")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "read no end of line")
    cluster.ok(f"scancel {job}")
