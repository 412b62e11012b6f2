"""sbatch, srun and salloc against what a real Slurm was recorded to say (tests/reference/recorded/submissions.jsonl)."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from command_fakes import ROOT, FakeController, FakeOutput, reference_site

from slurmk.commands.call import Call, Unreadable
from slurmk.commands.dispatch import dispatch
from slurmk.commands.job_text import JobText
from slurmk.commands.scontrol_job import job_lines
from slurmk.core.events import Event, Submit
from slurmk.core.machine import Machine
from slurmk.core.priority import Directory
from slurmk.model.job import Job
from slurmk.planner.plan import will_run

REFERENCE = Path(__file__).parents[2] / "reference"
sys.path.insert(0, str(REFERENCE))
try:
    recorded: Any = importlib.import_module("submissions")
    differences: Any = importlib.import_module("submission_differences")
finally:
    sys.path.remove(str(REFERENCE))

WORK = "/where/it/is"
PARAMETERS = {"JobAcctGatherFrequency": "2", "AccountingStorageTRES": "gres/gpu"}
"""Of the reference's slurm.conf."""


class Controller(FakeController):
    """Starts what can start when somebody waits for it, and has work for srun's local part."""

    def __init__(self) -> None:
        super().__init__()
        site = reference_site(first_job_id=77001, parameters=PARAMETERS)
        self.machine = Machine(site, users=Directory(accounts={"root": ("phys", "chem"), "alice": ("phys",)}))

    async def plan_for(self, event: Event) -> object:
        assert isinstance(event, Submit)
        tried = self.machine.trial(event)
        return will_run(*tried) if isinstance(tried, tuple) else tried

    def access(self, job: Job) -> dict[str, str]:
        return {"SLURMK_SRUN": "/stepd srun", "SLURMK_ADDRESS": "unix:x", "SLURMK_STEP_MANAGER": "", "SLURMK_JOB_SECRET": ""}


class Caller(FakeOutput):
    """A caller whose directory holds ``s.sh``, if the case has one, and nothing else."""

    def __init__(self, case: Any) -> None:
        super().__init__((case.stdin or "").encode("utf-8", "surrogateescape"))
        self.script = None if case.script is None else case.script.encode("utf-8", "surrogateescape")

    async def read(self, path: str, limit: int) -> bytes:
        if path in (".", "/tmp"):
            raise Unreadable(21, os.strerror(21))
        if path in ("s.sh", "./s.sh") and self.script is not None:
            return self.script[:limit]
        if path in ("/.", "/tmp/.", f"{WORK}/."):
            return b""
        raise Unreadable(2, os.strerror(2))


def submit(case: Any) -> tuple[FakeController, Caller, int]:
    controller, output = Controller(), Caller(case)
    call = Call(case.command, case.words, WORK, case.environment, ROOT, 0, host="localhost")
    code = asyncio.run(asyncio.wait_for(dispatch(call, controller, output), 5))
    return controller, output, code


def normalised(text: str, job_id: int | None) -> str:
    text = text.replace(WORK, "{work}")
    return text if job_id is None else recorded.with_places(text, [job_id])


def shown(controller: FakeController, job_id: int) -> dict[str, str]:
    lines = job_lines(JobText(controller.machine, controller.now()), controller.machine.jobs[job_id])
    found: dict[str, str] = recorded.fields_of(normalised("\n".join(lines), job_id))
    return found


def answer(case: Any) -> dict[str, object]:
    """What slurmk says, in the words of a recorded answer."""
    controller, output, code = submit(case)
    job_id = next(iter(controller.machine.jobs), None)
    errors = recorded.CHANGING.sub("", normalised("".join(output.err), job_id))
    fields = shown(controller, job_id) if job_id is not None else {}
    return {"code": code, "output": normalised("".join(output.out), job_id), "errors": errors, "fields": fields}


def expected(case: Any) -> dict[str, object]:
    fields = {}
    if case.job:
        fields = {**recorded.PLAIN[case.command], **case.fields}
    present = {name: value for name, value in fields.items() if value is not None}
    return {"code": case.code, "output": case.output, "errors": case.errors, "fields": present}


NOT_COMPARED = {
    "Priority": "that of a job that runs has grown on the reference",
}
"""Fields of jobs that run, which are not compared, and why."""


@pytest.mark.parametrize("case", recorded.SUBMISSIONS, ids=lambda case: case.name[:90])
def test_submission_as_recorded(case: Any) -> None:
    said, wanted = answer(case), expected(case)
    if case.command != "sbatch" or case.fields.get("Priority", "0") != "0":
        for fields in (said["fields"], wanted["fields"]):
            assert isinstance(fields, dict)
            for name in NOT_COMPARED:
                fields.pop(name, None)
    if (reason := differences.reason_of(case)) is not None:
        assert said != wanted, f"no longer differs: {reason}"
        return
    assert said == wanted
