"""stepd as one file, and on the oldest Python it is written for."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from embedded_launcher import embedded

from bridge.archive import modules, write_archive


def oldest_python() -> str | None:
    """A Python 3.8, where there is one: on PATH, or of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(root.glob("versions/3.8.*/bin/python3")) if os.access(root, os.X_OK) else []
    return str(installed[-1]) if installed else shutil.which("python3.8")


def test_the_archive_runs_by_itself_and_imports_only_the_standard_library(tmp_path: Path) -> None:
    archive = tmp_path / "stepd.pyz"
    write_archive(archive)
    done = subprocess.run([sys.executable, "-ISE", str(archive)], capture_output=True, text=True, cwd="/")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: stepd zygote | node FILE | pod | srun | ")
    assert len(done.stderr.splitlines()) == 1
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import slurmk.stepd.zygote, slurmk.stepd.srun\n"
        "ours = {name for name in sys.modules if name.partition('.')[0] in ('slurmk', 'bridge', 'grammar', 'accounting')}\n"
        "assert all(name == 'slurmk' or name.startswith(('slurmk.stepd', 'slurmk.wire')) for name in ours), ours\n"
    )
    subprocess.run([sys.executable, "-ISE", "-c", program, str(archive)], check=True, cwd="/")


def test_srun_starts_without_what_it_does_not_need(tmp_path: Path) -> None:
    archive = tmp_path / "stepd.pyz"
    write_archive(archive)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import slurmk.stepd.srun\n"
        "print([name for name in ('asyncio', 'subprocess', 'ssl', 'ctypes', 'typing', 'shlex') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-ISE", "-c", program, str(archive)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_module_is_in_the_archive() -> None:
    names = modules().keys()
    assert {"__main__.py", "slurmk/__init__.py", "slurmk/wire.py", "slurmk/stepd/node.py", "slurmk/stepd/srun.py"} <= names
    assert all(name.startswith("slurmk/") or name == "__main__.py" for name in names)


def test_a_job_with_the_oldest_python(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    python = oldest_python()
    if python is None:
        pytest.skip("no Python 3.8 here")
    monkeypatch.setattr("bridge.local.launcher.find_interpreter", lambda folder: python)
    directory = tmp_path_factory.mktemp("k") / "d"
    directory.mkdir()

    async def story() -> None:
        async with embedded(directory) as cluster:
            await cluster.launch("#!/bin/bash\nsleep 300\n", nodes=2, tasks=2)
            await cluster.until(lambda: len(cluster.events) >= 2)
            code, out, error = await cluster.srun(5, "echo", "old", tasks=4, label=True)
            assert (code, sorted(out.splitlines())) == (0, ["0: old", "1: old", "2: old", "3: old"]), error
            await cluster.release()
            assert await cluster.run("#!/bin/sh\nexit 9\n", 6) == (9 << 8, "")

    asyncio.run(story())
