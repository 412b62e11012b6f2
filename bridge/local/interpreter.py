"""Which Python runs stepd: one that all users can execute, since srun's local part runs as the job's user."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

OPTIONS = ("-I", "-S", "-E")

ELSEWHERE = ("/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3")


class InterpreterError(Exception):
    """No interpreter runs stepd."""


def find_interpreter(folder: Path) -> str:
    """The first that runs what is in ``folder``; trying it compiles the modules. Raises InterpreterError."""
    own = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    candidates = [each for each in (own, *ELSEWHERE) if os.geteuid() != 0 or _for_all(each)]
    for candidate in (*candidates, own):
        if _works(candidate, folder):
            return candidate
    raise InterpreterError(f"no Python 3.8 or newer runs stepd; tried {', '.join((*candidates, own))}")


def _for_all(path: str) -> bool:
    try:
        return all(part.stat().st_mode & stat.S_IXOTH for part in (Path(path), *Path(path).parents))
    except OSError:
        return False


def _works(interpreter: str, folder: Path) -> bool:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.version_info < (3, 8) and sys.exit(1)\n"
        "import slurmk.stepd.zygote, slurmk.stepd.srun"
    )
    try:
        done = subprocess.run(
            [interpreter, *OPTIONS, "-c", program, str(folder)], capture_output=True, stdin=subprocess.DEVNULL, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
