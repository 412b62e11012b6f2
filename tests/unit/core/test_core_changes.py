"""What users and operators may change of jobs, nodes and partitions. Answers as Slurm 26.05 gives them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_story import ALICE, BOB, ROOT, Cluster, small_site

from slurmk.core.effects import CordonNode, SaveNode, UpdateLimit
from slurmk.core.errors import Errno
from slurmk.core.events import NodeChanged, Reconfigure, UpdateNode, UpdatePartition
from slurmk.core.updates import FIELDS
from slurmk.model.job import JobRequest
from slurmk.model.node import Partition
from slurmk.model.states import JobState, NodeFlag, NodeState, Reason


def test_time_limits_of_waiting_and_running_jobs(cluster: Cluster) -> None:
    cluster.submit()
    cluster.update("1", time_limit=20)
    assert cluster.job(1).time_limit == 20
    cluster.plan()
    cluster.update("1", time_limit=30)
    assert cluster.refusal() is Errno.ACCESS_DENIED
    cluster.update("1", time_limit=5)
    assert cluster.job(1).end_time == 1300
    assert UpdateLimit(1, 0, 1300) in cluster.effects
    cluster.update("1", ROOT, time_limit=30)
    assert cluster.job(1).end_time == 2800


RUNNING = [
    ({"partition": "cpu"}, Errno.JOB_NOT_PENDING),
    ({"dependency": "afterany:1"}, Errno.JOB_NOT_PENDING),
    ({"begin_time": 5000}, Errno.JOB_NOT_PENDING),
    ({"constraints": "ib"}, Errno.JOB_NOT_PENDING),
    ({"account": "phys"}, Errno.JOB_NOT_PENDING),
    ({"minimum_cpus": 2}, Errno.JOB_NOT_PENDING),
    ({"licenses": "matlab:1"}, Errno.ACCESS_DENIED),
    ({"name": "foo"}, None),
    ({"comment": "foo"}, None),
    ({"nice": 5}, None),
    ({"requeue": False}, None),
    ({"required_nodes": "n1"}, None),
]


@pytest.mark.parametrize(("change", "errno"), RUNNING)
def test_changes_of_a_running_job(cluster: Cluster, change: dict[str, object], errno: Errno | None) -> None:
    cluster.submit()
    cluster.plan()
    before = cluster.job(1)
    cluster.update("1", **change)
    if errno is None:
        assert cluster.saved()
    else:
        assert cluster.refusal() is errno
        assert cluster.job(1) is before


WAITING = [
    ({"priority": 10}, Errno.PRIO_RESET_FAIL),
    ({"nice": -10}, Errno.ACCESS_DENIED),
    ({"partition": "nope"}, Errno.INVALID_PARTITION_NAME),
    ({"dependency": "afterok:999999"}, Errno.DEPENDENCY),
    ({"qos": "nope"}, Errno.INVALID_QOS),
    ({"licenses": "nope"}, Errno.INVALID_LICENSES),
    ({"constraints": "nope"}, Errno.INVALID_FEATURE),
    ({"admin_comment": "x"}, Errno.ACCESS_DENIED),
    ({"array_maximum_running": 2}, Errno.NOT_SUPPORTED),
    ({"required_nodes": "n99"}, Errno.INVALID_NODE_NAME),
    ({"cpus_per_task": 17}, Errno.REQUESTED_PART_CONFIG_UNAVAILABLE),
    ({"minimum_cpus": 1000}, Errno.REQUESTED_PART_CONFIG_UNAVAILABLE),
    ({"minimum_nodes": 0}, Errno.INVALID_NODE_COUNT),
    ({"cpus_per_task": 0}, Errno.INVALID_CPU_COUNT),
    ({"prefer": "nope"}, Errno.INVALID_PREFER),
    ({"tres_per_node": "gres/gpu:2,gres/gpu:a100:1"}, Errno.INVALID_GRES_TYPE),
    ({"tres_per_node": "gres/nope:1"}, Errno.INVALID_GRES),
    ({"tres_per_job": "gpu:1"}, Errno.INVALID_TRES),
    ({"cpus_per_tres": "gres/gpu:1"}, Errno.INVALID_GRES),
    ({"clusters": "other"}, Errno.ERROR),
    ({"credentials": "root"}, Errno.NOT_SUPPORTED),
]


@pytest.mark.parametrize(("change", "errno"), WAITING)
def test_changes_refused_of_a_waiting_job(cluster: Cluster, change: dict[str, object], errno: Errno) -> None:
    cluster.submit()
    before = cluster.job(1)
    cluster.update("1", comment="all or nothing", **change)
    assert cluster.refusal() is errno
    assert cluster.job(1) is before
    assert cluster.saved() == []


def test_changes_of_a_waiting_job(cluster: Cluster) -> None:
    cluster.submit()
    cluster.update("1", name="b", partition="gpu", comment="c", nice=7, begin_time=2000, licenses="matlab:1", requeue=False)
    job = cluster.job(1)
    assert (job.name, job.partitions, job.request.comment, job.time_limit) == ("b", ("gpu",), "c", 2880)
    assert (job.request.nice, job.priority) == (7, 4294901753)
    assert (job.reason, job.eligible_time) == (Reason.BEGIN_TIME, 2000)
    cluster.update("1", ROOT, priority=99, admin_comment="seen")
    assert (cluster.job(1).priority, cluster.job(1).admin_comment) == (99, "seen")
    cluster.plan()
    assert cluster.launched() == []
    cluster.update("1", begin_time=0)
    cluster.plan()
    assert cluster.launched() == [1]


def test_finished_jobs_stay_as_they_are(cluster: Cluster) -> None:
    cluster.submit()
    cluster.kill("1")
    for change in ({"time_limit": 1}, {"comment": "later"}):
        cluster.update("1", **change)
        assert cluster.refusal() is Errno.JOB_FINISHED
    cluster.hold("1")
    assert cluster.refusal() is Errno.JOB_FINISHED
    cluster.update("1", ROOT, admin_comment="for the record")
    assert cluster.job(1).admin_comment == "for the record"


def test_every_field_is_one_of_the_request_or_of_the_job() -> None:
    names = set(JobRequest.__dataclass_fields__) | {"array_maximum_running", "system_comment", "kept_count", "kept_nodes"}
    assert set(FIELDS) <= names


def test_holds_of_users_and_of_administrators(cluster: Cluster) -> None:
    cluster.submit()
    cluster.hold("1")
    assert cluster.job(1).reason is Reason.JOB_HELD_USER
    cluster.plan()
    assert cluster.launched() == []
    cluster.release_hold("1")
    cluster.hold("1", ROOT)
    assert cluster.job(1).reason is Reason.JOB_HELD_ADMIN
    cluster.release_hold("1")
    assert cluster.refusal() is Errno.ACCESS_DENIED
    cluster.release_hold("1", ROOT)
    cluster.hold("1", ROOT, user_hold=True)
    cluster.release_hold("1")
    cluster.plan()
    assert cluster.launched() == [1]


# ------------------------------------------------------------------------------------------------------- nodes


def test_drained_nodes_take_no_new_work(cluster: Cluster) -> None:
    cluster.submit(required_nodes="n1")
    cluster.plan()
    cluster.update_node("n1", state="DRAIN", reason="disk")
    node = cluster.machine.nodes["n1"]
    assert (node.flags & NodeFlag.DRAIN, node.reason, node.reason_time) == (NodeFlag.DRAIN, "disk", 1000)
    assert CordonNode("n1", True, "disk") in cluster.effects
    assert cluster.machine.node_state("n1").startswith("drain")
    assert cluster.job(1).state is JobState.RUNNING
    cluster.submit(required_nodes="n1")
    cluster.plan()
    assert cluster.launched() == []
    cluster.update_node("n1", state="RESUME")
    assert cluster.machine.nodes["n1"].reason == ""
    assert CordonNode("n1", False, "") in cluster.effects
    cluster.plan()
    assert cluster.launched() == [2]


def test_what_a_node_update_needs(cluster: Cluster) -> None:
    cluster.update_node("n1", state="DRAIN")
    assert str(cluster.answer().error) == "You must specify a reason when DOWNING or DRAINING a node. Request denied"  # type: ignore[union-attr]
    for arguments, errno in (
        ({"caller": ALICE, "state": "DRAIN", "reason": "x"}, Errno.USER_ID_MISSING),
        ({"state": "garbage", "reason": "x"}, Errno.INVALID_NODE_STATE),
        ({"state": "RESUME"}, Errno.INVALID_NODE_STATE_TRANSITION),
    ):
        cluster.update_node("n1", **arguments)  # type: ignore[arg-type]
        assert cluster.refusal() is errno
    cluster.update_node("n1", "n99", state="DRAIN", reason="x")
    assert cluster.refusal() is Errno.INVALID_NODE_NAME
    assert cluster.machine.nodes["n1"].flags is NodeFlag.NONE


def test_a_node_set_down_ends_its_jobs(cluster: Cluster) -> None:
    cluster.submit(required_nodes="n1")
    cluster.submit(required_nodes="n1", requeue=False)
    cluster.plan()
    cluster.update_node("n1", state="DOWN", reason="fire")
    assert sorted(cluster.terminated()) == [1, 2]
    cluster.released(1)
    cluster.released(2)
    assert (cluster.job(1).state, cluster.job(1).restarts) == (JobState.PENDING, 1)
    assert cluster.job(2).state is JobState.NODE_FAIL
    assert cluster.machine.node_state("n1").startswith("down")


def test_a_node_out_of_sight_comes_back(cluster: Cluster) -> None:
    cluster.submit(required_nodes="n1")
    cluster.plan()
    node = cluster.machine.nodes["n1"]
    cluster.tell(NodeChanged(1010, node, removed=True))
    assert cluster.machine.nodes["n1"].state is NodeState.DOWN
    assert (cluster.job(1).state, cluster.job(1).restarts) == (JobState.PENDING, 1)
    cluster.tell(NodeChanged(1020, node))
    assert cluster.machine.nodes["n1"].available
    assert cluster.tell(NodeChanged(1030, node)) == []


def test_what_launchers_report_does_not_undo_what_administrators_said(cluster: Cluster) -> None:
    node = cluster.machine.nodes["n1"]
    cluster.update_node("n1", state="DRAIN", reason="disk")
    cluster.update_node("n2", state="DOWN", reason="fire")
    cluster.tell(NodeChanged(1010, replace(node, foreign_cpus_milli=2500, cpu_load=7)))
    cluster.tell(NodeChanged(1010, cluster.machine.nodes["n2"]))
    kept = cluster.machine.nodes["n1"]
    assert (kept.flags & NodeFlag.DRAIN, kept.reason, kept.foreign_cpus_milli) == (NodeFlag.DRAIN, "disk", 2500)
    assert cluster.machine.nodes["n2"].state is NodeState.DOWN
    machine = cluster.restarted()
    assert machine.nodes["n1"].flags & NodeFlag.DRAIN
    assert machine.nodes["n2"].state is NodeState.DOWN


def test_partitions(cluster: Cluster) -> None:
    def update(caller: object, name: str, **changes: object) -> None:
        cluster.tell(UpdatePartition(cluster.now, caller, name, tuple(changes.items())))  # type: ignore[arg-type]

    update(ALICE, "gpu", state="DOWN")
    assert cluster.refusal() is Errno.USER_ID_MISSING
    update(ROOT, "nope", state="DOWN")
    assert cluster.refusal() is Errno.INVALID_PARTITION_NAME
    update(ROOT, "gpu", state="DOWN")
    cluster.submit(partition="gpu")
    cluster.plan()
    assert cluster.launched() == []
    assert cluster.job(1).reason is Reason.PARTITION_DOWN
    update(ROOT, "gpu", state="UP")
    cluster.plan()
    assert cluster.launched() == [1]


def test_a_configuration_read_anew_leaves_jobs_alone(cluster: Cluster) -> None:
    cluster.submit()
    cluster.plan()
    cluster.update_node("n2", state="DRAIN", reason="disk")
    site = small_site()
    fewer = replace(site, nodes=site.nodes[:5], partitions=(Partition("new", ("n1", "n2"), default=True),))
    cluster.tell(Reconfigure(cluster.now, BOB, fewer))
    assert cluster.refusal() is Errno.USER_ID_MISSING
    cluster.tell(Reconfigure(cluster.now, ROOT, fewer))
    assert cluster.job(1).state is JobState.RUNNING
    assert list(cluster.machine.nodes) == ["n1", "n2", "n3", "n4", "n5"]
    assert cluster.machine.nodes["n2"].flags & NodeFlag.DRAIN
    cluster.submit()
    cluster.plan()
    assert cluster.launched() == [2]
    assert cluster.job(2).partition == "new"
    cluster.run_to_end(1)
    assert cluster.job(1).state is JobState.COMPLETED


def test_node_updates_are_saved(cluster: Cluster) -> None:
    cluster.update_node("n1", "n2", state="DRAIN", reason="x")
    assert [effect.node.name for effect in cluster.effects if isinstance(effect, SaveNode)] == ["n1", "n2"]


def test_a_running_job_that_is_held_says_so(cluster: Cluster) -> None:
    cluster.submit()
    cluster.plan()
    cluster.hold("1", ROOT)
    assert (cluster.job(1).state, cluster.job(1).priority, cluster.job(1).reason) == (
        JobState.RUNNING,
        0,
        Reason.JOB_HELD_ADMIN,
    )
    cluster.release_hold("1", ROOT)
    assert cluster.job(1).priority > 0
    assert cluster.job(1).reason is Reason.NONE
    cluster.hold("1", ROOT, user_hold=True)
    assert cluster.job(1).reason is Reason.JOB_HELD_USER


def change(cluster: Cluster, *nodes: str, **changes: object) -> list[tuple[str, ...]]:
    cluster.tell(UpdateNode(cluster.now, ROOT, nodes, changes=tuple(changes.items())))
    found = (cluster.machine.nodes[name] for name in ("n1", "n2"))
    return [(node.instance_id, node.instance_type, node.address) for node in found]


def test_instances_and_addresses_of_several_nodes_are_lists(cluster: Cluster) -> None:
    address = cluster.machine.nodes["n1"].address
    assert change(cluster, "n2", "n1", instance_id="a,b") == [("b", "", address), ("a", "", address)]
    assert change(cluster, "n1", "n2", instance_id="i-[01-02]", instance_type="t") == [
        ("i-01", "t", address),
        ("i-02", "t", address),
    ]
    assert change(cluster, "n1", "n2", instance_id="", address="x[1-2]") == [("", "t", "x1"), ("", "t", "x2")]


@pytest.mark.parametrize(
    "changes", [{"instance_id": "a,b,c"}, {"instance_type": "a,b,c", "comment": "z"}, {"address": "x"}, {"host_name": "x,y,z"}]
)
def test_lists_are_as_long_as_that_of_the_nodes(cluster: Cluster, changes: dict[str, object]) -> None:
    before = cluster.machine.nodes["n1"]
    change(cluster, "n1", "n2", **changes)
    assert cluster.refusal() is Errno.INVALID_NODE_NAME
    assert cluster.machine.nodes["n1"] == before


@pytest.mark.parametrize(
    ("field", "longest"), [("name", 1024), ("comment", 1024), ("mail_user", 1024), ("standard_output", 4096)]
)
def test_texts_may_be_so_long_and_no_longer(cluster: Cluster, field: str, longest: int) -> None:
    cluster.submit()
    cluster.update("1", **{field: "a" * longest})
    assert cluster.saved()
    cluster.update("1", **{field: "a" * (longest + 1)})
    assert cluster.refusal() is Errno.PATHNAME_TOO_LONG


def test_a_length_is_looked_at_after_the_owner_and_before_the_rest(cluster: Cluster) -> None:
    cluster.submit()
    cluster.update("1", BOB, constraints="a" * 1025)
    assert cluster.refusal() is Errno.USER_ID_MISSING
    cluster.update("1", constraints="a" * 1025)
    assert cluster.refusal() is Errno.PATHNAME_TOO_LONG
