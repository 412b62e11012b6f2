"""The default policy in its two forms: plans of a whole cluster replay a workload as the compiled replay does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import NOW, demand, snapshot_of

from slurmk.planner.plan import forecast
from slurmk.planner.policy import LITTLE, NEAR, WIDE, age, comes_first, delays_little, stretch
from slurmk.planner.simulator.replay import Outcome, Policy, replay
from slurmk.planner.simulator.trace import Machine, Record, Trace, trace_of
from slurmk.planner.snapshot import PendingRow, RunningRow
from tests.benchmarks.policies import FIGURES, WORKLOADS, compared, made

PROCESSORS = 8

jobs = st.tuples(st.integers(0, 60), st.integers(1, PROCESSORS), st.integers(1, 90), st.floats(0.05, 1.1))
"""Seconds after the job before, processors, limit, the part of it that the job runs."""


def workload(drawn: list[tuple[int, int, int, float]]) -> Trace:
    records, submit = [], 0
    for number, (after, size, limit, part) in enumerate(drawn):
        submit += after
        records.append(Record(str(number), submit, max(1, round(limit * part)), limit, size))
    return trace_of(records, Machine(PROCESSORS))


def replayed_by_plans(trace: Trace) -> tuple[list[int], list[int]]:
    """Each job's start, and the start that it was promised, where every event is answered by a plan of one node."""
    starts, promised = [-1] * len(trace), [-1] * len(trace)
    waiting: dict[int, PendingRow] = {}
    running: dict[int, RunningRow] = {}
    longest = arrived = 0
    while arrived < len(trace) or running:
        moments = [starts[job - 1] + int(trace.run[job - 1]) for job in running]
        now = min([*moments, *trace.submit[arrived : arrived + 1].tolist()])
        running = {job: row for job, row in running.items() if starts[job - 1] + trace.run[job - 1] > now}
        while arrived < len(trace) and trace.submit[arrived] == now:
            arrived += 1
            wish = demand(1, tasks=int(trace.size[arrived - 1]))
            limit = int(trace.limit[arrived - 1])
            waiting[arrived] = PendingRow(arrived, wish, ("p",), 10_000 - arrived, NOW + now, limit, 1)
        snapshot = snapshot_of(((PROCESSORS, 1000, 0),), tuple(waiting.values()), tuple(running.values()))
        plan = forecast(replace(snapshot, time=NOW + now, by_promises=True, longest_wait=longest)).plan()
        for start in plan.starts:
            job = start.job_id
            starts[job - 1] = now
            if promised[job - 1] < 0:
                promised[job - 1] = now
            running[job] = RunningRow(job, NOW + now + start.time_limit, start.allocation, 1)
            longest = max(longest, now - int(trace.submit[job - 1]))
            del waiting[job]
        for job, outlook in plan.outlooks.items():
            assert outlook.promised is not None
            promised[job - 1] = outlook.promised - NOW
            waiting[job] = replace(
                waiting[job],
                planned=outlook.start_time,
                planned_nodes=outlook.nodes,
                planned_tasks=outlook.tasks,
                promised=outlook.promised,
            )
    return starts, promised


@settings(max_examples=25, deadline=None)
@given(st.lists(jobs, min_size=2, max_size=25))
def test_plans_replay_a_workload_as_the_compiled_replay_does(drawn: list[tuple[int, int, int, float]]) -> None:
    trace = workload(drawn)
    starts, promised = replayed_by_plans(trace)
    outcome = replay(trace, Policy.DEFAULT)
    assert starts == outcome.starts.tolist()
    waited = outcome.starts > outcome.trace.submit  # whoever starts at once was promised nothing that anybody saw
    assert np.array(promised)[waited].tolist() == outcome.promised[waited].tolist()


@settings(max_examples=100, deadline=None)
@given(st.lists(jobs, min_size=2, max_size=120))
def test_no_promise_is_broken_and_nothing_over_committed(drawn: list[tuple[int, int, int, float]]) -> None:
    outcome = replay(workload(drawn), Policy.DEFAULT)
    assert outcome.figures()["broken_promises"] == 0
    assert (outcome.starts >= outcome.trace.submit).all()
    assert most_in_use(outcome) <= PROCESSORS


def most_in_use(outcome: Outcome) -> int:
    sizes, starts, ends = outcome.trace.size, outcome.starts, outcome.ends
    return max(int(sizes[(starts <= moment) & (moment < ends)].sum()) for moment in starts)


def test_who_comes_first() -> None:
    assert not comes_first(age(0, 8, 8), 0)
    longest = 10_000
    narrow, whole = int(NEAR * longest), int(NEAR * longest / (1 + 1 / WIDE)) + 1
    assert not comes_first(age(narrow - 20, 1, 4096), longest)
    assert comes_first(age(narrow, 1, 4096), longest)
    assert comes_first(age(whole, 4096, 4096), longest)
    assert not comes_first(age(whole - 20, 4096, 4096), longest)
    assert delays_little(LITTLE * 60, 60)
    assert not delays_little(LITTLE * 60 - 1, 60)
    assert stretch(600, 60, 8) > stretch(600, 60, 1) > stretch(600, 120, 4) > stretch(0, 60, 8) == 0


def test_better_than_easy_on_the_whole() -> None:
    """Single workloads may go either way; the longest wait most of all, which hangs on one job."""
    found = [compared(made(workload), Policy.DEFAULT) for workload in WORKLOADS]
    slowdown, p95, longest = (float(np.exp(np.mean([np.log(ratios[key]) for ratios in found]))) for key in FIGURES)
    assert slowdown < 0.75
    assert p95 < 0.85
    assert longest < 1
    assert not any(ratios["broken_promises"] for ratios in found)
