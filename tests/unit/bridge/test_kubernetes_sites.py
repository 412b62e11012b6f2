"""The site: partitions by selectors and tolerations, names from slurm.conf, switches from labels."""

from __future__ import annotations

from typing import Any

from kubernetes_objects import node

from bridge.kubernetes.nodes import Around, absent, nodes_of
from bridge.kubernetes.settings import PartitionSettings, PodSettings, Settings
from bridge.kubernetes.sites import Placed, has_dynamic_nodes, levels_of, named_at, settled, site_of
from slurmk.model.configuration import load_site
from slurmk.model.site import Site, Switch

Manifest = dict[str, Any]


def pool(name: str, kind: str, *taints: Manifest, **labels: str) -> Manifest:
    return node(name, labels={"pool": kind, **labels}, taints=taints)


NODES = (pool("gpu-10", "gpu"), pool("gpu-9", "gpu"), pool("cpu-1", "cpu"))


def site(settings: Settings, configured: Site | None = None, manifests: tuple[Manifest, ...] = NODES, levels: Any = ()) -> Site:
    settings = settled(settings, configured)
    at = named_at(configured)
    placed = [
        Placed(each, manifest)
        for manifest in manifests
        if manifest["metadata"]["name"] in at or has_dynamic_nodes(settings, configured)
        for each in nodes_of(manifest, settings, Around(), at.get(manifest["metadata"]["name"], ()))
    ]
    known = {each.node.name for each in placed}
    placed += [Placed(absent(each), None) for each in (configured.nodes if configured else ()) if each.name not in known]
    return site_of(settings, configured, placed, levels)


def members(site: Site) -> dict[str, tuple[str, ...]]:
    return {partition.name: partition.nodes for partition in site.partitions}


def conf(text: str) -> Site:
    files = {"/c/slurm.conf": f"ClusterName=c\nSlurmctldHost=h\n{text}\n"}
    return load_site(files.get, "/c", nodes_required=False)


def test_without_any_file_all_nodes_are_one_partition() -> None:
    found = site(Settings())
    assert found.cluster_name == "kubernetes"
    assert members(found) == {"batch": ("cpu-1", "gpu-9", "gpu-10")}
    assert found.default_partition is not None
    assert [each.name for each in found.nodes] == ["cpu-1", "gpu-9", "gpu-10"]
    assert found.partitions[0].node_spec == "cpu-1,gpu-[9-10]"
    assert found.gres_types == ("gpu",)


def test_a_job_that_says_nothing_of_memory_gets_its_cpus_share() -> None:
    nodes = (node("a", cpu="8", memory="32Gi"), node("b", cpu="32", memory="64Gi"), node("c", cpu="0"))
    assert site(Settings(), manifests=nodes).default_memory_per_cpu == 2048
    assert site(Settings(), manifests=nodes).parameters["DefMemPerCPU"] == "2048"
    one = Settings(partitions=(PartitionSettings("one", "kubernetes.io/hostname=a"), PartitionSettings("all", "")))
    assert [each.default_memory_per_cpu for each in site(one, manifests=nodes).partitions] == [4096, 2048]
    assert site(Settings(), manifests=()).default_memory_per_cpu == 1
    assert site(Settings(), conf("PartitionName=p Nodes=ALL"), manifests=nodes).default_memory_per_cpu is None


def test_an_empty_cluster_has_its_partition() -> None:
    assert members(site(Settings(), manifests=())) == {"batch": ()}


def test_selectors_make_partitions_and_the_first_is_the_default() -> None:
    settings = Settings(cluster="lab", partitions=(PartitionSettings("gpu", "pool=gpu"), PartitionSettings("all", "")))
    found = site(settings)
    assert found.cluster_name == "lab"
    assert members(found) == {"gpu": ("gpu-9", "gpu-10"), "all": ("cpu-1", "gpu-9", "gpu-10")}
    assert [each.default for each in found.partitions] == [True, False]


def test_a_named_default() -> None:
    settings = Settings(partitions=(PartitionSettings("gpu", "pool=gpu"), PartitionSettings("all", "", default=True)))
    assert [each.default for each in site(settings).partitions] == [False, True]


def test_a_partition_has_the_nodes_that_its_pods_tolerate() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    nodes = (pool("g1", "gpu", taint), pool("c1", "cpu"), pool("x1", "odd", {"key": "odd", "effect": "NoSchedule"}))
    tolerating = PodSettings(tolerations=({"key": "gpu", "operator": "Exists"},))
    settings = Settings(partitions=(PartitionSettings("main", ""), PartitionSettings("gpu", "", pods=tolerating)))
    found = site(settings, manifests=nodes)
    assert members(found) == {"main": ("c1", "x1"), "gpu": ("c1", "g1", "x1")}
    assert {each.name: each.refusal for each in found.nodes} == {"c1": "", "g1": "", "x1": "Taint odd:NoSchedule"}


def test_slurm_conf_says_all_and_labels_choose() -> None:
    text = "NodeName=x[1-2] NodeHostname=gpu-[9-10] CPUs=4\nPartitionName=one Nodes=x1 Default=YES\nPartitionName=all Nodes=ALL"
    found = site(Settings(), conf(text))
    assert members(found) == {"one": ("x1",), "all": ("x1", "x2")}
    assert [each.name for each in found.nodes] == ["x1", "x2"]
    assert [each.cpus for each in found.nodes] == [4, 4]


def test_a_selector_adds_nodes_that_slurm_conf_does_not_name() -> None:
    text = "NodeName=x1 NodeHostname=gpu-9 CPUs=4\nPartitionName=one Nodes=x1 MaxTime=60\nPartitionName=sel MaxTime=30"
    settings = Settings(partitions=(PartitionSettings("sel", "pool in (gpu,none)"), PartitionSettings("more", "pool=cpu")))
    found = site(settings, conf(text))
    assert members(found) == {"one": ("x1",), "sel": ("x1", "gpu-10"), "more": ("cpu-1",)}
    assert [each.name for each in found.nodes] == ["x1", "cpu-1", "gpu-10"]
    assert [each.maximum_time for each in found.partitions][:2] == [60, 30]


def test_slurm_conf_without_nodes_leaves_them_to_the_cluster() -> None:
    found = site(Settings(), conf("PartitionName=main Default=YES MaxTime=10\nPartitionName=all Nodes=ALL"))
    assert members(found) == {"main": ("cpu-1", "gpu-9", "gpu-10"), "all": ("cpu-1", "gpu-9", "gpu-10")}
    assert found.cluster_name == "c"


def test_a_node_of_slurm_conf_that_is_not_there_is_still_named() -> None:
    found = site(Settings(), conf("NodeName=x[1-2] NodeHostname=gpu-9,nowhere CPUs=4\nPartitionName=all Nodes=x[1-2]"))
    assert members(found) == {"all": ("x1", "x2")}
    assert not found.nodes[1].available


def test_labels_are_switches() -> None:
    nodes = tuple(pool(f"n{number}", "x", block=f"b{number // 4}", rack=f"r{number // 2 % 2}") for number in range(6))
    found = site(Settings(switches=("block", "rack")), manifests=(*nodes, pool("lone", "x")))
    assert found.switches == (
        Switch("b0.r0", nodes=("n0", "n1")),
        Switch("b0.r1", nodes=("n2", "n3")),
        Switch("b1.r0", nodes=("n4", "n5")),
        Switch("b0", switches=("b0.r0", "b0.r1")),
        Switch("b1", switches=("b1.r0",)),
        Switch("cluster", switches=("b0", "b1")),
    )
    assert found.parameters["TopologyPlugin"] == "topology/tree"


def test_names_of_switches_are_short_where_they_are_clear() -> None:
    nodes = tuple(pool(f"n{number}", "x", rack=f"r{number}") for number in range(2))
    assert [each.name for each in site(Settings(switches=("rack",)), manifests=nodes).switches] == ["r0", "r1", "cluster"]
    one = site(Settings(switches=("rack",)), manifests=nodes[:1])
    assert one.switches == (Switch("r0", nodes=("n0",)),)


def test_levels_of_kueues_topology() -> None:
    levels = levels_of({"spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]}})
    assert levels == ("rack",)
    nodes = tuple(pool(f"n{number}", "x", rack=f"r{number}") for number in range(2))
    assert [each.name for each in site(Settings(), manifests=nodes, levels=levels).switches] == ["r0", "r1", "cluster"]
