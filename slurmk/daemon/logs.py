"""The controller's log: one line a fact, in a file that is rotated."""

from __future__ import annotations

import logging
import logging.handlers
import warnings
from collections.abc import Mapping
from pathlib import Path

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
SIZE = 10 * 1024 * 1024
KEPT = 5


LEVELS = {
    "quiet": logging.CRITICAL,
    "fatal": logging.CRITICAL,
    "error": logging.ERROR,
    "info": logging.INFO,
    "verbose": logging.INFO,
}
"""What Slurm's levels of logs are of ours; what is not here is DEBUG."""

ROOMS = ("slurmk", "bridge", "accounting", "grammar")
"""Whose words are in the log; what libraries have to say is not changed."""

FLAGS: Mapping[str, tuple[str, ...]] = {
    "auditrpcs": ("slurmk.daemon.requests",),
    "backfill": ("slurmk.daemon.plans",),
    "script": ("slurmk.daemon.site_programs",),
    "tracejobs": ("slurmk.daemon.jobs",),
}
"""DebugFlags that have something to say, and the loggers by which they say it."""


def set_levels(parameters: Mapping[str, str]) -> None:
    """Write as much to the log as SlurmctldDebug and DebugFlags say."""
    level = LEVELS.get(parameters.get("SlurmctldDebug", "info"), logging.DEBUG)
    for room in ROOMS:
        logging.getLogger(room).setLevel(level)
    wanted = parameters.get("DebugFlags", "").lower().split(",")
    for flag, names in FLAGS.items():
        for name in names:
            logging.getLogger(name).setLevel(logging.DEBUG if flag in wanted else logging.NOTSET)


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
