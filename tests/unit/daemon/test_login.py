"""The environment of a login: read once for many, whatever start-up files print, and never waited for without end."""

from __future__ import annotations

import asyncio
import os
import pwd
import time
from pathlib import Path

import pytest

from slurmk.daemon import login
from slurmk.daemon.login import LoginEnvironments, LoginError, least_environment, parsed
from slurmk.model.job import Credentials

ME = Credentials(os.getuid(), os.getgid(), pwd.getpwuid(os.getuid()).pw_name, "group")


def test_what_stands_behind_the_mark() -> None:
    output = b"Welcome\nA=0\0SLURMK-ENVIRONMENT-BEGINS\nA=1\0B=x\ny=z\0PWD=/h\0nothing\0=5\0C=\0"
    assert parsed(output) == {b"A": b"1", b"B": b"x\ny=z", b"C": b""}
    assert parsed(b"A=1\0") == {}


@pytest.mark.skipif(pwd.getpwuid(os.getuid()).pw_shell.endswith(("nologin", "false")), reason="this account has no login")
def test_a_real_login() -> None:
    found = asyncio.run(LoginEnvironments().of(ME))
    assert found[b"USER"] == os.fsencode(ME.user_name)
    assert found[b"HOME"]
    assert b"PATH" in found
    assert b"PWD" not in found


def test_jobs_that_run_elsewhere_get_the_least() -> None:
    found = asyncio.run(LoginEnvironments(elsewhere=True).of(ME))
    assert found == least_environment(ME)
    assert b"PATH" not in found


def stub(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> Path:
    """Have logins be this shell script, which says how often it ran by lines of the file that is returned."""
    count = folder / "count"
    monkeypatch.setattr(login, "_words", lambda credentials: ["/bin/sh", "-c", f"echo >>{count}; {script}"])
    return count


SAYS = "echo noise; echo SLURMK-ENVIRONMENT-BEGINS; printf 'A=1\\0'"


def test_many_at_once_ask_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    count = stub(monkeypatch, tmp_path, f"sleep 0.1; {SAYS}")

    async def ask() -> list[object]:
        logins = LoginEnvironments()
        first = await asyncio.gather(*(logins.of(ME) for _ in range(50)))
        return [*first, await logins.of(ME)]

    assert asyncio.run(ask()) == [{b"A": b"1"}] * 51
    assert count.read_text() == "\n"


@pytest.mark.parametrize("script", ["exit 1", f"{SAYS}; exit 3", "true", "echo SLURMK-ENVIRONMENT-BEGINS"])
def test_a_login_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    count = stub(monkeypatch, tmp_path, script)

    async def ask_twice() -> None:
        logins = LoginEnvironments()
        for _ in range(2):
            with pytest.raises(LoginError, match="cannot be read"):
                await logins.of(ME)

    asyncio.run(ask_twice())
    assert count.read_text() == "\n\n"


def test_a_login_that_hangs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stub(monkeypatch, tmp_path, f"sleep 60 & {SAYS}; wait")
    began = time.monotonic()
    with pytest.raises(LoginError, match=r"took more than 0\.2 s"):
        asyncio.run(LoginEnvironments(longest=0.2).of(ME))
    assert time.monotonic() - began < 10


def test_a_login_that_says_too_much_is_cut(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(login, "LARGEST", 100_000)
    stub(monkeypatch, tmp_path, "exec yes")
    with pytest.raises(LoginError, match="says too much"):
        asyncio.run(LoginEnvironments().of(ME))
