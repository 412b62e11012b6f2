"""Quotas for the planner, and ``slurmk queues``: the daemon's half of queue systems on Kubernetes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from bridge.kubernetes.api import Api
from bridge.kubernetes.cluster import Cluster
from bridge.kubernetes.errors import ApiError, Unavailable
from bridge.kubernetes.queues.accounts import Accounts, read_accounts
from bridge.kubernetes.queues.apply import Action, QueueObjects, Step, wanted_objects
from bridge.kubernetes.queues.kueue import QueueError
from bridge.kubernetes.quotas import QuotaWatch
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import PodSettings, Settings
from bridge.launcher import Report
from grammar.errors import GrammarError
from slurmk.core.priority import Directory, QosPreemption
from slurmk.model.site import Site


class Queues:
    """Implements controller.QueueSystems. ``pods_of`` gives a partition's settings with the site's under them."""

    def __init__(self, api: Api, cluster: Cluster, pods_of: Callable[[Settings, str], PodSettings]) -> None:
        self._api = api
        self._cluster = cluster
        self._pods_of = pods_of
        self._watch = QuotaWatch(api, self._view, pods_of)
        self._acting = asyncio.Lock()

    def _view(self) -> tuple[Settings, Site, Mapping[str, Manifest]]:
        return self._cluster.settings, self._cluster.site, self._cluster.manifests

    async def begin(self) -> None:
        """Read what quotas there are, so that the first plan goes by them."""
        await self._watch.begin()

    def start(self, report: Report) -> None:
        """Tell ``report`` of quotas, now and whenever they change."""
        self._watch.start(report)

    def changed(self) -> None:
        """The site or its nodes changed."""
        self._watch.changed()

    def directory(self) -> Directory:
        """The accounts and QOS of slurmk.yaml. Accounts are checked when any of them names users; root may charge all."""
        return directory_of(read_accounts(self._cluster.settings))

    def status(self) -> Sequence[str]:
        """What keeps quotas from being known, for a person to read."""
        return self._watch.status()

    async def stop(self) -> None:
        """End the watches."""
        await self._watch.stop()

    async def act(self, action: str, *, force: bool) -> tuple[str, int]:
        """``diff``, ``apply`` or ``delete`` the queues of this cluster: the text for the caller and the exit code, which is 1
        for a diff that is not empty and 2 when something could not be done."""
        settings, site, nodes = self._view()
        objects = QueueObjects(self._api, site.cluster_name)
        try:
            async with self._acting:
                if action == "delete":
                    steps = await objects.delete()
                else:
                    pods = {each.name: self._pods_of(settings, each.name) for each in site.partitions}
                    wanted = wanted_objects(site, settings, pods, nodes)
                    steps = await (objects.diff if action == "diff" else objects.apply)(wanted, force=force)
        except (QueueError, GrammarError, ApiError, Unavailable) as error:
            return f"slurmk: error: {error}\n", 2
        return "".join(map(str, steps)), _exit_code(action, steps)


def directory_of(accounts: Accounts) -> Directory:
    """What the core needs to know of accounts and QOS."""
    users = accounts.users()
    if users is not None:
        users["root"] = tuple(dict.fromkeys((*users.get("root", ()), *accounts.accounts)))
    preemption = {
        name: QosPreemption(qos.preempts, qos.preempt_mode, qos.grace_time, qos.preempt_exempt_time)
        for name, qos in accounts.qos.items()
    }
    return Directory(accounts=users, qos={name: qos.priority for name, qos in accounts.qos.items()}, preemption=preemption)


def _exit_code(action: str, steps: Sequence[Step]) -> int:
    if any(step.action is Action.REFUSED for step in steps):
        return 2
    return 1 if action == "diff" and steps else 0
