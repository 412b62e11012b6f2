"""Programs that run before and after tasks and steps: task prolog and epilog on the nodes, srun's own where srun is.

What a task prolog prints has a meaning (srun(1)): ``export NAME=value`` and ``unset NAME`` change the task's environment,
``print TEXT`` goes to its standard output.
"""

from __future__ import annotations

import os
import signal

from slurmk.stepd import tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

    Environment = Dict[str, str]

CONTEXT = "SLURM_SCRIPT_CONTEXT"

LONGEST_SAYING = 1 << 20
"""Bytes that a task prolog may print."""

CANNOT_EXECUTE = 127

NOT_CONFIGURED = "Run command failed - configuration error"


class Failed(Exception):
    """A prolog that failed: lines for standard error, the exit code of its task, and what it had to print."""

    def __init__(self, lines: Sequence[str], code: int, printed: bytes = b"") -> None:
        super().__init__(*lines)
        self.lines = list(lines)
        self.code = code
        self.printed = printed


class TaskHook:
    """A prolog or epilog of tasks: its file, and what messages call it."""

    def __init__(self, program: str, script: str, failure: str) -> None:
        self.program = program
        self.script = script
        self.failure = failure


def task_prologs(site: Optional[str], user: Optional[str]) -> List[TaskHook]:
    """Those of slurm.conf and of --task-prolog, in the order in which they run."""
    named = ((site, "slurm task_prolog", "TaskProlog"), (user, "user task_prolog", "--task-prolog"))
    return [TaskHook(program, *words) for program, *words in named if program]


EPILOG_SECONDS = 5.0
"""How long each epilog of a task may take before it is killed."""


def task_epilogs(site: Optional[str], user: Optional[str]) -> List[TaskHook]:
    """Those of --task-epilog and of slurm.conf. The reference calls each by the other's name when it fails."""
    named = ((user, "user task_epilog", "TaskEpilog"), (site, "slurm task_epilog", "--task-epilog"))
    return [TaskHook(program, *words) for program, *words in named if program]


def run_task_prolog(hook: TaskHook, environment: Environment) -> bytes:
    """Run it as this process's user and change the task's environment as it says; what the task's output begins with.
    Raises Failed."""
    environment[CONTEXT] = "prolog_task"
    refusal = _refusal(hook)
    if refusal:
        raise Failed([refusal, _abnormal(hook, NOT_CONFIGURED), _failure(hook, 1)], 1)
    said, status = _hear(hook.program, environment)
    printed = obey(said, environment)
    if os.WIFSIGNALED(status):
        raise Failed([_abnormal(hook, ""), _failure(hook, 1)], 1, printed)
    code = os.WEXITSTATUS(status)
    if code:
        raise Failed([_failure(hook, code)], code, printed)
    return printed


def _abnormal(hook: TaskHook, reason: str) -> str:
    return "%s did not exit normally. reason: %s" % (hook.script, reason)


def _failure(hook: TaskHook, code: int) -> str:
    return "%s failed status=%d" % (hook.failure, code)


def _refusal(hook: TaskHook) -> str:
    """Why it cannot be run; empty when it can."""
    if not hook.program.startswith("/"):
        return "run_command: %s is not a fully qualified pathname (%s)" % (hook.script, hook.program)
    try:
        os.stat(hook.program)
        reason = "" if os.access(hook.program, os.X_OK) else "Permission denied"
    except OSError as error:
        reason = error.strerror or str(error)
    return "run_command: %s can not be executed (%s) %s" % (hook.script, hook.program, reason) if reason else ""


def _hear(program: str, environment: Mapping[str, str]) -> Tuple[bytes, int]:
    """What a program prints, and its wait status."""
    read, write = os.pipe()
    process = os.fork()
    if not process:
        try:
            null = os.open("/dev/null", os.O_RDWR)
            os.dup2(write, 1)
            os.dup2(null, 2)
            _execute(program, [program], environment)
        finally:
            os._exit(CANNOT_EXECUTE)
    os.close(write)
    pieces, size = [], 0
    while True:
        piece = os.read(read, 65536)
        if not piece:
            break
        size += len(piece)
        if size <= LONGEST_SAYING:
            pieces.append(piece)
    os.close(read)
    return b"".join(pieces), os.waitpid(process, 0)[1]


def obey(said: bytes, environment: Environment) -> bytes:
    """Change the environment as a task prolog's lines want; what they print."""
    printed: List[bytes] = []
    for line in said.split(b"\n"):
        word, _, rest = line.partition(b" ")
        if word == b"print":
            printed.append(rest.lstrip() + b"\n")
        elif word == b"export":
            name, equals, value = rest.lstrip().partition(b"=")
            if equals and name.strip():
                environment[os.fsdecode(name.strip())] = os.fsdecode(value)
        elif word == b"unset":
            environment.pop(os.fsdecode(rest.strip()), None)
    return b"".join(printed)


def _execute(program: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
    names = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
    os.execve(program, [os.fsencode(word) for word in argv], names)


def start_task_epilog(hook: TaskHook, plan: tasks.Plan) -> int:
    """Fork the epilog of a task that has ended, with the task's place and environment; its process."""
    process = os.fork()
    if process:
        return process
    try:
        tasks.become(plan)
        try:
            _execute(hook.program, [hook.program], dict(plan.environment, **{CONTEXT: "epilog_task"}))
        except OSError as error:
            tasks.say("execve(%s): %s" % (hook.program, error.strerror))
    finally:
        os._exit(CANNOT_EXECUTE)


def run_of_srun(program: str, argv: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]) -> int:
    """srun's prolog or epilog, run here and waited for with our standard streams; its wait status, 0 when there is none to
    run, which is told."""
    try:
        os.stat(program)
        if not os.access(program, os.R_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        say("Access denied for %s: %s" % (program, error.strerror))
        return 0
    process = os.fork()
    if not process:
        try:
            signal.set_wakeup_fd(-1)
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_DFL)
            _execute(program, [program, *argv], environment)
        except OSError as error:
            say("error: execve(%s): %s" % (program, error.strerror))
        finally:
            os._exit(CANNOT_EXECUTE)
    return os.waitpid(process, 0)[1]
