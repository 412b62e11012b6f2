"""Who waits for a job when the controller dies waits on, and a job that nobody waits for any more does not start."""

from __future__ import annotations

import os
import signal
import subprocess

from embedded import Cluster, wait_for
from on_kubernetes import embedded_only


def controller(cluster: Cluster) -> int:
    return int(cluster.ok(f"slurmk status --dir {cluster.directory} | grep -oE 'pid [0-9]+' | grep -oE '[0-9]+'"))


def start(cluster: Cluster, command: str) -> subprocess.Popen[str]:
    """A client whose standard error is a file that is named as its job is."""
    name = command.split("-J ")[1].split()[0]
    return subprocess.Popen(
        ["bash", "-c", f"exec {command} 2> {name}.err"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(cluster.environment),
        cwd=cluster.work,
    )


def job_called(cluster: Cluster, name: str) -> int:
    return int(wait_for(lambda: cluster.ok(f"squeue -h -n {name} -o %i")))


@embedded_only("the controller there is a pod's process")
def test_clients_in_the_queue_outlive_the_controller(own_cluster: Cluster) -> None:
    cluster = own_cluster
    clients = {
        "allocated": start(cluster, "salloc -J allocated --hold bash -c 'echo got $SLURM_JOB_ID; exit 3'"),
        "ran": start(cluster, "srun -J ran --hold bash -c 'echo ran $SLURM_JOB_ID; exit 4'"),
        "waited": start(cluster, "sbatch -J waited --wait --hold --wrap 'exit 5'"),
    }
    abandoned = start(cluster, "salloc -J abandoned --hold true")
    jobs = {name: job_called(cluster, name) for name in (*clients, "abandoned")}
    for name in ("allocated", "ran"):
        wait_for(lambda name=name: "queued and waiting" in (cluster.work / f"{name}.err").read_text())  # type: ignore[misc]
    os.kill(controller(cluster), signal.SIGKILL)
    abandoned.kill()
    abandoned.communicate()
    cluster.up()
    cluster.ok(f"slurmk down --dir {cluster.directory}")  # an orderly end is nothing else to them
    cluster.up()
    wait_for(lambda: cluster.state(jobs["abandoned"]) == "CANCELLED")
    assert [cluster.state(jobs[name]) for name in clients] == ["PENDING"] * 3
    cluster.ok("scontrol release " + ",".join(str(jobs[name]) for name in clients))
    said = {name: (client.communicate(timeout=30)[0], client.returncode) for name, client in clients.items()}
    assert said == {
        "allocated": (f"got {jobs['allocated']}\n", 3),
        "ran": (f"ran {jobs['ran']}\n", 4),
        "waited": (f"Submitted batch job {jobs['waited']}\n", 5),
    }
    assert (cluster.work / "waited.err").read_text() == ""
    for name in ("allocated", "ran"):
        text = (cluster.work / f"{name}.err").read_text()
        assert text.count("queued and waiting for resources") == text.count("has been allocated resources") == 1
