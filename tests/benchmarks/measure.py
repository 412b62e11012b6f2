"""Shared by the benchmarks: the two sides, timing of whole processes in turn, and how results are printed.

Machines are shared and noisy, so every figure is a median of runs made in turn on both sides, and what is quoted is the
ratio. Without a reference Slurm (SLURMK_REFERENCE names the script that runs it) only slurmk is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.reference.sides import SLURMK, Side, reference_side, slurmk_side

SITE = Path(__file__).parents[1] / "e2e" / "site"


def arguments(description: str, **options: int) -> argparse.Namespace:
    """The command line of a benchmark: ``--json`` and whole-number options with these defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    for name, default in options.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


@contextmanager
def both_sides() -> Iterator[list[Side]]:
    """slurmk and, where there is one, the reference, with the reference's configuration."""
    script = os.environ.get("SLURMK_REFERENCE")
    sides = []
    configuration = str(SITE)
    if script:
        reference = reference_side(script)
        if reference.run("scontrol ping").code == 0:
            sides.append(reference)
            configuration = str(Path(reference.environment["SLURM_CONF"]).parent)
    slurmk, directory = slurmk_side(configuration)
    sides.insert(0, slurmk)
    try:
        yield sides
    finally:
        for side in sides:
            side.run("scancel --quiet $(squeue -h -o %A -t PD,R,S,CF | sort -u) 2>/dev/null", timeout=300)
            shutil.rmtree(side.work, ignore_errors=True)
        subprocess.run([str(SLURMK), "down", "--jobs", "--dir", str(directory)], check=False, capture_output=True)
        shutil.rmtree(directory.parent, ignore_errors=True)


def process_seconds(side: Side, command: list[str]) -> float:
    """Wall-clock seconds of one whole process on a side."""
    program = shutil.which(command[0], path=side.environment["PATH"]) or command[0]
    started = time.perf_counter()
    done = subprocess.run(
        [program, *command[1:]], env=dict(side.environment), cwd=side.work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{side.name}: {' '.join(command)}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    return seconds


def in_turn(sides: list[Side], runs: int, once: Callable[[Side], float]) -> dict[str, float]:
    """The median of ``once`` for each side, the sides taking turns, after one run of each that does not count."""
    seen: dict[str, list[float]] = {side.name: [] for side in sides}
    for turn in range(runs + 1):
        for side in sides:
            seconds = once(side)
            if turn:
                seen[side.name].append(seconds)
    return {name: statistics.median(values) for name, values in seen.items()}


def rate(side: Side, command: list[str], count: int, clients: int) -> float:
    """Whole processes a second when ``clients`` of them run at once."""
    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(lambda _: process_seconds(side, command), range(count)))
    return count / (time.perf_counter() - started)


def report(name: str, figures: Mapping[str, Mapping[str, float]], as_json: bool, better: str = "less") -> None:
    """Print each figure of both sides and their ratio, slurmk's over the reference's."""
    result: dict[str, object] = {"benchmark": name, "better": better}
    for figure, values in figures.items():
        row = dict(values)
        if row.get("reference"):
            row["ratio"] = row["slurmk"] / row["reference"]
        result[figure] = row
        print(f"{name}: {figure}: " + ", ".join(f"{side} {value:.4g}" for side, value in row.items()), file=sys.stderr)
    if as_json:
        print(json.dumps(result))
