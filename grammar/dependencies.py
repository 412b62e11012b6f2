"""``--dependency``: what a job waits for (sbatch(1), --dependency)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import Any

from lark import Transformer

from grammar.errors import GrammarError
from grammar.languages import parse_with

MESSAGE = "Job dependency problem"


class DependencyKind(StrEnum):
    AFTER = "after"
    AFTER_ANY = "afterany"
    AFTER_OK = "afterok"
    AFTER_NOT_OK = "afternotok"
    AFTER_CORRESPONDING = "aftercorr"
    AFTER_BURST_BUFFER = "afterburstbuffer"
    SINGLETON = "singleton"


@dataclass(frozen=True, slots=True)
class Dependency:
    """One thing to wait for. ``array_task`` None is the job itself or its whole array; ``delay`` is minutes."""

    kind: DependencyKind
    job_id: int = 0  # 0: singleton
    array_task: int | None = None
    whole_array: bool = False  # said as JOB_*
    delay: int = 0


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All of ``terms`` must hold, or with ``any_of`` one of them. None at all is no dependency."""

    terms: tuple[Dependency, ...] = ()
    any_of: bool = False


_PADDED_NUMBER = re.compile(r"[ \t]+\d|\d+[ \t]+\Z", re.ASCII)
_PLAIN = re.compile(r"(after(?:any|ok|notok|corr|burstbuffer)?):(\d{1,10})\Z", re.ASCII)


@lru_cache(maxsize=1024)
def parse_dependency(text: str) -> Dependencies:
    """The value of ``afterok:12:13,singleton`` or ``afterok:12?afterany:13``; a job id alone means afterany.

    A delay (``+MINUTES``) also holds for the ids that follow in its term. Repeated terms are kept once. Raises GrammarError.
    """
    if not text or text == "0":
        return Dependencies()
    if _PADDED_NUMBER.match(text):
        raise GrammarError(MESSAGE)
    if plain := _PLAIN.match(text):
        terms, any_of = [Dependency(DependencyKind(plain[1]), int(plain[2]))], False
    else:
        terms, any_of = parse_with("dependencies", _Terms, text, MESSAGE)
    if any(term.job_id == 0 and term.kind is not DependencyKind.SINGLETON for term in terms):
        raise GrammarError(MESSAGE)
    return Dependencies(tuple(dict.fromkeys(terms)), any_of)


def parse_kept(text: str) -> Dependencies:
    """What ``format_dependency`` wrote without states, however long it is: every id has its kind there, so a value that was
    short enough to be taken may be kept as a longer one. Raises GrammarError."""
    terms = chain.from_iterable(parse_dependency(word).terms for word in re.split("[,?]", text))
    return Dependencies(tuple(dict.fromkeys(terms)), "?" in text)


class _Terms(Transformer[Any, Any]):
    """Called by the parser as it goes, so no tree is built."""

    def every(self, items: list[list[Dependency]]) -> tuple[list[Dependency], bool]:
        return list(chain.from_iterable(items)), False

    def some(self, items: list[list[Dependency]]) -> tuple[list[Dependency], bool]:
        return list(chain.from_iterable(items)), True

    def singleton(self, _: list[str]) -> list[Dependency]:
        return [Dependency(DependencyKind.SINGLETON)]

    def job_alone(self, items: list[Dependency]) -> list[Dependency]:
        return items

    def after(self, items: list[Any]) -> list[Dependency]:
        kind = DependencyKind(items[0].lower())
        terms: list[Dependency] = []
        delay = 0
        for job in items[1:]:
            delay = job.delay or delay
            terms.append(replace(job, kind=kind, delay=delay))
        return terms

    def job(self, items: list[Any]) -> Dependency:
        found = Dependency(DependencyKind.AFTER_ANY, int(items[0]))
        for part, value in items[1:]:
            if part == "delay":
                found = replace(found, delay=int(value))
            elif value == "*":
                found = replace(found, whole_array=True)
            else:
                found = replace(found, array_task=int(value))
        return found

    def element(self, items: list[str]) -> tuple[str, str]:
        return "element", items[0]

    def delay(self, items: list[str]) -> tuple[str, str]:
        return "delay", items[0]


def format_dependency(
    dependencies: Dependencies, state: Callable[[Dependency], str] | None = None, *, arrays: Iterable[int] = ()
) -> str:
    """``afterok:12(unfulfilled),singleton(unfulfilled)``; ``state`` gives the word in parentheses of a term, without it
    there is none and the text parses back. Ids in ``arrays`` are arrays, whose terms say ``12_*``."""
    whole = frozenset(arrays)
    words = [_term(term, whole) + (f"({state(term)})" if state else "") for term in dependencies.terms]
    return ("?" if dependencies.any_of else ",").join(words)


def _term(term: Dependency, arrays: frozenset[int]) -> str:
    if term.kind is DependencyKind.SINGLETON:
        return term.kind.value
    job = str(term.job_id)
    if term.array_task is not None:
        job += f"_{term.array_task}"
    elif term.whole_array or term.job_id in arrays:
        job += "_*"
    return f"{term.kind.value}:{job}" + (f"+{term.delay}" if term.delay else "")
