"""Which nodes ``--constraint`` leaves (sbatch(1)): masks over the node table, counted groups, and matching OR.

``[a|b]`` wants all nodes of the job to have the same one of them, so it becomes one ``Choice`` for each; ``a*2&b*3`` wants
so many nodes with each feature, which become the choice's groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

import numpy as np

from grammar.constraints import AllOf, AnyOf, Constraint, Counted, Feature, Group, Matching, matches, parse_constraint
from grammar.errors import GrammarError
from slurmk.planner.snapshot import BoolArray


@dataclass(frozen=True, slots=True)
class Choice:
    """Nodes that will do, and how many there must be at least of each group of them."""

    mask: BoolArray
    groups: tuple[tuple[BoolArray, int], ...] = ()
    preferred: bool = False  # not asked for, but better than what was


def choices(text: str, features: Sequence[frozenset[str]], prefer: str = "") -> tuple[Choice, ...]:
    """The ways to satisfy a constraint, in the order to try them: in place of it what the job would prefer (``--prefer``), then
    itself. Empty text: every node. Text that has no meaning gives no choice at all, so that the job is told BadConstraints."""
    preferred = [replace(choice, preferred=True) for choice in choices(prefer, features)] if prefer else []
    try:
        tree = parse_constraint(text)
    except GrammarError:
        return ()
    return (*preferred, *_choices(tree, features))


def _choices(tree: Constraint | None, features: Sequence[frozenset[str]]) -> tuple[Choice, ...]:
    if tree is None:
        return (Choice(np.ones(len(features), dtype=np.bool_)),)
    if isinstance(tree, Feature):
        return (Choice(_mask(tree.name, features)),)
    if isinstance(tree, Counted):
        groups = tuple((_mask_of(counted, features), max(counted.count, 1)) for counted in tree.features)
        return (Choice(reduce(np.logical_or, (mask for mask, _ in groups)), groups),)
    if isinstance(tree, Matching):
        return tuple(choice for part in tree.alternatives for choice in _choices(part, features))
    parts = [_choices(part, features) for part in tree.parts]
    if isinstance(tree, AnyOf):
        if all(len(part) == 1 and not part[0].groups for part in parts):
            return (Choice(reduce(np.logical_or, (part[0].mask for part in parts))),)
        return tuple(choice for part in parts for choice in part)
    assert isinstance(tree, AllOf)
    return tuple(
        Choice(
            reduce(np.logical_and, (choice.mask for choice in together)),
            tuple(group for choice in together for group in choice.groups),
        )
        for together in product(*parts)
    )


def _mask_of(counted: Feature | Group, features: Sequence[frozenset[str]]) -> BoolArray:
    if isinstance(counted, Feature):
        return _mask(counted.name, features)
    return np.fromiter((matches(counted.part, names) for names in features), dtype=np.bool_, count=len(features))


def _mask(name: str, features: Sequence[frozenset[str]]) -> BoolArray:
    return np.fromiter((name in names for names in features), dtype=np.bool_, count=len(features))
