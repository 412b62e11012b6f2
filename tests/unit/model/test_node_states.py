"""Words for node states. The expected words are those of Slurm 26.05 (sinfo's %t and %T, scontrol's State=)."""

from __future__ import annotations

import pytest

from slurmk.model.node import Node
from slurmk.model.node_states import condition_of
from slurmk.model.states import NodeFlag, NodeState

NO_RESPOND, DRAIN, FAIL, MAINT, RESERVED = NodeFlag.NO_RESPOND, NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.MAINT, NodeFlag.RESERVED
IDLE, DOWN, UNKNOWN = NodeState.IDLE, NodeState.DOWN, NodeState.UNKNOWN


@pytest.mark.parametrize(
    ("state", "flags", "cpus", "completing", "words"),
    [
        (IDLE, NodeFlag.NONE, 0, False, "idle idle IDLE"),
        (IDLE, NodeFlag.NONE, 3, False, "mix mixed MIXED"),
        (IDLE, NodeFlag.NONE, 4, False, "alloc allocated ALLOCATED"),
        (IDLE, NodeFlag.NONE, 4, True, "alloc+ allocated+ ALLOCATED+COMPLETING"),
        (IDLE, NodeFlag.NONE, 1, True, "comp completing MIXED+COMPLETING"),
        (IDLE, NodeFlag.NONE, 0, True, "comp completing IDLE+COMPLETING"),
        (IDLE, NO_RESPOND, 0, True, "comp* completing* IDLE+COMPLETING+NOT_RESPONDING"),
        (IDLE, NO_RESPOND, 4, False, "alloc* allocated* ALLOCATED+NOT_RESPONDING"),
        (IDLE, NO_RESPOND, 0, False, "idle* idle* IDLE+NOT_RESPONDING"),
        (IDLE, DRAIN, 0, False, "drain drained IDLE+DRAIN"),
        (IDLE, DRAIN, 0, True, "drng draining IDLE+COMPLETING+DRAIN"),
        (IDLE, DRAIN, 1, False, "drng draining MIXED+DRAIN"),
        (IDLE, DRAIN, 4, False, "drng draining ALLOCATED+DRAIN"),
        (IDLE, FAIL, 4, False, "failg failing ALLOCATED+FAIL"),
        (IDLE, FAIL, 0, False, "fail fail IDLE+FAIL"),
        (IDLE, DRAIN | NO_RESPOND, 0, False, "drain* drained* IDLE+DRAIN+NOT_RESPONDING"),
        (DOWN, NodeFlag.NONE, 0, False, "down down DOWN"),
        (DOWN, NO_RESPOND, 0, False, "down* down* DOWN+NOT_RESPONDING"),
        (DOWN, DRAIN, 0, False, "drain drained DOWN+DRAIN"),
        (DOWN, FAIL | NO_RESPOND, 0, False, "fail* fail* DOWN+FAIL+NOT_RESPONDING"),
        (UNKNOWN, NO_RESPOND, 0, False, "unk* unknown* UNKNOWN+NOT_RESPONDING"),
        (UNKNOWN, DRAIN | NO_RESPOND, 0, False, "drain* drained* UNKNOWN+DRAIN+NOT_RESPONDING"),
        (UNKNOWN, MAINT | RESERVED | NO_RESPOND, 0, False, "maint* maint* UNKNOWN+MAINTENANCE+RESERVED+NOT_RESPONDING"),
        (
            DOWN,
            DRAIN | MAINT | RESERVED | NO_RESPOND,
            0,
            False,
            "drain$ drained$ DOWN+DRAIN+MAINTENANCE+RESERVED+NOT_RESPONDING",
        ),
        (IDLE, RESERVED | DRAIN, 0, False, "drain drained IDLE+DRAIN+RESERVED"),
        (IDLE, NodeFlag.PLANNED, 0, False, "plnd planned IDLE+PLANNED"),
        (IDLE, NodeFlag.PLANNED, 0, True, "comp completing IDLE+COMPLETING+PLANNED"),
        (NodeState.FUTURE, NodeFlag.NONE, 0, False, "futr future FUTURE"),
    ],
)
def test_words(state: NodeState, flags: NodeFlag, cpus: int, completing: bool, words: str) -> None:
    condition = condition_of(Node("n1", cpus=4, state=state, flags=flags), cpus_used=cpus, completing=completing)
    assert f"{condition.short} {condition.long} {condition.full}" == words


def test_json_has_the_flags_in_another_order() -> None:
    flags = NodeFlag.CLOUD | DRAIN | NodeFlag.POWERED_DOWN | NodeFlag.DYNAMIC_NORM
    condition = condition_of(Node("n1", flags=flags), cpus_used=0, completing=False)
    assert condition.full == "IDLE+CLOUD+DRAIN+DYNAMIC_NORM+POWERED_DOWN"
    assert condition.listed == ["IDLE", "CLOUD", "DRAIN", "POWERED_DOWN", "DYNAMIC_NORM"]
