"""A batch script on several nodes, from sbatch to sacct."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from embedded import Cluster, wait_for
from on_kubernetes import embedded_only

SCRIPT = """#!/bin/bash
#SBATCH --job-name=main
#SBATCH -N 2 --ntasks-per-node=2
#SBATCH --time=5
#SBATCH --output=main-%j.out
echo "batch on $SLURMD_NODENAME of $SLURM_JOB_NODELIST: $*"
srun --label bash -c 'echo "$SLURM_PROCID/$SLURM_NTASKS on $SLURMD_NODENAME local $SLURM_LOCALID node $SLURM_NODEID"'
exit 3
"""


def test_script_of_two_nodes_and_two_tasks_each(cluster: Cluster) -> None:
    (cluster.work / "main.sh").write_text(SCRIPT)
    said = cluster.ok("sbatch main.sh one 'two words'")
    job = int(said.rsplit(" ", 1)[1])
    assert said == f"Submitted batch job {job}"
    assert cluster.wait_end(job) == "FAILED"
    lines = cluster.output(job, "main-{}.out").splitlines()
    nodes = cluster.ok(f"sacct -X -n -P -j {job} -o NodeList")
    first, second = cluster.ok(f"scontrol show hostnames {nodes}").splitlines()
    assert lines[0] == f"batch on {first} of {nodes}: one two words"
    assert sorted(lines[1:]) == [
        f"0: 0/4 on {first} local 0 node 0",
        f"1: 1/4 on {first} local 1 node 0",
        f"2: 2/4 on {second} local 0 node 1",
        f"3: 3/4 on {second} local 1 node 1",
    ]
    rows = cluster.ok(f"sacct -n -P -j {job} -o JobID,JobName,State,ExitCode,NNodes,NTasks,AllocCPUS").splitlines()
    assert rows == [
        f"{job}|main|FAILED|3:0|2||4",
        f"{job}.batch|batch|FAILED|3:0|1|1|2",
        f"{job}.0|bash|COMPLETED|0:0|2|4|4",
    ]


def test_script_from_standard_input_and_wrap(cluster: Cluster) -> None:
    job = int(cluster.ok("sbatch --parsable", stdin="#!/bin/sh\n#SBATCH -J typed\necho from stdin\n"))
    wrapped = cluster.submit("--wrap 'echo \"wrapped\" $SLURM_JOB_NAME'")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.wait_end(wrapped) == "COMPLETED"
    assert cluster.output(job) == "from stdin\n"
    assert cluster.output(wrapped) == "wrapped wrap\n"
    assert cluster.field(job, "JobName") == "typed"


def test_array_has_one_row_while_it_waits_and_one_for_each_element_after(cluster: Cluster) -> None:
    job = cluster.submit("--array=1-5:2%1 --hold --output=array-%A-%a.out --wrap 'echo element $SLURM_ARRAY_TASK_ID'")
    assert cluster.ok(f"squeue -h -j {job} -o '%i %t %r'") == f"{job}_[1,3,5%1] PD JobHeldUser"
    cluster.ok(f"scontrol release {job}")
    wait_for(lambda: cluster.run(f"sacct -n -X -P -j {job} -o State").stdout.split() == ["COMPLETED"] * 3)
    assert cluster.ok(f"sacct -n -X -P -j {job} -o JobID").splitlines() == [f"{job}_1", f"{job}_3", f"{job}_5"]
    for element in (1, 3, 5):
        assert (cluster.work / f"array-{job}-{element}.out").read_text() == f"element {element}\n"


def test_dependencies_in_order(cluster: Cluster) -> None:
    good = cluster.submit("--wrap 'sleep 1'")
    bad = cluster.submit("--wrap 'sleep 1; exit 1'")
    after_good = cluster.submit(f"--dependency=afterok:{good} --wrap true")
    after_bad = cluster.submit(f"--dependency=afterok:{bad} --wrap true")
    anyway = cluster.submit(f"--dependency=afterany:{good}:{bad} --wrap true")
    assert cluster.ok(f"squeue -h -j {after_good} -o %r") == "Dependency"
    assert cluster.wait_end(after_good) == "COMPLETED"
    assert cluster.wait_end(anyway) == "COMPLETED"
    wait_for(lambda: cluster.field(after_bad, "Reason") == "DependencyNeverSatisfied")
    cluster.ok(f"scancel {after_bad}")


def test_wait_gives_the_exit_code_of_the_job(cluster: Cluster) -> None:
    assert cluster.run("sbatch --wait --wrap 'exit 7'").returncode == 7
    assert cluster.run("sbatch -W --wrap true").returncode == 0


def test_time_limit_ends_the_job(cluster: Cluster) -> None:
    job = cluster.submit("--time=1 --wrap 'exec sleep 300'")
    cluster.wait_state(job, "RUNNING")
    done = cluster.run(f"scontrol update JobId={job} TimeLimit=0:01")
    assert done.returncode == 0, done.stderr
    assert cluster.wait_end(job, seconds=100) == "TIMEOUT"
    assert "DUE TO TIME LIMIT" in cluster.output(job)


def test_every_pending_job_is_told_when_it_starts(own_cluster: Cluster) -> None:
    running = own_cluster.submit("--exclusive -N 8 -t 10 --wrap 'sleep 60'")
    own_cluster.wait_state(running, "RUNNING")
    jobs = [
        own_cluster.submit(f"--exclusive -N {nodes} -t {minutes} --wrap true") for nodes, minutes in ((8, 5), (2, 20), (8, 30))
    ]
    wait_for(lambda: "N/A" not in own_cluster.ok("squeue -h --start -o %S"))
    starts = dict(line.split() for line in own_cluster.ok("squeue -h --start -o '%i %S'").splitlines())
    assert set(starts) == {str(job) for job in jobs}
    assert starts[str(jobs[0])] < starts[str(jobs[2])]


def test_files_are_the_users_and_follow_the_patterns(cluster: Cluster) -> None:
    (cluster.work / "out").mkdir(exist_ok=True)
    job = cluster.submit("-J named --output=out/%x-%u-%j.o --error=out/%x.e --wrap 'umask; echo err >&2'")
    assert cluster.wait_end(job) == "COMPLETED"
    user = cluster.ok("id -un")
    output: Path = cluster.work / f"out/named-{user}-{job}.o"
    assert output.read_text().strip() == cluster.ok("umask")
    assert (cluster.work / "out/named.e").read_text() == "err\n"
    assert stat.S_IMODE(output.stat().st_mode) == 0o644


def test_missing_output_folder_leaves_the_controller_well(cluster: Cluster) -> None:
    job = cluster.submit("--output=nowhere/%j --wrap true")
    assert cluster.wait_end(job) in ("COMPLETED", "FAILED")
    assert cluster.ok("scontrol ping").startswith("Slurmctld(primary)")


def test_job_larger_than_the_cluster_waits_with_the_reason(own_cluster: Cluster) -> None:
    nodes = own_cluster.submit("-N 9 --wrap true")
    tasks = own_cluster.submit("-n 1000 --wrap true")
    wait_for(lambda: own_cluster.field(nodes, "Reason") == "PartitionNodeLimit")
    wait_for(lambda: own_cluster.field(tasks, "Reason") == "PartitionConfig")


@embedded_only("a container numbers its own GPUs from 0, whichever they are")
def test_gpus_are_given_by_number_and_never_twice(cluster: Cluster) -> None:
    script = "--wrap 'echo $CUDA_VISIBLE_DEVICES $SLURM_GPUS_ON_NODE; sleep 1'"
    jobs = [cluster.submit(f"-w n1 --gres=gpu:a100:2 {script}") for _ in range(2)]
    for job in jobs:
        assert cluster.wait_end(job) == "COMPLETED"
    first, second = (cluster.output(job).split() for job in jobs)
    assert first[1] == second[1] == "2"
    assert set(first[0].split(",")).isdisjoint(second[0].split(","))


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        ("-C cpu", {"n5", "n6", "n7", "n8"}),
        ("-w n3", {"n3"}),
        ("-p gpu -x n[1-3]", {"n4"}),
        ("--gpus=1", {"n1", "n2", "n3", "n4"}),
    ],
)
def test_placement_follows_the_request(cluster: Cluster, options: str, nodes: set[str]) -> None:
    job = cluster.submit(f"{options} --wrap 'echo $SLURMD_NODENAME'")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.output(job).strip() in nodes
