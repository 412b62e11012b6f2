"""Makes the cluster's queues what they should be, and shows first what that would change.

Everything is done by server-side apply with a field manager of its own, so what others set beside it stays. Only objects with
our labels are changed or deleted; an object of the same name without them is somebody else's and is left alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

from bridge.kubernetes import labels
from bridge.kubernetes.api import Api
from bridge.kubernetes.errors import ApiError
from bridge.kubernetes.queues.accounts import read_accounts
from bridge.kubernetes.queues.kueue import KINDS as KUEUE_KINDS
from bridge.kubernetes.queues.kueue import kueue_objects
from bridge.kubernetes.queues.supply import supply_of
from bridge.kubernetes.queues.volcano import KINDS as VOLCANO_KINDS
from bridge.kubernetes.queues.volcano import priority_classes, volcano_objects
from bridge.kubernetes.resources import Manifest, Reference, Resource, reference_of
from bridge.kubernetes.settings import PodSettings, Settings
from slurmk.model.site import Site

FIELD_MANAGER = "slurmk-queues"

KINDS: tuple[Resource, ...] = (*KUEUE_KINDS, *VOLCANO_KINDS)
"""All kinds of queue objects, in the order in which they are made."""


class Action(StrEnum):
    """What is to be done, or was done, with an object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Step:
    """One object's change. ``text`` shows what of it changes, or why it cannot be done."""

    action: Action
    reference: Reference
    text: str = ""

    def __str__(self) -> str:
        indented = "".join(f"    {line}\n" for line in self.text.splitlines())
        return f"{self.action} {self.reference}\n{indented}"


def wanted_objects(
    site: Site, settings: Settings, pods: Mapping[str, PodSettings], nodes: Mapping[str, Manifest]
) -> tuple[Manifest, ...]:
    """All queue objects that there should be, in the order of creation. ``pods`` are the settings of all partitions, ``nodes``
    the Node objects by Slurm's names. Raises QueueError, and GrammarError for accounts that are wrong."""
    accounts = read_accounts(settings)
    supply = supply_of(site.partitions, nodes, settings.gres)
    preempts = site.preempt_type == "preempt/qos" and site.preempt_mode.upper() != "OFF"
    hosts = {name: manifest["metadata"]["name"] for name, manifest in nodes.items()}
    return (
        *kueue_objects(site.cluster_name, settings, pods, accounts, supply, preempts=preempts),
        *priority_classes(site.cluster_name, settings, pods, accounts, preempts=preempts),
        *volcano_objects(site.cluster_name, site, pods, accounts, supply, hosts),
    )


class QueueObjects:
    """The queue objects of one cluster of slurmk."""

    def __init__(self, api: Api, cluster: str) -> None:
        self._api = api
        self._labels = labels.managed(cluster)
        self._selector = labels.selector(cluster)

    async def diff(self, wanted: Sequence[Manifest], *, force: bool = False) -> list[Step]:
        """What ``apply`` would do. Raises Unavailable, and ApiError for what cannot be read."""
        steps = []
        for manifest in wanted:
            step = await self._difference(manifest, force)
            if step is not None:
                steps.append(step)
        return [*steps, *(Step(Action.DELETE, each) for each in await self._surplus(wanted))]

    async def apply(self, wanted: Sequence[Manifest], *, force: bool = False) -> list[Step]:
        """Make it so; what was done. Objects that wait for others (a Queue for its parent's new limits) are tried again after
        those. ``force`` also takes fields that others have set to something else."""
        done: list[Step] = []
        waiting = list(wanted)
        while waiting:
            refused: list[tuple[Manifest, Step]] = []
            for manifest in waiting:
                step = await self._difference(manifest, force)
                if step is None:
                    continue
                if step.action is not Action.REFUSED:
                    step = await self._put(manifest, step, force)
                if step.action is Action.REFUSED:
                    refused.append((manifest, step))
                else:
                    done.append(step)
            if len(refused) == len(waiting):
                return [*done, *(step for _, step in refused)]
            waiting = [manifest for manifest, _ in refused]
        return [*done, *await self._remove_all(await self._surplus(wanted))]

    async def delete(self) -> list[Step]:
        """Delete all objects that we made; what was done."""
        return await self._remove_all(await self._surplus(()))

    # ------------------------------------------------------------------------------------------ one object

    async def _difference(self, manifest: Manifest, force: bool) -> Step | None:
        reference = reference_of(manifest)
        try:
            there = await self._api.get(reference)
        except ApiError as error:
            if not error.not_found:
                raise
            if not await self._api.available(reference.resource.group_version, reference.resource.kind):
                return Step(Action.REFUSED, reference, f"the cluster has no {reference.resource}")
            return Step(Action.CREATE, reference, _text(manifest))
        if not self._is_ours(there):
            return Step(Action.REFUSED, reference, "it exists and was not made by this cluster of slurmk")
        try:
            then = await self._api.apply(manifest, force, manager=FIELD_MANAGER, dry_run=True)
        except ApiError as error:
            return Step(Action.REFUSED, reference, f"{_BY_API}{error}")
        before, after = _text(there), _text(then)
        return None if before == after else Step(Action.CHANGE, reference, _difference_text(before, after))

    async def _put(self, manifest: Manifest, step: Step, force: bool) -> Step:
        try:
            await self._api.apply(manifest, force, manager=FIELD_MANAGER)
        except ApiError as error:
            return Step(Action.REFUSED, step.reference, f"{_BY_API}{error}")
        return step

    async def _surplus(self, wanted: Sequence[Manifest]) -> list[Reference]:
        """Objects of ours that there should not be, those that refer to others first."""
        keep = {(each.resource, each.namespace, each.name) for each in map(reference_of, wanted)}
        found: list[Reference] = []
        for resource in reversed(KINDS):
            if not await self._api.available(resource.group_version, resource.kind):
                continue
            there = [reference_of(each) for each in await self._api.list(resource, selector=self._selector)]
            found += [each for each in there if (each.resource, each.namespace, each.name) not in keep]
        return found

    async def _remove_all(self, references: Sequence[Reference]) -> list[Step]:
        """A Queue goes only after those below it, so what is refused is tried again as long as others went."""
        done: list[Step] = []
        waiting = list(references)
        while waiting:
            steps = [await self._remove(each) for each in waiting]
            done += [step for step in steps if step.action is Action.DELETE]
            refused = [step for step in steps if step.action is Action.REFUSED]
            if len(refused) == len(waiting):
                return [*done, *refused]
            waiting = [step.reference for step in refused]
        return done

    async def _remove(self, reference: Reference) -> Step:
        try:
            await self._api.delete(reference, precondition_uid=reference.uid)
        except ApiError as error:
            return Step(Action.REFUSED, reference, f"{_BY_API}{error}")
        return Step(Action.DELETE, reference)

    def _is_ours(self, manifest: Manifest) -> bool:
        there = manifest["metadata"].get("labels") or {}
        return all(there.get(key) == value for key, value in self._labels.items())


_BY_API = "the API server says: "


def _text(manifest: Manifest) -> str:
    """What of an object people set, as YAML."""
    metadata = {key: manifest["metadata"].get(key) for key in ("labels", "annotations")}
    shown: dict[str, Any] = {"metadata": {key: value for key, value in metadata.items() if value}}
    shown.update((key, value) for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata", "status"))
    return yaml.safe_dump(shown, sort_keys=True, default_flow_style=False)


def _difference_text(before: str, after: str) -> str:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
    return "\n".join(line for line in lines if not line.startswith("@@"))
