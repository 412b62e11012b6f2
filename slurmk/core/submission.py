"""New jobs: what Slurm refuses and in which words, what it fills in, and what it keeps although it cannot start yet.

The order of the checks is Slurm's, as far as it can be seen from which of two faults is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from grammar.arrays import parse_array
from grammar.dependencies import Dependencies, format_dependency
from grammar.errors import GrammarError
from grammar.frequencies import task_interval
from grammar.hostlist import compress, expand
from grammar.script import LARGEST_SCRIPT
from slurmk.core import arrays, dependencies, reservation_use
from slurmk.core.demands import Refusal, demand_in, least_cpus
from slurmk.core.effects import Accepted, Refused, SaveCounter
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import Caller, Submission, Submit
from slurmk.core.feasibility import unknown_features, verdict
from slurmk.core.licenses import are_licenses
from slurmk.core.mail import default_address
from slurmk.core.priority import HIGHEST, Directory, expected_priority, initial_priority
from slurmk.core.state import State, Turn
from slurmk.model.job import Job, JobRequest
from slurmk.model.node import Partition
from slurmk.model.requested import gpus_of_nodes, gres, gres_per_job
from slurmk.model.reservation import ReservationFlag
from slurmk.model.site import Site
from slurmk.model.states import INFINITE, NO_VALUE, Reason
from slurmk.planner.attention import bounds_of
from slurmk.planner.snapshot import Demand

DEFAULT_WCKEY = "*"
"""What jobs have that name no key where keys are tracked (TrackWCKey)."""

MAXIMUM_NICE = 0x7FFFFFFD
"""Slurm's NICE_OFFSET less the marks above it."""


def submit(turn: Turn, event: Submit) -> None:
    """One job, or the components of a het job: all of them or none."""
    try:
        drafts = _drafts(turn, event)
        _room(turn.state, drafts)
    except Refusal as refusal:
        turn.emit(Refused(refusal.error, notices=refusal.notices))
        return
    except SlurmError as error:
        turn.emit(Refused(error))
        return
    if event.will_run_only:
        turn.emit(Accepted())
        return
    job_ids = tuple(arrays.new_job_id(turn) for _ in drafts)
    for offset, (draft, job_id) in enumerate(zip(drafts, job_ids, strict=True)):
        het = (job_ids[0], offset, job_ids if offset == 0 else ()) if len(drafts) > 1 else (0, 0, ())
        _create(turn, draft, job_id, het)
    turn.keep(SaveCounter(turn.state.next_job_id))
    turn.emit(Accepted(job_ids[:1] if len(drafts) == 1 else job_ids))
    turn.wake_planner()


def trial(turn: Turn, event: Submit) -> Job | Refused:
    """The (first) job that a submission would make, or why it would be refused. Nothing is kept."""
    try:
        drafts = _drafts(turn, event)
    except Refusal as refusal:
        return Refused(refusal.error, notices=refusal.notices)
    except SlurmError as error:
        return Refused(error)
    job = replace(drafts[0].job, job_id=turn.state.next_job_id)
    demand = drafts[0].demand
    priority = job.priority or expected_priority(turn, job, demand.minimum_nodes, least_cpus(demand))
    return replace(job, priority=priority, array_job_id=job.job_id if job.array_tasks else 0)


@dataclass(frozen=True, slots=True)
class _Draft:
    job: Job  # without ids
    demand: Demand
    dependency: Dependencies | None


def _drafts(turn: Turn, event: Submit) -> list[_Draft]:
    """Of every component. Raises Refusal and SlurmError."""
    if len(event.submissions) == 1:
        return [_draft(turn, event.caller, event.submissions[0], False)]
    wanted = [each.request.required_nodes for each in event.submissions]
    drafts = []
    for offset, submission in enumerate(event.submissions):
        request = submission.request
        if offset and request.licenses:
            raise Refusal(Errno.INVALID_LICENSES, notices=(f"{offset}: license request allowed only on leader job",))
        if offset:
            request = replace(request, mail_type=(), mail_user=None)
        if others := [text for place, text in enumerate(wanted) if text and place != offset]:
            request = replace(request, excluded_nodes=_names_in_order(request.excluded_nodes, *others))
        drafts.append(_draft(turn, event.caller, replace(submission, request=request), True))
    return drafts


def _names_in_order(*texts: str | None) -> str:
    """All nodes of several lists; what is no list is left for the check of names to refuse."""
    try:
        return compress({name for text in texts if text for name in expand(text)})
    except GrammarError:
        return ",".join(filter(None, texts))


def _draft(turn: Turn, caller: Caller, submission: Submission, component: bool) -> _Draft:
    state, request, credentials = turn.state, submission.request, submission.credentials
    if state.site.disable_root_jobs and credentials.user_id == 0:
        raise SlurmError(Errno.USER_ID_MISSING)
    options = state.site.scheduler_parameters
    if submission.immediate and "defer" in options:
        raise Refusal(Errno.DEFER)
    if submission.script_size > largest_script(state.site) or len(submission.submit_line) > largest_submit_line(state.site):
        raise Refusal(Errno.PATHNAME_TOO_LONG)
    if request.expedited_requeue and not expedites(state.site):
        raise Refusal(Errno.NOT_SUPPORTED)
    if request.tres_per_node or gres_per_job(request) or request.tres_per_task or request.tres_per_socket:
        demand_in(state, request, None, credentials.user_id)
    missing = bool(request.constraints) and unknown_features(state, request.constraints or "")
    if missing and "ignore_constraint_validation" not in options:
        raise Refusal(Errno.INVALID_FEATURE)
    if request.prefer and "ignore_prefer_validation" not in options and unknown_features(state, request.prefer):
        raise Refusal(Errno.INVALID_PREFER)
    array = _array(state, request, component)
    required = _names(state, request.required_nodes)
    partitions = partitions_of(state, request.partition or reserved_partition(state, request.reservation))
    for partition in partitions:
        check_access(state, turn.directory, partition, submission, caller)
    account, qos = charged_to(turn.directory, partitions, request, credentials.user_name)
    check_nice(request.nice, caller)
    time_limit = time_limit_of(turn, request, partitions)
    if request.deadline is not None and time_limit == INFINITE and request.time_minimum is None:
        request = replace(request, time_minimum=1)
    check_intervals(state, request.account_gather_frequency)
    check_licenses(state, request.licenses)
    check_licenses_per_task(state, request.tres_per_task)
    if required & _names(state, request.excluded_nodes):
        raise Refusal(Errno.INVALID_NODE_NAME)
    demand = demand_in(state, request, partitions[0], credentials.user_id)
    wanted = dependencies.accept(state, request.dependency, held=request.hold) if request.dependency else None
    if request.dependency is not None:
        text = format_dependency(wanted) if wanted else None
        request = request if text == request.dependency else replace(request, dependency=text)
    if request.wckey is None and tracks_keys(state.site):
        request = replace(request, wckey=DEFAULT_WCKEY)
    if request.mail_type and not request.mail_user:
        request = replace(request, mail_user=default_address(state, credentials.user_name))
    reserved = reserved_nodes(state, request.reservation, turn.now)
    begin = max(turn.now, request.begin_time or 0)
    later = begin > turn.now
    job = Job(
        job_id=0,
        request=request,
        credentials=credentials,
        submit_time=turn.now,
        reason=Reason.JOB_HELD_USER if request.hold else Reason.DEPENDENCY if wanted else _waits(turn, request),
        priority=0 if request.hold else _given_priority(request, caller),
        name=submission.command.rpartition("/")[2] if request.name is None else request.name,
        account=account,
        qos=qos,
        partitions=tuple(partition.name for partition in partitions),
        time_limit=time_limit,
        batch=submission.batch,
        command=submission.command,
        submit_line=submission.submit_line,
        submit_host=submission.submit_host,
        session_id=submission.session_id,
        umask=submission.umask,
        limits=submission.limits,
        array_tasks=array[0],
        array_maximum_running=array[1],
        eligible_time=begin if later or not (wanted or request.hold) else 0,
        accrue_time=0 if later or wanted or request.hold else begin,
        admin_comment=request.admin_comment or "",
    )
    reservation_use.check_use(state, turn.directory, job)
    if not request.hold and not missing:
        check_reserved(reserved, demand)
        check_size(state, request, partitions, demand, credentials.user_id)
    check_limits(state, request, partitions, demand, time_limit)
    return _Draft(job, demand, wanted)


LARGEST_SUBMIT_LINE, MOST_OF_SUBMIT_LINES = 1 << 20, 2 << 20
"""Bytes that a command line may have, and how many the site may allow."""


def largest_script(site: Site) -> int:
    """Bytes that a script may have (max_script_size)."""
    return _number_of(site, "max_script_size", LARGEST_SCRIPT)


def largest_submit_line(site: Site) -> int:
    """Bytes that a submission's command line may have (max_submit_line_size)."""
    return min(_number_of(site, "max_submit_line_size", LARGEST_SUBMIT_LINE), MOST_OF_SUBMIT_LINES)


def _number_of(site: Site, word: str, otherwise: int) -> int:
    said = site.scheduler_parameters.get(word, "")
    return int(said) if said.isdecimal() else otherwise


def expedites(site: Site) -> bool:
    """Whether jobs may ask to be queued again before all others (--requeue=expedite)."""
    return "enable_expedited_requeue" in site.parameters.get("SlurmctldParameters", "").lower().split(",")


def tracks_keys(site: Site) -> bool:
    """Whether every job has a key, named or not (TrackWCKey)."""
    return site.parameters.get("TrackWCKey", "").lower() in ("yes", "1", "true")


def _waits(turn: Turn, request: JobRequest) -> Reason:
    return Reason.BEGIN_TIME if (request.begin_time or 0) > turn.now else Reason.NONE


def _given_priority(request: JobRequest, caller: Caller) -> int:
    """A priority that an operator asked for; what users ask for is passed over, as Slurm does. 0: to be computed."""
    return min(request.priority, HIGHEST) if request.priority and caller.operator else 0


def _create(turn: Turn, draft: _Draft, job_id: int, het: tuple[int, int, tuple[int, ...]]) -> None:
    job = draft.job
    priority = job.priority
    if not priority and not job.request.hold:
        priority = initial_priority(
            turn.state, turn.directory, job, turn.now, draft.demand.minimum_nodes, least_cpus(draft.demand)
        )
    job = replace(
        job,
        job_id=job_id,
        sluid=arrays.new_sluid(turn),
        priority=priority,
        array_job_id=job_id if job.array_tasks else 0,
        het_job_id=het[0],
        het_job_offset=het[1],
        het_components=het[2],
    )
    turn.save(job, new=True)
    if draft.dependency is not None:
        dependencies.watch(turn.state, job, draft.dependency)
        dependencies.test(turn, job)
    set_alarms(turn, job)


def set_alarms(turn: Turn, job: Job) -> None:
    """Look at a pending job again when it may begin, once it can't keep its deadline, and when it takes any number of
    switches."""
    usual = bounds_of(turn.state.site.scheduler_parameters).switch_wait
    patience = job.submit_time + (job.request.wait_for_switch or usual) if job.request.required_switches else None
    for time in (job.request.begin_time, patience):
        if time is not None and time > turn.now:
            turn.wake_at(time, job.job_id)
    if job.request.deadline is not None:
        turn.wake_at(max(_last_start(job) + 1, turn.now), job.job_id)


def misses_deadline(job: Job, now: int) -> bool:
    """Whether it is too late for a waiting job that nothing but room keeps. One that is held or waits for another job or for
    its time is left alone, as in Slurm."""
    request = job.request
    if request.deadline is None:
        return False
    ready = job.priority != 0 and request.dependency is None and (request.begin_time or 0) <= now
    return ready and now > _last_start(job)


def _last_start(job: Job) -> int:
    """When the job would have to start to be over by its deadline, however little time it may be given."""
    assert job.request.deadline is not None
    least = job.time_limit if job.request.time_minimum is None else job.request.time_minimum
    return job.request.deadline - (0 if least >= NO_VALUE else least * 60)


def _room(state: State, drafts: Iterable[_Draft]) -> None:
    new = sum(max(1, arrays.task_count(draft.job.array_tasks)) for draft in drafts)
    if state.job_count + new > state.site.maximum_job_count:
        raise Refusal(Errno.MAX_JOB_COUNT)


# --------------------------------------------------------------------------------------------- partition, account


def partitions_of(state: State, text: str | None) -> tuple[Partition, ...]:
    """The partitions named, or the default one. Raises Refusal."""
    if not text:
        default = next((partition for partition in state.partitions.values() if partition.default), None)
        if default is None:
            raise Refusal(Errno.DEFAULT_PARTITION_NOT_SET)
        return (default,)
    names = dict.fromkeys(filter(None, text.split(",")))
    unknown = ",".join(name for name in names if name not in state.partitions)
    if unknown or not names:
        raise Refusal(Errno.INVALID_PARTITION_NAME, notices=(f"invalid partition specified: {unknown or text}",))
    return tuple(state.partitions[name] for name in names)


def reserved_partition(state: State, reservation: str | None) -> str | None:
    """The partition that a reservation was made in, for jobs that name none."""
    known = state.reservations.get((reservation or "").partition(",")[0])
    return known.partition if known is not None and known.partition else None


def reserved_nodes(state: State, reservation: str | None, now: int) -> frozenset[str] | None:
    """The nodes that a job in these reservations is bound to; None for no bounds, and before they have begun, when their
    nodes may still change."""
    names = [name for name in (reservation or "").split(",") if name]
    known = [state.reservations[name] for name in names if name in state.reservations]
    free = ReservationFlag.FLEX | ReservationFlag.ANY_NODES
    if not known or len(known) < len(names) or any(each.flags & free or not each.active(now) for each in known):
        return None
    return frozenset(name for each in known for name in each.nodes)


def check_reserved(nodes: frozenset[str] | None, demand: Demand) -> None:
    """The reservation has enough nodes, and those that are named. Raises Refusal."""
    if nodes is None:
        return
    if not nodes.issuperset(demand.required_nodes):
        raise Refusal(Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE, notices=("Problem using reservation",))
    if demand.minimum_nodes > len(nodes):
        raise Refusal(Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE)


def check_access(state: State, directory: Directory, partition: Partition, submission: Submission, caller: Caller) -> None:
    """Whether this user may use the partition, and whether it takes jobs. Raises Refusal."""
    credentials = submission.credentials
    if partition.state in ("INACTIVE", "DRAIN"):
        raise Refusal(Errno.PARTITION_NOT_AVAIL)
    if partition.root_only and credentials.user_id != 0 and caller.user_id != 0:
        raise Refusal(Errno.ACCESS_DENIED)
    if partition.disable_root_jobs and credentials.user_id == 0:
        raise Refusal(Errno.ACCESS_DENIED)
    if partition.require_reservation and not submission.request.reservation:
        raise Refusal(Errno.ACCESS_DENIED)
    if partition.allow_groups is not None and credentials.user_id != 0:
        mine = {credentials.group_id, *credentials.groups}
        allowed = {directory.groups.get(name) for name in partition.allow_groups}
        if not mine & allowed and credentials.group_name not in partition.allow_groups:
            raise Refusal(Errno.JOB_MISSING_REQUIRED_PARTITION_GROUP)
    if partition.allow_nodes is not None and submission.submit_host.partition(".")[0] not in partition.allow_nodes:
        raise Refusal(Errno.ACCESS_DENIED)


def charged_to(directory: Directory, partitions: Iterable[Partition], request: JobRequest, user_name: str) -> tuple[str, str]:
    """Account and QOS of a job. Accounts are written in small letters, as in Slurm, or as the directory has them. Raises
    Refusal when the user may not use them, or not in one of the partitions."""
    account = (request.account or "").lower()
    if directory.accounts is not None:
        allowed = directory.accounts.get(user_name, ())
        mine = allowed if request.account is None else [name for name in allowed if name.lower() == account]
        if not mine:
            raise Refusal(Errno.INVALID_ACCOUNT)
        account = mine[0]
    qos = "normal" if request.qos is None else request.qos
    if qos not in directory.qos:
        raise Refusal(Errno.INVALID_QOS)
    for partition in partitions:
        if partition.allow_accounts is not None and not _is_one_of(account, partition.allow_accounts):
            raise Refusal(Errno.INVALID_ACCOUNT)
        if partition.allow_accounts is None and _is_one_of(account, partition.deny_accounts):
            raise Refusal(Errno.INVALID_ACCOUNT)
        if partition.allow_qos is not None and qos not in partition.allow_qos:
            raise Refusal(Errno.INVALID_QOS)
        if partition.allow_qos is None and qos in partition.deny_qos:
            raise Refusal(Errno.INVALID_QOS)
    return account, qos


def _is_one_of(account: str, names: Iterable[str]) -> bool:
    return account.lower() in map(str.lower, names)


def check_nice(nice: int | None, caller: Caller) -> None:
    """Only operators may raise a priority. Raises Refusal."""
    if nice is not None and ((nice < 0 and not caller.operator) or abs(nice) > MAXIMUM_NICE):
        raise Refusal(Errno.INVALID_NICE)


# --------------------------------------------------------------------------------------------- size and time


def check_nodes(state: State, request: JobRequest) -> None:
    """The nodes that a request names exist, and none is both wanted and excluded. Raises Refusal."""
    if not request.required_nodes and not request.excluded_nodes:
        return
    required = _names(state, request.required_nodes)
    excluded = _names(state, request.excluded_nodes)
    if required & excluded:
        raise Refusal(Errno.INVALID_NODE_NAME)


def _names(state: State, text: str | None) -> set[str]:
    if not text:
        return set()
    try:
        names = set(expand(text))
    except GrammarError:
        raise Refusal(Errno.INVALID_NODE_NAME) from None
    if not names <= state.nodes.keys():
        raise Refusal(Errno.INVALID_NODE_NAME)
    return names


def check_licenses(state: State, text: str | None) -> None:
    """The site has as many of each licence. Raises Refusal."""
    if not are_licenses(state.site, text):
        raise Refusal(Errno.INVALID_LICENSES)


def check_licenses_per_task(state: State, text: str | None) -> None:
    """Licences for each task are there and counted by accounting (AccountingStorageTRES). Raises Refusal."""
    counted = state.site.parameters.get("AccountingStorageTRES", "").lower().split(",")
    for word in (text or "").split(","):
        name = re.split("[:=]", word, maxsplit=1)[0]
        if not name.startswith("license/"):
            continue
        if name.removeprefix("license/") not in state.site.licenses:
            raise Refusal(Errno.INVALID_LICENSES)
        if name.lower() not in counted:
            raise Refusal(Errno.INVALID_TRES)


def check_intervals(state: State, text: str | None) -> None:
    """Usage is sampled at least as often as the site wants (JobAcctGatherFrequency). Raises Refusal."""
    seconds, usual = task_interval(text or ""), task_interval(state.site.parameters.get("JobAcctGatherFrequency") or "")
    if usual and seconds is not None and not 0 < seconds <= usual:
        raise Refusal(Errno.INVALID_ACCOUNTING_FREQUENCY)


def check_size(state: State, request: JobRequest, partitions: tuple[Partition, ...], demand: Demand, user_id: int) -> None:
    """Some partition could hold the job if it were empty. Raises Refusal."""
    if request.maximum_nodes and request.minimum_nodes and request.maximum_nodes < request.minimum_nodes:
        raise Refusal(Errno.INVALID_NODE_COUNT)
    if request.minimum_nodes == request.maximum_nodes == 0 and request.tasks is None:
        raise Refusal(Errno.INVALID_NODE_COUNT)
    if request.tasks and not request.nodes and all(request.tasks < partition.minimum_nodes for partition in partitions):
        raise Refusal(Errno.BAD_TASK_COUNT)
    sharing = gpus_of_nodes(request)
    if sharing and any(count % sharing for name, count in gres(request) if name == "gpu"):
        raise Refusal(Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE)
    notices: tuple[str, ...] = ()
    for partition in partitions:
        here = demand if partition is partitions[0] else demand_in(state, request, partition, user_id)
        if not state.site.memory_is_consumable:  # then nodes have that much, whoever else uses it
            here = replace(here, memory_per_node=request.memory_per_node, memory_per_cpu=_least_per_cpu(request))
        result = verdict(state, here, partition)
        if result.possible:
            return
        notices = notices or result.notices
    raise Refusal(Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE, notices=notices)


def _least_per_cpu(request: JobRequest) -> int | None:
    return None if request.memory_per_node is not None else request.memory_per_cpu or None


def time_limit_of(turn: Turn, request: JobRequest, partitions: tuple[Partition, ...]) -> int:
    """The time limit in minutes: asked for (0 means none), the partition's default, or its maximum. Raises Refusal."""
    limit = request.time_limit
    if limit is None or limit == NO_VALUE:
        partition = partitions[0]
        limit = partition.maximum_time if partition.default_time is None else partition.default_time
    elif limit == 0:
        limit = INFINITE
    minimum = request.time_minimum
    if minimum is not None and not 0 < minimum <= limit:
        raise Refusal(Errno.INVALID_TIME_MIN_LIMIT)
    if request.deadline is not None:
        if request.time_limit is not None and limit == INFINITE and minimum is None:
            raise Refusal(Errno.INVALID_TIME_LIMIT)
        least = minimum if minimum is not None else limit
        begin = max(turn.now, request.begin_time or 0)
        if request.deadline <= turn.now or (least and least < NO_VALUE and begin + least * 60 > request.deadline):
            raise Refusal(Errno.INVALID_TIME_LIMIT)
    return limit


def check_limits(state: State, request: JobRequest, partitions: tuple[Partition, ...], demand: Demand, time_limit: int) -> None:
    """EnforcePartLimits: ALL refuses what is beyond one of the partitions' limits, ANY what is beyond all of them; with NO
    such a job waits with a reason. Raises Refusal."""
    policy = state.site.enforce_partition_limits
    if policy == "NO":
        return
    problems = [_beyond(state, partition, request, demand, time_limit) for partition in partitions]
    found = [problem for problem in problems if problem is not None]
    if found and (policy == "ALL" or len(found) == len(problems)):
        raise Refusal(found[0])


def _beyond(state: State, partition: Partition, request: JobRequest, demand: Demand, time_limit: int) -> Errno | None:
    if least_cpus(demand) > sum(state.nodes[name].cpus for name in partition.nodes if name in state.nodes):
        return Errno.TOO_MANY_REQUESTED_CPUS
    if demand.minimum_nodes > min(partition.maximum_nodes, len(partition.nodes)):
        return Errno.INVALID_NODE_COUNT
    if demand.maximum_nodes < partition.minimum_nodes:
        return Errno.INVALID_NODE_COUNT
    least = request.time_minimum if request.time_minimum is not None else time_limit
    if least > partition.maximum_time and request.time_limit is not None:
        return Errno.INVALID_TIME_LIMIT
    return _beyond_memory(state, partition, request, demand)


def _beyond_memory(state: State, partition: Partition, request: JobRequest, demand: Demand) -> Errno | None:
    """MaxMemPerNode, counted or not. Without a word of memory all of a node is meant, or what the partition gives."""
    most = partition.maximum_memory_per_node or state.site.maximum_memory_per_node
    if not most or demand.least_memory is None:
        return None
    whole = (state.nodes[name].memory for name in partition.nodes if name in state.nodes)
    if (demand.least_memory or min(whole, default=0)) <= most:
        return None
    said = request.memory_per_node is not None or request.memory_per_cpu
    return Errno.INVALID_TASK_MEMORY if said else Errno.REQUESTED_PART_CONFIG_UNAVAILABLE


def _array(state: State, request: JobRequest, component: bool) -> tuple[tuple[range, ...], int]:
    if request.array is None:
        return (), 0
    if component:
        raise Refusal(Errno.INVALID_ARRAY)
    try:
        array = parse_array(request.array, state.site.maximum_array_size)
    except GrammarError:
        raise Refusal(Errno.INVALID_ARRAY) from None
    if arrays.task_count(array.tasks) > _number_of(state.site, "max_array_tasks", state.site.maximum_array_size):
        raise Refusal(Errno.INVALID_ARRAY)
    return array.tasks, array.maximum_running
