"""``slurmk``: start and end a controller with an embedded cluster, see how it is, and get at its commands.

The controller is a process of its own; this one starts it, waits until it answers, and asks it things through the same
socket as Slurm's commands do.
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import List, Optional, Tuple

from slurmk import __version__, wire
from slurmk.client import shim

START_SECONDS = 60.0
"""How long a controller may take to answer; recovering 100,000 jobs is the slowest case."""

STOP_SECONDS = 90.0

DESCRIPTION = """Slurm-compatible batch scheduling.

slurmk up makes an embedded cluster out of this machine: a controller, and pretended nodes on which jobs are real
processes. slurmk up --kubernetes runs jobs on a Kubernetes cluster instead. Then, in any shell:

    eval "$(slurmk env)"
    sbatch --wrap hostname
    squeue
"""

COMMANDS = {
    "up": "start the controller, with an embedded cluster or on Kubernetes, in the foreground",
    "down": "stop the controller; jobs go on and are taken up by the next up",
    "status": "say how the cluster is",
    "env": "print what to eval to have sbatch, squeue and the others on PATH",
    "shell": "open a shell that has them on PATH; starts a cluster if none answers",
    "why": "say why a job waits, when it is planned to start, and what smaller request would start earlier",
    "queues": "on Kubernetes: show (diff), make (apply) or delete the queues of Kueue and Volcano for accounts and QOS",
    "compatibility": "what slurmk does with each option and field of Slurm's commands, as a page or as JSON",
    "completion": "print what makes a shell complete the commands' options: bash, zsh or fish",
    "config": "check configuration files, and whether the Kubernetes cluster has what they name; starts nothing",
    "simulate": "replay a recorded workload and tell how long its jobs would have waited under a policy",
}

READY = """slurmk {version}: the cluster in {directory} is up

  eval "$(slurmk env{option})"   in another shell: sbatch, squeue, ... are on PATH then
  slurmk down{option}            stops it; jobs go on until the next up (--jobs ends them)
"""


class Fault(Exception):
    """Why the command cannot do its work."""


def main() -> None:
    """The ``slurmk`` command."""
    try:
        code = run(sys.argv[1:])
    except (Fault, OSError) as error:
        code = complain(str(error))
    except KeyboardInterrupt:
        code = 130
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


def run(arguments: "List[str]") -> int:
    """Do what the arguments say; gives the exit code."""
    if arguments[:1] == ["simulate"]:
        check_installation()
        return subprocess.call([sys.executable, "-P", "-m", "slurmk.daemon.simulate", *arguments[1:]])
    options = parser().parse_args(arguments)
    if options.command == "config":
        return check(options)
    if options.command == "compatibility":
        return compatibility(options.json)
    if options.command == "completion":
        return completion(options.shell)
    directory = Path(os.path.abspath(options.dir or os.environ.get("SLURMK_DIR") or default_directory()))
    if options.command == "up":
        return up(directory, controller_options(options), options.detach)
    if options.command == "down":
        return down(directory, options.jobs)
    if options.command == "status":
        return status(directory)
    if options.command == "env":
        return environment(directory)
    if options.command == "why":
        return why(directory, options.job, options.json)
    if options.command == "queues":
        return queues(directory, options.action, options.force)
    return shell(directory, controller_options(options))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="slurmk", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    top.add_argument("--version", action="version", version="slurmk " + __version__)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name == "compatibility":
            command.add_argument("--json", action="store_true", help="command, option or field, status and reason as data")
            continue
        if name == "completion":
            command.add_argument("shell", choices=("bash", "zsh", "fish"))
            continue
        if name not in ("config", "simulate"):
            command.add_argument(
                "--dir", help="where the cluster's state lives (default: $SLURMK_DIR, else %s)" % default_directory()
            )
        if name == "config":
            command.add_argument("action", choices=("check",))
            command.add_argument("--offline", action="store_true", help="with --kubernetes: do not ask the cluster")
        if name in ("up", "shell", "config"):
            command.add_argument("--conf", metavar="DIR", help="read slurm.conf, gres.conf and topology.conf there")
            command.add_argument("--kubeconfig", metavar="FILE", help="with --kubernetes: instead of $KUBECONFIG")
            command.add_argument("--context", metavar="NAME", help="with --kubernetes: instead of the kubeconfig's current one")
            command.add_argument(
                "--kubernetes",
                nargs="?",
                const="",
                metavar="FILE",
                help="run jobs on a Kubernetes cluster, as FILE says (default: slurmk.yaml of --conf, if there is one)",
            )
        if name in ("up", "shell"):
            command.add_argument("--nodes", type=positive, metavar="N", help="without --conf: pretend N nodes (default: 4)")
            command.add_argument("--database", metavar="URL", help="postgresql://... instead of SQLite below --dir")
        if name == "up":
            command.add_argument("--detach", action="store_true", help="go to the background once the cluster answers")
        if name == "down":
            command.add_argument("--jobs", action="store_true", help="cancel the running jobs too")
        if name == "why":
            command.add_argument("job", metavar="JOBID", help="12, an array's 12_3, a heterogeneous job's 12+1")
            command.add_argument("--json", action="store_true", help="the same as data, with all that was found")
        if name == "queues":
            command.add_argument("action", choices=("diff", "apply", "delete"))
            command.add_argument("--force", action="store_true", help="also change fields that others have set differently")
    return top


def positive(text: str) -> int:
    """A number of nodes."""
    number = int(text)
    if not 1 <= number <= 65536:
        raise argparse.ArgumentTypeError("must be from 1 to 65536")
    return number


def default_directory() -> str:
    """Where state lives when nothing else is said."""
    if os.geteuid() == 0:
        return "/var/lib/slurmk"
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "slurmk")


def controller_options(options: argparse.Namespace) -> "List[str]":
    """What of the command line is for the controller."""
    given = []
    if options.kubernetes is None and (options.kubeconfig or options.context):
        raise Fault("--kubeconfig and --context go with --kubernetes")
    if options.kubernetes is not None and options.nodes:
        raise Fault("--nodes pretends nodes; with --kubernetes they are the cluster's")
    if options.kubernetes is not None:
        given += ["--kubernetes", os.path.abspath(options.kubernetes) if options.kubernetes else ""]
    if options.kubeconfig:
        given += ["--kubeconfig", os.path.abspath(options.kubeconfig)]
    if options.context:
        given += ["--context", options.context]
    if options.conf:
        given += ["--conf", os.path.abspath(options.conf)]
    if options.nodes:
        given += ["--nodes", str(options.nodes)]
    if options.database:
        given += ["--database", options.database]
    return given


def check(options: argparse.Namespace) -> int:
    """Have configuration files checked, by a process that may import what it takes; gives the exit code."""
    check_installation()
    given = ["--offline"] if options.offline else []
    for name in ("conf", "kubeconfig", "context"):
        if getattr(options, name):
            given += ["--" + name, getattr(options, name)]
    if options.kubernetes is not None:
        given += ["--kubernetes", options.kubernetes]
    return subprocess.call([sys.executable, "-P", "-m", "slurmk.daemon.check", *given])


def compatibility(as_json: bool) -> int:
    """Have the page printed by a process that may import the tables; gives the exit code."""
    check_installation()
    given = ["--json"] if as_json else []
    return subprocess.call([sys.executable, "-P", "-m", "slurmk.commands.compatibility", *given])


def completion(shell: str) -> int:
    """The same for what a shell reads to complete options."""
    check_installation()
    return subprocess.call([sys.executable, "-P", "-m", "slurmk.commands.completion", shell])


def write_share(directory: Path) -> "subprocess.Popen[bytes]":
    """Man pages and completions, written by a process of its own while the controller starts."""
    command = [sys.executable, "-P", "-m", "slurmk.commands.manual", str(directory / "share")]
    null = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True, cwd="/")


# ------------------------------------------------------------------- up


def up(directory: Path, options: "List[str]", detach: bool) -> int:
    """Start a controller; in the foreground, stay until it ends."""
    check_installation()
    if answers(directory):
        return complain("a cluster is up in %s already" % directory)
    return up_detached(directory, options) if detach else up_foreground(directory, options)


def up_detached(directory: Path, options: "List[str]") -> int:
    """Start it in the background; returns when it answers, or with what it said when it does not."""
    (directory / "log").mkdir(mode=0o750, parents=True, exist_ok=True)
    said = directory / "log" / "start.log"
    with open(said, "wb") as file:
        process = start(directory, options, file.fileno())
    share = write_share(directory)
    put_in_place(directory)
    ready = wait_until_ready(process, directory, detach=True)
    if not ready:
        share.kill()
        share.wait()
    text = said.read_text(errors="replace")
    sys.stderr.write(text)
    if not ready and standby(directory):
        print("slurmk: the controller in %s is up and stands by: %s" % (directory, standby(directory)))
        return 0
    if not ready:
        code = process.poll()
        if code is not None and not text:
            full = not os.statvfs(directory).f_bavail
            complain("the controller ended at once (code %d) in %s%s" % (code, directory, ": the disk is full" if full else ""))
        return code or 1
    share.wait()
    print("slurmk: the cluster in %s is up" % directory)
    return 0


def up_foreground(directory: Path, options: "List[str]") -> int:
    """Start it as a child and wait for its end. SIGINT, which a terminal sends to both, and SIGTERM stop it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = start(directory, options, None)
    signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
    share = write_share(directory)
    put_in_place(directory)
    if wait_until_ready(process, directory):
        share.wait()
        option = "" if str(directory) == default_directory() else " --dir " + shlex.quote(str(directory))
        print(READY.format(version=__version__, directory=directory, option=option), flush=True)
    code = process.wait()
    return 128 - code if code < 0 else code


def start(directory: Path, options: "List[str]", errors: "Optional[int]") -> "subprocess.Popen[bytes]":
    """The controller's process; with ``errors`` (a file descriptor) it is on its own, and says there what it has to say."""
    command = [sys.executable, "-P", "-m", "slurmk.daemon", "--dir", str(directory), *options]
    if errors is None:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, restore_signals=True, preexec_fn=listen_to_interrupts)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd="/", start_new_session=True)


def listen_to_interrupts() -> None:
    """In the child: SIGINT is not ignored there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until_ready(process: "subprocess.Popen[bytes]", directory: Path, detach: bool = False) -> bool:
    """True when the controller answers, false when it ended or takes too long. One that stands by may take any time; who
    wants to leave it in the background need not wait for that."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            return False
        if answers(directory):
            return True
        if standby(directory):
            if detach:
                return False
            end = time.monotonic() + START_SECONDS
        time.sleep(0.02)
    complain("the controller does not answer; see %s" % (directory / "log" / "controller.log"))
    return False


# ------------------------------------------------------------------- asking


def ask(directory: Path, words: "List[bytes]") -> "Optional[Tuple[int, bytes, bytes]]":
    """Exit code, output and errors of a request to the controller; None when none answers."""
    try:
        connection = shim.connect(os.fsencode(directory / "slurmk.sock"))
    except OSError:
        return None
    shim.send(connection, shim.request("slurmk", words, b"", []))
    receive = shim.receiver(connection)
    streams: "dict[int, bytes]" = {wire.OUTPUT: b"", wire.ERROR: b""}
    try:
        while True:
            kind, payload = receive()
            if kind == wire.EXIT:
                return int(payload), streams[wire.OUTPUT], streams[wire.ERROR]
            if kind in streams:
                streams[kind] += payload
    except (shim.Lost, wire.WireError):
        return None


def answers(directory: Path) -> bool:
    """True when a controller serves requests there."""
    return ask(directory, [b"status"]) is not None


def tell(answer: "Tuple[int, bytes, bytes]") -> int:
    """Print an answer; gives its exit code."""
    code, output, errors = answer
    sys.stdout.write(output.decode("utf-8", "replace"))
    sys.stdout.flush()
    sys.stderr.write(errors.decode("utf-8", "replace"))
    return code


def standby(directory: Path) -> str:
    """Whose lease the controller there waits for; empty when it waits for none, or there is no controller."""
    try:
        said = (directory / "state" / "standby").read_text(errors="replace").strip()
    except OSError:
        return ""
    return said if is_locked(directory) else ""


def status(directory: Path) -> int:
    """Say how the cluster is."""
    answer = ask(directory, [b"status"])
    if answer is None and standby(directory):
        print("slurmk: the controller in %s stands by: %s" % (directory, standby(directory)))
        return 1
    if answer is None and is_locked(directory):
        print("slurmk: a controller in %s starts or stands by; see %s" % (directory, directory / "log" / "controller.log"))
        return 1
    if answer is None:
        print("slurmk: no cluster is up in %s" % directory)
        return 1
    code = tell(answer)
    print("directory: %s" % directory)
    return code


def why(directory: Path, job: str, as_json: bool) -> int:
    """Say why a job waits."""
    answer = ask(directory, [b"why", os.fsencode(job), *([b"--json"] if as_json else [])])
    if answer is None:
        raise Fault("no cluster is up in %s" % directory)
    return tell(answer)


def queues(directory: Path, action: str, force: bool) -> int:
    """Show, make or delete the queues."""
    answer = ask(directory, [b"queues", os.fsencode(action)] + ([b"--force"] if force else []))
    if answer is None:
        return complain("no cluster is up in %s" % directory)
    return tell(answer)


def down(directory: Path, end_jobs: bool) -> int:
    """Stop the controller and wait until it has gone."""
    answer = ask(directory, [b"down", b"--jobs"] if end_jobs else [b"down"])
    if answer is None:
        if standby(directory):
            os.kill(int((directory / "controller.lock").read_text()), signal.SIGTERM)
            return wait_until_gone(directory)
        if is_locked(directory):
            return complain(
                "a controller runs in %s but does not answer; see %s" % (directory, directory / "log" / "controller.log")
            )
        print("slurmk: no cluster is up in %s" % directory)
        return 0
    code = tell(answer)
    return code or wait_until_gone(directory)


def is_locked(directory: Path) -> bool:
    """True while a controller lives there, whether it answers or not."""
    import fcntl

    try:
        with open(directory / "controller.lock", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def wait_until_gone(directory: Path) -> int:
    """Wait for the controller's lock; the exit code."""
    import fcntl

    end = time.monotonic() + STOP_SECONDS
    with open(directory / "controller.lock", encoding="ascii") as lock:
        while time.monotonic() < end:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return 0
            except BlockingIOError:
                time.sleep(0.02)
    return complain("the controller has not stopped; see %s" % (directory / "log" / "controller.log"))


# ------------------------------------------------------------------- shells


def put_in_place(directory: Path) -> Path:
    """The folder of the commands; they are brought up to date there by whoever may do that."""
    binaries = directory / "bin"
    if binaries.is_dir() and not os.access(binaries, os.W_OK):
        return binaries
    check_installation()
    from slurmk.client.installation import InstallationError, install

    try:
        return install(directory)
    except InstallationError as error:
        raise Fault(str(error)) from None


def check_installation() -> None:
    """Raise Fault in the copy that a cluster's ``bin`` has for users who cannot read the installation."""
    if not (Path(__file__).resolve().parent.parent / "daemon").is_dir():
        raise Fault("this user cannot read the installation of slurmk, so it cannot start a cluster")


def environment(directory: Path) -> int:
    """Print export lines for a shell."""
    print('export PATH=%s:"$PATH"' % shlex.quote(str(put_in_place(directory))))
    print('export MANPATH=%s:"${MANPATH:-}"' % shlex.quote(str(directory / "share" / "man")))
    print("export SLURMK_DIR=%s" % shlex.quote(str(directory)))
    if not answers(directory):
        print("slurmk: no cluster is up in %s; `slurmk up` starts one" % directory, file=sys.stderr)
    return 0


def shell(directory: Path, options: "List[str]") -> int:
    """Become a shell with the commands on PATH; gives an exit code only when there can be no cluster."""
    if not answers(directory):
        check_installation()
        code = up_detached(directory, options)
        if code:
            return code
    else:
        print("slurmk: the cluster in %s is up" % directory)
    binaries = put_in_place(directory)
    print("slurmk: sbatch, squeue, sinfo, sacct, ... are on PATH; `slurmk down` stops the cluster, `exit` does not")
    sys.stdout.flush()
    program = os.environ.get("SHELL") or "/bin/sh"
    variables = dict(os.environ, PATH="%s:%s" % (binaries, os.environ.get("PATH", os.defpath)), SLURMK_DIR=str(directory))
    arguments = [program]
    if os.path.basename(program) == "bash":
        arguments += ["--rcfile", str(shell_settings(directory, binaries))]
    return os.execve(program, arguments, variables)


BASHRC = """[ -f ~/.bashrc ] && . ~/.bashrc
PATH={binaries}:"$PATH"
MANPATH={manuals}:"${{MANPATH:-}}"
export MANPATH
[ -f {completion} ] && . {completion}
PS1="(slurmk) $PS1"
"""


def shell_settings(directory: Path, binaries: Path) -> Path:
    """A bash start file: the user's own, then PATH, which that may have set anew, and a prompt that shows where one is."""
    from slurmk.client.installation import write

    path = directory / "lib" / "bashrc"
    share = directory / "share"
    text = BASHRC.format(
        binaries=shlex.quote(str(binaries)),
        manuals=shlex.quote(str(share / "man")),
        completion=shlex.quote(str(share / "bash-completion" / "completions" / "slurmk")),
    )
    write(path, os.fsencode(text), 0o644)
    return path


def complain(text: str) -> int:
    """One line on standard error; the exit code."""
    print("slurmk: error: %s" % text, file=sys.stderr)
    return 1


if __name__ == "__main__":
    main()
