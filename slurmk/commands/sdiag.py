"""sdiag: what the controller and its planner have done lately (sdiag(1)).

slurmk has two kinds of plans in place of Slurm's two schedulers: quick answers to a change stand under "Main schedule",
whole plans under "Backfilling". Lines of machinery that slurmk has not are 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from grammar.arguments import Argument, Option, Status
from slurmk.commands.call import Call, Controller, Failure, Output
from slurmk.commands.documents import printing as documents
from slurmk.commands.documents.statistics import STATISTICS, StatisticsView, job_states
from slurmk.commands.frame import CLUSTER, HELP, USAGE, VERSION, check_cluster, early_answer, read_options
from slurmk.commands.statistics import REQUESTS, Counted, Cycles, Statistics
from slurmk.core.errors import Errno, SlurmError
from slurmk.model.states import JobState

OPTIONS: tuple[Option, ...] = (
    Option(("all",), "a"),
    CLUSTER,
    HELP,
    Option(("json",), argument=Argument.OPTIONAL),
    Option(("no-trunc",), status=Status.ACCEPTED, note="no line is cut"),
    Option(("reset",), "r"),
    Option(("sort-by-id",), "i"),
    Option(("sort-by-time",), "t"),
    Option(("sort-by-time2",), "T"),
    USAGE,
    VERSION,
    Option(("yaml",), argument=Argument.OPTIONAL),
)

HELP_TEXTS: Mapping[str, str] = {
    "all": "show everything (what happens anyhow)",
    "json": "print a document as JSON",
    "reset": "begin to count anew",
    "sort-by-id": "requests by their numbers",
    "sort-by-time": "requests by their total times",
    "sort-by-time2": "requests by their mean times",
    "yaml": "print a document as YAML",
}

LINE = "*" * 55
DEPTH = "Depth Mean"
CALLS = 1000


UNKNOWN_FORM = 253
"""The exit code after ``--json`` with a data parser that there is not."""


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Print the counts, or set them back; gives the exit code."""
    given, _ = read_options(call, OPTIONS)
    if (answer := early_answer(call, given, OPTIONS, HELP_TEXTS, "[-M cluster] [-aritT]")) is not None:
        output.write(answer)
        return 0
    check_cluster(call, given, controller.machine.site)
    names = {one.name for one in given}
    if "reset" in names:
        return _reset(call, controller, output)
    asked = documents.form(call, given, output, UNKNOWN_FORM)
    if asked is not None:
        view = StatisticsView(
            controller.statistics, controller.now(), job_states(controller.machine), _latency(), _order(names)
        )
        document = STATISTICS.document(view, asked.version)
        await documents.print_object(call, controller, output, asked, {"statistics": document})
        return 0
    output.write("".join(f"{line}\n" for line in lines(controller, _order(names))))
    return 0


def _reset(call: Call, controller: Controller, output: Output) -> int:
    if not call.caller.operator:
        raise Failure(f"slurm_reset_statistics: {SlurmError(Errno.ACCESS_DENIED)}\n", 255)
    controller.statistics.reset(controller.now())
    output.write("Reset scheduling statistics\n")
    return 0


Order = Callable[[tuple[str, Counted]], int]

ORDERS: Mapping[str, Order] = {
    "sort-by-id": lambda item: REQUESTS[item[0]][1],
    "sort-by-time": lambda item: -item[1].total,
    "sort-by-time2": lambda item: -item[1].mean,
}


def _order(names: set[str]) -> Order:
    chosen = next((name for name in ORDERS if name in names), None)
    return ORDERS[chosen] if chosen else lambda item: -item[1].count


def lines(controller: Controller, order: Order) -> Iterator[str]:
    """Everything, line by line."""
    statistics = controller.statistics
    yield LINE
    yield f"sdiag output at {_date(controller.now())}"
    yield f"Data since      {_date(statistics.since)}"
    yield LINE
    yield "Server thread count:  1"
    yield "RPC queue enabled:    0"
    for name in ("Agent queue size:     ", "Agent count:          ", "Agent thread count:   ", "DBD Agent queue size: "):
        yield f"{name}0"
    yield ""
    yield from _jobs(controller)
    yield ""
    yield from _main(statistics, controller.now())
    yield ""
    yield from _backfill(statistics)
    yield ""
    yield f"Latency for {CALLS} calls to gettimeofday(): {_latency()} microseconds"
    yield ""
    yield from _requests(statistics, order)


def _date(when: float) -> str:
    return f"{time.strftime('%a %b %e %H:%M:%S %Y', time.localtime(when))} ({int(when)})"


def _jobs(controller: Controller) -> Iterator[str]:
    counts = controller.statistics.counts
    states = job_states(controller.machine)
    yield f"Jobs submitted: {counts.submitted}"
    yield f"Jobs started:   {counts.started}"
    yield f"Jobs completed: {counts.completed}"
    yield f"Jobs canceled:  {counts.cancelled}"
    yield f"Jobs failed:    {counts.failed}"
    yield ""
    yield f"Job states ts:  {_date(controller.now())}"
    yield f"Jobs pending:   {states[JobState.PENDING]}"
    yield f"Jobs running:   {states[JobState.RUNNING]}"


def _main(statistics: Statistics, now: float) -> Iterator[str]:
    cycles = statistics.counts.quick
    yield "Main schedule statistics (microseconds):"
    yield f"\tLast cycle:   {cycles.times.last}"
    yield f"\tMax cycle:    {cycles.times.longest}"
    yield f"\tTotal cycles: {cycles.times.count}"
    if cycles.times.count:
        minutes = (now - statistics.since) / 60
        yield f"\tMean cycle:   {cycles.times.mean}"
        yield f"\tMean depth cycle:  {cycles.mean_depth}"
        if minutes >= 1:
            yield f"\tCycles per minute: {int(cycles.times.count / minutes)}"
    yield f"\tLast queue length: {cycles.last_length}"
    yield ""
    yield "Main scheduler exit:"
    yield from _exits(
        cycles.times.count,
        "Hit default_queue_depth",
        "Hit sched_max_job_start",
        "Blocked on licenses",
        "Hit max_rpc_cnt",
        "Timeout (max_sched_time)",
    )


def _exits(ends: int, *others: str) -> Iterator[str]:
    yield f"\tEnd of job queue:{ends or ' 0'}"
    for name in others:
        yield f"\t{name}: 0"


def _backfill(statistics: Statistics) -> Iterator[str]:
    cycles: Cycles = statistics.counts.full
    count = cycles.times.count
    yield "Backfilling stats"
    yield f"\tTotal backfilled jobs (since last slurm start): {statistics.counts.started}"
    yield f"\tTotal backfilled jobs (since last stats cycle start): {statistics.counts.started}"
    yield "\tTotal backfilled heterogeneous job components: 0"
    yield f"\tTotal cycles: {count}"
    yield f"\tLast cycle when: {_date(cycles.last_time) if count else 'N/A'}"
    yield f"\tLast cycle: {cycles.times.last}"
    yield f"\tMax cycle:  {cycles.times.longest}"
    if count:
        yield f"\tMean cycle: {cycles.times.mean}"
    yield f"\tLast depth cycle: {cycles.last_length}"
    yield f"\tLast depth cycle (try sched): {cycles.last_length}"
    if count:
        yield f"\t{DEPTH}: {cycles.mean_depth}"
        yield f"\t{DEPTH} (try depth): {cycles.mean_depth}"
    yield f"\tLast queue length: {cycles.last_length}"
    if count:
        yield f"\tQueue length mean: {cycles.mean_depth}"
    yield "\tLast table size: 1"
    if count:
        yield "\tMean table size: 1"
    yield ""
    yield "Backfill exit"
    yield from _exits(
        count,
        "Hit bf_max_job_start",
        "Hit bf_max_job_test",
        "System state changed",
        "Hit table size limit (bf_node_space_size)",
        "Timeout (bf_max_time)",
    )


def _latency() -> int:
    """Microseconds for so many readings of the clock."""
    began = time.perf_counter()
    for _ in range(CALLS):
        time.time()
    return int((time.perf_counter() - began) * 1_000_000)


def _requests(statistics: Statistics, order: Order) -> Iterator[str]:
    yield "Remote Procedure Call statistics by message type"
    for command, counted in sorted(statistics.counts.requests.items(), key=order):
        name, number = REQUESTS[command]
        yield f"\t{name:<40}({number:>5}) {_counted(counted)}"
    yield ""
    yield "Remote Procedure Call statistics by user"
    for (user_id, name), counted in sorted(statistics.counts.users.items(), key=lambda item: -item[1].count):
        yield f"\t{name:<16}({user_id:>8}) {_counted(counted)}"
    yield ""
    yield "Pending RPC statistics"
    yield "\tNo pending RPCs"


def _counted(counted: Counted) -> str:
    return f"count:{counted.count:<6} ave_time:{counted.mean:<6} total_time:{counted.total}"
