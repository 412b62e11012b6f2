"""Nothing is answered or launched before it is on disk, and nothing stays that never got there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from fakes import CALLER, FakeMachine, FakeStore, files, submit

from slurmk.core.effects import Accepted, Effect, Launch, Refused, SaveJob, Terminate
from slurmk.core.errors import Errno
from slurmk.core.events import BatchEnded, JobSelection, Kill, Planned
from slurmk.daemon import engine as engine_module
from slurmk.daemon.committed import Committed
from slurmk.daemon.committer import Committer
from slurmk.daemon.engine import Engine, RecentFiles, with_secret
from slurmk.planner.snapshot import Plan


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "FIRST_PAUSE", 0.02)


class Bench:
    """An engine between a fake machine and a fake store, and the order in which things came out."""

    def __init__(self, engine: Engine, store: FakeStore, seen: list[object]) -> None:
        self.engine = engine
        self.store = store
        self.seen = seen

    async def recovered(self) -> None:
        for _ in range(500):
            if not self.engine.fault:
                await self.engine.settled()
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the engine did not recover")


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    store = FakeStore()
    seen: list[object] = []

    def note(effect: Effect) -> None:
        seen.append(effect)

    committer = Committer(store, asyncio.get_running_loop())
    engine = Engine(
        lambda committed: (FakeMachine(committed), []),  # type: ignore[arg-type,return-value]
        Committed(),
        committer,
        lambda: 1.0,
        note,
        lambda: None,
        lambda when: None,
        lambda effect: None,
    )
    engine.start()
    yield Bench(engine, store, seen)
    store.gate.set()
    store.fault = None
    await engine.stop()
    await committer.stop()


def story(test: Callable[[Bench], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def within() -> None:
            async with bench() as made:
                await asyncio.wait_for(test(made), 20)

        asyncio.run(within())

    run.__name__ = test.__name__  # type: ignore[attr-defined]
    return run


@story
async def test_answer_and_launch_come_after_the_commit(made: Bench) -> None:
    made.store.gate.clear()
    answer = made.engine.apply(submit(), [files()])
    await asyncio.sleep(0.05)
    assert not answer.done()
    assert not made.seen
    made.store.gate.set()
    assert await answer == (Accepted((1,)),)
    assert [type(effect) for effect in made.seen] == [Launch]
    assert made.store.commits[0][1] == {1: files()}


@story
async def test_what_comes_while_a_commit_is_on_its_way_shares_the_next(made: Bench) -> None:
    made.store.gate.clear()
    first = made.engine.apply(submit(), [files()])
    await asyncio.sleep(0.05)
    others = [made.engine.apply(submit(), [files()]) for _ in range(50)]
    made.store.gate.set()
    answers = await asyncio.gather(first, *others)
    assert [answer[0].job_ids[0] for answer in answers if isinstance(answer[0], Accepted)] == list(range(1, 52))
    assert len(made.store.commits) == 2
    assert [effect.job.job_id for effect in made.seen if isinstance(effect, Launch)] == list(range(1, 52))


@story
async def test_an_answer_without_a_save_does_not_overtake_one_with(made: Bench) -> None:
    made.store.gate.clear()
    saved = made.engine.apply(submit(), [files()])
    await asyncio.sleep(0.05)
    killed = made.engine.apply(Kill(1.0, CALLER, (JobSelection(1),)))
    await asyncio.sleep(0.05)
    assert not killed.done()
    made.store.gate.set()
    await asyncio.gather(saved, killed)
    assert [type(effect) for effect in made.seen] == [Launch, Terminate]


@story
async def test_refusal_without_anything_to_save_is_told_at_once(made: Bench) -> None:
    answers = await made.engine.apply(Kill(1.0, CALLER, (JobSelection(9),)))
    assert isinstance(answers[0], Refused)
    assert made.store.attempts == 0


@story
async def test_a_caller_that_went_away_changes_nothing(made: Bench) -> None:
    answer = made.engine.apply(submit(), [files()])
    answer.cancel()
    await made.engine.settled()
    assert 1 in made.store.jobs
    assert [type(effect) for effect in made.seen] == [Launch]


@story
async def test_failed_commit_refuses_and_leaves_no_trace(made: Bench) -> None:
    assert await made.engine.apply(submit("kept"), [files()]) == (Accepted((1,)),)
    made.store.fault = OSError(28, "No space left on device")
    made.seen.clear()
    answers = await asyncio.gather(*[made.engine.apply(submit("lost"), [files()]) for _ in range(3)])
    assert all(isinstance(answer[0], Refused) and answer[0].error.errno is Errno.WRITING_TO_FILE for answer in answers)
    assert list(made.engine.machine.jobs) == [1]
    assert not made.seen, "nothing was launched"
    refused = await made.engine.apply(Kill(1.0, CALLER, (JobSelection(1),)))
    assert isinstance(refused[0], Refused)
    made.store.fault = None
    await made.recovered()
    assert await made.engine.apply(submit("next"), [files()]) == (Accepted((2,)),)
    assert sorted(made.store.jobs) == [1, 2]
    assert [made.store.jobs[job_id].request.name for job_id in (1, 2)] == ["kept", "next"]


@story
async def test_events_behind_a_failing_commit_are_undone_too(made: Bench) -> None:
    made.store.gate.clear()
    made.store.fault = OSError("read-only")
    first = made.engine.apply(submit(), [files()])
    await asyncio.sleep(0.05)
    second = made.engine.apply(submit(), [files()])
    made.store.gate.set()
    answers = await asyncio.gather(first, second)
    assert all(isinstance(answer[0], Refused) for answer in answers)
    assert not made.engine.machine.jobs


@story
async def test_reports_are_kept_until_the_store_recovers_in_their_order(made: Bench) -> None:
    await asyncio.gather(*[made.engine.apply(submit(), [files()]) for _ in range(3)])
    made.store.fault = OSError("No space left on device")
    for job_id in (1, 2):
        made.engine.report(BatchEnded(2.0, job_id, 0, job_id << 8))
    await asyncio.sleep(0.1)
    assert made.engine.fault
    assert made.engine.machine.jobs[1].exit_code == 0, "memory is what the store has"
    made.engine.report(BatchEnded(2.0, 3, 0, 3 << 8))
    made.store.fault = None
    await made.recovered()
    assert {job_id: job.exit_code for job_id, job in made.store.jobs.items()} == {1: 256, 2: 512, 3: 768}
    saved = [effect.job.job_id for effects, _ in made.store.commits[1:] for effect in effects if isinstance(effect, SaveJob)]
    assert saved == [1, 2, 3]
    assert made.engine.machine.jobs[3].exit_code == 768


@story
async def test_a_report_that_can_never_be_saved_is_dropped(made: Bench) -> None:
    await asyncio.gather(*[made.engine.apply(submit(), [files()]) for _ in range(2)])
    made.store.poison = 1
    made.engine.report(BatchEnded(2.0, 1, 0, 256))
    made.engine.report(BatchEnded(2.0, 2, 0, 512))
    await asyncio.sleep(0.05)
    await made.recovered()
    assert made.store.jobs[2].exit_code == 512
    assert made.engine.machine.jobs[1].exit_code == 0
    assert await made.engine.apply(submit(), [files()]) == (Accepted((3,)),)


@story
async def test_a_fault_in_the_machine_costs_one_event(made: Bench) -> None:
    waiting = made.engine.apply(submit(), [files()])
    made.engine.report(Planned(1.0, Plan(1, 1, (), {})))
    assert await waiting == (Accepted((1,)),), "what was handled before it is kept"
    await made.recovered()
    assert list(made.engine.machine.jobs) == [1]
    assert await made.engine.apply(submit(), [files()]) == (Accepted((2,)),)


@story
async def test_a_fault_in_the_machine_refuses_nobody_else(made: Bench) -> None:
    made.engine.report(Planned(1.0, Plan(1, 1, (), {})))
    behind = [made.engine.apply(submit(), [files()]) for _ in range(3)]
    assert [await answers for answers in behind] == [(Accepted((number,)),) for number in (1, 2, 3)]
    assert sorted(made.store.jobs) == [1, 2, 3]


@story
async def test_a_store_that_fails_refuses_those_who_waited(made: Bench) -> None:
    made.store.fault = OSError("disk full")
    made.engine.report(Planned(1.0, Plan(1, 1, (), {})))
    [answer] = await made.engine.apply(submit(), [files()])
    assert isinstance(answer, Refused)
    made.store.fault = None
    await made.recovered()
    assert await made.engine.apply(submit(), [files()]) == (Accepted((1,)),)


@story
async def test_shutdown_waits_for_what_is_on_its_way(made: Bench) -> None:
    made.store.gate.clear()
    made.engine.apply(submit(), [files()])
    settled = asyncio.ensure_future(made.engine.settled())
    await asyncio.sleep(0.05)
    assert not settled.done()
    made.store.gate.set()
    await settled
    assert 1 in made.store.jobs


def test_recent_files_forget_the_oldest() -> None:
    recent = RecentFiles(5000)
    for job_id in range(10):
        recent.add({job_id: files(b"x" * 1000)})
    assert recent.get(0) is None
    assert recent.get(9) is not None


def test_secrets_differ() -> None:
    bare = files().__class__(b"", (), {}, b"")
    assert len({with_secret(bare).secret for _ in range(10)}) == 10
    assert with_secret(files()).secret == b"secret"
