"""Quotas as the machine keeps them: what our own jobs use of each is counted as jobs come and go."""

from __future__ import annotations

from collections.abc import Iterable

from slurmk.core.events import QuotasChanged
from slurmk.core.state import State, Turn
from slurmk.model.job import Allocation, Job


def quotas_changed(turn: Turn, event: QuotasChanged) -> None:
    """Hold jobs to these quotas from now on. What runs already goes on running."""
    state = turn.state
    if event.quotas == state.quotas:
        return
    state.quotas = event.quotas
    state.quota_usage = [[0] * len(quota.limits) for quota in event.quotas]
    for job_id in state.holding:
        job = state.jobs[job_id]
        assert job.allocation is not None
        for quota, used in zip(state.quotas, state.quota_usage, strict=True):
            if quota.counts(job.allocation.partition, job.account, job.qos, job.credentials.user_id):
                used[:] = [have + amount for have, amount in zip(used, quota.held(job.allocation), strict=True)]
    state.changes += 1
    turn.wake_planner()


def within_quotas(state: State, starts: Iterable[tuple[Job, Allocation]]) -> bool:
    """True when these jobs may start together on these allocations, beside what runs."""
    together = list(starts) if state.quotas else []
    for quota, used in zip(state.quotas, state.quota_usage, strict=True):
        counted = [
            quota.held(allocation)
            for job, allocation in together
            if quota.counts(allocation.partition, job.account, job.qos, job.credentials.user_id)
        ]
        for index, limit in enumerate(quota.limits):
            wanted = sum(amounts[index] for amounts in counted)
            if wanted and used[index] + wanted > limit.left:
                return False
    return True
