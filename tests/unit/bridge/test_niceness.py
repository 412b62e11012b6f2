"""The niceness of the submitting command: what jobs are told of it, and what PropagatePrioProcess of slurm.conf makes of it.
Niceness is given as what comes on top of this process's own."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from embedded_launcher import SITE, embedded

from slurmk.core.events import JobStarted
from slurmk.stepd.keeper import take_niceness
from slurmk.stepd.processes import NICENESS

OWN = os.nice(0)

SHOWN = f'echo "${{{NICENESS}-none}} $(nice)"'


def seen(directory: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a script says that was sent with a niceness 5 higher, and a task whose srun has one that is 3 higher."""
    site = replace(SITE, parameters={**SITE.parameters, "PropagatePrioProcess": mode})
    monkeypatch.setattr("embedded_launcher.SITE", site)
    environment = {b"PATH": os.environb[b"PATH"], NICENESS.encode(): b"%d" % (OWN + 5)}

    async def story() -> list[str]:
        async with embedded(directory) as cluster:
            await cluster.launch(f"#!/bin/bash\n{SHOWN}\n", 6, environment=environment)
            await cluster.ended(6)
            await cluster.launch("#!/bin/bash\nexec sleep 300\n", 5)
            await cluster.until(lambda: cluster.found(JobStarted, 5))
            program, variables = cluster.srun_environment(5, "bash", "-c", SHOWN, tasks=1)
            nicer = ["nice", "-n", "3", *program]
            done = await asyncio.to_thread(
                subprocess.run, nicer, env=variables, cwd=cluster.work, capture_output=True, text=True, timeout=60
            )
            assert done.stderr == ""
            return [(cluster.work / "slurm-6.out").read_text(), done.stdout]

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("mode", "told", "script", "task"),
    [("0", True, 0, 0), ("1", False, 5, 3), ("2", False, 5, 3)],
)
def test_what_runs(
    mode: str, told: bool, script: int, task: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path_factory.mktemp("k") / "d"
    directory.mkdir()
    variables = [str(OWN + 5), str(OWN + 3)] if told else ["none", "none"]
    expected = [f"{variables[0]} {OWN + script}\n", f"{variables[1]} {OWN + task}\n"]
    assert seen(directory, mode, monkeypatch) == expected


@pytest.mark.parametrize(
    ("mode", "told", "expected"),
    [
        ("0", "5", None),
        ("None", "5", None),
        ("1", "5", 5),
        ("1", "-5", -5),
        ("1", "99999", 19),
        ("1", "x", 0),
        ("2", "-5", OWN + 1),
        ("2", str(OWN + 5), OWN + 5),
    ],
)
def test_what_is_taken(mode: str, told: str, expected: int | None) -> None:
    environment = {NICENESS: told}
    assert take_niceness(environment, mode) == expected
    assert (NICENESS in environment) == (expected is None)
