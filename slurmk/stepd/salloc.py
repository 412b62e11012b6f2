"""salloc's local part: runs the user's command while it keeps the job's allocation.

The controller has made the allocation and turned the user's process into this program: ``salloc SETTINGS COMMAND …``,
where SETTINGS is a JSON object. The environment is the command's, but for SLURMK_STEP_MANAGER and SLURMK_JOB_SECRET. The
allocation is kept by a connection to the job's step manager: it is given back when the command ends, when a signal says
so, and also when this process dies; and the manager tells when somebody else ended the job.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import sys
import time

from slurmk import wire
from slurmk.stepd import messages
from slurmk.stepd.processes import own_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence

    Settings = Mapping[str, Any]

OWN = (b"SLURMK_STEP_MANAGER=", b"SLURMK_JOB_SECRET=")
"""Variables that are not for the command."""

GIVE_BACK = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE)
"""Signals after which the allocation is given back while the command goes on."""

OF_TERMINALS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)

USERS_OWN = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
"""Signals that end the command without salloc calling it a failure."""

ANSWER_SECONDS = 10.0
"""How long the end may take to be confirmed."""

HUNG_UP = 1 << 8
"""Wait status that is reported when salloc itself was hung up."""


class Allocation:
    """The connection that keeps the job's allocation."""

    def __init__(self, job: int, address: str, secret: str) -> None:
        self.job = job
        self.revoked = False
        self.returned = False
        self.timed_out = False
        try:
            self.channel: Optional[messages.Channel] = messages.Channel(
                messages.dial(address, "srun", {"kind": "hold"}, secret)
            )
        except (OSError, ValueError, wire.WireError):
            self.channel = None
            self.revoked = True

    def listen(self) -> None:
        """Take what the manager says."""
        if self.channel is None:
            return
        for kind, payload in self.channel.receive():
            message = messages.unpack(payload) if kind == wire.MESSAGE else {}
            if message.get("kind") == "revoked":
                self.revoked = True
                self.timed_out = bool(message.get("timed_out"))
            elif message.get("kind") == "returned":
                self.returned = True
            elif message.get("kind") == "notice":
                say(str(message["text"]))
        if self.channel.closed:
            self.revoked = self.revoked or not self.returned
            self.returned = True
            self.channel = None

    def give_back(self, status: int) -> None:
        """The command came to ``status`` (as wait(2) says it); returns when the controller knows, or does not answer."""
        if self.channel is None or self.returned:
            return
        self.channel.message({"kind": "return", "status": status})
        end = time.monotonic() + ANSWER_SECONDS
        while not self.returned and self.channel is not None and time.monotonic() < end:
            select.select([self.channel], [], [], max(0.0, end - time.monotonic()))
            self.listen()


class Salloc:
    """One command in its allocation."""

    def __init__(
        self, settings: Settings, command: Sequence[str], environment: Sequence[bytes], allocation: Allocation
    ) -> None:
        self.settings = settings
        self.command = [os.fsencode(word) for word in command]
        self.environment = dict(entry.split(b"=", 1) for entry in environment)
        self.allocation = allocation
        self.process = 0
        self.status: Optional[int] = None
        self.hung_up = False
        self.told = False
        self.interactive = os.isatty(0)
        self.terminal: Any = None
        self.pending: List[int] = []
        self._wake, self._wake_end = os.pipe()

    def run(self) -> int:
        """Gives the exit code."""
        self._catch()
        program = self._find()
        if program is None:
            say('error: _fork_command: Unable to find command "%s"' % os.fsdecode(self.command[0]))
            return self._end(1 << 8, 1)
        try:
            os.chdir(str(self.settings["directory"]))
        except OSError as error:
            say("error: chdir(%s): %s" % (self.settings["directory"], error.strerror))
            return self._end(1 << 8, 1)
        self._take_terminal()
        self._start(program)
        while self.status is None and not self.hung_up:
            self._turn()
        self._give_terminal_back()
        if self.hung_up:
            self._signal(signal.SIGHUP)
            return self._end(HUNG_UP, 1)
        assert self.status is not None
        return self._end(self.status, self._exit_code(self.status))

    def _exit_code(self, status: int) -> int:
        if os.WIFEXITED(status):
            return os.WEXITSTATUS(status)
        number = os.WTERMSIG(status)
        self._later = 'Command "%s" was terminated by signal %d' % (os.fsdecode(self.command[0]), number)
        return 0 if number in USERS_OWN else 1

    _later = ""

    def _end(self, status: int, code: int) -> int:
        if not self.allocation.revoked and not self.allocation.returned:
            self.info("Relinquishing job allocation %d" % self.allocation.job)
            self.allocation.give_back(status)
        if self._later and self.settings.get("verbose"):
            self.info(self._later)
        return code

    def info(self, text: str) -> None:
        """For people; not with --quiet."""
        if not self.settings.get("quiet"):
            say(text)

    # ---------------------------------------------------------------- the command

    def _find(self) -> Optional[bytes]:
        """The program's file: as named, else on PATH."""
        name = self.command[0]
        folders = self.environment.get(b"PATH", os.defpath.encode()).split(b":")
        candidates = [name] if b"/" in name else [os.path.join(folder or b".", name) for folder in folders if name]
        base = os.fsencode(str(self.settings["directory"]))
        for candidate in candidates:
            path = os.path.join(base, candidate)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        return None

    def _start(self, program: bytes) -> None:
        """Fork the command into a process group of its own, which the terminal then belongs to."""
        self.process = os.fork()
        if self.process:
            self._in_group(self.process)
            return
        try:
            os.setpgid(0, 0)
            if self.terminal is not None:
                os.tcsetpgrp(0, os.getpgrp())
            signal.set_wakeup_fd(-1)
            for number in (*GIVE_BACK, *OF_TERMINALS, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            self._execute(program)
        except OSError as error:
            say("error: execvp(%s): %s" % (os.fsdecode(self.command[0]), error.strerror))
        finally:
            os._exit(1)

    def _execute(self, program: bytes) -> None:
        """As execvp(3) does: a file that is no program is a shell's script."""
        try:
            os.execve(program, self.command, self.environment)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            os.execve(b"/bin/sh", [b"sh", program, *self.command[1:]], self.environment)

    def _in_group(self, process: int) -> None:
        try:
            os.setpgid(process, process)
        except OSError:  # it has become its program already, and has done this itself
            pass

    # ---------------------------------------------------------------- while it runs

    def _catch(self) -> None:
        for descriptor in (self._wake, self._wake_end):
            os.set_blocking(descriptor, False)
        for number in (*GIVE_BACK, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, self._caught)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*GIVE_BACK, signal.SIGHUP))  # the shim left them waiting

    def _caught(self, number: int, frame: object) -> None:
        self.pending.append(number)

    def _turn(self) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if self.allocation.channel is not None:
            poll.register(self.allocation.channel, select.POLLIN)
        poll.poll()
        try:
            os.read(self._wake, 4096)
        except BlockingIOError:
            pass
        while self.pending:
            self._signalled(self.pending.pop(0))
        self.allocation.listen()
        if self.allocation.revoked and not self.told:
            self._revoked()

    def _signalled(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._reap()
        elif number == signal.SIGHUP:
            self.hung_up = True
        elif not self.allocation.revoked:
            self.allocation.give_back(number)
            self.allocation.revoked = True

    def _reap(self) -> None:
        try:
            process, status = os.waitpid(self.process, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            self.status = self.status or 0
            return
        if not process:
            return
        if os.WIFSTOPPED(status):
            self._stop()
        else:
            self.status = status

    def _stop(self) -> None:
        """The command was stopped in its terminal: so are we, until the user's shell lets us go on."""
        if self.terminal is None:
            return
        self._give_terminal_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take_terminal()
        os.tcsetpgrp(0, self.process)
        os.killpg(self.process, signal.SIGCONT)

    def _revoked(self) -> None:
        """Somebody ended the job: say so, and signal the command as --kill-command wants."""
        self.told = True
        job = self.allocation.job
        if self.allocation.timed_out:
            self.info("Job %d has exceeded its time limit and its allocation has been revoked." % job)
        else:
            self.info("Job allocation %d has been revoked." % job)
        self._hang_up_foreground()
        number = self.settings.get("kill")
        if number is None:
            return
        default = signal.SIGHUP if self.interactive else signal.SIGTERM
        self._signal(int(number) or default)

    def _signal(self, number: int) -> None:
        """To the command, and what it started in its process group."""
        try:
            os.killpg(self.process, number)
        except OSError:
            pass

    def _hang_up_foreground(self) -> None:
        """What runs in the terminal in front of the command (the user's shell) ends with the allocation."""
        if self.terminal is None:
            return
        try:
            group = os.tcgetpgrp(0)
            if group not in (self.process, os.getpgrp()):
                os.killpg(group, signal.SIGHUP)
        except OSError:
            pass

    # ---------------------------------------------------------------- the terminal

    def _take_terminal(self) -> None:
        """Wait until the terminal is ours, and note how it is set."""
        if not self.interactive:
            return
        import termios

        try:
            while os.tcgetpgrp(0) != os.getpgrp():
                os.killpg(os.getpgrp(), signal.SIGTTIN)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            self.terminal = termios.tcgetattr(0)
        except (OSError, termios.error):
            self.terminal = None

    def _give_terminal_back(self) -> None:
        if self.terminal is None:
            return
        import termios

        try:
            os.tcsetpgrp(0, os.getpgrp())
            termios.tcsetattr(0, termios.TCSADRAIN, self.terminal)
        except (OSError, termios.error):
            pass


def say(text: str) -> None:
    """A line on standard error, as salloc says it."""
    try:
        os.write(2, ("salloc: %s\n" % text).encode("utf-8", "surrogateescape"))
    except OSError:
        pass


def main(arguments: List[str]) -> int:
    """``SETTINGS COMMAND …``."""
    if len(arguments) < 2:
        print("usage: stepd salloc SETTINGS COMMAND ...", file=sys.stderr)
        return 2
    settings: Dict[str, Any] = json.loads(arguments[0])
    address = os.environ.get("SLURMK_STEP_MANAGER", "")
    allocation = Allocation(int(settings["job"]), address, os.environ.get("SLURMK_JOB_SECRET", ""))
    return Salloc(settings, arguments[1:], own_variables(OWN), allocation).run()
