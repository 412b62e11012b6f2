"""On a real API server with simulated nodes: how fast jobs start, what a job costs the API server, how soon a pod runs.

``python -m tests.benchmarks.kubernetes --json``, with KUBECONFIG and SLURMK_LAB=1 (nodes labelled lab/kind=simulated). Jobs
of slurmk through native, Kueue and Volcano, and the same bare jobs by Kueue and Volcano themselves, in turn in one run; the
time from ``sbatch`` to a running pod on an idle cluster beside that of a bare ``kubectl create`` of such a pod.

A job counts as started when its pod is Running (or has ended), seen by one watch for both sides.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bridge.kubernetes.api import Api
from bridge.kubernetes.resources import JOB, POD, VOLCANO_JOB, Manifest, Reference
from bridge.kubernetes.settings import ClientLimits, Settings
from tests.benchmarks.measure import arguments, report
from tests.reference.sides import SLURMK

AT_ONCE = 32
"""Requests that the bare side has under way at the same time."""

PATIENCE = 300.0

SYSTEMS = {
    "native": "{kind: native, keepFinished: 0}",
    "kueue": "{kind: native-job, queueSystem: kueue, keepFinished: 0}",
    "volcano": "{kind: volcano, queueSystem: volcano, keepFinished: 0}",
}

SETTINGS = """
namespace: {namespace}
cluster: {cluster}
nodes: lab/pool=cpu
client: {{writesPerSecond: 2000, burst: 4000, concurrent: 64}}
pods: {{image: any, admissionTimeout: 300, annotations: {{lab/runtime: 1s}}}}
partitions:
"""


class Slurmk:
    """A controller on the cluster, with one partition for each way to start jobs."""

    def __init__(self, namespace: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="slurmk-bench-"))
        self.namespace = namespace
        text = SETTINGS.format(namespace=namespace, cluster=namespace)
        text += "".join(f"  {name}: {{nodes: '', pods: {pods}}}\n" for name, pods in SYSTEMS.items())
        (self.directory / "slurmk.yaml").write_text(text)
        self.run("slurmk", "up", "--detach", "--kubernetes", str(self.directory / "slurmk.yaml"))
        self.run("slurmk", "queues", "apply")

    def run(self, program: str, *arguments: str) -> str:
        """The output of one of its commands, which must succeed."""
        given = [str(SLURMK), *arguments, "--dir", str(self.directory / "d")]
        command = given if program == "slurmk" else [str(self.directory / "d" / "bin" / program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.directory, timeout=PATIENCE, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def figures(self) -> tuple[int, float, float]:
        """Writes to the API server so far, seconds of CPU, and MiB of memory of the controller."""
        status = self.run("slurmk", "status")
        writes = int(status.partition(" writes")[0].rpartition(" ")[2])
        process = int(status.partition("pid ")[2].split()[0])
        ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        seconds = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        return writes, seconds, pages * os.sysconf("SC_PAGE_SIZE") / 1048576

    def close(self) -> None:
        """End it and what it made."""
        self.run("slurmk", "queues", "delete")
        self.run("slurmk", "down", "--jobs")
        shutil.rmtree(self.directory, ignore_errors=True)


class Cluster:
    """The API server, and a count of pods that run or have run in one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.started: set[str] = set()
        self._changed = asyncio.Event()
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        async for change in self.api.watch(POD, self.namespace):
            status = (change.manifest or {}).get("status") or {}
            if status.get("phase") in ("Running", "Succeeded", "Failed"):
                self.started.add(change.manifest["metadata"]["uid"])
                self._changed.set()

    async def until(self, count: int) -> None:
        """Wait until so many pods have started."""
        async with asyncio.timeout(PATIENCE):
            while len(self.started) < count:
                self._changed.clear()
                await self._changed.wait()

    async def rate(self, count: int, begin: Callable[[], Awaitable[object]]) -> float:
        """Jobs of one pod started a second, from ``begin`` to the last one."""
        before, began = len(self.started), time.perf_counter()
        beginning = asyncio.ensure_future(begin())
        await self.until(before + count)
        seconds = time.perf_counter() - began
        await beginning
        return count / seconds

    async def create_all(self, manifests: list[Manifest]) -> None:
        """Make these objects, many at once."""
        room = asyncio.Semaphore(AT_ONCE)

        async def create(manifest: Manifest) -> None:
            async with room:
                await self.api.create(manifest)

        await asyncio.gather(*map(create, manifests))

    async def clear(self, *kinds: Any) -> None:
        """Remove what the bare side made."""
        for kind in kinds:
            await self.api.delete_collection(kind, self.namespace, "bench=bare")
        while await self.api.list(POD, self.namespace, "bench=bare"):  # noqa: ASYNC110
            await asyncio.sleep(0.2)


def pod_spec(**more: Any) -> Manifest:
    """The spec of the same pod as slurmk's jobs have."""
    size = {"cpu": "1", "memory": "64Mi"}
    container = {"name": "job", "image": "any", "resources": {"requests": size, "limits": size}}
    return {"restartPolicy": "Never", "containers": [container], "nodeSelector": {"lab/pool": "cpu"}, **more}


def metadata(namespace: str, name: str, **labels: str) -> Manifest:
    return {"name": name, "namespace": namespace, "labels": {"bench": "bare", **labels}}


TEMPLATE = {"labels": {"bench": "bare"}, "annotations": {"lab/runtime": "1s"}}


def kueue_jobs(namespace: str, count: int, queue: str) -> list[Manifest]:
    """Bare Jobs that wait in a queue of Kueue's."""
    run = secrets.token_hex(3)
    return [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata(namespace, f"bare-{run}-{number}", **{"kueue.x-k8s.io/queue-name": queue}),
            "spec": {"suspend": True, "backoffLimit": 0, "template": {"metadata": TEMPLATE, "spec": pod_spec()}},
        }
        for number in range(count)
    ]


def volcano_jobs(namespace: str, count: int) -> list[Manifest]:
    """Bare jobs of Volcano's, in its default queue."""
    run = secrets.token_hex(3)
    task = {"name": "main", "replicas": 1, "template": {"metadata": TEMPLATE, "spec": pod_spec()}}
    return [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": metadata(namespace, f"bare-{run}-{number}"),
            "spec": {"schedulerName": "volcano", "minAvailable": 1, "queue": "default", "tasks": [task]},
        }
        for number in range(count)
    ]


async def local_queue(api: Api, namespace: str) -> str:
    """A queue of slurmk's that the bare Jobs use as well, so that both have the same quota."""
    from bridge.kubernetes.resources import KUEUE_LOCAL_QUEUE

    return str((await api.list(KUEUE_LOCAL_QUEUE, namespace))[0]["metadata"]["name"])


async def throughput(cluster: Cluster, slurmk: Slurmk, jobs: int, runs: int) -> dict[str, dict[str, float]]:
    """Jobs started a second by system, for both sides; and what a job costs."""
    namespace = cluster.namespace
    seen: dict[str, list[float]] = {}
    writes: list[float] = []
    seconds: list[float] = []

    def note(name: str, value: float) -> None:
        seen.setdefault(name, []).append(value)
        print(f"{name}: {value:.1f} jobs a second", file=sys.stderr)

    for turn in range(runs + 1):
        count = jobs if turn else min(jobs, 40)
        for name in SYSTEMS:
            array = f"--array=1-{count}"
            job = slurmk.run(
                "sbatch", "--parsable", "--hold", array, "-p", name, "-n", "1", "--mem=64", "-t", "5", "--wrap", "true"
            ).strip()
            before = slurmk.figures()

            async def release(job: str = job) -> None:
                await asyncio.to_thread(slurmk.run, "scontrol", "release", job)

            value = await cluster.rate(count, release)
            while await asyncio.to_thread(slurmk.run, "squeue", "-h", "-j", job, "-t", "PD,R,CG,CF"):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
            await asyncio.sleep(2.0)
            after = slurmk.figures()
            if turn:
                note(f"slurmk {name}", value)
                if name == "native":
                    writes.append((after[0] - before[0]) / count)
                    seconds.append((after[1] - before[1]) / count)
        queue = await local_queue(cluster.api, namespace)
        for name, kind, manifests in (
            ("kueue", JOB, kueue_jobs(namespace, count, queue)),
            ("volcano", VOLCANO_JOB, volcano_jobs(namespace, count)),
        ):
            value = await cluster.rate(count, lambda made=manifests: cluster.create_all(made))  # type: ignore[misc]
            await asyncio.sleep(1.5)
            await cluster.clear(kind)
            if turn:
                note(f"bare {name}", value)
    rates = {name: statistics.median(values) for name, values in seen.items()}
    return {
        "native": {"slurmk": rates["slurmk native"]},
        "kueue": {"slurmk": rates["slurmk kueue"], "reference": rates["bare kueue"]},
        "volcano": {"slurmk": rates["slurmk volcano"], "reference": rates["bare volcano"]},
        "writes_per_job": {"slurmk": statistics.median(writes)},
        "cpu_seconds_per_job": {"slurmk": statistics.median(seconds)},
    }


async def latency(cluster: Cluster, slurmk: Slurmk, runs: int) -> dict[str, float]:
    """Seconds from the start of a command until the pod runs: ``sbatch``, and ``kubectl create`` of such a pod."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise SystemExit("needs kubectl on PATH")
    manifest = cluster_file(slurmk.directory, cluster.namespace)
    seen: dict[str, list[float]] = {"slurmk": [], "reference": []}
    for turn in range(runs + 1):
        for name, command in (
            ("slurmk", [str(slurmk.directory / "d/bin/sbatch"), "-p", "native", "-n1", "--mem=64", "-t5", "--wrap", "true"]),
            ("reference", [kubectl, "create", "-f", str(manifest)]),
        ):
            before, began = len(cluster.started), time.perf_counter()
            process = await asyncio.create_subprocess_exec(
                *command, cwd=slurmk.directory, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
            )
            await cluster.until(before + 1)
            seconds = time.perf_counter() - began
            await process.wait()
            if turn:
                seen[name].append(seconds)
            await asyncio.sleep(2.5)
        await cluster.clear(POD)
    return {name: statistics.median(values) for name, values in seen.items()}


def cluster_file(directory: Path, namespace: str) -> Path:
    """The bare pod as a file; each creation makes another."""
    made = {"generateName": "bare-", "namespace": namespace, **TEMPLATE}
    path = directory / "pod.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": pod_spec()}))
    return path


async def measure(options: Any) -> None:
    namespace = f"bench-{secrets.token_hex(3)}"
    api = await Api.connect(Settings(namespace=namespace, client=ClientLimits(writes_per_second=5000, burst=5000)))
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    slurmk: Slurmk | None = None
    try:
        slurmk = await asyncio.to_thread(Slurmk, namespace)
        cluster = Cluster(api, namespace)
        figures = {"pod running, seconds": await latency(cluster, slurmk, options.runs)}
        report("kubernetes latency", figures, options.json)
        report("kubernetes throughput", await throughput(cluster, slurmk, options.jobs, options.turns), options.json, "more")
    finally:
        if slurmk is not None:
            await asyncio.to_thread(slurmk.close)
        from bridge.kubernetes.resources import NAMESPACE

        await api.delete(Reference(NAMESPACE, namespace))
        await api.close()


def main() -> None:
    options = arguments(__doc__ or "", jobs=200, turns=2, runs=7)
    if os.environ.get("SLURMK_LAB") != "1":
        raise SystemExit("needs a Kubernetes with simulated nodes: KUBECONFIG, and SLURMK_LAB=1")
    asyncio.run(measure(options))


if __name__ == "__main__":
    main()
