"""Nodes of a real API server as slurmk sees them: by watch, at once, and cordons both ways. Their kubelets are simulated."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Kubectl

from bridge.kubernetes.api import Api
from bridge.kubernetes.cluster import Cluster
from bridge.kubernetes.nodes import CORDONED
from bridge.kubernetes.settings import Features, GresSource, PartitionSettings, Settings
from slurmk.core.events import Event, NodeChanged, SiteChanged
from slurmk.model.configuration import load_site
from slurmk.model.node import GresCapacity, Node
from slurmk.model.site import Site
from slurmk.model.states import NodeFlag, NodeState

AT_ONCE = 2.0
"""Seconds within which a change must be known. It takes some hundredths; the machine may be busy."""


class Room:
    """Simulated nodes of one test's own; none of them is there before ``add``."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl
        self.mark = f"t{secrets.token_hex(4)}"
        self.made: list[str] = []

    def name(self, node: str) -> str:
        return f"{self.mark}-{node}"

    def add(self, node: str, labels: dict[str, str] | None = None, **allocatable: str) -> str:
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110", **allocatable}
        name = self.name(node)
        all_labels = {"slurmk-test": self.mark, "kubernetes.io/hostname": name, **(labels or {})}
        manifest = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": all_labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"allocatable": resources, "capacity": resources},
        }
        self.apply(manifest)
        self.made.append(name)
        self.kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=60s")
        return name

    def remove(self, node: str) -> None:
        self.kubectl("delete", "node", self.name(node), "--wait=false")
        self.made.remove(self.name(node))

    def apply(self, manifest: dict[str, Any]) -> None:
        self.kubectl("create", "-f", "-", input=json.dumps(manifest))

    def pod(self, namespace: str, name: str, node: str, labels: dict[str, str] | None = None, **requests: str) -> None:
        """A pod that is on the node as soon as it is made."""
        container = {"name": "c", "image": "localhost/nothing", "resources": {"requests": requests, "limits": requests}}
        spec = {"nodeName": self.name(node), "containers": [container], "tolerations": [{"operator": "Exists"}]}
        metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def settings(self, kubeconfig: str, **more: Any) -> Settings:
        return Settings(kubeconfig=kubeconfig, nodes=f"slurmk-test={self.mark}", cluster=self.mark, **more)


@pytest.fixture
def room(kubectl: Kubectl) -> Iterator[Room]:
    made = Room(kubectl)
    yield made
    for name in made.made:
        kubectl("delete", "node", name, "--wait=false", check=False)


class Seen:
    """A cluster, and what it told."""

    def __init__(self, cluster: Cluster, nodes: list[Node]) -> None:
        self.cluster = cluster
        self.nodes = {node.name: node for node in nodes}
        self.sites: list[Site] = []
        self.removed: list[str] = []

    def hear(self, event: Event) -> Awaitable[object] | None:
        if isinstance(event, NodeChanged):
            self.nodes[event.node.name] = event.node
            self.removed += [event.node.name] * event.removed
        elif isinstance(event, SiteChanged):
            self.sites.append(event.site)
        return None

    async def until(self, holds: Callable[[], bool], seconds: float = AT_ONCE) -> None:
        """Wait until that holds; it must within that time."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, f"not within {seconds} s: {self.nodes}"
            await asyncio.sleep(0.01)


@asynccontextmanager
async def watched(settings: Settings, configured: Site | None = None) -> AsyncIterator[Seen]:
    api = await Api.connect(settings)
    cluster = Cluster(api, settings, configured)
    try:
        await cluster.begin()
        seen = Seen(cluster, [])
        seen.nodes = {node.name: node for node in await cluster.start(seen.hear)}
        yield seen
    finally:
        await cluster.stop()
        await api.close()


async def in_thread(work: Callable[..., object], *arguments: object) -> None:
    await asyncio.to_thread(work, *arguments)


def test_what_labels_and_allocatable_say(room: Room, kubeconfig: str) -> None:
    gpu = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "cpu-model": "milan", "rack": "r1"}
    room.add("a", gpu, **{"cpu": "31850m", "nvidia.com/gpu": "8", "nvidia.com/mig-1g.10gb": "3"})
    room.add("b", {"rack": "r2"})
    settings = room.settings(kubeconfig, features=Features(values=("cpu-model",)), switches=("rack",))

    async def story() -> None:
        async with watched(settings) as seen:
            node = seen.nodes[room.name("a")]
            assert (node.cpus, node.cpus_milli, node.memory, node.features) == (31, 31850, 32 * 1024, ("milan",))
            assert node.gres == (GresCapacity("gpu", "a100-sxm4-80gb", 8), GresCapacity("gpu", "1g.10gb", 3))
            assert node.available
            site = seen.cluster.site
            assert [(each.name, each.nodes) for each in site.partitions] == [("batch", (room.name("a"), room.name("b")))]
            assert [each.name for each in site.switches] == ["r1", "r2", "cluster"]

    asyncio.run(story())


def test_pods_of_others_come_and_go(room: Room, kubeconfig: str, kubectl: Kubectl, namespace: str) -> None:
    name = room.add("a", **{"nvidia.com/gpu": "8"})
    ours = {"slurmk.org/controller": room.mark, "slurmk.org/job-id": "7"}
    another = {"slurmk.org/controller": "another", "slurmk.org/job-id": "7"}

    async def story() -> None:
        async with watched(room.settings(kubeconfig)) as seen:
            before = seen.nodes[name]
            assert before.foreign_pods == 0
            await in_thread(lambda: room.pod(namespace, "one", "a", cpu="2500m", memory="3Gi", **{"nvidia.com/gpu": "2"}))
            await seen.until(lambda: seen.nodes[name].foreign_cpus - before.foreign_cpus == 3)
            node = seen.nodes[name]
            assert node.foreign_memory - before.foreign_memory == 3 * 1024
            assert (node.foreign_gres, node.foreign_pods) == ((("gpu", 2),), 1)
            await in_thread(room.pod, namespace, "ours", "a", ours)
            await in_thread(room.pod, namespace, "others", "a", another)
            await seen.until(lambda: seen.nodes[name].foreign_pods == 2)
            succeeded = '{"status":{"phase":"Succeeded"}}'
            await in_thread(
                kubectl, "patch", "pod", "-n", namespace, "one", "--subresource=status", "--type=merge", "-p", succeeded
            )
            await seen.until(lambda: seen.nodes[name].foreign_cpus == before.foreign_cpus)
            assert seen.nodes[name].foreign_gres == ()
            await in_thread(kubectl, "delete", "pod", "-n", namespace, "others", "--force", "--grace-period=0")
            await seen.until(lambda: seen.nodes[name] == before)

    asyncio.run(story())


def test_cordons_go_both_ways(room: Room, kubeconfig: str, kubectl: Kubectl, get: Callable[..., Any]) -> None:
    name = room.add("a")

    def closed() -> tuple[bool, str | None]:
        node = get("node", name)
        return bool(node["spec"].get("unschedulable")), node["metadata"]["annotations"].get("slurmk.org/drain-reason")

    async def story() -> None:
        async with watched(room.settings(kubeconfig)) as seen:

            def cordon() -> tuple[bool, str]:
                found = seen.nodes[name].cordon
                assert found is not None
                return found.closed, found.reason

            assert cordon() == (False, "")
            await in_thread(kubectl, "cordon", name)
            await seen.until(lambda: cordon() == (True, CORDONED))
            await seen.cluster.cordon(name, False, "")
            await seen.until(lambda: cordon() == (False, ""))
            await seen.cluster.cordon(name, True, "bad fan")
            await seen.until(lambda: cordon() == (True, "bad fan"))
            assert await asyncio.to_thread(closed) == (True, "bad fan")
            await in_thread(kubectl, "uncordon", name)
            await seen.until(lambda: cordon() == (False, ""))
            end = time.monotonic() + AT_ONCE
            while await asyncio.to_thread(closed) != (False, None):
                assert time.monotonic() < end, "the reason is left for the next cordon"

    asyncio.run(story())


def test_taints(room: Room, kubeconfig: str, kubectl: Kubectl) -> None:
    name = room.add("a")

    async def story() -> None:
        async with watched(room.settings(kubeconfig)) as seen:
            await in_thread(kubectl, "taint", "node", name, "maintenance=yes:NoSchedule")
            await seen.until(lambda: seen.nodes[name].refusal == "Taint maintenance=yes:NoSchedule")
            assert not seen.nodes[name].available
            await in_thread(kubectl, "taint", "node", name, "maintenance-")
            await seen.until(lambda: seen.nodes[name].available)

    asyncio.run(story())


def test_nodes_come_and_go(room: Room, kubeconfig: str, kubectl: Kubectl) -> None:
    first = room.add("a", {"pool": "one"})
    partitions = (PartitionSettings("one", "pool=one"), PartitionSettings("all", "", default=True))

    async def story() -> None:
        async with watched(room.settings(kubeconfig, partitions=partitions)) as seen:
            assert list(seen.nodes) == [first]
            second = await asyncio.to_thread(room.add, "b")
            await seen.until(lambda: second in seen.nodes and seen.nodes[second].available)
            members = {each.name: each.nodes for each in seen.sites[-1].partitions}
            assert members == {"one": (first,), "all": (first, second)}
            await in_thread(kubectl, "label", "node", second, "pool=one")
            await seen.until(lambda: seen.sites[-1].partitions[0].nodes == (first, second))
            sites = len(seen.sites)
            await in_thread(kubectl, "label", "node", second, "other=label")
            await in_thread(room.remove, "a")
            await seen.until(lambda: [each.name for each in seen.sites[-1].nodes] == [second])
            assert len(seen.sites) == sites + 1, "a label that means nothing changes nothing"

    asyncio.run(story())


def test_a_node_that_is_not_ready(room: Room, kubeconfig: str, kubectl: Kubectl) -> None:
    name = room.add("a")
    conf = {"/c/slurm.conf": f"ClusterName={room.mark}\nSlurmctldHost=h\nSlurmdTimeout=1\nPartitionName=p Nodes=ALL\n"}
    configured = load_site(conf.get, "/c", nodes_required=False)

    async def story() -> None:
        async with watched(room.settings(kubeconfig), configured) as seen:
            states: list[tuple[NodeState, NodeFlag]] = []
            hear = seen.hear

            def also(event: Event) -> None:
                hear(event)
                states.append((seen.nodes[name].state, seen.nodes[name].flags))

            seen.cluster._report = also
            await in_thread(kubectl, "annotate", "node", name, "kwok.x-k8s.io/node-")  # its kubelet is gone
            lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "gone"}
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            body = json.dumps({"status": {"conditions": [{**lost, "lastTransitionTime": since}]}})
            await in_thread(kubectl, "patch", "node", name, "--subresource=status", "--type=strategic", "-p", body)
            await seen.until(lambda: (NodeState.DOWN, NodeFlag.NO_RESPOND) in states, 15)
            assert not seen.nodes[name].available

    asyncio.run(story())


def test_names_of_slurm_conf(room: Room, kubeconfig: str, kubectl: Kubectl) -> None:
    host = room.add("a", cpu="8")
    text = f"ClusterName={room.mark}\nSlurmctldHost=h\nNodeName=x[1-2] NodeHostname={host} CPUs=3 RealMemory=1000\n"
    conf = {"/c/slurm.conf": text + f"NodeName=y NodeHostname={room.name('absent')} CPUs=2\nPartitionName=p Nodes=x[1-2],y\n"}
    configured = load_site(conf.get, "/c")

    async def story() -> None:
        async with watched(room.settings(kubeconfig), configured) as seen:
            assert {name: (node.cpus, node.memory, node.available) for name, node in seen.nodes.items()} == {
                "x1": (3, 1000, True),
                "x2": (3, 1000, True),
                "y": (2, 1, False),
            }
            assert seen.cluster.kubernetes_name("x2") == host
            await in_thread(room.remove, "a")
            await seen.until(lambda: sorted(seen.removed) == ["x1", "x2"])
            await asyncio.to_thread(room.add, "absent")
            await seen.until(lambda: seen.nodes["y"].available)

    asyncio.run(story())


def test_devices_of_dra(room: Room, kubeconfig: str, kubectl: Kubectl, namespace: str) -> None:
    name = room.add("a")
    driver = f"{room.mark}.example.com"
    expression = f"device.driver == '{driver}' && device.attributes['{driver}'].type == 'gpu'"
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": driver},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    devices = [
        {"name": f"g{number}", "attributes": {"type": {"string": "gpu"}, "productName": {"string": "NVIDIA H100"}}}
        for number in range(3)
    ]
    resource_slice = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": room.mark},
        "spec": {
            "driver": driver,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "held", "namespace": namespace},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": driver, "count": 1}}]}},
    }
    allocation = {"devices": {"results": [{"request": "r", "driver": driver, "pool": name, "device": "g1"}]}}
    settings = room.settings(kubeconfig, gres=(GresSource("gpu", device_class=driver, type_label="productName"),))

    async def story() -> None:
        async with watched(settings) as seen:
            assert seen.nodes[name].gres == ()
            for manifest in (device_class, resource_slice, claim):
                await in_thread(room.apply, manifest)
            await seen.until(lambda: seen.nodes[name].gres == (GresCapacity("gpu", "h100", 3),))
            body = json.dumps({"status": {"allocation": allocation}})
            await in_thread(
                kubectl, "patch", "resourceclaim", "-n", namespace, "held", "--subresource=status", "--type=merge", "-p", body
            )
            await seen.until(lambda: seen.nodes[name].foreign_gres == (("gpu:h100", 1),))

    try:
        asyncio.run(story())
    finally:
        for kind in ("deviceclass", "resourceslice"):
            kubectl("delete", kind, driver if kind == "deviceclass" else room.mark, "--ignore-not-found")


def test_a_configuration_read_anew(room: Room, kubeconfig: str) -> None:
    first, second = room.add("a", {"pool": "one"}), room.add("b")
    settings = room.settings(kubeconfig)

    async def story() -> None:
        async with watched(replace(settings, nodes=f"{settings.nodes},pool=one")) as seen:
            assert list(seen.nodes) == [first]
            wider = replace(settings, partitions=(PartitionSettings("other", "!pool"),))
            site = await asyncio.to_thread(seen.cluster.configure, wider, None)
            assert seen.cluster.settings.partitions == ()
            seen.cluster.reconfigure(site)
            await seen.until(lambda: bool(seen.sites) and seen.sites[-1].partitions[0].nodes == (second,))
            assert [each.name for each in seen.sites[-1].partitions] == ["other"]
            narrower = await asyncio.to_thread(seen.cluster.configure, replace(wider, nodes=f"{settings.nodes},!pool"), None)
            seen.cluster.reconfigure(narrower)
            await seen.until(lambda: [each.name for each in seen.sites[-1].nodes] == [second])

    asyncio.run(story())


# ------------------------------------------------------------------- the whole controller


class Controller:
    """``slurmk up --kubernetes`` in a folder of its own."""

    def __init__(self, directory: Path, kubeconfig: str) -> None:
        self.directory = directory
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH"))}
        self.environment = {**environment, "KUBECONFIG": kubeconfig, "SLURMK_DIR": str(directory)}

    def slurmk(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "slurmk.client.slurmk", words[0], "--dir", str(self.directory), *words[1:]]
        return subprocess.run(command, capture_output=True, text=True, timeout=90, env=self.environment, check=False)

    def run(self, *words: str) -> str:
        program = str(self.directory / "bin" / words[0])
        done = subprocess.run(
            [program, *words[1:]], capture_output=True, text=True, timeout=60, env=self.environment, cwd="/tmp", check=False
        )
        return done.stdout + done.stderr

    def until(self, wanted: str, *words: str, seconds: float = 10) -> float:
        """Run the command until what it prints matches; how long that took."""
        begun = time.monotonic()
        while not re.search(wanted, said := self.run(*words)):
            assert time.monotonic() < begun + seconds, f"{words}: {said}"
            time.sleep(0.05)
        return time.monotonic() - begun


@pytest.fixture
def controller(room: Room, kubeconfig: str, namespace: str, tmp_path: Path) -> Iterator[Controller]:
    room.add("a")
    room.add("b")
    (tmp_path / "slurmk.yaml").write_text(
        f"namespace: {namespace}\ncluster: {room.mark}\nnodes: slurmk-test={room.mark}\npods:\n  image: localhost/debian:12\n"
    )
    made = Controller(tmp_path / "state", kubeconfig)
    up = made.slurmk("up", "--detach", "--kubernetes", str(tmp_path / "slurmk.yaml"))
    assert up.returncode == 0, up.stderr
    yield made
    made.slurmk("down", "--jobs")


def test_status_tells_of_kubernetes(controller: Controller, namespace: str) -> None:
    said = controller.slurmk("status").stdout
    assert "nodes: 2 (2 idle)" in said
    assert re.search(
        rf"^kubernetes: https://\S+ v1\.\d+\S*, namespace {namespace}, 2 nodes with \d+ pods? of others$", said, re.M
    )


def test_a_job_starts_when_others_make_room(controller: Controller, room: Room, namespace: str, kubectl: Kubectl) -> None:
    room.pod(namespace, "in-the-way", "a", cpu="7")
    controller.until("mix", "sinfo", "-N", "-n", room.name("a"), "-h", "-o", "%t")
    assert "CPUForeign=7" in controller.run("scontrol", "show", "node", room.name("a"))
    assert "0/9/7/16" in controller.run("sinfo", "-h", "-o", "%C")
    controller.run("sbatch", "-N2", "-n2", "-c4", "--wrap", "sleep 60")
    controller.until(r"PD \(Resources\)", "squeue", "-h", "-o", "%t %R")
    controller.run("sbatch", "-N1", "-c4", "--wrap", "sleep 60")
    controller.until(rf"2 R {room.name('b')}", "squeue", "-h", "-o", "%i %t %R", "-j", "2")
    kubectl("delete", "pod", "-n", namespace, "in-the-way", "--force", "--grace-period=0")
    controller.until("1 R", "squeue", "-h", "-o", "%i %t", "-j", "1", seconds=5)


def test_draining_resuming_and_losing_a_node(controller: Controller, room: Room, get: Callable[..., Any]) -> None:
    first, second = room.name("a"), room.name("b")
    controller.run("scontrol", "update", f"nodename={first}", "state=drain", "reason=bad fan")
    end = time.monotonic() + 5
    while not get("node", first)["spec"].get("unschedulable"):
        assert time.monotonic() < end
    controller.run("sbatch", "-N1", "--no-requeue", "--wrap", "sleep 60")
    controller.until(rf"1 R {second}", "squeue", "-h", "-o", "%i %t %R")
    controller.run("scontrol", "update", f"nodename={first}", "state=resume")
    end = time.monotonic() + 5
    while get("node", first)["spec"].get("unschedulable"):
        assert time.monotonic() < end
    room.remove("b")
    controller.until("NODE_FAIL", "scontrol", "show", "job", "1")
    assert controller.run("sinfo", "-h", "-N", "-o", "%N").split() == [first]
    room.add("c")
    controller.until(room.name("c"), "sinfo", "-h", "-N", "-o", "%N")


def test_another_controller_stands_by_and_one_without_the_lease_ends(
    controller: Controller, room: Room, kubectl: Kubectl, namespace: str, kubeconfig: str, tmp_path: Path
) -> None:
    other = Controller(tmp_path / "other", kubeconfig)
    command = [sys.executable, "-m", "slurmk.client.slurmk", "up", "--dir", str(other.directory), "--kubernetes"]
    holder = (controller.directory / "state" / "identity").read_text().strip()
    with subprocess.Popen(
        [*command, str(tmp_path / "slurmk.yaml")], stderr=subprocess.PIPE, text=True, env=other.environment
    ) as standby:
        assert standby.stderr is not None
        assert "standing by" in standby.stderr.readline()
        said = other.slurmk("status")
        assert said.returncode == 1
        held = f"stands by: {holder} holds the lease {namespace}/slurmk-controller\n"
        assert said.stdout == f"slurmk: the controller in {other.directory} {held}"
        assert not (other.directory / "state" / "slurmk.sqlite").exists()
        standby.terminate()
        standby.wait(20)
    assert other.slurmk("status").stdout == f"slurmk: no cluster is up in {other.directory}\n"
    detached = subprocess.run(
        [*command, str(tmp_path / "slurmk.yaml"), "--detach"], capture_output=True, text=True, env=other.environment, timeout=60
    )
    assert detached.returncode == 0
    assert detached.stdout == f"slurmk: the controller in {other.directory} is up and {held}"
    assert other.slurmk("down").returncode == 0
    taken = '{"spec":{"holderIdentity":"somebody-else"}}'
    kubectl("patch", "lease", "-n", namespace, "slurmk-controller", "--type=merge", "-p", taken)
    end = time.monotonic() + 20
    while controller.slurmk("status").returncode == 0:
        assert time.monotonic() < end, "it goes on without the lease"
