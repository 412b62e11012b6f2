"""On a real API server of its own: what a large cluster and a long queue cost the controller, and how it answers meanwhile.

``python -m tests.benchmarks.kubernetes_size --json``, with SLURMK_LAB_SCRIPT (as for tests/cluster): simulated nodes of 32
CPUs, filled by pods of 16 CPUs, and as many one-pod jobs waiting as are asked for. Told are the controller's memory after each
of these, its seconds of CPU in a minute in which nothing happens but the nodes' heartbeats, its milliseconds of CPU for a job
that ends and another that starts in its place, how soon ``squeue`` answers meanwhile, and the load of the machine.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bridge.kubernetes.api import Api
from bridge.kubernetes.errors import ApiError
from bridge.kubernetes.resources import NAMESPACE, NODE, Manifest, Reference
from bridge.kubernetes.settings import ClientLimits, Settings
from tests.benchmarks.busy import submit_all
from tests.benchmarks.kubernetes import Cluster, Slurmk, cpu_seconds, programs, resident
from tests.benchmarks.measure import arguments, report
from tests.cluster.private_lab import started_lab

POOL = "size"
"""Value of the label lab/pool that the benchmark's nodes have."""

CPUS = 32
WIDTH = 16
"""CPUs of a node, and of a job."""

PATIENCE = 1800.0

SETTINGS = """
namespace: {namespace}
nodes: lab/pool={pool}
client: {{writesPerSecond: 2000, burst: 4000, concurrent: 64}}
pods: {{image: any, admissionTimeout: 1800, keepFinished: 0, annotations: {{lab/runtime: 24h}}}}
"""


CONFIGURATION = """
ClusterName={namespace}
SlurmctldHost=localhost
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MaxJobCount=100000
"""


def node(number: int) -> Manifest:
    """A simulated node, as the lab makes them."""
    name, rack = f"{POOL}-{number:04d}", f"{POOL}-r{number // 32}"
    labels = {"kubernetes.io/hostname": name, "lab/pool": POOL, "lab/kind": "simulated", "lab/rack": rack}
    size = {"cpu": str(CPUS), "memory": "128Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    metadata = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"capacity": size, "allocatable": size}}


async def make_nodes(api: Api, count: int) -> None:
    """Have so many, all ready."""
    there = {each["metadata"]["name"] for each in await api.list(NODE, selector=f"lab/pool={POOL}")}
    for each in map(node, range(count)):
        if each["metadata"]["name"] not in there:
            await api.create(each)
    await until(lambda: ready(api, count))


async def ready(api: Api, count: int) -> bool:
    """Whether so many nodes are."""
    found = 0
    for each in await api.list(NODE, selector=f"lab/pool={POOL}"):
        conditions = each["status"].get("conditions") or ()
        found += any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return found >= count


async def until(holds: Callable[[], Awaitable[bool]], pause: float = 1.0) -> None:
    """Wait until it does."""
    async with asyncio.timeout(PATIENCE):
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(pause)


class Answers:
    """How long ``squeue`` of one job takes, again and again, as a process of its own."""

    def __init__(self, slurmk: Slurmk, job: str) -> None:
        self._command = (str(slurmk.directory / "d" / "bin" / "squeue"), "-h", "-j", job)
        self.seconds: list[float] = []

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Ask while the body runs."""
        asking = asyncio.get_running_loop().create_task(self._ask())
        try:
            yield
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask(self) -> None:
        while True:
            began = time.perf_counter()
            process = await asyncio.create_subprocess_exec(*self._command, stdout=asyncio.subprocess.DEVNULL)
            await process.wait()
            self.seconds.append(time.perf_counter() - began)
            await asyncio.sleep(0.2)

    def figures(self, when: str) -> dict[str, dict[str, float]]:
        """Median, and the slowest but a twentieth."""
        ordered = sorted(self.seconds) or [0.0]
        return {
            f"squeue {when}, p50 seconds": {"slurmk": statistics.median(ordered)},
            f"squeue {when}, p95 seconds": {"slurmk": ordered[int(len(ordered) * 0.95)]},
        }


def job_arguments(count: int) -> Iterator[list[str]]:
    """So many jobs of one pod, with limits of their own."""
    chance = random.Random(1)
    for _ in range(count):
        yield ["-n", "1", "-c", str(WIDTH), "--mem=1000", "-t", str(chance.randint(60, 1440)), "--wrap", "true"]


class Size:
    """One cluster that is filled, left alone, and stirred."""

    def __init__(self, cluster: Cluster, slurmk: Slurmk) -> None:
        self._cluster = cluster
        self._slurmk = slurmk
        self._controller = slurmk.process
        self._socket = slurmk.directory / "d" / "slurmk.sock"
        self.figures: dict[str, dict[str, float]] = {}

    def note(self, name: str, value: float) -> None:
        self.figures[name] = {"slurmk": value}
        print(f"{name}: {value:.4g} (load average {os.getloadavg()[0]:.1f})", file=sys.stderr, flush=True)

    async def measure(self, running: int, waiting: int, starts: int, idle: int) -> None:
        """Everything, in this order: the later figures are of a controller that has all of it."""
        self.note("memory with its nodes, MiB", resident(self._controller))
        began, used = time.perf_counter(), cpu_seconds(self._controller)
        await submit_all(self._socket, list(job_arguments(running)))
        await self._cluster.until(running)
        self.note("starts a second while it fills", running / (time.perf_counter() - began))
        self.note("CPU of a submission and start, ms", 1000 * (cpu_seconds(self._controller) - used) / running)
        self.note("memory with its pods, MiB", resident(self._controller))
        began, used = time.perf_counter(), cpu_seconds(self._controller)
        await submit_all(self._socket, list(job_arguments(waiting)))
        self.note("submissions a second", waiting / (time.perf_counter() - began))
        await self._settled()
        self.note("memory with its queue, MiB", resident(self._controller))
        await self._idle(idle)
        await self._stirred(starts)
        self.note("memory at the end, MiB", resident(self._controller))

    async def _settled(self) -> None:
        """Wait until the controller has planned what it was given: it uses little of a core for a while."""

        async def little() -> bool:
            used = cpu_seconds(self._controller)
            await asyncio.sleep(5.0)
            return cpu_seconds(self._controller) - used < 1.0

        await until(little, 0.0)

    async def _idle(self, seconds: int) -> None:
        answers = Answers(self._slurmk, "1")
        before, others = cpu_seconds(self._controller), programs()
        theirs = {name: cpu_seconds(process) for name, process in others.items()}
        await asyncio.sleep(seconds)
        self.note("idle, CPU seconds a minute", (cpu_seconds(self._controller) - before) * 60 / seconds)
        for name, process in others.items():
            used = (cpu_seconds(process) - theirs[name]) * 60 / seconds
            print(f"  meanwhile {name} used {used:.1f} CPU seconds a minute", file=sys.stderr)
        before = cpu_seconds(self._controller)
        async with answers.taken():
            await asyncio.sleep(seconds / 2)
        self.figures |= answers.figures("while idle")

    async def _stirred(self, count: int) -> None:
        """So many of the jobs that run are cancelled, and as many of those that wait start."""
        run = self._slurmk.run
        listed = await asyncio.to_thread(run, "squeue", "-h", "-t", "R", "-o", "%i")
        answers = Answers(self._slurmk, listed.split()[-1])
        before, used, began = len(self._cluster.started), cpu_seconds(self._controller), time.perf_counter()
        async with answers.taken():
            await asyncio.to_thread(run, "scancel", *listed.split()[:count])
            await self._cluster.until(before + count)
            self.note("starts a second while others end", count / (time.perf_counter() - began))
            await self._settled()
        self.note("CPU of an end and a start, ms", 1000 * (cpu_seconds(self._controller) - used) / count)
        self.figures |= answers.figures("while jobs end and start")


async def measure(options: Any, kubeconfig: Path) -> None:
    namespace = f"size-{secrets.token_hex(3)}"
    limits = ClientLimits(writes_per_second=5000, burst=5000)
    api = await Api.connect(Settings(namespace=namespace, kubeconfig=str(kubeconfig), client=limits))
    await make_nodes(api, options.nodes)
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    slurmk: Slurmk | None = None
    try:
        text = SETTINGS.format(namespace=namespace, pool=POOL)
        slurmk = await asyncio.to_thread(Slurmk, text, str(kubeconfig), CONFIGURATION.format(namespace=namespace))
        size = Size(Cluster(api, namespace, PATIENCE), slurmk)
        await size.measure(min(options.running, options.nodes * (CPUS // WIDTH)), options.waiting, options.starts, options.idle)
        report(f"kubernetes size: {options.nodes} nodes", size.figures, options.json)
    finally:
        if slurmk is not None:
            slurmk.kill()
        for kind, name in [
            (NAMESPACE, namespace),
            *((NODE, node(number)["metadata"]["name"]) for number in range(options.nodes)),
        ]:
            try:
                await api.delete(Reference(kind, name))
            except ApiError as error:
                print(f"{kind} {name}: {error}", file=sys.stderr)
        await api.close()


def main() -> None:
    options = arguments(__doc__ or "", nodes=1000, running=2000, waiting=10000, starts=200, idle=60)
    with started_lab() as lab:
        if lab is None:
            raise SystemExit("needs a Kubernetes of its own: SLURMK_LAB_SCRIPT")
        os.environ.setdefault("KUBERNETES_LAB_DIR", str(lab.directory))
        asyncio.run(measure(options, lab.kubeconfig))


if __name__ == "__main__":
    main()
