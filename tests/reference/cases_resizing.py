"""Jobs that give nodes back while they run: what is taken and refused, and what is shown afterwards."""

from __future__ import annotations

from sides import Case

RUNS = '[ "$(squeue -h -j {0} -o %t)" = R ]'
BOTH_RUN = '[ "$(squeue -h -j {0} -o %t | sort -u)" = R ]'
WIDE = ("sbatch -J wide -t 5 -N4 -n8 -w n[1-4] --wrap 'sleep 300'",)
NAMED = ("sbatch -J named -t 5 -N4 -w n[1-4] --mem=200 --wrap 'sleep 300'",)
PER_NODE = ("sbatch -J each -t 5 -w n[1-3] --ntasks-per-node=2 --gres=gpu:1 --wrap 'sleep 300'",)
ELEMENTS = ("sbatch -J elements -t 5 -a 1-2 -N2 -w n[1-2] --wrap 'sleep 300'",)

_REFUSED = ("numnodes=5", "numnodes=0", "numnodes=2-3", "numtasks=2", "numcpus=2", "nodelist=n2,n3", "nodelist=n9", "nodelist=")
_SHOWN = r"scontrol show job -d {0} | grep -E 'Node(List|s)=| Num|TRES=|BatchHost|MinCPUs|Resize'"
_SET = "SLURM_NNODES=3 SLURM_JOB_NODELIST=x SLURM_JOB_CPUS_PER_NODE=x SLURM_TASKS_PER_NODE=x"
_FILES = f"SLURM_JOBID={{0}} {_SET} scontrol update jobid={{0}} numnodes=2; cat slurm_job_{{0}}_resize.*"

CASES = [
    *(Case(f"scontrol update jobid={{0}} {field}", setup=WIDE, until=RUNS, title=f"wide: {field}") for field in _REFUSED),
    Case("scontrol update jobid={0} numnodes=4", setup=WIDE, until=RUNS, title="as many as it has"),
    Case("scontrol update jobid={0} reqnodes=+3 comment=smaller", setup=WIDE, until=RUNS),
    Case(_SHOWN, setup=WIDE, until=RUNS, title="after numnodes"),
    Case("squeue -h -j {0} -O NumNodes,NumCPUs,NumTasks,NodeList,tres-alloc:40,Comment", setup=WIDE, until=RUNS),
    Case(_FILES, setup=WIDE, until=RUNS, title="the files for shells"),
    Case("SLURM_JOBID={0} scontrol update jobid={0} numnodes=all; ls", setup=WIDE, until=RUNS),
    Case("sinfo -h -n n[1-4] -N -p debug -o '%N %C'", setup=WIDE, until=RUNS),
    Case("scontrol update jobid={0} nodelist=n1,n3 timelimit=4", setup=NAMED, until=RUNS),
    Case(_SHOWN, setup=NAMED, until=RUNS, title="after nodelist"),
    Case("scontrol update jobid={0} numnodes=2", setup=PER_NODE, until=RUNS, title="tasks of each node"),
    Case("scontrol update jobid={0} nodelist=n[1-2]", setup=PER_NODE, until=RUNS),
    Case(_SHOWN, setup=PER_NODE, until=RUNS, title="after nodelist, tasks of each node"),
    Case("scontrol update jobid={0} numnodes=1", setup=ELEMENTS, until=BOTH_RUN, title="an array"),
    Case("scontrol update jobid={0}_1 numnodes=1; squeue -h -j {0}_1 -o '%D %N'", setup=ELEMENTS, until=BOTH_RUN),
]
