"""salloc: what it says, the exit codes, its command's environment, and what becomes of the job."""

from __future__ import annotations

from cases_environment import ENVIRONMENT
from sides import Case

ACCOUNT = "export SALLOC_ACCOUNT=phys; "
"""The reference puts every job on an account; here it has to be named."""

REVOKED = (r"(?m)^salloc: Job allocation .* has been revoked\.\n",)
"""Comes, or does not, as the controller's message is faster or slower than salloc's end."""

QUEUED = (r"(?m)^salloc: (?:Pending|job ).*\n",)
"""Comes where the reference's scheduler was not asked at once."""

NODES = (r"(?m)(?<=^salloc: Nodes )\S+",)
"""Which nodes are free depends on who else is there."""

CHANGING = (*REVOKED, *QUEUED, r"(?m)^SLURM_CONF=.*$", r"(?m)^SLURM_JOB_?ID_[A-Z]+_GROUP_1=.*$")

ACCOUNTED = "; sacct -X -n -P -j {} -o jobname,state,exitcode,derivedexitcode,submitline".format(
    "$(sacct -X -n -P -o jobid -S now-1minutes -u $(id -un) | tail -n 1)"
)

_ENDS = (
    "salloc -n 1 true",
    "salloc true",
    "salloc -n 1 false",
    "salloc -n 1 bash -c 'exit 3'",
    "salloc -n 1 bash -c 'exit 300'",
    "salloc -n 1 bash -c 'kill -TERM $$'",
    "salloc -n 1 bash -c 'kill -KILL $$'",
    "salloc -n 1 bash -c 'kill -INT $$'",
    "salloc -n 1 bash -c 'kill -HUP $$'",
    "salloc -n 1 bash -c 'kill -QUIT $$'",
    "salloc -n 1 bash -c 'kill -USR1 $$'",
    "salloc -n 1 -v bash -c 'kill -USR1 $$'",
    "salloc -n 1 nosuchcommand",
    "salloc -n 1 ./nothere",
    "salloc -n 1 /etc/passwd",
    "salloc -n 1 /etc",
    "salloc -n 1 ''",
    "salloc -n 1 -- echo hi",
    "salloc -n 1 -Q echo hi",
    "salloc -n 1 -Q false",
    "salloc -n 1 --bell true",
    "salloc -n 1 --no-bell true",
    "salloc -n 1 -K true",
    "salloc -n 1 -K9 true",
    "salloc -n 1 -KSIGUSR1 true",
    "salloc -n 1 --kill-command=usr2 -v true",
    "salloc -n 1 --kill-command=99 true",
    "salloc -n 1 -D /var pwd",
    "salloc -n 1 --chdir=/ bash -c 'pwd; echo $SLURM_SUBMIT_DIR'",
    "salloc -n 1 -J name true",
    "salloc -n 1 -J '' true",
    "salloc -n 1 -I true",
    "salloc -n 1 -I5 true",
    "salloc -n 1 -b now true",
    "salloc -n 1 -b now+3 true",
    "salloc -n 1 -Q -b now+3 echo late",
    "salloc -n 1 --comment=words true",
    "salloc -n 1 -p gpu -t 3 true",
    "salloc -n 1 -L matlab:1 true",
    "salloc -n 1 --signal=USR1@10 -t 1 true",
    "salloc -n 1 --wait-all-nodes=1 true",
    "salloc -n 1 -M reference true",
    "salloc -N 2 srun hostname",
    "salloc -N 2 -n 4 srun -l bash -c 'echo $SLURM_PROCID' | sort",
    "salloc -n 1 srun false",
    "salloc -n 2 srun bash -c 'exit $SLURM_PROCID'",
    "salloc -n 1 salloc -n 1 bash -c 'echo $SLURM_JOB_NAME'",
    "SALLOC_PARTITION=gpu SALLOC_TIMELIMIT=3 salloc -n 1 bash -c 'squeue -h -j $SLURM_JOB_ID -o \"%P %l %q %j %o %T\"'",
    "SALLOC_NO_BELL=1 SALLOC_DEBUG=1 salloc -n 1 true",
    "SALLOC_IMMEDIATE=4 SALLOC_EXCLUSIVE=user SALLOC_DEBUG=1 salloc -n 1 true",
    "SALLOC_JOB_NAME=other SLURM_JOB_NAME=third salloc -n 1 bash -c 'echo $SLURM_JOB_NAME'",
    "echo 'echo from standard input; exit 7' | salloc -n 1",
    "salloc -n 1 </dev/null",
    "salloc -n 1 cat <<< words",
)

_IN_IT = (
    "scancel $SLURM_JOB_ID; sleep 1; echo still",
    "scancel -s USR1 $SLURM_JOB_ID; sleep 0.5; echo still",
    "scancel -s TERM $SLURM_JOB_ID; sleep 0.5; echo still",
    "scancel -f -s INT $SLURM_JOB_ID; sleep 0.5; echo still",
    "scontrol show job $SLURM_JOB_ID | grep -E 'JobName|BatchFlag|Command|SubmitLine|BatchHost|NumNodes'",
    "srun -n 1 true; squeue -h -s -j $SLURM_JOB_ID",
    "sbatch -A phys -H --wrap true | sed 's/[0-9]*$//'",
    "squeue -h -j $SLURM_JOBID -o '%j %u %T %M %D %R' | sed 's/0:0[0-9]/0:00/'",
    "scontrol wait_job $SLURM_JOB_ID; echo $?",
    "srun -n 3 true",
    "scontrol requeue $SLURM_JOB_ID",
    "scontrol write batch_script $SLURM_JOB_ID -",
)
"""What a command does inside of an allocation."""

_REFUSED = (
    "salloc -p nope true",
    "SLURM_EXIT_ERROR=9 salloc -p nope true",
    "salloc --chdir=/nonexistent true",
    "salloc --chdir=/etc/passwd true",
    "salloc -t 1:00:00:00:00 true",
    "salloc --foo",
    "salloc -a 1-3 true",
    "salloc -n 0 true",
    "salloc -n x true",
    "salloc -N 3-1 true",
    "salloc -Kfoo true",
    "salloc -K0 true",
    "salloc --test-only true",
    "salloc --parsable true",
    "salloc --wrap true",
    "salloc --uid=alice true",
    "salloc --export=NONE true",
    "salloc --requeue true",
    "salloc -o file true",
    "salloc -L foo true",
    "salloc -L matlab:9 true",
    "salloc -M foo true",
    "SLURM_EXIT_ERROR=9 salloc -M foo true",
    "salloc -C nosuch true",
    "salloc --gres=nosuch true",
    "salloc -w nosuch true",
    "salloc -d afterok:foo true",
    "salloc --mem=1 --mem-per-cpu=1 true",
    "salloc --exclusive --oversubscribe true",
    "salloc --deadline=now+1 -t 1 true",
    "salloc --reservation=nosuch true",
    "salloc --qos=nosuch true",
    "salloc --core-spec=1 -n 1 true",
    "salloc --immediate=x true",
    "salloc -I -H true",
    "salloc -I -d afterany:{0} true",
    "SLURM_EXIT_IMMEDIATE=7 SLURM_EXIT_ERROR=9 salloc -I -H true",
    "salloc --bell=x true",
    "salloc --no-shell=x",
    "salloc --chdir",
    "salloc --mem",
    "salloc --ntasks",
    "salloc --time-min=x true",
    "salloc --nodes=",
    "salloc -B x true",
    "salloc --nice=99999999999 true",
    "salloc --network",
    "salloc --n=1 true",
    "salloc --no=1 true",
)

HELD = ("sbatch -A phys -H --wrap true",)
BUSY = ("sbatch -A phys -p cpu -w n5 --exclusive --wrap 'sleep 60'",)
IS_BUSY = "squeue -h -j {0} -o %t | grep -q R"

_BUSY = (
    "SLURM_EXIT_IMMEDIATE=7 SLURM_EXIT_ERROR=9 salloc -I -w n5 -n 1 true",
    "SLURM_EXIT_ERROR=9 salloc -Q -I1 -w n5 -n 1 true",
    "SALLOC_IMMEDIATE=1 salloc -w n5 -n 1 true",
    "SLURM_EXIT_IMMEDIATE=7 salloc -I2 -w n5 -n 1 true",
    "salloc -v -I2 -w n5 -n 1 true",
)

SIGNALLED = """python3 -c '
import signal, subprocess, sys, time
process = subprocess.Popen(sys.argv[2:], preexec_fn=lambda: [signal.signal(number, signal.SIG_DFL) for number in (2, 3, 13)])
time.sleep(1.2)
process.send_signal(int(sys.argv[1]))
print(process.wait())
' """

_SIGNALLED = tuple(
    f'{SIGNALLED}{number} salloc -n 1 {wait}bash -c "sleep 3; echo over"'
    for number in (1, 2, 3, 10, 12, 14, 15)
    for wait in ("", "-b now+1hour ")
    if (number, wait) not in ((3, "-b now+1hour "), (14, "-b now+1hour "))
)

_OPTIONS = (
    "-w n1 -n 1",
    "-w n[1-2] -N 2",
    "-w n[1-2] -N 2 --ntasks-per-node=2 -c 2",
    "-w n[1-2] -N 2 --mem=200 --exclusive",
    "-w n1 -n 3 --mem-per-cpu=50 --gres=gpu:2 --cpu-freq=low --distribution=plane=2",
    "-w n1 --gpus=2 --cpus-per-gpu=2 --mem-per-gpu=100 --overcommit -n 2",
    "-w n1 -J foo -C a100 --hint=nomultithread -t 5 -L matlab:1",
    "-w n1 --ntasks-per-core=1",
    "-w n1 -s",
    "-w n1 --ntasks-per-socket=2",
    "-w n1 --profile=task",
    "-w n1 --network=x",
    "-w n1 --gpus-per-task=1 -n 2",
    "-w n1 --threads-per-core=1",
    "-w n1 -m cyclic:block",
    "-w n1 --tres-per-task=cpu=2 -n 2",
    "-w n1 --gpus-per-node=1",
    "-w n1 --gres=gpu:1",
    "-w n1 --no-kill",
    "-w n1 --segment=1",
    "-w n1 --hint=compute_bound",
    "-w n1 --ntasks-per-gpu=1 --gpus=2",
    "-w n1 --gpus-per-socket=1 --sockets-per-node=1",
    "-w n1 --gpu-bind=single:1 --gpus=1",
    "-w n1 --tres-bind=gres/gpu:single:1 --gres=gpu:1",
    "-w n1 --gpu-freq=low --gpus=1",
    "-w n1 --mem-bind=local",
    "-w n1 -B 1:1:1",
    "-w n1 --exclusive",
    "-w n1 --mem=0",
    "-w n5 -p cpu -N 1 -c 4",
    "-w n[1-2] -n 5 -N 2",
    "-w n1 --oom-kill-step=1",
    "-w n1 --switches=1",
    "-w n1 --ntasks-per-node=3",
    "-w n1 --mincpus=4",
    "-w n1 --mail-type=END --nice=5 --extra=x --stepmgr --contiguous --use-min-nodes",
    "-w n1 -J outer --no-bell --comment=x --begin=now",
    "-w n1 -n 1 : -w n[2-3] -n 2 -N 2",
)

CASES = [
    Case(
        f"{ACCOUNT}salloc -n 1 --get-user-env true",
        title="salloc --get-user-env true",
        differs="refused by 26.05 alone; releases before took it, and old scripts run here",
    ),
    *(
        Case(f"{ACCOUNT}{command}", ignore=(*REVOKED, *NODES, *(() if "now+3" in command else QUEUED)), title=command)
        for command in _ENDS
    ),
    *(
        Case(
            f"{ACCOUNT}salloc -n 1 bash -c '{script.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'",
            ignore=(*REVOKED, *NODES, *QUEUED),
            title=f"in salloc: {script}",
        )
        for script in _IN_IT
    ),
    *(Case(f"{ACCOUNT}{command}", setup=HELD, ignore=REVOKED, title=command) for command in _REFUSED),
    *(Case(f"{ACCOUNT}{command}", setup=BUSY, until=IS_BUSY, ignore=REVOKED, title=command) for command in _BUSY),
    *(
        Case(
            f"{ACCOUNT}{command}",
            ignore=REVOKED if "hour" in command else (*NODES, *QUEUED),
            title=command[command.index("'  ") if "'  " in command else -70 :],
        )
        for command in _SIGNALLED
    ),
    *(
        Case(
            f'{ACCOUNT}timeout 30 salloc {options} bash -c "{ENVIRONMENT}"',
            ignore=(*CHANGING, r"(?m)^SLURM_TASKS_PER_NODE=.*$") if "--overcommit" in options else CHANGING,
            title=f"environment: salloc {options}",
        )
        for options in _OPTIONS
    ),
    *(
        Case(
            f"{ACCOUNT}salloc -n 1 {command} 2>/dev/null{ACCOUNTED}",
            title=f"accounted: salloc {command}",
        )
        for command in (
            "true",
            "false",
            "bash -c 'kill -TERM $$'",
            "bash -c 'scancel $SLURM_JOB_ID'",
            "nosuch",
            "-J x srun false",
        )
    ),
    Case(
        f"{ACCOUNT}salloc -n 1 --no-shell && squeue -h -u $(id -un) -o '%j %T %o' -n no-shell; scancel -n no-shell",
        title="salloc --no-shell",
    ),
    Case(
        f"{ACCOUNT}salloc -n 1 --no-shell -J kept true && srun --jobid=$(squeue -h -o %A -n kept) echo in it; scancel -n kept",
        title="salloc --no-shell, then srun --jobid",
    ),
]
