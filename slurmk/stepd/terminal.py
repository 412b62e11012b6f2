"""srun's own terminal, for a task that gets one of its own (srun(1), --pty): its size, and raw mode while the task has it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Tuple


class NoTerminal(Exception):
    """The descriptor is none; the message says what was tried."""


class Terminal:
    """The terminal behind a descriptor. Raises NoTerminal."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._before: Any = None
        try:
            self.size()
        except OSError as error:
            raise NoTerminal("ioctl(TIOCGWINSZ): %s" % error.strerror) from None

    def size(self) -> Tuple[int, int]:
        """Rows and columns."""
        columns, rows = os.get_terminal_size(self.descriptor)
        return rows, columns

    def variables(self, port: int) -> Dict[str, str]:
        """What tells the task of it."""
        rows, columns = self.size()
        return {"SLURM_PTY_PORT": str(port), "SLURM_PTY_WIN_COL": str(columns), "SLURM_PTY_WIN_ROW": str(rows)}

    def make_raw(self) -> None:
        """From now on every key goes to the task as it is."""
        import termios
        import tty

        try:
            self._before = termios.tcgetattr(self.descriptor)
            tty.setraw(self.descriptor, termios.TCSANOW)  # what was typed already is kept
        except termios.error:
            self._before = None

    def restore(self) -> None:
        """As it was."""
        if self._before is None:
            return
        import termios

        try:
            termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._before)
        except termios.error:
            pass
        self._before = None
