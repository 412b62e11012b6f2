"""Random situations of a small cluster: what runs, what is drained or reserved, and a queue behind it.

A situation is shell commands, the same for both sides; jobs have explicit priorities, so that both have the same queue.
``observed`` is what of it can be compared once nothing changes any more: each job's state, reason, nodes and planned start,
by its name.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sides import Side

TOGETHER = "@together@"
"""Stands for a moment after all were submitted, so that all are looked at together, in order."""

AHEAD = 5
"""Seconds until that moment."""

STEADY = 2.5
"""Seconds between two looks that have to be the same."""

PATIENCE = 40
"""Seconds after which a situation is taken as it is."""

Options = Callable[[random.Random], str]


def _one_of(*choices: str) -> Options:
    return lambda chance: chance.choice(choices)


FEATURES = ("a100", "cpu", "ib", "a100&ib", "a100|cpu")

KINDS: Mapping[str, tuple[int, Options]] = {
    "whole nodes": (4, lambda chance: f"-N {chance.randint(1, 5)} --exclusive"),
    "tasks": (4, lambda chance: f"-n {chance.choice((1, 2, 4, 7, 12, 20, 33))}"),
    "tasks on nodes": (2, lambda chance: f"-N {chance.randint(1, 3)} -n {chance.randint(3, 16)}"),
    "a range of nodes": (1, lambda chance: f"-N {chance.randint(1, 2)}-{chance.randint(2, 4)} -n {chance.randint(4, 10)}"),
    "cpus a task": (2, lambda chance: f"-n {chance.randint(1, 6)} -c {chance.choice((2, 3, 4))}"),
    "memory": (2, lambda chance: f"-n {chance.randint(1, 3)} --mem={chance.choice((1000, 7000, 15000, 30000))}"),
    "memory a cpu": (1, lambda chance: f"-n {chance.randint(1, 8)} --mem-per-cpu={chance.choice((500, 1900, 3000))}"),
    "gpus": (2, lambda chance: f"-N {chance.randint(1, 2)} --gres=gpu:{chance.randint(1, 4)}"),
    "gpus in all": (1, lambda chance: f"--gpus={chance.randint(1, 9)}"),
    "gpus a task": (1, lambda chance: f"-n {chance.randint(1, 5)} --gpus-per-task=1"),
    "a feature": (
        2,
        lambda chance: f"-N {chance.randint(1, 4)} -C '{chance.choice(FEATURES)}'",
    ),
    "counted features": (
        1,
        _one_of("-N 3 -C '[a100*1&cpu*2]'", "-N 2 -C '[a100*1&cpu*1]' --exclusive", "-N 4 -C '[a100|cpu]'"),
    ),
    "licences": (2, lambda chance: f"-n {chance.randint(1, 4)} -L matlab:{chance.randint(1, 4)}"),
    "named nodes": (2, lambda chance: f"-w n{chance.randint(1, 8)} -n {chance.choice((1, 4))}"),
    "named whole nodes": (1, lambda chance: f"-w n[{chance.randint(1, 4)}-{chance.randint(5, 6)}] --exclusive"),
    "other nodes": (1, lambda chance: f"-N {chance.randint(1, 3)} -x n[{chance.randint(1, 3)}-{chance.randint(4, 7)}]"),
    "an array": (2, lambda chance: f"--array=0-{chance.randint(1, 5)}%{chance.randint(1, 3)} -n {chance.choice((1, 4, 8))}"),
    "begin": (1, lambda chance: f"-n 1 --begin=now+{chance.randint(1, 5)}hours"),
    "a dependency": (1, _one_of("-n 1 -d afterok:{0}", "-n 1 -d afterany:{0}", "-n 1 -d singleton")),
    "held": (1, _one_of("-n 1 --hold")),
    "neighbours": (1, lambda chance: f"-N {chance.randint(2, 4)} --contiguous --exclusive"),
    "a switch": (1, lambda chance: f"-N {chance.randint(2, 4)} --switches=1@{chance.choice(('10', '2:00:00'))} --exclusive"),
    "spread": (1, lambda chance: f"-n {chance.randint(3, 12)} -N {chance.randint(2, 4)} --spread-job"),
    "least time": (1, lambda chance: f"-N {chance.randint(1, 3)} --exclusive --time-min={chance.randint(1, 9)}"),
    "a deadline": (1, lambda chance: f"-N {chance.randint(1, 3)} --exclusive --deadline=now+{chance.randint(2, 9)}hours"),
    "too much": (1, _one_of("-N 9", "-n 500", "-N 1 --mem=60000", "-C nosuch", "-w n9", "-L matlab:9", "--gpus=17")),
    "a reservation": (1, lambda chance: f"-N {chance.randint(1, 2)} --reservation=kept"),
    "a het job": (1, lambda chance: f"-n {chance.randint(1, 9)} : -n {chance.randint(1, 9)}"),
}
"""What a job may ask for beside its time limit and partition, and how often."""

PARTITIONS: tuple[str, ...] = ("debug", "debug", "debug", "gpu", "cpu", "cpu", "gpu,cpu", "debug,cpu")
"""Those that every configuration has."""


@dataclass(frozen=True)
class Situation:
    """Commands that make it, and those that take away again what is no job."""

    setup: tuple[str, ...]
    undo: tuple[str, ...] = ()


def situation(
    seed: int, kinds: Mapping[str, tuple[int, Options]] = KINDS, partitions: tuple[str, ...] = PARTITIONS
) -> Situation:
    """The situation of this number."""
    chance = random.Random(seed)
    setup: list[str] = []
    undo: list[str] = []
    for number, node in enumerate(chance.sample(range(1, 9), chance.randint(1, 8))):
        minutes = 10 + 3 * chance.randint(1, 15)
        part = "--exclusive" if chance.random() < 0.5 else f"-n {chance.randint(1, 7)} --mem={chance.choice((100, 2000, 9000))}"
        if node <= 4 and "-n" in part and chance.random() < 0.4:
            part += f" --gres=gpu:{chance.randint(1, 3)}"
        if number == 0 and chance.random() < 0.3:
            part += " -L matlab:2"
        setup.append(f"sbatch -J r{number} -p debug -w n{node} {part} -t {minutes} -o /dev/null --wrap 'sleep 3000'")
    if chance.random() < 0.2:
        broken = chance.randint(1, 8)
        setup.append(f"scontrol update nodename=n{broken} state=drain reason=broken")
        undo.append(f"scontrol update nodename=n{broken} state=resume")
    if chance.random() < 0.25:
        setup.append(_reservation(chance))
        undo.append("scontrol delete reservation=kept")
    weights = [weight for weight, _ in kinds.values()]
    for number in range(chance.randint(5, 12)):
        name = chance.choices(list(kinds), weights)[0]
        common = f"-J w{number} -p {chance.choice(partitions)} --priority={900_000 - 10 * number} -o /dev/null"
        common += f" -t {chance.choice((5, 10, 15, 20, 31, 47, 59))}"
        common += "" if name == "begin" else f" --begin={TOGETHER}"
        if chance.random() < 0.1:
            common += f" --nice={chance.randint(1, 30)}"
        setup.append(f"sbatch {common} {kinds[name][1](chance).replace(' : ', f' : {common} ')} --wrap 'sleep 3000'")
    return Situation(tuple(setup), tuple(undo))


def _reservation(chance: random.Random) -> str:
    first = chance.randint(1, 7)
    nodes = chance.choice((f"nodes=n[{first}-{chance.randint(first, 8)}]", f"nodecnt={chance.randint(1, 4)}", "nodes=ALL"))
    flags = chance.choice(("ignore_jobs", "ignore_jobs,flex", "ignore_jobs,maint", "ignore_jobs,overlap"))
    start = chance.choice(("now", "now", "now+15minutes", "now+40minutes"))
    return f"scontrol create reservation reservation=kept start={start} duration=60 {nodes} user=root flags={flags}"


@dataclass(frozen=True)
class Seen:
    """One job, or one waiting array, as squeue shows it. ``start`` is Unix seconds."""

    state: str
    reason: str
    nodes: str
    cpus: str
    start: float | None


def observed(side: Side) -> dict[str, Seen]:
    """Every job by its name and, of an array or a het job, which part of it."""
    rows = side.run("squeue -h -a -t PD,R,S -o '%j|%i|%T|%r|%R|%N|%Y|%C|%S'").output.splitlines()
    found: dict[str, Seen] = {}
    for row in rows:
        name, job, state, reason, told, nodes, scheduled, cpus, start = row.split("|")
        key = name + job.lstrip("0123456789").partition("[")[0]  # waiting elements of an array are one row
        moment = None if start == "N/A" else datetime.fromisoformat(start).timestamp()
        if state == "PENDING" and told != f"({reason})":
            reason = told.strip("()")
        found[key] = Seen(state, reason, nodes if state != "PENDING" else scheduled, cpus, moment)
    return dict(sorted(found.items()))


def clear(side: Side, made: Situation) -> None:
    """End all jobs of the side and take back what else was made."""
    for command in made.undo:
        side.run(command)
    side.run("squeue -h -a -t PD,R,S,CF -o %A | sort -u | xargs -r scancel --quiet")
    side.wait('[ -z "$(squeue -h -a -t PD,R,CG,S,CF -o x)" ]')
    for command in made.undo:
        side.run(command)
    side.jobs.clear()
    side.seen.clear()


def make(side: Side, made: Situation) -> tuple[dict[str, Seen], list[str]]:
    """Make the situation and wait until it changes no more; what is there then, and what each command said."""
    said: list[str] = []
    together = ""
    for number, command in enumerate(made.setup):
        if TOGETHER in command:
            together = together or (datetime.now() + timedelta(seconds=AHEAD)).isoformat(timespec="seconds")
        answer = side.run(command.replace(TOGETHER, together))
        said.append(f"{answer.code} {answer.errors.strip()}")
        if number + 1 < len(made.setup) and " -J r" in command and " -J r" not in made.setup[number + 1]:
            side.wait('[ -z "$(squeue -h -t PD,CF -o x)" ]', 20)
    until = time.monotonic() + PATIENCE
    time.sleep(AHEAD + STEADY)
    before = observed(side)
    while time.monotonic() < until:
        time.sleep(STEADY)
        now = observed(side)
        if _plainly(now) == _plainly(before):
            return now, said
        before = now
    return before, said


def _plainly(seen: Mapping[str, Seen]) -> dict[str, tuple[str, ...]]:
    return {name: (job.state, job.reason, job.nodes) for name, job in seen.items()}
