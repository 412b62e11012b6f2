"""scontrol's smaller commands: what runs where, messages to jobs, the order of a user's jobs, and what is refused here.

Each is a function from a session and the words after the keyword to an exit code; ``scontrol.KEYWORDS`` names them.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from grammar.configuration_words import DEBUG_FLAGS, level_name
from grammar.errors import GrammarError
from grammar.hostlist import expand
from grammar.sluid import typed_sluid
from slurmk.commands import scontrol_update
from slurmk.commands.job_text import STEP_NAMES
from slurmk.commands.processes import tasks_of
from slurmk.commands.scontrol_session import Session
from slurmk.core.effects import Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import JobSelection, SetDebug, UpdateJob
from slurmk.core.selection import NO_JOB, parse
from slurmk.model.job import BATCH_STEP, Job

Command = Callable[[Session, Sequence[str]], Awaitable[int]]


# ---------------------------------------------------------------------------------------------- what runs


def _own_running(session: Session) -> list[Job]:
    """The jobs with processes that the caller may see into."""
    machine, caller = session.controller.machine, session.call.caller
    found = [job for job in machine.jobs.values() if job.steps and job.allocation and machine.may_change(caller, job)]
    return sorted(found, key=lambda job: job.job_id)


def _step_name(step_id: int) -> str:
    return STEP_NAMES.get(step_id, str(step_id))


def _step_order(step_id: int) -> tuple[bool, int]:
    return step_id == BATCH_STEP, step_id


async def list_pids(session: Session, arguments: Sequence[str]) -> int:
    """``listpids [job[.step] [node]]``: the processes of jobs."""
    job_id, step_id = None, None
    if arguments:
        try:
            chosen = parse(arguments[0], session.controller.machine.jobs.values())
        except SlurmError:
            return session.say(f'"{arguments[0]}" does not look like a jobid\n')
        job_id, step_id = chosen.job_id, chosen.step_id
    nodes = [arguments[1]] if len(arguments) > 1 else None
    jobs = [job for job in _own_running(session) if job_id in (None, job.job_id)]
    rows = [(job, task) for job in jobs for task in (await tasks_of(session.controller, job, nodes))[0]]
    rows = [(job, task) for job, task in rows if step_id in (None, task.step_id)]
    if not rows and job_id is None:
        return session.say("No job steps exist on this node.\n")
    if job_id is not None and not rows:
        node = nodes[0] if nodes else "(null)"
        shown = arguments[0] if job_id == NO_JOB else job_id
        named = typed_sluid(arguments[0].partition(".")[0]) or job_id
        what = f"JobId={shown}" if step_id is None else f"StepId={named}.{_step_name(step_id)}"
        return session.say(f"{what} does not exist on node {node}.\n")
    session.output.write(_pid_line("PID", "JOBID", "STEPID", "LOCALID", "GLOBALID").rstrip() + "\n")
    for job, task in sorted(rows, key=lambda row: (row[0].job_id, _step_order(row[1].step_id), row[1].rank)):
        step = _step_name(task.step_id)
        session.output.write(_pid_line(task.process, job.job_id, step, task.local, task.rank))
        if task.step_id == BATCH_STEP:
            session.output.write("".join(_pid_line(each, job.job_id, step, "-", "-") for each in task.below))
    return 0


def _pid_line(process: object, job: object, step: object, local: object, rank: object) -> str:
    return f"{process!s:<8} {job!s:<8} {step!s:<8} {local!s:<7} {rank!s:<8}\n"


NOTHING_RUNS = "No slurmstepd's found on this node\n"


async def list_jobs(session: Session, arguments: Sequence[str]) -> int:
    """``listjobs [node]``: jobs with processes."""
    jobs = [job for job in _own_running(session) if _on_node(job, arguments)]
    if not jobs:
        return session.say(NOTHING_RUNS)
    session.output.write("JOBID\n" + "".join(f"{job.job_id:<8}\n" for job in jobs))
    return 0


async def list_steps(session: Session, arguments: Sequence[str]) -> int:
    """``liststeps [node]``: steps with processes."""
    rows = [(job, step) for job in _own_running(session) if _on_node(job, arguments) for step in job.steps]
    if not rows:
        return session.say(NOTHING_RUNS)
    rows.sort(key=lambda row: (row[0].job_id, _step_order(row[1].step_id)))
    lines = (f"{job.job_id:<8} {_step_name(step.step_id):<8}\n" for job, step in rows)
    session.output.write(f"{'JOBID':<8} {'STEPID':<8}\n" + "".join(lines))
    return 0


def _on_node(job: Job, arguments: Sequence[str]) -> bool:
    return not arguments or (job.allocation is not None and arguments[0] in job.allocation.nodes)


async def addresses(session: Session, arguments: Sequence[str]) -> int:
    """``getaddrs nodelist``: where the nodes are reached. Those that are not known are passed over."""
    if len(arguments) != 1:
        return session.say("one argument required for keyword:getaddrs\n")
    nodes = session.controller.machine.nodes
    try:
        named = [nodes[name] for name in expand(arguments[0]) if name in nodes]
    except GrammarError:
        named = []
    session.output.write("".join(f"{node.name}: {node.address or node.name}:{node.port}\n" for node in named))
    return 0


async def process_information(session: Session, arguments: Sequence[str]) -> int:
    """``pidinfo pid``: the job that a process is of."""
    if not arguments:
        return session.say("missing argument for keyword:pidinfo\n")
    number = int(arguments[0]) if arguments[0].isascii() and arguments[0].isdigit() and len(arguments[0]) < 10 else 0
    for job in _own_running(session) if number else ():
        tasks, _ = await tasks_of(session.controller, job)
        if any(number == task.process or number in task.below for task in tasks):
            end = job.end_time or 0
            session.output.write(f"Slurm JobId={job.job_id} ends at {_moment(end)}\n")
            return 0
    return session.say("Failed to locate job for requested pid\n")


def _moment(when: int) -> str:
    import time

    return time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(when)) if when else "never"


async def entities(session: Session, arguments: Sequence[str]) -> int:
    """``getent [node]``: the users that steps run as."""
    for job in _own_running(session):
        if not _on_node(job, arguments):
            continue
        for step in sorted(job.steps, key=lambda step: _step_order(step.step_id)):
            session.output.write(f"JobId={job.job_id}.{_step_name(step.step_id)}:\nUser:\n{_passwd(job)}\nGroups:\n\n")
    return 0


def _passwd(job: Job) -> str:
    owner = job.credentials
    try:
        entry = pwd.getpwuid(owner.user_id)
    except KeyError:
        return f"{owner.user_name}:*:{owner.user_id}:{owner.group_id}::/:/bin/sh"
    return f"{entry.pw_name}:*:{entry.pw_uid}:{entry.pw_gid}:{entry.pw_gecos}:{entry.pw_dir}:{entry.pw_shell}"


# ---------------------------------------------------------------------------------------------- jobs


async def notify(session: Session, arguments: Sequence[str]) -> int:
    """``notify job text …``: a message to who holds the allocation (salloc, srun), else among the batch script's errors."""
    machine = session.controller.machine
    try:
        chosen = parse(arguments[0])
    except SlurmError:
        return session.say(f"Invalid job_id {arguments[0]}job notify failure: No error\n")
    if not chosen.job_id:
        return session.say(f"Invalid job_id {arguments[0]}job notify failure: No error\n")
    try:
        job = machine.select(chosen)[0]
        if not machine.may_change(session.call.caller, job):
            raise SlurmError(Errno.USER_ID_MISSING)
        if job.state.finished or job.allocation is None:
            raise SlurmError(Errno.ALREADY_DONE if job.state.finished else Errno.DISABLED)
    except SlurmError as error:
        return session.say(f"job notify failure: {error}\n")
    text = " ".join(arguments[1:])
    await session.controller.ask(job, job.allocation.nodes[:1], {"what": "notify", "text": text})
    return 0


async def top(session: Session, arguments: Sequence[str]) -> int:
    """``top job,…``: these come before the other waiting jobs of their user, in their partition, account and QOS. With
    SchedulerParameters=enable_user_top users may say so of their own jobs.

    Nobody else's jobs are overtaken: what one gains in priority the others lose, by their nice values.
    """
    machine, caller = session.controller.machine, session.call.caller
    users = "enable_user_top" in machine.site.scheduler_parameters
    given = scontrol_update.bare_ids(arguments[0])
    chosen: list[Job] = []
    try:
        for name in scontrol_update.split_ids(given):
            job = machine.select(parse(name))[0]
            if not caller.operator and not (users and job.credentials.user_id == caller.user_id):
                raise SlurmError(Errno.ACCESS_DENIED)
            if not job.pending:
                raise SlurmError(Errno.JOB_NOT_PENDING)
            if not job.priority:
                raise SlurmError(Errno.JOB_HELD)
            chosen.append(job)
    except SlurmError as error:
        return session.say(scontrol_update.error_line(given, error))
    code = 0
    for group in _alike(chosen):
        code = await _reorder(session, group) or code
    return code


def _alike(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs of one user, partition, account and QOS together, in the order of their names."""
    groups: dict[tuple[object, ...], list[Job]] = {}
    for job in jobs:
        groups.setdefault(_family(job), []).append(job)
    return list(groups.values())


def _family(job: Job) -> tuple[object, ...]:
    return job.credentials.user_id, job.partitions, job.account, job.qos


async def _reorder(session: Session, first: Sequence[Job]) -> int:
    """Give the named jobs the family's highest priorities, and put the others behind."""
    controller = session.controller
    family = [
        job
        for job in controller.machine.jobs.values()
        if job.pending and job.priority and _family(job) == _family(first[0]) and not job.request.priority
    ]
    wanted = _in_new_order(first, [job for job in family if job not in first])
    code = 0
    caller = replace(session.call.caller, operator=True)  # who may reorder may also raise one of the jobs
    for job_id, priority in wanted.items():
        job = controller.machine.jobs[job_id]
        if job.priority == priority:
            continue
        nice = (job.request.nice or 0) + job.priority - priority
        event = UpdateJob(controller.now(), caller, (JobSelection(job_id),), (("nice", nice),))
        for answer in await controller.apply(event):
            if isinstance(answer, Refused):
                code = session.say(scontrol_update.error_line(str(job_id), answer.error))
    return code


def _in_new_order(first: Sequence[Job], others: Sequence[Job]) -> dict[int, int]:
    """Priorities by number: those of ``first`` are the highest that any had, each below the one before; what they gain the
    others lose, as evenly as can be, and more where it takes that to be behind."""
    wanted: dict[int, int] = {}
    highest = sorted((job.priority for job in (*first, *others)), reverse=True)
    least, gained = highest[0] + 1, 0
    for job, priority in zip(first, highest, strict=False):
        least = max(1, min(priority, least - 1))
        wanted[job.job_id] = least
        gained += least - job.priority
    for left, job in zip(range(len(others), 0, -1), sorted(others, key=lambda job: job.job_id), strict=True):
        wanted[job.job_id] = max(1, min(job.priority - max(0, gained) // left, least - 1))
        gained -= job.priority - wanted[job.job_id]
    return wanted


# ---------------------------------------------------------------------------------------------- the cluster


def _unknown_nodes(session: Session, text: str) -> bool:
    try:
        return not set(expand(text)) <= session.controller.machine.nodes.keys()
    except GrammarError:
        return True


async def reboot(session: Session, arguments: Sequence[str]) -> int:
    """Refused: nodes are not slurmk's to reboot, so there is no RebootProgram."""
    nodes = []
    for word in arguments:
        key, equals, value = word.partition("=")
        if equals and key.lower() == "nextstate" and value.upper() not in ("DOWN", "RESUME"):
            return session.say(f"Invalid state: {value}\n Valid states: DOWN, RESUME\n")
        if not (equals and key.lower() in ("nextstate", "reason", "action")) and word.lower() not in ("asap", "force"):
            nodes.append(word)
    if len(nodes) > 1:
        return session.say("Multiple node lists specified\n")
    if not nodes:
        return session.say("Missing node list. Specify ALL|<NodeList>")
    return session.say("scontrol: error: RebootProgram isn't defined\nscontrol_reboot_nodes error:Unspecified error\n")


async def cancel_reboot(session: Session, arguments: Sequence[str]) -> int:
    """No node is ever about to be rebooted."""
    if not arguments:
        return session.say("missing argument for keyword:cancel_reboot\n")
    number = Errno.INVALID_NODE_NAME if _unknown_nodes(session, arguments[0]) else Errno.INVALID_NODE_STATE_TRANSITION
    return session.say(f"slurm_update error: {SlurmError(number)}\n")


async def power(session: Session, arguments: Sequence[str]) -> int:
    """Nodes are not powered up or down here."""
    if arguments[0].lower() not in ("up", "down"):
        return session.say(f"unexpected argument: '{arguments[0]}'\n")
    return session.say("scontrol_power_nodes error:Invalid power action\n")


async def cluster(session: Session, arguments: Sequence[str]) -> int:
    """There is one cluster, and it is this one."""
    name = arguments[0] if arguments else ""
    if name in ("", session.controller.machine.site.cluster_name):
        return 0
    hint = "Use 'sacctmgr list clusters' to see available clusters."
    return session.say(
        f"scontrol: error: No cluster '{name}' known by database.\n"
        f"scontrol: error: '{name}' can't be reached now, or it is an invalid entry for --cluster.  {hint}\n"
        "scontrol: fatal: Could not get cluster information\n"
    )


async def takeover(session: Session, arguments: Sequence[str]) -> int:
    """There are no backup controllers to name."""
    if len(arguments) > 1:
        return session.say("takeover: too many arguments\n")
    match = re.match(r"[0-9]{1,9}", arguments[0]) if arguments else None
    return session.say(f"takeover: invalid backup controller index ({int(match[0]) if match else 0 if arguments else 1})\n")


TOKEN_OPTIONS = ("lifespan", "username")
WITHOUT_TOKENS = "slurm_fetch_token: error with request: "


async def token(session: Session, arguments: Sequence[str]) -> int:
    """Refused while the site has no auth/jwt (AuthAltTypes), as by Slurm's controller."""
    for word in arguments:
        key, equals, value = word.partition("=")
        if key.lower() not in TOKEN_OPTIONS or not equals:
            return session.say(f"Invalid option: `{word}`\n")
        if key.lower() == "lifespan" and value != "infinite" and not (value.isascii() and value.isdigit()):
            return session.say(f'scontrol: error: Invalid numeric value "{value}" for lifespan.\n')
    return session.say(f"scontrol: error: {WITHOUT_TOKENS}{SlurmError(Errno.DISABLED)}\n")


async def set_debug(session: Session, arguments: Sequence[str]) -> int:
    """``setdebug level``: how much the controller writes to its log, until its configuration is read again."""
    if any(not word.lower().startswith("nodes=") for word in arguments[1:]):
        return session.say(f"Invalid option: {arguments[0]}\n")
    level = level_name(arguments[0])
    if not level:
        return session.say(f"invalid debug level: {arguments[0]}\n")
    return await _debugged(session, SetDebug(session.controller.now(), session.call.caller, level), "slurm_set_debug_level")


async def set_debug_flags(session: Session, arguments: Sequence[str]) -> int:
    """``setdebugflags {+|-}NAME …``: what else the controller writes to its log (``slurmk.daemon.logs`` has those of which
    there is something to say)."""
    known = {name.lower() for name in DEBUG_FLAGS}
    found: dict[str, list[str]] = {"+": [], "-": []}
    for word in arguments:
        if word.lower().startswith("nodes="):
            continue
        if word[:1] not in found:
            session.say(f"invalid debug flag: {word}\n")
            return session.say("Usage: setdebugflags {+|-}NAME [{+|-}NAME] [nodes=<NODES>]\n")
        flags = word[1:].split(",")
        unknown = [flag for flag in flags if flag.lower() not in known]
        if unknown:
            return session.say(f"scontrol: error: Invalid DebugFlag: {unknown[0]}\ninvalid debug flag: {word}\n")
        found[word[0]] += flags
    event = SetDebug(session.controller.now(), session.call.caller, "", tuple(found["+"]), tuple(found["-"]))
    return await _debugged(session, event, "slurm_set_debug_flags")


async def _debugged(session: Session, event: SetDebug, what: str) -> int:
    for answer in await session.controller.apply(event):
        if isinstance(answer, Refused):
            return session.say(f"{what} error:{os.strerror(errno.EACCES)}\n")
    return 0


async def schedule_log_level(session: Session, arguments: Sequence[str]) -> int:
    """There is no log of the scheduler's own to be switched on or off."""
    if arguments[0].lower() not in ("0", "1", "disable", "enable"):
        return session.say(f"invalid schedlog level: {arguments[0]}\n")
    return session.say(f"slurm_set_schedlog_level error:{SlurmError(Errno.DISABLED)}\n")


async def dampening_factor(session: Session, arguments: Sequence[str]) -> int:
    """Fair share is not dampened here, which is the factor 1."""
    word = arguments[0]
    if not (word.isascii() and word.isdigit() and 1 <= int(word[:6]) < 0xFFFF):
        return session.say(f"invalid dampening factor: {word}\n")
    return 0 if int(word) == 1 else session.say(f"slurm_set_fs_dampeningfactor: {SlurmError(Errno.NOT_SUPPORTED)}\n")
