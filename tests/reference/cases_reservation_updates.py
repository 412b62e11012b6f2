"""scontrol update of reservations, key by key, and with shortened keys."""

from __future__ import annotations

from sides import Case

_VALUES = {
    "comment": "hello 'a b' ''",
    "comment+": "x",
    "flags": "maint maint,overlap ignore_jobs foo daily weekly hourly nosuch -maint +flex any_nodes static_alloc part_nodes"
    " time_float replace replace_down purge_comp purge_comp=5 no_hold_jobs_after_end magnetic user_delete",
    "flags+": "maint flex foo magnetic",
    "flags-": "maint magnetic foo overlap",
    "users": "alice root,alice nosuch '' +bob -alice",
    "users+": "alice nosuch",
    "users-": "root alice",
    "accounts+": "phys",
    "nodes+": "n7 nosuch",
    "features": "cpu nosuch ''",
    "licenses": "matlab:1 matlab:9 nosuch ''",
    "duration": "5 foo 0 +5 -5 unlimited ''",
    "duration+": "5 foo",
    "duration-": "5",
    "starttime": "now+2hour foo",
    "endtime": "now+3hour foo",
    "maxstartdelay": "5 foo ''",
    "skip": "x",
    "newname": "r2",
    "nosuch": "x",
    "nodelist": "n7",
    "extra": "x",
}


def _tried(key: str, values: str) -> Case:
    """Each value in turn, and which words of the record are others than before."""
    return Case(
        "s() { scontrol -o show reservation rr | tr ' ' '\\n' | grep -vE 'StartTime|EndTime'; };"
        " scontrol create reservation=rr start=now+1hour duration=30 users=root nodes=n8 > /dev/null; s > old;"
        f' for v in {values}; do echo "[$v]"; scontrol update reservation=rr "{key}=$v"; echo "exit $?"; s > new;'
        " diff old new | grep '^[<>]'; mv new old; done 2>&1; scontrol delete res=rr",
        title=f"reservation: {key}",
    )


_SHORTENED = """
StartTime EndTime Duration Flags Nodes Features Licenses PartitionName Users Groups Accounts AllowedPartitions QOS
BurstBuffer Comment ReservationName
""".split()  # noqa: SIM905

_COMMANDS = """
scontrol update reservation=nosuch
scontrol update reservation=nosuch duration=5 foo=bar
scontrol update reservation nosuch duration=5
scontrol update res=nosuch duration=5
scontrol update res= duration=5
scontrol update reservation=nosuch users=nosuch
scontrol create reservation
scontrol create reservation=x
scontrol create res=x start=now
scontrol create reservation=rr start=now+1hour duration=30 users=root nodes=n8 comment='a b' > made; scontrol show res rr; scontrol delete res=rr
""".strip().splitlines()  # noqa: E501

CASES = [
    *(_tried(key, values) for key, values in _VALUES.items()),
    *(
        Case(
            f"k={key}; for ((n = 1; n <= ${{#k}}; n++)); do scontrol update res=nosuch ${{k:0:n}}=foo; done",
            title=f"reservation: shortened {key}",
        )
        for key in _SHORTENED
    ),
    *(Case(command) for command in _COMMANDS),
]
