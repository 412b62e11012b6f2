"""The controller on Kubernetes: connects to the API server, waits for the Lease, and only then opens the store and serves.

Whoever holds the Lease acts; another controller waits in ``acquire`` and has touched nothing until then. A controller that
finds its Lease in another's hands ends at once, as if killed: it may have been away for long, and what it would still
write is no longer its to write. Everything acknowledged is on disk, and the other one has begun to reconcile.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from accounting.store import Store, StoreError
from grammar.errors import GrammarError
from slurmk.daemon.configured import find_configured, read
from slurmk.daemon.connection import listen_remotely
from slurmk.daemon.logs import start_log
from slurmk.model.site import Site

if TYPE_CHECKING:
    from bridge.kubernetes.api import Api
    from bridge.kubernetes.cluster import Cluster
    from bridge.kubernetes.lease import Lease
    from bridge.kubernetes.settings import Settings

log = logging.getLogger(__name__)

SETTINGS = "slurmk.yaml"
"""The settings' file below ``--conf`` when none is named."""

LOST_LEASE = 4
"""Exit code when another controller has the Lease."""


FIXED: Mapping[str, str] = {
    "namespace": "namespace",
    "controller": "controller",
    "listen": "listen",
    "lease": "lease",
    "leaseSeconds": "lease_seconds",
    "client": "client",
    "kubeconfig": "kubeconfig",
    "context": "context",
}
"""Keys of slurmk.yaml that are read at the start alone, and what they are in Settings."""

STANDBY_SECONDS = 2.0
"""After so many seconds without the Lease, whoever started the controller is told why it does not serve yet."""

STANDBY = "state/standby"
"""The file below the cluster's directory that says why, for ``slurmk up --detach`` and ``slurmk status``."""


class Unusable(Exception):
    """Why there can be no controller; ``str()`` is for the person who wanted one."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where everything is: what the command line said, made absolute."""

    directory: Path
    configuration: Path | None
    settings: Path | None
    kubeconfig: str
    context: str
    database: str


async def run(place: Place) -> int:
    """Serve until told to stop; gives the exit code. Raises Unusable or OSError when it cannot begin."""
    from bridge.kubernetes.api import Api, ApiError, Unavailable

    settings, configured = _read(place)
    start_log(place.directory)
    try:
        api = await Api.connect(settings)
    except (ApiError, Unavailable) as error:
        raise Unusable(f"Kubernetes: {error}") from None
    try:
        return await _lead(place, api, settings, configured)
    except (ApiError, Unavailable) as error:
        raise Unusable(f"Kubernetes: {error}") from None
    finally:
        await api.close()


async def _lead(place: Place, api: Api, settings: Settings, configured: Site | None) -> int:
    """Wait for the Lease and hold it as long as the controller runs."""
    from bridge.kubernetes.lease import Lease, identity_of

    lease = Lease(api, settings, identity_of(place.directory / "state"))
    note = place.directory / STANDBY
    note.unlink(missing_ok=True)
    waiting = asyncio.create_task(_tell_of_standby(lease, settings, note))
    try:
        await lease.acquire()
    finally:
        waiting.cancel()
        note.unlink(missing_ok=True)
    watching = asyncio.create_task(_end_without(lease.lost, settings))
    try:
        return await _serve(place, api, settings, configured)
    finally:
        watching.cancel()
        await lease.release()


async def _tell_of_standby(lease: Lease, settings: Settings, note: Path) -> None:
    """Say whose lease is waited for: on standard error, and in ``note``, where ``slurmk`` looks, as long as it is so."""
    said = ""
    while True:
        await asyncio.sleep(STANDBY_SECONDS)
        holder = f"{lease.holder} holds" if lease.holder else "another controller may hold"
        text = f"{holder} the lease {settings.namespace}/{settings.lease}"
        if text != said:
            note.write_text(text + "\n", encoding="utf-8")
            print(f"slurmk: standing by: {text}", file=sys.stderr, flush=True)
            said = text


async def _end_without(lost: asyncio.Event, settings: Settings) -> None:
    await lost.wait()
    _end(f"another controller has the lease {settings.namespace}/{settings.lease}")


def _end(why: str) -> NoReturn:
    """End at once, doing nothing more, not even what is begun."""
    log.error("%s; this one ends", why)
    print(f"slurmk: error: {why}", file=sys.stderr, flush=True)
    logging.shutdown()
    os._exit(LOST_LEASE)


async def _serve(place: Place, api: Api, settings: Settings, configured: Site | None) -> int:
    from bridge.kubernetes.cluster import Cluster
    from bridge.kubernetes.launcher import KubernetesLauncher
    from bridge.kubernetes.queues.jobs import JobQueues
    from bridge.kubernetes.settings_file import pods_of
    from bridge.kubernetes.strangers import StrangersError, refuse_strangers
    from bridge.local.interpreter import InterpreterError
    from slurmk.daemon.controller import Daemon
    from slurmk.daemon.queues import Queues

    try:
        remote = listen_remotely(settings.listen, place.directory / "state" / "port")
    except OSError as error:
        raise Unusable(f"listen {settings.listen}: {error.strerror or error}") from None
    cluster = Cluster(api, settings, configured)
    queues = Queues(api, cluster, pods_of)
    try:
        await cluster.begin()
        await queues.begin()
        site = cluster.site
        store = Store(place.database, site)
        await asyncio.to_thread(store.open)
        borne = JobQueues(lambda: cluster.site, pods_of)
        address = await _address(settings, api, remote)
        launcher = KubernetesLauncher(api, cluster, site, place.directory, address, borne.pods_of, borne.labels)
        await refuse_strangers(api, site.cluster_name, launcher.namespaces, store.strange_jobs)
        reading = Rereading(place, cluster, settings)
        await Daemon(
            place.directory,
            site,
            store,
            launcher,
            reading.site,
            remote=remote,
            surroundings=lambda: [*cluster.status(), *queues.status()],
            queues=queues,
        ).run()
    except StoreError as error:
        raise Unusable(f"the database cannot be used: {error}") from None
    except (InterpreterError, StrangersError) as error:
        raise Unusable(str(error)) from None
    finally:
        await queues.stop()
        await cluster.stop()
    return 0


class Rereading:
    """What ``scontrol reconfigure`` reads, in a thread: slurm.conf and slurmk.yaml over the nodes that are known.
    ``settings`` are those that the controller began with."""

    def __init__(self, place: Place, cluster: Cluster, settings: Settings) -> None:
        self._place = place
        self._cluster = cluster
        self._settings = settings

    def site(self) -> Site:
        """The site by the files as they are now. Raises GrammarError or OSError, and changes nothing then."""
        try:
            settings, configured = _read(self._place)
        except Unusable as error:
            raise GrammarError(str(error)) from None
        site = self._cluster.configure(settings, configured)
        changed = [key for key, name in FIXED.items() if getattr(settings, name) != getattr(self._settings, name)]
        if site.cluster_name != self._cluster.site.cluster_name:
            changed.insert(0, "the cluster's name")
        if changed:
            file = self._place.settings or SETTINGS
            raise GrammarError(f"{file}: {', '.join(changed)}: what is new there needs another start of the controller")
        return site


def _read(place: Place) -> tuple[Settings, Site | None]:
    """slurmk.yaml, with templates that can be used, and slurm.conf. Raises Unusable or OSError."""
    from bridge.kubernetes.samples import check_templates
    from bridge.kubernetes.settings import Settings
    from bridge.kubernetes.settings_file import load_settings

    path = place.settings
    if path is None and place.configuration is not None and (place.configuration / SETTINGS).is_file():
        path = place.configuration / SETTINGS
    if place.configuration is not None and path is None and not (place.configuration / "slurm.conf").is_file():
        raise Unusable(f"{place.configuration}: there is neither slurm.conf nor {SETTINGS}")
    try:
        settings = Settings()
        if path is not None:
            text = read(str(path))
            if text is None:
                raise Unusable(f"{path}: there is no such file")
            settings = load_settings(text, str(path))
        check_templates(settings)
        configured = find_configured(place.configuration)
    except GrammarError as error:
        raise Unusable(str(error)) from None
    return (
        replace(settings, kubeconfig=place.kubeconfig or settings.kubeconfig, context=place.context or settings.context),
        configured,
    )


async def _address(settings: Settings, api: Api, remote: socket.socket) -> str:
    """``HOST:PORT`` that pods dial: as the site says, else the address by which this host reaches the API server."""
    port = remote.getsockname()[1]
    if settings.controller:
        _, colon, given = settings.controller.rpartition(":")
        return settings.controller if colon and given.isdigit() else f"{settings.controller}:{port}"
    host = await api.local_address()
    if host.startswith("127.") or host == "::1":
        log.warning("pods cannot reach the controller at %s: set `controller` in %s", host, SETTINGS)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


__all__: Sequence[str] = ("LOST_LEASE", "SETTINGS", "Place", "Rereading", "Unusable", "run")
