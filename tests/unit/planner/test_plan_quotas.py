"""Quotas on the plan: nothing above them at any instant, everything as early as they allow, and the reason that names them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.model.job import Allocation, GresShare, NodeShare
from slurmk.model.quotas import Quota, QuotaLimit
from slurmk.model.states import Reason
from slurmk.planner.forecast import Forecast
from slurmk.planner.plan import forecast, plan, plan_starts
from slurmk.planner.snapshot import PendingRow, RunningRow, Snapshot

sys.path.insert(0, str(Path(__file__).parent))
from brute_force import Book, Holding, Limit, Machine, Wish
from small_clusters import NOW, snapshot_of
from test_plan_properties import demand_of_wish, wish_of, wishes

RESOURCES = ("cpu", "mem", "gres/gpu", "node", "job")
ACCOUNTS = ("chem", "phys")


def quota_of(limit: Limit, number: int, others: int = 0) -> Quota:
    limits = tuple(
        QuotaLimit(
            resource, (amount + others) * (1000 if resource == "cpu" else 1), others * (1000 if resource == "cpu" else 1)
        )
        for resource, amount in zip(RESOURCES, limit.amounts, strict=True)
        if amount is not None
    )
    return Quota(f"quota {number}", limits, accounts=limit.accounts)


@st.composite
def limits(draw: Callable[..., object]) -> Limit:
    amounts = tuple(draw(st.none() | st.integers(0, most)) for most in (14, 20, 4, 5, 4))
    accounts = draw(st.sampled_from([frozenset(ACCOUNTS), frozenset(ACCOUNTS[:1]), frozenset(ACCOUNTS[1:])]))
    return Limit(accounts, amounts)  # type: ignore[arg-type]


@st.composite
def cases(draw: Callable[..., object], *, alike: bool = False) -> tuple[Snapshot, Machine, list[Holding]]:
    shape = st.tuples(st.integers(1, 6), st.integers(1, 12), st.integers(0, 3))
    nodes: tuple[tuple[int, int, int], ...] = (
        (draw(shape),) * draw(st.integers(1, 4)) if alike else tuple(draw(st.lists(shape, min_size=1, max_size=4)))  # type: ignore
    )
    found: list[Limit] = draw(st.lists(limits(), min_size=1, max_size=3))  # type: ignore[assignment]
    machine = Machine(nodes, 2, tuple(found))
    running, holdings = [], []
    for node, (cpus, memory, gpus) in enumerate(nodes):
        if not draw(st.booleans()):
            continue
        end = NOW + 10 * draw(st.integers(1, 9))  # type: ignore[operator]
        account: str = draw(st.sampled_from(ACCOUNTS))  # type: ignore[assignment]
        used = (max(1, cpus // 2), memory // 2, gpus // 2)
        gres = (GresShare("gpu", "", used[2], tuple(range(used[2]))),) if used[2] else ()
        share = NodeShare(f"n{node}", used[0], used[1], 1, gres, tuple(range(used[0])))
        running.append(RunningRow(900 + node, end, Allocation("p", (share,)), user_id=1, account=account))
        holdings.append(Holding(NOW, end, ((node, used),), account=account, used=(*used, 1, 1)))
    wanted: list[Wish] = draw(st.lists(wishes(), min_size=1, max_size=7))  # type: ignore[assignment]
    pending = tuple(
        PendingRow(
            job_id=index + 1,
            demand=demand_of_wish(wish),
            partitions=("p",),
            priority=1000 - index,
            submit_time=NOW - 10,
            time_limit=wish.duration,
            user_id=1,
            account=draw(st.sampled_from(ACCOUNTS)),  # type: ignore[arg-type]
        )
        for index, wish in enumerate(wanted)
    )
    others: int = draw(st.integers(0, 3))  # type: ignore[assignment]
    quotas = tuple(quota_of(limit, number, others) for number, limit in enumerate(found))
    return snapshot_of(nodes, pending, tuple(running), licenses={"matlab": 2}, quotas=quotas), machine, holdings


def wish_in(row: PendingRow) -> Wish:
    return replace(wish_of(row), account=row.account)


def holdings_of(made: Forecast, row: PendingRow, book: Book) -> list[Holding]:
    """What the plan gives a record, with what it counts by the brute-force planner's own sums."""
    booked = [booking for start, booking in made.started if start.job_id == row.job_id] + made.promised.get(row.job_id, [])
    gpu = made.compiler.resources.gres["gpu"]
    found = []
    for booking in booked:
        nodes = booking.placement.nodes.tolist()
        amounts = booking.placement.amounts
        held = made.compiler.resources.capacity[:, booking.placement.nodes] if amounts is None else amounts
        shares = tuple(
            (node, (int(held[0, at]), int(held[1, at]), int(held[list(gpu), at].sum()))) for at, node in enumerate(nodes)
        )
        used = book.used(wish_in(row), nodes)
        licenses = dict(row.demand.licenses).get("matlab", 0)
        found.append(Holding(booking.start, booking.end, shares, amounts is None, licenses, row.account, used))
    return found


def starts_of(snapshot: Snapshot) -> dict[int, int | None]:
    made = plan(snapshot)
    return {job: outlook.start_time for job, outlook in made.outlooks.items()} | {
        start.job_id: snapshot.time for start in made.starts
    }


def walk(case: tuple[Snapshot, Machine, list[Holding]], *, exact: bool) -> None:
    """Each record starts when the brute-force planner says (not before that, where not ``exact``), and nothing is too much."""
    snapshot, machine, holdings = case
    made = forecast(snapshot)
    starts = starts_of(snapshot)
    book = Book(machine, list(holdings))
    before = set(book.overcommitted())
    for row in snapshot.pending:
        earliest = book.earliest(wish_in(row), NOW)
        found = starts[row.job_id]
        if exact or not row.demand.whole_nodes:
            assert found == earliest, (row, book)
        elif found is not None:
            assert earliest is not None
            assert found >= earliest, (row, book)
        book.holdings += holdings_of(made, row, book)
        assert {where for where in book.overcommitted() if where[0] != -2} <= before
        for held in holdings_of(made, row, book):
            others = Book(machine, [each for each in book.holdings if each != held])
            assert others.within_limits(held.account, held.used, held.start, held.end)


@settings(max_examples=250, deadline=None)
@given(cases(alike=True))
def test_each_job_starts_as_early_as_quotas_and_those_before_it_allow(case: tuple[Snapshot, Machine, list[Holding]]) -> None:
    walk(case, exact=True)


@settings(max_examples=250, deadline=None)
@given(cases())
def test_quotas_hold_on_unequal_nodes(case: tuple[Snapshot, Machine, list[Holding]]) -> None:
    walk(case, exact=False)


@settings(max_examples=100, deadline=None)
@given(cases(), wishes(), st.sampled_from(ACCOUNTS))
def test_a_job_behind_delays_nobody(case: tuple[Snapshot, Machine, list[Holding]], wish: Wish, account: str) -> None:
    snapshot, _, _ = case
    behind = PendingRow(99, demand_of_wish(wish), ("p",), 1, NOW, wish.duration, 1, account=account)
    more = starts_of(replace(snapshot, pending=(behind, *snapshot.pending)))
    assert {job: start for job, start in more.items() if job != 99} == starts_of(snapshot)


@settings(max_examples=200, deadline=None)
@given(cases(), st.lists(limits(), min_size=3, max_size=3), st.integers(0, 30))
def test_a_reaction_goes_by_the_quotas_as_they_are_now(
    case: tuple[Snapshot, Machine, list[Holding]], changed: list[Limit], later: int
) -> None:
    snapshot, machine, _ = case
    made = forecast(snapshot)
    first = made.plan()
    now = NOW + later
    rows = {row.job_id: row for row in snapshot.pending}
    started = tuple(
        RunningRow(
            start.job_id,
            NOW + start.time_limit,
            start.allocation,
            1,
            licenses=rows[start.job_id].demand.licenses,
            account=rows[start.job_id].account,
        )
        for start in first.starts
    )
    running = tuple(row for row in snapshot.running + started if row.end_time > now)
    amounts = [
        tuple(None if old is None else new or 0 for old, new in zip(limit.amounts, other.amounts, strict=True))
        for limit, other in zip(machine.limits, changed, strict=False)
    ]
    limits_now = tuple(replace(limit, amounts=amount) for limit, amount in zip(machine.limits, amounts, strict=True))
    quotas = tuple(quota_of(limit, number) for number, limit in enumerate(limits_now))
    left = tuple(row for row in snapshot.pending if row.job_id in first.outlooks)
    second = plan_starts(replace(snapshot, time=now, running=running, pending=left, quotas=quotas), made)
    assert second is not None
    for quota in quotas:
        held = [quota.held(row.allocation) for row in running if quota.counts("p", row.account, row.qos, 1)]
        new = [quota.held(start.allocation) for start in second.starts if quota.counts("p", rows[start.job_id].account, "", 1)]
        for index, limit in enumerate(quota.limits):
            if any(amounts[index] for amounts in new):
                assert sum(amounts[index] for amounts in held + new) <= limit.left


def four_nodes(*pending: PendingRow, quotas: tuple[Quota, ...], running: tuple[RunningRow, ...] = ()) -> Snapshot:
    return snapshot_of(((8, 64, 2),) * 4, pending, running, quotas=quotas)


def job(job_id: int, tasks: int, account: str = "phys", **changes: object) -> PendingRow:
    wish = Wish(nodes=1, tasks=tasks, cpus=1, memory=1, gpus=0, whole=False, duration=100)
    row = PendingRow(job_id, demand_of_wish(wish), ("p",), 1000 - job_id, NOW, 100, 1, account=account)
    return replace(row, **changes)  # type: ignore[arg-type]


PHYS = Quota("ClusterQueue phys", (QuotaLimit("cpu", 10_000, 2_000),), accounts=frozenset({"phys"}))


def test_a_job_that_waits_for_quota_is_told_which() -> None:
    made = plan(four_nodes(job(1, 6), job(2, 4), job(3, 4, "chem"), quotas=(PHYS,)))
    assert [start.job_id for start in made.starts] == [1, 3]
    outlook = made.outlooks[2]
    assert outlook.reason is Reason.ASSOC_GRP_CPU_LIMIT
    assert outlook.description == "AssocGrpCpuLimit, ClusterQueue phys has 2 of 10 cpu free"
    assert outlook.start_time == NOW + 100


def test_what_others_hold_has_no_end() -> None:
    made = plan(four_nodes(job(1, 9), quotas=(PHYS,)))
    assert made.outlooks[1].start_time is None
    assert made.outlooks[1].reason is Reason.ASSOC_GRP_CPU_LIMIT


def test_quota_of_a_running_job_comes_back_with_its_end() -> None:
    share = NodeShare("n0", 8, 1, 8, (), tuple(range(8)))
    running = RunningRow(50, NOW + 60, Allocation("p", (share,)), 1, account="phys")
    made = plan(four_nodes(job(1, 1), quotas=(PHYS,), running=(running,)))
    assert made.outlooks[1].start_time == NOW + 60


def test_a_cpu_counts_what_its_pods_ask_for() -> None:
    cheap = replace(PHYS, cpu_milli={"p": 50})
    made = plan(four_nodes(*(job(number, 8) for number in range(1, 5)), quotas=(cheap,)))
    assert len(made.starts) == 4


def test_devices_of_another_resource_do_not_count() -> None:
    limit = QuotaLimit("gres/gpu", 1, without=("gpu:1g.5gb",))
    counted = [(name, kind) for name in ("gpu", "shard") for kind in ("", "a100", "1g.5gb") if limit.counts_gres(name, kind)]
    assert counted == [("gpu", ""), ("gpu", "a100")]
    assert not QuotaLimit("gres/gpu:a100", 1).counts_gres("gpu", "h100")


def test_a_job_of_whole_nodes_takes_nodes_that_the_quota_has_room_for() -> None:
    wish = Wish(nodes=1, tasks=1, cpus=1, memory=0, gpus=0, whole=True, duration=100)
    row = PendingRow(1, demand_of_wish(wish), ("p",), 1, NOW, 100, 1, account="phys")
    quota = replace(PHYS, limits=(QuotaLimit("cpu", 4_000),))
    made = plan(snapshot_of(((8, 64, 0), (2, 64, 0)), (row,), quotas=(quota,)))
    assert [start.allocation.nodes for start in made.starts] == [("n1",)]


def test_other_jobs_or_resources_need_a_full_plan() -> None:
    snapshot = four_nodes(job(1, 1), quotas=(PHYS,))
    more = replace(PHYS, limits=(*PHYS.limits, QuotaLimit("node", 1)))
    assert plan_starts(replace(snapshot, quotas=(more,)), forecast(snapshot)) is None
