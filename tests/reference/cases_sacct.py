"""sacct on both sides: every field, forms of output, filters and refusals, of jobs that ended, run and wait."""

from __future__ import annotations

from sides import Case

FIELDS = tuple(
    "Account AdminComment AllocCPUS AllocNodes AllocTRES AssocID AveCPU AveCPUFreq AveDiskRead AveDiskWrite AvePages AveRSS "  # noqa: SIM905
    "AveVMSize BlockID Cluster Comment Constraints ConsumedEnergy ConsumedEnergyRaw Container CPUTime CPUTimeRAW DBIndex "
    "DerivedExitCode Elapsed ElapsedRaw Eligible End Exclusive ExitCode Extra FailedNode Flags GID Group JobID JobIDRaw "
    "JobName Layout Licenses MaxDiskRead MaxDiskReadNode MaxDiskReadTask MaxDiskWrite MaxDiskWriteNode MaxDiskWriteTask "
    "MaxPages MaxPagesNode MaxPagesTask MaxRSS MaxRSSNode MaxRSSTask MaxVMSize MaxVMSizeNode MaxVMSizeTask McsLabel MinCPU "
    "MinCPUNode MinCPUTask NCPUS NNodes NodeList NTasks OriginalSLUID OverSubscribe Partition Planned PlannedCPU PlannedCPURAW "
    "Priority QOS QOSRAW QOSREQ Reason ReqCPUFreq ReqCPUFreqGov ReqCPUFreqMax ReqCPUFreqMin ReqCPUS ReqMem ReqNodes "
    "ReqReservation ReqTRES Reservation ReservationId Restarts SegmentSize SLUID Start State StdErr StdIn StdOut Submit "
    "SubmitLine Suspended SystemComment SystemCPU Timelimit TimelimitRaw TotalCPU TRESUsageInAve TRESUsageInMax "
    "TRESUsageInMaxNode TRESUsageInMaxTask TRESUsageInMin TRESUsageInMinNode TRESUsageInMinTask TRESUsageInTot TRESUsageOutAve "
    "TRESUsageOutMax TRESUsageOutMaxNode TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask "
    "TRESUsageOutTot UID User UserCPU WCKey WCKeyID WorkDir".split()
)
"""Every field of --format."""

SETUP = (
    "sleep 1; sbatch -A phys -W -J ends -w n5 -c 2 -C cpu --comment=words -t 3 --wrap 'exit 3'",
    "sleep 1; sbatch -A phys -W -J steps -w n3,n4 -n2 --gres=gpu:1 --mem=300 -e e-%j"
    " --wrap 'srun -n1 -N1 true; srun -n1 -N1 false'",
    "sleep 1; sbatch -A phys -W -J list -w n5 -a 1-2 --nice=3 -o out-%A-%a --wrap 'true'",
    "sleep 1; sbatch -A phys -J runs -w n6 --exclusive -t 0 -p cpu --wrap 'sleep 120'",
    "sleep 1; sbatch -A phys -J waits -H -N 2-3 --begin=now+1hour -L matlab:1 --requeue --wrap 'true'",
    "sleep 1; sbatch -A phys -J tasks -H -a 1-5:2%1 -q normal -x n1 --open-mode=append --wrap 'true'",
    "sleep 1; sbatch -A phys -J gone -H --wrap 'true' && scancel -u root -n gone",
    "sleep 1; sbatch -A phys -J killed -w n5 -W --wrap 'kill -TERM $$'",
)
UNTIL = "[ $(sacct -n -X -j {0},{1},{2},{7} -s CD,F | wc -l) = 5 ] && squeue -h -n runs -t R | grep -q ."
ALL = ",".join(f"{{{number}}}" for number in range(8))
ENDED = "{0},{1},{2},{7}"

UNLIKE = {
    "AssocID": "ids of associations are the database's own",
    "Priority": "no fair share yet",
    "QOSRAW": "ids of QOS are the database's own",
}
_NUMBERS = (r" *[0-9.]+[KMGT]? *",)
_TIMES = (r" *\b\d\d:\d\d(:\d\d|\.\d+)\b *",)
_SIZES = (r" *(n\d+|\b[0-9.]+[KMG]?)\b *",)
_AMOUNTS = (r"=[^,|\n]*",)
_OF_NUMBERS = ("AveCPUFreq", "CPUTimeRAW", "ElapsedRaw", "PlannedCPURAW")
_OF_TIMES = ("AveCPU", "MinCPU", "CPUTime", "Elapsed", "Planned", "PlannedCPU", "SystemCPU", "UserCPU", "TotalCPU", "Suspended")
MEASURED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_NUMBERS, _NUMBERS),
    **dict.fromkeys(_OF_TIMES, _TIMES),
    **{name: _SIZES for name in FIELDS if name.startswith(("Ave", "Max", "Min")) and name not in (*_OF_NUMBERS, *_OF_TIMES)},
    **{name: _AMOUNTS for name in FIELDS if name.startswith("TRESUsage")},
    "Flags": (r"Sched\w+",),
    "DBIndex": (r"\b\d{17,20}\b",),
    "JobIDRaw": (r"\b\d+(?=\.batch\b|\s)",),
}
"""Fields that are measured, or that count seconds, with what of them is blanked."""

_FORMS = (
    f"sacct -j {ALL}",
    f"sacct -j {ALL} -X",
    f"sacct -j {ALL} -b",
    f"sacct -n -j {ALL}",
    f"sacct -p -j {ALL}",
    f"sacct -P -j {ALL}",
    f"sacct -P --delimiter=';' -j {ENDED}",
    f"sacct -p --delimiter=ab -j {ENDED}",
    f"sacct -P --delimiter= -j {ENDED}",
    f"sacct --delimiter=, -j {ENDED}",
    f"sacct -j {ALL} --array -o jobid,state",
    f"sacct -j {ALL} -o jobid%20,jobname%3,state%-12,exitcode%0",
    f"sacct -j {ALL} -o jobid%-5,jobname%+9,state%x",
    f"sacct -j {ALL} -o JOBID,Job,St",
    f"sacct -j {ALL} -o jobid,,state",
    f"sacct -j {ALL} -o jobid,state,jobid",
    f"sacct -j {ENDED} -o jobid,reqmem,reqtres%40 --units=K",
    f"sacct -j {ENDED} -o jobid,reqmem,reqtres%40 --units=M",
    f"sacct -j {ENDED} -o jobid,reqmem,reqtres%40 --units=G",
    f"sacct -j {ENDED} -o jobid,reqmem,reqtres%40 --units=T",
    f"sacct -j {ENDED} -o jobid,reqmem,reqtres%40 --units=P",
    f"sacct -j {ENDED} -o jobid,reqmem,alloctres%40 --noconvert",
    f"sacct -j {ENDED} --units=X",
    f"sacct -j {ENDED} --units=",
    f"sacct -j {ENDED} --units=MG",
    "sacct -j {1}.0",
    "sacct -j {1}.batch",
    "sacct -j {1}.0,{1}.1 -o jobid,jobname",
    "sacct -j {1}.7",
    "sacct -j {2}_1",
    "sacct -j {2}_1.batch",
    "sacct -j {2}_9",
    "sacct -j {5}_3",
    "sacct -j {0}+0",
    f"sacct -j {ALL} -s F",
    f"sacct -j {ALL} -s CD,R -X",
    f"sacct -j {ALL} -s pending -X",
    f"sacct -j {ALL} -s ca",
    f"sacct -j {ALL} --name=steps,list",
    f"sacct -j {ALL} -N n3",
    f"sacct -j {ALL} -N n[3-5] -X",
    f"sacct -j {ALL} -r cpu",
    f"sacct -j {ALL} -i 2 -X",
    f"sacct -j {ALL} -i 1-2 -X",
    f"sacct -j {ALL} -I 2 -X",
    f"sacct -j {ALL} -k 3 -X",
    f"sacct -j {ALL} -k 1 -K 20 -X",
    f"sacct -j {ALL} -q normal -X",
    f"sacct -j {ALL} -C cpu -X",
    f"sacct -j {ALL} --constraints=cpu -X",
    f"sacct -j {ALL} -u root -X",
    f"sacct -j {ALL} -u alice",
    f"sacct -j {ALL} -g root -X",
    f"sacct -j {ALL} --gid=0 -X",
    f"sacct -j {ALL} --flags=StartReceived -X -o jobid",
    f"sacct -j {ALL} -R JobHeldUser -X",
    f"sacct -j {ALL} -D -X",
    f"sacct -j {ALL} -T -X",
    f"sacct -j {ALL} -M reference -X",
    f"sacct -j {ALL} -L -X",
    f"sacct -j {ALL} --use-local-uid -X -o user",
    f"sacct -j {ALL} -o stdout%40,stderr%60,stdin --expand-patterns -X",
    "SACCT_FORMAT=jobid,user sacct -j {0}",
    "SACCT_FORMAT= sacct -j {0}",
    "SLURM_TIME_FORMAT=%Y sacct -j {0} -X -o submit",
    "SLURM_TIME_FORMAT=standard sacct -j {0} -X -o submit",
    "sacct -B -j {0}",
    "sacct --batch-script -j {0},{2}",
    "sacct --env-vars -j 999999",
)
_ALONE = (
    "sacct -j 999999",
    "sacct -j 999999,999998 -X",
    "sacct -j abc",
    "sacct -j 0",
    "sacct -j 1_x",
    "sacct -j 1.x",
    "sacct -j -1",
    "sacct -o",
    "sacct -o foo -j 999999",
    "sacct -o jobid,foo -j 999999",
    "sacct -o '' -j 999999",
    "sacct -s foo",
    "sacct -s ''  -j 999999",
    "sacct -s CG",
    "sacct -u nosuch",
    "sacct -g nosuch",
    "sacct -N nosuch -j 999999",
    "sacct -N 'n[1' -j 999999",
    "sacct -i x",
    "sacct -i 2-1 -j 999999",
    "sacct -I x",
    "sacct -k x",
    "sacct -F foo",
    "sacct -R foo",
    "sacct -S foo",
    "sacct -E foo",
    "sacct -S now -E now-1hour",
    "sacct -Z",
    "sacct --foo",
    "sacct --no",
    "sacct --format",
    "sacct foo",
    "sacct -M foo",
    "sacct -c",
    "sacct -f /dev/null",
    "sacct --whole-hetjob=x",
    "sacct --usage",
    "sacct -e",
    "sacct --helpformat",
    "sacct --helpstate",
    "sacct --helpreason",
    "sacct -B",
    "sacct --env-vars",
    "sacct --autocomplete=j",
    "sacct --autocomplete=--no",
)


def _fields() -> list[Case]:
    forms = [(name, f"sacct -P -j {ALL} -o jobid,{name}") for name in FIELDS]
    forms += [
        (name, f"sacct -n -j {ENDED} -o {name}%30,{name}%-9") for name in FIELDS if name not in ("SLUID", "OriginalSLUID")
    ]
    return [
        Case(command, setup=SETUP, until=UNTIL, ignore=MEASURED.get(name, ())) for name, command in forms if name not in UNLIKE
    ]


CASES: list[Case] = [
    *(Case(command) for command in _ALONE),
    *(Case(command, setup=SETUP, until=UNTIL) for command in _FORMS),
    *_fields(),
    Case(f"sacct -j {ENDED} -P -l", setup=SETUP, until=UNTIL, ignore=_NUMBERS),
]
