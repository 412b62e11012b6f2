"""GRES as what a pod asks for: extended resources, MIG profiles, and devices through DRA."""

from __future__ import annotations

from typing import Any

import pytest
from rendering import job, pod_specs, rendered, share

from bridge.kubernetes.devices import DeviceRequest, Devices, devices_of
from bridge.kubernetes.gres import read_slices
from bridge.kubernetes.settings import GresSource, Kind, Settings
from slurmk.model.job import GresShare

DEFAULT = Settings().gres


def node(**allocatable: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "k1"},
        "status": {"allocatable": {key.replace("__", "/"): v for key, v in allocatable.items()}},
    }


NVIDIA = {"nvidia.com/gpu": "4", "nvidia.com/mig-1g.10gb": "7", "nvidia.com/mig-3g.40gb": "0"}


def asked(*gres: GresShare, sources: Any = DEFAULT, allocatable: Any = NVIDIA) -> Devices:
    return devices_of(share("n1", 1, 1, *gres), sources, {"metadata": {"name": "k1"}, "status": {"allocatable": allocatable}})


@pytest.mark.parametrize(
    ("gres", "resource"),
    [
        (GresShare("gpu", "", 2), "nvidia.com/gpu"),
        (GresShare("gpu", "a100-sxm4-80gb", 2), "nvidia.com/gpu"),
        (GresShare("gpu", "1g.10gb", 2), "nvidia.com/mig-1g.10gb"),
    ],
)
def test_extended_resources(gres: GresShare, resource: str) -> None:
    assert asked(gres) == Devices(((resource, 2),))


def test_what_the_node_has_decides() -> None:
    assert asked(GresShare("gpu", "", 1), allocatable={"amd.com/gpu": "8"}) == Devices((("amd.com/gpu", 1),))


def test_types_of_a_site() -> None:
    sources = (
        GresSource("gpu", "example.com/slice-*", types={"1g": "small"}),
        GresSource("gpu", "example.com/big", type="big"),
        GresSource("fpga", "example.com/fpga"),
    )
    allocatable = {"example.com/slice-1g": "4", "example.com/big": "1", "example.com/fpga": "1"}
    gres = (GresShare("gpu", "small", 2), GresShare("gpu", "big", 1), GresShare("fpga", "", 1))
    assert asked(*gres, sources=sources, allocatable=allocatable).resources == (
        ("example.com/big", 1),
        ("example.com/fpga", 1),
        ("example.com/slice-1g", 2),
    )


def test_what_only_slurm_counts_is_not_asked_for() -> None:
    assert asked(GresShare("licence", "", 3), GresShare("gpu", "", 0)) == Devices()


def test_a_pod_asks_for_its_gres() -> None:
    [(_, _, spec)] = pod_specs(rendered(job(share("n1", 2, 512, GresShare("gpu", "", 2)))))
    resources = spec["containers"][0]["resources"]
    assert resources["requests"] == resources["limits"] == {"cpu": "2", "memory": "512Mi", "nvidia.com/gpu": "2"}


# ------------------------------------------------------------------------------------------------- DRA

DRIVER = "gpu.example.com"


def slices(*models: str) -> Any:
    devices = [{"name": f"d{number}", "attributes": {"model": {"string": model}}} for number, model in enumerate(models)]
    pool = {"name": "k1", "generation": 1, "resourceSliceCount": 1}
    return read_slices([{"spec": {"driver": DRIVER, "nodeName": "k1", "pool": pool, "devices": devices}}])


DRA = GresSource("gpu", device_class="gpu.example.com", type_label="gpu.example.com/model")


def test_devices_of_a_class() -> None:
    given = share("n1", 1, 1, GresShare("gpu", "h100", 2))
    found = devices_of(given, (DRA,), node(), slices("NVIDIA H100", "NVIDIA A100", "h100"))
    expression = 'device.attributes["gpu.example.com"].model in ["NVIDIA H100", "h100"]'
    assert found == Devices((), (DeviceRequest("gres-0", "gpu.example.com", 2, (expression,)),))


def test_devices_without_a_type_are_any_of_their_class() -> None:
    found = devices_of(share("n1", 1, 1, GresShare("gpu", "", 1)), (DRA,), node(), slices("NVIDIA H100"))
    assert found.requests == (DeviceRequest("gres-0", "gpu.example.com", 1),)


def test_a_model_cannot_be_made_into_another_expression() -> None:
    evil = '"] || true || ["'
    [request] = devices_of(share("n1", 1, 1, GresShare("gpu", "true", 1)), (DRA,), node(), slices(evil)).requests
    assert request.selectors == ('device.attributes["gpu.example.com"].model in ["\\"] || true || [\\""]',)


@pytest.mark.parametrize("kind", [Kind.PODS, Kind.NATIVE_JOB])
def test_each_pod_has_a_claim_of_its_own(kind: Kind) -> None:
    gpu = GresShare("gpu", "", 2)
    given = job(share("n1", 3, 512, gpu), share("n2", 3, 512, gpu))
    found = rendered(given, kind=kind, settings=Settings(gres=(DRA,)))
    claims = {each["metadata"]["name"]: each for each in found.objects if each["kind"] == "ResourceClaimTemplate"}
    assert found.objects[0] in claims.values(), "claims come first"
    used = set()
    for _, _, spec in pod_specs(found):
        [claim] = spec["resourceClaims"]
        assert spec["containers"][0]["resources"]["claims"] == [{"name": claim["name"]}]
        assert all("claims" not in each["resources"] for each in spec["initContainers"])
        used.add(claim["resourceClaimTemplateName"])
    assert used == set(claims) == {"slurmk-42-c0"}
    for each in claims.values():
        exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 2}
        assert each["spec"]["spec"]["devices"]["requests"] == [{"name": "gres-0", "exactly": exactly}]
