"""Pictures of a replay: what was in use, how many waited, and how long, over the time of the trace."""

from __future__ import annotations

import matplotlib

matplotlib.use("agg")

from matplotlib.figure import Figure

from slurmk.planner.simulator.replay import Outcome

DAY = 86400.0

PARTS = 400
"""Parts of the time that utilization is averaged over."""


def draw(path: str, outcome: Outcome) -> None:
    """Write a picture in the form that the path's ending names; raises OSError where it cannot."""
    figure = Figure(figsize=(12, 9), layout="constrained")
    above, middle, below = figure.subplots(3, 1, sharex=True)
    first = int(outcome.trace.submit[0])
    used, queued = outcome.used(PARTS), outcome.queued()
    above.fill_between(_days(used.times, first), used.values, step="post", linewidth=0)
    above.set_ylabel("mean share of the machine in use")
    above.set_ylim(0, 1)
    middle.step(_days(queued.times, first), queued.values, where="post", linewidth=0.8)
    middle.set_ylabel("jobs that wait")
    submit = _days(outcome.trace.submit.tolist(), first)
    below.plot(submit, [wait / 3600 for wait in outcome.waits.tolist()], ".", markersize=2, alpha=0.5)
    below.set_yscale("symlog", linthresh=0.1)
    below.set_ylabel("wait by submission (hours)")
    below.set_xlabel("days since the first submission")
    figures = outcome.figures()
    figure.suptitle(
        f"{figures['jobs']} jobs on {outcome.trace.procs} processors, policy {outcome.policy.value}: mean wait "
        f"{figures['mean_wait']:.0f} s, bounded slowdown {figures['mean_bounded_slowdown']:.1f}, "
        f"utilization {figures['utilization']:.1%}"
    )
    figure.savefig(path)


def _days(times: list[int], first: int) -> list[float]:
    return [(time - first) / DAY for time in times]
