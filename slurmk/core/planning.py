"""A plan comes back: what it starts is started if that is still right, and what waits is told why and until when.

The machine may have changed since the snapshot that the plan was made of, so every start is checked against the state as
it is now. One that no longer fits is passed over and another plan is asked for, but only if something has changed: from
the same state the planner would say the same again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from slurmk.core import arrays, mail
from slurmk.core.effects import Launch
from slurmk.core.endings import waits_after_failure
from slurmk.core.events import Planned
from slurmk.core.preemption import carry_out, forget_gone, resume_parked, watch_exemptions
from slurmk.core.quotas import within_quotas
from slurmk.core.reservation_use import within_reservations
from slurmk.core.state import NodeUsage, Phase, State, Turn, limit_end, over_time, phase_of, watch_limit
from slurmk.model.job import Allocation, Job, NodeShare
from slurmk.model.node import SHARED_DEVICES, WHOLE_DEVICE, Node, Partition, parts_of_gpus
from slurmk.model.states import JobFlag, JobState, Reason
from slurmk.planner.build import soft_limit
from slurmk.planner.snapshot import Outlook, Start


def planned(turn: Turn, event: Planned) -> None:
    """Take over a plan."""
    state = turn.state
    stale = event.plan.snapshot_id != state.snapshot_id or state.changes != state.changes_at_snapshot
    resume_parked(turn)
    together = _components(state, event.plan.starts)
    fitted = True
    for start in event.plan.starts:
        job = state.jobs.get(start.job_id)
        if job is None or not may_start(turn, job):
            continue
        if job.het_job_id:
            fitted &= _start_together(turn, together.pop(job.het_job_id, []))
        elif fits(state, job, start.allocation, turn.now):
            begin(turn, job, start)
        else:
            fitted = False
    if stale and not fitted:
        turn.wake_planner()
    forget_gone(state, planned=not stale)
    for preempt in event.plan.preempted:
        carry_out(turn, preempt)
    watch_exemptions(turn)
    _tell(turn, event.plan.outlooks.items())


def _tell(turn: Turn, outlooks: Iterable[tuple[int, Outlook]]) -> None:
    state = turn.state
    jobs, told = state.jobs, state.outlooks
    for job_id, outlook in outlooks:
        if job_id not in state.pending:
            continue
        job = jobs[job_id]
        if told.get(job_id) is outlook and job.reason is outlook.reason:
            continue
        told[job_id] = outlook
        if job.priority and job.request.dependency is None and not waits_after_failure(job, turn.now):
            job = _throttle(turn, job, outlook.reason)
            job = state.set_reason(job, outlook.reason, outlook.description)
        if outlook.promised is not None and outlook.promised != job.promised_start:
            turn.save(replace(job, promised_start=outlook.promised))


def _throttle(turn: Turn, job: Job, reason: Reason) -> Job:
    """Elements that wait for others of their array alone (``%N``) are not eligible meanwhile; their priority does not grow."""
    if reason is Reason.JOB_ARRAY_TASK_LIMIT:
        return turn.save(replace(job, eligible_time=0, accrue_time=0)) if job.eligible_time else job
    return job if job.eligible_time else turn.save(replace(job, eligible_time=turn.now, accrue_time=turn.now))


def may_start(turn: Turn, job: Job) -> bool:
    """True for a pending job that nothing but resources keeps from starting."""
    if phase_of(job) is not Phase.PENDING or job.priority == 0 or job.request.dependency is not None:
        return False
    if (job.request.begin_time or 0) > turn.now:
        return False
    return room_in_array(turn.state, job) != 0


def room_in_array(state: State, job: Job) -> int | None:
    """How many more elements of the job's array may start by its ``%N``, whether or not they are records of their own; None
    without a limit."""
    if not job.array_job_id or not job.array_maximum_running:
        return None
    return max(0, job.array_maximum_running - state.array_running.get(job.array_job_id, 0))


# --------------------------------------------------------------------------------------------- still possible?


def fits(state: State, job: Job, allocation: Allocation, now: int) -> bool:
    """True when every share of the allocation is free on an available node of an open partition."""
    partition = state.partitions.get(allocation.partition)
    if partition is None or partition.state != "UP" or not allocation.shares or allocation.partition not in job.partitions:
        return False
    if not within_reservations(state, job, allocation, now):
        return False
    if len(set(allocation.nodes)) != len(allocation.shares) or not within_quotas(state, ((job, allocation),)):
        return False
    return all(_share_fits(state, job, share, partition, allocation.whole_nodes) for share in allocation.shares)


def _share_fits(state: State, job: Job, share: NodeShare, partition: Partition, whole: bool) -> bool:
    node = state.nodes.get(share.node)
    if node is None or not node.available or share.node not in partition.nodes:
        return False
    usage = state.usage.get(share.node) or NodeUsage()
    if usage.whole or (whole and usage.jobs - usage.parked):
        return False
    if usage.cpus + share.cpus > _cpus(node, usage, partition, job):
        return False
    if node.maximum_jobs is not None and len(usage.jobs) >= node.maximum_jobs:
        return False
    if state.site.memory_is_consumable and usage.memory + share.memory > node.memory - node.foreign_memory:
        return False
    return _gres_fits(node, usage, share) and (whole or _shards_fit(node, usage, share))


def _cpus(node: Node, usage: NodeUsage, partition: Partition, job: Job) -> int:
    """CPUs of the node that may be given in all, counting each as often as the partition lets jobs share it."""
    mode, _, count = partition.oversubscribe.partition(":")
    free = node.cpus - node.foreign_cpus
    if mode == "FORCE" or (mode == "YES" and job.request.shared == "oversubscribe" and usage.jobs == usage.sharing):
        return free * int(count or 4)
    return free


def _gres_fits(node: Node, usage: NodeUsage, share: NodeShare) -> bool:
    wanted: Counter[str] = Counter()
    for gres in share.gres:
        wanted[f"{gres.name}:{gres.type}" if gres.type else gres.name] += gres.count
        if gres.indices and usage.devices.get(gres.name, set()) & set(gres.indices):
            return False
    for kind, count in wanted.items():
        name, _, kind_type = kind.partition(":")
        capacity = sum(each.count for each in node.gres if each.name == name and (not kind_type or each.type == kind_type))
        used = usage.gres.get(kind, 0) + sum(number for other, number in node.foreign_gres if other == kind)
        if not kind_type:
            held = (*usage.gres.items(), *node.foreign_gres)
            used = sum(number for other, number in held if other.partition(":")[0] == name)
        if used + count > capacity:
            return False
    return True


def _shards_fit(node: Node, usage: NodeUsage, share: NodeShare) -> bool:
    """Whether GPUs in use and those of which shards are in use are not more than there are; a whole node has both."""
    gpus, each = parts_of_gpus(node.gres)
    taken = Counter[str]()
    for kind, count in (*usage.gres.items(), *node.foreign_gres, *((gres.name, gres.count) for gres in share.gres)):
        taken[kind.partition(":")[0]] += count
    return not each or taken[WHOLE_DEVICE] * each + sum(taken[kind] for kind in SHARED_DEVICES) <= gpus * each


# --------------------------------------------------------------------------------------------- starting


def begin(turn: Turn, job: Job, start: Start) -> None:
    """Start a job, or the next element of an array, on the allocation planned for it."""
    if job.is_array:
        job = arrays.split(turn, job, arrays.first_task(job.array_tasks))
    allocation = _batch_host_first(turn.state, start.allocation, job.request.batch_features)
    limit = job.time_limit
    if start.time_limit and job.request.time_minimum is not None and soft_limit(job, turn.state.site) is None:
        limit = min(limit, max(start.time_limit // 60, job.request.time_minimum))
    job = replace(
        job,
        state=JobState.RUNNING,
        flags=JobFlag.CONFIGURING,
        reason=Reason.NONE,
        state_description="",
        eligible_time=job.eligible_time or turn.now,
        start_time=turn.now,
        time_limit=limit,
        allocation=allocation,
        over_time_limit=over_time(turn.state, allocation.partition),
        last_schedule_evaluation=turn.now,
        last_partition=allocation.partition,
        promised_start=0,
        exit_code=0,
    )
    end = limit_end(job)
    job = turn.save(replace(job, end_time=end or 0))
    waited = turn.now - max(job.submit_time, job.eligible_time)
    turn.state.longest_wait = max(turn.state.longest_wait, waited)
    watch_limit(turn, job)
    turn.emit(Launch(job))
    mail.began(turn, job)
    mail.watch_marks(turn, job)
    turn.note(job)


def _batch_host_first(state: State, allocation: Allocation, wanted: str | None) -> Allocation:
    """The allocation with a node that has the features of ``--batch`` in front, for its first node runs the script."""
    if not wanted:
        return allocation
    ways = [set(way.split("&")) for way in wanted.replace(",", "&").split("|")]
    for share in allocation.shares:
        node = state.nodes.get(share.node)
        if node is not None and any(way <= {*node.features, *node.active_features} for way in ways):
            rest = tuple(each for each in allocation.shares if each is not share)
            return replace(allocation, shares=(share, *rest))
    return allocation


def _components(state: State, starts: Iterable[Start]) -> dict[int, list[Start]]:
    together: dict[int, list[Start]] = {}
    for start in starts:
        job = state.jobs.get(start.job_id)
        if job is not None and job.het_job_id:
            together.setdefault(job.het_job_id, []).append(start)
    return together


def _start_together(turn: Turn, starts: list[Start]) -> bool:
    """All components of a het job start, or none does; False when they no longer fit."""
    if not starts:
        return True
    state = turn.state
    het = state.jobs[starts[0].job_id].het_job_id
    waiting = {member for member in state.by_het.get(het, ()) if not state.jobs[member].state.finished}
    jobs = {start.job_id: state.jobs[start.job_id] for start in starts}
    ready = jobs.keys() == waiting and all(may_start(turn, job) for job in jobs.values())
    if not ready or not all(fits(state, jobs[start.job_id], start.allocation, turn.now) for start in starts):
        return False
    if not _disjoint(starts, state) or not within_quotas(state, [(jobs[start.job_id], start.allocation) for start in starts]):
        return False
    for start in starts:
        begin(turn, state.jobs[start.job_id], start)
    return True


def _disjoint(starts: list[Start], state: State) -> bool:
    """True when the components' shares of one node together are no more than is free there."""
    cpus: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    for start in starts:
        for share in start.allocation.shares:
            cpus[share.node] += share.cpus
            memory[share.node] += share.memory
    return all(
        state.usage[name].cpus + count <= state.nodes[name].cpus - state.nodes[name].foreign_cpus
        and (
            not state.site.memory_is_consumable
            or state.usage[name].memory + memory[name] <= state.nodes[name].memory - state.nodes[name].foreign_memory
        )
        for name, count in cpus.items()
    )
