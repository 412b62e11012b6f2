"""Reservations (``reservation_info`` of the data parser): scontrol show reservation, the REST API's ``/slurm/reservation``."""

from __future__ import annotations

from grammar.hostlist import compress
from grammar.tres import format_tres
from slurmk.commands.documents.shape import Member, Shape, constant, nested
from slurmk.commands.documents.values import number
from slurmk.commands.node_text import number_list
from slurmk.model.reservation import Reservation, ReservationFlag

FLAGS: tuple[tuple[ReservationFlag, str], ...] = (
    (ReservationFlag.MAINT, "MAINT"),
    (ReservationFlag.DAILY, "DAILY"),
    (ReservationFlag.WEEKLY, "WEEKLY"),
    (ReservationFlag.IGNORE_JOBS, "IGNORE_JOBS"),
    (ReservationFlag.ANY_NODES, "ANY_NODES"),
    (ReservationFlag.STATIC, "STATIC"),
    (ReservationFlag.PART_NODES, "PART_NODES"),
    (ReservationFlag.OVERLAP, "OVERLAP"),
    (ReservationFlag.SPEC_NODES, "SPEC_NODES"),
    (ReservationFlag.TIME_FLOAT, "TIME_FLOAT"),
    (ReservationFlag.REPLACE, "REPLACE"),
    (ReservationFlag.ALL_NODES, "ALL_NODES"),
    (ReservationFlag.PURGE_COMP, "PURGE_COMP"),
    (ReservationFlag.WEEKDAY, "WEEKDAY"),
    (ReservationFlag.WEEKEND, "WEEKEND"),
    (ReservationFlag.FLEX, "FLEX"),
    (ReservationFlag.NO_HOLD_JOBS, "NO_HOLD_JOBS_AFTER_END"),
    (ReservationFlag.REPLACE_DOWN, "REPLACE_DOWN"),
    (ReservationFlag.MAGNETIC, "MAGNETIC"),
    (ReservationFlag.HOURLY, "HOURLY"),
    (ReservationFlag.USER_DELETE, "USER_DELETE"),
    (ReservationFlag.FORCE_START, "FORCE_START"),
)
"""Flags in the order of documents, which is not scontrol's."""


def _cores(reservation: Reservation) -> list[object]:
    return [{"node": share.node, "core": number_list(share.cores)} for share in reservation.cores]


RESERVATION: Shape[Reservation] = Shape(
    Member("accounts", lambda each: str(each.accounts)),
    constant("burst_buffer", ""),
    Member("core_count", lambda each: each.core_count),
    Member("core_specializations", _cores),
    Member("end_time", lambda each: number(each.end_time)),
    Member("features", lambda each: each.features),
    Member("flags", lambda each: [name for flag, name in FLAGS if each.flags & flag]),
    Member("groups", lambda each: str(each.groups)),
    Member("licenses", lambda each: each.licenses_text),
    Member("max_start_delay", lambda each: each.maximum_start_delay or 0),
    Member("name", lambda each: each.name),
    Member("node_count", lambda each: len(each.nodes)),
    Member("node_list", lambda each: compress(each.nodes) if each.nodes else ""),
    Member("partition", lambda each: each.partition),
    nested("purge_completed", Member("time", lambda each: number(each.purge_after))),
    Member("start_time", lambda each: number(each.start_time)),
    constant("watts", {}, until=44),
    Member("tres", lambda each: format_tres(each.tres)),
    Member("users", lambda each: str(each.users)),
)
"""Every member of a reservation; give it as it is ``at`` the moment."""
