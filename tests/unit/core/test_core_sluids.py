"""The ids that jobs are known by in all of Slurm."""

from __future__ import annotations

from core_story import ALICE, Cluster

from slurmk.core.events import JobSelection, Requeue


def test_each_run_of_a_job_has_an_id_of_its_own(cluster: Cluster) -> None:
    job_id = cluster.submit()
    first = cluster.job(job_id).sluid
    cluster.plan()
    assert cluster.job(job_id).sluid == first
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(job_id),)))
    assert cluster.job(job_id).sluid == first  # while its nodes are not free
    cluster.released(job_id)
    assert cluster.job(job_id).restarts == 1
    assert cluster.job(job_id).sluid > first
