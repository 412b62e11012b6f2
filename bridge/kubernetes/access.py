"""How the API server is reached: a kubeconfig as kubectl reads it, or the service account of the pod we run in.

The Kubernetes client's own loader does the reading (contexts, exec plugins, OIDC, tokens); requests are then made with
aiohttp directly, because they carry plain JSON.
"""

from __future__ import annotations

import logging
import os
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.kubernetes.errors import AccessError

IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
"""A pod has this variable."""


@dataclass(frozen=True, slots=True)
class Access:
    """A way to one API server."""

    server: str  # https://HOST:PORT[/PATH]
    tls: ssl.SSLContext | None
    server_name: str | None  # whose certificate it must have, where that is not the host's
    proxy: str | None
    configuration: Any  # the client's Configuration: gives the current token

    async def headers(self) -> dict[str, str]:
        """What proves who we are; a token from a file is read again when it may have changed. Raises AccessError."""
        try:
            settings = await self.configuration.auth_settings()
        except Exception as error:
            raise AccessError(f"the token for {self.server} cannot be read: {error}") from error
        return {entry["key"]: entry["value"] for entry in settings.values() if entry["value"]}


async def load_access(kubeconfig: str = "", context: str = "") -> Access:
    """The way that ``kubeconfig`` (else $KUBECONFIG, else ~/.kube/config, else the pod's service account) names; raises
    AccessError."""
    paths = kubeconfig or os.environ.get("KUBECONFIG", "") or str(Path.home() / ".kube" / "config")
    there = [path for path in paths.split(os.pathsep) if path and Path(path).expanduser().is_file()]
    if there:
        return await _from_kubeconfig(os.pathsep.join(there), context)
    if kubeconfig:
        raise AccessError(f"{kubeconfig}: there is no such kubeconfig")
    if os.environ.get(IN_CLUSTER):
        return _from_service_account()
    raise AccessError(f"there is no kubeconfig ({paths}), and this is no pod of a cluster: name one with --kubeconfig")


async def _from_kubeconfig(paths: str, context: str) -> Access:
    from kubernetes.aio import client, config

    configuration = client.Configuration()
    complaints = _Complaints()
    logger = logging.getLogger("kubernetes.aio.config.kube_config")
    logger.addHandler(complaints)
    try:
        await config.load_kube_config(paths, context or None, configuration, persist_config=False)
        if complaints.texts:  # the loader goes on without credentials when an exec plugin fails
            raise AccessError(f"{paths}: {complaints.texts[0]}")
        return _access(configuration)
    except AccessError:
        raise
    except Exception as error:
        # a kubeconfig with a wrong shape makes the loader fail in many ways
        raise AccessError(f"{paths}: {error or type(error).__name__}") from error
    finally:
        logger.removeHandler(complaints)
        config.kube_config._cleanup_temp_files()  # it wrote our private key there


def _from_service_account() -> Access:
    from kubernetes.aio import client, config

    configuration = client.Configuration()
    try:
        config.load_incluster_config(configuration)
        return _access(configuration)
    except Exception as error:
        raise AccessError(f"the pod's service account cannot be used: {error}") from error


class _Complaints(logging.Handler):
    """Keeps what the loader only logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def _access(configuration: Any) -> Access:
    from kubernetes.aio.client.rest import RESTClientObject

    server = str(configuration.host).rstrip("/")
    secure = server.startswith("https:")
    return Access(
        server,
        RESTClientObject(configuration).ssl_context if secure else None,
        configuration.tls_server_name or None,
        configuration.proxy or proxy_of(server, urllib.request.getproxies_environment()),
        configuration,
    )


def proxy_of(server: str, proxies: Mapping[str, str]) -> str | None:
    """The proxy that the environment (``proxies``: scheme to URL, and ``no``) names for a server."""
    parts = urllib.parse.urlsplit(server)
    if urllib.request.proxy_bypass_environment(parts.netloc, dict(proxies)):  # type: ignore[attr-defined]
        return None
    return proxies.get(parts.scheme)
