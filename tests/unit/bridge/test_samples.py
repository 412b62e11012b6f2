"""Templates of a site are tried before any job depends on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.kubernetes.samples import check_templates
from bridge.kubernetes.settings import Kind, PartitionSettings, PodSettings, Settings
from bridge.kubernetes.templating import FOLDER, TemplateError, Templates


def changed(folder: Path, name: str, old: str, new: str) -> Settings:
    """A site whose template ``name`` has ``new`` in place of ``old``."""
    text = (FOLDER / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    return Settings(templates=str(folder))


@pytest.mark.parametrize("kind", Kind)
def test_our_own_templates_do(kind: Kind) -> None:
    check_templates(Settings(pods=PodSettings(kind=kind)))


def test_a_site_may_say_more(tmp_path: Path) -> None:
    check_templates(changed(tmp_path, "pod.yaml.j2", "  restartPolicy: Never\n", "  restartPolicy: Never\n  priority: 1\n"))


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("pod.yaml.j2", "restartPolicy: Never", "restartPolicy: Always", "kind native: a pod's restartPolicy is not Never"),
        ("pod.yaml.j2", "  restartPolicy:", "  nodeName: n\n  restartPolicy:", "kind native: a pod names its node"),
        ("pod.yaml.j2", "labels | json", "{} | json", "kind native: Pod slurmk-1-n0 lacks the label"),
        ("pod.yaml.j2", "- name: {{ container | json }}", "- name: mine", "pod.yaml.j2: it gives no container 'job'"),
        ("pod.yaml.j2", "{{ host | json }}", "elsewhere", "kind native: a pod is not tied to its node"),
        ("pod.yaml.j2", "{{ image | json }}", "{{ imagge | json }}", r"pod.yaml.j2:\d+: 'imagge' is undefined"),
        ("pod.yaml.j2", "{% if hostname %}", "{% if hostname", r"pod.yaml.j2:\d+: expected token"),
        ("pod.yaml.j2", "spec:\n", "spec: [\n", "pod.yaml.j2: it gives no YAML: line"),
        ("pod.yaml.j2", "spec:\n", "pec:\n", "pod.yaml.j2: it gives no metadata and spec"),
        ("pod.yaml.j2", "metadata:\n", "---\na: 1\n---\nmetadata:\n", "pod.yaml.j2: it gives 2 documents, not one"),
        ("pod.yaml.j2", "command: {{ command | json }}", "command: [sleep]", "does not have the command"),
        ("pods.yaml.j2", "{% for pod in pods %}", "{% for pod in pods[:1] %}", "a job of 3 nodes does not get as many pods"),
        ("pods.yaml.j2", "kind: Pod", "kind: Pot", "v1 Pot is no kind of object that slurmk knows"),
        ("podgroup.yaml.j2", "metadata: {{ metadata | json }}\n", "", "cannot be used: 'metadata'"),
        ("podgroup.yaml.j2", "metadata | json", "dict(metadata, namespace='x') | json", "not in the namespace"),
    ],
)
def test_what_slurmk_could_not_work_with(tmp_path: Path, name: str, old: str, new: str, said: str) -> None:
    with pytest.raises(TemplateError, match=said):
        check_templates(changed(tmp_path, name, old, new))


def test_every_kind_in_use_is_tried(tmp_path: Path) -> None:
    settings = changed(tmp_path, "jobset.yaml.j2", "kind: JobSet", "kind: JobSat")
    check_templates(settings)
    partition = PartitionSettings("main", pods=PodSettings(kind=Kind.JOBSET))
    with pytest.raises(TemplateError, match="v1alpha2 JobSat is no kind"):
        check_templates(Settings(templates=str(tmp_path), partitions=(partition,)))


def test_files_that_replace_nothing(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml.j2").write_text("{}")
    (tmp_path / "pots.yaml.j2").write_text("{}")
    assert Templates(str(tmp_path)).unknown() == ["pots.yaml.j2"]
    with pytest.raises(TemplateError, match="nowhere is no folder"):
        Templates(str(tmp_path / "nowhere"))
