"""scancel, scontrol and who may use them on what."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from embedded import Cluster, wait_for


def test_cancel_pending_and_running(cluster: Cluster) -> None:
    pending = cluster.submit("--hold --wrap true")
    running = cluster.submit("--wrap 'sleep 300'")
    cluster.wait_state(running, "RUNNING")
    cluster.ok(f"scancel {pending} {running}")
    assert cluster.wait_end(pending) == "CANCELLED"
    assert cluster.wait_end(running) == "CANCELLED"
    wait_for(lambda: "CANCELLED AT" in cluster.output(running))
    assert cluster.ok(f"sacct -X -n -P -j {pending},{running} -o State").splitlines() == [f"CANCELLED by {os.geteuid()}"] * 2


def test_signal_reaches_the_batch_shell(cluster: Cluster) -> None:
    body = "--wrap 'trap \"echo got it; exit 9\" USR1; echo ready; for i in $(seq 100); do sleep 0.1; done'"
    job = cluster.submit(body)
    wait_for(lambda: (cluster.work / f"slurm-{job}.out").exists() and cluster.output(job) == "ready\n")
    cluster.ok(f"scancel --batch -s USR1 {job}")
    assert cluster.wait_end(job) == "FAILED"
    assert cluster.output(job) == "ready\ngot it\n"
    assert cluster.field(job, "ExitCode") == "9:0"


def test_hold_release_update_requeue(cluster: Cluster) -> None:
    job = cluster.submit("--hold -J before --wrap 'sleep 300'")
    assert cluster.field(job, "Reason") == "JobHeldUser"
    cluster.ok(f"scontrol update JobId={job} JobName=after TimeLimit=5 Comment='a comment'")
    assert (cluster.field(job, "JobName"), cluster.field(job, "TimeLimit")) == ("after", "00:05:00")
    cluster.ok(f"scontrol release {job}")
    cluster.wait_state(job, "RUNNING")
    cluster.ok(f"scontrol requeuehold {job}")
    wait_for(lambda: cluster.state(job) == "PENDING")
    assert cluster.field(job, "Restarts") == "1"
    cluster.ok(f"scancel {job}")


def test_drained_node_is_left_alone(own_cluster: Cluster) -> None:
    refused = own_cluster.run("scontrol update NodeName=n1 State=DRAIN")
    assert refused.returncode == 1
    own_cluster.ok("scontrol update NodeName=n1 State=DRAIN Reason='bad fan'")
    assert own_cluster.ok("sinfo -h -n n1 -o %t -p gpu") == "drain"
    assert "bad fan" in own_cluster.ok("sinfo -h -R")
    job = own_cluster.submit("-w n1 --wrap true")
    wait_for(lambda: own_cluster.field(job, "Reason").startswith("ReqNodeNotAvail"))
    own_cluster.ok("scontrol update NodeName=n1 State=RESUME")
    assert own_cluster.wait_end(job) == "COMPLETED"


def test_node_set_down_requeues_its_jobs(own_cluster: Cluster) -> None:
    job = own_cluster.submit("-w n2 --requeue --wrap 'sleep 300'")
    own_cluster.wait_state(job, "RUNNING")
    own_cluster.ok("scontrol update NodeName=n2 State=DOWN Reason=test")
    wait_for(lambda: own_cluster.state(job) == "PENDING")
    assert own_cluster.field(job, "Restarts") == "1"
    own_cluster.ok("scontrol update NodeName=n2 State=RESUME")
    own_cluster.ok(f"scancel {job}")


@pytest.mark.parametrize(
    "command",
    [
        "scancel {job}",
        "scancel -s USR1 {job}",
        "scontrol hold {job}",
        "scontrol release {job}",
        "scontrol requeue {job}",
        "scontrol suspend {job}",
        "scontrol update JobId={job} Comment=mine",
        "scontrol write batch_script {job} -",
        "scontrol update NodeName=n1 State=DRAIN Reason=mine",
        "scontrol update PartitionName=debug State=DOWN",
        "scontrol reconfigure",
        "scontrol shutdown",
    ],
)
def test_another_user_may_not(cluster: Cluster, other_user: str, command: str) -> None:
    job = cluster.submit("-J mine --comment=ours --wrap 'sleep 20'")
    cluster.wait_state(job, "RUNNING")
    done = cluster.run(command.format(job=job), user=other_user)
    assert done.returncode != 0 or "Invalid user id" in done.stderr
    assert "#!/bin/sh" not in done.stdout
    assert cluster.state(job) == "RUNNING"
    assert cluster.field(job, "Comment") == "ours"
    assert cluster.ok("sinfo -h -p debug -n n1 -o %a") == "up"
    cluster.ok(f"scancel {job}")


def test_jobs_run_as_who_submitted_them(cluster: Cluster, other_user: str) -> None:
    job = cluster.submit("--output=who-%j.out --wrap 'id -un; id -gn'", user=other_user)
    assert cluster.wait_end(job) == "COMPLETED"
    output: Path = cluster.work / f"who-{job}.out"
    assert output.read_text().split()[0] == other_user
    assert output.stat().st_uid == pwd.getpwnam(other_user).pw_uid
    cluster.submit("--hold -J theirs --wrap true", user=other_user)
    cluster.ok(f"scancel -n theirs -u {other_user}")
    assert cluster.ok("squeue -h -n theirs") == ""
