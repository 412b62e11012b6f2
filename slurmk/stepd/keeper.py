"""The process that keeps the tasks of one step on one node.

It is forked by the node's stepd, starts the tasks, carries their output away and input to them, measures them, and does
not end before every process below it has: orphans become its children (a subreaper's right), so a task that forks twice
is still found. When stepd or the step manager goes away, the connection ends, and the keeper ends its tasks: nothing of
a job outlives its stepd.

Messages to it: ``signal`` (signal, whole), ``kill`` (signal, kill_wait, text), ``say`` (text), ``window`` (rows,
columns), and STREAM frames of input. From it: ``running`` (processes), ``exit`` (rank, status), ``taken``, ``failed``
(text, errno), ``done`` (usage), and STREAM frames of output.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import select
import signal
import time

from slurmk import wire
from slurmk.stepd import binding, cgroup, hooks, messages, output, processes, tasks, texts, usage
from slurmk.stepd.messages import Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque, Dict, List, Mapping, Optional, Sequence, Set, Tuple

    from slurmk.stepd.srun import Sink

    Specification = Mapping[str, Any]

ALL_TASKS = 0xFFFFFFFF
"""Task number of a stream that is for, or from, no single task."""

FIRST_SAMPLES = (0.1, 1.0)
SAMPLE_SECONDS = 5.0
LONGEST_BETWEEN = 86400.0
"""When tasks are measured: so many seconds after their start, and then this often."""

DRAIN_SECONDS = 3.0
"""How long output of tasks that are gone is waited for, should a process elsewhere hold their pipes."""

LEAVE_SECONDS = 5.0
"""How long the step manager may take to hear the last of it."""

PIECE = 65536


SEVERITIES = ("quiet", "fatal", "error", "info", "verbose", "debug", "debug2")
"""Words of --slurmd-debug, each by its number."""

VERBOSE, DEBUG = SEVERITIES.index("verbose"), SEVERITIES.index("debug")

BIND_ERROR = 4032
"""Slurm's number for a binding that cannot be."""


def _limits(specification: Mapping[str, Any]) -> Dict[str, Optional[int]]:
    """The soft limits of a task: those of its submitter, and of resident memory what its job or step has on the node."""
    limits: Dict[str, Optional[int]] = dict(specification.get("limits") or {})
    if specification.get("resident_limit"):
        limits["RSS"] = int(specification["resident_limit"])
    return limits


def take_niceness(environment: Dict[str, str], mode: str) -> Optional[int]:
    """The niceness to give to a task, None to leave it as it is. ``mode`` is PropagatePrioProcess of slurm.conf: with 1 it is
    that of the submitting command, with 2 it is also above this process's. Then it goes out of the environment."""
    if mode not in ("1", "2"):
        return None
    told = environment.pop(processes.NICENESS, "")
    try:
        nice = min(max(int(told), -20), 19)
    except ValueError:
        nice = 0
    return max(nice, os.nice(0) + 1) if mode == "2" else nice


class Refused(OSError):
    """The step cannot be launched here: why, Slurm's number for it, and lines that say more."""

    def __init__(self, number: int, text: str, code: int, lines: Sequence[str]) -> None:
        super().__init__(number, text)
        self.code = code
        self.lines = list(lines)


class Task:
    """One task: what it was started with, its process, and the ends of its pipes that this process holds."""

    def __init__(self, specification: Mapping[str, Any]) -> None:
        self.specification = specification
        self.rank: int = specification["rank"]
        self.process = 0
        self.status: Optional[int] = None
        self.measures = usage.empty()
        self.input: Optional[int] = None
        self.waiting_input: Deque[memoryview] = collections.deque()
        self.input_ends = False
        self.ended: Optional[int] = None  # its status, while epilogs run
        self.epilogs: List[hooks.TaskHook] = []
        self.epilog_until: Optional[float] = None
        self.memory: Optional[binding.MemoryBinding] = None
        self.plan: Optional[tasks.Plan] = None  # how its epilogs are started


class Keeper:
    """The tasks of one step on one node. ``control`` is this node's stepd, ``manager`` the step manager (may be the same)."""

    def __init__(self, specification: Specification, control: Channel, manager: Channel) -> None:
        self.specification = specification
        self.control = control
        self.manager = manager
        self.identity = processes.Identity(specification["uid"], specification["gid"], specification["groups"])
        self.tasks = [Task(each) for each in specification["tasks"]]
        self.pipes: Dict[int, Tuple[int, int]] = {}  # read end: stream, rank
        self.sinks: Dict[int, Sink] = {}  # read ends of pipes whose lines get labels on the way to a file
        self.behind: Dict[int, int] = {}  # the file behind the write end of such a pipe
        self.begun: Set[str] = set()  # files that a task writes to already
        self.error_file: Optional[int] = None
        self.kill_at: Optional[float] = None
        self.aborted = False
        self.owed = 0  # frames of input that were not yet taken
        self._own_size = usage.own_size()
        self._later = b""
        self.group = cgroup.Group(specification["group"])
        self.machine: Optional[binding.Machine] = None
        self.binding: Optional[binding.Binding] = None
        self._wake, self._wake_end = os.pipe()

    def run(self) -> None:
        """Start the tasks and stay until nothing of them is left."""
        os.set_blocking(self._wake, False)
        os.set_blocking(self._wake_end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        self.group.make(int(self.specification.get("memory_limit") or 0))
        try:
            self._start()
        except OSError as error:
            self._fail(error)
            return
        self.manager.message({"kind": "running", "processes": [task.process for task in self.tasks]})
        self._fine_detail("Sending launch resp rc=0")
        self._serve()
        self._end_descendants()
        self._tell_out_of_memory()
        self._fine_detail("Waiting for IO")
        self._drain()
        self.manager.message({"kind": "done", "usage": self._usage()})
        self.group.remove()
        self._leave()

    # ---------------------------------------------------------------- start

    def _start(self) -> None:
        self._warn_of_directory()
        self._bind()
        if self.specification.get("debug"):
            level = SEVERITIES[min(int(self.specification["debug"]), len(SEVERITIES) - 1)]
            self._detail("debug levels are stderr='%s', logfile='info', syslog='quiet'" % level)
        self._fine_detail("IO handler started pid=%d" % os.getpid())
        self._detail("starting %d tasks" % len(self.tasks))
        for local, task in enumerate(self.tasks):
            files, ours = self._files(task)
            plan = self._plan(task, local, files)
            task.process = tasks.start(plan)
            self._tell_bound(task, local)
            for line in task.specification.get("said") or ():
                stamped = texts.stepd_line(line) if line.startswith("error: ") else line.encode() + b"\n"
                self._write_error(stamped, task.rank)
            now = time.strftime("%Y-%m-%dT%H:%M:%S")
            self._detail("task %d (%d) started %s" % (task.rank, task.process, now))
            if self.specification.get("task_epilog"):
                task.epilogs = hooks.task_epilogs(*self.specification["task_epilog"])
                first = self.tasks[0].plan
                task.plan = plan.again(os.dup(files.error if first is None else first.files.error))
            for descriptor in ours:
                os.close(descriptor)

    def _plan(self, task: Task, local: int, files: tasks.Files) -> tasks.Plan:
        specification = self.specification
        environment = dict(specification["environment"], **task.specification["environment"])
        cpus = None
        if self.binding is not None and self.machine is not None:
            environment.update(self.binding.wish.variables("SLURM_CPU_BIND"))
            cpus = self.binding.masks[local]
            if specification["binding"]["memory"]:
                wish = binding.read(specification["binding"]["memory"])
                task.memory = binding.MemoryBinding(wish, self.machine, local, cpus)
        return tasks.Plan(
            task.specification["argv"],
            environment,
            specification["directory"],
            specification["umask"],
            self.identity,
            files,
            group=self.group,
            limits=_limits(specification),
            nice=take_niceness(environment, str(specification.get("propagate_priority"))),
            cpus=cpus,
            memory=task.memory,
            held=bool(specification.get("held")),
            prologs=hooks.task_prologs(*specification["task_prolog"]) if specification.get("task_prolog") else (),
        )

    def _detail(self, text: str) -> None:
        """What is said where --slurmd-debug asks for much."""
        if int(self.specification.get("debug") or 0) >= VERBOSE:
            self._write_error(texts.stepd_line(text))

    def _fine_detail(self, text: str) -> None:
        """What is said where it asks for more."""
        if int(self.specification.get("debug") or 0) >= DEBUG:
            self._write_error(texts.stepd_line("debug:  " + text))

    def _bind(self) -> None:
        """Find out which CPUs the tasks use. Raises Refused."""
        asked = self.specification.get("binding")
        if asked is None:
            return
        self.machine = binding.this_machine()
        try:
            self.binding = binding.bind(binding.read(asked["wish"]), self.machine, asked)
        except binding.Unbindable as error:
            raise Refused(errno.ECANCELED, str(error), BIND_ERROR, [binding.OUTSIDE % error.allocated]) from None

    def _tell_bound(self, task: Task, local: int) -> None:
        """The lines of --cpu-bind=verbose and --mem-bind=verbose."""
        if self.binding is None or self.machine is None:
            return
        place = (task.rank, local, task.process)
        if self.binding.wish.verbose:
            self._write_error(binding.line(self.binding, self.specification["node"], *place, self.machine))
        if task.memory is not None and task.memory.wish.verbose:
            self._write_error(task.memory.line(*place), task.rank)

    def _warn_of_directory(self) -> None:
        """Said once for the step on this node, before each task says it for itself."""
        directory = self.specification["directory"]
        try:
            with self.identity.borrowed():
                os.stat(os.path.join(directory, "."))
        except OSError as error:
            text = "couldn't chdir to `%s': %s: going to /tmp instead" % (directory, error.strerror)
            self._later = texts.stepd_error(text)
        else:
            self._later = b""

    def _files(self, task: Task) -> Tuple[tasks.Files, List[int]]:
        """The task's descriptors, and those of them that this process closes once it is started."""
        what = task.specification
        if self.specification.get("pty") and not task.rank:
            return self._terminal(task)
        ours = []
        if what["stdin"] == "stream":
            standard_input, task.input = os.pipe()
            os.set_blocking(task.input, False)
        else:
            standard_input = output.open_input(what["stdin"], self.identity)
        ours.append(standard_input)
        out = self._sink(what["stdout"], 1, task.rank)
        ours.append(out)
        error = out
        if what["stderr"] != "stdout":
            error = self._sink(what["stderr"], 2, task.rank)
            ours.append(error)
        if self.error_file is None and (what["stderr"] if what["stderr"] != "stdout" else what["stdout"]) != "stream":
            self.error_file = os.dup(self.behind.get(error, error))
        if self._later:
            self._write_error(self._later)
            self._later = b""
        return tasks.Files(standard_input, out, error), ours

    def _sink(self, what: Any, stream: int, rank: int) -> int:
        """Where a stream of a task goes: ``stream``, ``null`` or {"path", "append"}."""
        if what == "stream":
            read, write = os.pipe()
            os.set_blocking(read, False)
            self.pipes[read] = (stream, rank)
            return write
        if what == "null":
            return os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
        path = os.path.join(self.specification["directory"], what["path"])
        append = what["append"] or path in self.begun
        self.begun.add(path)
        try:
            file = output.open_output(path, append, self.identity, self.specification["umask"])
        except OSError as error:
            raise OSError(error.errno, "Could not open %s file %s: %s" % (_STREAMS[stream], path, error.strerror)) from None
        return self._labelled(file, stream, rank, what) if what.get("label") else file

    def _labelled(self, file: int, stream: int, rank: int, what: Mapping[str, Any]) -> int:
        """A pipe to a file, with the task's number before each line."""
        from slurmk.stepd.srun import Sink

        read, write = os.pipe()
        os.set_blocking(read, False)
        self.pipes[read] = (stream, rank)
        self.behind[write] = file
        self.sinks[read] = Sink(file, int(what["label"]), not what.get("unbuffered"))
        return write

    def _terminal(self, task: Task) -> Tuple[tasks.Files, List[int]]:
        import fcntl
        import pty
        import struct
        import termios

        ours, theirs = pty.openpty()
        rows, columns = self.specification["pty"]
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if os.geteuid() == 0:
            os.fchown(theirs, self.identity.user_id, -1)
        os.set_blocking(ours, False)
        self.pipes[ours] = (1, task.rank)
        task.input = os.dup(ours)
        os.set_blocking(task.input, False)
        return tasks.Files(theirs, theirs, theirs, terminal=True), [theirs]

    def _fail(self, error: OSError) -> None:
        """The step cannot be started here: end what was started, say why."""
        self._kill_all()
        told: Dict[str, Any] = {"kind": "failed", "text": error.strerror, "errno": error.errno or 1}
        if isinstance(error, Refused):
            told.update(errno=error.code, lines=error.lines)
        self.manager.message(told)
        self._end_descendants()
        self.group.remove()
        self._leave()

    # ---------------------------------------------------------------- while tasks run

    def _serve(self) -> None:
        first = [time.monotonic() + seconds for seconds in FIRST_SAMPLES]
        between = min(float(self.specification.get("sample_seconds") or SAMPLE_SECONDS), LONGEST_BETWEEN)
        sample_at = first.pop(0)
        while any(task.status is None for task in self.tasks):
            epilogs = [task.epilog_until for task in self.tasks if task.epilog_until is not None]
            self._turn(min([sample_at, *epilogs] + ([self.kill_at] if self.kill_at is not None else [])))
            now = time.monotonic()
            for task in self.tasks:
                if task.epilog_until is not None and now >= task.epilog_until:
                    task.epilog_until = None
                    processes.send_signal([task.process, *processes.descendants(task.process)], signal.SIGKILL)
            if self.kill_at is not None and now >= self.kill_at:
                self.kill_at = now + 1.0
                self._kill_all()
            if now >= sample_at:
                sample_at = first.pop(0) if first else now + between
                for task in self.tasks:
                    if task.status is None:
                        usage.sample(task.process, task.measures)

    def _turn(self, until: float) -> None:
        """Wait for something to happen, at most until then, and handle it."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        for channel in self._channels():
            poll.register(channel, select.POLLIN | (select.POLLOUT if channel.waiting else 0))
        if not self.manager.full:
            for descriptor in self.pipes:
                poll.register(descriptor, select.POLLIN)
        for task in self.tasks:
            if task.input is not None and task.waiting_input:
                poll.register(task.input, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(max(0.0, until - time.monotonic()) * 1000)}
        for descriptor in [each for each in self.pipes if each in ready]:
            self._carry(descriptor)
        for task in self.tasks:
            if task.input is not None and task.input in ready:
                self._feed(task)
        for channel in self._channels():
            if channel.fileno() in ready:
                self._listen(channel)
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        self._reap()

    def _channels(self) -> List[Channel]:
        both = [self.control] if self.control is self.manager else [self.control, self.manager]
        return [channel for channel in both if not channel.closed]

    def _listen(self, channel: Channel) -> None:
        channel.flush()
        for kind, payload in channel.receive():
            if kind == wire.STREAM:
                self._take_input(*messages.unpack_stream(payload))
            elif kind == wire.MESSAGE:
                self._obey(messages.unpack(payload))
        if channel.closed:
            self._abort()

    def _abort(self) -> None:
        """Nobody is there to tell any more: end everything now."""
        self.aborted = True
        self.kill_at = time.monotonic()

    def _obey(self, message: Mapping[str, Any]) -> None:
        kind = message.get("kind")
        if kind == "signal":
            self._signal(int(message["signal"]), bool(message.get("whole", True)))
        elif kind == "kill":
            if message.get("text"):
                self._write_error(str(message["text"]).encode("utf-8", "surrogateescape"))
            number = int(message.get("signal", signal.SIGTERM))
            if number != signal.SIGKILL:
                self._signal(signal.SIGCONT, True)
            if number:
                self._signal(number, True)
            at = time.monotonic() + float(message.get("kill_wait", 0))
            self.kill_at = at if self.kill_at is None else min(at, self.kill_at)
        elif kind == "say":
            self._write_error(str(message["text"]).encode("utf-8", "surrogateescape"))
        elif kind == "window":
            self._resize(int(message["rows"]), int(message["columns"]))

    def _signal(self, number: int, whole: bool) -> None:
        if whole:
            processes.send_signal(processes.descendants(os.getpid()), number)
        else:
            processes.send_signal([task.process for task in self.tasks if task.status is None], number)

    def _resize(self, rows: int, columns: int) -> None:
        import fcntl
        import struct
        import termios

        for task in self.tasks:
            if task.input is not None:
                with contextlib.suppress(OSError):
                    fcntl.ioctl(task.input, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _write_error(self, text: bytes, rank: Optional[int] = None) -> None:
        """To the step's standard error, as the first task's here unless another is named."""
        if self.error_file is None:
            self.manager.send(messages.stream(2, self.tasks[0].rank if rank is None else rank, text))
        else:
            with contextlib.suppress(OSError):
                os.write(self.error_file, text)

    def _carry(self, descriptor: int) -> None:
        """Move output from a pipe to the manager."""
        stream, rank = self.pipes[descriptor]
        try:
            data = os.read(descriptor, PIECE)
        except BlockingIOError:
            return
        except OSError:  # the other end of a terminal is closed
            data = b""
        if data:
            self._write(descriptor, stream, rank, data)
        else:
            self._close_pipe(descriptor)

    def _write(self, descriptor: int, stream: int, rank: int, data: bytes) -> None:
        sink = self.sinks.get(descriptor)
        if sink is None:
            self.manager.send(messages.stream(stream, rank, data))
        else:
            sink.take(rank, data)

    def _close_pipe(self, descriptor: int) -> None:
        stream, rank = self.pipes.pop(descriptor)
        os.close(descriptor)
        self._write(descriptor, stream, rank, b"")
        if descriptor in self.sinks:
            os.close(self.sinks.pop(descriptor).descriptor)

    def _take_input(self, stream: int, rank: int, data: bytes) -> None:
        self.owed += 1
        for task in self.tasks:
            if task.input is not None and rank in (task.rank, ALL_TASKS):
                if data:
                    task.waiting_input.append(memoryview(data))
                else:
                    task.input_ends = True
                self._feed(task)
        self._thank()

    def _feed(self, task: Task) -> None:
        """Write what the task's input takes."""
        assert task.input is not None
        try:
            while task.waiting_input:
                written = os.write(task.input, task.waiting_input[0])
                if written == len(task.waiting_input[0]):
                    task.waiting_input.popleft()
                else:
                    task.waiting_input[0] = task.waiting_input[0][written:]
        except BlockingIOError:
            return
        except OSError:
            task.waiting_input.clear()
            task.input_ends = True
        if task.input_ends:
            os.close(task.input)
            task.input = None
        self._thank()

    def _thank(self) -> None:
        """Once all input has gone to the tasks, ask for more."""
        if self.owed and not any(task.waiting_input for task in self.tasks):
            for _ in range(self.owed):
                self.manager.message({"kind": "taken"})
            self.owed = 0

    def _reap(self) -> None:
        while True:
            try:
                process, status, final = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                return
            task = next((task for task in self.tasks if task.process == process), None)
            if task is None:
                usage.add(self.tasks[0].measures, final)
                continue
            if (status or not self.group.shared or self.specification["step"] == "batch") and self.group.oom_kills():
                status = texts.OUT_OF_MEMORY
                if self.specification.get("oom_kill_step"):
                    self._kill_all()
            if task.ended is None:
                self._detail("task %d (%d) %s" % (task.rank, process, texts.exited(status)))
                usage.close(task.measures, final, self._own_size)
                task.waiting_input.clear()
                self._thank()
            elif status:
                code = os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                failed = "%s failed status=%d" % (task.epilogs.pop(0).failure, code)
                self._write_error(texts.stepd_error(failed))
            else:
                task.epilogs.pop(0)
            task.ended = status if task.ended is None else task.ended
            if task.epilogs and task.plan is not None:
                task.process = hooks.start_task_epilog(task.epilogs[0], task.plan)
                task.epilog_until = time.monotonic() + hooks.EPILOG_SECONDS
                continue
            task.epilog_until = None
            if task.plan is not None:
                os.close(task.plan.files.input)
                os.close(task.plan.files.error)
                task.plan = None
            task.status = task.ended
            self.manager.message({"kind": "exit", "rank": task.rank, "status": task.status})

    # ---------------------------------------------------------------- the end

    def _end_descendants(self) -> None:
        """Kill what the tasks left behind; give up on what the kernel does not let go of."""
        end = time.monotonic() + 60.0
        while time.monotonic() < end:
            if not processes.descendants(os.getpid()) and not self.group.processes():
                self._reap()
                return
            self._kill_all()
            self._turn(time.monotonic() + 0.02)

    def _kill_all(self) -> None:
        self.group.kill()
        processes.send_signal(processes.descendants(os.getpid()), signal.SIGKILL)

    def _tell_out_of_memory(self) -> None:
        if self.group.shared and not any(task.status == texts.OUT_OF_MEMORY for task in self.tasks):
            return
        kills = self.group.oom_kills()
        if kills:
            self._write_error(texts.out_of_memory(kills, "%s.%s" % (self.specification["job"], self.specification["step"])))

    def _drain(self) -> None:
        end = time.monotonic() + DRAIN_SECONDS
        while self.pipes and not self.manager.closed:
            now = time.monotonic()
            if now >= end and not self.manager.waiting and not self._output_left():
                break
            self._turn(min(end, now + 1.0) if now < end else now + 1.0)
        for descriptor in list(self.pipes):
            self._close_pipe(descriptor)

    def _output_left(self) -> bool:
        """True when a pipe holds output that was not read, as happens behind a slow reader."""
        poll = select.poll()
        for descriptor in self.pipes:
            poll.register(descriptor, select.POLLIN)
        return any(event & select.POLLIN for _, event in poll.poll(0))

    def _leave(self) -> None:
        """See to it that what was said last arrives."""
        end = time.monotonic() + LEAVE_SECONDS
        while self.manager.waiting and not self.manager.closed and time.monotonic() < end:
            poll = select.poll()
            poll.register(self.manager, select.POLLOUT)
            poll.poll(200)
            self.manager.flush()
        if not self.manager.closed:
            self.manager.finish(LEAVE_SECONDS)

    def _usage(self) -> Sequence[Mapping[str, Any]]:
        for name, value in self.group.cpu().items():  # processes that nobody waited for are in this sum alone
            unseen = value - sum(task.measures[name] for task in self.tasks)
            self.tasks[0].measures[name] += max(0, unseen)
        return [{"rank": task.rank, "node": self.specification["node"], "measures": task.measures} for task in self.tasks]


_STREAMS = {1: "stdout", 2: "stderr"}


def run(specification: Specification, control: Channel) -> None:
    """The whole life of a keeper in a freshly forked process, which it ends."""
    code = 1
    try:
        processes.reset_signals()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        os.setsid()
        processes.close_all_but([control.fileno()])
        processes.adopt_orphans()
        processes.set_name("stepd %s.%s" % (specification["job"], specification["step"]))
        manager = control
        if specification.get("manager"):
            opening = {"kind": "keeper", "step": specification["step"], "node": specification["node"]}
            manager = Channel(messages.dial(specification["manager"], "stepd", opening, specification["secret"]))
        Keeper(specification, control, manager).run()
        code = 0
    except (OSError, wire.WireError):
        pass
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)
