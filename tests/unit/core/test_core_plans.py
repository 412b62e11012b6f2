"""What is started is exactly what the plan starts now, on the nodes, CPUs and devices that it says; the others keep what it
tells them."""

from __future__ import annotations

from typing import Any

from core_story import ALICE, BOB, Cluster
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.core.effects import Accepted, Launch
from slurmk.core.events import Planned
from slurmk.planner.plan import plan

REQUESTS = st.fixed_dictionaries(
    {"partition": st.sampled_from(["debug", "gpu", "cpu", "cpu,debug"]), "time_limit": st.sampled_from([5, 20, 60])},
    optional={
        "tasks": st.integers(1, 20),
        "minimum_nodes": st.integers(1, 4),
        "cpus_per_task": st.integers(1, 4),
        "shared": st.sampled_from(["none", "user"]),
        "tres_per_node": st.sampled_from(["gres/gpu:1", "gres/gpu:a100:2"]),
        "memory_per_node": st.sampled_from([0, 2000, 15000]),
        "licenses": st.sampled_from(["matlab:1", "matlab:3"]),
        "array": st.sampled_from(["0-2", "0-4%2"]),
        "constraints": st.sampled_from(["a100", "cpu"]),
        "begin_time": st.just(5000),
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(REQUESTS, st.booleans()), min_size=1, max_size=10))
def test_what_is_started_is_what_the_plan_starts_now(queue: list[tuple[dict[str, Any], bool]]) -> None:
    cluster = Cluster()
    accepted = [isinstance(cluster.try_submit(ALICE if mine else BOB, **request), Accepted) for request, mine in queue]
    made = plan(cluster.machine.snapshot(cluster.now))
    launched = [effect.job for effect in cluster.tell(Planned(cluster.now, made)) if isinstance(effect, Launch)]
    wanted = [(start.job_id, start.allocation) for start in made.starts]
    assert [(job.array_job_id or job.job_id, job.allocation) for job in launched] == wanted
    assert accepted.count(True) or not launched
    for job_id, outlook in made.outlooks.items():
        job = cluster.job(job_id)
        assert job.pending
        assert job.reason is outlook.reason
        assert cluster.machine.outlooks[job_id] == outlook
    again = plan(cluster.machine.snapshot(cluster.now))
    assert not again.starts, "everything that can start now has started"
    for job_id, outlook in again.outlooks.items():
        before = made.outlooks.get(job_id)
        if before is not None and before.start_time is not None and outlook.start_time is not None:
            assert outlook.start_time <= before.start_time, "nobody is put off by starts that the plan had foreseen"
