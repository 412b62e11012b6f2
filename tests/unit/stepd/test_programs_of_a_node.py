"""Prolog and Epilog as stepd runs them: which, in which order, with what in their environment, and how they fail."""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from slurmk.stepd import site_programs
from slurmk.stepd.site_programs import Failed, find, run, variables

JOB: dict[str, Any] = {
    "job": 5,
    "restart": 1,
    "array": None,
    "name": "secret",
    "account": "phys",
    "partition": "debug",
    "qos": "normal",
    "cluster": "c",
    "sluid": "s1",
    "uid": 1000,
    "gid": 1001,
    "user": "alice",
    "nodes": [{"node": "n1", "cpus": 2, "gres": [{"name": "gpu", "type": "", "count": 2, "indices": [1, 3]}]}],
    "start_time": 100,
    "end_time": 160,
    "request": {},
    "parameters": {"SLURM_CONF": "/etc/slurm/slurm.conf"},
    "site_programs": {"prolog": [], "epilog": [], "variables": {"SLURM_JOB_COMMENT": "hey"}},
}


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def ran(kind: str, *named: str, timeout: float | None = None) -> None:
    """Run programs to their end, with a process reaper as stepd has one. Raises Failed."""
    job = dict(JOB, site_programs=dict(JOB["site_programs"], **{kind: list(named), f"{kind}_timeout": timeout}))

    async def reaped() -> None:
        running: dict[int, asyncio.Future[int]] = {}

        async def reap() -> None:
            while True:
                for process in list(running):
                    found, status = os.waitpid(process, os.WNOHANG)  # noqa: ASYNC222  (it does not wait)
                    if found:
                        running.pop(process).set_result(status)
                await asyncio.sleep(0.01)

        reaper = asyncio.create_task(reap())
        try:
            await run(job, 0, kind, running.__setitem__)
        finally:
            reaper.cancel()

    asyncio.run(reaped())


def test_what_they_are_told() -> None:
    told = variables(JOB, 0, "prolog")
    assert told["SLURM_SCRIPT_CONTEXT"] == "prolog_slurmd"
    assert (told["SLURMD_NODENAME"], told["SLURM_JOB_GPUS"], told["CUDA_VISIBLE_DEVICES"]) == ("n1", "1,3", "1,3")
    assert (told["SLURM_JOB_COMMENT"], told["SLURM_JOB_RESTART_COUNT"], told["SLURM_UID"]) == ("hey", "1", "1000")
    assert not {"SLURM_JOB_NAME", "SLURM_JOB_EXIT_CODE", "PATH", "HOME", "TMPDIR"} & told.keys()


def test_what_an_epilog_is_told_of_the_end() -> None:
    ended = {"exit_code": 3 << 8, "derived_exit_code": 9, "end_time": 150, "restarts": 2}
    told = variables(JOB, 0, "epilog", ended)
    assert (told["SLURM_JOB_EXIT_CODE"], told["SLURM_JOB_EXIT_CODE2"]) == ("768", "3:0")
    assert (told["SLURM_JOB_DERIVED_EC"], told["SLURM_JOB_END_TIME"]) == ("9", "150")
    assert told["SLURM_JOB_RESTART_COUNT"] == "2"


def test_a_pattern_is_taken_from_its_last_name_to_its_first(tmp_path: Path) -> None:
    for name in ("1", "2", ".hidden"):
        script(tmp_path / name, "true")
    assert find("prolog", [f"{tmp_path}/*"], "/etc") == [f"{tmp_path}/2", f"{tmp_path}/1"]
    assert find("prolog", ["1", "2"], str(tmp_path)) == [f"{tmp_path}/1", f"{tmp_path}/2"]


def test_one_that_is_missing_keeps_the_others_from_running(tmp_path: Path) -> None:
    first = script(tmp_path / "first", f"touch {tmp_path}/ran")
    missing = f"{tmp_path}/missing"
    with pytest.raises(Failed, match=rf"prolog: Unable to create list of paths \[{re.escape(missing)}\]"):
        ran("prolog", first, missing)
    assert not (tmp_path / "ran").exists()


def test_they_run_until_one_fails(tmp_path: Path) -> None:
    first = script(tmp_path / "first", f"echo $SLURM_JOB_ID >> {tmp_path}/ran")
    second = script(tmp_path / "second", "echo broken; exit 3")
    third = script(tmp_path / "third", f"echo third >> {tmp_path}/ran")
    with pytest.raises(Failed, match=r"prolog failed status=3:0 output:broken"):
        ran("prolog", first, second, third)
    assert (tmp_path / "ran").read_text() == "5\n"


def test_one_that_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(Failed, match="can not be executed"):
        ran("prolog", f"{tmp_path}/plain")


def test_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="epilog failed status=0:15"):
        ran("epilog", script(tmp_path / "slow", "exec sleep 60"), timeout=0.2)


def test_one_that_dies_of_a_signal(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="prolog failed status=0:9"):
        ran("prolog", script(tmp_path / "dies", "kill -9 $$"))


@pytest.mark.parametrize(("output", "timeout", "waits"), [(" >/dev/null 2>&1", None, False), ("", 0.3, True)])
def test_what_it_leaves_behind_ends_with_it(tmp_path: Path, output: str, timeout: float | None, waits: bool) -> None:
    """At once; or once it has used up the time that there is, where it holds the program's output."""
    began = time.monotonic()
    ran("prolog", script(tmp_path / "leaves", f"sleep 60{output} & echo $! > {tmp_path}/left"), timeout=timeout)
    assert (time.monotonic() - began >= 0.3) >= waits
    left = int((tmp_path / "left").read_text())
    end = time.monotonic() + 10
    while lives(left) and time.monotonic() < end:
        time.sleep(0.01)
    assert not lives(left)


def test_what_it_started_is_waited_for_while_it_may_say_something(tmp_path: Path) -> None:
    began = time.monotonic()
    ran("epilog", script(tmp_path / "talks", "(sleep 0.3; echo late) &"))
    assert time.monotonic() - began >= 0.3


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_who_has_programs_and_how_long_they_may_take() -> None:
    job = dict(JOB, site_programs={"prolog": ["/p"], "prolog_timeout": 7, "flags": ["alloc"]})
    assert (site_programs.has(job, "prolog"), site_programs.has(job, "epilog")) == (True, False)
    assert (site_programs.timeout(job, "prolog"), site_programs.timeout(job, "epilog")) == (7.0, None)
    assert (site_programs.flagged(job, "alloc"), site_programs.flagged(job, "nohold")) == (True, False)
    assert not site_programs.has(dict(JOB, site_programs={}), "prolog")
