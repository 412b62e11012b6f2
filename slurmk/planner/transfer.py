"""Snapshots and plans on their way to a planner in another process and back, with no more sent than has changed.

The planner's side keeps a ``Mirror`` of the snapshot. The other side's ``Sent`` knows what is there and tells the difference,
in pieces of about a millisecond's work, since nothing else is done there meanwhile. A plan comes back in pieces, too: columns,
with nodes as rows of their table. Pieces are pickled: they may go between a process and its own child only.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from slurmk.model.job import Allocation, NodeShare
from slurmk.planner.build import with_told
from slurmk.planner.node_names import NodeNames
from slurmk.planner.snapshot import Demand, NodeTable, Outlook, PendingRow, Plan, RunningRow, Snapshot, Start

T = TypeVar("T")

ROWS_TOGETHER = 200
"""Records of a snapshot in one piece."""

TOLD_TOGETHER = 500
"""Records that one piece of a plan tells something."""


# ------------------------------------------------------------------------------------------------------- pickling


def _by_position(kind: type[T]) -> Callable[[T], tuple[type[T], tuple[Any, ...]]]:
    values = attrgetter(*(each.name for each in fields(kind)))  # type: ignore[arg-type]
    return lambda value: (kind, values(value))


_KINDS = (PendingRow, RunningRow, Demand, Allocation, NodeShare, Start, Outlook)

_DISPATCH: dict[type[Any], Callable[[Any], Any]] = {kind: _by_position(kind) for kind in _KINDS}
"""The values that there are many of, at a fifth of what the ordinary way costs."""


class _Pickler(pickle.Pickler):
    dispatch_table = _DISPATCH


def packed(value: object) -> bytes:
    """The value for another process."""
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(value)
    return file.getvalue()


class _QuestionPickler(_Pickler):
    def persistent_id(self, value: object) -> str | None:
        return "snapshot" if isinstance(value, Snapshot) else None


class _QuestionUnpickler(pickle.Unpickler):
    def __init__(self, data: bytes, snapshot: Snapshot) -> None:
        super().__init__(io.BytesIO(data))
        self._snapshot = snapshot

    def persistent_load(self, pid: object) -> Snapshot:
        return self._snapshot


def packed_question(question: object) -> bytes:
    """A value for another process whose mirror is up to date: snapshots in it are not sent."""
    file = io.BytesIO()
    _QuestionPickler(file, protocol=5).dump(question)
    return file.getvalue()


def unpacked_question(data: bytes, snapshot: Snapshot) -> Any:
    """What ``packed_question`` was given, with the mirror's snapshot in the place of any."""
    return _QuestionUnpickler(data, snapshot).load()


def unpacked(data: bytes) -> Any:
    """What ``packed`` was given. Of nobody but the other process."""
    return pickle.loads(data)  # noqa: S301 (written by this process's own child or parent)


# ------------------------------------------------------------------------------------------------------- snapshots

_APART = ("pending", "running", "nodes", "changed")
_SNAPSHOT = tuple(each.name for each in fields(Snapshot) if each.name not in _APART)
_TABLE = tuple(each.name for each in fields(NodeTable))


@dataclass(slots=True)
class Difference:
    """Part of what is different in a snapshot. ``values`` are those fields of it, and ``columns`` those of its table of nodes,
    that are not what they were. ``changed`` and ``running`` have what is new or another by job id; None: it is gone."""

    values: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    changed: dict[int, PendingRow | None] = field(default_factory=dict)
    running: dict[int, RunningRow | None] = field(default_factory=dict)


class Sent:
    """What the mirror was told."""

    def __init__(self) -> None:
        self._before: Snapshot | None = None
        self._pending: dict[int, PendingRow] = {}
        self._running: dict[int, RunningRow] = {}

    def differences(self, snapshot: Snapshot) -> Iterator[Difference]:
        """What there is to tell of a newer snapshot, in parts; all of them must be taken before those of the next one."""
        before, self._before = self._before, replace(snapshot, pending=(), running=(), changed=None)
        changed = snapshot.changed if before is not None else None
        if changed is None:
            changed = _changes(self._pending, snapshot.pending)
        rows = iter(changed.items())
        running = iter(_changes(self._running, snapshot.running).items())
        table = None if before is None else before.nodes
        yield Difference(
            _differing(before, snapshot, _SNAPSHOT),
            {} if table is snapshot.nodes else _differing(table, snapshot.nodes, _TABLE),
            self._taken(self._pending, rows),
            self._taken(self._running, running),
        )
        while part := self._taken(self._pending, rows):
            yield Difference(changed=part)
        while some := self._taken(self._running, running):
            yield Difference(running=some)

    def _taken(self, known: dict[int, T], rows: Iterator[tuple[int, T | None]]) -> dict[int, T | None]:
        part = dict(islice(rows, ROWS_TOGETHER))
        _follow(known, part)
        return part


class Mirror:
    """The snapshot as another process has it."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._columns: dict[str, Any] = {}
        self._table: NodeTable | None = None
        self._pending: dict[int, PendingRow] = {}
        self._running: dict[int, RunningRow] = {}
        self._demands: dict[Demand, Demand] = {}
        self._changed: dict[int, PendingRow | None] = {}

    def follow(self, difference: Difference) -> None:
        """Take over one part of a difference."""
        self._values |= difference.values
        if difference.columns:
            self._columns |= difference.columns
            self._table = NodeTable(**self._columns)
        rows = {job_id: row and self._with_shared_demand(row) for job_id, row in difference.changed.items()}
        _follow(self._pending, rows)
        _follow(self._running, difference.running)
        self._changed |= rows

    def _with_shared_demand(self, row: PendingRow) -> PendingRow:
        shared = self._demands.setdefault(row.demand, row.demand)
        return row if shared is row.demand else replace(row, demand=shared)

    def follow_told(self, outlooks: Mapping[int, Outlook]) -> None:
        """A plan was taken over. Where plans go by promises, the records say from then on what it told them."""
        if self._values["by_promises"]:
            for job_id, outlook in outlooks.items():
                row = self._pending.get(job_id)
                if row is not None:
                    self._pending[job_id] = with_told(row, outlook)

    def snapshot(self) -> Snapshot:
        """As it is now; its ``changed`` are since the last time."""
        assert self._table is not None
        changed, self._changed = self._changed, {}
        if len(self._demands) > 2 * len(self._pending) + ROWS_TOGETHER:
            self._demands = {row.demand: row.demand for row in self._pending.values()}
        return Snapshot(
            **self._values,
            nodes=self._table,
            pending=tuple(self._pending.values()),
            running=tuple(self._running.values()),
            changed=changed,
        )


def _changes(known: dict[int, T], rows: Sequence[T]) -> dict[int, T | None]:
    """Of rows by their job ids: those that are not the very same as they were, and those that are gone."""
    now = {row.job_id: row for row in rows}  # type: ignore[attr-defined]
    gone: dict[int, T | None] = dict.fromkeys(job_id for job_id in known if job_id not in now)
    return gone | {job_id: row for job_id, row in now.items() if known.get(job_id) is not row}


def _follow(known: dict[int, T], changes: Mapping[int, T | None]) -> None:
    for job_id, row in changes.items():
        if row is None:
            known.pop(job_id, None)
        else:
            known[job_id] = row


def _differing(before: object, after: object, names: Iterable[str]) -> dict[str, Any]:
    if before is None:
        return {name: getattr(after, name) for name in names}
    return {name: getattr(after, name) for name in names if _differ(name, getattr(before, name), getattr(after, name))}


def _differ(name: str, before: Any, after: Any) -> bool:
    if before is after:
        return False
    if name == "partitions":  # rows with arrays in them, made anew only when something changed
        return True
    if isinstance(after, np.ndarray):
        return not (isinstance(before, np.ndarray) and np.array_equal(before, after))
    return bool(before != after)


# ------------------------------------------------------------------------------------------------------- plans


@dataclass(slots=True)
class Piece:
    """Part of a plan: what it starts, and what it tells as columns. The nodes of the outlook at ``at[i]`` are
    ``rows[ends[i - 1]:ends[i]]``; those that are no rows of the table are in ``others``."""

    plan: Plan  # without outlooks
    job_ids: list[int]
    reasons: list[Any]
    starts: list[int | None]
    partitions: list[str]
    descriptions: list[str]
    promised: list[int | None]
    tasks: list[tuple[int, ...]]
    ends: list[int]
    rows: np.ndarray[Any, Any]
    others: dict[int, Sequence[str]]


def pieces(plan: Plan) -> Iterator[Piece]:
    """A plan in parts: first with what starts, and then the rest of what it tells."""
    outlooks = iter(plan.outlooks.items())
    yield _piece(replace(plan, outlooks={}), dict(islice(outlooks, TOLD_TOGETHER)))
    while some := dict(islice(outlooks, TOLD_TOGETHER)):
        yield _piece(Plan(plan.snapshot_id, plan.time, (), {}), some)


def _piece(plan: Plan, outlooks: Mapping[int, Outlook]) -> Piece:
    told = list(outlooks.values())
    rows = [outlook.nodes.rows if isinstance(outlook.nodes, NodeNames) else None for outlook in told]
    known = [each for each in rows if each is not None]
    return Piece(
        plan=plan,
        job_ids=list(outlooks),
        reasons=[outlook.reason for outlook in told],
        starts=[outlook.start_time for outlook in told],
        partitions=[outlook.partition for outlook in told],
        descriptions=[outlook.description for outlook in told],
        promised=[outlook.promised for outlook in told],
        tasks=[outlook.tasks for outlook in told],
        ends=np.cumsum([0 if each is None else len(each) for each in rows], dtype=np.int64).tolist(),
        rows=np.concatenate(known).astype(np.int32) if known else np.zeros(0, dtype=np.int32),
        others={at: outlook.nodes for at, outlook in enumerate(told) if rows[at] is None and outlook.nodes},
    )


class PlanReader:
    """Reads the pieces of plans for nodes of these names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = np.array(names, dtype=object)

    def plan_of(self, piece: Piece) -> Plan:
        """The part of the plan again."""
        outlooks: dict[int, Outlook] = {}
        first = 0
        columns = zip(
            piece.job_ids, piece.reasons, piece.starts, piece.partitions, piece.descriptions, piece.promised, piece.tasks,
            piece.ends, strict=True,
        )  # fmt: skip
        for at, (job_id, reason, start, partition, description, promised, tasks, end) in enumerate(columns):
            nodes: Sequence[str] = NodeNames(self._names, piece.rows[first:end]) if end > first else piece.others.get(at, ())
            outlooks[job_id] = Outlook(reason, start, nodes, partition, description, promised, tasks)
            first = end
        return replace(piece.plan, outlooks=outlooks)
