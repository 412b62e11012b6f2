"""srun --jobid: which job a step is for, in the forms that Slurm reads; and when one that waits would start."""

from __future__ import annotations

import json

import pytest
from command_fakes import FakeController, Said, reference_site, run_command


def with_array(monkeypatch: pytest.MonkeyPatch) -> FakeController:
    """1 is an array of which elements 0 and 1 run and 2 and 3 wait."""
    controller = FakeController()
    monkeypatch.setattr(controller, "access", lambda job: {"SLURMK_SRUN": "python stepd srun"})
    controller.submit(array="0-3%2")
    controller.start_all()
    return controller


def job_of(said: Said) -> int:
    """The job that the step is for which srun's local part asks for."""
    assert said.output.executed is not None, said.err
    return int(json.loads(said.output.executed[1]["SLURMK_STEP"])["job_id"])


def test_an_element_of_an_array_is_named_by_either_number(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = with_array(monkeypatch)
    numbers = {job.array_task_id: job.job_id for job in controller.machine.jobs.values() if job.allocation}
    for task in (0, 1):
        for name in (f"1_{task}", str(numbers[task]), controller.machine.jobs[numbers[task]].sluid):
            assert job_of(run_command(controller, "srun", f"--jobid={name}", "true")) == numbers[task]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("1_3", "error: Unable to confirm allocation for job 1: Job is pending execution"),
        ("99_1", "error: Unable to confirm allocation for job 99: Invalid job id specified"),
        ("1_[0-1]", "fatal: Bad job/step specified: 1_[0-1]: JobID includes unexpected non-numeric characters"),
        ("a", "fatal: Bad job/step specified: a: JobID can not be zero"),
        ("0", "fatal: Bad job/step specified: 0: JobID can not be zero"),
        ("s0", "fatal: Bad job/step specified: s0: SLUID is invalid"),
        ("1_", "fatal: Bad job/step specified: 1_: Job Array ID must not be an empty string"),
    ],
)
def test_what_is_no_running_job(monkeypatch: pytest.MonkeyPatch, name: str, error: str) -> None:
    said = run_command(with_array(monkeypatch), "srun", f"--jobid={name}", "true")
    assert said.code == 1
    assert said.err.splitlines()[0] == f"srun: {error}"


def test_a_start_is_told_of_waiting_jobs_alone() -> None:
    controller = FakeController()
    assert run_command(controller, "srun", "--test-only", "--jobid=99").err == "allocation failure: Invalid job id specified\n"
    running = controller.submit()
    controller.start_all()
    refused = run_command(controller, "srun", "--test-only", f"--jobid={running}")
    assert (refused.code, refused.err) == (1, "allocation failure: Requested operation is presently disabled\n")


def test_memory_that_no_node_has_is_refused_where_it_is_not_counted_too() -> None:
    controller = FakeController(reference_site(memory_is_consumable=False))
    for asked in ("--mem=32001", "--mem-per-cpu=32001", "--mem-per-cpu=17000 -c2"):
        said = run_command(controller, "sbatch", *asked.split(), "--wrap=true")
        assert said.code == 1
        assert "Memory specification can not be satisfied" in said.err
    assert run_command(controller, "sbatch", "--mem=32000", "--wrap=true").code == 0
    assert run_command(controller, "sbatch", "--mem-per-cpu=17000", "-n2", "--wrap=true").code == 0
