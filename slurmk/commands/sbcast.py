"""sbcast: copy a file to every node of a job (sbcast(1)).

The file goes from sbcast's local part (``slurmk.stepd.sbcast``), which the caller's process becomes, to the job's stepds; the
controller only says where they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from grammar.arguments import Argument, Given, Option, Status
from grammar.hostlist import compress
from slurmk.commands.broadcast import compressed, excluded, parameters
from slurmk.commands.call import Call, Controller, Failure, Output, Unreadable
from slurmk.commands.frame import HELP, USAGE, VERSION, early_answer, read_options
from slurmk.commands.srun import local_part
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.selection import parse_step
from slurmk.model.job import Job
from slurmk.model.site import Site

_VALUE, _MAYBE = Argument.REQUIRED, Argument.OPTIONAL

BLOCK = 8 * 1024 * 1024

OPTIONS: tuple[Option, ...] = (
    Option(("compress",), "C", _MAYBE, note="files are compressed with zlib, which every Python has, whatever is named"),
    Option(("exclude",), argument=_VALUE),
    Option(("force",), "f"),
    HELP,
    Option(("jobid",), "j", _VALUE),
    Option(("preserve",), "p"),
    Option(("send-libs",), argument=_MAYBE),
    Option(("size",), "s", _VALUE),
    Option(("timeout",), "t", _VALUE),
    Option(("treewidth", "fanout"), "F", _VALUE, status=Status.ACCEPTED, note="messages do not fan out"),
    USAGE,
    Option(("verbose",), "v"),
    VERSION,
)

HELP_TEXTS: Mapping[str, str] = {
    "compress": "send it compressed",
    "exclude": "folders whose libraries are not sent",
    "force": "replace a file that is there",
    "jobid": "the job, when not called in one",
    "preserve": "keep the file's times",
    "send-libs": "send the libraries that the program needs, too",
    "size": "bytes that are sent at once",
    "timeout": "seconds for which an answer is waited for",
}

USAGE_TEXT = "[--exclude] [-CfFjpvV] [--send-libs] SOURCE DEST"
VARIABLES: Mapping[str, str] = {
    "SBCAST_COMPRESS": "compress",
    "SBCAST_EXCLUDE": "exclude",
    "SBCAST_FORCE": "force",
    "SBCAST_PRESERVE": "preserve",
    "SBCAST_SEND_LIBS": "send-libs",
    "SBCAST_SIZE": "size",
    "SBCAST_TIMEOUT": "timeout",
}
"""Environment variables that stand for options."""


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Send the file; gives the exit code when there is nowhere to send it."""
    given, operands = read_options(call, OPTIONS)
    if (answer := early_answer(call, given, OPTIONS, HELP_TEXTS, USAGE_TEXT, "SOURCE DEST")) is not None:
        output.write(answer)
        return 0
    values = _values(call, given)
    block = _block(values.get("size"), output)
    if len(operands) != 2:
        hint = 'Try "sbcast --help" for more information'
        raise Failure(f"Need two file names, have {len(operands)} names\n{hint}\n")
    job = _job(call, controller, values)
    try:
        await output.read(operands[0], 0)
    except Unreadable as error:
        raise Failure(f"sbcast: error: Can't open `{operands[0]}`: {error.text}\n", 255) from None
    if job.allocation is None:
        raise Failure(f"sbcast: error: Failed to load JobId={job.job_id}: '{SlurmError(Errno.JOB_PENDING)}'\n")
    nodes = compress(job.allocation.nodes)
    site = controller.machine.site

    def tell(text: str) -> None:
        output.error(f"sbcast: {text}\n")

    libraries = _libraries(values, site)
    settings = {
        "compress": compressed(site, values.get("compress"), tell),
        "libraries": libraries,
        "exclude": excluded(site, values.get("exclude"), tell) if libraries else [],
        "source": operands[0],
        "destination": operands[1],
        "block_size": block,
        "force": "force" in values,
        "preserve": "preserve" in values,
        "timeout": _seconds(values.get("timeout")),
        "verbose": "verbose" in values,
        "job": job.job_id,
        "nodes": nodes,
        "shown": _shown(values, operands, block),
    }
    access = controller.access(job)
    *program, _ = local_part(call, access)
    environment = dict(call.environment)
    environment |= {name: access[name] for name in ("SLURMK_STEP_MANAGER", "SLURMK_JOB_SECRET") if name in access}
    output.execute([*program, "sbcast", json.dumps(settings)], environment)
    return 0


def _libraries(values: Mapping[str, str], site: Site) -> bool:
    """Whether --send-libs is wanted. Raises Failure."""
    said = values.get("send-libs", parameters(site).get("send_libs", "no")).lower()
    if said not in ("", "yes", "y", "no", "n"):
        raise Failure("sbcast: error: Invalid --send-libs specification\n")
    return not said.startswith("n")


def _values(call: Call, given: Sequence[Given]) -> dict[str, str]:
    found = {name: call.environment[variable] for variable, name in VARIABLES.items() if variable in call.environment}
    return found | {one.name: one.value or "" for one in given}


def _block(text: str | None, output: Output) -> int:
    if text is None:
        return BLOCK
    match = _SIZE.match(text)
    if match is None:
        output.error("size specification is invalid, ignored\n")
        return BLOCK
    return min(int(match[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[match[2].lower()], BLOCK) or BLOCK


_SIZE = re.compile(r"(\d{1,9})([kKmM]?)\Z", re.ASCII)


def _seconds(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else 0


def _shown(values: Mapping[str, str], operands: Sequence[str], block: int) -> list[tuple[str, str]]:
    """What --verbose lists."""

    def word(name: str) -> str:
        return "true" if name in values else "false"

    return [
        ("block_size", str(block)),
        ("compress", str(int("compress" in values))),
        ("exclude", values.get("exclude") or "/lib,/usr/lib,/lib64,/usr/lib64"),
        ("force", word("force")),
        ("treewidth    ", values.get("treewidth") or "0"),
        ("preserve", word("preserve")),
        ("send_libs", word("send-libs")),
        ("timeout", str(_seconds(values.get("timeout")))),
        ("verbose", "1"),
        ("source", operands[0]),
        ("dest", operands[1]),
    ]


def _job(call: Call, controller: Controller, values: Mapping[str, str]) -> Job:
    """The job that the file goes to, which has not ended. Raises Failure."""
    text = values.get("jobid") or call.environment.get("SLURM_JOB_ID", "")
    if not text:
        need = "Need a job id to run this command.  Run from within a Slurm job or use the --jobid option."
        raise Failure(f"sbcast: error: {need}\n")
    try:
        chosen = parse_step(text, controller.machine.jobs.values())
    except SlurmError as error:
        raise Failure(f"sbcast: fatal: Bad job/step specified: {text}: {error}\n") from None
    machine = controller.machine
    try:
        job = machine.select(chosen)[0]
        if not machine.may_change(call.caller, job):
            raise SlurmError(Errno.USER_ID_MISSING)
        if job.state.finished:
            raise SlurmError(Errno.ALREADY_DONE)
    except SlurmError as error:
        raise Failure(f"sbcast: error: Failed to load JobId={text}: '{error}'\n") from None
    return job
