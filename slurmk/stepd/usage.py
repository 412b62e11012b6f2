"""What tasks used: sampled from /proc while they run, and from the kernel's own sums when they end."""

from __future__ import annotations

import contextlib
import os

from slurmk.stepd.processes import descendants, stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource
    from typing import Any, Dict, Mapping, Sequence

    Measures = Dict[str, int]

PAGE = os.sysconf("SC_PAGE_SIZE")
NAME = b"stepd "
"""How the names of stepd's own processes begin."""

TICKS = os.sysconf("SC_CLK_TCK")


def empty() -> Measures:
    return {"user_cpu": 0, "system_cpu": 0, "rss": 0, "vsize": 0, "disk_read": 0, "disk_write": 0, "pages": 0}


def sample(process: int, kept: Measures) -> None:
    """Measure a task with all its descendants, and keep what is highest. Sizes are bytes, CPU microseconds."""
    now = empty()
    for each in [process, *descendants(process)]:
        found = stat_fields(each)
        if found is None or _has_no_program(each):
            continue
        now["pages"] += int(found[9])
        now["user_cpu"] += (int(found[11]) + int(found[13])) * 1000000 // TICKS
        now["system_cpu"] += (int(found[12]) + int(found[14])) * 1000000 // TICKS
        now["vsize"] += int(found[20])
        now["rss"] += int(found[21]) * PAGE
        _add_disk(each, now)
    for name, value in now.items():
        kept[name] = max(kept[name], value)


def _has_no_program(process: int) -> bool:
    """True for a task that is still a copy of its keeper, whose size is not its own."""
    try:
        with open("/proc/%d/comm" % process, "rb") as file:
            return file.read().startswith(NAME)
    except OSError:
        return True


def _add_disk(process: int, measures: Measures) -> None:
    with contextlib.suppress(OSError, ValueError), open("/proc/%d/io" % process, "rb") as file:
        for line in file:
            if line.startswith(b"rchar:"):
                measures["disk_read"] += int(line[6:])
            elif line.startswith(b"wchar:"):
                measures["disk_write"] += int(line[6:])


def close(kept: Measures, final: resource.struct_rusage, own: int) -> None:
    """Take the kernel's sums of a task that ended (it and the children it waited for).

    Its highest size counts from before it became its program, when it was a copy of this process, whose size is ``own``
    bytes; so what is not above that is only used for a task that ended before it was ever measured.
    """
    kept["user_cpu"] = max(kept["user_cpu"], int(final.ru_utime * 1000000))
    kept["system_cpu"] = max(kept["system_cpu"], int(final.ru_stime * 1000000))
    if final.ru_maxrss * 1024 > own or not kept["rss"]:
        kept["rss"] = max(kept["rss"], final.ru_maxrss * 1024)
    kept["vsize"] = max(kept["vsize"], kept["rss"])
    kept["pages"] = max(kept["pages"], final.ru_majflt)


def own_size() -> int:
    """The largest size of this process so far, in bytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + 1048576


def add(kept: Measures, final: resource.struct_rusage) -> None:
    """Add the CPU of a descendant that outlived its task."""
    kept["user_cpu"] += int(final.ru_utime * 1000000)
    kept["system_cpu"] += int(final.ru_stime * 1000000)


SPREAD = ("rss", "vsize", "disk_read", "disk_write", "pages")
"""What is told of tasks besides their CPU time."""


def total(tasks: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """Usage of a step (the fields of slurmk.model.job.Usage) from its tasks: ``rank``, ``node``, ``measures``."""
    if not tasks:
        return {}

    def spread(*names: str) -> Dict[str, Any]:
        def value(task: Mapping[str, Any]) -> int:
            return sum(int(task["measures"][name]) for name in names)

        most, least = max(tasks, key=value), min(tasks, key=value)
        return {
            "total": sum(map(value, tasks)),
            "most": value(most),
            "most_node": most["node"],
            "most_task": most["rank"],
            "least": value(least),
            "least_node": least["node"],
            "least_task": least["rank"],
        }

    return {
        "tasks": len(tasks),
        "user_cpu": sum(task["measures"]["user_cpu"] for task in tasks),
        "system_cpu": sum(task["measures"]["system_cpu"] for task in tasks),
        "cpu": spread("user_cpu", "system_cpu"),
        **{name: spread(name) for name in SPREAD},
    }
