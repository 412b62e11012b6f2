"""Partitions and nodes that administrators make, change and delete, and what of it outlives what."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_story import ALICE, BOB, ROOT
from core_story import Cluster as Story

from slurmk.core.effects import Effect, ForgetNode, ForgetPartition, SavePartition
from slurmk.core.errors import Errno
from slurmk.core.events import (
    CreateNodes,
    DeleteNodes,
    DeletePartition,
    Event,
    Reconfigure,
    SiteChanged,
    StepStarted,
    Tick,
    UpdateNode,
    UpdatePartition,
    UpdateStep,
)
from slurmk.core.machine import Machine
from slurmk.model.job import Step
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import JobState, NodeFlag, NodeState


class Cluster(Story):
    """Remembers all effects."""

    def __init__(self, site: Site | None = None) -> None:
        super().__init__(site)
        self.history: list[Effect] = []

    def tell(self, event: Event) -> list[Effect]:
        self.history += super().tell(event)
        return self.effects


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def update(cluster: Cluster, name: str, *, create: bool = False, caller: object = ROOT, **changes: object) -> None:
    cluster.tell(UpdatePartition(cluster.now, caller, name, tuple(changes.items()), create))  # type: ignore[arg-type]


def restarted(cluster: Cluster, site: Site | None = None) -> Machine:
    machine = Machine(site or cluster.machine.site)
    saved: dict[str, Partition] = {}
    for effect in cluster.history:
        if isinstance(effect, SavePartition):
            saved[effect.partition.name] = effect.partition
        elif isinstance(effect, ForgetPartition):
            saved.pop(effect.name, None)
    machine.restore((), cluster.machine.nodes.values(), saved.values(), 1)
    return machine


def test_a_partition_is_made_and_lasts_over_a_restart(cluster: Cluster) -> None:
    first, second = list(cluster.machine.nodes)[:2]
    update(cluster, "new", create=True, nodes=(("", second), ("", first)), maximum_time=30)
    made = cluster.machine.partitions["new"]
    assert (made.nodes, made.maximum_time, made.minimum_nodes) == ((first, second), 30, 1)
    assert restarted(cluster).partitions["new"] == made
    cluster.tell(DeletePartition(cluster.now, ROOT, "new"))
    assert "new" not in cluster.machine.partitions
    assert "new" not in restarted(cluster).partitions


def test_a_configured_partition_that_was_deleted_stays_away_until_the_configuration_is_read_anew(cluster: Cluster) -> None:
    name = next(name for name, each in cluster.machine.partitions.items() if not each.default)
    cluster.tell(DeletePartition(cluster.now, ROOT, name))
    assert name not in restarted(cluster).partitions
    cluster.tell(Reconfigure(cluster.now, ROOT, cluster.machine.site))
    assert name in cluster.machine.partitions
    assert name in restarted(cluster).partitions


def test_a_configuration_that_is_read_anew_says_what_holds(cluster: Cluster) -> None:
    name = next(iter(cluster.machine.partitions))
    configured = cluster.machine.partitions[name]
    update(cluster, name, maximum_time=7)
    update(cluster, "new", create=True)
    assert restarted(cluster).partitions[name].maximum_time == 7
    cluster.tell(Reconfigure(cluster.now, ROOT, cluster.machine.site))
    assert cluster.machine.partitions[name] == configured
    assert "new" not in cluster.machine.partitions
    assert restarted(cluster).partitions[name] == configured


@pytest.mark.parametrize(
    ("flags", "time", "state"), [("KeepPartInfo", 7, "DOWN"), ("KeepPartState", None, "DOWN"), ("", None, "UP")]
)
def test_reconfig_flags_keep_what_was_changed(cluster: Cluster, flags: str, time: int | None, state: str) -> None:
    site = cluster.machine.site
    name = next(iter(cluster.machine.partitions))
    usual = cluster.machine.partitions[name].maximum_time
    update(cluster, name, maximum_time=7, state="DOWN")
    cluster.tell(Reconfigure(cluster.now, ROOT, replace(site, parameters={**site.parameters, "ReconfigFlags": flags})))
    changed = cluster.machine.partitions[name]
    assert (changed.maximum_time, changed.state) == (usual if time is None else time, state)


REFUSED = [
    ("nosuch", {"state": "UP"}, Errno.INVALID_PARTITION_NAME),
    (None, {"qos": "nosuch"}, Errno.INVALID_QOS),
    (None, {"allow_qos": ("normal", "nosuch")}, Errno.INVALID_QOS),
    (None, {"nodes": (("", "nosuch"),)}, Errno.INVALID_NODE_NAME),
    (None, {"nodes": (("+", "nosuch"),)}, Errno.INVALID_NODE_NAME),
    (None, {"tres_billing_weights": "foo=1"}, Errno.INVALID_TRES_BILLING_WEIGHTS),
    (None, {"tres_billing_weights": "cpu=x"}, Errno.INVALID_TRES_BILLING_WEIGHTS),
    (None, {"job_defaults": "foo=1"}, Errno.INVALID_JOB_DEFAULTS),
    (None, {"topology": "nosuch"}, Errno.REQUESTED_TOPO_CONFIG_UNAVAILABLE),
    (None, {"created": True}, Errno.NOT_SUPPORTED),
]


@pytest.mark.parametrize(("name", "changes", "errno"), REFUSED)
def test_a_wrong_change_changes_nothing(cluster: Cluster, name: str | None, changes: dict[str, object], errno: Errno) -> None:
    name = name or next(iter(cluster.machine.partitions))
    before = dict(cluster.machine.partitions)
    update(cluster, name, grace_time=77, **changes)
    assert cluster.refusal() is errno
    assert dict(cluster.machine.partitions) == before


def test_users_change_no_partition(cluster: Cluster) -> None:
    name = next(iter(cluster.machine.partitions))
    for event in (
        UpdatePartition(cluster.now, ALICE, name, (("state", "UP"),)),
        UpdatePartition(cluster.now, ALICE, "new", (), create=True),
        DeletePartition(cluster.now, ALICE, name),
        CreateNodes(cluster.now, ALICE, (Node("x"),)),
        DeleteNodes(cluster.now, ALICE, ("x",)),
    ):
        cluster.tell(event)
        assert cluster.refusal() is Errno.USER_ID_MISSING


def test_a_partition_in_use_is_not_deleted(cluster: Cluster) -> None:
    cluster.submit()
    cluster.tell(DeletePartition(cluster.now, ROOT, cluster.job(1).partitions[0]))
    assert cluster.refusal() is Errno.PARTITION_IN_USE


def test_nodes_are_added_to_a_partition_and_taken_out(cluster: Cluster) -> None:
    names = list(cluster.machine.nodes)
    update(cluster, "new", create=True, nodes=(("", names[0]),))
    update(cluster, "new", nodes=(("+", names[2]), ("+", names[1])))
    assert cluster.machine.partitions["new"].nodes == tuple(names[:3])
    update(cluster, "new", nodes=(("-", names[1]), ("-", "nosuch")))
    assert cluster.machine.partitions["new"].nodes == (names[0], names[2])
    update(cluster, "new", nodes=(("", "ALL"),))
    assert cluster.machine.partitions["new"].nodes == tuple(names)


def test_one_partition_is_the_default_one(cluster: Cluster) -> None:
    update(cluster, "new", create=True, default=True)
    assert [name for name, each in cluster.machine.partitions.items() if each.default] == ["new"]


def test_exclusive_forms(cluster: Cluster) -> None:
    update(cluster, "new", create=True, exclusive="TOPO")
    assert cluster.machine.partitions["new"].oversubscribe == "EXCLUSIVE"
    update(cluster, "new", exclusive="USER")
    assert cluster.machine.partitions["new"].oversubscribe == "NO"
    assert cluster.machine.partitions["new"].exclusive_user


def with_room(cluster: Cluster, nodes: int) -> Cluster:
    site = cluster.machine.site
    return Cluster(replace(site, parameters={**site.parameters, "MaxNodeCount": str(nodes)}))


def test_nodes_are_made_within_the_most_that_there_may_be(cluster: Cluster) -> None:
    cluster.tell(CreateNodes(cluster.now, ROOT, (Node("x1"),)))
    assert cluster.refusal() is Errno.NODE_TABLE_FULL
    roomy = with_room(cluster, len(cluster.machine.nodes) + 2)
    roomy.tell(CreateNodes(roomy.now, ROOT, (Node("x1"), Node("x2"))))
    assert roomy.machine.nodes["x2"].flags & NodeFlag.DYNAMIC_NORM
    roomy.tell(CreateNodes(roomy.now, ROOT, (Node("x1"),)))
    assert roomy.refusal() is Errno.NODE_ALREADY_EXISTS
    assert "x1" in restarted(roomy).nodes
    roomy.tell(Reconfigure(roomy.now, ROOT, roomy.machine.site))
    assert "x1" in roomy.machine.nodes


def test_only_nodes_that_were_made_are_deleted_and_leave_their_partitions(cluster: Cluster) -> None:
    roomy = with_room(cluster, len(cluster.machine.nodes) + 1)
    roomy.tell(CreateNodes(roomy.now, ROOT, (Node("x1"),)))
    update(roomy, "new", create=True, nodes=(("", "x1"),))
    roomy.tell(DeleteNodes(roomy.now, ROOT, ("x1", next(iter(roomy.machine.site.nodes)).name)))
    assert roomy.refusal() is Errno.INVALID_NODE_STATE
    assert ForgetNode("x1") in roomy.effects
    assert "x1" not in roomy.machine.nodes
    assert roomy.machine.partitions["new"].nodes == ()


def test_a_node_resumes_by_itself(cluster: Cluster) -> None:
    name = next(iter(cluster.machine.nodes))
    cluster.tell(UpdateNode(cluster.now, ROOT, (name,), "DOWN", "repair", (("resume_after", 60),)))
    assert cluster.machine.nodes[name].resume_time == int(cluster.now) + 60
    cluster.tell(Tick(cluster.now + 30))
    assert cluster.machine.nodes[name].state is NodeState.DOWN
    cluster.tell(Tick(cluster.now + 61))
    node = cluster.machine.nodes[name]
    assert (node.state, node.reason, node.resume_time) == (NodeState.IDLE, "", 0)


def test_a_steps_limit_is_its_owners_to_change(cluster: Cluster) -> None:
    cluster.submit()
    cluster.plan()
    cluster.tell(StepStarted(cluster.now, 0, Step(1, 0, "work", JobState.RUNNING, 1000)))
    cluster.tell(UpdateStep(cluster.now, ROOT, 1, 0, 5))
    assert cluster.job(1).steps[0].time_limit == 5
    cluster.tell(UpdateStep(cluster.now, ROOT, 1, 9, 5))
    assert cluster.refusal() is Errno.INVALID_JOB_ID
    cluster.tell(UpdateStep(cluster.now, BOB, 1, 0, 6))
    assert cluster.refusal() is Errno.USER_ID_MISSING


def test_nodes_that_are_made_join_the_partitions_of_all_nodes_and_of_their_features(cluster: Cluster) -> None:
    site = cluster.machine.site
    nodes = tuple(node.name for node in site.nodes)
    every = Partition("every", nodes, node_spec="ALL")
    featured = Partition("featured", nodes[:1], node_spec=f"{nodes[0]},blue", joined_by=("blue",))
    fixed = Partition("fixed", nodes[:1], node_spec=nodes[0])
    parameters = {**site.parameters, "MaxNodeCount": str(len(nodes) + 2)}
    roomy = Cluster(replace(site, parameters=parameters, partitions=(every, featured, fixed)))
    roomy.tell(CreateNodes(roomy.now, ROOT, (Node("x1", features=("blue",)), Node("x2"))))

    def members(machine: Machine) -> list[tuple[str, ...]]:
        return [machine.partitions[name].nodes for name in ("every", "featured", "fixed")]

    expected = [(*nodes, "x1", "x2"), (nodes[0], "x1"), nodes[:1]]
    assert members(roomy.machine) == members(restarted(roomy)) == expected
    roomy.tell(Reconfigure(roomy.now, ROOT, roomy.machine.site))
    assert members(roomy.machine) == expected
    roomy.tell(SiteChanged(roomy.now, roomy.machine.site))
    assert members(roomy.machine) == expected
    roomy.tell(DeleteNodes(roomy.now, ROOT, ("x1",)))
    assert members(roomy.machine) == members(restarted(roomy)) == [(*nodes, "x2"), nodes[:1], nodes[:1]]
    roomy.tell(CreateNodes(roomy.now, ROOT, (Node("x1", features=("blue",)),)))
    assert members(roomy.machine) == [(*nodes, "x2", "x1"), (nodes[0], "x1"), nodes[:1]]
    update(roomy, "every", nodes=(("-", "x1"),))
    update(roomy, "featured", nodes=(("-", "x1"),))
    roomy.tell(Reconfigure(roomy.now, ROOT, roomy.machine.site))
    assert members(roomy.machine)[0] == (*nodes, "x2", "x1")  # as configured
