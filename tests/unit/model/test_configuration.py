"""From slurm.conf, gres.conf and topology.conf to a Site. Error words are slurmctld's of Slurm 26.05."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar.errors import GrammarError
from grammar.hostlist import expand
from slurmk.model.configuration import load_site, machine_site
from slurmk.model.node import GresCapacity
from slurmk.model.site import Site, Switch
from slurmk.model.states import INFINITE, NodeFlag, NodeState

BASE = """\
ClusterName=probe
SlurmctldHost=localhost
NodeName=n[1-4] NodeAddr=127.0.0.1 Port=[7001-7004] CPUs=4 RealMemory=1000
PartitionName=main Nodes=n[1-4] Default=YES
"""
FIRST = BASE.count("\n") + 1


def load(text: str, base: str = BASE, **files: str) -> Site:
    contents = {"/etc/slurm.conf": base + text} | {f"/etc/{name.replace('_', '.')}": value for name, value in files.items()}
    return load_site(contents.get, "/etc")


def test_what_a_plain_configuration_means() -> None:
    site = load(
        "KillWait=5\nLicenses=matlab:4,ansys\nPriorityWeightAge=1000\nSchedulerParameters=bf_interval=2,defer\nMaxNodeCount=9\n"
    )
    assert site.cluster_name == "probe"
    assert [node.name for node in site.nodes] == ["n1", "n2", "n3", "n4"]
    assert [node.port for node in site.nodes] == [7001, 7002, 7003, 7004]
    node = site.nodes[0]
    assert (node.cpus, node.sockets, node.cores_per_socket, node.memory) == (4, 4, 1, 1000)
    assert (node.address, node.host_name) == ("127.0.0.1", "n1")
    assert site.kill_wait == 5
    assert site.licenses == {"matlab": 4, "ansys": 1}
    assert site.priority_weights["age"] == 1000
    assert site.scheduler_parameters == {"bf_interval": "2", "defer": ""}
    assert site.parameters["KillWait"] == "5 sec"
    assert site.parameters["MinJobAge"] == "300 sec"
    assert site.unused_keys == ("SlurmctldHost",)
    partition = site.default_partition
    assert partition is not None
    assert (partition.name, partition.nodes, partition.maximum_time) == ("main", ("n1", "n2", "n3", "n4"), INFINITE)


def test_keys_in_any_case_comments_quotes_and_continued_lines() -> None:
    site = load('killwait="7"   # seconds\n#MinJobAge=1\nNODENAME=m1 \\\n  cpus=2 \\\n  REALMEMORY=50\n')
    assert site.kill_wait == 7
    assert site.minimum_job_age == 300
    assert next(node for node in site.nodes if node.name == "m1").memory == 50


def test_defaults_hold_for_later_records_only() -> None:
    site = load(
        "NodeName=a CPUs=1\nNodeName=DEFAULT CPUs=8 Feature=x\nNodeName=DEFAULT RealMemory=7\nNodeName=b\nNodeName=c CPUs=2\n"
        "PartitionName=DEFAULT MaxTime=30 State=DOWN\nPartitionName=p Nodes=a\nPartitionName=q,r Nodes=b State=UP\n"
    )
    found = {node.name: (node.cpus, node.memory, node.features) for node in site.nodes}
    assert found["a"] == (1, 1, ())
    assert found["b"] == (8, 7, ("x",))
    assert found["c"] == (2, 7, ("x",))
    assert [(each.name, each.maximum_time, each.state) for each in site.partitions[1:]] == [
        ("p", 30, "DOWN"),
        ("q", 30, "UP"),
        ("r", 30, "UP"),
    ]


def test_include() -> None:
    site = load("Include more.conf\nKillWait=4\n", more_conf="MinJobAge=9\n")
    assert (site.minimum_job_age, site.kill_wait) == (9, 4)
    with pytest.raises(GrammarError, match="include each other"):
        load("Include loop.conf\n", loop_conf="include loop.conf\n")


@pytest.mark.parametrize(
    ("record", "cpus", "sockets", "cores", "threads"),
    [
        ("CPUs=4", 4, 4, 1, 1),
        ("Sockets=2 CoresPerSocket=16 ThreadsPerCore=2", 64, 2, 16, 2),
        ("CPUs=32 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2", 32, 2, 16, 2),
        ("CPUs=3 Sockets=2 CoresPerSocket=2", 4, 2, 2, 1),
        ("CPUs=16 CoresPerSocket=4", 16, 4, 4, 1),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=3", 12, 4, 3, 1),
        ("", 1, 1, 1, 1),
    ],
)
def test_shape_of_a_node(record: str, cpus: int, sockets: int, cores: int, threads: int) -> None:
    node = next(node for node in load(f"NodeName=x {record}\n").nodes if node.name == "x")
    assert (node.cpus, node.sockets, node.cores_per_socket, node.threads_per_core) == (cpus, sockets, cores, threads)


def test_gres_with_device_files() -> None:
    site = load(
        "GresTypes=gpu,nic\nNodeName=g[1-2] CPUs=8 Gres=gpu:a100:2,gpu:v100:1,nic:1K\n",
        gres_conf="AutoDetect=off\nNodeName=g1 Name=gpu Type=a100 File=/dev/nvidia[0-1]\n"
        "Name=gpu Type=v100 File=/dev/nvidia2\n",
    )
    first, second = (node for node in site.nodes if node.name.startswith("g"))
    assert first.gres == (
        GresCapacity("gpu", "a100", 2, ("/dev/nvidia0", "/dev/nvidia1")),
        GresCapacity("gpu", "v100", 1, ("/dev/nvidia2",)),
        GresCapacity("nic", "", 1024),
    )
    assert second.gres[0].files == ()


def test_parts_of_gpus_are_of_their_types() -> None:
    site = load(
        "GresTypes=gpu,mps,shard\nNodeName=g1 CPUs=8 Gres=gpu:a100:3,gpu:v100:1,mps:400\nNodeName=g2 Gres=gpu:2,shard:8\n",
        gres_conf="Name=mps Count=400\n",
    )
    first, second = (node for node in site.nodes if node.name.startswith("g"))
    assert [(gres.name, gres.type, gres.count) for gres in first.gres[2:]] == [("mps", "a100", 300), ("mps", "v100", 100)]
    assert second.gres == (GresCapacity("gpu", "", 2), GresCapacity("shard", "", 8))


def test_switches() -> None:
    site = load(
        "TopologyPlugin=topology/tree\n",
        topology_conf="SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4] LinkSpeed=5\n"
        "SwitchName=top Switches=leaf[1-2]\n",
    )
    assert site.switches == (
        Switch("leaf1", ("n1", "n2")),
        Switch("leaf2", ("n3", "n4"), link_speed=5),
        Switch("top", (), ("leaf1", "leaf2")),
    )
    assert load("", topology_conf="SwitchName=leaf1 Nodes=n[1-2]\n").switches == ()


def test_partition_values() -> None:
    site = load(
        "NodeName=m[1-2] CPUs=1 Feature=fat State=DRAIN Reason=old\nNodeSet=fat Feature=fat\n"
        "PartitionName=p Nodes=fat,n4 OverSubscribe=YES:3 AllowAccounts=a,b DenyAccounts=c AllowGroups=ALL MaxTime=2-0 "
        "DefaultTime=1:30:00 MaxNodes=UNLIMITED PriorityTier=5 DefMemPerCPU=10 MaxMemPerNode=20 ExclusiveUser=YES LLN=yes\n"
        "PartitionName=all Nodes=ALL Default=YES Shared=EXCLUSIVE\n"
    )
    first, second = site.partitions[1:]
    assert first.nodes == ("m1", "m2", "n4")
    assert (first.oversubscribe, first.allow_accounts, first.deny_accounts, first.allow_groups) == (
        "YES:3",
        ("a", "b"),
        (),
        None,
    )
    assert (first.maximum_time, first.default_time, first.maximum_nodes) == (2880, 90, INFINITE)
    assert (first.priority_tier, first.priority_job_factor) == (5, 1)
    assert (first.default_memory_per_cpu, first.maximum_memory_per_node, first.exclusive_user, first.lln) == (
        10,
        20,
        True,
        True,
    )
    assert (len(second.nodes), second.oversubscribe) == (6, "EXCLUSIVE")
    assert [each.name for each in site.partitions if each.default] == ["all"]
    drained = site.nodes[0]
    assert (drained.name, drained.state, drained.flags, drained.reason) == ("m1", NodeState.IDLE, NodeFlag.DRAIN, "old")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Foo=1", "Parsing error at unrecognized key: Foo"),
        ("KillWait=abc", 'KillWait value "abc" is not a valid number'),
        ("KillWait=99999", "KillWait value (99999) is greater than 65535"),
        ("KillWait=-1", "KillWait value (-1) is less than zero"),
        ("KillWait=", 'Parse error: "KillWait="'),
        ("garbage", 'Parse error: "garbage"'),
        ("KillWait=5 MinJobAge=3", 'Parse error: "MinJobAge=3"'),
        ("MinJobAge=5m", "MinJobAge value (5m) is not a valid number"),
        ("TrackWCKey=maybe", '"maybe" is not a valid option for "TrackWCKey"'),
        ("PriorityMaxAge=x", 'Bad value "x" for PriorityMaxAge'),
        ("MaxJobCount=0", "MaxJobCount=0, No jobs permitted"),
        ("FirstJobId=INFINITE", "FirstJobId > MaxJobId"),
        ("SelectTypeParameters=CR_Foo", "Bad SelectTypeParameter: CR_Foo"),
        ("PreemptMode=foo", "PreemptMode=foo invalid"),
        ("Licenses=foo:x", "Invalid configured licenses: foo:x"),
        ("NodeName=n1 CPUs=2", "Duplicated NodeName n1 in the config file"),
        ("NodeName=x1 CPUs=x", 'CPUs value "x" is not a valid number'),
        ("NodeName=x1 RealMemory=1G", "RealMemory value (1G) is not a valid number"),
        ("NodeName=x1 State=foo", "node x1 has invalid state foo"),
        ("NodeName=x1 Foo=1", "Parsing error at unrecognized key: Foo"),
        ("NodeName=x[1-2", "Invalid hostlist: x[1-2"),
        ("NodeName=x[1-99999999999]", "Invalid hostlist: x[1-99999999999]"),
        ("NodeName=x[1-2] Port=[1-3]", "Port count must equal that of NodeName records"),
        ("NodeName=x[1-2] NodeAddr=a[1-3]", "NodeAddr count must equal that of NodeName records"),
        ("NodeName=x1 Gres=gpu:x:y:z", "Invalid generic resource (gres) specification: gpu:x:y:z"),
        ("PartitionName=main Nodes=n1", "duplicate entry for partition main"),
        ("PartitionName=p Nodes=nope", 'Invalid node names in partition p: lookup failure for node "nope"'),
        ("PartitionName=p State=foo", 'Bad value "foo" for State'),
        ("PartitionName=p MaxTime=foo", 'Bad value "foo" for MaxTime'),
        ("PartitionName=p Default=maybe", '"maybe" is not a valid option for "Default"'),
        ("PartitionName=p OverSubscribe=foo", 'Bad value "foo" for OverSubscribe (use NO, YES, FORCE)'),
        ("Include nope.conf", "/etc/nope.conf"),
    ],
)
def test_errors_name_file_and_line(text: str, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        load("\n# a comment\n" + text + "\n")
    assert str(caught.value).startswith(f"/etc/slurm.conf line {FIRST + 2}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BlockName=b1 Nodes=n1", "unrecognized key: BlockName"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", "line 2"),
        ("SwitchName=a Switches=b", "unknown switches b"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "below itself"),
        ("SwitchName=b Nodes=n1\nSwitchName=a Nodes=n2 Switches=b", "both child switches and nodes"),
    ],
)
def test_errors_of_topology_conf(text: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        load("TopologyPlugin=topology/tree\n", topology_conf=text + "\n")


def test_topology_yaml_goes_before_topology_conf() -> None:
    with pytest.raises(GrammarError, match=r"topology\.yaml: topology default needs exactly one of"):
        load("TopologyPlugin=topology/tree\n", topology_yaml="- topology: default\n")
    tree = "- {topology: t, tree: {switches: [{switch: s, nodes: n1}]}}\n"
    site = load("TopologyPlugin=topology/tree\n", topology_yaml=tree, topology_conf="SwitchName=a Nodes=zz\n")
    assert [(switch.name, switch.nodes) for switch in site.switches] == [("s", ("n1",))]


def test_missing_files_and_nodes() -> None:
    with pytest.raises(GrammarError, match=r"/etc/slurm\.conf"):
        load_site({}.get, "/etc")
    with pytest.raises(GrammarError, match="there is no node"):
        load("ClusterName=x\n", base="")
    with pytest.raises(GrammarError, match="ClusterName needs to be specified"):
        load("NodeName=x\n", base="")


def test_a_cluster_out_of_one_machine() -> None:
    site = machine_site(cpus=6, memory=4000, nodes=3, sockets=4, threads_per_core=2)
    assert [(node.name, node.cpus, node.memory) for node in site.nodes] == [(f"node{n}", 6, 4000) for n in (1, 2, 3)]
    assert all(node.sockets * node.cores_per_socket * node.threads_per_core == 6 for node in site.nodes)
    assert site.default_partition is not None
    assert site.default_partition.nodes == ("node1", "node2", "node3")


LINE = st.sampled_from([*BASE.splitlines(), "KillWait=", "NodeName=a[1-", "PartitionName=p Nodes=", "Include x", "\\", "#"])
SNIPPET = st.text(alphabet="abn=[]-,0123 \t\"'#\\:./\n", max_size=20)


@given(st.lists(st.tuples(LINE, SNIPPET), max_size=8))
def test_nothing_but_grammar_errors(lines: list[tuple[str, str]]) -> None:
    text = "".join(f"{line}{snippet}\n" for line, snippet in lines)
    with contextlib.suppress(GrammarError):
        load(text, x="KillWait=3", gres_conf="Name=gpu", topology_conf="a=b")
    with contextlib.suppress(GrammarError):
        load("TopologyPlugin=topology/tree\n", topology_conf=text, gres_conf=text)


def test_job_defaults_of_the_site_and_of_partitions() -> None:
    site = load("DefCpuPerGPU=3\nPartitionName=gpu Nodes=n1 DefCpuPerGPU=2 DefMemPerGPU=1000\n")
    assert site.parameters["JobDefaults"] == "DefCpuPerGPU=3"
    assert "DefCpuPerGPU" not in site.parameters
    assert [partition.job_defaults for partition in site.partitions] == ["", "DefCpuPerGPU=2,DefMemPerGPU=1000"]


def test_exit_codes_that_requeue() -> None:
    site = load("RequeueExit=3-5,9\nRequeueExitHold=7\nDisableRootJobs=YES\n")
    assert (site.requeue_exit, site.requeue_exit_hold) == ({3, 4, 5, 9}, {7})
    assert site.disable_root_jobs
    assert not load("").requeue_exit
    wrong = load("RequeueExit=x\n")
    assert not wrong.requeue_exit
    assert wrong.warnings[0].endswith("RequeueExit=x: exit codes are numbers and ranges from 0 to 255; it is ignored")


@pytest.mark.parametrize(
    ("nodes", "said", "sizes"),
    [(["n[1-2]", "n[3-4]"], "", (2, 4)), (["n1", "n2", "n3"], "", (1, 2, 4)), (["n[1-2]", "n[3-4]"], "BlockSizes=2", (2,))],
)
def test_blocks_of_topology_conf(nodes: list[str], said: str, sizes: tuple[int, ...]) -> None:
    lines = [f"BlockName=b{number} Nodes={members}" for number, members in enumerate(nodes)]
    site = load("TopologyPlugin=topology/block\n", topology_conf="\n".join([*lines, said]) + "\n")
    assert [block.name for block in site.blocks] == [f"b{number}" for number in range(len(nodes))]
    assert site.blocks[0].nodes == tuple(expand(nodes[0]))
    assert site.block_sizes == sizes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BlockSizes=4", "No blocks configured"),
        ("BlockName=b Nodes=n1\nBlockName=b Nodes=n2", "line 2: BlockName: Block .b. has already been defined"),
        ("BlockName=b Nodes=n1\nBlockSizes=3,5", "Invalid BlockSizes value: 5"),
        ("BlockName=b Nodes=n1\nBlockSizes=x", "Invalid BlockSizes value: x"),
        ("SwitchName=b Nodes=n1", "unrecognized key: SwitchName"),
    ],
)
def test_errors_of_blocks_in_topology_conf(text: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        load("TopologyPlugin=topology/block\n", topology_conf=text + "\n")
