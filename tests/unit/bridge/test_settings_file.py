"""slurmk.yaml: what it may say, and how it is told what is wrong."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bridge.kubernetes.settings import (
    ClientLimits,
    Features,
    GresSource,
    Kind,
    PartitionSettings,
    PodSettings,
    QueueSystem,
    Settings,
)
from bridge.kubernetes.settings_file import load_settings, pods_of
from bridge.kubernetes.settings_schema import (
    CLIENT_KEYS,
    FEATURE_KEYS,
    GRES_KEYS,
    PARTITION_KEYS,
    POD_KEYS,
    ROOT_KEYS,
    attribute,
)
from grammar.errors import GrammarError

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


def load(text: str) -> Settings:
    return load_settings(text, "/etc/slurmk/slurmk.yaml")


def complaint(text: str) -> str:
    with pytest.raises(GrammarError) as caught:
        load_settings(text, "slurmk.yaml")
    return str(caught.value)


# ------------------------------------------------------------------- what it says


def test_an_empty_file_says_nothing() -> None:
    assert load("") == load("# a comment\n") == load("partitions:\npods:\ngres: null\n") == Settings()


def test_the_minimal_file_has_three_lines() -> None:
    text = (EXAMPLES / "slurmk.yaml").read_text()
    assert len([line for line in text.splitlines() if line.strip() and not line.startswith("#")]) == 3
    settings = load(text)
    assert settings.pods.image
    assert settings.partitions


def test_the_full_example_says_everything_that_can_be_said() -> None:
    text = (EXAMPLES / "slurmk-full.yaml").read_text()
    load(text)
    said = yaml.safe_load(text)
    assert set(said) == set(ROOT_KEYS)
    assert {
        key for pods in [said["pods"], *(each.get("pods", {}) for each in said["partitions"].values())] for key in pods
    } == set(POD_KEYS)
    assert {key for each in said["partitions"].values() for key in each} == set(PARTITION_KEYS)
    assert {key for each in said["gres"] for key in each} == set(GRES_KEYS)
    assert set(said["features"]) == set(FEATURE_KEYS)
    assert set(said["client"]) == set(CLIENT_KEYS)


@pytest.mark.parametrize(
    ("keys", "values", "more"),
    [
        (ROOT_KEYS, Settings, set()),
        (POD_KEYS, PodSettings, set()),
        (PARTITION_KEYS, PartitionSettings, {"name"}),
        (GRES_KEYS, GresSource, set()),
        (FEATURE_KEYS, Features, set()),
        (CLIENT_KEYS, ClientLimits, set()),
    ],
)
def test_there_is_a_key_for_everything_that_can_be_set(keys: dict[str, Any], values: Any, more: set[str]) -> None:
    assert {attribute(key) for key in keys} | more == {field.name for field in dataclasses.fields(values)}


def test_every_part_finds_its_place() -> None:
    settings = load(
        """
namespace: hpc
nodes: pool in (a, b),!spot
partitions:
  cpu: {nodes: pool=a, default: true}
  gpu:
    nodes: pool=b
    pods: {kind: jobset, queueSystem: kueue, cpuRequest: 0.5}
gres:
- {name: gpu, resource: nvidia.com/gpu, typeLabel: nvidia.com/gpu.product, types: {NVIDIA-H100: h100}}
- {name: gpu, deviceClass: gpu.nvidia.com, type: a100}
features: {values: [zone], pairs: [disk], prefixes: [feature.node.kubernetes.io/]}
switches: [example.org/block, example.org/rack]
client: {writesPerSecond: 50, burst: 10}
accounts: {physics: {GrpTRES: cpu=4}}
qos: {high: {priority: 10}}
templates: templates
kubeconfig: /root/kubeconfig
"""
    )
    assert settings.namespace == "hpc"
    assert [partition.name for partition in settings.partitions] == ["cpu", "gpu"]
    cpu, gpu = settings.partitions
    assert (cpu.nodes, cpu.default, gpu.default) == ("pool=a", True, False)
    assert (gpu.pods.kind, gpu.pods.queue_system, gpu.pods.cpu_request) == (Kind.JOBSET, QueueSystem.KUEUE, "0.5")
    assert settings.gres == (
        GresSource("gpu", "nvidia.com/gpu", type_label="nvidia.com/gpu.product", types={"NVIDIA-H100": "h100"}),
        GresSource("gpu", device_class="gpu.nvidia.com", type="a100"),
    )
    assert settings.features == Features(("zone",), ("disk",), ("feature.node.kubernetes.io/",))
    assert settings.switches == ("example.org/block", "example.org/rack")
    assert settings.client == ClientLimits(writes_per_second=50, burst=10)
    assert settings.accounts == {"physics": {"GrpTRES": "cpu=4"}}
    assert (settings.templates, settings.kubeconfig) == ("/etc/slurmk/templates", "/root/kubeconfig")


OVER = """
pods:
  image: debian:12
  kind: jobset
  tolerations: [{key: a, operator: Exists}]
  imagePullSecrets: [one]
  nodeSelector: {disk: ssd, arch: amd64}
  environment: {A: "1", B: "2"}
  volumes:
  - {name: home, nfs: {server: s, path: /home}, mountPath: /home}
  - {name: scratch, emptyDir: {}, mountPath: /scratch}
  pod:
    dnsPolicy: None
    dnsConfig: {nameservers: [10.0.0.1], searches: [a]}
    containers: [{name: job, tty: true, env: [{name: A, value: x}]}]
partitions:
  same: {}
  bare:
  other:
    pods:
      kind: native
      tolerations: [{key: b, operator: Exists}, {key: a, operator: Exists}]
      imagePullSecrets: [two, one]
      nodeSelector: {disk: null, zone: z}
      environment: {B: "3"}
      volumes: [{name: scratch, hostPath: {path: /fast}, mountPath: /scratch}, {name: data, emptyDir: {}, mountPath: /data}]
      pod: {dnsConfig: {searches: [b]}, dnsPolicy: null, containers: [{name: job, env: [{name: B, value: y}]}, {name: log}]}
"""


def test_a_partition_has_what_the_site_has_and_what_it_has_of_its_own() -> None:
    settings = load(OVER)
    assert pods_of(settings, "same") == pods_of(settings, "bare") == pods_of(settings, "no such") == settings.pods
    other = pods_of(settings, "other")
    assert other.image == "debian:12"
    assert other.kind is Kind.NATIVE
    assert [toleration["key"] for toleration in other.tolerations] == ["a", "b"]
    assert other.image_pull_secrets == ("one", "two")
    assert other.node_selector == {"arch": "amd64", "zone": "z"}
    assert other.environment == {"A": "1", "B": "3"}
    assert [(volume["name"], "hostPath" in volume) for volume in other.volumes] == [
        ("home", False),
        ("scratch", True),
        ("data", False),
    ]
    assert other.pod == {
        "dnsPolicy": None,  # takes away what slurmk itself would say
        "dnsConfig": {"nameservers": ["10.0.0.1"], "searches": ["b"]},
        "containers": [
            {"name": "job", "tty": True, "env": [{"name": "A", "value": "x"}, {"name": "B", "value": "y"}]},
            {"name": "log"},
        ],
    }
    assert settings.pods.pod["dnsPolicy"] == "None"


def test_yaml_is_read_as_people_mean_it() -> None:
    settings = load(
        """
pods: &pods
  environment: {on: "x", 2024-01-01: y, 1: z}
  pod: {hostAliases: [{ip: 10.0.0.1, hostnames: [no]}], since: 2024-01-01}
partitions:
  a: {pods: {<<: *pods, image: a}}
"""
    )
    assert settings.pods.environment == {"on": "x", "2024-01-01": "y", "1": "z"}
    assert settings.pods.pod["since"] == "2024-01-01"
    assert pods_of(settings, "a").image == "a"
    json.dumps(settings.pods.pod)


# ------------------------------------------------------------------- what is wrong

NUMBER = "; text that looks like one needs quotation marks"
ONE_OF = "gres[0]: either resource or deviceClass says where it comes from"

WRONG = {
    "imge: x": "1: imge: unknown key",
    "pods: {imge: x}": "1: pods.imge: unknown key; did you mean image?",
    "pods: {Image: x}": "1: pods.Image: unknown key; did you mean image?",
    "pods:\n  kind: jobsett": "2: pods.kind: expected one of pods, native, native-job, jobset, trainjob, volcano, volcano-job, "
    "coscheduling, not 'jobsett'; did you mean jobset?",
    "namespace: 5": "1: namespace: expected text, not 5" + NUMBER,
    "namespace: A": "1: namespace: 'A' is no name (lower case letters, digits and -, at most 63)",
    "namespace: [a]": "1: namespace: expected text, not a list",
    "pods: {environment: {A: yes}}": "1: pods.environment.A: expected text, not true" + NUMBER,
    'pods: {environment: {"A B": x}}': "1: pods.environment.A B: 'A B' is no name of an environment variable",
    "pods: {labels: {a: b c}}": "1: pods.labels.a: 'b c' is no label value (letters, digits, -, _ and ., at most 63)",
    "pods: {labels: {a/b/c: x}}": "1: pods.labels.a/b/c: 'a/b/c' is no label key ([PREFIX/]NAME)",
    "pods: {image: /tmp/x}": "1: pods.image: jobs run in images from a registry, not from a file or folder",
    "pods: {cpuRequest: 0}": "1: pods.cpuRequest: must be more than 0",
    "pods: {cpuRequest: a lot}": "1: pods.cpuRequest: 'a lot' is no number of CPUs, such as 1, 0.5 or 500m",
    "pods: {cpuRequest: 1Gi}": "1: pods.cpuRequest: '1Gi' is no number of CPUs, such as 1, 0.5 or 500m",
    "pods: {cpuRequest: 2M}": "1: pods.cpuRequest: '2M' is no number of CPUs, such as 1, 0.5 or 500m",
    "pods: {cpuRequest: 100n}": "1: pods.cpuRequest: '100n' is no number of CPUs, such as 1, 0.5 or 500m",
    "pods: {cpuRequest: 1e-4}": "1: pods.cpuRequest: '1e-4' is finer than a thousandth of a CPU, which Kubernetes counts in",
    "pods: {cpuRequest: 1e4}": "1: pods.cpuRequest: '1e4' is more than any node has for one of Slurm's CPUs: at most 1024",
    "pods: {keepFinished: -1}": "1: pods.keepFinished: must be at least 0",
    "pods: {volumes: [{name: a, mountPath: /a}]}": "1: pods.volumes[0]: needs one kind of volume "
    "(hostPath, nfs, persistentVolumeClaim, ...)",
    "pods: {volumes: [{name: a, emptyDir: {}}]}": "1: pods.volumes[0]: mountPath is missing",
    "pods: {volumes: [{name: a, emptydir: {}, mountPath: /a}]}": "1: pods.volumes[0].emptydir: unknown key; did you mean "
    "emptyDir?",
    "pods:\n  volumes:\n  - {name: a, emptyDir: {}, mountPath: /a}\n  - name: a\n    emptyDir: {}\n    mountPath: /b": (
        "4: pods.volumes[1].name: there are two volumes a"
    ),
    "pods: {tolerations: [{effect: NoSchedule}]}": "1: pods.tolerations[0]: without a key, operator must be Exists",
    "pods: {tolerations: [{key: a, operator: Exists, value: b}]}": "1: pods.tolerations[0].value: "
    "operator Exists takes no value",
    "partitions: [a]": "1: partitions: expected keys and values, not a list",
    "partitions:\n  a b: {}": "2: partitions.a b: 'a b' is no name (letters, digits, _, - and .)",
    "partitions:\n  a: {nodes: 'x=,='}": "2: partitions.a.nodes: label selector 'x=,=': expected a condition at position 4",
    "partitions:\n  a: {default: true}\n  b: {default: true}": "3: partitions.b.default: a is the default already",
    "gres: [{resource: a/b}]": "1: gres[0]: name is missing",
    "gres: [{name: gpu}]": f"1: {ONE_OF}",
    "gres: [{name: gpu, resource: a.b/c, deviceClass: d}]": f"1: {ONE_OF}",
    "gres: [{name: gpu, resource: a.b/c-*, type: t}]": "1: gres[0].resource: the * says the type already",
    "gres: [{name: gpu, resource: a.b/*c*}]": "1: gres[0].resource: 'a.b/*c*' is no resource name "
    "(DOMAIN/NAME, which may end in *)",
    "gres: [{name: gpu, resource: a.b/c, type: t, typeLabel: l}]": "1: gres[0].type: either type or typeLabel says the type",
    "listen: 8080": "1: listen: expected text, not 8080" + NUMBER,
    "listen: localhost": "1: listen: 'localhost' is no HOST:PORT",
    "controller: a:99999": "1: controller: 'a:99999' is no HOST:PORT",
    "client: {burst: 1.5}": "1: client.burst: expected a whole number, not 1.5",
    "accounts:\n  p:\n    GrpTRSE: cpu=1": "3: accounts.p.GrpTRSE: unknown key; GrpTRES?",
    "accounts:\n  p: {parent: q}": "2: accounts.p.parent: there is no account q",
    "a: 1\nb: 2": "1: a: unknown key\nslurmk.yaml:2: b: unknown key",
    "lease: a\nnodes: b\nlease: c": "3: lease: the key is there twice",
    "- a": "1: expected keys and values, not a list",
    "just text": "1: expected keys and values, not 'just text'",
    "a: b\nc: d: e": "2: mapping values are not allowed here",
    "a: [1, 2": "1: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'",
    "a: 1\n\x07": "2: a character that YAML does not take",
    "pods:\n  pod: !!python/name:os.system x": "2: pods.pod: tag:yaml.org,2002:python/name:os.system is not known here",
    "pods: {pod: {a: .inf}}": "1: pods.pod.a: must be a finite number",
    "pods: {pod: {[a]: b}}": "1: pods.pod: a key must be text",
    "a: *nobody": "1: found undefined alias 'nobody'",
}


@pytest.mark.parametrize("text", list(WRONG))
def test_mistakes_are_told_with_file_line_and_key(text: str) -> None:
    assert complaint(text) == f"slurmk.yaml:{WRONG[text]}"


LETTERS = list(zip("abcdefgh", "bcdefghi", strict=True))

BOMBS = [
    "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in LETTERS),
    "pods: &p {pod: *p}",
    "pods: &p {labels: {a: b}, <<: *p}",
    "a: &a {k: v}\n"
    + "".join(
        f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 10)}]}}\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "[" * 2000,
    "pods: " + "{pod: " * 500 + "}" * 500,
]


@pytest.mark.parametrize("text", BOMBS, ids=["laughs", "itself", "merged itself", "merged laughs", "brackets", "deep"])
def test_a_file_that_grows_without_end_is_refused(text: str) -> None:
    assert complaint(text).startswith("slurmk.yaml:")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
KEYS = st.sampled_from([*ROOT_KEYS, *POD_KEYS, *GRES_KEYS, *PARTITION_KEYS, "x"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)


def lines_of_mistakes(text: str) -> list[str]:
    try:
        load(text)
    except GrammarError as error:
        return str(error).splitlines()
    return []


@given(value=st.dictionaries(KEYS, VALUES, max_size=6))
@hypothesis_settings(max_examples=150, deadline=None)
def test_any_values_are_settings_or_a_mistake_with_a_line(value: dict[str, Any]) -> None:
    lines = lines_of_mistakes(yaml.safe_dump(value, allow_unicode=True))
    assert all(line.startswith("/etc/slurmk/slurmk.yaml:") for line in lines)


@given(text=st.text(alphabet=st.sampled_from("abx:- {}[],&*!|>\n\t'\"#?<%@`\\\x00\udcff"), max_size=60))
@hypothesis_settings(max_examples=300, deadline=None)
def test_any_text_is_settings_or_a_mistake_with_a_line(text: str) -> None:
    assert all(line.startswith("/etc/slurmk/slurmk.yaml:") for line in lines_of_mistakes(text))
