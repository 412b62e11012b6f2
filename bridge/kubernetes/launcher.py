"""Jobs as Kubernetes workloads: makes them, watches their pods, and tells the controller what became of them.

What is believed, and whom:

- stepd says how the script went. Its word on the end is taken, unless its pod is being deleted: then whoever deletes the pod
  decides (``bridge.kubernetes.endings``), and the script's exit code is only what the deletion did to it.
- Kubernetes says when a node is free: when the pod has ended or is gone, whatever stepd says. So the planner never counts on
  room that kube-scheduler does not see yet.
- A pod that ends without a word of stepd (killed, or on a simulated node) ends the job by its status alone.

Nothing is started twice. Objects have the attempt's name, so making them again finds them; the Secret, made first, owns all
the others, so whatever happens to this process, deleting it deletes everything. After a restart the cluster's objects are
compared with the jobs of the store (``recover``); then the watch goes on.

The API server may be away at any time. Launches and deletions wait for it; nobody is told of an ending that was not seen.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import shlex
import time
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bridge.archive import write_archive, write_folder
from bridge.kubernetes import endings, labels
from bridge.kubernetes.api import Api, ChangeType
from bridge.kubernetes.cluster import Cluster
from bridge.kubernetes.endings import End, Ending, Stage, ending_of_pod, stage_of
from bridge.kubernetes.errors import ApiError, Unavailable
from bridge.kubernetes.kinds.native import priority_class_of, with_preemption_policy
from bridge.kubernetes.old_programs import OldPrograms
from bridge.kubernetes.presence import Key, Presence, Told, attempt_of_pod
from bridge.kubernetes.programs import described, names_of_groups, programs
from bridge.kubernetes.removal import Remains, Removal
from bridge.kubernetes.render import Context, RenderError, Workload, render, workload_name
from bridge.kubernetes.resources import (
    COSCHEDULING_POD_GROUP,
    EVENT,
    JOB,
    JOB_SET,
    KUEUE_WORKLOAD,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    SECRET,
    TRAIN_JOB,
    VOLCANO_JOB,
    VOLCANO_POD_GROUP,
    Manifest,
    Reference,
    Resource,
    reference_of,
    resource_of,
)
from bridge.kubernetes.settings import Kind, PodSettings, QueueSystem, Settings
from bridge.kubernetes.templating import TemplateError, Templates
from bridge.launcher import Report
from bridge.link import RESIZE, Attempt, Seat, StepdLink, attempt_of, attempt_secret, step_secret
from bridge.local.interpreter import OPTIONS, find_interpreter
from slurmk.core.events import (
    BatchEnded,
    Event,
    JobStarted,
    KillFlag,
    LaunchFailed,
    NodeChanged,
    NodeFailed,
    NodesReleased,
    Preempted,
    SiteChanged,
    Withdrawn,
)
from slurmk.model.job import Job, JobFiles
from slurmk.model.node import Node
from slurmk.model.site import Site
from slurmk.model.states import JobFlag, NodeState

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
"""How often attempts that are not up, or late to end, are looked at."""

LAST_WORDS = 3.0
"""Seconds in which the last reports of a stepd whose pod has ended may still arrive, or the reason for a pod's deletion."""

STEPD_SECONDS = 60.0
"""How long all pods of a job may run before its stepds have begun."""

STUBBORN_SECONDS = 15.0
"""Seconds beyond KillWait after which a pod is deleted whose stepd was told to end and has not."""

AWAY_SECONDS = 1.0
"""Pause between attempts while the API server is away."""

PROGRAMS_SECONDS = 60.0
"""How long a namespace is believed to have the programs, and a priority class its policy."""

FRESH_SECONDS = 60.0
"""For so long after its launch, a job that has not begun goes before what is over."""

RUNTIME_SECONDS = 30.0
"""How long webhooks may take to see the TrainingRuntime that was made a moment ago."""

NEVER = "Never"
"""The preemptionPolicy of a priority class whose pods preempt nobody."""

END_SECONDS = 30.0
"""How long ``stop`` waits for jobs that it ends."""

MADE_OF: Mapping[Kind, tuple[Resource, ...]] = {
    Kind.PODS: (),
    Kind.NATIVE: (POD_GROUP,),
    Kind.NATIVE_JOB: (POD_GROUP, JOB),
    Kind.JOBSET: (JOB_SET,),
    Kind.TRAINJOB: (TRAIN_JOB,),
    Kind.VOLCANO: (VOLCANO_POD_GROUP,),
    Kind.VOLCANO_JOB: (VOLCANO_JOB,),
    Kind.COSCHEDULING: (COSCHEDULING_POD_GROUP,),
}
"""What jobs of each kind may have beside Secret and pods, by the workload's name: for those that another process made."""

CONTROLLED = frozenset({Kind.NATIVE_JOB, Kind.JOBSET, Kind.TRAINJOB, Kind.VOLCANO_JOB})
"""Kinds whose pods a controller makes."""


class NotOursError(ApiError):
    """An object is there by the name of one of ours, and somebody else has made it."""


class KubernetesLauncher:
    """Implements bridge.launcher.Launcher. ``address`` is the HOST:PORT at which pods reach the controller; ``directory`` is
    the cluster's own on this machine. ``pods_of`` and ``queue_labels`` are as in ``render.Context``."""

    def __init__(
        self,
        api: Api,
        cluster: Cluster,
        site: Site,
        directory: Path,
        address: str,
        pods_of: Callable[[Settings, str], PodSettings],
        queue_labels: Callable[[Job, Settings], Mapping[str, str]],
    ) -> None:
        self._api = api
        self._cluster = cluster
        self._site = site
        self._directory = Path(directory).absolute()
        self._address = address
        self._pods_of = pods_of
        self._queue_labels = queue_labels
        self._templates = Templates(cluster.settings.templates)
        self._controller: Report = _nobody
        self._link = StepdLink(time.time, self._stepd_lost, self._stepd_released)
        self._link.report = self._from_stepd
        self._presences: dict[Key, Presence] = {}
        self._launching: set[Key] = set()  # whose objects are being made
        self._removal = Removal(api, site.cluster_name, self._removed, self._has_fresh)
        self._old_programs = OldPrograms(api, site.cluster_name, lambda: self.namespaces, self._has_starting)
        self._namesakes: set[str] = set()  # namespaces of another's jobs under this cluster's name
        self._whose: dict[str, Key] = {}  # which attempt a pod belongs to, by uid
        self._down: set[str] = set()
        self._groups: dict[tuple[int, ...], Mapping[int, str]] = {}
        self._programs: dict[str, float] = {}
        self._never_preempts: dict[str, tuple[float, bool]] = {}  # priority classes, and until when that is believed
        self._first_list: set[str] | None = set()  # uids of the watch's first list, until it is complete
        self._watch = api.watch(POD, selector=labels.selector(site.cluster_name))
        self._interpreter = ""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping = False

    @property
    def settings(self) -> Settings:
        """slurmk.yaml as it is now."""
        return self._cluster.settings

    @property
    def program(self) -> Path:
        """The folder from which srun on this host runs its local part."""
        return self._directory / "lib" / "stepd"

    # ---------------------------------------------------------------- bridge.launcher.Launcher

    async def start(self, report: Report) -> Sequence[Node]:
        """Raises OSError or InterpreterError when stepd's programs cannot be put in place, and the API's errors."""
        self._controller = report
        await asyncio.to_thread(self._install)
        return await self._cluster.start(self._from_cluster)

    def reconfigure(self, site: Site) -> Sequence[Node]:
        nodes = self._cluster.reconfigure(site)
        self._site = site
        self._templates = Templates(self.settings.templates)
        return nodes

    async def recover(self, jobs: Iterable[Job]) -> frozenset[Key]:
        pods, secrets = await self._present()
        never = set()
        for job in jobs:
            if job.allocation is not None and not self._adopt(job, pods.pop(_key(job), []), secrets.pop(_key(job), None)):
                never.add(_key(job))
        for key in {*pods, *secrets}:
            self._remove_stranger(key, pods.get(key, ()), secrets.get(key))
        self._spawn(self._follow())
        self._spawn(self._look())
        self._spawn(self._removal.run())
        self._spawn(self._old_programs.run())
        return frozenset(never)

    async def launch(self, job: Job, files: JobFiles) -> None:
        assert job.allocation is not None
        try:
            workload = render(job, files, self._site, self.settings, await self._context(job))
        except (RenderError, TemplateError) as error:
            self._tell(LaunchFailed(time.time(), *_key(job), str(error), job.allocation.nodes))
            return
        presence = self._expect(job, workload, files)
        self._launching.add(presence.key)
        try:
            await self._until_there(lambda: self._make(presence, workload))
        except NotOursError as error:
            self._forget(presence)
            self._tell(LaunchFailed(time.time(), *presence.key, endings.one_line(str(error)), presence.nodes, retry=True))
        except ApiError as error:
            log.warning("job %d was refused: %s", job.job_id, error)
            self._give_up(presence, endings.one_line(str(error)))
        else:
            presence.created = self._now()
        finally:
            self._launching.discard(presence.key)

    async def signal(
        self, job_id: int, restart: int, signal: int, step_id: int | None = None, flags: KillFlag = KillFlag.NONE
    ) -> None:
        self._link.signal((job_id, restart), signal, step_id, int(flags))

    async def terminate(
        self,
        job_id: int,
        restart: int,
        kill_wait: int,
        nodes: Sequence[str],
        cause: str = "",
        ended: Mapping[str, int] | None = None,
    ) -> None:
        presence = self._presences.get((job_id, restart))
        if presence is None:
            self._tell(NodesReleased(time.time(), job_id, restart, tuple(nodes)))
            return
        lost = [node for node in presence.nodes if node in self._down]
        whole = {*nodes, *lost, *presence.released} >= set(presence.nodes)
        presence.terminating = presence.terminating or whole
        free = {*presence.free, *lost}
        left = [node for node in nodes if node not in free]
        apart = [node for node in left if not self._has_stepd(presence, node)]
        self._link.terminate(presence.key, kill_wait, left, cause, ended)
        if whole and apart:
            self._spawn(self._delete(presence, kill_wait))
        elif apart:
            self._spawn(self._delete_pods(presence, apart, kill_wait))
        elif left:
            presence.overdue = self._now() + kill_wait + STUBBORN_SECONDS
        self._release(presence, [*(node for node in nodes if node in free), *lost])

    async def shrink(self, job_id: int, restart: int, nodes: Sequence[str], lost: Sequence[str]) -> None:
        """The pods of nodes that are given back end of their own accord: deleted, they would be made again."""
        self._link.shrink((job_id, restart), nodes)
        self._link.terminate((job_id, restart), 0, lost, RESIZE)

    async def update_limit(self, job_id: int, restart: int, end_time: int | None) -> None:
        self._link.limit((job_id, restart), end_time)

    async def ask(
        self, job_id: int, restart: int, nodes: Sequence[str], question: Mapping[str, Any]
    ) -> Mapping[str, Mapping[str, Any]]:
        return await self._link.ask((job_id, restart), nodes, question)

    async def cordon(self, node: str, cordoned: bool, reason: str) -> None:
        await self._cluster.cordon(node, cordoned, reason)

    async def stop(self, *, end_jobs: bool) -> None:
        if end_jobs:
            await self._end_jobs()
        self._stopping = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _end_jobs(self) -> None:
        """End all that still runs, and leave nothing behind, as far as the time allows."""
        for presence in list(self._presences.values()):
            await self.terminate(*presence.key, 0, presence.nodes)
        end = self._now() + END_SECONDS
        while self._presences and self._now() < end:  # noqa: ASYNC110  (a bounded wait at the very end)
            await asyncio.sleep(0.05)
        for presence in list(self._presences.values()):
            self._removal.add(self._remains(presence))
        await self._removal.drain(END_SECONDS)

    # ---------------------------------------------------------------- for the daemon

    async def attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: str) -> None:
        """Serve a connection that said it is a stepd's."""
        await self._link.attach(reader, writer, hello)

    def access(self, job: Job, secret: bytes) -> Mapping[str, str]:
        """Environment by which srun's local part, run by a process of the job's user, finds the job's step manager."""
        attempt = self._link.attempts.get(_key(job))
        own = attempt.secret if attempt is not None else attempt_secret(secret, job.job_id, job.restarts)
        return {
            "SLURMK_SRUN": shlex.join([self._interpreter, *OPTIONS, str(self.program), "srun"]),
            "SLURMK_STEP_MANAGER": attempt.manager if attempt is not None else "",
            "SLURMK_JOB_SECRET": step_secret(own),
        }

    # ---------------------------------------------------------------- launching

    async def _context(self, job: Job) -> Context:
        return Context(
            controller=self._address,
            nodes=self._cluster.manifests,
            templates=self._templates,
            pods_of=self._pods_of,
            queue_labels=self._queue_labels,
            group_names=await self._group_names(job),
            slices=self._cluster.slices,
        )

    async def _group_names(self, job: Job) -> Mapping[int, str]:
        """A directory service may be asked, so in a thread, and once for each set of groups."""
        groups = (job.credentials.group_id, *job.credentials.groups)
        if groups not in self._groups:
            self._groups[groups] = await asyncio.to_thread(names_of_groups, groups)
        return self._groups[groups]

    def _expect(self, job: Job, workload: Workload, files: JobFiles) -> Presence:
        """Be ready for the pods of an attempt and their stepds, before there are any."""
        key = _key(job)
        assert job.allocation is not None
        references = tuple(reference_of(each) for each in workload.objects if resource_of(each) is not POD)
        presence = self._presences.get(key)
        if presence is None:
            presence = Presence(*key, workload.namespace, workload.name, job.allocation.nodes)
            self._presences[key] = presence
        presence.references, presence.guessed = references, False
        presence.made_pods = bool(workload.pods)
        if key not in self._link.attempts:
            secret = attempt_secret(files.secret, *key)
            description = _packed(workload.secret) or _Description(job, files, self._site)
            self._link.expect(
                attempt_of(*key, secret, description, job.allocation.nodes, pods=True, most_steps=self._site.maximum_step_count)
            )
        return presence

    async def _make(self, presence: Presence, workload: Workload) -> None:
        """Make all objects that are not there yet. Raises ApiError and Unavailable."""
        await self._put_programs(workload.namespace)
        secret = await self._create(workload.secret)
        objects = workload.owned(secret["metadata"]["uid"])
        for manifest in objects:
            if resource_of(manifest) is not POD:
                await self._create(await self._agreed(manifest))
        pods = [self._create_pod(manifest, presence, workload) for manifest in objects if resource_of(manifest) is POD]
        if len(pods) == 1:
            await pods[0]
        elif pods:
            await _all(pods)

    async def _create_pod(self, manifest: Manifest, presence: Presence, workload: Workload) -> Manifest:
        """Make a pod. That it may be there is noted first: whether a request that got no answer was done, nobody knows."""
        name = manifest["metadata"]["name"]
        presence.names |= {node: pod for node, pod in workload.pods.items() if pod == name}
        return await self._create(manifest)

    async def _agreed(self, manifest: Manifest) -> Manifest:
        """The object; a PodGroup says of preemption what its priority class says."""
        name = priority_class_of(manifest) if resource_of(manifest) is POD_GROUP else ""
        if name not in self._never_preempts or self._never_preempts[name][0] <= self._now():
            policy = ""
            with contextlib.suppress(ApiError):
                policy = (await self._api.get(Reference(PRIORITY_CLASS, name))).get("preemptionPolicy", "") if name else ""
            self._never_preempts[name] = (self._now() + PROGRAMS_SECONDS, policy == NEVER)
        return with_preemption_policy(manifest, NEVER) if self._never_preempts[name][1] else manifest

    async def _create(self, manifest: Manifest) -> Manifest:
        """Make an object, or find the one that this attempt has made before. What an attempt of the same number left behind
        that is no longer known (of a controller that lost its state) is deleted first."""
        patience = self._now() + RUNTIME_SECONDS
        while True:
            try:
                return await self._api.create(manifest)
            except ApiError as error:
                if _lacks_runtime(manifest, error) and self._now() < patience:
                    await asyncio.sleep(LOOK_SECONDS)
                    continue
                if not error.already_exists:
                    raise
            try:
                found = await self._api.get(manifest)
            except ApiError as error:
                if not error.not_found:
                    raise
                continue
            if _is_same(found, manifest):
                return found
            if self._is_foreign(found):
                raise NotOursError(409, "Conflict", f"{reference_of(manifest)} is there and not slurmk's")
            log.warning("%s is there and of no job that is known; deleting it", reference_of(manifest))
            await self._api.delete(found, precondition_uid=found["metadata"]["uid"])
            await asyncio.sleep(LOOK_SECONDS)

    def _is_foreign(self, manifest: Manifest) -> bool:
        own = labels.managed(self._site.cluster_name)
        found = manifest["metadata"].get("labels") or {}
        return any(found.get(name) != value for name, value in own.items())

    async def _put_programs(self, namespace: str) -> None:
        if self._programs.get(namespace, 0.0) > self._now():
            return
        with _already_there():
            await self._api.create(programs(namespace, self._site.cluster_name))
        self._programs[namespace] = self._now() + PROGRAMS_SECONDS

    def _give_up(self, presence: Presence, message: str, *, retry: bool = True) -> None:
        """It cannot be launched; the controller then has what there is of it deleted."""
        if presence.told is Told.NOTHING and not presence.terminating:
            presence.told = Told.ENDED
            presence.on_disk = self._tell(LaunchFailed(time.time(), *presence.key, message, (), retry))

    # ---------------------------------------------------------------- after a restart

    async def _present(self) -> tuple[dict[Key, list[Manifest]], dict[Key, Manifest]]:
        """Our pods and Secrets by attempt; waits for the API server."""
        own = labels.selector(self._site.cluster_name)
        pods: dict[Key, list[Manifest]] = {}
        secrets: dict[Key, Manifest] = {}
        namespaces = self.namespaces
        for manifest in await self._until_there(lambda: self._api.list(POD, selector=own)):
            key = attempt_of_pod(manifest)
            if key is not None and manifest["metadata"]["namespace"] in namespaces:
                pods.setdefault(key, []).append(manifest)
        for namespace in namespaces:
            for manifest in await self._until_there(lambda where=namespace: self._api.list(SECRET, where, own)):  # type: ignore[misc]
                key = labels.attempt_of(manifest["metadata"]["labels"])
                if key is not None:
                    secrets[key] = manifest
        return pods, secrets

    @property
    def namespaces(self) -> Sequence[str]:
        """Where the jobs' objects are, as slurmk.yaml says now."""
        settings = self.settings
        named = (self._pods_of(settings, partition.name).namespace for partition in self._site.partitions)
        return list(dict.fromkeys([settings.namespace, *(name for name in named if name)]))

    def _adopt(self, job: Job, pods: Sequence[Manifest], secret: Manifest | None) -> bool:
        """Take up an attempt that another process launched; False when it is to be launched (again, which finds what is
        there)."""
        assert job.allocation is not None
        new = bool(job.flags & JobFlag.CONFIGURING)
        ending = bool(job.flags & JobFlag.COMPLETING)
        if secret is None and not pods:
            if not new and not ending:
                message = f"all objects of job {job.job_id} were deleted while the controller was away"
                self._tell(Withdrawn(time.time(), *_key(job), message, job.allocation.nodes))
            return not new
        presence = self._adopted(job, pods, secret)
        if new and len(pods) < len(job.allocation.nodes):
            return False
        presence.created = self._now()
        presence.told = Told.ENDED if ending else Told.NOTHING if new else Told.BEGAN
        self._spawn(self._catch_up(presence))
        return True

    def _adopted(self, job: Job, pods: Sequence[Manifest], secret: Manifest | None) -> Presence:
        assert job.allocation is not None
        settings = self._pods_of(self.settings, job.allocation.partition)
        anything = secret or pods[0]
        namespace, name = anything["metadata"]["namespace"], workload_name(job)
        presence = Presence(*_key(job), namespace, name, job.allocation.nodes)
        presence.references = tuple(Reference(resource, name, namespace) for resource in MADE_OF[settings.kind])
        presence.guessed = True
        presence.made_pods = settings.kind not in CONTROLLED
        self._presences[presence.key] = presence
        for pod in pods:
            presence.see(pod)
            self._whose[pod["metadata"]["uid"]] = presence.key
        known = _secret_of(secret)
        if known is not None and secret is not None:
            description = _packed(secret) or _unknown
            attempt = attempt_of(
                *presence.key, known, description, job.allocation.nodes, pods=True, most_steps=self._site.maximum_step_count
            )
            attempt.started = not job.flags & JobFlag.CONFIGURING
            self._link.expect(attempt)
        return presence

    async def _catch_up(self, presence: Presence) -> None:
        """See what adopted pods have come to; a node of a job that had begun and has no pod any more has lost it."""
        for uid in list(presence.pods):
            self._observe(presence, presence.pods[uid], vanished=False)
        if presence.told is Told.BEGAN and not presence.terminating:
            lost = [node for node in presence.nodes if presence.pod_of(node) is None]
            if lost:
                message = f"Pod of {lost[0]} was deleted"
                ending = await self._who_deleted(presence, None, Ending(End.DELETED, message))
                if presence.told is Told.BEGAN and ending is not None:
                    self._end(presence, lost[0], ending)
                self._release(presence, lost)

    def _remove_stranger(self, key: Key, pods: Iterable[Manifest], secret: Manifest | None) -> None:
        """Nobody wants this attempt: its job is over or was never heard of here."""
        everything = [*pods, *([secret] if secret else [])]
        if key in self._presences or key in self._removal or not everything:
            return
        metadata = everything[0]["metadata"]
        name = f"slurmk-{key[0]}-{key[1]}" if key[1] else f"slurmk-{key[0]}"
        settings = self._pods_of(self.settings, metadata["labels"].get(labels.PARTITION, ""))
        objects = tuple(Reference(resource, name, metadata["namespace"]) for resource in MADE_OF[settings.kind])
        names = tuple(pod["metadata"]["name"] for pod in pods)
        ended = all(stage_of(pod) is Stage.ENDED for pod in pods)
        log.info("removing what is left of job %d, attempt %d", *key)
        self._removal.add(Remains(key, metadata["namespace"], name, objects, names), settings.keep_finished if ended else 0)

    # ---------------------------------------------------------------- watching pods

    async def _follow(self) -> None:
        async for change in self._watch:
            try:
                if change.type is ChangeType.SYNCED:
                    self._synced()
                else:
                    self._changed(change.manifest, vanished=change.type is ChangeType.DELETED)
            except Exception:
                log.exception("a change of a pod could not be handled")

    def _changed(self, pod: Manifest, *, vanished: bool) -> None:
        if self._first_list is not None:
            self._first_list.add(pod["metadata"]["uid"])
        key = self._whose.get(pod["metadata"]["uid"]) or attempt_of_pod(pod)
        presence = self._presences.get(key) if key is not None else None
        namespace = pod["metadata"]["namespace"]
        if presence is not None and presence.namespace == namespace:
            self._observe(presence, pod, vanished=vanished)
        elif namespace not in self.namespaces:
            self._tell_of_namesake(namespace)
        elif key is not None and not vanished and not endings.is_deleted(pod):
            self._remove_stranger(key, (pod,), None)

    def _tell_of_namesake(self, namespace: str) -> None:
        if namespace not in self._namesakes:
            self._namesakes.add(namespace)
            log.error(
                "pods in namespace %s bear this controller's name, %s, and are not its own: one of two needs another name",
                namespace,
                self._site.cluster_name,
            )

    def _synced(self) -> None:
        """The first list is complete: what was there when this process began and is not in it has vanished since."""
        seen, self._first_list = self._first_list, None
        if seen is None:
            return
        for presence in list(self._presences.values()):
            for uid, pod in list(presence.pods.items()):
                if uid not in seen:
                    self._observe(presence, pod, vanished=True)

    def _observe(self, presence: Presence, pod: Manifest, *, vanished: bool) -> None:
        """A pod of an attempt is there, has changed, or is gone."""
        uid = pod["metadata"]["uid"]
        if uid in presence.ended:
            return
        if vanished and uid in presence.pods and not pod.get("status"):
            pod = presence.pods[uid]
        node = presence.see(pod)
        self._whose[uid] = presence.key
        if not vanished and presence.is_mislabelled(pod):
            self._spawn(self._mend(presence.pods[uid]))
        self._progress(presence, pod)
        ending = ending_of_pod(pod, vanished=vanished)
        if ending is None:
            return
        if vanished or stage_of(pod) is Stage.ENDED:
            presence.ended.add(uid)
        if presence.told is Told.ENDED or presence.terminating:
            self._release_ended(presence)
        elif uid not in presence.concluding:
            presence.concluding.add(uid)
            self._spawn(self._conclude(presence, uid, node, ending))

    def _progress(self, presence: Presence, pod: Manifest) -> None:
        """How far an attempt has come that has not begun."""
        if presence.told is not Told.NOTHING or presence.terminating:
            return
        failure = endings.hopeless(pod)
        if failure is not None:
            self._give_up(presence, failure.message)
            return
        stages = set(presence.stages().values())
        if Stage.UNBOUND not in stages and presence.bound is None:
            presence.bound = self._now()
        if stages <= {Stage.RUNNING, Stage.ENDED} and presence.running is None:
            presence.running = self._now()
        if presence.running is not None and stages == {Stage.RUNNING} and presence.simulated:
            self._began(presence)

    def _began(self, presence: Presence) -> None:
        """It has begun, without a stepd that could say so: when its last pod was up."""
        presence.told = Told.BEGAN
        pods = [pod for node in presence.nodes if (pod := presence.pod_of(node)) is not None]
        begun = [moment for pod in pods if (moment := endings.started_at(pod)) is not None]
        self._tell(JobStarted(time.time(), *presence.key, begun=max(begun, default=time.time())))

    # ---------------------------------------------------------------- endings

    async def _conclude(self, presence: Presence, uid: str, node: str, ending: Ending) -> None:
        """A pod has ended or is on its way out, and the controller has not heard of it."""
        if ending.end is End.EXITED or ending.end is End.OUT_OF_MEMORY:
            await self._last_words(presence, node)
        elif ending.end is End.DELETED:
            found = await self._who_deleted(presence, presence.pods[uid], ending)
            if found is None:
                presence.ended.discard(uid)
                presence.concluding.discard(uid)
                return
            ending = found
        if presence.told is not Told.ENDED and not presence.terminating:
            self._end(presence, node, ending)
        self._release_ended(presence)

    async def _last_words(self, presence: Presence, node: str) -> None:
        """Wait for what a stepd said before its pod ended."""
        end = self._now() + LAST_WORDS
        while self._may_report(presence, node) and presence.told is not Told.ENDED and self._now() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    def _may_report(self, presence: Presence, node: str) -> bool:
        attempt = self._link.attempts.get(presence.key)
        seat = attempt.seats.get(node) if attempt is not None else None
        return seat is not None and bool(seat.process_id) and not seat.released

    def _end(self, presence: Presence, node: str, ending: Ending) -> None:
        """Tell the controller how an attempt ended, or that one of its nodes did."""
        event = self._event(presence, node, ending)
        if event is None:
            return
        if isinstance(event, BatchEnded) and presence.told is Told.NOTHING:
            self._began(presence)
        if not (isinstance(event, NodeFailed) and len(presence.nodes) > 1):
            presence.told = Told.ENDED
        log.info(
            "job %d: %s on %s: %s", presence.job_id, ending.end.value, node or "no node", ending.message or ending.exit_code
        )
        presence.on_disk = self._tell(event)

    def _event(self, presence: Presence, node: str, ending: Ending) -> Event | None:
        now, key, nodes = time.time(), presence.key, (node,) if node else presence.nodes[:1]
        match ending.end:
            case End.PREEMPTED:
                return Preempted(now, *key, ending.message)
            case End.DELETED:
                return Withdrawn(now, *key, ending.message)
            case End.NOT_LAUNCHED if presence.told is Told.NOTHING:
                return LaunchFailed(now, *key, ending.message, (), ending.retry)
            case End.NODE_FAILED | End.NOT_LAUNCHED:
                return NodeFailed(now, *key, nodes, ending.message)
            case End.TIME_LIMIT:
                return BatchEnded(now, *key, ending.exit_code, timed_out=True)
            case End.OUT_OF_MEMORY:
                return BatchEnded(now, *key, ending.exit_code, out_of_memory=True)
            case End.EXITED:
                return self._exited(presence, node, ending)

    def _exited(self, presence: Presence, node: str, ending: Ending) -> Event | None:
        """A stepd that ends in failure without a word was killed. Without stepds the first pod's end is the job's, and that of
        any other which fails."""
        now, key = time.time(), presence.key
        attempt = self._link.attempts.get(key)
        seat = attempt.seats.get(node) if attempt is not None else None
        if seat is not None and seat.process_id and ending.exit_code:
            return None if seat.released else NodeFailed(now, *key, (node,), f"stepd ended with {ending.exit_code >> 8}")
        if node == presence.first or ending.exit_code:
            return BatchEnded(now, *key, ending.exit_code)
        return None

    async def _who_deleted(self, presence: Presence, pod: Manifest | None, ending: Ending) -> Ending | None:
        """Why a pod is being deleted, as the job's other objects tell. None when it is not: somebody took its labels away, and
        it has them again."""
        if pod is not None and await self._mended(pod):
            return None
        there, gone = await self._objects(presence)
        told = endings.ending_of_objects(there)
        if told is not None:
            return told
        node = presence.node_of(pod["metadata"]["uid"]) if pod is not None else ""
        if node in self._down:
            return Ending(End.NODE_FAILED, ending.message)
        if presence.guessed:
            gone = [reference for reference in gone if reference.resource is SECRET]
        leaving = endings.leaving(there)
        if leaving is not None:
            gone = [reference_of(leaving), *gone]
        if gone:
            return Ending(End.DELETED, f"{gone[0].resource.kind} {gone[0].name} was deleted")
        return Ending(End.PREEMPTED, ending.message)

    async def _mended(self, pod: Manifest) -> bool:
        """Whether the pod is still there, merely without the labels by which it is known; they are put back."""
        try:
            found = await self._until_there(lambda: self._api.get(pod))
        except ApiError:
            return False
        if found["metadata"]["uid"] != pod["metadata"]["uid"] or endings.is_deleted(found):
            return False
        wanted = pod["metadata"].get("labels", {})
        if all((found["metadata"].get("labels") or {}).get(name) == value for name, value in wanted.items()):
            return True
        await self._mend(pod)
        return True

    async def _mend(self, pod: Manifest) -> None:
        """Give a pod the labels again by which it is known."""
        log.warning("somebody changed labels of pod %s that slurmk needs; putting them back", pod["metadata"]["name"])
        try:
            await self._until_there(lambda: self._api.patch(pod, {"metadata": {"labels": pod["metadata"]["labels"]}}))
        except ApiError as error:
            log.error("pod %s cannot be labelled: %s", pod["metadata"]["name"], error)

    async def _objects(self, presence: Presence) -> tuple[list[Manifest], list[Reference]]:
        """An attempt's objects beside its pods that are there, and those that are not."""
        there, gone = [], []
        for reference in (*presence.references, Reference(SECRET, presence.name, presence.namespace)):
            try:
                there.append(await self._until_there(lambda which=reference: self._api.get(which)))  # type: ignore[misc]
            except ApiError as error:
                if error.not_found:
                    gone.append(reference)
        return [*await self._kueue_workloads(presence), *there], gone  # Kueue knows why it had the others suspended

    async def _kueue_workloads(self, presence: Presence) -> list[Manifest]:
        """Kueue's view of an attempt, where its partition has queues of Kueue's."""
        partition = next((pod["metadata"].get("labels", {}).get(labels.PARTITION, "") for pod in presence.pods.values()), "")
        if self._pods_of(self.settings, partition).queue_system is not QueueSystem.KUEUE:
            return []
        try:
            found = await self._until_there(lambda: self._api.list(KUEUE_WORKLOAD, presence.namespace))
        except ApiError:
            return []
        names = {presence.name, *(pod["metadata"]["name"] for pod in presence.pods.values())}
        return [
            each
            for each in found
            if each["metadata"]["name"] in names
            or any(owner.get("name") in names for owner in each["metadata"].get("ownerReferences") or ())
        ]

    # ---------------------------------------------------------------- freeing nodes

    def _release_ended(self, presence: Presence) -> None:
        """Free the nodes whose pods have ended."""
        self._release(presence, presence.free)

    def _release(self, presence: Presence, nodes: Iterable[str]) -> None:
        fresh = [node for node in nodes if node in presence.nodes and node not in presence.released]
        if fresh:
            presence.released.update(fresh)
            presence.on_disk = self._tell(NodesReleased(time.time(), *presence.key, tuple(fresh)))
        if presence.over and (presence.told is Told.ENDED or presence.terminating) and not presence.finishing:
            presence.finishing = True
            self._spawn(self._finish(presence))

    async def _finish(self, presence: Presence) -> None:
        """All is over: let go once the controller has it on disk, and nothing of it is still being made."""
        while presence.key in self._launching:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        if presence.on_disk is not None:
            await presence.on_disk
        self._forget(presence)
        settings = self._pods_of(self.settings, self._partition(presence))
        ended = bool(presence.pods) and not presence.living()
        self._removal.add(self._remains(presence), settings.keep_finished if ended else 0)

    def _forget(self, presence: Presence) -> None:
        del self._presences[presence.key]
        for uid in presence.pods:
            self._whose.pop(uid, None)
        attempt = self._link.attempts.get(presence.key)
        if attempt is not None:
            self._link.forget(attempt)

    @staticmethod
    def _partition(presence: Presence) -> str:
        return next((pod["metadata"].get("labels", {}).get(labels.PARTITION, "") for pod in presence.pods.values()), "")

    @staticmethod
    def _remains(presence: Presence) -> Remains:
        names = {*presence.names.values(), *(pod["metadata"]["name"] for pod in presence.pods.values())}
        pods = tuple(sorted(names)) if presence.made_pods else ()
        return Remains(presence.key, presence.namespace, presence.name, presence.references, pods)

    def _removed(self, key: Key) -> None:
        log.debug("nothing is left of job %d, attempt %d", *key)
        self._old_programs.ended()

    def _has_fresh(self) -> bool:
        """Whether attempts are being launched, or were a moment ago and have not begun yet."""
        since = self._now() - FRESH_SECONDS
        return bool(self._launching) or any(
            presence.told is Told.NOTHING and not presence.terminating and (presence.created or 0.0) > since
            for presence in self._presences.values()
        )

    def _has_starting(self) -> bool:
        """Whether there are attempts that have not all of their pods yet."""
        return any(
            not presence.terminating and len(presence.pods) < len(presence.nodes) for presence in self._presences.values()
        )

    async def _delete(self, presence: Presence, grace: int) -> None:
        """Delete the workload while it runs: what makes pods first, then the pods. The rest goes when they have ended."""
        if not presence.made_pods:
            for reference in reversed(presence.references):
                await self._delete_one(reference, None)
            await self._see_pods(presence)
        await self._delete_pods(presence, presence.nodes, grace)
        presence.deleted = True
        self._release_ended(presence)

    async def _delete_pods(self, presence: Presence, nodes: Iterable[str], grace: int) -> None:
        """Delete the pods of some nodes, and those that have none yet. A second at least is given, so that a kubelet says when
        a pod has ended; one that is on no node is gone at once."""
        wanted = set(nodes)
        for node in [node for node in presence.unseen if node in wanted]:
            await self._delete_unseen(presence, node, max(1, grace))
        for uid, pod in list(presence.pods.items()):
            if uid in presence.ended or (presence.node_of(uid) or presence.first) not in wanted:
                continue
            if not endings.is_deleted(pod) or not grace:
                await self._delete_one(reference_of(pod), max(1, grace))

    async def _delete_unseen(self, presence: Presence, node: str, grace: int) -> None:
        """Delete a pod of which the watch has not told yet, and wait until it has, or there is none."""
        reference = Reference(POD, presence.names[node], presence.namespace)
        await self._delete_one(reference, grace)
        while node in presence.unseen:
            try:
                await self._until_there(lambda: self._api.get(reference))
            except ApiError as error:
                if error.not_found:
                    presence.names.pop(node, None)
                    self._release(presence, [node])
                    return
            await asyncio.sleep(LOOK_SECONDS)

    async def _see_pods(self, presence: Presence) -> None:
        """Take note of pods that the watch has not told of yet."""
        own = labels.selector(self._site.cluster_name, *presence.key)
        with contextlib.suppress(ApiError):
            for pod in await self._until_there(lambda: self._api.list(POD, presence.namespace, own)):
                if pod["metadata"]["uid"] not in presence.pods:
                    presence.see(pod)

    async def _delete_one(self, reference: Reference, grace: int | None) -> None:
        try:
            await self._until_there(lambda: self._api.delete(reference, grace=grace, precondition_uid=reference.uid or None))
        except ApiError as error:
            log.error("%s cannot be deleted: %s", reference, error)

    # ---------------------------------------------------------------- looking after what is slow

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._watch.trouble or self._first_list is not None:
                continue
            now = self._now()
            for presence in list(self._presences.values()):
                if presence.overdue is not None and presence.overdue <= now:
                    presence.overdue = now + STUBBORN_SECONDS
                    log.warning("job %d did not end when told; deleting its pods", presence.job_id)
                    self._spawn(self._delete(presence, 0))
                elif presence.told is Told.NOTHING and not presence.terminating and presence.created is not None:
                    self._look_at(presence, now)

    def _look_at(self, presence: Presence, now: float) -> None:
        assert presence.created is not None
        patience = self._pods_of(self.settings, self._partition(presence)).admission_timeout
        if presence.bound is None and now > presence.created + patience:
            presence.created = now  # look again after as long, should the answer be long in coming
            self._spawn(self._not_admitted(presence))
        elif presence.running is not None and now > presence.running + STEPD_SECONDS and not presence.simulated:
            self._give_up(presence, f"no stepd of the job has come to {self._address} within {STEPD_SECONDS:.0f} s")

    async def _not_admitted(self, presence: Presence) -> None:
        there, _ = await self._objects(presence)
        about: list[Manifest] = []
        for name in (presence.name, *(pod["metadata"]["name"] for pod in presence.pods.values())):
            with contextlib.suppress(ApiError, Unavailable):
                about += await self._api.list(EVENT, presence.namespace, fields=f"involvedObject.name={name}")
            if len(about) > 20:
                break
        message = endings.obstacle(presence.living(), there, about)
        if presence.bound is None:
            log.info("job %d is not admitted: %s", presence.job_id, message)
            self._give_up(presence, message)

    # ---------------------------------------------------------------- what others report

    def _from_stepd(self, event: Event) -> Awaitable[object] | None:
        """A stepd's report on its way to the controller."""
        presence = None
        if isinstance(event, (JobStarted, BatchEnded, LaunchFailed, NodesReleased)):
            presence = self._presences.get((event.job_id, event.restart))
        if isinstance(event, NodesReleased):
            return None  # its pod's end says so
        if presence is not None and isinstance(event, JobStarted):
            if presence.told is Told.BEGAN:
                return None
            presence.told = Told.BEGAN if presence.told is Told.NOTHING else presence.told
        if presence is not None and isinstance(event, BatchEnded):
            attempt = self._link.attempts.get(presence.key)
            if attempt is not None and attempt.deleted and presence.told is not Told.ENDED and not presence.terminating:
                return self._spawn(self._when_known(presence, event))
            presence.told = Told.ENDED
        if presence is not None and isinstance(event, LaunchFailed):
            presence.told = Told.ENDED
            event = replace(event, nodes=())
        on_disk = self._tell(event)
        if presence is not None:
            presence.on_disk = on_disk
        return on_disk

    async def _when_known(self, presence: Presence, event: BatchEnded) -> None:
        """The script of a pod that somebody deletes has ended: what ended it is not its own, if we hear who did."""
        end = self._now() + LAST_WORDS
        while presence.told is not Told.ENDED and self._now() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        if presence.told is not Told.ENDED:
            presence.told = Told.ENDED
            presence.on_disk = on_disk = self._tell(event)
            if on_disk is not None:
                await on_disk

    def _from_cluster(self, event: Event) -> Awaitable[object] | None:
        """What is seen of nodes on its way to the controller. Nobody waits for pods on a node that is lost."""
        on_disk = self._tell(event)
        if isinstance(event, SiteChanged):
            self._site = event.site
        if isinstance(event, NodeChanged):
            name = event.node.name
            if event.removed or event.node.state is NodeState.DOWN:
                self._down.add(name)
                for presence in list(self._presences.values()):
                    if name in presence.nodes and (presence.terminating or presence.told is Told.ENDED):
                        self._release(presence, [name])
            else:
                self._down.discard(name)
        return on_disk

    def _stepd_lost(self, attempt: Attempt, seat: Seat) -> None:
        """Its pod says what became of it."""

    def _stepd_released(self, attempt: Attempt, seat: Seat) -> None:
        presence = self._presences.get(attempt.key)
        if presence is not None:
            self._release_ended(presence)

    def _has_stepd(self, presence: Presence, node: str) -> bool:
        attempt = self._link.attempts.get(presence.key)
        seat = attempt.seats.get(node) if attempt is not None else None
        return seat is not None and seat.writer is not None

    # ---------------------------------------------------------------- small things

    def _install(self) -> None:
        write_folder(self.program)
        write_archive(self._directory / "lib" / "stepd.pyz")
        self._interpreter = find_interpreter(self.program)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _tell(self, event: Event) -> Awaitable[object] | None:
        return self._controller(event)

    async def _until_there(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Ask the API server until it answers. Raises ApiError."""
        while True:
            try:
                return await ask()
            except Unavailable as error:
                if self._stopping:
                    raise
                log.debug("waiting for the API server: %s", error)
                await asyncio.sleep(AWAY_SECONDS)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned)
        return task

    def _spawned(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("the launcher failed", exc_info=task.exception())


class _Description:
    """The JSON text of what a job is, for a stepd whose Secret could not hold it."""

    def __init__(self, job: Job, files: JobFiles, site: Site) -> None:
        self._parts = job, files, site

    def __call__(self) -> bytes:
        return described(*self._parts)


def _packed(manifest: Manifest) -> Callable[[], bytes] | None:
    """The text of what the job is, as its Secret has it; None where that was too large."""
    packed = (manifest.get("data") or {}).get("description")
    return (lambda: zlib.decompress(base64.b64decode(packed))) if packed else None


def _secret_of(manifest: Manifest | None) -> bytes | None:
    """What an attempt's stepds prove that they hold, as its Secret says."""
    try:
        return bytes.fromhex(json.loads(base64.b64decode((manifest or {})["data"]["place"]))["secret"])
    except (KeyError, ValueError, TypeError):
        return None


def _is_same(found: Manifest, manifest: Manifest) -> bool:
    """Whether an object that is there is the one that was to be made: a Secret with the same secret, or what it owns."""
    if endings.is_deleted(found):
        return False
    if manifest["kind"] == "Secret":
        return _secret_of(found) == _secret_of(manifest)
    owners = [owner.get("uid") for owner in found["metadata"].get("ownerReferences") or ()]
    return all(owner["uid"] in owners for owner in manifest["metadata"].get("ownerReferences") or ())


def _lacks_runtime(manifest: Manifest, error: ApiError) -> bool:
    """Whether a TrainJob was refused because its runtime is not there, as Trainer's webhook words it or Kueue's. Both look into
    what they remember of the cluster, which lags behind."""
    if resource_of(manifest) != TRAIN_JOB:
        return False
    return str(manifest["spec"]["runtimeRef"]["name"]) in str(error) and "not found" in str(error)


def _key(job: Job) -> Key:
    return job.job_id, job.restarts


@contextlib.contextmanager
def _already_there() -> Any:
    try:
        yield
    except ApiError as error:
        if not error.already_exists:
            raise


async def _all(work: Sequence[Coroutine[Any, Any, Manifest]]) -> None:
    """Do all of it side by side; when one fails, the others are finished first."""
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def _nobody(event: Event) -> None:
    return None


def _unknown() -> bytes:
    """Of a job that had begun before: its stepds know what it is."""
    return b"{}"
