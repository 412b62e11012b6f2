"""What a job bears so that its queue system takes it: the queue, its QOS as a priority class, its longest time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bridge.kubernetes.kinds.values import VOLCANO_QUEUE
from bridge.kubernetes.queues.accounts import Accounts, read_accounts
from bridge.kubernetes.queues.kueue import Flavor, account_queue, flavors_of, taint_of
from bridge.kubernetes.queues.names import object_name
from bridge.kubernetes.queues.volcano import job_queue
from bridge.kubernetes.render import PRIORITY_CLASS, deadline_of
from bridge.kubernetes.settings import PodSettings, QueueSystem, Settings
from slurmk.model.job import Job
from slurmk.model.site import Site

KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_PRIORITY = "kueue.x-k8s.io/priority-class"
KUEUE_LONGEST = "kueue.x-k8s.io/max-exec-time-seconds"
"""Kueue's labels on what is queued; the last one in seconds."""


class JobQueues:
    """The queues of the site's jobs, by slurmk.yaml as it is at each call. ``pods_of`` gives a partition's settings with the
    site's under them. Raises GrammarError for accounts and QOS that are wrong, which reading the file should have refused."""

    def __init__(self, site: Callable[[], Site], pods_of: Callable[[Settings, str], PodSettings]) -> None:
        self._site = site
        self._bare = pods_of
        self._read: tuple[Settings, tuple[str, ...], _Queues] | None = None

    def pods_of(self, settings: Settings, partition: str) -> PodSettings:
        """A partition's settings, with what leads Kueue to the flavor of its pods."""
        pods = self._bare(settings, partition)
        flavor = self._queues(settings).flavors.get(partition)
        if flavor is None:
            return pods
        tolerations = pods.tolerations
        if flavor.tainted:
            tolerations = (*tolerations, {**taint_of(partition), "operator": "Equal"})
        return replace(pods, tolerations=tolerations, node_selector={**flavor.node_labels, **pods.node_selector})

    def labels(self, job: Job, settings: Settings) -> dict[str, str]:
        """What tells the queue system of a job: for Kueue the labels of the object that is queued, for Volcano the queue.
        Where QOS are priority classes of pods, ``PRIORITY_CLASS`` has the job's."""
        pods = self._bare(settings, job.partition)
        queues = self._queues(settings)
        named = object_name(queues.cluster, job.qos) if job.qos in settings.qos else ""
        found: dict[str, str] = {}
        if pods.queue_system is not QueueSystem.KUEUE:
            if named:
                found[PRIORITY_CLASS] = named
            if pods.queue_system is QueueSystem.VOLCANO:
                found[VOLCANO_QUEUE] = pods.queue or job_queue(queues.cluster, queues.accounts, job.account)
            return found
        found[KUEUE_QUEUE] = pods.queue or account_queue(queues.cluster, queues.accounts.charged(job.account))
        if named:
            found[KUEUE_PRIORITY] = named
        longest = deadline_of(job, self._site())
        if longest is not None:
            found[KUEUE_LONGEST] = str(longest)
        return found

    def _queues(self, settings: Settings) -> _Queues:
        site = self._site()
        partitions = tuple(each.name for each in site.partitions)
        if self._read is None or self._read[0] is not settings or self._read[1] != partitions:
            pods = {name: self._bare(settings, name) for name in partitions}
            flavors = flavors_of(site.cluster_name, settings, pods)
            self._read = settings, partitions, _Queues(site.cluster_name, read_accounts(settings), flavors)
        return self._read[2]


@dataclass(frozen=True, slots=True)
class _Queues:
    cluster: str
    accounts: Accounts
    flavors: Mapping[str, Flavor]
