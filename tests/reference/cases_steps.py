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
    "multi-short": "printf '0 echo first\\n' >short.conf; srun -n 2 --multi-prog short.conf 2>&1 | "
    "grep -v 'could not connect'",  # which of it ends first is a race
    "kill-on-bad-exit": "srun -K -n 2 bash -c '[ $SLURM_PROCID = 0 ] && exit 5; sleep 30'",
    "kill-beside": "srun -K -N 2 -n 4 bash -c '[ $SLURM_PROCID = 3 ] && exit 9; sleep 30'",
    "told-once": "SLURM_SRUN_REDUCE_TASK_EXIT_MSG=1 srun -N 2 -n 2 bash -c 'exit 3' 2>&1 | sed s/n[23]:.*:/N:/",
    "output-from-elsewhere": "mkdir -p below; srun -n 1 -D below -o here.txt bash -c 'basename $PWD'; cat here.txt; ls below",
    "input-from-elsewhere": "mkdir -p below; echo in >there.txt; srun -n 1 -D below -i there.txt cat",
    "output-without-a-name": "srun -n 1 -o '' echo x",
    "program-from-elsewhere": "srun -n 1 -D /tmp ./no-such-program",
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

STARTED: dict[str, str] = {
    "no-terminal": "srun -n 1 --pty cat </etc/hostname",
    "task-prolog": "srun -n 2 --task-prolog=$PWD/prolog bash -c 'echo V=$V' | sort",
    "task-prolog-fails": "CODE=3 srun -n 1 --task-prolog=$PWD/prolog true",
    "task-prolog-is-relative": "srun -n 1 --task-prolog=./prolog true",
    "task-prolog-is-missing": "srun -n 1 --task-prolog=/nonexistent true",
    "task-prolog-is-no-program": "srun -n 1 --task-prolog=/etc/passwd true",
    "task-epilog": "srun -n 2 --task-epilog=$PWD/epilog true",
    "task-epilog-fails": "CODE=4 srun -n 1 --task-epilog=$PWD/epilog true",
    "srun-prolog": "echo in | srun -n 1 --prolog=$PWD/hook --epilog=$PWD/hook cat 2>/dev/null",
    "srun-prolog-is-missing": "srun -n 1 --prolog=/nonexistent --epilog=/nonexistent echo ran",
    "cpu-bind": "srun -n 1 --cpu-bind=v,cores env | grep _BIND | sort",
    "cpu-bind-verbose": "srun -n 1 --cpu-bind=v env | grep _BIND | sort",
    "cpu-bind-masks": "srun -n 1 --cpu-bind=mask_cpu:0x3,5*2 env | grep _BIND | sort",
    "cpu-bind-rank": "srun -n 1 --cpu-bind=rank env | grep _BIND | sort",
    "cpu-bind-number": "srun -n 1 --cpu-bind=map_cpu:1,2x true",
    "cpu-bind-times": "srun -n 1 --cpu-bind=map_cpu:1* true",
    "cpu-bind-unknown": "srun -n 1 --cpu-bind=boards true",
    "hint": "srun -n 1 --hint=nomultithread env | grep _BIND | sort",
    "per-core": "srun -n 1 --ntasks-per-core=1 env | grep _BIND | sort",
    "mem-bind": "srun -n 1 --mem-bind=prefer,local env | grep MEM_BIND | sort",
    "mem-bind-map": "srun -n 1 --mem-bind=map_mem:0*2,1 env | grep MEM_BIND | sort",
    "gpu-bind-all": "srun -n 1 --gpu-bind=verbose,closest env | grep -i 'cuda\\|bind' | sort",
    "gpu-bind-map": "srun -n 1 -N 1 --gpu-bind=map:5 bash -c 'echo $CUDA_VISIBLE_DEVICES' 2>&1 | cut -d ' ' -f 2- | sort",
    "bcast": "srun -n 1 -N 1 -w n2 --bcast bash -c 'ls slurm_bcast_*' | sed 's/[0-9]*[.][0-9]*/ID/'",
    "bcast-to": "srun -n 1 --bcast=$PWD/there bash -c 'basename $0'",
    "bcast-libraries": "srun -n 1 --bcast=$PWD/here --send-libs --bcast-exclude=NONE bash -c 'basename $LD_LIBRARY_PATH'; "
    "ls here_libs",
    "bcast-nowhere": "srun -n 1 --bcast=/proc/nonexistent/x true",
    "bcast-nothing": "srun -n 2 --bcast no-such-program",
    "bcast-compression": "srun -n 1 --bcast=$PWD/packed --compress=foo true",
    "bcast-relative": "srun -n 1 --bcast=$PWD/other --send-libs --bcast-exclude=relative true",
    "libraries-maybe": "srun -n 1 --send-libs=maybe true",
    "async": "srun --async -N 1 -n 1 true",
    "async-pty": "srun --async --pty true",
    "async-immediate": "srun --async --immediate true",
    "parsable": "srun --parsable true",
    "external-launcher": "srun --external-launcher bash -c 'echo $SLURM_NTASKS $SLURMD_NODENAME' | sort",
    "no-allocation": "srun -Z true",
    "children": "srun --wait-for-children -n 1 true",
    "ports": "srun --resv-ports=2 -N 1 -n 1 true",
    "out-of-memory": "srun --oom-kill-step -N 1 -n 1 env | grep OOM",
    "out-of-memory-2": "srun --oom-kill-step=2 -N 1 -n 1 true",
    "ignored-kill": "srun --ignore-signals=KILL -N 1 -n 1 true",
    "ignored-foo": "srun --ignore-signals=foo -N 1 -n 1 true",
    "ignored": "srun --ignore-signals=INT,USR1 -N 1 -n 1 true",
    "group": "srun --het-group=0 -N 1 -n 1 true",
    "high-group": "srun --het-group=1 -N 1 -n 1 true",
    "no-program": "srun -n 1 true :",
}
"""The same of how tasks are started: what runs before and after them, bindings, programs that are sent, several programs."""

_PROGRAMS = {
    "prolog": "echo print before $SLURM_PROCID; echo export V=set; echo lost >&2; exit ${CODE:-0}",
    "epilog": "echo after $SLURM_SCRIPT_CONTEXT V=$V >&2; echo lost; exit ${CODE:-0}",
    "hook": "echo $SLURM_SCRIPT_CONTEXT $SLURM_NTASKS $*; read x; echo read $x",
}
"""What runs before and after."""


def job(options: str, lines: dict[str, str]) -> str:
    """Shell commands that write a job's script of those lines and submit it."""
    body = "\n".join(f"({line}) >{name}.said 2>{name}.errors; echo exit $? >>{name}.said" for name, line in lines.items())
    return (
        f"cat >steps.sh <<'END'\n#!/bin/bash\n{body}\ntouch finished\nEND\nsbatch -A phys {options} -t 10 -o job.out steps.sh"
    )


SETUP = (job("-N 2 -n 4 -w n[2-3] --gres=gpu:1", STEPS),)
STARTED_SETUP = (
    *(f"printf '%s\\n' '#!/bin/bash' '{body}' >{name}; chmod +x {name}" for name, body in _PROGRAMS.items()),
    job("-N 2 -n 4 -w n[2-3] --gres=gpu:1", STARTED),
)

CHANGING = (r"StepId=\s*\S+", r"(?<=STEP )\S+", r"(?<=srun: error: )n[23](?=: task 0)")
"""One task of a step may be on either node."""

CASES = [
    Case(f"cat {name}.said; sort {name}.errors", setup=setup, until="[ -e finished ]", title=line, ignore=CHANGING)
    for setup, lines in ((SETUP, STEPS), (STARTED_SETUP, STARTED))
    for name, line in lines.items()
]
