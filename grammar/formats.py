"""Output formats: the ``-o "%.18i %.9P"`` and ``-O "JobID:18,Name:.20"`` of squeue and sinfo.

A format is parsed to columns, the columns are matched with a command's table of fields, and the result is compiled once
to a function from a row to its line, because a queue of ten thousand jobs is printed by it. Widths, cutting and what an
absent value looks like are those of printf(3), which the originals print with: widths count bytes, ``(null)`` stands for
a missing text, and vanishes where a left-justified column has less than its six places (squeue(1), sinfo(1)).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

MAXIMUM_WIDTH = 65536
"""Wider columns are asked for by mistake or malice; they get this width."""

LONG_WIDTH = 20
"""Width of a ``-O`` column that names none."""

NULL = "(null)"

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Column:
    """One column as a format asks for it. ``field`` is a letter (-o) or a lower-case name (-O); "" is only text.

    ``width`` 0 does not pad or cut. ``token`` is what was typed, for the message about an unknown field.
    """

    field: str
    width: int = 0
    right: bool = False
    prefix: str = ""
    suffix: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True)
class Field(Generic[Row]):
    """A column that a command can print: its heading, and its text for a row (None is printed as ``(null)``).

    ``cut`` false keeps a text whole that is wider than its right-justified column (left-justified ones are always cut);
    ``cut_heading`` says the same of the heading and ``cut_when`` makes it depend on the row. ``within`` gives the text for a
    column of that width, for a field that does not simply cut.
    """

    heading: str
    value: Callable[[Row], str | None]
    cut: bool = True
    cut_heading: bool = True
    cut_when: Callable[[Row], bool] | None = None
    within: Callable[[Row, int], str] | None = None


@dataclass(frozen=True, slots=True)
class Layout(Generic[Row]):
    """A compiled format. ``header`` and what ``line`` returns have no line end; ``unknown`` are columns without a field."""

    header: str
    line: Callable[[Row], str]
    unknown: tuple[Column, ...] = ()


def parse_short_format(text: str) -> tuple[Column, ...]:
    """The columns of ``%[.][width]letter[text]…``. Text before the first ``%`` is the prefix of the first column.

    Every text is a format: one without ``%`` is a column of text, and ``%%`` is no more than ``%``, as the originals read it. A
    ``%`` with nothing but a width has the field "\\0".
    """
    prefix, _, rest = text.partition("%")
    columns = [_short_column(token) for token in rest.split("%") if token]
    if not prefix:
        return tuple(columns)
    return (Column("", prefix=prefix), *columns)


def _short_column(token: str) -> Column:
    match = _SHORT.match(token)
    assert match is not None  # every part may be empty
    return Column(
        match["letter"] or "\0",
        width=_width(match["width"]),
        right=bool(match["right"]),
        suffix=match["suffix"],
        token=token,
    )


_SHORT = re.compile(r"(?P<right>\.?)(?P<width>[0-9]*)(?P<letter>.?)(?P<suffix>.*)", re.DOTALL)
_LONG = re.compile(r"(?P<right>\.?)(?P<width>(?:[-+]?[0-9]+)?)(?P<suffix>.*)", re.DOTALL)


def _width(digits: str) -> int:
    if len(digits) > 6:
        return MAXIMUM_WIDTH
    return min(max(int(digits), 0), MAXIMUM_WIDTH) if digits.strip("+-") else 0


def parse_long_format(text: str) -> tuple[Column, ...]:
    """The columns of ``name[:[.][width][text]],…``; names are lower-cased, a name alone is 20 wide."""
    return tuple(_long_column(token) for token in text.split(",") if token)


def _long_column(token: str) -> Column:
    name, colon, shape = token.partition(":")
    if not colon:
        return Column(name.lower(), LONG_WIDTH, token=name)
    match = _LONG.match(shape)
    assert match is not None
    return Column(name.lower(), _width(match["width"]), bool(match["right"]), suffix=match["suffix"], token=name)


def all_columns(fields: Iterable[str]) -> tuple[Column, ...]:
    """``-o %all``: every field at its own width, with ``|`` between them."""
    names = list(fields)
    return tuple(Column(name, suffix="|", token=name) for name in names[:-1]) + tuple(Column(name) for name in names[-1:])


def compile_format(columns: Iterable[Column], fields: Mapping[str, Field[Row]]) -> Layout[Row]:
    """A layout of these columns. A letter that has no field is printed as it was typed, a name is left out."""
    headings: list[str] = []
    pieces: list[str] = []
    values: list[Callable[[Row], str | None]] = []
    nulls: list[str] = []
    unknown: list[Column] = []
    for column in columns:
        field = fields.get(column.field)
        if field is None:
            literal = column.prefix + _literal(column)
            if column.field:
                unknown.append(column)
            headings.append(literal)
            pieces.append(literal.replace("%", "%%"))
            continue
        headings.append(column.prefix + _fit(field.heading, column, field.cut_heading) + column.suffix)
        pieces.append(_escape(column.prefix) + _placeholder(column, field.cut) + _escape(column.suffix))
        values.append(_cut_when(field, column))
        nulls.append("" if not column.right and 0 < column.width < len(NULL) else NULL)
    return Layout("".join(headings), _line("".join(pieces), values, nulls), tuple(unknown))


def _escape(text: str) -> str:
    return text.replace("%", "%%")


def _literal(column: Column) -> str:
    """A short column that has no field is its own text; a long one is nothing."""
    return "%" + column.token if len(column.field) == 1 else ""


def _placeholder(column: Column, cut: bool) -> str:
    if not column.width:
        return "%s"
    if column.right:
        return f"%{column.width}.{column.width}s" if cut else f"%{column.width}s"
    return f"%-{column.width}.{column.width}s"


def _fit(text: str, column: Column, cut: bool) -> str:
    return _placeholder(column, cut) % text


def _cut_when(field: Field[Row], column: Column) -> Callable[[Row], str | None]:
    if field.within is not None and column.width:
        return partial(_within, field.within, column.width)
    if field.cut or field.cut_when is None or not column.right or not column.width:
        return field.value
    return partial(_cut_value, field.value, field.cut_when, column.width)


def _within(text: Callable[[Row, int], str], width: int, row: Row) -> str:
    return text(row, width)


def _cut_value(value: Callable[[Row], str | None], when: Callable[[Row], bool], width: int, row: Row) -> str | None:
    text = value(row)
    return text[:width] if text is not None and when(row) else text


def _line(template: str, values: list[Callable[[Row], str | None]], nulls: list[str]) -> Callable[[Row], str]:
    if not values:
        fixed = template % ()
        return lambda row: fixed

    def line(row: Row) -> str:
        texts = [value(row) for value in values]
        if None in texts:
            texts = [null if text is None else text for text, null in zip(texts, nulls, strict=True)]
        rendered: str = template % tuple(texts)
        return rendered if rendered.isascii() else _by_bytes(template, texts)

    return line


def _by_bytes(template: str, texts: Iterable[str | None]) -> str:
    encoded = tuple((text or "").encode(errors="surrogateescape") for text in texts)
    return (template.encode(errors="surrogateescape") % encoded).decode(errors="surrogateescape")
