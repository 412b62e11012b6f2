"""scontrol's reservations: create, update, delete and show (scontrol(1)).

What is typed becomes a ``ReservationRequest``; which of it makes sense together the machine decides, but for what the
command itself refuses before it asks.
"""

from __future__ import annotations

import grp
import pwd
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from grammar.errors import GrammarError
from grammar.hostlist import expand, fold
from grammar.times import INFINITE, format_elapsed, format_time, parse_duration, parse_time
from grammar.tres import format_tres
from slurmk.commands import scontrol_session
from slurmk.commands.call import Call, Controller
from slurmk.commands.scontrol_keys import value_of
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import MESSAGES, Errno
from slurmk.core.events import CreateReservation, DeleteReservation, UpdateReservation
from slurmk.core.reservation_use import UNKNOWN_NAME
from slurmk.core.reservations import counts_cores
from slurmk.model.reservation import (
    KEEPING,
    PURGE_AFTER,
    REPEATING,
    REPLACING,
    Names,
    Reservation,
    ReservationFlag,
    ReservationRequest,
)


class Session(scontrol_session.Session, Protocol):
    """What this module needs of one scontrol besides."""

    @property
    def one_line(self) -> bool: ...
    @property
    def quiet(self) -> bool: ...


class Wrong(Exception):
    """What was typed cannot be meant; ``lines`` go to standard error before the command's own words."""

    def __init__(self, text: str, *lines: str, alone: bool = False) -> None:
        super().__init__(text)
        self.lines = lines
        self.alone = alone  # nothing is said of what becomes of the reservation


class Unknown(Exception):
    """A user or a group that this system does not know; ``str()`` is what Slurm says then."""


@dataclass(slots=True)
class _Typed:
    """``key=value`` as it was typed, with the sign before the ``=``."""

    key: str
    sign: str
    value: str
    now: float

    @property
    def text(self) -> str:
        return f"{self.key}{self.sign}={self.value}"

    def names(self) -> Names:
        """Names with their signs; a sign before the ``=`` is that of all."""
        words = (word.strip() for word in self.value.split(","))
        return tuple(
            (self.sign or (word[0] if word[0] in "+-" else ""), word.lstrip("+-") if word[0] in "+-" else word)
            for word in words
            if word
        )


Changes = dict[str, Any]
Read = Callable[[_Typed], Changes]


# ---------------------------------------------------------------------------------------------- values


def _text(field: str) -> Read:
    return lambda typed: {field: typed.value}


def _names(field: str) -> Read:
    return lambda typed: {field: typed.names()}


def _users(typed: _Typed) -> Changes:
    names = typed.names()
    for _, name in names:
        try:
            pwd.getpwnam(name)
        except (KeyError, UnicodeError):
            raise Unknown(UNKNOWN_NAME) from None
    return {"users": names}


def _groups(typed: _Typed) -> Changes:
    names = typed.names()
    try:
        numbers = tuple((name, grp.getgrnam(name).gr_gid) for _, name in names)
    except (KeyError, UnicodeError):
        raise Unknown(MESSAGES[Errno.GROUP_ID_MISSING]) from None
    return {"groups": names, "group_ids": numbers}


def _moment(field: str, word: str) -> Read:
    def read(typed: _Typed) -> Changes:
        try:
            return {field: parse_time(typed.value, typed.now, past=True)}
        except GrammarError as error:
            raise Wrong(f"Invalid {word} time {typed.text}.", str(error)) from None

    return read


def _duration(typed: _Typed) -> Changes:
    try:
        minutes = parse_duration(typed.value)
    except GrammarError:
        raise Wrong(f"Invalid duration {typed.text}.") from None
    if minutes != INFINITE and minutes > INFINITE // 60:
        raise Wrong(f"Invalid duration {typed.text}.")
    return {"duration": minutes, "duration_sign": typed.sign}


def _start_delay(typed: _Typed) -> Changes:
    try:
        return {"maximum_start_delay": parse_duration(typed.value) * 60}
    except GrammarError:
        raise Wrong(f"Invalid duration {typed.text}.") from None


MOST = 1_000_000
"""Nodes or cores that can be asked for."""


def _number(text: str) -> int | None:
    """``12``, and with a ``k`` 1024 times as many; None for what is no number."""
    digits = text[:-1] if text[-1:] in ("k", "K") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 8):
        return None
    number = int(digits) * (1024 if digits != text else 1)
    return number if number <= MOST else None


def _node_count(typed: _Typed) -> Changes:
    _check_one("NodeCnt", typed)
    found = _number(typed.value)
    if found is None:
        raise Wrong(f'"{typed.value}" is not a valid node count', alone=True)
    _check_plain(typed)
    return {"node_count": found}


def _core_count(typed: _Typed) -> Changes:
    """What is no number is none."""
    _check_one("CoreCnt", typed)
    _check_plain(typed)
    digits = re.match(r"\s*([0-9]{1,8})", typed.value)
    return {"core_count": int(digits[1]) or None if digits else None}


def _check_one(name: str, typed: _Typed) -> None:
    if "," in typed.value:
        raise Wrong(f"Using a comma separated array for {name} is no longer valid.", alone=True)


def _check_plain(typed: _Typed) -> None:
    if typed.sign:
        raise Wrong(f"The +=/-= notation is not supported when updating {typed.key}.")


def _nodes(typed: _Typed) -> Changes:
    signs = {"+", "-"}
    if typed.value.lstrip("+-").upper() == "ALL":
        return {"nodes": (("", "ALL"),)}
    found: list[tuple[str, str]] = []
    for word in _words(typed.value):
        sign = typed.sign or (word[0] if word[0] in signs else "")
        try:
            found += [(sign, name) for name in expand(word.lstrip("+-") if word[0] in signs else word)]
        except GrammarError:
            found.append((sign, word))
    return {"nodes": tuple(found)}


def _words(text: str) -> list[str]:
    """The parts of a host list, as its commas outside of brackets part it."""
    words, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth <= 0:
            words.append("")
        else:
            words[-1] += letter
    return [word for word in words if word]


def _tres(typed: _Typed) -> Changes:
    changes: Changes = {}
    gres: list[tuple[str, int]] = []
    licenses: list[str] = []
    for word in filter(None, typed.value.split(",")):
        name, _, amount = word.rpartition("=")
        number = _number(amount)
        kind, _, rest = name.lower().partition("/")
        if not name or number is None:
            raise Wrong(f"Error in TRES or TRESPerNode {typed.value}.")
        if kind in ("cpu", "node") and not rest:
            changes["core_count" if kind == "cpu" else "node_count"] = number
        elif kind == "gres" and rest:
            gres.append((name[5:], number))
        elif kind == "license" and rest:
            licenses.append(f"{name[8:]}:{number}")
        else:
            raise Wrong(f"Error in TRES or TRESPerNode {typed.value}.")
    if gres:
        changes.update(gres=tuple(gres), gres_per_node=typed.key.lower().startswith("tresper"))
    if licenses:
        changes["licenses"] = ",".join(licenses)
    return changes


# ---------------------------------------------------------------------------------------------- flags


@dataclass(frozen=True, slots=True)
class Flag:
    """A word of ``Flags=``: the least letters of it, and whether it can be taken away again."""

    word: str
    shortest: int
    flag: ReservationFlag
    removable: bool = True


FLAGS: tuple[Flag, ...] = (
    Flag("Maintenance", 1, ReservationFlag.MAINT),
    Flag("OVERLAP", 1, ReservationFlag.OVERLAP, False),
    Flag("FLEX", 1, ReservationFlag.FLEX),
    Flag("Ignore_Jobs", 1, ReservationFlag.IGNORE_JOBS),
    Flag("HOURLY", 1, ReservationFlag.HOURLY),
    Flag("DAILY", 1, ReservationFlag.DAILY),
    Flag("WEEKDAY", 5, ReservationFlag.WEEKDAY),
    Flag("WEEKEND", 5, ReservationFlag.WEEKEND),
    Flag("WEEKLY", 5, ReservationFlag.WEEKLY),
    Flag("ANY_NODES", 1, ReservationFlag.ANY_NODES),
    Flag("LICENSE_ONLY", 1, ReservationFlag.ANY_NODES),
    Flag("STATIC_ALLOC", 1, ReservationFlag.STATIC),
    Flag("PART_NODES", 2, ReservationFlag.PART_NODES),
    Flag("TIME_FLOAT", 1, ReservationFlag.TIME_FLOAT, False),
    Flag("REPLACE", 7, ReservationFlag.REPLACE, False),
    Flag("REPLACE_DOWN", 8, ReservationFlag.REPLACE_DOWN, False),
    Flag("PURGE_COMP", 2, ReservationFlag.PURGE_COMP),
    Flag("NO_HOLD_JOBS_AFTER_END", 2, ReservationFlag.NO_HOLD_JOBS, False),
    Flag("MAGNETIC", 3, ReservationFlag.MAGNETIC),
    Flag("USER_DELETE", 1, ReservationFlag.USER_DELETE),
    Flag("FORCE_START", 2, ReservationFlag.FORCE_START, False),
)


def _find_flag(word: str) -> Flag | None:
    lower = word.lower()
    if lower == "maint":
        return FLAGS[0]
    exact = next((flag for flag in FLAGS if flag.word.lower() == lower), None)
    return exact or next((flag for flag in FLAGS if len(lower) >= flag.shortest and flag.word.lower().startswith(lower)), None)


def _flags(typed: _Typed) -> Changes:
    added, dropped = ReservationFlag.NONE, ReservationFlag.NONE
    changes: Changes = {}
    for word in filter(None, typed.value.split(",")):
        signed = word[0] in "+-"
        sign = word[0] if signed else typed.sign
        name, _, value = word.lstrip("+-").partition("=")
        flag = _find_flag(name)
        if flag is None or (sign == "-" and not flag.removable):
            shown = word if signed or not sign else f"{sign}{word}"
            raise Wrong(f"Error parsing flags {shown}.")
        if sign == "-":
            dropped |= flag.flag
            continue
        added |= flag.flag
        if flag.flag is ReservationFlag.PURGE_COMP:
            changes["purge_after"] = _purge_after(value, word)
    return {**changes, "flags": added, "dropped_flags": dropped}


def _purge_after(value: str, word: str) -> int:
    if not value:
        return PURGE_AFTER
    try:
        minutes = parse_duration(value)
    except GrammarError:
        raise Wrong(f"Error parsing flags {word}.") from None
    return minutes * 60


def _comment(typed: _Typed) -> Changes:
    if typed.sign:
        raise Wrong(f"The +=/-= notation is not supported when updating {typed.key}.")
    return {"comment": typed.value}


def _nothing(typed: _Typed) -> Changes:
    """There are no burst buffers to reserve."""
    return {}


@dataclass(frozen=True, slots=True)
class Key:
    """A key: its name, the least letters of it, and what its value says."""

    name: str
    shortest: int
    read: Read


KEYS: tuple[Key, ...] = (
    Key("ReservationName", 1, _text("name")),
    Key("StartTime", 2, _moment("start_time", "start")),
    Key("EndTime", 1, _moment("end_time", "end")),
    Key("Duration", 1, _duration),
    Key("Flags", 2, _flags),
    Key("NodeCnt", 5, _node_count),
    Key("NodeCount", 5, _node_count),
    Key("Nodes", 5, _nodes),
    Key("CoreCnt", 5, _core_count),
    Key("CoreCount", 5, _core_count),
    Key("CPUCnt", 5, _core_count),
    Key("CPUCount", 5, _core_count),
    Key("Features", 2, _text("features")),
    Key("Licenses", 2, _text("licenses")),
    Key("PartitionName", 1, _text("partition")),
    Key("Users", 1, _users),
    Key("Groups", 1, _groups),
    Key("Accounts", 1, _names("accounts")),
    Key("AllowedPartitions", 2, _names("allowed_partitions")),
    Key("QOS", 1, _names("qos")),
    Key("TRES", 1, _tres),
    Key("TRESPerNode", 5, _tres),
    Key("MaxStartDelay", 2, _start_delay),
    Key("Comment", 3, _comment),
    Key("BurstBuffer", 2, _nothing),
)
"""What a reservation is told, in the order in which a shortened key is looked up."""


def _find_key(typed: str) -> Key | None:
    lower = typed.lower()
    return next((key for key in KEYS if len(lower) >= key.shortest and key.name.lower().startswith(lower)), None)


def read_request(words: Iterable[str], now: float) -> ReservationRequest:
    """What the words of a command ask for. Raises Wrong, and Unknown for a user."""
    changes: Changes = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            if key.lower() == "skip":
                changes["skip"] = True
                continue
            raise Wrong(f"Misformatted parameter '{word}', most options have a parameter after '='.")
        sign = key[-1:] if key[-1:] in ("+", "-") else ""
        row = _find_key(key.rstrip("+-"))
        if row is None:
            raise Wrong(f"Unknown parameter {word}.")
        changes.update(row.read(_Typed(key.rstrip("+-"), sign, value, now)))
    if changes.get("users") and changes.get("groups"):
        raise Wrong("Users and Groups are mutually exclusive.  You can have one or the other, but not both.")
    return ReservationRequest(**changes)


def _complete(request: ReservationRequest) -> ReservationRequest:
    """What a new reservation must say. Raises Wrong."""
    if request.start_time is None:
        raise Wrong("A start time must be given.")
    if request.duration is None and request.end_time is None:
        raise Wrong("An end time or duration must be given.")
    if request.duration is None and request.end_time is not None and request.end_time <= request.start_time:
        raise Wrong("Start time cannot be after end time.")
    sized = request.node_count or request.core_count or request.gres
    if request.partition and not request.nodes and not sized:
        request = replace(request, nodes=(("", "ALL"),), flags=request.flags | ReservationFlag.PART_NODES)
    if not request.nodes and not sized and not request.licenses:
        raise Wrong("CoreCnt, Nodes, NodeCnt, TRES or Watts must be specified.")
    if not (request.users or request.groups or request.accounts or request.qos or request.allowed_partitions):
        raise Wrong("Either Users/Groups, AllowedPartitions, QOS and/or Accounts must be specified.")
    flags = request.flags
    if flags & ReservationFlag.PART_NODES and not (request.partition and request.nodes == (("", "ALL"),)):
        raise Wrong("PART_NODES flag requires specifying a Partition and ALL nodes.")
    if flags & ReservationFlag.FORCE_START and not flags & REPEATING:
        raise Wrong("FORCE_START flag requires a reoccuring reservation.")
    return request


# ---------------------------------------------------------------------------------------------- commands

_CREATED = "  No reservation created."
_UPDATED = "  No reservation update."
_IN_ONE_PARTITION = (
    "Note, unless nodes are directly requested a reservation must exist in a single partition.\n"
    "If no partition is requested the default partition is assumed.\n"
)


def _refuse(session: Session, wrong: Wrong, end: str) -> int:
    for line in wrong.lines:
        session.say(f"{line}\n")
    return session.say(f"scontrol: error: {wrong}{'' if wrong.alone else end}\n")


async def create(session: Session, arguments: Sequence[str]) -> int:
    """``scontrol create reservation …``, also ``create reservation=NAME`` and ``create ReservationName=NAME``."""
    words = [word for word in arguments if not _only_names_entity(word)]
    try:
        request = _complete(read_request(words, session.controller.now()))
    except Wrong as wrong:
        end = _CREATED if "FORCE_START" not in str(wrong) else _CREATED[1:]
        return _refuse(session, wrong, end)
    except Unknown as unknown:
        return session.say(f"Error creating the reservation: {unknown}\n")
    text = _contradiction(request)
    if text:
        session.say(f"scontrol: error: {text}\n")
    event = CreateReservation(session.controller.now(), session.call.caller, request)
    answer = _answer(await session.controller.apply(event))
    if isinstance(answer, Refused):
        session.say(f"Error creating the reservation: {answer.error}\n")
        if _was_chosen(answer, request):
            session.output.write(_IN_ONE_PARTITION)
        return 1
    session.output.write(f"Reservation created: {answer.name}\n")
    return 0


def _only_names_entity(word: str) -> bool:
    return len(word) >= 3 and "=" not in word and "reservation".startswith(word.lower())


NOT_REPLACED = "REPLACE and REPLACE_DOWN flags cannot be used with STATIC_ALLOC or MAINT flags"


def _contradiction(request: ReservationRequest) -> str:
    """Flags that no reservation can have together, in words that stand before the refusal."""
    if bin(request.flags & REPEATING).count("1") > 1:
        return "Reservation has multiple reoccurring flags. Please specify only one reoccurring flag"
    if request.flags & ReservationFlag.TIME_FLOAT and request.flags & REPEATING:
        return "Reservation request has mutually exclusive flags. Repeating floating reservations are not supported."
    if request.flags & REPLACING and request.flags & KEEPING:
        return NOT_REPLACED
    if request.nodes and request.flags & REPLACING:
        return "REPLACE or REPLACE_DOWN flags should be used with the NodeCnt reservation option; do not specify Nodes"
    return ""


def _tell_contradiction(session: Session, request: ReservationRequest) -> None:
    """What Slurm's controller says of flags that this reservation cannot have, before it refuses them."""
    reservation = session.controller.machine.reservations.get(request.name)
    if reservation is None or not session.call.caller.operator:
        return
    flags = (reservation.flags | request.flags) & ~request.dropped_flags
    if request.flags & REPLACING and reservation.flags & ReservationFlag.SPEC_NODES:
        session.say(
            "scontrol: error: Reservation can't be updated with REPLACE or REPLACE_DOWN flags;"
            " they should be updated on a NodeCnt reservation\n"
        )
    elif flags & REPLACING and flags & KEEPING:
        session.say(f"scontrol: error: {NOT_REPLACED}\n")
    elif counts_cores(reservation, request):
        session.say("scontrol: error: Updating core/node TRES not supported for core-based reservations\n")
    elif bin(flags & REPEATING).count("1") > 1:
        session.say(
            "scontrol: error: Cannot update reservation to have multiple reoccurring flags."
            " Please specify only one reoccurring flag\n"
        )


def _was_chosen(refused: Refused, request: ReservationRequest) -> bool:
    return not request.nodes and str(refused.error) in (
        "Requested node configuration is not available",
        "Requested nodes are busy",
    )


def _answer(answers: Iterable[Accepted | Refused]) -> Accepted | Refused:
    return next(iter(answers))


async def update(session: Session, words: Sequence[str]) -> int:
    """``scontrol update ReservationName=…``."""
    words = [word for word in words if not _only_names_entity(word)]
    try:
        request = read_request(words, session.controller.now())
    except Wrong as wrong:
        code = _refuse(session, wrong, _UPDATED)
        if wrong.lines:  # a time that is not understood is also refused by the controller
            session.say(f"slurm_update error: {MESSAGES[Errno.INVALID_TIME_VALUE]}\n")
        return code
    except Unknown as unknown:
        name = value_of(words, "ReservationName", 3)
        known = name in session.controller.machine.reservations
        error = MESSAGES[Errno.RESERVATION_INVALID if not known else Errno.USER_ID_MISSING]
        return session.say(f"slurm_update error: {str(unknown) if known and str(unknown) != UNKNOWN_NAME else error}\n")
    _tell_contradiction(session, request)
    event = UpdateReservation(session.controller.now(), session.call.caller, request)
    answer = _answer(await session.controller.apply(event))
    if isinstance(answer, Refused):
        return session.say(f"slurm_update error: {answer.error}\n")
    session.output.write("Reservation updated.\n")
    return 0


async def delete(session: Session, typed: str, name: str) -> int:
    """``scontrol delete ReservationName=NAME``; ``typed`` is the first word of it."""
    event = DeleteReservation(session.controller.now(), session.call.caller, name)
    answer = _answer(await session.controller.apply(event))
    if isinstance(answer, Refused):
        return session.say(f"delete_reservation {typed}: {answer.error}\n")
    return 0


# ---------------------------------------------------------------------------------------------- show


async def show(session: Session, names: Sequence[str]) -> int:
    """``scontrol show reservation [NAME]``."""
    now = int(session.controller.now())
    chosen = [each for each in visible(session.call, session.controller) if not names or each.name == names[0]]
    if names and not chosen:
        session.output.write(f"Reservation {names[0]} not found\n")
        return 1
    if not chosen:
        session.output.write("No reservations in the system\n")
    for reservation in chosen:
        lines = record_lines(reservation, now)
        session.output.write(" ".join(lines) + "\n" if session.one_line else "\n   ".join(lines) + "\n\n")
    return 0


def visible(call: Call, controller: Controller) -> list[Reservation]:
    """The reservations that the caller may see: under PrivateData=reservations those that name the caller."""
    machine, caller = controller.machine, call.caller
    everyone = caller.operator or "reservations" not in machine.site.private_data
    return [
        each for each in machine.reservations.values() if everyone or (each.users.names and each.users.allows(caller.user_name))
    ]


def record_lines(reservation: Reservation, now: int) -> list[str]:
    """The lines of a reservation's record."""
    moved = reservation.at(now)
    delay = reservation.maximum_start_delay
    return [
        f"ReservationName={reservation.name} StartTime={format_time(moved.start_time)} EndTime={format_time(moved.end_time)}"
        f" Duration={duration_text(reservation)}",
        f"Nodes={fold(reservation.nodes) or '(null)'} NodeCnt={len(reservation.nodes)} CoreCnt={reservation.core_count}"
        f" Features={reservation.features or '(null)'} PartitionName={reservation.partition or '(null)'}"
        f" Flags={reservation.flags_text}",
        *(f"  NodeName={share.node} CoreIDs={fold(map(str, share.cores)).strip('[]')}" for share in reservation.cores),
        f"TRES={format_tres(reservation.tres) or '(null)'}",
        f"AllowedPartitions={str(reservation.allowed_partitions) or '(null)'} QOS={str(reservation.qos) or '(null)'}",
        f"Users={str(reservation.users) or '(null)'} Groups={str(reservation.groups) or '(null)'}"
        f" Accounts={str(reservation.accounts) or '(null)'} Licenses={reservation.licenses_text or '(null)'}"
        f" State={state_text(reservation, now)} BurstBuffer=(null)",
        f"MaxStartDelay={'(null)' if delay is None else format_elapsed(delay, padded=True)}",
        *([f"Comment={reservation.comment}"] if reservation.comment else []),
    ]


def duration_text(reservation: Reservation) -> str:
    return format_elapsed(reservation.end_time - reservation.start_time, padded=True)


def state_text(reservation: Reservation, now: int) -> str:
    return "ACTIVE" if reservation.active(now) else "INACTIVE"


def table_lines(reservations: Sequence[Reservation], now: int, *, header: bool) -> list[str]:
    """The rows of ``sinfo --reservation``."""
    width = max([len("RESV_NAME"), *(len(each.name) for each in reservations)])
    rows = [("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")] if header else []
    for each in reservations:
        moved = each.at(now)
        times = format_time(moved.start_time), format_time(moved.end_time)
        rows.append((each.name, state_text(each, now), *times, duration_text(each), fold(each.nodes) or "(null)"))
    return [
        f"{name:<{width}}  {state:>8}  {start:>19}  {end:>19}  {long:>11}  {nodes}"
        for name, state, start, end, long, nodes in rows
    ]
