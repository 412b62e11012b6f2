"""Reservations: what is refused, what is made and shown, how it is changed, and who may use it.

Those that are made lie far ahead, so that they are in nobody's way, and are deleted by the command that made them.
"""

from __future__ import annotations

from sides import Case

AHEAD = "start=now+300days duration=60"
SHOWN = "scontrol -o show res cmp; scontrol delete reservationname=cmp"

_REFUSED = (
    "scontrol create reservation",
    f"scontrol create reservationname=cmp {AHEAD} users=alice",
    f"scontrol create reservationname=cmp {AHEAD} nodes=n3",
    "scontrol create reservationname=cmp start=now+300days users=alice nodes=n3",
    "scontrol create reservationname=cmp duration=60 users=alice nodes=n3",
    "scontrol create reservationname=cmp start=now+300days end=now+299days users=alice nodes=n3",
    "scontrol create reservationname=cmp start=now-1hour duration=60 users=alice nodes=n4",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodes=n99",
    f"scontrol create reservationname=cmp {AHEAD} users=nosuchuser nodes=n3",
    f"scontrol create reservationname=cmp {AHEAD} users=alice,-bob nodes=n3",
    f"scontrol create reservationname=cmp {AHEAD} users=alice groups=users nodes=n3",
    f"scontrol create reservationname=cmp {AHEAD} groups=nosuchgroup nodes=n3",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodes=n3 flags=foo",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodes=n3 flags=spec_nodes",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodes=n3 flags=weekly,daily",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodes=n3 flags=time_float,daily",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodes=n3 flags=replace",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodes=n3 flags=part_nodes",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodes=n3 flags=force_start",
    "scontrol create reservationname=cmp start=now+300days duration=abc users=alice nodes=n3",
    "scontrol create reservationname=cmp start=xyz duration=60 users=alice nodes=n3",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodes=n3 foo=1",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodes=n3 foo",
    f"scontrol create reservationname=cmp {AHEAD} users=alice nodecnt=200",
    f"scontrol create reservationname=cmp {AHEAD} users=alice lic=matlab:9 flags=any_nodes",
    f"scontrol create reservationname=cmp {AHEAD} users=alice lic=matlab:1",
    "scontrol show reservation nosuch",
    "scontrol delete reservation",
    "scontrol delete reservation nosuch",
    "scontrol delete reservationname=nosuch",
    "scontrol update reservationname=nosuch duration=5",
    "scontrol update reservationname=nosuch foo=1",
    "sbatch --reservation=nosuch --wrap true",
)
_MADE = (
    "nodes=n7",
    "nodes=n7 flags=MAINT,OVERLAP,IGNORE_JOBS",
    "nodes=n7 flags=weekly,flex",
    "nodes=n7 flags=hourly",
    "nodes=n7 flags=weekday",
    "nodes=n7 flags=any_nodes",
    "nodes=n7 flags=flex,magnetic",
    "nodes=n7 flags=purge_comp",
    "nodes=n7 flags=purge_comp=10",
    "nodes=n7 flags=static_alloc",
    "nodes=n7 flags=user_delete",
    "nodes=n7 flags=no_hold_jobs_after",
    "nodes=n7,n8 maxstartdelay=5",
    "nodes=n7 corecnt=2",
    "nodes=all partition=gpu flags=part_nodes",
    "partition=gpu",
    "nodes=ALL",
    "lic=matlab:2 flags=any_nodes",
)
_CHANGED = (
    "duration=120",
    "users+=bob",
    "users-=alice",
    "users=",
    "users=bob",
    "nodes+=n6",
    "nodes=n6",
    "flags=maint,ignore_jobs",
    "flags+=flex",
    "flags-=overlap",
    "flags=daily",
    "flags=time_float",
    "starttime=now+310days",
    "endtime=now+10days",
    "endtime=now+310days",
    "starttime=now-1day",
    "skip",
    "features=cpu",
    "partition=cpu",
    "maxstartdelay=10",
    "foo=1",
    "",
)
_USED = (
    "runuser -u bob -- sbatch --reservation=cmp -p cpu --wrap true",
    "runuser -u alice -- sbatch --reservation=cmp -p cpu -w n5 --wrap true; scontrol delete res=cmp; scancel -R cmp",
    "runuser -u alice -- sbatch --reservation=cmp -p cpu -N 2 --wrap true; squeue -h -R cmp -o '%v %T'; scancel -R cmp",
    "runuser -u alice -- scontrol update reservationname=cmp duration=5",
    "runuser -u alice -- scontrol delete reservationname=cmp",
    "sinfo -T | grep -v '^RESV_NAME' | grep cmp",
)


def _create(rest: str) -> str:
    return f"scontrol create reservationname=cmp {AHEAD} users=alice {rest}"


CASES = [
    *(Case(command) for command in _REFUSED),
    *(Case(f"{_create(rest)}; {SHOWN}") for rest in _MADE),
    *(Case(f"{_create('nodes=n7')}; scontrol update reservationname=cmp {change}; {SHOWN}") for change in _CHANGED),
    *(
        Case(
            f"{_create('nodes=n7')}; {command}; scontrol delete reservationname=cmp", setup=("true",)
        )  # apart: jobs come of it
        for command in _USED
    ),
    Case(f"{_create('nodes=n7')}; {_create('nodes=n8')}; scontrol delete reservationname=cmp"),
    Case(
        f"{_create('nodes=n7')}; scontrol create reservationname=other {AHEAD} users=bob nodes=n7;"
        " scontrol delete reservationname=cmp"
    ),
]
