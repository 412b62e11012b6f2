"""scontrol create, update and delete of partitions, key by key: good values, bad ones, none, and what is shown then."""

from __future__ import annotations

from sides import Case

_VALUES = {
    "maxtime": "5 1-0 unlimited infinite -1 0 1:00:00 5:5 5.5 foo",
    "defaulttime": "5 none unlimited -1 0 2:00:00 foo",
    "maxcpuspernode": "3 unlimited infinite 0 -1 9999999999 3k 1.5 foo",
    "maxcpuspersocket": "3 unlimited 0 -1 foo",
    "maxnodes": "3 unlimited infinite 0 -1 2-3 1k 1m 99999999999 3x foo",
    "minnodes": "3 0 -1 2-3 1k",
    "default": "yes no y n YE true 1 0 foo",
    "disablerootjobs": "yes no y n true 1",
    "exclusiveuser": "yes no y n true 1",
    "exclusivetopo": "yes no y n true 1",
    "exclusive": "yes no node user topo n us t NODE,USER no",
    "hidden": "yes no y n true",
    "lln": "yes no y n true",
    "rootonly": "yes no y n true",
    "reqresv": "yes no y n true",
    "oversubscribe": "yes no force exclusive yes:3 force:2 force:0 yes:0 y f e n yes:99999 force:foo yes: no:3"
    " FOR YES:1 force:1 x",
    "shared": "yes no force exclusive yes:3",
    "overtimelimit": "5 unlimited infinite 0 -1 none 65535 65534 65536 70000 5x",
    "preemptmode": "off cancel requeue suspend gang suspend,gang gang,suspend requeue,gang within cancel,within off,gang"
    " gang,within checkpoint OFF r",
    "priority": "5 0 -1 65535 65536 99999",
    "priorityjobfactor": "5 0 -1 65535 65533 65534 99999",
    "prioritytier": "5 0 -1 65533",
    "state": "down drain inactive up d i u dr dra do UPS",
    "nodes": "n1 n[5-6] all ALL n1,n2 n3,n1 n[9] n1,nosuch +n4 -n3",
    "nodes+": "n3 n[3-4] n1 nosuch n3,n4",
    "nodes-": "n1 n[1-2] n5 nosuch",
    "allowgroups": "root,alice all ALL nosuchgroup",
    "allowaccounts": "phys phys,chem all ALL nosuch PHYS",
    "allowqos": "normal all nosuch normal,nosuch NORMAL",
    "denyaccounts": "phys phys,chem all nosuch none NONE",
    "denyqos": "normal nosuch none",
    "allocnodes": "n1 all n[1-2] foo,bar",
    "alternate": "gpu none nosuch t1",
    "gracetime": "5 0 -1 unlimited 1:00 99999999999",
    "defmempercpu": "100 unlimited 1G -1 99999999999",
    "defmempernode": "100 unlimited 1G -1 0",
    "maxmempercpu": "100 unlimited 1G -1",
    "maxmempernode": "100 unlimited 1G -1 0",
    "qos": "normal nosuch NORMAL",
    "tresbillingweights": "cpu=2 CPU=1.0,Mem=0.25G,GRES/gpu=2.0 foo=1 cpu=x cpu cpu= node=3 gres/gpu:a100=2 license/matlab=1"
    " cpu=1,mem=2",
    "jobdefaults": "DefCpuPerGPU=2 DefMemPerGPU=100 DefCpuPerGPU=2,DefMemPerGPU=100 defcpupergpu=3 foo=1 DefCpuPerGPU=x"
    " DefCpuPerGPU",
    "cpubind": "none off core socket thread ldom board cores sockets no core,verbose NONE rank",
    "powerdownonidle": "yes no y n true 1",
    "topology": "default nosuch",
}
_WITHOUT_EMPTY = frozenset({"minnodes", "defmempercpu", "maxmempercpu"})
"""Keys of which nothing at all sets what no partition is meant to have."""


def _tried(key: str, values: str) -> Case:
    """Each value in turn, and which words of the record are others than before."""
    words = values.split() + ([] if key in _WITHOUT_EMPTY else [""])
    quoted = " ".join(f"'{word}'" for word in words)
    return Case(
        "s() { scontrol -o show partition t1 | tr ' ' '\\n'; }; scontrol create partitionname=t1 nodes=n[1-2]; s > old;"
        f' for v in {quoted}; do echo "[$v]"; scontrol update partitionname=t1 "{key}=$v"; echo "exit $?"; s > new;'
        " diff old new | grep '^[<>]'; mv new old; done 2>&1;"
        " scontrol update partition=debug default=yes; scontrol delete partitionname=t1",
        title=f"partition: {key}",
        ignore=(r"[<>] TRES=.*\n",) if key == "tresbillingweights" else (),  # it is counted anew there with the nodes alone
    )


_SHORTENED = """
MaxTime DefaultTime MaxCPUsPerNode MaxCPUsPerSocket MaxNodes Default DisableRootJobs Exclusive ExclusiveUser ExclusiveTopo
Hidden LLN RootOnly ReqResv OverSubscribe Shared OverTimeLimit PowerDownOnIdle PreemptMode Priority PriorityJobFactor
PriorityTier State Nodes AllowGroups AllowAccounts AllowQos DenyAccounts DenyQos AllocNodes Alternate GraceTime DefMemPerCPU
DefMemPerNode MaxMemPerCPU MaxMemPerNode QOS JobDefaults CpuBind TresBillingWeights Topology PartitionName
""".split()  # noqa: SIM905

_COMMANDS = """
scontrol create partition
scontrol create partition t1
scontrol create partition=t1; scontrol -o show partition t1; scontrol delete partition=t1
scontrol create partitionname=t1 nodes=n1; scontrol create partitionname=t1 nodes=n2; scontrol show partition t1; scontrol delete partition=t1
scontrol create partition=debug
scontrol create partition=default
scontrol create partition=DEFAULT nodes=n1
scontrol create partition=t1,t2 nodes=n1; scontrol delete partition=t1,t2
scontrol create partition='a b' nodes=n1; scontrol show partition 'a b'; scontrol delete partition='a b'
scontrol create part=t1; scontrol delete part=t1
scontrol create par=t1; scontrol delete par=t1
scontrol create pa=t1
scontrol create p=t1
scontrol create nodes=n1
scontrol create partition=t1 nodes=nosuch; scontrol show partition t1
scontrol create partition=t1 nodes=n1,nosuch
scontrol create partition=t1 nodes+=n1; scontrol -o show partition t1; scontrol delete partition=t1
scontrol create partition=t1 nodes-=n1; scontrol -o show partition t1; scontrol delete partition=t1
scontrol create partition=t1 foo=bar; scontrol show partition t1
scontrol create partition=t1 maxtime=foo; scontrol show partition t1
scontrol create partition=t1 nodes=n1 qos=nosuch; scontrol show partition t1
scontrol create partition=t1 nodes=n1 tresbillingweights=foo; scontrol show partition t1
scontrol create partition=t1 nodes=n1 maxtime=5 maxtime=6; scontrol -o show partition t1; scontrol delete partition=t1
scontrol create nodes=n1 partition=t1; scontrol -o show partition t1; scontrol delete partition=t1
scontrol create partition=t1 nodes=n[1-3] default=yes maxtime=30 defaulttime=5 maxnodes=2 state=down hidden=yes; scontrol -o show partition; scontrol delete partition=t1; scontrol -o show part debug; scontrol update partition=debug default=yes
scontrol create partition=t1 nodes=all; scontrol -o show partition t1; sinfo -o '%P %D %a'; scontrol delete partition=t1
scontrol create partition=t1 nodes=n1 cpubind=cores exclusive=topo topology=default tresbillingweights=cpu=2 jobdefaults=defcpupergpu=2 alternate=gpu overtimelimit=5 preemptmode=cancel maxcpuspersocket=3 defmempercpu=5 maxmempernode=7 denyqos=normal denyaccounts=phys; scontrol show part t1; scontrol delete part=t1
scontrol create partition=t1 nodes=n1; j=$(sbatch --parsable -p t1 -H --wrap true); scontrol delete partition=t1; scancel $j; sleep 0.3; scontrol delete partition=t1
scontrol create partition=t1 nodes=n1; scontrol create reservation=rr partition=t1 nodes=all flags=part_nodes users=root start=now duration=5; scontrol delete partition=t1; scontrol delete res=rr; scontrol delete partition=t1
scontrol delete partition=nosuch
scontrol delete partition
scontrol delete partition nosuch
scontrol delete partition=t1 t2
scontrol delete
scontrol delete p=x
scontrol delete pa=x
scontrol delete par=x
scontrol delete foo
scontrol delete foo bar
scontrol delete res=foo
scontrol delete r=foo
scontrol delete re=foo
scontrol delete reservation foo bar
scontrol delete job=1
scontrol delete front=n1
scontrol create front=x1
scontrol create foo
scontrol create foo=bar
scontrol update partitionname=debug nosuch=foo
scontrol update partitionname=debug nosuch
scontrol update partitionname=debug
scontrol update partitionname=
scontrol update partition=
scontrol update partition nosuch state=up
scontrol update partition debug
scontrol update partition
scontrol update part=debug
scontrol update pa=debug state=up
scontrol update par=debug state=up
scontrol update parti=nosuch state=up
scontrol update partitionname=debug,gpu state=up
scontrol update partitionname=debug state=up state=up
scontrol update partitionname=debug maxtime=7 foo=bar; scontrol -o show partition debug
scontrol update partitionname=debug suspendtime=3
scontrol update partitionname=debug selecttypeparameters=x
""".strip().splitlines()  # noqa: E501

_STRANGER = """
scontrol create partition=t1 nodes=n1
scontrol create partition=debug
scontrol delete partition=debug
scontrol delete partition=nosuch
scontrol update partition=debug state=up
scontrol update partition=nosuch state=up
scontrol update partition=debug state=foo
scontrol update partition=debug
scontrol update partition=debug qos=nosuch
""".strip().splitlines()

_LENGTHENED = "scontrol update partitionname=debug maxtime+=7"

CASES = [
    *(_tried(key, values) for key, values in _VALUES.items()),
    *(
        Case(
            f"k={key}; for ((n = 1; n <= ${{#k}}; n++)); do scontrol update partitionname=nosuch ${{k:0:n}}=foo; done",
            title=f"partition: shortened {key}",
        )
        for key in _SHORTENED
    ),
    *(Case(command) for command in _COMMANDS),
    Case(_LENGTHENED + "; scontrol update partitionname=debug maxtime=1:00:00", title=_LENGTHENED),
    *(Case(command, user="alice", title=f"alice: {command}") for command in _STRANGER),
]
