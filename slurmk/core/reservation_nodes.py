"""Which nodes, cores and licences a reservation gets, and what is in the way: other reservations, and jobs that still run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from grammar.constraints import Constraint, counted_parts, matches, parse_constraint
from grammar.errors import GrammarError
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.state import State, Turn, limit_end
from slurmk.model.node import Node
from slurmk.model.reservation import (
    REPLACING,
    CoreShare,
    Names,
    Reservation,
    ReservationFlag,
    ReservationRequest,
)

_SHARES = ReservationFlag.MAINT | ReservationFlag.OVERLAP
"""Flags of reservations that may have what another one has."""


def with_partition(state: State, reservation: Reservation, request: ReservationRequest) -> Reservation:
    name = request.partition
    allowed = reservation.allowed_partitions
    if any(each not in state.partitions for each in allowed.names) or (name and name not in state.partitions):
        raise SlurmError(Errno.INVALID_PARTITION_NAME)
    if not name and not reservation.partition and allowed.names and not allowed.denied:
        name = allowed.names[0]
    return replace(reservation, partition=name) if name else reservation


def with_resources(turn: Turn, reservation: Reservation, request: ReservationRequest) -> Reservation:
    """The reservation with nodes, cores and licences as asked."""
    state = turn.state
    if request.licenses is not None:
        reservation = replace(reservation, licenses=licenses(state, request.licenses))
    if reservation.flags & ReservationFlag.ANY_NODES and not (request.nodes or request.node_count or request.core_count):
        return reservation
    if request.nodes is None and not (request.node_count or request.core_count or request.gres):
        raise SlurmError(Errno.INVALID_NODE_NAME)
    if request.nodes and reservation.flags & REPLACING:
        raise SlurmError(Errno.INVALID_NODE_NAME)
    reservation = replace(reservation, features=request.features or reservation.features)
    if request.nodes:
        names, flags = _nodes(state, reservation, request.nodes)
        reservation = replace(reservation, flags=reservation.flags | flags)
        _check_free(turn, reservation, names, whole=not request.core_count)
    else:
        names = reservation.nodes if request.nodes is None else ()
        flags = ReservationFlag.NONE if request.nodes is None else ReservationFlag.SPEC_NODES | ReservationFlag.ALL_NODES
        reservation = replace(reservation, flags=reservation.flags & ~flags)
    count = request.node_count or (len(reservation.nodes) if request.nodes == () else None)
    if not request.nodes or (count and count != len(names)):
        reservation = _in_default_partition(state, reservation)
        names = _chosen(turn, reservation, request, names, count)
    elif request.core_count:
        reservation = _in_default_partition(state, reservation)
    return counted(turn, replace(reservation, nodes=names), request)


def _in_default_partition(state: State, reservation: Reservation) -> Reservation:
    if reservation.partition:
        return reservation
    default = next((each.name for each in state.partitions.values() if each.default), "")
    if not default:
        raise SlurmError(Errno.DEFAULT_PARTITION_NOT_SET)
    return replace(reservation, partition=default)


def licenses(state: State, text: str) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    for word in filter(None, text.split(",")):
        name, _, count = word.replace("=", ":").partition(":")
        number = int(count) if count.isascii() and count.isdigit() else 0 if count else 1
        if not number or number > state.site.licenses.get(name, 0):
            raise SlurmError(Errno.INVALID_LICENSES)
        found[name] = found.get(name, 0) + number
    return tuple(found.items())


def _nodes(state: State, reservation: Reservation, names: Names) -> tuple[tuple[str, ...], ReservationFlag]:
    """The nodes named, in the order of configuration, and what is true of them."""
    chosen = set(reservation.nodes) if all(sign for sign, _ in names) else set()
    flags = ReservationFlag.SPEC_NODES
    for sign, name in names:
        if not sign and name.upper() == "ALL":
            if reservation.flags & ReservationFlag.PART_NODES:
                chosen.update(state.partitions[reservation.partition].nodes)
            else:
                chosen.update(state.nodes)
                flags |= ReservationFlag.ALL_NODES
        elif name not in state.nodes:
            raise SlurmError(Errno.INVALID_NODE_NAME)
        elif sign == "-":
            chosen.discard(name)
        else:
            chosen.add(name)
    if not chosen:
        raise SlurmError(Errno.INVALID_NODE_NAME)
    return tuple(name for name in state.nodes if name in chosen), flags


def _chosen(
    turn: Turn, reservation: Reservation, request: ReservationRequest, kept: tuple[str, ...], count: int | None
) -> tuple[str, ...]:
    """Nodes for a reservation that names none (or not so many): those it has first, then those that no job has by then."""
    state = turn.state
    partition = state.partitions[reservation.partition]
    suitable = [name for name in partition.nodes if name in state.nodes and suits(state.nodes[name], reservation.features)]
    if reservation.features and len({*suitable, *kept}) < (count or 1):
        raise SlurmError(Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE)
    idle_first = sorted(suitable, key=lambda name: _busy(turn, reservation, (name,)))
    order = [*kept, *(name for name in idle_first if name not in kept)]
    free = [name for name in order if name in kept or is_free(turn, reservation, name, whole=not request.core_count)]
    cores = {name: len(_free_cores(state, reservation, state.nodes[name])) for name in free if request.core_count}
    free = [name for name in free if cores.get(name, 1)]
    if count:
        return ordered(state, first_of(state, reservation.features, free, count))
    return ordered(state, _sufficing(state, free, request, cores))


def first_of(state: State, features: str, names: Sequence[str], count: int) -> list[str]:
    """So many of these nodes, the first ones that together have what is counted of their features (``[a*1&b*2]``). Raises
    SlurmError."""
    tree = _tree(features)
    parts = [part for part, number in counted_parts(tree) for _ in range(number)]
    found = _with_parts(state, parts, names)
    if len(found) < len(parts) or len(names) < count:
        raise SlurmError(Errno.NODES_BUSY)
    rest = [name for name in names if name not in found]
    return [*found, *rest[: max(0, count - len(found))]]


def _with_parts(state: State, parts: Sequence[Constraint], names: Iterable[str]) -> set[str]:
    """The first nodes that have one of the parts each, so that as many parts as can be have their node."""
    holders: list[str | None] = [None] * len(parts)

    def placed(name: str, tried: set[int]) -> bool:
        features = _features_of(state.nodes[name])
        for number, part in enumerate(parts):
            if number in tried or not matches(part, features):
                continue
            tried.add(number)
            holder = holders[number]
            if holder is None or placed(holder, tried):
                holders[number] = name
                return True
        return False

    for name in names:
        if None not in holders:
            break
        placed(name, set())
    return {name for name in holders if name is not None}


def suits(node: Node, features: str) -> bool:
    return matches(_tree(features), _features_of(node))


def _features_of(node: Node) -> frozenset[str]:
    return frozenset(node.active_features or node.features)


def _tree(features: str) -> Constraint | None:
    try:
        return parse_constraint(features)
    except GrammarError:
        raise SlurmError(Errno.INVALID_FEATURE) from None


def _sufficing(state: State, free: Iterable[str], request: ReservationRequest, there: Mapping[str, int]) -> list[str]:
    """The first of these nodes that have so many cores (``there`` are as many on each), or so much GRES."""
    cores, gres = request.core_count or 0, dict(request.gres)
    chosen = []
    for name in free:
        if cores <= 0 and not any(count > 0 for count in gres.values()):
            break
        node = state.nodes[name]
        has = {kind: _gres_of(node, kind) for kind in gres}
        if gres and not any(has.values()):
            continue
        chosen.append(name)
        cores -= there.get(name, 0)
        gres = {kind: count - has[kind] for kind, count in gres.items()}
    if cores > 0 or any(count > 0 for count in gres.values()):
        raise SlurmError(Errno.NODES_BUSY)
    return chosen


def ordered(state: State, names: Iterable[str]) -> tuple[str, ...]:
    wanted = set(names)
    return tuple(name for name in state.nodes if name in wanted)


def _cores(node: Node) -> int:
    return max(1, node.cpus // max(1, node.threads_per_core))


def _gres_of(node: Node, name: str) -> int:
    kind, _, wanted = name.partition(":")
    return sum(gres.count for gres in node.gres if gres.name == kind and (not wanted or gres.type == wanted))


def counted(turn: Turn, reservation: Reservation, request: ReservationRequest) -> Reservation:
    """The reservation with its cores and CPUs, and which cores where it does not keep all of them."""
    state = turn.state
    nodes = [state.nodes[name] for name in reservation.nodes]
    gres = request.gres or reservation.gres
    if request.gres_per_node:
        gres = tuple((kind, count * len(nodes)) for kind, count in gres)
    reservation = replace(reservation, gres=gres)
    total = sum(map(_cores, nodes))
    if not request.core_count or request.core_count >= total:
        cpus = sum(_cores(node) * max(1, node.threads_per_core) for node in nodes)
        return replace(reservation, cores=(), core_count=total, cpu_count=cpus)
    if request.core_count < len(nodes):
        raise SlurmError(Errno.INVALID_CORE_COUNT)
    cores = _picked_cores(state, reservation, nodes, request.core_count)
    count, cpus = sum(len(share.cores) for share in cores), sum(share.cpus for share in cores)
    return replace(reservation, cores=cores, core_count=count, cpu_count=cpus)


def _picked_cores(state: State, reservation: Reservation, nodes: list[Node], count: int) -> tuple[CoreShare, ...]:
    """At least one core of each node, the rest from the first ones; those of overlapping reservations are passed over."""
    free = {node.name: _free_cores(state, reservation, node) for node in nodes}
    left = count - len(nodes)
    shares = []
    for node in nodes:
        take = 1 + min(left, len(free[node.name]) - 1)
        left -= take - 1
        shares.append(CoreShare(node.name, tuple(free[node.name][:take]), max(1, node.threads_per_core)))
    if left > 0 or any(not share.cores for share in shares):
        raise SlurmError(Errno.NODES_BUSY)
    return tuple(shares)


def _free_cores(state: State, reservation: Reservation, node: Node) -> list[int]:
    """Numbers of the node's cores that no overlapping reservation has."""
    taken = {
        core
        for other in _overlapping(state, reservation, (node.name,))
        for share in other.cores
        if share.node == node.name
        for core in share.cores
    }
    return [core for core in range(_cores(node)) if core not in taken]


# --------------------------------------------------------------------------------------------- what is in the way


def is_free(turn: Turn, reservation: Reservation, name: str, *, whole: bool) -> bool:
    node = turn.state.nodes[name]
    if not node.available:
        return False
    if any(whole or not other.cores for other in _in_the_way(turn.state, reservation, (name,), named=False)):
        return False
    return bool(reservation.flags & ReservationFlag.IGNORE_JOBS) or not _busy(turn, reservation, (name,))


def _check_free(turn: Turn, reservation: Reservation, names: tuple[str, ...], *, whole: bool) -> None:
    """Named nodes must not be another's, nor in use by jobs that may still run by then."""
    if whole:
        check_overlap(turn.state, reservation, names)
    elif any(not other.cores for other in _in_the_way(turn.state, reservation, names, named=True)):
        raise SlurmError(Errno.RESERVATION_OVERLAP)
    if not reservation.flags & ReservationFlag.IGNORE_JOBS and _busy(turn, reservation, names):
        raise SlurmError(Errno.NODES_BUSY)


def check_overlap(state: State, reservation: Reservation, names: tuple[str, ...]) -> None:
    if not reservation.cores and _in_the_way(state, reservation, names, named=True):
        raise SlurmError(Errno.RESERVATION_OVERLAP)


LOOK_AHEAD = 8 * 86400
"""Seconds after which what repeats has shown all that it does: weekly at least, and a day more for clocks that change."""


def _in_the_way(state: State, reservation: Reservation, names: tuple[str, ...], *, named: bool) -> list[Reservation]:
    """Other reservations that do not let this one have these nodes. One for maintenance lets it where it names them, or where
    the maintenance is more than a week away."""
    if reservation.flags & _SHARES:
        return []
    return [
        other
        for other in _overlapping(state, reservation, names)
        if not other.flags & _SHARES
        or (other.flags & ReservationFlag.MAINT and not named and _meet(reservation, other, within=7 * 86400))
    ]


def _overlapping(state: State, reservation: Reservation, names: tuple[str, ...]) -> list[Reservation]:
    """Other reservations that keep something of these nodes at the same time."""
    wanted = set(names)
    return [
        other
        for other in state.reservations.values()
        if other.number != reservation.number and not wanted.isdisjoint(other.nodes) and _meet(reservation, other)
    ]


def _meet(first: Reservation, second: Reservation, within: int | None = None) -> bool:
    """Whether some occurrences of the two overlap in time; ``within`` so many seconds of the first's start."""
    since = max(first.start_time, second.start_time)
    until = since + LOOK_AHEAD if within is None else min(since + LOOK_AHEAD, first.start_time + within)
    one, other = first.after(since), second.after(since)
    while max(one.start_time, other.start_time) < until:
        if one.start_time < other.end_time and other.start_time < one.end_time:
            return True
        if one.end_time > other.end_time:
            one, other = other, one
        following = one.next()
        if following is one:
            return False
        one = following
    return False


def _busy(turn: Turn, reservation: Reservation, names: tuple[str, ...]) -> bool:
    """Whether jobs that are not of this reservation may still run on these nodes when it begins."""
    state = turn.state
    for name in names:
        for job_id in state.usage[name].jobs:
            job = state.jobs[job_id]
            ending = limit_end(job)
            if job.allocation is None or (reservation.name and job.allocation.reservation == reservation.name):
                continue
            if ending is None or ending > reservation.start_time:
                return True
    return False
