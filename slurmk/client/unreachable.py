"""What a shim does when things are not as they should be: no controller answers, it goes away, or output is refused.

Slurm's commands try for 10 seconds before they give up. So does the shim while the controller's socket is there, that
is, while a controller died or is being started; where ``slurmk down`` took the socket away, it gives up at once, except
inside a job, where it is worth waiting longer for the controller to come back. ``SLURMK_CONNECT_TIMEOUT`` (seconds)
changes both. A command that waits for a job, and was told so (AWAIT), calls again for as long as the cluster's directory
is there: the job goes on whether there is a controller or not. Texts and exit codes are those that the reference's
commands give while slurmctld is down.
"""

import posix
import sys
import time

from slurmk.wire import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Optional

VERSION_TEXT = "slurm 26.05.5 (slurmk 0.1.0)"
CONNECT = "Unable to contact slurm controller (connect failure)"
LOST = "Zero Bytes were transmitted or received"

COMMANDS: "dict[str, tuple[str, int]]" = {
    # command: (text before the fault, exit code)
    "sbatch": ("sbatch: error: Batch job submission failed: ", 1),
    "srun": ("srun: error: Unable to allocate resources: ", 1),
    "salloc": ("salloc: error: Job submit/allocate failed: ", 1),
    "squeue": ("slurm_load_jobs error: ", 1),
    "scancel": ("scancel: error: Kill job error on job id {job}: ", 8),
    "sinfo": ("slurm_load_partitions: ", 1),
    "sacct": ("sacct: error: Problem talking to the database: ", 1),
    "sacctmgr": ("sacctmgr: error: Problem talking to the database: ", 1),
    "sreport": ("sreport: fatal: Problem connecting to the database: ", 1),
    "sprio": ("Couldn't get priority factors from controller: ", 255),
    "sshare": ("Couldn't get shares from controller: ", 255),
    "sdiag": ("slurm_get_statistics: ", 255),
    "swait": ("swait: error: ", 2),
    "sattach": ("sattach: error: Could not get job step info: ", 1),
    "strigger": ("slurm_get_triggers: ", 1),
}

SCONTROL: "dict[tuple[str, str], str]" = {
    # the words of scontrol: text before the fault
    ("show", "node"): "slurm_load_node error: ",
    ("show", "nodes"): "slurm_load_node error: ",
    ("show", "partition"): "slurm_load_partitions error: ",
    ("show", "partitions"): "slurm_load_partitions error: ",
    ("show", "config"): "slurm_load_ctl_conf error:",
    ("reconfigure", ""): "slurm_reconfigure error:",
    ("shutdown", ""): "slurm_shutdown error:",
}

PASSING = (0, 2, 11, 101, 104, 110, 111, 113)
"""ENOENT, EAGAIN, ENETUNREACH, ECONNRESET, ETIMEDOUT, ECONNREFUSED, EHOSTUNREACH: other failures do not pass by waiting."""

DOWN = """Slurmctld(primary) at {host} is DOWN
*****************************************
** RESTORE SLURMCTLD DAEMON TO SERVICE **
*****************************************
"""


class Again:
    """A request that is made again, by ``attempt``, for as long as that makes sense."""

    def __init__(
        self, attempt: "Callable[[], int]", path: bytes, command: str, arguments: "List[bytes]", environment: bytes
    ) -> None:
        self._attempt = attempt
        self._path = path
        self._command = command
        self._arguments = arguments
        self._environment = environment

    def try_again(self, error: Exception) -> int:
        """Go on after ``error``; gives the exit code."""
        from slurmk.client.shim import AWAITED, CAME, Lost

        began = time.monotonic()
        limit = self._patience(error)
        pause = 0.02
        told = False
        while _passes(error) and not CAME and time.monotonic() + pause < began + limit:
            if AWAITED and self._command == "sbatch" and not told and time.monotonic() > began + TOLD_AFTER:
                told = True
                say(2, "sbatch: error: Currently unable to load job state information, retrying: " + CONNECT)
            time.sleep(pause)
            pause = min(pause * 1.5, 1.0)
            if CAME:
                break
            try:
                return self._attempt()
            except (OSError, Lost, WireError) as again:
                error = again
            if AWAITED:
                limit = self._patience(error)
            if AWAITED and not isinstance(error, OSError):  # a controller was there
                began, pause, told = time.monotonic(), 0.02, False
        return self._report(error)

    def _patience(self, error: Exception) -> float:
        from slurmk.client.shim import AWAITED, variable

        number = error.errno if isinstance(error, OSError) else 0
        if AWAITED and number == 2 and self._directory_exists():
            number = 0
        configured = variable(self._environment, b"SLURMK_CONNECT_TIMEOUT")
        seconds = patience(number, bool(variable(self._environment, b"SLURM_JOB_ID")), configured)
        return FOR_EVER if AWAITED and seconds and number != 2 and configured is None else seconds

    def _directory_exists(self) -> bool:
        """Whether the cluster's directory is there: where that was removed, no controller comes back."""
        try:
            posix.stat(self._path.rpartition(b"/")[0])
        except OSError:
            return False
        return True

    def _report(self, error: Exception) -> int:
        from slurmk.client.shim import AWAITED, Unheard

        if AWAITED and self._command == "sbatch":
            job = AWAITED[-1].decode("ascii", "replace")
            say(2, "sbatch: error: The controller went away; job %s goes on, and nobody waits for it" % job)
            return 1
        if not AWAITED and isinstance(error, (OSError, Unheard)):
            return report(self._command, self._arguments)
        return report_lost(self._command, self._arguments)


FOR_EVER = float("inf")

TOLD_AFTER = 10.0
"""Seconds after which sbatch --wait says that it cannot reach the controller, as the reference does."""


def _passes(error: Exception) -> bool:
    """Whether the same can be asked again."""
    from slurmk.client.shim import AWAITED, Lost, Unheard

    return isinstance(error, (OSError, Lost if AWAITED else Unheard))


def patience(number: "Optional[int]", inside_job: bool, configured: "Optional[bytes]") -> float:
    """Seconds to go on trying after the failure with that errno to reach the controller."""
    if number not in PASSING:
        return 0.0
    if configured is not None:
        try:
            return max(0.0, float(configured))
        except ValueError:
            pass
    if inside_job:
        return 120.0
    return 0.0 if number == 2 else 10.0


def report(command: str, arguments: "List[bytes]") -> int:
    """Say that no controller answers, as the command does; gives its exit code."""
    words = [word.decode("utf-8", "replace") for word in arguments]
    if words[:1] in (["--version"], ["-V"]):
        say(1, VERSION_TEXT)
        return 0
    if command == "scontrol" and words[:1] == ["ping"]:
        say(1, DOWN.format(host=posix.uname().nodename).rstrip("\n"))
        return 1
    return fault(command, words, CONNECT)


def report_lost(command: str, arguments: "List[bytes]") -> int:
    """Say that the controller went away in the middle of the request; whether it was done is not known."""
    return fault(command, [word.decode("utf-8", "replace") for word in arguments], LOST)


def fault(command: str, words: "List[str]", text: str) -> int:
    """One line for the fault; gives the exit code."""
    if command == "scontrol":
        operands = [word for word in words if not word.startswith("-")] + ["", ""]
        prefix = SCONTROL.get((operands[0], operands[1]), SCONTROL.get((operands[0], ""), "slurm_load_jobs error: "))
        say(2, prefix + text)
        return 1
    prefix, code = COMMANDS.get(command, (command + ": error: ", 1))
    jobs = [word for word in words if word[:1].isdigit()]
    if "{job}" not in prefix:
        say(2, prefix + text)
    elif not jobs:
        say(2, "slurm_load_jobs error: " + text)
        return 1
    for job in jobs if "{job}" in prefix else []:
        say(2, prefix.replace("{job}", job) + text)
    return code


def report_unwritable(command: str, error: OSError) -> int:
    """Standard output refused what was to be written there."""
    say(2, "%s: error: standard output: %s" % (command, error.strerror))
    return 1


def wait_writable(descriptor: int) -> None:
    """Wait until a non-blocking descriptor takes more."""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    poll.poll()


def say(descriptor: int, text: str) -> None:
    """A line; nobody minds when it cannot be written."""
    data = (text + "\n").encode(sys.getfilesystemencoding(), "replace")
    try:
        posix.write(descriptor, data)
    except OSError:
        pass
