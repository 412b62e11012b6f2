"""Quotas: what certain jobs may hold together at any time, whatever is free on the nodes.

Whoever sets a quota (a queue system's ClusterQueue, a namespace's ResourceQuota, an account's GrpTRES) says how much there
is, how much of it others than slurmk's jobs hold now, and which jobs count. The planner takes the rest as a resource that
every counted job uses up for as long as it runs, like a licence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from slurmk.model.job import Allocation, GresShare
from slurmk.model.states import Reason


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """How much there is of one resource: ``cpu`` in thousandths, ``mem`` in MiB, ``node``, ``job`` and GRES in pieces.

    GRES are named ``gres/gpu`` (all types, also devices without one) or ``gres/gpu:a100``; ``without`` are types that do
    not count (``gpu:1g.5gb`` where MIG devices are another resource). ``others`` is what is held by others than our jobs.
    """

    resource: str
    total: int
    others: int = 0
    without: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """What our jobs may hold together; less than nothing when others hold more than there is."""
        return self.total - self.others

    def counts_gres(self, name: str, gres_type: str) -> bool:
        """True when a device of this kind and type is of this resource."""
        kind, _, wanted = self.resource.removeprefix("gres/").partition(":")
        return (
            self.resource.startswith("gres/")
            and kind == name
            and (not wanted or wanted == gres_type)
            and f"{name}:{gres_type}" not in self.without
        )


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota. ``name`` is what people look for (``ClusterQueue phys``); a set that is None counts every job, but for those
    of ``except_accounts``. ``explanation`` is told in place of the amounts (a queue that takes nothing).

    ``reasons`` begins the reasons of jobs that wait for it: ``AssocGrp`` or ``QOSGrp``. ``cpu_milli`` says how many
    thousandths a CPU of a partition's jobs counts where that is not 1000.
    """

    name: str
    limits: tuple[QuotaLimit, ...]
    partitions: frozenset[str] | None = None
    accounts: frozenset[str] | None = None
    qos: frozenset[str] | None = None
    users: frozenset[int] | None = None
    cpu_milli: Mapping[str, int] = field(default_factory=dict)
    reasons: str = "AssocGrp"
    except_accounts: frozenset[str] = frozenset()
    explanation: str = ""

    def counts(self, partition: str, account: str, qos: str, user_id: int) -> bool:
        """True when jobs of that partition, account, QOS and user count."""
        return (
            (self.partitions is None or partition in self.partitions)
            and (self.accounts is None or account in self.accounts)
            and account not in self.except_accounts
            and (self.qos is None or qos in self.qos)
            and (self.users is None or user_id in self.users)
        )

    def held(self, allocation: Allocation) -> tuple[int, ...]:
        """What a job with this allocation uses of each limit."""
        return tuple(self._held(limit, allocation) for limit in self.limits)

    def _held(self, limit: QuotaLimit, allocation: Allocation) -> int:
        match limit.resource:
            case "cpu":
                return allocation.cpus * self.milli_per_cpu(allocation.partition)
            case "mem":
                return allocation.memory
            case "node":
                return len(allocation.shares)
            case "job":
                return 1
        gres: list[GresShare] = [gres for share in allocation.shares for gres in share.gres]
        return sum(each.count for each in gres if limit.counts_gres(each.name, each.type))

    def milli_per_cpu(self, partition: str) -> int:
        """Thousandths that one CPU of a job in this partition counts."""
        return self.cpu_milli.get(partition, 1000)

    def reason(self, limit: QuotaLimit) -> Reason:
        """Why a job waits for this limit, in Slurm's words."""
        return Reason(self.reasons + _REASONS.get(limit.resource, "GRES"))

    def same_but_for_amounts(self, other: Quota) -> bool:
        """True when the other one counts the same jobs and resources."""
        return _shape(self) == _shape(other)


def _shape(quota: Quota) -> Quota:
    return replace(quota, limits=tuple(replace(limit, total=0, others=0) for limit in quota.limits))


_REASONS = {"cpu": "CpuLimit", "mem": "MemLimit", "node": "NodeLimit", "job": "JobsLimit"}


def amount_text(resource: str, amount: int) -> str:
    """An amount for people: CPUs in whole or milli, memory in M or G."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource == "mem":
        return f"{amount // 1024}G" if amount % 1024 == 0 else f"{amount}M"
    return str(amount)
