"""Finds the site: from a folder with slurm.conf, or made of this machine."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from slurmk.model.configuration import load_site, machine_site
from slurmk.model.site import Site

NODES = 4
"""Nodes that are pretended when nobody says how many."""


def find_site(configuration: Path | None, nodes: int | None) -> Site:
    """The site; raises GrammarError with file, line and key when the configuration is wrong, OSError when unreadable."""
    if configuration is None:
        return machine_site(len(os.sched_getaffinity(0)), machine_memory(), nodes or NODES)
    if not (configuration / "slurm.conf").is_file():
        raise FileNotFoundError(2, "there is no slurm.conf", str(configuration))
    return load_site(read, str(configuration))


def find_configured(configuration: Path | None) -> Site | None:
    """What slurm.conf says on Kubernetes, where it may leave nodes and partitions to the cluster; None without one. Raises
    as ``find_site`` does."""
    if configuration is None or not (configuration / "slurm.conf").is_file():
        return None
    return load_site(read, str(configuration), nodes_required=False)


def read(path: str) -> str | None:
    """A configuration file's text, None when there is none. Raises OSError, for devices and pipes as well."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    with open(descriptor, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def machine_memory() -> int:
    """This machine's memory, MiB, or what the control group leaves of it."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):
        limit = total
    return max(1, min(total, limit) // (1024 * 1024))
