"""A request as numbers, and the exception by which a request is turned down while it is looked at."""

from __future__ import annotations

from grammar.errors import GrammarError
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.state import State
from slurmk.model.job import JobRequest
from slurmk.model.node import Partition
from slurmk.planner.build import demand_of
from slurmk.planner.snapshot import Demand


class Refusal(Exception):
    """A request that is not done, and the lines the caller is told besides."""

    def __init__(self, errno: Errno, message: str = "", notices: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.error = SlurmError(errno, message)
        self.notices = notices


def demand_in(state: State, request: JobRequest, partition: Partition | None, user_id: int) -> Demand:
    """The request as numbers. Raises Refusal for GRES that the site does not have and text without meaning."""
    try:
        demand = demand_of(request, partition or Partition(name="", nodes=()), state.site, user_id=user_id)
    except (GrammarError, ValueError):
        raise Refusal(Errno.INVALID_GRES) from None
    kinds = (*demand.gres_per_node, *demand.gres_per_job, *demand.gres_per_task, *demand.gres_per_socket)
    for name, _ in kinds:
        if name.partition(":")[0] not in state.gres_kinds:
            raise Refusal(Errno.INVALID_GRES)
    return demand


def least_cpus(demand: Demand) -> int:
    """CPUs that the job needs in all, those among them that come with its GRES."""
    cpus = demand.minimum_nodes if demand.overcommit else demand.tasks * demand.cpus_per_task
    with_gres = sum(cpus * _least_gres(demand, kind) for kind, cpus in demand.cpus_per_gres)
    return max(cpus, with_gres, demand.minimum_cpus)


def _least_gres(demand: Demand, kind: str) -> int:
    """GRES of a kind that the job needs in all."""
    asked = ((demand.gres_per_job, 1), (demand.gres_per_node, demand.minimum_nodes), (demand.gres_per_task, demand.tasks))
    return sum(count * times for wanted, times in asked for name, count in wanted if name.partition(":")[0] == kind)
