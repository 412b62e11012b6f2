"""What pods of others hold, counted as kube-scheduler counts it."""

from __future__ import annotations

import pytest
from kubernetes_objects import container, pod

from bridge.kubernetes.foreign import belongs_to_node, devices_of_claim, foreign_of, holds, is_ours, together


def test_containers_are_added() -> None:
    found = foreign_of(pod(container(cpu="500m", memory="1Gi"), container("d", cpu="1")))
    assert found == {"cpu": 1500, "memory": (1 << 30) * 1000, "pods": 1000}


def test_a_large_init_container_counts_in_place_of_the_containers() -> None:
    found = foreign_of(pod(container(cpu="1"), initial=(container("i", cpu="3"), container("j", cpu="2", memory="1Ki"))))
    assert found["cpu"] == 3000
    assert found["memory"] == 1024 * 1000


def test_sidecars_count_with_the_containers_and_beside_later_init_containers() -> None:
    early = container("i", cpu="3")
    sidecar = container("s", always=True, cpu="1")
    late = container("j", cpu="3")
    assert foreign_of(pod(container(cpu="1"), initial=(early, sidecar)))["cpu"] == 3000
    assert foreign_of(pod(container(cpu="1"), initial=(sidecar, late)))["cpu"] == 4000
    assert foreign_of(pod(container(cpu="5"), initial=(sidecar, late)))["cpu"] == 6000


def test_overhead_is_added_and_a_request_of_the_whole_pod_comes_first() -> None:
    found = foreign_of(
        pod(container(cpu="1", memory="1k"), resources={"requests": {"cpu": "4"}}, overhead={"cpu": "250m", "memory": "2k"})
    )
    assert found["cpu"] == 4250
    assert found["memory"] == 3_000_000


def test_a_pod_that_was_resized_holds_the_larger() -> None:
    resized = pod(container(cpu="1"))
    running = {"name": "c", "state": {"running": {}}, "resources": {"requests": {"cpu": "3"}}}
    resized["status"]["containerStatuses"] = [running]
    assert foreign_of(resized)["cpu"] == 3000
    resized["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5"
    assert foreign_of(resized)["cpu"] == 5000


def test_requests_that_are_no_quantities_are_passed_over() -> None:
    assert foreign_of(pod(container(cpu="much", memory="1"))) == {"memory": 1000, "pods": 1000}


@pytest.mark.parametrize(
    ("made", "held"),
    [
        (pod(container()), True),
        (pod(container(), phase="Pending"), True),
        (pod(container(), node_name=""), False),
        (pod(container(), phase="Succeeded"), False),
        (pod(container(), phase="Failed"), False),
    ],
)
def test_what_is_bound_and_not_over_holds(made: dict[str, object], held: bool) -> None:
    assert holds(made) is held


def test_ours_bear_our_labels() -> None:
    labels = {"slurmk.org/controller": "lab", "slurmk.org/job-id": "7"}
    assert is_ours(pod(labels=labels), "lab")
    assert not is_ours(pod(labels=labels), "other")
    assert not is_ours(pod(labels={"slurmk.org/controller": "lab"}), "lab")
    assert not is_ours(pod(), "lab")


def test_daemons_belong_to_the_node() -> None:
    mirror = pod(owner="Node")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert belongs_to_node(mirror)
    assert belongs_to_node(pod(owner="DaemonSet"))
    assert not belongs_to_node(pod(owner="Job"))


def test_together_counts_workloads() -> None:
    one, other = foreign_of(pod(container(cpu="1"))), foreign_of(pod(container(cpu="250m")))
    found = together([(one, True), (other, False)])
    assert (found.requests["cpu"], found.requests["pods"], found.pods, found.workloads) == (1250, 2000, 2, 1)


def test_a_claim_holds_its_devices_but_not_those_it_only_administrates() -> None:
    results = [
        {"driver": "d", "pool": "p", "device": "gpu-0", "request": "r"},
        {"driver": "d", "pool": "p", "device": "gpu-1", "adminAccess": True},
    ]
    assert devices_of_claim({"status": {"allocation": {"devices": {"results": results}}}}) == {("d", "p", "gpu-0")}
    assert devices_of_claim({}) == frozenset()
