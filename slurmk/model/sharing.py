"""Whether a job shares its nodes, as Slurm tells it: in scontrol and squeue, and to the job's own programs."""

from __future__ import annotations

from slurmk.model.node import Partition

EXCLUSIVE: dict[str, str] = {"none": "NODE", "user": "USER", "mcs": "MCS", "topo": "TOPO"}
"""The word of a request to that of ``Exclusive=``."""


def sharing(shared: str | None, partition: Partition | None) -> tuple[str, str]:
    """``OverSubscribe=`` (YES: it asked to share, OK: its partition lets it, or NO) and ``Exclusive=`` of a job that asks for
    ``shared`` in a partition."""
    whole = partition is not None and partition.oversubscribe == "EXCLUSIVE"
    if shared == "oversubscribe" and not whole:
        return "YES", "NO"
    exclusive = _exclusive(None if shared == "oversubscribe" else shared, partition, whole=whole)
    shares = partition is not None and partition.oversubscribe.partition(":")[0] in ("YES", "FORCE")
    return "OK" if shares and shared != "none" else "NO", exclusive


def _exclusive(shared: str | None, partition: Partition | None, *, whole: bool) -> str:
    if shared == "topo" or (partition is not None and partition.exclusive_topology):
        return "TOPO"
    if whole or shared == "none":
        return "NODE"
    if shared is not None:
        return EXCLUSIVE.get(shared, "NO")
    return "USER" if partition is not None and partition.exclusive_user else "NO"
