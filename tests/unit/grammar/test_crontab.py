"""Tables of jobs at set times: forms and times are those that the reference showed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar.crontab import CrontabError, parse_spec, parse_table


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    os.environ.pop("TZ", None)
    time.tzset()


NOW = 1796047940  # 2026-11-30T14:12:20, a Monday

FORMS = [
    ("* * * * *", "* * * * *", "2026-11-30T14:13"),
    ("*/5 * * * *", "0,5,10,15,20,25,30,35,40,45,50,55 * * * *", "2026-11-30T14:15"),
    ("0,30 2-4 * 3 1-5", "0,30 2-4 * 3 1-5", "2027-03-01T02:00"),
    ("60 * * * *", "0 * * * *", "2026-11-30T15:00"),
    ("@Daily", "0 0 * * *", "2026-12-01T00:00"),
    ("@yearly", "0 0 1 1 *", "2027-01-01T00:00"),
    ("@weekly", "0 0 * * 0", "2026-12-06T00:00"),
    ("@hourly", "0 0-23 * * *", "2026-11-30T15:00"),
    ("@teatime", "0 16 * * *", "2026-11-30T16:00"),
    ("10-20/3 * * * sun", "12,15,18 * * * 0", "2026-12-06T00:12"),
    ("0 0 13 * 5", "0 0 13 * 5", "2026-12-04T00:00"),
    ("0 0 13 * *", "0 0 13 * *", "2026-12-13T00:00"),
    ("0 0 * JAN Mon", "0 0 * 1 1", "2027-01-04T00:00"),
    ("5 4 * * 7", "5 4 * * 0", "2026-12-06T04:05"),
    ("5 4 * * 0-7", "5 4 * * 0-6", "2026-12-01T04:05"),
    ("5 4 * * 5-7", "5 4 * * 0,5-6", "2026-12-04T04:05"),
    ("3,2,1, * * * *", "1-3 * * * *", "2026-11-30T15:01"),
    ("*/7 */6 * * *", "0,7,14,21,28,35,42,49,56 0,6,12,18 * * *", "2026-11-30T18:00"),
    ("0 24 * * *", "0 0 * * *", "2026-12-01T00:00"),
    ("0 0 29 2 *", "0 0 29 2 *", "2028-02-29T00:00"),
    ("-1 * * * *", "0-1 * * * *", "2026-11-30T15:00"),
    ("05 * * * *", "5 * * * *", "2026-11-30T15:05"),
    ("1-1 * * * *", "1 * * * *", "2026-11-30T15:01"),
]


@pytest.mark.parametrize(("typed", "kept", "due"), FORMS)
def test_forms(typed: str, kept: str, due: str) -> None:
    spec = parse_spec(typed)
    assert str(spec) == kept
    when = spec.next_time(NOW)
    assert when is not None
    assert time.strftime("%Y-%m-%dT%H:%M", time.gmtime(when)) == due
    assert parse_spec(str(spec)) == spec


REFUSED = [
    ("@foo", "invalid @ line\nsomething is broken"),
    ("*/0 * * * *", "bad step value\nsomething is broken"),
    ("*/90 * * * *", "bad step value\nsomething is broken"),
    ("* * * * true", "bad day specification\nsomething is broken"),
    ("* * * foo *", "bad month specification\nsomething is broken"),
    *(
        (text, "something is broken")
        for text in (
            "* * * *",
            "61 * * * *",
            "0 25 * * *",
            "0 0 32 * *",
            "0 0 0 * *",
            "0 0 * 13 *",
            "0 0 * * 8",
            "5-2 * * * *",
            "5/10 * * * *",
            "*,5 * * * *",
            "*/5,7 * * * *",
            "2-10/2,20 * * * *",
            "*/5/2 * * * *",
            "0 0 * * mon,tue",
            "0 0 * * mon-fri",
            "0 0 * * sunday",
            "0 0 * feb,3 *",
            ", * * * *",
        )
    ),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_refusals(text: str, said: str) -> None:
    with pytest.raises(CrontabError) as caught:
        parse_spec(text)
    assert str(caught.value) == said


def test_a_table() -> None:
    table = """# mine
FOO=b ar
BAR = "x"
#SCRON -J one
#SCRON -t 5

* * * * * echo $FOO ${FOO} \\$FOO $NO $BAR  a
  @daily true # really
#SCRON -n2"""
    first, second = parse_table(table)
    assert (first.first, first.last, first.words) == (3, 6, ("-J", "one", "-t", "5"))
    assert (first.times, str(first.spec)) == ("* * * * *", "* * * * *")
    assert first.command == "echo b ar ${FOO} \\$FOO $NO x  a"
    assert first.options == ("#SCRON -J one", "#SCRON -t 5")
    assert (second.first, second.last, second.words, second.command) == (7, 7, (), "true # really")


@pytest.mark.parametrize("line", ["x y", "* * * * *", "@daily", "0 0 30 2 * true", "D", "* * * * true"])
def test_a_table_with_a_wrong_line(line: str) -> None:
    with pytest.raises(CrontabError) as caught:
        parse_table(f"@daily true\n#SCRON -n2\n{line}\n")
    assert (caught.value.first, caught.value.last) == (1, 2)
    assert caught.value.said[-1] == "something is broken"


def test_clocks_that_are_put_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    before = int(time.mktime((2027, 3, 27, 12, 0, 0, 0, 0, -1)))
    when = parse_spec("30 2 * * *").next_time(before)
    assert when is not None
    assert time.localtime(when)[:5] == (2027, 3, 29, 2, 30), "02:30 is left out on the 28th"


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    try:
        entries = parse_table(text)
    except CrontabError:
        return
    for entry in entries:
        assert entry.spec.next_time(NOW)


@given(
    st.lists(st.sampled_from(["*", "*/5", "1-5", "3", "1,7", "2-4,6"]), min_size=5, max_size=5), st.integers(1, 2_000_000_000)
)
def test_the_next_time_fits_and_is_later(words: list[str], after: int) -> None:
    spec = parse_spec(" ".join(words))
    when = spec.next_time(after)
    assert when is not None
    assert when > after
    assert when % 60 == 0
    again = spec.next_time(when - 1)
    assert again == when
