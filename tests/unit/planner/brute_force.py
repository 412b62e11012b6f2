"""A planner that is too simple to be wrong, to check the real one against: it tries every start and every set of nodes.

It knows only what the random cases use: CPUs, memory, one GRES, whole nodes, licences, quotas, a number of nodes and tasks. It
shares no code with the planner and keeps plain lists of what is held when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

Used = tuple[int, int, int, int, int]
"""CPUs, memory, GPUs, nodes, jobs."""


@dataclass(frozen=True)
class Limit:
    """The jobs of these accounts may hold at most so much of each together; None: no limit."""

    accounts: frozenset[str]
    amounts: tuple[int | None, int | None, int | None, int | None, int | None]


@dataclass(frozen=True)
class Machine:
    """Capacities by node: (cpus, memory, gpus); licences, and quotas."""

    nodes: tuple[tuple[int, int, int], ...]
    licenses: int = 0
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True)
class Holding:
    """Somebody holds, from ``start`` until ``end``, (cpus, memory, gpus) of nodes; whole nodes exclude everyone else."""

    start: int
    end: int
    shares: tuple[tuple[int, tuple[int, int, int]], ...]
    whole: bool = False
    licenses: int = 0
    account: str = ""
    used: Used = (0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Wish:
    """What a job asks: ``tasks`` of (cpus, memory) each, ``gpus`` a node, on at least so many nodes."""

    nodes: int
    tasks: int
    cpus: int
    memory: int
    gpus: int
    whole: bool
    duration: int
    licenses: int = 0
    maximum_nodes: int = 99
    account: str = ""


@dataclass
class Book:
    machine: Machine
    holdings: list[Holding] = field(default_factory=list)

    def instants(self, start: int, end: int) -> list[int]:
        """Where something changes in [start, end)."""
        changes = {start} | {time for held in self.holdings for time in (held.start, held.end)}
        return sorted(time for time in changes if start <= time < end)

    def free(self, node: int, time: int) -> tuple[int, int, int, bool]:
        """CPUs, memory, GPUs left on a node at a time, and whether nobody is there."""
        left, alone = list(self.machine.nodes[node]), True
        for held in self.holdings:
            if not held.start <= time < held.end:
                continue
            for where, amounts in held.shares:
                if where == node:
                    alone = False
                    taken = self.machine.nodes[node] if held.whole else amounts
                    left = [have - take for have, take in zip(left, taken, strict=True)]
        return left[0], left[1], left[2], alone

    def tasks_on(self, wish: Wish, node: int, start: int) -> int:
        """The tasks that fit the node all the time; 0 if it won't do."""
        least = wish.tasks
        for time in self.instants(start, start + wish.duration):
            cpus, memory, gpus, alone = self.free(node, time)
            if (wish.whole and not alone) or gpus < wish.gpus:
                return 0
            fits = cpus // wish.cpus
            if wish.memory:
                fits = min(fits, memory // wish.memory)
            least = min(least, fits)
        return max(least, 0)

    def licensed(self, wish: Wish, start: int) -> bool:
        return all(
            self.machine.licenses - sum(held.licenses for held in self.holdings if held.start <= time < held.end)
            >= wish.licenses
            for time in self.instants(start, start + wish.duration)
        )

    def used(self, wish: Wish, chosen: Sequence[int]) -> Used:
        """What the wish would count as holding on these nodes."""
        if not wish.whole:
            count = len(chosen)
            return wish.tasks * wish.cpus, wish.tasks * wish.memory, wish.gpus * count, count, 1
        each = wish.memory // wish.cpus
        nodes = [self.machine.nodes[node] for node in chosen]
        memory = sum(min(cpus * each, memory) if each else memory for cpus, memory, _ in nodes)
        return sum(cpus for cpus, _, _ in nodes), memory, sum(gpus for _, _, gpus in nodes), len(chosen), 1

    def within_limits(self, account: str, used: Used, start: int, end: int) -> bool:
        """Whether a job of this account may hold so much all the time, beside those that are booked."""
        for limit in self.machine.limits:
            if account not in limit.accounts:
                continue
            for time in self.instants(start, end):
                held = [each for each in self.holdings if each.account in limit.accounts and each.start <= time < each.end]
                for index, most in enumerate(limit.amounts):
                    if most is not None and used[index] + sum(each.used[index] for each in held) > most:
                        return False
        return True

    def possible(self, wish: Wish, start: int) -> bool:
        """Try every set of nodes."""
        if not self.licensed(wish, start):
            return False
        room = [self.tasks_on(wish, node, start) for node in range(len(self.machine.nodes))]
        usable = [node for node, tasks in enumerate(room) if tasks > 0]
        for count in range(wish.nodes, min(len(usable), wish.maximum_nodes) + 1):
            for chosen in combinations(usable, count):
                if sum(room[node] for node in chosen) < max(wish.tasks, 1):
                    continue
                if self.within_limits(wish.account, self.used(wish, chosen), start, start + wish.duration):
                    return True
        return False

    def earliest(self, wish: Wish, now: int) -> int | None:
        """The first instant at which the wish can start, or None if it never can."""
        starts = sorted({now} | {held.end for held in self.holdings if held.end > now})
        return next((start for start in starts if self.possible(wish, start)), None)

    def overcommitted(self) -> Sequence[tuple[int, int]]:
        """(node, time) where more is held than there is, or a whole-node job is not alone; node -1: licences, -2: quotas."""
        bad = []
        for time in sorted({held.start for held in self.holdings}):
            active = [held for held in self.holdings if held.start <= time < held.end]
            if sum(held.licenses for held in active) > self.machine.licenses:
                bad.append((-1, time))
            if any(not self.within_limits(held.account, (0, 0, 0, 0, 0), time, time + 1) for held in active):
                bad.append((-2, time))
            for node, capacity in enumerate(self.machine.nodes):
                here = [(held, amounts) for held in active for where, amounts in held.shares if where == node]
                if any(held.whole for held, _ in here) and len(here) > 1:
                    bad.append((node, time))
                sums = [sum(amounts[index] for _, amounts in here) for index in range(3)]
                if any(total > have for total, have in zip(sums, capacity, strict=True)):
                    bad.append((node, time))
        return bad
