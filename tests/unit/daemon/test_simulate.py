"""``slurmk simulate``: what it prints and writes, and what it says of files that it cannot replay."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

from slurmk.daemon import simulate

HEADER = "; MaxProcs: 10\n"
JOBS = [(1, 0, 100, 10, 200), (2, 10, 50, 10, 60), (3, 20, 30, 1, 40), (4, 30, 10, 2, 20)]
"""Number, submission, run time, size, limit. The first fills the machine for half of its limit."""

KEYS = [
    "jobs",
    "mean_wait",
    "mean_bounded_slowdown",
    "p95_wait",
    "max_wait",
    "utilization",
    "makespan",
    "broken_promises",
    "seconds",
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    lines = [
        f"{job} {submit} -1 {run} {size} -1 -1 {size} {limit} -1 1 1 1 -1 -1 -1 -1 -1\n"
        for job, submit, run, size, limit in JOBS
    ]
    path = tmp_path / "small.swf"
    path.write_text(HEADER + "".join(lines))
    return path


def figures(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, float]:
    assert simulate.main([*map(str, arguments), "--json"]) == 0
    found: dict[str, float] = json.loads(capsys.readouterr().out)
    return found


def test_figures_of_fcfs(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, trace, "--policy", "fcfs")
    assert list(found) == KEYS
    waits = [0, 90, 130, 120]
    assert found["mean_wait"] == sum(waits) / 4
    assert found["max_wait"] == 130
    assert found["makespan"] == 180
    assert found["utilization"] == pytest.approx((1000 + 500 + 30 + 20) / 1800)
    assert found["mean_bounded_slowdown"] == pytest.approx((1 + 140 / 50 + 160 / 30 + 130 / 10) / 4)


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "conservative", "default"])
def test_each_policy_replays_all(trace: Path, capsys: pytest.CaptureFixture[str], policy: str) -> None:
    found = figures(capsys, trace, "--policy", policy)
    assert found["jobs"] == 4
    assert found["broken_promises"] == 0


def test_csv_has_each_start(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "out.csv"
    figures(capsys, trace, "--policy", "conservative", "--csv", written, "--jobs", "3")
    rows = list(csv.DictReader(written.read_text().splitlines()))
    assert [row["job"] for row in rows] == ["1", "2", "3"]
    assert [int(row["start"]) for row in rows] == [0, 100, 150]
    assert [int(row["promised_start"]) for row in rows] == [0, 200, 260]


def test_says_what_is_left_out(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with trace.open("a") as file:
        file.write("5 40 -1 10 1 -1 -1 1 -1 -1 5 1 1 -1 -1 -1 -1 -1\n")
    assert simulate.main([str(trace), "--policy", "fcfs"]) == 0
    assert "left out:                 1 without time limit\n" in capsys.readouterr().out


def test_explains_how_a_job_was_planned(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.main([str(trace), "--policy", "conservative", "--explain", "2"]) == 0
    told = capsys.readouterr().out
    assert "longest wait:" in told
    assert "after        0 s: planned to start after 190 s, 0 wait that came before it" in told
    assert "started after 90 s and ran 50 s; it had been promised a start after 190 s" in told


def test_packed_traces_and_sacct_through_the_command(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = tmp_path / "small.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    for pack in (bz2.compress, lzma.compress):
        (tmp_path / "other").write_bytes(pack(trace.read_bytes()))
        assert figures(capsys, tmp_path / "other", "--policy", "fcfs")["jobs"] == 4
    command = [sys.executable, "-m", "slurmk.client.slurmk", "simulate", str(packed), "--policy", "easy", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.stderr == ""
    assert json.loads(done.stdout)["jobs"] == 4
    text = "JobID|Submit|Start|Elapsed|Timelimit|NCPUS\n1|2026-01-01T00:00:00|2026-01-01T00:00:00|00:01:00|00:02:00|4\n"
    command[4:5] = ["-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=110)
    assert json.loads(done.stdout)["jobs"] == 1
    assert "does not say how large the machine is" in done.stderr


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_plots(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / f"picture.{ending}"
    figures(capsys, trace, "--policy", "easy", "--plot", picture)
    assert picture.read_bytes()[:5] == {"png": b"\x89PNG\r", "svg": b"<?xml"}[ending]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{trace}.gone"], "slurmk: error: {trace}.gone: No such file or directory\n"),
        (["{trace}", "--plot", "x.pdf"], "slurmk: error: x.pdf: --plot writes .png or .svg\n"),
        (["{trace}", "--explain", "77"], "slurmk: error: {trace}: no job 77 is replayed\n"),
        (["{trace}", "--csv", "{trace}/x"], "slurmk: error: {trace}/x: Not a directory\n"),
        (["{trace}.gz"], "slurmk: error: {trace}.gz: Compressed file ended before the end-of-stream marker was reached\n"),
        (["{trace}.bad"], "slurmk: error: {trace}.bad: line 1: 2 fields where a job has 18\n"),
    ],
)
def test_one_line_says_what_is_wrong(trace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    Path(f"{trace}.gz").write_bytes(gzip.compress(trace.read_bytes())[:40])
    Path(f"{trace}.bad").write_text("1 2\n")
    assert simulate.main([argument.format(trace=trace) for argument in arguments]) == 1
    assert capsys.readouterr().err == said.format(trace=trace)
