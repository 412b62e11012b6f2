"""``slurmk queues``: who may, what is asked of the controller, and what comes out."""

from __future__ import annotations

import pytest
from command_fakes import ALICE, ROOT, FakeController, run_command


@pytest.mark.parametrize("words", [["diff"], ["apply"], ["delete"], ["apply", "--force"]])
def test_the_controller_is_asked(words: list[str]) -> None:
    controller = FakeController()
    controller.queue_answer = ("create Cohort hpc\n", 1)
    said = run_command(controller, "slurmk", "queues", *words)
    assert (said.out, said.err, said.code) == ("create Cohort hpc\n", "", 1)
    assert controller.queue_calls == [(words[0], "--force" in words)]


def test_nothing_to_do_is_said() -> None:
    said = run_command(FakeController(), "slurmk", "queues", "diff")
    assert (said.out, said.code) == ("slurmk: the queues are as they should be\n", 0)


def test_errors_go_to_standard_error() -> None:
    controller = FakeController()
    controller.queue_answer = ("slurmk: error: no such account\n", 2)
    said = run_command(controller, "slurmk", "queues", "apply")
    assert (said.out, said.err, said.code) == ("", "slurmk: error: no such account\n", 2)


def test_only_operators_may() -> None:
    controller = FakeController()
    said = run_command(controller, "slurmk", "queues", "diff", caller=ALICE)
    assert (said.err, said.code) == ("slurmk: error: Access/permission denied\n", 2)
    assert controller.queue_calls == []


@pytest.mark.parametrize("words", [[], ["show"], ["diff", "--forced"], ["diff", "apply"]])
def test_other_words_are_refused(words: list[str]) -> None:
    controller = FakeController()
    said = run_command(controller, "slurmk", "queues", *words, caller=ROOT)
    assert (said.err, said.code) == ("slurmk: error: queues takes diff, apply or delete, and --force\n", 2)
    assert controller.queue_calls == []
