"""The one exception that parsers raise for bad text."""

from __future__ import annotations


class GrammarError(ValueError):
    """Text that has no meaning. ``str()`` is one sentence for the user, in Slurm's words where clients match them;
    ``position`` is the offset in the text where it went wrong, if known."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position
