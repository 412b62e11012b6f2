"""How jobs end: what their output says, and what squeue, scontrol and sacct tell afterwards."""

from __future__ import annotations

from sides import Case

LOOP = "while sleep 0.1; do :; done"

SETUP = (
    "sbatch -A phys -J good -w n1 -o good.out --wrap 'srun -n 1 true; echo fine'",
    "sbatch -A phys -J bad -w n1 -o bad.out --wrap 'srun -n 1 bash -c \"exit 4\"; exit 3'",
    "sbatch -A phys -J signalled -w n2 -o signalled.out --wrap 'kill -TERM $$'",
    f"sbatch -A phys -J stopped -w n2 -o stopped.out --wrap 'touch stopped.on; {LOOP}'",
    f"sbatch -A phys -J stepped -w n3 -o stepped.out --wrap 'srun bash -c \"touch stepped.on; {LOOP}\"'",
    "sbatch -A phys -J never -H -o never.out --wrap true",
    f"sbatch -A phys -J again -w n4 --requeue -o again.out --wrap 'echo start $SLURM_RESTART_COUNT; touch again.on; {LOOP}'",
    "sbatch -A phys -J list -a 1-2 -w n1 -o list-%a.out --wrap 'exit $((SLURM_ARRAY_TASK_ID - 1))'",
    "sbatch -A phys -J wide -N 2 -n 4 -w n[5-6] -o wide.out --wrap 'srun -l hostname >/dev/null; srun -N 1 -n 1 true'",
    f"sbatch -A phys -J traps -w n7 -o traps.out --wrap 'trap \"echo caught; exit 7\" TERM; touch traps.on; {LOOP}'",
    "for f in stopped stepped again traps; do until [ -e $f.on ]; do sleep 0.1; done; done",
    "scancel {3} {4} {5} {9}; scontrol requeue {6}",
)
DONE = '[ "$(squeue -h -j {0},{1},{2},{3},{4},{5},{7},{8},{9} -t PD,R,CG)" = "" ] && sleep 3'

ALL = "{0},{1},{2},{3},{4},{5},{7},{8},{9}"
FIELDS = "JobState|Reason|ExitCode|NumNodes|NumCPUs|NodeList|ReqTRES|AllocTRES|StdOut"
CHANGING = (
    r"(?<=\|)(Sched(Main|Backfill)|JobHeldUser|None)(?=[,|])",
    r"(?<=Cyclic\|)\d+|(?<=\|\|)\d{4,5}(?=\|normal)",
    r"(?<=_1\|)\d+",
    r"\d\d:\d\d:\d\d",
    r"20\d\d-\d\d-\d\d",
)
"""Times; which of its two schedulers started a job; the priority, of which fair share is a part; an array element's own id."""

"""Without the lines of stepped.out about the step and its task: srun is sometimes gone before they come, on both sides."""

CASES = [
    *(
        Case(command, setup=SETUP, until=DONE, ignore=CHANGING)
        for command in (
            "cat good.out bad.out signalled.out",
            "cat stopped.out",
            "grep -v -e STEP -e 'task 0' stepped.out | sort",
            "cat traps.out",
            "cat list-1.out list-2.out wide.out",
            "ls never.out",
            f"squeue -h -t all -S i -j {ALL} -o '%i %j %t %r %R %C %D'",
            f"sacct -j {ALL}",
            f"sacct -X -j {ALL}",
            f"sacct -P -j {ALL} -o JobID,JobName,State,ExitCode,DerivedExitCode,AllocCPUS,AllocNodes,NNodes,NTasks,NodeList",
            f"sacct -P -j {ALL} -o JobID,AllocTRES,ReqTRES,ReqMem,ReqCPUS,ReqNodes,Layout,Priority,QOS,Timelimit,WorkDir",
            f"sacct -P -X -j {ALL} -o JobID,JobIDRaw,User,Group,UID,GID,Account,Partition,Cluster,Reason,Flags,Constraints",
            "sacct -P -j {3} -s CA -o State",
            "sacct -n -X -j {1} -o State%30,ExitCode",
            "sacct -j {7}_2 -P -o JobID,State",
            "sacct -j {8}.0 -P -o JobID,JobName,State,NTasks",
            "sacct -j 999999",
            "sacct -j {0} -o nonsense",
            f"scontrol show job {{1}} | grep -oE '({FIELDS})=\\S*'",
            f"scontrol show job {{3}} | grep -oE '({FIELDS})=\\S*'",
            "scontrol show job {6} | grep -oE '(JobState|Reason|Restarts|Requeue|ExitCode)=\\S*'",
        )
    ),
]
