"""Reads slurmk.yaml: text in, ``Settings`` out, or every mistake with file, line and key.

The text is composed, not loaded, so that each value keeps its line; then the schema has its say, and after it what no schema
can say (two things that exclude each other, names that must differ).
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import yaml
from jsonschema import Draft202012Validator, FormatChecker

from bridge.kubernetes.queues.accounts import read_accounts
from bridge.kubernetes.settings import (
    ClientLimits,
    Features,
    GresSource,
    Kind,
    PartitionSettings,
    PodSettings,
    QueueSystem,
    Settings,
)
from bridge.kubernetes.settings_schema import FORMATS, SCHEMA, VOLUME_SOURCES, attribute
from grammar.errors import GrammarError

MOST_NODES = 100_000
"""Values in a file, aliases counted at each use."""

DEEPEST = 50

Path = tuple[str | int, ...]


class _Mistake(NamedTuple):
    path: Path
    text: str


class SettingsError(GrammarError):
    """What is wrong with a file: a line for each mistake, ``FILE:LINE: KEY: what``."""


def load_settings(text: str, name: str) -> Settings:
    """What a file says, over the defaults. ``name`` is its path: other files that it names are relative to its folder. Raises
    SettingsError."""
    return SettingsFile(text, name).settings


class SettingsFile:
    """A file that was read: its ``settings``, and where in it they are said. Raises SettingsError."""

    def __init__(self, text: str, name: str) -> None:
        self._document = _Document(text, name)
        self.settings = _checked(self._document)

    def place(self, *path: str | int) -> str:
        """``FILE:LINE: KEY: `` of what is at ``path``, or what is around it."""
        return f"{self._document.name}:{self._document.line(path)}: {_dotted(path)}"

    def pods_place(self, partition: str, *path: str | int) -> str:
        """The same for what is said of a partition's pods, there or for the site. ``partition`` is empty for the site."""
        own: Path = ("partitions", partition, "pods", *path)
        return self.place(*own) if partition and self._document.says(own) else self.place("pods", *path)


def _checked(document: _Document) -> Settings:
    """The settings that a file is; raises SettingsError."""
    found = _without_nulls(document.value)
    _refuse(document, _schema_mistakes(found))
    _refuse(document, _other_mistakes(found))
    settings = _settings(found, os.path.dirname(os.path.abspath(document.name)))
    try:
        read_accounts(settings)
    except GrammarError as error:
        key, colon, what = str(error).partition(": ")
        _refuse(document, [_Mistake(tuple(key.split(".")), what) if colon else _Mistake(("accounts",), str(error))])
    return settings


def pods_of(settings: Settings, partition_name: str) -> PodSettings:
    """How the pods of a partition are made: the site's settings with what the partition has different."""
    for partition in settings.partitions:
        if partition.name == partition_name:
            return partition.pods
    return settings.pods


def _refuse(document: _Document, mistakes: list[_Mistake]) -> None:
    if mistakes:
        found = [(document.line(path), path, text) for path, text in dict.fromkeys(mistakes)]
        lines = sorted(found, key=itemgetter(0))
        raise SettingsError("\n".join(f"{document.name}:{line}: {_dotted(path)}{text}" for line, path, text in lines))


def _dotted(path: Path) -> str:
    """A key as messages name it: ``partitions.gpu.pods.volumes[0].name``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"{text.removeprefix('.')}: " if path else ""


# ------------------------------------------------------------------- YAML


class _Loader(yaml.SafeLoader):
    """Only JSON's values: a date is text, and keys are what is written."""


_TAG = "tag:yaml.org,2002:"

_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_TAG + "timestamp", _TAG + "value")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}

_SCALARS = frozenset(_TAG + name for name in ("str", "int", "float", "bool", "null"))


class _Document:
    """A file's value, and the line of each part of it."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._lines: dict[Path, int] = {(): 1}
        self._count = 0
        try:
            self._loader = _Loader(text)
            node = self._loader.get_single_node()
            self.value: Any = {} if node is None else self._value(node, ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            said = ", ".join(part for part in (error.context, error.problem) if part)
            raise SettingsError(f"{name}:{mark.line + 1 if mark else 1}: {said}") from None
        except RecursionError:
            raise SettingsError(f"{name}:1: the file refers to itself, or is nested too deeply") from None
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, int(error.position)) + 1
            raise SettingsError(f"{name}:{line}: a character that YAML does not take") from None
        if not isinstance(self.value, dict):
            raise SettingsError(f"{name}:1: expected keys and values, not {_shown(self.value)}")

    def says(self, path: Path) -> bool:
        """True when the file says something there."""
        return path in self._lines

    def line(self, path: Path) -> int:
        """The line of a part, or of the nearest thing around it."""
        while path not in self._lines:
            path = path[:-1]
        return self._lines[path]

    def _value(self, node: yaml.Node, path: Path) -> Any:
        self._count += 1
        if self._count > MOST_NODES or len(path) > DEEPEST:
            raise self._mistake(node, path[:1], "it says too much, or refers to itself")
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, child in node.value:
            if key_node.tag == _TAG + "merge":
                found.update(self._merged(child, path))
        own: set[str] = set()
        for key_node, child in node.value:
            if key_node.tag == _TAG + "merge":
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._mistake(key_node, path, "a key must be text")
            key = str(key_node.value)
            if key in own:
                raise self._mistake(key_node, (*path, key), "the key is there twice")
            own.add(key)
            self._lines[(*path, key)] = key_node.start_mark.line + 1
            found[key] = self._value(child, (*path, key))
        return found

    def _merged(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        """What ``<<`` brings: a mapping, or several, of which the first wins."""
        found: dict[str, Any] = {}
        for each in reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]:
            value = self._value(each, path)
            if not isinstance(value, dict):
                raise self._mistake(each, path, "<< takes keys and values")
            found.update(value)
        return found

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        if node.tag not in _SCALARS:
            raise self._mistake(node, path, f"{node.tag} is not known here")
        try:
            value = self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError, KeyError):
            raise self._mistake(node, path, f"{node.value!r} is not what its form says") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise self._mistake(node, path, "must be a finite number")
        return value

    def _mistake(self, node: yaml.Node, path: Path, text: str) -> SettingsError:
        return SettingsError(f"{self.name}:{node.start_mark.line + 1}: {_dotted(path)}{text}")


def _without_nulls(value: Any, schema: Mapping[str, Any] = SCHEMA) -> Any:
    """The value without keys that have none, where the schema knows the keys: ``partitions:`` with nothing below is nothing.
    A partition with nothing below is there."""
    if not isinstance(value, dict):
        return value
    if "properties" in schema:
        known = schema["properties"]
        return {key: _without_nulls(child, known.get(key, {})) for key, child in value.items() if child is not None}
    named = schema.get("additionalProperties")
    if isinstance(named, Mapping) and "properties" in named:
        return {key: _without_nulls({} if child is None else child, named) for key, child in value.items()}
    return value


# ------------------------------------------------------------------- mistakes


def _passes(check: Callable[[str], object], kinds: tuple[type, ...], value: Any) -> bool:
    """True for what passes, and for what the schema's type refuses already."""
    if isinstance(value, kinds) and not isinstance(value, bool):
        check(str(value))
    return True


_CHECKER = FormatChecker(formats=())
for _format, _check in FORMATS.items():
    _CHECKER.checks(_format, raises=GrammarError)(partial(_passes, _check, (str, int, float) if _format == "cpus" else (str,)))

_VALIDATOR = Draft202012Validator(SCHEMA, format_checker=_CHECKER)

_TYPES = {
    "string": "text",
    "object": "keys and values",
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "nothing",
}


def _schema_mistakes(found: Any) -> list[_Mistake]:
    return [mistake for error in _VALIDATOR.iter_errors(found) for mistake in _of(error)]


def _of(error: Any) -> Iterator[_Mistake]:
    """What a validation error means to a person."""
    path: Path = tuple(error.absolute_path)
    if "propertyNames" in error.absolute_schema_path:
        path = (*path, str(error.instance))
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        for key in error.instance:
            if key not in known:
                yield _Mistake((*path, key), f"unknown key{_near(key, known)}")
    elif error.validator == "required":
        for key in error.validator_value:
            if key not in error.instance:
                yield _Mistake(path, f"{key} is missing")
    else:
        yield _Mistake(path, _WORDS[str(error.validator)](error))


def _type_words(error: Any) -> str:
    wanted = error.validator_value
    names = [wanted] if isinstance(wanted, str) else [name for name in wanted if name != "null"]
    hint = ""
    if "string" in names and isinstance(error.instance, bool | int | float):
        hint = "; text that looks like one needs quotation marks"
    return f"expected {' or '.join(_TYPES[name] for name in names)}, not {_shown(error.instance)}{hint}"


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "type": _type_words,
    "enum": lambda error: (
        f"expected one of {', '.join(error.validator_value)}, not {_shown(error.instance)}"
        f"{_near(str(error.instance), error.validator_value)}"
    ),
    "format": lambda error: str(error.cause),
    "minimum": lambda error: f"must be at least {error.validator_value}",
    "maximum": lambda error: f"must be at most {error.validator_value}",
    "minLength": lambda error: "must not be empty",
}


def _near(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key.lower(), [name.lower() for name in known], 1)
    return f"; did you mean {next(name for name in known if name.lower() == near[0])}?" if near else ""


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return repr(value) if len(value) < 60 else repr(value[:60]) + " …"
    if isinstance(value, bool):
        return "true" if value else "false"
    return {dict: "keys and values", list: "a list", type(None): "nothing"}.get(type(value), str(value))


def _other_mistakes(found: Mapping[str, Any]) -> list[_Mistake]:
    """What the schema cannot say."""
    mistakes = [*_gres_mistakes(found.get("gres", ())), *_pods_mistakes(("pods",), found.get("pods", {}))]
    partitions = found.get("partitions", {})
    for name, partition in partitions.items():
        mistakes += _pods_mistakes(("partitions", name, "pods"), partition.get("pods", {}))
    defaults = [name for name, partition in partitions.items() if partition.get("default")]
    mistakes += [_Mistake(("partitions", name, "default"), f"{defaults[0]} is the default already") for name in defaults[1:]]
    return mistakes


def _gres_mistakes(sources: list[Mapping[str, Any]]) -> Iterator[_Mistake]:
    for index, source in enumerate(sources):
        path: Path = ("gres", index)
        if ("resource" in source) == ("deviceClass" in source):
            yield _Mistake(path, "either resource or deviceClass says where it comes from")
        if "type" in source and "typeLabel" in source:
            yield _Mistake((*path, "type"), "either type or typeLabel says the type")
        if source.get("resource", "").endswith("*") and ("type" in source or "typeLabel" in source):
            yield _Mistake((*path, "resource"), "the * says the type already")


def _pods_mistakes(path: Path, pods: Mapping[str, Any]) -> Iterator[_Mistake]:
    names: set[str] = set()
    for index, volume in enumerate(pods.get("volumes", ())):
        here: Path = (*path, "volumes", index)
        if volume["name"] in names:
            yield _Mistake((*here, "name"), f"there are two volumes {volume['name']}")
        names.add(volume["name"])
        if sum(source in volume for source in VOLUME_SOURCES) != 1:
            yield _Mistake(here, "needs one kind of volume (hostPath, nfs, persistentVolumeClaim, ...)")
        if "mountPath" not in volume and not volume.get("mounts"):
            yield _Mistake(here, "mountPath is missing")
    for index, toleration in enumerate(pods.get("tolerations", ())):
        if toleration.get("operator", "Equal") != "Exists" and "key" not in toleration:
            yield _Mistake((*path, "tolerations", index), "without a key, operator must be Exists")
        if toleration.get("operator") == "Exists" and toleration.get("value"):
            yield _Mistake((*path, "tolerations", index, "value"), "operator Exists takes no value")


# ------------------------------------------------------------------- values


def _settings(found: Mapping[str, Any], folder: str) -> Settings:
    site = _pods_over(PodSettings(), found.get("pods", {}))
    given = _attributes(found)
    given["pods"] = site
    given["partitions"] = tuple(_partition(name, said, site) for name, said in found.get("partitions", {}).items())
    if "gres" in found:
        given["gres"] = tuple(GresSource(**_attributes(source)) for source in found["gres"])
    if "features" in found:
        given["features"] = Features(**_attributes(found["features"]))
    if "client" in found:
        given["client"] = ClientLimits(**_attributes(found["client"]))
    for key in ("accounts", "qos"):
        given[key] = {name: said or {} for name, said in found.get(key, {}).items()}
    for key in ("templates", "kubeconfig"):
        if found.get(key):
            given[key] = os.path.join(folder, os.path.expanduser(found[key]))
    return Settings(**given)


def _attributes(found: Mapping[str, Any]) -> dict[str, Any]:
    """Keys as attributes, lists as tuples."""
    return {attribute(key): tuple(value) if isinstance(value, list) else value for key, value in found.items()}


def _partition(name: str, said: Mapping[str, Any], site: PodSettings) -> PartitionSettings:
    return PartitionSettings(name, said.get("nodes"), said.get("default", False), _pods_over(site, said.get("pods", {})))


def _pods_over(below: PodSettings, said: Mapping[str, Any]) -> PodSettings:
    """What is said over what is there: see ``_OVER`` for what is put together, the rest takes the other's place."""
    given = _attributes(said)
    for key, put_together in _OVER.items():
        if key in given:
            given[key] = put_together(getattr(below, key), given[key])
    return replace(below, **given)


def _merged(below: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Key by key; null takes a key away."""
    return {key: value for key, value in {**below, **said}.items() if value is not None}


def _spec_over(below: Any, said: Any) -> Any:
    """Parts of a pod's spec over others: mappings key by key, lists of named things by name. Null stays, since it takes away
    what slurmk itself would say."""
    if isinstance(below, Mapping) and isinstance(said, Mapping):
        return {**below, **{key: _spec_over(below[key], value) if key in below else value for key, value in said.items()}}
    if _is_named(below) and _is_named(said):
        found = {each["name"]: each for each in below}
        found.update((each["name"], _spec_over(found.get(each["name"]), each)) for each in said)
        return list(found.values())
    return said


def _is_named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) and "name" in each for each in value)


def _by_name(below: tuple[Mapping[str, Any], ...], said: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
    found = {volume["name"]: volume for volume in below}
    found.update((volume["name"], volume) for volume in said)
    return tuple(found.values())


_OVER: Mapping[str, Callable[[Any, Any], Any]] = {
    "kind": lambda below, said: Kind(said),
    "queue_system": lambda below, said: QueueSystem(said),
    "cpu_request": lambda below, said: str(said),
    "image_pull_secrets": lambda below, said: tuple(dict.fromkeys((*below, *said))),
    "tolerations": lambda below, said: (*below, *(each for each in said if each not in below)),
    "volumes": _by_name,
    "node_selector": _merged,
    "labels": _merged,
    "annotations": _merged,
    "environment": _merged,
    "pod": _spec_over,
}
