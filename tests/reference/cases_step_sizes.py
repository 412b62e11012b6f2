"""How steps are sized in a job: what they take over from it, what gives way, what is refused and in which words; and what
their tasks see of the options of srun, in a job and without one."""

from __future__ import annotations

from cases_steps import job
from sides import Case

SEEN = "n=$SLURM_NTASKS t=$SLURM_STEP_TASKS_PER_NODE c=$SLURM_CPUS_ON_NODE g=$CUDA_VISIBLE_DEVICES d=$SLURM_DISTRIBUTION"

SIZES = """
|-n1|-n2|-n3|-n4|-n5|-n8|-n9|-N1|-N2|-N3|-N1 -n1|-N2 -n1|-N1 -n4|-N1 -n5|-N1-2 -n4|-N1-2 -n5|-N2 -n5|-N2-2 -n2
--ntasks-per-node=1|--ntasks-per-node=2|--ntasks-per-node=3|--ntasks-per-node=4|--ntasks-per-node=5|--ntasks-per-node=1 -n2
--ntasks-per-node=1 -N1|--ntasks-per-node=2 -N2|--ntasks-per-node=1 -n4|--ntasks-per-node=1 -n3|--ntasks-per-node=2 -n3
-c1|-c2|-c3|-c4|-c2 -n2|-c4 -n2|-c5 -n1|-c2 -n4|-c2 -n5|-c0|-n0
--exact|--exact -n1|--exact -n1 -c2|--exact -n2 -N2|--whole -n1|--exclusive -n1|--overlap -n1
-O -n5|-O -N1 -n8|-O -N1|-O -n12
-w n2 -n1|-w n2|-w n2 -N1|-w n2 -N1 -n1|-w n1,n2 -n1|-x n1 -n1|-x n2 -N1 -n1|-r1 -n1|-r1 -N1 -n1|-r1 -N1|-r2 -N1 -n1|-r0 -N1 -n1
-r1 -N2 -n2
--mem=100 -n1|--mem=100 -n2|--mem-per-cpu=50|--mem=400 -n1 -N1|--mem-per-cpu=200 -n2
--gres=gpu:1 -n1|--gres=gpu:2 -n1|--gres=gpu:3 -n1|--gres=gpu:0 -n1|--gres=none -n1|--gres=gpu:1 -N2 -n2|--gres=gpu:a100:1 -n1
--gres=gpu:v100:1 -n1|--gres=gpu:x:1 -n1
--gpus=1 -n1|--gpus=2 -n1|--gpus=4 -n4|--gpus=5 -n1|-G1|-G2|-G3 -n4|--gpus-per-node=1 -n2|--gpus-per-node=2
--gpus-per-node=3 -n1
--gpus-per-task=1 -n2|--gpus-per-task=1 -n4|--gpus-per-task=1 -n1|--gpus-per-task=2 -n1|--gpus-per-task=2 -n2
--gpus-per-task=3 -n1
--gpus-per-task=1|--gpus-per-task=1 -n2 --gpu-bind=none|--gpus-per-task=1 -n2 -N1|--ntasks-per-gpu=1 -n2
--cpus-per-gpu=1 --gpus=1 -n1|--cpus-per-gpu=2 --gpus=2 -n2|--mem-per-gpu=100 --gpus=1 -n1
--gpus=2 -n2 -N1 --gpu-bind=single:1|--gres=gpu:2 -n4 -N1 --gpu-bind=single:2|--gres=gpu:2 -n2 -N1 --gpu-bind=map_gpu:1,0
--gres=gpu:2 -n2 -N1 --gpu-bind=mask_gpu:3,1|--gres=gpu:2 -n2 -N1 --gpu-bind=closest|--gres=gpu:2 -n2 -N1 --gpu-bind=per_task:1
--gres=gpu:2 -n2 -N1 --gpu-bind=foo|--gres=gpu:2 -n2 -N1 --gpu-bind=none|--gres=gpu:2 -n2 -N1 --tres-bind=gres/gpu:single:1
--tres-per-task=gres/gpu:1 -n2|--tres-per-task=cpu:2,gres/gpu:1 -n2|--tres-per-task=foo -n1
-m block -n5|-m cyclic -n5|-m plane=3 -n8|-m plane=1 -n4|-m arbitrary -w n2,n1,n2 -n3|-m foo -n2|-m cyclic:cyclic -n4
-m *:block -n4
-m block,NoPack -n4|-m block,Pack -n3|-m block:cyclic -n3
--ntasks-per-core=1 -n2|--ntasks-per-socket=1 -n2|--ntasks-per-socket=4|-B 1:4:1 -n2|--threads-per-core=1 -n2
--hint=multithread -n2
-C ib -n1|-C foo -n1|-I -n1|-I1 -n9|--mincpus=2 -n1|--contiguous -n2|--use-min-nodes -n2|--spread-job -n2
-S1 -n1|--begin=now+1hour -n1|--signal=USR1@10 -n1|--gpu-freq=high -n1|--gpu-freq=high,verbose --gres=gpu:1 -n1
"""
"""Options of srun in a job of two nodes, eight tasks and two GPUs on each, which has four tasks a node."""

VARIABLES = """
SLURM_NTASKS=2|SLURM_NPROCS=3|SLURM_NNODES=1|SLURM_CPUS_PER_TASK=2|SLURM_CPUS_PER_TASK=2 -n2|SRUN_CPUS_PER_TASK=2 -n2
SLURM_NTASKS=3 -N1|SLURM_NTASKS_PER_NODE=1|SLURM_NTASKS_PER_NODE=1 -n2|SLURM_NTASKS_PER_NODE=1 -n4|SLURM_NTASKS_PER_NODE=2 -n4
SLURM_NTASKS_PER_NODE=4 --ntasks-per-node=1|SLURM_GPUS=1 -n1|SLURM_GPUS_PER_NODE=1 -n2|SLURM_TRES_PER_TASK=cpu=2 -n2
SLURM_TRES_PER_TASK=gres/gpu=1 -n2|SLURM_CPUS_PER_GPU=1 --gpus=1 -n1|SLURM_DISTRIBUTION=cyclic -n4
SLURM_DISTRIBUTION=plane=1 -n4
SLURM_DISTRIBUTION=plane SLURM_DIST_PLANESIZE=1 -n4|SLURM_GRES=gpu:1 -n1|SLURM_OVERCOMMIT=1 -n9|SLURM_EXACT=1 -n1
"""
"""The same with variables before them."""


def _lines(text: str) -> list[str]:
    return [word for line in text.strip("\n").splitlines() for word in line.split("|")]


def _step(words: str) -> str:
    """The shell's words for one step; variables stand first."""
    before = [word for word in words.split() if "=" in word and word.split("=")[0].isupper()]
    options = " ".join(word.replace("*", "'*'") for word in words.split() if word not in before)
    return f"{' '.join(before)} srun {options} bash -c 'echo $SLURM_PROCID $SLURM_LOCALID {SEEN}' | sort".strip()


STEPS = {f"s{number}": _step(words) for number, words in enumerate(_lines(SIZES) + _lines(VARIABLES))}

IN_GPU_JOBS = {
    "per-node": (
        "-N2 -n8 -w n[1-2] --ntasks-per-node=4 --gpus-per-node=2",
        "--gpus=1 -n1|--gres=gpu:1 -n1|--gpus-per-task=1 -n1|-n1",
    ),
    "per-task": (
        "-N1 -n2 -w n3 --gpus-per-task=1",
        "|-n1|--gpus-per-task=1 -n1|--gpus-per-task=1 -n2 -N1|--gpus=1 -n1|--gres=none -n1",
    ),
    "exclusive": ("-N1 --exclusive -w n4", "-n1|--gres=gpu:1 -n1|--gpus-per-task=1 -n2"),
    "exclusive-gres": ("-N1 --exclusive -w n4 --gres=gpu:1", "-n1|--gres=gpu:1 -n1|--gres=none -n1"),
}
"""Jobs with GPUs: options of sbatch, options of each srun."""

TOLD = "^(SLURM|CUDA|ROCR|GPU|ZE_|HYDRA|I_MPI|OMPI|PRTE|SRUN)"
CHANGES = "^SLURM_(CONF|JOB_ACCOUNT|JOB_START_TIME|JOB_END_TIME|TASK_PID|LAUNCH_NODE_IPADDR|SRUN_COMM_PORT|STEP_LAUNCHER_PORT)="

OPTIONS = """
-n1|-n2 -N1|-n2 -N2|-N2 -n4 -m block|-N2 -n4 -m cyclic|-n4 -N1 -m plane=2|-n2 -N1 -O|-n2 -N1 -c2
--gpus=1 -n1|--gpus=a100:1 -n1|--gpus-per-node=1 -n1|--gpus-per-node=a100:1 -n1|--gpus-per-task=1 -n1|--gpus-per-task=a100:1 -n1
--gres=gpu:1 -n1|--gpus=1 -n1 --cpus-per-gpu=1|--gpus=1 -n1 --mem-per-gpu=100|--gpus=1 --gpu-freq=medium -n1
--gpus=2 -n2 -N1 --gpu-bind=single:1|--tres-per-task=cpu:1 -n1
--ntasks-per-core=1 -n1|--ntasks-per-socket=1 -n1|--hint=nomultithread -n1|--hint=memory_bound -n1|--hint=compute_bound -n1
--threads-per-core=1 -n1|-B 1:2:1 -n1|--dependency=singleton -n1|--cpu-freq=high -n1|--cpu-freq=1000000-2000000:Performance -n1
--network=foo -n1|--open-mode=append -n1|-J named -n1|--oom-kill-step=1 -n1|--mem-bind=local -n1|--mem-bind=verbose,none -n1
"""
"""Options of srun of which tasks may be told."""

ALONE = """
-L matlab:1 -n1|--mem=200 -n1|--mem-per-cpu=120 -n1|--segment=1 -N2 -n2|--ntasks-per-node=2 -N1|--exclusive -n1|-p gpu -n1
-t 7 -n1
"""
"""The same, where srun makes the allocation."""


def _environment(words: str) -> str:
    shown = f'[ $SLURM_PROCID = 0 ] && env | grep -E "{TOLD}" | grep -vE "{CHANGES}" | grep -v ^SLURMK_ | sort'
    return f"srun {words} bash -c '{shown}'"


TOLD_IN_JOB = {f"e{number}": _environment(words) for number, words in enumerate(_lines(OPTIONS))}
TOLD_ALONE = {f"a{number}": _environment(f"-A phys {words}") for number, words in enumerate(_lines(OPTIONS) + _lines(ALONE))}

IN_JOB = (job("-N 2 -n 8 -w n[1-2] --ntasks-per-node=4 --gres=gpu:2 --mem-per-cpu=100", STEPS | TOLD_IN_JOB),)
BY_THEMSELVES = (*(f"({line}) >{name}.said 2>{name}.errors" for name, line in TOLD_ALONE.items()), "touch finished")

CHANGING = (
    r"StepId=\s*\S+",
    r"(?m)^SLURM_(STEP|JOB)_?ID=.*$",
    r"(?m)^srun: job .*\n",
    r"(?m)^(SLURM_TOPOLOGY_ADDR|SLURMD_NODENAME|SLURM_STEP_NODELIST)=.*$",
    r"(?<=srun: error: )n[12](?=: task)",
    r"(?m)^srun: error: .*: tasks? [\d,-]+: Exited with exit code 1\n",
)
"""One step after the other is on another node, and jobs are started in the order of their lines; which of the tasks that only
wait to be told are named together is a question of time."""

CASES = [
    Case(f"cat {name}.said; sort {name}.errors", setup=setup, until="[ -e finished ]", title=line, ignore=CHANGING)
    for setup, lines in (
        (IN_JOB, STEPS | TOLD_IN_JOB),
        *(
            ((job(options, each),), each)
            for options, each in (
                (options, {f"g{number}": _step(words) for number, words in enumerate(words.split("|"))})
                for options, words in IN_GPU_JOBS.values()
            )
        ),
        (BY_THEMSELVES, TOLD_ALONE),
    )
    for name, line in lines.items()
]
