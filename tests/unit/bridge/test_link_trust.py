"""What stepds and sruns are believed: only what their secrets, and sense, allow."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from embedded_launcher import SITE, embedded

from bridge import link as link_module
from bridge.link import LARGEST, LATEST, Attempt, StepdLink, attempt_of, events_of, step_secret
from slurmk import wire
from slurmk.core.events import BatchEnded, Event, JobStarted, StepEnded, StepStarted
from slurmk.stepd import messages

SECRET = bytes(range(16))
STEP = {"step": 0, "name": "x", "start_time": 1, "nodes": ["n1"]}


def attempt() -> Attempt:
    return attempt_of(5, 0, SECRET, lambda: b"{}", ["n1"])


def test_both_halves_make_the_same_secret_for_srun() -> None:
    assert step_secret(SECRET) == messages.step_secret(SECRET.hex()) != SECRET.hex()


def test_what_srun_holds_does_not_register_a_stepd(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("k") / "d"
    directory.mkdir()

    async def story() -> None:
        async with embedded(directory) as cluster:
            await cluster.launch("#!/bin/sh\nsleep 300\n", 5, nodes=2)
            await cluster.until(lambda: cluster.found(JobStarted, 5))
            secret = dict(cluster.launcher.access(cluster.jobs[5], cluster.files[5].secret))["SLURMK_JOB_SECRET"]
            assert secret != cluster.files[5].secret.hex()
            reader, writer = await asyncio.open_unix_connection(next(directory.glob("*.sock")))
            writer.write(messages.hello("stepd"))
            challenge = (await messages.read_message(reader))["nonce"]
            register = {
                "kind": "register",
                "job": 5,
                "restart": 0,
                "node": "n1",
                "informed": True,
                "manager": "tcp:127.0.0.1:1",
            }
            writer.write(messages.pack({**register, "proof": messages.proof(secret, challenge, "register")}))
            assert await asyncio.wait_for(reader.read(), 10) == b""
            code, out, error = await cluster.srun(5, "echo", "served", tasks=2)
            assert (code, out) == (0, "served\nserved\n"), error
            await cluster.release(5)

    asyncio.run(story())


@pytest.mark.parametrize("answer", [{"kind": "welcome"}, {"kind": "welcome", "proof": messages.proof("00", "x", "manager")}])
def test_an_impostor_in_the_place_of_a_step_manager_is_found_out(answer: dict[str, Any], tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()

        def impostor() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(messages.pack({"kind": "nonce", "nonce": "ab"}) + messages.pack(answer))
                while connection.recv(65536):
                    pass

        threading.Thread(target=impostor, daemon=True).start()
        with pytest.raises(wire.WireError):
            messages.dial(f"unix:{tmp_path / 's'}", "srun", {"kind": "step"}, "00ff")


def test_numbers_and_texts_of_a_report_are_brought_within_bounds() -> None:
    step = {**STEP, "name": "a\0b\ud800c\udcff", "start_time": 2**80, "tasks": -1, "cpus": 2**80, "exit_code": 2**80}
    (event,) = events_of(attempt(), "n1", {"event": "step_started", "step": step}, 1.0)
    assert isinstance(event, StepStarted)
    assert event.step.name == "a?b?c\udcff"
    assert (event.step.start_time, event.step.tasks, event.step.cpus) == (LATEST, 0, LARGEST)
    (ended,) = events_of(attempt(), "n1", {"event": "batch_ended", "exit_code": 2**40, "usage": {"user_cpu": -5}}, 1.0)
    assert isinstance(ended, BatchEnded)
    assert (ended.exit_code, ended.usage.user_cpu) == (0xFFFF, 0)


NONSENSE: list[dict[str, Any]] = [
    {},
    {"event": "step_started"},
    {"event": "step_started", "step": {**STEP, "step": 2**80}},
    {"event": "step_started", "step": {**STEP, "step": -7}},
    {"event": "step_started", "step": {**STEP, "state": "NONSENSE"}},
    {"event": "step_started", "step": {**STEP, "start_time": float("inf")}},
    {"event": "step_started", "step": {**STEP, "cpus_per_task": {"a": 1}}},
    {"event": "step_ended", "step": {**STEP, "usage": {"user_cpu": "x"}}},
    {"event": "step_ended", "step": {**STEP, "usage": {"user_cpu": [1]}}},
    {"event": "batch_ended", "exit_code": float("nan")},
]


@contextlib.asynccontextmanager
async def registered(link: StepdLink) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The stepd's end of a connection on which it has shown that it holds the secret of job 5."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    serving = asyncio.create_task(link.attach(*await asyncio.open_connection(sock=theirs), "1 stepd"))
    challenge = (await messages.read_message(reader))["nonce"]
    proof = messages.proof(SECRET.hex(), challenge, "register")
    writer.write(messages.pack({"kind": "register", "job": 5, "restart": 0, "node": "n1", "informed": True, "proof": proof}))
    yield reader, writer
    writer.close()
    await serving


@pytest.mark.parametrize(
    "register",
    [
        {"job": 5, "restart": 0, "node": "n2", "nonce": "of the caller's choice", "proof": "0"},
        {"job": 5, "restart": 0, "node": "n1", "nonce": "of the caller's choice"},
        {"job": float("inf"), "restart": 0, "node": "n1"},
        {"job": 5, "restart": [], "node": {}},
    ],
)
def test_nothing_is_made_with_a_jobs_secret_for_a_stranger(register: dict[str, Any]) -> None:
    async def story() -> bytes:
        link = StepdLink(lambda: 1.0, lambda attempt, seat: None, lambda attempt, seat: None)
        link.expect(replace(attempt(), pods=True))
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        serving = asyncio.create_task(link.attach(*await asyncio.open_connection(sock=theirs), "1 stepd"))
        await messages.read_message(reader)
        writer.write(messages.pack({**register, "kind": "register"}))
        said = await asyncio.wait_for(reader.read(), 5)
        await serving
        writer.close()
        return said

    assert asyncio.run(story()) == b""


async def register_genuine(port: int, source: str = "127.0.0.1") -> None:
    """Dial as a stepd that holds the job's secret, and be taken."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    challenge = (await messages.read_message(reader))["nonce"]
    register = {"kind": "register", "job": 5, "restart": 0, "node": "n1"}
    writer.write(messages.pack({**register, "proof": messages.proof(SECRET.hex(), challenge, "register")}))
    assert (await asyncio.wait_for(messages.read_message(reader), 5))["kind"] == "job"
    writer.close()


@pytest.mark.parametrize(
    ("sources", "left"), [(["127.0.0.9"], 4), ([f"127.0.1.{number}" for number in range(1, 30)], 10)], ids=["one", "many"]
)
def test_strangers_keep_no_stepd_out(monkeypatch: pytest.MonkeyPatch, sources: list[str], left: int) -> None:
    """However many dial and prove nothing, from one address or many: they are few at any time, and the oldest go."""
    monkeypatch.setattr(link_module, "UNPROVEN_OF_ADDRESS", 4)
    monkeypatch.setattr(link_module, "UNPROVEN_IN_ALL", 10)

    async def story() -> None:
        link = StepdLink(lambda: 1e9, lambda attempt, seat: None, lambda attempt, seat: None)
        link.expect(attempt())
        server = await asyncio.start_server(lambda reader, writer: link.attach(reader, writer, "1 stepd"), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        strangers = []
        for number in range(60):
            source = sources[number % len(sources)]
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
            assert (await asyncio.wait_for(messages.read_message(reader), 5))["kind"] == "nonce"
            writer.write(b"x")  # and never says more
            strangers.append((reader, writer))
            await register_genuine(port, "127.0.0.1" if number % 2 else source)
        ended = [await_end(reader) for reader, _ in strangers]
        outcomes = [await each for each in ended]
        assert outcomes == sorted(outcomes, reverse=True)  # the oldest
        assert outcomes.count(False) <= left
        for _, writer in strangers:
            writer.close()
        server.close()

    asyncio.run(story())


async def await_end(reader: asyncio.StreamReader) -> bool:
    """Whether the other end has closed."""
    try:
        return await asyncio.wait_for(reader.read(), 0.05) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("report", NONSENSE)
def test_a_report_without_sense_is_acknowledged_and_the_next_is_heard(report: dict[str, Any]) -> None:
    heard: list[Event] = []

    async def story() -> None:
        link = StepdLink(lambda: 1.0, lambda attempt, seat: None, lambda attempt, seat: None)
        link.report = heard.append
        link.expect(attempt())
        async with registered(link) as (reader, writer):
            for number, each in enumerate((report, {"event": "step_ended", "step": STEP}), 1):
                frame = json.dumps({**each, "kind": "report", "id": number}).encode()
                writer.write(wire.encode(wire.MESSAGE, frame))
                assert await asyncio.wait_for(messages.read_message(reader), 5) == {"kind": "ack", "id": number}

    asyncio.run(story())
    assert [type(event) for event in heard] == [StepEnded]


def test_no_more_steps_are_believed_than_a_job_may_have() -> None:
    limited = attempt_of(5, 0, SECRET, lambda: b"{}", ["n1"], most_steps=3)
    assert events_of(limited, "n1", {"event": "step_started", "step": {**STEP, "step": 2}}, 1.0)
    assert events_of(limited, "n1", {"event": "step_started", "step": {**STEP, "step": "batch"}}, 1.0)
    with pytest.raises(ValueError, match="step 3"):
        events_of(limited, "n1", {"event": "step_started", "step": {**STEP, "step": 3}}, 1.0)


def test_who_reports_faster_than_it_is_written_down_has_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "PENDING_REPORTS", 10)
    heard: list[Event] = []
    on_disk: list[asyncio.Future[None]] = []

    def report(event: Event) -> asyncio.Future[None]:
        heard.append(event)
        on_disk.append(asyncio.get_running_loop().create_future())
        return on_disk[-1]

    async def story() -> None:
        link = StepdLink(lambda: 1.0, lambda attempt, seat: None, lambda attempt, seat: None)
        link.report = report
        link.expect(attempt())
        async with registered(link) as (reader, writer):
            for number in range(1, 101):
                writer.write(messages.pack({"kind": "report", "id": number, "event": "step_ended", "step": STEP}))
            await asyncio.sleep(0.2)
            assert len(heard) == 11
            while len(heard) < 100:
                for each in on_disk:
                    if not each.done():
                        each.set_result(None)
                await asyncio.sleep(0.01)
            for each in on_disk:
                if not each.done():
                    each.set_result(None)
            acknowledged = [(await asyncio.wait_for(messages.read_message(reader), 5))["id"] for _ in range(100)]
            assert sorted(acknowledged) == list(range(1, 101))

    asyncio.run(story())


def test_reports_beyond_number_are_taken_and_those_of_steps_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "MOST_REPORTS", 5)
    heard: list[Event] = []

    async def story() -> None:
        link = StepdLink(lambda: 1.0, lambda attempt, seat: None, lambda attempt, seat: None)
        link.report = heard.append
        link.expect(attempt())
        async with registered(link) as (reader, writer):
            for number in (5, 6, 7):
                writer.write(messages.pack({"kind": "report", "id": number, "event": "step_ended", "step": STEP}))
            writer.write(messages.pack({"kind": "report", "id": 8, "event": "batch_ended", "exit_code": 0}))
            for number in (5, 6, 7, 8):
                assert await asyncio.wait_for(messages.read_message(reader), 5) == {"kind": "ack", "id": number}
            assert len(link.attempts[5, 0].seats["n1"].seen) == 1

    asyncio.run(story())
    assert [type(event) for event in heard] == [StepEnded, BatchEnded]


@pytest.mark.parametrize(
    "frame",
    [
        wire.encode(wire.MESSAGE, b'{"kind":"register","job":"' + b"x" * 5000 + b'"}'),
        wire.MESSAGE.to_bytes(1, "big") + (30 << 20).to_bytes(4, "big"),
        wire.encode(wire.MESSAGE, b"[" * 4000),
    ],
    ids=["long", "announced", "deep"],
)
def test_little_is_read_of_who_has_proven_nothing(frame: bytes) -> None:
    async def story() -> None:
        link = StepdLink(lambda: 1.0, lambda attempt, seat: None, lambda attempt, seat: None)
        link.expect(attempt())
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        serving = asyncio.create_task(link.attach(*await asyncio.open_connection(sock=theirs), "1 stepd"))
        await messages.read_message(reader)
        writer.write(frame)
        await asyncio.wait_for(serving, 5)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()

    asyncio.run(story())


def test_a_manager_reads_little_of_strangers_and_tells_who_wants_something_else(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("m") / "d"
    directory.mkdir()

    async def story() -> None:
        async with embedded(directory) as cluster:
            await cluster.launch("#!/bin/sh\nsleep 300\n", 5)
            await cluster.until(lambda: cluster.found(JobStarted, 5))
            access = dict(cluster.launcher.access(cluster.jobs[5], cluster.files[5].secret))
            path = access["SLURMK_STEP_MANAGER"].partition("|")[0].removeprefix("unix:")

            async def opened() -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
                reader, writer = await asyncio.open_unix_connection(path)
                writer.write(messages.hello("srun"))
                return reader, writer, (await messages.read_message(reader))["nonce"]

            reader, writer, _ = await opened()
            writer.write(wire.MESSAGE.to_bytes(1, "big") + (30 << 20).to_bytes(4, "big"))
            assert await asyncio.wait_for(reader.read(), 5) == b""
            reader, writer, challenge = await opened()
            proof = messages.proof(access["SLURMK_JOB_SECRET"], challenge, "step")
            writer.write(messages.pack({"kind": "step", "nonce": "1", "proof": proof}))
            assert (await messages.read_message(reader))["kind"] == "welcome"
            writer.write(messages.pack({"kind": "peer", "node": "n1"}))  # for which srun's secret is not enough
            assert await asyncio.wait_for(reader.read(), 5) == b""
            await cluster.release(5)

    asyncio.run(story())


def test_a_job_has_no_more_steps_than_the_site_allows(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("s") / "d"
    directory.mkdir()

    async def story() -> None:
        async with embedded(directory) as cluster:
            cluster.launcher.reconfigure(replace(SITE, maximum_step_count=1))
            await cluster.launch("#!/bin/sh\nsleep 300\n", 5)
            await cluster.until(lambda: cluster.found(JobStarted, 5))
            assert (await cluster.srun(5, "true"))[0] == 0
            code, _, error = await cluster.srun(5, "true")
            assert (code, error) == (1, "srun: error: Unable to create step for job 5: Step limit reached for this job\n")
            await cluster.release(5)

    asyncio.run(story())
