"""scontrol's reservations, sinfo -T and what jobs and nodes say of them: texts and codes as recorded from Slurm 26.05."""

from __future__ import annotations

import pytest
from command_fakes import ALICE, ROOT, FakeController, run_command

from slurmk.core.events import Tick


@pytest.fixture
def controller() -> FakeController:
    return FakeController()


CREATE = ("scontrol", "create", "reservation")
START = "start=now+2days"

REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    ((), "scontrol: error: A start time must be given.  No reservation created.\n"),
    ((START, "users=root", "nodes=n3"), "scontrol: error: An end time or duration must be given.  No reservation created.\n"),
    (
        (START, "duration=60", "users=root"),
        "scontrol: error: CoreCnt, Nodes, NodeCnt, TRES or Watts must be specified.  No reservation created.\n",
    ),
    (
        (START, "duration=60", "nodes=n3"),
        "scontrol: error: Either Users/Groups, AllowedPartitions, QOS and/or Accounts must be specified."
        "  No reservation created.\n",
    ),
    (
        (START, "end=now+1day", "users=root", "nodes=n3"),
        "scontrol: error: Start time cannot be after end time.  No reservation created.\n",
    ),
    (
        (START, "duration=60", "users=root", "nodes=n99"),
        "Error creating the reservation: Invalid node name specified\n",
    ),
    ((START, "duration=60", "users=nobodyx", "nodes=n3"), "Error creating the reservation: Unspecified error\n"),
    (
        (START, "duration=60", "users=root,-bin", "nodes=n3"),
        "Error creating the reservation: Unspecified error\n",
    ),
    (
        (START, "duration=60", "users=root", "groups=root", "nodes=n3"),
        "scontrol: error: Users and Groups are mutually exclusive.  You can have one or the other, but not both."
        "  No reservation created.\n",
    ),
    (
        (START, "duration=60", "users=root", "nodes=n3", "flags=foo"),
        "scontrol: error: Error parsing flags foo.  No reservation created.\n",
    ),
    (
        (START, "duration=abc", "users=root", "nodes=n3"),
        "scontrol: error: Invalid duration duration=abc.  No reservation created.\n",
    ),
    (
        ("start=xyz", "duration=60", "users=root", "nodes=n3"),
        "Invalid time specification (pos=0): xyz\nscontrol: error: Invalid start time start=xyz.  No reservation created.\n",
    ),
    (
        (START, "duration=60", "users=root", "nodes=n3", "blah=1"),
        "scontrol: error: Unknown parameter blah=1.  No reservation created.\n",
    ),
    (
        (START, "duration=60", "users=root", "nodes=n3", "blah"),
        "scontrol: error: Misformatted parameter 'blah', most options have a parameter after '='.  No reservation created.\n",
    ),
    (
        (START, "duration=60", "users=root", "nodes=n8", "flags=part_nodes"),
        "scontrol: error: PART_NODES flag requires specifying a Partition and ALL nodes.  No reservation created.\n",
    ),
    (
        (START, "duration=60", "users=root", "nodes=n8", "flags=force_start"),
        "scontrol: error: FORCE_START flag requires a reoccuring reservation. No reservation created.\n",
    ),
    (
        (START, "duration=60", "users=root", "nodes=n8", "flags=weekly,daily"),
        "scontrol: error: Reservation has multiple reoccurring flags. Please specify only one reoccurring flag\n"
        "Error creating the reservation: Requested operation not supported on this system\n",
    ),
    (
        (START, "duration=60", "users=root", "nodes=n8", "flags=replace"),
        "scontrol: error: REPLACE or REPLACE_DOWN flags should be used with the NodeCnt reservation option;"
        " do not specify Nodes\nError creating the reservation: Invalid node name specified\n",
    ),
    (
        (START, "duration=60", "users=root", "lic=matlab:9", "flags=any_nodes"),
        "Error creating the reservation: Invalid license specification\n",
    ),
    ((START, "duration=60", "users=root", "lic=matlab:2"), "Error creating the reservation: Invalid node name specified\n"),
    (("start=now-1hour", "duration=5", "users=root", "nodes=n4"), "Error creating the reservation: Invalid time specified\n"),
)


@pytest.mark.parametrize(("words", "text"), REFUSED)
def test_refusals(controller: FakeController, words: tuple[str, ...], text: str) -> None:
    said = run_command(controller, *CREATE, *words)
    assert (said.out, said.err, said.code) == ("", text, 1)


def test_what_cannot_be_chosen_is_explained(controller: FakeController) -> None:
    said = run_command(controller, *CREATE, START, "duration=60", "users=root", "nodecnt=200")
    assert said.err == "Error creating the reservation: Requested nodes are busy\n"
    assert said.out == (
        "Note, unless nodes are directly requested a reservation must exist in a single partition.\n"
        "If no partition is requested the default partition is assumed.\n"
    )


@pytest.mark.parametrize(
    ("words", "nodes", "flags"),
    [
        ("nodes=n8 flags=MAINT,OVERLAP,IGNORE_JOBS", "n8", "MAINT,OVERLAP,IGNORE_JOBS,SPEC_NODES"),
        ("nodes=n8 flags=WEEKLY,FLEX", "n8", "FLEX,WEEKLY,SPEC_NODES"),
        ("nodes=n8 flags=FLEX,MAGNETIC", "n8", "FLEX,SPEC_NODES,MAGNETIC"),
        ("nodes=n8 flags=PURGE_COMP", "n8", "SPEC_NODES,PURGE_COMP=00:05:00"),
        ("nodes=n8 flags=PURGE_COMP=10", "n8", "SPEC_NODES,PURGE_COMP=00:10:00"),
        ("nodes=n8 flags=STATIC_ALLOC", "n8", "SPEC_NODES,STATIC"),
        ("nodes=n8 flags=NO_HOLD_JOBS_AFTER", "n8", "SPEC_NODES,NO_HOLD_JOBS_AFTER_END"),
        ("nodes=n8 flags=magn", "n8", "SPEC_NODES,MAGNETIC"),
        ("nodes=n8 flags=flex,maint,daily", "n8", "MAINT,FLEX,DAILY,SPEC_NODES"),
        ("nodes=n8 flags=license_only", "n8", "SPEC_NODES,ANY_NODES"),
        ("nodes=all partition=gpu flags=part_nodes", "n[1-4]", "SPEC_NODES,PART_NODES"),
        ("partition=gpu", "n[1-4]", "SPEC_NODES,PART_NODES"),
        ("nodes=ALL", "n[1-8]", "SPEC_NODES,ALL_NODES"),
        ("nodecnt=2", "n[1-2]", ""),
        ("tres=node=2", "n[1-2]", ""),
    ],
)
def test_flags_and_nodes(controller: FakeController, words: str, nodes: str, flags: str) -> None:
    said = run_command(controller, *CREATE, "reservationname=f1", START, "duration=60", "users=root", *words.split())
    assert (said.out, said.err, said.code) == ("Reservation created: f1\n", "", 0)
    shown = run_command(controller, "scontrol", "-o", "show", "res", "f1").out.split()
    assert f"Nodes={nodes}" in shown
    assert f"Flags={flags}" in shown


def test_a_record(controller: FakeController) -> None:
    assert run_command(controller, *CREATE, "start=2026-12-30T11:11:17", "duration=60", "users=root", "nodes=n1").out == (
        "Reservation created: root_1\n"
    )
    text = """\
ReservationName=root_1 StartTime=2026-12-30T11:11:17 EndTime=2026-12-30T12:11:17 Duration=01:00:00
   Nodes=n1 NodeCnt=1 CoreCnt=8 Features=(null) PartitionName=(null) Flags=SPEC_NODES
   TRES=cpu=8
   AllowedPartitions=(null) QOS=(null)
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)
   MaxStartDelay=(null)

"""
    assert run_command(controller, "scontrol", "show", "reservation").out == text
    one_line = run_command(controller, "scontrol", "-o", "show", "reservation", "root_1").out
    assert one_line == " ".join(line.strip() for line in text.strip().split("\n")) + "\n"
    missing = run_command(controller, "scontrol", "show", "reservation", "nope")
    assert (missing.out, missing.code) == ("Reservation nope not found\n", 1)


def test_cores_of_each_node(controller: FakeController) -> None:
    run_command(controller, *CREATE, "reservation=c", START, "duration=infinite", "users=root", "nodes=n7,n8", "corecnt=4")
    shown = run_command(controller, "scontrol", "-o", "show", "res").out
    assert " Duration=365-00:00:00 Nodes=n[7-8] NodeCnt=2 CoreCnt=4 " in shown
    assert " Flags=SPEC_NODES   NodeName=n7 CoreIDs=0-2   NodeName=n8 CoreIDs=0 TRES=cpu=4 " in shown


def test_the_table(controller: FakeController) -> None:
    assert run_command(controller, "sinfo", "-T").out == "No reservations in the system\n"
    run_command(controller, *CREATE, "start=2026-12-30T11:11:17", "duration=60", "users=root", "nodes=n5,n6")
    assert run_command(controller, "sinfo", "-T").out == (
        "RESV_NAME     STATE           START_TIME             END_TIME     DURATION  NODELIST\n"
        "root_1     INACTIVE  2026-12-30T11:11:17  2026-12-30T12:11:17     01:00:00  n[5-6]\n"
    )
    licences = ("flags=license_only", "licenses=matlab:1")
    run_command(controller, *CREATE, "start=2026-12-30T11:11:17", "duration=60", "users=root", *licences)
    assert run_command(controller, "sinfo", "-T").out.splitlines()[-1].endswith("  (null)")


def test_updates(controller: FakeController) -> None:
    run_command(controller, *CREATE, "reservationname=r", START, "duration=60", "users=root", "nodes=n5")

    def update(*words: str) -> tuple[str, str, int]:
        said = run_command(controller, "scontrol", "update", *words)
        return said.out, said.err, said.code

    assert update("reservation=r", "duration=120") == ("Reservation updated.\n", "", 0)
    assert update("reservationname=nope", "duration=5") == ("", "slurm_update error: Requested reservation is invalid\n", 1)
    assert update("reservation", "r", "duration=5") == (
        "",
        "scontrol: error: Misformatted parameter 'r', most options have a parameter after '='.  No reservation update.\n",
        1,
    )
    assert update("reservationname=r", "foo=1") == (
        "",
        "scontrol: error: Unknown parameter foo=1.  No reservation update.\n",
        1,
    )
    assert update("reservationname=r", "users=") == (
        "",
        "slurm_update error: Reservation request lacks users, groups or accounts\n",
        1,
    )
    assert update("reservationname=r", "flags-=overlap") == (
        "",
        "scontrol: error: Error parsing flags -overlap.  No reservation update.\n",
        1,
    )
    assert update("reservationname=r", "skip") == (
        "",
        "slurm_update error: Reservation given is not skipable, try deleting instead\n",
        1,
    )
    assert update("reservationname=r", "flags=maint,ignore_jobs", "maxstartdelay=10", "nodes+=n6") == (
        "Reservation updated.\n",
        "",
        0,
    )
    shown = run_command(controller, "scontrol", "-o", "show", "res", "r").out
    assert " Duration=02:00:00 Nodes=n[5-6] NodeCnt=2 CoreCnt=32 " in shown
    assert " Flags=MAINT,IGNORE_JOBS,SPEC_NODES " in shown
    assert shown.endswith(" MaxStartDelay=00:10:00\n")
    assert update("reservationname=r", "flags-=maint")[2] == 0
    assert " Flags=IGNORE_JOBS,SPEC_NODES " in run_command(controller, "scontrol", "-o", "show", "res", "r").out
    said = run_command(controller, "scontrol", "update", "reservationname=r", "duration=5", caller=ALICE)
    assert (said.err, said.code) == ("slurm_update error: Invalid user id\n", 1)


def test_deleting(controller: FakeController) -> None:
    run_command(controller, *CREATE, "reservationname=r", START, "duration=60", "users=root", "nodes=n5")

    def delete(*words: str) -> tuple[str, str, int]:
        said = run_command(controller, "scontrol", "delete", *words)
        return said.out, said.err, said.code

    assert delete("reservation") == (
        "",
        "scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'\n",
        1,
    )
    assert delete("res=nope") == ("", "delete_reservation res=nope: Requested reservation is invalid\n", 1)
    assert delete("reservation", "nope") == ("", "delete_reservation reservation: Requested reservation is invalid\n", 1)
    controller.submit(reservation="r")
    assert delete("reservationname=r") == ("", "delete_reservation reservationname=r: Requested reservation is in use\n", 1)
    run_command(controller, "scancel", "1")
    assert delete("reservationname=r") == ("", "", 0)


def test_jobs_and_nodes_say_so(controller: FakeController) -> None:
    run_command(controller, *CREATE, "reservationname=r", "start=now", "duration=60", "users=root", "nodes=n5")
    run_command(controller, *CREATE, "reservationname=m", "start=now", "duration=60", "users=root", "nodes=n6", "flags=maint")
    controller.handle(Tick(controller.now()))
    node = run_command(controller, "scontrol", "show", "node", "n5").out
    assert "State=IDLE+RESERVED " in node
    assert node.rstrip().endswith("ReservationName=r")
    assert run_command(controller, "sinfo", "-h", "-o", "%t %N", "-p", "cpu").out == "maint n6\nresv n5\nidle n[7-8]\n"
    controller.submit(reservation="r")
    controller.start_all()
    assert run_command(controller, "squeue", "-h", "-o", "%v %N").out == "r n5\n"
    assert run_command(controller, "squeue", "-h", "-R", "m", "-o", "%i").out == ""
    assert run_command(controller, "squeue", "-h", "-R", "m,r", "-o", "%i").out == "1\n"
    assert "   Reservation=r\n" in run_command(controller, "scontrol", "show", "job", "1").out


def test_a_users_may_delete_flag(controller: FakeController) -> None:
    words = ("reservationname=r", START, "duration=60", "accounts=phys", "nodes=n5", "flags=user_delete")
    run_command(controller, *CREATE, *words, caller=ROOT)
    said = run_command(controller, "scontrol", "update", "reservationname=r", "nodes=n6", caller=ALICE)
    assert said.code == 1


COUNTS: tuple[tuple[str, str], ...] = (
    ("nodecnt=2,1", "scontrol: error: Using a comma separated array for NodeCnt is no longer valid.\n"),
    ("corecnt=2,1", "scontrol: error: Using a comma separated array for CoreCnt is no longer valid.\n"),
    ("nodecnt=2-3", 'scontrol: error: "2-3" is not a valid node count\n'),
    ("nodecnt+=x", 'scontrol: error: "x" is not a valid node count\n'),
    (
        "NodeCnt-=1",
        "scontrol: error: The +=/-= notation is not supported when updating NodeCnt.  No reservation update.\n",
    ),
    (
        "corecnt=2x",
        "scontrol: error: Updating core/node TRES not supported for core-based reservations\n"
        "slurm_update error: Core-based reservation can not be updated\n",
    ),
    ("corecnt=x", ""),
)


@pytest.mark.parametrize(("word", "error"), COUNTS)
def test_counts_of_a_reservation_that_there_is(controller: FakeController, word: str, error: str) -> None:
    run_command(controller, *CREATE, "reservationname=f1", START, "duration=60", "users=root", "nodecnt=2")
    said = run_command(controller, "scontrol", "update", "reservation=f1", word)
    assert (said.out, said.err, said.code) == ("" if error else "Reservation updated.\n", error, bool(error))


@pytest.mark.parametrize("word", ["nodecnt=1", "nodes=n1"])
def test_a_reservation_of_cores_keeps_its_nodes(controller: FakeController, word: str) -> None:
    run_command(controller, *CREATE, "reservationname=f1", START, "duration=60", "users=root", "nodes=n7,n8", "corecnt=4")
    said = run_command(controller, "scontrol", "update", "reservation=f1", word)
    assert said.err.endswith("slurm_update error: Core-based reservation can not be updated\n")
    assert " Nodes=n[7-8] NodeCnt=2 CoreCnt=4 " in run_command(controller, "scontrol", "-o", "show", "res", "f1").out


def test_cores_come_from_nodes_that_have_some_left(controller: FakeController) -> None:
    request = (START, "duration=60", "users=root", "corecnt=6")
    for name in ("one", "two", "three"):
        assert run_command(controller, *CREATE, f"reservationname={name}", *request).code == 0
    shown = run_command(controller, "scontrol", "-o", "show", "res", "three").out
    assert "NodeName=n2 CoreIDs=4-7" in shown
    assert "NodeName=n3 CoreIDs=0-1" in shown
