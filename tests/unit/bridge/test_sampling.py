"""--acctg-freq: how often stepd is told to look at tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.description import describe
from slurmk.model.job import Allocation, Credentials, Job, JobFiles, JobRequest, NodeShare
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site

SITE = Site("test", (Node("n1", cpus=2, memory=1000),), (Partition("debug", ("n1",), default=True),))


@pytest.mark.parametrize(
    ("asked", "usual", "seconds"),
    [(None, None, None), (None, "30", 30), ("task=3", "30", 3), ("7", None, 7), ("energy=5", "2", 2), ("0", "30", None)],
)
def test_seconds_between_samples(asked: str | None, usual: str | None, seconds: int | None) -> None:
    site = replace(SITE, parameters={} if usual is None else {"JobAcctGatherFrequency": usual})
    allocation = Allocation("debug", (NodeShare("n1", 1, 10, 1),))
    request = JobRequest(account_gather_frequency=asked)
    job = Job(1, request, Credentials(0, 0, "root", "root"), 0, partitions=("debug",), allocation=allocation)
    assert describe(job, JobFiles(b"", (), {}, b""), site, {})["sample_seconds"] == seconds
