"""Words that stepd and srun say, as Slurm 26.05 says them."""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Optional


def stepd_error(text: str, now: Optional[float] = None) -> bytes:
    """A line of stepd in a task's standard error; the reference puts the time where older releases say slurmstepd."""
    return stepd_line("error: " + text, now)


def stepd_line(text: str, now: Optional[float] = None) -> bytes:
    """The same of something that is no error."""
    return (stamp(time.time() if now is None else now) + text + "\n").encode("utf-8", "surrogateescape")


def stamp(now: float) -> str:
    """``[2026-11-30T07:37:32.781] ``"""
    return "[%s.%03d] " % (time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now)), int(now * 1000) % 1000)


def cancelled(what: str, node: str, cause: str = "", now: Optional[float] = None) -> bytes:
    """The line about a job or step that is ended from outside; ``what`` is ``JOB 5`` or ``STEP 5.0``."""
    moment = time.time() if now is None else now
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment))
    return stepd_error("*** %s ON %s CANCELLED AT %s%s ***" % (what, node, when, " " + cause if cause else ""), moment)


TIME_LIMIT = "DUE TO TIME LIMIT"
TASK_FAILURE = "DUE TO TASK FAILURE"
CAUSES = {
    "requeue": "DUE TO JOB REQUEUE",
    "preemption": "DUE TO PREEMPTION",
    "node failure": "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
}
"""By what the controller says when it ends a job."""

AT_ONCE = ("resize", "suspended")
"""What the controller says when everything is killed at once, without a word: a job that goes on gives the node back, or one
that is suspended is cancelled."""


OUT_OF_MEMORY = 253
"""The wait status of a task in a step of which the kernel killed a process for want of memory (0:125)."""


def out_of_memory(kills: int, step: str) -> bytes:
    """The line about that; ``step`` is ``5.0``."""
    events = "event" if kills == 1 else "events"
    words = "Detected %d oom_kill %s in StepId=%s. Some of the step tasks have been OOM Killed."
    return stepd_error(words % (kills, events, step))


def by_signal(number: int) -> str:
    """The cause of the line above when a signal was sent."""
    return "DUE to SIGNAL " + signal_text(number)


def signal_text(number: int) -> str:
    """``Killed``, ``Segmentation fault``, ``User defined signal 1`` …"""
    try:
        return (getattr(signal, "strsignal", None) or _no_text)(number) or "Unknown signal %d" % number
    except ValueError:
        return "Unknown signal %d" % number


def _no_text(number: int) -> str:
    return "Unknown signal %d" % number


def ending(status: int) -> str:
    """How a task ended, by its wait status; empty for success."""
    if status & 0xFF == OUT_OF_MEMORY:
        return "Out Of Memory"
    if os.WIFSIGNALED(status):
        return signal_text(os.WTERMSIG(status)) + (" (core dumped)" if os.WCOREDUMP(status) else "")
    code = os.WEXITSTATUS(status)
    return "Exited with exit code %d" % code if code else ""


def exited(status: int) -> str:
    """How stepd tells that a task ended."""
    if os.WIFSIGNALED(status):
        return "exited. Killed by signal %d." % os.WTERMSIG(status)
    return "exited with exit code %d." % os.WEXITSTATUS(status)


def exit_code(status: int) -> int:
    """What a shell makes of a wait status."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def numbers(values: Iterable[int]) -> str:
    """``0,2-4``"""
    pieces: List[List[int]] = []
    for value in sorted(set(values)):
        if pieces and pieces[-1][1] == value - 1:
            pieces[-1][1] = value
        else:
            pieces.append([value, value])
    return ",".join(str(low) if low == high else "%d-%d" % (low, high) for low, high in pieces)


def bracketed(values: Iterable[int]) -> str:
    """``3`` or ``[0,2-4]``"""
    text = numbers(values)
    return text if text.isdigit() else "[%s]" % text


def tasks(values: Iterable[int]) -> str:
    """``task 0`` or ``tasks 0-1``"""
    listed = sorted(set(values))
    return ("task " if len(listed) == 1 else "tasks ") + numbers(listed)


def state(status: int) -> str:
    """How accounting calls the end of a step with a wait(2) status: one that a signal ended is a cancelled one."""
    if os.WIFSIGNALED(status):
        return "CANCELLED"
    return "FAILED" if status else "COMPLETED"
