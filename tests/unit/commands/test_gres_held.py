"""How GRES that a job holds, and those in use of a node, are written; as the reference writes them."""

from __future__ import annotations

import pytest

from slurmk.commands.node_text import gres_held
from slurmk.model.job import GresShare
from slurmk.model.node import GresCapacity, Node

NODE = Node("n1", cpus=8, memory=16000, gres=(GresCapacity("gpu", "a100", 4), GresCapacity("shard", "", 8)))


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (GresShare("gpu", "a100", 2, (0, 1)), "gpu:a100:2(IDX:0-1)"),
        (GresShare("tmp", "", 1), "tmp(CNT:1)"),
        (GresShare("shard", "", 2, (0, 1)), "shard:2(2/2,0/2,0/2,0/2)"),
        (GresShare("shard", "", 1, (2,)), "shard:1(0/2,1/2,0/2,0/2)"),
        (GresShare("shard", "", 1, (8,)), "shard(CNT:1)"),
        (GresShare("shard", "a100", 1, (0,)), "shard:1(1/2,0/2,0/2,0/2)"),
    ],
)
def test_on_a_node(held: GresShare, expected: str) -> None:
    assert gres_held(held, NODE) == expected


def test_shards_of_a_node_that_is_gone_or_has_no_gpus() -> None:
    held = GresShare("shard", "", 2, (0, 1))
    assert gres_held(held, None) == "shard(CNT:2)"
    assert gres_held(held, Node("n1", cpus=8, memory=16000, gres=(GresCapacity("shard", "", 8),))) == "shard(CNT:2)"
