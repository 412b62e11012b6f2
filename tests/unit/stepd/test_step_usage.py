"""The usage of a step from that of its tasks, as stepd tells it and as the controller sums up a running one."""

from __future__ import annotations

from bridge.link import usage_of as heard
from slurmk.commands.processes import Task, usage_of
from slurmk.model.job import Spread, Usage
from slurmk.stepd.usage import total

MEASURES = (
    {"user_cpu": 5, "system_cpu": 2, "rss": 100, "vsize": 900, "disk_read": 0, "disk_write": 8, "pages": 1},
    {"user_cpu": 1, "system_cpu": 1, "rss": 300, "vsize": 700, "disk_read": 6, "disk_write": 0, "pages": 1},
)
EXPECTED = Usage(
    tasks=2,
    user_cpu=6,
    system_cpu=3,
    cpu=Spread(9, 7, "n1", 0, 2, "n2", 1),
    rss=Spread(400, 300, "n2", 1, 100, "n1", 0),
    vsize=Spread(1600, 900, "n1", 0, 700, "n2", 1),
    disk_read=Spread(6, 6, "n2", 1, 0, "n1", 0),
    disk_write=Spread(8, 8, "n1", 0, 0, "n2", 1),
    pages=Spread(2, 1, "n1", 0, 1, "n1", 0),
)


def test_what_stepd_tells_of_two_tasks() -> None:
    tasks = [{"rank": rank, "node": f"n{rank + 1}", "measures": measures} for rank, measures in enumerate(MEASURES)]
    assert heard(total(tasks)) == EXPECTED
    assert heard(total([])) == Usage()


def test_what_the_controller_sums_up() -> None:
    tasks = [Task(f"n{rank + 1}", 0, rank, 0, 100 + rank, (), measures) for rank, measures in enumerate(MEASURES)]
    assert usage_of(tasks) == EXPECTED


def test_what_is_not_known_or_too_large_is_brought_within_bounds() -> None:
    told = heard({"tasks": -1, "cpu": {"total": 1 << 80, "else": 1}, "rss": "no", "new": 3})
    assert told == Usage(cpu=Spread(total=1 << 53))
