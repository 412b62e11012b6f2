"""Licences, reservations and the controllers' answers to a ping: small documents of scontrol and the REST API."""

from __future__ import annotations

from dataclasses import dataclass

from slurmk.commands.documents.shape import Member, Shape, constant


@dataclass(frozen=True, slots=True)
class LicenseView:
    """A licence: how many there are and how many running jobs hold."""

    name: str
    total: int
    used: int


LICENSE: Shape[LicenseView] = Shape(
    Member("LicenseName", lambda view: view.name),
    Member("Total", lambda view: view.total),
    Member("Used", lambda view: view.used),
    Member("Free", lambda view: max(view.total - view.used, 0)),
    constant("Remote", False),
    constant("Reserved", 0),
    constant("LastConsumed", 0),
    constant("LastDeficit", 0),
    constant("LastUpdate", 0),
    constant("Nodes", "", since=44),
)


@dataclass(frozen=True, slots=True)
class PingView:
    """A controller that has answered, after so many microseconds."""

    host: str
    latency: int


PING: Shape[PingView] = Shape(
    Member("hostname", lambda view: view.host),
    constant("pinged", "UP", until=44),
    constant("responding", True),
    Member("latency", lambda view: view.latency),
    constant("mode", "primary", until=44),
    constant("primary", True),
    constant("status", "No error", since=45),
)
