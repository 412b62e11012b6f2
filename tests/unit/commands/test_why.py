"""What ``slurmk why`` says: a sentence for each reason, what is lacking, who is before, and smaller requests that are true."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from command_fakes import ALICE, BOB, NOBODY, NOON, ROOT, FakeController, reference_site, run_command
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.core.events import Caller, QuotasChanged
from slurmk.core.smaller import changes
from slurmk.model.quotas import Quota, QuotaLimit
from slurmk.planner.plan import plan
from slurmk.planner.why import Question, explain

HOUR = 3600


def why(controller: FakeController, job: object, *words: str, caller: Caller = ROOT) -> str:
    said = run_command(controller, "slurmk", "why", str(job), *words, caller=caller)
    assert (said.err, said.code) == ("", 0)
    return said.out


def scontrol(controller: FakeController, *words: str) -> None:
    said = run_command(controller, "scontrol", *words)
    assert (said.err, said.code) == ("", 0)


@pytest.fixture
def full() -> FakeController:
    """Whole nodes n[5-8] are in use, n8 until 12:20, the others until 13:00; on n[1-2] three of four GPUs until 13:40."""
    made = FakeController()
    for number in range(5, 9):
        made.submit(BOB, partition="cpu", required_nodes=f"n{number}", shared="none", time_limit=60 if number < 8 else 20)
    for _ in range(2):
        made.submit(ALICE, partition="gpu", tres_per_node="gres/gpu:3", time_limit=100)
    made.start_all()
    return made


def wide(controller: FakeController, caller: Caller = ALICE, **more: Any) -> int:
    wanted: dict[str, Any] = {"minimum_nodes": 2, "maximum_nodes": 2, "nodes": "2", "shared": "none", "time_limit": 300, **more}
    job = controller.submit(caller, partition="cpu", **wanted)
    controller.start_all()
    return job


def test_whole_nodes_are_lacking(full: FakeController) -> None:
    assert why(full, wide(full)) == (
        "Job 7 (wrap) of alice is PENDING, Resources.\n"
        "In partition cpu it needs 2 nodes; 4 would do, of which none can take a part of it now.\n"
        "Of these, all are in use, while it needs whole nodes.\n"
        "It is number 1 of 1 in the queue.\n"
        "It is planned to start 2026-11-30T13:00:00 (in 1:00:00) on n[5-6] in partition cpu.\n"
        "Until then these nodes are used by: 1 (bob) ends by 2026-11-30T13:00:00; 2 (bob) ends by 2026-11-30T13:00:00.\n"
        "A smaller request would start earlier:\n"
        "  --partition=debug --time=60: now, 2 nodes in partition debug\n"
        "  --partition=gpu: now, 2 nodes in partition gpu\n"
        "  --nodes=1: 2026-11-30T12:20:00 (in 20:00), 1 node\n"
    )


def test_those_before_it_are_named(full: FakeController) -> None:
    for _ in range(7):
        wide(full, BOB, time_limit=10)
    text = why(full, wide(full))
    assert "Job 14 (wrap) of alice is PENDING, Priority.\n" in text
    assert "It is number 8 of 8 in the queue.\n" in text
    assert (
        "6 jobs of those before it take what it could use: 7 (bob) starts 2026-11-30T13:00:00; "
        "8 (bob) starts 2026-11-30T13:00:00; 9 (bob) starts 2026-11-30T13:10:00; 10 (bob) starts 2026-11-30T13:10:00; "
        "11 (bob) starts 2026-11-30T13:20:00; 1 more.\n"
    ) in text


def test_gpus_are_lacking(full: FakeController) -> None:
    job = full.submit(BOB, partition="gpu", minimum_nodes=3, maximum_nodes=3, nodes="3", tres_per_node="gres/gpu:a100:2")
    full.start_all()
    text = why(full, job)
    assert "In partition gpu it needs 3 nodes; 4 would do, of which 2 can take a part of it now.\n" in text
    assert "Of these, 2 have too few free gpu:a100.\n" in text or "Of these, 2 have too few free gpu.\n" in text
    assert "  --gres=gpu:a100:1: now, 3 nodes\n" in text
    assert "  --nodes=1: now, 1 node\n" in text


def test_more_tasks_than_there_is_room_for() -> None:
    controller = FakeController()
    job = controller.submit(BOB, partition="cpu", tasks=200)
    controller.start_all()
    expected = (
        "It can never start as it is: it has 200 tasks, and the 4 nodes of partition cpu that would do, "
        "all idle, hold 64 tasks.\n"
    )
    assert expected in why(controller, job)


def test_a_shorter_job_fits_before_the_next_one(full: FakeController) -> None:
    wide(full, minimum_nodes=4, maximum_nodes=4, nodes="4", time_limit=30)
    job = full.submit(BOB, partition="cpu", time_limit=60, tasks=16, maximum_nodes=16)
    full.start_all()
    assert "  --time=00:40:00: 2026-11-30T12:20:00 (in 20:00), 1 node\n" in why(full, job)


STORIES: dict[str, tuple[Callable[[FakeController], object], str]] = {}


def story(sentence: str) -> Callable[[Callable[[FakeController], object]], Callable[[FakeController], object]]:
    """A waiting job, and what must be said of it."""

    def add(make: Callable[[FakeController], object]) -> Callable[[FakeController], object]:
        STORIES[make.__name__] = make, sentence
        return make

    return add


@story("It waits for other jobs: afterok:7(unfulfilled).\n")
def dependency(full: FakeController) -> object:
    return full.submit(BOB, dependency=f"afterok:{wide(full)}")


@story("What it depends on can no longer happen, so it never starts: afterok:1(failed).\n")
def never_satisfied(full: FakeController) -> object:
    job = full.submit(BOB, dependency="afterok:1")
    full.end(1, 1 << 8)
    return job


@story("Its user holds it; `scontrol release` lets it go.\n")
def held_by_its_user(full: FakeController) -> object:
    return full.submit(BOB, hold=True)


@story("An administrator holds it, and must release it.\n")
def held_by_an_administrator(full: FakeController) -> object:
    job = wide(full)
    scontrol(full, "hold", str(job))
    return job


@story("If nothing held it, it would start 2026-11-30T13:00:00 (in 1:00:00).\n")
def when_it_is_released(full: FakeController) -> object:
    return wide(full, hold=True)


@story("It shall not begin before 2026-11-30T15:00:00.\n")
def begin(full: FakeController) -> object:
    return full.submit(BOB, begin_time=NOON + 3 * HOUR)


@story("No more than 1 of the array's elements may run at once, and so many do.\n")
def array_limit(full: FakeController) -> object:
    return full.submit(BOB, array="0-3%1", time_limit=5)


@story("It asks for 2:00:00, but jobs of partition debug may take no longer than 1:00:00.\n")
def too_long(full: FakeController) -> object:
    return full.submit(BOB, time_limit=120)


@story("  --time=01:00:00: now, 1 node\n")
def too_long_but_for_less_time(full: FakeController) -> object:
    return full.submit(BOB, time_limit=120)


@story("It asks for 9 nodes, but jobs of partition debug have from 0 to 8.\n")
def too_many_nodes(full: FakeController) -> object:
    return full.submit(BOB, minimum_nodes=9, maximum_nodes=9, nodes="9")


@story("Partition cpu is down: nothing starts there until an administrator opens it.\n")
def partition_down(full: FakeController) -> object:
    scontrol(full, "update", "PartitionName=cpu", "State=DOWN")
    return wide(full)


@story("Partition cpu is closed: nothing starts there until it is opened.\n")
def partition_inactive(full: FakeController) -> object:
    job = wide(full)
    scontrol(full, "update", "PartitionName=cpu", "State=INACTIVE")
    return job


@story("It needs 3 nodes in partition cpu, but only 2 are up and take jobs.\n")
def drained_nodes(full: FakeController) -> object:
    scontrol(full, "update", "NodeName=n[5-6]", "State=DRAIN", "Reason=disk")
    return wide(full, minimum_nodes=3, maximum_nodes=3, nodes="3")


@story("It needs 4 of the licence matlab; 1 of 4 are free.\n")
def licenses(full: FakeController) -> object:
    full.submit(BOB, partition="debug", licenses="matlab:3")
    full.start_all()
    return full.submit(BOB, partition="debug", licenses="matlab:4")


@story("It waits for its reservation later, which begins at 2026-11-30T14:00:00.\n")
def reservation(full: FakeController) -> object:
    reserve(full, "later", "n7")
    return full.submit(ALICE, partition="cpu", reservation="later")


@story("Of these, 1 is reserved for others and 3 are in use, while it needs whole nodes.\n")
def reserved_for_others(full: FakeController) -> object:
    reserve(full, "later", "n7")
    return wide(full)


def reserve(full: FakeController, name: str, nodes: str) -> None:
    words = (f"ReservationName={name}", f"Nodes={nodes}", "Users=alice", "StartTime=14:00", "Duration=60", "Flags=IGNORE_JOBS")
    scontrol(full, "create", "reservation", *words)


@story("It needs 2 nodes in partition debug, but only 0 have the features a100&cpu.\n")
def constraint(full: FakeController) -> object:
    job = full.submit(BOB, minimum_nodes=2, maximum_nodes=2, nodes="2", hold=True)
    scontrol(full, "update", f"JobId={job}", "Features=a100&cpu")
    scontrol(full, "release", str(job))
    return job


@story("ClusterQueue phys leaves 1 CPUs to jobs like it, and it takes 2 CPUs.\n")
def quota(full: FakeController) -> object:
    limit = QuotaLimit("cpu", 5000, 2000)
    full.handle(QuotasChanged(full.now(), (Quota("ClusterQueue phys", (limit,), users=frozenset({ALICE.user_id})),)))
    return full.submit(ALICE, partition="debug", tasks=2, maximum_nodes=2)


@story("Nothing is free early enough for it to end by its deadline, 2026-11-30T12:30:00.\n")
def deadline(full: FakeController) -> object:
    return wide(full, time_limit=5, deadline=NOON + HOUR // 2)


@story("Elements of the array before it go first, the next of them 2026-11-30T13:00:00 (in 1:00:00).\n")
def a_later_element(full: FakeController) -> object:
    return f"{wide(full, array='0-9%2')}_7"


@story("Job 7_1 (wrap) of alice is PENDING, Resources.\n")
def an_early_element(full: FakeController) -> object:
    return f"{wide(full, array='0-9%2')}_1"


@pytest.mark.parametrize("name", STORIES)
def test_each_reason_has_its_sentence(full: FakeController, name: str) -> None:
    make, sentence = STORIES[name]
    job = make(full)
    full.start_all()
    assert sentence in why(full, job)
    [told, *_] = json.loads(why(full, job, "--json"))["jobs"]
    assert sentence.rstrip("\n") in told["sentences"]


def test_jobs_that_do_not_wait(full: FakeController) -> None:
    assert why(full, 4) == (
        "Job 4 (wrap) of bob is RUNNING.\n"
        "It runs on n8 since 2026-11-30T12:00:00.\n"
        "Its time limit of 20:00 ends it at 2026-11-30T12:20:00.\n"
    )
    full.time += 60
    full.end(4, 3 << 8)
    assert why(full, 4) == (
        "Job 4 (wrap) of bob is FAILED, NonZeroExitCode.\nIt is over since 2026-11-30T12:01:00, with exit code 3:0.\n"
    )


def test_all_records_of_an_array_and_components_of_a_job(full: FakeController) -> None:
    array = full.submit(BOB, array="0-2%1", time_limit=5)
    full.start_all()
    text = why(full, array)
    assert text.startswith(f"Job {array}_[1-2] (wrap) of bob is PENDING, JobArrayTaskLimit.\n")
    assert f"\n\nJob {array}_0 (wrap) of bob is RUNNING.\n" in text


@pytest.mark.parametrize("words", [(), ("7", "8"), ("--long",), ("7", "--yaml")])
def test_what_is_no_question(full: FakeController, words: tuple[str, ...]) -> None:
    said = run_command(full, "slurmk", "why", *words)
    assert (said.out, said.code) == ("", 2)
    assert said.err == "slurmk: error: why takes one job id (12, 12_3, 12+1), and --json\n"


@pytest.mark.parametrize("job", ["99", "x", "7.0", "1_[", "7_4", ""])
def test_jobs_that_are_none(full: FakeController, job: str) -> None:
    wide(full)
    said = run_command(full, "slurmk", "why", job)
    assert (said.out, said.err, said.code) == ("", "slurmk: error: Invalid job id specified\n", 1)


def test_private_jobs_stay_private() -> None:
    made = FakeController(reference_site(private_data=("jobs",)))
    for number in range(5, 9):
        made.submit(BOB, partition="cpu", required_nodes=f"n{number}", shared="none", time_limit=60)
    made.start_all()
    wide(made, BOB)
    wide(made, BOB, time_limit=10)
    mine = wide(made, ALICE)
    text = why(made, mine, caller=ALICE)
    assert "bob" not in text
    assert "2 jobs of those before it take what it could use: another user's starts 2026-11-30T13:00:00; " in text
    assert all(
        "job_id" not in each for each in json.loads(why(made, mine, "--json", caller=ALICE))["jobs"][0]["before"]["jobs"]
    )
    said = run_command(made, "slurmk", "why", "5", caller=ALICE)
    assert (said.out, said.err, said.code) == ("", "slurmk: error: Invalid job id specified\n", 1)
    assert "bob" in why(made, mine, caller=ROOT)
    assert run_command(made, "slurmk", "why", str(mine), caller=NOBODY).code == 1


def test_asking_changes_nothing(full: FakeController) -> None:
    job = wide(full)
    before = full.machine.snapshot(full.now())
    full.events.clear()
    why(full, job)
    after = full.machine.snapshot(full.now())
    assert after.snapshot_id == before.snapshot_id + 1, "the next plan is not taken to be late"
    assert plan(replace(after, snapshot_id=1)) == plan(replace(before, snapshot_id=1))
    assert not full.events


REQUESTS = st.fixed_dictionaries(
    {"partition": st.sampled_from(["debug", "gpu", "cpu", "cpu,gpu"]), "time_limit": st.sampled_from([5, 20, 40, 60])},
    optional={
        "shared": st.sampled_from(["none", "user"]),
        "constraints": st.sampled_from(["a100", "cpu", "[a100|cpu]"]),
        "excluded_nodes": st.sampled_from(["n[5-6]", "n1"]),
        "licenses": st.sampled_from(["matlab:2", "matlab:4"]),
        "memory_per_node": st.sampled_from([0, 4000, 15000]),
        "cpus_per_task": st.sampled_from([2, 4]),
    },
)

SIZES = st.sampled_from(
    [
        {"minimum_nodes": 3, "maximum_nodes": 3, "nodes": "3"},
        {"minimum_nodes": 2, "maximum_nodes": 4, "nodes": "2-4"},
        {"minimum_nodes": 2, "maximum_nodes": 2, "nodes": "2", "tasks": 8},
        {"tasks": 24, "maximum_nodes": 24},
        {"minimum_nodes": 2, "maximum_nodes": 2, "nodes": "2", "tasks_per_node": 4},
        {"minimum_nodes": 2, "maximum_nodes": 2, "nodes": "2", "tres_per_node": "gres/gpu:a100:2"},
        {"tres_per_job": "gres/gpu:4"},
    ]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(REQUESTS, SIZES), min_size=3, max_size=9))
def test_a_smaller_request_starts_when_it_was_told(queue: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """Submitted in place of the job that was asked about, to a machine that had the same jobs before."""

    def story(last: dict[str, Any]) -> tuple[FakeController, int] | None:
        made = FakeController()
        try:
            for request, size in queue[:-1]:
                made.submit(BOB, **{**request, **size})
            made.start_all()
            return made, made.submit(ALICE, **last)
        except AssertionError:  # refused: no node is like that
            return None

    wanted = {**queue[-1][0], **queue[-1][1]}
    first = story(wanted)
    if first is None:
        return
    made, job = first
    question = made.machine.question(job, made.now())
    assert question is not None
    request = made.machine.jobs[job].request
    told = {better.change: better.start for better in explain(question).smaller}
    for change in changes(request):
        if change.text in told:
            again = story({**wanted, **change.changes})
            assert again is not None, f"{change.text} is refused"
            other, changed = again
            planned = plan(other.machine.snapshot(other.now()))
            started = {start.job_id for start in planned.starts}
            start = int(other.now()) if changed in started else planned.outlooks[changed].start_time
            assert start == told[change.text], change.text
    assert explain(Question(question.snapshot, question.row)).outlook == explain(question).outlook


def test_nodes_that_are_not_available_are_named(full: FakeController) -> None:
    scontrol(full, "update", "nodename=n[6-7]", "state=drain", "reason=fan broken")
    said = why(full, wide(full, minimum_nodes=4, maximum_nodes=4, nodes="4"))
    assert "n[6-7] would do too, but are not available (draining, fan broken)." in said
    [told] = json.loads(why(full, full.machine.pending()[0].job_id, "--json"))["jobs"]
    assert [room["not_available"] for room in told["needs"]] == [["n6", "n7"]]


def preempting() -> tuple[FakeController, list[int]]:
    """Two jobs of a lower tier on whole nodes n5 and n6, which those of a higher one may take."""
    site = reference_site()
    low = replace(site.partitions[2], name="low", nodes=("n5", "n6"), priority_tier=1)
    high = replace(low, name="high", priority_tier=2)
    tiers = replace(site, partitions=(low, high), preempt_type="preempt/partition_prio", preempt_mode="CANCEL")
    made = FakeController(tiers)
    jobs = [made.submit(BOB, partition="low", required_nodes=name, shared="none", time_limit=60) for name in ("n5", "n6")]
    made.start_all()
    return made, jobs


def test_who_gives_way_is_named() -> None:
    made, (first, second) = preempting()
    job = made.submit(ALICE, partition="high", minimum_nodes=2, maximum_nodes=2, nodes="2", shared="none", time_limit=60)
    said = why(made, job)
    assert "So that it can start, " in said
    assert f"job {first} (bob)" in said
    assert f"job {second} (bob)" in said
    [told] = json.loads(why(made, job, "--json"))["jobs"]
    assert sorted(told["planned"]["gives_way"]) == [first, second]


def test_smaller_requests_count_on_those_who_give_way() -> None:
    """Of three nodes one is held by a job of the same tier, so that only what needs fewer can start now."""
    made, _ = preempting()
    site = made.machine.site
    low, high = (replace(each, nodes=("n5", "n6", "n7")) for each in site.partitions)
    made = FakeController(replace(site, partitions=(low, high)))
    made.submit(BOB, partition="high", required_nodes="n7", shared="none", time_limit=60)
    for name in ("n5", "n6"):
        made.submit(BOB, partition="low", required_nodes=name, shared="none", time_limit=120)
    made.start_all()
    job = made.submit(ALICE, partition="high", minimum_nodes=3, maximum_nodes=3, nodes="3", shared="none", time_limit=60)
    assert "  --nodes=1: now, 1 node\n" in why(made, job)
