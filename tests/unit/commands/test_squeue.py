"""squeue: what it prints and refuses, as recorded from Slurm 26.05."""

from __future__ import annotations

from dataclasses import replace

import pytest
from command_fakes import ALICE, BOB, NOBODY, NOON, ROOT, FakeController, reference_site, run_command

from slurmk.core.events import Submission, Submit
from slurmk.model.job import Credentials, JobRequest
from slurmk.model.states import JobFlag, JobState

HEADER = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"


@pytest.fixture
def controller() -> FakeController:
    return FakeController()


def test_an_empty_queue_is_a_header(controller: FakeController) -> None:
    said = run_command(controller, "squeue")
    assert (said.out, said.err, said.code) == (HEADER, "", 0)


def test_default_columns_and_order(controller: FakeController) -> None:
    for name in ("hh1", "hh2"):
        controller.submit(name=name, hold=True)
    controller.submit(name="hha", array="1-3%2", hold=True)
    controller.submit(name="hhc", partition="cpu", hold=True)
    controller.submit(name="hhb", partition="debug,cpu", hold=True)
    assert run_command(controller, "squeue").out == HEADER + (
        "                 4       cpu      hhc     root PD       0:00      1 (JobHeldUser)\n"
        "         3_[1-3%2]     debug      hha     root PD       0:00      1 (JobHeldUser)\n"
        "                 2     debug      hh2     root PD       0:00      1 (JobHeldUser)\n"
        "                 1     debug      hh1     root PD       0:00      1 (JobHeldUser)\n"
        "                 5 debug,cpu      hhb     root PD       0:00      1 (JobHeldUser)\n"
    )


def test_elements_and_partitions_apart(controller: FakeController) -> None:
    controller.submit(name="hha", array="1-3%2", hold=True)
    controller.submit(name="hhb", partition="debug,cpu", hold=True)
    said = run_command(controller, "squeue", "-r", "-P", "-h", "-o", "%i %P %F %K %A")
    assert said.out == "2 cpu 2 N/A 2\n2 debug 2 N/A 2\n1_1 debug 1 1 1\n1_2 debug 1 2 1\n1_3 debug 1 3 1\n"


def test_long_listing(controller: FakeController) -> None:
    controller.submit(ALICE, partition="gpu", time_limit=5 * 1440, hold=True)
    lines = run_command(controller, "squeue", "-l").out.splitlines()
    assert lines[0] == "Mon Nov 30 12:00:00 2026"
    assert lines[1] == "             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)"
    assert lines[2] == "                 1       gpu     wrap    alice  PENDING       0:00 5-00:00:00      1 (JobHeldUser)"


def test_running_jobs_show_their_nodes_and_times(controller: FakeController) -> None:
    controller.submit(name="two", minimum_nodes=2, tasks=2, time_limit=5)
    controller.start_all()
    controller.time += 2
    said = run_command(controller, "squeue", "-h", "-o", "%i|%t|%M|%L|%D|%C|%N|%R|%B|%r")
    assert said.out == "1|R|0:02|4:58|2|2|n[1-2]|n[1-2]|n1|None\n"


def test_a_named_cluster_stands_above_the_table_also_where_the_job_is_unknown(controller: FakeController) -> None:
    said = run_command(controller, "squeue", "-M", "reference", "-j", "999999")
    assert (said.out, said.err) == ("CLUSTER: reference\n", "slurm_load_jobs error: Invalid job id specified\n")
    for words in (["-h", "-j", "999999"], ["--json", "-j", "999999"]):
        assert "CLUSTER" not in run_command(controller, "squeue", "-M", "reference", *words).out


@pytest.mark.parametrize(
    ("state", "flags", "found", "code"),
    [
        (JobState.PENDING, JobFlag.SPECIAL_EXIT, ("SE",), "SE"),
        (JobState.PENDING, JobFlag.REQUEUE_HOLD, ("RH",), "RH"),
        (JobState.PENDING, JobFlag.EXPEDITING, ("EXPEDITING",), "PD"),
        (JobState.RUNNING, JobFlag.STOPPED, ("ST",), "ST"),
        (JobState.RUNNING, JobFlag.CONFIGURING, ("R", "CF"), "CF"),
        (JobState.RUNNING, JobFlag.NONE, ("R",), "R"),
    ],
)
def test_a_job_with_a_flag_is_in_that_state_alone(
    controller: FakeController, state: JobState, flags: JobFlag, found: tuple[str, ...], code: str
) -> None:
    job = controller.submit()
    controller.machine._state.jobs[job] = replace(controller.machine.jobs[job], state=state, flags=flags)
    for asked in ("PD", "R", "SE", "RH", "EXPEDITING", "ST", "CF"):
        said = run_command(controller, "squeue", "-h", "-t", asked, "-o", "%t").out
        assert said == (f"{code}\n" if asked in found else ""), asked


def test_finished_jobs_only_when_asked_for(controller: FakeController) -> None:
    job = controller.submit(name="done")
    controller.start_all()
    controller.end(job, 3 << 8)
    assert run_command(controller, "squeue").out == HEADER
    assert run_command(controller, "squeue", "-h", "-t", "all").out == (
        "                 1     debug     done     root  F       0:00      1 (NonZeroExitCode)\n"
    )
    assert run_command(controller, "squeue", "-h", "-t", "F", "-o", "%T").out == "FAILED\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["-j", "999999"], "slurm_load_jobs error: Invalid job id specified\n"),
        (["-h", "-j999999"], "slurm_load_jobs error: Invalid job id specified\n"),
        (["--jo", "5"], "slurm_load_jobs error: Invalid job id specified\n"),
        (["-j", "abc"], "squeue: error: Invalid job id: abc\n"),
        (["-j", "5x"], "squeue: error: Invalid job id: 5x\n"),
        (["-j", "0"], "squeue: error: Invalid job id: 0\n"),
        (["-j", "1_[1-2]"], "squeue: error: Invalid job id: 1_[1-2]\n"),
        (["-j", "999999999999"], "squeue: error: Invalid job id: 999999999999\n"),
        (["-s", "foo"], "squeue: error: Invalid job_step id: foo.??\n"),
        (["-w", "nosuch"], "squeue: error: Invalid node name nosuch\n"),
        (["-w", "n[1-"], "squeue: error: 'n[1-' invalid entry for --nodelist\n"),
        (["-i", "0"], "squeue: error: --iterate=0\n\n"),
        (["-o", "%i", "-O", "jobid"], "squeue: error: -O (--Format) is incompatible with -o (--format)\n"),
        (["--running-over=0"], "squeue: fatal: Invalid time limit specification\n"),
        (["-Z"], "squeue: invalid option -- 'Z'\nTry \"squeue --help\" for more information\n"),
        (["--foo"], "squeue: unrecognized option '--foo'\nTry \"squeue --help\" for more information\n"),
        (["-o"], "squeue: option requires an argument -- 'o'\nTry \"squeue --help\" for more information\n"),
    ],
)
def test_refusals(controller: FakeController, words: list[str], error: str) -> None:
    said = run_command(controller, "squeue", *words)
    assert (said.out, said.err, said.code) == ("", error, 1)


def test_unknown_states_are_told_the_known_ones(controller: FakeController) -> None:
    said = run_command(controller, "squeue", "-t", "PD,foo")
    assert said.err.startswith(
        "squeue: error: Invalid job state specified: foo\nsqueue: error: Valid job states include: pending,"
    )
    assert said.err.endswith("special_exit,stage_out,stopped\n\n")
    assert said.code == 1


@pytest.mark.parametrize("words", [["-j", "999999,999998"], ["-j", ""], ["-u", ""], ["-p", "nosuch"], ["-A", "x"], ["-t", ""]])
def test_filters_that_match_nothing_leave_the_header(controller: FakeController, words: list[str]) -> None:
    controller.submit(hold=True)
    said = run_command(controller, "squeue", *words)
    assert (said.out, said.err, said.code) == (HEADER, "", 0)


def test_an_unknown_user_is_told_and_the_others_are_shown(controller: FakeController) -> None:
    controller.submit(ROOT, hold=True)
    said = run_command(controller, "squeue", "-u", "nosuch,root", "-h", "-o", "%u")
    assert (said.out, said.err, said.code) == ("root\n", "squeue: error: Invalid user: nosuch\n\n", 0)


def test_a_wrong_sort_key_ends_after_the_header(controller: FakeController) -> None:
    said = run_command(controller, "squeue", "-S", "foo")
    assert (said.out, said.err, said.code) == (HEADER, "squeue: error: Invalid sort specification: o\n", 1)


def test_sorting(controller: FakeController) -> None:
    for name in ("b", "a", "c"):
        controller.submit(name=name, hold=True)
    assert run_command(controller, "squeue", "-h", "-o", "%j", "-S", "j").out == "a\nb\nc\n"
    assert run_command(controller, "squeue", "-h", "-o", "%j", "-S", "-i").out == "c\na\nb\n"
    assert run_command(controller, "squeue", "-h", "-o", "%j", environment={"SQUEUE_SORT": "i"}).out == "b\na\nc\n"


def test_what_waits_of_an_array_is_behind_its_elements(controller: FakeController) -> None:
    controller.submit(array="0-3%2")
    controller.start_all()
    controller.submit(hold=True)
    assert run_command(controller, "squeue", "-h", "-o", "%i", "-S", "i").out == "1_0\n1_1\n1_[2-3%2]\n4\n"
    assert run_command(controller, "squeue", "-h", "-o", "%i", "-S", "-i").out == "4\n1_[2-3%2]\n1_1\n1_0\n"


def test_environment_gives_way_to_options(controller: FakeController) -> None:
    controller.submit(name="x", hold=True)
    environment = {"SQUEUE_FORMAT2": "jobid:4,name:3"}
    assert run_command(controller, "squeue", environment=environment).out == "JOBINAM\n1   x  \n"
    assert run_command(controller, "squeue", "-o", "%j", environment=environment).out == "NAME\nx\n"


def test_unknown_fields_are_told_and_left_out(controller: FakeController) -> None:
    said = run_command(controller, "squeue", "-O", "jobid,xyz:5")
    assert (said.out, said.err) == ("JOBID               \n", "squeue: error: Invalid job format specification: xyz\n")
    said = run_command(controller, "squeue", "-s", "-o", "%i%a")
    assert (said.out, said.err) == ("STEPID%a\n", "squeue: error: Invalid job step format specification: a\n")


EMPTY_JOB = (
    "phys|N/A|1|0|N/A|(null)|root|NO|1|wrap|(null)|10:00|100M||(null)|0.00000000000000|normal|JobHeldUser|SLUID|PD|root|(null)|"
    "(null)||0|*:*:*|1|n/a|1|1|(null)|1|0|*|*|*|N/A|10:00|0:00||0|debug|0|(JobHeldUser)|N/A|PENDING|0|2026-11-30T12:00:00|(null)|"
    "N/A|(null)|/w"
)


def test_every_letter_of_a_held_job(controller: FakeController) -> None:
    controller.submit(hold=True, account="phys")
    sluid = controller.machine.jobs[1].sluid
    header, line = run_command(controller, "squeue", "-o", "%all").out.splitlines()
    assert line.replace(sluid, "SLUID") == EMPTY_JOB
    assert header.startswith(
        "ACCOUNT|TRES_PER_NODE|MIN_CPUS|MIN_TMP_DISK|END_TIME|FEATURES|GROUP|OVER_SUBSCRIBE|JOBID|NAME|COMMENT"
    )


LONG_VALUES = {
    "AccrueTime": ("ACCRUE_TIME", "N/A"),
    "admin_comment": ("ADMIN_COMMENT", "(null)"),
    "BatchFlag": ("BATCH_FLAG", "1"),
    "BoardsPerNode": ("BOARDS_PER_NODE", "0"),
    "ContainerType": ("CONTAINERTYPE", "(null)"),
    "cpus-per-task": ("CPUS_PER_TASK", "1"),
    "CronJob": ("CRON_JOB", "No"),
    "DelayBoot": ("DELAY_BOOT", "0:00"),
    "DerivedEC": ("DERIVED_EC", "0:0"),
    "Exclusive": ("EXCLUSIVE", "NO"),
    "HetJobIdSet": ("HET_JOB_ID_SET", "N/A"),
    "MaxCPUs": ("MAX_CPUS", "1"),
    "mem-per-tres": ("MEM_PER_TRES", "N/A"),
    "MinTime": ("TIME_MIN", "0:00"),
    "NTPerNode": ("NTASKS_PER_NODE", "0"),
    "NTPerCore": ("NTASKS_PER_CORE", "N/A"),
    "Origin": ("ORIGIN", "NA"),
    "Profile": ("PROFILE", "NotSet"),
    "Requeue": ("REQUEUE", "1"),
    "SegmentSize": ("SEGMENT_SIZE", "N/A"),
    "SiblingsViableRaw": ("VIALBLE_SIBLINGS_RAW", "NA"),
    "StdIn": ("STDIN", "/dev/null"),
    "StdOut": ("STDOUT", "slurm-%j.out"),
    "tres-alloc": ("TRES_ALLOC", "cpu=1,mem=100M,node=1,billing=1"),
    "tres-per-task": ("TRES_PER_TASK", "N/A"),
    "Wait4Switch": ("WAIT4SWITCH", "0:00"),
}


@pytest.mark.parametrize("name", LONG_VALUES)
def test_names_of_a_held_job(controller: FakeController, name: str) -> None:
    controller.submit(hold=True)
    assert run_command(controller, "squeue", "-O", f"{name}:").out.split("\n")[:2] == list(LONG_VALUES[name])


def test_every_name_that_help_prints_can_be_asked_for(controller: FakeController) -> None:
    controller.submit(hold=True)
    controller.submit(minimum_nodes=2, tasks=2)
    controller.start_all()
    names = run_command(controller, "squeue", "--helpFormat").out.split()
    assert len(names) == 119
    said = run_command(controller, "squeue", "-t", "all", "-O", ",".join(names))
    assert (said.err, said.code, len(said.out.splitlines())) == ("", 0, 3)


def test_steps(controller: FakeController) -> None:
    job = controller.submit(minimum_nodes=2, tasks=2)
    controller.start_all()
    controller.add_step(job, name="mystep")
    controller.time += 7
    assert run_command(controller, "squeue", "-s").out == (
        "         STEPID     NAME PARTITION     USER      TIME NODELIST\n"
        "            1.0   mystep     debug     root      0:07 n[1-2]\n"
        "        1.batch    batch     debug     root      0:07 n1\n"
    )
    assert run_command(controller, "squeue", "-h", "-s", "1.0", "-o", "%i").out == "1.0\n"


def test_long_array_ids_are_cut(controller: FakeController) -> None:
    controller.submit(array="1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41,44,50-60", hold=True)
    assert run_command(controller, "squeue", "-h", "-o", "%i|%K").out == (
        "1_[1,3,5,7,9,11,13,15,17,19,21,|1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41,44...\n"
    )
    said = run_command(controller, "squeue", "-h", "-o", "%i", environment={"SLURM_BITSTR_LEN": "30"})
    assert said.out == "1_[1,3,5,7,9,11,13,15,17,19,2...]\n"


def test_naming_elements(controller: FakeController) -> None:
    controller.submit(array="1-5", hold=True)
    assert run_command(controller, "squeue", "-h", "-o", "%i", "-j", "1_3").out == "1_3\n"
    assert run_command(controller, "squeue", "-h", "-o", "%i", "-j", "1_9").out == ""
    assert run_command(controller, "squeue", "-h", "-o", "%i", "-j", "1").out == "1_[1-5]\n"


def test_only_job_state_works_alone(controller: FakeController) -> None:
    controller.submit(hold=True)
    assert run_command(controller, "squeue", "--only-job-state").out == "             JOBID ST\n                 1 PD\n"
    said = run_command(controller, "squeue", "--only-job-state", "-l")
    assert said.err.startswith("squeue: fatal: Option --only-job-state only works alone, with -j (--jobs)")
    assert said.code == 1


def test_planned_starts(controller: FakeController) -> None:
    controller.submit(name="first", minimum_nodes=8, tasks=8, shared="none", time_limit=30)
    controller.start_all()
    controller.submit(name="next", minimum_nodes=8, tasks=8, time_limit=10)
    controller.submit(name="held", hold=True)
    controller.start_all()
    header, first, second = run_command(controller, "squeue", "--start").out.splitlines()
    assert header.endswith("ST          START_TIME  NODES SCHEDNODES           NODELIST(REASON)")
    assert "2026-11-30T12:30:00      8 n[1-8]" in first
    assert second.endswith("PD                 N/A      1 (null)               (JobHeldUser)")


def test_private_jobs_are_seen_by_their_user_and_operators() -> None:
    controller = FakeController(reference_site(private_data=("jobs",)))
    controller.submit(ALICE, hold=True)
    controller.submit(BOB, hold=True)
    assert run_command(controller, "squeue", "-h", "-o", "%u", caller=ALICE).out == "alice\n"
    assert run_command(controller, "squeue", "-h", "-o", "%u", caller=NOBODY).out == ""
    assert run_command(controller, "squeue", "-h", "-o", "%u", caller=ROOT).out == "bob\nalice\n"


def test_me_and_not_me(controller: FakeController) -> None:
    controller.submit(ALICE, hold=True)
    controller.submit(BOB, hold=True)
    assert run_command(controller, "squeue", "-h", "-o", "%u", "--me", caller=ALICE).out == "alice\n"
    assert run_command(controller, "squeue", "-h", "-o", "%u", "--notme", caller=ALICE).out == "bob\n"


def test_clusters(controller: FakeController) -> None:
    assert run_command(controller, "squeue", "-M", "reference").out == "CLUSTER: reference\n" + HEADER
    said = run_command(controller, "squeue", "-M", "foo")
    assert said.err.startswith("squeue: error: No cluster 'foo' known by database.\n")
    assert said.err.endswith("squeue: fatal: Could not get cluster information\n")


def test_a_long_answer_lets_others_in(controller: FakeController) -> None:
    for _ in range(2000):
        controller.submit(hold=True)
    said = run_command(controller, "squeue", "-h")
    assert len(said.out.splitlines()) == 2000
    assert said.output.drained >= 4


def test_jobs_with_equal_keys_start_with_what_starts_last() -> None:
    controller = FakeController()
    later = controller.submit(name="later", hold=True, begin_time=NOON + 7200)
    sooner = controller.submit(name="sooner", hold=True, begin_time=NOON + 3600)
    first, second = controller.submit(name="first", hold=True), controller.submit(name="second", hold=True)
    assert ids(controller, "-S", "c") == [later, sooner, second, first]
    assert ids(controller, "-S", "S") == [sooner, later, first, second]
    assert ids(controller, "-S", "-S") == [later, sooner, first, second]
    assert ids(controller, "-S", "N") == [first, second, sooner, later]


def ids(controller: FakeController, *words: str) -> list[int]:
    return [int(line) for line in run_command(controller, "squeue", "-h", "-o", "%i", *words).out.split()]


def test_several_elements_of_an_array_share_a_row() -> None:
    controller = FakeController()
    job_id = controller.submit(hold=True, array="1-9%2")
    said = run_command(controller, "squeue", "-h", "-o", "%i", "-j", f"{job_id}_3,{job_id}_5,{job_id}_12").out
    assert said == f"{job_id}_[3,5]\n"
    assert run_command(controller, "squeue", "-h", "-o", "%i", "-j", f"{job_id}_3").out == f"{job_id}_3\n"


def test_variables_stand_for_options_that_were_not_typed() -> None:
    controller = FakeController()
    controller.submit(name="one", hold=True)
    both = {"SQUEUE_FORMAT": "%j", "SQUEUE_FORMAT2": "jobid"}
    assert run_command(controller, "squeue", "-h", environment=both).out == "one\n"
    assert run_command(controller, "squeue", "-h", "-s", environment=both).out == ""
    assert run_command(controller, "squeue", "-h", "-o", "%t", environment=both).out == "PD\n"


def test_a_format_and_a_long_listing_exclude_each_other() -> None:
    said = run_command(FakeController(), "squeue", "-l", "-o", "%i")
    assert said.err == (
        "squeue: fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry.\n"
    )
    assert said.code == 1


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"prefer": "cpu"}, "cpu|"),
        ({"prefer": "cpu", "constraints": "a100"}, "cpu|"),
        ({"prefer": "cpu", "required_nodes": "n1"}, "|cpu"),
        ({"constraints": "ib"}, "ib|"),
    ],
)
def test_features_that_a_running_job_preferred(asked: dict[str, str], shown: str) -> None:
    controller = FakeController()
    controller.submit(hold=True, **asked)
    waiting = run_command(controller, "squeue", "-h", "-O", "feature:.12,prefer:.12").out.split()
    assert waiting == [asked.get("constraints", "(null)"), asked.get("prefer", "(null)")]
    controller.submit(**asked)
    controller.start_all()
    said = run_command(controller, "squeue", "-h", "-j", "2", "-O", "feature:.12,prefer:.12").out.split()
    assert said == [word or "(null)" for word in shown.split("|")]


def test_naming_jobs_shows_what_a_look_at_all_would(controller: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays with elements that run and that wait, components of a het job, and ordinary ones, in every state."""
    controller.submit(array="1-6%2")
    done = controller.submit(name="done")
    controller.start_all()
    controller.submit(name="waits", hold=True)
    owner = Credentials(1000, 1000, "alice", "alice")
    parts = [JobRequest(name=name, current_working_directory="/w", minimum_nodes=1) for name in ("one", "two")]
    controller.handle(
        Submit(controller.time, ALICE, tuple(Submission(each, owner, True, "", "sbatch x", "localhost", 77) for each in parts))
    )
    controller.end(done, 0)
    last = max(controller.machine.jobs)
    asked = [str(job_id) for job_id in range(1, last + 1)] + ["1_2", "1_5", "1_2,1_5,3", f"1,{last}", f"{last - 1}+1", "2,1"]
    words = [(*more, "-h", "-j", names) for names in asked for more in ((), ("-r",), ("-t", "all"), ("-s",), ("--json",))]
    quick = [run_command(controller, "squeue", *each) for each in words]
    monkeypatch.setattr("slurmk.commands.squeue._meant", lambda controller, names: tuple(controller.machine.jobs.values()))
    slow = [run_command(controller, "squeue", *each) for each in words]
    assert quick == slow
    assert any(job.het_job_id for job in controller.machine.jobs.values())
