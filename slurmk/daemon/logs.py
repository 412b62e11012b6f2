"""The controller's log: one line a fact, in a file that is rotated."""

from __future__ import annotations

import logging
import logging.handlers
import warnings
from pathlib import Path

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
SIZE = 10 * 1024 * 1024
KEPT = 5


def start_log(directory: Path) -> Path:
    """Have everything logged to ``directory``/log/controller.log; gives that path."""
    folder = directory / "log"
    folder.mkdir(mode=0o750, exist_ok=True)
    path = folder / "controller.log"
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=SIZE, backupCount=KEPT, encoding="utf-8", errors="backslashreplace"
    )
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.raiseExceptions = False  # a full disk must not fill standard error
    logging.captureWarnings(True)
    warnings.simplefilter("default")
    return path
