"""The rows of sinfo: nodes and partitions that are the same in everything that is printed share one.

A field says by ``node_key``, ``partition_key`` and ``exact_key`` what of it keeps nodes apart. Sizes (CPUs, memory …) do
not, unless ``--exact`` asks for it: their row shows the smallest with a ``+``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from grammar.formats import Field
from grammar.hostlist import compress
from grammar.times import format_duration_minutes, format_time
from slurmk.commands.node_text import NodeView, features_text, gres_text
from slurmk.model.node import Partition
from slurmk.model.states import INFINITE, NodeFlag, NodeState


@dataclass(slots=True)
class Row:
    """Nodes that are shown together, and the first of the partitions they are shown for."""

    partition: Partition
    order: int  # of the partition
    preempt_mode: str  # of the cluster
    convert: bool = True
    nodes: list[NodeView] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def add(self, view: NodeView) -> None:
        if view.node.name not in self.names:
            self.names.add(view.node.name)
            self.nodes.append(view)

    @property
    def first(self) -> NodeView | None:
        return self.nodes[0] if self.nodes else None

    def count(self, number: int) -> str:
        """A count as sinfo prints it: multiples of 1024 get a unit."""
        units = iter(("", "K", "M", "G"))
        unit = next(units)
        while self.convert and number >= 1024 and number % 1024 == 0:
            number, unit = number // 1024, next(units)
        return f"{number}{unit}"


Key = Callable[[NodeView], Hashable]


@dataclass(frozen=True, slots=True)
class RowField:
    """One field of sinfo: its letter (-o) or "", its names (-O), and what tells rows apart by it."""

    letter: str
    names: tuple[str, ...]
    heading: str
    value: Callable[[Row], str | None]
    node_key: Key | None = None
    partition_key: Callable[[Partition], Hashable] | None = None
    exact_key: Key | None = None
    cut_heading: bool = True
    within: Callable[[Row, int], str] | None = None

    @property
    def printed(self) -> Field[Row]:
        return Field(self.heading, self.value, cut_heading=self.cut_heading, within=self.within)


def build_rows(
    partitions: Sequence[tuple[int, Partition]],
    nodes: dict[str, NodeView],
    fields: Iterable[RowField],
    *,
    each_node: bool,
    exact: bool,
    empty: bool,
    preempt_mode: str,
    convert: bool,
) -> list[Row]:
    """Rows for the nodes of these partitions (with their order of configuration), in order of appearance.

    With ``each_node`` a node has a row in each of its partitions. ``nodes`` are those that passed the filters. With
    ``empty``, a partition of which none did has a row without nodes.
    """
    used = tuple(fields)
    node_keys = [each.node_key for each in used if each.node_key]
    if exact:
        node_keys += [each.exact_key for each in used if each.exact_key]
    partition_keys = [each.partition_key for each in used if each.partition_key]
    if each_node:
        partition_keys.append(lambda partition: partition.name)
    rows: dict[Hashable, Row] = {}
    own: dict[str, tuple[Hashable, ...]] = {}
    for order, partition in partitions:
        of_partition = tuple(key(partition) for key in partition_keys)
        found = False
        for name in partition.nodes:
            view = nodes.get(name)
            if view is None:
                continue
            found = True
            of_node = own.get(name)
            if of_node is None:
                of_node = own[name] = (name if each_node else "", *(key(view) for key in node_keys))
            row = rows.get((of_partition, of_node))
            if row is None:
                row = rows[of_partition, of_node] = Row(partition, order, preempt_mode, convert)
            row.add(view)
        if not found and empty:
            rows[of_partition, None] = Row(partition, order, preempt_mode, convert)
    return list(rows.values())


# ------------------------------------------------------------------------------------------------ values


def _range(get: Callable[[NodeView], int]) -> Callable[[Row], str]:
    """The smallest number of the row's nodes, with ``+`` when others have more."""

    def value(row: Row) -> str:
        if not row.nodes:
            return "0"
        numbers = [get(view) for view in row.nodes]
        low = min(numbers)
        return f"{low}+" if max(numbers) > low else str(low)

    return value


def _span(get: Callable[[NodeView], int | None], form: Callable[[int], str]) -> Callable[[Row], str]:
    """Smallest and largest of a measured number; ``N/A`` when nothing was measured."""

    def value(row: Row) -> str:
        numbers = [number for view in row.nodes if (number := get(view)) is not None]
        if not numbers:
            return "N/A"
        low, high = form(min(numbers)), form(max(numbers))
        return low if low == high else f"{low}-{high}"

    return value


def _first(get: Callable[[NodeView], str | None], absent: str | None = None) -> Callable[[Row], str | None]:
    return lambda row: get(row.first) if row.first else absent


def _partition(get: Callable[[Partition], str]) -> Callable[[Row], str]:
    return lambda row: get(row.partition)


def _starred(partition: Partition) -> str:
    return partition.name + "*" if partition.default else partition.name


def _starred_within(row: Row, width: int) -> str:
    """The mark of the default partition stays where its name is cut."""
    return row.partition.name[: width - 1] + "*" if row.partition.default else row.partition.name


_WHOLE_HEADING: dict[str, object] = {"cut_heading": False}


def node_counts(row: Row) -> tuple[int, int, int]:
    """Nodes that jobs hold, that are free, and that can't be used."""
    busy = sum(view.condition.busy for view in row.nodes)
    other = sum(_lost(view) and not view.condition.busy for view in row.nodes)
    return busy, len(row.nodes) - busy - other, other


def _lost(view: NodeView) -> bool:
    return bool(view.condition.flags & NodeFlag.DRAIN) or view.condition.base is NodeState.DOWN


def _nodes_aiot(row: Row) -> str:
    return "/".join(row.count(number) for number in (*node_counts(row), len(row.nodes)))


def cpu_counts(row: Row) -> tuple[int, int, int, int]:
    """CPUs that jobs hold, that are free, that can't be used, and all of them."""
    used = sum(view.cpus_used for view in row.nodes)
    total = sum(view.node.cpus for view in row.nodes)
    other = sum(_unusable(view) for view in row.nodes)
    return used, total - used - other, other, total


def _cpus_aiot(row: Row) -> str:
    return "/".join(map(row.count, cpu_counts(row)))


def _unusable(view: NodeView) -> int:
    """CPUs that no job can have: all that are not in use of a node that can't be used, and what others hold."""
    left = view.node.cpus - view.cpus_used
    return left if _lost(view) else min(left, view.node.foreign_cpus)


def _shape(row: Row) -> str:
    return ":".join((_sockets(row), _cores(row), _threads(row)))


_sockets = _range(lambda view: view.node.sockets)
_cores = _range(lambda view: view.node.cores_per_socket)
_threads = _range(lambda view: view.node.threads_per_core)


def _job_size(partition: Partition) -> str:
    low = max(partition.minimum_nodes, 1)
    if partition.maximum_nodes == INFINITE:
        return f"{low}-infinite"
    return str(low) if low == partition.maximum_nodes else f"{low}-{partition.maximum_nodes}"


def _limit(minutes: int | None) -> str:
    return "n/a" if minutes is None else format_duration_minutes(minutes, padded=False, unlimited="infinite")


def _listed(words: tuple[str, ...] | None) -> str:
    return "all" if words is None else ",".join(words)


def _sharing(partition: Partition) -> str:
    return "NO" if partition.oversubscribe == "EXCLUSIVE" else partition.oversubscribe


def _unlimited(number: int) -> str:
    return "UNLIMITED" if number == INFINITE else str(number)


def _reason_time(view: NodeView) -> str:
    return format_time(view.node.reason_time)


def _long_user(view: NodeView) -> str:
    return f"{view.reason_user}({view.node.reason_user_id})" if view.reason_known else view.reason_user


def _same(get: Callable[[NodeView], str | None], absent: str | None = None) -> dict[str, object]:
    """A text of the first node, which keeps nodes with another text apart."""
    return {"value": _first(get, absent), "node_key": get}


def _of_partition(get: Callable[[Partition], str]) -> dict[str, Callable[..., str]]:
    return {"value": _partition(get), "partition_key": get}


def _sized(get: Callable[[NodeView], int]) -> dict[str, object]:
    return {"value": _range(get), "exact_key": get}


def _spanned(get: Callable[[NodeView], int | None], form: Callable[[int], str]) -> dict[str, object]:
    return {"value": _span(get, form), "exact_key": get}


def _shaped(view: NodeView) -> Hashable:
    return (view.node.sockets, view.node.cores_per_socket, view.node.threads_per_core)


def _field(letter: str, names: str, heading: str, how: object) -> RowField:
    return RowField(letter, tuple(names.lower().split()), heading, **how)  # type: ignore[arg-type]


FIELDS: tuple[RowField, ...] = (
    _field("a", "Available", "AVAIL", _of_partition(lambda partition: partition.state.lower())),
    _field("b", "features_act", "ACTIVE_FEATURES", _same(lambda view: features_text(view.node.active_features))),
    _field("c", "CPUs", "CPUS", _sized(lambda view: view.node.cpus)),
    _field("d", "Disk", "TMP_DISK", _sized(lambda view: view.node.temporary_disk)),
    _field("e", "FreeMem", "FREE_MEM", _spanned(lambda view: view.node.free_memory, str)),
    _field("f", "Features", "AVAIL_FEATURES", _same(lambda view: features_text(view.node.features))),
    _field("g", "Groups", "GROUPS", _of_partition(lambda partition: _listed(partition.allow_groups))),
    _field("h", "OverSubscribe Share", "OVERSUBSCRIBE", _of_partition(_sharing)),
    _field("i", "Reservation", "RESERVATION", _same(lambda view: view.reservation)),
    _field("l", "Time", "TIMELIMIT", _of_partition(lambda partition: _limit(partition.maximum_time))),
    _field("m", "Memory", "MEMORY", _sized(lambda view: view.node.memory)),
    _field("n", "NodeHost", "HOSTNAMES", _same(lambda view: view.node.host_name or view.node.name) | _WHOLE_HEADING),
    _field("o", "NodeAddr", "NODE_ADDR", _same(lambda view: view.node.address or view.node.name) | _WHOLE_HEADING),
    _field("p", "PriorityTier", "PRIO_TIER", _of_partition(lambda partition: str(partition.priority_tier))),
    _field("r", "Root", "ROOT", _of_partition(lambda partition: "yes" if partition.root_only else "no")),
    _field("s", "Size", "JOB_SIZE", _of_partition(_job_size)),
    _field("t", "StateCompact", "STATE", _same(lambda view: view.condition.short, "n/a")),
    _field("u", "User", "USER", _same(lambda view: view.reason_user, "Unknown")),
    _field("v", "Version", "VERSION", _same(lambda view: view.node.version or "N/A", "N/A")),
    _field("w", "Weight", "WEIGHT", _sized(lambda view: view.node.weight)),
    _field("z", "SocketCoreThread", "S:C:T", {"value": _shape, "exact_key": _shaped}),
    _field("A", "NodeAI", "NODES(A/I)", {"value": lambda row: "/".join(map(row.count, node_counts(row)[:2]))}),
    _field("B", "MaxCPUsPerNode", "MAX_CPUS_PER_NODE", _of_partition(lambda each: _unlimited(each.maximum_cpus_per_node))),
    _field("C", "CPUsState", "CPUS(A/I/O/T)", {"value": _cpus_aiot, "exact_key": lambda view: view.node.cpus}),
    _field("D", "Nodes", "NODES", {"value": lambda row: row.count(len(row.nodes))}),
    _field("E", "Reason", "REASON", _same(lambda view: view.node.reason or "none", "none")),
    _field("F", "NodeAIOT", "NODES(A/I/O/T)", {"value": _nodes_aiot}),
    _field("G", "Gres", "GRES", _same(lambda view: gres_text(view.node.gres))),
    _field("H", "TimeStamp", "TIMESTAMP", _same(_reason_time, "Unknown")),
    _field("I", "PriorityJobFactor", "PRIO_JOB_FACTOR", _of_partition(lambda partition: str(partition.priority_job_factor))),
    _field("L", "DefaultTime", "DEFAULTTIME", _of_partition(lambda partition: _limit(partition.default_time))),
    _field(
        "M",
        "PreemptMode",
        "PREEMPT_MODE",
        {
            "value": lambda row: row.partition.preempt_mode or row.preempt_mode,
            "partition_key": lambda partition: partition.preempt_mode,
        },
    ),
    _field("N", "NodeList", "NODELIST", {"value": lambda row: compress(row.names)} | _WHOLE_HEADING),
    _field("O", "CPUsLoad", "CPU_LOAD", _spanned(lambda view: view.node.cpu_load, lambda load: f"{load / 100:.2f}")),
    _field(
        "P",
        "Partition",
        "PARTITION",
        {"value": _partition(_starred), "partition_key": lambda each: each.name, "within": _starred_within},
    ),
    _field("R", "PartitionName", "PARTITION", _of_partition(lambda partition: partition.name)),
    _field("S", "AllocNodes", "ALLOCNODES", _of_partition(lambda partition: _listed(partition.allow_nodes))),
    _field("T", "StateLong", "STATE", _same(lambda view: view.condition.long, "n/a")),
    _field("U", "UserLong", "USER", _same(_long_user, "Unknown")),
    _field("V", "Cluster", "CLUSTER", {"value": lambda row: "N/A"}),
    _field("X", "Sockets", "SOCKETS", _sized(lambda view: view.node.sockets)),
    _field("Y", "Cores", "CORES", _sized(lambda view: view.node.cores_per_socket)),
    _field("Z", "Threads", "THREADS", _sized(lambda view: view.node.threads_per_core)),
    _field(
        "",
        "AllocMem",
        "ALLOCMEM",
        {"value": _first(lambda view: str(view.memory_used), "0"), "node_key": lambda v: v.memory_used},
    ),
    _field("", "Comment", "COMMENT", _same(lambda view: view.node.comment or None)),
    _field("", "Extra", "EXTRA", _same(lambda view: view.node.extra or None)),
    _field("", "GresUsed", "GRES_USED", _same(lambda view: view.gres_used)),
    _field("", "Port", "PORT", {"value": _first(lambda view: str(view.node.port), "0"), "exact_key": lambda v: v.node.port}),
    _field("", "StateComplete", "STATECOMPLETE", _same(lambda view: view.condition.full.lower(), "n/a")),
)
"""Every field of sinfo."""

LETTERS: dict[str, RowField] = {each.letter: each for each in FIELDS if each.letter}
NAMES: dict[str, RowField] = {name: each for each in FIELDS for name in each.names}

WITHOUT_DATA: dict[str, str] = {
    "cluster": "N/A, as for a cluster that is not asked for by name",
}
"""Fields that print what Slurm prints without data, by name, and why."""

HELP_LETTERS = "SaVYcOCLdfbeGGgBmoAFnNDhPRMIpEirsXztTZlHuUvw"
"""Letters of ``--helpformat``."""

HELP_NAMES: tuple[str, ...] = tuple(
    "AllocMem AllocNodes Available Cluster Comment Cores CPUs CPUsLoad CPUsState DefaultTime Disk Extra Features features_act "  # noqa: SIM905
    "FreeMem Gres GresUsed Groups MaxCPUsPerNode Memory NodeAddr NodeAI NodeAIOT NodeHost NodeList Nodes OverSubscribe "
    "Partition PartitionName Port PreemptMode PriorityJobFactor PriorityTier Reason Reservation Root Size Sockets "
    "SocketCoreThread StateCompact StateComplete StateLong Threads Time TimeStamp User UserLong Version Weight".split()
)
"""Names of ``--helpFormat``."""


# ------------------------------------------------------------------------------------------------ order


def _state_number(row: Row) -> int:
    return int(row.first.condition.base) | int(row.first.condition.flags) if row.first else 0


def _number(get: Callable[[NodeView], int]) -> Callable[[Row], int]:
    return lambda row: min(map(get, row.nodes), default=0)


def _size_number(view: NodeView) -> int:
    """Sockets, cores and threads as one number."""
    node = view.node
    return (node.sockets << 40) + (node.cores_per_socket << 20) + node.threads_per_core


_ORDERS: dict[str, Callable[[Row], int]] = {
    "#P": lambda row: row.order,
    "t": _state_number,
    "T": _state_number,
    "N": lambda row: row.first.index if row.first else 1 << 62,
    **dict.fromkeys("CGLno", lambda row: 0),
    "z": lambda row: min(map(_size_number, row.nodes), default=0),
    "D": lambda row: len(row.nodes),
    "c": _number(lambda view: view.node.cpus),
    "d": _number(lambda view: view.node.temporary_disk),
    "m": _number(lambda view: view.node.memory),
    "w": _number(lambda view: view.node.weight),
    "X": _number(lambda view: view.node.sockets),
    "Y": _number(lambda view: view.node.cores_per_socket),
    "Z": _number(lambda view: view.node.threads_per_core),
    "A": lambda row: node_counts(row)[0],
    "F": lambda row: node_counts(row)[0],
    "H": _number(lambda view: view.node.reason_time),
    "l": lambda row: row.partition.maximum_time,
    "s": lambda row: row.partition.minimum_nodes,
    "p": lambda row: row.partition.priority_tier,
    "I": lambda row: row.partition.priority_job_factor,
}
"""Numbers that rows are sorted by; other letters sort by the text they print. Some change nothing in Slurm."""


def sort_rows(rows: list[Row], keys: str) -> None:
    """Sort in place by ``#P,-t``: the first key counts most, ``-`` turns an order round. Unknown letters change nothing."""
    for word in reversed([word for word in keys.split(",") if word]):
        descending = word.lstrip("#").startswith("-")
        letter = word.lstrip("+-") if word.startswith("#P") else word.lstrip("+-#")
        number, text = _ORDERS.get(letter[:2] if letter.startswith("#") else letter[:1]), LETTERS.get(letter[:1])
        if letter[:1] in ("n", "o") and not descending:
            rows.reverse()
        if number is not None:
            rows.sort(key=number, reverse=descending)
        elif text is not None:
            value = text.value
            rows.sort(key=lambda row, value=value: value(row) or "", reverse=descending)  # type: ignore[misc]
