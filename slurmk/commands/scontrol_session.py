"""What scontrol's parts need of one scontrol; those that need more extend it."""

from __future__ import annotations

from typing import Protocol

from slurmk.commands.call import Call, Controller, Output


class Session(Protocol):
    """One run of scontrol."""

    @property
    def call(self) -> Call: ...
    @property
    def controller(self) -> Controller: ...
    @property
    def output(self) -> Output: ...

    def say(self, text: str) -> int:
        """A message on standard error, unless quiet; gives exit code 1."""
        ...

    def insist(self, text: str) -> int:
        """A message on standard error even when quiet; gives exit code 1."""
        ...
