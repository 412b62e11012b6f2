"""``slurmk`` without a controller: its options, directories and messages."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slurmk.client import installation, slurmk


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slurmk.client.slurmk", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=30)


def test_version_and_help() -> None:
    assert run("--version").stdout == "slurmk 0.1.0\n"
    shown = run("--help")
    assert shown.returncode == 0
    assert all(command in shown.stdout for command in slurmk.COMMANDS)
    assert run().returncode == 2


@pytest.mark.parametrize("command", ["status", "down", "env"])
def test_no_cluster_there(tmp_path: Path, command: str) -> None:
    done = run(command, "--dir", tmp_path)
    assert "no cluster is up" in done.stdout + done.stderr
    assert done.returncode == {"status": 1, "down": 0, "env": 0}[command]


STANDING_BY = """
import fcntl, os, sys, time
lock = open(sys.argv[1] + "/controller.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
lock.write(f"{os.getpid()}\\n")
lock.flush()
print("locked", flush=True)
time.sleep(60)
"""


def test_a_controller_that_stands_by_says_whose_lease_it_waits_for_and_ends_when_told(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "standby").write_text("other_1 holds the lease hpc/slurmk-controller\n")
    assert "no cluster is up" in run("status", "--dir", tmp_path).stdout  # what a dead one left says nothing
    with subprocess.Popen([sys.executable, "-c", STANDING_BY, str(tmp_path)], stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "locked\n"
        done = run("status", "--dir", tmp_path)
        said = f"slurmk: the controller in {tmp_path} stands by: other_1 holds the lease hpc/slurmk-controller\n"
        assert (done.stdout, done.returncode) == (said, 1)
        assert run("down", "--dir", tmp_path).returncode == 0
        assert waiting.wait(10) == -signal.SIGTERM
    assert "no cluster is up" in run("down", "--dir", tmp_path).stdout


def test_down_tells_of_a_controller_that_does_not_answer(tmp_path: Path) -> None:
    with open(tmp_path / "controller.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run("down", "--dir", tmp_path)
    assert "does not answer" in done.stderr
    assert done.returncode == 1


def test_environment_is_quoted_for_the_shell(tmp_path: Path) -> None:
    directory = tmp_path / "it's a 'place' $HOME `x`"
    shown = run("env", "--dir", directory).stdout
    script = shown + '\ncommand -v sbatch; printf %s "$SLURMK_DIR"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{directory}/bin/sbatch\n{directory}"


def test_default_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert slurmk.default_directory() == "/var/lib/slurmk"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    assert slurmk.default_directory() == "/s/slurmk"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/h")
    assert slurmk.default_directory() == "/h/.local/state/slurmk"


def test_shims_are_for_everyone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        binaries = installation.install(tmp_path / "new" / "d")
    finally:
        os.umask(before)
    assert binaries.stat().st_mode & 0o777 == 0o755
    for name in installation.COMMANDS:
        assert (binaries / name).stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "new" / "d" / "lib" / "slurmk" / "wire.py").stat().st_mode & 0o777 == 0o644


def test_shims_that_are_there_are_left_alone(tmp_path: Path) -> None:
    binaries = installation.install(tmp_path)
    before = (binaries / "sbatch").stat()
    installation.install(tmp_path)
    assert (binaries / "sbatch").stat().st_ino == before.st_ino


def test_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("up", "--detach", "--dir", tmp_path / "file" / "d")
    assert done.returncode == 1
    assert done.stderr.startswith("slurmk: error: ")
    assert "Traceback" not in done.stderr
