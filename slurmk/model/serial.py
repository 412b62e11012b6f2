"""Our frozen dataclasses as JSON-able values and back: what the store keeps and what crosses a release.

A record is an object whose keys are the field names; a field that has its default is left out, so a job that says little
is short. Enumerations are their values, tuples and ranges lists, mappings objects. Reading passes over keys that it does
not know and takes the default for those that are missing, so that records of one release are read by the next. That makes
a field's default part of the format: a new release that changes one changes what old records mean.

For each class one ``dump`` and one ``load`` function is written, compiled and kept; they hold no loops over fields. Values
are not checked on the way in beyond what their types need to be rebuilt: records are our own.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Callable
from enum import Enum, Flag
from typing import Any, TypeVar, cast

T = TypeVar("T")
Converter = Callable[[Any], Any]

_PLAIN = (str, int, float, bool, type(None), object, Any)


class SerialError(ValueError):
    """A record that cannot be read as that class. ``str()`` names the class and what is wrong."""


def dump(value: Any) -> Any:
    """``value``, an instance of a dataclass, as dicts, lists, strings and numbers. Raises TypeError for types that have no
    form here."""
    cls = type(value)
    dumper = _DUMPERS.get(cls) or _dumper(cls)
    return dumper(value)


def load(cls: type[T], data: Any) -> T:
    """The inverse of ``dump``. Raises SerialError."""
    try:
        return cast(T, (_LOADERS.get(cls) or _loader(cls))(data))
    except SerialError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise SerialError(f"not a record of {cls.__name__}: {error}") from error


# ------------------------------------------------------------------------------------------------ writing


_DUMPERS: dict[type[Any], Converter] = {}
_LOADERS: dict[type[Any], Converter] = {}


def _dumper(cls: type[Any]) -> Converter:
    """The compiled function that turns an instance of ``cls`` into a dict."""
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"no form for a {cls.__name__}")
    names: dict[str, Any] = {}
    lines = ["def dump(value):", "    data = {}"]
    hints = _hints(cls)
    for place, field in enumerate(dataclasses.fields(cls)):
        converter = _writer(hints[field.name])
        item = "v"
        if converter is not None:
            names[f"c{place}"] = converter
            item = f"c{place}(v)"
        default = _default(field)
        lines.append(f"    v = value.{field.name}")
        store = f"data[{field.name!r}] = {item}"
        if default is dataclasses.MISSING:
            lines.append(f"    {store}")
        else:
            names[f"d{place}"] = default
            lines.append(f"    if {_differs(default, f'd{place}')}: {store}")
    lines.append("    return data")
    return _DUMPERS.setdefault(cls, _compile(lines, names, f"dump of {cls.__name__}", "dump"))


def _differs(default: Any, name: str) -> str:
    """The test that ``v`` is not the default, as quick as its type allows."""
    if default is None or isinstance(default, bool):
        return f"v is not {default!r}"
    if isinstance(default, str | int | float):
        return f"v != {name}"
    return f"v is not {name} and v != {name}"


def _writer(hint: Any) -> Converter | None:
    """What turns a value of that type into its form; None when it is its own."""
    if hint in _PLAIN:
        return None
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _optional(_writer(_only(hint, arguments)))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _value_of
    if hint is range:
        return _range_parts
    if origin is tuple:
        return _writer_of_tuple(hint, arguments)
    if origin is frozenset:
        return sorted
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        return _writer_of_mapping(_writer(arguments[1]))
    if dataclasses.is_dataclass(hint):
        return _late(_DUMPERS, _dumper, cast("type[Any]", hint))
    raise TypeError(f"no form for a {hint!r}")


def _writer_of_tuple(hint: Any, arguments: tuple[Any, ...]) -> Converter:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _writer(arguments[0])
        return list if item is None else lambda values: [item(value) for value in values]
    items = [_writer(argument) or _same for argument in arguments]
    return lambda values: [item(value) for item, value in zip(items, values, strict=True)]


def _writer_of_mapping(item: Converter | None) -> Converter:
    return dict if item is None else lambda values: {key: item(value) for key, value in values.items()}


def _value_of(member: Enum) -> Any:
    return member._value_


def _range_parts(numbers: range) -> list[int]:
    return [numbers.start, numbers.stop, numbers.step]


# ------------------------------------------------------------------------------------------------ reading


def _loader(cls: type[Any]) -> Converter:
    """The compiled function that makes an instance of ``cls`` from a dict."""
    names: dict[str, Any] = {"cls": cls, "known": {}}
    hints = _hints(cls)
    for field in dataclasses.fields(cls):
        if field.init:
            names["known"][field.name] = _reader(hints[field.name])
    lines = [
        "def load(data):",
        "    given = {}",
        "    for name, value in data.items():",
        "        converter = known.get(name, missing)",
        "        if converter is None: given[name] = value",
        "        elif converter is not missing: given[name] = converter(value)",
        "    return cls(**given)",
    ]
    names["missing"] = dataclasses.MISSING
    return _LOADERS.setdefault(cls, _compile(lines, names, f"load of {cls.__name__}", "load"))


def _reader(hint: Any) -> Converter | None:
    """What turns a form back into a value of that type; None when it is its own."""
    if hint in _PLAIN:
        return None
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _optional(_reader(_only(hint, arguments)))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _reader_of_enum(hint)
    if hint is range:
        return lambda parts: range(*parts)
    if origin is tuple:
        return _reader_of_tuple(arguments)
    if origin is frozenset:
        return frozenset
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        return _writer_of_mapping(_reader(arguments[1]))
    if dataclasses.is_dataclass(hint):
        return _late(_LOADERS, _loader, cast("type[Any]", hint))
    raise TypeError(f"no form for a {hint!r}")


def _reader_of_enum(cls: type[Enum]) -> Converter:
    if issubclass(cls, Flag):
        return cls
    members = {member._value_: member for member in cls}

    def read(value: Any) -> Enum:
        member = members.get(value)
        if member is None:
            raise SerialError(f"{value!r} is not a {cls.__name__}")
        return member

    return read


def _reader_of_tuple(arguments: tuple[Any, ...]) -> Converter:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _reader(arguments[0])
        return tuple if item is None else lambda values: tuple([item(value) for value in values])
    items = [_reader(argument) or _same for argument in arguments]
    return lambda values: tuple([item(value) for item, value in zip(items, values, strict=True)])


# ------------------------------------------------------------------------------------------------ both


def _optional(converter: Converter | None) -> Converter | None:
    """The same where None stands for itself."""
    return None if converter is None else lambda value: None if value is None else converter(value)


def _only(hint: Any, arguments: tuple[Any, ...]) -> Any:
    """The one type of a union that is not None; any of them when all are plain."""
    others = [argument for argument in arguments if argument is not type(None)]
    if len(others) > 1 and any(other not in _PLAIN for other in others):
        raise TypeError(f"no form for a {hint!r}")
    return others[0]


def _late(made: dict[type[Any], Converter], compiler: Callable[[type[Any]], Converter], cls: type[Any]) -> Converter:
    """The function for ``cls``, made when first used, so that classes may hold themselves."""
    return lambda value: (made.get(cls) or compiler(cls))(value)


def _same(value: Any) -> Any:
    return value


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _hints(cls: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _compile(lines: list[str], names: dict[str, Any], title: str, name: str) -> Converter:
    """The function ``name`` that ``lines`` define. The text is made of field names alone, which are ours."""
    exec(compile("\n".join(lines), f"<{title}>", "exec"), names)  # noqa: S102
    return cast(Converter, names[name])
