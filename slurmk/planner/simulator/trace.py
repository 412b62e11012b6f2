"""Recorded workloads as values: the Standard Workload Format, and what ``sacct -P`` prints of a real site.

The rules are those that published comparisons use: a job's size is what it asked for, else what it got; a job without
run time, limit or size, or larger than the machine, is left out; one that ran longer than its limit counts as ended there;
jobs arrive in the order of submission, equal ones in the order of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from slurmk.planner.snapshot import IntArray

YEAR = 365 * 86400
"""Seconds that stand for "no limit"."""

MOST = 1 << 40
"""More processors, or seconds, are taken for a slip."""


class TraceError(ValueError):
    """What is wrong with a trace, with the line's number where one is to blame."""


@dataclass(frozen=True, slots=True)
class Record:
    """One recorded job; times in seconds, -1 where unknown. ``size`` counts processors, ``nodes`` nodes."""

    number: str
    submit: int
    run: int
    limit: int
    size: int
    nodes: int = -1
    user: str = ""
    start: int = -1  # on the recorded machine


@dataclass(frozen=True, slots=True)
class Machine:
    """What a trace says of its machine; 0 where it says nothing."""

    processors: int = 0
    nodes: int = 0
    start: int = 0  # Unix time that submission times count from


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs as columns, in the order in which they arrive; ``procs`` is the size of the machine in the unit of ``size``."""

    numbers: tuple[str, ...]
    submit: IntArray
    size: IntArray
    run: IntArray  # at most ``limit``
    limit: IntArray
    user: IntArray  # equal for jobs of one user
    procs: int
    origin: int = 0  # what was taken from all submission times, so that they begin near 0

    def __len__(self) -> int:
        return len(self.submit)


def records_of(lines: Iterable[str], fields: str = "") -> tuple[list[Record], Machine]:
    """All records of a text in either form; which one it is, its first line shows. ``fields``: what sacct was told to print
    with --noheader (names with ``,`` or ``|`` between them).

    Raises TraceError where a line is neither a job nor a comment.
    """
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        raise TraceError("the file is empty")
    rest = _chain(first, numbered)
    if fields:
        return _sacct(_chain((0, fields.replace(",", "|")), rest))
    if first[1].lstrip().lower().startswith("jobid") and "|" not in first[1]:
        raise TraceError("line 1: no | between the names of fields, as sacct -P prints it")
    return _sacct(rest) if "|" in first[1] else _swf(rest)


def _chain(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest


def trace_of(
    records: Iterable[Record], machine: Machine, *, procs: int | None = None, nodes: int | None = None, jobs: int | None = None
) -> Trace:
    """The jobs that the rules keep. ``procs`` or ``nodes`` is the machine's size in place of what the trace says; with
    ``nodes``, sizes are counted in nodes. ``jobs``: only the first so many.

    Raises TraceError when the machine's size is unknown or no job is left.
    """
    wanted = list(records)
    if not wanted:
        raise TraceError("it has no jobs")
    if nodes is not None:
        wanted = [replace(record, size=_nodes(record, machine)) for record in wanted]
    size = nodes or procs or machine.processors or machine.nodes or _largest_use(wanted)
    if size <= 0:
        raise TraceError("nothing says how large the machine is: name --procs P or --nodes N")
    if size > MOST:
        raise TraceError(f"a machine of {size} processors: name --procs P or --nodes N")
    kept = [record for record in wanted if _counts(record, size)]
    kept.sort(key=lambda record: record.submit)
    kept = kept[:jobs]
    if not kept:
        raise TraceError(f"none of its {len(wanted)} jobs can be replayed: {why_left_out(wanted, size)}")
    users: dict[str, int] = {}
    first = kept[0].submit if kept[0].submit > YEAR * 20 else 0
    return Trace(
        numbers=tuple(record.number for record in kept),
        submit=_column(record.submit - first for record in kept),
        size=_column(record.size for record in kept),
        run=_column(min(record.run, record.limit) for record in kept),
        limit=_column(record.limit for record in kept),
        user=_column(users.setdefault(record.user, len(users)) for record in kept),
        procs=size,
        origin=first,
    )


def _column(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _counts(record: Record, size: int) -> bool:
    return not _reason(record, size)


def why_left_out(records: Iterable[Record], size: int) -> str:
    """How many jobs the rules leave out on a machine of that size, by the first reason of each; empty when none."""
    counted = Counter(reason for record in records if (reason := _reason(record, size)))
    return ", ".join(f"{count} {reason}" for reason, count in counted.most_common())


def _reason(record: Record, size: int) -> str:
    if record.run <= 0:
        return "without run time"
    if record.limit <= 0:
        return "without time limit"
    if record.size <= 0:
        return "without size"
    if record.size > size:
        return "larger than the machine"
    return "" if record.submit >= 0 else "without time of submission"


def _nodes(record: Record, machine: Machine) -> int:
    if record.nodes > 0:
        return record.nodes
    if machine.nodes and machine.processors > machine.nodes:
        return -(-record.size * machine.nodes // machine.processors)
    return record.size


def _largest_use(records: list[Record]) -> int:
    """The most that was in use at one moment by what the records say themselves."""
    changes: list[tuple[int, int]] = []
    for record in records:
        if record.start >= 0 and record.run > 0 and record.size > 0:
            changes += [(record.start, record.size), (record.start + record.run, -record.size)]
    most = used = 0
    for _, change in sorted(changes):
        used += change
        most = max(most, used)
    return most


# ----------------------------------------------------------------------------------------- standard workload format


def _swf(lines: Iterable[tuple[int, str]]) -> tuple[list[Record], Machine]:
    header: dict[str, int] = {}
    records = []
    for number, line in lines:
        if line.lstrip().startswith(";"):
            name, _, value = line.lstrip("; \t").partition(":")
            digits = value.strip().partition(" ")[0].partition(".")[0]
            if digits.isdecimal() and len(digits) < 20:
                header[name.strip().lower()] = int(digits)
            continue
        records.append(_swf_record(number, line.split()))
    return records, Machine(header.get("maxprocs", 0), header.get("maxnodes", 0), header.get("unixstarttime", 0))


def _swf_record(number: int, fields: list[str]) -> Record:
    try:
        values = [int(float(text)) for text in fields[:18]]
    except (ValueError, OverflowError):
        raise TraceError(f"line {number}: {_odd(fields)!r} is no number, as in Standard Workload Format all are") from None
    if len(values) < 9:
        raise TraceError(f"line {number}: {len(values)} fields where a job has 18")
    if max(map(abs, values)) > MOST:
        raise TraceError(f"line {number}: a number that is out of range")
    size = values[7] if values[7] > 0 else values[4]
    user = str(values[11]) if len(values) > 11 and values[11] >= 0 else ""
    start = values[1] + values[2] if values[2] >= 0 else -1
    return Record(fields[0], values[1], values[3], values[8], size, user=user, start=start)


def _odd(fields: list[str]) -> str:
    """The first field that is no number."""
    for text in fields:
        try:
            int(float(text))
        except (ValueError, OverflowError):
            return text[:40]
    return ""


# ----------------------------------------------------------------------------------------- sacct


def _sacct(lines: Iterable[tuple[int, str]]) -> tuple[list[Record], Machine]:
    lines = iter(lines)
    first = next(lines)[1].rstrip("\r\n")
    names = [name.strip().lower().partition("%")[0] for name in first.split("|")]
    if names[0][:1].isdigit():
        raise TraceError("line 1: it names no field; --fields LIST says which ones sacct --noheader printed")
    for name, others in _SACCT_NEEDED.items():
        if not any(other.lower() in names for other in others):
            raise TraceError(f"line 1: no field for {name}; sacct -P --format must have one of {', '.join(others)}")
    records = []
    for number, line in lines:
        if line.rstrip("\r\n") == first:
            continue  # several outputs one after another
        fields = _named(number, names, line.rstrip("\r\n").split("|"))
        if "." not in (fields.get("jobid") or fields.get("jobidraw", "")):
            records.append(_sacct_record(number, fields))
    return records, Machine()


_FREE_TEXT = frozenset(
    ("account", "admincomment", "comment", "extra", "jobname", "reason", "submitline", "systemcomment", "wckey", "workdir")
)
"""Fields that may have the mark between fields within them."""


def _named(number: int, names: list[str], values: list[str]) -> Mapping[str, str]:
    """The values of a line by their names; what is too many belongs to the one field of free text."""
    surplus = len(values) - len(names)
    if surplus < 0:
        raise TraceError(f"line {number}: {len(values)} fields where the first line names {len(names)}")
    if surplus:
        free = [place for place, name in enumerate(names) if name in _FREE_TEXT]
        if len(free) > 1:
            raise TraceError(f"line {number}: {len(values)} fields where the first line names {len(names)}")
        place = free[0] if free else len(names) - 1
        values[place : place + surplus + 1] = ["|".join(values[place : place + surplus + 1])]
    return dict(zip(names, values, strict=True))


_SACCT_NEEDED = {
    "the submission": ("Submit",),
    "the run time": ("ElapsedRaw", "Elapsed", "End"),
    "the limit": ("TimelimitRaw", "Timelimit"),
    "the size": ("ReqCPUS", "NCPUS", "AllocCPUS", "ReqTRES", "AllocTRES", "ReqNodes", "NNodes", "AllocNodes"),
}
"""What a replay needs, and the fields of sacct that say it, the best one first."""

_NO_TIME = ("", "unknown", "none", "none assigned", "n/a", "invalid")


def _sacct_record(number: int, fields: Mapping[str, str]) -> Record:
    start, end = _moment(number, fields.get("start", "")), _moment(number, fields.get("end", ""))
    if fields.get("elapsedraw"):
        run = _whole(number, fields["elapsedraw"])
    elif fields.get("elapsed"):
        run = _duration(number, fields["elapsed"])
    else:
        run = end - start if start >= 0 and end >= 0 else -1
    raw = fields.get("timelimitraw", "")
    limit = 60 * int(raw) if raw.isdecimal() and len(raw) < 12 else _duration(number, fields.get("timelimit", "") or raw)
    nodes = _first_count(number, fields, "node", "reqnodes", "nnodes", "allocnodes")
    size = _first_count(number, fields, "cpu", "reqcpus", "ncpus", "alloccpus")
    return Record(
        number=fields.get("jobid") or fields.get("jobidraw") or str(number),
        submit=_moment(number, fields.get("submit", "")),
        run=run,
        limit=limit,
        size=size if size > 0 else nodes,
        nodes=nodes,
        user=fields.get("user", ""),
        start=start,
    )


_MULTIPLES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _first_count(number: int, fields: Mapping[str, str], resource: str, *names: str) -> int:
    """What the first of the named fields counts, or the resource among the TRES asked for or given."""
    parts = ",".join(fields.get(name, "") for name in ("reqtres", "alloctres")).split(",")
    trackable = [part.removeprefix(f"{resource}=") for part in parts if part.startswith(f"{resource}=")]
    counts = (_whole(number, text) for text in (*(fields.get(name, "") for name in names), *trackable) if text)
    return next((count for count in counts if count > 0), -1)


def _whole(number: int, text: str) -> int:
    """A count; sacct writes 49152 as ``48K``, and 50688 as ``49.50K``."""
    factor = _MULTIPLES.get(text[-1:].upper(), 1)
    digits = text[:-1] if factor > 1 else text
    whole, _, rest = digits.partition(".")
    if not whole.isdecimal() or len(digits) > 12 or (rest and not (rest.isdecimal() and factor > 1)):
        raise TraceError(f"line {number}: {text!r} is no whole number")
    return round(float(digits) * factor)


def _moment(number: int, text: str) -> int:
    if text.lower() in _NO_TIME:
        return -1
    if text.isdecimal() and len(text) <= 12:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise TraceError(f"line {number}: {text!r} is no time") from None


def _duration(number: int, text: str) -> int:
    """``[days-]hours:minutes:seconds`` or ``minutes:seconds``, as sacct prints; without any limit a year."""
    if text.upper() in ("UNLIMITED", "PARTITION_LIMIT"):
        return YEAR
    if text.lower() in _NO_TIME:
        return -1
    days, _, clock = text.rpartition("-")
    parts = clock.partition(".")[0].split(":")
    if not all(part.isdecimal() and len(part) < 10 for part in (*parts, days or "0")) or len(parts) > 3:
        raise TraceError(f"line {number}: {text!r} is no duration")
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + int(part)
    return int(days or 0) * 86400 + seconds
