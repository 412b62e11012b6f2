"""--cpus-per-task beside --tres-per-task=cpu=, as the reference was seen to take them."""

from __future__ import annotations

import pytest

from grammar.arguments import parse_arguments
from grammar.options import OptionError, options_of
from slurmk.commands.submission import Options, _task_resources, read_layers


def resources(line: str, **environment: str) -> tuple[int, str]:
    given, _ = parse_arguments("srun", options_of("srun"), line.split())
    options: Options = read_layers("srun", environment, [given], 0.0)[0]
    values = dict(options.values)
    _task_resources("srun", options, values)
    return values["cpus_per_task"], values["tres_per_task"]


def test_what_a_job_sets_for_its_steps_agrees() -> None:
    assert resources("", SLURM_CPUS_PER_TASK="2", SLURM_TRES_PER_TASK="cpu=2") == (2, "cpu=2")


def test_command_line_holds_over_the_environment() -> None:
    assert resources("-n 1 -c 3", SLURM_CPUS_PER_TASK="2", SLURM_TRES_PER_TASK="cpu=2,gres/gpu=1") == (3, "cpu=3,gres/gpu=1")
    assert resources("--tres-per-task=cpu=3", SLURM_CPUS_PER_TASK="2") == (3, "cpu=3")


@pytest.mark.parametrize(
    ("line", "environment", "message"),
    [
        (
            "-c 2 --tres-per-task=cpu=2",
            {},
            "You can not have --tres-per-task=cpu= and --cpus-per-task please use one or the other",
        ),
        (
            "",
            {"SLURM_CPUS_PER_TASK": "2", "SLURM_TRES_PER_TASK": "cpu=3"},
            "cpus-per-task set by two different environment variables SLURM_CPUS_PER_TASK=2 != SLURM_TRES_PER_TASK=cpu=3",
        ),
    ],
)
def test_contradictions(line: str, environment: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match="srun: fatal: " + message):
        resources(line, **environment)


@pytest.mark.parametrize(
    ("text", "kept", "binding"),
    [
        ("gres/custom_gres:2", "gres/custom_gres:2", "gres/custom_gres:per_task:2"),
        ("gres/shard:3", "gres/shard:3", "gres/shard:per_task:3"),
        ("gres:gpu:1", "gres/gpu:1", "gres/gpu:per_task:1"),
        ("gres/gpu,gres/custom_gres:2", "gres/gpu,gres/custom_gres:2", "gres/custom_gres:per_task:2+gres/gpu:per_task:1"),
        ("gres/gpu:a100:1,gres/gpu:v100:2", "gres/gpu:a100:1,gres/gpu:v100:2", "gres/gpu:per_task:3"),
        ("cpu:2", "cpu:2", None),
    ],
)
def test_tasks_are_bound_to_the_gres_that_each_gets(text: str, kept: str, binding: str | None) -> None:
    given, _ = parse_arguments("sbatch", options_of("sbatch"), [f"--tres-per-task={text}", "-n1"])
    options: Options = read_layers("sbatch", {}, [given], 0.0)[0]
    values = dict(options.values)
    _task_resources("sbatch", options, values)
    assert (values["tres_per_task"], values.get("tres_bind")) == (kept, binding)


def test_cpus_of_a_task_stay_as_they_are_typed() -> None:
    assert resources("--tres-per-task=cpu:3", SLURM_CPUS_PER_TASK="3") == (3, "cpu:3")
