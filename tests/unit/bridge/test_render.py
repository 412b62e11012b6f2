"""Jobs as Kubernetes objects: what the pods ask for, whose they are, and what owns them."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
import rendering
from hypothesis import given, settings
from hypothesis import strategies as st
from rendering import NODES, SITE, UNEQUAL, job, pod_specs, rendered, share

from bridge.kubernetes import labels
from bridge.kubernetes.render import RenderError, deadline_of, image_of, merge, slurm_node
from bridge.kubernetes.settings import Kind, PodSettings
from slurmk.model.job import JobRequest
from slurmk.model.node import Partition
from slurmk.model.states import INFINITE


def only(found: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metadata and spec of the one pod."""
    [(_, metadata, spec)] = pod_specs(found)
    return metadata, spec


def test_one_node_is_one_pod() -> None:
    found = rendered(job())
    assert [(each["kind"], each["metadata"]["name"]) for each in found.objects] == [("Pod", "slurmk-42-n0")]
    assert found.pods == {"n1": "slurmk-42-n0"}
    assert slurm_node(found.objects[0]) == "n1"


def test_a_restart_has_names_of_its_own() -> None:
    found = rendered(job(restarts=1))
    assert found.secret["metadata"]["name"] == found.name == "slurmk-42-1"
    assert found.objects[0]["metadata"]["name"] == "slurmk-42-1-n0"
    assert found.objects[0]["metadata"]["labels"][labels.RESTART] == "1"


@pytest.mark.parametrize("kind", Kind)
def test_every_pod_is_guaranteed_what_its_node_was_given(kind: Kind) -> None:
    found = pod_specs(rendered(job(*UNEQUAL), kind=kind))
    assert sum(count for count, _, _ in found) == 3
    for _, _, spec in found:
        for container in (*spec["containers"], *spec["initContainers"]):
            assert container["resources"]["requests"] == container["resources"]["limits"]
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    cpus = [(count, spec["containers"][0]["resources"]["requests"]["cpu"]) for count, _, spec in found]
    assert sorted(cpus * 1) in ([(1, "1"), (1, "3"), (1, "3")], [(1, "1"), (2, "3")])


@pytest.mark.parametrize("kind", Kind)
def test_every_pod_is_tied_to_its_nodes_and_bound_by_the_scheduler(kind: Kind) -> None:
    hosts: list[str] = []
    for count, _, spec in pod_specs(rendered(job(*UNEQUAL), kind=kind)):
        assert "nodeName" not in spec
        assert spec["restartPolicy"] == "Never"
        required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        fields = [term["matchFields"] for term in required["nodeSelectorTerms"]]
        assert all(len(each) == 1 and each[0]["key"] == "metadata.name" for each in fields)
        own = [each[0]["values"][0] for each in fields]
        assert len(own) == count
        assert ("podAntiAffinity" in spec["affinity"]) == (count > 1)
        hosts += own
    assert sorted(hosts) == ["host-n1", "host-n2", "host-n3"]


@pytest.mark.parametrize("kind", Kind)
def test_every_pod_can_say_which_node_it_is(kind: Kind) -> None:
    seen = set()
    for count, metadata, spec in pod_specs(rendered(job(*UNEQUAL), kind=kind)):
        variables = {each["name"]: each for each in spec["containers"][0]["env"]}
        if count == 1:
            assert variables["SLURMK_NODE"]["value"] == slurm_node({"metadata": metadata})
            seen.add(variables["SLURMK_NODE"]["value"])
        else:
            path = variables["SLURMK_NODES"]["valueFrom"]["fieldRef"]["fieldPath"]
            assert path == f"metadata.annotations['{labels.NODES}']"
            assert metadata["annotations"][labels.NODES] == "host-n1=n1,host-n2=n2"
            assert slurm_node({"metadata": metadata, "spec": {}}) == ""
            for host in ("host-n1", "host-n2"):
                seen.add(slurm_node({"metadata": metadata, "spec": {"nodeName": host}}))
    assert seen == {"n1", "n2", "n3"}


@pytest.mark.parametrize("kind", Kind)
def test_every_object_says_whose_it_is_and_is_owned_by_the_secret(kind: Kind) -> None:
    found = rendered(job(*UNEQUAL), kind=kind)
    wanted = {
        "app.kubernetes.io/managed-by": "slurmk",
        "slurmk.org/controller": "lab",
        "slurmk.org/job-id": "42",
        "slurmk.org/restart": "0",
        "slurmk.org/user": "alice",
        "slurmk.org/partition": "main",
        "slurmk.org/account": "physics",
    }
    owned = found.owned("1234")
    assert [{**each, "metadata": {**each["metadata"], "ownerReferences": []}} for each in owned] == [
        {**each, "metadata": {**each["metadata"], "ownerReferences": []}} for each in found.objects
    ]
    for each in (found.secret, *owned):
        assert wanted.items() <= each["metadata"]["labels"].items()
        assert each["metadata"]["annotations"][labels.JOB_NAME] == "train"
        assert each["metadata"]["namespace"] == "slurmk"
    for _, metadata, _ in pod_specs(found):
        assert wanted.items() <= metadata["labels"].items()
    for each in owned:
        [owner] = each["metadata"]["ownerReferences"]
        assert owner == {"apiVersion": "v1", "kind": "Secret", "name": "slurmk-42", "uid": "1234"}


SHARES = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["a", "b", "c", "d"])), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(SHARES, st.sampled_from(Kind))
def test_whatever_the_shares_every_node_has_one_pod_of_its_size(wanted: list[tuple[int, str]], kind: Kind) -> None:
    nodes = {f"n{number}": {"metadata": {"name": host}} for number, (_, host) in enumerate(wanted)}
    found = pod_specs(
        rendered(job(*(share(f"n{number}", cpus) for number, (cpus, _) in enumerate(wanted))), kind=kind, nodes=nodes)
    )
    seen: dict[str, tuple[int, str]] = {}
    for count, metadata, spec in found:
        cpus = int(spec["containers"][0]["resources"]["requests"]["cpu"])
        required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        hosts = [term["matchFields"][0]["values"][0] for term in required["nodeSelectorTerms"]]
        assert len(set(hosts)) == count
        for host in hosts:
            node = slurm_node({"metadata": metadata, "spec": {"nodeName": host}})
            assert node not in seen
            seen[node] = cpus, host
    assert seen == {f"n{number}": each for number, each in enumerate(wanted)}


def test_two_nodes_on_one_host_are_two_templates() -> None:
    nodes = {name: {"metadata": {"name": "big"}} for name in NODES}
    found = pod_specs(rendered(job(share("n1"), share("n2")), kind=Kind.NATIVE_JOB, nodes=nodes))
    assert [(count, metadata["annotations"][labels.NODE]) for count, metadata, _ in found] == [(1, "n1"), (1, "n2")]


def test_a_pod_of_a_user_is_restricted() -> None:
    _, spec = only(rendered(job()))
    [container] = spec["containers"]
    assert spec["securityContext"] == {
        "runAsUser": 1000,
        "runAsGroup": 100,
        "supplementalGroups": [100, 200],
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert spec["automountServiceAccountToken"] is False
    assert all("hostPath" not in volume for volume in spec["volumes"])


def test_root_is_root() -> None:
    _, spec = only(rendered(job(user=0)))
    assert spec["securityContext"] == {"runAsUser": 0, "runAsGroup": 100, "supplementalGroups": [100, 200]}
    assert "securityContext" not in spec["containers"][0]


def test_fractions_of_cpus() -> None:
    _, spec = only(rendered(job(share("n1", 3)), cpu_request="50m"))
    assert spec["containers"][0]["resources"]["requests"]["cpu"] == "150m"


def test_memory_that_is_not_counted_is_not_asked_for() -> None:
    _, spec = only(rendered(job(share("n1", 3, 0))))
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "3"}
    assert {"name": "shm", "emptyDir": {"medium": "Memory"}} in spec["volumes"]


def test_what_slurmk_yaml_says_of_pods() -> None:
    toleration = {"key": "gpu", "operator": "Exists"}
    _, spec = only(
        rendered(
            job(),
            image_pull_policy="Never",
            image_pull_secrets=("registry",),
            scheduler_name="mine",
            service_account="jobs",
            runtime_class="nvidia",
            priority_class="batch",
            tolerations=(toleration,),
            node_selector={"pool": "gpu"},
            environment={"SITE": "here"},
            volumes=(
                {"name": "home", "nfs": {"server": "s", "path": "/home"}, "mountPath": "/home"},
                {"name": "data", "emptyDir": {}, "mounts": [{"mountPath": "/a", "subPath": "a"}, {"mountPath": "/b"}]},
            ),
            pod={"hostNetwork": True, "containers": [{"name": "job", "tty": True}, {"name": "side", "image": "x"}]},
        )
    )
    container, side = spec["containers"]
    assert container["imagePullPolicy"] == "Never"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert (spec["schedulerName"], spec["serviceAccountName"], spec["runtimeClassName"]) == ("mine", "jobs", "nvidia")
    assert (spec["priorityClassName"], spec["tolerations"]) == ("batch", [toleration])
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert {"name": "SITE", "value": "here"} in container["env"]
    assert {"name": "home", "nfs": {"server": "s", "path": "/home"}} in spec["volumes"]
    mounts = [each for each in container["volumeMounts"] if each["name"] in ("home", "data")]
    assert mounts == [
        {"name": "home", "mountPath": "/home"},
        {"name": "data", "mountPath": "/a", "subPath": "a"},
        {"name": "data", "mountPath": "/b"},
    ]
    assert spec["hostNetwork"] is True
    assert container["tty"] is True
    assert container["command"]
    assert side == {"name": "side", "image": "x"}


def test_a_sites_own_shm_is_the_only_one() -> None:
    volume = {"name": "fast", "emptyDir": {"medium": "Memory"}, "mountPath": "/dev/shm"}
    _, spec = only(rendered(job(), volumes=(volume,)))
    assert [each["name"] for each in spec["containers"][0]["volumeMounts"] if each["mountPath"] == "/dev/shm"] == ["fast"]
    assert not [each for each in spec["volumes"] if each["name"] == "shm"]


def test_the_image_is_the_jobs_or_the_partitions() -> None:
    assert image_of(job(request=JobRequest(container="own:1")), PodSettings(image="debian:12")) == "own:1"
    assert image_of(job(), PodSettings(image="debian:12")) == "debian:12"
    with pytest.raises(RenderError, match="--container=IMAGE"):
        image_of(job(), PodSettings())
    with pytest.raises(RenderError, match="--container=/bundle: jobs run in images from a registry"):
        image_of(job(request=JobRequest(container="/bundle")), PodSettings(image="debian:12"))


def test_deadlines_leave_room_for_longer_limits() -> None:
    site = replace(SITE, kill_wait=30, over_time_limit=0)
    assert deadline_of(job(time_limit=10), site) == 3600 + 600 + 86400 + 30 + 60
    short = replace(site, partitions=(Partition("main", NODES, maximum_time=120),))
    assert deadline_of(job(time_limit=10, over_time_limit=1), short) == 3600 + 7200 + 60 + 30 + 60
    assert deadline_of(job(time_limit=INFINITE), site) is None
    _, spec = only(rendered(job(time_limit=INFINITE)))
    assert "activeDeadlineSeconds" not in spec


def test_the_secret_has_the_script_and_no_other_object_has_it() -> None:
    found = rendered(job())
    assert found.secret["type"] == "Opaque"
    assert base64.b64decode(found.secret["data"]["place"])
    assert "/home/alice" not in json.dumps(found.objects)


def test_a_job_that_no_secret_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.kubernetes.render.secret_data", lambda *_: {"description": b"x" * (1 << 20), "place": b"y"})
    with pytest.raises(RenderError, match="1048577 bytes"):
        rendered(job())


def test_no_text_of_a_user_can_change_what_is_made() -> None:
    evil = 'x"\n  hostNetwork: true\n---\napiVersion: v1\nkind: Secret # {{ 7 * 7 }} \x00\x1b\udc80\u2028\ufeff'
    plain = rendered(job())
    found = rendered(job(name=evil, account=evil), image=evil, labels={"a": evil}, environment={"b": evil})
    assert [each["kind"] for each in found.objects] == ["Pod"]
    metadata, spec = only(found)
    assert set(spec) == set(only(plain)[1])
    clean = evil.replace("\udc80", "\ufffd")
    assert spec["containers"][0]["image"] == clean
    assert metadata["annotations"][labels.JOB_NAME] == clean


def test_names_that_no_label_can_say() -> None:
    found = rendered(job(account="a/b c_" + "x" * 80))
    value = found.secret["metadata"]["labels"][labels.ACCOUNT]
    assert value.startswith("a_b_c_x")
    assert len(value) == 63


def test_host_names() -> None:
    odd = rendering.share("Node_1.example")
    nodes = {"Node_1.example": {"metadata": {"name": "k1"}}}
    _, spec = only(rendered(job(odd), nodes=nodes))
    assert spec["hostname"] == "node-1-example"


def test_laying_settings_over_a_pod() -> None:
    base = {"a": {"b": 1, "c": 2}, "list": [{"name": "x", "v": 1}, {"name": "y", "v": 2}], "plain": [1]}
    over = {"a": {"c": None, "d": 3}, "list": [{"name": "y", "v": 3}, {"name": "z"}], "plain": [2], "new": True}
    assert merge(base, over) == {
        "a": {"b": 1, "d": 3},
        "list": [{"name": "x", "v": 1}, {"name": "y", "v": 3}, {"name": "z"}],
        "plain": [2],
        "new": True,
    }
