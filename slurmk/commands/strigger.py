"""strigger: have programs run when something happens to jobs or nodes (strigger(1)).

Only operators set and clear triggers; the programs run as them, where the controller is.
"""

from __future__ import annotations

import errno
import pwd
from collections.abc import Mapping, Sequence

from grammar.arguments import Argument, Given, Option, Status
from grammar.errors import GrammarError
from grammar.hostlist import compress, expand
from grammar.sluid import typed_sluid
from slurmk.commands.call import Call, Controller, Failure, Output, Unreadable
from slurmk.commands.frame import CLUSTER, HELP, USAGE, VERSION, check_cluster, early_answer, read_options
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.selection import number_of
from slurmk.core.triggers import ANY, Trigger

_VALUE, _MAYBE = Argument.REQUIRED, Argument.OPTIONAL
_NO_BACKUP = "there is no backup controller: never happens"
_NO_DATABASE = "there is no slurmdbd: never happens"
_NOT_SEEN = "a controller that fails cannot tell: never happens"

KINDS: Mapping[str, tuple[str, str, str]] = {
    "burst_buffer": ("", "node", "there are no burst buffers: never happens"),
    "primary_slurmctld_failure": ("a", "slurmctld", _NOT_SEEN),
    "primary_slurmctld_resumed_operation": ("A", "slurmctld", ""),
    "primary_slurmctld_resumed_control": ("b", "slurmctld", _NO_BACKUP),
    "backup_slurmctld_failure": ("B", "slurmctld", _NO_BACKUP),
    "backup_slurmctld_resumed_operation": ("c", "slurmctld", _NO_BACKUP),
    "backup_slurmctld_assumed_control": ("C", "slurmctld", _NO_BACKUP),
    "down": ("d", "node", ""),
    "drained": ("D", "node", ""),
    "draining": ("", "node", ""),
    "primary_slurmctld_acct_buffer_full": ("e", "slurmctld", _NO_DATABASE),
    "fail": ("F", "node", ""),
    "fini": ("f", "job", ""),
    "primary_slurmdbd_failure": ("g", "slurmdbd", _NO_DATABASE),
    "primary_slurmdbd_resumed_operation": ("G", "slurmdbd", _NO_DATABASE),
    "primary_database_failure": ("h", "database", _NO_DATABASE),
    "primary_database_resumed_operation": ("H", "database", _NO_DATABASE),
    "idle": ("I", "node", ""),
    "reconfig": ("r", "node", ""),
    "resume": ("R", "node", ""),
    "time": ("t", "job", ""),
    "up": ("u", "node", ""),
}
"""An event to its letter, what it happens to, and why it never does here."""

OPTIONS: tuple[Option, ...] = (
    *(
        Option((name,), letter, status=Status.ACCEPTED if note else Status.HONOURED, note=note)
        for name, (letter, _, note) in KINDS.items()
    ),
    Option(("clear",)),
    CLUSTER,
    Option(("flags",), argument=_VALUE),
    Option(("get",)),
    HELP,
    Option(("id",), "i", _VALUE),
    Option(("jobid",), "j", _VALUE),
    Option(("node",), "n", _MAYBE),
    Option(("noheader",), "N"),
    Option(("offset",), "o", _VALUE),
    Option(("program",), "p", _VALUE),
    Option(("quiet",), "Q"),
    Option(("set",)),
    USAGE,
    Option(("user",), argument=_VALUE),
    Option(("verbose",), "v"),
    VERSION,
)

HELP_TEXTS: Mapping[str, str] = {
    "clear": "delete a trigger, or several",
    "flags": "perm: keep the trigger after it went off",
    "get": "get trigger information",
    "id": "the trigger of this number",
    "jobid": "about this job",
    "node": "about these nodes, or any",
    "noheader": "no heading",
    "offset": "seconds after the event, or before it",
    "program": "what to run",
    "quiet": "tell less",
    "set": "create a trigger",
    "user": "triggers of this user",
    "verbose": "print detailed messages",
    "down": "a node went down",
    "drained": "a node is drained",
    "draining": "a node is being drained",
    "fail": "a node is failing",
    "fini": "the job is over",
    "idle": "a node is idle",
    "reconfig": "the configuration was read again",
    "resume": "a node is in service again",
    "time": "the job's time limit comes",
    "up": "a node came back",
    "primary_slurmctld_resumed_operation": "the controller was started",
}

USAGE_TEXT = "[--set | --get | --clear | --version] [-aAbBcCdDefFgGhHiIjnNopQrtuv]"
SEVERAL = "unknown"
"""How a trigger for several events is listed."""

_NO_SUCH = "No such process"


def _failure(text: str) -> Failure:
    return Failure(f"strigger: error: {text}\n")


async def run(call: Call, controller: Controller, output: Output) -> int:
    """Set, list or clear triggers; gives the exit code."""
    given, _ = read_options(call, OPTIONS)
    if (answer := early_answer(call, given, OPTIONS, HELP_TEXTS, USAGE_TEXT)) is not None:
        output.write(answer)
        return 0
    check_cluster(call, given, controller.machine.site)
    values = {one.name: one.value or "" for one in given}
    chosen = [name for name in ("set", "get", "clear") if name in values]
    if len(chosen) != 1:
        raise _failure("You must use exactly one of the following options: --set, --get or --clear")
    if sluid := typed_sluid(values.get("jobid", "")):
        values["jobid"] = str(number_of(sluid, controller.machine.jobs.values()))
    wanted = _Wanted(values, given)
    if chosen == ["set"]:
        return await _set(call, controller, output, wanted)
    if chosen == ["clear"]:
        return _clear(call, controller, wanted)
    return _get(controller, output, wanted)


class _Wanted:
    """The options, with their values understood. Raises Failure."""

    def __init__(self, values: Mapping[str, str], given: Sequence[Given]) -> None:
        self.values = values
        self.kinds = tuple(name for name in KINDS if name in values)
        self.job_id = _number(values, "jobid")
        self.number = _number(values, "id")
        self.user_id = _user(values["user"]) if "user" in values else None
        self.node = "node" in values
        self.permanent = _permanent(values.get("flags", ""))
        if self.job_id is None and {"fini", "time"} & set(self.kinds):
            raise _failure("You must specify a --jobid value")

    @property
    def resource(self) -> str:
        if self.job_id is not None:
            return "job"
        return next((KINDS[kind][1] for kind in self.kinds if KINDS[kind][1] != "job"), "node")


def _number(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 11 and int(text)):
        raise _failure(f"Invalid {name} {text}")
    return int(text)


def _user(name: str) -> int:
    try:
        return int(name) if name.isascii() and name.isdigit() and len(name) < 11 else pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        raise _failure(f"Invalid user {name}") from None


def _permanent(text: str) -> bool:
    for word in filter(None, text.split(",")):
        if word.lower() not in ("perm", "permanent"):
            raise _failure(f"Invalid flags {text}")
    return bool(text)


def _offset(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    return sign * int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else 0


def _refused(what: str, errno: Errno) -> Failure:
    return Failure(f"{what}: {SlurmError(errno)}\n")


async def _is_missing(path: str, output: Output) -> bool:
    try:
        await output.read(path, 1)
    except Unreadable as error:
        return error.errno in (errno.ENOENT, errno.ENOTDIR)
    return False


async def _set(call: Call, controller: Controller, output: Output, wanted: _Wanted) -> int:
    if not wanted.kinds:
        raise _failure("You must specify a trigger")
    program = wanted.values.get("program")
    if not program:
        raise _failure("You must specify a --program value")
    if not program.startswith("/"):
        raise _failure('The --program value must start with "/"')
    if await _is_missing(program.split()[0], output):
        raise _failure("Invalid --program value, file not found")
    if not call.caller.operator:
        raise _refused("slurm_set_trigger", Errno.ACCESS_DENIED)
    triggers = controller.triggers
    trigger = Trigger(
        number=triggers.next_number,
        resource=wanted.resource,
        of=_of(controller, wanted),
        kinds=wanted.kinds,
        offset=_offset(wanted.values.get("offset", "0")),
        user_id=call.caller.user_id,
        user_name=call.caller.user_name,
        program=program[:4096],
        permanent=wanted.permanent,
    )
    triggers.remember(controller.machine)
    triggers.add(trigger)
    return _save(controller, "slurm_set_trigger")


def _of(controller: Controller, wanted: _Wanted) -> str:
    """What the trigger is about. Raises Failure."""
    if wanted.job_id is not None:
        job = controller.machine.jobs.get(wanted.job_id)
        if job is None or job.state.finished:
            raise _refused("slurm_set_trigger", Errno.INVALID_JOB_ID)
        return str(wanted.job_id)
    text = wanted.values.get("node", "")
    if wanted.resource != "node" or not text:
        return ANY
    try:
        names = expand(text)
    except GrammarError:
        raise _refused("slurm_set_trigger", Errno.INVALID_NODE_NAME) from None
    if not set(names) <= controller.machine.nodes.keys():
        raise _refused("slurm_set_trigger", Errno.INVALID_NODE_NAME)
    return text if "[" not in text else compress(names)


def _save(controller: Controller, what: str) -> int:
    try:
        controller.save_triggers()
    except OSError as error:
        raise Failure(f"{what}: {error.strerror}\n") from None
    return 0


def _clear(call: Call, controller: Controller, wanted: _Wanted) -> int:
    if wanted.number is None and wanted.job_id is None and wanted.user_id is None:
        raise _failure("You must specify a --id, --jobid, or --user to clear")

    def gone(trigger: Trigger) -> bool:
        return (
            wanted.number in (None, trigger.number)
            and (wanted.job_id is None or (trigger.resource == "job" and trigger.of == str(wanted.job_id)))
            and wanted.user_id in (None, trigger.user_id)
        )

    if not any(map(gone, controller.triggers.rows)):
        if "quiet" in wanted.values:
            return 0
        raise Failure(f"slurm_clear_trigger: {_NO_SUCH}\n")
    if not call.caller.operator:
        raise _refused("slurm_clear_trigger", Errno.ACCESS_DENIED)
    controller.triggers.remove(gone)
    return _save(controller, "slurm_clear_trigger")


def _get(controller: Controller, output: Output, wanted: _Wanted) -> int:
    rows = [trigger for trigger in controller.triggers.rows if _shown(trigger, wanted)]
    if "verbose" in wanted.values:
        output.error(f"strigger: Read {len(controller.triggers.rows)} trigger records\n")
    if rows and "noheader" not in wanted.values:
        output.write(_line("TRIG_ID", "RES_TYPE", "RES_ID", "TYPE", "OFFSET", "USER", "FLAGS", "PROGRAM"))
    for trigger in rows:
        kind = trigger.kinds[0] if len(trigger.kinds) == 1 else SEVERAL
        flags = "PERM" if trigger.permanent else ""
        output.write(
            _line(trigger.number, trigger.resource, trigger.of, kind, trigger.offset, trigger.user_name, flags, trigger.program)
        )
    return 0


def _shown(trigger: Trigger, wanted: _Wanted) -> bool:
    named = wanted.values.get("node", "")
    of_node = trigger.resource == "node" and (not named or trigger.of == ANY or bool(_names(named) & trigger.nodes))
    return (
        wanted.number in (None, trigger.number)
        and (wanted.job_id is None or (trigger.resource == "job" and trigger.of == str(wanted.job_id)))
        and wanted.user_id in (None, trigger.user_id)
        and (not wanted.node or of_node)
        and (not wanted.kinds or wanted.kinds == trigger.kinds)
    )


def _names(text: str) -> set[str]:
    try:
        return set(expand(text))
    except GrammarError:
        return set()


def _line(number: object, resource: str, of: str, kind: str, offset: object, user: str, flags: str, program: str) -> str:
    return f"{number!s:>7} {resource:<9}{of:>8} {kind:<35} {offset!s:>6} {user:<8} {flags:<5} {program}\n"
