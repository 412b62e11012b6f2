"""An API server that misbehaves on demand: a small real HTTP server that keeps objects in memory and speaks enough of the
protocol for a client. Tests on a real one are in tests/cluster."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from bridge.kubernetes.api import Api
from bridge.kubernetes.resources import RESOURCES, Manifest, Resource
from bridge.kubernetes.settings import ClientLimits, Settings

Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: fake
contexts: [{{name: fake, context: {{cluster: fake, user: me}}}}]
clusters: [{{name: fake, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: me, user: {{token: {token}}}}}]
"""


def status(code: int, reason: str, message: str = "", **details: Any) -> web.Response:
    """A failure as the API server tells it; ``after``: seconds for Retry-After."""
    after = details.pop("after", None)
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}
    headers = {} if after is None else {"Retry-After": str(after)}
    return web.json_response({**body, "details": details}, status=code, headers=headers)


class FakeKubernetes:
    """``faults`` are tried before each request, one a request; the first that gives an answer is used and dropped."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[tuple[str, str], Manifest]] = {}
        self.version = 100
        self.history: list[tuple[int, str, str, Manifest]] = []  # version, path of the kind, type, object
        self.oldest = 0
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.token = "token-1"
        self.missing = {"kueue.x-k8s.io/v1beta2"}  # APIs that are not served
        self.forbidden: set[tuple[str, str]] = set()  # verb and plural
        self.changed = asyncio.Event()
        self.streams: list[web.Request] = []
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Refuse connections, and cut those that there are. What it knows stays."""
        self.cut_streams()
        assert self._runner is not None
        await self._runner.cleanup()

    def cut_streams(self) -> None:
        for request in self.streams:
            if request.transport is not None:
                request.transport.abort()
        self.streams.clear()

    def forget_history(self) -> None:
        """No watch can go on from where it was."""
        self.oldest = self.version
        self.history.clear()

    # --------------------------------------------------------------- changes

    def put(self, resource: Resource, manifest: Manifest) -> Manifest:
        self.version += 1
        metadata = manifest["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        kept = self.objects.setdefault(str(resource), {})
        new = key not in kept
        metadata.setdefault("uid", f"uid-{self.version}" if new else kept[key]["metadata"]["uid"])
        metadata["resourceVersion"] = str(self.version)
        metadata["managedFields"] = [{"manager": "anybody"}]
        manifest = {**manifest, "apiVersion": resource.group_version, "kind": resource.kind}
        kept[key] = manifest
        self._tell(resource, "ADDED" if new else "MODIFIED", manifest)
        return manifest

    def remove(self, resource: Resource, name: str, namespace: str = "") -> Manifest:
        self.version += 1
        manifest = self.objects[str(resource)].pop((namespace, name))
        manifest = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self.version)}}
        self._tell(resource, "DELETED", manifest)
        return manifest

    def _tell(self, resource: Resource, kind: str, manifest: Manifest) -> None:
        self.history.append((self.version, str(resource), kind, json.loads(json.dumps(manifest))))
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    # --------------------------------------------------------------- requests

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path_qs}")
        for fault in list(self.faults):
            answer = await fault(request)
            if answer is not None:
                self.faults.remove(fault)
                return answer
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return status(401, "Unauthorized", "Unauthorized")
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.37.2"})
        if request.path.endswith("/selfsubjectaccessreviews"):
            asked = (await request.json())["spec"]["resourceAttributes"]
            return web.json_response({"status": {"allowed": (asked["verb"], asked["resource"]) not in self.forbidden}})
        resource, namespace, name = self._parse(request.path)
        if resource is None:
            return self._discover(request.path)
        if request.method == "GET" and not name:
            if "watch" in request.query:
                return await self._watch(request, resource, namespace)
            return self._list(request, resource, namespace)
        if request.method == "POST":
            return self._create(request, resource, namespace, await request.json())
        if request.method == "DELETE" and not name:
            return self._delete_collection(request, resource, namespace)
        if (namespace, name) not in self.objects.get(str(resource), {}) and request.content_type != APPLY:
            return status(404, "NotFound", f'{resource} "{name}" not found')
        return await self._one(request, resource, namespace, name)

    def _parse(self, path: str) -> tuple[Resource | None, str, str]:
        for resource in RESOURCES:
            if path.startswith(resource.root + "/"):
                parts = path[len(resource.root) + 1 :].split("/")
                namespace = parts[1] if parts[0] == "namespaces" and len(parts) > 2 else ""
                rest = parts[2:] if namespace else parts
                if rest[0] == resource.plural:
                    return resource, namespace, rest[1] if len(rest) > 1 else ""
        return None, "", ""

    def _discover(self, path: str) -> web.Response:
        served = [resource for resource in RESOURCES if resource.group_version not in self.missing]
        found = [{"kind": resource.kind, "name": resource.plural} for resource in served if resource.root == path]
        if not found:
            return web.Response(status=404, text="404 page not found\n")
        return web.json_response({"kind": "APIResourceList", "resources": found})

    def _list(self, request: web.Request, resource: Resource, namespace: str) -> web.Response:
        there = sorted(self.objects.get(str(resource), {}).items())
        items = [value for key, value in there if namespace in ("", key[0]) and _chosen(request, value)]
        start, limit = int(request.query.get("continue", "0")), int(request.query.get("limit", "0"))
        if start and start < 0:
            return status(410, "Expired")
        page = items[start : start + limit] if limit else items
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if limit and start + limit < len(items):
            metadata["continue"] = str(start + limit)
        bare = [{key: value for key, value in item.items() if key not in ("apiVersion", "kind")} for item in page]
        return web.json_response({"kind": resource.kind + "List", "metadata": metadata, "items": json.loads(json.dumps(bare))})

    def _create(self, request: web.Request, resource: Resource, namespace: str, manifest: Manifest) -> web.Response:
        name = manifest["metadata"]["name"]
        if (namespace, name) in self.objects.get(str(resource), {}):
            return status(409, "AlreadyExists", f'{resource} "{name}" already exists')
        return web.json_response(manifest if request.query.get("dryRun") else self.put(resource, manifest), status=201)

    def _delete_collection(self, request: web.Request, resource: Resource, namespace: str) -> web.Response:
        for key, value in list(self.objects.get(str(resource), {}).items()):
            if key[0] == namespace and _chosen(request, value):
                self.remove(resource, key[1], namespace)
        return web.json_response({"kind": "Status", "status": "Success"})

    async def _one(self, request: web.Request, resource: Resource, namespace: str, name: str) -> web.Response:
        found = self.objects.get(str(resource), {}).get((namespace, name), {})
        body = await request.json() if request.can_read_body else {}
        if request.method == "GET":
            return web.json_response(found)
        if request.method == "DELETE":
            if (body.get("preconditions") or {}).get("uid") not in (None, found["metadata"]["uid"]):
                return status(409, "Conflict", "the UID in the precondition does not match")
            return web.json_response(self.remove(resource, name, namespace))
        wanted = (body.get("metadata") or {}).get("resourceVersion") if isinstance(body, dict) else None
        if wanted not in (None, found.get("metadata", {}).get("resourceVersion")):
            return status(409, "Conflict", "the object has been modified")
        if request.method == "PUT":
            return web.json_response(self.put(resource, body))
        metadata = {**found.get("metadata", {}), **body.get("metadata", {})}
        return web.json_response(self.put(resource, {**found, **body, "metadata": metadata}))

    async def _watch(self, request: web.Request, resource: Resource, namespace: str) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self.streams.append(request)
        if version < self.oldest:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            await self._write(response, "ERROR", gone)
            return response
        while True:
            changed = self.changed
            for number, kind, change, manifest in list(self.history):
                if number > version:
                    version = number
                    if kind == str(resource) and namespace in ("", manifest["metadata"].get("namespace", "")):
                        await self._write(response, change if _chosen(request, manifest) else "DELETED", manifest)
            await self._write(response, "BOOKMARK", {"kind": resource.kind, "metadata": {"resourceVersion": str(version)}})
            await changed.wait()

    async def _write(self, response: web.StreamResponse, kind: str, manifest: Manifest) -> None:
        line = json.dumps({"type": kind, "object": manifest}).encode() + b"\n"
        half = len(line) // 2
        await response.write(line[:half])  # a line comes in pieces
        await asyncio.sleep(0)
        await response.write(line[half:])


APPLY = "application/apply-patch+yaml"

_TERM = re.compile(r"([^=! ]+)(?:(!?=)([^=]*)| in \((.*)\))")


def _chosen(request: web.Request, manifest: Manifest) -> bool:
    """Whether an object has the labels that a request is about: KEY=VALUE, KEY!=VALUE and KEY in (VALUE,...)."""
    labels = manifest["metadata"].get("labels") or {}
    for term in re.split(r",(?![^(]*\))", request.query.get("labelSelector", "")):
        match = _TERM.fullmatch(term)
        if match is None:
            continue
        key, operator, value, several = match.groups()
        wanted = several.split(",") if several is not None else [value]
        if (labels.get(key) in wanted) == (operator == "!="):
            return False
    return True


@asynccontextmanager
async def fake_kubernetes(
    folder: Path, limits: ClientLimits | None = None
) -> AsyncIterator[tuple[FakeKubernetes, Api, Settings]]:
    """A server, a client connected to it, and the settings that made it so."""
    server = FakeKubernetes()
    await server.start()
    write_kubeconfig(folder, server)
    settings = Settings(kubeconfig=str(folder / "kubeconfig"), client=limits or ClientLimits(timeout=3.0), lease_seconds=1)
    api = await Api.connect(settings)
    try:
        yield server, api, settings
    finally:
        await api.close()
        await server.stop()


def write_kubeconfig(folder: Path, server: FakeKubernetes) -> None:
    """What a client finds the server and its credentials by."""
    (folder / "kubeconfig").write_text(KUBECONFIG.format(port=server.port, token=server.token))
