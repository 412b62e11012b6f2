"""``--constraint`` and ``--prefer``: expressions over the features of nodes (sbatch(1), --constraint)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from lark import Transformer

from grammar.errors import GrammarError
from grammar.languages import parse_with

MESSAGE = "Invalid feature specification"


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature; ``count`` is the number of nodes that must have it (``a100*2``), 0 when each node must."""

    name: str
    count: int = 0


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part must hold."""

    parts: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One part must hold."""

    parts: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """``[a|b]``: all nodes of the job must match the same alternative."""

    alternatives: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """``(a&b)*2``: so many nodes for which the part holds."""

    part: Constraint
    count: int


@dataclass(frozen=True, slots=True)
class Counted:
    """``[a*1&(b&c)*2]`` and ``a*2``: so many of the job's nodes with each."""

    features: tuple[Feature | Group, ...]


Constraint: TypeAlias = Feature | AllOf | AnyOf | Matching | Counted

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*\Z", re.ASCII)


@lru_cache(maxsize=1024)
def parse_constraint(text: str) -> Constraint | None:
    """The tree of an expression; None for an empty text. ``&`` and ``,`` are the same. Raises GrammarError."""
    if not text:
        return None
    if _WORD.match(text):
        return Feature(text)
    tree: Constraint | Group = parse_with("constraints", _Expressions, text, MESSAGE)
    if isinstance(tree, Group) or (isinstance(tree, Counted) and len(tree.features) > 1 and "[" not in text):
        raise GrammarError(MESSAGE)
    return Counted((tree,)) if isinstance(tree, Feature) and tree.count else tree


class _Expressions(Transformer[Any, Any]):
    def start(self, items: list[Any]) -> Constraint:
        first: Constraint = items[0]
        return first

    def expression(self, items: list[Any]) -> Constraint:
        operands, operators = items[::2], {"&" if operator == "," else str(operator) for operator in items[1::2]}
        if not operators:
            only: Constraint = operands[0]
            return only
        if any(map(_has_count, operands)):
            return _counted(operands, operators)
        if len(operators) == 1:
            return AllOf(tuple(operands)) if operators == {"&"} else AnyOf(tuple(operands))
        return _mixed(operands, items[1::2])

    def group(self, items: list[Any]) -> Constraint | Group:
        if isinstance(items[0], (Counted, Matching)):
            raise GrammarError(MESSAGE)
        part: Constraint = items[0]
        return Group(part, _count(items[1])) if len(items) > 1 else part

    def bracket(self, items: list[Constraint]) -> Constraint:
        inner = items[0]
        if isinstance(inner, AnyOf):
            return Matching(inner.parts)
        if isinstance(inner, Counted):
            return inner
        if isinstance(inner, Group):
            return Counted((inner,))
        if isinstance(inner, Feature):
            return Counted((inner,)) if inner.count else Matching((inner,))
        raise GrammarError(MESSAGE)

    def feature(self, items: list[str]) -> Feature:
        if str(items[0]).startswith("!"):
            raise GrammarError(MESSAGE)
        return Feature(str(items[0]), _count(items[1]) if len(items) > 1 else 0)


def _count(text: str) -> int:
    if not int(text):
        raise GrammarError(MESSAGE)
    return int(text)


def _has_count(operand: Constraint | Group) -> bool:
    return isinstance(operand, Feature | Group) and operand.count > 0


def _counted(operands: list[Any], operators: set[str]) -> Constraint:
    if operators != {"&"} or not all(map(_has_count, operands)):
        raise GrammarError(MESSAGE)
    return Counted(tuple(operands))


def _mixed(operands: list[Any], operators: list[str]) -> Constraint:
    """From the left: ``a&b|c`` is (a and b) or c."""
    tree: Constraint = operands[0]
    for operator, operand in zip(operators, operands[1:], strict=True):
        tree = AnyOf((tree, operand)) if operator == "|" else AllOf((tree, operand))
    return tree


def matches(tree: Constraint | None, features: frozenset[str]) -> bool:
    """True when a node with these features may be one of the job's; what is asked of the nodes together is not seen here."""
    if tree is None:
        return True
    if isinstance(tree, Feature):
        return tree.name in features
    if isinstance(tree, AllOf):
        return all(matches(part, features) for part in tree.parts)
    if isinstance(tree, AnyOf):
        return any(matches(part, features) for part in tree.parts)
    if isinstance(tree, Matching):
        return any(matches(part, features) for part in tree.alternatives)
    return any(matches(_alone(feature), features) for feature in tree.features)


def counted_parts(tree: Constraint | None) -> tuple[tuple[Constraint, int], ...]:
    """What is counted of the nodes together: each part, and how many nodes are to have it."""
    return tuple((_alone(each), each.count) for each in tree.features) if isinstance(tree, Counted) else ()


def _alone(counted: Feature | Group) -> Constraint:
    return counted.part if isinstance(counted, Group) else counted


def features_of(tree: Constraint | None) -> Iterator[str]:
    """Every feature that the expression names."""
    if isinstance(tree, Feature):
        yield tree.name
    elif isinstance(tree, Counted):
        for counted in tree.features:
            yield from features_of(_alone(counted))
    elif isinstance(tree, Matching):
        for part in tree.alternatives:
            yield from features_of(part)
    elif tree is not None:
        for part in tree.parts:
            yield from features_of(part)


def normalise_constraint(text: str) -> str:
    """The text that Slurm keeps and prints: commas become ``&``."""
    return text.replace(",", "&")
