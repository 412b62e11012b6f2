"""The same commands on both sides, and the same answers."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from itertools import groupby

import pytest
from cases import CASES
from sides import Case, Side, answers, situate

pytestmark = [pytest.mark.reference, pytest.mark.timeout(600)]

GROUPS = [list(group) for _, group in groupby(CASES, key=lambda case: (case.setup, case.until))]
ATTEMPTS = 4
"""How often a group is compared while others use the reference."""
PATIENCE = 60.0
"""Seconds to wait for others' jobs on the reference to end."""


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0].name}+{len(group) - 1}"[:80])
def test_same_answers(reference: Side, slurmk: Side, group: list[Case]) -> None:
    for _ in range(ATTEMPTS):
        quiet = wait_for_quiet(reference)
        differences = compare((reference, slurmk), group)
        if not differences or (quiet and reference.quiet()):
            break
    if differences:
        pytest.fail(f"{len(differences)} of {len(group)} differ\n\n" + "\n".join(differences), pytrace=False)


def wait_for_quiet(side: Side) -> bool:
    """Whether a side came to have nobody else's jobs."""
    end = time.monotonic() + PATIENCE
    while not side.quiet():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def compare(sides: tuple[Side, Side], group: list[Case]) -> list[str]:
    """What the sides answer differently, each in a situation of its own."""

    def said(side: Side) -> list[str]:
        situate(side, group[0].setup, group[0].until)
        try:
            return answers(side, group)
        finally:
            side.clear()

    with ThreadPoolExecutor(len(sides)) as threads:
        reference, slurmk = threads.map(said, sides)
    differences = []
    for case, expected, actual in zip(group, reference, slurmk, strict=True):
        if case.differs:
            if expected == actual:
                differences.append(f"$ {case.name}\nno longer differs: {case.differs}")
        elif expected != actual:
            differences.append(f"$ {case.name}\n{difference(expected, actual)}")
    return differences


def difference(expected: str, actual: str) -> str:
    """The lines that differ, the reference's marked with -."""
    lines = unified_diff(expected.splitlines(), actual.splitlines(), lineterm="", n=1)
    return "\n".join(list(lines)[2:]) + "\n"
