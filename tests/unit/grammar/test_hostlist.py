"""Host lists. The expected texts are what scontrol show hostnames, hostlist and hostlistsorted of Slurm 26.05 print."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar.errors import GrammarError
from grammar.hostlist import MAXIMUM_HOSTS, HostlistError, compress, expand, fold, in_order


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[1-3],login", "n1 n2 n3 login"),
        ("n[01-03],n1", "n01 n02 n03 n1"),
        ("n[1,3,5-7]", "n1 n3 n5 n6 n7"),
        ("n[09-10]", "n09 n10"),
        ("n[01-2]", "n01 n02"),
        ("n[1-02]", "n1 n2"),
        ("n[1-]", "n1"),
        ("[1-3]", "1 2 3"),
        ("n1 n2\tn3\nn4", "n1 n2 n3 n4"),
        ("a,,b,", "a b"),
        (",", ""),
        ("", ""),
        ("n]", "n]"),
        ("n]1", "n]1"),
        ("n-1", "n-1"),
        ("n[[1-2]]", "n[1] n[2]"),
        ("n[1-2]]", "n1] n2]"),
        ("n[1]2[3]", "n123"),
        ("n[1-2]3x", "n13x n23x"),
        ("n[1-2]x[3-4]y", "n1x3y n1x4y n2x3y n2x4y"),
        ("r[1-2]n[01-03]", "r1n01 r1n02 r1n03 r2n01 r2n02 r2n03"),
        ("a[1-2]b[1-2]c[1-2]y", "a1b1c1y a1b1c2y a2b1c1y a2b1c2y a1b2c1y a1b2c2y a2b2c1y a2b2c2y"),
        (
            "a[1-2]b[1-2]c[1-2]d[1-2]",
            "a1b1c1d1 a1b1c1d2 a2b1c1d1 a2b1c1d2 a1b2c1d1 a1b2c1d2 a2b2c1d1 a2b2c1d2 "
            "a1b1c2d1 a1b1c2d2 a2b1c2d1 a2b1c2d2 a1b2c2d1 a1b2c2d2 a2b2c2d1 a2b2c2d2",
        ),
        ("é[1-2]", "é1 é2"),
    ],
)
def test_expand(text: str, names: str) -> None:
    assert expand(text) == names.split()


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("n[", ""),
        ("n[1-2", ""),
        ("n[]", "Invalid range: `'"),
        ("n[3-1]", "Invalid range: `3-1'"),
        ("n[a-b]", "Invalid range: `a-b'"),
        ("n[-1]", "Invalid range: `-1'"),
        ("n[1 2]", "Invalid range: `1 2'"),
        ("n[1,,2]", "Invalid range: `'"),
        ("n[1-2-3]", "Invalid range: `1-2-3'"),
        ("n[1-3,login]", "Invalid range: `login'"),
        ("n[1-65537]", "Too many hosts in range `1-65537'"),
        ("n[1-99999999999]", "Too many hosts in range `1-99999999999'"),
        ("n[1-99999999999999999999]", "Too many hosts in range `1-99999999999999999999'"),
    ],
)
def test_refused(text: str, detail: str) -> None:
    with pytest.raises(HostlistError) as caught:
        expand(text)
    assert str(caught.value) == f"Invalid hostlist: {text}"
    assert caught.value.detail == detail


@pytest.mark.parametrize(
    "text",
    [
        "n[1-65536]r[1-65536]",
        "[1-9]" * 1000,
        ",".join(["n[1-65536]"] * 5),
        "n[" + ",".join(["1-65536"] * 5) + "]",
        "a[1-65536]b[1-65536]c[1-65536]d",
        "[" * 100_000,
        "[]" * 50_000,
        "n[" + "1," * 300_000 + "1]",
    ],
    ids=lambda text: text[:24],
)
def test_hostile_sizes_are_errors_and_quick(text: str) -> None:
    began = time.process_time()
    with pytest.raises(GrammarError):
        expand(text)
    assert time.process_time() - began < 2


def test_largest_range() -> None:
    names = expand("n[1-65536]")
    assert len(names) == 65536 < MAXIMUM_HOSTS
    assert compress(reversed(names)) == "n[1-65536]"


@pytest.mark.parametrize(
    ("names", "in_given_order", "in_sorted_order"),
    [
        ("login,n3,n1,n2", "login,n[3,1-2]", "login,n[1-3]"),
        ("n10,n9,n1", "n[10,9,1]", "n[1,9-10]"),
        ("n[01-03],n1", "n[01-03,1]", "n[1,01-03]"),
        ("n1,n1,n2", "n[1,1-2]", "n[1,1-2]"),
        ("n[1-2],n[2-3]", "n[1-2,2-3]", "n[1-2,2-3]"),
        ("r1n1,r1n2,r2n1", "r1n[1-2],r2n1", "r1n[1-2],r2n1"),
        ("r2n1,r10n1,r1n1", "r2n1,r10n1,r1n1", "r1n1,r2n1,r10n1"),
        ("a-2,a-10,a10-1,a2-1", "a-[2,10],a10-1,a2-1", "a-[2,10],a2-1,a10-1"),
        ("n9,n10", "n[9-10]", "n[9-10]"),
        ("n099,n100", "n[099-100]", "n[099-100]"),
        ("n[01-1000]", "n[01-1000]", "n[01-1000]"),
        ("n010,n9,n10", "n[010,9-10]", "n[9-10,010]"),
        ("n0,n00,n000", "n[0,00,000]", "n[0,00,000]"),
        ("n1,n,n2", "n1,n,n2", "n,n[1-2]"),
        ("N1,n1,n2,m5", "N1,n[1-2],m5", "N1,m5,n[1-2]"),
        ("n1b,n1a", "n1b,n1a", "n1a,n1b"),
        ("1,2,3", "[1-3]", "[1-3]"),
        ("n[1-3,5]a[01,3]", "n1a[01,3],n2a[01,3],n3a[01,3],n5a[01,3]", "n1a[3,01],n2a[3,01],n3a[3,01],n5a[3,01]"),
        ("n99999999,n100000000", "n[99999999-100000000]", "n[99999999-100000000]"),
        ("", "", ""),
    ],
)
def test_fold_and_compress(names: str, in_given_order: str, in_sorted_order: str) -> None:
    assert fold(expand(names)) == in_given_order
    assert compress(expand(names)) == in_sorted_order


NAMES = st.lists(st.from_regex(r"[a-z]{0,2}[0-9]{0,3}-?[a-z]{0,1}[0-9]{0,4}", fullmatch=True).filter(bool), max_size=30)


@given(NAMES)
def test_folding_loses_nothing(names: list[str]) -> None:
    assert expand(fold(names)) == names
    assert expand(compress(names)) == in_order(names)
    assert sorted(in_order(names)) == sorted(names)


@given(st.text(alphabet="n01239[]-, \t{é", max_size=40) | st.text(max_size=40))
def test_only_grammar_errors(text: str) -> None:
    try:
        names = expand(text)
    except GrammarError:
        return
    assert all(names)
    compress(names)
