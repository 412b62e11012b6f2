"""Wrong input of every kind is told what is wrong, submits nothing, and leaves the controller well."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded import Cluster


@pytest.fixture(autouse=True)
def _controller_goes_on(cluster: Cluster) -> Iterator[None]:
    before = cluster.ok("squeue -h -t all -o %i | sort -n | tail -n 1")
    yield
    assert "is UP" in cluster.ok("scontrol ping")
    assert cluster.ok("squeue -h -t all -o %i | sort -n | tail -n 1") == before


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("-p nowhere --wrap true", 1, "sbatch: error: invalid partition specified: nowhere"),
        ("--mem=1T --wrap true", 1, "sbatch: error: Batch job submission failed: "),
        ("-w nonode --wrap true", 1, "sbatch: error: Batch job submission failed: Invalid node name specified"),
        ("-t nonsense --wrap true", 255, "sbatch: error: Invalid --time specification"),
        ("--no-such-option --wrap true", 255, "sbatch: unrecognized option '--no-such-option'"),
        ("--array=1-x --wrap true", 1, "sbatch: error: Batch job submission failed: Invalid job array specification"),
        ("--dependency=afterok:99999999 --wrap true", 1, "sbatch: error: Batch job submission failed: Job dependency problem"),
        ("missing.sh", 1, "sbatch: error: Unable to open file missing.sh"),
        ("--wrap true script.sh", 1, "sbatch: error: Script arguments not permitted with --wrap option"),
    ],
)
def test_refused_submission(cluster: Cluster, arguments: str, code: int, message: str) -> None:
    done = cluster.run(f"sbatch {arguments}")
    assert done.stdout == ""
    assert message in done.stderr
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def written(cluster: Cluster, content: bytes) -> Path:
    path = cluster.work / f"bad-{random.getrandbits(32):x}.sh"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Batch script is empty!"),
        (b"echo no interpreter\n", "This does not look like a batch script"),
        (b"#!/bin/sh\n" + bytes(range(256)) * 10, "contain a NULL character"),
        (b"#!/bin/sh\r\necho dos\r\n", "DOS line breaks"),
        (b"#!/bin/sh\n" + b"#" * 5_000_000, "Pathname of a file, directory or other parameter too long"),
        (b"#!/bin/sh\n" + b"#SBATCH --bogus\n" * 100_000, "unrecognized option '--bogus'"),
    ],
    ids=["empty", "no interpreter", "binary", "dos", "5 MB", "100,000 directives"],
)
def test_bad_script(cluster: Cluster, content: bytes, message: str) -> None:
    done = cluster.run(f"sbatch {written(cluster, content)}", timeout=30)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_garbage_on_the_socket(cluster: Cluster) -> None:
    path = str(cluster.directory / "slurmk.sock")
    generator = random.Random(1)
    for size in (0, 1, 4, 5, 100, 100_000):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            try:
                connection.sendall(generator.randbytes(size))
                connection.sendall(b"\x01\xff\xff\xff\xff")
            except OSError:
                pass


def test_shims_killed_in_mid_request(cluster: Cluster) -> None:
    script = written(cluster, b"#!/bin/sh\n#SBATCH --hold\n" + b"#" * 3_000_000)
    for delay in (0.005, 0.01, 0.02):
        process = subprocess.Popen(
            ["sbatch", "--test-only", str(script)],
            env=dict(cluster.environment),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(delay)
        process.kill()
        process.wait()


def test_many_half_open_connections(cluster: Cluster) -> None:
    path = str(cluster.directory / "slurmk.sock")
    connections = []
    for _ in range(200):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        connection.sendall(b"\x01")
        connections.append(connection)
    started = time.monotonic()
    cluster.ok("squeue -h")
    assert time.monotonic() - started < 10
    for connection in connections:
        connection.close()


def test_non_utf8_arguments_and_names(cluster: Cluster) -> None:
    name = os.fsdecode(b"caf\xe9")
    done = cluster.run(f"sbatch --test-only -J {name} --wrap true")
    assert "Traceback" not in done.stderr


def test_ten_thousand_environment_variables(cluster: Cluster) -> None:
    environment = {f"VARIABLE_{number}": "x" * 50 for number in range(10_000)}
    done = cluster.run("sbatch --test-only --wrap true", environment=environment)
    assert done.returncode == 0, done.stderr
