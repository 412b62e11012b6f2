"""A demand made ready for arithmetic over columns of nodes: which resources a task and a node need, and where.

Resources are rows of one matrix, so that every question is the same few operations whatever is asked for. Row 0 is CPUs,
row 1 memory, then GRES by type, then rows that stand for rules: ``MaxCPUsPerNode`` of a partition is a resource that its
jobs use up, and ``--exclusive=user`` is one that must be untouched by others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from slurmk.model.node import SHARED_DEVICES, WHOLE_DEVICE
from slurmk.planner.constraints import Choice, choices
from slurmk.planner.profile import Bits, Counts, pack
from slurmk.planner.reserved import Reserved, license_beside
from slurmk.planner.snapshot import BoolArray, Demand, IntArray, PartitionRow, Snapshot

CPUS, MEMORY = 0, 1
OF_ONE_DEVICE = "mps"
"""The parts that only one GPU of a node at a time is given in (gres.conf(5), one_sharing)."""

PLENTY = 1 << 30
"""Capacity of a resource that stands for a rule, and of what has no bound."""


@dataclass(slots=True)
class Resources:
    """The rows of the capacity matrix, and their capacities on each node."""

    capacity: Counts  # [resources, nodes]
    gres: dict[str, tuple[int, ...]]  # name as in a demand -> rows that can serve it
    gres_names: dict[int, str]  # row -> "gpu:a100", or "gpu" for devices without a type
    partition_cpus: dict[str, int]  # partition -> row of its MaxCPUsPerNode
    others: dict[int, int]  # user -> row that everyone else's jobs use
    owners: dict[int, int]  # user -> row that this user's --exclusive=user jobs use
    jobs: int | None = None  # row of how many jobs a node may have at once
    left: dict[str, int] = field(default_factory=dict)  # reservation of cores -> row of what others may have
    kept: dict[str, int] = field(default_factory=dict)  # the same -> row of what its own jobs may have
    shared: dict[str, int] = field(default_factory=dict)  # partition -> row of CPUs that its jobs share, each several times
    ordinary: int | None = None  # row that jobs use which share no CPUs
    sharing: Sharing | None = None

    def charge_sharing(self, amounts: Counts, nodes: IntArray) -> None:
        """Fill in what ``amounts`` of GPUs and shards on these nodes take of what both are made of."""
        if self.sharing is not None:
            gpus, shards = (total(amounts, rows) for rows in (self.gres[WHOLE_DEVICE], self.sharing.parts))
            amounts[self.sharing.row] = gpus * self.sharing.each[nodes] + shards


@dataclass(slots=True)
class Sharing:
    """GPUs that are given whole or in shards, but not both: a row of capacity that counts shards, of which a whole GPU takes
    ``each`` [nodes] (0 where a node has no shards). ``parts`` are the rows of the shards themselves."""

    row: int
    each: IntArray
    parts: tuple[int, ...]


def resources_of(snapshot: Snapshot) -> Resources:
    """The resource rows that this snapshot needs."""
    nodes = snapshot.nodes
    cpus = np.clip(nodes.cpus - nodes.foreign_cpus, 0, None)
    cpus -= cpus % nodes.threads_per_core
    cpus = _at_least_held(cpus, snapshot)
    given = nodes.gres if nodes.foreign_gres is None else np.clip(nodes.gres - nodes.foreign_gres, 0, None)
    rows: list[IntArray] = [cpus, np.clip(nodes.memory - nodes.foreign_memory, 0, None)]
    gres: dict[str, tuple[int, ...]] = {}
    gres_names: dict[int, str] = {}
    for kind in dict.fromkeys(name.partition(":")[0] for name in nodes.gres_names):
        serving: list[int] = []
        untyped = np.zeros(len(nodes.names), dtype=np.int64)
        for column, name in enumerate(nodes.gres_names):
            if name == kind:
                untyped += given[:, column]
            elif name.startswith(kind + ":"):
                gres[name] = (len(rows),)
                gres_names[len(rows)] = name
                serving.append(len(rows))
                rows.append(given[:, column])
                untyped -= given[:, column]
        if (untyped > 0).any():
            gres_names[len(rows)] = kind
            serving.append(len(rows))
            rows.append(np.clip(untyped, 0, None))
        gres[kind] = tuple(serving)
    partition_cpus = {}
    for partition in snapshot.partitions:
        if partition.maximum_cpus_per_node is not None or partition.maximum_cpus_per_socket is not None:
            partition_cpus[partition.name] = len(rows)
            rows.append(_most_cpus(partition, nodes.sockets))
    jobs = None
    if nodes.maximum_jobs is not None:
        jobs = len(rows)
        rows.append(nodes.maximum_jobs)
    others, owners = {}, {}
    users = {row.demand.share_user for row in snapshot.pending} | {row.share_user for row in snapshot.running}
    for user in sorted(user for user in users if user is not None):
        others[user], owners[user] = len(rows), len(rows) + 1
        rows += [np.full(len(nodes.names), PLENTY)] * 2
    left, kept = {}, {}
    for name, parts in Reserved(snapshot).parts.items():
        left[name], kept[name] = len(rows), len(rows) + 1
        rows += [np.full(len(nodes.names), PLENTY), parts]
    shared = {}
    for partition in snapshot.partitions:
        if _is_shared(partition, snapshot):
            shared[partition.name] = len(rows)
            rows.append(cpus * partition.oversubscribe)
    ordinary = len(rows) if shared else None
    if shared:
        rows.append(np.full(len(nodes.names), PLENTY))
    sharing = _sharing(rows, gres)
    if sharing is not None:
        for row in gres.get(OF_ONE_DEVICE, ()):
            rows[row] = np.minimum(rows[row], sharing.each)
    capacity = np.array(rows, dtype=np.int32)
    return Resources(capacity, gres, gres_names, partition_cpus, others, owners, jobs, left, kept, shared, ordinary, sharing)


def _sharing(rows: list[IntArray], gres: dict[str, tuple[int, ...]]) -> Sharing | None:
    """What GPUs and shards have in common, as one more row."""
    parts = tuple(row for kind in SHARED_DEVICES for row in gres.get(kind, ()))
    if WHOLE_DEVICE not in gres or not parts:
        return None
    gpus, shards = (sum(rows[row] for row in rows_of) for rows_of in (gres[WHOLE_DEVICE], parts))
    each = np.asarray(shards // np.maximum(gpus, 1), dtype=np.int64)
    rows.append(np.where(each > 0, shards, PLENTY))
    return Sharing(len(rows) - 1, each, parts)


def shares_cpus(partition: PartitionRow, *, wanted: bool, whole: bool = False) -> bool:
    """Whether a job's CPUs are given to several jobs of its partition: OverSubscribe=FORCE, or YES and asked for."""
    return partition.oversubscribe > 1 and not whole and (partition.forced_sharing or wanted)


def _is_shared(partition: PartitionRow, snapshot: Snapshot) -> bool:
    if partition.oversubscribe <= 1 or partition.forced_sharing:
        return partition.oversubscribe > 1
    waiting = any(row.demand.oversubscribe and partition.name in row.partitions for row in snapshot.pending)
    return waiting or any(row.oversubscribe and row.allocation.partition == partition.name for row in snapshot.running)


def _most_cpus(partition: PartitionRow, sockets: IntArray) -> IntArray:
    """CPUs of each node that the partition's jobs may have together (MaxCPUsPerNode, MaxCPUsPerSocket)."""
    most = np.full(len(sockets), PLENTY if partition.maximum_cpus_per_node is None else partition.maximum_cpus_per_node)
    if partition.maximum_cpus_per_socket is not None:
        most = np.minimum(most, sockets * partition.maximum_cpus_per_socket)
    return most


def without_others(snapshot: Snapshot) -> Snapshot | None:
    """The snapshot as if only slurmk's jobs could be on the nodes, and none were; None when that changes nothing."""
    nodes = snapshot.nodes
    if not (nodes.foreign_cpus.any() or nodes.foreign_memory.any() or nodes.foreign_gres is not None):
        return None
    nobody = np.zeros_like(nodes.foreign_cpus)
    alone = replace(nodes, foreign_cpus=nobody, foreign_memory=nobody, foreign_gres=None, maximum_jobs=None)
    return replace(snapshot, nodes=alone, running=())


def _at_least_held(cpus: IntArray, snapshot: Snapshot) -> IntArray:
    """Capacities that are not below what jobs hold already. Others may have taken what a job was given before its pods were
    there; a negative rest on one node would hide, in sums over nodes, what is free on another."""
    nodes = snapshot.nodes
    if not nodes.foreign_cpus.any():
        return cpus
    position = {name: row for row, name in enumerate(nodes.names)}
    held = np.zeros_like(cpus)
    for running in snapshot.running:
        for share in running.allocation.shares:
            if share.node in position:
                held[position[share.node]] += share.cpus
    raised: IntArray = np.maximum(cpus, np.minimum(held, nodes.cpus))
    return raised


@dataclass(slots=True)
class Requirement:
    """A demand in one partition under one choice of its constraint.

    ``node_needs`` are (row, amount) that each node must have free, of which ``takes`` says what is used up; ``task_needs``
    limit the tasks a node can hold.
    """

    demand: Demand
    partition: PartitionRow
    pool: int
    eligible: BoolArray
    bits: Bits
    static_tasks: IntArray  # [nodes] tasks that an idle node holds
    whole: bool
    minimum_nodes: int
    maximum_nodes: int
    tasks: int
    needed_cpus: int  # at least so many in all: for the scan
    licenses: IntArray
    size_class: object  # equal for demands that can be compared by size and time alone
    size: int
    choice: Choice
    required: IntArray
    untouched: tuple[int, ...] = ()
    node_gres: tuple[tuple[tuple[int, ...], int], ...] = ()
    task_gres: tuple[tuple[tuple[int, ...], int], ...] = ()
    job_gres: tuple[tuple[tuple[int, ...], int], ...] = ()
    takes_one: tuple[int, ...] = ()
    cpu_rows: tuple[int, ...] = ()  # rules that its CPUs count for too
    reservation: str = ""
    shared_row: int | None = None  # the CPUs that it shares, in place of CPUs of its own
    feasible: bool = True
    minimum_cpus_per_node: int = 0
    cpus_per_task: int = 1
    cpus_by_gres: tuple[tuple[tuple[int, ...], int], ...] = ()
    memory_by_gres: tuple[tuple[tuple[int, ...], int], ...] = ()
    simple: bool = False  # a fixed number of whole nodes, any of which will do
    needed_nodes: int = 1  # fewest that can hold the tasks
    wants_licenses: bool = False
    comparable: bool = True  # an earlier answer for this size class bounds a later one
    fills_nodes: bool = False  # has CPUs for as many tasks as a node may have, also where it has fewer there
    in_proportion: bool = False  # its CPUs are a multiple of its GRES: no node has more of them than go with the GRES there
    possible: bool | None = None  # fits the empty cluster; None: not yet looked
    plain: bool | None = None  # the compiled profile can place it; None: not yet looked


class Compiler:
    """Turns demands into requirements, each once."""

    def __init__(self, snapshot: Snapshot, resources: Resources, pools: Sequence[BoolArray], pool_of: dict[str, int]) -> None:
        self.snapshot = snapshot
        self.resources = resources
        self.pools = pools
        self.pool_of = pool_of
        self.position = {name: row for row, name in enumerate(snapshot.nodes.names)}
        self.license_column = {name: column for column, name in enumerate(snapshot.licenses)}
        self.reserved = Reserved(snapshot)
        self._choices: dict[tuple[str, str], tuple[Choice, ...]] = {}
        self._known: dict[tuple[int, str, int, str], tuple[Requirement, ...]] = {}
        self._masks: dict[bytes, tuple[BoolArray, Bits]] = {}
        self._classes: dict[object, object] = {}
        self.avoided: Bits | None = None

    def requirements(self, demand: Demand, partition: PartitionRow, user: int, reservation: str) -> tuple[Requirement, ...]:
        """One for each choice of the constraint. ``demand`` is compared by identity first, so keep equal ones the same."""
        by_user = user if self.resources.others else 0
        key = (id(demand), partition.name, by_user, reservation)
        known = self._known.get(key)
        if known is None:
            text = (demand.constraint, demand.prefer)
            found = self._choices.get(text)
            if found is None:
                found = self._choices[text] = choices(demand.constraint, self.snapshot.nodes.features, demand.prefer)
            known = tuple(self._compile(demand, partition, user, reservation, choice) for choice in found)
            self._known[key] = known
            self._avoid_in(known)
        return known

    def avoid(self, bits: Bits) -> None:
        """These nodes do for nothing more."""
        self.avoided = bits if self.avoided is None else self.avoided | bits
        for known in self._known.values():
            self._avoid_in(known)

    def _avoid_in(self, requirements: tuple[Requirement, ...]) -> None:
        if self.avoided is not None:
            for requirement in requirements:
                requirement.bits = requirement.bits & ~self.avoided

    def _compile(self, demand: Demand, partition: PartitionRow, user: int, reservation: str, choice: Choice) -> Requirement:
        nodes, resources = self.snapshot.nodes, self.resources
        eligible = self._eligible(demand, partition, choice)
        whole = demand.whole_nodes or partition.oversubscribe == 0
        bound = self.reserved.bound(reservation)
        if bound is not None:
            eligible = eligible & bound
        minimum = max(demand.minimum_nodes, partition.minimum_nodes, 1)
        maximum = max(demand.maximum_nodes, minimum)
        if partition.maximum_nodes is not None:
            maximum = min(maximum, partition.maximum_nodes)
        licenses = np.zeros(len(self.license_column), dtype=np.int64)
        known_licenses = True
        for name, amount in demand.licenses:
            known_licenses &= name in self.license_column
            for column in self.license_columns(name, reservation):
                licenses[column] += amount
        untouched, takes = self._rules(demand, user)
        shared_row = self.shared_row(partition, demand.oversubscribe, whole)
        untouched, takes = self._apart(shared_row, untouched, takes)
        requirement = Requirement(
            demand=demand,
            partition=partition,
            pool=self.pool_of[partition.name],
            eligible=eligible,
            bits=pack(eligible),
            static_tasks=np.zeros(len(eligible), dtype=np.int64),
            whole=whole,
            minimum_nodes=minimum,
            maximum_nodes=maximum,
            tasks=max(demand.tasks, 1),
            needed_cpus=0,
            licenses=licenses,
            size_class=None,
            size=0,
            choice=choice,
            required=np.array(sorted({self.position[n] for n in demand.required_nodes if n in self.position}), dtype=np.int64),
            untouched=untouched,
            node_gres=self._gres(demand.gres_per_node) + self._per_socket(demand),
            task_gres=self._gres(demand.gres_per_task),
            job_gres=self._gres(demand.gres_per_job),
            takes_one=takes,
            cpu_rows=self.cpu_rows(partition.name, reservation),
            reservation=reservation,
            shared_row=shared_row,
            minimum_cpus_per_node=demand.minimum_cpus_per_node,
            cpus_per_task=self._cpus_per_task(demand),
            cpus_by_gres=self._gres(demand.cpus_per_gres),
            memory_by_gres=self._gres(demand.memory_per_gres),
            fills_nodes=bool(demand.tasks_per_node)
            and demand.tasks > 1
            and not (demand.tasks_per_node_exact or demand.overcommit),
        )
        everywhere = np.arange(len(eligible))
        requirement.in_proportion = _in_proportion(requirement)
        capacity = self.seen_by(requirement, resources.capacity, everywhere)
        requirement.static_tasks = np.where(eligible, self.tasks_on(requirement, capacity, everywhere), 0)
        requirement.eligible = eligible & nodes.available & (requirement.static_tasks > 0)
        requirement.eligible, requirement.bits = self._shared_mask(requirement.eligible)
        self._sizes(requirement)
        if len(requirement.required) < len(set(demand.required_nodes)) or not known_licenses:
            requirement.feasible = False
        if len(requirement.required) and not requirement.eligible[requirement.required].all():
            requirement.feasible = False
        if minimum > maximum or (licenses > self._license_totals()).any():
            requirement.feasible = False
        return requirement

    def _license_totals(self) -> IntArray:
        return np.fromiter(self.snapshot.licenses.values(), dtype=np.int64, count=len(self.snapshot.licenses))

    def _shared_mask(self, eligible: BoolArray) -> tuple[BoolArray, Bits]:
        return self._masks.setdefault(eligible.tobytes(), (eligible, pack(eligible)))

    def _eligible(self, demand: Demand, partition: PartitionRow, choice: Choice) -> BoolArray:
        nodes = self.snapshot.nodes
        mask = self.pools[self.pool_of[partition.name]] & choice.mask
        if demand.excluded_nodes:
            excluded = [self.position[name] for name in demand.excluded_nodes if name in self.position]
            mask = mask.copy()
            mask[excluded] = False
        if demand.temporary_disk:
            mask = mask & (nodes.temporary_disk >= demand.temporary_disk)
        if demand.sockets_per_node:
            mask = mask & (nodes.sockets >= demand.sockets_per_node)
        if demand.cores_per_socket:
            mask = mask & (nodes.cores // np.maximum(nodes.sockets, 1) >= demand.cores_per_socket)
        if demand.threads_per_core:
            mask = mask & (nodes.threads_per_core >= demand.threads_per_core)
        return mask

    def cpu_rows(self, partition: str, reservation: str) -> tuple[int, ...]:
        """The rules that the CPUs of such jobs count for: the partition's, and those of reservations of cores."""
        resources = self.resources
        rows = [resources.partition_cpus[partition]] if partition in resources.partition_cpus else []
        if reservation in resources.kept and self.reserved.bound(reservation) is not None:
            rows.append(resources.kept[reservation])
        rows += [resources.left[other.name] for other in self.reserved.others(reservation) if other.name in resources.left]
        return tuple(rows)

    def license_columns(self, name: str, reservation: str) -> list[int]:
        """The columns that a licence counts for: its own, and what reservations of others leave of it."""
        names = [name, *(license_beside(name, other) for other in self.reserved.others(reservation))]
        return [self.license_column[each] for each in names if each in self.license_column]

    def _rules(self, demand: Demand, user: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Rows that must be untouched, and rows of which one is used, so that users who want no others have none."""
        untouched, takes = [], []
        if demand.memory_per_node == 0:
            untouched.append(MEMORY)
        for owner, row in self.resources.owners.items():
            if owner == user:
                if demand.share_user == user:
                    untouched.append(self.resources.others[owner])
                    takes.append(row)
            else:
                untouched.append(row)
                takes.append(self.resources.others[owner])
        if self.resources.jobs is not None:
            takes.append(self.resources.jobs)
        return tuple(untouched), tuple(takes)

    def shared_row(self, partition: PartitionRow, wanted: bool, whole: bool) -> int | None:
        """The row of the CPUs that such a job shares; None for a job with CPUs of its own."""
        return self.resources.shared.get(partition.name) if shares_cpus(partition, wanted=wanted, whole=whole) else None

    def _apart(
        self, shared_row: int | None, untouched: tuple[int, ...], takes: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Jobs that share CPUs, and those that do not, are on different nodes."""
        rows, ordinary = self.resources.shared.values(), self.resources.ordinary
        if ordinary is None:
            return untouched, takes
        apart = tuple(row for row in rows if row != shared_row)
        if shared_row is None:
            return (*untouched, *apart), (*takes, ordinary)
        return (*untouched, *apart, ordinary), takes

    def seen_by(self, requirement: Requirement, free: Counts, nodes: IntArray) -> Counts:
        """What is free on these nodes as the job sees it: CPUs that it shares are CPUs like others, GPUs of which shards are
        in use are not whole, and those that are in use have no shards."""
        sharing = self.resources.sharing
        gres = requirement.node_gres or requirement.task_gres or requirement.job_gres
        if requirement.shared_row is None and not (sharing and gres):
            return free
        seen = free.copy()
        if requirement.shared_row is not None:
            seen[CPUS] = np.minimum(free[requirement.shared_row], self.resources.capacity[CPUS, nodes])
        if sharing is not None and gres:
            left, each = free[sharing.row], sharing.each[nodes]
            for row in sharing.parts:
                seen[row] = np.minimum(seen[row], left)
            for row in self.resources.gres[WHOLE_DEVICE]:
                seen[row] = np.minimum(seen[row], np.where(each > 0, left // np.maximum(each, 1), PLENTY))
        return seen

    def _gres(self, wanted: tuple[tuple[str, int], ...]) -> tuple[tuple[tuple[int, ...], int], ...]:
        return tuple((self.resources.gres.get(name, ()), amount) for name, amount in wanted)

    def _per_socket(self, demand: Demand) -> tuple[tuple[tuple[int, ...], int], ...]:
        sockets = demand.sockets_per_node or 1
        return tuple((self.resources.gres.get(name, ()), amount * sockets) for name, amount in demand.gres_per_socket)

    def _cpus_per_task(self, demand: Demand) -> int:
        """CPUs of one task, with those that its own GRES bring."""
        cpus = demand.cpus_per_task
        for name, amount in demand.cpus_per_gres:
            kind = name.partition(":")[0]
            for other, count in demand.gres_per_task:
                if other.partition(":")[0] == kind:
                    cpus = max(cpus, amount * count)
        return cpus

    def _sizes(self, requirement: Requirement) -> None:
        """What the scans and the comparison of demands by size need."""
        demand = requirement.demand
        fixed = requirement.minimum_nodes == requirement.maximum_nodes
        counts = requirement.static_tasks[requirement.eligible]
        per_node = requirement.tasks / requirement.minimum_nodes
        most = int(counts.max()) if len(counts) else 1
        requirement.needed_nodes = max(requirement.minimum_nodes, -(-requirement.tasks // most))
        requirement.wants_licenses = bool(requirement.licenses.any())
        requirement.comparable = not demand.switches
        least = int(counts.min()) if len(counts) else 0
        requirement.simple = (
            requirement.whole
            and fixed
            and least * requirement.minimum_nodes >= requirement.tasks
            and not (len(requirement.required) or requirement.choice.groups or requirement.job_gres or demand.minimum_cpus)
            and not (demand.contiguous or demand.spread or requirement.partition.least_loaded)
        )
        cpus_each = 0 if demand.overcommit else requirement.cpus_per_task
        requirement.needed_cpus = max(requirement.tasks * cpus_each, demand.minimum_cpus, requirement.minimum_nodes)
        if requirement.shared_row is not None:
            requirement.needed_cpus = 0
        if fixed and per_node == requirement.tasks // requirement.minimum_nodes and not len(requirement.required):
            size, scale = requirement.minimum_nodes, ("nodes", per_node)
        elif requirement.minimum_nodes == 1 and requirement.maximum_nodes >= len(requirement.eligible):
            size, scale = requirement.tasks, ("tasks", 0.0)
        else:
            size, scale = 1, (demand.minimum_nodes, float(demand.maximum_nodes), demand.tasks)  # type: ignore[assignment]
        key = (
            requirement.bits.tobytes(),
            requirement.partition.name,
            requirement.whole,
            scale,
            requirement.cpus_per_task,
            demand.tasks_per_node,
            demand.tasks_per_node_exact,
            demand.tasks_per_core,
            demand.tasks_per_socket,
            demand.threads_per_core,
            demand.minimum_cpus,
            demand.minimum_cpus_per_node,
            demand.memory_per_node,
            demand.memory_per_cpu,
            demand.overcommit,
            requirement.untouched,
            requirement.shared_row,
            requirement.node_gres,
            requirement.task_gres,
            requirement.job_gres,
            requirement.cpus_by_gres,
            requirement.memory_by_gres,
            demand.licenses,
            demand.contiguous,
            demand.switches,
            demand.segment,
            demand.spread_segments,
            demand.spread,
            demand.use_minimum_nodes,
            demand.node_counts,
            demand.required_nodes,
            tuple((mask.tobytes(), count) for mask, count in requirement.choice.groups),
        )
        requirement.size_class, requirement.size = self._classes.setdefault(key, object()), size

    # ------------------------------------------------------------------------------------------ arithmetic

    def tasks_on(self, requirement: Requirement, free: Counts, nodes: IntArray) -> IntArray:
        """How many of the job's tasks each of ``nodes`` can hold; ``free`` is [resources, len(nodes)]. 0: not usable."""
        demand, table = requirement.demand, self.snapshot.nodes
        capacity = self.resources.capacity[:, nodes]
        cpus = free[CPUS].astype(np.int64)
        if not requirement.whole:
            for row in requirement.cpu_rows:
                cpus = np.minimum(cpus, free[row])
        threads = table.threads_per_core[nodes]
        usable = usable_cpus(demand, cpus, threads)
        if demand.overcommit:
            tasks = np.where(cpus > 0, PLENTY, 0)
        elif demand.tasks_per_core:
            cores = -(-requirement.cpus_per_task // threads)
            tasks = cpus // threads // np.maximum(cores, 1) * (demand.tasks_per_core if requirement.cpus_per_task == 1 else 1)
            tasks = np.minimum(tasks, usable // requirement.cpus_per_task)
        else:
            tasks = usable // requirement.cpus_per_task
        ok = tasks > 0
        if self.resources.jobs is not None:
            ok &= free[self.resources.jobs] > 0
        if requirement.minimum_cpus_per_node:
            ok &= cpus >= requirement.minimum_cpus_per_node
        if demand.memory_per_node is not None:
            ok &= free[MEMORY] >= demand.memory_per_node
        elif demand.memory_per_cpu:
            tasks = np.minimum(tasks, free[MEMORY] // (demand.memory_per_cpu * max(1, requirement.cpus_per_task)))
        if requirement.fills_nodes:
            ok &= tasks >= (demand.tasks_per_node or 0)
        for row in requirement.untouched:
            ok &= free[row] == capacity[row]
        if demand.tasks_per_socket:
            tasks = np.minimum(tasks, demand.tasks_per_socket * table.sockets[nodes])
        tasks, ok = self._gres_limits(requirement, free, tasks, ok)
        if demand.tasks_per_node:
            if demand.tasks_per_node_exact:
                ok &= tasks >= demand.tasks_per_node
            tasks = np.minimum(tasks, demand.tasks_per_node)
        limited: IntArray = np.where(ok, tasks, 0)
        return limited

    def _gres_limits(
        self, requirement: Requirement, free: Counts, tasks: IntArray, ok: BoolArray
    ) -> tuple[IntArray, BoolArray]:
        for rows, amount in requirement.task_gres:
            tasks = np.minimum(tasks, total(free, rows) // amount)
        for rows, amount in requirement.node_gres:
            have = total(free, rows)
            ok = ok & (have >= amount)
            for by_rows, cpus in requirement.cpus_by_gres:
                if set(by_rows) & set(rows):
                    ok = ok & (free[CPUS] >= cpus * amount)
            for by_rows, memory in requirement.memory_by_gres:
                if set(by_rows) & set(rows):
                    ok = ok & (free[MEMORY] >= memory * amount)
        for rows, amount in requirement.job_gres:
            have = self.job_gres_on(requirement, rows, free)
            ok = ok & (have > 0)
            if requirement.in_proportion:
                tasks = np.minimum(tasks, -(-have * requirement.tasks // amount))
            for by_rows, cpus in requirement.cpus_by_gres:
                if set(by_rows) & set(rows) and not requirement.demand.tasks_per_node:
                    tasks = np.minimum(tasks, np.maximum(have * cpus // requirement.cpus_per_task, 1))
        for rows, memory in requirement.memory_by_gres:
            for task_rows, amount in requirement.task_gres:
                if set(task_rows) & set(rows):
                    tasks = np.minimum(tasks, free[MEMORY] // (memory * amount))
        return tasks, ok

    def job_gres_on(self, requirement: Requirement, rows: tuple[int, ...], free: Counts) -> IntArray:
        """How much of a per-job GRES a node could give, with the CPUs and memory that come with each, and with its tasks where
        these are in proportion; one is left for each of the other nodes that there are at least."""
        amount = next(count for wanted, count in requirement.job_gres if wanted == rows)
        have = np.minimum(total(free, rows), max(amount - requirement.minimum_nodes + 1, 1))
        if requirement.in_proportion:
            have = np.minimum(have, free[CPUS] // (requirement.tasks * requirement.cpus_per_task // amount))
        for by_rows, cpus in requirement.cpus_by_gres:
            if set(by_rows) & set(rows):
                have = np.minimum(have, free[CPUS] // cpus)
        for by_rows, memory in requirement.memory_by_gres:
            if set(by_rows) & set(rows):
                have = np.minimum(have, free[MEMORY] // memory)
        return have


def _in_proportion(requirement: Requirement) -> bool:
    """Whether tasks come out even on the GRES of the job or these on tasks, and CPUs on GRES."""
    demand, tasks = requirement.demand, requirement.tasks
    if demand.tasks_per_node or demand.overcommit or tasks <= 1 or len(requirement.job_gres) != 1:
        return False
    amount = requirement.job_gres[0][1]
    return tasks * requirement.cpus_per_task % amount == 0 and (tasks % amount == 0 or amount % tasks == 0)


def usable_cpus(demand: Demand, cpus: IntArray, threads: IntArray) -> IntArray:
    """How many of these CPUs, on nodes of so many threads a core, the job makes use of (--threads-per-core)."""
    if not demand.threads_per_core:
        return cpus
    usable: IntArray = cpus // threads * np.minimum(threads, demand.threads_per_core)
    return usable


def total(free: Counts, rows: tuple[int, ...]) -> IntArray:
    """The sum of several resources by node; nothing for no rows."""
    result = np.zeros(free.shape[1], dtype=np.int64)
    for row in rows:
        result += free[row]
    return result
