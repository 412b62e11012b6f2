"""srun and salloc outside of jobs: what they say while they wait, when they do not wait, and where their output goes."""

from __future__ import annotations

from sides import Case

ACCOUNT = "export SLURM_ACCOUNT=phys SALLOC_ACCOUNT=phys; "
"""The reference puts every job on an account; here it has to be named."""

REVOKED = (r"(?m)^s(?:run|alloc): (?:Job allocation .* has been revoked|Force Terminated .*)\.?\n",)
"""Comes, or does not, as the controller's message is faster or slower than the command's end."""

QUEUED = (r"(?m)^s(?:run|alloc): (?:job|Pending) .*\n",)
"""Comes where the reference's scheduler was not asked at once."""

_TERMINATED = "{command} >said 2>&1 & sleep 0.8; kill -{number} $!; wait $!; echo exit $?; cat said; squeue -h -n waits -t PD"

WAITS: dict[str, tuple[str, ...]] = {
    "TERM": ("srun -J waits -H true", "salloc -J waits -H true", "srun -J waits -b now+1hour true"),
    "INT": ("srun -J waits -N 9 true", "salloc -J waits -N 9 true", "srun -J waits -p cpu -N 5 true"),
    "HUP": ("srun -J waits -n 500 true", "srun -J waits -t 5:00:00 true"),
    "USR1": ("srun -J waits -H true", "srun -Q -J waits -H true"),
}
"""Signal -> commands that wait for ever until it comes."""

IMMEDIATE = (
    "srun -I -w n1 --exclusive true",
    "srun -I1 -w n1 --exclusive true",
    "salloc -I -w n1 --exclusive true",
    "srun -H -I true",
    "srun -b now+1hour -I1 true",
    "srun -N 9 -I true",
    "salloc -N 9 -I true",
    "srun -I2 -w n1 --exclusive true",
    "SLURM_EXIT_IMMEDIATE=7 SLURM_EXIT_ERROR=8 srun -I -w n1 --exclusive true",
    "SLURM_EXIT_IMMEDIATE=7 SLURM_EXIT_ERROR=8 srun -I -H true",
    "SLURM_EXIT_IMMEDIATE=7 SLURM_EXIT_ERROR=8 salloc -I -w n1 --exclusive true",
    "SLURM_EXIT_IMMEDIATE=7 SLURM_EXIT_ERROR=8 salloc -I -H true",
    "srun -Q -I -w n1 --exclusive true",
)
BUSY = ("sbatch -A phys -w n1 --exclusive -t 5 --wrap 'sleep 300'",)
"""A node that is in use."""

STREAMS = (
    "SLURM_STDOUTMODE=a1 srun echo x; cat a1",
    "SLURM_STDOUTMODE=a1 SRUN_OUTPUT=a2 srun echo x; cat a2",
    "SLURM_STDOUTMODE=a1 srun -o a3 echo x; cat a3",
    "SLURM_STDOUTMODE=none srun echo x",
    "SLURM_STDERRMODE=b1 srun bash -c 'echo x >&2'; cat b1",
    "SLURM_STDERRMODE=b1 SRUN_ERROR=b2 srun bash -c 'echo x >&2'; cat b2",
    "echo data >c1; SLURM_STDINMODE=c1 srun cat",
    "SLURM_STDINMODE=none srun cat",
    "echo other >c2; SLURM_STDINMODE=c1 SRUN_INPUT=c2 srun cat",
    "srun -n 3 -N 1 --output=3 echo file; cat 3",
    "srun -n 3 -N 1 --output=2 echo task",
    "srun -n 3 -N 1 --error=4 bash -c 'echo file >&2'; cat 4",
    "srun -n 3 -N 1 --input=5 cat; echo $?",
    "echo file >6; srun -n 3 -N 1 --input=6 cat",
    "echo task | srun -n 3 -N 1 --input=2 cat",
    "srun --input=nothere cat",
    "srun -n 2 -N 2 --input=nothere cat",
    "srun -w n2 --exclusive --input=nothere cat; srun -w n2 --exclusive echo free again",
    "srun -o z.%a.%b.%3a.%2b true; ls z.*",
    "srun --slurmd-debug=quiet true",
    "srun --slurmd-debug=1 true",
    "SLURMD_DEBUG=fatal srun true",
    "srun --slurmd-debug=error true",
    "srun --slurmd-debug=3 true",
    "SLURM_NSOCKETS_PER_NODE=1 SLURM_NCORES_PER_SOCKET=4 srun echo fits",
    "SLURM_NSOCKETS_PER_NODE=3 srun echo fits not",
)

_NODES = "bash -c 'echo $SLURMD_NODENAME' | sort"
_HOSTS = "printf 'n3\\nn1\\n' >hf; printf 'n3\\nn3\\nn1\\n' >three; export SLURM_HOSTFILE=hf; "

HOST_FILES = (
    f"srun -l {_NODES}",
    f"srun -l -n 1 {_NODES}",
    f"srun -l -n 2 -m block {_NODES}",
    f"SLURM_HOSTFILE=three srun -l {_NODES}",
    f"SLURM_HOSTFILE=three srun -l -n 2 {_NODES}",
    f"srun -l -n 2 -w n2 {_NODES}",
    f"srun -l -m arbitrary -w n5,n3,n5 {_NODES}",
    f"srun -l -m arbitrary -w ./three -n 3 {_NODES}",
    "srun -n 3 true",
    "srun -N 2 true",
    "SLURM_HOSTFILE=/ srun true",
    "SLURM_HOSTFILE=nothere srun true",
    "srun -m arbitrary -w n3,n1 -n 3 true",
    "sbatch -A phys -N 2 --wrap true",
    "sbatch -A phys -n 3 --wrap true",
    "sbatch -A phys -m arbitrary -w n5,n3 -n 3 --wrap true",
    "salloc -n 3 true",
    "salloc bash -c 'env | grep -E \"ARB|DISTR|NTASKS|NPROCS\" | sort'",
    f"salloc bash -c 'srun -l {_NODES.replace(chr(39), chr(34)).replace('$', chr(92) + '$')}'",
)
"""Where the tasks go that SLURM_HOSTFILE puts on nodes one by one."""

ABORTED = (
    "srun -w n1 -n 2 -K bash -c '[ $SLURM_PROCID = 0 ] || exit 3; sleep 30'",
    "srun -w n1 -n 2 -W 1 bash -c '[ $SLURM_PROCID = 0 ] || exit 0; sleep 30'",
    "id=$(sbatch --parsable -A phys -W --wrap 'srun true'); sleep 0.5; sluid=$(sacct -nXPj $id -o sluid); "
    "sacct -nP -o state,exitcode -j $sluid; sacct -nP -o state -j ${sluid,,}; sacct -nP -o state -j $sluid.0",
    "id=$(sbatch --parsable -A phys -N 3 -n 6 --wrap 'sleep 30'); "
    "while [ $(squeue -h -j $id -o %t) != R ]; do sleep 0.1; done; "
    "srun --jobid=$id -l hostname | wc -l; srun --jobid=$id -N 1 -w $(squeue -h -j $id -o %N) true; "
    "runuser -u alice -- srun --jobid=$id true; scancel $id",
    "sacct -n -j sAAAAAAAAAAAAA",
    "strigger --set --down --program=/no/file",
)
"""Steps that are ended because of one task, jobs by their SLUIDs, a trigger's program that is not there."""

CASES = [
    *(
        Case(ACCOUNT + _TERMINATED.format(command=command, number=signal), title=f"{command} and {signal}", ignore=REVOKED)
        for signal, commands in WAITS.items()
        for command in commands
    ),
    *(Case(ACCOUNT + command, title=command, ignore=QUEUED) for command in STREAMS),
    *(Case(ACCOUNT + command, title=command, ignore=QUEUED) for command in ABORTED),
    *(Case(ACCOUNT + _HOSTS + command, title=f"hosts: {command}", ignore=QUEUED) for command in HOST_FILES),
    *(
        Case(ACCOUNT + command, setup=BUSY, until="[ $(squeue -h -j {0} -o %t) = R ]", title=command, ignore=REVOKED)
        for command in IMMEDIATE
    ),
]
