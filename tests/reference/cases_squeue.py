"""squeue on both sides. Jobs are held or sleep, so that a situation stays as it is while it is compared."""

from __future__ import annotations

from sides import Case

HELD = (
    "sbatch -H -J one --comment hello --wrap 'sleep 1'",
    "sbatch -H -J list -a 1-3%2 --wrap 'sleep 1'",
    "sbatch -H -J steps -a 0-99:3 -p cpu --wrap 'sleep 1'",
    "sbatch -H -J both -p debug,cpu -N 2-3 -c 2 --mem=2G --wrap 'sleep 1'",
    "sbatch -H -J gpus -p gpu --gres=gpu:a100:2 -C 'a100&ib' -w n1 -x n2 --nice=7 --wrap 'sleep 1'",
    "sbatch -J later --begin=now+1hour -L matlab:1 --wrap 'sleep 1'",
)
RUNNING = (
    "sbatch -J wide -w n3,n4 -n 4 -t 5 --gres=gpu:1 --wrap 'sleep 120'",
    "sbatch -J whole -w n5 --exclusive -p cpu -t 0 --wrap 'sleep 120'",
    "sbatch -J ends -w n6 --wrap 'exit 3'",
)
RUNS = "[ $(squeue -h -t R -j {0},{1} | wc -l) = 2 ] && [ $(squeue -h -t F -j {2} | wc -l) = 1 ]"

PLANNED = (r"(?<=\|matlab:1\|N/A\|)\S+",)
"""Only slurmk plans jobs that are to begin later."""

NAMES = tuple(
    "Account AccrueTime admin_comment AllocNodes AllocSID ArrayJobId ArrayTaskId AssocId BatchFlag BatchHost BoardsPerNode "  # noqa: SIM905
    "BurstBuffer BurstBufferState Cluster ClusterFeature Command Comment Container ContainerId ContainerType Contiguous Cores "
    "CoreSpec CPUsPerTask cpus-per-task cpus-per-tres CronJob Deadline DelayBoot Dependency DerivedEC EligibleTime EndTime "
    "ExcNodes Exclusive exit_code Feature GroupId GroupName HetJobId HetJobIdSet HetJobOffset JobArrayId JobId LastSchedEval "
    "Licenses LicensesAlloc MaxCPUs MaxNodes mem-per-tres MCSLabel MinCPUs MinMemory MinTime MinTmpDisk Name Network Nice "
    "NodeList NTPerCore NTPerNode NTPerSocket NTPerBoard NumCPUs NumNodes NumTasks Origin OriginRaw OverSubscribe Partition "
    "PendingTime PreemptTime Prefer Priority PriorityLong Profile QOS Reason ReasonList Reboot ReqNodes ReqSwitch Requeue "
    "Reservation ResizeTime RestartCnt SchedNodes SCT SegmentSize SiblingsActive SiblingsActiveRaw SiblingsViable "
    "SiblingsViableRaw SLUID Sockets SPerBoard StartTime State StateCompact StdErr StdIn StdOut SubmitTime system_comment "
    "Threads TimeLeft TimeLimit TimeUsed tres-alloc tres-bind tres-freq tres-per-job tres-per-socket tres-per-task UserId "
    "UserName Wait4Switch WCKey WorkDir gres packjobid packjobidset packjoboffset shared tres tres-per-node".split()
)
"""Every field of -O, and the names that are taken besides."""
STEP_NAMES = tuple(
    "ArrayJobId ArrayTaskId Cluster Container ContainerId ContainerType CPUFreq cpus-per-tres Gres JobId mem-per-tres "  # noqa: SIM905
    "Network Nodes NodeList NumCPUs NumTasks Partition ResvPorts StartTime StdErr StdIn StdOut StepId StepName StepState "
    "TimeLimit TimeUsed tres-bind tres-freq tres-per-job tres-per-node tres-per-socket tres-per-step tres-per-task UserId "
    "UserName Name State JobArrayId SLUID SrunHost SrunPid TaskDistribution Account Reason".split()
)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SORTS = tuple(f"{sign}{letter}" for letter in LETTERS if letter != "V" for sign in ("", "-"))

_ALONE = (
    "squeue -j 999999",
    "squeue -j 999999,999998",
    "squeue -j abc",
    "squeue -j 0",
    "squeue -j '1_[1-2]'",
    "squeue -u nosuch",
    "squeue -p nosuch",
    "squeue -A nosuch",
    "squeue -t foo",
    "squeue -t ''",
    "squeue -w nosuch",
    "squeue -w 'n[1-'",
    "squeue -S foo",
    "squeue -S '!'",
    "squeue -s foo",
    "squeue -i 0",
    "squeue -o",
    "squeue -Z",
    "squeue --foo",
    "squeue -M foo",
    "squeue --helpstate",
    "squeue --helpformat",
    "squeue --helpFormat",
    "squeue --running-over=0",
    "squeue -o %i -O jobid",
)
_HELD = (
    "squeue",
    "squeue -P",
    "squeue -r -n one,list,both,gpus,later",
    "squeue -r -P -n one,list,both,gpus,later",
    "squeue -h -S i",
    "squeue -S j",
    "squeue -S -P,i",
    "squeue -t PD -u root",
    "squeue -n one,list",
    "squeue -p gpu",
    "squeue -L matlab",
    "squeue -j {1}_2",
    "squeue -j {1}_9",
    "squeue --me",
    "squeue --notme",
    "squeue --only-job-state",
    "squeue --only-job-state -l",
    "squeue -h -o '%i|%.9P|%5j|%.5j|%k|%b|%c|%d|%f|%g|%h|%l|%m|%n|%o|%q|%r|%t|%u|%v|%w|%x|%y|%z'",
    "squeue -h -o '%A|%B|%C|%D|%E|%F|%G|%H|%I|%J|%K|%L|%M|%N|%O|%P|%R|%T|%U|%W|%X|%Y'",
    "squeue -o 'xx %.18i %!i %5_i'",
    "squeue -o '[%1f] [%.1f] [%3f]'",
    "squeue -h -O 'JobID:18,Name:.20,State:|,UserName'",
    "squeue -O 'jobid:foo,name:3bar,xyz'",
    "squeue -h -O 'cpus-per-task,tres-per-node,tres-alloc:60,StdOut:,StdIn:,MinMemory,NTPerNode,Requeue'",
    "SQUEUE_FORMAT2=jobid,name squeue",
    "SQUEUE_SORT=x squeue",
    "SLURM_BITSTR_LEN=30 squeue -h -o %i",
)
"""Without -r for the array "steps": the reference leaves out the last element of a long array with steps."""

_MORE = (
    "SQUEUE_ACCOUNT=nosuch squeue -h -o %i",
    "SQUEUE_ALL=1 squeue -h -o %i -n one",
    "SQUEUE_ARRAY=1 squeue -h -o %i -n list",
    "SQUEUE_ARRAY= squeue -h -o %i -n list",
    "SQUEUE_NAMES=one,list squeue -h -o %i",
    "SQUEUE_NAMES=one squeue -h -o %i -n list",
    "SQUEUE_FORMAT='%i %j' squeue -n one,list",
    "SQUEUE_FORMAT='%i %j' squeue -n one,list -o %A",
    "SQUEUE_FORMAT='%i %j' squeue -n one,list -O name",
    "SQUEUE_FORMAT='%i %j' squeue -n one,list --start -h",
    "SQUEUE_FORMAT='%i %j' squeue -n one,list -l -h",
    "SQUEUE_FORMAT='%i %j' squeue -n one,list -s",
    "SQUEUE_FORMAT= squeue -n one",
    "SQUEUE_FORMAT2=jobid,name SQUEUE_FORMAT=%j squeue -n one",
    "SQUEUE_FORMAT2=jobid:7,foo squeue -n one",
    "SQUEUE_LICENSES=matlab squeue -h -o %j",
    "SQUEUE_PARTITION=gpu squeue -h -o %j",
    "SQUEUE_PARTITION=gpu squeue -h -p cpu -o %j",
    "SQUEUE_PRIORITY=1 squeue -h -n both -o '%j %P'",
    "SQUEUE_QOS=normal squeue -h -n one -o %j",
    "SQUEUE_QOS=nosuch squeue -h -n one -o %j",
    "SQUEUE_SORT=j squeue -h -o %j",
    "SQUEUE_SORT=j squeue -h -S -j -o %j",
    "SQUEUE_STATES=R squeue -h -n one -o %j",
    "SQUEUE_STATES=foo squeue -h -n one",
    "SQUEUE_USERS=root squeue -h -n one -o %j",
    "SQUEUE_USERS=alice squeue -h -n one -o %j",
    "SQUEUE_FEDERATION=1 squeue -h -n one -o %j",
    "SQUEUE_LOCAL=1 squeue -h -n one -o %j",
    "SLURM_CLUSTERS=reference squeue -n one -o %j",
    "SLURM_TIME_FORMAT=%Y squeue -n one -o '%V %S %.6V'",
    "SLURM_TIME_FORMAT=relative squeue -n one -o '%S'",
    "SLURM_TIME_FORMAT=standard squeue -n one -o '%V'",
    "SLURM_BITSTR_LEN=0 squeue -h -n list -o '%i %K'",
    "SLURM_BITSTR_LEN=5 squeue -h -n list -o '%i %K'",
    "SLURM_BITSTR_LEN=x squeue -h -n list -o '%i %K'",
    "squeue -n one -M reference",
    "squeue -n one -h -M all",
    "squeue -n one -M reference,foo",
    "squeue -n one -M ''",
    "squeue -n one --local",
    "squeue -n one --sib",
    "squeue -n one --sibling -h",
    "squeue -n one --federation -h",
    "squeue -n one --hide -h",
    "squeue -n one -a -h",
    "squeue -n one --expand-patterns -h",
    "squeue -h -A '' -o %j",
    "squeue -h -A phys,chem -n nosuch -o %j",
    "squeue -h -q normal -n one -o %j",
    "squeue -h -q normal,high -n one -o %j",
    "squeue -h -q '' -n one -o %j",
    "squeue -h -R foo -o %j",
    "squeue -h -R '' -n one -o %j",
    "squeue -h -L matlab,foo -o %j",
    "squeue -h -L foo -o %j",
    "squeue -h -L '' -o %j",
    "squeue -h -n '' -o %j",
    "squeue -h -n nosuch",
    "squeue -h -n one,,list -o %j",
    "squeue -h -p gpu,cpu -o %j",
    "squeue -h -p '' -o %j -n one",
    "squeue -h -p gpu,nosuch -o %j",
    "squeue -h -u root,alice -n one -o %j",
    "squeue -h -u 0 -n one -o %j",
    "squeue -h -u 0x0 -n one -o %j",
    "squeue -h -u nosuch,root -n one -o %j",
    "squeue -h -u '' -n one -o %j",
    "squeue -h --me --notme -n one",
    "squeue -h --me -u alice -n one -o %j",
    "squeue -h -t pending -n one -o %j",
    "squeue -h -t Pending,RUNNING -n one -o %j",
    "squeue -h -t pd,r -n one -o %j",
    "squeue -h -t ALL,R -n one -o %j",
    "squeue -h -t , -n one -o %j",
    "squeue -h -t PD, -n one -o %j",
    "squeue -h -t CG -n one -o %j",
    "squeue -h -t pend -n one -o %j",
    "squeue -h -w n1 -n one -o %j",
    "squeue -h -w n[1-8] -n one -o %j",
    "squeue -h -w '' -n one -o %j",
    "squeue -h --running-over=1 -n one",
    "squeue -h --running-under=1 -n one",
    "squeue -h --running-over=x",
    "squeue -h --running-over=",
    "squeue -h -j {0} -n list",
    "squeue -h -j {0},{1} -o %i",
    "squeue -h -j {0},999999 -o %i",
    "squeue -h -j {1}_1,{1}_3 -o %i",
    "squeue -h -j {1}_[1-2] -o %i",
    "squeue -h -j {0}+0 -o %i",
    "squeue -h -j {0}.0 -o %i",
    "squeue -h -j{0} -o %i",
    "squeue -h --jobs={0} -o %i",
    "squeue -h --job {0} -o %i",
    "squeue -h -j ,{0}, -o %i",
    "squeue -h -j 0,{0} -o %i",
    "squeue -h -j x,{0} -o %i",
    "squeue -h -hj {0} -o %i",
    "squeue -h -rj {1} -o %i",
    "squeue -n one -o %all -h | cut -d'|' -f2-6",
    "squeue -n one -o '%10i|%-10i|%.10i|'",
    "squeue -n one -o '%.3j|%3j|%0j|%.0j'",
    "squeue -n one -o '%'",
    "squeue -n one -o '%%'",
    "squeue -n one -o 'a%%b%ic'",
    "squeue -n one -o '%5'",
    "squeue -n one -o '%.i'",
    "squeue -n one -o 'plain'",
    "squeue -n one -o ''",
    "squeue -n one -o '%i%n%j'",
    "squeue -n one -o '%i\\n%j'",
    "squeue -n one -O ''",
    "squeue -n one -O ,",
    "squeue -n one -O jobid,,name",
    "squeue -n one -O 'jobid, name'",
    "squeue -n one -O JOBID,Name",
    "squeue -n one -O jobid:0,name",
    "squeue -n one -O jobid:.0,name",
    "squeue -n one -O jobid:+5,name",
    "squeue -n one -O jobid:5x:y,name",
    "squeue -n one -O jobid:.5,name:.3",
    "squeue -n one -O jobid:,name:",
    "squeue -n one -O 'name:9|,state:9|'",
    "squeue -n one -O foo",
    "squeue -n one -O foo,bar,name",
    "squeue -n one -O all",
    "squeue -n one -o %i -l",
    "squeue -n one -l -o %i",
    "squeue -n one -l -O jobid",
    "squeue -n one -O jobid -o %i",
    "squeue -n one --start -o %i",
    "squeue -n one --start -h",
    "squeue -n one,list --start -S i",
    "squeue -n one --only-job-state",
    "squeue --only-job-state -j {0}",
    "squeue --only-job-state -j {0},{1}",
    "squeue --only-job-state -j {1}_2",
    "squeue --only-job-state -j {0} -t PD",
    "squeue --only-job-state -j {0} -h",
    "squeue --only-job-state -j {0} -o '%i %T'",
    "squeue --only-job-state -j 999999",
    "squeue --only-job-state -u root",
    "squeue --no",
    "squeue --n",
    "squeue --format",
    "squeue --Format",
    "squeue --hide=x",
    "squeue --jobs -n one -h -o %j",
    "squeue -xx",
    "squeue -hZ",
    "squeue --autocomplete=no",
    "squeue --autocomplete=--sib",
    "squeue --autocomplete=-j",
    "squeue -i x",
    "squeue -i -1",
    "squeue -S i,j -h -o %j",
    "squeue -S +i -h -o %j",
    "squeue -S -i,-j -h -o %j",
    "squeue -S ij -h -o %j",
    "squeue -S '' -h -o %j",
    "squeue -S , -h -o %j",
    "squeue -S i,foo -h -o %j",
    "squeue -P -S P,i -h -o '%j %P'",
    "squeue -r -S i -h -n list -o '%i %K %F'",
)

_RUNNING = (
    "squeue -h -o '%i %j %t %D %C %N %R %B'",
    "squeue -h -t all -j {0},{1},{2} -o '%i %j %t %r %R %N'",
    "squeue -h -t F -j {2} -o %T",
    "squeue -h -w n3 -o '%j'",
    "squeue -h -n whole -o '%l %L %e %h'",
    "squeue -h -O 'jobid,exclusive,tres-alloc:60,exit_code,BatchHost'",
    "squeue -h -s -o '%i %j %P %u %N'",
    "squeue -h -s -O stepid,stepstate,nodes,numtasks",
)

DIFFERENT = {
    "Account": "no accounts yet",
    "a": "no accounts yet",
    "AssocId": "no accounts yet",
    "Priority": "no fair share yet",
    "PriorityLong": "no fair share yet",
    "p": "no fair share yet",
    "Q": "no fair share yet",
}


def _fields(setup: tuple[str, ...], until: str = "") -> list[Case]:
    """Each field alone, by name and by letter, narrow and wide and to the right."""
    forms = [(name, f"squeue -t all -j {JOBS} -O jobarrayid:14,{name}:60") for name in NAMES]
    forms += [(name, f"squeue -t all -h -j {JOBS} -O {name}:.7") for name in NAMES]
    forms += [(letter, f"squeue -t all -j {JOBS} -o '%.14i|%{letter}'") for letter in LETTERS]
    forms += [(letter, f"squeue -t all -h -j {JOBS} -o '%.14i|%.6{letter}|%4{letter}'") for letter in LETTERS]
    return [
        Case(command, setup=setup, until=until, ignore=VARIES.get(name, ()))
        for name, command in forms
        if name not in DIFFERENT and not (name in OF_A_SIDE and f"-h -j {JOBS}" in command)
    ]


JOBS = ",".join(f"{{{number}}}" for number in range(3))
OF_A_SIDE = ("AllocNodes", "LastSchedEval", "PendingTime", "SLUID", "s", "L", "M")
"""What is no longer recognised once it is cut."""
_SECONDS = (r" *\b\d+:\d\d *",)
VARIES: dict[str, tuple[str, ...]] = {
    "PendingTime": (r" *\b\d+ *",),
    "TimeUsed": _SECONDS,
    "TimeLeft": _SECONDS,
    "M": _SECONDS,
    "L": _SECONDS,
    "AllocSID": (r"(?m) *\d+ *$",),
    "SchedNodes": (r"\bn\S+|\(null\)",),
    "Y": (r"\bn\S+|\(null\)",),
    "AllocNodes": (r"(localhost|<host>) *",),
    "LastSchedEval": (r"(<time>|N/A) *",),
    "AccrueTime": (r"(<time>|N/A) *",),
}

_STEPS = (
    "squeue -s",
    "squeue -h -s {0}",
    "squeue -h -s {0}.0",
    "squeue -h -s {0}.x",
    "squeue -h -s {0}.-1",
    "squeue -h -s {0}.extern",
    "squeue -h -s 999999.0",
    "squeue -h -s 0.0",
    "squeue -h -s ''",
    "squeue -h -s ,",
    "squeue -h -s foo.0",
    "squeue -h -s {0}_1.0",
    "squeue -h -s -j {0}",
    "squeue -h -s -j {2}",
    "squeue -h -s -j 999999",
    "squeue -h -s -u root -j {0}",
    "squeue -h -s -u alice",
    "squeue -h -s -p cpu -j {1}",
    "squeue -h -s -p nosuch",
    "squeue -h -s -w n3 -j {0}",
    "squeue -h -s -w n8 -j {0}",
    "squeue -h -s -n nosuch -j {0}",
    "squeue -h -s -t PD -j {0}",
    "squeue -s -O stepid,foo -j {0}",
    "squeue -s -o '%i|%foo' -j {0}",
    "squeue -s -o %all -h -j {0} | cut -c1-20",
    "squeue -s -S i -h -j {0},{1} -o %i",
    "squeue -s -S -i -h -j {0},{1} -o %i",
    "squeue -s -S x -h -j {0} -o %i",
    "squeue -s -l -h -j {0} -o %i",
    "squeue -s -r -h -j {0} -o %i",
    "squeue -s --start -h -j {0} -o %i",
    "squeue -s --noconvert -h -j {0} -o %i",
    "squeue -h -t R,F -j {0},{1},{2} -o '%i %t %T'",
    "squeue -h -t FAILED -j {2} -o '%i %t %T %r'",
    "squeue -h -t CD -j {2}",
    "squeue -h -j {2}",
    "squeue -h -w n3,n5 -n wide,whole -o %j",
    "squeue -h -w n3 -n whole -o %j",
    "squeue -h --running-over=100 -n wide -o %j",
    "squeue -h --running-under=100 -n wide -o %j",
    "squeue -h --only-job-state -j {0},{1},{2}",
    "squeue -h --only-job-state -j {0},{1},{2} -t R",
    "squeue -h --start -j {0}",
)
STEP_TIMES = (r" *\b\d+:\d\d\b",)

CASES = [
    *(Case(command) for command in _ALONE),
    *(Case(command, setup=HELD, ignore=PLANNED) for command in _HELD),
    *(Case(command, setup=HELD) for command in _MORE),
    Case("squeue -h -n one extra", setup=HELD, differs="--usage is in words of our own"),
    Case("squeue -n one -o '%99999i' | wc -c", setup=HELD, differs="a column is at most 65536 wide"),
    *_fields(HELD),
    *(Case(f"squeue -h -S {key} -o %i", setup=HELD) for key in SORTS),
    *(Case(command, setup=RUNNING, until=RUNS) for command in _RUNNING),
    *(Case(command, setup=RUNNING, until=RUNS, ignore=STEP_TIMES) for command in _STEPS),
    Case("squeue -h -s {0}.batch", setup=RUNNING, until=RUNS, differs="Slurm shows no step that is named in a word apart"),
    *_fields(RUNNING, RUNS),
    *(Case(f"squeue -s -O stepid,{name}:40", setup=RUNNING, until=RUNS, ignore=VARIES.get(name, ())) for name in STEP_NAMES),
    *(
        Case(f"squeue -s -o '%i|%{letter}|%.7{letter}'", setup=RUNNING, until=RUNS, ignore=VARIES.get(letter, ()))
        for letter in LETTERS
    ),
]
