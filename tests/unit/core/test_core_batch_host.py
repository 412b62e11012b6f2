"""--batch: which of a job's nodes runs its script; --wckey where keys are tracked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_story import Cluster, small_site


@pytest.mark.parametrize(
    ("wanted", "first"),
    [("cpu", "n5"), ("a100&ib", "n1"), ("ib|cpu", "n1"), ("a100&cpu", "n1"), (None, "n1"), ("a100&cpu|cpu", "n5")],
)
def test_the_batch_host(wanted: str | None, first: str) -> None:
    cluster = Cluster()
    names = {"required_nodes": "n1,n5,n6", "minimum_nodes": 3, "maximum_nodes": 3}
    job_id = cluster.submit(**names, constraints="a100|cpu", batch_features=wanted)
    cluster.plan()
    allocation = cluster.job(job_id).allocation
    assert allocation is not None
    assert allocation.nodes[0] == first
    assert sorted(allocation.nodes) == ["n1", "n5", "n6"]
    assert allocation.tasks == sum(share.tasks for share in allocation.shares)


@pytest.mark.parametrize(
    ("tracked", "asked", "kept"), [("Yes", None, "*"), ("yes", "k", "k"), ("No", None, None), ("", "k", "k")]
)
def test_keys(tracked: str, asked: str | None, kept: str | None) -> None:
    cluster = Cluster(replace(small_site(), parameters={"TrackWCKey": tracked}))
    assert cluster.job(cluster.submit(wckey=asked)).request.wckey == kept
