"""What the default policy prefers, as numbers: the planner and the replay of traces both go by them.

Every job is promised a start when it comes, and is never made to start later than that. Within these promises the job that
came first and all that have waited long, as waits go here, go first in the order of arrival, which keeps the worst waits from
growing. Of the others, the short and small ones that have waited long for what they are go first, which brings the mean
slowdown down: many of them fit where the first ones leave room.
"""

from __future__ import annotations

from math import sqrt

MARGIN = 4
"""A job is promised the start that is planned when it comes, or to wait no longer than this part (a quarter) of the longest
wait that there has been, where that is later: one to a job that hardly waits anyway would tie down more than it is worth."""

LONG = 2
"""A wait is long from this part (a half) on of the longest wait that there has been so far."""

KEPT_FREE = 4
"""Jobs of those that come first, and do not fit now, for which the earliest start is kept free. One is too few where several
of them need most of the machine: each one would wait for it to be drained anew."""

ATTEMPTS = 6
"""How often a plan is made anew with a job first that the plan before had made late, before promises alone are planned by."""


def promise(planned: int, now: int, longest: int) -> int:
    """The start that a job is promised which comes now and is planned for later."""
    return max(planned, now + longest // MARGIN)


def slowdown(wait: int, limit: int, size: int) -> float:
    """What a job's place among those that have not waited long goes by, the greatest first: by how much waiting stretches its
    time in the system, at least, and by the root of its size, since many small ones start in the place of a large one."""
    return (wait + limit) / limit / sqrt(size)


def comes_first(place: int, wait: int, longest: int) -> bool:
    """Whether a job goes by its arrival, before those that do not: it is the one that came first (``place`` 0), or has waited
    long."""
    return wait > 0 and (place == 0 or LONG * wait >= longest)
