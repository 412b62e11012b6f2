"""The same commands on both sides, and the same answers."""

from __future__ import annotations

from itertools import groupby

import pytest
from cases import CASES
from sides import Case, Side, answers, situate

pytestmark = [pytest.mark.reference, pytest.mark.timeout(300)]

GROUPS = [list(group) for _, group in groupby(CASES, key=lambda case: (case.setup, case.until))]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0].name}+{len(group) - 1}"[:80])
def test_same_answers(reference: Side, slurmk: Side, group: list[Case]) -> None:
    for side in (reference, slurmk):
        situate(side, group[0].setup, group[0].until)
    differences = []
    for case, expected, actual in zip(group, answers(reference, group), answers(slurmk, group), strict=True):
        if case.differs:
            if expected == actual:
                differences.append(f"$ {case.command}\nno longer differs: {case.differs}")
        elif expected != actual:
            differences.append(f"$ {case.command}\n=== reference\n{expected}=== slurmk\n{actual}")
    assert not differences, f"{len(differences)} of {len(group)} differ\n\n" + "\n".join(differences)
