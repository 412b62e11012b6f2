"""Reservations in the machine: who may make and use them, what they keep from others, and what time does to them."""

from __future__ import annotations

from typing import Any

import pytest
from core_story import ALICE, BOB, ROOT, Cluster, small_site
from hypothesis import given
from hypothesis import strategies as st

from slurmk.core.effects import Accepted, ForgetReservation, Refused, SaveReservation
from slurmk.core.errors import Errno
from slurmk.core.events import Caller, CreateReservation, DeleteReservation, Planned, UpdateNode, UpdateReservation
from slurmk.core.machine import Machine
from slurmk.model.reservation import REPEATING, Names, Reservation, ReservationFlag, ReservationRequest
from slurmk.model.states import JobFlag, JobState, NodeFlag, Reason
from slurmk.planner.plan import plan


def names(*words: str) -> Names:
    return tuple(("", word) for word in words)


def request(cluster: Cluster, **changes: Any) -> ReservationRequest:
    wanted: dict[str, Any] = {
        "name": "r",
        "start_time": int(cluster.now) + 600,
        "duration": 10,
        "users": names("alice"),
        "nodes": names("n5", "n6"),
    }
    return ReservationRequest(**{**wanted, **changes})


def create(cluster: Cluster, caller: Caller = ROOT, **changes: Any) -> Accepted | Refused:
    cluster.tell(CreateReservation(cluster.now, caller, request(cluster, **changes)))
    return cluster.answer()


def update(cluster: Cluster, caller: Caller = ROOT, **changes: Any) -> Accepted | Refused:
    cluster.tell(UpdateReservation(cluster.now, caller, ReservationRequest(name="r", **changes)))
    return cluster.answer()


def reservation(cluster: Cluster, name: str = "r") -> Reservation:
    return cluster.machine.reservations[name]


def nodes_of(cluster: Cluster, job_id: int) -> tuple[str, ...]:
    allocation = cluster.job(job_id).allocation
    return allocation.nodes if allocation else ()


# --------------------------------------------------------------------------------------------- made


def test_a_reservation_is_saved_and_named_after_its_user(cluster: Cluster) -> None:
    answer = create(cluster, name="")
    assert isinstance(answer, Accepted)
    assert answer.name == "alice_1"
    made = reservation(cluster, "alice_1")
    assert SaveReservation(made) in cluster.effects
    assert (made.core_count, made.cpu_count, made.flags) == (32, 32, ReservationFlag.SPEC_NODES)


@pytest.mark.parametrize(
    ("changes", "errno"),
    [
        ({"nodes": names("n99")}, Errno.INVALID_NODE_NAME),
        ({"nodes": None}, Errno.INVALID_NODE_NAME),
        ({"users": None}, Errno.RESERVATION_EMPTY),
        ({"users": None, "groups": names("g"), "accounts": names("a"), "qos": names("nope")}, Errno.INVALID_QOS),
        ({"groups": names("staff")}, Errno.RESERVATION_USER_GROUP),
        ({"start_time": -5000}, Errno.INVALID_TIME_VALUE),
        ({"duration": 0}, Errno.INVALID_TIME_VALUE),
        ({"nodes": None, "node_count": 200}, Errno.NODES_BUSY),
        ({"nodes": None, "node_count": 1, "features": "nofeature"}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
        ({"partition": "nope"}, Errno.INVALID_PARTITION_NAME),
        ({"licenses": "matlab:9"}, Errno.INVALID_LICENSES),
        ({"core_count": 1}, Errno.INVALID_CORE_COUNT),
        ({"flags": ReservationFlag.REPLACE}, Errno.INVALID_NODE_NAME),
    ],
)
def test_what_is_refused(cluster: Cluster, changes: dict[str, Any], errno: Errno) -> None:
    if "start_time" in changes:
        cluster.now = 100_000.0
    create(cluster, **changes)
    assert cluster.refusal() is errno
    assert not cluster.machine.reservations


def test_only_operators_make_change_and_delete(cluster: Cluster) -> None:
    create(cluster, ALICE)
    assert cluster.refusal() is Errno.USER_ID_MISSING
    create(cluster)
    update(cluster, ALICE, duration=5)
    assert cluster.refusal() is Errno.USER_ID_MISSING
    cluster.tell(DeleteReservation(cluster.now, ALICE, "r"))
    assert cluster.refusal() is Errno.USER_ID_MISSING
    update(cluster, flags=ReservationFlag.USER_DELETE)
    cluster.tell(DeleteReservation(cluster.now, BOB, "r"))
    assert cluster.refusal() is Errno.USER_ID_MISSING
    cluster.tell(DeleteReservation(cluster.now, ALICE, "r"))
    assert ForgetReservation("r") in cluster.effects


def test_two_may_not_have_the_same_nodes_at_the_same_time(cluster: Cluster) -> None:
    create(cluster)
    create(cluster)
    assert cluster.refusal() is Errno.RESERVATION_NAME_DUP
    create(cluster, name="s", nodes=names("n6"))
    assert cluster.refusal() is Errno.RESERVATION_OVERLAP
    assert isinstance(create(cluster, name="t", nodes=names("n6"), flags=ReservationFlag.OVERLAP), Accepted)
    assert isinstance(create(cluster, name="u", nodes=names("n6"), start_time=int(cluster.now) + 1200), Accepted)
    create(cluster, name="v", nodes=names("n6"), start_time=int(cluster.now) + 1200 + 86400, flags=ReservationFlag.DAILY)
    daily = int(cluster.now) + 1200 + 9 * 86400
    create(cluster, name="w", nodes=names("n6"), start_time=daily)
    assert cluster.refusal() is Errno.RESERVATION_OVERLAP


def test_maintenance_beside_others_stays_maintenance(cluster: Cluster) -> None:
    create(cluster, flags=ReservationFlag.MAINT)
    assert isinstance(create(cluster, name="s", nodes=names("n6")), Accepted)
    update(cluster, dropped_flags=ReservationFlag.MAINT)
    assert cluster.refusal() is Errno.RESERVATION_OVERLAP
    assert reservation(cluster).flags & ReservationFlag.MAINT


def test_nodes_are_chosen_that_are_free_by_then(cluster: Cluster) -> None:
    job = cluster.submit(BOB, partition="gpu", required_nodes="n1", time_limit=30)
    cluster.plan()
    assert nodes_of(cluster, job) == ("n1",)
    create(cluster, name="a", nodes=None, node_count=2)
    assert reservation(cluster, "a").nodes == ("n2", "n3")
    assert reservation(cluster, "a").partition == "debug"
    create(cluster, name="b", nodes=None, node_count=1, flags=ReservationFlag.IGNORE_JOBS)
    assert reservation(cluster, "b").nodes == ("n4",)
    cluster.tell(DeleteReservation(cluster.now, ROOT, "b"))
    create(cluster, name="b", nodes=None, node_count=2, partition="gpu", flags=ReservationFlag.IGNORE_JOBS)
    assert reservation(cluster, "b").nodes == ("n1", "n4")
    cluster.tell(DeleteReservation(cluster.now, ROOT, "b"))
    create(cluster, name="c", nodes=None, node_count=6)
    assert cluster.refusal() is Errno.NODES_BUSY
    create(cluster, name="d", nodes=names("n2"))
    assert cluster.refusal() is Errno.RESERVATION_OVERLAP
    create(cluster, name="e", nodes=None, gres=(("gpu", 2),), partition="gpu")
    assert reservation(cluster, "e").nodes == ("n4",)
    assert reservation(cluster, "e").tres == {"cpu": 8, "gres/gpu": 2}


def test_cores_are_kept_of_each_node(cluster: Cluster) -> None:
    create(cluster, nodes=names("n1", "n3"), core_count=4)
    cores = {share.node: share.cores for share in reservation(cluster).cores}
    assert cores == {"n1": (0, 1, 2), "n3": (0,)}
    create(cluster, name="s", nodes=names("n1"), core_count=2)
    assert reservation(cluster, "s").cores[0].cores == (3, 4)


# --------------------------------------------------------------------------------------------- changed


def test_lists_of_names_are_moved_up_and_down(cluster: Cluster) -> None:
    create(cluster)
    update(cluster, users=(("+", "bob"),))
    assert reservation(cluster).users.names == ("alice", "bob")
    update(cluster, users=(("-", "alice"),))
    assert reservation(cluster).users.names == ("bob",)
    update(cluster, users=(("-", "alice"),))
    assert cluster.refusal() is Errno.USER_ID_MISSING
    update(cluster, users=(("-", "bob"),))
    assert cluster.refusal() is Errno.RESERVATION_EMPTY
    update(cluster, accounts=names("phys"), users=())
    assert (reservation(cluster).accounts.names, reservation(cluster).users.names) == (("phys",), ())
    create(cluster, name="s", nodes=names("n7"), users=(("-", "bob"),))
    assert str(reservation(cluster, "s").users) == "-bob"


def test_times_move_together(cluster: Cluster) -> None:
    create(cluster)
    start = int(cluster.now) + 86400
    update(cluster, start_time=start)
    assert (reservation(cluster).start_time, reservation(cluster).end_time) == (start, start + 600)
    update(cluster, duration=20)
    assert reservation(cluster).end_time == start + 1200
    update(cluster, end_time=start - 5)
    assert cluster.refusal() is Errno.INVALID_TIME_VALUE
    update(cluster, skip=True)
    assert cluster.refusal() is Errno.RESERVATION_NOT_SKIPABLE
    update(cluster, flags=ReservationFlag.DAILY)
    update(cluster, skip=True)
    assert reservation(cluster).start_time == start + 86400
    cluster.tick(2 * 86400)
    update(cluster, start_time=int(cluster.now) + 9000)
    assert cluster.refusal() is Errno.RESERVATION_ALREADY_STARTED


def test_nodes_are_added_and_taken_away(cluster: Cluster) -> None:
    create(cluster)
    update(cluster, nodes=(("+", "n7"),))
    assert reservation(cluster).nodes == ("n5", "n6", "n7")
    update(cluster, nodes=(("-", "n5"), ("-", "n7")))
    assert reservation(cluster).nodes == ("n6",)
    update(cluster, node_count=2)
    assert reservation(cluster).nodes == ("n1", "n6")
    update(cluster, nodes=())
    assert len(reservation(cluster).nodes) == 2
    assert not reservation(cluster).flags & ReservationFlag.SPEC_NODES


# --------------------------------------------------------------------------------------------- used


def test_jobs_keep_clear_of_what_comes(cluster: Cluster) -> None:
    create(cluster, nodes=names("n5", "n6", "n7", "n8"))
    short = cluster.submit(BOB, partition="cpu", time_limit=10)
    long = cluster.submit(BOB, partition="cpu", time_limit=11)
    cluster.plan()
    assert cluster.launched() == [short]
    assert cluster.machine.outlooks[long].start_time == int(cluster.now) + 1200
    assert cluster.job(long).reason is Reason.REQ_NODE_NOT_AVAIL
    assert cluster.job(long).state_description == "ReqNodeNotAvail, May be reserved for other job"


def test_who_may_use_it_starts_when_it_begins(cluster: Cluster) -> None:
    assert isinstance(cluster.try_submit(ALICE, reservation="nope"), Refused)
    assert cluster.refusal() is Errno.RESERVATION_INVALID
    create(cluster)
    cluster.try_submit(BOB, reservation="r")
    assert cluster.refusal() is Errno.RESERVATION_ACCESS
    job = cluster.submit(ALICE, reservation="r", time_limit=30)
    cluster.plan()
    assert cluster.job(job).reason is Reason.RESERVATION
    assert cluster.machine.outlooks[job].start_time == reservation(cluster).start_time
    cluster.tick(600)
    cluster.plan()
    assert cluster.launched() == [job]
    cluster.try_submit(ALICE, reservation="r", required_nodes="n7", partition="cpu")
    assert cluster.refusal() is Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE
    cluster.try_submit(ALICE, reservation="r", minimum_nodes=3, maximum_nodes=3, partition="cpu")
    assert cluster.refusal() is Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE
    assert nodes_of(cluster, job) == ("n5",)
    assert cluster.job(job).reservation == "r"
    cluster.tell(DeleteReservation(cluster.now, ROOT, "r"))
    assert cluster.refusal() is Errno.RESERVATION_BUSY


def test_groups_let_their_members_in(cluster: Cluster) -> None:
    create(cluster, users=None, groups=names("staff"), group_ids=(("staff", BOB.user_id),))
    cluster.try_submit(ALICE, reservation="r")
    assert cluster.refusal() is Errno.RESERVATION_ACCESS
    assert isinstance(cluster.try_submit(BOB, reservation="r"), Accepted)


def test_at_its_end_jobs_end_and_those_that_wait_are_held(cluster: Cluster) -> None:
    create(cluster, start_time=int(cluster.now))
    runs = cluster.submit(ALICE, reservation="r", time_limit=30)
    waits = cluster.submit(ALICE, reservation="r", begin_time=int(cluster.now) + 7200)
    cluster.plan()
    assert cluster.launched() == [runs]
    cluster.tick(600)
    assert cluster.job(runs).state is JobState.TIMEOUT
    assert cluster.job(runs).reason is Reason.TIME_LIMIT
    held = cluster.job(waits)
    assert (held.priority, held.request.reservation) == (0, None)
    assert held.flags & JobFlag.RESV_DEL_HOLD
    assert held.state_description == "Reservation r was deleted"
    assert ForgetReservation("r") in cluster.effects


def test_jobs_that_may_run_without_it_are_not_held(cluster: Cluster) -> None:
    create(cluster, start_time=int(cluster.now), flags=ReservationFlag.NO_HOLD_JOBS)
    waits = cluster.submit(ALICE, reservation="r", begin_time=int(cluster.now) + 7200)
    cluster.tick(600)
    assert cluster.job(waits).priority
    assert cluster.job(waits).request.reservation is None


def test_a_daily_one_comes_again(cluster: Cluster) -> None:
    create(cluster, flags=ReservationFlag.DAILY, nodes=names("n5", "n6", "n7", "n8"))
    first = reservation(cluster)
    long = cluster.submit(BOB, partition="cpu", time_limit=1440)
    cluster.plan()
    assert cluster.launched() == []
    assert cluster.job(long).reason is Reason.REQ_NODE_NOT_AVAIL
    between = cluster.submit(BOB, partition="cpu", time_limit=1420)
    cluster.tick(1200)
    assert reservation(cluster).start_time == first.start_time + 86400
    cluster.plan()
    assert cluster.launched() == [between]


def test_a_magnetic_one_draws_jobs(cluster: Cluster) -> None:
    create(cluster, start_time=int(cluster.now), flags=ReservationFlag.MAGNETIC)
    alices = cluster.submit(ALICE, partition="cpu")
    bobs = cluster.submit(BOB, partition="cpu")
    cluster.plan()
    assert (nodes_of(cluster, alices), cluster.job(alices).reservation) == (("n5",), "r")
    assert (nodes_of(cluster, bobs), cluster.job(bobs).reservation) == (("n7",), "")


def test_a_flexible_one_lets_its_jobs_go_beyond(cluster: Cluster) -> None:
    create(cluster, flags=ReservationFlag.FLEX)
    job = cluster.submit(ALICE, reservation="r", partition="cpu", time_limit=60)
    cluster.plan()
    assert cluster.launched() == [job]
    assert nodes_of(cluster, job) == ("n5",)


def test_cores_are_kept_from_others(cluster: Cluster) -> None:
    create(cluster, nodes=names("n5"), core_count=4, start_time=int(cluster.now))
    too_wide = cluster.submit(BOB, partition="cpu", required_nodes="n5", tasks=13, minimum_nodes=1, maximum_nodes=1)
    fits = cluster.submit(BOB, partition="cpu", required_nodes="n5", tasks=12, maximum_nodes=1, minimum_nodes=1, time_limit=10)
    inside = cluster.submit(ALICE, reservation="r", tasks=4)
    cluster.plan()
    assert sorted(cluster.launched()) == [fits, inside]
    assert cluster.machine.outlooks[too_wide].start_time == int(cluster.now) + 600
    numbers = [cluster.job(job).allocation.shares[0].cpu_ids for job in (fits, inside)]  # type: ignore[union-attr]
    assert numbers == [tuple(range(4, 16)), (0, 1, 2, 3)]


def test_licences_are_kept_from_others(cluster: Cluster) -> None:
    create(cluster, nodes=None, licenses="matlab:3", flags=ReservationFlag.ANY_NODES, start_time=int(cluster.now))
    waits = cluster.submit(BOB, licenses="matlab:2")
    fits = cluster.submit(BOB, licenses="matlab:1")
    inside = cluster.submit(ALICE, reservation="r", licenses="matlab:3")
    cluster.plan()
    assert sorted(cluster.launched()) == [fits, inside]
    assert cluster.job(waits).reason is Reason.LICENSES


def test_an_unused_one_is_purged(cluster: Cluster) -> None:
    create(cluster, start_time=int(cluster.now), flags=ReservationFlag.PURGE_COMP, purge_after=120)
    cluster.tick()
    cluster.tick(60)
    job = cluster.submit(ALICE, reservation="r", time_limit=1)
    cluster.plan()
    cluster.tick(60)
    assert cluster.machine.reservations
    cluster.run_to_end(job)
    cluster.tick()
    cluster.tick(120)
    assert not cluster.machine.reservations


def test_lost_nodes_are_replaced_unless_they_were_named(cluster: Cluster) -> None:
    create(cluster, nodes=None, node_count=2)
    create(cluster, name="s", nodes=names("n8"))
    cluster.update_node("n1", "n8", state="DOWN", reason="gone")
    cluster.tick()
    assert reservation(cluster).nodes == ("n2", "n3")
    assert reservation(cluster, "s").nodes == ("n8",)


WEEK = 7 * 86400


@pytest.mark.parametrize(
    ("repeats", "weeks", "other", "refused"),
    [
        (ReservationFlag.HOURLY, 3, (1, ReservationFlag.NONE), False),
        (ReservationFlag.HOURLY, 3, (5, ReservationFlag.NONE), True),
        (ReservationFlag.DAILY, 3, (50, ReservationFlag.NONE), True),
        (ReservationFlag.WEEKLY, 3, (1, ReservationFlag.NONE), False),
        (ReservationFlag.NONE, 30, (1, ReservationFlag.HOURLY), True),
        (ReservationFlag.NONE, 3, (5, ReservationFlag.HOURLY), False),
        (ReservationFlag.HOURLY, 3, (1, ReservationFlag.WEEKEND), True),
        (ReservationFlag.WEEKDAY, 3, (20, ReservationFlag.WEEKLY), True),
    ],
)
def test_those_that_repeat_meet_others_however_far_apart(
    cluster: Cluster, repeats: ReservationFlag, weeks: int, other: tuple[int, ReservationFlag], refused: bool
) -> None:
    create(cluster, start_time=int(cluster.now) + weeks * WEEK, flags=repeats)
    answer = create(cluster, name="s", start_time=int(cluster.now) + other[0] * WEEK, flags=other[1])
    assert isinstance(answer, Refused) is refused


def test_weekdays_and_weekends_never_meet(cluster: Cluster) -> None:
    thursday, saturday = 1000 + WEEK, 1000 + WEEK + 2 * 86400  # the story begins on a Thursday
    create(cluster, start_time=saturday, flags=ReservationFlag.WEEKEND)
    assert isinstance(create(cluster, name="s", start_time=thursday, flags=ReservationFlag.WEEKDAY), Accepted)


@given(
    st.sampled_from([ReservationFlag.NONE, *REPEATING]),
    st.integers(0, 40 * WEEK),
    st.integers(60, 2 * WEEK),
    st.integers(0, WEEK),
)
def test_the_first_that_ends_later_is_found_at_once(flag: ReservationFlag, ahead: int, length: int, start: int) -> None:
    made = Reservation("r", 1, start, start + length, flags=flag)
    moment = start + ahead
    one_by_one = made
    while one_by_one.end_time <= moment and one_by_one.next() is not one_by_one:
        one_by_one = one_by_one.next()
    assert made.after(moment) == one_by_one


def test_features_are_counted_and_each_lost_node_has_one_of_its_kind(cluster: Cluster) -> None:
    for name, feature in (("n5", "f1"), ("n6", "f2"), ("n7", "f3"), ("n8", "f1")):
        cluster.tell(UpdateNode(cluster.now, ROOT, (name,), None, None, (("features", (feature,)),)))
    create(cluster, nodes=None, node_count=3, partition="cpu", features="[f1*1&f2*1&f3*1]")
    assert reservation(cluster).nodes == ("n5", "n6", "n7")
    cluster.update_node("n6", state="DOWN", reason="gone")
    cluster.tick()
    assert reservation(cluster).nodes == ("n5", "n6", "n7")
    cluster.update_node("n5", state="DOWN", reason="gone")
    cluster.tick()
    assert reservation(cluster).nodes == ("n6", "n7", "n8")


def test_features_that_cannot_all_be_had_are_refused(cluster: Cluster) -> None:
    wanted: dict[str, Any] = {"nodes": None, "node_count": 3, "partition": "cpu", "features": "[a100*1&cpu*2]"}
    assert isinstance(create(cluster, **wanted), Refused)
    assert isinstance(create(cluster, **{**wanted, "partition": "debug"}), Accepted)
    assert reservation(cluster).nodes == ("n1", "n5", "n6")


@pytest.mark.parametrize("kept", [ReservationFlag.STATIC, ReservationFlag.MAINT])
@pytest.mark.parametrize("replaced", [ReservationFlag.REPLACE, ReservationFlag.REPLACE_DOWN])
def test_nodes_are_either_kept_or_replaced(cluster: Cluster, kept: ReservationFlag, replaced: ReservationFlag) -> None:
    answer = create(cluster, nodes=None, node_count=1, flags=kept | replaced)
    assert isinstance(answer, Refused)
    assert answer.error.errno is Errno.NOT_SUPPORTED
    for first, second in ((kept, replaced), (replaced, kept)):
        create(cluster, nodes=None, node_count=1, flags=first)
        refused = update(cluster, flags=second)
        assert isinstance(refused, Refused)
        assert refused.error.errno is Errno.NOT_SUPPORTED
        cluster.tell(DeleteReservation(cluster.now, ROOT, "r"))


@pytest.mark.parametrize(
    ("flag", "days", "named", "counted"),
    [
        (ReservationFlag.OVERLAP, 0, True, True),
        (ReservationFlag.MAINT, 0, True, False),
        (ReservationFlag.MAINT, 1, True, False),
        (ReservationFlag.MAINT, 8, True, True),
        (ReservationFlag.NONE, 8, False, False),
    ],
)
def test_what_is_shared_with_others(cluster: Cluster, flag: ReservationFlag, days: int, named: bool, counted: bool) -> None:
    start = int(cluster.now) + 600
    create(cluster, start_time=start + days * 86400, nodes=names("n5", "n6", "n7"), flags=flag)
    daily = {"start_time": start, "flags": ReservationFlag.DAILY, "partition": "cpu"}
    assert isinstance(create(cluster, name="s", nodes=names("n5"), **daily), Accepted) is named
    assert isinstance(create(cluster, name="t", nodes=None, node_count=2, **daily), Accepted) is counted


def test_one_that_comes_again_is_not_purged_for_good(cluster: Cluster) -> None:
    flags = ReservationFlag.PURGE_COMP | ReservationFlag.DAILY
    create(cluster, start_time=int(cluster.now), flags=flags, purge_after=120)
    cluster.tick()
    cluster.tick(120)
    assert reservation(cluster).start_time == 1000 + 86400
    assert not reservation(cluster).active(int(cluster.now))


def test_nodes_are_marked_while_it_is_active(cluster: Cluster) -> None:
    create(cluster, nodes=names("n5"))
    create(cluster, name="m", nodes=names("n6"), flags=ReservationFlag.MAINT)
    assert cluster.machine.node_state("n5") == "idle"
    cluster.tick(600)
    assert cluster.machine.node_state("n5") == "reserved"
    assert cluster.machine.node_state("n6") == "maint"
    assert cluster.machine.node_condition("n6").full == "IDLE+MAINTENANCE+RESERVED"
    assert cluster.machine.node_reservation("n5") == (NodeFlag.RESERVED, "r")
    cluster.tick(600)
    assert cluster.machine.node_state("n6") == "idle"


def test_a_floating_one_stays_ahead(cluster: Cluster) -> None:
    create(cluster, flags=ReservationFlag.TIME_FLOAT, nodes=names("n5", "n6", "n7", "n8"))
    cluster.tick(5000)
    long = cluster.submit(BOB, partition="cpu", time_limit=11)
    short = cluster.submit(BOB, partition="cpu", time_limit=10)
    cluster.plan()
    assert cluster.launched() == [short]
    assert cluster.job(long).reason is Reason.REQ_NODE_NOT_AVAIL


def test_a_start_that_was_planned_before_it_was_made_is_passed_over(cluster: Cluster) -> None:
    job = cluster.submit(BOB, partition="cpu", required_nodes="n5", time_limit=30)
    made = plan(cluster.machine.snapshot(cluster.now))
    create(cluster)
    cluster.tell(Planned(cluster.now, made))
    assert cluster.launched() == []
    assert cluster.job(job).pending


def test_another_machine_takes_them_up(cluster: Cluster) -> None:
    create(cluster, start_time=int(cluster.now))
    machine = Machine(cluster.machine.site)
    machine.restore([], [], [], 1, cluster.machine.reservations.values(), 7)
    assert dict(machine.reservations) == dict(cluster.machine.reservations)
    cluster.machine = machine
    assert isinstance(create(cluster, name="", nodes=names("n7")), Accepted)
    assert "alice_8" in machine.reservations


def test_a_job_is_moved_into_one(cluster: Cluster) -> None:
    create(cluster)
    job = cluster.submit(ALICE, hold=True)
    cluster.update(str(job), reservation="nope")
    assert cluster.refusal() is Errno.RESERVATION_INVALID
    cluster.update(str(job), reservation="r")
    assert cluster.job(job).reservation == "r"
    cluster.update(str(job), reservation="")
    assert cluster.job(job).reservation == ""


@pytest.mark.parametrize(
    ("delay", "preemption", "starts"), [(60, "preempt/qos", True), (61, "preempt/qos", False), (60, "", False)]
)
def test_others_use_it_until_its_own_jobs_want_the_nodes(delay: int, preemption: str, starts: bool) -> None:
    """MaxStartDelay=1 and --signal=R:USR1@60: the job may use n5, and has a minute to leave when alice's job comes."""
    cluster = Cluster(small_site(preempt_type=preemption or "preempt/none", preempt_mode="OFF"))
    create(cluster, start_time=int(cluster.now), duration=60, nodes=names("n5"), maximum_start_delay=60)
    signal = {"kill_warning_signal": 10, "kill_warning_delay": delay, "kill_warning_flags": "R"}
    guest = cluster.submit(BOB, partition="cpu", required_nodes="n5", time_limit=300, **signal)
    cluster.plan()
    assert (nodes_of(cluster, guest) == ("n5",)) is starts
    assert cluster.job(guest).reason is (Reason.NONE if starts else Reason.REQ_NODE_NOT_AVAIL)
    if not starts:
        return
    cluster.started(guest)
    other = cluster.submit(ALICE, partition="cpu", required_nodes="n5", shared="none")
    cluster.plan()
    assert cluster.terminated() == []
    owner = cluster.submit(ALICE, partition="cpu", reservation="r", shared="none")
    cluster.plan()
    assert cluster.terminated() == [guest]
    cluster.released(guest)
    cluster.plan()
    assert nodes_of(cluster, owner) == ("n5",)
    assert cluster.job(guest).pending
    assert cluster.job(other).pending
