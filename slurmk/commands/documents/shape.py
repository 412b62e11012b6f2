"""Tables of members: how a value of ours becomes an object of a document, in each version of the data parser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

VERSIONS: tuple[int, ...] = (42, 43, 44, 45)
"""The versions v0.0.42 to v0.0.45 of the data parser by their last number."""

LATEST = VERSIONS[-1]


@dataclass(frozen=True, slots=True)
class Member(Generic[T]):
    """One member of an object: its name, its value, and the versions from ``since`` to ``until`` that have it.

    ``shape`` gives a member that is an object made from the same value; its own rows have versions of their own.
    """

    name: str
    value: Callable[[T], object] | None = None
    since: int = VERSIONS[0]
    until: int = LATEST
    shape: Shape[T] | None = None


class Shape(Generic[T]):
    """An object's members in order."""

    def __init__(self, *members: Member[T]) -> None:
        self.members = members
        self._of_version = {version: self._compiled(version) for version in VERSIONS}

    def _compiled(self, version: int) -> tuple[tuple[str, Callable[[T], object]], ...]:
        return tuple(
            (member.name, _maker(member, version)) for member in self.members if member.since <= version <= member.until
        )

    def document(self, value: T, version: int = LATEST) -> dict[str, object]:
        """``value`` as this object. ``version`` is one of VERSIONS."""
        return {name: make(value) for name, make in self._of_version[version]}


def _maker(member: Member[T], version: int) -> Callable[[T], object]:
    if member.shape is not None:
        shape = member.shape
        return lambda value: shape.document(value, version)
    assert member.value is not None, member.name
    return member.value


def nested(name: str, *members: Member[T], since: int = VERSIONS[0], until: int = LATEST) -> Member[T]:
    """A member that is an object with these members, made from the same value."""
    return Member(name, None, since, until, Shape(*members))


def constant(name: str, value: object, since: int = VERSIONS[0], until: int = LATEST) -> Member[T]:
    """A member that is always the same: slurmk has no data for it, and this is what Slurm prints without any."""
    return Member(name, lambda _: value, since, until)
