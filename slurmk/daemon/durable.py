"""Small files of the controller that are on disk, whole, when it says so."""

from __future__ import annotations

import json
import os
from pathlib import Path


def save_json(path: Path, value: object) -> None:
    """Put the value in place of the file's content; after a crash there is the old content or the new. Raises OSError."""
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
