"""What a snapshot says of jobs that wait is the same whether it was kept from snapshots before or made anew."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.model.job import Credentials, Job, JobRequest
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import Reason
from slurmk.planner.build import SnapshotCache, Waiting, build_snapshot
from slurmk.planner.snapshot import PendingRow

SITE = Site("lab", (Node("n1", cpus=8),), (Partition("main", ("n1",)),))

CHANGES = st.tuples(
    st.integers(1, 6),
    st.sampled_from(["new job", "new waiting", "gone", "held", "fewer", "first"]),
)


def rows(cache: SnapshotCache, waiting: list[Waiting], site: Site = SITE) -> tuple[PendingRow, ...]:
    made = build_snapshot(
        snapshot_id=1,
        time=1000,
        site=site,
        nodes={node.name: node for node in site.nodes},
        partitions={partition.name: partition for partition in site.partitions},
        running=(),
        pending=waiting,
        cache=cache,
    )
    return made.pending


def waiting_of(job_id: int, tasks: int = 1) -> Waiting:
    credentials = Credentials(1, 1, "a", "a")
    job = Job(job_id, JobRequest(tasks=tasks), credentials, 0, priority=5, partitions=("main",), array_tasks=(range(9),))
    return Waiting(job)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(CHANGES, max_size=4), min_size=1, max_size=6))
def test_kept_rows_are_those_made_anew(story: list[list[tuple[int, str]]]) -> None:
    cache = SnapshotCache()
    queue = {job_id: waiting_of(job_id) for job_id in range(1, 5)}
    before: dict[int, tuple[Waiting, PendingRow]] = {}
    for changes in story:
        for job_id, change in changes:
            old = queue.pop(job_id, None) or waiting_of(job_id)
            match change:
                case "new job":
                    queue[job_id] = waiting_of(job_id, tasks=2)
                case "new waiting":
                    queue[job_id] = replace(old)
                case "held":
                    queue[job_id] = replace(old, held_reason=Reason.DEPENDENCY)
                case "fewer":
                    queue[job_id] = replace(old, startable=3)
                case "first":
                    queue = {job_id: old, **queue}
                case _:
                    pass
        waiting = list(queue.values())
        made = rows(cache, waiting)
        assert made == rows(SnapshotCache(), waiting)
        for each, row in zip(waiting, made, strict=True):
            known = before.get(row.job_id)
            assert known is None or known[0] is not each or known[1] is row, "the reaction knows what is new by identity"
        before = {row.job_id: (each, row) for each, row in zip(waiting, made, strict=True)}


def test_another_site_makes_all_rows_anew() -> None:
    cache = SnapshotCache()
    job = Job(1, JobRequest(tasks=1), Credentials(1, 1, "a", "a"), 0, partitions=("main",))
    waiting = [Waiting(job)]
    assert rows(cache, waiting)[0].demand.memory_per_cpu is None
    other = replace(SITE, default_memory_per_cpu=100)
    assert rows(cache, waiting, other)[0].demand.memory_per_cpu == 100
