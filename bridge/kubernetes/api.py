"""Talks to the API server: plain JSON objects in and out, at a bounded rate, over its bad moments.

Everything runs on the caller's event loop. Writes are paced (``writes_per_second`` and ``burst``), and all requests but watches
share a number of connections. A request that the API server cannot take now (429, 5xx, no answer) is tried again until its
time is over, if doing it twice does no harm:

- reads, deletions, server-side applies and merge patches: always;
- creations and replacements: also always. When the first attempt was done unseen, the second gets ``already_exists`` or
  ``conflict``; the caller looks what is there now, as it must anyway after a crash;
- other patches: only when the API server said that it did not take the request.

Typed models of the Kubernetes client are not used: they are slow, and drop fields that are newer than they are.
"""

from __future__ import annotations

import asyncio
import http
import json
import random
import socket
import urllib.parse
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from bridge.kubernetes.access import Access, load_access
from bridge.kubernetes.errors import AccessError, ApiError, KubernetesError, Unavailable
from bridge.kubernetes.pace import Pace
from bridge.kubernetes.resources import Manifest, Reference, Resource, reference_of, resource_of
from bridge.kubernetes.settings import ClientLimits, Settings
from bridge.kubernetes.watch import Change, ChangeType, Watch

__all__ = [
    "AccessError",
    "Api",
    "ApiError",
    "Change",
    "ChangeType",
    "KubernetesError",
    "Manifest",
    "Unavailable",
    "Watch",
]

Manifests = list[Manifest]

FIELD_MANAGER = "slurmk"
"""Who we are for server-side apply."""

PAGE = 250
"""Objects asked for at once; a page is parsed in one go on the event loop."""

FIRST_DELAY, LONGEST_DELAY = 0.1, 2.0
"""Seconds between two attempts: doubled from the first to the longest, and varied."""

CONNECT_SECONDS = 5.0
"""Seconds for a connection to come about. The kernel asks a host that does not answer less and less often: waiting longer
would make its return be noticed late."""

IDLE_SECONDS = 60.0
"""How long a connection is kept that nothing is asked on: making one costs both sides more than a request. The API server
ends idle ones after 90 s."""

FORGET_ABSENCE = 30.0
"""Seconds after which an API that was not there is looked for again."""

RENEWAL_SECONDS = 10.0
"""Seconds that credentials are trusted after they were read, whatever the API server says of them."""

BUSY = frozenset({429, 502, 503, 504})

PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}

APPLY_TYPE = "application/apply-patch+yaml"

KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
)
"""A peer that vanished without a word is noticed within half a minute, also by a watch, which only listens."""


class RequestKey(NamedTuple):
    """What requests are counted by. ``status`` is HTTP's, 0 for no answer."""

    verb: str  # as in RBAC: get list watch create update patch delete deletecollection; and apply
    kind: str
    status: int


@dataclass(frozen=True, slots=True)
class _Request:
    verb: str
    method: str
    kind: str
    path: str
    query: Mapping[str, str]
    body: Any = None
    content_type: str = "application/json"
    repeatable: bool = True
    urgent: bool = False
    unfenced: bool = False

    @property
    def writes(self) -> bool:
        return self.verb not in ("get", "list", "watch")


class Api:
    """One API server. Made by ``connect``; ``close`` ends it.

    Methods raise ``ApiError`` when the API server refuses, ``Unavailable`` when it does not answer. Where they take a
    ``reference``, a manifest will do.
    """

    def __init__(self, access: Access, limits: ClientLimits, kubeconfig: str = "", context: str = "") -> None:
        self.requests: Counter[RequestKey] = Counter()
        self.fenced = ""
        """Why no write may be done now, if so: they wait as if the API server were away. Set by the Lease."""
        self._access = access
        self._limits = limits
        self._source = (kubeconfig, context)
        self._pace = Pace(limits.writes_per_second, limits.burst)
        self._places = asyncio.Semaphore(limits.concurrent)
        self._renewal = asyncio.Lock()
        self._session = _session(access)
        self._retired: tuple[aiohttp.ClientSession, ...] = ()
        self._renewed = float("-inf")
        self._present: dict[str, frozenset[str]] = {}
        self._absent: dict[str, float] = {}

    @classmethod
    async def connect(cls, settings: Settings) -> Api:
        """Find the cluster and see that it answers. Raises AccessError when no way to it is known, Unavailable, or ApiError
        when it does not know us."""
        access = await load_access(settings.kubeconfig, settings.context)
        api = cls(access, settings.client, settings.kubeconfig, settings.context)
        try:
            await api.version()
        except BaseException:
            await api.close()
            raise
        return api

    async def close(self) -> None:
        """End all connections."""
        for session in (self._session, *self._retired):
            await session.close()

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._access.server

    @property
    def host(self) -> str:
        """The API server's name or address."""
        return urllib.parse.urlsplit(self.server).hostname or ""

    @property
    def writes(self) -> int:
        """How many writes were sent so far, attempts that failed included."""
        return sum(count for key, count in self.requests.items() if key.verb not in ("get", "list", "watch"))

    # --------------------------------------------------------------- reading

    async def version(self) -> str:
        """Kubernetes' version, such as ``v1.37.2``."""
        answer = await self.read("/version", timeout=CONNECT_SECONDS)
        return str(answer.get("gitVersion", ""))

    async def read(self, path: str, query: Mapping[str, str] | None = None, timeout: float | None = None) -> Manifest:
        """What is at a URL path that is no object's: discovery, metrics, Kueue's visibility."""
        return await self._send(_Request("get", "GET", "", path, query or {}), timeout)

    async def get(self, reference: Reference | Manifest, subresource: str = "", timeout: float | None = None) -> Manifest:
        """An object as it is now."""
        name = _reference(reference)
        path = name.resource.path(name.namespace, name.name, subresource)
        return await self._send(_Request("get", "GET", name.resource.kind, path, {}), timeout)

    async def list(self, resource: Resource, namespace: str = "", selector: str = "", fields: str = "") -> Manifests:
        """All objects of a kind (in a namespace) that match the selectors, without ``managedFields``."""
        return (await self.list_with_version(resource, namespace, selector, fields))[0]

    async def list_with_version(
        self, resource: Resource, namespace: str = "", selector: str = "", fields: str = ""
    ) -> tuple[Manifests, str]:
        """The same, and the version from which a watch goes on."""
        try:
            return await self._list_pages(resource, namespace, selector, fields, PAGE)
        except ApiError as error:
            if not error.gone:
                raise
        return await self._list_pages(resource, namespace, selector, fields, 0)  # its pages were forgotten on the way

    async def _list_pages(
        self, resource: Resource, namespace: str, selector: str, fields: str, page: int
    ) -> tuple[Manifests, str]:
        query = {"labelSelector": selector, "fieldSelector": fields, "limit": str(page or "")}
        items: Manifests = []
        while True:
            answer = await self._send(_Request("list", "GET", resource.kind, resource.path(namespace), query), None)
            for item in answer.get("items") or ():
                item["metadata"].pop("managedFields", None)
                items.append({**item, "apiVersion": resource.group_version, "kind": resource.kind})
            query["continue"] = answer["metadata"].get("continue", "")
            if not query["continue"]:
                return items, answer["metadata"]["resourceVersion"]

    def watch(self, resource: Resource, namespace: str = "", selector: str = "", fields: str = "") -> Watch:
        """What is there and every change from then on, for ever: ``async for change in api.watch(POD)``."""
        return Watch(self, resource, namespace, selector, fields)

    async def available(self, group_version: str, kind: str) -> bool:
        """True when the API server serves that kind. Remembered; that it does not, only for a while."""
        now = asyncio.get_running_loop().time()
        if group_version not in self._present and self._absent.get(group_version, 0.0) <= now:
            await self._discover(group_version, now)
        return kind in self._present.get(group_version, frozenset())

    async def _discover(self, group_version: str, now: float) -> None:
        try:
            answer = await self.read(f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}")
        except ApiError as error:
            if not error.not_found:
                raise
            self._absent[group_version] = now + FORGET_ABSENCE
        else:
            self._present[group_version] = frozenset(entry["kind"] for entry in answer.get("resources") or ())

    async def allowed(self, verb: str, resource: Resource, namespace: str = "", subresource: str = "") -> bool:
        """True when we may do that, by the API server's word."""
        attributes = {
            "verb": verb,
            "group": resource.group,
            "resource": resource.plural,
            "subresource": subresource,
            "namespace": namespace,
        }
        review: Manifest = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = await self._send(
            _Request("create", "POST", "SelfSubjectAccessReview", path, {}, review, urgent=True, unfenced=True), None
        )
        return bool(answer["status"].get("allowed"))

    async def local_address(self) -> str:
        """The address of this host from which the API server is reached; raises Unavailable."""
        parts = urllib.parse.urlsplit(self.server)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM)
            with socket.socket(found[0][0], socket.SOCK_DGRAM) as probe:
                probe.connect(found[0][4])
                return str(probe.getsockname()[0])
        except OSError as error:
            raise Unavailable(f"{self.server}: {error.strerror or error}") from error

    # --------------------------------------------------------------- writing

    async def create(
        self,
        manifest: Manifest,
        *,
        manager: str = FIELD_MANAGER,
        dry_run: bool = False,
        urgent: bool = False,
        unfenced: bool = False,
        timeout: float | None = None,
    ) -> Manifest:
        """Make an object; raises ApiError ``already_exists``. Fields that the API server does not know are an error.

        ``urgent``, here and below: not after the writes that wait for their turn. ``unfenced``: for the Lease itself.
        """
        resource = resource_of(manifest)
        path = resource.path(manifest["metadata"].get("namespace", ""))
        query = _write_query(manager, dry_run, strict=True)
        named = "name" in manifest["metadata"]
        return await self._send(
            _Request(
                "create", "POST", resource.kind, path, query, manifest, repeatable=named, urgent=urgent, unfenced=unfenced
            ),
            timeout,
        )

    async def apply(
        self, manifest: Manifest, force: bool = False, *, manager: str = FIELD_MANAGER, dry_run: bool = False
    ) -> Manifest:
        """Make an object have these fields (server-side apply); raises ApiError ``conflict`` when another manager owns one of
        them with another value, unless ``force``."""
        reference = reference_of(manifest)
        query = {**_write_query(manager, dry_run, strict=True), "force": "true" if force else "false"}
        return await self._send(
            _Request("apply", "PATCH", reference.resource.kind, reference.path, query, manifest, APPLY_TYPE), None
        )

    async def patch(
        self,
        reference: Reference | Manifest,
        body: Any,
        kind: str = "merge",
        subresource: str = "",
        *,
        manager: str = FIELD_MANAGER,
        urgent: bool = False,
    ) -> Manifest:
        """Change an object; ``kind`` is ``merge`` (RFC 7396), ``json`` (RFC 6902, a list of operations) or ``strategic``. A
        ``metadata.resourceVersion`` in the body makes it fail with ``conflict`` when the object has changed since."""
        name = _reference(reference)
        path = name.resource.path(name.namespace, name.name, subresource)
        query = _write_query(manager, dry_run=False, strict=kind != "json")
        request = _Request("patch", "PATCH", name.resource.kind, path, query, body, PATCH_TYPES[kind], kind == "merge", urgent)
        return await self._send(request, None)

    async def replace(
        self,
        manifest: Manifest,
        *,
        manager: str = FIELD_MANAGER,
        urgent: bool = False,
        unfenced: bool = False,
        timeout: float | None = None,
    ) -> Manifest:
        """Put an object in the place of the one with its ``resourceVersion``; raises ApiError ``conflict``."""
        reference = reference_of(manifest)
        query = _write_query(manager, dry_run=False, strict=True)
        kind, path = reference.resource.kind, reference.path
        request = _Request("update", "PUT", kind, path, query, manifest, urgent=urgent, unfenced=unfenced)
        return await self._send(request, timeout)

    async def delete(
        self,
        reference: Reference | Manifest,
        propagation: str = "Background",
        grace: int | None = None,
        precondition_uid: str | None = None,
    ) -> bool:
        """Delete an object, and what it owns by ``propagation`` (Background, Foreground, Orphan). ``grace`` is in seconds.

        False when there was none, or, with ``precondition_uid``, only another one of that name.
        """
        name = _reference(reference)
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if precondition_uid:
            options["preconditions"] = {"uid": precondition_uid}
        try:
            await self._send(_Request("delete", "DELETE", name.resource.kind, name.path, {}, options), None)
        except ApiError as error:
            if error.not_found or (error.conflict and precondition_uid):
                return False
            raise
        return True

    async def delete_collection(
        self, resource: Resource, namespace: str, selector: str, propagation: str = "Background", grace: int | None = None
    ) -> None:
        """Delete all objects of a kind in a namespace that match a selector, in one request. The selector must not be empty."""
        if not selector:
            raise ValueError("deleting everything of a kind is never meant")
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        path = resource.path(namespace)
        query = {"labelSelector": selector}
        await self._send(_Request("deletecollection", "DELETE", resource.kind, path, query, options), None)

    # --------------------------------------------------------------- sending

    async def _send(self, request: _Request, timeout: float | None) -> Manifest:
        """Send a request, again where that helps, for at most ``timeout`` seconds (waiting for its turn not counted)."""
        if request.writes and not request.urgent:
            await self._pace.take()
        loop = asyncio.get_running_loop()
        end = loop.time() + (timeout or self._limits.timeout)
        delay, renewed = FIRST_DELAY, False
        while True:
            try:
                return await self._attempt(request, end - loop.time())
            except _Again as again:
                wait = max(again.after, delay * random.uniform(0.5, 1.0))
                if not (again.untaken or request.repeatable) or loop.time() + wait >= end:
                    raise Unavailable(str(again)) from again
            except ApiError as error:
                if error.status != 401 or renewed:
                    raise
                renewed, wait = True, 0.0
                await self._renew()  # or another request has just done so
            delay = min(delay * 2, LONGEST_DELAY)
            await asyncio.sleep(wait)

    async def _attempt(self, request: _Request, seconds: float) -> Manifest:
        if self.fenced and request.writes and not request.unfenced:
            raise _Again(self.fenced, untaken=True)
        data = None if request.body is None else json.dumps(request.body, separators=(",", ":")).encode()
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = request.content_type
        timeout = aiohttp.ClientTimeout(total=max(seconds, 0.1), sock_connect=CONNECT_SECONDS)
        async with self._places if not request.urgent else _no_limit():
            headers.update(await self._access.headers())
            with self._counted(request) as answered:
                async with self._session.request(
                    request.method, self._url(request.path, request.query), data=data, headers=headers, timeout=timeout
                ) as response:
                    text = await response.read()
                    answered(response.status)
        if response.status < 300:
            return _object(text)
        raise _failure(response.status, response.headers.get("Retry-After", ""), text)

    @contextmanager
    def _counted(self, request: _Request) -> Iterator[Any]:
        """Count an attempt by its outcome, and say what its failure means for another one."""
        outcome = [0]
        try:
            yield lambda status: outcome.__setitem__(0, status)
        except aiohttp.ClientConnectorCertificateError as error:
            why = getattr(error.certificate_error, "verify_message", "") or error.certificate_error
            raise AccessError(f"{self.server}: its certificate is not trusted: {why}") from error
        except (aiohttp.ClientError, OSError) as error:  # asyncio.TimeoutError is an OSError
            untaken = isinstance(error, aiohttp.ClientConnectorError)
            raise _Again(f"{self.server}: {_trouble(error)}", untaken) from error
        finally:
            self.requests[RequestKey(request.verb, request.kind, outcome[0])] += 1

    @asynccontextmanager
    async def stream(
        self, resource: Resource, path: str, query: Mapping[str, str], silence: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a watch's stream, which is cut after ``silence`` seconds without a word. Raises ApiError, Unavailable, and while
        it is read aiohttp's own errors."""
        headers = {"Accept": "application/json", **await self._access.headers()}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence)
        request = _Request("watch", "GET", resource.kind, path, query)
        try:
            with self._counted(request) as answered:
                response = await self._session.get(self._url(path, query), headers=headers, timeout=timeout)
                answered(response.status)
        except _Again as again:
            raise Unavailable(str(again)) from again
        async with response:
            if response.status == 401 and await self._renew():
                raise Unavailable("the credentials have expired, and were read anew")
            if response.status != 200:
                failure = _failure(response.status, "", await response.read())
                raise Unavailable(str(failure)) if isinstance(failure, _Again) else failure
            yield response

    async def _renew(self) -> bool:
        """Read the credentials anew, since tokens and certificates expire; False when that was done just now."""
        loop = asyncio.get_running_loop()
        async with self._renewal:
            if loop.time() - self._renewed < RENEWAL_SECONDS:
                return False
            access = await load_access(*self._source)
            for session in self._retired:
                await session.close()
            self._retired = (self._session,)  # requests under way go on there
            self._session, self._access, self._renewed = _session(access), access, loop.time()
            return True

    def _url(self, path: str, query: Mapping[str, str]) -> URL:
        given = {key: value for key, value in query.items() if value}
        text = f"{self.server}{path}?{urllib.parse.urlencode(given)}" if given else self.server + path
        return URL(text, encoded=True)


def _trouble(error: Exception) -> str:
    """What went wrong with a connection, in a few words."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return str(error.os_error.strerror or error.os_error)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__


class _Again(Exception):
    """An attempt that did not get a final answer. ``untaken``: the API server has not done it."""

    def __init__(self, message: str, untaken: bool, after: float = 0.0) -> None:
        super().__init__(message)
        self.untaken = untaken
        self.after = after


@asynccontextmanager
async def _no_limit() -> AsyncIterator[None]:
    yield


def _session(access: Access) -> aiohttp.ClientSession:
    def connect(address: Any) -> socket.socket:
        made = socket.socket(address[0], address[1], address[2])
        for level, option, value in KEEP_ALIVE if address[0] != socket.AF_UNIX else ():
            made.setsockopt(level, option, value)
        return made

    connector = aiohttp.TCPConnector(
        limit=0,
        keepalive_timeout=IDLE_SECONDS,
        ssl=access.tls if access.tls is not None else True,
        socket_factory=connect,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,  # it would look for ~/.netrc at every request; the proxy is found once
        proxy=access.proxy,
        read_bufsize=2**20,
    )


def _reference(reference: Reference | Manifest) -> Reference:
    return reference if isinstance(reference, Reference) else reference_of(reference)


def _write_query(manager: str, dry_run: bool, strict: bool) -> dict[str, str]:
    return {
        "fieldManager": manager,
        "fieldValidation": "Strict" if strict else "",
        "dryRun": "All" if dry_run else "",
    }


def _object(text: bytes) -> Manifest:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _Again("what answers there is no API server: " + _excerpt(text), untaken=False)
    return value


def _failure(status: int, retry_after: str, text: bytes) -> ApiError | _Again:
    """What an answer other than 2xx means."""
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        said = {"message": _excerpt(text), "reason": _phrase(status).replace(" ", "")}
    details = said.get("details") or {}
    message = said.get("message") or _phrase(status)
    seconds = float(retry_after) if retry_after.isdecimal() else float(details.get("retryAfterSeconds") or 0)
    if status in BUSY or (status == 500 and (seconds or said.get("reason") in ("ServerTimeout", "Timeout"))):
        return _Again(f"the API server is busy: {message}", untaken=status == 429, after=seconds)
    return ApiError(status, said.get("reason", ""), message, details)


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return f"HTTP status {status}"


def _excerpt(text: bytes) -> str:
    return " ".join(text[:300].decode("utf-8", "replace").split())
