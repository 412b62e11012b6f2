"""Random queues on both sides: what runs where, why the others wait, and when they are planned to start.

RANDOM_QUEUES=N compares so many situations (ten seconds each), from number RANDOM_QUEUES_FROM on.
"""

from __future__ import annotations

import os
from collections import Counter
from threading import Thread

import pytest
from random_queues import Seen, Situation, clear, make, situation
from sides import Side

pytestmark = [pytest.mark.reference, pytest.mark.timeout(3600)]

SITUATIONS = int(os.environ.get("RANDOM_QUEUES", "6"))
FIRST = int(os.environ.get("RANDOM_QUEUES_FROM", "3000"))

LATER = 60
"""Seconds by which a planned start may be later: the reference's own starts are a second apart from pass to pass."""


def both(reference: Side, slurmk: Side, made: Situation) -> tuple[dict[str, Seen], dict[str, Seen], list[str]]:
    """What there is on each side in the end, and the commands of which each side said something else."""
    answers: dict[str, tuple[dict[str, Seen], list[str]]] = {}

    def one(side: Side) -> None:
        answers[side.name] = make(side, made)
        clear(side, made)

    threads = [Thread(target=one, args=(side,)) for side in (reference, slurmk)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (theirs, said), (ours, told) = answers["reference"], answers["slurmk"]
    return theirs, ours, [command for command, *both in zip(made.setup, said, told, strict=True) if both[0] != both[1]]


def compared(theirs: Seen, ours: Seen) -> str:
    """In what both differ; "" for nothing that matters. That the reference starts one later than slurmk is its habit."""
    if theirs.state == ours.state == "PENDING":
        if theirs.reason not in (ours.reason, "None"):  # None: a pass of the reference has not come to it
            return "reason"
        return ""
    if theirs.state == ours.state:
        return "" if theirs.nodes == ours.nodes else "nodes"
    return "waits" if ours.state == "PENDING" else "runs"


def test_random_queues_are_served_as_by_the_reference(reference: Side, slurmk: Side) -> None:
    if not reference.quiet():
        pytest.skip("others use the reference's nodes")
    counted: Counter[str] = Counter()
    delays: list[float] = []
    for number in range(FIRST, FIRST + SITUATIONS):
        theirs, ours, otherwise = both(reference, slurmk, situation(number))
        counted["said"] += len(otherwise)
        for command in otherwise:
            print(f"{number} said otherwise: {command}")
        counted["elements"] += len(theirs.keys() ^ ours.keys())
        began = [min((job.start or 0 for name, job in seen.items() if name[0] == "r"), default=0) for seen in (theirs, ours)]
        for name, job in [(name, job) for name, job in theirs.items() if name in ours]:
            difference = compared(job, ours[name])
            counted[difference] += 1
            if difference:
                print(f"{number} {name}: {difference}: {job} | {ours[name]}")
            if job.start and ours[name].start and job.state == ours[name].state == "PENDING":
                delays.append((ours[name].start or 0) - began[1] - (job.start - began[0]))
    total = sum(counted.values())
    print(
        f"{counted[''] / total:.0%} of {total} jobs alike; {dict(counted)}; starts {sum(delays) / max(len(delays), 1):+.0f} s"
    )
    assert counted[""] >= 0.85 * total
    assert counted["waits"] <= 0.03 * total
    assert sum(delays) <= LATER * len(delays)
