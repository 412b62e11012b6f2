"""scrontab: what it answers, as the reference does, and what becomes of its jobs."""

from __future__ import annotations

import asyncio
import os
import pwd
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from command_fakes import ROOT, FakeController, FakeOutput, Said, reference_site, run_command

from slurmk.commands.call import Call
from slurmk.commands.dispatch import dispatch
from slurmk.core.events import BatchEnded, Caller, EndRecurrence, NodesReleased
from slurmk.model.states import JobState, Reason

ME = pwd.getpwuid(os.getuid()).pw_name
BROKEN = "scrontab: error: something is broken\nThere are errors in your crontab.\n"


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    os.environ.pop("TZ", None)
    time.tzset()


@pytest.fixture
def controller() -> FakeController:
    return enabled()


def enabled(words: str = "enable") -> FakeController:
    site = reference_site()
    return FakeController(replace(site, parameters={**site.parameters, "ScronParameters": words}))


CALLER = Caller(os.getuid(), ME, os.getuid() == 0)


def install(controller: FakeController, text: str) -> Said:
    return run_command(controller, "scrontab", "-", stdin=text.encode(), caller=CALLER)


def listed(controller: FakeController) -> str:
    said = run_command(controller, "scrontab", "-l", caller=CALLER)
    assert said.code == 0
    return said.out


def alive(controller: FakeController) -> list[int]:
    return [job.job_id for job in controller.machine.jobs.values() if not job.state.finished]


TABLE = "FOO=b ar\n#SCRON -J one -o /tmp/o\n#SCRON -t 5 -n2\n* * * * * echo $FOO\n@daily sleep 1\n"


def test_a_table_becomes_jobs(controller: FakeController) -> None:
    said = install(controller, TABLE)
    assert (said.code, said.out, said.err) == (0, "", "")
    first, second = controller.machine.jobs.values()
    assert (first.name, first.time_limit, first.request.tasks, first.request.standard_output) == ("one", 5, 2, "/tmp/o")
    assert (first.request.crontab, first.reason, first.batch) == ("* * * * *", Reason.BEGIN_TIME, True)
    assert first.request.begin_time == int(controller.time) // 60 * 60 + 60
    assert (second.name, second.request.crontab, second.command, second.submit_line) == ("sleep", "0 0 * * *", "", "")
    assert first.request.current_working_directory == pwd.getpwuid(os.getuid()).pw_dir
    assert listed(controller) == TABLE
    shown = run_command(controller, "scontrol", "show", "job", "1").out
    assert '   CronJob=Yes CrontabSpec="* * * * *"\n' in shown
    assert run_command(controller, "squeue", "-h", "-O", "cronjob").out.split() == ["Yes", "Yes"]


def test_the_script() -> None:
    from slurmk.commands import scrontab

    owner = scrontab._Owner(0, 0, "root", "/root")
    call = Call("scrontab", (), "/w", {}, ROOT, 0)
    job, _ = scrontab._jobs(call, 0.0, owner, TABLE)
    assert job.files.script.decode() == (
        "#!/bin/sh\n# This job was submitted through scrontab\n#SCRON -J one -o /tmp/o\n#SCRON -t 5 -n2\n"
        "# crontab time request was: '* * * * *'\necho b ar\n"
    )


def run_once(controller: FakeController, job_id: int, exit_code: int = 0) -> None:
    job = controller.machine.jobs[job_id]
    controller.time = float(job.request.begin_time or 0)
    controller.start_all()
    job = controller.machine.jobs[job_id]
    assert job.state is JobState.RUNNING
    assert job.allocation is not None
    controller.time += 90
    controller.handle(BatchEnded(controller.time, job_id, job.restarts, exit_code))
    controller.handle(NodesReleased(controller.time, job_id, job.restarts, job.allocation.nodes))


@pytest.mark.parametrize("exit_code", [0, 256, 9])
def test_it_runs_again_and_again_with_its_id(controller: FakeController, exit_code: int) -> None:
    install(controller, "* * * * * true\n")
    for attempt in range(1, 4):
        run_once(controller, 1, exit_code)
        job = controller.machine.jobs[1]
        assert (job.state, job.reason, job.restarts) == (JobState.PENDING, Reason.BEGIN_TIME, attempt)
        begin = job.request.begin_time
        assert begin is not None
        assert controller.time < begin <= controller.time + 60
        assert begin % 60 == 0


def test_a_new_table_ends_the_jobs_of_the_old(controller: FakeController) -> None:
    install(controller, TABLE)
    install(controller, "@weekly true\n")
    assert alive(controller) == [3]
    assert run_command(controller, "scrontab", "-r", caller=CALLER).code == 0
    assert alive(controller) == []
    said = run_command(controller, "scrontab", "-l", caller=CALLER)
    assert (said.code, said.err) == (1, f"no crontab for {ME}\n")


def test_what_runs_when_its_table_goes_does_not_run_again(controller: FakeController) -> None:
    install(controller, "* * * * * true\n")
    controller.time = float(controller.machine.jobs[1].request.begin_time or 0)
    controller.start_all()
    run_command(controller, "scrontab", "-r", caller=CALLER)
    job = controller.machine.jobs[1]
    assert job.state is JobState.RUNNING
    controller.end(1, 0)
    assert controller.machine.jobs[1].state is JobState.COMPLETED


def test_a_cancelled_job_is_a_comment(controller: FakeController) -> None:
    install(controller, TABLE)
    assert run_command(controller, "scancel", "1").code == 0
    assert listed(controller) == (
        "FOO=b ar\n#DISABLED: #SCRON -J one -o /tmp/o\n#DISABLED: #SCRON -t 5 -n2\n#DISABLED: * * * * * echo $FOO\n"
        "@daily sleep 1\n"
    )


def test_who_cancels_may_have_to_say_that_it_is_meant() -> None:
    controller = enabled("enable,explicit_scancel")
    install(controller, "@daily true\n")
    said = run_command(controller, "scancel", "1")
    text = "scancel: error: Kill job error on job id 1: Cannot cancel scrontab jobs without --cron flag.\n"
    assert (said.code, said.err) == (50, text)
    assert run_command(controller, "scancel", "-c", "1").code == 0
    assert alive(controller) == []


@pytest.mark.parametrize("words", [("hold", "1"), ("release", "1"), ("update", "JobId=1", "TimeLimit=3")])
def test_scontrol_leaves_them_alone(controller: FakeController, words: tuple[str, ...]) -> None:
    install(controller, "@daily true\n")
    said = run_command(controller, "scontrol", *words)
    assert said.code == 1
    assert "Cannot modify scrontab jobs through scontrol" in said.out + said.err


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("@foo true", "scrontab: error: invalid @ line\n" + BROKEN),
        ("x y", BROKEN),
        ("#SCRON --foo\n@daily true", "Invalid option found in #SCRON line: --foo"),
        ("#SCRON -J x --foo\n@daily true", "Invalid option found in #SCRON line: --foo"),
        ("#SCRON -J\n@daily true", "Invalid option found in #SCRON line: -J"),
        ("#SCRON foo\n@daily true", "Invalid option found in #SCRON line: foo"),
        ("#SCRON -a 1-3\n@daily true", "Invalid option found in #SCRON line: -a"),
        ("#SCRON --hold\n@daily true", "Invalid option found in #SCRON line: --hold"),
        (
            "#SCRON --mem=zz\n@daily true",
            "scrontab: error: Invalid --mem specification\nscrontab: error: Invalid option found in #SCRON line: --mem=zz\n"
            "There are errors in your crontab.\n",
        ),
        ("#SCRON -n x\n@daily true", 'scrontab: error: Invalid numeric value "x" for --ntasks.\n'),
        (
            "@daily true\n#SCRON -p nosuch\n@daily true",
            "There was an issue with the job submission on lines 2-3\n"
            "The error code return was: Invalid partition name specified\n"
            "The error message was: invalid partition specified: nosuch\n",
        ),
    ],
)
def test_tables_that_are_not_taken(controller: FakeController, text: str, error: str) -> None:
    install(controller, "@weekly true\n")
    if not error.endswith("\n"):
        error = f"scrontab: error: {error}\nThere are errors in your crontab.\n"
    said = install(controller, text)
    assert (said.code, said.err) == (1, error)
    assert listed(controller) == "@weekly true\n"
    assert alive(controller) == [1]


def test_others_tables(controller: FakeController) -> None:
    install(controller, "@weekly true\n")
    other = Caller(os.getuid() + 1, "other", False)
    for words in (("-u", ME, "-l"), ("-u", ME, "-r"), ("-u", ME, "-")):
        said = run_command(controller, "scrontab", *words, caller=other, stdin=b"@daily true\n")
        assert said.code == 1
        assert "Invalid user id" in said.err
    assert alive(controller) == [1]
    said = run_command(controller, "scrontab", "-u", "nosuchuser", "-l")
    assert (said.code, said.err) == (1, "scrontab: fatal: Could not find user nosuchuser\n")


def test_forms(controller: FakeController) -> None:
    off = run_command(FakeController(), "scrontab", "-l")
    assert (off.code, off.err) == (1, "scrontab: fatal: scrontab is disabled on this cluster\n")
    assert run_command(controller, "scrontab", "nosuchfile").err == "scrontab: fatal: failed to open nosuchfile\n"
    assert run_command(controller, "scrontab", "-e").err == "scrontab: fatal: Standard input is not a TTY\n"
    assert run_command(controller, "scrontab", "a", "b").err.startswith("usage:\tscrontab [-u user] file\n")
    assert install(controller, "").code == 0
    assert run_command(controller, "scrontab", "-l", caller=CALLER).code == 1


def test_the_editor_runs_where_the_user_is(controller: FakeController) -> None:
    install(controller, "@weekly true\n")
    output = FakeOutput()
    call = Call("scrontab", (), "/w", {"EDITOR": "ed"}, CALLER, 0, terminals="012")
    assert asyncio.run(dispatch(call, controller, output)) == 0
    assert output.executed is not None
    words, environment = output.executed
    assert words[:2] == ["/bin/sh", "-c"]
    assert (environment["SLURMK_CRONTAB"], environment["EDITOR"]) == ("@weekly true\n", "ed")


def test_jobs_of_no_table_end(controller: FakeController) -> None:
    install(controller, TABLE)
    controller.handle(EndRecurrence(controller.time, ROOT, (1, 99)))
    assert alive(controller) == [2]
