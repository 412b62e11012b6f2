"""Slurm's error numbers and their messages (slurm_errno.h), which clients match."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Errno(IntEnum):
    """Numbers of ``slurm_errno.h``; the name is Slurm's without its prefix. The REST API returns them as ``error_number``."""

    INVALID_PARTITION_NAME = 2000


MESSAGES: dict[Errno, str] = {
    Errno.INVALID_PARTITION_NAME: "Invalid partition name specified",
}
"""What ``slurm_strerror`` says."""


@dataclass(frozen=True, slots=True)
class SlurmError(Exception):
    """A refusal: Slurm's number, and a message when Slurm says more than the number's own."""

    errno: Errno
    message: str = ""

    def __str__(self) -> str:
        return self.message or MESSAGES[self.errno]
