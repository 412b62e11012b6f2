"""Whom a job's processes may act as over the network, and for how long."""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from fakes import files
from test_daemon import NotingLauncher, accepted, run, site, submission, until

from accounting.store import Store
from bridge.link import attempt_secret, command_secret
from slurmk import wire
from slurmk.client import slurmk
from slurmk.core.effects import Accepted
from slurmk.daemon import identity
from slurmk.daemon.controller import Daemon
from slurmk.daemon.identity import Identities, group_name, groups_of
from slurmk.model.job import Credentials
from slurmk.stepd import messages

SECRET = b"0" * 16


async def answer_to(port: int, command: str, job_id: int, restart: int, secret: str) -> list[tuple[int, bytes]]:
    """All frames that a command gets which proves that it holds ``secret``; it asks for its --version."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(wire.encode(wire.HELLO, f"1 {command}".encode()))
    kind, challenge = await messages.read_frame(reader)
    assert kind == wire.CHALLENGE
    proof = messages.proof(secret, challenge.decode(), f"{job_id} {restart}")
    writer.write(wire.encode(wire.PROOF, f"{job_id} {restart} mine {proof}".encode()))
    frames = [await messages.read_frame(reader)]
    if frames[0][0] == wire.WELCOME:
        assert frames[0][1] == hmac.new(bytes.fromhex(secret), b"mine controller", "sha256").hexdigest().encode()
        for kind, payload in (
            (wire.ARGUMENTS, b"-h\0-o\0%i %u\0"),
            (wire.DIRECTORY, b"/"),
            (wire.ENVIRONMENT, b""),
            (wire.FACTS, b""),
            (wire.GO, b""),
        ):
            writer.write(wire.encode(kind, payload))
    while frames[-1][0] != wire.EXIT:
        frames.append(await messages.read_frame(reader))
    writer.close()
    return frames[1:] if frames[0][0] == wire.WELCOME else frames


@asynccontextmanager
async def reached(directory: Path) -> AsyncIterator[tuple[Daemon, NotingLauncher, int]]:
    """A controller with a TCP socket, and its port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as remote, closing(Store(f"sqlite:///{directory}/x", site())) as store:
        store.open()
        launcher = NotingLauncher()
        daemon = Daemon(directory, site(), store, launcher, None, remote=remote)
        serving = asyncio.create_task(daemon.run())
        await until(lambda: (directory / "slurmk.sock").exists())
        await asyncio.to_thread(slurmk.answers, directory)
        try:
            yield daemon, launcher, remote.getsockname()[1]
        finally:
            daemon.shutdown(end_jobs=False)
            await asyncio.wait_for(serving, 20)


def test_a_secret_is_good_for_its_attempt_alone_and_while_it_lives(tmp_path: Path) -> None:
    refused = [(wire.ERROR, b"squeue: error: Protocol authentication error\n"), (wire.EXIT, b"1")]

    async def story() -> None:
        async with reached(tmp_path) as (daemon, launcher, port):
            held = await accepted(daemon, submission(daemon, user_id=4711, hold=True))
            job_id = await accepted(daemon, submission(daemon, user_id=4711))
            await until(lambda: launcher.launched)
            given = daemon.secret_of(daemon.machine.jobs[job_id])

            def secret(restart: int) -> str:
                return command_secret(attempt_secret(given, job_id, restart))

            (_, shown), end = await answer_to(port, "squeue", job_id, 0, secret(0))
            assert sorted(shown.decode().split()) == sorted([str(job_id), str(held), "someone", "someone"])
            assert end == (wire.EXIT, b"0")
            assert await answer_to(port, "squeue", job_id, 1, secret(1)) == refused
            of_held = command_secret(attempt_secret(daemon.secret_of(daemon.machine.jobs[held]), held, 0))
            assert await answer_to(port, "squeue", held, 0, of_held) == refused, "it holds no node"
            launcher.end(job_id)
            await until(lambda: not daemon.machine.holding())
            assert await answer_to(port, "squeue", job_id, 0, secret(0)) == refused

    run(story)


def test_what_is_incomplete_counts_for_the_user_not_for_each_pod(tmp_path: Path) -> None:
    async def story() -> None:
        async with reached(tmp_path) as (daemon, launcher, port):
            job_id = await accepted(daemon, submission(daemon, user_id=4711))
            await until(lambda: launcher.launched)
            secret = command_secret(attempt_secret(daemon.secret_of(daemon.machine.jobs[job_id]), job_id, 0))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(wire.encode(wire.HELLO, b"1 squeue"))
            _, challenge = await messages.read_frame(reader)
            proof = messages.proof(secret, challenge.decode(), f"{job_id} 0")
            writer.write(wire.encode(wire.PROOF, f"{job_id} 0 mine {proof}".encode()))
            await messages.read_frame(reader)
            writer.write(wire.encode(wire.ENVIRONMENT, bytes(100_000)))
            counted = daemon.doorkeeper.unfinished_bytes
            await until(lambda: counted[4711] > 100_000)
            assert list(+counted) == [4711]
            writer.close()
            await until(lambda: not counted)
            assert not daemon.doorkeeper.unfinished

    run(story)


def test_users_of_pods_are_served_whoever_the_controller_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with reached(tmp_path) as (daemon, _, _):
            monkeypatch.setattr(os, "geteuid", lambda: 12345)
            answers = await daemon.apply(submission(daemon, user_id=4711), [files()])
            assert isinstance(answers[0], Accepted)
            monkeypatch.undo()

    run(story)


def test_what_a_job_knows_of_its_user_is_kept_for_jobs_that_it_submits() -> None:
    identities = Identities(("chief",))
    who = Credentials(987654, 876543, "from-elsewhere", "elsewhere", (876543, 765432))
    assert groups_of("from-elsewhere", 876543) == (876543,)
    identity._groups.clear()
    caller = identities.of_job(who)
    assert (caller.user_id, caller.user_name, caller.operator) == (987654, "from-elsewhere", False)
    assert groups_of("from-elsewhere", 876543) == (876543, 765432)
    assert group_name(876543) == "elsewhere"


@pytest.mark.parametrize(
    ("user_id", "name", "operator"), [(0, "root", True), (5, "chief", True), (os.geteuid() or 5, "x", False)]
)
def test_who_is_an_operator_in_a_job(user_id: int, name: str, operator: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller's own uid, in a container of its own, is anybody's."""
    monkeypatch.setattr(os, "geteuid", lambda: 5)
    who = Credentials(user_id, user_id, name, "g", (user_id,))
    assert Identities(("chief",)).of_job(who).operator is operator
