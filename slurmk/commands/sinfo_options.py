"""The options of sinfo: one table, one row an option, in sinfo's own order (sinfo(1))."""

from __future__ import annotations

from grammar.arguments import Argument, Status
from slurmk.commands.command_options import (
    AUTOCOMPLETE,
    CLUSTERS,
    HELP,
    JSON,
    USAGE,
    VERSION,
    YAML,
    CommandOption,
    of_federations,
)

_VALUE = Argument.REQUIRED

OPTIONS: tuple[CommandOption, ...] = (
    AUTOCOMPLETE,
    CommandOption(("all",), "a", meaning="also partitions that are hidden or not for you", variables=("SINFO_ALL",)),
    CommandOption(("dead",), "d", meaning="only nodes that do not respond"),
    CommandOption(("exact",), "e", meaning="only equal nodes in one row"),
    of_federations("federation", variables=("SINFO_FEDERATION",)),
    CommandOption(("future",), "F", meaning="also nodes of state FUTURE", variables=("SCONTROL_FUTURE",)),
    HELP,
    CommandOption(("helpformat",), meaning="the letters of --format"),
    CommandOption(("helpFormat",), meaning="the names of --Format"),
    CommandOption(("helpstate",), meaning="the states of --states"),
    CommandOption(("hide",), meaning="no hidden partitions"),
    CommandOption(("iterate",), "i", _VALUE, meaning="print again every so many seconds"),
    of_federations("local", variables=("SINFO_LOCAL",)),
    CommandOption(("long",), "l", meaning="more columns"),
    CLUSTERS,
    CommandOption(("nodes",), "n", _VALUE, meaning="these nodes only"),
    CommandOption(("noconvert",), meaning="counts as they are, without K and M"),
    CommandOption(("noheader",), "h", meaning="no headings"),
    CommandOption(("Node",), "N", meaning="a row for each node"),
    CommandOption(("format",), "o", _VALUE, meaning="what to print, by letters", variables=("SINFO_FORMAT",)),
    CommandOption(("Format",), "O", _VALUE, meaning="what to print, by names"),
    CommandOption(("partition",), "p", _VALUE, meaning="these partitions only", variables=("SINFO_PARTITION",)),
    CommandOption(("responding",), "r", meaning="only nodes that respond"),
    CommandOption(("list-reasons",), "R", meaning="why nodes are down or drained"),
    CommandOption(("summarize",), "s", meaning="one row for each partition"),
    CommandOption(("sort",), "S", _VALUE, meaning="order, by letters of --format", variables=("SINFO_SORT",)),
    CommandOption(("states",), "t", _VALUE, meaning="nodes in these states only: one of a,b or all of a&b, and ~a for others"),
    CommandOption(("reservation",), "T", meaning="reservations only"),
    USAGE,
    CommandOption(("verbose",), "v", status=Status.ACCEPTED, note="there is nothing more to tell"),
    VERSION,
    JSON,
    YAML,
)

USAGE_TEXT = (
    "[-adeFhlNRrsT] [-i seconds] [-M clusters] [-n nodes] [-o format | -O fields] [-p partitions]\n"
    "             [-S keys] [-t states] [--json=parser] [--yaml=parser]"
)
"""What ``--usage`` prints behind the command's name."""
