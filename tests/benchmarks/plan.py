"""How long a full plan takes: a mixed queue on a filled cluster.

``python -m tests.benchmarks.plan --jobs 10000 --nodes 1024 --json``: 70 % whole-node jobs of 1 to 256 nodes, 30 % of 1 to
64 tasks anywhere, limits of 10 minutes to 24 hours, on nodes of 32 cores that 64 running jobs fill. Needs nothing but the
planner: no cluster and no database.

``--growth`` shows beside it how the time of a plan grows with the jobs, with the nodes and with the instants at which
something ends, and with how often a demand comes again; with ``--trace FILE`` (SWF or ``sacct -P``, also gzipped) how often a
real queue repeats a demand: while a job waits, one that asks for as much for as long.
"""

from __future__ import annotations

import argparse
import gzip
import heapq
import json
import os
import random
import resource
import time
from dataclasses import replace

import numpy as np

from slurmk.model.job import Allocation, NodeShare
from slurmk.planner.forecast import Forecast
from slurmk.planner.offers import offers_of
from slurmk.planner.plan import forecast, plan, plan_starts
from slurmk.planner.simulator.replay import Policy, replay
from slurmk.planner.simulator.trace import records_of, trace_of
from slurmk.planner.snapshot import Demand, NodeTable, PartitionRow, PendingRow, RunningRow, Snapshot
from slurmk.planner.warm import warm_up

NOW = 1_800_000_000
CORES = 32
MEMORY = 128_000


def table(nodes: int) -> NodeTable:
    """Equal nodes without GRES."""
    full = np.full(nodes, 1, dtype=np.int64)
    return NodeTable(
        names=tuple(f"n{number:05d}" for number in range(1, nodes + 1)),
        cpus=full * CORES,
        cores=full * CORES,
        sockets=full * 2,
        threads_per_core=full,
        memory=full * MEMORY,
        temporary_disk=full * 0,
        gres_names=(),
        gres=np.zeros((nodes, 0), dtype=np.int64),
        weight=full,
        available=np.ones(nodes, dtype=np.bool_),
        returns=np.zeros(nodes, dtype=np.bool_),
        features=(frozenset(),) * nodes,
        foreign_cpus=full * 0,
        foreign_memory=full * 0,
    )


def demand(nodes: int = 1, tasks: int | None = None, *, whole: bool = False) -> Demand:
    """A whole-node demand of ``nodes``, or ``tasks`` of one CPU and 2000 MiB anywhere."""
    return Demand(
        minimum_nodes=nodes,
        maximum_nodes=nodes if whole else 1 << 30,
        tasks=nodes if tasks is None else tasks,
        cpus_per_task=1,
        tasks_per_node=None,
        tasks_per_node_exact=False,
        tasks_per_core=None,
        tasks_per_socket=None,
        minimum_cpus=0,
        minimum_cpus_per_node=0,
        memory_per_node=0 if whole else None,
        memory_per_cpu=None if whole else 2000,
        whole_nodes=whole,
    )


def mixed(jobs: int, nodes: int, seed: int = 1, running: int = 64) -> Snapshot:
    """The queue of the module's text; the same for the same arguments."""
    chance = random.Random(seed)
    nodes_table = table(nodes)
    pending = []
    demands: dict[Demand, Demand] = {}
    for job in range(jobs):
        whole = chance.random() < 0.7
        wanted = demand(chance.randint(1, min(256, nodes)), whole=True) if whole else demand(tasks=chance.randint(1, 64))
        pending.append(
            PendingRow(
                job_id=1000 + job,
                demand=demands.setdefault(wanted, wanted),
                partitions=("batch",),
                priority=chance.randint(1, 1 << 20),
                submit_time=NOW - jobs + job,
                time_limit=60 * chance.randint(10, 1440),
                user_id=1000 + job % 50,
            )
        )
    held = []
    for number, part in enumerate(np.array_split(np.arange(nodes), running)):
        shares = tuple(NodeShare(nodes_table.names[node], CORES, MEMORY, 1) for node in part.tolist())
        if shares:
            end = NOW + 60 * chance.randint(1, 1440)
            held.append(RunningRow(1 + number, end, Allocation("batch", shares, whole_nodes=True), user_id=1000))
    partition = PartitionRow("batch", np.arange(nodes), True, 1, None, 0, None)
    return Snapshot(1, NOW, nodes_table, (partition,), tuple(pending), tuple(held), window=0)


def measure(jobs: int, nodes: int, seed: int, repeat: int) -> dict[str, object]:
    """Best of ``repeat`` plans, in wall and CPU seconds, and what the plan says."""
    snapshot = mixed(jobs, nodes, seed)
    warm_up()  # as the planner's process does
    walls, cpus = [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        made = plan(snapshot)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    kept = forecast(snapshot)
    offers_of(kept)
    submission, completion, started = react(snapshot, kept)
    planned = [outlook.start_time for outlook in made.outlooks.values() if outlook.start_time is not None]
    return {
        "seconds": round(min(walls), 4),
        "cpu_seconds": round(min(cpus), 4),
        "seconds_all": [round(wall, 4) for wall in walls],
        "jobs": jobs,
        "nodes": nodes,
        "planned": len(planned),
        "started": len(made.starts),
        "reaction_to_submission_cpu_seconds": submission,
        "reaction_to_completion_cpu_seconds": completion,
        "started_by_completion": started,
        "distinct_demands": len({(row.demand, row.time_limit) for row in snapshot.pending}),
        "last_start_days": round((max(planned, default=NOW) - NOW) / 86400, 2),
        "mean_start_days": round((sum(planned) / max(len(planned), 1) - NOW) / 86400, 3),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def growth(jobs: int, nodes: int, seed: int) -> dict[str, list[dict[str, float]]]:
    """CPU seconds of plans that differ in one thing from the one of ``jobs`` on ``nodes``, and the instants they end with."""
    base = mixed(jobs, nodes, seed)
    return {
        "by_jobs": [_grown(mixed(jobs * step // 8, nodes, seed), jobs=jobs * step // 8) for step in (1, 2, 4, 8)],
        "by_nodes": [_grown(mixed(jobs, nodes * step // 4, seed), nodes=nodes * step // 4) for step in (1, 2, 4, 8)],
        "by_instants": [
            _grown(mixed(jobs // 8, nodes, seed, running=many), jobs=jobs // 8, running=many) for many in (8, 64, 512, nodes)
        ],
        "by_distinct_demands": [_grown(_repeated(base, many), demands=many) for many in (1, 10, 100, 1000)],
    }


def _grown(snapshot: Snapshot, **changed: int) -> dict[str, float]:
    seconds = time.process_time()
    made = forecast(snapshot)
    return {**changed, "cpu_seconds": round(time.process_time() - seconds, 4), "instants": made.profile.count}


def _repeated(snapshot: Snapshot, many: int) -> Snapshot:
    """The same queue with so many different demands, each asked for again and again."""
    asked = [(row.demand, row.time_limit) for row in snapshot.pending[:many]]
    rows = enumerate(snapshot.pending)
    pending = tuple(replace(row, demand=asked[at % many][0], time_limit=asked[at % many][1]) for at, row in rows)
    return replace(snapshot, pending=pending)


def repetition(path: str) -> dict[str, float]:
    """Of a trace's jobs that waited, the share that asked for what one before it in the queue asked for, too, by the starts of
    EASY backfill; and how many different demands the longest queue had."""
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        trace = trace_of(*records_of(file))
    starts = replay(trace, Policy.EASY).starts
    waited = repeated = longest = different = 0
    queue: dict[tuple[int, int], int] = {}
    ends: list[tuple[int, int]] = []
    for job in range(len(trace)):
        while ends and ends[0][0] <= trace.submit[job]:
            gone = heapq.heappop(ends)[1]
            asked = int(trace.size[gone]), int(trace.limit[gone])
            queue[asked] -= 1
            if not queue[asked]:
                del queue[asked]
        if starts[job] <= trace.submit[job]:
            continue
        asked = int(trace.size[job]), int(trace.limit[job])
        waited, repeated = waited + 1, repeated + (asked in queue)
        queue[asked] = queue.get(asked, 0) + 1
        heapq.heappush(ends, (int(starts[job]), job))
        if len(ends) > longest:
            longest, different = len(ends), len(queue)
    return {
        "jobs": len(trace),
        "waited": waited,
        "repeated_share": round(repeated / max(1, waited), 3),
        "longest_queue": longest,
        "demands_in_it": different,
    }


def react(snapshot: Snapshot, kept: Forecast) -> tuple[float, float, int]:
    """CPU seconds from a new snapshot to its starts: for a submission, and for the end of a running job; jobs started."""
    new = PendingRow(1, demand(tasks=1), ("batch",), 1, snapshot.time, 600, 1000)
    submitted = replace(snapshot, pending=(*snapshot.pending, new))
    begin = time.thread_time()
    plan_starts(submitted, kept, {1: new})
    submission = time.thread_time() - begin
    ended = replace(submitted, running=snapshot.running[1:])
    begin = time.thread_time()
    made = plan_starts(ended, kept, {})
    completion = time.thread_time() - begin
    return round(submission, 5), round(completion, 5), len(made.starts) if made else -1


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.plan", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--growth", action="store_true", help="also plans of other sizes")
    parser.add_argument("--trace", action="append", default=[], metavar="FILE", help="also how often it repeats a demand")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    options = parser.parse_args()
    result = measure(options.jobs, options.nodes, options.seed, options.repeat)
    if options.growth:
        result |= growth(options.jobs, options.nodes, options.seed)
    for path in options.trace:
        result[os.path.basename(path)] = repetition(path)
    if options.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key:18} {value}")


if __name__ == "__main__":
    main()
