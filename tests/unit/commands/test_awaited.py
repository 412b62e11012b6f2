"""Commands of callers that waited for a job when an earlier controller went away."""

from __future__ import annotations

import asyncio
from types import ModuleType

import pytest
from command_fakes import ROOT, FakeController, FakeOutput

from slurmk.commands import salloc, sbatch, srun
from slurmk.commands.call import Call
from slurmk.core.events import Caller, Kill, Submit
from slurmk.model.states import JobState

ALICE = Caller(1001, "alice", False)
ACCESS = {"SLURMK_SRUN": "python srun", "SLURMK_STEP_MANAGER": "unix:x", "SLURMK_JOB_SECRET": "00"}
WORDS = {sbatch: ("--wait", "--wrap", "true"), salloc: ("-N1", "true"), srun: ("-N1", "true")}


def call(module: ModuleType, caller: Caller, *job_ids: int) -> Call:
    return Call(module.NAME, WORDS[module], "/w", {}, caller, 0, resumes=True, awaited=job_ids)


def again(controller: FakeController, module: ModuleType, caller: Caller, *job_ids: int) -> tuple[int, str, FakeOutput]:
    output = FakeOutput()
    code = asyncio.run(module.run(call(module, caller, *job_ids), controller, output))
    return code, "".join(output.out) + "".join(output.err), output


@pytest.mark.parametrize("module", [salloc, srun])
def test_the_allocation_is_taken_up_and_nothing_is_submitted(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = FakeController()
    monkeypatch.setattr(controller, "access", lambda job: ACCESS)
    job_id = controller.submit(ROOT, batch=False)
    code, said, output = again(controller, module, ROOT, job_id)
    assert code == 0
    assert output.executed is not None
    assert output.awaits == (job_id,)
    assert controller.returned == [job_id]
    assert f"job {job_id} has been allocated resources" in said
    assert sum(isinstance(event, Submit) for event in controller.events) == 1


@pytest.mark.parametrize("module", [sbatch, salloc, srun])
def test_only_ones_own_jobs_and_of_the_right_kind(module: ModuleType) -> None:
    controller = FakeController()
    batch = module is sbatch
    for job_id, caller in ((controller.submit(ROOT, batch=batch), ALICE), (controller.submit(ROOT, batch=not batch), ROOT)):
        code, said, output = again(controller, module, caller, job_id)
        assert (code, said, output.executed) == (1, f"{module.NAME}: error: Invalid job id specified\n", None)
    assert controller.returned == []


def test_a_job_that_is_forgotten_is_no_success() -> None:
    code, said, _ = again(FakeController(), sbatch, ROOT, 77)
    assert (code, said) == (1, "sbatch: error: Job 77 ended too long ago to tell its exit code\n")
    code, said, output = again(FakeController(), salloc, ROOT, 77)
    assert (code, output.executed) == (1, None)
    assert "has been revoked" in said


@pytest.mark.parametrize("module", [salloc, srun])
@pytest.mark.parametrize("stopping", [True, False])
def test_who_goes_away_takes_the_job_along_unless_it_is_the_controller_that_goes(module: ModuleType, stopping: bool) -> None:
    controller = FakeController()
    job_id = controller.submit(ROOT, batch=False, hold=True)

    async def story() -> None:
        task = asyncio.create_task(module.run(call(module, ROOT, job_id), controller, FakeOutput()))
        await asyncio.sleep(0.05)
        controller.stopping = stopping
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(story())
    assert any(isinstance(event, Kill) for event in controller.events) is not stopping
    assert controller.machine.jobs[job_id].state is (JobState.PENDING if stopping else JobState.CANCELLED)
