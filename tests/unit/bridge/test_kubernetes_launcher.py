"""The launcher on an API server that keeps objects in memory: what it makes, believes, tells and removes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import rendering
from aiohttp import web
from fake_kubernetes import FakeKubernetes, fake_kubernetes, status
from rendering import FILES, SITE, job, share

from bridge.kubernetes import launcher as module
from bridge.kubernetes import removal
from bridge.kubernetes.cluster import Cluster
from bridge.kubernetes.gres import NO_SLICES
from bridge.kubernetes.launcher import KubernetesLauncher
from bridge.kubernetes.resources import POD, POD_GROUP, SECRET, TRAIN_JOB, Manifest
from bridge.kubernetes.settings import Kind, PodSettings, Settings
from bridge.launcher import Report
from slurmk.core.events import (
    BatchEnded,
    Event,
    JobStarted,
    LaunchFailed,
    NodeChanged,
    NodeFailed,
    NodesReleased,
    Preempted,
    StepStarted,
    Withdrawn,
)
from slurmk.model.job import Job, Step
from slurmk.model.node import Node
from slurmk.model.states import JobFlag, JobState, NodeState

RUNNING = replace(job(), state=JobState.RUNNING)
TWO = replace(job(share("n1"), share("n2")), state=JobState.RUNNING)
NEW = JobFlag.CONFIGURING


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, run in a loop of its own."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


class Nodes:
    """The cluster's nodes, as far as the launcher asks."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.slices = NO_SLICES
        self.manifests = {name: {"metadata": {"name": f"host-{name}"}} for name in rendering.NODES}
        self.report: Report = lambda event: None
        self.cordons: list[tuple[str, bool, str]] = []

    async def start(self, report: Report) -> Sequence[Node]:
        self.report = report
        return SITE.nodes

    async def cordon(self, node: str, cordoned: bool, reason: str) -> None:
        self.cordons.append((node, cordoned, reason))


class Story:
    """A launcher at work, and what it told the controller."""

    def __init__(self, server: FakeKubernetes, launcher: KubernetesLauncher, nodes: Nodes) -> None:
        self.server = server
        self.launcher = launcher
        self.nodes = nodes
        self.told: list[Event] = []

    def tell(self, event: Event) -> asyncio.Future[None]:
        self.told.append(event)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def begin(self, *jobs: Job) -> frozenset[tuple[int, int]]:
        await self.launcher.start(self.tell)
        return await self.launcher.recover(jobs)

    def names(self, resource: Any = POD) -> list[str]:
        return sorted(name for _, name in self.server.objects.get(str(resource), {}))

    def pod(self, name: str) -> Manifest:
        return self.server.objects[str(POD)]["slurmk", name]

    def change(self, name: str, phase: str, code: int | None = None, **more: Any) -> None:
        """What a kubelet, or kwok in its place, writes of a pod."""
        pod = self.pod(name)
        state: dict[str, Any] = {"running": {}} if code is None else {"terminated": {"exitCode": code, "reason": "Error"}}
        container = {"name": "job", "state": state, **more.pop("container", {})}
        spec = {**pod["spec"], "nodeName": "host"}
        self.server.put(POD, {**pod, "spec": spec, "status": {"phase": phase, "containerStatuses": [container], **more}})

    async def heard(self, *kinds: type[Event]) -> list[Event]:
        """Wait until all of these were told, in this order, and nothing else."""
        async with asyncio.timeout(5):
            while len(self.told) < len(kinds):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        told, self.told[:] = list(self.told), []
        assert [type(event) for event in told] == list(kinds), told
        return told

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(5):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def gone(self) -> None:
        await self.until(lambda: not self.names() and not self.names(SECRET) and not self.names(POD_GROUP))


@asynccontextmanager
async def story(folder: Path, **pods: Any) -> AsyncIterator[Story]:
    async with fake_kubernetes(folder) as (server, api, settings):
        own = PodSettings(**{"image": "debian:12", "admission_timeout": 60.0, **pods})
        nodes = Nodes(replace(settings, namespace="slurmk"))
        launcher = KubernetesLauncher(api, cast(Cluster, nodes), SITE, folder, "10.0.0.1:6817", lambda *_: own, lambda *_: {})
        try:
            yield Story(server, launcher, nodes)
        finally:
            await launcher.stop(end_jobs=False)


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """srun's local part is not needed here."""
    monkeypatch.setattr(KubernetesLauncher, "_install", lambda self: None)
    monkeypatch.setattr(removal, "COLLECT_SECONDS", 0.05)


@in_a_loop
async def test_a_job_from_its_launch_until_nothing_is_left(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(RUNNING, FILES)
        assert (it.names(), it.names(SECRET)) == (["slurmk-42-n0"], ["slurmk-42"])
        owner = it.pod("slurmk-42-n0")["metadata"]["ownerReferences"][0]
        assert owner["uid"] == it.server.objects[str(SECRET)]["slurmk", "slurmk-42"]["metadata"]["uid"]
        it.change("slurmk-42-n0", "Running")
        await it.heard(JobStarted)
        it.change("slurmk-42-n0", "Failed", 3)
        ended, released = await it.heard(BatchEnded, NodesReleased)
        assert isinstance(ended, BatchEnded)
        assert isinstance(released, NodesReleased)
        assert (ended.exit_code, released.nodes) == (3 << 8, ("n1",))
        await it.gone()
        writes = [line for line in it.server.requests if not line.startswith("GET") and "configmaps" not in line]
        assert len(writes) == 4


@in_a_loop
async def test_several_nodes_are_a_gang(tmp_path: Path) -> None:
    async with story(tmp_path, kind=Kind.NATIVE) as it:
        await it.begin()
        await it.launcher.launch(TWO, FILES)
        assert it.names(POD_GROUP) == ["slurmk-42"]
        it.change("slurmk-42-n0", "Running")
        it.change("slurmk-42-n1", "Running")
        await it.heard(JobStarted)
        await it.launcher.terminate(42, 0, 30, ("n1", "n2"))
        released = await it.heard(NodesReleased, NodesReleased)
        assert sorted(event.nodes for event in released if isinstance(event, NodesReleased)) == [("n1",), ("n2",)]
        await it.gone()


@pytest.mark.parametrize("order", [("n0", "n1"), ("n1", "n0")])
@pytest.mark.parametrize("together", [False, True])
@in_a_loop
async def test_pods_may_end_in_any_order(tmp_path: Path, order: tuple[str, str], together: bool) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(TWO, FILES)
        for name in order:
            it.change(f"slurmk-42-{name}", "Running")
        await it.heard(JobStarted)
        for name in order:
            it.change(f"slurmk-42-{name}", "Succeeded", 0)
            if not together:
                await asyncio.sleep(0.05)
        await it.until(
            lambda: {node for each in it.told if isinstance(each, NodesReleased) for node in each.nodes} == {"n1", "n2"}
        )
        assert [event.exit_code for event in it.told if isinstance(event, BatchEnded)] == [0]
        await it.gone()


@in_a_loop
async def test_any_pod_that_fails_fails_the_job(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(TWO, FILES)
        it.change("slurmk-42-n1", "Failed", 5)
        _, ended, _ = await it.heard(JobStarted, BatchEnded, NodesReleased)
        assert isinstance(ended, BatchEnded)
        assert ended.exit_code == 5 << 8


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
@in_a_loop
async def test_a_job_has_begun_when_the_last_of_its_pods_did(tmp_path: Path, phase: str) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(TWO, FILES)
        for name, second in (("slurmk-42-n0", 7), ("slurmk-42-n1", 3)):
            state = {"startedAt": f"2026-11-30T10:00:0{second}Z"}
            state |= {} if phase == "Running" else {"exitCode": 0, "reason": "Completed"}
            it.change(name, phase, container={"state": {"running" if phase == "Running" else "terminated": state}})
        await it.until(lambda: it.told)
        assert isinstance(it.told[0], JobStarted)
        assert it.told[0].begun == datetime(2026, 11, 30, 10, 0, 7, tzinfo=UTC).timestamp()


@in_a_loop
async def test_launching_twice_makes_everything_once(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(RUNNING, FILES)
        uid = it.pod("slurmk-42-n0")["metadata"]["uid"]
        await it.launcher.launch(RUNNING, FILES)
        assert it.pod("slurmk-42-n0")["metadata"]["uid"] == uid
        assert it.told == []


@in_a_loop
async def test_what_a_lost_controller_left_of_the_same_number_is_not_taken_for_ours(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(RUNNING, replace(FILES, secret=b"another"))
        old = it.pod("slurmk-42-n0")["metadata"]["uid"]
        it.launcher._presences.clear()
        it.launcher._link.attempts.clear()
        await it.launcher.launch(RUNNING, FILES)
        assert it.pod("slurmk-42-n0")["metadata"]["uid"] != old


@in_a_loop
async def test_somebody_elses_object_stays(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        it.server.put(SECRET, {"metadata": {"name": "slurmk-42", "namespace": "slurmk"}, "data": {}})
        await it.begin()
        await it.launcher.launch(RUNNING, FILES)
        [failed] = await it.heard(LaunchFailed)
        assert isinstance(failed, LaunchFailed)
        assert (failed.message, failed.retry) == ("Secret slurmk/slurmk-42 is there and not slurmk's", True)
        await it.launcher.terminate(42, 0, 0, ("n1",))
        await it.heard(NodesReleased)
        await asyncio.sleep(0.8)
        assert it.names(SECRET) == ["slurmk-42"]


@in_a_loop
async def test_a_refusal_is_told_and_what_there_is_removed(tmp_path: Path) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse | None:
        pods = request.method == "POST" and request.path.endswith("/pods")
        return status(403, "Forbidden", "exceeded quota: team") if pods else None

    async with story(tmp_path) as it:
        await it.begin()
        it.server.faults.append(refuse)
        await it.launcher.launch(RUNNING, FILES)
        [failed] = await it.heard(LaunchFailed)
        assert isinstance(failed, LaunchFailed)
        assert (failed.message, failed.retry, failed.nodes) == ("exceeded quota: team", True, ())
        await it.launcher.terminate(42, 0, 0, ("n1",))
        [released] = await it.heard(NodesReleased)
        assert isinstance(released, NodesReleased)
        assert released.nodes == ("n1",)
        await it.gone()


@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request: spec.runtimeRef: Invalid value: {}: '
        'TrainingRuntime.trainer.kubeflow.org "slurmk-42" not found: specified trainingRuntime must be created',
        "admission webhook \"vtrainjob.kb.io\" denied the request: runtime 'slurmk-42' not found",
    ],
    ids=["Trainer", "Kueue"],
)
@in_a_loop
async def test_webhooks_may_not_have_seen_the_runtime_yet(tmp_path: Path, message: str) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse | None:
        made = request.method == "POST" and request.path.endswith("/trainjobs")
        return status(403, "Forbidden", message) if made else None

    async with story(tmp_path, kind=Kind.TRAINJOB) as it:
        await it.begin()
        it.server.faults.append(refuse)
        await it.launcher.launch(TWO, FILES)
        assert not it.server.faults
        assert not [event for event in it.told if isinstance(event, LaunchFailed)]
        assert len(it.server.objects[str(TRAIN_JOB)]) == 1


@in_a_loop
async def test_a_job_without_an_image_is_not_tried_again(tmp_path: Path) -> None:
    async with story(tmp_path, image="") as it:
        await it.begin()
        await it.launcher.launch(RUNNING, FILES)
        [failed] = await it.heard(LaunchFailed)
        assert isinstance(failed, LaunchFailed)
        assert not failed.retry
        assert "no image" in failed.message


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "CreateContainerConfigError"])
@in_a_loop
async def test_containers_that_will_not_come_up(tmp_path: Path, reason: str) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(RUNNING, FILES)
        it.change("slurmk-42-n0", "Pending", container={"state": {"waiting": {"reason": reason, "message": "no"}}})
        [failed] = await it.heard(LaunchFailed)
        assert isinstance(failed, LaunchFailed)
        assert (failed.message, failed.retry) == (f"{reason}: no", True)


@in_a_loop
async def test_a_pod_that_is_not_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    async with story(tmp_path, admission_timeout=0.3) as it:
        await it.begin()
        await it.launcher.launch(RUNNING, FILES)
        pod = it.pod("slurmk-42-n0")
        waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes are available"}
        it.server.put(POD, {**pod, "status": {"phase": "Pending", "conditions": [waits]}})
        [failed] = await it.heard(LaunchFailed)
        assert isinstance(failed, LaunchFailed)
        assert (failed.message, failed.retry) == ("0/4 nodes are available", True)


@in_a_loop
async def test_a_real_pod_whose_stepd_does_not_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(module, "STEPD_SECONDS", 0.3)
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(RUNNING, FILES)
        it.change("slurmk-42-n0", "Running", container={"containerID": "containerd://x"})
        [failed] = await it.heard(LaunchFailed)
        assert isinstance(failed, LaunchFailed)
        assert "no stepd of the job has come to 10.0.0.1:6817" in failed.message


# ------------------------------------------------------------------------------------------------ others' hands


async def started(it: Story, one: Job = RUNNING) -> None:
    await it.begin()
    await it.launcher.launch(one, FILES)
    for name in it.names():
        it.change(name, "Running")
    await it.heard(JobStarted)


@in_a_loop
async def test_a_pod_deleted_by_hand_is_preemption(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await started(it)
        it.server.remove(POD, "slurmk-42-n0", "slurmk")
        preempted, _ = await it.heard(Preempted, NodesReleased)
        assert isinstance(preempted, Preempted)
        assert preempted.message == "Pod slurmk-42-n0 was deleted"
        await it.gone()


@in_a_loop
async def test_deleting_the_secret_withdraws_the_job(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await started(it)
        it.server.remove(SECRET, "slurmk-42", "slurmk")
        it.server.remove(POD, "slurmk-42-n0", "slurmk")  # as garbage collection does
        withdrawn, _ = await it.heard(Withdrawn, NodesReleased)
        assert isinstance(withdrawn, Withdrawn)
        assert withdrawn.message == "Secret slurmk-42 was deleted"


@in_a_loop
async def test_a_pod_on_a_lost_node_is_a_node_failure(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await started(it)
        it.nodes.report(NodeChanged(1.0, Node("n1", state=NodeState.DOWN)))
        await it.heard(NodeChanged)
        it.server.remove(POD, "slurmk-42-n0", "slurmk")
        failed, _ = await it.heard(NodeFailed, NodesReleased)
        assert isinstance(failed, NodeFailed)
        assert failed.nodes == ("n1",)


@in_a_loop
async def test_nobody_waits_for_pods_on_a_lost_node(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await started(it, TWO)
        it.nodes.report(NodeChanged(1.0, Node("n2", state=NodeState.DOWN)))
        await it.heard(NodeChanged)
        await it.launcher.terminate(42, 0, 30, ("n1", "n2"))
        await it.until(
            lambda: {node for each in it.told if isinstance(each, NodesReleased) for node in each.nodes} == {"n1", "n2"}
        )
        await it.gone()


@pytest.mark.parametrize("changed", [{"slurmk.org/controller": "mallory"}, {"slurmk.org/job-id": "77"}])
@in_a_loop
async def test_labels_that_were_taken_away_are_put_back(tmp_path: Path, changed: dict[str, str]) -> None:
    async with story(tmp_path) as it:
        await started(it)
        pod = it.pod("slurmk-42-n0")
        right = dict(pod["metadata"]["labels"])
        it.server.put(POD, {**pod, "metadata": {**pod["metadata"], "labels": {**right, **changed}}})
        await it.until(lambda: it.pod("slurmk-42-n0")["metadata"]["labels"] == right)
        it.change("slurmk-42-n0", "Succeeded", 0)
        await it.heard(BatchEnded, NodesReleased)


@in_a_loop
async def test_pods_that_nobody_knows_are_removed(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await started(it)
        pod = it.pod("slurmk-42-n0")
        labels = {**pod["metadata"]["labels"], "slurmk.org/job-id": "77"}
        copy = {"name": "slurmk-77-n0", "namespace": "slurmk", "labels": labels}  # no job of ours owns it
        it.server.put(POD, {**pod, "metadata": copy})
        await it.until(lambda: it.names() == ["slurmk-42-n0"])
        assert it.told == []


@in_a_loop
async def test_jobs_of_a_namesake_in_another_namespace_are_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with story(tmp_path) as it:
        await started(it)
        pod = it.pod("slurmk-42-n0")
        for number in ("42", "77"):
            labels = {**pod["metadata"]["labels"], "slurmk.org/job-id": number}
            metadata = {"name": f"slurmk-{number}-n0", "namespace": "other", "labels": labels}
            it.server.put(POD, {**pod, "metadata": metadata, "status": {"phase": "Failed"}})
        await it.until(lambda: "in namespace other bear this controller's name" in caplog.text)
        it, never = await again(it, RUNNING)
        assert never == frozenset()
        it.change("slurmk-42-n0", "Succeeded", 0)
        await it.heard(BatchEnded, NodesReleased)
        assert {("other", "slurmk-42-n0"), ("other", "slurmk-77-n0")} <= set(it.server.objects[str(POD)])
        await it.launcher.stop(end_jobs=False)


# ------------------------------------------------------------------------------------------------ a pod with a stepd


@in_a_loop
async def test_stepd_says_how_it_went_and_the_pod_when_it_is_gone(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(RUNNING, FILES)
        it.change("slurmk-42-n0", "Running", container={"containerID": "containerd://x"})
        report = it.launcher._link.report
        report(JobStarted(1.0, 42, 0))
        report(StepStarted(1.0, 0, Step(42, 0, "s", JobState.RUNNING, 1)))
        report(BatchEnded(2.0, 42, 0, 7 << 8))
        assert report(NodesReleased(2.0, 42, 0, ("n1",))) is None
        await it.heard(JobStarted, StepStarted, BatchEnded)
        await asyncio.sleep(0.05)
        assert it.names() == ["slurmk-42-n0"]
        it.change("slurmk-42-n0", "Failed", 7, container={"containerID": "containerd://x"})
        await it.heard(NodesReleased)
        await it.gone()


@in_a_loop
async def test_stepd_cannot_free_a_node_by_failing(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(RUNNING, FILES)
        it.launcher._link.report(LaunchFailed(1.0, 42, 0, "no such directory", ("n1",)))
        [failed] = await it.heard(LaunchFailed)
        assert isinstance(failed, LaunchFailed)
        assert failed.nodes == ()


@in_a_loop
async def test_the_script_of_a_deleted_pod_does_not_decide(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await started(it)
        attempt = it.launcher._link.attempts[42, 0]
        attempt.deleted.add("n1")
        it.launcher._link.report(BatchEnded(2.0, 42, 0, 15))
        pod = it.pod("slurmk-42-n0")
        gone = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for others"}
        metadata = {**pod["metadata"], "deletionTimestamp": "2026-11-30T10:00:30Z"}
        it.server.put(POD, {**pod, "metadata": metadata, "status": {**pod["status"], "conditions": [gone]}})
        [preempted] = await it.heard(Preempted)
        assert isinstance(preempted, Preempted)
        assert preempted.message == "PreemptionByScheduler: for others"


# ------------------------------------------------------------------------------------------------ after a restart


async def again(it: Story, *jobs: Job) -> tuple[Story, frozenset[tuple[int, int]]]:
    """Another controller in the place of this one, which was killed."""
    await it.launcher.stop(end_jobs=False)
    old = it.launcher
    launcher = KubernetesLauncher(
        old._api, cast(Cluster, it.nodes), SITE, old._directory, "10.0.0.1:6817", old._pods_of, old._queue_labels
    )
    other = Story(it.server, launcher, it.nodes)
    return other, await other.begin(*jobs)


@in_a_loop
async def test_a_job_that_runs_is_taken_up(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await started(it)
        it, never = await again(it, RUNNING)
        assert never == frozenset()
        assert it.launcher._link.attempts[42, 0].secret
        it.change("slurmk-42-n0", "Succeeded", 0)
        await it.heard(BatchEnded, NodesReleased)
        await it.gone()
        await it.launcher.stop(end_jobs=False)


@pytest.mark.parametrize("made", [0, 1, 2, 3])
@in_a_loop
async def test_a_launch_that_was_broken_off_is_finished(tmp_path: Path, made: int) -> None:
    new = replace(TWO, flags=NEW)
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(new, FILES)
        for resource, name in [(POD, "slurmk-42-n1"), (POD, "slurmk-42-n0"), (SECRET, "slurmk-42")][: 3 - made]:
            it.server.remove(resource, name, "slurmk")
        await it.launcher.stop(end_jobs=False)
        uids = {name: it.pod(name)["metadata"]["uid"] for name in it.names()}
        it, never = await again(it, new)
        assert never == ({(42, 0)} if made < 3 else set())
        if never:
            await it.launcher.launch(new, FILES)
        assert it.names() == ["slurmk-42-n0", "slurmk-42-n1"]
        assert {name: it.pod(name)["metadata"]["uid"] for name in uids} == uids
        await it.launcher.stop(end_jobs=False)


@in_a_loop
async def test_what_happened_meanwhile_is_told(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await started(it)
        await it.launcher.stop(end_jobs=False)
        it.change("slurmk-42-n0", "Failed", 9)
        it, _ = await again(it, RUNNING)
        ended, _ = await it.heard(BatchEnded, NodesReleased)
        assert isinstance(ended, BatchEnded)
        assert ended.exit_code == 9 << 8
        await it.launcher.stop(end_jobs=False)


@pytest.mark.parametrize(("also", "event"), [(None, Preempted), (SECRET, Withdrawn)])
@in_a_loop
async def test_what_was_deleted_meanwhile_is_noticed(tmp_path: Path, also: Any, event: type[Event]) -> None:
    async with story(tmp_path) as it:
        await started(it)
        await it.launcher.stop(end_jobs=False)
        it.server.remove(POD, "slurmk-42-n0", "slurmk")
        if also is not None:
            it.server.remove(also, "slurmk-42", "slurmk")
        it, never = await again(it, RUNNING)
        assert never == frozenset()
        assert type((await it.heard(*([event] if also else [event, NodesReleased])))[0]) is event
        await it.launcher.stop(end_jobs=False)


@in_a_loop
async def test_strangers_are_removed_and_jobs_on_their_way_out_are_helped(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await started(it)
        it, _ = await again(it)
        await it.gone()
        await it.launcher.stop(end_jobs=False)
    async with story(tmp_path) as it:
        await started(it)
        ending = replace(RUNNING, state=JobState.CANCELLED, flags=JobFlag.COMPLETING)
        it, never = await again(it, ending)
        assert never == frozenset()
        await it.launcher.terminate(42, 0, 30, ("n1",))
        await it.heard(NodesReleased)
        await it.gone()
        await it.launcher.stop(end_jobs=False)


# ------------------------------------------------------------------------------------------------ the end


@in_a_loop
async def test_a_pod_that_the_watch_has_not_told_of_is_deleted_too(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.launch(RUNNING, FILES)
        presence = it.launcher._presences[42, 0]
        presence.pods.clear()
        presence.places.clear()
        it.server.forget_history()
        await it.launcher.terminate(42, 0, 30, ("n1",))
        await it.heard(NodesReleased)
        await it.gone()


@in_a_loop
async def test_unknown_jobs_hold_nothing(tmp_path: Path) -> None:
    async with story(tmp_path) as it:
        await it.begin()
        await it.launcher.terminate(7, 0, 30, ("n1", "n2"))
        [released] = await it.heard(NodesReleased)
        assert isinstance(released, NodesReleased)
        assert released.nodes == ("n1", "n2")
        await it.launcher.signal(7, 0, 15)
        await it.launcher.update_limit(7, 0, None)


@in_a_loop
async def test_finished_workloads_stay_as_long_as_the_site_says(tmp_path: Path) -> None:
    async with story(tmp_path, keep_finished=2) as it:
        await started(it)
        it.change("slurmk-42-n0", "Succeeded", 0)
        await it.heard(BatchEnded, NodesReleased)
        await asyncio.sleep(1)
        assert it.names() == ["slurmk-42-n0"]
        await it.gone()


@in_a_loop
async def test_many_are_removed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "COLLECT_SECONDS", 0.5)
    async with story(tmp_path) as it:
        await it.begin()
        many = [replace(RUNNING, job_id=number) for number in range(1, 21)]
        for one in many:
            await it.launcher.launch(one, FILES)
        it.server.requests.clear()
        for one in many[:-1]:
            it.change(f"slurmk-{one.job_id}-n0", "Succeeded", 0)
        await asyncio.sleep(1.0)
        assert len(it.names()) == 20  # one has not begun, and goes first
        it.change("slurmk-20-n0", "Running")
        await it.until(lambda: it.names() == ["slurmk-20-n0"] and it.names(SECRET) == ["slurmk-20"])
        assert len([line for line in it.server.requests if line.startswith("DELETE")]) <= 4


@in_a_loop
async def test_ending_all_jobs_leaves_nothing(tmp_path: Path) -> None:
    async with story(tmp_path, kind=Kind.NATIVE) as it:
        await started(it, TWO)
        await it.launcher.stop(end_jobs=True)
        assert not it.names()
        assert not it.names(SECRET)
        assert not it.names(POD_GROUP)
