"""Steps that srun leaves behind (--async), and swait."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import on_kubernetes
import pytest
from embedded import SITE, Cluster, end_cluster, make_cluster, wait_for

pytestmark = pytest.mark.skipif(on_kubernetes.CHOSEN, reason="needs PrologFlags=Contain")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("site") / "conf"
    shutil.copytree(SITE, folder)
    with (folder / "slurm.conf").open("a") as file:
        file.write("PrologFlags=Contain\n")
    made = make_cluster("--conf", str(folder))
    yield made
    end_cluster(made)


def test_steps_go_on_without_their_srun(cluster: Cluster) -> None:
    """--async: numbers at once, output in files with labels, one that waits in line, and swait for all of them."""
    body = """
srun --async -N2 -n2 -l -o labels.out bash -c 'echo $SLURM_PROCID of $SLURM_NTASKS'
echo in >input; srun --async --parsable -N1 -n1 --exact --input input -o copied.out cat
srun --async -Q -N1 -n1 --exact false
swait; echo drained $?
ls slurm-$SLURM_JOB_ID.?.out; sort labels.out copied.out
"""
    job = cluster.submit("--stepmgr -N2 -n2 -o left.out", stdin=f"#!/bin/bash\n{body}")
    assert cluster.wait_end(job) == "COMPLETED"
    lines = sorted((cluster.work / "left.out").read_text().splitlines())
    texts = [f"Submitted step {job}.0", f"{job}.1", "drained 0", f"slurm-{job}.2.out", "0: 0 of 2", "1: 1 of 2", "in"]
    assert lines == sorted(texts)
    told = cluster.ok(f"sacct -n -P -j {job} -o jobid,state,exitcode,ntasks").splitlines()
    assert told[-3:] == [f"{job}.0|COMPLETED|0:0|2", f"{job}.1|COMPLETED|0:0|1", f"{job}.2|FAILED|1:0|1"]


def test_a_step_in_line_is_cancelled_and_the_rest_ends_with_the_job(cluster: Cluster) -> None:
    body = "srun --async --exclusive -o /dev/null sleep 60; srun --async --exclusive -o /dev/null sleep 61; sleep 61"
    job = cluster.submit('--stepmgr -n1 -o /dev/null --wrap "$STEPS"', environment={"STEPS": body})
    wait_for(lambda: "State=PENDING" in cluster.run(f"scontrol show step {job}.1").stdout)
    assert cluster.run(f"swait --timeout=1 {job}").returncode == 1
    cluster.ok(f"scancel {job}.1")
    wait_for(lambda: cluster.ok(f"sacct -n -P -j {job}.1 -o state").startswith("CANCELLED"))
    cluster.ok(f"scancel {job}")
    cluster.wait_end(job)
    wait_for(lambda: cluster.ok(f"sacct -n -P -j {job}.0 -o state").startswith("CANCELLED"))


def test_steps_are_not_left_behind_where_nobody_keeps_them(cluster: Cluster) -> None:
    refused = cluster.run("srun --async true")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "srun: error: --async is only valid for steps submitted within an existing job allocation.\n"
    job = cluster.submit("-n1 -o left.out --wrap 'srun --async true; swait'")
    assert cluster.wait_end(job) == "FAILED"
    assert f"Unable to create step for job {job}: Invalid feature specification" in (cluster.work / "left.out").read_text()
    assert "does not have stepmgr enabled" in (cluster.work / "left.out").read_text()
