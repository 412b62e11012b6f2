"""Batch scripts: whatever bytes they hold, they are read or refused in sbatch's words."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar.script import ScriptError, check_script, read_script, wrapped

HEAD = b"#!/bin/sh\n"


def meant(lines: bytes) -> list[tuple[str, ...]]:
    """What PBS and LSF directives mean in sbatch's words."""
    return [words for directive in read_script(HEAD + lines, "s.sh").foreign for words in directive.translated()]


def words(line: str) -> list[tuple[str, ...]]:
    return [directive.words for directive in read_script(HEAD + line.encode(), "s.sh").components[0]]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (b"", "empty"),
        (b" \n\t\n", "only whitespace"),
        (b"echo\n", "does not look like a batch script"),
        (b"\n#!/bin/sh\n", "does not look like a batch script"),
        (b"\x7fELF\0", "does not look like a batch script"),
        (b"#!/bin/sh\n\0", "NULL character"),
        (b"#!/bin/sh\r\n", "DOS line breaks"),
    ],
)
def test_what_is_no_script(script: bytes, words: str) -> None:
    with pytest.raises(ScriptError, match=words):
        check_script(script)


def test_directives_end_at_the_first_command() -> None:
    assert words("#SBATCH -n 1\n\n# c\n  # d\n#SBATCH -n 2\necho\n#SBATCH -n 3\n") == [("-n", "1"), ("-n", "2")]
    assert words("  #SBATCH -n 1\n##SBATCH -n 2\n# SBATCH -n 3\n#sbatch -n 4\n#SBATCH\n") == []


def test_components_and_foreign_directives() -> None:
    found = read_script(HEAD + b"#SBATCH -n 1\n#SBATCH HetJob -J x\n#SBATCH -n 2\n#PBS -N p -l nodes=2:ppn=3,mem=2gb\n", "s")
    assert [[directive.words for directive in component] for component in found.components] == [[("-n", "1")], [("-n", "2")]]
    assert meant(b"#PBS -N p -l nodes=2:ppn=3,mem=2gb\n") == [("--job-name=p",), ("--nodes=2", "--ntasks=6", "--mem=2g")]
    assert read_script(HEAD + b"#PBS -N p\n", "s", foreign=False).foreign == []
    (warning,) = read_script(HEAD + b"#SBATCH packjob\n#SBATCH -n1\n#SBATCH PackJob\n", "s").warnings
    assert "deprecated" in warning


def test_a_wrapped_command_is_a_script() -> None:
    assert wrapped("echo hi") == b"#!/bin/sh\n# This script was created by sbatch --wrap.\n\necho hi\n"


CHARACTERS = st.characters(blacklist_characters="\0\n", blacklist_categories=("Cs",))
QUOTABLE = st.text(alphabet=CHARACTERS, min_size=1)


@given(st.lists(QUOTABLE, min_size=1, max_size=5), st.sampled_from("\"'"))
def test_quoted_words_come_back(items: list[str], quote: str) -> None:
    quoted = " ".join(quote + item.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote for item in items)
    assert words(f"#SBATCH {quoted}\n") == [tuple(items)]


@given(st.binary(max_size=400) | st.binary(max_size=200).map(lambda tail: HEAD + b"#SBATCH " + tail))
def test_any_bytes_are_a_script_or_an_error(script: bytes) -> None:
    try:
        check_script(script)
        found = read_script(script, "s.sh")
    except ScriptError as error:
        assert error.lines  # noqa: PT017
    else:
        assert found.components


@given(st.text(alphabet="\"'\\#: \ta-=\v", max_size=40))
def test_any_directive_is_words_or_an_error(text: str) -> None:
    try:
        assert all(isinstance(word, str) for directive in words(f"#SBATCH {text}\n") for word in directive)
    except ScriptError as error:
        assert error.fatal  # noqa: PT017


@pytest.mark.parametrize(
    "line", [b"#SBATCH -n 1\n" * 100_000, b"#SBATCH " + b"'a' " * 200_000, b"#\n" * 1_000_000, b"#SBATCH " + b'"' * 1_000_001]
)
def test_large_scripts_take_time_in_proportion(line: bytes) -> None:
    begin = time.process_time()
    with contextlib.suppress(ScriptError):
        read_script(HEAD + line, "s.sh")
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-n 2 hetjob -n 3", [("-n", "2")]),
        ("--comment PackJob", [("--comment",)]),
        ('-n 2 "hetjob"', [("-n", "2", "hetjob")]),
        ("-n 2 hetjob:", [("-n", "2", "hetjob:")]),
        ('-C "" -n 2', [("-C",)]),
        ('-J ""x', [("-J", "x")]),
    ],
)
def test_separators_and_empty_words_end_a_line(line: str, expected: list[tuple[str, ...]]) -> None:
    found = read_script(HEAD + f"#SBATCH {line}\n#SBATCH -c 1\n".encode(), "s.sh")
    assert [directive.words for directive in found.components[0]] == [*expected, ("-c", "1")]
    assert len(found.components) == 1
    assert bool(found.warnings) == ("PackJob" in line)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1:ppn=8:n2", ("--nodelist=n2", "--nodes=1", "--ntasks=8")),
        ("n1:n2", ("--nodelist=n1,n2",)),
        ("1:n1+2:n2:ppn=3", ("--nodelist=n1,n2", "--nodes=3", "--ntasks=9")),
        ("2x:ppn=2", ("--nodes=2", "--ntasks=4")),
        ("3:ppn=x:", ("--nodes=3",)),
        ("2:gpus=2:procs=3", ("--gpus-per-node=2", "--nodelist=procs=3", "--nodes=2")),
    ],
)
def test_pbs_nodes(value: str, expected: tuple[str, ...]) -> None:
    assert meant(f"#PBS -l nodes={value}\n".encode()) == [expected]


def test_foreign_options_before_an_unknown_one_count_first() -> None:
    directive = read_script(HEAD + b"#PBS -N p -P x\n", "s.sh").foreign[0]
    translated = directive.translated()
    assert next(translated) == ("--job-name=p",)
    with pytest.raises(ScriptError) as caught:
        next(translated)
    assert caught.value.getopt == "sbatch: invalid option -- 'P'"
