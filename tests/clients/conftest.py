"""A cluster for real clients of Slurm, and the virtual environment that they are installed in."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))

from embedded import SITE, Cluster, end_cluster, make_cluster

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = Path(os.environ.get("SLURMK_CLIENTS", ROOT / ".venv-clients"))
"""Where `make clients` installs tests/clients/requirements.txt."""


@pytest.fixture(scope="session")
def clients() -> Path:
    """The folder of the clients' Python and programs."""
    folder = ENVIRONMENT / "bin"
    if not (folder / "python").exists():
        pytest.skip(f"no clients are installed in {ENVIRONMENT}: `make clients` does that")
    return folder


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """An embedded cluster with the clients' programs on the PATH of those who use it."""
    made = make_cluster("--conf", str(SITE))
    path = f"{ENVIRONMENT / 'bin'}:{made.environment['PATH']}"
    kept = {name: value for name, value in made.environment.items() if name != "PYTHONPATH"}
    made.environment = kept | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "USER": getpass.getuser()}
    yield made
    end_cluster(made)


def installed(folder: Path, module: str) -> None:
    """Skip where a client is not there."""
    done = subprocess.run([str(folder / "python"), "-c", f"import {module}"], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["it cannot be imported"]
        pytest.skip(f"{module} is not there: {reason[0]}")
