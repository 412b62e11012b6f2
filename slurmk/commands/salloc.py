"""salloc: make an allocation and keep it for as long as a command of the caller's runs (salloc(1)).

The controller makes the allocation and waits for its nodes. The command runs where salloc was typed, as a child of
salloc's local part (``slurmk.stepd.salloc``), which the caller's process becomes once the nodes are there.
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.launcher import JobFiles
from grammar.hostlist import compress
from grammar.options import OptionError
from slurmk.commands.allocation_environment import allocation_environment
from slurmk.commands.awaited import AT_ONCE, Unsaid, give_up, not_at_once, pending_notices, take_up, waits_for_others
from slurmk.commands.burst_buffer_files import show_burst_buffer_file
from slurmk.commands.call import VERSION_TEXT, Call, Controller, Output, Unreadable
from slurmk.commands.node_files import read_node_files
from slurmk.commands.option_help import completions, help_text, usage_text
from slurmk.commands.sbatch import EXIT_ERROR, EXIT_IMMEDIATE, GRES_ERRORS, as_bytes, exit_code_of, exit_error
from slurmk.commands.srun import local_part
from slurmk.commands.submission import (
    Options,
    absolute,
    check_cluster,
    check_display,
    check_gres_help,
    credentials_of,
    option_variables,
    parse_components,
    read_layers,
    request_of,
    verbose_lines,
)
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import JobSelection, Kill, Submission, Submit
from slurmk.core.prologs import is_prolog_failure
from slurmk.model.job import Job, JobRequest
from slurmk.model.site import Site
from slurmk.model.states import JobFlag, JobState, Reason

NAME = "salloc"

JOB_NAME, JOB_NAME_WITHOUT_COMMAND = "interactive", "no-shell"

BELL_AFTER = 10.0
"""Seconds of waiting after which the terminal's bell rings when the nodes are there."""

GONE = frozenset((2, 20))
"""errno of a directory that is not there: ENOENT, ENOTDIR."""


@dataclass(frozen=True, slots=True)
class _Component:
    """One component of the allocation: what it was told and what came of that."""

    options: Options
    request: JobRequest


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What is needed while the nodes are awaited."""

    call: Call
    controller: Controller
    output: Output
    options: Options
    job_ids: tuple[int, ...]

    @property
    def job_id(self) -> int:
        return self.job_ids[0]

    def tell(self, text: str, *, error: bool = False) -> None:
        """A line on standard error; those that are no errors not with --quiet."""
        if error:
            self.output.error(f"{NAME}: error: {text}\n")
        elif not self.options.get("quiet"):
            self.output.error(f"{NAME}: {text}\n")


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Make an allocation; gives the exit code when there is no command to run."""
    try:
        return await _run(call, controller, output)
    except OptionError as error:
        output.write(error.output)
        output.error("".join(f"{line}\n" for line in error.lines))
        return exit_error(call.environment) if error.code == 1 else error.code


async def _run(call: Call, controller: Controller, caller: Output) -> int:
    awaited = take_up(call, controller)
    output = Unsaid(caller) if awaited else caller
    given, operands = parse_components(NAME, call.arguments)
    if (answer := _early({one.name: one.value for component in given for one in component})) is not None:
        output.write(answer)
        return 0
    told = read_layers(NAME, call.environment, given, controller.now())
    lead = told[0]
    if lead.get("verbose"):
        output.error("".join(f"{line}\n" for options in told for line in verbose_lines(NAME, options)))
    check_display(NAME, lead, call.environment)
    directory = await _directory(call, output, lead)
    unknown = check_cluster(NAME, lead, controller.machine.site.cluster_name)
    output.error("".join(f"{NAME}: error: {line}\n" for line in unknown))
    check_gres_help(lead, controller.machine.site)
    command = _command(call, controller.machine.site, operands)
    components = await _components(call, output, told)
    accepted = Accepted(awaited) if awaited else await _submit(call, controller, output, components, command)
    if accepted is None:
        return exit_error(call.environment)
    waiting = _Waiting(call, controller, caller, lead, accepted.job_ids)
    if not awaited:
        _tell_submitted(waiting, accepted)
    caller.await_jobs(accepted.job_ids)
    try:
        code = await _wait_for_nodes(waiting)
    except BaseException:
        await asyncio.shield(give_up(call, controller, waiting.job_id))
        raise
    if code is not None:
        return code
    _tell_granted(waiting)
    if not lead.get("no_shell"):
        _execute(waiting, components, command, directory)
    return 0


def _early(values: Mapping[str, str | None]) -> str | None:
    """What is answered without making an allocation."""
    if "help" in values:
        return help_text(NAME)
    if "usage" in values:
        return usage_text(NAME)
    if "version" in values:
        return f"{VERSION_TEXT}\n"
    prefix = values.get("autocomplete")
    return completions(NAME, prefix) if prefix is not None else None


# ------------------------------------------------------------------------------------------------- what is asked


async def _directory(call: Call, output: Output, options: Options) -> str:
    """Where the command shall run. One that is not there is refused before anything is submitted. Raises OptionError."""
    named = options.get("current_working_directory")
    if not named:
        return call.directory
    path = absolute(named, call.directory)
    try:
        await output.read(f"{path}/.", 1)
    except Unreadable as error:
        if error.errno in GONE:
            raise OptionError(f"{NAME}: error: chdir({path}): {os.strerror(error.errno)}", code=1) from None
    return path


def _command(call: Call, site: Site, operands: Sequence[str]) -> tuple[str, ...]:
    """The program to run: the one named, else what the site starts shells with, else the user's login shell."""
    if operands:
        return tuple(operands)
    try:
        shell = pwd.getpwuid(call.caller.user_id).pw_shell
    except KeyError:
        shell = call.environment.get("SHELL", "")
    shell = shell or "/bin/sh"
    words = (site.parameters.get("LaunchParameters") or "").replace(" ", "").split(",")
    if "use_interactive_step" not in words:
        return (shell,)
    options = site.parameters.get("InteractiveStepOptions") or "--interactive --preserve-env --pty $SHELL"
    return ("srun", *(shell if word == "$SHELL" else word for word in shlex.split(options)))


async def _components(call: Call, output: Output, told: Sequence[Options]) -> list[_Component]:
    """The requests of all components. Raises OptionError."""
    components = []
    for options in told:
        await read_node_files(NAME, options, call.environment, output)
        await show_burst_buffer_file(NAME, options, output)
        name = JOB_NAME_WITHOUT_COMMAND if options.get("no_shell") else JOB_NAME
        options.values.setdefault("name", name)
        checked = request_of(NAME, options, call)
        if not options.get("quiet"):
            output.error("".join(f"{line}\n" for line in checked.warnings))
        components.append(_Component(options, checked.request))
    return components


async def _submit(
    call: Call, controller: Controller, output: Output, components: Sequence[_Component], command: Sequence[str]
) -> Accepted | None:
    """Submit; None when it was refused, which the caller has been told."""
    submissions = tuple(_submission(call, component, command) for component in components)
    files = tuple(_files(call, component) for component in components)
    answers = await controller.apply(Submit(controller.now(), call.caller, submissions), files)
    for answer in answers:
        if isinstance(answer, Refused):
            output.error("".join(f"{NAME}: error: {notice}\n" for notice in answer.notices))
            before = "" if answer.error.errno in GRES_ERRORS else "Job submit/allocate failed: "
            output.error(f"{NAME}: error: {before}{answer.error}\n")
            return None
    return next(answer for answer in answers if isinstance(answer, Accepted))


def _submission(call: Call, component: _Component, command: Sequence[str]) -> Submission:
    return Submission(
        request=component.request,
        credentials=credentials_of(NAME, component.options, call),
        batch=False,
        command="" if component.options.get("no_shell") else command[0],
        submit_line=" ".join((NAME, *call.arguments)),
        submit_host=call.host,
        session_id=call.session_id,
        umask=call.umask,
        immediate=bool(component.options.get("immediate")),
    )


def _files(call: Call, component: _Component) -> JobFiles:
    """The environment that processes of the allocation which nobody gives another start from."""
    environment = dict(call.environment) | option_variables(component.request, component.options)
    environment |= {
        "SLURM_SUBMIT_DIR": call.directory,
        "SLURM_SUBMIT_HOST": call.host,
        "SLURM_JOB_NAME": component.request.name or "",
    }
    encoded = {as_bytes(name): as_bytes(value) for name, value in environment.items()}
    return JobFiles(script=b"", arguments=(), environment=encoded, secret=b"")


def _tell_submitted(waiting: _Waiting, accepted: Accepted) -> None:
    if waiting.options.get("verbose"):
        waiting.tell(f"JobId={waiting.job_id} returned by the controller")
    for notice in accepted.notices:
        waiting.tell(notice)


# ------------------------------------------------------------------------------------------------- the wait


async def _wait_for_nodes(waiting: _Waiting) -> int | None:
    """Wait until all components run on nodes that are ready; else the exit code, and the caller has been told."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    patience = waiting.options.get("immediate")
    told = bool(waiting.call.awaited)
    signalled = asyncio.ensure_future(waiting.output.signalled())
    try:
        while True:
            jobs = [waiting.controller.machine.jobs.get(job_id) for job_id in waiting.job_ids]
            if any(job is None or job.state.finished for job in jobs):
                return _ended(waiting, jobs)
            present = [job for job in jobs if job is not None]
            if all(_ready(job) for job in present):
                _tell_waited(waiting, told, loop.time() - began)
                return None
            waited = loop.time() - began
            at_once = patience is not None and patience <= 1
            if at_once and (waited >= AT_ONCE or waits_for_others(present)):
                return await _not_at_once(waiting, present)
            if not told and not at_once and (waited >= AT_ONCE or waits_for_others(present)):
                told = True
                await _tell_pending(waiting, present)
            if patience is not None and waited >= patience and not at_once:
                waiting.tell("Unable to allocate resources: Connection timed out", error=True)
                return await _give_up(waiting, EXIT_IMMEDIATE)
            if signalled.done():
                waiting.tell("Job aborted due to signal")
                return await _give_up(waiting, "")
            until = [at - waited for at in (AT_ONCE if not told else None, patience) if at is not None and at > waited]
            await _something(waiting, present, signalled, min(until, default=None))
    finally:
        signalled.cancel()


def _ready(job: Job) -> bool:
    """Whether it runs, and no prolog has to run before (PrologFlags=Alloc)."""
    running = job.allocation is not None and job.state is JobState.RUNNING and not job.flags & JobFlag.CONFIGURING
    return running and job.reason is not Reason.PROLOG


async def _something(waiting: _Waiting, jobs: Sequence[Job], signalled: asyncio.Future[int], seconds: float | None) -> None:
    """Wait until the first job that is not ready changes, a signal comes, or the time is over."""
    late = next(job for job in jobs if not _ready(job))
    changed = asyncio.ensure_future(waiting.controller.job_changed(late.job_id))
    either: set[asyncio.Future[Any]] = {changed, signalled}
    await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    changed.cancel()


async def _tell_pending(waiting: _Waiting, jobs: Sequence[Job]) -> None:
    for notice in pending_notices(jobs):
        waiting.tell(notice)
    waiting.tell(f"Pending job allocation {waiting.job_id}")
    waiting.tell(f"job {waiting.job_id} queued and waiting for resources")
    await waiting.output.drain()


def _tell_waited(waiting: _Waiting, told: bool, seconds: float) -> None:
    if told:
        waiting.tell(f"job {waiting.job_id} has been allocated resources")
    bell = waiting.options.get("bell")
    if "1" in waiting.call.terminals and (bell or (bell is None and seconds >= BELL_AFTER)):
        waiting.output.write("\a")


def _ended(waiting: _Waiting, jobs: Sequence[Job | None]) -> int:
    """The job is over before it began."""
    failed = next((job for job in jobs if job is not None and is_prolog_failure(job.system_comment)), None)
    if failed is not None:
        waiting.tell(f"Granted job allocation {waiting.job_id}")
        waiting.tell(failed.system_comment)
        waiting.tell(f"Job allocation {waiting.job_id} has been revoked.")
        waiting.tell(f"Job allocation {waiting.job_id} has been revoked", error=True)
        return exit_error(waiting.call.environment)
    waiting.tell(f"Job allocation {waiting.job_id} has been revoked.")
    if any(job is not None and job.state is JobState.CANCELLED for job in jobs):
        waiting.tell("Job has been cancelled")
    waiting.tell(f"Job submit/allocate failed: {SlurmError(Errno.ALREADY_DONE)}", error=True)
    return exit_error(waiting.call.environment)


async def _not_at_once(waiting: _Waiting, jobs: Sequence[Job]) -> int:
    """--immediate without time, and the nodes are not there."""
    errno = not_at_once(jobs)
    busy = errno is Errno.NODES_BUSY
    waiting.tell(f"{'Unable to allocate resources' if busy else 'Job submit/allocate failed'}: {SlurmError(errno)}", error=True)
    return await _give_up(waiting, EXIT_IMMEDIATE if busy else "")


async def _give_up(waiting: _Waiting, variable: str) -> int:
    """Cancel what was asked for; the exit code, which that variable or SLURM_EXIT_ERROR may set."""
    await _cancel(waiting)
    waiting.tell(f"Job allocation {waiting.job_id} has been revoked.")
    return exit_code_of(waiting.call.environment, variable or EXIT_ERROR)


async def _cancel(waiting: _Waiting) -> None:
    controller = waiting.controller
    await controller.apply(Kill(controller.now(), waiting.call.caller, (JobSelection(waiting.job_id),)))


# ------------------------------------------------------------------------------------------------- the allocation


def _tell_granted(waiting: _Waiting) -> None:
    waiting.tell(f"Granted job allocation {waiting.job_id}")
    site = waiting.controller.machine.site
    if site.prolog and "Alloc" in site.prolog_flags:
        waiting.tell("Waiting for resource configuration")
    for job in _jobs(waiting):
        assert job.allocation is not None
        waiting.tell(f"Nodes {compress(job.allocation.nodes)} are ready for job")


def _jobs(waiting: _Waiting) -> list[Job]:
    return [waiting.controller.machine.jobs[job_id] for job_id in waiting.job_ids]


def _execute(waiting: _Waiting, components: Sequence[_Component], command: Sequence[str], directory: str) -> None:
    """Have the caller's process become salloc's local part, which runs the command and keeps the allocation."""
    jobs = _jobs(waiting)
    access = waiting.controller.access(jobs[0])
    *program, _ = local_part(waiting.call, access)
    environment = dict(waiting.call.environment)
    environment |= allocation_environment(
        [(job, component.request, component.options) for job, component in zip(jobs, components, strict=True)],
        waiting.controller.machine.site,
        directory=waiting.call.directory,
        host=waiting.call.host,
    )
    environment |= {name: access[name] for name in ("SLURMK_STEP_MANAGER", "SLURMK_JOB_SECRET")}
    settings: dict[str, Any] = {
        "job": waiting.job_id,
        "directory": directory,
        "quiet": bool(waiting.options.get("quiet")),
        "verbose": int(waiting.options.get("verbose") or 0),
        "kill": waiting.options.get("kill_command"),
    }
    waiting.output.execute([*program, NAME, json.dumps(settings), *command], environment)
