"""On a real API server with simulated nodes: how fast jobs start, what a job costs the API server, how soon a pod runs.

``python -m tests.benchmarks.kubernetes --json``, with KUBECONFIG and SLURMK_LAB=1 (nodes labelled lab/kind=simulated). Jobs
of slurmk through native, Kueue and Volcano, and the same bare pods and jobs by kube-scheduler, Kueue and Volcano themselves, in
turn in one run; the time from ``sbatch`` to a running pod on an idle cluster beside that of a bare ``kubectl create`` of such a
pod. What the cluster has not installed is left out.

A job counts as started when its pod is Running (or has ended), seen by one watch for both sides. Where the cluster's programs
run on this machine (KUBERNETES_LAB_DIR), their seconds of CPU a job are told as well: all share its cores, so the one that
takes most is what bounds the rate.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bridge.kubernetes.api import Api
from bridge.kubernetes.errors import Unavailable
from bridge.kubernetes.resources import JOB, KUEUE_LOCAL_QUEUE, NAMESPACE, POD, VOLCANO_JOB, Manifest, Reference
from bridge.kubernetes.settings import ClientLimits, Settings
from tests.benchmarks.measure import arguments, report
from tests.reference.sides import SLURMK

AT_ONCE = 32
"""Requests that the bare side has under way at the same time."""

PATIENCE = 300.0

KUEUE_PODS = "kueue-pods"

SYSTEMS = {
    "native": "{kind: native, keepFinished: 0}",
    "kueue": "{kind: native-job, queueSystem: kueue, keepFinished: 0}",
    KUEUE_PODS: "{kind: native, queueSystem: kueue, keepFinished: 0}",
    "volcano": "{kind: volcano, queueSystem: volcano, keepFinished: 0}",
}

NEEDS = {
    "native": None,
    "kueue": (KUEUE_LOCAL_QUEUE.group_version, KUEUE_LOCAL_QUEUE.kind),
    KUEUE_PODS: (KUEUE_LOCAL_QUEUE.group_version, KUEUE_LOCAL_QUEUE.kind),
    "volcano": (VOLCANO_JOB.group_version, VOLCANO_JOB.kind),
}
"""What a cluster must have for each of them."""

LEAST_CPU = 0.001
"""Seconds of CPU a job that are worth telling."""

SETTINGS = """
namespace: {namespace}
cluster: {cluster}
nodes: lab/pool=cpu
client: {{writesPerSecond: 2000, burst: 4000, concurrent: 64}}
pods: {{image: any, admissionTimeout: 300, annotations: {{lab/runtime: 1s}}}}
partitions:
"""


def settings_of(namespace: str, systems: Sequence[str]) -> str:
    """slurmk.yaml with one partition for each way to start jobs."""
    partitions = (f"  {name}: {{nodes: '', pods: {SYSTEMS[name]}}}\n" for name in systems)
    return SETTINGS.format(namespace=namespace, cluster=namespace) + "".join(partitions)


class Slurmk:
    """A controller on the cluster. ``settings`` is the text of its slurmk.yaml, ``configuration`` that of its slurm.conf."""

    def __init__(self, settings: str, kubeconfig: str = "", configuration: str = "") -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="slurmk-bench-"))
        (self.directory / "slurmk.yaml").write_text(settings)
        given = ["--kubeconfig", kubeconfig] if kubeconfig else []
        if configuration:
            (self.directory / "slurm.conf").write_text(configuration)
            given += ["--conf", str(self.directory)]
        self.run("slurmk", "up", "--detach", "--kubernetes", str(self.directory / "slurmk.yaml"), *given)

    def run(self, program: str, *arguments: str) -> str:
        """The output of one of its commands, which must succeed."""
        given = [str(SLURMK), *arguments, "--dir", str(self.directory / "d")]
        command = given if program == "slurmk" else [str(self.directory / "d" / "bin" / program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.directory, timeout=PATIENCE, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def writes(self) -> int:
        """Writes to the API server so far."""
        return int(self.run("slurmk", "status").partition(" writes")[0].rpartition(" ")[2])

    @property
    def process(self) -> int:
        """The controller's process."""
        return int(self.run("slurmk", "status").partition("pid ")[2].split()[0])

    def close(self) -> None:
        """End it and what it made."""
        self.run("slurmk", "down", "--jobs")
        shutil.rmtree(self.directory, ignore_errors=True)

    def kill(self) -> None:
        """End it alone, at once."""
        os.kill(self.process, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)


def cpu_seconds(process: int) -> float:
    """What a process has used so far."""
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> float:
    """MiB of memory that a process holds."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1048576


def programs() -> dict[str, int]:
    """The cluster's programs that run on this machine."""
    found = {}
    for path in sorted(Path(os.environ.get("KUBERNETES_LAB_DIR") or "/tmp/kubernetes-lab").glob("run/*.pid")):
        process, started = path.read_text().split()
        with suppress(OSError, IndexError):
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19] == started:
                found[path.stem] = int(process)
    return found


class Cluster:
    """The API server, and a count of pods that run or have run in one namespace."""

    def __init__(self, api: Api, namespace: str, patience: float = PATIENCE) -> None:
        self.api = api
        self.namespace = namespace
        self._patience = patience
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
        async with asyncio.timeout(self._patience):
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
            with suppress(Unavailable):  # it goes on, late
                await self.api.delete_collection(kind, self.namespace, "bench=bare")
        await self.nothing_of("bench=bare")

    async def nothing_of(self, selector: str) -> None:
        """Wait until there are no such pods any more."""
        async with asyncio.timeout(self._patience):
            while await self.api.list(POD, self.namespace, selector):  # noqa: ASYNC110
                await asyncio.sleep(0.2)


def pod_spec(**more: Any) -> Manifest:
    """The spec of the same pod as slurmk's jobs have."""
    size = {"cpu": "1", "memory": "64Mi"}
    container = {"name": "job", "image": "any", "resources": {"requests": size, "limits": size}}
    return {"restartPolicy": "Never", "containers": [container], "nodeSelector": {"lab/pool": "cpu"}, **more}


def metadata(namespace: str, name: str, **labels: str) -> Manifest:
    return {"name": name, "namespace": namespace, "labels": {"bench": "bare", **labels}}


OF_PARTITIONS = {"key": "slurmk.org/partition", "operator": "Exists"}
"""What lets a Job into the flavors of partitions that are on the same nodes."""

TEMPLATE = {"labels": {"bench": "bare"}, "annotations": {"lab/runtime": "1s"}}


def bare_pods(namespace: str, count: int) -> list[Manifest]:
    """Pods that nobody but kube-scheduler looks after."""
    run = secrets.token_hex(3)
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata(namespace, f"bare-{run}-{number}"), "annotations": TEMPLATE["annotations"]},
            "spec": pod_spec(),
        }
        for number in range(count)
    ]


def kueue_jobs(namespace: str, count: int, queue: str) -> list[Manifest]:
    """Bare Jobs that wait in a queue of Kueue's."""
    run = secrets.token_hex(3)
    return [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata(namespace, f"bare-{run}-{number}", **{"kueue.x-k8s.io/queue-name": queue}),
            "spec": {
                "suspend": True,
                "backoffLimit": 0,
                "template": {"metadata": TEMPLATE, "spec": pod_spec(tolerations=[OF_PARTITIONS])},
            },
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
    return str((await api.list(KUEUE_LOCAL_QUEUE, namespace))[0]["metadata"]["name"])


class Throughput:
    """Jobs started a second by system, for both sides, in turn; and what a job costs."""

    def __init__(self, cluster: Cluster, slurmk: Slurmk, systems: Sequence[str]) -> None:
        self._cluster = cluster
        self._slurmk = slurmk
        self._systems = systems
        self._processes = {**programs(), "slurmk": slurmk.process}
        self._seen: dict[tuple[str, str], list[float]] = {}
        self._writes: list[float] = []
        self._cpu: dict[tuple[str, str], list[dict[str, float]]] = {}

    async def measure(self, jobs: int, runs: int) -> None:
        """All systems so often, after a short run that does not count."""
        for turn in range(runs + 1):
            count = jobs if turn else min(jobs, 40)
            for side, once in (("slurmk", self._of_slurmk), ("reference", self._bare)):
                for system in self._systems:
                    if side == "reference" and system == KUEUE_PODS:
                        continue  # it is held against the same bare Jobs as Kueue's other kind
                    before = {name: cpu_seconds(process) for name, process in self._processes.items()}
                    rate = await once(system, count)
                    if not turn:
                        continue
                    used = {name: (cpu_seconds(process) - before[name]) / count for name, process in self._processes.items()}
                    self._seen.setdefault((system, side), []).append(rate)
                    self._cpu.setdefault((system, side), []).append(used)
                    most = sorted(used.items(), key=lambda pair: -pair[1])[:6]
                    told = ", ".join(f"{name} {1000 * seconds:.0f}" for name, seconds in most)
                    print(f"{side} {system}: {rate:.1f} jobs a second; ms of CPU a job: {told}", file=sys.stderr)
            if turn:
                print(f"load average {os.getloadavg()[0]:.1f}", file=sys.stderr)

    async def _of_slurmk(self, system: str, count: int) -> float:
        slurmk = self._slurmk
        size = ("-n", "1", "--mem=64", "-t", "5", "--wrap", "true")
        job = slurmk.run("sbatch", "--parsable", "--hold", f"--array=1-{count}", "-p", system, *size).strip()
        before = slurmk.writes()
        rate = await self._cluster.rate(count, lambda: asyncio.to_thread(slurmk.run, "scontrol", "release", job))
        while await asyncio.to_thread(slurmk.run, "squeue", "-h", "-j", job, "-t", "PD,R,CG,CF"):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        await self._cluster.nothing_of("app.kubernetes.io/managed-by=slurmk")
        if system == "native":
            self._writes.append((slurmk.writes() - before) / count)
        return rate

    async def _bare(self, system: str, count: int) -> float:
        cluster, namespace = self._cluster, self._cluster.namespace
        if system == "native":
            kind, manifests = POD, bare_pods(namespace, count)
        elif system == "kueue":
            kind, manifests = JOB, kueue_jobs(namespace, count, await local_queue(cluster.api, namespace))
        else:
            kind, manifests = VOLCANO_JOB, volcano_jobs(namespace, count)
        rate = await cluster.rate(count, lambda: cluster.create_all(manifests))
        await asyncio.sleep(1.5)
        await cluster.clear(kind)
        return rate

    def figures(self) -> dict[str, dict[str, float]]:
        """Medians: jobs a second by system, writes a job, and seconds of CPU a job by system and program."""
        found: dict[str, dict[str, float]] = {}
        for (system, side), values in self._seen.items():
            found.setdefault(system, {})[side] = statistics.median(values)
        if KUEUE_PODS in found:
            found[KUEUE_PODS]["reference"] = found["kueue"]["reference"]
        found["writes_per_job"] = {"slurmk": statistics.median(self._writes[1:])}
        for (system, side), used in self._cpu.items():
            for name in self._processes:
                seconds = statistics.median(each[name] for each in used)
                if seconds >= LEAST_CPU:
                    found.setdefault(f"cpu_seconds_per_job {system} {name}", {})[side] = seconds
        return found


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
    there = [name for name, needed in NEEDS.items() if needed is None or await api.available(*needed)]
    slurmk: Slurmk | None = None
    try:
        slurmk = await asyncio.to_thread(Slurmk, settings_of(namespace, there))
        if set(there) - {"native"}:
            await asyncio.to_thread(slurmk.run, "slurmk", "queues", "apply")
        cluster = Cluster(api, namespace)
        figures = {"pod running, seconds": await latency(cluster, slurmk, options.runs)}
        report("kubernetes latency", figures, options.json)
        throughput = Throughput(cluster, slurmk, there)
        await throughput.measure(options.jobs, options.turns)
        report("kubernetes throughput", throughput.figures(), options.json, "more")
    finally:
        if slurmk is not None:
            if set(there) - {"native"}:
                await asyncio.to_thread(slurmk.run, "slurmk", "queues", "delete")
            await asyncio.to_thread(slurmk.close)
        await api.delete(Reference(NAMESPACE, namespace))
        await api.close()


def main() -> None:
    options = arguments(__doc__ or "", jobs=200, turns=2, runs=7)
    if os.environ.get("SLURMK_LAB") != "1":
        raise SystemExit("needs a Kubernetes with simulated nodes: KUBECONFIG, and SLURMK_LAB=1")
    asyncio.run(measure(options))


if __name__ == "__main__":
    main()
