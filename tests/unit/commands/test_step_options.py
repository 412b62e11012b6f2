"""srun in a job: what its options and the job's variables make of a step's size, and what the tasks are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from command_fakes import ALICE, FakeController, reference_site, run_command

from grammar.options import OptionError
from slurmk.commands.srun import check_exclusive_variable
from slurmk.commands.srun_components import groups_of
from slurmk.commands.step_environment import step_environment
from slurmk.commands.step_sizes import ignored_in_job, is_exact, of_job, sizes_of
from slurmk.commands.submission import Options, check_display, parse_components, read_layers
from slurmk.model.job import JobRequest


def told(arguments: str, environment: Mapping[str, str] | None = None) -> Options:
    given, _ = parse_components("srun", [*arguments.split(), "true"])
    return read_layers("srun", environment or {}, given, 0.0)[0]


JOB = {"SLURM_NTASKS": "8", "SLURM_NNODES": "2", "SLURM_NTASKS_PER_NODE": "4"}


@pytest.mark.parametrize(
    ("arguments", "request_", "fields"),
    [
        ("-N1", {"minimum_nodes": 1, "tasks": 8, "tasks_per_node": 4}, {"tasks": 4}),
        ("-N1 -n3", {"minimum_nodes": 1, "maximum_nodes": 1, "tasks": 3, "tasks_per_node": 4}, {}),
        ("-N1 -n5", {"minimum_nodes": 1, "maximum_nodes": 1, "tasks": 5, "tasks_per_node": 4}, {"tasks_per_node": None}),
        ("--ntasks-per-node=1", {"tasks": 8, "tasks_per_node": 1}, {"tasks_per_node": None}),
        ("-n2", {"tasks": 2, "tasks_per_node": 4}, {}),
        ("", {"tasks": 8}, {}),
    ],
)
def test_sizes(arguments: str, request_: dict[str, Any], fields: dict[str, Any]) -> None:
    found, notices = sizes_of(told(arguments, JOB), JobRequest(**request_), 2)
    assert found == fields
    assert bool(notices) == ("tasks_per_node" in fields)


def test_the_notice_names_tasks_and_nodes() -> None:
    _, notices = sizes_of(told("--ntasks-per-node=1", JOB), JobRequest(tasks=8, tasks_per_node=1), 2)
    assert notices == [
        "warning: can't honor --ntasks-per-node set to 1 which doesn't match the requested tasks 8 with the maximum number of "
        "requested nodes 2. Ignoring --ntasks-per-node."
    ]


def test_a_plane_of_the_job_is_one_of_the_step() -> None:
    assert of_job({"SLURM_DISTRIBUTION": "plane", "SLURM_DIST_PLANESIZE": "2"})["SLURM_DISTRIBUTION"] == "plane=2"
    assert of_job({"SLURM_DISTRIBUTION": "block", "SLURM_DIST_PLANESIZE": "2"})["SLURM_DISTRIBUTION"] == "block"
    assert of_job({}) == {}


@pytest.mark.parametrize(
    ("arguments", "launch", "exact"),
    [
        ("--exclusive -n2", "", True),
        ("--exact", "", True),
        ("-n2", "", False),
        ("--exclusive", "", False),
        ("--exclusive=allocation -n2", "", False),
        ("--exclusive=Allocation --exact -n2", "", True),
        ("--exclusive -n2", "srun_exclusive_allocation", False),
        ("--exact --exclusive -n2", "mpir_use_nodeaddr,srun_exclusive_allocation", True),
    ],
)
def test_exclusive_steps_of_a_number_of_tasks_are_exact(arguments: str, launch: str, exact: bool) -> None:
    """--exclusive=allocation, or LaunchParameters, means it of the allocation alone."""
    assert is_exact(told(arguments), reference_site(parameters={"LaunchParameters": launch})) is exact


def test_options_of_allocations_are_told_of_where_they_were_typed() -> None:
    (line,) = ignored_in_job(told("-S1"))
    assert line.startswith("error: Ignoring --core-spec value")
    assert len(ignored_in_job(told("--begin=now+1hour --gpus-per-socket=1"))) == 2
    assert not ignored_in_job(told("", {"SLURM_CORE_SPEC": "1"}))


def test_tasks_are_told_of_options() -> None:
    request = JobRequest(tres_per_job="gres/gpu:2", tres_per_task="gres/gpu:1", overcommit=True)
    expected = {"SLURM_GPUS": "2", "SLURM_OVERCOMMIT": "1", "SLURM_TRES_PER_TASK": "gres/gpu=1"}
    assert step_environment(request, told("--gpus=2 --gpus-per-task=1 -O"), alone=False) == expected
    alone = step_environment(request, told("--gpus=2 --gpus-per-task=1 -O"), alone=True)
    assert alone.items() > expected.items()
    assert alone["HYDRA_BOOTSTRAP"] == "slurm"


def test_resources_of_tasks_are_told_as_they_were_typed() -> None:
    request = JobRequest(tres_per_task="cpu:2,gres/gpu:1", cpus_per_task=2)
    told_ = step_environment(request, told("--tres-per-task=cpu:2,gres/gpu:1"), alone=False)
    assert told_["SLURM_TRES_PER_TASK"] == "cpu:2,gres/gpu:1"


def test_a_display_needs_to_be_named_and_a_cookie() -> None:
    check_display("srun", told(""), {})
    with pytest.raises(OptionError, match="No DISPLAY variable set"):
        check_display("srun", told("--x11"), {})
    with pytest.raises(OptionError, match="Could not retrieve magic cookie"):
        check_display("srun", told("--x11"), {"DISPLAY": "localhost:10"})


def test_how_much_nodes_tell_is_for_root_and_slurm_user() -> None:
    said = run_command(FakeController(), "srun", "--slurmd-debug=info", "true", caller=ALICE)
    refused = "srun: error: Use of --slurmd-debug is allowed only for root and SlurmUser(root)\n"
    assert (said.out, said.err, said.code) == ("", refused, 255)


@pytest.mark.parametrize("word", ["", "user", "TOPO", "exclusive"])
def test_a_jobs_variable_of_exclusive_may_be_a_word_of_it(word: str) -> None:
    check_exclusive_variable({"SLURM_EXCLUSIVE": word})


@pytest.mark.parametrize("word", ["1", "yes"])
def test_a_jobs_variable_of_exclusive_may_be_nothing_else(word: str) -> None:
    with pytest.raises(OptionError, match=r"^srun: error: Invalid --exclusive specification$"):
        check_exclusive_variable({"SLURM_EXCLUSIVE": word})


@pytest.mark.parametrize(
    ("het_groups", "found"),
    [
        (("0,0",), [(0, 0)]),
        (("0-1,1",), [(0, 0), (1, 0)]),
        (("", "2", ""), "Duplicate het groups in single srun not supported"),
        (("0,2", "1"), [(0, 0), (1, 1), (2, 0)]),
        (("3",), "Requested het-group offset exceeds highest hetjob index (3 > 2)"),
        (("3,5",), "Attempt to run a job step with het group value of 5, but the job allocation has maximum value of 2"),
        (("0", "3"), "Attempt to run a job step with het group value of 3, but the job allocation has maximum value of 2"),
    ],
)
def test_components_that_het_group_names(het_groups: tuple[str, ...], found: object) -> None:
    parts = [told(f"--het-group={groups}" if groups else "") for groups in het_groups]
    if isinstance(found, str):
        with pytest.raises(OptionError) as raised:
            groups_of(parts, 3)
        assert found in str(raised.value)
    else:
        assert groups_of(parts, 3) == found
