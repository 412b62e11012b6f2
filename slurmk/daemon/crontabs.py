"""Keeps scrontab's tables on disk."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path

from slurmk.core.crontabs import Crontabs, restored
from slurmk.daemon.durable import save_json

log = logging.getLogger(__name__)


class CrontabKeeper:
    """The tables of one controller, in ``path``. A file that cannot be read is kept beside, and then (``lost``) nobody knows
    which jobs are in a table."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lost = False
        self.crontabs = self._load()

    def _load(self) -> Crontabs:
        try:
            return restored(json.loads(self._path.read_text()))
        except FileNotFoundError:
            return Crontabs()
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.error("%s cannot be read, so there are no tables of scrontab: %s", self._path, error)
            self.lost = True
            with suppress(OSError):
                self._path.rename(self._path.with_suffix(".broken"))
            return Crontabs()

    def save(self) -> None:
        """Have the tables on disk. Raises OSError."""
        save_json(self._path, self.crontabs.saved())
