"""Heterogeneous jobs: what components take over from the one before, and what is done to one of them alone."""

from __future__ import annotations

from sides import Case

_SHOWN = "sed -n '/JobName/s/.*JobName/JobName/p;/ReqNodeList/p;/MinMem/p;/ReqB/p;/Features/p;/MailType/p;/Network/p'"
_LAYERS = (
    "-w n1 -x n5 : -x n6 : -n1",
    "-w n1 : -w n2 : -n1",
    "-w n1 : -w n1",
    "-w n[1-2] : -w n[2-3] : -n1",
    "--threads-per-core=1 : -n1 : -n1",
    "--hint=nomultithread : --hint=multithread : -n1",
    "--hint=compute_bound : -n2 : -n1",
    "--mem=5 : --mem-per-cpu=7 : -n1",
    "--mem-per-cpu=5 : --mem=7 : -n1",
    "--mail-type=END --mail-user=bob : -n1 : -n1",
    "--network=x --bb=y : -n1",
    "-C a100 --prefer=ib : -n1",
    "-J x -c 2 -n 2 --tmp=5 : -n1",
    "-n1 : -n1 --mem=300 -C cpu : -n1",
    "-n1 : -J b --mail-type=END --mail-user=bob : -J c -c 2",
    "-n1 : -n1 --hint=nomultithread -x n3",
)
_VARIABLES = (
    "SBATCH_MEM_PER_CPU=3 : -n1 : -n1",
    "SBATCH_HINT=nomultithread : -n1 : -n1",
    "SBATCH_CONSTRAINT=cpu -C a100 : -n1 : -n1",
    "SBATCH_JOB_NAME=e -J x : -n1",
    "SBATCH_PARTITION=cpu -p gpu : -n1 : -p debug",
)


def _submission(text: str) -> str:
    variable, _, options = text.partition(" ") if text.startswith("SBATCH") else ("", "", text)
    return f"j=$({variable} sbatch --parsable -H {options} --wrap true) && scontrol show job $j | {_SHOWN}; scancel -Q $j"


WAITING = ("sbatch -b now+1hour -J first -n1 -t3 : -J second -n1 -t3 --wrap 'sleep 100'",)
RUNNING = ("sbatch -J first -n1 -t3 : -J second -n1 -t3 : -J third -n1 --wrap 'sleep 100'",)
RUNS = '[ "$(squeue -h -j {0} -o %t | grep -c ^R$)" = 3 ]'
_OF_WAITING = (
    "scancel {0}+1",
    "scancel -v {0}+1",
    "scancel $(({0}+1))",
    "scancel -n second",
    "scontrol hold {0}+1; squeue -h -j {0} -o '%i %t %r'",
    "scontrol release {0}+1",
    "scontrol update jobid={0}+1 timelimit=2; squeue -h -j {0} -o '%i %l'",
    "scontrol update jobid={0}+5 timelimit=2",
    "scontrol requeue {0}",
    "scontrol requeue {0}+1",
    "scontrol requeuehold {0}+1",
    "scontrol suspend {0}",
    "scontrol suspend {0}+0",
    "scancel {0}+0; squeue -h -j {0} -o '%i %t'",
)
_OF_RUNNING = (
    "scontrol requeue $(({0}+1))",
    "scontrol requeue {0}+0",
    "scontrol suspend {0}+1",
    "scontrol suspend $(({0}+2))",
    "scontrol resume {0}+0",
    "scontrol suspend {0}; squeue -h -j {0} -o '%i %t'; scontrol resume {0}",
)

CASES = [
    *(Case(_submission(text), title=text) for text in (*_LAYERS, *_VARIABLES)),
    *(Case(text, setup=WAITING) for text in _OF_WAITING),
    *(Case(text, setup=RUNNING, until=RUNS, title=f"running: {text}") for text in _OF_RUNNING),
]
