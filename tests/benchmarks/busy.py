"""How the controller answers while it makes one full plan after another of a long queue, and while it makes none.

``python -m tests.benchmarks.busy --json``: 1,024 nodes of 32 cores filled by 64 running jobs, 10,000 mixed jobs that wait
(as in ``plan``), and a partition with free nodes. The controller is the real one, with its store, socket and planner; only
its launcher is pretended. In turn it makes full plans without a pause for some seconds, and none. Timed from outside: whole
processes of ``squeue -j``, ``scontrol show job`` and, while it plans, ``sbatch``; with ``SLURMK_REFERENCE``, ``squeue -j`` of
real Slurm in turn with them, whatever its queue. Timed inside: from the submission of a job with a free node to its launch,
how late the event loop comes round, and what holds it up.

The machine may be busy with other things. So what is told of each command is ``wall``, and ``own``: without the time that its
process, or the controller's event loop, whichever is more, stood ready to run while others ran (proc(5), schedstat). Seconds,
unless the name says otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from accounting.store import Store
from bridge.launcher import JobFiles, Report
from slurmk import wire
from slurmk.client.installation import install
from slurmk.client.slurmk import answers
from slurmk.core.effects import Effect, Launch
from slurmk.core.events import Event, JobStarted, KillFlag, NodesReleased, Submit
from slurmk.daemon import planning
from slurmk.daemon.configured import find_site
from slurmk.daemon.controller import SOCKET, Daemon
from slurmk.daemon.engine import Answers
from slurmk.model.job import Job
from slurmk.model.node import Node
from slurmk.model.site import Site
from slurmk.model.states import NodeState
from slurmk.planner.snapshot import Plan, Snapshot
from tests.reference.sides import reference_side

Given = TypeVar("Given")

BLOCK = 5.0
"""Seconds of planning, and then of none."""

ENVIRONMENT = b"".join(b"VARIABLE_%d=%s\0" % (number, b"value" * 8) for number in range(40))
"""As much as a login shell has."""

CONFIGURATION = """
ClusterName=busy
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MaxJobCount=1000000
MaxArraySize=200001
DefMemPerCPU=2000
NodeName=n[1-{nodes}] CPUs=32 Sockets=2 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=128000
NodeName=free[1-64] CPUs=32 Sockets=2 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=128000
PartitionName=batch Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP
PartitionName=free Nodes=free[1-64] MaxTime=INFINITE State=UP
"""


# ---------------------------------------------------------------------------------------------- the controller


class Pretending:
    """A launcher whose jobs run until they are cancelled, without a process."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._report: Report

    async def start(self, report: Report) -> Sequence[Node]:
        self._report = report
        return self.reconfigure(self._site)

    def reconfigure(self, site: Site) -> Sequence[Node]:
        return [replace(node, state=NodeState.IDLE) for node in site.nodes]

    async def recover(self, jobs: Iterable[Job]) -> frozenset[tuple[int, int]]:
        return frozenset()

    async def launch(self, job: Job, files: JobFiles) -> None:
        self._report(JobStarted(time.time(), job.job_id, job.restarts))

    async def signal(
        self, job_id: int, restart: int, signal: int, step_id: int | None = None, flags: KillFlag = KillFlag.NONE
    ) -> None:
        pass

    async def terminate(self, job_id: int, restart: int, kill_wait: int, nodes: Sequence[str], cause: str = "") -> None:
        self._report(NodesReleased(time.time(), job_id, restart, tuple(nodes)))

    async def shrink(self, job_id: int, restart: int, nodes: Sequence[str], lost: Sequence[str]) -> None:
        pass

    async def update_limit(self, job_id: int, restart: int, end_time: int | None) -> None:
        pass

    async def ask(
        self, job_id: int, restart: int, nodes: Sequence[str], question: Mapping[str, Any]
    ) -> Mapping[str, Mapping[str, Any]]:
        return {}

    async def cordon(self, node: str, cordoned: bool, reason: str) -> None:
        pass

    async def stop(self, *, end_jobs: bool) -> None:
        pass

    async def attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: str) -> None:
        writer.close()

    def access(self, job: Job, secret: bytes) -> Mapping[str, str]:
        return {}


class Timed(Daemon):
    """The controller, with notes of when what happened. ``measuring`` is a file that is there while notes are taken,
    ``filling`` one while no plans are made."""

    def __init__(self, directory: Path, site: Site, store: Store, launcher: Pretending) -> None:
        super().__init__(directory, site, store, launcher)
        self.notes: dict[str, list[float]] = {}
        self.submitted: dict[int, float] = {}
        self.measuring = directory / "measuring"
        self.filling = directory / "filling"

    def note(self, name: str, seconds: float) -> None:
        if self.measuring.exists():
            self.notes.setdefault(name, []).append(seconds)

    def timed(self, name: str, work: Callable[[], Given]) -> Given:
        began = time.perf_counter()
        try:
            return work()
        finally:
            self.note(name, time.perf_counter() - began)

    async def apply(self, event: Event, files: Sequence[JobFiles] = ()) -> Answers:
        began = time.perf_counter()
        if isinstance(event, Submit):
            first = self.machine.next_job_id
            self.submitted[first] = began
        return await super().apply(event, files)

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Launch) and effect.job.job_id in self.submitted:
            self.note("reaction", time.perf_counter() - self.submitted[effect.job.job_id])
        super()._perform(effect)

    def _snapshot(self) -> Snapshot | None:
        if self.filling.exists():
            return None
        return self.timed("snapshot", super()._snapshot)

    def _take_plan(self, made: Plan) -> None:
        self.timed("taking_a_plan", lambda: super(Timed, self)._take_plan(made))

    async def watch(self) -> None:
        """How late the event loop comes round, and a plan after every plan."""
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            if not hasattr(self, "planning"):
                continue
            self.planning.timed = self.planned
            self.note("loop_late", time.perf_counter() - began - 0.001)
            if self.measuring.exists():
                self.planning._full_wanted.set()

    def planned(self, seconds: float, length: int, full: bool) -> None:
        self.notes.setdefault("full_plan" if full else "reaction_plan", []).append(seconds)


def serve(directory: Path, rest: float) -> None:
    """The controller's process; writes its notes when it is told to stop."""
    planning.REST = rest
    site = find_site(directory / "etc", None)
    store = Store(f"sqlite:///{directory}/busy.sqlite", site)
    store.open()
    daemon = Timed(directory, site, store, Pretending(site))

    async def run() -> None:
        serving = asyncio.get_running_loop().create_task(daemon.run())
        watching = asyncio.get_running_loop().create_task(daemon.watch())
        await serving
        watching.cancel()

    asyncio.run(run())
    store.close()
    (directory / "notes.json").write_text(json.dumps(daemon.notes))


# ---------------------------------------------------------------------------------------------- its clients


async def ask(path: Path, command: str, arguments: list[str]) -> tuple[str, int]:
    """What a command's shim would say and hear; output and exit code."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    frames = (
        (wire.HELLO, b"1 " + command.encode()),
        (wire.ARGUMENTS, wire.pack_strings([os.fsencode(argument) for argument in arguments])),
        (wire.DIRECTORY, b"/tmp"),
        (wire.ENVIRONMENT, ENVIRONMENT),
        (wire.FACTS, b"umask=27\0pid=1\0sid=2\0host=here\0columns=80\0tty=\0"),
        (wire.GO, b""),
    )
    writer.write(b"".join(wire.encode(kind, payload) for kind, payload in frames))
    output = b""
    while True:
        kind, length = wire.header(await reader.readexactly(5))
        payload = await reader.readexactly(length)
        if kind in (wire.OUTPUT, wire.ERROR):
            output += payload
        elif kind == wire.EXIT:
            writer.close()
            return output.decode(), int(payload)


def mixed_arguments(jobs: int, seed: int) -> list[list[str]]:
    """The queue of ``plan.mixed`` as arguments of sbatch."""
    chance = random.Random(seed)
    queue = []
    for _ in range(jobs):
        if chance.random() < 0.7:
            asked = ["-N", str(chance.randint(1, 256)), "--exclusive"]
        else:
            asked = ["-n", str(chance.randint(1, 64))]
        queue.append([*asked, "-t", str(chance.randint(10, 1440)), "-o", "/dev/null", "--wrap", "true"])
    return queue


async def submit_all(path: Path, queue: list[list[str]], clients: int = 8) -> None:
    """Submit a queue from so many clients at once."""
    rest = iter(queue)

    async def client() -> None:
        for arguments in rest:
            output, code = await ask(path, "sbatch", arguments)
            if code:
                raise SystemExit(f"sbatch {' '.join(arguments)}: {output}")

    await asyncio.gather(*(client() for _ in range(clients)))


async def fill(path: Path, jobs: int, nodes: int) -> None:
    """What runs, then what waits, for which nothing is planned before all of it is there."""
    each = max(1, nodes // 64)
    chance = random.Random(1)
    runs = [
        ["-N", str(each), "--exclusive", "-t", str(chance.randint(60, 1440)), "--wrap", "true"] for _ in range(nodes // each)
    ]
    await submit_all(path, runs)
    for _ in range(600):
        if len((await ask(path, "squeue", ["-h", "-t", "R"]))[0].splitlines()) == len(runs):
            break
        await asyncio.sleep(0.1)
    filling = path.parent / "filling"
    filling.touch()
    await submit_all(path, mixed_arguments(jobs, 1))
    filling.unlink()


def distribution(seconds: Sequence[float]) -> dict[str, float]:
    """The middle, the 99th of a hundred and the longest."""
    ordered = sorted(seconds)
    if not ordered:
        return {}
    return {
        "p50": round(ordered[len(ordered) // 2], 5),
        "p99": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 5),
        "max": round(ordered[-1], 5),
        "count": len(ordered),
    }


class Taken(NamedTuple):
    """Seconds that a command took, and those of them in which it, or what it waited for, stood ready while others ran."""

    wall: float
    waited: float


def run(command: Sequence[str], environment: Mapping[str, str], controller: int | None) -> tuple[Taken, str]:
    """The time of a whole process, which the process ``controller`` serves, and its output."""
    before = _waited(f"{controller}/task/{controller}")
    began = time.perf_counter()
    with subprocess.Popen(command, env=environment, cwd="/tmp", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        output = process.stdout.read().decode()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - began
        waited = _waited(str(process.pid))
    waited = max(waited, _waited(f"{controller}/task/{controller}") - before)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: {output}")
    return Taken(wall, waited), output


def _waited(whose: str) -> float:
    """Seconds that a process or thread was ready to run and did not."""
    try:
        return int(Path(f"/proc/{whose}/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def _memory(process: int, key: str) -> int:
    found = re.search(rf"{key}:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) // 1024 if found else 0


class Cluster:
    """A controller in a process of its own, and its clients."""

    def __init__(self, nodes: int, rest: float = 0.0) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="busy-"))
        (self.directory / "etc").mkdir()
        (self.directory / "etc" / "slurm.conf").write_text(CONFIGURATION.format(nodes=nodes))
        self.path = self.directory / SOCKET
        binaries = install(self.directory)
        self.environment = dict(
            os.environ, PATH=f"{binaries}:{os.environ.get('PATH', os.defpath)}", SLURMK_SOCKET=str(self.path)
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.busy", "--serve", str(self.directory), "--rest", str(rest)],
            stdout=subprocess.DEVNULL,
        )
        while not answers(self.directory):
            if self.process.poll() is not None:
                raise SystemExit("the controller did not start")
            time.sleep(0.05)

    def run(self, *command: str) -> tuple[Taken, str]:
        """The time of a whole process, and its output."""
        program = shutil.which(command[0], path=self.environment["PATH"]) or command[0]
        return run([program, *command[1:]], self.environment, self.process.pid)

    def children(self) -> list[int]:
        """Processes of the controller's: its planner, once the queue is long."""
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(word) for word in text.split()]

    def memory(self, key: str = "VmRSS") -> dict[str, int]:
        """MiB of the controller and of its planner now; of their largest moments with ``VmHWM``."""
        planner = sum(_memory(child, key) for child in self.children())
        return {"controller": _memory(self.process.pid, key), "planner": planner}

    def seconds_used(self) -> float:
        """CPU seconds of the controller so far, without its planner."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> dict[str, list[float]]:
        """The controller's notes."""
        self.process.terminate()
        self.process.wait(60)
        notes: dict[str, list[float]] = json.loads((self.directory / "notes.json").read_text())
        shutil.rmtree(self.directory, ignore_errors=True)
        return notes


def measure(jobs: int, nodes: int, seconds: float) -> dict[str, object]:
    """Fill a cluster, then time its answers for so long, half of the time without plans."""
    cluster = Cluster(nodes)
    result: dict[str, object] = {"jobs": jobs, "nodes": nodes}
    began = time.perf_counter()
    asyncio.run(fill(cluster.path, jobs, nodes))
    result["filling_seconds"] = round(time.perf_counter() - began, 1)
    result["memory_before_plans_mib"] = cluster.memory()
    _, output = cluster.run("squeue", "-h", "-t", "PD", "-o", "%i")
    waiting = output.split()
    while "N/A" in cluster.run("squeue", "-h", "-t", "PD", "-o", "%S")[1]:
        time.sleep(0.5)
    times: dict[str, list[Taken]] = {}
    used, until, share = 0.0, time.perf_counter() + seconds, 0.0
    measuring, filling = cluster.directory / "measuring", cluster.directory / "filling"
    while time.perf_counter() < until:
        measuring.touch()
        used, began = cluster.seconds_used(), time.perf_counter()
        _clients(cluster, waiting, times, " while planning")
        share = (cluster.seconds_used() - used) / (time.perf_counter() - began)
        measuring.unlink()
        filling.touch()
        while _seconds_of(cluster.children()) != _seconds_of(cluster.children(), after=0.3):
            pass  # the plan that was begun is made to its end
        _clients(cluster, waiting, times, " without plans")
        filling.unlink()
    result["cpu_share_of_controller"] = round(share, 2)
    result["memory_mib"], result["peak_mib"] = cluster.memory(), cluster.memory("VmHWM")
    _, planned = cluster.run("squeue", "-h", "--start", "-o", "%S")
    result["planned"] = len([line for line in planned.splitlines() if line != "N/A"])
    notes = cluster.stop()
    for name, taken in sorted(times.items()):
        own = [max(each.wall - each.waited, 0.0) for each in taken]
        result[name] = {"wall": distribution([each.wall for each in taken]), "own": distribution(own)}
    return result | {name: distribution(values) for name, values in notes.items()}


def _seconds_of(processes: Sequence[int], after: float = 0.0) -> int:
    """Clock ticks that the processes have used, after so many seconds."""
    time.sleep(after)
    fields = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in processes]
    return sum(int(each[11]) + int(each[12]) for each in fields)


def _clients(cluster: Cluster, waiting: list[str], times: dict[str, list[Taken]], when: str) -> None:
    chance = random.Random(2)
    script = os.environ.get("SLURMK_REFERENCE")
    reference = reference_side(script) if script else None
    until = time.perf_counter() + BLOCK

    def note(name: str, taken: Taken) -> None:
        times.setdefault(name + when, []).append(taken)

    while time.perf_counter() < until:
        job = chance.choice(waiting)
        note("squeue", cluster.run("squeue", "-j", job)[0])
        note("scontrol show job", cluster.run("scontrol", "show", "job", job)[0])
        if when == " while planning":
            note("sbatch", cluster.run("sbatch", "-p", "free", "-n", "1", "-t", "1", "-o", "/dev/null", "--wrap", "true")[0])
        if reference is not None:
            program = shutil.which("squeue", path=reference.environment["PATH"]) or "squeue"
            note("squeue of the reference", run([program, "-u", "nobody"], reference.environment, None)[0])
        time.sleep(0.02)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.busy", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rest", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.rest)
        return
    result = measure(options.jobs, options.nodes, options.seconds)
    if options.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key:40} {value}")


if __name__ == "__main__":
    main()
