"""Documents as JSON and YAML, as the reference writes them.

JSON is indented by two, with ``/`` written ``\\/``. YAML names the type of every value. In the *complex* manner (the
parser's flag of that name) a number with flags is a number, ``null`` or ``"Infinity"``, and empty text is ``null``.
Text that is no UTF-8 is written with U+FFFD, so that no job's name can spoil the document for its reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

import yaml

from slurmk.commands.documents.values import INFINITY, Number, Placeholder, Retired, RetiredNumber

EMPTY_STAYS = frozenset(
    "stdin_expanded stdout_expanded stderr_expanded owner reason_set_by_user kill_request_user user".split()  # noqa: SIM905
)
"""Members whose empty text the complex manner leaves as it is."""

_UNPAIRED = re.compile("[\ud800-\udfff]")
_encode: Callable[[str], str] = json.encoder.encode_basestring


def simple(value: Number) -> object:
    """A number with flags in the complex manner."""
    if value is INFINITY or value["infinite"]:
        return "Infinity"
    return value["number"] if value["set"] else None


def complexly(value: object, name: str = "") -> object:
    """A document in the complex manner."""
    if isinstance(value, Number):
        return simple(value)
    if isinstance(value, dict):
        return {key: complexly(member, key) for key, member in value.items()}
    if isinstance(value, Retired | RetiredNumber | Placeholder) or (value == "" and name not in EMPTY_STAYS):
        return None
    if isinstance(value, list):
        return [complexly(member, name) for member in value]
    return value


def plainly(value: object) -> object:
    """A document of nothing but JSON's own types, as other writers of JSON take it."""
    if isinstance(value, dict):
        return {key: plainly(member) for key, member in value.items()}
    if isinstance(value, list):
        return [plainly(member) for member in value]
    if isinstance(value, RetiredNumber | Placeholder):
        return int(value)
    return clean(value) if isinstance(value, str) else value


def clean(text: str) -> str:
    """``text`` without bytes that were no UTF-8."""
    return text if text.isascii() else _UNPAIRED.sub("\ufffd", text)


# ------------------------------------------------------------------------------------------------ JSON


def json_text(value: object, depth: int = 0) -> str:
    """A value as JSON whose further lines are indented by ``depth``. Names of members are words of ours: they have nothing
    to escape."""
    write = _WRITERS.get(type(value))
    if write is not None:
        return write(value, depth)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, list):
        return _list(value, depth)
    raise TypeError(f"no JSON for a {type(value).__name__}")


@lru_cache(maxsize=32768)
def _string(text: str) -> str:
    encoded = _encode(clean(text))
    return encoded.replace("/", "\\/") if "/" in encoded else encoded


def _number(value: Number, depth: int) -> str:
    text = value.texts.get(depth)
    if text is None:
        blank = "\n" + " " * depth
        flags = f'{"true" if value["set"] else "false"},{blank}  "infinite": {"true" if value["infinite"] else "false"}'
        text = value.texts[depth] = f'{{{blank}  "set": {flags},{blank}  "number": {value["number"]!r}{blank}}}'
    return text


def _object(value: Mapping[str, object], depth: int) -> str:
    if not value:
        return "{}"
    blank = "\n" + " " * (depth + 2)
    members = [f'{blank}"{name}": {json_text(member, depth + 2)}' for name, member in value.items()]
    return f"{{{','.join(members)}\n{' ' * depth}}}"


def _list(value: Iterable[object], depth: int) -> str:
    blank = "\n" + " " * (depth + 2)
    members = [blank + json_text(member, depth + 2) for member in value]
    return f"[{','.join(members)}\n{' ' * depth}]" if members else "[]"


_WRITERS: dict[type, Callable[[Any, int], str]] = {
    str: lambda value, depth: _string(value),
    Number: _number,
    dict: _object,
    list: _list,
    tuple: _list,
    bool: lambda value, depth: "true" if value else "false",
    int: lambda value, depth: int.__repr__(value),
    float: lambda value, depth: repr(value),
    type(None): lambda value, depth: "null",
}


def json_pieces(name: str, rows: Iterable[object], rest: Mapping[str, object]) -> Iterator[str]:
    """The document ``{name: [rows], **rest}`` piece by piece, a row at a time, with a last end of line."""
    yield f"{{\n  {_string(name)}: ["
    mark = ""
    for row in rows:
        yield f"{mark}\n    {json_text(row, 4)}"
        mark = ","
    yield "\n  ]" if mark else "]"
    for key, value in rest.items():
        yield f",\n  {_string(key)}: {json_text(value, 2)}"
    yield "\n}\n"


def compact_text(value: object) -> str:
    """A value as JSON without a blank or an end of line."""
    return clean(json.dumps(value, separators=(",", ":"), ensure_ascii=False)).replace("/", "\\/")


def compact_pieces(name: str, rows: Iterable[object], rest: Mapping[str, object]) -> Iterator[str]:
    """``json_pieces`` in the compact form."""
    yield f"{{{_string(name)}:["
    mark = ""
    for row in rows:
        yield mark + compact_text(row)
        mark = ","
    yield "]" + "".join(f",{_string(key)}:{compact_text(value)}" for key, value in rest.items()) + "}\n"


# ------------------------------------------------------------------------------------------------ YAML

_TAG = "tag:yaml.org,2002:"
_Dumper = getattr(yaml, "CDumper", yaml.Dumper)


def yaml_text(document: Mapping[str, object]) -> str:
    """A whole document as YAML 1.1 with a tag at every value and a last empty line."""
    events = chain(
        (yaml.StreamStartEvent(), yaml.DocumentStartEvent(explicit=True, version=(1, 1))),
        _events(document),
        (yaml.DocumentEndEvent(explicit=True), yaml.StreamEndEvent()),
    )
    text = yaml.emit(events, Dumper=_Dumper, allow_unicode=True)
    assert isinstance(text, str)
    return text + "\n"


def _events(value: object) -> Iterator[yaml.Event]:
    if isinstance(value, dict):
        yield yaml.MappingStartEvent(None, _TAG + "map", implicit=False, flow_style=False)
        for name, member in value.items():
            yield _scalar("str", name)
            yield from _events(member)
        yield yaml.MappingEndEvent()
    elif isinstance(value, list | tuple):
        yield yaml.SequenceStartEvent(None, _TAG + "seq", implicit=False, flow_style=False)
        for member in value:
            yield from _events(member)
        yield yaml.SequenceEndEvent()
    else:
        yield _leaf(value)


def _leaf(value: object) -> yaml.Event:
    if value is None:
        return _scalar("null", "null")
    if isinstance(value, bool):
        return _scalar("bool", "true" if value else "false")
    if isinstance(value, int):
        return _scalar("int", int.__repr__(value))
    if isinstance(value, float):
        return _scalar("float", f"{value:f}")
    return _scalar("str", clean(str(value)))


def _scalar(tag: str, text: str) -> yaml.Event:
    return yaml.ScalarEvent(None, _TAG + tag, implicit=(False, False), value=text)
