"""Which of the usable nodes a job gets, and what of each: the same choice as select/cons_tres with topology/tree makes.

Nodes of least weight first; below the lowest switch that has enough; whole leaves as few as possible, the smallest one
that will do for what is left; nodes in the order of configuration. Without a topology a run of neighbouring nodes stands
for a leaf. Jobs without GRES take nodes without GRES first: below a leaf switch, or of one weight where there are no switches.
CPUs are taken on the nodes one after another, but every node keeps enough of them for a core; whole nodes, and what cores
of several threads or ``--ntasks-per-node`` have beyond the tasks, get the tasks evenly unless they are to be packed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from slurmk.planner.blocks import Blocks
from slurmk.planner.neighbours import fitting
from slurmk.planner.profile import Counts
from slurmk.planner.requirement import CPUS, MEMORY, PLENTY, Compiler, Requirement, total, usable_cpus
from slurmk.planner.snapshot import BoolArray, IntArray, NodeTable, Snapshot

COVERS = 256
"""Ways to have enough of each counted feature that are tried."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Chosen nodes in ascending order, the tasks on each, and what is held there: [resources, nodes] (None: all of it)."""

    nodes: IntArray
    tasks: IntArray
    amounts: Counts | None


class Topology:
    """Groups of nodes by level: level 0 are leaf switches, the last level holds everything."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.levels: list[IntArray] = []
        position = {name: row for row, name in enumerate(snapshot.nodes.names)}
        members: dict[str, list[int]] = {}
        depth: dict[str, int] = {}
        for switch in snapshot.switches:
            if switch.nodes:
                members[switch.name] = [position[name] for name in switch.nodes if name in position]
                depth[switch.name] = 0
        upper = [switch for switch in snapshot.switches if not switch.nodes]
        while upper:
            ready = [switch for switch in upper if all(child in depth for child in switch.switches)]
            if not ready:
                break
            for switch in ready:
                members[switch.name] = [row for child in switch.switches for row in members[child]]
                depth[switch.name] = 1 + max((depth[child] for child in switch.switches), default=0)
            upper = [switch for switch in upper if switch.name not in depth]
        for level in range(max(depth.values(), default=-1) + 1):
            group = np.full(len(position), -1, dtype=np.int64) if level == 0 else self.levels[-1].copy()
            number = int(group.max(initial=-1)) + 1
            for name, rows in members.items():
                if depth[name] == level:
                    group[rows] = number
                    number += 1
            self.levels.append(group)

    def narrower(self, nodes: IntArray, tasks: IntArray, count: int) -> Iterator[BoolArray]:
        """Masks of the nodes below so many leaf switches: below each one, or below those with most nodes, or most tasks."""
        leaves = self.levels[0][nodes]
        inside = leaves >= 0
        sizes = np.bincount(leaves[inside])
        held = np.bincount(leaves[inside], weights=tasks[inside])
        if count == 1:
            for leaf in np.argsort(sizes, kind="stable"):
                yield leaves == leaf
            return
        for amounts in (sizes, held):
            yield np.isin(leaves, np.argsort(-amounts, kind="stable")[:count])

    def leaves(self, nodes: IntArray) -> IntArray:
        """The leaf of each node; a run of neighbours counts as one where there is no topology."""
        if self.levels:
            return self.levels[0][nodes]
        return runs(nodes)


def runs(nodes: IntArray) -> IntArray:
    """A number for each node, the same for neighbours; ``nodes`` are ascending."""
    groups = np.zeros(len(nodes), dtype=np.int64)
    np.cumsum(nodes[1:] - nodes[:-1] != 1, out=groups[1:])
    return groups


def takes_gres(need: Requirement) -> bool:
    """Whether a job asks for GRES in any way."""
    return bool(need.node_gres or need.task_gres or need.job_gres)


class Placer:
    """Places jobs; it has the tables that don't change while a plan is made."""

    def __init__(self, snapshot: Snapshot, compiler: Compiler) -> None:
        self.table: NodeTable = snapshot.nodes
        self.compiler = compiler
        self.capacity = compiler.resources.capacity
        self.topology = Topology(snapshot)
        self.blocks = Blocks(snapshot.blocks, snapshot.block_sizes, compiler.position) if snapshot.blocks else None
        self.weight = self.table.weight
        self.sparing = self.weight  # for jobs without GRES, where nodes with GRES are kept for others
        self.has_gres: BoolArray | None = None  # the same below a leaf switch: which leaf is not a question of GRES
        if snapshot.spare_gres and self.table.gres.size:
            has_gres: BoolArray = np.any(self.table.gres > 0, axis=1)
            if self.topology.levels:
                self.has_gres = has_gres
            else:
                self.weight = 2 * self.weight
                self.sparing = self.weight + has_gres
        self.one_weight = len(np.unique(self.sparing)) <= 1
        self.one_thread = bool((self.table.threads_per_core == 1).all())
        self.simple = self.one_weight and not self.topology.levels and not snapshot.blocks and not snapshot.least_loaded
        self.least_loaded = snapshot.least_loaded
        self.serial_at_end = snapshot.bounds.serial_at_end

    def place(self, need: Requirement, nodes: IntArray, tasks: IntArray, free: Counts | None) -> Placement | None:
        """Choose among ``nodes`` (ascending), which hold at most ``tasks`` > 0 each, with ``free`` left (None: idle, and
        the job takes them whole). None when no choice satisfies the request."""
        if len(nodes) < need.minimum_nodes or not np.isin(need.required, nodes).all():
            return None
        if any(int(mask[nodes].sum()) < count for mask, count in need.choice.groups):
            return None
        if free is None and self.simple and need.simple:
            return self._idle_runs(need, nodes)
        if need.demand.contiguous:
            return self._neighbours(need, nodes, tasks, free)
        if self.blocks is not None and not (len(need.required) or need.choice.groups):
            order = self._in_blocks(need, nodes, tasks, self.blocks)
            chosen = self._enough(need, order, tasks, free, nodes)
            return None if chosen is None else self._placed(need, nodes, tasks, free, chosen)
        order = self._order(need, nodes, tasks, free)
        chosen = self._enough(need, order, tasks, free, nodes)
        if chosen is None and len(order) < len(nodes):
            order = self._order(need, nodes, tasks, anywhere=True)
            chosen = self._enough(need, order, tasks, free, nodes)
        if chosen is None and need.maximum_nodes < len(nodes):
            order = self._fewest_first(need, nodes, tasks)
            chosen = self._enough(need, order, tasks, free, nodes)
        return None if chosen is None else self._placed(need, nodes, tasks, free, chosen)

    def _placed(self, need: Requirement, nodes: IntArray, tasks: IntArray, free: Counts | None, chosen: IntArray) -> Placement:
        most, nodes = tasks[chosen], nodes[chosen]
        filled = self._fill_nodes(need, most, nodes)
        sort = np.argsort(nodes, kind="stable")
        nodes, most, filled = nodes[sort], most[sort], filled[sort]
        if free is None:
            return Placement(nodes, filled, None)
        placement = self.hold(need, nodes, self._distribute(need, nodes, most, filled), free[:, chosen[sort]], filled)
        return self._level(need, placement) if need.cpus_by_gres else placement

    def _level(self, need: Requirement, placement: Placement) -> Placement:
        """The same with the tasks given evenly to nodes that have CPUs by their GRES."""
        demand, count = need.demand, len(placement.nodes)
        if demand.tasks_per_node or demand.overcommit or demand.packs or need.tasks <= count or placement.amounts is None:
            return placement
        row = CPUS if need.shared_row is None else need.shared_row
        room = placement.amounts[row].astype(np.int64) // need.cpus_per_task
        if int(room.sum()) < need.tasks:
            return placement
        return replace(placement, tasks=_evenly(need.tasks, room))

    def plain(self, need: Requirement) -> bool:
        """Whether CPUs, memory and the numbers of nodes and tasks are all that matters, where all nodes are of one kind."""
        if need.plain is None:
            demand = need.demand
            if need.whole:
                need.plain = self.simple and need.simple and need.tasks == need.minimum_nodes
            elif self._is_serial(need):
                need.plain = False
            else:
                need.plain = (
                    self.simple
                    and self.one_thread
                    and not need.partition.least_loaded
                    and not (need.untouched or need.takes_one or need.node_gres or need.task_gres or need.job_gres)
                    and not (need.cpus_by_gres or need.memory_by_gres or need.choice.groups or len(need.required))
                    and not (need.cpu_rows or demand.node_counts)
                    and not (need.minimum_cpus_per_node or demand.minimum_cpus or demand.contiguous)
                    and not (demand.overcommit or demand.spread or demand.tasks_per_core or demand.tasks_per_socket)
                    and not demand.threads_per_core
                    and (demand.tasks_per_node_exact or not demand.tasks_per_node)
                )
        return need.plain

    def _idle_runs(self, need: Requirement, nodes: IntArray) -> Placement:
        """The same choice as the general one makes, for the common case: a fixed number of nodes, alike, no topology."""
        count = need.minimum_nodes
        if count == 1:
            return Placement(nodes[:1], np.array([need.tasks], dtype=np.int64), None)
        bounds = np.concatenate(([0], (nodes[1:] - nodes[:-1] != 1).nonzero()[0] + 1, [len(nodes)]))
        lengths = bounds[1:] - bounds[:-1]
        order = (-lengths).argsort(kind="stable")
        sizes = lengths[order]
        left = count - sizes.cumsum() + sizes
        step = int((sizes >= left).argmax())
        smallest = sizes[sizes >= left[step]][-1]
        best = int(order[step:][(sizes[step:] == smallest).argmax()])
        taken = np.zeros(len(lengths), dtype=np.bool_)
        taken[order[:step]] = True
        chosen = np.repeat(taken, lengths)
        chosen[bounds[best] : bounds[best] + left[step]] = True
        nodes = nodes[chosen]
        if need.tasks == count:
            return Placement(nodes, np.ones(count, dtype=np.int64), None)
        return Placement(nodes, self._fill_nodes(need, need.static_tasks[nodes], nodes), None)

    # ------------------------------------------------------------------------------------------ which nodes

    def _order(
        self, need: Requirement, nodes: IntArray, tasks: IntArray, free: Counts | None = None, *, anywhere: bool = False
    ) -> IntArray:
        """Positions in ``nodes`` in the order to take them."""
        if self._is_serial(need):
            return np.lexsort((-nodes, self._weights(need)[nodes]))
        if need.maximum_nodes == 1 and not (anywhere or len(need.required) or need.choice.groups or self._lln(need)):
            return self._single(need, nodes, tasks, free)
        first = self._first(need, nodes)
        left = np.ones(len(nodes), dtype=np.bool_)
        left[first] = False
        rest = np.flatnonzero(left)
        if anywhere or self._lln(need):
            key = self._weights(need)[nodes[rest]]
            free_first = -tasks[rest] if self._lln(need) else key
            return np.concatenate((first, rest[np.lexsort((rest, free_first, key))]))
        nodes_left = max(self._wanted(need, len(nodes)) - len(first), 0)
        tasks_left = need.tasks - int(tasks[first].sum())
        if len(first) and nodes_left == 0 and tasks_left <= 0:
            return first
        if need.demand.spread:
            rest = rest[np.argsort(self._weights(need)[nodes[rest]], kind="stable")]
            return np.concatenate((first, _first_that_hold(rest, tasks, nodes_left, tasks_left)))
        rest = self._lightest(need, nodes, tasks, rest, nodes_left, tasks_left)
        rest = self._below_switch(nodes, tasks, rest, nodes_left, tasks_left)
        if self.has_gres is not None and not takes_gres(need):
            rest = rest[np.lexsort((self.has_gres[nodes[rest]], self.weight[nodes[rest]]))]
        rest = self._leaves(nodes, tasks, rest, nodes_left, tasks_left)
        return np.concatenate((first, rest)) if len(first) else rest

    def _single(self, need: Requirement, nodes: IntArray, tasks: IntArray, free: Counts | None) -> IntArray:
        """The nodes that suffice alone, for a job of one node: those of least weight, in the order of configuration."""
        held = self.capacity[:, nodes] if free is None else free
        good = (tasks >= need.tasks) & (held[CPUS] >= need.demand.minimum_cpus)
        for rows, amount in need.job_gres:
            good &= self.compiler.job_gres_on(need, rows, held) >= amount
        alone = np.flatnonzero(good)
        chosen: IntArray = alone[np.argsort(self._weights(need)[nodes[alone]], kind="stable")]
        if len(chosen) and self.has_gres is not None and not takes_gres(need):
            weights, leaves = self.weight[nodes[chosen]], self.topology.levels[0][nodes[chosen]]
            near = (leaves == leaves[0]) & (weights == weights[0])
            chosen = chosen[np.lexsort((self.has_gres[nodes[chosen]], ~near))]
        return chosen

    def _in_blocks(self, need: Requirement, nodes: IntArray, tasks: IntArray, blocks: Blocks) -> IntArray:
        """Positions of nodes in segments of one block each; more of them while those chosen hold too few tasks."""
        for count in range(self._wanted(need, len(nodes)), min(need.maximum_nodes, len(nodes)) + 1):
            segment = blocks.segment_of(need.demand.segment, count)
            chosen = blocks.choose(nodes, count, segment, spread=need.demand.spread_segments)
            if not len(chosen):
                break
            if int(tasks[chosen].sum()) >= need.tasks:
                return chosen
        return np.zeros(0, dtype=np.int64)

    def _is_serial(self, need: Requirement) -> bool:
        """Whether the job has one CPU and the site packs such jobs at the end of its nodes (pack_serial_at_end)."""
        return self.serial_at_end and need.tasks * need.cpus_per_task == need.minimum_nodes == 1 and not len(need.required)

    def _lln(self, need: Requirement) -> bool:
        return self.least_loaded or need.partition.least_loaded

    def _fewest_first(self, need: Requirement, nodes: IntArray, tasks: IntArray) -> IntArray:
        """Named nodes and enough of each counted feature, so chosen that as many nodes as the job may have hold its tasks, as
        far as there are any; then the others. Those that hold most tasks come first."""
        chosen: list[int] = np.flatnonzero(np.isin(nodes, need.required)).tolist() if len(need.required) else []
        groups = need.choice.groups
        member = np.array([mask[nodes] for mask, _ in groups]).reshape(len(groups), len(nodes)).astype(np.int64)
        left = tuple(count - int(member[index, chosen].sum()) for index, (_, count) in enumerate(groups))
        by_tasks = [position for position in np.argsort(-tasks, kind="stable").tolist() if position not in set(chosen)]
        kinds: dict[tuple[int, ...], list[int]] = {}
        for position in by_tasks:
            kinds.setdefault(tuple(member[:, position].tolist()), []).append(position)
        most, best = -1, chosen + by_tasks
        for cover in islice(_covers(sorted(kinds.items(), key=lambda kind: -sum(kind[0])), left), COVERS):
            first = chosen + cover
            order = first + [position for position in by_tasks if position not in set(cover)]
            held = int(tasks[order[: need.maximum_nodes]].sum()) if len(first) <= need.maximum_nodes else 0
            if held > most:
                most, best = held, order
            if held >= need.tasks:
                break
        return np.array(best, dtype=np.int64)

    def _first(self, need: Requirement, nodes: IntArray) -> IntArray:
        """Nodes that were named, and enough of each counted feature, as far as there are."""
        chosen: list[int] = np.flatnonzero(np.isin(nodes, need.required)).tolist() if len(need.required) else []
        for mask, count in need.choice.groups:
            inside = np.flatnonzero(mask[nodes]).tolist()
            have = sum(1 for position in chosen if mask[nodes[position]])
            chosen += [position for position in inside if position not in chosen][: max(count - have, 0)]
        return np.array(chosen, dtype=np.int64)

    def _wanted(self, need: Requirement, usable: int) -> int:
        """The number of nodes to aim at: of a range as many as there are tasks for."""
        demand = need.demand
        if demand.use_minimum_nodes or need.minimum_nodes == need.maximum_nodes:
            return need.minimum_nodes
        if need.job_gres or need.task_gres or (demand.maximum_nodes >= PLENTY and not demand.spread):
            return need.minimum_nodes
        most = min(need.maximum_nodes, usable)
        return max(need.minimum_nodes, most if demand.tasks_per_node_exact else min(most, need.tasks))

    def _lightest(
        self, need: Requirement, nodes: IntArray, tasks: IntArray, rest: IntArray, nodes_left: int, tasks_left: int
    ) -> IntArray:
        """The nodes of least weight that suffice."""
        if self.one_weight:
            return rest
        table = self._weights(need)
        weights = table[nodes[rest]]
        for weight in np.unique(weights):
            light = rest[weights <= weight]
            if len(light) >= nodes_left and int(tasks[light].sum()) >= tasks_left and not need.job_gres:
                lightest: IntArray = light[np.argsort(table[nodes[light]], kind="stable")]
                return lightest
        by_weight: IntArray = rest[np.argsort(weights, kind="stable")]
        return by_weight

    def _weights(self, need: Requirement) -> IntArray:
        """Weight of each node to this job."""
        return self.weight if takes_gres(need) else self.sparing

    def _below_switch(self, nodes: IntArray, tasks: IntArray, rest: IntArray, nodes_left: int, tasks_left: int) -> IntArray:
        """Those below the lowest switch with enough of them; the smallest such switch."""
        for level in self.topology.levels[1:]:
            groups = level[nodes[rest]]
            inside = groups >= 0
            counts = np.bincount(groups[inside])
            sums = np.bincount(groups[inside], weights=tasks[rest][inside])
            enough = np.flatnonzero((counts >= max(nodes_left, 1)) & (sums >= tasks_left))
            if len(enough):
                below: IntArray = rest[groups == enough[np.argmin(counts[enough])]]
                return below
        return rest

    def _leaves(self, nodes: IntArray, tasks: IntArray, rest: IntArray, nodes_left: int, tasks_left: int) -> IntArray:
        """Nodes leaf by leaf: the largest leaves, then the smallest one that suffices for what is left."""
        if len(rest) < 2:
            return rest
        if self.topology.levels:
            groups = self.topology.levels[0][nodes[rest]]
            if groups.min() < 0:
                groups = groups + 1
        else:
            chosen = nodes[rest]
            groups = np.zeros(len(rest), dtype=np.int64)
            np.cumsum(chosen[1:] - chosen[:-1] != 1, out=groups[1:])
        last = int(groups.max())
        if last == 0:
            return rest
        counts = np.bincount(groups)
        sums = np.bincount(groups, weights=tasks[rest]).astype(np.int64)
        order = np.argsort(-counts, kind="stable")
        order = order[counts[order] > 0]
        count_order, sum_order = counts[order], sums[order]
        left_nodes = nodes_left - np.cumsum(count_order) + count_order
        left_tasks = tasks_left - np.cumsum(sum_order) + sum_order
        largest = np.maximum.accumulate(sum_order[::-1])[::-1]
        taken = order
        for step in ((count_order >= left_nodes) & (largest >= left_tasks)).nonzero()[0].tolist():
            fits = step + ((count_order[step:] >= left_nodes[step]) & (sum_order[step:] >= left_tasks[step])).nonzero()[0]
            if len(fits):
                best = fits[np.lexsort((order[fits], sum_order[fits], count_order[fits]))[0]]
                taken = np.concatenate((order[:step], order[best : best + 1]))
                break
        rank = np.full(len(counts), len(counts), dtype=np.int64)
        rank[taken] = np.arange(len(taken))
        ranks = rank[groups]
        sort = np.argsort(ranks, kind="stable")
        chosen_count = int((ranks < len(counts)).sum())
        return rest[sort[:chosen_count]]

    def _neighbours(self, need: Requirement, nodes: IntArray, tasks: IntArray, free: Counts | None) -> Placement | None:
        """Neighbours among which are all named nodes: as many as are aimed at, more where these hold too little, else fewer."""
        aim, most, least = self._wanted(need, len(nodes)), min(need.maximum_nodes, len(nodes)), need.minimum_nodes
        sizes = [*range(aim, most + 1), *range(min(aim, most + 1) - 1, least - 1, -1)]
        if need.demand.node_counts:
            sizes = [size for size in sizes if size in need.demand.node_counts]
        held = self.capacity[:, nodes] if free is None else free
        amounts = [(tasks, need.tasks), (held[CPUS].astype(np.int64), need.demand.minimum_cpus)]
        amounts += [(self.compiler.job_gres_on(need, rows, held), amount) for rows, amount in need.job_gres]
        amounts += [(mask[nodes].astype(np.int64), count) for mask, count in need.choice.groups]
        chosen = fitting(nodes, sizes, amounts, [np.isin(nodes, need.required)] if len(need.required) else [])
        return None if chosen is None else self._placed(need, nodes, tasks, free, chosen)

    def _reaching(self, need: Requirement, nodes: IntArray) -> int:
        """How many of these nodes it takes, one after another, until there are enough of each counted feature."""
        return max(int(np.cumsum(mask[nodes]).searchsorted(count)) + 1 for mask, count in need.choice.groups)

    def _enough(
        self, need: Requirement, order: IntArray, tasks: IntArray, free: Counts | None, nodes: IntArray
    ) -> IntArray | None:
        """The head of ``order`` that suffices, or None."""
        least = max(need.minimum_nodes, len(need.required))
        if len(order) < least:
            return None
        wanted = max(min(self._wanted(need, len(nodes)), len(order)), least)
        most = min(len(order), need.maximum_nodes)
        fewest = max(least, int(np.cumsum(tasks[order]).searchsorted(need.tasks)) + 1)
        if need.choice.groups:
            fewest = max(fewest, self._reaching(need, nodes[order]))
        if fewest > most:
            return None
        if need.demand.minimum_cpus or need.job_gres:
            held = self.capacity[:, nodes[order]] if free is None else free[:, order]
            for rows, amount in need.job_gres:
                gres = np.cumsum(self.compiler.job_gres_on(need, rows, held))
                fewest = max(fewest, int(gres.searchsorted(amount)) + 1)
            cpus = np.cumsum(held[CPUS], dtype=np.int64)
            fewest = max(fewest, int(cpus.searchsorted(need.demand.minimum_cpus)) + 1)
        wanted = max(wanted, fewest)
        if need.demand.node_counts:
            wanted = _listed(need.demand.node_counts, fewest, wanted, most)
        return order[:wanted] if wanted <= most else None

    # ------------------------------------------------------------------------------------------ how much of each

    def _fill_nodes(self, need: Requirement, most: IntArray, nodes: IntArray) -> IntArray:
        """Tasks that the CPUs taken on each of the chosen nodes are counted by; ``most`` is what they hold at most, and all
        are in the order of the choice."""
        count, demand = len(most), need.demand
        if demand.tasks_per_node_exact and demand.tasks_per_node:
            return np.full(count, demand.tasks_per_node, dtype=np.int64)
        if need.fills_nodes and not need.whole:
            return np.full(count, demand.tasks_per_node, dtype=np.int64)
        if count == 1:
            return np.array([need.tasks], dtype=np.int64)
        if need.tasks <= count:
            return (np.arange(count) < need.tasks).astype(np.int64)
        if demand.overcommit or demand.spread or (need.whole and not demand.packs):
            return _evenly(need.tasks, most)
        least = np.ones(count, dtype=np.int64)
        if not (self.one_thread or need.whole):
            by_core = self._threads_of_tasks(need, nodes) // need.cpus_per_task
            least = np.where(np.arange(count) < need.minimum_nodes, np.clip(by_core, 1, most), least)
        return least + _fill(need.tasks - int(least.sum()), most - least)

    def _distribute(self, need: Requirement, nodes: IntArray, most: IntArray, filled: IntArray) -> IntArray:
        """Tasks on each of the chosen nodes, in ascending order, whose CPUs were counted by ``filled`` tasks."""
        demand = need.demand
        exact = demand.tasks_per_node_exact or (self.one_thread and not demand.tasks_per_node)
        if exact or demand.overcommit or demand.spread:
            return filled
        if need.tasks <= len(nodes) or len(nodes) == 1:
            return np.array([need.tasks]) if len(nodes) == 1 else (np.arange(len(nodes)) < need.tasks).astype(np.int64)
        cpus = usable_cpus(demand, self._whole_cores(need, nodes, filled), self.table.threads_per_core[nodes])
        room = np.minimum(np.maximum(cpus // need.cpus_per_task, 1), most)
        if demand.packs:
            return 1 + _fill(need.tasks - len(nodes), room - 1)
        return _evenly(need.tasks, room)

    def hold(
        self, need: Requirement, nodes: IntArray, tasks: IntArray, free: Counts, filled: IntArray | None = None
    ) -> Placement:
        """What the job holds of each node, all in ascending order of nodes; its CPUs are those of ``filled`` tasks."""
        demand = need.demand
        amounts = np.zeros((len(self.capacity), len(nodes)), dtype=np.int32)
        counted = np.maximum(tasks if filled is None else filled, 1)
        cpus = np.ones(len(nodes), dtype=np.int64) if demand.overcommit else counted * need.cpus_per_task
        if len(nodes) == 1 and need.minimum_cpus_per_node:
            cpus = np.maximum(cpus, need.minimum_cpus_per_node)
        self._give_gres(need, nodes, tasks, free, amounts)
        self.compiler.resources.charge_sharing(amounts, nodes)
        for rows, per in need.cpus_by_gres:
            cpus = np.maximum(cpus, total(amounts, rows) * per)
            unnamed = ~np.isin(nodes, need.required)
            cpus[unnamed] = np.maximum.accumulate(cpus[unnamed])  # no fewer than on a node before
            cpus = np.minimum(cpus, np.maximum(free[CPUS], 1))
        if not self.one_thread:
            threads = self.table.threads_per_core[nodes]
            cpus = -(-cpus // threads) * threads
            if not demand.overcommit:
                cpus = np.maximum(cpus, self._whole_cores(need, nodes, counted))
        if demand.minimum_cpus:
            cpus = cpus + _fill(demand.minimum_cpus - int(cpus.sum()), free[CPUS] - cpus)
        amounts[CPUS] = np.minimum(cpus, free[CPUS])
        if demand.memory_per_node is not None:
            amounts[MEMORY] = demand.memory_per_node or self.capacity[MEMORY, nodes]
        elif demand.memory_per_cpu:
            used = usable_cpus(demand, amounts[CPUS].astype(np.int64), self.table.threads_per_core[nodes])
            amounts[MEMORY] = np.minimum(used * demand.memory_per_cpu, free[MEMORY])
        for rows, per in need.memory_by_gres:
            amounts[MEMORY] += np.minimum(total(amounts, rows) * per, free[MEMORY] - amounts[MEMORY]).astype(np.int32)
        for row in need.cpu_rows:
            amounts[row] = amounts[CPUS]
        for row in need.takes_one:
            amounts[row] = 1
        if need.shared_row is not None:
            amounts[need.shared_row], amounts[CPUS] = amounts[CPUS].copy(), 0
        return Placement(nodes, tasks, amounts)

    def _threads(self, need: Requirement, nodes: IntArray) -> IntArray:
        """Threads of each node's cores that the job makes use of."""
        threads, wanted = self.table.threads_per_core[nodes], need.demand.threads_per_core
        return np.minimum(threads, wanted) if wanted else threads

    def _threads_of_tasks(self, need: Requirement, nodes: IntArray) -> IntArray:
        """Those of them that a core's tasks may use."""
        threads, most = self._threads(need, nodes), need.demand.tasks_per_core
        return np.minimum(threads, most * need.cpus_per_task) if most else threads

    def _whole_cores(self, need: Requirement, nodes: IntArray, tasks: IntArray) -> IntArray:
        """CPUs of the cores that so many tasks of the job take up on each node."""
        if need.demand.tasks_per_core == 1:
            cores = tasks * -(-need.cpus_per_task // self._threads(need, nodes))
        else:
            cores = -(-tasks * need.cpus_per_task // self._threads_of_tasks(need, nodes))
        cpus: IntArray = cores * self.table.threads_per_core[nodes]
        return cpus

    def _give_gres(self, need: Requirement, nodes: IntArray, tasks: IntArray, free: Counts, amounts: Counts) -> None:
        for rows, amount in need.node_gres:
            _give(rows, np.full(len(tasks), amount), free, amounts)
        for rows, amount in need.task_gres:
            _give(rows, tasks * amount, free, amounts)
        for rows, amount in need.job_gres:
            have = self.compiler.job_gres_on(need, rows, free)
            given = np.minimum(have, 1)
            largest = np.lexsort((~np.isin(nodes, need.required), -have))
            more = _fill(amount - int(given.sum()), (have - given)[largest])
            given[largest] += more
            _give(rows, given, free, amounts)


def _covers(kinds: Sequence[tuple[tuple[int, ...], list[int]]], left: tuple[int, ...]) -> Iterator[list[int]]:
    """The smallest sets of nodes with enough of each counted feature, those first that use nodes with several of them most.

    ``kinds`` are which of the features nodes have, and those nodes in the order to take them; ``left`` is how many are wanted.
    """
    if max(left, default=0) <= 0:
        yield []
        return
    if any(count > sum(len(nodes) for serves, nodes in kinds if serves[index]) for index, count in enumerate(left)):
        return
    (serves, nodes), *others = kinds
    useful = max((count for count, served in zip(left, serves, strict=True) if served), default=0)
    for number in range(max(0, min(useful, len(nodes))), -1, -1):
        still = tuple(count - number * served for count, served in zip(left, serves, strict=True))
        for more in _covers(others, still):
            yield nodes[:number] + more


def _first_that_hold(order: IntArray, tasks: IntArray, count: int, wanted: int) -> IntArray:
    """``order`` with so many in front that hold the tasks wanted: its first ones, of which as few as will do, the last ones
    first, give their place to later ones that hold more."""
    chosen = list(range(min(count, len(order))))
    held = tasks[order]
    for place in reversed(range(len(chosen))):
        lacking = wanted - int(held[chosen].sum())
        if lacking <= 0:
            break
        later = np.setdiff1d(np.arange(chosen[place] + 1, len(order)), chosen)
        enough = later[held[later] >= held[chosen[place]] + lacking]
        if len(enough):
            chosen[place] = int(enough[0])
        elif len(later) and held[later].max() > held[chosen[place]]:
            chosen[place] = int(later[held[later].argmax()])
    left = np.ones(len(order), dtype=np.bool_)
    left[chosen] = False
    return np.concatenate((order[sorted(chosen)], order[left]))


def _listed(counts: Sequence[int], fewest: int, wanted: int, most: int) -> int:
    """Of the counts from ``fewest`` to ``most`` the largest that is not more than ``wanted``, else the smallest; more than
    ``most`` when there is none."""
    able = [count for count in counts if fewest <= count <= most]
    return max((count for count in able if count <= wanted), default=min(able, default=most + 1))


def _fill(wanted: int, room: IntArray) -> IntArray:
    """Fill places one after another until ``wanted`` is used up."""
    before = np.cumsum(room) - room
    filled: IntArray = np.clip(wanted - before, 0, room)
    return filled


def _evenly(tasks: int, most: IntArray) -> IntArray:
    """One task after another to every node in turn that still has room."""
    low, high = 0, int(min(most.max(), tasks))
    while low < high:  # the highest level that tasks suffice for
        middle = (low + high + 1) // 2
        if int(np.minimum(most, middle).sum()) <= tasks:
            low = middle
        else:
            high = middle - 1
    given = np.minimum(most, low)
    given[np.flatnonzero(most > low)[: tasks - int(given.sum())]] += 1
    return given


def _give(rows: tuple[int, ...], wanted: IntArray, free: Counts, amounts: Counts) -> None:
    """Take a GRES from the rows that can serve it, the first one first."""
    left = wanted.astype(np.int32)
    for row in rows:
        taken = np.minimum(left, free[row] - amounts[row])
        amounts[row] += taken
        left = left - taken
