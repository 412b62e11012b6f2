"""Whole-process sbatch: seconds one after another, and submissions a second from four clients at once."""

from __future__ import annotations

from tests.benchmarks.measure import arguments, both_sides, in_turn, process_seconds, rate, report


def main() -> None:
    options = arguments(__doc__ or "", runs=60, burst=400, clients=4)
    with both_sides() as sides:
        for side in sides:
            (side.work / "job.sh").write_text("#!/bin/sh\n#SBATCH --hold\n#SBATCH -n 1 -t 5 -o /dev/null\ntrue\n")
        command = ["sbatch", "job.sh"]
        one = in_turn(sides, options.runs, lambda side: process_seconds(side, command))
        many = in_turn(sides, 3, lambda side: rate(side, command, options.burst // 4, options.clients))
        report("sbatch", {"seconds": one}, options.json)
        report("sbatch from 4 clients", {"submissions_per_second": many}, options.json, better="more")


if __name__ == "__main__":
    main()
