"""Record the reference's answers anew: ``SLURMK_REFERENCE=SCRIPT python tests/reference/record.py [--add FILE] [PATTERN]``.

Without PATTERN every case of ``recorded/submissions.jsonl`` is run on the reference and its answer replaced; with one, those
whose name has it. ``--add`` reads more cases, one JSON object a line with at least ``run``, and records them behind the others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sides import Side, reference_side
from submissions import CHANGING, RECORDED, SubmissionCase, fields_of, load, with_places

DEFAULTS = asdict(SubmissionCase(run=""))
PATIENCE = 20
"""Seconds that a submission may take; what waits longer is no case for this file."""


def main() -> None:
    parser = argparse.ArgumentParser(description="record answers of the reference Slurm")
    parser.add_argument("--add", type=Path)
    parser.add_argument("pattern", nargs="?", default="")
    arguments = parser.parse_args()
    side = reference_side(os.environ["SLURMK_REFERENCE"])
    known = load() if RECORDED.exists() else ()
    added = _added(arguments.add, {case.name for case in known}) if arguments.add else []
    chosen = [case for case in known if arguments.pattern in case.name] if not arguments.add else []
    plain = {case.command: dict(case.fields) for case in known if case.plain}
    for case in [*chosen, *added]:
        if case.plain:
            answer = record(side, case, {})
            plain[case.command] = dict(answer.fields) if answer is not None else {}
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda case: record(_fork(side), case, plain), [*chosen, *added]))
    by_name = {answer.name: answer for answer in answers if answer is not None}
    write([by_name.pop(case.name, case) for case in known] + list(by_name.values()))


def _added(path: Path, known: set[str]) -> list[SubmissionCase]:
    cases = [SubmissionCase(**json.loads(line)) for line in path.read_text().splitlines() if line.strip()]
    return list({case.name: case for case in cases if case.name not in known}.values())


def _fork(side: Side) -> Side:
    """The same cluster with a directory of its own, so that cases may run at once."""
    work = side.work / os.urandom(6).hex()
    work.mkdir()
    work.chmod(0o1777)
    return Side(side.name, side.environment, work)


def record(side: Side, case: SubmissionCase, plain: dict[str, dict[str, str | None]]) -> SubmissionCase | None:
    """The case with what the side says to it; None for one that takes too long, which is told."""
    if case.script is not None:
        (side.work / "s.sh").write_bytes(case.script.encode("utf-8", "surrogateescape"))
    try:
        answer = side.run(case.line, stdin=case.stdin, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        print(f"not recorded, still waiting: {case.name}")
        side.clear()
        return None
    shown = ""
    if case.command != "sbatch":
        shown, answer = answer.output, replace(answer, output="" if "JobId=" in answer.output else answer.output)
    if not side.jobs and answer.code == 0 and case.command == "sbatch":
        side.jobs += sorted(side.own())
    if side.jobs and case.command == "sbatch":
        shown = side.run("scontrol show job {0}").output
    side.run(f"scancel -Q {' '.join(map(str, side.jobs))}") if side.jobs else None
    fields = fields_of(_normalised(side, shown))
    if case.command != "sbatch":
        fields.pop("Priority", None)  # of a job that runs, it grows
    if not case.plain:
        usual = plain.get(case.command, {})
        fields = (
            {name: fields.get(name) for name in {**usual, **fields} if fields.get(name) != usual.get(name)} if fields else {}
        )
    return replace(
        case,
        code=answer.code,
        output=_normalised(side, answer.output),
        errors=CHANGING.sub("", _normalised(side, answer.errors)),
        fields=fields,
        job=bool(shown),
    )


def _normalised(side: Side, text: str) -> str:
    text = with_places(text, side.jobs)
    return text.replace(str(side.work), "{work}").replace(os.uname().nodename, "{host}")


def write(cases: Iterable[SubmissionCase]) -> None:
    """Keep the cases, one a line, without what is as usual."""
    lines = [json.dumps(_row(case), ensure_ascii=True) for case in cases]
    RECORDED.write_text("".join(f"{line}\n" for line in lines))


def _row(case: SubmissionCase) -> dict[str, Any]:
    return {name: value for name, value in asdict(case).items() if value != DEFAULTS[name]}


if __name__ == "__main__":
    main()
