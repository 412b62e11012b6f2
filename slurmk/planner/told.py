"""What a plan tells the records that wait, and which of them it told something lately."""

from __future__ import annotations

from slurmk.planner.snapshot import Outlook


class Told(dict[int, Outlook]):
    """What records are told, by their job ids. ``lately`` are those that were told something since that was last emptied."""

    __slots__ = ("lately",)

    def __init__(self) -> None:
        super().__init__()
        self.lately: dict[int, None] = {}

    def __setitem__(self, job_id: int, outlook: Outlook) -> None:
        super().__setitem__(job_id, outlook)
        self.lately[job_id] = None
