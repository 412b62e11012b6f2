"""Jobs in real pods: what is different from the embedded cluster, and what the pod's first process has to get right.

That the rest is the same, ``SLURMK_E2E=kubernetes pytest tests/e2e`` shows.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "e2e"))

import on_kubernetes
from embedded import Cluster, end_cluster, make_cluster, wait_for

USER = "nobody"

NO_PYTHON = """
partitions:
  cpu:
    pods:
      volumes:
      - name: nothing
        hostPath: {path: /dev/null}
        mounts:
        - {mountPath: /usr/bin/python3.11}
"""
"""In this partition's pods the image's Python is gone."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: jobs of several users")


@pytest.fixture(scope="module")
def cluster(real_nodes: list[str]) -> Iterator[Cluster]:
    made = make_cluster(kubernetes={"more": NO_PYTHON})
    yield made
    end_cluster(made)


@pytest.fixture(scope="module")
def restricted(real_nodes: list[str]) -> Iterator[Cluster]:
    """A cluster whose jobs must pass the strictest Pod Security level; they have no volumes of the site's."""
    made = make_cluster(kubernetes={"level": "restricted"})
    yield made
    end_cluster(made)


def namespace(cluster: Cluster) -> str:
    return on_kubernetes.namespace_of(cluster.directory.parent)


def pod_of(cluster: Cluster, job: int) -> dict[str, object]:
    """The one pod of a job, as kubectl shows it."""
    shown = on_kubernetes.kubectl("get", "pods", "-n", namespace(cluster), "-l", f"slurmk.org/job-id={job}", "-o", "json")
    (pod,) = json.loads(shown)["items"]
    return dict(pod)


def batch(cluster: Cluster, options: str, body: str, user: str | None = None) -> tuple[str, list[str]]:
    """Run a script; its final state and its output's lines."""
    job = int(cluster.ok(f"sbatch --parsable {options}", stdin=f"#!/bin/bash\n{body}\n", user=user))
    state = cluster.wait_end(job, seconds=60)
    return state, cluster.output(job).splitlines()


def test_the_user_in_the_pod(cluster: Cluster) -> None:
    entry = pwd.getpwnam(USER)
    body = "id -un; id -u; id -gn; hostname; echo $SLURMD_NODENAME; pwd; echo ~; touch made"
    state, lines = batch(cluster, "-w n3", body, user=USER)
    assert state == "COMPLETED"
    home = cluster.ok("echo $HOME", user=USER)
    assert lines == [USER, str(entry.pw_uid), cluster.ok("id -gn", user=USER), "n3", "n3", str(cluster.work), home]
    assert (cluster.work / "made").stat().st_uid == entry.pw_uid


def test_names_of_nodes_resolve_among_the_pods(cluster: Cluster) -> None:
    body = "srun -l bash -c 'for n in n1 n2; do getent hosts $n | tr -s \" \"; done' | sort -u -k 2"
    state, lines = batch(cluster, "-w n[1-2] -n 2", body)
    assert state == "COMPLETED"
    found = {line.split()[2]: line.split()[1] for line in lines}
    assert set(found) == {"n1", "n2"}
    assert len(set(found.values())) == 2


def test_no_secret_is_in_the_environment_or_on_a_command_line(cluster: Cluster) -> None:
    body = (
        "read -r _ _ secret </slurmk/run/credential; [ ${#secret} = 64 ] || echo odd\n"
        "commands() { cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; }\n"
        'grep -cFf <(echo "$secret") <(srun env) <(env) <(tr "\\0" "\\n" </proc/1/environ) <(commands)\n'
        "stepd=$(grep -o '\"secret\": \"[0-9a-f]*' /slurmk/job/place | grep -o '[0-9a-f]*$')\n"
        'grep -cFf <(echo "$stepd") <(srun env) <(env) <(tr "\\0" "\\n" </proc/1/environ)'
    )
    _, lines = batch(cluster, "-n 1", body, user=USER)
    assert len(lines) == 7
    assert all(line.endswith(":0") for line in lines), lines


def test_commands_in_a_job(cluster: Cluster) -> None:
    mine = cluster.submit("--hold -J roots --wrap true")
    body = f"""
squeue -h -j $SLURM_JOB_ID -o '%u %T %N'
nested=$(sbatch --parsable -o nested.out --wrap 'echo nested on $SLURMD_NODENAME of {USER}')
scancel {mine}; echo $?
scontrol hold {mine}; echo $?
sinfo -h -o %P
scontrol show job $SLURM_JOB_ID | grep -o UserId=[a-z]*
srun sacct -n -X -j $SLURM_JOB_ID -o User | tr -d ' '
until [ "$(sacct -n -X -P -j $nested -o State)" = COMPLETED ]; do sleep 0.3; done
cat nested.out
env -i /slurmk/run/bin/squeue -h -j $SLURM_JOB_ID -o %j
scancel -s USR2 $SLURM_JOB_ID
"""
    state, lines = batch(cluster, "-w n5 -p debug -J within", body, user=USER)
    assert state == "COMPLETED", lines
    nested = lines.pop(11)
    assert re.fullmatch(rf"nested on n\d of {USER}", nested)
    assert lines == [
        f"{USER} RUNNING n5",
        f"scancel: error: Kill job error on job id {mine}: Access/permission denied",
        "210",
        f"Invalid user id for job {mine}",
        "slurm_suspend error:Invalid user id",
        "1",
        "debug*",
        "gpu",
        "cpu",
        f"UserId={USER}",
        USER,
        "within",
    ]
    assert cluster.state(mine) == "PENDING"
    cluster.ok(f"scancel {mine}")


def test_files_and_listeners_of_several_pods(cluster: Cluster) -> None:
    """Each pod has a file system of its own."""
    body = "echo payload >/tmp/p; sbcast /tmp/p /tmp/q; srun -l cat /tmp/q"
    state, lines = batch(cluster, "-N 2 -n 2", body, user=USER)
    assert (state, sorted(lines)) == ("COMPLETED", ["0: payload", "1: payload"])
    job = cluster.submit("-N 2 -n 2 --wrap 'srun -l sh -c \"sleep 4; hostname\"'")
    wait_for(lambda: cluster.ok(f"squeue -h -s -j {job} -o %i | grep -c '\\.0$' || true") == "1")
    first, second = cluster.ok(f"scontrol show hostnames {cluster.field(job, 'NodeList')}").split()
    attached = cluster.ok(f"sattach -l {job}.0")
    assert sorted(attached.splitlines()) == [f"0: {first}", f"1: {second}"]


def test_a_job_cancels_itself(cluster: Cluster) -> None:
    job = cluster.submit("--wrap 'scancel $SLURM_JOB_ID; sleep 60'", user=USER)
    assert cluster.wait_end(job) == "CANCELLED"
    assert "CANCELLED AT" in cluster.output(job)


def test_the_jobs_time_is_the_same_inside_and_outside(cluster: Cluster) -> None:
    body = "echo $SLURM_JOB_ID; date +%s; srun -n 1 sh -c 'echo $SLURM_JOB_START_TIME; echo $SLURM_JOB_END_TIME'"
    state, lines = batch(cluster, "-n 1 -t 3", body)
    job, began, start, end = map(int, lines)
    assert (state, end) == ("COMPLETED", start + 180)
    assert start <= began <= start + 10
    said = cluster.ok(f"sacct -X -n -P -j {job} -o Start")
    assert datetime.fromisoformat(said).timestamp() == start


def test_too_much_memory(cluster: Cluster) -> None:
    hog = "python3 -c 'bytearray(400 << 20)'"
    state, lines = batch(cluster, "-n 1 --mem=150", f"srun {hog}; echo $?; srun true; echo $?")
    assert (state, lines[-1]) == ("COMPLETED", "0")
    assert any(line.endswith("task 0: Out Of Memory") for line in lines)
    job = cluster.submit(f'--mem=150 --wrap "{hog}"')
    assert cluster.wait_end(job) == "OUT_OF_MEMORY"
    assert f"oom_kill event in StepId={job}.batch" in cluster.output(job)


def test_a_pod_that_somebody_deletes(cluster: Cluster) -> None:
    body = "trap 'echo asked to go; exit 0' TERM; echo on; while :; do sleep 0.1; done"
    job = cluster.submit(f'--no-requeue --wrap "{body}"')
    wait_for(lambda: (cluster.work / f"slurm-{job}.out").exists() and "on" in cluster.output(job))
    on_kubernetes.kubectl("delete", "pod", "-n", namespace(cluster), "-l", f"slurmk.org/job-id={job}", "--wait=false")
    assert cluster.wait_end(job) == "PREEMPTED"
    assert cluster.output(job).splitlines()[-1] == "asked to go"


@pytest.mark.parametrize(("option", "restarts"), [("--no-requeue", "0"), ("--requeue", "1")])
def test_a_stepd_that_is_killed(cluster: Cluster, option: str, restarts: str) -> None:
    mark = f"{os.getpid()}{restarts}.5"
    job = cluster.submit(f"{option} --wrap 'sleep {mark}'")

    def sleeping() -> bool:
        return subprocess.run(["pgrep", "-f", f"^sleep {mark}"], capture_output=True, check=False).returncode == 0

    wait_for(sleeping)
    containers = pod_of(cluster, job)["status"]["containerStatuses"]  # type: ignore[index]
    identity = containers[0]["containerID"].rpartition("/")[2]
    (stepd,) = [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if _text(process / "comm") == f"stepd {job}\n" and identity in _text(process / "cgroup")
    ]
    os.kill(stepd, signal.SIGKILL)
    wait_for(lambda: cluster.state(job) in ("NODE_FAIL", "FAILED") or cluster.field(job, "Restarts") == "1")
    assert cluster.field(job, "Restarts") in (restarts, "0")
    cluster.run(f"scancel {job}")
    wait_for(lambda: not sleeping())


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def test_an_image_without_python(cluster: Cluster) -> None:
    job = cluster.submit("-p cpu --wrap true", user=USER)
    words = "the image has no Python 3.8 or newer (python3), without which it cannot run jobs"
    wait_for(lambda: (cluster.work / f"slurm-{job}.out").exists(), 60)
    assert cluster.output(job) == f"slurmk: error: {words}\n"
    wait_for(lambda: words in cluster.ok(f"scontrol show job {job}"), 30, lambda: cluster.ok(f"scontrol show job {job}"))
    assert (cluster.state(job), cluster.field(job, "Priority")) == ("PENDING", "0"), "held: it would fail again"
    cluster.run(f"scancel {job}")


def test_gpus_are_counted_by_kubernetes_and_numbered_from_zero(cluster: Cluster) -> None:
    jobs = [cluster.submit("-w n1 --gres=gpu:a100:2 --wrap 'echo $CUDA_VISIBLE_DEVICES; sleep 2'") for _ in range(2)]
    for job in jobs:
        assert cluster.wait_end(job) == "COMPLETED"
        assert cluster.output(job) == "0,1\n"


def test_pods_pass_the_restricted_level(restricted: Cluster) -> None:
    body = "--chdir=/tmp --wrap 'test $(id -un) = nobody && srun sh -c \"exit $((5 + SLURM_PROCID))\"; exit $?'"
    job = restricted.submit(f"-N 2 -n 2 {body}", user=USER)
    assert restricted.wait_end(job) == "FAILED"
    assert restricted.field(job, "ExitCode") == "5:0"


def test_nothing_is_left_of_jobs_that_are_over(cluster: Cluster) -> None:
    cluster.ok("scancel -u root; scancel -u nobody")
    wait_for(
        lambda: not on_kubernetes.remains(cluster.directory.parent),
        60,
        lambda: str(on_kubernetes.remains(cluster.directory.parent)),
    )
