"""scontrol update of jobs, key by key: good values, bad ones, none, shortened keys, several jobs at once, steps."""

from __future__ import annotations

from sides import Case

HELD = ("sbatch -H -J other --wrap true",)
RUNS = ("sbatch -J runs -t 5 -w n3 --wrap 'srun -t 3 sleep 300'",)
RUNNING = "scontrol show step {0}.0 | grep -q State=RUNNING"
PAIR = (
    "sbatch -H -J first -t 10 --wrap true",
    "sbatch -H -J second -t 10 --wrap true",
    "sbatch -H -a 1-3 -J list -t 10 --wrap true",
)

_VALUES = {
    "AdminComment": "hello",
    "AdminComment+": "x",
    "SystemComment": "hello",
    "SiteFactor": "5 -5 0 foo 99999999999 2147483645",
    "ArrayTaskThrottle": "2 0 -1 foo",
    "Clusters": "reference nosuch",
    "ClusterFeatures": "x",
    "Comment": "hello",
    "Comment+": "x",
    "DelayBoot": "5 1:00 foo -1 infinite",
    "Extra": "hello",
    "Extra+": "x",
    "TimeLimit": "5 +5 -1 foo 1-0 -100 +foo 1:00:00 unlimited",
    "TimeLimit+": "5 foo +5",
    "TimeLimit-": "5 100 foo",
    "TimeMin": "5 foo 0 100",
    "TimeMin+": "5",
    "Priority": "5 0 -1 foo 4294967295 4294967294 4294967293 99999999999",
    "Nice": "5 -5 foo 0 99999999999 2147483645 2147483646 5x",
    "CPUsPerTask": "0 -1 foo 65535",
    "CpusPerTres": "gres/gpu:2 gpu:2 gres/gpu=2",
    "NumCPUs": "0 -1 foo 4-2 4x",
    "NumTasks": "0 -1 foo",
    "Requeue": "0 1 2 yes no foo -1",
    "NumNodes": "2 0 foo 2-1",
    "ReqNodes": "2",
    "ReqSockets": "1 0 -1 foo 9",
    "ReqCores": "2 0 -1 foo 99",
    "TasksPerNode": "0 foo -1",
    "ReqThreads": "1 2 0 foo",
    "MinCPUsNode": "0 -1 foo",
    "MinMemoryNode": "100 1G foo -1",
    "MinMemoryCPU": "50 1G foo",
    "MinTmpDiskNode": "5 0 1G foo -1 99999",
    "Partition": "cpu gpu gpu,cpu nosuch",
    "QOS": "nosuch normal",
    "ReservationName": "nosuch",
    "Name": "foo",
    "JobName": "foo",
    "WCKey": "x *x",
    "StdErr": "/tmp/x rel.e",
    "StdIn": "/tmp/x",
    "StdOut": "/tmp/x rel",
    "Switches": "1 1@5 5@1:00",
    "wait-for-switch": "60 foo 0 -1",
    "OverSubscribe": "yes no y n 1 0 2 foo",
    "Shared": "yes",
    "Contiguous": "yes no y n 1 0 foo",
    "CoreSpec": "1 0 -1 * foo",
    "MemPerTres": "gres/gpu:100 gpu:100",
    "ThreadSpec": "1 0 -1 * foo",
    "TresBind": "gres/gpu:closest gpu:none foo",
    "TresFreq": "gpu:high foo",
    "TresPerJob": "gres/gpu:2 gpu:2 gres/gpu=2",
    "TresPerNode": "gres/gpu:2 gpu:1 gres/gpu=2 gres/gpu:9",
    "TresPerSocket": "gres/gpu:2",
    "ExcNodeList": "n1 n[1-2] nosuch n1,nosuch ALL",
    "NodeList": "n1 n[1-2] nosuch",
    "ReqNodeList": "n1 n[1-2] nosuch n1,n5",
    "Features": "a100 cpu nosuch a100|cpu a100&ib [a100|cpu] a100*1",
    "Prefer": "a100 nosuch",
    "Gres": "gpu:1 gpu:a100:2 gpu gres/gpu:2 foo none gpu:9 gpu:2,gpu:a100:1",
    "BurstBuffer": "x",
    "Dependency": "singleton afterok:999999 foo afterok:1",
    "Licenses": "matlab matlab:2 matlab:9 foo matlab:x",
    "EligibleTime": "now+1hour foo 2030-01-01T00:00:00",
    "StartTime": "now+1hour foo",
    "EndTime": "now now+1hour foo 2020-01-01",
    "Reboot": "yes no y n 1 0 foo",
    "UserID": "root alice nosuch 0 foo",
    "Deadline": "now now+1hour now+2days foo 2020-01-01",
    "WorkDir": "/tmp rel",
    "MailType": "END ALL END,FAIL none foo BEGIN,foo",
    "MailUser": "bob a@b",
    "MCSLabel": "x",
}
_UNKNOWN = """
Container Exclusive Segment Network NoSuch JobState Dist NtasksPerN NtasksPerNode MinMemory Command Reason Gres+ Features+ Name+
NumNodes+ Nice+ Nice- Priority+ Comment- Licenses+ Partition+ NoSuch+
""".split()  # noqa: SIM905
_WITHOUT_EMPTY = ("AdminComment", "NumCPUs", "MinMemoryNode", "MinMemoryCPU", "StdOut", "Switches", "Gres", "WorkDir")
"""Keys of which nothing at all sets what no job is meant to have."""


def _tried(key: str, values: str) -> Case:
    """Each value in turn on one held job, and which words of the record are others than before."""
    words = values.split() + ([] if key in _WITHOUT_EMPTY else [""])
    quoted = " ".join(f"'{word}'" for word in words)
    return Case(
        "s() { scontrol -o show job $j | tr ' ' '\\n' | grep -vE '^(LastSchedEval|AccrueTime|Scheduler|RunTime|JobId)='; };"
        " j=$(sbatch -H -J zz -t 10 --parsable --wrap true); s > old;"
        f' for v in {quoted}; do echo "[$v]"; scontrol update jobid=$j "{key}=$v"; echo "exit $?"; s > new;'
        " diff old new | grep '^[<>]'; mv new old; done 2>&1 | sed \"s/$j/JOB/g\"; scancel $j",
        setup=HELD,
        title=f"job: {key}",
    )


_SHORTENED = """
AdminComment SiteFactor ArrayTaskThrottle Clusters ClusterFeatures Comment DelayBoot Extra TimeLimit TimeMin Priority Nice
CPUsPerTask CpusPerTres NumCPUs NumTasks ReqProcs Requeue ReqNodes NumNodes ReqSockets ReqCores TasksPerNode ReqThreads
MinCPUsNode MinMemoryNode MinMemoryCPU MinTmpDiskNode Partition QOS ReservationName Name JobName WCKey StdErr StdIn StdOut
Switches wait-for-switch OverSubscribe Shared Contiguous CoreSpec MemPerTres ThreadSpec TresBind TresFreq TresPerJob
TresPerNode TresPerSocket TresPerTask ExcNodeList NodeList ReqNodeList Features Prefer Gres Account BurstBuffer Dependency
Licenses EligibleTime StartTime EndTime Reboot UserID Deadline WorkDir MailType MailUser MCSLabel
""".split()  # noqa: SIM905

_SEVERAL = """
scontrol update jobid={0},{1} comment=z; squeue -h -o '%j %k' -j {0},{1} -S i
scontrol update jobid={0},999999,{1} comment=y; squeue -h -o '%j %k' -j {0},{1} -S i
scontrol update "jobid={0} {1}" comment=x; squeue -h -o '%j %k' -j {0},{1} -S i
scontrol update jobid={0} jobid={1} comment=w; squeue -h -o '%j %k' -j {0},{1} -S i
scontrol update jobid= comment=w
scontrol update jobid comment=w
scontrol update job {0} comment=v; squeue -h -o '%j %k' -j {0}
scontrol update jobid {0} comment u nice; squeue -h -o '%j %k %y' -j {0}
scontrol update jobid={0} comment
scontrol update jobid={0} nice comment=t; squeue -h -o '%j %k %y' -j {0}
scontrol update jobid={2}_[1-3] comment=w2; squeue -h -j {2} -o '%i %k'
scontrol update jobid={2}_9 comment=w4
scontrol update jobid={2}_ comment=w4
scontrol update jobid={2}_[ comment=w4
scontrol update jobid={2} timelimit+=5
scontrol update jobid={2}_[1-2] timelimit+=5
scontrol update jobid={0},{1} timelimit+=5
scontrol update timelimit+=5 jobid={0}
scontrol update jobid={2} numnodes=2
scontrol update jobid={0},{1} numnodes=2
scontrol update jobid=999999 numnodes=2
scontrol update jobid=999999 timelimit+=2
scontrol update jobid={0}+1 comment=x
scontrol update jobid={0}.0 comment=x
scontrol update jobid=*{0} comment=x
scontrol update jobid={0} comment=x foo=bar comment=y; squeue -h -o '%j %k' -j {0}
scontrol update jobid={0} comment=q qos=nosuch name=newname; squeue -h -o '%j %k' -j {0}
scontrol update jobid={0} name=newname partition=nosuch comment=q2; squeue -h -o '%j %k' -j {0}
scontrol update jobname=nosuch comment=x
scontrol update jobname=nosuch userid=alice comment=x
scontrol update name=second comment=x
scontrol update jobname=nosuch
scontrol update jobid={0} stepid={0}.0 comment=x
scontrol update res=nosuch jobid={0} comment=x
scontrol update nod=nosuch weight=1
scontrol update no=nosuch weight=1
scontrol update jo={0} comment=1
scontrol update re=nosuch duration=3
scontrol update slurmctlddebug=foo
scontrol update slurmctlddebug=10
scontrol update slurmctlddebug=
scontrol update s=3
scontrol update powercap=3
scontrol update frontendname=x state=down
scontrol update licenses=x
""".strip().splitlines()

_STEPS = """
scontrol update stepid={0}.0 timelimit=2; scontrol show step {0}.0 | head -1
scontrol update stepid={0}.0 timelimit=+2; scontrol show step {0}.0 | head -1
scontrol update stepid={0}.0 timelimit=-1; scontrol show step {0}.0 | head -1
scontrol update stepid={0}.0 timelimit+=1
scontrol update stepid={0} timelimit=4; scontrol show step {0}.0 | head -1
scontrol update stepid={0}.9 timelimit=4
scontrol update stepid=999999.0 timelimit=4
scontrol update stepid=foo timelimit=4
scontrol update stepid= timelimit=4
scontrol update stepid={0}.0 timelimit=foo
scontrol update stepid={0}.0 timelimit=-100
scontrol update stepid={0}.0 timelimit=unlimited; scontrol show step {0}.0 | head -1
scontrol update stepid={0}.0 timelimit=50; scontrol show step {0}.0 | head -1
scontrol update stepid={0}.0 name=x
scontrol update stepid={0}.0 compfile=/tmp/x
scontrol update stepid={0}.0
scontrol update stepid={0}.0 foo
scontrol update step={0}.0 t=3
scontrol update step={0}.0 ti=3; scontrol show step {0}.0 | head -1
scontrol update ste={0}.0 ti=3
scontrol update stepid {0}.0 ti=3
""".strip().splitlines()

CASES = [
    *(_tried(key, values) for key, values in _VALUES.items()),
    *(_tried(key, "1") for key in _UNKNOWN),
    *(
        Case(
            f"k={key}; for ((n = 1; n <= ${{#k}}; n++)); do scontrol update jobid=999999 ${{k:0:n}}=foo; done",
            title=f"job: shortened {key}",
        )
        for key in _SHORTENED
    ),
    *(Case(command, setup=PAIR) for command in _SEVERAL),
    *(Case(command, setup=RUNS, until=RUNNING) for command in _STEPS),
    Case("scontrol update stepid={0}.0 timelimit=2", setup=RUNS, until=RUNNING, user="alice", title="alice: a step"),
    Case("scontrol update stepid=999999.0 timelimit=2", setup=RUNS, until=RUNNING, user="alice", title="alice: no step"),
]
