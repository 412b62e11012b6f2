"""srun inside a job and on its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time

import pytest
from embedded import Cluster, wait_for


def batch(cluster: Cluster, options: str, body: str) -> tuple[str, list[str]]:
    """Run a script; its final state and its sorted output lines."""
    job = int(cluster.ok(f"sbatch --parsable {options}", stdin=f"#!/bin/bash\n{body}\n"))
    state = cluster.wait_end(job)
    return state, sorted(cluster.output(job).splitlines())


def test_exit_code_of_srun_is_the_highest_of_its_tasks(cluster: Cluster) -> None:
    state, lines = batch(cluster, "-n 3", "srun bash -c 'exit $SLURM_PROCID'; echo code $?")
    assert state == "COMPLETED"
    assert "code 2" in lines
    assert any(re.fullmatch(r"srun: error: n\d: task 2: Exited with exit code 2", line) for line in lines)


def test_a_task_that_dies_of_a_signal(cluster: Cluster) -> None:
    _, lines = batch(cluster, "-n 1", "srun bash -c 'kill -9 $$'; echo code $?")
    assert "code 137" in lines
    assert any(re.fullmatch(r"srun: error: n\d: task 0: Killed", line) for line in lines)


def test_steps_side_by_side_share_the_job(cluster: Cluster) -> None:
    body = "for i in 1 2 3 4; do srun --exact -n 1 -c 1 sleep 1 & done; t=$SECONDS; wait; echo took $((SECONDS - t))"
    state, lines = batch(cluster, "-n 4", body)
    assert state == "COMPLETED"
    assert lines[-1] in ("took 1", "took 2", "took 3")


def test_files_of_tasks(cluster: Cluster) -> None:
    state, _ = batch(cluster, "-n 2", "srun -o part-%j-%t.txt bash -c 'echo I am $SLURM_PROCID'")
    assert state == "COMPLETED"
    parts = sorted(cluster.work.glob("part-*-[01].txt"))
    assert [part.read_text() for part in parts[-2:]] == ["I am 0\n", "I am 1\n"]


def test_srun_on_its_own_makes_and_ends_an_allocation(cluster: Cluster) -> None:
    done = cluster.run("srun -N 2 -n 2 --label bash -c 'echo $SLURMD_NODENAME; cat'", stdin="fed to all\n")
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert sum(line.startswith(("0: n", "1: n")) for line in lines) == 2
    assert "0: fed to all" in lines
    assert "1: fed to all" in lines
    wait_for(lambda: cluster.ok("squeue -h -n bash") == "")


def test_srun_passes_on_its_exit_code_and_its_arguments(cluster: Cluster) -> None:
    assert cluster.run("srun bash -c 'exit 5'").returncode == 5
    assert cluster.ok("""srun printf '%s|' 'a b' '' '$x' "it's" """) == "a b||$x|it's|"


def test_unknown_program(cluster: Cluster) -> None:
    done = cluster.run("srun /no/such/program")
    assert done.returncode == 2
    assert "error: execve(): /no/such/program: No such file or directory" in done.stderr


def test_large_output_arrives_whole(cluster: Cluster) -> None:
    done = cluster.run("srun -n 2 bash -c 'head -c 20000000 /dev/zero | tr \"\\0\" x' | wc -c")
    assert done.stdout.strip() == "40000000"


def test_interrupt_ends_the_step(cluster: Cluster) -> None:
    process = subprocess.Popen(
        ["srun", "-J", "interrupted", "sleep", "300"], env=dict(cluster.environment), cwd=cluster.work, stderr=subprocess.PIPE
    )
    wait_for(lambda: cluster.ok("squeue -h -n interrupted -t R -o %i"))
    wait_for(lambda: cluster.ok("squeue -h -s -n interrupted -o %i 2>/dev/null || squeue -h -s -o %i"))
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    assert process.wait(timeout=30) != 0
    wait_for(lambda: cluster.ok("squeue -h -n interrupted") == "")


def test_double_forked_processes_end_with_their_step(cluster: Cluster) -> None:
    mark = f"{time.time_ns() % 10**8}.25"
    state, _ = batch(cluster, "-n 1", f"srun bash -c '(setsid sleep {mark} &) ; sleep 0.3'")
    assert state == "COMPLETED"
    wait_for(lambda: subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True).returncode == 1)


def test_environment_tells_the_layout(cluster: Cluster) -> None:
    body = "env | grep -E '^SLURM_(NTASKS|NPROCS|NNODES|JOB_NUM_NODES|TASKS_PER_NODE|CPUS_PER_TASK|NTASKS_PER_NODE)='"
    _, lines = batch(cluster, "-p cpu -N 2 --ntasks-per-node=2 -c 2", body)
    assert lines == [
        "SLURM_CPUS_PER_TASK=2",
        "SLURM_JOB_NUM_NODES=2",
        "SLURM_NNODES=2",
        "SLURM_NPROCS=4",
        "SLURM_NTASKS=4",
        "SLURM_NTASKS_PER_NODE=2",
        "SLURM_TASKS_PER_NODE=2(x2)",
    ]


def test_tasks_of_one_node_stay_together_and_have_their_own_gpus(cluster: Cluster) -> None:
    show = "bash -c 'echo $SLURM_PROCID/$SLURM_JOB_NUM_NODES has $CUDA_VISIBLE_DEVICES'"
    job = cluster.submit(
        '-p gpu -n 2 --gres=gpu:2 --wrap "$STEPS"',
        environment={"STEPS": f"srun -l -n2 {show} | sort; srun -n2 --gpus-per-task=1 {show} | sort"},
    )
    assert cluster.wait_end(job) == "COMPLETED"
    together = ["0: 0/1 has 0,1", "1: 1/1 has 0,1"]
    assert cluster.output(job).splitlines() == [*together, "0/1 has 0", "1/1 has 1"]


def test_soft_limits_of_the_submitter_reach_the_job(cluster: Cluster) -> None:
    body = "echo $(ulimit -Sn) $(ulimit -Sc) $(ulimit -Hn); (ulimit -Sn 77; srun bash -c 'ulimit -Sn; env | grep RLIMIT; :')"
    for options, expected in (("", "99 5"), ("--propagate=CORE", "{hard} 5"), ("--propagate=NONE", "{hard} unlimited")):
        command = f"ulimit -Sn 99; ulimit -Sc 5; sbatch --parsable -W -o limits.out {options}"
        cluster.ok(command, stdin=f"#!/bin/bash\n{body}\n")
        lines = (cluster.work / "limits.out").read_text().splitlines()
        *soft, hard = lines[0].split()
        if "unlimited" in expected:  # without limits of its own, the job has the controller's
            soft, expected = soft[:1], expected.split()[0]
        assert " ".join(soft) == expected.format(hard=hard), options
        assert lines[1] == "77"
        assert not any(line.startswith("SLURM_RLIMIT") for line in lines)


def test_verbose_srun_tells_of_allocation_tasks_and_their_ends(cluster: Cluster) -> None:
    done = cluster.run("srun -v -N 2 -n 3 bash -c '[ $SLURM_PROCID = 2 ] && exit 3; exit 0'")
    assert done.returncode == 3
    told = done.stderr.replace("tasks 0-1", "tasks 0,1")
    job = re.search(r"^srun: JobId=(\d+) returned by the controller$", told, re.M)
    assert job
    assert re.search(rf"^srun: jobid {job[1]}: nodes\(2\):`\S+', cpu counts: 2\(x1\),1\(x1\)$", told, re.M), told
    assert re.search(rf"^srun: launching StepId={job[1]}\.0 on host \S+, 2 tasks: \[0-1\]$", told, re.M), told
    assert re.search(r"^srun: Node \S+, 2 tasks started$", told, re.M), told
    assert re.search(
        rf"^srun: Received task exit notification for 1 task of StepId={job[1]}\.0 \(status=0x0300\)\.$", told, re.M
    )
    assert re.search(r"^srun: \S+: tasks? 0.*: Completed$", told, re.M), told


def test_programs_are_sent_to_the_nodes_of_a_step(cluster: Cluster) -> None:
    program = cluster.work / "sent.sh"
    program.write_text("#!/bin/bash\necho $0 $LD_LIBRARY_PATH\n")
    program.chmod(0o755)
    there = cluster.work / "there"
    assert cluster.ok(f"srun --bcast={there} --compress ./sent.sh").split() == [str(there)]
    assert there.read_bytes() == program.read_bytes()
    lines = cluster.ok("srun -p cpu -N2 -n2 --bcast --send-libs ./sent.sh | sort").splitlines()
    for line, node in zip(lines, ("n5", "n6"), strict=True):
        sent, libraries = line.split()
        assert sent.startswith(f"{cluster.work}/slurm_bcast_")
        assert sent.endswith(f".0_{node}")
        assert libraries == f"{sent}_libs"
    failed = cluster.run("srun --bcast=/proc/none/x true")
    assert failed.returncode == 1
    assert "REQUEST_FILE_BCAST(" in failed.stderr
    assert failed.stderr.endswith("Step launch aborted.\n")
    assert cluster.run("srun --bcast no-such-program").stderr == "srun: fatal: Can not execute no-such-program\n"


def test_steps_over_the_components_of_a_het_job(cluster: Cluster) -> None:
    script = """#!/bin/bash
#SBATCH -n2 -N1 -p gpu
#SBATCH hetjob
#SBATCH -n1 -N1 -p cpu -c2
echo $SLURM_HET_SIZE $SLURM_JOB_NODELIST_HET_GROUP_0 $SLURM_CPUS_PER_TASK_HET_GROUP_1
export FIRST=$SLURM_JOB_ID
srun() { command srun -l "$@" | sort; }
srun bash -c 'echo $SLURM_PROCID/$SLURM_NTASKS $SLURM_STEP_ID'
srun --het-group=1 bash -c 'echo $SLURM_PROCID/$SLURM_NTASKS $((SLURM_JOB_ID - FIRST)) $SLURM_STEP_ID'
srun --het-group=0,1 bash -c 'echo $SLURM_PROCID/$SLURM_NTASKS $SLURM_NODEID/$SLURM_NNODES $SLURM_STEP_ID'
srun -n1 --het-group=1 echo later : --het-group=0 -n2 echo first
command srun --het-group=0,1 bash -c 'exit $((SLURM_PROCID + 1))'; echo code $?
command srun --het-group=2 true
exit 0
"""
    job = int(cluster.ok("sbatch --parsable", stdin=script))
    assert cluster.wait_end(job) == "COMPLETED"
    lines = cluster.output(job).splitlines()
    assert lines[0].split()[::2] == ["2", "2"]
    assert lines[1:10] == [
        *("0: 0/2 0", "1: 1/2 0"),
        "0: 0/1 0 1",
        *("0: 0/3 0/2 2", "1: 1/3 0/2 2", "2: 2/3 1/2 2"),
        *("0: first", "1: first", "2: later"),
    ]
    assert "code 3" in lines
    assert lines[-1] == "srun: error: Requested het-group offset exceeds highest hetjob index (2 > 1)"


@pytest.mark.parametrize(("counts", "ranks"), [((1, 2), "0"), ((2, 1), "01")])
def test_a_plain_step_is_of_the_first_component(cluster: Cluster, counts: tuple[int, int], ranks: str) -> None:
    within = "srun -l echo q; SLURM_NTASKS=9 srun -l echo q; srun -l --het-group=0,1 echo both"
    lines = cluster.ok(f"salloc -n{counts[0]} : -n{counts[1]} bash -c '{within}'").splitlines()
    assert sorted(lines) == [
        line for rank in "012" for line in (f"{rank}: both", *([f"{rank}: q"] * 2 if rank in ranks else []))
    ]


def test_each_component_labels_its_own_output(cluster: Cluster) -> None:
    assert sorted(cluster.ok("srun -n1 : -n2 -l echo y").splitlines()) == ["1: y", "2: y", "y"]
    assert sorted(cluster.ok("srun -n1 -l : -n2 echo y").splitlines()) == ["0: y", "1: y", "2: y"]
    cluster.ok("srun -n1 -o first : -n1 -l -o second echo y")
    assert [(cluster.work / name).read_text() for name in ("first", "second")] == ["y\n", "1: y\n"]


@pytest.mark.parametrize("parts", ["true : -n1 bash -c 'sleep 1; echo x'", "bash -c 'sleep 1; echo x' : -n1 true"])
def test_no_component_ends_before_the_others(cluster: Cluster, parts: str) -> None:
    done = cluster.run(f"srun -n1 {parts}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "x\n", "")


def test_tasks_know_where_srun_was_called(cluster: Cluster) -> None:
    show = "bash -c 'echo $SLURM_SUBMIT_DIR $SLURM_SUBMIT_HOST'"
    host = os.uname().nodename.partition(".")[0]
    for command in (f"srun {show}", f"srun -D /tmp {show}", f"salloc {show}", f"salloc srun {show}"):
        assert cluster.ok(command) == f"{cluster.work} {host}", command
    assert cluster.ok(f"SLURM_SUBMIT_DIR=/else srun {show}") == f"{cluster.work} {host}"


def test_programs_that_a_task_has_twice(cluster: Cluster) -> None:
    (cluster.work / "twice").write_text("0 echo a\n0-1 echo b\n")
    done = cluster.run("srun -n2 --multi-prog twice")
    assert (done.returncode, done.stdout) == (1, "")
    assert [line for line in done.stderr.splitlines() if line.startswith("srun: error:")] == [
        "srun: error: Duplicate record for task 0",
        "srun: error: Line 2 of configuration file twice invalid",
    ]


def test_several_programs_in_one_step(cluster: Cluster) -> None:
    show = "bash -c 'echo $0 $SLURM_PROCID/$SLURM_NTASKS $((SLURM_HET_SIZE))'"
    done = cluster.run(f"srun -l -n1 {show[:-1]}; exit 3' : -n2 {show} | sort")
    assert done.stdout.splitlines() == ["0: bash 0/3 2", "1: bash 1/3 2", "2: bash 2/3 2"]
    assert "task 0: Exited with exit code 3" in done.stderr
    inside = "srun -l -N1 -n1 echo a : -N1 -n2 echo b | sort; srun -N2 true : -N1 true"
    done = cluster.run(f"salloc -Q -N2 -n4 bash -c '{inside}'")
    assert done.stdout.splitlines() == ["0: a", "1: b", "2: b"]
    assert done.stderr == (
        "srun: error: Allocation failure of 1 nodes: job size of 2, already allocated 2 nodes to previous components.\n"
    )


def test_a_debugger_is_told_of_tasks_that_wait_for_it(cluster: Cluster) -> None:
    said = cluster.run("timeout 5 srun -N2 -n2 --debugger-test echo went", timeout=30)
    lines = [line for line in said.stderr.splitlines() if line.startswith("srun: task:")]
    assert [line.split(", ")[0] for line in lines] == ["srun: task:0", "srun: task:1"]
    assert all(line.endswith(", executable:echo") for line in lines)
    wait_for(lambda: cluster.ok("squeue -h") == "")


def test_a_waiting_job_is_told_its_start_without_a_command(cluster: Cluster) -> None:
    job = cluster.submit("-H --wrap true")
    said = cluster.run(f"srun --test-only --jobid={job}")
    assert (said.returncode, said.stderr.startswith(f"srun: Job {job} to start at ")) == (0, True)
    cluster.ok(f"scancel {job}")


def test_a_step_that_is_ended_through_its_srun_is_cancelled_by_its_user(cluster: Cluster) -> None:
    script = (
        "for signal in TERM KILL; do rm -f on; srun -n 1 bash -c 'touch on; sleep 60' & srun=$!\n"
        "until [ -e on ]; do sleep 0.1; done; kill -$signal $srun; wait; done\n"
        "srun -n 1 sleep 60 &\nsleep 2"
    )
    job = int(cluster.ok("sbatch --parsable -n 1", stdin=f"#!/bin/bash\n{script}\n"))
    cluster.wait_end(job, 60)
    states = cluster.ok(f"sacct -n -P -j {job} -o JobID,State,ExitCode").splitlines()
    by = os.getuid()
    ended = [f"CANCELLED by {by}|0:9"] * 2 + ["CANCELLED|0:15"]
    assert states[2:] == [f"{job}.{number}|{how}" for number, how in enumerate(ended)]


def test_a_step_of_a_cancelled_job_is_cancelled_by_nobody_of_its_own(cluster: Cluster) -> None:
    job = cluster.submit("-n 1 --wrap 'srun -n 1 bash -c \"touch runs; sleep 60\"'")
    wait_for(lambda: (cluster.work / "runs").exists())
    cluster.ok(f"scancel {job}")
    cluster.wait_end(job, 60)
    states = cluster.ok(f"sacct -n -P -j {job} -o State,ExitCode").splitlines()
    assert states == [f"CANCELLED by {os.getuid()}|0:0", "CANCELLED|0:15", "CANCELLED|0:15"]
