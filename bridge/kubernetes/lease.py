"""Only one controller of a cluster acts: the one that holds a Lease.

The protocol is the one that Kubernetes' own controllers follow (``client-go``'s leader election), so ``kubectl get lease``
shows who leads: a holder renews; another takes over when it has seen no renewal for the lease's whole duration *by its own
clock*, so clocks need not agree; and every change is bound to the version that was read, so only one can win.

It differs in one thing. A holder whose API server is away is not deposed at once, since no one else can be made leader
without it either: jobs go on and submissions are taken. But from the moment at which another could hold the Lease, all
writes to the API server are fenced off until a renewal succeeds. Only a Lease seen in another's hands is lost.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bridge.kubernetes.api import Api
from bridge.kubernetes.errors import ApiError, KubernetesError
from bridge.kubernetes.resources import LEASE, Manifest, Reference
from bridge.kubernetes.settings import Settings

log = logging.getLogger(__name__)

RELEASED_SECONDS = 1
"""What a released Lease has as its duration."""


class Lease:
    """A Lease that is ours from ``acquire`` to ``release``, or until ``lost`` is set."""

    def __init__(self, api: Api, settings: Settings, identity: str) -> None:
        self.lost = asyncio.Event()
        """Another has it. What runs must end at once."""
        self.holder = ""
        """Who had it when last seen."""
        self._api = api
        self._reference = Reference(LEASE, settings.lease, settings.namespace)
        self._identity = identity
        self._seconds = settings.lease_seconds
        self._patience = settings.lease_seconds / 3  # seconds for one request
        self._renewing: asyncio.Task[None] | None = None
        self._held: Manifest = {}
        self._confirmed = 0.0  # when the last renewal that succeeded was begun

    async def acquire(self) -> None:
        """Wait until it is ours, and keep it from then on. Raises ApiError (the namespace is missing, RBAC) or Unavailable."""
        loop = asyncio.get_running_loop()
        seen, since = "", loop.time()
        while True:
            begun = loop.time()
            found = await self._read()
            if found is None:
                taken = await self._create()
            else:
                version = found["metadata"]["resourceVersion"]
                if version != seen:
                    seen, since = version, begun
                taken = await self._take(found) if self._is_free(found, begun - since) else None
            if taken is not None:
                self._confirm(taken, begun)
                self._renewing = asyncio.create_task(self._renew())
                return
            await asyncio.sleep(min(2.0, self._seconds / 5))

    async def release(self) -> None:
        """Give it up, so that another need not wait. Nothing is raised; it ends by itself otherwise."""
        if self._renewing is None:
            return
        self._renewing.cancel()
        with suppress(asyncio.CancelledError):
            await self._renewing
        self._renewing = None
        self._api.fenced = "the lease is given up"
        if not self.lost.is_set():
            with suppress(KubernetesError):
                await self._replace(self._held, "", RELEASED_SECONDS)

    # --------------------------------------------------------------- taking

    def _is_free(self, found: Manifest, unchanged: float) -> bool:
        """True when it may be taken: nobody's, ours from before, or not renewed for as long as it lasts."""
        spec = found.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self._identity) and holder != self.holder:
            log.info("%s is held by %s; waiting", self._reference, holder)
        self.holder = holder
        return holder in ("", self._identity) or unchanged > (spec.get("leaseDurationSeconds") or self._seconds)

    async def _read(self) -> Manifest | None:
        try:
            return await self._api.get(self._reference, timeout=self._patience)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def _create(self) -> Manifest | None:
        """Make it, ours; None when somebody else has just done so."""
        metadata = {"name": self._reference.name, "namespace": self._reference.namespace}
        manifest = {"apiVersion": LEASE.group_version, "kind": LEASE.kind, "metadata": metadata}
        manifest["spec"] = self._spec({}, self._identity, self._seconds)
        try:
            return await self._api.create(manifest, urgent=True, unfenced=True, timeout=self._patience)
        except ApiError as error:
            if error.already_exists:
                return None
            if error.not_found:
                name = self._reference.namespace
                raise ApiError(404, "NotFound", f"there is no namespace {name}: kubectl create namespace {name}") from error
            raise

    async def _take(self, found: Manifest) -> Manifest | None:
        """Make it ours; None when somebody was faster."""
        try:
            return await self._replace(found, self._identity, self._seconds)
        except ApiError as error:
            if error.conflict or error.not_found:
                return None
            raise

    async def _replace(self, found: Manifest, holder: str, seconds: int) -> Manifest:
        spec = self._spec(found.get("spec") or {}, holder, seconds)
        return await self._api.replace({**found, "spec": spec}, urgent=True, unfenced=True, timeout=self._patience)

    def _spec(self, before: dict[str, Any], holder: str, seconds: int) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {**before, "holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now}
        if before.get("holderIdentity") != holder:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(before.get("leaseTransitions") or 0) + (1 if before else 0)
        return spec

    # --------------------------------------------------------------- keeping

    async def _renew(self) -> None:
        """Renew until it is lost. From two thirds of its duration after the last renewal on, nothing else is written."""
        loop = asyncio.get_running_loop()
        while not self.lost.is_set():
            remaining = self._confirmed + self._seconds * 2 / 3 - loop.time()
            fence = loop.call_later(max(remaining, 0.0), self._fence)
            try:
                await asyncio.sleep(self._seconds / 5)
                await self._renew_once()
            except KubernetesError as error:
                log.warning("%s is not renewed: %s", self._reference, error)
            finally:
                fence.cancel()

    async def _renew_once(self) -> None:
        begun = asyncio.get_running_loop().time()
        try:
            renewed: Manifest | None = await self._replace(self._held, self._identity, self._seconds)
        except ApiError as error:
            if not (error.conflict or error.not_found):
                raise
            renewed = await self._look()
        except KubernetesError:
            renewed = await self._look()  # it may have been done
        if renewed is not None:
            self._confirm(renewed, begun)

    async def _look(self) -> Manifest | None:
        """What became of it: lost, or still ours in another version (renewed unseen, edited, deleted by hand)."""
        found = await self._read()
        if found is None:
            return await self._create()
        holder = (found.get("spec") or {}).get("holderIdentity") or ""
        if holder not in ("", self._identity):
            self.holder = holder
            log.error("%s is held by %s now", self._reference, holder)
            self._api.fenced = f"{holder} has the lease"
            self.lost.set()
            return None
        return await self._take(found)

    def _confirm(self, lease: Manifest, begun: float) -> None:
        self._held, self._confirmed, self.holder = lease, begun, self._identity
        self._api.fenced = ""

    def _fence(self) -> None:
        if self._api.fenced:
            return
        self._api.fenced = f"{self._reference} could not be renewed; another controller may hold it"
        log.warning("%s", self._api.fenced)


def identity_of(directory: Path) -> str:
    """Who the controller of a data directory is: the same after a restart, so that it need not wait for itself.

    The directory's lock makes sure that only one process is it. Raises OSError.
    """
    path = directory / "identity"
    try:
        name = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        name = ""
    if not name:
        name = f"{socket.gethostname()}_{secrets.token_hex(8)}"
        path.write_text(name + "\n", encoding="ascii")
    return name
