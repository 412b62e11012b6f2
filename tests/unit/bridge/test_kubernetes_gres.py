"""GRES of nodes: GPU models from labels, MIG profiles, devices of DRA drivers."""

from __future__ import annotations

import logging

import pytest
from kubernetes_objects import device, device_class, node, resource_slice

from bridge.kubernetes.foreign import Foreign
from bridge.kubernetes.gres import Supply, read_slices, supplies, type_of
from bridge.kubernetes.settings import GresSource, Settings

STANDARD = Settings().gres
PRODUCT = "nvidia.com/gpu.product"
NOBODY = Foreign()


def test_a_model_comes_from_the_label_that_the_device_plugin_sets() -> None:
    found = supplies(node(nvidiaDOTcom__gpu="8", labels={PRODUCT: "NVIDIA-A100-SXM4-80GB"}), STANDARD, NOBODY)
    assert found == {("gpu", "a100-sxm4-80gb"): Supply(8, 0)}


def test_without_a_label_there_is_no_type() -> None:
    assert supplies(node(nvidiaDOTcom__gpu="8"), STANDARD, NOBODY) == {("gpu", ""): Supply(8, 0)}


def test_none_allocatable_is_none() -> None:
    assert supplies(node(nvidiaDOTcom__gpu="0"), STANDARD, NOBODY) == {}
    assert supplies(node(), STANDARD, NOBODY) == {}
    assert supplies(node(nvidiaDOTcom__gpu="many"), STANDARD, NOBODY) == {}


def test_mig_profiles_are_types() -> None:
    made = node(
        nvidiaDOTcom__mig_1gDOT10gb="3",
        nvidiaDOTcom__mig_3gDOT40gb="1",
        nvidiaDOTcom__gpu="2",
        labels={PRODUCT: "NVIDIA-A100-SXM4-80GB"},
    )
    foreign = Foreign({"nvidia.com/mig-1g.10gb": 2000, "nvidia.com/gpu": 1000})
    assert supplies(made, STANDARD, foreign) == {
        ("gpu", "a100-sxm4-80gb"): Supply(2, 1),
        ("gpu", "1g.10gb"): Supply(3, 2),
        ("gpu", "3g.40gb"): Supply(1, 0),
    }


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("NVIDIA-A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "1g.10gb"),
        ("Tesla-T4-SHARED", "t4-shared"),
        ("AMD_Instinct_MI300X_OAM", "mi300x_oam"),
        ("NVIDIA H100 80GB HBM3", "h100-80gb-hbm3"),
        ("gaudi3", "gaudi3"),
        ("a:b,c(d)", "a-b-c-d"),
        ("", ""),
    ],
)
def test_labels_as_types(label: str, name: str) -> None:
    assert type_of(GresSource("gpu", "x/gpu", type_label="l"), label) == name


def test_a_site_names_types_itself() -> None:
    named = GresSource("gpu", "nvidia.com/gpu", type_label=PRODUCT, types={"NVIDIA-A100-SXM4-80GB": "a100"})
    assert type_of(named, "NVIDIA-A100-SXM4-80GB") == "a100"
    assert type_of(GresSource("nic", "x/nic", type="cx7"), "whatever") == "cx7"
    star = GresSource("gpu", "nvidia.com/mig-*", types={"1g.10gb": "small"})
    assert supplies(node(nvidiaDOTcom__mig_1gDOT10gb="3"), (star,), NOBODY) == {("gpu", "small"): Supply(3, 0)}


# ------------------------------------------------------------------- DRA

DRA = (GresSource("gpu", device_class="gpu.example.com", type_label="productName"),)
CLASSES = {
    "gpu.example.com": device_class(
        "gpu.example.com", "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].type == 'gpu'"
    )
}


def test_devices_that_the_class_means_are_gres_by_their_model() -> None:
    slices = read_slices(
        [
            resource_slice("n1", device("g0"), device("g1"), device("m0", kind="mig"), device("h0", product="NVIDIA H100")),
            resource_slice("n2", device("g0")),
        ]
    )
    foreign = Foreign(devices=frozenset({("gpu.example.com", "n1", "g1"), ("gpu.example.com", "n2", "g0")}))
    found = supplies(node(), DRA, foreign, slices, CLASSES)
    assert found == {("gpu", "a100-sxm4-80gb"): Supply(2, 1), ("gpu", "h100"): Supply(1, 0)}


def test_a_class_that_is_not_there_has_no_devices() -> None:
    assert supplies(node(), DRA, NOBODY, read_slices([resource_slice("n1", device("g0"))]), {}) == {}


def test_closed_devices_do_not_count() -> None:
    taint = {"key": "bad", "effect": "NoSchedule"}
    slices = read_slices([resource_slice("n1", device("g0", taints=[taint]), device("g1"))])
    assert supplies(node(), DRA, NOBODY, slices, CLASSES)[("gpu", "a100-sxm4-80gb")].total == 1


def test_only_the_newest_complete_generation_counts() -> None:
    old = resource_slice("n1", device("g0"), device("g1"), generation=1)
    half = resource_slice("n1", device("g0"), generation=2, count=2)
    assert supplies(node(), DRA, NOBODY, read_slices([old, half]), CLASSES) == {}
    rest = resource_slice("n1", device("g1"), device("g2"), generation=2, count=2)
    assert supplies(node(), DRA, NOBODY, read_slices([old, half, rest]), CLASSES)[("gpu", "a100-sxm4-80gb")].total == 3


def _partition(name: str, amount: int) -> dict[str, object]:
    consumes = [{"counterSet": "card", "counters": {"memory": {"value": f"{amount}Gi"}}}]
    return device(name, product=f"MIG-{amount}", consumesCounters=consumes)


def test_partitions_of_one_card_share_what_it_has() -> None:
    counters = ({"name": "card", "counters": {"memory": {"value": "40Gi"}}},)
    slices = read_slices(
        [resource_slice("n1", *(_partition(f"p{n}", 10) for n in range(6)), _partition("big", 40), counters=counters)]
    )
    found = supplies(node(), DRA, NOBODY, slices, CLASSES)
    assert found == {("gpu", "mig-10"): Supply(4, 0), ("gpu", "mig-40"): Supply(1, 0)}
    one = Foreign(devices=frozenset({("gpu.example.com", "n1", "p0")}))
    assert supplies(node(), DRA, one, slices, CLASSES) == {("gpu", "mig-10"): Supply(4, 1), ("gpu", "mig-40"): Supply(1, 1)}


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0", True),
        ("device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('100Gi'))", False),
        ("device.attributes['gpu.example.com'].productName.lowerAscii().matches('.*a100.*')", True),
        ("device.attributes['gpu.example.com'].missing == 'x'", False),
        ("'other.example.com' in device.attributes", False),
        ("device.attributes['other.example.com'].x == 1", False),
    ],
)
def test_what_classes_say_in_cel(expression: str, chosen: bool) -> None:
    slices = read_slices([resource_slice("n1", device("g0"))])
    found = supplies(node(), DRA, NOBODY, slices, {"gpu.example.com": device_class("gpu.example.com", expression)})
    assert bool(found) is chosen


def test_a_class_that_cannot_be_understood_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    slices = read_slices([resource_slice("n1", device("g0"))])
    classes = {"gpu.example.com": device_class("gpu.example.com", "device.driver == ")}
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert supplies(node(), DRA, NOBODY, slices, classes) == {}
    assert len(caplog.records) == 1
