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
