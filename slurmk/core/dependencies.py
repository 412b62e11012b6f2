"""What a job waits for: ``--dependency`` as it is checked at submission, tested when other jobs change, and shown.

A job keeps what it still waits for in ``request.dependency``, in Slurm's normal form with one job a term; what is
satisfied is taken out, so nothing needs to be known any more of jobs that ended long ago. A job is looked at again
only when one of those it names, or one of the same name (singleton), starts or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum

from grammar.dependencies import Dependencies, Dependency, DependencyKind, format_dependency, parse_dependency, parse_kept
from grammar.errors import GrammarError
from slurmk.core import arrays, mail
from slurmk.core.endings import finish_pending
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.state import Phase, State, Turn, phase_of
from slurmk.model.job import Job
from slurmk.model.states import JobState, Reason


class Standing(Enum):
    """How one term of a dependency stands; the value is the word that Slurm shows behind it."""

    SATISFIED = ""
    WAITING = "unfulfilled"
    FAILED = "failed"


def parse(text: str, read: Callable[[str], Dependencies] = parse_kept) -> Dependencies:
    """The dependency that a job is kept with, or as ``read`` takes it. Raises SlurmError."""
    try:
        return read(text)
    except GrammarError:
        raise SlurmError(Errno.DEPENDENCY) from None


NAMESAKES = 0
"""What a singleton waits for, in the place of a job's id."""

_TELL_SUCCESS = (DependencyKind.AFTER_OK, DependencyKind.AFTER_NOT_OK)


# ------------------------------------------------------------------------------------------------- at submission


def accept(state: State, text: str, job_id: int | None = None, *, held: bool = False) -> Dependencies | None:
    """What a job that is being submitted (or changed: ``job_id``) has to wait for; None when that is nothing.

    A job that is no longer known counts as over, but nobody can say whether it went well. A held job keeps such terms
    until it is released. Raises SlurmError.
    """
    if text.lower().startswith("expand:"):
        raise SlurmError(Errno.NOT_SUPPORTED)
    wanted = parse(text, parse_dependency)
    known: list[Dependency] = []
    for term in wanted.terms:
        if not term.job_id or _targets(state, term):
            known.append(term)
        elif term.kind in _TELL_SUCCESS or term.array_task is not None:
            raise SlurmError(Errno.DEPENDENCY)
        elif held:
            known.append(term)
        elif wanted.any_of:
            return None
    if any(term.job_id == job_id for term in known):
        raise SlurmError(Errno.DEPENDENCY)
    if job_id is not None and _leads_to(state, known, job_id):
        raise SlurmError(Errno.CIRCULAR_DEPENDENCY)
    return Dependencies(tuple(known), wanted.any_of) if known else None


def _leads_to(state: State, terms: Iterable[Dependency], job_id: int) -> bool:
    """True when waiting for these terms would mean waiting for the job itself."""
    seen: set[int] = set()
    ahead = [term.job_id for term in terms if term.job_id]
    while ahead:
        target = ahead.pop()
        if target == job_id:
            return True
        if target not in seen:
            seen.add(target)
            for member in state.by_array.get(target, {target}):
                ahead += state.waiting_on.get(member, ())
    return False


def watch(state: State, job: Job, wanted: Dependencies | None) -> None:
    """Look at the job whenever one that it waits for changes."""
    state.wait_for(job.job_id, frozenset(term.job_id for term in wanted.terms) if wanted else frozenset())


# ------------------------------------------------------------------------------------------------- as jobs change


def test(turn: Turn, job: Job) -> Job:
    """See how a pending job's dependency stands now, and change the job as that demands; the job as it is then."""
    if job.request.dependency is None or phase_of(job) is not Phase.PENDING:
        return job
    wanted = parse(job.request.dependency)
    if job.is_array and any(term.kind is DependencyKind.AFTER_CORRESPONDING for term in wanted.terms):
        _release_corresponding(turn, job, wanted)
        return turn.state.jobs[job.job_id]
    return _settle(turn, job, wanted)


def _settle(turn: Turn, job: Job, wanted: Dependencies) -> Job:
    standings = [(term, _standing(turn, job, term)) for term in wanted.terms]
    left = tuple(term for term, standing in standings if standing is not Standing.SATISFIED)
    if not left or (wanted.any_of and len(left) < len(standings)):
        return _satisfied(turn, job)
    failed = [term for term, standing in standings if standing is Standing.FAILED]
    never = len(failed) == len(standings) if wanted.any_of else bool(failed)
    remaining = wanted if wanted.any_of else Dependencies(left)
    reason = Reason.DEPENDENCY_NEVER_SATISFIED if never else Reason.DEPENDENCY
    if never and job.reason is not reason and job.priority:
        mail.never_satisfied(turn, job)
    if never and _kill_when_invalid(turn.state, job):
        return finish_pending(turn, job, JobState.CANCELLED, reason)
    text = format_dependency(remaining)
    if text == job.request.dependency and (job.reason is reason or job.priority == 0):
        return job
    job = replace(job, request=replace(job.request, dependency=text))
    watch(turn.state, job, remaining)
    return turn.save(job if job.priority == 0 else replace(job, reason=reason))


def look_at_deadline(turn: Turn, job: Job) -> None:
    """Nothing but room keeps the job any more, so that it may be too late for it."""
    if job.request.deadline is not None:
        turn.wake_at(turn.now, job.job_id)


def _satisfied(turn: Turn, job: Job) -> Job:
    watch(turn.state, job, None)
    waited = job.reason in (Reason.DEPENDENCY, Reason.DEPENDENCY_NEVER_SATISFIED)
    eligible = max(turn.now, job.request.begin_time or 0)
    look_at_deadline(turn, job)
    turn.wake_planner()
    return turn.save(
        replace(
            job,
            request=replace(job.request, dependency=None),
            reason=Reason.NONE if waited else job.reason,
            eligible_time=eligible,
            accrue_time=turn.now if job.priority and eligible <= turn.now else 0,
        )
    )


def _kill_when_invalid(state: State, job: Job) -> bool:
    said = job.request.kill_on_invalid_dependency
    if said is not None:
        return said
    stated = state.site.parameters.get("DependencyParameters", "").lower()
    return "kill_invalid_depend" in state.site.scheduler_parameters or "kill_invalid_depend" in stated.split(",")


def _release_corresponding(turn: Turn, record: Job, wanted: Dependencies) -> None:
    """aftercorr: elements of an array go their own ways, each as its counterpart has ended, or the whole array for one
    that has no counterpart."""
    for part in record.array_tasks:
        for task in part:
            standings = [_standing(turn, record, term, task) for term in wanted.terms]
            settled = [standing for standing in standings if standing is not Standing.WAITING]
            if len(settled) == len(standings) or (wanted.any_of and Standing.SATISFIED in settled):
                _settle(turn, arrays.split(turn, turn.state.jobs[record.job_id], task), wanted)


def changed(turn: Turn, job: Job) -> None:
    """A job started or ended: look at those that wait for it."""
    state = turn.state
    waiting = set(state.dependants.get(job.job_id, ()))
    if job.array_job_id:
        waiting |= state.dependants.get(job.array_job_id, set())
    if job.state.finished:
        singletons = state.dependants.get(NAMESAKES, set())
        waiting |= singletons.intersection(state.by_name.get((job.credentials.user_id, job.name), ()))
    for other in sorted(waiting):
        if other in state.jobs and other != job.job_id:
            test(turn, state.jobs[other])


# ------------------------------------------------------------------------------------------------- how they stand


def _targets(state: State, term: Dependency) -> list[Job]:
    """The records that a term names: a job, an element of an array, or all records of an array."""
    members = state.by_array.get(term.job_id)
    if members is None:
        single = state.jobs.get(term.job_id)
        return [single] if single is not None and term.array_task is None else []
    if term.array_task is None:
        return [state.jobs[member] for member in sorted(members)]
    own = state.elements.get((term.job_id, term.array_task))
    if own is not None:
        return [state.jobs[own]]
    rest = state.jobs.get(term.job_id)
    return [rest] if rest is not None and arrays.contains(rest.array_tasks, term.array_task) else []


_KEPT_WHILE_HELD = (
    DependencyKind.SINGLETON,
    DependencyKind.AFTER_ANY,
    DependencyKind.AFTER,
    DependencyKind.AFTER_BURST_BUFFER,
    DependencyKind.AFTER_CORRESPONDING,
)
"""What can still be seen to be satisfied when the job is released, however long the others are forgotten by then."""


def _standing(turn: Turn, job: Job, term: Dependency, task: int | None = None) -> Standing:
    if job.priority == 0 and term.kind in _KEPT_WHILE_HELD:
        return Standing.WAITING
    if term.kind is DependencyKind.SINGLETON:
        return _singleton(turn.state, job)
    if term.kind is DependencyKind.AFTER_CORRESPONDING:
        task = job.array_task_id if task is None else task
        if task is not None and term.array_task is None and term.job_id in turn.state.by_array:
            counterpart = _targets(turn.state, replace(term, array_task=task))
            return _after_ok(turn, job, term, counterpart or _targets(turn.state, term))
    targets = _targets(turn.state, term)
    return _TESTS[term.kind](turn, job, term, targets)


def _singleton(state: State, job: Job) -> Standing:
    for other in state.by_name.get((job.credentials.user_id, job.name), ()):
        rival = state.jobs[other]
        if other == job.job_id or (job.array_job_id and rival.array_job_id == job.array_job_id):
            continue
        if phase_of(rival) is not Phase.PENDING or other < job.job_id:
            return Standing.WAITING
    return Standing.SATISFIED


def _after(turn: Turn, job: Job, term: Dependency, targets: list[Job]) -> Standing:
    latest = 0
    for target in targets:
        if target.state is JobState.PENDING:
            return Standing.WAITING
        latest = max(latest, target.start_time)
    due = latest + term.delay * 60
    if targets and due > turn.now:
        turn.wake_at(due, job.job_id)
        return Standing.WAITING
    return Standing.SATISFIED


def _over(target: Job) -> bool:
    return phase_of(target) is Phase.FINISHED


def _after_any(turn: Turn, job: Job, term: Dependency, targets: list[Job]) -> Standing:
    return Standing.SATISFIED if all(map(_over, targets)) else Standing.WAITING


def _after_ok(turn: Turn, job: Job, term: Dependency, targets: list[Job]) -> Standing:
    if not all(map(_over, targets)):
        return Standing.WAITING
    return Standing.SATISFIED if all(target.state is JobState.COMPLETED for target in targets) else Standing.FAILED


def _after_not_ok(turn: Turn, job: Job, term: Dependency, targets: list[Job]) -> Standing:
    if not all(map(_over, targets)):
        return Standing.WAITING
    return Standing.FAILED if all(target.state is JobState.COMPLETED for target in targets) else Standing.SATISFIED


_TESTS = {
    DependencyKind.AFTER: _after,
    DependencyKind.AFTER_ANY: _after_any,
    DependencyKind.AFTER_OK: _after_ok,
    DependencyKind.AFTER_NOT_OK: _after_not_ok,
    DependencyKind.AFTER_CORRESPONDING: _after_ok,
    DependencyKind.AFTER_BURST_BUFFER: _after_any,
}


def describe(turn: Turn, job: Job) -> str:
    """The dependency as squeue and scontrol show it: ``afterok:12(unfulfilled),afterany:13(failed)``; "" for none."""
    if job.request.dependency is None:
        return ""

    def word(term: Dependency) -> str:
        return "failed" if _standing(turn, job, term) is Standing.FAILED else "unfulfilled"

    return format_dependency(parse(job.request.dependency), word, arrays=turn.state.by_array)
