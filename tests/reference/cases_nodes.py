"""scontrol update, create and delete of nodes, key by key: good values, bad ones, none, and what is shown then."""

from __future__ import annotations

from sides import Case

_VALUES = {
    "weight": "5 0 -1 4294967295 4294967294 4294967293 5x",
    "features": "x x,y a100,ib x,,y X&Y",
    "availablefeatures": "x,y",
    "activefeatures": "a100 ib,a100 nosuch a100,nosuch",
    "features+": "x",
    "activefeatures-": "ib",
    "gres": "gpu:a100:2 gpu:2 gpu:a100:8",
    "gres+": "gpu:a100:2",
    "comment": "hello",
    "comment+": "x",
    "extra": 'foo {"a":1}',
    "extra+": "x",
    "instanceid": "i-1",
    "instancetype": "t-2",
    "reason": 'foo "quoted "half half"',
    "reason+": "x",
    "cpubind": "none off core socket thread ldom board no",
    "nodeaddr": "1.2.3.4",
    "resumeafter": "60 -1 foo 0",
    "resumeafter=60 reason=x state": "down drain idle resume",
    "port": "5",
    "certtoken": "x",
    "topologystr": "x",
    "topology": "x default:nosuch default:leaf2",
    "parameters": "x",
    "resumetime": "60",
    "reason=x state": "drain dra dr d resume res re r power_down_asap power_down_force power_down power_d power_do power_u"
    " power_up und down dow do idle idl allocated mixed error unknown maint planned foo blocked powered_down cancel_reboot can"
    " fail fai idle no",
    "state": "drain fail down resume idle undrain",
}
_WITHOUT_EMPTY = ("activefeatures", "gres", "topology")
"""Keys of which nothing at all is shown as no other node is."""

_SEEN = "CPULoad|FreeMem|LastBusyTime|SlurmdStartTime|BootTime|Arch|Version|OS|#1|Linux|PREEMPT|@0|SMP|6|.root@"
"""What is not said of nodes but seen."""


def _tried(key: str, values: str) -> Case:
    """Each value in turn, and which words of the record are others than before; then the node is as it was."""
    words = values.split() + ([] if key in _WITHOUT_EMPTY else [""])
    quoted = " ".join(f"'{word}'" for word in words)
    back = "features=a100,ib activefeatures=a100,ib weight=1 comment= extra= reason= instanceid= instancetype= cpubind=off"
    return Case(
        f"s() {{ scontrol -oF show node n2 | sed 's/+NOT_RESPONDING//' | tr ' ' '\\n' | grep -vE '^({_SEEN})'; }}; s > old;"
        f' for v in {quoted}; do echo "[$v]"; scontrol update node=n2 {key}="$v"; echo "exit $?"; s > new;'
        " diff old new | grep '^[<>]'; mv new old; done 2>&1;"
        f" scontrol update node=n2 {back} topology= certtoken= nodeaddr=127.0.0.1 state=idle",
        title=f"node: {key}",
    )


_SHORTENED = """
NodeAddr NodeHostName NodeName ActiveFeatures CertToken CpuBind Extra Features AvailableFeatures InstanceId InstanceType Weight
Comment Reason ResumeAfter State Topology
""".split()  # noqa: SIM905

_COMMANDS = """
scontrol update nodename=n[7-8],nosuch weight=2; scontrol -o show node n7 | grep -o 'Weight=[0-9]*'
scontrol update nodename=n[7-8 weight=2
scontrol update nodename= weight=2
scontrol update nodename=ALL comment=x; scontrol show node | grep -c Comment=x; scontrol update nodename=all comment=
scontrol update nodename=n[7,8] comment=y; scontrol show node | grep -c Comment=y; scontrol update nodename=n[7-8] comment=
scontrol update node=n8 weight=3 foo=bar; scontrol -o show node n8 | grep -o 'Weight=[0-9]*'
scontrol update node=n8 weight=3 activefeatures=nosuch; scontrol -o show node n8 | grep -o 'Weight=[0-9]*'
scontrol update nodename=n8 partitionname=debug state=up
scontrol update node=n8 foo
scontrol update node=n8
scontrol update node n8 weight=3
scontrol update n=n8 weight=3
scontrol update no=n8 weight=3
scontrol update nod=n8 weight=1
scontrol create node
scontrol create node=x1
scontrol create nodename=x1 state=cloud; scontrol -o show node x1; scontrol delete node=x1
scontrol create nodename=x1 state=future; scontrol -o show node x1
scontrol create nodename=x1 state=external
scontrol create nodename=x[1-2] state=cloud cpus=2
scontrol create nodename=x1 state=idle
scontrol create nodename=x1 state=dynamic
scontrol create nodename=n1 state=cloud
scontrol create node=x1 foo=bar
scontrol create nodename=x1 state=cloud foo=bar
scontrol create nodename=x1 state=cloud cpus=foo
scontrol create node= state=cloud
scontrol create nodename=default state=cloud
scontrol create no=x1
scontrol delete node=nosuch
scontrol delete nodename=nosuch
scontrol delete node nosuch
scontrol delete node=n1
scontrol delete node=
scontrol delete no=n1
scontrol delete n=n1
scontrol delete node=n[1-2]
""".strip().splitlines()

_STRANGER = """
scontrol create node=x1 state=cloud
scontrol create nodename=x1
scontrol delete node=n1
scontrol delete node=nosuch
scontrol update node=n1 weight=3
scontrol update node=nosuch weight=3
scontrol update node=n1 weight=foo
scontrol update node=n1 state=power_down
scontrol update node=n1 state=drain
scontrol reboot n1
""".strip().splitlines()

CASES = [
    *(_tried(key, values) for key, values in _VALUES.items()),
    *(
        Case(
            f"k={key}; for ((n = 1; n <= ${{#k}}; n++)); do scontrol update nodename=nosuch ${{k:0:n}}=foo; done",
            title=f"node: shortened {key}",
        )
        for key in _SHORTENED
    ),
    *(Case(command) for command in _COMMANDS),
    *(Case(command, user="alice", title=f"alice: {command}") for command in _STRANGER),
]
