"""A terminal for a program under test: keys go in, what it shows comes out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Mapping
from pathlib import Path


class Terminal:
    """A shell command that runs in a terminal of its own."""

    def __init__(self, command: str, environment: Mapping[str, str], directory: Path, size: tuple[int, int] = (24, 80)) -> None:
        self.shown = ""
        self.process, self.descriptor = pty.fork()
        if not self.process:
            try:
                os.chdir(directory)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
                os.execvpe("bash", ["bash", "--norc", "-c", command], {**environment, "TERM": "dumb"})
            finally:
                os._exit(1)

    def resize(self, rows: int, columns: int) -> None:
        """Change the window's size, of which the program in front is told."""
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self.descriptor, keys.encode())

    def wait_for(self, text: str, seconds: float = 20) -> None:
        """Wait until the text was shown, and forget what was shown up to its end."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            assert self._read(end), f"{text!r} was not shown, but {self.shown!r}"
        self.shown = self.shown.partition(text)[2]

    def end(self, seconds: float = 20) -> int:
        """Wait until the command has ended; its exit code."""
        end = time.monotonic() + seconds
        while self._read(end):
            pass
        os.close(self.descriptor)
        with contextlib.suppress(ProcessLookupError):
            if time.monotonic() >= end:
                os.kill(self.process, 9)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def _read(self, until: float) -> bool:
        if not select.select([self.descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self.descriptor, 65536)
        except OSError:
            return False
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)
