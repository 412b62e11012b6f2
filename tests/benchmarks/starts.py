"""Jobs started and ended a second, from a queue of short jobs, and seconds from submission to the first line of output."""

from __future__ import annotations

import subprocess
import time

from tests.benchmarks.measure import arguments, both_sides, in_turn, report
from tests.reference.sides import Side


def started_per_second(side: Side, count: int) -> float:
    """Release an array of ``count`` jobs that end at once; jobs done a second until the last one is."""
    answer = side.run(f"sbatch --parsable --hold --array=1-{count} -n 1 --mem=1 -t 1 -o /dev/null --wrap true")
    job = answer.output.strip()
    started = time.perf_counter()
    side.run(f"scontrol release {job}")
    while side.run(f"squeue -h -j {job} -t PD,R,CG,CF 2>/dev/null | head -n 1").output:
        time.sleep(0.1)
    return count / (time.perf_counter() - started)


def first_line(side: Side) -> float:
    """Seconds from the start of sbatch until the job's output file holds its first line."""
    target = side.work / f"first-{time.monotonic_ns()}"
    started = time.perf_counter()
    subprocess.run(
        ["bash", "-c", f"sbatch -Q -n 1 -t 1 -o {target} --wrap 'echo here' >/dev/null"],
        env=dict(side.environment),
        cwd=side.work,
        check=True,
    )
    while not target.exists() or not target.stat().st_size:
        time.sleep(0.001)
        if time.perf_counter() - started > 60:
            raise SystemExit(f"{side.name}: no output within a minute")
    return time.perf_counter() - started


def main() -> None:
    options = arguments(__doc__ or "", jobs=200, runs=10)
    with both_sides() as sides:
        latency = in_turn(sides, options.runs, first_line)
        report("submission to first line of output", {"seconds": latency}, options.json)
        throughput = in_turn(sides, 2, lambda side: started_per_second(side, options.jobs))
        report("jobs started", {"jobs_per_second": throughput}, options.json, better="more")


if __name__ == "__main__":
    main()
