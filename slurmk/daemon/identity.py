"""Who the caller is: numbers from the kernel, names and groups from the system's databases, remembered for a minute.

The first look-up of a user may take long (LDAP), so it is made in a thread and the loop goes on.
"""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import socket
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from slurmk.core.events import Caller
from slurmk.model.job import Credentials

KEPT = 60.0
"""Seconds that an answer of the system's databases is used."""

MOST = 10_000
"""Users that are remembered."""

_groups: dict[tuple[str, int], tuple[float, tuple[int, ...]]] = {}
_CREDENTIALS = struct.Struct("iII")


class _KnownByJobs:
    """What jobs tell of users whom this machine does not know, as in a container: their own jobs may submit others."""

    def __init__(self) -> None:
        self.groups: dict[tuple[str, int], tuple[int, ...]] = {}
        self.names: dict[int, str] = {}

    def learn(self, credentials: Credentials) -> None:
        if len(self.groups) >= MOST:
            self.groups.clear()
            self.names.clear()
        self.groups[credentials.user_name, credentials.group_id] = credentials.groups or (credentials.group_id,)
        self.names[credentials.group_id] = credentials.group_name


_known_by_jobs = _KnownByJobs()


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a Unix socket."""

    process_id: int
    user_id: int
    group_id: int


@dataclass(frozen=True, slots=True)
class Identity:
    """A user by name; ``group_id`` is the primary group."""

    user_id: int
    user_name: str
    group_id: int


def peer_of(connection: socket.socket) -> Peer:
    """The credentials that the kernel keeps of who connected (SO_PEERCRED, unix(7))."""
    return Peer(*_CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)))


def identity_of(user_id: int) -> Identity:
    """The user's names. A uid that no database knows is its own name."""
    try:
        entry = pwd.getpwuid(user_id)
    except KeyError:
        return Identity(user_id, str(user_id), user_id)
    return Identity(user_id, entry.pw_name, entry.pw_gid)


def group_name(group_id: int) -> str:
    """The group's name, or its number where no database knows it."""
    try:
        return grp.getgrgid(group_id).gr_name
    except KeyError:
        return _known_by_jobs.names.get(group_id, str(group_id))


def group_ids(names: Iterable[str]) -> dict[str, int]:
    """The ids of these groups, of those that there are."""
    found = {}
    for name in names:
        with suppress(KeyError):
            found[name] = grp.getgrnam(name).gr_gid
    return found


def groups_of(user_name: str, group_id: int) -> tuple[int, ...]:
    """All groups of the user, the given one among them; those of a job of theirs where no database knows the user."""
    kept = _groups.get((user_name, group_id))
    if kept is not None and kept[0] > time.monotonic():
        return kept[1]
    try:
        pwd.getpwnam(user_name)
        groups = tuple(os.getgrouplist(user_name, group_id))
    except (KeyError, OSError):
        groups = _known_by_jobs.groups.get((user_name, group_id), (group_id,))
    if len(_groups) >= MOST:
        _groups.clear()
    _groups[user_name, group_id] = (time.monotonic() + KEPT, groups)
    return groups


class GroupIds:
    """The ids of the groups that partitions name, looked up in a thread when they are needed and remembered for a minute."""

    def __init__(self) -> None:
        self._until = 0.0
        self._asked: frozenset[str] = frozenset()
        self._found: dict[str, int] = {}

    async def of(self, names: frozenset[str]) -> dict[str, int]:
        """The ids by name; names that no database knows have none."""
        if names != self._asked or time.monotonic() >= self._until:
            self._found = await asyncio.to_thread(group_ids, names)
            self._asked, self._until = names, time.monotonic() + KEPT
        return self._found


class Identities:
    """Callers by uid. ``operators`` are names of users who may act on everything, beside root and our own user."""

    def __init__(self, operators: tuple[str, ...]) -> None:
        self.operators = frozenset(operators)
        self._own = os.geteuid()
        self._kept: dict[int, tuple[float, Caller]] = {}

    def known(self, user_id: int) -> Caller | None:
        """The caller, if looked up lately."""
        found = self._kept.get(user_id)
        return found[1] if found and found[0] > time.monotonic() else None

    async def look_up(self, user_id: int) -> Caller:
        """The caller with that uid."""
        found = self.known(user_id)
        if found is None:
            identity = await asyncio.to_thread(identity_of, user_id)
            operator = user_id in (0, self._own) or identity.user_name in self.operators
            found = Caller(user_id, identity.user_name, operator)
            self._kept[user_id] = (time.monotonic() + KEPT, found)
        return found

    def of_job(self, credentials: Credentials) -> Caller:
        """The user of a job, by what was known when it was submitted. That the controller runs under the same uid, perhaps in
        a container of its own, makes nobody an operator here."""
        user_id, name = credentials.user_id, credentials.user_name
        _known_by_jobs.learn(credentials)
        return Caller(user_id, name, user_id == 0 or name in self.operators)
