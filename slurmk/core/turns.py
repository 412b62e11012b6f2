"""Gang scheduling (slurm.conf(5), PreemptMode=GANG): jobs that were given the same CPUs take turns.

In a partition with OverSubscribe=FORCE:n a CPU is given to n jobs. With GANG one of them has it at a time: those whose turn it
is run, the others stand still, and every SchedulerTimeSlice those that waited longest come next. Each partition has turns of
its own. Jobs on CPUs that nobody else has always run, het jobs too.
"""

from __future__ import annotations

from collections.abc import Iterable

from slurmk.core.state import Phase, State, Turn, phase_of
from slurmk.core.suspension import go_on, stop
from slurmk.model.job import Job
from slurmk.model.node import Partition
from slurmk.model.site import Site
from slurmk.model.states import JobFlag

SHORTEST_SLICE, SLICE = 5, 30
"""Seconds: the least that SchedulerTimeSlice may be, and what it is where nothing is said."""

Cpus = frozenset[tuple[str, int]]


def takes_turns(site: Site) -> bool:
    """Whether jobs take turns at all."""
    return "GANG" in site.preempt_mode.split(",")


def slice_of(site: Site) -> int:
    """Seconds of one turn."""
    said = site.parameters.get("SchedulerTimeSlice", "").partition(" ")[0]
    return max(int(said), SHORTEST_SLICE) if said.isdecimal() else SLICE


def follow(turn: Turn) -> None:
    """A job came, went or was stopped by hand: those run whose turn it is, and others where their CPUs are free."""
    state = turn.state
    if not takes_turns(state.site) or state.changes == state.changes_at_turn:
        return
    state.changes_at_turn = state.changes
    waiting = False
    for jobs in _sharers(state):
        running = [job for job in jobs if phase_of(job) is Phase.RUNNING]
        still = [job for job in jobs if phase_of(job) is not Phase.RUNNING]
        waiting |= _let_run(turn, [*sorted(running, key=_since), *sorted(still, key=_since)])
    if waiting and state.next_turn <= turn.now:
        state.next_turn = turn.now + slice_of(state.site)
        turn.wake_at(state.next_turn, 0)
    elif not waiting:
        state.next_turn = 0


def tick(turn: Turn) -> None:
    """When a slice is over, those that stood still longest come next."""
    state = turn.state
    if not state.next_turn or state.next_turn > turn.now:
        return
    state.next_turn = 0
    waiting = False
    for jobs in _sharers(state):
        still = [job for job in jobs if phase_of(job) is not Phase.RUNNING]
        running = [job for job in jobs if phase_of(job) is Phase.RUNNING]
        waiting |= _let_run(turn, [*sorted(still, key=_since), *sorted(running, key=_since)])
    state.changes_at_turn = state.changes
    if waiting:
        state.next_turn = turn.now + slice_of(state.site)
        turn.wake_at(state.next_turn, 0)


def _sharers(state: State) -> Iterable[list[Job]]:
    """By partition, the jobs that take turns there: not those that only just start, are ending or were stopped by hand."""
    found: dict[str, list[Job]] = {}
    for job_id in state.holding:
        job = state.jobs[job_id]
        allocation = job.allocation
        ready = phase_of(job) is Phase.RUNNING and not job.flags & JobFlag.CONFIGURING
        if allocation is None or job.het_job_id or not (ready or (phase_of(job) is Phase.SUSPENDED and job.waits_for_turn)):
            continue
        partition = state.partitions.get(allocation.partition)
        if job.waits_for_turn or (partition is not None and _shares(partition) and not allocation.whole_nodes):
            found.setdefault(allocation.partition, []).append(job)
    return found.values()


def _shares(partition: Partition) -> bool:
    mode, _, count = partition.oversubscribe.partition(":")
    return mode == "FORCE" and count != "1"


def _since(job: Job) -> tuple[int, int]:
    """Since when it runs or stands still."""
    return job.suspend_time or job.start_time, job.job_id


def _let_run(turn: Turn, jobs: Iterable[Job]) -> bool:
    """Let those of the jobs run whose CPUs none before them has; whether any has to stand still."""
    taken: set[tuple[str, int]] = set()
    waiting = False
    for job in jobs:
        cpus = _cpus(job)
        running = phase_of(job) is Phase.RUNNING
        if taken.isdisjoint(cpus):
            taken |= cpus
            if not running:
                go_on(turn, job)
            continue
        waiting = True
        if running:
            stop(turn, job, waits_for_turn=True)
    return waiting


def _cpus(job: Job) -> Cpus:
    assert job.allocation is not None
    return frozenset((share.node, number) for share in job.allocation.shares for number in share.cpu_ids)
