"""What the default policy prefers, as numbers: the planner and the replay of traces both go by them.

Every job is promised a start when it comes, and is never made to start later than that. Within these promises the oldest job
has its start kept free, as EASY backfill does, where age counts more for wide jobs; others start now if they fit beside that.
Those whose age is near the longest wait that there has been here go first among them, which keeps the worst waits from
growing; then the short and small ones that have waited long for what they are, which brings the mean slowdown down.

What others found, and where this differs. EASY backfill (Lifka, JSSPP 1995) keeps one start free, that of the job that came
first. Tsafrir, Etsion and Feitelson (TPDS 2007) and Carastan-Santos and others (CCGrid 2019) let short and small jobs backfill
first, which shortens the mean of waits and slowdowns. Lelong, Reis and Trystram (JSSPP 2017) add a threshold of waiting after
which a job goes by its arrival, against starvation; here it is no constant of a site, but follows from the waits that there
are. New is that age counts more for wide jobs: the longest waits under EASY are almost all of wide jobs, which nothing but a
start that is kept free can start, while narrow ones find room beside it (see ``WIDE``).
"""

from __future__ import annotations

from math import sqrt

WIDE = 2
"""The age of a job as wide as the machine is its wait and this part (a half) of it more, that of a narrow one its wait."""

NEAR = 0.9
"""From this part of the longest wait on a job's age makes it come first: before that wait is reached, since to come first is
not to start at once."""

KEPT_FREE = 1
"""Jobs of those that come first, and do not fit now, for which the earliest start is kept free."""

ATTEMPTS = 6
"""How often a plan is made anew with a job first that the plan before had made late, before promises alone are planned by."""


def promise(planned: int, now: int, longest: int) -> int:
    """The start that a job is promised which comes now and is planned for later: this start, or to wait no longer than the
    longest wait that there has been or is foreseen for those that wait, where that is later. So a promise to a small job that
    finds room early ties nothing down, least of all while a queue is growing that is longer than any before."""
    return max(planned, now + longest)


def age(wait: int, size: int, machine: int) -> float:
    """How long a job has waited, in seconds, where wide ones age faster: ``size`` of ``machine`` processors."""
    return wait + wait * size / (WIDE * machine)


def slowdown(wait: int, limit: int, size: int) -> float:
    """What a job's place among those that do not come first goes by, the greatest first: by how much waiting stretches its
    time in the system, at least, and by the root of its size, since many small ones start in the place of a large one."""
    return (wait + limit) / limit / sqrt(size)


def comes_first(age: float, oldest: float, longest: int) -> bool:
    """Whether a job goes by its age, before those that do not: it is the oldest that waits, or near the longest wait."""
    return age > 0 and (age >= oldest or age >= NEAR * longest)
