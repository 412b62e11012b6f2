"""scontrol on both sides: records of jobs, and what is refused."""

from __future__ import annotations

from sides import Case

HELD = (
    "sbatch -H -J one --comment 'a b' --mail-type=END,FAIL --mail-user=bob --wrap 'sleep 1'",
    "sbatch -H -J list -a 0-9:3%2 --wrap 'sleep 1'",
    "sbatch -H -J both -p debug,cpu -N 2-3 -n 6 -c 2 --mem=2G -C cpu -x n5 --tmp=10 --nice=5 --wrap 'sleep 1'",
    "sbatch -H -J gpus -p gpu --gres=gpu:a100:2 -e err.txt -i /dev/null -o %x-%j.out --no-requeue --wrap 'sleep 1'",
    "sbatch -J waits -d afterany:{0} --wrap 'sleep 1'",
)
RUNNING = ("sbatch -J runs -N 2 -n 4 -t 5 --gres=gpu:1 --wrap 'for i in $(seq 60); do sleep 1; done'",)
RUNS = '[ "$(squeue -h -j {0} -o %t)" = R ]'
CHANGING = (r"(Priority|AllocNode:Sid|SecsPreSuspend|Scheduler|SubmitLine|RunTime|LastSchedEval)=\S+.*",)

_ALONE = (
    "scontrol show job 999999",
    "scontrol show job abc",
    "scontrol show job 1 2",
    "scontrol show",
    "scontrol show step abc",
    "scontrol show step 999999",
    "scontrol foo",
    "scontrol hol 1",
    "scontrol hold",
    "scontrol hold 999999",
    "scontrol release abc",
    "scontrol requeue 999999",
    "scontrol suspend 999999",
    "scontrol resume abc",
    "scontrol top 999999",
    "scontrol update",
    "scontrol update foo=bar",
    "scontrol update jobid=999999 name=x",
    "scontrol update nodename=nosuch state=drain reason=x",
    "scontrol update nodename=nosuch state=drain",
    "scontrol update nodename=nosuch state=foo",
    "scontrol update partitionname=nosuch state=down",
    "scontrol update partitionname=nosuch foo=bar",
    "scontrol write",
    "scontrol write foo",
    "scontrol write batch_script 999999",
    "scontrol write batch_script abc",
    "scontrol wait_job 999999",
    "scontrol notify 999999 hi",
    "scontrol errnumstr 2017",
    "scontrol create",
    "scontrol delete foo=x",
    "scontrol -Q hold 999999",
    "scontrol -Z",
)
_HELD = (
    "scontrol show job {0}",
    "scontrol show job {1}",
    "scontrol show job {1}_3",
    "scontrol show job {1}_4",
    "scontrol show job {2}",
    "scontrol show job {3}",
    "scontrol show job {4}",
    "scontrol -o show job {0}",
    "scontrol show step {0}",
    "scontrol write batch_script {0} -",
    "scontrol requeue {1}",
    "scontrol suspend {1}",
    "scontrol resume {0}",
    "scontrol update jobid={1} partition=nosuch",
    "scontrol update jobid={1} features=zzz",
    "scontrol update jobid={0} foo=bar",
    "scontrol update jobid={0} timelimit=foo",
    "scontrol update jobid={0} starttime=foo",
    "scontrol update jobid={0} nice=3 comment=new timelim=20 && scontrol show job {0}",
    "scontrol hold {0} 999999",
)
_STRANGER = (
    "scontrol hold {0}",
    "scontrol release {0}",
    "scontrol requeue {0}",
    "scontrol suspend {0}",
    "scontrol update jobid={0} name=x",
    "scontrol write batch_script {0} -",
    "scontrol update nodename=n1 state=resume",
    "scontrol update partitionname=debug state=up",
)
_RUNNING = (
    "scontrol show job {0}",
    "scontrol -d show job {0}",
    "scontrol update jobid={0} numcpus=4",
    "scontrol update jobid={0} features=zzz",
    "scontrol wait_job {0}",
    "scontrol suspend {0} && squeue -h -j {0} -o %t",
    "scontrol resume {0} && squeue -h -j {0} -o %t",
    "scontrol resume {0}",
)

CASES = [
    *(Case(command) for command in _ALONE),
    *(Case(command, setup=HELD, ignore=CHANGING) for command in _HELD),
    *(Case(command, setup=HELD[:1], user="alice") for command in _STRANGER),
    *(Case(command, setup=RUNNING, until=RUNS, ignore=CHANGING) for command in _RUNNING),
]
