"""srun's local part: asks the job's step manager for a step, and is the tasks' standard streams while it runs.

The controller has parsed the command line and made the user's process into this program. What it shall do is in the
environment: SLURMK_STEP (the request as JSON, in pieces), SLURMK_STEP_MANAGER (where to ask) and SLURMK_JOB_SECRET.
It imports little, for its start is felt.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from slurmk import wire
from slurmk.stepd import messages, output, texts
from slurmk.stepd.processes import NICENESS, Identity, own_variables, set_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

    from slurmk.stepd.terminal import Terminal

    Message = Dict[str, Any]

ALL_TASKS = 0xFFFFFFFF

PIECE = 65536
UNTAKEN = 4
"""Frames of input that may be on their way."""

LONGEST_LINE = 65536
"""Bytes of a line that are kept back until its end comes."""

GATHER_SECONDS = 0.05
"""How long ended tasks are gathered, so that those that ended alike are told of in one line."""

INTERRUPT_SECONDS = 1.0
GRACE_SECONDS = 0.2
"""How long tasks that are interrupted may do something about it before they are killed."""

WAITING_SECONDS = 60.0

FORWARDED = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE)
UNTOLD = (signal.SIGALRM, signal.SIGCONT)
"""Signals that are srun's own: the tasks do not get them."""

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGWINCH, *UNTOLD, *FORWARDED)


class Failure(Exception):
    """Ends srun with a message."""

    word = "error"


class Fatal(Failure):
    """The same, by its other word."""

    word = "fatal"


class Sink:
    """Where one stream of the tasks goes: a file descriptor, with whole lines of each task, labelled or not."""

    def __init__(self, descriptor: int, labels: int, buffered: bool, only: Optional[int] = None) -> None:
        self.descriptor = descriptor
        self.labels = labels  # width of the labels, 0 for none
        self.buffered = buffered or labels > 0
        self.only = only
        self.kept: Dict[int, bytearray] = {}

    def take(self, rank: int, data: bytes) -> None:
        """Output of a task; no data is its end."""
        if self.only is not None and rank not in (self.only, ALL_TASKS):
            return
        if rank == ALL_TASKS or not self.buffered:
            self.write(data)
            return
        kept = self.kept.setdefault(rank, bytearray())
        if not data:
            rest, self.kept[rank] = bytes(kept), bytearray()
            if rest:
                self.write(self._labelled(rank, rest) + (b"\n" if self.labels else b""))
            return
        kept += data
        end = len(kept) if len(kept) > LONGEST_LINE else kept.rfind(b"\n") + 1
        if end:
            whole = bytes(kept[:end])
            del kept[:end]
            self.write(self._labelled(rank, whole))

    def _labelled(self, rank: int, text: bytes) -> bytes:
        if not self.labels:
            return text
        label = b"%*d: " % (self.labels, rank)
        return b"".join([label + line for line in text.splitlines(True)]) if text else b""

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.descriptor, view) :]
            except BlockingIOError:
                poll = select.poll()
                poll.register(self.descriptor, select.POLLOUT)
                poll.poll()
            except OSError:
                return


class Part:
    """The step's part in one component of a het job, which has a step manager of its own. Other steps have one part."""

    def __init__(self, request: Message, address: str, secret: str) -> None:
        self.request = request
        self.address = address
        self.secret = secret
        self.channel: messages.Channel
        self.created: Message = {}
        self.first = 0  # the number of its first task in the whole step
        self.sinks: Dict[int, Sink] = {}
        self.ended = False
        self.returned = False


class Srun:
    """One run of srun. ``others`` are the parts in the other components of a het job."""

    def __init__(
        self, request: Message, environment: List[str], address: str, secret: str, others: Sequence[Part] = ()
    ) -> None:
        self.request = request
        self.environment = environment
        self.address = address
        self.secret = secret
        self.parts = [Part(request, address, secret), *others]
        self.created: Message = {}
        self.name = ""  # StepId=5.0
        self.ranks: Dict[int, str] = {}  # of each task: its node
        self.processes: Dict[int, int] = {}  # of each task: its process, where a debugger is told
        self.statuses: Dict[int, int] = {}
        self.untold: List[Tuple[str, int, int]] = []  # node, rank, status
        self.endings: Set[int] = set()  # statuses that were told of
        self.once = os.environ.get("SLURM_SRUN_REDUCE_TASK_EXIT_MSG", "0") not in ("", "0")  # each of them one time
        self.tell_at: Optional[float] = None
        self.wait_until: Optional[float] = None
        self.waiting_at: Optional[float] = None
        self.waited = 0
        self.aborted = False
        self.killed = False
        self.ended = False
        self.returned = False
        self.failed = 0
        self.interrupted = -10.0
        self.end_at: Optional[float] = None
        self.forced = False
        self.first_over = False  # the first task ended, the others are waited for, and it was not told yet
        self.untaken = 0
        self.input: Optional[int] = None
        self.input_rank = ALL_TASKS
        self.early: List[Tuple[Part, int, int, bytes]] = []
        self.terminal: Optional[Terminal] = None
        self.pending: List[int] = []
        self._wake, self._wake_end = os.pipe()

    # ---------------------------------------------------------------- the whole run

    def run(self) -> int:
        """Gives the exit code."""
        self._open_input()
        self._take_terminal()
        ignored = self.request.get("ignore_signals") or ()
        for number in CAUGHT:
            signal.signal(number, signal.SIG_IGN if number in ignored else self._caught)
        for descriptor in (self._wake, self._wake_end):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, CAUGHT)  # the shim left them waiting
        for part in self.parts:
            self._dial(part)
        try:
            if self.terminal is not None:
                self.terminal.make_raw()
                raw(True)
            while not self._over():
                self._turn()
        finally:
            self._restore_terminal()
        self._tell_ended()
        self._run_epilog()
        return self._exit_code()

    def _dial(self, part: Part) -> None:
        opening = {
            "kind": "step",
            "request": part.request,
            "environment": self.environment,
            "owns_allocation": bool(self.request.get("owns_allocation")),
            "pty": self.terminal.size() if self.terminal is not None else None,
            "limits": own_limits(str(self.request.get("propagate") or "")),
        }
        try:
            part.channel = messages.Channel(messages.dial(part.address, "srun", opening, part.secret))
            return
        except (ConnectionRefusedError, FileNotFoundError):  # a step manager listens for as long as its job lives
            cause = "Job/step already completing or completed"
        except OSError as error:
            cause = error.strerror or str(error)
        except wire.WireError as error:
            cause = str(error)
        raise Failure("Unable to create step for job %s: %s" % (self.request.get("job_id"), cause))

    def _tell(self, message: Message) -> None:
        for part in self.parts:
            part.channel.message(message)

    def _hang_up(self) -> None:
        """Leave the step; what it has left is ended."""
        self.ended = self.returned = True
        for part in self.parts:
            part.channel.close()

    def _over(self) -> bool:
        if any(part.channel.closed and not part.ended for part in self.parts):
            if not self.ended:
                say("error: the step manager of the job went away")
                self.failed = self.failed or 1
            return True
        if not self.ended or self.returned or not self.request.get("owns_allocation"):
            return self.ended
        return all(part.returned or part.channel.closed for part in self.parts)  # a job that is over ends its managers

    def _exit_code(self) -> int:
        if self.killed and not self.aborted:
            say("Force Terminated %s" % self.name)
        killed = {int(signal.SIGINT): int(signal.SIGKILL)} if self.forced else {}  # as Slurm counts those that it ends by force
        return max([self.failed, *(texts.exit_code(killed.get(status, status)) for status in self.statuses.values())])

    def _turn(self) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        for part in self.parts:
            if not part.channel.closed:
                poll.register(part.channel, select.POLLIN | (select.POLLOUT if part.channel.waiting else 0))
        full = self.untaken >= UNTAKEN * len(self.parts) or any(part.channel.full for part in self.parts)
        if self.input is not None and self.created and not full:
            poll.register(self.input, select.POLLIN)
        times = [at for at in (self.tell_at, self.wait_until, self.waiting_at, self.end_at) if at is not None]
        timeout = max(0.0, min(times) - time.monotonic()) * 1000 if times else None
        ready = {descriptor for descriptor, _ in poll.poll(timeout)}
        if self._wake in ready:
            try:
                os.read(self._wake, 4096)
            except BlockingIOError:
                pass
        while self.pending:
            self._signalled(self.pending.pop(0))
        for part in self.parts:
            if not part.channel.closed and part.channel.fileno() in ready:
                part.channel.flush()
                for kind, payload in part.channel.receive():
                    if kind == wire.STREAM:
                        self._output(part, *messages.unpack_stream(payload))
                    elif kind == wire.MESSAGE:
                        self._hear(messages.unpack(payload), part)
        if self.input is not None and self.input in ready:
            self._feed()
        self._due()

    def _due(self) -> None:
        now = time.monotonic()
        if self.tell_at is not None and now >= self.tell_at:
            self._tell_ended()
        if self.wait_until is not None and now >= self.wait_until:
            self.wait_until = None
            self._give_up_waiting()
        if self.end_at is not None and now >= self.end_at:
            self.end_at = None
            self._end(signal.SIGINT)
        if self.waiting_at is not None and now >= self.waiting_at:
            self.waited += 1
            self.waiting_at = now + WAITING_SECONDS * 2**self.waited
            word = "temporarily" if self.waited == 1 else "still"
            self.info("Job %s step creation %s disabled, retrying (%s)" % (self.request.get("job_id"), word, self._busy))

    _busy = ""

    def info(self, text: str) -> None:
        """For people; not with --quiet."""
        if not self.request.get("quiet"):
            say(text)

    def _detail(self, text: str) -> None:
        """For people who want to see more: with --verbose."""
        if self.request.get("verbose"):
            say(text)

    # ---------------------------------------------------------------- what the manager says

    def _hear(self, message: Message, part: Part) -> None:
        kind = message.get("kind")
        if kind == "created":
            part.created = message
            if all(part.created for part in self.parts):
                self._take_step()
        elif kind == "running":
            self._detail("Node %s, %d tasks started" % (message["node"], message["tasks"]))
            self._tell_processes(part, message)
        elif kind == "exit":
            self._task_ended(part, str(message["node"]), int(message["rank"]), int(message["status"]))
        elif kind == "taken":
            self.untaken -= 1
        elif kind == "submitted":
            self._submitted(int(message["step"]))
        elif kind == "refused":
            self._refused(str(message["text"]))
        elif kind == "waiting":
            self._busy = str(message["text"])
            self.waiting_at = time.monotonic() + WAITING_SECONDS
        elif kind == "failed":
            self._launch_failed(message)
        elif kind == "notice":
            say(str(message["text"]))
        elif kind == "misconfigured":
            for line in message["lines"]:
                say("error: %s" % line)
            self.failed = 1
        elif kind == "aborting":
            self._say_aborted()
        elif kind == "ended":
            part.ended = True
            if not self.ended and all(part.ended for part in self.parts):
                self.ended = True
                if self.request.get("het"):
                    self._tell({"kind": "release"})
        elif kind == "returned":
            part.returned = True
            self.returned = self.returned or all(part.returned for part in self.parts)

    def _tell_processes(self, part: Part, message: Message) -> None:
        """--debugger-test: what a debugger would be told of all tasks, which wait for it."""
        if not self.request.get("debugger_test"):
            return
        place = part.created["nodes"].index(message["node"])
        self.processes.update(zip(part.created["ranks"][place], message["processes"]))
        if len(self.processes) < len(self.ranks):
            return
        programs = [list(self.request["argv"])] * len(self.ranks)
        if self.request.get("multi_prog") is not None:
            from slurmk.stepd.programs import multiple

            programs = multiple(str(self.request["multi_prog"]), len(self.ranks), str(self.request["argv"][0]))
        for rank, process in sorted(self.processes.items()):
            say("task:%d, host:%s, pid:%d, executable:%s" % (rank, self.ranks[rank], process, "".join(programs[rank][:1])))

    def _launch_failed(self, message: Message) -> None:
        """The tasks of a node could not be started."""
        text, node = str(message["text"]), str(message["node"])
        if message.get("lines") is None:
            ranks = [rank for rank, name in self.ranks.items() if name == node]
            say("error: %s" % text)
            say("error: %s launch failed: Slurmd could not connect IO" % texts.tasks(ranks))
            self.failed = 1
            return
        for line in message["lines"]:
            say("error: %s" % line)
        say("error: Task launch for %s failed on node %s: %s" % (self.name, node, text))
        say("error: Application launch failed: %s" % text)
        say("Job step aborted")
        self.failed = int(message["errno"]) & 0xFF or 1

    def _submitted(self, number: int) -> None:
        """--async: the step goes its own way."""
        name = "%s.%d" % (self.request.get("job_id"), number)
        if not self.request.get("quiet"):
            os.write(1, ("%s%s\n" % ("" if self.request.get("parsable") else "Submitted step ", name)).encode())
        self.ended = self.parts[0].ended = True

    def _refused(self, text: str) -> None:
        say("error: Unable to create step for job %s: %s" % (self.request.get("job_id"), text))
        self.failed = 1
        self.ended = True
        if len(self.parts) > 1:
            self._hang_up()

    def _take_step(self) -> None:
        """All parts of the step have their places."""
        self.created = self.parts[0].created
        self.waiting_at = None
        self.name = "StepId=%s.%s" % (self.request.get("job_id") or self.created["job"], self.created["step"])
        if self.created["waited"]:
            self.info("Step created for %s" % self.name)
        for part in self.parts:
            part.first = len(self.ranks)
            for node, ranks in zip(part.created["nodes"], part.created["ranks"]):
                ranks = [part.first + rank for rank in ranks]
                self.ranks.update(dict.fromkeys(ranks, node))
                self._detail("launching %s on host %s, %d tasks: %s" % (self.name, node, len(ranks), texts.bracketed(ranks)))
        for part in self.parts:
            self._open_sinks(part)
        self._read_file_for_missing_task()
        for each in self.early:
            self._output(*each)
        self.early.clear()
        self._resize()
        if self.request.get("bcast") and not self._send_program():
            return
        self._run_prolog()
        if any(self.request.get(name) for name in ("prolog", "bcast", "het")):
            self._go()

    def _go(self) -> None:
        """Have the tasks start; each part of a step over several components is told of the whole."""
        made = [part.created for part in self.parts]
        whole = {
            "job": self.request.get("job_id"),
            "nodes": [node for each in made for node in each["nodes"]],
            "counts": [len(ranks) for each in made for ranks in each["ranks"]],
            "cpus": [cpus for each in made for cpus in each["cpus"]],
        }
        nodes = 0
        for part in self.parts:
            het = dict(whole, first_task=part.first, first_node=nodes) if self.request.get("het") else {}
            part.channel.message({"kind": "go", "het": het})
            nodes += len(part.created["nodes"])

    def _open_sinks(self, part: Part) -> None:
        """Where the output of a part of the step goes, as its own options say; labels are as wide as its own tasks need."""
        tasks = sum(map(len, part.created["ranks"]))
        width = len(str(max(1, tasks) - 1)) if part.request.get("label") else 0
        buffered = not part.request.get("unbuffered") and self.terminal is None
        part.sinks[1] = self._sink(part.request, "output", "stdout", 1, width, buffered)
        if part.request.get("error") is None and part.request.get("output") is not None:
            part.sinks[2] = part.sinks[1]
        else:
            part.sinks[2] = self._sink(part.request, "error", "stderr", 2, width, buffered)

    def _sink(self, request: Message, name: str, stream: str, descriptor: int, width: int, buffered: bool) -> Sink:
        pattern = request.get(name)
        if pattern is None or pattern == "all" or output.differs_by_task(pattern):
            return Sink(descriptor, width, buffered)
        if pattern == "none":
            return Sink(os.open("/dev/null", os.O_WRONLY), width, buffered)
        if pattern.isdigit() and int(pattern) < len(self.ranks):
            return Sink(descriptor, width, buffered, int(pattern))
        path = output.fill(pattern, self.created["values"])  # seen from srun's own directory, not from that of --chdir
        append = output.appends(request)
        try:
            own = Identity(os.geteuid(), os.getegid(), os.getgroups())
            return Sink(output.open_output(path, append, own, int(request.get("umask", 0o022))), width, buffered)
        except OSError as error:
            say("error: Could not open %s file: %s" % (stream, error.strerror))
            self.failed = 1
            self._kill(signal.SIGKILL, "")
            return Sink(os.open("/dev/null", os.O_WRONLY), width, buffered)

    def _output(self, part: Part, stream: int, rank: int, data: bytes) -> None:
        sink = part.sinks.get(stream)
        if sink is None:
            self.early.append((part, stream, rank, data))
        else:
            sink.take(rank, data)

    def _task_ended(self, part: Part, node: str, rank: int, status: int) -> None:
        first = not self.statuses
        self.statuses[rank] = status
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGTERM):
            self.killed = True
        if status or self.request.get("verbose"):
            self.untold.append((node, rank - part.first, status))  # told by its number in its component
            if self.tell_at is None:
                self.tell_at = time.monotonic() + GATHER_SECONDS
        if len(self.statuses) == len(self.ranks):
            self.wait_until = None
            self._tell_ended()  # at once: a batch script that is being killed takes srun with it
            return
        if status and self.request.get("kill_on_bad_exit") and not self.aborted:
            self._tell_ended()
            say("Terminating %s" % self.name)
            self._kill(signal.SIGTERM, texts.TASK_FAILURE)
            self.request["kill_on_bad_exit"] = False
        elif first and self.request.get("wait"):
            self.wait_until = time.monotonic() + int(self.request["wait"])
            self.first_over = True

    def _tell_ended(self) -> None:
        """One line for all tasks of a node that ended alike, in the order in which they ended."""
        self.tell_at = None
        told: Dict[Tuple[str, int], List[int]] = {}
        for node, rank, status in self.untold:
            told.setdefault((node, status), []).append(rank)
        self.untold.clear()
        for (node, status), ranks in told.items():
            count = "%d task%s" % (len(ranks), "" if len(ranks) == 1 else "s")
            self._detail("Received task exit notification for %s of %s (status=0x%04x)." % (count, self.name, status))
            line = "%s: %s: %s" % (node, texts.tasks(ranks), texts.ending(status) if status else "Completed")
            if not status or (self.forced and os.WIFSIGNALED(status)):
                self._detail(line)
            elif status not in self.endings or not self.once:
                self.endings.add(status)
                say("error: %s" % line)
        if self.first_over:
            self.first_over = False
            self._detail("First task exited. Terminating job in %ds" % int(self.request["wait"]))

    def _give_up_waiting(self) -> None:
        """--wait: the first task ended long enough ago."""
        say("First task exited %ds ago" % int(self.request["wait"]))
        self._say_tasks()
        say("Terminating %s" % self.name)
        self._say_aborted()
        self._kill(signal.SIGKILL, texts.by_signal(signal.SIGKILL))

    def _say_tasks(self) -> None:
        running = [rank for rank in self.ranks if rank not in self.statuses]
        failed = [rank for rank, status in self.statuses.items() if status]
        exited = [rank for rank, status in self.statuses.items() if not status]
        for ranks, word in ((running, "running"), (failed, "exited abnormally"), (exited, "exited")):
            if ranks:
                say("%s %s: %s" % (self.name, texts.tasks(ranks), word))

    def _say_aborted(self) -> None:
        if not self.aborted:
            self.aborted = True
            seconds = int(self.created.get("kill_wait", 30)) + 2
            say("Job step aborted: Waiting up to %d seconds for job step to finish." % seconds)

    # ---------------------------------------------------------------- signals

    def _caught(self, number: int, frame: object) -> None:
        self.pending.append(number)

    def _signalled(self, number: int) -> None:
        if number == signal.SIGINT:
            self._interrupt()
        elif number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            if number == signal.SIGQUIT:
                say("Quit")
            if self.created:
                say("forcing job termination")
            self._end(number)
        elif number == signal.SIGWINCH:
            self._resize()
        elif number in UNTOLD:
            if self.created and number == signal.SIGCONT:
                say("got SIGCONT")
        else:
            self._send_signal(number)

    def _interrupt(self) -> None:
        now = time.monotonic()
        if not self.created:
            self._end(signal.SIGINT)
            return
        enough = self.request.get("quit_on_interrupt") or now - self.interrupted < INTERRUPT_SECONDS
        self.interrupted = now
        if not enough and not self.request.get("disable_status"):
            say("interrupt (one more within 1 sec to abort)")
            self._say_tasks()
            return
        say("sending Ctrl-C to %s" % self.name)
        self._send_signal(signal.SIGINT)
        if enough and self.end_at is None:
            say("forcing job termination")
            self.forced = True
            self.end_at = now + GRACE_SECONDS

    def _end(self, number: int) -> None:
        """The user wants it to be over."""
        if not self.created:
            say("Cancelled pending job step with signal %d" % number)
            self._refused("Job/step already completing or completed")
            self._hang_up()
            return
        self._say_aborted()
        self._kill(signal.SIGKILL, texts.by_signal(signal.SIGKILL), by_user=True)

    def _send_signal(self, number: int) -> None:
        if self.created:
            self._tell({"kind": "signal", "signal": int(number)})

    def _kill(self, number: int, cause: str, *, by_user: bool = False) -> None:
        wait = int(self.created.get("kill_wait", 30))
        self._tell({"kind": "kill", "signal": int(number), "cause": cause, "kill_wait": wait, "by_user": by_user})

    # ---------------------------------------------------------------- input and terminal

    def _open_input(self) -> None:
        """What the tasks read: our own input or a file."""
        pattern = self.request.get("input")
        if pattern == "none" or self.request.get("asynchronous") or (pattern is not None and output.differs_by_task(pattern)):
            return
        if pattern is None or pattern == "all" or pattern.isdigit():
            if pattern is not None and pattern.isdigit():
                self.input_rank = int(pattern)
            self.input = 0
            return
        self.input = self._open_input_file(pattern)

    def _open_input_file(self, pattern: str) -> int:
        values = {"j": str(self.request.get("job_id")), "x": self.request["name"], "u": os.environ.get("USER", "")}
        try:
            return os.open(output.fill(pattern, values), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Failure("Could not open stdin file: %s" % error.strerror) from None

    def _read_file_for_missing_task(self) -> None:
        """A number that no task has is the name of a file, which all tasks read."""
        if self.input_rank == ALL_TASKS or self.input_rank < len(self.ranks) or self.terminal is not None:
            return
        self.input_rank = ALL_TASKS
        try:
            self.input = self._open_input_file(str(self.request["input"]))
        except Failure as failure:
            say("error: %s" % failure)
            self.failed = 1
            self.input = None
            self._hang_up()

    def _feed(self) -> None:
        assert self.input is not None
        try:
            data = os.read(self.input, PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for part in self.parts:
            part.channel.send(messages.stream(0, self.input_rank, data))
        self.untaken += len(self.parts)
        if not data:
            self.input = None

    def _take_terminal(self) -> None:
        """--pty: the terminal whose size and keys are the first task's. Without one, the tasks have none either."""
        descriptor = self.request.get("pty")
        if descriptor is None:
            return
        from slurmk.stepd import terminal

        option = "--pty=%d" % descriptor if descriptor else "--pty"
        try:
            self.terminal = terminal.Terminal(int(descriptor))
        except terminal.NoTerminal as error:
            say("error: %s" % error)
            say("error: Not using a pseudo-terminal, disregarding %s option" % option)
            return
        self.input_rank = 0
        port = self.address.rpartition(":")[2]
        told = self.terminal.variables(int(port) if port.isdigit() else 0)
        self.environment = [entry for entry in self.environment if entry.partition("=")[0] not in told]
        self.environment += ["%s=%s" % pair for pair in told.items()]

    def _resize(self) -> None:
        if self.terminal is not None and self.created:
            try:
                rows, columns = self.terminal.size()
            except OSError:
                return
            self._tell({"kind": "window", "rows": rows, "columns": columns})

    def _restore_terminal(self) -> None:
        if self.terminal is not None:
            self.terminal.restore()
            raw(False)
            self.terminal = None

    # ---------------------------------------------------------------- programs before and after

    def _send_program(self) -> bool:
        """--bcast: have the program on all nodes before the tasks start; when that fails, so does the step."""
        from slurmk.stepd import programs, sbcast

        sent = self.request["bcast"]
        folder = sent.get("folder")
        name = sent.get("path") or programs.bcast_name(folder, self.created["job"], self.created["step"])
        settings = dict(
            sent, destination=name, force=True, by_node=folder is not None, say=say, nodes=list(self.created["nodes"])
        )
        try:
            connection = messages.dial(self.address, "srun", {"kind": "broadcast"}, self.secret)
            code = sbcast.send_all(settings, connection)
            connection.close()
        except (OSError, KeyError, ValueError, wire.WireError) as error:
            say("error: %s" % error)
            code = 1
        if code:
            say("fatal: Failed to broadcast '%s'. Step launch aborted." % sent["source"])
            self.failed = 1
            self._hang_up()
        return not code

    def _hook_environment(self, context: str) -> Dict[str, str]:
        found = dict(entry.partition("=")[::2] for entry in self.environment)
        found.update(self.created.get("variables") or {})
        found["SLURM_SCRIPT_CONTEXT"] = context
        return found

    def _run_prolog(self) -> None:
        """--prolog: run here before the tasks start. When it fails, so does the step."""
        program = self.request.get("prolog")
        if not program:
            return
        from slurmk.stepd import hooks

        status = hooks.run_of_srun(program, self.request["argv"], self._hook_environment("prolog_srun"), say)
        if status:
            self._go()
            say("error: srun prolog failed rc = %d. Aborting step." % texts.exit_code(status))
            say("%s aborted before step completely launched." % self.name)
            self.failed = 1
            self._say_aborted()
            self._kill(signal.SIGKILL, texts.by_signal(signal.SIGKILL))

    def _run_epilog(self) -> None:
        """--epilog: run here when the step is over, without its input."""
        program = self.request.get("epilog")
        if not program or not self.created:
            return
        from slurmk.stepd import hooks

        os.close(0)
        status = hooks.run_of_srun(program, self.request["argv"], self._hook_environment("epilog_srun"), say)
        if status:
            say("error: srun epilog failed status=%d" % texts.exit_code(status))


_line_end = b"\n"


def raw(yes: bool) -> None:
    """Whether the terminal is raw, where a line's end does not bring the cursor back."""
    global _line_end
    _line_end = b"\r\n" if yes else b"\n"


def say(text: str) -> None:
    """A line on standard error, as srun says it."""
    try:
        os.write(2, ("srun: %s" % text).encode("utf-8", "surrogateescape") + _line_end)
    except OSError:
        pass


def own_environment() -> List[str]:
    """The environment of this process without what is meant for srun alone."""
    return [entry.decode("utf-8", "surrogateescape") for entry in own_variables((b"SLURMK_",))]


def with_niceness(environment: List[str]) -> List[str]:
    """The environment with the niceness of this process, which the tasks' stepd takes over where the site wants that."""
    others = [entry for entry in environment if not entry.startswith(NICENESS + "=")]
    return [*others, "%s=%d" % (NICENESS, os.nice(0))]


def own_limits(names: str) -> Dict[str, Optional[int]]:
    """The soft limits of this process with these names (``CPU,NOFILE``); None is no limit."""
    import resource

    found: Dict[str, Optional[int]] = {}
    for name in names.split(","):
        number = getattr(resource, "RLIMIT_" + name, None)
        if number is not None:
            soft = resource.getrlimit(number)[0]
            found[name] = None if soft == resource.RLIM_INFINITY else soft
    return found


def step_number(address: str, secret: str) -> int:
    """A number for a step that is not of the het job's first component, where all of its steps are counted."""
    try:
        connection = messages.dial(address, "srun", {"kind": "number"}, secret)
        number = int(messages.receive_message(connection)["number"])
        connection.close()
    except (OSError, KeyError, ValueError, wire.WireError) as error:
        raise Failure("Unable to create step: %s" % error) from None
    return number


def check_program(request: Message) -> None:
    """Find the program here where it has to be here, for --bcast and SLURM_TEST_EXEC. Raises Fatal."""
    sent = request.get("bcast")
    if request.get("multi_prog") is not None or not (sent or "SLURM_TEST_EXEC" in os.environ):
        return
    from slurmk.stepd import tasks

    found = os.path.join(request["cwd"], tasks.find(request["argv"][0], os.environ.get("PATH", os.defpath)))
    if not (os.path.isfile(found) and os.access(found, os.X_OK)):
        raise Fatal("Can not execute %s" % request["argv"][0])
    if sent:
        sent["source"] = found


def requested(environment: Mapping[str, str]) -> Message:
    """The step request, put together from its pieces."""
    pieces = [environment.get("SLURMK_STEP", "")]
    while "SLURMK_STEP_%d" % len(pieces) in environment:
        pieces.append(environment["SLURMK_STEP_%d" % len(pieces)])
    try:
        request = json.loads("".join(pieces))
    except ValueError:
        request = None
    if not isinstance(request, dict):
        raise Failure("the step to run is not described")
    return request


def give_back(request: Message, others: Sequence[Part]) -> None:
    """End the allocation that was made for a step which did not come about."""
    if not request.get("owns_allocation"):
        return
    own = os.environ.get("SLURMK_STEP_MANAGER", ""), os.environ.get("SLURMK_JOB_SECRET", "")
    for address, secret in (own, *((part.address, part.secret) for part in others)):
        try:
            connection = messages.dial(address, "srun", {"kind": "hold"}, secret)
            connection.sendall(messages.pack({"kind": "return", "status": 1 << 8}))
            messages.receive_message(connection)
            connection.close()
        except (OSError, ValueError, wire.WireError):
            continue  # the job is over


def main(arguments: List[str]) -> int:
    """Run the step that the environment describes."""
    set_name("srun")
    request: Message = {}
    others: List[Part] = []
    try:
        request = requested(os.environ)
        check_program(request)
        environment = own_environment() if request.get("environment") is None else list(request.pop("environment"))
        environment = with_niceness(environment)
        address = os.environ.get("SLURMK_STEP_MANAGER", "")
        if not address:
            raise Failure("Unable to create step for job %s: its step manager is not known" % request.get("job_id"))
        secret = os.environ.get("SLURMK_JOB_SECRET", "")
        others = [Part(each["request"], each["address"], each["secret"]) for each in request.pop("others", None) or ()]
        counter = request.pop("counter", None)
        if counter:
            number = step_number(counter["address"], counter["secret"])
            for each in (request, *(part.request for part in others)):
                each["number"] = number
        code = Srun(request, environment, address, secret, others).run()
    except Failure as failure:
        say("%s: %s" % (failure.word, failure))
        code = 1
        give_back(request, others)
    sys.stdout.flush()
    return code
