"""What sdiag and the REST API's ``diag`` tell of the controller, as a table. Machinery that slurmk has not is 0, as in sdiag's
text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from slurmk.commands.documents.shape import Member, Shape, constant, nested
from slurmk.commands.documents.values import number
from slurmk.commands.statistics import REQUESTS, Counted, Cycles, Statistics
from slurmk.core.machine import Machine
from slurmk.model.states import JobState


@dataclass(frozen=True, slots=True)
class StatisticsView:
    """The counts at one moment. ``states`` are the jobs in memory by state, ``latency`` what 1000 readings of the clock took
    in microseconds, ``order`` that of the requests."""

    statistics: Statistics
    now: float
    states: Counter[JobState]
    latency: int
    order: Callable[[tuple[str, Counted]], int]

    @property
    def quick(self) -> Cycles:
        return self.statistics.counts.quick

    @property
    def full(self) -> Cycles:
        return self.statistics.counts.full

    @property
    def quick_per_minute(self) -> int:
        minutes = (self.now - self.statistics.since) / 60
        return int(self.quick.times.count / minutes) if minutes >= 1 else 0


def job_states(machine: Machine) -> Counter[JobState]:
    """How many jobs in memory are in each state."""
    return Counter(job.state for job in machine.jobs.values())


@dataclass(frozen=True, slots=True)
class _Request:
    command: str
    counted: Counted


@dataclass(frozen=True, slots=True)
class _User:
    user_id: int
    name: str
    counted: Counted


_REQUEST: Shape[_Request] = Shape(
    Member("type_id", lambda row: REQUESTS[row.command][1]),
    Member("message_type", lambda row: REQUESTS[row.command][0]),
    Member("count", lambda row: row.counted.count),
    constant("queued", 0),
    constant("dropped", 0),
    constant("cycle_last", 0),
    constant("cycle_max", 0),
    Member("total_time", lambda row: row.counted.total),
    Member("average_time", lambda row: number(row.counted.mean)),
)

_USER: Shape[_User] = Shape(
    Member("user_id", lambda row: row.user_id),
    Member("user", lambda row: row.name),
    Member("count", lambda row: row.counted.count),
    Member("total_time", lambda row: row.counted.total),
    Member("average_time", lambda row: number(row.counted.mean)),
)


def _requests(view: StatisticsView) -> list[dict[str, object]]:
    rows = sorted(view.statistics.counts.requests.items(), key=view.order)
    return [_REQUEST.document(_Request(command, counted)) for command, counted in rows]


def _users(view: StatisticsView) -> list[dict[str, object]]:
    rows = sorted(view.statistics.counts.users.items(), key=lambda item: -item[1].count)
    return [_USER.document(_User(user_id, name, counted)) for (user_id, name), counted in rows]


def _zeros(*names: str) -> Iterable[Member[StatisticsView]]:
    return (constant(name, 0) for name in names)


STATISTICS: Shape[StatisticsView] = Shape(
    constant("parts_packed", 1, until=44),
    Member("req_time", lambda view: number(int(view.now))),
    Member("req_time_start", lambda view: number(int(view.statistics.since))),
    constant("server_thread_count", 1),
    *_zeros("agent_queue_size", "agent_count", "agent_thread_count", "dbd_agent_queue_size"),
    Member("gettimeofday_latency", lambda view: view.latency),
    Member("schedule_cycle_max", lambda view: view.quick.times.longest),
    Member("schedule_cycle_last", lambda view: view.quick.times.last),
    Member("schedule_cycle_sum", lambda view: view.quick.times.total),
    Member("schedule_cycle_total", lambda view: view.quick.times.count),
    Member("schedule_cycle_mean", lambda view: view.quick.times.mean),
    Member("schedule_cycle_mean_depth", lambda view: view.quick.mean_depth),
    Member("schedule_cycle_per_minute", lambda view: view.quick_per_minute),
    Member("schedule_cycle_depth", lambda view: view.quick.depth),
    nested(
        "schedule_exit",
        Member("end_job_queue", lambda view: view.quick.times.count),
        *_zeros("default_queue_depth", "max_job_start", "max_rpc_cnt", "max_sched_time", "licenses"),
    ),
    Member("schedule_queue_length", lambda view: view.quick.last_length),
    Member("jobs_submitted", lambda view: view.statistics.counts.submitted),
    Member("jobs_started", lambda view: view.statistics.counts.started),
    Member("jobs_completed", lambda view: view.statistics.counts.completed),
    Member("jobs_canceled", lambda view: view.statistics.counts.cancelled),
    Member("jobs_failed", lambda view: view.statistics.counts.failed),
    Member("jobs_pending", lambda view: view.states[JobState.PENDING]),
    Member("jobs_running", lambda view: view.states[JobState.RUNNING]),
    Member("job_states_ts", lambda view: number(int(view.now))),
    Member("bf_backfilled_jobs", lambda view: view.statistics.counts.started),
    Member("bf_last_backfilled_jobs", lambda view: view.statistics.counts.started),
    constant("bf_backfilled_het_jobs", 0),
    Member("bf_cycle_counter", lambda view: view.full.times.count),
    Member("bf_cycle_mean", lambda view: view.full.times.mean),
    Member("bf_depth_mean", lambda view: view.full.mean_depth),
    Member("bf_depth_mean_try", lambda view: view.full.mean_depth),
    Member("bf_cycle_sum", lambda view: view.full.times.total),
    Member("bf_cycle_last", lambda view: view.full.times.last),
    Member("bf_cycle_max", lambda view: view.full.times.longest),
    nested(
        "bf_exit",
        Member("end_job_queue", lambda view: view.full.times.count),
        *_zeros("bf_max_job_start", "bf_max_job_test", "bf_max_time", "bf_node_space_size", "state_changed"),
    ),
    Member("bf_last_depth", lambda view: view.full.last_length),
    Member("bf_last_depth_try", lambda view: view.full.last_length),
    Member("bf_depth_sum", lambda view: view.full.depth),
    Member("bf_depth_try_sum", lambda view: view.full.depth),
    Member("bf_queue_len", lambda view: view.full.last_length),
    Member("bf_queue_len_mean", lambda view: view.full.mean_depth),
    Member("bf_queue_len_sum", lambda view: view.full.depth),
    Member("bf_table_size", lambda view: min(view.full.times.count, 1)),
    Member("bf_table_size_sum", lambda view: view.full.times.count),
    Member("bf_table_size_mean", lambda view: min(view.full.times.count, 1)),
    Member("bf_when_last_cycle", lambda view: number(int(view.full.last_time))),
    constant("bf_active", False),
    Member("rpcs_by_message_type", _requests),
    Member("rpcs_by_user", _users),
    Member("pending_rpcs", lambda view: []),
    Member("pending_rpcs_by_hostlist", lambda view: []),
)
