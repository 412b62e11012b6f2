"""The step manager: in the stepd of a job's first node, it makes the job's steps.

It listens for srun (one connection a step), for the stepds of the job's other nodes (peers) and for their keepers. A step
that finds no free resources waits in line. What a step's keepers say goes to its srun, and back; when srun's connection
ends, its step is killed.

From sattach: ``attach`` (step), and STREAM frames of input. To sattach: ``refused`` (text), ``attached`` (ranks, nodes),
``exit``, ``ended`` and STREAM frames of output, at first those that came lately.

From sbcast: ``broadcast``, then any number of ``write`` (see ``questions``). To sbcast for each: ``written`` (faults). Peers
are told the same, and answer ``written`` (id, error, errno).

From srun in a het job: ``number``. To it: ``number`` (number).

From salloc: ``hold``, then ``return`` (status). To salloc: ``revoked`` (timed_out), ``returned``, ``notice`` (text).

From srun --async: ``step``, and to it what ``asynchronous`` says.

From srun: ``step`` (request, environment, owns_allocation, pty, address), ``go`` (het), ``signal`` (signal), ``kill``
(signal, cause, kill_wait), ``window`` (rows, columns), ``release``, and STREAM frames of input. To srun: ``refused``
(text), ``waiting`` (text), ``created`` (step, nodes, ranks, …), ``running`` (node, tasks, processes), ``exit`` (node, rank,
status), ``failed`` (node, text, errno), ``misconfigured`` (lines), ``aborting``, ``taken``, ``ended``, ``returned``, ``notice``
(text), and STREAM frames of output.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import signal
import socket
import time

from slurmk import wire
from slurmk.stepd import (
    asynchronous,
    environment,
    layout,
    messages,
    output,
    ports,
    programs,
    questions,
    site_programs,
    texts,
    usage,
)
from slurmk.stepd.environment import INTERACTIVE_STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque, Dict, List, Mapping, Optional, Sequence, Set

    from slurmk.stepd.node import Node

    Message = Dict[str, Any]

SOCKET_FILE = "manager.sock"

LONGEST_PATH = 100
"""Bytes of a Unix socket's path that any system takes."""

PEER_SECONDS = 60.0
"""How long a step waits for a stepd that was not heard of yet."""

LONGEST_PROLOG = 86400.0
"""Seconds that the start of a step waits for a prolog that has no limit."""

PROLOG_FAILED = 54
"""The wait status of tasks that a failed prolog kept from starting, as in Slurm (0:54)."""

PROLOG_FAILED_ON = "Prolog failure on node "
"""What who asked for the allocation is told besides, once."""

REGISTER_SECONDS = 30.0

LAST_STEP = 0xFFFFFFEF
"""The highest number of a step that srun makes."""

LEAVE_SECONDS = 10.0
"""How long an srun that was told the end may take to go."""

GATED = ("prolog", "bcast", "het")
"""What has a step's tasks wait until srun says ``go``."""

OF_USERS = ("step", "hold", "attach", "broadcast", "number")
"""Kinds of connections that programs of the job's user make: they hold what ``messages.step_secret`` gives them."""

KEPT_OUTPUT = 256 * 1024
"""Bytes of a step's latest output that sattach is shown when it comes."""

MOST_BEHIND = 4 * 1024 * 1024
"""Bytes that an sattach may be behind before it is dropped: nobody waits for it."""

RETURN_SECONDS = 5.0
"""How long salloc waits for the controller to know that its allocation was given back."""

KILLED = signal.SIGKILL.value
"""Wait status of a task whose keeper went away."""


class KeeperLink:
    """The connection of one keeper of a step."""

    def __init__(self, node: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.node = node
        self.reader = reader
        self.writer = writer
        self.over = asyncio.Event()

    def tell(self, message: Mapping[str, Any]) -> None:
        if not self.writer.is_closing():
            self.writer.write(messages.pack(dict(message)))


class PrologFailed(Exception):
    """The site's prolog failed on a node that tasks should start on."""


class Step:
    """One step that was created."""

    def __init__(
        self, job: Mapping[str, Any], number: int, request: Mapping[str, Any], made: layout.Layout, nodes: List[str]
    ) -> None:
        self.job = job  # as it was then: it may give nodes back
        self.number = number
        self.request = request
        self.layout = made
        self.nodes = nodes
        self.start_time = int(time.time())
        self.keepers: Dict[str, KeeperLink] = {}
        self.expected: Dict[str, asyncio.Future[KeeperLink]] = {}
        self.statuses: Dict[int, int] = {}
        self.measured: List[Mapping[str, Any]] = []
        self.owed: List[int] = []  # for each frame of input, how many keepers have not taken it yet
        self.taken: Dict[str, int] = {}
        self.input: List[bytes] = []  # frames that came before all keepers had
        self.met: Set[str] = set()  # nodes whose keepers have come
        self.doom: Message = {}  # the order to end, for keepers that come later
        self.last_words = ""  # the line about that
        self.state = ""  # why it was ended from outside
        self.killed_by: Optional[int] = None  # the uid of who ended it through its srun
        self.writer: Optional[asyncio.StreamWriter] = None
        self.timers: List[asyncio.TimerHandle] = []
        self.time_limit: Optional[int] = request.get("time_limit")  # minutes
        self.limits: List[asyncio.TimerHandle] = []  # what happens at its time limit, and before
        self.running_since = 0.0  # on the loop's clock; 0: not yet
        self.attached: Set[asyncio.StreamWriter] = set()  # sattachs
        self.kept: Deque[bytes] = collections.deque()  # frames of output for sattachs that come later
        self._kept_size = 0
        self.go = asyncio.Event()  # srun has sent the program and run its prolog
        self.released = asyncio.Event()  # the parts in other components, too, need the allocation no more
        self.ports = ""  # reserved for it: 12000-12001
        self.holdings: Sequence[layout.Holding] = ()  # of the job's nodes as they were then
        self.het: Message = {}  # of a step over several components: what the whole is, and where this part begins
        if not any(request.get(name) for name in GATED):
            self.go.set()

    def end(self, link: KeeperLink) -> None:
        """Give a node the order to end; the step's first one says why, if it has tasks left by then."""
        link.tell(dict(self.doom, text=self.last_words) if self.last_words and link.node == self.nodes[0] else self.doom)

    def take_place(self, het: Message) -> None:
        """Number the tasks as the whole step over several components does."""
        if het and not self.go.is_set():
            self.het = het
            first = int(het["first_task"])
            self.layout.ranks = [[first + rank for rank in ranks] for ranks in self.layout.ranks]

    def show(self, frame: bytes, *, keep: bool = True) -> None:
        """A frame for every sattach there is, or will be. One that does not read is dropped."""
        if keep:
            self.kept.append(frame)
            self._kept_size += len(frame)
            while self._kept_size > KEPT_OUTPUT:
                self._kept_size -= len(self.kept.popleft())
        for writer in list(self.attached):
            if writer.is_closing() or writer.transport.get_write_buffer_size() > MOST_BEHIND:
                self.attached.discard(writer)
                writer.transport.abort()
            else:
                writer.write(frame)

    def tell(self, message: Mapping[str, Any]) -> None:
        """To its srun; how its tasks end is for every sattach too."""
        if message.get("kind") in ("exit", "ended"):
            self.show(messages.pack(dict(message)), keep=False)
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(messages.pack(dict(message)))

    @property
    def name(self) -> str:
        """How the step is called behind its job's number."""
        return "interactive" if self.number == INTERACTIVE_STEP else str(self.number)

    @property
    def status(self) -> int:
        """The wait status that stands for all tasks: that of the highest exit code."""
        return max(self.statuses.values(), key=texts.exit_code, default=0)


class StepManager:
    """Serves the steps of ``node``'s job."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.job = node.job
        self.address = ""
        self.port = 0
        self.steps: Dict[int, Step] = {}
        self.holdings = [layout.Holding(share) for share in self.job["nodes"]]
        self._next = 0
        self._first = 0
        self._peers: Dict[str, asyncio.StreamWriter] = {}
        self._peer_came = asyncio.Event()
        self._freed = asyncio.Event()
        self._servers: List[asyncio.AbstractServer] = []
        self._connections: Set[asyncio.StreamWriter] = set()
        self._closed = False
        self._holder: Optional[asyncio.StreamWriter] = None  # salloc's connection
        self._writes: Dict[int, asyncio.Future[Message]] = {}
        self._asked = 0
        self.ports: Set[int] = set()  # that running steps have
        self._owner: Optional[asyncio.StreamWriter] = None  # the connection of an srun that the allocation was made for
        self.owned = False  # by an srun, which gives the allocation back when its step is over
        self._prolog_told = False
        self.submissions = asynchronous.Submissions(self)

    async def listen(self) -> None:
        """Start to serve; ``address`` is then where."""
        host = self.job.get("listen") or "127.0.0.1"
        listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listening.bind((host, 0))
        self.port = listening.getsockname()[1]
        self._servers.append(await asyncio.start_server(self._connected, sock=listening, backlog=512))
        shown = self.job.get("advertise") or host
        self.address = "tcp:%s:%d" % ("[%s]" % shown if ":" in shown else shown, self.port)
        path = os.path.join(self.node.directory, SOCKET_FILE)
        if not self.job.get("advertise") and len(os.fsencode(path)) <= LONGEST_PATH:
            with contextlib.suppress(OSError):
                self._servers.append(await asyncio.start_unix_server(self._connected, path=path, backlog=512))
                os.chmod(path, 0o777)
                self.address = "unix:%s|%s" % (path, self.address)

    def close(self) -> None:
        """Serve no more."""
        self._closed = True
        for server in self._servers:
            server.close()
        for writer in list(self._connections):
            writer.close()
        self._freed.set()

    # ---------------------------------------------------------------- connections

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        if writer.get_extra_info("socket").family != socket.AF_UNIX:
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            messages.notice_death(writer.get_extra_info("socket"))
        try:
            opening = await asyncio.wait_for(self._prove(reader, writer), REGISTER_SECONDS)
            serve = {
                "step": self._serve_srun,
                "hold": self._serve_salloc,
                "attach": self._serve_sattach,
                "number": self._serve_number,
                "broadcast": self._serve_sbcast,
                "peer": self._serve_peer,
                "keeper": self._serve_keeper,
            }.get(opening["kind"])
            if serve is not None:
                await serve(opening, reader, writer)
        except (OSError, wire.WireError, asyncio.IncompleteReadError, asyncio.TimeoutError, ValueError, KeyError, TypeError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _prove(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Message:
        """What who called wants, once both sides have shown that they hold the secret for that."""
        kind, payload = await messages.read_frame(reader, messages.UNPROVEN)
        if kind != wire.HELLO or int(payload.split(b" ")[0]) < wire.OLDEST:
            raise wire.WireError("no HELLO")
        challenge = messages.nonce()
        writer.write(messages.pack({"kind": "nonce", "nonce": challenge}))
        proof = await messages.read_message(reader, messages.UNPROVEN)
        secret = str(self.node.place["secret"])
        if proof["kind"] in OF_USERS:
            secret = messages.step_secret(secret)
        if not messages.proven(secret, challenge, str(proof["kind"]), proof.get("proof")):
            raise wire.WireError("wrong secret")
        writer.write(messages.pack({"kind": "welcome", "proof": messages.proof(secret, str(proof["nonce"]), "manager")}))
        opening = await messages.read_message(reader)
        if opening["kind"] != proof["kind"]:
            raise wire.WireError("the secret was proven for something else")
        return opening

    async def _serve_peer(self, opening: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = str(opening["node"])
        self._peers[name] = writer
        self._peer_came.set()
        try:
            while True:
                kind, payload = await messages.read_frame(reader)
                message = messages.unpack(payload) if kind == wire.MESSAGE else {}
                if message.get("kind") == "written":
                    self._written(int(message["id"]), message)
                elif message.get("kind") == "prolog_failed":
                    self._prolog_failed(name, str(message["step"]))
        finally:
            if self._peers.get(name) is writer:
                del self._peers[name]

    async def all_there(self) -> None:
        """Wait until all of the job's nodes have come, whose prologs are over then (PrologFlags=Alloc)."""
        for share in self.job["nodes"]:
            if share["node"] != self.node.name:
                await self._peer(str(share["node"]))

    def _prolog_failed(self, name: str, number: str) -> None:
        """A node cannot have tasks of that step."""
        step = self.steps.get(int(number)) if number.isdigit() else None
        expected = step.expected.pop(name, None) if step is not None else None
        if expected is not None and not expected.done():
            expected.set_exception(PrologFailed())

    async def _serve_keeper(self, opening: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        step = self.steps.get(int(opening["step"]))
        expected = step.expected.pop(str(opening["node"]), None) if step is not None else None
        if step is None or expected is None or expected.done():
            return
        link = KeeperLink(str(opening["node"]), reader, writer)
        expected.set_result(link)
        await self._listen(step, link)

    # ---------------------------------------------------------------- salloc

    async def _serve_salloc(self, opening: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The allocation is salloc's: it is given back when salloc says so or goes away."""
        self._holder = writer
        if self._closed or self.node.terminating or self.node.timed_out:
            self.revoke(timed_out=self.node.timed_out)
        status = KILLED
        try:
            message = await messages.read_message(reader)
            if message.get("kind") == "return":
                status = int(message["status"]) & 0xFFFF
        finally:
            self._holder = None
            taken_away = self.node.terminating  # before its command came to anything
            report = self.node.allocation_returned(0 if taken_away else status)
        await self.node.reports.acknowledged(report, RETURN_SECONDS)
        writer.write(messages.pack({"kind": "returned"}))
        await _hear_out(reader, writer)

    def revoke(self, *, timed_out: bool) -> None:
        """Tell salloc that its allocation ends."""
        if self._holder is not None and not self._holder.is_closing():
            self._holder.write(messages.pack({"kind": "revoked", "timed_out": timed_out}))

    async def _serve_number(self, opening: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A number for a step in another component of the het job, which counts its steps here."""
        writer.write(messages.pack({"kind": "number", "number": self.next_number()}))
        await _hear_out(reader, writer)

    # ---------------------------------------------------------------- sattach

    async def _serve_sattach(self, opening: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Show a step's output to one more program, and take its input."""
        step = self.steps.get(int(opening["step"]))
        if step is None or step.request.get("asynchronous"):
            _refuse(writer, "Invalid job id specified" if step is None else "Its output is in files (--async)")
            await _hear_out(reader, writer)
            return
        writer.write(messages.pack({"kind": "attached", "nodes": step.nodes, "ranks": step.layout.ranks}))
        writer.writelines(list(step.kept))
        for rank, status in step.statuses.items():
            writer.write(messages.pack({"kind": "exit", "rank": rank, "status": status}))
        step.attached.add(writer)
        try:
            while True:
                kind, payload = await messages.read_frame(reader)
                if kind == wire.STREAM:
                    self._feed(step, wire.encode(wire.STREAM, payload))
        finally:
            step.attached.discard(writer)

    # ---------------------------------------------------------------- sbcast

    async def _serve_sbcast(self, opening: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Write a file of the user's on every node of the job, piece by piece."""
        while True:
            message = await messages.read_message(reader)
            if message.get("kind") != "write":
                return
            faults = await self._write_everywhere(questions.of_file(message))
            writer.write(messages.pack({"kind": "written", "faults": faults}))
            await writer.drain()

    async def _write_everywhere(self, question: Message) -> List[Any]:
        """[node, text, errno] of every node that could not write. Pretended nodes have one file system among them."""
        chosen = [share["node"] for share in self.job["nodes"] if share["node"] in question.get("nodes", (share["node"],))]
        if not chosen:
            raise ValueError("no node of the job is named")
        if self.job.get("place") and not question.get("by_node"):
            chosen = [self.node.name]
        found = await asyncio.gather(*(self._write_on(name, question) for name in chosen if name != self.node.name))
        answers = dict(zip([name for name in chosen if name != self.node.name], found))
        if self.node.name in chosen:
            answers[self.node.name] = questions.answer(self.node, question)
        return [[node, each["error"], each.get("errno") or 5] for node, each in answers.items() if each.get("error")]

    async def _write_on(self, name: str, question: Message) -> Message:
        self._asked += 1
        number = self._asked
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._writes[number] = future
        try:
            peer = await asyncio.wait_for(self._peer(name), PEER_SECONDS)
            peer.write(messages.pack(dict(question, kind="write", id=number)))
            return await asyncio.wait_for(future, PEER_SECONDS)
        except asyncio.TimeoutError:
            return {"error": "Connection timed out", "errno": 110}
        finally:
            self._writes.pop(number, None)

    def _written(self, number: int, answer: Message) -> None:
        future = self._writes.get(number)
        if future is not None and not future.done():
            future.set_result(answer)

    def notify(self, text: str) -> bool:
        """A message to who holds the allocation, salloc or the srun that it was made for; false when that is nobody."""
        for holder in (self._holder, self._owner):
            if holder is not None and not holder.is_closing():
                holder.write(messages.pack({"kind": "notice", "text": text}))
                return True
        return False

    # ---------------------------------------------------------------- one srun

    @property
    def over(self) -> bool:
        """True once there will be no more steps."""
        return self._closed or self.node.terminating or self.node.timed_out

    async def _serve_srun(self, opening: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if opening["request"].get("asynchronous"):
            await self.submissions.serve(opening, writer)
            await _hear_out(reader, writer)
            return
        owns = bool(opening.get("owns_allocation"))
        if owns:
            self.owned, self._owner = True, writer
        status = 1 << 8
        step: Optional[Step] = None
        try:
            step = await self._create(opening, reader, writer)
            if step is not None:
                opening.setdefault("port", self.port)
                status = await self.run(step, opening, reader)
        finally:
            if owns:
                if not writer.is_closing():
                    writer.write(messages.pack({"kind": "returned"}))
                self.node.allocation_returned(status)
        await _hear_out(reader, writer)

    async def _create(self, opening: Message, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Optional[Step]:
        """Lay the step out, waiting for resources where that helps; None when it is refused."""
        request: Message = opening["request"]
        began = time.monotonic()
        waited = False
        gone = asyncio.ensure_future(reader.read(1))
        try:
            while True:
                if self.over:
                    return _refuse(writer, "Job/step already completing or completed")
                try:
                    return self.make(request, writer, waited)
                except layout.Refused as refused:
                    return _refuse(writer, str(refused))
                except layout.Busy as busy:
                    patience = request.get("immediate")
                    if patience is not None and time.monotonic() - began >= patience:
                        return _refuse(writer, str(busy))
                    if not waited:
                        writer.write(messages.pack({"kind": "waiting", "text": str(busy)}))
                    waited = True
                self._freed.clear()
                freed = asyncio.ensure_future(self._freed.wait())
                left = None if patience is None else max(0.0, patience - (time.monotonic() - began))
                await asyncio.wait({freed, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                freed.cancel()
                if gone.done():
                    return None
        finally:
            gone.cancel()

    async def freed(self, cancelled: asyncio.Event) -> None:
        """Wait until a step has given something back, or somebody no longer waits."""
        self._freed.clear()
        waiting = {asyncio.ensure_future(self._freed.wait()), asyncio.ensure_future(cancelled.wait())}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()

    def lay_out(self, request: Message) -> layout.Layout:
        """Where a step would run now. Raises Busy and Refused."""
        if request.get("number") is None and self._next >= int(self.job.get("maximum_step_count") or LAST_STEP):
            raise layout.Refused("Step limit reached for this job")
        return layout.lay_out(self.job, request, self.holdings, self._first)

    def next_number(self) -> int:
        """The number of a step that begins later, or in another component."""
        self._next += 1
        return self._next - 1

    def make(self, request: Message, writer: Optional[asyncio.StreamWriter] = None, waited: bool = False) -> Step:
        """Give a step what it asks for, and tell its srun. Raises Busy and Refused."""
        made = self.lay_out(request)
        number = self._number(request)
        step = Step(self.job, number, request, made, [self.job["nodes"][node]["node"] for node in made.job_nodes])
        step.holdings = self.holdings
        step.ports = ports.reserve(self.job, request, max(made.counts), self.ports)
        self._first = (made.job_nodes[-1] + 1) % len(self.holdings)
        layout.hold(made, self.holdings)
        self.steps[step.number] = step
        step.writer = writer
        told = environment.srun_variables(self.job, step) if request.get("prolog") or request.get("epilog") else {}
        step.tell(
            {
                "kind": "created",
                "variables": told,
                "step": step.name,
                "nodes": step.nodes,
                "ranks": made.ranks,
                "cpus": made.cpus,
                "waited": waited,
                "job": self.job["job"],
                "kill_wait": self.job["kill_wait"],
                "values": output.pattern_values(self.job, step.name, step.nodes[0], 0, 0),
            }
        )
        return step

    def _number(self, request: Message) -> int:
        """The number of a new step: its own where it is a shell of salloc's or part of a step that was numbered elsewhere."""
        if request.get("interactive") and INTERACTIVE_STEP not in self.steps:
            return INTERACTIVE_STEP
        wanted = request.get("number")
        free = wanted is not None and 0 <= int(wanted) <= LAST_STEP and int(wanted) not in self.steps
        number = int(wanted) if free and wanted is not None else self._next
        self._next = max(self._next, number + 1)
        return number

    async def run(self, step: Step, opening: Message, reader: Optional[asyncio.StreamReader] = None) -> int:
        """Start the tasks, and stay until all of the step is over; its wait status. ``reader`` is what its srun says."""
        self.node.reports.add("step_started", step=self._described(step, "RUNNING"))
        listening: List[asyncio.Task[Any]] = []
        following = self.node.spawn(self._follow(step, reader) if reader is not None else asyncio.Event().wait())
        try:
            await self._while_there(step.go, following)
            step.running_since = asyncio.get_running_loop().time()
            self._set_limit(step)
            plan = programs.tasks_of(step.job, step, opening, self.memory_of(step))
            for index, name in enumerate(step.nodes):
                listening.append(self.node.spawn(self._start_on(step, index, name, plan[index])))
            await asyncio.gather(*listening)
        except programs.Misconfigured as error:
            step.tell({"kind": "misconfigured", "lines": error.lines})
            step.statuses.setdefault(0, 1 << 8)
        except (OSError, ValueError) as error:
            step.tell({"kind": "failed", "node": step.nodes[0], "text": str(error), "errno": 1})
            step.statuses.setdefault(0, 1 << 8)
        finally:
            for timer in step.timers:
                timer.cancel()
            self._end(step)
        step.tell({"kind": "ended", "state": step.state})
        if step.request.get("het") and opening.get("owns_allocation"):
            await self._while_there(step.released, following)
        following.cancel()
        await asyncio.wait([following])
        if step.writer is not None:
            with contextlib.suppress(OSError):
                await step.writer.drain()
        return step.status

    async def _while_there(self, word: asyncio.Event, following: asyncio.Task[Any]) -> None:
        """Wait for a word of srun's, as long as srun is there."""
        if not word.is_set():
            waiting = self.node.spawn(word.wait())
            await asyncio.wait({waiting, following}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()

    def _end(self, step: Step) -> None:
        """Give back what the step held, and report how it ended."""
        layout.hold(step.layout, step.holdings, -1)
        self.steps.pop(step.number, None)
        self.ports.difference_update(ports.numbers(step.ports))
        self._freed.set()
        state = step.state or _ended_state(step.status)
        self.node.reports.add("step_ended", step=self._described(step, state))

    def memory_of(self, step: Step) -> List[int]:
        """MiB that the step may use on each of its nodes: all that the job has there, unless a share was asked for."""
        made = step.layout
        return [each or int(step.job["nodes"][node]["memory"]) for node, each in zip(made.job_nodes, made.memory)]

    def _described(self, step: Step, state: str) -> Message:
        request, made = step.request, step.layout
        described = {
            "step": step.number,
            "name": step.name if step.number == INTERACTIVE_STEP else request["name"],
            "state": state,
            "start_time": step.start_time,
            "nodes": step.nodes,
            "tasks": made.tasks,
            "cpus": sum(made.counted),
            "memory": sum(self.memory_of(step)),
            "gres": layout.gres_text(made),
            "submit_line": request.get("submit_line", ""),
            "distribution": made.distribution,
            "cpus_per_task": request.get("cpus_per_task"),
            "input": request.get("input") or "",
            "output": request.get("output") or "",
            "error": request.get("error") or "",
            "time_limit": step.time_limit,
        }
        if state != "RUNNING":
            described.update(end_time=int(time.time()), exit_code=step.status, usage=usage.total(step.measured))
        if state == "CANCELLED" and step.killed_by is not None:
            described["killed_by"] = step.killed_by
        return described

    # ---------------------------------------------------------------- keepers

    async def _start_on(self, step: Step, index: int, name: str, specification: Message) -> None:
        """Have the tasks of one node started, and listen until they are gone."""
        if step.layout.job_nodes[index] == self.node.index:
            if not await self.node.prepared():
                self._not_prepared(step, index, name)
                return
            made = self.node.fork_keeper(specification)
            writer = await made.open()
            await self._listen(step, KeeperLink(name, made.reader, writer))
            return
        expected: asyncio.Future[KeeperLink] = asyncio.get_running_loop().create_future()
        step.expected[name] = expected
        try:
            peer = await asyncio.wait_for(self._peer(name), PEER_SECONDS)
            peer.write(messages.pack({"kind": "keeper", "specification": specification}))
            link = await asyncio.wait_for(asyncio.shield(expected), self._patience)
        except asyncio.TimeoutError:
            self._lost(step, index, name)
            return
        except PrologFailed:
            self._not_prepared(step, index, name)
            return
        await link.over.wait()

    @property
    def _patience(self) -> float:
        """Seconds within which a node must have begun a step's tasks; its prolog may have to run first."""
        if not site_programs.has(self.job, "prolog"):
            return PEER_SECONDS
        seconds = site_programs.timeout(self.job, "prolog")
        return LONGEST_PROLOG if seconds is None else seconds + PEER_SECONDS

    def _not_prepared(self, step: Step, index: int, name: str) -> None:
        for rank in step.layout.ranks[index]:
            step.statuses[rank] = PROLOG_FAILED
        failed = {"kind": "failed", "node": name, "text": "Job prolog failed", "errno": 128 + PROLOG_FAILED, "lines": []}
        step.tell(failed)
        if not self._prolog_told:
            self._prolog_told = True
            self.notify(PROLOG_FAILED_ON + name)

    async def _peer(self, name: str) -> asyncio.StreamWriter:
        while name not in self._peers:
            self._peer_came.clear()
            await self._peer_came.wait()
        return self._peers[name]

    def _lost(self, step: Step, index: int, name: str) -> None:
        for rank in step.layout.ranks[index]:
            if rank not in step.statuses:
                step.statuses[rank] = KILLED
                step.tell({"kind": "exit", "node": name, "rank": rank, "status": KILLED})

    async def _listen(self, step: Step, link: KeeperLink) -> None:
        """Take what a keeper says, until its connection ends."""
        step.keepers[link.node] = link
        index = step.nodes.index(link.node)
        step.met.add(link.node)
        for frame in step.input:
            link.writer.write(frame)
        if len(step.met) == len(step.nodes):
            step.input.clear()
        if step.doom:
            step.end(link)
        try:
            while True:
                kind, payload = await messages.read_frame(link.reader)
                if kind == wire.STREAM:
                    await self._pass_on(step, payload)
                elif kind == wire.MESSAGE:
                    self._hear(step, link.node, messages.unpack(payload))
        except (asyncio.IncompleteReadError, OSError, wire.WireError, ValueError, KeyError):
            pass
        finally:
            self._lost(step, index, link.node)
            del step.keepers[link.node]
            link.writer.close()
            link.over.set()

    async def _pass_on(self, step: Step, payload: bytes) -> None:
        """Output to srun; this waits while srun does not read, and so does the keeper then."""
        frame = wire.encode(wire.STREAM, payload)
        step.show(frame)
        writer = step.writer
        if writer is None or writer.is_closing():
            return
        writer.write(frame)
        with contextlib.suppress(OSError):
            await writer.drain()

    def _hear(self, step: Step, node: str, message: Message) -> None:
        kind = message.get("kind")
        if kind == "exit":
            step.statuses[int(message["rank"])] = int(message["status"])
            step.tell({"kind": "exit", "node": node, "rank": message["rank"], "status": message["status"]})
            own = step.request.get("oom_kill_step", self.job["request"].get("oom_kill_step"))
            if own and int(message["status"]) == texts.OUT_OF_MEMORY:
                self._kill(step, signal.SIGKILL, 0.0, "")
            elif message["status"] and step.request.get("asynchronous") and step.request.get("kill_on_bad_exit"):
                self._kill(step, signal.SIGTERM, self.job["kill_wait"], texts.TASK_FAILURE)
        elif kind == "running":
            processes = message["processes"]
            step.tell({"kind": "running", "node": node, "tasks": len(processes), "processes": processes})
        elif kind == "failed":
            for rank in step.layout.ranks[step.nodes.index(node)]:
                step.statuses[rank] = (int(message["errno"]) & 0xFF or 1) << 8 if message.get("lines") else 1 << 8
            step.tell(dict(message, node=node))
        elif kind == "taken":
            self._taken(step, node)
        elif kind == "done":
            step.measured += message["usage"]

    def _taken(self, step: Step, node: str) -> None:
        """A frame of input was taken by one node; srun is told once all have."""
        before = min((step.taken.get(name, 0) for name in step.nodes), default=0)
        step.taken[node] = step.taken.get(node, 0) + 1
        after = min(step.taken.get(name, 0) if name in step.keepers else step.taken[node] for name in step.nodes)
        for _ in range(after - before):
            step.tell({"kind": "taken"})

    # ---------------------------------------------------------------- what srun and others want of a step

    async def _follow(self, step: Step, reader: asyncio.StreamReader) -> None:
        """Take what srun says; when it goes away, the step is killed."""
        try:
            while True:
                kind, payload = await messages.read_frame(reader)
                if kind == wire.STREAM:
                    self._feed(step, wire.encode(wire.STREAM, payload))
                elif kind == wire.MESSAGE:
                    self._obey(step, messages.unpack(payload))
        except (asyncio.IncompleteReadError, OSError, wire.WireError, ValueError, KeyError):
            step.writer = None
            number, kill_wait = signal.SIGKILL, 0.0
            if self.node.batch_status is not None:  # srun went with the script, and so does the job
                number, kill_wait = signal.SIGTERM, self.job["kill_wait"]
            else:
                self._ended_by_user(step)
            step.state = step.state or "CANCELLED"
            self._kill(step, number, kill_wait, "")

    def _ended_by_user(self, step: Step) -> None:
        """Its srun wants it to be over, unless that was told so itself because the job or the step ends."""
        if not step.state and not self.over:
            step.killed_by = self.job["uid"]

    def _feed(self, step: Step, frame: bytes) -> None:
        """Input for the tasks; srun sends no more than a few frames that were not taken."""
        if len(step.met) < len(step.nodes):
            step.input.append(frame)
        for link in step.keepers.values():
            if not link.writer.is_closing():
                link.writer.write(frame)

    def _obey(self, step: Step, message: Message) -> None:
        kind = message.get("kind")
        if kind == "signal":
            self._signal_step(step, int(message["signal"]))
        elif kind == "kill":
            if message.get("by_user"):
                self._ended_by_user(step)
            self._kill(step, int(message["signal"]), float(message.get("kill_wait", 0)), str(message.get("cause", "")))
        elif kind == "go":
            step.take_place(message.get("het") or {})
            step.go.set()
        elif kind == "release":
            step.released.set()
        elif kind == "window":
            for link in step.keepers.values():
                link.tell({"kind": "window", "rows": message["rows"], "columns": message["columns"]})

    def signal(self, number: int, step_number: Optional[int], *, cancel: bool = False) -> None:
        """Signal one step, or all of them. A step that is cancelled says so, and who is sent SIGTERM."""
        if number in (signal.SIGKILL, signal.SIGTERM) and step_number is not None:
            self.submissions.cancel(step_number)
        for step in list(self.steps.values()):
            if step_number is None or step.number == step_number:
                if step_number is not None and (cancel or number == signal.SIGTERM):
                    step.state = "CANCELLED"
                    if number == signal.SIGKILL:
                        step.tell({"kind": "aborting", "cause": texts.by_signal(number)})
                    self._kill(step, number, self.job["kill_wait"], texts.by_signal(number))
                else:
                    self._signal_step(step, number)

    def _signal_step(self, step: Step, number: int) -> None:
        for link in step.keepers.values():
            link.tell({"kind": "signal", "signal": number, "whole": True})

    def _kill(self, step: Step, number: int, kill_wait: float, cause: str) -> None:
        """End a step: the signal now, SIGKILL after ``kill_wait`` seconds."""
        text = texts.cancelled("STEP %d.%s" % (self.job["job"], step.name), step.nodes[0], cause) if cause else b""
        step.doom = {"kind": "kill", "signal": number, "kill_wait": kill_wait}
        step.last_words = text.decode("utf-8", "surrogateescape")
        for link in step.keepers.values():
            step.end(link)

    def end_all(self, cause: str, kill_wait: float, number: int) -> None:
        """End all steps, for the job ends."""
        self.submissions.cancel()
        for step in list(self.steps.values()):
            said = bool(step.state)
            step.state = step.state or "CANCELLED"
            step.tell({"kind": "aborting", "cause": cause})
            self._kill(step, number, kill_wait, "" if said else cause)
        self._freed.set()

    def shrink(self, names: Sequence[str]) -> None:
        """The job keeps only those of its nodes. Tasks on the others are killed; a step that has none left is over."""
        kept = [number for number, share in enumerate(self.job["nodes"]) if share["node"] in names]
        if len(kept) == len(self.job["nodes"]) or not kept or kept[0]:
            return
        lost = {share["node"] for number, share in enumerate(self.job["nodes"]) if number not in kept}
        self.job = dict(self.job, nodes=[self.job["nodes"][number] for number in kept])
        self.holdings = [self.holdings[number] for number in kept]
        self._first %= len(kept)
        for step in self.steps.values():
            if lost.issuperset(step.nodes):
                step.state = step.state or "CANCELLED"
            for name in lost.intersection(step.keepers):
                step.keepers[name].tell({"kind": "kill", "signal": signal.SIGKILL, "kill_wait": 0})
        self._freed.set()

    def limit(self, number: Optional[int], minutes: int) -> None:
        """Give a step, or all of them, another time limit, from their start on."""
        for step in self.steps.values():
            if number in (None, step.number):
                step.time_limit = minutes
                if step.running_since:
                    self._set_limit(step)

    def _set_limit(self, step: Step) -> None:
        minutes = step.time_limit
        while step.limits:
            step.limits.pop().cancel()
        if minutes is None or minutes >= 0xFFFFFFFE:
            return
        loop = asyncio.get_running_loop()
        end = step.running_since + float(minutes) * 60

        def over() -> None:
            step.state = step.state or "TIMEOUT"
            self._kill(step, signal.SIGTERM, self.job["kill_wait"], texts.TIME_LIMIT)

        step.limits.append(loop.call_at(end, over))
        if step.request.get("signal"):
            delay = 60 if step.request.get("signal_delay") is None else int(step.request["signal_delay"])
            number = int(step.request["signal"])
            step.limits.append(loop.call_at(end - delay, lambda: self._signal_step(step, number)))
        step.timers += step.limits


async def _hear_out(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say no more, and pass over what srun still sends until it goes: closing with something unread would lose what was
    said last."""

    async def pass_over() -> None:
        await writer.drain()
        writer.write_eof()
        while await reader.read(65536):
            pass

    with contextlib.suppress(OSError, asyncio.TimeoutError):
        await asyncio.wait_for(pass_over(), LEAVE_SECONDS)


def _ended_state(status: int) -> str:
    if status == texts.OUT_OF_MEMORY:
        return "OUT_OF_MEMORY"
    return texts.state(status)


def _refuse(writer: asyncio.StreamWriter, text: str) -> Optional[Step]:
    writer.write(messages.pack({"kind": "refused", "text": text}))
    return None
