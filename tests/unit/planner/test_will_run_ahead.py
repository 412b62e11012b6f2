"""What ``--test-only`` says of a start that is further ahead than plans promise anything (bf_window)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_clusters import NOW, demand, snapshot_of

from slurmk.planner.plan import forecast, will_run
from slurmk.planner.snapshot import PendingRow

WINDOW = 3600


@pytest.mark.parametrize("ahead", [WINDOW // 2, WINDOW * 2, WINDOW * 1000])
def test_a_begin_time_is_told_however_far_ahead(ahead: int) -> None:
    row = PendingRow(1, demand(1), ("p",), 100, NOW, 600, 1)
    later = replace(row, eligible_time=NOW + ahead)
    snapshot = snapshot_of(((4, 1000, 0),), window=WINDOW)
    outlook = will_run(snapshot, later)
    assert (outlook.start_time, outlook.nodes) == (NOW + ahead, ("n0",))
    promised = forecast(replace(snapshot, pending=(later,))).plan().outlooks[1].start_time
    assert (promised is not None) == (ahead <= WINDOW)
