"""What one submission, or one completion, costs between full plans, from the event to the decision.

``python -m tests.benchmarks.events --json``: the queue of ``plan`` (10,000 mixed jobs that wait on 1,024 nodes, filled by 64
running ones) in the machine and in the planner's mirror. Then single jobs are submitted, and running ones end. Each goes the
whole way, step by step in one thread: the machine handles the event, the snapshot is brought up to date, what changed is
packed for the planner's process, the planner reacts, and the machine takes over what was decided. Seconds of CPU time, which
other programs on the machine change less; a full plan, all the way too, stands beside them. What the store and the socket add
is in ``busy``. The budget is 0.01.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from slurmk.core.effects import Launch
from slurmk.core.events import Planned
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site
from slurmk.planner.kept import Kept
from slurmk.planner.offers import offers_of
from slurmk.planner.plan import forecast
from slurmk.planner.snapshot import Plan
from slurmk.planner.transfer import Mirror, PlanReader, Sent, packed, pieces, unpacked
from slurmk.planner.warm import warm_up
from tests.unit.core.core_story import Cluster

RUNNING = 64


def site_of(nodes: int) -> Site:
    """Equal nodes of 32 cores in one partition."""
    table = tuple(
        Node(f"n{number:05d}", cpus=32, sockets=2, cores_per_socket=16, memory=128_000) for number in range(1, nodes + 1)
    )
    partition = Partition("batch", tuple(node.name for node in table), default=True)
    return Site("events", table, (partition,), default_memory_per_cpu=2000, maximum_job_count=10_000_000)


def mixed_request(chance: random.Random) -> dict[str, Any]:
    """70 % whole nodes, 1 to 256 of them, the others 1 to 64 tasks anywhere; 10 minutes to 24 hours."""
    limit = chance.randint(10, 1440)
    if chance.random() < 0.7:
        count = chance.randint(1, 256)
        return {"minimum_nodes": count, "maximum_nodes": count, "shared": "none", "time_limit": limit}
    return {"tasks": chance.randint(1, 64), "time_limit": limit}


class Controlled:
    """A machine and its planner, as the controller and the planner's process have them, without the processes. ``spent`` has
    the seconds of each step of the event that is handled."""

    def __init__(self, jobs: int, nodes: int, seed: int) -> None:
        site = site_of(nodes)
        self.cluster = Cluster(site)
        self.sent, self.mirror, self.kept = Sent(), Mirror(), Kept()
        self.reader = PlanReader([node.name for node in site.nodes])
        self.spent: dict[str, float] = {}
        chance = random.Random(seed)
        each = max(1, nodes // RUNNING)
        for _ in range(nodes // each):
            self.cluster.submit(minimum_nodes=each, maximum_nodes=each, shared="none", time_limit=chance.randint(60, 1440))
        self.plan_in_full()
        for job in self.cluster.machine.holding():
            self.cluster.started(job.job_id)
        for _ in range(jobs):
            self.cluster.submit(**mixed_request(chance))
        began = time.thread_time()
        self.plan_in_full()
        self.full_plan = time.thread_time() - began

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add what is done within to ``spent``."""
        began = time.perf_counter()
        yield
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - began

    def follow(self) -> None:
        """Tell the mirror what changed."""
        with self.step("snapshot"):
            snapshot = self.cluster.machine.snapshot(self.cluster.now)
        with self.step("transfer"):
            for difference in self.sent.differences(snapshot):
                self.mirror.follow(unpacked(packed(difference)))

    def take_over(self, plan: Plan) -> int:
        """Let the machine do what was planned, part by part; jobs started."""
        with self.step("transfer"):
            parts = [self.reader.plan_of(unpacked(packed(piece))) for piece in pieces(plan)]
        started = 0
        with self.step("decision"):
            for part in parts:
                started += sum(isinstance(each, Launch) for each in self.cluster.tell(Planned(self.cluster.now, part)))
        return started

    def plan_in_full(self) -> None:
        """As the planner's process does it."""
        self.follow()
        snapshot = self.mirror.snapshot()
        self.kept.follow(snapshot.changed)
        self.kept.begin()
        self.forecast = forecast(snapshot)
        offers_of(self.forecast)
        self.kept.finish(self.forecast)
        self.take_over(self.forecast.plan())
        self.kept.adopt()

    def react(self) -> int:
        """To what happened; jobs started."""
        self.follow()
        with self.step("reaction"):
            snapshot = self.mirror.snapshot()
            self.kept.follow(snapshot.changed)
            made = self.kept.reaction(snapshot)()
        return -1 if made is None else self.take_over(made)

    def submission(self) -> int:
        """One more small job comes; jobs started."""
        with self.step("event"):
            self.cluster.submit(tasks=1, time_limit=10)
        return self.react()

    def completion(self) -> int:
        """One of the running jobs ends; jobs started."""
        job_id = self.cluster.machine.holding()[0].job_id
        with self.step("event"):
            self.cluster.run_to_end(job_id)
        return self.react()


def times(controlled: Controlled, event: Callable[[], int], count: int) -> dict[str, object]:
    """CPU seconds of so many events, one after another, and the middle wall-clock seconds of their steps."""
    totals, started, steps = [], 0, dict[str, list[float]]()
    for _ in range(count):
        controlled.spent = {}
        controlled.cluster.now += 1
        began = time.thread_time()
        started += event()
        totals.append(time.thread_time() - began)
        for name, seconds in controlled.spent.items():
            steps.setdefault(name, []).append(seconds)
    totals.sort()
    return {
        "p50": round(statistics.median(totals), 5),
        "p95": round(totals[int(len(totals) * 0.95)], 5),
        "max": round(totals[-1], 5),
        "started": started,
        "steps": {name: round(statistics.median(seconds), 5) for name, seconds in steps.items()},
    }


def measure(jobs: int, nodes: int, seed: int, count: int) -> dict[str, object]:
    """Submissions, then completions."""
    warm_up()
    controlled = Controlled(jobs, nodes, seed)
    submissions = times(controlled, controlled.submission, count)
    completions = times(controlled, controlled.completion, min(count, RUNNING // 2))
    return {
        "jobs": jobs,
        "nodes": nodes,
        "full_plan_cpu_seconds": round(controlled.full_plan, 3),
        "submission_cpu_seconds": submissions,
        "completion_cpu_seconds": completions,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.events", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=100, help="submissions, and at most so many completions")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    options = parser.parse_args()
    result = measure(options.jobs, options.nodes, options.seed, options.events)
    if options.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key:24} {value}")


if __name__ == "__main__":
    main()
