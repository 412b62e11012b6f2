"""Removes what is left of attempts that are over: pods first, then what held them, at last the Secret, which owns them all.

Jobs end in crowds. What has to go is collected for a moment and deleted together, one request for a kind of object, so that
the end of a thousand jobs costs the API server's clients little. What cannot be deleted now is tried again until it is. While
jobs are starting, what is over waits a little: it holds no node, and they wait for the same API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bridge.kubernetes.api import Api
from bridge.kubernetes.errors import ApiError, Unavailable
from bridge.kubernetes.labels import JOB_ID, RESTART, selector
from bridge.kubernetes.presence import Key
from bridge.kubernetes.resources import POD, SECRET, Reference, Resource

log = logging.getLogger(__name__)

COLLECT_SECONDS = 0.5
"""How long what has to go is collected."""

DEFERRED_SECONDS = 60.0
"""How long what has to go may wait for jobs that are starting."""

FEW = 2
"""So many attempts are cheaper to delete one by one."""

MOST = 100
"""Attempts that one request deletes: their ids are in its URL."""

AFTER_REFUSAL = 20.0
"""Seconds until what the API server refused to delete is tried again."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left of one attempt. ``objects`` are all but pods and Secret, in the order of creation; ``pods`` those that
    slurmk made itself."""

    key: Key
    namespace: str
    name: str
    objects: tuple[Reference, ...] = ()
    pods: tuple[str, ...] = ()

    def references(self) -> Sequence[Reference]:
        """All of it in the order of deletion."""
        pods = [Reference(POD, name, self.namespace) for name in self.pods]
        return (*pods, *reversed(self.objects), Reference(SECRET, self.name, self.namespace))

    @property
    def kinds(self) -> tuple[Resource, ...]:
        """The kinds of that, in the same order."""
        return tuple(dict.fromkeys(reference.resource for reference in self.references()))


class Removal:
    """``done`` is told of each attempt of which nothing is left; ``starting`` tells whether jobs are on their way to begin."""

    def __init__(self, api: Api, cluster: str, done: Callable[[Key], None], starting: Callable[[], bool]) -> None:
        self._api = api
        self._starting = starting
        self._cluster = cluster
        self._done = done
        self._due: dict[Key, tuple[float, Remains]] = {}
        self._added = asyncio.Event()

    def __contains__(self, key: Key) -> bool:
        return key in self._due

    def __len__(self) -> int:
        return len(self._due)

    def add(self, remains: Remains, after: float = 0.0) -> None:
        """Have it removed ``after`` seconds."""
        self._due[remains.key] = (asyncio.get_running_loop().time() + after, remains)
        self._added.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._added.wait()
            await asyncio.sleep(COLLECT_SECONDS)
            await self._give_way()
            await self.remove_due()
            if not self._due:
                self._added.clear()

    async def _give_way(self) -> None:
        """Wait for jobs that start, but not for ever: where some start all the time, others have to go all the time."""
        end = asyncio.get_running_loop().time() + DEFERRED_SECONDS
        while self._starting() and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110
            await asyncio.sleep(COLLECT_SECONDS)

    async def remove_due(self) -> None:
        """Remove all whose time has come."""
        now = asyncio.get_running_loop().time()
        together: dict[tuple[str, int, tuple[Resource, ...]], list[Remains]] = {}
        for due, remains in self._due.values():
            if due <= now:
                together.setdefault((remains.namespace, remains.key[1], remains.kinds), []).append(remains)
        for (namespace, restart, kinds), all_of_them in together.items():
            for start in range(0, len(all_of_them), MOST):
                await self._remove(namespace, restart, kinds, all_of_them[start : start + MOST])

    async def _remove(self, namespace: str, restart: int, kinds: Iterable[Resource], some: Sequence[Remains]) -> None:
        try:
            if len(some) > FEW:
                await self._remove_together(namespace, restart, kinds, some)
            else:
                for remains in some:
                    for reference in remains.references():
                        await self._api.delete(reference)
        except Unavailable as error:
            log.warning("what is left of %d jobs cannot be removed now: %s", len(some), error)
            return
        except ApiError as error:
            log.error("what is left of job %d and perhaps others cannot be removed: %s", some[0].key[0], error)
            later = asyncio.get_running_loop().time() + AFTER_REFUSAL
            self._due.update((remains.key, (later, remains)) for remains in some)
            return
        for remains in some:
            del self._due[remains.key]
            self._done(remains.key)

    async def _remove_together(self, namespace: str, restart: int, kinds: Iterable[Resource], some: Sequence[Remains]) -> None:
        ids = ",".join(str(remains.key[0]) for remains in some)
        wanted = f"{selector(self._cluster)},{RESTART}={restart},{JOB_ID} in ({ids})"
        for kind in kinds:
            try:
                await self._api.delete_collection(kind, namespace, wanted)
            except ApiError as error:
                if not error.not_found:  # the kind itself is no more
                    raise

    async def drain(self, seconds: float) -> None:
        """Remove what is due now and in the next moments, for at most so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._due:
                    await self.remove_due()
                    await asyncio.sleep(0.05)
