"""srun: run tasks, as a step of the job it is called in, or of an allocation made for it (srun(1)).

The command line is read here; the tasks are started by the job's step manager, which srun's local part (in stepd) talks
to. So the answer is what the caller's process shall become: that local part, with the step described in its environment.
"""

from __future__ import annotations

import asyncio
import os.path
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from bridge.launcher import STEPD_IN_POD, JobFiles
from grammar.bindings import cpu_binding_type
from grammar.constraints import features_of, matches, parse_constraint
from grammar.errors import GrammarError
from grammar.hostlist import compress, expand
from grammar.options import EXCLUSIVE_WORDS, SEVERITIES, OptionError
from slurmk.commands.allocation_environment import allocation_environment
from slurmk.commands.awaited import AT_ONCE, Unsaid, give_up, not_at_once, pending_notices, take_up, waits_for_others
from slurmk.commands.broadcast import of_program
from slurmk.commands.burst_buffer_files import show_burst_buffer_file
from slurmk.commands.call import VERSION_TEXT, Call, Controller, Output, Unreadable
from slurmk.commands.node_files import read_node_files
from slurmk.commands.option_help import completions, help_text, usage_text
from slurmk.commands.sbatch import EXIT_ERROR, EXIT_IMMEDIATE, as_bytes, exit_code_of, exit_error, tell_outlook
from slurmk.commands.srun_components import Part, environment_of, groups_of, joined, members, of_several_programs, parts_of
from slurmk.commands.step_environment import step_environment
from slurmk.commands.step_sizes import ignored_in_job, is_exact, of_job, sizes_of
from slurmk.commands.submission import (
    Options,
    absolute,
    check_cluster,
    check_display,
    check_gres_help,
    check_step_gres,
    check_values,
    credentials_of,
    exported,
    option_variables,
    propagated_limits,
    read_layers,
    request_of,
    verbose_lines,
)
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import Submission, Submit
from slurmk.core.prologs import is_prolog_failure
from slurmk.core.selection import parse_step
from slurmk.model.job import Job, JobRequest
from slurmk.model.node import Node
from slurmk.model.requested import has_step_manager
from slurmk.model.site import Site
from slurmk.model.states import JobFlag, JobState, Reason
from slurmk.model.step import StepRequest

NAME = "srun"

LARGEST_MULTI_PROG = 1 << 20

PROGRAM_VARIABLE = "SLURMK_SRUN"
"""In ``Controller.access``: the words of srun's local part, quoted as a shell would read them."""

OF_ALLOCATIONS = frozenset(("SLURM_JOB_NAME", "SLURM_EXCLUSIVE", "SLURM_JOB_ID"))
"""Variables that mean something outside of a job only (srun(1)); SLURM_JOB_ID is looked at here."""

OF_STEPS = frozenset(("SLURM_STEP_GRES", "SLURM_JOB_ID"))
"""Variables that mean something in a job only."""


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Run a step; gives the exit code when there is nothing to execute."""
    try:
        return await _run(call, controller, output)
    except OptionError as error:
        output.write(error.output)
        output.error("".join(f"{line}\n" for line in error.lines))
        return error.code


async def _run(call: Call, controller: Controller, caller: Output) -> int:
    output = Unsaid(caller) if take_up(call, controller) else caller
    parts = parts_of(call.arguments)
    given, operands = [part.given for part in parts], parts[0].operands
    early = {one.name: one.value for component in given for one in component}
    if (answer := _early(early)) is not None:
        output.write(answer)
        return 0
    job_id = _job_id(early, call.environment, controller)
    check_values(NAME, given, controller.now())
    if job_id is not None and "test-only" in early:
        return await _tell_start(call, controller, caller, job_id)
    if not all(part.operands for part in parts):
        raise OptionError(f"{NAME}: fatal: No command given to execute.", code=1)
    ignored = OF_STEPS if job_id is None else OF_ALLOCATIONS
    if job_id is not None:
        check_exclusive_variable(call.environment)
    environment = of_job(_of_component(call.environment, controller, job_id))
    told = read_layers(NAME, environment, given, controller.now(), ignored_variables=ignored)
    options = told[0]
    if options.get("verbose"):
        output.error("".join(f"{line}\n" for line in verbose_lines(NAME, options)))
    if "rank" in (options.get("cpu_binding") or "").lower().split(","):
        output.error(f"{NAME}: Ignoring --cpu-bind=rank. Rank binding is obsolete.\n")
    _bound_severity(call, controller, options, output)
    _check_settings(options, call.environment, alone=job_id is None)
    _check_exclusive(options)
    for each in told:
        await read_node_files(NAME, each, environment, output)
        await show_burst_buffer_file(NAME, each, output)
    if job_id is None and len(parts) > 1:
        return await _alone_together(call, controller, caller, told, parts)
    if job_id is not None and (len(parts) > 1 or options.get("het_group") is not None):
        return await _steps_in_job(call, controller, output, parts, job_id)
    multi_prog = await _multi_prog(output, options, operands)
    if job_id is not None:
        return _step_in_job(call, controller, output, options, operands, multi_prog, job_id)
    return await _alone(call, controller, caller, options, operands, multi_prog)


def check_exclusive_variable(environment: Mapping[str, str]) -> None:
    """In a job it does nothing, but has to be one of the words. Raises OptionError."""
    word = environment.get("SLURM_EXCLUSIVE", "")
    if word and word.lower() not in EXCLUSIVE_WORDS:
        raise OptionError(f"{NAME}: error: Invalid --exclusive specification")


def _bound_severity(call: Call, controller: Controller, options: Options, output: Output) -> None:
    """--slurmd-debug: for root and SlurmUser alone; what is beyond the least and the most is taken as these, and the user
    told. Raises OptionError."""
    level = options.get("slurmd_debug")
    if level is not None and level != _LEAST_SEVERITY and not call.caller.operator:
        who = f"root and SlurmUser({controller.machine.site.slurm_user})"
        raise OptionError(f"{NAME}: error: Use of --slurmd-debug is allowed only for {who}", code=255)
    if level is not None and level >= len(SEVERITIES):
        options.values["slurmd_debug"] = len(SEVERITIES) - 1
        output.error(f"{NAME}: Using max slurmd-debug value of '{SEVERITIES[-1]}'\n")
    elif level is not None and level < _LEAST_SEVERITY:
        options.values["slurmd_debug"] = _LEAST_SEVERITY
        output.error(f"{NAME}: Using min slurmd-debug level of {SEVERITIES[_LEAST_SEVERITY]}\n")


_LEAST_SEVERITY = SEVERITIES.index("error")


def _check_exclusive(options: Options) -> None:
    """A step that has its CPUs to itself (--exclusive) has no more of them than it asks for. Raises OptionError."""
    exclusive = options.get("shared") == "none"
    if (exclusive or options.get("exact")) and options.get("whole"):
        raise OptionError(f"{NAME}: error: --exact and --whole are mutually exclusive.", code=1)
    if exclusive and options.get("overlap"):
        raise OptionError(f"{NAME}: error: --exclusive and --overlap are mutually exclusive", code=1)


_NOT_WITH_ASYNC = {"pty": "--async and --pty", "immediate": "--immediate and --async"}


def _check_settings(options: Options, environment: Mapping[str, str], *, alone: bool) -> None:
    """What settings mean together. Raises OptionError."""
    if "wait-for-children" in options.said:
        raise OptionError(f"{NAME}: fatal: --wait-for-children only compatible with proctrack/cgroup plugin", code=1)
    if options.get("pty") is not None and any(options.get(name) is not None for name in _STREAMS):
        raise OptionError(f"{NAME}: error: --error/--input/--output are incompatible with --pty", code=1)
    for other, text in _NOT_WITH_ASYNC.items():
        if options.get("asynchronous") and options.get(other) is not None:
            raise OptionError(f"{NAME}: error: {text} are mutually exclusive.", code=1)
    if options.get("asynchronous"):
        _check_unattended(options, alone=alone)
    if options.get("no_allocate") and not options.get("required_nodes"):
        raise OptionError(f"{NAME}: error: must specify a node list with -Z, --no-allocate.", code=1)
    if options.get("no_allocate"):
        refused = f"{NAME}: error: --no-allocate: steps outside of a job are not run"
        raise OptionError(f"{NAME}: do not allocate resources", refused, code=1)
    check_display(NAME, options, environment)
    if options.get("parsable") and not options.get("asynchronous"):
        raise OptionError(f"{NAME}: error: --parsable requires --async.", code=1)
    if alone and options.get("relative") is not None:
        raise OptionError(f"{NAME}: fatal: --relative option invalid for job allocation request", code=1)
    if alone and options.get("het_group") is not None:
        raise OptionError(f"{NAME}: error: --het-group expected to be used within an HetJob allocation", code=1)


def _check_unattended(options: Options, *, alone: bool) -> None:
    """A step that srun leaves behind. Raises OptionError."""
    kind = options.get("mpi")
    if kind is not None and kind.lower() != "none":
        how = "(set by --mpi, SLURM_MPI_TYPE or MpiDefault). Use --mpi=none to run a non-MPI program."
        raise OptionError(f"{NAME}: error: --async does not support MPI type '{kind}' {how}", code=1)
    if alone:
        where = "is only valid for steps submitted within an existing job allocation."
        raise OptionError(f"{NAME}: error: --async {where}", code=1)


_STREAMS = ("standard_input", "standard_output", "standard_error")


def _early(values: Mapping[str, str | None]) -> str | None:
    if "help" in values:
        return help_text(NAME)
    if "usage" in values:
        return usage_text(NAME)
    if "version" in values:
        return f"{VERSION_TEXT}\n"
    if values.get("mpi") == "list":
        return "MPI plugin types are...\n\tnone\n"
    prefix = values.get("autocomplete")
    return completions(NAME, prefix) if prefix is not None else None


def _job_id(given: Mapping[str, str | None], environment: Mapping[str, str], controller: Controller) -> int | None:
    """The job that the step is for; of an array the element that is named, where it has a number. Raises OptionError."""
    text = given.get("jobid") or environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID")
    if not text and environment.get("SLURM_JOB_ID") == "":
        raise OptionError(f"{NAME}: fatal: Bad job/step specified: : JobID must not be an empty string", code=1)
    if not text:
        return None
    jobs = controller.machine.jobs
    try:
        chosen = parse_step(text, jobs.values())
    except SlurmError as error:
        raise OptionError(f"{NAME}: fatal: Bad job/step specified: {text}: {error}", code=1) from None
    if chosen.array_tasks:
        task = chosen.array_tasks[0][0]
        elements = controller.machine.jobs_of_array(chosen.job_id)
        return next((job.job_id for job in elements if job.array_task_id == task), chosen.job_id)
    return chosen.job_id


async def _tell_start(call: Call, controller: Controller, output: Output, job_id: int) -> int:
    """--test-only of a job that there is: when and where it would start. Raises OptionError."""
    job = controller.machine.jobs.get(job_id)
    known = job is not None and not job.state.finished and controller.machine.may_change(call.caller, job)
    if job is None or not known or not job.pending:
        refused = SlurmError(Errno.DISABLED if known else Errno.INVALID_JOB_ID)
        raise OptionError(f"allocation failure: {refused}", code=exit_error(call.environment))
    request = replace(job.request, hold=False, dependency=None, array=None)
    origin = (job.command, job.submit_line, job.submit_host, job.session_id)
    event = Submit(controller.now(), call.caller, (Submission(request, job.credentials, job.batch, *origin),))
    return await tell_outlook(NAME, controller, output, event, call.environment, quiet=False, named=False, job_id=job_id)


async def _multi_prog(output: Output, options: Options, operands: Sequence[str]) -> str | None:
    """The text of the file that says which task runs which program."""
    if not options.get("multi_prog"):
        return None
    try:
        content = await output.read(operands[0], LARGEST_MULTI_PROG)
    except Unreadable:
        raise OptionError(f"{NAME}: error: Could not open multi_prog config file {operands[0]}", code=1) from None
    return content.decode("utf-8", "surrogateescape")


# ------------------------------------------------------------------------------------------------- in a job


def _of_component(environment: Mapping[str, str], controller: Controller, job_id: int | None) -> Mapping[str, str]:
    """The variables that a step sees which names no component: in a het job, those of the first, where it runs."""
    job = None if job_id is None else controller.machine.jobs.get(job_id)
    return environment if job is None or not job.het_components else environment_of(environment, 0)


_SIZES = frozenset(("nodes", "ntasks", "ntasks-per-node", "tasks-per-node", "nodelist", "exclude", "relative"))
"""Options that say how much of the job a step wants; without any (and its variables: ``--jobid`` alone) it spans all nodes."""


def _step_in_job(
    call: Call,
    controller: Controller,
    output: Output,
    options: Options,
    operands: Sequence[str],
    multi_prog: str | None,
    job_id: int,
) -> int:
    job = _running_job(call, controller, job_id)
    within = replace(call, environment=_of_component(call.environment, controller, job_id))
    check_cluster(NAME, options, controller.machine.site.cluster_name)
    check_step_gres(NAME, options, controller.machine.site)
    checked = request_of(NAME, options, within)
    assert job.allocation is not None
    sizes, notices = sizes_of(options, checked.request, len(job.allocation.nodes))
    told = [*(f"{NAME}: {line}" for line in (*ignored_in_job(options), *notices)), *checked.warnings]
    output.error("".join(f"{line}\n" for line in told))
    step = _step(call, options, checked.request, operands, multi_prog, job, controller.machine.site)
    step = replace(_with_program(step, options, controller.machine.site, output), **sizes)
    if not _SIZES & options.said.keys() and job.allocation is not None:
        step = replace(step, minimum_nodes=len(job.allocation.nodes), maximum_nodes=None)
    step = _on_nodes_there_are(step, job, options, output)
    _check_step(step, job, options.get("maximum_nodes"))
    step = _on_nodes_with(step, job, controller.machine.nodes)
    if options.get("asynchronous"):
        step = _unattended(step, options, job, controller.machine.site)
    if call.remote:
        _check_container(checked.request, job)
    _execute(call, controller, output, step, job, options, step_environment(checked.request, options, alone=False))
    return 0


def _unattended(step: StepRequest, options: Options, job: Job, site: Site) -> StepRequest:
    """The step as one that srun does not wait for, and so runs nothing before and after. Raises OptionError."""
    if not has_step_manager(job, site):
        raise _no_step(job, Errno.INVALID_FEATURE)
    return replace(step, asynchronous=True, parsable=bool(options.get("parsable")), prolog=None, epilog=None, bcast=None)


async def _steps_in_job(call: Call, controller: Controller, output: Output, parts: Sequence[Part], job_id: int) -> int:
    """A step of several parts, or in components of a het job."""
    site, now = controller.machine.site, controller.now()
    job = _running_job(call, controller, job_id)
    components = members(job, controller.machine.jobs)
    given = [part.given for part in parts]
    told = read_layers(NAME, call.environment, given, now, ignored_variables=OF_ALLOCATIONS)
    only = len(components) == 1
    chosen = [(0, part) for part in range(len(parts))] if only and len(parts) > 1 else groups_of(told, len(components))
    steps: list[StepRequest] = []
    variables: dict[str, str] = {}
    for group, part in chosen:
        environment = environment_of(call.environment, group)
        options = read_layers(NAME, environment, given, now, ignored_variables=OF_ALLOCATIONS)[part]
        request = request_of(NAME, options, replace(call, environment=environment)).request
        member = _running_job(call, controller, components[group].job_id)
        multi_prog = await _multi_prog(output, options, parts[part].operands)
        step = _step(call, options, request, parts[part].operands, multi_prog, member, site)
        _check_step(step, member, options.get("maximum_nodes"))
        variables = variables or step_environment(request, options, alone=False)
        steps.append(replace(step, job_id=components[0].job_id))
    if len(chosen) > 1 and not only and "disable_hetjob_steps" in site.scheduler_parameters:
        several = "Job steps that span multiple components of a heterogeneous job are not currently supported"
        raise OptionError(f"{NAME}: fatal: {several}", code=1)
    if only and len(parts) > 1:
        _execute(call, controller, output, of_several_programs(steps, job), job, told[0], variables)
        return 0
    access = [controller.access(components[group]) for group, _ in chosen]
    step = steps[0] if [group for group, _ in chosen] == [0] else joined(steps, access, controller.access(components[0]))
    _execute(call, controller, output, step, components[chosen[0][0]], told[0], variables)
    return 0


def _running_job(call: Call, controller: Controller, job_id: int) -> Job:
    """The job, when the caller may run steps in it now. Raises OptionError."""
    machine = controller.machine
    job = machine.jobs.get(job_id)
    hint = f"{NAME}: Check SLURM_JOB_ID environment variable. Expired or invalid job {job_id}"
    if job is None or job.state.finished:
        errno = Errno.INVALID_JOB_ID if job is None else Errno.ALREADY_DONE
        message = f"{NAME}: error: Unable to confirm allocation for job {job_id}: {SlurmError(errno)}"
        raise OptionError(message, hint, code=exit_error(call.environment))
    if not machine.may_change(call.caller, job):
        raise _no_step(job, Errno.ACCESS_DENIED)
    if job.allocation is None or job.state is not JobState.RUNNING:
        message = f"{NAME}: error: Unable to confirm allocation for job {job_id}: {SlurmError(Errno.JOB_PENDING)}"
        raise OptionError(message, code=exit_error(call.environment))
    return job


def _on_nodes_there_are(step: StepRequest, job: Job, options: Options, output: Output) -> StepRequest:
    """The step on all of the job's nodes where the variables of the job's beginning ask for more: it gave some back."""
    assert job.allocation is not None
    there, wanted = len(job.allocation.nodes), step.minimum_nodes or 1
    if wanted <= there or options.said.get("nodes", ("", ""))[0] == "command line":
        return step
    conflict = f"environment variable conflicts with allocated node count ({wanted} != {there})"
    output.error(f"{NAME}: error: SLURM_JOB_NUM_NODES {conflict}.\n")
    return replace(step, minimum_nodes=there, maximum_nodes=None)


def _check_step(step: StepRequest, job: Job, most: int | None) -> None:
    """Refuse what can never fit the job's nodes; ``most`` of them were asked for, where that was said. Raises OptionError."""
    assert job.allocation is not None
    allocated, wanted = job.allocation.nodes, step.minimum_nodes or 1
    if step.relative is not None and step.relative + wanted > len(allocated):
        counts = f"{step.relative}+{wanted}>{len(allocated)}"
        text = f"--relative and --nodes option incompatible with count of allocated nodes ({counts})"
        raise OptionError(f"{NAME}: error: {text}", code=1)
    excluded = _hosts(step.exclude)
    left = [name for name in allocated if name not in excluded]
    if not left:
        raise OptionError(f"{NAME}: error: Hostlist is empty!  Can't run job.", code=1)
    if wanted > len(left):
        hint = [f"{NAME}: error: Are required nodes explicitly excluded?"] if excluded else []
        raise OptionError(f"{NAME}: error: Only allocated {len(left)} nodes asked for {wanted}", *hint, code=1)
    named = _hosts(step.nodelist)
    too_many = step.distribution != "arbitrary" and len(named) > (most or len(allocated))
    if too_many or not named <= set(allocated):
        raise _no_step(job, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE)


def _on_nodes_with(step: StepRequest, job: Job, nodes: Mapping[str, Node]) -> StepRequest:
    """The step, kept from those of the job's nodes that lack its features. Raises OptionError."""
    assert job.allocation is not None
    if step.threads_per_core and any(
        nodes[name].threads_per_core < step.threads_per_core for name in job.allocation.nodes if name in nodes
    ):
        text = "Cannot request more threads per core than the job allocation"
        raise OptionError(f"{NAME}: error: Unable to create step for job {job.job_id}: {text}", code=1)
    if not step.constraint:
        return step
    tree = parse_constraint(step.constraint)
    known = {feature for node in nodes.values() for feature in node.features}
    if not known.issuperset(features_of(tree)):
        raise _no_step(job, Errno.INVALID_FEATURE)
    lacking = [name for name in job.allocation.nodes if name in nodes and not matches(tree, frozenset(nodes[name].features))]
    return replace(step, exclude=compress([*_hosts(step.exclude), *lacking])) if lacking else step


def _check_container(request: JobRequest, job: Job) -> None:
    """A step in pods runs in their containers, which are the job's. Raises OptionError."""
    if request.container not in (None, job.request.container):
        text = f"--container={request.container}: steps run in their job's container; ask sbatch or salloc for it"
        raise OptionError(f"{NAME}: error: {text}", code=1)


def _hosts(text: str | None) -> set[str]:
    try:
        return set(expand(text)) if text else set()
    except GrammarError:
        return set()


def _no_step(job: Job, errno: Errno) -> OptionError:
    return OptionError(f"{NAME}: error: Unable to create step for job {job.job_id}: {SlurmError(errno)}", code=1)


_FROM_OPTIONS = (
    "overlap",
    "exact",
    "whole",
    "relative",
    "label",
    "unbuffered",
    "kill_on_bad_exit",
    "pty",
    "interactive",
    "ignore_signals",
    "external_launcher",
    "task_prolog",
    "task_epilog",
    "mpi",
    "het_group",
    "disable_status",
    "debugger_test",
    "quit_on_interrupt",
    "no_gres",
    "quiet",
    "verbose",
)
"""Settings that a step takes as they are."""

_FROM_REQUEST = {
    "tasks": "tasks",
    "minimum_nodes": "minimum_nodes",
    "maximum_nodes": "maximum_nodes",
    "cpus_per_task": "cpus_per_task",
    "tasks_per_node": "tasks_per_node",
    "tasks_per_core": "tasks_per_core",
    "tasks_per_socket": "tasks_per_socket",
    "threads_per_core": "threads_per_core",
    "nodelist": "required_nodes",
    "exclude": "excluded_nodes",
    "distribution": "distribution",
    "plane_size": "distribution_plane_size",
    "contiguous": "contiguous",
    "constraint": "constraints",
    "memory_per_node": "memory_per_node",
    "memory_per_cpu": "memory_per_cpu",
    "gres": "tres_per_node",
    "gres_per_step": "tres_per_job",
    "gres_per_socket": "tres_per_socket",
    "cpus_per_gres": "cpus_per_tres",
    "memory_per_gres": "memory_per_tres",
    "tasks_per_gpu": "ntasks_per_tres",
    "tres_bind": "tres_bind",
    "overcommit": "overcommit",
    "open_mode": "open_mode",
    "time_limit": "time_limit",
    "signal": "kill_warning_signal",
    "signal_delay": "kill_warning_delay",
    "cpu_bind": "cpu_binding",
    "mem_bind": "memory_binding",
    "hint": "hint",
    "tres_freq": "tres_freq",
    "oom_kill_step": "oom_kill_step",
    "reserve_ports": "reserve_ports",
    "comment": "comment",
}
"""Fields of a step, and those of a job request that hold the same option."""


def _step(
    call: Call, options: Options, request: JobRequest, operands: Sequence[str], multi_prog: str | None, job: Job, site: Site
) -> StepRequest:
    """The step that the options ask for. Standard streams stay as typed: they are the step's, seen from its directory."""
    values: dict[str, Any] = {name: value for name in _FROM_OPTIONS if (value := options.get(name)) is not None}
    values |= {name: value for name, source in _FROM_REQUEST.items() if (value := getattr(request, source)) is not None}
    if not options.get("required_nodes") and "nodes" not in options.values:
        values.pop("maximum_nodes", None)
    if options.get("tasks") is None and _by_layout(request):
        values.pop("tasks", None)
    if is_exact(options, site):
        values["exact"] = True
    if options.said.get("ntasks-per-socket", ("", ""))[0] == "environment":
        values.pop("tasks_per_socket", None)  # which then binds no task to its socket
    if request.distribution and request.distribution.startswith("arbitrary") and options.get("required_nodes"):
        values["nodelist"] = options.get("required_nodes")  # where a node may be named for each of its tasks
    values.setdefault("kill_on_bad_exit", _configured(site, "KillOnBadExit") > 0 or None)
    values |= {name: _program(options.get(name), site.parameters.get(key)) for name, key in _OF_SRUN.items()}
    directory = options.get("current_working_directory")
    immediate = options.get("immediate")
    name = options.get("name") or os.path.basename(operands[0])
    return StepRequest(
        name=name,
        argv=tuple(operands),
        job_name=options.get("name"),
        cwd=absolute(directory, call.directory) if directory else call.directory,
        umask=call.umask,
        submit_line=" ".join((NAME, *call.arguments)),
        job_id=job.job_id,
        propagate=",".join(propagated_limits(request.propagate, site)),
        gres_per_task=_gres_per_task(request.tres_per_task),
        input=_stream(options.get("standard_input")),
        output=_stream(options.get("standard_output")),
        error=_stream(options.get("standard_error")),
        wait=_configured(site, "WaitTime") or None if options.get("step_wait") is None else options.get("step_wait"),
        multi_prog=multi_prog,
        signal_flags=request.kill_warning_flags or "",
        immediate=None if immediate is None else int(immediate),
        debug=options.get("slurmd_debug"),
        preserve_environment=bool(options.get("preserve_environment")),
        **values,
    )


def _by_layout(request: JobRequest) -> bool:
    """Whether sockets, cores or threads say how many tasks an allocation has: of the step itself they do not."""
    counts = (request.sockets_per_node, request.cores_per_socket, request.threads_per_core)
    by_gpus = request.ntasks_per_tres is not None or "gres" in (request.tres_per_task or "")
    return any(counts) and not by_gpus


def _stream(name: str | None) -> str | None:
    """A file of a step; ``none`` in any letters, and all that begins with ``all``, are no file names to srun."""
    lower = (name or "").lower()
    return "all" if lower.startswith("all") else "none" if lower == "none" else name or None


def _with_program(step: StepRequest, options: Options, site: Site, output: Output) -> StepRequest:
    """The step, whose program is sent to the nodes where --bcast is said."""
    said = options.get("bcast")
    if said is None or step.multi_prog is not None:
        return step
    names = ("compress", "send_libraries", "bcast_exclude")
    told = of_program(site, said, {name: options.get(name) for name in names}, lambda text: output.error(f"{NAME}: {text}\n"))
    if told.get("folder") == ".":
        told["folder"] = step.cwd
    return replace(step, bcast=told)


_OF_SRUN = {"prolog": "SrunProlog", "epilog": "SrunEpilog"}
"""Programs that srun itself runs, and the keys of slurm.conf that name them where no option does."""


def _program(said: str | None, configured: str | None) -> str | None:
    found = said or configured
    return None if not found or found.lower() in ("none", "(null)") else found


def _configured(site: Site, key: str) -> int:
    """The leading number of a key of slurm.conf."""
    text = site.parameters.get(key, "").partition(" ")[0]
    return int(text) if text.isascii() and text.isdigit() else 0


def _gres_per_task(text: str | None) -> str | None:
    kept = [word for word in (text or "").split(",") if word.startswith("gres/")]
    return ",".join(kept) or None


def local_part(call: Call, access: Mapping[str, str]) -> list[str]:
    """The words of srun's local part where the caller is: on this machine, or in a pod."""
    return [STEPD_IN_POD, "srun"] if call.remote else shlex.split(access[PROGRAM_VARIABLE])


def _execute(
    call: Call,
    controller: Controller,
    output: Output,
    step: StepRequest,
    job: Job,
    options: Options,
    told: Mapping[str, str],
) -> None:
    """Have the caller become srun's local part; ``told`` is what its tasks see of the options."""
    if options.get("verbose"):
        output.error("".join(f"{NAME}: {line}\n" for line in _allocation_lines(step, job)))
    access = controller.access(job)
    program = local_part(call, access)
    environment = exported(call.environment, options.get("export"))
    environment.update(told)
    environment.update(access)
    environment.update(step.to_variables())
    output.execute(program, environment)


def _allocation_lines(step: StepRequest, job: Job) -> list[str]:
    """What ``-v`` tells of the nodes that the step may use; ``cpu counts`` always say on how many nodes."""
    assert job.allocation is not None
    nodes = job.allocation.nodes
    cpus = ",".join(f"{count}(x{len(list(alike))})" for count, alike in groupby(share.cpus for share in job.allocation.shares))
    lines = [f"jobid {job.job_id}: nodes({len(nodes)}):`{compress(nodes)}', cpu counts: {cpus}"]
    if step.cpus_per_task and not (step.exact or step.whole or step.overlap):
        lines.append("Implicitly setting --exact, because -c/--cpus-per-task given.")
    return [*lines, f"CpuBindType={cpu_binding_type(step.cpu_bind)}"]


# ------------------------------------------------------------------------------------------------- on its own


async def _alone(
    call: Call,
    controller: Controller,
    caller: Output,
    options: Options,
    operands: Sequence[str],
    multi_prog: str | None,
) -> int:
    """Make an allocation, wait for it, then run the step in it. Cancelled when the caller goes away before."""
    output = Unsaid(caller) if call.awaited else caller
    quiet = bool(options.get("quiet"))
    unknown = check_cluster(NAME, options, controller.machine.site.cluster_name)
    output.error("".join(f"{NAME}: error: {line}\n" for line in unknown))
    check_gres_help(options, controller.machine.site)
    options.values.setdefault("name", os.path.basename(operands[0]))
    checked = request_of(NAME, options, call)
    if not quiet:
        output.error("".join(f"{line}\n" for line in checked.warnings))
    submission = _submission(call, options, checked.request, operands)
    event = Submit(controller.now(), call.caller, (submission,))
    if options.get("test_only"):
        named = bool(options.get("clusters"))
        return await tell_outlook(NAME, controller, output, event, call.environment, quiet=False, named=named)
    job_ids = await _submit(call, controller, output, event, (options,), (checked.request,), quiet=quiet)
    if job_ids is None:
        return exit_error(call.environment)
    job_id = job_ids[0]
    verbose = bool(options.get("verbose"))
    if verbose:
        output.error(f"{NAME}: JobId={job_id} returned by the controller\n")
    try:
        job = await _wait_for_nodes(controller, caller, job_id, options, call.environment, quiet=quiet, told=bool(call.awaited))
    except BaseException:
        await asyncio.shield(give_up(call, controller, job_id))
        raise
    if job is None:
        return exit_error(call.environment)
    output = caller
    if verbose and job.allocation is not None:
        output.error(f"{NAME}: Nodes {compress(job.allocation.nodes)} are ready for job\n")
    step = _own_step(_step(call, options, checked.request, operands, multi_prog, job, controller.machine.site), job)
    step = _with_program(step, options, controller.machine.site, output)
    inside = replace(call, environment={**call.environment, **_place_of(call)})
    _execute(inside, controller, output, step, job, options, step_environment(checked.request, options, alone=True))
    return 0


def _own_step(step: StepRequest, job: Job) -> StepRequest:
    """The step that the allocation was made for: on all the nodes that it got, even where fewer would have done."""
    there = job.allocation.nodes if job.allocation is not None else ()
    if step.distribution != "arbitrary" and not _hosts(step.nodelist) <= set(there):  # more were named than it has tasks
        step = replace(step, nodelist=None)
    return replace(step, owns_allocation=True, minimum_nodes=max(step.minimum_nodes or 1, len(there)))


def _place_of(call: Call) -> dict[str, str]:
    """Where the allocation was asked for."""
    return {"SLURM_SUBMIT_DIR": call.directory, "SLURM_SUBMIT_HOST": call.host}


async def _alone_together(
    call: Call, controller: Controller, caller: Output, told: Sequence[Options], parts: Sequence[Part]
) -> int:
    """The same for a step of several parts, each in a component of a het job that is made for it."""
    output = Unsaid(caller) if call.awaited else caller
    quiet, site = bool(told[0].get("quiet")), controller.machine.site
    submissions = []
    for options, part in zip(told, parts, strict=True):
        options.values.setdefault("name", os.path.basename(part.operands[0]))
        request = request_of(NAME, options, call).request
        submissions.append(_submission(call, options, request, part.operands))
    event = Submit(controller.now(), call.caller, tuple(submissions))
    requests = [submission.request for submission in submissions]
    job_ids = await _submit(call, controller, output, event, told, requests, quiet=quiet)
    if job_ids is None:
        return exit_error(call.environment)
    jobs: list[Job] = []
    try:
        for job_id in job_ids:
            silent = quiet or bool(jobs)
            job = await _wait_for_nodes(
                controller, caller, job_id, told[0], call.environment, quiet=silent, told=bool(call.awaited)
            )
            if job is None:
                return exit_error(call.environment)
            jobs.append(job)
    except BaseException:
        await asyncio.shield(give_up(call, controller, job_ids[0]))
        raise
    steps = [
        replace(_own_step(_step(call, options, request, part.operands, None, job, site), job), job_id=job_ids[0])
        for options, request, part, job in zip(told, requests, parts, jobs, strict=True)
    ]
    made = [(job, request, options) for job, request, options in zip(jobs, requests, told, strict=True)]
    within = allocation_environment(made, site, directory=call.directory, host=call.host)
    inside = replace(call, environment={**call.environment, **within})
    access = [controller.access(job) for job in jobs]
    variables = step_environment(requests[0], told[0], alone=True)
    _execute(inside, controller, output, joined(steps, access, access[0]), jobs[0], told[0], variables)
    return 0


def _submission(call: Call, options: Options, request: JobRequest, operands: Sequence[str]) -> Submission:
    return Submission(
        request=request,
        credentials=credentials_of(NAME, options, call),
        batch=False,
        command=operands[0],
        submit_line=" ".join((NAME, *call.arguments)),
        submit_host=call.host,
        session_id=call.session_id,
        umask=call.umask,
        immediate=bool(options.get("immediate")),
    )


async def _submit(
    call: Call,
    controller: Controller,
    output: Output,
    event: Submit,
    told: Sequence[Options],
    requests: Sequence[JobRequest],
    *,
    quiet: bool,
) -> tuple[int, ...] | None:
    """The jobs of the allocation; None when it was refused, which the caller has been told."""
    if call.awaited:
        output.await_jobs(call.awaited)
        return tuple(call.awaited)
    files = tuple(_files(call, options, request) for options, request in zip(told, requests, strict=True))
    for answer in await controller.apply(event, files):
        if isinstance(answer, Refused):
            output.error("".join(f"{NAME}: error: {notice}\n" for notice in answer.notices))
            output.error(_refusal(answer))
            return None
        if isinstance(answer, Accepted):
            if not quiet:
                output.error("".join(f"{NAME}: {notice}\n" for notice in answer.notices))
            output.await_jobs(answer.job_ids)
            return answer.job_ids
    return None


def _files(call: Call, options: Options, request: JobRequest) -> JobFiles:
    """What processes of the allocation that nobody gives another environment start from."""
    environment = dict(call.environment) | option_variables(request, options) | _place_of(call)
    environment["SLURM_JOB_NAME"] = request.name or ""
    encoded = {as_bytes(name): as_bytes(value) for name, value in environment.items()}
    return JobFiles(script=b"", arguments=(), environment=encoded, secret=b"")


def _refusal(refused: Refused) -> str:
    if refused.error.errno in (Errno.INVALID_GRES, Errno.INVALID_GRES_TYPE):
        return f"{NAME}: error: {refused.error}\n"
    return f"{NAME}: error: Unable to allocate resources: {refused.error}\n"


async def _wait_for_nodes(
    controller: Controller,
    output: Output,
    job_id: int,
    options: Options,
    environment: Mapping[str, str],
    *,
    quiet: bool,
    told: bool,
) -> Job | None:
    """The job once it runs on nodes that are ready; None when it ended before, which the caller has been told. ``told``: the
    caller knows already that it waits. Raises OptionError when it is not waited for any longer."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    patience = options.get("immediate")
    signalled = asyncio.ensure_future(output.signalled())
    try:
        while True:
            job = controller.machine.jobs.get(job_id)
            if job is None or job.state.finished:
                output.error(_ended_early(job))
                return None
            configuring = job.flags & JobFlag.CONFIGURING or job.reason is Reason.PROLOG
            if job.allocation is not None and job.state is JobState.RUNNING and not configuring:
                if told and not quiet:
                    output.error(f"{NAME}: job {job_id} has been allocated resources\n")
                return job
            waited = loop.time() - began
            if patience is not None and patience <= 1 and (waited >= AT_ONCE or waits_for_others((job,))):
                raise _not_at_once(job, environment)
            if waited >= AT_ONCE and not told and job.state is JobState.PENDING:
                told = True
                await _tell_pending(job, output, quiet=quiet)
            if patience and waited >= patience and job.state is JobState.PENDING:
                raise _unallocated(Errno.NODES_BUSY, environment, EXIT_IMMEDIATE)
            if signalled.done():
                raise OptionError(f"{NAME}: Job allocation {job_id} has been revoked", code=exit_error(environment))
            await _something(controller, job_id, signalled, AT_ONCE if not told else patience or None)
    finally:
        signalled.cancel()


async def _tell_pending(job: Job, output: Output, *, quiet: bool) -> None:
    if not quiet:
        lines = [*pending_notices((job,)), f"job {job.job_id} queued and waiting for resources"]
        output.error("".join(f"{NAME}: {line}\n" for line in lines))
        await output.drain()


def _not_at_once(job: Job, environment: Mapping[str, str]) -> OptionError:
    """--immediate without time, and the job cannot start now."""
    errno = not_at_once((job,))
    return _unallocated(errno, environment, EXIT_IMMEDIATE if errno is Errno.NODES_BUSY else EXIT_ERROR)


def _unallocated(errno: Errno, environment: Mapping[str, str], variable: str) -> OptionError:
    text = f"{NAME}: error: Unable to allocate resources: {SlurmError(errno)}"
    return OptionError(text, code=exit_code_of(environment, variable))


async def _something(controller: Controller, job_id: int, signalled: asyncio.Future[int], seconds: float | None) -> None:
    """Wait until the job changes or a signal comes, at most so long."""
    changed = asyncio.ensure_future(controller.job_changed(job_id))
    either: set[asyncio.Future[Any]] = {changed, signalled}
    await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    changed.cancel()


def _ended_early(job: Job | None) -> str:
    if job is None:
        return f"{NAME}: error: Unable to allocate resources: {SlurmError(Errno.INVALID_JOB_ID)}\n"
    if is_prolog_failure(job.system_comment):
        return f"{NAME}: {job.system_comment}\n"
    if job.state is JobState.CANCELLED:
        return f"{NAME}: Force Terminated JobId={job.job_id}\n" + _already_over()
    return _already_over()


def _already_over() -> str:
    return f"{NAME}: error: Unable to allocate resources: {SlurmError(Errno.ALREADY_DONE)}\n"
