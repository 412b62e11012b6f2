"""Rows of sinfo (``sinfo_data`` of the data parser): nodes that are alike, and their partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slurmk.commands.documents.nodes import reason_user, states
from slurmk.commands.documents.partitions import PARTITION, PartitionView
from slurmk.commands.documents.shape import VERSIONS, Member, Shape, constant, nested
from slurmk.commands.documents.values import limit, number
from slurmk.commands.node_text import NodeView, gres_text
from slurmk.commands.sinfo_rows import NAMES, Row, RowField, cpu_counts, node_counts
from slurmk.model.site import Site

ALIKE: tuple[RowField, ...] = (NAMES["features"], NAMES["gres"])
"""What nodes of one row have in common besides their sizes and the fields that would be printed."""


@dataclass(frozen=True, slots=True)
class RowView:
    """A row beside the site and all nodes."""

    site: Site
    row: Row
    nodes: Mapping[str, NodeView]


def _first(get: Callable[[NodeView], object], absent: object) -> Callable[[RowView], object]:
    return lambda view: get(view.row.first) if view.row.first else absent


def _span(get: Callable[[NodeView], int]) -> Callable[[RowView], object]:
    """Smallest and largest of the row's nodes."""

    def value(view: RowView) -> object:
        numbers = [get(each) for each in view.row.nodes]
        return {"minimum": min(numbers, default=0), "maximum": max(numbers, default=0)}

    return value


def _least(get: Callable[[NodeView], int], which: Callable[..., int]) -> Callable[[RowView], object]:
    return lambda view: which((get(each) for each in view.row.nodes), default=0)


def _cpus(position: int) -> Callable[[RowView], object]:
    return lambda view: cpu_counts(view.row)[position]


def _nodes(position: int) -> Callable[[RowView], object]:
    return lambda view: node_counts(view.row)[position]


def _free(which: Callable[..., int]) -> Callable[[RowView], object]:
    def value(view: RowView) -> object:
        known = [each.node.free_memory for each in view.row.nodes if each.node.free_memory is not None]
        return number(which(known)) if known or not view.row.nodes else number(None)

    def of_none(view: RowView) -> object:
        return value(view) if view.row.nodes else number(0)

    return of_none


def _partition(version: int) -> Callable[[RowView], object]:
    return lambda view: PARTITION.document(PartitionView(view.site, view.row.partition, view.nodes), version)


ROW: Shape[RowView] = Shape(
    Member("port", _first(lambda view: view.node.port, 0)),
    nested("node", Member("state", _first(lambda view: states(view.condition), ["UNKNOWN"]))),
    nested(
        "nodes",
        Member("allocated", _nodes(0)),
        Member("idle", _nodes(1)),
        Member("other", _nodes(2)),
        Member("total", lambda view: len(view.row.nodes)),
        constant("hostnames", []),
        constant("addresses", []),
        Member("nodes", lambda view: [each.node.name for each in view.row.nodes]),
    ),
    nested(
        "cpus",
        Member("allocated", _cpus(0)),
        Member("idle", _cpus(1)),
        Member("other", _cpus(2)),
        Member("total", _cpus(3)),
        Member("minimum", _least(lambda view: view.node.cpus, min)),
        Member("maximum", _least(lambda view: view.node.cpus, max)),
        Member("load", _span(lambda view: view.node.cpu_load or 0)),
        nested(
            "per_node",
            Member("max", lambda view: limit(view.row.partition.maximum_cpus_per_node) if view.row.nodes else number(0)),
        ),
    ),
    Member("sockets", _span(lambda view: view.node.sockets)),
    Member("cores", _span(lambda view: view.node.cores_per_socket)),
    Member("threads", _span(lambda view: view.node.threads_per_core)),
    Member("disk", _span(lambda view: view.node.temporary_disk)),
    nested(
        "memory",
        Member("minimum", _least(lambda view: view.node.memory, min)),
        Member("maximum", _least(lambda view: view.node.memory, max)),
        nested("free", Member("minimum", _free(min)), Member("maximum", _free(max))),
        Member("allocated", lambda view: view.row.nodes[-1].memory_used if view.row.nodes else 0),
    ),
    Member("weight", _span(lambda view: view.node.weight)),
    nested(
        "features",
        Member("total", _first(lambda view: ",".join(view.node.features), "")),
        Member("active", _first(lambda view: ",".join(view.node.active_features), "")),
    ),
    nested(
        "gres",
        Member("total", _first(lambda view: gres_text(view.node.gres) or "", "")),
        Member("used", _first(lambda view: view.gres_used or "", "")),
    ),
    constant("cluster", ""),
    Member("comment", _first(lambda view: view.node.comment, "")),
    Member("extra", _first(lambda view: view.node.extra, "")),
    nested(
        "reason",
        Member("description", _first(lambda view: view.node.reason, "")),
        Member("time", _first(lambda view: view.node.reason_time, 0)),
        Member("user", _first(lambda view: reason_user(view.node), "root"), until=44),
    ),
    Member("reservation", _first(lambda view: view.reservation, "")),
    Member("reason_set_by_user", _first(lambda view: reason_user(view.node), ""), since=45),
    constant("resource_spec", {"cpus": "", "memory": 0}),
    *(Member("partition", _partition(version), version, version) for version in VERSIONS),
)
"""Every member of a row."""
