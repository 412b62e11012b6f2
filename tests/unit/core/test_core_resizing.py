"""Jobs that give nodes back while they run. Answers as Slurm 26.05 gives them."""

from __future__ import annotations

from typing import Any

import pytest
from core_story import ALICE, BOB, ROOT, Cluster, small_site

from slurmk.core.effects import SaveJob, SaveResize, Shrink
from slurmk.core.errors import Errno
from slurmk.core.events import Caller, NodesReleased
from slurmk.model.job import Job


def wide(cluster: Cluster, **request: object) -> Job:
    """A job on four nodes that runs since 1000."""
    asked: dict[str, Any] = {"nodes": "4", "minimum_nodes": 4, "maximum_nodes": 4, "tasks": 8, **request}
    job_id = cluster.submit(**asked)
    cluster.plan()
    cluster.started(job_id)
    cluster.now += 5
    return cluster.job(job_id)


def count(cluster: Cluster, least: int, most: int | None = None, caller: Caller = ALICE) -> None:
    """``scontrol update NumNodes=``"""
    most = least if most is None else most
    cluster.update("1", caller, minimum_nodes=least, maximum_nodes=most, nodes=f"{least}-{most}")


def nodes_of(cluster: Cluster) -> tuple[str, ...]:
    allocation = cluster.job(1).allocation
    return allocation.nodes if allocation else ()


def test_the_first_nodes_stay_as_they_are(cluster: Cluster) -> None:
    before = wide(cluster)
    assert before.allocation is not None
    count(cluster, 2)
    job = cluster.job(1)
    assert job.allocation is not None
    assert job.allocation.shares == before.allocation.shares[:2]
    assert job.resize_time == int(cluster.now)
    assert (job.request.minimum_nodes, job.request.maximum_nodes) == (2, 2)
    assert job.request.tasks == sum(share.tasks for share in job.allocation.shares)
    assert Shrink(1, 0, before.allocation.nodes[:2], before.allocation.nodes[2:]) in cluster.effects


def test_to_accounting_the_old_size_ends_before_the_new_one_is_saved(cluster: Cluster) -> None:
    before = wide(cluster)
    count(cluster, 1)
    saves = [effect for effect in cluster.effects if isinstance(effect, SaveJob | SaveResize)]
    assert saves == [SaveResize(before, int(cluster.now)), SaveJob(cluster.job(1))]


def test_what_is_given_back_is_free_at_once(cluster: Cluster) -> None:
    wide(cluster, shared="none")
    waits = cluster.submit(BOB, nodes="6", minimum_nodes=6, maximum_nodes=6, shared="none")
    cluster.plan()
    assert cluster.job(waits).pending
    count(cluster, 2)
    cluster.plan()
    assert not cluster.job(waits).pending


def test_a_job_ends_without_the_nodes_that_it_gave_back(cluster: Cluster) -> None:
    lost = wide(cluster).allocation.nodes[2:]  # type: ignore[union-attr]
    count(cluster, 2)
    cluster.tell(NodesReleased(cluster.now, 1, 0, lost))
    assert not cluster.job(1).state.finished
    cluster.ended(1)
    cluster.released(1)
    assert cluster.job(1).state.name == "COMPLETED"
    assert len(nodes_of(cluster)) == 2


@pytest.mark.parametrize(
    ("least", "most", "errno"),
    [(0, 0, Errno.INVALID_NODE_COUNT), (5, 5, Errno.NOT_SUPPORTED), (2, 3, Errno.JOB_NOT_PENDING)],
)
def test_counts_that_are_refused(cluster: Cluster, least: int, most: int, errno: Errno) -> None:
    before = wide(cluster)
    count(cluster, least, most)
    assert cluster.refusal() is errno
    assert cluster.job(1) is before


def test_as_many_as_there_are_changes_nothing(cluster: Cluster) -> None:
    wide(cluster)
    count(cluster, 4)
    assert not any(isinstance(effect, Shrink | SaveResize) for effect in cluster.effects)
    assert not cluster.job(1).resize_time


def test_tasks_of_each_node_keep_a_job_from_being_counted_down(cluster: Cluster) -> None:
    wide(cluster, tasks=None, tasks_per_node=2)
    count(cluster, 2)
    assert cluster.refusal() is Errno.JOB_NOT_PENDING
    cluster.update("1", required_nodes=nodes_of(cluster)[0])
    assert len(nodes_of(cluster)) == 1


def test_nodes_by_name(cluster: Cluster) -> None:
    first, _, third, _ = wide(cluster).allocation.nodes  # type: ignore[union-attr]
    cluster.update("1", required_nodes=f"{third},{first}")
    assert nodes_of(cluster) == (first, third)
    assert cluster.job(1).request.minimum_nodes == 4


@pytest.mark.parametrize("names", ["", "n2", "n1,n2,nosuch", "n["])
def test_names_that_are_refused(cluster: Cluster, names: str) -> None:
    before = wide(cluster, required_nodes="n[1-4]")
    cluster.update("1", ROOT, required_nodes=names)
    assert cluster.refusal() is Errno.INVALID_NODE_NAME
    assert cluster.job(1) is before


def test_of_the_nodes_that_are_named_so_many_are_kept(cluster: Cluster) -> None:
    wide(cluster, required_nodes="n[1-4]")
    cluster.update("1", minimum_nodes=2, maximum_nodes=2, nodes="2", required_nodes="n[1,3-4]")
    assert nodes_of(cluster) == ("n1", "n3")


def test_others_change_nothing(cluster: Cluster) -> None:
    wide(cluster)
    count(cluster, 2, caller=BOB)
    assert cluster.refusal() is Errno.USER_ID_MISSING


def test_it_waits_again_for_its_new_size(cluster: Cluster) -> None:
    wide(cluster)
    count(cluster, 2)
    restarted = cluster.restarted().jobs[1]
    assert restarted.resize_time == cluster.job(1).resize_time


def test_a_site_may_want_no_job_smaller() -> None:
    cluster = Cluster(small_site(scheduler_parameters={"disable_job_shrink": ""}))
    before = wide(cluster)
    count(cluster, 2)
    assert cluster.refusal() is Errno.NOT_SUPPORTED
    cluster.update("1", required_nodes=before.allocation.nodes[0])  # type: ignore[union-attr]
    assert cluster.refusal() is Errno.NOT_SUPPORTED
    assert cluster.job(1) is before
