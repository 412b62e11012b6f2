"""sprio, sdiag, sstat, sattach, sbcast, salloc and scontrol's verbs over a controller in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_fakes import ALICE, BOB, ROOT, FakeController, reference_site, run_command

from slurmk.commands.allocation_environment import counts
from slurmk.commands.sprio import columns_of
from slurmk.model.states import JobState

WEIGHTS = {"age": 1000, "fairshare": 10000, "job_size": 1000, "partition": 1000, "qos": 2000}


@pytest.fixture
def weighted() -> FakeController:
    return FakeController(reference_site(priority_type="priority/multifactor", priority_weights=WEIGHTS))


def running(controller: FakeController, **request: Any) -> int:
    """A running job with a step 0 of two tasks on its node."""
    job_id = controller.submit(**{"tasks": 2, **request})
    controller.start_all()
    controller.add_step(job_id, step_id=0, tasks=2)
    job = controller.machine.jobs[job_id]
    assert job.allocation is not None
    controller.answers[job.allocation.nodes[0]] = {
        "tasks": [
            {"step": "batch", "pid": 100, "rank": 0, "local": 0, "below": [101], "measures": {"rss": 4096}},
            {"step": 0, "pid": 103, "rank": 1, "local": 1, "below": [], "measures": {"rss": 3 << 20, "user_cpu": 5_000_000}},
            {"step": 0, "pid": 102, "rank": 0, "local": 0, "below": [], "measures": {"rss": 1 << 20, "user_cpu": 1_000_000}},
        ]
    }
    return job_id


# ---------------------------------------------------------------------------------------------- sprio


def test_parts_of_priorities(weighted: FakeController) -> None:
    weighted.submit(tasks=2, nice=5)
    weighted.submit(partition="cpu", hold=True)
    said = run_command(weighted, "sprio", "-h", "-o", "%i|%F|%J|%P|%N|%j|%r|%u|%Y")
    assert said.out == "1|10000|73|1000|5|0.0729167|debug|root|11067\n"
    assert run_command(weighted, "sprio", "-w", "-h", "-o", "%.9i %A %F").out == "  Weights 1000 10000\n"


def test_basic_priorities_have_no_parts() -> None:
    said = run_command(FakeController(), "sprio")
    assert said.code == 1
    assert "priority/basic" in said.err


@pytest.mark.parametrize("text", ["%", "%%", "%.", "%99999999999i", "%-", "\udcff%i", "%i\n%Y", "%.5", "%ä"])
def test_odd_formats_are_told_and_never_fail(weighted: FakeController, text: str) -> None:
    weighted.submit()
    said = run_command(weighted, "sprio", "-o", text)
    assert said.code == 0
    assert all(line.startswith("sprio: error: Invalid job format specification: ") for line in said.err.splitlines() if line)


def test_columns_keep_what_stands_between_them() -> None:
    columns, unknown = columns_of("a%.5i|%x-%3r")
    assert [column.behind for column in columns] == ["a", "|", ""]
    assert unknown == ["x"]


# ---------------------------------------------------------------------------------------------- sdiag


def test_counts_are_those_of_what_was_done() -> None:
    controller = FakeController()
    run_command(controller, "squeue")
    run_command(controller, "squeue", caller=ALICE)
    controller.statistics.planned(controller.time, 0.5, 7, full=True)
    text = run_command(controller, "sdiag").out
    assert "REQUEST_JOB_INFO                        ( 2003) count:2 " in text
    assert "\talice           (   70001) count:1 " in text
    assert "\tLast cycle: 500000\n" in text
    assert "\tLast depth cycle: 7\n" in text
    assert run_command(controller, "sdiag", "-r", caller=ALICE).code == 255
    assert run_command(controller, "sdiag", "-r").out == "Reset scheduling statistics\n"
    assert "REQUEST_JOB_INFO" not in run_command(controller, "sdiag").out


# ---------------------------------------------------------------------------------------------- sstat and processes


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "JobID must not be an empty string"),
        ("0", "JobID can not be zero"),
        ("foo", "JobID can not be zero"),
        ("-1", "JobID can not be a negative number"),
        ("1x", "JobID includes unexpected non-numeric characters"),
        ("1_[0-1]", "JobID includes unexpected non-numeric characters"),
        ("4294967293", "JobID larger than acceptable range"),
        ("1_", "Job Array ID must not be an empty string"),
        ("1_-1", "Job Array ID can not be a negative number"),
        ("1_x.0", "Job Array ID includes unexpected non-numeric characters"),
        ("1+", "HetJob component must not be an empty string"),
        ("1.", "StepID must not be an empty string"),
        ("1.-1", "StepID can not be a negative number"),
        ("1.x", "StepID includes unexpected non-numeric characters"),
        ("1.4294967295", "StepID larger than acceptable range"),
        ("s123", "SLUID is invalid"),
    ],
)
def test_names_of_steps_that_are_none(name: str, why: str) -> None:
    controller = FakeController()
    assert run_command(controller, "sattach", "--", name).err == f"sattach: fatal: Bad job/step specified: {name}: {why}\n"
    if name.startswith("1"):
        assert run_command(controller, "sstat", "-j", name).err == f"sstat: fatal: Bad job/step specified: {name}: {why}\n"
        said = run_command(controller, "scontrol", "show", "step", name)
        assert said.err == f"scontrol: error: scontrol_print_step: slurm_get_job_steps({name}) failed: {why}\n"


def test_which_steps_sstat_means() -> None:
    controller = FakeController()
    running(controller)
    waiting = controller.submit(hold=True)
    array = controller.submit(array="0-1")
    controller.start_all()

    def said(*words: str) -> str:
        told = run_command(controller, "sstat", "-n", "-P", "-o", "jobid", *words)
        return told.out + told.err

    assert said("-j", "1.BATCH,1_7.0,1+3.0") == "1.batch\n1.0\n1.0\n"
    assert said("-j", "1.tbd") == "sstat: error: StepId=1.TBD not found running.\n"
    assert said("-j", f"{waiting}") == f"sstat: error: No steps running for JobId={waiting}\n"
    assert said("-j", f"{waiting}.0") == f"sstat: error: StepId={waiting}.0 not found running.\n"
    assert said("-j", f"{array}_0") == ""  # batch scripts are no steps to show unless they are asked for
    elements = sorted(job.job_id for job in controller.machine.jobs.values() if job.array_job_id == array)
    assert said("-a", "-j", f"{array}_0") == "".join(f"{each}.batch\n" for each in elements)


def test_usage_of_a_running_step() -> None:
    controller = FakeController()
    job_id = running(controller)
    said = run_command(controller, "sstat", "-P", "-j", str(job_id), "-o", "jobid,maxrss,maxrsstask,avecpu,mincpu,ntasks,pids")
    assert said.out.splitlines()[1] == "1.0|3M|1|00:00:03|00:00:01|2|102,103"
    every = run_command(controller, "sstat", "-n", "-a", "-P", "-j", "1", "-o", "jobid,pids").out
    assert every == "1.batch|100,101\n1.0|102,103\n"
    denied = run_command(controller, "sstat", "-n", "-j", "1.0", caller=BOB)
    assert denied.out == ""
    assert "Invalid user id" in denied.err


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"tasks": None},
        {"tasks": "x"},
        {"tasks": [None, 1, [], {}, {"step": "x"}]},
        {"tasks": [{"step": 0, "pid": "x", "rank": 0, "local": 0}]},
        {"tasks": [{"step": 0, "pid": 1, "rank": 1e400, "local": 0}]},
        {"tasks": [{"step": 0, "pid": 1, "rank": 0, "local": 0, "below": [{}], "measures": {}}]},
        {"tasks": [{"step": 0, "pid": 1, "rank": 0, "local": 0, "below": 7, "measures": {"rss": "many"}}]},
        {"tasks": [{"step": 0, "pid": 1, "rank": 0, "local": 0, "measures": []}]},
        {"error": "no"},
    ],
)
def test_what_a_stepd_says_is_never_trusted(answer: dict[str, Any]) -> None:
    controller = FakeController()
    running(controller)
    controller.answers = {"n1": answer}
    for words in (
        ("sstat", "-a", "-j", "1"),
        ("scontrol", "listpids"),
        ("scontrol", "pidinfo", "7"),
        ("sattach", "--layout", "1.0"),
    ):
        assert run_command(controller, *words).code in (0, 1)


def test_processes_of_jobs() -> None:
    controller = FakeController()
    running(controller)
    lines = run_command(controller, "scontrol", "listpids").out.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["102", "1", "0", "0", "0"],
        ["103", "1", "0", "1", "1"],
        ["100", "1", "batch", "0", "0"],
        ["101", "1", "batch", "-", "-"],
    ]
    said = run_command(controller, "scontrol", "listpids", caller=ALICE)
    assert (said.out, said.err, said.code) == ("", "No job steps exist on this node.\n", 1)
    assert run_command(controller, "scontrol", "pidinfo", "101").out.startswith("Slurm JobId=1 ends at ")
    assert run_command(controller, "scontrol", "pidinfo", "101", caller=ALICE).code == 1
    assert run_command(controller, "scontrol", "liststeps").out.split()[2:] == ["1", "0", "1", "batch"]


# ---------------------------------------------------------------------------------------------- sattach and sbcast


def test_attaching_becomes_the_local_part(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = FakeController()
    running(controller)
    access = {"SLURMK_SRUN": "python stepd srun", "SLURMK_STEP_MANAGER": "unix:x", "SLURMK_JOB_SECRET": "00"}
    monkeypatch.setattr(controller, "access", lambda job: access)
    said = run_command(controller, "sattach", "-l", "--output-filter=1", "1.0")
    assert said.output.executed is not None
    program, environment = said.output.executed
    assert program[:3] == ["python", "stepd", "sattach"]
    assert json.loads(program[3]) == {"step": 0, "label": True, "output": 1}
    assert environment["SLURMK_STEP_MANAGER"] == "unix:x"
    other = run_command(controller, "sattach", "1.0", caller=BOB)
    assert other.output.executed is None
    assert other.err == "sattach: Node n1: no tasks running\n"


def test_files_go_to_the_callers_own_jobs_only() -> None:
    controller = FakeController()
    running(controller)
    said = run_command(controller, "sbcast", "-j", "1", "a", "b", caller=BOB)
    assert (said.code, said.output.executed) == (1, None)
    assert "Invalid user id" in said.err


# ---------------------------------------------------------------------------------------------- scontrol's verbs


def test_top_takes_from_the_users_own_jobs_only(weighted: FakeController) -> None:
    mine = [weighted.submit(ALICE, tasks=1) for _ in range(3)]
    other = weighted.submit(BOB, tasks=1)
    before = weighted.machine.jobs[other].priority
    assert run_command(weighted, "scontrol", "top", f"{mine[2]},{mine[0]}").code == 0
    jobs = weighted.machine.jobs
    assert jobs[mine[2]].priority > jobs[mine[0]].priority > jobs[mine[1]].priority
    assert jobs[mine[2]].priority == before == jobs[other].priority
    assert run_command(weighted, "scontrol", "top", str(mine[1]), caller=ALICE).code == 1


def test_steps_are_no_jobs_to_be_held_or_requeued() -> None:
    controller = FakeController()
    running(controller)
    said = run_command(controller, "scontrol", "requeue", "1.0")
    assert (said.code, said.err) == (1, "Invalid job id specified for job 1.0\n")
    assert controller.machine.jobs[1].state is JobState.RUNNING


# ---------------------------------------------------------------------------------------------- salloc


def test_counts_of_equal_neighbours() -> None:
    assert counts([4, 4, 1, 4]) == "4(x2),1,4"
    assert counts([]) == ""


def test_an_allocation_becomes_the_local_part(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = FakeController()
    access = {"SLURMK_SRUN": "python stepd srun", "SLURMK_STEP_MANAGER": "unix:x", "SLURMK_JOB_SECRET": "00", "X": "y"}
    monkeypatch.setattr(controller, "access", lambda job: access)
    said = run_command(controller, "salloc", "-N", "2", "-c", "2", "--kill-command=INT", "echo", "hi", environment={"A": "b"})
    assert said.err.splitlines() == ["salloc: Granted job allocation 1", "salloc: Nodes n[1-2] are ready for job"]
    assert said.output.executed is not None
    program, environment = said.output.executed
    assert (program[:3], program[4:]) == (["python", "stepd", "salloc"], ["echo", "hi"])
    assert json.loads(program[3]) == {"job": 1, "directory": "/w", "quiet": False, "verbose": 0, "kill": 2}
    assert environment["A"] == "b"
    assert environment["SLURM_JOB_CPUS_PER_NODE"] == "2(x2)"
    assert environment["SLURM_TRES_PER_TASK"] == "cpu=2"
    assert "X" not in environment
    job = controller.machine.jobs[1]
    assert (job.name, job.command, job.batch) == ("interactive", "echo", False)


def test_an_allocation_without_a_command_of_its_own() -> None:
    controller = FakeController()
    said = run_command(controller, "salloc", "-n", "1", "--no-shell")
    assert (said.code, said.output.executed) == (0, None)
    assert controller.machine.jobs[1].name == "no-shell"
    assert controller.machine.jobs[1].state is JobState.RUNNING


@pytest.mark.parametrize(
    ("words", "errors", "code"),
    [
        (("-I", "-H", "true"), "salloc: error: Job submit/allocate failed: Job dependency problem\n", 1),
        (("-p", "nope", "true"), "salloc: error: invalid partition specified: nope\n", 1),
        (("-K0", "true"), "salloc: error: Invalid --kill-command specification\n", 255),
        (("-D", "/gone", "true"), "salloc: error: chdir(/gone): No such file or directory\n", 1),
    ],
)
def test_refused_allocations(words: tuple[str, ...], errors: str, code: int) -> None:
    controller = FakeController()
    said = run_command(controller, "salloc", *words)
    assert said.err.startswith(errors)
    assert said.code == code
    assert all(job.state.finished for job in controller.machine.jobs.values())


def test_the_exit_code_of_a_refusal_can_be_set() -> None:
    environment = {"SLURM_EXIT_ERROR": "9", "SLURM_EXIT_IMMEDIATE": "7"}
    assert run_command(FakeController(), "salloc", "-p", "nope", "true", environment=environment).code == 9
    assert run_command(FakeController(), "salloc", "-I", "-H", "true", environment=environment, caller=ROOT).code == 9


def test_crontabs_are_off_unless_the_site_has_them() -> None:
    said = run_command(FakeController(), "scrontab", "-l")
    assert (said.code, said.err) == (1, "scrontab: fatal: scrontab is disabled on this cluster\n")
    assert run_command(FakeController(), "scrontab", "-e").err == "scrontab: fatal: Standard input is not a TTY\n"


@pytest.mark.parametrize("version", [42, 43, 44, 45])
def test_the_document_of_the_statistics_is_the_published_one(version: int) -> None:
    controller = FakeController()
    controller.submit()
    run_command(controller, "squeue")
    said = run_command(controller, "sdiag", f"--json=v0.0.{version}")
    assert (said.code, said.err) == (0, "")
    document = json.loads(said.out)
    statistics = document["statistics"]
    assert len(statistics) == (54 if version < 45 else 53)
    assert statistics["jobs_pending"] == 1
    assert ("parts_packed" in statistics) is (version < 45)
    [request] = statistics["rpcs_by_message_type"]
    assert (request["type_id"], request["message_type"], request["count"]) == (2003, "REQUEST_JOB_INFO", 1)
    assert request["average_time"]["number"] == request["total_time"]
    assert [user["user"] for user in statistics["rpcs_by_user"]] == ["root"]


def test_statistics_as_yaml_and_of_an_unknown_version() -> None:
    controller = FakeController()
    assert "!!str jobs_pending: !!int 0\n" in run_command(controller, "sdiag", "--yaml").out
    said = run_command(controller, "sdiag", "--json=foo")
    assert (said.code, said.err.splitlines()[0]) == (253, "sdiag: error: load_plugins: unable to find plugin: data_parser/foo")
    assert run_command(controller, "sdiag", "-r", "--json=foo").code == 0
