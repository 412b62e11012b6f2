"""Nodes of a cluster: cordons go both ways, refusals come and go, nodes join and leave."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_story import ROOT, Cluster, small_site

from slurmk.core.effects import CordonNode, SaveNode, WakePlanner
from slurmk.core.errors import Errno
from slurmk.core.events import NodeChanged, Planned, SiteChanged, UpdateNode, UpdatePartition
from slurmk.model.node import Cordon, Node, Partition
from slurmk.model.node_states import condition_of
from slurmk.model.site import Site, Switch
from slurmk.model.states import JobState, NodeFlag, NodeState
from slurmk.planner.plan import plan

OPEN = Cordon(False)
CLOSED = Cordon(True, "Cordoned in Kubernetes", 900)


@pytest.fixture
def cluster() -> Cluster:
    """All nodes are a cluster's, and open."""
    site = small_site()
    started = Cluster(site)
    for node in site.nodes:
        see(started, node.name, cordon=OPEN)
    return started


def see(cluster: Cluster, name: str, **changes: object) -> None:
    """The cluster shows a node, as configured but for the changes."""
    configured = next(node for node in cluster.machine.site.nodes if node.name == name)
    cluster.tell(NodeChanged(cluster.now, replace(configured, **changes)))  # type: ignore[arg-type]


def node(cluster: Cluster, name: str = "n1") -> Node:
    return cluster.machine.nodes[name]


def cordons(cluster: Cluster) -> list[CordonNode]:
    return [effect for effect in cluster.effects if isinstance(effect, CordonNode)]


def test_draining_cordons_and_holds_until_the_cluster_follows(cluster: Cluster) -> None:
    cluster.update_node("n1", state="DRAIN", reason="fan")
    assert cordons(cluster) == [CordonNode("n1", True, "fan")]
    see(cluster, "n1", cordon=OPEN, foreign_cpus=1)
    assert node(cluster).flags & NodeFlag.DRAIN, "the cordon is on its way"
    see(cluster, "n1", cordon=Cordon(True, "fan"))
    assert (node(cluster).flags & NodeFlag.DRAIN, node(cluster).reason) == (NodeFlag.DRAIN, "fan")
    assert node(cluster).cordon_wanted is None
    assert cordons(cluster) == []


def test_resuming_uncordons_and_holds_until_the_cluster_follows(cluster: Cluster) -> None:
    see(cluster, "n1", cordon=CLOSED)
    cluster.update_node("n1", state="RESUME")
    assert cordons(cluster) == [CordonNode("n1", False, "")]
    see(cluster, "n1", cordon=CLOSED, foreign_cpus=1)
    assert node(cluster).available
    see(cluster, "n1", cordon=OPEN)
    assert node(cluster).available
    assert node(cluster).cordon_wanted is None


def test_a_cordon_drains_with_its_reason_and_uncordoning_resumes(cluster: Cluster) -> None:
    see(cluster, "n1", cordon=CLOSED)
    assert (node(cluster).reason, node(cluster).reason_time) == (CLOSED.reason, CLOSED.time)
    assert cluster.machine.node_state("n1") == "drained"
    assert any(isinstance(effect, SaveNode) for effect in cluster.effects)
    assert cordons(cluster) == []
    see(cluster, "n1", cordon=OPEN)
    assert (node(cluster).reason, cluster.machine.node_state("n1")) == ("", "idle")


@pytest.mark.parametrize("state", ["DRAIN", "DOWN", "FAIL"])
def test_uncordoning_undoes_what_an_administrator_said_here(cluster: Cluster, state: str) -> None:
    cluster.update_node("n1", state=state, reason="fan")
    see(cluster, "n1", cordon=Cordon(True, "fan"))
    see(cluster, "n1", cordon=OPEN)
    assert (node(cluster).available, node(cluster).reason) == (True, "")


def test_a_node_that_is_down_for_want_of_a_sign_is_not_up_for_being_uncordoned(cluster: Cluster) -> None:
    see(cluster, "n1", cordon=CLOSED)
    lost = NodeFlag.NO_RESPOND
    see(cluster, "n1", cordon=CLOSED, state=NodeState.DOWN, flags=lost)
    see(cluster, "n1", cordon=OPEN, state=NodeState.DOWN, flags=lost)
    assert (node(cluster).state, node(cluster).flags) == (NodeState.DOWN, lost)
    see(cluster, "n1", cordon=OPEN)
    assert node(cluster).available


def test_after_a_restart_what_was_not_done_is_done(cluster: Cluster) -> None:
    cluster.update_node("n1", state="DRAIN", reason="fan")
    see(cluster, "n2", cordon=CLOSED)
    cluster.update_node("n2", state="RESUME")
    cluster.machine = cluster.restarted()
    see(cluster, "n1", cordon=OPEN)
    assert cordons(cluster) == [CordonNode("n1", True, "fan")]
    assert node(cluster).flags & NodeFlag.DRAIN
    see(cluster, "n2", cordon=CLOSED)
    assert cordons(cluster) == [CordonNode("n2", False, "")]
    assert node(cluster, "n2").available


def test_after_a_restart_what_others_did_meanwhile_holds(cluster: Cluster) -> None:
    cluster.update_node("n1", state="DRAIN", reason="fan")
    see(cluster, "n1", cordon=Cordon(True, "fan"))
    cluster.machine = cluster.restarted()
    see(cluster, "n1", cordon=OPEN)
    see(cluster, "n2", cordon=CLOSED)
    assert node(cluster).available
    assert node(cluster, "n2").reason == CLOSED.reason


def test_a_cordon_that_was_there_before_slurmk(cluster: Cluster) -> None:
    fresh = Cluster(small_site(nodes=(Node("n1", cpus=8, cordon=CLOSED),), partitions=(Partition("p", ("n1",)),)))
    see(fresh, "n1")
    assert fresh.machine.node_state("n1") == "drained"


def test_a_refusal_drains_and_nobody_can_resume_it(cluster: Cluster) -> None:
    cluster.submit(required_nodes="n1")
    see(cluster, "n1", cordon=OPEN, refusal="Taint gpu:NoSchedule")
    assert WakePlanner() in cluster.effects
    assert cluster.machine.node_state("n1") == "drained"
    cluster.plan()
    assert cluster.job(1).state is JobState.PENDING
    cluster.update_node("n1", state="DRAIN", reason="fan")
    see(cluster, "n1", cordon=Cordon(True, "fan"))
    assert cluster.machine.node_state("n1") == "drained"
    cluster.update_node("n1", state="RESUME")
    see(cluster, "n1", cordon=OPEN)
    assert cluster.machine.node_state("n1") == "idle"
    cluster.plan()
    assert cluster.job(1).state is JobState.RUNNING


def test_jobs_go_on_under_a_cordon_and_end_with_a_lost_node(cluster: Cluster) -> None:
    cluster.submit(required_nodes="n1", requeue=False)
    cluster.plan()
    cluster.started(1)
    see(cluster, "n1", cordon=CLOSED)
    assert cluster.machine.node_state("n1") == "draining"
    see(cluster, "n1", cordon=CLOSED, flags=NodeFlag.NO_RESPOND)
    assert cluster.job(1).state is JobState.RUNNING
    see(cluster, "n1", cordon=CLOSED, flags=NodeFlag.NO_RESPOND, state=NodeState.DOWN)
    assert cluster.job(1).state is JobState.NODE_FAIL


def test_a_lost_node_has_its_reason_and_loses_it(cluster: Cluster) -> None:
    see(cluster, "n1", cordon=OPEN, flags=NodeFlag.NO_RESPOND)
    assert cluster.machine.node_state("n1") == "idle*"
    see(cluster, "n1", cordon=OPEN, flags=NodeFlag.NO_RESPOND, state=NodeState.DOWN)
    assert (cluster.machine.node_state("n1"), node(cluster).reason) == ("down*", "Not responding")
    see(cluster, "n1", cordon=OPEN)
    assert (cluster.machine.node_state("n1"), node(cluster).reason) == ("idle", "")


@pytest.mark.parametrize(
    "change",
    [
        {"foreign_cpus": 1},
        {"foreign_memory": 1},
        {"foreign_gres": (("gpu:a100", 1),)},
        {"maximum_jobs": 3},
        {"refusal": "Taint"},
        {"flags": NodeFlag.NO_RESPOND},
        {"cpus": 4},
    ],
)
def test_a_plan_is_made_at_once_when_more_or_less_is_free(cluster: Cluster, change: dict[str, object]) -> None:
    see(cluster, "n1", cordon=OPEN, **change)
    assert WakePlanner() in cluster.effects
    see(cluster, "n1", cordon=OPEN, **change)
    assert cluster.effects == []
    see(cluster, "n1", cordon=OPEN)
    assert WakePlanner() in cluster.effects


def test_what_only_is_shown_makes_no_plan(cluster: Cluster) -> None:
    see(cluster, "n1", cordon=OPEN, foreign_cpus_milli=10, version="v2")
    assert cluster.effects == []
    assert node(cluster).version == "v2"


def test_a_start_is_checked_against_what_others_took_meanwhile(cluster: Cluster) -> None:
    for change in ({"foreign_cpus": 8}, {"foreign_gres": (("gpu:a100", 3),)}, {"maximum_jobs": 0}, {"refusal": "Taint"}):
        job_id = cluster.submit(required_nodes="n1", tres_per_node="gres/gpu:2")
        made = plan(cluster.machine.snapshot(cluster.now))
        assert [start.job_id for start in made.starts] == [job_id]
        see(cluster, "n1", cordon=OPEN, **change)
        cluster.tell(Planned(cluster.now, made))
        assert cluster.job(job_id).state is JobState.PENDING
        assert WakePlanner() in cluster.effects
        cluster.kill(str(job_id))
        see(cluster, "n1", cordon=OPEN)


def test_features_follow_labels_unless_changed_here_later(cluster: Cluster) -> None:
    see(cluster, "n1", cordon=OPEN, features=("new",), active_features=("new",), reported_features=("new",))
    assert node(cluster).features == ("new",)


# ------------------------------------------------------------------- nodes that come and go


def selected(*names: str) -> Site:
    nodes = tuple(Node(name, cpus=8, memory=16000, cordon=OPEN) for name in names)
    return small_site(nodes=nodes, partitions=(Partition("p", names, default=True, selected=True),))


def test_a_new_node_is_used_by_the_next_plan() -> None:
    cluster = Cluster(selected("n1"))
    cluster.submit(minimum_nodes=2)
    cluster.plan()
    cluster.tell(SiteChanged(cluster.now, selected("n1", "n2")))
    assert WakePlanner() in cluster.effects
    cluster.plan()
    assert cluster.job(1).allocation is not None
    assert cluster.job(1).allocation.nodes == ("n1", "n2")


def test_a_node_that_is_gone_takes_its_jobs_with_it() -> None:
    cluster = Cluster(selected("n1", "n2"))
    cluster.submit(required_nodes="n2", requeue=False)
    cluster.submit(required_nodes="n2")
    cluster.submit(required_nodes="n1")
    cluster.plan()
    cluster.tell(SiteChanged(cluster.now, selected("n1")))
    assert [cluster.job(number).state for number in (1, 2, 3)] == [JobState.NODE_FAIL, JobState.PENDING, JobState.RUNNING]
    assert list(cluster.machine.nodes) == ["n1"]
    assert cluster.machine.partitions["p"].nodes == ("n1",)


def test_what_is_known_of_other_nodes_and_partitions_stays() -> None:
    cluster = Cluster(selected("n1"))
    cluster.update_node("n1", state="DRAIN", reason="fan")
    cluster.tell(UpdatePartition(cluster.now, ROOT, "p", (("state", "DRAIN"), ("maximum_time", 5))))
    changed = replace(selected("n1", "n2"), switches=(Switch("s", nodes=("n1", "n2")),))
    cluster.tell(SiteChanged(cluster.now, changed))
    partition = cluster.machine.partitions["p"]
    assert (partition.state, partition.maximum_time, partition.nodes) == ("DRAIN", 5, ("n1", "n2"))
    assert node(cluster).flags & NodeFlag.DRAIN
    assert cluster.machine.site.switches == changed.switches


def test_default_memory_follows_the_nodes_unless_an_administrator_said_otherwise() -> None:
    def with_memory(site: Site, memory: int) -> Site:
        (partition,) = site.partitions
        return replace(site, partitions=(replace(partition, default_memory_per_cpu=memory),))

    cluster = Cluster(with_memory(selected("n1"), 100))
    cluster.tell(SiteChanged(cluster.now, with_memory(selected("n1", "n2"), 200)))
    assert cluster.machine.partitions["p"].default_memory_per_cpu == 200
    cluster.tell(UpdatePartition(cluster.now, ROOT, "p", (("default_memory_per_cpu", 7),)))
    cluster.tell(SiteChanged(cluster.now, with_memory(selected("n1"), 300)))
    assert cluster.machine.partitions["p"].default_memory_per_cpu == 7


def test_nodes_that_an_administrator_gave_a_partition_stay() -> None:
    cluster = Cluster(selected("n1", "n2"))
    cluster.tell(UpdatePartition(cluster.now, ROOT, "p", (("nodes", (("", "n1"),)),)))
    cluster.tell(SiteChanged(cluster.now, selected("n1", "n2", "n3")))
    assert cluster.machine.partitions["p"].nodes == ("n1",)


def test_a_restart_has_the_partitions_nodes_of_now_and_the_administrators_changes() -> None:
    cluster = Cluster(selected("n1"))
    cluster.tell(UpdatePartition(cluster.now, ROOT, "p", (("state", "DRAIN"),)))
    saved = cluster.machine.partitions["p"]
    restarted = Cluster(selected("n1", "n2"))
    restarted.machine.restore((), (), (saved,), 1)
    partition = restarted.machine.partitions["p"]
    assert (partition.state, partition.nodes) == ("DRAIN", ("n1", "n2"))


# ------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("fields", "used", "word"),
    [
        ({}, 0, "idle"),
        ({"foreign_cpus": 1}, 0, "idle"),  # what belongs to every node
        ({"foreign_cpus": 1, "foreign_pods": 1}, 0, "mixed"),
        ({"foreign_cpus": 8, "foreign_pods": 1}, 0, "allocated"),
        ({"foreign_cpus": 7}, 1, "allocated"),
        ({"foreign_cpus": 6}, 1, "mixed"),
        ({"foreign_cpus": 8, "foreign_pods": 1, "flags": NodeFlag.DRAIN}, 0, "drained"),
        ({"foreign_cpus": 1, "foreign_pods": 1, "flags": NodeFlag.DRAIN}, 1, "draining"),
        ({"refusal": "Taint", "foreign_pods": 1}, 0, "drained"),
        ({"state": NodeState.DOWN, "foreign_pods": 1}, 0, "down"),
    ],
)
def test_words_for_nodes_that_are_shared_with_others(fields: dict[str, object], used: int, word: str) -> None:
    assert condition_of(replace(Node("n1", cpus=8), **fields), cpus_used=used).long == word  # type: ignore[arg-type]


def test_active_features_stay_among_the_available_ones(cluster: Cluster) -> None:
    def change(**changes: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        cluster.tell(UpdateNode(cluster.now, ROOT, ("n5",), None, None, tuple(changes.items())))
        node = cluster.machine.nodes["n5"]
        return node.features, node.active_features

    assert change(features=("cpu", "big")) == (("cpu", "big"), ("cpu", "big"))
    assert change(active_features=("big",)) == (("cpu", "big"), ("big",))
    assert change(features=("cpu",)) == (("cpu", "big"), ("big",))
    assert cluster.refusal() is Errno.ACTIVE_FEATURE_NOT_SUBSET
    assert change(features=("q",), active_features=("q",)) == (("q",), ("q",))
