"""How jobs share nodes, as the reference told it of each request in each kind of partition."""

from __future__ import annotations

import pytest

from slurmk.model.node import Partition
from slurmk.model.sharing import sharing

PLAIN = Partition("p", ())
SHARED = Partition("p", (), oversubscribe="YES:4")
WHOLE = Partition("p", (), oversubscribe="EXCLUSIVE")
OF_USER = Partition("p", (), oversubscribe="YES:4", exclusive_user=True)
OF_TOPOLOGY = Partition("p", (), exclusive_topology=True)


@pytest.mark.parametrize(
    ("partition", "by_default", "sharing_", "whole", "topology"),
    [
        (PLAIN, "NO NO", "YES NO", "NO NODE", "NO TOPO"),
        (SHARED, "OK NO", "YES NO", "NO NODE", "OK TOPO"),
        (WHOLE, "NO NODE", "NO NODE", "NO NODE", "NO TOPO"),
        (OF_USER, "OK USER", "YES NO", "NO NODE", "OK TOPO"),
        (OF_TOPOLOGY, "NO TOPO", "YES NO", "NO TOPO", "NO TOPO"),
        (None, "NO NO", "YES NO", "NO NODE", "NO TOPO"),
    ],
)
def test_a_job_and_its_partition_say_how_nodes_are_shared(
    partition: Partition | None, by_default: str, sharing_: str, whole: str, topology: str
) -> None:
    told = [" ".join(sharing(shared, partition)) for shared in (None, "oversubscribe", "none", "topo")]
    assert told == [by_default, sharing_, whole, topology]


@pytest.mark.parametrize(("shared", "told"), [("user", "USER"), ("mcs", "MCS")])
def test_others_of_the_user_or_label_may_share(shared: str, told: str) -> None:
    assert sharing(shared, PLAIN) == ("NO", told)
