"""--json and --yaml of squeue, sinfo, sacct and scontrol: the documents of the data parser, in each version.

What depends on the machine, on the moment or on accounts is blanked; everything else has to be the same, with the order of
members, indentation and all.
"""

from __future__ import annotations

from sides import Case


def blank(*names: str) -> tuple[str, ...]:
    """Patterns of these members' values, in JSON and in YAML: numbers with flags, lists of words, or plain values."""
    json = (rf'(?<="{name}": )(?:\{{[^{{}}]*\}}|\[[^\[\]]*\]|[^,\n]*)' for name in names)
    members = r"(?:\n +!!str (?:set|infinite|number|minimum|maximum|host|pid): .*)+"
    yaml = (rf"(?<=!!str {name}: )(?:!!map{members}|!!seq(?:\n *- .*)+|!!.*)" for name in names)
    return (*json, *yaml)


ALWAYS = (r"\b1[78]\d{8}\b", r"data_parser\\/v0.0.\d\d[^\"]*", *blank("last_backfill"))
"""Times (that of the last backfill is none on a new reference), and who parses, which the command line tells already."""

UNLIKE = ("account", "association_id", "allocating_node", "priority", "last_sched_evaluation")
"""slurmk has no accounts yet, and its priorities lack their share of fair share."""

JOB = (
    *ALWAYS,
    *blank(*UNLIKE, "scheduled_nodes", "srun", "latency", "running"),
)
RUNNING_JOB = (*JOB, *blank("flags", "accrue_time"))
NODE = (
    *ALWAYS,
    *blank("cpu_load", "free_mem", "load", "last_busy", "slurmd_start_time", "boot_time", "latency"),
    r'(?<="free": )\{[^{}]*(\{[^{}]*\}[^{}]*)*\}',
    r"(?<=!!str free: )!!map(\n +!!str (minimum|maximum|set|infinite|number): .*)+",
)

VARIANTS = (
    "",
    "-n 3",
    "-N 2",
    "-N 2-4",
    "-c 2",
    "-n 2 -c 2",
    "--mem=2G",
    "--mem=0",
    "--mem-per-cpu=50",
    "-p cpu",
    "-p cpu,debug",
    "--exclusive",
    "--exclusive=user",
    "-s",
    "-O",
    "--ntasks-per-node=2",
    "--ntasks-per-core=1",
    "--ntasks-per-socket=2",
    "-B 1:2:1",
    "--mincpus=3",
    "--tmp=100",
    "--contiguous",
    "--cpu-freq=high",
    "--gpus=2 -p gpu",
    "--gpus-per-task=1 -n 2 -p gpu",
    "--gpus-per-socket=1 --sockets-per-node=1 -p gpu",
    "--tres-per-task=cpu=2 -n 2",
    "--kill-on-invalid-dep=yes",
    "--kill-on-invalid-dep=no",
    "--spread-job",
    "--use-min-nodes",
    "--no-requeue",
    "-k",
    "--switches=1@10",
    "--time-min=1 -t 5",
    "-t 3 --signal=10@30",
    "-t 0 -p cpu",
    "--mail-type=ALL --mail-user=foo",
    "--mail-type=TIME_LIMIT_80,ARRAY_TASKS,REQUEUE",
    "--profile=task,energy",
    "--reboot",
    "--delay-boot=5",
    "--open-mode=append",
    "--gres-flags=enforce-binding --gres=gpu:1 -p gpu",
    "--gres-flags=disable-binding --gres=gpu:a100:1 -p gpu",
    "--comment=c/d --extra=e --network=x --wckey=w",
    "--batch=a100 -C a100",
    "--prefer=ib",
    "-e err%j -o out%j -i in%u",
    "--deadline=now+1hour -t 5",
    "--begin=now+1hour",
    "--nice=50",
    "--container=/tmp",
    "--ntasks-per-gpu=2 --gpus=1 -p gpu",
    "--gpu-bind=closest --gpu-freq=low --gpus=1 -p gpu",
    "--segment=1 -N 1",
    "--hint=nomultithread",
    "-L matlab:1",
    "-w n1 -x n2",
    "-a 1-7:2%2",
    "-a 5",
    "-D /tmp",
    "--comment='\"quoted\" #  : \\ x'",
)
CHECKED = "! squeue --json | grep -q DEPENDENT"
"""Slurm takes a while to see that a job waits for nobody."""
HELD = tuple(f"sbatch -H -J v{number} {options} --wrap true" for number, options in enumerate(VARIANTS))

WAITING = ("sbatch -J waits -p debug,cpu -w n[5-8] --exclusive --begin=now+1hour --wrap true",)
RUNNING = (
    "printf '#!/bin/sh\\nsrun -n 2 -J short true\\nsrun -n 2 -J long sleep 120\\n' > job.sh",
    "sbatch -J wide -w n3,n4 -n 4 -t 5 --gres=gpu:1 -o out-%j job.sh",
    "sbatch -J whole -w n5 --exclusive -t 0 -p cpu --wrap 'sleep 120'",
    "sbatch -J ends -w n6 -W --wrap 'exit 3'",
    "sbatch -J killed -w n7 -W --wrap 'kill -USR1 $$'",
    "sbatch -J element -w n6 -a 4 --mem=100 --wrap 'sleep 120'",
)
RUNS = "[ $(squeue -h -t R -n wide,whole,element | wc -l) = 3 ] && squeue -h -s | grep -q long"

_ANY = (
    "squeue --json=foo",
    "squeue --yaml=foo",
    "squeue --json=v0.0.41",
    "squeue --json=",
    "squeue --json=+complex",
    "squeue --json=v0.0.45+fast,complex",
    "squeue --json=list",
    "sinfo --json=list",
    "sacct --yaml=list",
    "sinfo --json=foo",
    "sacct --json=foo",
    "scontrol --json=foo show job",
    "scontrol --json=list show job",
    "squeue --json -u 4242",
    "squeue --yaml -u 4242",
    "squeue --json=v0.0.45+fast -u 4242",
    "squeue --json=v0.0.45+complex -u 4242",
    "squeue --json=v0.0.44+foo -u 4242",
    "squeue --json=v0.0.44+prefer_refs -u 4242",
    "squeue --json=latest -u 4242",
    "squeue --json=data_parser/v0.0.43 -u 4242",
    "squeue --json --yaml -u 4242",
    "squeue --yaml --json -u 4242",
    "squeue --json -j 999999",
    "squeue --json -j999999,999998",
    "squeue --json -u nosuch",
    "squeue --json -t foo",
    "squeue --json -s -u 4242",
    "squeue --json --only-job-state -j999998,999999",
    "sacct --json -j 999999",
    "sacct --yaml -j 999999",
    "sinfo --json -p nosuch",
    "sinfo --yaml -p nosuch",
    "scontrol --json show job 999999",
    "scontrol --json show job abc",
    "scontrol --json show node nosuch",
    "scontrol --json show partition nosuch",
    "scontrol --json show hostnames n[1-2]",
    "scontrol --json show topology",
    "scontrol --json show foo",
    "scontrol --json show",
)
_VERSIONS = ("", "=v0.0.44", "=v0.0.43", "=v0.0.42", "=v0.0.45+complex")
_NODES = (
    "sinfo --json{} -p cpu",
    "sinfo --json{} -n n1,n5",
    "sinfo --json{} -N -p gpu",
    "sinfo --json{} -n nosuch",
    "scontrol --json{} show nodes",
    "scontrol --json{} show node n5",
    "scontrol --json{} show partitions",
    "scontrol --json{} show partition gpu",
    "scontrol --json{} show licenses",
    "scontrol --json{} show lic nosuch",
    "scontrol --json{} show reservations",
    "scontrol --json{} ping",
    "scontrol --yaml{} show node n1",
    "scontrol --yaml{} show partition",
    "scontrol --yaml{} show lic",
    "sinfo --yaml{} -p cpu",
)
_RUNNING = (
    "squeue --json{} -n wide",
    "squeue --json{} -n whole",
    "squeue --json{} -n element",
    "squeue --yaml{} -n wide,whole",
    "squeue --json{} -t all -j{2}",
    "squeue --json{} -t all -j{3}",
    "squeue --json{} -s",
    "scontrol --json{} show job {0}",
    "scontrol --json{} show job {3}",
    "scontrol --json{} show step {0}",
    "scontrol --yaml{} show step {0}.1",
    "scontrol --json{} show step {0}.0",
)
_CONFIGURATION = blank(
    "FirstJobId",
    "MaxDBDMsgs",
    "BOOT_TIME",
    "HashValue",
    "LastUpdate",
    "NEXT_JOB_ID",
    "SLURM_CONF",
)


def _in_versions(command: str) -> list[str]:
    """The command with each version of the data parser."""
    return [command.replace("{}", version) for version in _VERSIONS]


CASES: list[Case] = [
    *(Case(command, ignore=ALWAYS) for command in _ANY),
    *(Case(command, ignore=NODE) for form in _NODES for command in _in_versions(form)),
    Case("scontrol --json show config", ignore=(*ALWAYS, *_CONFIGURATION)),
    Case("scontrol --json=v0.0.44 show config"),
    *(Case(f"squeue --json -n v{number}", setup=HELD, until=CHECKED, ignore=JOB) for number in range(len(VARIANTS))),
    *(Case(f"squeue --yaml -n v{number}", setup=HELD, until=CHECKED, ignore=JOB) for number in (45, 62)),
    *(Case(f"squeue --json=v0.0.42 -n v{number}", setup=HELD, until=CHECKED, ignore=JOB) for number in (0, 11, 12, 23, 48, 59)),
    Case("squeue --json --only-job-state -j{59}", setup=HELD, until=CHECKED, ignore=JOB),
    Case("squeue --json -r -n v59", setup=HELD, until=CHECKED, ignore=JOB),
    *(Case(command, setup=WAITING, ignore=JOB) for command in ("squeue --json -n waits", "squeue --yaml -n waits")),
    Case("scontrol --json show step 999999", setup=RUNNING, until=RUNS, ignore=ALWAYS),
    Case("squeue --json -s -j{1}", setup=RUNNING, until=RUNS, differs="Slurm's document has the steps of other jobs too"),
    *(Case(command, setup=RUNNING, until=RUNS, ignore=RUNNING_JOB) for form in _RUNNING for command in _in_versions(form)),
]
