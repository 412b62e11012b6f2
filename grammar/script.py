"""Batch scripts: what sbatch checks of them and reads in them (sbatch(1)).

Only the lines before the first command are read: ``#SBATCH`` directives, and where there is no ``--ignore-pbs`` those of
PBS and LSF, which count as the sbatch options that mean the same. The script itself is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from grammar.arguments import Argument, Given, Option, read_arguments
from grammar.errors import GrammarError

LARGEST_SCRIPT = 4 * 1024 * 1024
"""Bytes of a script that the controller takes (max_script_size)."""

WRAP_HEAD = b"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n"
"""What ``--wrap`` puts before its command."""

_BLANKS = b" \t\v\f\r\n"


class ScriptError(GrammarError):
    """A script that is not taken. ``fatal`` says which word Slurm puts before the message; ``lines`` are the message, and
    ``getopt`` is the line that getopt(3) prints before it."""

    def __init__(self, *lines: str, fatal: bool = False, code: int = 1, getopt: str = "") -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.fatal = fatal
        self.code = code
        self.getopt = getopt


@dataclass(frozen=True, slots=True)
class Directive:
    """The words of one directive, and the number of its line."""

    line: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForeignDirective(Directive):
    """A directive of another system, whose options are in ``table``."""

    table: tuple[ForeignOption, ...]

    def translated(self) -> Iterator[tuple[str, ...]]:
        """What each option of ``-N name -l nodes=2`` means in sbatch's words, one by one. Raises ScriptError for what the
        other system's table does not have."""
        try:
            for one in read_arguments("sbatch", self.table, self.words):
                if not isinstance(one, Given):
                    raise ScriptError(f"Invalid argument: {one}")
                option = one.option
                assert isinstance(option, ForeignOption)
                yield tuple(option.translation(one.value or ""))
        except ScriptError:
            raise
        except GrammarError as error:
            raise ScriptError("Unrecognized command line parameter ?", getopt=str(error)) from None


@dataclass(slots=True)
class ScriptDirectives:
    """What a script asks for. ``components`` are the directives of each component of a het job (of an ordinary job there is
    one), ``foreign`` those of PBS and LSF; ``warnings`` are for the user."""

    components: list[list[Directive]] = field(default_factory=lambda: [[]])
    foreign: list[ForeignDirective] = field(default_factory=list)
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
    """The directives of a script that ``check_script`` let pass. ``name`` is that of the script's file, for messages.

    ``foreign`` false leaves PBS and LSF directives alone. Raises ScriptError.
    """
    found = ScriptDirectives(interpreter=_text(script[2 : _end(script, 0)]).strip())
    for number, line in _head(script):
        if line.startswith("#SBATCH"):
            _directive(found, number, line[7:], name)
        elif foreign and line.startswith("#PBS"):
            found.foreign.append(ForeignDirective(number, _words(line[4:], number, name)[0], PBS))
        elif foreign and line.startswith("#BSUB"):
            found.foreign.append(ForeignDirective(number, _long_cwd(_words(line[5:], number, name)[0]), LSF))
    return found


_SEPARATORS = frozenset(("hetjob", "packjob"))
_SEPARATOR = re.compile(r"(hetjob|packjob)(?![^ \t\v\f\r\n])", re.IGNORECASE)
_OLD_SEPARATOR = 'The "packjob" component separator is deprecated. Please use "hetjob" instead.'


def _directive(found: ScriptDirectives, number: int, rest: str, name: str) -> None:
    """A separator that begins a line begins a component; elsewhere it only ends its line."""
    words, separator = _words(rest, number, name)
    if separator.lower() == "packjob" and _OLD_SEPARATOR not in found.warnings:
        found.warnings.append(_OLD_SEPARATOR)
    if separator and not words:
        found.components.append([])
    elif words:
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


def _words(text: str, number: int, name: str) -> tuple[tuple[str, ...], str]:
    """The words of a directive, and the separator of components that ends it: quotes of both kinds, a backslash takes the
    next character as it is, also in quotes, an unquoted ``#`` ends the line, and so does an empty word."""
    words: list[str] = []
    if not _SPECIAL.search(text):
        for word in _SPACE.split(text):
            if word.lower() in _SEPARATORS:
                return tuple(words), word
            if word:
                words.append(word)
        return tuple(words), ""
    position, length = len(text) - len(text.lstrip(_SPACES)), len(text)
    while position < length and text[position] != "#":
        before = position
        while position < length and text[position] in _SPACES:
            position += 1
        if position >= length or text[position] == "#":
            break
        if separator := _SEPARATOR.match(text, position):
            return tuple(words), separator[0]
        word, position = _word(text, position, before, number, name)
        if not word:
            break
        words.append(word)
    return tuple(words), ""


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
    if text[start] == ":":
        raise ScriptError(f"{name}: line {number}: Unexpected `:` in [{text[before:]}]", fatal=True)
    return word, position


# ------------------------------------------------------------------------------------- PBS and LSF directives

Translation = Callable[[str], list[str]]


def _as(option: str) -> Translation:
    return lambda value: [f"{option}={value}"]


def _flag(option: str) -> Translation:
    return lambda _: [option]


def _nothing(_: str) -> list[str]:
    return []


def _pbs_mail(value: str) -> list[str]:
    words = {"a": "FAIL", "b": "BEGIN", "e": "END", "n": "NONE"}
    return [f"--mail-type={','.join(words[letter] for letter in value if letter in words)}"]


def _size(option: str, usual_unit: str = "") -> Translation:
    """PBS and LSF write sizes with a unit of bytes: ``2gb``, ``500mb``."""

    def translate(value: str) -> list[str]:
        size = value[:-1] if value[-1:] in ("b", "B") else value
        return [f"{option}={size}{usual_unit if size.isdigit() else ''}"]

    return translate


def _pbs_nodes(value: str) -> list[str]:
    """``2:ppn=4`` is two nodes for eight tasks; ``+`` adds more of either; what is neither a count nor a known property is
    the name of a node, as in the original."""
    count, per_node, hosts, words = 0, 0, [], []
    for part in filter(None, re.split("[+:]", value)):
        key, _, amount = part.partition("=")
        if part[0] in _DIGITS:
            count += _leading(part)
        elif key == "ppn":
            per_node += _leading(amount)
        elif key == "gpus":
            words.append(f"--gpus-per-node={amount}")
        else:
            hosts.append(part)
    if hosts:
        words.append(f"--nodelist={','.join(hosts)}")
    if count:
        words.append(f"--nodes={count}")
    if per_node:
        words.append(f"--ntasks={per_node * (count or len(hosts))}")
    return words


_DIGITS = "0123456789"


def _leading(text: str) -> int:
    """The number that a text begins with, as atoi(3) reads it; a longer one than six digits is cut."""
    digits = text[: len(text) - len(text.lstrip(_DIGITS))]
    return int(digits[:6] or 0)


def _pbs_select(value: str) -> list[str]:
    """``2:ncpus=4:mem=1gb:mpiprocs=4``."""
    count, *properties = value.split(":")
    words = [f"--nodes={count}"]
    for item in properties:
        key, _, amount = item.partition("=")
        words += {"ncpus": _as("--mincpus"), "mem": _size("--mem"), "mpiprocs": _as("--ntasks-per-node")}.get(key, _nothing)(
            amount
        )
    return words


def _pbs_accelerator(value: str) -> list[str]:
    return ["--gpus-per-node=1"] if value.lower() == "true" else []


_PBS_RESOURCES: dict[str, Translation] = {
    "nodes": _pbs_nodes,
    "select": _pbs_select,
    "walltime": _as("--time"),
    "cput": _as("--time"),
    "mem": _size("--mem"),
    "file": _size("--tmp"),
    "ncpus": _as("--mincpus"),
    "nice": _as("--nice"),
    "naccelerators": _as("--gpus-per-node"),
    "accelerator": _pbs_accelerator,
    "proc": _as("--constraint"),
}


def _pbs_resources(value: str) -> list[str]:
    """``-l nodes=2:ppn=4,walltime=1:00:00``; what sbatch has no word for is passed over, as in the original, and so is pmem."""
    words: list[str] = []
    for item in value.split(","):
        key, equals, amount = item.partition("=")
        if equals and key in _PBS_RESOURCES:
            words += _PBS_RESOURCES[key](amount)
    return words


def _pbs_attributes(value: str) -> list[str]:
    key, _, amount = value.partition("=")
    return [f"--dependency={amount}"] if key == "depend" else []


def _most(value: str) -> list[str]:
    """Of ``-n 2,4``, which are the fewest and the most tasks."""
    return [f"--ntasks={value.rpartition(',')[2]}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignOption(Option):
    """An option of another system's directives, and what it means in sbatch's words."""

    translation: Translation


def _foreign(letter: str, translation: Translation = _nothing, argument: Argument = Argument.REQUIRED) -> ForeignOption:
    return ForeignOption((), letter, argument, translation=translation)


PBS: tuple[ForeignOption, ...] = (
    _foreign("a", _as("--begin")),
    _foreign("A", _as("--account")),
    _foreign("c"),
    _foreign("C"),
    _foreign("d", _as("--chdir")),
    _foreign("e", _as("--error")),
    _foreign("h", _flag("--hold"), Argument.NONE),
    _foreign("I", _nothing, Argument.NONE),
    _foreign("j"),
    _foreign("J", _as("--array")),
    _foreign("k"),
    _foreign("l", _pbs_resources),
    _foreign("m", _pbs_mail),
    _foreign("M", _as("--mail-user")),
    _foreign("N", _as("--job-name")),
    _foreign("o", _as("--output")),
    _foreign("p", _as("--nice")),
    _foreign("q", _as("--partition")),
    _foreign("r"),
    _foreign("S"),
    _foreign("t", _as("--array")),
    _foreign("u"),
    _foreign("v", _as("--export")),
    _foreign("V", _flag("--export=ALL"), Argument.NONE),
    _foreign("w", _as("--chdir")),
    _foreign("W", _pbs_attributes),
    _foreign("z", _nothing, Argument.NONE),
)
"""What may stand in ``#PBS`` lines (qsub(1))."""

LSF: tuple[ForeignOption, ...] = (
    _foreign("c", _as("--chdir")),
    _foreign("e", _as("--error")),
    _foreign("J", _as("--job-name")),
    _foreign("m", lambda value: [f"--nodelist={','.join(value.split())}"]),
    _foreign("M", _size("--mem-per-cpu", "K")),
    _foreign("n", _most),
    _foreign("o", _as("--output")),
    _foreign("q", _as("--partition")),
    _foreign("W", _as("--time")),
    _foreign("x", _flag("--exclusive"), Argument.NONE),
)
"""What may stand in ``#BSUB`` lines (bsub(1))."""


def _long_cwd(words: tuple[str, ...]) -> tuple[str, ...]:
    """LSF's one option of several letters is written with one dash."""
    return tuple("-c" if word == "-cwd" else word for word in words)
