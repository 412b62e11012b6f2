"""What the default policy prefers, as numbers: the planner and the replay of traces both go by them.

Every job is told a start when it comes, and is never made to start later than that. Within these promises the shortest and
smallest jobs that have waited long for what they are go first, which brings the mean slowdown down, until somebody has
waited long as waits go here: then the longest waits go first, in the order of arrival, which keeps the worst from growing.
"""

from __future__ import annotations

from math import sqrt

MARGIN = 2
"""A job is promised its planned start and, where others wait, this part (a half) of the longest present wait more: the
longer the queue has made others wait, the more room there must be to let those go first."""

LONG = 2
"""A wait is long from this part (a half) on of the longest wait that there has been so far."""

KEPT_FREE = 4
"""Jobs that have waited long, and do not fit now, for which the earliest start is kept free. One is too few where several of
them need most of the machine: each one would wait for it to be drained anew."""

ATTEMPTS = 6
"""How often a plan is made anew with a job first that the plan before had made late, before promises alone are planned by."""


def slowdown(wait: int, limit: int, size: int) -> float:
    """What a job's place among those that have not waited long goes by, the greatest first: by how much waiting stretches its
    time in the system, at least, and by the root of its size, since many small ones start in the place of a large one."""
    return (wait + limit) / limit / sqrt(size)


def has_waited_long(wait: int, longest: int) -> bool:
    """Whether such a wait puts a job before all that have not waited long."""
    return wait > 0 and LONG * wait >= longest
