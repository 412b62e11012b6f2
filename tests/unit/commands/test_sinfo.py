"""sinfo: what it prints and refuses, as recorded from Slurm 26.05."""

from __future__ import annotations

from dataclasses import replace

import pytest
from command_fakes import NOBODY, NOON, FakeController, reference_site, run_command

from slurmk.model.configuration import load_site
from slurmk.model.node import Node
from slurmk.model.states import NodeFlag, NodeState

HEADER = "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"

STATES = """\
ClusterName=probe
NodeName=n[1-8] CPUs=4 RealMemory=1000
NodeName=f[1-2] CPUs=4 State=FUTURE
NodeName=c[1-2] CPUs=4 State=DOWN Reason=conf
NodeName=login RealMemory=1500000 State=DRAIN Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 Weight=5 TmpDisk=100 Feature=x,y
PartitionName=main Nodes=n[1-8],login Default=YES
PartitionName=other Nodes=c[1-2] State=DOWN OverSubscribe=EXCLUSIVE MaxTime=30 DefaultTime=20 Hidden=YES
PartitionName=drn Nodes=ALL State=DRAIN OverSubscribe=FORCE
PartitionName=ina Nodes=n1 State=INACTIVE OverSubscribe=FORCE:2
PartitionName=empty
"""
"""The probe cluster that most of these answers were recorded from."""

NO_RESPOND = NodeFlag.NO_RESPOND
CHANGES: dict[str, dict[str, object]] = {
    "n1": {"flags": NO_RESPOND},
    "n2": {"flags": NO_RESPOND},
    "n3": {"flags": NO_RESPOND | NodeFlag.DRAIN, "reason": "bad fan", "reason_time": NOON},
    "n4": {
        "flags": NO_RESPOND,
        "state": NodeState.DOWN,
        "reason": "very long reason that goes on and on",
        "reason_time": NOON,
    },
    "n5": {"flags": NO_RESPOND | NodeFlag.FAIL, "reason": "failing", "reason_time": NOON},
    "n6": {"flags": NO_RESPOND | NodeFlag.DRAIN, "reason": "bad fan", "reason_time": NOON},
    "n7": {"state": NodeState.UNKNOWN},
    "n8": {"state": NodeState.UNKNOWN},
    "login": {"state": NodeState.UNKNOWN},
}


def _changed(node: Node) -> Node:
    return replace(node, **CHANGES.get(node.name, {}))  # type: ignore[arg-type]


@pytest.fixture
def probe() -> FakeController:
    site = load_site({"/etc/slurm.conf": STATES}.get, "/etc")
    return FakeController(replace(site, nodes=tuple(map(_changed, site.nodes))))


@pytest.fixture
def controller() -> FakeController:
    return FakeController()


def test_an_idle_cluster(controller: FakeController) -> None:
    said = run_command(controller, "sinfo")
    assert (said.err, said.code) == ("", 0)
    assert said.out == HEADER + (
        "debug*       up    1:00:00      8   idle n[1-8]\n"
        "gpu          up 2-00:00:00      4   idle n[1-4]\n"
        "cpu          up   infinite      4   idle n[5-8]\n"
    )


def test_nodes_with_jobs(controller: FakeController) -> None:
    controller.submit(required_nodes="n1", tasks=2, tres_per_node="gres/gpu:1")
    controller.submit(required_nodes="n5", tasks=16)
    controller.start_all()
    assert run_command(controller, "sinfo", "-h", "-o", "%P %t %N %C %A").out == (
        "debug* mix n1 2/6/0/8 1/0\n"
        "debug* alloc n5 16/0/0/16 1/0\n"
        "debug* idle n[2-4,6-8] 0/72/0/72 0/6\n"
        "gpu mix n1 2/6/0/8 1/0\n"
        "gpu idle n[2-4] 0/24/0/24 0/3\n"
        "cpu alloc n5 16/0/0/16 1/0\n"
        "cpu idle n[6-8] 0/48/0/48 0/3\n"
    )
    assert run_command(controller, "sinfo", "-s", "-p", "debug").out == (
        "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST\ndebug*       up    1:00:00          2/6/0/8 n[1-8]\n"
    )
    assert run_command(controller, "sinfo", "-h", "-t", "mix", "-p", "gpu").out == (
        "gpu          up 2-00:00:00      1    mix n1\n"
    )


def test_every_state_in_its_order(probe: FakeController) -> None:
    assert run_command(probe, "sinfo").out == HEADER + (
        "main*        up   infinite      1  fail* n5\n"
        "main*        up   infinite      2 drain* n[3,6]\n"
        "main*        up   infinite      2  idle* n[1-2]\n"
        "main*        up   infinite      1  down* n4\n"
        "main*        up   infinite      1  drain login\n"
        "main*        up   infinite      2    unk n[7-8]\n"
        "other      down      30:00      2   down c[1-2]\n"
        "drn       drain   infinite      1  fail* n5\n"
        "drn       drain   infinite      2 drain* n[3,6]\n"
        "drn       drain   infinite      2  idle* n[1-2]\n"
        "drn       drain   infinite      1  down* n4\n"
        "drn       drain   infinite      1  drain login\n"
        "drn       drain   infinite      2   down c[1-2]\n"
        "drn       drain   infinite      2    unk n[7-8]\n"
        "ina       inact   infinite      1  idle* n1\n"
        "empty        up   infinite      0    n/a \n"
    )


def test_reasons(probe: FakeController) -> None:
    assert run_command(probe, "sinfo", "-R").out == (
        "REASON               USER      TIMESTAMP           NODELIST\n"
        "failing              root      2026-11-30T12:00:00 n5\n"
        "bad fan              root      2026-11-30T12:00:00 n[3,6]\n"
        "very long reason tha root      2026-11-30T12:00:00 n4\n"
        "none                 root      Unknown             login\n"
        "conf                 root      Unknown             c[1-2]\n"
    )
    assert run_command(probe, "sinfo", "-h", "-R", "-l").out.splitlines()[:2] == [
        "failing              root(0)      2026-11-30T12:00:00 fail*  n5",
        "bad fan              root(0)      2026-11-30T12:00:00 drain* n[3,6]",
    ]


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        ("idle", ["fail* n5", "drain* n[3,6]", "idle* n[1-2]"]),
        ("down", ["down* n4"]),
        ("drain", ["drain* n[3,6]", "drain login"]),
        ("dra", ["drain* n[3,6]", "drain login"]),
        ("drained", ["drain* n[3,6]", "drain login"]),
        ("draining", []),
        ("fail", ["fail* n5"]),
        ("unk", ["drain login", "unk n[7-8]"]),
        ("no_respond", ["fail* n5", "drain* n[3,6]", "idle* n[1-2]", "down* n4"]),
        ("drain&idle", ["drain* n[3,6]"]),
        ("DOWN,fail", ["fail* n5", "down* n4"]),
        ("idle,drain", ["fail* n5", "drain* n[3,6]", "idle* n[1-2]", "drain login"]),
        ("alloc", []),
    ],
)
def test_states(probe: FakeController, states: str, shown: list[str]) -> None:
    assert run_command(probe, "sinfo", "-h", "-p", "main", "-o", "%t %N", "-t", states).out.splitlines() == shown


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ("-h -p main -o %A|%C|%F", "0/5|0/20/76/96|0/5/4/9\n"),
        ("-h -n n5 -o %A|%C|%F", "0/1|0/4/0/4|0/1/0/1\n"),
        ("-h -n n3 -o %A|%C|%F", "0/0|0/0/4/4|0/0/1/1\n"),
        ("-p main -o %O|%e|%c|%m|%z", "CPU_LOAD|FREE_MEM|CPUS|MEMORY|S:C:T\nN/A|N/A|4+|1000+|2+:1+:1+\n"),
        ("-p main -h -e -o %c|%m|%z|%N", "4|1000|4:1:1|n[1-8]\n64|1500000|2:16:2|login\n"),
        ("-N -n nope", "NODELIST   NODES PARTITION STATE \n"),
        ("-o %N -n nope", "NODELIST\n"),
        (
            "-N -h -t drain -p main",
            "login          1     main* drain \nn3             1     main* drain*\nn6             1     main* drain*\n",
        ),
        ("-a -h -p other -o %P|%a|%h|%s|%L|%l|%M", "other|down|NO|1-infinite|20:00|30:00|OFF\n"),
        ("-F -h -t future -p drn", "drn       drain   infinite      2   futr f[1-2]\n"),
        ("-h -n login -O stateComplete,cluster", "unknown+drain       N/A                 \n"),
    ],
)
def test_fields(probe: FakeController, arguments: str, output: str) -> None:
    assert run_command(probe, "sinfo", *arguments.split(" ")).out == output


def test_hidden_partitions_are_for_operators_and_those_who_ask(probe: FakeController) -> None:
    assert "other" in run_command(probe, "sinfo").out
    assert "other" not in run_command(probe, "sinfo", caller=NOBODY).out
    assert "other" in run_command(probe, "sinfo", "-a", caller=NOBODY).out
    assert "other" in run_command(probe, "sinfo", caller=NOBODY, environment={"SINFO_ALL": ""}).out


def test_long_names_make_room() -> None:
    text = (
        "ClusterName=x\nNodeName=averyveryverylongnode[1-2] CPUs=4 RealMemory=1000 Feature=x\nNodeName=s1\n"
        "PartitionName=averylongpartition Nodes=averyveryverylongnode[1-2] Default=YES MinNodes=2 MaxNodes=4\n"
        "PartitionName=b Nodes=s1 MinNodes=3 MaxNodes=3 RootOnly=YES AllowGroups=root,alice OverSubscribe=YES\n"
    )
    controller = FakeController(load_site({"/etc/slurm.conf": text}.get, "/etc"))
    assert run_command(controller, "sinfo").out == (
        "PARTITION           AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
        "averylongpartition*    up   infinite      2   idle averyveryverylongnode[1-2]\n"
        "b                      up   infinite      1   idle s1\n"
    )
    assert run_command(controller, "sinfo", "-N").out == (
        "NODELIST                NODES           PARTITION STATE \n"
        "averyveryverylongnode1      1 averylongpartition* idle  \n"
        "averyveryverylongnode2      1 averylongpartition* idle  \n"
        "s1                          1                   b idle  \n"
    )
    assert run_command(controller, "sinfo", "-l", "-h").out.splitlines() == [
        "averylongpartition*    up   infinite        2-4   no       NO        all      2        idle"
        "             averyveryverylongnode[1-2]",
        "b                      up   infinite          3  yes    YES:4 root,alice      1        idle             s1",
    ]


@pytest.mark.parametrize(
    ("arguments", "errors", "code"),
    [
        (["-Z"], "sinfo: invalid option -- 'Z'\nTry \"sinfo --help\" for more information\n", 1),
        (["-p"], "sinfo: option requires an argument -- 'p'\nTry \"sinfo --help\" for more information\n", 1),
        (["-i", "x"], "sinfo: error: Error: invalid entry for --iterate=x\n", 1),
        (["-n", "n[1"], "sinfo: error: 'n[1' invalid entry for --nodes\n", 1),
        (
            ["-n", "n[1-99999999999]"],
            "sinfo: error: _parse_single_range: Too many hosts in range `1-99999999999'\n"
            "sinfo: error: 'n[1-99999999999]' invalid entry for --nodes\n",
            1,
        ),
        (["-h", "-o", "%q"], "Invalid node format specification: q\n", 0),
        (["-h", "-O", "foo"], "sinfo: error: Invalid job format specification: foo\n", 0),
    ],
)
def test_refusals(controller: FakeController, arguments: list[str], errors: str, code: int) -> None:
    said = run_command(controller, "sinfo", *arguments)
    assert (said.err, said.code) == (errors, code)


@pytest.mark.parametrize(
    ("states", "nodes"),
    [
        ("idle+drain", "78"),
        ("idle&drain", "78"),
        ("down+~drain", "56"),
        ("down&!drain", "56"),
        ("~drain", "123456"),
        ("!drain", "123456"),
        ("alloc+~drain", ""),
        ("down,~idle", "56"),
        ("~down,idle", "123478"),
        ("~down&idle,drain", "78"),
        ("idle&&drain", "78"),
        ("idle&~", "123478"),
        ("~", "12345678"),
        ("BOOT", ""),
        ("~reboot_issued", "12345678"),
    ],
)
def test_states_together_and_all_but_one(controller: FakeController, states: str, nodes: str) -> None:
    for names, state in (("n[5-6]", "down"), ("n[7-8]", "drain")):
        assert run_command(controller, "scontrol", "update", f"nodename={names}", f"state={state}", "reason=x").code == 0
    said = run_command(controller, "sinfo", "-Nh", "-p", "debug", "-o", "%N", f"--states={states}")
    assert (said.out.split(), said.err, said.code) == ([f"n{each}" for each in nodes], "", 0)


@pytest.mark.parametrize(("states", "bad"), [("~~drain", "~drain"), ("idle & drain", "idle "), ("down+npc", "npc")])
def test_the_state_that_is_none_is_told(controller: FakeController, states: str, bad: str) -> None:
    assert run_command(controller, "sinfo", f"--states={states}").err.startswith(f'sinfo: error: Bad state string: "{bad}"\n')


@pytest.mark.parametrize(("form", "rows"), [("-O nodelist,port", 8), ("-o %N|%C", 2), ("-O nodelist,nodes", 1)])
def test_exact_rows_go_by_what_is_printed(form: str, rows: int) -> None:
    site = reference_site()
    ports = tuple(replace(node, port=7000 + place) for place, node in enumerate(site.nodes))
    controller = FakeController(replace(site, nodes=ports))
    printed = [
        len(run_command(controller, "sinfo", "-h", "-p", "debug", *words, *form.split()).out.splitlines())
        for words in ((), ("-e",))
    ]
    assert printed == [1, rows]


def test_unknown_state_lists_the_known_ones(controller: FakeController) -> None:
    said = run_command(controller, "sinfo", "-t", "foo")
    assert said.code == 1
    assert said.err.startswith(
        'sinfo: error: Bad state string: "foo"\nsinfo: error: valid states: unknown,down,idle,allocated,'
    )


def test_environment(controller: FakeController) -> None:
    assert run_command(controller, "sinfo", environment={"SINFO_FORMAT": "%R"}).out == "PARTITION\ndebug\ngpu\ncpu\n"
    assert run_command(controller, "sinfo", "-h", "-o", "%D", environment={"SINFO_FORMAT": "%R"}).out == "8\n"
    assert run_command(controller, "sinfo", "-h", environment={"SINFO_PARTITION": "cpu"}).out.startswith("cpu ")


def test_a_node_is_planned_for_a_waiting_job() -> None:
    controller = FakeController(reference_site())
    controller.submit(required_nodes="n8", tasks=16, time_limit=5)
    controller.start_all()
    controller.submit(required_nodes="n7,n8", minimum_nodes=2, tasks=32, time_limit=5)
    controller.start_all()
    assert run_command(controller, "sinfo", "-h", "-p", "cpu").out == (
        "cpu          up   infinite      1   plnd n7\n"
        "cpu          up   infinite      1  alloc n8\n"
        "cpu          up   infinite      2   idle n[5-6]\n"
    )


def test_a_node_has_a_row_in_each_of_its_partitions() -> None:
    said = run_command(FakeController(), "sinfo", "-h", "-N", "-n", "n3,n5", "-o", "%N").out
    assert said == "n3\nn3\nn5\nn5\n"


def test_the_mark_of_the_default_partition_stays() -> None:
    said = run_command(FakeController(), "sinfo", "-h", "-p", "debug", "-o", "%.4P|%3P|%P").out
    assert said == "deb*|de*|debug*\n"


@pytest.mark.parametrize(("typed", "first"), [("-S z", "debug*"), ("-S -z", "cpu"), ("-S '#-P'", "gpu"), ("-S n", "cpu")])
def test_orders(typed: str, first: str) -> None:
    words = typed.replace("'", "").split()
    assert run_command(FakeController(), "sinfo", "-h", "-o", "%P", *words).out.split()[0] == first


def test_empty_states_let_nothing_through() -> None:
    said = run_command(FakeController(), "sinfo", "-h", "-t", ",", "-o", "%P %t")
    assert (said.out, said.code) == ("debug* n/a\ngpu n/a\ncpu n/a\n", 0)
    assert run_command(FakeController(), "sinfo", "-h", "-t", "idle,,", "-p", "cpu", "-o", "%t").out == "idle\n"
