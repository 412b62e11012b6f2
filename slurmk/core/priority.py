"""Priorities of pending jobs: priority/basic and priority/multifactor (slurm.conf(5), PriorityType).

Under basic a job's priority is one less than that of the job before it. Under multifactor it is a sum of weighted
factors between 0 and 1. Fair share comes from outside (``Directory``), since it needs what accounting knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurmk.core import tres_priority
from slurmk.core.demands import demand_in, least_cpus
from slurmk.core.state import State, Turn
from slurmk.model.job import Job

MULTIFACTOR = "priority/multifactor"
HIGHEST = 0xFFFFFFFD
"""The most that a priority can be: what is above it are Slurm's marks for "not set" and "infinite"."""


@dataclass(frozen=True, slots=True)
class QosPreemption:
    """What a QOS says of preemption: the QOS whose jobs its own may preempt, and how its own give way. ``mode`` is CANCEL,
    REQUEUE, SUSPEND, OFF or "" for the cluster's; times are seconds."""

    preempts: tuple[str, ...] = ()
    mode: str = ""
    grace_time: int = 0
    exempt_time: int | None = None


@dataclass(frozen=True, slots=True)
class Directory:
    """What is known outside of the machine about users, groups, accounts and QOS. Replaced when that changes.

    ``groups`` are group ids by name. ``accounts`` are the accounts each user may charge, the default one first; None
    means that accounts are not checked. ``qos`` are the priorities of the QOS there are,
    ``preemption`` what some of them say of it. ``fair_share`` are factors
    between 0 and 1 by (user, account); who is not in it has ``other_fair_share``, the factor of one who has used nothing.
    ``association`` are factors between 0 and 1 in the same way, of the associations' own priorities; 0 for who is not in it.
    """

    groups: Mapping[str, int] = field(default_factory=dict)
    accounts: Mapping[str, tuple[str, ...]] | None = None
    qos: Mapping[str, int] = field(default_factory=lambda: {"normal": 0})
    preemption: Mapping[str, QosPreemption] = field(default_factory=dict)
    fair_share: Mapping[tuple[str, str], float] = field(default_factory=dict)
    other_fair_share: float = 1.0
    association: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shares:
    """The factors of a priority before they are weighted, each between 0 and 1 (sprio --norm)."""

    age: float = 0.0
    fair_share: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    association: float = 0.0
    tres: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Factors:
    """The weighted parts of a priority, as sprio(1) shows them, and what they were made of. ``exact`` is their sum before each
    was rounded."""

    age: int
    fair_share: int
    job_size: int
    partition: int
    qos: int
    site: int = 0
    association: int = 0
    tres: tuple[tuple[str, float], ...] = ()  # by name
    nice: int = 0
    shares: Shares = Shares()
    exact: float = 0.0

    @property
    def total(self) -> int:
        """The priority, rounded down: at least 1, since 0 means held."""
        return min(max(1, int(self.exact)), HIGHEST)


def priority_of(turn: Turn, job: Job) -> int:
    """The priority that a job gets when it is neither held nor given one."""
    demand = demand_in(turn.state, job.request, turn.state.partitions.get(job.partitions[0]), job.credentials.user_id)
    return initial_priority(turn.state, turn.directory, job, turn.now, demand.minimum_nodes, least_cpus(demand))


def initial_priority(state: State, directory: Directory, job: Job, now: int, nodes: int, cpus: int) -> int:
    """Priority of a job that is not held and was given none. ``nodes`` and ``cpus`` are the least it asks for."""
    if state.site.priority_type == MULTIFACTOR:
        return factors(state, directory, job, now, nodes, cpus).total
    state.lowest_priority = max(2, state.lowest_priority) - 1
    return max(1, min(state.lowest_priority - (job.request.nice or 0), HIGHEST))


def expected_priority(turn: Turn, job: Job, nodes: int, cpus: int) -> int:
    """What ``initial_priority`` would give, without giving it."""
    lowest = turn.state.lowest_priority
    try:
        return initial_priority(turn.state, turn.directory, job, turn.now, nodes, cpus)
    finally:
        turn.state.lowest_priority = lowest


def factors(state: State, directory: Directory, job: Job, now: int, nodes: int, cpus: int) -> Factors:
    """The parts of a job's priority under priority/multifactor."""
    weights = state.site.priority_weights
    user, account = job.credentials.user_name, job.account
    shares = Shares(
        age=_age(state, job, now),
        fair_share=directory.fair_share.get((user, account), directory.other_fair_share),
        job_size=_size(state, nodes, cpus),
        partition=_partition(state, job),
        qos=_qos(directory, job),
        association=directory.association.get((user, account), 0.0),
        tres=tres_priority.shares_of(state, job),
    )
    weighted = {field: weights.get(weight, 0) * getattr(shares, field) for field, weight in WEIGHTS.items()}
    tres = tres_priority.weighted(state, shares.tres)
    site, nice = job.request.site_factor or 0, job.request.nice or 0
    return Factors(
        **{field: round(value) for field, value in weighted.items()},
        site=site,
        tres=tres,
        nice=nice,
        shares=shares,
        exact=sum(weighted.values()) + sum(value for _, value in tres) + site - nice,
    )


WEIGHTS: Mapping[str, str] = {
    "age": "age",
    "fair_share": "fairshare",
    "job_size": "job_size",
    "partition": "partition",
    "qos": "qos",
    "association": "assoc",
}
"""A factor to its weight's name in ``Site.priority_weights``."""


def _age(state: State, job: Job, now: int) -> float:
    if not job.accrue_time or job.accrue_time > now or state.site.priority_maximum_age <= 0:
        return 0.0
    return min(1.0, (now - job.accrue_time) / state.site.priority_maximum_age)


def _size(state: State, nodes: int, cpus: int) -> float:
    """The mean of its shares of all nodes and of all CPUs, at most 1."""
    all_nodes = len(state.nodes) or 1
    share = min(1.0, (nodes / all_nodes + cpus / (state.total_cpus or 1)) / 2)
    return 1.0 - share if state.site.priority_favor_small else share


def _partition(state: State, job: Job) -> float:
    factors_of = [state.partitions[name].priority_job_factor for name in job.partitions if name in state.partitions]
    return max(factors_of, default=0) / max(1, state.largest_partition_factor)


def _qos(directory: Directory, job: Job) -> float:
    largest = max(directory.qos.values(), default=0)
    return directory.qos.get(job.qos, 0) / largest if largest else 0.0
