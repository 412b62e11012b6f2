"""The parts of an srun command line between colons, and which component of a het job each runs in (srun(1), --het-group).

In a het job the parts are one step over several components, numbered by the first component's step manager. In another job
they are one step with several programs, each on nodes of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grammar.arguments import Given
from grammar.hostlist import expand
from grammar.options import OptionError
from slurmk.commands.submission import Options, parse_components
from slurmk.model.job import Job
from slurmk.model.step import StepRequest

NAME = "srun"

_OF_GROUP = re.compile(r"(\w+)_HET_GROUP_(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Part:
    """The options of one part, and its program; a part without a program runs that of the next."""

    given: list[Given]
    operands: list[str]


def parts_of(arguments: Sequence[str]) -> list[Part]:
    """The parts of a command line. Raises OptionError."""
    found: list[Part] = []
    rest = arguments
    while True:
        given, operands = parse_components(NAME, rest)
        end = operands.index(":") if ":" in operands else len(operands)
        found += [Part(each, operands[:end]) for each in given]
        if end == len(operands):
            return found
        rest = operands[end + 1 :]


def members(job: Job, jobs: Mapping[int, Job]) -> list[Job]:
    """The components of the job's het job; the job alone when it is of none."""
    leader = jobs.get(job.het_job_id, job)
    return [jobs[member] for member in leader.het_components if member in jobs] or [job]


def groups_of(told: Sequence[Options], components: int) -> list[tuple[int, int]]:
    """(component, part) in the order of the components. Raises OptionError."""
    found: list[tuple[int, int]] = []
    wanted = [_groups(options, part) for part, options in enumerate(told)]
    highest = max(map(max, wanted))
    if highest >= components:
        alone = len(told) == len(wanted[0]) == 1 and told[0].get("het_group") is not None
        raise OptionError(f"{NAME}: error: {_too_high(alone, highest, components - 1)}", code=1)
    for part, groups in enumerate(wanted):
        if groups & {before for before, _ in found}:
            raise OptionError(f"{NAME}: fatal: Duplicate het groups in single srun not supported", code=1)
        found += ((group, part) for group in groups)
    if components == 1 and any(options.get("het_group") is not None for options in told):
        raise OptionError(f"{NAME}: error: No directives to start application on any available hetjob components", code=1)
    return sorted(found)


def _groups(options: Options, part: int) -> set[int]:
    said = options.get("het_group")
    return {part} if said is None else {int(number) for number in expand(f"[{said}]")}


def _too_high(alone: bool, group: int, highest: int) -> str:
    if alone:
        return f"Requested het-group offset exceeds highest hetjob index ({group} > {highest})"
    return f"Attempt to run a job step with het group value of {group}, but the job allocation has maximum value of {highest}"


def environment_of(environment: Mapping[str, str], group: int) -> dict[str, str]:
    """The variables as those of one component have them: ``X_HET_GROUP_1`` stands for ``X`` in component 1, and what only
    others have is not there."""
    of_groups: dict[str, dict[int, str]] = {}
    for name, value in environment.items():
        if match := _OF_GROUP.fullmatch(name):
            of_groups.setdefault(match[1], {})[int(match[2])] = value
    found = dict(environment)
    for name, values in of_groups.items():
        if name == "SLURM_JOB_ID":
            continue
        if group in values:
            found[name] = values[group]
        else:
            found.pop(name, None)
    return found


def of_several_programs(steps: Sequence[StepRequest], job: Job) -> StepRequest:
    """One step that runs each program on the next nodes of the job. Raises OptionError."""
    assert job.allocation is not None
    nodes = list(job.allocation.nodes)
    used = 0
    places: list[str] = []
    programs: list[tuple[tuple[str, ...], int]] = []
    for step in steps:
        tasks = step.tasks or step.minimum_nodes or len(nodes)
        wanted = min(step.minimum_nodes or len(nodes), tasks)
        if used + wanted > len(nodes):
            text = f"Allocation failure of {wanted} nodes: job size of {len(nodes)}, already allocated {used} nodes"
            raise OptionError(f"{NAME}: error: {text} to previous components.", code=1)
        places += [nodes[used + task * wanted // tasks] for task in range(tasks)]
        programs.append((step.argv, tasks))
        used += wanted
    return replace(
        steps[0],
        tasks=len(places),
        minimum_nodes=None,
        maximum_nodes=None,
        tasks_per_node=None,
        nodelist=",".join(places),
        distribution="arbitrary",
        programs=tuple(programs),
    )


def joined(steps: Sequence[StepRequest], access: Sequence[Mapping[str, str]], counter: Mapping[str, str]) -> StepRequest:
    """The step of the first component, which knows of its parts in the others; ``access`` is how each one's step manager is
    found, ``counter`` how that which numbers the steps is."""
    together = [replace(step, het=True) for step in steps]
    others = tuple({"request": step.to_object(), **_place(found)} for step, found in zip(together, access, strict=True))
    return replace(together[0], others=others[1:], counter=_place(counter))


def _place(access: Mapping[str, str]) -> dict[str, str]:
    return {"address": access.get("SLURMK_STEP_MANAGER", ""), "secret": access.get("SLURMK_JOB_SECRET", "")}
