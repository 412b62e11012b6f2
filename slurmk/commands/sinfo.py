"""sinfo: the partitions and nodes that the controller knows (sinfo(1))."""

from __future__ import annotations

import asyncio
import grp
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from grammar.arguments import Given
from grammar.formats import Column, compile_format, parse_long_format, parse_short_format
from grammar.hostlist import HostlistError
from slurmk.commands.call import Call, Controller, Failure, Output
from slurmk.commands.command_options import from_environment, meanings
from slurmk.commands.documents.envelope import Wanted
from slurmk.commands.documents.printing import form, print_rows
from slurmk.commands.documents.sinfo import ALIKE, ROW, RowView
from slurmk.commands.frame import early_answer, interval, read_options
from slurmk.commands.node_text import NodeView, views, wanted_nodes
from slurmk.commands.scontrol_reservation import table_lines
from slurmk.commands.scontrol_reservation import visible as visible_reservations
from slurmk.commands.sinfo_options import OPTIONS, USAGE_TEXT
from slurmk.commands.sinfo_rows import HELP_LETTERS, HELP_NAMES, LETTERS, NAMES, RowField, build_rows, sort_rows
from slurmk.model.node import Partition
from slurmk.model.states import NodeFlag, NodeState

Matcher = Callable[[NodeView], bool]


def _base(state: NodeState) -> Matcher:
    return lambda view: view.condition.base is state


def _flag(flag: NodeFlag) -> Matcher:
    return lambda view: bool(view.condition.flags & flag)


STATES: dict[str, Matcher] = {
    "unknown": _base(NodeState.UNKNOWN),
    "down": _base(NodeState.DOWN),
    "idle": _base(NodeState.IDLE),
    "allocated": lambda view: view.condition.base in (NodeState.ALLOCATED, NodeState.MIXED),
    "mixed": _base(NodeState.MIXED),
    "future": _base(NodeState.FUTURE),
    "drain": _flag(NodeFlag.DRAIN),
    "drained": lambda view: bool(view.condition.flags & NodeFlag.DRAIN) and not view.condition.busy,
    "draining": lambda view: bool(view.condition.flags & NodeFlag.DRAIN) and view.condition.busy,
    "no_respond": _flag(NodeFlag.NO_RESPOND),
    "reserved": _flag(NodeFlag.RESERVED),
    "planned": _flag(NodeFlag.PLANNED),
    "blocked": _flag(NodeFlag.BLOCKED),
    "cloud": _flag(NodeFlag.CLOUD),
    "completing": _flag(NodeFlag.COMPLETING),
    "powering_down": _flag(NodeFlag.POWERING_DOWN),
    "powered_down": _flag(NodeFlag.POWERED_DOWN),
    "power_down": _flag(NodeFlag.POWER_DOWN),
    "powering_up": _flag(NodeFlag.POWERING_UP),
    "power_up": _flag(NodeFlag.POWER_UP),
    "inval": _flag(NodeFlag.INVALID_REG),
    "fail": _flag(NodeFlag.FAIL),
    "maint": _flag(NodeFlag.MAINT),
    "reboot": _flag(NodeFlag.REBOOT_REQUESTED),
    "reboot^": _flag(NodeFlag.REBOOT_ISSUED),
    "external": _flag(NodeFlag.EXTERNAL),
    "dynamic_future": _flag(NodeFlag.DYNAMIC_FUTURE),
    "dynamic_norm": _flag(NodeFlag.DYNAMIC_NORM),
}
"""What ``--states`` knows, in the order in which it lists them; a beginning of a word will do."""

OTHER_WORDS: dict[str, str] = {
    "resv": "reserved",
    "comp": "completing",
    "drng": "draining",
    "futr": "future",
    "unk": "unknown",
    "plnd": "planned",
    "boot": "reboot",
    "boot^": "reboot^",
    "reboot_requested": "reboot",
    "reboot_issued": "reboot^",
    "invalid_reg": "inval",
}
"""Words that are no beginning of one of those."""

ALL_FIELDS = "|".join(
    [*(f"%{letter}" for letter in "abcdefghilmnoprstuvwz"), *(f"%{letter} " for letter in "ABCDEFGHILMNOPRSTUVXYZ")]
)
"""The format that ``-o %all`` stands for."""


@dataclass(slots=True)
class Request:
    """What one sinfo asks for."""

    options: dict[str, str | None]
    all: bool = False
    partitions: tuple[str, ...] | None = None
    nodes: frozenset[str] | None = None
    states: tuple[Matcher, ...] = ()
    all_states: bool = False  # a & b rather than a , b
    short_format: str | None = None
    long_format: str | None = None
    sort: str | None = None
    iterate: int = 0
    clusters: tuple[str, ...] = ()
    form: Wanted | None = None  # --json, --yaml
    columns: tuple[Column, ...] = field(default=())

    def has(self, name: str) -> bool:
        return name in self.options


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Answer one sinfo. Exit code 1 for wrong options."""
    given, _ = read_options(call, OPTIONS, in_order=True)
    answer = _information(call, given)
    if answer is not None:
        output.write(answer)
        return 0
    request = _read_request(call, controller, given)
    request.form = form(call, given, output)
    await _answer(call, controller, output, request)
    return 0


def _information(call: Call, given: Sequence[Given]) -> str | None:
    for option in given:
        if option.name == "helpstate":
            return "".join(f"{name}\n" for name in STATES)
        if option.name == "helpformat":
            return _in_columns([f"%{letter}" for letter in HELP_LETTERS], 6, 8)
        if option.name == "helpFormat":
            return _in_columns(HELP_NAMES, 20, 4)
    return early_answer(call, given, OPTIONS, meanings(OPTIONS), USAGE_TEXT)


def _in_columns(words: Sequence[str], width: int, columns: int) -> str:
    rows = (words[start : start + columns] for start in range(0, len(words), columns))
    return "".join("".join(word.ljust(width) for word in row) + "\n" for row in rows)


# ---------------------------------------------------------------------------------------------- what is asked for


def _read_request(call: Call, controller: Controller, given: Sequence[Given]) -> Request:
    """Options over environment over defaults. Raises Failure with Slurm's message."""
    options = from_environment(OPTIONS, call.environment)
    typed = {option.name: option.value for option in given}
    if {"format", "Format", "summarize", "Node", "list-reasons"} & typed.keys():
        options.pop("format", None)
    if "long" in typed and {"format", "Format"} & typed.keys():
        raise Failure(
            "sinfo: fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry.\n"
        )
    request = Request({**options, **typed})
    for option in given:  # the last of two that contradict each other counts
        if option.name in ("all", "hide"):
            request.all = option.name == "all"
        elif option.name in ("format", "Format"):
            if "Format" in typed:
                request.long_format = option.value
            else:
                request.short_format = option.value
    request.all = request.all or ("all" in options and "hide" not in typed)
    request.short_format = request.short_format if typed.keys() & {"format", "Format"} else options.get("format")
    request.sort = request.options.get("sort")
    partitions = request.options.get("partition")
    request.partitions = tuple(partitions.split(",")) if partitions is not None else None
    request.nodes = _nodes(request.options.get("nodes"))
    request.iterate = _interval(request.options.get("iterate"))
    request.clusters = _clusters(controller, request.options.get("clusters"))
    _read_states(request)
    return request


def _nodes(text: str | None) -> frozenset[str] | None:
    if text is None:
        return None
    try:
        return frozenset(wanted_nodes(text))
    except HostlistError as error:
        detail = f"sinfo: error: _parse_single_range: {error.detail}\n" if error.detail else ""
        raise Failure(f"{detail}sinfo: error: '{text}' invalid entry for --nodes\n") from None


def _interval(text: str | None) -> int:
    if text is None:
        return 0
    seconds = interval(text)
    if seconds is None:
        raise Failure(f"sinfo: error: Error: invalid entry for --iterate={text}\n")
    return seconds


def _clusters(controller: Controller, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    own = controller.machine.site.cluster_name
    for name in text.split(","):
        if name not in (own, "all"):
            raise Failure(
                f"sinfo: error: No cluster '{name}' known by database.\n"
                f"sinfo: error: '{name}' can't be reached now, or it is an invalid entry for --cluster.  "
                "Use 'sacctmgr list clusters' to see available clusters.\n"
                "sinfo: fatal: Could not get cluster information\n"
            )
    return (own,)


def _read_states(request: Request) -> None:
    text = request.options.get("states")
    if text is None:
        if request.has("list-reasons"):
            request.states = (STATES["down"], STATES["drain"], STATES["fail"])
        return
    if text.lower() == "all":
        return
    request.all_states = bool(re.search("[&+]", text))
    request.states = tuple(_state(word) for word in re.split("[,&+]", text) if word) or (_none,)


def _none(view: NodeView) -> bool:
    return False


def _state(word: str) -> Matcher:
    """``down``, or with ``~`` or ``!`` before it all others. Raises Failure."""
    if word[0] in "~!":
        named = _named_state(word[1:]) if word[1:] else _none
        return lambda view: not named(view)
    return _named_state(word)


def _named_state(word: str) -> Matcher:
    name = next((name for name in STATES if word and name.startswith(word.lower())), OTHER_WORDS.get(word.lower()))
    if name is None:
        raise Failure(f'sinfo: error: Bad state string: "{word}"\nsinfo: error: valid states: {",".join(STATES)}\n')
    return STATES[name]


# ---------------------------------------------------------------------------------------------- answer


async def _answer(call: Call, controller: Controller, output: Output, request: Request) -> None:
    while True:
        if request.form is not None and not request.has("reservation"):
            await _print_document(call, controller, output, request, request.form)
        else:
            _print_once(call, controller, output, request)
        await output.drain()
        if not request.iterate:
            return
        await asyncio.sleep(request.iterate)


def _print_once(call: Call, controller: Controller, output: Output, request: Request) -> None:
    for cluster in request.clusters if not request.has("noheader") else ():
        output.write(f"CLUSTER: {cluster}\n")
    if request.has("reservation"):
        reservations = visible_reservations(call, controller)
        if not reservations:
            output.write("No reservations in the system\n")
            return
        now = int(controller.now())
        for line in table_lines(reservations, now, header=not request.has("noheader")):
            output.write(line + "\n")
        return
    if (request.has("long") and not request.has("noheader")) or (request.iterate and request.has("verbose")):
        output.write(time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(controller.now())) + "\n")
    machine = controller.machine
    partitions = _partitions(call, controller, request)
    nodes = {name: view for name, view in views(machine, future=request.has("future")).items() if _passes(request, view)}
    columns, table = _columns(request, [partition for _, partition in partitions], nodes)
    layout = compile_format(columns, {key: each.printed for key, each in table.items()})
    for column in layout.unknown:
        output.error(_unknown(column, named=table is NAMES))
    used = [table[column.field] for column in columns if column.field in table]
    rows = build_rows(
        partitions,
        nodes,
        used,
        each_node=request.has("Node"),
        exact=request.has("exact"),
        empty=_shows_empty(request, used),
        preempt_mode=machine.site.preempt_mode,
        convert=not request.has("noconvert"),
    )
    sort_rows(rows, request.sort or ("N" if request.has("Node") else "#P,-t"))
    if not request.has("noheader"):
        output.write(layout.header + "\n")
    output.write("".join(layout.line(row) + "\n" for row in rows))


async def _print_document(call: Call, controller: Controller, output: Output, request: Request, form: Wanted) -> None:
    """``--json``, ``--yaml``: rows by the fields that would be printed, apart where nodes differ in what they have."""
    machine = controller.machine
    partitions = _partitions(call, controller, request)
    known = views(machine, future=request.has("future"))
    nodes = {name: view for name, view in known.items() if _passes(request, view)}
    columns, table = _columns(request, [partition for _, partition in partitions], nodes)
    used = [table[column.field] for column in columns if column.field in table]
    rows = build_rows(
        partitions,
        nodes,
        (*used, *ALIKE),
        each_node=request.has("Node"),
        exact=True,
        empty=_shows_empty(request, used),
        preempt_mode=machine.site.preempt_mode,
        convert=False,
    )
    sort_rows(rows, request.sort or ("N" if request.has("Node") else "#P,-t"))
    documents = (ROW.document(RowView(machine.site, row, known), form.version) for row in rows)
    await print_rows(call, controller, output, form, "sinfo", documents)


def _shows_empty(request: Request, used: Iterable[RowField]) -> bool:
    """Partitions without a node have a row where rows are by partition."""
    by_partition = any(each.heading == "PARTITION" for each in used)
    return by_partition and not request.has("Node") and not request.has("list-reasons")


def _unknown(column: Column, *, named: bool) -> str:
    if named:
        return f"sinfo: error: Invalid job format specification: {column.token}\n"
    return "" if column.field == "\0" else f"Invalid node format specification: {column.field}\n"


def _partitions(call: Call, controller: Controller, request: Request) -> list[tuple[int, Partition]]:
    """The partitions to show, with their order of configuration."""
    shown = list(enumerate(controller.machine.partitions.values()))
    if request.partitions is not None:
        shown = [(order, partition) for order, partition in shown if partition.name in request.partitions]
    if not request.all and not call.caller.operator:
        shown = [(order, partition) for order, partition in shown if visible(call, partition)]
    return shown


def visible(call: Call, partition: Partition) -> bool:
    """True when an ordinary user is shown the partition without asking for all."""
    if partition.hidden:
        return False
    return partition.allow_groups is None or not _groups(call).isdisjoint(partition.allow_groups)


def _groups(call: Call) -> set[str]:
    names = set()
    for group in os.getgrouplist(call.caller.user_name, call.group_id):
        try:
            names.add(grp.getgrgid(group).gr_name)
        except KeyError:
            continue
    return names


def _passes(request: Request, view: NodeView) -> bool:
    if request.nodes is not None and view.node.name not in request.nodes:
        return False
    silent = bool(view.condition.flags & NodeFlag.NO_RESPOND)
    if (request.has("dead") and not silent) or (request.has("responding") and silent):
        return False
    if not request.states:
        return True
    matches = (state(view) for state in request.states)
    return all(matches) if request.all_states else any(matches)


# ---------------------------------------------------------------------------------------------- columns


def _columns(
    request: Request, partitions: Iterable[Partition], nodes: Iterable[str]
) -> tuple[tuple[Column, ...], dict[str, RowField]]:
    if request.long_format is not None and request.long_format.lower() != "all":
        return parse_long_format(request.long_format), NAMES
    text = request.short_format
    if request.long_format is not None or (text is not None and text.lower() == "%all"):
        text = ALL_FIELDS
    if text is None:
        text = _default_format(request, partitions, nodes)
    return parse_short_format(text), LETTERS


def _default_format(request: Request, partitions: Iterable[Partition], nodes: Iterable[str]) -> str:
    """The columns without -o and -O. Partition and node names get the room that they need."""
    long = request.has("long")
    wide = max((len(partition.name) + partition.default for partition in partitions), default=0)
    partition = max(wide, len("PARTITION"))
    if request.has("summarize"):
        return f"%{partition}P %.5a %.10l %.16F %N"
    if request.has("Node"):
        node = max(max(map(len, nodes), default=0), len("NODELIST "))
        start = f"%{node}N %.6D %.{partition}P"
        return f"{start} %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E" if long else f"{start} %6t"
    if request.has("list-reasons"):
        return "%20E %12U %19H %6t %N" if long else "%20E %9u %19H %N"
    if long:
        return f"%{partition}P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %.11i %N"
    return f"%{partition}P %.5a %.10l %.6D %.6t %N"
