"""scontrol update of single fields of a held job, and of ends and priorities."""

from __future__ import annotations

from sides import Case

HELD = ("sbatch -H -J held --wrap true",)
RUNS = ("sbatch -J runs -t 5 -w n2 --wrap 'sleep 300'",)
_FIELDS = """
requeue=0 numcpus=3 numnodes=2 features=cpu comment=zz partition=gpu reqnodelist=n1 excnodelist=n2 minmemorycpu=50
minmemorynode=70 jobname=kk priority=77 priority=0 nice=10 deadline=now+2hours timemin=1 licenses=matlab:1
oversubscribe=yes contiguous=yes mincpusnode=2 mintmpdisknode=3 stdout=/tmp/zz workdir=/tmp mailuser=bob tasks=4 ntasks=4
userid=bob delayboot=5 wckey=x admincomment=ac extra=ee burstbuffer=x endtime=now+1hour eligibletime=now switches=1
corespec=1 threadspec=1 batchfeatures=cpu ntaskspernode=2 cpuspertask=2 reservationname=nosuch stepid=1 jobstate=x
prefer=ib arraytaskthrottle=2 mailtype=END setting=1
""".split()  # noqa: SIM905

CASES = [
    *(Case(f"scontrol update jobid={{0}} {field}", setup=HELD) for field in _FIELDS),
    Case("squeue -h -j {0} -o '%t %r %j %P %D %f %k'", setup=HELD),
    *(
        Case(
            f"scontrol update jobid={{0}} {field}",
            setup=RUNS,
            until='[ "$(squeue -h -j {0} -o %t)" = R ]',
            title=f"runs: {field}",
        )
        for field in (
            "timelimit=4",
            "timelimit+=5",
            "TimeLimit-=2",
            "timelimit-=500",
            "timelimit-=",
            "comment+=x",
            "nice-=3",
            "nosuch+=1",
            "numcpus=3",
            "partition=gpu",
            "nice=3",
            "priority=9",
            "dependency=singleton",
            "endtime=now-1hour",
        )
    ),
]
