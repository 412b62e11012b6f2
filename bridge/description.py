"""What stepd is told of its job: one JSON object, made from the model's values.

stepd imports nothing of ours, so this is its whole knowledge. Text that was not UTF-8 travels by surrogate escapes,
memory is MiB, times are Unix seconds. ``version`` rises when a key changes its meaning; keys may be added freely.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from grammar.arrays import parse_array
from grammar.errors import GrammarError
from grammar.frequencies import task_interval
from slurmk.model.job import Allocation, Job, JobFiles, JobRequest, NodeShare
from slurmk.model.node import SHARED_DEVICES, parts_of_gpus
from slurmk.model.requested import has_step_manager
from slurmk.model.site import Site
from slurmk.model.states import INFINITE, NO_VALUE, JobState

VERSION = 1

_VISIBLE = """
tasks cpus_per_task tasks_per_node tasks_per_socket tasks_per_core tasks_per_board ntasks_per_tres memory_per_node
 memory_per_cpu tres_per_job tres_per_node tres_per_socket tres_per_task tres_bind tres_freq cpus_per_tres memory_per_tres
 distribution distribution_plane_size cpu_binding cpu_frequency memory_binding hint overcommit threads_per_core
 open_mode export get_user_env profile account_gather_frequency shared requeue wait_all_nodes licenses reservation
 dependency container container_id segment_size oom_kill_step core_specification thread_specification network
 required_switches nodes minimum_nodes maximum_nodes constraints
"""

REQUESTED: tuple[str, ...] = tuple(_VISIBLE.split())
"""Fields of JobRequest that processes of the job can see, as variables or as defaults of their steps."""

PARAMETERS = ("SLURM_CONF", "LaunchParameters", "TaskPlugin", "TaskPluginParam", "MpiParams", "PropagatePrioProcess")
"""Keys of slurm.conf that stepd goes by."""


def describe(job: Job, files: JobFiles, site: Site, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a job that has an allocation; ``extra`` are the launcher's own keys (directories, PATH …)."""
    assert job.allocation is not None
    request = job.request
    topology = Topology(site)
    shards = _shards_of_gpus(site, job.allocation)
    return {
        "version": VERSION,
        "job": job.job_id,
        "restart": job.restarts,
        "array": array_facts(job),
        "name": job.name,
        "account": job.account,
        "partition": job.allocation.partition,
        "qos": job.qos,
        "cluster": site.cluster_name,
        "sluid": job.sluid,
        "uid": job.credentials.user_id,
        "gid": job.credentials.group_id,
        "user": job.credentials.user_name,
        "group": job.credentials.group_name,
        "groups": list(job.credentials.groups),
        "nodes": [_share(share, topology, shards.get(share.node, 0)) for share in job.allocation.shares],
        "whole_nodes": job.allocation.whole_nodes,
        "batch": job.batch and not job.het_job_offset,  # a het job's script runs in its first component
        "script": _text(files.script),
        "arguments": [_text(argument) for argument in files.arguments],
        "environment": {_text(name): _text(value) for name, value in files.environment.items()},
        "secret": files.secret.hex(),
        "directory": request.current_working_directory or "/",
        "umask": job.umask,
        "start_time": job.start_time,
        "end_time": end_of(job),
        "over_time": job.over_time_limit * 60,
        "signal": request.kill_warning_signal,
        "signal_delay": request.kill_warning_delay,
        "signal_flags": request.kill_warning_flags or "",
        "input": request.standard_input,
        "output": request.standard_output,
        "error": request.standard_error,
        "kill_wait": site.kill_wait,
        "sample_seconds": _sample_seconds(request, site),
        "maximum_step_count": site.maximum_step_count,
        "step_manager": has_step_manager(job, site),
        "constrain_memory": site.constrain_memory,
        "limits": _limits(job.limits),
        "submit_host": job.submit_host,
        "submit_line": job.submit_line,
        "task_prolog": site.task_prolog,
        "task_epilog": site.task_epilog,
        "site_programs": _site_programs(job, site),
        "pack_nodes": site.pack_nodes,
        "parameters": {name: site.parameters[name] for name in PARAMETERS if site.parameters.get(name)},
        "request": _requested(job, site),
        "components": [_component(each, site) for each in files.components],
        "oversubscribe": files.sharing[0],
        "exclusive": files.sharing[1],
        **extra,
    }


def _site_programs(job: Job, site: Site) -> dict[str, Any]:
    """The site's programs before and after the job on its nodes (``slurmk.stepd.site_programs``); nothing where there are
    none. Theirs are variables that the job's own processes do not have."""
    if not (site.prolog or site.epilog):
        return {}
    request = job.request
    told = {
        "COMMENT": request.comment,
        "CONSTRAINTS": request.constraints,
        "EXTRA": request.extra,
        "LICENSES": request.licenses,
        "NTASKS": request.tasks,
        "RESERVATION": job.reservation,
        "STDERR": request.standard_error,
        "STDIN": (request.standard_input or "/dev/null") if job.batch else None,
        "STDOUT": (request.standard_output or _default_output(job)) if job.batch else None,
        "WORK_DIR": request.current_working_directory,
    }
    return {
        "prolog": list(site.prolog),
        "epilog": list(site.epilog),
        "prolog_timeout": site.prolog_timeout,
        "epilog_timeout": site.epilog_timeout,
        "flags": sorted(flag.lower() for flag in site.prolog_flags),
        "variables": {f"SLURM_JOB_{name}": str(value) for name, value in told.items() if value not in (None, "")},
    }


def _default_output(job: Job) -> str:
    name = "slurm-%j.out" if job.array_task_id is None else "slurm-%A_%a.out"
    return f"{(job.request.current_working_directory or '').rstrip('/')}/{name}"


def ending(job: Job) -> dict[str, int]:
    """What stepd is told of the job's end."""
    return {
        "exit_code": job.exit_code,
        "derived_exit_code": job.derived_exit_code,
        "end_time": job.end_time,
        "restarts": job.restarts + (job.state is JobState.PENDING),
    }


def _component(job: Job, site: Site) -> dict[str, Any]:
    """What the script of a het job sees of one component."""
    return {
        "job": job.job_id,
        "name": job.name,
        "account": job.account,
        "partition": job.allocation.partition if job.allocation else job.partition,
        "qos": job.qos,
        "nodes": [
            {"node": share.node, "cpus": share.cpus, "idle_cpus": share.idle_cpus, "tasks": share.tasks}
            for share in _shares(job)
        ],
        "request": _requested(job, site),
    }


def _shares(job: Job) -> Sequence[NodeShare]:
    return job.allocation.shares if job.allocation else ()


def _requested(job: Job, site: Site) -> dict[str, Any]:
    """What was asked for, with the partition's or site's memory where the job named none."""
    request = job.request
    found = {name: value for name in REQUESTED if (value := getattr(request, name)) not in (None, False)}
    if job.reservation:
        found["reservation"] = job.reservation  # the one that it runs in, which it need not have named
    if not found.keys() & {"memory_per_node", "memory_per_cpu", "memory_per_tres"}:
        partition = site.partition(job.partition)
        for where in (partition, site):
            if where is not None and where.default_memory_per_cpu:
                return found | {"memory_per_cpu": where.default_memory_per_cpu}
            if where is not None and where.default_memory_per_node:
                return found | {"memory_per_node": where.default_memory_per_node}
    return found


def end_of(job: Job) -> int | None:
    """When the time limit ends a job that has started; None when it has none."""
    if job.time_limit in (INFINITE, NO_VALUE):
        return None
    return job.start_time + job.suspended_seconds + job.time_limit * 60


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _limits(text: str) -> dict[str, int | None]:
    """Soft limits by name; None is none."""
    pairs = (item.partition("=")[::2] for item in text.split(",") if item)
    return {name: None if value == "unlimited" else int(value) for name, value in pairs}


def _shards_of_gpus(site: Site, allocation: Allocation) -> dict[str, int]:
    """How many shards each GPU is of the nodes on which the job has shards."""
    names = {share.node for share in allocation.shares if any(each.name in SHARED_DEVICES for each in share.gres)}
    return {node.name: parts_of_gpus(node.gres)[1] for node in site.nodes if node.name in names} if names else {}


def _share(share: NodeShare, topology: Topology, shards: int) -> dict[str, Any]:
    """What stepd is told of one node; ``shards`` are those of each of its GPUs."""
    return {
        "node": share.node,
        "cpus": share.cpus,
        "idle_cpus": share.idle_cpus,
        "threads": share.threads,
        "memory": share.memory,
        "tasks": share.tasks,
        "cpu_ids": list(share.cpu_ids),
        "gres": [
            {"name": each.name, "type": each.type, "count": each.count, "indices": list(each.indices)}
            | ({"each": shards} if each.name in SHARED_DEVICES and shards else {})
            for each in share.gres
        ],
        "topology": topology.address(share.node),
        "topology_kind": topology.kind,
    }


def _sample_seconds(request: JobRequest, site: Site) -> int | None:
    """Seconds between samples of usage (--acctg-freq, else JobAcctGatherFrequency); None is stepd's own choice, which also
    stands for 0, when Slurm samples at the end alone."""
    for text in (request.account_gather_frequency, site.parameters.get("JobAcctGatherFrequency")):
        seconds = task_interval(text or "")
        if seconds is not None:
            return seconds or None
    return None


def array_facts(job: Job) -> dict[str, int] | None:
    """What the elements of an array can see of it."""
    if job.array_task_id is None:
        return None
    try:
        tasks = parse_array(job.request.array or str(job.array_task_id), 0x7FFFFFFF).tasks
    except GrammarError:
        tasks = (range(job.array_task_id, job.array_task_id + 1),)
    return {
        "job": job.array_job_id,
        "task": job.array_task_id,
        "count": sum(map(len, tasks)),
        "minimum": min(each[0] for each in tasks),
        "maximum": max(each[-1] for each in tasks),
        "step": int(match[1]) if (match := _STEP.search(job.request.array or "")) else 1,
    }


_STEP = re.compile(r":(\d+)", re.ASCII)
"""The first step that is written, of whichever range it is; without any it is 1, however the elements lie."""


class Topology:
    """Finds the switches above a node, or its block, as SLURM_TOPOLOGY_ADDR names them."""

    def __init__(self, site: Site) -> None:
        self._above = {name: switch.name for switch in site.switches for name in (*switch.nodes, *switch.switches)}
        self._above |= {name: block.name for block in site.blocks for name in block.nodes}
        self.kind = "block" if site.blocks else "switch"

    def address(self, node: str) -> Sequence[str]:
        """Names from the top switch down to the node."""
        path = [node]
        while (above := self._above.get(path[0])) is not None and above not in path:
            path.insert(0, above)
        return path


_unknown = set(REQUESTED) - {field.name for field in fields(JobRequest)}
assert not _unknown, _unknown
