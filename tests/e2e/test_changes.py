"""What administrators change of a running cluster acts, and outlasts the controller."""

from __future__ import annotations

import pytest
from embedded import Cluster, wait_for


def test_a_partition_is_made_used_and_outlasts_the_controller(own_cluster: Cluster) -> None:
    own_cluster.ok("scontrol create partition=made nodes=n1,n2 maxtime=10")
    own_cluster.ok("scontrol update partition=made nodes-=n1")
    own_cluster.ok("scontrol delete partition=gpu")
    own_cluster.down()
    own_cluster.up()
    assert own_cluster.ok("sinfo -h -o '%R %N'").split() == ["debug", "n[1-8]", "cpu", "n[5-8]", "made", "n2"]
    job = own_cluster.submit("-p made --wrap true")
    assert own_cluster.wait_end(job) == "COMPLETED"
    own_cluster.ok("scontrol reconfigure")
    assert own_cluster.ok("sinfo -h -o %R").split() == ["debug", "gpu", "cpu"]


@pytest.mark.parametrize("step", [".0", ""])
def test_a_step_ends_at_its_new_limit(cluster: Cluster, step: str) -> None:
    job = cluster.submit("--wrap 'srun -t 5 sleep 300; echo $?'")
    wait_for(lambda: "RUNNING" in cluster.run(f"scontrol show step {job}.0").stdout)
    cluster.ok(f"scontrol update stepid={job}{step} timelimit=0")
    cluster.wait_end(job, 60)
    assert "DUE TO TIME LIMIT" in cluster.output(job)
    assert cluster.ok(f"sacct -n -P -j {job}.0 -o State").strip() == "TIMEOUT"


def test_a_job_gives_a_node_back_and_goes_on(cluster: Cluster) -> None:
    body = (
        "srun -N 2 -n 2 bash -c 'touch on.$SLURM_PROCID; [ $SLURM_PROCID = 0 ] || sleep 300'\n"
        "unset SLURM_NNODES SLURM_JOB_NUM_NODES SLURM_NTASKS SLURM_NPROCS\n"
        "until [ -e smaller ]; do sleep 0.2; done; srun -N 1 -n 1 bash -c 'echo still on $SLURMD_NODENAME'\n"
    )
    job = int(cluster.ok("sbatch --parsable -N 2 -n 2 -w n[5-6]", stdin=f"#!/bin/bash\n{body}"))
    wait_for(lambda: (cluster.work / "on.0").exists() and (cluster.work / "on.1").exists())
    cluster.ok(f"scontrol update jobid={job} numnodes=1")
    wait_for(lambda: cluster.ok("sinfo -h -n n6 -p cpu -o %T") == "idle", seconds=60)
    assert cluster.ok(f"squeue -h -j {job} -o '%T %N'") == "RUNNING n5"
    (cluster.work / "smaller").touch()
    assert cluster.wait_end(job, 60) == "COMPLETED"
    assert cluster.output(job).endswith("still on n5\n")
    assert cluster.ok(f"sacct -n -X -P -D -j {job} -o State,NNodes").split() == ["RESIZING|2", "COMPLETED|1"]
