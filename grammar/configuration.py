"""slurm.conf, gres.conf and topology.conf as text: what stands where (slurm.conf(5)).

Every value keeps its file and line, so that whoever finds it wrong can say where. What values mean together (nodes,
partitions, defaults) is for ``slurmk.model.configuration``. Nothing here reads files: the caller gives a function.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from grammar.configuration_keys import BLOCK_KEYS, GRES_KEYS, KEYS, OTHER_KEYS, RECORDS, REPEATABLE, TOPOLOGY_KEYS, Key, Value
from grammar.errors import GrammarError
from grammar.times import INFINITE, parse_duration

Reader = Callable[[str], str | None]
"""Gives the text of a file, or None when there is none."""

MAXIMUM_DEPTH = 10
"""Files that may include each other."""

_PAIR = re.compile(r'[ \t]*([A-Za-z0-9_.]+)[ \t]*([-+*/]?)=[ \t]*(?:"([^"]*)"|([^ \t"]\S*))(?=[ \t]|\Z)', re.ASCII)
_INCLUDE = re.compile(r"include[ \t]+(\S.*)\Z", re.IGNORECASE)
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]{1,16}|0[0-7]{0,21}|[1-9]\d{0,19})\Z", re.ASCII)
_COMMENT = re.compile(r"(?<!\\)#.*", re.DOTALL)

_MAXIMA = {Value.NUMBER16: 0xFFFF, Value.NUMBER: 0xFFFFFFFF, Value.NUMBER64: 0xFFFFFFFFFFFFFFFF}
_YES = frozenset({"yes", "up", "true", "1"})
_NO = frozenset({"no", "down", "false", "0"})


COMPOSED = frozenset({"jobdefaults"})
"""Keys that are shown, and set by others."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line without comments, with those joined to it that backslashes continue; ``number`` is its first."""

    text: str
    file: str
    number: int

    def error(self, message: str) -> GrammarError:
        return GrammarError(f"{self.file} line {self.number}: {message}")


@dataclass(frozen=True, slots=True)
class Setting:
    """A key and its value, where it was written."""

    key: Key
    value: str
    line: Line

    def error(self, message: str) -> GrammarError:
        """An error that names file and line; ``message`` names the key."""
        return self.line.error(message)

    @property
    def number(self) -> int:
        """The value of a key that takes a number; INFINITE for UNLIMITED."""
        return INFINITE if _unlimited(self.value) else _whole(self.value)

    @property
    def yes(self) -> bool:
        """The value of a key that takes YES or NO."""
        return self.value.lower() in _YES

    @property
    def words(self) -> tuple[str, ...]:
        """The value as a comma-separated list."""
        return tuple(word for word in self.value.split(",") if word)


@dataclass(frozen=True, slots=True)
class Record:
    """A line that describes one thing, as ``NodeName=…``. ``settings`` are by lower-case key."""

    kind: str
    settings: Mapping[str, Setting]
    line: Line

    @property
    def name(self) -> str:
        return self.settings[self.kind].value if self.kind in self.settings else ""

    def get(self, key: str) -> Setting | None:
        return self.settings.get(key.lower())

    def text(self, key: str, default: str = "") -> str:
        setting = self.settings.get(key.lower())
        return setting.value if setting else default

    def number(self, key: str, default: int) -> int:
        setting = self.settings.get(key.lower())
        return setting.number if setting else default

    def error(self, message: str) -> GrammarError:
        return self.line.error(message)


@dataclass(slots=True)
class Configuration:
    """All of slurm.conf: single keys (lower-case; the last one counts) and records in their order."""

    file: str
    settings: dict[str, Setting] = field(default_factory=dict)
    repeated: dict[str, list[Setting]] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    used_scheduler_parameters: str | None = None  # those that count, where some do not
    warnings: list[str] = field(default_factory=list)  # what is told, and passed over or done otherwise

    def get(self, key: str) -> Setting | None:
        return self.settings.get(key.lower())


def read_slurm_conf(read: Reader, path: str) -> Configuration:
    """slurm.conf and what it includes. Raises GrammarError with file, line and key."""
    configuration = Configuration(path)
    for line in _lines(read, path, 0):
        first, record = _first_key(line)
        if record is not None:
            configuration.records.append(_record(line, first, record, configuration.warnings))
            continue
        key = _KEYS.get(first)
        if key is None or first in COMPOSED:
            raise line.error(f"Parsing error at unrecognized key: {_typed_key(line)}")
        settings = _settings(line, {first: key})
        if len(settings) > 1:
            raise line.error(f'Parse error: "{line.text}"')
        for setting in settings.values():
            if first in configuration.settings and first not in REPEATABLE:
                configuration.warnings.append(_twice(setting))
            configuration.settings[first] = setting
            if first in REPEATABLE:
                configuration.repeated.setdefault(first, []).append(setting)
    return configuration


def read_gres_conf(read: Reader, path: str) -> tuple[Record, ...]:
    """The lines of gres.conf; none where there is no file."""
    return _read_records(read, path, "name", GRES_KEYS)


def read_topology_conf(read: Reader, path: str) -> tuple[Record, ...]:
    """The switches of topology.conf; none where there is no file."""
    return _read_records(read, path, "switchname", TOPOLOGY_KEYS)


def read_block_conf(read: Reader, path: str) -> tuple[Record, ...]:
    """The blocks of topology.conf, and records without a name that say BlockSizes; none where there is no file."""
    return _read_records(read, path, "blockname", BLOCK_KEYS)


def _read_records(read: Reader, path: str, kind: str, keys: tuple[Key, ...]) -> tuple[Record, ...]:
    if read(path) is None:
        return ()
    table = {key.name.lower(): key for key in keys}
    return tuple(Record(kind, _settings(line, table), line) for line in _lines(read, path, 0))


# ------------------------------------------------------------------------------------------------ lines


def _lines(read: Reader, path: str, depth: int) -> Iterator[Line]:
    text = read(path)
    if text is None:
        raise GrammarError(f"{path}: no such file, or it cannot be read")
    for line in _joined(text, path):
        include = _INCLUDE.match(line.text)
        if include is None:
            yield line
            continue
        if depth >= MAXIMUM_DEPTH:
            raise line.error("Include: files include each other too deeply")
        target = posixpath.join(posixpath.dirname(path), include[1].strip().strip('"'))
        if read(target) is None:
            raise line.error(f"Include: {target}: no such file, or it cannot be read")
        yield from _lines(read, target, depth + 1)


def _joined(text: str, path: str) -> Iterator[Line]:
    parts: list[str] = []
    start = 0
    for number, raw in enumerate([*text.split("\n"), ""], 1):
        start = start if parts else number
        stripped = _COMMENT.sub("", raw.rstrip("\r"))
        if stripped.rstrip().endswith("\\"):
            parts.append(stripped.rstrip()[:-1])
            continue
        parts.append(stripped)
        whole = "".join(parts).replace("\\#", "#").strip()
        parts = []
        if whole:
            yield Line(whole, path, start)


# ------------------------------------------------------------------------------------------------ keys and values

_KEYS = {key.name.lower(): key for key in (*KEYS, *OTHER_KEYS) if key.value is not Value.FACT}
_RECORD_KEYS = {kind: {key.name.lower(): key for key in keys} for kind, keys in RECORDS.items()}


def _first_key(line: Line) -> tuple[str, Mapping[str, Key] | None]:
    typed = _typed_key(line).lower()
    return typed, _RECORD_KEYS.get(typed)


def _typed_key(line: Line) -> str:
    match = _PAIR.match(line.text)
    if match is None:
        raise line.error(f'Parse error: "{line.text}"')
    return match[1]


def _record(line: Line, kind: str, table: Mapping[str, Key], warnings: list[str]) -> Record:
    return Record(kind, _settings(line, table, warnings), line)


def _twice(setting: Setting) -> str:
    return str(setting.error(f"{setting.key.name} specified more than once, latest value used"))


def _settings(line: Line, table: Mapping[str, Key], warnings: list[str] | None = None) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    position = 0
    while position < len(line.text):
        match = _PAIR.match(line.text, position)
        if match is None:
            raise line.error(f'Parse error: "{line.text[position:]}"')
        typed = match[1].lower()
        key = table.get(typed)
        if key is None and len(table) == 1:
            raise line.error(f'Parse error: "{line.text[position:]}"')
        if key is None:
            raise line.error(f"Parsing error at unrecognized key: {match[1]}")
        value = match[3] if match[3] is not None else match[4]
        setting = _checked(Setting(key, value, line))
        if typed in found and warnings is not None:
            warnings.append(_twice(setting))
        found[typed] = setting
        position = match.end()
        while position < len(line.text) and line.text[position] in " \t":
            position += 1
    return found


def _unlimited(value: str) -> bool:
    return value.lower() in ("unlimited", "infinite")


def _checked(setting: Setting) -> Setting:
    """The setting, if its value is of the kind that its key takes. The words are Slurm's."""
    name, value, kind = setting.key.name, setting.value, setting.key.value
    if kind in _MAXIMA and not _unlimited(value):
        _check_number(setting, name, value, _MAXIMA[kind])
    elif kind is Value.YES_NO and value.lower() not in _YES | _NO:
        raise setting.error(f'"{value}" is not a valid option for "{name}"')
    elif kind in (Value.MINUTES, Value.DURATION):
        try:
            if value.lower() != "none":
                parse_duration(value)
        except GrammarError:
            raise setting.error(f'Bad value "{value}" for {name}') from None
    return setting


def _whole(text: str) -> int:
    """A number as C writes them: ``0x10`` and ``020`` are 16."""
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    return int(text, 8 if text[0] == "0" else 10)


def _check_number(setting: Setting, name: str, value: str, maximum: int) -> None:
    if re.fullmatch(r"-\d+", value, re.ASCII):
        raise setting.error(f"{name} value ({value}) is less than zero")
    if _NUMBER.match(value) is None:
        shown = f'"{value}"' if maximum == 0xFFFF else f"({value})"
        raise setting.error(f"{name} value {shown} is not a valid number")
    if _whole(value) > maximum:
        raise setting.error(f"{name} value ({value}) is greater than {maximum}")
