"""What a request may say of its nodes and its time, on random small clusters, against trying every set of nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.model.job import Allocation, NodeShare
from slurmk.model.site import Switch
from slurmk.planner.forecast import Forecast
from slurmk.planner.plan import forecast
from slurmk.planner.snapshot import PendingRow, RunningRow, Snapshot

sys.path.insert(0, str(Path(__file__).parent))
from brute_choices import Ask, Chooser
from brute_force import Book, Holding, Machine
from small_clusters import NOW, demand, snapshot_of


@pytest.fixture(scope="module", autouse=True, params=["numpy", "compiled"])
def form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds of both forms of the profile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("slurmk.planner.forecast.COMPILED_FROM", 0 if request.param == "compiled" else 1 << 60)
        yield


CPUS = 3
"""CPUs of each node."""

NODES = 6
LEAVES = (0, 0, 0, 1, 1, 1)
FEATURES = ("a", "a", "ab", "b", "bc", "c")

SWITCHES = (
    Switch("left", ("n0", "n1", "n2")),
    Switch("right", ("n3", "n4", "n5")),
    Switch("top", switches=("left", "right")),
)

EVERYWHERE = frozenset(range(NODES))


def having(*names: str) -> frozenset[int]:
    """Nodes with any of these features."""
    return frozenset(node for node, features in enumerate(FEATURES) if set(names) & set(features))


CONSTRAINTS: dict[str, tuple[tuple[frozenset[int], tuple[tuple[frozenset[int], int], ...]], ...]] = {
    "": ((EVERYWHERE, ()),),
    "a": ((having("a"), ()),),
    "a&b": ((having("a") & having("b"), ()),),
    "a|c": ((having("a", "c"), ()),),
    "[a|b]": ((having("a"), ()), (having("b"), ())),
    "[a*1&b*1]": ((having("a", "b"), ((having("a"), 1), (having("b"), 1))),),
    "[a*2&b*1]": ((having("a", "b"), ((having("a"), 2), (having("b"), 1))),),
    "[b*1&c*2]": ((having("b", "c"), ((having("b"), 1), (having("c"), 2))),),
}


@st.composite
def requests(draw: Callable[..., Any]) -> tuple[str, Ask, dict[str, Any]]:
    """A constraint's text, the request as the brute-force planner takes it, and what else the demand has."""
    nodes = draw(st.integers(1, 4))
    text = draw(st.sampled_from(list(CONSTRAINTS)))
    ways = CONSTRAINTS[text]
    least_of_groups = max((sum(number for _, number in groups) for _, groups in ways), default=1)
    nodes = max(nodes, least_of_groups)
    most = nodes + draw(st.sampled_from([0, 0, 1, 2]))
    excluded = draw(st.sets(st.integers(0, NODES - 1), max_size=2)) if draw(st.booleans()) else set()
    left = sorted(EVERYWHERE - excluded)
    required = draw(st.sets(st.sampled_from(left), max_size=min(nodes, 2))) if draw(st.integers(0, 3)) == 0 else set()
    duration = draw(st.integers(1, 6)) * 20
    switches = draw(st.sampled_from([0, 0, 1]))
    wait = draw(st.sampled_from([15, 50, 500])) if switches else 0
    ask = Ask(
        nodes=nodes,
        most=most,
        tasks=nodes + draw(st.integers(0, 3)),
        whole=draw(st.booleans()),
        duration=duration,
        least=draw(st.sampled_from([None, None, 10, 20])),
        deadline=draw(st.sampled_from([None, None, NOW + 60, NOW + 150])),
        ways=tuple((good - frozenset(excluded), groups) for good, groups in ways),
        required=frozenset(required),
        neighbours=draw(st.integers(0, 3)) == 0,
        switches=switches,
        patience=NOW - 10 + wait if switches else 0,
    )
    ask = replace(ask, least=ask.least if ask.least is not None and ask.least < duration else None)
    more = {
        "excluded_nodes": tuple(f"n{node}" for node in sorted(excluded)),
        "spread": draw(st.integers(0, 4)) == 0,
        "switch_wait": wait,
    }
    return text, ask, more


def row_of(number: int, request: tuple[str, Ask, dict[str, Any]]) -> PendingRow:
    text, ask, more = request
    wanted = demand(
        ask.nodes,
        ask.tasks,
        maximum_nodes=ask.most,
        whole_nodes=ask.whole,
        constraint=text,
        required_nodes=tuple(f"n{node}" for node in sorted(ask.required)),
        contiguous=ask.neighbours,
        switches=ask.switches or None,
        **more,
    )
    return PendingRow(
        job_id=number,
        demand=wanted,
        partitions=("p",),
        priority=1000 - number,
        submit_time=NOW - 10,
        time_limit=ask.duration,
        user_id=1,
        time_minimum=ask.least,
        deadline=ask.deadline,
    )


@st.composite
def queues(draw: Callable[..., Any]) -> tuple[Snapshot, list[Ask], list[Holding]]:
    running, holdings = [], []
    for node in range(NODES):
        used = draw(st.sampled_from([0, 0, 1, 2, CPUS]))
        if used:
            end = NOW + 10 * draw(st.integers(1, 9))
            share = NodeShare(f"n{node}", used, 0, 1, (), tuple(range(used)))
            running.append(RunningRow(900 + node, end, Allocation("p", (share,), whole_nodes=used == CPUS), user_id=1))
            holdings.append(Holding(NOW, end, ((node, (used, 0, 0)),), whole=used == CPUS))
    asked = draw(st.lists(requests(), min_size=1, max_size=4))
    rows = tuple(row_of(number, request) for number, request in enumerate(asked, 1))
    snapshot = snapshot_of(((CPUS, 9, 0),) * NODES, rows, tuple(running), switches=draw(st.sampled_from([(), SWITCHES])))
    table = replace(snapshot.nodes, features=tuple(frozenset(names) for names in FEATURES))
    asks = [ask for _, ask, _ in asked]
    if not snapshot.switches:  # no topology: any nodes are near each other
        asks = [replace(ask, switches=0, patience=0) for ask in asks]
    return replace(snapshot, nodes=table), asks, holdings


def given_to(made: Forecast, row: PendingRow) -> list[Holding]:
    booked = [booking for start, booking in made.started if start.job_id == row.job_id] + made.promised.get(row.job_id, [])
    found = []
    for booking in booked:
        amounts = booking.placement.amounts
        cpus = [CPUS] * len(booking.placement.nodes) if amounts is None else amounts[0].tolist()
        shares = tuple((int(node), (int(held), 0, 0)) for node, held in zip(booking.placement.nodes, cpus, strict=True))
        found.append(Holding(booking.start, booking.end, shares, amounts is None))
    return found


@settings(max_examples=250, deadline=None)
@given(queues())
def test_each_request_gets_the_earliest_start_that_any_set_of_nodes_allows(
    case: tuple[Snapshot, list[Ask], list[Holding]],
) -> None:
    snapshot, asks, holdings = case
    made = forecast(snapshot)
    chooser = Chooser(Book(Machine(((CPUS, 9, 0),) * NODES), list(holdings)), LEAVES)
    for row, ask in zip(snapshot.pending, asks, strict=True):
        booked = given_to(made, row)
        found = (booked[0].start, booked[0].end - booked[0].start) if booked else None
        assert found == chooser.earliest(ask, NOW), (row, chooser.book.holdings)
        if found is not None:
            nodes = tuple(node for node, _ in booked[0].shares)
            assert nodes in set(chooser.allowed(ask, found[0]))
        chooser.book.holdings += booked
        assert not chooser.book.overcommitted()


def test_a_node_with_both_features_is_not_taken_where_two_others_hold_more_tasks() -> None:
    busy = RunningRow(900, NOW + 10, Allocation("p", (NodeShare("n1", 2, 0, 1, (), (0, 1)),)), user_id=1)
    row = row_of(1, ("[a*1&b*1]", Ask(nodes=2, most=2, tasks=5, whole=False, duration=20), {}))
    snapshot = snapshot_of(((CPUS, 9, 0),) * 3, (row,), (busy,))
    features = (frozenset("a"), frozenset("ab"), frozenset("b"))
    made = forecast(replace(snapshot, nodes=replace(snapshot.nodes, features=features)))
    assert [start.allocation.nodes for start, _ in made.started] == [("n0", "n2")]
