"""Victims: only those who may be, as few as will do, and never for a job that then could not start."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import NOW, demand, partition, snapshot_of

from slurmk.model.job import Allocation, NodeShare
from slurmk.planner.plan import plan
from slurmk.planner.queue import in_order
from slurmk.planner.snapshot import PendingRow, Preemption, RunningRow, Snapshot, Victim

NODES, CPUS = 4, 4


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    free = [CPUS] * NODES
    running, victims = [], {}
    for number in range(draw(st.integers(1, 8))):
        node = draw(st.integers(0, NODES - 1))
        if not free[node]:
            continue
        cpus = draw(st.integers(1, free[node]))
        free[node] -= cpus
        tier = draw(st.integers(1, 3))
        share = NodeShare(f"n{node}", cpus, 0, 1, cpu_ids=tuple(range(free[node], free[node] + cpus)))
        job = 900 + number
        running.append(RunningRow(job, NOW + draw(st.integers(1, 20)) * 60, Allocation(f"p{tier}", (share,)), 1))
        if draw(st.integers(0, 3)):
            exempt = NOW + draw(st.sampled_from((-5, -5, 60)))
            victims[job] = Victim(tier, "", draw(st.integers(1, 3)), NOW - number, exempt)
    pending = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        nodes, whole = draw(st.integers(1, 3)), draw(st.booleans())
        wanted = demand(nodes, nodes * draw(st.integers(1, CPUS)), whole_nodes=whole)
        where = f"p{draw(st.integers(1, 3))}"
        limit = draw(st.integers(1, 20)) * 60
        pending.append(PendingRow(number, wanted, (where,), 100 - number, NOW - 5, limit, 1))
    partitions = tuple(partition(NODES, f"p{tier}", tier) for tier in (1, 2, 3))
    rules = Preemption(True, victims)
    return snapshot_of(((CPUS, 100, 0),) * NODES, tuple(pending), tuple(running), partitions=partitions, preemption=rules)


def without(snapshot: Snapshot, gone: set[int]) -> tuple[RunningRow, ...]:
    return tuple(row for row in snapshot.running if row.job_id not in gone)


@settings(deadline=None, max_examples=250)
@given(snapshots())
def test_few_and_never_in_vain(snapshot: Snapshot) -> None:
    made = plan(snapshot)
    assert made == plan(snapshot)
    assert snapshot.preemption is not None
    rows = {row.job_id: row for row in snapshot.pending}
    tier = {name: number for number, name in ((1, "p1"), (2, "p2"), (3, "p3"))}
    taken: set[int] = set()
    for preempt in made.preempted:
        row = rows[preempt.job_id]
        assert preempt.job_id not in {start.job_id for start in made.starts}
        for victim in preempt.victims:
            known = snapshot.preemption.victims[victim]
            assert known.tier < tier[row.partitions[0]]
            assert known.exempt_until <= NOW
            assert victim not in taken
            taken.add(victim)
    if not made.preempted:
        return
    first = made.preempted[0]
    order = in_order(snapshot, snapshot.pending)
    before = tuple(order[: [row.job_id for row in order].index(first.job_id) + 1])
    alone = replace(snapshot, pending=before, preemption=None)

    def starts(gone: set[int]) -> set[int]:
        return {start.job_id for start in plan(replace(alone, running=without(snapshot, gone))).starts}

    earlier = {start.job_id for start in made.starts} & {row.job_id for row in before}
    served = replace(snapshot.preemption, served=frozenset({first.job_id}))
    again = plan(replace(snapshot, running=without(snapshot, set(first.victims)), preemption=served))
    assert first.job_id in {start.job_id for start in again.starts}, "it starts once they are gone"
    assert earlier <= {start.job_id for start in plan(alone).starts}
    if len(first.victims) > 1:
        only_last = replace(alone, pending=before[-1:])
        for victim in first.victims:
            left = set(first.victims) - {victim}
            kept = plan(replace(only_last, running=without(snapshot, left)))
            enough = first.job_id in {start.job_id for start in kept.starts}
            assert not enough or len(before) > 1, "none of them is superfluous"


@settings(deadline=None, max_examples=100)
@given(snapshots())
def test_without_victims_nothing_is_other(snapshot: Snapshot) -> None:
    nobody = replace(snapshot, preemption=Preemption(True, {}))
    assert plan(nobody) == plan(replace(snapshot, preemption=None))
