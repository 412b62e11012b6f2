"""Jobs named by their SLUIDs, in the commands that take one; the answers are the reference's."""

from __future__ import annotations

import pytest
from command_fakes import FakeController, run_command

UNKNOWN = "s1ZZZZZZZZZZZZ"


@pytest.fixture
def controller() -> FakeController:
    made = FakeController()
    made.submit()
    made.submit(hold=True)
    return made


def sluid(controller: FakeController, job_id: int) -> str:
    return controller.machine.jobs[job_id].sluid


@pytest.mark.parametrize("lower", [False, True])
def test_the_same_as_by_number(controller: FakeController, lower: bool) -> None:
    """The case of letters does not count, but for the first."""
    for job_id in (1, 2):
        name = sluid(controller, job_id).lower() if lower else sluid(controller, job_id)
        for words in (("squeue", "-j"), ("scontrol", "show", "job")):
            plain, said = (run_command(controller, *words, each) for each in (str(job_id), name))
            assert said.out.replace(name, str(job_id)) == plain.out
            assert (said.err, said.code) == (plain.err, plain.code)
            assert said.out
    name = sluid(controller, 1)
    assert "S0000" not in name
    assert run_command(controller, "scontrol", "show", "job", "S" + name[1:]).code == 1
    assert run_command(controller, "squeue", "-h", "-j", f"{name}.0,2").out.count("\n") == 2


def test_what_changes_jobs(controller: FakeController) -> None:
    name = sluid(controller, 2)
    jobs = controller.machine.jobs
    for words in ("release", "hold"):
        assert run_command(controller, "scontrol", words, name).code == 0
        assert (jobs[2].priority == 0) == (words == "hold")
    assert run_command(controller, "scontrol", "update", f"job={name}", "comment=x").code == 0
    assert jobs[2].request.comment == "x"
    said = run_command(controller, "scontrol", "requeue", name)
    assert (said.err, said.code) == (f"Job is pending execution for job {name}\n", 1)
    assert run_command(controller, "scancel", name).code == 0
    assert 2 not in jobs or jobs[2].state.finished
    assert not jobs[1].state.finished


def test_scancel_names_jobs_and_steps_as_they_were_named() -> None:
    controller = FakeController()
    for _ in range(2):
        controller.submit()
    controller.start_all()
    controller.add_step(1)
    name = sluid(controller, 1)
    said = run_command(controller, "scancel", "-v", "-s", "USR1", name, "2")
    assert said.err == f"scancel: Signal 10 to job {name}\nscancel: Signal 10 to job 2\n"
    assert run_command(controller, "scancel", "-v", "-s", "USR1", f"{name}.0").err == f"scancel: Signal 10 to step {name}.0\n"
    assert run_command(controller, "scancel", "-v", f"{name.lower()}.0").err == f"scancel: Terminating step {name}.0\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("scancel s0000000000000", "scancel: error: Invalid SLUID s0000000000000"),
        (
            f"scancel -s USR1 {UNKNOWN}",
            f"scancel: error: Kill job error on job step id {UNKNOWN}.4294967294: Invalid job id specified",
        ),
        ("scancel s1", "scancel: error: Invalid SLUID s1"),
        ("scancel S1", "scancel: error: Invalid job id S1"),
        (f"squeue -j {UNKNOWN}", "slurm_load_jobs error: Invalid job id specified"),
        ("squeue -j s123", "squeue: error: Invalid job id: s123"),
        (f"scontrol show job {UNKNOWN}", "slurm_load_jobs error: Invalid job id specified"),
        ("scontrol show job s1", "scontrol_print_job error: Invalid job id specified"),
        (f"scontrol suspend {UNKNOWN}", f"Unexpected message received for job {UNKNOWN}"),
        (
            f"scontrol show step {UNKNOWN}",
            f"scontrol: error: scontrol_print_step: slurm_get_job_steps({UNKNOWN}) failed: Invalid job id specified",
        ),
        (f"scontrol update job={UNKNOWN} comment=x", f"Invalid job id specified for job {UNKNOWN}"),
        (
            f"scontrol hold {UNKNOWN}",
            f"Invalid job id specified for job {UNKNOWN}\nslurm_suspend error:Invalid job id specified",
        ),
        (
            "scontrol show step s1",
            "scontrol: error: scontrol_print_step: slurm_get_job_steps(s1) failed: SLUID is invalid",
        ),
        ("scontrol write batch_script s1 -", "scontrol: fatal: Bad job/step specified: s1: SLUID is invalid"),
        ("scontrol write batch_script S1 -", "scontrol: fatal: Bad job/step specified: S1: JobID can not be zero"),
        ("sattach s1.0", "sattach: fatal: Bad job/step specified: s1.0: SLUID is invalid"),
        ("sstat -j s1", "sstat: fatal: Bad job/step specified: s1: SLUID is invalid"),
        ("sstat -j S1", "sstat: fatal: Bad job/step specified: S1"),
        ("sprio -j s1", "sprio: error: Invalid job id: s1"),
    ],
)
def test_names_of_no_job(words: str, error: str, controller: FakeController) -> None:
    said = run_command(controller, *words.split())
    assert said.err.rstrip("\n") == error
    assert said.code == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (f"scancel {UNKNOWN}", ""),
        (f"sstat -n -j {UNKNOWN}", f"sstat: error: couldn't get steps for SLUID={UNKNOWN}\n"),
        (f"scontrol write batch_script {UNKNOWN} -", "job script retrieval failed: Invalid job id specified\n"),
    ],
)
def test_one_that_no_job_has_is_no_failure(words: str, error: str, controller: FakeController) -> None:
    said = run_command(controller, *words.split())
    assert (said.out, said.err, said.code) == ("", error, 0)
    assert not any(job.state.finished for job in controller.machine.jobs.values())


def test_a_step_that_is_not_there_is_named_as_typed(controller: FakeController) -> None:
    name = sluid(controller, 1)
    for typed in ("1", name):
        assert f"StepId={typed}.2 not found running.\n" in run_command(controller, "sstat", "-j", f"{typed}.2").err


def test_triggers(controller: FakeController) -> None:
    for words in (("--get",), ("--clear",), ("--set", "--fini", "--program=/nowhere")):
        plain, said = (run_command(controller, "strigger", f"--jobid={each}", *words) for each in ("1", sluid(controller, 1)))
        assert (said.out, said.err, said.code) == (plain.out, plain.err, plain.code)
