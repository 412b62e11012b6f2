"""Label selectors as kubectl writes them: ``pool=gpu,zone in (a,b),!spot``; whether an object's labels match.

The API server takes the same text, so what slurmk tells nodes apart by can be tried with ``kubectl get nodes -l``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from grammar.errors import GrammarError

_KEY = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(\s*({_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)", re.ASCII)
_EQUAL = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})", re.ASCII)
_PRESENT = re.compile(rf"(!?)\s*({_KEY})", re.ASCII)
_END = re.compile(r"\s*(,\s*|\Z)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition: the label's value is one of ``values`` (None: any), or with ``negated`` it is not, or is absent."""

    key: str
    values: frozenset[str] | None
    negated: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        found = value is not None and (self.values is None or value in self.values)
        return found != self.negated


@dataclass(frozen=True, slots=True)
class Selector:
    """Conditions that must all hold; none of them: everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@lru_cache(maxsize=256)
def parse_selector(text: str) -> Selector:
    """The selector that ``text`` says. Raises GrammarError with the position."""
    found: list[Requirement] = []
    position = len(text) - len(text.lstrip())
    expects = False
    while position < len(text) or expects:
        requirement, position = _requirement(text, position)
        found.append(requirement)
        end = _END.match(text, position)
        if end is None:
            position += len(text[position:]) - len(text[position:].lstrip())
            raise GrammarError(f"label selector {text!r}: expected a comma at position {position + 1}")
        position = end.end()
        expects = "," in end[1]
    return Selector(tuple(found))


def _requirement(text: str, position: int) -> tuple[Requirement, int]:
    if match := _SET.match(text, position):
        values = frozenset(value.strip() for value in match[3].split(","))
        return Requirement(match[1], values, match[2] == "notin"), match.end()
    if match := _EQUAL.match(text, position):
        return Requirement(match[1], frozenset({match[3]}), match[2] == "!="), match.end()
    if match := _PRESENT.match(text, position):
        return Requirement(match[2], None, match[1] == "!"), match.end()
    raise GrammarError(f"label selector {text!r}: expected a condition at position {position + 1}")
