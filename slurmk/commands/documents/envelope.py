"""What is around a document's rows: who asked how, of which cluster, with which version of the data parser."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from slurmk import SLURM_VERSION
from slurmk.commands.documents.shape import LATEST, VERSIONS

_SPECIFIED = re.compile(r"(?:data_parser/)?(v0\.0\.(\d{1,4})|latest)((?:\+[^+,]*)*)\Z", re.ASCII)
_PLUGINS = ("v0.0.43", "v0.0.42", "v0.0.45", "v0.0.44")
_SPEC_ONLY, _COMPLEX = "spec_only", "complex"
_FLAGS = frozenset(("fast", _COMPLEX, "minimize_refs"))
_DEFAULT_FLAG = "prefer_refs"


class Unsupported(Exception):
    """That data parser is not there; ``lines`` are what Slurm says, without the command's name."""

    def __init__(self, *lines: str) -> None:
        super().__init__(lines[0])
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Wanted:
    """The form in which a command is to print: ``--json=v0.0.44+complex``."""

    yaml: bool
    version: int = LATEST
    complex: bool = False
    flags: str = ""  # as typed: +complex
    compact: bool = False  # SLURM_JSON
    notices: tuple[str, ...] = field(default=())  # lines for standard error, without the command's name

    @property
    def parser(self) -> str:
        return f"data_parser/v0.0.{self.version}{self.flags}"


PLUGINS = "".join(f"data_parser/{name}\n" for name in _PLUGINS)
"""What ``--json=list`` writes to standard output, below ``POSSIBLE`` on standard error."""

POSSIBLE = "Possible data_parser plugins:\n"


def wanted(value: str | None, *, yaml: bool) -> Wanted:
    """The meaning of ``--json`` (None), ``--json=VALUE`` and the same of ``--yaml``. Raises Unsupported."""
    if value is None:
        return Wanted(yaml)
    match = _SPECIFIED.match(value)
    if match is None or (match[2] and int(match[2]) not in VERSIONS):
        raise _unknown(value, yaml=yaml)
    flags = [flag for flag in match[3].split("+") if flag]
    if _SPEC_ONLY in (flag.lower() for flag in flags):
        raise Unsupported("error: +spec_only is not part of slurmk: the REST API serves the specification")
    version = int(match[2]) if match[2] else LATEST
    name = f"data_parser/v0.0.{version}"
    notices = [_notice(name, flag) for flag in flags if flag.lower() not in _FLAGS]
    return Wanted(yaml, version, _COMPLEX in (flag.lower() for flag in flags), match[3], notices=tuple(notices))


def _notice(name: str, flag: str) -> str:
    if flag.lower() == _DEFAULT_FLAG:
        return f"{name} ignoring default flag FLAG_PREFER_REFS"
    return f"warning: {name} ignoring unknown flag {flag}"


def _unknown(value: str, *, yaml: bool) -> Unsupported:
    kind = "x-yaml" if yaml else "json"
    last = f"error: application/{kind} output not supported by data_parser/v0.0.{LATEST}"
    name = value.partition("+")[0]
    if not value:
        return Unsupported("error: data_parser_g_new: invalid plugin ", last)
    if not name:
        return Unsupported("error: data_parser_g_new: unable to find plugin ", last)
    if "," in value:
        return Unsupported(f"error: data_parser_g_new: rejecting ambiguous plugin {value}", last)
    return Unsupported(
        f"error: load_plugins: unable to find plugin: data_parser/{name.removeprefix('data_parser/')}",
        "error: data_parser_g_new: failure loading plugins: Plugin has invalid format or unable to be loaded",
        last,
    )


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asked, with which words, where: what ``meta`` tells. ``source`` is a terminal, or nothing."""

    user: str
    group: str
    command: Sequence[str]
    cluster: str
    source: str = ""
    accounting: str = "accounting_storage/slurmdbd"


def meta(asker: Asker, parser: str) -> dict[str, object]:
    """The ``meta`` of a document."""
    major, minor, micro = SLURM_VERSION.split(".")[:3]
    return {
        "plugin": {"type": "", "name": "", "data_parser": parser, "accounting_storage": asker.accounting},
        "client": {"source": asker.source, "user": asker.user, "group": asker.group},
        "command": list(asker.command),
        "slurm": {
            "version": {"major": major, "micro": micro, "minor": minor},
            "release": SLURM_VERSION,
            "cluster": asker.cluster,
        },
    }


def surroundings(
    asker: Asker,
    parser: str,
    *,
    before: Mapping[str, object] | None = None,
    errors: Iterable[Mapping[str, object]] = (),
    warnings: Iterable[str] = (),
) -> dict[str, object]:
    """What follows a document's rows: ``before`` (last_update and the like), meta, errors, warnings."""
    return {
        **(before or {}),
        "meta": meta(asker, parser),
        "errors": [dict(error) for error in errors],
        "warnings": [{"description": text, "source": ""} for text in warnings],
    }
