"""The options of squeue: one table, one row an option, in squeue's own order (squeue(1))."""

from __future__ import annotations

from grammar.arguments import Argument, Status
from slurmk.commands.command_options import (
    AUTOCOMPLETE,
    CLUSTERS,
    HELP,
    JSON,
    USAGE,
    VERBOSE,
    VERSION,
    YAML,
    CommandOption,
    of_federations,
)

_VALUE, _MAYBE = Argument.REQUIRED, Argument.OPTIONAL

OPTIONS: tuple[CommandOption, ...] = (
    AUTOCOMPLETE,
    CommandOption(("accounts",), "A", _VALUE, meaning="jobs of these accounts", variables=("SQUEUE_ACCOUNT",)),
    CommandOption(("all",), "a", meaning="also jobs in hidden partitions", variables=("SQUEUE_ALL",)),
    CommandOption(("array",), "r", meaning="a line for each element of an array", variables=("SQUEUE_ARRAY",)),
    CommandOption(("expand-patterns",), status=Status.ACCEPTED, note="file names are printed as patterns"),
    CommandOption(("Format",), "O", _VALUE, meaning="what to print, by names", variables=("SQUEUE_FORMAT2",)),
    CommandOption(("format",), "o", _VALUE, meaning="what to print, by letters", variables=("SQUEUE_FORMAT",)),
    of_federations("federation", variables=("SQUEUE_FEDERATION",)),
    HELP,
    CommandOption(("helpstate",), meaning="the states of --states"),
    CommandOption(("helpformat",), meaning="the letters of --format"),
    CommandOption(("helpFormat",), meaning="the names of --Format"),
    CommandOption(("hide",), meaning="no jobs in hidden partitions"),
    CommandOption(("iterate",), "i", _VALUE, meaning="print again every so many seconds"),
    CommandOption(("jobs",), "j", _MAYBE, meaning="these jobs only"),
    of_federations("local", variables=("SQUEUE_LOCAL",)),
    CommandOption(("long",), "l", meaning="more columns"),
    CommandOption(("licenses",), "L", _VALUE, meaning="jobs that ask for these licences", variables=("SQUEUE_LICENSES",)),
    CLUSTERS,
    CommandOption(("me",), meaning="my jobs only"),
    CommandOption(("name",), "n", _VALUE, meaning="jobs of these names", variables=("SQUEUE_NAMES",)),
    CommandOption(("noconvert",), meaning="memory in MiB, not in larger units"),
    CommandOption(("node", "nodes", "nodelist"), "w", _VALUE, called="nodelist", meaning="jobs on these nodes"),
    CommandOption(("noheader",), "h", meaning="no headings"),
    CommandOption(("notme",), meaning="other users' jobs only"),
    CommandOption(("only-job-state",), meaning="ids and states only"),
    CommandOption(("partitions",), "p", _VALUE, meaning="jobs in these partitions", variables=("SQUEUE_PARTITION",)),
    CommandOption(("priority",), "P", meaning="a line for each partition of a waiting job", variables=("SQUEUE_PRIORITY",)),
    CommandOption(("qos",), "q", _VALUE, meaning="jobs with these QOS", variables=("SQUEUE_QOS",)),
    CommandOption(("reservation",), "R", _VALUE, meaning="jobs in these reservations"),
    CommandOption(("running-over",), argument=_VALUE, meaning="jobs that have run longer than this"),
    CommandOption(("running-under",), argument=_VALUE, meaning="jobs that have run less than this"),
    of_federations("sib", "sibling", variables=("SQUEUE_SIBLING",)),
    CommandOption(("sort",), "S", _VALUE, meaning="order, by letters of --format", variables=("SQUEUE_SORT",)),
    CommandOption(("start",), meaning="planned starts of waiting jobs"),
    CommandOption(("steps",), "s", _MAYBE, meaning="running steps instead of jobs"),
    CommandOption(("states",), "t", _VALUE, meaning="jobs in these states, or all", variables=("SQUEUE_STATES",)),
    USAGE,
    CommandOption(("user", "users"), "u", _VALUE, called="users", meaning="jobs of these users", variables=("SQUEUE_USERS",)),
    VERBOSE,
    VERSION,
    JSON,
    YAML,
)

USAGE_TEXT = (
    "[-A accounts] [-h] [-i seconds] [-j jobs] [-l] [-L licenses] [-n names] [-o format | -O fields]\n"
    "              [-p partitions] [-P] [-q qos] [-r] [-R reservations] [-s steps] [-S keys] [-t states] [-u users]\n"
    "              [-w nodes] [--me] [--start] [--only-job-state] [--noconvert] [--json=parser] [--yaml=parser]"
)
"""What ``--usage`` prints behind the command's name."""
