"""``slurmk config check`` on files, without a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SLURM_CONF = """ClusterName=c
NodeName=n[1-2] CPUs=4
PartitionName=a Nodes=ALL Default=YES
"""


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slurmk.client.slurmk", "config", "check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_good_files_are_told(tmp_path: Path) -> None:
    folder = written(tmp_path, slurm_conf=SLURM_CONF, slurmk_yaml="pods: {image: a}\npartitions: {b: {nodes: x}}\n")
    done = check("--conf", folder, "--offline")
    assert done.stdout == f"{folder}/slurm.conf: 2 nodes, 1 partition\n{folder}/slurmk.yaml: 1 partition\n"
    assert (done.stderr, done.returncode) == ("", 0)


def test_without_kubernetes_only_slurms_files_are_looked_at(tmp_path: Path) -> None:
    folder = written(tmp_path, slurm_conf=SLURM_CONF + "MailProg=/bin/mail\n")
    done = check("--conf", folder)
    assert done.stdout == f"{folder}/slurm.conf: 2 nodes, 1 partition\n"
    assert done.returncode == 0


def test_each_file_has_its_mistakes_told(tmp_path: Path) -> None:
    folder = written(tmp_path, slurm_conf="ClusterName=c\nNodeName=n1 CPUs=x\n", slurmk_yaml="imge: a\nlisten: b\n")
    done = check("--conf", folder, "--offline")
    assert f"slurmk: error: {folder}/slurm.conf line 2: " in done.stderr
    assert f"slurmk: error: {folder}/slurmk.yaml:1: imge: unknown key\n" in done.stderr
    assert f"slurmk: error: {folder}/slurmk.yaml:2: listen: 'b' is no HOST:PORT\n" in done.stderr
    assert done.returncode == 1


def test_two_default_partitions_are_one_too_many(tmp_path: Path) -> None:
    folder = written(tmp_path, slurm_conf=SLURM_CONF, slurmk_yaml="partitions:\n  b:\n    default: true\n")
    done = check("--conf", folder, "--kubernetes", folder / "slurmk.yaml", "--offline")
    assert f"{folder}/slurmk.yaml:3: partitions.b.default: slurm.conf says that a is the default\n" in done.stderr
    assert done.returncode == 1


def test_templates_are_looked_at(tmp_path: Path) -> None:
    folder = written(tmp_path, slurmk_yaml="templates: mine\n")
    assert "slurmk.yaml:1: templates: " in check("--kubernetes", folder / "slurmk.yaml", "--offline").stderr
    (folder / "mine").mkdir()
    (folder / "mine" / "pood.yaml.j2").write_text("")
    done = check("--kubernetes", folder / "slurmk.yaml", "--offline")
    assert done.stderr == f"slurmk: warning: {folder}/mine/pood.yaml.j2: it takes the place of no template\n"
    assert done.returncode == 0


KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {}}]
contexts: [{name: there, context: {cluster: c, user: u}}]
current-context: there
"""


def test_a_cluster_that_does_not_answer_was_not_asked(tmp_path: Path) -> None:
    folder = written(tmp_path, slurmk_yaml="kubeconfig: k\ncontext: there\nclient: {timeout: 1}\n")
    (folder / "k").write_text(KUBECONFIG)
    done = check("--kubernetes", folder / "slurmk.yaml")
    assert done.stderr.startswith("slurmk: warning: the cluster was not asked: http://127.0.0.1:9: ")
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("yaml", "arguments", "text"),
    [
        ("kubeconfig: nowhere\n", [], "{folder}/slurmk.yaml:1: kubeconfig: {folder}/nowhere: there is no such kubeconfig"),
        ("namespace: a\n", ["--kubeconfig", "/nowhere"], "/nowhere: there is no such kubeconfig"),
        ("kubeconfig: k\ncontext: gone\n", [], "{folder}/slurmk.yaml:2: context: {folder}/k: "),
        ("kubeconfig: k\n", ["--context", "gone"], "{folder}/k: "),
        ("kubeconfig: slurmk.yaml\n", [], "{folder}/slurmk.yaml:1: kubeconfig: {folder}/slurmk.yaml: "),
    ],
)
def test_no_way_to_the_cluster_is_an_error(tmp_path: Path, yaml: str, arguments: list[str], text: str) -> None:
    folder = written(tmp_path, slurmk_yaml=yaml)
    (folder / "k").write_text(KUBECONFIG)
    done = check("--kubernetes", folder / "slurmk.yaml", *arguments)
    assert done.stderr.startswith("slurmk: error: ")
    assert text.format(folder=folder) in done.stderr
    assert done.stderr.count("\n") == 1
    assert "gone" in done.stderr or "context" not in text
    assert done.returncode == 1
    offline = check("--kubernetes", folder / "slurmk.yaml", *arguments, "--offline")
    assert (offline.returncode, offline.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "name what to check: --conf DIR, or --kubernetes FILE"),
        (["--kubernetes"], "name what to check: --conf DIR, or --kubernetes FILE"),
        (["--conf", "/nowhere"], "/nowhere: there is no slurm.conf"),
        (["--kubernetes", "/nowhere"], "/nowhere: there is no such file"),
        (["--kubernetes", "/dev/null"], "/dev/null: not a regular file"),
        (["--conf", "/nowhere", "--kubernetes"], "/nowhere/slurmk.yaml: there is no such file"),
    ],
)
def test_nothing_to_check_is_an_error(arguments: list[str], text: str) -> None:
    done = check(*arguments)
    assert done.stderr == f"slurmk: error: {text}\n"
    assert done.returncode == 1


def test_without_kubernetes_its_client_is_not_imported(tmp_path: Path) -> None:
    code = (
        "import sys; import slurmk.daemon.__main__, slurmk.daemon.controller, slurmk.daemon.configured, slurmk.daemon.check\n"
        "print([name for name in ('kubernetes', 'aiohttp', 'jsonschema', 'jinja2') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
