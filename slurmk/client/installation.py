"""Writes the shims: ``bin/`` with one small program a command, and ``lib/`` with what they need.

A shim is a link to the compiled ``lib/shim`` where there is a C compiler, else the Python script that
``lib/python`` has in any case: the compiled form leaves to it whatever is out of the ordinary.

The modules are copied there because the shims serve every user of the machine, who may not be able to read the source
tree or the virtual environment that the controller runs from; for the same reason the interpreter is one that everyone
can execute when root runs the controller. Each file replaces its predecessor in one step, so a command that starts
meanwhile finds either.
"""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import List, Optional

COMMANDS = (
    "sbatch",
    "srun",
    "salloc",
    "squeue",
    "scancel",
    "sinfo",
    "sacct",
    "scontrol",
    "sacctmgr",
    "sprio",
    "sdiag",
    "sstat",
    "sattach",
    "sbcast",
    "strigger",
    "scrontab",
    "swait",
    "sshare",
    "sreport",
)

MODULES = (
    "__init__.py",
    "wire.py",
    "client/__init__.py",
    "client/shim.py",
    "client/remote.py",
    "client/unreachable.py",
    "client/slurmk.py",
)

LONGEST_SHEBANG = 120
"""Bytes; older kernels cut the first line of a script at 127."""

OWN = """#!/bin/sh
SLURMK_DIR=${{SLURMK_DIR:-{directory}}}; export SLURMK_DIR
if [ -x {python} ]; then exec {python} -P -m slurmk.client.slurmk "$@"; fi
exec {interpreter} -ISE -c {program} "$@"
"""
"""``slurmk`` itself: by the controller's own Python, or for users who cannot execute that, by the shims'."""

PROGRAM = "import sys; sys.path.insert(0, {library}); from slurmk.client.slurmk import main; main()"

SCRIPT = """import sys
sys.path.insert(0, {library})
from slurmk.client.shim import main
main({command}, {socket})
"""


class InstallationError(Exception):
    """The shims cannot be written, or no interpreter runs them; says why."""


def install(directory: Path) -> Path:
    """Write the shims of the cluster in ``directory``; gives the folder to put on PATH. Raises InstallationError."""
    binaries, library = directory / "bin", directory / "lib"
    try:
        package = Path(__file__).resolve().parent.parent
        for module in MODULES:
            write(library / "slurmk" / module, (package / module).read_bytes(), 0o644)
        interpreter = find_interpreter(library)
        compiled = compile_shim(package / "client" / "shim.c", library / "shim")
        for command in COMMANDS:
            text = script(interpreter, library, command, directory / "slurmk.sock")
            write(library / "python" / command, text, 0o755)
            if compiled:
                link(binaries / command, "../lib/shim")
            else:
                write(binaries / command, text, 0o755)
        own = OWN.format(
            directory=shlex.quote(str(directory)),
            python=shlex.quote(sys.executable),
            interpreter=shlex.quote(interpreter),
            program=shlex.quote(PROGRAM.format(library=ascii(str(library)))),
        )
        write(binaries / "slurmk", os.fsencode(own), 0o755)
    except OSError as error:
        raise InstallationError("%s: %s" % (error.filename or directory, error.strerror)) from None
    return binaries


def compile_shim(source: Path, target: Path) -> bool:
    """Make the compiled shim, which starts several times faster; False where there is no C compiler that works.

    ``SLURMK_SHIM=python`` does without it.
    """
    if os.environ.get("SLURMK_SHIM") == "python" or not source.exists():
        return False
    kept = target.with_name("shim.c")
    if target.exists() and kept.exists() and kept.read_bytes() == source.read_bytes():
        return True
    make_folder(target.parent)
    temporary = target.with_name(".shim.%d" % os.getpid())
    if attempt(["cc", "-O2", "-std=gnu11", "-o", str(temporary), str(source)]) != 0:
        return False
    temporary.chmod(0o755)
    os.replace(temporary, target)
    write(kept, source.read_bytes(), 0o644)
    return True


def link(path: Path, target: str) -> None:
    """Put a symbolic link in place in one step."""
    if path.is_symlink() and os.readlink(path) == target:
        return
    make_folder(path.parent)
    temporary = path.with_name(".%s.%d" % (path.name, os.getpid()))
    os.symlink(target, temporary)
    os.replace(temporary, path)


def script(interpreter: str, library: Path, command: str, socket: Path) -> bytes:
    """The text of one shim. An interpreter whose path is no good in a ``#!`` line is started through sh."""
    line = "#!%s -ISE\n" % interpreter
    if len(os.fsencode(line)) > LONGEST_SHEBANG or len(interpreter.split()) != 1:
        line = "#!/bin/sh\n'''exec' %s -ISE \"$0\" \"$@\"\n'''\n" % shlex.quote(interpreter)
    text = SCRIPT.format(library=ascii(str(library)), command=ascii(command), socket=repr(os.fsencode(socket)))
    return os.fsencode(line + text)


def write(path: Path, content: bytes, mode: int) -> None:
    """Put a file in place in one step, unless it is there already as it should be."""
    try:
        if not path.is_symlink() and path.read_bytes() == content and stat.S_IMODE(path.stat().st_mode) == mode:
            return
    except OSError:
        pass
    make_folder(path.parent)
    temporary = path.with_name(".%s.%d" % (path.name, os.getpid()))
    with open(temporary, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    os.replace(temporary, path)


def make_folder(path: Path) -> None:
    """A folder that every user can enter, whatever the umask; its parents as well when they were not there."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def find_interpreter(library: Path) -> str:
    """The interpreter of the shims: the one below this process's virtual environment, if all who need to can execute it.

    Trying it compiles the modules too. Raises InstallationError when none works.
    """
    candidates = [
        os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
        "/usr/bin/python3",
        "/usr/local/bin/python3",
        "/bin/python3",
    ]
    for candidate in candidates:
        if (os.geteuid() != 0 or everyone_executes(candidate)) and works(candidate, library):
            return candidate
    if works(candidates[0], library):
        return candidates[0]
    raise InstallationError("no Python 3.8 or newer runs the commands; tried %s" % ", ".join(candidates))


def everyone_executes(path: str) -> bool:
    """True when any user can execute the file: all folders above it may be entered."""
    try:
        for part in [Path(path), *Path(path).parents]:
            if not part.stat().st_mode & stat.S_IXOTH:
                return False
    except OSError:
        return False
    return True


def works(interpreter: str, library: Path) -> bool:
    """True when that interpreter can import what a shim imports."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import _socket, slurmk.client.shim, slurmk.client.unreachable;"
        "sys.exit(sys.version_info < (3, 8))"
    )
    process = attempt([interpreter, "-ISE", "-c", program, str(library)])
    return process is not None and process == 0


def attempt(command: List[str]) -> Optional[int]:
    """The exit code of a short command, None when it cannot be run."""
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20, check=False
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return None
