"""--help, --usage and --version of the commands that look at and change the queue."""

from __future__ import annotations

import pytest
from command_fakes import FakeController, run_command


@pytest.mark.parametrize("command", ["squeue", "scancel", "scontrol"])
def test_help_names_every_option(command: str) -> None:
    said = run_command(FakeController(), command, "--help")
    assert (said.err, said.code) == ("", 0)
    assert said.out.startswith(f"Usage: {command} ")
    assert "--version" in said.out
    assert run_command(FakeController(), command, "--usage").out.startswith("Usage: ")
    assert run_command(FakeController(), command, "-V").out.startswith("slurm 26.05.5 (slurmk ")


def test_help_tells_what_is_refused() -> None:
    assert "--json[=VALUE]" in run_command(FakeController(), "squeue", "--help").out
    assert "refused: use that user's own commands" in run_command(FakeController(), "scontrol", "--help").out


def test_lists_of_fields_and_states() -> None:
    controller = FakeController()
    assert run_command(controller, "squeue", "--helpformat").out.startswith(
        "%a    %F    %K    %B    %o    %k    %O    %I    \n"
    )
    assert run_command(controller, "squeue", "--helpFormat").out.startswith(
        "Account             AccrueTime          admin_comment       AllocNodes          \n"
    )
    assert run_command(controller, "squeue", "--helpstate").out.split()[-1] == "stopped"
