"""The compiled replay of traces starts jobs when the machine and the planner themselves do."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator

import pytest
from core_story import Cluster

from slurmk.core.effects import Launch
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site
from slurmk.planner.profile import FOREVER
from slurmk.planner.simulator.replay import Outcome, Policy, replay
from slurmk.planner.simulator.trace import Machine, Record, Trace, trace_of

PROCESSORS = 16


def random_trace(seed: int, jobs: int) -> Trace:
    """Jobs that come faster than they can run for a while, then slower; limits are whole minutes, runs end anywhere."""
    chance = random.Random(seed)
    time, records = 0, []
    for number in range(jobs):
        time += chance.choice((0, 5, 60, 400 if number < jobs // 2 else 4000))
        limit = 60 * chance.choice((1, 2, 10, 30, 60, 240))
        run = chance.choice((limit, max(1, limit // 2), chance.randint(1, limit)))
        size = chance.choice((1, 1, 2, 3, 4, 8, 12, PROCESSORS))
        records.append(Record(str(number), time, run, limit, size))
    return trace_of(records, Machine(processors=PROCESSORS))


def through_the_core(trace: Trace, order: str) -> Iterator[tuple[int, int | None]]:
    """Each job's start, and the start that it was promised, when the trace's events go through the machine and the planner."""
    site = Site(
        cluster_name="replay",
        nodes=(Node("n1", cpus=trace.procs, memory=1),),
        partitions=(Partition("all", ("n1",), default=True),),
        scheduler_parameters={"slurmk_order": order},
        memory_is_consumable=False,
    )
    cluster = Cluster(site)
    origin = int(cluster.now)
    events = [(int(submit), 1, index) for index, submit in enumerate(trace.submit)]
    heapq.heapify(events)
    index_of: dict[int, int] = {}
    starts: dict[int, int] = {}
    promised: dict[int, int | None] = {}
    while events:
        now = events[0][0]
        cluster.now = float(origin + now)
        while events and events[0][0] == now:
            _, arrives, number = heapq.heappop(events)
            if arrives:
                limit = int(trace.limit[number]) // 60
                job_id = cluster.submit(tasks=int(trace.size[number]), time_limit=limit)
                index_of[job_id] = number
            else:
                cluster.run_to_end(number)
        for effect in cluster.plan():
            if isinstance(effect, Launch):
                job_id, number = effect.job.job_id, index_of[effect.job.job_id]
                starts[number] = now
                cluster.started(job_id)
                heapq.heappush(events, (now + int(trace.run[number]), 0, job_id))
        for job_id, outlook in cluster.machine.outlooks.items():
            told = outlook.promised if order == "promises" else outlook.start_time
            promised.setdefault(index_of[job_id], None if told is None else told - origin)
    for number in range(len(trace)):
        yield starts[number], promised.get(number)


@pytest.mark.parametrize("seed", range(6))
def test_default_policy_is_that_of_the_planner(seed: int) -> None:
    trace = random_trace(seed, 120)
    outcome = replay(trace, Policy.DEFAULT)
    found = list(through_the_core(trace, "promises"))
    assert [start for start, _ in found] == outcome.starts.tolist()
    for number, (start, promise) in enumerate(found):
        assert promise is None or (start <= promise and promise == outcome.promised[number])


def test_replays_wait_somewhere() -> None:
    """The traces above make jobs wait, so that the comparison means something."""
    outcome = replay(random_trace(0, 120), Policy.DEFAULT)
    assert (outcome.waits > 0).sum() > 40
    assert overcommitted(outcome) == []


def overcommitted(outcome: Outcome) -> list[int]:
    """Moments at which more is in use than there is."""
    trace = outcome.trace
    return [
        time
        for time in outcome.starts.tolist()
        if trace.size[(outcome.starts <= time) & (outcome.ends > time)].sum() > trace.procs
    ]


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("seed", [1, 2])
def test_no_policy_overcommits_or_breaks_promises(policy: Policy, seed: int) -> None:
    outcome = replay(random_trace(seed, 300), policy)
    assert overcommitted(outcome) == []
    assert outcome.figures()["broken_promises"] == 0
    assert (outcome.waits >= 0).all()
    if policy in (Policy.CONSERVATIVE, Policy.DEFAULT):
        assert (outcome.promised < FOREVER).all()
