"""What strigger sets: programs that are run when something happens to jobs, nodes or the controller.

``Triggers.due`` compares what is with what it saw before, and says which have gone off. It does no I/O and reads no clock:
whoever owns it looks often enough, keeps what ``rows`` gives, and runs the programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from grammar.errors import GrammarError
from grammar.hostlist import compress, expand
from slurmk.core.machine import Machine
from slurmk.model.job import Job
from slurmk.model.node_states import Condition
from slurmk.model.states import JobFlag, NodeFlag, NodeState

ANY = "*"


@dataclass(frozen=True, slots=True)
class Trigger:
    """One of them. ``resource`` is job, node, slurmctld, slurmdbd or database; ``of`` a job id, node names, or ``*`` for any.
    ``offset`` is seconds after the event, or before it where the event has a known time."""

    number: int
    resource: str
    of: str
    kinds: tuple[str, ...]
    offset: int
    user_id: int
    user_name: str
    program: str
    permanent: bool = False

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes that it is about; none where it is about any."""
        try:
            return frozenset(expand(self.of)) if self.resource == "node" and self.of != ANY else frozenset()
        except GrammarError:
            return frozenset()


@dataclass(frozen=True, slots=True)
class Fired:
    """A trigger that has gone off: run its program with that argument."""

    trigger: Trigger
    argument: str


def _is_down(condition: Condition) -> bool:
    return condition.base in (NodeState.DOWN, NodeState.ERROR)


def _is_drained(condition: Condition) -> bool:
    return bool(condition.flags & NodeFlag.DRAIN) and condition.base in (NodeState.IDLE, NodeState.DOWN)


def _is_draining(condition: Condition) -> bool:
    return bool(condition.flags & NodeFlag.DRAIN) and not _is_drained(condition)


def _is_idle(condition: Condition) -> bool:
    return condition.base is NodeState.IDLE and not condition.flags & NodeFlag.DRAIN


def _is_failing(condition: Condition) -> bool:
    return bool(condition.flags & NodeFlag.FAIL)


def _is_in_service(condition: Condition) -> bool:
    return not _is_down(condition) and not condition.flags & (NodeFlag.DRAIN | NodeFlag.FAIL)


BECOMES: Mapping[str, Callable[[Condition], bool]] = {
    "down": _is_down,
    "up": lambda condition: not _is_down(condition),
    "drained": _is_drained,
    "draining": _is_draining,
    "fail": _is_failing,
    "resume": _is_in_service,
}
"""Events of nodes that happen when a node becomes what it was not before."""

REMAINS: Mapping[str, Callable[[Condition], bool]] = {"idle": _is_idle}
"""Events of nodes that happen while a node is something."""


@dataclass(slots=True)
class Triggers:
    """All triggers there are, and what was seen when they were last looked at."""

    rows: list[Trigger] = field(default_factory=list)
    next_number: int = 1
    _before: dict[str, Condition] = field(default_factory=dict)
    _told: list[str] = field(default_factory=list)
    _late: list[tuple[float, Fired]] = field(default_factory=list)

    def add(self, trigger: Trigger) -> None:
        """Set one; its number is the next."""
        self.rows.append(trigger)
        self.next_number = trigger.number + 1

    def remember(self, machine: Machine) -> None:
        """What nodes are now is what changes count from, unless an earlier look was remembered."""
        self._before = self._before or _conditions(machine)

    def remove(self, gone: Callable[[Trigger], bool]) -> int:
        """Clear those; how many there were."""
        kept = [trigger for trigger in self.rows if not gone(trigger)]
        removed = len(self.rows) - len(kept)
        self.rows[:] = kept
        return removed

    def tell(self, event: str) -> None:
        """Something happened to the controller itself: ``reconfig``."""
        self._told.append(event)

    def due(self, machine: Machine, now: float) -> list[Fired]:
        """Those that have gone off since this was called before. Ones that are not permanent are then gone."""
        if not self.rows and not self._late:
            self._before, self._told = {}, []
            return []
        conditions = _conditions(machine)
        before, self._before = self._before or conditions, conditions
        told, self._told = self._told, []
        fired: list[Fired] = []
        for trigger in list(self.rows):
            argument = _happened(trigger, machine, before, conditions, told, now)
            if argument is not None:
                self._go_off(trigger, argument, now, fired)
        waiting = [late for late in self._late if late[0] > now]
        fired += [each for due, each in self._late if due <= now]
        self._late = waiting
        return fired

    def _go_off(self, trigger: Trigger, argument: str, now: float, fired: list[Fired]) -> None:
        if trigger.offset > 0 and "time" not in trigger.kinds:
            self._late.append((now + trigger.offset, Fired(trigger, argument)))
        else:
            fired.append(Fired(trigger, argument))
        if not trigger.permanent or trigger.resource == "job":
            self.rows.remove(trigger)

    def saved(self) -> dict[str, Any]:
        """Everything that has to outlive the controller, as plain values."""
        return {"next": self.next_number, "triggers": [asdict(trigger) for trigger in self.rows]}


def _conditions(machine: Machine) -> dict[str, Condition]:
    return {name: machine.node_condition(name) for name in machine.nodes}


def restored(data: Mapping[str, Any]) -> Triggers:
    """What ``saved`` gave. Raises KeyError, TypeError or ValueError."""
    rows = [Trigger(**{**row, "kinds": tuple(row["kinds"])}) for row in data["triggers"]]
    return Triggers(rows, int(data["next"]))


def _happened(
    trigger: Trigger,
    machine: Machine,
    before: Mapping[str, Condition],
    after: Mapping[str, Condition],
    told: Iterable[str],
    now: float,
) -> str | None:
    """The argument of the program, when what the trigger is about has happened."""
    if any(event in trigger.kinds for event in told):
        return ""
    if trigger.resource == "job":
        return _of_job(trigger, machine, before, after, now)
    if trigger.resource != "node":
        return None
    names = trigger.nodes or after.keys()
    found = sorted(name for name in names if name in after and _changed(trigger.kinds, before.get(name), after[name]))
    return compress(found) if found else None


def _changed(kinds: Iterable[str], before: Condition | None, after: Condition) -> bool:
    for kind in kinds:
        becomes = BECOMES.get(kind)
        if becomes is not None and becomes(after) and before is not None and not becomes(before):
            return True
        if kind in REMAINS and REMAINS[kind](after):
            return True
    return False


def _of_job(
    trigger: Trigger, machine: Machine, before: Mapping[str, Condition], after: Mapping[str, Condition], now: float
) -> str | None:
    job: Job | None = machine.jobs.get(int(trigger.of))
    if job is None:
        return trigger.of
    if "fini" in trigger.kinds and job.state.finished and not job.flags & JobFlag.COMPLETING:
        return trigger.of
    if "time" in trigger.kinds and job.end_time and job.end_time + trigger.offset <= now:
        return trigger.of
    nodes = job.allocation.nodes if job.allocation is not None else ()
    changed = any(name in after and _changed(trigger.kinds, before.get(name), after[name]) for name in nodes)
    return trigger.of if changed else None
