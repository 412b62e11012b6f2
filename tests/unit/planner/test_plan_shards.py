"""GPUs that are given whole or in shards: never both at any instant of a plan; and shards of as few GPUs as will do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import NOW, demand, snapshot_of

from slurmk.model.job import Allocation, GresShare, NodeShare
from slurmk.planner.forecast import Forecast
from slurmk.planner.plan import forecast, plan
from slurmk.planner.snapshot import NodeTable, PendingRow, RunningRow, Snapshot

GPUS, EACH = 2, 4


@pytest.fixture(scope="module", autouse=True, params=["numpy", "compiled"])
def form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds of both forms of the profile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("slurmk.planner.forecast.COMPILED_FROM", 0 if request.param == "compiled" else 1 << 60)
        yield


def with_shards(table: NodeTable, kind: str = "shard") -> NodeTable:
    """The nodes with four shards of each GPU."""
    count = len(table.names)
    return replace(
        table,
        gres_names=("gpu", kind),
        gres=np.column_stack((table.gres[:, 0], EACH * table.gres[:, 0])),
        gres_devices={
            "gpu": tuple(tuple(range(number)) for number in table.gres[:, 0].tolist()),
            kind: tuple(tuple(range(EACH * number)) for number in table.gres[:, 0].tolist()),
        },
        features=(frozenset(),) * count,
    )


def row(number: int, kind: str, amount: int, minutes: int = 10, nodes: int = 1) -> PendingRow:
    wanted = demand(nodes, gres_per_node=((kind, amount),))
    return PendingRow(number, wanted, ("p",), 100 - number, NOW, minutes * 60, 1)


def queue(*rows: PendingRow, running: tuple[RunningRow, ...] = (), nodes: int = 1, kind: str = "shard") -> Snapshot:
    made = snapshot_of(((16, 100, GPUS),) * nodes, rows, running)
    return replace(made, nodes=with_shards(made.nodes, kind))


def holds(kind: str, *numbers: int) -> RunningRow:
    share = NodeShare("n0", 1, 0, 1, (GresShare(kind, "", len(numbers), numbers),), (0,))
    return RunningRow(900, NOW + 3600, Allocation("p", (share,)), 1)


def test_a_gpu_of_which_shards_are_in_use_is_not_given_whole() -> None:
    made = plan(queue(row(1, "shard", 2), row(2, "gpu", 2), row(3, "gpu", 1), row(4, "shard", 1)))
    given = {start.job_id: start.allocation.shares[0].gres[0].indices for start in made.starts}
    assert given == {1: (0, 1), 3: (1,), 4: (2,)}
    assert made.outlooks[2].start_time == NOW + 600


def test_shards_are_not_of_a_gpu_that_a_job_has_whole() -> None:
    made = plan(queue(row(1, "shard", 4), row(2, "shard", 1), running=(holds("gpu", 0),)))
    given = {start.job_id: start.allocation.shares[0].gres[0].indices for start in made.starts}
    assert given == {1: (4, 5, 6, 7)}
    assert made.outlooks[2].start_time == NOW + 600, "there are shards, but on the GPU in use"


def test_a_shared_gpu_takes_the_next_shard_too() -> None:
    made = plan(queue(row(1, "shard", 1), row(2, "gpu", 1), running=(holds("shard", 5),)))
    given = {start.job_id: start.allocation.shares[0].gres[0].indices for start in made.starts}
    assert given == {1: (4,), 2: (0,)}


def test_only_one_gpu_of_a_node_is_given_in_parts_for_mps() -> None:
    """The other one is free, and stays so for jobs that want a whole one (gres.conf(5), one_sharing)."""
    waits = (row(1, "mps", 3), row(2, "mps", 2), row(3, "gpu", 1), row(4, "mps", 1), row(5, "mps", 5))
    made = plan(queue(*waits, kind="mps"))
    given = {start.job_id: start.allocation.shares[0].gres[0].indices for start in made.starts}
    assert given == {1: (0, 1, 2), 3: (1,), 4: (3,)}
    assert made.outlooks[2].start_time == NOW + 600
    assert made.outlooks[5].start_time is None, "more than one GPU has"


def test_gpus_that_are_all_shared_a_little_are_not_given_whole() -> None:
    """One shard of each of two GPUs is in use: six are free, but no GPU is until the first of the two jobs ends."""
    first = replace(holds("shard", 0), job_id=901, end_time=NOW + 600)
    second = replace(holds("shard", 4), job_id=902, end_time=NOW + 1200)
    made = plan(queue(row(1, "gpu", 1), row(2, "gpu", 2), row(3, "shard", 6, minutes=5), running=(first, second)))
    assert [start.job_id for start in made.starts] == [3]
    assert made.outlooks[1].start_time == NOW + 600
    assert made.outlooks[2].start_time == NOW + 1200


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(["gpu", "shard", ""]), min_size=GPUS * EACH, max_size=GPUS * EACH),
    st.lists(st.tuples(st.sampled_from(["gpu", "shard"]), st.integers(1, 8)), min_size=1, max_size=6),
)
def test_devices_are_given_whole_or_in_shards_and_as_many_as_asked_for(held: list[str], wanted: list[tuple[str, int]]) -> None:
    """Whatever runs on which device, nothing that starts gets one that is in use otherwise, or fewer than it asked for."""
    running: list[RunningRow] = []
    whole: set[int] = set()
    shards: set[int] = set()
    for number, kind in enumerate(held):
        gpu = number // EACH
        if kind == "gpu" and gpu not in whole and not any(shard // EACH == gpu for shard in shards):
            whole.add(gpu)
            running.append(replace(holds("gpu", gpu), job_id=900 + number))
        elif kind == "shard" and gpu not in whole:
            shards.add(number)
            running.append(replace(holds("shard", number), job_id=900 + number))
    rows = [row(number, kind, min(count, GPUS if kind == "gpu" else 8)) for number, (kind, count) in enumerate(wanted, 1)]
    asked = {each.job_id: each.demand.gres_per_node[0] for each in rows}
    for start in plan(queue(*rows, running=tuple(running))).starts:
        (given,) = start.allocation.shares[0].gres
        assert (given.name, len(given.indices)) == asked[start.job_id]
        taken = whole if given.name == "gpu" else shards
        assert taken.isdisjoint(given.indices)
        taken |= set(given.indices)
        assert not any(shard // EACH in whole for shard in shards)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["gpu", "shard"]), st.integers(1, 8), st.integers(1, 6), st.integers(1, 2)),
        min_size=1,
        max_size=9,
    )
)
def test_no_more_is_given_than_there_is(wanted: list[tuple[str, int, int, int]]) -> None:
    rows = [
        row(number, kind, min(amount, GPUS if kind == "gpu" else GPUS * EACH), minutes, nodes)
        for number, (kind, amount, minutes, nodes) in enumerate(wanted, 1)
    ]
    made: Forecast = forecast(queue(*rows, nodes=2))
    kinds = {each.job_id: each.demand.gres_per_node[0] for each in rows}
    booked = [(start.job_id, booking) for start, booking in made.started]
    booked += [(job_id, booking) for job_id, bookings in made.promised.items() for booking in bookings]
    assert len(booked) == len(rows)
    for moment in {booking.start for _, booking in booked}:
        for node in range(2):
            taken = 0
            for job_id, booking in booked:
                if booking.start <= moment < booking.end and node in booking.placement.nodes.tolist():
                    kind, amount = kinds[job_id]
                    taken += amount * (EACH if kind == "gpu" else 1)
            assert taken <= GPUS * EACH
