"""SLURM_TIME_FORMAT: how points in time are written for one caller."""

from __future__ import annotations

import time
from contextvars import copy_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar.errors import GrammarError
from grammar.times import TIME_FORMAT, format_time, time_format

NOON = int(time.mktime((2026, 11, 30, 12, 0, 0, 0, 0, -1)))
DAY = 86400


@pytest.mark.parametrize(
    ("distance", "text"),
    [
        (0, "12:00:00"),
        (3600, "13:00:00"),
        (DAY, "Tomorr 12:00"),
        (-DAY, "Ystday 12:00"),
        (2 * DAY, "Wed 12:00"),
        (6 * DAY, "Sun 12:00"),
        (7 * DAY, "7 Dec 12:00"),
        (-2 * DAY, "28 Nov 12:00"),
        (33 * DAY, "2 Jan 2027"),
        (-400 * DAY, "26 Oct 2025"),
    ],
)
def test_times_relative_to_today(distance: int, text: str) -> None:
    form = time_format("relative", NOON)
    assert form is not None
    assert form(NOON + distance) == text


@pytest.mark.parametrize(("form", "text"), [("%Y", "2026"), ("x%Hx", "x12x"), ("%", "%"), ("%d %b", "30 Nov")])
def test_times_in_forms_of_strftime(form: str, text: str) -> None:
    made = time_format(form, NOON)
    assert made is not None
    assert made(NOON) == text


@pytest.mark.parametrize("form", ["Relative", "now", "%Y" * 200])
def test_forms_that_are_none(form: str) -> None:
    with pytest.raises(GrammarError, match="invalid SLURM_TIME_FORMAT = "):
        time_format(form, NOON)


def test_the_form_counts_for_the_caller_alone() -> None:
    def ask(text: str) -> str:
        TIME_FORMAT.set(time_format(text, NOON))
        return format_time(NOON)

    assert copy_context().run(ask, "%Y") == "2026"
    assert copy_context().run(ask, "standard") == format_time(NOON) == "2026-11-30T12:00:00"
    assert copy_context().run(ask, "%Y" + "x%A" * 80) == format_time(NOON)


@given(st.text(max_size=300), st.integers(1, 2**31))
def test_any_form_gives_a_time_or_a_message(form: str, moment: int) -> None:
    try:
        made = time_format(form, NOON)
    except GrammarError:
        return
    if made is not None:
        assert len(made(moment)) <= 255
