"""scancel: messages, exit codes and what reaches the machine, as recorded from Slurm 26.05."""

from __future__ import annotations

from typing import Any

import pytest
from command_fakes import ALICE, ROOT, FakeController, run_command

from slurmk.commands import scancel
from slurmk.core.errors import Errno
from slurmk.core.events import Kill, KillFlag
from slurmk.model.states import JobState


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> FakeController:
    monkeypatch.setattr(scancel, "RETRY_DELAYS", ())
    return FakeController()


@pytest.mark.parametrize(
    ("words", "error", "code"),
    [
        ([], "scancel: error: No job identification provided\n", 1),
        (["abc"], "scancel: error: Invalid job id abc\n", 1),
        (["5x"], "scancel: error: Invalid job id 5x\n", 1),
        (["0"], "scancel: error: Invalid job id 0\n", 1),
        (["--", "-5"], "scancel: error: Invalid job id -5\n", 1),
        (["38_[1"], "scancel: error: Invalid job id 38_[1\n", 1),
        (["38_x"], "scancel: error: Invalid job id 38_x\n", 1),
        (["38.batch"], "scancel: error: Invalid job id 38.batch\n", 1),
        (["*"], "scancel: error: Invalid job id *\n", 1),
        (["999999"], "", 0),
        (["999999", "999998"], "", 0),
        (["999999,999998"], "", 0),
        (["999999_4"], "", 0),
        (["999999_[1-3]"], "", 0),
        (["999999+1"], "", 0),
        (["-Q", "999999"], "", 0),
        (["-f", "999999"], "", 0),
        (["-H", "999999"], "", 0),
        (["-c", "999999"], "", 0),
        (["--ctld", "999999"], "", 0),
        (["-b", "999999"], "scancel: error: Kill job error on job id 999999: Invalid job id specified\n", 1),
        (["-s", "9", "999999"], "scancel: error: Kill job error on job id 999999: Invalid job id specified\n", 1),
        (["-s", "SIGUSR1", "999999"], "scancel: error: Kill job error on job id 999999: Invalid job id specified\n", 1),
        (["-n", "x", "999999"], "scancel: error: Kill job error on job id 999999: Invalid job id specified\n", 1),
        (["999999.0"], "scancel: error: Kill job error on job step id 999999.0: Invalid job id specified\n", 1),
        (
            ["-v", "999999"],
            "scancel: Terminating job 999999\nscancel: error: Kill job error on job id 999999: Invalid job id specified\n",
            0,
        ),
        (["-s", "foo", "5"], "Unknown job signal: foo\n", 1),
        (["-s", "0", "5"], "Unknown job signal: 0\n", 1),
        (["-u", "nosuch"], "scancel: error: Invalid user name: nosuch\n", 1),
        (["-t", "foo"], "Invalid job state specified: foo\nValid job states are PENDING, RUNNING, and SUSPENDED\n", 1),
        (["-n", "nosuch"], "", 0),
        (["-w", "nosuch"], "", 0),
        (["-v", "-n", "nosuch"], "scancel: error: No active jobs match ALL job filters, including: job_name=nosuch \n", 0),
        (["-Z"], "scancel: invalid option -- 'Z'\nTry \"scancel --help\" for more information\n", 1),
        (["-t"], "scancel: option requires an argument -- 't'\nTry \"scancel --help\" for more information\n", 1),
    ],
)
def test_messages(controller: FakeController, words: list[str], error: str, code: int) -> None:
    said = run_command(controller, "scancel", *words)
    assert (said.out, said.err, said.code) == ("", error, code)


def test_a_waiting_job_is_cancelled(controller: FakeController) -> None:
    job = controller.submit(hold=True)
    said = run_command(controller, "scancel", str(job))
    assert (said.out, said.err, said.code) == ("", "", 0)
    assert controller.machine.jobs[job].state is JobState.CANCELLED


def test_finished_jobs_are_told_only_when_verbose(controller: FakeController) -> None:
    job = controller.submit()
    controller.start_all()
    controller.end(job)
    assert run_command(controller, "scancel", "1").err == ""
    said = run_command(controller, "scancel", "-v", "1")
    assert said.err == (
        "scancel: Terminating job 1\nscancel: error: Kill job error on job id 1: Job/step already completing or completed\n"
    )
    said = run_command(controller, "scancel", "-s", "INT", "1")
    assert (said.err, said.code) == ("scancel: error: Kill job error on job id 1: Invalid job id specified\n", 1)


def test_others_jobs_are_refused(controller: FakeController) -> None:
    controller.submit(ROOT, hold=True)
    denied = "scancel: error: Kill job error on job id 1: Access/permission denied\n"
    for words in (["1"], ["-s", "INT", "1"], ["1", "999999"]):
        said = run_command(controller, "scancel", *words, caller=ALICE)
        assert (said.err, said.code) == (denied, 210)
    assert controller.machine.jobs[1].pending


def test_a_waiting_job_takes_no_signal_but_kill(controller: FakeController) -> None:
    controller.submit(hold=True)
    said = run_command(controller, "scancel", "-s", "INT", "1", "999999")
    assert said.err == (
        "scancel: error: Kill job error on job id 999999: Invalid job id specified\n"
        "scancel: error: Kill job error on job id 1: Job can not be altered now, try again later\n"
    )
    assert said.code == 228
    said = run_command(controller, "scancel", "-s", "KILL", "-v", "1")
    assert (said.err, said.code) == ("scancel: Signal 9 to job 1\n", 0)
    assert controller.machine.jobs[1].state is JobState.CANCELLED


@pytest.mark.parametrize("option", ["-b", "-f"])
def test_a_waiting_job_has_no_batch_script_to_signal(controller: FakeController, option: str) -> None:
    controller.submit(hold=True)
    assert run_command(controller, "scancel", option, "1").code == 0
    assert controller.machine.jobs[1].state is JobState.CANCELLED


@pytest.mark.parametrize(
    ("words", "told", "flags"),
    [
        ([], "Signal 10 to job 1", KillFlag.NONE),
        (["-b"], "Signal 10 to batch job 1", KillFlag.BATCH),
        (["-f"], "Signal 10 to full job 1", KillFlag.FULL),
    ],
)
def test_signals_to_running_jobs(controller: FakeController, words: list[str], told: str, flags: KillFlag) -> None:
    controller.submit()
    controller.start_all()
    said = run_command(controller, "scancel", "-v", *words, "-s", "USR1", "1")
    assert (said.err, said.code) == (f"scancel: {told}\n", 0)
    event = controller.events[-1]
    assert isinstance(event, Kill)
    assert (event.signal, event.flags) == (10, flags)


def test_steps(controller: FakeController) -> None:
    controller.submit()
    controller.start_all()
    controller.add_step(1)
    said = run_command(controller, "scancel", "-v", "-s", "USR1", "1.0")
    assert (said.err, said.code) == ("scancel: Signal 10 to step 1.0\n", 0)
    said = run_command(controller, "scancel", "1.7")
    assert (said.err, said.code) == ("scancel: error: Kill job error on job step id 1: Invalid job id specified\n", 225)
    said = run_command(controller, "scancel", "1.0", caller=ALICE)
    assert (said.err, said.code) == ("scancel: error: Kill job error on job step id 1: Access/permission denied\n", 210)


def test_a_signal_is_sent_again_until_the_job_takes_it(controller: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    controller.submit(hold=True)
    monkeypatch.setattr(scancel, "RETRY_DELAYS", (0, 0))
    said = run_command(controller, "scancel", "-v", "-s", "INT", "1")
    assert (said.err, said.code) == (
        "scancel: Signal 2 to job 1\n"
        + "scancel: Job is in transitional state, retrying\n" * 2
        + "scancel: error: Kill job error on job id 1: Job can not be altered now, try again later\n",
        228,
    )
    said = run_command(controller, "scancel", "--ctld", "-s", "INT", "1")
    assert said.err == "scancel: error: Kill job error on job id 1: Job can not be altered now, try again later\n"
    assert said.code == 0


def test_accounts_are_the_same_in_any_letters(controller: FakeController) -> None:
    controller.submit(hold=True, account="PHYS")
    assert controller.machine.jobs[1].account == "phys"
    assert run_command(controller, "squeue", "-h", "-A", "chem,Phys", "-o", "%i %a").out == "1 phys\n"
    assert run_command(controller, "squeue", "-h", "-A", "chem").out == ""
    said = run_command(controller, "scancel", "-v", "-A", "PHYS", "-n", "nothing")
    assert said.err.endswith("No active jobs match ALL job filters, including: account=phys job_name=nothing \n")
    run_command(controller, "scancel", "-A", "PhyS")
    assert controller.machine.jobs[1].state is JobState.CANCELLED


def test_a_step_of_a_waiting_job_is_nothing(controller: FakeController) -> None:
    controller.submit(hold=True)
    said = run_command(controller, "scancel", "1.0")
    assert (said.err, said.code) == ("", 0)
    assert controller.machine.jobs[1].pending


def test_arrays(controller: FakeController) -> None:
    controller.submit(array="1-5", name="arr", hold=True)
    assert run_command(controller, "scancel", "-v", "1_2").err == "scancel: Terminating job 1_2\n"
    assert run_command(controller, "squeue", "-h", "-o", "%i").out == "1_[1,3-5]\n"
    said = run_command(controller, "scancel", "-s", "INT", "1_3")
    assert (said.err, said.code) == (
        "scancel: error: Kill job error on job id 1_3: Job can not be altered now, try again later\n",
        228,
    )
    run_command(controller, "scancel", "1_[1,4-5]")
    assert run_command(controller, "scancel", "-s", "INT", "1").err == (
        "scancel: error: Kill job error on job id 1_[3]: Job can not be altered now, try again later\n"
    )
    assert run_command(controller, "scancel", "-v", "-n", "arr").err == "scancel: Terminating job 1_[3]\n"
    assert run_command(controller, "squeue", "-h").out == ""


def test_signals_to_running_elements(controller: FakeController) -> None:
    controller.submit(array="1-2")
    controller.start_all()
    said = run_command(controller, "scancel", "-v", "-s", "USR1", "1")
    assert sorted(said.err.splitlines()) == ["scancel: Signal 10 to job 1_1", "scancel: Signal 10 to job 1_2"]


def test_filters_choose_jobs(controller: FakeController) -> None:
    controller.submit(ALICE, name="a", hold=True)
    controller.submit(ALICE, name="b", hold=True)
    controller.submit(ROOT, name="a", hold=True)
    controller.submit(ROOT, name="c")
    controller.start_all()
    run_command(controller, "scancel", "-n", "a", "-t", "PENDING", "--me", caller=ALICE)
    assert run_command(controller, "squeue", "-h", "-S", "i", "-o", "%i").out == "2\n3\n4\n"
    run_command(controller, "scancel", "-t", "PENDING")
    assert [job.state.name for job in controller.machine.jobs.values()][:3] == ["CANCELLED"] * 3
    assert not controller.machine.jobs[4].state.finished


def test_a_users_filter_tells_of_others_jobs_and_leaves_them(controller: FakeController) -> None:
    controller.submit(ROOT, name="a", hold=True)
    said = run_command(controller, "scancel", "-n", "a", caller=ALICE)
    assert said.err == "scancel: error: Kill job error on job id 1: Access/permission denied\n"
    assert said.code == Errno.ACCESS_DENIED & 0xFF
    assert run_command(controller, "scancel", "--me", "-n", "a", caller=ALICE).code == 0
    assert controller.machine.jobs[1].pending


@pytest.mark.parametrize("words", [["--signal", ""], ["--sibling=x", "1"], ["-t", "PENDING", "1x"]])
def test_nothing_happens_when_a_word_is_wrong(controller: FakeController, words: list[str]) -> None:
    controller.submit(hold=True)
    said = run_command(controller, "scancel", *words)
    assert said.code == 1
    assert said.err
    assert controller.machine.jobs[1].pending


# ------------------------------------------------------------------------------------------------- --interactive


def said(controller: FakeController, *words: str, **how: Any) -> tuple[int, str, str]:
    answer = run_command(controller, "scancel", *words, **how)
    return answer.code, answer.out, answer.err


ASKED = "Cancel job_id={} name=nm partition=debug [y/n]? "


@pytest.mark.parametrize(
    ("typed", "asked", "cancelled"),
    [
        (b"y\nn\n", 2, [1]),
        (b"n\nYup\n", 2, [2]),
        (b"x\n\nyes\nn\n", 4, [1]),
        (b"n", 2, []),
        (b"", 2, []),
        (b"z" * 1000, 10, []),
    ],
)
def test_asking(controller: FakeController, typed: bytes, asked: int, cancelled: list[int]) -> None:
    for _ in range(2):
        controller.submit(ROOT, name="nm", hold=True)
    code, out, err = said(controller, "-i", "1", "2", stdin=typed)
    assert (code, err, out.count("[y/n]? ")) == (0, "", asked)
    assert out.startswith(ASKED.format(1))
    assert [job.job_id for job in controller.machine.jobs.values() if job.state is JobState.CANCELLED] == cancelled


def test_what_is_asked_about_arrays_het_jobs_and_steps(controller: FakeController) -> None:
    controller.submit(ROOT, name="nm", array="1-3", hold=True)
    assert said(controller, "-i", "1", stdin=b"n\n")[1] == ASKED.format("1_[1-3]")
    assert said(controller, "-i", "1_2", stdin=b"n\n")[1] == ASKED.format("1_2")
    asked = said(controller, "-i", "1_[1,3,7]", stdin=b"n\ny\n")[1]
    assert asked == ASKED.format("1_1") + ASKED.format("1_3")
    assert controller.machine.jobs[1].array_tasks == (range(1, 3),)


def test_without_a_choice_nothing_is_asked(controller: FakeController) -> None:
    controller.submit(ROOT, name="nm", hold=True)
    assert said(controller, "-i", "--ctld", "1") == (0, "", "")
    assert controller.machine.jobs[1].state is JobState.CANCELLED


@pytest.mark.parametrize("variable", ["SCANCEL_INTERACTIVE", "SCANCEL_BATCH", "SCANCEL_FULL", "SCANCEL_VERBOSE"])
def test_switches_in_the_environment(controller: FakeController, variable: str) -> None:
    told = said(controller, "-n", "nosuch", environment={variable: "yes"})
    assert told == (0, "", f"scancel: error: Unrecognized {variable} value: yes\n")
    assert said(controller, "-n", "nosuch", environment={variable: "False"}) == (0, "", "")


def test_asking_by_the_environment(controller: FakeController) -> None:
    controller.submit(ROOT, name="nm", hold=True)
    asked = said(controller, "1", environment={"SCANCEL_INTERACTIVE": "TRUE"}, stdin=b"n\n")
    assert asked == (0, ASKED.format(1), "")
    unknown = said(controller, "1", environment={"SCANCEL_STATE": "zz"})
    text = "Unrecognized SCANCEL_STATE value: zz\nValid job states are PENDING, RUNNING, and SUSPENDED\n"
    assert unknown == (1, "", text)


@pytest.mark.parametrize(
    ("having", "named", "told"),
    [
        ((1, 2), "1.0", ["step 1.0", "step 2.0"]),
        ((1,), "1.0", ["step 1.0"]),
        ((2,), "1.0", ["step 2.0"]),
        ((1, 2), "2.0", ["step 2.0"]),
        ((1, 2), "1.7", "1"),
        ((1,), "2.0", "2"),
    ],
)
def test_a_step_of_the_first_component_is_sought_in_all(
    controller: FakeController, having: tuple[int, ...], named: str, told: list[str] | str
) -> None:
    assert run_command(controller, "sbatch", "--wrap=true", "-n1", ":", "-n1").code == 0
    controller.start_all()
    for job_id in having:
        controller.add_step(job_id)
    code, _, err = said(controller, "-v", "-s", "USR1", named)
    if isinstance(told, str):
        assert err.splitlines()[-1] == f"scancel: error: Kill job error on job step id {told}: Invalid job id specified"
        assert (err.count("Invalid job id"), code) == (1, int(Errno.INVALID_JOB_ID) & 0xFF)
    else:
        assert (code, err) == (0, "".join(f"scancel: Signal 10 to {each}\n" for each in told))


def test_steps_of_a_component_are_named_by_its_own_number(controller: FakeController) -> None:
    run_command(controller, "sbatch", "--wrap=true", "-n1", ":", "-n1")
    controller.start_all()
    controller.add_step(1)
    controller.add_step(2)
    for words, steps in (("1", ["1.batch", "1.0"]), ("2", ["2.batch", "2.0"]), ("1.0", ["1.0"]), ("1+1.0", ["2.0"])):
        shown = run_command(controller, "scontrol", "show", "steps", words).out
        assert [line.split()[0] for line in shown.splitlines() if line.startswith("StepId=")] == [
            f"StepId={step}" for step in steps
        ], words
    assert set(run_command(controller, "squeue", "-h", "-s", "-o", "%i").out.split()) == {"1.0", "1.batch", "2.0", "2.batch"}
