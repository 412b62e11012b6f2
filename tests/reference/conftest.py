"""Both sides, started once. SLURMK_REFERENCE names the script that runs the reference Slurm; it has to be running."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sides import SLURMK, Side, reference_side, slurmk_side


@pytest.fixture(scope="session")
def reference() -> Iterator[Side]:
    script = os.environ.get("SLURMK_REFERENCE")
    if not script:
        pytest.skip("SLURMK_REFERENCE does not name a reference Slurm")
    side = reference_side(script)
    if shutil.which("scontrol", path=side.environment["PATH"]) is None or side.run("scontrol ping").code:
        pytest.skip("the reference Slurm does not answer")
    yield side
    side.clear()
    shutil.rmtree(side.work, ignore_errors=True)


@pytest.fixture(scope="session")
def slurmk(reference: Side) -> Iterator[Side]:
    next_job = int(reference.run("scontrol show config | awk '$1 == \"NEXT_JOB_ID\" { print $3 }'").output)
    side, directory = slurmk_side(str(Path(reference.environment["SLURM_CONF"]).parent), next_job)
    yield side
    subprocess.run([str(SLURMK), "down", "--jobs", "--dir", str(directory)], check=False, capture_output=True)
    for place in (directory.parent, side.work):
        shutil.rmtree(place, ignore_errors=True)
