"""The shim as a process: what it loads, what it sends, what it does with answers and without."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurmk import wire
from slurmk.client import installation
from slurmk.client.unreachable import CONNECT

LOADED = {"_socket", "slurmk", "slurmk.wire", "slurmk.client", "slurmk.client.shim"}
"""What a shim imports beyond what the bare interpreter has loaded."""


@pytest.fixture(scope="session", params=["compiled", "python"])
def shims(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both forms of the shim, which have to do the same."""
    directory = tmp_path_factory.mktemp("shims")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURMK_SHIM", request.param)
        installation.install(directory)
    if request.param == "compiled" and not (directory / "bin" / "sbatch").is_symlink():
        pytest.skip("there is no C compiler here")
    return directory


class Peer:
    """A controller of one connection that does what the test says."""

    def __init__(self, path: Path, behave: Callable[[socket.socket, dict[int, bytes]], None]) -> None:
        self.frames: dict[int, bytes] = {}
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._behave = behave
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        with connection:
            while wire.GO not in self.frames:
                kind, payload = receive(connection)
                self.frames[kind] = payload
            with contextlib.suppress(OSError):
                self._behave(connection, self.frames)

    def close(self) -> None:
        self._listening.close()


def receive(connection: socket.socket) -> tuple[int, bytes]:
    kind, length = wire.header(exactly(connection, 5))
    return kind, exactly(connection, length)


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Callable[..., Peer]]:
    made = []

    def make(*answers: bytes, behave: Callable[[socket.socket, dict[int, bytes]], None] | None = None) -> Peer:
        one = Peer(tmp_path / "s", behave or (lambda connection, frames: connection.sendall(b"".join(answers))))
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


def run(
    shims: Path,
    tmp_path: Path,
    command: str,
    *arguments: str | bytes,
    environment: dict[bytes, bytes] | None = None,
    **options: object,
) -> subprocess.CompletedProcess[bytes]:
    own = {b"SLURMK_SOCKET": os.fsencode(tmp_path / "s"), **(environment or {})}
    options = {"capture_output": True, "stdin": subprocess.DEVNULL, "timeout": 30, **options}
    return subprocess.run([shims / "bin" / command, *arguments], env=own, **options)  # type: ignore[call-overload]


def ended(code: int) -> bytes:
    return wire.encode(wire.EXIT, b"%d" % code)


def test_loads_next_to_nothing(shims: Path) -> None:
    interpreter = (shims / "lib" / "python" / "sbatch").read_text().splitlines()[0][2:].split()[0]
    program = (
        "import sys; before = set(sys.modules); sys.path.insert(0, sys.argv[1])\n"
        "from slurmk.client import shim\n"
        "try: shim.connect(b'/nonexistent')\n"
        "except OSError: pass\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    shown = subprocess.run([interpreter, "-ISE", "-c", program, shims / "lib"], capture_output=True, text=True, check=True)
    assert set(shown.stdout.split()) <= LOADED


def test_sends_what_was_typed_byte_for_byte(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    answering = peer(wire.encode(wire.OUTPUT, b"out\xff\n"), wire.encode(wire.ERROR, b"err\n"), ended(7))
    folder = tmp_path / os.fsdecode(b"f\xff older")
    folder.mkdir()
    done = run(
        shims, tmp_path, "sbatch", "--wrap", b"a\xff b", "", environment={b"ODD\xfe": b"\xff=\n", b"LANG": b"C"}, cwd=folder
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\xff\n", b"err\n")
    frames = answering.frames
    assert frames[wire.HELLO] == b"1 sbatch"
    assert wire.unpack_strings(frames[wire.ARGUMENTS]) == [b"--wrap", b"a\xff b", b""]
    assert frames[wire.DIRECTORY] == os.fsencode(folder)
    environment = wire.unpack_strings(frames[wire.ENVIRONMENT])
    assert b"ODD\xfe=\xff=\n" in environment
    assert not [entry for entry in environment if entry.startswith(b"LC_CTYPE")], "Python's own addition"
    facts = dict(entry.split(b"=", 1) for entry in wire.unpack_strings(frames[wire.FACTS]))
    assert 0 <= int(facts[b"umask"], 8) <= 0o777
    assert facts[b"host"] == os.fsencode(os.uname().nodename)
    assert facts[b"tty"] == b""
    assert b"columns" not in facts


def test_tells_its_niceness(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    answering = peer(ended(0))
    own = os.nice(0)
    environment = {b"SLURMK_SOCKET": os.fsencode(tmp_path / "s")}
    subprocess.run(["nice", "-n", "4", shims / "bin" / "sbatch"], env=environment, stdin=subprocess.DEVNULL, timeout=30)
    assert b"nice=%d" % min(own + 4, 19) in wire.unpack_strings(answering.frames[wire.FACTS])


def test_huge_environment_and_arguments(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    answering = peer(ended(0))
    environment = {b"NAME_%d" % number: b"x" * 100 for number in range(10_000)}
    assert run(shims, tmp_path, "sbatch", "y" * 100_000, environment=environment).returncode == 0
    assert len(wire.unpack_strings(answering.frames[wire.ENVIRONMENT])) == 10_001
    assert wire.unpack_strings(answering.frames[wire.ARGUMENTS]) == [b"y" * 100_000]


def test_reads_files_and_input_for_the_controller(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    (tmp_path / "script").write_bytes(b"#!/bin/sh\n\xff" + b"z" * 100_000)
    asked: list[tuple[int, bytes]] = []

    def behave(connection: socket.socket, frames: dict[int, bytes]) -> None:
        for kind, question in (
            (wire.READ, b"1000000 script"),
            (wire.READ, b"7 script"),
            (wire.READ, b"100 not there"),
            (wire.READ, b"100 ."),
            (wire.READ_INPUT, b"100"),
        ):
            connection.sendall(wire.encode(kind, question))
            asked.append(receive(connection))
        connection.sendall(ended(0))

    peer(behave=behave)
    assert run(shims, tmp_path, "sbatch", cwd=tmp_path, stdin=None, input=b"from stdin").returncode == 0
    assert asked[0] == (wire.CONTENT, b"#!/bin/sh\n\xff" + b"z" * 100_000)
    assert asked[1] == (wire.CONTENT, b"#!/bin/")
    assert asked[2] == (wire.UNREADABLE, b"2 No such file or directory")
    assert asked[3] == (wire.UNREADABLE, b"21 Is a directory")
    assert asked[4] == (wire.CONTENT, b"from stdin")


def test_becomes_another_program(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    program = [b"3", b"/bin/sh", b"-c", b'echo "$A"; exit 5', b"A=x=\xff", b"PATH=/bin"]
    peer(wire.encode(wire.EXECUTE, wire.pack_strings(program)))
    done = run(shims, tmp_path, "srun")
    assert (done.returncode, done.stdout) == (5, b"x=\xff\n")


@pytest.mark.parametrize("command", ["salloc", "srun"])
def test_a_signal_that_crosses_the_answer_waits_for_the_program(
    shims: Path, tmp_path: Path, peer: Callable[..., Peer], command: str
) -> None:
    """The controller has answered when it hears of the signal: what the command becomes gets it."""
    pending = b"import signal; print(*map(int, signal.sigpending()))"
    answer = wire.pack_strings([b"4", os.fsencode(sys.executable), b"-I", b"-c", pending, b"A=b"])

    def behave(connection: socket.socket, frames: dict[int, bytes]) -> None:
        facts = dict(entry.split(b"=", 1) for entry in wire.unpack_strings(frames[wire.FACTS]))
        connection.sendall(wire.encode(wire.WELCOME))
        time.sleep(0.3)  # it sets its handlers after the request is complete
        os.kill(int(facts[b"pid"]), signal.SIGTERM)
        assert receive(connection) == (wire.SIGNALLED, b"15")
        connection.sendall(wire.encode(wire.EXECUTE, answer))

    peer(behave=behave)
    done = run(shims, tmp_path, command)
    assert (done.returncode, done.stdout) == (0, b"15\n")


def test_reads_a_line_byte_by_byte(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    got = b""

    def behave(connection: socket.socket, frames: dict[int, bytes]) -> None:
        nonlocal got
        for _ in range(5):
            connection.sendall(wire.encode(wire.READ_INPUT, b"1"))
            kind, content = receive(connection)
            assert kind == wire.CONTENT
            got += content + b"."
        connection.sendall(ended(0))

    peer(behave=behave)
    assert run(shims, tmp_path, "scancel", stdin=None, input=b"y\nno").returncode == 0
    assert got == b"y.\n.n.o.."


def test_says_when_it_cannot_become_it(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    peer(wire.encode(wire.EXECUTE, wire.pack_strings([b"1", b"/nonexistent"])))
    done = run(shims, tmp_path, "srun")
    assert (done.returncode, done.stderr) == (1, b"srun: error: /nonexistent: No such file or directory\n")


@pytest.mark.parametrize(
    "answer", [b"", b"\x14\0\0\0\x09abc", wire.encode(wire.OUTPUT, b"x"), b"\xff\0\0\0\0", b"\x14\xff\xff\xff\xff"]
)
def test_no_exit_code_is_a_failure(shims: Path, tmp_path: Path, peer: Callable[..., Peer], answer: bytes) -> None:
    peer(wire.encode(wire.WELCOME), answer)
    done = run(shims, tmp_path, "sbatch", "--wrap", "true")
    assert done.returncode == 1
    assert done.stderr == b"sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received\n"


def test_broken_pipe_ends_it_as_it_does_any_program(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    peer(*[wire.encode(wire.OUTPUT, b"line\n" * 100_000)] * 10, ended(0))
    command = f"{shims}/bin/squeue | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        env={"SLURMK_SOCKET": str(tmp_path / "s"), "PATH": os.environ["PATH"]},
        capture_output=True,
        timeout=30,
    )
    assert done.stdout == b"line\n141\n"
    assert done.stderr == b""


def test_closed_and_full_standard_output(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    peer(wire.encode(wire.OUTPUT, b"lost\n"), wire.encode(wire.ERROR, b"seen\n"), ended(0))
    environment = {"SLURMK_SOCKET": str(tmp_path / "s")}
    closed = subprocess.run(["/bin/sh", "-c", f"{shims}/bin/squeue >&-"], env=environment, capture_output=True, timeout=30)
    assert (closed.returncode, closed.stderr) == (0, b"seen\n")
    (tmp_path / "s").unlink()
    peer(wire.encode(wire.OUTPUT, b"lost\n"), ended(0))
    with open("/dev/full", "wb") as full:
        done = subprocess.run([shims / "bin" / "squeue"], env=environment, stdout=full, stderr=subprocess.PIPE, timeout=30)
    assert (done.returncode, done.stderr) == (1, b"squeue: error: standard output: No space left on device\n")


def test_interrupt_kills_without_a_word(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    reached = threading.Event()

    def behave(connection: socket.socket, frames: dict[int, bytes]) -> None:
        reached.set()
        connection.recv(1)

    peer(behave=behave)
    process = subprocess.Popen(
        [shims / "bin" / "sbatch"],
        env={"SLURMK_SOCKET": str(tmp_path / "s")},
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test run in the background ignores it
    )
    assert reached.wait(10)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[1] == b""
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(
    ("command", "arguments", "code", "text"),
    [
        ("sbatch", ["--wrap", "true"], 1, f"sbatch: error: Batch job submission failed: {CONNECT}"),
        ("srun", ["true"], 1, f"srun: error: Unable to allocate resources: {CONNECT}"),
        ("squeue", [], 1, f"slurm_load_jobs error: {CONNECT}"),
        ("sinfo", [], 1, f"slurm_load_partitions: {CONNECT}"),
        (
            "scancel",
            ["1", "2"],
            8,
            "".join(f"scancel: error: Kill job error on job id {job}: {CONNECT}\n" for job in (1, 2)).rstrip(),
        ),
        ("scontrol", ["show", "node"], 1, f"slurm_load_node error: {CONNECT}"),
        ("sprio", [], 255, f"Couldn't get priority factors from controller: {CONNECT}"),
    ],
)
def test_no_controller_is_told_as_the_reference_tells_it(
    shims: Path, tmp_path: Path, command: str, arguments: list[str], code: int, text: str
) -> None:
    done = run(shims, tmp_path, command, *arguments)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (code, b"", text + "\n")


def test_no_controller_and_yet_a_version(shims: Path, tmp_path: Path) -> None:
    assert run(shims, tmp_path, "sinfo", "--version").stdout == b"slurm 26.05.5 (slurmk 0.1.0)\n"
    pinged = run(shims, tmp_path, "scontrol", "ping")
    assert pinged.returncode == 1
    assert pinged.stdout.startswith(b"Slurmctld(primary) at %b is DOWN\n" % os.fsencode(os.uname().nodename))


def test_waits_for_a_controller_that_comes_back(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "s"))  # what a killed controller leaves: a socket where nobody listens
    process = subprocess.Popen([shims / "bin" / "squeue"], env={"SLURMK_SOCKET": str(tmp_path / "s")}, stderr=subprocess.PIPE)
    time.sleep(0.3)
    assert process.poll() is None
    (tmp_path / "s").unlink()
    peer(ended(0))
    assert process.wait(10) == 0
    left.close()


def test_a_controller_that_dies_before_it_read_the_request_is_asked_again(
    shims: Path, tmp_path: Path, peer: Callable[..., Peer]
) -> None:
    dying = socket.socket(socket.AF_UNIX)
    dying.bind(str(tmp_path / "s"))
    dying.listen()
    process = subprocess.Popen([shims / "bin" / "sbatch"], env={"SLURMK_SOCKET": str(tmp_path / "s")})
    dying.accept()[0].close()
    dying.close()
    (tmp_path / "s").unlink()
    peer(wire.encode(wire.WELCOME), ended(5))
    assert process.wait(10) == 5


def listening(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    made.listen()
    return made


def request(connection: socket.socket) -> dict[int, bytes]:
    frames: dict[int, bytes] = {}
    while wire.GO not in frames:
        kind, payload = receive(connection)
        frames[kind] = payload
    return frames


@pytest.mark.parametrize("command", ["sbatch", "srun", "salloc"])
@pytest.mark.parametrize("orderly", [True, False])
def test_one_who_waits_calls_again_as_often_as_it_takes(shims: Path, tmp_path: Path, command: str, orderly: bool) -> None:
    server = listening(tmp_path / "s")
    process = subprocess.Popen(
        [shims / "bin" / command, "--odd", "word"],
        env={"SLURMK_SOCKET": str(tmp_path / "s"), "OWN": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    requests = []
    for _ in range(3):
        connection, _ = server.accept()
        requests.append(request(connection))
        if len(requests) == 3:
            connection.sendall(wire.encode(wire.WELCOME) + wire.encode(wire.OUTPUT, b"b\n") + ended(4))
            connection.close()
            break
        text = wire.encode(wire.OUTPUT, b"a\n") if len(requests) == 1 else b""
        connection.sendall(wire.encode(wire.WELCOME) + wire.encode(wire.AWAIT, b"12 13") + text)
        time.sleep(0.1)
        server.close()
        if orderly:
            (tmp_path / "s").unlink()
        connection.close()
        time.sleep(0.3)
        if not orderly:
            (tmp_path / "s").unlink()
        server = listening(tmp_path / "s")
    assert process.communicate(timeout=10) == (b"a\nb\n", b"")
    assert process.returncode == 4
    server.close()
    assert [frames.get(wire.AWAITED) for frames in requests] == [None, b"12 13", b"12 13"]
    same = (wire.ARGUMENTS, wire.DIRECTORY, wire.ENVIRONMENT)
    assert all(frames[kind] == requests[0][kind] for frames in requests for kind in same)
    assert b"resumes=1" in wire.unpack_strings(requests[0][wire.FACTS])


def left_waiting(shims: Path, tmp_path: Path, command: str, **environment: str) -> subprocess.Popen[bytes]:
    """One who waits for job 12 and whose controller died."""
    with listening(tmp_path / "s") as server:
        process = subprocess.Popen(
            [shims / "bin" / command], env={"SLURMK_SOCKET": str(tmp_path / "s"), **environment}, stderr=subprocess.PIPE
        )
        connection, _ = server.accept()
        request(connection)
        connection.sendall(wire.encode(wire.WELCOME) + wire.encode(wire.AWAIT, b"12"))
        time.sleep(0.1)
    connection.close()
    return process


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("sbatch", b"sbatch: error: The controller went away; job 12 goes on, and nobody waits for it\n"),
        ("salloc", b"salloc: error: Job submit/allocate failed: Zero Bytes were transmitted or received\n"),
    ],
)
def test_one_who_waits_says_what_is_true_when_it_gives_up(shims: Path, tmp_path: Path, command: str, text: bytes) -> None:
    process = left_waiting(shims, tmp_path, command, SLURMK_CONNECT_TIMEOUT="0.2")
    assert process.communicate(timeout=10)[1] == text
    assert process.returncode == 1


def test_one_who_need_not_wait_any_more_does_not_call_again(shims: Path, tmp_path: Path, peer: Callable[..., Peer]) -> None:
    peer(wire.encode(wire.WELCOME), wire.encode(wire.AWAIT, b"12"), wire.encode(wire.AWAIT))
    done = run(shims, tmp_path, "srun")
    text = b"srun: error: Unable to allocate resources: Zero Bytes were transmitted or received\n"
    assert (done.returncode, done.stderr) == (1, text)


def test_a_signal_while_the_controller_is_away_ends_one_who_waits(shims: Path, tmp_path: Path) -> None:
    process = left_waiting(shims, tmp_path, "salloc")
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode in (1, -signal.SIGTERM)


def test_gives_up_after_the_time_that_was_set(shims: Path, tmp_path: Path) -> None:
    environment = {b"SLURM_JOB_ID": b"5", b"SLURMK_CONNECT_TIMEOUT": b"0.3"}
    began = time.monotonic()
    done = run(shims, tmp_path, "squeue", environment=environment)
    assert done.returncode == 1
    assert 0.2 < time.monotonic() - began < 5


def test_socket_path_longer_than_the_kernel_takes(shims: Path, tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    short = tmp_path / "short"
    short.symlink_to(folder)
    answering = Peer(short / "s", lambda connection, frames: connection.sendall(ended(3)))
    done = run(shims, tmp_path, "squeue", environment={b"SLURMK_SOCKET": os.fsencode(folder / "s")})
    answering.close()
    assert done.returncode == 3


def test_shim_of_an_interpreter_with_an_odd_path(tmp_path: Path, peer: Callable[..., Peer]) -> None:
    folder = tmp_path / ("an 'odd' path" + "/long" * 20)
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(os.path.realpath(sys._base_executable))  # type: ignore[attr-defined]
    peer(ended(4))
    installation.install(tmp_path / "d")
    text = installation.script(str(folder / "python"), tmp_path / "d" / "lib", "squeue", tmp_path / "s")
    installation.write(tmp_path / "squeue", text, 0o755)
    assert text.startswith(b"#!/bin/sh\n")
    assert subprocess.run([tmp_path / "squeue", "-h"], env={}, timeout=30).returncode == 4
