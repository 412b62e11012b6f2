"""sbatch: submit a script (sbatch(1))."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from bridge.launcher import JobFiles
from grammar.hostlist import compress
from grammar.options import OptionError
from grammar.script import ScriptDirectives, ScriptError, check_script, read_script, wrapped
from grammar.times import format_time
from slurmk.commands.awaited import take_up
from slurmk.commands.burst_buffer_files import read_burst_buffer_file, with_directives
from slurmk.commands.call import VERSION_TEXT, Call, Controller, Output, Unreadable
from slurmk.commands.node_files import read_node_files
from slurmk.commands.option_help import completions, help_text, usage_text
from slurmk.commands.submission import (
    Checked,
    Options,
    absolute,
    check_cluster,
    check_gres_help,
    check_values,
    credentials_of,
    exported,
    option_variables,
    parse_components,
    propagated,
    read_export_file,
    read_layers,
    request_of,
    unclosed_export,
    verbose_lines,
)
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import Submission, Submit
from slurmk.core.submission import largest_script
from slurmk.model.job import Job
from slurmk.model.site import Site
from slurmk.model.states import JobFlag
from slurmk.planner.build import demand_of
from slurmk.planner.snapshot import Outlook

NAME = "sbatch"

LARGEST_EXPORT_FILE = 16 * 1024 * 1024

MANY_LINES = 2000
"""Scripts with more directives than this are read in a thread, so that nobody else waits for it."""

GRES_ERRORS = frozenset((Errno.INVALID_GRES, Errno.INVALID_GRES_TYPE))
"""Errors that sbatch finds itself, before it asks the controller: they are printed without what was tried."""


@dataclass(frozen=True, slots=True)
class _Script:
    """What is submitted: its bytes, its path for ``Command=``, the default name of the job, and its arguments."""

    content: bytes
    path: str
    name: str
    arguments: tuple[str, ...]


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Submit; prints ``Submitted batch job N``. Gives the exit code."""
    try:
        return await _run(call, controller, output)
    except ScriptError as error:
        word = "fatal" if error.fatal else "error"
        before = f"{error.getopt}\n" if error.getopt else ""
        output.error(before + "".join(f"{NAME}: {word}: {line}\n" for line in error.lines))
        return exit_error(call.environment) if error.code == 1 and not error.fatal else error.code
    except OptionError as error:
        output.write(error.output)
        output.error("".join(f"{line}\n" for line in error.lines))
        return exit_error(call.environment) if error.settable else error.code


async def _run(call: Call, controller: Controller, output: Output) -> int:
    if call.awaited:
        return await _wait_again(call, controller, output)
    given, operands = parse_components(NAME, call.arguments)
    first = Options()
    for one in (one for component in given for one in component if one.name in EARLY):
        first.values[one.name] = one.value
    answer = _early(first.values)
    if answer is not None:
        output.write(answer)
        return 0
    now = controller.now()
    check_values(NAME, given, now)
    wrap = cast("str | None", first.get("wrap"))
    largest = largest_script(controller.machine.site)
    script = await _script(call, output, wrap, operands, largest + 1)
    if len(script.content) > largest:
        raise ScriptError(f"Batch job submission failed: {SlurmError(Errno.PATHNAME_TOO_LONG)}")
    directives = await _directives(script, operands, call, first, wrapped=wrap is not None)
    quiet = any(one.name == "quiet" for component in given for one in component)
    if directives is not None and directives.warnings and not quiet:
        output.error("".join(f"{NAME}: warning: {line}\n" for line in directives.warnings))
    told = await _layers(call, given, now, directives)
    lead = told[0]
    if lead.get("verbose"):
        output.error("".join(f"{line}\n" for options in told for line in verbose_lines(NAME, options)))
    unknown = check_cluster(NAME, lead, controller.machine.site.cluster_name)
    output.error("".join(f"{NAME}: error: {line}\n" for line in unknown))
    check_gres_help(lead, controller.machine.site)
    submissions, files = await _prepare(call, output, told, script, controller.machine.site, quiet=quiet)
    event = Submit(now, call.caller, submissions)
    if lead.get("test_only"):
        named = bool(lead.get("clusters"))
        return await tell_outlook(NAME, controller, output, event, call.environment, quiet=quiet, named=named)
    answers = await controller.apply(event, files)
    for refused in answers:
        if isinstance(refused, Refused):
            return _refused(output, refused, call.environment)
    accepted = next(answer for answer in answers if isinstance(answer, Accepted))
    if lead.get("wait"):
        output.await_jobs(accepted.job_ids[:1])
    _report(output, accepted, lead, controller.machine.site.cluster_name)
    if lead.get("wait"):
        await output.drain()
        return await _wait(controller, accepted.job_ids[0])
    return 0


EARLY = frozenset(("help", "usage", "version", "autocomplete", "wrap", "ignore-pbs"))


def _early(values: Mapping[str, object]) -> str | None:
    """What is answered without submitting anything."""
    if "help" in values:
        return help_text(NAME)
    if "usage" in values:
        return usage_text(NAME)
    if "version" in values:
        return f"{VERSION_TEXT}\n"
    prefix = values.get("autocomplete")
    return completions(NAME, prefix) if isinstance(prefix, str) else None


# ------------------------------------------------------------------------------------------------- the script


async def _script(call: Call, output: Output, wrap: str | None, operands: Sequence[str], most: int) -> _Script:
    if wrap is not None:
        if operands:
            raise ScriptError("Script arguments not permitted with --wrap option")
        return _Script(wrapped(wrap), "", "wrap", ())
    if not operands:
        return _Script(await _input(output, most), "", NAME, ())
    name, *arguments = operands
    content, path = await _file(call, output, name, most)
    return _Script(content, path if "/" in name else absolute(path, call.directory), name.rpartition("/")[2], tuple(arguments))


async def _input(output: Output, most: int) -> bytes:
    try:
        return await output.read_input(most)
    except Unreadable:
        return b""


async def _file(call: Call, output: Output, name: str, most: int) -> tuple[bytes, str]:
    """The script's bytes and where it was found: as named, else on the caller's PATH."""
    paths = [name]
    if "/" not in name:
        paths += [f"{folder}/{name}" for folder in call.environment.get("PATH", "").split(":")[:256] if folder]
    for path in paths:
        try:
            return await output.read(path, most), path
        except Unreadable as error:
            if error.errno == IS_A_DIRECTORY and path == name:
                return b"", path
            if error.errno != NO_SUCH_FILE:
                break
    raise ScriptError(f"Unable to open file {name}")


NO_SUCH_FILE, IS_A_DIRECTORY = 2, 21


async def _directives(
    script: _Script, operands: Sequence[str], call: Call, options: Options, *, wrapped: bool
) -> ScriptDirectives | None:
    """What the script asks for; a wrapped command has nothing to ask. Raises ScriptError."""
    if wrapped:
        return None
    check_script(script.content)
    name = operands[0].rpartition("/")[2] if operands else "stdin"
    foreign = "ignore-pbs" not in options.values and not _ignores_foreign(call.environment)
    if script.content.count(b"\n") > MANY_LINES:
        return await asyncio.to_thread(read_script, script.content, name, foreign=foreign)
    return read_script(script.content, name, foreign=foreign)


def _ignores_foreign(environment: Mapping[str, str]) -> bool:
    value = environment.get("SBATCH_IGNORE_PBS")
    return value is not None and value in ("", "yes", "1")


async def _layers(
    call: Call, given: Sequence[Sequence[object]], now: float, directives: ScriptDirectives | None
) -> list[Options]:
    arguments = (NAME, call.environment, given, now, directives)
    many = directives is not None and sum(map(len, directives.components)) > MANY_LINES
    if many:
        return await asyncio.to_thread(read_layers, *arguments)  # type: ignore[arg-type]
    return read_layers(*arguments)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- the submission


async def _prepare(
    call: Call, output: Output, told: Sequence[Options], script: _Script, site: Site, *, quiet: bool
) -> tuple[tuple[Submission, ...], tuple[JobFiles, ...]]:
    """The submissions of all components, and their files."""
    export_file = await _export_file(output, told[0])
    submit_line = " ".join((NAME, *call.arguments))
    if any(options.get("hold") for options in told):
        for options in told:
            options.values["hold"] = True
    unclosed = None if export_file is not None else unclosed_export(told[0].get("export"))
    if unclosed is not None:
        output.error(f"{NAME}: error: Improperly formed environment variable ({unclosed})\n")
    submissions, files = [], []
    for options in told:
        await read_node_files(NAME, options, call.environment, output)
        options.values.setdefault("name", script.name)
        checked = request_of(NAME, options, call)
        if checked.warnings and not quiet:
            output.error("".join(f"{line}\n" for line in checked.warnings))
        content = with_directives(script.content, await read_burst_buffer_file(NAME, options, output))
        submissions.append(
            Submission(
                request=checked.request,
                credentials=credentials_of(NAME, options, call),
                batch=True,
                command=script.path,
                submit_line=submit_line,
                submit_host=call.host,
                session_id=call.session_id,
                umask=_umask(call),
                limits=propagated(call.limits, checked.request.propagate, site),
                script_size=len(content),
            )
        )
        files.append(_files(call, options, checked, replace(script, content=content), export_file))
    return tuple(submissions), tuple(files)


_OCTAL = re.compile(r"\s*([0-7]*)", re.ASCII)


def _umask(call: Call) -> int:
    """The job's umask: SLURM_UMASK, as far as it is octal, else the caller's."""
    text = call.environment.get("SLURM_UMASK")
    match = _OCTAL.match(text) if text is not None else None
    return call.umask if match is None else int(match[1] or "0", 8) & 0o777


async def _export_file(output: Output, options: Options) -> Mapping[str, str] | None:
    path = options.get("export_file")
    if path is None:
        return None
    number = int(path) if path.isascii() and path.isdigit() and len(path) < 10 else 0
    try:
        return read_export_file(await output.read(f"/dev/fd/{number}" if number > 2 else path, LARGEST_EXPORT_FILE))
    except Unreadable as error:
        if error.errno == IS_A_DIRECTORY:
            output.error(f"{NAME}: error: read(environment_file): {error.text}\n")
            return {}
        raise OptionError(f"{NAME}: error: Could not open user environment file {path}", code=1) from None


def _files(call: Call, options: Options, checked: Checked, script: _Script, export_file: Mapping[str, str] | None) -> JobFiles:
    request = checked.request
    environment = exported(call.environment, request.export if export_file is None else "NIL") | dict(export_file or {})
    environment.pop("SLURM_UMASK", None)
    environment.update(option_variables(request, options))
    environment["SLURM_SUBMIT_DIR"] = call.directory
    environment["SLURM_SUBMIT_HOST"] = call.host
    environment["SLURM_JOB_NAME"] = request.name or ""
    environment["SLURM_PRIO_PROCESS"] = str(call.nice)
    return JobFiles(
        script=script.content,
        arguments=tuple(map(as_bytes, script.arguments)),
        environment={as_bytes(name): as_bytes(value) for name, value in environment.items()},
        secret=b"",
    )


def as_bytes(text: str) -> bytes:
    """Text of a call as the bytes it came from."""
    return text.encode("utf-8", "surrogateescape")


def _report(output: Output, accepted: Accepted, options: Options, cluster: str) -> None:
    job_id = accepted.job_ids[0]
    named = options.get("clusters")
    if options.get("quiet"):
        return
    output.error("".join(f"{NAME}: {notice}\n" for notice in accepted.notices))
    if options.get("parsable"):
        output.write(f"{job_id};{cluster}\n" if named else f"{job_id}\n")
    else:
        output.write(f"Submitted batch job {job_id} on cluster {cluster}\n" if named else f"Submitted batch job {job_id}\n")


def _refused(output: Output, refused: Refused, environment: Mapping[str, str]) -> int:
    output.error("".join(f"{NAME}: error: {notice}\n" for notice in refused.notices))
    if refused.error.errno in GRES_ERRORS:
        output.error(f"{NAME}: error: {refused.error}\n")
    else:
        output.error(f"{NAME}: error: Batch job submission failed: {refused.error}\n")
    return exit_error(environment)


EXIT_ERROR, EXIT_IMMEDIATE = "SLURM_EXIT_ERROR", "SLURM_EXIT_IMMEDIATE"


def exit_error(environment: Mapping[str, str]) -> int:
    """The exit code of a refusal, which SLURM_EXIT_ERROR may set."""
    return exit_code_of(environment, EXIT_ERROR)


def exit_code_of(environment: Mapping[str, str], variable: str) -> int:
    """The exit code that a variable sets; 1 without it."""
    text = environment.get(variable, "")
    return int(text) & 0xFF if text.isascii() and text.isdigit() and len(text) < 10 else 1


# ------------------------------------------------------------------------------------------------- --test-only, --wait


async def tell_outlook(
    command: str,
    controller: Controller,
    output: Output,
    event: Submit,
    environment: Mapping[str, str],
    *,
    quiet: bool,
    named: bool,
    job_id: int | None = None,
) -> int:
    """When and where the job would start, on standard error; nothing is submitted. ``named``: on a cluster that was named;
    ``job_id``: that of a job that there is."""
    refused = "allocation failure"
    planned: list[tuple[Submit, Outlook]] = []
    for submission in event.submissions:
        alone = replace(event, submissions=(_within_limits(controller, submission),))
        outlook = await controller.plan_for(alone)
        if isinstance(outlook, Refused):
            notices = () if outlook.error.errno is Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE else outlook.notices
            output.error("".join(f"{command}: error: {notice}\n" for notice in notices))
            output.error(f"{refused}: {outlook.error}\n")
            return exit_error(environment)
        if outlook.start_time is None:
            output.error(f"{refused}: {SlurmError(Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE)}\n")
            return exit_error(environment)
        planned.append((alone, outlook))
    if quiet:
        return 0
    if command == NAME and len(planned) > 1:
        output.error(_het_line(controller, planned))
    else:
        number = job_id or controller.machine.next_job_id
        lines = (test_only_line(command, controller, alone, each, number, named=named) for alone, each in planned)
        output.error("".join(lines))
    return 0


def _within_limits(controller: Controller, submission: Submission) -> Submission:
    """A job beyond the time limits of its partitions is looked at as if it asked for no more than the longest of them."""
    request, machine = submission.request, controller.machine
    names = (
        request.partition.split(",")
        if request.partition
        else [machine.site.default_partition.name if machine.site.default_partition else ""]
    )
    most = max((machine.partitions[name].maximum_time for name in names if name in machine.partitions), default=None)
    if (
        most is None
        or request.time_limit is None
        or 0 < request.time_limit <= most
        or machine.site.enforce_partition_limits != "NO"
    ):
        return submission
    return replace(submission, request=replace(request, time_limit=most))


def _het_line(controller: Controller, planned: Sequence[tuple[Submit, Outlook]]) -> str:
    """All components of a het job in one line: the last of their starts, all their processors and nodes."""
    start = max(outlook.start_time or 0 for _, outlook in planned)
    processors = sum(_processors(controller, alone, outlook) for alone, outlook in planned)
    nodes = dict.fromkeys(name for _, outlook in planned for name in outlook.nodes)
    return (
        f"{NAME}: Job {controller.machine.next_job_id} to start at {format_time(start)} using {processors} processors "
        f"on {compress(nodes)}\n"
    )


def _processors(controller: Controller, event: Submit, outlook: Outlook) -> int:
    machine = controller.machine
    partition = machine.partitions.get(outlook.partition)
    if partition is None:
        return len(outlook.nodes)
    demand = demand_of(event.submissions[0].request, partition, machine.site, user_id=event.caller.user_id)
    if demand.whole_nodes:
        return sum(machine.nodes[name].cpus for name in outlook.nodes)
    return max(demand.tasks * demand.cpus_per_task, demand.minimum_cpus, len(outlook.nodes))


def test_only_line(command: str, controller: Controller, event: Submit, outlook: Outlook, number: int, *, named: bool) -> str:
    """``Job N to start at …``; the job number is its own or the one that it would get."""
    machine = controller.machine
    assert outlook.start_time is not None
    where = f" on cluster {machine.site.cluster_name}" if named else ""
    return (
        f"{command}: Job {number} to start at {format_time(outlook.start_time)}{where} a using "
        f"{_processors(controller, event, outlook)} processors on nodes {compress(outlook.nodes)} "
        f"in partition {outlook.partition}\n"
    )


async def _wait_again(call: Call, controller: Controller, output: Output) -> int:
    """--wait of a caller whose connection an earlier controller took with it. Raises OptionError."""
    (job_id, *_) = take_up(call, controller)
    if not _jobs_of(controller, job_id):
        output.error(f"{NAME}: error: Job {job_id} ended too long ago to tell its exit code\n")
        return 1
    return await _wait(controller, job_id)


async def _wait(controller: Controller, job_id: int) -> int:
    """Wait until the job, or every element of the array, is over. Gives the highest exit code; 1 for one that was killed."""
    highest = 0
    over: set[int] = set()
    while True:
        jobs = _jobs_of(controller, job_id)
        for job in jobs:
            if _is_over(job) and job.job_id not in over and not job.is_array:
                over.add(job.job_id)
                highest = max(highest, exit_code(job))
        waiting = [job for job in jobs if not _is_over(job)]
        if not waiting:
            return highest
        await controller.job_changed(waiting[0].job_id)


def _is_over(job: Job) -> bool:
    """What its script came to is known when all of its processes are gone."""
    return job.state.finished and not job.flags & JobFlag.COMPLETING


def _jobs_of(controller: Controller, job_id: int) -> tuple[Job, ...]:
    machine = controller.machine
    found = machine.jobs_of_array(job_id)
    if found:
        return found
    job = machine.jobs.get(job_id)
    return (job,) if job is not None else ()


def exit_code(job: Job) -> int:
    """What the shell learns of a job's end: its script's exit code, 1 when a signal ended it; 0 of one that never ran."""
    return 1 if job.exit_code & 0x7F else job.exit_code >> 8 & 0xFF
