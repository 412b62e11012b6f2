"""What a shim does when things are not as they should be: no controller answers, it goes away, or output is refused.

Slurm's commands try for 10 seconds before they give up. So does the shim while the controller's socket is there, that
is, while a controller died or is being started; where ``slurmk down`` took the socket away, it gives up at once, except
inside a job, where it is worth waiting longer for the controller to come back. ``SLURMK_CONNECT_TIMEOUT`` (seconds)
changes both. Texts and exit codes are those that the reference's commands give while slurmctld is down.
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


def try_again(
    attempt: "Callable[[], int]", error: Exception, command: str, arguments: "List[bytes]", environment: bytes
) -> int:
    """Go on after ``error`` with what can be done again; gives the exit code."""
    from slurmk.client.shim import Lost, Unheard, variable

    inside = bool(variable(environment, b"SLURM_JOB_ID"))
    end = time.monotonic() + patience(error, inside, variable(environment, b"SLURMK_CONNECT_TIMEOUT"))
    pause = 0.02
    while isinstance(error, (OSError, Unheard)) and time.monotonic() + pause < end:
        time.sleep(pause)
        pause = min(pause * 1.5, 1.0)
        try:
            return attempt()
        except (OSError, Lost, WireError) as again:
            error = again
    if isinstance(error, (OSError, Unheard)):
        return report(command, arguments)
    return report_lost(command, arguments)


def patience(error: Exception, inside_job: bool, configured: "Optional[bytes]") -> float:
    """Seconds to go on trying after that failure to reach the controller."""
    number = error.errno if isinstance(error, OSError) else 0
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
