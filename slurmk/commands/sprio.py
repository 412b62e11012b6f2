"""sprio: what the priorities of waiting jobs are made of (sprio(1))."""

from __future__ import annotations

import pwd
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from grammar.arguments import Argument, Option
from slurmk.commands.call import Call, Controller, Failure, Output
from slurmk.commands.frame import CLUSTER, FEDERATION, HELP, USAGE, VERSION, check_cluster, early_answer, read_options
from slurmk.core.errors import SlurmError
from slurmk.core.priority import MULTIFACTOR, Factors
from slurmk.core.selection import parse
from slurmk.model.job import Job
from slurmk.model.site import Site

_VALUE = Argument.REQUIRED

OPTIONS: tuple[Option, ...] = (
    CLUSTER,
    *FEDERATION,
    Option(("format",), "o", _VALUE),
    HELP,
    Option(("helpformat",)),
    Option(("jobs",), "j", _VALUE),
    Option(("long",), "l"),
    Option(("noheader",), "h"),
    Option(("norm",), "n"),
    Option(("partition",), "p", _VALUE),
    Option(("sort",), "S", _VALUE),
    USAGE,
    Option(("user", "users"), "u", _VALUE),
    Option(("verbose",), "v"),
    VERSION,
    Option(("weights",), "w"),
)

HELP_TEXTS: Mapping[str, str] = {
    "format": "which fields, and how wide: %[.][width]LETTER",
    "helpformat": "the letters of --format",
    "jobs": "these jobs alone",
    "long": "all fields",
    "noheader": "no heading",
    "norm": "factors before they are weighted, between 0 and 1",
    "partition": "jobs of these partitions",
    "sort": "by these letters of --format, - for descending",
    "user": "jobs of these users",
    "weights": "the weights, not the jobs",
}

USAGE_TEXT = "[-j jobs] [-u users] [-p partitions] [-o format] [-S sort] [-M cluster] [-hlnvVw] [--helpformat]"

LARGEST = 0xFFFFFFFF
"""What a priority is divided by to be between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Row:
    """A waiting job in one of its partitions."""

    job: Job
    partition: str
    factors: Factors


@dataclass(frozen=True, slots=True)
class Field:
    """A letter of --format: its heading, its text, the weight that --weights shows, and what it sorts by."""

    heading: str
    text: Callable[[Row], str]
    weight: Callable[[Site], str] = lambda site: ""
    key: Callable[[Row], object] | None = None


def _weight(name: str) -> Callable[[Site], str]:
    return lambda site: str(site.priority_weights.get(name, 0))


def _part(heading: str, attribute: str, weight: str) -> Field:
    return Field(
        heading,
        lambda row: str(getattr(row.factors, attribute)),
        _weight(weight),
        lambda row: int(getattr(row.factors, attribute)),
    )


def _share(heading: str, attribute: str, weight: str) -> Field:
    return Field(
        heading,
        lambda row: f"{getattr(row.factors.shares, attribute):.7f}",
        _weight(weight),
        lambda row: float(getattr(row.factors.shares, attribute)),
    )


def _tres(parts: Iterable[tuple[str, float]], form: str) -> str:
    return ",".join(f"{name}={value:{form}}" for name, value in parts if value)


def _tres_weights(site: Site) -> str:
    return site.parameters.get("PriorityWeightTRES") or "(null)"


FIELDS: Mapping[str, Field] = {
    "a": _share("AGE", "age", "age"),
    "A": _part("AGE", "age", "age"),
    "b": _share("ASSOC", "association", "assoc"),
    "B": _part("ASSOC", "association", "assoc"),
    "c": Field("CLUSTER", lambda row: "(null)"),
    "f": _share("FAIRSHARE", "fair_share", "fairshare"),
    "F": _part("FAIRSHARE", "fair_share", "fairshare"),
    "i": Field("JOBID", lambda row: str(row.job.job_id), lambda site: "Weights", lambda row: row.job.job_id),
    "j": _share("JOBSIZE", "job_size", "job_size"),
    "J": _part("JOBSIZE", "job_size", "job_size"),
    "n": Field("QOSNAME", lambda row: row.job.qos, key=lambda row: row.job.qos),
    "N": Field("NICE", lambda row: str(row.factors.nice), key=lambda row: row.factors.nice),
    "o": Field("ACCOUNT", lambda row: row.job.account or "(null)", key=lambda row: row.job.account),
    "p": _share("PARTITION", "partition", "partition"),
    "P": _part("PARTITION", "partition", "partition"),
    "q": _share("QOS", "qos", "qos"),
    "Q": _part("QOS", "qos", "qos"),
    "r": Field("PARTITION", lambda row: row.partition, key=lambda row: row.partition),
    "s": Field("SLUID", lambda row: row.job.sluid),
    "S": Field("SITE", lambda row: str(row.factors.site), lambda site: "1", lambda row: row.factors.site),
    "t": Field("TRES", lambda row: _tres(row.factors.shares.tres, ".7f"), _tres_weights),
    "T": Field("TRES", lambda row: _tres(row.factors.tres, ".2f"), _tres_weights),
    "u": Field("USER", lambda row: row.job.credentials.user_name, key=lambda row: row.job.credentials.user_name),
    "y": Field("PRIORITY", lambda row: f"{row.factors.exact / LARGEST:.14f}", key=lambda row: row.factors.exact),
    "Y": Field("PRIORITY", lambda row: str(row.job.priority), key=lambda row: row.job.priority),
}

NOTHING = Field("", lambda row: "")
"""Stands for the text before the first field."""

LETTERS = "aAbBcfFijJnNopPrSqQsuyYtT"
"""The letters as --helpformat lists them."""


@dataclass(frozen=True, slots=True)
class Column:
    """A field with its width (0: as long as it is), its side, and what stands behind it."""

    field: Field
    width: int
    right: bool
    behind: str

    def cell(self, text: str) -> str:
        if self.width:
            text = text[: self.width].rjust(self.width) if self.right else text[: self.width].ljust(self.width)
        return text + self.behind


PLAIN = (("A", "age"), ("B", "assoc"), ("F", "fairshare"), ("J", "job_size"), ("P", "partition"), ("Q", "qos"))
NORMALISED = (("a", "age"), ("b", "assoc"), ("f", "fairshare"), ("j", "job_size"), ("p", "partition"), ("q", "qos"))
"""Letters of the factors, shown by default where their weight is not 0."""


def default_format(site: Site, *, long: bool, normalised: bool, users: bool) -> str:
    """The format without --format."""
    if long and normalised:
        return "%.15i %9r %.8u %.8o %10y %10a %10b %10f %10j %10p %10n %10q %20t"
    if long:
        return "%.15i %9r %.8u %.8o %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10n %.10Q %.11N %.20T"
    user = " %.8u" if users else ""
    weighted = NORMALISED if normalised else PLAIN
    letters = [letter for letter, weight in weighted if site.priority_weights.get(weight)]
    if normalised:
        return f"%.15i %9r{user} %10y" + "".join(f" %10{letter}" for letter in letters)
    return f"%.15i %9r{user} %.10Y %.10S" + "".join(f" %.10{letter}" for letter in letters)


_PIECE = re.compile(r"(\.?)(\d{0,5})([A-Za-z])(.*)\Z", re.DOTALL)


def columns_of(text: str) -> tuple[list[Column], list[str]]:
    """The columns of a format, and the letters that are none."""
    before, *pieces = text.split("%")
    columns: list[Column] = [Column(NOTHING, 0, False, before)] if before else []
    unknown: list[str] = []
    for piece in pieces:
        match = _PIECE.match(piece)
        field = FIELDS.get(match[3]) if match else None
        if match is None or field is None:
            unknown += [match[3] if match else piece[:1]] if piece else []
        else:
            columns.append(Column(field, int(match[2] or 0), bool(match[1]), match[4]))
    return columns, unknown


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Print the factors; gives the exit code."""
    given, operands = read_options(call, OPTIONS)
    if (answer := early_answer(call, given, OPTIONS, HELP_TEXTS, USAGE_TEXT)) is not None:
        output.write(answer)
        return 0
    values = {one.name: one.value or "" for one in given}
    if "helpformat" in values:
        output.write(_letters())
        return 0
    job_ids = _job_ids(controller, values["jobs"]) if "jobs" in values else None
    if operands:
        output.write(f"Usage: sprio {USAGE_TEXT}\n")
        raise Failure(f"sprio: error: Unrecognized option: {operands[0]}\n")
    site = controller.machine.site
    check_cluster(call, given, site)
    if site.priority_type != MULTIFACTOR:
        first = f"You are not running a supported priority plugin\n({site.priority_type}).\n"
        raise Failure(f"{first}Only '{MULTIFACTOR}' is supported.\n")
    if "long" not in values and "format" not in values and call.environment.get("SPRIO_FORMAT") is not None:
        values["format"] = call.environment["SPRIO_FORMAT"]
    columns = _columns(values, site, output)
    if "verbose" in values:
        output.write(_parameters(values, sum(one.name == "verbose" for one in given)))
    rows = _rows(controller, call)
    if not rows and job_ids is not None:
        output.write("Unable to find jobs matching user/id(s) specified\n")
        return 0
    users = _users(values, output)
    if "noheader" not in values:
        output.write(_line(column.cell(column.field.heading) for column in columns))
    if "weights" in values:
        output.write(_line(column.cell(column.field.weight(site)) for column in columns))
        return 0
    await _print(output, columns, _chosen(rows, values, job_ids, users), values.get("sort", "i"))
    return 0


def _columns(values: Mapping[str, str], site: Site, output: Output) -> list[Column]:
    text = values.get("format")
    if text is None:
        text = default_format(site, long="long" in values, normalised="norm" in values, users="user" in values)
    columns, unknown = columns_of(text)
    output.error("".join(f"sprio: error: Invalid job format specification: {letter}\n" for letter in unknown))
    return columns


def _parameters(values: Mapping[str, str], verbose: int) -> str:
    """What ``-v`` tells of the options first."""
    rule = "-----------------------------\n"
    told = {
        "format": values.get("format"),
        "job_flag": int("jobs" in values),
        "jobs": values.get("jobs"),
        "partition": values.get("partition"),
        "users": values.get("user"),
        "verbose": verbose,
    }
    lines = [f"{name:<10} = {'(null)' if value is None else value}\n" for name, value in told.items()]
    return "".join([rule, *lines, rule, "\n\n"])


def _line(cells: Iterable[str]) -> str:
    return "".join(cells) + "\n"


def _letters() -> str:
    cells = [f"%{letter}".ljust(6) for letter in LETTERS]
    return "".join(_line(cells[start : start + 8]) for start in range(0, len(cells), 8))


def _job_ids(controller: Controller, text: str) -> frozenset[int]:
    found = set()
    for name in filter(None, text.split(",")):
        try:
            found.add(parse(name, controller.machine.jobs.values()).job_id)
        except SlurmError:
            raise Failure(f"sprio: error: Invalid job id: {name}\n") from None
    return frozenset(found)


def _users(values: Mapping[str, str], output: Output) -> frozenset[int] | None:
    if "user" not in values:
        return None
    found = set()
    for name in values["user"].split(","):
        try:
            found.add(int(name) if name.isascii() and name.isdigit() and len(name) < 11 else pwd.getpwnam(name).pw_uid)
        except (KeyError, ValueError):
            output.error(f"sprio: error: Invalid user: {name}\n\n")
    return frozenset(found) or None


def _rows(controller: Controller, call: Call) -> list[Row]:
    """Jobs that wait for nothing but their turn: an array's waiting elements are one."""
    machine, now = controller.machine, controller.now()
    private = "jobs" in machine.site.private_data and not call.caller.operator
    rows = []
    for job in machine.jobs.values():
        if not job.pending or not job.priority or not job.eligible_time or job.eligible_time > now:
            continue
        if private and job.credentials.user_id != call.caller.user_id:
            continue
        factors = machine.priority_factors(job, now)
        rows += [Row(job, partition, factors) for partition in job.partitions]
    return rows


def _chosen(
    rows: Iterable[Row], values: Mapping[str, str], job_ids: frozenset[int] | None, users: frozenset[int] | None
) -> list[Row]:
    partitions = values["partition"].split(",") if "partition" in values else None
    return [
        row
        for row in rows
        if (job_ids is None or row.job.job_id in job_ids or row.job.array_job_id in job_ids)
        and (users is None or row.job.credentials.user_id in users)
        and (partitions is None or row.partition in partitions)
    ]


def _sorted(rows: list[Row], text: str) -> list[Row]:
    """By the letters of ``text``, the first of which counts most; letters without order are passed over."""
    rows = sorted(rows, key=lambda row: row.job.job_id)
    for sign, letter in reversed(re.findall(r"([+-]?)([A-Za-z])", text)):
        field = FIELDS.get(letter)
        if field is not None and field.key is not None:
            rows = sorted(rows, key=field.key, reverse=sign == "-")  # type: ignore[arg-type]
    return rows


async def _print(output: Output, columns: Sequence[Column], rows: list[Row], sort: str) -> None:
    for position, row in enumerate(_sorted(rows, sort), 1):
        output.write(_line(column.cell(column.field.text(row)) for column in columns))
        if position % 500 == 0:
            await output.drain()
