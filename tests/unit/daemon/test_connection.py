"""The socket: whatever one peer does, the others are served."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurmk import wire
from slurmk.commands.call import Call, Output, Unreadable
from slurmk.core.events import Caller
from slurmk.daemon import connection as connection_module
from slurmk.daemon.connection import Doorkeeper, Member, listen
from slurmk.daemon.identity import Peer


async def answer(call: Call, output: Output) -> int:
    match call.command:
        case "echo":
            output.write(" ".join(call.arguments) + "\n")
            return 3
        case "who":
            output.write(f"{call.caller.user_id} {call.group_id} {call.process_id} {call.umask:o} {call.columns} {call.host}")
            return 0
        case "nice":
            output.write(str(call.nice))
            return 0
        case "environment":
            output.write(f"{len(call.environment)} {call.environment['N1']}")
            return 0
        case "much":
            for _ in range(2000):
                output.write(b"x" * 10_000)
                await output.drain()
            return 0
        case "read":
            try:
                output.write(await output.read("file", 100))
            except Unreadable as error:
                output.error(f"{error.errno} {error.text}")
            return 0
        case "wait":
            try:
                await asyncio.Event().wait()
            finally:
                gone.append(call.arguments[0])
        case "become":
            output.execute(["/bin/true", "a"], {"A": "ü"})
            return 0
    raise ZeroDivisionError("a fault in a command")


WELCOME = wire.encode(wire.WELCOME)

gone: list[str] = []


async def look_up(user_id: int) -> Caller:
    return Caller(user_id, "name", False)


class Server:
    def __init__(self, path: Path, doorkeeper: Doorkeeper) -> None:
        self.path = path
        self.doorkeeper = doorkeeper

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(str(self.path))

    async def ask(self, data: bytes) -> bytes:
        """All that comes back. A peer that closes without having read everything resets the connection after its words."""
        reader, writer = await self.open()
        writer.write(data)
        answered = b""
        with contextlib.suppress(ConnectionError):
            while piece := await asyncio.wait_for(reader.read(65536), 20):
                answered += piece
        writer.close()
        return answered.removeprefix(WELCOME)

    async def serves(self) -> None:
        """Assert that an ordinary request is answered."""
        assert await self.ask(request("echo", ["hello"])) == reply(b"hello\n", 3)


attached: list[tuple[str, bytes]] = []


async def attach(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: str) -> None:
    attached.append((hello, await reader.readexactly(4)))
    writer.write(b"welcome")
    writer.close()


@asynccontextmanager
async def serving(path: Path, most: int = 1000) -> AsyncIterator[Server]:
    doorkeeper = Doorkeeper(answer, look_up, attach, most)
    listening = listen(path)
    server = await asyncio.get_running_loop().create_unix_server(doorkeeper.connection, sock=listening, backlog=100)
    yield Server(path, doorkeeper)
    server.close()
    await doorkeeper.close()


def with_server(test: Callable[[Server], Awaitable[None]], path: Path, most: int = 1000) -> None:
    async def run() -> None:
        async with serving(path, most) as server:
            await asyncio.wait_for(test(server), 30)

    asyncio.run(run())


FACTS = b"umask=27\0pid=1\0sid=2\0host=here\0columns=80\0tty=12\0"


def request(command: str, arguments: list[str], environment: bytes = b"A=1\0", facts: bytes = FACTS) -> bytes:
    return b"".join(
        (
            wire.encode(wire.HELLO, b"1 " + command.encode()),
            wire.encode(wire.ARGUMENTS, wire.pack_strings([os.fsencode(argument) for argument in arguments])),
            wire.encode(wire.DIRECTORY, b"/"),
            wire.encode(wire.ENVIRONMENT, environment),
            wire.encode(wire.FACTS, facts),
            wire.encode(wire.GO),
        )
    )


def reply(output: bytes, code: int) -> bytes:
    return wire.encode(wire.OUTPUT, output) + wire.encode(wire.EXIT, b"%d" % code)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


@pytest.mark.parametrize(("told", "expected"), [("5", b"5"), ("-3", b"-3"), ("99999", b"19"), ("-999", b"-20"), ("x", b"0")])
def test_niceness_is_taken_within_bounds(path: Path, told: str, expected: bytes) -> None:
    async def test(server: Server) -> None:
        await server.serves()
        asked = request("nice", [], facts=f"umask=27\0pid=1\0nice={told}\0tty=\0".encode())
        assert await server.ask(asked) == reply(expected, 0)

    with_server(test, path)


def test_call_and_answer(path: Path) -> None:
    async def test(server: Server) -> None:
        await server.serves()
        text = os.fsdecode(b"\xff\xfe")
        assert await server.ask(request("echo", [text, "b"])) == reply(b"\xff\xfe b\n", 3)
        who = await server.ask(request("who", []))
        assert who == reply(b"%d %d %d 27 80 here" % (os.geteuid(), os.getegid(), os.getpid()), 0)
        assert await server.ask(request("become", [])) == wire.encode(wire.EXECUTE, b"2\0/bin/true\0a\0A=\xc3\xbc\0")

    with_server(test, path)


def test_request_in_single_bytes(path: Path) -> None:
    async def test(server: Server) -> None:
        reader, writer = await server.open()
        for byte in request("echo", ["slow"]):
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert await reader.read(-1) == WELCOME + reply(b"slow\n", 3)
        writer.close()

    with_server(test, path)


def test_ten_thousand_variables(path: Path) -> None:
    environment = b"".join(b"N%d=%d\0" % (number, number) for number in range(10_000)) + b"no equals\0N1=second\0"

    async def test(server: Server) -> None:
        assert await server.ask(request("environment", [], environment)) == reply(b"10000 1", 0)

    with_server(test, path)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 100,
        b"\xff" * 1000,
        wire.encode(wire.GO),
        wire.encode(wire.HELLO, b"x echo"),
        wire.encode(wire.HELLO, b"0 echo"),
        wire.encode(wire.HELLO, b"1"),
        wire.encode(wire.HELLO, b"1 echo") + wire.encode(wire.GO),
        wire.encode(wire.HELLO, b"1 echo") + wire.encode(wire.CONTENT, b"unasked"),
        request("echo", []).replace(wire.encode(wire.DIRECTORY, b"/"), b""),
        request("echo", ["a"]).replace(b"a\0", b"ab"),
    ],
)
def test_garbage_is_refused_and_others_are_served(path: Path, garbage: bytes) -> None:
    async def test(server: Server) -> None:
        answered = await server.ask(garbage)
        assert answered.endswith(wire.encode(wire.EXIT, b"1"))
        assert wire.header(answered[:5])[0] == wire.ERROR
        await server.serves()

    with_server(test, path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.one_of(st.binary(max_size=200), st.binary(max_size=50).map(lambda tail: request("echo", ["x"])[:40] + tail)))
def test_any_bytes(path: Path, data: bytes) -> None:
    async def test(server: Server) -> None:
        _, writer = await server.open()
        with contextlib.suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
        writer.close()
        await server.serves()
        assert not server.doorkeeper.unfinished_bytes or server.doorkeeper.open

    with_server(test, path)


def test_half_a_request_has_its_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "REQUEST_SECONDS", 0.1)

    async def test(server: Server) -> None:
        half = request("echo", ["x"])[:30]
        answered = await server.ask(half)
        assert b"did not come in time" in answered
        assert not server.doorkeeper.unfinished
        assert server.doorkeeper.unfinished_bytes == {}

    with_server(test, path)


def test_too_large_a_request(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "REQUEST_BYTES", 1_000_000)

    async def test(server: Server) -> None:
        reader, writer = await server.open()
        with contextlib.suppress(ConnectionError):
            writer.write(wire.encode(wire.HELLO, b"1 echo") + wire.encode(wire.ENVIRONMENT, bytes(2_000_000)))
            await writer.drain()
        with contextlib.suppress(ConnectionError):
            assert b"too large" in await reader.read(-1)
        writer.close()
        await server.serves()
        assert server.doorkeeper.unfinished_bytes == {}

    with_server(test, path)


@pytest.mark.parametrize("arguments", [["a" * 131072], ["a"] * 1_000_000], ids=["long", "many"])
def test_arguments_that_no_program_can_be_given(path: Path, arguments: list[str]) -> None:
    async def test(server: Server) -> None:
        assert b"arguments that no program can be given" in await server.ask(request("echo", arguments))
        most = ["a" * 131071] * 4
        assert await server.ask(request("echo", most)) == reply(f"{' '.join(most)}\n".encode(), 3)
        await server.serves()

    with_server(test, path)


def test_too_many_unfinished_requests_of_one_user(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "UNFINISHED_PER_USER", 5)

    async def test(server: Server) -> None:
        half = [await server.open() for _ in range(5)]
        await asyncio.sleep(0.05)
        assert b"incomplete" in await server.ask(b"")
        half[0][1].close()
        await asyncio.sleep(0.05)
        await server.serves()
        for _, writer in half[1:]:
            writer.close()

    with_server(test, path)


def test_too_many_connections(path: Path) -> None:
    async def test(server: Server) -> None:
        held = [await server.open() for _ in range(5)]
        await asyncio.sleep(0.05)
        assert b"too many connections" in await server.ask(request("echo", ["x"]))
        for _, writer in held:
            writer.close()
        await asyncio.sleep(0.05)
        await server.serves()

    with_server(test, path, most=5)


def test_peer_that_does_not_read_holds_up_nobody(path: Path) -> None:
    async def test(server: Server) -> None:
        reader, writer = await server.open()
        writer.write(request("much", []))
        await asyncio.sleep(0.2)
        transports = [each._transport.get_write_buffer_size() for each in server.doorkeeper.open]
        assert transports
        assert max(transports) < 1_000_000, "output is held back, not heaped up"
        await server.serves()
        whole = await asyncio.wait_for(reader.read(-1), 20)
        assert whole.count(b"x") == 20_000_000
        writer.close()

    with_server(test, path)


def test_peer_that_goes_away_takes_its_command_with_it(path: Path) -> None:
    async def test(server: Server) -> None:
        _, writer = await server.open()
        writer.write(request("wait", ["first"]))
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        for _ in range(100):
            if "first" in gone:
                break
            await asyncio.sleep(0.01)
        assert "first" in gone
        assert not server.doorkeeper.tasks

    with_server(test, path)


def test_questions_to_the_shim(path: Path) -> None:
    async def test(server: Server) -> None:
        for given_answer, shown in (
            (wire.encode(wire.CONTENT, b"text"), wire.encode(wire.OUTPUT, b"text")),
            (wire.encode(wire.UNREADABLE, b"13 Permission denied"), wire.encode(wire.ERROR, b"13 Permission denied")),
        ):
            reader, writer = await server.open()
            writer.write(request("read", []))
            question = WELCOME + wire.encode(wire.READ, b"100 file")
            assert await reader.readexactly(len(question)) == question
            writer.write(given_answer)
            assert await reader.read(-1) == shown + wire.encode(wire.EXIT, b"0")
            writer.close()

    with_server(test, path)


def test_fault_in_a_command_is_one_line(path: Path) -> None:
    async def test(server: Server) -> None:
        answered = await server.ask(request("broken", []))
        text = b"broken: error: Slurm internal error, contact system administrator\n"
        assert answered == wire.encode(wire.ERROR, text) + wire.encode(wire.EXIT, b"1")
        await server.serves()

    with_server(test, path)


def test_stepd_is_handed_over_with_what_it_sent_already(path: Path) -> None:
    async def test(server: Server) -> None:
        assert await server.ask(wire.encode(wire.HELLO, b"1 stepd") + b"more") == b"welcome"
        assert attached[-1] == ("1 stepd", b"more")
        assert not server.doorkeeper.open
        assert not server.doorkeeper.unfinished

    with_server(test, path)


def test_socket_is_for_everyone_and_may_have_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    listening = listen(folder / "s")
    assert (folder / "s").stat().st_mode & 0o777 == 0o666
    listening.close()
    again = listen(folder / "s")
    assert again.family is socket.AF_UNIX
    again.close()


def test_stepds_of_other_users_are_not_heard(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurmk.daemon.connection.peer_of", lambda connection: Peer(1, os.geteuid() + 77, 1))

    async def test(server: Server) -> None:
        attached.clear()
        assert b"controller's user" in await server.ask(wire.encode(wire.HELLO, b"1 stepd") + b"more")
        assert not attached
        await server.serves()

    with_server(test, path)


def test_strangers_of_the_network_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "UNPROVEN", 8)
    secret = b"s" * 32

    async def test() -> None:
        member = Member(secret, Caller(1, "u", False), 1)
        doorkeeper = Doorkeeper(answer, look_up, attach, 1000, lambda job_id, restart: member)
        server = await asyncio.get_running_loop().create_server(doorkeeper.remote, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        strangers = []
        for number in range(40):
            source = (f"127.0.2.{number + 1}", 0)
            strangers.append(await asyncio.open_connection("127.0.0.1", port, local_addr=source))
            await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(wire.encode(wire.HELLO, b"1 echo"))
        challenge = await read_frame(reader)
        proof = hmac.new(secret, challenge + b" 7 0", "sha256").hexdigest().encode()
        writer.write(wire.encode(wire.PROOF, b"7 0 " + b"n" * 32 + b" " + proof))
        own = hmac.new(secret, b"n" * 32 + b" controller", "sha256").hexdigest().encode()
        assert await asyncio.wait_for(read_frame(reader), 5) == own
        assert len(doorkeeper.unproven) == 7
        assert len(doorkeeper.open) == 8
        for _, one in strangers:
            one.close()
        await asyncio.sleep(0.1)
        assert not doorkeeper.unproven
        server.close()
        await doorkeeper.close()

    asyncio.run(asyncio.wait_for(test(), 30))


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    _, length = wire.header(await reader.readexactly(5))
    return await reader.readexactly(length)


def test_incomplete_requests_of_one_user_do_not_refuse_another() -> None:
    doorkeeper = Doorkeeper(answer, look_up, attach, 1000)
    doorkeeper.unfinished_bytes[1001] = connection_module.UNFINISHED_BYTES + 1
    assert doorkeeper.refusal(1001) == "too many requests of this user are incomplete"
    assert doorkeeper.refusal(1002) == ""
