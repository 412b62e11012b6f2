"""What queues leave to our jobs, against Kueue's own arithmetic on random trees, and case by case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from queue_site import NODES, SITE

from bridge.kubernetes.queues.limits import (
    Jobs,
    KueueTree,
    Use,
    namespace_bounds,
    reserved_by,
    united,
    volcano_bounds,
    volcano_trouble,
)
from bridge.kubernetes.queues.supply import Supply, supply_of
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import Settings
from slurmk.model.quotas import Quota

SUPPLY = supply_of(SITE.partitions, NODES, Settings().gres)
PLENTY = Supply({"p": {"cpu": 10**9, "memory": 10**9}}, {})


def queue(name: str, cohort: str = "", cpu: int = 0, borrow: int | None = None, lend: int | None = None) -> Manifest:
    amounts: dict[str, Any] = {"name": "cpu", "nominalQuota": str(cpu)}
    for key, value in (("borrowingLimit", borrow), ("lendingLimit", lend)):
        if value is not None:
            amounts[key] = str(value)
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [amounts]}]}
    spec: dict[str, Any] = {"resourceGroups": [group]}
    if cohort:
        spec["cohortName"] = cohort
    return {"metadata": {"name": name}, "spec": spec, "status": {}}


def cohort(name: str, parent: str = "", **amounts: Any) -> Manifest:
    manifest = queue(name, **amounts)
    if parent:
        manifest["spec"]["parentName"] = parent
    return manifest


# ------------------------------------------------------------------------------------------ Kueue's arithmetic


@dataclass
class Place:
    """A ClusterQueue or Cohort as Kueue sees it (its documentation of quotas, borrowing and lending limits)."""

    nominal: int
    borrow: int | None
    lend: int | None
    parent: Place | None
    children: list[Place] = field(default_factory=list)
    usage: int = 0

    def __post_init__(self) -> None:
        if self.parent is not None:
            self.parent.children.append(self)

    @property
    def subtree(self) -> int:
        return self.nominal + sum(child.subtree - child.kept for child in self.children)

    @property
    def kept(self) -> int:
        return 0 if self.lend is None else max(0, self.subtree - self.lend)

    def available(self) -> int:
        if self.parent is None:
            return self.subtree - self.usage
        above = self.parent.available()
        if self.borrow is not None:
            stored = self.subtree - self.kept
            used = max(0, self.usage - self.kept)
            above = min(stored - used + self.borrow, above)
        return max(0, self.kept - self.usage) + above

    def add(self, amount: int) -> None:
        local = max(0, self.kept - self.usage)
        self.usage += amount
        if self.parent is not None and amount > local:
            self.parent.add(amount - local)


LIMITS = st.none() | st.integers(0, 8)


@st.composite
def trees(draw: Callable[..., Any]) -> tuple[list[Manifest], list[Manifest], dict[str, Place], dict[str, int]]:
    """Cohorts and ClusterQueues as manifests and as Kueue would have them, and what others use of each queue."""
    cohorts: list[Manifest] = []
    places: dict[str, Place] = {}
    for number in range(draw(st.integers(1, 4))):
        parent = draw(st.sampled_from([f"c{index}" for index in range(number)])) if number else ""
        cpu = draw(st.integers(0, 8))
        borrow, lend = (draw(LIMITS), draw(LIMITS)) if parent else (None, None)
        cohorts.append(cohort(f"c{number}", parent, cpu=cpu, borrow=borrow, lend=lend))
        places[f"c{number}"] = Place(cpu, borrow, lend, places.get(parent))
    queues = []
    for number in range(draw(st.integers(1, 4))):
        parent = draw(st.sampled_from(sorted(places))) if draw(st.booleans()) else "c0"
        parent = parent if parent.startswith("c") else "c0"
        cpu, borrow, lend = draw(st.integers(0, 8)), draw(LIMITS), draw(LIMITS)
        queues.append(queue(f"q{number}", parent, cpu, borrow, lend))
        places[f"q{number}"] = Place(cpu, borrow, lend, places[parent])
    used = {each["metadata"]["name"]: draw(st.integers(0, 6)) for each in queues}
    return cohorts, queues, places, used


def bounds_of(tree: KueueTree, queues: list[str]) -> list[Quota]:
    uses = [Use(name, "f", Jobs(frozenset({"p"}), frozenset({name}))) for name in queues]
    return tree.bounds(uses, PLENTY)


def allowed(bounds: list[Quota], held: dict[str, int], new: str, amount: int) -> bool:
    """Whether the planner would let a job of this account start."""
    for quota in bounds:
        [limit] = quota.limits
        if quota.counts("p", new, "normal", 0):
            used = sum(each for account, each in held.items() if quota.counts("p", account, "normal", 0))
            if used + amount * 1000 > limit.left:
                return False
    return True


@settings(max_examples=500, deadline=None)
@given(trees(), st.data())
def test_the_planner_lets_start_what_kueue_would_admit(case: Any, data: st.DataObject) -> None:
    cohorts, queues, places, used = case
    reserved = []
    for name, amount in used.items():  # others got what they have by Kueue's leave
        amount = min(amount, max(0, places[name].available()))
        places[name].add(amount)
        reserved.append((name, "f", "cpu", amount * 1000))
    tree = KueueTree(queues, cohorts, reserved)
    names = data.draw(st.lists(st.sampled_from([each["metadata"]["name"] for each in queues]), min_size=1, unique=True))
    bounds = bounds_of(tree, names)
    held = dict.fromkeys(names, 0)
    for _ in range(8):
        name, amount = data.draw(st.sampled_from(names)), data.draw(st.integers(1, 5))
        admitted = amount <= places[name].available()
        if len(names) < 3:
            assert allowed(bounds, held, name, amount) == admitted
        elif admitted:  # three queues that lend in part: the planner may be too hopeful, never too careful
            assert allowed(bounds, held, name, amount)
        if admitted:
            places[name].add(amount)
            held[name] += amount * 1000


# ------------------------------------------------------------------------------------------ case by case


def test_a_queue_alone_is_held_to_its_quota() -> None:
    tree = KueueTree([queue("q", cpu=10)], [], [("q", "f", "cpu", 3000)])
    [found] = tree.bounds([Use("q", "f", Jobs(frozenset({"p"})))], PLENTY)
    assert found.name == "ClusterQueue q (f)"
    assert found.limits[0].left == 7000
    assert found.accounts is None


def test_quotas_above_what_the_nodes_have_are_left_out() -> None:
    tree = KueueTree([queue("q", cpu=128)], [], [])
    assert tree.bounds([Use("q", "f", Jobs(frozenset({"cpu"})))], SUPPLY) == []
    tree = KueueTree([queue("q", cpu=128)], [], [("q", "f", "cpu", 1)])
    assert len(tree.bounds([Use("q", "f", Jobs(frozenset({"cpu"})))], SUPPLY)) == 1


def test_queues_that_admit_nothing_are_known() -> None:
    stopped, inactive = queue("a"), queue("b")
    stopped["spec"]["stopPolicy"] = "Hold"
    inactive["status"] = {"conditions": [{"type": "Active", "status": "False", "message": "no flavor x"}]}
    tree = KueueTree([stopped, inactive, queue("c")], [], [])
    assert tree.held == {"a": "ClusterQueue a is stopped", "b": "ClusterQueue b is not active: no flavor x"}
    assert "c" in tree
    assert "d" not in tree


def test_cohorts_below_themselves_end() -> None:
    ring = [cohort("a", "b"), cohort("b", "a")]
    tree = KueueTree([queue("q", "a", cpu=1)], ring, [])
    tree.bounds([Use("q", "f", Jobs(frozenset({"p"})))], PLENTY)


def test_a_workload_holds_what_it_is_admitted_with() -> None:
    assignment = {"flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "1500m"}}
    workload: Manifest = {
        "status": {
            "admission": {"clusterQueue": "q", "podSetAssignments": [assignment, assignment]},
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
        }
    }
    assert reserved_by(workload) == [("q", "f", "cpu", 1500)] * 2
    workload["status"]["conditions"].append({"type": "Finished", "status": "True"})
    assert reserved_by(workload) == []
    assert reserved_by({"status": {}}) == []


def test_groups_of_jobs_are_united() -> None:
    both = frozenset({"a", "b"})
    one, other = (Jobs(both, frozenset({name})) for name in ("x", "y"))
    [found] = united([one, other])
    assert found.accounts == {"x", "y"}
    rest = Jobs(both, None, frozenset({"x", "y"}))
    [found] = united([rest, one])
    assert (found.accounts, found.except_accounts) == (None, {"y"})
    assert len(united([one, Jobs(frozenset({"c"}))])) == 2


def test_volcano_holds_jobs_to_the_capability_of_all_queues_above() -> None:
    queues = {
        "root": {"spec": {}},
        "hpc": {"spec": {"parent": "root", "capability": {"cpu": "20"}}},
        "hpc-a": {"spec": {"parent": "hpc", "capability": {"cpu": "8", "nvidia.com/gpu": "4"}}},
        "hpc-b": {"spec": {"parent": "hpc"}, "status": {"state": "Closed"}},
    }
    groups = [
        {"spec": {"queue": "hpc-b", "minResources": {"cpu": "5"}}, "status": {"phase": "Running"}},
        {"spec": {"queue": "hpc-b", "minResources": {"cpu": "50"}}, "status": {"phase": "Pending"}},
    ]
    jobs = Jobs(frozenset({"cpu", "gpu"}))
    found = {quota.name: quota for quota in volcano_bounds(queues, groups, [("hpc-a", jobs)], SUPPLY)}
    assert {name: [limit.left for limit in quota.limits] for name, quota in found.items()} == {
        "Queue hpc-a": [8000, 4],
        "Queue hpc": [15000],
    }
    assert [volcano_trouble(queues, name) for name in ("hpc-a", "hpc-b", "x")] == [
        "",
        "Queue hpc-b is closed",
        "Queue x does not exist",
    ]


def test_a_resource_quota_leaves_what_pods_of_others_do_not_hold() -> None:
    hard = {
        "requests.cpu": "10",
        "limits.cpu": "30",
        "memory": "20Gi",
        "pods": "9",
        "requests.nvidia.com/gpu": "2",
        "secrets": "5",
    }
    quota = {"metadata": {"namespace": "ns", "name": "rq"}, "spec": {"hard": hard}}
    resources = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "25"}}
    pods: list[Manifest] = [
        {"spec": {"containers": [{"name": "c", "resources": resources}]}, "status": {"phase": "Pending"}},
        {"spec": {"containers": [{"name": "c", "resources": resources}]}, "status": {"phase": "Succeeded"}},
    ]
    [found] = namespace_bounds(quota, pods, [Jobs(frozenset({"cpu", "gpu"}), cpu_milli={"cpu": 500})], SUPPLY)
    assert {limit.resource: limit.left for limit in found.limits} == {
        "cpu": 5000,
        "mem": 19 * 1024,
        "node": 8,
        "gres/gpu": 2,
    }
    assert found.cpu_milli == {"cpu": 500}
    assert namespace_bounds({**quota, "spec": {"hard": hard, "scopes": ["BestEffort"]}}, pods, [], SUPPLY) == []
