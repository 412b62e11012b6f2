"""``python -m tests.benchmarks.policies``: the default policy beside EASY on made workloads, and on parts of traces.

The workloads are unlike each other, so that a policy that does well on all of them is not made for one: what is known of
machines whose logs are public (size, job sizes, run times, limits, load) is drawn from models (Lublin and Feitelson, JPDC 2003;
Downey, HPDC 1997; lognormal, bimodal), by users who repeat themselves, over days and weeks, with limits of round values. Seeds
are fixed. With ``--trace FILE`` also quarters of a trace, its halves compressed in time, shuffled jobs, and limits left out.
Prints, for each, the ratio of the policy's bounded slowdown, 95th percentile and longest wait to EASY's.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from slurmk.planner.simulator.replay import Policy, replay
from slurmk.planner.simulator.trace import Trace, records_of, trace_of

Column = NDArray[Any]
"""One number for each job."""

HOUR, DAY = 3600, 86400
ROUND_LIMITS = np.array([300, 600, 900, 1200, 1800, 3600, 7200, 10800, 14400, 21600, 28800, 36000, 43200, 64800, 86400, 129600,
                         172800, 259200, 432000])  # fmt: skip
JOBS = 4000
SETTLED = 1000
"""Jobs before those that are replayed, so that no trace begins on a quiet machine."""
FIGURES = ("mean_bounded_slowdown", "p95_wait", "max_wait")


@dataclass(frozen=True, slots=True)
class Workload:
    """A machine and who uses it. ``load`` is the work that comes as a share of what the machine can do."""

    name: str
    processors: int
    load: float
    sizes: str
    runs: str
    longest: int  # limit, seconds
    estimates: float = 1.0  # how far limits are above run times
    users: int = 60
    repeats: float = 0.7  # chance that a user submits such a job again
    cycle: float = 1.0  # how much days and weeks matter
    crashes: float = 0.1  # share of jobs that end in their first minute
    default_limits: float = 0.1  # share of jobs that ask for the longest limit there is
    seed: int = 1


WORKLOADS = (
    Workload("ctc-sp2", 338, 0.70, "odd", "lublin", 18 * HOUR, users=120, seed=1),
    Workload("sdsc-sp2", 128, 0.69, "powers", "lublin", 18 * HOUR, users=80, seed=2),
    Workload("sdsc-blue", 1152, 0.62, "eights", "short", 36 * HOUR, estimates=2, users=100, seed=3),
    Workload("hpc2n", 240, 0.55, "lublin", "heavy", 120 * HOUR, users=50, repeats=0.85, seed=4),
    Workload("hpc2n-full", 240, 0.75, "lublin", "heavy", 120 * HOUR, users=50, repeats=0.85, seed=14),
    Workload("intrepid", 40960, 0.65, "blocks", "long", 12 * HOUR, estimates=0.5, seed=5),
    Workload("curie", 93312, 0.60, "eights", "short", 24 * HOUR, users=150, default_limits=0.5, seed=6),
    Workload("nasa", 128, 0.45, "powers", "short", 12 * HOUR, estimates=3, seed=8),
    Workload("lublin-256", 256, 0.65, "lublin", "lublin", 60 * HOUR, repeats=0.1, seed=9),
    Workload("lublin-64-full", 64, 0.80, "lublin", "lublin", 36 * HOUR, repeats=0.5, seed=10),
    Workload("downey", 512, 0.60, "lublin", "downey", 24 * HOUR, seed=11),
    Workload("downey-full", 512, 0.85, "lublin", "downey", 24 * HOUR, seed=12),
    Workload("wide", 256, 0.55, "wide", "lublin", 24 * HOUR, seed=17),
    Workload("bimodal", 2048, 0.70, "lublin", "bimodal", 48 * HOUR, seed=18),
    Workload("overloaded", 256, 0.95, "lublin", "lublin", 24 * HOUR, seed=19),
    Workload("exact-limits", 256, 0.70, "lublin", "heavy", 48 * HOUR, estimates=0.1, crashes=0, seed=20),
    Workload("crashes", 400, 0.70, "odd", "heavy", 24 * HOUR, crashes=0.4, seed=21),
    Workload("no-days", 300, 0.70, "lublin", "heavy", 48 * HOUR, cycle=0, repeats=0.3, seed=22),
    Workload("blocks", 49152, 0.75, "blocks", "downey", 24 * HOUR, seed=23),
    Workload("half-empty", 256, 0.45, "lublin", "lublin", 36 * HOUR, seed=24),
)


def lublin_sizes(chance: Generator, processors: int, count: int) -> Column:
    top = np.log2(processors)
    low = chance.random(count) < 0.86
    exponent = np.where(low, chance.uniform(0.8, max(top - 2.5, 1), count), chance.uniform(max(top - 2.5, 1), top, count))
    powers = np.where(chance.random(count) < 0.76, 2 ** np.round(exponent), np.round(2**exponent))
    return np.where(chance.random(count) < 0.244, 1, powers)


def block_sizes(chance: Generator, processors: int, count: int) -> Column:
    sizes = processors // 96 * 2.0 ** np.minimum(chance.geometric(0.45, count) - 1, 6)
    return np.where(chance.random(count) < 0.02, processors, sizes)


def eights(chance: Generator, processors: int, count: int) -> Column:
    many = 2 ** chance.uniform(0, np.log2(processors / 8), count) * np.where(chance.random(count) < 0.8, 0.4, 1)
    return 8 * np.where(chance.random(count) < 0.35, 1, np.round(many))


SIZES: Mapping[str, Callable[[Generator, int, int], Column]] = {
    "lublin": lublin_sizes,
    "blocks": block_sizes,
    "eights": eights,
    "powers": lambda chance, processors, count: 2.0 ** np.minimum(chance.geometric(0.25, count) - 1, int(np.log2(processors))),
    "odd": lambda chance, _, count: np.where(chance.random(count) < 0.33, 1, np.round(np.exp(chance.exponential(1.6, count)))),
    "wide": lambda chance, processors, count: np.where(
        chance.random(count) < 0.4, processors * chance.uniform(0.3, 1, count), processors / 2.0 ** chance.integers(2, 8, count)
    ),
}
"""Processors of so many jobs on a machine of a size."""


def lublin_runs(chance: Generator, sizes: Column, _: int) -> Column:
    short = chance.random(len(sizes)) < np.clip(0.78 - 0.0054 * sizes, 0.2, 0.9)
    return np.exp(np.where(short, chance.gamma(4.2, 0.94, len(sizes)), chance.gamma(312, 0.03, len(sizes))))


def bimodal_runs(chance: Generator, sizes: Column, _: int) -> Column:
    short = chance.random(len(sizes)) < 0.5
    return np.exp(np.where(short, chance.normal(3.5, 1, len(sizes)), chance.normal(10, 0.8, len(sizes))))


RUNS: Mapping[str, Callable[[Generator, Column, int], Column]] = {
    "lublin": lublin_runs,
    "bimodal": bimodal_runs,
    "heavy": lambda chance, sizes, _: np.exp(chance.normal(7, 2.4, len(sizes))),
    "short": lambda chance, sizes, _: np.exp(chance.normal(5.2, 1.8, len(sizes))),
    "long": lambda chance, sizes, _: np.exp(chance.normal(8.8, 1.2, len(sizes))),
    "downey": lambda chance, sizes, longest: np.exp(chance.uniform(np.log(10), np.log(longest), len(sizes))),
}
"""Seconds that jobs of these sizes run."""


def made(workload: Workload) -> Trace:
    """The workload as a trace."""
    chance = np.random.default_rng(workload.seed * 1000 + workload.processors)
    wanted = SETTLED + JOBS
    size = np.clip(SIZES[workload.sizes](chance, workload.processors, wanted), 1, workload.processors).astype(np.int64)
    run = np.clip(RUNS[workload.runs](chance, size.astype(np.float64), workload.longest), 1, workload.longest)
    weights = 1 / np.arange(1, workload.users + 1) ** 1.1
    excess = 1 + chance.exponential(0.8 * workload.estimates, workload.users)
    columns: list[list[Column]] = [[], [], [], [], []]
    jobs, moment = 0, 0.0
    for session in range(wanted):
        user = int(chance.choice(workload.users, p=weights / weights.sum()))
        most = max(1, int(workload.processors * 8 * HOUR * chance.exponential() / (size[session] * run[session])))
        count = min(int(chance.geometric(1 - workload.repeats)), most, wanted - jobs)
        limit = _limit(workload, chance, float(run[session] * excess[user]))
        own = np.clip(run[session] * np.exp(chance.normal(0, 0.5, count)), 1, limit)
        own = np.where(chance.random(count) < workload.crashes, np.minimum(chance.uniform(1, 60, count), limit), own)
        moment += chance.gamma(0.45, 1 / 0.45)
        pauses = np.where(chance.random(count) < 0.6, chance.uniform(0, 30, count), np.exp(chance.normal(7, 1.2, count)))
        same = np.ones(count)
        values = (moment * same, np.cumsum(pauses) - pauses[0], size[session] * same, own, limit * same)
        for column, more in zip(columns, values, strict=True):
            column.append(more)
        jobs += count
        if jobs >= wanted:
            break
    began, later, sizes, runs, limits = (np.concatenate(column) for column in columns)
    runs = np.maximum(1, runs).astype(np.int64)
    span = float((sizes * runs).sum() / (workload.processors * workload.load))
    submit = _over_days(began / moment * span, span, workload.cycle) + later
    order = np.argsort(submit, kind="stable")[SETTLED:]
    return _trace(submit[order], sizes[order], runs[order], limits[order], workload.processors)


def _limit(workload: Workload, chance: Generator, needed: float) -> int:
    if chance.random() < workload.default_limits:
        return workload.longest
    place = int(np.searchsorted(ROUND_LIMITS, needed * chance.uniform(0.9, 1.6)))
    return min(workload.longest, int(ROUND_LIMITS[min(place, len(ROUND_LIMITS) - 1)]))


def _over_days(times: Column, span: float, cycle: float) -> Column:
    """The same times where more happens by day than at night, and less at weekends."""
    grid = np.arange(0, span + 600, 600.0)
    day = 1 + cycle * 0.8 * np.sin((grid % DAY / HOUR - 8) / 24 * 2 * np.pi)
    passed = np.cumsum(day * np.where(grid // DAY % 7 >= 5, 1 - 0.5 * cycle, 1))
    moved: Column = np.interp(times, passed / passed[-1] * span, grid)
    return moved


def _trace(submit: Column, size: Column, run: Column, limit: Column, processors: int) -> Trace:
    whole = (column.astype(np.int64) for column in (submit - submit[0], size, run, limit))
    submit, size, run, limit = map(np.ascontiguousarray, whole)
    return Trace(tuple(map(str, range(len(submit)))), submit, size, run, limit, np.zeros(len(submit), np.int64), processors)


def parts(trace: Trace) -> Iterator[tuple[str, Trace]]:
    """The trace, parts of it, and what it might have been."""
    chance, jobs = np.random.default_rng(5), len(trace)

    def part(first: int, last: int, compressed: float = 1) -> Trace:
        span = slice(first * jobs // 4, last * jobs // 4)
        return _trace(trace.submit[span] / compressed, trace.size[span], trace.run[span], trace.limit[span], trace.procs)

    yield "all", trace
    for quarter in range(4):
        yield f"quarter {quarter + 1}", part(quarter, quarter + 1)
    yield "first half, faster", part(0, 2, 1.1)
    yield "last half, faster", part(2, 4, 1.25)
    middle, last = part(1, 3), part(2, 4)
    mixed = chance.permutation(len(middle))
    yield "shuffled", _trace(middle.submit, middle.size[mixed], middle.run[mixed], middle.limit[mixed], trace.procs)
    limits = np.where(chance.random(len(last)) < 0.5, last.limit.max(), last.limit)
    yield "half without limit", _trace(last.submit, last.size, last.run, limits, trace.procs)


def compared(trace: Trace, policy: Policy) -> dict[str, float]:
    """The policy's figures as ratios to EASY's, and how many promises it broke."""
    own, easy = replay(trace, policy).figures(), replay(trace, Policy.EASY).figures()
    ratios = {key: own[key] / easy[key] if easy[key] else float(own[key] == 0) or float("inf") for key in FIGURES}
    return {**ratios, "broken_promises": own["broken_promises"]}


def workloads(again: int) -> Iterator[tuple[str, Trace]]:
    """Every workload, and ``again`` times with other seeds and loads."""
    for round_ in range(again + 1):
        for workload in WORKLOADS:
            shift = 0.08 * (round_ and (-1) ** workload.seed)
            other = replace(workload, seed=workload.seed + 100 * round_, load=workload.load + shift)
            yield f"{workload.name}{round_ + 1 if again else ''}", made(other)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.policies", description=__doc__)
    parser.add_argument("--policy", choices=[policy.value for policy in Policy], default=Policy.DEFAULT.value)
    parser.add_argument("--again", type=int, default=1, help="how often with other seeds and loads (default: %(default)s)")
    parser.add_argument("--trace", action="append", default=[], metavar="FILE", help="also parts of this trace (.swf.gz)")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    options = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    traces = list(workloads(options.again))
    for path in options.trace:
        with gzip.open(path, "rt", errors="replace") as file:
            whole = trace_of(*records_of(file))
        traces += [(f"{path.rpartition('/')[2][:12]} {name}", trace) for name, trace in parts(whole)]
    print(f"{'':<32} slowdown      p95  longest  broken")
    for name, trace in traces:
        found[name] = compared(trace, Policy(options.policy))
        print(f"{name:<32} {' '.join(f'{found[name][key]:8.2f}' for key in FIGURES)} {found[name]['broken_promises']:7.0f}")
    means = {key: float(np.exp(np.mean([np.log(ratios[key]) for ratios in found.values()]))) for key in FIGURES}
    kept = {key: sum(ratios[key] <= (0.85 if key == FIGURES[0] else 1) for ratios in found.values()) for key in FIGURES}
    print(f"{'geometric mean':<32} {' '.join(f'{means[key]:8.2f}' for key in FIGURES)}")
    print(f"{f'of {len(found)} at most 0.85, 1, 1':<32} {' '.join(f'{kept[key]:8}' for key in FIGURES)}")
    if options.json:
        print(json.dumps({"ratios": found, "geometric_mean": means}))


if __name__ == "__main__":
    main()
