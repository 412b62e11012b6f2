"""scontrol on elements of arrays: each that refuses is told of, with those that did not."""

from __future__ import annotations

from sides import Case

WAITING = (
    "sbatch -b now+1hour -J waits -a 1,3,5-9:2 -t 5 --wrap 'sleep 300'",
    "sbatch -b now+1hour -J alone --wrap 'sleep 300'",
)
SOME_OVER = ("sbatch -J some -a 1-4 -t 5 --wrap '[ $SLURM_ARRAY_TASK_ID = 4 ] || sleep 300'",)
ONE_IS_OVER = '[ "$(squeue -h -j {0} -t R -o %t | wc -l)" = 3 ] && [ -z "$(squeue -h -j {0}_4 -t PD,R,CG)" ]'

_NAMES = ("{0}", "{0}_3", "{0}_4", "{0}_[3-5]", "{0}_[4,6]", "{0}_1000", "{0}_x", "{0}_[1", "{1}_1", "99999_1")
_VERBS = ("hold", "release", "suspend", "resume", "requeue", "requeuehold", "uhold")
_UPDATES = ("nice=1", "timelimit=foo", "partition=nosuch")

CASES = [
    *(Case(f"scontrol {verb} {name}", setup=WAITING) for verb in _VERBS for name in _NAMES),
    *(Case(f"scontrol update {change} jobid={name}", setup=WAITING) for change in _UPDATES for name in _NAMES),
    *(Case(f"scontrol {verb} {{1}}", setup=WAITING) for verb in ("suspend", "resume", "requeue", "requeuehold")),
    *(
        Case(command, setup=WAITING)
        for command in (
            "scontrol hold {0}_1,{0}_9",
            "scontrol hold {0}_1 {0}_4",
            "scontrol -Q hold {0}_4",
            "scontrol -Q update nice=1 jobid={0}_4",
            "scontrol update jobid={1} dependency=afterok:{1}",
        )
    ),
    *(
        Case(f"scontrol {words}", setup=WAITING, user="bob", title=f"a stranger: {words}")
        for words in ("hold {0}", "hold {0}_1", "update jobid={0} nice=4", "requeue {0}_[1-5]")
    ),
    *(
        Case(f"scontrol {verb} {name}", setup=SOME_OVER, until=ONE_IS_OVER, title=f"some over: {verb} {name}")
        for verb in ("hold", "release", "suspend", "resume")
        for name in ("{0}_4", "{0}_1", "{0}_[1-4]", "{0}", "{0}_7")
    ),
]
