"""srun inside jobs: what it says and the exit codes it gives. One job runs all of them, one after another."""

from __future__ import annotations

from sides import Case

STEPS: dict[str, str] = {
    "labelled": "srun -l -n 4 bash -c 'echo task $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME' | sort",
    "code": "srun -n 1 bash -c 'exit 3'",
    "codes": "srun -n 4 bash -c 'exit $SLURM_PROCID'",
    "signal": "srun -n 1 bash -c 'kill -TERM $$'",
    "killed": "srun -n 2 bash -c 'kill -KILL $$'",
    "core": "srun -n 1 bash -c 'ulimit -c 0; kill -SEGV $$'",
    "missing": "srun -n 1 /nonexistent/program",
    "not-found": "srun -n 2 no-such-program",
    "no-permission": "srun -n 1 /etc/passwd",
    "files": "srun -n 4 -o step-%t-%N.txt bash -c 'echo $SLURM_PROCID'; tail -n 9 step-*.txt",
    "one-file": "srun -n 2 -o both.txt -e errors.txt bash -c 'echo out; echo err >&2'; sort both.txt errors.txt",
    "first-only": "srun -n 4 -o 2 bash -c 'echo only $SLURM_PROCID'",
    "multi": "printf '0 echo first %%t %%o\\n1-2 echo more %%t %%o\\n* echo rest %%t\\n' >multi.conf; "
    "srun -l -n 4 --multi-prog multi.conf | sort",
    "multi-short": "printf '0 echo first\\n' >short.conf; srun -n 2 --multi-prog short.conf",
    "kill-on-bad-exit": "srun -K -n 2 bash -c '[ $SLURM_PROCID = 0 ] && exit 5; sleep 30'",
    "too-many-tasks": "srun -n 200 true",
    "too-many-nodes": "srun -N 4 true",
    "too-many-gpus": "srun -n 1 --gres=gpu:3 true",
    "unknown-node": "srun -w n99 true",
    "other-node": "srun -w n5 true",
    "named-node": "srun -n 1 -N 1 -w n3 bash -c 'echo $SLURMD_NODENAME'",
    "excluded": "srun -n 1 -N 1 -x n2 bash -c 'echo $SLURMD_NODENAME'",
    "relative": "srun -n 1 -N 1 -r 1 bash -c 'echo $SLURMD_NODENAME'",
    "relative-too-far": "srun -n 1 -N 1 -r 7 true",
    "cyclic": "srun -l -n 4 -m cyclic bash -c 'echo $SLURMD_NODENAME' | sort",
    "block": "srun -l -n 4 -m block bash -c 'echo $SLURMD_NODENAME' | sort",
    "plane": "srun -l -n 4 -m plane=2 bash -c 'echo $SLURMD_NODENAME' | sort",
    "per-node": "srun -l -N 2 --ntasks-per-node=1 bash -c 'echo $SLURMD_NODENAME' | sort",
    "input": "echo hello | srun -l -n 2 cat | sort",
    "input-of-one": "echo hello | srun -l -n 2 -i 1 cat",
    "no-input": "echo hello | srun -n 2 -i none cat",
    "directory": "mkdir -p below; srun -n 1 -D below bash -c 'basename $PWD'",
    "no-directory": "srun -n 1 -D /nonexistent bash -c 'pwd'",
    "exports": "A=1 srun -n 1 --export=B=2 /bin/bash -c 'echo $A-$B'",
    "exports-none": "A=1 srun -n 1 --export=NONE /bin/bash -c 'echo $A-'",
    "unbuffered": "srun -u -n 1 bash -c 'printf no-newline'",
    "quiet": "srun -Q -n 1 bash -c 'exit 2'",
    "bad-option": "srun --nonsense true",
    "bad-number": "srun -n x true",
    "no-command": "srun -n 1",
    "overlap": "srun -n 4 sleep 2 & sleep 0.7; srun --overlap --mem=0 -n 1 echo now; wait",
    "wait": "srun -W 1 -n 2 bash -c '[ $SLURM_PROCID = 0 ] || sleep 30'",
}
"""Name -> a line of the job's script. A step with too much memory and a step's time limit would take the reference a minute."""

_LINES = "\n".join(f"({line}) >{name}.said 2>{name}.errors; echo exit $? >>{name}.said" for name, line in STEPS.items())
SETUP = (
    f"cat >steps.sh <<'END'\n#!/bin/bash\n{_LINES}\ntouch finished\nEND",
    "sbatch -A phys -N 2 -n 4 -w n[2-3] --gres=gpu:1 -t 10 -o job.out steps.sh",
)

CHANGING = (r"StepId=\s*\S+", r"(?<=srun: error: )n[23](?=: task 0)")
"""One task of a step may be on either node."""

CASES = [
    Case(f"cat {name}.said; sort {name}.errors", setup=SETUP, until="[ -e finished ]", title=line, ignore=CHANGING)
    for name, line in STEPS.items()
]
