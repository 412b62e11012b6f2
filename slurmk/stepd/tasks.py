"""Starting one task: a forked child that becomes the user, sets its files and limits right, and executes the program."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal

from slurmk.stepd import texts
from slurmk.stepd.processes import Identity, reset_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Mapping, Optional, Sequence

    from slurmk.stepd.binding import MemoryBinding
    from slurmk.stepd.cgroup import Group
    from slurmk.stepd.hooks import TaskHook

    Limits = Mapping[str, Optional[int]]  # by the name after RLIMIT_; None: no limit

FALLBACK_DIRECTORY = "/tmp"

LIMITS = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")
"""Limits that --propagate knows."""


class Files:
    """The three descriptors a task starts with."""

    def __init__(self, standard_input: int, output: int, error: int, terminal: bool = False) -> None:
        self.input = standard_input
        self.output = output
        self.error = error
        self.terminal = terminal


class Plan:
    """How a task is started. ``cpus`` are the numbers of the CPUs that it may use, None for all; ``prologs`` run before it;
    ``held``: it stops before it executes its program, as for a debugger."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        umask: int,
        identity: Identity,
        files: Files,
        group: Optional[Group] = None,
        limits: Optional[Limits] = None,
        nice: Optional[int] = None,
        cpus: Optional[Iterable[int]] = None,
        memory: Optional[MemoryBinding] = None,
        prologs: Sequence[TaskHook] = (),
        held: bool = False,
    ) -> None:
        self.argv = argv
        self.environment = dict(environment)
        self.directory = directory
        self.umask = umask
        self.identity = identity
        self.files = files
        self.group = group
        self.limits = limits
        self.nice = nice
        self.cpus = cpus
        self.memory = memory
        self.prologs = prologs
        self.held = held

    def again(self, error: int) -> Plan:
        """The same for what runs after the task: without input and output, and with that descriptor for errors."""
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        files = Files(null, null, error)
        return Plan(self.argv, self.environment, self.directory, self.umask, self.identity, files, self.group, self.limits)


def start(plan: Plan) -> int:
    """Fork and execute; the process id. A program that cannot be executed ends with the errno as its exit code, and says so."""
    # this process ignores signals that end programs: what reaches the child before it does not is kept for it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return process
    code = 1
    try:
        become(plan)
        plan.environment["SLURM_TASK_PID"] = str(os.getpid())
        if plan.held:
            os.kill(os.getpid(), signal.SIGSTOP)
        code = _run_prologs(plan) or execute(plan.argv, plan.environment)
    except BaseException as error:  # nothing of this copy of the parent may go on
        say("task cannot be started: %s" % error)
    finally:
        os._exit(code)


def become(plan: Plan) -> None:
    """Make this freshly forked process what a task's is: the leader of a process group, which SIGTSTP stops as the parent is of
    the same session, or of a session when it gets a terminal."""
    if plan.files.terminal:
        os.setsid()
    else:
        os.setpgid(0, 0)
    if plan.group is not None:
        plan.group.enter()
    if plan.cpus is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, plan.cpus)
    if plan.memory is not None:
        plan.memory.set()
    files = plan.files
    if files.terminal:
        import fcntl
        import termios

        fcntl.ioctl(files.input, termios.TIOCSCTTY, 0)
    reset_signals()
    _place((files.input, files.output, files.error))
    _limit(plan.limits or {})
    plan.identity.become()
    _set_niceness(plan.nice)
    os.umask(plan.umask)
    enter(plan.directory)


def _run_prologs(plan: Plan) -> int:
    """The exit code of the first that fails, which is told; 0 when none does."""
    for hook in plan.prologs:
        from slurmk.stepd import hooks

        try:
            printed, code = hooks.run_task_prolog(hook, plan.environment), 0
        except hooks.Failed as failed:
            printed, code = failed.printed, failed.code
            lines = failed.lines
        if printed:
            os.write(1, printed)
        if code:
            for line in lines:
                say(line)
            return code
    return 0


def _set_niceness(nice: Optional[int]) -> None:
    """Done as the job's user, so that only root's jobs come above stepd."""
    if nice is None:
        return
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError as error:
        say("setpriority(PRIO_PROCESS, %d): %s" % (nice, error.strerror))


def _limit(limits: Limits) -> None:
    """Set the soft limits that are named, none above what is allowed here; open files are also limited when not named."""
    for name in {*limits, "NOFILE"}:
        number = getattr(resource, "RLIMIT_" + name, None)
        if name not in LIMITS or number is None:
            continue
        soft, hard = resource.getrlimit(number)
        if name in limits:
            wanted = limits[name]
            soft = hard if wanted is None or (hard != resource.RLIM_INFINITY and wanted > hard) else wanted
        elif hard != resource.RLIM_INFINITY:
            soft = hard
        with contextlib.suppress(OSError, ValueError, OverflowError):
            resource.setrlimit(number, (soft, hard))


def _place(descriptors: Sequence[int]) -> None:
    """Make them 0, 1 and 2, whatever numbers they have now."""
    safe = [os.dup(descriptor) if descriptor <= 2 else descriptor for descriptor in descriptors]
    for number, descriptor in enumerate(safe):
        os.dup2(descriptor, number, inheritable=True)


def enter(directory: str) -> None:
    """Change to the directory, or to /tmp with a message when that cannot be."""
    try:
        os.chdir(directory)
    except OSError as error:
        say("couldn't chdir to `%s': %s: going to /tmp instead" % (directory, error.strerror))
        with contextlib.suppress(OSError):
            os.chdir(FALLBACK_DIRECTORY)


def execute(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Become the program; returns only when that fails: the errno, after a message."""
    if not argv:
        say("No executable program specified for this task")
        return errno.ENOENT
    names = {os.fsencode(name): os.fsencode(value) for name, value in environment.items() if name and "=" not in name}
    found = find(argv[0], environment.get("PATH", os.defpath))
    shown = os.path.join(os.getcwd(), argv[0]) if argv[0].startswith(".") else argv[0]
    try:
        os.execve(found, [os.fsencode(word) for word in argv], names)
    except OSError as error:
        number = error.errno or errno.ENOEXEC
        if number == errno.ENOEXEC:
            say("execve(): %s: %s" % (shown, os.strerror(number)))
            return number
        interpreter = interpreter_of(found) if number == errno.ENOENT and os.path.exists(found) else ""
        say("execve(): %s: %s" % ("bad interpreter(%s)" % interpreter if interpreter else shown, os.strerror(number)))
        return number
    return 1


def find(program: str, path: str) -> str:
    """The file that a name on PATH stands for; the name itself when there is none."""
    if "/" in program or not program:
        return program
    for folder in path.split(":"):
        candidate = os.path.join(folder or ".", program)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return program


def interpreter_of(path: str) -> str:
    """What the ``#!`` line of a script names; empty when it has none."""
    try:
        with open(path, "rb") as file:
            first = file.read(256)
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = first[2:].split(b"\n")[0].split()
    return os.fsdecode(words[0]) if words else ""


def say(text: str) -> None:
    """A line of stepd on standard error."""
    with contextlib.suppress(OSError):
        os.write(2, texts.stepd_error(text))
