"""Control groups: where root can make them, the processes of each step on each node live in a group of their own.

A group ends whole, whatever its processes did to get away, counts those that the kernel killed for want of memory, and
knows the CPU time of all. Groups are made below the one that this program was started in, as
``slurmk/CLUSTER/job_ID_RESTART/NODE/STEP``; keepers stay outside.

In a container, whose own group can only be read, its kills belong to all steps that run there. The first step that sees a
reason to ask (a task of it failed, or it is the batch script that ended) is taken to have caused those that nobody claimed.

Processes are ended by the unified hierarchy (v2, by cgroup.kill or, on kernels before 5.14, by freezing) or by the freezer
(v1); memory is that of either version. Where there is no hierarchy that can be written, or one refuses, everything here does
nothing, and the keeper's descendants are all there is to go by. (cgroups(7), and the kernel's documents on both versions.)
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

TOP = "slurmk"

FILE = "groups"
"""In a stepd's directory: a JSON list of the directories of its node's groups, for whoever cleans up after it."""

KILL_SECONDS = 20.0
"""How long the processes of a group may take to die."""

PAUSE = 0.01

DELEGATED = "memory"
"""The controller that groups of the unified hierarchy are given, where that can be done."""


class Hierarchies:
    """What there is: directories below which groups are made; None for what there is not."""

    def __init__(
        self, unified: Optional[str] = None, freezer: Optional[str] = None, memory: Optional[str] = None, counts: bool = False
    ) -> None:
        self.unified = unified
        self.freezer = freezer if unified is None else None
        self.memory = memory  # v1
        self.counts = counts  # the unified hierarchy has the memory controller

    @property
    def directories(self) -> List[str]:
        return [each for each in (self.unified, self.freezer, self.memory) if each is not None]


def detect(mounts: str = "/proc/self/mounts", own: str = "/proc/self/cgroup") -> Hierarchies:
    """The hierarchies that this process can make groups in: none unless it is root's."""
    if os.geteuid() != 0:
        return Hierarchies()
    try:
        found = _mounted(_read(mounts))
        places = _own(_read(own))
    except OSError:
        return Hierarchies()
    ours = {name: _base(mount, places.get(name, "/")) for name, mount in found.items()}
    unified = ours.get("")
    counts = unified is not None and DELEGATED in _read_or_empty(os.path.join(unified, "cgroup.controllers")).split()
    return Hierarchies(unified, ours.get("freezer"), None if counts else ours.get("memory"), counts)


_known: List[Hierarchies] = []


def hierarchies() -> Hierarchies:
    """What ``detect`` found when it was first asked in this process or in the one that this was forked from."""
    if not _known:
        _known.append(detect())
    return _known[0]


_container: List[str] = []
_claimed: List[mmap.mmap] = []  # shared with what is forked: how many of the container's kills have been claimed


def in_container(mounts: str = "/proc/self/mounts", own: str = "/proc/self/cgroup") -> None:
    """This process and what is forked from it have a container for themselves: find where the kernel counts its kills."""
    try:
        found = _mounted(_read(mounts))
        places = _own(_read(own))
    except OSError:
        return
    for controller, name in (("memory", "memory.oom_control"), ("", "memory.events")):
        mount = found.get(controller)
        for path in (places.get(controller, "/").rstrip("/"), "") if mount is not None else ():
            candidate = "%s%s/%s" % (mount, path, name)
            if "oom_kill" in _numbers(candidate):
                _container[:] = [candidate]
                _claimed[:] = [mmap.mmap(-1, mmap.PAGESIZE)]
                _claim()
                return


def _claim() -> int:
    """How many of the container's processes the kernel killed for want of memory that nobody claimed yet; 0 outside of one."""
    if not _container:
        return 0
    counted = _numbers(_container[0]).get("oom_kill", 0)
    before = int.from_bytes(_claimed[0][:8], "little")
    _claimed[0][:8] = counted.to_bytes(8, "little")
    return max(0, counted - before)


def _mounted(text: str) -> Dict[str, str]:
    """Mount points by controller; that of the unified hierarchy by the empty name."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) < 4:
            continue
        path = words[1].replace("\\040", " ")
        if words[2] == "cgroup2":
            found.setdefault("", path)
        elif words[2] == "cgroup":
            for option in words[3].split(","):
                found.setdefault(option, path)
    return found


def _own(text: str) -> Dict[str, str]:
    """The group of this process by controller."""
    found = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for name in controllers.split(","):
            found[name] = path
    return found


def _base(mount: str, path: str) -> Optional[str]:
    """Where our groups go; None when nothing can be made there."""
    directory = mount + path.rstrip("/")
    if not os.path.isdir(directory):  # a container that sees its own part only
        directory = mount
    return directory if os.access(directory, os.W_OK) else None


def node_name(place: Mapping[str, Any]) -> str:
    """The name of a stepd's group; clusters of one machine are told apart by their directories."""
    cluster = os.path.dirname(os.path.dirname(str(place["directory"])))
    mark = hashlib.sha256(os.fsencode(cluster)).hexdigest()[:8]
    node = str(place["node"]).replace("/", "_")
    return "%s/%s/job_%d_%d/%s" % (TOP, mark, place["job"], place["restart"], node)


class Group:
    """One group, in as many hierarchies as there are. ``name`` is its path below each."""

    def __init__(self, name: str, where: Optional[Hierarchies] = None) -> None:
        self.name = name
        self._where = hierarchies() if where is None else where
        self.directories = [os.path.join(each, name) for each in self._where.directories]
        self.unified = self._directory(self._where.unified)
        self.freezer = self._directory(self._where.freezer)
        self.memory = self._directory(self._where.memory) or (self.unified if self._where.counts else None)
        self._caused = 0

    @property
    def shared(self) -> bool:
        """True when kills are those of a container, so that asking for them claims them."""
        return self.memory is None

    def _directory(self, base: Optional[str]) -> Optional[str]:
        return None if base is None else os.path.join(base, self.name)

    def make(self, memory_limit: int = 0) -> bool:
        """Make it, with a limit of memory in bytes (0 for none); False when no processes can be put into it."""
        for directory in list(self.directories):
            try:
                _make(directory)
            except OSError:
                self._forget(directory)
        if self._where.counts and self.unified is not None:
            self._delegate(self.unified)
        if memory_limit and self.memory is not None:
            self._limit(memory_limit)
        return bool(self.directories)

    def _forget(self, directory: str) -> None:
        self.directories.remove(directory)
        self.unified, self.freezer, self.memory = (
            None if each == directory else each for each in (self.unified, self.freezer, self.memory)
        )

    def _delegate(self, directory: str) -> None:
        """Give the group its memory controller: each group above has to pass it on, which one with processes may not."""
        path = str(self._where.unified)
        for part in self.name.split("/"):
            with contextlib.suppress(OSError):
                _write(os.path.join(path, "cgroup.subtree_control"), "+" + DELEGATED)
            path = os.path.join(path, part)
        if not os.path.exists(os.path.join(directory, "memory.events")):
            self.memory = None

    def _limit(self, limit: int) -> None:
        names = ("memory.max",) if self.memory == self.unified else ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        for name in names:
            with contextlib.suppress(OSError):
                _write(os.path.join(str(self.memory), name), str(limit))

    def enter(self) -> None:
        """Put the calling process into it; its children are born there."""
        for directory in self.directories:
            with contextlib.suppress(OSError):
                _write(os.path.join(directory, "cgroup.procs"), "0")

    def oom_kills(self) -> int:
        """How many of its processes the kernel killed for want of memory; 0 where nobody counts them."""
        if self.memory is None:
            self._caused += _claim()
            return self._caused
        name = "memory.events" if self.memory == self.unified else "memory.oom_control"
        return _numbers(os.path.join(self.memory, name)).get("oom_kill", 0)

    def cpu(self) -> Dict[str, int]:
        """Microseconds of all processes that ever were in it, as ``user_cpu`` and ``system_cpu``; empty where unknown."""
        if self.unified is None:
            return {}
        found = _numbers(os.path.join(self.unified, "cpu.stat"))
        if "user_usec" not in found:
            return {}
        return {"user_cpu": found["user_usec"], "system_cpu": found.get("system_usec", 0)}

    def kill(self) -> None:
        """SIGKILL to all of it at once; what is forked meanwhile is not missed."""
        kill(self.directories)

    def processes(self) -> List[int]:
        """What runs in it."""
        return sorted({process for directory in self.directories for process in _processes(directory)})

    def remove(self) -> None:
        """Remove it and those above it that are empty."""
        for directory in self.directories:
            _remove(directory)


def kill(directories: Sequence[str]) -> None:
    """SIGKILL to all processes in these groups and below."""
    for directory in directories:
        for _ in range(3):
            if not _kill(directory):
                break


def _kill(directory: str) -> bool:
    """One attempt; False when there is nobody left to kill."""
    with contextlib.suppress(OSError):
        _write(os.path.join(directory, "cgroup.kill"), "1")
        return False
    if not _processes(directory):
        return False
    with _frozen(directory):
        for process in _processes(directory):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
    return True


@contextlib.contextmanager
def _frozen(directory: str) -> Iterator[None]:
    """Nobody in the group does anything during a with block, as far as it can be had."""
    path, freeze, thaw = os.path.join(directory, "cgroup.freeze"), "1", "0"
    if not os.path.exists(path):
        path, freeze, thaw = os.path.join(directory, "freezer.state"), "FROZEN", "THAWED"
    with contextlib.suppress(OSError):
        _write(path, freeze)
        end = time.monotonic() + 1.0
        while not _is_frozen(directory) and time.monotonic() < end:
            time.sleep(0.001)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            _write(path, thaw)


def _is_frozen(directory: str) -> bool:
    state = _read_or_empty(os.path.join(directory, "freezer.state"))
    return state.strip() == "FROZEN" if state else _numbers(os.path.join(directory, "cgroup.events")).get("frozen", 1) == 1


def end(directories: Sequence[str]) -> bool:
    """Kill all processes of these groups, wait until they are gone, and remove the groups; False when some stay."""
    limit = time.monotonic() + KILL_SECONDS
    while any(_processes(directory) for directory in directories):
        if time.monotonic() > limit:
            return False
        kill(directories)
        time.sleep(PAUSE)
    for directory in directories:
        _remove(directory)
    return True


def keep(path: str, group: Group) -> None:
    """Write down where a node's groups are."""
    with contextlib.suppress(OSError), open(path, "w", encoding="utf-8") as file:
        json.dump(group.directories, file)


def main(arguments: List[str]) -> int:
    """``end-groups FILE``: end what a stepd that died left in the groups that the file names."""
    try:
        with open(arguments[0], encoding="utf-8") as file:
            directories = json.load(file)
    except (OSError, ValueError, IndexError):
        return 1
    inside = [str(each) for each in directories if "/%s/" % TOP in str(each) and "/../" not in str(each)]
    return 0 if end(inside) else 1


def _processes(directory: str) -> List[int]:
    """Process ids in a group and below it; zombies are not among them where they show."""
    found: List[int] = []
    for folder, _, _ in os.walk(directory):
        found += [int(word) for word in _read_or_empty(os.path.join(folder, "cgroup.procs")).split()]
    return [each for each in found if each and not _is_zombie(each)]


def _is_zombie(process: int) -> bool:
    stat = _read_or_empty("/proc/%d/stat" % process)
    return stat[stat.rfind(")") + 2 : stat.rfind(")") + 3] in ("Z", "X", "")


def _make(directory: str) -> None:
    """With all above it; others may remove empty ones at the same time."""
    for attempt in range(5):
        try:
            os.makedirs(directory, exist_ok=True)
            return
        except FileNotFoundError:
            if attempt == 4:
                raise


def _remove(directory: str) -> None:
    """Remove a group with those below it, and then those of ours above it that are empty."""
    for folder, _, _ in os.walk(directory, topdown=False):
        for _ in range(20):
            try:
                os.rmdir(folder)
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.002)  # its last process is not quite gone
    with contextlib.suppress(OSError):
        while os.path.basename(directory) not in (TOP, ""):
            directory = os.path.dirname(directory)
            os.rmdir(directory)


def _numbers(path: str) -> Dict[str, int]:
    """Lines of a name and a number."""
    pairs = (line.split() for line in _read_or_empty(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _read_or_empty(path: str) -> str:
    try:
        return _read(path)
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)
