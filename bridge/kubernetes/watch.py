"""A watch that never ends: what is there, then every change, whatever happens to the connection.

The API server ends watches at will, forgets old versions (410 Gone), and may be away for minutes. A consumer sees none of
that: after a cut the watch goes on from where it was, or lists anew and tells only what differs, also what has vanished.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp

from bridge.kubernetes.errors import ApiError, Unavailable
from bridge.kubernetes.resources import Manifest, Resource

if TYPE_CHECKING:
    from bridge.kubernetes.api import Api

log = logging.getLogger(__name__)

FIRST_DELAY = 0.05
LONGEST_DELAY = 2.0
"""Seconds between two attempts: doubled from the first to the longest. Waiting longer would make the return be noticed late."""

REFUSED_DELAY = 20.0
"""Seconds after a refusal (403, 404 …), which takes a person to end."""

STREAM_SECONDS = (240, 480)
"""How long a single stream is asked for."""

SILENCE = 180.0
"""Seconds without a word after which a stream is cut; bookmarks come about once a minute."""


class ChangeType(StrEnum):
    """What a change is."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"  # everything that was there at a time has been told; no manifest


@dataclass(frozen=True, slots=True)
class Change:
    """One change. ``metadata.managedFields`` are left out. The manifest of an object that vanished unseen (``DELETED``) has
    ``apiVersion``, ``kind`` and of ``metadata`` no more than name, namespace, uid, resourceVersion and labels."""

    type: ChangeType
    manifest: Manifest


class _Known(NamedTuple):
    uid: str
    version: str
    labels: dict[str, str] | None


Key = tuple[str, str]


class Watch:
    """Iterate it once, with ``async for``; it never ends and never raises. ``trouble`` says why nothing comes, if so."""

    def __init__(self, api: Api, resource: Resource, namespace: str, selector: str, fields: str) -> None:
        self.resource = resource
        self.trouble = ""
        self._api = api
        self._namespace = namespace
        self._selector = selector
        self._fields = fields
        self._known: dict[Key, _Known] = {}
        self._version = ""
        self._delay = FIRST_DELAY

    async def __aiter__(self) -> AsyncIterator[Change]:
        while True:
            try:
                if not self._version:
                    async for change in self._listed():
                        yield change
                async for change in self._streamed():
                    yield change
            except ApiError as error:
                if error.gone:
                    self._version = ""
                    await self._wait("")
                else:
                    await self._wait(str(error), REFUSED_DELAY if error.status in (401, 403, 404) else 0.0)
            except (Unavailable, aiohttp.ClientError, OSError) as error:
                await self._wait(str(error) or type(error).__name__)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                self._version = ""
                await self._wait(f"what was sent is no change: {error}")
            else:
                await self._wait("")

    async def _wait(self, trouble: str, delay: float = 0.0) -> None:
        if trouble and trouble != self.trouble:
            log.warning("watching %s: %s", self.resource, trouble)
        self.trouble = trouble
        delay = delay or self._delay
        self._delay = min(self._delay * 2, LONGEST_DELAY)
        await asyncio.sleep(delay * random.uniform(0.5, 1.0))

    async def _listed(self) -> AsyncIterator[Change]:
        items, version = await self._api.list_with_version(self.resource, self._namespace, self._selector, self._fields)
        vanished = dict(self._known)
        for manifest in items:
            vanished.pop(_key(manifest), None)
            for change in self._differences(manifest):
                yield change
        for key, known in vanished.items():
            del self._known[key]
            yield Change(ChangeType.DELETED, self._remains(key, known))
        self._version = version
        self._heard()
        yield Change(ChangeType.SYNCED, {})

    def _differences(self, manifest: Manifest) -> list[Change]:
        """What a listed object means for somebody who knows what is known."""
        key, now = _key(manifest), _known(manifest)
        before = self._known.get(key)
        self._known[key] = now
        if before is None:
            return [Change(ChangeType.ADDED, manifest)]
        if before.uid != now.uid:
            return [Change(ChangeType.DELETED, self._remains(key, before)), Change(ChangeType.ADDED, manifest)]
        return [] if before.version == now.version else [Change(ChangeType.MODIFIED, manifest)]

    async def _streamed(self) -> AsyncIterator[Change]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(random.randint(*STREAM_SECONDS)),
            "labelSelector": self._selector,
            "fieldSelector": self._fields,
        }
        path = self.resource.path(self._namespace)
        async with self._api.stream(self.resource, path, query, SILENCE) as response:
            async for line in _lines(response.content):
                change = self._change(json.loads(line))
                self._heard()
                if change is not None:
                    yield change

    def _change(self, event: dict[str, Any]) -> Change | None:
        """What one line of the stream means; raises ApiError for what is an error there."""
        kind, manifest = event["type"], event["object"]
        if kind == "ERROR":
            raise ApiError(
                manifest.get("code", 500), manifest.get("reason", ""), manifest.get("message", ""), manifest.get("details")
            )
        self._version = manifest["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return None
        manifest["metadata"].pop("managedFields", None)
        key = _key(manifest)
        if kind == "DELETED":
            self._known.pop(key, None)
        else:
            self._known[key] = _known(manifest)
        return Change(ChangeType(kind), manifest)

    def _heard(self) -> None:
        if self.trouble:
            log.info("watching %s again", self.resource)
        self.trouble = ""
        self._delay = FIRST_DELAY

    def _remains(self, key: Key, known: _Known) -> Manifest:
        metadata: dict[str, Any] = {"name": key[1], "uid": known.uid, "resourceVersion": known.version}
        if key[0]:
            metadata["namespace"] = key[0]
        if known.labels:
            metadata["labels"] = known.labels
        return {"apiVersion": self.resource.group_version, "kind": self.resource.kind, "metadata": metadata}


def _key(manifest: Manifest) -> Key:
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _known(manifest: Manifest) -> _Known:
    metadata = manifest["metadata"]
    return _Known(metadata["uid"], metadata["resourceVersion"], metadata.get("labels"))


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a stream, however long they are."""
    parts: list[bytes] = []
    async for chunk in stream.iter_any():
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            if parts:
                line = b"".join(parts) + line
                parts.clear()
            if line:
                yield line
        if rest:
            parts.append(rest)
