"""Ports that a step's tasks may talk over: taken from those that MpiParams names (slurm.conf(5), srun --resv-ports).

Each job takes its own from another place of the range, for no table of all jobs' ports is kept.
"""

from __future__ import annotations

import re

from slurmk.stepd import texts
from slurmk.stepd.layout import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Mapping, Set

TOO_MANY = "Requires more ports than can be reserved"

RANGE = re.compile(r"(?:^|[,\s])ports=(\d+)-(\d+)", re.IGNORECASE)

APART = 97
"""How far apart jobs one after another begin in the range."""


def reserve(job: Mapping[str, Any], request: Mapping[str, Any], tasks: int, taken: Set[int]) -> str:
    """Ports of a new step, as SLURM_STEP_RESV_PORTS says them, which are then ``taken``: as many as asked for, else one more
    than ``tasks`` of a node; none where the site has no range. Raises layout.Refused."""
    found = RANGE.search(str(job.get("parameters", {}).get("MpiParams") or ""))
    wanted = request.get("reserve_ports")
    if found is None:
        if wanted is not None and int(wanted) > 1:
            raise Refused(TOO_MANY)
        return ""
    first, last = int(found.group(1)), int(found.group(2))
    count = tasks + 1 if wanted in (None, 1) else int(wanted or 0)
    size = last - first + 1
    begin = int(job["job"]) * APART % max(1, size)
    order = [first + (begin + offset) % size for offset in range(size)]
    chosen = sorted([port for port in order if port not in taken][:count])
    if len(chosen) < count:
        raise Refused(TOO_MANY)
    taken.update(chosen)
    return texts.numbers(chosen)


def numbers(text: str) -> List[int]:
    """The ports of that text."""
    found: List[int] = []
    for item in filter(None, text.split(",")):
        low, _, high = item.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found
