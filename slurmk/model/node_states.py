"""The words for a node's state: what sinfo and scontrol call it (sinfo(1), "NODE STATE CODES").

A node's own state says what administrators and its launcher made of it; whether it is idle, mixed, allocated or
completing follows from the jobs there. ``condition_of`` joins both, and ``Condition`` has the three forms that Slurm
prints: a long word and a short one with a mark for what else is the case, and the full list of flags.
"""

from __future__ import annotations

from dataclasses import dataclass

from slurmk.model.node import Node
from slurmk.model.states import NodeFlag, NodeState

SHORT_WORDS: dict[str, str] = {
    "allocated": "alloc",
    "blocked": "block",
    "completing": "comp",
    "drained": "drain",
    "draining": "drng",
    "failing": "failg",
    "future": "futr",
    "mixed": "mix",
    "planned": "plnd",
    "powered_down": "pow_dn",
    "powering_down": "pow_dn",
    "powering_up": "pow_up",
    "reserved": "resv",
    "unknown": "unk",
}
"""Short forms of the long words; the others are short already."""

_MARKS: tuple[tuple[NodeFlag, str], ...] = (
    (NodeFlag.MAINT, "$"),
    (NodeFlag.REBOOT_ISSUED, "^"),
    (NodeFlag.REBOOT_REQUESTED, "@"),
    (NodeFlag.POWERING_UP, "#"),
    (NodeFlag.POWERING_DOWN, "%"),
    (NodeFlag.POWERED_DOWN, "~"),
    (NodeFlag.POWER_DOWN, "!"),
    (NodeFlag.NO_RESPOND, "*"),
)
"""Marks after a word; the first flag that is set gives its mark."""

_FLAG_WORDS: tuple[tuple[NodeFlag, str], ...] = (
    (NodeFlag.BLOCKED, "BLOCKED"),
    (NodeFlag.CLOUD, "CLOUD"),
    (NodeFlag.COMPLETING, "COMPLETING"),
    (NodeFlag.DRAIN, "DRAIN"),
    (NodeFlag.DYNAMIC_FUTURE, "DYNAMIC_FUTURE"),
    (NodeFlag.DYNAMIC_NORM, "DYNAMIC_NORM"),
    (NodeFlag.EXTERNAL, "EXTERNAL"),
    (NodeFlag.INVALID_REG, "INVALID_REG"),
    (NodeFlag.FAIL, "FAIL"),
    (NodeFlag.MAINT, "MAINTENANCE"),
    (NodeFlag.POWER_DOWN, "POWER_DOWN"),
    (NodeFlag.POWER_UP, "POWER_UP"),
    (NodeFlag.POWER_DRAIN, "POWER_DRAIN"),
    (NodeFlag.POWERED_DOWN, "POWERED_DOWN"),
    (NodeFlag.REBOOT_REQUESTED, "REBOOT_REQUESTED"),
    (NodeFlag.REBOOT_ISSUED, "REBOOT_ISSUED"),
    (NodeFlag.RESERVED, "RESERVED"),
    (NodeFlag.RESUME, "RESUME"),
    (NodeFlag.NO_RESPOND, "NOT_RESPONDING"),
    (NodeFlag.UNDRAIN, "UNDRAIN"),
    (NodeFlag.POWERING_UP, "POWERING_UP"),
    (NodeFlag.POWERING_DOWN, "POWERING_DOWN"),
    (NodeFlag.PLANNED, "PLANNED"),
)
"""Flags in the order in which scontrol lists them after the base state."""

_USABLE = (NodeState.IDLE, NodeState.MIXED, NodeState.ALLOCATED)


@dataclass(frozen=True, slots=True)
class Condition:
    """A node's base state and flags with what its jobs add to them."""

    base: NodeState
    flags: NodeFlag

    @property
    def long(self) -> str:
        """sinfo's ``%T``: ``idle``, ``mixed``, ``draining*``, ``allocated+``."""
        return self._word + self._mark

    @property
    def short(self) -> str:
        """sinfo's ``%t``: ``idle``, ``mix``, ``drng*``, ``alloc+``."""
        return SHORT_WORDS.get(self._word, self._word) + self._mark

    @property
    def full(self) -> str:
        """scontrol's ``State=``: ``MIXED+DRAIN+NOT_RESPONDING``."""
        return "+".join([self.base.name, *(word for flag, word in _FLAG_WORDS if self.flags & flag)])

    @property
    def listed(self) -> list[str]:
        """The base state and the flags in the order that JSON has."""
        return [self.base.name, *(word for flag, word in sorted(_FLAG_WORDS) if self.flags & flag)]

    @property
    def busy(self) -> bool:
        """True while jobs run or end there."""
        return self.base in (NodeState.ALLOCATED, NodeState.MIXED) or bool(self.flags & NodeFlag.COMPLETING)

    @property
    def closed(self) -> bool:
        """True when no new work may start there for an administrator's or a failure's sake."""
        return bool(self.flags & (NodeFlag.DRAIN | NodeFlag.FAIL)) or self.base is NodeState.DOWN

    @property
    def _word(self) -> str:
        for flag, idle, busy in ((NodeFlag.DRAIN, "drained", "draining"), (NodeFlag.FAIL, "fail", "failing")):
            if self.flags & flag:
                return busy if self.busy else idle
        if self.base not in _USABLE:
            return "maint" if self.base is NodeState.UNKNOWN and self.flags & NodeFlag.MAINT else self.base.name.lower()
        if self.base is NodeState.ALLOCATED:
            return "allocated"
        if self.flags & NodeFlag.COMPLETING:
            return "completing"
        if self.base is NodeState.MIXED:
            return "mixed"
        return next((word for flag, word in _IDLE_WORDS if self.flags & flag), "idle")

    @property
    def _mark(self) -> str:
        word = self._word
        flags = self.flags & ~NodeFlag.MAINT if word == "maint" else self.flags
        mark = next((mark for flag, mark in _MARKS if flags & flag), "")
        if mark or self.base not in (NodeState.ALLOCATED, NodeState.MIXED) or self.closed:
            return mark
        if self.base is NodeState.ALLOCATED and self.flags & NodeFlag.COMPLETING:
            return "+"
        return "-" if word == "mixed" and self.flags & NodeFlag.PLANNED else ""


_IDLE_WORDS: tuple[tuple[NodeFlag, str], ...] = (
    (NodeFlag.MAINT, "maint"),
    (NodeFlag.RESERVED, "reserved"),
    (NodeFlag.PLANNED, "planned"),
    (NodeFlag.BLOCKED, "blocked"),
)


def condition_of(
    node: Node,
    *,
    cpus_used: int = 0,
    completing: bool = False,
    planned: bool = False,
    reserved: NodeFlag = NodeFlag.NONE,
) -> Condition:
    """What a node is, given what jobs hold there.

    ``cpus_used`` are the CPUs of jobs that run (all of the node's, for a job that has it for itself); jobs that are
    ending hold none but make it ``completing``. ``planned``: kept free for a job that waits. ``reserved``: what an active
    reservation makes of it.

    A node where work of others runs (not only what belongs to every node) is mixed too, and allocated when that and the
    jobs leave no CPU. For a node that is being drained only jobs count: it is drained when they are gone.
    """
    flags = node.flags | reserved
    if node.refusal:
        flags |= NodeFlag.DRAIN
    if completing:
        flags |= NodeFlag.COMPLETING
    base = node.state
    closed = flags & (NodeFlag.DRAIN | NodeFlag.FAIL)
    if base is NodeState.IDLE and (cpus_used > 0 or (node.foreign_pods and not closed)):
        base = NodeState.ALLOCATED if cpus_used + node.foreign_cpus >= node.cpus else NodeState.MIXED
    if planned and base in (NodeState.IDLE, NodeState.MIXED):
        flags |= NodeFlag.PLANNED
    return Condition(base, flags)
