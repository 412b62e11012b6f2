"""Removes the programs of earlier releases from the namespaces of jobs, once no pod uses them any more.

Each release has a ConfigMap of its own by name, so that jobs that run keep theirs when the controller is exchanged. At the
start, and whenever jobs have ended, those of this controller that are not of this release are looked at, until there are none
left: in the ordinary case that is one request for each namespace. Another controller's are its own to remove.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from bridge.kubernetes.api import Api
from bridge.kubernetes.errors import ApiError, Unavailable
from bridge.kubernetes.labels import MANAGED_BY, MANAGER, selector
from bridge.kubernetes.programs import PREFIX, programs_name
from bridge.kubernetes.resources import CONFIG_MAP, POD, Manifest

log = logging.getLogger(__name__)

LOOK_SECONDS = 20.0
"""How long ended jobs are collected before it is looked again."""


class OldPrograms:
    """``namespaces`` are those of jobs as of now; ``starting`` tells whether there are jobs whose pods are not all there yet,
    which may use any programs."""

    def __init__(self, api: Api, cluster: str, namespaces: Callable[[], Sequence[str]], starting: Callable[[], bool]) -> None:
        self._api = api
        self._cluster = cluster
        self._namespaces = namespaces
        self._starting = starting
        self._due = asyncio.Event()
        self._due.set()

    def ended(self) -> None:
        """Nothing is left of some job."""
        self._due.set()

    async def run(self) -> None:
        """Work until there is nothing left to remove, or it may not be."""
        left = True
        while left:
            await self._due.wait()
            self._due.clear()
            try:
                left = await self.remove()
            except Unavailable:
                self._due.set()
            except ApiError as error:
                log.warning("programs of earlier releases are left where they are: %s", error)
                return
            if self._starting():
                self._due.set()
            await asyncio.sleep(LOOK_SECONDS)

    async def remove(self) -> bool:
        """Remove what nobody uses; whether any are left. Raises ApiError and Unavailable."""
        left = False
        for namespace in self._namespaces():
            found = await self._api.list(CONFIG_MAP, namespace, selector(self._cluster))
            old = [each for each in found if _is_old(each, self._cluster)]
            if not old:
                continue
            used = _used(await self._api.list(POD, namespace, f"{MANAGED_BY}={MANAGER}"))
            for each in old:
                name = each["metadata"]["name"]
                if name in used or self._starting():
                    left = True
                    continue
                log.info("removing ConfigMap %s/%s, which no job uses any more", namespace, name)
                await self._delete(each)
        return left

    async def _delete(self, manifest: Manifest) -> None:
        try:
            await self._api.delete(manifest, precondition_uid=manifest["metadata"]["uid"])
        except ApiError as error:
            if not error.not_found and not error.conflict:
                raise


def _is_old(manifest: Manifest, cluster: str) -> bool:
    name = str(manifest["metadata"]["name"])
    return name.startswith(PREFIX) and name != programs_name(cluster)


def _used(pods: Iterable[Manifest]) -> set[str]:
    """The ConfigMaps that pods mount which have not ended."""
    found = set()
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            for volume in (pod.get("spec") or {}).get("volumes") or ():
                found.add(str((volume.get("configMap") or {}).get("name", "")))
    return found
