"""The same commands on both sides, and the same answers."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from itertools import groupby

import pytest
from cases import CASES
from sides import Case, Side, answers, situate

pytestmark = [pytest.mark.reference, pytest.mark.timeout(900)]

MOST = 250
"""Cases of a group; more of one situation are several groups."""
GROUPS = [
    cases[start : start + MOST]
    for cases in (list(group) for _, group in groupby(CASES, key=lambda case: (case.setup, case.until)))
    for start in range(0, len(cases), MOST)
]
ATTEMPTS = 4
"""How often a group is compared while others use the reference."""
CERTAIN = 2
"""How often the same case has to differ: once may be a job that was looked at a moment too early."""
PATIENCE = 60.0
"""Seconds to wait for others' jobs on the reference to end."""


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0].name}+{len(group) - 1}"[:80])
def test_same_answers(reference: Side, slurmk: Side, group: list[Case]) -> None:
    standing: dict[str, str] = {}
    seen = 0
    for _ in range(ATTEMPTS):
        quiet = wait_for_quiet(reference)
        differences = compare((reference, slurmk), group)
        if not differences:
            return
        if quiet and reference.quiet():
            standing = {name: text for name, text in differences.items() if seen == 0 or name in standing}
            seen += 1
            if not standing:
                return
            if seen == CERTAIN:
                break
    differing = list((standing if seen else differences).values())
    pytest.fail(f"{len(differing)} of {len(group)} differ\n\n" + "\n".join(differing), pytrace=False)


def wait_for_quiet(side: Side) -> bool:
    """Whether a side came to have nobody else's jobs."""
    end = time.monotonic() + PATIENCE
    while not side.quiet():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def compare(sides: tuple[Side, Side], group: list[Case]) -> dict[str, str]:
    """What the sides answer differently, by case, each in a situation of its own."""

    def said(side: Side) -> list[str]:
        situate(side, group[0].setup, group[0].until)
        try:
            return answers(side, group)
        finally:
            side.clear()

    with ThreadPoolExecutor(len(sides)) as threads:
        reference, slurmk = threads.map(said, sides)
    differences = {}
    for case, expected, actual in zip(group, reference, slurmk, strict=True):
        if case.differs:
            if expected == actual:
                differences[case.name] = f"$ {case.name}\nno longer differs: {case.differs}"
        elif expected != actual:
            differences[case.name] = f"$ {case.name}\n{difference(expected, actual)}"
    return differences


def difference(expected: str, actual: str) -> str:
    """The lines that differ, the reference's marked with -."""
    lines = unified_diff(expected.splitlines(), actual.splitlines(), lineterm="", n=1)
    return "\n".join(list(lines)[2:]) + "\n"
