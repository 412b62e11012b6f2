"""scontrol show topology for blocks, as the reference lists them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from command_fakes import FakeController, reference_site, run_command

from slurmk.model.site import Block, Switch

BLOCKS = (Block("x", ("n5", "n6")), Block("b2", ("n3", "n4")), Block("b3", ("n1", "n2")), Block("b4", ("n7", "n8")))
FIRST = "BlockName=x BlockIndex=0 Nodes=n[5-6] BlockSize=2\n"
SECOND = "BlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n"
PAIR = "AggregatedBlock=x,b2 BlockIndex=4 Nodes=n[3-6] BlockSize=4\n"
ALL = "AggregatedBlock=x,b[2-4] BlockIndex=5 Nodes=n[1-8] BlockSize=8\n"
OTHERS = "BlockName=b3 BlockIndex=2 Nodes=n[1-2] BlockSize=2\nBlockName=b4 BlockIndex=3 Nodes=n[7-8] BlockSize=2\n"
OTHER_PAIR = "AggregatedBlock=b[3-4] BlockIndex=6 Nodes=n[1-2,7-8] BlockSize=4\n"


@pytest.mark.parametrize(
    ("words", "out", "err"),
    [
        ([], FIRST + SECOND + OTHERS + PAIR + OTHER_PAIR + ALL, ""),
        (["default"], FIRST + SECOND + OTHERS + PAIR + OTHER_PAIR + ALL, ""),
        (["node=n3"], SECOND + PAIR + ALL, ""),
        (["unit=b2"], SECOND, ""),
        (["block=b2"], SECOND, ""),
        (["unit=B2"], "", "scontrol: error: Topology information contains no block named B2\n"),
        (["node=nix"], "", "scontrol: error: Topology information contains no block with nodes nix\n"),
    ],
)
def test_blocks_are_listed(words: list[str], out: str, err: str) -> None:
    site = replace(reference_site(), switches=(), blocks=BLOCKS, block_sizes=(2, 4, 8))
    said = run_command(FakeController(site), "scontrol", "show", "topology", *words)
    assert (said.out, said.err, said.code) == (out, err, 0)


def test_a_block_without_a_neighbour_is_no_group() -> None:
    site = replace(reference_site(), switches=(), blocks=BLOCKS[:3], block_sizes=(2, 4, 8))
    lines = run_command(FakeController(site), "scontrol", "show", "topology").out.splitlines()
    assert lines[3:] == [PAIR.strip().replace("=4 N", "=3 N"), "AggregatedBlock=x,b[2-3] BlockIndex=4 Nodes=n[1-6] BlockSize=8"]


def test_switches_are_listed_as_they_are_written() -> None:
    switches = (Switch("s01", ("n1",)), Switch("s02", ("n2",)), Switch("root", (), ("s01", "s02"), written="s01,s02"))
    said = run_command(
        FakeController(replace(reference_site(), switches=switches)), "scontrol", "show", "topology", "unit=root"
    )
    assert said.out == "SwitchName=root Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=s01,s02\n"
