"""The options of sacct: one table, one row an option, in sacct's own order (sacct(1))."""

from __future__ import annotations

from grammar.arguments import Argument, Status
from slurmk.commands.command_options import (
    AUTOCOMPLETE,
    CLUSTERS,
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
    CommandOption(("allusers",), "a", meaning="jobs of all users"),
    CommandOption(("accounts",), "A", _VALUE, meaning="jobs of these accounts"),
    CommandOption(("allocations",), "X", meaning="jobs only, no steps"),
    CommandOption(("array",), meaning="a line for each element of an array that waits"),
    CommandOption(("brief",), "b", meaning="id, state and exit code"),
    CommandOption(("batch-script",), "B", meaning="print the scripts of the jobs that -j names"),
    CommandOption(("completion",), "c", note="there is no job completion plugin; says so"),
    CommandOption(("constraints",), "C", _VALUE, meaning="jobs with these constraints"),
    CommandOption(("delimiter",), argument=_VALUE, meaning="what separates fields in -p and -P"),
    CommandOption(("duplicates",), "D", meaning="all records of a job id, not only the latest"),
    of_federations("federation", variables=("SACCT_FEDERATION",)),
    CommandOption(("helpformat", "help-fields"), "e", meaning="the fields of --format"),
    CommandOption(("helpreason",), meaning="the reasons of --reason"),
    CommandOption(("helpstate",), meaning="the states of --state"),
    CommandOption(("endtime",), "E", _VALUE, meaning="jobs that were there before this time"),
    CommandOption(("env-vars",), meaning="print the environments of the jobs that -j names"),
    CommandOption(("expand-patterns",), meaning="expand patterns in names of files"),
    CommandOption(("file",), "f", _VALUE, note="there is no job completion plugin; says so"),
    CommandOption(("flags",), "F", _VALUE, meaning="jobs with these flags"),
    CommandOption(("gid", "group"), "g", _VALUE, meaning="jobs of these groups"),
    CommandOption(("help",), "h", meaning="this text"),
    of_federations("local", variables=("SACCT_LOCAL",)),
    CommandOption(("name",), argument=_VALUE, meaning="jobs of these names"),
    CommandOption(("nnodes",), "i", _VALUE, meaning="jobs on so many nodes, N or MIN-MAX"),
    CommandOption(("ncpus",), "I", _VALUE, meaning="jobs on so many CPUs, N or MIN-MAX"),
    CommandOption(("jobs",), "j", _VALUE, meaning="these jobs, elements (12_3) or steps (12.0)"),
    CommandOption(("timelimit-min",), "k", _VALUE, meaning="jobs with this time limit"),
    CommandOption(("timelimit-max",), "K", _VALUE, meaning="with -k: jobs with a limit between the two"),
    CommandOption(("long",), "l", meaning="many fields"),
    CommandOption(("allclusters",), "L", status=Status.ACCEPTED, note="there is one cluster"),
    CLUSTERS,
    CommandOption(("nodelist",), "N", _VALUE, meaning="jobs on any of these nodes"),
    CommandOption(("noconvert",), meaning="sizes in the units they are kept in"),
    CommandOption(("units",), argument=_VALUE, meaning="sizes in this unit, one of KMGTP"),
    CommandOption(("noheader",), "n", meaning="no headings"),
    CommandOption(("fields", "format"), "o", _VALUE, called="format", meaning="fields to print, NAME or NAME%WIDTH"),
    CommandOption(("parsable",), "p", meaning="fields ended by |"),
    CommandOption(("parsable2",), "P", meaning="fields separated by |"),
    CommandOption(("qos",), "q", _VALUE, meaning="jobs with these QOS"),
    CommandOption(("partition",), "r", _VALUE, meaning="jobs in these partitions"),
    CommandOption(("reason",), "R", _VALUE, meaning="jobs that waited for these reasons"),
    CommandOption(("state",), "s", _VALUE, meaning="jobs that were in these states"),
    CommandOption(("starttime",), "S", _VALUE, meaning="jobs that were there after this time; today's by default"),
    CommandOption(("truncate",), "T", meaning="cut times to the window of -S and -E"),
    CommandOption(("uid", "user"), "u", _VALUE, called="user", meaning="jobs of these users"),
    CommandOption(("use-local-uid",), status=Status.ACCEPTED, note="user ids are those of the records"),
    USAGE,
    VERBOSE,
    VERSION,
    CommandOption(("wckeys",), "W", _VALUE, meaning="jobs with these wckeys"),
    CommandOption(("whole-hetjob",), argument=_MAYBE, meaning="all components of a het job, yes or no"),
    CommandOption(("associations",), "x", _VALUE, meaning="jobs of these associations"),
    JSON,
    YAML,
)

USAGE_TEXT = "[options]\n\tUse --help for help"
"""What ``--usage`` prints behind the command's name."""
