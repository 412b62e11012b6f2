"""When srun's local part is over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from slurmk.stepd.srun import Part, Srun


def run_of(states: str, *, owns: bool) -> Srun:
    """An srun whose parts have ended, and of each whether its job was returned (r), its manager went away (c), or neither."""
    request: dict[str, Any] = {"owns_allocation": owns}
    made = Srun(request, [], "", "", [Part(request, "", "") for _ in states[1:]])
    for part, state in zip(made.parts, states, strict=True):
        channel: Any = SimpleNamespace(closed=state == "c")
        part.channel, part.ended, part.returned = channel, True, state == "r"
    made.ended = True
    return made


@pytest.mark.parametrize(
    ("states", "over"), [("r", True), ("c", True), ("-", False), ("rr", True), ("rc", True), ("cc", True), ("c-", False)]
)
def test_a_manager_that_went_with_its_job_returns_nothing(states: str, over: bool) -> None:
    assert run_of(states, owns=True)._over() == over
    assert run_of(states, owns=False)._over()
