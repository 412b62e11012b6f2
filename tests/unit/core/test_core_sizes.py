"""What is refused at once since the partition's limits leave no node for it, and what may wait for an administrator.

The verdicts are the reference's, on nodes n[1-4] of 8 CPUs and n[5-8] of 16.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from core_story import ALICE, Cluster, small_site

from slurmk.core.effects import Refused
from slurmk.core.errors import Errno


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    site = small_site()
    everywhere = replace(site.partitions[0], name="small", nodes=tuple(node.name for node in site.nodes), default=False)
    capped = replace(site.partitions[2], name="capped", maximum_cpus_per_node=6, default=False)
    return Cluster(replace(site, partitions=(*site.partitions, replace(everywhere, maximum_nodes=1), capped)))


ONE: dict[str, Any] = {"minimum_nodes": 1, "maximum_nodes": 1}


@pytest.mark.parametrize(
    ("partition", "request_", "taken"),
    [
        ("small", {"tasks": 33}, False),
        ("small", {"tasks": 17}, False),
        ("small", {"tasks": 16}, True),
        ("small", {"tasks": 500}, True),
        ("small", {"tasks": 20, "minimum_nodes": 2, "maximum_nodes": 2}, True),
        ("small", {"tres_per_job": "gres/gpu:9"}, True),
        ("capped", {"tasks": 7, **ONE}, False),
        ("capped", {"tasks": 6, **ONE}, True),
        ("capped", {"tasks": 25}, True),
        ("capped", {"tasks": 24}, True),
        ("capped", {"shared": "none", **ONE}, False),
        ("capped", {"cpus_per_task": 7}, False),
        ("capped", {"tasks": 25, "minimum_nodes": 4, "maximum_nodes": 4}, True),
        ("small,cpu", {"tasks": 33}, True),
    ],
)
def test_what_a_partition_can_hold(cluster: Cluster, partition: str, request_: dict[str, Any], taken: bool) -> None:
    answer = cluster.try_submit(ALICE, partition=partition, **request_)
    assert isinstance(answer, Refused) is not taken
    if isinstance(answer, Refused):
        assert answer.error.errno is Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE
        assert not answer.notices


@pytest.mark.parametrize(
    ("partition", "request_", "taken"),
    [
        ("wide", {"tasks": 1}, False),
        ("wide", {"tasks": 1, "cpus_per_task": 2}, False),
        ("wide", {"tasks": 2}, True),
        ("wide", {}, True),
        ("wide,cpu", {"tasks": 1}, True),
        ("wide", {"tasks": 1, "nodes": "1", **ONE}, True),
    ],
)
def test_fewer_tasks_than_the_partition_has_nodes_for_a_job(partition: str, request_: dict[str, Any], taken: bool) -> None:
    site = small_site()
    wide = replace(site.partitions[2], name="wide", minimum_nodes=2, default=False)
    answer = Cluster(replace(site, partitions=(*site.partitions, wide))).try_submit(ALICE, partition=partition, **request_)
    assert isinstance(answer, Refused) is not taken
    if isinstance(answer, Refused):
        assert answer.error.errno is Errno.BAD_TASK_COUNT
