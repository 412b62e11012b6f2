"""sbatch against what a real Slurm was recorded to say (tests/reference/recorded_submissions.py)."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from command_fakes import ROOT, FakeController, FakeOutput, reference_site

from slurmk.commands import sbatch
from slurmk.commands.call import Call, Unreadable
from slurmk.commands.job_text import JobText
from slurmk.core.machine import Machine
from slurmk.core.priority import Directory


def _recorded() -> Any:
    path = Path(__file__).parents[2] / "reference" / "recorded_submissions.py"
    specification = importlib.util.spec_from_file_location("recorded_submissions", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["recorded_submissions"] = module
    specification.loader.exec_module(module)
    return module


RECORDED = _recorded()
WORK = "/w"

OTHER_ANSWERS: dict[str, str] = {
    "--bbf=/nope": "refused because there are no burst buffers",
    "--prefer=x": "preferred features are recorded only",
    "--external": "external jobs are refused",
    "-vv": "the debug lines of the original's plugins",
}
"""Commands whose answer differs on purpose, and why."""

NOT_COMPARED: dict[str, str] = {"GroupId": "the daemon looks up the group's name"}
"""Fields that this test's controller cannot know, and why."""


class ScriptOutput(FakeOutput):
    """A caller whose directory holds ``s.sh`` and nothing else."""

    script: bytes | None = None

    async def read(self, path: str, limit: int) -> bytes:
        if path == "s.sh" and self.script is not None:
            return self.script[:limit]
        raise Unreadable(2, os.strerror(2))


def submit(case: Any) -> tuple[FakeController, ScriptOutput, int]:
    controller = FakeController()
    controller.machine = Machine(reference_site(first_job_id=77001), users=Directory(accounts={"root": ("phys", "chem")}))
    output = ScriptOutput()
    output.script = None if case.script is None else case.script.encode()
    call = Call("sbatch", case.words, WORK, case.environment, ROOT, 0, host="localhost")
    code = asyncio.run(sbatch.run(call, controller, output))
    return controller, output, code


def shown(controller: FakeController, job_id: int) -> dict[str, str]:
    from slurmk.commands.scontrol_job import job_lines

    lines = job_lines(JobText(controller.machine, controller.now()), controller.machine.jobs[job_id])
    text = "\n".join(lines).replace(WORK, "{work}")
    pairs = re.findall(r"([A-Za-z:/]+)=(.*?)(?=\s+[A-Za-z:/]+=|\n|$)", text)
    return {name: value.strip().replace(str(job_id), "{0}") for name, value in pairs}


@pytest.mark.parametrize(
    "case", RECORDED.SUBMISSIONS, ids=lambda case: (case.command[7:] if case.script is None else repr(case.script))[:70]
)
def test_submission_as_recorded(case: Any) -> None:
    controller, output, code = submit(case)
    out, err = "".join(output.out), "".join(output.err)
    job_id = next(iter(controller.machine.jobs), None)
    if job_id is not None:
        out = out.replace(str(job_id), "{0}")
    if any(mark in f"{case.command} " for mark in OTHER_ANSWERS):
        assert (err, code, out) != (case.errors, case.code, case.output), "no longer differs"
        return
    assert (err, code, out) == (case.errors, case.code, case.output)
    if job_id is None:
        return
    actual = shown(controller, job_id)
    expected = {**RECORDED.PLAIN, **case.fields}
    compared = expected.keys() - NOT_COMPARED.keys()
    assert {name: actual.get(name) for name in compared} == {name: expected[name] for name in compared}
