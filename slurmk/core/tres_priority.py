"""What a job's TRES add to its priority (slurm.conf(5), PriorityWeightTRES): of each, a weight times its share of what the
partition has."""

from __future__ import annotations

import re

from slurmk.core.state import State
from slurmk.model.job import Job
from slurmk.model.requested import Requests

_WEIGHT = re.compile(r"([A-Za-z][\w./:-]*)=(-?\d{1,9}(?:\.\d{1,6})?)\Z", re.ASCII)

Shares = tuple[tuple[str, float], ...]
"""By the names of accounting, in the order of configuration."""


def weights_of(text: str) -> Shares:
    """``CPU=1000,Mem=2000,GRES/gpu=3000``; words that are none are passed over."""
    found = (_WEIGHT.match(word.strip()) for word in text.split(","))
    return tuple((match[1].lower(), float(match[2])) for match in found if match is not None)


def shares_of(state: State, job: Job) -> Shares:
    """How much of the partition's TRES the job asks for, between 0 and 1, of each that has a weight."""
    weights = weights_of(state.site.parameters.get("PriorityWeightTRES") or "")
    if not weights or not job.partitions:
        return ()
    asked = Requests(state.site, state.partitions).of(job).tres
    total = _total(state, job.partitions[0])
    return tuple((name, min(1.0, asked.get(name, 0) / total[name]) if total.get(name) else 0.0) for name, _ in weights)


def weighted(state: State, shares: Shares) -> Shares:
    """The shares times their weights."""
    weights = dict(weights_of(state.site.parameters.get("PriorityWeightTRES") or ""))
    return tuple((name, share * weights.get(name, 0.0)) for name, share in shares)


def _total(state: State, name: str) -> dict[str, int]:
    """TRES of all nodes of a partition."""
    known = state.partition_tres.get(name)
    if known is not None:
        return known
    partition = state.partitions.get(name)
    nodes = [state.nodes[each] for each in (partition.nodes if partition else ()) if each in state.nodes]
    cpus = sum(node.cpus for node in nodes)
    found = {"cpu": cpus, "billing": cpus, "node": len(nodes), "mem": sum(node.memory for node in nodes)}
    for node in nodes:
        for gres in node.gres:
            for word in (f"gres/{gres.name}", f"gres/{gres.name}:{gres.type}") if gres.type else (f"gres/{gres.name}",):
                found[word] = found.get(word, 0) + gres.count
    state.partition_tres[name] = found
    return found
