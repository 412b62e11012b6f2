"""scontrol show of nodes, partitions, configuration and host lists, as recorded from Slurm 26.05."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from command_fakes import NOBODY, NOON, FakeController, run_command

from slurmk.model.configuration import load_site, on_host
from slurmk.model.site import Site
from slurmk.model.states import NodeFlag

REFERENCE = """\
ClusterName=reference
SlurmctldHost=head(127.0.0.1)
SlurmUser=root
MpiDefault=none
GresTypes=gpu
PreemptMode=REQUEUE
PreemptType=preempt/qos
PriorityMaxAge=1-0
AccountingStorageTRES=gres/gpu
TopologyPlugin=topology/tree
Licenses=matlab:4
KillWait=5
DefMemPerCPU=100
NodeName=n[1-4] NodeAddr=127.0.0.1 NodeHostname=localhost Port=[26901-26904] CPUs=8 Sockets=1 CoresPerSocket=8 \\
    RealMemory=16000 Gres=gpu:a100:4 Feature=a100,ib
NodeName=n[5-8] CPUs=16 Sockets=1 CoresPerSocket=16 RealMemory=32000 Feature=cpu
PartitionName=debug Nodes=n[1-8] Default=YES MaxTime=1:00:00 DefaultTime=10:00 State=UP
PartitionName=gpu Nodes=n[1-4] MaxTime=2-00:00:00 State=UP
PartitionName=cpu Nodes=n[5-8] MaxTime=INFINITE State=UP
"""
FILES = {
    "/etc/slurm.conf": REFERENCE,
    "/etc/gres.conf": "NodeName=n[1-4] Name=gpu Type=a100 File=/dev/gpu[0-3]\n",
    "/etc/topology.conf": "SwitchName=leaf1 Nodes=n[1-4]\nSwitchName=leaf2 Nodes=n[5-8]\nSwitchName=spine Switches=leaf[1-2]\n",
}


@pytest.fixture
def site() -> Site:
    return on_host(
        load_site(FILES.get, "/etc"),
        architecture="x86_64",
        operating_system="Linux 6.18 #1 SMP",
        version="26.05.5",
        boot_time=NOON - 7200,
        start_time=NOON - 3600,
    )


@pytest.fixture
def controller(site: Site) -> FakeController:
    nodes = tuple(replace(node, cpu_load=5, free_memory=23656) for node in site.nodes)
    return FakeController(replace(site, nodes=nodes))


NODE = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=8 
   CPUAlloc={used} CPUEfctv=8 CPUTot=8 CPULoad=0.05
   AvailableFeatures=a100,ib
   ActiveFeatures=a100,ib
   Gres=gpu:a100:4
{details}   NodeAddr=127.0.0.1 NodeHostName=localhost Port=26901 Version=26.05.5
   OS=Linux 6.18 #1 SMP 
   RealMemory=16000 AllocMem={memory} FreeMem=23656 Sockets=1 Boards=1
   State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=debug,gpu 
   BootTime=2026-11-30T10:00:00 SlurmdStartTime=2026-11-30T11:00:00
   LastBusyTime=2026-11-30T11:00:00 ResumeAfterTime=None SuspendTime=INFINITE
   CfgTRES=cpu=8,mem=16000M,billing=8,gres/gpu=4
   AllocTRES={tres}
   CurrentWatts=0 AveWatts=0

"""  # noqa: W291


def test_an_idle_node(controller: FakeController) -> None:
    said = run_command(controller, "scontrol", "show", "node", "n1")
    assert said.out == NODE.format(used=0, memory=0, state="IDLE", tres="", details="")
    assert (said.err, said.code) == ("", 0)


def test_a_node_with_a_job(controller: FakeController) -> None:
    controller.submit(required_nodes="n1", tasks=2, tres_per_node="gres/gpu:1", memory_per_cpu=100)
    controller.start_all()
    details = "   GresDrain=N/A\n   GresUsed=gpu:a100:1(IDX:0)\n"
    said = run_command(controller, "scontrol", "-d", "show", "node", "n1")
    shown = said.out.replace("LastBusyTime=2026-11-30T12:00:00", "LastBusyTime=2026-11-30T11:00:00")
    assert shown == NODE.format(used=2, memory=200, state="MIXED", tres="cpu=2,mem=200M,gres/gpu=1", details=details)


def test_a_node_without_gres_tells_of_none_in_use(controller: FakeController) -> None:
    said = run_command(controller, "scontrol", "-d", "-o", "show", "node", "n5").out
    assert " Gres=(null) GresDrain=N/A NodeAddr=" in said


def test_one_line(controller: FakeController) -> None:
    said = run_command(controller, "scontrol", "-o", "show", "node", "n[5-6]")
    lines = said.out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("NodeName=n5 Arch=x86_64 CoresPerSocket=16  CPUAlloc=0 CPUEfctv=16 ")
    assert lines[0].endswith(" CfgTRES=cpu=16,mem=32000M,billing=16 AllocTRES= CurrentWatts=0 AveWatts=0")


def test_reason_of_a_drained_node(site: Site) -> None:
    first, *others = site.nodes
    drained = replace(first, flags=NodeFlag.DRAIN, reason="bad fan", reason_time=NOON)
    shown = run_command(FakeController(replace(site, nodes=(drained, *others))), "scontrol", "show", "node", "n1").out
    assert "   State=IDLE+DRAIN ThreadsPerCore=1 " in shown
    assert shown.endswith("   CurrentWatts=0 AveWatts=0\n   Reason=bad fan [root@2026-11-30T12:00:00]\n\n")


PARTITION = """\
PartitionName=debug
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=00:10:00 DisableRootJobs=NO Exclusive=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=01:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED MaxCPUsPerSocket=UNLIMITED
   Nodes=n[1-8]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=REQUEUE
   State=UP TotalCPUs=96 TotalNodes=8 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
   TRES=cpu=96,mem=187.50G,node=8,billing=96,gres/gpu=16

"""


def test_a_partition(controller: FakeController) -> None:
    assert run_command(controller, "scontrol", "show", "partition", "debug").out == PARTITION
    one = run_command(controller, "scontrol", "-o", "show", "part=debug").out
    assert one == " ".join(line.strip() for line in PARTITION.strip().splitlines()) + "\n"
    assert run_command(controller, "scontrol", "show", "pa").out.count("PartitionName=") == 3


def test_a_partition_with_everything() -> None:
    text = (
        "ClusterName=probe\nNodeName=n[1-8] CPUs=4 RealMemory=1000\n"
        "NodeName=login Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=1500000\n"
        "PartitionName=main Nodes=n[1-8],login Default=YES OverSubscribe=YES:4 AllowGroups=root,alice AllowAccounts=a,b "
        "AllocNodes=n[1-2] MinNodes=2 MaxNodes=4 PriorityTier=3 PriorityJobFactor=5 RootOnly=YES Alternate=other "
        "DefMemPerCPU=100 MaxMemPerCPU=200 GraceTime=30 MaxCPUsPerNode=3 MaxCPUsPerSocket=2 LLN=YES ExclusiveUser=YES "
        "OverTimeLimit=5 ReqResv=YES TRESBillingWeights=CPU=1.0,Mem=0.25G\n"
        "PartitionName=other Nodes=ALL State=DRAIN OverSubscribe=EXCLUSIVE DenyAccounts=z DefMemPerNode=1024 Hidden=YES\n"
        "PartitionName=empty\n"
    )
    controller = FakeController(load_site({"/etc/slurm.conf": text}.get, "/etc"))
    assert run_command(controller, "scontrol", "show", "part", "main").out == (
        "PartitionName=main\n"
        "   AllowGroups=root,alice AllowAccounts=a,b AllowQos=ALL\n"
        "   AllocNodes=n[1-2] Alternate=other Default=YES QoS=N/A\n"
        "   DefaultTime=NONE DisableRootJobs=NO Exclusive=USER GraceTime=30 Hidden=NO\n"
        "   MaxNodes=4 MaxTime=UNLIMITED MinNodes=2 LLN=YES MaxCPUsPerNode=3 MaxCPUsPerSocket=2\n"
        "   Nodes=login,n[1-8]\n"
        "   PriorityJobFactor=5 PriorityTier=3 RootOnly=YES ReqResv=YES OverSubscribe=YES:4\n"
        "   OverTimeLimit=5 PreemptMode=OFF\n"
        "   State=UP TotalCPUs=96 TotalNodes=9 SelectTypeParameters=NONE\n"
        "   JobDefaults=(null)\n"
        "   DefMemPerCPU=100 MaxMemPerCPU=200\n"
        "   TRES=cpu=96,mem=1508000M,node=9,billing=464\n"
        "   TRESBillingWeights=CPU=1.0,Mem=0.25G\n\n"
    )
    other = run_command(controller, "scontrol", "show", "part", "other").out
    assert "AllowGroups=ALL DenyAccounts=z AllowQos=ALL\n" in other
    assert " Exclusive=NODE " in other
    assert "   NodeSets=ALL\n   Nodes=login,n[1-8]\n" in other
    assert " OverSubscribe=NO\n" in other
    assert "   DefMemPerNode=1024 MaxMemPerNode=UNLIMITED\n" in other
    empty = run_command(controller, "scontrol", "show", "part", "empty").out
    assert "   Nodes=(null)\n" in empty
    assert "   TRES=(null)\n" in empty
    login = run_command(controller, "scontrol", "show", "node", "login").out
    assert "   CfgTRES=cpu=64,mem=1500000M,billing=430\n" in login
    assert run_command(controller, "scontrol", "show", "part", "other", caller=NOBODY).out == "Partition other not found\n"
    assert "PartitionName=other" in run_command(controller, "scontrol", "-a", "show", "part", "other", caller=NOBODY).out


def test_configuration(controller: FakeController) -> None:
    said = run_command(controller, "scontrol", "show", "config")
    lines = said.out.splitlines()
    assert lines[0] == "Configuration data as of 2026-11-30T12:00:00"
    assert lines[-2:] == ["", "Slurmctld(primary) at head is UP"]
    for line in (
        "AccountingStorageBackupHost = (null)",
        "AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu,gres/gpumem,gres/gpuutil",
        "ClusterName             = reference",
        "DefMemPerCPU            = 100",
        "KillWait                = 5 sec",
        "MaxMemPerNode           = UNLIMITED",
        "MaxNodeCount            = 8",
        "MpiDefault              = (null)",
        "NEXT_JOB_ID             = 1",
        "PriorityMaxAge          = 1-00:00:00",
        "PriorityWeightFairShare = 0",
        "SLURM_CONF              = /etc/slurm.conf",
        "SLURM_VERSION           = 26.05.5",
        "SlurmUser               = root(0)",
        "SlurmctldHost[0]        = head(127.0.0.1)",
        "UsePam                  = no",
    ):
        assert line in lines
    assert not any(line.startswith(("DefMemPerNode", "Epilog[")) for line in lines)


@pytest.mark.parametrize(
    ("arguments", "output", "errors", "code"),
    [
        ("show node n9", "Node n9 not found\n", "", 1),
        ("-Q show node n9", "", "", 1),
        ("show node n[1", "", "unable to parse node list n[1\nscontrol: error: hostlist_shift_dims: no hostlist given\n", 1),
        ("show node n1 n2", "", "too many arguments for keyword:show\n", 1),
        ("show partition gpu,cpu", "Partition gpu,cpu not found\n", "", 1),
        ("show p gpu", "", "invalid entity:p for keyword:show\n", 1),
        ("show hostnames n[1-2],x", "n1\nn2\nx\n", "", 0),
        (
            "show hostnames n[3-1]",
            "",
            "scontrol: error: _parse_single_range: Invalid range: `3-1'\nInvalid hostlist: n[3-1]\n",
            0,
        ),
        ("show hostnames", "", "scontrol: error: host list is empty\n", 0),
        ("show hostlist n3,n1,n2", "n[3,1-2]\n", "", 0),
        ("show hostlistsorted n3,n1,n2", "n[1-3]\n", "", 0),
        ("show hostlist n[1", "", "Invalid hostlist: n[1\n", 1),
        ("show hostlist /nope", "", "Can not open /nope\n", 1),
        (
            "show topology node=n1",
            "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-4]\n"
            "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-8] Switches=leaf[1-2]\n",
            "",
            0,
        ),
        (
            "show topology node=n[4-5]",
            "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-8] Switches=leaf[1-2]\n",
            "",
            0,
        ),
        ("show topology SWITCH=leaf1", "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-4]\n", "", 0),
        ("show topology unit=LEAF1", "", "scontrol: error: Topology information contains no switch named LEAF1\n", 0),
        ("show topology node=n1,x", "", "scontrol: error: Topology information contains no switch with nodes n1,x\n", 0),
        (
            "show topology switch=",
            "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-4]\n"
            "SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[5-8]\n"
            "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-8] Switches=leaf[1-2]\n",
            "",
            0,
        ),
        ("show topology leaf1", "", "slurm_load_topo error: Requested topology configuration is not available\n", 0),
        ("show licenses", "LicenseName=matlab\n    Total=4 Used=0 Free=4 Reserved=0 Remote=no\n", "", 0),
        ("-o show lic matlab", "LicenseName=matlab Total=4 Used=0 Free=4 Reserved=0 Remote=no\n", "", 0),
        ("show lic nope", "", 'scontrol: error: query "nope" matched zero licenses.\n', 1),
        ("show reservation", "No reservations in the system\n", "", 0),
    ],
)
def test_answers(controller: FakeController, arguments: str, output: str, errors: str, code: int) -> None:
    said = run_command(controller, "scontrol", *arguments.split(" "))
    assert (said.out, said.err, said.code) == (output, errors, code)


def test_licences_in_use(controller: FakeController) -> None:
    controller.submit(licenses="matlab:3")
    controller.start_all()
    assert "Total=4 Used=3 Free=1" in run_command(controller, "scontrol", "show", "lic").out


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ("low", "CPU_max_freq=Low Governor=UserSpace"),
        ("highm1", "CPU_max_freq=Highm1 Governor=UserSpace"),
        ("1000000", "CPU_max_freq=1000000 Governor=UserSpace"),
        ("1000-2000:performance", "CPU_min_freq=1000 CPU_max_freq=2000 Governor=Performance"),
        ("low-high:OnDemand", "CPU_min_freq=Low CPU_max_freq=High Governor=OnDemand"),
        ("performance", "Governor=Performance"),
    ],
)
def test_frequencies_of_a_job(asked: str, line: str) -> None:
    controller = FakeController()
    controller.submit(hold=True, cpu_frequency=asked)
    assert f"   {line}\n" in run_command(controller, "scontrol", "show", "job", "1").out


@pytest.mark.parametrize(
    ("typed", "as_if"),
    [
        (["partitionname=gpu"], ["partition", "gpu"]),
        (["PartitionName", "gpu"], ["partition", "gpu"]),
        (["partitionn=nosuch"], ["partition", "nosuch"]),
        (["partition=gpu", "debug"], ["partition", "gpu"]),
        (["partitionname="], ["partition", ""]),
        (["ReservationName=nosuch"], ["reservation", "nosuch"]),
        (["reservationn"], ["reservation"]),
        (["node=n1", "n2"], ["node", "n1"]),
        (["topology=leaf1"], ["topology"]),
        (["topology=x", "leaf1"], ["topology", "leaf1"]),
        (["cache=x"], ["cache"]),
        (["assoc=x", "users"], ["assoc", "users"]),
    ],
)
def test_other_ways_to_say_what_is_shown(controller: FakeController, typed: list[str], as_if: list[str]) -> None:
    """As Slurm 26.05 answered: what stands behind "=" is the name, and another word is not looked at."""
    plain, other = (run_command(controller, "scontrol", "show", *words) for words in (as_if, typed))
    assert (other.out, other.err, other.code) == (plain.out, plain.err, plain.code)
    assert other.out or other.err


@pytest.mark.parametrize(
    ("typed", "members"), [("partitionname=gpu", "partitions"), ("reservationname=nosuch", "reservations")]
)
def test_documents_by_other_names(controller: FakeController, typed: str, members: str) -> None:
    assert members in json.loads(run_command(controller, "scontrol", "--json", "show", typed).out)


@pytest.mark.parametrize(
    ("node", "gres", "taken"),
    [
        ("n1", "gpu:a100:4", True),
        ("n1", "gpu:4", True),
        ("n1", "gpu:a100:4,foo:2", True),
        ("n1", "foo:2", True),
        ("n1", "gpu:a100:2", False),
        ("n1", "gpu:3", False),
        ("n1", "gpu:a100:5", False),
        ("n1", "gpu:h100:4", False),
        ("n1", "foo:1,gpu:2", False),
        ("n6", "gpu:1", False),
        ("n6", "gpu:a100:2", False),
        ("n6", "gpu:0", True),
        ("n6", "foo:1", True),
    ],
)
def test_gres_of_a_node_stay_as_many_as_its_devices(controller: FakeController, node: str, gres: str, taken: bool) -> None:
    before = controller.machine.nodes[node].gres
    said = run_command(controller, "scontrol", "update", f"nodename={node}", f"gres={gres}")
    error = "" if taken else "slurm_update error: Invalid generic resource (gres) specification\n"
    assert (said.out, said.err, said.code) == ("", error, 0 if taken else 1)
    assert controller.machine.nodes[node].gres == before
