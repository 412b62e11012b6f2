"""What jobs and their tasks see: environment variables, by kind of job. Every job writes files that are compared at the end."""

from __future__ import annotations

from sides import Case

ENVIRONMENT = "env | grep -E '^(SLURM|CUDA|ROCR|GPU|ZE_|HYDRA|I_MPI|OMPI|PRTE|ENVIRONMENT|TMPDIR)' | grep -v ^SLURMK_ | sort"

SCRIPT = f"""cat >show.sh <<'END'
#!/bin/bash
name=$1; shift
{ENVIRONMENT} >$name.batch
srun "$@" bash -c '{ENVIRONMENT.replace("'", '"')} >'$name'.task$SLURM_PROCID'
echo done >$name.done
END"""

JOBS: dict[str, tuple[str, str]] = {
    "plain": ("-w n1", ""),
    "wide": ("-N 2 -n 4 --ntasks-per-node=2 -w n[1-2]", ""),
    "element": ("-a 3 -w n1", ""),
    "gpu": ("--gres=gpu:1 -w n4", ""),
    "gpus": ("--gpus=2 -n 2 --gpus-per-task=1 -w n3", ""),
    "memory": ("--mem-per-cpu=200 -c 2 -w n5", ""),
    "whole": ("--exclusive -w n6", ""),
    "node-memory": ("--mem=300 -J named --comment hello -t 5 -w n7", "-n 1 -J inner"),
    "part": ("-N 2 -n 6 -w n[7-8] -p cpu", "-N 1 -n 2 -c 2"),
    "bare": ("--export=NONE -w n1", ""),
    "some": ("--export=A=1,SHELL --requeue --nice=3 -w n1", "--export=B=2"),
}
"""Name -> options of sbatch, options of its srun."""

# With SLURM_CPUS_PER_TASK but no number of tasks in its environment the reference's srun says block for its one task.

NO_PATH = ("bare", "some")
"""Without the submission's PATH the reference's srun, which is in no usual place, is not found."""

SETUP = (
    SCRIPT,
    *(f"sbatch -A phys {batch} -o {name}.out show.sh {name} {task}" for name, (batch, task) in JOBS.items()),
)
UNTIL = f"[ $(ls *.done | wc -l) = {len(JOBS)} ]"

CHANGING = (
    r"(?m)^SLURM_(CONF|JOB_START_TIME|JOB_END_TIME|TASK_PID|LAUNCH_NODE_IPADDR|SRUN_COMM_PORT|STEP_LAUNCHER_PORT)=.*$",
    r"(?m)^TMPDIR=.*$",
)

CASES = [
    Case(
        f"cat {name}.batch" if name in NO_PATH else f"cat {name}.out; head -n 1000 {name}.batch {name}.task*",
        setup=SETUP,
        until=UNTIL,
        ignore=(*CHANGING, r"(?m)^SLURM_DISTRIBUTION=.*$") if name == "memory" else CHANGING,
    )
    for name in JOBS
]
