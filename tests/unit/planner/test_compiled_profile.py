"""The compiled profile answers as the numpy form does: same plans, same reactions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurmk.planner.forecast import Forecast
from slurmk.planner.plan import forecast, plan_starts
from slurmk.planner.profile import Profile
from slurmk.planner.snapshot import RunningRow, Snapshot
from tests.benchmarks.plan import mixed


def both(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> tuple[Forecast, Forecast]:
    """A forecast by each form."""
    monkeypatch.setattr("slurmk.planner.forecast.COMPILED_FROM", 1 << 60)
    plain = forecast(snapshot)
    monkeypatch.setattr("slurmk.planner.forecast.COMPILED_FROM", 0)
    compiled = forecast(snapshot)
    assert type(plain.profile) is Profile
    assert compiled.profile.places
    return plain, compiled


@pytest.mark.parametrize("seed", range(4))
def test_same_plan_of_a_mixed_queue(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, compiled = both(mixed(400, 70, seed, running=20), monkeypatch)
    assert plain.plan() == compiled.plan()


def test_same_reactions(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = mixed(400, 70, 7, running=20)
    plain, compiled = both(snapshot, monkeypatch)
    limits = {row.job_id: row.time_limit for row in snapshot.pending}
    for step in range(1, 6):
        now = snapshot.time + 300
        started = tuple(
            RunningRow(start.job_id, snapshot.time + limits[start.job_id], start.allocation, 1) for start in plain.starts
        )
        left = tuple(row for row in snapshot.pending if row.job_id not in {start.job_id for start in plain.starts})
        running = (*snapshot.running, *started)
        ended = {running[step * 3 % len(running)].job_id, running[-1].job_id}
        snapshot = replace(
            snapshot, time=now, pending=left[1:], running=tuple(row for row in running if row.job_id not in ended)
        )
        answers = [plan_starts(snapshot, made) for made in (plain, compiled)]
        assert answers[0] is not None
        assert answers[0] == answers[1]
