"""``slurmk status``, ``slurmk down``, ``slurmk queues`` and ``slurmk why``, as far as the controller answers them."""

from __future__ import annotations

import os
from collections import Counter

from slurmk import __version__
from slurmk.commands import queues, why
from slurmk.commands.call import Call, Controller, Output
from slurmk.model.states import JobState


async def run(call: Call, controller: Controller, output: Output) -> int:
    """``status``, ``queues``, ``why``, or ``down`` with or without ``--jobs``."""
    words = list(call.arguments)
    if words == ["status"]:
        output.write(status(controller))
        return 0
    if words[:1] == ["down"] and words[1:] in ([], ["--jobs"]):
        return down(call, controller, output, end_jobs="--jobs" in words)
    if words[:1] == ["queues"]:
        return await queues.run(call, controller, output)
    if words[:1] == ["why"]:
        return await why.run(call, controller, output)
    output.error(f"slurmk: error: the controller does not know: {' '.join(words)}\n")
    return 1


def status(controller: Controller) -> str:
    """How the cluster is, for a person to read."""
    machine = controller.machine
    states = Counter(job.state for job in machine.jobs.values())
    nodes = Counter(machine.node_state(name).rstrip("*~#!%$@^-+") for name in machine.nodes)
    counted = ", ".join(f"{count} {state}" for state, count in sorted(nodes.items()))
    return (
        f"slurmk {__version__}: cluster {machine.site.cluster_name} is up, pid {os.getpid()}\n"
        f"nodes: {len(machine.nodes)} ({counted})\n"
        f"jobs: {states[JobState.RUNNING]} running, {states[JobState.PENDING]} pending\n"
    ) + "".join(f"{line}\n" for line in controller.surroundings())


def down(call: Call, controller: Controller, output: Output, *, end_jobs: bool) -> int:
    """Stop the controller; jobs go on unless ``end_jobs``."""
    if not call.caller.operator:
        output.error("slurmk: error: Access/permission denied\n")
        return 1
    running = len(controller.machine.holding())
    jobs = f"{running} job" if running == 1 else f"{running} jobs"
    if end_jobs:
        output.write(f"slurmk: the controller stops and ends {jobs}\n")
    elif running:
        go = "goes" if running == 1 else "go"
        output.write(f"slurmk: the controller stops; {jobs} {go} on running until the next `slurmk up` (`--jobs` ends them)\n")
    else:
        output.write("slurmk: the controller stops\n")
    controller.shutdown(end_jobs=end_jobs)
    return 0
