"""Batch scripts: what sbatch checks of them and reads in them (sbatch(1)).

Only the lines before the first command are read: ``#SBATCH`` directives, and where there is no ``--ignore-pbs`` those of
PBS and LSF, which count as the sbatch options that mean the same. The script itself is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from grammar.errors import GrammarError

LARGEST_SCRIPT = 4 * 1024 * 1024
"""Bytes of a script that the controller takes (max_script_size)."""

WRAP_HEAD = b"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n"
"""What ``--wrap`` puts before its command."""

_BLANKS = b" \t\v\f\r\n"


class ScriptError(GrammarError):
    """A script that is not taken. ``fatal`` says which word Slurm puts before the message; ``lines`` are the message."""

    def __init__(self, *lines: str, fatal: bool = False, code: int = 1) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.fatal = fatal
        self.code = code


@dataclass(frozen=True, slots=True)
class Directive:
    """The words of one directive, and the number of its line."""

    line: int
    words: tuple[str, ...]


@dataclass(slots=True)
class ScriptDirectives:
    """What a script asks for. ``components`` are the directives of each component of a het job (of an ordinary job there is
    one), ``foreign`` what PBS and LSF directives mean in sbatch's words; ``warnings`` are for the user."""

    components: list[list[Directive]] = field(default_factory=lambda: [[]])
    foreign: list[Directive] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    interpreter: str = ""


def wrapped(command: str) -> bytes:
    """The script that ``--wrap`` submits."""
    return WRAP_HEAD + command.encode("utf-8", "surrogateescape") + b"\n"


def check_script(script: bytes) -> None:
    """Refuse what is no batch script. Raises ScriptError with the messages that sbatch prints."""
    if not script:
        raise ScriptError("Batch script is empty!")
    if not script.strip(_BLANKS):
        raise ScriptError("Batch script contains only whitespace!")
    if not script.startswith(b"#!"):
        raise ScriptError(
            "This does not look like a batch script.  The first",
            "line must start with #! followed by the path to an interpreter.",
            "For instance: #!/bin/sh",
        )
    if b"\0" in script:
        raise ScriptError("The Slurm controller does not allow scripts that", r"contain a NULL character '\0'.")
    if b"\r\n" in script:
        raise ScriptError(r"Batch script contains DOS line breaks (\r\n)", r"instead of expected UNIX line breaks (\n).")


def read_script(script: bytes, name: str, *, foreign: bool = True) -> ScriptDirectives:
    """The directives of a script that ``check_script`` let pass. ``name`` is the script's as typed, for messages.

    ``foreign`` false leaves PBS and LSF directives alone. Raises ScriptError.
    """
    found = ScriptDirectives(interpreter=_text(script[2 : _end(script, 0)]).strip())
    for number, line in _head(script):
        if line.startswith("#SBATCH"):
            _directive(found, number, line[7:], name)
        elif foreign and line.startswith("#PBS"):
            found.foreign += _translated(number, _words(line[4:], number, name), _PBS)
        elif foreign and line.startswith("#BSUB"):
            found.foreign += _translated(number, _words(line[5:], number, name), _LSF)
    return found


def _directive(found: ScriptDirectives, number: int, rest: str, name: str) -> None:
    separator = rest.lstrip(" \t\v\f\r")[:7].lower()
    if separator.startswith(("hetjob", "packjob")):
        if separator == "packjob":
            found.warnings.append('The "packjob" component separator is deprecated. Please use "hetjob" instead.')
        found.components.append([])
        return
    words = _words(rest, number, name)
    if words:
        found.components[-1].append(Directive(number, words))


def _end(script: bytes, start: int) -> int:
    end = script.find(b"\n", start)
    return len(script) if end < 0 else end


def _head(script: bytes) -> Iterator[tuple[int, str]]:
    """Number and text of every line up to the first that is neither blank nor a comment."""
    start, number = 0, 1
    while start < len(script):
        end = _end(script, start)
        line = script[start:end]
        if line.startswith((b"#SBATCH", b"#PBS", b"#BSUB")):
            yield number, _text(line)
        elif not line.startswith(b"#"):
            bare = line.lstrip(_BLANKS)
            if bare and not bare.startswith(b"#"):
                return
        start, number = end + 1, number + 1


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


_SPACES = " \t\v\f\r\n"
_SPACE = re.compile(f"[{_SPACES}]+")
_SPECIAL = re.compile("[\"'\\\\#:]")
_WORD = re.compile(
    r"""(?P<plain>[^ \t\v\f\r\n"'\\\#]+)|\\(?P<escaped>.)|(?P<end>\\\Z)"""
    r"""|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def _words(text: str, number: int, name: str) -> tuple[str, ...]:
    """The words of a directive: quotes of both kinds, a backslash takes the next character as it is, also in quotes, and
    an unquoted ``#`` ends the line."""
    if not _SPECIAL.search(text):
        return tuple(word for word in _SPACE.split(text) if word)
    words: list[str] = []
    position, length = len(text) - len(text.lstrip(_SPACES)), len(text)
    while position < length and text[position] != "#":
        before = position
        while position < length and text[position] in _SPACES:
            position += 1
        if position >= length or text[position] == "#":
            break
        word, position = _word(text, position, before, number, name)
        words.append(word)
    return tuple(words)


def _word(text: str, position: int, before: int, number: int, name: str) -> tuple[str, int]:
    pieces: list[str] = []
    start = position
    while position < len(text) and text[position] not in _SPACES and text[position] != "#":
        match = _WORD.match(text, position)
        if match is None:
            raise ScriptError(f"{name}: line {number}: Unmatched `{text[position]}` in [{text[before:]}]", fatal=True)
        kind = match.lastgroup
        if kind in ("double", "single"):
            pieces.append(_ESCAPE.sub(r"\1", match[kind]))
        elif kind != "end":
            assert kind is not None
            pieces.append(match[kind])
        position = match.end()
    word = "".join(pieces)
    if word == ":" and text[start] == ":":
        raise ScriptError(f"{name}: line {number}: Unexpected `:` in [{text[before:]}]", fatal=True)
    return word, position


# ------------------------------------------------------------------------------------- PBS and LSF directives

Translation = Callable[[str], list[str]]


def _as(option: str) -> Translation:
    return lambda value: [f"{option}={value}"]


def _flag(option: str) -> Translation:
    return lambda _: [option]


def _pbs_mail(value: str) -> list[str]:
    words = {"a": "FAIL", "b": "BEGIN", "e": "END", "n": "NONE"}
    kinds = ",".join(words[letter] for letter in value if letter in words)
    return [f"--mail-type={kinds}"] if kinds else []


def _pbs_time(value: str) -> list[str]:
    return [f"--time={value if ':' in value else _seconds(value)}"]


def _seconds(value: str) -> str:
    return str(-(-int(value) // 60)) if value.isascii() and value.isdigit() and len(value) < 12 else value


def _size(option: str) -> Translation:
    """PBS writes sizes with a unit of bytes: ``2gb``, ``500mb``."""

    def translate(value: str) -> list[str]:
        match = re.fullmatch(r"(\d+)([kmgt]?)b?", value.lower(), re.ASCII)
        return [f"{option}={match[1]}{(match[2] or 'm').upper()}"] if match else []

    return translate


def _pbs_nodes(value: str) -> list[str]:
    """``2:ppn=4`` is two nodes for eight tasks; names of nodes are asked for by name."""
    count, *properties = value.split(":")
    words = [f"--nodes={count}"] if count.isascii() and count.isdigit() else [f"--nodelist={count}"]
    for item in properties:
        key, _, amount = item.partition("=")
        if key == "ppn" and (count + amount).isascii() and (count + amount).isdigit() and len(count + amount) < 10:
            words.append(f"--ntasks={int(count or 1) * int(amount or 1)}")
        elif key == "gpus":
            words.append(f"--gpus-per-node={amount}")
    return words


_PBS_RESOURCES: dict[str, Translation] = {
    "nodes": _pbs_nodes,
    "walltime": _pbs_time,
    "cput": _pbs_time,
    "mem": _size("--mem"),
    "pmem": _size("--mem-per-cpu"),
    "file": _size("--tmp"),
    "ncpus": _as("--cpus-per-task"),
    "procs": _as("--ntasks"),
    "naccelerators": _as("--gpus-per-node"),
    "software": _as("--licenses"),
}


def _pbs_resources(value: str) -> list[str]:
    """``-l nodes=2:ppn=4,walltime=1:00:00``; what sbatch has no word for is passed over, as in the original."""
    words: list[str] = []
    for item in value.split(","):
        key, _, amount = item.partition("=")
        if key in _PBS_RESOURCES and amount:
            words += _PBS_RESOURCES[key](amount)
    return words


_PBS: dict[str, Translation] = {
    "a": _as("--begin"),
    "A": _as("--account"),
    "d": _as("--chdir"),
    "e": _as("--error"),
    "h": _flag("--hold"),
    "J": _as("--array"),
    "l": _pbs_resources,
    "m": _pbs_mail,
    "M": _as("--mail-user"),
    "N": _as("--job-name"),
    "o": _as("--output"),
    "p": lambda value: [f"--nice={-int(value)}"] if re.fullmatch(r"-?\d{1,6}", value, re.ASCII) else [],
    "q": _as("--partition"),
    "t": _as("--array"),
    "v": _as("--export"),
    "V": _flag("--export=ALL"),
}

_LSF: dict[str, Translation] = {
    "cwd": _as("--chdir"),
    "e": _as("--error"),
    "J": _as("--job-name"),
    "m": _as("--nodelist"),
    "M": _as("--mem-per-cpu"),
    "n": _as("--ntasks"),
    "o": _as("--output"),
    "q": _as("--partition"),
    "W": _as("--time"),
    "x": _flag("--exclusive"),
}

_WITHOUT_VALUE = frozenset(("h", "V", "x"))


def _translated(number: int, words: tuple[str, ...], table: dict[str, Translation]) -> Iterator[Directive]:
    """The sbatch words of ``-N name -l nodes=2``; unknown options are passed over."""
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if not word.startswith("-") or len(word) < 2:
            continue
        letter, value = (word[1:], "") if word[1:] in table else (word[1], word[2:])
        if letter not in table:
            continue
        if letter not in _WITHOUT_VALUE and not value:
            if not rest:
                continue
            value = rest.pop()
        if translated := tuple(table[letter](value)):
            yield Directive(number, translated)
