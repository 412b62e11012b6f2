"""squeue, sinfo, scontrol and others on an embedded cluster of the reference's configuration, against recorded answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from recorded_answers import SITE, Group, groups, load
from sides import SLURMK, Side, answers, situate, slurmk_side
from test_same_answers import difference

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.skipif("SLURMK_REFERENCE" in os.environ, reason="the reference itself is asked"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the answers were given to root"),
]
ATTEMPTS = 2
"""How often a group may differ: a job may be looked at a moment too early."""


@pytest.fixture(scope="module")
def embedded() -> Iterator[Side]:
    side, directory = slurmk_side(str(SITE), load()["first_job"])
    yield side
    subprocess.run([str(SLURMK), "down", "--jobs", "--dir", str(directory)], check=False, capture_output=True)
    for place in (directory.parent, side.work):
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.parametrize("group", list(groups()), ids=lambda group: f"{group.module}: {group.cases[0].name}"[:60])
def test_as_recorded(embedded: Side, group: Group) -> None:
    for _ in range(ATTEMPTS):
        differing = compare(embedded, group)
        if not differing:
            return
    pytest.fail(f"{len(differing)} of {len(group.cases)} differ\n\n" + "\n".join(differing), pytrace=False)


def compare(side: Side, group: Group) -> list[str]:
    situate(side, group.cases[0].setup, group.cases[0].until)
    try:
        said = answers(side, group.cases)
    finally:
        side.clear()
    pairs = zip(group.cases, group.answers, said, strict=True)
    return [f"$ {case.name}\n{difference(expected, actual)}" for case, expected, actual in pairs if expected != actual]
