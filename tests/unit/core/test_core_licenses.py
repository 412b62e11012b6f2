"""Jobs whose licences are no longer there when they would wait once more."""

from __future__ import annotations

import pytest
from core_story import ALICE, Cluster, small_site

from slurmk.core.events import JobSelection, Requeue, SiteChanged
from slurmk.core.licenses import are_licenses
from slurmk.model.states import JobState, Reason


@pytest.mark.parametrize(("there", "held"), [({"matlab": 4}, False), ({"matlab": 1}, True), ({}, True)])
def test_a_job_is_requeued_held_if_its_licences_are_gone(there: dict[str, int], held: bool) -> None:
    cluster = Cluster(small_site(licenses={"matlab": 4}))
    job_id = cluster.submit(licenses="matlab:2")
    cluster.plan()
    assert cluster.job(job_id).state is JobState.RUNNING
    cluster.tell(SiteChanged(cluster.now, small_site(licenses=there)))
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(job_id),)))
    cluster.released(job_id)
    job = cluster.job(job_id)
    assert (job.state, job.restarts, job.priority == 0) == (JobState.PENDING, 1, held)
    expected = (Reason.JOB_HELD_ADMIN, "License request 'matlab:2' is no longer valid, holding job")
    assert (job.reason, job.state_description) == (expected if held else (Reason.BEGIN_TIME, ""))


@pytest.mark.parametrize(
    ("text", "are"),
    [("a", True), ("a:2,b=1", True), ("a;b", True), ("a|b:1", True), ("a:3", False), ("c", False), ("a:x", False)],
)
def test_whether_licences_are_there(text: str | None, are: bool) -> None:
    assert are_licenses(small_site(licenses={"a": 2, "b": 1}), text) is are
