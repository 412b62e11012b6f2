"""What of SlurmctldDebug and DebugFlags becomes of the controller's log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from grammar.configuration_words import DEBUG_FLAGS, DEBUG_LEVELS, level_name
from slurmk.daemon.logs import FLAGS, ROOMS, set_levels


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    names = [*ROOMS, *(name for names in FLAGS.values() for name in names)]
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize(
    ("said", "level"),
    [("quiet", logging.CRITICAL), ("error", logging.ERROR), ("verbose", logging.INFO), ("debug4", logging.DEBUG)],
)
def test_levels(said: str, level: int) -> None:
    set_levels({"SlurmctldDebug": said})
    assert logging.getLogger("bridge.link").getEffectiveLevel() == level


def test_a_flag_has_its_part_say_more_and_no_other() -> None:
    set_levels({"DebugFlags": "TraceJobs,Gres"})
    assert logging.getLogger("slurmk.daemon.jobs").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("slurmk.daemon.requests").isEnabledFor(logging.DEBUG)
    set_levels({"DebugFlags": "(null)"})
    assert not logging.getLogger("slurmk.daemon.jobs").isEnabledFor(logging.DEBUG)


def test_every_flag_that_acts_is_one_of_slurms() -> None:
    assert set(FLAGS) <= {flag.lower() for flag in DEBUG_FLAGS}


def test_levels_by_name_and_number() -> None:
    assert [level_name(str(number)) for number in range(len(DEBUG_LEVELS))] == list(DEBUG_LEVELS)
    assert (level_name("DEBUG2"), level_name("10"), level_name("nope"), level_name("")) == ("debug2", "", "", "")
