"""A Kubernetes node in Slurm's words: sizes, states, reasons, features, and what slurm.conf says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_objects import node

from bridge.kubernetes.foreign import Foreign
from bridge.kubernetes.nodes import CORDONED, Around, absent, node_of, nodes_of, unix_time
from bridge.kubernetes.settings import Features, PartitionSettings, PodSettings, Settings
from slurmk.model.node import GresCapacity, Node
from slurmk.model.states import NodeFlag, NodeState

SETTINGS = Settings()
SINCE = unix_time("2026-11-30T10:00:00Z")
GIB = 1 << 30


def around(**requests: int) -> Around:
    """Others hold so many thousandths."""
    return Around(Foreign(requests, workloads=1 if requests else 0), now=SINCE + 10)


def test_an_empty_node() -> None:
    found = node_of(node(cpu="31850m", memory="128Gi"), SETTINGS, around())
    assert found == Node(
        "n1",
        address="10.0.0.7",
        host_name="n1",
        cpus=31,
        cores_per_socket=31,
        memory=128 * 1024,
        temporary_disk=100 * 1024,
        slurmd_start_time=SINCE,
        operating_system="Linux 6.1.0 Debian GNU/Linux 12",
        architecture="x86_64",
        version="v1.37.2",
        cpus_milli=31850,
        maximum_jobs=110,
        cordon=found.cordon,
        reported_features=(),
    )
    assert found.cordon is not None
    assert not found.cordon.closed
    assert found.available


@pytest.mark.parametrize(
    ("allocatable", "foreign", "taken"),
    [("31850m", 850, 0), ("31850m", 851, 1), ("32", 1, 1), ("32", 32000, 32), ("4", 9000, 4)],
)
def test_cpus_in_thousandths_are_rounded_once(allocatable: str, foreign: int, taken: int) -> None:
    assert node_of(node(cpu=allocatable), SETTINGS, around(cpu=foreign)).foreign_cpus == taken


def test_what_others_hold() -> None:
    made = node(cpu="8", memory="32Gi", nvidiaDOTcom__gpu="8", labels={"nvidia.com/gpu.product": "NVIDIA-L4"})
    requests = {"cpu": 2500, "memory": 3 * GIB * 1000 + 1, "nvidia.com/gpu": 3000, "pods": 12000}
    found = node_of(made, SETTINGS, Around(Foreign(requests, pods=12, workloads=5)))
    assert (found.foreign_cpus, found.foreign_cpus_milli, found.foreign_memory) == (3, 2500, 3 * 1024 + 1)
    assert found.gres == (GresCapacity("gpu", "l4", 8),)
    assert found.foreign_gres == (("gpu:l4", 3),)
    assert (found.foreign_pods, found.maximum_jobs) == (5, 98)


def test_a_site_gives_a_cpu_of_jobs_less_of_a_real_one() -> None:
    settings = Settings(partitions=(PartitionSettings("p", "", pods=PodSettings(cpu_request="50m")),))
    found = node_of(node(cpu="2"), settings, around(cpu=120))
    assert (found.cpus, found.foreign_cpus) == (40, 3)


def test_partitions_that_ask_for_unlike_cpus_count_by_the_larger() -> None:
    small, large = (PartitionSettings(text, "", pods=PodSettings(cpu_request=text)) for text in ("100m", "500m"))
    elsewhere = PartitionSettings("other", "pool=other", pods=PodSettings(cpu_request="2"))
    assert node_of(node(cpu="2"), Settings(partitions=(small, large, elsewhere)), around()).cpus == 4


# ------------------------------------------------------------------- states


@pytest.mark.parametrize(
    ("ready", "seconds", "state", "flags"),
    [
        ("True", 1000, NodeState.IDLE, NodeFlag.NONE),
        ("Unknown", 299, NodeState.IDLE, NodeFlag.NO_RESPOND),
        ("Unknown", 300, NodeState.DOWN, NodeFlag.NO_RESPOND),
        ("False", 300, NodeState.DOWN, NodeFlag.NO_RESPOND),
    ],
)
def test_a_node_that_is_not_ready_takes_nothing_and_is_down_after_a_time(
    ready: str, seconds: int, state: NodeState, flags: NodeFlag
) -> None:
    found = node_of(node(ready=ready), SETTINGS, Around(now=SINCE + seconds, timeout=300))
    assert (found.state, found.flags) == (state, flags)
    assert found.available is (ready == "True")


def test_without_a_timeout_it_is_never_down() -> None:
    assert node_of(node(ready="False"), SETTINGS, Around(now=SINCE + 10**6, timeout=0)).state is NodeState.IDLE


def test_a_node_that_never_spoke_is_not_there() -> None:
    silent = node()
    silent["status"]["conditions"] = []
    assert node_of(silent, SETTINGS, Around(now=SINCE)).state is NodeState.DOWN


def test_cordons() -> None:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-30T10:00:00Z"}
    found = node_of(node(unschedulable=True, taints=(taint,)), SETTINGS, around()).cordon
    assert found is not None
    assert (found.closed, found.reason, found.time) == (True, CORDONED, SINCE)
    ours = node_of(node(unschedulable=True, annotations={"slurmk.org/drain-reason": "broken fan"}), SETTINGS, around()).cordon
    assert ours is not None
    assert ours.reason == "broken fan"


def test_a_cordon_is_not_also_a_taint() -> None:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    assert node_of(node(unschedulable=True, taints=(taint,)), SETTINGS, around()).refusal == ""


@pytest.mark.parametrize(
    ("taint", "reason"),
    [
        ({"key": "gpu", "value": "yes", "effect": "NoSchedule"}, "Taint gpu=yes:NoSchedule"),
        ({"key": "gpu", "effect": "NoExecute"}, "Taint gpu:NoExecute"),
        (
            {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"},
            "Taint node.kubernetes.io/disk-pressure:NoSchedule",
        ),
        ({"key": "gpu", "effect": "PreferNoSchedule"}, ""),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, ""),
    ],
)
def test_taints_that_nobody_tolerates(taint: dict[str, str], reason: str) -> None:
    found = node_of(node(taints=(taint,)), SETTINGS, around())
    assert found.refusal == reason
    assert found.available is (reason == "")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "value": "7"}, True),
        ({"key": "gpu", "value": "8"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Lt", "value": "8"}, True),
        ({"key": "gpu", "operator": "Gt", "value": "8"}, False),
        ({"key": "gpu", "operator": "Gt", "value": "x"}, False),
        ({"value": "7"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], tolerated: bool) -> None:
    taint = {"key": "gpu", "value": "7", "effect": "NoSchedule"}
    settings = Settings(pods=PodSettings(tolerations=(toleration,)))
    assert (node_of(node(taints=(taint,)), settings, around()).refusal == "") is tolerated


def test_a_toleration_for_a_time_only_is_none() -> None:
    taint = {"key": "gpu", "effect": "NoExecute"}
    settings = Settings(pods=PodSettings(tolerations=({"key": "gpu", "operator": "Exists", "tolerationSeconds": 30},)))
    assert node_of(node(taints=(taint,)), settings, around()).refusal == "Taint gpu:NoExecute"


def test_one_partition_that_tolerates_is_enough() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    tolerating = PodSettings(tolerations=({"key": "gpu", "operator": "Exists"},))
    with_it = Settings(partitions=(PartitionSettings("a", ""), PartitionSettings("b", "", pods=tolerating)))
    elsewhere = Settings(partitions=(PartitionSettings("a", ""), PartitionSettings("b", "pool=x", pods=tolerating)))
    assert node_of(node(taints=(taint,)), with_it, around()).refusal == ""
    assert node_of(node(taints=(taint,)), elsewhere, around()).refusal == "Taint gpu:NoSchedule"


def test_labels_that_the_pods_want() -> None:
    settings = Settings(pods=PodSettings(node_selector={"disk": "ssd"}))
    assert node_of(node(labels={"disk": "ssd"}), settings, around()).refusal == ""
    assert node_of(node(), settings, around()).refusal == "Label disk is not ssd"


def test_features() -> None:
    features = Features(values=("cpu", "absent"), pairs=("zone",), prefixes=("feature.node.kubernetes.io/",))
    labels = {
        "cpu": "skylake",
        "zone": "z1",
        "feature.node.kubernetes.io/avx512": "true",
        "feature.node.kubernetes.io/x": "false",
    }
    found = node_of(node(labels=labels), Settings(features=features), around())
    assert found.features == found.active_features == found.reported_features == ("skylake", "zone=z1", "avx512")


# ------------------------------------------------------------------- slurm.conf


def configured(name: str, **fields: object) -> Node:
    return replace(Node(name, host_name="n1", address="n1"), **fields)  # type: ignore[arg-type]


def test_slurm_conf_names_a_node_and_says_its_size() -> None:
    given_node = configured("a1", cpus=4, sockets=2, cores_per_socket=2, memory=8000, weight=7, features=("big",))
    found = node_of(node(labels={"cpu": "sky"}), Settings(features=Features(values=("cpu",))), around(cpu=3000), given_node)
    assert (found.name, found.host_name, found.address) == ("a1", "n1", "10.0.0.7")
    assert (found.cpus, found.sockets, found.memory, found.weight) == (4, 2, 8000, 7)
    assert found.features == ("big", "sky")
    assert found.foreign_cpus == 0, "what slurm.conf does not use is what others hold first"
    assert node_of(node(), SETTINGS, around(cpu=5000), given_node).foreign_cpus == 1


def test_a_name_without_hardware_has_what_kubernetes_says() -> None:
    found = node_of(node(nvidiaDOTcom__gpu="2"), SETTINGS, around(), configured("a1"))
    assert (found.name, found.cpus, found.memory, found.gres) == ("a1", 8, 32 * 1024, (GresCapacity("gpu", "", 2),))


def test_slurm_conf_cannot_make_a_node_larger() -> None:
    found = node_of(
        node(cpu="8"), SETTINGS, around(), configured("a1", cpus=64, sockets=2, cores_per_socket=32, memory=1 << 20)
    )
    assert (found.cpus, found.sockets, found.cores_per_socket, found.memory) == (8, 1, 8, 32 * 1024)


def test_states_of_slurm_conf_hold() -> None:
    assert node_of(node(), SETTINGS, around(), configured("a1", state=NodeState.FUTURE)).state is NodeState.FUTURE
    assert node_of(node(), SETTINGS, around(), configured("a1", flags=NodeFlag.DRAIN)).flags is NodeFlag.DRAIN


def test_several_names_on_one_node_share_it() -> None:
    both = [configured(name, cpus=6, memory=20 * 1024) for name in ("a1", "a2")]
    found = nodes_of(node(cpu="8", memory="32Gi"), SETTINGS, around(cpu=2000), both)
    assert [each.cpus for each in found] == [4, 4]
    assert [each.memory for each in found] == [16 * 1024] * 2
    assert [each.foreign_cpus for each in found] == [1, 1]
    assert [each.maximum_jobs for each in found] == [55, 55]


def test_a_cordon_closes_all_names_on_a_node_and_none_of_them_makes_one() -> None:
    found = nodes_of(node(unschedulable=True), SETTINGS, around(), [configured("a1"), configured("a2")])
    assert [(each.cordon, each.refusal) for each in found] == [(None, CORDONED)] * 2


def test_gres_of_slurm_conf() -> None:
    made = node(nvidiaDOTcom__gpu="8", labels={"nvidia.com/gpu.product": "NVIDIA-A100"})
    foreign = Around(Foreign({"nvidia.com/gpu": 5000}))
    names = [configured(name, cpus=2, gres=(GresCapacity("gpu", "a100", 3),)) for name in ("a1", "a2")]
    found = nodes_of(made, SETTINGS, foreign, names)
    assert [each.gres for each in found] == [(GresCapacity("gpu", "a100", 3),)] * 2
    assert [each.foreign_gres for each in found] == [(("gpu:a100", 3),), ()]
    other = [configured("a1", cpus=2, gres=(GresCapacity("gpu", "h100", 3),))]
    assert nodes_of(made, SETTINGS, foreign, other)[0].gres == ()
    untyped = [configured("a1", cpus=2, gres=(GresCapacity("gpu", "", 99),))]
    assert nodes_of(made, SETTINGS, foreign, untyped)[0].gres == (GresCapacity("gpu", "", 8),)
    assert nodes_of(made, SETTINGS, foreign, untyped)[0].foreign_gres == (("gpu", 5),)


def test_a_name_whose_node_is_not_there_is_down() -> None:
    found = absent(configured("a1", cpus=4))
    assert (found.state, found.flags, found.cpus) == (NodeState.DOWN, NodeFlag.NO_RESPOND, 4)


@given(
    st.integers(0, 20_000),
    st.integers(0, 30_000),
    st.lists(st.integers(2, 30), min_size=1, max_size=4),
    st.sampled_from(["1", "50m", "333m", "1500m"]),
)
def test_names_on_one_node_never_have_more_than_is_free_there(
    allocatable: int, foreign: int, wanted: list[int], request: str
) -> None:
    settings = Settings(pods=PodSettings(cpu_request=request))
    milli = {"1": 1000, "50m": 50, "333m": 333, "1500m": 1500}[request]
    names = [configured(f"a{number}", cpus=cpus) for number, cpus in enumerate(wanted)]
    found = nodes_of(node(cpu=f"{allocatable}m"), settings, around(cpu=foreign), names)
    assert all(0 <= each.foreign_cpus <= each.cpus for each in found)
    assert all(each.cpus <= cpus for each, cpus in zip(found, wanted, strict=True))
    free = sum(each.cpus - each.foreign_cpus for each in found) * milli
    assert free <= max(0, allocatable - foreign)
    if sum(wanted) * milli <= allocatable - foreign:
        assert free == sum(wanted) * milli
