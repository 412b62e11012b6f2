"""What queue systems and namespaces leave to our jobs, as quotas for the planner: pure functions of the objects.

Kueue's Cohorts are a tree. A ClusterQueue or Cohort holds what is below it to its own quota and borrowing limit; what it does
not lend (its quota above the lending limit) it can use beside that. Each place in the tree that can bind becomes a quota
over all of our jobs below it, less what others hold there. Quotas that cannot bind, because the nodes have less, are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.kubernetes.foreign import foreign_of
from bridge.kubernetes.quantities import MEBIBYTE
from bridge.kubernetes.queues.supply import CPU, MEMORY, Supply, amount_of, amount_used
from bridge.kubernetes.resources import Manifest
from slurmk.model.quotas import Quota, QuotaLimit

Key = tuple[str, str]
"""Flavor and resource."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """Which of our jobs use a queue: those of these accounts (None: of all but ``except_accounts``) in these partitions.

    ``cpu_milli`` are the thousandths that a CPU of a partition's jobs asks for.
    """

    partitions: frozenset[str]
    accounts: frozenset[str] | None = None
    except_accounts: frozenset[str] = frozenset()
    cpu_milli: Mapping[str, int] = field(default_factory=dict)

    def quota(self, name: str, limits: Iterable[QuotaLimit], explanation: str = "") -> Quota:
        milli = {each: amount for each, amount in self.cpu_milli.items() if each in self.partitions and amount != 1000}
        return Quota(
            name,
            tuple(limits),
            partitions=self.partitions,
            accounts=self.accounts,
            except_accounts=self.except_accounts,
            cpu_milli=milli,
            explanation=explanation,
        )


def united(several: Iterable[Jobs]) -> list[Jobs]:
    """The same jobs as few groups: those that differ by accounts alone are one."""
    found: dict[frozenset[str], Jobs] = {}
    for jobs in several:
        known = found.get(jobs.partitions)
        if known is None:
            found[jobs.partitions] = jobs
        elif known.accounts is not None and jobs.accounts is not None:
            found[jobs.partitions] = replace(known, accounts=known.accounts | jobs.accounts)
        else:
            excepted = frozenset[str]()
            for one, other in ((known, jobs), (jobs, known)):
                if one.accounts is None:
                    excepted |= one.except_accounts - (other.accounts or frozenset())
            found[jobs.partitions] = replace(known, accounts=None, except_accounts=excepted)
    return list(found.values())


# ------------------------------------------------------------------------------------------ Kueue


@dataclass(slots=True)
class _Place:
    """A ClusterQueue or Cohort in the tree. Amounts are by flavor and resource."""

    title: str
    parent: str
    nominal: dict[Key, int]
    borrowing: dict[Key, int]
    lending: dict[Key, int]
    children: list[str] = field(default_factory=list)
    subtree: dict[Key, int] = field(default_factory=dict)
    usage: Counter[Key] = field(default_factory=Counter)  # of others

    def kept(self, key: Key) -> int:
        """What is not lent to the cohort."""
        lent = self.lending.get(key)
        return 0 if lent is None else max(0, self.subtree.get(key, 0) - lent)


@dataclass(frozen=True, slots=True)
class Use:
    """Our jobs that use one ClusterQueue's flavor."""

    queue: str
    flavor: str
    jobs: Jobs


class KueueTree:
    """The ClusterQueues and Cohorts there are, and what others hold of them. ``reserved`` are (ClusterQueue, flavor,
    resource, amount) of their workloads that have quota."""

    def __init__(
        self, queues: Iterable[Manifest], cohorts: Iterable[Manifest], reserved: Iterable[tuple[str, str, str, int]]
    ) -> None:
        self._places: dict[str, _Place] = {}
        self.held: dict[str, str] = {}
        for manifest in cohorts:
            self._add("Cohort", manifest, manifest["spec"].get("parentName") or "")
        for manifest in queues:
            self._add("ClusterQueue", manifest, manifest["spec"].get("cohortName") or "")
            trouble = _trouble(manifest)
            if trouble:
                self.held[manifest["metadata"]["name"]] = trouble
        for name, place in list(self._places.items()):
            if place.parent and place.parent not in self._places:  # a Cohort may be implied by those in it
                self._places[place.parent] = _Place(place.parent.replace("/", " ", 1), "", {}, {}, {})
            if place.parent:
                self._places[place.parent].children.append(name)
        for queue, flavor, resource, amount in reserved:
            if f"ClusterQueue/{queue}" in self._places:
                self._places[f"ClusterQueue/{queue}"].usage[flavor, resource] += amount
        for name, place in self._places.items():
            if not place.parent:
                self._sum(name, frozenset())

    def __contains__(self, queue: str) -> bool:
        return f"ClusterQueue/{queue}" in self._places

    def flavors(self, queue: str) -> list[str]:
        """The flavors of a ClusterQueue, in its order."""
        return list(dict.fromkeys(flavor for flavor, _ in self._places[f"ClusterQueue/{queue}"].nominal))

    def _add(self, kind: str, manifest: Manifest, parent: str) -> None:
        place = _Place(f"{kind} {manifest['metadata']['name']}", parent and f"Cohort/{parent}", {}, {}, {})
        for group in manifest["spec"].get("resourceGroups") or ():
            for flavor in group.get("flavors") or ():
                for each in flavor.get("resources") or ():
                    key = flavor["name"], each["name"]
                    place.nominal[key] = amount_of(each["name"], each.get("nominalQuota", "0"))
                    for field_name, amounts in (("borrowingLimit", place.borrowing), ("lendingLimit", place.lending)):
                        if each.get(field_name) is not None:
                            amounts[key] = amount_of(each["name"], each[field_name])
        self._places[f"{kind}/{manifest['metadata']['name']}"] = place

    def _sum(self, name: str, above: frozenset[str]) -> None:
        """Quotas and usage of a place with all below it. Kueue stops Cohorts that are below themselves; they have nothing."""
        place = self._places[name]
        place.subtree = dict(place.nominal)
        for child_name in place.children:
            if child_name in above:
                continue
            self._sum(child_name, above | {name})
            child = self._places[child_name]
            for key, amount in child.subtree.items():
                place.subtree[key] = place.subtree.get(key, 0) + amount - child.kept(key)
            for key, amount in child.usage.items():
                place.usage[key] += max(0, amount - child.kept(key))

    def bounds(self, uses: Iterable[Use], supply: Supply) -> list[Quota]:
        """What our jobs are held to. A flavor's resources that slurmk does not know are left out."""
        found: list[Quota] = []
        by_flavor: dict[str, list[Use]] = {}
        for use in uses:
            by_flavor.setdefault(use.flavor, []).append(use)
        for flavor, users in by_flavor.items():
            below: dict[str, list[Use]] = {}
            for use in users:
                for name in self._chain(use.queue):
                    below.setdefault(name, []).append(use)
            for name, inside in below.items():
                found += self._bound(name, flavor, inside, supply)
        return found

    def _chain(self, queue: str) -> list[str]:
        """A ClusterQueue and the Cohorts that it is in, upwards."""
        chain: list[str] = []
        name = f"ClusterQueue/{queue}"
        while name and name not in chain:
            chain.append(name)
            name = self._places[name].parent
        return chain

    def _bound(self, name: str, flavor: str, inside: list[Use], supply: Supply) -> list[Quota]:
        """The quota at one place, over all our jobs below it; with several queues below that keep some of their quota for
        themselves, also over each one's jobs."""
        place = self._places[name]
        limits: list[tuple[Key, int]] = []
        for key, nominal in place.subtree.items():
            if key[0] == flavor and (not place.parent or key in place.borrowing):
                limits.append((key, nominal + place.borrowing.get(key, 0) if place.parent else nominal))
        groups = [inside]
        if len(inside) > 1 and any(self._kept_below(name, [use], key) for use in inside for key, _ in limits):
            groups += [[use] for use in inside]
        found = []
        for group in groups:
            for jobs in united(use.jobs for use in group):
                bounds = []
                for key, total in limits:
                    kept = self._kept_below(name, group, key)
                    limit = supply.limit_of(key[1], total + kept, place.usage[key])
                    if limit is not None and _binds(limit, key[1], jobs, supply):
                        bounds.append(limit)
                if bounds:
                    found.append(jobs.quota(f"{place.title} ({flavor})" if flavor else place.title, bounds))
        return found

    def _kept_below(self, name: str, uses: Iterable[Use], key: Key) -> int:
        """What places below this one, above these queues, keep for those below them and others do not use."""
        places = {each for use in uses for each in self._below(name, use.queue)}
        return sum(max(0, self._places[each].kept(key) - self._places[each].usage[key]) for each in places)

    def _below(self, name: str, queue: str) -> list[str]:
        chain = self._chain(queue)
        return chain[: chain.index(name)]


def _trouble(queue: Manifest) -> str:
    """Why a ClusterQueue admits nothing; empty if it does."""
    name = queue["metadata"]["name"]
    if queue["spec"].get("stopPolicy", "None") not in ("None", ""):
        return f"ClusterQueue {name} is stopped"
    for condition in (queue.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Active" and condition.get("status") == "False":
            return f"ClusterQueue {name} is not active: {condition.get('message', '')}".rstrip(": ")
    return ""


def _binds(limit: QuotaLimit, resource: str, jobs: Jobs, supply: Supply) -> bool:
    """False when the nodes of these partitions have no more than the quota leaves. Partitions may share nodes, and a CPU of
    Slurm's may be more or less than one of Kubernetes', so only what is sure counts."""
    if resource not in (MEMORY, CPU) and resource not in supply.gres:
        return True
    if resource == CPU and any(jobs.cpu_milli.get(name, 1000) > 1000 for name in jobs.partitions):
        return True
    have = sum(supply.partitions.get(name, {}).get(resource, 0) for name in jobs.partitions)
    return limit.left < have


def reserved_by(workload: Manifest) -> list[tuple[str, str, str, int]]:
    """(ClusterQueue, flavor, resource, amount) that a Kueue Workload holds; nothing when it has no quota or is over."""
    status = workload.get("status") or {}
    conditions = {each.get("type"): each.get("status") for each in status.get("conditions") or ()}
    admission = status.get("admission")
    if not admission or conditions.get("QuotaReserved") != "True" or conditions.get("Finished") == "True":
        return []
    return [
        (admission["clusterQueue"], (assignment.get("flavors") or {}).get(resource, ""), resource, amount_used(resource, text))
        for assignment in admission.get("podSetAssignments") or ()
        for resource, text in (assignment.get("resourceUsage") or {}).items()
    ]


# ------------------------------------------------------------------------------------------ Volcano


def volcano_bounds(
    queues: Mapping[str, Manifest], groups: Iterable[Manifest], uses: Iterable[tuple[str, Jobs]], supply: Supply
) -> list[Quota]:
    """What Volcano's Queues leave to our jobs, by their capability. ``groups`` are the PodGroups of others; ``uses`` are our
    Queues with the jobs that go there."""
    taken: dict[str, Counter[str]] = {}
    for group in groups:
        if (group.get("status") or {}).get("phase") in ("Running", "Inqueue"):
            amounts = {
                resource: amount_used(resource, text)
                for resource, text in ((group.get("spec") or {}).get("minResources") or {}).items()
            }
            for name in _upwards(queues, (group.get("spec") or {}).get("queue") or "default"):
                taken.setdefault(name, Counter()).update(amounts)
    below: dict[str, list[Jobs]] = {}
    for queue, jobs in uses:
        for name in _upwards(queues, queue):
            below.setdefault(name, []).append(jobs)
    found = []
    for name, inside in below.items():
        capability = (queues[name].get("spec") or {}).get("capability") or {}
        for jobs in united(inside):
            limits = []
            for resource, text in capability.items():
                limit = supply.limit_of(resource, amount_of(resource, text), taken.get(name, Counter())[resource])
                if limit is not None and _binds(limit, resource, jobs, supply):
                    limits.append(limit)
            if limits:
                found.append(jobs.quota(f"Queue {name}", limits))
    return found


def volcano_trouble(queues: Mapping[str, Manifest], queue: str) -> str:
    """Why Volcano takes no jobs in a Queue; empty if it does."""
    if queue not in queues:
        return f"Queue {queue} does not exist"
    state = (queues[queue].get("status") or {}).get("state") or "Open"
    return "" if state in ("Open", "Unknown") else f"Queue {queue} is {str(state).lower()}"


def _upwards(queues: Mapping[str, Manifest], name: str) -> list[str]:
    chain: list[str] = []
    while name in queues and name not in chain:
        chain.append(name)
        name = (queues[name].get("spec") or {}).get("parent") or ""
    return chain


# ------------------------------------------------------------------------------------------ ResourceQuota


def namespace_bounds(quota: Manifest, pods: Iterable[Manifest], jobs: Iterable[Jobs], supply: Supply) -> list[Quota]:
    """What a namespace's ResourceQuota leaves to our jobs there. ``pods`` are those of others in the namespace. Quotas with
    scopes are left to admission."""
    spec = quota.get("spec") or {}
    if spec.get("scopes") or spec.get("scopeSelector"):
        return []
    hard = spec.get("hard") or {}
    requests, limits, count = _held_by(pods)
    found = []
    for group in united(jobs):
        bounds: dict[str, QuotaLimit] = {}
        for name, text in hard.items():
            kind, dot, resource = name.partition(".")
            if name in (CPU, MEMORY):
                resource, held = name, requests
            elif name in ("pods", "count/pods"):
                resource, held = "pods", Counter({"pods": count})
            elif dot and kind in ("requests", "limits"):
                held = requests if kind == "requests" else limits
            else:
                continue
            limit = supply.limit_of(resource, amount_of(resource, text), held[resource])
            known = bounds.get(resource)
            if limit is not None and _binds(limit, resource, group, supply) and (known is None or limit.left < known.left):
                bounds[resource] = limit
        if bounds:
            metadata = quota["metadata"]
            found.append(group.quota(f"ResourceQuota {metadata['namespace']}/{metadata['name']}", bounds.values()))
    return found


def _held_by(pods: Iterable[Manifest]) -> tuple[Counter[str], Counter[str], int]:
    """What pods that are not over request, what they are limited to, and how many there are; in the units of ``Supply``."""
    requests: Counter[str] = Counter()
    limits: Counter[str] = Counter()
    count = 0
    for pod in pods:
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            continue
        count += 1
        requests.update(foreign_of(pod))
        limits.update(foreign_of({"spec": _with_limits(pod.get("spec") or {})}))
    return _in_units(requests), _in_units(limits), count


def _in_units(milli: Counter[str]) -> Counter[str]:
    """Thousandths as cpu in thousandths, memory in MiB and others in pieces, rounded up."""
    return Counter(
        {
            name: amount if name == CPU else -(-amount // (1000 * MEBIBYTE)) if name == MEMORY else -(-amount // 1000)
            for name, amount in milli.items()
        }
    )


def _with_limits(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A pod's spec that requests what it is limited to."""
    return {
        **spec,
        **{
            kind: [
                {**each, "resources": {"requests": (each.get("resources") or {}).get("limits") or {}}}
                for each in spec.get(kind) or ()
            ]
            for kind in ("containers", "initContainers")
        },
    }
