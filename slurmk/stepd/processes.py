"""Processes: who descends from whom, ending them whole, and becoming the user that a task runs as."""

from __future__ import annotations

import contextlib
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple

PR_SET_CHILD_SUBREAPER = 36
PR_SET_NAME = 15

NICENESS = "SLURM_PRIO_PROCESS"
"""The variable that tells the niceness of the submitting command."""

MARK = "SLURMK_MARK"
"""The variable that every process of a job on a node has; its value names both."""


def own_variables(without: Tuple[bytes, ...]) -> List[bytes]:
    """The environment as this process got it (Python's start adds LC_CTYPE), NAME=VALUE each, but for what begins so."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        entries = [name + b"=" + value for name, value in os.environb.items()]
    return [entry for entry in entries if b"=" in entry and not entry.startswith(without)]


def control_process(option: int, argument: "object") -> bool:
    """prctl(2); False where it cannot be called."""
    try:
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        return bool(library.prctl(option, argument, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def adopt_orphans() -> bool:
    """From now on, descendants whose parents end become children of this process instead of init's."""
    return control_process(PR_SET_CHILD_SUBREAPER, 1)


def set_name(name: str) -> None:
    """The name that ps and top show for this process (15 bytes)."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "wb") as file:
        file.write(name.encode()[:15])


def stat_fields(process: int) -> Optional[List[str]]:
    """The fields of /proc/PID/stat from the third (state) on; None when the process is gone."""
    try:
        with open("/proc/%d/stat" % process, "rb") as file:
            content = file.read()
    except OSError:
        return None
    return content[content.rfind(b")") + 2 :].decode("ascii", "replace").split()


def start_time(process: int) -> int:
    """When the process started, in ticks since boot; 0 when it is gone. With the process id it names one process for ever."""
    found = stat_fields(process)
    return int(found[19]) if found else 0


def session_of(process: int) -> int:
    """The session that the process is of; 0 when it is gone."""
    try:
        return os.getsid(process)
    except OSError:
        return 0


def descendants(process: int) -> List[int]:
    """All processes below this one that still run (zombies are not counted)."""
    found: List[int] = []
    level = children(process)
    if level is None:
        return _descendants_by_scan(process)
    while level:
        below: List[int] = []
        for each in level:
            below += children(each) or []
        found += level
        level = below
    return [each for each in found if _runs(each)]


def children(process: int) -> Optional[List[int]]:
    """Children of all threads of a process; None where the kernel does not list them."""
    found: List[int] = []
    try:
        threads = os.listdir("/proc/%d/task" % process)
    except OSError:
        return []
    for thread in threads:
        try:
            with open("/proc/%d/task/%s/children" % (process, thread), "rb") as file:
                found += map(int, file.read().split())
        except FileNotFoundError:
            if not os.path.exists("/proc/self/task/%d/children" % os.getpid()):
                return None
        except OSError:
            continue
    return found


def _runs(process: int) -> bool:
    found = stat_fields(process)
    return found is not None and found[0] not in "ZX"


def _descendants_by_scan(process: int) -> List[int]:
    parents: Dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            found = stat_fields(int(name))
            if found is not None and found[0] not in "ZX":
                parents[int(name)] = int(found[1])
    below: Set[int] = {process}
    grown = True
    while grown:
        grown = False
        for child, parent in parents.items():
            if parent in below and child not in below:
                below.add(child)
                grown = True
    below.discard(process)
    return list(below)


def send_signal(processes: Sequence[int], number: int) -> None:
    """Signal those processes; who is gone is passed over."""
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, number)


def marked(mark: str) -> Iterator[int]:
    """Processes whose environment has that mark: what is left of a job whose stepd died."""
    wanted = ("%s=%s" % (MARK, mark)).encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                content = file.read()
        except OSError:
            continue
        if wanted in content.split(b"\0"):
            yield int(name)


def close_all_but(kept: Sequence[int]) -> None:
    """Close every open file except those and the standard three."""
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number > 2 and number not in kept:
            with contextlib.suppress(OSError):
                os.close(number)


def reset_signals() -> None:
    """Give a process that was forked from a Python program the dispositions that programs expect."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


class Identity:
    """Whom a task runs as. Nothing is changed unless this process is root's."""

    def __init__(self, user_id: int, group_id: int, groups: Sequence[int]) -> None:
        self.user_id = user_id
        self.group_id = group_id
        self.groups = list(groups) or [group_id]

    def become(self) -> None:
        """For good."""
        if os.geteuid() != 0:
            return
        with contextlib.suppress(PermissionError) if self.user_id == 0 else contextlib.nullcontext():  # root of a container
            os.setgroups(self.groups)
        os.setgid(self.group_id)
        os.setuid(self.user_id)

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[None]:
        """For the time of a with block: the effective user, so that files are opened with the user's rights."""
        if os.geteuid() != 0 or self.user_id == 0 == self.group_id:
            yield
            return
        own: Tuple[int, List[int]] = os.getegid(), os.getgroups()
        os.setgroups(self.groups)
        os.setegid(self.group_id)
        os.seteuid(self.user_id)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(own[0])
            os.setgroups(own[1])
