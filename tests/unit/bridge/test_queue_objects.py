"""Queue objects by partitions, accounts and QOS: what there should be, and that amounts add up."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from queue_site import ACCOUNTS, NODES, SITE, pods, settings

from bridge.kubernetes.queues.accounts import ROOT, Account, Accounts, limits_as_quotas, read_accounts
from bridge.kubernetes.queues.apply import wanted_objects
from bridge.kubernetes.queues.jobs import JobQueues
from bridge.kubernetes.queues.kueue import QueueError, flavors_of, kueue_objects
from bridge.kubernetes.queues.names import object_name
from bridge.kubernetes.queues.portions import portions
from bridge.kubernetes.queues.supply import amount_of, amount_used, quantity, supply_of
from bridge.kubernetes.queues.volcano import job_queue
from bridge.kubernetes.resources import Manifest
from bridge.kubernetes.settings import PartitionSettings, PodSettings, QueueSystem, Settings
from grammar.errors import GrammarError
from slurmk.core.priority import QosPreemption
from slurmk.daemon.queues import directory_of
from slurmk.model.job import Allocation, Credentials, Job, JobRequest
from slurmk.model.states import INFINITE

Objects = dict[tuple[str, str], Manifest]


def made(system: QueueSystem = QueueSystem.KUEUE, site: Any = SITE, **more: Any) -> Objects:
    given = settings(**more)
    wanted = wanted_objects(site, given, pods(system), NODES)
    return {(each["kind"], each["metadata"]["name"]): each for each in wanted}


def quotas(queue: Manifest) -> dict[tuple[str, str], tuple[str, str | None]]:
    """(nominal, borrowing limit) by flavor and resource."""
    return {
        (flavor["name"], each["name"]): (each["nominalQuota"], each.get("borrowingLimit"))
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        for each in flavor["resources"]
    }


# ------------------------------------------------------------------------------------------ Kueue


def test_without_accounts_one_queue_has_what_the_nodes_have() -> None:
    objects = made()
    assert [kind for kind, _ in objects] == ["ResourceFlavor", "ResourceFlavor", "ClusterQueue", "LocalQueue"]
    queue = objects["ClusterQueue", "hpc"]
    assert "cohortName" not in queue["spec"]
    assert quotas(queue) == {
        ("hpc-cpu", "cpu"): ("128", None),
        ("hpc-cpu", "memory"): ("512Gi", None),
        ("hpc-cpu", "nvidia.com/gpu"): ("0", None),
        ("hpc-cpu", "nvidia.com/mig-1g.5gb"): ("0", None),
        ("hpc-gpu", "cpu"): ("16", None),
        ("hpc-gpu", "memory"): ("128Gi", None),
        ("hpc-gpu", "nvidia.com/gpu"): ("16", None),
        ("hpc-gpu", "nvidia.com/mig-1g.5gb"): ("4", None),
    }
    assert objects["ResourceFlavor", "hpc-gpu"]["spec"] == {"nodeLabels": {"pool": "gpu"}}
    assert objects["LocalQueue", "hpc"]["metadata"]["namespace"] == "slurmk"
    for each in objects.values():
        assert each["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "slurmk", "slurmk.org/controller": "hpc"}


def test_accounts_are_a_tree_whose_limits_are_quota_and_borrowing_limit() -> None:
    objects = made(accounts=ACCOUNTS)
    cohorts = {name: each["spec"].get("parentName") for (kind, name), each in objects.items() if kind == "Cohort"}
    assert cohorts == {"hpc": None, "hpc-physics": "hpc"}
    queues = {name: each["spec"]["cohortName"] for (kind, name), each in objects.items() if kind == "ClusterQueue"}
    assert queues == {"hpc": "hpc", "hpc-physics": "hpc-physics", "hpc-theory": "hpc-physics", "hpc-chem": "hpc"}
    theory, chem = quotas(objects["ClusterQueue", "hpc-theory"]), quotas(objects["ClusterQueue", "hpc-chem"])
    assert theory["hpc-cpu", "cpu"] == ("64", None)  # all that physics may have
    assert chem["hpc-cpu", "cpu"] == ("64", None)
    assert chem["hpc-gpu", "nvidia.com/gpu"] == ("4", "0")
    assert theory["hpc-gpu", "nvidia.com/gpu"] == ("12", None)
    limit = quotas(objects["Cohort", "hpc-physics"])
    assert limit["hpc-cpu", "cpu"] == ("0", "0")
    assert limit["hpc-gpu", "cpu"] == ("0", "53334m")  # up to 64 where it has two thirds of 16
    assert objects["Cohort", "hpc-physics"]["spec"]["fairSharing"] == {"weight": "2"}
    local = {name for kind, name in objects if kind == "LocalQueue"}
    assert local == {"hpc", "hpc-physics", "hpc-theory", "hpc-chem"}


def test_root_may_be_in_somebody_elses_cohort() -> None:
    objects = made(accounts={"root": {"cohort": "research", "GrpTRES": "cpu=100"}})
    queue = objects["ClusterQueue", "hpc"]
    assert queue["spec"]["cohortName"] == "research"
    assert quotas(queue)["hpc-cpu", "cpu"] == ("100", "0")
    assert quotas(queue)["hpc-cpu", "memory"] == ("512Gi", None)


def test_an_account_has_only_its_partitions() -> None:
    objects = made(accounts={"chem": {"partitions": ["cpu"]}, "lab": {"parent": "chem"}})
    for name in ("hpc-chem", "hpc-lab"):
        assert {flavor for flavor, _ in quotas(objects["ClusterQueue", name])} == {"hpc-cpu"}
    assert quotas(objects["ClusterQueue", "hpc"])["hpc-gpu", "nvidia.com/gpu"] == ("16", None)


def test_qos_and_topology_and_preemption() -> None:
    site = replace(SITE, preempt_type="preempt/qos", preempt_mode="REQUEUE")
    objects = made(site=site, qos={"high": {"priority": 1000}}, switches=("block", "rack"))
    assert objects["WorkloadPriorityClass", "hpc-high"]["value"] == 1000
    levels = objects["Topology", "hpc"]["spec"]["levels"]
    assert [level["nodeLabel"] for level in levels] == ["block", "rack", "kubernetes.io/hostname"]
    preemption = objects["ClusterQueue", "hpc"]["spec"]["preemption"]
    assert preemption == {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"}
    assert made()["ClusterQueue", "hpc"]["spec"]["preemption"]["withinClusterQueue"] == "Never"


def test_flavors_that_labels_do_not_tell_apart_have_taints() -> None:
    partitions = (PartitionSettings("all", ""), PartitionSettings("gpu", "pool=gpu,!spot"), PartitionSettings("conf"))
    given = Settings(partitions=partitions)
    queued = {name: PodSettings(queue_system=QueueSystem.KUEUE) for name in ("all", "gpu", "conf")}
    flavors = flavors_of("hpc", given, queued)
    assert {name: (dict(each.node_labels), each.tainted) for name, each in flavors.items()} == {
        "all": ({}, True),
        "gpu": ({"pool": "gpu"}, True),
        "conf": ({}, True),
    }
    assert not any(each.tainted for each in flavors_of("hpc", given, {"gpu": queued["gpu"]}).values())
    nested = Settings(partitions=(PartitionSettings("gpu", "pool=gpu"), PartitionSettings("fast", "pool=gpu,disk=fast")))
    assert all(each.tainted for each in flavors_of("hpc", nested, {"gpu": queued["gpu"], "fast": queued["gpu"]}).values())
    assert not any(each.tainted for each in flavors_of("hpc", settings(), pods()).values())
    assert not flavors_of("hpc", given, {"gpu": PodSettings(queue_system=QueueSystem.KUEUE, queue="own")})


def test_partitions_beyond_what_a_queue_takes_are_refused() -> None:
    names = [f"p{number}" for number in range(65)]
    queued = {name: PodSettings(queue_system=QueueSystem.KUEUE) for name in names}
    site = replace(SITE, partitions=tuple(replace(SITE.partitions[0], name=name) for name in names))
    supply = supply_of(site.partitions, NODES, Settings().gres)
    with pytest.raises(QueueError, match="64 partitions"):
        kueue_objects("hpc", Settings(), queued, read_accounts(Settings()), supply)


# ------------------------------------------------------------------------------------------ Volcano


def test_volcano_queues_are_a_tree_with_capability_and_deserved() -> None:
    objects = made(QueueSystem.VOLCANO, accounts=ACCOUNTS, qos={"high": {"priority": 7}})
    queues = {name: each["spec"] for (kind, name), each in objects.items() if kind == "Queue"}
    parents = {name: spec["parent"] for name, spec in queues.items()}
    assert parents == {
        "hpc": "root",
        "hpc.jobs": "hpc",
        "hpc-physics": "hpc",
        "hpc-physics.jobs": "hpc-physics",
        "hpc-theory": "hpc-physics",
        "hpc-chem": "hpc",
    }
    assert queues["hpc-physics"]["capability"] == {"cpu": "64"}
    assert queues["hpc-theory"]["capability"] == {"cpu": "64"}  # not above its parent's
    assert queues["hpc-chem"]["capability"] == {"nvidia.com/gpu": "4", "nvidia.com/mig-1g.5gb": "4"}
    assert queues["hpc-physics"]["weight"] == 2
    assert objects["PriorityClass", "hpc-high"]["preemptionPolicy"] == "Never"
    for parent in ("hpc", "hpc-physics"):
        below = [spec["deserved"] for spec in queues.values() if spec["parent"] == parent]
        for resource, text in queues[parent]["deserved"].items():
            assert sum(amount_of(resource, each[resource]) for each in below) == amount_of(resource, text)


def test_a_node_of_several_partitions_counts_once_for_volcano() -> None:
    twice = (*SITE.partitions, replace(SITE.partitions[0], name="again", default=False))
    supply = supply_of(twice, NODES, Settings().gres)
    assert supply.total(["cpu", "again"]) == supply.total(["cpu"]) == {"cpu": 4 * 32_000, "memory": 4 * 128 * 1024}
    assert supply.total(["cpu", "again", "gpu"])["cpu"] == 4 * 32_000 + 2 * 8_000


def test_switches_are_hyper_nodes() -> None:
    objects = made(QueueSystem.VOLCANO)
    leaf, top = objects["HyperNode", "hpc-leaf1"]["spec"], objects["HyperNode", "hpc-top"]["spec"]
    assert leaf["tier"] == 1
    assert [member["selector"]["exactMatch"]["name"] for member in leaf["members"]] == ["host-c1", "host-c2"]
    assert top["tier"] == 2
    assert [member["type"] for member in top["members"]] == ["HyperNode", "HyperNode"]


def test_jobs_go_to_queues_without_others_below_them() -> None:
    accounts = read_accounts(settings(accounts=ACCOUNTS))
    names = [job_queue("hpc", accounts, account) for account in ("root", "", "physics", "theory", "unknown")]
    assert names == ["hpc.jobs", "hpc.jobs", "hpc-physics.jobs", "hpc-theory", "hpc.jobs"]
    assert job_queue("hpc", read_accounts(settings()), "any") == "hpc"


# ------------------------------------------------------------------------------------------ what jobs bear


def a_job(**more: Any) -> Job:
    allocation = Allocation("cpu", ())
    job = Job(1, JobRequest(), Credentials(1000, 100, "alice", "users"), 0, account="theory", allocation=allocation)
    return replace(job, **{"time_limit": 10, **more})


def queues_of(system: QueueSystem, given: Settings, **more: Any) -> JobQueues:
    return JobQueues(lambda: SITE, lambda _, name: pods(system, **more)[name])


def test_a_job_bears_its_queue_priority_and_longest_time_for_kueue() -> None:
    given = settings(accounts=ACCOUNTS, qos={"high": {}})
    queues = queues_of(QueueSystem.KUEUE, given)
    found = queues.labels(a_job(qos="high"), given)
    assert found.pop("kueue.x-k8s.io/max-exec-time-seconds").isdigit()
    assert found == {"kueue.x-k8s.io/queue-name": "hpc-theory", "kueue.x-k8s.io/priority-class": "hpc-high"}
    assert queues.labels(a_job(account="other", time_limit=INFINITE), given) == {"kueue.x-k8s.io/queue-name": "hpc"}
    assert queues.pods_of(given, "cpu").node_selector == {"pool": "cpu"}
    own = queues_of(QueueSystem.KUEUE, given, queue="lab")
    assert own.labels(a_job(time_limit=INFINITE), given) == {"kueue.x-k8s.io/queue-name": "lab"}
    assert own.pods_of(given, "cpu").node_selector == {}


def test_pods_tolerate_the_taint_of_their_own_flavor() -> None:
    given = Settings(partitions=(PartitionSettings("cpu"), PartitionSettings("gpu")))
    [toleration] = queues_of(QueueSystem.KUEUE, given).pods_of(given, "gpu").tolerations
    [taint] = made_flavor(given, "hpc-gpu")["spec"]["nodeTaints"]
    assert toleration == {**taint, "operator": "Equal"}
    assert taint["value"] == "gpu"


def made_flavor(given: Settings, name: str) -> Manifest:
    wanted = wanted_objects(SITE, given, pods(), NODES)
    return next(each for each in wanted if each["kind"] == "ResourceFlavor" and each["metadata"]["name"] == name)


def test_outside_of_kueue_qos_are_priority_classes_of_pods() -> None:
    given = settings(qos={"high": {}}, accounts=ACCOUNTS)
    assert queues_of(QueueSystem.NONE, given).labels(a_job(qos="high"), given) == {"priorityClassName": "hpc-high"}
    assert queues_of(QueueSystem.NONE, given).labels(a_job(), given) == {}
    volcano = queues_of(QueueSystem.VOLCANO, given).labels(a_job(), given)
    assert volcano == {"scheduling.volcano.sh/queue-name": "hpc-theory"}


# ------------------------------------------------------------------------------------------ accounts, names, amounts


@pytest.mark.parametrize(
    ("accounts", "message"),
    [
        ({"a": {"parent": "b"}}, "accounts.a.parent: there is no account b"),
        ({"a": {"parent": "b"}, "b": {"parent": "a"}}, "accounts.a.parent: the account is below itself"),
        ({"a": {"GrpTres": "cpu=x"}}, "accounts.a.GrpTres: Invalid Trackable RESource (TRES) specification"),
        ({"a": {"GrpTRES": "billing=3"}}, "accounts.a.GrpTRES: billing cannot be limited: cpu, mem, node and gres/NAME"),
        ({"a": {"fairshares": 3}}, "accounts.a.fairshares: unknown key; fairshare?"),
        ({"a": {"fairshare": 0}}, "accounts.a.fairshare: expected a whole number from 1"),
        ({"a": {"fairshare": True}}, "accounts.a.fairshare: expected a whole number from 1"),
        ({"a": {"users": "alice"}}, "accounts.a.users: expected a list of names"),
        ({"a": {"cohort": "x"}}, "accounts.a.cohort: only root can be in another cohort"),
        ({"root": {"parent": "x"}}, "accounts.root.parent: root has no parent"),
        ({"a": 7}, "accounts.a: expected keys and values"),
    ],
)
def test_mistakes_in_accounts_are_told_with_their_key(accounts: Any, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        read_accounts(Settings(accounts=accounts))
    assert str(caught.value).startswith(message)


def test_limits_of_accounts_and_qos_bind_in_all_partitions_together() -> None:
    accounts = read_accounts(settings(accounts=ACCOUNTS, qos={"high": {"GrpJobs": 2}}))
    found = {quota.name: quota for quota in limits_as_quotas(accounts)}
    assert list(found) == ["account physics", "account chem", "QOS high"]
    physics = found["account physics"]
    assert [physics.counts("any", account, "normal", 1) for account in ("physics", "theory", "chem")] == [True, True, False]
    assert [(limit.resource, limit.total) for limit in physics.limits] == [("cpu", 64000)]
    assert found["QOS high"].reason(found["QOS high"].limits[0]) == "QOSGrpJobsLimit"


def test_which_qos_gives_way_to_which_and_how() -> None:
    qos = {
        "high": {"preempt": ["low", "normal"]},
        "low": {"PreemptMode": "requeue", "GraceTime": 60, "PreemptExemptTime": 300},
        "kept": {"PreemptMode": "cluster"},
    }
    found = directory_of(read_accounts(settings(qos=qos))).preemption
    assert found["high"] == QosPreemption(("low", "normal"))
    assert found["low"] == QosPreemption((), "REQUEUE", 60, 300)
    assert found["kept"] == found["normal"] == QosPreemption()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"Preempt": ["nosuch"]}, "qos.high.Preempt: there is no QOS nosuch"),
        ({"Preempt": "low"}, "qos.high.Preempt: expected a list of names"),
        ({"PreemptMode": "kill"}, "qos.high.PreemptMode: expected one of CLUSTER, CANCEL, REQUEUE, SUSPEND, OFF"),
        ({"GraceTime": "1m"}, "qos.high.GraceTime: expected a whole number"),
    ],
)
def test_what_is_wrong_with_preemption_is_told(said: dict[str, Any], message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        read_accounts(Settings(qos={"high": said}))
    assert str(caught.value).startswith(message)


def test_users_may_charge_what_names_them() -> None:
    assert read_accounts(settings(accounts=ACCOUNTS)).users() == {"alice": ("chem",)}
    assert read_accounts(settings()).users() is None


@given(st.lists(st.text(min_size=1, max_size=80), min_size=2, max_size=2, unique=True))
def test_names_can_be_given_to_objects_and_differ(parts: list[str]) -> None:
    import re

    names = [object_name("hpc", part) for part in parts]
    assert names[0] != names[1]
    for name in names:
        assert len(name) <= 63
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)


def test_plain_names_stay_as_they_are() -> None:
    assert object_name("hpc", "physics") == "hpc-physics"


@st.composite
def trees(draw: Callable[..., Any]) -> tuple[Accounts, dict[str, int | None]]:
    names = [ROOT, *(f"a{number}" for number in range(draw(st.integers(0, 6))))]
    accounts = {ROOT: Account(ROOT, "")}
    for number, name in enumerate(names[1:]):
        accounts[name] = Account(name, draw(st.sampled_from(names[: number + 1])), draw(st.integers(1, 5)))
    ceilings = {name: draw(st.none() | st.integers(0, 100)) for name in names}
    return Accounts(accounts, {}), ceilings


@given(trees(), st.integers(0, 1000))
def test_portions_add_up_and_stay_below_limits(case: tuple[Accounts, dict[str, int | None]], amount: int) -> None:
    accounts, ceilings = case
    found = portions(accounts, amount, lambda account: ceilings[account.name])
    most = ceilings[ROOT]
    assert found[ROOT].subtree == (amount if most is None else min(amount, most))
    for name, portion in found.items():
        children = [found[child.name] for child in accounts.children(name)]
        assert portion.own + sum(child.subtree for child in children) == portion.subtree
        assert portion.own >= 0
        limit = ceilings[name]
        assert limit is None or portion.subtree <= limit
        if portion.own and children:  # only what no child may have stays
            assert all(child.ceiling == child.subtree for child in children)


def test_portions_are_by_shares() -> None:
    accounts = read_accounts(settings(accounts={"a": {"fairshare": 2}, "b": {}, "c": {"GrpTRES": "cpu=10"}}))
    found = portions(accounts, 130, lambda account: {"c": 10}.get(account.name))
    assert {name: portion.subtree for name, portion in found.items()} == {"root": 130, "a": 80, "b": 40, "c": 10}


def test_amounts_are_rounded_to_the_safe_side() -> None:
    assert amount_of("memory", "1500Ki") == 1
    assert amount_used("memory", "1500Ki") == 2
    assert amount_of("cpu", "1.5") == amount_used("cpu", "1500m") == 1500
    assert amount_of("nvidia.com/gpu", "nonsense") == 0
    assert [quantity("memory", amount) for amount in (0, 512, 2048)] == ["0", "512Mi", "2Gi"]


def test_devices_that_are_another_resource_do_not_count() -> None:
    supply = supply_of(SITE.partitions, NODES, Settings().gres)
    limit = supply.limit_of("nvidia.com/gpu", 8, 1)
    assert limit is not None
    assert (limit.resource, limit.left, limit.without) == ("gres/gpu", 7, ("gpu:1g.5gb",))
    slices = supply.limit_of("nvidia.com/mig-1g.5gb", 4, 0)
    assert slices is not None
    assert slices.without == ("gpu:a100-sxm4-80gb",)
    assert supply.limit_of("example.com/fpga", 1, 0) is None


# ------------------------------------------------------------------------------------------ schemas


@pytest.mark.parametrize("system", [QueueSystem.KUEUE, QueueSystem.VOLCANO])
def test_objects_are_as_their_schemas_say(system: QueueSystem) -> None:
    folder = os.environ.get("SLURMK_CRDS", "")
    if not os.path.isdir(folder):
        pytest.skip("needs the projects' CustomResourceDefinitions: SLURMK_CRDS=FOLDER")
    schemas = {}
    for path in Path(folder).rglob("*.yaml"):
        for document in yaml.load_all(path.read_bytes(), yaml.CSafeLoader):
            if document and document.get("kind") == "CustomResourceDefinition":
                spec = document["spec"]
                for version in spec["versions"]:
                    key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                    schemas[key] = version["schema"]["openAPIV3Schema"]
    objects = made(system, accounts=ACCOUNTS, qos={"high": {"priority": 1}}, switches=("rack",))
    checked = set()
    for each in objects.values():
        schema = schemas.get((each["apiVersion"], each["kind"]))
        if schema is not None:
            jsonschema.Draft202012Validator(_open(schema)).validate(each)
            checked.add(each["kind"])
    assert checked == (
        {"Topology", "ResourceFlavor", "WorkloadPriorityClass", "Cohort", "ClusterQueue", "LocalQueue"}
        if system is QueueSystem.KUEUE
        else {"Queue", "HyperNode"}
    )


def _open(schema: Any) -> Any:
    """Quantities are said to be integers or strings by an extension; unknown fields are an error."""
    if isinstance(schema, list):
        return [_open(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _open(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "apiVersion" not in schema["properties"]:
        found.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        found.pop("type", None)
    return found
