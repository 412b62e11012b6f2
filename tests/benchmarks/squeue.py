"""Whole-process squeue with 1,000 and with 10,000 jobs waiting."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.benchmarks.measure import arguments, both_sides, in_turn, process_seconds, report
from tests.reference.sides import Side


def fill(side: Side, count: int) -> None:
    """Submit until ``count`` jobs wait, each a record of its own."""
    (side.work / "job.sh").write_text("#!/bin/sh\n#SBATCH --hold\n#SBATCH -n 1 -t 5 -o /dev/null\ntrue\n")
    waiting = int(side.run("squeue -h -r -t PD -o %i | wc -l").output)
    loop = f"for i in $(seq {(count - waiting) // 4}); do sbatch -Q job.sh >/dev/null || exit 1; done"
    with ThreadPoolExecutor(4) as pool:
        for answer in pool.map(lambda _: side.run(loop, timeout=600), range(4)):
            if answer.code:
                raise SystemExit(f"{side.name}: {answer.errors}")


def main() -> None:
    options = arguments(__doc__ or "", runs=9, few=1000, many=9800)
    with both_sides() as sides:
        for count in (options.few, options.many):
            for side in sides:
                fill(side, count)
            plain = in_turn(sides, options.runs, lambda side: process_seconds(side, ["squeue"]))
            report(f"squeue with {count} jobs", {"seconds": plain}, options.json)
            fields = in_turn(
                sides, options.runs, lambda side: process_seconds(side, ["squeue", "-o", "%i %P %j %u %t %M %D %R %q %S"])
            )
            report(f"squeue of ten fields with {count} jobs", {"seconds": fields}, options.json)


if __name__ == "__main__":
    main()
