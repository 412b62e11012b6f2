"""A planner in another process sees the very snapshots that its controller has, and the controller its plans."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.model.job import Allocation, NodeShare
from slurmk.planner.build import with_told
from slurmk.planner.changed_nodes import changed_nodes
from slurmk.planner.node_names import NodeNames
from slurmk.planner.plan import plan
from slurmk.planner.snapshot import Outlook, PendingRow, RunningRow, Snapshot, Start
from slurmk.planner.transfer import (
    Mirror,
    PlanReader,
    Sent,
    packed,
    packed_question,
    pieces,
    unpacked,
    unpacked_question,
)
from tests.benchmarks.plan import mixed

QUEUE = mixed(30, 8, running=4)

CHANGES = st.lists(
    st.tuples(st.sampled_from(["new", "changed", "gone", "ended", "runs", "node", "time", "partition"]), st.integers(0, 40)),
    max_size=6,
)


def across(sent: Sent, mirror: Mirror, snapshot: Snapshot) -> Snapshot:
    for difference in sent.differences(snapshot):
        mirror.follow(unpacked(packed(difference)))
    return mirror.snapshot()


def assert_same(one: Snapshot, other: Snapshot) -> None:
    apart = ("nodes", "partitions", "changed")
    for name in (each.name for each in fields(Snapshot) if each.name not in apart):
        assert getattr(one, name) == getattr(other, name), name
    changed = changed_nodes(one.nodes, other.nodes)
    assert changed is not None
    assert not changed.any()
    for mine, theirs in zip(one.partitions, other.partitions, strict=True):
        assert (mine.name, mine.nodes.tolist()) == (theirs.name, theirs.nodes.tolist())


def newer(snapshot: Snapshot, changes: list[tuple[str, int]], told: bool) -> Snapshot:
    """The snapshot after these changes; ``told``: it says itself what they are."""
    pending = {row.job_id: row for row in snapshot.pending}
    running = {row.job_id: row for row in snapshot.running}
    changed: dict[int, PendingRow | None] = {}
    for what, number in changes:
        match what:
            case "new":
                pending[5000 + number] = changed[5000 + number] = replace(QUEUE.pending[0], job_id=5000 + number)
            case "changed" if 1000 + number in pending:
                row = replace(pending[1000 + number], priority=number)
                pending[1000 + number] = changed[1000 + number] = row
            case "gone" if pending.pop(1000 + number, None) is not None:
                changed[1000 + number] = None
            case "ended":
                running.pop(1 + number, None)
            case "runs":
                share = NodeShare(snapshot.nodes.names[number % 8], 1, 100, 1)
                running[9000 + number] = RunningRow(9000 + number, 5, Allocation("batch", (share,)), 7)
            case "node":
                available = snapshot.nodes.available.copy()
                available[number % 8] ^= True
                snapshot = replace(snapshot, nodes=replace(snapshot.nodes, available=available))
            case "time":
                snapshot = replace(snapshot, time=snapshot.time + number, licenses={"matlab": number})
            case "partition":
                row_of_it = replace(snapshot.partitions[0], priority_tier=number)
                snapshot = replace(snapshot, partitions=(row_of_it,))
            case _:
                pass
    return replace(
        snapshot,
        pending=tuple(pending.values()),
        running=tuple(running.values()),
        changed=changed if told else None,
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(CHANGES, st.booleans()), max_size=5))
def test_the_mirror_shows_what_was_told(story: list[tuple[list[tuple[str, int]], bool]]) -> None:
    sent, mirror = Sent(), Mirror()
    snapshot = QUEUE
    shown = across(sent, mirror, snapshot)
    assert_same(shown, snapshot)
    for changes, told in story:
        snapshot = newer(snapshot, changes, told)
        before, shown = shown, across(sent, mirror, snapshot)
        assert_same(shown, snapshot)
        assert plan(shown) == plan(snapshot)
        known = {row.job_id: row for row in before.pending}
        new = {row.job_id: row for row in shown.pending}
        different = {job_id for job_id in known.keys() | new.keys() if known.get(job_id) is not new.get(job_id)}
        assert shown.changed is not None
        assert different == shown.changed.keys()
        if not any(what == "partition" for what, _ in changes):
            assert shown.partitions is before.partitions, "a reaction knows by that that it may go on"
        if not any(what == "node" for what, _ in changes):
            assert shown.nodes is before.nodes


def test_little_is_sent_of_a_small_change() -> None:
    snapshot = mixed(2000, 64)
    sent, mirror = Sent(), Mirror()
    whole = [packed(difference) for difference in sent.differences(snapshot)]
    assert len(whole) > 5, "nothing else is served while a part is made"
    for part in whole:
        mirror.follow(unpacked(part))
    row = replace(snapshot.pending[5], priority=1)
    pending = (*snapshot.pending[:5], row, *snapshot.pending[6:])
    newer_one = replace(snapshot, time=snapshot.time + 1, pending=pending, changed={row.job_id: row})
    parts = [packed(difference) for difference in sent.differences(newer_one)]
    assert sum(map(len, parts)) < 2000
    for part in parts:
        mirror.follow(unpacked(part))
    assert_same(mirror.snapshot(), newer_one)


def test_equal_demands_stay_one_object() -> None:
    one = QUEUE.pending[0]
    twin = replace(one, job_id=7777, demand=replace(one.demand))
    shown = across(Sent(), Mirror(), replace(QUEUE, pending=(one, twin)))
    assert shown.pending[0].demand is shown.pending[1].demand


def test_where_plans_go_by_promises_records_say_what_they_were_told() -> None:
    snapshot = replace(QUEUE, by_promises=True)
    sent, mirror = Sent(), Mirror()
    across(sent, mirror, snapshot)
    made = plan(snapshot)
    mirror.follow_told(made.outlooks)
    left = tuple(row for row in snapshot.pending if row.job_id in made.outlooks)
    gone = dict.fromkeys(row.job_id for row in snapshot.pending if row.job_id not in made.outlooks)
    told = tuple(with_told(row, made.outlooks[row.job_id]) for row in left)
    shown = across(sent, mirror, replace(snapshot, pending=told, changed=gone))
    assert shown.pending == told
    assert plan(shown) == plan(replace(snapshot, pending=told))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 60), st.integers(0, 5))
def test_a_plan_comes_back_as_it_was(jobs: int, seed: int) -> None:
    snapshot = mixed(jobs, 8, seed, running=2)
    made = plan(snapshot)
    reader = PlanReader(snapshot.nodes.names)
    parts = [reader.plan_of(unpacked(packed(piece))) for piece in pieces(made)]
    assert parts[0].starts == made.starts
    assert {job_id: outlook for part in parts for job_id, outlook in part.outlooks.items()} == made.outlooks


def test_nodes_that_are_named_come_back_too_and_long_plans_in_parts() -> None:
    names = np.array(["a", "b", "c"], dtype=object)
    made = plan(QUEUE)
    outlook = next(iter(made.outlooks.values()))
    outlooks = {number: replace(outlook, nodes=NodeNames(names, np.array([0, 2])), tasks=(1, 2)) for number in range(1200)}
    outlooks[3] = replace(outlook, nodes=("b", "c"), description="told", promised=5)
    outlooks[4] = Outlook(outlook.reason)
    start = Start(9, Allocation("batch", (NodeShare("a", 1, 1, 1),)), 60)
    parts = list(pieces(replace(made, starts=(start,), outlooks=outlooks)))
    assert len(parts) > 1
    read = [PlanReader(("a", "b", "c")).plan_of(unpacked(packed(piece))) for piece in parts]
    assert [part.starts for part in read] == [(start,), *[()] * (len(parts) - 1)]
    assert {job_id: each for part in read for job_id, each in part.outlooks.items()} == outlooks


def test_a_question_takes_no_snapshot_along() -> None:
    row = QUEUE.pending[3]
    data = packed_question(((QUEUE, row), 5))
    assert len(data) < 2000
    other = replace(QUEUE, time=1)
    (snapshot, same), number = unpacked_question(data, other)
    assert snapshot is other
    assert (same, number) == (row, 5)
