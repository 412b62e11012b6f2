"""A trace under a policy: what the compiled replay found, and what is reported of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from slurmk.planner.profile import FOREVER
from slurmk.planner.simulator.trace import Trace
from slurmk.planner.snapshot import IntArray


class Policy(Enum):
    """In which order waiting jobs start, and what is promised to whom."""

    FCFS = "fcfs"
    EASY = "easy"
    EASY_SJBF = "easy-sjbf"
    CONSERVATIVE = "conservative"
    DEFAULT = "default"


SHORTEST = 10
"""Seconds that a job counts as having run at least, so that the shortest do not rule the mean of slowdowns."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a waiting job was told at one moment: when it would start (None: not said), and how many waited before it."""

    time: int
    planned: int | None
    before: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """When the jobs of a trace started, by its order, and which start each was promised when it came (FOREVER: none)."""

    trace: Trace
    policy: Policy
    starts: IntArray
    promised: IntArray
    story: tuple[Moment, ...] = ()

    @property
    def waits(self) -> IntArray:
        return self.starts - self.trace.submit

    @property
    def ends(self) -> IntArray:
        return self.starts + self.trace.run

    def figures(self) -> Mapping[str, float | int]:
        """What compares policies: times in seconds, utilization as a share of 1."""
        trace, waits = self.trace, self.waits
        makespan = int(self.ends.max() - trace.submit[0])
        slowdowns = np.maximum(1.0, (waits + trace.run) / np.maximum(trace.run, SHORTEST))
        return {
            "jobs": len(trace),
            "mean_wait": float(waits.mean()),
            "mean_bounded_slowdown": float(slowdowns.mean()),
            "p95_wait": float(np.percentile(waits, 95)),
            "max_wait": int(waits.max()),
            "utilization": float((trace.size * trace.run.astype(np.float64)).sum() / (trace.procs * makespan)),
            "makespan": makespan,
            "broken_promises": int((self.starts > self.promised).sum()),
        }

    def rows(self) -> list[tuple[str | int, ...]]:
        """One for each job, as ``COLUMNS`` names the values."""
        trace = self.trace
        columns = (
            trace.numbers,
            (trace.submit + trace.origin).tolist(),
            (self.starts + trace.origin).tolist(),
            (self.ends + trace.origin).tolist(),
            self.waits.tolist(),
            trace.size.tolist(),
            trace.run.tolist(),
            trace.limit.tolist(),
            ["" if start == FOREVER else start + trace.origin for start in self.promised.tolist()],
        )
        return list(zip(*columns, strict=True))

    def queued(self) -> Steps:
        """How many jobs wait, over time."""
        trace = self.trace
        times = np.unique(np.concatenate((trace.submit, self.starts)))
        one = np.ones(len(trace), dtype=np.int64)
        return Steps(times.tolist(), (_sums(times, trace.submit, one) - _sums(times, self.starts, one)).tolist())

    def used(self, parts: int) -> Steps:
        """The mean share of the machine in use in each of so many equal parts of the makespan."""
        trace, first, last = self.trace, int(self.trace.submit[0]), int(self.ends.max())
        edges = np.linspace(first, last, parts + 1).astype(np.int64)
        done = _area(edges, self.starts, trace.size) - _area(edges, self.ends, trace.size)
        shares = np.diff(done) / np.maximum(np.diff(edges), 1) / trace.procs
        return Steps(edges.tolist(), [*shares.tolist(), 0.0])


COLUMNS = ("job", "submit", "start", "end", "wait", "size", "run", "limit", "promised_start")


@dataclass(frozen=True, slots=True)
class Steps:
    """Values that hold from each time on until the next."""

    times: list[int]
    values: list[float]


def _sums(times: IntArray, when: IntArray, amounts: IntArray) -> IntArray:
    """The sum, up to each of ``times``, of the amounts that come at ``when``."""
    order = np.argsort(when, kind="stable")
    sums = np.concatenate(([0], np.cumsum(amounts[order])))
    found: IntArray = sums[np.searchsorted(when[order], times, side="right")]
    return found


def _area(times: IntArray, when: IntArray, amounts: IntArray) -> IntArray:
    """The integral, up to each of ``times``, of what ``_sums`` gives."""
    area: IntArray = times * _sums(times, when, amounts) - _sums(times, when, amounts * when)
    return area


def replay(trace: Trace, policy: Policy, watched: int | None = None) -> Outcome:
    """Replay a trace. The story is that of the job ``watched``, an index into the trace."""
    from slurmk.planner.simulator import kernel

    jobs = kernel.Jobs(trace.submit, trace.size, trace.run, trace.limit)
    chosen = -1 if watched is None else watched
    result = kernel.begin(jobs, trace.procs, chosen)
    if policy is Policy.DEFAULT:
        kernel.replay_default(result, kernel.begin_attempts(jobs), chosen)
    elif policy is Policy.CONSERVATIVE:
        kernel.replay_conservative(result, chosen)
    else:
        kernel.replay_head(result, _HEADS[policy], chosen)
    told = result.story[: result.counts[kernel.TOLD]].tolist()
    moments = tuple(Moment(now, None if start == FOREVER else start, before) for now, start, before in told)
    return Outcome(trace, policy, result.starts, result.promised, moments)


_HEADS = {Policy.FCFS: 0, Policy.EASY: 1, Policy.EASY_SJBF: 2}
