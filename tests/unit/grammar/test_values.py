"""The small languages of values: what the reference takes, prints and refuses, and what holds for every text."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grammar.arrays import ArraySpecification, format_tasks, parse_array
from grammar.constraints import AllOf, AnyOf, Counted, Feature, Matching, features_of, matches, parse_constraint
from grammar.dependencies import Dependencies, Dependency, DependencyKind, format_dependency, parse_dependency, parse_kept
from grammar.errors import GrammarError
from grammar.mail import format_mail_type, parse_mail_type
from grammar.patterns import PatternValues, expand_pattern
from grammar.signals import WarningSignal, parse_signal, parse_warning_signal
from grammar.sizes import format_memory, format_size, parse_memory
from grammar.sluid import format_sluid, parse_sluid
from grammar.times import (
    INFINITE,
    NO_VALUE,
    format_duration_minutes,
    format_elapsed,
    format_time,
    parse_duration,
    parse_duration_seconds,
    parse_time,
)
from grammar.tres import format_tres, gpus_per_task, parse_gres, parse_tres, parse_tres_per_task, prefix_gpus, prefix_gres

NOW = time.mktime((2026, 11, 30, 7, 29, 57, 0, 0, -1))


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("5", 5),
        ("0", 0),
        ("5:30", 6),
        ("1:2:3", 63),
        ("1-0", 1440),
        ("1-", 1440),
        ("1-2:3:4", 1564),
        ("1:90:90", 152),
        ("infinite", INFINITE),
        ("UNLIMITED", INFINITE),
        ("-1", INFINITE),
    ],
)
def test_durations(text: str, minutes: int) -> None:
    assert parse_duration(text) == minutes


@pytest.mark.parametrize("text", ["", "5:", "5m", "1:2:3:4", " 5", "1.5", "abc", "99999999999", "4294967295", "٣"])
def test_no_durations(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_duration(text)


@given(st.integers(0, 10**7))
def test_printed_limits_parse_back(minutes: int) -> None:
    assert parse_duration(format_duration_minutes(minutes)) == minutes


@given(st.integers(0, 10**9))
def test_printed_elapsed_times_parse_back(seconds: int) -> None:
    assert parse_duration_seconds(format_elapsed(seconds, padded=True)) == seconds


def test_elapsed_forms() -> None:
    assert [format_elapsed(s) for s in (7, 67, 3600, 90061, -1)] == ["0:07", "1:07", "1:00:00", "1-01:01:01", "INVALID"]
    assert format_elapsed(67, padded=True) == "00:01:07"
    assert format_duration_minutes(NO_VALUE) == "NOT_SET"
    assert format_duration_minutes(INFINITE, unlimited="infinite") == "infinite"


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("now+60", "2026-11-30T07:30:57"),
        ("now + 60", "2026-11-30T07:30:57"),
        ("now-1hour", "2026-11-30T06:29:57"),
        ("now+2days", "2026-12-02T07:29:57"),
        ("NOW+1weeks", "2026-12-07T07:29:57"),
        ("tomorrow", "2026-12-01T00:00:00"),
        ("midnight", "2026-12-01T00:00:00"),
        ("noon", "2026-11-30T12:00:00"),
        ("elevenses", "2026-11-30T11:00:00"),
        ("fika", "2026-11-30T15:00:00"),
        ("teatime", "2026-11-30T16:00:00"),
        ("07:00", "2026-12-01T07:00:00"),
        ("16:00:30", "2026-11-30T16:00:30"),
        ("4:30 pm", "2026-11-30T16:30:00"),
        ("12:30am", "2026-12-01T00:30:00"),
        ("2027-01-01T10:00:05", "2027-01-01T10:00:05"),
        ("2027-01-01-10:00", "2027-01-01T10:00:00"),
        ("10:00 01/02/27", "2027-01-02T10:00:00"),
        ("0102", "2027-01-02T00:00:00"),
        ("12/01", "2026-12-01T00:00:00"),
        ("01.02.27", "2027-01-02T00:00:00"),
        ("2027-02-30", "2027-03-02T00:00:00"),
        ("16:00 tomorrow", "2026-12-01T16:00:00"),
    ],
)
def test_points_in_time(text: str, local: str) -> None:
    assert format_time(parse_time(text, NOW)) == local


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("now+5min", 4),
        ("now+", 3),
        ("now+1hour+1", 9),
        ("4pm", 1),
        ("12am", 2),
        ("13pm", 0),
        ("25:00", 0),
        ("12:61", 3),
        ("0:5", 3),
        ("2027-13-01", 5),
        ("2027-1-1", 0),
        ("2027-01-01T10", 13),
        ("12/31/2027", 8),
        ("Tomorrow", 1),
        ("tomorrow+1hour", 8),
        ("uts183", 0),
        ("monday", 0),
        ("16", 0),
    ],
)
def test_no_points_in_time(text: str, position: int) -> None:
    with pytest.raises(GrammarError) as caught:
        parse_time(text, NOW)
    assert str(caught.value) == f"Invalid time specification (pos={position}): {text}"


def test_past_times_stay_today() -> None:
    assert format_time(parse_time("07:00", NOW, past=True)) == "2026-11-30T07:00:00"
    assert format_time(parse_time("0102", NOW, past=True)) == "2026-01-02T00:00:00"
    assert format_time(parse_time("uts1830000000", NOW)) == format_time(1830000000)
    assert format_time(0, absent="N/A") == "N/A"


@pytest.mark.parametrize(
    ("text", "mib", "printed"),
    [
        ("100", 100, "100M"),
        ("1G", 1024, "1G"),
        ("1gB", 1024, "1G"),
        ("5K", 1, "1M"),
        ("1025K", 2, "2M"),
        ("1T", 1 << 20, "1T"),
        ("1536", 1536, "1.50G"),
        ("2049", 2049, "2049M"),
        ("1000", 1000, "1000M"),
        ("0", 0, "0"),
        ("10240", 10240, "10G"),
    ],
)
def test_memory(text: str, mib: int, printed: str) -> None:
    assert parse_memory(text) == mib
    assert format_memory(mib) == printed


@pytest.mark.parametrize("text", ["", "-5", "1.5G", "10X", "1P", "1GG", "1 G", "G", "9" * 40])
def test_no_memory(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_memory(text)


def test_sizes_in_other_units() -> None:
    assert format_size(2048, "K") == "2M"
    assert format_size(300, "K") == "300K"


@pytest.mark.parametrize(
    ("text", "printed", "running"),
    [
        ("0-3", "0-3", 0),
        ("0-9:2", "0,2,4,6,8", 0),
        ("0-10:2", "0,2,4,6,8,10", 0),
        ("0-12:2", "0-12:2", 0),
        ("1-20:3", "1-19:3", 0),
        ("0-9:2%3", "0,2,4,6,8", 3),
        ("1-3%2,5", "1-3,5", 2),
        ("%3", "0", 3),
        ("1-3%a", "1-3", 0),
        ("[1-3", "1-3", 0),
        ("1,,2", "1-2", 0),
        ("0-10:5,7", "0,5,7,10", 0),
        ("1,1,1", "1", 0),
        ("08", "8", 0),
        ("1000", "1000", 0),
    ],
)
def test_arrays(text: str, printed: str, running: int) -> None:
    found = parse_array(text, 1001)
    assert (format_tasks(found.tasks), found.maximum_running) == (printed, running)


@pytest.mark.parametrize("text", ["", "3-1", "abc", "1-", "1001", "0-1001", "1-10:0", "1-10:-1", "-1", "0x2", "1 - 3"])
def test_no_arrays(text: str) -> None:
    with pytest.raises(GrammarError, match="Invalid job array specification"):
        parse_array(text, 1001)


@given(st.sets(st.integers(0, 1000), min_size=1))
def test_printed_arrays_parse_back(tasks: set[int]) -> None:
    text = format_tasks(parse_array(",".join(map(str, tasks)), 1001).tasks)
    again = parse_array(text, 1001)
    assert sorted(number for part in again.tasks for number in part) == sorted(tasks)
    assert again == ArraySpecification(again.tasks, 0)


def test_dependencies() -> None:
    found = parse_dependency("afterok:12:13,singleton")
    assert found == Dependencies(
        (
            Dependency(DependencyKind.AFTER_OK, 12),
            Dependency(DependencyKind.AFTER_OK, 13),
            Dependency(DependencyKind.SINGLETON),
        )
    )
    assert parse_dependency("371").terms[0].kind is DependencyKind.AFTER_ANY
    assert parse_dependency("afterok:1?afterany:2").any_of
    assert parse_dependency("AFTEROK: 5_3").terms[0].array_task == 3
    assert parse_dependency("afterok:5_*").terms[0].whole_array
    assert [term.delay for term in parse_dependency("after:3+5:4").terms] == [5, 5]
    assert parse_dependency("") == Dependencies()
    assert format_dependency(found, lambda _: "unfulfilled").startswith("afterok:12(unfulfilled),afterok:13(unfulfilled),")
    assert format_dependency(parse_dependency("afterok:7"), arrays=[7]) == "afterok:7_*"


@pytest.mark.parametrize(
    "text",
    [
        "afterok",
        "afterok:",
        "afterok:x",
        "garbage",
        "afterok:1,",
        "singleton:3",
        "afterok:0",
        "afterok:-1",
        "a?b",
        "1?2,3",
        "after:1+x",
    ],
)
def test_no_dependencies(text: str) -> None:
    with pytest.raises(GrammarError, match="Job dependency problem"):
        parse_dependency(text)


TERMS = st.builds(
    Dependency,
    st.sampled_from([kind for kind in DependencyKind if kind is not DependencyKind.SINGLETON]),
    st.integers(1, 10**9),
    st.none() | st.integers(0, 10**6),
)


@given(st.lists(TERMS, min_size=1, unique=True), st.booleans())
def test_printed_dependencies_parse_back(terms: list[Dependency], any_of: bool) -> None:
    value = Dependencies(tuple(terms), any_of and len(terms) > 1)
    assert parse_dependency(format_dependency(value)) == value
    assert parse_kept(format_dependency(value)) == value


def test_a_kept_dependency_may_be_longer_than_one_that_is_typed() -> None:
    value = parse_dependency("afterany:" + ":".join(map(str, range(10_001, 15_001))))
    assert len(value.terms) == 5000
    assert parse_kept(format_dependency(value)) == value


def test_constraints() -> None:
    a, b, c = Feature("a"), Feature("b"), Feature("c")
    assert parse_constraint("") is None
    assert parse_constraint("a") == a
    assert parse_constraint("a,b") == parse_constraint("a&b") == AllOf((a, b))
    assert parse_constraint("(a|b)&c") == AllOf((AnyOf((a, b)), c))
    assert parse_constraint("a&b|c") == AnyOf((AllOf((a, b)), c))
    assert parse_constraint("[a|b]") == Matching((a, b))
    assert parse_constraint("[a*1&b*2]") == Counted((Feature("a", 1), Feature("b", 2)))
    assert parse_constraint("a*2") == Counted((Feature("a", 2),))
    assert parse_constraint("a&") == a
    assert set(features_of(parse_constraint("[(a&b)|c]"))) == {"a", "b", "c"}


def test_matching_nodes() -> None:
    def fits(text: str, *features: str) -> bool:
        return matches(parse_constraint(text), frozenset(features))

    assert fits("")
    assert fits("a|b", "b")
    assert not fits("a&b", "b")
    assert fits("(a|b)&c", "b", "c")
    assert fits("[a|b]", "b")
    assert fits("[a*1&b*2]", "a")
    assert not fits("[a*1&b*2]", "c")


@pytest.mark.parametrize(
    "text", ["[a", "a]", "(a", "!a", "a*0", "a*x", "a&&b", "((a))", "a b", "[a&b]", "&", "*", "a*1|b*2", "a*2&b"]
)
def test_no_constraints(text: str) -> None:
    with pytest.raises(GrammarError, match="Invalid feature specification"):
        parse_constraint(text)


def test_signals() -> None:
    assert parse_signal("sigusr1") == parse_signal("USR1") == parse_signal("10") == 10
    assert parse_warning_signal("USR1") == WarningSignal(10, 60, "")
    assert parse_warning_signal("rb:10@7") == WarningSignal(10, 7, "BR")


@pytest.mark.parametrize("text", ["", "abc", "0", "USR1@99999", "X:USR1", "@60", "10@x", "B:", "STKFLT", "SIG10", "10@-1"])
def test_no_warning_signals(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_warning_signal(text)


def test_mail_types() -> None:
    assert parse_mail_type("fail,BEGIN") == ("BEGIN", "FAIL")
    assert parse_mail_type("END,NONE") == ()
    assert parse_mail_type("abc,END") == ("END",)
    assert parse_mail_type("TIME_LIMIT_80,TIME_LIMIT") == ("TIME=80%", "TIME=100%")
    assert format_mail_type(parse_mail_type("ALL")) == "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT"
    for text in ("", "abc", "abc, BEGIN"):
        with pytest.raises(GrammarError):
            parse_mail_type(text)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("%j", "961"),
        ("%4j", "0961"),
        ("%12345j", "0000000961"),
        ("%5J", "00961"),
        ("%A_%4a_%b", "960_0012_2"),
        ("%x-%u-%N-%n-%t-%s", "nam-root-n4-0-3-batch"),
        ("%%", "%"),
        ("%5%", "%5"),
        ("x%", "x"),
        ("%q%.3j% j%-4j", "%q%.3j% j%-4j"),
        (r"a\%j", "a%j"),
        ("plain", "plain"),
    ],
)
def test_patterns(pattern: str, name: str) -> None:
    values = PatternValues(961, 960, 12, "nam", "root", node_name="n4", task_number=3)
    assert expand_pattern(pattern, values) == name


def test_tres() -> None:
    assert prefix_gres("gpu:2,gres/shard:1") == "gres/gpu:2,gres/shard:1"
    assert prefix_gpus("a100:1,v100:1") == "gres/gpu:a100:1,gres/gpu:v100:1"
    assert gpus_per_task("a100:2") == "gres/gpu:a100=2"
    assert gpus_per_task("0") == gpus_per_task("abc") == ""
    assert [(item.label, item.count) for item in parse_gres("gres/gpu:a100:2,shard=4K")] == [("gpu:a100", 2), ("shard", 4096)]
    assert parse_tres_per_task("cpu=2,gres/gpu:a100:1") == (("cpu", 2), ("gres/gpu:a100", 1))
    assert parse_tres("cpu=4,mem=2G,gres/gpu=1") == {"cpu": 4, "mem": 2048, "gres/gpu": 1}
    for text in ("gpu:x:y:z", "gpu:", "gpu=x"):
        with pytest.raises(GrammarError):
            parse_gres(text)


@example({"mem": 1536})
@given(
    st.dictionaries(st.sampled_from(["cpu", "mem", "node", "gres/gpu", "gres/gpu:a100", "license/x"]), st.integers(1, 10**6))
)
def test_printed_tres_parse_back(amounts: dict[str, int]) -> None:
    text = format_tres({name: amount * 1024 if name == "mem" else amount for name, amount in amounts.items()})
    assert parse_tres(text) == {name: amount * 1024 if name == "mem" else amount for name, amount in amounts.items()}


PARSERS = [
    parse_duration,
    parse_memory,
    parse_dependency,
    parse_constraint,
    parse_signal,
    parse_warning_signal,
    parse_mail_type,
    parse_gres,
    parse_tres,
    parse_tres_per_task,
    lambda text: parse_array(text, 1001),
    lambda text: parse_time(text, NOW),
]
ALPHABET = st.text(alphabet="0123456789:-+,%[]()&|*?=_@/. TnowamptsingleforGKB\x00\udcff", max_size=30)


@given(st.text(max_size=40) | ALPHABET, st.sampled_from(PARSERS))
def test_any_text_is_a_value_or_a_grammar_error(text: str, parse: object) -> None:
    try:
        parse(text)  # type: ignore[operator]
    except GrammarError:
        return


@given(st.text(max_size=60))
def test_any_pattern_is_a_name(pattern: str) -> None:
    assert isinstance(expand_pattern(pattern, PatternValues(1)), str)


@pytest.mark.parametrize("text", ["(" * 50000, "[" * 50000, "a&" * 30000, "afterok:1," * 6000, "1," * 50000, "-" * 60000])
def test_long_texts_take_no_time(text: str) -> None:
    begin = time.perf_counter()
    for parse in PARSERS:
        try:
            parse(text)  # type: ignore[operator]
        except GrammarError:
            continue
    assert time.perf_counter() - begin < 10


@example(12873126885998540800, "sB59M8PAT7JE00")
@given(st.integers(0, (1 << 64) - 1), st.none())
def test_a_sluid_is_a_number(number: int, text: str | None) -> None:
    assert parse_sluid(format_sluid(number)) == number
    assert text is None or format_sluid(number) == text


@pytest.mark.parametrize("text", ["", "s", "5", "sB59M8PAT7JE0", "sb59m8pat7je00", "xB59M8PAT7JE00", "sU59M8PAT7JE00"])
def test_no_sluid(text: str) -> None:
    assert parse_sluid(text) == 0
