"""What a real Slurm answered to the other commands' cases, so that they are compared where none is installed, too.

``recorded/answers.json`` holds the normalised answers by module and case; ``python tests/reference/recorded_answers.py MODULE
...`` records modules anew on the reference that SLURMK_REFERENCE names, when nobody else uses it. A case whose answer is not
the same twice there has none. ``site`` is the reference's configuration, with other paths.
"""

from __future__ import annotations

import json
import os
import pwd
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from sides import Case, Side, answers, reference_side, situate

RECORDED = Path(__file__).parent / "recorded" / "answers.json"
SITE = Path(__file__).parent / "site"
LONGEST = 1.0
"""Seconds that the cases of a situation may take on average to be kept: `make test` runs them all."""
PATIENCE = float(os.environ.get("SLURMK_PATIENCE", "240"))
"""Seconds to wait until nobody else uses the reference. Cases with a situation of their own are not recorded beside others."""


@dataclass(frozen=True)
class Group:
    """Cases that share a situation, and their recorded answers."""

    module: str
    cases: tuple[Case, ...]
    answers: tuple[str, ...]


def load() -> dict[str, Any]:
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {"first_job": 1, "answers": {}}


def cases_of(module: str) -> list[list[Case]]:
    """The cases of a module that can be compared, by situation."""
    cases = [case for case in import_module(f"cases_{module}").CASES if not case.differs]
    return [list(group) for _, group in groupby(cases, key=lambda case: (case.setup, case.until))]


def groups() -> Iterator[Group]:
    """Every recorded group, without the cases of users whom this machine does not have."""
    for module, recorded in load()["answers"].items():
        for situation, group in enumerate(cases_of(module)):
            named = [(key(situation, case), case) for case in group if case.user is None or has_user(case.user)]
            known = [(name, case) for name, case in named if name in recorded]
            if known:
                yield Group(module, tuple(case for _, case in known), tuple(recorded[name] for name, _ in known))


def key(situation: int, case: Case) -> str:
    """What a case's answer is kept by: the same command may be asked in several situations of its module."""
    return f"{situation}: {case.name}"


def has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def record(side: Side, module: str) -> dict[str, str]:
    """The answers of a side to a module's cases that are the same twice."""
    found: dict[str, str] = {}
    for situation, group in enumerate(cases_of(module)):
        told = []
        seconds = 0.0
        for _ in range(2):
            end = time.monotonic() + PATIENCE
            while not (quiet := side.quiet()) and time.monotonic() < end:
                time.sleep(0.5)
            if group[0].setup and not quiet:
                break
            situate(side, group[0].setup, group[0].until)
            begun = time.monotonic()
            told.append(answers(side, group))
            seconds = time.monotonic() - begun
            side.clear()
        if len(told) < 2:
            print(f"{module}: {len(group)} cases left out, others use the reference", flush=True)
            continue
        if seconds > LONGEST * len(group):
            print(f"{module}: {len(group)} cases left out, they take {seconds:.0f} s", flush=True)
            continue
        found |= {
            key(situation, case): _moved(side, one) for case, one, other in zip(group, *told, strict=True) if one == other
        }
        print(
            f"{module}: {len(group)} cases, {sum(one == other for one, other in zip(*told, strict=True))} recorded", flush=True
        )
    return found


def _moved(side: Side, text: str) -> str:
    """``text`` with the places of the reference as ``site`` has them."""
    state = Path(side.environment["SLURM_CONF"]).parents[1]
    programs = Path(side.environment["PATH"].partition(":")[0]).parent / "usr"
    return text.replace(str(programs), "/usr").replace(str(state), "/var/lib/slurm-reference")


def main() -> None:
    side = reference_side(os.environ["SLURMK_REFERENCE"])
    for module in sys.argv[1:]:
        told = record(side, module)
        kept = load()  # others may have recorded other modules meanwhile
        if len(str(kept["first_job"])) != 5:
            kept["first_job"] = int(side.run("scontrol show config | awk '$1 == \"NEXT_JOB_ID\" { print $3 }'").output)
        kept["answers"][module] = told
        RECORDED.write_text(json.dumps(kept, indent=0, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
