"""scontrol: see and change what the controller knows (scontrol(1)).

Keywords are a table; each may be shortened to the letters its row asks for, in any case. Without a keyword, commands
are read from standard input, one a line.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from accounting.store import StoreError
from grammar.arguments import Argument, Option, Status, parse_arguments
from grammar.errors import GrammarError
from grammar.sluid import typed_sluid
from slurmk.commands import scontrol_node, scontrol_partition, scontrol_reservation, scontrol_update
from slurmk.commands import scontrol_verbs as verbs
from slurmk.commands.call import VERSION_TEXT, Call, Controller, Output, Unreadable
from slurmk.commands.command_help import help_text
from slurmk.commands.documents.envelope import Wanted
from slurmk.commands.documents.printing import UnknownForm, form
from slurmk.commands.job_text import date_text, node_list
from slurmk.commands.scontrol_documents import ping as ping_document
from slurmk.commands.scontrol_documents import show as show_document
from slurmk.commands.scontrol_job import show_job, show_step
from slurmk.commands.scontrol_keys import Failure, abbreviates
from slurmk.commands.written_configuration import written_configuration
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import MESSAGES, Errno, SlurmError
from slurmk.core.events import Event, Hold, JobSelection, Requeue, Suspend
from slurmk.core.selection import name_of, parse, parse_step
from slurmk.model.job import Job
from slurmk.model.states import JobFlag, JobState

OPTIONS: tuple[Option, ...] = (
    Option(("all",), "a"),
    Option(("cluster", "clusters"), "M", Argument.REQUIRED, status=Status.ACCEPTED, note="there is one cluster"),
    Option(("details",), "d"),
    Option(("federation",), status=Status.ACCEPTED, note="there are no federations"),
    Option(("future",), "F"),
    Option(("help",), "h"),
    Option(("hide",)),
    Option(("json",), argument=Argument.OPTIONAL),
    Option(("local",), status=Status.ACCEPTED, note="there are no federations"),
    Option(("oneliner",), "o"),
    Option(("quiet",), "Q"),
    Option(("sibling",), status=Status.ACCEPTED, note="there are no federations"),
    Option(("uid",), "u", Argument.REQUIRED),
    Option(("usage",)),
    Option(("verbose",), "v"),
    Option(("version",), "V"),
    Option(("yaml",), argument=Argument.OPTIONAL),
)

HELP: Mapping[str, str] = {
    "all": "also hidden partitions",
    "details": "more of each record",
    "future": "also nodes that do not exist yet",
    "hide": "no hidden partitions",
    "oneliner": "a line for each record",
    "uid": "update jobs as this user",
}

INPUT_LIMIT = 1 << 20
"""Bytes of commands that are read from standard input."""

WRITTEN_SCRIPT = 1 << 20
"""Bytes of a batch script that can be handed over to be written to a file."""

_ARGUMENT = 100_000
"""Bytes of one argument that a program can be started with (Linux: 128 KiB)."""


@dataclass(slots=True)
class Session:
    """One scontrol: who calls, and the switches that commands may set."""

    call: Call
    controller: Controller
    output: Output
    details: bool = False
    one_line: bool = False
    quiet: bool = False
    verbose: bool = False
    show_all: bool = False
    future: bool = False
    ended: bool = field(default=False)
    user_id: int | None = None  # who jobs are updated as (--uid)
    form: Wanted | None = None  # --json, --yaml
    unknown_form: UnknownForm | None = None  # they name what there is not: an error of what would have a document

    def say(self, text: str) -> int:
        """A message on standard error, unless quiet; gives exit code 1."""
        if not self.quiet:
            self.output.error(text)
        return 1

    def insist(self, text: str) -> int:
        """A message on standard error even when quiet; gives exit code 1."""
        self.output.error(text)
        return 1


Command = Callable[[Session, Sequence[str]], Awaitable[int]]


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Answer one scontrol. The exit code is 1 after any error."""
    try:
        words = list(call.arguments)
        flags = next((place for place, word in enumerate(words) if word.lower().startswith("setdebugf")), len(words))
        given, operands = parse_arguments("scontrol", OPTIONS, words[:flags])
        operands = [*operands, *words[flags:]]  # -backfill is a flag there, and no options
    except GrammarError as error:
        output.error(f'{error}\nTry "scontrol --help" for more information\n')
        return 1
    session = Session(call, controller, output, show_all="SCONTROL_ALL" in call.environment)
    for option in given:
        name = option.name
        if name in ("help", "usage"):
            output.write(_help())
            return 0
        if name == "version":
            return await _version(session, ())
        if name == "cluster" and (code := await verbs.cluster(session, [option.value or ""])):
            return code
        if name == "uid":
            user = scontrol_update.user_id(option.value or "")
            if user is None:
                output.error(f'scontrol: error: --uid="{option.value}" invalid\n')
                return 0
            session.user_id = user
        attribute = _SWITCHES.get(name)
        if attribute is not None:
            setattr(session, *attribute)
    try:
        session.form = form(call, given, output)
    except UnknownForm as error:
        session.unknown_form = error
    return await (execute(session, operands) if operands else _interactive(session))


_SWITCHES: dict[str, tuple[str, bool]] = {
    "all": ("show_all", True),
    "hide": ("show_all", False),
    "details": ("details", True),
    "future": ("future", True),
    "oneliner": ("one_line", True),
    "quiet": ("quiet", True),
    "verbose": ("verbose", True),
}


def _help() -> str:
    words = "".join(f"     {' '.join((keyword.name, *OPERANDS.get(keyword.name, ())))}\n" for keyword in KEYWORDS)
    return help_text("scontrol", OPTIONS, HELP) + f"    Valid <COMMAND> values are:\n{words}"


async def _interactive(session: Session) -> int:
    """Commands from standard input, each shown behind the prompt, as a terminal would show them."""
    output = session.output
    try:
        text = (await output.read_input(INPUT_LIMIT)).decode(errors="surrogateescape")
    except Unreadable as error:
        output.error(f"scontrol: error: standard input: {error.text}\n")
        return 1
    code = 0
    last: list[str] = []
    lines = text.split("\n")
    for position, line in enumerate(lines, 1):
        output.write(f"scontrol: {line}\n")
        if not line and position == len(lines):
            break
        words = last if line == "!!" else _words(line)
        last = words
        if words:
            code = await execute(session, words) or code
        else:
            code = 1
        if session.ended:
            break
        await output.drain()
    return code


def _words(line: str) -> list[str]:
    """A line at its blanks, but for those within quotes; the quotes stay. A quote that begins a word is not looked at, as in
    Slurm, so that ``comment="a b"`` is one word and ``"a b"`` is two."""
    words: list[str] = []
    quote = ""
    inside = False
    for letter in line:
        if letter.isspace() and not quote:
            inside = False
        elif not inside:
            words.append(letter)
            inside = True
        else:
            if letter in "\"'":
                quote = "" if quote == letter else quote or letter
            words[-1] += letter
    return words


async def execute(session: Session, words: Sequence[str]) -> int:
    """One command."""
    typed, arguments = words[0], list(words[1:])
    keyword = find_keyword(typed)
    if keyword is None:
        return session.insist(f"invalid keyword: {typed}\n")
    if len(arguments) < keyword.least:
        return session.say(f"too few arguments for keyword:{typed}\n")
    if keyword.most is None or len(arguments) <= keyword.most:
        return await keyword.run(session, arguments)
    if keyword.done_anyway:
        await keyword.run(session, arguments[: keyword.most])
    text = (
        "too many arguments for {} keyword\n"
        if keyword.name in ("verbose", "version")
        else "too many arguments for keyword:{}\n"
    )
    return session.insist(text.format(typed))


@dataclass(frozen=True, slots=True)
class Keyword:
    """A command of scontrol: the least letters of its name, and the least and most arguments; some are done even with too
    many."""

    name: str
    shortest: int
    run: Command
    least: int = 0
    most: int | None = None
    done_anyway: bool = False


def find_keyword(typed: str) -> Keyword | None:
    """The keyword typed, perhaps shortened."""
    lower = typed.lower()
    return next((each for each in KEYWORDS if len(lower) >= each.shortest and each.name.startswith(lower)), None)


# ---------------------------------------------------------------------------------------------- show


async def _show(session: Session, arguments: Sequence[str]) -> int:
    word, equals, value = arguments[0].partition("=")
    entity = word.lower()
    if len(arguments) > 2 and not any(entity and each.startswith(entity) for each in _MANY_WORDS):
        return session.say("too many arguments for keyword:show\n")
    if (entity and ("jobs".startswith(entity) or "jobid".startswith(entity))) or (
        len(entity) >= 2 and "steps".startswith(entity)
    ):
        name = value if equals else next(iter(arguments[1:]), None)
        code = await show_document(session, entity, name)
        if code is not None:
            return code
        call, controller, output = session.call, session.controller, session.output
        if entity.startswith("j"):
            return await show_job(
                name, call, controller, output, details=session.details, one_line=session.one_line, quiet=session.quiet
            )
        return await show_step(name, call, controller, output, details=session.details, one_line=session.one_line)
    return await _show_other(session, arguments)


_MANY_WORDS = ("assoc_mgr", "bbstat", "cache", "dwstat", "topology")
"""What is shown with more than a name."""


async def _show_other(session: Session, arguments: Sequence[str]) -> int:
    """Nodes, partitions, configuration …: a module of their own."""
    try:
        module = importlib.import_module("slurmk.commands.scontrol_show")
    except ImportError:
        return session.say(f"invalid entity:{arguments[0]} for keyword:show\n")
    word, _, value = arguments[0].partition("=")
    code = await show_document(session, word.lower(), value or next(iter(arguments[1:]), None))
    if code is not None:
        return code
    return int(await module.show(session, arguments))


# ---------------------------------------------------------------------------------------------- jobs


def _names(arguments: Iterable[str]) -> list[str]:
    return [word for argument in arguments for word in scontrol_update.split_ids(scontrol_update.bare_ids(argument))]


async def _act(
    session: Session, names: Sequence[str], event: Callable[[tuple[JobSelection, ...]], Event]
) -> list[tuple[str, Refused]]:
    """Send the event for every name; the refusals in the order of the names."""
    good: dict[str, JobSelection] = {}
    refusals: list[tuple[str, Refused]] = []
    for name in names:
        try:
            good[name] = _selection(session, name)
        except SlurmError as error:
            refusals.append((name, Refused(error, name)))
    if good:
        typed = {name_of(selection): name for name, selection in good.items()}
        for answer in await session.controller.apply(event(tuple(good.values()))):
            if isinstance(answer, Refused):
                refusals.append((typed.get(answer.subject, answer.subject), answer))
            else:
                _notices(session, answer)
    order = {name: position for position, name in enumerate(names)}
    return sorted(refusals, key=lambda refusal: order.get(refusal[0], 0))


def _selection(session: Session, name: str) -> JobSelection:
    """Jobs as typed; a step is none. Raises SlurmError."""
    selection = parse(name, session.controller.machine.jobs.values())
    if selection.step_id is not None:
        raise SlurmError(Errno.INVALID_JOB_ID)
    return selection


def _notices(session: Session, answer: Accepted) -> None:
    for notice in answer.notices:
        session.say(f"{notice}\n")


def _holding(release: bool, by_user: bool) -> Command:
    async def run_hold(session: Session, arguments: Sequence[str]) -> int:
        code = 0
        for argument in arguments:
            key, equals, wanted = argument.partition("=")
            if equals and key.lower() in ("jobname", "name"):
                found = scontrol_update.jobs_named(session.controller, session.call, wanted)
                names = [scontrol_update.own_name(job) for job in found]
            else:
                names = scontrol_update.split_ids(scontrol_update.bare_ids(argument))
            if names and names != [""]:
                code = await _hold(session, names, release, by_user) or code
        return code

    return run_hold


async def _hold(session: Session, names: Sequence[str], release: bool, by_user: bool) -> int:
    caller, now = session.call.caller, session.controller.now()
    refusals = await _act(session, names, lambda selections: Hold(now, caller, selections, release=release, user_hold=by_user))
    for name, refused in refusals:
        session.say(scontrol_update.refusal_lines(name, refused, successes=True))
    if refusals and not refusals[-1][1].elements:
        session.say(f"slurm_suspend error:{refusals[-1][1].error}\n")
    return 1 if refusals else 0


async def _tell(session: Session, names: Sequence[str], event: Callable[[tuple[JobSelection, ...]], Event]) -> int:
    refusals = await _act(session, names, event)
    for name, refused in refusals:
        session.say(scontrol_update.refusal_lines(name, refused, successes=True))
    return 1 if refusals else 0


def _requeueing(hold: bool) -> Command:
    async def run_requeue(session: Session, arguments: Sequence[str]) -> int:
        words = list(arguments)
        special = incomplete = False
        while words and ((to_special := _is_special_exit(words[0])) or "incomplete".startswith(words[0].lower() or "-")):
            special, incomplete = special or to_special, incomplete or not to_special
            del words[0]
        caller, now = session.call.caller, session.controller.now()
        settings = {"hold": hold, "special_exit": special, "incomplete": incomplete}
        return await _tell(session, _names(words), lambda selections: Requeue(now, caller, selections, **settings))

    return run_requeue


def _is_special_exit(word: str) -> bool:
    return word.lower().startswith(("state=specialexit", "state=se"))


def _suspending(resume: bool) -> Command:
    async def run_suspend(session: Session, arguments: Sequence[str]) -> int:
        caller, now = session.call.caller, session.controller.now()
        refusals = await _act(session, _names(arguments), lambda selections: Suspend(now, caller, selections, resume=resume))
        for name, refused in refusals:
            named = name.replace("_", "").isdigit() or typed_sluid(name)
            unknown = refused.error.errno is Errno.INVALID_JOB_ID and named
            if unknown and not _of_known_job(session, name):  # what Slurm says of an unknown number here
                session.say(f"Unexpected message received for job {name}\n")
            else:
                session.say(scontrol_update.refusal_lines(name, refused, successes=True))
        return 1 if refusals else 0

    return run_suspend


def _of_known_job(session: Session, name: str) -> bool:
    machine = session.controller.machine
    number = parse(name, machine.jobs.values()).job_id
    return number in machine.jobs or bool(machine.jobs_of_array(number))


async def _wait_job(session: Session, arguments: Sequence[str]) -> int:
    """Returns when the job's nodes are ready."""
    name, controller, output = arguments[0], session.controller, session.output
    try:
        selection = parse(name)
    except SlurmError:
        return session.say(f"Invalid job_id {name}")
    try:
        job: Job | None = controller.machine.select(selection)[0]
    except SlurmError:
        return session.say(f"scontrol: Problem running job {name}\n")
    while job is not None and (job.pending or job.flags & JobFlag.CONFIGURING):
        job = await controller.job_changed(job.job_id)
    if job is None or job.state not in (JobState.RUNNING, JobState.SUSPENDED):
        return session.say(f"scontrol: Job {name} no longer running\n")
    output.error(f"scontrol: Nodes are ready for job {name}\n")
    return 0


async def _completing(session: Session, arguments: Sequence[str]) -> int:
    """Jobs that are ending, and where."""
    now = int(session.controller.now())
    for job in session.controller.machine.holding():
        if job.flags & JobFlag.COMPLETING and job.allocation:
            spent = max(0, now - job.end_time)
            clock = f"{spent // 3600:02}:{spent // 60 % 60:02}:{spent % 60:02}"
            end = date_text(job.end_time, "Unknown")
            nodes = node_list(job.allocation.nodes)
            session.output.write(f"JobId={job.job_id} EndTime={end} CompletingTime={clock} Nodes(COMPLETING)={nodes} \n")
    return 0


# ---------------------------------------------------------------------------------------------- batch scripts


async def _write(session: Session, arguments: Sequence[str]) -> int:
    what = arguments[0].lower()
    if what == "config":
        return _write_configuration(session, arguments[1] if len(arguments) > 1 else None)
    if what != "batch_script":
        return session.say(f"invalid write argument:{arguments[0]}\n")
    if len(arguments) < 2:
        return 0
    if len(arguments) > 3:
        return session.say("too many arguments for keyword:write\n")
    return await _write_script(session, arguments[1], arguments[2] if len(arguments) > 2 else None)


async def _write_script(session: Session, name: str, path: str | None) -> int:
    """The script of the caller's own job, or of any for operators; the exit code is 0 unless the id makes no sense."""
    machine = session.controller.machine
    try:
        selection = parse_step(name, machine.jobs.values())
    except SlurmError as error:
        return session.say(f"scontrol: fatal: Bad job/step specified: {name}: {error}\n")
    try:
        job = machine.select(selection)[0]
        if not machine.may_change(session.call.caller, job):
            raise SlurmError(Errno.USER_ID_MISSING)
        if not job.batch:
            raise SlurmError(Errno.JOB_SCRIPT_MISSING)
        script = await _script_of(session, job)
    except SlurmError as error:
        session.say(f"job script retrieval failed: {error}\n")
        return 0
    if path == "-":
        session.output.write(script)
        return 0
    target = path or f"slurm-{job.job_id}.sh"
    if len(script) > WRITTEN_SCRIPT:
        return session.say(
            f"failed to open file `{target}`: the script is too large to be handed over; write it to - instead\n"
        )
    _have_written(session, script, target, f"batch script for job {name} written to {target}")
    return 0


def _write_configuration(session: Session, path: str | None) -> int:
    """What the controller goes by, as a file of the caller's with the time behind its name."""
    now = session.controller.now()
    environment = session.call.environment
    named = path or environment.get("SLURM_CONF_OUT") or environment.get("SLURM_CONF")
    named = named or session.controller.machine.site.parameters.get("SLURM_CONF", "slurm.conf")
    target = f"{named}.{time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(now))}"
    content = written_configuration(session.controller.machine, now).encode("utf-8", "surrogateescape")
    if len(content) > WRITTEN_SCRIPT:
        return session.say(f"Could not create file {target}: it is too large to be handed over\n")
    _have_written(
        session, content, target, f"Slurm config saved to {target}", refusal="Could not create file %s: %s", mode="u=rw,go=r"
    )
    return 0


async def _script_of(session: Session, job: Job) -> bytes:
    try:
        files = await asyncio.to_thread(session.controller.store.files, job.array_job_id or job.job_id)
    except (StoreError, KeyError) as error:
        raise SlurmError(Errno.JOB_SCRIPT_MISSING) from error
    if files is None:
        raise SlurmError(Errno.JOB_SCRIPT_MISSING)
    return files.script


_WRITER = """\
target=$1; said=$2; quiet=$3; refusal=$4; mode=$5; shift 5
if [ -d "$target" ]; then why="Is a directory"
elif { for part; do printf %s "$part"; done > "$target"; } 2>/dev/null; then
  chmod "$mode" "$target"; [ "$quiet" ] || printf '%s\\n' "$said"; exit 0
elif [ ! -d "$(dirname -- "$target")" ]; then why="No such file or directory"
else why="Permission denied"
fi
printf "$refusal\\n" "$target" "$why" >&2
"""
"""Run by the caller's own process: the controller never writes where a user says."""


def _have_written(
    session: Session,
    script: bytes,
    target: str,
    said: str,
    refusal: str = "failed to open file `%s`: %s",
    mode: str = "u=rw,go=",
) -> None:
    text = script.decode(errors="surrogateescape")
    parts = [text[start : start + _ARGUMENT // 4] for start in range(0, len(text), _ARGUMENT // 4)]
    if target.startswith("-"):
        target = f"./{target}"
    arguments = ["/bin/sh", "-c", _WRITER, "scontrol", target, said, "1" if session.quiet else "", refusal, mode, *parts]
    session.output.execute(arguments, {"PATH": session.call.environment.get("PATH", os.defpath)})


# ---------------------------------------------------------------------------------------------- the controller


async def _ping(session: Session, arguments: Sequence[str]) -> int:
    if await ping_document(session):
        return 0
    session.output.write(f"Slurmctld(primary) at {os.uname().nodename} is UP\n")
    return 0


async def _version(session: Session, arguments: Sequence[str]) -> int:
    session.output.write(VERSION_TEXT + "\n" + (_API_VERSION if session.verbose else ""))
    return 0


_API_VERSION = "slurm_api_version: 2949120, 45.0.0\n"
"""What ``-v`` adds to the version: that of Slurm's library whose answers these are."""


async def _shutdown(session: Session, arguments: Sequence[str]) -> int:
    if arguments and arguments[0] not in ("slurmctld", "controller"):
        return session.say(f"invalid shutdown argument:{arguments[0]}\n")
    if not session.call.caller.operator:
        return session.say(f"slurm_shutdown error:{SlurmError(Errno.USER_ID_MISSING)}\n")
    session.controller.shutdown(end_jobs=False)
    return 0


async def _reconfigure(session: Session, arguments: Sequence[str]) -> int:
    if not session.call.caller.operator:
        return session.say(f"slurm_reconfigure error:{SlurmError(Errno.USER_ID_MISSING)}\n")
    fault = await session.controller.reconfigure(session.call.caller)
    return session.say(f"slurm_reconfigure error:{fault}\n") if fault else 0


async def _errnumstr(session: Session, arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        return session.say("one arguments required for keyword:errnumstr\n")
    if not arguments[0].isascii() or not arguments[0].isdigit() or len(arguments[0]) > 9:
        return session.say("numeric arguments required for keyword:errnumstr\n")
    number = int(arguments[0])
    known = {int(errno): text for errno, text in MESSAGES.items()} | {0: "No error"}
    session.output.write(f"{known.get(number) or os.strerror(number)}\n")
    return 0


async def _create(session: Session, arguments: Sequence[str]) -> int:
    if not arguments:
        return session.say("too few arguments for create keyword\n")
    for word in arguments:
        kind = _entity(word)
        if kind is None:
            continue
        try:
            return await _CREATED[kind](session, arguments)
        except Failure as failure:
            return session.insist(f"{failure}\n")
    return session.insist(f"scontrol: error: Invalid creation entity: {arguments[0]}\n")


async def _delete(session: Session, arguments: Sequence[str]) -> int:
    if not arguments:
        return session.say("too few arguments for delete keyword\n")
    typed = arguments[0]
    _, equals, name = typed.partition("=")
    if len(arguments) != 2 - bool(equals):
        if equals:
            return session.insist(f"Invalid deletion entity: {typed}\n")
        return session.insist("scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'\n")
    kind = _entity(typed)
    if kind is None:
        return session.insist(f"Invalid deletion entity: {typed}\n")
    return await _DELETED[kind](session, typed, name if equals else arguments[1])


def _entity(word: str) -> str | None:
    """The kind of object that a key names."""
    key = word.partition("=")[0]
    named = (("NodeName", 3, "node"), ("PartitionName", 3, "partition"), ("ReservationName", 3, "reservation"))
    return next((kind for name, shortest, kind in named if abbreviates(key, name, shortest)), None)


_CREATED: Mapping[str, Command] = {
    "node": scontrol_node.create,
    "partition": scontrol_partition.create,
    "reservation": scontrol_reservation.create,
}
_DELETED: Mapping[str, Callable[[Session, str, str], Awaitable[int]]] = {
    "node": scontrol_node.delete,
    "partition": scontrol_partition.delete,
    "reservation": scontrol_reservation.delete,
}


def _switch(attribute: str, value: bool) -> Command:
    async def run_switch(session: Session, arguments: Sequence[str]) -> int:
        setattr(session, attribute, value)
        return 0

    return run_switch


async def _loud(session: Session, arguments: Sequence[str]) -> int:
    session.quiet, session.verbose = False, True
    return 0


async def _exit(session: Session, arguments: Sequence[str]) -> int:
    session.ended = True
    return 0


async def _print_help(session: Session, arguments: Sequence[str]) -> int:
    session.output.write(_help())
    return 0


KEYWORDS: tuple[Keyword, ...] = (
    Keyword("all", 2, _switch("show_all", True)),
    Keyword("cancel_reboot", 3, verbs.cancel_reboot),
    Keyword("cluster", 2, verbs.cluster),
    Keyword("completing", 2, _completing, most=0),
    Keyword("create", 2, _create),
    Keyword("delete", 2, _delete),
    Keyword("details", 3, _switch("details", True), most=0),
    Keyword("errnumstr", 2, _errnumstr),
    Keyword("errnostr", 2, _errnumstr),
    Keyword("exit", 2, _exit, most=0, done_anyway=True),
    Keyword("fsdampeningfactor", 3, verbs.dampening_factor, least=1, most=1),
    Keyword("getaddrs", 8, verbs.addresses),
    Keyword("getent", 3, verbs.entities),
    Keyword("help", 2, _print_help, most=0, done_anyway=True),
    Keyword("hide", 2, _switch("show_all", False)),
    Keyword("hold", 4, _holding(release=False, by_user=False), least=1),
    Keyword("holdu", 5, _holding(release=False, by_user=True), least=1),
    Keyword("listjobs", 5, verbs.list_jobs, most=1),
    Keyword("listpids", 1, verbs.list_pids, most=2),
    Keyword("liststeps", 5, verbs.list_steps, most=1),
    Keyword("notify", 1, verbs.notify, least=2),
    Keyword("oneliner", 1, _switch("one_line", True), most=0, done_anyway=True),
    Keyword("pidinfo", 3, verbs.process_information, most=1),
    Keyword("ping", 3, _ping, most=0),
    Keyword("power", 2, verbs.power, least=2),
    Keyword("quiet", 4, _switch("quiet", True), most=0, done_anyway=True),
    Keyword("\\q", 2, _switch("quiet", True), most=0, done_anyway=True),
    Keyword("quit", 4, _exit, most=0, done_anyway=True),
    Keyword("reboot", 3, verbs.reboot),
    Keyword("reconfigure", 3, _reconfigure, most=1),
    Keyword("release", 3, _holding(release=True, by_user=False), least=1),
    Keyword("requeue", 3, _requeueing(hold=False), least=1),
    Keyword("requeuehold", 11, _requeueing(hold=True), least=1),
    Keyword("resume", 3, _suspending(resume=True), least=1),
    Keyword("schedloglevel", 3, verbs.schedule_log_level, least=1, most=1),
    Keyword("setdebug", 4, verbs.set_debug, least=1),
    Keyword("setdebugflags", 9, verbs.set_debug_flags, least=1),
    Keyword("show", 3, _show, least=1),
    Keyword("shutdown", 8, _shutdown, most=1),
    Keyword("suspend", 2, _suspending(resume=False), least=1),
    Keyword("takeover", 8, verbs.takeover),
    Keyword("token", 3, verbs.token),
    Keyword("top", 3, verbs.top, least=1, most=1),
    Keyword("uhold", 5, _holding(release=False, by_user=True), least=1),
    Keyword("update", 1, scontrol_update.update),
    Keyword("verbose", 4, _loud, most=0, done_anyway=True),
    Keyword("version", 4, _version, most=0, done_anyway=True),
    Keyword("wait_job", 2, _wait_job, least=1, most=1),
    Keyword("write", 5, _write, least=1),
)
"""What scontrol can be told to do."""

OPERANDS: dict[str, tuple[str, ...]] = {
    name: tuple(words.split())
    for name, _, words in (
        line.partition(" ")
        for line in """\
cancel_reboot <nodelist>
create <SPECIFICATIONS>
delete <SPECIFICATIONS>
errnumstr <ERRNO>
fsdampeningfactor <factor>
getent [<NodeName>]
hold <job_list>
holdu <job_list>
listpids <job_id<.step>>
notify <job_id> msg
pidinfo <pid>
power down|up [ASAP|FORCE] <nodelist> [Reason=<reason>]
reboot [ASAP] [FORCE] [nextstate=] [reason=] [action=] <ALL|nodelist>
release <job_list>
requeue <job_id>
requeuehold <job_id>
resume <jobid_list>
schedloglevel <level>
setdebug <level>
setdebugflags [+|-]<flag>
show <ENTITY> [<ID>]
shutdown <OPTS>
suspend <job_list>
token [lifespan=] [username=]
top <job_list>
uhold <jobid_list>
update <SPECIFICATIONS>
wait_job <job_id>
write batch_script|config <job_id> <optional filename>""".splitlines()
    )
}
"""What a keyword is followed by, as scontrol's help writes it."""
