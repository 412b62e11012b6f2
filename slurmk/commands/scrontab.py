"""scrontab: jobs at set times (scrontab(1)). Off unless slurm.conf says ScronParameters=enable, as in Slurm.

A new table is checked as a whole before any of its jobs is submitted; when all of them are, it is on disk with their ids
before the jobs of the old one are ended. An editor runs where scrontab was typed.
"""

from __future__ import annotations

import asyncio
import pwd
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bridge.launcher import JobFiles
from grammar.arguments import Argument, Given, Option, Status, parse_arguments
from grammar.crontab import LARGEST_TABLE, CronEntry, CrontabError, parse_table
from grammar.errors import GrammarError
from grammar.option_order import PLACES
from grammar.options import OptionError, Reading, SubmissionOption, options_of
from slurmk.commands.call import Call, Controller, Failure, Output, Unreadable
from slurmk.commands.sbatch import as_bytes
from slurmk.commands.submission import Options, option_variables, request_of
from slurmk.core.crontabs import Entry, Table
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import EndRecurrence, Submission, Submit
from slurmk.model.job import Credentials, JobRequest

OPTIONS: tuple[Option, ...] = (
    Option((), "e"),
    Option((), "l"),
    Option((), "r"),
    Option((), "u", Argument.REQUIRED),
    Option((), "v", status=Status.ACCEPTED, note="there is nothing more to tell"),
)

HELP_TEXTS: Mapping[str, str] = {
    "e": "edit the table (what happens where standard input is a terminal)",
    "l": "list the table",
    "r": "remove the table",
    "u": "another user's table",
}

NOT_IN_TABLES = frozenset(
    """
    array batch bb bbf begin checkpoint checkpoint-dir cluster-constraint clusters export-file external get-user-env gid help
    hold ignore-pbs input kill-on-invalid-dep no-requeue parsable power prefer propagate requeue share test-only uid usage
    version wait wait-all-nodes workdir wrap
    """.split()  # noqa: SIM905
)
"""sbatch's options that make no sense in a table."""

WELCOME = """\
# A line of this table submits a job again and again: five fields tell when (minute, hour, day of the month, month, day of
# the week), or @hourly, @daily, @weekly, @monthly or @yearly; the rest is a shell command. Lines before it that begin with
# #SCRON give it options of sbatch. For example, without the # in front of the last line:
#
##SCRON --time=5
#0 6 * * 1 $HOME/report.sh
"""

EDIT = """\
umask 077
file=$(mktemp "${TMPDIR:-/tmp}/scrontab-XXXXXX") || exit 1
trap 'rm -f "$file"' EXIT
printf %s "$SLURMK_CRONTAB" >"$file"
unset SLURMK_CRONTAB
while :; do
  ${VISUAL:-${EDITOR:-vi}} "$file" || { echo "scrontab: fatal: editor returned non-zero exit code" >&2; exit 1; }
  scrontab "$@" "$file" && exit 0
  printf 'Do you want to retry the edit? (y/n) '
  read -r answer || exit 1
  case $answer in [yY]*) ;; *) exit 1 ;; esac
done
"""
"""What edits a table where the user is; its arguments are the options that name another user."""

MOST_WORDS = 500
"""Words of the #SCRON lines of one entry."""

NULL = "(null)"
NO_SESSION = 0xFFFFFFFE


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose table it is."""

    user_id: int
    group_id: int
    name: str
    home: str


@dataclass(frozen=True, slots=True)
class _Job:
    """An entry as it will be submitted."""

    entry: CronEntry
    request: JobRequest
    files: JobFiles


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Answer one scrontab; gives the exit code."""
    try:
        given, operands = parse_arguments("scrontab", OPTIONS, call.arguments)
    except GrammarError:
        output.error(usage())
        return 1
    if len(operands) > 1:
        output.error(usage())
        return 1
    return await _answer(call, controller, output, given, operands)


async def _answer(call: Call, controller: Controller, output: Output, given: Sequence[Given], operands: Sequence[str]) -> int:
    asked = {one.name: one.value or "" for one in given}
    terminal = "0" in call.terminals
    if "e" in asked and not terminal:
        raise _fatal("Standard input is not a TTY")
    parameters = controller.machine.site.parameters.get("ScronParameters", "").lower().replace(" ", "").split(",")
    if "enable" not in parameters:
        raise _fatal("scrontab is disabled on this cluster")
    owner = _owner(call, asked.get("u"))
    if "l" in asked or "r" in asked:
        if "l" in asked:
            _list(call, controller, output, owner)
        if "r" in asked:
            await _remove(call, controller, owner)
        return 0
    if "e" in asked or (not operands and terminal):
        _edit(call, controller, output, owner, asked)
        return 0
    await _install(call, controller, output, owner, await _read(output, operands))
    return 0


def usage() -> str:
    """How it is called; it has no long options and no --help."""
    lines = "".join(f"\t-{letter}\t{text}\n" for letter, text in HELP_TEXTS.items())
    return f"usage:\tscrontab [-u user] file\n\tscrontab [-u user] [ -e | -l | -r | -v]\n{lines}"


def _fatal(text: str) -> Failure:
    return Failure(f"scrontab: fatal: {text}\n")


def _owner(call: Call, named: str | None) -> _Owner:
    try:
        if named is None:
            account = pwd.getpwuid(call.caller.user_id)
        else:
            account = pwd.getpwuid(int(named)) if named.isascii() and named.isdigit() else pwd.getpwnam(named)
    except (KeyError, OverflowError, ValueError):
        raise _fatal(f"Could not find user {named or call.caller.user_id}") from None
    return _Owner(account.pw_uid, account.pw_gid, account.pw_name, account.pw_dir)


def _may_see(call: Call, owner: _Owner) -> None:
    if owner.user_id != call.caller.user_id and not call.caller.operator:
        raise _fatal(f"slurm_request_crontab failed: {SlurmError(Errno.USER_ID_MISSING)}")


def _list(call: Call, controller: Controller, output: Output, owner: _Owner) -> None:
    _may_see(call, owner)
    text = controller.crontabs.listing(owner.user_id, controller.machine.jobs)
    if text is None:
        raise Failure(f"no crontab for {owner.name}\n")
    output.write(text)


def _edit(call: Call, controller: Controller, output: Output, owner: _Owner, asked: Mapping[str, str]) -> None:
    _may_see(call, owner)
    text = controller.crontabs.listing(owner.user_id, controller.machine.jobs)
    words = ["-u", asked["u"]] if "u" in asked else []
    environment = dict(call.environment) | {"SLURMK_CRONTAB": WELCOME if text is None else text}
    output.execute(["/bin/sh", "-c", EDIT, "scrontab", *words], environment)


async def _read(output: Output, operands: Sequence[str]) -> str:
    """The new table's text: of a file, or of standard input."""
    name = operands[0] if operands else "-"
    try:
        content = await (output.read_input(LARGEST_TABLE + 1) if name == "-" else output.read(name, LARGEST_TABLE + 1))
    except Unreadable:
        raise _fatal(f"failed to open {name}") from None
    return content.decode("utf-8", "surrogateescape")


# ------------------------------------------------------------------------------------------------- a new table


async def _install(call: Call, controller: Controller, output: Output, owner: _Owner, text: str) -> None:
    try:
        jobs = await asyncio.to_thread(_jobs, call, controller.now(), owner, text)
    except CrontabError as error:
        raise Failure(
            "".join(f"scrontab: error: {line}\n" for line in error.said) + "There are errors in your crontab.\n"
        ) from None
    if owner.user_id != call.caller.user_id and not call.caller.operator:
        raise _not_submitted(SlurmError(Errno.USER_ID_MISSING))
    for job in jobs:
        await _submit(call, controller, owner, job, only_try=True)
    entries_kept = []
    try:
        for job in jobs:
            job_id = await _submit(call, controller, owner, job)
            entries_kept.append(Entry(job_id, job.entry.first, job.entry.last))
    except Failure:
        await _end(call, controller, [entry.job_id for entry in entries_kept])
        raise
    await _replace(call, controller, owner, Table(text, tuple(entries_kept)))


async def _remove(call: Call, controller: Controller, owner: _Owner) -> None:
    if owner.user_id != call.caller.user_id and not call.caller.operator:
        raise _fatal(f"slurm_remove_crontab failed: {SlurmError(Errno.USER_ID_MISSING)}")
    await _replace(call, controller, owner, None)


async def _replace(call: Call, controller: Controller, owner: _Owner, table: Table | None) -> None:
    """Have this table on disk, then end the jobs of the one before; where that fails, those of the new one."""
    tables = controller.crontabs.tables
    before = tables.pop(owner.user_id, None)
    if table is not None and table.text:
        tables[owner.user_id] = table
    try:
        controller.save_crontabs()
    except OSError as error:
        tables.pop(owner.user_id, None)
        if before is not None:
            tables[owner.user_id] = before
        await _end(call, controller, [entry.job_id for entry in table.entries] if table else ())
        raise _fatal(f"the table cannot be saved: {error.strerror}") from None
    await _end(call, controller, [entry.job_id for entry in before.entries] if before else ())


async def _end(call: Call, controller: Controller, job_ids: Sequence[int]) -> None:
    if job_ids:
        await controller.apply(EndRecurrence(controller.now(), call.caller, tuple(job_ids)))


def _jobs(call: Call, now: float, owner: _Owner, text: str) -> list[_Job]:
    """All that a table submits. Raises CrontabError and Failure."""
    return [_job(call, now, owner, entry) for entry in parse_table(text)]


def _job(call: Call, now: float, owner: _Owner, entry: CronEntry) -> _Job:
    """What an entry submits. Raises CrontabError for options that cannot be taken, Failure for those that end the command."""
    options = Options()
    for one in _given(entry):
        row = one.option
        assert isinstance(row, SubmissionOption)
        try:
            options.take(row, row.read(one.value, Reading("sbatch", row.name, now)), "script", one.value)
        except OptionError as error:
            lines = _lines(error)
            if error.code == 1:
                raise Failure("".join(f"{line}\n" for line in lines)) from None
            joined = f"--{row.name}={one.value}"
            word = joined if joined in entry.words else one.value or joined
            said = [line.removeprefix("scrontab: error: ") for line in lines]
            raise CrontabError(*said, _invalid(word), first=entry.first, last=entry.last) from None
    options.values.setdefault("name", entry.command.split()[0])
    try:
        checked = request_of("sbatch", options, replace(call, directory=owner.home))
    except OptionError as error:
        raise Failure("".join(f"{line}\n" for line in _lines(error))) from None
    request = replace(
        checked.request, crontab=str(entry.spec), begin_time=entry.spec.next_time(int(now)), get_user_env="1", requeue=True
    )
    environment = {as_bytes(name): as_bytes(value) for name, value in option_variables(request, options).items()}
    return _Job(entry, request, JobFiles(_script(entry), (), environment, b""))


def _script(entry: CronEntry) -> bytes:
    lines = ("#!/bin/sh", "# This job was submitted through scrontab", *entry.options)
    return as_bytes("\n".join((*lines, f"# crontab time request was: '{entry.times}'", entry.command, "")))


def _lines(error: OptionError) -> list[str]:
    return [line.replace("sbatch: ", "scrontab: ", 1) for line in error.lines]


def _invalid(word: str) -> str:
    return f"Invalid option found in #SCRON line: {word}"


def _given(entry: CronEntry) -> Sequence[Given]:
    """The options of an entry's #SCRON lines. Raises CrontabError that names the first word that is none."""
    rows = [row for row in options_of("sbatch") if row.name not in NOT_IN_TABLES and not row.name.startswith("container-")]
    rows += [row for row in options_of("sbatch") if row.name in ("container-id", "container-type")]
    if len(entry.words) > MOST_WORDS:
        raise CrontabError("too many options", first=entry.first, last=entry.last)
    given = _parsed(rows, entry.words)
    if given is not None:
        return given
    taken = max(count for count in range(len(entry.words)) if _parsed(rows, entry.words[:count]) is not None)
    raise CrontabError(_invalid(entry.words[taken]), first=entry.first, last=entry.last)


def _parsed(rows: Sequence[SubmissionOption], words: Sequence[str]) -> Sequence[Given] | None:
    try:
        given, operands = parse_arguments("sbatch", rows, words, stop_at_operand=True, places=PLACES)
    except GrammarError:
        return None
    return None if operands else given


# ------------------------------------------------------------------------------------------------- submitting


async def _submit(call: Call, controller: Controller, owner: _Owner, job: _Job, *, only_try: bool = False) -> int:
    """Submit an entry's job, or see whether it would be taken. Gives its id. Raises Failure."""
    submission = Submission(
        request=job.request,
        credentials=Credentials(owner.user_id, owner.group_id, owner.name, ""),
        batch=True,
        command="",
        submit_line="",
        submit_host=call.host,
        session_id=NO_SESSION,
    )
    event = Submit(controller.now(), call.caller, (submission,), will_run_only=only_try)
    for answer in await controller.apply(event, () if only_try else (job.files,)):
        if isinstance(answer, Refused):
            raise _not_submitted(answer.error, job.entry, answer.notices)
        if isinstance(answer, Accepted) and answer.job_ids:
            return answer.job_ids[0]
    return 0


def _not_submitted(error: SlurmError, entry: CronEntry | None = None, notices: Sequence[str] = ()) -> Failure:
    lines = NULL if entry is None else f"{entry.first + 1}-{entry.last + 1}"
    return Failure(
        f"There was an issue with the job submission on lines {lines}\n"
        f"The error code return was: {error}\n"
        f"The error message was: {notices[0] if notices else NULL}\n"
    )
