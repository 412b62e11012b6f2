"""``python -m slurmk.daemon.simulate``: replay a recorded workload and tell how its jobs would have waited. ``slurmk
simulate`` runs it. It needs no controller.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import io
import json
import lzma
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from slurmk.planner.simulator.replay import COLUMNS, Outcome, Policy, replay
from slurmk.planner.simulator.trace import Trace, TraceError, records_of, trace_of, why_left_out

DESCRIPTION = """Replay a recorded workload (Standard Workload Format, or what sacct -P prints; also packed by gzip,
bzip2 or xz) at full speed and tell how long its jobs would have waited under a policy."""

LABELS = {
    "jobs": ("jobs", "{:,}"),
    "mean_wait": ("mean wait", "{:,.0f} s"),
    "mean_bounded_slowdown": ("mean bounded slowdown", "{:,.2f}"),
    "p95_wait": ("95th percentile of waits", "{:,.0f} s"),
    "max_wait": ("longest wait", "{:,} s"),
    "utilization": ("utilization", "{:.1%}"),
    "makespan": ("makespan", "{:,} s"),
    "broken_promises": ("broken promises", "{:,}"),
    "seconds": ("replayed in", "{:.1f} s"),
}
"""The figures as text."""

STORY_LINES = 40


class Fault(Exception):
    """Why nothing can be replayed or told."""


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says; gives the exit code."""
    options = parser().parse_args(arguments)
    try:
        run(options)
    except (Fault, TraceError) as error:
        return _complain(f"{options.file}: {error}" if isinstance(error, TraceError) else str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        return _complain(f"{error.filename or options.file}: {error.strerror or error}")
    except MemoryError:
        return _complain(f"{options.file}: too large for this machine's memory")
    except KeyboardInterrupt:
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="slurmk simulate", description=DESCRIPTION, allow_abbrev=False)
    made.add_argument("file", metavar="FILE", help="the trace; - for standard input")
    policies = [policy.value for policy in Policy]
    made.add_argument("--policy", choices=policies, default=Policy.DEFAULT.value, help="default: %(default)s")
    made.add_argument("--jobs", type=_positive, metavar="N", help="only the first N jobs")
    size = made.add_mutually_exclusive_group()
    size.add_argument("--procs", type=_positive, metavar="P", help="processors of the machine (default: as the trace says)")
    size.add_argument("--nodes", type=_positive, metavar="N", help="nodes of the machine; jobs count by their nodes then")
    made.add_argument("--fields", metavar="LIST", help="the fields of sacct's output, where it was made with --noheader")
    made.add_argument("--json", action="store_true", help="print the figures as JSON")
    made.add_argument("--csv", metavar="FILE", help="write each job's start there; - for standard output")
    made.add_argument("--plot", metavar="FILE", help="draw utilization, queue and waits, as FILE's ending says (.png or .svg)")
    made.add_argument("--explain", metavar="JOB", help="tell how this job of the trace was planned over time")
    return made


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1 << 30:
        raise argparse.ArgumentTypeError("must be a whole number from 1 on")
    return int(text)


def run(options: argparse.Namespace) -> None:
    """Replay and report."""
    if options.plot and Path(options.plot).suffix.lower() not in (".png", ".svg"):
        raise Fault(f"{options.plot}: --plot writes .png or .svg")
    trace, left_out = _read(options)
    watched = None
    if options.explain is not None:
        if options.explain not in trace.numbers:
            raise Fault(f"{options.file}: no job {options.explain} is replayed")
        watched = trace.numbers.index(options.explain)
    began = time.perf_counter()
    outcome = replay(trace, Policy(options.policy), watched)
    figures = {**outcome.figures(), "seconds": round(time.perf_counter() - began, 3)}
    if options.csv:
        _write_csv(options.csv, outcome)
    if options.plot:
        _plot(options.plot, outcome)
    if options.csv == "-":
        return
    if options.json:
        print(json.dumps(figures))
    else:
        for key, value in figures.items():
            label, form = LABELS[key]
            print(f"{label + ':':<26}{form.format(value)}")
        if left_out:
            print(f"{'left out:':<26}{left_out}")
    if watched is not None:
        print("\n".join(story(outcome, watched)), file=sys.stderr if options.json else sys.stdout)


def _read(options: argparse.Namespace) -> tuple[Trace, str]:
    """The trace, and how many jobs of it are not replayed."""
    with _opened(options.file) as file:
        try:
            records, machine = records_of(file, options.fields or "")
        except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
            raise Fault(f"{options.file}: {error}") from None
    if not (options.procs or options.nodes or machine.processors or machine.nodes):
        print(f"slurmk: {options.file} does not say how large the machine is: taken to be as large as was in use at once; "
              "--procs or --nodes says it", file=sys.stderr)  # fmt: skip
    trace = trace_of(records, machine, procs=options.procs, nodes=options.nodes, jobs=options.jobs)
    return trace, why_left_out(records, trace.procs)


PACKED: Mapping[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
"""How packed files begin, and what unpacks them."""


@contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    """The text of a file, unpacked where it begins as packed ones do."""
    with sys.stdin.buffer if path == "-" else open(path, "rb") as raw:
        buffered = io.BufferedReader(raw) if not isinstance(raw, io.BufferedReader) else raw  # type: ignore[type-var]
        began = buffered.peek(6)
        unpack = next((unpack for mark, unpack in PACKED.items() if began.startswith(mark)), None)
        binary = unpack(buffered) if unpack else buffered
        yield io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace")


def _write_csv(path: str, outcome: Outcome) -> None:
    if path == "-":
        _write_rows(sys.stdout, outcome)
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        _write_rows(file, outcome)


def _write_rows(file: IO[str], outcome: Outcome) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(outcome.rows())


def _plot(path: str, outcome: Outcome) -> None:
    try:
        from slurmk.daemon.plots import draw
    except ImportError:
        raise Fault("--plot needs matplotlib: pip install 'slurmk[plot]'") from None
    draw(path, outcome)


def story(outcome: Outcome, job: int) -> list[str]:
    """How a job was planned over time: a line whenever its planned start changed."""
    trace, submit = outcome.trace, int(outcome.trace.submit[job])
    lines = [f"job {trace.numbers[job]}: {trace.size[job]} of {trace.procs} processors for at most {trace.limit[job]} s, "
             f"submitted at {submit + trace.origin}"]  # fmt: skip
    told: list[str] = []
    last: object = ()
    for moment in outcome.story:
        if moment.planned == last:
            continue
        last = moment.planned
        told.append(f"  after {moment.time - submit:>8} s: {_expectation(moment.planned, moment.time, submit)}, "
                    f"{moment.before} {'waits' if moment.before == 1 else 'wait'} that came before it")  # fmt: skip
    if len(told) > STORY_LINES:
        half = STORY_LINES // 2
        told[half:-half] = [f"  ... {len(told) - STORY_LINES} more changes ..."]
    promised = int(outcome.promised[job])
    waited = int(outcome.starts[job]) - submit
    end = f"  started after {waited} s and ran {trace.run[job]} s"
    if promised < submit + 50 * 365 * 86400:
        end += f"; it had been promised a start after {promised - submit} s"
    return [*lines, *told, end]


def _expectation(planned: int | None, now: int, submit: int) -> str:
    if planned is None:
        return "nothing promised yet"
    return "starts" if planned <= now else f"planned to start after {planned - submit} s"


def _complain(text: str) -> int:
    print(f"slurmk: error: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
