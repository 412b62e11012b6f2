"""Wrong values in slurm.conf and the files beside it: each is refused, told of, or passed over as Slurm's controller does,
which was started with each of them (tests/reference/recorded/configurations.json)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from grammar.errors import GrammarError
from slurmk.model.configuration import load_site

RECORDED = Path(__file__).parents[2] / "reference" / "recorded" / "configurations.json"
CASES: dict[str, Mapping[str, object]] = json.loads(RECORDED.read_text())

WHERE = re.compile(r'/c/\w+\.conf(?: line \d+)?: ["\w]')
"""A message begins with file, line and key; what no line says has none."""

OTHER: dict[str, tuple[str, str]] = {
    "SlurmctldPort=99999999999": ("fatal", "the reference goes on with another number"),
    "PreemptExemptTime=-5": ("fatal", "the reference goes on with 136 years"),
    "CpuFreqDef=nosuch": ("nothing", "frequencies are not set"),
    "CpuFreqGovernors=nosuch": ("nothing", "frequencies are not set"),
    "HttpParserType=nosuch": ("nothing", "there is no such plugin to be found or not"),
    "UrlParserType=nosuch": ("nothing", "there is no such plugin to be found or not"),
    "JobSubmitPlugins=nosuch": ("told", "sites have plugins of their own, which are not run here"),
    "NodeFeaturesPlugins=nosuch": ("told", "sites have plugins of their own, which are not run here"),
    "PrEpPlugins=nosuch": ("told", "sites have plugins of their own, which are not run here"),
    "PrioritySiteFactorPlugin=nosuch": ("told", "sites have plugins of their own, which are not run here"),
    "PluginDir=nosuch": ("nothing", "there are no plugins to be found"),
    "SuspendExcNodes=nosuch": ("nothing", "nodes are not powered down"),
    "SuspendExcParts=nosuch": ("nothing", "nodes are not powered down"),
    "include missing": ("fatal", "the reference waits a minute for the file before it gives up"),
    "include dir": ("fatal", "the reference reads a directory as an empty file"),
    "no quotes closed": ("fatal", "the reference takes the rest of the line as the value"),
    "node: gres without GresTypes": ("told", "the reference has no GRES then either, and says nothing"),
    "node: gres empty name": ("fatal", "it is no GRES, whatever GresTypes says"),
    "node: gres too many parts": ("fatal", "the reference cuts it"),
    "node: state ALLOCATED": ("fatal", "no configuration can say that"),
    "node: none": ("fatal", "without MaxNodeCount nothing could be started there, ever"),
    "partition: OverTimeLimit=abc": ("fatal", "the reference takes it for 0"),
    "partition: AllowQos=nosuch": ("nothing", "the database tells which QOS there are"),
    "partition: DenyQos=nosuch": ("nothing", "the database tells which QOS there are"),
    "partition: AllowQos=normal DenyQos=normal": ("told", "the database tells which QOS there are"),
    "partition: QOS=nosuch": ("nothing", "the database tells which QOS there are"),
    "partition: AllowGroups=nosuchgroup": ("nothing", "groups are looked up when jobs come"),
    "partition: Alternate=nosuch": ("told", "the reference says nothing"),
    "partition: Topology=nosuch": ("nothing", "partitions are all of one topology"),
    "gres.conf: no name": ("fatal", "nodes read it there, and do not start"),
    "gres.conf: count bad": ("fatal", "nodes read it there, and do not start"),
    "gres.conf: unknown key": ("fatal", "nodes read it there, and do not start"),
    "gres.conf: garbage": ("fatal", "nodes read it there, and do not start"),
    "AccountingStorageTRES=gres/nosuch": ("nothing", "the database is always there"),
    "RequeueExit=1-": ("told", "the reference takes it for 1"),
    "SlurmctldHost none": ("nothing", "the controller is where it is started"),
}
"""Where the answer is another one on purpose, and why."""


def answer(files: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """How the files are taken, and what is said of them."""
    try:
        site = load_site(lambda path: files.get(path.removeprefix("/c/")), "/c")
    except GrammarError as error:
        return "fatal", (str(error),)
    return ("told" if site.warnings else "nothing"), site.warnings


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_value_is_answered_as_by_the_reference(name: str) -> None:
    files = CASES[name]["files"]
    assert isinstance(files, dict)
    taken, said = answer(files)
    expected = OTHER[name][0] if name in OTHER else CASES[name]["answer"]
    assert taken == expected, said
    for text in said:
        assert "\n" not in text
        assert WHERE.match(text), text
        assert text.startswith(("/c/slurm.conf: ", "/c/topology.conf: ")) or " line " in text, text


def test_what_differs_is_listed_because_it_does() -> None:
    assert set(OTHER) <= set(CASES)
    assert not [name for name, (taken, _) in OTHER.items() if taken == CASES[name]["answer"]]
    assert len(OTHER) < len(CASES) / 15


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("MinJobAge=1", "minimum_job_age", 2),
        ("SchedulerParameters=bf_window=abc,bf_max_job_test=5", "scheduler_parameters", {"bf_max_job_test": "5"}),
        ("KillWait=0x10", "kill_wait", 16),
        ("KillWait=020", "kill_wait", 16),
        ("KillWait=3\nKillWait=4", "kill_wait", 4),
        ("DefMemPerCPU=5\nDefMemPerNode=7", "default_memory_per_cpu", None),
        ("MaxArraySize=5000000", "maximum_array_size", 4000001),
    ],
)
def test_what_counts_in_place_of_a_wrong_value(line: str, key: str, value: object) -> None:
    text = f"ClusterName=c\n{line}\nNodeName=n1 CPUs=8\nPartitionName=p Nodes=n1\n"
    assert getattr(load_site({"/c/slurm.conf": text}.get, "/c"), key) == value


def test_the_value_that_was_said_is_shown() -> None:
    text = "ClusterName=c\nSchedulerParameters=bf_window=abc\nMinJobAge=1\nNodeName=n1\nPartitionName=p Nodes=n1\n"
    shown = load_site({"/c/slurm.conf": text}.get, "/c").parameters
    assert (shown["SchedulerParameters"], shown["MinJobAge"]) == ("bf_window=abc", "2 sec")


@pytest.mark.parametrize("key", ["SlurmUser", "SlurmdUser"])
def test_users_that_there_are_not(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(user: str, *, here: bool = True) -> tuple[str, ...]:
        text = f"ClusterName=c\n{key}={user}\nNodeName=n1\nPartitionName=p Nodes=n1\n"
        return load_site({"/c/slurm.conf": text}.get, "/c", nodes_required=here).warnings

    def unknown(name: str) -> None:
        raise KeyError(name)

    for user in ("nobodyx", "4123456789", "99999999999999999999", "ROOT"):
        with pytest.raises(GrammarError, match=f"^/c/slurm.conf line 2: {key}: Invalid user for {key} {user}$"):
            load(user)
        assert load(user, here=False) == ()
    assert load("root") == load("0") == ()
    monkeypatch.setattr("pwd.getpwnam", unknown)
    assert load("slurm") == (f"/c/slurm.conf line 2: {key}: Invalid user for {key} slurm",)


def test_gres_that_no_type_names_are_not_there() -> None:
    text = "ClusterName=c\nGresTypes=gpu\nNodeName=n1 CPUs=8 Gres=gpu:2,fpga:1\nPartitionName=p Nodes=n1\n"
    site = load_site({"/c/slurm.conf": text}.get, "/c")
    assert [gres.name for gres in site.nodes[0].gres] == ["gpu"]
    assert "GresTypes does not name fpga" in site.warnings[0]


def test_switches_do_without_nodes_that_are_not_known() -> None:
    files = {
        "/c/slurm.conf": "ClusterName=c\nTopologyPlugin=topology/tree\nNodeName=n1 CPUs=8\nPartitionName=p Nodes=n1\n",
        "/c/topology.conf": "SwitchName=s Nodes=n1,x9\n",
    }
    site = load_site(files.get, "/c")
    assert site.switches[0].nodes == ("n1",)
    assert site.warnings == ("/c/topology.conf line 1: Nodes: Invalid hostnames in switch configuration: x9",)
