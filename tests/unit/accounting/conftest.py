"""Databases for the tests: an SQLite file, and a Postgres server where this machine has one."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accounting.store import Store

_PLACES = ("/usr/local/bin", "/usr/lib/postgresql/17/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/15/bin")


def _program(name: str) -> str | None:
    return shutil.which(name) or next((f"{place}/{name}" for place in _PLACES if os.access(f"{place}/{name}", os.X_OK)), None)


def _unprivileged() -> tuple[int, int]:
    """Postgres does not run as root."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    user = pwd.getpwnam("nobody")
    return user.pw_uid, user.pw_gid


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    initdb, postgres = _program("initdb"), _program("postgres")
    if initdb is None or postgres is None:
        pytest.skip("no Postgres on this machine")
    if sys.platform != "linux":
        pytest.skip("Postgres is started on Linux only")
    user, group = _unprivileged()
    directory = Path(tempfile.mkdtemp(prefix="slurmk-postgres-"))
    os.chmod(directory, 0o700)
    os.chown(directory, user, group)
    demoted = {"user": user, "group": group, "extra_groups": []} if os.geteuid() == 0 else {}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    data = directory / "data"
    subprocess.run([initdb, "-D", data, "-U", "slurmk", "--auth=trust", "-E", "UTF8", "-N"], check=True, **demoted, **quiet)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [postgres, "-D", data, "-p", str(port), "-k", directory, "-c", "listen_addresses=127.0.0.1"]
    server = subprocess.Popen(command, **demoted, **quiet)
    try:
        _wait_for(port)
        yield f"postgresql://slurmk@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(directory, ignore_errors=True)


def _wait_for(port: int) -> None:
    import psycopg

    for _ in range(150):
        try:
            psycopg.connect(f"postgresql://slurmk@127.0.0.1:{port}/postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("Postgres did not start")


_databases = 0


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/accounting.sqlite"
    import psycopg

    server = request.getfixturevalue("postgres_url")
    global _databases
    _databases += 1
    name = f"test{_databases}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server.rpartition('/')[0]}/{name}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(url)
    opened.open()
    yield opened
    opened.close()
