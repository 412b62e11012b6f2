"""Names of container images."""

from __future__ import annotations

import pytest

from grammar.containers import parse_enroot_image, parse_image
from grammar.errors import GrammarError
from grammar.options import OptionError, Reading, options_of

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "text",
    [
        "debian",
        "debian:12",
        "localhost/debian:12",
        "localhost:5000/a/b_c/d-e:tag",
        "nvcr.io/nvidia/pytorch:26.01-py3",
        f"ghcr.io/org/app@{DIGEST}",
        f"ghcr.io/org/app:1@{DIGEST}",
        "registry.example:443/x.y/z__w:v1.2_3",
    ],
)
def test_images(text: str) -> None:
    assert parse_image(text) == text
    assert parse_enroot_image(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/bundle",
        "./x",
        "~/x",
        "Debian",
        "a b",
        "a\nb",
        "a:b:c",
        "-x",
        "a/",
        "x" * 600,
        "a@sha256:12",
        "ä",
        "a//b",
        "docker://a",
    ],
)
def test_what_is_no_image(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_image(text)


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("docker://debian:12", "debian:12"),
        ("docker://nvcr.io#nvidia/pytorch:26.01-py3", "nvcr.io/nvidia/pytorch:26.01-py3"),
        ("nvcr.io#nvidia/pytorch", "nvcr.io/nvidia/pytorch"),
        ("docker://$oauthtoken@nvcr.io#nvidia/pytorch", "nvcr.io/nvidia/pytorch"),
        (f"user@ghcr.io#org/app@{DIGEST}", f"ghcr.io/org/app@{DIGEST}"),
    ],
)
def test_images_as_pyxis_has_them(text: str, image: str) -> None:
    assert parse_enroot_image(text) == image


@pytest.mark.parametrize("text", ["dockerd://x", "podman://x", "/images/x.sqsh", "x.sqsh", "a#b#c", "docker://", "import://x"])
def test_what_pyxis_has_and_we_have_not(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_enroot_image(text)


@pytest.mark.parametrize("command", ["sbatch", "srun", "salloc"])
def test_options_of_pyxis(command: str) -> None:
    rows = {name: row for row in options_of(command) for name in row.names}
    reading = Reading(command, "container-image", 0)
    image = rows["container-image"].read("docker://nvcr.io#nvidia/pytorch:1", reading)
    assert image == {"container": "nvcr.io/nvidia/pytorch:1"}
    with pytest.raises(OptionError) as error:
        rows["container-image"].read("/x.sqsh", reading)
    text = "--container-image=/x.sqsh: jobs run in images from a registry, not from a file or folder"
    assert error.value.lines == (f"{command}: error: {text}",)
    with pytest.raises(OptionError, match="volumes jobs get is set by the site"):
        rows["container-mounts"].read("/a:/b", Reading(command, "container-mounts", 0))
