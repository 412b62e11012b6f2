"""What the default policy prefers, as numbers: the planner and the replay of traces both go by them.

Every job is promised a start when it comes, and is never made to start later than that. Within these promises nothing is kept
free for a job merely because it is the oldest: those start now that fit, who has waited longest for what he is first. Only
those whose age is near the longest wait that there has been here have their starts kept free, the oldest first, which keeps the
worst waits from growing. Before all of these come jobs that have waited many times their own limit: others lose next to
nothing by them.

What others found, and where this differs. EASY backfill (Lifka, JSSPP 1995) keeps one start free at all times, that of the job
that came first; most of the time this drains the machine for a job whose wait is far from the worst, and there much of the
waiting comes from. Tang, Lan, Desai and Buettner (Cluster 2009) order jobs by wait over limit and by size (WFP), so that all
age, wide ones faster, where the shortest-first orders of Tsafrir, Etsion and Feitelson (TPDS 2007) and of Carastan-Santos and
others (CCGrid 2019) starve long and wide ones. Lelong, Reis and Trystram (JSSPP 2017) add a threshold of waiting after which a
job goes by its arrival, against starvation; here it is no constant of a site, but follows from the waits that there are. New is
that age counts more for wide jobs: the longest waits are almost all of wide jobs, which nothing but a start that is kept free
can start, while narrow ones find room beside it (see ``WIDE``).
"""

from __future__ import annotations

WIDE = 3
"""The age of a job as wide as the machine is its wait and this part (a third) of it more, that of a narrow one its wait."""

NEAR = 0.9
"""From this part of the longest wait on a job's age makes it come first: before that wait is reached, since to come first is
not to start at once."""

KEPT_FREE = 3
"""Jobs of those that come first, and do not fit now, for which the earliest start is kept free."""

LITTLE = 30
"""A job that has waited so many times its limit delays others by little beside what it has waited."""

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


def comes_first(age: float, longest: int) -> bool:
    """Whether a job goes by its age, and may have its start kept free: its age is near the longest wait."""
    return age > 0 and age >= NEAR * longest


def delays_little(wait: int, limit: int) -> bool:
    """Whether a job goes before those that come first: it has waited so long for so little that they lose little by it."""
    return wait >= LITTLE * limit


def stretch(wait: int, limit: int, size: int) -> float:
    """What a job's place goes by where its age does not say it, the greatest first: how long it has waited for what it asks,
    a little more for large ones, since they find room more seldom."""
    root: float = size ** (1 / 3)
    return wait / limit * root
