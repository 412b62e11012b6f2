"""The replay itself, compiled: one event after another, at each of them a plan of the waiting jobs.

Every processor is alike here, so what is free over time is one row of numbers: ``profile.Profile`` for a machine of one node.
A policy is an order of the queue, and which of the jobs that do not fit now have their later start kept free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurmk.planner import policy
from slurmk.planner.compiled import compiled
from slurmk.planner.profile import FOREVER
from slurmk.planner.snapshot import BoolArray, IntArray

FloatArray = NDArray[np.float64]

FCFS, EASY, EASY_SJBF = range(3)


class Jobs(NamedTuple):
    """Columns of a trace."""

    submit: IntArray
    size: IntArray
    run: IntArray
    limit: IntArray


class Level(NamedTuple):
    """How many processors are free from each time on until the next one; the last value holds for ever."""

    times: IntArray
    free: IntArray


@compiled
def segment(level: Level, count: int, time: int) -> int:
    """The segment that ``time`` is in."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if level.times[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1


@compiled
def copy(source: Level, target: Level, count: int) -> None:
    """Make the first segments of the target those of the source."""
    for position in range(count):
        target.times[position] = source.times[position]
        target.free[position] = source.free[position]


@compiled
def cut(level: Level, count: int, time: int) -> tuple[int, int]:
    """The segment that begins at ``time``, made if there is none, and how many there are then."""
    index = segment(level, count, time)
    if level.times[index] == time:
        return index, count
    index += 1
    for position in range(count, index, -1):
        level.times[position] = level.times[position - 1]
        level.free[position] = level.free[position - 1]
    level.times[index] = time
    level.free[index] = level.free[index - 1]
    return index, count + 1


@compiled
def take(level: Level, count: int, start: int, end: int, size: int) -> int:
    """So many processors are in use from ``start`` to ``end``, or given back where ``size`` is negative; the new count."""
    first, count = cut(level, count, start)
    last, count = cut(level, count, end)
    for position in range(first, last):
        level.free[position] -= size
    return join(level, join(level, count, last), first)


@compiled
def join(level: Level, count: int, index: int) -> int:
    """Drop the border before a segment where nothing changes there, so that there are two at most for each job that runs or is
    planned; the new count."""
    if index == 0 or level.free[index] != level.free[index - 1]:
        return count
    for position in range(index, count - 1):
        level.times[position] = level.times[position + 1]
        level.free[position] = level.free[position + 1]
    return count - 1


@compiled
def earliest(level: Level, count: int, time: int, size: int, duration: int) -> int:
    """The first moment from ``time`` on from which ``size`` processors stay free for ``duration`` seconds."""
    position = segment(level, count, time)
    start = time
    while True:
        end = start + duration
        while position < count and level.times[position] < end and level.free[position] >= size:
            position += 1
        if position >= count or level.times[position] >= end:
            return start
        while level.free[position] < size:
            position += 1
        start = level.times[position]


@compiled
def forget_past(level: Level, count: int, time: int) -> int:
    """Drop the segments that ended before ``time``, now and then; the new count."""
    index = segment(level, count, time)
    if index < 64:
        return count
    for position in range(index, count):
        level.times[position - index] = level.times[position]
        level.free[position - index] = level.free[position]
    return count - index


class Replay(NamedTuple):
    """The state of a replay. ``counts`` are the numbers that change, by the indexes below."""

    jobs: Jobs
    starts: IntArray  # of each job; -1 until it starts
    promised: IntArray  # the start that each job was told first; FOREVER: none
    planned: IntArray  # its start by the latest plan; FOREVER: none
    queue: IntArray  # jobs that wait, in the order of arrival
    active: IntArray  # jobs that run, in no order
    running: Level  # what those leave free
    booked: Level  # what those and the planned starts leave free, where a policy keeps them
    story: IntArray  # of the job watched, at each event: the time, its planned start, how many wait that came before it
    counts: IntArray


WAITING, ACTIVE, ARRIVED, FREE, RUNNING, BOOKED, LONGEST, TOLD, PROCS = range(9)


def begin(jobs: Jobs, procs: int, watched: int) -> Replay:
    """Before the first event."""
    total = len(jobs.submit)
    room = 4 * total + 8
    replay = Replay(
        jobs,
        np.full(total, -1, np.int64),
        np.full(total, FOREVER, np.int64),
        np.full(total, FOREVER, np.int64),
        np.empty(total, np.int64),
        np.empty(total, np.int64),
        Level(np.full(room, FOREVER, np.int64), np.zeros(room, np.int64)),
        Level(np.full(room, FOREVER, np.int64), np.zeros(room, np.int64)),
        np.zeros((2 * total if watched >= 0 else 0, 3), np.int64),
        np.zeros(9, np.int64),
    )
    for level in (replay.running, replay.booked):
        level.times[0], level.free[0] = 0, procs
    replay.counts[FREE] = replay.counts[PROCS] = procs
    replay.counts[RUNNING] = replay.counts[BOOKED] = 1
    return replay


@compiled
def next_time(replay: Replay) -> int:
    """When something happens next; FOREVER when all is over."""
    jobs, counts = replay.jobs, replay.counts
    now = FOREVER
    if counts[ARRIVED] < len(jobs.submit):
        now = jobs.submit[counts[ARRIVED]]
    for position in range(counts[ACTIVE]):
        job = replay.active[position]
        now = min(now, replay.starts[job] + jobs.run[job])
    return now


@compiled
def advance(replay: Replay, now: int) -> int:
    """Let jobs end and arrive; how many waited before."""
    jobs, counts = replay.jobs, replay.counts
    left = 0
    for position in range(counts[ACTIVE]):
        job = replay.active[position]
        if replay.starts[job] + jobs.run[job] > now:
            replay.active[left] = job
            left += 1
            continue
        counts[FREE] += jobs.size[job]
        end = replay.starts[job] + jobs.limit[job]
        if end > now:
            counts[RUNNING] = take(replay.running, counts[RUNNING], now, end, -jobs.size[job])
            counts[BOOKED] = take(replay.booked, counts[BOOKED], now, end, -jobs.size[job])
    counts[ACTIVE] = left
    counts[RUNNING] = forget_past(replay.running, counts[RUNNING], now)
    counts[BOOKED] = forget_past(replay.booked, counts[BOOKED], now)
    before = counts[WAITING]
    while counts[ARRIVED] < len(jobs.submit) and jobs.submit[counts[ARRIVED]] == now:
        replay.queue[counts[WAITING]] = counts[ARRIVED]
        counts[WAITING] += 1
        counts[ARRIVED] += 1
    return int(before)


@compiled
def some_may_start(replay: Replay) -> bool:
    """Whether any waiting job is small enough for what is free now."""
    smallest = FOREVER
    for position in range(replay.counts[WAITING]):
        smallest = min(smallest, replay.jobs.size[replay.queue[position]])
    return bool(smallest <= replay.counts[FREE])


@compiled
def start_planned(replay: Replay, now: int, watched: int) -> None:
    """Start what is planned for now, note what is promised to others, and what happened to the job ``watched``."""
    jobs, counts, planned = replay.jobs, replay.counts, replay.planned
    left = 0
    for position in range(counts[WAITING]):
        job = replay.queue[position]
        if replay.promised[job] == FOREVER:
            replay.promised[job] = planned[job]
        if job == watched:
            told = counts[TOLD]
            replay.story[told, 0], replay.story[told, 1], replay.story[told, 2] = now, planned[job], left
            counts[TOLD] += 1
        if planned[job] > now:
            replay.queue[left] = job
            left += 1
            continue
        replay.starts[job] = now
        replay.active[counts[ACTIVE]] = job
        counts[ACTIVE] += 1
        counts[FREE] -= jobs.size[job]
        counts[RUNNING] = take(replay.running, counts[RUNNING], now, now + jobs.limit[job], jobs.size[job])
    counts[WAITING] = left


@compiled
def put_in_order(queue: IntArray, keys: FloatArray, ordered: IntArray) -> None:
    """The jobs of the queue by their keys (of each place in the queue), the smallest first, equal ones as they came."""
    count = len(queue)
    places, merged = np.arange(count), np.empty(count, np.int64)
    width = 1
    while width < count:
        for begin_left in range(0, count, 2 * width):
            end_left, end_right = min(begin_left + width, count), min(begin_left + 2 * width, count)
            left, right = begin_left, end_left
            for position in range(begin_left, end_right):
                if right >= end_right or (left < end_left and keys[places[left]] <= keys[places[right]]):
                    merged[position] = places[left]
                    left += 1
                else:
                    merged[position] = places[right]
                    right += 1
        places, merged = merged, places
        width *= 2
    for position in range(count):
        ordered[position] = queue[places[position]]


# ---------------------------------------------------------------------------------------------- the textbooks' policies


@compiled
def plan_head(replay: Replay, now: int, kind: int) -> None:
    """FCFS and EASY: jobs start in the order of arrival; the first one that does not fit is promised its earliest start, and
    with EASY those behind it may start now if that delays it not, shorter limits first with EASY-SJBF."""
    jobs, counts, planned = replay.jobs, replay.counts, replay.planned
    queue = replay.queue[: counts[WAITING]]
    level, count = replay.booked, counts[RUNNING]
    copy(replay.running, level, count)
    position = 0
    while position < len(queue):
        job = queue[position]
        position += 1
        planned[job] = earliest(level, count, now, jobs.size[job], jobs.limit[job])
        count = take(level, count, planned[job], planned[job] + jobs.limit[job], jobs.size[job])
        if planned[job] > now:
            break
    rest = queue[position:]
    for job in rest:
        planned[job] = FOREVER
    if kind == FCFS:
        return
    if kind == EASY_SJBF:
        keys, ordered = jobs.limit[rest].astype(np.float64), np.empty(len(rest), np.int64)
        put_in_order(rest, keys, ordered)
        rest = ordered
    free = level.free[segment(level, count, now)]
    for job in rest:
        if jobs.size[job] <= free and earliest(level, count, now, jobs.size[job], jobs.limit[job]) == now:
            planned[job] = now
            count = take(level, count, now, now + jobs.limit[job], jobs.size[job])
            free -= jobs.size[job]


@compiled
def replay_head(replay: Replay, kind: int, watched: int) -> None:
    """Replay with FCFS, EASY or EASY-SJBF."""
    while True:
        now = next_time(replay)
        if now == FOREVER:
            return
        advance(replay, now)
        replay.counts[BOOKED] = 1
        if watched >= 0 or some_may_start(replay):
            plan_head(replay, now, kind)
            start_planned(replay, now, watched)


@compiled
def book_new(replay: Replay, now: int, before: int) -> None:
    """Give those that have just come their earliest start beside all that is booked."""
    jobs, counts = replay.jobs, replay.counts
    for position in range(before, counts[WAITING]):
        job = replay.queue[position]
        start = earliest(replay.booked, counts[BOOKED], now, jobs.size[job], jobs.limit[job])
        replay.planned[job] = start
        counts[BOOKED] = take(replay.booked, counts[BOOKED], start, start + jobs.limit[job], jobs.size[job])


@compiled
def move_forward(replay: Replay, now: int, job: int, at_once: bool) -> None:
    """Book a job anew at its earliest start, which is not after the one that it has; ``at_once``: only if that is now."""
    jobs, counts, planned = replay.jobs, replay.counts, replay.planned
    size, limit = jobs.size[job], jobs.limit[job]
    counts[BOOKED] = take(replay.booked, counts[BOOKED], planned[job], planned[job] + limit, -size)
    start = earliest(replay.booked, counts[BOOKED], now, size, limit)
    if start < planned[job] and (start == now or not at_once):
        planned[job] = start
    counts[BOOKED] = take(replay.booked, counts[BOOKED], planned[job], planned[job] + limit, size)


@compiled
def replay_conservative(replay: Replay, watched: int) -> None:
    """Replay with conservative backfill: each job has a start booked from its submission on, which moves forward when
    capacity comes back, the earliest job first, and never backward."""
    while True:
        now = next_time(replay)
        if now == FOREVER:
            return
        free = replay.counts[FREE]
        before = advance(replay, now)
        if replay.counts[FREE] > free:
            for position in range(before):
                if replay.planned[replay.queue[position]] > now:
                    move_forward(replay, now, replay.queue[position], False)
        book_new(replay, now, before)
        start_planned(replay, now, watched)


# ---------------------------------------------------------------------------------------------- the default policy

# Numba keeps machine code by this file's date: who changes a number in ``policy`` touches this file too.
stretch = compiled(policy.stretch)
age = compiled(policy.age)
comes_first = compiled(policy.comes_first)
delays_little = compiled(policy.delays_little)
promise = compiled(policy.promise)


GROUP = 1e12
"""Lies between the keys of jobs of one group and those of the next, more than any of them is."""


class Attempt(NamedTuple):
    """A plan that may turn out to break a promise, and what it is made by."""

    planned: IntArray  # by job; FOREVER: not yet
    first: BoolArray  # by job: comes before all others, since another attempt made it late
    preferred: IntArray  # waiting jobs in the order of preference
    early: BoolArray  # by job: may have its earliest start kept free
    promised: IntArray  # waiting jobs in the order of their promises
    keys: FloatArray
    level: Level


def begin_attempts(jobs: Jobs) -> Attempt:
    """Room for attempts."""
    total = len(jobs.submit)
    room = 4 * total + 8
    return Attempt(
        np.full(total, FOREVER, np.int64),
        np.zeros(total, np.bool_),
        np.empty(total, np.int64),
        np.zeros(total, np.bool_),
        np.empty(total, np.int64),
        np.empty(total, np.float64),
        Level(np.full(room, FOREVER, np.int64), np.zeros(room, np.int64)),
    )


@compiled
def order(replay: Replay, attempt: Attempt, now: int) -> None:
    """Lay down who comes before whom."""
    jobs, keys = replay.jobs, attempt.keys
    queue = replay.queue[: replay.counts[WAITING]]
    for position in range(len(queue)):
        job = queue[position]
        wait, limit, size = now - jobs.submit[job], jobs.limit[job], jobs.size[job]
        own = age(wait, size, replay.counts[PROCS])
        attempt.first[job] = False
        attempt.early[job] = comes_first(own, replay.counts[LONGEST])
        if delays_little(wait, limit):
            keys[position] = -2 * GROUP - stretch(wait, limit, size)
        elif attempt.early[job]:
            keys[position] = -GROUP - own
        else:
            keys[position] = -stretch(wait, limit, size)
    put_in_order(queue, attempt.keys, attempt.preferred)
    for position in range(len(queue)):
        attempt.keys[position] = replay.promised[queue[position]]
    put_in_order(queue, attempt.keys, attempt.promised)


@compiled
def place(replay: Replay, attempt: Attempt, count: int, now: int, job: int, at_once: bool) -> int:
    """Plan a job at its earliest start beside what the attempt has; ``at_once``: only if that is now. The new count."""
    size, limit = replay.jobs.size[job], replay.jobs.limit[job]
    start = earliest(attempt.level, count, now, size, limit)
    if start > now and at_once:
        return count
    attempt.planned[job] = start
    return take(attempt.level, count, start, start + limit, size)


@compiled
def try_once(replay: Replay, attempt: Attempt, now: int) -> tuple[int, int]:
    """Make a plan; a job that it makes late (-1: none), and the segments of its level."""
    count, waiting = replay.counts[RUNNING], replay.counts[WAITING]
    copy(replay.running, attempt.level, count)
    ordered = attempt.promised[:waiting]
    for job in ordered:
        attempt.planned[job] = FOREVER
    for job in ordered:
        if attempt.first[job]:
            count = place(replay, attempt, count, now, job, False)
    kept = 0
    free = attempt.level.free[segment(attempt.level, count, now)]
    for position in range(waiting):
        job = attempt.preferred[position]
        keeps = attempt.early[job] and kept < policy.KEPT_FREE
        if attempt.planned[job] < FOREVER or (replay.jobs.size[job] > free and not keeps):
            continue
        count = place(replay, attempt, count, now, job, not keeps)
        if attempt.planned[job] == now:
            free -= replay.jobs.size[job]
        elif keeps:
            kept += 1
    for job in ordered:
        if attempt.planned[job] == FOREVER:
            count = place(replay, attempt, count, now, job, False)
        if attempt.planned[job] > replay.promised[job]:
            return job, count
    return -1, count


@compiled
def plan_anew(replay: Replay, attempt: Attempt, now: int) -> bool:
    """Plan by preference, if a plan is found that breaks no promise."""
    counts = replay.counts
    for _ in range(policy.ATTEMPTS):
        late, count = try_once(replay, attempt, now)
        if late < 0:
            copy(attempt.level, replay.booked, count)
            counts[BOOKED] = count
            for position in range(counts[WAITING]):
                job = replay.queue[position]
                replay.planned[job] = attempt.planned[job]
            return True
        if attempt.first[late]:
            return False
        attempt.first[late] = True
    return False


@compiled
def replay_default(replay: Replay, attempt: Attempt, watched: int) -> None:
    """Replay with the policy that ``policy`` tells of."""
    jobs, counts = replay.jobs, replay.counts
    while True:
        now = next_time(replay)
        if now == FOREVER:
            return
        before = advance(replay, now)
        book_new(replay, now, before)
        if counts[WAITING] == 0:
            continue
        counts[LONGEST] = max(counts[LONGEST], now - jobs.submit[replay.queue[0]])
        longest = counts[LONGEST]
        if before < counts[WAITING]:
            for position in range(counts[WAITING]):
                longest = max(longest, replay.planned[replay.queue[position]] - jobs.submit[replay.queue[position]])
        for position in range(before, counts[WAITING]):
            job = replay.queue[position]
            replay.promised[job] = replay.planned[job]
            if replay.planned[job] > now:
                replay.promised[job] = promise(replay.planned[job], now, longest)
        if some_may_start(replay):
            order(replay, attempt, now)
            if not plan_anew(replay, attempt, now):
                for position in range(counts[WAITING]):
                    job = attempt.preferred[position]
                    if replay.planned[job] > now and jobs.size[job] <= counts[FREE]:
                        move_forward(replay, now, job, True)
        start_planned(replay, now, watched)
