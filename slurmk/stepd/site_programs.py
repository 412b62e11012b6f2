"""Prolog and Epilog of slurm.conf: what the site runs on a node before the first process of a job there, and after the last.

They are run as stepd runs: as root on an embedded cluster that root started, else as the job's user (so in pods). Several
may be named, each a path or a pattern; all are found before the first is run, a pattern's from the last name to the first,
and the first that fails ends it (slurm.conf(5), and as observed). They see nothing but variables about the job, and end
when they take too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import os
import posixpath
import signal

from slurmk.stepd import environment, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

    Description = Mapping[str, Any]
    Watch = Callable[[int, "asyncio.Future[int]"], None]

NAMES = {"prolog": "prolog_slurmd", "epilog": "epilog_slurmd"}
"""Which programs there are, and the SLURM_SCRIPT_CONTEXT of each."""

LONGEST_SAYING = 4096
"""Bytes of what a program says that are told to the controller when it fails."""

PATIENCE = 5.0
"""Seconds between TERM and KILL for one that took too long."""

CANNOT_EXECUTE = 127

_TOLD = """
SLURM_CLUSTER_NAME SLURM_CONF SLURM_JOBID SLURM_JOB_ID SLURM_JOB_ACCOUNT SLURM_JOB_CPUS_PER_NODE SLURM_JOB_END_TIME
SLURM_JOB_EXCLUSIVE SLURM_JOB_GID SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES SLURM_JOB_OVERSUBSCRIBE SLURM_JOB_PARTITION
SLURM_JOB_QOS SLURM_JOB_SLUID SLURM_JOB_START_TIME SLURM_JOB_UID SLURM_JOB_USER SLURM_NODELIST
"""
TOLD = frozenset(_TOLD.split())
"""Variables of the job's own processes that these programs see as well."""


class Failed(Exception):
    """A program failed, could not be run, or is not there; the text says which and how."""


def has(job: Description, kind: str) -> bool:
    """Whether the site has a program of that kind."""
    return bool((job.get("site_programs") or {}).get(kind))


def flagged(job: Description, flag: str) -> bool:
    """Whether PrologFlags has that word, which is given in small letters."""
    return flag in (job.get("site_programs") or {}).get("flags", ())


def timeout(job: Description, kind: str) -> Optional[float]:
    """Seconds that a program may take; None for as long as it likes."""
    seconds = (job.get("site_programs") or {}).get(kind + "_timeout")
    return None if seconds is None else float(seconds)


def find(kind: str, named: Sequence[str], folder: str) -> List[str]:
    """The programs to run, in order. Relative names are below ``folder``, slurm.conf's. Raises Failed."""
    found: List[str] = []
    for name in named:
        path = posixpath.join(folder, name)
        matches = sorted(glob.glob(path), reverse=True)
        if not matches:
            raise Failed("%s: Unable to create list of paths [%s]" % (kind, path))
        found += matches
    return found


def variables(job: Description, index: int, kind: str, ended: Optional[Mapping[str, Any]] = None) -> Dict[str, str]:
    """The whole environment of a program on the job's node number ``index``; ``ended`` is what the controller said."""
    node = job["nodes"][index]
    found = {name: value for name, value in environment.job_variables(job).items() if name in TOLD}
    found.update(job["site_programs"].get("variables", {}))
    found.update(
        {
            "SLURMD_NODENAME": str(node["node"]),
            "SLURM_JOB_CORE_SPEC_COUNT": str(job["request"].get("core_specification") or 0),
            "SLURM_JOB_CORE_SPEC_TYPE": "cores",
            "SLURM_JOB_RESTART_COUNT": str(job["restart"]),
            "SLURM_SCRIPT_CONTEXT": NAMES[kind],
            "SLURM_UID": str(job["uid"]),
        }
    )
    devices = environment.gpu_indices(node["gres"])
    if devices:
        found["SLURM_JOB_GPUS"] = ",".join(map(str, devices))
        found.update(environment.visible(devices))
        found.update(environment.thread_percentage(node["gres"]))
    if kind == "epilog":
        found.update(_of_the_end(ended or {}))
    return found


def _of_the_end(ended: Mapping[str, Any]) -> Dict[str, str]:
    status = int(ended.get("exit_code", 0))
    found = {
        "SLURM_JOB_DERIVED_EC": str(ended.get("derived_exit_code", 0)),
        "SLURM_JOB_EXIT_CODE": str(status),
        "SLURM_JOB_EXIT_CODE2": "%d:%d" % (status >> 8, status & 0x7F),
    }
    for name, key in (("SLURM_JOB_END_TIME", "end_time"), ("SLURM_JOB_RESTART_COUNT", "restarts")):
        if ended.get(key):
            found[name] = str(ended[key])
    return found


async def run(job: Description, index: int, kind: str, watch: Watch, ended: Optional[Mapping[str, Any]] = None) -> None:
    """Run the node's programs of one kind to their end. ``watch`` takes a process and what to tell its wait status. Raises
    Failed."""
    given = job["site_programs"]
    told = variables(job, index, kind, ended)
    for path in find(kind, given[kind], posixpath.dirname(told.get("SLURM_CONF", "")) or "/"):
        if not os.access(path, os.X_OK):
            raise Failed("run_command: %s can not be executed (%s) Permission denied" % (kind, path))
        await _run_one(kind, path, told, watch, timeout(job, kind))


async def _run_one(kind: str, path: str, told: Mapping[str, str], watch: Watch, seconds: Optional[float]) -> None:
    read, write = os.pipe()
    process = os.fork()
    if not process:
        _become_program(path, told, write)
    os.close(write)
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    watch(process, ended)
    said = _Saying(read)
    said.begin(loop)
    until = None if seconds is None else loop.time() + seconds
    try:
        done, _ = await asyncio.wait({ended}, timeout=seconds)
        if not done:
            await _end(process, ended)
        elif not await ended:  # what it started counts for as long as it holds the output
            await asyncio.wait({said.over}, timeout=None if until is None else max(0.0, until - loop.time()))
        status = await ended
        said.read()
    finally:
        loop.remove_reader(read)
        os.close(read)
    with contextlib.suppress(OSError):
        os.killpg(process, signal.SIGKILL)  # what it left in its process group
    if status:
        words = "%d:%d" % (status >> 8, status & 0x7F)
        raise Failed("%s failed status=%s%s" % (kind, words, said.text))


async def _end(process: int, ended: asyncio.Future[int]) -> None:
    """It took too long."""
    for number, seconds in ((signal.SIGTERM, PATIENCE), (signal.SIGKILL, None)):
        with contextlib.suppress(OSError):
            os.killpg(process, number)
        done, _ = await asyncio.wait({ended}, timeout=seconds)
        if done:
            return


def _become_program(path: str, told: Mapping[str, str], output: int) -> None:
    """In the child: never returns."""
    try:
        os.setsid()
        null = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((null, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        processes.close_all_but([])
        processes.reset_signals()
        os.umask(0o022)
        os.chdir("/")
        os.execve(path, [path], {name: str(value) for name, value in told.items()})
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(2, ("%s: %s" % (path, error.strerror)).encode("utf-8", "surrogateescape"))
    finally:
        os._exit(CANNOT_EXECUTE)


class _Saying:
    """What a program says, as far as it is wanted."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._said = b""
        self.over: asyncio.Future[None]  # done when nobody is left to say something

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listen until nobody is left to say something, or the descriptor is taken off the loop."""
        self.over = loop.create_future()

        def take() -> None:
            if not self.read():
                loop.remove_reader(self._descriptor)
                if not self.over.done():
                    self.over.set_result(None)

        loop.add_reader(self._descriptor, take)

    def read(self) -> bool:
        """Take what is there now; false when there will be no more."""
        with contextlib.suppress(OSError):
            while True:
                piece = os.read(self._descriptor, 65536)
                if not piece:
                    return False
                self._said = (self._said + piece)[:LONGEST_SAYING]
        return True

    @property
    def text(self) -> str:
        """Behind the message of a failure."""
        said = self._said.decode("utf-8", "replace")
        shown = "".join(letter if letter.isprintable() else " " for letter in said).strip()
        return " output:" + shown if shown else ""
