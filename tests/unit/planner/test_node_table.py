"""The table of nodes that a plan is made with: made anew where nodes changed, it is the one that would be made from all."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.model.node import GresCapacity, Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import NodeFlag
from slurmk.planner.build import SnapshotCache, build_snapshot, node_table
from slurmk.planner.snapshot import NodeTable

GRES = ((), (GresCapacity("gpu", "a100", 4),), (GresCapacity("gpu", "h100", 2), GresCapacity("gpu", "a100", 1)))
FOREIGN = ((), (("gpu:a100", 1),), (("gpu:h100", 2),))


@st.composite
def changes(draw: Any) -> dict[str, Any]:
    return {
        "cpus": draw(st.integers(1, 64)),
        "memory": draw(st.integers(1, 5)),
        "weight": draw(st.integers(1, 3)),
        "gres": draw(st.sampled_from(GRES)),
        "foreign_cpus": draw(st.integers(0, 3)),
        "foreign_memory": draw(st.integers(0, 3)),
        "foreign_gres": draw(st.sampled_from(FOREIGN)),
        "maximum_jobs": draw(st.one_of(st.none(), st.integers(0, 70))),
        "features": draw(st.sampled_from([(), ("a",), ("a", "b")])),
        "flags": draw(st.sampled_from([NodeFlag.NONE, NodeFlag.DRAIN, NodeFlag.NO_RESPOND])),
        "refusal": draw(st.sampled_from(["", "Taint"])),
    }


def table_of(nodes: list[Node], cache: SnapshotCache) -> NodeTable:
    partition = Partition("p", tuple(node.name for node in nodes))
    site = Site("c", tuple(nodes), (partition,))
    given_nodes = {node.name: node for node in nodes}
    return build_snapshot(
        snapshot_id=1, time=1, site=site, nodes=given_nodes, partitions={"p": partition}, running=(), pending=(), cache=cache
    ).nodes


def plain(table: NodeTable, gres_names: tuple[str, ...]) -> dict[str, object]:
    """Values to compare, without the GRES that no node has."""
    kept = [column for column, name in enumerate(table.gres_names) if name in gres_names]
    found: dict[str, object] = {}
    for field in fields(table):
        value = getattr(table, field.name)
        if field.name in ("gres", "foreign_gres") and value is not None:
            value = value[:, kept]
            if field.name == "foreign_gres" and not value.any():
                value = None
        if field.name == "gres_names":
            value = gres_names
        if field.name == "gres_devices":
            value = {name: value[name] for name in gres_names}
        found[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return found


ROUNDS = st.lists(st.lists(st.tuples(st.integers(0, 5), changes()), max_size=4), max_size=4)


@given(st.lists(changes(), min_size=4, max_size=6), ROUNDS)
@settings(max_examples=80, deadline=None)
def test_a_table_follows_its_nodes(first: list[dict[str, Any]], rounds: list[list[tuple[int, dict[str, Any]]]]) -> None:
    nodes = [replace(Node(f"n{number}"), **fields_) for number, fields_ in enumerate(first)]
    cache = SnapshotCache()
    before = table_of(nodes, cache)
    for changed in rounds:
        earlier = plain(before, before.gres_names)
        nodes = list(nodes)
        for number, fields_ in changed:
            if number < len(nodes):
                nodes[number] = replace(nodes[number], **fields_)
        table, anew = table_of(nodes, cache), node_table(nodes)
        assert set(anew.gres_names) <= set(table.gres_names)
        assert plain(table, anew.gres_names) == plain(anew, anew.gres_names)
        assert plain(before, before.gres_names) == earlier, "a plan that is being made has the older one"
        before = table


def test_nodes_that_join_leave_or_change_places() -> None:
    cache = SnapshotCache()
    one, two, three = (Node(f"n{number}", cpus=number) for number in (1, 2, 3))
    for nodes in ([one, two], [one, two, three], [three, two], [two, three], [two]):
        table = table_of(nodes, cache)
        assert table.names == tuple(node.name for node in nodes)
        assert table.cpus.tolist() == [node.cpus for node in nodes]


def test_partitions_stay_the_same_values_when_a_node_changes() -> None:
    cache = SnapshotCache()
    first, second = Node("n1", cpus=4), Node("n2", cpus=4)
    partition = Partition("p", ("n1", "n2"))

    def rows(*nodes: Node) -> object:
        made = build_snapshot(
            snapshot_id=1,
            time=0,
            site=Site("c", nodes, (partition,)),
            nodes={node.name: node for node in nodes},
            partitions={"p": partition},
            running=(),
            pending=(),
            cache=cache,
        )
        return made.partitions

    before = rows(first, second)
    assert rows(first, replace(second, foreign_cpus=2)) is before, "a reaction takes other partitions for other nodes"
    assert rows(second, first) is not before, "the nodes have other places now"


def test_gres_without_files_are_counted_not_numbered() -> None:
    scratch = GresCapacity("scratch", "", 64 << 30)
    node = Node(
        name="n1", cpus=1, memory=1, gres=(scratch, GresCapacity("gpu", "a100", 2), GresCapacity("nic", "", 2, ("a", "b")))
    )
    table = node_table([node])
    assert dict(table.gres_devices) == {"gpu": ((0, 1),), "gpu:a100": ((0, 1),), "nic": ((0, 1),), "scratch": ((),)}
    assert table.gres[0, table.gres_names.index("scratch")] == 64 << 30
