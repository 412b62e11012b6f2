"""Prologs and epilogs as far as the state of jobs and nodes goes: who runs them tells how they went.

A prolog that fails closes its node and puts its job back in the queue, held unless PrologFlags=NoHold; a failed epilog
closes its node. The controller's own prolog, when it fails, has its job wait again (slurm.conf(5), and as observed).
"""

from __future__ import annotations

from dataclasses import replace

from slurmk.core.effects import RunEpilog
from slurmk.core.endings import end, epilog_ended, expedite, requeue, waits_for_epilogs
from slurmk.core.events import EpilogEnded, EpilogFailed, PrologFailed, PrologRuns
from slurmk.core.state import Phase, Turn, phase_of
from slurmk.core.transitions import may_requeue, other_components
from slurmk.model.job import Job
from slurmk.model.states import JobFlag, JobState, NodeFlag, Reason

PROLOG_ERROR = "Prolog error"
EPILOG_ERROR = "Epilog error"
"""Reasons of nodes that are drained."""

CONTROLLER_FAILED = "PrologSlurmctld failed, job killed"
NODE_FAILED = "Prolog failure on node "
"""What the user of an allocation is told."""

FAILED_ON_NODE = 54
"""The exit code of a job whose prolog failed on a node before anything was begun there (PrologFlags=Alloc), as in Slurm: a
wait(2) status (0:54). Without the flag it is the exit code of the step, which srun makes the job's."""


def is_prolog_failure(comment: str) -> bool:
    """Whether a job's system comment says that it is over because a prolog failed."""
    return comment == CONTROLLER_FAILED or comment.startswith(NODE_FAILED)


def prolog_runs(turn: Turn, event: PrologRuns) -> None:
    """A running job says that its prolog is what it waits for, and when it is over."""
    job = turn.state.jobs.get(event.job_id)
    if job is None or job.restarts != event.restart or phase_of(job) is not Phase.RUNNING:
        return
    if event.over and job.reason is Reason.PROLOG:
        turn.save(replace(job, reason=Reason.NONE))
    elif not event.over:
        turn.save(replace(job, reason=Reason.PROLOG))


def prolog_failed(turn: Turn, event: PrologFailed) -> None:
    """The node is closed, and the job waits again or is over."""
    job = turn.state.jobs.get(event.job_id)
    if event.node and event.drain:
        _drain(turn, event.node, PROLOG_ERROR)
    if job is None or job.restarts != event.restart or phase_of(job) not in (Phase.RUNNING, Phase.SUSPENDED):
        return
    for component in (job, *other_components(turn, job)):
        if event.node:
            _failed_on_node(turn, component, event.node)
        else:
            _failed_here(turn, component)


def _failed_on_node(turn: Turn, job: Job, node: str) -> None:
    flags = turn.state.site.prolog_flags
    if "Alloc" in flags:
        job = replace(job, exit_code=FAILED_ON_NODE)
    if may_requeue(turn, job) or (job.batch and "ForceRequeueOnFail" in flags):
        failed = replace(job, flags=job.flags | JobFlag.LAUNCH_FAILED)
        requeue(turn, failed, Reason.JOB_LAUNCH_FAILURE, held=True, kill_wait=0)
        return
    told = replace(job, system_comment=f"{NODE_FAILED}{node}")
    end(turn, told, JobState.CANCELLED, Reason.NONE, kill_wait=0, user_id=0)


def _failed_here(turn: Turn, job: Job) -> None:
    """Nothing of it was launched."""
    assert job.allocation is not None
    gone = frozenset(job.allocation.nodes)
    if may_requeue(turn, job):
        requeue(turn, job, Reason.NONE, held=False, kill_wait=0, gone=gone)
    else:
        end(turn, replace(job, system_comment=CONTROLLER_FAILED), JobState.CANCELLED, Reason.NONE, kill_wait=0, gone=gone)


def epilog_failed(turn: Turn, event: EpilogFailed) -> None:
    """The node is closed; the job ends as it would have, or when it failed and asked for it, is tried again at once."""
    if event.drain:
        _drain(turn, event.node, EPILOG_ERROR)
    job = turn.state.jobs.get(event.job_id)
    if job is not None and job.restarts == event.restart and phase_of(job) is Phase.COMPLETING and waits_for_epilogs(job):
        expedite(turn, job)


def restore_epilog(turn: Turn, job: Job) -> None:
    """After a restart: the controller's own epilog of a job that was ending may have been cut off, so it is run again."""
    if job.flags & JobFlag.COMPLETING and turn.state.site.epilog_slurmctld:
        turn.state.epilogs.add(job.job_id)
        turn.emit(RunEpilog(job))
    elif job.flags & JobFlag.EPILOG_RUNS:
        epilog_ended(turn, EpilogEnded(turn.time, job.job_id, job.restarts))


def _drain(turn: Turn, name: str, reason: str) -> None:
    node = turn.state.nodes.get(name)
    if node is None or node.flags & NodeFlag.DRAIN:
        return
    turn.save_node(replace(node, flags=node.flags | NodeFlag.DRAIN, reason=reason, reason_time=turn.now, reason_user_id=0))
    turn.wake_planner()
