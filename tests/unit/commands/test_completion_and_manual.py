"""Shell completion and man pages: every option is in them, and the shells and man read them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from slurmk.commands.completion import FILES, SHELLS, bash
from slurmk.commands.manual import SUMMARIES, install, page
from slurmk.commands.option_rows import commands, rows


@pytest.mark.parametrize("command", commands())
def test_every_option_has_a_place_and_a_meaning(command: str) -> None:
    text = page(command).replace("\\-", "-")
    assert f"\n{command} - {SUMMARIES[command]}\n" in text
    for row in rows(command):
        assert all(f"\\fB{flag}\\fR" in text for flag in row.flags), row
        assert row.meaning or row.note, row


def test_what_man_reads(tmp_path: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff")
    install(tmp_path / "share")
    for command in commands():
        path = tmp_path / "share" / "man" / "man1" / f"{command}.1"
        said = subprocess.run(["groff", "-man", "-Tutf8", "-ww", path], capture_output=True, text=True, check=True)
        assert said.stderr == ""
    assert all((tmp_path / "share" / name).read_text() == SHELLS[shell]() for shell, name in FILES.items())


def test_nothing_is_written_for_a_directory_that_has_gone(tmp_path: Path) -> None:
    install(tmp_path / "gone" / "share")
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (["sbatch", "--ntasks-per-s"], {"--ntasks-per-socket="}),
        (["squeue", "--noh"], {"--noheader"}),
        (["sbatch", "-p", "c"], {"cpu"}),
        (["sbatch", "--partition", "=", "c"], {"cpu"}),
        (["sbatch", "--cpus-per"], {"--cpus-per-gpu=", "--cpus-per-task="}),
        (["scancel", "1"], {"17", "18"}),
    ],
)
def test_bash_completes(tmp_path: Path, typed: list[str], found: set[str]) -> None:
    (tmp_path / "completion").write_text(bash())
    words = " ".join(f"'{word}'" for word in typed)
    script = f"""
        sinfo() {{ echo debug; echo cpu; }}
        squeue() {{ echo 17; echo 18; }}
        compopt() {{ :; }}
        . {tmp_path}/completion
        COMP_WORDS=({words}) COMP_CWORD={len(typed) - 1}
        _slurmk_{typed[0]} && printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert (set(said.stdout.split()), said.stderr) == (found, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_option(shell: str, tmp_path: Path) -> None:
    text = SHELLS[shell]()
    for command in commands():
        for row in rows(command):
            assert all((f"-l {name}" if shell == "fish" else f"--{name}") in text for name in row.names), row
    if shutil.which(shell) is not None:
        (tmp_path / "completion").write_text(text)
        subprocess.run([shell, "-n", tmp_path / "completion"], check=True)
