"""What a task prolog's lines do, and how its failures are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurmk.stepd.hooks import Failed, obey, run_task_prolog, task_epilogs, task_prologs


def test_lines_of_a_prolog() -> None:
    environment = {"HOME": "/root", "KEPT": "1"}
    said = b"""export FOO=bar baz
unset HOME
print hello from prolog
print   spaced  text
printx
export  A = b
export NOEQ
exportX=1
 export LEAD=1
unset
junk line
export LAST=end"""
    assert obey(said, environment) == b"hello from prolog\nspaced  text\n"
    assert environment == {"KEPT": "1", "FOO": "bar baz", "A": " b", "LAST": "end"}


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_prolog_changes_the_environment(tmp_path: Path) -> None:
    program = script(tmp_path / "p", 'echo "export V=$W$SLURM_SCRIPT_CONTEXT"; echo print this; echo lost >&2')
    environment = {"W": "w-"}
    assert run_task_prolog(task_prologs(None, program)[0], environment) == b"this\n"
    assert environment == {"W": "w-", "V": "w-prolog_task", "SLURM_SCRIPT_CONTEXT": "prolog_task"}


@pytest.mark.parametrize(
    ("body", "code", "lines"),
    [
        ("exit 3", 3, ["TaskProlog failed status=3"]),
        ("kill -9 $$", 1, ["slurm task_prolog did not exit normally. reason: ", "TaskProlog failed status=1"]),
    ],
)
def test_a_prolog_that_fails(tmp_path: Path, body: str, code: int, lines: list[str]) -> None:
    hook = task_prologs(script(tmp_path / "p", body), None)[0]
    with pytest.raises(Failed) as caught:
        run_task_prolog(hook, {})
    assert (caught.value.code, caught.value.lines) == (code, lines)


def test_a_prolog_that_cannot_be_run(tmp_path: Path) -> None:
    for program, reason in (
        ("./p", "is not a fully qualified pathname (./p)"),
        (f"{tmp_path}/none", f"can not be executed ({tmp_path}/none) No such file or directory"),
    ):
        with pytest.raises(Failed) as caught:
            run_task_prolog(task_prologs(None, program)[0], {})
        assert caught.value.lines == [
            f"run_command: user task_prolog {reason}",
            "user task_prolog did not exit normally. reason: Run command failed - configuration error",
            "--task-prolog failed status=1",
        ]


def test_the_order_of_prologs_and_epilogs() -> None:
    assert [hook.program for hook in task_prologs("/site", "/user")] == ["/site", "/user"]
    assert [hook.program for hook in task_epilogs("/site", "/user")] == ["/user", "/site"]
    assert task_prologs("", None) == []
