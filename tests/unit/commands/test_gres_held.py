"""How GRES that a job holds, and those in use of a node, are written; as the reference writes them."""

from __future__ import annotations

import pytest

from slurmk.commands.node_text import gres_held
from slurmk.commands.scontrol_job import _gres_total
from slurmk.model.job import GresShare, NodeShare
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


def test_parts_of_gpus_of_a_job_are_told_without_the_type_of_the_gpus() -> None:
    shares = (
        NodeShare("n1", 1, 0, 1, (GresShare("mps", "a100", 50, tuple(range(50))), GresShare("gpu", "a100", 1, (1,)))),
        NodeShare("n2", 1, 0, 1, (GresShare("mps", "v100", 25, tuple(range(25))),)),
    )
    assert _gres_total(shares) == "mps:75,gpu:a100:1"


def test_shards_of_a_node_that_is_gone_or_has_no_gpus() -> None:
    held = GresShare("shard", "", 2, (0, 1))
    assert gres_held(held, None) == "shard(CNT:2)"
    assert gres_held(held, Node("n1", cpus=8, memory=16000, gres=(GresCapacity("shard", "", 8),))) == "shard(CNT:2)"
