"""The one exception that the store raises."""

from __future__ import annotations


class StoreError(Exception):
    """The database cannot do what was asked; nothing of the request was done. ``str()`` is one sentence for the
    administrator that names the database. ``passing`` is true when the same request may succeed once the cause (a full
    disk, a lock, a server that is away) is gone."""

    def __init__(self, message: str, *, passing: bool = True) -> None:
        super().__init__(message)
        self.passing = passing
