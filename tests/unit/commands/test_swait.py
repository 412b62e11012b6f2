"""swait over a controller in memory: which job is meant, and what is refused in Slurm's words."""

from __future__ import annotations

import pytest
from command_fakes import ALICE, BOB, ROOT, FakeController, reference_site, run_command

from slurmk.core.events import Caller


def with_jobs() -> FakeController:
    """1 runs and has a step manager, 2 has none, 3 is held, 4 is an array of two that run."""
    controller = FakeController(reference_site(prolog_flags=("Contain",)))
    controller.submit(ALICE, step_manager=True)
    controller.submit(
        ALICE,
    )
    controller.submit(ALICE, step_manager=True, hold=True)
    controller.submit(ALICE, step_manager=True, array="1-2")
    controller.start_all()
    return controller


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no job id given and SLURM_JOB_SLUID/SLURM_JOB_ID are not set"),
        (["99"], "cannot load JobId=99: Invalid job id specified"),
        (["s4SNKN57XZTE00"], "cannot load SLUID=s4SNKN57XZTE00: Invalid job id specified"),
        (["a"], "a: cannot parse job id"),
        (["0"], "0: cannot parse job id"),
        (["1", "2"], "too many positional arguments (expected at most one job id)"),
        (["--timeout=x", "1"], "--timeout: invalid value 'x' (must be a non-negative integer)"),
        (["-Qv", "1"], "--verbose (-v) and --quiet (-Q) are mutually exclusive"),
        (["1_1"], "JobId=1: not an array job"),
        (["1+1"], "1+1: het-job offsets are not supported"),
        (["1.0"], "1.0: swait operates on a job, not a step"),
        (["2"], "JobId=2 does not have stepmgr enabled"),
        (["3"], "JobId=3 is still pending; swait does not wait for jobs to start"),
        (["4"], "JobId=4 is an array job; pass a specific task offset (jobid_task)"),
        (["4_7"], "array task 4_7: not found"),
        (["4_[1-2]"], "4_[1-2]: array-task ranges are not supported, pass one task offset"),
    ],
)
def test_what_cannot_be_waited_for(arguments: list[str], said: str) -> None:
    answer = run_command(with_jobs(), "swait", *arguments, caller=ALICE)
    assert (answer.code, answer.out, answer.err) == (2, "", f"swait: error: {said}\n")


def test_an_unknown_option_is_told_as_getopt_does() -> None:
    answer = run_command(with_jobs(), "swait", "--foo")
    assert answer.code == 2
    assert answer.err == "swait: unrecognized option '--foo'\nswait: Try \"swait --help\" for more information\n"


@pytest.mark.parametrize(("caller", "code"), [(ALICE, 0), (ROOT, 0), (BOB, 2)])
def test_without_steps_it_is_over_at_once_for_those_whose_job_it_is(caller: Caller, code: int) -> None:
    answer = run_command(with_jobs(), "swait", "1", caller=caller)
    assert answer.code == code
    assert ("subscribe RPC failed: Invalid user id" in answer.err) is bool(code)


def test_a_step_is_waited_for_so_long() -> None:
    controller = with_jobs()
    controller.add_step(1, step_id=0, tasks=1)
    answer = run_command(controller, "swait", "--timeout=1", "1", caller=ALICE)
    assert (answer.code, answer.err) == (1, "swait: error: timed out after 1 seconds\n")
