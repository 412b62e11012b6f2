"""What a snapshot says of jobs that run is the same whether it was kept from the snapshot before or made anew."""

from __future__ import annotations

from dataclasses import replace

from slurmk.model.job import Allocation, Credentials, Job, JobRequest, NodeShare
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import JobFlag, JobState
from slurmk.planner.build import LATE, SnapshotCache, build_snapshot
from slurmk.planner.snapshot import RunningRow

SITE = Site("lab", (Node("n1", cpus=8),), (Partition("main", ("n1",)),))


def running(job_id: int, **more: object) -> Job:
    """A job of one minute that began at 1000."""
    job = Job(job_id, JobRequest(), Credentials(1, 1, "a", "a"), 0, JobState.RUNNING, time_limit=1, start_time=1000)
    return replace(job, allocation=Allocation("main", (NodeShare("n1", 1, 10, 1),)), **more)  # type: ignore[arg-type]


def rows(cache: SnapshotCache, time: float, *jobs: Job) -> tuple[RunningRow, ...]:
    made = build_snapshot(
        snapshot_id=1,
        time=time,
        site=SITE,
        nodes={node.name: node for node in SITE.nodes},
        partitions={partition.name: partition for partition in SITE.partitions},
        running=jobs,
        pending=(),
        cache=cache,
    )
    return made.running


def test_kept_rows_are_right_at_any_time() -> None:
    cache = SnapshotCache()
    first, second = running(1), running(2, flags=JobFlag.COMPLETING)
    for time in (1000, 1001, 1054, 1055, 1056, 1059, 1060, 1061, 1070):
        assert rows(cache, time, first, second) == rows(SnapshotCache(), time, first, second), time
    assert rows(cache, 1070, first)[0].end_time == 1070 + LATE


def test_jobs_that_change_or_leave_are_not_remembered() -> None:
    cache = SnapshotCache()
    job = running(1)
    kept = rows(cache, 1000, job, running(2))
    assert rows(cache, 1001, job)[0] is kept[0]
    assert len(cache.running) == 1
    assert rows(cache, 1002, replace(job, time_limit=2))[0].end_time == 1120
    assert rows(cache, 1003, replace(job, allocation=None)) == ()
