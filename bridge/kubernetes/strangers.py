"""Pods that bear this controller's name and are none of its jobs': found at the start, before anything is taken for a leftover.

Two clusters of one name on one Kubernetes, or a controller that begins with another database than the one whose jobs run,
would otherwise end each other's jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence

from bridge.kubernetes.api import Api
from bridge.kubernetes.endings import Stage, stage_of
from bridge.kubernetes.labels import selector
from bridge.kubernetes.presence import attempt_of_pod
from bridge.kubernetes.resources import POD


class StrangersError(Exception):
    """Whose pods they seem to be, and what to do; ``str()`` is for the person who starts the controller."""


async def refuse_strangers(
    api: Api, cluster: str, namespaces: Collection[str], strange_jobs: Callable[[Iterable[int]], Sequence[int]]
) -> None:
    """See that all pods of ``cluster`` that have not ended are in the controller's own ``namespaces`` and of jobs of its
    database: ``strange_jobs`` gives those of some numbers that it has never given out (called in a thread). Raises
    StrangersError, the API's errors, and what ``strange_jobs`` raises."""
    elsewhere: set[str] = set()
    where: dict[int, str] = {}
    for pod in await api.list(POD, selector=selector(cluster)):
        key = attempt_of_pod(pod)
        namespace = pod["metadata"]["namespace"]
        if key is None or stage_of(pod) is Stage.ENDED:
            continue
        if namespace not in namespaces:
            elsewhere.add(namespace)
        else:
            where[key[0]] = namespace
    if elsewhere:
        raise StrangersError(
            f"jobs of a cluster that is called {cluster} too run in namespace {', '.join(sorted(elsewhere))}: "
            "give this one another name (`cluster` in slurmk.yaml, or ClusterName). If they are its own, slurmk.yaml must name "
            "their namespace"
        )
    strange = await asyncio.to_thread(strange_jobs, list(where))
    if strange:
        namespace = where[strange[0]]
        raise StrangersError(
            f"job {strange[0]} runs in namespace {namespace} and is not in this database: start with the one that it is in, or "
            f"end what that one has left: kubectl delete secrets -n {namespace} -l '{selector(cluster)}'"
        )
