"""Preemption: who may take whose place, and what becomes of those who give way (slurm.conf(5), PreemptType, PreemptMode).

The planner names victims; here they are told to go. A job that others gave way to is planned before all others until their
nodes are free, so that nobody gives way in vain.
"""

from __future__ import annotations

from dataclasses import replace

from grammar.errors import GrammarError
from grammar.times import parse_duration_seconds
from slurmk.core.effects import Signal
from slurmk.core.endings import end, requeue
from slurmk.core.events import KillFlag
from slurmk.core.priority import Directory, QosPreemption
from slurmk.core.state import Phase, State, Turn, phase_of
from slurmk.core.suspension import go_on, stop
from slurmk.core.transitions import may_requeue
from slurmk.model.job import Job
from slurmk.model.node import Partition
from slurmk.model.requested import leaves_within
from slurmk.model.site import Site
from slurmk.model.states import JobState, Reason
from slurmk.planner.reserved import may_share
from slurmk.planner.snapshot import Preempt, Preemption, Victim

BY_PARTITION, BY_QOS = "preempt/partition_prio", "preempt/qos"

_NOTHING = QosPreemption()


def rules(state: State, directory: Directory) -> Preemption | None:
    """Who may be preempted by whom now; None when nobody may."""
    kind = state.site.preempt_type
    if kind not in (BY_PARTITION, BY_QOS):
        return None
    victims = {}
    spared = _spared_priority(state.site)
    for job_id in state.holding:
        job = state.jobs[job_id]
        mode = mode_of(state, directory, job)
        if not _may_give_way(job) or job.allocation is None or (job.het_job_id and mode == "SUSPEND"):
            continue
        partition = state.partitions.get(job.allocation.partition)
        leaves = _leaves(state, job)
        only_leaves = mode == "OFF" or (spared is not None and job.priority >= spared)
        if partition is None or (only_leaves and not leaves):
            continue
        exempt = job.start_time + _exempt_seconds(state, directory, job)
        words = _words(state, directory, job)
        victims[job_id] = Victim(
            partition.priority_tier,
            job.qos,
            job.priority,
            job.start_time,
            exempt,
            suspends=mode == "SUSPEND" and not leaves,
            within="WITHIN" in words,
            only_by_higher="PRIORITY" in words,
            leaves=leaves,
            only_leaves=only_leaves,
        )
    preempts = {name: frozenset(each.preempts) for name, each in directory.preemption.items()} if kind == BY_QOS else {}
    said = state.site.preempt_parameters
    youngest_first = "youngest_first" in said or "preempt_youngest_first" in state.site.scheduler_parameters
    served = frozenset(state.gave_way.values())
    reclaims, memory = "reclaim_licenses" in said, state.site.memory_is_consumable
    return Preemption(kind == BY_PARTITION, victims, preempts, served, youngest_first, reclaims, memory_stays=memory)


def _leaves(state: State, job: Job) -> frozenset[str]:
    """The reservations whose nodes the job uses, and leaves when their own jobs want them."""
    seconds = leaves_within(job.request, state.site.preempt_type)
    if seconds is None or job.allocation is None or job.allocation.reservation:
        return frozenset()
    nodes = set(job.allocation.nodes)
    kept = [each for each in state.reservations.values() if not nodes.isdisjoint(each.nodes)]
    return frozenset(each.name for each in kept if may_share(None, each, seconds))


def _spared_priority(site: Site) -> int | None:
    """Jobs of this priority and above give way to nobody (min_exempt_priority)."""
    said = site.preempt_parameters.get("min_exempt_priority", "")
    return int(said) if said.isdecimal() else None


def mode_of(state: State, directory: Directory, job: Job) -> str:
    """OFF, CANCEL, REQUEUE or SUSPEND: what happens to the job when it gives way."""
    for words in (_words(state, directory, job), state.site.preempt_mode.upper().split(",")):
        for word in ("OFF", "CANCEL", "REQUEUE", "SUSPEND"):
            if word in words:
                return word
    return "OFF"


def _words(state: State, directory: Directory, job: Job) -> list[str]:
    """The job's PreemptMode: that of its QOS or partition, else the cluster's."""
    by_qos = state.site.preempt_type == BY_QOS
    said = directory.preemption.get(job.qos, _NOTHING).mode if by_qos else _partition(state, job).preempt_mode
    words = (said or state.site.preempt_mode).upper().split(",")
    return state.site.preempt_mode.upper().split(",") if words == ["CLUSTER"] else words


def _partition(state: State, job: Job) -> Partition:
    name = job.allocation.partition if job.allocation else ""
    return state.partitions.get(name) or Partition(name, ())


def _grace(state: State, directory: Directory, job: Job) -> int:
    if state.site.preempt_type == BY_QOS:
        return directory.preemption.get(job.qos, _NOTHING).grace_time
    return _partition(state, job).grace_time


def _exempt_seconds(state: State, directory: Directory, job: Job) -> int:
    """How long a job has run at least before it may be preempted."""
    own = directory.preemption.get(job.qos, _NOTHING).exempt_time
    if own is not None:
        return own
    try:
        return parse_duration_seconds(state.site.parameters.get("PreemptExemptTime") or "0") or 0
    except GrammarError:
        return 0


def watch_exemptions(turn: Turn) -> None:
    """Have a plan made when the first of the jobs that are exempt from preemption for a while may be preempted."""
    state = turn.state
    if state.site.preempt_type not in (BY_PARTITION, BY_QOS) or not state.pending:
        return
    running = [state.jobs[job_id] for job_id in state.holding]
    ends = [job.start_time + _exempt_seconds(state, turn.directory, job) for job in running]
    state.exempt_until = min((end for end in ends if end > turn.now), default=0)
    if state.exempt_until:
        turn.wake_at(state.exempt_until, 0)


def tick(turn: Turn) -> None:
    """Plan anew when a job is exempt from preemption no more."""
    if 0 < turn.state.exempt_until <= turn.now:
        turn.state.exempt_until = 0
        turn.wake_planner()


def carry_out(turn: Turn, preempt: Preempt) -> None:
    """Let the victims of a waiting job give way, if all of it is still so."""
    state = turn.state
    preemptor = state.jobs.get(preempt.job_id)
    victims = [state.jobs[job_id] for job_id in preempt.victims if job_id in state.jobs]
    members = {member for job in victims if job.het_job_id for member in state.by_het.get(job.het_job_id, ())}
    victims += [state.jobs[member] for member in sorted(members.difference(preempt.victims)) if member in state.holding]
    if preemptor is None or phase_of(preemptor) is not Phase.PENDING or not preemptor.priority:
        return
    if len(victims) < len(preempt.victims) or not all(map(_may_give_way, victims)):
        turn.wake_planner()
        return
    for job in victims:
        _give_way(turn, job, preemptor)
    turn.wake_planner()


def _may_give_way(job: Job) -> bool:
    return phase_of(job) is Phase.RUNNING or job.waits_for_turn


def _give_way(turn: Turn, job: Job, preemptor: Job) -> None:
    state, directory = turn.state, turn.directory
    mode, grace = mode_of(state, directory, job), _grace(state, directory, job)
    if not _leaves(state, job).isdisjoint(preemptor.reservation.split(",")):
        mode, grace = "REQUEUE", leaves_within(job.request, state.site.preempt_type) or 0
    if mode == "SUSPEND":
        if job.waits_for_turn:
            turn.save(replace(job, preempted_by=preemptor.job_id, waits_for_turn=False))
        else:
            stop(turn, job, preempted_by=preemptor.job_id)
        return
    state.gave_way[job.job_id] = preemptor.job_id
    if "send_user_signal" in state.site.preempt_parameters and job.request.kill_warning_signal:
        flag = KillFlag.BATCH if "B" in (job.request.kill_warning_flags or "") else KillFlag.NONE
        turn.emit(Signal(job.job_id, job.restarts, job.request.kill_warning_signal, None, flag))
    wait = state.site.kill_wait + grace
    if mode == "REQUEUE" and may_requeue(turn, job):
        requeue(turn, job, Reason.NONE, held=False, ended_as=JobState.PREEMPTED, kill_wait=wait)
    else:
        end(turn, job, JobState.PREEMPTED, Reason.NONE, kill_wait=wait)


def forget_gone(state: State, *, planned: bool) -> None:
    """Victims whose preemptor waits no more, and with ``planned``, those that were gone when a plan was made."""
    for victim, preemptor in list(state.gave_way.items()):
        if preemptor not in state.pending or (planned and victim not in state.holding):
            del state.gave_way[victim]


def resume_parked(turn: Turn) -> None:
    """Let jobs that were suspended for others go on where their CPUs are free again, longest suspended first."""
    state = turn.state
    jobs = [job for job in map(state.jobs.__getitem__, state.parked) if job.preempted_by]
    for job in sorted(jobs, key=lambda job: (job.suspend_time, job.job_id)):
        if job.preempted_by in state.pending and state.jobs[job.preempted_by].priority:
            continue
        if _cpus_are_free(state, job):
            go_on(turn, job)


def _cpus_are_free(state: State, job: Job) -> bool:
    assert job.allocation is not None
    mode, _, count = _partition(state, job).oversubscribe.partition(":")
    times = int(count or 4) if mode == "FORCE" else 1
    for share in job.allocation.shares:
        usage, node = state.usage[share.node], state.nodes.get(share.node)
        others = usage.jobs - usage.parked
        if node is None or usage.whole or (job.allocation.whole_nodes and others):
            return False
        if usage.cpus + share.cpus > (node.cpus - node.foreign_cpus) * times:
            return False
    return True
