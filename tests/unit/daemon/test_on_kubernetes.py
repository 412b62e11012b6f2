"""How a controller on Kubernetes begins: its socket, its files, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from bridge.kubernetes.cluster import Cluster
from bridge.kubernetes.settings import Settings
from grammar.errors import GrammarError
from slurmk.client.slurmk import Fault, controller_options, parser
from slurmk.daemon.connection import listen_remotely
from slurmk.daemon.kubernetes import Place, Rereading, Unusable, run
from slurmk.model.site import Site


def port_of(address: str, remembered: Path) -> int:
    with listen_remotely(address, remembered) as listening:
        return int(listening.getsockname()[1])


def test_a_free_port_is_the_same_at_the_next_start(tmp_path: Path) -> None:
    remembered = tmp_path / "port"
    first = port_of("127.0.0.1:0", remembered)
    assert first > 0
    assert port_of("127.0.0.1:0", remembered) == first


def test_a_port_that_another_took_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    remembered = tmp_path / "port"
    first = port_of("127.0.0.1:0", remembered)
    with socket.create_server(("127.0.0.1", first)):
        second = port_of("127.0.0.1:0", remembered)
    assert second not in (0, first)
    assert f"port {first} is in use" in caplog.text
    assert port_of("127.0.0.1:0", remembered) == second


@pytest.mark.parametrize("kept", ["", "x", "0", "-1", "65536", "99999999999999999999"])
def test_a_spoilt_memory_of_the_port_does_no_harm(tmp_path: Path, kept: str) -> None:
    (tmp_path / "port").write_text(kept)
    assert port_of("127.0.0.1:0", tmp_path / "port") > 0


def test_a_named_port_that_is_in_use_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OSError):
        listen_remotely(f"127.0.0.1:{other.getsockname()[1]}", tmp_path / "port")


# ------------------------------------------------------------------- the command line


def options(*words: str) -> list[str]:
    return controller_options(parser().parse_args(["up", *words]))


def test_what_slurmk_up_hands_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert options("--kubernetes") == ["--kubernetes", ""]
    given = options("--kubernetes", "a.yaml", "--kubeconfig", "k", "--context", "c", "--conf", "etc")
    assert given == [
        *("--kubernetes", str(tmp_path / "a.yaml")),
        *("--kubeconfig", str(tmp_path / "k")),
        *("--context", "c"),
        *("--conf", str(tmp_path / "etc")),
    ]


@pytest.mark.parametrize("words", [("--kubeconfig", "k"), ("--context", "c"), ("--kubernetes", "--nodes", "3")])
def test_what_does_not_go_together(words: tuple[str, ...]) -> None:
    with pytest.raises(Fault):
        options(*words)


# ------------------------------------------------------------------- what is wrong is said


def begin(directory: Path, **changes: object) -> int:
    place = Place(directory, None, None, str(directory / "absent"), "", f"sqlite:///{directory}/x.sqlite")
    fields = {name: changes.get(name, getattr(place, name)) for name in Place.__dataclass_fields__}
    return asyncio.run(run(Place(**fields)))  # type: ignore[arg-type]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"none\.yaml: there is no such file"):
        begin(tmp_path, settings=tmp_path / "none.yaml")


def test_a_folder_with_neither_file(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"neither slurm\.conf nor slurmk\.yaml"):
        begin(tmp_path, configuration=tmp_path)


def test_mistakes_have_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "slurmk.yaml").write_text("namespace: x\nnodez: y\n")
    with pytest.raises(Unusable, match=r"slurmk\.yaml:2: nodez"):
        begin(tmp_path, configuration=tmp_path)
    (tmp_path / "slurmk.yaml").write_text("namespace: x\n")
    (tmp_path / "slurm.conf").write_text("ClusterName=c\nNodeName=n1 CPUs=many\n")
    with pytest.raises(Unusable, match=r"slurm\.conf line 2: CPUs"):
        begin(tmp_path, configuration=tmp_path)


class Nodes:
    """What ``Rereading`` needs of the Cluster."""

    def __init__(self) -> None:
        self.site = Site("tester", (), ())

    def configure(self, settings: Settings, configured: Site | None) -> Site:
        return Site(settings.cluster, (), ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cluster: another", "the cluster's name"),
        ("cluster: tester\nnamespace: b", "namespace"),
        ("cluster: tester\nlisten: 0.0.0.0:1\ncontroller: h:1", "controller, listen"),
        ("cluster: tester\nclient: {burst: 5}\nleaseSeconds: 60\nlease: x", "lease, leaseSeconds, client"),
    ],
)
def test_what_is_read_at_the_start_alone_is_not_passed_over_later(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "slurmk.yaml"
    place = Place(tmp_path, None, path, "", "", "")
    path.write_text(text)
    with pytest.raises(GrammarError) as refused:
        Rereading(place, cast(Cluster, Nodes()), Settings()).site()
    assert str(refused.value) == f"{path}: {told}: what is new there needs another start of the controller"
    path.write_text("cluster: tester\npods: {image: other}\npartitions: {a: {nodes: x}}")
    assert Rereading(place, cast(Cluster, Nodes()), Settings()).site() == Site("tester", (), ())


def test_no_way_to_a_cluster_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "slurmk.daemon", "--dir", str(tmp_path / "d"), "--kubernetes", ""]
    done = subprocess.run(
        [*command, "--kubeconfig", str(tmp_path / "none")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == f"slurmk: error: Kubernetes: {tmp_path / 'none'}: there is no such kubeconfig\n"
    assert not (tmp_path / "d" / "state" / "slurmk.sqlite").exists()
