"""Names of queue objects. They begin with the cluster's name, so that several clusters of slurmk can share one Kubernetes."""

from __future__ import annotations

import hashlib
import re

LONGEST = 63

_UNFIT = re.compile(r"[^a-z0-9-]+")


def object_name(cluster: str, *parts: str) -> str:
    """``CLUSTER-PART…`` as an object may be named. What had to be changed for that gets a hash, so that no two are the same."""
    wanted = "-".join((cluster, *parts))
    name = _UNFIT.sub("-", wanted.lower()).strip("-")
    if name == wanted and len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 7].rstrip('-')}-{hashlib.sha256(wanted.encode()).hexdigest()[:6]}"
