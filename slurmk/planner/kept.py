"""The forecast that reactions go on from, while the next full plan is being made."""

from __future__ import annotations

from collections.abc import Callable

from slurmk.planner.forecast import Forecast
from slurmk.planner.plan import plan_starts
from slurmk.planner.reaction import Changed
from slurmk.planner.snapshot import Plan, Snapshot


class Kept:
    """The forecast of the last plan that was taken over, and what changed of the queue since it was made.

    Every snapshot is told to ``follow``. One of them is planned in full: ``begin`` says so at once, ``finish`` when its
    forecast is there, and ``adopt`` when its plan was taken over, so that what it starts runs. Only ``finish``, and the work of
    a reaction, may be called from other threads than the rest.
    """

    def __init__(self) -> None:
        self._forecast: Forecast | None = None
        self._changed: Changed | None = {}
        self._made: Forecast | None = None
        self._since: Changed | None = {}  # what changed since the snapshot of the full plan in progress
        self._begun = False

    @property
    def can_react(self) -> bool:
        return self._forecast is not None

    def follow(self, changed: Changed | None) -> None:
        """What a newer snapshot says is different from the one before; None: anything may be."""
        if self._forecast is not None:
            self._changed = _together(self._changed, changed)
        if self._begun:
            self._since = _together(self._since, changed)

    def begin(self) -> None:
        """The snapshot followed last is being planned in full."""
        self._since, self._begun = {}, True

    def finish(self, made: Forecast) -> None:
        """That is its forecast."""
        self._made = made

    def adopt(self) -> None:
        """Go on from the full plan made last."""
        self._forecast, self._changed = self._made, self._since
        self._made, self._since, self._begun = None, {}, False

    def forget(self) -> None:
        """Go on from nothing until there is another full plan."""
        self._forecast, self._made, self._begun = None, None, False

    def reaction(self, snapshot: Snapshot) -> Callable[[], Plan | None]:
        """The work of finding out what starts now, of the snapshot followed last; it gives None when only a full plan can
        answer."""
        known, changed, self._changed = self._forecast, self._changed, {}

        def react() -> Plan | None:
            made = None if known is None else plan_starts(snapshot, known, changed)
            if made is None and self._forecast is known:
                self._forecast = None
            return made

        return react


def _together(before: Changed | None, after: Changed | None) -> Changed | None:
    return None if before is None or after is None else {**before, **after}
