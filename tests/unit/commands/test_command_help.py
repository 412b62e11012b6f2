"""--help, --usage and --version of the commands that look at and change the queue."""

from __future__ import annotations

import re

import pytest
from command_fakes import FakeController, run_command

from grammar.arguments import Status
from slurmk.commands import sacct_options, sinfo_options, squeue_options
from slurmk.commands.command_options import CommandOption
from slurmk.commands.scontrol import KEYWORDS, OPERANDS


@pytest.mark.parametrize("command", ["squeue", "scancel", "scontrol"])
def test_help_names_every_option(command: str) -> None:
    said = run_command(FakeController(), command, "--help")
    assert (said.err, said.code) == ("", 0)
    assert said.out.startswith("scontrol [<OPTION>] [<COMMAND>]" if command == "scontrol" else f"Usage: {command} [OPTIONS]")
    assert "--version" in said.out
    usage = run_command(FakeController(), command, "--usage").out
    assert usage.startswith("Usage: ") or command == "scontrol"
    assert command in usage
    assert run_command(FakeController(), command, "-V").out == "slurm 26.05.5 (slurmk 0.1.0)\n"


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("squeue", ("Usage: squeue [OPTIONS]", "Help options:")),
        ("srun", ("Help options:", "-b, --begin=time", "-N, --nodes=N", "-G, --gpus=n", "-q, --qos=qos", "--mincpus=n")),
        ("sbatch", ("Usage: sbatch [OPTIONS(0)...]", "Help options:")),
        ("sacct", ("sacct [<OPTION>]", "Valid <OPTION> values are:", "-A, --accounts:", "valid start/end time formats are...")),
        ("sstat", ("sstat [<OPTION>]", "Valid <OPTION> values are:", "-j, --jobs:")),
        ("scontrol", ("Valid <OPTION> values are:", "Valid <COMMAND> values are:")),
    ],
)
def test_help_has_what_programs_look_for(command: str, lines: tuple[str, ...]) -> None:
    said = run_command(FakeController(), command, "--help").out
    assert [line for line in lines if line not in said] == []


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("squeue", r"Usage: squeue(\s+\[-{1,2}[^\]]+\])+\n"),
        ("sinfo", r"Usage: sinfo(\s+\[-{1,2}[^\]]+\])+\n"),
        ("sdiag", r"Usage: sdiag(\s+\[-{1,2}[^\]]+\])+\n"),
    ],
)
def test_usage_has_each_option_in_brackets(command: str, form: str) -> None:
    usage = run_command(FakeController(), command, "--usage").out
    assert re.fullmatch(form, usage)
    assert max(map(len, usage.splitlines())) <= 128


def test_help_tells_what_is_refused() -> None:
    assert "--json[=VALUE]" in run_command(FakeController(), "squeue", "--help").out
    assert "refused: there are no federations" in run_command(FakeController(), "scancel", "--help").out


def test_lists_of_fields_and_states() -> None:
    controller = FakeController()
    assert run_command(controller, "squeue", "--helpformat").out.startswith(
        "%a    %F    %K    %B    %o    %k    %O    %I    \n"
    )
    assert run_command(controller, "squeue", "--helpFormat").out.startswith(
        "Account             AccrueTime          admin_comment       AllocNodes          \n"
    )
    assert run_command(controller, "squeue", "--helpstate").out.split()[-1] == "stopped"


@pytest.mark.parametrize(
    ("command", "part", "said"),
    [
        ("squeue", "j", "-j\n--jobs=\n--jobs \n--only-job-state\n--json=\n--json \n\n"),
        ("squeue", "-jo", "--jobs=\n--jobs \n--only-job-state\n\n"),
        ("squeue", "--sib", "--sib\n--sibling\n\n"),
        ("squeue", "", ""),
        ("squeue", "J", ""),
        ("sacct", "--no", "--nodelist=\n--noconvert\n--noheader\n\n"),
        ("sinfo", "--cl", "--cluster=\n--clusters=\n\n"),
    ],
)
def test_autocomplete_names_what_holds_the_part(command: str, part: str, said: str) -> None:
    answer = run_command(FakeController(), command, f"--autocomplete={part}")
    assert (answer.out, answer.err, answer.code) == (said, "", 0)


def test_ambiguous_beginnings_are_told_in_the_order_of_the_table() -> None:
    answer = run_command(FakeController(), "sacct", "--no")
    assert answer.err == "sacct: option '--no' is ambiguous; possibilities: '--nodelist' '--noconvert' '--noheader'\n"
    assert answer.code == 1


@pytest.mark.parametrize("options", [squeue_options.OPTIONS, sinfo_options.OPTIONS, sacct_options.OPTIONS])
def test_every_row_says_what_it_means_or_why_it_does_nothing(options: tuple[CommandOption, ...]) -> None:
    names = [name for option in options for name in option.names]
    assert len(names) == len(set(names))
    for option in options:
        assert option.note if option.status is not Status.HONOURED else option.meaning or option.note


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("scancel", r"Usage: scancel(?:\s+\[-{1,2}[^\]]+\])+\s+\[job_id\S* \.\.\.\]\n"),
        ("squeue", r"Usage: squeue(?:\s+\[-{1,2}[^\]]+\])+\n"),
        ("sinfo", r"Usage: sinfo(?:\s+\[-{1,2}[^\]]+\])+\n"),
        ("sdiag", r"Usage: sdiag(?:\s+\[-{1,2}[^\]]+\])+\n"),
    ],
)
def test_the_usage_is_options_in_brackets_and_what_follows(command: str, form: str) -> None:
    assert re.fullmatch(form, run_command(FakeController(), command, "--usage").out)


def test_scontrols_keywords_are_listed_with_what_follows_them() -> None:
    said = run_command(FakeController(), "scontrol", "--help").out.splitlines()
    assert {"     show <ENTITY> [<ID>]", "     reconfigure", "     version"} <= set(said)
    assert OPERANDS.keys() <= {keyword.name for keyword in KEYWORDS}
