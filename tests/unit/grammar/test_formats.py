"""Formats of squeue and sinfo. The expected lines were printed by Slurm 26.05 for the job that ROW describes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar.formats import Column, Field, all_columns, compile_format, parse_long_format, parse_short_format

ROW = {"id": "38", "name": "abcdefghijklmnopqrstuvwxyz", "time": "10:00", "null": None}

SHORT: dict[str, Field[dict[str, str | None]]] = {
    "i": Field("JOBID", lambda row: row["id"]),
    "j": Field("NAME", lambda row: row["name"]),
    "l": Field("TIME_LIMIT", lambda row: row["time"], cut=False),
    "f": Field("FEATURES", lambda row: row["null"]),
    "N": Field("NODELIST", lambda row: "", cut=False, cut_heading=False),
    "R": Field("NODELIST(REASON)", lambda row: "(JobHeldUser)", cut=False, cut_heading=False, cut_when=lambda row: True),
}
LONG = {"jobid": SHORT["i"], "name": SHORT["j"], "state": Field("STATE", lambda row: "PENDING")}


@pytest.mark.parametrize(
    ("text", "header", "line"),
    [
        ("%.18i %8j %j", "             JOBID NAME     NAME", "                38 abcdefgh abcdefghijklmnopqrstuvwxyz"),
        ("%.5j|%5j|%.j|", " NAME|NAME |NAME|", "abcde|abcde|abcdefghijklmnopqrstuvwxyz|"),
        ("%.5j|%-5j", " NAME|%-5j", "abcde|%-5j"),
        ("%i %!i", "JOBID %!i", "38 %!i"),
        ("i", "i", "i"),
        ("", "", ""),
        ("%", "", ""),
        ("%i%", "JOBID", "38"),
        ("abc%idef%%j", "abcJOBIDdefNAME", "abc38defabcdefghijklmnopqrstuvwxyz"),
        ("xx %.8i %i", "xx    JOBID JOBID", "xx       38 38"),
        ("%i %i\\n%i\\t.", "JOBID JOBID\\nJOBID\\t.", "38 38\\n38\\t."),
        ("%.0i|%0i|", "JOBID|JOBID|", "38|38|"),
        ("[%1f] [%.1f] [%3f] [%f] [%8f]", "[F] [F] [FEA] [FEATURES] [FEATURES]", "[ ] [(] [   ] [(null)] [(null)  ]"),
        ("[%1l] [%.1l] [%3l]", "[T] [T] [TIM]", "[1] [10:00] [10:]"),
        ("[%1N] [%.1N] [%3N]", "[N] [NODELIST] [NOD]", "[ ] [ ] [   ]"),
        ("[%1R] [%.1R] [%3R]", "[N] [NODELIST(REASON)] [NOD]", "[(] [(] [(Jo]"),
    ],
)
def test_short_format(text: str, header: str, line: str) -> None:
    layout = compile_format(parse_short_format(text), SHORT)
    assert (layout.header, layout.line(ROW)) == (header, line)


@pytest.mark.parametrize(
    ("text", "header", "line"),
    [
        ("JobID:18,Name:.20,State:|,JobID", "JOBID                             NAMESTATE|JOBID               ", None),
        ("jobid:foo,name:3bar", "JOBIDfooNAMbar", "38fooabcbar"),
        ("jobid:.,name:.5", "JOBID NAME", "38abcde"),
        ("jobid:,name:.5", "JOBID NAME", "38abcde"),
        ("jobid,,name", "JOBID               NAME                ", "38                  abcdefghijklmnopqrst"),
        ("name:5,name:.5,name:5x", "NAME  NAMENAME x", "abcdeabcdeabcdex"),
        ("jobid:5:3", "JOBID:3", "38   :3"),
        ("jobid,xyz:5", "JOBID               ", "38                  "),
        (",", "", ""),
    ],
)
def test_long_format(text: str, header: str, line: str | None) -> None:
    layout = compile_format(parse_long_format(text), LONG)
    assert layout.header == header
    assert line is None or layout.line(ROW) == line


def test_unknown_fields_are_named_as_typed() -> None:
    assert [column.token for column in compile_format(parse_long_format("XyZ:5,jobid,a b"), LONG).unknown] == ["XyZ", "a b"]
    assert [column.field for column in compile_format(parse_short_format("%!i%5_%i"), SHORT).unknown] == ["!", "_"]


def test_all_columns_are_separated_by_bars() -> None:
    layout = compile_format(all_columns("ij"), SHORT)
    assert layout.header == "JOBID|NAME"
    assert layout.line(ROW) == "38|abcdefghijklmnopqrstuvwxyz"


def test_widths_count_bytes_as_printf_does() -> None:
    layout = compile_format(parse_short_format("%.8j|%8j|%4j"), SHORT)
    assert layout.line({**ROW, "name": "äöü"}) == "  äöü|äöü  |äö"


def test_absurd_widths_are_bounded() -> None:
    assert len(compile_format(parse_short_format("%99999999999999999999i"), SHORT).line(ROW)) == 65536
    assert parse_long_format("jobid:-7") == (Column("jobid", token="jobid"),)


@given(st.text())
def test_every_text_is_a_format(text: str) -> None:
    for layout in (compile_format(parse_short_format(text), SHORT), compile_format(parse_long_format(text), LONG)):
        assert isinstance(layout.line(ROW), str)
