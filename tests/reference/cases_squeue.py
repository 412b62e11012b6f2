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
    "sbatch -J wide -N 2 -n 4 -t 5 --gres=gpu:1 --wrap 'sleep 60'",
    "sbatch -J whole --exclusive -p cpu -t 0 --wrap 'sleep 60'",
    "sbatch -J ends --wrap 'exit 3'",
)
RUNS = "[ $(squeue -h -t R | wc -l) = 2 ] && [ $(squeue -h -t F | wc -l) -ge 1 ]"

PLANNED = (r"(?<=\|matlab:1\|N/A\|)\S+",)
"""Only slurmk plans jobs that are to begin later."""

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

_RUNNING = (
    "squeue -h -o '%i %j %t %D %C %N %R %B'",
    "squeue -h -t all -j {0},{1},{2} -o '%i %j %t %r %R %N'",
    "squeue -h -t F -j {2} -o %T",
    "squeue -h -w n1 -o '%j'",
    "squeue -h -n whole -o '%l %L %e %h'",
    "squeue -h -O 'jobid,exclusive,tres-alloc:60,exit_code,BatchHost'",
    "squeue -h -s -o '%i %j %P %u %N'",
    "squeue -h -s -O stepid,stepstate,nodes,numtasks",
)

CASES = [
    *(Case(command) for command in _ALONE),
    *(Case(command, setup=HELD, ignore=PLANNED) for command in _HELD),
    *(Case(command, setup=RUNNING, until=RUNS) for command in _RUNNING),
]
