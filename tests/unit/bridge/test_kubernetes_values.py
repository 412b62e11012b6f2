"""Quantities and label selectors, as the API server reads them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.kubernetes.quantities import QuantityError, format_milli, parse_milli, parse_quantity
from bridge.kubernetes.selectors import parse_selector
from grammar.errors import GrammarError


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500m", Fraction(1, 2)),
        ("4Gi", 4 << 30),
        ("1e3", 1000),
        ("1E3", 1000),
        ("2E", 2 * 10**18),
        ("2Ei", 2 << 60),
        ("1.5Ki", 1536),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("-3", -3),
        ("100n", Fraction(1, 10**7)),
        (8, 8),
        (0.5, Fraction(1, 2)),
    ],
)
def test_quantities(text: object, number: object) -> None:
    assert parse_quantity(text) == number


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1KI", "1k1", "1ee3", "٣", "Gi", None, "1e999999999999", "9" * 40])
def test_what_is_no_quantity(text: object) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


def test_thousandths_are_rounded_up() -> None:
    assert parse_milli("100u") == 1
    assert parse_milli("1500m") == 1500


@given(st.integers(0, 10**9))
def test_thousandths_are_read_as_written(milli: int) -> None:
    assert parse_milli(format_milli(milli)) == milli


@pytest.mark.parametrize(
    ("selector", "matching", "other"),
    [
        ("", [{}, {"a": "b"}], []),
        ("pool=gpu", [{"pool": "gpu"}], [{}, {"pool": "cpu"}]),
        ("pool == gpu", [{"pool": "gpu"}], [{}]),
        ("pool!=gpu", [{}, {"pool": "cpu"}], [{"pool": "gpu"}]),
        ("pool", [{"pool": ""}, {"pool": "x"}], [{}]),
        ("!spot", [{}], [{"spot": "true"}]),
        ("zone in (a, b)", [{"zone": "a"}, {"zone": "b"}], [{}, {"zone": "c"}]),
        ("zone notin (a,b)", [{}, {"zone": "c"}], [{"zone": "a"}]),
        ("nvidia.com/gpu.present=true,!spot", [{"nvidia.com/gpu.present": "true"}], [{}, {"spot": ""}]),
        ("in in (in)", [{"in": "in"}], [{}]),
        ("x=", [{"x": ""}], [{"x": "y"}, {}]),
    ],
)
def test_selectors(selector: str, matching: list[dict[str, str]], other: list[dict[str, str]]) -> None:
    parsed = parse_selector(selector)
    assert [labels for labels in matching if not parsed.matches(labels)] == []
    assert [labels for labels in other if parsed.matches(labels)] == []


@pytest.mark.parametrize(
    ("selector", "position"), [("a=b,", 5), ("=", 1), ("a b", 3), (",a", 1), ("a in b", 3), ("a=b c=d", 5), ("-a", 1)]
)
def test_a_wrong_selector_says_where(selector: str, position: int) -> None:
    with pytest.raises(GrammarError, match=rf"at position {position}$"):
        parse_selector(selector)
