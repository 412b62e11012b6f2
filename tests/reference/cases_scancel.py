"""scancel on both sides. Every case names jobs of its own situation, or ids that were never given out."""

from __future__ import annotations

from sides import Case

"""Signals to waiting jobs are not compared: the reference tries again for about a minute, slurmk says so at once."""

HELD = (
    "sbatch -H -J cmpone --wrap 'sleep 1'",
    "sbatch -H -J cmplist -a 1-5 --wrap 'sleep 1'",
    "sbatch -H -J cmptwo --wrap 'sleep 1'",
)
RUNNING = ("sbatch -J cmpruns --wrap 'trap \"\" USR1; touch runs; for i in $(seq 60); do sleep 1; done'",)
RUNS = "[ -e runs ]"

_ALONE = (
    "scancel",
    "scancel abc",
    "scancel 5x",
    "scancel 0",
    "scancel '38_[1'",
    "scancel 38.batch",
    "scancel 999999",
    "scancel 999999_4",
    "scancel 999999.0",
    "scancel -v 999999",
    "scancel -Q 999999",
    "scancel -b 999999",
    "scancel -f 999999",
    "scancel -s KILL 999999",
    "scancel -s foo 999999",
    "scancel -s 0 999999",
    "scancel -u nosuch 999999",
    "scancel -t foo 999999",
    "scancel -n nosuch 999999",
    "scancel -v -n nosuch",
    "scancel -Z",
    "scancel -t",
)
_HELD = (
    "scancel {0}.0",
    "scancel -v {1}_2",
    "scancel -v {1}_7",
    "squeue -h -n cmpone,cmplist,cmptwo -o '%i %t'",
    "scancel -v -n cmplist",
    "scancel -b {2}",
    "scancel -s KILL -v {0}",
    "squeue -h -j {0},{1},{2} -t all -o '%j %t'",
)
_STRANGER = ("scancel {0}", "scancel -v {0}", "scancel -s INT {0}", "scancel {0} 999999")
_RUNNING = (
    "scancel -v -s USR1 {0}",
    "scancel -v -b -s USR1 {0}",
    "scancel -v -n cmpruns -s USR1",
    "scancel -v {0}",
)

CASES = [
    *(Case(command) for command in _ALONE),
    *(Case(command, setup=HELD) for command in _HELD),
    *(Case(command, setup=HELD[:2], user="alice") for command in _STRANGER),
    *(Case(command, setup=RUNNING, until=RUNS) for command in _RUNNING),
]
